"""The page of a measurement: what it holds, its words, and when it is read anew."""

import pytest

from flare.reports.measuring import alike, measuring_page, read_progress, seconds_left
from flare.reports.model import Table, Words
from flare.results.archives_csv import Refusal
from flare.results.efficiency_csv import write_records
from flare.results.errors import RankingError
from tests.builders.measured import write_measured
from tests.builders.pages import Page, parts_of, rows_of, write_report
from tests.builders.running import eventful, record, running, team_run

RUNNING = "As of {}, 1 of 3 cases are measured, and others are being run."

CASES = ("case_1", "case_2", "case_3")


def test_a_running_measurement_counts_its_cases():
    """Of six: a has two, of which one is an engine error; b has one that timed out."""
    records = [
        record("case_1", 12.0),
        record("case_2", None, "engine error", message="x"),
    ]
    late = [record("case_1", None, "timed out", message="late")]

    page = measuring_page(running(CASES, team_run("a", records), team_run("b", late)))

    assert {tile.name: tile.value for tile in page.tiles} == {
        "Cases done": "2 of 6",
        "Teams done": "0 of 2",
        "Time left, estimated": "1 min",
        "To be looked at": "2",
    }
    a, b = rows_of(parts_of(page, "teams")[0])
    assert (a["state"], a["done"], a["longest"]) == ("not done", "1 of 3", "12.0")
    assert (b["state"], b["done"], b["longest"]) == ("not done", "1 of 3", "no result")
    (grid,) = parts_of(page, "cases")
    assert grid.summary == (
        "1 ok, 1 failed in some way, 1 engine error, to be run again, 3 not run yet"
    )
    assert [own.classes for own in grid.rows] == [
        ["box", "s5", "absent"],
        ["s6", "absent", "absent"],
    ]


def test_every_case_of_every_team_is_said_in_words():
    (grid,) = parts_of(measuring_page(eventful()), "cases")

    rows = rows_of(grid.table)
    assert [row["team_a"] for row in rows] == [
        *("20.0", "failed", "timed out", "out of memory", "no output"),
        *("wrong output", "engine error", *["not run yet"] * 5),
    ]
    shades = ["", *["s6"] * 5, "s5", *[""] * 5]
    assert [row["team_a"].css for row in rows] == shades
    assert [row["team_b"] for row in rows][2:5] == ["114.0", "121.0, doubtful", "128.0"]
    assert {row["team_c"] for row in rows[2:]} == {"not run yet"}


def test_running_times_are_those_of_the_cases_that_worked():
    """3, 1 and 20 s: median 3, together 24; the failed one has no time."""
    records = [record(c, s) for c, s in zip(CASES, (3.0, 1.0, 20.0), strict=True)]
    records.append(record("case_4", None, "failed", message="x"))
    run = running([*CASES, "case_4"], team_run("a", records, is_scored=True))

    (row,) = rows_of(parts_of(measuring_page(run), "teams")[0])

    assert [*row.values()] == ["a", "scored", "4 of 4", "", "3.0", "20.0", "24.0"]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param(((), ()), None, id="nothing known"),
        pytest.param(((10.0,), ()), 19 * 10.0 + 20 * 10.0, id="another team's"),
        pytest.param(((10.0,), (100.0,)), 19 * (10.0 + 100.0), id="each by its own"),
        pytest.param(
            ((1000.0, *(30.0,) * 10), ()), 9 * 30.0 + 20 * 30.0, id="the last ten alone"
        ),
        pytest.param(((7.0,), None), 19 * 7.0, id="one has ended"),
        pytest.param((None, None), 0, id="all have ended"),
    ],
)
def test_time_left_is_that_of_the_last_cases(times, expected):
    """A team that has ended, which has no times here, needs none."""
    cases = [f"c{n:02}" for n in range(20)]
    teams = []
    for team, own in zip("ab", times, strict=True):
        records = [record(c, s) for c, s in zip(cases, own or (), strict=False)]
        teams.append(team_run(team, records, problem="gone" if own is None else ""))

    assert seconds_left(running(cases, *teams)) == expected


def test_the_time_left_is_told_in_hours_and_minutes():
    page = measuring_page(running(CASES, team_run("a", [record("case_1", 3000.0)])))

    assert page.tiles[2].value == "1 h 40 min"


