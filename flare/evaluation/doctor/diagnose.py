"""Diagnoses predictions: what was done to each, or to all of them, as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from flare.challenge.rules import Challenge, UnknownLabels
from flare.common.errors import FileError
from flare.evaluation.doctor.judge import Judge, Judged, Sample, count_voxels, sample_of
from flare.evaluation.doctor.repair import (
    NO_CAUSE,
    NO_SHIFT,
    Cause,
    Placement,
    Repair,
    placements,
    rebuilt,
)
from flare.evaluation.errors import FractionError
from flare.evaluation.labelmaps.grid import Grid, compare_positions, compare_sizes
from flare.evaluation.labelmaps.reading import (
    UNKNOWN_LABELS_LIMIT,
    LabelMap,
    opened,
    read_labels,
)
from flare.evaluation.metrics.arrays import mask_of
from flare.evaluation.metrics.pairs import map_of
from flare.evaluation.scoring.case import score_maps
from flare.evaluation.scoring.reading import (
    check_headers,
    read_prediction,
    read_reference,
    refuse_unknown,
)
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair
from flare.results.scores import CaseScore

ALL_LABELS = range(1, 256)

LEAST_GAIN = 0.05
"""The least by which the repair of a cause that is told raises the DSC."""

GAP_CLOSED = 0.25
"""The least share of the gap to a DSC of 1 that it closes, if it moves voxels."""

LEAST_DSC = 0.3
"""The least DSC that it reaches."""

SEARCHED_BELOW = 0.7
"""If no placement reaches this DSC, shifts are searched from nothing."""

FEW_ORGANS = 3
"""Fewer organs than this may lie elsewhere by chance, so that a shift of them has to
reach `SURE_DSC`."""

SURE_DSC = 0.75

LEAST_SHARED_GAIN = 0.01
"""A cause that most cases share is told of others if it raises their DSC by this."""

CANDIDATES = 3
"""The number of placements from which shifts are searched, and of repairs that are
tried as explanations."""

FIRST_STEP = 4
"""Shifts near a placement are searched by steps of so many voxels at first."""

KEPT_POINTS = 400
"""Voxels of each organ of a case that are kept until all cases were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The finding of one case."""

    pair: CasePair
    """If files were exchanged, its prediction is the file that holds it."""
    sample: Sample
    """A few voxels of the reference, to see whose prediction is in a file."""
    before: CaseScore | None = None
    """The score as submitted; None if the prediction is refused."""
    refusal: str = ""
    """Why it is refused."""
    is_unreadable: bool = False
    """Whether its voxels cannot be read at all."""
    misplacement: str = ""
    """How its grid is another one than the reference's; empty if it is the same."""
    repair: Repair | None = None
    """The repair that raises the score; None if nothing explains it."""
    cause: Cause = NO_CAUSE
    """The cause that is mended; without a repair, the one that would help most."""
    after: CaseScore | None = None
    """The exact score of the repaired prediction."""
    dsc: float = 0.0
    """The DSC as submitted, or repaired, of the organs that are in either label map."""
    outside_labels: tuple[int, ...] = ()
    """Labels outside of 0 to 255, if they count: background in a repaired copy."""
    numbers: str = ""
    """The cause by which its numbers were no labels; empty if they are."""
    worst_organ: str = ""
    """The organ with the lowest DSC as submitted, and what is wrong with it."""
    is_misnamed: bool = False
    """Whether its file is refused for its name, by which its case is only guessed."""

    @property
    def donor(self) -> str:
        """The case in whose file its prediction lies; empty if that is its own."""
        file_case = self.pair.prediction.case
        return "" if file_case == self.pair.case else file_case


