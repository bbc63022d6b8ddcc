"""Reading a GPU through the real nvidia-ml-py, from a library that stands in for NVML.

Nothing here needs a GPU; the library needs a C compiler.
"""

import json
import os
import shutil
import subprocess
from types import SimpleNamespace

import pynvml
import pytest

from flare.measuring.sampling import DeviceError, NvmlSource, open_gpu
from tests.builders import ROOT, error_of, write_file
from tests.builders.lanes import measuring
from tests.builders.teams import PREDICT
from tests.builders.warm import run_warm
from tests.conftest import need_tool

READ = """
import dataclasses, json, sys
from flare.measuring.sampling import DeviceError
from flare.measuring.sampling import open_gpu
try:
    with open_gpu(sys.argv[1]) as gpu:
        found = {
            "device": dataclasses.asdict(gpu.device),
            "sample": dataclasses.asdict(gpu.read()),
            "processes": sorted(gpu.processes()),
            "state": gpu.state(),
            "energy_j": [gpu.energy_j(), gpu.energy_j()],
        }
except DeviceError as error:
    found = str(error)
print(json.dumps(found))
"""


def compiled(request, folder, *options):
    """The folder of the stand-in, which is made there."""
    target = folder / "libnvidia-ml.so.1"
    command = [need_tool(request, "cc"), "-shared", "-fPIC", "-o", target, *options]
    command += [f"-Wl,-soname,{target.name}", ROOT / "tests" / "fakes" / "nvml.c"]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module", params=[(), ("-DOLD",)], ids=["v2", "v1"])
def library(request, tmp_path_factory):
    """The folder of the stand-in, and the version of the call that it has."""
    folder = compiled(request, tmp_path_factory.mktemp("nvml"), *request.param)
    return folder, "v1" if request.param else "v2"


