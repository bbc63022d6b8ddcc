"""A phase as a source of submissions, with a platform that plays by the documents."""

import logging

import pytest

from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.grandchallenge import client as client_module
from flare.platforms.grandchallenge import partial_file
from flare.platforms.grandchallenge.client import Client
from flare.platforms.grandchallenge.errors import PlatformError
from flare.platforms.grandchallenge.external import PhaseSource
from flare.platforms.serving.journal import Step
from flare.platforms.serving.serve import Service
from flare.platforms.serving.source import (
    GoneError,
    NotNowError,
    NotOursError,
    failed,
    succeeded,
)
from tests.fakes.platform import CANCELLED, CLAIMED, PHASE, TOKEN, UNKNOWN
from tests.fakes.submissions import FakeWork, Passing

STRANGER = r"does not answer as grand-challenge\.org"
GOOD, BAD = succeeded({"aggregates": {"runtime_s": 3.5}}), failed("none")


@pytest.fixture
def platform(external_platform):
    """A platform with a phase."""
    return external_platform


@pytest.fixture
def source(platform, pauses):
    """The phase, for a service whose pauses take no time."""
    return make_source(platform, pauses)


def make_source(platform, pauses, *tokens, used=()):
    clients = [Client(platform.api, t, pauses.append) for t in tokens or (TOKEN,)]
    return PhaseSource(PHASE, *clients, used=used)


def waiting(platform, source, user="jane", archive=b"image", **more):
    """The one submission that can be claimed."""
    platform.submit(user, archive, **more)
    (submission,) = source.claimable()
    return submission


def claimed(platform, source, **more):
    return source.claim(waiting(platform, source, **more), is_again=False)


# --- What waits -------------------------------------------------------------------


def test_the_oldest_submission_of_the_phase_comes_first(platform, source):
    """The one that was handed in last has the earliest date here."""
    platform.submit("young", b"")
    platform.submit("old", b"")
    platform.submit("other", b"", phase="00000000-0000-0000-0000-00000000000f")

    found = source.claimable()

    assert [submission.team for submission in found] == ["old", "young"]
    assert found[0].title == "old (00000000)"
    assert "Signature" not in str(found[0].place)


def change_replies(monkeypatch, owner, name, change):
    """Let what a call returns be changed first."""
    real = getattr(owner, name)

    def call(*words, **more):
        return change(real(*words, **more))

    monkeypatch.setattr(owner, name, call)


def test_one_that_is_described_oddly_hides_no_other(
    platform, source, caplog, monkeypatch
):
    """It is said once."""
    odd, good = platform.submit("odd", b""), platform.submit("jane", b"")

    def change(reply):
        for value in reply.content:
            value["algorithm_image"] = value["pk"] != odd and value["algorithm_image"]
        return reply

    change_replies(monkeypatch, Client, "call", change)

    for _ in range(2):
        assert [one.key for one in source.claimable()] == [good]
    assert caplog.text.count(f"{odd}: not claimed") == 1


def test_a_submission_of_a_deleted_account_is_served(platform, source, monkeypatch):
    """The platform says null where its creator was."""
    pk = platform.submit("jane", b"image")

    def change(reply):
        values = reply.content if isinstance(reply.content, list) else [reply.content]
        for value in values:
            value["submission"]["creator"] = None
        return reply

    change_replies(monkeypatch, Client, "call", change)
    (submission,) = source.claimable()

    assert source.claim(submission, is_again=False) == submission
    assert (submission.key, submission.team) == (pk, "deleted-00000000")


