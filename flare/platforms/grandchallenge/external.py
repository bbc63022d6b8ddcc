"""Takes submissions from a phase with external evaluation, and answers them.

The calls are those of the platform's evaluation app (views.api and serializers, of
December 2025), and were tried with it; gcapi has models of what they give, and no
methods for them.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.common.errors import MESSAGE_LIMIT
from flare.common.options import option
from flare.common.text import printable, safe
from flare.measuring.archive.model import MODEL_SUFFIX
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.grandchallenge.access import (
    PlatformError,
    api_option,
    key,
    read_tokens,
)
from flare.platforms.grandchallenge.client import (
    LARGEST_BYTES,
    TRIES,
    Client,
    FileRefusedError,
    Reply,
    TooLargeError,
    fetch,
)
from flare.platforms.serving.source import (
    Answer,
    Claim,
    NextTokenError,
    NotGivenError,
    NotKnownError,
    NotNowError,
    NotOursError,
    Submission,
)
from flare.results.team_folder import folder_of

_log = logging.getLogger(__name__)

ANSWERED = ("Succeeded", "Failed")
"""Statuses of evaluations that have a result."""

CLAIMED = "External Execution In Progress"
"""The status of an evaluation that some service has."""

QUEUED = "Queued"
"""The status of one that nobody has claimed."""

ENDED = ("Cancelled", QUEUED)
"""Statuses of evaluations that nobody has to answer any more, or that begin anew."""

_PENDING_ONLY = "only claim pending"
_ONE_AT_A_TIME = "only claim one"
"""Parts of what the platform says to a call that it refuses."""

_GONE = (404, 410)
"""What a host answers that does not have something (any more)."""

_AT_WORK = (
    "this token's user has claimed another one, which is postponed here, or another"
    " service may be at work with the token"
)
_ONCE = (
    "this token's user has claimed another one before, and no submission of the phase"
    " is being evaluated: the platform may let a user claim only once; ask its staff,"
    " or use the token of another external evaluator"
)
"""Why no claim is possible now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalOptions:
    """The phase that submissions come from, if they do."""

    phase: str | None = option(
        "Claim submissions of this phase of grand-challenge.org, which has external"
        " evaluation.",
        default=None,
        parse=key,
        metavar="UUID",
    )
    api: str = api_option()

    def source(self, tokens: str, file: str, *, tries: int = TRIES) -> PhaseSource:
        """The phase, for the users of all tokens that `read_tokens` finds.

        Raises
        ------
        PlatformError
            If there is no token, or the address is not https.
        """
        found = read_tokens(tokens, file)
        clients = [Client(self.api, token, tries=tries) for token in found]
        return PhaseSource(str(self.phase), *clients)


