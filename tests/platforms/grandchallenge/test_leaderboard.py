"""The platform's leaderboard, worked out by hand."""

import json

import pytest

from flare.platforms.board import Order
from flare.platforms.grandchallenge.leaderboard import rank_results
from flare.platforms.grandchallenge.phase import (
    Column,
    Phase,
    ResultDisplay,
    ScoringMethod,
)
from flare.platforms.leaderboard import Result, read_result
from tests.builders import run_flare, write_file
from tests.builders.errors import all_told

SCORE = "m.dsc"


ABSOLUTE, MEAN, MEDIAN = ScoringMethod
ALL, RECENT, BEST = ResultDisplay

COLUMNS = (
    Column(title="NSD", path="m.nsd", order=Order.DESCENDING),
    Column(title="Time", path="m.time", order=Order.ASCENDING),
    Column(
        title="Volume",
        path="m.volume",
        order=Order.DESCENDING,
        exclude_from_ranking=True,
    ),
)
TWICE = Column(title="DSC", path=SCORE, order=Order.DESCENDING), COLUMNS[0]
"""The score as a column as well."""


def phase(method, display=ALL, columns=COLUMNS):
    """DSC is the score; NSD and time are ranked too, the volume is not."""
    return Phase(
        title="Mine",
        score_title="DSC",
        score_jsonpath=SCORE,
        extra_results_columns=columns,
        scoring_method_choice=method,
        result_display_choice=display,
    )


def result(name, dsc, nsd, time):
    return Result(name=name, metrics={"m": {"dsc": dsc, "nsd": nsd, "time": time}})


def dsc_of(*values):
    return [result(*pair, 1, 1) for pair in zip("ab", values, strict=True)]


TEAMS = [
    # name, DSC (its rank), NSD (its rank), time (its rank)
    result("a", 0.9, 0.7, 10),  # 1, 3, 2
    result("b", 0.8, 0.9, 30),  # 2, 1, 4
    result("c", 0.8, 0.8, 5),  # 2, 2, 1
    result("d", 0.7, 0.7, 20),  # 4, 3, 3
]


OF_USERS = [result("u", 0.9, 1, 1), result("v", 0.8, 1, 1), result("u", 0.7, 1, 1)]
NULL = "m.dsc is no number (null)"
INVALID = [*OF_USERS[:2], result("u", None, 1, 1)]


@pytest.mark.parametrize(
    ("results", "phase", "expected"),
    [
        # The ranks of DSC: 1, 2, 2, and then 4.
        (TEAMS, phase(ABSOLUTE), "a 1 1, c 2 2, b 2 2, d 4 4"),
        # a (1 + 3 + 2) / 3, b (2 + 1 + 4) / 3, c (2 + 2 + 1) / 3, d (4 + 3 + 3) / 3.
        (TEAMS, phase(MEAN), "c 1 5/3, a 2 2, b 3 7/3, d 4 10/3"),
        # a of 1 2 3: 2, b of 1 2 4: 2, c of 1 2 2: 2, d of 3 3 4: 3.
        (TEAMS, phase(MEDIAN), "c 1 2, b 1 2, a 1 2, d 4 3"),
        # Of two: a has 1 and 3, so 2; b 2 and 1, c 2 and 2, d 4 and 3.
        (TEAMS, phase(MEDIAN, columns=COLUMNS[:1]), "b 1 3/2, c 2 2, a 2 2, d 4 7/2"),
        # DSC counts once: (1 + 2) / 2 each, not (1 + 1 + 2) / 3.
        (
            [result("a", 0.9, 0.1, 1), result("b", 0.8, 0.2, 1)],
            phase(MEAN, columns=TWICE),
            "b 1 3/2, a 1 3/2",
        ),
        (dsc_of(True, 0.5), phase(ABSOLUTE), "a 1 1, b 2 2"),
        # 0.1 + 0.2 is not 0.3, whatever is displayed.
        (dsc_of(0.3, 0.1 + 0.2), phase(ABSOLUTE), "b 1 1, a 2 2"),
        (OF_USERS, phase(ABSOLUTE), "u 1 1, v 2 2, u 3 3"),
        (OF_USERS, phase(ABSOLUTE, RECENT), "v 1 1, u 2 2"),
        (INVALID, phase(ABSOLUTE, RECENT), "v 1 1"),
        (INVALID, phase(ABSOLUTE, BEST), "u 1 1, v 2 2"),
        (OF_USERS, phase(ABSOLUTE, BEST), "u 1 1, v 2 2"),
    ],
    ids=["absolute", "mean", "median", "median of two", "a path twice", "true",
         "all digits", "all", "most recent", "it is invalid", "best is valid", "best"],
)  # fmt: skip
def test_a_board_has_the_ranks_that_the_platform_gives(results, phase, expected):
    """Name, rank, and what the rank goes by."""
    board, left_out = rank_results(results, phase)

    rows = [f"{result.name} {rank} {score}" for rank, score, result in board]
    assert ", ".join(rows) == expected
    if phase.result_display_choice is BEST:
        assert board[0][2].metrics["m"]["dsc"] == 0.9
        assert left_out[-1] in (("u", "a better result is there"), ("u", NULL))


