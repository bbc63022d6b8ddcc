"""Where a label is, compared with a search voxel by voxel."""

import numpy as np
import pytest

from flare.evaluation.metrics import label_finder
from flare.evaluation.metrics.label_finder import LabelFinder, find_labels
from tests.builders.fewer import few_fast


def span(occupied):
    """From the first to the last True, or an empty slice."""
    found = [index for index, value in enumerate(occupied) if value]
    return slice(found[0], found[-1] + 1) if found else slice(0, 0)


def assert_found(labels, wanted):
    for label, found in find_labels(labels, wanted).items():
        mask = labels == label
        assert found.label == label
        for rows, own in zip(found.rows, mask.any(axis=2), strict=True):
            assert span(rows) == span(own)
        assert found.depth == len(labels)
        assert found.span_z == span(mask.any(axis=(1, 2)))
        for z in range(len(labels)):
            zs = slice(z, min(z + 2, len(labels)))
            rows, columns = mask[zs].any(axis=(0, 2)), mask[zs].any(axis=(0, 1))
            assert found.span_yx(zs) == (span(rows), span(columns))
        extents = [
            mask.any(axis=axes).nonzero()[0] for axes in ((1, 2), (0, 2), (0, 1))
        ]
        assert found.extent == tuple(
            int(where[-1] - where[0]) + 1 if where.size else 0 for where in extents
        )


def unwanted(labels, wanted):
    """The other labels that are found."""
    finder = LabelFinder(labels.reshape(-1), labels.shape, wanted)
    finder.add(labels.size)
    finder.finish()
    return finder.unwanted


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 5, 7), (4, 6, 8), (2, 3, 1), (9, 1, 3)]
)
@pytest.mark.parametrize("labels", [2, 5, 256])
@pytest.mark.parametrize("sparse", [0, 0.8, 0.99])
@pytest.mark.parametrize("count", few_fast([2, 10], fast=[0]))
def test_every_label_is_found_where_it_is(shape, labels, sparse, count):
    random = np.random.default_rng(labels)
    for _ in range(count):
        drawn = random.integers(0, labels, size=shape).astype(np.uint8)
        drawn[random.random(shape) < sparse] = 0
        assert_found(drawn, (1, 3, 4, 255))


@pytest.mark.parametrize("piece", [8, 16, 64])
@pytest.mark.parametrize("batch", few_fast([1, 3, 100], fast=[1]))
@pytest.mark.parametrize("dense", [0, 2, 4, 10**9])
def test_pieces_and_batches_of_any_size_find_the_same(monkeypatch, piece, batch, dense):
    """However many runs end in a piece, and whatever is called many of them."""
    monkeypatch.setattr(label_finder, "PIECE_BYTES", piece)
    monkeypatch.setattr(label_finder, "BATCH", batch)
    monkeypatch.setattr(label_finder, "DENSE", dense)
    random = np.random.default_rng(piece + batch)
    for _ in range(20):
        labels = random.integers(0, 3, size=(3, 5, 7)).astype(np.uint8)
        labels[random.random(labels.shape) < 0.7] = 0
        assert_found(labels, (2, 1))


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16])
def test_a_label_that_fills_everything_has_no_border_and_is_found(width):
    assert_found(np.full((3, 4, width), 7, dtype=np.uint8), (7,))


def test_a_run_that_goes_on_in_the_next_row_occupies_both():
    labels = np.zeros((2, 3, 8), dtype=np.uint8)
    labels.reshape(-1)[5:43] = 1
    assert_found(labels, (1,))


@pytest.mark.parametrize("width", [7, 16])
def test_a_label_as_in_the_last_row_of_the_slice_before_is_found(width):
    """No row of the second slice differs from what is before it in the file."""
    labels = np.zeros((3, 2, width), dtype=np.uint8)
    labels[0, 1, 3] = labels[1, 0, 3] = labels[1, 1, 3] = labels[2, 0, 3] = 1
    assert_found(labels, (1,))


