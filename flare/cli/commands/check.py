"""Say what the evaluation would refuse."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy  # noqa: F401  before ours, as in evaluate.py

from flare.challenge.reading import read_challenge
from flare.cli.command import takes
from flare.cli.commands.evaluate import on_case
from flare.cli.console import OutcomeError, Progress, say
from flare.common.errors import InputError
from flare.common.options import argument, challenge_option, option, workers_option
from flare.common.text import printable, safe
from flare.evaluation.check import check_submission
from flare.evaluation.errors import UploadError
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import with_options
from flare.evaluation.submission.unpack import is_container_image, label_maps_folder
from flare.measuring.engines.interface import engine_option, find_engine
from flare.measuring.options import Contract
from flare.results.limits import Limits

if TYPE_CHECKING:
    from flare.measuring.archive.reading import Archive

PLACE = ("For participants", 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRequest:
    """What is to be checked, and how."""

    predictions: Path = argument(
        "What would be zipped, or the image that would be sent.",
        metavar="PREDICTIONS|TEAMNAME.tar.gz",
    )
    images: Path | None = option(
        "Compare names and grids with those of the CTs in this folder.",
        default=None,
        metavar="DIR",
    )
    ground_truth: Path | None = option(
        "Compare them with these reference labels, where they are public.",
        default=None,
        metavar="DIR",
    )
    run: Path | None = option(
        "Also run TEAMNAME.tar.gz on this image, as it will be measured.",
        default=None,
        metavar="CT_IMAGE",
    )
    model: Path | None = option(
        "The model of TEAMNAME.tar.gz, for /opt/ml/model of its containers (default:"
        " TEAMNAME.model.tar.gz beside it, if it is there).",
        default=None,
        metavar="FILE.tar.gz",
    )
    limits: Limits = field(default_factory=Limits)
    contract: Contract = field(default_factory=Contract)
    engine: str = engine_option()
    challenge: str = challenge_option()
    workers: int | None = workers_option()


@takes(CheckRequest, exclusive=("images", "ground_truth"))
def command(request: CheckRequest) -> None:
    if is_container_image(request.predictions):
        _check_archive(request)
        return
    if request.run or request.model:
        raise InputError(
            "--run, --model: they are for an image, TEAMNAME.tar.gz",
            "Give it in the place of the predictions.",
        )
    try:
        with label_maps_folder(request.predictions) as folder:
            _check_folder(request, folder)
    except UploadError as error:
        say(error)
        raise OutcomeError("") from error


def _check_folder(request: CheckRequest, folder: Path) -> None:
    challenge = read_challenge(request.challenge)
    report = check_submission(
        folder,
        challenge,
        ground_truth=request.ground_truth,
        images=request.images,
        workers=request.workers,
        on_case=on_case(Progress()) if sys.stdout.isatty() else None,
    )
    if report.lines:
        say("\n".join(filter(None, (*report.lines, report.hint))))
        raise OutcomeError("")
    is_whole = request.images or request.ground_truth
    what = "this submission."
    if not is_whole and challenge.organs:
        what = "the files themselves; add --images with the CTs to compare names and"
        what += " grids, and to see whether every case is there."
    elif not is_whole:
        what = "the files themselves; add --ground-truth, where references are public,"
        what += " to see whether every answer is there."
    verdict = f"Nothing is wrong with {what}"
    if report.common_cause:
        verdict = f"Nothing is refused, but {report.common_cause}"
    say(f"{report.summary}\n{verdict}")


def _check_archive(request: CheckRequest) -> None:
    from flare.measuring.archive.model import model_beside
    from flare.measuring.archive.reading import read_archive

    if request.images or request.ground_truth:
        raise InputError(
            "--images, --ground-truth: they are for predictions",
            "Run an image on one CT with --run; zip label maps.",
        )
    archive = read_archive(
        request.predictions,
        contract=request.contract,
        model=request.model or model_beside(request.predictions),
    )
    for problem in archive.problems:
        say(problem)
    for doubt in archive.doubts:
        say(f"{safe(archive.path.name)}: doubtful: {doubt}")
    if archive.problems:
        raise OutcomeError("")
    size = f"{archive.unpacked_bytes / 2**20:.0f} MB unpacked"
    image = f"image {archive.image[:12]} of team {archive.team}"
    say(f"{safe(archive.path.name)}: {image}, {size}, can be loaded.")
    if model := archive.model:
        size = f"{model.unpacked_bytes / 2**20:.0f} MB unpacked"
        name = f"{safe(model.path.name)}: model {model.sha256[:12]}"
        say(f"{name}, {size}, can be unpacked.")
    if request.run:
        _try_archive(archive, request, request.run)


def _try_archive(archive: Archive, request: CheckRequest, image: Path) -> None:
    """Run an image on one case, with the very flags that count."""
    from flare.measuring.container import Conditions, opened_limits
    from flare.measuring.image import loaded_image
    from flare.measuring.trial import case_of, run_case
    from flare.results.efficiency_csv import RunStatus
    from flare.results.team_folder import FolderLock

    challenge = read_challenge(request.challenge)
    case = case_of(image, challenge, request.contract)
    with (
        tempfile.TemporaryDirectory(prefix="flare-check-") as folder,
        opened_limits(request.limits) as (limits, gpu),
        FolderLock(Path(folder)) as lock,
        loaded_image(
            archive,
            Path(folder),
            engine=find_engine(request.engine),
            conditions=Conditions(limits=limits, gpu=gpu, contract=request.contract),
            lock=lock,
        ) as loaded,
    ):
        trial = run_case(loaded, case, challenge)
        log = trial.run.log.decode("utf-8", "replace").strip() if trial.run else ""
        if log:
            lines = "\n".join(f"  {printable(line)}" for line in log.splitlines())
            say(f"The container says:\n{lines[-2000:]}")
        status = trial.status
        if status is not RunStatus.OK or not trial.run:
            what = f"{status.value}: {trial.message}"
            say(f"{archive.team}, {safe(case.case)}: {what}")
            raise OutcomeError("")
        say(f"{safe(case.case)}: ok, {trial.run.runtime_s:.2f} s.")
        rules = with_options(challenge, EvaluationOptions(unknown_labels="ignore"))
        report = check_submission(trial.folder, rules, workers=1, are_jobs_read=False)
        say(report.summary or report.lines[0])
