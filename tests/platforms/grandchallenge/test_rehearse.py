"""A rehearsal: what the container gets and leaves, and the platform's verdict."""

import json
import shutil
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from flare.cli.main import main
from flare.common.errors import EngineError, InputError
from flare.evaluation.errors import UploadError
from flare.platforms.grandchallenge import shim
from flare.platforms.grandchallenge.phase import Phase, read_phase
from flare.platforms.grandchallenge.phase_settings import PhaseOptions
from flare.platforms.grandchallenge.rehearse import (
    RehearsalOptions,
    Run,
    instance_of,
    rehearse,
)
from flare.platforms.grandchallenge.verdict import Verdict, participant_message
from tests.builders import ROOT, error_of, read_metrics, run_evaluate
from tests.builders.engine import IMAGE, call
from tests.builders.shim import ENDS, LIMIT_S, OUTCOMES

PREDICTIONS = ROOT / "examples" / "predictions"
VALIDATION = read_phase(ROOT / "phase-settings.json", "validation")


# --- The participant's message ----------------------------------------------------


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (b"the reason\n" + b"y" * (2**16 + 1) + b"\n", "the reason"),
        (b"y" * (2**16 + 1), "No errors were reported in the logs."),
        (b"y" * 2**16, "y" * 1024),
    ],
)
def test_a_line_of_64_kib_is_the_longest_message(stderr, message):
    """All else that a program writes is compared with the platform's own outcome."""
    assert participant_message(stderr) == message


# --- The verdict ------------------------------------------------------------------


METRICS = {"aggregates": {"dsc_mean": 0.5, "dsc_std": 0.25, "nsd_mean": 1}}
PHASE = Phase(
    title="Mine",
    score_title="DSC",
    score_jsonpath="aggregates.dsc_mean",
    score_error_jsonpath="aggregates.dsc_std",
    score_decimal_places=2,
    display_all_metrics=False,
)


def run_of(**changes):
    """A run that has gone well, but for what is changed."""
    values = {"status": 0, "stdout": b"log\n", "seconds": 1.0, "process_bytes": 2**20}
    values |= {"outputs": ("metrics.json",), "metrics": json.dumps(METRICS).encode()}
    return Run(**values | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": 1, "stderr": b"a.nii.gz: bad\n"}, "a.nii.gz: bad"),
        ({"metrics": b""}, "The output file 'metrics.json' is not valid json"),
        ({"metrics": b"\xef\xbb\xbf{}"}, "The output file 'metrics.json' is not valid"),
        ({"metrics": b"\xff"}, "An unexpected error occurred"),
        ({"metrics": b'{"a": 1e999}'}, "An unexpected error occurred"),
        ({"metrics": b'{"a": "\\u0000"}'}, "An unexpected error occurred"),
    ],
)
def test_a_failure_has_the_platforms_message(changes, message):
    verdict = Verdict(run=run_of(**changes), phase=PHASE)

    assert verdict.message.startswith(message)
    log, usage, *_, end = str(verdict).splitlines()
    assert (log, usage) == ("log", "It took 1.0 s; the largest process used 1 MiB.")
    assert end.endswith("The participant would read:")


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        ({}, ["Cases: a_seg, b_seg (submitted as a.mha)", "If _seg is no part of the",
              "[names]", 'reference = "{case}_seg"']),
        ({"reference": "{case}_seg"}, ["Cases: a, b (submitted as a.mha)"]),
    ],
)  # fmt: skip
def test_a_rehearsal_says_what_the_cases_are_called(names, lines):
    files = {"0": "a_seg.mha", "1": "b_seg.mha"}
    metrics = METRICS | {
        "evaluation": {"challenge": "flare21", "names": names},
        "case": {"gt_fname": files, "alg_fname": {"0": "a.mha", "1": "b.mha"}},
    }
    run = run_of(metrics=json.dumps(metrics).encode())

    said = str(Verdict(run=run, phase=PHASE)).splitlines()[2:-2]

    assert len(said) == len(lines)
    assert all(map(str.startswith, said, lines))


