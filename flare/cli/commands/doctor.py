"""Say why a score is low, and write repaired copies."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from flare.cli.command import takes
from flare.cli.console import OutcomeError
from flare.common.options import argument, option, workers_option
from flare.common.text import count, safe

PLACE = ("For participants", 3)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorRequest:
    """What is diagnosed, and where repaired copies go."""

    predictions: Path = argument(
        "Folder of predictions, or its zip.", metavar="PREDICTIONS"
    )
    ground_truth: Path = option("Folder of reference labels.", metavar="DIR")
    challenge: str | None = option(
        "Name or file of the challenge (default: every label of the references is an"
        " organ, by its number).",
        default=None,
        metavar="NAME|FILE.toml",
    )
    fix: Path | None = option(
        "Write repaired copies of all predictions into this new folder.",
        default=None,
        metavar="FOLDER",
    )
    workers: int | None = workers_option()


@takes(DoctorRequest)
def command(request: DoctorRequest) -> None:
    """Say why a score is low, and write repaired copies."""
    from flare.evaluation.doctor.folder import check_new, diagnose
    from flare.evaluation.submission.unpack import label_maps_folder

    if request.fix:
        check_new(request.fix, request.predictions)
    with label_maps_folder(request.predictions) as folder:
        diagnosis = diagnose(
            folder,
            request.ground_truth,
            challenge=request.challenge,
            workers=request.workers,
        )
        _log.info("%s", "\n".join(diagnosis.lines))
        if request.fix:
            diagnosis.write_repaired(request.fix)
            cases = count(len(diagnosis.findings), "case")
            _log.info("\nWrote %s into %s", cases, safe(request.fix))
        elif any(finding.repair for finding in diagnosis.findings):
            _log.info("\n--fix NEW_FOLDER writes repaired copies of all predictions.")
    if not diagnosis.is_sound:
        raise OutcomeError("")
