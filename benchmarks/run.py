"""Measures what scoring costs, beside its peers on the same files: ``results.md``.

    python benchmarks/run.py

Everything is run as a process of its own, `evaluate.py` as a user runs it. A figure is
the median of five rounds, in which the programs take turns in alternating order, so
that a slow moment of the computer strikes all of them. Costs per case come from the
difference of a long and a short run, which leaves out start-up. Only ratios of the same
run say anything about another computer.

This program itself imports nothing but the standard library: the memory of a process
that starts another one counts as the other's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SHARED = ROOT.parent / "shared" / "data"
"""Label maps that are not the project's: measured if they are there."""

RAISED = {
    "MALLOC_MMAP_THRESHOLD_": "2000000000",
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
}
"""Settings of glibc that let a process keep the memory it frees, as the kit does."""

COMPILED = {
    "PYTHONDONTWRITEBYTECODE": "",
    "OPENBLAS_NUM_THREADS": "1",
    "FLARE_COMMIT": "of the image",
}
"""Settings as in the image: what Python compiles is kept, and git is not asked."""

BEFORE_CLICK = "374a47d"
"""The last commit whose command line was read by argparse."""


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    cpu_s: float
    """Processor time in user and in kernel mode, its children included."""
    wall_s: float
    user_s: float
    """The part of it that is not the kernel's."""
    memory_mb: float
    """The most that it, or one of its children, had resident."""


@dataclass(frozen=True)
class Program:
    """A program that goes through a folder of cases."""

    command: tuple[str, ...]
    """``{}`` stands for the folder."""
    environment: Mapping[str, str] | None = None

    def run(self, folder: Path) -> Cost:
        """Run it."""
        command = [part.replace("{}", str(folder)) for part in self.command]
        environment = os.environ | dict(self.environment or {})
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"failed: {' '.join(command)}")
        return Cost(
            cpu_s=usage.ru_utime + usage.ru_stime,
            wall_s=wall_s,
            user_s=usage.ru_utime,
            memory_mb=usage.ru_maxrss / 1024,
        )


def evaluation(
    *options: str,
    environment: Mapping[str, str] | None = None,
    root: Path = ROOT,
) -> Program:
    """`evaluate.py` with some options."""
    paths = ("--input", "{}/predictions", "--ground-truth", "{}/reference")
    command = (sys.executable, str(root / "evaluate.py"), *paths, "--output", "{}/out")
    return Program((*command, *options), environment)


def peer(
    name: str,
    tolerances: Sequence[float] = (1, 1, 1, 1),
    environment: Mapping[str, str] | None = None,
) -> Program:
    """A loop of ``peers.py``."""
    command = (sys.executable, str(HERE / "peers.py"), name, "{}")
    return Program((*command, *map(str, tolerances)), environment)


READ = peer("simpleitk", environment=RAISED)
READING = "`sitk.ReadImage` in kept memory"
"""SimpleITK's read of both files into memory that it had before, as the kit's. Where
each volume gets fresh memory, the read takes up to three times as long, for the kernel
hands out page by page: that depends on the computer, so no goal is set by it."""


