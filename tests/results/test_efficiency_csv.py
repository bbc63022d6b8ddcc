"""Rows of efficiency.csv: which values they have, and when they have none."""

from dataclasses import replace

import pytest

import flare
from flare.challenge.rules import MaxMemory
from flare.measuring.container import ContainerRun, case_record
from flare.measuring.engines.interface import Exit
from flare.results.efficiency_csv import (
    VALUES,
    CaseRecord,
    RunStatus,
    means,
    read_records,
    write_records,
)
from flare.results.errors import MeasurementError, RankingError
from flare.results.traces_csv import Sample, Trace
from tests.builders import error_of, write_file


def make_run(runtime_s, memory=(), cpu_s=None, idle_mb=None):
    """A run with a sample of GPU memory every tenth of a second."""
    samples = tuple(
        Sample(
            seconds=n / 10,
            gpu_memory_mb=mb,
            host_memory_mb=10.0 * n,
            cpu_s=None if cpu_s is None else cpu_s * n / max(1, len(memory) - 1),
        )
        for n, mb in enumerate(memory)
    )
    trace = Trace(samples=samples, interval_s=0.1, runtime_s=runtime_s, idle_mb=idle_mb)
    return ContainerRun(
        runtime_s=runtime_s,
        exit=Exit(runtime_s=runtime_s - 0.2),
        trace=trace,
        log=b"",
    )


def record_of(*runs, case="c", rule=MaxMemory.STABLE, cpus=1):
    return case_record(case, runs, rule=rule, cpus=cpus)


def test_values_of_a_run_by_hand():
    """A second of 1000 MB, half a second at 3000, 2 s of CPU on four CPUs."""
    run = make_run(1.6, [1000.0] * 11 + [3000.0] * 5, cpu_s=2.0, idle_mb=7.0)

    record = record_of(run, cpus=4)

    assert (record.status, record.runtime_s) == (RunStatus.OK, 1.6)
    assert (record.max_gpu_memory_mb, record.peak_gpu_memory_mb) == (3000, 3000)
    assert record.idle_gpu_memory_mb == 7
    # 1 s of 1000, 0.1 s from 1000 to 3000, 0.4 s of 3000.
    assert record.gpu_memory_area_mb_s == pytest.approx(1000 + 200 + 1200)
    assert (record.cpu_s, record.cpu_area_percent_s) == (2.0, 50.0)
    assert record.max_host_memory_mb == 150
    assert (record.samples, record.repeats) == (16, 1)
    assert (record.runtime_s_spread, record.max_gpu_memory_mb_spread) == (None, None)
    assert record.doubts == ""


@pytest.mark.parametrize(
    ("memory", "largest", "doubts"),
    [
        # Six idle samples, and hardly a value twice: the rule takes the idle memory.
        ([0.0] * 6 + [8000.0 + n for n in range(194)], 0, "the stable memory is far"
         " below its peak of 8193 MB"),
        ([float(n) for n in range(100)], 99, "no value of the memory is stable: the"
         " plain maximum is taken"),
    ],
    ids=["far below the peak", "no value is frequent"],
)  # fmt: skip
def test_memory_that_is_never_stable_has_a_doubt(memory, largest, doubts):
    run = make_run(len(memory) / 10, memory, idle_mb=0.0)

    record = record_of(run)

    assert (record.max_gpu_memory_mb, record.doubts) == (largest, doubts)


def test_all_values_are_those_of_the_repeat_with_the_median_time():
    runs = [make_run(s, [mb] * 20) for s, mb in ((2.0, 20.0), (1.9, 10.0), (3.0, 30.0))]

    record = record_of(*runs, rule=MaxMemory.PLAIN)

    assert (record.runtime_s, record.max_gpu_memory_mb, record.repeats) == (2, 20, 3)
    spreads = (record.runtime_s_spread, record.max_gpu_memory_mb_spread)
    assert spreads == (pytest.approx(1.1), 20)


def test_without_a_gpu_there_is_no_memory_of_one():
    """And no zero, which would be the best memory there is."""
    record = record_of(make_run(2.0))

    assert record.max_gpu_memory_mb is None
    assert record.gpu_memory_area_mb_s is None


@pytest.mark.parametrize("status", [s for s in RunStatus if s is not RunStatus.OK])
def test_a_run_that_failed_cannot_have_a_value(status):
    for name in VALUES:
        with pytest.raises(ValueError, match="but has values"):
            CaseRecord(case="c", status=status, **{name: 1.0})


def test_rows_come_back_in_order(tmp_path):
    records = [
        record_of(make_run(1.5, [5.0] * 15), case="c2"),
        CaseRecord(case="c1", status=RunStatus.TIMED_OUT, message='ended, "so"'),
    ]
    write_records(records, tmp_path / "efficiency.csv")

    found = read_records(tmp_path / "efficiency.csv")

    assert list(found) == ["c1", "c2"]
    assert found == {record.case: record for record in records}
    text = (tmp_path / "efficiency.csv").read_text()
    assert text.startswith("case,status,runtime_s,max_gpu_memory_mb,")


