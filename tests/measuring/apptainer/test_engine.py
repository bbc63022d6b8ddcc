"""What Apptainer is asked for, what it cannot do, and what is refused."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from flare.cli.main import main
from flare.common.errors import EngineError
from flare.measuring.apptainer import cleanup
from flare.measuring.apptainer.cleanup import clean_up_folder, guarded_folder
from flare.measuring.apptainer.command import exec_command, exec_environment
from flare.measuring.apptainer.engine import Apptainer, check_limits
from flare.measuring.container_command import Limits
from flare.measuring.contract import FLARE, algorithm
from flare.measuring.weaknesses import find_weaknesses
from flare.results.errors import MeasurementError
from flare.results.lock import FolderLock
from flare.results.results_folder import read_teams
from tests.builders import wait_until
from tests.builders.results import write_team
from tests.builders.teams import PREDICT

FOLDERS = {name: Path(f"/w/{name}") for name in ("inputs", "outputs", "shm", "overlay")}


def command(contract=FLARE, model=None, **limits):
    words = exec_command(
        *("apptainer", "/workspace"),
        **FOLDERS,
        limits=Limits(**limits),
        contract=contract,
        model=model,
    )
    return " ".join(words)


def test_the_whole_command():
    assert command(processes=99) == (
        "prlimit --nproc=99:99 --core=0:0 apptainer --silent exec --containall"
        " --cleanenv --no-home --no-eval --no-mount home,cwd,tmp,hostfs,bind-paths"
        " --no-privs --pwd /workspace --overlay /w/overlay"
        " --mount type=bind,source=/w/inputs,destination=/workspace/inputs,ro"
        " --mount type=bind,source=/w/outputs,destination=/workspace/outputs"
        " --mount type=bind,source=/w/shm,destination=/dev/shm"
    )


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"gpu": "GPU-1"}, "--nv"), ({"cpus": "1-3"}, "taskset --cpu-list 1-3 apptainer")],
)
def test_what_can_be_chosen(limits, words):
    assert f" {words} " in command(**limits)
    assert words.split()[0] not in command()


def test_an_algorithm_has_folders_of_its_own():
    words = command(algorithm("ct", "images/ct", "images/organs"))

    assert "source=/w/inputs,destination=/input,ro " in words
    assert "source=/w/outputs,destination=/output " in words


def test_a_model_cannot_be_written_to():
    words = command(model=Path("/w/model"))

    assert "source=/w/model,destination=/opt/ml/model,ro " in words
    assert "/opt/ml/model" not in command()


def test_the_variables_of_a_container(monkeypatch):
    """The last of two counts, but for the GPU, which is ours to say."""
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("APPTAINER_NV", "1")
    variables = ("A=1", "B=2=3", "A=4", "C", "CUDA_VISIBLE_DEVICES=0")

    found = exec_environment(Path("/w"), variables, Limits(gpu="GPU-1"))

    assert found == {
        "PATH": "/bin",
        "HOME": "/w",
        "TMPDIR": "/w",
        "APPTAINER_CONFIGDIR": "/w/settings",
        "APPTAINER_CACHEDIR": "/w/cache",
        "APPTAINERENV_A": "4",
        "APPTAINERENV_B": "2=3",
        "APPTAINERENV_C": "",
        "APPTAINERENV_CUDA_VISIBLE_DEVICES": "GPU-1",
    }


# --- What is refused --------------------------------------------------------------


def test_what_docker_does_and_apptainer_cannot_is_told(scripted_apptainer):
    told = find_weaknesses(scripted_apptainer.engine.describe())

    assert len(told) == 3
    assert told[0].startswith("Apptainer limits no memory")


def test_root_is_refused(scripted_apptainer, monkeypatch):
    """Without any other wall, root of a container would be root of the computer."""
    monkeypatch.setattr("os.geteuid", lambda: 0)

    with pytest.raises(EngineError) as error:
        scripted_apptainer.engine.describe()

    assert str(error.value) == (
        "--engine apptainer: root of a container would be root here. Run it as another"
        " user; root can use Docker. [H05]"
    )


@pytest.mark.parametrize("name", ["apptainer", "nsenter"])
def test_a_program_that_is_not_there(scripted_apptainer, monkeypatch, name):
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda own: which(own) if own != name else None)

    with pytest.raises(EngineError) as error:
        scripted_apptainer.engine.describe()

    assert str(error.value) == (
        f"--engine apptainer: there is no program {name}. Install it, or load its"
        " module. [H05]"
    )


def test_a_computer_that_has_no_namespaces(scripted_apptainer):
    scripted_apptainer.say("no-box", "unshare: Operation not permitted\n")

    with pytest.raises(EngineError, match="no namespaces can be made for a container"):
        scripted_apptainer.engine.describe()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("#!/bin/sh\necho 5\n", "it does not tell its version"),
        ("#!/nowhere\n", r"it cannot be run \("),
    ],
)
def test_a_program_that_is_no_apptainer(scripted_apptainer, text, problem):
    (scripted_apptainer.folder / "apptainer").write_text(text)

    with pytest.raises(EngineError, match=f"apptainer: {problem}"):
        scripted_apptainer.engine.describe()


def test_several_gpus_are_refused(tmp_path):
    """A container would see them all; what cannot be opened is not ours."""
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    (tmp_path / "nvidia1").mkdir()
    check_limits(Limits(gpu="GPU-1"), tmp_path)
    check_limits(Limits(), tmp_path)
    (tmp_path / "nvidia2").touch()

    with pytest.raises(EngineError) as error:
        check_limits(Limits(gpu="GPU-1"), tmp_path)

    assert str(error.value).startswith(
        "--gpu: 2 GPUs can be used here, and Apptainer shows them all to a container."
    )


def test_a_runtime_is_refused():
    with pytest.raises(EngineError, match="--runtime runsc: Apptainer has no runtimes"):
        check_limits(Limits(runtime="runsc"))


@pytest.mark.parametrize(
    "option", [("--lanes", "2"), ("--cluster", "tcp://10.0.0.1:8786")]
)
def test_several_lanes_are_refused(apptainer_bench, capfd, option):
    bench = apptainer_bench
    file = bench.archive("good", PREDICT)

    status = main(
        [
            *("measure", str(file), "--images", str(bench.images), "--output"),
            *(str(bench.results), "--engine", "apptainer", "--gpu", "none", *option),
        ]
    )

    assert status == 1
    assert capfd.readouterr().err == (
        "--engine apptainer: it runs one container at a time. Leave out --lanes,"
        " --cluster and further GPUs. [H01]\n"
    )


@pytest.mark.parametrize("name", ["a,b", "a:b", 'a"b'])
def test_a_folder_that_apptainer_would_misread(apptainer_bench, name):
    bench = apptainer_bench
    bench.results = bench.folder / name

    failed = bench.measure(bench.archive("good", PREDICT), cases=1)

    text = "Apptainer takes commas, colons and quotes in its path for more"
    assert text in str(failed["good"])
    assert bench.hidden() == []


def test_teams_that_were_measured_by_two_engines_are_noted(tmp_path):
    """Docker is not in the file; a team without a record is in no comparison."""
    own = {"container_engine": "apptainer"}
    for team, engine in (("a", {}), ("b", own), ("c", None)):
        write_team(tmp_path / team, {"c1": 0.9}, [("c1", "ok", 5, 9)])
        if engine is not None:
            record = {"settings": {"timeout_s": 60, **engine}, "sessions": [{}]}
            (tmp_path / team / "measurement.json").write_text(json.dumps(record))

    found = read_teams(tmp_path, ["dsc", "runtime_s"], {})

    text = "Teams were measured with different container_engine: a docker, b apptainer"
    assert text in found.notes


@pytest.mark.parametrize("text", ["A=a\0b", "A=\ud800"])
def test_variables_that_no_program_can_get(apptainer_bench, text):
    bench = apptainer_bench

    failed = bench.measure(bench.archive("odd", PREDICT, Env=[text]), cases=1)

    assert str(failed["odd"]).startswith(
        "odd.tar.gz: its command or its environment has characters that no text has."
    )
    assert bench.hidden() == []


# --- What is left behind ----------------------------------------------------------


def test_a_folder_with_closed_folders_is_removed(tmp_path):
    with FolderLock(tmp_path) as lock, guarded_folder(tmp_path, lock) as work:
        (work / "a" / "b").mkdir(parents=True)
        (work / "a" / "b").chmod(0)
        assert work.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_stays_is_told(tmp_path, monkeypatch):
    made = {"key": "k", "tags": [], "images": [], "work": ".work-k"}
    (tmp_path / ".measuring.json").write_text(json.dumps(made))
    (tmp_path / ".work-k").mkdir()
    monkeypatch.setattr(cleanup, "remove_tree", lambda _: None)

    with pytest.raises(MeasurementError, match=r"\.work-k: it cannot be removed"):
        clean_up_folder(tmp_path)


def test_what_docker_has_left_is_not_forgotten(tmp_path):
    made = {"key": "k", "tags": ["t"], "images": [], "work": ".work-k"}
    (tmp_path / ".measuring.json").write_text(json.dumps(made))

    with pytest.raises(MeasurementError, match="begun with Docker is not removed yet"):
        clean_up_folder(tmp_path)

    assert (tmp_path / ".measuring.json").exists()


def test_the_guard_removes_a_folder_when_it_is_left_alone(tmp_path):
    work = tmp_path / "work"
    (work / "closed").mkdir(parents=True)
    (work / "closed").chmod(0)
    text = cleanup.SCRIPT.read_text()
    guard = subprocess.Popen(
        ["sh", "-c", text, "guard", str(work), "0.1"], stdin=subprocess.PIPE
    )

    guard.stdin.close()

    wait_until(lambda: not work.exists(), 10)
    guard.send_signal(signal.SIGKILL)
    guard.wait()


def test_it_is_always_on_this_computer():
    assert Apptainer().is_here()
    assert Apptainer().folder() is None
