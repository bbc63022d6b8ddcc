"""Workers that die: the evaluation goes on or says why not; nothing stays behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT, case_names, wait_until, write_cases
from tests.builders.errors import told
from tests.builders.fewer import few_fast

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="workers are forked on Linux only"
)

PROGRAM = """
import os, signal, sys, time
import flare.cli.main, flare.evaluation.scoring.case
{before}
real = flare.evaluation.scoring.case.score_case
def score_case(pair, challenge):
    {body}
    return real(pair, challenge)
flare.evaluation.scoring.case.score_case = score_case
sys.exit(flare.cli.main.main(["evaluate", *sys.argv[1:]]))
"""


@pytest.fixture
def start(tmp_path):
    """Start an evaluation whose workers first do something else; two workers."""
    runs = []

    def start_program(body, cases=4, before=""):
        names = case_names(cases)
        folders = [
            *("--input", write_cases(tmp_path / "input", names)),
            *("--ground-truth", write_cases(tmp_path / "labels", names)),
            *("--output", tmp_path / "output", "--workers", "2"),
        ]
        run = subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM.format(body=body, before=before),
                *map(str, folders),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        runs.append(run)
        return run

    yield start_program
    for run in runs:
        run.kill()
        run.communicate()


def session_of(run):
    """Processes that belong to an evaluation, without it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # What comes first, the name, may hold anything.
            content = (folder / "stat").read_text().rpartition(")")[2]
        except OSError:  # it has ended
            continue
        state, _, _, session, *_ = content.split()
        if int(session) == run.pid != int(folder.name) and state not in "ZX":
            found.append(int(folder.name))
    return found


DEATHS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "crashing in C": "import ctypes; ctypes.string_at(0)",
    "leaving": "os._exit(0)",
    "out of memory": "raise MemoryError",
}


@pytest.mark.parametrize("death", few_fast(DEATHS, fast=[0, -1]))
def test_a_case_that_kills_its_worker_is_named(start, death, tmp_path):
    """Also when it is scored alone; the others were not to blame."""
    run = start(f"if pair.case.endswith('3'): {DEATHS[death]}")

    _, error = run.communicate(timeout=60)

    how = "ran out of memory" if death == "out of memory" else "was killed"
    assert run.returncode == 1
    assert told(error.decode()) == ("H03", "validation_003.nii.gz")
    assert f"the process that scored it {how}." in error.decode()
    assert session_of(run) == []
    assert list((tmp_path / "output").iterdir()) == []


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside_does_no_harm(start, tmp_path):
    """As the kernel does when memory is short: one of two real workers, by kill -9."""
    go_on = tmp_path / "go on"
    run = start(f"while not os.path.exists({str(go_on)!r}): time.sleep(0.01)", cases=6)
    wait_until(lambda: len(session_of(run)) == 2)
    os.kill(session_of(run)[0], signal.SIGKILL)
    go_on.touch()

    output, error = run.communicate(timeout=60)

    assert (run.returncode, error) == (0, b"")
    assert b"A worker process ended early" in output
    assert (tmp_path / "output" / "metrics.json").exists()
    assert session_of(run) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sign", "status", "line"),
    [
        (signal.SIGTERM, 143, "The evaluation was terminated. Run it again. [H04]\n"),
        (signal.SIGINT, 130, "The evaluation was interrupted. Run it again. [H04]\n"),
    ],
)
def test_a_signal_ends_all_of_it_cleanly(start, tmp_path, sign, status, line):
    started = tmp_path / "started"
    started.mkdir()
    body = f"open({str(started)!r} + f'/{{os.getpid()}}', 'w'); time.sleep(0.3)"
    run = start(body, cases=100)
    wait_until(lambda: len(list(started.iterdir())) == 2)
    run.send_signal(sign)

    _, error = run.communicate(timeout=60)

    assert (run.returncode, error.decode()) == (status, line)
    assert session_of(run) == []
    assert list((tmp_path / "output").iterdir()) == []


@pytest.mark.slow
def test_no_worker_misses_a_signal_while_it_is_set_up(start):
    """Python forgets what comes then: it has to wait until the worker has begun."""
    tell = (  # in one piece, whatever else is written meanwhile
        "os.write(1, (when + str(signal.SIGTERM in"
        " signal.pthread_sigmask(signal.SIG_BLOCK, ())) + '\\n').encode())"
    )
    run = start(
        f"when = 'scoring '; {tell}",
        before=f"os.register_at_fork(after_in_child=lambda when='': {tell})",
    )

    output, error = run.communicate(timeout=60)

    assert (run.returncode, error) == (0, b"")
    words = re.findall(r"^(scoring )?(True|False)$", output.decode(), re.MULTILINE)
    assert sorted(words) == 2 * [("", "True")] + 4 * [("scoring ", "False")]