def environment_of(folder, script):
    """Where programs find the stand-in, and what it says."""
    file = write_file(folder / "script", script)
    return os.environ | {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML": str(file)}


def run(folder, program, *arguments, script="10000 300 2000 4711 0 0", **settings):
    """What a program prints that sees the stand-in.

    It is no new process, which alone would look into LD_LIBRARY_PATH; but a library
    of this name that is loaded already is the one that is found.
    """
    load = f"import ctypes; ctypes.CDLL({str(folder / 'libnvidia-ml.so.1')!r})\n"
    environment = environment_of(folder, script) | settings
    found = run_warm(("-c", load + program), list(arguments), env=environment)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_allocated_memory_is_without_what_is_reserved(library):
    """10000 MB, of which 300 are reserved and 2000 allocated."""
    folder, version = library

    found = run(folder, READ, "0")

    assert found["device"] == {
        "uuid": FIRST,
        "name": "Made-up 1",
        "driver": "999.1",
        "version": version,
    }
    # Where what is reserved is not known, it counts.
    expected = [2000, 10000, 7700, 2000, 300]
    if version == "v1":
        expected = [2300, 10000, 7700, 2300, None]
    names = ("memory", "total", "free", "used", "reserved")
    assert [found["sample"][f"gpu_{name}_mb"] for name in names] == expected


def test_processes_clock_and_temperature_as_far_as_the_driver_tells(library):
    folder, version = library

    found = run(folder, READ, "GPU-11111111-2222", script="10000 300 0 4711 0 4")
    idle = run(folder, READ, "0", script="10000 300 0 0 0 1")

    assert not idle["state"][-1]
    if version == "v2":
        assert found["processes"] == [4711]
        assert found["state"] == [1500, 61, True]  # by its power
        assert found["energy_j"] == [90.0, 150.0]
    else:
        assert found["processes"] == []
        assert found["state"] == [None, None, False]
        assert found["energy_j"] == [None, None]  # a driver that does not count


def test_idle_power_is_what_the_counter_has_risen_by_second(library):
    """60 J with each call of the stand-in, and so in this pause."""
    program = READ.replace('"state": gpu.state()', '"w": gpu.idle_power_w()')
    pause = "import flare.measuring.sampling as s; s.IDLE_S = 0.1"
    folder, version = library

    found = run(folder, f"{pause}\n{program}", "0")

    if version == "v1":
        assert found["w"] is None
    else:
        assert 0 < found["w"] <= 600  # in 0.1 s or more


GB = 2**30


def nvml_of(v2, v1=pynvml.NVML_ERROR_NOT_SUPPORTED):
    """NVML for one GPU, whose memory is told in two versions: sizes, or an error."""
    answers, asked = {"v2": v2, "v1": v1}, []

    def memory_info(_, version=None):
        asked.append("v2" if version == pynvml.nvmlMemory_v2 else "v1")
        answer = answers[asked[-1]]
        if isinstance(answer, int):
            raise pynvml.NVMLError(answer)
        names = ("total", "free", "used", "reserved")
        return SimpleNamespace(**dict(zip(names, answer, strict=False)))

    known = {
        "nvmlDeviceGetMemoryInfo": memory_info,
        "nvmlDeviceGetUUID": lambda _: "GPU-1",
        "nvmlDeviceGetName": lambda _: "Made-up 1",
        "nvmlSystemGetDriverVersion": lambda: "516.59",
    }
    return SimpleNamespace(**vars(pynvml) | known, answers=answers, asked=asked)


@pytest.mark.parametrize(
    "error",
    [
        # Below Windows (WSL 2): github.com/XuehaiPan/nvitop/pull/30.
        pynvml.NVML_ERROR_UNKNOWN,
        # A driver with other structures than nvidia-ml-py, and one that asks for root.
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
    ],
)
def test_where_the_second_version_fails_the_first_one_is_taken_for_good(error):
    """8 GB, of which 5 are free: what is reserved counts among the other 3."""
    nvml = nvml_of(error, (8 * GB, 5 * GB, 3 * GB))

    gpu = NvmlSource(nvml, "handle")
    samples = [gpu.read() for _ in range(3)]

    assert gpu.device.version == "v1"
    assert {sample.gpu_memory_mb for sample in samples} == {3 * 1024}
    assert {sample.gpu_reserved_mb for sample in samples} == {None}
    assert nvml.asked[0] == "v2"
    assert {*nvml.asked[1:]} == {"v1"}


def test_an_unknown_error_of_a_real_library(request, tmp_path):
    """Of the second version, with the first one's 300 MB that are reserved."""
    unknown = str(pynvml.NVML_ERROR_UNKNOWN)

    found = run(compiled(request, tmp_path), READ, "0", FAKE_NVML_V2=unknown)

    assert found["device"]["version"] == "v1"
    assert found["sample"]["gpu_memory_mb"] == 2300


def test_pynvml_11_knows_fewer_calls_than_nvidia_ml_py():
    """Its package, which shadows the module, has no second version of these calls."""
    nvml = nvml_of((8 * GB, 8 * GB, 0, 0))
    for kind in ("Compute", "Graphics"):
        setattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v3", lambda _: [])
        delattr(nvml, f"nvmlDeviceGet{kind}RunningProcesses_v2")

    assert NvmlSource(nvml, "handle").processes() == frozenset()


def test_a_gpu_that_shares_the_computer_s_memory():
    """As a GB10 says: github.com/XuehaiPan/nvitop/pull/208."""
    nvml = nvml_of(pynvml.NVML_ERROR_NOT_SUPPORTED)

    assert str(error_of(DeviceError, NvmlSource, nvml, "handle")) == (
        "the GPU has no memory of its own that NVML could tell of (Not Supported). It"
        " shares the computer's memory: measure on another one, or with --gpu none."
        " [H08]"
    )


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        # Every team would have 0 MB, the best there is.
        ((0, 0, 0, 0), "total 0, free 0, used 0, reserved 0 MB"),
        # -1024 MB would be allocated, and -200 MB.
        ((8 * GB, 9 * GB, 0, 0), "total 8192, free 9216, used 0, reserved 0 MB"),
        ((GB, GB, 0, 200 << 20), "total 1024, free 1024, used 0, reserved 200 MB"),
        ((8 * GB, -1, 0, 0), "total 8192, free -0, used 0, reserved 0 MB"),
        ((8 * GB, GB, -GB, 0), "total 8192, free 1024, used -1024, reserved 0 MB"),
        ((8 * GB, GB, 9 * GB, 0), "total 8192, free 1024, used 9216, reserved 0 MB"),
        ((8 * GB, GB, 0, -GB), "total 8192, free 1024, used 0, reserved -1024 MB"),
    ],
)
def test_a_memory_that_cannot_be_is_refused(sizes, told):
    """When the GPU is opened, and at any sample."""
    problem = (
        f"its driver tells of a GPU memory that cannot be: {told}. Try nvidia-smi;"
    )
    nvml = nvml_of((8 * GB, 8 * GB, 0, 0))
    gpu = NvmlSource(nvml, "handle")

    nvml.answers["v2"] = sizes

    for look in (gpu.read, lambda: NvmlSource(nvml_of(sizes), "handle")):
        assert str(error_of(DeviceError, look)).startswith(problem)


