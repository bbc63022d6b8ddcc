"""Pages of cases: what they draw, what they state, and that they stand anything."""

import base64
import csv
import json
import re
import struct
import zlib

import nibabel as nib
import numpy as np
import pytest

from flare.reports.cases.pictures import LEVELS, Seen, view
from flare.reports.cases.planes import PLANES
from tests.builders import AFFINE, ORGANS, organ_boxes, read_metrics
from tests.builders.case_pages import (
    SLOT_AFFINE,
    SLOT_SPACING,
    Evaluated,
    evaluated,
    slot_and_stray,
)
from tests.builders.pages import Page


def read(folder, case="case"):
    return (folder / f"{case}.html").read_text(encoding="utf-8")


def slot(tmp_path):
    """The evaluation of a liver with a slot and a stray."""
    return evaluated(
        tmp_path,
        {"case": slot_and_stray()},
        affine=SLOT_AFFINE,
        spacing=SLOT_SPACING,
    )


@pytest.fixture(scope="module")
def slot_page(tmp_path_factory):
    """The page of that case."""
    return read(slot(tmp_path_factory.mktemp("slot")).write())


def test_outlines_and_errors_are_drawn_as_worked_out_by_hand(slot_page):
    """Axial slice 5 of 16: six by six voxels, of which three columns were missed.

    All 12 by 12 voxels are seen, as the stray is less than a margin from the edge.
    From the front, slice 11: the stray alone, at columns 10 to 12; slices are drawn
    from the head, so slice 12 of 16 is in row 3.
    """
    assert "Axial, slice 5 of 16" in slot_page
    paths = dict(
        re.findall(r'<path d="([^"]+)"[^>]*class="((?:ref|pred|wrong)[^"]*)', slot_page)
    )
    assert paths["M2 2h6v6h-6z"] == "ref o0"
    assert paths["M2 2h3v6h-3z"] == "pred"
    assert paths["M5 2h3v6h-3z"] == "wrong missed"
    assert "Coronal, slice 11 of 12" in slot_page
    assert paths["M10 3h2v1h-2z"] in ("pred", "wrong added")
    assert 'viewBox="0 0 12 12"' in slot_page
    assert 'viewBox="0 0 12 16"' in slot_page
    assert "liver 18 voxels missed, 0 added" in slot_page


def test_planes_have_one_scale_and_voxels_their_shape(slot_page):
    """12 mm wide, and 12 or 32 mm high, whatever the number of voxels."""
    outer = re.findall(r'<svg viewBox="0 0 (\S+) (\S+)" class="picture"', slot_page)
    assert outer == [("12", "12"), ("12", "32"), ("12", "32")] * 2


def test_letters_say_where_the_patient_is(slot_page):
    letters = re.findall(r">([RLAPSI])</text>", slot_page)
    assert "".join(letters) == 2 * "RLAPRLSIAPSI"


def test_numbers_are_those_of_metrics_json_and_by_hand(tmp_path):
    """144 and 128 voxels of 2 mm3, 126 of them shared."""
    made = slot(tmp_path)
    page = Page(read(made.write()))

    told = read_metrics(made.metrics.parent)["case"]
    scores = {row["organ"]: row for row in page.table("Scores")}
    for organ in ORGANS.values():
        assert scores[organ]["DSC"].exact == told[f"dsc_{organ}"]["0"]
        assert scores[organ]["NSD"].exact == told[f"nsd_{organ}"]["0"]
    liver = scores["liver"]
    beyond = liver["beyond tolerance, mm2"].exact / liver["surface, mm2"].exact
    assert 1 - beyond == pytest.approx(told["nsd_liver"]["0"], abs=1e-12)
    assert scores["spleen"]["farthest, mm"] == "none"
    volumes = {row["organ"]: row for row in page.table("Voxels, each of 2 mm3")}
    assert [*volumes["liver"].values()] == [
        *("liver", "144", "128", "18", "2"),
        *("0.3", "0.3", "0.0", "0.0"),
    ]
    assert volumes["liver"]["missed, ml"].exact == pytest.approx(0.036)
    assert "2 voxels of liver, 12 mm from any of the reference" in page.text


def test_the_slices_in_which_an_organ_is_wrong_are_told(slot_page):
    """36 voxels of 1 mm2 are 0.4 cm2; 18 of slice 5 are missed, 2 of slice 13 added."""
    page = Page(slot_page)

    (row,) = page.table("Slices of each organ")
    assert [*row.values()] == ["liver", "3-6", "0.4", "3-13", "0.4", "5", "13"]


