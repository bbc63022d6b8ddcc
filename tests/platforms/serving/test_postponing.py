"""What stands in the way of one submission: the others go on, and nobody is blamed."""

import json
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from flare.common.errors import EngineError, OutputError
from flare.common.schema import dump
from flare.measuring.archive.strict import ArchiveError
from flare.platforms.grandchallenge.errors import PlatformError
from flare.platforms.serving.journal import Entry, Journal, Step, status_text
from flare.platforms.serving.serve import Service
from flare.platforms.serving.source import GoneError, NotNowError, Submission
from flare.results.errors import ChangedSettingError, MeasurementError, RankingError
from tests.fakes.submissions import BEGIN, FakeSource, FakeWork, Passing

ALWAYS = 10**4
NO_ENGINE, FAULT = EngineError("no Docker"), OverflowError("FEXTRA")
NOT_THERE = GoneError(PlatformError("status 404"))
LAST = timedelta(hours=23, minutes=30)
"""When an answer has to be on its way."""


@pytest.fixture
def now():
    return Passing()


@pytest.fixture
def make(tmp_path, now):
    def service(source, work):
        return Service(source, work, tmp_path / ".serve", now=now)

    return service


def failing(error, *teams, times=ALWAYS):
    """Work that cannot measure some teams, so often."""
    work = FakeWork()
    work.errors = {("measure", team): [error] * times for team in teams}
    return work


def served(service):
    """Let it work for as long as there is something to do at once."""
    while service.serve_one():
        pass
    return service.journal.entries


def tries(work, team):
    return work.log.count(("measure", team))


def until(now, is_over):
    """Time that passes until something is so; then the service is ended."""

    def sleep(seconds):
        if is_over():
            raise KeyboardInterrupt
        now.at += timedelta(seconds=seconds)
        assert now.at < BEGIN + timedelta(days=368)

    return sleep


def run_until_answered(service, source, now):
    """Let a service run, for ever, but for an answer."""
    with pytest.raises(KeyboardInterrupt):
        service.run(60, until(now, lambda: source.answers))


@pytest.mark.parametrize("error", [FAULT, KeyError("x"), NO_ENGINE, MemoryError()])
def test_an_error_of_one_submission_lets_the_others_be_served(make, tmp_path, error):
    """Of it, nobody is told anything; a fault's traceback is kept."""
    source = FakeSource("a", "b", "c")

    entries = served(make(source, failing(error, "a")))

    assert {key for key, e in entries.items() if e.step is Step.RETURNED} == {"b", "c"}
    assert [*source.answers] == ["b", "c"]
    kept = [file.read_text() for file in tmp_path.glob(".faults/a.txt")]
    assert len(kept) == isinstance(error, OverflowError | KeyError)
    assert all(text.startswith("Traceback") for text in kept)


def test_pauses_grow_from_a_minute_to_an_hour(make, now):
    """1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 = 183 minutes: the ninth try."""
    work = failing(NO_ENGINE, "a", times=8)
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


@pytest.mark.parametrize("step", [("measure", "a"), ("download", "a"), "host"])
def test_a_clock_that_is_set_back_makes_no_pause_longer(make, now, step):
    """It was a year ahead at the fourth error; then the next try is 8 minutes away."""
    source, work = FakeSource("a", now=now), FakeWork()
    failing_part = source if step == ("download", "a") else work
    failing_part.errors[step] = [NO_ENGINE] * 4
    service = make(source, work)
    now.at += timedelta(days=365)
    with pytest.raises(KeyboardInterrupt):
        service.run(60, until(now, lambda: not failing_part.errors[step]))
    now.at = BEGIN

    run_until_answered(service, source, now)

    assert source.answers["a"]["status"] == "Succeeded"
    assert source.at["a"] <= timedelta(minutes=8)


def test_a_clock_that_is_set_back_makes_no_patience_longer(make, now):
    """What holds the only claim is answered half an hour after the next error."""
    source, work = OneAtATime("a", now=now), failing(NO_ENGINE, "a")
    service = make(source, work)
    now.at += timedelta(days=1)
    served(service)
    now.at = BEGIN

    run_until_answered(service, source, now)

    assert source.at["a"] <= timedelta(minutes=1 + 30)


