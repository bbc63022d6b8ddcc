"""What a scoring program loads: wheels for the image's Python, and the kit itself."""

from __future__ import annotations

import marshal
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

from flare.challenge.metrics import METRICS
from flare.challenge.rules import Challenge
from flare.common.environment import PACKAGE
from flare.common.text import safe
from flare.evaluation.errors import UploadError
from flare.evaluation.metrics.kernel import kernel_problem

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

    A UploadError is raised if pip, which runs as it is set up here, does not get all
    wheels.
    """
    files = {}
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and file.suffix not in _LEFT_OUT:
            files[str(file.relative_to(PACKAGE.parent))] = file.read_bytes()
    kernel = PACKAGE.parent / KERNEL
    is_usable = not kernel_problem() and kernel.exists()
    is_plain = not (is_usable and is_loadable(kernel.read_bytes()))
    files |= {} if is_plain else {KERNEL: kernel.read_bytes()}
    names = package_names(challenge, is_plain=is_plain)
    files |= dict(wheel_files(names, python))
    is_same = python == f"{sys.version_info.major}.{sys.version_info.minor}"
    return files | (compiled(files) if is_same else {}), is_plain


def compiled(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The modules among some files, as Python keeps what it has compiled."""
    compiled_files = {}
    for name in filter(lambda name: name.endswith(".py"), files):
        source = files[name]
        with warnings.catch_warnings(action="ignore"):  # of the code of packages
            code = compile(source, f"/app/program/{name}", "exec", dont_inherit=True)
        # 1: it is not held against its source, whose time is that of unpacking.
        header = MAGIC_NUMBER + (1).to_bytes(4, "little") + source_hash(source)
        compiled_files[cache_from_source(name)] = header + marshal.dumps(code)
    return compiled_files


def package_names(challenge: Challenge, *, is_plain: bool) -> list[str]:
    """The packages that an evaluation, what it refuses, and its page load."""
    names = ["click", "jinja2", "markupsafe", "numpy", "zlib-ng"]
    if challenge.organs:
        names.append("surface-distance")
        # Headers that are unusual, and messages about places; with what it needs.
        names += ["nibabel", "importlib-resources", "packaging", "typing-extensions"]
        has_distances = any(METRICS[name].needs_distances for name in challenge.metrics)
        if is_plain or has_distances or challenge.lesion_metrics:
            names.append("scipy")
    return names


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
            reason = (run.stderr.strip() or "no reason").splitlines()[-1]
            problem = f"pip gets no wheels for Python {python} on linux/amd64"
            remedy = (
                f"Run it where {safe(sys.executable)} -m pip reaches an index of"
                " packages, or set PIP_INDEX_URL."
            )
            raise UploadError(f"{problem} ({safe(reason)})", remedy)
        for wheel in sorted(Path(folder).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if not name.endswith("/") and "/tests/" not in name:
                        yield f"packages/{name}", archive.read(name)
