"""Makes the page of a case by all teams: its worst slice by each of them, best first.

Label maps are read one team after the other; of each, what its picture needs is kept
packed, until the slice is chosen that all pictures show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from zlib_ng import zlib_ng

from flare.challenge.metrics import METRICS, metrics_in
from flare.common.errors import InputError, SubmissionError
from flare.common.files import file_names
from flare.common.text import count, listing, nearest, safe
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.many.teams import find_submissions
from flare.evaluation.metrics.arrays import Labels, ReusedMemory
from flare.evaluation.submission.unpack import label_maps_folder
from flare.reports.cases.drawing import Picture
from flare.reports.cases.findings import CaseFinding, look_at, worst_slices
from flare.reports.cases.mending import find_mending
from flare.reports.cases.options import CaseOptions, OnDrawn
from flare.reports.cases.pictures import axial_picture
from flare.reports.cases.sources import (
    CaseFiles,
    check_image,
    check_scores,
    ct_backgrounds,
    find_case_files,
    read_case,
)
from flare.reports.cases.words import faults, scores_text
from flare.reports.evaluation import ORGANISERS_NOTE
from flare.reports.model import (
    Cell,
    Legend,
    Page,
    Part,
    Section,
    Words,
    metric_key,
    metric_shade,
    table,
)
from flare.reports.render.html import macro_html, page_html, template_text
from flare.reports.scores import challenge_title, metric_cell
from flare.results.errors import MetricsFileError, RankingError
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import EvaluationFile, read_evaluation
from flare.results.team_folder import PREDICTIONS, is_team

FOLDER = "all-teams"
"""The folder of these pages, below that of a ranking."""

SLICE_NOTE = (
    "Every wrong voxel weighs by its distance from the surface, of which up to 10 mm"
    " count, and the weights of all teams are added up. Slices are counted from the"
    " feet; the patient's right is on the left."
)

_REMEDY = "Give the predictions that the teams were scored with."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The finding of a team's label map, and its voxels, packed."""

    finding: CaseFinding
    """The finding without any voxels."""
    shape: tuple[int, ...]
    reference: bytes
    prediction: bytes
    words: str
    grid: Grid
    files: CaseFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class _TeamCase:
    """A case by a team."""

    team: str
    scores: Mapping[str, float]
    """The scores by metric, such as ``dsc`` and ``dsc_liver``; empty if it has none."""
    absence: str = ""
    """Why there is no picture."""
    look: _Look | None = None

    @property
    def place(self) -> tuple[bool, float, float, str]:
        """The key that sorts the best first, and last those without a picture."""
        dsc, nsd = self.scores.get("dsc", 0.0), self.scores.get("nsd", 0.0)
        return bool(self.absence), -dsc, -nsd, self.team


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    """A team on the page."""

    team: str
    scores: str
    picture: Picture | None
    words: str
    chips: Sequence[tuple[str, str]]
    """Organs with their DSC, the lowest first, each behind the class of its shade."""


def team_case_links(results: Path, cases: Sequence[str]) -> dict[str, str]:
    """The files of the pages of some cases, below the report.

    A RankingError is raised if no team has results of a case.
    """
    evaluations = _evaluations(results)
    for case in cases:
        _check_case(results, evaluations, case)
    names = file_names(cases)
    return {case: f"{FOLDER}/{names[case]}.html" for case in cases}


def all_teams_page(
    results: Path,
    case: str,
    options: CaseOptions,
    on_drawn: OnDrawn | None = None,
    *,
    has_ranking: bool,
) -> Page:
    """The page of a case by all teams that have results.

    `on_drawn` is called after each team; the page leads to the ranking beside it if
    `has_ranking`.

    Raises
    ------
    RankingError, MetricsFileError
        If no team has results, or a label map is not the one that was scored.
    OrganiserError, SubmissionError, HostError
        If a file cannot be read, or no team has a prediction of the case.
    """
    evaluations = _evaluations(results)
    _check_case(results, evaluations, case)
    folders = _prediction_folders(results, options.predictions, evaluations)
    memory, team_cases = ReusedMemory(), []
    for number, (team, evaluation) in enumerate(evaluations.items(), start=1):
        metrics = results / team / METRICS_JSON
        team_options = None
        if team in folders:
            team_options = replace(options, predictions=folders[team])
        team_case = _team_case(metrics, evaluation, case, team_options, memory)
        team_cases.append(team_case)
        if on_drawn:
            on_drawn(number, len(evaluations), team)
    team_cases.sort(key=lambda team_case: team_case.place)
    looks = [team_case.look for team_case in team_cases if team_case.look]
    if not looks:
        place = options.predictions or results
        problem = f"{safe(place)}: no team has a prediction of case {safe(case)}"
        raise InputError(problem, _REMEDY)
    _check_rules(looks)
    lead: list[Part] = [Words(_summary(team_cases))]
    if has_ranking:
        lead.insert(0, macro_html("case.html", "to_ranking"))
    return Page(
        title=f"Case {case}: all teams",
        kicker=challenge_title(next(iter(evaluations.values())).evaluation),
        audience_note=ORGANISERS_NOTE,
        lead=lead,
        sections=_sections(team_cases, looks, case),
    )