@pytest.mark.parametrize(("error", "code"), [(FAULT, "[X01]"), (NO_ENGINE, "[H07]")])
@pytest.mark.parametrize("is_reached", [True, False])
def test_it_is_answered_when_its_hours_are_nearly_over(
    make, now, error, code, is_reached
):
    """Not as a fault of its own, and though nothing can be claimed.

    Then the pauses are of an hour, half of which is all the time that is left.
    """
    source = FakeSource("a", now=now)
    service = make(source, failing(error, "a"))
    served(service)
    if not is_reached:
        source.errors["claimable"] = [PlatformError("it cannot be reached")] * ALWAYS
    run_until_answered(service, source, now)

    assert source.answers["a"]["status"] == "Failed"
    assert service.journal.entries["a"].fault
    assert source.answers["a"]["error_message"].endswith(code)
    assert "no Docker" not in source.answers["a"]["error_message"]
    assert LAST <= source.at["a"] < LAST + timedelta(minutes=2)


def test_a_file_that_never_comes_is_the_submission_s_fault(make, now):
    """Told when its hours are over, and not before."""
    source = FakeSource("x", "a", "b")
    told = ArchiveError("a.tar.gz", "the platform does not have it any more")
    gone = [GoneError(PlatformError("status 404"), told)] * ALWAYS
    source.errors = {("download", "x"): gone, ("download", "a"): gone}
    service = make(source, FakeWork())

    served(service)
    assert [*source.answers] == ["b"]
    now.at += LAST + timedelta(minutes=1)
    served(service)

    assert source.answers["a"]["error_message"].endswith("[F15]")


def test_one_whose_hours_are_over_goes_first(make, now):
    """Although another one has waited for longer."""
    source, work = FakeSource("a"), failing(FAULT, "a", "b")
    service = make(source, work)
    served(service)
    now.at += timedelta(hours=1)
    source.names = ("a", "b")
    served(service)
    now.at = BEGIN + LAST

    assert service.serve_one()

    assert [*source.answers] == ["a"]


# --- What concerns all ------------------------------------------------------------


def test_two_in_a_row_let_the_others_wait(make, now):
    """One may be that submission's alone; of two, the network may be the reason."""
    source = FakeSource(*"abcdef")
    away = [PlatformError("it cannot be reached")] * ALWAYS
    source.errors = {("download", team): away for team in "abc"}
    service = make(source, FakeWork())

    assert set(served(service)) == {"a", "b"}
    for _ in range(2):
        now.at += timedelta(minutes=1)
        assert set(served(service)) == {"a", "b", "c"}
    now.at += timedelta(minutes=1)

    served(service)

    assert set(source.answers) == {"d", "e", "f"}


def test_two_in_a_row_may_be_days_apart(make, now):
    """Between them nothing waited, and nothing was answered either."""
    source = FakeSource("a")
    away = [PlatformError("it cannot be reached")] * ALWAYS
    source.errors = {("download", team): away for team in "ab"}
    service = make(source, FakeWork())
    served(service)
    served(service)
    source.names = ("a", "b")
    served(service)
    source.names = ("a", "b", "c")

    assert set(served(service)) == {"a", "b"}


def test_errors_of_sixteen_submissions_hold_nobody_up(make, now):
    """The computer was seen to work before each claim: each error is one's own."""
    bad = [f"bad{number}" for number in range(16)]
    source = FakeSource(*bad, "good")
    work = failing(NO_ENGINE, *bad)

    served(make(source, work))

    assert [*source.answers] == ["good"]
    assert work.log.count(("host", "")) == 17


