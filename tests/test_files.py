"""Files are whole, or as they were before."""

import csv

import pytest

from flare.errors import OutputError
from flare.files import csv_text, write_whole


def test_a_file_is_written_with_its_folders(tmp_path):
    write_whole(tmp_path / "a" / "b.txt", "one\r\ntwo\n")

    assert (tmp_path / "a" / "b.txt").read_bytes() == b"one\r\ntwo\n"
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_what_was_there_stays_if_it_cannot_be_replaced(tmp_path):
    """Here by a folder in the place of the file."""
    (tmp_path / "b.txt").mkdir()
    (tmp_path / "b.txt" / "inside").write_text("old")

    with pytest.raises(OutputError, match=r"b\.txt: it cannot be written \("):
        write_whole(tmp_path / "b.txt", "new")

    assert (tmp_path / "b.txt" / "inside").read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["b.txt"]


def test_a_table_comes_back_as_it_was(tmp_path):
    rows = [["a, b", "1"], ['"quoted"', ""], ["two\nlines", "3"]]
    file = tmp_path / "t.csv"

    write_whole(file, csv_text(["team", "rank"], rows))

    with file.open(newline="") as content:
        assert list(csv.reader(content)) == [["team", "rank"], *rows]
