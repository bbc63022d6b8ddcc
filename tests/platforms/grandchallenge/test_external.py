"""A phase as a source of submissions, with a platform that plays by the documents."""

import logging
from contextlib import suppress
from datetime import timedelta

import pytest

from flare.common.errors import OutputError
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.grandchallenge import access
from flare.platforms.grandchallenge import client as client_module
from flare.platforms.grandchallenge.access import PlatformError
from flare.platforms.grandchallenge.client import Client
from flare.platforms.grandchallenge.external import PhaseSource
from flare.platforms.serving.source import (
    Answer,
    ClaimAnewError,
    GoneError,
    NotNowError,
    NotOursError,
)
from tests.fakes.platform import CANCELLED, CLAIMED, PHASE, TOKEN

STRANGER = r"does not answer as grand-challenge\.org"
GOOD = Answer(metrics={"aggregates": {"runtime_s_mean": 3.5}})


@pytest.fixture
def platform(external_platform):
    """A platform with a phase."""
    return external_platform


class FakeTime:
    """Seconds that pass when somebody sleeps."""

    def __init__(self):
        self.at, self.pauses = 0.0, []

    def sleep(self, seconds):
        """Let time pass."""
        self.pauses.append(seconds)
        self.at += seconds


@pytest.fixture
def passing():
    """The time of the service."""
    return FakeTime()


@pytest.fixture
def source(platform, passing):
    """The phase, for a service whose pauses take no time."""
    return make_source(platform, passing)


def make_source(platform, passing, token=TOKEN, api=None):
    api = api or platform.api
    client = Client(api, token, sleep=passing.sleep, chance=lambda: 0.5)
    return PhaseSource(PHASE, client)


def waiting(platform, source, user="jane", archive=b"image", **more):
    """The one submission that can be claimed."""
    platform.submit(user, archive, **more)
    (submission,) = source.claimable()
    return submission


def claimed(platform, source, **more):
    """A submission that is ours."""
    submission = waiting(platform, source, **more)
    return source.claim(submission, is_again=False)


def tamper(source, path, change):
    """Let the replies to the calls of a path be changed on the way."""
    real = source._any.call

    def call(method, called, **more):
        reply = real(method, called, **more)
        if path in called:
            change(reply)
        return reply

    source._any.call = call


# --- Claiming ---------------------------------------------------------------------


def test_the_oldest_submission_of_the_phase_comes_first(platform, source):
    """The one that was handed in last has the earliest date here."""
    platform.submit("young", b"")
    platform.submit("old", b"")
    platform.submit("other", b"", phase="00000000-0000-0000-0000-00000000000f")

    found = source.claimable()

    assert [submission.team for submission in found] == ["old", "young"]
    assert found[0].title == "old (00000000)"
    assert "Signature" not in str(found[0].place)


def test_a_claim_is_ours(platform, source):
    """Also after a kill, when it is not known whether it was heard."""
    submission = claimed(platform, source)

    found = platform.evaluations[submission.key]
    assert (found["status"], found["claimed_by"]) == (CLAIMED, "evaluator")
    assert source.claimable() == []
    assert source.claim(submission, is_again=True) == submission


def test_a_claim_of_another_submission_is_none(platform, source):
    submission = waiting(platform, source)
    platform.faults["claim"] = ["other"]

    with pytest.raises(PlatformError, match=STRANGER):
        source.claim(submission, is_again=False)


@pytest.mark.parametrize(
    ("is_again", "change"),
    [(False, {"status": CLAIMED, "claimed_by": "x"}), (True, {"status": CANCELLED})],
    ids=["another service was faster", "our claim is over"],
)
def test_a_claim_that_is_not_ours(platform, source, is_again, change):
    submission = (claimed if is_again else waiting)(platform, source)
    platform.evaluations[submission.key] |= change

    with pytest.raises(NotOursError, match="another service has claimed it"):
        source.claim(submission, is_again=is_again)


@pytest.mark.parametrize("answer", [None, GOOD, Answer(message="no label map")])
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


def test_who_is_no_external_evaluator_is_told(platform, source):
    submission = waiting(platform, source)
    platform.evaluators.clear()

    with pytest.raises(PlatformError, match="status 403: You do not have") as error:
        source.claim(submission, is_again=False)

    assert "external evaluator" in error.value.remedy


def test_a_claim_behind_a_page_is_found_to_be_ours(platform, source):
    submission = waiting(platform, source)
    platform.faults["claim"] = ["obeyed html"]

    assert source.claim(submission, is_again=False) == submission


