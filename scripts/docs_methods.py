"""Sentences about ways of comparing, for the documentation: those of their records."""

from __future__ import annotations

from flare.ranking.uncertainty import BY_CASE, BY_DRAWS, METHODS
from flare.statistics import ALPHA

COUNTED = {"pairs": "n (n - 1)", "alpha": ALPHA, "replaced": "as below"}
"""What a ranking fills in."""

METHOD_PARTS = {
    "<!-- methods -->": " ".join(m.paper.format(**COUNTED) for m in METHODS),
    "<!-- differences -->": BY_CASE.compared_note,
    "<!-- differences of answers -->": BY_DRAWS.compared_note,
}
"""What stands for a part of a page that is written by hand."""
