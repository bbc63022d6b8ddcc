"""Files of results that are no files: read as broken ones, and never waited for."""

import os
from pathlib import Path

import pytest

import flare
from flare.results.errors import GroupsFileError, RankingError
from flare.results.groups_csv import read_groups
from tests.builders import error_of
from tests.builders.results import write_team

MAKERS = {
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "loop": lambda file: file.symlink_to(file.name),
}
ODD = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@pytest.fixture
def results(tmp_path):
    for team, dsc in (("a", 0.9), ("b", 0.8)):
        write_team(tmp_path / team, {"1": dsc}, [("1", "ok", 9, 1000)])
    return tmp_path


@ODD
@pytest.mark.parametrize("name", ["a/metrics.json", "a/efficiency.csv", "ledger.csv"])
def test_rank_refuses_an_odd_file_of_results(results, make, name):
    file = results / name
    file.unlink(missing_ok=True)
    make(file)

    error = error_of(RankingError, flare.rank, results, bootstrap=0)

    assert (error.file, error.code) == (str(file), "G06")


@ODD
def test_what_organisers_give_is_refused(results, make, tmp_path):
    file = tmp_path / "given"
    make(file)

    with pytest.raises(RankingError):
        flare.rank(results, decisions=file, bootstrap=0)
    with pytest.raises(GroupsFileError):
        read_groups(file, ["1"])
    with pytest.raises(RankingError):
        flare.rank(file, bootstrap=0)