def test_a_claim_that_nobody_has_heard_is_made_anew(platform, source):
    """By whichever token is free then."""
    submission = waiting(platform, source)
    platform.faults["claim"] = ["object"]

    with pytest.raises(PlatformError):
        source.claim(submission, is_again=False)

    with pytest.raises(ClaimAnewError):
        source.claim(submission, is_again=True)


# --- Answers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (GOOD, {"status": "Succeeded", "metrics": GOOD.metrics}),
        (
            Answer(message="a\nb" + "x" * 2000),
            {"status": "Failed", "error_message": "a\\nb" + "x" * 1020},
        ),
    ],
    ids=["metrics", "a line, cut"],
)
def test_an_answer_arrives(platform, source, answer, sent):
    source.answer(claimed(platform, source), answer, is_again=False)

    assert platform.answers()["jane"] == [sent]


@pytest.mark.parametrize("is_sent", [True, False])
def test_an_answer_is_sent_once_whatever_is_known_after_a_kill(
    platform, source, is_sent
):
    submission = claimed(platform, source)
    if is_sent:
        source.answer(submission, GOOD, is_again=False)

    source.answer(submission, GOOD, is_again=True)

    assert platform.calls("update") == [200]


def test_an_answer_that_nobody_waits_for_is_lost(platform, source):
    submission = claimed(platform, source)
    platform.evaluations[submission.key] |= {"status": CANCELLED}

    with pytest.raises(NotOursError, match="You need to claim an evaluation before"):
        source.answer(submission, GOOD, is_again=False)


def test_an_answer_is_kept_while_somebody_has_the_submission(platform, source):
    """Another service may have claimed it, at the same moment: it is open who answers.

    Nothing is lost before the platform says that it waits for no answer.
    """
    submission = claimed(platform, source)
    platform.evaluations[submission.key] |= {"claimed_by": "other"}

    with pytest.raises(PlatformError, match="You do not have permission to update"):
        source.answer(submission, GOOD, is_again=False)
    platform.evaluations[submission.key] |= {"status": "Succeeded"}

    with pytest.raises(NotOursError):
        source.answer(submission, GOOD, is_again=False)


@pytest.mark.parametrize("answer", [GOOD, Answer(message="no label map")])
def test_an_answer_counts_as_heard_when_the_platform_says_so(platform, source, answer):
    """What something between says with status 200 is nothing: it is sent again."""
    submission = claimed(platform, source)
    platform.faults["update"] = ["object"]

    with pytest.raises(PlatformError):
        source.answer(submission, answer, is_again=False)
    assert platform.answers()["jane"] == []
    source.answer(submission, answer, is_again=True)

    assert [one["status"] for one in platform.answers()["jane"]] == [answer.status]


@pytest.mark.parametrize(("fault", "heard"), [("html", 1), ("obeyed html", 0)])
def test_a_page_is_no_answer_either(platform, source, fault, heard):
    """And what was heard behind it is not sent again."""
    submission = claimed(platform, source)
    platform.faults["update"] = [fault]

    source.answer(submission, GOOD, is_again=False)

    assert len(platform.answers()["jane"]) == 1
    assert platform.calls("update").count(200) == heard


def test_an_answer_after_24_hours_is_too_late(platform, source):
    submission = claimed(platform, source)
    platform.passed = timedelta(hours=24, seconds=1)

    with pytest.raises(NotOursError):
        source.answer(submission, GOOD, is_again=False)

    assert platform.evaluations[submission.key]["status"] == CANCELLED


def test_a_late_answer_is_taken_until_the_platform_has_looked(platform, source):
    submission = claimed(platform, source)
    platform.passed = timedelta(hours=25)
    platform.cancels_what_is_late = False

    source.answer(submission, GOOD, is_again=False)

    assert len(platform.answers()["jane"]) == 1


def test_an_answer_of_who_is_no_evaluator_any_more_is_kept(platform, source):
    """It is still ours: once the user is one again, it can be sent."""
    submission = claimed(platform, source)
    platform.evaluators.clear()

    with pytest.raises(PlatformError, match="an external evaluator of the phase"):
        source.answer(submission, GOOD, is_again=False)
    platform.evaluators.add("evaluator")
    source.answer(submission, GOOD, is_again=True)

    assert len(platform.answers()["jane"]) == 1


# --- Several tokens ---------------------------------------------------------------

OTHER = "77aa3c9b7d55aa41-second"


