"""What nobody has thought of ends the measurement of one team, and of no other."""

import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from flare.common.errors import EngineError
from flare.evaluation.check import find_images
from flare.evaluation.errors import GroundTruthError
from flare.measuring import image, team, trial
from flare.measuring import measure as measuring
from flare.measuring import team as measured
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.engines.interface import NoAnswerError
from flare.measuring.lanes import dispatch, process
from flare.measuring.measure import measure_teams, write_refused
from flare.results.archives_csv import read_refused
from flare.results.errors import MeasurementError
from tests.builders import write_cases
from tests.builders.archives import make_socket
from tests.builders.lanes import job_of
from tests.builders.running import record
from tests.builders.teams import PREDICT
from tests.measuring.conftest import Notes

pytestmark = pytest.mark.newest  # they wait for processes


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Measure two teams on two cases, where something goes wrong."""
    cases = find_images(write_cases(tmp_path / "images", ["c1_0000", "c2_0000"]))

    def start(fails):
        def fail(team, where):
            failure = fails.get((team, where))
            if isinstance(failure, BaseException):
                raise failure
            if failure:
                failure()

        @contextmanager
        def planned_team(job, **_):
            fail(job.team, "planned")
            yield SimpleNamespace(todo=cases)

        def measure_team(job):
            for case in ("c1", "c2"):
                fail(job.team, case)
                yield record(case)
            fail(job.team, "close")

        notes = Notes()
        monkeypatch.setattr(dispatch, "planned_team", planned_team)
        monkeypatch.setattr(process, "measure_team", measure_team)
        engine = SimpleNamespace(describe=dict, folder=lambda: None)
        monkeypatch.setattr(measuring, "find_engine", lambda _: engine)
        job = job_of(tmp_path / "results", {"a": "a", "b": "b"}, cases)
        found = {team: str(error) for team, error in measure_teams(job, notes)}
        assert notes.failed == found
        calls = [(t, "scored") if isinstance(t, str) else t[:2] for t in notes.told]
        return found, calls

    return start


INTERNAL = "Internal error in the evaluation"


@pytest.mark.parametrize("where", ["planned", "c1", "c2", "close"])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("odd"), f"{INTERNAL} (ValueError in"),
        (RecursionError(), f"{INTERNAL} (RecursionError in"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, ""), f"{INTERNAL} (UnicodeEnc"),
        (OSError(28, "No space left", "/x/y"), "/x/y: it cannot be written (no space"),
        (EngineError("docker: gone"), "docker: gone. Start Docker or Podman"),
        (MeasurementError("f", "p", "r."), "f: p. r. [H07]"),
        (GroundTruthError("odd"), "Reference labels: odd."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_one_team_does_not_end_the_measurement_of_others(run, where, error, line):
    failed, calls = run({("a", where): error})

    assert list(failed) == ["a"]
    assert failed["a"].startswith(line)
    assert calls[-3:] == [("b", "c1"), ("b", "c2"), ("b", "scored")]
    assert ("a", "scored") not in calls


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_whoever_wants_it_to_end_is_obeyed(run, error):
    with pytest.raises(type(error)):
        run({("a", "c1"): error})


def end_with_an_error(*_):
    """Ctrl-C, and a clean-up on the way out that fails."""
    error = EngineError("docker: no answer")
    try:
        raise KeyboardInterrupt
    finally:
        raise error


@pytest.mark.parametrize("where", ["planned", "c1"])
def test_an_error_on_the_way_out_does_not_let_it_go_on(run, where):
    with pytest.raises(KeyboardInterrupt):
        run({("a", where): end_with_an_error})


def test_nor_does_an_engine_that_fails_on_the_way_out_of_a_case(bench, monkeypatch):
    monkeypatch.setattr(measured, "run_case", end_with_an_error)

    with pytest.raises(KeyboardInterrupt):
        bench.measure(bench.archive("a", PREDICT), cases=1)


def test_a_team_is_scored_as_soon_as_its_last_case_is_done(run):
    _, calls = run({})

    assert calls == [(team, what) for team in "ab" for what in ("c1", "c2", "scored")]


def archive(team, *problems):
    path = Path(f"{team}.tar.gz")
    found = tuple(ArchiveError(path.name, problem) for problem in problems)
    return Archive(path=path, team=team, sha256="1" * 64, problems=found, doubts=())


def test_what_was_refused_before_stays_in_the_list(tmp_path):
    """Until the team sends an archive that can be run."""
    results = tmp_path / "results"
    write_refused([archive("good")], results)
    assert not results.exists()

    write_refused([archive("bad", "it is empty"), archive("good")], results)
    write_refused([archive("also", "it has no /bin/bash")], results)
    assert [(f.team, f.archive) for f in read_refused(results)] == [
        *(("also", "also.tar.gz"), ("bad", "bad.tar.gz")),
    ]

    write_refused([archive("bad")], results)
    (left,) = read_refused(results)
    assert left.problem.startswith("also.tar.gz: it has no /bin/bash. Write it with")


def row_of_a(bench, status, stderr):
    """The row of refused.csv where one team is refused, and the other measured."""
    assert (status, stderr.count("\n")) == (1, 1)
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}
    assert bench.engine.left() == []
    (row,) = read_refused(bench.results)
    assert row.team == "a"
    return row


def test_what_an_engine_does_not_load_and_does_not_explain_is_one_team_s_fault(
    bench, measure, monkeypatch
):
    """It has taken an image of ours just before, and takes that of the next team."""
    bench.archive("a", PREDICT)
    bench.archive("b", PREDICT)
    feed = image._feed

    def fail(engine, archive):
        if archive.team == "a":
            raise image.UnexplainedError("docker image: no such thing")
        feed(engine, archive)

    monkeypatch.setattr(image, "_feed", fail)

    status, _, stderr = measure()

    problem = "a.tar.gz: the engine cannot load it (docker image: no such thing)."
    assert stderr.startswith(problem)
    row = row_of_a(bench, status, stderr)
    assert row.problem.startswith(problem)
    assert row.problem.endswith("[F15]")


def test_an_engine_that_does_not_answer_twice_is_not_asked_again(bench, monkeypatch):
    """Not for this team, if it has answered for ours in between; the next one waits.

    What it does for nobody any more is let end before anything else is timed.
    """
    create, asked = bench.engine.create, []

    def answer(container):
        asked.append("ours" if container.command == image.NOTHING else container.image)
        if container.command == image.NOTHING or bench.notes.told[2:]:
            return create(container)
        raise NoAnswerError("docker create: no answer for 120 s")

    monkeypatch.setattr(bench.engine, "create", answer)
    monkeypatch.setattr(trial, "wait_until_idle", lambda _: asked.append("wait"))
    files = [bench.archive(team, f"{PREDICT}# {team}") for team in "ab"]

    assert bench.measure(*files, cases=2) == {}

    first = asked[1]
    assert asked[:7] == ["ours", first, "wait", "ours", first, "wait", "ours"]
    assert first not in asked[7:]
    for row in bench.rows("a").values():
        problem = "the engine cannot run it: docker create: no answer for 120 s"
        assert (row["status"], row["message"]) == ("failed", problem)
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}


def test_an_engine_that_answers_at_the_second_try_is_asked_on(bench, monkeypatch):
    """Four times in vain, but never twice in a row."""
    create, asked = bench.engine.create, []

    def answer(container):
        if container.command != image.NOTHING:
            asked.append(container)
            if len(asked) % 2:
                raise NoAnswerError("docker create: no answer for 120 s")
        return create(container)

    monkeypatch.setattr(bench.engine, "create", answer)
    monkeypatch.setattr(trial, "wait_until_idle", lambda _: None)

    assert bench.measure(bench.archive("a", PREDICT), cases=3) == {}

    assert {row["status"] for row in bench.rows("a").values()} == {"ok"}


def test_a_fault_of_the_program_refuses_one_team_and_keeps_its_traceback(
    bench, measure, monkeypatch
):
    """As of C1, where an OverflowError came from a library."""
    bench.archive("a", PREDICT)
    bench.archive("b", PREDICT)

    def fail(image, *arguments):
        if image.place.folder.name == "a":
            raise OverflowError
        return trial.run_case(image, *arguments)

    monkeypatch.setattr(team, "run_case", fail)

    status, _, stderr = measure()

    assert "[X01]" in stderr
    row = row_of_a(bench, status, stderr)
    assert row.archive_sha256 == ""
    assert row.problem.endswith("[X01]")
    trace = (bench.results / ".faults" / "a.txt").read_text()
    assert trace.rstrip().endswith("OverflowError")


def lead_to_a_device(path):
    path.symlink_to("/dev/zero")


KINDS = (os.mkfifo, os.mkdir, make_socket, lead_to_a_device)


@pytest.mark.parametrize("make", KINDS)
def test_an_archive_that_is_not_a_file_is_refused_at_once(bench, measure, make):
    bench.archive("b", PREDICT)
    make(bench.sent / "a.tar.gz")

    status, _, stderr = measure()

    assert stderr.startswith("a.tar.gz: it is not a file. ")
    assert row_of_a(bench, status, stderr).problem.endswith("[F15]")
