"""Checks a submission, or all reference labels, before anything is evaluated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import numpy as np

from flare.challenge.formats import ANY_SUFFIX, CHANNEL, PLAIN_NAMES, FileNames
from flare.challenge.metrics import LEFT_OUT, METRICS, Metric
from flare.challenge.names import cases_text, label_ending, names_advice
from flare.challenge.rules import Challenge
from flare.common.errors import (
    FileError,
    FlareError,
    InputError,
    SubmissionError,
    problem_lines,
)
from flare.common.text import aligned, count, listing, safe
from flare.evaluation.errors import (
    DemonstrationSetError,
    EmptyError,
    FileFormatError,
    FractionError,
    GridPositionError,
    GridSizeError,
    GroundTruthError,
    LabelError,
    MisnamedCasesError,
    UnexpectedCasesError,
)
from flare.evaluation.evaluate import OnCase, ignored_labels_text, score_cases
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import (
    find_submission,
    plan_evaluation,
    prepare,
    refuse_algorithm,
)
from flare.evaluation.scoring.reading import has_organs, read_reference
from flare.evaluation.submission.find import (
    LabelMapFile,
    find_label_maps,
    find_references,
    is_demonstration,
    refuse_twice,
)
from flare.evaluation.submission.match import Matching

_IMAGES_REMEDY = (
    f"The folder of --images has to hold one {ANY_SUFFIX} file for each case, or one"
    " for each of its channels: CASE_0000, CASE_0001, ..."
)

LEAST_ML = 0.1
"""Smaller volumes are told in mm3."""

MENDABLE = (FractionError, GridPositionError, GridSizeError, LabelError)
"""Problems of which `flare doctor` finds the cause, where there are references."""

DOCTOR_HINT = (
    "flare doctor PREDICTIONS --ground-truth LABELS, with the same --challenge, finds"
    " the cause; with --fix NEW_FOLDER it writes repaired copies."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """The problems of a submission, or a summary of what would be scored."""

    problems: tuple[SubmissionError, ...]
    summary: str = ""
    """Empty if there are problems."""
    hint: str = ""
    """What to ask or do, where all files' names are wrong, or the doctor may mend."""
    common_cause: str = ""
    """What most cases suffer from, though nothing is refused; empty if nothing."""

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each kind of problem."""
        return problem_lines(self.problems)


def check_submission(
    predictions: Path,
    challenge: Challenge,
    *,
    ground_truth: Path | None = None,
    images: Path | None = None,
    workers: int | None = None,
    on_case: OnCase | None = None,
    are_jobs_read: bool = True,
) -> CheckOutcome:
    """Look for everything that the evaluation would refuse.

    Names and grids are compared with those of the references, if they are public, or
    else of the CTs. None as `workers` is as many as CPUs and memory allow; `on_case` is
    told of every label map as it has been read. `are_jobs_read` is whether a
    predictions.json is taken for the platform's; a team's container may have written
    one, which means nothing. An OrganiserError is raised if the reference labels are at
    fault. A HostError is raised if a folder or file cannot be read, or memory does not
    suffice.
    """
    references: Sequence[LabelMapFile] = ()
    try:
        if ground_truth:
            plan = plan_evaluation(
                predictions, ground_truth, challenge, EvaluationOptions()
            )
            prepared, references = plan.prepared, plan.references
            answer_lines: Sequence[str] = [*map(attrgetter("text"), plan.sheets)]
        else:
            prepared, answer_lines = _prepare_without_references(
                predictions, challenge, images, are_jobs_read=are_jobs_read
            )
    except SubmissionError as error:  # before any file was looked at
        return CheckOutcome(problems=(error,))
    problems = list(prepared.problems)
    organs: Counter[str] = Counter()
    unknown: list[tuple[int, ...]] = []
    for attempt in score_cases(
        prepared.pairs, challenge, workers=workers, check_only=True, on_case=on_case
    ):
        organs.update(attempt.organs)
        unknown.append(attempt.unknown_labels)
        if attempt.problem:
            problems.append(attempt.problem)
    count = len(prepared.pairs)
    problems = problems or [*_emptiness(organs, count, references, challenge)]
    common = ""
    if ground_truth and not problems:
        # Not at the top: what it needs is slow to load.
        from flare.evaluation.doctor.report import common_cause

        common = common_cause(prepared.pairs, challenge)
    lines = [*answer_lines]
    if challenge.organs:
        lines = [_summary(challenge, count, organs, unknown), *lines]
    return CheckOutcome(
        problems=tuple(problems),
        summary="" if problems else "\n".join(lines),
        hint=_hint(prepared, problems, challenge, ground_truth),
        common_cause=common,
    )


def _emptiness(
    organs: Mapping[str, int],
    count: int,
    references: Sequence[LabelMapFile],
    challenge: Challenge,
) -> Iterator[SubmissionError]:
    """The problem that no label map has an organ, unless no reference has one."""
    is_empty = challenge.organs and not organs
    if is_empty and (not references or has_organs(references, challenge)):
        yield EmptyError(count)


def _prepare_without_references(
    predictions: Path,
    challenge: Challenge,
    images: Path | None,
    *,
    are_jobs_read: bool,
) -> tuple[Matching, Sequence[str]]:
    """Look at names and headers, and at answers: a line for each kind of these."""
    if are_jobs_read:
        refuse_algorithm(predictions, challenge)
    references = _stand_ins(predictions, images, challenge) if images else None
    prepared = Matching()
    if challenge.organs:
        submitted = find_submission(
            predictions, references or (), challenge, are_jobs_read=are_jobs_read
        )
        prepared = prepare(submitted, references, challenge)
    if not challenge.answers:
        return prepared, ()
    from flare.evaluation.answers import check_answers

    cases = {file.case for file in references} if references else None
    problems, lines = check_answers(predictions, challenge, cases)
    return replace(prepared, problems=(*prepared.problems, *problems)), lines


def _hint(
    prepared: Matching,
    problems: Sequence[SubmissionError],
    challenge: Challenge,
    ground_truth: Path | None,
) -> str:
    """Lead to the doctor, or to the challenge's names of files if no name fits."""
    if ground_truth and any(isinstance(error, MENDABLE) for error in problems):
        return DOCTOR_HINT
    kinds = {type(error) for error in prepared.problems}
    is_solved = MisnamedCasesError in kinds  # which says what is to be renamed
    if prepared.pairs or is_solved or UnexpectedCasesError not in kinds:
        return ""
    return f"No name fits: {_is_right(challenge)}"


