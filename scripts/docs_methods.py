"""Sentences about ways of comparing, for the documentation: those of their records."""

from __future__ import annotations

from flare.ranking.comparison import PERCENTILES_NOTE, SIGNED_RANKS_NOTE
from flare.ranking.uncertainty import METHODS
from flare.statistics import ALPHA

COUNTED = {"pairs": "n (n - 1)", "alpha": ALPHA, "replaced": "as below"}
"""What a ranking fills in."""

METHOD_PARTS = {
    "<!-- methods -->": " ".join(m.paper.format(**COUNTED) for m in METHODS),
    "<!-- differences -->": SIGNED_RANKS_NOTE,
    "<!-- differences of answers -->": PERCENTILES_NOTE,
}
"""What stands for a part of a page that is written by hand."""
