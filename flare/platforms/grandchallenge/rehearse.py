"""Runs the built image on a submission as the platform would.

The platform's own source describes its rules (grand-challenge.org's components app and
rse-sagemaker-shim); each rule below says what it follows.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flare.challenge.reading import challenge_names
from flare.common.errors import EngineError, InputError
from flare.common.options import option, positive
from flare.common.schema import build
from flare.common.text import safe
from flare.evaluation.errors import UploadError
from flare.measuring.engines.docker import Docker
from flare.platforms.grandchallenge.phase import Phase
from flare.platforms.grandchallenge.phase_settings import STANDARD, PhaseOptions
from flare.platforms.grandchallenge.upload import prepare_input
from flare.platforms.rehearsal import (
    SubmissionOptions,
    files_below,
    not_run,
    open_to_all,
)
from flare.results.metrics_json import METRICS_JSON

RESERVED_GB = 1
"""Of the memory of an instance, the platform keeps this for itself."""

INSTANCES = ((8, 2), (16, 2), (32, 4))
"""Memory in GB and CPUs of the computers that the platform rents; the first one that is
large enough is taken, with all its memory."""

TIME_LIMIT_S = 3600
"""The platform's default; its staff can change it."""

KILLED = 137
"""Exit status of a container that ran out of the instance's memory."""

INPUT, GROUND_TRUTH, OUTPUT = "input", "ground_truth", "output"
"""Folders that the container gets, and the one that it writes to."""

RESULT = "result"
"""The folder into which `shim.py` writes the outcome of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RehearsalOptions(SubmissionOptions):
    """What is rehearsed, and how."""

    ground_truth: Path | None = option(
        "The phase's ground truth tarball (default: none, so the image's references).",
        default=None,
        metavar="TAR.GZ|DIR",
    )
    image: str = option(
        "Run this image (default: $FLARE_IMAGE, else flare-eval).",
        default="flare-eval",
        envvar="FLARE_IMAGE",
        metavar="NAME",
    )
    time_limit_s: int = option(
        "End it after S seconds (default: an hour, as on the platform).",
        default=TIME_LIMIT_S,
        parse=positive,
        metavar="S",
    )
    settings: PhaseOptions = field(default_factory=PhaseOptions)

    def phase(self) -> Phase:
        """The phase, by the settings of the image's challenge if none are given.

        An InputError is raised if there is nothing to rehearse, or no such ground
        truth. An EngineError is raised if the image cannot be used, or does not tell
        its challenge. A PhaseSettingsError is raised if the settings cannot be read.
        """
        for path in filter(None, (self.submission, self.ground_truth)):
            if not path.exists():
                raise InputError(f"{safe(path)}: there is no such file or folder")
        if self.settings.phase_settings:
            return self.settings.read()
        engine = Docker(self.engine)
        variables = _inspect(engine, self.image).get("Env") or []
        environment = dict(variable.partition("=")[::2] for variable in variables)
        challenge = environment.get("FLARE_CHALLENGE") or STANDARD
        if challenge in challenge_names():
            return self.settings.read(challenge)
        with tempfile.TemporaryDirectory(prefix="flare-rehearsal-") as folder:
            file = Path(folder, f"{Path(challenge).name}.toml")
            file.write_bytes(_challenge_text(engine, self.image, challenge))
            return self.settings.read(str(file))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcome of running the image; without a word of `shim.py`, it was killed."""

    status: int = KILLED
    """Exit status of the program, or minus the signal that ended it."""
    stdout: bytes = b""
    stderr: bytes = b""
    seconds: float = 0.0
    process_bytes: int = 0
    """The most that one process had resident."""
    is_late: bool = False
    """Whether the time limit ended it."""
    outputs: tuple[str, ...] = ()
    """Files below /output."""
    metrics: bytes | None = None
    """Content of metrics.json, if there is one."""