def _stand_ins(
    predictions: Path, images: Path, challenge: Challenge
) -> Sequence[LabelMapFile]:
    """The CTs in the place of the references: their names, and their grids."""
    files = find_images(images, challenge.names)
    if predictions.resolve() == images.resolve():
        raise InputError(
            f"{safe(images)}: these are the predictions as well",
            "Give the folder of the CTs with --images.",
        )
    stand_ins = []
    for file in files:
        name = challenge.names.prediction_of(file.case)
        stand_ins.append(replace(file, name=name, prediction_name=name))
    return stand_ins


def find_images(
    images: Path, names: FileNames = PLAIN_NAMES
) -> tuple[LabelMapFile, ...]:
    """The first image of each case in a folder, with those of its further channels.

    The headers of all can be read.
    An InputError is raised if there is no CT, a case has two of one channel or not the
    channels of other cases, or one is broken.
    """
    try:
        files = find_references(images)
        cases = _by_case(files, names.with_channels({file.case for file in files}))
        for file in files:
            if problem := file.read_grid().spacing_problem:
                raise FileFormatError(file.name, problem)
    except GroundTruthError as error:
        raise InputError(f"{safe(images)}: {error.problem}", _IMAGES_REMEDY) from error
    except FileError as error:
        raise InputError(f"{safe(images)}: {error.finding}", _IMAGES_REMEDY) from error
    return cases


def _by_case(
    files: Sequence[LabelMapFile], names: FileNames
) -> tuple[LabelMapFile, ...]:
    """The first image of each case, with those of its further channels."""
    channels: dict[str, list[LabelMapFile]] = {}
    cases: dict[str, list[LabelMapFile]] = {}
    for file in files:
        image = replace(file, case=names.case_of("image", file.case))
        channels.setdefault(names.channel_of(file.case), []).append(image)
        cases.setdefault(image.case, []).append(image)
    for images in channels.values():
        refuse_twice(images)
    fewest = min(cases.values(), key=len)
    if len(fewest) < len(channels):
        image_names = listing(image.name for image in fewest)
        raise GroundTruthError(
            f"case {safe(fewest[0].case)} has {image_names} alone, and other cases have"
            f" channels {listing(filter(None, sorted(channels)))}"
        )
    return tuple(
        replace(first, channels=tuple(later)) for first, *later in cases.values()
    )


