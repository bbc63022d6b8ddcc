"""Finds what teams have submitted, and says how each fared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from flare.challenge.formats import suffix_of
from flare.common.errors import FlareError, InputError
from flare.common.executor import FAULTS
from flare.common.files import is_file, is_folder, remove_tree
from flare.common.text import count, listing, safe, why
from flare.evaluation.plan import Plan
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.find import ARCHIVE_SUFFIXES
from flare.evaluation.submission.unpack import unpack_zip
from flare.results.metrics_json import METRICS_JSON
from flare.results.team_folder import REMEDY, confusable, is_measured, name_problem

if TYPE_CHECKING:
    import pandas as pd

UNPACKED = ".unpacked"
"""Folder in RESULTS for what was in zip files, while it is scored."""

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
    folder: Path, settled: Collection[str] = ()
) -> tuple[Submission, ...]:
    """All submissions, in the order of the teams' names.

    Hidden files and folders are nobody's.

    Parameters
    ----------
    folder : Path
        With a folder, or a zip file, for each team.
    settled : collection of str
        Names of teams that have results already.

    Raises
    ------
    InputError
        If there is no such folder, or no team in it, or something else than folders
        and zip files.
    """
    try:
        entries = sorted(p for p in folder.iterdir() if p.name[0] != ".")
    except OSError as error:
        raise InputError(
            f"{safe(folder)}: it cannot be read as a folder ({why(error)})", _REMEDY
        ) from error
    maps = listing(e.name for e in entries if suffix_of(e.name) and not is_folder(e))
    if maps:
        raise InputError(
            f"{safe(folder)}: label maps lie in it ({maps}), not teams", _REMEDY
        )
    found: defaultdict[str, list[Path]] = defaultdict(list)
    others: defaultdict[str, list[Path]] = defaultdict(list)
    for entry in entries:
        suffix = suffix_of(entry.name, ARCHIVE_SUFFIXES)
        if is_folder(entry) or (entry.is_symlink() and not (is_file(entry) or suffix)):
            found[entry.name].append(entry)
        elif suffix:
            kind = found if suffix == _ZIP else others
            kind[entry.name[: -len(suffix)]].append(entry)
    # Of a team that has nothing else: otherwise it was unpacked beside its folder.
    found = others | found
    if not found:
        raise InputError(
            f"{safe(folder)}: neither a folder nor a zip file is in it", _REMEDY
        )
    alike = confusable(sorted(found), settled)
    return tuple(
        Submission(
            team=team, path=paths[0], problem=_problem(team, paths, alike.get(team))
        )
        for team, paths in sorted(found.items())
    )


@contextmanager
def opened(
    submission: Submission, results: Path, most_bytes: Callable[[], int]
) -> Iterator[Path]:
    """The folder of what a team has submitted, which a zip file is unpacked into.

    It is refused if it has more than `most_bytes` when it is unpacked.

    Raises
    ------
    FlareError
        If it cannot be opened, or the team's folder of results cannot be used.
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
        unpack_zip(submission.path, unpacked, most_bytes())
        yield unpacked
    finally:
        remove_tree(unpacked)


@dataclass(kw_only=True, slots=True)
class OpenTeam:
    """A team of which not all cases are scored yet."""

    submission: Submission
    plan: Plan
    known: dict[str, Attempt] = field(default_factory=dict)
    """The outcomes of its cases so far."""
    left: int = 0
    """So many of its cases are still to come back."""
    scored: int = 0
    error: FlareError | None = None
    """Why it cannot be scored to its end."""
    rules: str
    """`rules_key`."""
    stack: ExitStack = field(default_factory=ExitStack)
    """What is to be let go when the team is done."""


_REMEDY = (
    "Give the folder that has a folder, or a zip file, for each team; flare evaluate"
    " scores the label maps of one."
)


def _problem(team: str, paths: Sequence[Path], alike: str | None) -> InputError | None:
    """Why what a team has submitted cannot be opened, or kept under its name."""
    path, *others = paths
    name = safe(path.name)
    if others:
        names = listing(each.name for each in paths)
        problem = f"{names}: {len(paths)} submissions of one team"
        return InputError(problem, "Keep one of them.")
    if reason := name_problem(team):
        return InputError(f"{safe(team)}: {reason}", REMEDY)
    if alike:
        problem = f"{safe(team)}: its name can be taken for that of {safe(alike)}"
        return InputError(problem, REMEDY)
    if path.is_symlink() or not (is_folder(path) or is_file(path)):
        problem = f"{name}: it is a link, or no regular file or folder"
        return InputError(problem, "Put the folder or the zip file itself there.")
    if is_file(path) and path.suffix.lower() != _ZIP:
        problem = f"{name}: it is an archive, but no zip file"
        return InputError(problem, "Unpack it into a folder, or make a zip file of it.")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTeam:
    """The outcome of a team."""

    team: str
    cases: int = 0
    """Of one that was refused: those whose voxels were looked at."""
    scored: int = 0
    """So many of its cases were scored now; the others were scored before."""
    means: Mapping[str, float] = field(default_factory=dict)
    """By metric; none if it was refused."""
    zeros: tuple[str, ...] = ()
    """Why cases score little or nothing."""
    flags: tuple[str, ...] = ()
    """What organisers should look at: it is in flags.csv alone."""
    refusal: str = ""
    """Why it was refused, with what its author can do."""


def mirrored_lines(attempts: Iterable[Attempt]) -> Iterator[str]:
    """Which cases look mirrored, a line for each way."""
    ways: defaultdict[str, list[tuple[str, float, float]]] = defaultdict(list)
    total = 0
    for attempt in attempts:
        total += 1
        if attempt.score and (found := attempt.mirrored):
            row = attempt.pair.case, attempt.score.dsc, found.dsc
            ways[found.axes].append(row)
    for axes, rows in ways.items():
        names, dsc, better = zip(*rows, strict=True)
        yield (
            f"{len(rows)} of {count(total, 'case')} look mirrored {axes}"
            f" ({listing(names)}): their DSC is {median(dsc):.2f} at the median, and"
            f" would be {median(better):.2f} the other way round"
        )


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

        scored = [found.team for found in self.teams if not found.refusal]
        frames = {t: read_metrics(self.output / t / METRICS_JSON) for t in scored}
        return pd.concat(frames, names=["team"]) if frames else pd.DataFrame()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run has come."""

    teams: int
    """Of which nothing is left to do."""
    all_teams: int
    scored: int
    """Cases scored now."""
    kept: int
    """Cases of which the outcome was known."""
    left: int
    """Cases still to be scored; those of teams not looked at are taken to be as many
    as of the others."""
