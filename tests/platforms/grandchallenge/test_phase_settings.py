"""The settings of a phase that is evaluated outside, by the platform's own rules."""

from dataclasses import replace

import pytest

from flare.challenge.metrics import METRICS, Better, metric_named
from flare.challenge.reading import challenge_names, read_challenge
from flare.challenge.rules import RankedMetric
from flare.cli.main import main
from flare.common.schema import dump
from flare.evaluation.errors import PhaseSettingsError
from flare.platforms.board import Order
from flare.platforms.grandchallenge.phase import is_rankable, read_phase, value_at
from flare.platforms.grandchallenge.phase_settings import (
    PhaseOptions,
    external_settings_for,
    settings_for,
)
from flare.platforms.serving.work import returned_metrics
from flare.results.efficiency_csv import read_records, write_records
from tests.builders.errors import told
from tests.builders.measured import write_measured
from tests.builders.pages import write_json
from tests.builders.schemas import problems

CASES = ("case_1", "case_2", "case_3")


def write_team(folder, failed=None):
    write_measured(folder, CASES, failed=failed, scores={"liver": (0.9, 0.8, 0.7)})


def phase_of(name="flare21"):
    return external_settings_for(read_challenge(name))


@pytest.mark.parametrize("failed", [{}, {"case_2": ("timed out", "after 60 s")}])
def test_every_ranked_path_has_a_number_in_what_is_returned(tmp_path, failed):
    """One that is missing would drop the result without a word."""
    write_team(tmp_path, failed=failed)
    worst = {"runtime_s": 60, "max_gpu_memory_mb": 8192}

    found = returned_metrics(tmp_path, worst)

    for path in phase_of().ranked:
        assert is_rankable(value_at(found, path)), path
    for column in phase_of().extra_results_columns[1:3]:
        assert is_rankable(value_at(found, column.error_path))


@pytest.mark.parametrize("name", challenge_names())
def test_every_edition_has_such_a_phase_beside_the_other_ones(name):
    rules = read_challenge(name)
    settings = {**settings_for(rules), "external": phase_of(name)}

    assert problems(dump(settings), "phase-settings") == []
    first = rules.ranking[0].metric if rules.ranking else "dsc"
    path = f"{first}_mean" if rules.organs else first
    assert phase_of(name).score_jsonpath == f"aggregates.{path}"
    # Of two cases, a mean and its deviation tell both.
    secret = [m.name for m in METRICS.values() if not m.tells_cases]
    paths = [path for phase in settings.values() for _, _, path in phase.columns]
    assert not [path for path in paths if any(name in path for name in secret)]


def test_the_page_says_what_an_image_needs():
    page = phase_of().submission_page_markdown

    for words in ("4 pancreas. Upload", "needs a `USER`", "is in `/opt/ml/model`"):
        assert words in page


@pytest.mark.parametrize("challenge", ["flare21", "flare22"])
def test_a_phase_that_no_challenge_has_is_refused(challenge):
    """By the bundled file, or by what an edition has."""
    found = r"has no phase final \(found sanity, validation, test"

    with pytest.raises(PhaseSettingsError, match=found):
        PhaseOptions(phase="final").read(challenge)


def test_a_gpu_of_flare_serve_is_refused_without_it(capfd):
    assert main(["phase-settings", "--gpu", "none"]) == 1
    line = capfd.readouterr().err
    assert line.startswith("--gpu: it is about what flare serve runs.")
    assert told(line)[0] == "H01"


# --- What is ranked ---------------------------------------------------------------


AREAS = ("gpu_memory_area_mb_s", "cpu_area_percent_s")


def ranking_by(*metrics):
    ranking = []
    for name in metrics:
        better = metric_named(name).better or Better.LOWER
        ranking.append(RankedMetric(metric=name, better=better))
    return replace(read_challenge("flare21"), ranking=tuple(ranking))


