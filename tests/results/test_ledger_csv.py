"""Each team sends one archive; another one needs a reason."""

from dataclasses import replace

import pytest

from flare.results.archives_csv import Entry, read_ledger, register
from flare.results.errors import MeasurementError

FIRST = Entry(team="a", archive_sha256="1" * 64, paper="", date="2026-01-01", reason="")


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
        (f"{','.join(Entry.__dataclass_fields__)},x\n,,,,,,\n", "line 2: there are ot"),
        ("\xff", "it cannot be read"),
    ],
)
def test_a_ledger_that_is_none(tmp_path, text, problem):
    file = tmp_path / "ledger.csv"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(MeasurementError, match=problem):
        register(file, FIRST)
