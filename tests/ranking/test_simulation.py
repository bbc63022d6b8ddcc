"""The simulated challenge, ranked: what FLARE21's rule makes of odd teams."""

import json
import re

import pytest

from flare.common.errors import OutputError
from flare.ranking.simulation import write_simulation
from flare.results.errors import RankingError
from tests.builders import ROOT, run_flare
from tests.builders.results import FLARE21, FLARE22


def flare_command(*arguments):
    run = run_flare(*arguments)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """Both commands of the README, and what ranking.json has."""
    folder = tmp_path_factory.mktemp("simulation")
    flare_command("simulate", "--output", folder / "results")
    text = flare_command("rank", folder / "results", "--output", folder / "ranking")
    return folder, json.loads((folder / "ranking" / "ranking.json").read_text()), text


def test_readme_shows_what_is_printed(ranked):
    _, _, text = ranked
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    quoted = re.search(r"```text\n(rank  team .*?)```", readme, flags=re.DOTALL)[1]

    assert len(quoted.splitlines()) > 8
    assert text.startswith(quoted.split("...\n")[0])
    for part in quoted.split("...\n"):
        assert part.strip("\n") in text


def test_odd_teams_get_the_ranks_that_flare21_gives_them(ranked):
    """The crash is not seventh: its second of running time and its GPU do not count.

    A team without a GPU ties best on memory.
    """
    _, found, _ = ranked

    assert (found["teams"], len(found["cases"])) == (11, 100)
    assert len(found["settings"]["metrics"]) == 4
    last = found["ranking"][-1]
    assert (last["team"], last["rank"], last["score"]) == ("crash", 11, 1)
    memory = {e["team"]: e["mean_ranks"]["max_gpu_memory_mb"] for e in found["ranking"]}
    best = {team for team, rank in memory.items() if rank == 1}
    assert best == {"cpu_only", "empty_masks"}


def test_a_seed_gives_the_same_bytes(tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_simulation(FLARE21, tmp_path / folder, teams=4, cases=3, seed=seed)
    contents = [
        [file.read_bytes() for file in sorted((tmp_path / folder).rglob("*.*"))]
        for folder in "abc"
    ]

    assert len(contents[0]) == 8
    assert contents[0] == contents[1] != contents[2]


def test_the_mean_of_organs_is_that_of_the_case(ranked):
    """Simulated teams have organs, of which the pancreas is the hardest."""
    for file in (ranked[0] / "results").rglob("metrics.json"):
        content = json.loads(file.read_text())
        for metric in ("dsc", "nsd"):
            names = [f"{metric}_{o}" for o in ("liver", "kidney", "spleen", "pancreas")]
            organs = [[*content["case"][name].values()] for name in names]
            means = [sum(case) / 4 for case in zip(*organs, strict=True)]
            assert [*content["case"][metric].values()] == pytest.approx(means, abs=1e-9)
            assert all(0 <= value <= 1 for values in organs for value in values)
            liver, pancreas = (
                content["aggregates"][f"{names[n]}_mean"] for n in (0, 3)
            )
            assert liver >= pancreas


def test_a_simulation_without_such_metrics_or_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(RankingError, match="flare22: it does not rank by dsc, nsd"):
        write_simulation(FLARE22, tmp_path)
    with pytest.raises(OutputError, match="it cannot be written"):
        write_simulation(FLARE21, tmp_path / "file", teams=1, cases=1)