def read_whole(file: LabelMapFile) -> tuple[LabelMap, str]:
    """Read a prediction with all of its labels.

    Where its numbers cannot be labels as they are, it is read as they must be meant;
    the name of that cause is the second result. A FileError is raised if they cannot
    be read at all.
    """
    causes = ["scaled"]
    try:
        prediction = file.read_labels(ALL_LABELS)
        if not prediction.unknown:
            return prediction, ""
    except FractionError:
        causes = ["rounded", "scaled"]
    for cause in causes:
        with (
            suppress(FileError),
            opened(file.path, file.name, file.npz, file.stream) as (header, voxels),
        ):
            meant = replace(header, is_rounded=True)
            if cause == "scaled":
                meant = replace(header, slope=1.0, intercept=0.0)
            prediction = read_labels(voxels, meant, ALL_LABELS)
            if cause == "rounded" or (header.is_scaled and not prediction.unknown):
                return prediction, cause
    return file.read_labels(ALL_LABELS), ""


def judge_of(sample: Sample, prediction: LabelMap, challenge: Challenge) -> Judge:
    """Prepare to judge a prediction that was read with all of its labels."""
    present = sample.labels[sample.sizes > 0].tolist()
    members, is_counted = [], []
    for organ in challenge.organs:
        for labels in organ.structures(present):
            members.append(mask_of(np.arange(256, dtype=np.uint8), labels))
            is_counted.append(organ.in_mean)
    return Judge(
        sample=sample,
        prediction=prediction,
        sizes=count_voxels(prediction),
        members=np.array(members, dtype=float),
        is_counted=np.array(is_counted),
    )


def misplacement_of(grid: Grid, reference_grid: Grid, challenge: Challenge) -> str:
    """How a grid is another one than that of the reference; empty if it is the same."""
    tolerance_mm = challenge.grid.tolerance_mm
    difference = compare_sizes(grid, reference_grid)
    return difference or compare_positions(grid, reference_grid, tolerance_mm)


def find_repairs(judge: Judge) -> list[Judged]:
    """Repairs of a prediction, the one that is worth most first; each cause once."""
    ways = placements(judge.prediction.grid, judge.sample.grid)
    if not judge.sizes.any():
        return [judge.judged(ways[0])]  # nothing lies in a wrong place
    placed = _best_first([judge.judged(way) for way in ways])
    # Where one placement fits, no other one is better a few voxels away.
    is_sure = placed[0].worth >= SURE_DSC and not judge.is_resized
    number = 1 if is_sure else CANDIDATES
    climbed = [judge.climbed(start, FIRST_STEP) for start in placed[:number]]
    best = _best_first([*placed, *climbed])
    if best[0].worth >= SEARCHED_BELOW:
        return best
    starts = _best_first([judge.judged(judge.correlated(way)) for way in ways])
    for start in starts[: CANDIDATES + 1]:
        best.append(judge.climbed(start, judge.coarse_step))
    return _best_first(best)


def _best_first(repairs: Sequence[Judged]) -> list[Judged]:
    by_cause = {judged.repair.cause: judged for judged in repairs}
    return sorted(by_cause.values(), key=lambda judged: -judged.worth)


def least_gain_of(dsc: float) -> float:
    """The least by which a repair that moves voxels raises a DSC, to be told."""
    return max(LEAST_GAIN, GAP_CLOSED * (1 - dsc))


def _raises_score(best: Judged, judge: Judge) -> bool:
    """Whether a repair raises the score by as much as its causes have to."""
    cause, submitted_dsc = best.repair.cause, judge.submitted_dsc
    least_gain = LEAST_GAIN
    # Other labels alone have their own evidence: `INSTEAD`.
    if cause.placement is not Placement.AS_IS or cause.shift != NO_SHIFT:
        least_gain = least_gain_of(submitted_dsc)
    return cause != NO_CAUSE and best.worth - submitted_dsc >= least_gain


def _is_sure_of_shift(best: Judged, judge: Judge) -> bool:
    """Whether organs lie elsewhere together, if a repair has a shift in it at all."""
    cause = best.repair.cause
    is_cut = cause.placement is Placement.CUT and judge.is_resized
    if cause.shift == NO_SHIFT or is_cut:
        return True
    organs = np.count_nonzero(judge.sample.sizes)
    if organs < FEW_ORGANS and best.dsc < SURE_DSC:
        return False
    return judge.is_moved_together(best.repair)


