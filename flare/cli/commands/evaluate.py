"""Score a folder or zip of predictions; writes metrics.json."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from flare.cli.command import takes, version_option
from flare.cli.console import Progress, say
from flare.common.environment import PLATFORM_GROUND_TRUTH, __version__, importing
from flare.common.options import (
    argument,
    challenge_option,
    csv_option,
    option,
    workers_option,
)
from flare.common.text import safe
from flare.evaluation.options import EvaluationOptions

if TYPE_CHECKING:
    from flare.evaluation.scoring.case import Attempt
    from flare.results.scores import Results

PLACE = ("For participants", 2)

LOW_DSC = 0.5
"""If most cases are below this DSC, it is asked what was done to them as a whole."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationRequest:
    """What is evaluated, and how."""

    # The image sets FLARE_INPUT and FLARE_OUTPUT; anywhere else, /output is nobody's
    # wish.
    submission: Path | None = argument(
        "Folder or zip of predictions.", default=None, metavar="PREDICTIONS"
    )
    predictions: Path | None = option(
        "The same (default: $FLARE_INPUT; in the image, that is /input).",
        default=None,
        flag="--input",
        envvar="FLARE_INPUT",
        metavar="DIR",
    )
    output: Path = option(
        "Folder that gets metrics.json (default: $FLARE_OUTPUT; in the image, that is"
        " /output).",
        envvar="FLARE_OUTPUT",
        metavar="DIR",
    )
    ground_truth: Path | None = option(
        f"Folder of reference labels (default: {PLATFORM_GROUND_TRUTH} if there are"
        " any, else the bundled ones).",
        default=None,
        metavar="DIR",
    )
    challenge: str = challenge_option()
    workers: int | None = workers_option()
    options: EvaluationOptions = field(default_factory=EvaluationOptions)
    csv: Path | None = csv_option()
    answers: Path | None = option(
        "Write each answer beside its reference to a table: for organisers alone.",
        default=None,
        metavar="FILE.csv",
    )

    def __post_init__(self) -> None:
        """Refuse to score nothing."""
        if not (self.submission or self.predictions):
            raise ValueError("Missing argument 'PREDICTIONS'")


@takes(EvaluationRequest, exclusive=("submission", "predictions"))
def command(request: EvaluationRequest) -> None:
    # Here, as the help should not wait for them.
    with importing():
        # Before ours, within whose imports its own would be so deep that Python needs
        # more memory for frames, and gives it back, a thousand times.
        import numpy  # noqa: F401

        from flare.challenge.reading import read_challenge
        from flare.common.environment import reuse_freed_memory
        from flare.evaluation.evaluate import evaluate_folder, submitted_folder
        from flare.evaluation.metrics.kernel import slow_text
        from flare.evaluation.submission.find import usual_references
        from flare.results.metrics_json import prepare_output, write_metrics
        from flare.results.scores import results_table

    reuse_freed_memory()  # here, and so in workers; not in a program that imports flare
    prepare_output(request.output)
    ground_truth = request.ground_truth or usual_references()
    rules = f"flare {__version__}, challenge {request.challenge}"
    say(f"{rules}, reference labels in {ground_truth}")
    if slow := slow_text():
        say(slow)
    challenge, options = read_challenge(request.challenge), request.options
    if options.decimals is None:
        options = replace(options, decimals=challenge.board.decimals)
    predictions = request.submission or request.predictions or Path()
    with submitted_folder(predictions) as folder:
        results = evaluate_folder(
            folder,
            ground_truth,
            challenge,
            options,
            workers=request.workers,
            on_case=on_case(Progress()),
            is_measured=not options.is_refused,  # nobody else needs it
        )
        cause = ""
        if "FLARE_INPUT" not in os.environ:  # in the image, nobody is told more
            cause = _common_cause(folder, ground_truth, request, results)
    file = write_metrics(results, request.output)
    if request.csv:
        from flare.results.metrics_reading import write_scores

        write_scores(request.csv, [request.output])
    if request.answers:
        from flare.results.answers_csv import write_answers

        write_answers(request.answers, results.answer_rows)
    say(f"\n{results_table(results)}\n\nWrote {file}")
    if cause:
        say(f"\n{cause}")


def _common_cause(
    predictions: Path, ground_truth: Path, request: EvaluationRequest, results: Results
) -> str:
    """Return a line on what most cases with a low DSC suffer from, if it is known."""
    low = {case.case for case in results.cases if case.is_below(LOW_DSC)}
    low -= {case.case for case in results.cases if case.failure}
    if 2 * len(low) <= len(results.cases):
        return ""
    # Not at the top: what it needs is slow to load.
    from flare.challenge.reading import read_challenge
    from flare.evaluation.doctor.report import common_cause
    from flare.evaluation.plan import plan_evaluation

    challenge = read_challenge(request.challenge)
    plan = plan_evaluation(
        predictions, ground_truth, challenge, request.options, is_measured=True
    )
    pairs = [pair for pair in plan.prepared.pairs if pair.case in low]
    return common_cause(pairs, plan.rules)


command.params.insert(0, version_option())


def on_case(progress: Progress) -> Callable[[int, int, Attempt], None]:
    """Tell of each case that it is done, and how."""
    from flare.challenge.metrics import METRICS  # not at the top: for --help

    def tell(number: int, total: int, attempt: Attempt) -> None:
        outcome = str(attempt.problem or "read")
        if attempt.score:
            outcome = " ".join(
                f"{METRICS[name].title} {METRICS[name].text(value)}"
                for name, value in attempt.score.by_metric.items()
            )
        case = safe(attempt.pair.case)
        progress(number, total, f"{case} {outcome} {attempt.seconds:.2f} s")

    return tell
