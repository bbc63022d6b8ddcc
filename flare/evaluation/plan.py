"""Plans an evaluation: finds its files, and looks at their names and headers."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from flare.challenge.reading import rules_digest, scoring_rules
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels
from flare.common.environment import (
    BUNDLED_GROUND_TRUTH,
    PLATFORM_GROUND_TRUTH,
    __version__,
    library_version,
    source_commit,
)
from flare.common.errors import FileError, InputError
from flare.common.text import safe, why
from flare.evaluation.errors import DemonstrationSetError, GroundTruthError
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.scoring.reading import check_headers
from flare.evaluation.submission.find import (
    JOBS_FILE_NAME,
    Folder,
    LabelMapFile,
    find_label_maps,
    find_references,
    is_demonstration,
)
from flare.evaluation.submission.match import Matching, match_cases
from flare.results.scores import Provenance, References

if TYPE_CHECKING:
    from flare.evaluation.answers import Sheet

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A submission that was found and looked through, and that is to be scored."""

    challenge: Challenge
    """The challenge before the options change it."""
    rules: Challenge
    """The challenge as the options change it."""
    options: EvaluationOptions
    ground_truth: Path
    references: tuple[LabelMapFile, ...]
    submitted: Folder
    prepared: Matching
    sheets: tuple[Sheet, ...] = ()
    """The answers beside the label maps, or instead of them."""

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of all cases: of label maps, or else of answers."""
        if self.references:
            return tuple(file.case for file in self.references)
        cases: dict[str, None] = {}
        for sheet in self.sheets:
            cases |= dict.fromkeys(sheet.cases)
        return tuple(cases)

    @property
    def check_only(self) -> bool:
        """Whether it will be refused, and is only searched for more problems."""
        return bool(self.prepared.problems) and self.options.is_refused


def plan_evaluation(
    predictions: Path,
    ground_truth: Path,
    challenge: Challenge,
    options: EvaluationOptions,
    *,
    is_measured: bool = False,
) -> Plan:
    """Find the files of a submission, and look at their names and headers.

    Errors are those of `flare.evaluate`.
    """
    rules = with_options(challenge, options)
    refuse_algorithm(predictions, rules)
    references: tuple[LabelMapFile, ...] = ()
    submitted, prepared = Folder(files=()), Matching()
    if rules.organs:
        references, submitted = _find_files(
            predictions, ground_truth, rules, is_measured=is_measured
        )
        prepared = prepare(submitted, references, rules)
    sheets: tuple[Sheet, ...] = ()
    if rules.answers:
        # Not at the top: an evaluation of label maps starts sooner without it.
        from flare.evaluation.answers import check_cases, distinct_problems, read_sheets

        sheets = read_sheets(predictions, ground_truth, rules)
        check_cases(sheets, {file.case for file in references})
        problems = distinct_problems(chain(*map(attrgetter("problems"), sheets)))
        prepared = replace(prepared, problems=(*prepared.problems, *problems))
    return Plan(
        challenge=challenge,
        rules=rules,
        options=options,
        ground_truth=ground_truth,
        references=references,
        submitted=submitted,
        prepared=prepared,
        sheets=sheets,
    )


def prepare(
    submitted: Folder, references: Sequence[LabelMapFile] | None, challenge: Challenge
) -> Matching:
    """Match names, and check all headers, without reading any voxel."""
    matching = match_cases(submitted, references, challenge)
    problems, reasons = list(matching.problems), dict(matching.reasons)
    pairs, warnings = [], []
    for pair in matching.pairs:
        try:
            if references is None:  # there is nothing to compare with
                size, warning = math.prod(pair.prediction.read_grid().shape), ""
            else:
                size, warning = check_headers(pair, challenge)
        except FileError as error:
            problems.append(error)
            reasons[pair.case] = error.problem, (error.file,)
        else:
            pairs.append(replace(pair, voxels=size))
            warnings += [warning] if warning else []
    return Matching(
        pairs=tuple(pairs),
        problems=tuple(problems),
        reasons=reasons,
        warnings=tuple(warnings),
    )


def _find_files(
    predictions: Path, ground_truth: Path, challenge: Challenge, *, is_measured: bool
) -> tuple[tuple[LabelMapFile, ...], Folder]:
    """The references, and the files that were submitted."""
    is_algorithm = is_of_algorithm(predictions, challenge)
    if is_algorithm and challenge.algorithm.hide_cases:
        references = _hidden_references(ground_truth, challenge)
    else:
        references = find_references(ground_truth, challenge)
    cases = {file.case for file in references}
    is_demo = all(map(is_demonstration, cases))
    try:
        submitted = find_submission(predictions, references, challenge)
    except GroundTruthError as error:
        if is_demo:
            raise DemonstrationSetError from error
        raise
    is_other = cases.isdisjoint(file.case for file in submitted.files)
    if is_demo and is_other and not is_measured:
        raise DemonstrationSetError
    return references, submitted


def _hidden_references(
    ground_truth: Path, challenge: Challenge
) -> tuple[LabelMapFile, ...]:
    """References whose names, in messages, are numbers; the log has both."""
    try:
        references = find_references(ground_truth, challenge)
    except (GroundTruthError, InputError) as error:
        _log.info("%s", error)
        raise GroundTruthError(
            "there is a mistake in their files, which the log names"
        ) from error
    hidden = []
    for number, file in enumerate(references, start=1):
        name = f"case {number} of {len(references)}"
        hidden.append(replace(file, name=name, prediction_name=name, is_hidden=True))
        _log.info("%s is %s", name, safe(file.name))
    return tuple(hidden)


def is_of_algorithm(predictions: Path, challenge: Challenge) -> bool:
    """Whether a submission is what the platform's jobs of an algorithm have written.

    Its predictions.json lists them. A challenge of answers may ask for a file of that
    name: there, the content tells.
    """
    if not os.path.lexists(predictions / JOBS_FILE_NAME):
        return False
    if not challenge.answers:
        return True
    # Not at the top: an evaluation of files starts sooner without it.
    from flare.evaluation.submission.jobs import has_jobs

    return has_jobs(predictions)


def refuse_algorithm(predictions: Path, challenge: Challenge) -> None:
    """Refuse the jobs of an algorithm where answers are scored, before all else.

    So no message has the name of a hidden case. Errors are those of `refuse_jobs`.
    """
    if challenge.answers and is_of_algorithm(predictions, challenge):
        from flare.evaluation.submission.jobs import refuse_jobs

        refuse_jobs(predictions)


def find_submission(
    predictions: Path,
    references: Sequence[LabelMapFile],
    challenge: Challenge,
    *,
    are_jobs_read: bool = True,
) -> Folder:
    """Find the submitted files, or those that the jobs of an algorithm have written."""
    if are_jobs_read and is_of_algorithm(predictions, challenge):
        # Not at the top: an evaluation of files starts sooner without it.
        from flare.evaluation.submission.jobs import find_job_outputs

        return find_job_outputs(predictions, references, challenge)
    cases = {file.case for file in references}
    return find_label_maps(
        predictions,
        npz=challenge.npz.layout("prediction"),
        case_of=partial(challenge.names.case_of, "prediction", cases=cases),
        answer_files=challenge.answer_files,
    )


def with_options(challenge: Challenge, options: EvaluationOptions) -> Challenge:
    """A challenge, some of whose rules were set for this run."""
    if options.grid:
        compare = GridComparison(options.grid)
        challenge = replace(challenge, grid=replace(challenge.grid, compare=compare))
    if options.unknown_labels:
        effect = UnknownLabels(options.unknown_labels)
        rules = replace(challenge.unknown_labels, prediction=effect)
        challenge = replace(challenge, unknown_labels=rules)
    return challenge


# --- Where results come from --------------------------------------------------------

LIBRARIES = ("nibabel", "numpy", "surface-distance", "zlib-ng")
"""The packages that a result rests on."""


def library_versions() -> dict[str, str]:
    """The version of each of `LIBRARIES` that is installed.

    Answers alone, and label maps in other formats, are scored without nibabel.
    """
    versions = {}
    for name in LIBRARIES:
        with suppress(ImportError):
            versions[name] = library_version(name)
    return versions


def provenance_of(plan: Plan, checksum: Callable[[Path], str]) -> Provenance:
    """Describe an evaluation; `checksum` gives the SHA-256 of a reference file."""
    answer_files = [(sheet.rules.name, sheet.file) for sheet in plan.sheets]
    references_sha256 = references_digest(plan.references, checksum, answer_files)
    rules = scoring_rules(plan.challenge)
    sources: dict[Path, References] = {
        BUNDLED_GROUND_TRUTH: "bundled",
        PLATFORM_GROUND_TRUTH: "tarball",
    }
    return Provenance(
        challenge=plan.challenge.key,
        challenge_name=plan.challenge.name,
        challenge_sha256=plan.challenge.checksum,
        rules=rules,
        rules_sha256=rules_digest(rules),
        rules_note=plan.challenge.rules_note,
        names=plan.challenge.names,
        version=__version__,
        commit=source_commit(),
        references=sources.get(plan.ground_truth.resolve(), "given"),
        references_sha256=references_sha256,
        cases=len(plan.cases),
        options=plan.options.changed(),
        libraries=library_versions(),
        machine={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    )


def file_checksum(file: Path) -> str:
    """SHA-256 of the bytes of a reference, in hexadecimal digits.

    A GroundTruthError is raised if it cannot be read.
    """
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise GroundTruthError(
            f"{safe(file.name)}: it cannot be read ({why(error)})"
        ) from error


def references_digest(
    references: Sequence[LabelMapFile],
    checksum: Callable[[Path], str],
    answer_files: Sequence[tuple[str, Path]] = (),
) -> str:
    """SHA-256 over the cases' names and the checksums of their files.

    Behind them are the names of answers, each with the file of its references; sorted,
    as a metrics.json, by which they are found again, has no other order.
    """
    digest = hashlib.sha256()
    files = [(file.case, file.path) for file in references]
    for name, file in (*files, *sorted(answer_files)):
        line = f"{name} {checksum(file)}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