class Benchmark:
    """The folders of cases, and the table."""

    def __init__(self, folder: Path, rounds: int, beside: Path | None) -> None:
        self.folder, self.rounds, self.beside = folder, rounds, beside
        self.table = ["| what | median | all rounds | goal |", "|---|---|---|---|"]

    def generate(self, name: str, **options: object) -> Path:
        """A folder of generated cases."""
        target = self.folder / name
        flags = [f"--{key}={value}" for key, value in options.items()]
        command = [sys.executable, str(HERE / "cases.py"), str(target), *flags]
        subprocess.run(command, check=True)
        return target

    def repeat(self, source: Path, number: int, only: str = "") -> Path:
        """A folder with so many cases: copies of some others, by turns."""
        target = self.folder / f"{source.name}-{only}-{number}"
        for kind in ("reference", "predictions"):
            (target / kind).mkdir(parents=True)
            files = [only] if only else _files(source, kind)
            for index in range(number):
                file = source / kind / files[index % len(files)]
                suffix = file.name.partition(".")[2]
                shutil.copy(file, target / kind / f"case_{index:04}.{suffix}")
        return target

    def measure(
        self, runs: Mapping[str, tuple[Program, Path]]
    ) -> dict[str, list[Cost]]:
        """Costs of each run in every round."""
        costs: dict[str, list[Cost]] = {name: [] for name in runs}
        for number in range(self.rounds):
            for name in list(runs) if number % 2 else reversed(list(runs)):
                program, folder = runs[name]
                costs[name].append(program.run(folder))
        return costs

    def measure_case(
        self, programs: Mapping[str, tuple[Program, Path, Path]]
    ) -> tuple[dict[str, list[Cost]], dict[str, list[float]]]:
        """Costs of one case by each program, and the CPU seconds of its start-up.

        Each program has two folders, of fewer and of more cases.
        """
        counts = {
            name: tuple(len(_files(folder)) for folder in folders)
            for name, (_, *folders) in programs.items()
        }
        costs = self.measure(
            {
                f"{name} {length}": (program, folder)
                for name, (program, *folders) in programs.items()
                for length, folder in zip(("short", "long"), folders, strict=True)
            }
        )
        cases, start_ups = {}, {}
        for name, (fewer, more) in counts.items():
            pairs = list(
                zip(costs[f"{name} short"], costs[f"{name} long"], strict=True)
            )
            cases[name] = [
                Cost(
                    cpu_s=(long.cpu_s - short.cpu_s) / (more - fewer),
                    wall_s=(long.wall_s - short.wall_s) / (more - fewer),
                    user_s=(long.user_s - short.user_s) / (more - fewer),
                    memory_mb=long.memory_mb,
                )
                for short, long in pairs
            ]
            start_ups[name] = [
                short.cpu_s - fewer * case.cpu_s
                for (short, _), case in zip(pairs, cases[name], strict=True)
            ]
        return cases, start_ups

    def add(
        self, what: str, values: Iterable[float], unit: str, goal: str = ""
    ) -> None:
        """Add a row to the table, which says where the goal is missed, and show it."""
        values = list(values)
        digits = 2 if unit in ("x", "s") else 0
        middle, low, high = (
            f"{value:.{digits}f}"
            for value in (statistics.median(values), min(values), max(values))
        )
        if goal and is_missed(goal, float(middle)):
            goal += ", missed"
        self.table.append(f"| {what} | {middle} {unit} | {low} to {high} | {goal} |")
        print(self.table[-1], flush=True)

    def add_cpu(self, what: str, costs: Iterable[Cost]) -> None:
        """Add a row of processor time."""
        self.add(f"{what}: CPU per case", (cost.cpu_s * 1000 for cost in costs), "ms")

    def add_ratio(
        self, what: str, costs: Iterable[Cost], others: Iterable[Cost], goal: str = ""
    ) -> None:
        """Add a row of processor time divided by that of another program."""
        pairs = zip(costs, others, strict=True)
        self.add(what, (cost.cpu_s / other.cpu_s for cost, other in pairs), "x", goal)


def is_missed(goal: str, median: float) -> bool:
    """Whether a median is above "at most", or below "at least", so much."""
    kind, _, number = goal.rpartition(" ")
    return median > float(number) if kind == "at most" else median < float(number)


WITH_DISTANCES = 'metrics = ["dsc", "nsd", "hd95", "assd"]'
"""A line of a challenge file."""


