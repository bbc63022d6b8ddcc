"""Where a label is, compared with a search voxel by voxel."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flare.evaluation.metrics import occupancy
from flare.evaluation.metrics.occupancy import LabelFinder, find_labels

ALL = tuple(range(1, 256))


def span(occupied):
    """From the first to the last True, or an empty slice."""
    found = [index for index, value in enumerate(occupied) if value]
    return slice(found[0], found[-1] + 1) if found else slice(0, 0)


def assert_found(labels, wanted, *, is_exact=True):
    """Boxes of a few slices hold their labels; slices without a label are known."""
    for label, found in find_labels(labels, wanted).items():
        mask = labels == label
        assert (found.label, found.depth) == (label, len(labels))
        assert found.span_z == span(mask.any(axis=(1, 2)))
        parts = [slice(z, min(z + 2, len(labels))) for z in range(len(labels))]
        for zs in (*parts, slice(None)):
            boxes = span(mask[zs].any(axis=(0, 2))), span(mask[zs].any(axis=(0, 1)))
            for own, box in zip(found.span_yx(zs), boxes, strict=True):
                is_within = own.start <= box.start and box.stop <= own.stop
                assert own == box or (is_within and box.stop and not is_exact)
        spans = (found.span_z, *found.span_yx(slice(None)))
        assert found.extent == tuple(each.stop - each.start for each in spans)


def unwanted(labels, wanted):
    """The other labels that are found."""
    finder = LabelFinder(labels.reshape(-1), labels.shape, wanted)
    finder.add(labels.size)
    finder.finish()
    return finder.unknown


def drawn(seed, shape, highest, sparse):
    """Any labels, of which a share is 0, each of a run of one to three voxels."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 4))
    labels = random.integers(0, highest + 1, size=shape).repeat(size, axis=2)
    labels[random.random(labels.shape) < sparse] = 0
    return np.ascontiguousarray(labels[:, :, : shape[2]]).astype(np.uint8)


MAPS = st.builds(
    drawn,
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 6), st.integers(1, 8), st.integers(1, 18)),
    st.sampled_from([1, 2, 4, 19, 255]),
    st.sampled_from([0, 0.7, 0.95, 0.99]),
)


@pytest.mark.parametrize(("dense", "is_exact"), [(0, True), (4, False), (10**9, False)])
@settings(max_examples=40)
@given(
    labels=MAPS,
    piece=st.sampled_from([1, 7, 8, 16, 64, 2**19]),
    batch=st.sampled_from([1, 3, 100]),
)
@example(labels=np.full((3, 4, 9), 7, dtype=np.uint8), piece=64, batch=1)
def test_every_label_is_found_where_it_is(dense, is_exact, labels, piece, batch):
    """Pieces and batches of any size; whatever is called many differences of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occupancy, "PIECE_BYTES", piece)
        patch.setattr(occupancy, "BATCH", batch)
        patch.setattr(occupancy, "DENSE", dense)

        assert_found(labels, (2, 1, 3, 255), is_exact=is_exact)
        assert unwanted(labels, (1, 3)) == set(labels.flat) - {0, 1, 3}
        assert unwanted(labels, ALL) == set()


def test_what_is_like_the_row_above_in_the_file_is_found(monkeypatch):
    """Runs of a few rows, the last row of the slice before, stripes of 8 voxels."""
    monkeypatch.setattr(occupancy, "DENSE", 0)
    run = np.zeros((4, 6, 8), dtype=np.uint8)
    run.reshape(-1)[12:125] = 2
    run.reshape(-1)[160:] = 1
    same = np.zeros((3, 2, 16), dtype=np.uint8)
    same[0, 1, 3] = same[1, 0, 3] = same[1, 1, 3] = same[2, 0, 3] = 1
    stripes = np.zeros((3, 4, 16), dtype=np.uint8)
    stripes[:, :, ::8] = 1

    for labels in (run, run[:, :, :7], same, same[:, :, :7], stripes):
        assert_found(labels, (1, 2))


def test_labels_of_noise_are_each_in_the_slices_that_have_them(monkeypatch):
    """All of it is noise, and one voxel has the last label that is not wanted."""
    monkeypatch.setattr(occupancy, "DENSE", 10**9)
    labels = (np.arange(4 * 5 * 8) % 7).astype(np.uint8).reshape(4, 5, 8)
    labels[labels == 6] = 0
    labels[2, 2, 4] = 255

    assert unwanted(labels, range(1, 6)) == {255}
    assert find_labels(labels, (255,))[255].span_z == slice(2, 3)


def test_two_maps_together_and_some_slices_alone():
    first, second = np.zeros((2, 4, 5, 6), dtype=np.uint8)
    first[1, 2, 3] = second[3, 4, 5] = 1

    both = find_labels(first, (1,))[1] | find_labels(second, (1,))[1]

    assert both.span_z == slice(1, 4)
    assert both.extent == (3, 3, 3)
    assert both.within(slice(2, 4)).span_z == slice(1, 2)
    assert both.within(slice(2, 3)).extent == (0, 0, 0)
