"""``flare explain``: what the code at the end of a message means."""

import inspect
import re

import pytest

from flare.cli.commands.explain import code, error_classes, explanations
from flare.cli.main import commands
from flare.common.text import listing
from tests.builders import run_flare

CODES = sorted(kind.code for kind in error_classes())


def test_a_code_is_explained_however_it_is_written():
    run = run_flare("explain", "[f07]")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == f"F07: {explanations()['F07']}\n"
    assert len({code(word) for word in ("F07", "f07", "[F07]")}) == 1


def test_without_a_code_all_are_listed():
    """By the program alone, which has to know the errors of every room."""
    run = run_flare("explain")

    assert (run.returncode, run.stderr) == (0, "")
    assert [line.split("  ")[0] for line in run.stdout.splitlines()] == CODES


def test_a_code_that_is_none_is_a_line_with_those_that_are():
    run = run_flare("explain", "Q99")

    assert (run.returncode, run.stdout) == (2, "")
    assert f"there is no code Q99, expected {listing(CODES)};" in run.stderr


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("F007", "no code F007 (did you mean F07?)"),
        ("F5", "no code F5 (did you mean F05?)"),
        ("brats23-glo", "metric or definition brats23-glo (did you mean brats23-gli?)"),
        ("lesion-wise", "expected dsc, nsd, hd95, assd, volume_difference, lesion_dsc"),
    ],
)
def test_a_word_that_is_none_is_told_what_was_meant(word, end):
    with pytest.raises(ValueError, match=re.escape(end)):
        code(word)


GLI, MEAN, HIT = "metrics.py (GLI)", "an HD95 of 374 mm", "that is found is one hit"
SMALL = "those of the reference of at most 2 mm3"


@pytest.mark.parametrize(
    ("word", "present", "absent"),
    [
        ("brats23-gli", ["BraTS 2023 GLI", MEAN, HIT, GLI], []),
        ("lesion_dsc", ["the mean DSC of lesions.", MEAN, GLI], [HIT, "isles24"]),
        ("lesion_f1", [HIT, GLI], [MEAN]),
        ("missed_volume", [GLI, SMALL], [MEAN, HIT]),
    ],
)
def test_metrics_of_lesions_have_the_clauses_that_concern_them(word, present, absent):
    text = code(word)

    assert [part for part in (*present, *absent) if part in text] == present


@pytest.mark.parametrize("kind", list(error_classes()), ids=lambda kind: kind.code)
def test_a_code_has_a_title_and_says_what_helps_in_lines_that_fit(kind):
    title, blank, *body = inspect.getdoc(kind).splitlines()
    text = code(kind.code)

    assert re.fullmatch(r"\S.*[^.]\.", title)
    assert blank == ""
    assert re.search(r"\w", "".join(body))
    assert text.startswith(f"{kind.code}: {title}\n\n")
    assert max(map(len, text.splitlines())) <= 88


OF_ORGANISERS = (
    *("docs/organisers", "docs/reference", "docs/developers"),
    *("build.sh", "export.sh", "rehearse.sh", "phase-settings", "ground-truth"),
    *("metrics.json", "efficiency.csv", "challenge file"),
    *(f"flare.sh {name}" for name in commands()["For organisers"]),
)
"""Files and commands that a participant has no use for."""


@pytest.mark.parametrize("name", [name for name in CODES if name[0] == "F"])
def test_participants_are_told_of_nothing_that_is_the_organisers(name):
    text = explanations()[name]

    assert [name for name in OF_ORGANISERS if name in text] == []
