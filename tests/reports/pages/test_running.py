"""The page of a measurement: its numbers, its words, and when it is read anew."""

from dataclasses import replace
from datetime import timedelta

import pytest

from flare.reports.pages.running import Now, State, duration, seconds_left
from flare.reports.pages.running_page import running_html
from flare.results.refused_csv import Refusal
from tests.builders.pages import FEW_HOSTILE, HOSTILE, Page
from tests.builders.running import BEGUN, eventful, record, running, team_run

CASES = ("case_1", "case_2", "case_3")

REFRESH = ("meta", {"http-equiv": "refresh", "content": "10"})


def tiles_of(html):
    """The numbers at the head of a page, with their notes."""
    found = {}
    for part in html.split("<dt>")[1:]:
        name, _, rest = part.partition("</dt>")
        value = rest.partition(">")[2].partition("<")[0]
        found[name] = value
    return found


def texts_of(html):
    """All text of a page, in one line."""
    return " ".join(Page(html).text.split())


def test_cases_are_counted():
    """Of six: a has two, of which one is an engine error; b has one that timed out."""
    a = team_run(
        "a",
        CASES,
        [record("case_1", 12.0), record("case_2", None, "engine error", message="x")],
        left=("case_3",),
    )
    b = team_run("b", CASES, [record("case_1", None, "timed out", message="late")])

    html = running_html(running(CASES, a, b))

    assert tiles_of(html) == {
        "Cases done": "2 of 6",
        "Teams done": "0 of 2",
        "Time left, estimated": "not known",
        "To be looked at": "2",
    }
    assert '<progress value="2" max="6" aria-label="Cases done">' in html
    page = Page(html)
    rows = {row["team"]: row for row in page.table("Cases that are done")}
    assert [rows["a"][head] for head in ("state", "done", "ok", "engine error")] == [
        *("waiting", "1 of 3", "1", "1")
    ]
    assert [rows["b"][head] for head in ("state", "done", "ok", "timed out")] == [
        *("waiting", "1 of 3", "", "1")
    ]
    assert (
        'aria-label="What came of each case: 1 ok, 1 failed in some way, 1 engine'
        ' error, 3 not run yet"' in html
    )


def test_every_case_of_every_team_is_said_in_words():
    page = Page(running_html(eventful()))

    rows = page.table("What came of each case of each team")
    assert [row["team_a"] for row in rows] == [
        *("20.0", "failed", "timed out", "out of memory", "no output"),
        *("wrong output", "engine error", "running"),
        *("not run yet",) * 4,
    ]
    assert [row["team_b"] for row in rows][2:5] == ["114.0", "121.0, doubtful", "128.0"]
    assert {row["team_c"] for row in rows[2:]} == {"not run yet"}


def test_running_times_are_those_of_the_cases_that_worked():
    """3, 1 and 20 s: median 3, together 24; the failed one has no time."""
    a = team_run(
        "a",
        [*CASES, "case_4"],
        [
            *(record(f"case_{n}", s) for n, s in ((1, 3.0), (2, 1.0), (3, 20.0))),
            record("case_4", None, "failed", message="x"),
        ],
    )

    page = Page(running_html(running([*CASES, "case_4"], a)))

    (row,) = page.table("Cases that are done")
    heads = ("state", "done", "median", "longest", "all together")
    assert [row[head] for head in heads] == ["done", "4 of 4", "3.0", "20.0", "24.0"]


@pytest.mark.parametrize(
    ("whole_s", "expected"),
    [
        pytest.param(((), ()), None, id="nothing known"),
        pytest.param(((10.0, 20.0), ()), 5 * 15.0, id="another team counts alike"),
        pytest.param(((10.0,), (100.0,)), 2 * 10.0 + 3 * 100.0, id="each by its own"),
        pytest.param(
            ((1000.0, *(30.0,) * 10), ()), 5 * 30.0, id="the last ten alone count"
        ),
    ],
)
def test_time_left_is_that_of_the_last_cases(whole_s, expected):
    """Two cases of a and three of b are left."""
    a = team_run("a", CASES, [record("case_1", 9.0)], whole_s=whole_s[0])
    b = team_run("b", CASES, whole_s=whole_s[1])

    assert seconds_left(running(CASES, a, b)) == expected


def test_a_team_that_has_ended_needs_no_time():
    a = team_run("a", CASES, [record("case_1", 9.0)], whole_s=(7.0,))
    b = team_run("b", CASES, problem="gone")

    assert seconds_left(running(CASES, a, b)) == 2 * 7.0
    assert seconds_left(running(CASES, b)) == 0
    assert "Time left: no case is left." in texts_of(running_html(running(CASES, b)))


def test_how_time_is_estimated_is_said():
    """Five cases of at most an hour each."""
    a = team_run("a", CASES, [record("case_1", 9.0)])
    b = team_run("b", CASES)

    nothing = texts_of(running_html(running(CASES, a, b)))
    some = texts_of(running_html(running(CASES, replace(a, whole_s=(90.0,)), b)))

    early = texts_of(running_html(running(CASES, a, b, longest_case_s=None)))

    assert "Time left: not known, as it is not planned yet what is to be run." in early
    most = "At most 5 h if each container ran into its time limit, and what is around"
    assert "Time left: not known, as no case has ended since the program was" in nothing
    assert "Time left: 5 cases, each as long as the mean of the last 10 of its" in some
    assert most in nothing
    assert most in some
    assert tiles_of(running_html(running(CASES, replace(a, whole_s=(90.0,)), b)))[
        "Time left, estimated"
    ] == duration(450)


