"""Pages of cases: what they draw, what they state, and that they stand anything."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

from flare.challenge.reading import challenge_text
from flare.reports.cases.drawing import PLANES
from flare.reports.cases.pictures import (
    plane_pictures,
    surface_pictures,
    surface_views,
    view,
    volume,
)
from flare.reports.cases.words import organ_table
from flare.reports.comparison import read_comparison
from flare.reports.comparison_page import comparison_page
from flare.reports.evaluation import organiser_page
from flare.results.metrics_reading import read_evaluation
from tests.builders import ORGANS, organ_boxes, read_metrics
from tests.builders.case_pages import (
    SLOT,
    evaluated,
    found_of,
    missed_and_shifted,
    reoriented,
    rows_by_name,
    slot_and_stray,
)
from tests.builders.pages import write_json

OUTLINES = r'<path d="([^"]+)"[^>]*class="((?:ref|pred|wrong)[^"]*)'


@pytest.fixture(scope="module")
def slot(tmp_path_factory):
    """What is found of a liver with a slot and a stray."""
    return found_of(tmp_path_factory.mktemp("slot"), slot_and_stray(), **SLOT)


def paths_of(picture):
    """The outlines of a picture, and what they are."""
    return dict(re.findall(OUTLINES, picture.drawing))


def words_of(page):
    parts = [*page.lead, *(part for own in page.sections for part in own.parts)]
    texts = [getattr(part, "text", "") for part in parts]
    return [*texts, *(line for part in parts for line in getattr(part, "items", ()))]


# --- What is drawn ----------------------------------------------------------------


def test_outlines_and_errors_are_drawn_as_worked_out_by_hand(slot):
    """Axial slice 5 of 16: six by six voxels, of which three columns were missed.

    All 12 by 12 voxels are seen, as the stray is less than a margin from the edge.
    From the front, slice 11: the stray alone, at columns 10 to 12; slices are drawn
    from the head, so slice 12 of 16 is in row 3. A voxel has 2 x 1 x 1 mm.
    """
    axial, coronal, sagittal = plane_pictures(slot)

    assert (axial.title, coronal.title) == (
        *("Axial, slice 5 of 16", "Coronal, slice 11 of 12"),
    )
    assert axial.summary == "liver 18 voxels missed, 0 added"
    assert paths_of(axial) == {
        "M2 2h6v6h-6z": "ref o0",
        "M2 2h3v6h-3z": "pred",
        "M5 2h3v6h-3z": "wrong missed",
    }
    assert paths_of(coronal).keys() == {"M10 3h2v1h-2z"}
    for picture, voxels, size, letters in (
        (axial, "12 12", "12 12", "RLAP"),
        (coronal, "12 16", "12 32", "RLSI"),
        (sagittal, "12 16", "12 32", "APSI"),
    ):
        boxes = re.findall(r'viewBox="0 0 (\S+ \S+)"', picture.drawing)
        assert boxes == [size, voxels]
        assert "".join(re.findall(r">([RLAPSI])</text>", picture.drawing)) == letters


def test_organs_are_named_where_they_are_and_names_keep_apart(tmp_path):
    """Two small organs side by side, within a large one."""
    labels = np.zeros((3, 60, 90), dtype=np.uint8)
    labels[:, 5:55, 5:85] = 1
    labels[:, 28:32, 40:44] = 2
    labels[:, 28:32, 44:48] = 3
    found = found_of(tmp_path, (labels, labels), spacing=(2, 2, 2))

    drawing = plane_pictures(found)[0].drawing

    pattern = r'<text x="(\S+)" y="(\S+)" font-size="(\S+)"[^>]*class="name o\d">(\w+)'
    names = {
        name: [float(p) for p in own] for *own, name in re.findall(pattern, drawing)
    }
    assert {*names} == {"liver", "kidney", "spleen"}
    assert all(10 < x < 170 and 10 < y < 110 for x, y, _ in names.values())
    (x, y, size), (other, below, _) = names["kidney"], names["spleen"]
    assert abs(x - other) > 6 * 0.6 * size or abs(y - below) >= size
    assert all(
        abs(own[0] - 88) < 40 and abs(own[1] - 60) < 20
        for own in (names["kidney"], names["spleen"])
    )


def test_the_nearest_surfel_is_seen_whatever_lies_behind_it():
    """Three surfels behind each other along the back: from the front, the first."""
    corners = np.array([[0, 2, 0], [0, 0, 0], [0, 1, 0], [0, 2, 1]], dtype=np.int32)
    bands = np.array([3, 0, 1, 2], dtype=np.uint8)
    below, front, side = (
        (view(corners, bands, (1, 3, 3), plane).astype(int) - 1).tolist()
        for plane in PLANES
    )

    assert front == [[0, 2, -1]]
    assert side == [[0, 1, 2]]  # from the left: the last column
    assert below == [[0, -1, -1], [1, -1, -1], [3, 2, -1]]


def test_pictures_of_surfaces_lie_where_their_voxels_are(slot):
    """Corners of all 12 x 12 x 16 voxels, those of liver and stray from voxel 2 on.

    From the front, the head is on top: of 16 slices, 3 lie above the stray.
    """
    views = surface_views(slot)

    places = [np.argwhere(own) for own in views]
    ends = [(*own.min(axis=0), *own.max(axis=0)) for own in places]
    assert ends == [(2, 2, 11, 12), (3, 2, 14, 12), (3, 2, 14, 11)]
    drawing = surface_pictures(slot, views)[1].drawing
    assert 'x="-0.5" y="-0.5" width="13" height="17"' in drawing


def test_the_viewer_gets_both_label_maps_in_a_byte_a_voxel(slot, monkeypatch):
    reference, prediction = slot_and_stray()

    data = volume(slot)

    voxels = np.frombuffer(zlib.decompress(base64.b64decode(data["voxels"])), np.uint8)
    both = voxels.reshape(data["shape"])
    z, y, x = (
        slice(f, f + n) for f, n in zip(data["first"], data["shape"], strict=True)
    )
    assert np.array_equal(both & 15, reference[z, y, x])
    assert np.array_equal(both >> 4, prediction[z, y, x])
    assert data["worst"] == (4, 10, 10)
    monkeypatch.setattr("flare.reports.cases.pictures.MOST_VOXELS", 9)
    assert volume(slot) is None  # too large for a browser


def test_regions_that_share_voxels_are_each_drawn(tmp_path):
    """In all 6 slices and 4 rows, the core of a tumour is a column wider than it is.

    ::

        reference   . 2 1 1 2 2 .
        prediction  . 2 1 1 1 2 .
    """
    maps = reference, prediction = np.zeros((2, 6, 6, 7), dtype=np.uint8)
    reference[:, 1:5, 1:6] = [2, 1, 1, 2, 2]
    prediction[:, 1:5, 1:6] = [2, 1, 1, 1, 2]

    found = found_of(tmp_path, maps, challenge="brats23-gli")
    (picture, *_), data = plane_pictures(found), volume(found)

    assert [organ.voxels for organ in found.organs] == [
        *((120, 120, 0, 0), (48, 72, 0, 24), (0, 0, 0, 0)),
    ]
    assert picture.summary == "tc 0 voxels missed, 4 added"
    assert re.findall(OUTLINES, picture.drawing) == [
        *(("M4 1h1v4h-1z", "wrong added"), ("M1 1h5v4h-5z", "pred")),
        *(("M2 1h3v4h-3z", "pred"), ("M1 1h5v4h-5z", "ref o0")),
        ("M2 1h2v4h-2z", "ref o1"),
    ]
    voxels = np.frombuffer(zlib.decompress(base64.b64decode(data["voxels"])), np.uint8)
    both = voxels.reshape(data["shape"])
    for number, organ in enumerate(found.organs):
        parts = [part for part, organs in enumerate(data["parts"]) if number in organs]
        for codes, labels in ((both & 15, reference), (both >> 4, prediction)):
            is_organ = np.isin(labels, organ.labels)
            assert np.isin(codes, parts).sum() == is_organ.sum()


@pytest.mark.parametrize("axes", ["RAS", "ILP", "PSR", "SAL"])
def test_a_page_is_the_same_however_the_file_lies(tmp_path, slot, axes):
    """But for the order of surfels."""
    maps, header = reoriented(slot_and_stray(), axes)

    found = found_of(tmp_path, maps, **header)

    assert told(found) == told(slot)


def told(found):
    pictures = [(own.title, paths_of(own)) for own in plane_pictures(found)]
    surfaces = found.organs[0].surfaces
    corners = [
        side.surfels.corners.tolist()
        for side in (surfaces.reference, surfaces.prediction)
    ]
    return pictures, organ_table(found), [*map(sorted, corners)]


# --- What is stated ---------------------------------------------------------------


@pytest.mark.parametrize("decimals", [None, 3])
def test_numbers_are_those_of_metrics_json_and_by_hand(tmp_path, decimals):
    """144 and 128 voxels of 2 mm3, 126 of them shared; other organs are nowhere."""
    made = evaluated(tmp_path, {"case": slot_and_stray()}, decimals=decimals, **SLOT)
    scores = read_metrics(made.metrics.parent)["case"]

    page = made.drawn()["case"]

    wrong, organs, *_ = page.sections
    table = organs.parts[0]
    rows = rows_by_name(table)
    assert "a voxel has 2 mm3" in table.caption
    for name, end in {
        **{o: f"_{o}" for o in ORGANS.values()},
        "mean of organs": "",
    }.items():
        for metric in ("dsc", "nsd"):
            told = float(rows[name][metric.upper()].exact)
            assert told == scores[f"{metric}{end}"]["0"]
    liver = {head: float(cell.exact or 0) for head, cell in rows["liver"].items()}
    volumes = [
        liver[f"{n} (ml)"] for n in ("reference", "prediction", "missed", "added")
    ]
    assert volumes == pytest.approx([0.288, 0.256, 0.036, 0.004])
    assert rows["liver"]["missed (ml)"].text == "0.036"
    assert [table.rows[n][0].text for n in table.quiet] == [
        "kidney",
        "spleen",
        "pancreas",
    ]
    mean = scores["dsc"]["0"]
    assert words_of(page)[1] == (
        f"Mean of 4 organs: DSC {mean:.3f}, NSD {scores['nsd']['0']:.3f}. In neither"
        " label map, and so DSC 1.000, NSD 1.000 in the mean: kidney, spleen, pancreas."
    )
    assert wrong.parts[0].items == [
        "2 voxels of liver, 12 mm from any of the reference"
    ]


def missed(shape):
    """A map full of liver, and a prediction that has a voxel of spleen in it."""
    reference = np.ones(shape, dtype=np.uint8)
    prediction = reference.copy()
    prediction.flat[0] = 3
    return reference, prediction


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        *((missed(s), "spleen: 1 voxel") for s in ((1, 9, 9), (30, 4, 4), (5, 1, 9))),
        (np.zeros((2, 6, 8, 9), dtype=np.uint8), "Neither label map has any organ"),
        ([organ_boxes(), np.zeros_like(organ_boxes())], "liver: all 294 voxels missed"),
    ],
    ids=["a slice", "a rod", "a row", "nothing at all", "empty"],
)
def test_a_page_stands_odd_maps(tmp_path, maps, words):
    """The second case has what the evaluation needs: not all predictions are empty."""
    made = evaluated(tmp_path, {"case": maps, "other": [organ_boxes()] * 2})

    page = made.drawn()["case"]

    assert any(text.startswith(words) for text in words_of(page))
    sections = ["wrong", "organs", "surfaces"]
    assert [s.id for s in page.sections] == (sections if maps[0].any() else ["organs"])


def test_what_is_wrong_beyond_eight_lines_stands_below(tmp_path):
    """13 organs, of which liver alone is predicted: 12 lines, 4 of them below."""
    labels = np.zeros((6, 8, 60), dtype=np.uint8)
    for number in range(13):
        labels[2:4, 2:5, 2 + 4 * number : 5 + 4 * number] = number + 1
    maps = (labels, np.where(labels == 1, labels, 0))
    made = evaluated(tmp_path, {"case": maps}, challenge="flare22")

    wrong, organs, *_ = made.drawn()["case"].sections

    assert wrong.parts[0].items[8:] == ["and 4 more, below the organs"]
    assert organs.parts[-2].text == "More that is wrong"
    assert len(organs.parts[-1].items) == 4


def test_pages_call_an_own_challenge_by_its_name_and_by_its_key_in_older_files(
    tmp_path,
):
    own = tmp_path / "hep.toml"
    own.write_text(challenge_text("flare21").replace('"FLARE 2021"', '"HEPATIC-26"'))
    made = evaluated(tmp_path, {"a": [organ_boxes()] * 2}, challenge=own)

    def kickers():
        source = made.metrics
        yield made.drawn()["a"].kicker
        yield organiser_page(read_evaluation(source)).kicker
        comparison = read_comparison([source, source], is_organiser=False)
        yield comparison_page(comparison).kicker

    assert {*kickers()} == {"HEPATIC-26"}
    content = json.loads(made.metrics.read_text())
    assert content["evaluation"].pop("challenge_name") == "HEPATIC-26"
    write_json(made.metrics, content)
    assert {*kickers()} == {"hep"}


def test_a_case_that_failed_has_words_instead_of_pictures(tmp_path):
    boxes = organ_boxes()
    cases = {"a": (boxes, organ_boxes(shift=1)), "b": (boxes, None)}

    pages = evaluated(tmp_path, cases, on_bad_case="worst").drawn()

    assert [(name, page.title) for name, page in pages.items()] == [
        *(("b", "Case b: results"), ("a", "Case a: results")),
        ("index", "What is wrong in the hardest cases: results"),
    ]
    assert words_of(pages["b"])[1].startswith("Not scored: ")
    assert pages["b"].sections == []


def test_the_hardest_cases_are_drawn_and_linked(tmp_path):
    boxes = organ_boxes()
    cases = {f"c{shift}": (boxes, organ_boxes(shift=shift)) for shift in range(4)}
    made = evaluated(tmp_path, cases)
    said = []

    folder = made.write(worst=2, on_drawn=lambda *about: said.append(about))

    first = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert said == [(1, 2, "c3"), (2, 2, "c2")]
    assert {*first} == {"c3.html", "c2.html", "index.html"}
    assert b"2 of 4 cases, those with the lowest DSC." in first["index.html"]
    assert b'href="c2.html" rel="next"' in first["c3.html"]
    index = (made.pages / "index.html").read_text(encoding="utf-8")
    assert '<a href="cases/c3.html">c3</a>' in index
    assert "cases/c1.html" not in index
    again = {file.name: file.read_bytes() for file in made.write(worst=2).iterdir()}
    assert first == again
    assert len([*made.write(worst=0).iterdir()]) == 5  # all


TWO_ORGANS = """[
  {{ label = 1, name = "tumour", lesions = "brats23-met", tolerance_mm = 1 }},
  {{ label = 2, name = "core"{0} }},
]"""
BANDS = "within the tolerance of the organ", "beyond it, up to 5 mm"
NO_BANDS = "in both label maps", "up to 5 mm"
SOME_BANDS = f"{BANDS[0]}, which is 0 where none is set", BANDS[1]
HD95 = 'name = "Own"\nmetrics = ["hd95"]\norgans = [{ label = 3, name = "lesion" }]'


@pytest.mark.parametrize(
    ("challenge", "end", "worst"),
    [
        ("flare21", "lowest DSC", "shifted"),
        ("brats23-gli", "lowest lesion-wise DSC (BraTS 2023 GLI)", "missed"),
        ("own.toml", "highest HD95", "missed"),
    ],
)
def test_cases_are_the_hardest_by_what_is_ranked(
    tmp_path, monkeypatch, challenge, end, worst
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text(HD95)
    reference, missed, shifted = missed_and_shifted()
    cases = {"missed": (reference, missed), "shifted": (reference, shifted)}
    made = evaluated(tmp_path, cases, challenge=challenge)

    folder = made.write(worst=1)

    assert {file.stem for file in folder.iterdir()} == {worst, "index"}
    words = f"1 of 2 cases, those with the {end}."
    assert words in (folder / "index.html").read_text()
    assert f"The 2 cases with the {end}" in (made.pages / "index.html").read_text()


@pytest.mark.parametrize(
    ("metrics", "core", "key", "seen", "farthest"),
    [
        (["nsd"], "tolerance_mm = 1", BANDS, "beyond the tolerance", "within"),
        (["dsc"], "", NO_BANDS, "in one map alone", "0.0"),
        (
            ["dsc", "lesion_dsc"],
            "tolerance_mm = 1",
            NO_BANDS,
            "in one map alone",
            "0.0",
        ),
        (["dsc", "lesion_nsd"], "", SOME_BANDS, "beyond the tolerance", "0.0"),
        (["lesion_dsc"], "", NO_BANDS, "in one map alone", "0.0"),  # no score of core
    ],
)
def test_a_page_tells_of_a_tolerance_where_there_is_one(
    tmp_path, metrics, core, key, seen, farthest
):
    """The last challenge has one for its lesions alone."""
    organs = TWO_ORGANS.format(core and f", {core}")
    text = f'name = "Own"\nmetrics = {metrics}\norgans = {organs}'
    (tmp_path / "own.toml").write_text(text)
    maps = [np.where(organ_boxes() < 3, organ_boxes(), 0)] * 2
    made = evaluated(tmp_path, {"a": maps}, challenge=tmp_path / "own.toml")

    folder = made.write()

    html = (folder / "a.html").read_text()
    assert re.findall('swatch far[01]"></span>(.*)</li>', html) == [*key]
    assert f"0% of what is seen is {seen}" in html
    (rows,) = [p for p in made.drawn()["a"].sections if p.id == "organs"]
    rows = rows_by_name(rows.parts[0])
    assert rows["core"]["farthest (mm)"].text == farthest
    assert ("tolerance (mm)" in rows["core"]) == (seen == "beyond the tolerance")
