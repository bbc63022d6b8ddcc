"""What a run says: its log, and the one line on stderr."""

import io
import logging
import os
import sys

import pytest

from flare.cli import console
from flare.cli.console import Progress
from flare.common.errors import MESSAGE_LIMIT, InputError, StoppedError
from flare.evaluation.errors import MissingCasesError
from tests.builders import run_command


def raising(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(
    ("command", "status", "line"),
    [
        pytest.param(lambda: None, 0, "", id="success"),
        pytest.param(
            raising(MissingCasesError(["a.nii.gz"], 2)),
            1,
            "Missing 1 of 2 cases: a.nii.gz. Submit all 2 files in one zip. [F05]\n",
            id="an error of ours",
        ),
        pytest.param(
            raising(KeyboardInterrupt),
            130,
            "The evaluation was interrupted. Run it again. [H04]\n",
            id="Ctrl-C",
        ),
        pytest.param(
            raising(ValueError("x\ny")),
            1,
            "Internal error in the evaluation (ValueError in console.py)."
            " The organisers have the log. [X01]\n",
            id="a fault",
        ),
    ],
)
def test_what_a_command_raises_becomes_a_status_and_a_line(
    capfd, command, status, line
):
    assert console.run_command(command) == status

    out, err = capfd.readouterr()
    assert err == line
    assert ("Traceback" in out) == line.endswith("[X01]\n")


def test_a_line_is_cut_to_what_the_platform_keeps(capfd):
    """In characters of two bytes, which are not cut in half."""
    console.run_command(raising(InputError("ü\n" * 2000)))

    line = capfd.readouterr().err
    assert line.count("\n") == 1
    assert line.endswith(("ü\n", " \n"))
    assert len(line.encode()) <= MESSAGE_LIMIT


def test_afterwards_stderr_is_stderr_again(capfd):
    console.run_command(lambda: os.write(2, b"library"))
    os.write(2, b"ours")

    out, err = capfd.readouterr()
    assert (out, err) == ("library", "ours")


def test_a_fork_that_is_terminated_before_it_has_a_handler_ends(tmp_path):
    """Python ignores what is raised while it sets up a fork: it must not rely on it."""
    program = """
import os, signal
from flare.cli.console import run_command

def command():
    # As a signal that comes while Python sets the fork up.
    os.register_at_fork(after_in_child=lambda: signal.raise_signal(signal.SIGTERM))
    child = os.fork()
    if not child:
        os._exit(99)  # what was raised has been ignored
    print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

raise SystemExit(run_command(command))
"""
    run = run_command(sys.executable, "-c", program, text=False)

    assert (run.returncode, run.stdout) == (0, b"child 143\n")


def test_whoever_stops_a_block_is_told_what_is_kept(capfd):
    def command():
        with console.stopping_with(lambda: StoppedError("Stopped", "24 are kept.")):
            raise KeyboardInterrupt

    assert console.run_command(command) == 130
    assert capfd.readouterr().err == "Stopped. 24 are kept. [H04]\n"


CTRL_C_DURING_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["INTERRUPTED"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("words", [("-m", "flare", "evaluate"), ("evaluate.py",)])
@pytest.mark.parametrize("module", ["click", "flare.cli.commands.evaluate"])
def test_an_interrupt_of_the_imports_leaves_no_traceback(tmp_path, words, module):
    (tmp_path / "sitecustomize.py").write_text(CTRL_C_DURING_IMPORT)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "INTERRUPTED": module}

    run = run_command(sys.executable, *words, env=env)

    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


# --- Progress ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "every_s", "steps", "known", "lines"),
    [
        # Four of twelve runs took two minutes: the other eight may take four.
        ((100, 220, 460), 0, (4, 12), 0, ["[04/12, 4 min left] x", "[12/12] x"]),
        ((0, 10, 20, 60), 60, (1, 2, 3), 0, ["[03/12, 3 min left] x"]),
        # Of 12 cases, 4 were known; 4 took a minute, as will the other 4.
        ((0, 0, 60), 0, (4, 8), 4, ["[04/12] x", "[08/12, 1 min left] x"]),
        ((0, 59), 0, (6,), 0, ["[06/12] x"]),
        ((0, 60), 0, (1,), 0, ["[01/12, 11 min left] x"]),
    ],
    ids=[
        *("the time left", "only so often", "known at the start", "below a minute"),
        "after one",
    ],
)
def test_a_step_is_a_line(caplog, monkeypatch, times, every_s, steps, known, lines):
    caplog.set_level("INFO", logger="flare")
    monkeypatch.setattr("time.monotonic", iter(times).__next__)
    progress = Progress(every_s=every_s)

    for number in steps:
        progress(number, 12, "x", known=known)

    assert caplog.messages == lines


def test_on_a_terminal_a_step_gives_way_to_what_is_logged(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "12")

    def command():
        progress = Progress()
        progress(1, 2, "a" * 20)
        logging.getLogger("flare").info("a line")
        progress(2, 2, "b")

    terminal = sys.stdout
    assert console.run_command(command) == 0

    assert terminal.getvalue() == (
        "\r\x1b[K[1/2] aaaaa\r\x1b[Ka line\n\r\x1b[K[2/2] b\r\x1b[K"
    )