def rehearse(options: RehearsalOptions, phase: Phase) -> Run:
    """Run the image on a submission as the platform would, with a phase's memory.

    An EngineError is raised if the container engine, or the image, cannot be used. A
    UploadError is raised if the platform would refuse the upload, or the tarball,
    itself.
    """
    engine, image = Docker(options.engine), options.image
    configuration = _inspect(engine, image)
    with tempfile.TemporaryDirectory(
        prefix="flare-rehearsal-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        _prepare(folder, options)
        memory_gb, _ = instance_of(phase)
        settings = {
            "command": [
                *(configuration.get("Entrypoint") or []),
                *(configuration.get("Cmd") or []),
            ],
            "user": configuration["User"],
            "folder": configuration.get("WorkingDir") or "/",
            "memory_bytes": (memory_gb - RESERVED_GB) << 30,
            "time_limit_s": options.time_limit_s,
        }
        command = [*_command(image, folder, phase), json.dumps(settings)]
        # The engine waits without an end: the time limit within the container ends it.
        run = engine.run(*command, timeout_s=None)
        is_over = (folder / RESULT / "usage.json").exists()
        if not is_over and run.returncode != KILLED:
            raise not_run(image, run.stderr)
        return _read_run(folder)


def _command(image: str, folder: Path, phase: Phase) -> list[str]:
    """The engine's command that runs `shim.py` in an image, but for its settings."""
    memory_gb, cpus = instance_of(phase)
    command = [
        *("run", "--rm", "--platform", "linux/amd64"),
        *("--network", "none", "--user", "0"),
        *("--cpus", str(min(cpus, os.cpu_count() or 1))),
        *("--memory", f"{memory_gb}g"),
        *("--tmpfs", "/tmp:exec,mode=1777"),
        *("--env", "LOG_LEVEL=INFO", "--env", "no_proxy=amazonaws.com"),
        *("--env", "GRAND_CHALLENGE_COMPONENT_WRITABLE_DIRECTORIES=/output"),
    ]
    volumes = {
        Path(__file__).with_name("shim.py"): "/rehearsal/shim.py:ro",
        folder / INPUT: "/opt/ml/input/data/rehearsal-input:ro",
        folder / GROUND_TRUTH: "/opt/ml/input/data/ground_truth:ro",
        folder / OUTPUT: "/output",
        folder / RESULT: "/rehearsal/result",
    }
    for path, place in volumes.items():
        command += ["--volume", f"{path}:{place}"]
    return [*command, "--entrypoint", "python", image, "/rehearsal/shim.py"]


def _prepare(folder: Path, options: RehearsalOptions) -> None:
    for name in (INPUT, GROUND_TRUTH, OUTPUT, RESULT):
        (folder / name).mkdir()
    prepare_input(options.submission, folder / INPUT)
    if options.ground_truth:
        _unpack(options.ground_truth, folder / GROUND_TRUTH)
    open_to_all(folder, folder / OUTPUT)


def _read_run(folder: Path) -> Run:
    def content(*names: str) -> bytes | None:
        file = folder.joinpath(*names)
        return file.read_bytes() if file.is_file() else None

    return replace(
        build(Run, json.loads(content(RESULT, "usage.json") or b"{}")),
        stdout=content(RESULT, "stdout") or b"",
        stderr=content(RESULT, "stderr") or b"",
        outputs=files_below(folder / OUTPUT),
        metrics=content(OUTPUT, METRICS_JSON),
    )


def _inspect(engine: Docker, image: str) -> dict[str, Any]:
    """The configuration of an image that the platform would accept."""
    description = engine.inspect_image(image)
    if not description:
        raise EngineError(
            f"{image}: there is no such image, or {engine.program} does not answer"
        )
    configuration: dict[str, Any] = description["Config"]
    user = (configuration.get("User") or "").partition(":")[0]
    if user.lower() in ("", "root", "0"):
        raise EngineError(f"{image}: its USER is root, which the platform refuses")
    architecture = description["Architecture"]
    if architecture != "amd64":
        raise EngineError(f"{image}: it is for {architecture}, not for amd64")
    return configuration


def _challenge_text(engine: Docker, image: str, challenge: str) -> bytes:
    command = [
        *("run", "--rm", "--platform", "linux/amd64", "--network", "none"),
        *("--entrypoint", "python", image, "-m", "flare", "challenge", "show"),
    ]
    run = engine.run(*command, challenge)
    if run.returncode:
        problem = f"{image}: it does not tell its challenge, {safe(challenge)}"
        remedy = (
            "Build it anew, or give what flare phase-settings --challenge FILE prints"
            " as --phase-settings."
        )
        raise EngineError(problem, remedy)
    return run.stdout


def instance_of(phase: Phase) -> tuple[int, int]:
    """Memory in GB and CPUs of the instance on which a phase is evaluated."""
    required_gb = phase.evaluation_requires_memory_gb
    return next(instance for instance in INSTANCES if instance[0] >= required_gb)


def _unpack(ground_truth: Path, target: Path) -> None:
    if ground_truth.is_dir():
        shutil.copytree(ground_truth, target, dirs_exist_ok=True)
        return
    try:
        with tarfile.open(ground_truth, "r:gz") as archive:
            # An attribute, which Python before 3.11.4 does not look at.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(target)
    except Exception as error:  # tarfile lets many kinds through, from zlib and others
        raise UploadError(
            f"{safe(ground_truth)}: it is not a .tar.gz file that can be read"
        ) from error
