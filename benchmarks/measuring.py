"""Measures what measuring itself costs: ``measuring.md``. Needs Docker.

    python benchmarks/measuring.py

A container that sleeps 2.00 s is run with and without samples being taken, and one that
does nothing, by turns. What the engine costs is the running time of the latter.
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
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from flare.archive import read_archive  # noqa: E402  the checkout's
from flare.container import COMMAND, NOTHING, Engine, Limits  # noqa: E402
from flare.runner import Runner, case_folders  # noqa: E402

TEAM = "flare-benchmark-sleep"
DOCKERFILE = """
FROM python:3.13-slim
WORKDIR /workspace
RUN echo 'sleep 2.00' > predict.sh
"""
NEVER_S = 3600.0
"""An interval between samples in which there is only the first one."""


def make_archive(folder: Path) -> Path:
    """The archive of a team whose container sleeps."""
    (folder / "Dockerfile").write_text(DOCKERFILE)
    archive = folder / f"{TEAM}.tar.gz"
    tag = f"{TEAM}:latest"
    for command in (
        ("build", "--quiet", "--tag", tag, str(folder)),
        ("save", tag, "--output", str(archive)),
        ("image", "rm", tag),
    ):
        subprocess.run(["docker", *command], check=True, capture_output=True)
    return archive


def row(what: str, values: Sequence[float], unit: str, digits: int) -> str:
    """A row of the table: median, smallest and largest."""
    ordered = sorted(values)
    cells = (statistics.median(ordered), ordered[0], ordered[-1])
    middle, low, high = (f"{cell:.{digits}f}" for cell in cells)
    return f"| {what} | {middle} {unit} | {low} to {high} |"


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--output", type=Path, default=HERE / "measuring.md")
    arguments = parser.parse_args()
    runs: dict[str, list[tuple[float, float, float | None, float]]] = {
        name: [] for name in ("sampled", "unsampled", "empty")
    }
    engine = Engine()
    with tempfile.TemporaryDirectory(prefix="flare-benchmark-") as name:
        folder = Path(name)
        archive = read_archive(make_archive(folder))
        limits = Limits(memory="1g", shm_size="64m")
        with (
            Runner(
                archive, folder / "team", engine=engine, limits=limits, interval_s=0.1
            ) as runner,
            case_folders(folder) as (inputs, outputs),
        ):
            for number in range(arguments.rounds):
                order = list(runs) if number % 2 else list(reversed(runs))
                for kind in order:
                    cpu = time.process_time()
                    run = engine.run(
                        runner.image,
                        inputs,
                        outputs,
                        limits=limits,
                        key="benchmark",
                        interval_s=NEVER_S if kind == "unsampled" else 0.1,
                        command=NOTHING if kind == "empty" else COMMAND,
                    )
                    cpu = time.process_time() - cpu
                    interval = run.trace.mean_interval_s
                    inner = run.engine_runtime_s or 0.0
                    runs[kind].append((run.runtime_s, inner, interval, cpu))
        version = engine.describe()["version"]

    def values(kind: str, index: int) -> list[float]:
        return [found[index] or 0.0 for found in runs[kind]]

    pairs = zip(values("sampled", 3), values("unsampled", 3), strict=True)
    table = [
        "| what | median | all rounds |",
        "|---|---|---|",
        row("sleep of 2.00 s: measured time", values("sampled", 0), "s", 3),
        row("the same, without samples", values("unsampled", 0), "s", 3),
        row("the same, by the engine's clock", values("sampled", 1), "s", 3),
        row("nothing: what the engine itself costs", values("empty", 0), "s", 3),
        row("interval between samples, 0.1 s asked for", values("sampled", 2), "s", 4),
        row(
            "sampling: processor time of 2 s",
            [1000 * (sampled - without) for sampled, without in pairs],
            "ms",
            1,
        ),
    ]
    print("\n".join(table))
    arguments.output.write_text(
        f"Measured {date.today()} by `benchmarks/measuring.py` in {arguments.rounds}"
        f" rounds, with Docker {version} on {platform.system()} {platform.machine()},"
        " without a GPU.\n\n" + "\n".join(table) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
