"""Run the built image on a submission as the platform would."""

from __future__ import annotations

import logging

from flare.cli.command import takes
from flare.cli.console import OutcomeError
from flare.common.files import at
from flare.platforms.grandchallenge.rehearse import RehearsalOptions, rehearse
from flare.platforms.grandchallenge.verdict import Verdict
from flare.results.metrics_json import METRICS_JSON, prepare_output

PLACE = ("For organisers", 3)

_log = logging.getLogger(__name__)


@takes(RehearsalOptions)
def command(request: RehearsalOptions) -> None:
    """Run the image as the platform would, and say what it would make of it."""
    phase = request.phase()
    _log.info("Rehearsing %s: %s", phase.title, request.submission)
    run = rehearse(request, phase)
    verdict = Verdict(run=run, phase=phase, time_limit_s=request.time_limit_s)
    _log.info("%s", verdict)
    if verdict.message:
        raise OutcomeError(verdict.message)
    references = at(verdict.metrics, "evaluation", "references")
    if request.ground_truth and references != "tarball":
        _log.info("The labels of %s were not used.", request.ground_truth)
    if not verdict.is_ranked:
        raise OutcomeError(
            f"The result would not be on the leaderboard: {verdict.warnings[0]}"
        )
    if request.output and run.metrics:
        prepare_output(request.output)
        (request.output / METRICS_JSON).write_bytes(run.metrics)
