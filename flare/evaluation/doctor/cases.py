"""Diagnoses all cases of a submission: each, what they share, and exchanged files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np

from flare.challenge.rules import Challenge
from flare.evaluation.doctor.diagnose import Finding, diagnose_case, in_workers
from flare.evaluation.doctor.exchange import find_exchanged
from flare.evaluation.doctor.repair import NO_CAUSE, Cause, Placement
from flare.evaluation.submission.match import CasePair

SHARED_BY = 0.6
"""A cause of this share of all cases is looked for in the others, too."""

FEWEST_SHARING = 3
"""Fewer cases share nothing."""

SAME_SHIFT = 2
"""Shifts that are off by at most so many voxels along each axis may be one."""


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
        least_dsc = first.after.dsc if first.after else 0.0
        if finding.after and finding.after.dsc >= least_dsc:
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