@pytest.fixture
def two_users(platform):
    """Two external evaluators, of whom each can claim once, ever."""
    platform.users[OTHER] = "second"
    platform.evaluators.add("second")
    platform.forgets_finished = False
    for user in ("jane", "john", "jim"):
        platform.submit(user, user.encode())
    return platform


def both(platform, passing, tokens=(TOKEN, OTHER)):
    """The phase, with the tokens of both."""
    found = [Client(platform.api, token, sleep=passing.sleep) for token in tokens]
    return PhaseSource(PHASE, *found)


def claim_next(source):
    """Claim whatever waits, with whichever token may."""
    for _ in range(2):
        with suppress(ClaimAnewError):
            return source.claim(source.claimable()[0], is_again=False)
    raise AssertionError


def test_the_next_token_is_used_where_a_user_can_claim_once(two_users, passing):
    """Each answer goes with the token that has claimed; a third one has to wait."""
    source = both(two_users, passing)

    for user in ("evaluator", "second"):
        submission = claim_next(source)
        assert two_users.evaluations[submission.key]["claimed_by"] == user
        source.answer(submission, GOOD, is_again=False)

    assert two_users.calls("update") == [200, 200]
    (third,) = source.claimable()
    with pytest.raises(ClaimAnewError):
        source.claim(third, is_again=False)
    (third,) = source.claimable()
    with pytest.raises(NotNowError, match="claim only once"):
        source.claim(third, is_again=False)


def test_the_answers_of_two_claims_go_with_their_own_tokens(two_users, passing):
    source = both(two_users, passing)
    found = [claim_next(source), claim_next(source)]

    for submission in reversed(found):
        source.answer(submission, GOOD, is_again=False)

    assert two_users.calls("update") == [200, 200]


def test_unused_tokens_are_counted_and_used_first(two_users, passing):
    """As the journal of an earlier start has it."""
    first = both(two_users, passing)
    assert first.resume([]) == "2 of 2 tokens have claimed nothing yet"
    submission = claim_next(first)
    first.answer(submission, GOOD, is_again=False)

    again = both(two_users, passing)

    assert again.resume([submission]) == "1 of 2 tokens have claimed nothing yet"
    assert again.claim(again.claimable()[0], is_again=False)
    assert two_users.calls("claim") == [200, 200]


def test_an_answer_waits_for_the_token_that_has_claimed(two_users, passing):
    submission = claim_next(both(two_users, passing))
    second = both(two_users, passing, [OTHER])

    with pytest.raises(PlatformError, match="It was claimed with another token") as e:
        second.answer(submission, GOOD, is_again=True)

    assert TOKEN not in str(e.value)
    assert TOKEN not in str(submission.place)
    both(two_users, passing).answer(submission, GOOD, is_again=True)
    assert len(two_users.evaluations[submission.key]["answers"]) == 1


def test_who_is_no_evaluator_does_not_hide_what_waits(two_users, passing):
    """For such a user nothing waits, and nothing is refused."""
    two_users.evaluators.remove("evaluator")

    submission = claim_next(both(two_users, passing))

    assert two_users.evaluations[submission.key]["claimed_by"] == "second"


# --- Downloads --------------------------------------------------------------------

LONG = bytes(range(256)) * 4000
MODEL = bytes(range(255)) * 4000


def test_an_archive_is_fetched_whole_by_a_signed_address(platform, source, tmp_path):
    """The token goes to the platform alone: the fake refuses it elsewhere."""
    submission = claimed(platform, source, archive=LONG)

    for _ in range(2):  # what is there is not fetched again
        file = source.download(submission, tmp_path)

    assert file == tmp_path / "jane.tar.gz"
    assert file.read_bytes() == LONG
    assert [*tmp_path.iterdir()] == [file]
    assert platform.calls("file") == [(200, len(LONG))]


@pytest.mark.parametrize("fault", [None, "short", "reset"])
def test_a_model_is_fetched_beside_its_image(platform, source, tmp_path, fault):
    """By a signed address, too; the image, which is there, is fetched once."""
    submission = claimed(platform, source, model=MODEL)
    platform.faults["model file"] = [fault]

    file = source.download(submission, tmp_path)

    assert file == tmp_path / "jane.tar.gz"
    assert file.read_bytes() == b"image"
    assert (tmp_path / "jane.model.tar.gz").read_bytes() == MODEL
    assert len([*tmp_path.iterdir()]) == 2
    assert "secret" not in str(submission.place)
    assert len(platform.calls("file")) == 1
    rest = len(MODEL) // 2
    last = (206, rest) if fault == "short" else (200, len(MODEL))
    assert platform.calls("model file")[-1] == last


