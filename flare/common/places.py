"""Where things lie that are no part of the code: on the platform, and beside it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of the package, flare/."""

CHECKOUT = PACKAGE.parent
"""Folder of evaluate.py, in a checkout and in the image."""

BUNDLED_GROUND_TRUTH = CHECKOUT / "ground-truth"
"""Reference labels that come with the program."""

PHASE_SETTINGS = CHECKOUT / "phase-settings.json"
"""Settings of three phases of the platform, for flare21."""

PLATFORM_GROUND_TRUTH = Path("/opt/ml/input/data/ground_truth")
"""Where grand-challenge.org unpacks the organisers' tarball, if there is one."""


def is_checkout() -> bool:
    """Say whether the program runs from its sources, not from an installed copy."""
    return (CHECKOUT / "pyproject.toml").is_file()
