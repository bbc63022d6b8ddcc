"""Measures how much running side by side slows a run: ``side_by_side.md``.

    python benchmarks/side_by_side.py

Needs Docker and two processors. Containers that only compute are run as teams' are, on
one processor each: one alone, and two at the same time on processors of their own, by
turns. One kind computes in its caches, the other one goes through a lot of memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from flare.measuring.container import Conditions  # noqa: E402
from flare.measuring.engines.docker import Docker  # noqa: E402  the checkout's
from flare.measuring.image import LoadedImage, image_tar  # noqa: E402
from flare.results.limits import Limits  # noqa: E402

EMPTY = "flare-benchmark-side-empty:latest"
KINDS = {
    "computing": "python3 -c 's = 0\nfor n in range(8_000_000): s += n * n % 7'",
    "going through memory": "python3 -c 'b = bytearray(2**27)\nfor n in range(12):"
    " b = b[1:] + b[:1]'",
}
"""What predict.sh of each kind runs."""


def make_image(folder: Path, kind: str) -> str:
    """The image of a team that computes in some way."""
    tag = f"flare-benchmark-{kind.split()[0]}"
    (folder / "predict.sh").write_text(f"{KINDS[kind]}\n")
    (folder / "Dockerfile").write_text(
        "FROM python:3.13-slim\nWORKDIR /workspace\nCOPY predict.sh /workspace/\n"
    )
    command = ("docker", "build", "--quiet", "--tag", tag, str(folder))
    subprocess.run(command, check=True, capture_output=True)
    return tag


def run_on(engine: Docker, image: str, empty: str, folder: Path, cpu: int) -> float:
    """The running time of a container on one processor."""
    limits = Limits(memory="2g", shm_size="64m", output_size="1g", cpus=str(cpu))
    loaded = LoadedImage(
        engine=engine,
        conditions=Conditions(limits=limits, exclusive_cpus=(cpu,)),
        image=image,
        overrides=(),
        empty=empty,
        key=f"benchmark-side-{cpu}",
        work=folder,
    )
    with loaded.fresh_volume() as volume:
        run = loaded.run(folder, volume)
    if run.exit.exit_code:
        text = f"{image}: exit code {run.exit.exit_code}: {run.log[-300:]!r}"
        raise RuntimeError(text)
    return run.runtime_s


def measure(
    engine: Docker, image: str, empty: str, folder: Path, rounds: int
) -> list[tuple[float, float, float]]:
    """For each round: alone, and the two that ran side by side."""
    one, two = sorted(os.sched_getaffinity(0))[:2]
    found = []
    for number in range(rounds):
        alone = 0.0
        for is_alone in (True, False) if number % 2 else (False, True):
            if is_alone:
                alone = run_on(engine, image, empty, folder, one)
                continue
            with ThreadPoolExecutor(2) as pool:
                tasks = [
                    pool.submit(run_on, engine, image, empty, folder, cpu)
                    for cpu in (one, two)
                ]
                first, second = (task.result() for task in tasks)
        found.append((alone, first, second))
    return found


def rows(kind: str, runs: list[tuple[float, float, float]]) -> list[str]:
    """Rows of the table: medians, smallest and largest."""

    def row(what: str, values: list[float], unit: str) -> str:
        middle = f"{statistics.median(values):.2f} {unit}".strip()
        return f"| {kind}{what} | {middle} | {min(values):.2f} to {max(values):.2f} |"

    return [
        row(", alone", [alone for alone, _, _ in runs], "s"),
        row(", two side by side", [t for _, *pair in runs for t in pair], "s"),
        row(
            ": side by side / alone",
            [t / alone for alone, *pair in runs for t in pair],
            "",
        ),
    ]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=HERE / "side_by_side.md")
    arguments = parser.parse_args()
    engine = Docker()
    table = ["| what | median | all rounds |", "|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="flare-benchmark-") as name:
        folder, empty = Path(name), engine.import_image(image_tar(), EMPTY)
        try:
            for kind in KINDS:
                image = make_image(folder, kind)
                runs = measure(engine, image, empty, folder, arguments.rounds)
                engine.remove_tags(image)
                table += rows(kind, runs)
        finally:
            engine.remove_tags(EMPTY)
    print("\n".join(table))
    version = engine.describe()["version"]
    arguments.output.write_text(
        f"Measured {date.today()} by `benchmarks/side_by_side.py` in"
        f" {arguments.rounds} rounds, with Docker {version} on {platform.system()}"
        f" {platform.machine()} with {os.cpu_count()} processors, without a GPU.\n\n"
        + "\n".join(table)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
