"""Reads the label maps that a metrics.json was made from, and the CTs behind them.

Any other label maps are refused. Slices of CTs are JPEGs, which SimpleITK writes, as it
reads the CTs: at the same likeness they are a tenth larger than WebP, which would need
another library, and a fifth of a PNG, because the noise of a CT cannot be packed.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flare.challenge.formats import FileNames
from flare.challenge.metrics import METRICS, NO_VALUE, metric_named
from flare.challenge.reading import recorded_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import InputError
from flare.common.schema import build
from flare.common.text import safe
from flare.evaluation.answers import answer_reference_files
from flare.evaluation.check import find_images
from flare.evaluation.errors import FileFormatError, GroundTruthError
from flare.evaluation.labelmaps.grid import Grid, compare_positions, compare_sizes
from flare.evaluation.labelmaps.reading import LabelMap, verify_voxels
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import (
    file_checksum,
    find_submission,
    references_digest,
    with_options,
)
from flare.evaluation.scoring.case import score_labels
from flare.evaluation.scoring.reading import (
    check_headers,
    read_prediction,
    read_reference,
)
from flare.evaluation.submission.find import LabelMapFile, find_references
from flare.evaluation.submission.match import CasePair, match_cases
from flare.reports.cases.drawing import PLANES, data_uri
from flare.reports.cases.findings import CaseFinding, find_mending, look_at
from flare.reports.cases.options import CaseOptions
from flare.results.errors import MetricsFileError
from flare.results.metrics_reading import EvaluationFile

_REMEDY = "Give the label maps that the evaluation has scored."

SLACK = 1e-9
"""Scores that differ by less are equal: another program may have written them anew."""


WINDOW_HU = (-160.0, 240.0)
"""Black and white: the window of soft tissue."""

QUALITY = 70
"""Quality of the JPEGs, of 100: outlines are in front of them."""

_Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFiles:
    """The files of all cases, as far as they were scored."""

    metrics: Path
    options: CaseOptions
    challenge: Challenge
    pairs: Mapping[str, CasePair]
    images: Mapping[str, LabelMapFile]
    """CTs by case; none if no folder of them was given."""
    decimals: int | None
    """The decimals of the scores in metrics.json; None if they are exact."""


def find_case_files(
    metrics: Path,
    results: EvaluationFile,
    options: CaseOptions,
    predictions: Path,
    cases: Sequence[str],
    *,
    may_lack: bool = False,
) -> CaseFiles:
    """Find the files of some cases, and see that they are what was evaluated.

    `predictions` is the folder that `options` have, or what was unpacked from its zip.
    A case without a prediction is left out of the pairs if it `may_lack` one. A
    MetricsFileError is raised if the metrics.json does not tell its rules or a score, a
    case has no file, or the references are not those that it was made from; errors of
    reading if a file cannot be read.
    """
    challenge, decimals = _rules(metrics, results)
    _check_scores(metrics, results, challenge, cases)
    references = _find_references(metrics, results, challenge, options.ground_truth)
    submitted = find_submission(predictions, references, challenge)
    matching = match_cases(submitted, references, challenge)
    pairs = {pair.case: pair for pair in matching.pairs}
    images: dict[str, LabelMapFile] = {}
    if options.images:
        for image in find_images(options.images, challenge.names):
            images[image.case] = image
    for case in cases:
        if case in results.failed or (may_lack and case not in pairs):
            continue
        if case not in pairs:
            raise MetricsFileError(
                str(options.predictions),
                "there is no label map that can be scored of case"
                f" {safe(case)}, which {safe(metrics.name)} has",
                _REMEDY,
            )
        if options.images and case not in images:
            raise InputError(
                f"{safe(options.images)}: there is no CT of case {safe(case)}",
                "Give a folder with a CT for each case, or none.",
            )
    return CaseFiles(
        metrics=metrics,
        options=options,
        challenge=challenge,
        pairs=pairs,
        images=images,
        decimals=decimals,
    )


def _check_scores(
    metrics: Path, results: EvaluationFile, challenge: Challenge, cases: Sequence[str]
) -> None:
    """See that some cases have all scores of a challenge, and of each organ."""
    needed: list[str] = []
    for metric in challenge.metrics:
        needed.append(metric)
        needed += [f"{metric}_{o.name}" for o in challenge.organs if o.has(metric)]
    for case, name in itertools.product(cases, needed):
        if (case, name) not in results.values:
            problem = f"it has no {name} of case {safe(case)}"
            raise MetricsFileError(str(metrics), problem)


def _find_references(
    metrics: Path, results: EvaluationFile, challenge: Challenge, folder: Path
) -> tuple[LabelMapFile, ...]:
    """Find the references, and see that they are those that were scored with."""
    if not folder.is_dir():
        problem = f"{safe(folder)}: there is no such folder"
        raise InputError(problem, "Give the folder of the reference labels.")
    references = find_references(folder, challenge)
    cases, name = {reference.case for reference in references}, safe(metrics.name)
    for case in results.cases:
        if case not in cases:
            problem = f"there is no reference of case {safe(case)}, which {name} has"
            raise MetricsFileError(str(folder), problem, _REMEDY)
    digest = results.evaluation.references_sha256
    answer_files = answer_reference_files(folder, challenge)
    if digest is not None and digest != references_digest(
        references, file_checksum, answer_files
    ):
        problem = f"these are not the references that {name} was made with"
        raise MetricsFileError(str(folder), problem, _REMEDY)
    return references


def _rules(metrics: Path, results: EvaluationFile) -> tuple[Challenge, int | None]:
    """The rules that the scores were made by, and the decimals they have."""
    evaluation = results.evaluation
    organs = dict.fromkeys(metric_named(name).part for _, name in results.values)
    organs.pop("", None)
    # An organ without lesions has no score where only lesions are scored.
    of_organs = (rule.partition("label of ") for rule in evaluation.rules or ())
    organs |= {name: None for start, _, name in of_organs if name and not start}
    options = evaluation.options
    decimals = options.get("decimals")
    try:
        if evaluation.rules is None:
            raise TypeError("no rules")
        challenge = with_options(
            recorded_challenge(evaluation.challenge, evaluation.rules, tuple(organs)),
            EvaluationOptions(
                grid=options.get("grid"), unknown_labels=options.get("unknown_labels")
            ),
        )
        names = build(FileNames, dict(evaluation.names))
        challenge = replace(challenge, names=names)
        return challenge, None if decimals is None else int(decimals)
    except (ValueError, TypeError) as error:
        problem = "it does not tell the rules that its scores were made by"
        raise MetricsFileError(str(metrics), problem) from error


def read_case(
    files: CaseFiles, case: str, scores: Mapping[str, float | None]
) -> tuple[LabelMap, LabelMap]:
    """Read the label maps of a case, and see that they score what metrics.json says.

    A MetricsFileError is raised if they do not; errors of reading if one is damaged.
    """
    pair, challenge = files.pairs[case], files.challenge
    check_headers(pair, challenge)
    reference = read_reference(pair.reference, challenge)
    prediction = read_prediction(pair.prediction, challenge)
    if reference.grid.shape != prediction.grid.shape:
        raise GroundTruthError(
            f"{safe(pair.reference.name)}: it changed while it was read"
        )
    for organ in score_labels(reference, prediction, challenge):
        for metric, value in organ.by_metric.items():
            recorded = scores[f"{metric}_{organ.organ}"]
            if not _is_recorded(value, recorded, files.decimals):
                problem = (
                    f"its {METRICS[metric].title} of {organ.organ} is {_text(value)},"
                    f" but {safe(files.metrics.name)} says {_text(recorded)}"
                )
                file = files.options.predictions / pair.prediction.name
                raise MetricsFileError(str(file), problem, _REMEDY)
    return reference, prediction


def _text(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.6g}"


def _is_recorded(
    value: float | None, recorded: float | None, decimals: int | None
) -> bool:
    """Whether a score is that of metrics.json, which may have it with few decimals."""
    if value is None or recorded is None:
        return value is recorded
    score = value if decimals is None else round(value, decimals)
    return math.isclose(score, recorded, rel_tol=0, abs_tol=SLACK)


def find_out(
    files: CaseFiles, case: str, scores: Mapping[str, float | None]
) -> tuple[CaseFinding, LabelMap, LabelMap]:
    """Read and compare the label maps of a case; errors are those of `read_case`."""
    reference, prediction = read_case(files, case, scores)
    mending = find_mending(files.pairs[case], files.challenge, scores)
    finding = look_at(reference, prediction, files.challenge, scores, mending)
    return finding, reference, prediction


def ct_backgrounds(
    files: CaseFiles, case: str, grid: Grid, finding: CaseFinding
) -> list[str]:
    """The CT of the worst slice of each plane, as data URIs; empty without CTs.

    An InputError is raised if the CT is on another grid than the reference.
    """
    if not files.images:
        return []
    file, tolerance_mm = files.images[case], files.challenge.grid.tolerance_mm
    ct_grid = file.read_grid()
    if compare_sizes(ct_grid, grid) or compare_positions(ct_grid, grid, tolerance_mm):
        raise InputError(
            f"{safe(file.name)}: this CT is not on the grid of its reference",
            "Give the CTs that the references were drawn on.",
        )
    import SimpleITK as sitk

    image = read_ct(file.path, file.name)  # the array is valid while it lives
    volume = finding.orientation.volume(sitk.GetArrayViewFromImage(image))
    backgrounds = []
    for plane in PLANES:
        pixels = plane.cut(volume, finding.worst[plane.across], finding.field)
        backgrounds.append(data_uri(jpeg(grey(pixels)), "jpeg"))
    return backgrounds


def read_ct(path: Path, name: str) -> Any:
    """A CT as SimpleITK has it, its values scaled.

    SimpleITK says nothing of a file that is damaged, so each is verified first: a
    DamagedFileError is raised if it ends early, a FileFormatError if SimpleITK cannot
    read what can be verified.
    """
    import SimpleITK as sitk

    verify_voxels(path, name)
    sitk.ProcessObject.SetGlobalWarningDisplay(False)  # type: ignore[no-untyped-call]
    # Headers of tilted gantries are sheared; where voxels lie is not asked of ITK.
    permissive = "ITK_NIFTI_SFORM_PERMISSIVE"
    before = os.environ.get(permissive)
    os.environ[permissive] = "1"
    try:
        return sitk.ReadImage(path)
    except RuntimeError as error:
        raise FileFormatError(name, "SimpleITK cannot read it") from error
    finally:
        del os.environ[permissive]
        if before is not None:
            os.environ[permissive] = before


def grey(values: npt.NDArray[np.number]) -> _Pixels:
    """HU as shades from black to white; what is not a number counts as 0 HU."""
    low, high = WINDOW_HU
    shades = (np.nan_to_num(values.astype(np.float64)) - low) / (high - low)
    return np.rint(np.clip(shades, 0, 1) * 255).astype(np.uint8)


def jpeg(pixels: _Pixels) -> bytes:
    """A JPEG of shades of grey."""
    import SimpleITK as sitk

    with tempfile.TemporaryDirectory(prefix="flare-report-") as folder:
        file = Path(folder) / "slice.jpg"
        image = sitk.GetImageFromArray(np.ascontiguousarray(pixels))
        sitk.WriteImage(image, file, True, QUALITY)
        return file.read_bytes()
