"""Runs the built image as the platform would, and says what it would make of that.

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
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flare.challenge.reading import challenge_names
from flare.common.errors import EngineError, InputError
from flare.common.files import at
from flare.common.options import argument, option, positive
from flare.common.text import aligned, listing, safe
from flare.evaluation.errors import UploadError
from flare.measuring.engines.docker import Docker
from flare.platforms.grandchallenge.phase import Phase, problem_at
from flare.platforms.grandchallenge.phase_settings import STANDARD, PhaseOptions
from flare.platforms.grandchallenge.upload import UNEXPECTED, prepare_input
from flare.results.metrics_json import METRICS_JSON

RESERVED_GB = 1
"""Of the memory of an instance, the platform keeps this for itself."""

INSTANCES = ((8, 2), (16, 2), (32, 4))
"""Memory in GB and CPUs of what the platform rents; the first one that is large enough
is taken, with all its memory."""

TIME_LIMIT_S = 3600
"""The platform's default; its staff can change it."""

KILLED = 137
"""Exit status of a container that ran out of the instance's memory."""

LINE_BYTES = 2**16
"""The platform drops a longer line, which is never the message."""

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
            If there is nothing to rehearse, or no such ground truth.
        EngineError
            If the image cannot be used, or does not tell its challenge.
        PhaseSettingsError
            If the settings cannot be read.
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


