"""Says where submissions of a service come from, and where its answers go."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from flare.common.errors import MESSAGE_LIMIT, HostError, SubmissionError
from flare.common.schema import Is, Text
from flare.common.text import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What somebody has handed in, to be measured."""

    key: Text
    """Tells it from all others of its source."""
    team: Text
    """Name of its folder in RESULTS."""
    user: str = ""
    """Whose folder that is, as the source calls them; empty if that is not known."""
    title: str
    """What people call it."""
    place: Annotated[dict[str, str], Is(each=("", "An address, or a key."))] = field(
        default_factory=dict
    )
    """What its source needs to get it again after a restart; no secrets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent for a submission, written before it is sent: each try sends the
    same.
    """  # noqa: D205  a sentence of the public schema

    metrics: dict[str, Any] | None = None
    """As in TEAMNAME.json of a folder; null if there is no result."""
    message: Annotated[str, Is(maxLength=1024)] = ""
    """For whoever has handed it in, if there is no result; empty otherwise."""

    @property
    def status(self) -> Literal["Succeeded", "Failed"]:
        """In the platform's words."""
        return "Failed" if self.metrics is None else "Succeeded"

    @property
    def content(self) -> dict[str, Any]:
        """What is sent, by the platform's keys."""
        if self.metrics is None:
            line = printable(self.message)[:MESSAGE_LIMIT]
            return {"status": self.status, "error_message": line}
        return {"status": self.status, "metrics": self.metrics}


class NotOursError(Exception):
    """Another service has claimed a submission, or its time is over; the text says."""


class NotNowError(Exception):
    """A submission cannot be claimed now, but perhaps later; the text says why."""


class ClaimAnewError(NotNowError):
    """A claim was not heard, or was refused; it can be made anew at once."""


class GoneError(Exception):
    """The source does not have a submission, or its file, or does not show it to us.

    Parameters
    ----------
    error : HostError
        What it says.
    told : SubmissionError, optional
        The message for the team if it stays so until the hours are over; without one,
        the submission is given up then.
    """

    def __init__(self, error: HostError, told: SubmissionError | None = None) -> None:
        super().__init__(str(error))
        self.error, self.told = error, told


class Source(Protocol):
    """Where submissions come from, and where answers go.

    Each method raises a HostError for what goes wrong on the way, such as a platform
    that refuses, and a SubmissionError for what is wrong with a submission itself.
    """

    is_named: bool
    """Whether an image has to be called like its team; not where authors choose."""

    @property
    def name(self) -> str:
        """What it is, always the same for one source."""

    def claimable(self) -> list[Submission]:
        """Submissions that nobody has claimed, the oldest first."""

    def claim(self, submission: Submission, *, is_again: bool) -> Submission:
        """Let nobody else have a submission; it, as the source describes it then.

        Parameters
        ----------
        submission : Submission
            That was claimable.
        is_again : bool
            Whether it was tried before, with an outcome that is not known.

        Raises
        ------
        NotOursError
            If somebody else was faster.
        NotNowError
            If it has to wait; a `ClaimAnewError` if it was tried before in vain.
        GoneError
            If it was tried before, and is not there now.
        """

    def download(self, submission: Submission, folder: Path) -> Path:
        """Get the archive, unless it is there already; its file, called TEAM.tar.gz.

        A model that was handed in with it lies beside it, called TEAM.model.tar.gz.

        Raises
        ------
        GoneError
            If the team may be the reason why it is not there.
        """

    def answer(self, submission: Submission, answer: Answer, *, is_again: bool) -> None:
        """Hand on the outcome of a submission, once.

        Raises
        ------
        NotOursError
            If it is too late for that.
        GoneError
            If it is not there now.
        """
