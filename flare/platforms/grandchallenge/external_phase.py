"""Takes submissions from a phase with external evaluation, and answers them.

The calls are those of the platform's evaluation app (views.api and serializers, of
December 2025), and were tried with it; gcapi has models of what they give, and no
methods for them.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flare.common.errors import MESSAGE_LIMIT
from flare.common.text import printable, safe
from flare.measuring.archive.model import MODEL_SUFFIX
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.errors import ArchiveError, ModelError
from flare.platforms.grandchallenge.calls import Calls, Reply
from flare.platforms.grandchallenge.errors import PlatformError
from flare.platforms.grandchallenge.fetching import fetch
from flare.platforms.serving.source import (
    Answer,
    Claim,
    NotNowError,
    NotOursError,
    Submission,
)

ANSWERED = ("Succeeded", "Failed")
"""Statuses of evaluations that have a result."""

CLAIMED = "External Execution In Progress"
"""The status of an evaluation that some service has."""

_PENDING_ONLY = "only claim pending"
_ONE_AT_A_TIME = "only claim one"
_CLAIM_FIRST = "need to claim"
_NOT_YOURS = "permission to update this evaluation"
"""Parts of what the platform says to a call that it refuses."""

_AT_WORK = (
    "this token's user has claimed another one: another service may be at work with the"
    " token"
)
_ONCE = (
    "this token's user has claimed another one before, and no submission of the phase"
    " is being evaluated: the platform may let a user claim only once; ask its staff,"
    " or use the token of another external evaluator"
)
"""Why no claim is possible now."""

_TEAM = re.compile(r"[a-z0-9]+([_-][a-z0-9]+)*")
"""Users whose name can be that of a team, as it is."""


class PhaseSource:
    """A phase of the platform.

    Parameters
    ----------
    phase : str
        Its key, a UUID.
    calls : Calls
        To the platform.
    """

    def __init__(self, phase: str, calls: Calls) -> None:
        self._phase, self._calls = phase, calls

    @property
    def name(self) -> str:
        """The phase, and where it is."""
        return f"phase {self._phase} of {safe(self._calls.api)}"

    def claimable(self) -> list[Submission]:
        """Submissions that no service has claimed, the oldest first.

        Raises
        ------
        PlatformError
            If the platform refuses.
        """
        reply = self._calls.call(
            "GET",
            "evaluations/claimable_evaluations/",
            params={"submission__phase": self._phase},
        )
        self._check(reply)
        if not isinstance(reply.content, list):
            raise self._stranger()
        found = [v for v in reply.content if isinstance(v, dict)]
        own = [v for v in found if v.get("phase_pk") == self._phase]
        ordered = sorted(own, key=lambda value: str(value.get("created")))
        return [self._submission(value) for value in ordered]

    def claim(self, submission: Submission, *, is_again: bool) -> Claim:
        """Claim a submission.

        Raises
        ------
        NotOursError
            If another service was faster.
        NotNowError
            If this user has claimed another one.
        PlatformError
            If the platform refuses in another way.
        """
        reply = self._calls.call(
            "PATCH", f"evaluations/{submission.key}/claim/", json={}
        )
        if reply.status == 200 and isinstance(reply.content, dict):
            claimed = self._submission(reply.content)
            if claimed.key != submission.key:
                raise self._stranger()
            return Claim(submission=claimed)
        if reply.status == 400 and _PENDING_ONLY in reply.reason:
            # If an earlier call was heard, though we never heard of it, it is ours.
            may_be_ours = is_again or not reply.is_certain
            if may_be_ours and self._status(submission) == CLAIMED:
                return Claim(submission=submission, is_new=False)
            text = "another service has claimed it"
            raise NotOursError(text)
        if reply.status == 400 and _ONE_AT_A_TIME in reply.reason:
            raise NotNowError(_AT_WORK if self._is_one_claimed() else _ONCE)
        self._check(reply)
        raise self._stranger()

    def download(self, submission: Submission, folder: Path) -> Path:
        """Fetch the archive of the algorithm, whole, and its model, if it has one.

        Raises
        ------
        ArchiveError, ModelError
            If the platform has none.
        HostError
            If it does not arrive, or cannot be written.
        """
        file = folder / f"{submission.team}{SUFFIX}"
        if not submission.place.get("image"):
            problem = "the platform has no archive of the image"
            raise ArchiveError(submission.title, problem, "Upload it again.")
        fetch(self._calls, submission.place["image"], file)
        if submission.place.get("model_pk"):
            if not submission.place["model"]:
                problem = "the platform has no file of the model"
                raise ModelError(submission.title, problem, "Upload it again.")
            model = folder / f"{submission.team}{MODEL_SUFFIX}"
            fetch(self._calls, submission.place["model"], model)
        return file

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Return metrics, or the line that the participant gets.

        Raises
        ------
        NotOursError
            If the platform does not wait for it any more.
        PlatformError
            If the platform refuses in another way.
        """
        if is_again and self._is_answered(submission):
            return
        update: dict[str, Any] = {"status": answer.status}
        if answer.metrics is None:
            update["error_message"] = printable(answer.message)[:MESSAGE_LIMIT]
        else:
            update["metrics"] = answer.metrics
        reply = self._calls.call(
            "PATCH",
            f"evaluations/{submission.key}/update_external_evaluation/",
            json=update,
        )
        if reply.status == 200:
            return
        if reply.status == 400 and _CLAIM_FIRST in reply.reason:
            if not reply.is_certain and self._is_answered(submission):
                return
            raise NotOursError(reply.reason)
        if reply.status == 400 and "in time" in reply.reason:
            raise NotOursError(reply.reason)
        # The platform says it in this way to an external evaluator alone; whoever is
        # none any more may become one again, and then the answer can be sent.
        if reply.status == 403 and _NOT_YOURS in reply.reason:
            raise NotOursError(reply.reason)
        self._check(reply)
        raise self._stranger()

    # --- What the platform says ---------------------------------------------------

    def _status(self, submission: Submission) -> str:
        """The status of an evaluation, in the platform's words."""
        reply = self._calls.call("GET", f"evaluations/{submission.key}/")
        self._check(reply)
        if not isinstance(reply.content, dict):
            raise self._stranger()
        return str(reply.content.get("status"))

    def _is_one_claimed(self) -> bool:
        """Whether some service has a submission of the phase."""
        params = {"submission__phase": self._phase, "limit": "1000"}
        reply = self._calls.call("GET", "evaluations/", params=params)
        self._check(reply)
        try:
            return any(value["status"] == CLAIMED for value in reply.content["results"])
        except (KeyError, TypeError) as error:
            raise self._stranger() from error

    def _is_answered(self, submission: Submission) -> bool:
        """Whether an answer has arrived; it can only be ours."""
        return self._status(submission) in ANSWERED

    def _check(self, reply: Reply) -> None:
        """Refuse a reply that is a refusal."""
        if reply.status == 200:
            return
        problem = f"{safe(self._calls.api)}: status {reply.status}: {reply.reason}"
        remedy = (
            "Check --phase, and that the token's user is among the external evaluators"
            " of the challenge."
        )
        raise PlatformError(problem, remedy)

    def _stranger(self) -> PlatformError:
        """It is not the platform that we know."""
        problem = f"{safe(self._calls.api)}: it does not answer as grand-challenge.org"
        return PlatformError(problem, "Is --api right?")

    def _submission(self, value: Mapping[str, Any]) -> Submission:
        """An evaluation, as the platform describes it."""
        try:
            user = str(value["submission"]["creator"]["username"])
            key = str(uuid.UUID(value["pk"]))
            image, model = value["algorithm_image"], value["algorithm_model"]
            place = {
                "image": _plain(image["image"]),
                "model": _plain(model["model"]) if model else "",
                "model_pk": str(model["pk"]) if model else "",
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._stranger() from error
        return Submission(
            key=key,
            team=team_of(user),
            title=f"{safe(user)} ({key[:8]})",
            place=place,
        )


def _plain(url: str | None) -> str:
    """An address without what may be a signature."""
    return (url or "").partition("?")[0]


def team_of(user: str) -> str:
    """A name of a team for a user: the same one, if it can be that of a folder.

    Examples
    --------
    >>> team_of("jane-doe"), team_of("Jane.Doe")
    ('jane-doe', 'jane-doe-4e148699')
    """
    if _TEAM.fullmatch(user) and len(user) <= 60:
        return user
    plain = re.sub(r"[^a-z0-9]+", "-", user.lower())[:60].strip("-")
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain or 'user'}-{digest[:8]}"
