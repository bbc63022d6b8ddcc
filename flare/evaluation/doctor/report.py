"""Tells findings in lines, or in one at the end of other commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from statistics import fmean

from flare.challenge.metrics import METRICS, metrics_in
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError
from flare.common.text import aligned, count, listing, safe
from flare.evaluation.doctor.cases import has_cause
from flare.evaluation.doctor.diagnose import Finding, diagnose_case, value_of
from flare.evaluation.doctor.words import cause_texts
from flare.evaluation.scoring.case import Explanation
from flare.evaluation.submission.match import CasePair
from flare.results.scores import mean

GOOD_DSC = 0.9
"""From this mean DSC on, nothing is asked of cases without a cause."""

MOST_WAYS = 3
"""At most this many wordings of one cause are printed."""

RARE_CAUSE_NOTE = (
    "Most cases do not have it. If these predictions fit their CTs in a viewer, the"
    " references may be wrong: tell the organisers."
)

MOST_WORST = 5
"""At most this many cases are named whose segmentation is bad itself."""


CASES_LOOKED_AT = 5
"""At most this many cases are looked at: each takes a few tenths of a second."""


def report_lines(findings: Sequence[Finding], challenge: Challenge) -> Iterator[str]:
    """The lines about each cause, those of most cases first, then a row for each case.

    Cases have one cause if its repair is the same, whatever their files' axes are.
    """
    without_cause = [finding for finding in findings if not finding.repair]
    groups = _by_cause([finding for finding in findings if finding.repair])
    for members in sorted(groups, key=len, reverse=True):
        yield from _cause_lines(members, len(findings), challenge)
    if without_cause:
        yield from _unexplained_lines(without_cause, len(findings))
    yield ""
    rows = [("case", "DSC as submitted", "repaired", "cause")]
    for finding in findings:
        rows.append(_row(finding, challenge))
    yield from aligned(rows)


def _by_cause(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Cases in groups of one cause, those with the most labels first."""
    groups: list[list[Finding]] = []
    for finding in sorted(findings, key=lambda f: len(f.cause.labels), reverse=True):
        for members in groups:
            if _has_cause_of(members[0], finding):
                members.append(finding)
                break
        else:
            groups.append([finding])
    return groups


def _has_cause_of(first: Finding, finding: Finding) -> bool:
    """Whether a case has the cause of another one, with as many labels or fewer.

    Organs that a patient does not have are in no table of labels.
    """
    labels, first_labels = finding.cause.labels, first.cause.labels
    if not {*labels} <= {*first_labels} or bool(labels) != bool(first_labels):
        return False
    if _file_faults(first) != _file_faults(finding):
        return False
    return has_cause(finding.cause, first.cause._replace(labels=labels))


def _file_faults(finding: Finding) -> tuple[bool, bool, bool, str]:
    """The kinds of faults of a file that are no placement of its voxels."""
    has_outside, is_donated = bool(finding.outside_labels), bool(finding.donor)
    return finding.is_misnamed, has_outside, is_donated, finding.numbers


def _cause_lines(
    members: Sequence[Finding], cases: int, challenge: Challenge
) -> Iterator[str]:
    """Tell what cases have in common, what it costs, and how it is mended."""
    ways = _ways(members, challenge)
    yield f"{len(members)} of {count(cases, 'case')}: {', '.join(ways)}"
    if len(ways) > 1:
        yield "  It is one cause, in files with different axes or voxel sizes."
    yield from _score_lines(members)
    for cause in cause_texts(members[0], challenge):
        for line in cause.lines:
            yield f"  {line}"
    if 2 * len(members) < cases:
        yield f"  {RARE_CAUSE_NOTE}"


def _score_lines(members: Sequence[Finding]) -> Iterator[str]:
    """The mean of each metric over cases, as submitted and repaired."""
    after_scores = [f.after.by_metric for f in members if f.after]
    for metric in filter(attrgetter("is_share"), metrics_in(after_scores[0])):
        before = [f.before.by_metric[metric.name] for f in members if f.before]
        after = [scores[metric.name] for scores in after_scores]
        metric = replace(metric, decimals=4)
        submitted = metric.text(mean(before)) if before else "refused"
        if 0 < len(before) < len(after):
            submitted += f" ({len(after) - len(before)} refused)"
        repaired = f"{metric.text(mean(after))} repaired"
        yield f"  {metric.title} {submitted} as submitted, {repaired}"


