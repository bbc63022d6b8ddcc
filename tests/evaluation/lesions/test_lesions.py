"""Lesions of drawn and of random masks: pairs by hand, and by a slow twin."""

import math
import tracemalloc

import numpy as np
import pytest

from flare.challenge.lesion_metrics import LESION_METRICS
from flare.challenge.lesions import DEFINITIONS
from flare.evaluation.lesions.case import Surfaces, lesions_of
from flare.evaluation.lesions.runs import components, runs_of
from flare.evaluation.metrics.pairs import pair_of_masks
from tests.oracles import Lesions, components_of

SPACING = (1.0, 1.0, 1.0)
SURFACES = Surfaces(tolerance=1.0, has_distances=True)
METRICS = {metric.name: metric.of_lesions for metric in LESION_METRICS}


def drawn(*slices):
    """A mask of slices; rows are parted by spaces."""
    return np.array([[list(row) for row in text.split()] for text in slices]) == "#"


def lesions(reference, prediction, name, spacing=SPACING, surfaces=None):
    pair = pair_of_masks(reference, prediction, spacing)
    return lesions_of(pair, DEFINITIONS[name], surfaces)


def counts(case):
    """Found, missed and false lesions, and what precision counts."""
    return case.found, len(case.missed), len(case.false), case.hits


CORNERS = drawn("#... .#.. .... ....", ".... .... ..#. ....", ".... ...# .... ....")
"""Voxels that are neighbours by an edge, by a corner, and by a corner again."""


@pytest.mark.parametrize(("neighbours", "expected"), [(6, 4), (18, 3), (26, 1)])
def test_neighbours_decide_what_one_lesion_is(neighbours, expected):
    pair = pair_of_masks(CORNERS, CORNERS, SPACING)
    runs, _ = runs_of(pair.masks, pair.box)
    assert components(runs, neighbours)[0] == expected


LINE = "#" * 51
# The names tell the definition, the reference, the prediction; then what counts as
# found, missed, false, and as a hit.
PAIRS = [
    ("brats23-men", "#..#", "....", (0, 0, 0, 0)),
    ("brats23-met", "###..###", "........", (0, 1, 0, 0)),
    ("brats23-met", "###...###", ".........", (0, 2, 0, 0)),
    ("brats23-gli", f"{LINE}......{LINE}", "." * 108, (0, 1, 0, 0)),
    ("brats23-gli", f"{LINE}.......{LINE}", "." * 109, (0, 2, 0, 0)),
    # One of the prediction belongs to both, and is looked for in each, widened.
    ("brats23-met", "###...###", "...###...", (2, 0, 0, 2)),
    ("brats23-met", "###....", ".....##", (0, 1, 1, 0)),
    # What hits a lesion that is too small is not false; 50 mm3 is too small.
    ("brats23-gli", "#" * 50 + "." * 9, "." * 52 + "#" * 7, (0, 0, 0, 0)),
    ("brats23-gli", f"{LINE}.........", "." * 53 + "#" * 7, (1, 0, 0, 1)),
    ("isles24", "####.####", "#########", (1, 1, 0, 1)),
    ("isles24", "#####.", "#.....", (1, 0, 0, 1)),
    ("isles24", "######", "#.....", (0, 1, 1, 0)),
    # The best pair first: the second lesion then has none left.
    ("isles24", "###.######", "..######..", (1, 1, 0, 1)),
    ("isles24-iou0.5", "####", "##..", (1, 0, 0, 1)),
    ("isles24-iou0.5", "#####", "##...", (0, 1, 1, 0)),
    ("wmh17", "#.#.#..#", "####..##", (3, 1, 0, 2)),
    ("wmh17", "#.#....#", "#....#.#", (2, 1, 1, 2)),
    ("autopet", "#.#....#", "#....#.#", (2, 1, 1, 2)),
]


@pytest.mark.parametrize(("name", "reference", "prediction", "expected"), PAIRS)
def test_pairs_by_hand(name, reference, prediction, expected):
    case = lesions(drawn(reference), drawn(prediction), name)
    assert counts(case) == expected


def test_means_count_missed_and_false_lesions_as_the_worst():
    """Found 2 of 3 mm, with DSC 0.8 and HD95 1 mm; 3 mm missed, and 3 mm false.

    Of its 2 * 16 surfels, 4 of the reference's 16 have none within 0.5 mm.
    """
    reference, prediction = drawn("###.....###........"), drawn("##..............###")
    surfaces = Surfaces(tolerance=0.5, has_distances=True)
    case = lesions(reference, prediction, "brats23-met", surfaces=surfaces)

    values = {name: function(case) for name, function in METRICS.items()}

    assert values == {
        "lesion_dsc": pytest.approx(0.8 / 3),
        "lesion_nsd": pytest.approx(case.references[0].nsd / 3),
        "lesion_hd95": pytest.approx((1 + 2 * 374) / 3),
        "lesion_f1": 0.5,
        "lesion_recall": 0.5,
        "lesion_precision": 0.5,
        "lesion_count_difference": 0.0,
        "false_volume": 0.003,
        "missed_volume": 0.003,
        "absolute_volume_difference": 0.001,
    }


