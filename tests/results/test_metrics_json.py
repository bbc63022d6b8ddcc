"""metrics.json: its keys, its numbers, and how it is written."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest

from flare.common.errors import OutputError
from flare.results.metrics_json import (
    metrics_json,
    prepare_output,
    write_metrics,
    write_results,
)
from flare.results.scores import (
    AnswerScore,
    CaseScore,
    OrganScore,
    Provenance,
    Results,
    results_table,
    statistics,
)
from tests.builders import ORGANS

PROVENANCE = Provenance(
    challenge="flare21",
    challenge_sha256="ab",
    rules={"decimals": None},
    rules_sha256="ef",
    version="1",
    commit="cd",
    references="given",
    references_sha256="ef",
    cases=2,
    options={},
    libraries={"numpy": "2"},
    machine={"python": "3"},
)


def case_score(name, dsc, nsd):
    organs = tuple(
        OrganScore(organ=organ, by_metric={"dsc": dsc, "nsd": nsd})
        for organ in ORGANS.values()
    )
    return CaseScore(
        case=name,
        reference_file=f"{name}.nii.gz",
        prediction_file=f"{name}.nii.gz",
        organs=organs,
        by_metric={"dsc": dsc, "nsd": nsd},
    )


def make_results(*cases):
    return Results(cases=cases, warnings=("a warning",), provenance=PROVENANCE)


TWO = make_results(case_score("a", 0.5, 0.25), case_score("b", 1.0, 0.75))


def test_results_show_themselves_in_one_short_line():
    """The means of 0.5 and 1, and of 0.25 and 0.75."""
    assert repr(TWO) == "<Results: flare21, 2 cases, DSC 0.7500, NSD 0.5000>"


def test_results_are_a_table_with_a_row_for_each_case():
    failed = replace(case_score("c", 0.0, 0.0), failure="no file was submitted")
    results = make_results(case_score("b", 0.5, 0.25), failed)

    found = results.to_frame()

    assert found.index.tolist() == ["b", "c"]
    assert found.columns.tolist() == [*results.metrics, "failure"]
    assert found["dsc"].to_dict() == {"b": 0.5, "c": 0.0}
    assert found["nsd_liver"].to_dict() == {"b": 0.25, "c": 0.0}
    assert found["failure"].to_dict() == {"b": "", "c": "no file was submitted"}


@pytest.mark.parametrize("count", [1, 2, 3, 10, 99])
def test_statistics_equal_those_of_pandas(count):
    values = [math.sin(number) ** 2 for number in range(count)]

    found, series = statistics(values), pd.Series(values)

    for name in ("mean", "min", "max", "median"):
        assert found[name] == pytest.approx(getattr(series, name)(), abs=1e-15)
    if count == 1:
        assert found["std"] is None
    else:
        assert found["std"] == pytest.approx(series.std(), abs=1e-15)


def test_the_order_of_cases_changes_no_digit():
    values = [0.1, 1e-9, 0.3333333333333333, 0.7, 1 - 1e-12]

    assert statistics(values) == statistics(values[::-1])


def test_metrics_json_has_the_keys_of_the_contract():
    content = json.loads(metrics_json(TWO))

    metrics = [
        *(f"{kind}_{organ}" for organ in ORGANS.values() for kind in ("dsc", "nsd")),
        "dsc",
        "nsd",
    ]
    assert list(content) == ["case", "aggregates", "evaluation", "failed", "warnings"]
    assert list(content["case"]) == [*metrics, "alg_fname", "gt_fname"]
    names = ("mean", "std", "min", "max", "median")
    assert list(content["aggregates"]) == [f"{m}_{n}" for m in metrics for n in names]
    assert content["case"]["dsc_liver"] == {"0": 0.5, "1": 1.0}
    assert content["case"]["nsd"] == {"0": 0.25, "1": 0.75}
    assert content["case"]["alg_fname"] == {"0": "a.nii.gz", "1": "b.nii.gz"}
    assert content["aggregates"]["nsd_spleen_mean"] == 0.5
    assert content["aggregates"]["dsc_std"] == math.sqrt(0.125)
    assert (content["failed"], content["warnings"]) == ({}, ["a warning"])
    assert content["evaluation"]["references_sha256"] == "ef"


ANSWERS = AnswerScore(name="size", by_metric={"rmse_size": 2e15}, rows=())


@pytest.mark.parametrize(
    ("value", "answers", "problem"),
    [
        *((value, (), "not JSON compliant") for value in (math.nan, math.inf)),
        *((1.5, (), "above 1"), (-0.25, (), "negative")),
        (1.0, (ANSWERS,), "rmse_size is 2"),
    ],
)
def test_what_no_reader_takes_is_never_written(tmp_path, value, answers, problem):
    """Nor is answers.csv, beside a metrics.json of earlier answers."""
    results = make_results(case_score("a", value, 1.0), case_score("b", 1.0, 1.0))
    results = replace(results, answers=answers)

    for write in (write_metrics, write_results):
        with pytest.raises(ValueError, match=problem):
            write(results, tmp_path)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("name", "written"), [("a" * 200, "a" * 200), ("a\udcff", "a\\udcff")]
)
def test_names_of_files_are_whole_and_valid_utf_8(name, written):
    results = make_results(case_score(name, 1.0, 1.0))

    case = json.loads(metrics_json(results).encode())["case"]
    expected = {"0": f"{written}.nii.gz"}
    assert (case["gt_fname"], case["alg_fname"]) == (expected, expected)


def test_metrics_json_is_written_alone_and_whole_after_an_earlier_one_has_gone(
    tmp_path,
):
    output = tmp_path / "new"
    prepare_output(output)
    (output / "metrics.json").write_text("old")
    prepare_output(output)
    assert list(output.iterdir()) == []

    file = write_metrics(TWO, output)

    assert file.read_text(encoding="utf-8") == metrics_json(TWO)
    assert list(output.iterdir()) == [file]


def test_an_output_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(OutputError, match=r"it cannot be written \(file exists\)"):
        prepare_output(tmp_path / "file")
    with pytest.raises(OutputError, match="not a directory"):
        write_metrics(TWO, str(tmp_path / "file" / "folder"))


def test_the_table_shows_means_and_deviations():
    rows = ["liver         ", "kidney        ", "spleen        ", "pancreas      "]
    rows.append("mean of organs")

    assert results_table(TWO).splitlines() == [
        "                   DSC             NSD        ",
        "                  mean     std    mean     std",
        *(f"{name}  0.7500  0.3536  0.5000  0.3536" for name in rows),
    ]
