"""Versions of libraries, what a container may use, and how processes end."""

import os
import signal
import subprocess
import sys
from importlib import metadata
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from flare.common.environment import (
    available_bytes,
    available_cpus,
    default_workers,
    library_version,
)
from flare.evaluation.plan import LIBRARIES, library_versions
from tests.builders import ROOT, wait_until

ALL = 3
"""CPUs of this process, in these tests."""


@pytest.mark.parametrize("name", [*LIBRARIES, "click"])
def test_a_version_is_that_of_importlib(name):
    assert library_version(name) == metadata.version(name)


def test_what_comes_first_on_the_path_counts(tmp_path, monkeypatch):
    """As it is what would be imported; places that cannot be read are passed by."""
    for place, version in (("first", "7.1"), ("second", "8.2")):
        (tmp_path / place / f"a_tool-{version}.dist-info").mkdir(parents=True)
    (tmp_path / "file.zip").write_bytes(b"")
    places = ("missing", "file.zip", "first", "second")
    monkeypatch.setattr("sys.path", [str(tmp_path / place) for place in places])

    assert library_version("a-tool") == "7.1"
    with pytest.raises(PackageNotFoundError, match="no-such-tool"):
        library_version("no-such-tool")


def test_a_package_without_metadata_has_no_version_among_those_of_a_result(monkeypatch):
    """Nothing of nibabel is loaded where answers alone are scored."""
    assert list(library_versions()) == list(LIBRARIES)
    monkeypatch.setattr("flare.evaluation.plan.LIBRARIES", ("no-such-tool", "numpy"))

    assert library_versions() == {"numpy": metadata.version("numpy")}


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({}, ALL),
        ({"cpu.max": "max 100000\n"}, ALL),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000"}, ALL),
        ({"cpu.max": "12800000 100000\n"}, ALL),
    ],
)
def test_cpus_are_those_of_the_control_group_or_all(groups, monkeypatch, files, cpus):
    """Of either version; without a quota, all that this process may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3, 7}, raising=False)

    assert available_cpus(groups(files)) == cpus


@pytest.mark.parametrize(
    ("files", "least", "most"),
    [
        ({"memory.max": "536870912\n"}, 2**29, 2**29),
        ({"memory/memory.limit_in_bytes": "536870912\n"}, 2**29, 2**29),
        ({}, 2**28, 2**50),
        ({"memory.max": "max\n"}, 2**28, 2**50),
        ({"memory/memory.limit_in_bytes": f"{2**63}\n"}, 2**28, 2**50),
    ],
)
def test_memory_is_that_of_the_control_group_or_all(groups, files, least, most):
    assert least <= available_bytes(groups(files)) <= most


def test_the_limit_of_a_process_bounds_the_memory_that_is_available(
    groups, monkeypatch
):
    """What the platform sets: RLIMIT_DATA."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (2**28, 2**30))

    assert available_bytes(groups({"memory.max": "536870912\n"})) == 2**28


@pytest.fixture
def groups(tmp_path):
    def write(files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("mebibytes", "case_mebibytes", "workers"),
    [(10_000, 1, 8), (1_000, 200, 3), (999, 150, 3), (1_000, 150, 4), (100, 50, 1)],
)
def test_workers_fit_cpus_and_memory(monkeypatch, mebibytes, case_mebibytes, workers):
    """A worker takes 100 MiB beside its case."""
    monkeypatch.setattr("flare.common.environment.available_cpus", lambda: 8)
    monkeypatch.setattr(
        "flare.common.environment.available_bytes", lambda: mebibytes * 2**20
    )

    assert default_workers(case_mebibytes * 2**20) == workers


PARENT = """
import functools, os, subprocess
from flare.common.environment import end_with

end = functools.partial(end_with, os.getpid())
child = subprocess.Popen(["sleep", "600"], preexec_fn=end)
print(child.pid, flush=True)
child.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can do that")
def test_a_child_ends_with_a_parent_that_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT
    ) as parent:
        child = int(parent.stdout.readline())
        os.kill(child, 0)

        parent.send_signal(signal.SIGKILL)

    def has_ended():
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2]
        except (FileNotFoundError, ProcessLookupError):
            return True
        return state.split()[0] == "Z"

    wait_until(has_ended)
