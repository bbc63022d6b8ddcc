"""Makes the page of a case by all teams: the same slice by each of them, best first.

Label maps are read one team after the other, and kept packed until the slice is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from zlib_ng import zlib_ng

from flare.challenge.metrics import Better, Metric, lesions_by, metrics_in
from flare.common.errors import InputError, SubmissionError
from flare.common.files import file_names
from flare.common.text import count, listing, nearest, safe
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.many.teams import find_submissions
from flare.evaluation.metrics.arrays import Labels
from flare.evaluation.submission.unpack import label_maps_folder
from flare.reports.cases.drawing import Picture
from flare.reports.cases.findings import CaseFinding, worst_slices
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.cases.pictures import axial_picture, layers
from flare.reports.cases.sources import (
    CaseFiles,
    ct_backgrounds,
    find_case_files,
    find_out,
)
from flare.reports.cases.words import (
    dsc_chips,
    ordered_faults,
    scores_text,
    worst_words,
)
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Column,
    Page,
    Part,
    Section,
    Table,
    Words,
    folded,
    metric_key,
    table_of,
)
from flare.reports.render.html import macro_html, page_html, template_text
from flare.reports.scores import metric_cell, scores_of
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import EvaluationFile, read_evaluation
from flare.results.team_folder import PREDICTIONS

FOLDER = "all-teams"
"""The folder of these pages, below that of a ranking."""

CHIPS = 5
"""Organs below a picture, those with the lowest DSC; the tables have all."""

SLICE_NOTE = (
    "Every wrong voxel weighs by its distance from the surface, of which up to 10 mm"
    " count, and the weights of all teams are added up. Slices are counted from the"
    " feet; the patient's right is on the left."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The finding of a team's label map, and its voxels, packed."""

    finding: CaseFinding
    """The finding without any voxels."""
    shape: tuple[int, ...]
    reference: bytes
    prediction: bytes
    grid: Grid
    files: CaseFiles


class _TeamCase(NamedTuple):
    """A case by a team."""

    team: str
    scores: Mapping[str, float | None]
    """The scores by metric, such as ``dsc`` and ``dsc_liver``; empty if it has none."""
    words: str
    """The worst that is wrong, or why there is no picture."""
    look: _Look | None = None
    picture: Picture | None = None
    chips: Sequence[tuple[str, str]] = ()
    """Organs with their DSC, the lowest first, each behind the class of its shade."""

    @property
    def scores_text(self) -> str:
        """The means of the case."""
        return scores_text(self.scores)


def all_teams_pages(
    results: Path,
    options: CaseOptions,
    on_drawn: OnDrawn | None = None,
    *,
    has_ranking: bool,
) -> Iterator[tuple[str, str, str]]:
    """The cases of the options, each with the file of its page, and the page as HTML.

    `on_drawn` is called after each team. Pages lead to the ranking if there is one. A
    RankingError is raised if no team has results, or of a case; a MetricsFileError if a
    label map is not what was scored; errors of reading if it cannot be read.
    """
    evaluations: dict[Path, EvaluationFile] = {}
    cases: set[str] = set()
    for file in sorted(results.glob(f"[!.]*/{METRICS_JSON}")):
        evaluations[file.parent] = read_evaluation(file, (), RankingError)
        cases.update(evaluations[file.parent].cases)
    if not evaluations:
        problem = f"no folder in it has a {METRICS_JSON}"
        raise RankingError(str(results), problem, "Give the results of all teams.")
    for case in options.case:
        if case not in cases:
            problem = f"no team has a case {safe(case)}{nearest(case, sorted(cases))}"
            raise RankingError(str(results), problem, "Name a case of the ranking.")
    lead = [macro_html("to_index", kind="ranking")] if has_ranking else []
    for case, name in file_names(options.case).items():
        with lesions_by(next(iter(evaluations.values())).lesions):
            page = _page(evaluations, case, options, on_drawn)
        page = replace(page, lead=[*lead, *page.lead])
        html = page_html(page, style=template_text("case.css"))
        yield case, f"{FOLDER}/{name}.html", html


