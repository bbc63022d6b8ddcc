"""Results of teams, brought together from their folders or one table."""

import json

import pytest

from flare.challenge.reading import scoring_rules
from flare.ranking.table import read_results
from flare.results.errors import RankingError
from tests.builders import error_of, write_file
from tests.builders.results import (
    FLARE21,
    FLARE22,
    ranked,
    values_of,
    write_table,
    write_team,
)

WITH_TIME = ranked("dsc", "runtime_s")


def missing_of(table):
    return {(m.team, m.case, m.metric): m.reason for m in table.missing}


def problem_of(source, metrics, challenge=FLARE21):
    error = error_of(RankingError, read_results, source, metrics, challenge)
    return error.problem


# --- Folders of teams -------------------------------------------------------------


def test_flare22_takes_2048_mb_off_the_memory_before_the_area(tmp_path):
    """The area of efficiency.csv stays as it was measured; traces have the memory."""
    traces = {
        # 0 to 2048 to 4096 to 0 MB: above 2048 a triangle of 1 s by 2048 MB on each
        # side of the third sample, at 2 and 3 s; the last second falls to 0: 1 s.
        "a": [(0, 0), (1, 2048), (2, 4096), (3, 0)],
        "b": [(0, 2048), (3, 2048)],
        # Uneven steps: 10 s of 2148 MB.
        "c": [(0, 2148), (0.5, 2148), (10, 2148)],
    }
    for team, samples in traces.items():
        rules = scoring_rules(FLARE22)
        write_team(tmp_path / team, {"c1": 0.9}, rules=rules)
        (tmp_path / team / "efficiency.csv").write_text(
            "case,status,runtime_s,gpu_memory_area_mb_s,cpu_area_percent_s\n"
            f"c1,ok,{samples[-1][0]},99999,7\n"
        )
        (tmp_path / team / "traces").mkdir()
        lines = ["seconds,gpu_memory_mb", *(f"{s},{mb}" for s, mb in samples)]
        (tmp_path / team / "traces" / "c1.csv").write_text("\n".join(lines) + "\n")

    # a: (0 + 2048) / 2 + (2048 + 0) / 2 = 2048; c: 10 * 100.
    values = values_of(read_results(tmp_path, FLARE22.ranking, FLARE22))
    areas = {team: values[team, "c1", "gpu_memory_area_mb_s"] for team in "abc"}
    assert areas == {"a": 2048, "b": 0, "c": 1000}

    trace = tmp_path / "b" / "traces" / "c1.csv"
    for content, problem in (
        ("1,5\n0,5\n", "line 3: expected seconds, in order"),
        # A sampler that has died is no small area.
        ("", "0 samples, up to 0.0 s of 3.0 s"),
        ("3,5\n", "1 sample, up to 0.0 s of 3.0 s"),
        ("0,5\n1,5\n", "2 samples, up to 1.0 s of 3.0 s"),
    ):
        trace.write_text(f"seconds,gpu_memory_mb\n{content}")
        assert problem in problem_of(tmp_path, FLARE22.ranking, FLARE22)
    trace.unlink()
    assert "it cannot be read" in problem_of(tmp_path, FLARE22.ranking, FLARE22)


def test_cases_are_those_of_metrics_json_alone(tmp_path):
    """A file name for a case is that case; a case of its own is a mistake."""
    rows = [("c1.nii.gz", "ok", 1, 0), ("c2.nii.gz", "ok", 1, 0)]
    failed = {"c1": "no file", "c2": "no file"}
    write_team(tmp_path / "crash", {"c1": 0.0, "c2": 0.0}, rows, failed=failed)
    rows = [("c1", "ok", 9, 9), ("c2", "ok", 9, 9)]
    write_team(tmp_path / "a", {"c1": 0.5, "c2": 0.5}, rows)

    table = read_results(tmp_path, WITH_TIME, FLARE21)
    assert table.cases == ("c1", "c2")
    assert missing_of(table) == {
        ("crash", case, metric): "no file"
        for case in ("c1", "c2")
        for metric in ("dsc", "runtime_s")
    }

    lines = ["case,status,runtime_s", "c1,ok,5", "c2,ok,5", "warm_up,ok,1"]
    (tmp_path / "crash" / "efficiency.csv").write_text("\n".join(lines) + "\n")
    found = problem_of(tmp_path, ranked("runtime_s"))
    assert "warm_up: metrics.json has no such case" in found
    write_team(tmp_path / "b", {})
    assert "this team has no case" in problem_of(tmp_path, ranked("dsc"))


