"""What stands in the way of one submission: the others go on, and nobody is blamed."""

import json
import os
import stat
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from flare.common.errors import EngineError, OutputError
from flare.measuring.archive.strict import ArchiveError
from flare.platforms.grandchallenge.access import PlatformError
from flare.platforms.serving.journal import Entry, Journal, Step
from flare.platforms.serving.service import Service
from flare.platforms.serving.source import (
    GoneError,
    NotNowError,
    Submission,
)
from flare.platforms.serving.work import OverdueSignal
from flare.results.errors import MeasurementError, RankingError
from tests.fakes.submissions import BEGIN, FakeSource, FakeWork, Passing


class TeamWork(FakeWork):
    """Work of which a step of some teams ends by an error, so often."""

    def __init__(self, faults, times=10**6):
        super().__init__()
        self.faults, self.times = faults, times

    def measure(self, file):
        """Measure, or fail."""
        super().measure(file)
        error = self.faults.get(file.name.removesuffix(".tar.gz"))
        if error and self.times:
            self.times -= 1
            raise error


@pytest.fixture
def now():
    """The time of the service."""
    return Passing()


@pytest.fixture
def make(tmp_path, now):
    """A service on the journal of the test."""

    def service(source, work):
        return Service(source, work, tmp_path / ".serve", now=now)

    return service


def served(service):
    """Let it work for as long as there is something to do at once."""
    while service.serve_one():
        pass
    return service.journal.entries


def tries(work, team):
    """How often a team was measured."""
    return work.log.count(("measure", f"{team}.tar.gz"))


def run_until_answered(service, source, now):
    """Let a service run, for ever, but for an answer."""

    def sleep(seconds):
        now.sleep(seconds)
        if source.answers:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        service.run(60, sleep)


@pytest.mark.parametrize(
    "error",
    [OverflowError("FEXTRA"), KeyError("x"), EngineError("no Docker"), MemoryError()],
)
def test_the_others_are_served(make, tmp_path, error):
    """Of it, nobody is told anything; a fault's traceback is kept."""
    source = FakeSource("a", "b", "c")

    entries = served(make(source, TeamWork({"a": error})))

    assert {key for key, e in entries.items() if e.step is Step.RETURNED} == {"b", "c"}
    assert [*source.answers] == ["b", "c"]
    kept = [file.read_text() for file in tmp_path.glob(".faults/a.txt")]
    assert len(kept) == isinstance(error, OverflowError | KeyError)
    assert all(text.startswith("Traceback") for text in kept)


def test_pauses_grow_from_a_minute_to_an_hour(make, now):
    """1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 = 183 minutes: the ninth try."""
    work = TeamWork({"a": EngineError("no Docker")}, times=8)
    service = make(FakeSource("a"), work)

    for minutes in (1, 2, 4, 8, 16, 32, 60, 60):
        served(service)
        tried = tries(work, "a")
        now.at += timedelta(minutes=minutes, seconds=-1)
        served(service)
        assert tries(work, "a") == tried
        now.at += timedelta(seconds=1)

    assert served(service)["a"].step is Step.RETURNED
    assert now.at == BEGIN + timedelta(minutes=183)


@pytest.mark.parametrize(
    ("error", "code"),
    [(OverflowError("FEXTRA"), "[X01]"), (EngineError("no Docker"), "[H07]")],
)
def test_it_is_answered_when_its_hours_are_nearly_over(make, now, error, code):
    """Half an hour before the end, and not as a fault of its own."""
    source, at = FakeSource("a"), []
    answer = source.answer
    source.answer = lambda *given, **more: (at.append(now()), answer(*given, **more))
    run_until_answered(make(source, TeamWork({"a": error})), source, now)

    assert source.answers["a"].status == "Failed"
    assert source.answers["a"].message.endswith(code)
    assert "no Docker" not in source.answers["a"].message
    late = at[0] - (BEGIN + timedelta(hours=23, minutes=30))
    assert timedelta() <= late <= timedelta(minutes=1)


def test_a_file_that_never_comes_is_the_submission_s_fault(make, now):
    """Told when its hours are over, and not before."""
    source = FakeSource("x", "a", "b")
    download = source.download

    def refuse(submission, folder):
        if submission.key in ("x", "a"):
            raise GoneError(
                PlatformError("status 404"),
                ArchiveError("a.tar.gz", "the platform does not have it any more"),
            )
        return download(submission, folder)

    source.download = refuse
    service = make(source, FakeWork())

    served(service)
    assert [*source.answers] == ["b"]
    now.at += timedelta(hours=23, minutes=31)
    served(service)

    assert source.answers["a"].message.endswith("[F15]")


