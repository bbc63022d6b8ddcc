"""Submissions of several teams, and what tells whether their voxels were read."""

import json
import shutil
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from flare.evaluation.scoring import case as scoring
from tests.builders import organ_boxes, wait_until, write_cases, write_nifti
from tests.builders.warm import WarmProcess

CASES = ("case_1", "case_2", "case_3")


def write_teams(folder, names, cases=CASES):
    """References, and a folder of predictions for each team; no two files are equal.

    The liver of team n is shifted by n voxels, and one voxel of each case is its own.
    """
    labels = write_cases(folder / "labels", cases)
    for shift, team in enumerate(names, start=1):
        for number, case in enumerate(cases):
            write_nifti(
                folder / "teams" / team / f"{case}.nii.gz", marked(number, shift)
            )
    return folder / "teams", labels


def marked(number, shift):
    """A label map of which no other number and shift has the bytes."""
    maps = organ_boxes(shift=shift)
    maps[0, 0, number % 20] = 4
    maps[0, 1, number // 20] = 4
    return maps


def zipped(folder):
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)
    shutil.rmtree(folder)


@contextmanager
def voxels_read():
    """The names of all predictions that this process scores, one for each time."""
    read = []
    score = scoring.score_case

    def counted(pair, challenge):
        read.append(Path(pair.prediction.path))
        return score(pair, challenge)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "score_case", counted)
        yield read


@contextmanager
def dask_processes(folder, preload="", resources=""):
    """Start a scheduler and two workers by hand.

    What comes back: its address, the workers, what starts another one, and its process.
    The folder gets what they write; each worker runs `preload` first, and has resources
    such as GPU=1.
    """
    scheduler, script = folder / "scheduler.json", folder / "preload.py"
    script.write_text(preload)
    started = []
    extra = ("--resources", resources) if resources else ()

    def start(kind, *words):
        program = "-c", f"from distributed.cli.dask_{kind} import main; main()"
        with (folder / f"{kind}.log").open("ab") as log:
            process = WarmProcess(program, [*words], log, log)
        started.append(process)
        return process

    def start_worker():
        return start(
            *("worker", "--scheduler-file", str(scheduler), "--nthreads", "1"),
            *("--no-nanny", "--no-dashboard", "--preload", str(script)),
            *("--local-directory", str(folder / "scratch"), "--death-timeout", "60"),
            *extra,
        )

    try:
        words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        master = start("scheduler", *words, "--scheduler-file", str(scheduler))
        wait_until(lambda: scheduler.exists() and scheduler.read_text()[-1:] == "}")
        found = [start_worker() for _ in range(2)]
        address = json.loads(scheduler.read_text())["address"]
        yield address, found, start_worker, master
    finally:
        for process in started:
            process.kill()
            process.wait()
