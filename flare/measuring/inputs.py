"""Finds archives and images, and lays an image out where a container looks for it.

On the platform, /input/inputs.json lists what an algorithm gets. Newer editions call an
interface a socket there, and still have it under both names.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from flare.challenge.formats import ANY_SUFFIX, PLAIN_NAMES
from flare.challenge.rules import Challenge
from flare.common.errors import InputError
from flare.common.text import listing, safe
from flare.evaluation.check import find_images
from flare.evaluation.submission.find import LabelMapFile, find_references
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME
from flare.measuring.archive.model import MODEL_SUFFIX
from flare.measuring.archive.reading import SUFFIX
from flare.measuring.contract import Contract
from flare.results.errors import MeasurementError


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An image that the teams' containers get."""

    name: str
    image: LabelMapFile


def find_archives(path: Path) -> tuple[Path, ...]:
    """An archive, or all archives of a folder, in the order of their names.

    Raises
    ------
    InputError
        If there is none, or a model without one.
    """
    if not path.is_dir():
        return (path,)
    all_found = sorted(path.glob(f"*{SUFFIX}"))
    found = tuple(f for f in all_found if not f.name.endswith(MODEL_SUFFIX))
    for model in sorted({*all_found} - {*found}):
        archive = f"{model.name.removesuffix(MODEL_SUFFIX)}{SUFFIX}"
        if not (path / archive).exists():
            raise InputError(
                f"{safe(model)}: there is no {safe(archive)} beside it",
                "A model is named like the archive of its image.",
            )
    if not found:
        raise InputError(
            f"{safe(path)}: there is no TEAMNAME{SUFFIX} in it",
            "Give the archives that the teams have sent.",
        )
    return found


def case_of(image: Path, challenge: Challenge | None = None) -> Case:
    """The case of one image, by its name.

    Raises
    ------
    InputError
        If there is no such image.
    """
    found = find_cases(image.parent, challenge) if image.is_file() else ()
    for case in found:
        if case.image.path.resolve() == image.resolve():
            return case
    raise InputError(
        f"{safe(image)}: there is no such image",
        f"Give a CT, a {ANY_SUFFIX} file.",
    )


def find_cases(images: Path, challenge: Challenge | None = None) -> tuple[Case, ...]:
    """The images of a folder, in the order of their names.

    Raises
    ------
    InputError
        If there is none, a case has two, or one is broken.
    """
    names = challenge.names if challenge else PLAIN_NAMES
    return tuple(Case(name=f.case, image=f) for f in find_images(images, names))


def digest_of(cases: Sequence[Case]) -> str:
    """SHA-256 over the names and contents of all images."""
    digest = hashlib.sha256()
    for case in cases:
        with case.image.path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{case.name} {checksum}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def check_cases(
    cases: Sequence[Case], ground_truth: Path, challenge: Challenge | None = None
) -> None:
    """See that images and references are of the same cases.

    Raises
    ------
    OrganiserError, HostError
        If they are not, or the references cannot be used.
    """
    if not ground_truth.is_dir():
        raise InputError(
            f"{safe(ground_truth)}: there is no such folder",
            "Give the reference labels with --ground-truth.",
        )
    known = {file.case for file in find_references(ground_truth, challenge)}
    other = sorted(known ^ {case.name for case in cases})
    if other:
        raise MeasurementError(
            str(ground_truth),
            f"{listing(other)}: there is an image or a reference, but not both",
            "Every case needs both.",
        )


def lay_out(case: Case, inputs: Path, contract: Contract) -> Path:
    """Put the image of a case where a container looks for it.

    Parameters
    ----------
    case : Case
        Whose image is copied, under its own name.
    inputs : Path
        An empty folder, which the container will read.
    contract : Contract
        Says where.

    Returns
    -------
    Path
        The copy; nothing else is in its folder.
    """
    folder = inputs
    for part in PurePosixPath(contract.input_path).parts:
        folder /= part
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)  # whichever user the image has
    image = folder / Path(case.image.name).name
    shutil.copyfile(case.image.path, image)
    image.chmod(0o644)
    if contract.is_algorithm:
        listed = inputs / INPUTS_FILE_NAME
        text = json.dumps(_inputs(image.name, contract), indent=2)
        listed.write_text(f"{text}\n", encoding="utf-8")
        listed.chmod(0o644)
    return image


def _inputs(name: str, contract: Contract) -> list[dict[str, object]]:
    """What the platform says of the one input of a job."""
    socket: dict[str, object] = {
        "title": contract.input_slug,
        "description": "",
        "slug": contract.input_slug,
        "kind": "Image",
        "super_kind": "Image",
        "relative_path": contract.input_path,
        "default_value": None,
        "overlay_segments": [],
        "look_up_table": None,
    }
    pk = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
    return [
        {
            "value": None,
            "file": None,
            "image": {"pk": pk, "name": name},
            "interface": socket,
            "socket": socket,
        }
    ]
