"""Jobs of a cluster: what the file may say, and a queue that runs jobs at once."""

import sys

import pytest

import flare
from flare.common.text import safe
from flare.evaluation.many.cluster_jobs import started_jobs
from flare.evaluation.many.errors import ClusterError
from tests.builders.many import write_teams

pytestmark = pytest.mark.tools(package="dask_jobqueue")

REMEDY = "See the page More than one machine for an example. [H10]"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("queue: [", "it is no YAML ("),
        ("- 1", "it holds no settings"),
        ("jobs: 2", "queue is None, not one of slurm, pbs, sge, lsf, oar, htcondor"),
        ("queue: qsub\njobs: 2", "queue is 'qsub', not one of slurm, pbs"),
        ("queue: slurm", "jobs is None, not a number of jobs"),
        ("queue: slurm\njobs: 0", "jobs is 0, not a number of jobs"),
        ("queue: slurm\njobs: true", "jobs is True, not a number of jobs"),
    ],
)
def test_what_the_file_says_wrong_is_named(tmp_path, content, problem):
    file = tmp_path / "slurm.yaml"
    file.write_text(content)

    with pytest.raises(ClusterError) as caught, started_jobs(file):
        pass

    assert str(caught.value).startswith(f"{safe(file)}: {problem}")
    assert str(caught.value).endswith(REMEDY)


def test_what_dask_jobqueue_does_not_take_is_told(tmp_path, monkeypatch):
    """By a stand-in: the real one leaves something unclosed behind when it raises."""

    class Queue:
        def SLURMCluster(self, *, cores, memory):  # noqa: N802  its name there
            text = "colour is no setting"
            raise ValueError(text)

    monkeypatch.setitem(sys.modules, "dask_jobqueue", Queue())
    file = tmp_path / "slurm.yaml"
    file.write_text("queue: slurm\njobs: 1\ncores: 1\nmemory: 1GB")

    with pytest.raises(ClusterError) as caught, started_jobs(file):
        pass

    assert str(caught.value) == (
        f"{safe(file)}: dask-jobqueue does not take it (colour is no setting). {REMEDY}"
    )


def test_a_file_that_is_not_there_may_have_been_meant_for_an_address(tmp_path):
    with pytest.raises(ClusterError) as caught, started_jobs(tmp_path / "host:8786"):
        pass

    assert str(caught.value) == (
        f"{safe(tmp_path / 'host:8786')}: it cannot be read (no such file or"
        " directory). Give tcp://HOST:PORT of a scheduler, or a YAML file. [H10]"
    )


def test_without_dask_jobqueue_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    file = tmp_path / "slurm.yaml"
    file.write_text("queue: slurm\njobs: 1")

    with pytest.raises(ClusterError) as caught, started_jobs(file):
        pass

    assert str(caught.value).startswith(
        f"{safe(file)}: dask-jobqueue is not installed. Install it: "
    )


SBATCH = """#!/bin/bash
# A queue in which nobody waits; the script is removed as soon as this ends.
job=$(mktemp "{folder}/job.XXXXXX") && cp "$1" "$job"
nohup bash "$job" >> "{folder}/jobs.log" 2>&1 &
echo $! >> "{folder}/jobs"
echo "Submitted batch job $!"
"""

SCANCEL = """#!/bin/bash
for job in "$@"; do pkill -P "$job"; kill "$job"; done
exit 0
"""


@pytest.mark.slow
@pytest.mark.tools("bash", "pkill", "nohup")
def test_a_queue_of_slurm_runs_the_workers(tmp_path, monkeypatch):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (bin_folder / name).write_text(text.format(folder=tmp_path))
        (bin_folder / name).chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(bin_folder), prepend=":")
        file = tmp_path / "slurm.yaml"
        file.write_text(
            "queue: slurm\njobs: 2\ncores: 1\nmemory: 1GB\ninterface: lo\n"
            "death_timeout: 60\nscheduler_options:\n  dashboard_address: 127.0.0.1:0\n"
        )
        teams, labels = write_teams(tmp_path, ["alpha", "beta"])
        found = flare.evaluate_many(
            teams, labels, tmp_path / "results", cluster=str(file)
        )

    assert [team.scored for team in found.teams] == [3, 3]
    assert len((tmp_path / "jobs").read_text().split()) == 2
