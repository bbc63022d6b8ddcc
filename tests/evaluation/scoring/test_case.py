"""The rules of a challenge, each switched on and worked by hand."""

import dataclasses
import json

import numpy as np
import pytest

import flare
from flare.challenge.metrics import LEFT_OUT
from flare.challenge.organs import AbsentOrgans, TopSlice, ZRange
from flare.challenge.rules import (
    GridComparison,
    GridRules,
    UnknownLabelRules,
    UnknownLabels,
)
from flare.evaluation.errors import DamagedFileError
from flare.evaluation.evaluate import ignored_labels_text
from flare.evaluation.labelmaps.grid import Grid
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.metrics.pairs import map_of
from flare.evaluation.scoring.case import score_case, score_labels, worst_score
from flare.evaluation.scoring.reading import check_headers
from flare.evaluation.submission.find import LabelMapFile, find_references
from flare.evaluation.submission.match import CasePair
from flare.results.metrics_json import metrics_json
from flare.results.metrics_reading import read_evaluation
from flare.results.scores import results_table
from tests.builders import AFFINE, organ_boxes, read_metrics, write_file, write_nifti
from tests.builders.errors import told

FLARE21 = flare.read_challenge("flare21")
ORGAN_NAMES = tuple(organ.name for organ in FLARE21.organs)


def label_map(labels, *, unknown=()):
    grid = Grid(
        shape=labels.shape,
        spacing=(1.0, 1.0, 1.0),
        affine=((1.0, 0, 0, 0), (0, 1.0, 0, 0), (0, 0, 1.0, 0)),
    )
    voxels, known = map_of(labels), tuple(range(1, 16))
    return LabelMap(grid=grid, voxels=voxels, allowed=known, unknown=unknown)


def score(reference, prediction, **rules):
    """DSC and NSD by organ, under FLARE21's rules but for those given."""
    challenge = dataclasses.replace(FLARE21, **rules)
    scores = score_labels(label_map(reference), label_map(prediction), challenge)
    assert tuple(score.organ for score in scores) == ORGAN_NAMES
    return {score.organ: (score.dsc, score.nsd) for score in scores}


def column(*labels):
    """A label map of 3 x 3 voxels per slice; its middle column holds the labels."""
    array = np.zeros((len(labels), 3, 3), dtype=np.uint8)
    array[:, 1, 1] = labels
    return array


