"""The service on a phase of the platform, with an engine that plays by a script.

The platform is a fake that was written from the documents: what counts is what it has
received.
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile

import pytest

from flare.cli.main import main
from tests.builders import ROOT
from tests.builders.models import WEIGHTS, entry, model_bytes
from tests.builders.teams import PREDICT
from tests.builders.warm import run_warm
from tests.fakes.killed_service import POINTS
from tests.fakes.platform import PHASE, TOKEN

pytestmark = pytest.mark.slow


def words(bench, platform):
    return bench.serving("--phase", PHASE, "--api", platform.api, "--once")


@pytest.fixture
def serve(bench, external_platform, capfd, monkeypatch):
    """Serve the phase; the status, and what was written."""

    def run():
        monkeypatch.setenv("FLARE_GC_TOKEN", TOKEN)
        return main(words(bench, external_platform)), *capfd.readouterr()

    return run


@pytest.fixture
def hand_in(bench, external_platform):
    """A user hands in an image, whose tag is none of a team."""

    def submit(user, script, model=None):
        file = bench.archive(f"image-of-{len(user)}", script)
        return external_platform.submit(user, file.read_bytes(), model=model)

    return submit


NEEDS_MODEL = f"""
cmp /opt/ml/model/plans.json /opt/ml/model/latest.json || exit 7
test -s /opt/ml/model/weights/fold_0.pt || exit 7
{PREDICT}
"""

MODEL = model_bytes(
    WEIGHTS, entry("latest.json", type=tarfile.SYMTYPE, linkname="plans.json")
)


def test_two_submissions_at_once_get_an_answer_each(
    bench, external_platform, serve, hand_in
):
    """One is claimed at a time, which the platform demands; each gets its own.

    A model is measured with its image, and the next user's image gets none of it.
    """
    hand_in("jane", NEEDS_MODEL, MODEL)
    hand_in("sam", NEEDS_MODEL)

    status, _, stderr = serve()

    assert (status, stderr) == (0, "")
    answers = external_platform.answers()
    (jane,), (sam,) = answers["jane"], answers["sam"]
    assert jane["status"] == "Succeeded"
    assert jane["metrics"]["aggregates"]["dsc_mean"] == 1
    assert jane["metrics"]["aggregates"]["runtime_s_mean"] > 0
    assert jane["metrics"]["case"]["status"] == {"0": "ok", "1": "ok", "2": "ok"}
    assert sam["status"] == "Failed"
    said = "0 of 3 cases gave all that is scored: 3 failed (the first: the container"
    line = f"{said} ended with an exit code other than 0)"
    assert sam["error_message"].startswith(line)
    assert external_platform.calls("claim") == [200, 200]
    record = json.loads((bench.results / "jane" / "measurement.json").read_text())
    sha256 = hashlib.sha256(MODEL).hexdigest()
    assert record["settings"]["model_sha256"] == sha256
    assert (bench.results / "jane" / "efficiency.csv").exists()
    assert bench.engine.left() == []


# --- kill -9 ----------------------------------------------------------------------


def without_times(answer):
    metrics = answer["metrics"]
    metrics["evaluation"].pop("commit", None)  # somebody may commit meanwhile
    for part in ("case", "aggregates", "efficiency"):
        metrics[part] = {
            name: value
            for name, value in metrics[part].items()
            if not any(word in name for word in ("runtime", "cpu", "memory"))
        }
    return answer


KILLED = "from tests.fakes.killed_service import run; run()"


OTHER = "77aa-other-evaluator"


def start(bench, platform, point="", token=TOKEN):
    """Run the service as a process of its own, perhaps killed at a point."""
    environment = {**os.environ, "FLARE_GC_TOKEN": token}
    arguments = [point, *words(bench, platform)]
    return run_warm(("-c", KILLED), arguments, env=environment, timeout=120)


@pytest.fixture(scope="module")
def undisturbed():
    """The answer of a service that nobody has killed, once there is one."""
    return []


@pytest.mark.parametrize("point", POINTS)
def test_a_service_that_was_killed_gives_one_result(
    bench, external_platform, hand_in, undisturbed, point
):
    """The same as that of a service which nobody has killed, but for times."""
    hand_in("jane", NEEDS_MODEL, MODEL)

    killed = start(bench, external_platform, point)
    again = start(bench, external_platform)

    assert killed.returncode == -9, killed.stdout + killed.stderr
    assert (again.returncode, again.stderr) == (0, b"")
    (answer,) = external_platform.answers()["jane"]
    assert not [*bench.results.rglob("model")]
    assert external_platform.calls("claim").count(200) == 1
    assert external_platform.calls("update") == [200]
    if not undisturbed:
        bench.results.rename(bench.folder / "killed")
        hand_in("sam", NEEDS_MODEL, MODEL)
        assert start(bench, external_platform).returncode == 0
        undisturbed += map(without_times, external_platform.answers()["sam"])
    assert without_times(answer) == undisturbed[0]
    assert answer["metrics"]["aggregates"]["dsc_mean"] == 1
    assert bench.engine.left() == []


TWO_TOKENS = ("claiming", "claim obeyed", "claimed", "scored", "answer obeyed")


@pytest.mark.parametrize("point", TWO_TOKENS)
def test_a_killed_service_answers_with_the_token_that_has_claimed(
    bench, external_platform, hand_in, point, tmp_path, monkeypatch
):
    """Where a user can claim once, ever: two tokens, two submissions, none refused."""
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"{TOKEN}\n{OTHER}\n")
    external_platform.users[OTHER] = "second"
    external_platform.forgets_finished = False
    hand_in("jane", PREDICT)
    hand_in("sam", PREDICT)
    monkeypatch.setenv("FLARE_GC_TOKEN_FILE", str(file))

    killed = start(bench, external_platform, point, token="")
    again = start(bench, external_platform, token="")

    assert killed.returncode == -9, killed.stdout + killed.stderr
    assert b"2 of 2 tokens have claimed nothing yet" in killed.stdout
    assert (again.returncode, again.stderr) == (0, b"")
    assert b"0 of 2 tokens have claimed nothing yet" in again.stdout
    (jane,), (sam,) = external_platform.answers().values()
    assert (jane["status"], sam["status"]) == ("Succeeded", "Succeeded")
    claimants = [e["claimed_by"] for e in external_platform.evaluations.values()]
    assert sorted(claimants) == ["evaluator", "second"]
    assert external_platform.calls("claim").count(200) == 2
    assert external_platform.calls("update") == [200, 200]
    files = [path for path in bench.results.rglob("*") if path.is_file()]
    for token in (TOKEN, OTHER):
        assert not any(token.encode() in path.read_bytes() for path in files)


# --- The token --------------------------------------------------------------------

SPY = """
env
for process in /proc/[0-9]*; do
    tr '\\0' ' ' < "$process/cmdline"
done
tr '\\0' ' ' < "/proc/$PPID/environ"
"""
"""What a container, and what starts it, can see of others: it is kept in its log."""


def test_the_token_is_nowhere(bench, external_platform, hand_in):
    """Not in a file, not in the log, not in the process list, not in a container."""
    hand_in("jane", f"{SPY}\n{PREDICT}")

    run = subprocess.run(
        [*(sys.executable, "-m", "flare"), *words(bench, external_platform)],
        cwd=ROOT,
        env={**os.environ, "FLARE_GC_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert run.returncode == 0
    assert external_platform.answers()["jane"][0]["status"] == "Succeeded"
    assert TOKEN not in run.stdout + run.stderr
    log = (bench.results / "jane" / "logs" / "validation_001.log").read_text()
    assert "PATH=" in log
    assert "serve --phase" in log
    files = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    found = [path for path in files if TOKEN.encode() in path.read_bytes()]
    assert found == []
    assert json.loads((bench.results / ".serve" / "journal.json").read_text())