def test_times_are_as_exact_as_anybody_needs():
    assert [duration(s) for s in (59.4, 59.6, 3599, 86_399, 90_000, 172_800)] == [
        *("59 s", "1 min", "1 h", "1 d", "1 d 1 h", "2 d")
    ]


@pytest.mark.parametrize("state", State)
def test_only_a_page_of_what_runs_is_read_anew(state):
    """Without scripts by its head, with them by a script of its own."""
    html = running_html(eventful(state=state))

    is_running = state is State.RUNNING
    assert (REFRESH in Page(html).elements) == is_running
    assert ("<noscript><meta" in html) == is_running
    assert ("location.reload()" in html) == is_running
    assert ("Time left" in html) == is_running


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (
            {"now": Now(team="a", case="case_1", since=BEGUN, until=BEGUN)},
            "As of 2026-11-22 02:00:00 UTC, a case_1 is running. If this is still here"
            " after 2026-11-22 01:50:00 UTC, the measurement has ended without a word,"
            " or something holds it up.",
        ),
        (
            {"now": Now(team="a", since=BEGUN)},
            "As of 2026-11-22 02:00:00 UTC, a is being scored. How long that may take,"
            " nobody can tell: if nothing changes here for long, see whether the"
            " program still runs.",
        ),
        (
            {},
            "As of 2026-11-22 02:00:00 UTC, it is being prepared, or is between two"
            " cases. How long that may take, nobody can tell",
        ),
        (
            {"state": State.FINISHED, "as_of": BEGUN + timedelta(hours=3)},
            "It has come to its end at 2026-11-22 04:50:00 UTC, after 3 h: 1 of 3 cases"
            " are measured.",
        ),
        (
            {"state": State.STOPPED},
            "Somebody has stopped it at 2026-11-22 02:00:00 UTC: 1 of 3 cases are"
            " measured and kept. The same command goes on.",
        ),
        (
            {"state": State.BROKEN, "problem": "docker: gone. [H05]"},
            "An error has ended it at 2026-11-22 02:00:00 UTC: docker: gone. [H05] 1 of"
            " 3 cases are measured.",
        ),
    ],
    ids=["a case", "scoring", "between", "finished", "stopped", "broken"],
)
def test_its_first_words_are_true_whenever_they_are_read(settings, text):
    a = team_run("a", CASES, [record("case_1", 9.0)])

    assert text in texts_of(running_html(running(CASES, a, **settings)))


def test_what_has_to_be_looked_at_comes_by_its_gravity():
    page = Page(running_html(eventful()))

    rows = page.table("The gravest first")
    said = "what is said of it, or of the first case"
    assert [(row["what"], row["team"], row["cases"]) for row in rows] == [
        ("disk nearly full", "", ""),
        ("archive refused", "team_a", ""),
        ("measurement ended", "team_c", ""),
        ("not scored", "team_d", ""),
        ("engine error", "team_a", "case_007"),
        ("failed", "team_a", "case_002"),
        ("timed out", "team_a", "case_003"),
        ("out of memory", "team_a", "case_004"),
        ("no output", "team_a", "case_005"),
        ("wrong output", "team_a", "case_006"),
        ("doubtful", "team_b", "case_004"),
        ("archive doubtful", "team_d", ""),
    ]
    assert rows[0][said].startswith("the disk of the results: 3.0 GiB are left;")
    assert rows[10][said] == "few samples"


def test_many_cases_that_fail_alike_are_one_line():
    cases = [f"c{n:02}" for n in range(40)]
    records = [record(c, None, "failed", message=f"{c}: exit 1") for c in cases]
    html = running_html(running(cases, team_run("a", cases, records)))

    (row,) = Page(html).table("The gravest first")
    assert row["cases"] == (
        "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 30 more"
    )
    assert row["what is said of it, or of the first case"] == "c00: exit 1"


def test_what_has_happened_comes_the_latest_first():
    page = Page(running_html(eventful()))

    assert page.table("The latest first") == [
        {"when": "2026-11-22 01:59:03 UTC", "what": "team_c: ended"},
        {"when": "2026-11-22 01:59:00 UTC", "what": "team_b case_009: ok, 101.00 s"},
    ]


@pytest.mark.parametrize(
    "run",
    [
        running(CASES, team_run("a", CASES)),
        running(CASES, refused=(Refusal(team="b", archive="b.tar.gz", problem="no"),)),
        running(CASES, state=State.FINISHED),
    ],
    ids=["not begun", "all refused", "no team"],
)
def test_a_page_of_next_to_nothing_is_whole(run):
    html = running_html(run)

    assert "Nothing yet." in html
    assert html.endswith("</html>\n")


def test_equal_runs_have_equal_bytes():
    assert running_html(eventful()) == running_html(eventful())


@pytest.mark.parametrize("name", FEW_HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_text(name):
    """As a team, a case, a reason, an event, a disk and a setting."""

    def page(text):
        a = team_run("a", (text,), [record(text, None, "failed", message=text)])
        b = team_run(text, (text,), problem=text, doubts=(text,))
        now = Now(team=text, case=text, since=BEGUN)
        run = eventful(names=(text, "b", "c", "d"), settings=((text, text),))
        return [
            Page(running_html(each).encode().decode())  # as it is written
            for each in (run, running((text,), a, b, now=now, challenge=text))
        ]

    for hostile, usual in zip(page(name), page("x"), strict=True):
        assert [
            (tag, sorted({*found} - {"title"})) for tag, found in hostile.elements
        ] == [(tag, sorted(found)) for tag, found in usual.elements]
        assert not any(char in hostile.text for char in "\0\u202e\u2028\udc80")