@pytest.mark.parametrize(
    ("in_both", "in_reference", "in_prediction", "values", "mean", "failed_mean"),
    [
        # The liver is in both, the kidney in the reference, the spleen in the
        # prediction, the pancreas in neither; of a failed case, all are worst but what
        # the reference alone leaves out. First come the rules of FLARE 2021.
        (1.0, 0.0, 0.0, (1.0, 0.0, 0.0, 1.0), 0.5, (0.0, 0.0, 0.0, 0.0)),
        (0.5, 0.25, 0.125, (1.0, 0.125, 0.25, 0.5), 15 / 32, (0.0, 0.0, 0.0, 0.0)),
        (LEFT_OUT, 0.0, 0.0, (1.0, 0.0, 0.0, None), 1 / 3, (0.0, 0.0, 0.0, 0.0)),
        (1.0, LEFT_OUT, 0.0, (1.0, 0.0, None, 1.0), 2 / 3, (0.0, 0.0, 0.0, 0.0)),
        (1.0, 0.0, LEFT_OUT, (1.0, None, 0.0, 1.0), 2 / 3, (0.0, 0.0, 0.0, 0.0)),
        (LEFT_OUT, LEFT_OUT, 0.0, (1.0, 0.0, None, None), 0.5, (0.0, 0.0, None, None)),
        (*[LEFT_OUT] * 3, (1.0, None, None, None), 1.0, (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_an_absent_organ_has_the_value_of_the_challenge_or_none_and_is_in_no_mean(
    tmp_path, in_both, in_reference, in_prediction, values, mean, failed_mean
):
    absent = AbsentOrgans(
        in_both=in_both, in_reference=in_reference, in_prediction=in_prediction
    )
    rules = {"absent_organs": absent, "metrics": ("dsc", "nsd", "volume_difference")}
    challenge = dataclasses.replace(FLARE21, **rules)
    for name, labels in (("labels", (0, 1, 2, 2)), ("found", (0, 1, 3, 3))):
        write_nifti(tmp_path / name / "a.nii.gz", column(*labels))

    results = flare.evaluate(
        tmp_path / "found", tmp_path / "labels", challenge=challenge
    )
    (case,) = results.cases
    reference = find_references(tmp_path / "labels", challenge)[0]
    failed = worst_score(reference, challenge, "no file")

    for metric in ("dsc", "nsd"):
        assert tuple(organ.by_metric[metric] for organ in case.organs) == values
        assert results.mean(metric) == case.by_metric[metric] == pytest.approx(mean)
    assert tuple(organ.dsc for organ in failed.organs) == failed_mean
    assert (failed.dsc, failed.failure) == (0.0, "no file")
    volumes = [organ.by_metric["volume_difference"] for organ in case.organs]
    assert [value is None for value in volumes] == [value is None for value in values]
    missing = read_metrics(flare.write_metrics(results, tmp_path).parent)
    assert missing["case"]["dsc_pancreas"] == {"0": values[3]}
    assert missing["aggregates"]["dsc_pancreas_mean"] == values[3]


def test_a_case_without_any_organ_that_counts_has_no_mean(tmp_path):
    """Only the second of two cases has organs: means are of that one alone."""
    absent = AbsentOrgans(in_both=LEFT_OUT, in_reference=LEFT_OUT)
    challenge = dataclasses.replace(FLARE21, absent_organs=absent)
    for name in ("labels", "found"):
        write_nifti(tmp_path / name / "a.nii.gz", column(0, 0))
        write_nifti(tmp_path / name / "b.nii.gz", column(0, 1))

    results = flare.evaluate(
        tmp_path / "found", tmp_path / "labels", challenge=challenge
    )
    file = read_evaluation(flare.write_metrics(results, tmp_path))

    assert [case.dsc for case in results.cases] == [None, 1.0]
    assert results.totals == {"dsc": 1.0, "nsd": 1.0}
    assert results_table(results).split("\n")[-6:] == [
        "mean of organs  1.0000       -  1.0000       -",
        "liver: mean of 1 of 2 cases (DSC, NSD)",
        *(f"{organ}: mean of 0 of 2 cases (DSC, NSD)" for organ in ORGAN_NAMES[1:]),
        "mean of organs: mean of 1 of 2 cases (DSC, NSD)",
    ]
    assert file.aggregates["dsc_mean"] == 1.0
    gaps = {metric for metric, value in file.scores_of("b").items() if value is None}
    organs = ORGAN_NAMES[1:]
    assert gaps == {f"{metric}_{name}" for metric in ("dsc", "nsd") for name in organs}
    content = json.loads(metrics_json(results).replace(LEFT_OUT, "1.0"))
    other = write_file(tmp_path / "other.json", json.dumps(content))
    values = read_evaluation(other).values.values()
    assert None not in values  # a null of another program is missing


def test_nsd_counts_only_from_a_dsc_on():
    """One of 9 voxels is found: DSC 2 / 10 = 0.2; its 8 surfels are 1 mm within."""
    reference, prediction = column(*[1] * 9), column(1, *[0] * 8)

    dsc, nsd = score(reference, prediction)["liver"]
    assert (dsc, nsd > 0) == (0.2, True)
    same = score(reference, prediction, smallest_dsc_for_nsd=0.2)["liver"]
    assert same == (dsc, nsd)
    over = score(reference, prediction, smallest_dsc_for_nsd=0.2001)["liver"]
    assert over == (0.2, 0.0)


def test_values_are_rounded_as_numpy_rounds():
    """Of 7 + 2 voxels, 2 are shared: 4 / 9 = 0.4444..., rounded to 0.44."""
    reference, prediction = column(*[1] * 7), column(1, 1, *[0] * 5)

    assert score(reference, prediction)["liver"][0] == 4 / 9
    dsc, nsd = score(reference, prediction, decimals=2)["liver"]
    assert (dsc, nsd) == (0.44, round(nsd, 2))


@pytest.mark.parametrize(
    ("top_slice", "expected"), [(TopSlice.KEPT, 4 / 6), (TopSlice.DROPPED, 4 / 5)]
)
def test_a_z_range_is_that_of_the_reference(top_slice, expected):
    """The prediction goes on above and below, which does not count.

    2 of 4 slices are found: 2 * 2 / (4 + 2). Without the top one, 2 of 3 are. Without a
    z-range, 2 of 4 + 4 voxels are shared.
    """
    reference, prediction = column(0, 1, 1, 1, 1, 0), column(1, 0, 1, 1, 0, 1)

    for organ, dsc in (("liver", expected), ("spleen", 4 / 8)):
        rule = ZRange(organs=(organ,), top_slice=top_slice)
        assert score(reference, prediction, z_range=rule)["liver"][0] == dsc
    assert score(reference, prediction)["liver"][0] == 4 / 8


@pytest.mark.parametrize("top_slice", TopSlice)
def test_a_z_range_of_a_single_slice_keeps_it(top_slice):
    """Found, and more around it; or only around it. The official scripts crash."""
    liver = ZRange(organs=("liver",), top_slice=top_slice)

    for labels, value in (((1, 1, 1), 1.0), ((1, 0, 1), 0.0)):
        scores = score(column(0, 1, 0), column(*labels), z_range=liver)
        assert scores["liver"] == (value, value)


def test_an_organ_without_a_z_range_is_scored_everywhere():
    """The reference lacks the organ, so every slice counts: a false positive."""
    liver = ZRange(organs=("liver",))

    assert score(column(0, 0), column(1, 0), z_range=liver)["liver"] == (0.0, 0.0)
    assert score(column(0, 0), column(0, 0), z_range=liver)["liver"] == (1.0, 1.0)


@pytest.mark.parametrize("side", ["reference", "prediction"])
@pytest.mark.parametrize(
    ("rule", "value"), [(UnknownLabels.IGNORE, 1.0), (UnknownLabels.ZERO, 0.0)]
)
def test_unknown_labels_that_do_not_refuse(side, rule, value):
    maps = {
        name: label_map(column(0, 1), unknown=(9,) if name == side else ())
        for name in ("reference", "prediction")
    }
    rules = dataclasses.replace(UnknownLabelRules(), **{side: rule})
    challenge = dataclasses.replace(FLARE21, unknown_labels=rules)

    scores = score_labels(**maps, challenge=challenge)

    assert {(score.dsc, score.nsd) for score in scores} == {(value, value)}


# --- A pair of files --------------------------------------------------------------


@pytest.fixture
def make_pair(tmp_path):
    """Write a pair of files; keywords ``reference`` and ``prediction`` change them."""

    def make(*, reference=None, prediction=None):
        files = {}
        for kind, changes in (("reference", reference), ("prediction", prediction)):
            content = {"labels": organ_boxes(), **(changes or {})}
            path = tmp_path / kind / "case_1.nii.gz"
            write_nifti(path, content.pop("labels"), **content)
            files[kind] = LabelMapFile(case="case_1", path=path, name=f"a/{path.name}")
        return CasePair(case="case_1", **files)

    return make


def test_the_mean_of_a_case_leaves_out_what_does_not_count(make_pair):
    """The prediction misses the pancreas; without it, the mean is 1."""
    labels = organ_boxes()
    labels[labels == 4] = 0
    pair = make_pair(prediction={"labels": labels})
    organs = tuple(
        dataclasses.replace(organ, in_mean=organ.name != "pancreas")
        for organ in FLARE21.organs
    )

    case = score_case(pair, FLARE21)
    assert (case.dsc, case.nsd) == (0.75, 0.75)
    case = score_case(pair, dataclasses.replace(FLARE21, organs=organs))
    assert (case.dsc, case.nsd) == (1.0, 1.0)
    assert case.organs[3].dsc == 0.0
    assert (case.reference_file, case.prediction_file) == ("case_1.nii.gz",) * 2


def test_the_spacing_of_the_reference_counts(make_pair):
    """The prediction's voxel size is wrong, but its sform is right."""
    moved = {"labels": organ_boxes(shift=1)}
    right = score_case(make_pair(prediction=moved), FLARE21)
    wrong = score_case(
        make_pair(prediction={**moved, "spacing": (9.0, 9.0, 9.0)}), FLARE21
    )

    assert wrong == right


def other(row, column, change):
    affine = AFFINE.copy()
    affine[row, column] += change
    return {"affine": affine}


SMALLER = {"labels": organ_boxes()[:9]}

SIZE = dataclasses.replace(FLARE21, grid=GridRules(compare=GridComparison.SIZE))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (SMALLER, "20 x 16 x 9 voxels, expected 20 x 16 x 10"),
        (other(2, 3, -100), "100 mm off"),
        (other(1, 1, 1.6), "axes point to"),
        (other(0, 3, 0.11), "0.11 mm off"),
        (other(0, 3, 0.09), ""),
    ],
)
def test_another_grid_is_refused_but_for_a_tenth_of_a_mm(make_pair, changes, words):
    """Where sizes are compared, another position is a warning."""
    pair, found = make_pair(prediction=changes), ""
    if words:
        with pytest.raises(flare.SubmissionError, match=words) as caught:
            check_headers(pair, FLARE21)
        code = "F07" if changes is SMALLER else "F08"
        assert told(caught.value) == (code, "a/case_1.nii.gz")
        found = caught.value.finding
    else:
        assert check_headers(pair, FLARE21)[1] == ""
    if changes is SMALLER:
        with pytest.raises(flare.SubmissionError, match=words):
            check_headers(pair, SIZE)
    else:
        assert check_headers(pair, SIZE)[1] == found


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([257, 5], "unknown labels 5 and 257"),
        # An image was submitted in place of a label map.
        (np.arange(3200) - 1024, "20 or more unknown labels, such as -1024: it looks"),
    ],
)
def test_unknown_labels_are_refused(make_pair, labels, words):
    voxels = organ_boxes().astype(np.int16)
    voxels.flat[: len(labels)] = labels
    pair = make_pair(prediction={"labels": voxels, "dtype": "<i2"})

    with pytest.raises(flare.SubmissionError, match=words) as caught:
        score_case(pair, FLARE21)

    assert told(caught.value) == ("F11", "a/case_1.nii.gz")


