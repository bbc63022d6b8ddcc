"""Writes the bundle of a competition: settings, pages, scoring program, references."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from flare.challenge.metrics import METRICS
from flare.challenge.reading import challenge_names, challenge_summary, read_challenge
from flare.challenge.rules import Challenge
from flare.common.environment import source_commit
from flare.common.errors import unwritable
from flare.common.options import challenge_option, option, positive
from flare.common.schema import dump
from flare.common.text import printable
from flare.evaluation.answers import answer_reference_files
from flare.evaluation.check import check_references
from flare.evaluation.submission.find import find_references
from flare.platforms.board import files_text, key_of
from flare.platforms.codabench.competition import (
    COMPETITION_YAML,
    REFERENCE_DATA,
    SCORING_PROGRAM,
    Competition,
    Page,
    Phase,
    Task,
    board_metrics,
    leaderboard_for,
)
from flare.platforms.codabench.packages import (
    kernel_file,
    kit_files,
    package_names,
    wheel_files,
)

File = tuple[str, bytes]

OWN_SHARE = 0.9
"""Of the phase's limit, after which the scoring program stops itself: that of the site
often does not end a run, and tells the participant nothing if it does."""

LOGO = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mOQj+8GAAGqAQpJeJluAAAA"
    "AElFTkSuQmCC"
)
"""A picture of one pixel: the site takes no competition without a logo."""

TERMS = "The organisers have not written down their terms yet.\n"

OVERVIEW = """# {title}

Submit one zip with {files}

A submission that cannot be scored fails, and its page Detailed results says in one
line what is wrong with it. Each other submission has a page with its scores there.