def _page(
    evaluations: Mapping[Path, EvaluationFile],
    case: str,
    options: CaseOptions,
    on_drawn: OnDrawn | None,
) -> Page:
    submissions = _submissions(options.predictions, list(evaluations))
    team_cases = []
    for number, (folder, evaluation) in enumerate(evaluations.items(), start=1):
        team_options = None
        if folder.name in submissions:
            team_options = replace(options, predictions=submissions[folder.name])
        team_cases.append(_team_case(folder, evaluation, case, team_options))
        if on_drawn:
            on_drawn(number, len(evaluations), folder.name)
    scores = scores_of(next(iter(evaluations.values())))
    team_cases.sort(key=partial(_place, scores.deciding))
    looks = list(filter(None, map(attrgetter("look"), team_cases)))
    if not looks:
        place = safe(options.predictions or next(iter(evaluations)).parent)
        problem = f"{place}: no team has a prediction of case {safe(case)}"
        raise InputError(problem, "Give the predictions that were scored.")
    return Page(
        title=f"Case {case}: all teams",
        kicker=scores.challenge,
        audience_note=ORGANISERS_NOTE,
        lead=[Words(_summary(team_cases, len(looks), scores.deciding[0]))],
        sections=_sections(team_cases, looks, case),
    )


def _place(
    metrics: Sequence[Metric], team_case: _TeamCase
) -> tuple[bool, list[float], str]:
    """The key that sorts the best first, and last those without a picture."""
    values = []
    for metric in metrics:
        value = team_case.scores.get(metric.name)
        sign = 1 if metric.better is Better.LOWER else -1
        values.append(math.inf if value is None else sign * value)
    return team_case.look is None, values, team_case.team


def _submissions(folder: Path | None, teams: Sequence[Path]) -> dict[str, Path]:
    """The predictions of each team, a folder or a zip; if None, those that it kept."""
    submissions = {}
    for team in () if folder else teams:
        if (team / PREDICTIONS).is_dir():
            submissions[team.name] = team / PREDICTIONS
    names = list(map(attrgetter("name"), teams))
    for submission in find_submissions(folder) if folder else ():
        if submission.problem and submission.team in names:
            raise submission.problem
        submissions[submission.team] = submission.path
    return submissions


def _team_case(
    folder: Path,
    evaluation: EvaluationFile,
    case: str,
    options: CaseOptions | None,
) -> _TeamCase:
    """A case of a team, whose own predictions the options have; None without any."""
    scores = evaluation.scores_of(case)
    words, look = "Its prediction of this case is not there.", None
    if case not in evaluation.cases:
        words = f"Not among the cases of its {METRICS_JSON}."
    elif case in evaluation.failed:
        words = f"Not scored: {evaluation.failed[case]}"
    elif options:
        metrics = folder / METRICS_JSON
        try:
            with label_maps_folder(options.predictions) as predictions:
                files = find_case_files(
                    metrics, evaluation, options, predictions, [case], may_lack=True
                )
                if case in files.pairs:
                    words, look = _look(files, case, scores)
        except SubmissionError as error:
            problem = f"{safe(folder.name)}: {error.finding}"
            raise InputError(problem, error.remedy) from error
    return _TeamCase(folder.name, scores, words, look)


def _look(
    files: CaseFiles, case: str, scores: Mapping[str, float | None]
) -> tuple[str, _Look]:
    """The worst that is wrong with a label map, and what its picture needs."""
    finding, reference, _ = find_out(files, case, scores)
    words = worst_words(ordered_faults(finding))
    nothing = np.zeros((0, 0, 0), dtype=finding.reference.dtype)
    organs = [replace(organ, surfaces=None) for organ in finding.organs]
    slim = replace(finding, reference=nothing, prediction=nothing, mending=None)
    look = _Look(
        finding=replace(slim, organs=tuple(organs)),
        shape=finding.reference.shape,
        reference=zlib_ng.compress(finding.reference.tobytes(), 1),
        prediction=zlib_ng.compress(finding.prediction.tobytes(), 1),
        grid=reference.grid,
        files=files,
    )
    return words, look