# --- Claims -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "change", "faults", "error", "match"),
    [
        (waiting, {"status": CLAIMED, "claimed_by": "x"}, [], NotOursError, "another"),
        (claimed, {"status": CANCELLED}, [], NotOursError, "status is Cancelled"),
        (claimed, {}, [], None, ""),
        (waiting, {}, ["obeyed html"], None, ""),
        (waiting, {}, ["deaf"], None, ""),
        (waiting, {}, ["other"], PlatformError, STRANGER),
        (waiting, {}, ["object"], PlatformError, STRANGER),
        (waiting, {}, [403], PlatformError, "status 403: A fault of Bearer .token"),
        (waiting, None, [], GoneError, "status 404: No Evaluation matches"),
        (claimed, {}, [403], PlatformError, "status 403: A fault of Bearer .token"),
    ],
    ids=["another was faster", "ours is over", "ours, after a kill", "behind a page",
         "obeyed, not answered", "of another one", "not heard", "refused", "gone",
         "asked about in vain"],
)  # fmt: skip
def test_a_claim_is_ours_only_if_the_platform_says_so(
    platform, source, begin, change, faults, error, match
):
    """After a kill, and behind a page, it is not known whether it was heard."""
    submission = begin(platform, source)
    is_again = begin is claimed or change is None
    if change is None:
        del platform.evaluations[submission.key]
    else:
        platform.evaluations[submission.key] |= change
    platform.faults["status" if is_again else "claim"] = faults

    if error:
        with pytest.raises(error, match=match):
            source.claim(submission, is_again=is_again)
        return
    assert source.claim(submission, is_again=is_again) == submission
    found = platform.evaluations[submission.key]
    assert (found["status"], found["claimed_by"]) == (CLAIMED, "evaluator")
    assert source.claimable() == []


def test_a_claim_of_another_user_s_submission_is_refused(
    platform, source, monkeypatch, tmp_path
):
    """The listing has said whose folder it gets; nothing of it is measured."""
    pk = platform.submit("jane", b"image")

    def change(reply):
        reply[1]["submission"]["creator"] = {"username": "john"}
        return reply

    change_replies(monkeypatch, platform.RequestHandlerClass, "claim", change)
    service = Service(source, FakeWork(), tmp_path, now=Passing())
    while service.serve_one():
        pass

    entry = service.journal.entries[pk]
    assert (entry.step, entry.user, entry.team) == (Step.LOST, "jane", "jane")
    assert entry.message == "at the claim, the platform calls it john's, and not jane's"
    assert platform.answers()["jane"] == []


def test_a_claim_that_nobody_has_heard_is_made_anew(platform, source):
    submission = waiting(platform, source)

    with pytest.raises(NotNowError, match="was not heard"):
        source.claim(submission, is_again=True)


@pytest.mark.parametrize("answer", [None, GOOD, BAD])
def test_a_user_who_cannot_claim_a_second_one_is_told_why(platform, source, answer):
    """Somebody is at work; or a user can claim once, and what is finished counts."""
    platform.forgets_finished = False
    first = claimed(platform, source)
    if answer:
        source.answer(first, answer, is_again=False)
    second = waiting(platform, source, "john")

    with pytest.raises(NotNowError, match=r"is at work.* claim only once"):
        source.claim(second, is_again=False)

    assert platform.calls("claim") == [200, 400]
    assert source.claimable() == [second]


@pytest.mark.parametrize("words", ["Nur eine.", {"non_field_errors": ["x"]}])
def test_why_a_claim_is_refused_is_told_by_states_and_not_by_words(
    platform, source, monkeypatch, words
):
    """Another edition, or language, of the platform: 400 stays, sentences may not."""
    first = claimed(platform, source)
    second = waiting(platform, source, "john")

    def change(reply):
        return (400, {"status": words}) if reply[0] == 400 else reply

    change_replies(monkeypatch, platform.RequestHandlerClass, "claim", change)

    with pytest.raises(NotNowError, match=r"Nur eine|non_field_errors"):
        source.claim(second, is_again=False)
    with pytest.raises(NotOursError):
        source.claim(first, is_again=False)


# --- Several tokens ---------------------------------------------------------------

OTHER = "77aa-other-evaluator"
MARK, OTHER_MARK = "a1a82aab", "08477e94"
"""What `printf %s TOKEN | sha256sum` begins with."""