def test_what_is_odd_about_how_teams_were_measured_is_noted(tmp_path):
    """Other limits, an engine that failed, and rows that are not there yet."""
    for team, memory in (("a", "28g"), ("b", "2g")):
        rows = [("c1", "ok", 5, 9), *([("c2", "ok", 6, 9)] if team == "a" else [])]
        write_team(tmp_path / team, {"c1": 0.9, "c2": 0.9}, rows)
        record = {
            "settings": {"memory": memory, "timeout_s": 60},
            "sessions": [{"engine_cost_s": {"largest": 0.4, "smallest": 0.1}}],
        }
        (tmp_path / team / "measurement.json").write_text(json.dumps(record))
    file = tmp_path / "a" / "efficiency.csv"
    file.write_text(file.read_text().replace("c1,ok,5,9", "c1,engine error,,"))

    table = read_results(tmp_path, WITH_TIME, FLARE21)

    end = ", and ranks last there, without its fault: measure it again before you"
    assert table.roll.interim_text
    assert table.roll.not_measured_to_the_end == ("a", "b")
    assert table.notes == (
        f"a was not measured to the end (c1){end} publish",
        f"b was not measured to the end (c2){end} publish",
        "Teams were measured with different memory: a 28g, b 2g",
    )
    # What empty containers differ by is how far equal teams may lie apart.
    spreads = values_of(table, "spread")
    assert spreads["a", "c2", "runtime_s"] == pytest.approx(0.3)
    assert ("a", "c2", "dsc") not in spreads
    # A team that was killed before its first case.
    file.write_text(file.read_text().splitlines()[0] + "\n")
    first = read_results(tmp_path, ranked("dsc"), FLARE21).notes[0]
    assert first.startswith("a was not measured to the end (c1, c2)")


def test_own_running_times_that_lack_a_case_are_no_measurement(tmp_path):
    """Nobody can go on with it: the ranking is none for the time being."""
    write_team(tmp_path / "SouthNet", {"c1": 0.9, "c2": 0.9}, [("c1", "ok", 5, 9)])

    table = read_results(tmp_path, WITH_TIME, FLARE21)

    assert table.roll.interim_text == ""
    assert table.notes == (
        "SouthNet: efficiency.csv, which flare measure has not written, has no value of"
        " c2, and the team ranks last there",
    )


def test_cases_that_would_be_formulas_are_the_same_in_both_files(tmp_path):
    """efficiency.csv marks them; a table that somebody else made does not."""
    write_team(tmp_path / "a", {"=c": 0.9}, [("'=c", "ok", 5, 9)])

    found = values_of(read_results(tmp_path, WITH_TIME, FLARE21))
    assert found == {("a", "=c", "dsc"): 0.9, ("a", "=c", "runtime_s"): 5}

    rows = [("'=a", "1", "dsc", 1), ("=a", "1", "dsc", 1)]
    file = write_table(tmp_path / "results.csv", rows)
    assert read_results(file, ranked("dsc"), FLARE21).teams == ("'=a", "=a")


