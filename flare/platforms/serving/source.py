"""Says where submissions of a service come from, and where its answers go."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Protocol, TypedDict

from flare.common.errors import MESSAGE_LIMIT, HostError, SubmissionError
from flare.common.schema import Count, Is, Positive, Text
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


class ReturnedFile(TypedDict):
    """What `flare serve` says of a submission: it is sent to the platform, or written
    into DIR/returned of a drop folder.
    """  # noqa: D205  a sentence of the public schema

    status: Literal["Succeeded", "Failed"]
    """Whether there is a result."""
    metrics: NotRequired[Annotated[dict[str, Any], Is(like=ReturnedMetrics, **_MORE)]]
    """If there is: metrics.json of the team, with running times, GPU memory and
    statuses in `case` and `aggregates`."""
    error_message: NotRequired[Annotated[str, Is(minLength=1, maxLength=1024)]]
    """If there is none: one line that says what the team can do."""


class ReturnedMetrics(TypedDict):
    """The keys of `metrics` that are described here."""

    case: Annotated[dict[str, Any], Is(like=ReturnedCases, **_MORE)]
    """As in metrics.json, and further columns."""
    aggregates: Annotated[dict[str, Any], Is(like=ReturnedCounts, **_MORE)]
    """As in metrics.json, and further numbers: statistics of both, in which a failed
    case counts with the limits."""


class ReturnedCases(TypedDict):
    """Columns of `case` that metrics.json does not have."""

    status: Annotated[dict[str, str], Is(each=("", "A status of efficiency.csv."))]
    """How the run of each case has ended, by its number."""
    runtime_s: NotRequired[_ByNumber]
    """Running time of each case in s, by its number; null if it has failed."""
    max_gpu_memory_mb: NotRequired[_ByNumber]
    """GPU memory of each case in MB, by its number; null if it has failed; not there
    without a GPU."""


class ReturnedCounts(TypedDict):
    """Keys of `aggregates` that metrics.json does not have."""

    cases: Positive
    """How many cases there are."""
    cases_ok: Positive
    """How many have a label map."""
    cases_failed: Count
    """How many have none."""


_MORE = {"additionalProperties": True}
_ByNumber = Annotated[dict[str, float | None], Is(each=("", "Of a case."))]
RETURNED: dict[str, Any] = {
    "additionalProperties": False,
    "if": {"properties": {"status": {"const": "Succeeded"}}},
    "then": {"required": ["metrics"]},
    "else": {"required": ["error_message"]},
}
"""Of the whole file."""


def succeeded(metrics: dict[str, Any]) -> ReturnedFile:
    """The answer for a submission that has a result."""
    return {"status": "Succeeded", "metrics": metrics}


def failed(message: str) -> ReturnedFile:
    """The answer for one that has none, with the line for whoever has handed it in."""
    line = printable(message)[:MESSAGE_LIMIT]
    return {"status": "Failed", "error_message": line}


class NotOursError(Exception):
    """Another service has claimed a submission, or its time is over; the text says."""


class NotNowError(Exception):
    """A submission cannot be claimed now, but perhaps later; the text says why."""


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
            If it has to wait, or was tried before in vain.
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

    def answer(
        self, submission: Submission, answer: ReturnedFile, *, is_again: bool
    ) -> None:
        """Hand on the outcome of a submission, once.

        Raises
        ------
        NotOursError
            If it is too late for that.
        GoneError
            If it is not there now.
        """
