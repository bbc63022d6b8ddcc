"""A rehearsal with an engine that says what it is told, in the place of a real one."""

import json

import pytest

from flare.common.errors import EngineError
from flare.evaluation.errors import UploadError
from flare.platforms.grandchallenge.phase import read_phase
from flare.platforms.grandchallenge.rehearse import Options, image_settings, rehearse
from tests.builders import ROOT

PREDICTIONS = ROOT / "examples" / "predictions"
VALIDATION = read_phase(ROOT / "phase-settings.json", "validation")
USAGE = {"status": 0, "seconds": 2.5, "process_bytes": 99, "is_late": False}


@pytest.fixture
def engine(make_engine):
    """An engine with one image, whose container writes what it is told."""

    def make(*, usage=None, files=(), status=0, stderr="", **changes):
        settings = {"Entrypoint": ["python"], "Cmd": ["-m", "flare"], "User": "flare"}
        settings |= {"WorkingDir": "/opt/app", "Env": []} | changes
        architecture = settings.pop("Architecture", "amd64")
        image = [{"Architecture": architecture, "Config": settings}]
        return make_engine(
            f"if words[:2] == ['image', 'inspect']: print({json.dumps(image)!r})",
            "if words[0] == 'run':",
            "    volumes = [w.rsplit(':', 1) for w in words if w.count(':') == 1]",
            "    folders = {place: pathlib.Path(path) for path, place in volumes}",
            f"    for name, text in {dict(files)!r}.items():",
            "        (folders['/output'] / name).write_text(text)",
            f"    usage = {usage!r}",
            "    if usage: (folders['/rehearsal/result'] / 'usage.json').write_text(",
            "        json.dumps(usage))",
            f"    sys.stderr.write({stderr!r})",
            f"    sys.exit({status})",
        ).program

    return make


def rehearsed(program, **more):
    """What a rehearsal of the image with an engine comes to."""
    asked = Options(submission=PREDICTIONS, image="mine", engine=program, **more)
    return rehearse(asked, VALIDATION)


def test_a_run_is_what_the_container_has_left(engine, make_engine):
    program = engine(usage=USAGE, files={"metrics.json": "{}", "core": ""})

    run = rehearsed(program)

    assert (run.status, run.seconds, run.process_bytes) == (0, 2.5, 99)
    assert (run.outputs, run.metrics) == (("core", "metrics.json"), b"{}")
    command = make_engine.state()["calls"][-1]
    assert command[:4] == ["run", "--rm", "--platform", "linux/amd64"]
    assert command[-3:-1] == ["mine", "/rehearsal/shim.py"]
    assert json.loads(command[-1]) == {
        "command": ["python", "-m", "flare"],
        "user": "flare",
        "folder": "/opt/app",
        "memory_bytes": 7 << 30,
        "time_limit_s": 3600,
    }


def test_a_container_that_the_kernel_has_killed(engine):
    run = rehearsed(engine(status=137))

    assert (run.status, run.metrics, run.stdout) == (137, None, b"")


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        (
            {"status": 125, "stderr": "a\nno room\n"},
            r"mine: it cannot be run \(no room",
        ),
        ({"User": "root:x"}, "its USER is root, which the platform refuses"),
        ({"User": None}, "its USER is root, which the platform refuses"),
        ({"Architecture": "arm64"}, "mine: it is for arm64, not for amd64"),
    ],
)
def test_what_cannot_be_rehearsed(engine, answers, problem):
    with pytest.raises(EngineError, match=problem):
        rehearsed(engine(**answers))


def test_an_image_that_is_not_there(make_engine):
    program = make_engine("sys.exit(1)").program

    with pytest.raises(
        EngineError, match=r"mine: there is no such image, or .* answer"
    ):
        rehearsed(program)


@pytest.mark.parametrize("content", [None, b"no tarball"])
def test_labels_that_are_no_tarball(engine, tmp_path, content):
    file = tmp_path / "labels.tar.gz"
    if content:
        file.write_bytes(content)

    with pytest.raises(UploadError):
        rehearsed(engine(usage=USAGE), ground_truth=file)


def test_the_settings_of_a_challenge_of_one_s_own(make_engine):
    """FLARE21's are those of the bundled file."""
    image = [{"Architecture": "amd64", "Config": {"User": "u", "Env": None}}]
    lines = "if words[0] == 'image': print({!r})", "if words[0] == 'run': print('[]')"
    assert image_settings(
        "mine", make_engine(lines[0].format(json.dumps(image)), lines[1]).program
    ) == ("", "")
    image[0]["Config"]["Env"] = ["A=b", "FLARE_CHALLENGE=two-organs"]

    program = make_engine(lines[0].format(json.dumps(image)), lines[1]).program

    assert image_settings("mine", program) == ("two-organs", "[]\n")


def test_an_image_that_tells_no_settings(engine):
    program = engine(status=1, Env=["FLARE_CHALLENGE=other"])

    with pytest.raises(EngineError, match="or give --phase-settings"):
        image_settings("mine", program)
