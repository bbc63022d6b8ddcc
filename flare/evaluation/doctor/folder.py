"""Diagnoses a folder of predictions: the start of `flare doctor`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from flare.challenge.metrics import lesions_by
from flare.challenge.reading import as_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import (
    FileError,
    InputError,
    SubmissionError,
    problem_lines,
    unwritable,
)
from flare.common.files import remove_tree
from flare.common.schema import build
from flare.common.text import safe
from flare.evaluation.doctor.cases import diagnose_cases
from flare.evaluation.doctor.diagnose import ALL_LABELS, Finding, read_whole
from flare.evaluation.doctor.repair import Repair, affine_of
from flare.evaluation.doctor.report import report_lines
from flare.evaluation.errors import EmptyError, GroundTruthError
from flare.evaluation.evaluate import ignored_labels_text
from flare.evaluation.plan import find_submission, is_of_algorithm
from flare.evaluation.scoring.reading import has_organs
from flare.evaluation.submission.find import Folder, find_references
from flare.evaluation.submission.match import match_cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What has lowered the scores of predictions, case by case."""

    challenge: Challenge
    findings: tuple[Finding, ...]
    """One of each case with a prediction, in the order of the cases."""
    problems: tuple[SubmissionError, ...]
    """Missing cases, files of no case or of a format that is not accepted, and that no
    prediction has any organ."""
    doubt: str = ""
    """Labels of which a challenge alone can say whether they are refused."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is to be mended but the segmentation itself."""
        mended = [f for f in self.findings if f.repair or not f.before]
        return not mended and not self.problems and not self.doubt

    @property
    def lines(self) -> tuple[str, ...]:
        """All that `flare doctor` says."""
        lines = filter(None, (*problem_lines(self.problems), self.doubt))
        with lesions_by(self.challenge.lesions):
            return (*lines, *report_lines(self.findings, self.challenge))

    def write_repaired(self, folder: str | Path) -> tuple[str, ...]:
        """Write copies of all predictions that are then taken; return these cases.

        Each file is read again, and holds nothing but labels on its reference's grid.
        The folder is there when it is whole. Its files are written into another one
        beside it, which a later call that begins anew removes.

        Raises
        ------
        InputError
            If the folder is there already, or no case could be written.
        OutputError
            If it cannot be written.
        """
        folder = Path(folder)
        check_new(folder)
        findings = [f for f in self.findings if f.repair or f.before]
        scores = [f.after or f.before for f in findings]
        if all(score is None or score.is_empty for score in scores):
            problem = f"{safe(folder)}: nothing to write: no case would be taken"
            raise InputError(
                problem, "What is said of each case has to be mended first."
            )
        part = folder.with_name(f".{folder.name}.part")
        try:
            remove_tree(part)
            part.mkdir(parents=True)
            for finding in findings:
                self._write(finding, part)
            part.rename(folder)
        except OSError as error:
            raise unwritable(folder, error) from error
        finally:
            remove_tree(part)
        return tuple(finding.pair.case for finding in findings)

    def _write(self, finding: Finding, folder: Path) -> None:
        import nibabel as nib  # not at the top: it is slow to load

        prediction, _ = read_whole(finding.pair.prediction)
        grid = finding.sample.grid
        labels = (finding.repair or Repair()).apply(prediction, grid.shape)
        image = nib.Nifti1Image(labels.T, affine_of(grid), dtype=np.uint8)
        nib.save(image, folder / self.challenge.names.prediction_of(finding.pair.case))


def check_new(folder: Path, *inputs: Path) -> None:
    """Raise an InputError if a folder is there, or would lie among what is read."""
    problem = ""
    if os.path.lexists(folder):
        problem = "it is there already"
    for path, what in zip(inputs, ("predictions", "references"), strict=False):
        if not problem and folder.resolve().is_relative_to(path.resolve()):
            problem = f"it would lie among the {what}"
    if problem:
        raise InputError(f"{safe(folder)}: {problem}", "Name a new folder with --fix.")