@pytest.mark.parametrize("kind", ["image", "model"])
def test_a_file_that_may_not_be_fetched_is_no_fault_of_the_team(
    platform, source, tmp_path, kind
):
    submission = claimed(platform, source, model=b"model")
    if kind == "model":
        platform.faults["model"] = [403] * 2
    else:
        platform.evaluators.clear()

    with pytest.raises(PlatformError, match=r"not give jane\S* \(status 403"):
        source.download(submission, tmp_path)


@pytest.mark.parametrize(
    ("kind", "place", "error", "match"),
    [
        ("image", "", ArchiveError, "the platform has no file of the image"),
        ("model", "", ModelError, "the platform has no file of the model"),
        ("image", "http://localhost/x", PlatformError, "is not at an https address"),
    ],
)
def test_a_file_without_an_address_is_refused(
    platform, source, tmp_path, kind, place, error, match
):
    """An image is not measured without its model."""
    submission = claimed(platform, source, model=b"model")
    submission.place[kind] = place

    with pytest.raises(error, match=match):
        source.download(submission, tmp_path)


@pytest.mark.parametrize(("kind", "error"), [("", ArchiveError), ("model", ModelError)])
def test_a_file_that_is_too_large_is_the_submission_s_fault(
    platform, source, tmp_path, monkeypatch, kind, error
):
    """It is not fetched, and is told at once: nobody else has to wait for it."""
    monkeypatch.setattr(client_module, "LARGEST_BYTES", 9)
    long, short = b"b" * 10, b"b" * 9
    submission = claimed(
        platform, source, archive=short if kind else long, model=long if kind else None
    )

    with pytest.raises(error, match="it is larger than"):
        source.download(submission, tmp_path)

    assert [*tmp_path.glob("*.gz")] == ([tmp_path / "jane.tar.gz"] if kind else [])


@pytest.mark.parametrize("status", [404, 410])
@pytest.mark.parametrize("kind", ["", "model"])
def test_a_file_that_is_gone_is_waited_for(platform, source, tmp_path, status, kind):
    """And is told as the submission's fault if it never comes back."""
    submission = claimed(platform, source, model=b"model" if kind else None)
    platform.faults[kind or "download"] = [status] * 2

    with pytest.raises(GoneError) as error:
        source.download(submission, tmp_path)

    assert error.value.error.code == "H09"
    assert error.value.told.code == ("F19" if kind else "F15")
    source.download(submission, tmp_path)


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


def test_a_disk_that_cannot_be_written_to_is_said(platform, source, tmp_path):
    submission = claimed(platform, source)
    (tmp_path / ".jane.tar.gz.part").mkdir()

    with pytest.raises(OutputError, match=r"jane.tar.gz.part: it cannot be written"):
        source.download(submission, tmp_path)


# --- A network that fails ---------------------------------------------------------


def serve_one(source, folder):
    """Take the one submission to its answer."""
    (submission,) = source.claimable()
    submission = source.claim(submission, is_again=False)
    source.download(submission, folder)
    source.answer(submission, GOOD, is_again=False)


@pytest.mark.parametrize("fault", [500, 502, 503, 429, "reset"])
@pytest.mark.parametrize("call", ["claimable", "claim", "download", "update"])
def test_a_fault_that_passes_is_not_noticed(
    platform, source, passing, tmp_path, call, fault
):
    """Three of them in a row; each pause is twice as long as the one before."""
    platform.submit("jane", b"image")
    platform.faults[call] = [fault] * 3

    serve_one(source, tmp_path)

    assert passing.pauses == [1, 2, 4]
    assert len(platform.answers()["jane"]) == 1