def measure_cases(bench: Benchmark) -> None:
    """Four organs on 100 slices: start-up, a case, and the peers."""
    source = bench.generate("four-organs", cases=15)
    one, six, short, long = (bench.repeat(source, n) for n in (1, 6, 5, 105))
    programs = {
        "kit": (evaluation("--workers", "1", environment=COMPILED), short, long),
        "mapped": (peer("simpleitk"), short, long),
        "read": (READ, short, long),
        "inflate": (peer("inflate"), short, long),
        "default": (evaluation(), short, long),
        "loop": (peer("surface-distance"), one, six),
    }
    if find_spec("monai"):
        programs["monai"] = (peer("monai"), one, six)
    rules = bench.folder / "distances.toml"
    rules.write_text(f'extends = "flare21"\nname = "Distances"\n{WITH_DISTANCES}\n')
    programs["distances"] = (_with_rules(ROOT, rules), short, long)
    cases, start_ups = bench.measure_case(programs)

    bench.add("start-up: CPU", start_ups["kit"], "s", "at most 0.3")
    bench.add_cpu("one worker", cases["kit"])
    for name, what in (("kit", "one worker"), ("default", "default workers")):
        walls = (cost.wall_s * 1000 for cost in cases[name])
        bench.add(f"{what}: wall time per case", walls, "ms")
    bench.add_cpu(f"{READING}, both files", cases["read"])
    bench.add_ratio(
        f"**one worker / {READING}**", cases["kit"], cases["read"], "at most 2.6"
    )
    bench.add_ratio(
        "the same, in the memory that glibc gives it", cases["kit"], cases["mapped"]
    )
    bench.add_ratio(
        "of this one case: one worker with HD95 and ASSD / without",
        cases["distances"],
        cases["kit"],
        "at most 3",
    )
    bench.add_cpu("only inflating both files", cases["inflate"])
    bench.add_ratio("one worker / only inflating", cases["kit"], cases["inflate"])
    for name, what, goal in (
        ("loop", "surface-distance's loop", "at least 40"),
        ("monai", "MONAI's Dice and sub-voxel surface Dice", ""),
    ):
        if name in cases:
            bench.add_cpu(what, cases[name])
            bench.add_ratio(f"**{what} / one worker**", cases[name], cases["kit"], goal)


def measure_start_up(bench: Benchmark) -> None:
    """`evaluate.py` beside itself as it was before click, on the bundled set."""
    folder, earlier = bench.folder / "bundled", bench.folder / "earlier"
    shutil.copytree(ROOT / "examples" / "predictions", folder / "predictions")
    shutil.copytree(ROOT / "ground-truth", folder / "reference")
    archive = ["git", "-C", str(ROOT), "archive", "--format=tar", BEFORE_CLICK]
    run = subprocess.run(archive, capture_output=True, check=False)
    if run.returncode:
        return  # no history of git is here
    earlier.mkdir()
    subprocess.run(["tar", "-x", "-C", str(earlier)], input=run.stdout, check=True)
    roots = {"now": ROOT, "earlier": earlier}
    for what, options in (
        ("`evaluate.py --help`", ("--help",)),
        ("the bundled set, one worker", ("--workers", "1")),
    ):
        runs = {
            name: (evaluation(*options, environment=COMPILED, root=root), folder)
            for name, root in roots.items()
        }
        bench.measure(runs)  # compiles
        # Half a second is short: a value is the sum of ten starts.
        sums = {name: [0.0] * bench.rounds for name in runs}
        for _ in range(10):
            for name, costs in bench.measure(runs).items():
                for number, cost in enumerate(costs):
                    sums[name][number] += cost.cpu_s
        ratios = (now / then for now, then in zip(*sums.values(), strict=True))
        bench.add(f"{what}: CPU / that before click", ratios, "x", "at most 1.05")


def measure_workers(bench: Benchmark) -> None:
    """Many cases, with one and with two workers."""
    many = bench.repeat(bench.folder / "four-organs", 300)
    costs = bench.measure(
        {count: (evaluation("--workers", count), many) for count in ("1", "2")}
    )
    pairs = zip(costs["1"], costs["2"], strict=True)
    ratios = (one.wall_s / two.wall_s for one, two in pairs)
    bench.add(
        "**300 cases: wall time of one / two workers**", ratios, "x", "at least 1.85"
    )


def measure_memory(bench: Benchmark) -> None:
    """The most that a worker has resident."""
    for slices, goal in ((100, "at most 250"), (600, "at most 600")):
        for dtype in ("uint8", "float64"):
            name = f"{slices}-{dtype}"
            folder = bench.generate(name, cases=2, slices=slices, dtype=dtype)
            runs = {"kit": (evaluation("--workers", "1"), folder)}
            peaks = (cost.memory_mb for cost in bench.measure(runs)["kit"])
            what = f"512 x 512 x {slices} of {dtype}: memory of a worker"
            bench.add(what, peaks, "MB", goal)
            shutil.rmtree(folder)


