"""What was refused is on record until a team sends something else."""

import os

import pytest

from flare.common.errors import OutputError
from flare.results.archives_csv import Refusal, read_refused, replace_rows
from flare.results.errors import RankingError

A = Refusal(team="a", archive="a.tar.gz", problem="=no image", archive_sha256="1")
B = Refusal(team="b", archive="b.tar.gz", problem="too large", archive_sha256="2")


def test_what_was_refused_comes_back(tmp_path):
    replace_rows(tmp_path, Refusal, [B, A], {"a", "b"})

    assert read_refused(tmp_path) == (A, B)
    assert (tmp_path / "refused.csv").read_text() == (
        "team,archive,archive_sha256,problem\n"
        "a,a.tar.gz,1,'=no image\nb,b.tar.gz,2,too large\n"
    )


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["ours", "of Excel"])
def test_teams_that_were_not_looked_at_stay(tmp_path, mark):
    """Also after a spreadsheet has saved the file."""
    replace_rows(tmp_path, Refusal, [A, B], {"a", "b"})
    file = tmp_path / "refused.csv"
    file.write_bytes(mark + file.read_bytes())

    replace_rows(tmp_path, Refusal, [], {"b"})

    assert read_refused(tmp_path) == (A,)


@pytest.mark.parametrize("row", ["x,x.zip,,by mail,more", "x,x.zip"])
def test_a_row_of_another_width_takes_no_other_with_it(tmp_path, row):
    replace_rows(tmp_path, Refusal, [A, B], {"a", "b"})
    file = tmp_path / "refused.csv"
    file.write_text(f"{file.read_text()}{row}\n")

    replace_rows(tmp_path, Refusal, [], {"b"})

    assert read_refused(tmp_path) == (A,)


def test_what_cannot_be_read_is_not_written_anew(tmp_path):
    """Nor is a pipe waited for."""
    os.mkfifo(tmp_path / "refused.csv")

    with pytest.raises(OutputError):
        replace_rows(tmp_path, Refusal, [A], {"a"})


def test_without_a_refusal_there_is_no_file(tmp_path):
    replace_rows(tmp_path, Refusal, [], {"a"})

    assert list(tmp_path.iterdir()) == []
    assert read_refused(tmp_path) == ()


def test_organisers_may_add_a_row(tmp_path):
    replace_rows(tmp_path, Refusal, [A], {"a"})
    with (tmp_path / "refused.csv").open("a") as file:
        file.write(" x ,,,\n")

    assert read_refused(tmp_path)[1:] == (
        Refusal(team="x", archive="what it has sent", problem="no reason is given"),
    )
    (tmp_path / "refused.csv").write_text("team,file\nx,x.zip\n")
    with pytest.raises(RankingError, match="it has no column archive, problem"):
        read_refused(tmp_path)
