"""Opens boxes: namespaces in which a container is run, and which are ended whole."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from flare.common.engine import ANSWER_S
from flare.common.errors import EngineError
from flare.common.machine import size_bytes
from flare.common.text import safe, why
from flare.measuring.container_command import Limits

SCRIPT = Path(__file__).with_name("box.sh")
"""Process 1 of a box."""

UNSHARE = (
    "unshare",
    # Root of the box is the user who measures; it needs to be root to mount anything.
    *("--user", "--map-root-user"),
    # What is mounted here is seen here alone, and vanishes with the last process.
    *("--mount", "--mount-proc"),
    # When process 1 ends, all end.
    *("--pid", "--fork", "--kill-child"),
    # Nothing is fetched while time runs, and no image leaves the computer.
    "--net",
    "--ipc",
)
"""Makes the namespaces of a box, which needs no root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Namespaces, and two folders in memory that are seen in them alone."""

    process: subprocess.Popen[bytes]
    """Ends with process 1 of the box."""
    outputs: Path
    """What a container writes to; outside of the box, it is empty."""
    shm: Path
    """Becomes /dev/shm of the container."""

    @property
    def root(self) -> Path:
        """The files of this computer as they are seen in the box."""
        return Path(f"/proc/{self.process.pid}/root")

    def begin(
        self,
        *command: str,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Begin a command in the box, as its root, and do not wait for it.

        Parameters
        ----------
        *command : str
            What is run.
        stdout, stderr : int
            As in `subprocess.Popen`; nothing is kept unless told.
        environment : mapping, optional
            All variables that it gets; those of this process if nothing is said.
        """
        return subprocess.Popen(
            [*self._nsenter(), "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            umask=0o022,  # as in a container of Docker
            start_new_session=True,  # Ctrl-C is for us alone
        )

    def _nsenter(self) -> Sequence[str]:
        """The command that enters the box; the user stays the same."""
        pid = self.process.pid
        return (
            *("nsenter", "--target", str(pid), "--user", "--preserve-credentials"),
            *("--mount", "--net", "--ipc", f"--pid=/proc/{pid}/ns/pid_for_children"),
        )

    def check(self) -> None:
        """See that the box is still there.

        Raises
        ------
        EngineError
            If it is not.
        """
        if self.process.poll() is not None:
            problem = "a container's namespaces have ended before their time"
            raise EngineError(problem, "Measure it again.")

    def end(self) -> None:
        """End every process of the box.

        Raises
        ------
        EngineError
            If one does not end.
        """
        if self.process.stdin:
            with suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ANSWER_S)
            problem = "a container cannot be ended"
            raise EngineError(problem, "Restart this computer, and go on.") from error


@contextmanager
def opened_box(outputs: Path, shm: Path, limits: Limits) -> Iterator[Box]:
    """A box, which is ended in the end, or when this process is killed.

    Parameters
    ----------
    outputs, shm : Path
        Empty folders, in the place of which it has folders in memory.
    limits : Limits
        The sizes of both.

    Yields
    ------
    Box
        In which commands can be run.

    Raises
    ------
    EngineError
        If this user, or this computer, cannot have one.
    """
    files = f",nr_inodes={limits.output_files}"
    script = SCRIPT.read_text(encoding="utf-8")
    command = (
        *(*UNSHARE, "sh", "-c", script, SCRIPT.name),
        *(str(outputs), _memory(limits.output_size) + files),
        *(str(shm), _memory(limits.shm_size)),
    )
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        problem = f"unshare: it cannot be run ({why(error)})"
        raise EngineError(problem, "Install util-linux.") from error
    box = Box(process=process, outputs=outputs, shm=shm)
    try:
        _await_ready(process)
        yield box
    finally:
        try:
            box.end()
        finally:
            for pipe in (process.stdout, process.stderr):
                if pipe:
                    pipe.close()


def _memory(size: str) -> str:
    """Options of a folder in memory, to which any user of an image can write."""
    return f"size={size_bytes(size)},mode=0777,nosuid,nodev"


def _await_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until a box is there."""
    said = process.stdout.readline() if process.stdout else b""
    if said == b"ready\n":
        return
    told = process.stderr.read() if process.stderr else b""
    line = next(iter(told.decode("utf-8", "replace").splitlines()), "no word")
    problem = f"no namespaces can be made for a container ({safe(line)})"
    remedy = "Ask who runs this computer to let users make user namespaces."
    raise EngineError(problem, remedy)
