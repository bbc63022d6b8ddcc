"""Runs the built image on a submission as the platform would.

What the platform does is described in its own source (grand-challenge.org's components
app and rse-sagemaker-shim); each rule below says what it follows.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flare.common.engine import Engine
from flare.common.errors import EngineError
from flare.common.own_tar import unpack_own
from flare.common.text import listing, safe
from flare.evaluation.organiser_errors import UploadError
from flare.platforms.grandchallenge.phase import Phase, is_rankable, rounded, value_at
from flare.platforms.grandchallenge.upload import prepare_input
from flare.results.metrics_json import METRICS_JSON
from flare.results.metrics_reading import evaluation_text

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
    docker = Engine(engine)
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


def _inspect(engine: Engine, image: str) -> dict[str, Any]:
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
    docker = Engine(engine)
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


MESSAGE_CHARACTERS = 1024
"""The platform cuts a message there."""

LINE_BYTES = 2**16
"""The platform drops a longer line, which is never the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the platform would make of a run."""

    message: str
    """What the participant would see of a failure; empty after a success."""
    row: tuple[tuple[str, str], ...]
    """The leaderboard's columns and what would stand there."""
    warnings: tuple[str, ...]
    """What the organiser should know, or repair."""
    is_ranked: bool = False
    """Whether the result would be on the leaderboard."""
    about: str = ""
    """How many cases were scored, by which rules, with which labels."""
    references: str = ""
    """Which labels: "bundled" or "tarball"; empty if there is no result."""


def judge(run: Run, phase: Phase, *, time_limit_s: float = TIME_LIMIT_S) -> Verdict:
    """Say what a participant and an organiser would see.

    Parameters
    ----------
    run : Run
        What came of the image.
    phase : Phase
        Whose leaderboard it is.
    time_limit_s : float
        The limit that the run had.
    """
    warnings = [*_long_lines(run), *_near_limits(run, phase, time_limit_s)]
    others = [name for name in run.outputs if name != METRICS_JSON]
    if others:
        warnings.append(
            f"Other files in /output, which are uploaded as well: {listing(others)}."
        )
    message = _failure(run)
    row: tuple[tuple[str, str], ...] = ()
    is_ranked, about, references = False, "", ""
    if not message:
        if run.stderr.strip():
            warnings.append(
                "A successful run wrote to stderr, which marks it with a warning:"
                f" {participant_message(run.stderr)}"
            )
        metrics = json.loads(run.metrics or b"", parse_constant=lambda _: None)
        row = _row(metrics, phase)
        warnings += _path_problems(metrics, phase)
        values = [value_at(metrics, path) for path in phase.ranked]
        is_ranked = all(map(is_rankable, values))
        about = _about(metrics)
        references = evaluation_text(metrics, "references")
    if phase.display_all_metrics:
        warnings.append(
            "display_all_metrics is on: the DSC of a single case gives away the volume"
            " of its reference."
        )
    return Verdict(
        message=message,
        row=row,
        warnings=tuple(warnings),
        is_ranked=is_ranked,
        about=about,
        references=references,
    )


def participant_message(stderr: bytes) -> str:
    """What the platform shows of stderr: its last line that is not empty or dropped."""
    lines = [
        line.decode("utf-8", "replace")
        for line in stderr.split(b"\n")
        if len(line) <= LINE_BYTES
    ]
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return "No errors were reported in the logs."
    return lines[-1][:MESSAGE_CHARACTERS]


def _about(metrics: object) -> str:
    """How many cases were scored, by which rules, with which labels."""
    keys = ("cases", "challenge", "references")
    cases, challenge, references = (safe(evaluation_text(metrics, key)) for key in keys)
    if not challenge:
        return ""
    return f"Cases: {cases}. Challenge: {challenge}. Reference labels: {references}."


def _failure(run: Run) -> str:
    """The message of a run that failed; empty if it succeeded."""
    if run.is_late:
        return "Time limit exceeded"
    if run.status == KILLED:
        return "The container was killed as it exceeded its memory limit"
    if run.status:
        return participant_message(run.stderr)
    if run.metrics is None:
        return "Output file 'metrics.json' was not produced"
    try:
        text = run.metrics.decode("utf-8")
    except UnicodeDecodeError:
        return "An unexpected error occurred"
    try:
        metrics = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return "The output file 'metrics.json' is not valid json"
    # Its database takes neither; json writes the one as Infinity, the other so.
    written = json.dumps(metrics)
    if "Infinity" in written or "\\u0000" in written:
        return "An unexpected error occurred"
    return ""


def _long_lines(run: Run) -> Iterator[str]:
    """Warn of lines that the platform would drop."""
    for stream, content in (("stdout", run.stdout), ("stderr", run.stderr)):
        longest = max(map(len, content.split(b"\n")))
        if longest > LINE_BYTES:
            yield (
                f"A line of {longest} bytes on {stream} would be dropped, and may leave"
                " a warning on stderr: at most 65,536."
            )


def _near_limits(run: Run, phase: Phase, time_limit_s: float) -> Iterator[str]:
    """Warn of what took more than half of what there is."""
    limit = (instance_of(phase)[0] - RESERVED_GB) << 30
    if run.process_bytes * 2 > limit:
        yield (
            f"A process used {run.process_bytes / 2**30:.1f} GiB of the"
            f" {limit >> 30} GiB that it may: set evaluation_requires_memory_gb higher."
        )
    if run.seconds * 2 > time_limit_s:
        yield (
            f"It took {run.seconds:.0f} s of {time_limit_s:.0f} s: ask the platform's"
            " staff for a higher evaluation_time_limit."
        )


def _row(metrics: object, phase: Phase) -> tuple[tuple[str, str], ...]:
    """The score and the extra columns as the leaderboard shows them."""
    places = phase.score_decimal_places

    def cell(path: str, error_path: str) -> str:
        values = [value_at(metrics, p) for p in (path, error_path) if p]
        return " ± ".join(
            rounded(v, places) if is_rankable(v) else str(v or "-") for v in values
        )

    return (
        (phase.score_title, cell(phase.score_jsonpath, phase.score_error_jsonpath)),
        *((c.title, cell(c.path, c.error_path)) for c in phase.extra_results_columns),
    )


def _path_problems(metrics: object, phase: Phase) -> Iterator[str]:
    """Warn of paths that lead to no number."""
    for path in phase.paths:
        value = value_at(metrics, path)
        if not is_rankable(value):
            found = "is not there" if value == "" else "is null or no number"
            if path in phase.ranked:
                yield f"{path} {found}: the result would not be on the leaderboard."
            else:
                yield f"{path} {found}: its column would show none."


def verdict_text(run: Run, verdict: Verdict) -> str:
    """What a rehearsal showed, for the organiser."""
    lines = [
        f"It took {run.seconds:.1f} s; the largest process used"
        f" {run.process_bytes / 2**20:.0f} MiB."
    ]
    if verdict.about:
        lines.append(verdict.about)
    lines += [f"For the organiser: {warning}" for warning in verdict.warnings]
    if verdict.message:
        log = run.stdout.decode("utf-8", "replace").strip()
        lines = [log, *lines, "The evaluation would fail. The participant would read:"]
    else:
        width = max(len(title) for title, _ in verdict.row)
        if verdict.is_ranked:
            lines.append("The evaluation would succeed. The leaderboard's row:")
        else:
            lines.append("The evaluation would succeed, and NOT be on the leaderboard:")
        lines += [f"  {title.ljust(width)}  {cell}" for title, cell in verdict.row]
    return "\n".join(line for line in lines if line)
