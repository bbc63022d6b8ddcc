"""A short run of the fuzzer, and files that once broke the rule."""

import gzip
import warnings

import pytest

from tests.builders import metaimage_bytes, nifti_bytes, nrrd_bytes, organ_boxes
from tests.fuzzing import folders, label_maps
from tests.fuzzing.harness import fuzz
from tests.fuzzing.label_maps import check

pytestmark = [
    pytest.mark.slow,
    # The program lets NumPy warn of overflows in a header, into the log.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


@pytest.mark.parametrize("seed", range(4))
def test_changed_files_are_read_or_refused(seed):
    outcomes, findings = fuzz(label_maps.attempt, seed, runs=2500)

    assert findings == {}, outcomes
    assert outcomes.total() == 2500
    # The changes are of use: most files get past the header, and some fail behind it.
    assert outcomes["refused by its header"] < 1250
    assert outcomes["refused by its voxels"] > 100
    assert outcomes["read"] > 100


FINDINGS = {
    "a size of 5,000 digits, more than Python makes a number of": metaimage_bytes(
        organ_boxes(), DimSize=f"{'9' * 5000} 1 1"
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_what_was_found(tmp_path, name):
    (tmp_path / "case.mha").write_bytes(FINDINGS[name])

    assert check(tmp_path / "case.mha") == "refused by its header"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(nifti_bytes(organ_boxes())), id="NIfTI"),
        pytest.param(metaimage_bytes(organ_boxes()), id="MetaImage"),
        pytest.param(nrrd_bytes(organ_boxes()), id="NRRD"),
    ],
)
def test_the_fuzzer_knows_a_good_file(tmp_path, content):
    (tmp_path / "case.nii.gz").write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(tmp_path / "case.nii.gz") == "read"


@pytest.mark.parametrize("seed", range(2))
def test_changed_folders_are_scored_or_refused(seed):
    outcomes, findings = fuzz(folders.attempt, seed, runs=60)

    assert findings == {}, outcomes
    assert outcomes.total() == 60
