"""Tables and folders of results."""

import csv
import json
from dataclasses import replace

import numpy as np

import flare
from flare.challenge.metrics import Better
from flare.challenge.reading import scoring_rules
from flare.challenge.rules import RankedMetric
from flare.ranking.ranks import Board
from flare.ranking.results_folder import NO_ROW, CaseResult
from flare.ranking.rules import RankingRules
from flare.ranking.table import table_of

DSC = RankedMetric(metric="dsc", better=Better.HIGHER)


TIME = RankedMetric(metric="runtime_s", better=Better.LOWER)


HALF_TIME = replace(TIME, weight=0.5)


def ranked(*metrics):
    return [RankedMetric(metric=name, better=Better.HIGHER) for name in metrics]


FLARE21 = flare.read_challenge("flare21")


def write_table(file, rows):
    with file.open("w", newline="") as content:
        csv.writer(content).writerows([("team", "case", "metric", "value"), *rows])
    return file


def make_table(values, spreads=None, reason=None):
    """A table from values by team, case and metric; None for a missing result.

    The reason is that of all that are missing; CASE in it is the case.
    """
    results = [
        CaseResult(
            team=team,
            case=case,
            metric=metric,
            value=value,
            reason=""
            if value is not None
            else (reason or NO_ROW).replace("CASE", case),
            spread=(spreads or {}).get((team, case, metric)),
        )
        for (team, case, metric), value in values.items()
    ]
    return table_of(results, tuple(dict.fromkeys(key[2] for key in values)))


def by_key(values, metrics=("dsc", "runtime_s")):
    """Values by team, case and metric, of a row for each of a team's cases."""
    return {
        (team, f"c{case}", metric): value
        for team, rows in values.items()
        for case, row in enumerate(rows)
        for metric, value in zip(metrics, row, strict=True)
    }


def write_values(file, values, metrics=("dsc",)):
    """A table of them."""
    rows = [(*key, value) for key, value in by_key(values, metrics).items()]
    return write_table(file, rows)


def values_of(table, column="value"):
    """Ranked results by team, case and metric; those that are missing are not there."""
    found = table.frame[column].dropna().to_dict()
    return {key: value for key, value in found.items() if key[2] in table.metrics}


FLARE22 = flare.read_challenge("flare22")
METRICS22 = [rule.metric for rule in FLARE22.ranking]


def write_team(folder, scores, efficiency=None, failed=None, **evaluation):
    """metrics.json of a team with a DSC for each case, and efficiency.csv."""
    folder.mkdir(parents=True)
    names = {str(n): f"{case}.nii.gz" for n, case in enumerate(sorted(scores))}
    by_case = {str(n): scores[case] for n, case in enumerate(sorted(scores))}
    content = {
        "case": {"dsc": by_case, "nsd": by_case, "gt_fname": names},
        "failed": failed or {},
        "evaluation": {"challenge_sha256": "a", "references_sha256": "b",
                       "rules": scoring_rules(FLARE21), "version": "1", **evaluation},
    }  # fmt: skip
    (folder / "metrics.json").write_text(json.dumps(content))
    if efficiency is not None:
        lines = ["case,status,runtime_s,max_gpu_memory_mb,note"]
        lines += [",".join([*map(str, row), "x"]) for row in efficiency]
        (folder / "efficiency.csv").write_text("\n".join(lines) + "\n")


ROWS = [
    (team, case, "dsc", value)
    for team, values in {
        "a": (0.3, 0.3, 0.1),
        "b": (0.2,) * 3,
        "c": (0.1, 0.1, 0.3),
    }.items()
    for case, value in zip("123", values, strict=True)
]


def one_metric(values, rule=TIME):
    """A board of one metric from values by team; NaN is missing."""
    array = np.array([list(own) for own in values.values()], dtype=float)
    cases = tuple(f"c{n:02}" for n in range(array.shape[1]))
    return Board(
        teams=tuple(values),
        cases=cases,
        values=array[:, :, np.newaxis],
        rules=RankingRules(metrics=(rule,)),
        is_left_out=np.zeros((*array.shape, 1), dtype=bool),
    )


def challenger_board(folder, metric, missing=None):
    """One of its tables, in which this value stands for missing results."""
    with (folder / f"{metric}.csv").open() as content:
        rows = list(csv.DictReader(content))
    table = make_table(
        {
            (row["alg_name"], row["case"], "m"): None
            if row["value"] in ("", "NA")
            else float(row["value"])
            for row in rows
        }
    )
    better = Better.HIGHER if metric == "dsc" else Better.LOWER
    rules = RankingRules(metrics=(RankedMetric(metric="m", better=better),))
    board = table.board(rules, table.teams)
    if missing is None:
        return board
    return replace(board, values=np.nan_to_num(board.values, nan=missing))


CASES = tuple(f"case_{number}" for number in range(1, 8))


def write_teams(folder, *, teams=4, own=0.0, others=0.0):
    """Results of teams whose ranks do not depend on what is added to their values.

    `others` is added to all but team_1, `own` to that; team_3 fails on case_3.
    """
    for number in range(teams):
        off = own if number == 1 else others
        scores = {
            c: 0.9 - (number * 3 + n * 5) % 11 / 40 + off for n, c in enumerate(CASES)
        }
        rows = [
            (case, "ok", 5 + (number * 7 + n) % 9 + off, 1000 * number + 1 + off)
            for n, case in enumerate(CASES)
        ]
        if number == 3:
            rows[2] = (CASES[2], "timed out", "", "")
        write_team(folder / f"team_{number}", scores, rows)
    return folder


def decisions(case, disqualified, out_of_competition, team, name):
    """A file of decisions, one of each kind."""
    about = {
        "withdrawn": f'case = "{case}"',
        "disqualified": f'team = "{disqualified}"',
        "out_of_competition": f'team = "{out_of_competition}"',
        "names": f'team = "{team}"\nname = "{name}"',
    }
    end = 'reason = "a reason"\ndate = 2026-09-01\n'
    return "\n".join(f"[[{kind}]]\n{text}\n{end}" for kind, text in about.items())
