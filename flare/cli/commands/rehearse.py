"""Run the built image on a submission as the platform would."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.console import OutcomeError
from flare.cli.options import PATH, Parsed
from flare.cli.phases import default_phase, phase_options
from flare.common.errors import InputError
from flare.common.options import positive
from flare.common.text import safe
from flare.platforms.grandchallenge.phase import (
    Phase,
    parse_phase,
    read_phase,
)
from flare.platforms.grandchallenge.rehearse import (
    TIME_LIMIT_S,
    image_settings,
    judge,
    rehearse,
    verdict_text,
)
from flare.results.metrics_json import prepare_output

PLACE = ("For organisers", 3)

_log = logging.getLogger(__name__)


@click.command("rehearse", cls=Command)
@click.argument(
    "submission",
    type=PATH,
    metavar="FOLDER|ZIP|JOBS_FOLDER",
    help="What a participant would upload, or an /input with a predictions.json.",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="TAR.GZ|DIR",
    help="The phase's ground truth tarball (default: none, so the image's labels).",
)
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="Folder that gets a copy of metrics.json.",
)
@click.option(
    "--image",
    envvar="FLARE_IMAGE",
    default="flare-eval",
    metavar="NAME",
    help="Run this image (default: $FLARE_IMAGE, else flare-eval).",
)
@click.option(
    "--engine",
    envvar="FLARE_ENGINE",
    default="docker",
    metavar="NAME",
    help="Run it by docker or podman (default: $FLARE_ENGINE, else docker).",
)
@click.option(
    "--time-limit",
    type=Parsed(positive),
    default=TIME_LIMIT_S,
    metavar="S",
    help="End it after S seconds (default: an hour, as on the platform).",
)
@phase_options
def command(
    *,
    submission: Path,
    ground_truth: Path | None,
    output: Path | None,
    image: str,
    engine: str,
    time_limit: int,
    phase: str,
    phase_settings: Path | None,
) -> None:
    """Run the image as the platform would, and say what it would make of it."""
    if not submission.exists():
        raise InputError(f"{safe(submission)}: there is no such file or folder")
    if phase_settings:
        settings = read_phase(phase_settings, phase)
    else:
        settings = _phase_of_image(image, engine, phase)
    _log.info("Rehearsing %s: %s", settings.title, submission)
    run = rehearse(
        submission,
        settings,
        image=image,
        engine=engine,
        ground_truth=ground_truth,
        time_limit_s=time_limit,
    )
    verdict = judge(run, settings, time_limit_s=time_limit)
    _log.info("%s", verdict_text(run, verdict))
    if verdict.message:
        raise OutcomeError(verdict.message)
    if ground_truth and verdict.references != "tarball":
        _log.info("The labels of %s were not used.", ground_truth)
    if not verdict.is_ranked:
        raise OutcomeError(
            f"The result would not be on the leaderboard: {verdict.warnings[0]}"
        )
    if output and run.metrics:
        prepare_output(output)
        (output / "metrics.json").write_bytes(run.metrics)


def _phase_of_image(image: str, engine: str, name: str) -> Phase:
    """The phase by the settings of the image's challenge."""
    challenge, settings = image_settings(image, engine)
    if not challenge:
        return default_phase(name)
    _log.info(
        "Phase settings: those that phase-settings prints for %s, the image's challenge"
        " (--phase-settings takes others)",
        safe(challenge),
    )
    return parse_phase(settings, name, source=f"phase-settings of {challenge}")