def test_what_was_postponed_is_not_lost_with_the_service(make, now):
    """Started again, it is tried again."""
    source = FakeSource("a")
    served(make(source, TeamWork({"a": EngineError("no Docker")})))
    source.names = ("a", "b")
    work = FakeWork()

    served(make(source, work))

    assert [name for step, name in work.log if step == "measure"] == [
        "a.tar.gz",
        "b.tar.gz",
    ]
    assert source.answers["a"].status == "Succeeded"


# --- What concerns all ------------------------------------------------------------


def test_two_in_a_row_let_the_others_wait(make, now):
    """One may be that submission's alone; of two, the computer may be the reason."""
    source = FakeSource(*"abcdef")
    broken = EngineError("no Docker")
    service = make(source, TeamWork(dict.fromkeys("abc", broken)))

    assert set(served(service)) == {"a", "b"}
    now.at += timedelta(minutes=1)
    assert set(served(service)) == {"a", "b", "c"}
    now.at += timedelta(minutes=1)
    assert set(served(service)) == {"a", "b", "c"}
    now.at += timedelta(minutes=1)

    served(service)

    assert set(source.answers) == {"d", "e", "f"}


def test_a_computer_that_cannot_measure_claims_nothing(make, now):
    """No engine, or no room: nothing is begun, and it is looked at less and less."""
    source, work, looked = FakeSource("a"), FakeWork(), []

    def check_host():
        looked.append((now() - BEGIN) / timedelta(minutes=1))
        if len(looked) < 9:
            raise EngineError("no Docker")

    work.check_host = check_host
    run_until_answered(make(source, work), source, now)

    assert looked == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert source.answers["a"].status == "Succeeded"
    assert source.log.count(("claim", "a", False)) == 1


def test_what_is_over_is_answered_though_nothing_can_be_claimed(make, now):
    """While the pauses are of an hour, half of which is all the time that is left."""
    source, work = FakeSource("a"), TeamWork({"a": OverflowError("FEXTRA")})
    service, at = make(source, work), []
    served(service)
    answer = source.answer

    def note(*given, **more):
        at.append(now() - BEGIN)
        answer(*given, **more)

    def claimable():
        raise PlatformError("the platform cannot be reached")

    source.answer, source.claimable = note, claimable
    run_until_answered(service, source, now)

    assert timedelta(hours=23, minutes=30) <= at[0] < timedelta(hours=23, minutes=32)


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [(OSError(116, "Stale file handle", "/results"), False), (KeyError("x"), True)],
    ids=["host", "program"],
)
@pytest.mark.parametrize("step", ["claimable", "check_host"])
def test_no_error_ends_it_while_it_looks_for_work(
    make, now, tmp_path, error, is_kept, step
):
    """A file server that starts again, or a fault of ours; the traceback is kept."""
    source, work, left = FakeSource("a"), FakeWork(), [error] * 3
    owner = source if step == "claimable" else work
    real = getattr(owner, step)

    def fail():
        if left:
            raise left.pop()
        return real()

    setattr(owner, step, fail)
    run_until_answered(make(source, work), source, now)

    assert source.answers["a"].status == "Succeeded"
    assert now.at >= BEGIN + timedelta(minutes=1 + 2 + 4)
    kept = [file.read_text() for file in tmp_path.glob(".faults/*")]
    assert ["KeyError: 'x'" in text for text in kept] == [True] * is_kept


def test_a_fault_of_the_program_on_a_full_disk_does_not_end_it(make, now, tmp_path):
    """Its traceback cannot be kept."""
    source = FakeSource("a")
    (tmp_path / ".faults").write_text("no folder can be made here")

    def claimable():
        raise KeyError

    source.claimable = claimable
    with pytest.raises(AssertionError):  # it would go on for days
        make(source, FakeWork()).run(60, now.sleep)


@pytest.mark.parametrize("step", ["claim", "answer"])
def test_what_the_source_does_not_know_any_more_is_given_up(make, now, step):
    """When its 24 hours are over: until then, only rights may be missing."""
    source, at = FakeSource("a"), []

    def unknown(*_, **__):
        at.append(now() - BEGIN)
        raise GoneError(PlatformError("status 404"))

    setattr(source, step, unknown)
    service = make(source, FakeWork())
    while now.at < BEGIN + timedelta(hours=30):
        served(service)
        now.sleep(60)

    (entry,) = service.journal.entries.values()
    assert entry.step is Step.LOST
    assert "status 404" in entry.message
    assert all(one < timedelta(hours=24) for one in at[:-1])
    assert timedelta(hours=24) <= at[-1] <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("work", "error", "answered"),
    [
        (TeamWork({"a": EngineError("no Docker")}), EngineError, ["b"]),
        (FakeWork(host=OutputError("the disk is full")), OutputError, []),
        (TeamWork({"a": RankingError("x.csv", "it is no table")}), RankingError, []),
    ],
    ids=["one", "all", "organisers"],
)
def test_without_time_to_look_again_the_status_says_so(
    make, now, work, error, answered
):
    """--once: the others are served, and then the line of the first ends it.

    What is for all to wait for, or for the organisers to mend, ends it at once.
    """
    source = FakeSource("a", "b")

    with pytest.raises(error):
        make(source, work).run(None, now.sleep)

    assert [*source.answers] == answered
    assert now.pauses == []


