"""Measures how far calibrations of one computer lie apart: ``calibrations.md``.

    python benchmarks/calibrations.py

Needs Docker. The container of `flare.measuring.calibration` is run many times, on the
processors that a team would get. What else the computer does meanwhile is in the table,
as its load: programs that work, or want to.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from flare.common.engine import Engine  # noqa: E402
from flare.measuring.calibration import calibrate  # noqa: E402  the checkout's
from flare.measuring.container import Conditions  # noqa: E402
from flare.measuring.container_command import Limits  # noqa: E402
from flare.measuring.empty_image import make_empty_image  # noqa: E402
from flare.measuring.host_load import default_cpus  # noqa: E402
from flare.measuring.team_image import LoadedImage  # noqa: E402
from flare.results.calibration import Calibration  # noqa: E402

KEY = f"benchmark-calibrations-{os.getpid()}"
TAG = f"flare-{KEY}:latest"


def calibrate_often(
    cpus: str, rounds: int, folder: Path
) -> tuple[list[Calibration], list[float]]:
    """Many calibrations, and the load of the computer behind each."""
    engine = Engine()
    empty = make_empty_image(engine, TAG)
    limits = Limits(memory="1g", shm_size="64m", output_size="8m", cpus=cpus)
    image = LoadedImage(
        engine=engine,
        conditions=Conditions(limits=limits),
        image=empty,
        overrides=(),
        empty=empty,
        key=KEY,
        work=folder,
    )
    found, loads = [], []
    try:
        for _ in range(rounds):
            found.append(calibrate(image))
            loads.append(os.getloadavg()[0])
    finally:
        engine.remove_image(TAG)
    return found, loads


def row(what: str, values: Sequence[float], digits: int) -> str:
    """A row of the table: median, smallest, largest, and how far these lie apart."""
    low, high = min(values), max(values)
    cells = (f"{cell:.{digits}f}" for cell in (statistics.median(values), low, high))
    middle, least, most = cells
    return f"| {what} | {middle} | {least} to {most} | {high / low:.2f} |"


def main() -> None:
    """Calibrate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cpus", default=default_cpus())
    parser.add_argument("--output", type=Path, default=HERE / "calibrations.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flare-benchmark-") as name:
        found, loads = calibrate_often(
            arguments.cpus, arguments.rounds, Path(name).resolve()
        )
    problems = {own.problem for own in found if own.problem}
    if problems:
        raise SystemExit("; ".join(sorted(problems)))
    rows = ["| what | median | all rounds | largest / smallest |", "|---|---|---|---|"]
    for kind in ("integers", "memory"):
        for name in ("smallest", "median", "largest"):
            values = [1000 * getattr(own.times[kind], name) for own in found]
            counts = ", which counts" if name == "smallest" else ""
            rows.append(row(f"{kind}: {name} of a calibration{counts}, ms", values, 2))
    rows.append(row("load of the computer", loads, 1))
    print("\n".join(rows))
    arguments.output.write_text(
        f"Measured {date.today()} by `benchmarks/calibrations.py` in"
        f" {arguments.rounds} rounds, with Docker {Engine().describe()['version']} on"
        f" {platform.system()} {platform.machine()} with {os.cpu_count()} processors,"
        f" of which containers had {arguments.cpus or 'all'}.\n\n"
        + "\n".join(rows)
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
