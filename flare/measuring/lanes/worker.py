"""Measures a team on a Dask worker, in a process of its own."""

from __future__ import annotations

import pickle
from typing import Any

from flare.measuring.lanes.job import TeamJob
from flare.measuring.lanes.process import LaneProcess

LOOK_S = 1.0
"""So often it is seen whether a job is still wanted."""


def measure_on_worker(job: TeamJob, topic: str, token: str) -> int:
    """Measure a team in a process of this worker; so many messages were sent.

    Parameters
    ----------
    job : TeamJob
        What is to be done.
    topic : str
        Of the events that the messages become.
    token : str
        Goes with each message.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    told, is_stopping = 0, False
    with LaneProcess(job) as process:
        while True:
            if process.connection.poll(LOOK_S):
                message = process.receive()
                if message is None:
                    return told
                worker.log_event(topic, pickle.dumps((token, message)))
                told += 1
            if not is_stopping and not _is_wanted(worker, key):
                is_stopping = True
                process.ask_to_stop()


def _is_wanted(worker: Any, key: Any) -> bool:
    """Whether a task was not cancelled, and its worker is not about to end."""
    task = worker.state.tasks.get(key)
    is_running = worker.status.name in ("running", "paused")
    return is_running and task is not None and task.state == "executing"