def diagnose(
    predictions: str | Path,
    labels: str | Path,
    *,
    challenge: str | Challenge | None = None,
    workers: int | None = 1,
) -> Diagnosis:
    """Find what, done to whole label maps, has made their scores low.

    Parameters
    ----------
    predictions, labels : str or Path
        Folders of predictions and of reference labels. Nothing in them is changed.
        Predictions may have other sizes, headers and labels than they should.
    challenge : str or Challenge, optional
        Name of a bundled challenge, path of a TOML file, or a challenge read before. If
        left out, each label of the references is an organ, by its number, with a
        tolerance of 1 mm.
    workers : int, optional
        Processes to use, 1 or more; None for as many as CPUs and memory allow.

    Returns
    -------
    Diagnosis
        Of each case: the cause and the score as submitted and repaired.

    Raises
    ------
    OrganiserError
        If the challenge or the reference labels are at fault.
    HostError
        If a folder or file cannot be read, or holds the jobs of a platform's algorithm,
        whose cases are secret.
    """
    folder, references = Path(predictions), Path(labels)
    if challenge is None:
        rules = challenge_of_labels(references)
    else:
        rules = as_challenge(challenge)
    if is_of_algorithm(folder, rules):
        raise InputError(
            f"{safe(folder)}: it holds the jobs of an algorithm on a platform, whose"
            " cases are secret",
            "Give a folder of label maps.",
        )
    files = find_references(references, rules)
    submitted = find_submission(folder, files, rules)
    matching = match_cases(submitted, files, rules)
    misnamed = matching.misnamed
    if misnamed:
        matching = match_cases(_with_names(submitted, misnamed), files, rules)
    findings = []
    for finding in diagnose_cases(matching.pairs, rules, workers=workers):
        is_misnamed = finding.pair.prediction.name in misnamed
        findings.append(_as_misnamed(finding) if is_misnamed else finding)
    doubt = "" if challenge else _doubt(findings, rules)
    problems = matching.problems
    is_empty = bool(findings) and not doubt and all(map(_is_empty, findings))
    if is_empty and has_organs(files, rules):
        problems = (*problems, EmptyError(len(findings)))
    return Diagnosis(
        challenge=rules, findings=tuple(findings), problems=problems, doubt=doubt
    )


def _doubt(findings: Sequence[Finding], challenge: Challenge) -> str:
    """A line about labels that no reference has; empty without any."""
    unknown = [f.before.unknown_labels for f in findings if f.before]
    text = ignored_labels_text(unknown, challenge)
    return text and f"By these references {text}: --challenge says what it refuses."


def _with_names(folder: Folder, case_by_name: Mapping[str, str]) -> Folder:
    """The same files, some of which belong to other cases than their names say."""
    files = []
    for file in folder.files:
        files.append(replace(file, case=case_by_name.get(file.name, file.case)))
    return replace(folder, files=tuple(sorted(files, key=attrgetter("case", "name"))))


def _as_misnamed(finding: Finding) -> Finding:
    """The finding of a file that is refused for its name, if for nothing else."""
    after = finding.after or finding.before
    repair = (finding.repair or Repair()) if after else None
    return replace(finding, is_misnamed=True, before=None, repair=repair, after=after)


def _is_empty(finding: Finding) -> bool:
    """Whether a prediction has no organ, and no repair gives it any."""
    return bool(finding.before and finding.before.is_empty and not finding.repair)


def challenge_of_labels(folder: Path) -> Challenge:
    """A challenge whose organs are the labels of the references, by their numbers.

    It is a GroundTruthError that there is no label, or a reference cannot be read.
    """
    labels: set[int] = set()
    for file in find_references(folder):
        try:
            labels |= {*file.read_labels(ALL_LABELS).present}
        except FileError as error:
            raise GroundTruthError(error.finding) from error
    if not labels:
        raise GroundTruthError("no reference has a label from 1 to 255")
    organs = [
        {"label": label, "name": f"label_{label}", "tolerance_mm": 1.0}
        for label in sorted(labels)
    ]
    ignored = {"reference": "ignore", "prediction": "ignore"}
    rules = {"name": "labels by number", "organs": organs, "unknown_labels": ignored}
    return build(Challenge, rules, key="labels", checksum="")
