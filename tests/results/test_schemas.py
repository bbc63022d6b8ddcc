"""Schemas: what is written is as they say, and what is broken is not."""

import copy
import json
import shutil
from dataclasses import fields, replace

import pytest
from jsonschema import Draft202012Validator

import flare
from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import UnknownLabels
from flare.platforms.grandchallenge.leaderboard import rank_results
from flare.platforms.grandchallenge.phase import read_phase
from flare.platforms.leaderboard import read_result, write_leaderboard
from flare.ranking.simulation import write_simulation
from flare.results.archives_csv import (
    Flag,
    LedgerEntry,
    Refusal,
    register,
    replace_rows,
)
from flare.results.csv_rows import cell_types
from flare.results.metrics_reading import ScoringRecord
from flare.results.traces_csv import Sample
from tests.builders import ROOT, write_cases
from tests.builders.jobs import job, write_jobs
from tests.builders.results import ROWS, decisions, write_table
from tests.builders.schemas import SCHEMAS, file_problems, problems, read_table


def parts(schema, path="$"):
    """All keys that a schema describes, and what it says of them."""
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from parts(child, f"{path}.{name}")
    for name, child in schema.get("patternProperties", {}).items():
        yield from parts(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{path}.{key}")


# --- The schemas ------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_describes_every_key_in_a_sentence(name):
    schema = SCHEMAS[name]

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["title"]
    assert schema["description"].endswith(".")
    for path, child in parts(schema):
        assert child.get("description", "").endswith("."), path


def test_a_ranking_reads_only_what_every_metrics_json_has():
    """Notes are for papers, names where a challenge sets them, titles for pages."""
    required = SCHEMAS["metrics"]["properties"]["evaluation"]["required"]
    read = {f.name for f in fields(ScoringRecord)} - {
        "rules_note",
        "names",
        "challenge_name",
    }
    assert set(required) == read


# --- metrics.json -----------------------------------------------------------------


def has_organs(key):
    """Whether an edition has label maps."""
    return bool(read_challenge(key).organs)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory):
    return flare.write_metrics(
        flare.evaluate(ROOT / "examples" / "predictions", ROOT / "ground-truth"),
        tmp_path_factory.mktemp("demonstration"),
    )


@pytest.mark.parametrize("key", [*filter(has_organs, challenge_names())])
def test_metrics_of_a_case_that_is_missing_and_of_options(
    key, ground_truth, predictions, tmp_path
):
    """By every edition: all their organs are there."""
    challenge = read_challenge(key)
    ignored = replace(challenge.unknown_labels, reference=UnknownLabels.IGNORE)
    challenge = replace(challenge, unknown_labels=ignored, answers=())
    (predictions / "validation_002.nii.gz").unlink()

    results = flare.evaluate(
        *(predictions, ground_truth),
        challenge=challenge,
        on_bad_case="worst",
        grid="size",
        unknown_labels="ignore",
        decimals=4,
    )

    file = flare.write_metrics(results, tmp_path)
    assert file_problems(file, "metrics") == []
    content = json.loads(file.read_text())
    assert list(content["failed"]) == ["validation_002"]
    assert content["evaluation"]["options"]["decimals"] == "4"
    values = len(challenge.metrics) * (len(challenge.organs) + 1)
    assert len(content["case"]) == values + len(("alg_fname", "gt_fname"))


def test_metrics_of_an_algorithm_on_one_case(tmp_path):
    """Its standard deviation is null."""
    references = write_cases(tmp_path / "labels", ["case_1"])
    jobs = write_jobs(tmp_path / "input", [job("pk-1", "case_1.nii.gz")])

    file = flare.write_metrics(flare.evaluate(jobs, references), tmp_path)

    assert file_problems(file, "metrics") == []
    content = json.loads(file.read_text())
    assert content["aggregates"]["dsc_std"] is None
    assert set(content["jobs"]) == {"note", "exec_duration_s"}


def broken(content, *path, value):
    """A copy in which one key is set, or taken out where the value is `...`."""
    found = copy.deepcopy(content)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return found


def test_metrics_may_have_further_objects_at_the_top(demonstration):
    content = json.loads(demonstration.read_text())
    more = content | {"mine": {"a": 1}}

    assert problems(content, "metrics") == problems(more, "metrics", is_closed=False)
    assert problems(content, "metrics") == []
    assert problems(more, "metrics")