def test_a_memory_at_its_bounds_is_accepted():
    """Nothing is left, or nothing is used but what is reserved."""
    full = NvmlSource(nvml_of((8 * GB, 0, 7 * GB, GB)), "handle").read()
    idle = NvmlSource(nvml_of((8 * GB, 7 * GB, 0, GB)), "handle").read()

    assert (full.gpu_memory_mb, idle.gpu_memory_mb) == (7 * 1024, 0)


@pytest.mark.parametrize(
    ("which", "script", "problem"),
    [
        ("0", "10000 300 0 0 1 0", "GPU 0 is divided into several (MIG). Its memory"),
        ("1", "10000 300 0 0 0 0", "there is no GPU 1, but 1, counted from 0."),
        ("GPU-3", "10000 300 0 0 0 0", "GPU GPU-3: Not Found."),
        ("MIG-1", "10000 300 0 0 0 0", "GPU MIG-1 is divided into several (MIG)."),
        ("all", "10000 300 0 0 0 0", "all is no index or UUID of a GPU."),
        ("-1", "10000 300 0 0 0 0", "-1 is no index or UUID of a GPU."),
        ("0", "", "GPU 0: GPU is lost"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_refused_in_one_line(
    library, which, script, problem
):
    found = run(library[0], READ, which, script=script)

    assert found.startswith(problem)
    assert found.endswith("[H08]")


def test_without_a_driver_there_is_one_line():
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a driver")

    with (
        pytest.raises(DeviceError, match="no NVIDIA driver answers") as caught,
        open_gpu("0"),
    ):
        pass
    assert "--gpu none measures without a GPU" in str(caught.value)


# --- Two of them, and an engine by script that takes any --------------------------

side_by_side = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one processor"
)


FIRST, SECOND = "GPU-11111111-2222", "GPU-33333333-4444"


@pytest.fixture
def measure_on(request, bench, tmp_path):
    """Measure the archives of the bench on GPUs; status, stdout and stderr."""
    (bench.engine.state / "gpus").touch()
    env = environment_of(compiled(request, tmp_path), "10000 300 2000 0 0 0")
    env["FAKE_NVML_SECOND"] = "Made-up 1"

    def run(gpus):
        options = ("--gpu", gpus, "--memory", "120m", "--output-size", "8m")
        with measuring(bench.folder, bench.images, *options, env=env) as process:
            stdout, stderr = process.communicate(timeout=240)
        return process.returncode, stdout, stderr

    return run


@pytest.mark.slow
@side_by_side
def test_teams_are_spread_over_two_gpus(bench, measure_on):
    """Each container gets the GPU, and the processors, of one lane."""
    for team in "abc":
        bench.archive(team, f"sleep 0.3\n{PREDICT}\n# {team}")

    status, stdout, stderr = measure_on("0,1")

    assert (status, stderr) == (0, ""), stdout
    lanes = set()
    for team in "abc":
        record = bench.record(team)
        (session,) = record["sessions"]
        lane = session["lane"]
        lanes.add((lane["gpu"], lane["cpus"]))
        assert session["gpu"]["uuid"] == lane["gpu"]
        assert record["settings"]["gpu"] == "Made-up 1"
        assert f"device={lane['gpu']}" in session["command"]
        for row in bench.rows(team).values():
            assert row["status"] == "ok"
            assert float(row["max_gpu_memory_mb"]) == 2000
    assert {gpu for gpu, _ in lanes} == {FIRST, SECOND}
    assert len(lanes) == len({cpus for _, cpus in lanes}) == 2


@pytest.mark.slow
@side_by_side
def test_a_team_goes_on_on_another_gpu_of_the_kind(bench, measure_on):
    """Begun on the first one, which is named last now; on one lane it is refused."""
    bench.archive("a", PREDICT)
    assert measure_on("0,1")[0] == 0
    (bench.results / "a" / "efficiency.csv").unlink()

    assert measure_on(f"{SECOND},0")[0] == 0

    record = bench.record("a")
    assert [each["lane"]["gpu"] for each in record["sessions"]] == [FIRST, SECOND]
    status, _, stderr = measure_on("0")
    assert status == 1
    assert "the team was measured with gpu Made-up 1, now it is GPU-1111" in stderr