@pytest.mark.parametrize(
    "text",
    [
        "case\nc1\n",
        "case,status\nc1,ok\n",
        "case,status,runtime_s\nc1,good,1\n",
        "\xff",
    ],
)
def test_a_file_of_somebody_else_is_not_overwritten(tmp_path, text):
    file = write_file(tmp_path / "efficiency.csv", text.encode("latin-1"))

    with pytest.raises(MeasurementError, match="it is not what this program has"):
        read_records(file)


def test_means_are_of_all_cases_or_there_are_none():
    """Whoever fails on the long cases has no short mean."""
    records = [
        record_of(make_run(1.0, [10.0] * 9), case="a"),
        record_of(make_run(4.0, [30.0] * 9), case="b"),
    ]
    failed = CaseRecord(case="c", status=RunStatus.FAILED)

    found = means(records, 2)

    assert (found["cases"], found["cases_ok"]) == (2, 2)
    assert means([*records, failed], 3) == {"cases": 3, "cases_ok": 2}
    assert found["runtime_s_mean"] == 2.5
    assert found["max_gpu_memory_mb_mean"] == 20
    assert "idle_gpu_memory_mb_mean" not in found


# --- Repeats ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "counted"),
    [
        ([2.0, 1.9, 2.1], 2.0),
        ([1.9, 2.0], 2.0),  # of two in the middle, the slower
        ([2.0, 1.9, 3.0, 9.0], 3.0),
        ([4.4, 0.4, 0.4], 4.4),
        ([4.4, 4.3, 0.4], 4.4),
        ([0.9, 0.5, 0.5], 0.5),  # within what an engine itself takes
        ([10.0, 8.1, 8.2], 8.2),  # less than a fifth
        ([10.0, 7.9, 8.2], 10.0),
        ([1.0, 5.0, 5.0], 5.0),
    ],
)
def test_the_median_of_repeats_counts_unless_later_ones_are_too_fast(times, counted):
    """The median, unless later runs are much faster than the first: then that one."""
    record = record_of(*map(make_run, times))

    assert record.runtime_s == counted
    is_doubtful = counted == times[0] > 1.5 * min(times) or times == [10.0, 7.9, 8.2]
    assert ("was something kept in between?" in record.doubts) == is_doubtful


@pytest.mark.parametrize(
    ("other_cpu_s", "doubts"),
    [
        (None, ""),
        (0.9, ""),
        (1.6, "other programs took 1.6 s of the processors meanwhile"),
    ],
)
def test_a_busy_computer_is_doubtful(other_cpu_s, doubts):
    """Half a second, and a tenth of ten seconds of one processor."""
    run = replace(make_run(10.0), other_cpu_s=other_cpu_s)

    assert record_of(run).doubts == doubts


# --- As a pandas table -------------------------------------------------------------


def test_efficiency_has_a_row_for_each_case(tmp_path):
    records = [
        CaseRecord(case="=b", status=RunStatus.OK, runtime_s=3.5, samples=7),
        CaseRecord(case="a", status=RunStatus.TIMED_OUT, message="=60 s"),
    ]
    write_records(records, tmp_path / "efficiency.csv")

    found = flare.read_efficiency(tmp_path / "efficiency.csv")

    assert found.index.name == "case"
    assert found["status"].to_dict() == {"=b": "ok", "a": "timed out"}
    assert found["runtime_s"].dropna().to_dict() == {"=b": 3.5}
    assert found["samples"].to_dict() == {"=b": 7, "a": 0}
    assert found["message"].to_dict() == {"=b": "", "a": "=60 s"}
    assert found["cpu_s"].isna().all()


def test_efficiency_of_another_program_has_the_columns_that_it_has(tmp_path):
    file = tmp_path / "efficiency.csv"
    file.write_text("case,status,runtime_s,mood\na.nii.gz,ok,2,good\n")

    found = flare.read_efficiency(str(file))

    assert found.reset_index().to_dict("records") == [
        {"case": "a", "status": "ok", "runtime_s": 2.0}
    ]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("a,ok,x\n", "line 2: x: not a number; leave a missing value empty"),
        ("a,ok,1\na,ok,2\n", "line 3: a is there twice"),
        ("a,ok\n", "line 2 has 2 cells, expected 3, as in the first line"),
    ],
    ids=["no number", "twice", "cut off"],
)
def test_efficiency_that_cannot_be_read_names_the_line(tmp_path, rows, problem):
    file = write_file(tmp_path / "efficiency.csv", f"case,status,runtime_s\n{rows}")

    assert error_of(RankingError, flare.read_efficiency, file).problem == problem