def measure_organs(bench: Benchmark) -> None:
    """FLARE22's 13 organs, with tolerances of 2 to 7 mm, on 200 slices."""
    source = bench.generate("thirteen-organs", cases=5, slices=200, organs=13)
    short, long = bench.repeat(source, 5), bench.repeat(source, 35)
    kit = evaluation("--workers", "1", "--challenge", "flare22")
    cases, _ = bench.measure_case(
        {"kit": (kit, short, long), "read": (READ, short, long)}
    )
    bench.add_cpu("13 organs on 200 slices, one worker", cases["kit"])
    bench.add_ratio(
        f"**13 organs on 200 slices / {READING}**",
        cases["kit"],
        cases["read"],
        "at most 2.6",
    )


WORST = {
    "fine": ("320 x 320 x 120 at 0.5 mm", 320 * 320 * 120),
    "thick": ("512 x 512 x 200 at 0.8 x 0.8 x 2.5 mm", 512 * 512 * 200),
}
"""Grids of ``worst.py``: what they are called, and how many voxels they have."""

SPARED = ", no NSD below a DSC of 0.2"
DISTANCES = " with HD95 and ASSD"
BESIDE = " / in the other checkout"
"""What is said of a run."""


def measure_worst(bench: Benchmark) -> None:
    """Label maps of 13 organs made to be slow, beside noise: user CPU, no start-up."""
    edition = ROOT / "flare" / "challenge" / "editions" / "flare22.toml"
    always = bench.folder / "always.toml"
    rules = edition.read_text(encoding="utf-8")
    line = "smallest_dsc_for_nsd = 0.2\n"
    always.write_text(rules.replace(line, ""))
    distances = bench.folder / "worst-distances.toml"
    distances.write_text(rules.replace(line, f"{WITH_DISTANCES}\n"))
    kinds = {
        "": _with_rules(ROOT, always),
        SPARED: _with_rules(ROOT, edition),
    }
    for grid, (size, voxels) in WORST.items():
        source = bench.folder / grid
        command = (sys.executable, str(HERE / "worst.py"), str(source), grid)
        subprocess.run(command, check=True)
        folders = {path.name: path for path in sorted(source.iterdir())}
        start_up = folders.pop("start-up")
        runs = {
            name + kind: (program, folder)
            for name, folder in folders.items()
            for kind, program in kinds.items()
        }
        # Beside honest references alone: with distances, noise takes seconds.
        single = [name for name in folders if not name.endswith("in both")]
        for name in single:
            program = _with_rules(ROOT, distances)
            runs[name + DISTANCES] = (program, folders[name])
        both = ("honest", "noise", "noise in both") if bench.beside else ()
        for name in both:
            program = _with_rules(bench.beside, always)
            runs[name + BESIDE] = (program, folders[name])
        costs = bench.measure({**runs, "start-up": (kinds[""], start_up)})
        starts = costs.pop("start-up")
        seconds = {}
        for name, found in costs.items():
            number = len(_files(runs[name][1]))
            seconds[name] = [
                (cost.user_s - start.user_s) / number
                for cost, start in zip(found, starts, strict=True)
            ]
        for name in folders:
            per_label = (1e9 * taken / voxels / 13 for taken in seconds[name])
            bench.add(f"{name}, {size}: per voxel and label", per_label, "ns")
        for name in folders:
            noise = "noise in both" if name.endswith("in both") else "noise"
            if name != noise:
                ratios = _quotients(seconds[name], seconds[noise])
                bench.add(f"{name}, {size} / {noise}", ratios, "x", "at most 4")
        noise = seconds["noise" + DISTANCES]
        for name in single:
            if name != "noise":
                ratios = _quotients(seconds[name + DISTANCES], noise)
                what = f"{name}, {size}, / noise, both{DISTANCES}"
                bench.add(what, ratios, "x", "at most 6")
        ratios = _quotients(noise, seconds["honest"])
        what = f"noise{DISTANCES} / honest without, {size}"
        # The goal of 40 is that of whole cases with four organs: see docs.
        bench.add(what, ratios, "x")
        spared = [_quotients(seconds[name + SPARED], seconds[name]) for name in folders]
        what = f"the most that any takes, {size}{SPARED} / with all NSD"
        bench.add(what, map(max, zip(*spared, strict=True)), "x", "at most 1.1")
        for name in both:
            ratios = _quotients(seconds[name], seconds[name + BESIDE])
            bench.add(f"{name}, {size}: here{BESIDE}", ratios, "x")
        peaks = [cost.memory_mb for found in costs.values() for cost in found]
        bench.add(
            f"any of these, {size}: memory of a worker", peaks, "MB", "at most 600"
        )
        shutil.rmtree(source)


