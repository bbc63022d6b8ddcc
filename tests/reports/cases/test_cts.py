"""CTs behind outlines: their window, and that they lie where the outlines are."""

import base64
import re

import numpy as np
import pytest
import SimpleITK as sitk

from flare.evaluation.errors import FileFormatError
from flare.reports.cases.sources import grey, read_ct
from tests.builders import write_file, write_nifti
from tests.builders.case_pages import evaluated, reoriented, slot_and_stray


def backgrounds(html, folder):
    """The shades of each JPEG, as numbers that can be negative."""
    for text in re.findall(r'href="data:image/jpeg;base64,([^"]+)"', html):
        file = write_file(folder / "slice.jpg", base64.b64decode(text))
        yield sitk.GetArrayFromImage(sitk.ReadImage(file)).astype(int)


@pytest.mark.parametrize("axes", ["LPS", "RAI"])
def test_each_plane_has_its_slice_of_the_ct(tmp_path, axes):
    """The CT rises along all axes; black is -160 HU, and white 240.

    All 16 x 12 x 12 voxels are seen, and the worst slices are 4, 10 and 10.
    """
    z, y, x = np.ogrid[:16, :12, :12]
    ct = (-160 + 12 * z + 9 * y + 6 * x).astype(np.int16)
    (*maps, turned), header = reoriented([*slot_and_stray(), ct], axes)
    images = tmp_path / "images"
    write_nifti(images / "case_0000.nii.gz", turned, dtype="<i2", **header)
    made = evaluated(tmp_path, {"case": maps}, **header)

    html = (made.write(images=images) / "case.html").read_text()

    shades = (ct + 160.0) / 400 * 255
    expected = [shades[4], shades[::-1, 10], shades[::-1, :, 10]]
    for found, shown in zip(backgrounds(html, tmp_path), expected, strict=True):
        assert np.abs(found - shown).max() < 6  # what a JPEG changes
    assert 'id="show-ct"' in html


def test_what_is_outside_of_the_window_is_black_or_white():
    values = np.array([-1000, -160, 40, 240, 3000, np.nan])

    assert grey(values).tolist() == [0, 0, 128, 255, 255, 102]


@pytest.mark.parametrize("kind", ["<i2", ">i2", "<f4"])
def test_a_ct_of_a_tilted_gantry_is_read_however_it_is_stored(tmp_path, kind):
    """SimpleITK would refuse its header, which is sheared; and does so afterwards."""
    sheared = np.diag([8.0, 8.0, 8.0, 1.0])
    sheared[1, 2] = 3.0
    voxels = np.arange(-1000, -1000 + 4 * 5 * 6).reshape(4, 5, 6)
    file = tmp_path / "case.nii.gz"
    write_nifti(file, voxels, dtype=kind, spacing=(8.0, 8.0, 8.0), affine=sheared)

    found = sitk.GetArrayFromImage(read_ct(file, file.name))

    assert np.array_equal(found, voxels)
    with pytest.raises(RuntimeError, match="orthonormal"):
        sitk.ReadImage(file)


def test_a_ct_that_simpleitk_cannot_read_is_refused(tmp_path):
    """As one of NIfTI's second version."""
    file = tmp_path / "case.nii.gz"
    write_nifti(file, np.zeros((4, 5, 6)), dtype="<i2", version=2)

    with pytest.raises(FileFormatError):
        read_ct(file, file.name)
