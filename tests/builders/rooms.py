"""The rooms of the house, from left to right."""

from tests.builders import ROOT

LEVELS = (
    {"common"},
    {"challenge"},
    {"results"},
    {"evaluation", "ranking"},
    {"measuring"},
    {"platforms", "reports"},
    {"cli"},
)
"""The rooms from left to right; a room imports only from rooms to its left."""


PACKAGE = ROOT / "flare"


MODULES = sorted(PACKAGE.rglob("*.py"))