def _summary(
    challenge: Challenge,
    count: int,
    organs: Mapping[str, int],
    unknown: Sequence[tuple[int, ...]],
) -> str:
    names = [organ.name for organ in challenge.organs]
    width = max(map(len, names))
    maps, have = ("label map", "It has") if count == 1 else ("label maps", "They have")
    lines = [f"Checked {count} {maps} by the rules of {challenge.name}. {have}:"]
    lines += [f"  {name.ljust(width)}  in {organs[name]} of {count}" for name in names]
    lines += _absent([name for name in names if not organs[name]], challenge)
    ignored = ignored_labels_text(unknown, challenge)
    if ignored:
        lines.append(f"{ignored[0].upper()}{ignored[1:]}.")
    return "\n".join(lines)


def _absent(organs: Sequence[str], challenge: Challenge) -> list[str]:
    """A line for organs that no label map has, if there are any."""
    if not organs:
        return []
    return [f"No label map has {listing(organs)}: {_is_right(challenge)}"]


def _is_right(challenge: Challenge) -> str:
    return f"is --challenge {challenge.key} the right one?"


# --- Reference labels -------------------------------------------------------------


_REFERENCES_REMEDY = "Mend it, and check again: flare explain G02 says how."


def check_references(ground_truth: Path, challenge: Challenge) -> str:
    """Read all references of a challenge, so that no mistake waits for a submission.

    Returns how many there are, how often each organ is there, and how large. The
    demonstration set is counted, and not read: it need not fit. A GroundTruthError is
    raised if one is missing, damaged, there twice, or breaks the challenge's rules. An
    InputError is raised if the folder is not there.
    """
    references: Sequence[LabelMapFile] = ()
    lines: list[str] = []
    try:
        if challenge.organs:
            references = find_references(ground_truth, challenge)
            lines = _label_map_references(references, challenge)
        if challenge.answers:
            cases = {file.case for file in references}
            lines += _answer_references(ground_truth, challenge, cases)
    except GroundTruthError as error:  # there is no submission yet that it could excuse
        error.remedy = f"{_folders_text(ground_truth)}{_REFERENCES_REMEDY}"
        raise
    return "\n".join(lines)


def _folders_text(folder: Path) -> str:
    """Advice that names the folders of label maps, if they are several, or nothing."""
    with suppress(FlareError):
        files = find_label_maps(folder, follow_links=True).files
        images = [file.name for file in files if file.case.endswith(CHANNEL)]
        if 0 < len(images) < len(files):
            return f"Give a folder without images ({listing(images)}). "
        places = {file.name.rpartition("/")[0] for file in files}
        if len(places) > 1:
            names = listing(f"{place}/" for place in sorted(places - {""}))
            return f"If they lie in one of {names} alone, give that one. "
    return ""


def _answer_references(
    ground_truth: Path, challenge: Challenge, cases: Collection[str]
) -> list[str]:
    """Read the references of answers: a line for each that can be used."""
    from flare.evaluation.answers import check_cases, check_sheet, read_sheets

    lines = []
    try:
        sheets = read_sheets(None, ground_truth, challenge)
    except DemonstrationSetError:
        return [f"{challenge.name}: the demonstration set has no references of answers"]
    check_cases(sheets, cases)
    for sheet in sheets:
        check_sheet(sheet)
        answers = count(len(sheet.rows), "reference")
        can = f"can be used: {listing(sheet.cases)}"
        lines.append(f"{challenge.name}: {answers} of {sheet.rules.name} {can}")
    return lines


def _label_map_references(
    references: Sequence[LabelMapFile], challenge: Challenge
) -> list[str]:
    """Read the reference label maps: their number, and a table of their organs."""
    maps = count(len(references), "reference label map")
    headline = f"{challenge.name}: {maps} can be used"
    readable = [file for file in references if not is_demonstration(file.case)]
    if not readable:
        return [headline, "They are the demonstration set, which was not read."]
    volumes_by_organ, doubts = _read_references(readable, challenge)
    rows: list[Sequence[str]] = [("", "in", "smallest", "median", "largest")]
    for organ, volumes_ml in volumes_by_organ.items():
        share = f"{len(volumes_ml)} of {len(readable)}"
        rows.append((organ, share, *_volume_texts(volumes_ml)))
    absent = [organ for organ, volumes_ml in volumes_by_organ.items() if not volumes_ml]
    cases = [file.case for file in references]
    ending = label_ending(cases)
    return [
        headline,
        *aligned(rows),
        *_absent(absent, challenge),
        *_doubt_lines(doubts),
        cases_text(cases, references[0].prediction_name),
        *_gap_lines(volumes_by_organ, len(readable), challenge),
        *filter(None, [names_advice(challenge.names, challenge.key, ending)]),
    ]


