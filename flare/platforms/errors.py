"""Why a platform refuses, and why a submission that was measured has no result.

An error that one platform alone has stands in its folder, where `flare explain` finds
it, too, if it has a code of its own and its module is called errors.
"""

from __future__ import annotations

from flare.common.errors import HostError, SubmissionError


class PlatformError(HostError):
    """The platform refuses what is asked of it, or does not answer.

    `download` was refused, or got no answer: the message says which. A token has to be
    that of an admin of the challenge.
    """

    code = "H09"
    remedy = "The documentation's page Phase settings tells how to get results."


class NoCaseError(SubmissionError):
    """An image has failed on every case.

    It was loaded and run as the challenge runs images, and gave no label map that could
    be scored. The message has how the runs ended, and what the first one said. Try the
    image on a computer of yours in the same way, without a network and with the same
    limits of time and memory: `flare check teamname.tar.gz --run CT.nii.gz`. An
    algorithm of grand-challenge.org needs `--contract algorithm`, too, with the paths
    of its interface.

    The platform also says that the algorithm "ran successfully, but the scoring
    failed": that is this error. Such a submission does not count against your limit.
    The platform takes no image twice ("already exists"), so send one that you have
    repaired, or of which at least a byte has changed.
    """

    code = "F17"
    remedy = "Try it as it is measured: flare check TEAMNAME.tar.gz --run CT.nii.gz."

    def __init__(self, cases: int, endings: str) -> None:
        self.cases, self.endings = cases, endings
        self.finding = f"0 of {cases} cases gave a label map: {endings}"


class OverdueError(SubmissionError):
    """An image was not measured in the time that a submission has.

    The platform gives a submission 24 hours from the moment when it is claimed. The
    message has how many cases were done by then. If your image takes much longer than
    the challenge allows for a case, make it faster and submit it anew. If not, the
    computer that measures was busy or out of order: ask the organisers.

    A submission with this message has failed, and does not count against your limit.
    One that the platform has itself ended ("Cancelled") counts: the organisers can
    raise the limit by one. The platform takes no image twice ("already exists"): to
    submit the same one again, change a byte of it, as by building it with another
    `--label`.
    """

    code = "F18"
    remedy = (
        "Make it faster, or ask the organisers whether their computer was at fault."
    )

    def __init__(self, hours: float, done: int, cases: int) -> None:
        self.hours, self.done, self.cases = hours, done, cases
        self.finding = (
            f"It was not measured within {hours:g} hours:"
            f" {done} of {cases} cases were done"
        )
