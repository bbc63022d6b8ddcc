"""Docker, or Podman, through its command: the one place that knows what it answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from flare.common.environment import end_with
from flare.common.errors import EngineError
from flare.common.text import safe, why
from flare.measuring.engines.flags import create_words
from flare.measuring.engines.interface import (
    ANSWER_S,
    Container,
    Engine,
    Exit,
    NoAnswerError,
    NotRemovedError,
)
from flare.results.measurement_json import EngineRecord

_RESTART = "Restart Docker, and go on."

LOG_LINES = 20_000
"""Lines at the end of a log that are asked for."""

_LIMITS = {"MemoryLimit": "memory", "SwapLimit": "swap", "PidsLimit": "processes"}
"""Limits that an engine can have, as it calls them, and as we do."""

LEFTOVERS = Path(__file__).with_name("remove_leftovers.sh")
"""The program of the guard of a measurement."""

_PROCESSES = ("dockerd", "containerd", "podman")
"""Programs that an engine is."""

_CONTENT = re.compile(
    r"register layer|processing tar|apply(ing )?layer|tar header|diff ?id|xattr|unpack",
    re.IGNORECASE,
)
"""Engines say this where they cannot use what an image holds."""

_CONFIGURATION = re.compile(r"json: cannot unmarshal|parsing time|invalid character")
"""They say this of its configuration, whose fields may be called Timeout."""

_HOST = re.compile(
    r"no space|quota|input/output|memory|open files|read-only|connect|time ?out"
    r"|deadline|kill|cancel",
    re.IGNORECASE,
)
"""They say this where the computer is why."""

_MAYBE_HOST = re.compile(r"busy|denied|refused|EOF")
"""They say this of it where they do not name what the image holds."""

_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
"""Names of files, as some messages have them,"""

_PATH = re.compile(r"(?<![^\s(])/")
"""and where one begins in others."""

_TAIL = re.compile(r"(\)|: unknown|: exit status \d+)+\s*\Z")
"""Words that may come behind the reason."""


class Docker(Engine):
    """Docker, or what stands in for it, through its command: a name or a path."""

    def __init__(self, program: str = "docker") -> None:
        self.program = program

    # --- Its command --------------------------------------------------------------

    def begin(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Begin a command, and do not wait for it."""
        return subprocess.Popen(
            [self.program, *arguments],
            preexec_fn=_end_with_us(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def run(
        self,
        *arguments: str,
        timeout_s: float | None = ANSWER_S,
        content: bytes = b"",
        stderr: int = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the engine, whether it fails or not.

        It can read `content`, and is killed after `timeout_s`; None if it may take for
        ever. An EngineError is raised if there is no such engine, or it does not
        answer.
        """
        try:
            return subprocess.run(
                [self.program, *arguments],
                input=content,
                stdout=subprocess.PIPE,
                stderr=stderr,
                check=False,
                timeout=timeout_s,
                preexec_fn=_end_with_us(),
            )
        except OSError as error:
            problem = f"{safe(self.program)}: it cannot be run ({why(error)})"
            raise EngineError(problem, "Install Docker, and start it.") from error
        except subprocess.TimeoutExpired as error:
            problem = f"{self.program} {arguments[0]}: no answer for {timeout_s:.0f} s"
            raise NoAnswerError(problem, _RESTART) from error

    def call(self, *arguments: str, check: bool = True, **options: Any) -> str:
        """The text that a command of the engine prints; `options` are those of `run`.

        An EngineError is raised if it fails, or does not answer.
        """
        run = self.run(*arguments, **options)
        if run.returncode and check:
            raise self.failure(run.stderr, arguments[0])
        return run.stdout.decode("utf-8", "replace").strip()

    def failure(self, stderr: bytes, command: str) -> EngineError:
        """The error of a command that has failed, by the first line that it wrote."""
        line = stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        problem = f"{self.program} {command}: {safe(line.rstrip())}"
        return EngineError(problem, "See that Docker runs, and that you may use it.")

    # --- Itself -------------------------------------------------------------------

    def describe(self) -> EngineRecord:
        info = self._read_json("info", "--format", "{{json .}}")
        if not info.get("ServerVersion"):
            problem = f"{self.program}: no engine answers"
            raise EngineError(problem, "Start Docker, and see that you may use it.")
        command = ("version", "--format", "{{json .Server}}")
        server = self._read_json(*command, check=False)
        versions = {
            str(part.get("Name", "")).lower(): str(part.get("Version", ""))
            for part in server.get("Components") or []
        }
        return {
            "version": str(info["ServerVersion"]),
            "containerd": versions.get("containerd", ""),
            "runc": versions.get("runc", ""),
            "nvidia_toolkit": _toolkit_version(),
            "runtimes": sorted(info.get("Runtimes") or {}),
            "default_runtime": str(info.get("DefaultRuntime", "")),
            "security": [str(option) for option in info.get("SecurityOptions") or []],
            "limits": [name for key, name in _LIMITS.items() if not info.get(key)],
            "storage": str(info.get("Driver", "")),
            "cgroups": str(info.get("CgroupVersion", "")),
            "kernel": str(info.get("KernelVersion", "")),
            "system": str(info.get("OperatingSystem", "")),
            "folder": str(info.get("DockerRootDir", "")),
        }

    def busy_s(self, processes: Path = Path("/proc")) -> float | None:
        ticks: list[int] = []
        for folder in processes.glob("[0-9]*"):
            # A process may end meanwhile.
            with suppress(OSError):
                stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                name, _, fields = stat.partition("(")[2].rpartition(") ")
                if name in _PROCESSES:
                    # The 14th and the 15th of all: its own, and in the kernel for it.
                    ticks += map(int, fields.split()[11:13])
        return sum(ticks) / os.sysconf("SC_CLK_TCK") if ticks else None

    def folder(self) -> Path | None:
        return self._folder if self._folder.is_dir() else None

    @cached_property
    def _folder(self) -> Path:
        info = self._read_json("info", "--format", "{{json .}}")
        return Path(str(info.get("DockerRootDir") or "/nowhere"))

    def _read_json(self, *command: str, check: bool = True) -> Mapping[str, Any]:
        """A JSON object that a command prints; empty if it is something else."""
        try:
            value = json.loads(self.call(*command, check=check))
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    # --- Images -------------------------------------------------------------------

    def tags_of(self, *names: str) -> dict[str, frozenset[str]]:
        form = "{{.Id}} {{json .RepoTags}}"
        output = self.call("image", "inspect", "--format", form, *names, check=False)
        lines = [line.partition(" ") for line in output.splitlines()]
        return {
            image.removeprefix("sha256:"): frozenset(json.loads(tags) or ())
            for image, _, tags in lines
        }

    def inspect_image(self, name: str) -> dict[str, Any] | None:
        """All that the engine says of an image; None if it is not there."""
        run = self.run("image", "inspect", name)
        if run.returncode:
            return None
        (image,) = json.loads(run.stdout)
        return dict(image)

    def import_image(self, content: bytes, tag: str) -> str:
        self.call("import", "-", tag, content=content)
        return next(iter(self.tags_of(tag)), "")

    def begin_load(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return self.begin("image", "load", "--quiet", stdin=pipe, stderr=pipe)

    def load_error(self, stderr: bytes) -> tuple[EngineError, bool | None]:
        message = stderr.decode("utf-8", "replace")
        return self.failure(stderr, "image"), is_of_content(message)

    def tag(self, image: str, tag: str) -> None:
        self.call("tag", image, tag)

    def remove_tags(self, *names: str) -> None:
        if names:
            self.call("image", "rm", "--force", *names, check=False)

    def remove_untagged(self, *images: str) -> None:
        for image, tags in self.tags_of(*images).items() if images else ():
            if not tags:
                self.call("image", "rm", f"sha256:{image}", check=False)

    # --- Containers ---------------------------------------------------------------

    def create(self, container: Container) -> str:
        words = (*create_words(container), *container.command)
        return self._make(container.label, words)

    def command_line(self, container: Container) -> str:
        command = (shlex.join(container.command),) if container.command else ()
        return " ".join((self.program, *create_words(container), *command))

    def start(self, container: str) -> subprocess.Popen[bytes]:
        return self.begin("start", "--attach", container)

    def kill(self, container: str) -> None:
        self.call("kill", container, check=False)

    def exit_of(self, container: str) -> Exit:
        text = self.call("inspect", "--format", "{{json .State}}", container)
        state = json.loads(text)
        problem = ""
        if state.get("Error") or state.get("Status") in ("created", "running"):
            problem = str(state.get("Error") or "it did not start")
        return Exit(
            exit_code=int(state.get("ExitCode", -1)),
            runtime_s=_runtime_s(state),
            is_out_of_memory=bool(state.get("OOMKilled")),
            problem=problem,
        )

    def log(self, container: str) -> bytes:
        command = ("logs", "--tail", str(LOG_LINES), container)
        return self.run(*command, stderr=subprocess.STDOUT).stdout

    def written_bytes(self, container: str) -> int:
        command = ("inspect", "--size", "--format", "{{.SizeRw}}", container)
        size = self.call(*command, check=False)
        return int(size) if size.isdigit() else 0

    def remove_container(self, container: str) -> None:
        run = self.run("rm", "--force", "--volumes", container)
        if not run.returncode:
            return  # an engine says so only when it is gone
        if self.call("ps", "--all", "--quiet", "--filter", f"id={container}"):
            raise EngineError(f"container {container[:12]} cannot be removed", _RESTART)

    # --- Volumes ------------------------------------------------------------------

    def make_volume(self, label: str, size: str, files: int) -> str:
        # In memory, where users of this computer cannot reach it.
        options = f"size={size},nr_inodes={files},mode=0777,nosuid,nodev"
        words = ["volume", "create", "--driver", "local", "--label", label]
        words += ["--opt", "type=tmpfs", "--opt", "device=tmpfs"]
        words += ["--opt", f"o={options}"]
        return self.call(*words)

    def hold_volume(
        self, volume: str, at: str, label: str, image: str, command: Sequence[str]
    ) -> str:
        words = ["run", "--detach", "--label", label]
        words += ["--network", "none", "--cap-drop", "ALL"]
        words += ["--security-opt", "no-new-privileges", "--read-only"]
        words += ["--volume", f"{volume}:{at}", image, *command]
        return self._make(label, words)

    def copy_out(self, container: str, folder: str) -> subprocess.Popen[bytes]:
        return self.begin("cp", f"{container}:{folder}/.", "-", stdout=subprocess.PIPE)

    def remove_volume(self, volume: str) -> None:
        self.call("volume", "rm", "--force", volume, check=False)

    # --- All with a label ---------------------------------------------------------

    def _make(self, label: str, words: Sequence[str]) -> str:
        """Make a container; if that fails, remove those made and not started."""
        try:
            return self.call(*words)
        except EngineError:  # the engine may still be at it
            filters = ("--filter", f"label={label}", "--filter", "status=created")
            output = self.call("ps", "--all", "--quiet", *filters, check=False)
            for container in output.split():
                self.call("rm", "--force", "--volumes", container, check=False)
            raise

    def remove_labelled(self, label: str) -> None:
        kinds = (
            (("ps", "--all"), ("rm", "--force", "--volumes")),
            (("volume", "ls"), ("volume", "rm", "--force")),
        )
        for list_command, remove_command in kinds:
            command = (*list_command, "--quiet", "--filter", f"label={label}")
            identities = self.call(*command).split()
            if not identities:
                continue
            self.call(*remove_command, *identities, check=False)
            remaining = self.call(*command).split()
            if remaining:
                problem = f"containers or volumes cannot be removed ({len(remaining)})"
                raise NotRemovedError(problem, _RESTART)

    def guard_command(
        self,
        label: str,
        tags: Sequence[str],
        images: Sequence[str],
        work: Path,
        times_s: Sequence[float],
    ) -> tuple[str, ...]:
        # Its text, not its file, which somebody may replace while it is run.
        script = LEFTOVERS.read_text(encoding="utf-8")
        identities = " ".join(f"sha256:{image}" for image in images)
        what = (f"label={label}", " ".join(tags), identities, str(work))
        start = ("sh", "-c", script, LEFTOVERS.name, self.program)
        return (*start, *what, *map(str, times_s))


def is_of_content(message: str) -> bool | None:
    """Whether an engine that cannot load an image names what the image holds.

    False if it names something of the computer, and None if it names neither.

    The image's author chose the names of files in it, so they decide nothing: what
    counts is what comes before the first one, and the reason behind the last colon.

    "register layer: lsetxattr /kill: invalid argument" is of the content, and "register
    layer: write /x: no space left on device" is of the computer.
    """
    message = _TAIL.sub("", _QUOTED.sub("", message))
    action, *names = _PATH.split(message, maxsplit=1)
    _, colon, reason = "".join(names).rpartition(": ")
    reason = _PATH.split(reason)[0] if colon else ""
    if _CONFIGURATION.search(action) and "connect" not in action:
        return True
    words = f"{action}\n{reason}"
    if _HOST.search(words):
        return False
    if _CONTENT.search(action):
        return True
    return None if words.strip() and not _MAYBE_HOST.search(words) else False


def _end_with_us() -> Callable[[], None] | None:
    """A function that commands call first, so that they end when we are killed.

    While samples are taken, a thread runs, beside which this is not safe.
    """
    return partial(end_with, os.getpid()) if threading.active_count() < 2 else None


def _toolkit_version() -> str:
    for program in ("nvidia-ctk", "nvidia-container-cli"):
        with suppress(EngineError):
            output = Docker(program).call("--version", check=False)
            if version := re.search(r"\d+\.\d+\.\d+", output):
                return version[0]
    return ""


def _runtime_s(state: Mapping[str, Any]) -> float | None:
    """Seconds between the engine's stamps, such as 2026-11-20T15:00:00.123456789Z.

    Too short where the computer is busy: Docker 20 stamps a start only after it.
    """
    try:
        start = datetime.fromisoformat(str(state["StartedAt"]))
        end = datetime.fromisoformat(str(state["FinishedAt"]))
    except (KeyError, ValueError):
        return None
    return max(0.0, (end - start).total_seconds())
