"""Finds predictions that lie in the file of another case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from flare.challenge.rules import Challenge
from flare.evaluation.doctor.diagnose import (
    GAP_CLOSED,
    LEAST_DSC,
    LEAST_GAIN,
    Finding,
    in_workers,
    judge_of,
    misplacement_of,
    read_whole,
    with_repair,
    without_strange_labels,
)
from flare.evaluation.doctor.judge import Judged, Sample
from flare.evaluation.doctor.repair import NO_CAUSE, NO_SHIFT, Placement, placements
from flare.evaluation.scoring.case import MEMORY
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.match import CasePair

OWN_DSC = 0.9
"""A prediction with this DSC, as submitted or repaired, is that of its own case."""

Fits = Mapping[str, Judged]
"""The best repair of a prediction by the case that it is tried on."""


def find_exchanged(
    findings: Sequence[Finding], challenge: Challenge, workers: int | None
) -> Iterator[Finding]:
    """The cases whose prediction lies in the file of another one."""
    doubtful = {f.pair.case: f for f in findings if _is_doubtful(f)}
    if len(doubtful) < 2:
        return
    samples = {case: finding.sample for case, finding in doubtful.items()}
    look = partial(_fits, samples=samples, challenge=challenge)
    pairs = [finding.pair for finding in doubtful.values()]
    fits_by_donor = dict(in_workers(look, pairs, workers))
    for case, finding in doubtful.items():
        donor = _donor(case, doubtful, fits_by_donor, challenge)
        if donor:
            fit = fits_by_donor[donor][case]
            pair = replace(finding.pair, prediction=doubtful[donor].pair.prediction)
            reference = read_reference(pair.reference, challenge, MEMORY)
            prediction, numbers = read_whole(pair.prediction)
            donated = replace(finding, pair=pair, numbers=numbers)
            mended = with_repair(donated, fit, reference, prediction, challenge)
            if mended:
                yield mended


def _is_doubtful(finding: Finding) -> bool:
    """Whether a prediction may be that of another case.

    It is not if it is good, or if other axes, its header or a crop alone explain it:
    the time to try all on each other grows with the square of their number.
    """
    if finding.is_unreadable or finding.dsc >= OWN_DSC:
        return False
    cause = finding.cause
    is_moved = cause.placement is Placement.FIT or cause.shift != NO_SHIFT
    return finding.repair is None or is_moved or bool(cause.labels)


def _fits(
    pair: CasePair, *, samples: Mapping[str, Sample], challenge: Challenge
) -> tuple[str, Fits]:
    """How well a prediction fits the reference of each case of its size."""
    prediction, _ = read_whole(pair.prediction)
    judge = judge_of(samples[pair.case], prediction, challenge)
    fits = {}
    for case, sample in samples.items():
        if sample.grid.shape == prediction.grid.shape:
            judge_of_case = replace(judge, sample=sample)
            repairs = []
            for repair in placements(prediction.grid, sample.grid):
                is_by_header = repair.cause.placement is Placement.HEADER
                if repair.cause.order == NO_CAUSE.order and not is_by_header:
                    repairs.append(judge_of_case.judged(repair))
            best = max(repairs, key=lambda judged: judged.worth)
            repair = without_strange_labels(best.repair, judge_of_case, challenge)
            fits[case] = Judged(repair, best.dsc)
    return pair.case, fits


def _donor(
    case: str,
    doubtful: Mapping[str, Finding],
    fits_by_donor: Mapping[str, Fits],
    challenge: Challenge,
) -> str:
    """The case whose file has the prediction of a case; empty if it is its own."""
    candidates = [name for name, fits in fits_by_donor.items() if case in fits]
    if not candidates:
        return ""
    donor = max(candidates, key=lambda name: fits_by_donor[name][case].worth)
    best = fits_by_donor[donor][case]
    # Patients who are alike fit each other's references, too, if not as well.
    own_fit = fits_by_donor[donor].get(donor)
    fits_itself = own_fit is not None and own_fit.worth >= best.worth
    if donor == case or fits_itself or best.dsc < LEAST_DSC:
        return ""
    least_worth = _least_worth(doubtful[case], doubtful[donor], challenge)
    return donor if best.worth >= least_worth else ""


def _least_worth(finding: Finding, donor: Finding, challenge: Challenge) -> float:
    """How well the donor's prediction has to fit, to be taken for that of a case."""
    if finding.misplacement:
        donor_grid = donor.pair.prediction.read_grid()
        if not misplacement_of(donor_grid, finding.sample.grid, challenge):
            return finding.dsc  # the header says itself whose prediction it is
    return finding.dsc + max(LEAST_GAIN, GAP_CLOSED * (1 - finding.dsc))