def platform_message(outcome):
    """The platform's rules for a result of its program: base.py, since June 2026."""
    if "error" in outcome:
        return "An unexpected error occurred"
    if outcome["return_code"] == 137:
        return "The container was killed as it exceeded its memory limit"
    if outcome["user_safe_error_message"] or outcome["return_code"]:
        lines = [line.strip() for line in outcome["stderr"].split("\n")]
        last = [*filter(None, lines)] or ["No errors were reported in the logs."]
        return outcome["user_safe_error_message"] or last[-1][:1024]
    if "metrics.json" not in outcome["files"]:
        return "Output file 'metrics.json' was not produced"
    return ""


@pytest.mark.parametrize("name", ENDS)
def test_each_end_of_a_program_has_the_outcome_of_the_platforms_own(
    tmp_path, monkeypatch, name
):
    """All of them are run here, as within the container."""
    monkeypatch.setenv("OUTPUT", str(tmp_path))
    start = partial(subprocess.Popen, [sys.executable, "-c", ENDS[name]])
    outcome = json.loads(OUTCOMES.read_text("utf-8"))["ends"][name]
    is_late = bool(outcome.get("user_safe_error_message"))

    usage, stdout, stderr = shim.run(start, LIMIT_S if is_late else 60)

    file = tmp_path / "metrics.json"
    metrics = file.read_bytes() if file.exists() else None
    run = Run(**usage, stdout=stdout, stderr=stderr, metrics=metrics)
    assert Verdict(run=run, phase=PHASE).message == platform_message(outcome)
    assert run.is_late == is_late


DSC, NAN = "aggregates.dsc_mean", float("nan")
OFF = "the result would not be on the"


def metrics_with(**changes):
    return json.dumps({"aggregates": {**METRICS["aggregates"], **changes}}).encode()


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"stderr": b"a warning\n"}, "A successful run wrote to stderr, which marks"),
        ({"stdout": b"x" * 70_000}, "A line of 70000 bytes on stdout would be dropped"),
        ({"stdout": b"x\xff" + b"y" * 70_000}, "A line of 70002 bytes on stdout would"),
        ({"outputs": ("metrics.json", "core")}, "Other files in /output, which are"),
        ({"process_bytes": 4 << 30}, "A process used 4.0 GiB of the 7 GiB that it may"),
        ({"seconds": 2000.0}, "It took 2000 s of 3600 s: ask the platform's staff"),
        ({"metrics": metrics_with(dsc_mean=None)}, f"{DSC} is no number (null): {OFF}"),
        ({"metrics": metrics_with(dsc_mean=NAN)}, f"{DSC} is no number (null): {OFF}"),
        ({"metrics": b"{}"}, f"{DSC} is missing: {OFF}"),
        ({"metrics": metrics_with(dsc_std=None)}, "aggregates.dsc_std is no number"
         " (null): its column would show none."),
    ],
)  # fmt: skip
def test_what_an_organiser_is_warned_of(changes, warning):
    """Last, of metrics that everybody sees."""
    assert Verdict(run=run_of(), phase=PHASE).warnings == ()
    open_phase = replace(PHASE, display_all_metrics=True)
    verdict = Verdict(run=run_of(**changes), phase=open_phase)

    assert verdict.warnings[-1].startswith("display_all_metrics is on: the DSC of a")
    assert verdict.message == ""
    assert verdict.warnings[0].startswith(warning)
    assert verdict.is_ranked == ("would not be on the" not in warning)


@pytest.mark.parametrize(
    ("asked", "instance"),
    [*((n, (8, 2)) for n in (4, 8)), *((n, (16, 2)) for n in (9, 16)), (17, (32, 4))],
)
def test_a_phase_has_a_whole_instance(asked, instance):
    phase = replace(PHASE, evaluation_requires_memory_gb=asked)

    assert instance_of(phase) == instance
    full = run_of(process_bytes=(instance[0] - 1) << 30)
    warnings = Verdict(run=full, phase=phase).warnings
    assert f" of the {instance[0] - 1} GiB that it may: set " in warnings[0]


