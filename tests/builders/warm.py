"""Runs the program in copies of a process that has imported what it needs.

To start Python and import NumPy takes longer than what most tests look at. Everything
else is as in a new process: arguments, environment, streams, signals, exit status.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NoReturn, TextIO

ROOT = Path(__file__).parents[2]

PROGRAMS = {("evaluate.py",): "main_evaluate", ("-m", "flare"): "main"}
"""What can be run, and what of flare.cli.main is called for it; beside ("-c", code)."""

SCORING = (
    "click",
    "flare.cli.commands.check",
    "flare.cli.commands.evaluate",
    "flare.cli.commands.measure",
    "flare.cli.main",
    "flare.evaluation.check",
    "flare.evaluation.scoring.case",
    "flare.evaluation.submission.unpack",
    "flare.results.metrics_json",
    "flare.results.scores",
    # What these load when they begin to work, each copy anew.
    "encodings.ascii",
    "multiprocessing.popen_fork",
    "multiprocessing.synchronize",
    "numpy.ma",
)
"""What is imported for most programs. Nothing of it may read the environment when it is
imported: each copy has another one."""

RANKING = (
    *SCORING,
    "flare.cli.commands.rank",
    "flare.cli.commands.score",
    "flare.evaluation.many.score",
    "flare.ranking.rank",
    "flare.reports.ranking.files",
    "flare.reports.ranking.ranking",
    "scipy.stats",
)
"""What is imported for programs that need tables: a copy of so much takes longer."""

PLATFORM = (
    *SCORING,
    "flare.cli.commands.serve",
    "flare.platforms.grandchallenge.external",
    "flare.platforms.serving.service",
    "urllib.request",
)
"""What is imported for programs that ask a platform."""

CLUSTER = (
    *SCORING,
    "distributed.cli.dask_scheduler",
    "distributed.cli.dask_worker",
    "flare.evaluation.many.cluster",
    "flare.measuring.lanes.cluster",
    "flare.measuring.lanes.dispatch",
    "flare.measuring.lanes.cluster",
)
"""What is imported for a scheduler of Dask, its workers, and who measures on them."""

COMMANDS = {
    **dict.fromkeys(("rank", "leaderboard", "simulate", "score"), RANKING),
    **dict.fromkeys(("serve", "download"), PLATFORM),
}
"""What is imported for commands that need more than `SCORING`."""

_servers: dict[tuple[int, tuple[str, ...]], socket.socket] = {}


def run_warm(
    program: tuple[str, ...],
    arguments: list[str],
    *,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    timeout: float | None = None,
    modules: tuple[str, ...] = (),
    limits: dict[str, int] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end; its streams come back as bytes.

    `modules` have been imported; those that its command needs if not given. `limits`
    are those of the module resource, such as RLIMIT_DATA.
    """
    modules = modules or COMMANDS.get(arguments[0] if arguments else "", SCORING)
    settings = {"cwd": cwd, "env": env, "modules": modules, "limits": limits}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = WarmProcess(program, arguments, out, err, **settings)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        written = _content(out), _content(err)
    return subprocess.CompletedProcess(process.args, status, *written)


def _content(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


class WarmProcess:
    """A program that runs; it can be asked what a subprocess.Popen can be asked.

    Parameters
    ----------
    program, arguments, cwd, env, modules, limits
        As in `run_warm`.
    out, err : file
        Get what it writes.
    """

    def __init__(
        self,
        program: tuple[str, ...],
        arguments: list[str],
        out: BinaryIO,
        err: BinaryIO,
        *,
        modules: tuple[str, ...],
        cwd: Path = ROOT,
        env: dict[str, str] | None = None,
        limits: dict[str, int] | None = None,
    ) -> None:
        self.args = [sys.executable, *program, *arguments]
        self.returncode: int | None = None
        self._streams = out, err
        environment = dict(os.environ if env is None else env)
        asked = json.dumps([program, arguments, str(cwd), environment, limits or {}])
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with (
            theirs,
            Path(os.devnull).open("rb") as nothing,
            tempfile.TemporaryFile() as request,
        ):
            request.write(asked.encode("utf-8", "surrogateescape"))
            request.seek(0)
            files = [f.fileno() for f in (request, nothing, out, err, theirs)]
            socket.send_fds(_server(modules), [b"run"], files)
        self.pid = int(self._told.recv(32))

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = int(self._told.recv(32))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._told.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, ...]:
        self.wait(timeout)
        return tuple(_content(file).decode() for file in self._streams)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(
                ProcessLookupError
            ):  # it has just ended, and is yet to be told
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _server(modules: tuple[str, ...]) -> socket.socket:
    """The process that is copied; each process of the tests has its own."""
    key = os.getpid(), modules
    if key not in _servers:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            # This file, and not its package, which imports much that no program needs.
            [sys.executable, "-P", __file__, str(theirs.fileno()), *modules],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        _servers[key] = ours
        atexit.register(_end, os.getpid(), ours, process)
    return _servers[key]


def _end(owner: int, server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    if os.getpid() == owner:
        server.close()
        process.wait(10)


def serve(number: str, *modules: str) -> None:
    """Run programs until nobody asks any more."""
    server = socket.socket(fileno=int(number))
    sys.path.insert(0, str(ROOT))
    for name in modules:
        with suppress(ModuleNotFoundError):  # not all packages are everywhere
            importlib.import_module(name)
    # What is looked up once in a process: not by each copy.
    importlib.import_module("flare.common.installation").source_commit()
    versions = importlib.import_module("flare.common.installation")
    for name in importlib.import_module("flare.evaluation.plan").LIBRARIES:
        versions.library_version(name)
    gc.collect()
    gc.freeze()  # what is never looked at again is shared with the copies
    while True:
        message, files, _, _ = socket.recv_fds(server, 16, 5)
        if not message:
            return
        if not os.fork():
            server.close()
            _run(files)
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _run(files: list[int]) -> NoReturn:
    """Run a program in a copy of this process, and tell its ID and its status."""
    told = socket.socket(fileno=files.pop())
    pid = os.fork()
    if not pid:
        told.close()
        _become(files)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the program
    for file in files:
        os.close(file)
    with suppress(BrokenPipeError):  # nobody may wait for it
        told.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        told.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(files: list[int]) -> NoReturn:
    """Be the program that was asked for; never come back."""
    status = 1
    try:
        with os.fdopen(files[0], "rb") as request:
            text = request.read().decode("utf-8", "surrogateescape")
        program, arguments, cwd, environment, limits = json.loads(text)
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, name), (most, most))
        for target, file in enumerate(files[1:]):
            os.dup2(file, target)
            os.close(file)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin, sys.stdout, sys.stderr = map(_reopened, range(3))
        sys.argv = [program[-1], *arguments]
        if program[0] == "-c":
            sys.argv[0] = "-c"
            exec(program[1], {"__name__": "__main__"})
            status = 0
        else:
            main = importlib.import_module("flare.cli.main")
            status = getattr(main, PROGRAMS[tuple(program)])()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  as Python does
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 120
    os._exit(status)


def _reopened(number: int) -> TextIO:
    """A standard stream as Python opens it."""
    stream = (sys.stdin, sys.stdout, sys.stderr)[number]
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    buffered = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered, stream.encoding, stream.errors, line_buffering=number == 2
    )


if __name__ == "__main__":
    serve(*sys.argv[1:])
