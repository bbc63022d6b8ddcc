"""Sampling with scripted memory, clocks and control groups."""

import threading
import time

import pytest

from flare.measuring.sampling import ControlGroup, DeviceError, Sampler
from flare.results.traces_csv import Sample
from tests.builders import wait_until, write_file


class ScriptedGpu:
    """A GPU whose memory, processes and state are scripted."""

    def __init__(self, allocated=(), processes=(), states=()):
        self.allocated = iter(allocated)
        self.reads = 0
        self.seen = iter(processes)
        self.states = iter(states)
        self.energies = iter(())

    def read(self, seconds=0.0):
        self.reads += 1
        value = next(self.allocated, None)
        if value is None:
            problem = "the GPU does not answer any more"
            raise DeviceError(problem)
        return Sample(seconds=seconds, gpu_memory_mb=value)

    def processes(self):
        return frozenset(next(self.seen, ()))

    def state(self):
        return next(self.states, (None, None, False))

    def energy_j(self):
        return next(self.energies, None)


class ScriptedGroup:
    """A container with some processes."""

    def __init__(self, processes=()):
        self.own = frozenset(processes)

    def read(self):
        return 5.0, 1.5

    def processes(self):
        return self.own


class Clock:
    """A clock that goes on only when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def sampled(gpu, pause, **more):
    sampler = Sampler(0.1, gpu=gpu, **more)
    sampler._start = 100.0
    sampler.collect(pause)
    return sampler.stop(99.0)


def times(count):
    """A pause that takes no time, and ends with a number of samples."""
    left = iter(range(1, count + 1))
    return lambda _: next(left) == count


def test_samples_come_at_multiples_of_the_interval():
    """Reading takes 10 ms: that does not add up, as in the official scripts."""
    clock, pauses = Clock(), []

    class SlowGpu(ScriptedGpu):
        def read(self, seconds=0.0):
            clock.now += 0.01
            return super().read(seconds)

    def pause(seconds):
        pauses.append(seconds)
        clock.now += seconds
        return len(pauses) == 4

    trace = sampled(SlowGpu([1, 2, 3, 4, 5]), pause, clock=clock)

    assert [sample.seconds for sample in trace.samples] == pytest.approx(
        [0, 0.1, 0.2, 0.3]
    )
    assert pauses == pytest.approx([0.09] * 4)


def test_a_late_sample_leaves_out_what_it_has_missed():
    """One pause takes 0.25 s too long: the next samples are at multiples again."""
    clock = Clock()
    delays = iter((0.0, 0.25, 0.0, 0.0))
    left = iter((False, False, False, True))

    def pause(seconds):
        clock.now += seconds + next(delays)
        return next(left)

    trace = sampled(ScriptedGpu(range(9)), pause, clock=clock)

    times = [sample.seconds for sample in trace.samples]
    assert times == pytest.approx([0, 0.1, 0.45, 0.5])


@pytest.mark.parametrize(
    ("processes", "has_used"), [([(5,), (5, 6), (5, 7)], True), ([(7,)] * 3, False)]
)
def test_other_processes_on_the_gpu_are_strangers(processes, has_used):
    """5 and 6 are the container's; 7 is not, whenever it is seen."""
    gpu = ScriptedGpu([1.0] * 30, processes=processes)

    trace = sampled(gpu, times(21), group=ScriptedGroup({5, 6}))

    assert (trace.strangers, trace.has_used_gpu) == ({7}, has_used)


def test_a_process_that_ends_in_between_is_no_stranger():
    """5 is there before the GPU is asked, and gone afterwards."""
    group = ScriptedGroup()
    seen = iter((frozenset({4, 5}), frozenset({4})))
    group.processes = lambda: next(seen)
    gpu = ScriptedGpu([1.0], processes=[(5,)])

    assert sampled(gpu, times(1), group=group).strangers == set()


def test_who_was_there_before_is_a_stranger_and_idle_memory_is_kept():
    """Not to know the container's own processes is doubtful."""
    gpu = ScriptedGpu([40.0, 41.0, 90.0, 40.0, 40.0], processes=[(3,)])
    sampler = Sampler(0.1, gpu=gpu, group=ScriptedGroup())

    sampler.look_before()
    trace = sampler.stop(0.0)

    assert trace.idle_mb == 40.0  # the median of the five
    assert trace.strangers == {3}
    assert trace.is_blind
    assert "which processes used the GPU is not known" in trace.doubts


