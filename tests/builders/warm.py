"""Runs the program in copies of a process that has imported what it needs.

To start Python and import NumPy takes longer than what most tests look at. Everything
else is as in a new process: arguments, environment, streams, signals, exit status.
"""

from __future__ import annotations

import importlib
import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from multiprocessing import reduction
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]

PROGRAMS = {("evaluate.py",): "main_evaluate", ("-m", "flare"): "main"}
"""What can be run, and what of flare.cli.main is called for it; beside ("-c", code)."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.builders.warm",
        "tests.fakes.asked",
        *(f"flare.cli.commands.{name}" for name in ("check", "evaluate", "measure")),
        *(f"flare.cli.commands.{name}" for name in ("rank", "score", "serve")),
        *("flare.evaluation.check", "flare.evaluation.scoring.case"),
        *("flare.evaluation.submission.unpack", "flare.evaluation.many.score"),
        *("flare.reports.paper.files", "flare.reports.rank"),
        *("flare.platforms.grandchallenge.external", "urllib.request", "scipy.stats"),
        *("distributed.cli.dask_scheduler", "distributed.cli.dask_worker"),
        *("flare.evaluation.many.cluster", "flare.measuring.lanes.cluster"),
        *("encodings.ascii", "multiprocessing.popen_fork", "numpy.ma"),
    ]
)
"""What is imported; nothing of it may read the environment when it is imported, as each
copy has another one. What is not installed is left out."""


def run_warm(program, arguments, *, cwd=ROOT, env=None, timeout=None, limits=None):
    """Run a program to its end; its streams come back as bytes.

    `limits` are those of the module resource, such as RLIMIT_DATA.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        settings = {"cwd": cwd, "env": env, "limits": limits}
        process = WarmProcess(program, arguments, out, err, **settings)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        written = _content(out), _content(err)
    return subprocess.CompletedProcess(process.args, status, *written)


def _content(file):
    file.seek(0)
    return file.read()


class WarmProcess:
    """A program that runs; it can be asked what a subprocess.Popen can be asked.

    What it writes goes to the files `out` and `err`; the others are as in `run_warm`.
    """

    def __init__(
        self, program, arguments, out, err, *, cwd=ROOT, env=None, limits=None
    ):
        self.args = [sys.executable, *program, *arguments]
        self._streams = out, err
        environment = dict(os.environ if env is None else env)
        asked = (program, arguments, str(cwd), environment, limits or {})
        files = [_Inherited(file.fileno()) for file in (out, err)]
        self._process = FORKS.Process(target=_become, args=(files, *asked))
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")  # copies need not import it
        try:
            self._process.start()
        finally:
            sys.modules["__main__"] = main
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def communicate(self, timeout=None):
        self.wait(timeout)
        return tuple(_content(file).decode() for file in self._streams)

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class _Inherited:
    """A file descriptor that a copy gets."""

    def __init__(self, number):
        self.number = number

    def __reduce__(self):
        return _detached, (reduction.DupFd(self.number),)


def _detached(file):
    return file.detach()


def _become(files, program, arguments, cwd, environment, limits):
    """Be the program that was asked for; never come back."""
    status = 1
    try:
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, name), (most, most))
        for target, file in enumerate(files, start=1):
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


def _reopened(number):
    """A standard stream as Python opens it."""
    stream = (sys.stdin, sys.stdout, sys.stderr)[number]
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    buffered = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered, stream.encoding, stream.errors, line_buffering=number == 2
    )