def test_a_status_counts_before_what_stands_beside_it(tmp_path):
    """Whatever placeholder a failed case has, and however the status is written."""
    rows = [("c1", "OK", 5, 9), ("c2", "failed", -1, "nan"), ("c3", "ok", 5, 9)]
    scores = {"c1": 0.9, "c2": 0.9, "c3": 0.9, "c4": None}
    write_team(tmp_path / "a", scores, [*rows, ("c4", "ok", "", 9)])

    assert missing_of(read_results(tmp_path, WITH_TIME, FLARE21)) == {
        ("a", "c4", "dsc"): "there is no row",
        ("a", "c4", "runtime_s"): "the value is empty",
    } | {
        ("a", case, metric): f"status {status}"
        for case, status in (("c1", "OK"), ("c2", "failed"))
        for metric in ("dsc", "runtime_s")
    }


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0.25", "Infinity", "c1: dsc is inf, which nothing"),
        ("0.25", "NaN", "c1: dsc is nan"),
        ("0.25", "-1", "c1: dsc is -1, negative"),
        ("0.25", f"1{'0' * 400}", "it is no metrics.json"),
        ("0.25", "[" * 100_000, "it is not JSON in UTF-8"),
        ("0.25", "7", "c1: dsc is 7.0, above 1"),
        ("0.25", "true", "c1: dsc is true, no number"),
        ("0.25", '"0.25"', 'c1: dsc is "0.25", no number'),
        ('"c2.nii.gz"', '"c1.nii.gz"', "c1: there twice"),
        ('"evaluation": {', '"evaluation": null, "x": {', "it is no metrics.json"),
    ],
    ids=[
        *("inf", "nan", "negative", "huge", "deep", "percent", "bool", "text"),
        *("twice", "null"),
    ],
)
def test_a_metrics_json_that_is_not_right(tmp_path, old, new, problem):
    write_team(tmp_path / "a", {"c1": 0.25, "c2": 0.5})
    file = tmp_path / "a" / "metrics.json"
    file.write_text(file.read_text().replace(old, new))

    assert problem_of(tmp_path, ranked("dsc")).startswith(problem)


def test_measured_values_that_cannot_be_name_the_line(tmp_path):
    """A running time of 0 would be the best; no memory is that of no GPU."""
    write_team(tmp_path / "a", {"c1": 0.9}, [("c1", "ok", 0, 0)])
    assert values_of(read_results(tmp_path, ranked("max_gpu_memory_mb"), FLARE21))
    found = problem_of(tmp_path, ranked("runtime_s"))
    assert found.startswith("line 2: runtime_s is 0, which no run takes")

    (tmp_path / "a" / "efficiency.csv").write_text("case,status,nsd_x\nc1,ok,80\n")
    found = problem_of(tmp_path, ranked("nsd_x"))
    assert found.startswith("line 2: nsd_x is 80.0, above 1")


# --- Tables -----------------------------------------------------------------------


def test_a_result_without_a_value_and_one_without_a_row_are_missing(tmp_path):
    rows = [("a", "1", "dsc", 0.9), ("a", "2", "dsc", ""), ("b", "2", "dsc", 0.5)]

    table = read_results(
        write_table(tmp_path / "results.csv", rows), ranked("dsc"), FLARE21
    )

    assert missing_of(table) == {
        ("a", "2", "dsc"): "the value is empty",
        ("b", "1", "dsc"): "there is no row",
    }


def test_a_table_may_hold_metrics_of_the_challenge_that_are_not_ranked(tmp_path):
    rows = [("a", "1", "dsc", 1), ("a", "1", "nsd", 1)]
    file = write_table(tmp_path / "results.csv", rows)

    assert read_results(file, ranked("dsc"), FLARE21).metrics == ("dsc",)
    assert "no team has a value of hd" in problem_of(file, ranked("dsc", "nsd", "hd"))


LONG = """team,case,metric,value
A,c1,dsc,0.9
A,c1,nsd,0.7
A,c2,dsc,
B,c1,dsc,0.85
B,c1,nsd,1
B,c2,dsc,0.5
"""
WIDE = "team,case,dsc,nsd\nA,c1,0.9,0.7\nA,c2,,\nB,c1,0.85,1\nB,c2,0.5,\n"
R_WIDE = """"","Team","CASE","DSC","nsd"
"1","A","c1",0.9,0.7
"2","A","c2",NA,NA
"3","B","c1",0.85,1
"4","B","c2",0.5,NA
"""
CHALLENGER = "Task,Algorithm,case,value\n" + "".join(
    f"T1,{row}\n" for row in ("A,c1,0.9", "A,c2,NaN", "B,c1,0.85", "B,c2,0.5")
)
WITH_COMMAS = R_WIDE.replace(",", ";").replace(".", ",")