# --- Rankings ---------------------------------------------------------------------

DECISIONS = decisions("case_002", "team_03", "cpu_only", "team_01", "Team, the first")

TABLES = {
    "ranking.csv": "ranking-row",
    "case_ranks.csv": "case-ranks-row",
    "values.csv": "values-row",
    "ranking.json": "ranking",
}


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """Made-up teams; one that is a copy, and others that are not ranked."""
    folder = tmp_path_factory.mktemp("simulated")
    write_simulation(read_challenge("flare21"), folder, teams=6, cases=6, seed=4)
    shutil.copytree(folder / "team_01", folder / "team_04")
    (folder / "nothing").mkdir()
    refusal = Refusal(team="bad", archive="bad.tar.gz", problem="it is empty [F15]")
    refusals = [refusal, replace(refusal, archive_sha256="0" * 64)]
    replace_rows(folder, Refusal, refusals, ["bad"])
    flag = Flag(team="team_01", flag="=3 cases look mirrored")
    replace_rows(folder, Flag, [flag], ["team_01"])
    entry = LedgerEntry(
        team="late", archive_sha256="1" * 64, paper="7", date="2026-09-01", reason=""
    )
    register(folder / "ledger.csv", entry)
    second = replace(entry, archive_sha256="2" * 64, reason="it was damaged")
    register(folder / "ledger.csv", second)
    return folder


@pytest.fixture(scope="module")
def ranked(simulated, tmp_path_factory):
    """A ranking of them that has something in each of its lists."""
    folder = tmp_path_factory.mktemp("ranked")
    (folder / "decisions.toml").write_text(DECISIONS)
    ranking = flare.rank(
        simulated, ties="average", bootstrap=20, decisions=folder / "decisions.toml"
    )
    ranking.write(folder / "ranking")
    return folder / "ranking"


def test_simulated_teams_and_what_was_sent(simulated):
    for team in ("team_01", "cpu_only", "crash"):
        assert file_problems(simulated / team / "metrics.json", "metrics") == []
        efficiency = simulated / team / "efficiency.csv"
        assert file_problems(efficiency, "efficiency-row") == []
    for name, rows in (("ledger", 2), ("refused", 2), ("flags", 1)):
        assert file_problems(simulated / f"{name}.csv", f"{name}-row") == []
        assert len(read_table(simulated / f"{name}.csv", f"{name}-row")[1]) == rows


@pytest.mark.parametrize("name", TABLES)
def test_a_ranking_with_all_that_can_be_in_it(ranked, name):
    assert file_problems(ranked / name, TABLES[name]) == []


def test_the_ranking_is_not_empty(ranked):
    """Otherwise the test above would not say much."""
    content = json.loads((ranked / "ranking.json").read_text())

    for key in ("decisions", "out_of_competition", "missing", "flags", "interim"):
        assert content[key], key
    for key in ("refused", "replaced", "not_scored_yet", "equal_results", "ignored"):
        assert content["roll_call"][key], key
    for key in ("withdrawals", "shares", "shared_without_team"):
        assert content["recount"][0][key], key


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (ROWS, {}),
        ([("a", "1", "dsc", 0.5), ("a", "2", "dsc", "")], {}),
        ([("a", "1", "dsc", 0.5), ("b", "1", "dsc", 0.5)], {"missing": "refuse"}),
    ],
    ids=["three teams", "one team", "a tie"],
)
def test_a_ranking_of_a_table(tmp_path, rows, options):
    """It has no origin, and what is undefined is null."""
    table = write_table(tmp_path / "results.csv", rows)
    assert file_problems(table, "values-row") == []

    flare.rank(table, metrics=["dsc"], bootstrap=0, **options).write(tmp_path / "out")

    for name, schema in TABLES.items():
        assert file_problems(tmp_path / "out" / name, schema) == []
    content = json.loads((tmp_path / "out" / "ranking.json").read_text())
    assert content["origin"] is None
    assert "bootstrap" not in content


# --- Documents that are broken ----------------------------------------------------

