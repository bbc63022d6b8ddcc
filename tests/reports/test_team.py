"""The page of one measured team: what was measured, and what it may know of that."""

import pytest

from flare.common.errors import FlareError
from flare.common.text import safe
from flare.reports.render.html import page_html
from flare.reports.team import team_page
from flare.results.traces_csv import read_curves, thinned
from tests.builders import error_of
from tests.builders.errors import told
from tests.builders.measured import write_measured
from tests.builders.pages import BOTH, content_of, parts_of

CASES = ("case_1", "case_2", "case_3", "case_4")
SCORES = {"liver": [0.9123456, 0.0, 0.8765432, 0.5], "spleen": [0.7, 0.0, 0.6, 0.4]}
FAILED = {"case_2": ("timed out", "it was ended after 60 s; see logs/case_2.log")}


@BOTH
def test_status_time_and_memory_of_each_case(tmp_path, is_organiser):
    """Case n takes 10 + n s, and 1000 + 100 n MB; a run that failed has neither."""
    team = write_measured(tmp_path / "team", CASES, failed=FAILED, scores=SCORES)

    page = team_page(team, is_organiser=is_organiser)

    rows = content_of(page, "Status, time and memory of 4 cases")
    assert [tuple(row.values()) for row in rows] == [
        ("case_2", "timed out", *["no result"] * 3, FAILED["case_2"][1]),
        ("case_1", "ok", "10.00", "1000", "500", ""),
        ("case_3", "ok", "12.00", "1200", "500", ""),
        ("case_4", "ok", "13.00", "1300", "500", ""),
    ]
    assert [(tile.name, tile.value) for tile in page.tiles[2:]] == [
        ("Runs that worked", "3 of 4"),
        # A mean of those that worked would be better for whoever fails on long cases.
        ("Mean running time", "none"),
        ("Most GPU memory", "1300 MB"),
    ]
    assert page.tiles[2].note == "1 timed out"


@BOTH
def test_what_an_evaluation_s_page_has_is_there_too(tmp_path, is_organiser):
    team = write_measured(
        tmp_path / "t", CASES, failed=FAILED, scores=SCORES, doubts="only 8 samples"
    )

    page = team_page(team, is_organiser=is_organiser)

    rows = {row["case"]: row for row in content_of(page, "DSC of each case")}
    assert rows["case_1"]["liver"].exact == (0.9123456 if is_organiser else None)
    kind = "evaluation of" if is_organiser else "your scores on"
    assert (page.title, page.kicker) == (f"t: {kind} 4 cases", "FLARE 2021")
    theirs = ("means", "runs", "worst", "cases", "memory")
    ours = (*theirs[:4], "remarks", "provenance", "memory", "measured")
    assert [own.id for own in page.shown] == [*(ours if is_organiser else theirs)]


@BOTH
def test_memory_over_time_is_that_of_the_traces(tmp_path, is_organiser):
    """The peak of 1200 MB is the sample at 70 % of 12 s."""
    team = write_measured(tmp_path / "team", CASES[:3])

    page = team_page(team, is_organiser=is_organiser)

    row = content_of(page, "GPU memory over time")[2]
    assert [*row.values()] == ["case_3", "12.0", "1200", "8.4", "101"]
    host = content_of(page, "Memory of the container over time")
    assert host[2]["highest (MB)"] == "500"


def test_a_curve_keeps_every_peak_of_a_long_trace():
    """One sample of 10000 is high, and one low."""
    points = [(n, 50) for n in range(10_000)]
    points[4321], points[8765] = (4321, 99), (8765, 1)

    kept = thinned(points)

    assert {points[0], points[4321], points[8765], points[-1]} <= set(kept)
    assert len(kept) < 250
    assert list(kept) == sorted(kept)


def test_a_trace_of_another_program_may_have_fewer_columns(tmp_path):
    (tmp_path / "traces").mkdir()
    for case in ("a-b", "a"):
        (tmp_path / "traces" / f"{case}.csv").write_text(
            "seconds,gpu_memory_mb\n0.5,10.4\n1,\n1.25,30.6\n"
        )

    curve, other = read_curves(tmp_path)

    assert (curve.case, other.case) == ("a", "a-b")
    assert (curve.samples, curve.gpu, curve.host) == (3, ((50, 10), (125, 31)), ())


def test_organisers_see_doubts_and_how_it_was_measured(tmp_path):
    team = write_measured(tmp_path / "team", CASES, doubts="only 8 samples")

    page = team_page(team, is_organiser=True)

    assert page.lead[-1].items == [
        "4 cases: only 8 samples (case_1, case_2, case_3, case_4)"
    ]
    rows = content_of(page, "Status, time and memory")
    assert {row["status"] for row in rows} == {"ok, doubtful"}
    measured = {row["what"]: row["value"] for row in content_of(page, "As measurement")}
    assert measured["device"] == "NVIDIA A100 (driver 570)"
    assert measured["timeout (s)"] == "3600.0"
    assert measured["spread of an empty container"] == "0.25 s"


def test_participants_see_neither_doubts_nor_the_computer(tmp_path):
    failed = {"case_2": ("engine error", "/dev/sda of host kuckuck is full")}
    team = write_measured(
        tmp_path / "team", CASES, failed=failed, doubts="only 8 samples"
    )

    page = team_page(team, is_organiser=False)

    html = page_html(page)
    for text in ("only 8 samples", "A100", "Docker", "kuckuck", "3600"):
        assert text not in html
    failure, *_ = content_of(page, "Status, time")
    assert failure["message"] == (
        "the computer of the organisers is at fault, not you; it is run again"
    )


@BOTH
def test_a_team_that_was_only_evaluated_and_one_that_was_not_run(
    tmp_path, is_organiser
):
    scored = write_measured(tmp_path / "scored", CASES, scores=SCORES)
    for file in ("efficiency.csv", "measurement.json"):
        (scored / file).unlink()
    for trace in (scored / "traces").iterdir():
        trace.unlink()
    started = write_measured(tmp_path / "started", (), traced=())
    (started / "efficiency.csv").unlink()

    for team in (scored, started):
        page = team_page(team, is_organiser=is_organiser)
        assert [own.text for own in parts_of(page, "runs")] == ["No case has been run."]
        assert "memory" not in {own.id for own in page.shown}


def test_values_of_a_failed_row_of_another_program_do_not_count(tmp_path):
    """Values beside a status that is not ok do not count; other columns may lack."""
    team = tmp_path / "team"
    team.mkdir()
    (team / "efficiency.csv").write_text(
        "case,status,runtime_s\nb.nii.gz,ok,3.14159\na,crashed,2\n"
    )

    rows = content_of(
        team_page(team, is_organiser=True), "Status, time and memory of 2 cases"
    )

    assert [tuple(row.values())[:4] for row in rows] == [
        ("a", "crashed", "no result", "no result"),
        ("b", "ok", "3.14", "no result"),
    ]


@pytest.mark.parametrize(
    ("file", "content", "code"),
    [
        ("metrics.json", "{", "G05"),
        ("efficiency.csv", "case,status\na,ok\na.nii.gz,ok\n", "G06"),
        ("traces/case_1.csv", "time\n1\n", "G06"),
        ("traces/case_1.csv", "seconds,gpu_memory_mb\n1,much\n", "G06"),
    ],
    ids=["scores", "twice", "trace", "sample"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, file, content, code):
    team = write_measured(tmp_path / "team", CASES, scores=SCORES)
    (team / file).write_text(content)

    error = error_of(FlareError, team_page, team, is_organiser=True)

    assert told(error) == (code, safe(team / file))
