"""Runs the built image on a submission as the platform would.

What the platform does is described in its own source (grand-challenge.org's components
app and rse-sagemaker-shim); each rule below says what it follows.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flare.common.engine import Engine
from flare.common.errors import EngineError, InputError
from flare.common.options import argument, option, positive
from flare.common.text import safe
from flare.evaluation.errors import UploadError
from flare.platforms.grandchallenge.phase import Phase, parse_phase
from flare.platforms.grandchallenge.phase_settings import PhaseOptions
from flare.platforms.grandchallenge.upload import prepare_input
from flare.results.metrics_json import METRICS_JSON

_log = logging.getLogger(__name__)

RESERVED_GB = 1
"""Of the memory of an instance, the platform keeps this for itself."""

INSTANCES = ((8, 2), (16, 2), (32, 4))
"""Memory in GB and CPUs of what the platform rents; the first one that is large enough
is taken, with all its memory."""

TIME_LIMIT_S = 3600
"""The platform's default; its staff can change it."""

STANDARD_CHALLENGE = "flare21"
"""Whose settings phase-settings.json has."""

KILLED = 137
"""Exit status of a container that ran out of the instance's memory."""

INPUT, GROUND_TRUTH, OUTPUT = "input", "ground_truth", "output"
"""Folders that the container gets, and where it writes."""

