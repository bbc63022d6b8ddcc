"""Tables of records: what is written comes back, and what cannot be is told."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flare.results.archives_csv import LedgerEntry, Refusal
from flare.results.csv_rows import record_of, rows_text
from flare.results.efficiency_csv import VALUES, CaseRecord, RunStatus
from flare.results.traces_csv import Sample

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
AMOUNTS = st.none() | st.floats(0, 1e15)
RECORDS = st.one_of(
    st.builds(
        CaseRecord,
        status=st.just(RunStatus.OK),
        **dict.fromkeys((*VALUES[1:], "mean_interval_s", "longest_gap_s"), AMOUNTS),
        runtime_s=st.none() | st.floats(0, 1e15, exclude_min=True),
        **dict.fromkeys(("case", "doubts", "message", "rerun"), TEXTS),
        repeats=st.integers(1, 9),
        samples=st.integers(0),
    ),
    st.builds(LedgerEntry, **dict.fromkeys(LedgerEntry.__dataclass_fields__, TEXTS)),
    st.builds(Refusal, **dict.fromkeys(Refusal.__dataclass_fields__, TEXTS)),
    st.builds(
        Sample,
        **dict.fromkeys(Sample.__dataclass_fields__, AMOUNTS),
    ).filter(lambda sample: sample.seconds is not None),
)


@given(RECORDS)
@example(CaseRecord(case="c", status=RunStatus.FAILED, samples=10**400))
def test_what_is_written_comes_back(record):
    """Also texts that a spreadsheet would take for formulas."""
    kind = type(record)
    rows = list(csv.DictReader(io.StringIO(rows_text(kind, [record]), newline="")))

    assert [record_of(kind, row) for row in rows] == [record]
    assert not any(cell.startswith(("=", "+", "@", "-")) for cell in rows[0].values())


@pytest.mark.parametrize(
    "change",
    [
        *({"status": "good"}, {"repeats": "1.5"}, {"samples": ""}, {"cpu_s": "nan"}),
        *({"cpu_s": "much"}, {"runtime_s": "3.0"}),
    ],
    ids=str,
)
def test_a_row_that_no_record_can_be_is_refused(change):
    """A value beside a status that is not ok, too."""
    record = CaseRecord(case="c1", status=RunStatus.FAILED)
    (row,) = csv.DictReader(io.StringIO(rows_text(CaseRecord, [record])))

    with pytest.raises(ValueError, match=r"\S"):
        record_of(CaseRecord, row | change)
