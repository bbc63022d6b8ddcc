"""Scores abdominal organ segmentations for the MICCAI FLARE challenges."""

from flare._version import __version__
from flare.challenge import Challenge, read_challenge
from flare.errors import FlareError, HostError, OrganiserError, SubmissionError
from flare.evaluation import evaluate
from flare.metrics import dice, normalized_surface_dice
from flare.results import Results, write_metrics

__all__ = [
    "Challenge",
    "FlareError",
    "HostError",
    "OrganiserError",
    "Results",
    "SubmissionError",
    "__version__",
    "dice",
    "evaluate",
    "normalized_surface_dice",
    "read_challenge",
    "write_metrics",
]
