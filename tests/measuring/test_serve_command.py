"""The service on a folder of archives, with an engine that plays by a script."""

import json
import shutil
import signal
import tempfile
import time

import pytest

from flare.common.text import safe
from flare.results import team_folder as lock_module
from flare.results.team_folder import FolderLock
from tests.builders import wait_until
from tests.builders.errors import told
from tests.builders.pages import Page
from tests.builders.schemas import file_problems
from tests.builders.teams import PREDICT, SCRIPTS
from tests.builders.warm import WarmProcess


def code_of(line):
    return told(line)[0]


def steps(bench):
    content = json.loads((bench.results / ".serve" / "journal.json").read_text())
    return {entry["title"]: entry["step"] for entry in content["submissions"]}


@pytest.mark.slow
@pytest.mark.tools(package="jinja2")
def test_a_bad_archive_a_crashing_one_and_one_that_is_right(bench, serve):
    """Each is answered, in the order of their arrival, whatever came of the others.

    Predictions equal the labels, so DSC is 1; three cases were run. A page shows it.
    """
    bench.archive("good", PREDICT)
    bench.archive("crash", SCRIPTS["crash"])
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    page = bench.folder / "live.html"

    status, stdout, stderr = serve("--page", page)

    assert (status, stderr) == (0, "")
    for step in ("claimed", "downloaded", "checked", "measured", "scored", "returned"):
        assert f"good.tar.gz: {step}\n" in stdout
    answer = bench.answer("good")
    assert answer["status"] == "Succeeded"
    aggregates, by_case = answer["metrics"]["aggregates"], answer["metrics"]["case"]
    assert aggregates["dsc_mean"] == 1
    assert (aggregates["cases"], aggregates["cases_ok"]) == (3, 3)
    assert by_case["status"] == {"0": "ok", "1": "ok", "2": "ok"}
    times = list(by_case["runtime_s"].values())
    assert aggregates["runtime_s_mean"] == pytest.approx(sum(times) / 3)
    assert "max_gpu_memory_mb" not in by_case  # there was no GPU
    assert told(bench.answer("bad")["error_message"]) == ("F15", "bad.tar.gz")
    crash = bench.answer("crash")["error_message"]
    assert crash.startswith("0 of 3 cases gave all that is scored: 3 failed (the ")
    assert "container ended with an exit code other than 0)" in crash
    assert code_of(crash) == "F17"
    assert "bad.tar.gz" in (bench.results / "refused.csv").read_text()
    for team in ("good", "bad", "crash"):
        returned = bench.sent / "returned" / f"{team}.json"
        assert file_problems(returned, "serve-returned") == []
    journal = bench.results / ".serve" / "journal.json"
    assert file_problems(journal, "serve-journal") == []
    assert set(steps(bench).values()) == {"returned"}
    assert "validation_003" in Page(page.read_text()).text
    assert bench.engine.left() == []
    assert [*(bench.results / ".serve" / "downloads").glob("*")] == []


def test_what_is_answered_is_not_measured_again(bench, serve):
    """But for a new file of a team, which is a new submission."""
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    serve()
    file = bench.sent / "returned" / "bad.json"
    file.unlink()

    status, stdout, _ = serve()

    assert (status, stdout) == (0, "")
    ready = "Everything is ready; 1 submission answered already\n"
    assert serve("--dry-run")[1] == ready
    assert not file.exists()
    (bench.sent / "bad.tar.gz").write_bytes(b"other")
    assert "bad.tar.gz: returned\n" in serve()[1]


# --- Without claiming anything ----------------------------------------------------


def test_a_dry_run_says_what_waits_and_claims_nothing(bench, serve):
    (bench.sent / "bad.tar.gz").write_bytes(b"")

    status, stdout, stderr = serve("--dry-run")

    assert (status, stderr) == (0, "")
    assert stdout == (
        "bad.tar.gz: would be claimed\n"
        "Everything is ready; 0 submissions answered already\n"
    )
    assert not (bench.results / ".serve" / "journal.json").exists()
    bench.engine.fail("info")
    status, _, stderr = serve("--dry-run")
    assert status == 1
    assert "Cannot connect to the Docker daemon" in stderr


