"""The settings of a phase that is evaluated outside, by the platform's own rules."""

import json

import pytest

from flare.challenge.reading import challenge_names, read_challenge
from flare.cli.main import main
from flare.platforms.external.returned import Worst, returned_metrics
from flare.platforms.grandchallenge.phase import (
    Order,
    is_rankable,
    parse_phase,
    value_at,
)
from flare.platforms.grandchallenge.phase_external import external_settings_for
from tests.builders.measured import write_measured
from tests.builders.pages import metrics_content, write_json
from tests.builders.schemas import problems

CASES = ("case_1", "case_2", "case_3")


def phase_of(name="flare21"):
    settings = external_settings_for(read_challenge(name))
    return parse_phase(json.dumps(settings), "external", source="external")


def test_dsc_nsd_time_and_memory_are_ranked_and_nothing_else():
    assert phase_of().ranked == {
        "aggregates.dsc_mean": Order.DESCENDING,
        "aggregates.nsd_mean": Order.DESCENDING,
        "aggregates.runtime_s_mean": Order.ASCENDING,
        "aggregates.max_gpu_memory_mb_mean": Order.ASCENDING,
    }


@pytest.mark.parametrize("failed", [{}, {"case_2": ("timed out", "after 60 s")}])
def test_every_ranked_path_has_a_number_in_what_is_returned(tmp_path, failed):
    """One that is missing would drop the result without a word."""
    write_measured(tmp_path, CASES, failed=failed)
    content = metrics_content({"liver": (0.9, 0.8, 0.7)})
    for key in ("gt_fname", "alg_fname"):
        content["case"][key] = {str(n): f"{c}.nii.gz" for n, c in enumerate(CASES)}
    write_json(tmp_path / "metrics.json", content)
    worst = Worst(runtime_s=60, max_gpu_memory_mb=8192)

    found = returned_metrics(tmp_path, worst)

    for path in phase_of().ranked:
        assert is_rankable(value_at(found, path)), path
    for column in phase_of().extra_results_columns[1:3]:
        assert is_rankable(value_at(found, column.error_path))


@pytest.mark.parametrize("name", challenge_names())
def test_every_edition_has_such_a_phase(name):
    settings = external_settings_for(read_challenge(name))

    assert problems(settings, "phase-settings") == []
    assert phase_of(name).score_jsonpath == "aggregates.dsc_mean"


def test_they_are_printed(capfd):
    status = main(["phase-settings", "--external"])

    found = json.loads(capfd.readouterr().out)
    assert status == 0
    assert found == external_settings_for(read_challenge("flare21"))