FORMS = {
    "long": LONG,
    "long by pandas": "".join(
        f"{'' if number == 0 else number - 1},{line}\n"
        for number, line in enumerate(LONG.splitlines())
    ),
    "long, of an old Mac, in capitals": LONG.upper().replace("\n", "\r"),
    "wide": WIDE,
    "wide, with blank lines": f"\n{WIDE},,,\n\n".replace("\n", "\r\n"),
    "wide, with columns without names": WIDE.replace("\n", ",,\n"),
    "write.csv of R": R_WIDE,
    "write.csv2 of R": WITH_COMMAS,
    "sep=; of Excel": f"sep=;\n{WITH_COMMAS}",
    "a point in a table with semicolons": R_WIDE.replace(",", ";"),
    "#N/A of Excel": WIDE.replace(",,\n", ",#N/A,#N/A\n"),
    "with a mark": WIDE.encode("utf-8-sig"),
    "Unicode Text of Excel": WITH_COMMAS.replace(";", "\t").encode("utf-16"),
    "challengeR": CHALLENGER,
}
"""One table in all forms that people have; R 4.2 and pandas 3.1 have written theirs."""


@pytest.mark.parametrize("form", FORMS)
def test_a_table_may_have_each_form_that_people_have(tmp_path, form):
    file = tmp_path / "results.csv"
    content = FORMS[form]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    dsc = {("A", "c1"): 0.9, ("B", "c1"): 0.85, ("B", "c2"): 0.5}
    nsd = {("A", "c1"): 0.7, ("B", "c1"): 1}
    expected = {(*key, "dsc"): value for key, value in dsc.items()}
    names = ["dsc"]
    if form != "challengeR":
        expected |= {(*key, "nsd"): value for key, value in nsd.items()}
        names.append("nsd")

    table = read_results(file, ranked(*names), FLARE21)

    values = values_of(table)
    assert {(t, c.lower(), m): v for (t, c, m), v in values.items()} == expected
    assert len(table.missing) == 4 * len(names) - len(expected)
    assert table.notes == ()


def test_columns_of_a_wide_table_that_are_no_metric_are_told(tmp_path):
    """Also beside a column of another metric of the challenge, which is not ranked."""
    file = tmp_path / "results.csv"
    file.write_text("team,case,centre,DSC,nsd,dcs\nA,c1,x,0.9,95,1\nB,c1,y,0.8,80,0\n")

    table = read_results(file, ranked("dsc"), FLARE21)

    assert values_of(table) == {("A", "c1", "dsc"): 0.9, ("B", "c1", "dsc"): 0.8}
    assert table.notes == ("Ignored columns, as no metric is called so: centre, dcs",)


SAVE = "Save the table as CSV UTF-8, as Excel calls it."
SUMMARY = (
    '{"foreground_mean": {"Dice": 0.9}, "metric_per_case": [{"metrics": {"1": {}}}]}'
)


@pytest.mark.parametrize(
    ("content", "problem", "remedy"),
    [
        (LONG.replace("A", "\u961f").encode("gbk"), "it is not a text in UTF-8", SAVE),
        (WIDE.encode("utf-16-le"), "it is not a text in UTF-8", SAVE),
        (b"PK\3\4\x14", "it is an Excel workbook or a zip, not a text file", SAVE),
        (b"\xd0\xcf\x11\xe0", "it is an Excel workbook, not a text file", SAVE),
        (b"\x1f\x8b\x08", "it is compressed by gzip, not a text file", SAVE),
        (SUMMARY, "it is JSON, not a table", "What nnU-Net's summary.json is about"),
        ("\n<!DOCTYPE html>", "it is HTML, not a table", SAVE),
        (LONG.replace("0.9", "-inf"), "line 2: -inf: not finite; leave a missing", ""),
        (
            LONG.replace("0.9", '"0,9"'),
            "line 2: 0,9: a comma where a decimal point belongs",
            "",
        ),
        # Whether 1,234 is above 1000 or below 2 is not known.
        (
            "team;case;dsc\nA;c1;0.5\nB;c1;1,234\n",
            "line 3: 1,234: line 2 has the decimal mark .",
            "",
        ),
        ("team,case,metric,dsc\nA,c,x,1\n", "it has no column value; its", ""),
        ("team,case,Dice\nA,c,1\n", "it has no column dsc; its columns are: team", ""),
        ("team,case,dsc_liver\nA,c,1\n", "it has no column dsc; its columns are", ""),
        (
            "team,case,Dice,nsd\nA,c,1,1\n",
            "no team has a value of dsc. Ignored columns, as no metric is called so: D",
            "--metrics nsd",
        ),
        ("team,dsc\nA,1\n", "it has no column case; its columns are: team, dsc", ""),
        ("team,case,dsc,DSC\nA,c,1,1\n", "it has two columns dsc", ""),
        ("team,Team,case,dsc\nA,A,c,1\n", "it has two columns team", ""),
        (
            "team,case,value,dsc\nA,c,1,1\n",
            "it has a column value beside dsc, and no metric",
            "Give value the name of its metric",
        ),
        (
            CHALLENGER,
            "it has no column metric, and dsc, nsd are ranked",
            "--metrics dsc",
        ),
    ],
)
def test_a_table_that_cannot_be_ranked_says_how_to_get_there(
    tmp_path, content, problem, remedy
):
    file = tmp_path / "results.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())

    error = error_of(RankingError, read_results, file, ranked("dsc", "nsd"), FLARE21)

    assert error.problem.startswith(problem)
    assert remedy in str(error)
    assert "codec" not in str(error)


