"""What teams have sent: one archive each, what was refused, and who replaces it."""

import os
from dataclasses import replace

import pytest

from flare.common.errors import OutputError
from flare.results.archives_csv import (
    LedgerEntry,
    Refusal,
    read_ledger,
    read_refused,
    register,
    replace_rows,
)
from flare.results.errors import MeasurementError, RankingError

FIRST = LedgerEntry(
    team="a", archive_sha256="1" * 64, paper="", date="2026-01-01", reason=""
)


def test_the_first_archive_is_written_down_and_the_same_is_no_second_one(tmp_path):
    file = tmp_path / "results" / "ledger.csv"
    other = replace(FIRST, team="b", paper="paper 7")
    register(file, FIRST)
    register(file, other)

    assert register(file, replace(FIRST, date="2026-02-02")) == FIRST

    assert read_ledger(file) == (FIRST, other)
    assert f"\nb,{'1' * 64},,paper 7,2026-01-01,\n" in file.read_text()


@pytest.mark.parametrize(
    ("change", "words", "back"),
    [
        ({"archive_sha256": "2" * 64}, r"another archive .* 1+, now 2+\)", "archive"),
        # Also one where there was none, or none where there was one.
        ({"model_sha256": "3" * 64}, r"another model .* none, now 3+\)", "model"),
    ],
    ids=["archive", "model"],
)
def test_another_submission_is_refused_without_a_reason(tmp_path, change, words, back):
    file = tmp_path / "ledger.csv"
    register(file, FIRST)
    other = replace(FIRST, date="2026-02-02", **change)

    with pytest.raises(MeasurementError, match=words):
        register(file, other)
    assert read_ledger(file) == (FIRST,)

    replaced = replace(other, reason="wrong file")
    assert register(file, replaced) == replaced
    assert register(file, other) == replaced
    assert read_ledger(file) == (FIRST, replaced)
    with pytest.raises(MeasurementError, match=f"another {back} on 2026-02-02"):
        register(file, FIRST)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has no column team, archive_sha256, model_sha256, paper, date, rea"),
        # What an earlier version has written.
        ("team,archive_sha256,paper,date,reason\n", "it has no column model_sha256"),
        (
            f"{','.join(LedgerEntry.__dataclass_fields__)},x\na,,,,,,\n",
            "line 2: there are ot",
        ),
        ("\xff", "it is not a text in UTF-8"),
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path, text, problem):
    file = tmp_path / "ledger.csv"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(MeasurementError, match=problem):
        register(file, FIRST)


# --- Refused ----------------------------------------------------------------------

A = Refusal(team="a", archive="a.tar.gz", problem="=no image", archive_sha256="1")
B = Refusal(team="b", archive="b.tar.gz", problem="too large", archive_sha256="2")


def test_what_was_refused_comes_back(tmp_path):
    replace_rows(tmp_path, Refusal, [B, A], {"a", "b"})

    assert read_refused(tmp_path) == (A, B)
    assert (tmp_path / "refused.csv").read_text() == (
        "team,archive,archive_sha256,problem\n"
        "a,a.tar.gz,1,'=no image\nb,b.tar.gz,2,too large\n"
    )


@pytest.mark.parametrize(
    ("mark", "row"),
    [(b"", b""), (b"\xef\xbb\xbf", b""), (b"", b"x,x.zip,,m,more"), (b"", b"x,x.zip")],
    ids=["ours", "of Excel", "a wide row", "a narrow row"],
)
def test_teams_that_were_not_looked_at_stay(tmp_path, mark, row):
    """Also beside a row of another width, or once a spreadsheet has saved the file."""
    replace_rows(tmp_path, Refusal, [A, B], {"a", "b"})
    file = tmp_path / "refused.csv"
    file.write_bytes(mark + file.read_bytes() + row)

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