def test_a_computer_that_cannot_measure_claims_nothing(make, now):
    """No engine, or no room: nothing is begun, and it is looked at less and less."""
    source, work, looked = FakeSource("a"), FakeWork(), []

    def check_host():
        looked.append((now() - BEGIN) / timedelta(minutes=1))
        if len(looked) < 9:
            raise NO_ENGINE

    work.check_host = check_host
    run_until_answered(make(source, work), source, now)

    assert looked == [0, 1, 2, 4, 8, 16, 32, 64, 124]
    assert source.answers["a"]["status"] == "Succeeded"
    assert source.log.count(("claim", "a", False)) == 1


@pytest.mark.parametrize(
    ("names", "expected"), [("", [0, 1, 2, 4, 5, 6, 7]), ("b", [0, 1, 2, 4, 4, 5, 6])]
)
def test_pauses_begin_anew_where_nothing_waits_or_one_was_answered(
    make, now, names, expected
):
    """The fourth look is without an error."""
    source, looked = FakeSource(*names), []
    real = source.claimable

    def claimable():
        looked.append((now() - BEGIN) / timedelta(minutes=1))
        if len(looked) == 7:
            raise KeyboardInterrupt
        if len(looked) != 4:
            raise PlatformError("it cannot be reached")
        return real()

    source.claimable = claimable
    with pytest.raises(KeyboardInterrupt):
        make(source, FakeWork()).run(60, now.sleep)

    assert looked == expected


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [(OSError(116, "Stale file handle", "/results"), False), (KeyError("x"), True)],
    ids=["host", "program"],
)
@pytest.mark.parametrize("step", ["claimable", "host"])
@pytest.mark.parametrize("is_full", [False, True])
def test_no_error_ends_it_while_it_looks_for_work(
    make, now, tmp_path, error, is_kept, step, is_full
):
    """A file server that starts again, or a fault of ours; the traceback is kept.

    Unless the disk is full.
    """
    source, work = FakeSource("a"), FakeWork()
    if is_full:
        (tmp_path / ".faults").write_text("no folder can be made here")
    (source if step == "claimable" else work).errors[step] = [error] * 3
    run_until_answered(make(source, work), source, now)

    assert source.answers["a"]["status"] == "Succeeded"
    assert now.at >= BEGIN + timedelta(minutes=1 + 1 + 2)
    kept = [file.read_text() for file in tmp_path.glob(".faults/*")]
    is_there = is_kept and not is_full
    assert ["KeyError: 'x'" in text for text in kept] == [True] * is_there


@pytest.mark.parametrize("step", ["claim", "answer"])
def test_what_the_source_does_not_know_any_more_is_given_up(make, now, step):
    """When its 24 hours are over: until then, only rights may be missing."""
    source, at = FakeSource("a"), []
    source.errors[step] = [NOT_THERE] * ALWAYS
    service = make(source, FakeWork())
    while now.at < BEGIN + timedelta(hours=30):
        before = len(source.log)
        served(service)
        at += [now() - BEGIN] * any(call[0] == step for call in source.log[before:])
        now.sleep(60)

    (entry,) = service.journal.entries.values()
    assert entry.step is Step.LOST
    assert "status 404" in entry.message
    assert all(one < timedelta(hours=24) for one in at[:-1])
    assert timedelta(hours=24) <= at[-1] <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("step", "error", "answered"),
    [
        (("measure", "a"), NO_ENGINE, ["b"]),
        ("host", OutputError("the disk is full"), []),
        (("measure", "a"), RankingError("x.csv", "it is no table"), []),
    ],
    ids=["one", "all", "organisers"],
)
def test_without_time_to_look_again_the_status_says_so(
    make, now, step, error, answered
):
    """--once: the others are served, and then the line of the first ends it.

    What is for all to wait for, or for the organisers to mend, ends it at once.
    """
    source, work = FakeSource("a", "b"), FakeWork()
    work.errors[step] = [error] * ALWAYS

    with pytest.raises(type(error)):
        make(source, work).run(None, now.sleep)

    assert [*source.answers] == answered
    assert now.pauses == []


