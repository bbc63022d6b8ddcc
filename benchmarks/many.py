"""Measures what scoring all teams costs, beside a loop of `flare evaluate`: many.md.

    python benchmarks/many.py

Teams share a few generated cases; the time that gzip notes differs in each file, so
that none has the digest of another, and every case is scored. Each command is a process
of its own, and what is compared takes turns in the same run. Only the ratios say
anything about another computer.

- 40 teams x 30 cases of 512 x 512 x 100: the first run with one and with two workers,
  the same with `flare evaluate` once for each team, and a second run, in which nothing
  has changed.
- 8 teams x 12 of these cases, as folders and as zips: processor time, beside that of
  `flare evaluate` once for each team, which reads each reference again; and both times
  beside those of another checkout, if one is given by `--beside FOLDER`.
- What Dask adds to a case: one worker of it, beside no Dask at all.
- 10,000 small cases of a team, and 50 teams x 100: memory, beside a tenth of it.
- A ranking of 200 teams on 500 cases: processor time and memory.
- A report of 100 teams on 500 cases for organisers, beside that of the other checkout,
  else beside the ranking alone: processor time.

`--only score` or `--only report` measures these alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

GZIP_TIME = slice(4, 8)
"""Where gzip notes a time, which readers ignore."""

LEAST_ROUNDS = 7
"""Of what Dask adds to a case: the difference of two short times."""

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    wall_s: float
    cpu_s: float
    memory_mb: float
    """The most that the process itself had resident, without its workers."""


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    values: Sequence[float]
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        """Return the line in Markdown."""
        median = statistics.median(self.values)
        rounds = f"{min(self.values):.2f} to {max(self.values):.2f}"
        goal, is_missed = "", False
        if self.at_least is not None:
            goal, is_missed = f"at least {self.at_least}", median < self.at_least
        if self.at_most is not None:
            goal, is_missed = f"at most {self.at_most}", median > self.at_most
        goal += ", missed" if is_missed else ""
        return f"| {self.what} | {median:.2f} {self.unit} | {rounds} | {goal} |"


def flare(*words: object, root: Path = ROOT) -> Cost:
    """Run a command of the program, or of that of another checkout."""
    command = [sys.executable, "-m", "flare", *map(str, words)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s=wall_s, cpu_s=cpu_s, memory_mb=usage.ru_maxrss / 1024)


def generate(folder: Path, cases: int, slices: int) -> Path:
    """Generate pairs of label maps."""
    flags = [f"--cases={cases}", f"--slices={slices}", "--organs=4", "--dtype=uint8"]
    subprocess.run([sys.executable, HERE / "cases.py", folder, *flags], check=True)
    return folder


def lay_out(source: Path, folder: Path, teams: int, cases: int) -> Path:
    """Write references, and teams whose files are a few ones in turn."""
    pairs = sorted((source / "reference").iterdir())
    owners = [("reference", folder / "labels")]
    owners += [
        ("predictions", folder / "teams" / f"team_{number:02}")
        for number in range(teams)
    ]
    for stamp, (kind, owner) in enumerate(owners):
        owner.mkdir(parents=True)
        for number in range(cases):
            name = pairs[number % len(pairs)].name
            content = bytearray((source / kind / name).read_bytes())
            content[GZIP_TIME] = (stamp * cases + number).to_bytes(4, "little")
            (owner / f"c{number:05}.nii.gz").write_bytes(content)
    return folder


def score(data: Path, results: Path, *words: object, root: Path = ROOT) -> Cost:
    """Run flare score."""
    folders = ("--ground-truth", data / "labels", "--output", results)
    return flare("score", data / "teams", *folders, *words, root=root)


def evaluate_all(data: Path, results: Path, workers: int) -> Cost:
    """Run flare evaluate once for each team."""
    costs = [
        flare(
            *("evaluate", "--input", team, "--ground-truth", data / "labels"),
            *("--output", results / team.name, "--workers", workers),
        )
        for team in sorted((data / "teams").iterdir())
    ]
    return Cost(
        wall_s=sum(cost.wall_s for cost in costs),
        cpu_s=sum(cost.cpu_s for cost in costs),
        memory_mb=max(cost.memory_mb for cost in costs),
    )


def all_teams(
    source: Path, work: Path, size: tuple[int, int], rounds: int
) -> list[Row]:
    """Rows of many teams: against the loop, by workers, and again."""
    data = lay_out(source, work / "data", *size)
    first, ratios = work / "first", dict[str, list[float]]()

    def note(name: str, value: float) -> None:
        ratios.setdefault(name, []).append(value)

    for _ in range(rounds):
        shutil.rmtree(first, ignore_errors=True)
        loop = evaluate_all(data, work / "loop", workers=2)
        two = score(data, first, "--workers", 2)
        again = score(data, first, "--workers", 2)
        shutil.rmtree(first)
        one = score(data, first, "--workers", 1)
        shutil.rmtree(first)
        note("loop", two.wall_s / loop.wall_s)
        note("two", one.wall_s / two.wall_s)
        note("again", again.wall_s / two.wall_s)
    what = f"{size[0]} teams x {size[1]} cases"
    title = f"{what}: wall time of one / two workers, if nothing else runs"
    return [
        Row(f"**{title}**", ratios["two"], at_least=1.7),
        Row(f"{what}: `flare score` / a loop of `flare evaluate`", ratios["loop"]),
        Row(f"**{what}: the second run / the first one**", ratios["again"]),
    ]


def first_score(source: Path, work: Path, rounds: int, beside: Path) -> list[Row]:
    """Rows of a first run, beside that of another checkout, by turns."""
    data = lay_out(source, work / "first_score", 8, 12)
    wall_s, cpu_s = [], []
    for _ in range(rounds):
        costs = []
        for root in (ROOT, beside):
            shutil.rmtree(work / "first", ignore_errors=True)
            costs.append(score(data, work / "first", "--workers", 1, root=root))
        now, other = costs
        wall_s.append(now.wall_s / other.wall_s)
        cpu_s.append(now.cpu_s / other.cpu_s)
    what = "8 teams x 12 cases: a first `flare score` / that of the other checkout"
    return [
        Row(f"**{what}: wall time**", wall_s, at_most=0.5),
        Row(f"**{what}: processor time**", cpu_s, at_most=0.5),
    ]


def processor_time(source: Path, work: Path, rounds: int) -> list[Row]:
    """Rows of processor time: references are read once for all teams."""
    folders = lay_out(source, work / "folders", 8, 12)
    zips = work / "zips"
    shutil.copytree(folders / "labels", zips / "labels")
    for team in (folders / "teams").iterdir():
        shutil.make_archive(str(zips / "teams" / team.name), "zip", team)
    ratios: dict[str, list[float]] = {"folders": [], "zips": []}
    for _ in range(rounds):
        loop = evaluate_all(folders, work / "loop", workers=1)
        for data in (folders, zips):
            shutil.rmtree(work / "first", ignore_errors=True)
            cost = score(data, work / "first", "--workers", 1)
            ratios[data.name].append(cost.cpu_s / loop.cpu_s)
    what = "8 teams x 12 cases: processor time of `flare score` / of 8 `flare evaluate`"
    return [Row(f"{what}, teams as {kind}", ratios[kind]) for kind in ratios]


def engine(source: Path, work: Path, cases: int, rounds: int) -> Row:
    """What Dask adds to a full-size case, as a part of scoring it."""
    long, short = (
        lay_out(source, work / f"engine{count}", 2, count) for count in (cases, 2)
    )
    score(short, work / "results", "--workers", 1)  # what is slow only the first time
    ways = {"none": ("--workers", 1), "dask": ("--cluster", ADDRESS)}
    wall_s: dict[tuple[str, Path], list[float]] = {}
    rounds = max(rounds, LEAST_ROUNDS)
    for _ in range(rounds):
        for name, words in ways.items():
            for data in (short, long):
                shutil.rmtree(work / "results", ignore_errors=True)
                cost = score(data, work / "results", *words)
                wall_s.setdefault((name, data), []).append(cost.wall_s)
    # Of each the least: what disturbs only adds, and these are differences.
    none, dask = (min(wall_s[name, long]) - min(wall_s[name, short]) for name in ways)
    added = 100 * (dask / none - 1)
    what = f"**what Dask adds to a case, by the least of {rounds} rounds**"
    return Row(what, [added], "%", at_most=5)


ADDRESS = "tcp://127.0.0.1:18786"


def with_dask(work: Path, measure: Callable[[], Row]) -> Row:
    """Measure beside a scheduler and one worker, which are ended afterwards.

    They are started as docs/organisers/machines.md says.
    """
    kinds = (
        ("scheduler", "--host", "127.0.0.1", "--port", "18786", "--no-dashboard"),
        ("worker", ADDRESS, "--nthreads", "1", "--no-dashboard", "--memory-limit", "0"),
    )
    with (work / "dask.log").open("wb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words],
                cwd=ROOT,
                env={
                    **os.environ,
                    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
                },
                stdout=log,
                stderr=log,
            )
            for kind, *words in kinds
        ]
        try:
            return measure()
        finally:
            for process in processes:
                process.terminate()
                process.wait()


def memory(source: Path, work: Path, sizes: Sequence[tuple[int, int]]) -> list[Row]:
    """Memory of runs over many small cases."""
    rows = []
    for teams, cases in sizes:
        data = lay_out(source, work / f"memory{teams}x{cases}", teams, cases)
        cost = score(data, work / "small", "--workers", 2)
        shutil.rmtree(work / "small")
        shutil.rmtree(data)
        what = f"{teams} x {cases} small cases: memory beside the workers"
        rows.append(Row(what, [cost.memory_mb], "MB"))
    return rows


def ranking(work: Path, size: tuple[int, int], rounds: int) -> list[Row]:
    """Rows of a ranking by FLARE21's four metrics."""
    teams, cases = size
    flare("simulate", "--output", work / "sim", "--teams", teams, "--cases", cases)
    costs = []
    for _ in range(rounds):
        costs.append(flare("rank", work / "sim", "--output", work / "ranking"))
    what = f"`flare rank` of {teams} teams x {cases} cases x 4 metrics"
    memory_mb = [cost.memory_mb for cost in costs]
    return [
        Row(f"{what}: CPU", [cost.cpu_s for cost in costs], "s"),
        Row(f"**{what}: memory**", memory_mb, "MB", at_most=400),
    ]


