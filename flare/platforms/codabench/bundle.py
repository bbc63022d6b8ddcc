"""Writes the bundle of a competition: settings, pages, scoring program, references."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from operator import attrgetter
from pathlib import Path
from string import Template
from typing import Literal

from flare.challenge.metrics import METRICS
from flare.challenge.reading import challenge_names, challenge_summary, read_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import unwritable
from flare.common.options import challenge_option, option, positive
from flare.common.schema import dump
from flare.common.text import printable, safe
from flare.evaluation.answers import answer_reference_files
from flare.evaluation.check import check_references
from flare.evaluation.errors import UploadError
from flare.evaluation.metrics.kernel import kernel_problem
from flare.evaluation.plan import prepare
from flare.evaluation.scoring.case import attempt_case
from flare.evaluation.submission.find import Folder, LabelMapFile, find_references
from flare.platforms.board import files_text, key_of
from flare.platforms.codabench.competition import (
    COMPETITION_YAML,
    SETTINGS_JSON,
    Leaderboard,
    board_metrics,
    leaderboard_for,
)
from flare.platforms.codabench.packages import program_files

TEMPLATE = Path(__file__).with_name("template")
"""The files of a bundle as they are before a challenge fills them in."""

PROGRAM, REFERENCES = "scoring_program.zip", "reference_data.zip"
"""Folders would do, too; but the site zips those of all bundles into one place."""

QUOTA_BYTES, LARGEST_BYTES = 15 * 10**9, 10**9
"""An organiser's room on the site; and the largest upload, as larger ones may hang."""

CPUS, START_S, PLAIN_FACTOR = 2, 2.0, 10
"""Of an evaluation on the site, as far as it is known: CPUs, the time beside that of
cases, and how many times longer they take without the kernel."""

OWN_SHARE = 0.9
"""Of the phase's limit, after which the scoring program stops itself: that of the site
often does not end a run, and tells the participant nothing if it does."""

BY_HAND = """
By hand, in the bundle or in the site's editor:
- terms.md: your terms
- logo.png: your logo
- competition.yaml: the dates of the phase, and how often people may submit
- who may take part, whom they can ask, and the queue, if you have one of your own"""

LAST = (
    "The board shows the last submission of each, not the best: to the site, a score"
    " that is left out is the best. Keep Force_Best out of competition.yaml."
)