@pytest.mark.parametrize("method", ScoringMethod)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "m.nsd is no number (null)"),
        ("0.9", 'm.nsd is no number ("0.9")'),
        ([0.9], "m.nsd is no number ([0.9])"),
        ("missing", "m.nsd is missing"),
        (float("inf"), "m.nsd is no number (Infinity)"),
        (10**400, f"m.nsd is no number ({'1' + 39 * '0'})"),
    ],
)
def test_a_result_without_a_ranked_number_is_left_out_and_named(method, value, reason):
    """By every method: even where only the score decides, as on the platform."""
    bad = result("bad", 0.99, value, 1)
    if value == "missing":
        del bad.metrics["m"]["nsd"]

    board, left_out = rank_results([*TEAMS, bad], phase(method))

    assert left_out == [("bad", reason)]
    assert board == rank_results(TEAMS, phase(method))[0]


# --- Files ------------------------------------------------------------------------


def write(folder, content):
    write_file(folder / "metrics.json", content)
    return folder / "metrics.json"


def test_a_result_is_called_like_its_folder(tmp_path):
    """Be it a link, or like a file of another name; NaN is null, as on the platform."""
    write(tmp_path / "runs" / "7" / "output", '{"m": {"dsc": NaN}}')
    (tmp_path / "team a").symlink_to(tmp_path / "runs" / "7" / "output")
    (tmp_path / "team_b.json").write_text("{}")

    found = read_result(tmp_path / "team a" / "metrics.json")

    assert found == Result(name="team a", metrics={"m": {"dsc": None}})
    assert read_result(tmp_path / "team_b.json").name == "team_b"


def scored_by(folder, challenge):
    evaluation = {"evaluation": {"challenge": challenge}} if challenge else {}
    content = {**evaluation, "aggregates": {"dsc_mean": 0.5, "dsc_aorta_mean": 0.25}}
    return write(folder / (challenge or "old"), json.dumps(content))


@pytest.mark.parametrize(
    ("challenges", "columns"),
    [
        # An organ of FLARE 2022 that FLARE 2021 does not have.
        (["flare22", ""], ["Aorta DSC", "0.2500"]),
        (["flare21"], ["Liver DSC"]),
        ([""], ["Liver DSC"]),
    ],
)
def test_the_columns_are_those_of_the_results_challenge(tmp_path, challenges, columns):
    files = [scored_by(tmp_path, challenge) for challenge in challenges]

    run = run_flare("leaderboard", *files, "--phase", "sanity")

    assert (run.returncode, run.stderr) == (0, "")
    assert all(text in run.stdout for text in columns)
    assert ("Aorta" in run.stdout) == ("flare22" in challenges)


@pytest.mark.parametrize("challenges", [["mine"], ["flare21", "flare22"]])
def test_results_whose_columns_are_not_known(tmp_path, challenges):
    files = [scored_by(tmp_path, challenge) for challenge in challenges]

    run = run_flare("leaderboard", *files)

    assert (run.returncode, run.stdout) == (1, "")
    assert all_told(run.stderr) == [("G04", "Settings")]
    assert f"results of the challenge {', '.join(challenges)}." in run.stderr
    assert "as --phase-settings." in run.stderr
    shown = " ".join(run_flare("leaderboard", "--help").stdout.split())
    assert "but results of a challenge of your own need a file)." in shown


def test_the_command_writes_the_board_with_safe_names(tmp_path):
    """A name that a spreadsheet would compute is made a text."""
    shown = {"exclude_from_ranking": True}
    settings = {
        "title": "Mine",
        "score_title": "DSC",
        "score_jsonpath": SCORE,
        "score_error_jsonpath": "m.std",
        "extra_results_columns": [
            {"title": "NSD", "path": "m.nsd", "order": "desc"},
            {"title": "Volume (ml)", "path": "m.v", "order": "asc"} | shown,
        ],
        "scoring_method_choice": "avg",
        "score_decimal_places": 2,
    }
    (tmp_path / "settings.json").write_text(json.dumps({"test": settings}))
    values = {"=a": (0.9, 0.5), "b": (0.8, 0.75), "c": (0.7, None)}
    files = [
        write(tmp_path / name, json.dumps({"m": {"dsc": dsc, "nsd": nsd, "std": 0.1}}))
        for name, (dsc, nsd) in values.items()
    ]
    command = ["leaderboard", *files]
    command += ["--phase-settings", tmp_path / "settings.json", "--phase", "test"]
    run = run_flare(*command, "--output", tmp_path / "board.csv")

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == (
        "Leaderboard: Mine\n"
        "rank  name  rank score  DSC          NSD   Volume (ml)\n"
        "1     b     1.5         0.80 ± 0.10  0.75  -\n"
        "1     =a    1.5         0.90 ± 0.10  0.50  -\n"
        "A result of c is left out: m.nsd is no number (null).\n"
    )
    assert (tmp_path / "board.csv").read_text() == (
        "name,rank,rank_score,m.dsc,m.nsd,DSC,NSD,Volume (ml)\n"
        "b,1,1.5,0.8,0.75,0.80 ± 0.10,0.75,'-\n"
        "'=a,1,1.5,0.9,0.5,0.90 ± 0.10,0.50,'-\n"
    )