def rehearse(asked: Options, phase: Phase) -> Run:
    """Run the image on a submission as the platform would, with a phase's memory.

    Raises
    ------
    EngineError
        If the container engine, or the image, cannot be used.
    UploadError
        If the platform would refuse the upload, or the tarball, itself.
    """
    engine, image = Docker(asked.engine), asked.image
    configuration = _inspect(engine, image)
    with tempfile.TemporaryDirectory(
        prefix="flare-rehearsal-", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        _prepare(folder, asked)
        entrypoint, words = configuration.get("Entrypoint"), configuration.get("Cmd")
        gigabytes, cpus = instance_of(phase)
        settings = {
            "command": [*(entrypoint or []), *(words or [])],
            "user": configuration["User"],
            "folder": configuration.get("WorkingDir") or "/",
            "memory_bytes": (gigabytes - RESERVED_GB) << 30,
            "time_limit_s": asked.time_limit_s,
        }
        volumes = {
            Path(__file__).with_name("shim.py"): "/rehearsal/shim.py:ro",
            folder / INPUT: "/opt/ml/input/data/rehearsal-input:ro",
            folder / GROUND_TRUTH: "/opt/ml/input/data/ground_truth:ro",
            folder / OUTPUT: "/output",
            folder / RESULT: "/rehearsal/result",
        }
        mounts = [("--volume", f"{path}:{place}") for path, place in volumes.items()]
        command = (
            *("run", "--rm", "--platform", "linux/amd64"),
            *("--network", "none", "--user", "0"),
            *("--cpus", str(min(cpus, os.cpu_count() or 1))),
            *("--memory", f"{gigabytes}g"),
            *("--tmpfs", "/tmp:exec,mode=1777"),
            *("--env", "LOG_LEVEL=INFO", "--env", "no_proxy=amazonaws.com"),
            *("--env", "GRAND_CHALLENGE_COMPONENT_WRITABLE_DIRECTORIES=/output"),
            *(word for mount in mounts for word in mount),
            *("--entrypoint", "python", image, "/rehearsal/shim.py"),
        )
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


def _inspect(engine: Docker, image: str) -> dict[str, Any]:
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


def _challenge_text(engine: Docker, image: str, challenge: str) -> bytes:
    """The file of a challenge that is only in an image."""
    run = engine.run(
        *("run", "--rm", "--platform", "linux/amd64", "--network", "none"),
        *("--entrypoint", "python", image, "-m", "flare", "challenge", "show"),
        challenge,
    )
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
    needed = phase.evaluation_requires_memory_gb
    return next(instance for instance in INSTANCES if instance[0] >= needed)


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


# --- What the platform would make of it -------------------------------------------


def participant_message(stderr: bytes) -> str:
    """What the platform shows of stderr: its last line that is not empty or dropped."""
    kept = (line for line in stderr.split(b"\n") if len(line) <= LINE_BYTES)
    lines = [text for line in kept if (text := line.decode("utf-8", "replace").strip())]
    return (lines or ["No errors were reported in the logs."])[-1][:1024]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the platform would make of a run."""

    run: Run
    phase: Phase
    """Whose leaderboard it is."""
    time_limit_s: float = TIME_LIMIT_S
    """The limit that the run had."""

    @cached_property
    def message(self) -> str:
        """What the participant would see of a failure; empty after a success."""
        run = self.run
        if run.is_late:
            return "Time limit exceeded"
        if run.status == KILLED:
            return "The container was killed as it exceeded its memory limit"
        if run.status:
            return participant_message(run.stderr)
        if run.metrics is None:
            return "Output file 'metrics.json' was not produced"
        try:
            # Its database takes neither; json writes the one as Infinity, the other so.
            written = json.dumps(self._read())
        except UnicodeDecodeError:
            return UNEXPECTED
        except (ValueError, RecursionError):
            return "The output file 'metrics.json' is not valid json"
        is_odd = "Infinity" in written or "\\u0000" in written
        return UNEXPECTED if is_odd else ""

    @cached_property
    def metrics(self) -> Any:
        """What the platform would read of metrics.json, after a success."""
        return None if self.message else self._read()

    def _read(self) -> Any:
        text = (self.run.metrics or b"").decode("utf-8")
        return json.loads(text, parse_constant=lambda _: None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the organiser should know, or repair."""
        return tuple(_warnings(self))

    @property
    def is_ranked(self) -> bool:
        """Whether the result would be on the leaderboard."""
        return not any(problem_at(self.metrics, path) for path in self.phase.ranked)

    def __str__(self) -> str:
        """Return what a rehearsal showed, for the organiser."""
        run, phase = self.run, self.phase
        lines = [
            f"It took {run.seconds:.1f} s; the largest process used"
            f" {run.process_bytes / 2**20:.0f} MiB."
        ]
        keys = ("cases", "challenge", "references")
        about = [safe(str(at(self.metrics, "evaluation", key) or "")) for key in keys]
        if about[1]:
            lines.append(
                "Cases: {}. Challenge: {}. Reference labels: {}.".format(*about)
            )
        lines += [f"For the organiser: {warning}" for warning in self.warnings]
        if self.message:
            log = run.stdout.decode("utf-8", "replace").strip()
            end = "The evaluation would fail. The participant would read:"
            return "\n".join(filter(None, [log, *lines, end]))
        board = ". The" if self.is_ranked else ", and NOT be on the"
        row = "leaderboard's row:" if self.is_ranked else "leaderboard:"
        lines.append(f"The evaluation would succeed{board} {row}")
        titles = (title for title, *_ in phase.columns)
        cells = zip(titles, phase.shown(self.metrics), strict=True)
        return "\n".join([*lines, *(f"  {line}" for line in aligned([*cells]))])


def _warnings(verdict: Verdict) -> Iterator[str]:  # noqa: C901
    run, phase, limit_s = verdict.run, verdict.phase, verdict.time_limit_s
    for stream, content in (("stdout", run.stdout), ("stderr", run.stderr)):
        longest = max(map(len, content.split(b"\n")))
        if longest > LINE_BYTES:
            yield (
                f"A line of {longest} bytes on {stream} would be dropped, and may leave"
                " a warning on stderr: at most 65,536."
            )
    limit = (instance_of(phase)[0] - RESERVED_GB) << 30
    if run.process_bytes * 2 > limit:
        yield (
            f"A process used {run.process_bytes / 2**30:.1f} GiB of the"
            f" {limit >> 30} GiB that it may: set evaluation_requires_memory_gb higher."
        )
    if run.seconds * 2 > limit_s:
        yield (
            f"It took {run.seconds:.0f} s of {limit_s:.0f} s: ask the platform's"
            " staff for a higher evaluation_time_limit."
        )
    if others := [name for name in run.outputs if name != METRICS_JSON]:
        yield f"Other files in /output, which are uploaded as well: {listing(others)}."
    if not verdict.message and run.stderr.strip():
        said = participant_message(run.stderr)
        yield f"A successful run wrote to stderr, which marks it with a warning: {said}"
    for path in () if verdict.message else phase.paths:
        if problem := problem_at(verdict.metrics, path):
            is_ranked = path in phase.ranked
            what = "the result would not be on the leaderboard"
            yield f"{problem}: {what if is_ranked else 'its column would show none'}."
    if phase.display_all_metrics:
        yield (
            "display_all_metrics is on: the DSC of a single case gives away the volume"
            " of its reference."
        )
