"""Score a folder of predictions; writes metrics.json."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from flare.cli.command import Command, Option
from flare.cli.console import fits
from flare.cli.options import (
    PATH,
    OneOf,
    Parsed,
    challenge_option,
    csv_option,
    version_option,
    workers_option,
)
from flare.cli.progress import Progress
from flare.common.importing import importing
from flare.common.places import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.text import safe
from flare.common.version import __version__

if TYPE_CHECKING:
    from flare.evaluation.scoring.case import Attempt

PLACE = ("For participants", 2)

_log = logging.getLogger(__name__)


def decimals_of(text: str) -> int:
    """A number of decimals."""
    if not text.isdecimal() or int(text) > 15:
        raise ValueError(f"{text!r} is not a whole number from 0 to 15")
    return int(text)


# The image sets FLARE_INPUT and FLARE_OUTPUT; anywhere else, /output is nobody's wish.
@click.command("evaluate", cls=Command, params=[version_option()])
@click.option(
    "--input",
    "predictions",
    cls=Option,
    type=PATH,
    envvar="FLARE_INPUT",
    required=True,
    metavar="DIR",
    help="Folder of predictions (default: $FLARE_INPUT; in the image, that is /input).",
)
@click.option(
    "--output",
    cls=Option,
    type=PATH,
    envvar="FLARE_OUTPUT",
    required=True,
    metavar="DIR",
    help="Folder that gets metrics.json (default: $FLARE_OUTPUT; in the image, that is"
    " /output).",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="DIR",
    help=f"Folder of reference labels (default: {PLATFORM_GROUND_TRUTH} if there are"
    " any, else the bundled ones).",
)
@challenge_option
@workers_option
@click.option(
    "--on-bad-case",
    type=OneOf(["refuse", "worst"]),
    default="refuse",
    help="Refuse a submission with a missing or unusable case, or let the case score 0"
    " (default: refuse).",
)
@click.option(
    "--grid",
    type=OneOf(["strict", "size"]),
    help="Say whether only the size of a grid must be right (default: the challenge's"
    " rule).",
)
@click.option(
    "--unknown-labels",
    type=OneOf(["refuse", "ignore"]),
    help="Say what unknown labels in predictions mean (default: the challenge's rule).",
)
@click.option(
    "--decimals",
    type=Parsed(decimals_of),
    envvar="FLARE_DECIMALS",
    metavar="N",
    help="Round the numbers in metrics.json to N decimals (default: $FLARE_DECIMALS,"
    " else the challenge's for the board, else not at all).",
)
@csv_option
def command(
    *,
    predictions: Path,
    output: Path,
    ground_truth: Path | None,
    challenge: str,
    workers: int | None,
    on_bad_case: Literal["refuse", "worst"],
    grid: Literal["strict", "size"] | None,
    unknown_labels: Literal["refuse", "ignore"] | None,
    decimals: int | None,
    csv: Path | None,
) -> None:
    """Score a folder of predictions."""
    # Here, as neither the help nor a shell that completes a word has to wait for them.
    with importing():
        # Before ours, within whose imports its own would be so deep that Python needs
        # more memory for frames, and gives it back, a thousand times.
        import numpy  # noqa: F401

        from flare.challenge.reading import read_challenge
        from flare.common.allocator import reuse_freed_memory
        from flare.common.errors import SubmissionError
        from flare.evaluation.evaluate import evaluate
        from flare.results.metrics_json import prepare_output, write_metrics
        from flare.results.scores import results_table

    reuse_freed_memory()  # here, and so in workers; not in a program that imports flare
    prepare_output(output)
    ground_truth = ground_truth or _usual_references()
    _log.info(
        "flare %s, challenge %s, reference labels in %s",
        __version__,
        challenge,
        ground_truth,
    )
    rules = read_challenge(challenge)
    try:
        results = evaluate(
            predictions,
            ground_truth,
            challenge=rules,
            on_bad_case=on_bad_case,
            grid=grid,
            unknown_labels=unknown_labels,
            decimals=rules.board.decimals if decimals is None else decimals,
            workers=workers,
            on_case=on_case(Progress(logs_time=False)),
            is_measured=on_bad_case == "worst",  # nobody else needs it
        )
    except SubmissionError as error:
        _tell_teams(predictions, error)
        raise
    file = write_metrics(results, output)
    if csv:
        from flare.results.metrics_reading import write_scores

        write_scores(csv, [output])
    tables = (results_table(results), results_table(results, has_std=False))
    _log.info("\n%s\n\nWrote %s", tables[not fits(tables[0])], file)


def on_case(progress: Progress) -> Callable[[int, int, Attempt], None]:
    """Tell of each case that it is done, and how."""
    from flare.challenge.metrics import METRICS  # not at the top: for --help

    def tell(number: int, total: int, attempt: Attempt) -> None:
        outcome = str(attempt.problem or "read")
        if attempt.score:
            outcome = " ".join(
                f"{METRICS[name].title} {value:.{METRICS[name].decimals}f}"
                for name, value in attempt.score.by_metric.items()
            )
        case = safe(attempt.pair.case)
        progress(number, total, f"{case} {outcome} {attempt.seconds:.2f} s")

    return tell


def _usual_references() -> Path:
    """Those that the platform has unpacked, if there are any, else the bundled ones."""
    from flare.evaluation.submission.find import has_label_maps

    is_given = has_label_maps(PLATFORM_GROUND_TRUTH)
    return PLATFORM_GROUND_TRUTH if is_given else BUNDLED_GROUND_TRUTH


def _tell_teams(folder: Path, error: Exception) -> None:
    """Say which command is for the folder of all teams, if it is what was given.

    In the log alone, and not in the image: there a participant is told, to whom no
    other command is known.
    """
    from flare.common.text import shell_word
    from flare.evaluation.errors import DuplicateCasesError, NothingToScoreError

    entries = sorted(path for path in folder.iterdir() if path.name[0] != ".")
    are_teams = all(p.is_dir() or p.suffix.lower() == ".zip" for p in entries)
    problems = getattr(error, "problems", (error,))
    is_theirs = isinstance(problems[0], DuplicateCasesError | NothingToScoreError)
    if "FLARE_INPUT" not in os.environ and len(entries) > 1 and are_teams and is_theirs:
        command = f"flare score {shell_word(folder)} --ground-truth LABELS"
        _log.info("If each of these is a team's: %s --output RESULTS", command)
