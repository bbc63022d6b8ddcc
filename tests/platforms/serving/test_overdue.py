"""The hours that a submission has: ended in time, and foreseen."""

import os
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from flare.platforms.serving.work import Forecast, OverdueSignal, ended_after

BEGIN = datetime(2026, 5, 1, 12, tzinfo=UTC)


def test_what_runs_is_ended():
    begin = time.monotonic()

    with pytest.raises(OverdueSignal), ended_after(0.05):
        time.sleep(60)

    assert time.monotonic() - begin < 30


def test_nothing_is_ended_behind_the_block():
    before = signal.getsignal(signal.SIGALRM)

    with ended_after(0.05):
        pass

    time.sleep(0.1)

    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_signal_on_the_way_out_is_the_last(monkeypatch):
    """It comes when the block has ended, and the timer is not off yet."""
    before, real = signal.getsignal(signal.SIGALRM), signal.setitimer
    calls = []

    def late(timer, seconds, repeat=0.0):
        calls.append(seconds)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGALRM)
        real(timer, seconds, repeat)

    monkeypatch.setattr(signal, "setitimer", late)
    try:
        with pytest.raises(OverdueSignal), ended_after(60):
            pass

        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        real(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("left", [0, -5])
def test_nothing_is_begun_without_time(left):
    with pytest.raises(OverdueSignal), ended_after(left):
        pytest.fail("it was begun")


def test_too_little_time_is_foreseen_once():
    """An hour for 10 cases: 2 in 10 minutes are in time, 4 in 30 minutes are not.

    In 10 minutes 2 cases: 8 others take 40 minutes, which is 12:50. In 30 minutes 4:
    6 others take 45 minutes, which is 13:15.
    """
    at = [BEGIN]
    forecast = Forecast(BEGIN + timedelta(hours=1), lambda: at[0])

    at[0] = BEGIN + timedelta(minutes=10)
    assert forecast.warning(2, 10) == ""
    at[0] = BEGIN + timedelta(minutes=30)
    assert forecast.warning(4, 10) == (
        "4 of 10 cases are done, and the others would be at 2026-05-01 13:15; the time"
        " is over at 13:00 of 2026-05-01, and what is not done by then fails"
    )
    at[0] = BEGIN + timedelta(minutes=40)
    assert forecast.warning(5, 10) == ""