# --- An engine by a script --------------------------------------------------------

USAGE = {"status": 0, "seconds": 2.5, "process_bytes": 99, "is_late": False}


def rehearsed(**asked):
    return rehearse(RehearsalOptions(submission=PREDICTIONS, **asked), VALIDATION)


@pytest.fixture
def engine(make_engine):
    """An engine with one image, whose container writes what it is told."""

    def make(*, usage=None, files=(), status=0, stderr="", challenge="", **changes):
        settings = {"Entrypoint": ["python"], "Cmd": ["-m", "flare"], "User": "flare"}
        settings |= {"WorkingDir": "/opt/app", "Env": []} | changes
        architecture = settings.pop("Architecture", "amd64")
        image = [{"Architecture": architecture, "Config": settings}]
        return make_engine(
            f"if words[:2] == ['image', 'inspect']: print({json.dumps(image)!r})",
            f"if {challenge!r} and 'show' in words:",
            f"    print({challenge!r})",
            "    sys.exit()",
            "if words[0] == 'run' and 'show' not in words:",
            "    volumes = [w.rsplit(':', 1) for w in words if w.count(':') == 1]",
            "    folders = {place: pathlib.Path(path) for path, place in volumes}",
            f"    for name, text in {dict(files)!r}.items():",
            "        (folders['/output'] / name).write_text(text)",
            f"    usage = {usage!r}",
            "    if usage: (folders['/rehearsal/result'] / 'usage.json').write_text(",
            "        json.dumps(usage))",
            f"    sys.stderr.write({stderr!r})",
            f"if words[0] == 'run': sys.exit({status})",
        ).program

    return make


def test_a_run_is_what_the_container_has_left(engine, make_engine):
    program = engine(usage=USAGE, files={"metrics.json": "{}", "core": ""})

    run = rehearsed(image="mine", engine=program)

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


IMAGE_OF = {"submission": PREDICTIONS, "image": "mine"}


@pytest.mark.parametrize(
    ("answers", "asked", "kind", "problem"),
    [
        ({"status": 125, "stderr": "a\nno room\n"}, {}, EngineError,
         "mine: it cannot be run (no room)"),
        ({"User": "root:x"}, {}, EngineError, "its USER is root, which the platform"),
        ({"User": None}, {}, EngineError, "its USER is root, which the platform refu"),
        ({"Architecture": "arm64"}, {}, EngineError, "mine: it is for arm64, not for"),
        (None, {}, EngineError, "mine: there is no such image, or "),
        ({}, {"engine": "no-such-engine"}, EngineError, "no-such-engine: it cannot be"),
        ({"usage": USAGE}, {"ground_truth": ROOT / "README.md"}, UploadError,
         "README.md: it is not a .tar.gz file that can be read"),
        ({"Env": ["FLARE_CHALLENGE=two-organs"], "status": 1}, {}, EngineError,
         "does not tell its challenge, two-organs"),
        ({}, {"submission": ROOT / "nothing"}, InputError,
         "nothing: there is no such file or folder"),
        ({}, {"ground_truth": ROOT / "nothing"}, InputError,
         "nothing: there is no such file or folder"),
    ],
)  # fmt: skip
def test_what_cannot_be_rehearsed(engine, make_engine, answers, asked, kind, problem):
    """An engine that fails at all has no image."""
    program = make_engine("sys.exit(1)") if answers is None else None
    program = program.program if program else engine(**answers)
    options = RehearsalOptions(**IMAGE_OF | {"engine": program} | asked)

    error = error_of(kind, lambda: rehearse(options, options.phase()))

    assert problem in str(error)


@pytest.mark.parametrize(
    ("environment", "organs"),
    [
        (None, 4),
        (["A=b", "FLARE_CHALLENGE=flare21"], 4),
        (["FLARE_CHALLENGE=flare22"], 13),
    ],
)
def test_the_settings_are_those_of_the_image_s_challenge(engine, environment, organs):
    options = RehearsalOptions(submission=PREDICTIONS, engine=engine(Env=environment))

    assert len(options.phase().extra_results_columns) == 1 + 2 * organs


