"""What a scoring program loads: wheels for the image's Python, and the kit itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from flare.challenge.metrics import METRICS
from flare.challenge.rules import Challenge
from flare.common.environment import PACKAGE
from flare.common.text import safe
from flare.platforms.codabench.errors import BundleError

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The packages, pinned with the hashes of their files."""

FOLDER = "packages"
"""Where a scoring program has what is in wheels."""

OLDEST_GLIBC = (2, 28)
"""That of the oldest image for which NumPy has wheels: Debian 10, RHEL 8."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux2014_x86_64")
"""The tags of wheels that such an image takes, beside those for any computer."""

_KERNEL_FOLDER = PACKAGE / "evaluation" / "metrics"
_KERNEL = "_kernel.abi3.so"
_X86_64 = b"\x3e\x00"
"""The machine in the header of an ELF file."""


def package_names(challenge: Challenge, *, is_plain: bool) -> list[str]:
    """The packages that an evaluation by these rules may load, and no others."""
    names = ["click", "jinja2", "markupsafe", "numpy"]
    if challenge.organs:
        names += ["surface-distance", "zlib-ng"]
        metrics = [METRICS[name] for name in challenge.metrics]
        if is_plain or any(metric.needs_distances for metric in metrics):
            names.append("scipy")
    return names


def wheel_files(names: Iterable[str], python: str) -> Iterator[tuple[str, bytes]]:
    """The files of packages for a version of Python, such as 3.13, on linux/amd64.

    A BundleError is raised if pip, which runs as it is set up here, does not get a
    wheel of each, or it is not the one that was pinned.
    """
    with tempfile.TemporaryDirectory(prefix="flare-bundle-") as folder:
        wheels = Path(folder, "wheels")
        requirements = Path(folder, "requirements.txt")
        requirements.write_text("\n".join(_pinned(names)), encoding="utf-8")
        _download(requirements, wheels, python)
        for wheel in sorted(wheels.iterdir()):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and "/tests/" not in name:
                        yield f"{FOLDER}/{name}", archive.read(name)


def _pinned(names: Iterable[str]) -> Iterator[str]:
    """The lines of `REQUIREMENTS` that are about some packages."""
    text = REQUIREMENTS.read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=\S)", text)
    for name in names:
        yield next(block for block in blocks if block.startswith(f"{name}=="))


def _download(requirements: Path, wheels: Path, python: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--python-version", python]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    command += ["--dest", str(wheels), "--requirement", str(requirements)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if "ERROR" in line]
        reason = safe((lines or run.stderr.splitlines() or ["it says nothing"])[-1])
        problem = f"pip gets no wheels for Python {python} on linux/amd64 ({reason})"
        remedy = (
            f"Run it where {safe(sys.executable)} -m pip reaches an index of packages,"
            " or set PIP_INDEX_URL or PIP_FIND_LINKS."
        )
        raise BundleError("The scoring program", problem, remedy)


# --- The kit itself -----------------------------------------------------------------


def kit_files() -> Iterator[tuple[str, bytes]]:
    """The files of this program, of a checkout or an installed copy, but its kernel."""
    for file in sorted(PACKAGE.rglob("*")):
        is_made = "__pycache__" in file.parts or file.suffix in (".so", ".gz", ".c")
        if file.is_file() and not is_made:
            yield str(file.relative_to(PACKAGE.parent)), file.read_bytes()


def kernel_file() -> tuple[str, bytes] | None:
    """The kernel for linux/amd64: the one that is here, or one that ziglang compiles.

    None if the C library of an image could not load the former, and there is no
    ziglang, or no source.
    """
    name = f"{_KERNEL_FOLDER.relative_to(PACKAGE.parent)}/{_KERNEL}"
    for suffix in EXTENSION_SUFFIXES:
        file = _KERNEL_FOLDER / f"_kernel{suffix}"
        if file.exists() and is_loadable(file.read_bytes()):
            return name, file.read_bytes()
    source = _KERNEL_FOLDER / "kernel.c"
    if not (source.exists() and find_spec("ziglang")):
        return None
    with tempfile.TemporaryDirectory(prefix="flare-bundle-") as folder:
        target = Path(folder, _KERNEL)
        command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-s"]
        command += ["-target", f"x86_64-linux-gnu.{'.'.join(map(str, OLDEST_GLIBC))}"]
        command += ["-std=c11", "-O3", "-ffp-contract=off", "-fvisibility=hidden"]
        command += ["-o", str(target), str(source)]
        run = subprocess.run(command, capture_output=True, check=False)
        return (name, target.read_bytes()) if run.returncode == 0 else None


def is_loadable(library: bytes) -> bool:
    r"""Look whether any image for which NumPy has wheels loads a shared library.

    Examples
    --------
    >>> header = b"\x7fELF" + bytes(14) + b"\x3e\x00"
    >>> is_loadable(header + b"GLIBC_2.14"), is_loadable(header + b"GLIBC_2.34")
    (True, False)
    """
    is_of_machine = library[:4] == b"\x7fELF" and library[18:20] == _X86_64
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library)
    return is_of_machine and all(
        (int(major), int(minor)) <= OLDEST_GLIBC for major, minor in versions
    )