class PhaseSource:
    """A phase of the platform.

    Where a user can claim only one submission, the next token is used.

    Parameters
    ----------
    phase : str
        Its key, a UUID.
    calls : Client
        To the platform, each with the token of another user.
    """

    is_named = False

    def __init__(self, phase: str, *calls: Client) -> None:
        self._phase = phase
        self._calls = {one.mark: one for one in calls}
        self._used: set[str] = set()
        self._refused: set[str] = set()
        self._odd: set[str] = set()
        self._any = calls[0]

    @property
    def name(self) -> str:
        """The phase, and where it is."""
        return f"phase {self._phase} of {safe(self._any.api)}"

    def resume(self, known: Sequence[Submission]) -> str:
        """Prefer tokens that have claimed nothing; how many these are."""
        self._used |= {one.place.get("claimant", "") for one in known}
        unused = len(self._calls.keys() - self._used)
        return f"{unused} of {len(self._calls)} tokens have claimed nothing yet"

    def claimable(self) -> list[Submission]:
        """Submissions that no service has claimed, the oldest first.

        Raises
        ------
        PlatformError
            If the platform refuses; once, if it describes none of them as we know it.
        """
        found: list[Any] = []
        for mark in self._free():
            # For a user who is no external evaluator, nothing ever waits.
            reply = self._calls[mark].call(
                "GET",
                "evaluations/claimable_evaluations/",
                params={"submission__phase": self._phase},
            )
            self._check(reply)
            if not isinstance(reply.content, list):
                raise self._stranger()
            found = [v for v in reply.content if isinstance(v, dict)]
            if found:
                break
        own = [v for v in found if v.get("phase_pk") == self._phase]
        ordered = sorted(own, key=lambda value: str(value.get("created")))
        readable, odd = [], set()
        for value in ordered:
            try:
                readable.append(self._submission(value, mark))
            except PlatformError as error:
                key = str(value.get("pk"))
                if key not in self._odd:
                    _log.error("%s: not claimed: %s", safe(key), error)
                odd.add(key)
        is_new = not odd <= self._odd
        self._odd |= odd
        if is_new and not readable:  # once: what is handed in next must not wait
            raise self._stranger()
        return readable

    def claim(self, submission: Submission, *, is_again: bool) -> Claim:
        """Claim a submission.

        Raises
        ------
        NotOursError
            If another service was faster.
        NotNowError
            If this user has claimed another one.
        NotKnownError
            If it was tried before, and the platform does not show it.
        PlatformError
            If the platform refuses in another way, or it was claimed with a token that
            is not here.
        """
        if is_again and self._status(submission) == QUEUED:
            # Nobody has heard of it; with which token it is claimed is chosen anew.
            raise NextTokenError("the claim was not heard")
        calls = self._claimant(submission)
        reply = calls.call("PATCH", f"evaluations/{submission.key}/claim/", json={})
        if reply.status == 200 and _has(reply, pk=submission.key):
            self._used.add(calls.mark)
            return Claim(submission=self._submission(reply.content, calls.mark))
        if reply.status == 400 and _PENDING_ONLY in reply.reason:
            # If an earlier call was heard, though we never heard of it, it is ours.
            may_be_ours = is_again or not reply.is_certain
            if may_be_ours and self._status(submission) == CLAIMED:
                self._used.add(calls.mark)
                return Claim(submission=submission, is_new=False)
            raise NotOursError("another service has claimed it")
        if reply.status == 400 and _ONE_AT_A_TIME in reply.reason:
            self._refused.add(calls.mark)
            if self._refused < self._calls.keys():
                raise NextTokenError(
                    f"the user of the token {calls.mark} has claimed another one"
                )
            self._refused.clear()
            raise NotNowError(_AT_WORK if self._is_one_claimed() else _ONCE)
        self._check(reply)
        raise self._stranger()

    def download(self, submission: Submission, folder: Path) -> Path:
        """Fetch the archive of the algorithm, whole, and its model, if it has one.

        Raises
        ------
        ArchiveError, ModelError
            If the platform has none, or one that is too large.
        NotGivenError
            If the platform does not have the file any more.
        HostError
            If it does not arrive, or cannot be written.
        """
        place = submission.place
        file = folder / f"{submission.team}{SUFFIX}"
        if not place.get("image"):
            raise ArchiveError(
                submission.title,
                "the platform has no archive of the image",
                "Upload it again.",
            )
        self._fetch(submission, "image", file, ArchiveError)
        if place.get("model_pk"):
            if not place["model"]:
                raise ModelError(
                    submission.title,
                    "the platform has no file of the model",
                    "Upload it again.",
                )
            model = folder / f"{submission.team}{MODEL_SUFFIX}"
            self._fetch(submission, "model", model, ModelError)
        return file

    def _fetch(
        self,
        submission: Submission,
        kind: str,
        file: Path,
        wrong: type[ArchiveError | ModelError],
    ) -> None:
        """Fetch a file from where it was at the claim, or else from where it is now."""
        calls = self._calls.get(submission.place.get("claimant", ""), self._any)
        try:
            try:
                fetch(calls, submission.place[kind], file)
            except FileRefusedError:
                address = self._address(calls, submission, kind)
                if not address:
                    raise
                fetch(calls, address, file)
        except TooLargeError as error:
            raise wrong(
                file.name,
                f"it is larger than {LARGEST_BYTES >> 30} GiB",
                "Hand in a smaller one.",
            ) from error
        except FileRefusedError as error:
            if error.status not in _GONE:
                raise
            problem = f"the platform does not have it any more (status {error.status})"
            raise NotGivenError(
                error, wrong(file.name, problem, "Upload it, and submit it, again.")
            ) from error

    def _address(self, calls: Client, submission: Submission, kind: str) -> str:
        """Where a file is now; empty if the platform does not say it."""
        key = submission.place.get(f"{kind}_pk")
        if not key:
            return ""  # claimed by an edition that did not keep it
        reply = calls.call("GET", f"algorithms/{kind}s/{key}/")
        found = reply.content.get(kind) if isinstance(reply.content, dict) else None
        return _plain(found) if isinstance(found, str) else ""

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Return metrics, or the line that the participant gets.

        Raises
        ------
        NotOursError
            If the platform does not wait for it any more.
        NotKnownError
            If the platform does not show it.
        PlatformError
            If the platform has not heard it; it may later.
        """
        calls = self._claimant(submission)
        if is_again and self._status(submission) in ANSWERED:
            return
        update: dict[str, Any] = {"status": answer.status}
        if answer.metrics is None:
            update["error_message"] = printable(answer.message)[:MESSAGE_LIMIT]
        else:
            update["metrics"] = answer.metrics
        reply = calls.call(
            "PATCH",
            f"evaluations/{submission.key}/update_external_evaluation/",
            json=update,
        )
        if not (reply.status == 200 and _has(reply, status=answer.status)):
            self._check_heard(submission, reply)
        self._refused.discard(calls.mark)

    def _check_heard(self, submission: Submission, reply: Reply) -> None:
        """See whether an answer was heard to which the platform has not said so.

        Whatever else has answered in its place, only its status tells.
        """
        status = self._status(submission)
        may_be_heard = reply.status == 200 or not reply.is_certain
        if status in ANSWERED and may_be_heard:
            return
        if status in (*ANSWERED, *ENDED):
            raise NotOursError(reply.reason)
        self._check(reply)
        raise self._stranger()

    # --- What the platform says ---------------------------------------------------

    def _free(self) -> list[str]:
        """Tokens that may claim something, those that never have first."""
        free = [mark for mark in self._calls if mark not in self._refused]
        return sorted(free, key=lambda mark: mark in self._used)

    def _claimant(self, submission: Submission) -> Client:
        """Client with the token by which a submission is, or will be, claimed."""
        mark = submission.place.get("claimant", self._any.mark)
        if mark not in self._calls:
            raise PlatformError(
                f"It was claimed with another token, {mark}",
                "Start the service with that one, too.",
            )
        return self._calls[mark]

    def _status(self, submission: Submission) -> str:
        reply = self._any.call("GET", f"evaluations/{submission.key}/")
        if reply.status in _GONE:
            raise NotKnownError(self._refusal(reply))
        self._check(reply)
        if not _has(reply, pk=submission.key):
            raise self._stranger()
        return str(reply.content.get("status"))

    def _is_one_claimed(self) -> bool:
        """Whether some service has a submission of the phase."""
        params = {"submission__phase": self._phase, "limit": "1000"}
        reply = self._any.call("GET", "evaluations/", params=params)
        self._check(reply)
        found = reply.content.get("results") if isinstance(reply.content, dict) else 0
        if not isinstance(found, list):
            raise self._stranger()
        return any(isinstance(v, dict) and v.get("status") == CLAIMED for v in found)

    def _check(self, reply: Reply) -> None:
        if reply.status != 200:
            raise self._refusal(reply)

    def _refusal(self, reply: Reply) -> PlatformError:
        problem = f"{safe(self._any.api)}: status {reply.status}: {reply.reason}"
        remedy = (
            "Check --phase, and that the token's user is among the external evaluators"
            " of the challenge."
        )
        return PlatformError(problem, remedy)

    def _stranger(self) -> PlatformError:
        """It is not the platform that we know."""
        problem = f"{safe(self._any.api)}: it does not answer as grand-challenge.org"
        return PlatformError(problem, "Is --api right?")

    def _submission(self, value: Mapping[str, Any], mark: str) -> Submission:
        """An evaluation, as the platform describes it."""
        try:
            user = str(value["submission"]["creator"]["username"])
            key = str(uuid.UUID(value["pk"]))
            image, model = value["algorithm_image"], value["algorithm_model"]
            place = {
                "claimant": mark,
                "image": _plain(image["image"]),
                "image_pk": str(image["pk"]),
                "model": _plain(model["model"]) if model else "",
                "model_pk": str(model["pk"]) if model else "",
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._stranger() from error
        return Submission(
            key=key,
            team=folder_of(user, is_image=True),
            user=user,
            title=f"{safe(user)} ({key[:8]})",
            place=place,
        )


def _plain(url: str | None) -> str:
    """An address without what may be a signature."""
    return (url or "").partition("?")[0]


def _has(reply: Reply, **expected: str) -> bool:
    """Whether a reply is an object of the platform's that says this."""
    found = reply.content
    return isinstance(found, dict) and all(
        found.get(name) == value for name, value in expected.items()
    )
