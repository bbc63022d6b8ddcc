"""Makes up the results of a challenge, to try out a ranking on.

No challenge wants three of these teams to win: one whose container crashes at once, one
that returns empty masks within a second, and one that needs no GPU but a lot of time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flare.challenge.reading import rules_digest, scoring_rules
from flare.challenge.rules import Challenge
from flare.common.environment import __version__
from flare.common.files import write_whole
from flare.results.csv_rows import rows_text
from flare.results.efficiency_csv import (
    EFFICIENCY_CSV,
    CaseRecord,
    RunStatus,
)
from flare.results.errors import RankingError
from flare.results.metrics_json import METRICS_JSON, metrics_content

TEAMS = 11
CASES = 100
SEED = 2021

CRASH = "crash"
CPU_ONLY = "cpu_only"
EMPTY_MASKS = "empty_masks"

METRICS = ("dsc", "nsd", "runtime_s", "max_gpu_memory_mb")
"""The metrics that are made up: FLARE21's."""


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
        raise RankingError(
            challenge.key,
            f"it does not rank by {', '.join(METRICS)}, which are simulated",
        )
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
    has_failed = folder.name == CRASH
    cases = [f"case_{n + 1:03}" for n in range(len(values["dsc"]))]
    files = [f"{case}.nii.gz" for case in cases]
    content = metrics_content(
        {name: [round(float(v), 4) for v in values[name]] for name in ("dsc", "nsd")},
        [""] * len(cases) if has_failed else files,
        files,
        evaluation,
        dict.fromkeys(cases, "no file was submitted") if has_failed else {},
    )
    write_whole(folder / METRICS_JSON, f"{json.dumps(content, indent=2)}\n")
    records = [
        CaseRecord(case=case, status=RunStatus.FAILED)
        if has_failed
        else CaseRecord(
            case=case,
            status=RunStatus.OK,
            runtime_s=round(float(values["runtime_s"][n]), 2),
            max_gpu_memory_mb=round(float(values["max_gpu_memory_mb"][n]), 2),
        )
        for n, case in enumerate(cases)
    ]
    columns = ("case", "status", "runtime_s", "max_gpu_memory_mb")
    write_whole(folder / EFFICIENCY_CSV, rows_text(CaseRecord, records, columns))