NO_KERNEL = (
    "It has no compiled kernel, and counts by NumPy, more slowly. To have one, run this"
    " on Linux with a C compiler."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOptions:
    """The parts of a bundle."""

    challenge: str = challenge_option()
    ground_truth: Path = option("Folder of the reference labels.", metavar="DIR")
    output: Path = option("Write the bundle into this file.", metavar="FILE.zip")
    title: str = option(
        "Title (default: the challenge's name).", default="", metavar="TEXT"
    )
    start: str = option(
        "First day, in UTC (default: today).", default="", metavar="YYYY-MM-DD"
    )
    end: str = option(
        "The day after the last (default: none).", default="", metavar="YYYY-MM-DD"
    )
    image: str = option(
        "Score in this image: Docker's python, with the version in its tag.",
        default="python:3.13-slim",
        metavar="NAME",
    )
    time_limit_s: int = option(
        "Time limit of the phase (default: 600 s, the most on the site's own queue).",
        default=600,
        parse=positive,
        metavar="S",
    )
    page: Literal["cases", "means"] = option(
        "Show a participant the scores of each case, or means alone: everybody who"
        " knows the address of such a page can read it (default: cases).",
        default="cases",
    )

    def __post_init__(self) -> None:
        """Look at the dates and the version of Python."""
        for day in filter(None, (self.start, self.end)):
            try:
                date.fromisoformat(day)
            except ValueError as error:
                raise ValueError(f"{day!r} is no date, such as 2026-05-31") from error
        day = max(self.first_day, _today())
        if self.end and self.end <= day:
            raise ValueError(f"--end {self.end} is not after {day}")
        if not self.python:
            raise ValueError(f"--image {self.image!r} is not like python:3.13-slim")

    @property
    def first_day(self) -> str:
        """The day on which the phase starts."""
        return self.start or _today()

    @property
    def python(self) -> str:
        """The version of Python in the image, if that takes most wheels for Linux."""
        match = re.search(r"\bpython:(3\.\d+)(?!.*alpine)", self.image)
        return match[1] if match else ""


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def write_bundle(options: BundleOptions) -> tuple[str, ...]:
    """Write the bundle, whole or not at all, and return what to tell its organiser.

    Errors are those of `read_challenge` and `check_references`. A UploadError is raised
    if it would not work, and an OutputError if it cannot be written.
    """
    challenge = read_challenge(options.challenge)
    text = check_references(options.ground_truth, challenge)
    label_maps: tuple[LabelMapFile, ...] = ()
    if challenge.organs:
        label_maps = find_references(options.ground_truth, challenge)
    tables = answer_reference_files(options.ground_truth, challenge)
    references = {table.name: table for _, table in tables}
    references |= {label_map.name: label_map.path for label_map in label_maps}
    board = leaderboard_for(challenge, len(label_maps))
    program, is_plain = program_files(challenge, options.python)
    program |= _own_files(options, challenge, board, len(label_maps))
    seconds = _expected_s(label_maps, challenge, is_plain=is_plain)
    _check(options, sum(file.stat().st_size for file in references.values()), seconds)
    name = safe(options.output.name)
    part = options.output.with_name(f".{options.output.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w") as bundle:
            for file, content in _texts(options, challenge, board).items():
                bundle.writestr(file, content)
            _nest(bundle, PROGRAM, program.items())
            contents = ((file, path.read_bytes()) for file, path in references.items())
            _nest(bundle, REFERENCES, contents)
            program_mb = bundle.getinfo(PROGRAM).file_size / 1e6
        if (size := part.stat().st_size) > LARGEST_BYTES:
            problem = f"it would have {size / 1e9:.1f} GB; above 1 GB, uploads may hang"
            raise UploadError(f"{name}: {problem}", "Give references as .nii.gz.")
        part.replace(options.output)
    except OSError as error:
        raise unwritable(options.output, error) from error
    finally:
        with suppress(OSError):  # it is not there, nor may be its folder
            part.unlink()
    return (
        f"{text}\n\nWrote {printable(options.output)}.",
        f"Each submission fetches the scoring program, {program_mb:.0f} MB, and is"
        f" evaluated in about {seconds:.0f} s of {options.time_limit_s} s.",
        *([LAST] if challenge.gaps_text else []),
        *([NO_KERNEL] if is_plain and challenge.organs else []),
        BY_HAND,
    )


def _expected_s(
    references: tuple[LabelMapFile, ...], challenge: Challenge, *, is_plain: bool
) -> float:
    """The time of an evaluation, by that of the largest reference as a prediction."""
    if not references:
        return START_S
    pairs = prepare(Folder(files=references), references, challenge).pairs
    largest = max(pairs, key=attrgetter("voxels"))
    seconds = attempt_case(largest, challenge=challenge, check_only=False).seconds
    cases = sum(pair.voxels for pair in pairs) / largest.voxels
    is_slower = is_plain and not kernel_problem()  # than here
    return START_S + seconds * cases / CPUS * (PLAIN_FACTOR if is_slower else 1)


def _check(options: BundleOptions, size: int, seconds: float) -> None:
    """Refuse references and evaluations that the site has no room or time for."""
    name, limit_s = safe(options.output.name), options.time_limit_s
    if size > QUOTA_BYTES:
        problem = f"its references have {size / 1e9:.1f} GB, and the site gives 15 GB"
        raise UploadError(f"{name}: {problem}", "Take fewer cases.")
    if seconds > limit_s / 2:
        problem = f"an evaluation takes about {seconds:.0f} s, more than half of"
        remedy = "Take fewer cases, or a queue of your own and its --time-limit."
        raise UploadError(f"{name}: {problem} {limit_s} s", remedy)


def _texts(
    options: BundleOptions, challenge: Challenge, board: Leaderboard
) -> dict[str, bytes]:
    """The files of the template, filled in."""
    title = printable(options.title or challenge.name)
    definitions = []
    for name in challenge.metrics if challenge.organs else ():
        definitions.append(f"{METRICS[name].title} is {METRICS[name].definition}.\n")
    ranking = ", which ranks the\nteams on every case first."
    if challenge.scheme_text:
        ranking = f". {challenge.scheme_text}"
    values = {
        "title": title,
        "files": files_text(challenge),
        "first": board.ordering[0].title,
        "ranking": ranking,
        "definitions": "\n".join(definitions),
        "summary": challenge_summary(challenge),
    }
    files = {file.name: file.read_bytes() for file in sorted(TEMPLATE.iterdir())}
    for name in ("overview.md", "rules.md"):
        files[name] = Template(files[name].decode()).substitute(values).encode()
    settings = json.loads(files[COMPETITION_YAML])
    settings |= {"title": title, "docker_image": options.image}
    settings["phases"][0] |= {
        "start": options.first_day,
        "end": options.end or None,
        "execution_time_limit": options.time_limit_s,
    }
    settings["leaderboards"][0] |= dump(board)
    # JSON is YAML; letters stay as they are, as YAML has no pairs of surrogates.
    text = json.dumps(settings, indent=2, ensure_ascii=False)
    return files | {COMPETITION_YAML: text.encode()}


def _own_files(
    options: BundleOptions, challenge: Challenge, board: Leaderboard, cases: int
) -> dict[str, bytes]:
    """The program that the site runs, its settings, and an own challenge file."""
    files = {
        "metadata.yaml": b"command: python3 /app/program/score.py\n",
        "score.py": Path(__file__).with_name("score.py").read_bytes(),
    }
    name = options.challenge
    if name not in challenge_names():
        name = Path(name).name
        files[name] = Path(options.challenge).read_bytes()
    columns = []
    metrics = board_metrics(challenge, cases)
    for column, metric in zip(board.columns, metrics, strict=True):
        fewest_cases = 1 if metric.is_told(1) else 2
        columns.append((column.key, key_of(metric), column.precision, fewest_cases))
    settings = {
        "challenge": name,
        "columns": columns,
        "may_lack": bool(challenge.gaps_text),
        "page": options.page,
        "time_limit_s": OWN_SHARE * options.time_limit_s,
    }
    return files | {SETTINGS_JSON: json.dumps(settings, indent=2).encode()}


def _nest(
    bundle: zipfile.ZipFile, name: str, files: Iterable[tuple[str, bytes]]
) -> None:
    with (
        bundle.open(name, "w", force_zip64=True) as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path, content in files:
            archive.writestr(path, content)