@pytest.fixture
def two_users(platform):
    """Two external evaluators, of whom each can claim once, for ever."""
    platform.users[OTHER] = "second"
    platform.forgets_finished = False
    for user in ("jane", "john", "jim"):
        platform.submit(user, user.encode())
    return platform


def claim_next(source):
    return source.claim(source.claimable()[0], is_again=False)


@pytest.mark.parametrize("is_late", [True, False])
def test_each_token_claims_once_and_answers_what_it_has_claimed(
    two_users, pauses, is_late
):
    """Without a refused call on the way; a third submission has to wait."""
    source, open_claims = make_source(two_users, pauses, TOKEN, OTHER), []

    for user in ("evaluator", "second"):
        open_claims.append(claim_next(source))
        claim = two_users.evaluations[open_claims[-1].key]
        assert claim["claimed_by"] == user
        if not is_late:
            source.answer(open_claims.pop(), GOOD, is_again=False)
    for submission in reversed(open_claims):
        source.answer(submission, GOOD, is_again=False)

    assert two_users.calls("claim") == two_users.calls("update") == [200, 200]
    with pytest.raises(NotNowError, match="claim only once"):
        claim_next(source)


def test_unused_tokens_are_counted_and_used_first(two_users, pauses, caplog):
    """As the journal of an earlier start has it: by a mark that tells no token."""
    caplog.set_level(logging.INFO)
    first = make_source(two_users, pauses, TOKEN, OTHER)
    submission = claim_next(first)
    assert submission.place["token"] == MARK
    assert TOKEN not in str(submission)

    again = make_source(two_users, pauses, TOKEN, OTHER, used=[MARK])

    assert claim_next(again).place["token"] == OTHER_MARK
    again.answer(submission, GOOD, is_again=True)
    assert two_users.calls("claim") == [200, 200]
    assert len(two_users.evaluations[submission.key]["answers"]) == 1
    counts = [one[0] for one in caplog.messages if "2 tokens have claimed no" in one]
    assert counts == ["2", "1", "1", "0"]


def test_a_token_that_is_used_up_costs_no_pause(two_users, pauses, tmp_path):
    """What was claimed with it is in the journal of another service."""
    claim_next(make_source(two_users, pauses))
    source = make_source(two_users, pauses, TOKEN, OTHER)
    service = Service(source, FakeWork(), tmp_path, now=Passing())

    while service.serve_one():
        pass

    (entry,) = service.journal.entries.values()
    assert (entry.step, entry.place["token"]) == (Step.RETURNED, OTHER_MARK)
    assert two_users.calls("claim") == [200, 400, 200, 400]


def test_an_answer_waits_for_the_token_that_has_claimed(two_users, pauses, tmp_path):
    """The archive does not: every external evaluator may fetch it."""
    submission = claim_next(make_source(two_users, pauses))
    other = make_source(two_users, pauses, OTHER)

    assert other.download(submission, tmp_path).read_bytes() == b"jim"
    with pytest.raises(GoneError, match=f"claimed with another token, {MARK}"):
        other.answer(submission, GOOD, is_again=True)

    assert two_users.calls("update") == []


def test_who_is_no_evaluator_does_not_hide_what_waits(two_users, pauses, monkeypatch):
    """For such a user nothing waits, and nothing is refused."""
    handler = two_users.RequestHandlerClass
    real = handler.claimable

    def claimable(self):
        return real(self) if self.user() == "second" else (200, [])

    monkeypatch.setattr(handler, "claimable", claimable)

    submission = claim_next(make_source(two_users, pauses, TOKEN, OTHER))

    assert two_users.evaluations[submission.key]["claimed_by"] == "second"