BROKEN = {
    "metrics": [
        (("case", "dsc_liver", "0"), 97.1),
        (("case", "dsc_liver", "demo_001"), 0.97),
        (("case", "dsc_liver"), {}),
        (("case", "gt_fname"), ...),
        (("case", "hausdorff_liver"), {"0": 0.5}),
        (("aggregates", "dsc_mean"), ...),
        (("evaluation", "challenge_sha256"), "1234"),
        (("evaluation", "options"), {"on_bad_case": "refuse"}),
        (("failed",), {"demo_001": ""}),
        (("efficiency",), {"cases": 5, "cases_ok": 5, "watts_mean": 1.0}),
    ],
    "ranking": [
        (("ranking", 0, "rank"), 0),
        (("ranking", 0, "score_exact"), "0.45"),
        (("ranking",), []),
        (("settings", "ties"), "best"),
        (("settings", "metrics", 0, "weight"), 0),
        (("bootstrap", "kendall_tau"), [1.0, 1.0]),
        (("roll_call", "refused", 0, "reason"), ...),
        (("interim",), ...),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [(name, *change) for name, changes in BROKEN.items() for change in changes],
    ids=str,
)
def test_documents_that_are_broken_are_refused(
    demonstration, ranked, name, path, value
):
    file = demonstration if name == "metrics" else ranked / "ranking.json"
    content = json.loads(file.read_text())

    assert problems(broken(content, *path, value=value), name, is_closed=False)


# --- Rows of tables ---------------------------------------------------------------


def test_the_board_of_the_platform(demonstration, tmp_path):
    phase = read_phase(ROOT / "phase-settings.json", "validation")
    rows, _ = rank_results([read_result(demonstration)], phase)

    write_leaderboard(rows, phase, tmp_path / "board.csv")

    assert file_problems(tmp_path / "board.csv", "leaderboard-row") == []
    _, (row,) = read_table(tmp_path / "board.csv", "leaderboard-row")
    assert 0.85 < row["aggregates.dsc_mean"] < 0.86
    assert row["Mean DSC"] == "0.8590 ± 0.1148"


OK = {"case": "a", "status": "ok", "runtime_s": 1.5, "max_gpu_memory_mb": None}
RANK = {"team": "a", "case": "1", "metric": "dsc", "rank": 1.5}
STANDING = {"team": "a", "rank": 1, "score": 0.5, "mean_rank_dsc": 1.5}
VALUE = {"team": "a", "case": "1", "metric": "dsc", "value": None}
ARCHIVE = {"archive_sha256": "0" * 64}
GROUPS = {"case": "a", "centre": "Asia", "phase": None}
LEDGER = {"team": "a", **ARCHIVE, "paper": None, "date": "2026-09-01", "reason": None}
REFUSED = {"team": "a", "archive": "a.tar.gz", **ARCHIVE, "problem": "it is empty"}


@pytest.mark.parametrize(
    ("name", "row", "changes"),
    [
        ("efficiency-row", OK, {"status": "OK"}),
        ("efficiency-row", OK, {"status": "failed"}),
        ("efficiency-row", OK, {"runtime_s": 0}),
        ("efficiency-row", OK, {"max_gpu_memory_mb": -1}),
        ("ranking-row", STANDING, {"rank": 1.5}),
        ("ranking-row", STANDING, {"mean_rank_dsc": 0}),
        ("case-ranks-row", RANK, {"rank": 1.25}),
        ("values-row", VALUE, {"value": -1}),
        ("values-row", VALUE, {"metric": "DSC"}),
        ("ledger-row", LEDGER, {"archive_sha256": "1234"}),
        ("ledger-row", LEDGER, {"date": "1 September"}),
        ("refused-row", REFUSED, {"problem": None}),
        ("refused-row", REFUSED, {"reason": "it is empty"}),
        ("groups-row", GROUPS, {"case": None}),
        ("trace-row", dict.fromkeys(cell_types(Sample), 0), {"seconds": None}),
        ("trace-row", dict.fromkeys(cell_types(Sample), 0), {"watts": 1}),
    ],
    ids=str,
)  # fmt: skip
def test_rows_that_are_broken_are_refused(name, row, changes):
    assert problems(row, name) == []
    assert problems({**row, **changes}, name, is_closed=False)
