"""What a run says: its log, and the one line on stderr."""

import os
import sys

import pytest

from flare.cli import console
from flare.common.errors import MESSAGE_LIMIT, InputError, StoppedError
from flare.evaluation.errors import MissingCasesError
from tests.builders import run_command
from tests.builders.terminal import Terminal


def test_a_table_fits_the_terminal_or_not(monkeypatch):
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "30")

    assert console.fits(f"short\n{'x' * 30}")
    assert not console.fits(f"short\n{'x' * 31}")


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
