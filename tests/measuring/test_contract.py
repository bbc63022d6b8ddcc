"""Images that are run as algorithms of grand-challenge.org, beside those of FLARE."""

import json
import stat

import pytest

from flare.cli.main import main
from flare.evaluation.check import find_images
from flare.evaluation.submission.jobs import read_sockets
from flare.measuring.archive.reading import read_archive
from flare.measuring.exchange import WrongOutputError, lay_out, move_map
from flare.measuring.options import Contract
from flare.results.limits import Limits
from tests.builders import error_of
from tests.builders.archives import save
from tests.builders.teams import LIMITS as TINY
from tests.builders.teams import (
    brisk_command,
    flare_command,
    left_behind,
    rows_of,
    save_team,
)

ALGORITHM = Contract(
    contract="algorithm",
    input_socket=("ct-image", "images/ct"),
    output_path="images/organs",
)

PATIENT = Limits(timeout_s=60)
"""This computer may be busy."""

ASKED = (
    *("--contract", "algorithm", "--input-socket", "ct-image=images/ct"),
    *("--output-path", "images/organs"),
)

GOOD = """
test -s /input/inputs.json || exit 7
mkdir -p /output/images/organs
cp /input/images/ct/*.nii.gz /output/images/organs/output.nii.gz
echo '{}' > /output/results.json
"""
"""In the tests, the image of a case is the label map that is wanted."""


# --- What it is given ---------------------------------------------------------------


def test_what_an_algorithm_is_given(tmp_path, case_data):
    """One image at the path of its socket, and a list of inputs, for any user."""
    case = find_images(case_data / "images")[0]
    tmp_path.chmod(0o755)

    folder = lay_out(case, tmp_path, ALGORITHM)

    assert folder == tmp_path / "images" / "ct"
    image = folder / "validation_001_0000.nii.gz"
    assert image.read_bytes() == case.path.read_bytes()
    found = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    assert found == {
        "images": 0o755,
        "images/ct": 0o755,
        "images/ct/validation_001_0000.nii.gz": 0o644,
        "inputs.json": 0o644,
    }
    (listed,) = json.loads((tmp_path / "inputs.json").read_text())
    assert listed["image"]["name"] == "validation_001_0000.nii.gz"
    assert (listed["value"], listed["file"]) == (None, None)
    for key in ("socket", "interface"):
        assert listed[key]["slug"] == "ct-image"
        assert listed[key]["relative_path"] == "images/ct"
    # As the evaluation reads the platform's own list.
    assert read_sockets(tmp_path / "inputs.json") == {"ct-image"}


# --- What it has written ------------------------------------------------------------


ELSEWHERE = "expected one label map in /output/images/organs, found "


def taken(folder, *files, others=()):
    """The label map of an output, by the algorithm's contract."""
    for name in files:
        (folder / "outputs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "outputs" / name).write_text(name)
    (folder / "taken").mkdir()
    place = folder / "taken" / "case_1.x"
    return move_map(folder / "outputs", dict(others), place, ALGORITHM)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("images/organs/output.mha", "case_1.x.mha"),
        ("images/organs/x.y.NII.GZ", "case_1.x.nii.gz"),
    ],
)
def test_a_label_map_is_called_like_its_case(tmp_path, name, called):
    """Whatever lies elsewhere does not count, even a second label map."""
    file = taken(tmp_path, name, "images/heat/map.mha", "results.json")

    assert [*(tmp_path / "taken").iterdir()] == [file]
    assert (file.name, file.read_text()) == (called, name)


@pytest.mark.parametrize(
    ("files", "others", "problem"),
    [
        (("images/organs/a.mha", "images/organs/b.mha"), (), ELSEWHERE),
        (("output.mha",), (), ELSEWHERE),
        (("images/organs/deeper/a.mha",), (), ELSEWHERE),
        (("images/organs/a.tif",), (), "images/organs/a.tif: it is no label map"),
        ((), [("images/organs/a.mha", "a link")], "images/organs/a.mha: it is a link"),
    ],
)
def test_an_output_that_cannot_be_used(tmp_path, files, others, problem):
    error = error_of(WrongOutputError, taken, tmp_path, *files, others=others)

    assert str(error).startswith(problem)
    assert all(name in str(error) for name in files)


# --- Its archive --------------------------------------------------------------------


def archive_problems(folder, *layers, **settings):
    file = save(folder, *layers, **settings)
    archive = read_archive(file, contract=ALGORITHM)
    return [problem.problem for problem in archive.problems], archive.doubts


RUN = {"Cmd": ["x"]}