def _unpacked(packed: bytes, shape: tuple[int, ...]) -> Labels:
    return np.frombuffer(zlib_ng.decompress(packed), dtype=np.uint8).reshape(shape)


def _summary(team_cases: Sequence[_TeamCase], pictures: int, metric: Metric) -> str:
    """How many teams there are, between which values, and who has no picture."""
    ends = []
    for team_case in (team_cases[0], team_cases[pictures - 1])[:pictures]:
        score = scores_text({metric.name: team_case.scores.get(metric.name)})
        ends.append(f"{safe(team_case.team)} ({score})")
    words = f"{count(len(team_cases), 'team')}, best first: {' to '.join(ends)}."
    without = listing(map(attrgetter("team"), team_cases[pictures:]))
    return f"{words} No picture of {without}." if without else words


# --- The same slice by every team -------------------------------------------------


def _sections(
    team_cases: Sequence[_TeamCase], looks: Sequence[_Look], case: str
) -> list[Section]:
    finding, files = _shared_finding(looks), looks[0].files
    backgrounds = ct_backgrounds(files, case, looks[0].grid, finding)
    cards = list(_drawn(team_cases, finding, "".join(backgrounds[:1])))
    slice_words = (
        f"Axial slice {finding.worst[0] + 1} of {looks[0].shape[0]}, in which the"
        " errors of all teams together weigh the most."
    )
    shown: list[Part] = [
        Words(slice_words),
        macro_html("teams", cards=cards, layers=layers(backgrounds)),
        Words(SLICE_NOTE, "note"),
    ]
    tables = folded(_tables(team_cases, finding))
    return [
        Section("teams", "Teams", "The same slice by every team", shown),
        Section("values", "Values", "Values of the case", tables),
    ]


def _shared_finding(looks: Sequence[_Look]) -> CaseFinding:
    """The finding of the best team, at the slice and the part that all have."""
    finding, parts, weights = looks[0].finding, [], []
    for axis, size in enumerate(looks[0].shape):
        start, end, axis_weights = size, 0, np.zeros(size)
        for look in looks:
            part = look.finding.field.box[axis]
            start, end = min(start, part.start), max(end, part.stop)
            axis_weights += look.finding.weights[axis]
        parts.append(slice(start, end))
        weights.append(axis_weights)
    for look in looks:
        if look.files.challenge.organs != looks[0].files.challenge.organs:
            metrics, problem = look.files.metrics, "it was scored by other rules"
            remedy = "Score all teams by the same rules: flare rescore."
            raise MetricsFileError(str(metrics), problem, remedy)
    z, y, x = parts
    reference = _unpacked(looks[0].reference, looks[0].shape)
    return replace(
        finding,
        reference=reference,
        field=replace(finding.field, box=(z, y, x)),
        worst=worst_slices(weights, reference),
    )


def _drawn(
    team_cases: Sequence[_TeamCase], finding: CaseFinding, background: str
) -> Iterator[_TeamCase]:
    """The case by each team; those with a picture have the same slice."""
    for number, team_case in enumerate(team_cases, start=1):
        if look := team_case.look:
            prediction = _unpacked(look.prediction, look.shape)
            shown = replace(finding, prediction=prediction)
            picture = axial_picture(shown, f"team-{number}", background)
            background = background and "#ct-team-1"  # it is on the page once
            chips = dsc_chips(look.finding)[:CHIPS]
            team_case = team_case._replace(picture=picture, chips=chips)
        yield team_case


def _tables(team_cases: Sequence[_TeamCase], finding: CaseFinding) -> Iterator[Table]:
    teams = list(map(attrgetter("team"), team_cases))
    organs = {"": "mean"} | {f"_{organ.name}": organ.title for organ in finding.organs}
    for metric in metrics_in(finding.scores):
        columns = [Column("team", teams, is_text=True)]
        for suffix, title in organs.items():
            name = metric.name + suffix
            if any(name in case.scores for case in team_cases):
                scores = [case.scores.get(name) for case in team_cases]
                cells = map(partial(metric_cell, metric, exact=True), scores)
                columns.append(Column(title, cells))
        caption = f"{metric.heading} of each team and organ"
        yield table_of(caption, columns, key=metric_key(metric))