def test_a_token_that_has_run_out_is_named_once_and_left_out(two_users, pauses, caplog):
    """By its mark. Where it is the only one, nothing goes on without it."""
    caplog.set_level(logging.INFO)
    del two_users.users[TOKEN]
    source = make_source(two_users, pauses, TOKEN, OTHER)

    for _ in range(2):
        assert len(source.claimable()) == 3
    submission = claim_next(source)

    assert two_users.evaluations[submission.key]["claimed_by"] == "second"
    assert caplog.text.count(f"The token {MARK} is left out: ") == 1
    assert "0 of 2 tokens have claimed nothing yet" in caplog.text
    assert TOKEN not in caplog.text
    with pytest.raises(PlatformError, match="does not accept the token"):
        make_source(two_users, pauses).claimable()


@pytest.mark.parametrize("trouble", ["run out", "no evaluator", "at fault"])
def test_what_a_token_cannot_claim_is_left_to_the_next_one(
    platform, pauses, tmp_path, monkeypatch, trouble
):
    """It was listed to the first user, whose claim fails just then, and for ever."""
    handler, lost = platform.RequestHandlerClass, []
    for call in ("claim", "one", "claimable"):
        monkeypatch.setattr(handler, call, without_rights(getattr(handler, call), lost))
    platform.users[OTHER] = "second"
    platform.faults["claim"] = [500] * 5 * (trouble == "at fault")
    pk = platform.submit("jane", b"image")
    work, now = FakeWork(), Passing()
    source = make_source(platform, pauses, TOKEN, OTHER)
    service = Service(source, work, tmp_path, now=now)

    def check_host():
        if trouble == "no evaluator":
            lost.append("evaluator")
        else:
            platform.users.pop(TOKEN, None)

    work.check_host = check_host
    for _ in range(10):
        service.serve_one()
        now.sleep(60)

    entry, claim = service.journal.entries[pk], platform.evaluations[pk]
    assert (entry.step, entry.place["token"]) == (Step.RETURNED, OTHER_MARK)
    assert (claim["claimed_by"], len(claim["answers"])) == ("second", 1)


def without_rights(call, lost):
    """A call as the platform answers it to users who may not see what it is about."""

    def answer(handler):
        if handler.user() in lost:
            is_listing = call.__name__ == "claimable"
            return (200, []) if is_listing else UNKNOWN
        return call(handler)

    return answer


@pytest.mark.parametrize("status", [CANCELLED, "Succeeded"])
def test_what_somebody_has_answered_is_not_claimed_again(two_users, pauses, status):
    """Though the token that may have claimed it has run out."""
    source = make_source(two_users, pauses, TOKEN, OTHER)
    submission = source.claimable()[0]
    del two_users.users[TOKEN]
    two_users.evaluations[submission.key]["status"] = status

    with pytest.raises(NotOursError, match=f"waits for nobody: its status is {status}"):
        source.claim(submission, is_again=True)


# --- Answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (GOOD, {"status": "Succeeded", "metrics": {"aggregates": {"runtime_s": 3.5}}}),
        (
            failed("a\nb" + "x" * 2000),
            {"status": "Failed", "error_message": "a\\nb" + "x" * 1020},
        ),
    ],
    ids=["metrics", "a line, cut"],
)
@pytest.mark.parametrize("is_heard", [True, False])
def test_an_answer_is_sent_once_whatever_is_known_after_a_kill(
    platform, source, answer, sent, is_heard
):
    submission = claimed(platform, source)
    if is_heard:
        source.answer(submission, answer, is_again=False)

    source.answer(submission, answer, is_again=True)

    assert platform.answers()["jane"] == [sent]


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"status": CANCELLED}, NotOursError, "You need to claim an evaluation before"),
        ({"status": "Succeeded"}, NotOursError, "You need to claim"),
        ({"claimed_by": "other"}, PlatformError, "You do not have permission to upd"),
        (None, GoneError, "status 404: No Evaluation matches"),
    ],
    ids=["nobody waits", "another has answered", "another has it", "gone"],
)
def test_an_answer_that_does_not_arrive(platform, source, change, error, match):
    """Nothing is lost before the platform says that it waits for no answer."""
    submission = claimed(platform, source)
    if change is None:
        del platform.evaluations[submission.key]
    else:
        platform.evaluations[submission.key] |= change

    with pytest.raises(error, match=match):
        source.answer(submission, GOOD, is_again=False)


