"""A rehearsal of a bundle: what the container gets, and the site's verdict.

The states are those to which the real worker came with these files: compute_worker.py
of codalab/codabench at c7dbc756, its class Run, and the Docker engine.
"""

import json
from dataclasses import replace

import pytest

from flare.cli.main import main
from flare.common.errors import EngineError, InputError
from flare.common.schema import dump
from flare.evaluation.errors import UploadError
from flare.platforms.codabench.bundle import BundleOptions, write_bundle
from flare.platforms.codabench.competition import (
    Column,
    Competition,
    Leaderboard,
    Phase,
    SubmissionRule,
    Task,
)
from flare.platforms.codabench.rehearse import rehearse
from flare.platforms.codabench.verdict import Verdict
from flare.platforms.rehearsal import SubmissionOptions
from tests.builders import ROOT, error_of, read_metrics, run_evaluate, write_file
from tests.builders.npz import zip_bytes

BOARD = Leaderboard(
    submission_rule=SubmissionRule.FORCE_BEST,
    columns=(
        Column(title="Mean DSC", key="dsc", index=0, precision=4),
        Column(title="Mean HD95", key="hd95", index=1, precision=1),
    ),
)
COMPETITION = Competition(
    docker_image="python:3.13-slim",
    enable_detailed_results=True,
    tasks=(Task(scoring_program="program.zip", reference_data="reference.zip"),),
    phases=(Phase(execution_time_limit=60),),
    leaderboards=(BOARD,),
)
NO_COLUMN = dump(COMPETITION) | {"leaderboards": [{"columns": []}]}
EMPTY = dump(COMPETITION) | {"tasks": [], "phases": [], "leaderboards": []}
SCORES = b'{"dsc": 0.92406, "hd95": 3}'
PROGRAM = """
import json, os, pathlib, sys
app = pathlib.Path("/app")
seen = sorted(str(p.relative_to(app)) for p in app.rglob("*") if p.is_file())
status = pathlib.Path("/proc/self/status").read_text().split("\\n")
seen += [line for line in status if line.startswith(("CapBnd", "NoNewPrivs", "Uid"))]
(app / "output" / "scores.json").write_text('{"dsc": 1, "hd95": 0}')
(app / "output" / "detailed_results.html").write_text(str(seen))
"""


def bundle_of(competition):
    """A bundle whose scoring program tells what it sees."""
    program = {"metadata.yaml": "command: python score.py", "score.py": PROGRAM}
    files = {
        "competition.yaml": json.dumps(dump(competition)),
        "program.zip": zip_bytes(program.items()),
        "reference.zip": zip_bytes([("a.nii.gz", "reference")]),
    }
    return zip_bytes(files.items())


@pytest.fixture
def bundle(tmp_path):
    return write_file(tmp_path / "bundle.zip", bundle_of(COMPETITION))


@pytest.fixture
def submission(tmp_path):
    content = zip_bytes([("s/a.nii.gz", "a"), ("__MACOSX/._a", "")])
    return write_file(tmp_path / "submission.zip", content)


@pytest.fixture
def engine(make_engine):
    """An engine whose container leaves some files, and ends with a status."""

    def make(files, *, status=0, stderr="", pause_s=0):
        return make_engine(
            "volumes = [w.rsplit(':', 1) for w in words if w.count(':') == 1]",
            "folders = {place: pathlib.Path(path) for path, place in volumes}",
            "if words[0] == 'image': print('[{}]')",
            "if words[0] == 'run':",
            "    state['seen'] = sorted(str(p.relative_to(folders['/app/input']))",
            "        for p in folders['/app/input'].rglob('*') if p.is_file())",
            f"    for name, text in {files!r}.items():",
            "        (folders['/app/output'] / name).write_text(text)",
            f"    time.sleep({pause_s})",
            f"    print('the log'); sys.stderr.write({stderr!r}); sys.exit({status})",
        ).program

    return make


def test_the_container_is_the_worker_s(engine, make_engine, bundle, submission):
    program = engine({"scores.json": SCORES.decode()})

    options = SubmissionOptions(submission=submission, engine=program)
    verdict = rehearse(options, bundle)

    left = {"scores.json": SCORES}
    assert (verdict.status, verdict.outputs, verdict.log) == (0, left, "the log")
    assert verdict.competition == COMPETITION
    state = make_engine.state()
    assert state["seen"] == [
        "ref/a.nii.gz", "res/__MACOSX/._a", "res/metadata", "res/s/a.nii.gz"
    ]  # fmt: skip
    *others, command = state["calls"]
    assert [words[0] for words in others] == ["image", "pull"]
    assert command[-3:] == ["python:3.13-slim", "python", "score.py"]
    assert "--cap-drop ALL --security-opt no-new-privileges" in " ".join(command)


def test_a_program_is_ended_at_the_time_limit(
    engine, make_engine, tmp_path, submission
):
    competition = replace(COMPETITION, phases=(Phase(execution_time_limit=1),))
    bundle = write_file(tmp_path / "bundle.zip", bundle_of(competition))
    options = SubmissionOptions(submission=submission, engine=engine({}, pause_s=60))

    verdict = rehearse(options, bundle)

    assert verdict.message == "Execution Time Limit exceeded. Limit was 1 seconds"
    assert make_engine.state()["calls"][-1][0] == "kill"