def _gap_lines(
    volumes: Mapping[str, Sequence[float]], cases: int, challenge: Challenge
) -> Iterator[str]:
    """Lines on columns that can have no value, or that of one case which is secret."""
    empty: list[str] = []
    secret: list[str] = []
    for metric in map(METRICS.__getitem__, challenge.metrics):
        numbers = _fewest_cases(metric, volumes, cases, challenge)
        empty += [column for column, number in numbers.items() if not number]
        if metric.tells_means and not metric.tells_cases:
            secret += [column for column, number in numbers.items() if number < 2]
    if challenge.gaps_text:
        yield f"{challenge.gaps_text} With these references, {_empty(empty, challenge)}"
    if secret:
        yield (
            "Columns for no public board, as they can be of one case, and tell of its"
            f" reference: {listing(secret)}."
        )


def _empty(columns: Sequence[str], challenge: Challenge) -> str:
    """The end of a sentence that names them, and those that are ranked."""
    if not columns:
        return "each column has a value."
    ranked = [rule.metric for rule in challenge.ranked if rule.metric in columns]
    return f"that can be {listing(columns)}; ranked: {listing(ranked) or 'none'}."


def _fewest_cases(
    metric: Metric,
    volumes: Mapping[str, Sequence[float]],
    cases: int,
    challenge: Challenge,
) -> dict[str, int]:
    """The fewest cases that have a value, by column; the mean comes first.

    It has one wherever an organ in it has one.
    """
    absent = challenge.absent_organs
    is_absent_left_out = LEFT_OUT in (absent.in_both, absent.in_reference)
    goes_absent = metric.needs_lesions or is_absent_left_out
    goes_present = absent.in_prediction == LEFT_OUT
    numbers = {metric.name: 0}
    for organ in (organ for organ in challenge.organs if organ.has(metric.name)):
        present = len(volumes[organ.name])
        number = cases
        if metric.needs_reference:
            number -= present * goes_present + (cases - present) * goes_absent
        numbers[f"{metric.name}_{organ.name}"] = number
        if organ.in_mean:
            numbers[metric.name] = max(numbers[metric.name], number)
    return numbers


def _doubt_lines(doubts: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each kind of doubt; each doubt begins with its kind, and a colon."""
    names_by_kind: dict[str, list[str]] = {}
    for name, doubt in doubts:
        names_by_kind.setdefault(doubt.partition(":")[0], []).append(name)
    for kind, (first, *names) in names_by_kind.items():
        text = next(doubt for _, doubt in doubts if doubt.startswith(kind))
        likewise = f". Likewise {listing(names)}" if names else ""
        yield f"{safe(first)}: {text}{likewise}."


def _read_references(
    references: Sequence[LabelMapFile], challenge: Challenge
) -> tuple[dict[str, list[float]], list[tuple[str, str]]]:
    """The volumes in ml of each organ, where a reference has it.

    Behind them are names of references with what is in doubt about their headers.
    """
    volumes: dict[str, list[float]] = {organ.name: [] for organ in challenge.organs}
    doubts: list[tuple[str, str]] = []
    for file in references:
        reference = read_reference(file, challenge)
        doubts += [(file.name, doubt) for doubt in reference.grid.doubts]
        voxels = np.bincount(reference.labels.ravel(), minlength=256)
        voxel_ml = math.prod(reference.grid.spacing) / 1000
        for organ in challenge.organs:
            if number := float(voxels[[*organ.region]].sum()):
                volumes[organ.name].append(number * voxel_ml)
    return volumes, doubts


def _volume_texts(volumes_ml: Sequence[float]) -> Sequence[str]:
    from statistics import median  # slow to load, which no evaluation has to wait for

    if not volumes_ml:
        return ["-", "-", "-"]
    three = min(volumes_ml), median(volumes_ml), max(volumes_ml)
    return [
        f"{ml:.1f} ml" if ml >= LEAST_ML else f"{1000 * ml:.3g} mm3" for ml in three
    ]
