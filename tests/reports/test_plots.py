"""Pictures of traces, drawn without a display."""

import pytest

from flare.reports.plots import draw_traces
from flare.results.errors import RankingError
from flare.results.traces_csv import Sample, Trace, write_trace


@pytest.mark.slow
@pytest.mark.tools(package="matplotlib")
def test_each_trace_has_a_picture(tmp_path):
    samples = (Sample(seconds=0.0, gpu_memory_mb=5), Sample(seconds=0.5))
    for case, found in (("c1", samples), ("c2", ())):
        trace = Trace(samples=found, interval_s=0.5, runtime_s=0.6)
        write_trace(trace, tmp_path / "traces" / f"{case}.csv")

    written = draw_traces(tmp_path)

    assert written == tuple(tmp_path / "plots" / f"{case}.png" for case in ("c1", "c2"))
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in written)


@pytest.mark.tools(package="matplotlib")
def test_a_trace_that_cannot_be_read_names_the_line(tmp_path):
    (tmp_path / "traces").mkdir()
    file = tmp_path / "traces" / "c1.csv"
    file.write_text("seconds,gpu_memory_mb,host_memory_mb\n0,1,much\n")

    with pytest.raises(RankingError) as caught:
        draw_traces(tmp_path)

    assert caught.value.problem == "line 2: much is no number"
