"""What a pool of Dask workers makes of what a client says; no scheduler is started."""

import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from flare.common.environment import __version__, source_commit
from flare.evaluation.errors import ClusterError
from flare.measuring.engines.docker import Docker
from flare.measuring.lane import look_at_computer
from flare.measuring.lanes import cluster
from flare.measuring.lanes.cluster import (
    ClusterLanes,
    measure_on_worker,
    opened_cluster,
)
from flare.measuring.lanes.process import TeamEnd
from flare.measuring.options import LaneLimits, MeasureOptions
from flare.measuring.sampling import DeviceError
from flare.results.errors import MeasurementError
from tests.builders import error_of
from tests.builders.errors import told
from tests.builders.lanes import device, job_of, place

ADDRESS = "tcp://10.0.0.1:8786"
CORES = [(n,) for n in range(9)]


class Client:
    """Says which workers there are, and what each is; jobs end as the test says."""

    status = "running"

    def __init__(self, **places):
        self.places = places
        self.resources = {worker: {"GPU": 1} for worker in places}
        self.sent = []
        self.scheduler = SimpleNamespace(identity=self._identity)

    def subscribe_topic(self, topic, hear):
        """Note who hears what jobs tell."""
        self.topic, self.hear = topic, hear

    def sync(self, function, *, callback_timeout, **arguments):
        """What a function of the scheduler returns."""
        return function(**arguments)

    def _identity(self, n_workers):
        return {"workers": {w: {"resources": r} for w, r in self.resources.items()}}

    def run(self, function, *_, workers, on_error):
        if function is look_at_computer:
            return {worker: self.places[worker] for worker in workers}
        return dict.fromkeys(workers, ((__version__, source_commit()), [], []))

    def submit(self, function, job, topic, token, *, workers, resources, pure):
        assert (function, topic) == (measure_on_worker, self.topic)
        assert (resources, pure) == ({"GPU": 1}, False)
        future = SimpleNamespace(
            status="pending", cancel=lambda: None, add_done_callback=self._keep
        )
        self.sent.append((job, token, workers, future))
        return future

    def _keep(self, callback):
        self.callback = callback


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Nothing is waited for."""
    monkeypatch.setattr(cluster, "LOOK_S", 0.01)


def options(address=ADDRESS, gpu="none", lanes=None):
    """How the computers of a scheduler are divided."""
    return MeasureOptions(
        **dict.fromkeys(("archives", "images", "output"), Path()),
        limits=LaneLimits(gpu=gpu),
        lanes=lanes,
        cluster=address,
    )


def pool_of(client, **asked):
    return ClusterLanes(client, options(**asked), {}, Docker())


def begun():
    """A client, the pool of its only worker, and its lane, on which a job has begun."""
    client = Client(**{"tcp://a:1": place(CORES)})
    pool = pool_of(client)
    (lane,) = pool.free()
    pool.begin(lane, "job")
    pool._looked_at = 0.0  # it looks at its workers again
    return client, pool, lane


def test_workers_of_a_computer_share_its_lanes():
    """Two of one computer, and one of another, which has the name of the first."""
    here = [device(0), device(1)]
    first = place(CORES, gpus=here)
    second = place(CORES, gpus=here, identity="boot-2")
    client = Client(**{"tcp://a:1": first, "tcp://a:2": first, "tcp://b:1": second})

    lanes = pool_of(client, gpu="0,1").lanes()

    assert [(lane.name, lane.limits.gpu, lane.limits.cpus) for lane in lanes] == [
        ("here, lane 0", "GPU-0", "1,2,3,4"),
        ("here, lane 1", "GPU-1", "5,6,7,8"),
        ("here (b), lane 0", "GPU-0", "1,2,3,4"),
    ]


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({}, f"{ADDRESS}: no worker has the resource GPU. "),
        (
            {f"tcp://a:{n}": place(CORES) for n in (1, 2, 3)},
            "Worker tcp://a:3: here has more workers with the resource GPU than lanes",
        ),
        (
            {"tcp://a:1": DeviceError("there is no GPU 1, but 1, counted from 0")},
            "Worker tcp://a:1: there is no GPU 1, but 1, counted from 0. Try",
        ),
    ],
    ids=["none", "too many", "no such GPU"],
)
def test_workers_that_cannot_measure_are_refused(places, message):
    error = error_of(ClusterError, pool_of, Client(**places), lanes=2)

    assert str(error).startswith(message)


def test_a_worker_of_another_kind_is_left_out():
    """And refused where it is there from the start."""
    client = Client(**{"tcp://a:1": place(CORES)})
    pool = pool_of(client)
    other = place(CORES, identity="boot-2", host="there", processor="CPU Y")
    client.places["tcp://b:1"], client.resources["tcp://b:1"] = other, {"GPU": 1}
    pool._looked_at = 0.0

    assert list(pool.events()) == []

    assert [lane.host for lane in pool.lanes()] == ["here"]
    with pytest.raises(MeasurementError, match="processor CPU Y, not CPU X"):
        pool_of(client)


def test_workers_without_the_resource_are_left_alone():
    client = Client(**{"tcp://a:1": place(CORES), "tcp://a:2": place(CORES)})
    client.resources["tcp://a:1"] = {}

    assert len(pool_of(client).lanes()) == 1


def test_a_job_is_over_behind_its_last_message():
    """Its end is known first, and what it has told comes later."""
    client, pool, lane = begun()
    (_, token, workers, future) = client.sent[0]
    assert (workers, pool.free()) == (["tcp://a:1"], [])

    client.callback(future)
    assert list(pool.events()) == []
    client.hear((0.0, pickle.dumps((token, TeamEnd()))))
    assert list(pool.events()) == [(lane, TeamEnd()), (lane, None)]
    assert pool.free() == [lane]


def test_a_job_that_was_killed_is_not_waited_for_long(monkeypatch):
    client, pool, lane = begun()
    monkeypatch.setattr(cluster, "LATE_S", 0)

    client.callback(client.sent[0][3])

    assert list(pool.events()) == [(lane, None)]


def test_a_worker_that_has_ended_gives_its_job_back_and_another_takes_its_lane():
    client, pool, lane = begun()

    client.places, client.resources = {"tcp://a:9": place(CORES)}, {}

    assert list(pool.events()) == [(lane, None)]
    assert (pool.lanes(), pool.may_grow()) == ([], True)
    client.resources = {"tcp://a:9": {"GPU": 1}}
    pool._looked_at = 0.0
    assert list(pool.events()) == []
    assert pool.free() == [lane]


@pytest.mark.parametrize("is_noticed", [True, False], ids=["before", "meanwhile"])
def test_a_scheduler_that_was_lost_is_named_without_waiting_for_it(is_noticed):
    """Dask's client would wait a minute for its answer, and what was sent is lost."""
    client, pool, _ = begun()

    def lose(n_workers):
        assert client.status == "running"
        client.status = "connecting"
        raise TimeoutError

    client.scheduler.identity = lose
    if is_noticed:
        client.status = "connecting"

    assert told(error_of(ClusterError, list, pool.events())) == ("H10", ADDRESS)


