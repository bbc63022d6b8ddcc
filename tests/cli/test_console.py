"""What a run says: progress, and the one line on stderr."""

import fcntl
import io
import logging
import os
import pty
import struct
import subprocess
import sys
import termios
from unicodedata import east_asian_width

import pytest

from flare.cli import console
from flare.common.errors import MESSAGE_LIMIT, InputError, StoppedError
from flare.evaluation.errors import MissingCasesError
from flare.evaluation.scoring.pool import Attempt
from flare.evaluation.submission.matching import CasePair
from flare.results.scores import CaseScore
from tests.builders import ROOT


def attempt(number, *, problem=None):
    """What came of a case."""
    score = CaseScore(
        case=f"case_{number}",
        reference_file="x",
        prediction_file="x",
        organs=(),
        dsc=0.5,
        nsd=0.25,
    )
    return Attempt(
        pair=CasePair(case=f"case_{number}", reference=None, prediction=None),
        score=None if problem else score,
        problem=problem,
        seconds=1.234,
    )


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


def test_progress_is_a_line_per_case(monkeypatch, caplog):
    caplog.set_level("INFO", logger="flare")

    console.show_progress(7, 50, attempt(7))
    console.show_progress(8, 50, attempt(8, problem=InputError("x: it is bad")))

    assert caplog.messages[0] == "[07/50] case_7 DSC 0.500 NSD 0.250 1.23 s"
    assert caplog.messages[1].startswith("[08/50] case_8 x: it is bad.")


def test_progress_on_a_terminal_is_a_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")

    console.show_progress(1, 2, attempt(1))
    console.show_progress(2, 2, attempt(2))

    half, full = console.BAR_WIDTH // 2, console.BAR_WIDTH
    assert terminal.getvalue() == (
        f"\r[{'#' * half}{'.' * half}] 1/2 cases\r[{'#' * full}] 2/2 cases\n"
    )


@pytest.mark.parametrize("columns", [10, 12, 20, 30, 46])
def test_progress_fits_a_narrow_terminal(monkeypatch, columns):
    """The last column stays free, where it can."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))

    for number in range(1, 51):
        console.show_progress(number, 50, attempt(number))

    lines = terminal.getvalue().rstrip("\n").split("\r")[1:]
    assert len(lines) == 50
    assert max(map(len, lines)) < columns
    if columns > len("25/50 cases"):
        assert lines[24].endswith("25/50 cases")
    else:
        assert lines[24] == "25/...ses"
    if columns == 30:  # 15 characters of the bar fit, half of which are seven
        assert lines[24] == "[#######........] 25/50 cases"


TEXT = """Checked 5 label maps by the rules of FLARE 2021. They have:
  liver     in 5 of 5
one-word-that-is-longer-than-any-line-could-be
"""
VERBATIM = "# the content of a file, which somebody may copy"


def log_text():
    """A command that prints a text, and the content of a file."""
    logging.getLogger("flare.cli.commands").info("%s", TEXT)
    logging.getLogger("flare.cli.commands").info(VERBATIM, extra=console.VERBATIM)


def test_on_a_terminal_lines_are_broken_between_words(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "30")

    assert console.run_command(log_text) == 0

    assert (
        terminal.getvalue()
        == f"""Checked 5 label maps by the
  rules of FLARE 2021. They
  have:
  liver     in 5 of 5
one-word-that-is-longer-than-any-line-could-be

{VERBATIM}
"""
    )


def test_what_is_piped_stays_as_it_is(monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", "30")

    assert console.run_command(log_text) == 0

    assert capfd.readouterr().out == f"{TEXT}\n{VERBATIM}\n"
    assert console.fits("x" * 31)


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
            "Internal error in the evaluation (ValueError in console.py);"
            " the organisers have the log. [X01]\n",
            id="a fault",
        ),
    ],
)
def test_what_a_command_raises_becomes_a_status_and_a_line(
    capfd, command, status, line
):
    assert console.run_command(command) == status

    assert capfd.readouterr().err == line


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
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False
    )

    assert (run.returncode, run.stdout) == (0, b"child 143\n")


DRAW = """
import sys
from flare.cli.console import MeasuringProgress, show_progress
progress = MeasuringProgress(clock=lambda: 0.0)
for number in (1, 2, 3):
    progress(sys.argv[1], "thx_0001", "wrong output", number, 3)
progress(sys.argv[1], "thx_0001", "ok", 1, 3)
progress.clear()
for number in (1, 2):
    show_progress(number, 2, None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("columns", [12, 30, 46, 60, 80, 200])
@pytest.mark.parametrize(
    "team", ["a", "a_team_with_quite_a_long_name", "\u7532\u4e59" * 20]
)
def test_no_progress_is_wider_than_the_terminal(columns, team):
    """On a pseudo terminal of this width; each step is drawn over the one before."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", DRAW, team],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if k != "COLUMNS"},
        stdout=slave,
        stderr=slave,
    )
    assert process.wait(60) == 0
    os.close(slave)
    drawn = os.read(master, 65536).decode()
    os.close(master)

    assert "Traceback" not in drawn
    lines = drawn.replace("\x1b[K", "").replace("\n", "\r").split("\r")
    for line in lines:
        width = sum(1 + (east_asian_width(char) in "WF") for char in line)
        assert width < columns, line
    steps = [line for line in lines if "/3]" in line]
    assert len(steps) == 4
    assert drawn.count("\n") == 2  # at the end of either
    if columns >= 30:
        assert all("wrong" in step or "ok" in step or "..." in step for step in steps)
    if columns >= 80 and team == "a":
        assert steps[0].startswith("[")
        assert steps[0].endswith("[1/3] a thx_0001: wrong output; about 0 min left")


def test_whoever_stops_a_block_is_told_what_is_kept(capfd):
    def command():
        with console.stopping_with(lambda: StoppedError("Stopped", "24 are kept.")):
            raise KeyboardInterrupt

    assert console.run_command(command) == 130
    assert capfd.readouterr().err == "Stopped. 24 are kept. [H04]\n"


def test_measuring_tells_how_long_it_may_take(caplog):
    """Four of twelve runs took two minutes: the other eight may take four."""
    caplog.set_level("INFO")
    times = iter((100.0, 220.0, 460.0))
    progress = console.MeasuringProgress(clock=lambda: next(times))

    progress("team_a", "case_1", "ok", 4, 12)
    progress("team_a", "case_9", "failed", 12, 12)

    assert caplog.messages == [
        "[04/12] team_a case_1: ok; about 4 min left",
        "[12/12] team_a case_9: failed; done",
    ]


def test_measuring_on_a_terminal_draws_a_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(console.sys, "stdout", terminal)
    progress = console.MeasuringProgress(clock=lambda: 0.0)

    progress("a", "c1", "ok", 1, 2)
    progress("a", "c2", "ok", 2, 2)

    first, last = terminal.getvalue().split("\r")[1:]
    assert "[###############...............] [1/2] a c1: ok; about 0 min left" in first
    assert last.endswith("a c2: ok; done\n")
