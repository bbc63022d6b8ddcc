"""What a container may use, read from control groups that the tests write."""

import pytest

from flare.common.machine import available_bytes, available_cpus, default_workers


@pytest.fixture
def write_group(tmp_path):
    """Write files of a control group; the folder is handed back."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"cpu.max": "100000 100000\n"}, id="version 2"),
        pytest.param({"cpu.max": "50000 100000\n"}, id="half a CPU"),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            id="version 1",
        ),
    ],
)
def test_a_quota_of_one_cpu(write_group, files):
    assert available_cpus(write_group(files)) == 1


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="no control group"),
        pytest.param({"cpu.max": "max 100000\n"}, id="version 2"),
        pytest.param(
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            id="version 1",
        ),
        pytest.param({"cpu.max": "12800000 100000\n"}, id="more than there are"),
    ],
)
def test_without_a_quota_all_cpus_of_this_process_count(
    write_group, files, monkeypatch
):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 3, 7}, raising=False)

    assert available_cpus(write_group(files)) == 3


@pytest.mark.parametrize(
    "files",
    [{"memory.max": "536870912\n"}, {"memory/memory.limit_in_bytes": "536870912\n"}],
    ids=["version 2", "version 1"],
)
def test_a_memory_limit(write_group, files):
    assert available_bytes(write_group(files)) == 2**29


def test_a_limit_of_the_process(write_group, monkeypatch):
    """What the platform sets: RLIMIT_DATA."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (2**28, 2**30))

    assert available_bytes(write_group({"memory.max": "536870912\n"})) == 2**28


@pytest.mark.parametrize(
    "files",
    [{}, {"memory.max": "max\n"}, {"memory/memory.limit_in_bytes": f"{2**63}\n"}],
    ids=["no control group", "version 2", "version 1"],
)
def test_without_a_limit_the_computers_memory_counts(write_group, files):
    assert 2**28 < available_bytes(write_group(files)) < 2**50


@pytest.mark.parametrize(
    ("cpus", "mebibytes", "voxels", "workers"),
    [
        pytest.param(8, 10_000, 2**20, 8, id="memory for all"),
        pytest.param(8, 1_000, 50 * 2**20, 3, id="300 MiB each"),
        pytest.param(8, 100, 50 * 2**20, 1, id="never less than one"),
    ],
)
def test_workers_fit_cpus_and_memory(monkeypatch, cpus, mebibytes, voxels, workers):
    monkeypatch.setattr("flare.common.machine.available_cpus", lambda: cpus)
    monkeypatch.setattr(
        "flare.common.machine.available_bytes", lambda: mebibytes * 2**20
    )

    assert default_workers(voxels) == workers
