"""What Hypothesis draws for the fuzzers, in thousands: each input has an outcome."""

import os
import shutil
import signal
import subprocess
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzzing import folders, label_maps

pytestmark = [
    pytest.mark.slow,
    # The program lets NumPy warn of overflows in a header, into the log.
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Duplicate name"),
]

MORE = int(os.environ.get("FUZZ", "1"))
"""How many times as many inputs are tried."""

INPUT_SECONDS = 30


def too_slow(*_):
    raise TimeoutError


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Try inputs, each in an empty folder and in time: how many had which outcome."""
    monkeypatch.setenv("FLARE_COMMIT", "fuzzed")  # or git would be asked
    signal.signal(signal.SIGALRM, too_slow)

    def run(attempt, runs):
        outcomes, work = Counter(), tmp_path / "work"

        @settings(
            max_examples=runs * MORE,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.randoms(use_true_random=True))
        def try_it(chance):
            work.mkdir()
            signal.alarm(INPUT_SECONDS)
            try:
                outcomes[attempt(chance, work)] += 1
            finally:
                signal.alarm(0)
                with suppress(RecursionError):
                    shutil.rmtree(work, ignore_errors=True)
                if work.exists():  # deeper than Python can go
                    subprocess.run(["rm", "-rf", work], check=True)

        try_it()
        return outcomes

    yield run
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_changed_files_are_read_or_refused(tried):
    outcomes = tried(label_maps.attempt, 10_000)

    # The changes are of use: most files get past the header, and some fail behind it.
    assert outcomes["refused by its header"] < 0.5 * outcomes.total()
    assert outcomes["refused by its voxels"] > 0.04 * outcomes.total()
    assert outcomes["read"] > 0.04 * outcomes.total()


def test_changed_folders_are_scored_or_refused(tried):
    outcomes = tried(folders.attempt, 120)

    assert {kind.partition(" ")[0] for kind in outcomes} == {"tree", "zip", "upload"}