def test_it_is_told_that_all_that_is_left_has_to_wait(make, now):
    """--once: a user who cannot claim is no success, whatever was answered before."""
    source = FakeSource("a", "b")
    source.errors["claim", "b"] = [NotNowError("a user can claim only once")]

    with pytest.raises(MeasurementError, match=r"b.tar.gz: it has to wait: a user can"):
        make(source, FakeWork()).run(None, now.sleep)

    assert [*source.answers] == ["a"]


def test_a_changed_option_ends_the_service_with_its_line(make, now):
    """Nobody but the operator can mend it: no submission waits for it, or is told."""
    source = FakeSource("a")
    error = ChangedSettingError("a", "measured with timeout_s 8.0, now it is 30.0")
    service = make(source, failing(error, "a"))

    with pytest.raises(ChangedSettingError):
        service.run(60, now.sleep)

    assert now.pauses == []
    assert source.answers == {}
    served(make(source, FakeWork()))  # with the option as it was
    assert source.answers["a"]["status"] == "Succeeded"


# --- Where one can be claimed at a time -------------------------------------------


class OneAtATime(FakeSource):
    """Refuses a claim while another one is open, as the platform does."""

    is_one_at_a_time = True
    claimed = None

    def claim(self, submission, *, is_again):
        if self.claimed not in (None, submission.key, *self.answers):
            raise NotNowError("another one is claimed")
        self.claimed = submission.key
        return super().claim(submission, is_again=is_again)


GONE = GoneError(PlatformError("status 404"), ArchiveError("a.tar.gz", "it is gone"))


@pytest.mark.parametrize(
    ("step", "error", "minutes", "code"),
    [
        ("measure", NO_ENGINE, 30, "[H07]"),
        ("measure", FAULT, 30, "[X01]"),
        ("download", PlatformError("status 403"), 30, "[H07]"),
        ("download", GONE, 10, "[F15]"),
    ],
    ids=["host", "program", "network", "gone"],
)
def test_what_is_postponed_holds_the_only_claim_for_a_while_alone(
    make, now, step, error, minutes, code
):
    """Not for the day that it has: the next one is served right behind it."""
    source, work = OneAtATime("a", "b", now=now), FakeWork()
    failing_part = source if step == "download" else work
    failing_part.errors[step, "a"] = [error] * ALWAYS
    service = make(source, work)

    while "b" not in source.answers:
        served(service)
        now.sleep(60)

    assert source.answers["a"]["status"] == "Failed"
    assert source.answers["a"]["error_message"].endswith(code)
    assert source.at["a"] == timedelta(minutes=minutes)
    assert source.at["b"] - source.at["a"] <= timedelta(minutes=1)


def test_the_patience_can_be_chosen_and_begins_anew_with_each_case_that_is_done(
    tmp_path, now
):
    """Six minutes behind the last error at which something new was done."""
    source, work = OneAtATime("a", now=now), failing(NO_ENGINE, "a")
    service = Service(source, work, tmp_path, patience_s=360, now=now)
    while "a" not in source.answers:
        served(service)
        work.finished = int(now.at > BEGIN)
        now.sleep(60)

    # Errors at 0, 1, 3 and 7 minutes: at the third one, a case was done.
    assert source.at["a"] == timedelta(minutes=3 + 6)


def test_a_short_patience_is_kept_to_the_second(tmp_path, now):
    """Neither the pause of a minute nor the time to look again makes it longer."""
    source, work = OneAtATime("a", now=now), failing(NO_ENGINE, "a")
    service = Service(source, work, tmp_path, patience_s=20, now=now)

    run_until_answered(service, source, now)

    assert source.at["a"] == timedelta(seconds=20)


def test_a_claim_that_took_long_to_be_heard_is_measured_all_the_same(make, now):
    """The platform is away for an hour; then all works."""
    source = OneAtATime("a", now=now)
    source.errors["claim"] = [PlatformError("it cannot be reached")] * 7
    run_until_answered(make(source, FakeWork()), source, now)

    assert source.answers["a"]["status"] == "Succeeded"
    assert source.at["a"] > timedelta(hours=1)


