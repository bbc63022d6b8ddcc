"""The installation of the program, and the CPUs and memory that it may use."""

from __future__ import annotations

import gc
import math
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from flare.common.text import shell_word

__version__ = "0.2.0"
"""The version of this program: three numbers, as in the changelog."""

PACKAGE = Path(__file__).resolve().parents[1]
"""Folder of the package, flare/."""

CHECKOUT = PACKAGE.parent
"""The folder of evaluate.py in a checkout, or in the image."""

_IS_INSTALLED = not (CHECKOUT / "evaluate.py").is_file()

BUNDLED_GROUND_TRUTH = (
    PACKAGE / "demonstration_set" if _IS_INSTALLED else CHECKOUT / "ground-truth"
)
"""Reference labels that come with the program; pyproject.toml puts the demonstration
set into an installed copy."""

PHASE_SETTINGS = None if _IS_INSTALLED else CHECKOUT / "phase-settings.json"
"""The file in a checkout with the settings for three phases of flare21; an installed
copy makes them itself."""

PLATFORM_GROUND_TRUTH = Path("/opt/ml/input/data/ground_truth")
"""The folder into which grand-challenge.org unpacks the organisers' tarball."""


def source_commit() -> str:
    """Commit of the program's source, or "unknown".

    The image has it in FLARE_COMMIT. In a checkout git is asked for it, and adds
    "-changed" if a file has been changed since.
    """
    return os.environ.get("FLARE_COMMIT", "") or _commit_of_checkout()


@cache
def _commit_of_checkout() -> str:
    """Ask git for the commit, once: the program that was loaded stays the same."""
    if not (CHECKOUT / ".git").exists():
        return "unknown"
    import subprocess  # not at the top: the image, which has no git, starts sooner

    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--abbrev=40"]
    command += ["--exclude=*", "--dirty=-changed"]
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()


@cache
def library_version(name: str) -> str:
    """Version of an installed package, such as zlib-ng.

    pip writes it into the name of a folder. Importing importlib.metadata, which also
    knows it, takes a fourteenth of the time in which an evaluation starts. A
    importlib.metadata.PackageNotFoundError is raised if there is no such package.
    """
    start = f"{name.replace('-', '_')}-"
    for place in sys.path:
        for folder in Path(place).glob(f"{start}*.dist-info"):
            return folder.stem.removeprefix(start)
    from importlib.metadata import version  # for packages that pip has not installed

    return version(name)


def install_remedy(library: str) -> str:
    """The command that installs a package where the program runs, as a sentence."""
    return f"Install it: {shell_word(sys.executable)} -m pip install {library}."


@contextmanager
def importing() -> Iterator[None]:
    """Import without searches for garbage, as imports leave none.

    Later searches, also in workers, leave out the objects that were imported. Together,
    these searches would take longer than all of click.
    """
    with without_searches():
        try:
            yield
        finally:
            gc.freeze()


@contextmanager
def without_searches() -> Iterator[None]:
    """Search for no garbage meanwhile: of many records that stay, these take long."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


# --- The computer ------------------------------------------------------------------

CGROUPS = Path("/sys/fs/cgroup")

_QUOTA = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
"""CPU time and its period, in control groups of version 1."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h, as ``mallopt`` takes them."""

LARGEST_KEPT_BYTES = 32 * 2**20
"""The highest threshold that glibc chooses itself on 64 bits (mallopt(3))."""

WORKER_BYTES = 100 * 2**20
"""Memory of a worker beside its case: Python and its libraries."""

_PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal to get when the parent ends."""


def default_workers(case_bytes: int) -> int:
    """One worker for each CPU, but no more than fit into memory with a case each."""
    most = available_bytes() // (WORKER_BYTES + case_bytes)
    return max(1, min(available_cpus(), most))


def available_cpus(cgroups: Path = CGROUPS) -> int:
    """CPUs that this process may run on, as far as a container's quota allows."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:  # macOS
        cpus = os.cpu_count() or 1
    version_1 = []
    for name in _QUOTA:
        version_1 += _numbers(cgroups / "cpu" / name)
    for numbers in (_numbers(cgroups / "cpu.max"), version_1):
        # Without a limit, the quota is no positive number, and the period stands alone.
        if len(numbers) == 2:
            quota, period = numbers
            cpus = min(cpus, math.ceil(quota / period))
    return cpus


def available_bytes(cgroups: Path = CGROUPS) -> int:
    """Memory of this computer, as far as the limits of container and process allow."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    limits += _numbers(cgroups / "memory.max")
    limits += _numbers(cgroups / "memory" / "memory.limit_in_bytes")
    data_limit, _ = resource.getrlimit(resource.RLIMIT_DATA)  # set by the platform
    if data_limit != resource.RLIM_INFINITY:
        limits.append(data_limit)
    return min(limits)


def _numbers(file: Path) -> list[int]:
    """The positive numbers in a file; an empty list without a file or a limit."""
    try:
        words = file.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
    return [int(word) for word in words if word.isdigit() and int(word) > 0]


def _libc() -> Any:
    """The functions of the C library."""
    import ctypes  # not at the top: it takes 2 ms, and help does without

    return ctypes.CDLL(None)


def end_with(parent: int) -> None:
    """End this process when its parent ends; `parent` is the process ID of that."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)


def reuse_freed_memory() -> None:
    """Set glibc's thresholds to the highest values that it would choose itself.

    At the end of each case, glibc would give memory back to the kernel that the next
    case needs: for a small case, this took a quarter of the time. Dask starts workers
    with ``MALLOC_TRIM_THRESHOLD_=65536``, by which a case took three times as long.
    Nothing is done where another library than glibc allocates.
    """
    try:
        mallopt = _libc().mallopt
    except (AttributeError, OSError, TypeError):  # musl, macOS
        return
    mallopt(_MMAP_THRESHOLD, LARGEST_KEPT_BYTES)
    mallopt(_TRIM_THRESHOLD, 2 * LARGEST_KEPT_BYTES)
