"""Where things lie that are no code: on the platform, beside the program, or in it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of the package, flare/."""

CHECKOUT = PACKAGE.parent
"""Folder of evaluate.py, in a checkout and in the image."""

_IS_INSTALLED = not (CHECKOUT / "evaluate.py").is_file()

BUNDLED_GROUND_TRUTH = (
    PACKAGE / "demonstration_set" if _IS_INSTALLED else CHECKOUT / "ground-truth"
)
"""Reference labels that come with the program; setup.py puts the demonstration set into
an installed copy."""

PHASE_SETTINGS = None if _IS_INSTALLED else CHECKOUT / "phase-settings.json"
"""Settings of three phases of the platform, for flare21; an installed copy makes them
instead."""

PLATFORM_GROUND_TRUTH = Path("/opt/ml/input/data/ground_truth")
"""Where grand-challenge.org unpacks the organisers' tarball, if there is one."""


def is_checkout() -> bool:
    """Say whether the program runs from its sources, not from an installed copy."""
    return (CHECKOUT / "pyproject.toml").is_file()