def test_throttling_is_remembered():
    states = [(None, None, True), (None, None, False)]

    trace = sampled(ScriptedGpu([1.0] * 30, states=states), times(21))

    assert trace.is_throttled


def test_a_gpu_that_stops_answering_leaves_what_it_has_said():
    gpu = ScriptedGpu([1.0, 2.0])
    sampler = Sampler(0.001, gpu=gpu)

    start = sampler.start()
    wait_until(lambda: gpu.reads == 3)
    trace = sampler.stop(time.perf_counter() - start)

    assert [sample.gpu_memory_mb for sample in trace.samples] == [1.0, 2.0]
    assert trace.problem == "the GPU does not answer any more"


@pytest.mark.parametrize(
    ("counter_j", "energy_j"),
    [
        ([1200.0, 1950.5], 750.5),
        ([None, None], None),  # it does not count
        ([1200.0, 1200.0], None),  # never 0: no run takes nothing
        ([1200.0, 3.0], None),  # a driver that was loaded anew
        ([1200.0, None], None),
    ],
)
def test_energy_is_the_counter_after_the_run_less_before_it(counter_j, energy_j):
    gpu = ScriptedGpu([1.0] * 99)
    gpu.energies = iter(counter_j)
    sampler = Sampler(0.001, gpu=gpu)

    sampler.start()
    wait_until(lambda: gpu.reads > 1)

    assert sampler.stop(1.0).energy_j == energy_j


def test_nothing_ends_the_sampler_unnoticed():
    """Not even a mistake in a library."""
    asked = threading.Event()

    class Faulty(ScriptedGpu):
        def state(self):
            asked.set()
            text = "no such field"
            raise KeyError(text)

    sampler = Sampler(0.001, gpu=Faulty([1.0] * 99))

    sampler.start()
    assert asked.wait(60)
    trace = sampler.stop(1.0)

    assert trace.samples == ()
    assert trace.problem == "the sampler has failed (KeyError: 'no such field')"


def test_a_driver_that_hangs_is_noticed(monkeypatch):
    monkeypatch.setattr("flare.measuring.sampling.JOIN_S", 0.05)
    release = threading.Event()

    class Hanging(ScriptedGpu):
        def read(self, seconds=0.0):
            release.wait(30)
            return super().read(seconds)

    sampler = Sampler(0.001, gpu=Hanging([1.0]))

    sampler.start()
    trace = sampler.stop(1.0)
    release.set()

    assert trace.problem == "the GPU has not answered for some time"


OF_VERSION_2 = {
    "memory.current": f"{30 * 2**20}\n",
    "memory.stat": f"anon 5\ninactive_file {10 * 2**20}\n",
    "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
    "cgroup.procs": "12\n13\n",
}
OF_VERSION_1 = {
    "memory/docker/abc/memory.usage_in_bytes": f"{30 * 2**20}\n",
    "memory/docker/abc/memory.stat": f"inactive_file 1\ntotal_inactive_file {2**20}\n",
    "memory/docker/abc/cgroup.procs": "12\n",
    "cpuacct/docker/abc/cpuacct.usage": "1500000000\n",
}
PLACES = (
    *("docker/abc", "system.slice/docker-abc.scope"),
    *("system.slice/nerdctl-abc.scope", "user/x/libpod-abc.scope"),
)


@pytest.mark.parametrize("place", ["", *PLACES])
def test_memory_and_time_are_read_from_control_groups(tmp_path, place):
    """Of version 2, whose folder has one of some places; else of version 1."""
    if place:
        write_file(tmp_path / "cgroup.controllers", "cpu memory\n")
    for name, text in (OF_VERSION_2 if place else OF_VERSION_1).items():
        write_file(tmp_path / place / name, text)
    group = ControlGroup("abc", tmp_path)

    assert group.read() == ((20.0, 2.5) if place else (29.0, 1.5))
    assert group.processes() == ({12, 13} if place else {12})
