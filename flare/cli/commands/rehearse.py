"""Run the built image on a submission as the platform would."""

from __future__ import annotations

from flare.cli.command import takes
from flare.cli.console import OutcomeError, say
from flare.common.files import at
from flare.platforms.grandchallenge.rehearse import RehearsalOptions, rehearse
from flare.platforms.grandchallenge.verdict import Verdict
from flare.results.metrics_json import METRICS_JSON, prepare_output

PLACE = ("For organisers", 3)


@takes(RehearsalOptions)
def command(request: RehearsalOptions) -> None:
    phase = request.phase()
    say(f"Rehearsing {phase.title}: {request.submission}")
    run = rehearse(request, phase)
    verdict = Verdict(run=run, phase=phase, time_limit_s=request.time_limit_s)
    say(verdict)
    if verdict.message:
        raise OutcomeError(verdict.message)
    references = at(verdict.metrics, "evaluation", "references")
    if request.ground_truth and references != "tarball":
        say(f"The labels of {request.ground_truth} were not used.")
    if not verdict.is_ranked:
        raise OutcomeError(
            f"The result would not be on the leaderboard: {verdict.warnings[0]}"
        )
    if request.output and run.metrics:
        prepare_output(request.output)
        (request.output / METRICS_JSON).write_bytes(run.metrics)