@pytest.mark.parametrize(
    ("settings", "lead", "refresh_s"),
    [
        ({}, Words(RUNNING), 10),
        ({"is_running": False}, Words("As of {}, 1 of 3 cases are measured."), 0),
        (
            {"is_running": False, "ended": "docker: gone. [H05]"},
            Words(
                "Ended at {}: docker: gone. [H05] 1 of 3 cases are measured and kept.",
                "banner",
            ),
            0,
        ),
    ],
    ids=["running", "at some moment", "ended"],
)
def test_its_first_words_are_true_whenever_they_are_read(settings, lead, refresh_s):
    """Only a page of what runs is read anew."""
    a = team_run("a", [record("case_1", 9.0)])

    page = measuring_page(running(CASES, a, **settings))

    text = lead.text.format("2026-11-22 02:00:00 UTC")
    assert page.lead == [Words(text, lead.kind)]
    assert page.refresh_s == refresh_s


def test_what_has_to_be_looked_at_comes_by_its_gravity():
    (alarms,) = parts_of(measuring_page(eventful()), "look")

    rows = rows_of(alarms)
    assert [(row["what"], row["team"], row["cases"]) for row in rows] == [
        ("archive refused", "team_a", ""),
        ("not measured to the end", "team_c", ""),
        ("engine error", "team_a", "case_007"),
        ("failed", "team_a", "case_002"),
        ("timed out", "team_a", "case_003"),
        ("out of memory", "team_a", "case_004"),
        ("no output", "team_a", "case_005"),
        ("wrong output", "team_a", "case_006"),
        ("archive doubtful", "team_d", ""),
        ("doubtful", "team_b", "case_004"),
    ]
    assert rows[-1]["what is said of it"] == "few samples"


@pytest.mark.parametrize(
    "run",
    [
        running(CASES, team_run("a")),
        running(CASES, refused=(Refusal(team="b", archive="b.tar.gz", problem="no"),)),
        running((), is_running=False),
    ],
    ids=["not begun", "all refused", "no team"],
)
def test_a_page_of_next_to_nothing_has_something_to_look_at(run):
    page = measuring_page(run)

    (part,) = parts_of(page, "look")
    assert isinstance(part, Table) == bool(run.refused)
    note = "see the first table" if run.refused else ""
    assert (page.tiles[3].note, page.tiles[3].is_alarm) == (note, bool(run.refused))


def test_the_folder_of_the_results_tells_how_far_it_is(tmp_path):
    """Two teams of three cases, of which one is scored, and one has not begun."""
    write_measured(tmp_path / "a", CASES, scores={"liver": [0.5, 0.6, 0.7]})
    write_records([record("case_2", 5.0)], tmp_path / "b" / "efficiency.csv")

    run = read_progress(tmp_path, teams=["c"], problems={"c": "gone"})

    assert run.cases == CASES
    assert [(own.team, own.done, own.is_scored, own.problem) for own in run.teams] == [
        *(("a", 3, True, ""), ("b", 1, False, ""), ("c", 0, False, "gone"))
    ]


def test_a_report_of_teams_without_scores_is_how_far_they_are(tmp_path):
    """For organisers alone: it has the names of all teams."""
    write_records([record("case_2", 5.0)], tmp_path / "r" / "b" / "efficiency.csv")
    file = tmp_path / "page.html"

    html = write_report([tmp_path / "r"], file, is_organiser=True).read_text("utf-8")

    assert "Measuring 1 team on 1 case" in html
    assert "refresh" not in Page(html).text
    with pytest.raises(RankingError):
        write_report([tmp_path / "r"], file, is_organiser=False)


def test_remarks_alike_are_told_with_all_their_numbers():
    """A message is not cut at a semicolon; doubts were written behind each other."""
    busy = "other programs took {} s of the processors meanwhile"
    records = [record("c_1", 5.0, doubts=f"{busy.format(2.8)}; only 3 samples")]
    records += [record("c_2", 5.0, doubts=busy.format(10.1))]
    team = team_run("a", records)
    failed = [("x", "exit code 1; see x.log"), ("y", "exit code 1; see y.log")]

    (alarms,) = parts_of(measuring_page(running(("c_1", "c_2"), team)), "look")

    told = [(row["cases"], row["what is said of it"]) for row in rows_of(alarms)]
    assert told == [
        ("2 cases: c_1, c_2", busy.format("2.8 to 10.1")),
        ("c_1", "only 3 samples"),
    ]
    assert alike(failed) == [("exit code 1; see CASE.log", ["x", "y"])]
