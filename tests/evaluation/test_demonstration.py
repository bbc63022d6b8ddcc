"""The demonstration set shows what it says, and the bundled files are what it makes."""

import numpy as np
import pytest

from flare.evaluation.demonstration import write_demonstration
from flare.evaluation.submission.find import LabelMapFile
from tests.builders import ORGANS, ROOT
from tests.builders.fewer import few_fast


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demonstration")
    assert len(list(write_demonstration(folder))) == 15
    return folder


def read(folder, number):
    path = folder / f"demo_{number:03}.nii.gz"
    return LabelMapFile(case="", path=path, name=path.name).read_labels(ORGANS)


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
    file = LabelMapFile(case="", path=path, name=path.name)
    image = file.read_labels(range(256))

    assert image.grid == reference.grid
    np.testing.assert_array_equal(image.labels // 50, reference.labels)
    assert len(np.unique(image.labels % 50)) == 50
