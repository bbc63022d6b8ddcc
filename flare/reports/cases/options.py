"""The options of the pages of cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flare.common.options import option, whole

OnDrawn = Callable[[int, int, str], None]
"""Called after each page with its number, from 1, the number of pages, and the case."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseOptions:
    """The cases that get a page, and where their files are."""

    case: tuple[str, ...] = option(
        "Make a page of this case by all teams beside their ranking: the same slice by"
        " each of them, of --predictions as flare score takes them, or of what flare"
        " measure has kept. For organisers; needs --ground-truth. Once for each case.",
        default=(),
        metavar="NAME",
    )
    ground_truth: Path = option(
        "With --predictions, also make a page of each of the hardest cases, with"
        " pictures of what is wrong: these are the reference labels that were scored."
        " For organisers, and into a folder.",
        default=None,
        metavar="DIR",
    )
    predictions: Path = option(
        "With --ground-truth, the predictions that were scored.",
        default=None,
        metavar="DIR|ZIP",
    )
    images: Path | None = option(
        "Draw the pages of cases over these CTs, named like the cases.",
        default=None,
        metavar="DIR",
    )
    worst: int = option(
        "Make pages of the N worst cases, 0 for all (default: 20).",
        default=20,
        parse=whole,
        metavar="N",
    )