FORMATS = {
    ".nii": (".nii", False),
    ".mha": (".mha", False),
    ".nrrd": (".nrrd", False),
    ".mha, compressed": (".mha", True),
    ".nrrd, compressed": (".nrrd", True),
}
"""Other formats than .nii.gz: their suffix, and whether they are compressed."""


def measure_formats(bench: Benchmark) -> None:
    """The same label maps in other formats; inflating is left out of all of them.

    Predictions alone, as references are bundled as .nii.gz; and both files, which has
    the SHA-256 of a reference that is not compressed in it.
    """
    source = bench.generate("formats", cases=2)
    programs = {}
    for name, (suffix, is_packed) in FORMATS.items():
        both = bench.folder / f"formats{suffix}-{int(is_packed)}"
        command = (sys.executable, HERE / "formats.py", source, both, suffix)
        packed = ("--packed",) if is_packed else ()
        subprocess.run([str(w) for w in (*command, *packed)], check=True)
        alone = bench.folder / f"{both.name}-alone"
        alone.mkdir()
        (alone / "reference").symlink_to(source / "reference")
        (alone / "predictions").symlink_to(both / "predictions")
        for what, folder in ((name, alone), (f"both files as {name}", both)):
            folders = (bench.repeat(folder, number) for number in (2, 14))
            programs[what] = (evaluation("--workers", "1"), *folders)
    folders = [bench.repeat(source, number) for number in (2, 14)]
    programs[".nii.gz"] = (evaluation("--workers", "1"), *folders)
    cases, _ = bench.measure_case({**programs, "inflate": (peer("inflate"), *folders)})
    for start, goal in (("", "at most 1.3"), ("both files as ", "")):
        for name, (_, is_packed) in FORMATS.items():
            # As much is inflated of the prediction as of the reference.
            left = 1 if is_packed else 0.5 * (not start)
            ratios = [
                (cost.cpu_s - left * inflate.cpu_s) / (whole.cpu_s - inflate.cpu_s)
                for cost, whole, inflate in zip(
                    cases[f"{start}{name}"],
                    cases[".nii.gz"],
                    cases["inflate"],
                    strict=True,
                )
            ]
            bench.add(f"{start}{name} / .nii.gz, without inflating", ratios, "x", goal)


