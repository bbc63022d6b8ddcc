"""Say why a score is low, and write repaired copies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flare.cli.command import takes
from flare.cli.console import OutcomeError, say
from flare.common.errors import InputError
from flare.common.options import argument, option, workers_option
from flare.common.text import count, listing, safe

PLACE = ("For participants", 3)

KEPT = (
    ", with each label from 1 to 255, also of no reference: --challenge NAME --fix"
    " NEW_FOLDER leaves out what that challenge refuses."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DoctorRequest:
    """What is diagnosed, and where repaired copies go."""

    predictions: Path = argument(
        "Folder of predictions, or its zip.", metavar="PREDICTIONS"
    )
    ground_truth: Path | None = option(
        "Folder of reference labels.", default=None, metavar="DIR"
    )
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
    from flare.evaluation.doctor.folder import check_new, diagnose
    from flare.evaluation.submission.unpack import label_maps_folder

    if request.ground_truth is None:
        raise InputError(
            "No labels: what was done to a prediction shows beside its reference alone",
            "Give a folder of labels with --ground-truth, such as those of training"
            " cases that you have predicted.",
        )
    if request.fix:
        check_new(request.fix, request.predictions, request.ground_truth)
    with label_maps_folder(request.predictions) as folder:
        diagnosis = diagnose(
            folder,
            request.ground_truth,
            challenge=request.challenge,
            workers=request.workers,
        )
        say("\n".join(diagnosis.lines))
        if request.fix:
            cases = diagnosis.write_repaired(request.fix)
            text = f"Wrote {count(len(cases), 'case')} into {safe(request.fix)}"
            pairs = [finding.pair for finding in diagnosis.findings]
            left_out = [pair.case for pair in pairs if pair.case not in cases]
            if left_out:
                text += f"; without {listing(left_out)}, which would be refused"
            say(f"\n{text}{KEPT * bool(diagnosis.doubt)}")
        elif any(finding.repair for finding in diagnosis.findings):
            say("\n--fix NEW_FOLDER writes repaired copies of all predictions.")
    if not diagnosis.is_sound:
        raise OutcomeError("")
