"""Says what came of running a team's container: its status, and why it is no good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flare.challenge.case_names import SUFFIXES, case_name
from flare.challenge.rules import Challenge, GridComparison, UnknownLabels
from flare.common.errors import SubmissionError
from flare.common.text import listing, safe
from flare.evaluation.check import check_submission
from flare.evaluation.errors import EmptyError
from flare.evaluation.file_errors import FileFormatError
from flare.evaluation.labelmaps.reading import read_grid
from flare.measuring.container import ContainerRun
from flare.measuring.contract import FLARE, Contract
from flare.measuring.disk import SPARE_BYTES
from flare.measuring.outputs import Output
from flare.results.efficiency_csv import RunStatus

VOXEL_BYTES = 16
"""No number type of a label map takes more, compressed or not."""

HEADER_BYTES = 2**20


def status_of_run(run: ContainerRun) -> tuple[RunStatus, str]:
    """The status of a run by what the engine says of it; ``OK`` if it has ended well.

    A container that did not start is an engine error here; whose fault it is, only
    another container tells.
    """
    seconds = f"after {run.runtime_s:.1f} s"
    if run.engine_problem:
        return RunStatus.ENGINE_ERROR, f"the engine says: {safe(run.engine_problem)}"
    if run.has_filled_disk:
        room = "it took too much of the disk (--disk), or left less than"
        text = f"the container was ended {seconds}: {room} {SPARE_BYTES >> 30} GiB"
        return RunStatus.FAILED, text
    if run.has_lost_disk:
        text = "the disk was filled meanwhile, but not by the container"
        return RunStatus.ENGINE_ERROR, text
    if run.trace.problem:
        # Without samples, its memory would be that of the idle GPU.
        return RunStatus.ENGINE_ERROR, f"sampling has ended early: {run.trace.problem}"
    if run.is_late:
        return RunStatus.TIMED_OUT, f"the container was ended {seconds}"
    if run.exit_code:
        code = f"the container ended with exit code {run.exit_code} {seconds}"
        if run.is_out_of_memory:
            return RunStatus.OUT_OF_MEMORY, f"{code}: its memory did not suffice"
        return RunStatus.FAILED, code
    return RunStatus.OK, ""


def status_of_output(
    output: Output, inputs: Path, challenge: Challenge, contract: Contract = FLARE
) -> tuple[RunStatus, str]:
    """The status of a run that has ended well, by what it has written.

    Parameters
    ----------
    output : Output
        What it has written.
    inputs : Path
        The folder of the one image that it was given.
    challenge : Challenge
        Whose labels are allowed; its grid is compared by size, and unknown labels are
        let pass, as when the team is evaluated.
    contract : Contract
        Where it should have written.
    """
    if output.problem:
        return RunStatus.WRONG_OUTPUT, output.problem
    others = [(n, k) for n, k in output.others if case_name(Path(n))]
    if not output.files and not output.others:
        return RunStatus.NO_OUTPUT, f"it has written nothing to {contract.outputs}"
    if others:
        remedy = "Put the file itself there."
        problems = [FileFormatError(n, f"it is {k}", remedy) for n, k in others[:3]]
        return RunStatus.WRONG_OUTPUT, " ".join(map(str, problems))
    rules = replace(
        challenge,
        grid=replace(challenge.grid, compare=GridComparison.SIZE),
        unknown_labels=replace(
            challenge.unknown_labels, prediction=UnknownLabels.IGNORE
        ),
    )
    problem = _problem(output.folder, inputs, rules)
    if problem:
        return RunStatus.WRONG_OUTPUT, problem
    if len(label_maps(output)) != 1:
        names = listing(output.files)
        return RunStatus.WRONG_OUTPUT, f"expected one label map, found {names}"
    return RunStatus.OK, ""


def _problem(folder: Path, inputs: Path, rules: Challenge) -> str:
    """What the evaluation would refuse of an output; empty if it would not."""
    try:
        report = check_submission(
            folder, rules, images=inputs, workers=1, are_jobs_read=False
        )
    except (SubmissionError, OSError, ValueError, RecursionError) as error:
        return str(error)  # it was provoked by what is there: nothing else was read
    return "" if _is_empty_only(report.problems) else " ".join(report.lines)


def _is_empty_only(problems: Sequence[SubmissionError]) -> bool:
    """Whether all that is wrong is that nothing was found, which may be right."""
    return all(isinstance(problem, EmptyError) for problem in problems)


def largest_bytes(image: Path) -> int:
    """The most bytes that an honest label map of an image can take."""
    voxels = math.prod(read_grid(image, image.name).shape)
    return VOXEL_BYTES * voxels + HEADER_BYTES


def label_maps(output: Output) -> tuple[Path, ...]:
    """Files of an output that are label maps by their names."""
    return tuple(
        output.folder / name for name in output.files if name.lower().endswith(SUFFIXES)
    )
