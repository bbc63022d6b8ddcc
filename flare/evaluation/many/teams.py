"""Finds what teams have submitted, and says how each fared."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from flare.answers.tables import MOST_BYTES
from flare.challenge.formats import suffix_of
from flare.challenge.rules import Challenge
from flare.common.errors import FlareError, InputError
from flare.common.executor import FAULTS
from flare.common.files import is_file, is_folder, remove_tree
from flare.common.text import count, listing, safe, why
from flare.evaluation.plan import Plan
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.find import ARCHIVE_SUFFIXES, find_references
from flare.evaluation.submission.unpack import unpack_zip
from flare.results.archives_csv import EXPLAINED, Flag, Refusal, replace_rows
from flare.results.metrics_json import METRICS_JSON
from flare.results.team_folder import REMEDY, confusable, is_measured, name_problem

if TYPE_CHECKING:
    import pandas as pd

UNPACKED = ".unpacked"
"""Folder in RESULTS for what was in zip files, while it is scored."""

PAUSE_S = 1.0
"""Least time between two writings of the tables of teams, which read all rows, too."""

_ZIP = ".zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a team has submitted."""

    team: str
    path: Path
    """Of a folder, or of a zip file."""
    problem: InputError | None = None
    """Why it cannot even be opened."""


def find_submissions(
    folder: Path, teams_with_results: Collection[str] = ()
) -> tuple[Submission, ...]:
    """All submissions, in the order of the teams' names.

    The folder has a folder, or a zip file, for each team; hidden ones are nobody's.
    Teams in `teams_with_results` have results in the output already. An InputError is
    raised if there is no such folder, or no team in it, or something else than folders
    and zip files.
    """
    entries = _visible_entries(folder)
    label_maps = [e.name for e in entries if suffix_of(e.name) and not is_folder(e)]
    if label_maps:
        raise InputError(
            f"{safe(folder)}: label maps lie in it ({listing(label_maps)}), not teams",
            _REMEDY,
        )
    paths_by_team = _paths_by_team(entries)
    if not paths_by_team:
        raise InputError(
            f"{safe(folder)}: neither a folder nor a zip file is in it", _REMEDY
        )
    similar_names = confusable(sorted(paths_by_team), teams_with_results)
    submissions = []
    for team, paths in sorted(paths_by_team.items()):
        problem = _problem(team, paths, similar_names.get(team))
        submissions.append(Submission(team=team, path=paths[0], problem=problem))
    return tuple(submissions)


def _visible_entries(folder: Path) -> list[Path]:
    """The files and folders in a folder that are not hidden, sorted."""
    try:
        return sorted(path for path in folder.iterdir() if path.name[0] != ".")
    except OSError as error:
        raise InputError(
            f"{safe(folder)}: it cannot be read as a folder ({why(error)})", _REMEDY
        ) from error


def _paths_by_team(entries: Iterable[Path]) -> Mapping[str, list[Path]]:
    """The folder and the archives of each team, of which it should have one.

    An archive of another kind than zip counts only for a team that has nothing else:
    otherwise it was unpacked beside its folder. A link that leads to no file counts as
    a folder: `_problem` tells the team that it is a link.
    """
    usable_paths: defaultdict[str, list[Path]] = defaultdict(list)
    other_archives: defaultdict[str, list[Path]] = defaultdict(list)
    for entry in entries:
        suffix = suffix_of(entry.name, ARCHIVE_SUFFIXES)
        team = entry.name[: -len(suffix)] if suffix else entry.name
        if is_folder(entry):
            usable_paths[entry.name].append(entry)
        elif suffix == _ZIP:
            usable_paths[team].append(entry)
        elif suffix:
            other_archives[team].append(entry)
        elif entry.is_symlink() and not is_file(entry):
            usable_paths[entry.name].append(entry)
    return other_archives | usable_paths


def most_bytes(ground_truth: Path, rules: Challenge) -> int:
    """The most bytes that the files of a team have when they are not compressed.

    No number type takes more than 16 bytes for a voxel; a header takes little.
    """
    shapes: list[tuple[int, ...]] = []
    if rules.organs:
        references = find_references(ground_truth, rules)
        shapes = [file.read_grid().shape for file in references]
    answer_bytes = MOST_BYTES * len({answers.file for answers in rules.answers})
    return answer_bytes + sum(16 * math.prod(shape) + 2**20 for shape in shapes)


@contextmanager
def opened_submission(
    submission: Submission,
    results: Path,
    most_bytes: Callable[[], int],
    suffixes: tuple[str, ...],
) -> Iterator[Path]:
    """The folder of what a team has submitted, which a zip file is unpacked into.

    It is refused if its files with these suffixes, which are read, have more than
    `most_bytes` when they are unpacked. A FlareError is raised if it cannot be opened,
    or the team's folder of results cannot be used.
    """
    if submission.problem:
        raise submission.problem
    (results / FAULTS / f"{submission.team}.txt").unlink(missing_ok=True)
    folder = results / submission.team
    if folder.is_symlink():
        raise InputError(
            f"{safe(folder)}: it is a link", "Remove it, or choose another --output."
        )
    if is_measured(folder):
        raise InputError(
            f"{safe(folder)}: it holds what was measured of the team",
            "Use flare rescore, or another --output.",
        )
    if is_folder(submission.path):
        yield submission.path.resolve()
        return
    unpacked = results.resolve() / UNPACKED / submission.team
    unpacked.mkdir(parents=True)
    try:
        unpack_zip(submission.path, unpacked, most_bytes(), suffixes)
        yield unpacked
    finally:
        remove_tree(unpacked)


