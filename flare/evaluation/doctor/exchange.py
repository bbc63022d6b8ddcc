"""Finds predictions that lie in the file of another case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from flare.challenge.rules import Challenge
from flare.evaluation.doctor.diagnose import (
    ALL_LABELS,
    GAP_CLOSED,
    LEAST_DSC,
    LEAST_GAIN,
    Finding,
    in_workers,
    misplacement_of,
    score_repaired,
)
from flare.evaluation.doctor.judge import Judge, Judged, Sample, label_sizes
from flare.evaluation.doctor.repair import (
    NO_CAUSE,
    NO_SHIFT,
    Placement,
    Repair,
    placements,
)
from flare.evaluation.submission.match import CasePair

OWN_DSC = 0.9
"""A prediction with this DSC, as submitted or repaired, is that of its own case."""

_PLACEMENTS = (Placement.AS_IS, Placement.AXES)
"""The placements in which another case's prediction is tried."""

Fits = Mapping[str, Judged]
"""The best repair of a prediction by the case that it is tried on."""


def find_exchanged(
    findings: Sequence[Finding], challenge: Challenge, workers: int | None
) -> Iterator[Finding]:
    """The cases whose prediction lies in the file of another one."""
    doubtful = {f.pair.case: f for f in findings if _is_doubtful(f)}
    if len(doubtful) < 2:
        return
    samples = {case: f.sample for case, f in doubtful.items() if f.sample}
    look = partial(_fits, samples=samples, challenge=challenge)
    pairs = [finding.pair for finding in doubtful.values()]
    fits_by_file = dict(in_workers(look, pairs, workers))
    for case, finding in doubtful.items():
        donor = _donor(case, doubtful, fits_by_file, challenge)
        if donor:
            repair = fits_by_file[donor][case].repair
            yield _from_donor(finding, doubtful[donor], repair, challenge)


def _is_doubtful(finding: Finding) -> bool:
    """Whether a prediction may be that of another case.

    It is not if it is good, or if other axes, its header or a crop alone explain it:
    the time to try all on each other grows with the square of their number.
    """
    if finding.is_unreadable or finding.dsc >= OWN_DSC:
        return False
    cause = finding.repair.cause if finding.repair else NO_CAUSE
    is_moved = cause.placement is Placement.FIT or cause.shift != NO_SHIFT
    return finding.repair is None or is_moved or bool(cause.labels)


def _fits(
    pair: CasePair, *, samples: Mapping[str, Sample], challenge: Challenge
) -> tuple[str, Fits]:
    """How well a prediction fits the reference of each case of its size."""
    prediction = pair.prediction.read_labels(ALL_LABELS)
    sizes = label_sizes(prediction.labels)
    is_counted = [organ.in_mean for organ in challenge.organs]
    fits = {}
    for case, sample in samples.items():
        grid = replace(prediction.grid, shape=sample.shape)
        judge = Judge(sample, prediction.labels, sizes, is_counted)
        repairs = []
        for repair in placements(prediction.grid, grid):
            is_in_order = repair.cause.order == NO_CAUSE.order
            if is_in_order and repair.cause.placement in _PLACEMENTS:
                repairs.append(judge.judged(repair))
        if repairs:
            fits[case] = max(repairs, key=lambda judged: judged.worth)
    return pair.case, fits


def _donor(
    case: str,
    doubtful: Mapping[str, Finding],
    fits_by_file: Mapping[str, Fits],
    challenge: Challenge,
) -> str:
    """The case whose file has the prediction of a case; empty if it is its own."""
    candidates = [name for name, fits in fits_by_file.items() if case in fits]
    if not candidates:
        return ""
    donor = max(candidates, key=lambda name: fits_by_file[name][case].worth)
    best = fits_by_file[donor][case]
    # Patients who are alike fit each other's references, too, if not as well.
    own_fit = fits_by_file[donor].get(donor)
    fits_itself = own_fit is not None and own_fit.worth >= best.worth
    if donor == case or fits_itself or best.dsc < LEAST_DSC:
        return ""
    least_worth = _least_worth(doubtful[case], doubtful[donor], challenge)
    return donor if best.worth >= least_worth else ""


def _least_worth(finding: Finding, donor: Finding, challenge: Challenge) -> float:
    """How well the donor's prediction has to fit, to be taken for that of a case."""
    if finding.misplacement and _has_grid_of(donor, finding, challenge):
        return finding.dsc  # the header says itself whose prediction it is
    return finding.dsc + max(LEAST_GAIN, GAP_CLOSED * (1 - finding.dsc))


def _has_grid_of(donor: Finding, finding: Finding, challenge: Challenge) -> bool:
    """Whether the donor's file lies on the grid of the reference of a case."""
    if finding.grid is None:
        return False
    donor_grid = donor.pair.prediction.read_grid()
    return not misplacement_of(donor_grid, finding.grid, challenge)


def _from_donor(
    finding: Finding, donor: Finding, repair: Repair, challenge: Challenge
) -> Finding:
    """The finding of a case whose prediction is in the file of another one."""
    file = donor.pair.prediction
    labels = file.read_labels(ALL_LABELS).labels
    grid = finding.pair.reference.read_grid()
    after = score_repaired(repair, labels, finding.pair, grid, challenge)
    if finding.before and after.dsc <= finding.before.dsc:
        return finding
    return replace(
        finding, repair=repair, after=after, donor=donor.pair.case, source=file
    )
