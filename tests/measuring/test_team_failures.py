"""What nobody has thought of ends the measurement of one team, and of no other."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from flare.challenge.reading import read_challenge
from flare.common.containers import Limits
from flare.common.errors import EngineError
from flare.evaluation.errors import GroundTruthError
from flare.measuring import measure as measuring
from flare.measuring import team as measured
from flare.measuring.archive.reading import Archive
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.inputs import find_cases
from flare.measuring.lanes import dispatch
from flare.measuring.measure import measure_teams
from flare.measuring.options import Options
from flare.measuring.summary import Listener, write_refused
from flare.measuring.team import Job
from flare.results.errors import MeasurementError
from flare.results.refused_csv import read_refused
from tests.builders import write_cases
from tests.builders.running import record
from tests.builders.teams import PREDICT


@dataclass
class FakeTeams(Listener):
    """Teams whose measurement goes wrong at some point, or does not."""

    fails: dict
    calls: list = field(default_factory=list)
    told: dict = field(default_factory=dict)

    def _do(self, team, what):
        self.calls.append((team, what))
        if (team, what) in self.fails:
            raise self.fails[team, what]

    @contextmanager
    def look(self, of, **_):
        self._do(of.team, "planned")
        yield SimpleNamespace(todo=of.job.cases)

    @contextmanager
    def plan(self, of):
        self._do(of.team, "made")
        try:
            yield SimpleNamespace(of=of, todo=of.job.cases, records={})
        finally:
            self._do(of.team, "close")

    @contextmanager
    def open(self, plan):
        self._do(plan.of.team, "open")
        yield None

    def run_case(self, plan, _, case):
        self._do(plan.of.team, case.name)
        return record(case.name)

    def on_team(self, team):
        """Score a team."""
        self.calls.append((team, "scored"))

    def on_failure(self, team, error):
        """Note what its measurement has ended by."""
        self.told[team] = str(error)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Measure two teams on two cases, where something goes wrong."""
    cases = find_cases(write_cases(tmp_path / "images", ["c1_0000", "c2_0000"]))

    def start(fails):
        teams = FakeTeams(fails)
        monkeypatch.setattr(dispatch, "planned_team", teams.look)
        monkeypatch.setattr(measured, "planned_team", teams.plan)
        monkeypatch.setattr(measured, "_opened", teams.open)
        monkeypatch.setattr(measured, "_run", teams.run_case)
        engine = SimpleNamespace(describe=dict, folder=lambda: None)
        monkeypatch.setattr(measuring, "find_engine", lambda _: engine)
        job = Job(
            options=Options(
                archives=tmp_path,
                images=tmp_path / "images",
                output=tmp_path / "results",
                limits=Limits(),
            ),
            challenge=read_challenge("flare21"),
            results=tmp_path / "results",
            cases=cases,
            archives=tuple(
                SimpleNamespace(team=team, image=team, problems=()) for team in "ab"
            ),
        )
        failed = measure_teams(job, teams)
        found = {team: str(error) for team, error in failed}
        assert teams.told == found
        return found, teams.calls

    return start


@pytest.mark.parametrize("where", ["planned", "made", "open", "c1", "c2", "close"])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ValueError("odd"),
            "Internal error in the evaluation (ValueError in",
        ),
        (
            RecursionError(),
            "Internal error in the evaluation (RecursionError in",
        ),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"),
            "Internal error in the evaluation (UnicodeEncodeError in",
        ),
        (
            OSError(28, "No space left on device", "/x/y"),
            "/x/y: it cannot be written (no space left on device).",
        ),
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
    of_b = [what for team, what in calls if team == "b"]
    assert of_b == ["planned", "made", "open", "c1", "c2", "close", "scored"]
    own = [what for team, what in calls if team == "a"]
    assert own[-1] == "close" or where in ("planned", "made")


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


class FailingWhileItEnds(dict):
    """Errors that come up while the program is being ended."""

    def __getitem__(self, key):
        """Raise one."""
        end_with_an_error()


@pytest.mark.parametrize("where", ["planned", "open", "c1"])
def test_an_error_on_the_way_out_does_not_let_it_go_on(run, where):
    with pytest.raises(KeyboardInterrupt):
        run(FailingWhileItEnds({("a", where): None}))


def test_nor_does_an_engine_that_fails_on_the_way_out_of_a_case(bench, monkeypatch):
    monkeypatch.setattr(measured, "run_case", end_with_an_error)

    with pytest.raises(KeyboardInterrupt):
        bench.measure(bench.archive("a", PREDICT), cases=1)


def test_a_team_is_scored_as_soon_as_its_last_case_is_done(run):
    """Closed before, and not at all if it is not measured to the end."""
    _, calls = run({})

    for team in "ab":
        own = [what for name, what in calls if name == team]
        assert own[1:] == ["made", "open", "c1", "c2", "close", "scored"]
    assert calls.index(("a", "scored")) < calls.index(("b", "made"))

    failed, calls = run({("a", "c2"): ValueError("odd")})
    assert list(failed) == ["a"]
    assert [team for team, what in calls if what == "scored"] == ["b"]


def archive(team, *problems):
    """What is known of an archive."""
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