@pytest.mark.parametrize(
    "start",
    [
        {"Entrypoint": ["python", "-m", "process"]},
        {"Cmd": ["sh", "-c", "python process.py"]},
        {"Entrypoint": ["/run"], "Cmd": ["fast"], "WorkingDir": "/opt/app"},
    ],
)
def test_an_algorithm_needs_neither_bash_nor_a_script_nor_a_tag(tmp_path, start):
    files = {"opt/app/process.py": b"x"}

    assert archive_problems(tmp_path, files, tags=(), **start) == ([], ())


@pytest.mark.parametrize(
    ("files", "settings", "problem"),
    [
        ({}, {}, "it has neither an ENTRYPOINT nor a CMD"),
        ({}, {"Entrypoint": [], "Cmd": None}, "it has neither an ENTRYPOINT nor a CMD"),
        ({"input": b"x"}, RUN, "/input cannot be a folder: /input is a file"),
        ({"output": "-> /proc/self"}, RUN, "/output leads to /proc/self, which is"),
        ({}, {**RUN, "WorkingDir": "/proc"}, "its working directory /proc is one of"),
        ({}, {**RUN, "Env": ["LD_PRELOAD=/x.so"]}, "its environment sets LD_PRELOAD"),
    ],
)
def test_what_an_algorithm_may_not_have(tmp_path, files, settings, problem):
    (found,), doubts = archive_problems(tmp_path, files, tags=(), **settings)

    assert (found[: len(problem)], doubts) == (problem, ())


# --- Measured -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "status", "message"),
    [
        ("true", "no output", "it has written nothing to /output"),
        (
            "cp /input/images/ct/* /output/x.nii.gz",
            "wrong output",
            "expected one label map in /output/images/organs, found x.nii.gz",
        ),
    ],
)
def test_an_algorithm_that_writes_elsewhere(bench, script, status, message):
    archive = bench.algorithm("bad", script)

    bench.measure(archive, contract=ALGORITHM, cases=1, limits=PATIENT)

    row = bench.rows("bad")["validation_001"]
    assert row["status"] == status
    assert row["message"].startswith(message)


@pytest.mark.slow
def test_an_algorithm_is_served(bench, serve):
    """From a folder, as from the platform: whatever its tag is."""
    bench.algorithm("team", GOOD)

    status, _, stderr = serve(*ASKED)

    assert (status, stderr) == (0, "")
    answer = bench.answer("team")
    assert answer["status"] == "Succeeded"
    assert answer["metrics"]["aggregates"]["dsc_mean"] == 1
    assert answer["metrics"]["aggregates"]["cases_ok"] == 3


@pytest.mark.slow
@pytest.mark.docker
def test_an_algorithm_in_a_real_engine(tmp_path, team_base, two_cases):
    """By its own entrypoint, as another user, with a command of its own.

    It cannot write to its input.
    """
    script = f"touch /input/x 2> /dev/null && exit 6\n{GOOD}"
    start = (
        "RUN mkdir /opt && cp predict.sh /opt/process.sh",
        'ENTRYPOINT ["/bin/bash", "-eu"]',
        'CMD ["/opt/process.sh"]',
        "WORKDIR /opt",
        "USER 1000:1000",
    )
    archive = save_team(tmp_path, "algorithm", script, *start)

    brisk_command("measure", archive, "--images", two_cases / "images",
                  "--ground-truth", two_cases / "labels", "--output",
                  tmp_path / "results", *TINY, "--no-warm-up", *ASKED)  # fmt: skip

    rows = rows_of(tmp_path / "results" / "algorithm")
    assert {row["status"] for row in rows.values()} == {"ok"}, rows
    metrics = tmp_path / "results" / "algorithm" / "metrics.json"
    assert json.loads(metrics.read_text())["aggregates"]["dsc_mean"] == 1
    ct = two_cases / "images" / "validation_001_0000.nii.gz"
    out, _ = flare_command("check", archive, "--timeout", 60, *ASKED, "--run", ct)
    assert "validation_001: ok, " in out
    assert left_behind(tmp_path / "results") == []


# --- Asked for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (ASKED[:2], "--contract algorithm needs --input-socket and --output-path of"),
        ((*ASKED[:2], *ASKED[4:]), "--contract algorithm needs --input-socket of the"),
        (ASKED[4:], "--output-path is for --contract algorithm alone"),
    ],
)
def test_what_is_asked_for_has_to_make_sense(tmp_path, capfd, words, line):
    given = ("measure", tmp_path, "--images", tmp_path, "--output", tmp_path)

    status = main([str(word) for word in (*given, *words)])

    assert status == 2
    assert line in capfd.readouterr().err
