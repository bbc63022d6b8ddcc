"""metrics.json as it is read: what other programs may write, and what is refused."""

import pytest

from flare.results.errors import MetricsFileError
from flare.results.metrics_reading import case_names, read_evaluation
from flare.results.scores import FreeCases
from tests.builders import error_of
from tests.builders.pages import write_json

CONTENT = {
    "case": {
        "dsc": {"0": 0.5, "1": None},
        "nsd": {"0": 1.0, "1": 0.25},
        "gt_fname": {"0": "b.nii.gz", "1": "a.nii.gz"},
    },
    "evaluation": {"challenge": "mine", "version": 3, "commit": None},
}


def read(tmp_path, content):
    return read_evaluation(write_json(tmp_path / "metrics.json", content))


def changed(**changes):
    return {**CONTENT, **changes}


def test_the_fewest_keys_are_enough(tmp_path):
    content = read(tmp_path, CONTENT)

    assert content.cases == ("a", "b")
    assert content.values == {("b", "dsc"): 0.5, ("b", "nsd"): 1.0, ("a", "nsd"): 0.25}
    assert (content.failed, content.aggregates, content.low_scores) == ({}, {}, ())
    assert (content.evaluation.version, content.evaluation.rules) == ("3", None)


def test_further_keys_are_passed_by_and_odd_tables_of_the_evaluation_count_for_nothing(
    tmp_path,
):
    evaluation = {"rules": "FLARE21", "options": None, "host": {"cpus": 3}}
    low_scores = [{"reason": "mirrored", "cases": ["a"], "since": 2}]

    content = read(
        tmp_path, changed(evaluation=evaluation, low_scores=low_scores, extra=[])
    )

    assert (content.evaluation.rules, content.evaluation.options) == (None, {})
    assert content.low_scores[0].reason == "mirrored"
    assert content.provenance[-1] == ("host", "cpus 3")


def test_values_of_answers_need_no_case_and_are_ones_that_their_metric_can_have(
    tmp_path,
):
    aggregates = {"auroc_task": 1 + 2**-52, "rmse_size": 12.5, "f1_task_mean": 93.2}

    content = read(tmp_path, {"case": {}, "evaluation": {}, "aggregates": aggregates})

    assert content.answers == {"auroc_task": 1 + 2**-52, "rmse_size": 12.5}
    assert (content.cases, content.values) == ((), {})
    with pytest.raises(MetricsFileError, match=r"auroc_task is 75.0, above 1"):
        read(tmp_path, changed(aggregates={"auroc_task": 75}))


def test_free_cases_and_finite_aggregates_are_read(tmp_path):
    aggregates = {
        "dsc_mean": 0.5,
        "dsc_std": None,
        "lesion_free_cases": 5,
        "lesion_free_left_empty": 3,
    }

    content = read(tmp_path, changed(aggregates=aggregates))

    assert content.aggregates == {
        "dsc_mean": 0.5,
        "lesion_free_cases": 5.0,
        "lesion_free_left_empty": 3.0,
    }
    assert content.free_cases == (FreeCases(organ="lesion", cases=5, left_empty=3),)


@pytest.mark.parametrize(
    "changes",
    [
        {"case": None},
        {"case": {"dsc": {"0": 1.0}}},
        {"case": {**CONTENT["case"], "dsc": [1.0]}},
        {"case": {**CONTENT["case"], "dsc": {"2": 1.0}}},
        {"evaluation": []},
        {"evaluation": {"names": "{case}_gt"}},
        {"failed": ["a"]},
        {"low_scores": [{"cases": ["a"]}]},
        {"aggregates": {"lesion_free_cases": 5}},
        {"aggregates": {"dsc_mean": 10**400}},
    ],
    ids=str,
)
def test_another_structure_is_refused(tmp_path, changes):
    error = error_of(MetricsFileError, read, tmp_path, changed(**changes))

    assert error.problem == "it is no metrics.json that an evaluation has written"


def test_cases_have_names_by_the_pattern_of_the_file():
    case = {"gt_fname": {"0": "a_gt.nii.gz"}}
    evaluation = {"names": {"reference": "{case}_gt", "since": 2}}

    assert case_names({"case": case, "evaluation": evaluation}) == {"0": "a"}