def test_the_status_of_a_service_tells_how_far_submissions_are(bench, serve, flare):
    status, stdout, _ = flare("serve", "--status", "--output", bench.results)
    assert status == 0
    assert stdout.endswith("results: no submission was claimed yet\n")
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    _, stdout, _ = serve()
    assert "scored" not in stdout
    assert stdout.count("[F15]") == 1  # in the log; the step keeps its name

    status, stdout, _ = flare("serve", "--status", "--output", bench.results)

    lines = stdout.splitlines()
    assert status == 0
    assert lines[0] == f"Submissions of the folder {safe(bench.folder / 'archives')}:"
    words = lines[1].split("  ")
    assert [word.strip() for word in words if word] == [
        *("submission", "team", "step", "at (UTC)", "answer by", "answer")
    ]
    assert lines[2].startswith("bad.tar.gz  bad   returned  20")
    assert "Failed bad.tar.gz: it is no tar file" in lines[2]


@pytest.mark.slow
def test_a_service_that_waits_can_be_ended(bench):
    program = ("-m", "flare"), bench.serving("--drop-folder", bench.sent)

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = WarmProcess(*program, out, err)
        wait_until((bench.results / ".serve").exists)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == 143
    assert code_of(stderr) == "H04"


# --- Refusals ---------------------------------------------------------------------


def test_what_cannot_be_served_is_refused(bench, serve, tmp_path, monkeypatch):
    """No folder, a journal that is none or of another one, and a second service."""
    monkeypatch.setattr(lock_module, "WAIT_S", 0)
    assert code_of(serve(where=tmp_path / "nowhere")[2]) == "H01"
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    serve()
    (tmp_path / "other").mkdir()

    status, _, stderr = serve(where=tmp_path / "other")

    assert (status, code_of(stderr)) == (1, "H07")
    assert "journal.json: it is of the folder " in stderr
    with FolderLock(bench.results / ".serve", "served"):
        assert code_of(serve()[2]) == "H07"
    (bench.results / ".serve" / "journal.json").write_text("{}")
    assert code_of(serve()[2]) == "H07"


def test_too_little_time_for_all_cases_is_said_before(bench, serve):
    """Three cases of up to 3600 s take 3 hours, and there are 2."""
    _, stdout, _ = serve("--hours", "2")

    assert stdout == (
        "3 cases of up to 3600 s can take 3.0 hours, and a submission has 2: consider a"
        " shorter --timeout\n"
    )


# --- Faults of this computer ------------------------------------------------------


@pytest.mark.parametrize("command", ["create", "start", "import"])
def test_nothing_is_claimed_where_no_empty_container_can_be_run(bench, serve, command):
    """The engine answers, and yet cannot run anything: no submission shows that."""
    (bench.sent / "bad.tar.gz").write_bytes(b"")
    bench.engine.fail(command, "OCI runtime create failed")

    status, stdout, stderr = serve()

    assert (status, code_of(stderr)) == (1, "H05")
    assert "claiming" not in stdout
    bench.engine.work(command)
    assert serve()[0] == 0
    assert bench.engine.left() == []


@pytest.mark.slow
def test_a_team_that_hands_in_again_is_measured_anew(bench, serve):
    bench.archive("good", SCRIPTS["crash"])
    serve()
    shutil.rmtree(bench.sent / "returned")

    bench.archive("good", PREDICT)
    status, _, stderr = serve()

    assert (status, stderr) == (0, "")
    assert bench.answer("good")["status"] == "Succeeded"
    rows = (bench.results / "ledger.csv").read_text().splitlines()
    assert rows[1].endswith(",")
    assert rows[2].endswith('"handed in again, and served"')


@pytest.mark.slow
def test_time_that_is_over_ends_a_run_and_is_told(bench, serve):
    """Two seconds in all; the container would hang for ten minutes."""
    bench.archive("hang", SCRIPTS["hang"])

    status, _, stderr = serve("--hours", "0.0007")

    assert (status, stderr) == (0, "")
    assert code_of(bench.answer("hang")["error_message"]) == "F18"
    assert bench.engine.left() == []