def test_a_scheduler_that_hangs_is_given_up_after_a_minute():
    """It is connected, and never answers: twelve times, five seconds each."""
    client, pool, _ = begun()
    client.scheduler.identity = Mock(side_effect=[TimeoutError] * 12)

    with pytest.raises(ClusterError, match="the scheduler does not answer any more"):
        list(pool.events())

    assert client.scheduler.identity.call_count == 12


def test_something_else_than_an_address_is_refused(tmp_path):
    job = job_of(tmp_path, {"a": "1"})
    job = replace(job, options=options("slurm.yaml"))
    with pytest.raises(ClusterError) as caught, opened_cluster(job, Docker()):
        pass

    assert "--cluster slurm.yaml: it is no address" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "state", "is_wanted"),
    [
        ("running", "executing", True),
        ("paused", "executing", True),
        ("closing", "executing", False),
        ("running", "cancelled", False),
        ("running", None, False),
    ],
)
def test_a_task_is_wanted_while_it_and_its_worker_go_on(status, state, is_wanted):
    tasks = {"key": SimpleNamespace(state=state)} if state else {}
    worker = SimpleNamespace(
        state=SimpleNamespace(tasks=tasks), status=SimpleNamespace(name=status)
    )

    assert cluster._is_wanted(worker, "key") is is_wanted