OWN = """
name = "Mine"
metrics = ["dsc", "nsd", "hd95"]
organs = [{ label = 1, name = "liver", tolerance_mm = 1 }]
"""


def test_the_challenge_of_an_image_is_asked_of_the_image(engine, make_engine):
    """One of one's own, which only the image has, unless settings are given."""
    program = engine(Env=["FLARE_CHALLENGE=mine"], challenge=OWN)
    file = PhaseOptions(phase_settings=ROOT / "phase-settings.json")
    of_file = RehearsalOptions(submission=PREDICTIONS, engine=program, settings=file)

    assert of_file.phase() == VALIDATION
    of_image = RehearsalOptions(submission=PREDICTIONS, engine=program, image="its")
    titles = [column.title for column in of_image.phase().extra_results_columns]
    assert titles == [
        *("Mean NSD", "Mean HD95 (mm)"),
        *("Liver DSC", "Liver NSD", "Liver HD95 (mm)"),
    ]
    command = make_engine.state()["calls"][-1]
    words = ["its", "-m", "flare", "challenge", "show", "mine"]
    assert (command[0], command[-6:]) == ("run", words)


@pytest.mark.parametrize(
    ("answers", "shown", "said"),
    [
        ({"files": {"metrics.json": json.dumps(METRICS)}}, "leaderboard's row:", ""),
        ({"files": {"metrics.json": "{}"}}, "NOT be on the leaderboard:",
         "The result would not be on the leaderboard: aggregates.dsc_mean is missi"),
        ({"usage": {**USAGE, "status": 1}}, "The participant would read:",
         "No errors were reported in the logs."),
        ({"usage": None, "status": 137}, "The participant would read:",
         "The container was killed as it exceeded its memory limit"),
    ],
    ids=["ranked", "not ranked", "failed", "killed by the kernel"],
)  # fmt: skip
def test_the_command_says_what_would_come_of_it(
    engine, tmp_path, capfd, answers, shown, said
):
    """Metrics are kept of what would be on the board; labels may not have been used."""
    (tmp_path / "labels").mkdir()
    words = ["--image", "mine", "--engine", engine(**{"usage": USAGE, **answers})]
    words += ["--output", tmp_path / "out", "--ground-truth", tmp_path / "labels"]

    status = main(["rehearse", *map(str, words), str(PREDICTIONS)])

    stdout, stderr = capfd.readouterr()
    assert (status, stderr[: len(said)]) == (bool(said), said)
    assert shown in stdout
    assert ("The labels of" in stdout) == ("files" in answers)
    assert (tmp_path / "out" / "metrics.json").exists() == (not said)


# --- The real image ---------------------------------------------------------------


def rehearsal(submission, image, *arguments):
    return call("./rehearse.sh", *arguments, submission, image=image)


def zip_of(folder, file, parent=""):
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{parent}{path.name}")
    return file


@pytest.mark.docker
def test_folder_zip_and_a_zip_with_another_folder_give_the_same(image, tmp_path):
    """And it is what `evaluate.py` gives, but for what is said of the machine."""
    (tmp_path / "junk").mkdir()
    nested = zip_of(PREDICTIONS, tmp_path / "nested.zip", "final/team/")
    with zipfile.ZipFile(nested, "a") as archive:
        archive.writestr("__MACOSX/final/._demo_001.nii.gz", b"junk")
    sources = [PREDICTIONS, zip_of(PREDICTIONS, tmp_path / "flat.zip"), nested]
    contents = []
    for number, source in enumerate(sources):
        output = tmp_path / f"out-{number}"
        run = rehearsal(source, image, "--output", output)
        assert (run.returncode, run.stderr) == (0, b"")
        text = run.stdout.decode()
        assert "The evaluation would succeed. The leaderboard's row:\n" in text
        assert "\nCases: 5. Challenge: flare21. Reference labels: bundled.\n" in text
        assert "\n  Mean DSC      0.8590 ± 0.1148\n" in text
        assert "For the organiser" not in text
        contents.append((output / "metrics.json").read_bytes())
    run_evaluate(PREDICTIONS, None, tmp_path / "checkout")

    assert contents[0] == contents[1] == contents[2]
    found, expected = json.loads(contents[0]), read_metrics(tmp_path / "checkout")
    found["evaluation"].pop("machine")
    expected["evaluation"].pop("machine")
    assert found == expected


