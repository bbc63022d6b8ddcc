"""The numbers that are taken from samples: by hand, and by the official rule."""

from dataclasses import replace

import pytest

import flare
from flare.challenge.rules import MaxMemory
from flare.results.traces_csv import Sample, Trace, area, max_memory_mb, write_trace


def peak(seconds):
    """A peak of 0.4 s, with a sample every 0.1 s."""
    return [1000.0] * (10 * seconds - 4) + [5200.0] * 4


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # field.md: a peak of 0.4 s at 5200 MB counts in a run of 15 or 19 s (4 of 150
        # or 190 samples are more than 2 %), and vanishes in one of 21 or 30 s.
        *((peak(15), (5200.0, True)), (peak(19), (5200.0, True))),
        *((peak(21), (1000.0, True)), (peak(30), (1000.0, True))),
        ([float(n) for n in range(100)], (99.0, False)),  # the official script crashes
        ([1.0] * 98 + [9.0] * 2, (1.0, True)),  # 2 % exactly are not enough
        ([1.0] * 97 + [9.0] * 3, (9.0, True)),
        ([1.0] * 50 + [3.0] * 10 + [2.0] * 40, (3.0, True)),
    ],
    ids=["15 s", "19 s", "21 s", "30 s", "none is frequent", "2 %", "3 %",
         "the largest of the frequent"],
)  # fmt: skip
def test_the_official_rule_of_stable_memory(values, expected):
    assert max_memory_mb(values, MaxMemory.STABLE) == expected
    assert max_memory_mb(values, MaxMemory.PLAIN) == (max(values), True)


def test_areas_go_by_true_times():
    """From 0 to 1 s 100 MB: 100; then 2 s rising to 300: 2 * 200 = 400."""
    assert area([(0, 100), (1, 100), (3, 300)]) == 500
    assert area([(5, 100)]) == 0


def make_trace(times, runtime_s, interval_s=0.1, **options):
    samples = tuple(Sample(seconds=t, gpu_memory_mb=1.0) for t in times)
    return Trace(
        **{"idle_mb": 0.0, **options},
        samples=samples,
        interval_s=interval_s,
        runtime_s=runtime_s,
    )


STEADY = [n / 10 for n in range(20)]


@pytest.mark.parametrize(
    ("times", "runtime_s", "interval", "gap", "doubts"),
    [
        ((0.0, 0.1, 0.2, 1.0), 1.1, 1 / 3, 0.8,
         ("only 4 samples", "no sample for 0.8 s")),
        ([0.7 + time for time in STEADY], 2.7, 0.1, 0.7, ("no sample for 0.7 s",)),
        (STEADY, 4.0, 0.1, 2.1, ("no sample for 2.1 s",)),
        ((), 3.0, None, 3.0, ("only 0 samples", "no sample for 3.0 s")),
    ],
    ids=["within", "at the start", "at the end", "without samples"],
)  # fmt: skip
def test_a_trace_with_a_long_gap_has_a_doubt(times, runtime_s, interval, gap, doubts):
    trace = make_trace(times, runtime_s)

    assert trace.mean_interval_s == (interval and pytest.approx(interval))
    assert trace.longest_gap_s == pytest.approx(gap)
    assert trace.doubts == doubts


@pytest.mark.parametrize(
    ("options", "doubts"),
    [
        ({}, ()),
        ({"strangers": frozenset({7})}, ("1 other process used the GPU",)),
        ({"is_throttled": True}, ("the GPU was throttled",)),
        ({"problem": "it died"}, ("it died",)),
        ({"samples": (), "idle_mb": None}, ()),  # without a GPU nobody needs them
    ],
    ids=str,
)
def test_what_is_doubtful_about_regular_samples(options, doubts):
    trace = make_trace(STEADY, 2.0)

    assert replace(trace, **options).doubts == doubts


def test_a_trace_has_its_samples_by_seconds(tmp_path):
    samples = (Sample(seconds=0.0, gpu_memory_mb=5), Sample(seconds=0.5, cpu_s=0.25))
    trace = Trace(samples=samples, interval_s=0.5, runtime_s=0.6)
    write_trace(trace, tmp_path / "traces" / "c1.csv")

    found = flare.read_trace(tmp_path / "traces" / "c1.csv")

    assert found.index.tolist() == [0.0, 0.5]
    assert found["gpu_memory_mb"].dropna().to_dict() == {0.0: 5.0}
    assert found["cpu_s"].dropna().to_dict() == {0.5: 0.25}


def test_a_trace_without_samples_has_all_columns(tmp_path):
    write_trace(Trace(samples=(), interval_s=1, runtime_s=1), tmp_path / "c1.csv")

    found = flare.read_trace(tmp_path / "c1.csv")

    assert (len(found), "gpu_memory_mb" in found) == (0, True)