def test_the_viewer_gets_both_label_maps_in_a_byte_a_voxel(slot_page):
    reference, prediction = slot_and_stray()

    (text,) = re.findall(r'id="volume">(.*?)</script>', slot_page)
    data = json.loads(text)
    voxels = np.frombuffer(zlib.decompress(base64.b64decode(data["voxels"])), np.uint8)
    volume = voxels.reshape(data["shape"])
    z, y, x = (
        slice(f, f + n) for f, n in zip(data["first"], data["shape"], strict=True)
    )
    assert np.array_equal(volume & 15, reference[z, y, x])
    assert np.array_equal(volume >> 4, prediction[z, y, x])
    assert data["worst"] == [4, 10, 10]


def test_a_case_that_is_too_large_for_a_browser_has_no_viewer(tmp_path, monkeypatch):
    monkeypatch.setattr("flare.reports.cases.pictures.MOST_VOXELS", 9)

    html = read(slot(tmp_path).write())

    assert "Where it is worst" in html
    assert 'id="volume"' not in html
    assert 'id="viewer"' not in html


def test_two_reports_have_the_same_bytes(tmp_path):
    made = slot(tmp_path)
    first = {file.name: file.read_bytes() for file in made.write().iterdir()}
    index = (made.pages / "index.html").read_bytes()

    again = {file.name: file.read_bytes() for file in made.write().iterdir()}

    assert (first, index) == (again, (made.pages / "index.html").read_bytes())
    assert set(first) == {"case.html", "index.html"}


@pytest.mark.parametrize("axes", ["RAS", "ILP", "PSR"])
def test_a_page_is_the_same_however_the_file_lies(tmp_path, axes):
    """Paths, slices and tables of the organs; the order of surfels is another one."""
    pages = []
    for name in ("LPS", axes):
        cases = {}
        for labels in slot_and_stray():
            image = nib.Nifti1Image(labels.T, SLOT_AFFINE)
            turned = image.as_reoriented(
                nib.orientations.ornt_transform(
                    nib.orientations.axcodes2ornt("LPS"),
                    nib.orientations.axcodes2ornt(name),
                )
            )
            cases.setdefault("case", []).append(np.asarray(turned.dataobj).T)
        spacing = tuple(np.abs(turned.affine[:3, :3]).max(axis=0)[::-1])
        made = evaluated(tmp_path / name, cases, affine=turned.affine, spacing=spacing)
        html = read(made.write())
        paths = re.findall(r'<path d="[^"]+"[^>]*class="(?:ref|pred|wrong)', html)
        volumes = Page(html).table("Voxels")
        slices = Page(html).table("Slices of each organ")
        pages.append((paths, volumes, slices, re.findall("slice .*?<", html)))

    assert pages[0] == pages[1]


def test_the_nearest_surfel_is_seen_whatever_lies_behind_it():
    """Three surfels behind each other along the back: from the front, the first."""
    corners = np.array([[0, 2, 0], [0, 0, 0], [0, 1, 0], [0, 2, 1]], dtype=np.int32)
    seen = Seen(
        corners=corners,
        bands=np.array([3, 0, 1, 2], dtype=np.uint8),
        shape=(1, 3, 3),
    )

    front = view(seen, PLANES[1], (1.0, 1.0, 1.0))

    assert ((front.astype(int) - 1) // LEVELS).tolist() == [[0, 2, -1]]
    side = view(seen, PLANES[2], (1.0, 1.0, 1.0))  # from the left: the last column
    assert ((side.astype(int) - 1) // LEVELS).tolist() == [[0, 1, 2]]
    below = view(seen, PLANES[0], (1.0, 1.0, 1.0))
    assert ((below.astype(int) - 1) // LEVELS).tolist() == [
        [0, -1, -1],
        [1, -1, -1],
        [3, 2, -1],
    ]


def test_pictures_of_surfaces_can_be_read(slot_page):
    """A PNG of 8 by 10 corners from below: the box of liver and stray and one more."""
    found = re.findall(r'href="data:image/png;base64,([^"]+)"', slot_page)
    sizes = [struct.unpack(">II", base64.b64decode(text)[16:24]) for text in found]
    assert sizes == [(11, 10), (11, 12), (10, 12)]


def missed(shape):
    """A map full of liver, and a prediction that has a voxel of spleen in it."""
    reference = np.ones(shape, dtype=np.uint8)
    prediction = reference.copy()
    prediction.flat[0] = 3
    return reference, prediction


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        *((missed(s), "spleen") for s in ((1, 9, 9), (30, 4, 4), (5, 1, 9), (2, 2, 2))),
        (np.zeros((2, 6, 8, 9), dtype=np.uint8), "there is nothing to draw"),
        ([organ_boxes(), np.zeros_like(organ_boxes())], "liver: all 294 voxels missed"),
    ],
    ids=["a slice", "a rod", "a row", "a cube", "nothing at all", "empty"],
)
def test_a_page_stands_odd_maps(tmp_path, maps, words):
    """The second case has what the evaluation needs: not all predictions are empty."""
    made = evaluated(tmp_path, {"case": maps, "other": [organ_boxes()] * 2})

    html = read(made.write())

    assert words in Page(html).text
    assert ("Where it is worst" in html) == bool(maps[0].any())