def test_folders_of_nnunet_are_led_to_flare_score(tmp_path):
    write_file(tmp_path / "A" / "summary.json", SUMMARY)

    with pytest.raises(RankingError, match=r"flare score writes a metrics\.json"):
        read_results(tmp_path, ranked("dsc"), FLARE21)


def test_each_task_of_challenger_is_ranked_by_itself(tmp_path):
    file = write_file(tmp_path / "results.csv", f"{CHALLENGER}T2,A,c1,0.1\n")

    assert problem_of(file, ranked("dsc")) == (
        "line 6: another task, T1, T2: rank a table of each by itself"
    )


def test_ends_of_the_scale_can_be(tmp_path):
    """And only scores have the end 1."""
    rows = [
        *(("a", "1", "dsc", "1"), ("a", "2", "dsc", "0"), ("a", "1", "nsd_x", "0")),
        ("a", "1", "dscent", "93.1"),
    ]
    file = write_table(tmp_path / "results.csv", rows)

    found = values_of(read_results(file, ranked("dsc", "nsd_x", "dscent"), FLARE21))

    assert sorted(found.values()) == [0, 0, 1, 93.1]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [("a", "1", "dsc", 1), ("b", "1", "dsc", 1), ("a", "1", "dsc", 0)],
            "line 2 and line 4 are both a 1 dsc",
        ),
        ([("a", "1", "dice", 1)], "line 2: unknown metric dice, not dsc"),
        (
            [("a", "1", "dsc", "1"), ("a", "2", "dsc", "1.0000001")],
            "line 3: dsc is 1.0000001, above 1",
        ),
        ([("a", "1", "dsc", "x")], "line 2: x: not a number; leave a missing value em"),
        ([("a", "1", "dsc", "1_0")], "line 2: 1_0: not a number"),
        ([("a", "1", "dsc", "1e308")], "line 2: dsc is 1e+308, which nothing"),
        ([("", "1", "dsc", 1)], "line 2: the team or the case is empty"),
        ([("a", " ", "dsc", 1)], "line 2: the team or the case is empty"),
        ([("a", "1", "dsc", "inf")], "line 2: inf: not finite"),
        ([("a", "1", "dsc", "1e400")], "line 2: 1e400: not finite"),
        ([("a", "1", "dsc", -1)], "line 2: dsc is -1, negative"),
        (
            [("Team", "1", "dsc", 1), ("team", "1", "dsc", 1)],
            "teams Team, team differ only in spelling",
        ),
        (
            [("a", "cafe\u0301", "dsc", 1), ("b", "caf\u00e9", "dsc", 1)],
            "cases cafe\u0301, caf\u00e9 differ only in spelling",
        ),
        ([("a", "1", "dsc", 1, 7)], "line 2 has 5 cells, expected 4"),
        ([("a", "1", "dsc")], "line 2 has 3 cells, expected 4"),
        ([], "there is no result in it"),
    ],
)
def test_a_mistake_names_the_rows(tmp_path, rows, problem):
    file = write_table(tmp_path / "results.csv", rows)

    assert problem_of(file, ranked("dsc")).startswith(problem)