def all_teams_html(page: Page) -> str:
    """The page of a case by all teams, as HTML."""
    return page_html(page, style=template_text("case.css"))


def _check_case(
    results: Path, evaluations: Mapping[str, EvaluationFile], case: str
) -> None:
    """Refuse a case that no team has."""
    cases: dict[str, None] = {}
    for evaluation in evaluations.values():
        cases |= dict.fromkeys(evaluation.cases)
    if case not in cases:
        problem = f"no team has a case {safe(case)}{nearest(case, cases)}"
        raise RankingError(str(results), problem, "Name a case of the ranking.")


def _evaluations(results: Path) -> dict[str, EvaluationFile]:
    """The metrics.json of each team, by the names of the teams."""
    if is_team(results) or not results.is_dir():
        problem = "it is not a folder with a folder for each team"
        raise RankingError(str(results), problem, "Give the results of all teams.")
    evaluations = {}
    for file in sorted(results.glob(f"[!.]*/{METRICS_JSON}")):
        evaluations[file.parent.name] = read_evaluation(file, (), RankingError)
    if not evaluations:
        problem = f"no folder in it has a {METRICS_JSON}"
        raise RankingError(str(results), problem, "Give the results of all teams.")
    return evaluations


def _prediction_folders(
    results: Path, submissions: Path | None, teams: Iterable[str]
) -> dict[str, Path]:
    """The folder or the zip of the predictions of each team that has any."""
    folders = {}
    if submissions is None:
        for team in teams:
            if (results / team / PREDICTIONS).is_dir():
                folders[team] = results / team / PREDICTIONS
        return folders
    for submission in find_submissions(submissions):
        if submission.team in teams:
            if submission.problem:
                raise submission.problem
            folders[submission.team] = submission.path
    return folders


def _team_case(
    metrics: Path,
    evaluation: EvaluationFile,
    case: str,
    options: CaseOptions | None,
    memory: ReusedMemory,
) -> _TeamCase:
    """A case of the team of a metrics.json.

    The predictions of `options` are those of the team; None if it has none.
    """
    team, scores = metrics.parent.name, {}
    for (name, metric), value in evaluation.values.items():
        if name == case:
            scores[metric] = value
    absence, look = "", None
    if case not in evaluation.cases:
        absence = f"Not among the cases of its {METRICS_JSON}."
    elif case in evaluation.failed:
        absence = f"Not scored: {evaluation.failed[case]}"
    else:
        try:
            look = _look(metrics, evaluation, case, options, scores, memory)
        except SubmissionError as error:
            raise InputError(f"{safe(team)}: {error.finding}", error.remedy) from error
        if look is None:
            absence = "Its prediction of this case is not there."
    return _TeamCase(team=team, scores=scores, absence=absence, look=look)


def _look(
    metrics: Path,
    evaluation: EvaluationFile,
    case: str,
    options: CaseOptions | None,
    scores: Mapping[str, float],
    memory: ReusedMemory,
) -> _Look | None:
    """Look at the label map of a team; None if it is not there."""
    if options is None:
        return None
    with label_maps_folder(options.predictions) as folder:
        files = find_case_files(metrics, evaluation, options, folder, ())
        if case not in files.pairs:
            return None
        check_scores(metrics, evaluation, files.challenge, case)
        return _look_at_files(files, case, scores, memory)


def _look_at_files(
    files: CaseFiles, case: str, scores: Mapping[str, float], memory: ReusedMemory
) -> _Look:
    """Look at a label map, and keep what its picture needs."""
    reference, prediction = read_case(files, case, scores, memory)
    mending = find_mending(files.pairs[case], files.challenge, scores)
    finding = look_at(reference, prediction, files.challenge, scores, mending)
    lines = faults(finding)
    words = lines[0]
    if len(lines) > 1:
        words += f" (and {len(lines) - 1} more)"
    nothing = np.zeros((0, 0, 0), dtype=finding.reference.dtype)
    organs = tuple(replace(organ, surfaces=None) for organ in finding.organs)
    slim = replace(
        finding, reference=nothing, prediction=nothing, organs=organs, mending=None
    )
    return _Look(
        finding=slim,
        shape=finding.reference.shape,
        reference=_packed(finding.reference),
        prediction=_packed(finding.prediction),
        words=words,
        grid=reference.grid,
        files=files,
    )


def _packed(labels: Labels) -> bytes:
    """The voxels of a label map, in a hundredth of their memory."""
    return zlib_ng.compress(labels.tobytes(), 1)


def _unpacked(packed: bytes, shape: tuple[int, ...]) -> Labels:
    return np.frombuffer(zlib_ng.decompress(packed), dtype=np.uint8).reshape(shape)


