"""What a scoring program loads: wheels for the image's Python, and the kit itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from flare.challenge.metrics import METRICS
from flare.challenge.rules import Challenge
from flare.common.environment import PACKAGE
from flare.common.text import safe
from flare.platforms.codabench.errors import BundleError

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The packages, pinned with the hashes of their files."""

OLDEST_GLIBC = (2, 28)
"""The C library of the oldest image for which NumPy has wheels: Debian 10, RHEL 8."""

PLATFORMS = ("manylinux_2_28_x86_64", "manylinux2014_x86_64")
"""The tags of wheels that such an image takes, beside those for any computer."""

KERNEL = "flare/evaluation/metrics/_kernel.abi3.so"

_LEFT_OUT = (".c", ".gz", ".pyc", ".so")
"""Endings of the kit's files that no scoring program loads, or not as they are."""


def program_files(challenge: Challenge, python: str) -> tuple[dict[str, bytes], bool]:
    """The files that are loaded, and whether metrics are counted by NumPy.

    The kernel is the one of this copy of the kit, or compiled by ziglang. A BundleError
    is raised if pip, which runs as it is set up here, does not get all wheels.
    """
    files = {}
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and file.suffix not in _LEFT_OUT:
            files[str(file.relative_to(PACKAGE.parent))] = file.read_bytes()
    names = ["click", "jinja2", "markupsafe", "numpy"]
    is_plain = False
    if challenge.organs:
        kernel = _kernel()
        files |= {KERNEL: kernel} if kernel else {}
        is_plain = not kernel
        names += ["surface-distance", "zlib-ng"]
        metrics = [METRICS[name] for name in challenge.metrics]
        if is_plain or any(metric.needs_distances for metric in metrics):
            names.append("scipy")
    return files | dict(wheel_files(names, python)), is_plain


def _kernel() -> bytes:
    """The kernel for linux/amd64; empty if there is none that an image loads."""
    file = PACKAGE.parent / KERNEL
    if file.exists() and is_loadable(file.read_bytes()):
        return file.read_bytes()
    source = file.with_name("kernel.c")
    if not (source.exists() and find_spec("ziglang")):
        return b""
    glibc = ".".join(map(str, OLDEST_GLIBC))
    with tempfile.NamedTemporaryFile(suffix=".so") as target:
        command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-s"]
        command += ["-target", f"x86_64-linux-gnu.{glibc}", "-std=c11", "-O3"]
        command += ["-ffp-contract=off", "-fvisibility=hidden"]
        subprocess.run([*command, "-o", target.name, str(source)], check=False)
        return Path(target.name).read_bytes()


def is_loadable(library: bytes) -> bool:
    r"""Look whether any image for which NumPy has wheels loads a shared library.

    Examples
    --------
    >>> header = b"\x7fELF" + bytes(14) + b"\x3e\x00"
    >>> is_loadable(header + b"GLIBC_2.14"), is_loadable(header + b"GLIBC_2.34")
    (True, False)
    """
    is_x86_64 = library[:4] == b"\x7fELF" and library[18:20] == b"\x3e\x00"
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library)
    return is_x86_64 and all((int(a), int(b)) <= OLDEST_GLIBC for a, b in versions)


def wheel_files(names: list[str], python: str) -> Iterator[tuple[str, bytes]]:
    """The files in the wheels of packages for a version of Python on linux/amd64."""
    blocks = re.split(r"\n(?=\S)", REQUIREMENTS.read_text(encoding="utf-8"))
    pinned = [block for block in blocks if block.partition("==")[0] in names]
    with tempfile.TemporaryDirectory(prefix="flare-bundle-") as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text("\n".join(pinned), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input"]
        command += ["--disable-pip-version-check", "--no-deps", "--require-hashes"]
        command += ["--only-binary", ":all:", "--python-version", python]
        command += [f"--platform={platform}" for platform in PLATFORMS]
        command += ["--dest", folder, "--requirement", str(requirements)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise _no_wheels(python, run.stderr)
        for wheel in sorted(Path(folder).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and "/tests/" not in name:
                        yield f"packages/{name}", archive.read(name)


def _no_wheels(python: str, errors: str) -> BundleError:
    """The error of packages that pip does not get, with its reason."""
    reasons = re.findall(r"^ERROR: (.*)", errors, re.MULTILINE) or [errors]
    return BundleError(
        "The scoring program",
        f"pip gets no wheels for Python {python} on linux/amd64 ({safe(reasons[-1])})",
        f"Run it where {safe(sys.executable)} -m pip reaches an index of packages, or"
        " set PIP_INDEX_URL.",
    )