# --- One case -----------------------------------------------------------------------


def diagnose_case(
    pair: CasePair, *, challenge: Challenge, shared: Cause | None = None
) -> Finding:
    """Look at one case; `shared` is the cause that most of the other cases have."""
    reference = read_reference(pair.reference, challenge)
    sample = sample_of(reference, challenge.labels)
    prediction, numbers = None, ""
    with suppress(FileError):
        prediction, numbers = read_whole(pair.prediction)
    submitted = None if numbers else prediction
    before, refusal = _score_as_submitted(pair, reference, submitted, challenge)
    kept_points = sample.thinned(KEPT_POINTS)
    finding = Finding(pair=pair, sample=kept_points, before=before, refusal=refusal)
    if prediction is None:
        return replace(finding, is_unreadable=True)
    judge = judge_of(sample, prediction, challenge)
    is_ignored = challenge.unknown_labels.prediction is UnknownLabels.IGNORE
    finding = replace(
        finding,
        outside_labels=() if is_ignored else prediction.unknown,
        numbers=numbers,
        misplacement=misplacement_of(prediction.grid, sample.grid, challenge),
        dsc=judge.submitted_dsc,
        worst_organ=_worst_organ(judge, challenge),
    )
    if shared is None:
        repairs = find_repairs(judge)
        best = max(repairs, key=lambda judged: judged.dsc)
        finding = replace(finding, cause=best.repair.cause)
        chosen = _explaining_repair(repairs, judge, finding, challenge)
    else:
        chosen = _shared_repair(shared, judge)
    if chosen is None:
        return finding
    repair = without_strange_labels(chosen.repair, judge, challenge)
    best = Judged(repair, chosen.dsc)
    return with_repair(finding, best, reference, prediction, challenge) or finding


def _score_as_submitted(
    pair: CasePair,
    reference: LabelMap,
    prediction: LabelMap | None,
    challenge: Challenge,
) -> tuple[CaseScore | None, str]:
    """The score of a case, or why it is refused.

    The prediction has all of its labels; without it, its file is read as it is.
    """
    try:
        check_headers(pair, challenge)
        if prediction is None:
            submitted = read_prediction(pair.prediction, challenge)
        else:
            submitted = _with_organs_alone(prediction, challenge)
            refuse_unknown(pair.prediction, submitted, challenge)
        return score_maps(pair, reference, submitted, _by_overlap(challenge)), ""
    except FileError as error:
        return None, str(error)


def value_of(score: CaseScore | None, metric: str = "dsc") -> float:
    """A score as repairs are compared by it; 0 of what is not scored, or left out."""
    return (score and score.by_metric.get(metric)) or 0.0


def _by_overlap(challenge: Challenge) -> Challenge:
    """The rules by which repairs are judged: by the DSC, whatever is scored."""
    metrics = challenge.metrics
    return (
        challenge if "dsc" in metrics else replace(challenge, metrics=("dsc", *metrics))
    )


def _with_organs_alone(prediction: LabelMap, challenge: Challenge) -> LabelMap:
    labels = challenge.labels
    strange = [label for label in prediction.present if label not in labels]
    unknown = sorted([*prediction.unknown, *strange][:UNKNOWN_LABELS_LIMIT])
    return replace(prediction, allowed=labels, unknown=tuple(unknown))


def _explaining_repair(
    repairs: Sequence[Judged], judge: Judge, finding: Finding, challenge: Challenge
) -> Judged | None:
    """The first of the best repairs that explains a score or a refusal; None if none.

    A case that is refused for its grid needs no better score to be explained.
    """
    is_refused = finding.before is None
    has_other_grid = is_refused and finding.misplacement
    for judged in repairs[:CANDIDATES]:
        is_better = has_other_grid or _raises_score(judged, judge)
        if is_better and judged.dsc >= LEAST_DSC and _is_sure_of_shift(judged, judge):
            return judged
    if finding.misplacement:
        return None
    # A label that no organ has refuses a case, or makes it 0, all by itself.
    strange_labels = without_strange_labels(Repair(), judge, challenge).cause.labels
    is_at_fault = is_refused, strange_labels, finding.outside_labels, finding.numbers
    return judge.judged(Repair()) if any(is_at_fault) else None