def test_a_file_that_changes_between_header_and_voxels(make_pair):
    pair = make_pair(prediction={"labels": organ_boxes()[:9]})

    with pytest.raises(DamagedFileError, match="it changed while it was evaluated"):
        score_case(pair, FLARE21)


AS_BACKGROUND = "are no organs and count as background, in"


@pytest.mark.parametrize(
    ("files", "name", "text"),
    [
        ([(), ()], "flare22", ""),
        ([(1, 2, 3, 4, 5)] * 12, "flare22", f"labels 1 to 5 {AS_BACKGROUND} 12 of 12"),
        ([(9,), ()], "flare22", "label 9 is no organ and counts as background, in 1 of"
         " 2"),
        ([(7,), (9,)], "flare22", f"labels 7 and 9 {AS_BACKGROUND} 2 of 2"),
        ([tuple(range(-9, 11))], "flare22",
         f"20 or more labels, such as -9, {AS_BACKGROUND} 1 of 1"),
        ([(2,), ()], "flare24-lesion", "label 2 is no organ and makes its case score"
         " 0, in 1 of 2"),
    ],
    ids=["none", "several", "one", "two", "many", "a case of score 0"],
)  # fmt: skip
def test_ignored_labels_are_named(files, name, text):
    found = ignored_labels_text(files, flare.read_challenge(name))

    assert found == (f"{text} files" if text else "")
