"""Says where the results of a run come from."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flare.challenge.digest import rules_digest, scoring_rules
from flare.challenge.rules import Challenge
from flare.common.library_versions import library_version
from flare.common.places import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.version import __version__, source_commit
from flare.evaluation.submission.folder import (
    LabelMapFile,
)
from flare.results.scores import Provenance, References

LIBRARIES = ("nibabel", "numpy", "surface-distance", "zlib-ng")
"""What a result rests on."""


def make_provenance(
    challenge: Challenge,
    source: References,
    references: Sequence[LabelMapFile],
    options: Mapping[str, str],
    checksum: Callable[[Path], str],
) -> Provenance:
    """Describe this run; a function tells the SHA-256 of a reference file."""
    rules = scoring_rules(challenge)
    return Provenance(
        challenge=challenge.key,
        challenge_sha256=challenge.checksum,
        rules=rules,
        rules_sha256=rules_digest(rules),
        rules_note=challenge.rules_note,
        version=__version__,
        commit=source_commit(),
        references=source,
        references_sha256=references_digest(references, checksum),
        cases=len(references),
        options={name: value for name, value in options.items() if value},
        libraries={name: library_version(name) for name in LIBRARIES},
        machine={
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
        },
    )


def file_checksum(file: Path) -> str:
    """SHA-256 of the bytes of a file, in hexadecimal digits."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def references_digest(
    files: Sequence[LabelMapFile], checksum: Callable[[Path], str]
) -> str:
    """SHA-256 over the cases' names and the checksums of their files."""
    digest = hashlib.sha256()
    for file in files:
        line = f"{file.case} {checksum(file.path)}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def reference_source(ground_truth: Path) -> References:
    """Where the reference labels of a run are from, in one word."""
    sources: dict[Path, References] = {
        BUNDLED_GROUND_TRUTH: "bundled",
        PLATFORM_GROUND_TRUTH: "tarball",
    }
    return sources.get(ground_truth.resolve(), "given")