@pytest.mark.parametrize("is_again", [False, True])
@pytest.mark.parametrize(
    ("tokens", "status", "error"),
    [
        ((TOKEN, OTHER), CLAIMED, GoneError),
        ((TOKEN, OTHER), CANCELLED, NotOursError),
        ((TOKEN, OTHER), "Succeeded", NotOursError),
        ((TOKEN,), CANCELLED, GoneError),
    ],
)
def test_an_answer_whose_token_has_run_out_has_an_end(
    two_users, pauses, tokens, status, error, is_again
):
    """The platform's status, or else that of the 24 hours: see test_postponing.py."""
    source = make_source(two_users, pauses, *tokens)
    submission = claim_next(source)
    two_users.evaluations[submission.key]["status"] = status
    del two_users.users[TOKEN]

    if is_again and status == "Succeeded":
        source.answer(submission, GOOD, is_again=True)
        return
    with pytest.raises(error):
        source.answer(submission, GOOD, is_again=is_again)


@pytest.mark.parametrize("answer", [GOOD, BAD])
def test_an_answer_counts_as_heard_when_the_platform_says_so(platform, source, answer):
    """What something between says with status 200 is nothing: it is sent again."""
    submission = claimed(platform, source)
    platform.faults["update"] = ["object"]

    with pytest.raises(PlatformError, match=STRANGER):
        source.answer(submission, answer, is_again=False)
    assert platform.answers()["jane"] == []
    source.answer(submission, answer, is_again=True)

    assert [one["status"] for one in platform.answers()["jane"]] == [answer["status"]]


@pytest.mark.parametrize(
    ("fault", "heard"), [("html", [200]), ("obeyed html", []), ("deaf", [])]
)
def test_a_page_is_no_answer_either(platform, source, fault, heard):
    """And what was heard behind it is not sent again."""
    submission = claimed(platform, source)
    platform.faults["update"] = [fault]

    source.answer(submission, GOOD, is_again=False)

    assert len(platform.answers()["jane"]) == 1
    assert [status for status in platform.calls("update") if status == 200] == heard


# --- Downloads --------------------------------------------------------------------

MODEL = bytes(range(255)) * 4000


@pytest.mark.parametrize("fault", [None, "short", "reset"])
def test_an_image_and_its_model_are_fetched_once_by_signed_addresses(
    platform, source, tmp_path, fault
):
    """The token goes to the platform alone: the fake refuses it elsewhere."""
    submission = claimed(platform, source, model=MODEL)
    platform.faults["model file"] = [fault]

    for _ in range(2):  # what is there is not fetched again
        file = source.download(submission, tmp_path)

    assert file == tmp_path / "jane.tar.gz"
    assert file.read_bytes() == b"image"
    assert (tmp_path / "jane.model.tar.gz").read_bytes() == MODEL
    assert len([*tmp_path.iterdir()]) == 2
    assert "secret" not in str(submission.place)
    assert platform.calls("file") == [(200, 5)]
    rest = len(MODEL) // 2
    last = (206, rest) if fault == "short" else (200, len(MODEL))
    assert platform.calls("model file")[-1] == last


def test_a_file_that_is_gone_and_has_no_address_any_more(
    platform, source, tmp_path, monkeypatch
):
    submission = claimed(platform, source)
    platform.faults["download"] = [404]
    handler = platform.RequestHandlerClass
    monkeypatch.setattr(handler, "address", lambda _: (200, {"image": ""}))

    with pytest.raises(GoneError, match="status 404"):
        source.download(submission, tmp_path)


