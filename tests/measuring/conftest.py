"""What tests with a scripted engine have in common: teams' archives, and a bench."""

import json
import os
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest

from flare.challenge.reading import read_challenge
from flare.cli.main import main
from flare.evaluation.check import find_images
from flare.measuring import cleanup, container
from flare.measuring import measure as measure_module
from flare.measuring import team as team_module
from flare.measuring.archive.model import model_beside
from flare.measuring.archive.reading import read_archive
from flare.measuring.lanes.dispatch import Listener
from flare.measuring.measure import measure_teams
from flare.measuring.options import FLARE, Caches, MeasureOptions, RunOptions
from flare.measuring.team import Job
from flare.results.limits import Limits
from flare.results.measurement_json import Gpu
from flare.results.traces_csv import Sample
from tests.builders.archives import FILES, save
from tests.builders.schemas import file_problems
from tests.builders.teams import SCRIPTS, rows_of, write_team

RUNS = {"interval_s": 0.02, "repeats": 1, "caches": Caches.WARM, "has_warm_up": False}

QUICK = ("--gpu", "none", "--caches", "warm", "--interval", "0.02", "--no-warm-up")
"""What commands are told to measure on anything, and soon."""

LIMITS = Limits(timeout_s=3, memory="120m", shm_size="16m", output_size="8m")


class Archives(dict):
    """Archives of the teams of `SCRIPTS`, by name: each is written when asked for."""

    def __init__(self, folder):
        super().__init__()
        self._folder = folder

    def __missing__(self, team):
        self[team] = write_team(self._folder, team, SCRIPTS[team])
        return self[team]


@pytest.fixture(scope="session")
def archives(team_base, tmp_path_factory):
    """What each team has sent; the engine has the layer that all start from."""
    return Archives(tmp_path_factory.mktemp("archives"))


class Notes(Listener):
    """Notes each case and each team of which it is told, and errors by team."""

    def __init__(self):
        self.told, self.failed = [], {}

    def on_run(self, team, record, number, total):
        self.told.append((team, record.case, record.status.value, number, total))

    def on_team(self, team):
        self.told.append(team)

    def on_failure(self, team, error):
        self.failed[team] = str(error)

    def words(self):
        """Cases and teams in the order in which they were told."""
        return [word if isinstance(word, str) else word[1] for word in self.told]

    def runs(self):
        return [(t[0], t[1], *t[3:]) for t in self.told if not isinstance(t, str)]


class FakeGpu:
    """A GPU whose memory is known; one process is not the container's."""

    device = Gpu(uuid="GPU-1", name="G", driver="1", version="v2")

    def read(self, seconds=0.0):
        return Sample(seconds=seconds, gpu_memory_mb=300)

    def processes(self):
        return frozenset({1})

    def state(self):
        return 1410, 40, False

    def energy_j(self):
        """7 J more with each call."""
        self.calls = getattr(self, "calls", 0) + 1
        return 100.0 + 7 * self.calls

    def idle_power_w(self):
        return 61.5


class Bench:
    """Two or three cases, and an engine by script, on which teams are measured."""

    def __init__(self, folder, case_data, engine):
        self.folder, self.engine = folder, engine
        self.images, self.labels = case_data / "images", case_data / "labels"
        self.results, self.sent = folder / "results", folder / "archives"
        self.sent.mkdir(exist_ok=True)
        self.cases = find_images(self.images)
        self.notes = Notes()
        self.told = self.notes.told

    def archive(self, team, script, **settings):
        files = FILES | {"workspace/predict.sh": script.encode() + b"\n"}
        name, tags = f"{team}.tar.gz", [f"{team}:latest"]
        return save(self.sent, files, name=name, tags=tags, **settings)

    def algorithm(self, team, script, **settings):
        """The archive of an algorithm that a script is, with any tag."""
        files = {"algorithm.sh": script.encode() + b"\n"}
        settings = {"Entrypoint": ["/algorithm.sh"], "WorkingDir": "/", **settings}
        return save(self.sent, files, name=f"{team}.tar.gz", tags=[], **settings)

    def measure(self, *files, cases=None, limits=LIMITS, gpu=None, **options):
        """Measure archives; the errors of teams that could not be, by team."""
        contract = options.get("contract", FLARE)
        archives = [
            read_archive(file, contract=contract, model=model_beside(file))
            for file in files
        ]
        assert [a.problems for a in archives] == [()] * len(archives)
        if gpu:
            limits = replace(limits, gpu="0")
        runs = {name: options.pop(name) for name in RUNS if name in options}
        job = Job(
            options=MeasureOptions(
                archives=self.sent,
                images=self.images,
                output=self.results,
                limits=limits,
                runs=RunOptions(**RUNS | runs),
                **options,
            ),
            challenge=read_challenge("flare21"),
            results=self.results,
            cases=self.cases if cases is None else self.cases[:cases],
            archives=tuple(archives),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measure_module, "find_engine", lambda _: self.engine)
            if gpu:
                for module in (container, team_module):
                    patch.setattr(module, "open_gpu", lambda _: nullcontext(gpu))
            failed = measure_teams(job, self.notes)
        return dict(failed)

    def rows(self, team):
        return rows_of(self.results / team)

    def record(self, team):
        """A team's measurement.json, which is as its schema says."""
        file = self.results / team / "measurement.json"
        assert file_problems(file, "measurement") == []
        return json.loads(file.read_text())

    def metrics(self, team):
        return json.loads((self.results / team / "metrics.json").read_text())

    def serving(self, *where):
        """The words that serve what is handed in somewhere."""
        folders = ("--images", self.images, "--ground-truth", self.labels)
        return [
            *map(str, ("serve", *where, "--output", self.results, *folders, *QUICK))
        ]

    def answer(self, team):
        """What `flare serve` tells a team."""
        return json.loads((self.sent / "returned" / f"{team}.json").read_text())

    def hidden(self):
        """What would be left of a measurement in the results."""
        return sorted(
            str(p.relative_to(self.results)) for p in self.results.rglob(".*")
        )


@pytest.fixture
def light(monkeypatch):
    """Run one empty container for each team, and let guards hurry."""
    monkeypatch.setattr(cleanup, "PAUSE_S", 0.1)
    monkeypatch.setattr(team_module, "EMPTY_RUNS", 1)


@pytest.fixture
def bench(tmp_path, case_data, scripted_engine, light):
    return Bench(tmp_path, case_data, scripted_engine)


@pytest.fixture
def flare(bench, capfd):
    """Run a command of the program; its status and what it has written."""

    def run(*arguments):
        status = main([str(word) for word in arguments])
        return status, *capfd.readouterr()

    return run


@pytest.fixture
def measure(bench, flare):
    """Measure what teams have sent, by the command."""

    def run(*options, sent=bench.sent):
        where = ("--images", bench.images, "--output", bench.results)
        return flare("measure", sent, *where, *QUICK, *options)

    return run


@pytest.fixture
def serve(bench, flare):
    def run(*options, where=bench.sent):
        for file in bench.sent.glob("*.tar.gz"):
            if time.time() - file.stat().st_mtime < 50:
                os.utime(file, (time.time() - 100,) * 2)
        return flare(*bench.serving("--drop-folder", where, "--once"), *options)

    return run
