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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.common.archives import unpack_own
from flare.common.docker import Docker
from flare.common.errors import EngineError, InputError
from flare.common.options import argument, option, positive
from flare.common.text import safe
from flare.evaluation.errors import UploadError
from flare.platforms.grandchallenge.phase import (
    Phase,
    PhaseOptions,
    parse_phase,
)
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
    settings: PhaseOptions

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
    """What came of running the image."""

    status: int
    """Exit status of the program, or minus the signal that ended it."""
    stdout: bytes
    stderr: bytes
    seconds: float
    process_bytes: int
    """The most that one process had resident."""
    is_late: bool
    """Whether the time limit ended it."""
    outputs: tuple[str, ...]
    """Files below /output."""
    metrics: bytes | None
    """Content of metrics.json, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """What the container gets, and where it writes."""

    input: Path
    ground_truth: Path
    output: Path
    result: Path
    """Gets what `shim.py` tells of the run."""


def rehearse(
    source: Path,
    phase: Phase,
    *,
    image: str,
    engine: str = "docker",
    ground_truth: Path | None = None,
    time_limit_s: float = TIME_LIMIT_S,
) -> Run:
    """Run the image on a submission as the platform would.

    Parameters
    ----------
    source : Path
        As in `upload.prepare_input`.
    phase : Phase
        How much memory there is.
    image : str
        Name of the built image.
    engine : str
        docker or podman.
    ground_truth : Path, optional
        A tarball of reference labels, or a folder to be one.
    time_limit_s : float
        After so many seconds, the platform ends the evaluation.

    Raises
    ------
    EngineError
        If the container engine, or the image, cannot be used.
    UploadError
        If the platform would refuse the upload, or the tarball, itself.
    """
    docker = Docker(engine)
    configuration = _inspect(docker, image)
    with tempfile.TemporaryDirectory(
        prefix="flare-rehearsal-", ignore_cleanup_errors=True
    ) as name:
        folders = _prepare(Path(name), source, ground_truth)
        settings = {
            "command": [
                *(configuration["Entrypoint"] or []),
                *(configuration["Cmd"] or []),
            ],
            "user": configuration["User"],
            "folder": configuration["WorkingDir"] or "/",
            "memory_bytes": (instance_of(phase)[0] - RESERVED_GB) << 30,
            "time_limit_s": time_limit_s,
        }
        command = _run_command(image, folders, instance_of(phase))
        # However long it takes: within it, the time limit ends it.
        run = docker.run(*command, json.dumps(settings), timeout_s=None)
        is_over = (folders.result / "usage.json").exists()
        if not is_over and run.returncode != KILLED:
            problem = run.stderr.decode("utf-8", "replace").strip().splitlines()
            raise EngineError(
                f"{image}: it cannot be run ({safe(' '.join(problem[-1:]))})"
            )
        return _read_run(folders)


def _prepare(folder: Path, source: Path, ground_truth: Path | None) -> Folders:
    """Make the folders of a container, and fill those that it reads."""
    names = ("input", "output", "ground_truth", "result")
    folders = Folders(**{name: folder / name for name in names})
    for name in names:
        (folder / name).mkdir()
    prepare_input(source, folders.input)
    if ground_truth:
        _unpack(ground_truth, folders.ground_truth)
    _open_up(folder)
    folders.output.chmod(0o777)
    return folders


def _run_command(
    image: str, folders: Folders, instance: tuple[int, int]
) -> tuple[str, ...]:
    """The engine's command that runs an image, but for the settings of `shim.py`."""
    gigabytes, cpus = instance
    volumes = {
        Path(__file__).with_name("shim.py"): "/rehearsal/shim.py:ro",
        folders.input: "/opt/ml/input/data/rehearsal-input:ro",
        folders.ground_truth: "/opt/ml/input/data/ground_truth:ro",
        folders.output: "/output",
        folders.result: "/rehearsal/result",
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


def _read_run(folders: Folders) -> Run:
    """What a container has left: without a word of `shim.py`, it was killed."""
    usage_file = folders.result / "usage.json"
    usage = json.loads(usage_file.read_text()) if usage_file.exists() else {}
    stdout, stderr = (
        file.read_bytes() if file.exists() else b""
        for file in (folders.result / "stdout", folders.result / "stderr")
    )
    metrics = folders.output / METRICS_JSON
    return Run(
        status=usage.get("status", KILLED),
        stdout=stdout,
        stderr=stderr,
        seconds=usage.get("seconds", 0.0),
        process_bytes=usage.get("process_bytes", 0),
        is_late=usage.get("is_late", False),
        outputs=tuple(
            sorted(
                path.relative_to(folders.output).as_posix()
                for path in folders.output.rglob("*")
                if not path.is_dir()
            )
        ),
        metrics=metrics.read_bytes() if metrics.is_file() else None,
    )


def _inspect(engine: Docker, image: str) -> dict[str, Any]:
    """The configuration of an image that the platform would accept."""
    if not engine.is_installed():
        raise EngineError(
            f"{safe(engine.program)}: it cannot be run; install Docker or Podman"
        )
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
    return {key: found["Config"].get(key) for key in _CONFIGURATION}


_CONFIGURATION = ("Entrypoint", "Cmd", "User", "WorkingDir", "Env")


def instance_of(phase: Phase) -> tuple[int, int]:
    """Memory in GB and CPUs of the instance on which a phase is evaluated."""
    needed = phase.evaluation_requires_memory_gb
    return next(instance for instance in INSTANCES if instance[0] >= needed)


def image_settings(image: str, engine: str = "docker") -> tuple[str, str]:
    """The challenge that an image is for, and its phases' settings as the image prints.

    Both are empty for FLARE21, whose settings are those of phase-settings.json, and for
    an image that names no challenge.

    Raises
    ------
    EngineError
        If the container engine, or the image, cannot be used.
    """
    docker = Docker(engine)
    variables = _inspect(docker, image)["Env"] or []
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


def _open_up(folder: Path) -> None:
    """Let anybody read everything, as the platform does, whoever may so here."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def _unpack(ground_truth: Path, target: Path) -> None:
    """Unpack a tarball of reference labels, or copy a folder that could be one."""
    if not ground_truth.exists():
        raise UploadError(f"{safe(ground_truth)}: there is no such file or folder")
    if ground_truth.is_dir():
        shutil.copytree(ground_truth, target, dirs_exist_ok=True)
        return
    try:
        with tarfile.open(ground_truth, "r:gz") as archive:
            unpack_own(archive, target)
    except Exception as error:  # tarfile lets many kinds through, from zlib and others
        raise UploadError(
            f"{safe(ground_truth)}: it is not a .tar.gz file that can be read"
        ) from error
