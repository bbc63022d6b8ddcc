"""Diagnoses predictions: what was done to each, or to all of them, as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.environment import default_workers
from flare.common.errors import FileError
from flare.common.executor import LocalPool, completed
from flare.evaluation.doctor.judge import (
    COARSE,
    Judge,
    Judged,
    Sample,
    label_sizes,
    sample_of,
)
from flare.evaluation.doctor.repair import (
    NO_CAUSE,
    NO_SHIFT,
    Cause,
    Placement,
    Repair,
    placements,
    rebuilt,
)
from flare.evaluation.evaluate import worker_error
from flare.evaluation.labelmaps.grid import Grid, compare_positions, compare_sizes
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.score_pair import ImageInMemory
from flare.evaluation.scoring.case import score_case
from flare.evaluation.scoring.reading import check_headers, read_reference
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore

ALL_LABELS = range(1, 256)

LEAST_GAIN = 0.05
"""A cause is told if its repair raises the DSC by this at least,"""

GAP_CLOSED = 0.25
"""and closes this share of the gap to a DSC of 1,"""

LEAST_DSC = 0.3
"""and reaches this."""

SEARCHED_BELOW = 0.7
"""If no placement reaches this DSC, shifts are searched from nothing."""

FEW_ORGANS = 3
"""Fewer organs than this may lie elsewhere by chance, so that a shift of them has to
reach `SURE_DSC`."""

SURE_DSC = 0.75

LEAST_SHARED_GAIN = 0.01
"""A cause that most cases share is told of others if it raises their DSC by this."""

CANDIDATES = 3
"""The number of placements from which shifts are searched."""

KEPT_POINTS = 400
"""Voxels of each organ of a case that are kept until all cases were looked at."""

_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The finding of one case."""

    pair: CasePair
    before: CaseScore | None = None
    """The score as submitted; None if the prediction is refused."""
    refusal: str = ""
    """Why it is refused."""
    is_unreadable: bool = False
    """Whether its voxels cannot be read at all."""
    repair: Repair | None = None
    """The repair that raises the score; None if nothing explains it."""
    after: CaseScore | None = None
    """The exact score of the repaired prediction."""
    donor: str = ""
    """The case in whose file its prediction lies, if that is not its own."""
    source: LabelMapFile | None = None
    """The file with its own prediction, if that is another one's."""
    grid: Grid | None = None
    """The grid of the reference."""
    misplacement: str = ""
    """How the prediction's grid is another one than that; empty if it is the same."""
    best_cause: Cause = NO_CAUSE
    """The cause whose repair raises the DSC most, even if by too little to be told."""
    dsc: float = 0.0
    """The DSC as submitted, or repaired, of the organs that are in either label map."""
    sample: Sample | None = None
    """A few voxels of the reference, to see whose prediction is in a file."""
    worst_organ: str = ""
    """The organ with the lowest DSC as submitted, and what is wrong with it."""

    @property
    def file(self) -> LabelMapFile:
        """The file that holds the prediction of the case."""
        return self.source or self.pair.prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """Both label maps of a case, and how repairs of the prediction are judged."""

    reference: LabelMap
    prediction: LabelMap
    judge: Judge
    misplacement: str
    """How the prediction lies elsewhere by its header; empty if it does not."""

    @property
    def grids(self) -> tuple[Grid, Grid]:
        """The grids of the prediction and of the reference."""
        return self.prediction.grid, self.reference.grid


def examination(
    reference: LabelMap, prediction: LabelMap, challenge: Challenge
) -> Examination:
    """Prepare two label maps of any sizes, the prediction with all of its labels."""
    organs = [organ.label for organ in challenge.organs]
    judge = Judge(
        sample_of(reference.labels, organs),
        prediction.labels,
        label_sizes(prediction.labels),
        [organ.in_mean for organ in challenge.organs],
        reference.grid.spacing,
    )
    return Examination(
        reference=reference,
        prediction=prediction,
        judge=judge,
        misplacement=misplacement_of(prediction.grid, reference.grid, challenge),
    )


def misplacement_of(grid: Grid, reference_grid: Grid, challenge: Challenge) -> str:
    """How a grid is another one than that of the reference; empty if it is the same."""
    size_text = compare_sizes(grid, reference_grid)
    if size_text:
        return size_text
    return compare_positions(grid, reference_grid, challenge.grid.tolerance_mm)


