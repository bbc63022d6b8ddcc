"""The queue: every step in the journal, nothing lost, nothing done twice."""

from datetime import timedelta

import pytest

from flare.common.errors import EngineError
from flare.measuring.archive.strict import ArchiveError
from flare.platforms.serving.journal import Journal, Step
from flare.platforms.serving.serve import Service
from flare.platforms.serving.source import NotOursError
from flare.platforms.serving.work import OverdueError, OverdueSignal
from tests.fakes.submissions import BEGIN, FakeSource, FakeWork, KilledError, Passing

STEPS = [
    *("claiming", "claimed", "downloaded", "checked", "measured", "scored"),
    *("returning", "returned"),
]


@pytest.fixture
def serve(tmp_path):
    """Start a service on the journal of the test, and let it work to the end."""

    def run(source, work=None, *, kill_at=None, now=None, **options):
        moments = []

        def moment(entry):
            moments.append((entry.key, entry.step.value))
            if entry.step.value == kill_at:
                raise KilledError

        service = Service(
            source,
            work or FakeWork(),
            tmp_path / "serve",
            now=now or Passing(),
            on_step=moment,
            **options,
        )
        while service.serve_one():
            pass
        return moments, service.journal.entries

    return run


def test_submissions_are_served_one_after_the_other(serve, tmp_path):
    """The journal says when each step was done; what was fetched is removed."""
    source = FakeSource("a", "b")

    moments, _ = serve(source)

    assert moments == [(key, step) for key in "ab" for step in STEPS]
    assert {key: a["metrics"]["aggregates"] for key, a in source.answers.items()} == {
        "a": {"dsc_mean": 0.5},
        "b": {"dsc_mean": 0.5},
    }
    for entry in Journal(tmp_path / "serve", "a fake").entries.values():
        assert list(entry.times) == STEPS
        assert set(entry.times.values()) == {"2026-05-01T12:00:00+00:00"}
        assert (entry.status, entry.message) == ("Succeeded", "")
        assert entry.ends_at(24) == BEGIN + timedelta(hours=23, minutes=30)
    assert [*(tmp_path / "serve" / "downloads").iterdir()] == []


@pytest.mark.parametrize("step", STEPS)
def test_a_service_that_was_killed_goes_on_behind_each_step(serve, step):
    """What was done is not done again, and the answer is the same, and there once."""
    source, work = FakeSource("a"), FakeWork()
    with pytest.raises(KilledError):
        serve(source, work, kill_at=step)

    source.names = ("b", "a")  # what was begun goes before what waits
    moments, entries = serve(source, work)

    rest = STEPS[STEPS.index(step) + (step != "claiming") :]
    own = [("a", name) for name in rest]
    assert [one for one in moments if one[0] == "a"] == own
    if step not in ("claiming", "returned"):
        assert moments[0][0] == "a"
    assert entries["a"].step is Step.RETURNED
    done = [name for name, key in work.log if key == "a"]
    assert done == ["check", "measure", "score"]
    assert source.answers["a"]["metrics"] == {"aggregates": {"dsc_mean": 0.5}}
    answers = [call for call in source.log if call[:2] == ("answer", "a")]
    assert len(answers) == 1
    assert ("claim", "a", step == "claiming") in source.log


# --- Failures ---------------------------------------------------------------------


@pytest.mark.parametrize("step", ["check", "measure", "score"])
def test_a_fault_of_a_submission_is_its_answer(serve, step):
    source, work = FakeSource("a", "b"), FakeWork()
    error = ArchiveError("a.tar.gz", "it has no /bin/bash")
    work.errors[step, "a"] = [error]

    _, entries = serve(source, work)

    assert source.answers["a"]["status"] == "Failed"
    assert source.answers["a"]["error_message"] == str(error)
    assert entries["b"].step is Step.RETURNED


@pytest.mark.parametrize("step", ["claim", "answer"])
def test_a_submission_that_is_not_ours_any_more_is_left_alone(serve, step):
    """Another service has it, or it comes too late; the next one is served."""
    source = FakeSource("a", "b")
    source.errors[step, "a"] = [NotOursError("another service has it")]

    _, entries = serve(source)

    assert entries["a"].step is Step.LOST
    assert entries["a"].message == "another service has it"
    assert [*source.answers] == ["b"]


def test_no_answer_has_a_number_that_is_not_finite(serve):
    work = FakeWork()
    work.score = lambda _: {"aggregates": {"dsc_mean": float("nan")}}
    source = FakeSource("a")

    _, entries = serve(source, work)

    assert entries["a"].step is Step.MEASURED
    assert source.answers == {}


# --- The hours --------------------------------------------------------------------


NOT_REMOVED = EngineError("it cannot be removed")
NOT_REMOVED.__context__ = OverdueSignal()


@pytest.mark.parametrize("error", [OverdueSignal(), NOT_REMOVED])
def test_a_submission_whose_time_is_over_fails_in_words(serve, error):
    """What removes a container may fail, and takes the place of the signal."""
    source, work = FakeSource("a"), FakeWork()
    work.finished, work.errors["measure"] = 2, [error]

    serve(source, work)

    message = source.answers["a"]["error_message"]
    assert message.startswith("It was not measured within 24 hours: 2 of 3 cases were")
    assert message.endswith("[F18]")
    assert "within an hour: 2 of 3" in str(OverdueError(1.0, 2, 3))


@pytest.mark.parametrize(
    ("step", "minutes", "is_heard", "code"),
    [
        ("checked", 23 * 60 + 31, True, "[F18]"),
        # The hours begin with the claim that was heard.
        ("claiming", 25 * 60, True, "[F18]"),
        ("claiming", 25 * 60, False, ""),
        # An answer that is written may still be accepted: the platform says so.
        ("scored", 23 * 60 + 50, True, ""),
    ],
)
def test_a_service_that_comes_back_too_late_measures_nothing_more(
    serve, step, minutes, is_heard, code
):
    """It was killed at a step, and begins again some hours later."""
    clock, source, work = Passing(), FakeSource("a"), FakeWork()
    with pytest.raises(KilledError):
        serve(source, work, kill_at=step, now=clock)
    clock.at += timedelta(minutes=minutes)
    source.is_heard = is_heard

    serve(source, work, now=clock)

    assert code in source.answers["a"].get("error_message", "")
    assert source.answers["a"]["status"] == ("Failed" if code else "Succeeded")
    assert (("measure", "a") in work.log) == (code == "")
