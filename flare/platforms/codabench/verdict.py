"""Codabench's verdict on a submission: the state, the page, and the board's row.

Each rule follows the worker and the site, as those of `rehearse`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from flare.common.text import listing
from flare.platforms.codabench.competition import Competition, Leaderboard
from flare.platforms.codabench.score import PAGE
from flare.platforms.leaderboard import SCORES_JSON
from flare.platforms.rehearsal import outcome_text

_NO_WORDS = re.compile(r"(?is)<(style|script|title)\b.*?</\1>|<[^>]*>")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the site makes of what a scoring program has left, by its rules."""

    competition: Competition
    status: int | None
    """The program's exit status; None if the time limit ended it."""
    seconds: float
    log: str = ""
    outputs: Mapping[str, bytes]
    """Files of /app/output."""

    @cached_property
    def message(self) -> str:
        """The state that the participant would see after a failure; else empty."""
        if self.status is None:
            return f"Execution Time Limit exceeded. Limit was {self._limit_s} seconds"
        if self.status:
            return "Child task failed or non-zero return code"
        if SCORES_JSON not in self.outputs:
            return "Could not find scores file, did the scoring program output it?"
        try:
            scores = json.loads(self.outputs[SCORES_JSON])
        except ValueError:
            return "Could not decode scores json properly, it contains an error."
        # The worker cannot send NaN, nor the site keep what is no number.
        values = [*scores.values()] if isinstance(scores, dict) else [None]
        if not all(isinstance(v, int | float) and isfinite(v) for v in values):
            return "Finished, without scores: scores.json has other values than numbers"
        if "metadata" in self.outputs:
            return "Error, the output directory already contains a metadata file."
        return ""

    @property
    def _board(self) -> Leaderboard:
        return self.competition.leaderboards[0]

    @property
    def _limit_s(self) -> int:
        return self.competition.phases[0].execution_time_limit

    @cached_property
    def scores(self) -> Mapping[str, Any]:
        """The scores that arrive."""
        return {} if self.message else dict(json.loads(self.outputs[SCORES_JSON]))

    @property
    def files(self) -> Mapping[str, bytes | None]:
        """The scores that arrive, and the page of a failed run, too."""
        scores = None if self.message else self.outputs[SCORES_JSON]
        return {PAGE: self.outputs.get(PAGE), SCORES_JSON: scores}

    @property
    def page_text(self) -> str:
        """The words of the page that the participant sees."""
        is_shown = self.competition.enable_detailed_results
        page = self.outputs.get(PAGE, b"") if is_shown else b""
        text = _NO_WORDS.sub(" ", page.decode("utf-8", "replace"))
        return " ".join(html.unescape(text).split())

    @property
    def is_ranked(self) -> bool:
        """Whether the result would be on the board by itself."""
        return self._board.is_automatic and self._board.ordering[0].key in self.scores

    @property
    def warnings(self) -> list[str]:
        """Lines about faults that the organiser should know, or repair."""
        missing = [c.key for c in self._board.columns if c.key not in self.scores]
        rule, lines = self._board.submission_rule.value, []
        if missing and not self.message:
            lines.append(f"scores.json lacks {listing(missing)}: the board shows n/a.")
        if not self._board.is_automatic:
            lines.append(f"By the submission_rule {rule}, nothing is there by itself.")
        if not self.page_text:
            lines.append("The participant sees no page, and so no reason of a failure.")
        if self.seconds * 2 > self._limit_s:
            lines.append(f"That is more than half of the limit, {self._limit_s} s.")
        return lines

    def __str__(self) -> str:
        """Return what a rehearsal showed, for the organiser."""
        lines = [f"The scoring program took {self.seconds:.1f} s."]
        lines += [f"For the organiser: {warning}" for warning in self.warnings]
        if self.message and self.page_text:
            lines.append(f"The participant's page: {self.page_text:.1024}")
        return outcome_text(
            lines,
            zip(self._board.titles, self._board.shown(self.scores), strict=True),
            is_ranked=self.is_ranked,
            failure_log=self.log if self.message else None,
        )