def test_an_answer_that_is_not_heard_is_sent_again(make, now):
    source, work = FakeSource("a", "b"), FakeWork()
    source.errors["answer", "a"] = [PlatformError("it does not answer")] * 3
    service = make(source, work)
    for _ in range(4):
        served(service)
        now.at += timedelta(hours=1)

    assert source.log.count(("answer", "a", False)) == 1
    assert source.log.count(("answer", "a", True)) == 3
    assert tries(work, "a") == 1
    assert [*source.answers] == ["b", "a"]


def test_a_claim_that_has_to_wait_is_not_remembered(make, now):
    """What is open goes on, also after a restart, and then it is claimed.

    With one token, it waits for the submission that is postponed here.
    """
    source = FakeSource("a", "b")
    source.errors["claim", "b"] = [NotNowError("this user has claimed another one")] * 9
    service = make(source, failing(NO_ENGINE, "a"))
    for minutes in range(5):
        assert set(served(service)) == {"a"}
        assert source.log.count(("claim", "b", False)) == minutes + 1
        now.at += timedelta(minutes=1)

    source.errors.clear()
    served(make(source, FakeWork()))

    assert [*source.answers] == ["a", "b"]


# --- The journal ------------------------------------------------------------------


def test_two_users_never_share_a_folder(make, caplog):
    """What an earlier edition may have given to one is not given to the other."""
    source = FakeSource("a")
    served(make(source, FakeWork()))
    one = Submission(key="x", team="a", user="other", title="other (x)")
    other = Submission(key="b", team="b", user="b", title="b")
    source.claimable = lambda: [one, other]

    assert set(served(make(source, FakeWork()))) == {"a", "b"}
    assert caplog.text.count("other (x): not claimed") == 1


TIMES = dict.fromkeys(("claiming", "returned"), str(BEGIN))
ENTRY = dump(Entry(key="k", team="a", title="a", step=Step.RETURNED, times=TIMES))


@pytest.mark.parametrize(
    "content",
    [
        *(1, {}, {"source": "a fake", "submissions": [1]}),
        *({key: ENTRY[key] for key in ENTRY if key != left} for left in ENTRY),
        *({**ENTRY, key: 1} for key in (*ENTRY, "else")),
        *({**ENTRY, "times": times} for times in (
            *({"claiming": str(BEGIN)}, {"returned": str(BEGIN)}),
            *({**TIMES, "claiming": at} for at in (1, "", "9999-12-31T23:59")),
        )),
        {**ENTRY, "place": {"image": 1}},
    ],
)  # fmt: skip
def test_a_journal_that_this_version_has_not_written_is_refused(tmp_path, content):
    """By whoever reads it. One of 0.2.0 has neither users nor faults."""
    if content != 1 and "submissions" not in content:
        content = {"source": "a fake", "submissions": [ENTRY, content]}
    (tmp_path / "journal.json").write_text(json.dumps(content))

    for read in (lambda: Journal(tmp_path, "a fake"), lambda: status_text(tmp_path, 1)):
        with pytest.raises(MeasurementError, match="not what this version has written"):
            read()


def test_an_answer_that_this_version_has_not_written_is_refused(make, tmp_path):
    """Nothing of it is sent; one of earlier versions had no status."""
    source = FakeSource("a")
    source.errors["answer", "a"] = [PlatformError("status 503")]
    service = make(source, FakeWork())
    served(service)
    (entry,) = service.journal.entries.values()

    for content in ({"metrics": {}, "message": ""}, {"status": "Succeeded"}, 1):
        (tmp_path / ".serve" / "answers" / "a.json").write_text(json.dumps(content))
        with pytest.raises(MeasurementError, match="not what this version has written"):
            service.journal.read_answer(entry)


def test_a_step_outlives_a_power_cut_and_is_closed_to_others(
    make, tmp_path, monkeypatch
):
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
    make(FakeSource("a"), FakeWork())  # it names everybody who takes part
    assert stat.S_IMODE(folder.stat().st_mode) & stat.S_IRWXO == 0