@dataclass(kw_only=True, slots=True)
class OpenTeam:
    """A team of which not all cases are scored yet."""

    submission: Submission
    plan: Plan
    attempts: dict[str, Attempt] = field(default_factory=dict)
    """The outcomes of its cases so far, by the names of the cases."""
    pending_cases: int = 0
    """The number of its cases that are still to come back."""
    scored: int = 0
    error: FlareError | None = None
    """Why it cannot be scored to its end."""
    rules_key: str
    """The checksum of the rules that its outcomes are kept under."""
    open_files: ExitStack = field(default_factory=ExitStack)
    """The open files and folders that are let go when the team is done."""


_REMEDY = (
    "Give the folder that has a folder, or a zip file, for each team; flare evaluate"
    " scores the label maps of one."
)


def _problem(
    team: str, paths: Sequence[Path], similar_name: str | None
) -> InputError | None:
    """Why what a team has submitted cannot be opened, or kept under its name."""
    path = paths[0]
    name = safe(path.name)
    if len(paths) > 1:
        names = listing(path.name for path in paths)
        problem = f"{names}: {len(paths)} submissions of one team"
        return InputError(problem, "Keep one of them.")
    if reason := name_problem(team):
        return InputError(f"{safe(team)}: {reason}", REMEDY)
    if similar_name:
        problem = (
            f"{safe(team)}: its name can be taken for that of {safe(similar_name)}"
        )
        return InputError(problem, REMEDY)
    if path.is_symlink() or not (is_folder(path) or is_file(path)):
        problem = f"{name}: it is a link, or no regular file or folder"
        return InputError(problem, "Put the folder or the zip file itself there.")
    if is_file(path) and path.suffix.lower() != _ZIP:
        problem = f"{name}: it is an archive, but no zip file"
        return InputError(problem, "Zip label maps; flare measure runs Docker images.")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTeam:
    """The outcome of a team."""

    team: str
    cases: int = 0
    """Of one that was refused: those whose voxels were looked at."""
    scored: int = 0
    """The number of its cases that were scored now; the others were scored before."""
    means: Mapping[str, float | None] = field(default_factory=dict)
    """By metric; none if it was refused."""
    zeros: tuple[str, ...] = ()
    """Why cases score little or nothing."""
    flags: tuple[str, ...] = ()
    """What organisers should look at: it is in flags.csv alone."""
    refusal: str = ""
    """Why it was refused, with what its author can do."""


def explanation_lines(attempts: Iterable[Attempt]) -> Iterator[str]:
    """Tell which cases have a low score for one cause, in a line for each cause."""
    rows_by_cause: defaultdict[str, list[tuple[str, float, float]]] = defaultdict(list)
    total = 0
    for attempt in attempts:
        total += 1
        explanation = attempt.explanation
        if attempt.score and explanation:
            row = attempt.pair.case, explanation.submitted_dsc, explanation.dsc
            rows_by_cause[explanation.text].append(row)
    for text, rows in rows_by_cause.items():
        cases, dsc, other_dsc = zip(*rows, strict=True)
        yield (
            f"{len(rows)} of {count(total, 'case')}: {text}"
            f" ({listing(cases)}); their DSC is {median(dsc):.2f} at the median, and"
            f" would be about {median(other_dsc):.2f} {EXPLAINED}"
        )


class TeamTables:
    """The tables of refused and of flagged teams in RESULTS, written now and then."""

    def __init__(self, results: Path) -> None:
        self._results = results
        self._rows: dict[str, tuple[list[Refusal], list[Flag]]] = {}
        self._written_at = time.monotonic()

    def replace(self, team: str, refusals: list[Refusal], flags: list[Flag]) -> None:
        """Let these be the rows of a team, in place of those of an earlier run."""
        self._rows[team] = refusals, flags
        if time.monotonic() > self._written_at + PAUSE_S:
            self.write()

    def write(self) -> None:
        """Write the rows that were replaced since this was done last."""
        refusals: list[Refusal] = []
        flags: list[Flag] = []
        for team_refusals, team_flags in self._rows.values():
            refusals += team_refusals
            flags += team_flags
        replace_rows(self._results, Refusal, refusals, self._rows)
        replace_rows(self._results, Flag, flags, self._rows)
        self._rows.clear()
        self._written_at = time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTeams:
    """The outcomes of all teams, in the order of their names."""

    output: Path
    teams: tuple[ScoredTeam, ...]
    not_submitted: tuple[str, ...] = ()
    """Teams that have scores in the output, but submitted nothing that lies there now;
    those that were measured are not among them."""

    def to_frame(self) -> pd.DataFrame:
        """A table with a row for each team and case, and a column for each metric."""
        import pandas as pd

        from flare.results.metrics_reading import read_metrics

        frames = {}
        for outcome in self.teams:
            if not outcome.refusal:
                metrics_json = self.output / outcome.team / METRICS_JSON
                frames[outcome.team] = read_metrics(metrics_json)
        return pd.concat(frames, names=["team"]) if frames else pd.DataFrame()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringProgress:
    """How far a run has come."""

    teams: int
    """Teams with nothing left to do."""
    all_teams: int
    scored: int
    """Cases scored now."""
    kept: int
    """Cases whose outcome was known before."""
    left: int
    """Cases still to be scored; those of teams not looked at are taken to be as many
    as of the others."""
