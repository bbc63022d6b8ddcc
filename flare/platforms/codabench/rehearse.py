"""Runs the scoring program of a bundle on a submission as Codabench's worker does.

Each rule follows compute_worker.py of codalab/codabench (March 2026): its class Run.
"""

from __future__ import annotations

import re
import shlex
import tempfile
import time
import uuid
import zipfile
from pathlib import Path

from flare.common.errors import HostError, InputError
from flare.common.text import safe
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.unpack import check_room
from flare.measuring.engines.docker import Docker
from flare.measuring.engines.interface import NoAnswerError
from flare.platforms.codabench.competition import Competition, read_competition
from flare.platforms.codabench.verdict import Verdict
from flare.platforms.rehearsal import (
    SubmissionOptions,
    files_below,
    not_run,
    open_to_all,
)

NOT_STARTED = 125
"""Exit status of an engine that cannot run the image."""

PROGRAMS = ("metadata.yaml", "metadata")
"""The worker takes what has one of these for a program, and runs its command."""

STATUS = "elapsedTime: null\nexitCode: null\ningestionElapsedTime: null\n"
"""The first step writes this to a file `metadata` beside the submission."""


def rehearse(options: SubmissionOptions, bundle: Path) -> Verdict:
    """Run both steps for a submission, by the competition of a bundle.

    A UploadError is raised if the bundle cannot be used, or the worker would not take
    the submission for results, or unpack it; an InputError if it is not there, and an
    EngineError if the engine, or the image, cannot be used.
    """
    competition = read_competition(bundle)
    with tempfile.TemporaryDirectory(
        prefix="flare-rehearsal-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        # The output of the first step is the submission as it is unpacked.
        results = folder / "input" / "res"
        _unpack(options.submission, results)
        for program in PROGRAMS:
            if (results / program).exists():
                problem = f"its {program} makes it a program to Codabench, no results"
                remedy = f"Zip the files without {program}."
                raise UploadError(f"{safe(options.submission)}: {problem}", remedy)
        (results / PROGRAMS[1]).write_text(STATUS, encoding="utf-8")
        _unpack(bundle, folder / "bundle")
        task = competition.tasks[0]
        _unpack(folder / "bundle" / task.scoring_program, folder / "program")
        _unpack(folder / "bundle" / task.reference_data, folder / "input" / "ref")
        return _run(Docker(options.engine), competition, folder)


def _unpack(file: Path, target: Path) -> None:
    """Unpack a zip without any ado, as the worker does."""
    try:
        with zipfile.ZipFile(file) as archive:
            target.mkdir(parents=True)
            check_room(archive.infolist(), safe(file), target)
            archive.extractall(target)
    except HostError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{safe(file)}: there is no such file") from error
    except Exception as error:  # zipfile lets many kinds through, from zlib and others
        problem = 'the participant would read "Bad or empty zip file"'
        remedy = "Zip the files, and rehearse the zip."
        text = f"{safe(file)}: {problem} ({safe(str(error))})"
        raise UploadError(text, remedy) from error


def _command(program: Path) -> list[str]:
    text = (program / PROGRAMS[0]).read_text(encoding="utf-8")
    line = re.search(r"^command: *(.+)$", text, re.MULTILINE)
    return shlex.split(line[1]) if line else []


def _run(engine: Docker, competition: Competition, folder: Path) -> Verdict:
    """Run the scoring program in a container like the worker's."""
    writable = [folder / name for name in ("program", "output", "shared")]
    for path in (*writable, folder / "data"):
        path.mkdir(exist_ok=True)
    open_to_all(folder, *writable)
    container = f"flare-rehearsal-{uuid.uuid4().hex}"
    words = ["run", "--rm", "--name", container, "--platform", "linux/amd64"]
    words += ["--userns", "host", "--cap-drop", "ALL"]
    words += ["--security-opt", "no-new-privileges", "--workdir", "/app/program"]
    for line in ("PYTHONUNBUFFERED=1", "http_proxy=", "https_proxy="):
        words += ["--env", line]
    for place in ("program", "output", "shared", "input", "data:ro"):
        words += ["--volume", f"{folder}/{place.partition(':')[0]}:/app/{place}"]
    image = competition.docker_image
    remedy = f"See whether {engine.program} pull {image} works here."
    if not engine.inspect_image(image):  # its time is not counted there, either
        pull = engine.run("pull", image, timeout_s=None)
        if pull.returncode:
            raise not_run(image, pull.stderr, remedy)
    words += [image, *_command(folder / "program")]
    begin = time.monotonic()
    status, log = None, b""
    try:
        run = engine.run(*words, timeout_s=competition.phases[0].execution_time_limit)
        if run.returncode == NOT_STARTED:
            raise not_run(image, run.stderr, remedy)
        status, log = run.returncode, run.stdout + run.stderr
    except NoAnswerError:
        engine.kill(container)
    output = folder / "output"
    return Verdict(
        competition=competition,
        status=status,
        seconds=time.monotonic() - begin,
        log=log.decode("utf-8", "replace").strip(),
        outputs={name: (output / name).read_bytes() for name in files_below(output)},
    )
