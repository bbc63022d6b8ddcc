"""Makes the pages of cases, one case at a time, so that memory stays what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flare.common.text import printable, safe
from flare.evaluation.metrics.finder import ReusedMemory
from flare.reports.cases.case_page import (
    Card,
    CaseHead,
    case_html,
    cases_html,
    failed_html,
)
from flare.reports.cases.findings import field_of_view, look_at
from flare.reports.cases.organs import remarks
from flare.reports.cases.pictures import all_surfels, thumbnail, view
from flare.reports.cases.planes import FRONT, PLANES
from flare.reports.cases.sources import (
    CaseFiles,
    Folders,
    ct_backgrounds,
    find_case_files,
    read_case,
)
from flare.reports.scores import scores_of
from flare.results.metrics_reading import EvaluationFile

WORST = 20
"""So many cases get a page if nothing is said."""

OnDrawn = Callable[[int, int, str], None]
"""Called after each page with its number, from 1, the number of pages, and the case."""


FOLDER = "cases"
"""Below the folder of a report."""

LONGEST = 80
"""Characters of a file name, without its extension."""

_TAKEN = {"index", "con", "prn", "aux", "nul"}

_TAKEN |= {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
"""The page of all cases, and names that Windows keeps to itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePages:
    """What is asked for."""

    folders: Folders
    worst: int = WORST
    """How many cases, the hardest first; 0 for all."""
    on_drawn: OnDrawn | None = None


def case_links(found: EvaluationFile, pages: CasePages) -> dict[str, str]:
    """The files of the cases that get a page, the hardest first, below the report."""
    scores = scores_of(found)
    order = [scores.cases[number] for number in scores.worst_first]
    drawn = order[: pages.worst] if pages.worst else order
    return {case: f"{FOLDER}/{file}" for case, file in page_files(drawn).items()}


def case_pages(
    metrics: Path, found: EvaluationFile, pages: CasePages
) -> Iterator[tuple[str, str]]:
    """The pages of the hardest cases, and their index, each with its file.

    Raises
    ------
    MetricsFileError
        If the label maps are not those that were scored.
    OrganiserError, SubmissionError, HostError
        If one cannot be read.
    """
    links = case_links(found, pages)
    cases = tuple(links)
    files = find_case_files(metrics, found, pages.folders, cases)
    memory = ReusedMemory()
    cards = []
    for number, head in enumerate(_places(found, links)):
        html, own = _page(head, found, files, memory)
        yield f"{FOLDER}/{head.file}", html
        cards.append(own)
        if pages.on_drawn:
            pages.on_drawn(number + 1, len(cases), head.case)
    yield (
        f"{FOLDER}/index.html",
        cases_html(_challenge(found), cards, len(found.scores.cases)),
    )


def _challenge(found: EvaluationFile) -> str:
    """What the challenge is called."""
    return printable(str(found.scores.evaluation.challenge or ""))


def _places(found: EvaluationFile, links: Mapping[str, str]) -> Iterator[CaseHead]:
    """Where each page stands."""
    cases = tuple(links)
    names = [file.removeprefix(f"{FOLDER}/") for file in links.values()]
    for number, case in enumerate(cases):
        yield CaseHead(
            challenge=_challenge(found),
            case=case,
            file=names[number],
            dsc=found.scores.values[case, "dsc"],
            nsd=found.scores.values[case, "nsd"],
            before=names[number - 1] if number else "",
            after=names[number + 1] if number + 1 < len(names) else "",
        )


def _page(
    head: CaseHead,
    found: EvaluationFile,
    files: CaseFiles,
    memory: ReusedMemory,
) -> tuple[str, Card]:
    """The page of a case, and its card in the index."""
    case = head.case
    why = found.scores.failed.get(case)
    if why is not None:
        return failed_html(head, why), Card(head=head, words=safe(why))
    values = {m: v for (c, m), v in found.scores.values.items() if c == case}
    maps = read_case(files, case, values, memory)
    seen = look_at(case, *maps, files.challenge, values)
    lines = remarks(seen)
    words = safe(lines[0] if lines else _lowest(found, case))
    if seen.is_blank:
        return case_html(head, seen, []), Card(head=head, words=words)
    surfels = all_surfels(seen)
    images = [view(surfels, plane, seen.spacing) for plane in PLANES]
    lengths = tuple(
        surfels.shape[axis] * seen.spacing[axis] for axis in (FRONT.down, FRONT.right)
    )
    picture = thumbnail(images[PLANES.index(FRONT)], (lengths[0], lengths[1]))
    backgrounds: tuple[str, ...] = ()
    if files.images:
        grid, field = maps[0].grid, field_of_view(seen)
        ct = files.images[case]
        backgrounds = ct_backgrounds(ct, grid, files.challenge, seen, field)
    return case_html(head, seen, images, backgrounds), Card(
        head=head, words=words, thumbnail=picture
    )


def _lowest(found: EvaluationFile, case: str) -> str:
    """What the numbers tell of a case."""
    scores = scores_of(found)
    return scores.lowest_organ(scores.cases.index(case))


def page_files(cases: Sequence[str]) -> dict[str, str]:
    """The file of each case's page, below `FOLDER`.

    Examples
    --------
    >>> page_files(["validation_001", "a/b", "a_b", "index"])
    {'validation_001': 'validation_001.html', 'a/b': 'a_b.html', 'a_b': 'a_b-2.html', \
'index': 'index-2.html'}
    """
    files: dict[str, str] = {}
    taken = set(_TAKEN)
    for case in cases:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "_", case)[:LONGEST] or "_"
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        files[case] = f"{name}.html"
    return files
