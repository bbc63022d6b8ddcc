"""The demonstration set shows what it says, and the bundled files are what it makes."""

import numpy as np
import pytest

import flare
from flare.evaluation.demonstration import CASES, SHAPE, write_demonstration
from flare.evaluation.labelmaps.reading import read_label_map
from tests.builders import ORGANS, ROOT
from tests.builders.fewer import few_fast

LABELS = {organ: label for label, organ in ORGANS.items()}
BUNDLED = {"ground-truth": ROOT / "ground-truth", "predictions": ROOT / "examples"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demonstration")
    assert len(list(write_demonstration(folder))) == 15
    return folder


def read(folder, number):
    path = folder / f"demo_{number:03}.nii.gz"
    return read_label_map(path, path.name, ORGANS)


@pytest.fixture(params=["ground-truth", "predictions"])
def kind(request):
    return request.param


@pytest.mark.parametrize("number", range(1, 6))
def test_the_bundled_files_are_what_the_command_makes(made, kind, number):
    bundled = ROOT / (
        "ground-truth" if kind == "ground-truth" else "examples/predictions"
    )

    expected, found = read(made / kind, number), read(bundled, number)

    assert found.grid == expected.grid
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("number", few_fast(range(1, 6), fast=[0]))
def test_an_image_shows_the_labels_and_lies_where_they_do(made, number):
    """Its grey values are 50 times the label, and noise below 50."""
    reference = read(made / "ground-truth", number)
    path = made / "images" / f"demo_{number:03}_0000.nii.gz"
    image = read_label_map(path, path.name, dict.fromkeys(range(256), "grey"))

    assert image.grid == reference.grid
    np.testing.assert_array_equal(image.labels // 50, reference.labels)
    assert len(np.unique(image.labels % 50)) == 50


def test_another_seed_makes_other_shapes(tmp_path, made):
    list(write_demonstration(tmp_path, seed=1))

    first, second = read(tmp_path / "ground-truth", 1), read(made / "ground-truth", 1)
    assert (first.labels != second.labels).any()


def test_case_1_misses_an_organ(made):
    reference, prediction = (read(made / kind, 1).labels for kind in BUNDLED)

    assert (reference == LABELS["pancreas"]).any()
    assert not (prediction == LABELS["pancreas"]).any()


def test_case_2_has_an_organ_in_neither(made):
    for kind in BUNDLED:
        found = set(np.unique(read(made / kind, 2).labels))
        assert found == {0, *LABELS.values()} - {LABELS["spleen"]}


def test_case_3_has_a_false_positive_far_away(made):
    reference, prediction = (read(made / kind, 3).labels for kind in BUNDLED)
    livers = [
        np.argwhere(labels == LABELS["liver"]) for labels in (reference, prediction)
    ]

    assert livers[1].min(axis=0)[0] == 0
    assert livers[0].min(axis=0)[0] > 5


def test_case_4_has_an_organ_at_the_border(made):
    for kind in BUNDLED:
        liver = np.argwhere(read(made / kind, 4).labels == LABELS["liver"])
        assert liver[:, 2].min() == 0
        assert liver[:, 0].max() == SHAPE[0] - 1


def test_case_5_has_a_surface_exactly_1_mm_away(made):
    """Moved by one voxel of 1 mm: all of NSD, and not all of DSC."""
    results = flare.evaluate(made / "predictions", made / "ground-truth")

    score = results.cases[4]
    assert {organ.nsd for organ in score.organs} == {1.0}
    assert all(0.5 < organ.dsc < 1 for organ in score.organs)
    assert "1 mm" in CASES[4].shows