The board is ordered by {first}, a mean over all cases. That is not the final ranking,
which ranks the teams on every case first.
"""
"""The page for participants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleOptions:
    """What a bundle is made of."""

    challenge: str = challenge_option()
    ground_truth: Path = option("Folder of the reference labels.", metavar="DIR")
    output: Path = option("Write the bundle into this file.", metavar="FILE.zip")
    title: str = option(
        "Title of the competition (default: the challenge's name).",
        default="",
        metavar="TEXT",
    )
    start: str = option(
        "First day of the phase, in UTC (default: today).",
        default="",
        metavar="YYYY-MM-DD",
    )
    end: str = option(
        "Day at whose beginning it ends (default: it does not).",
        default="",
        metavar="YYYY-MM-DD",
    )
    image: str = option(
        "Image that submissions are scored in: one with Python for linux/amd64, without"
        " an entry point.",
        default="python:3.13-slim",
        metavar="NAME",
    )
    python: str = option(
        "Version of Python in the image, such as 3.13 (default: as its tag says).",
        default="",
        metavar="X.Y",
    )
    time_limit_s: int = option(
        "Time limit of the phase; the site's own queue gives 600 s at most.",
        default=600,
        parse=positive,
        metavar="S",
    )
    page: Literal["cases", "means"] = option(
        "Show a participant the scores of each case, or means alone. The site lets"
        " everybody read this page who knows its address.",
        default="cases",
    )

    def __post_init__(self) -> None:
        """Look at the dates and the version of Python."""
        for day in filter(None, (self.start, self.end)):
            try:
                date.fromisoformat(day)
            except ValueError as error:
                raise ValueError(f"{day!r} is no date, such as 2026-05-31") from error
        if self.end and self.end <= self.first_day:
            raise ValueError(f"--end {self.end} is not after {self.first_day}")
        if not re.fullmatch(r"3\.\d+", self.python_version):
            problem = f"the tag of {self.image} does not say which Python is in it"
            raise ValueError(f"--python: {problem}; give it, such as --python 3.13")

    @property
    def first_day(self) -> str:
        """The day on which the phase starts."""
        return self.start or datetime.now(UTC).date().isoformat()

    @property
    def python_version(self) -> str:
        """The version of Python in the image, if its tag or an option tells it."""
        match = re.search(r"python:(3\.\d+)", self.image)
        return self.python or (match[1] if match else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that was written."""

    file: Path
    program_bytes: int
    """The size of the scoring program, which the site fetches for each submission."""
    references: str
    """How many references there are, and what is in them."""
    is_plain: bool
    """Whether metrics are counted by NumPy, as no kernel is in it."""


def competition_for(challenge: Challenge, options: BundleOptions) -> Competition:
    """The settings of a competition; those that close a trap are all named.

    Participants cannot download what the scoring program writes, and no board of the
    site links to pages of others.
    """
    phase = Phase(
        name="Validation",
        start=options.first_day,
        end=options.end or None,
        execution_time_limit=options.time_limit_s,
        hide_prediction_output=True,
        hide_score_output=True,
    )
    return Competition(
        title=printable(options.title or challenge.name),
        docker_image=options.image,
        enable_detailed_results=True,
        show_detailed_results_in_leaderboard=False,
        can_participants_make_submissions_public=False,
        pages=(
            Page(title="Overview", file="overview.md"),
            Page(title="Rules", file="rules.md"),
        ),
        tasks=(Task(name=printable(challenge.name)),),
        phases=(phase,),
        leaderboards=(leaderboard_for(challenge),),
    )


def write_bundle(options: BundleOptions) -> Bundle:
    """Write the bundle, whole or not at all.

    Errors are those of `read_challenge` and `check_references`. A BundleError is raised
    if it would not work, and an OutputError if it cannot be written.
    """
    challenge = read_challenge(options.challenge)
    references = check_references(options.ground_truth, challenge)
    reference_files = list(_reference_files(options.ground_truth, challenge))
    competition = competition_for(challenge, options)
    kernel = kernel_file() if challenge.organs else None
    is_plain = bool(challenge.organs) and not kernel
    names = package_names(challenge, is_plain=is_plain)
    program: list[File] = [*_program_files(options, challenge, competition)]
    program += [*kit_files(), *wheel_files(names, options.python_version)]
    program += [kernel] if kernel else []
    part = options.output.with_name(f".{options.output.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w") as bundle:
            for name, content in _texts(challenge, competition):
                _add(bundle, name, content)
            _nest(bundle, SCORING_PROGRAM, partial(_add_all, files=program))
            _nest(bundle, REFERENCE_DATA, partial(_add_files, files=reference_files))
            program_bytes = bundle.getinfo(SCORING_PROGRAM).file_size
        part.replace(options.output)
    except OSError as error:
        raise unwritable(options.output, error) from error
    finally:
        part.unlink(missing_ok=True)
    return Bundle(
        file=options.output,
        program_bytes=program_bytes,
        references=references,
        is_plain=is_plain,
    )


def _reference_files(
    ground_truth: Path, challenge: Challenge
) -> Iterator[tuple[str, Path]]:
    """The files with references, and nothing else that lies beside them."""
    if challenge.organs:
        for reference in find_references(ground_truth, challenge):
            yield reference.name, reference.path
    for file in dict.fromkeys(
        file for _, file in answer_reference_files(ground_truth, challenge)
    ):
        yield file.name, file


def _texts(challenge: Challenge, competition: Competition) -> Iterator[File]:
    """The settings, the pages and what else the site asks for."""
    # JSON is YAML; letters stay as they are, as YAML has no pairs of surrogates.
    settings = json.dumps(dump(competition), indent=2, ensure_ascii=False)
    yield COMPETITION_YAML, f"{settings}\n".encode()
    yield competition.image, LOGO
    yield competition.terms, TERMS.encode()
    overview, rules = competition.pages
    first = competition.leaderboards[0].ordering[0].title
    files = files_text(challenge)
    text = OVERVIEW.format(title=competition.title, files=files, first=first)
    yield overview.file, text.encode()
    definitions = []
    for metric in (METRICS[name] for name in challenge.metrics if challenge.organs):
        definitions.append(f"{metric.title} is {metric.definition}.\n")
    summary = f"```text\n{challenge_summary(challenge)}\n```\n"
    yield rules.file, "\n".join([*definitions, summary]).encode()


def _program_files(
    options: BundleOptions, challenge: Challenge, competition: Competition
) -> Iterator[File]:
    """The program that the site runs, and the settings that it reads."""
    yield "metadata.yaml", b"command: python3 /app/program/score.py\n"
    yield "score.py", Path(__file__).with_name("score.py").read_bytes()
    name = options.challenge
    if name not in challenge_names():
        name = Path(name).name
        yield name, Path(options.challenge).read_bytes()
    columns = []
    (board,) = competition.leaderboards
    for column, metric in zip(board.columns, board_metrics(challenge), strict=True):
        value, decimals = key_of(metric), column.precision
        columns.append({"key": column.key, "value": value, "decimals": decimals})
    settings = {
        "challenge": name,
        "columns": columns,
        "commit": source_commit(),
        "page": options.page,
        "time_limit_s": OWN_SHARE * options.time_limit_s,
    }
    yield "settings.json", f"{json.dumps(settings, indent=2)}\n".encode()


# --- The zip ------------------------------------------------------------------------


def _nest(
    bundle: zipfile.ZipFile, name: str, fill: Callable[[zipfile.ZipFile], None]
) -> None:
    """Add a zip to a zip; it is compressed once."""
    info = _info(name, zipfile.ZIP_STORED)
    with (
        bundle.open(info, "w", force_zip64=True) as stream,
        zipfile.ZipFile(stream, "w") as archive,
    ):
        fill(archive)


def _info(name: str, method: int) -> zipfile.ZipInfo:
    """An entry without the time of writing: the same files are the same bytes."""
    info = zipfile.ZipInfo(name)
    info.compress_type, info.external_attr = method, 0o644 << 16
    return info


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(_info(name, zipfile.ZIP_DEFLATED), content)


def _add_all(archive: zipfile.ZipFile, files: Iterable[File]) -> None:
    for name, content in files:
        _add(archive, name, content)


def _add_files(archive: zipfile.ZipFile, files: Iterable[tuple[str, Path]]) -> None:
    """Add files by their paths; what is compressed is stored as it is."""
    for name, path in files:
        is_compressed = path.suffix in (".gz", ".npz")
        method = zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED
        with (
            path.open("rb") as content,
            archive.open(_info(name, method), "w", force_zip64=True) as entry,
        ):
            shutil.copyfileobj(content, entry)