@pytest.mark.docker
def test_the_program_sees_what_the_worker_shows_it(docker, bundle, submission):
    verdict = rehearse(SubmissionOptions(submission=submission), bundle)

    assert verdict.page_text == str([
        "input/ref/a.nii.gz", "input/res/__MACOSX/._a", "input/res/metadata",
        "input/res/s/a.nii.gz", "program/metadata.yaml", "program/score.py",
        "Uid:\t0\t0\t0\t0", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
    ])  # fmt: skip
    assert verdict.is_ranked


@pytest.mark.parametrize(
    ("status", "outputs", "message"),
    [
        (3, {}, "Child task failed or non-zero return code"),
        (None, {}, "Execution Time Limit exceeded. Limit was 60 seconds"),
        (0, {"x": b""}, "Could not find scores file, did the scoring program outpu"),
        (0, {"scores.json": b'{"dsc": '}, "Could not decode scores json properly, it"),
        (0, {"scores.json": b'{"dsc": NaN}'}, "Finished, without scores: scores.json"),
        (0, {"scores.json": b'{"dsc": null}'}, "Finished, without scores: scores.json"),
        (0, {"scores.json": b"[1]"}, "Finished, without scores: scores.json"),
        (0, {"scores.json": SCORES, "metadata": b""}, "Error, the output directory al"),
    ],
)
def test_a_failure_has_the_site_s_state(status, outputs, message):
    """And the page, which a failed run leaves, too."""
    page = b"<style>p { }</style><p>a.nii.gz: bad &amp; short"
    outputs = {**outputs, "detailed_results.html": page}

    verdict = Verdict(
        competition=COMPETITION, status=status, seconds=1, outputs=outputs
    )

    assert verdict.message.startswith(message)
    assert "The participant's page: a.nii.gz: bad & short\n" in str(verdict)
    assert str(verdict).endswith("The participant would read:")
    assert verdict.files == {"detailed_results.html": page, "scores.json": None}


@pytest.mark.parametrize(
    ("changes", "kind", "problem"),
    [
        ({"submission": b"no zip"}, UploadError, 'would read "Bad or empty zip file"'),
        ({"submission": zip_bytes([("metadata.yaml", "")])}, UploadError, "a program"),
        ({"path": ROOT / "none.zip"}, InputError, "none.zip: there is no such file"),
        ({"bundle": b"no zip"}, UploadError, "competition.yaml cannot be used"),
        ({"bundle": zip_bytes([])}, UploadError, "competition.yaml cannot be used"),
        ({"bundle": bundle_of(EMPTY)}, UploadError, "tasks is [], expected a list wi"),
        ({"bundle": bundle_of(NO_COLUMN)}, UploadError, "columns is [], expected a li"),
        ({"path": ROOT}, UploadError, "). Zip the files, and rehearse the zip. [H06]"),
        ({"status": 125}, EngineError, "python:3.13-slim: it cannot be run (no room)"),
    ],
)
def test_what_cannot_be_rehearsed(engine, bundle, submission, changes, kind, problem):
    for file in (bundle, submission):
        file.write_bytes(changes.get(file.stem, file.read_bytes()))
    program = engine({}, status=changes.get("status", 0), stderr="no room")
    path = changes.get("path", submission)
    options = SubmissionOptions(submission=path, engine=program)

    assert problem in str(error_of(kind, rehearse, options, bundle))


@pytest.mark.parametrize(
    ("scores", "shown", "line"),
    [
        (SCORES.decode(), "  Mean DSC   0.9241\n  Mean HD95  3.0\n", ""),
        ('{"hd95": 3}', "NOT be on the", "The result would not be on the leaderboard: "
         "scores.json lacks dsc: the board shows n/a."),
        ("", "The participant's page: bad\n", "Could not decode scores json properly"),
    ],
)  # fmt: skip
def test_the_command_shows_the_row_or_the_page(
    engine, bundle, submission, capfd, tmp_path, scores, shown, line
):
    program = engine({"scores.json": scores, "detailed_results.html": "<p>bad</p>"})
    words = ["rehearse", "--platform", "codabench", submission, "--bundle", bundle]
    words += ["--engine", program, "--output", tmp_path / "out"]
    write_file(tmp_path / "out" / "scores.json", b"those of an earlier rehearsal")

    status = main([*map(str, words)])

    stdout, stderr = capfd.readouterr()
    assert (status, stderr[: len(line)]) == (bool(line), line)
    assert shown in stdout
    assert (tmp_path / "out" / "detailed_results.html").read_text() == "<p>bad</p>"
    assert (tmp_path / "out" / "scores.json").exists() == bool(scores)


@pytest.mark.slow
@pytest.mark.docker
def test_a_whole_bundle_gives_the_scores_of_metrics_json(docker, tmp_path):
    """The bundled predictions, in folders and with what macOS adds."""
    bundle, submission = tmp_path / "bundle.zip", tmp_path / "submission.zip"
    references, predictions = ROOT / "ground-truth", ROOT / "examples" / "predictions"
    files = {f"s/{file.name}": file.read_bytes() for file in predictions.iterdir()}
    files["__MACOSX/s/._demo_001.nii.gz"] = b"x"
    submission.write_bytes(zip_bytes(files.items()))
    write_bundle(BundleOptions(ground_truth=references, output=bundle))
    run_evaluate(predictions, references, tmp_path / "out")

    verdict = rehearse(SubmissionOptions(submission=submission), bundle)

    aggregates = read_metrics(tmp_path / "out")["aggregates"]
    assert verdict.is_ranked
    assert verdict.scores == {
        column.key: round(aggregates[column.key], column.precision)
        for column in verdict.competition.leaderboards[0].columns
    }
