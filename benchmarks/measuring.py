"""Measures what measuring itself costs: ``measuring.md``. Needs Docker.

    python benchmarks/measuring.py

A container that sleeps 2.00 s is run with and without samples being taken; and one that
does nothing, with and without protection, with warm and with cold caches, by turns.
What the engine costs is the running time of the latter.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from flare.measuring.container import Conditions  # noqa: E402
from flare.measuring.engines.docker import Docker  # noqa: E402  the checkout's
from flare.measuring.host import choose_caches, empty_caches  # noqa: E402
from flare.measuring.image import NOTHING, LoadedImage, image_tar  # noqa: E402
from flare.measuring.options import Caches  # noqa: E402
from flare.results.limits import Limits  # noqa: E402

TEAM = "flare-benchmark-sleep"
DOCKERFILE = """
FROM python:3.13-slim
WORKDIR /workspace
RUN echo 'sleep 2.00' > predict.sh
"""
EMPTY = "flare-benchmark-empty:latest"
NEVER_S = 3600.0
"""An interval between samples in which there is only the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run."""

    runtime_s: float
    inner_s: float
    """By the engine's own clock."""
    interval_s: float
    cpu_s: float
    """Of this process."""
    whole_s: float
    """From before the folders are made until they are removed."""


def make_image(folder: Path) -> str:
    """The image of a team whose container sleeps."""
    (folder / "Dockerfile").write_text(DOCKERFILE)
    command = ("docker", "build", "--quiet", "--tag", TEAM, str(folder))
    subprocess.run(command, check=True, capture_output=True)
    return TEAM


def run_plain(engine: Docker, image: str, folder: Path) -> Measured:
    """Run a container with the published flags, and a folder for its output."""
    begin = time.perf_counter()
    identity = engine.call(
        *("create", "--network", "none", "--memory", "1g", "--shm-size", "64m"),
        *("--volume", f"{folder}:/workspace/inputs/:ro"),
        *("--volume", f"{folder}:/workspace/outputs/", image, *NOTHING),
    )
    start = time.perf_counter()
    engine.call("start", "--attach", identity)
    runtime_s = time.perf_counter() - start
    engine.call("rm", "--force", "--volumes", identity)
    whole_s = time.perf_counter() - begin
    return Measured(
        runtime_s=runtime_s, inner_s=0.0, interval_s=0.0, cpu_s=0.0, whole_s=whole_s
    )


def run_protected(
    engine: Docker,
    image: str,
    empty: str,
    folder: Path,
    *,
    is_ours: bool = False,
    interval_s: float = 0.1,
    is_cold: bool = False,
) -> Measured:
    """Run a container as teams' are run."""
    limits = Limits(memory="1g", shm_size="64m", output_size="1g")
    loaded = LoadedImage(
        engine=engine,
        conditions=Conditions(limits=limits, interval_s=interval_s),
        image=image,
        overrides=(),
        empty=empty,
        key="benchmark",
        work=folder,
    )
    begin = time.perf_counter()
    with loaded.fresh_volume() as volume:
        if is_cold:
            empty_caches()
        cpu = time.process_time()
        run = (
            loaded.run(folder, volume, NOTHING)
            if is_ours
            else loaded.run(folder, volume)
        )
        cpu = time.process_time() - cpu
    return Measured(
        runtime_s=run.runtime_s,
        inner_s=run.exit.runtime_s or 0.0,
        interval_s=run.trace.mean_interval_s or 0.0,
        cpu_s=cpu,
        whole_s=time.perf_counter() - begin,
    )


def row(what: str, values: Sequence[float], unit: str, digits: int) -> str:
    """A row of the table: median, smallest and largest."""
    ordered = sorted(values)
    cells = (statistics.median(ordered), ordered[0], ordered[-1])
    middle, low, high = (f"{cell:.{digits}f}" for cell in cells)
    return f"| {what} | {f'{middle} {unit}'.strip()} | {low} to {high} |"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--output", type=Path, default=HERE / "measuring.md")
    arguments = parser.parse_args()
    engine = Docker()
    with tempfile.TemporaryDirectory(prefix="flare-benchmark-") as name:
        folder = Path(name)
        team, empty = make_image(folder), engine.import_image(image_tar(), EMPTY)
        try:
            runs = measure(engine, team, empty, folder, arguments.rounds)
        finally:
            engine.remove_tags(team, EMPTY)
    table = make_table(runs)
    print("\n".join(table))
    version = engine.describe()["version"]
    arguments.output.write_text(
        f"Measured {date.today()} by `benchmarks/measuring.py` in {arguments.rounds}"
        f" rounds, with Docker {version} on {platform.system()} {platform.machine()},"
        " without a GPU.\n\n" + "\n".join(table) + "\n",
        encoding="utf-8",
    )


def measure(
    engine: Docker, team: str, empty: str, folder: Path, rounds: int
) -> dict[str, list[Measured]]:
    """All runs of each kind, which take turns."""

    def sleep(interval_s: float) -> Measured:
        return run_protected(*(engine, team, empty, folder), interval_s=interval_s)

    def nothing(*, is_cold: bool) -> Measured:
        return run_protected(
            *(engine, empty, empty, folder), is_ours=True, is_cold=is_cold
        )

    kinds = {
        "sampled": lambda: sleep(0.1),
        "unsampled": lambda: sleep(NEVER_S),
        "plain": lambda: run_plain(engine, empty, folder),
        "warm": lambda: nothing(is_cold=False),
    }
    if choose_caches(None, is_engine_here=bool(engine.folder())) is Caches.COLD:
        kinds["cold"] = lambda: nothing(is_cold=True)
    runs: dict[str, list[Measured]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in list(kinds) if number % 2 else reversed(kinds):
            runs[kind].append(kinds[kind]())
    return runs


def make_table(runs: dict[str, list[Measured]]) -> list[str]:
    """The lines of the table."""

    def values(kind: str, name: str) -> list[float]:
        return [getattr(found, name) for found in runs[kind]]

    def ratios(kind: str, name: str) -> list[float]:
        pairs = zip(values(kind, name), values("plain", name), strict=True)
        return [found / plain for found, plain in pairs]

    pairs = zip(values("sampled", "cpu_s"), values("unsampled", "cpu_s"), strict=True)
    names = {"plain": "published flags", "warm": "protected", "cold": "cold caches"}
    table = [
        "| what | median | all rounds |",
        "|---|---|---|",
        row("sleep of 2.00 s: measured time", values("sampled", "runtime_s"), "s", 3),
        row("the same, without samples", values("unsampled", "runtime_s"), "s", 3),
        row("the same, by the engine's clock", values("sampled", "inner_s"), "s", 3),
    ]
    for kind, what in names.items():
        if kind in runs:
            text = f"nothing, {what}: measured time"
            table.append(row(text, values(kind, "runtime_s"), "s", 3))
    for kind in ("warm", "cold"):
        if kind in runs:
            text = f"{names[kind]} / published flags: measured time"
            table.append(row(text, ratios(kind, "runtime_s"), "", 2))
    for kind, what in names.items():
        if kind in runs:
            text = f"nothing, {what}: the whole case"
            table.append(row(text, values(kind, "whole_s"), "s", 3))
    interval = values("sampled", "interval_s")
    return [
        *table,
        row("interval between samples, 0.1 s asked for", interval, "s", 4),
        row(
            "sampling: processor time of 2 s",
            [1000 * (sampled - without) for sampled, without in pairs],
            "ms",
            1,
        ),
    ]


if __name__ == "__main__":
    main()