def _ways(members: Sequence[Finding], challenge: Challenge) -> list[str]:
    """The words in which one cause shows in the files of cases, and these cases."""
    names: dict[str, list[str]] = {}
    for finding in members:
        cause = finding.cause._replace(labels=members[0].cause.labels)
        causes = cause_texts(replace(finding, cause=cause), challenge)
        text = "; ".join(cause.text for cause in causes)
        names.setdefault(text, []).append(finding.pair.case)
    ways = [f"{text} ({listing(names[text])})" for text in names]
    surplus = len(ways) - MOST_WAYS
    return [*ways[:MOST_WAYS], f"{surplus} more"] if surplus > 0 else ways


def _unexplained_lines(members: Sequence[Finding], cases: int) -> Iterator[str]:
    """Tell of cases that nothing explains, the worst first, with their worst organs."""
    scored = []
    for finding in members:
        if finding.before:
            if finding.before.dsc is not None:
                scored.append((finding.before.dsc, finding))
        else:
            case = safe(finding.pair.case)
            yield f"{case}: refused, and --fix cannot mend it. {finding.refusal}"
    if not scored:
        return
    mean = fmean(dsc for dsc, _ in scored)
    share = f"{len(scored)} of {count(cases, 'case')}"
    if mean >= GOOD_DSC:
        yield f"{share}: nothing to mend (mean DSC {mean:.4f})"
        return
    yield (
        f"{share}: the segmentation itself (mean DSC {mean:.4f}). No mirroring, shift,"
        " grid, header, label number or exchanged file explains it."
    )
    scored.sort(key=lambda row: row[0])
    for _, finding in scored[:MOST_WORST]:
        if finding.worst_organ:
            yield f"  {safe(finding.pair.case)}: worst is {finding.worst_organ}"


def _row(finding: Finding, challenge: Challenge) -> tuple[str, str, str, str]:
    causes = cause_texts(finding, challenge)
    what = "; ".join(cause.text + cause.detail for cause in causes) or "-"
    metric = replace(METRICS["dsc"], decimals=4)
    before = metric.text(finding.before.dsc) if finding.before else "refused"
    after = metric.text(finding.after.dsc) if finding.after else "-"
    return safe(finding.pair.case), before, after, what


# --- A line of other commands --------------------------------------------------------


def explain_file(pair: CasePair, challenge: Challenge) -> Explanation | None:
    """Find what was done to a prediction as a whole, if that explains its score.

    The case was read before, and both of its label maps are of one size.
    """
    finding = diagnose_case(pair, challenge=challenge)
    if finding.repair is None:
        return None
    causes = cause_texts(finding, challenge)
    text = "; ".join(cause.text for cause in causes)
    submitted_dsc = value_of(finding.before)
    return Explanation(text=text, submitted_dsc=submitted_dsc, dsc=finding.dsc)


def common_cause(pairs: Sequence[CasePair], challenge: Challenge) -> str:
    """Say in a line what most of some cases suffer from; empty if that is nothing."""
    looked_at = pairs[:: max(1, len(pairs) // CASES_LOOKED_AT)][:CASES_LOOKED_AT]
    dsc_by_text: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for pair in looked_at:
        try:
            explanation = explain_file(pair, challenge)
        except FlareError:
            continue  # it is only a hint
        if explanation:
            dsc_by_text[explanation.text][pair.case] = explanation.dsc
    for text, dsc in dsc_by_text.items():
        if 2 * len(dsc) > len(looked_at):
            return (
                f"{len(dsc)} of {len(looked_at)} cases that were looked at: {text}"
                f" ({listing(dsc)}). Without that, their DSC would be about"
                f" {fmean(dsc.values()):.2f}. flare doctor says more, and mends it."
            )
    return ""
