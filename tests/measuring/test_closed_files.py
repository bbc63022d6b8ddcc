"""Files of teams, which other users of the computer cannot read."""

import os
import stat
from contextlib import contextmanager

import pytest

from tests.builders import case_names, organ_boxes, write_cases
from tests.builders.teams import PREDICT


@contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
        assert os.umask(mask) == mask  # it is back
    finally:
        os.umask(before)


def modes(folder):
    paths = [folder, *folder.rglob("*")]
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    return (
        {mode for path, mode in found.items() if path.is_dir()},
        {mode for path, mode in found.items() if path.is_file()},
    )


@pytest.mark.parametrize(
    ("mask", "folders", "files"), [(0o022, 0o750, 0o640), (0o002, 0o770, 0o660)]
)
def test_what_is_measured_and_scored(bench, measure, flare, mask, folders, files):
    """Predictions, logs, traces and metrics.json; the group has what umask leaves."""
    bench.archive("a", PREDICT)
    with umask(mask):
        measure("--ground-truth", bench.labels)
        assert (bench.results / "a" / "metrics.json").exists()
        assert modes(bench.results) == ({folders}, {files})
        (bench.results / "a" / "metrics.json").unlink()

        flare("rescore", bench.results, "--ground-truth", bench.labels)

        assert (bench.results / "a" / "metrics.json").exists()
        assert modes(bench.results) == ({folders}, {files})


def test_what_is_scored_from_folders_is_closed_and_what_the_platform_reads_is_not(
    flare, tmp_path
):
    labels = write_cases(tmp_path / "labels", case_names(2))
    write_cases(tmp_path / "teams" / "a", case_names(2), labels=organ_boxes(shift=1))
    known = ("--ground-truth", labels, "--workers", "1", "--output")

    with umask(0o022):
        flare("score", tmp_path / "teams", *known, tmp_path / "results")
        flare("evaluate", "--input", labels, *known, tmp_path / "output")

    assert (tmp_path / "results" / "a" / "metrics.json").exists()
    assert modes(tmp_path / "results") == ({0o750}, {0o640})
    assert modes(tmp_path / "output")[1] == {0o644}
