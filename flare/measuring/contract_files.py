"""Keeps to a contract: lays out the input of a case, finds the label map in its output.

On the platform, /input/inputs.json lists what an algorithm gets. Newer editions call an
interface a socket there, and still have it under both names.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path, PurePosixPath

from flare.challenge.case_names import SUFFIXES
from flare.common.text import listing, safe
from flare.evaluation.submission.jobs import INPUTS_FILE_NAME
from flare.measuring.contract import Contract
from flare.measuring.inputs import Case
from flare.measuring.outputs import Output


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
        folder.chmod(0o755)  # whoever the image's user is
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


def renamed(output: Output, case: str, folder: Path, contract: Contract) -> Output:
    """An output as FLARE's contract has it: with one file, called like its case.

    Parameters
    ----------
    output : Output
        What a container has written.
    case : str
        Name of the case.
    folder : Path
        Empty, on the file system of the output; the label map is moved there.
    contract : Contract
        Says where it has to be.

    Returns
    -------
    Output
        It; or what was written, with a problem, if there is not one file where the
        contract wants it.
    """
    is_empty = not output.files and not output.others
    if not contract.is_algorithm or output.problem or is_empty:
        return output
    kinds = {**dict.fromkeys(output.files, ""), **dict(output.others)}
    place = PurePosixPath(contract.output_path)
    there = sorted(name for name in kinds if PurePosixPath(name).parent == place)
    if len(there) != 1:
        found = listing(there or sorted(kinds))
        problem = f"expected one label map in {contract.written_to}, found {found}"
        return _with(output, problem)
    (name,) = there
    if kinds[name]:
        return _with(output, f"{safe(name)}: it is {kinds[name]}")
    suffix = next((s for s in SUFFIXES if name.lower().endswith(s)), "")
    if not suffix:
        problem = f"{safe(name)}: it is no label map; let the algorithm write .mha"
        return _with(output, problem)
    called = f"{case}{suffix}"
    (output.folder / name).replace(folder / called)
    return Output(folder=folder, files=(called,))


def _with(output: Output, problem: str) -> Output:
    """An output that cannot be used."""
    return Output(
        folder=output.folder, files=output.files, others=output.others, problem=problem
    )
