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
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TextIO

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
    "flare.evaluation.references",
    "flare.evaluation.scoring.pool",
    "flare.evaluation.submission.unpacking",
    "flare.results.metrics_json",
    "flare.results.scores_table",
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
    "flare.evaluation.many.evaluate_many",
    "flare.ranking.rank",
    "flare.reports.ranking.files",
    "flare.reports.ranking.ranking",
    "scipy.stats",
)
"""What is imported for programs that need tables: a copy of so much takes longer."""

PLATFORM = (
    *SCORING,
    "flare.cli.commands.serve",
    "flare.cli.serving",
    "flare.platforms.grandchallenge.external_phase",
    "flare.platforms.serving.service",
    "gcapi",
)
"""What is imported for programs that ask a platform."""

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
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end; its streams come back as bytes.

    `modules` have been imported; those that its command needs if not given.
    """
    server = _server(modules or COMMANDS.get(arguments[0] if arguments else "", SCORING))
    environment = dict(os.environ if env is None else env)
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        asked = json.dumps([program, arguments, str(cwd), environment])
        with tempfile.TemporaryFile() as request:
            request.write(asked.encode("utf-8", "surrogateescape"))
            request.seek(0)
            files = [f.fileno() for f in (request, nothing, out, err)]
            socket.send_fds(server, [b"run"], files)
            pid = int(server.recv(32))
        server.settimeout(timeout)
        try:
            status = int(server.recv(32))
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            server.settimeout(None)
            server.recv(32)
            raise subprocess.TimeoutExpired(arguments, timeout) from None
        finally:
            server.settimeout(None)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            [sys.executable, *program, *arguments], status, out.read(), err.read()
        )


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
    """End the server, which ends when nobody can ask it any more."""
    if os.getpid() == owner:
        server.close()
        process.wait(10)


def serve(number: str, *modules: str) -> None:
    """Run programs, one after the other, until nobody asks any more."""
    server = socket.socket(fileno=int(number))
    sys.path.insert(0, str(ROOT))
    for name in modules:
        with suppress(ModuleNotFoundError):  # not all packages are everywhere
            importlib.import_module(name)
    # What is looked up once in a process: not by each copy.
    importlib.import_module("flare.common.version").source_commit()
    versions = importlib.import_module("flare.common.library_versions")
    for name in importlib.import_module("flare.evaluation.provenance").LIBRARIES:
        versions.library_version(name)
    gc.collect()
    gc.freeze()  # what is never looked at again is shared with the copies
    while True:
        message, files, _, _ = socket.recv_fds(server, 16, 4)
        if not message:
            return
        pid = os.fork()
        if not pid:
            server.close()
            _become(files)
        for file in files:
            os.close(file)
        server.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        server.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(files: list[int]) -> None:
    """Be the program that was asked for; never come back."""
    status = 1
    try:
        with os.fdopen(files[0], "rb") as request:
            text = request.read().decode("utf-8", "surrogateescape")
        program, arguments, cwd, environment = json.loads(text)
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
