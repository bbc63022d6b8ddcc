"""Evaluate a submission as the platform would."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from flare.cli.command import takes
from flare.cli.console import OutcomeError, say
from flare.common.files import at
from flare.platforms.codabench import rehearse as codabench
from flare.platforms.codabench.verdict import Verdict as CodabenchVerdict
from flare.platforms.grandchallenge.rehearse import RehearsalOptions, rehearse
from flare.platforms.grandchallenge.verdict import Verdict
from flare.platforms.options import PlatformOptions
from flare.results.metrics_json import prepare_output

PLACE = ("For organisers", 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request(RehearsalOptions):
    """What is rehearsed, and on which platform."""

    platform: PlatformOptions = field(default_factory=PlatformOptions)


@takes(Request, exclusive=("bundle", "ground_truth"))
def command(request: Request) -> None:
    bundle = request.platform.bundle
    verdict = _of_bundle(request, bundle) if bundle else _of_phase(request)
    if request.output:
        prepare_output(request.output)
        for name, content in verdict.files.items():
            (request.output / name).unlink(missing_ok=True)  # an earlier rehearsal's
            if content is not None:
                (request.output / name).write_bytes(content)
    if verdict.message:
        raise OutcomeError(verdict.message)
    if not verdict.is_ranked:
        what = "The result would not be on the leaderboard"
        raise OutcomeError(f"{what}: {verdict.warnings[0]}")


def _of_phase(request: Request) -> Verdict:
    phase = request.phase()
    say(f"Rehearsing {phase.title}: {request.submission}")
    run = rehearse(request, phase)
    verdict = Verdict(run=run, phase=phase, time_limit_s=request.time_limit_s)
    say(verdict)
    references = at(verdict.metrics, "evaluation", "references")
    if request.ground_truth and not verdict.message and references != "tarball":
        say(f"The labels of {request.ground_truth} were not used.")
    return verdict


def _of_bundle(request: Request, bundle: Path) -> CodabenchVerdict:
    say(f"Rehearsing {bundle}: {request.submission}")
    verdict = codabench.rehearse(request, bundle)
    say(verdict)
    return verdict
