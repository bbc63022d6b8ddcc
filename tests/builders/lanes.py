"""Lanes, teams and a pool that plays by a script, for measuring side by side."""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from flare.challenge.reading import read_challenge
from flare.measuring.lane import Computer, Lane
from flare.measuring.lanes.process import TeamEnd
from flare.measuring.options import MeasureOptions
from flare.measuring.team import Job
from flare.results.limits import Limits
from flare.results.measurement_json import Gpu
from tests.builders import ROOT, case_names
from tests.builders.running import record
from tests.builders.teams import PREDICT, rows_of
from tests.builders.warm import WarmProcess


def device(number, name="NVIDIA A100"):
    return Gpu(uuid=f"GPU-{number}", name=name, driver="570", version="v2")


def place(cores, *, gpus=(), memory_gib=64, **more):
    known = {
        "host": "here",
        "identity": "boot-1",
        "processor": "CPU X",
        "cores": tuple(cores),
        "memory_bytes": memory_gib * 2**30,
        "gpus": tuple(gpus),
        "engine": {"version": "24"},
    }
    return Computer(**known | more)


def lane(number=0, *, of=2, gpu=None, host="here", memory="14g", cpus=(1,), **more):
    """A lane of one processor unless told otherwise."""
    limits = Limits(
        memory=memory, cpus=",".join(map(str, cpus)), gpu=gpu.uuid if gpu else ""
    )
    known = {
        "host": host,
        "number": number,
        "of": of,
        "processor": "CPU X",
        "cpus": cpus,
        "spare": (0,),
        "gpu": gpu,
        "limits": limits,
    }
    return Lane(**known | more)


def job_of(folder, images, cases=()):
    """What is measured: teams without an archive, by the name of their image."""
    return Job(
        options=MeasureOptions(
            archives=folder, images=folder, output=folder, limits=Limits()
        ),
        challenge=read_challenge("flare21"),
        results=folder,
        cases=cases,
        archives=tuple(
            SimpleNamespace(team=team, image=image, problems=(), path=folder / team)
            for team, image in images.items()
        ),
    )


def whole(*cases):
    return [*[record(case, 1.0) for case in cases], TeamEnd(), None]


class ScriptedPool:
    """Lanes that tell, of a team, what the test says: one list for each try.

    A list without `TeamEnd` is that of a process that was killed.
    """

    def __init__(self, lanes, script):
        self._lanes, self._script = list(lanes), script
        self._running = {}
        self.begun = []
        self.jobs = []

    def lanes(self):
        return self._lanes

    def free(self):
        return [each for each in self._lanes if each not in self._running]

    def begin(self, on, job):
        self.begun.append((job.team, on.number))
        self.jobs.append(job)
        self._running[on] = list(self._script[job.team].pop(0))

    def events(self):
        for on, told in list(self._running.items()):
            message = told.pop(0)
            if message is None:
                del self._running[on]
            yield on, message

    def may_grow(self):
        return False

    def close(self):
        """Nothing is to be ended."""


# --- Real processes ---------------------------------------------------------------

NOTED = f"""
name=$(basename /workspace/inputs/*_0000.nii.gz _0000.nii.gz)
echo "$name" >> $SCRIPTED/../../ran-TEAM
sleep 0.3
{PREDICT}
"""
"""A team's script, for an engine by script, that notes each of its runs."""


MEASURE = """
import sys
from flare.cli.main import main
from tests.fakes.quick import lighten

lighten()
sys.exit(main())
"""
"""The program, without what tells how fast a computer is."""


@contextmanager
def measuring(folder, images, *more, env=None):
    """Measure the archives of a folder into its results: the program, as it runs."""
    words = (
        *("measure", folder / "archives", "--images", images),
        *("--output", folder / "results", "--interval", "0.05", "--no-warm-up", *more),
    )
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if env:  # Python, or what it loads, may start by it
            process = subprocess.Popen(
                [sys.executable, "-c", MEASURE, *map(str, words)],
                cwd=ROOT,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            process = WarmProcess(("-c", MEASURE), [*map(str, words)], out, err)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def lane_processes(parent):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_lane = b"lanes.process" in (folder / "cmdline").read_bytes()
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if is_lane and int(fields[1]) == parent:
            found.append(int(folder.name))
    return found


def runs_noted(state, team):
    """How often each case of a team was run, whose script is `NOTED`."""
    file = state / f"ran-{team}"
    return Counter(file.read_text().split()) if file.exists() else Counter()


class Kills:
    """What was measured when processes were killed, none of it twice."""

    def __init__(self, bench):
        self._bench, self._kept = bench, []

    def note(self):
        done, state = rows_so_far(self._bench.results), self._bench.engine.state
        self._kept.append((done, {team: runs_noted(state, team) for team in "abc"}))

    def check(self, stdout):
        cases = {(team, case) for team in "abc" for case in case_names(3)}
        assert rows_so_far(self._bench.results) == cases
        for team in "abc":
            rows = self._bench.rows(team).values()
            assert {row["status"] for row in rows} == {"ok"}
        assert self._kept
        for done, noted in self._kept:
            for team, case in done:
                runs = runs_noted(self._bench.engine.state, team)
                assert runs[case] == noted[team][case], (team, case)
        told = re.findall(r"^\[(\d)/9.*?\] (\w) (\w+): ok", stdout, re.MULTILINE)
        assert [int(number) for number, _, _ in told] == list(range(1, 10))
        assert {(team, case) for _, team, case in told} == cases


def rows_so_far(results):
    return {
        (file.parent.name, case)
        for file in results.glob("*/efficiency.csv")
        for case in rows_of(file.parent)
    }