def test_stripes_as_wide_as_what_is_compared_at_once_are_found():
    labels = np.zeros((3, 4, 16), dtype=np.uint8)
    labels[:, :, ::8] = 1
    assert_found(labels, (1,))


@pytest.mark.parametrize("first", [1, 2])
def test_a_run_that_ends_where_noise_begins_is_found(monkeypatch, first):
    """Pieces of 16: the first is looked at by its runs, the second voxel by voxel."""
    monkeypatch.setattr(label_finder, "PIECE_BYTES", 16)
    labels = np.zeros((1, 4, 8), dtype=np.uint8)
    labels.reshape(-1)[10:16] = first
    labels.reshape(-1)[16:] = np.arange(16) % 2
    assert_found(labels, (1, 2))


@pytest.mark.parametrize("width", [7, 16, 40])
def test_a_column_that_ends_where_noise_begins_is_found(monkeypatch, width):
    """Pieces of a row: two are looked at by their runs, the third one as a whole."""
    monkeypatch.setattr(label_finder, "PIECE_BYTES", width)
    monkeypatch.setattr(label_finder, "DENSE", 2)
    labels = np.zeros((1, 5, width), dtype=np.uint8)
    labels[0, 1:3, -1] = 1  # its second row is as its first
    labels[0, 3, ::2] = labels[0, 4, 1::2] = 2
    assert_found(labels, (1, 2))


@pytest.mark.parametrize("other", [6, 7, 255])
def test_noise_has_labels_that_are_not_wanted(other):
    """Also the least that there can be, in a single voxel amid others."""
    labels = (np.arange(4 * 5 * 8) % 7).astype(np.uint8).reshape(4, 5, 8)
    labels[labels == 6] = 0
    labels[2, 2, 4] = other
    assert unwanted(labels, range(1, 6)) == {other}


def test_noise_has_more_than_one_of_them():
    labels = (np.arange(4 * 5 * 8) % 7).astype(np.uint8).reshape(4, 5, 8)
    assert unwanted(labels, (1, 3)) == {2, 4, 5, 6}


@pytest.mark.parametrize("dense", [0, 4, 10**9])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 4, 16), (4, 1, 9), (40, 2, 2)])
def test_more_labels_than_a_byte_has_bits_are_found(monkeypatch, dense, shape):
    """Thirteen, as FLARE22 has, among others that are not wanted."""
    monkeypatch.setattr(label_finder, "DENSE", dense)
    random = np.random.default_rng(dense)
    labels = random.integers(0, 20, size=shape).astype(np.uint8)
    wanted = tuple(range(1, 14))

    assert_found(labels, wanted)
    assert unwanted(labels, wanted) == set(labels[labels > 13].tolist())


@pytest.mark.parametrize("width", [1, 3, 16, 40])
def test_runs_over_many_rows_are_in_each_of_them(width):
    """A label that fills some rows, begins within one and ends within one."""
    labels = np.zeros((4, 6, width), dtype=np.uint8)
    flat = labels.reshape(-1)
    flat[width + width // 2 : 15 * width + width // 3] = 2
    flat[20 * width :] = 1

    assert_found(labels, (1, 2))


def test_a_part_of_a_larger_array_is_searched_alone():
    labels = np.zeros((4, 5, 6), dtype=np.uint8)
    labels[0, 0, 0] = labels[2, 3, 4] = 1
    assert_found(labels[1:, 1:, 1:], (1,))


def test_two_maps_together_and_some_slices_alone():
    first, second = np.zeros((2, 4, 5, 6), dtype=np.uint8)
    first[1, 2, 3] = second[3, 4, 5] = 1

    both = find_labels(first, (1,))[1] | find_labels(second, (1,))[1]

    assert both.span_z == slice(1, 4)
    assert both.extent == (3, 3, 3)
    assert both.within(slice(2, 4)).span_z == slice(1, 2)
    assert both.within(slice(2, 3)).extent == (0, 0, 0)