def _shared_repair(shared: Cause, judge: Judge) -> Judged | None:
    """The repair of a cause that other cases have, if it helps here, too."""
    repair = rebuilt(shared, judge.prediction.grid, judge.sample.grid)
    if repair is None:
        return None
    judged = judge.judged(repair)
    if shared.placement is Placement.CUT:  # each case at a place of its own
        unmoved = repair.shifted((-np.array(shared.shift)).tolist())
        start = judge.judged(judge.correlated(unmoved))
        climbed = judge.climbed(start, judge.coarse_step)
        judged = max(judged, climbed, key=lambda way: way.dsc)
    gain = judged.dsc - judge.submitted_dsc
    return judged if gain >= LEAST_SHARED_GAIN else None


def with_repair(
    finding: Finding,
    best: Judged,
    reference: LabelMap,
    prediction: LabelMap,
    challenge: Challenge,
) -> Finding | None:
    """The finding with the exact score of a repair; None if that is no better.

    Nor is it where organs' labels are all lost, or where surfaces fit worse and the
    overlap gains little: an organ that has grown is nearer to a place beside its own.
    """
    labels = best.repair.apply(prediction, reference.grid.shape)
    repaired = LabelMap(
        grid=reference.grid, voxels=map_of(labels), allowed=challenge.labels
    )
    after = score_maps(finding.pair, reference, repaired, _by_overlap(challenge))
    if after.is_empty and prediction.present:
        return None
    before = finding.before
    if before:
        gain = value_of(after) - value_of(before)
        is_small = gain < least_gain_of(value_of(before))
        is_farther = value_of(after, "nsd") < value_of(before, "nsd")
        if gain <= 0 or (is_small and is_farther):
            return None
    repair, dsc = best.repair, best.dsc
    return replace(finding, repair=repair, cause=repair.cause, after=after, dsc=dsc)


def without_strange_labels(
    repair: Repair, judge: Judge, challenge: Challenge
) -> Repair:
    """The repair with every label that the challenge refuses as background."""
    if challenge.unknown_labels.prediction is UnknownLabels.IGNORE:
        return repair
    table = dict(repair.cause.labels)
    known_labels = {0, *challenge.labels, *table}
    for label in np.flatnonzero(judge.sizes).tolist():
        if label not in known_labels:
            table[label] = 0
    return repair.relabelled([*table.items()])


def _worst_organ(judge: Judge, challenge: Challenge) -> str:
    """The organ with the lowest DSC as submitted, and what is wrong with it."""
    if judge.is_resized:
        return ""
    overlaps = judge.sample.overlaps(judge.prediction.labels, Repair().matrix)
    texts: list[tuple[float, str]] = []
    for organ in challenge.organs:
        labels = [*organ.region]
        rows = np.isin(judge.sample.labels, labels)
        expected = float(judge.sample.sizes[rows].sum())
        predicted = float(judge.sizes[labels].sum())
        if expected + predicted:
            shared = float(overlaps[rows][:, labels].sum())
            dsc = min(1.0, 2 * shared / (expected + predicted))
            problem = _organ_problem(expected, predicted, shared)
            texts.append((dsc, f"{organ.name}: DSC {dsc:.2f}, {problem}"))
    return min(texts, default=(0.0, ""))[1]


def _organ_problem(expected: float, predicted: float, shared: float) -> str:
    if not predicted:
        return "it is not there"
    if not expected:
        return "the reference does not have it"
    missed = 1 - min(1.0, shared / expected)
    surplus = 1 - min(1.0, shared / predicted)
    wrong_place = f"{surplus:.0%} of its label lies where the organ is not"
    return f"{missed:.0%} of it is missing, {wrong_place}"
