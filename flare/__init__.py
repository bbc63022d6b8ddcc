"""Scores abdominal organ segmentations for the MICCAI FLARE challenges.

A folder of predictions, scored against a folder of reference labels:

    results = flare.evaluate("predictions", "labels", challenge="flare21")
    results.metrics["dsc"]                   # a number for each of results.cases
    flare.write_metrics(results, "results")  # metrics.json

Those of all teams, on as many processes as there are; each case is scored only once:

    scored = flare.evaluate_many("teams", "labels", "results")
    scored.to_frame()                        # a row for each team and case

One prediction and its reference, as images of SimpleITK or nibabel, or as files; or as
arrays of labels along z, y, x, also tensors, by a challenge or by labels alone:

    score = flare.score_pair(reference, prediction, challenge="flare21")
    flare.score_pair(first, second, spacing=(2.5, 0.8, 0.8), labels={"liver": 1})
    score.dsc, score.nsd, score.organs

Why scores are low: mirrored, shifted, resampled, other label numbers and the like:

    diagnosis = flare.diagnose("predictions", "labels")
    diagnosis.lines                          # what flare doctor says

Two masks along z, y, x, which are arrays of bool, or of 0 and 1:

    flare.dice(reference, prediction)
    flare.normalized_surface_dice(reference, prediction, (2.5, 0.8, 0.8), tolerance=1.0)
    flare.hd95(reference, prediction, (2.5, 0.8, 0.8))
    flare.assd(reference, prediction, (2.5, 0.8, 0.8))

What teams have achieved, as pandas tables; and their order:

    results.to_frame()                                   # a row for each case
    flare.read_efficiency("measured/team_a/efficiency.csv")
    flare.read_trace("measured/team_a/traces/case_001.csv")
    ranking = flare.rank("measured", challenge="flare21")
    ranking.standings, ranking.case_ranks
    ranking.write("ranking")                             # all that flare rank writes

The rules of a challenge, bundled or of your own:

    flare.read_challenge("flare22")
    flare.read_challenge("mine.toml")

What cannot be done raises a FlareError, whose text is one line that says what to do: a
SubmissionError if the predictions are at fault, an OrganiserError if the challenge or
the reference labels are, a HostError if a file or the memory is.

Only the names in flare.__all__ are meant to be used; the modules may change. On the
command line there is more: flare --help.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flare.challenge.reading import read_challenge as read_challenge
    from flare.challenge.rules import Challenge as Challenge
    from flare.common.environment import __version__ as __version__
    from flare.common.errors import FlareError as FlareError
    from flare.common.errors import HostError as HostError
    from flare.common.errors import OrganiserError as OrganiserError
    from flare.common.errors import SubmissionError as SubmissionError
    from flare.evaluation.doctor.folder import diagnose as diagnose
    from flare.evaluation.evaluate import evaluate as evaluate
    from flare.evaluation.many.score import evaluate_many as evaluate_many
    from flare.evaluation.masks import assd as assd
    from flare.evaluation.masks import dice as dice
    from flare.evaluation.masks import hd95 as hd95
    from flare.evaluation.masks import (
        normalized_surface_dice as normalized_surface_dice,
    )
    from flare.evaluation.score_pair import score_pair as score_pair
    from flare.reports.rank import rank as rank
    from flare.results.efficiency_csv import read_efficiency as read_efficiency
    from flare.results.metrics_json import write_metrics as write_metrics
    from flare.results.scores import Results as Results
    from flare.results.traces_csv import read_trace as read_trace

_MODULES = {
    "Challenge": "flare.challenge.rules",
    "FlareError": "flare.common.errors",
    "HostError": "flare.common.errors",
    "OrganiserError": "flare.common.errors",
    "Results": "flare.results.scores",
    "SubmissionError": "flare.common.errors",
    "__version__": "flare.common.environment",
    "assd": "flare.evaluation.masks",
    "diagnose": "flare.evaluation.doctor.folder",
    "dice": "flare.evaluation.masks",
    "evaluate": "flare.evaluation.evaluate",
    "evaluate_many": "flare.evaluation.many.score",
    "hd95": "flare.evaluation.masks",
    "normalized_surface_dice": "flare.evaluation.masks",
    "rank": "flare.reports.rank",
    "read_challenge": "flare.challenge.reading",
    "read_efficiency": "flare.results.efficiency_csv",
    "read_trace": "flare.results.traces_csv",
    "score_pair": "flare.evaluation.score_pair",
    "write_metrics": "flare.results.metrics_json",
}
"""Where each name comes from: it is loaded when it is first used."""

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Load a name that is used for the first time."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    """All names, those included that are not loaded yet."""
    return sorted({*globals(), *__all__})