NOTHING, FULL = drawn("........"), drawn("#.###...")
BEST = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, None, 0.0]
"""Values without lesions, in the order of the metrics: nothing can be missed."""


@pytest.mark.parametrize(
    ("reference", "prediction", "expected"),
    [
        (NOTHING, NOTHING, BEST),
        (NOTHING, FULL, [0, 0, 374, 0, 1, 0, 2, 0.004, None, 0.004]),
        (FULL, NOTHING, [0, 0, 374, 0, 0, 1, 1, 0, 0.004, 0.004]),
    ],
    ids=["nothing", "only false", "only missed"],
)
def test_values_where_a_mask_is_empty(reference, prediction, expected):
    """Those of the reference are one when widened."""
    case = lesions(reference, prediction, "brats23-met", surfaces=SURFACES)
    assert [function(case) for function in METRICS.values()] == expected


@pytest.mark.parametrize("name", DEFINITIONS)
def test_equal_masks_have_the_best_values(name):
    """Also where references are joined, and where they are too small to count."""
    mask = np.pad(drawn("###..###.....#"), 4)
    case = lesions(mask, mask, name, (3.0, 3.0, 2.0), SURFACES)
    best = {m.name: m.best for m in LESION_METRICS if m.is_defined_by(case.definition)}
    assert {name: METRICS[name](case) for name in best} == best


def test_a_case_that_cannot_be_scored_is_no_better_than_one_of_missed_lesions():
    (metric,) = (m for m in LESION_METRICS if m.needs_hd95)
    assert metric.worst_of((9, 9, 9), SPACING) == 374
    assert metric.worst_of((300, 400, 1200), SPACING) == 1300


def test_recall_counts_references_and_precision_predictions():
    """Three of four are found by one of two: F1 is of 3/4 and of 1/2, that is 0.6."""
    reference, prediction = drawn("#.#.#..#...."), drawn("#####.....##")
    case = lesions(reference, prediction, "wmh17")
    values = [METRICS[f"lesion_{name}"](case) for name in ("recall", "precision", "f1")]
    assert values == [0.75, 0.5, 0.6]


def specks(random, shape):
    """Voxels, of which some are blocks, in a part of the grid."""
    mask = random.random(shape) < random.choice([0.02, 0.1, 0.3])
    for corner in random.integers(0, shape, size=(3, 3)).tolist():
        mask[tuple(slice(n, n + 3) for n in corner)] = True
    return mask


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", DEFINITIONS)
def test_random_masks_have_the_lesions_of_a_slow_twin(name, seed):
    random = np.random.default_rng(seed)
    shape, spacing = random.integers(3, 16, size=3), (2.0, 0.8, 0.5)
    reference, prediction = (specks(random, shape) for _ in range(2))

    case = lesions(reference, prediction, name, spacing, SURFACES)

    slow = Lesions(reference, prediction, spacing, DEFINITIONS[name])
    assert [lesion.voxels for lesion in case.references] == slow.sizes
    assert counts(case)[:3] == (slow.found, slow.missed, len(slow.false))
    assert [lesion.dsc for lesion in case.references] == pytest.approx(slow.dsc)
    assert sum(case.false) == sum(slow.false)


@pytest.mark.parametrize("slab", [1, 7, 100])
def test_slabs_change_no_component(slab, monkeypatch):
    monkeypatch.setattr("flare.evaluation.lesions.runs.SLAB", slab)
    mask = specks(np.random.default_rng(4), (9, 8, 10))
    pair = pair_of_masks(mask, mask, SPACING)
    runs, _ = runs_of(pair.masks, pair.box)
    for neighbours in (6, 18, 26):
        number, _ = components(runs, neighbours)
        assert number == components_of(mask, neighbours)[1]


def test_a_lesion_at_the_border_of_a_box_is_measured_as_elsewhere():
    reference = np.pad(drawn("###"), 4)
    cases = [
        lesions(mask, np.roll(mask, 1, axis=2), "brats23-met", surfaces=SURFACES)
        for mask in (reference, reference[4:-4, 4:-4, 4:-1])
    ]
    first, second = (case.references[0] for case in cases)
    assert (first.dsc, first.nsd, first.hd95) == (second.dsc, second.nsd, second.hd95)
    assert not math.isnan(first.hd95)


def test_a_prediction_of_specks_takes_hardly_any_memory_for_each():
    """2,600 false lesions: noise has millions, and one team's ends no other's."""
    prediction = np.zeros((26, 20, 40), dtype=np.bool_)
    prediction[::2, ::2, ::2] = True
    pair = pair_of_masks(np.zeros_like(prediction), prediction, SPACING)
    lesions_of(pair, DEFINITIONS["wmh17"])

    tracemalloc.start()
    case = lesions_of(pair, DEFINITIONS["wmh17"])
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert case.false == (1,) * 2600
    assert kept / 2600 < 50