def measure_ranking(bench: Benchmark) -> None:
    """A ranking of fifty teams with everything that is said about it."""
    results = bench.folder / "teams"
    flare = (sys.executable, "-m", "flare")
    simulate = (*flare, "simulate", "--teams", "50", "--output", str(results))
    subprocess.run(simulate, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    rank = (*flare, "rank", "{}", "--output", str(bench.folder / "ranking"))
    environment = {"PYTHONPATH": str(ROOT)}
    costs = bench.measure({"rank": (Program(rank, environment), results)})["rank"]
    what = "ranking of 50 teams on 100 cases by 4 metrics: wall time"
    bench.add(what, (cost.wall_s for cost in costs), "s", "at most 10")


PAGES = (
    *(("ranking", 1), ("ranking", 11), ("ranking", 50)),
    *(("evaluation", 1), ("running", 50), ("report", 50), ("cases", 6)),
)
"""Kinds of ``pages.py``, and how many teams or cases."""

PAGE_GOALS = {
    "case of 512 x 512 x 100: size": "at most 260",
    "case of 512 x 512 x 100: CPU of drawing": "at most 600",
    "evaluation of 100 cases, for organisers: size": "at most 200",
    "measurement of 50 teams: CPU of drawing": "at most 300",
    "ranking of 50 teams, for organisers: size": "at most 1000",
    "ranking of 50 teams, for organisers: drawing / ranking": "at most 0.5",
    "ranking of 50 teams with a page of each: size": "at most 1000",
    "ranking of 50 teams with a page of each: CPU of drawing": "at most 5000",
}
"""By row; others have none."""


def measure_pages(bench: Benchmark) -> None:
    """Pages about 100 cases: their sizes, and what drawing them costs."""
    rounds: dict[str, list[dict[str, float]]] = {}
    for number in range(bench.rounds):
        for kind, teams in PAGES if number % 2 else reversed(PAGES):
            command = (sys.executable, HERE / "pages.py", kind, teams, bench.folder)
            run = subprocess.run(
                [str(word) for word in command], check=True, stdout=subprocess.PIPE
            )
            for page in json.loads(run.stdout):
                rounds.setdefault(page.pop("page"), []).append(page)
    for page, found in sorted(rounds.items()):
        rows = {
            "size": ((each["bytes"] / 1000 for each in found), "kB"),
            "CPU of drawing": ((1000 * each["draw_s"] for each in found), "ms"),
        }
        if found[0]["beside"]:
            ratios = (each["draw_s"] / each["beside_s"] for each in found)
            rows[f"drawing / {found[0]['beside']}"] = (ratios, "x")
        for what, (values, unit) in rows.items():
            name = f"{page}: {what}"
            bench.add(f"page of the {name}", values, unit, PAGE_GOALS.get(name, ""))


def measure_shared(bench: Benchmark) -> None:
    """Label maps that are not the project's, real ones among them."""
    source = SHARED / "flare21"
    names = _files(source) if source.is_dir() else []
    for name in names:
        short, long = (bench.repeat(source, number, only=name) for number in (5, 45))
        cases, _ = bench.measure_case(
            {
                "kit": (evaluation("--workers", "1"), short, long),
                "read": (READ, short, long),
            }
        )
        what = f"{name.removesuffix('.nii.gz')}: one worker / {READING}"
        bench.add_ratio(what, cases["kit"], cases["read"], "at most 2.6")


def main() -> None:
    """Measure everything, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=HERE / "results.md")
    parser.add_argument(
        "--only",
        metavar="PART[,PART]",
        help="such as ranking; the table is not written",
    )
    parser.add_argument(
        "--add", action="store_true", help="add the table of --only below the others"
    )
    parser.add_argument(
        "--beside", type=Path, help="another checkout, to compare the worst with"
    )
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="flare-benchmark-") as folder:
        bench = Benchmark(Path(folder), arguments.rounds, arguments.beside)
        print("\n".join(bench.table))
        for measure in (
            measure_cases,
            measure_start_up,
            measure_workers,
            measure_organs,
            measure_memory,
            measure_worst,
            measure_formats,
            measure_ranking,
            measure_pages,
            measure_shared,
        ):
            part = measure.__name__.removeprefix("measure_")
            if not arguments.only or part in arguments.only.split(","):
                measure(bench)
    if arguments.only and not arguments.add:
        return
    libraries = (
        "numpy",
        "SimpleITK",
        "nibabel",
        "zlib-ng",
        "surface-distance",
        "monai",
    )
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in libraries if _is_there(name)
    )
    part = f" --only {arguments.only}" if arguments.only else ""
    text = (
        f"Measured {date.today()} by `benchmarks/run.py{part}` in {arguments.rounds}"
        f" rounds, on {os.cpu_count()} CPUs ({platform.system()} {platform.machine()},"
        f" whose load was {load:.1f} at the start), with"
        f" Python {platform.python_version()}, {versions}."
        " A case is a reference and a prediction, 512 x 512 x 100 unless it says"
        " otherwise.\n\n" + "\n".join(bench.table) + "\n"
    )
    if arguments.add:
        text = f"{arguments.output.read_text(encoding='utf-8')}\n{text}"
    arguments.output.write_text(text, encoding="utf-8")


def _with_rules(root: Path, challenge: Path) -> Program:
    """`evaluate.py` of a checkout with some rules, and one worker."""
    options = ("--workers", "1", "--challenge", str(challenge))
    return evaluation(*options, environment=COMPILED, root=root)


def _quotients(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Values divided by others."""
    return [value / other for value, other in zip(values, others, strict=True)]


def _files(folder: Path, kind: str = "reference") -> list[str]:
    """Names of the files of a folder of cases."""
    return sorted(file.name for file in (folder / kind).iterdir())


def _is_there(distribution: str) -> bool:
    """Whether a distribution is installed."""
    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    main()
