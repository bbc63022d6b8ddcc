"""Where the program lies, its version and those of its libraries, and how they load."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

__version__ = "0.2.0"
"""Of this program: three numbers, as in the changelog."""

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


def source_commit() -> str:
    """Commit of the program's source, or "unknown".

    The image has it in FLARE_COMMIT; a checkout is asked through git, and says so if
    it has been changed since.
    """
    return os.environ.get("FLARE_COMMIT", "") or _commit_of_checkout()


@cache
def _commit_of_checkout() -> str:
    """What git says; asked once, as what is loaded stays what it was."""
    if not (CHECKOUT / ".git").exists():
        return "unknown"
    import subprocess  # not at the top: the image has no git, and starts sooner

    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--abbrev=40"]
    try:
        run = subprocess.run(
            [*command, "--exclude=*", "--dirty=-changed"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


_ABOUT = ".dist-info"
"""Ends the name of a folder about a package."""


@cache
def library_version(name: str) -> str:
    """Version of an installed package, as ``importlib.metadata.version`` tells it.

    That loads forty modules, a fourteenth of the start of an evaluation. pip has the
    version in the name of a folder, too.

    Parameters
    ----------
    name : str
        Of the package on PyPI, such as zlib-ng.

    Raises
    ------
    importlib.metadata.PackageNotFoundError
        If there is no such package.
    """
    start = f"{name.replace('-', '_')}-"
    for place in sys.path:
        for folder in _packages_in(place):
            if folder.startswith(start):
                return folder.removeprefix(start).removesuffix(_ABOUT)
    from importlib.metadata import version  # not installed as pip does it

    return version(name)


@cache
def _packages_in(place: str) -> tuple[str, ...]:
    """Names of folders about packages in one of Python's places, looked for once."""
    try:
        names = [path.name for path in Path(place).iterdir()]
    except OSError:  # a zip file, or nothing that we may read: Python ignores it, too
        return ()
    return tuple(name for name in names if name.endswith(_ABOUT))


def install_remedy(library: str, extra: str) -> str:
    """What to type where the program runs: in a checkout, by pipx, or by pip."""
    environment = Path(sys.prefix)
    if is_checkout():
        command = f".venv/bin/pip install '.[{extra}]'"
    elif (environment / "pipx_metadata.json").is_file():
        command = f"pipx inject {environment.name} {library}"
    else:
        command = f"pip install {library}"
    return f"Install it: {command}."


@contextmanager
def importing() -> Iterator[None]:
    """Let imports go on without a search for garbage, of which they leave none.

    Later on, too, it is not looked for in what was imported, nor in workers. Altogether
    that would take longer than all that click does.
    """
    is_searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_searched:
            gc.enable()