def _check_rules(looks: Sequence[_Look]) -> None:
    """Refuse teams that were scored in other organs, or by other metrics."""
    challenge = looks[0].files.challenge
    for look in looks[1:]:
        rules = look.files.challenge
        if (rules.organs, rules.metrics) != (challenge.organs, challenge.metrics):
            problem = f"other organs or metrics than in {looks[0].files.metrics}"
            remedy = "Score all teams by the same rules: flare rescore."
            raise MetricsFileError(str(look.files.metrics), problem, remedy)


# --- The same slice by every team -------------------------------------------------


def _shared_finding(looks: Sequence[_Look]) -> CaseFinding:
    """The finding of the first team, at the slice and the part that all have."""
    finding, parts, weights = looks[0].finding, [], []
    for axis, size in enumerate(looks[0].shape):
        start, end, axis_weights = size, 0, np.zeros(size)
        for look in looks:
            part = look.finding.field.box[axis]
            start, end = min(start, part.start), max(end, part.stop)
            axis_weights += look.finding.weights[axis]
        parts.append(slice(start, end))
        weights.append(axis_weights)
    z, y, x = parts
    reference = _unpacked(looks[0].reference, looks[0].shape)
    return replace(
        finding,
        reference=reference,
        field=replace(finding.field, box=(z, y, x)),
        worst=worst_slices(weights, reference),
    )


def _sections(
    team_cases: Sequence[_TeamCase], looks: Sequence[_Look], case: str
) -> list[Section]:
    """The pictures of all teams, and their values."""
    finding = _shared_finding(looks)
    background = _background(looks[0], finding, case)
    layers = ["reference", "prediction", "errors", "names"]
    if background:
        layers.append("CT")
    cards = list(_cards(team_cases, finding, background))
    slice_words = (
        f"Axial slice {finding.worst[0] + 1} of {looks[0].shape[0]}, in which the"
        " errors of all teams together weigh the most."
    )
    shown: list[Part] = [
        Words(slice_words),
        macro_html("case.html", "teams", cards=cards, layers=layers),
        Words(SLICE_NOTE, "note"),
    ]
    tables = list(_tables(team_cases, finding))
    return [
        Section("teams", "Teams", "The same slice by every team", shown),
        Section("values", "Values", "Values of the case", tables),
    ]


def _background(look: _Look, finding: CaseFinding, case: str) -> str:
    """The CT of the slice as a data URI; empty if no CTs were given."""
    files = look.files
    if not files.options.images:
        return ""
    check_image(files.options.images, files.images, case)
    return ct_backgrounds(files.images[case], look.grid, files.challenge, finding)[0]


def _cards(
    team_cases: Sequence[_TeamCase], finding: CaseFinding, background: str
) -> Iterator[_Card]:
    """A card for each team; those with a picture have the same slice."""
    dsc = METRICS["dsc"]
    for number, team_case in enumerate(team_cases, start=1):
        picture, words, chips = None, team_case.absence, []
        if look := team_case.look:
            words = look.words
            prediction = _unpacked(look.prediction, look.shape)
            own_finding = replace(finding, prediction=prediction)
            picture = axial_picture(own_finding, f"team-{number}", background)
            organs = sorted(look.finding.organs, key=lambda organ: organ.scores["dsc"])
            for organ in organs:
                value = organ.scores["dsc"]
                shade = metric_shade(dsc, value)
                chips.append((shade, f"{organ.title} {value:.2f}"))
        yield _Card(
            team=team_case.team,
            scores=scores_text(team_case.scores),
            picture=picture,
            words=words,
            chips=chips,
        )


def _summary(team_cases: Sequence[_TeamCase]) -> str:
    """How many teams there are, between which values, and who has no picture."""
    pictured = [team_case for team_case in team_cases if team_case.look]
    ends = []
    for team_case in (pictured[0], pictured[-1])[: len(pictured)]:
        ends.append(f"{safe(team_case.team)} (DSC {team_case.scores['dsc']:.3f})")
    words = f"{count(len(team_cases), 'team')}, best first: {' to '.join(ends)}."
    without = [team_case.team for team_case in team_cases if team_case.absence]
    if without:
        words += f" No picture of {listing(without)}."
    return words


def _tables(team_cases: Sequence[_TeamCase], finding: CaseFinding) -> Iterator[Part]:
    """A table of teams and organs for each metric."""
    yield Legend(metric_key(METRICS["dsc"]))
    titles = [organ.title for organ in finding.organs]
    for metric in metrics_in(finding.scores):
        names = [metric.name]
        names += (f"{metric.name}_{organ.name}" for organ in finding.organs)
        rows: list[list[str | Cell]] = []
        for team_case in team_cases:
            row: list[str | Cell] = [team_case.team]
            for name in names:
                value = team_case.scores.get(name)
                row.append(metric_cell(metric, value, exact=True))
            rows.append(row)
        caption = f"{metric.title_with_unit} of each team and organ"
        yield table(caption, ("team", "mean", *titles), rows, words=("team",))