def report(work: Path, size: tuple[int, int], rounds: int, beside: Path | None) -> Row:
    """The row of a report with a page of each team."""
    teams, cases = size
    source, ratios = work / "reported", []
    flare("simulate", "--output", source, "--teams", teams, "--cases", cases)
    words = ("report", source, "--audience", "organiser", "--output", work / "pages")
    for _ in range(rounds):
        if beside:
            other = flare(*words, root=beside)
        else:
            other = flare("rank", source, "--output", work / "ranking")
        ratios.append(flare(*words).cpu_s / other.cpu_s)
    what = f"`flare report` of {teams} teams x {cases} cases for organisers: CPU"
    than = "that of the other checkout" if beside else "`flare rank`"
    most = 0.5 if beside else 1.5
    return Row(f"**{what} / {than}**", ratios, at_most=most)


def measured(work: Path, options: argparse.Namespace) -> list[Row]:
    """All rows that were asked for."""
    rounds, beside, rows = options.rounds, options.beside, list[Row]()
    if options.only != "report":
        full = generate(work / "full", 6, 100)
        if beside:
            rows += first_score(full, work, rounds, beside)
    if not options.only:
        small = generate(work / "tiny", 3, 4)
        rows += all_teams(full, work, (options.teams, options.cases), rounds)
        rows += processor_time(full, work, rounds)
        rows.append(with_dask(work, lambda: engine(full, work, options.cases, rounds)))
        most = options.small
        sizes = [(1, most // 10), (1, most), (5, most // 100), (50, most // 100)]
        rows += memory(small, work, sizes)
        rows += ranking(work, (200, 500), rounds)
    if options.only != "score":
        rows.append(report(work, (100, 500), rounds, beside))
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--teams", type=int, default=40)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--only", choices=("score", "report"))
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        rows = measured(work, options)
    system = f"{platform.system()} {platform.machine()}"
    print(
        f"Measured {date.today()} by `benchmarks/many.py`, {options.rounds} rounds, on"
        f" {os.cpu_count()} CPUs ({system}), Python {platform.python_version()}, at a"
        f" load of {load:.1f} before and {os.getloadavg()[0]:.1f} after it.\n"
    )
    print("| what | median | all rounds | goal |\n|---|---|---|---|")
    print("\n".join(map(str, rows)))


if __name__ == "__main__":
    main()
