"""Diagnoses all cases of a submission: each, what they share, and exchanged files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from flare.challenge.rules import Challenge
from flare.common.environment import default_workers
from flare.common.executor import LocalPool, completed
from flare.evaluation.doctor.diagnose import (
    LEAST_DSC,
    SURE_DSC,
    Finding,
    diagnose_case,
    judge_of,
    least_gain_of,
    misplacement_of,
    read_whole,
    value_of,
    with_repair,
    without_strange_labels,
)
from flare.evaluation.doctor.judge import Judged, Sample
from flare.evaluation.doctor.repair import (
    NO_CAUSE,
    NO_SHIFT,
    Cause,
    Placement,
    placements,
)
from flare.evaluation.evaluate import Outcome, outcome_of
from flare.evaluation.scoring.case import map_bytes
from flare.evaluation.scoring.reading import read_reference
from flare.evaluation.submission.match import CasePair

SHARED_BY = 0.6
"""A cause of this share of all cases is looked for in the others, too."""

FEWEST_SHARING = 3
"""Fewer cases share nothing."""

SAME_SHIFT = 2
"""Shifts that are off by at most so many voxels along each axis may be one."""


OWN_DSC = 0.9
"""A prediction with this DSC, as submitted or repaired, is that of its own case."""

Fits = Mapping[str, Judged]
"""The best repair of a prediction by the case that it is tried on."""


def diagnose_cases(
    pairs: Sequence[CasePair], challenge: Challenge, *, workers: int | None = None
) -> list[Finding]:
    """Look at each case, then at what all share, then whose predictions they are."""
    look = partial(diagnose_case, challenge=challenge)
    findings = {f.pair.case: f for f in in_workers(look, pairs, workers)}
    cause = shared_cause([*findings.values()])
    if cause:
        findings |= _with_shared_cause(cause, findings, challenge, workers)
    for finding in find_exchanged([*findings.values()], challenge, workers):
        findings[finding.pair.case] = finding
    return [findings[pair.case] for pair in pairs]


def _with_shared_cause(
    cause: Cause,
    findings: dict[str, Finding],
    challenge: Challenge,
    workers: int | None,
) -> dict[str, Finding]:
    """The cases that a shared cause explains, if it explains most of all cases.

    Where another cause was told, the shared one is told if it mends as much.
    """
    explained, rest = {}, []
    for case, finding in findings.items():
        if finding.repair and has_cause(finding.cause, cause):
            explained[case] = finding
        elif not finding.is_unreadable:
            rest.append(finding.pair)
    look = partial(diagnose_case, challenge=challenge, shared=cause)
    for finding in in_workers(look, rest, workers):
        first = findings[finding.pair.case]
        if finding.after and value_of(finding.after) >= value_of(first.after):
            explained[finding.pair.case] = finding
    return explained if len(explained) >= SHARED_BY * len(findings) else {}


def has_cause(cause: Cause, shared: Cause) -> bool:
    """Whether a case has a cause that others have: a crop may lie elsewhere in each."""
    if shared.placement is Placement.CUT:
        return cause.orientation == shared.orientation and cause.labels == shared.labels
    return cause == shared


def shared_cause(findings: Sequence[Finding]) -> Cause | None:
    """The cause that most cases have, told or not; None if they share none.

    They share a placement of their axes, and the shift, which is the median of theirs.
    """
    causes = [finding.cause for finding in findings if not finding.is_unreadable]
    fewest = max(FEWEST_SHARING, SHARED_BY * len(findings))
    kinds = Counter(cause.orientation for cause in causes).most_common(1)
    if not kinds or kinds[0][1] < fewest:
        return None
    cause = _common_parts([c for c in causes if c.orientation == kinds[0][0]], fewest)
    return None if cause == NO_CAUSE else cause


def _common_parts(causes: Sequence[Cause], fewest: float) -> Cause:
    """The placement of some causes, and the shift and labels that most of them have."""
    shifts = np.array([cause.shift for cause in causes])
    shift = np.median(shifts, axis=0).astype(int)
    is_same = np.abs(shifts - shift).max(axis=1) <= SAME_SHIFT
    if is_same.sum() < fewest:
        shift = np.zeros_like(shift)
    labels, number = Counter(cause.labels for cause in causes).most_common(1)[0]
    return causes[0]._replace(
        shift=tuple(shift.tolist()), labels=labels if number >= fewest else ()
    )


def in_workers(
    function: Callable[[CasePair], Outcome],
    pairs: Sequence[CasePair],
    workers: int | None,
) -> Iterator[Outcome]:
    """The outcome of a function for each case, in worker processes, in any order."""
    if not pairs:
        return
    large_ct_voxels = 512 * 512 * 300  # sizes are not known before files are read
    # A byte of each voxel is that of an array of labels.
    case_bytes = large_ct_voxels + map_bytes(large_ct_voxels)
    most_workers = workers or default_workers(case_bytes)
    pool = LocalPool(max(1, min(most_workers, len(pairs))))
    for done in completed(pool, function, pairs):
        yield outcome_of(done)


# --- Exchanged files -----------------------------------------------------------------


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
            reference = read_reference(pair.reference, challenge)
            prediction, numbers = read_whole(pair.prediction)
            donated = replace(finding, pair=pair, numbers=numbers)
            mended = with_repair(donated, fit, reference, prediction, challenge)
            if mended:
                yield mended


def _is_doubtful(finding: Finding) -> bool:
    """Whether a prediction may be that of another case.

    It is not if it is good, or if other axes, its header or a crop alone explain it
    well: the time to try all on each other grows with the square of their number.
    """
    if finding.is_unreadable or finding.dsc >= OWN_DSC:
        return False
    cause = finding.cause
    is_moved = cause.placement is Placement.FIT or cause.shift != NO_SHIFT
    is_explained = finding.repair is not None and finding.dsc >= SURE_DSC
    return not is_explained or is_moved or bool(cause.labels)


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
    fits = {name: fits[case] for name, fits in fits_by_donor.items() if case in fits}
    if not fits:
        return ""
    donor = max(fits, key=lambda name: fits[name].worth)
    best = fits[donor]
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
    return finding.dsc + least_gain_of(finding.dsc)
