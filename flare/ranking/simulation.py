"""Makes up the results of a challenge, to try out a ranking on.

Three teams are none that a challenge wants to win: one whose container crashes at once,
one that returns empty masks in a second, and one that needs no GPU and much time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flare.challenge.rulebook import rules_digest, scoring_rules
from flare.challenge.rules import Challenge
from flare.common.files import csv_text, write_whole
from flare.common.version import __version__
from flare.results.efficiency_csv import FILE_NAME as EFFICIENCY_FILE
from flare.results.efficiency_csv import RunStatus
from flare.results.errors import RankingError
from flare.results.metrics_json import FILE_NAME

TEAMS = 11
CASES = 100
SEED = 2021

CRASH = "crash"
CPU_ONLY = "cpu_only"
EMPTY_MASKS = "empty_masks"

METRICS = ("dsc", "nsd", "runtime_s", "max_gpu_memory_mb")
"""What is made up: FLARE21's."""


def write_simulation(
    challenge: Challenge,
    folder: Path,
    *,
    teams: int = TEAMS,
    cases: int = CASES,
    seed: int = SEED,
) -> tuple[str, ...]:
    """Write metrics.json and efficiency.csv of made-up teams, a folder for each.

    Parameters
    ----------
    challenge : Challenge
        It ranks by DSC, NSD, running time and the maximum of GPU memory.
    folder : Path
        To write to.
    teams, cases : int
        How many; of the teams, three are odd, if there are four or more.
    seed : int
        Of the generator; equal seeds give equal bytes.

    Returns
    -------
    tuple of str
        The teams.

    Raises
    ------
    RankingError
        If the challenge ranks by other metrics.
    OutputError
        If the folder cannot be written to.
    """
    if {rule.metric for rule in challenge.ranking} != set(METRICS):
        problem = f"it does not rank by {', '.join(METRICS)}, which are simulated"
        raise RankingError(challenge.key, problem)
    odd = (CPU_ONLY, EMPTY_MASKS, CRASH)[: teams - 1]
    names = (*(f"team_{n + 1:02}" for n in range(teams - len(odd))), *odd)
    generator = np.random.Generator(np.random.PCG64(seed))
    hardness = generator.gamma(2.0, 0.02, size=cases)
    slices = generator.integers(60, 300, size=cases)
    rules = scoring_rules(challenge)
    evaluation: dict[str, Any] = {
        "challenge": challenge.key,
        "challenge_sha256": challenge.checksum,
        "rules": rules,
        "rules_sha256": rules_digest(rules),
        "references_sha256": f"simulated with seed {seed}",
        "version": __version__,
        "options": {},
    }
    for name in names:
        values = _values(name, generator, hardness, slices)
        _write_team(folder / name, values, evaluation)
    return names


def _values(
    name: str,
    generator: np.random.Generator,
    hardness: np.ndarray[Any, Any],
    slices: np.ndarray[Any, Any],
) -> dict[str, np.ndarray[Any, Any]]:
    """A team's values on all cases, by metric."""
    count = len(hardness)
    if name in (CRASH, EMPTY_MASKS):
        zeros = np.zeros(count)
        seconds = 1 + generator.uniform(0, 0.2, count)
        return dict(zip(METRICS, (zeros, zeros, seconds, zeros), strict=True))
    skill = generator.uniform(0.5, 2.5)
    dsc = 1 - skill * (0.02 + hardness) * generator.gamma(9.0, 1 / 9.0, count)
    nsd = dsc - generator.uniform(0.05, 0.15) * (1 + generator.normal(0, 0.2, count))
    seconds = slices * generator.uniform(0.03, 0.3) + generator.uniform(2, 8, count)
    memory = generator.uniform(1000, 9000) + 2.0 * slices
    if name == CPU_ONLY:
        seconds, memory = seconds * 10, np.zeros(count)
    found = (dsc.clip(0, 1), nsd.clip(0, 1), seconds, memory.round(1))
    return dict(zip(METRICS, found, strict=True))


def _write_team(
    folder: Path, values: Mapping[str, Any], evaluation: Mapping[str, Any]
) -> None:
    """Write the two files of a team."""
    count = len(values["dsc"])
    has_failed = folder.name == CRASH
    cases = [f"case_{n + 1:03}" for n in range(count)]
    content: dict[str, Any] = {
        "case": {
            "dsc": {str(n): round(float(v), 4) for n, v in enumerate(values["dsc"])},
            "nsd": {str(n): round(float(v), 4) for n, v in enumerate(values["nsd"])},
            "gt_fname": {str(n): f"{case}.nii.gz" for n, case in enumerate(cases)},
        },
        "evaluation": evaluation,
    }
    if has_failed:
        content["failed"] = dict.fromkeys(cases, "no file was submitted")
    write_whole(folder / FILE_NAME, json.dumps(content, indent=2) + "\n")
    columns = ["case", "status", "runtime_s", "max_gpu_memory_mb"]
    rows = []
    for n, case in enumerate(cases):
        found = [round(float(values[metric][n]), 2) for metric in columns[2:]]
        failed = [case, RunStatus.FAILED.value, "", ""]
        rows.append(failed if has_failed else [case, RunStatus.OK.value, *found])
    write_whole(folder / EFFICIENCY_FILE, csv_text(columns, rows))
