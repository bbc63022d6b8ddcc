"""Refuses numbers that no measurement can yield."""

from __future__ import annotations

import math
import re
from pathlib import Path

from flare.challenge.metrics import ALWAYS, is_score
from flare.common.text import safe
from flare.results.errors import RankingError

SCORES = ALWAYS
"""The metrics of label maps that pages and figures show."""

RUNTIME = "runtime"
"""Metrics that begin with this are running times."""

LARGEST = 1e15
"""A larger number is a mistake: nothing that is ranked comes near it."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def number(text: str, path: Path, where: str) -> float | None:
    """The number that a cell holds; None if the cell is empty.

    Raises
    ------
    RankingError
        If the text is something else, or no value that a metric can have.
    """
    text = text.strip()
    if not text:
        return None
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise RankingError(str(path), f"{where}: {safe(text)} is not finite")
    if not _NUMBER.fullmatch(text):
        raise RankingError(str(path), f"{where}: {safe(text)} is no number")
    return float(text)


def check_value(value: float, metric: str, path: Path, where: str) -> float:
    """A value, if a metric can have it.

    Raises
    ------
    RankingError
        If not.
    """
    problem = ""
    if not math.isfinite(value) or value > LARGEST:
        problem = f"{metric} is {value}, which nothing that was measured is"
    elif value < 0:
        # Not a sentinel of some other program: it would be the best running time.
        problem = f"{metric} is {value:g}, negative; leave a missing value empty"
    elif value > 1 and is_score(metric):
        problem = f"{metric} is {value}, above 1; is it percent? Divide it by 100"
    elif value == 0 and metric.startswith(RUNTIME):
        problem = f"{metric} is 0, which no run takes; leave a missing value empty"
    if problem:
        raise RankingError(str(path), f"{where}: {problem}")
    return value