@pytest.mark.parametrize(
    ("metrics", "paths"),
    [
        (("dsc", "nsd"), ["dsc", "nsd"]),
        (("runtime_s", "dsc"), ["dsc", "runtime_s"]),
        (("nsd", "dsc_liver"), ["nsd", "dsc_liver"]),
        (("dsc", "cpu_s"), ["dsc"]),
        ((), ["dsc", "nsd", "runtime_s", "max_gpu_memory_mb"]),
        # FLARE 2022's; two are areas, which the service does not return.
        (("dsc", "nsd", "runtime_s", *AREAS), ["dsc", "nsd", "runtime_s"]),
    ],
)
def test_the_metrics_of_the_challenge_file_are_ranked(metrics, paths):
    """All others are shown; the score itself is ranked, whatever a phase says."""
    rules = ranking_by(*metrics)

    phase = external_settings_for(rules)

    is_low = {"runtime_s": Order.ASCENDING, "max_gpu_memory_mb": Order.ASCENDING}
    orders = {f"aggregates.{m}_mean": is_low.get(m, Order.DESCENDING) for m in paths}
    assert [*phase.ranked.items()] == [*orders.items()]
    assert len(phase.columns) == 2 + 2 + 2 * len(rules.organs)
    assert len({path for _, path, _ in phase.columns}) == len(phase.columns)


CHOSEN = '[absent_organs]\nin_prediction = "left_out"\n'


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ('extends = "flare21"\nmetrics = ["dsc"]\n', "nsd"),
        (f'extends = "autopet3"\n{CHOSEN}', "missed_volume"),
        (f'extends = "isles24"\n{CHOSEN}', "lesion_f1, .*, absolute_volume_difference"),
    ],
)
def test_a_board_without_a_score_that_is_ranked_is_refused(tmp_path, rules, missing):
    """Another phase is not; false volumes are of all cases, whatever is predicted."""
    file = tmp_path / "mine.toml"
    file.write_text(rules)

    with pytest.raises(PhaseSettingsError, match=rf"\] has {missing}, which"):
        PhaseOptions(phase="external").read(str(file))

    assert PhaseOptions().read(str(file)).score_jsonpath == "aggregates.dsc_mean"


def test_without_a_gpu_no_memory_is_ranked(capfd, tmp_path):
    """What the service returns then has none, and the platform would drop it."""
    assert main(["phase-settings", "--external", "--gpu", "none"]) == 0

    text = capfd.readouterr().out
    (tmp_path / "phases.json").write_text(text)
    phase = read_phase(tmp_path / "phases.json", "external")
    assert "GPU memory" not in text
    write_team(tmp_path)
    file = tmp_path / "efficiency.csv"
    records = read_records(file).values()
    write_records([replace(row, max_gpu_memory_mb=None) for row in records], file)
    found = returned_metrics(tmp_path, {"runtime_s": 60, "max_gpu_memory_mb": None})
    for path in phase.ranked:
        assert is_rankable(value_at(found, path)), path


def test_the_leaderboard_knows_the_external_phase(capfd, tmp_path):
    """Means of ranks: a is first in DSC and NSD, b in running time and memory."""
    for team, good, low in (("a", 0.9, 9.0), ("b", 0.8, 5.0)):
        values = {"dsc_mean": good, "nsd_mean": good}
        values |= {"runtime_s_mean": low, "max_gpu_memory_mb_mean": low}
        (tmp_path / team).mkdir()
        write_json(tmp_path / team / "metrics.json", {"aggregates": values})
    files = [str(tmp_path / team / "metrics.json") for team in "ab"]

    assert main(["leaderboard", *files, "--phase", "external"]) == 0

    lines = capfd.readouterr().out.splitlines()
    rows = [line.split()[:3] for line in lines if line.split()[1:2] in (["a"], ["b"])]
    assert sorted(rows) == [["1", "a", "1.5"], ["1", "b", "1.5"]]
