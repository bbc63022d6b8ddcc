"""Makes up the results of a challenge, to try out a ranking on.

No challenge wants three of these teams to win: one whose container crashes at once, one
that returns empty masks within a second, and one that needs no GPU but a lot of time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flare.challenge.reading import rules_digest, scoring_rules
from flare.challenge.rules import Challenge
from flare.common.environment import __version__
from flare.common.files import csv_text, write_whole
from flare.ranking.ranks import Values
from flare.results.efficiency_csv import EFFICIENCY_CSV
from flare.results.errors import RankingError
from flare.results.metrics_json import METRICS_JSON, metrics_content

SEED = 2021

CPU_ONLY, EMPTY_MASKS, CRASH = "cpu_only", "empty_masks", "crash"
ODD = (CPU_ONLY, EMPTY_MASKS, CRASH)

METRICS = ("dsc", "nsd", "runtime_s", "max_gpu_memory_mb")
"""The metrics that are made up: FLARE21's."""


def write_simulation(
    challenge: Challenge,
    folder: Path,
    *,
    teams: int = 11,
    cases: int = 100,
    seed: int = SEED,
) -> tuple[str, ...]:
    """Write metrics.json and efficiency.csv of made-up teams; return their names.

    Each has a folder. Three teams are odd, if there are four or more. Equal seeds give
    equal bytes. A RankingError is raised if the challenge ranks by other metrics than
    `METRICS`, and an OutputError if the folder cannot be written to.
    """
    if {rule.metric for rule in challenge.ranking} != set(METRICS):
        problem = f"it does not rank by {', '.join(METRICS)}, which are simulated"
        raise RankingError(challenge.key, problem)
    odd = ODD[: teams - 1]
    plain = [f"team_{n:02}" for n in range(1, teams - len(odd) + 1)]
    names = (*plain, *odd)
    generator = np.random.Generator(np.random.PCG64(seed))
    hardness = generator.gamma(2.0, 0.02, size=cases)
    slices = generator.integers(60, 300, size=cases).astype(float)
    # Another generator, so that organs change no mean.
    others = np.random.Generator(np.random.PCG64([seed, 1]))
    rules = scoring_rules(challenge)
    evaluation: dict[str, Any] = {
        "challenge": challenge.key,
        "challenge_name": challenge.name,
        "challenge_sha256": challenge.checksum,
        "rules": rules,
        "rules_sha256": rules_digest(rules),
        "references_sha256": f"simulated with seed {seed}",
        "version": __version__,
        "options": {},
    }
    case_names = [f"case_{n:03}" for n in range(1, cases + 1)]
    files = [f"{case}.nii.gz" for case in case_names]
    for name in names:
        dsc, nsd, seconds, memory = _values(name, generator, hardness, slices)
        predictions = files
        failures: dict[str, str] = {}
        measured = zip(case_names, seconds, memory, strict=True)
        rows: list[tuple[object, ...]]
        rows = [(case, "ok", runtime_s, mb) for case, runtime_s, mb in measured]
        if name == CRASH:
            predictions = [""] * cases
            failures = dict.fromkeys(case_names, "no file was submitted")
            rows = [(case, "failed", None, None) for case in case_names]
        scores = {"dsc": dsc, "nsd": nsd}
        scores |= _organs(scores, challenge, others)
        content = metrics_content(scores, predictions, files, evaluation, failures)
        table = csv_text(("case", "status", *METRICS[2:]), rows)
        write_whole(folder / name / METRICS_JSON, f"{json.dumps(content, indent=2)}\n")
        write_whole(folder / name / EFFICIENCY_CSV, table)
    return names


def _organs(
    means: Mapping[str, Sequence[float]],
    challenge: Challenge,
    generator: np.random.Generator,
) -> dict[str, list[float]]:
    """Values of organs with these means, the last organs lower than the first."""
    organs = [organ.name for organ in challenge.organs if organ.in_mean]
    order = np.linspace(1, -1, len(organs))[:, np.newaxis]
    scores: dict[str, list[float]] = {}
    for metric, mean in means.items():
        whole = np.array(mean)
        off = order + generator.normal(0, 0.4, (len(organs), len(whole)))
        off -= off.mean(axis=0)
        room = 0.8 * np.minimum(whole, 1 - whole) / np.abs(off).max(axis=0).clip(min=1)
        values = (whole + room * off).round(6)
        values[-1] = (len(organs) * whole - values[:-1].sum(axis=0)).round(6)
        names = (f"{metric}_{organ}" for organ in organs)
        scores |= dict(zip(names, values.tolist(), strict=True))
    return scores


def _values(
    name: str, generator: np.random.Generator, hardness: Values, slices: Values
) -> list[list[float]]:
    """A team's values on all cases, by metric."""
    count = len(hardness)
    seconds = memory = dsc = nsd = 0 * hardness
    if name in (CRASH, EMPTY_MASKS):
        seconds = 1 + generator.uniform(0, 0.2, count)
    else:
        skill = generator.uniform(0.5, 2.5)
        dsc = 1 - skill * (0.02 + hardness) * generator.gamma(9.0, 1 / 9.0, count)
        loss = generator.uniform(0.05, 0.15)
        nsd = dsc - loss * (1 + generator.normal(0, 0.2, count))
        pace = generator.uniform(0.03, 0.3)
        seconds = slices * pace + generator.uniform(2, 8, count)
        memory = (generator.uniform(1000, 9000) + 2.0 * slices).round(1)
    if name == CPU_ONLY:
        seconds, memory = seconds * 10, 0 * memory
    columns = ((dsc.clip(0, 1), 4), (nsd.clip(0, 1), 4), (seconds, 2), (memory, 2))
    values = []
    for column, digits in columns:
        values.append([round(value, digits) for value in column.tolist()])
    return values