def test_a_tilted_file_says_so(tmp_path):
    angle = np.deg2rad(15)
    turn = np.eye(4)
    turn[1:3, 1:3] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    boxes = organ_boxes()

    made = evaluated(tmp_path, {"case": (boxes, boxes)}, affine=turn @ AFFINE)

    assert "tilted by up to 15 degrees" in read(made.write())


def test_a_case_that_failed_has_words_instead_of_pictures(tmp_path):
    boxes = organ_boxes()
    cases = {"a": (boxes, organ_boxes(shift=1)), "b": (boxes, None)}
    made = evaluated(tmp_path, cases, on_bad_case="worst")

    folder = made.write()

    assert "Not scored: " in read(folder, "b")
    assert "<h2>" not in read(folder, "b")
    assert read(folder, "index").index("b.html") < read(folder, "index").index("a.html")


def test_the_hardest_cases_are_drawn_and_linked(tmp_path):
    boxes = organ_boxes()
    cases = {f"c{shift}": (boxes, organ_boxes(shift=shift)) for shift in range(4)}
    made = evaluated(tmp_path, cases)
    told = []

    folder = made.write(worst=2, on_drawn=lambda *about: told.append(about))

    assert told == [(1, 2, "c3"), (2, 2, "c2")]
    assert {file.name for file in folder.iterdir()} == {
        *("c3.html", "c2.html", "index.html")
    }
    assert "2 of 4 cases, those with the lowest DSC." in read(folder, "index")
    index = (made.pages / "index.html").read_text(encoding="utf-8")
    assert '<a href="cases/c3.html">c3</a>' in index
    assert "cases/c1.html" not in index
    assert 'href="cases/index.html"' in index
    assert 'href="c2.html" rel="next"' in read(folder, "c3")
    assert len([*made.write(worst=0).iterdir()]) == 5  # all


def test_rounded_scores_are_those_of_the_pages(tmp_path):
    boxes = organ_boxes()
    made = evaluated(tmp_path, {"case": (boxes, organ_boxes(shift=1))}, decimals=3)

    page = Page(read(made.write()))

    told = read_metrics(made.metrics.parent)["case"]["dsc_liver"]["0"]
    assert page.table("Scores")[0]["DSC"].exact == told


@pytest.mark.slow
@pytest.mark.shared
def test_pages_state_the_official_values(shared, tmp_path):
    """And what is not coloured of the surfaces is the official NSD."""
    import flare

    data = shared / "data" / "flare21"
    with (data / "official.csv").open(encoding="utf-8") as file:
        official = {row["Name"]: row for row in csv.DictReader(file)}
    results = flare.evaluate(data / "predictions", data / "reference")
    metrics = flare.write_metrics(results, tmp_path / "results")
    made = Evaluated(
        metrics, data / "reference", data / "predictions", tmp_path / "pages"
    )

    folder = made.write(worst=0)

    for name, row in official.items():
        case = name.removesuffix(".nii.gz")
        table = Page(read(folder, case)).table("Scores")
        for label, found in zip(ORGANS, table, strict=True):
            assert found["DSC"].exact == float(row[f"DSC_{label}"])
            nsd = float(row[f"NSD-1mm_{label}"])
            assert found["NSD"].exact == pytest.approx(nsd, abs=1e-12)
            area = found["surface, mm2"].exact
            if area:
                beyond = found["beyond tolerance, mm2"].exact
                assert 1 - beyond / area == pytest.approx(nsd, abs=1e-12)
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert max(sizes) < 260_000
