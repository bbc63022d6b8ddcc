"""Files of RESULTS/TEAM as pandas tables."""

import pytest

import flare
from flare.results.efficiency_csv import CaseRecord, RunStatus, write_records
from flare.results.errors import RankingError
from flare.results.traces_csv import Sample, Trace, write_trace


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
        ("a,ok,x\n", "line 2: x is no number"),
        ("a,ok,1\na,ok,2\n", "line 3: a is there twice"),
        ("a,ok\n", "line 2 has another number of cells than the first line"),
    ],
    ids=["no number", "twice", "cut off"],
)
def test_efficiency_that_cannot_be_read_names_the_line(tmp_path, rows, problem):
    file = tmp_path / "efficiency.csv"
    file.write_text(f"case,status,runtime_s\n{rows}")

    with pytest.raises(RankingError) as caught:
        flare.read_efficiency(file)

    assert caught.value.problem == problem


def test_a_trace_has_its_samples_by_seconds(tmp_path):
    samples = (Sample(seconds=0.0, gpu_memory_mb=5), Sample(seconds=0.5, cpu_s=0.25))
    trace = Trace(samples=samples, interval_s=0.5, runtime_s=0.6)
    write_trace(trace, tmp_path / "c1.csv")

    found = flare.read_trace(tmp_path / "c1.csv")

    assert found.index.tolist() == [0.0, 0.5]
    assert found["gpu_memory_mb"].dropna().to_dict() == {0.0: 5.0}
    assert found["cpu_s"].dropna().to_dict() == {0.5: 0.25}


def test_a_trace_without_samples_has_all_columns(tmp_path):
    write_trace(Trace(samples=(), interval_s=1, runtime_s=1), tmp_path / "c1.csv")

    found = flare.read_trace(tmp_path / "c1.csv")

    assert (len(found), "gpu_memory_mb" in found) == (0, True)


def test_a_trace_that_cannot_be_read_names_the_line(tmp_path):
    (tmp_path / "c1.csv").write_text("seconds,gpu_memory_mb\n0,1\n1,much\n")

    with pytest.raises(RankingError) as caught:
        flare.read_trace(tmp_path / "c1.csv")

    assert caught.value.problem == "line 3: much is no number"