@pytest.mark.docker
def test_a_tarball_is_used_once_it_has_label_maps(image, tmp_path):
    """Files that only their owner may read are made readable, as on the platform."""
    folder = shutil.copytree(PREDICTIONS, tmp_path / "labels")
    for file in folder.iterdir():
        file.chmod(0o600)
    tarball = shutil.make_archive(str(tmp_path / "labels"), "gztar", folder)

    run = rehearsal(
        PREDICTIONS, image, "--ground-truth", tarball, "--output", tmp_path / "out"
    )

    assert (run.returncode, run.stderr) == (0, b"")
    content = read_metrics(tmp_path / "out")
    assert content["evaluation"]["references"] == "tarball"
    assert content["aggregates"]["dsc_mean"] == 1


@contextmanager
def changed(image, folder, name, *lines):
    """An image that is made from another one, and removed in the end."""
    (folder / "Dockerfile").write_text("\n".join((f"FROM {image}", *lines, "")))
    assert call("docker", "build", "--tag", name, folder).returncode == 0
    try:
        yield name
    finally:
        call("docker", "image", "rm", "--force", name)


@pytest.mark.docker
def test_the_container_is_as_on_the_platform(image, tmp_path):
    """/input is a link, and read-only; variables of the platform are gone."""
    probe = tmp_path / "evaluate.py"
    probe.write_text(
        "import json, os, pathlib, resource\n"
        "def can_write(path):\n"
        "    try: (pathlib.Path(path) / 'x').write_text('x'); return True\n"
        "    except OSError: return False\n"
        "def is_offline():\n"
        "    return sorted(os.listdir('/sys/class/net')) == ['lo']\n"
        "found = {\n"
        "  'link': os.path.islink('/input'), 'input': can_write('/input'),\n"
        "  'tmp': can_write('/tmp') and os.listdir('/tmp') == ['x'],\n"
        "  'home': os.environ['HOME'], 'user': os.getuid(), 'offline': is_offline(),\n"
        "  'reserved': [k for k in os.environ if k.startswith('GRAND_')],\n"
        "  'level': os.environ['LOG_LEVEL'],\n"
        "  'data': resource.getrlimit(resource.RLIMIT_DATA)[0] >> 30,\n"
        "  'folder': os.getcwd(), 'files': sorted(os.listdir('/input')),\n"
        "}\n"
        "print(json.dumps(found))\n"
        "pathlib.Path('/output/metrics.json').write_text('{}')\n"
    )
    copy = "COPY evaluate.py /opt/app/evaluate.py"
    with changed(image, tmp_path, f"{IMAGE}-probe", copy) as name:
        run = rehearsed(image=name)

    assert run.status == 0, run.stderr
    assert json.loads(run.stdout) == {
        "link": True,
        "input": False,
        "tmp": True,
        "home": "/home/flare",
        "user": 1000,
        "offline": True,
        "reserved": [],
        "level": "INFO",
        "data": 7,
        "folder": "/opt/app",
        "files": sorted([*(f.name for f in PREDICTIONS.iterdir()), "inputs.json"]),
    }


@pytest.mark.docker
def test_the_time_limit_ends_it(image, tmp_path):
    slow = 'ENTRYPOINT ["python", "-c", "import time; time.sleep(60)"]'
    with changed(image, tmp_path, f"{IMAGE}-slow", slow) as name:
        run = rehearsed(image=name, time_limit_s=1)

    assert run.is_late
    assert Verdict(run=run, phase=VALIDATION).message == "Time limit exceeded"
