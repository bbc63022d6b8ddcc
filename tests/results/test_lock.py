"""Folders that one process has alone."""

import fcntl
import os
import subprocess
import sys

import pytest

from flare.common.errors import OutputError
from flare.common.text import safe
from flare.results import lock
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(lock, "WAIT_S", 0.3)


def test_a_folder_is_made_locked_and_left_empty(tmp_path):
    folder = tmp_path / "results" / "team"

    with FolderLock(folder):
        assert list(folder.iterdir()) == []
        with pytest.raises(MeasurementError) as caught:
            FolderLock(folder)
    assert str(caught.value) == (
        f"{safe(folder)}: it is being measured by another process. Wait for it, or"
        " end it. [H07]"
    )

    FolderLock(folder).close()


def test_a_process_that_was_given_it_keeps_it(tmp_path):
    first = FolderLock(tmp_path)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, pass_fds=(first.fileno(),)
    )
    first.close()

    with pytest.raises(MeasurementError):
        FolderLock(tmp_path)

    process.communicate()
    FolderLock(tmp_path).close()


def test_a_folder_that_was_moved_is_another_one(tmp_path, monkeypatch):
    """Whoever has waited for it locks what has its name now."""
    folder = tmp_path / "team"
    real, calls = fcntl.flock, []

    def move_once(descriptor, operation):
        if not calls:
            folder.rename(tmp_path / "old")
        calls.append(descriptor)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", move_once)
    with FolderLock(folder) as found:
        assert os.path.samestat(os.fstat(found.fileno()), folder.stat())
    assert len(calls) == 2


def test_what_is_no_folder(tmp_path):
    (tmp_path / "team").write_text("")

    with pytest.raises(OutputError) as caught:
        FolderLock(tmp_path / "team")
    assert "team: it cannot be written to (file exists)." in str(caught.value)
