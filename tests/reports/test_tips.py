"""Values that figures tell when they are pointed at."""

import json
import re

import pytest

from flare.reports.render.html import dot_tips
from flare.reports.report import write_report
from tests.builders.measured import write_measured
from tests.builders.pages import HOSTILE, metrics_content, write_json


@pytest.mark.parametrize("name", HOSTILE, ids=len)
def test_no_name_ends_its_script(name):
    """And a browser reads the same name from it."""
    text = dot_tips([name], [[0.5]], 3)

    assert not set("<>&") & set(text)
    (told,) = json.loads(text)["names"]
    assert told.isprintable()
    if name.isprintable() and len(name) <= 80:
        assert told == name


def tips_of(html):
    """What the figures of a page tell."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', html)
    return [json.loads(text) for text in found]


def test_a_missing_value_keeps_its_place(tmp_path):
    """The second of three runs has failed: its case is named, and has no value."""
    cases = ("a", "b", "c")
    team = write_measured(tmp_path / "team", cases, failed={"b": ("failed", "")})

    write_report([team], tmp_path / "page.html", is_organiser=False)

    times, memory, _ = tips_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert times == {"names": ["a", "b", "c"], "rows": ["10.00 - 12.00"]}
    assert memory["rows"] == ["1000 - 1200"]


@pytest.mark.parametrize("is_organiser", [True, False])
def test_tips_have_no_more_digits_than_the_tables(tmp_path, is_organiser):
    content = metrics_content({"liver": [0.123456, 0.98765], "spleen": [0.5, 1.0]})
    source = write_json(tmp_path / "metrics.json", content)

    write_report([source], tmp_path / "page.html", is_organiser=is_organiser)

    dsc, _ = tips_of((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert dsc["rows"][1:] == ["0.123 0.988", "0.500 1.000"]
