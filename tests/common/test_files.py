"""Files are whole, or as they were before."""

from __future__ import annotations

import csv
import io
import os
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flare.common.errors import OutputError
from flare.common.files import csv_text, file_names, write_whole
from flare.common.text import cell_text, csv_cell, printable
from tests.builders.pages import HOSTILE


def test_what_was_there_stays_if_it_cannot_be_replaced(tmp_path):
    """Here by a folder in the place of the file."""
    (tmp_path / "b.txt").mkdir()
    (tmp_path / "b.txt" / "inside").write_text("old")

    with pytest.raises(OutputError, match=r"b\.txt: it cannot be written \("):
        write_whole(tmp_path / "b.txt", "new")

    assert (tmp_path / "b.txt" / "inside").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_nothing_is_written_through_a_link_or_into_a_pipe(tmp_path):
    """Whoever may write in a folder could lay one under the name that comes first."""
    (tmp_path / "victim").write_text("of somebody else")
    (tmp_path / ".a.json.part").symlink_to(tmp_path / "victim")
    os.mkfifo(tmp_path / ".b.json.part")

    for name in ("a.json", "b.json"):
        write_whole(tmp_path / name, "own")
        assert (tmp_path / name).read_text() == "own"

    assert (tmp_path / "victim").read_text() == "of somebody else"


@pytest.mark.parametrize(
    "sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"]
)
def test_a_text_is_no_formula(sign):
    """Wherever it stands; what begins with an apostrophe gets one, too."""
    text = csv_text([sign], [[f"{sign}1+1", 2], ["x", f"'{sign}1+1"]])

    assert text == f"'{sign}\n'{sign}1+1,2\nx,''{sign}1+1\n"


@pytest.mark.parametrize(
    ("row", "line"),
    [
        # Formulas may begin behind a tab or a line break, and names may be no UTF-8.
        (["\t=1", "\r=1", "\n=1", "a\0", "\udcff"], r"\t=1,\r=1,\n=1,a\x00,\udcff"),
        # In full precision, below 0 as well; what is missing is empty.
        ([-1, -0.1, 0.1 + 0.2, None, "", 1e-7], "-1,-0.1,0.30000000000000004,,,1e-07"),
    ],
    ids=["texts are one line", "numbers stay numbers"],
)
def test_a_row_is_one_line_that_can_be_written(row, line):
    assert csv_text(["x"], [row]) == f"x\n{line}\n"


@given(st.lists(st.text(), min_size=2, max_size=4))
@example(["=1+1", "'=1+1", "''=1+1", "'"])
def test_a_reader_gets_the_texts_back(texts):
    """As they can be printed."""
    table = csv.reader(io.StringIO(csv_text(texts, [texts]), newline=""))

    expected = [printable(text) for text in texts]
    assert [[cell_text(cell) for cell in row] for row in table] == [expected] * 2


@given(st.text())
def test_what_somebody_else_has_written_stays(text):
    """Unless it is marked as `csv_cell` marks it."""
    assert cell_text(text) == text or csv_cell(cell_text(text)) == printable(text)


def test_file_names_are_such_as_every_system_can_hold():
    """Those that differ in letters that some systems take for equal are numbered."""
    names = file_names(["A", "a", "index", "CON", "a/2", "a.2", *HOSTILE], ["index"])

    assert [*names.values()][:6] == ["A", "a-2", "index-2", "CON", "a_2", "a_2-2"]
    assert len({name.lower() for name in names.values()}) == len(names)
    for name in names.values():
        assert re.fullmatch(r"[\w-]{1,63}", name)
        assert len(name.encode()) < 250
