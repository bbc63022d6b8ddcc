"""What a run says: progress, and the one line on stderr."""

import io
import os

import pytest

from flare import console
from flare.errors import MESSAGE_LIMIT, InputError, MissingCasesError
from flare.scoring import CaseScore
from flare.submission import CasePair
from flare.workers import Attempt


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

    console.show_progress(1, 2, attempt(1))
    console.show_progress(2, 2, attempt(2))

    half, full = console.BAR_WIDTH // 2, console.BAR_WIDTH
    assert terminal.getvalue() == (
        f"\r[{'#' * half}{'.' * half}] 1/2 cases\r[{'#' * full}] 2/2 cases\n"
    )


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
