"""Figures as files: text is text, fonts are there, and equal figures are equal."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from flare.reports.paper.figures import evaluation_plates, write_plates
from flare.reports.render.paper import figure_names, figure_text
from flare.reports.render.style import WIDTHS_MM, drawing_style
from flare.reports.scores import scores_of
from flare.results.metrics_reading import read_evaluation
from tests.builders import ROOT
from tests.builders.pages import HOSTILE, metrics_content, write_json

pytestmark = pytest.mark.tools(package="matplotlib")

SCORES = {"liver": [0.9123456789, 0.0, 0.8765432101], "left_kidney": [1.0, 0.7, 0.5]}
SVG = "{http://www.w3.org/2000/svg}"


def plates_of(tmp_path, content):
    source = write_json(tmp_path / "metrics.json", content)
    return list(evaluation_plates(scores_of(read_evaluation(source))))


def texts(svg):
    return {"".join(own.itertext()).strip() for own in ET.parse(svg).iter(f"{SVG}text")}


PROGRAM = """
import sys
from pathlib import Path
from tests.builders.pages import write_report
source, folder = map(Path, sys.argv[1:])
write_report([source], folder / "index.html", is_organiser=True, figures=folder)
"""


@pytest.mark.slow
def test_figures_have_two_widths_and_formats_and_names_as_text(tmp_path):
    """Fonts in PDF are TrueType; settings of the user change nothing, and stay."""
    import matplotlib

    plates = plates_of(tmp_path, metrics_content(SCORES))[2:3]
    write_plates(plates, tmp_path / "out")
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path"}):
        write_plates(plates, tmp_path / "other")
        assert matplotlib.rcParams["font.size"] == 31

    files = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert {f.name: f.read_bytes() for f in (tmp_path / "other").iterdir()} == files
    assert {*files} == {"captions.txt", "cases_dsc.csv"} | {
        f"cases_dsc_{width}.{form}" for width in WIDTHS_MM for form in ("svg", "pdf")
    }
    for width, millimetres in (("column", 85), ("page", 175)):
        file = tmp_path / "out" / f"cases_dsc_{width}.svg"
        assert {f"case_00{n}" for n in (1, 2, 3)} | {"liver"} <= texts(file)
        assert b"glyph" not in file.read_bytes()
        points = float(ET.parse(file).getroot().get("width").removesuffix("pt"))
        pdf = files[f"cases_dsc_{width}.pdf"]
        (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+)", pdf)
        size = pytest.approx(millimetres * 72 / 25.4, abs=0.01)
        assert (points, float(box)) == (size, size)
        for part, is_there in (
            (b"/FontFile2", True),
            (b"DejaVuSans", True),
            (b"/Type3", False),
            (b"CreationDate", False),
        ):
            assert (part in pdf) == is_there


@pytest.mark.slow
def test_equal_figures_have_equal_bytes_in_any_process(tmp_path):
    source = write_json(tmp_path / "metrics.json", metrics_content(SCORES))
    folders = {seed: tmp_path / seed for seed in ("1", "2")}
    processes = []
    for seed, folder in folders.items():
        folder.mkdir()
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, source, folder],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            )
        )
    assert [process.wait() for process in processes] == [0, 0]
    found = [
        {f.name: f.read_bytes() for f in sorted(folder.iterdir())}
        for folder in folders.values()
    ]

    assert found[0] == found[1]
    assert len(found[0]) == 4 * 5 + 4  # and captions, Methods, a table, and the page


# --- Names ------------------------------------------------------------------------


HOOK = "\u1d81"
"""A letter that DejaVu Sans lacks, and another font of matplotlib has."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fonts", "text", "warned"),
    [
        (["STIXGeneral", "DejaVuSerif"], f"team {HOOK}", 0),
        (["DejaVuSerif"], r"team \u1d81", 1),
    ],
    ids=["installed", "not installed"],
)
def test_names_are_drawn_with_any_font_that_has_them(
    tmp_path, monkeypatch, caplog, fonts, text, warned
):
    """As text in SVG; as an outline in PDF, beside the fonts that are embedded."""
    import matplotlib

    ttf = f"{matplotlib.get_data_path()}/fonts/ttf"
    paths = [f"{ttf}/{name}.ttf" for name in fonts] + [str(ROOT / "README.md")]
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: paths)
    content = metrics_content({"liver": [0.5]})
    content["case"]["gt_fname"] = {"0": f"team {HOOK}.nii.gz"}

    write_plates(plates_of(tmp_path, content)[2:3], tmp_path / "out")

    assert text in texts(tmp_path / "out" / "cases_dsc_page.svg")
    assert [r.getMessage().count(HOOK) for r in caplog.records] == [1] * warned
    pdf = (tmp_path / "out" / "cases_dsc_page.pdf").read_bytes()
    assert set(re.findall(rb"/BaseFont /\w+\+([\w-]+)", pdf)) == {b"DejaVuSans"}


def test_names_that_differ_look_different():
    """Also those that are equal where they are shortened."""
    names = ["a" * 30 + c + "b" * 30 for c in "xyz"]

    found = figure_names(names, 18)

    assert len(set(found)) == 3
    assert found[0] == "aaaaaaa...bbbbbbb"
    assert figure_names(["A (3)", "B", "A (3)"], 34) == ("A (3)", "B", "A (3)")


def test_a_shown_name_has_only_letters_of_the_font():
    from matplotlib.font_manager import FontProperties, findfont, get_font

    known = get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap()

    with drawing_style():
        shown = {char for name in HOSTILE for char in figure_text(name, 34)}
    assert shown <= set(map(chr, known))