@pytest.mark.parametrize("call", ["claim", "update"])
def test_a_call_that_was_obeyed_but_not_answered_is_obeyed_once(
    platform, source, tmp_path, call
):
    """The second one is refused by the platform, which is how we know."""
    platform.submit("jane", b"image")
    platform.faults[call] = ["deaf"]

    serve_one(source, tmp_path)

    assert platform.calls(call) == ["deaf", 400]
    assert len(platform.answers()["jane"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("call", ["claimable", "claim", "download", "update"])
def test_a_platform_that_does_not_answer_in_time_is_asked_again(
    platform, passing, monkeypatch, tmp_path, call
):
    """It may have obeyed all the same: there is one claim, and one answer."""
    monkeypatch.setattr(access, "TIMEOUT_S", 0.3)
    source = make_source(platform, passing)
    platform.submit("jane", b"image")
    platform.faults[call] = ["slow"]

    serve_one(source, tmp_path)

    assert passing.pauses == [1]
    assert len(platform.answers()["jane"]) == 1


def test_a_call_is_given_up_before_others_wait_for_long(platform, source, passing):
    """The service tries it again, after those that wait for it."""
    submission = claimed(platform, source)
    platform.faults["update"] = [500] * 1000

    with pytest.raises(PlatformError, match="status 500, 5 times"):
        source.answer(submission, GOOD, is_again=False)

    assert passing.pauses == [1, 2, 4, 8]


def test_faults_of_two_kinds_are_counted_together(platform, source, passing, tmp_path):
    """A part that nobody has asked for, and a single 503 at the fifth try."""
    submission = claimed(platform, source)
    platform.faults["file"] = [*["unasked"] * 4, 503, *["unasked"] * 1000]

    with pytest.raises(PlatformError, match="status 503, 5 times"):
        source.download(submission, tmp_path)

    assert passing.pauses == [1, 2, 4, 8]


@pytest.mark.parametrize(
    ("tries", "chance", "faults", "pauses"),
    [
        (5, 1.0, [500], [1.5]),
        (5, 0.0, [500] * 2, [0.5, 1]),
        (2, 0.5, ["reset"] * 9, [1]),
    ],
    ids=["longer", "shorter", "fewer tries"],
)
def test_pauses_differ_between_services(
    platform, passing, tries, chance, faults, pauses
):
    """A dry run tries less often, and so ends soon without a network."""
    client = Client(
        *(platform.api, TOKEN), sleep=passing.sleep, chance=lambda: chance, tries=tries
    )
    platform.faults["claimable"] = faults

    with suppress(PlatformError):
        PhaseSource(PHASE, client).claimable()

    assert passing.pauses == pauses


# --- Refusals ---------------------------------------------------------------------


def test_a_token_that_is_refused_is_one_line_without_it(platform, passing, caplog):
    caplog.set_level(logging.DEBUG)
    source = make_source(platform, passing, token="secret-of-mine")

    with pytest.raises(PlatformError) as error:
        source.claimable()

    assert error.value.problem == f"{platform.api}: it does not accept the token"
    assert passing.pauses == []
    assert "secret-of-mine" not in caplog.text


def test_a_platform_with_an_unknown_certificate_is_not_spoken_to(
    platform, source, passing, monkeypatch
):
    monkeypatch.delenv("SSL_CERT_FILE")

    with pytest.raises(PlatformError, match="CERTIFICATE_VERIFY_FAILED"):
        source.claimable()

    assert platform.log == []


def test_an_address_without_tls_is_refused(passing):
    with pytest.raises(PlatformError, match="the token is sent to no http address"):
        Client("http://localhost/api/v1/", TOKEN)


def test_something_else_answers(platform, passing):
    source = make_source(platform, passing, api=f"{platform.api}nowhere/")

    with pytest.raises(PlatformError, match="status 404: Not found"):
        source.claimable()


def test_one_that_is_described_oddly_hides_no_other(platform, source, caplog):
    """It is said once."""
    odd = platform.submit("odd", b"")
    good = platform.submit("jane", b"")

    def change(reply):
        for value in reply.content:
            value["algorithm_image"] = value["pk"] != odd and value["algorithm_image"]

    tamper(source, "claimable", change)

    for _ in range(2):
        assert [one.key for one in source.claimable()] == [good]
    assert caplog.text.count(f"{odd}: not claimed") == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda source, one: source.claim(one, is_again=True),
        lambda source, one: source.answer(one, GOOD, is_again=False),
    ],
    ids=["claim", "answer"],
)
def test_what_the_platform_does_not_know_is_no_error_of_the_network(
    platform, source, ask
):
    """It was removed there, or this user may not see it now."""
    submission = claimed(platform, source)
    del platform.evaluations[submission.key]

    with pytest.raises(GoneError, match="status 404: No Evaluation matches"):
        ask(source, submission)


def test_two_users_never_have_one_folder(platform, source):
    """Not by a name that looks like one which was made from another."""
    for user in ("Jane.Doe", "jane-doe-4e148699", "jane-doe"):
        platform.submit(user, b"")

    teams = {one.user: one.team for one in source.claimable()}

    assert len(set(teams.values())) == 3
    assert teams["jane-doe"] == "jane-doe"