def find_repairs(case: Examination) -> list[Judged]:
    """Repairs of a prediction, the one that is worth most first; each cause once."""
    judge = case.judge
    ways = placements(*case.grids)
    placed = _best_first([judge.judged(way) for way in ways])
    climbed = [judge.climbed(start, 4) for start in placed[:CANDIDATES]]
    best = _best_first([*placed, *climbed])
    if best[0].worth >= SEARCHED_BELOW:
        return best
    starts = _best_first([judge.judged(judge.correlated(way)) for way in ways])
    step = max(1, max(judge.sample.shape) // COARSE)
    searched = [judge.climbed(start, step) for start in starts[: CANDIDATES + 1]]
    return _best_first([*best, *searched])


def _best_first(repairs: Sequence[Judged]) -> list[Judged]:
    by_cause = {judged.repair.cause: judged for judged in repairs}
    return sorted(by_cause.values(), key=lambda judged: -judged.worth)


def find_explanation(
    repairs: Sequence[Judged], case: Examination, *, is_refused: bool = False
) -> Judged | None:
    """The first of the best repairs that explains a score, or a refusal."""
    for judged in repairs[:CANDIDATES]:
        if _explains(judged, case, is_refused=is_refused):
            return judged
    return None


def _explains(best: Judged, case: Examination, *, is_refused: bool) -> bool:
    """Whether a repair explains a low score, or a grid for which a case is refused."""
    if best.dsc < LEAST_DSC or not _is_sure_of_shift(best, case):
        return False
    if is_refused:
        return True
    cause = best.repair.cause
    submitted = case.judge.as_submitted()
    least_gain = LEAST_GAIN
    # Other labels alone have their own evidence: `INSTEAD`.
    if cause.placement is not Placement.AS_IS or cause.shift != NO_SHIFT:
        least_gain = max(LEAST_GAIN, GAP_CLOSED * (1 - submitted.dsc))
    return cause != NO_CAUSE and best.worth - submitted.dsc >= least_gain


def _is_sure_of_shift(best: Judged, case: Examination) -> bool:
    """Whether organs lie elsewhere together, if a repair has a shift in it at all."""
    cause = best.repair.cause
    grid, reference_grid = case.grids
    is_resized = grid.shape != reference_grid.shape
    if cause.shift == NO_SHIFT or (cause.placement is Placement.CUT and is_resized):
        return True
    organs = np.count_nonzero(case.judge.sample.sizes)
    if organs < FEW_ORGANS and best.dsc < SURE_DSC:
        return False
    return case.judge.is_moved_together(best.repair)


# --- One case -----------------------------------------------------------------------


def diagnose_case(
    pair: CasePair, *, challenge: Challenge, shared: Cause | None = None
) -> Finding:
    """Look at one case; `shared` is the cause that most of the other cases have."""
    before, refusal = _score_as_submitted(pair, challenge)
    finding = Finding(pair=pair, before=before, refusal=refusal)
    try:
        prediction = pair.prediction.read_labels(ALL_LABELS)
    except FileError:
        return replace(finding, is_unreadable=True)
    reference = read_reference(pair.reference, challenge)
    case = examination(reference, prediction, challenge)
    submitted = case.judge.as_submitted()
    finding = replace(
        finding,
        grid=reference.grid,
        misplacement=case.misplacement,
        dsc=submitted.dsc,
        worst_organ=_worst_organ(case.judge, challenge),
    )
    if shared is None:
        repairs = find_repairs(case)
        best_cause = max(repairs, key=lambda judged: judged.dsc).repair.cause
        kept = case.judge.sample.thinned(KEPT_POINTS)
        finding = replace(finding, best_cause=best_cause, sample=kept)
        chosen = _told_repair(repairs, case, finding, challenge)
    else:
        chosen = _shared_repair(shared, case)
    if chosen is None:
        return finding
    return _repaired(finding, chosen, case, challenge)


def _score_as_submitted(
    pair: CasePair, challenge: Challenge
) -> tuple[CaseScore | None, str]:
    """The score of a case, or why it is refused."""
    try:
        check_headers(pair, challenge)
        return score_case(pair, challenge), ""
    except FileError as error:
        return None, str(error)


def _told_repair(
    repairs: Sequence[Judged],
    case: Examination,
    finding: Finding,
    challenge: Challenge,
) -> Judged | None:
    """The repair that explains a score or a refusal; None if none does."""
    is_refused = finding.before is None
    explanation = find_explanation(
        repairs, case, is_refused=is_refused and bool(case.misplacement)
    )
    if explanation:
        return explanation
    # A label that no organ has refuses a case, or makes it 0, all by itself.
    has_strange_label = bool(_strange_labels(Repair(), case.judge, challenge))
    if case.misplacement or not (is_refused or has_strange_label):
        return None
    return case.judge.judged(Repair())


def _shared_repair(shared: Cause, case: Examination) -> Judged | None:
    """The repair of a cause that other cases have, if it helps here, too."""
    judge = case.judge
    repair = rebuilt(shared, *case.grids)
    if repair is None:
        return None
    judged = judge.judged(repair)
    if shared.placement is Placement.CUT:  # each case at a place of its own
        unmoved = repair.shifted((-np.array(shared.shift)).tolist())
        start = judge.judged(judge.correlated(unmoved))
        step = max(1, max(judge.sample.shape) // COARSE)
        judged = max(judged, judge.climbed(start, step), key=lambda way: way.dsc)
    gain = judged.dsc - judge.as_submitted().dsc
    return judged if gain >= LEAST_SHARED_GAIN else None


def _repaired(
    finding: Finding, chosen: Judged, case: Examination, challenge: Challenge
) -> Finding:
    """A finding with the exact score of a repair, unless that is no better."""
    repair = _without_strange_labels(chosen.repair, case.judge, challenge)
    after = score_repaired(
        repair, case.prediction.labels, finding.pair, case.reference.grid, challenge
    )
    if finding.before and after.dsc <= finding.before.dsc:
        return finding
    return replace(finding, repair=repair, after=after, dsc=chosen.dsc)


def score_repaired(
    repair: Repair,
    labels: Labels,
    pair: CasePair,
    reference_grid: Grid,
    challenge: Challenge,
) -> CaseScore:
    """The exact score of a repaired prediction."""
    prediction = ImageInMemory(
        case=pair.case,
        path=pair.prediction.path,
        name=pair.prediction.name,
        image=repaired_image(repair, labels, reference_grid),
    )
    return score_case(replace(pair, prediction=prediction), challenge)


def repaired_image(repair: Repair, labels: Labels, grid: Grid) -> Any:
    """A repaired prediction as an image of nibabel, on the grid of its reference."""
    import nibabel as nib  # not at the top: it is slow to load

    affine = np.array((*grid.affine, (0.0, 0.0, 0.0, 1.0)))
    repaired_labels = repair.apply(labels, grid.shape)
    return nib.Nifti1Image(repaired_labels.T, affine, dtype=np.uint8)


def _strange_labels(repair: Repair, judge: Judge, challenge: Challenge) -> list[int]:
    """Labels that a repair leaves in a prediction, and that the challenge refuses."""
    if challenge.unknown_labels.prediction is UnknownLabels.IGNORE:
        return []
    known = {0, *judge.sample.organs.tolist(), *dict(repair.cause.labels)}
    return [
        label for label in np.flatnonzero(judge.sizes).tolist() if label not in known
    ]


def _without_strange_labels(
    repair: Repair, judge: Judge, challenge: Challenge
) -> Repair:
    """The repair with every label that the challenge refuses as background."""
    strange = dict.fromkeys(_strange_labels(repair, judge, challenge), 0)
    if not strange:
        return repair
    return repair.relabelled([*(dict(repair.cause.labels) | strange).items()])


def _worst_organ(judge: Judge, challenge: Challenge) -> str:
    """The organ with the lowest DSC as submitted, and what is wrong with it."""
    if judge.prediction.shape != judge.sample.shape:
        return ""
    overlaps = judge.sample.overlaps(judge.prediction, Repair().matrix)
    texts: list[tuple[float, str]] = []
    for row, organ in enumerate(challenge.organs):
        expected = judge.sample.sizes[row]
        predicted = judge.sizes[organ.label]
        if expected + predicted:
            shared = overlaps[row, organ.label]
            dsc = min(1.0, 2 * shared / (expected + predicted))
            problem = _organ_problem(expected, predicted, shared)
            texts.append((dsc, f"{organ.name}: DSC {dsc:.2f}, {problem}"))
    return min(texts, default=(0.0, ""))[1]


def _organ_problem(expected: float, predicted: float, shared: float) -> str:
    """The problem of an organ, from the numbers of its voxels."""
    if not predicted:
        return "it is not there"
    if not expected:
        return "the reference does not have it"
    missed = 1 - min(1.0, shared / expected)
    surplus = 1 - min(1.0, shared / predicted)
    wrong_place = f"{surplus:.0%} of its label lies where the organ is not"
    return f"{missed:.0%} of it is missing, {wrong_place}"


# --- Several cases ------------------------------------------------------------------


def in_workers(
    function: Callable[[CasePair], _Outcome],
    pairs: Sequence[CasePair],
    workers: int | None,
) -> Iterator[_Outcome]:
    """The outcome of a function for each case, in worker processes, in any order."""
    if not pairs:
        return
    most_voxels = 512 * 512 * 300
    pool = LocalPool(max(1, min(workers or default_workers(most_voxels), len(pairs))))
    for done in completed(pool, function, pairs):
        if done.is_lost:
            raise worker_error(done.item, done.error) from done.error
        if done.error:
            raise done.error
        yield cast("_Outcome", done.result)
