"""Takes submissions from a phase with external evaluation, and answers them.

The calls are those of the platform's evaluation app (views.api and serializers, of
December 2025), and were tried with it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.common.files import at
from flare.common.options import option
from flare.common.text import safe
from flare.measuring.archive.model import MODEL_SUFFIX
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.grandchallenge.client import (
    LARGEST_BYTES,
    Client,
    FileRefusedError,
    PlatformError,
    Reply,
    TooLargeError,
    api_option,
    key,
    user_of,
)
from flare.platforms.serving.source import (
    Answer,
    GoneError,
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

_GONE = (404, 410)
"""What a host answers that does not have something (any more)."""


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


class PhaseSource:
    """A phase of the platform.

    Parameters
    ----------
    phase : str
        Its key, a UUID.
    client : Client
        With the token of an external evaluator.
    """

    is_named = False

    def __init__(self, phase: str, client: Client) -> None:
        self._phase, self._client = phase, client
        self._odd: set[str] = set()

    @property
    def name(self) -> str:
        """The phase, and where it is."""
        return f"phase {self._phase} of {safe(self._client.api)}"

    def claimable(self) -> list[Submission]:
        """Submissions that no service has claimed, the oldest first.

        One that is not described as we know it is left out, and told of once.
        """
        # For a user who is no external evaluator, nothing ever waits.
        reply = self._client.call(
            "GET",
            "evaluations/claimable_evaluations/",
            params={"submission__phase": self._phase},
        )
        if not (reply.status == 200 and isinstance(reply.content, list)):
            raise self._client.refusal(reply)
        found = [v for v in reply.content if at(v, "phase_pk") == self._phase]
        readable = []
        for value in sorted(found, key=lambda value: str(value.get("created"))):
            try:
                readable.append(self._submission(value))
            except PlatformError as error:
                if (key := str(value.get("pk"))) not in self._odd:
                    _log.error("%s: not claimed: %s", safe(key), error)
                self._odd.add(key)
        return readable

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Claim a submission; see `Source`."""
        if is_again and self._status(submission) == QUEUED:
            raise NotNowError("the claim was not heard")
        path = f"evaluations/{submission.key}/claim/"
        reply = self._client.call("PATCH", path, json={})
        if _has(reply, pk=submission.key):
            return self._submission(reply.content)
        if reply.status == 400 and "only claim pending" in reply.reason:
            # If an earlier call was heard, though we never heard of it, it is ours.
            may_be_ours = is_again or not reply.is_certain
            if may_be_ours and self._status(submission) == CLAIMED:
                return submission
            raise NotOursError("another service has claimed it")
        if reply.status == 400 and "only claim one" in reply.reason:
            raise NotNowError(
                "this token's user has claimed another one, which is postponed here, or"
                " another service is at work with the token; or the platform lets a"
                " user claim only once: ask its staff, or use the token of another"
                " external evaluator"
            )
        raise self._client.refusal(reply)

    def download(self, submission: Submission, folder: Path) -> Path:
        """Fetch the archive of the algorithm, whole, and its model, if it has one."""
        if submission.place.get("model_pk"):
            self._fetch(
                submission, "model", folder / f"{submission.team}{MODEL_SUFFIX}"
            )
        return self._fetch(submission, "image", folder / f"{submission.team}{SUFFIX}")

    def _fetch(self, submission: Submission, kind: str, file: Path) -> Path:
        """Fetch a file from where it was at the claim, or else from where it is now."""
        wrong = ModelError if kind == "model" else ArchiveError
        address = submission.place.get(kind)
        if not address:
            problem = f"the platform has no file of the {kind}"
            raise wrong(submission.title, problem, "Upload it again.")
        try:
            try:
                self._client.fetch(address, file)
            except FileRefusedError:
                key = submission.place[f"{kind}_pk"]
                reply = self._client.call("GET", f"algorithms/{kind}s/{key}/")
                address = at(reply.content, kind)
                if not isinstance(address, str) or not address:
                    raise
                self._client.fetch(_plain(address), file)
        except TooLargeError as error:
            problem = f"it is larger than {LARGEST_BYTES >> 30} GiB"
            raise wrong(file.name, problem, "Hand in a smaller one.") from error
        except FileRefusedError as error:
            if error.status not in _GONE:
                raise
            problem = f"the platform does not have it any more (status {error.status})"
            raise GoneError(
                error, wrong(file.name, problem, "Upload it, and submit it, again.")
            ) from error
        return file

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Return metrics, or the line that the participant gets; see `Source`."""
        if is_again and self._status(submission) in ANSWERED:
            return
        path = f"evaluations/{submission.key}/update_external_evaluation/"
        reply = self._client.call("PATCH", path, json={**answer})
        if not _has(reply, status=answer["status"]):
            # Whatever else has answered in its place, only its status tells.
            status = self._status(submission)
            may_be_heard = reply.status == 200 or not reply.is_certain
            if not (status in ANSWERED and may_be_heard):
                if status in (*ANSWERED, *ENDED):
                    raise NotOursError(reply.reason)
                raise self._client.refusal(reply)

    # --- What the platform says ---------------------------------------------------

    def _status(self, submission: Submission) -> str:
        reply = self._client.call("GET", f"evaluations/{submission.key}/")
        if reply.status in _GONE:
            raise GoneError(self._client.refusal(reply))
        if not _has(reply, pk=submission.key):
            raise self._client.refusal(reply)
        return str(reply.content.get("status"))

    def _submission(self, value: Mapping[str, Any]) -> Submission:
        """An evaluation, as the platform describes it."""
        try:
            key = str(uuid.UUID(value["pk"]))
            user = user_of(value["submission"], key)
            image, model = value["algorithm_image"], value["algorithm_model"]
            place = {
                "image": _plain(image["image"]),
                "image_pk": str(image["pk"]),
                "model": _plain(model["model"]) if model else "",
                "model_pk": str(model["pk"]) if model else "",
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._client.stranger() from error
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
    """Whether the platform has obeyed a call, and says this."""
    found = {name: at(reply.content, name) for name in expected}
    return reply.status == 200 and found == expected