@pytest.mark.parametrize(("kind", "wrong"), [("", ArchiveError), ("model", ModelError)])
@pytest.mark.parametrize("trouble", ["403", "404", "410", "large", "none"])
def test_a_file_that_is_not_to_be_had(
    platform, source, tmp_path, monkeypatch, kind, wrong, trouble
):
    """Only what its author can bring about is the submission's fault.

    That it is gone is told if it never comes back; it may, as here.
    """
    monkeypatch.setattr(partial_file, "LARGEST_BYTES", 9)
    long = b"b" * (9 + (trouble == "large"))
    sent = {"archive": b"image", "model": long} if kind else {"archive": long}
    submission = claimed(platform, source, **sent)
    expected, match = wrong, "it is larger than|the platform has no file of the"
    if trouble.isdecimal():
        platform.faults[kind or "download"] = [int(trouble)] * 2
        expected = PlatformError if trouble == "403" else GoneError
        match = rf"not give jane\S* \(status {trouble}\)"
    if trouble == "none":
        submission.place[kind or "image"] = ""

    with pytest.raises(expected, match=match) as error:
        source.download(submission, tmp_path)

    if expected is GoneError:
        assert error.value.error.code == "H09"
        assert error.value.team_error.code == wrong.code
        source.download(submission, tmp_path)
    elif not kind:
        assert [*tmp_path.glob("*.gz")] == []


@pytest.mark.parametrize(
    ("is_moved", "faults"),
    [(True, []), (False, ["page"] * 2)],
    ids=["moved", "a proxy's page"],
)
def test_a_file_is_asked_for_again(platform, source, tmp_path, is_moved, faults):
    """Its address is kept from the claim; the platform knows where it is now."""
    submission = claimed(platform, source)
    if is_moved:
        platform.evaluations[submission.key]["file"] = "y.tar.gz"
    platform.faults["file"] = faults

    file = source.download(submission, tmp_path)

    assert file.read_bytes() == b"image"
    assert len(platform.calls("download")) >= 2


# --- A network that fails ---------------------------------------------------------


def serve_one(source, folder):
    (submission,) = source.claimable()
    submission = source.claim(submission, is_again=False)
    source.download(submission, folder)
    source.answer(submission, GOOD, is_again=False)


@pytest.mark.parametrize("fault", [500, 429, "reset"])
@pytest.mark.parametrize("call", ["claimable", "claim", "download", "file", "update"])
def test_a_fault_that_passes_is_not_noticed(
    platform, source, pauses, tmp_path, call, fault
):
    """Three of them in a row; each pause is twice as long as the one before."""
    platform.submit("jane", b"image")
    platform.faults[call] = [fault] * 3

    serve_one(source, tmp_path)

    assert pauses == [1, 2, 4]
    assert len(platform.answers()["jane"]) == 1


@pytest.mark.parametrize("chance", [0.5, 0.0, 1.0])
def test_faults_of_two_kinds_are_counted_together(
    platform, source, pauses, tmp_path, monkeypatch, chance
):
    """A part that nobody has asked for, and a single 503 at the fifth try.

    Then it is given up before others wait for long: the service tries it again. Chance
    makes pauses longer or shorter by half.
    """
    monkeypatch.setattr(client_module.random, "random", lambda: chance)
    submission = claimed(platform, source)
    platform.faults["file"] = [*["unasked"] * 4, 503, *["unasked"] * 1000]

    with pytest.raises(PlatformError, match="status 503, 5 times"):
        source.download(submission, tmp_path)

    assert pauses == [pause * (0.5 + chance) for pause in (1, 2, 4, 8)]


# --- Refusals ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "match"),
    [
        ("http://localhost/api/v1/", "the token is sent to no http address"),
        ("https://localhost:x/api/v1/", r"it cannot be used \(InvalidURL"),
        ("https:///api/v1/", r"it cannot be used \('no host given"),
        ("{}nowhere/", "status 404: Not found"),
    ],
)
def test_an_address_that_is_not_the_platform_s(platform, pauses, api, match):
    platform.api = api.format(platform.api)

    with pytest.raises(PlatformError, match=match):
        make_source(platform, pauses).claimable()

    assert pauses == []
