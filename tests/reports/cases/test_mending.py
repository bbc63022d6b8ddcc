"""Findings of `flare doctor` on the pages of cases: a slice before and after."""

import re

import numpy as np

import flare
from flare.reports.cases.pictures import mending_pictures
from flare.reports.cases.words import ordered_faults
from tests.builders.case_pages import evaluated, found_of, two_boxes


def test_the_page_shows_a_slice_before_and_after_with_reason_and_remedy(tmp_path):
    """As submitted two of four organs score 0, and those that are nowhere 1."""
    maps = two_boxes((1, 3), (1, 3), mirrored=True)

    folder = evaluated(tmp_path, {"case": maps}).write()
    page = (folder / "case.html").read_text(encoding="utf-8")

    sentence = "The prediction as a whole: mirrored left to right"
    assert f"{sentence} (DSC 1.000 without that)" in page
    assert '<a href="#mended">What was done to it</a>' in page
    section = page.partition('<section id="mended">')[2].partition("</section>")[0]
    assert f"<p>{sentence}.</p>" in section
    assert "Usually: an axis was reversed" in section
    assert "Mend it: labels = numpy.flip(labels, (0,));" in section
    assert re.findall("<figcaption>(.*)</figcaption>", section) == [
        "Submitted, slice 3 of 6; mean of the case: DSC 0.500, NSD 0.500",
        "Mended, slice 3 of 6; mean of the case: DSC 1.000, NSD 1.000",
    ]
    patterns = re.findall('<pattern[^>]* id="([^"]+)"', page)
    assert len({*patterns}) == len(patterns) == 10


def test_the_mended_slice_is_the_reference_however_the_file_lies(tmp_path):
    """The liver is in columns 1 to 5, predicted at 15 to 19; the file has x for z."""
    maps = two_boxes((1, 3), (1, 3), mirrored=True).transpose(0, 3, 2, 1)
    affine = np.diag([-1.0, -1.0, 1.0, 1.0])[:, [2, 1, 0, 3]]

    finding = found_of(tmp_path, maps, affine=affine, spacing=(1, 1, 1))
    submitted, mended = mending_pictures(finding, finding.mending)

    assert '<path d="M15 2h4v4h-4z" class="pred"' in submitted.drawing
    for path in ("M1 2h4v4h-4z", "M12 3h3v3h-3z"):
        assert mended.drawing.count(f'<path d="{path}"') == 2
    assert mended.summary == "no voxel is wrong"


def test_numbers_that_no_organ_has_are_mended_or_not_drawn(tmp_path):
    """Flare22 ignores other numbers: 20, which is the liver, and 14, a few voxels."""
    reference, prediction = two_boxes((1, 3), (20, 3), mirrored=True)
    prediction[5, 7, :4] = 14

    finding = found_of(tmp_path, (reference, prediction), challenge="flare22")

    assert np.array_equal(finding.mending.labels, finding.reference)
    worst = ordered_faults(finding)[0].line
    assert "mirrored left to right; given other numbers (20 is" in worst


def test_means_are_those_of_repaired_copies_and_the_evaluation_passes_it_on(tmp_path):
    reference, prediction = two_boxes((1, 3), (1, 3), mirrored=True)
    prediction[1, 2, 15:17] = 0
    made = evaluated(tmp_path, {"a": (reference, prediction), "b": [reference] * 2})
    diagnosis = flare.diagnose(made.predictions, made.references, challenge="flare21")
    diagnosis.write_repaired(tmp_path / "fixed")
    fixed = flare.evaluate(tmp_path / "fixed", made.references).cases[0]

    folder = made.write()
    pages = {page.stem: page.read_text("utf-8") for page in folder.iterdir()}

    assert f"DSC {fixed.dsc:.3f} without that" in pages["index"]
    assert f"mean of the case: DSC {fixed.dsc:.3f}" in pages["a"]
    assert "mended" not in pages["b"]
    evaluation = (folder.parent / "index.html").read_text("utf-8")
    assert evaluation.count("the prediction as a whole: mirrored left to right") == 2