def test_an_answer_that_is_not_heard_is_sent_again(make, now):
    source, work = FakeSource("a", "b"), FakeWork()
    answer, failed = source.answer, []

    def deaf(submission, *given, **more):
        if submission.key == "a" and len(failed) < 3:
            failed.append(more["is_again"])
            raise PlatformError("it does not answer as the platform does")
        answer(submission, *given, **more)

    source.answer = deaf
    service = make(source, work)
    for _ in range(4):
        served(service)
        now.at += timedelta(hours=1)

    assert failed == [False, True, True]
    assert tries(work, "a") == 1
    assert [*source.answers] == ["b", "a"]


def test_a_claim_that_has_to_wait_lets_what_is_open_go_on(make, now):
    """With one token, it waits for the submission that is postponed here."""
    source = FakeSource("a", "b")
    claim = source.claim

    def one_at_a_time(submission, *, is_again):
        if submission.key == "b" and "a" not in source.answers:
            raise NotNowError("this token's user has claimed another one")
        return claim(submission, is_again=is_again)

    source.claim = one_at_a_time
    served(make(source, TeamWork({"a": EngineError("no Docker")})))

    served(make(source, FakeWork()))

    assert [*source.answers] == ["a", "b"]


# --- The hours of several ---------------------------------------------------------


def test_a_long_measurement_lets_another_one_be_answered_in_time(make, now):
    """It is ended for that, and goes on then; it was claimed an hour later."""
    source = FakeSource("a")
    work = TeamWork({"a": OverflowError("FEXTRA"), "b": OverdueSignal()}, times=3)
    service = make(source, work)
    served(service)
    now.at += timedelta(hours=1)
    source.names = ("a", "b")
    measure = work.measure

    def long(file):
        if file.name == "b.tar.gz" and tries(work, "b") == 0:
            now.at = BEGIN + timedelta(hours=23, minutes=30)
        measure(file)

    work.measure = long

    served(service)

    assert source.answers["a"].message.endswith("[X01]")
    assert source.answers["b"].status == "Succeeded"
    assert [*source.answers] == ["a", "b"]
    assert tries(work, "b") == 2


def test_an_error_while_it_is_ended_is_not_its_own(make, now):
    """What removes a container may fail, and takes the place of the signal."""
    source, work = FakeSource("a"), FakeWork()

    def measure(file):
        try:
            raise OverdueSignal
        finally:
            raise EngineError("it cannot be removed")

    work.measure = measure

    served(make(source, work))

    assert source.answers["a"].message.endswith("[F18]")


# --- The journal ------------------------------------------------------------------


def test_two_users_never_share_a_folder(make, tmp_path, caplog):
    """What an earlier edition may have given to one is not given to the other."""
    source = FakeSource("a")
    served(make(source, FakeWork()))

    def claimable():
        one = Submission(key="x", team="a", user="other", title="other (x)")
        return [one, Submission(key="b", team="b", user="b", title="b")]

    source.claimable = claimable

    entries = served(make(source, FakeWork()))

    assert set(entries) == {"a", "b"}
    assert "other (x): not claimed" in caplog.text


@pytest.mark.parametrize("key", [row.name for row in fields(Entry)])
def test_a_journal_that_this_version_has_not_written_is_refused(tmp_path, key):
    """One of 0.2.0 has neither users nor faults."""
    entry = {"key": "k", "team": "a", "title": "a", "place": {}, "step": "returned"}
    entry |= {"times": {}, "status": "Failed", "message": "", "user": "", "fault": ""}
    del entry[key]
    content = {"source": "a fake", "submissions": [entry]}
    (tmp_path / "journal.json").write_text(json.dumps(content))

    with pytest.raises(MeasurementError, match="not what this version has written"):
        Journal(tmp_path, "a fake")


def test_the_journal_is_closed_to_others(make, tmp_path):
    """It names everybody who takes part."""
    served(make(FakeSource("a"), FakeWork()))

    folder = tmp_path / ".serve"
    served(make(FakeSource("a"), FakeWork()))

    assert stat.S_IMODE(folder.stat().st_mode) & stat.S_IRWXO == 0


def test_a_step_outlives_a_power_cut(make, tmp_path, monkeypatch):
    """Each step, and the answer: on the disk, with its name, before the next begins."""
    synced, fsync = [], os.fsync

    def note(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)

    served(make(FakeSource("a"), FakeWork()))

    folder = tmp_path / ".serve"
    step = [folder / ".journal.json.part", folder]
    answer = [folder / "answers" / ".a.json.part", folder / "answers"]
    assert synced == [*step * 5, *answer, *step * 3]
