"""What nobody has thought of ends the measurement of one team, and of no other."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from flare import measuring
from flare.cases import find_cases
from flare.challenge import read_challenge
from flare.container import Limits
from flare.errors import EngineError, GroundTruthError, MeasurementError
from flare.measuring import measure
from flare.session import Options
from tests.builders import write_cases


@dataclass
class FakeSession:
    """A team whose measurement goes wrong at some point, or does not."""

    team: str
    fails: dict
    calls: list
    is_open: bool = False
    todo: list = field(default_factory=list)

    def __post_init__(self):
        self._do("made")

    def _do(self, what):
        self.calls.append((self.team, what))
        if (self.team, what) in self.fails:
            raise self.fails[self.team, what]

    def plan(self, cases):
        self.todo = list(cases)

    def open(self):
        self._do("open")
        self.is_open = True

    def run(self, case):
        self._do(case.name)
        return SimpleNamespace(status=SimpleNamespace(value="ok"))

    def close(self):
        self._do("close")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Measure two teams on two cases, where something goes wrong."""
    cases = find_cases(write_cases(tmp_path / "images", ["c1_0000", "c2_0000"]))

    def start(fails, interleaved=False):
        calls = []
        monkeypatch.setattr(
            measuring,
            "Session",
            lambda archive, *_: FakeSession(archive.team, fails, calls),
        )
        failed = measure(
            [SimpleNamespace(team="a"), SimpleNamespace(team="b")],
            cases,
            tmp_path / "results",
            read_challenge("flare21"),
            engine=SimpleNamespace(describe=dict),
            options=Options(limits=Limits(), is_interleaved=interleaved),
        )
        return {team: str(error) for team, error in failed}, calls

    return start


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("where", ["made", "open", "c1", "c2", "close"])
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            ValueError("odd"),
            "a: an internal error (ValueError); the log has it. Please report it; the"
            " other teams went on. [H07]",
        ),
        (
            RecursionError(),
            "a: an internal error (RecursionError); the log has it. Please report it;"
            " the other teams went on. [H07]",
        ),
        (
            UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"),
            "a: an internal error (UnicodeEncodeError); the log has it. Please report"
            " it; the other teams went on. [H07]",
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
def test_one_team_does_not_end_the_measurement_of_others(
    run, where, error, line, interleaved
):
    failed, calls = run({("a", where): error}, interleaved)

    assert list(failed) == ["a"]
    assert failed["a"].startswith(line)
    of_b = [what for team, what in calls if team == "b"]
    assert of_b[:5] == ["made", "open", "c1", "c2", "close"]
    assert where == "made" or calls[-1][1] == "close"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_whoever_wants_it_to_end_is_obeyed(run, error):
    with pytest.raises(type(error)):
        run({("a", "c1"): error})
