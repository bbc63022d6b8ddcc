"""Takes submissions from a phase with external evaluation, and answers them.

The calls are those of the platform's evaluation app (views.api and serializers, of
December 2025), and were tried with it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
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
    Client,
    Reply,
    api_option,
    key,
    user_of,
)
from flare.platforms.grandchallenge.errors import (
    FileRefusedError,
    PlatformError,
    TokenError,
    TooLargeError,
)
from flare.platforms.grandchallenge.partial_file import LARGEST_BYTES
from flare.platforms.serving.source import (
    Answer,
    GoneError,
    NotNowError,
    NotOursError,
    Submission,
    once,
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

TOKEN = "token"
"""In the place of a submission: the mark of the token that claims it."""

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
    """A phase of the platform, by its key, a UUID.

    A user has one claim at a time there, and in some editions a single one for ever: so
    each claim is made with the token that has not been used for longest. There is at
    least one client; each has the token of another external evaluator. `used` are marks
    of tokens that have claimed before, the oldest claim first.
    """

    is_named, is_one_at_a_time = False, True

    def __init__(self, phase: str, *clients: Client, used: Iterable[str] = ()) -> None:
        self._phase, self._client = phase, clients[0]
        self._clients = {client.mark: client for client in clients}
        self._used = [*used]
        self._odd: set[str] = set()
        self._tell_once, self._warn_once = once(_log.info), once(_log.error)

    @property
    def name(self) -> str:
        """The phase, and where it is."""
        return f"phase {self._phase} of {safe(self._client.api)}"

    def _tell_tokens(self) -> None:
        """Tell how many tokens are left that have claimed nothing, if it changes."""
        unused = self._clients.keys() - {*self._used, *self._odd}
        text, count = "%d of %d tokens have claimed nothing yet", len(self._clients)
        if count > 1:
            self._tell_once(text, len(unused), count)

    def claimable(self) -> list[Submission]:
        """Submissions that no service has claimed, the oldest first.

        One that is not described as we know it is left out, and told of once.
        """
        mark, waiting = self._waiting()
        self._tell_tokens()
        readable = []
        for value in sorted(waiting, key=lambda value: str(value.get("created"))):
            try:
                readable.append(self._submission(value, mark))
            except PlatformError as error:
                key = safe(str(value.get("pk")))
                self._warn_once("%s: not claimed: %s", key, str(error))
        return readable

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Claim a submission; see `Source`."""
        if is_again:
            self._refuse_unclaimed(submission, "the claim was not heard")
        client = self._claimant(submission)
        is_first_use = client.mark not in self._used
        self._used.append(client.mark)
        path = f"evaluations/{submission.key}/claim/"
        reply = client.call("PATCH", path, json={})
        if _has(reply, pk=submission.key):
            self._tell_tokens()
            return self._claimed(submission, reply, client)
        if reply.status != 400:
            raise client.refusal(reply)
        # The platform has one status for all refusals, and words that may change: so
        # what has become of the submission tells why.
        self._refuse_unclaimed(
            submission,
            f"the platform refuses the token {client.mark} ({reply.reason}): its user"
            " has claimed another one, which is postponed here, or another service is"
            " at work with the token; or the platform lets a user claim only once: ask"
            " its staff, or add the token of another external evaluator",
            has_alternative=is_first_use and len(self._clients) > 1,
        )
        # If an earlier call was heard, though we never heard of it, it is ours.
        if is_again or not reply.is_certain:
            return submission
        raise NotOursError("another service has claimed it")

    def _refuse_unclaimed(
        self, submission: Submission, problem: str, *, has_alternative: bool = False
    ) -> None:
        """Refuse a submission that waits for a claim, for this reason, or has ended."""
        status = self._status(submission)
        if status == QUEUED:
            raise NotNowError(problem, has_alternative=has_alternative)
        if status != CLAIMED:
            raise NotOursError(f"it waits for nobody: its status is {safe(status)}")

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
        client = self._reader(submission)
        address = submission.place.get(kind)
        if not address:
            problem = f"the platform has no file of the {kind}"
            raise wrong(submission.title, problem, "Upload it again.")
        try:
            try:
                client.fetch(address, file)
            except FileRefusedError:
                key = submission.place[f"{kind}_pk"]
                reply = client.call("GET", f"algorithms/{kind}s/{key}/")
                address = at(reply.content, kind)
                if not isinstance(address, str) or not address:
                    raise
                client.fetch(_plain(address), file)
        except TooLargeError as error:
            problem = f"it is larger than {LARGEST_BYTES >> 30} GiB"
            raise wrong(file.name, problem, "Hand in a smaller one.") from error
        except FileRefusedError as error:
            if error.status not in _GONE:
                raise
            problem = f"the platform does not have it any more (status {error.status})"
            remedy = "Upload it, and submit it, again."
            raise GoneError(error, wrong(file.name, problem, remedy)) from error
        return file

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Return metrics, or the line that the participant gets; see `Source`."""
        path = f"evaluations/{submission.key}/update_external_evaluation/"
        try:
            if is_again and self._status(submission) in ANSWERED:
                return
            client = self._claimant(submission)
            reply = client.call("PATCH", path, json={**answer})
        except TokenError as error:  # no other token may answer
            with suppress(TokenError):
                if (status := self._status(submission)) in (*ANSWERED, *ENDED):
                    raise NotOursError(f"its status is {status}") from error
            raise GoneError(error) from error
        if not _has(reply, status=answer["status"]):
            # Whatever else has answered in its place, only its status tells.
            status = self._status(submission)
            may_be_heard = reply.status == 200 or not reply.is_certain
            if not (status in ANSWERED and may_be_heard):
                if status in (*ANSWERED, *ENDED):
                    raise NotOursError(reply.reason)
                raise client.refusal(reply)

    # --- What the platform says ---------------------------------------------------

    def _claimant(self, submission: Submission) -> Client:
        """The client with the token by which a submission is, or will be, claimed."""
        mark = submission.place.get(TOKEN, self._client.mark)
        if mark not in self._clients:
            raise TokenError(
                f"{submission.title}: it was claimed with another token, {safe(mark)}",
                "Start the service with that one, too: on a line of its own in the file"
                " of FLARE_GC_TOKEN_FILE.",
            )
        return self._clients[mark]

    def _reader(self, submission: Submission) -> Client:
        """The claimant's client, or else any: each external evaluator may read."""
        return self._clients.get(submission.place.get(TOKEN, ""), self._client)

    def _status(self, submission: Submission) -> str:
        """The status that the claimant, or else any other user, is told.

        The claimant's token may have run out, or its rights; if nobody is told any
        status, the claimant's refusal counts.
        """
        reader, refusals = self._reader(submission), list[Exception]()
        for client in dict.fromkeys([reader, *self._clients.values()]):
            try:
                reply = client.call("GET", f"evaluations/{submission.key}/")
            except TokenError as error:
                refusals.append(error)
                continue
            if _has(reply, pk=submission.key):
                return str(reply.content.get("status"))
            refusal = client.refusal(reply)
            is_gone = reply.status in _GONE
            refusals.append(GoneError(refusal) if is_gone else refusal)
        raise refusals[0]

    def _claimed(
        self, submission: Submission, reply: Reply, client: Client
    ) -> Submission:
        """A submission as the platform describes it at its claim: that of its user."""
        claimed = self._submission(reply.content, client.mark)
        if claimed.user != submission.user:
            users = f"{safe(claimed.user)}'s, and not {safe(submission.user)}'s"
            raise NotOursError(f"at the claim, the platform calls it {users}")
        return claimed

    def _waiting(self) -> tuple[str, list[Any]]:
        """The evaluations that wait, as the first user sees them who sees any.

        A user who is not an external evaluator never sees one. The first value is the
        mark of that user's token.
        """
        last_use = {mark: number for number, mark in enumerate(self._used)}
        marks = sorted(self._clients, key=lambda mark: last_use.get(mark, -1))
        refusals: list[TokenError] = []
        for mark in marks:
            try:
                evaluations = self._seen_by(self._clients[mark])
            except TokenError as error:
                self._warn_once("The token %s is left out: %s", mark, str(error))
                self._odd.add(mark)
                refusals.append(error)
                continue
            if evaluations:
                return mark, evaluations
        if len(refusals) == len(marks):
            raise refusals[0]
        return marks[0], []

    def _seen_by(self, client: Client) -> list[Any]:
        """The evaluations of the phase that a user can claim, in the API's words."""
        params = {"submission__phase": self._phase}
        reply = client.call("GET", "evaluations/claimable_evaluations/", params=params)
        if not (reply.status == 200 and isinstance(reply.content, list)):
            raise self._client.refusal(reply)
        return [v for v in reply.content if at(v, "phase_pk") == self._phase]

    def _submission(self, value: Mapping[str, Any], mark: str) -> Submission:
        """An evaluation, as the platform describes it, and the token that claims it."""
        try:
            key = str(uuid.UUID(value["pk"]))
            user = user_of(value["submission"], key)
            image, model = value["algorithm_image"], value["algorithm_model"]
            place = {
                TOKEN: mark,
                "image": _plain(image["image"]),
                "image_pk": str(image["pk"]),
                "model": _plain(model["model"]) if model else "",
                "model_pk": str(model["pk"]) if model else "",
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self._client.unknown_platform() from error
        return Submission(
            key=key,
            team=folder_of(user, is_image=True),
            user=user,
            title=f"{safe(user)} ({key[:8]})",
            place=place,
        )


def _plain(url: str | None) -> str:
    """An address without its query, which may be a signature."""
    return (url or "").partition("?")[0]


def _has(reply: Reply, **expected: str) -> bool:
    """Whether the platform has obeyed a call, and its answer has these values."""
    values = {name: at(reply.content, name) for name in expected}
    return reply.status == 200 and values == expected