RESULT = "result"
"""The folder that gets what `shim.py` tells of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What is rehearsed, and how."""

    submission: Path = argument(
        "What a participant would upload, or an /input with a predictions.json.",
        metavar="FOLDER|ZIP|JOBS_FOLDER",
    )
    ground_truth: Path | None = option(
        "The phase's ground truth tarball (default: none, so the image's labels).",
        default=None,
        metavar="TAR.GZ|DIR",
    )
    output: Path | None = option(
        "Folder that gets a copy of metrics.json.", default=None, metavar="DIR"
    )
    image: str = option(
        "Run this image (default: $FLARE_IMAGE, else flare-eval).",
        default="flare-eval",
        envvar="FLARE_IMAGE",
        metavar="NAME",
    )
    engine: str = option(
        "Run it by docker or podman (default: $FLARE_ENGINE, else docker).",
        default="docker",
        envvar="FLARE_ENGINE",
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

        Raises
        ------
        InputError
            If there is nothing to rehearse.
        EngineError
            As `image_settings`.
        PhaseSettingsError
            If the settings cannot be read.
        """
        if not self.submission.exists():
            raise InputError(
                f"{safe(self.submission)}: there is no such file or folder"
            )
        if self.settings.phase_settings:
            return self.settings.read()
        challenge, found = image_settings(self.image, self.engine)
        if not challenge:
            return self.settings.read()
        _log.info(
            "Phase settings: those that phase-settings prints for %s, the image's"
            " challenge (--phase-settings takes others)",
            safe(challenge),
        )
        source = f"phase-settings of {challenge}"
        return parse_phase(found, self.settings.phase, source=source)


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


def rehearse(asked: Options, phase: Phase) -> Run:
    """Run the image on a submission as the platform would, with a phase's memory.

    Raises
    ------
    EngineError
        If the container engine, or the image, cannot be used.
    UploadError
        If the platform would refuse the upload, or the tarball, itself.
    """
    engine, image = Engine(asked.engine), asked.image
    configuration = _inspect(engine, image)
    with tempfile.TemporaryDirectory(
        prefix="flare-rehearsal-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        _prepare(folder, asked)
        entrypoint, words = configuration.get("Entrypoint"), configuration.get("Cmd")
        settings = {
            "command": [*(entrypoint or []), *(words or [])],
            "user": configuration["User"],
            "folder": configuration.get("WorkingDir") or "/",
            "memory_bytes": (instance_of(phase)[0] - RESERVED_GB) << 30,
            "time_limit_s": asked.time_limit_s,
        }
        command = _run_command(image, folder, instance_of(phase))
        # However long it takes: within it, the time limit ends it.
        run = engine.run(*command, json.dumps(settings), timeout_s=None)
        is_over = (folder / RESULT / "usage.json").exists()
        if not is_over and run.returncode != KILLED:
            problem = run.stderr.decode("utf-8", "replace").strip().splitlines()
            raise EngineError(
                f"{image}: it cannot be run ({safe(' '.join(problem[-1:]))})"
            )
        return _read_run(folder)


def _prepare(folder: Path, asked: Options) -> None:
    for name in (INPUT, GROUND_TRUTH, OUTPUT, RESULT):
        (folder / name).mkdir()
    prepare_input(asked.submission, folder / INPUT)
    if asked.ground_truth:
        _unpack(asked.ground_truth, folder / GROUND_TRUTH)
    # On the platform, everything may be read by any user.
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / OUTPUT).chmod(0o777)


def _run_command(
    image: str, folder: Path, instance: tuple[int, int]
) -> tuple[str, ...]:
    """The engine's command that runs an image, but for the settings of `shim.py`."""
    gigabytes, cpus = instance
    volumes = {
        Path(__file__).with_name("shim.py"): "/rehearsal/shim.py:ro",
        folder / INPUT: "/opt/ml/input/data/rehearsal-input:ro",
        folder / GROUND_TRUTH: "/opt/ml/input/data/ground_truth:ro",
        folder / OUTPUT: "/output",
        folder / RESULT: "/rehearsal/result",
    }
    return (
        *("run", "--rm", "--platform", "linux/amd64"),
        *("--network", "none", "--user", "0"),
        *("--cpus", str(min(cpus, os.cpu_count() or 1))),
        *("--memory", f"{gigabytes}g"),
        *("--tmpfs", "/tmp:exec,mode=1777"),
        *("--env", "LOG_LEVEL=INFO", "--env", "no_proxy=amazonaws.com"),
        *("--env", "GRAND_CHALLENGE_COMPONENT_WRITABLE_DIRECTORIES=/output"),
        *(
            argument
            for path, place in volumes.items()
            for argument in ("--volume", f"{path}:{place}")
        ),
        *("--entrypoint", "python", image, "/rehearsal/shim.py"),
    )


def _read_run(folder: Path) -> Run:
    def content(*names: str) -> bytes | None:
        file = folder.joinpath(*names)
        return file.read_bytes() if file.is_file() else None

    files = (path for path in (folder / OUTPUT).rglob("*") if not path.is_dir())
    return Run(
        **json.loads(content(RESULT, "usage.json") or b"{}"),
        stdout=content(RESULT, "stdout") or b"",
        stderr=content(RESULT, "stderr") or b"",
        outputs=tuple(sorted(str(path.relative_to(folder / OUTPUT)) for path in files)),
        metrics=content(OUTPUT, METRICS_JSON),
    )


def _inspect(engine: Engine, image: str) -> dict[str, Any]:
    """The configuration of an image that the platform would accept."""
    found = engine.inspect_image(image)
    if not found:
        raise EngineError(
            f"{image}: there is no such image, or {engine.program} does not answer"
        )
    user = (found["Config"].get("User") or "").partition(":")[0]
    if user.lower() in ("", "root", "0"):
        raise EngineError(f"{image}: its USER is root, which the platform refuses")
    if found["Architecture"] != "amd64":
        raise EngineError(f"{image}: it is for {found['Architecture']}, not for amd64")
    configuration: dict[str, Any] = found["Config"]
    return configuration


def instance_of(phase: Phase) -> tuple[int, int]:
    """Memory in GB and CPUs of the instance on which a phase is evaluated."""
    needed = phase.evaluation_requires_memory_gb
    return next(instance for instance in INSTANCES if instance[0] >= needed)


def image_settings(image: str, engine: str = "docker") -> tuple[str, str]:
    """The challenge that an image is for, and its phases' settings as the image prints.

    Both are empty for FLARE21, whose settings are those of phase-settings.json, and for
    an image that names no challenge.

    Raises an `EngineError` if the container engine, or the image, cannot be used.
    """
    docker = Engine(engine)
    variables = _inspect(docker, image).get("Env") or []
    environment = dict(variable.partition("=")[::2] for variable in variables)
    challenge = environment.get("FLARE_CHALLENGE") or STANDARD_CHALLENGE
    if challenge == STANDARD_CHALLENGE:
        return "", ""
    run = docker.run(
        *("run", "--rm", "--network", "none", "--entrypoint", "python"),
        *(image, "-m", "flare", "phase-settings"),
    )
    if run.returncode:
        raise EngineError(
            f"{image}: it does not tell the settings of {safe(challenge)}'s phases",
            "Build it anew, or give --phase-settings.",
        )
    return challenge, run.stdout.decode("utf-8", "replace")


def _unpack(ground_truth: Path, target: Path) -> None:
    if not ground_truth.exists():
        raise UploadError(f"{safe(ground_truth)}: there is no such file or folder")
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
