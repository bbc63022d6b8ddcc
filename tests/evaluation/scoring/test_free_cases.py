"""Cases without a lesion: how many there are, and how many were left empty.

The seven pairs of tests/builders/editions.py: two references have no lesion,
lesion_free_empty and lesion_free_found; the prediction of the first is empty.
"""

import dataclasses
import multiprocessing

import pytest

import flare
from flare.evaluation.errors import GroundTruthError
from flare.evaluation.many.cases import KeptScores
from flare.evaluation.scoring.case import Attempt
from flare.evaluation.submission.match import CasePair
from tests.builders import editions, read_metrics, run_evaluate, write_nifti
from tests.builders.schemas import problems


@pytest.fixture
def folders(tmp_path):
    for case, (reference, prediction) in editions.lesion_pairs().items():
        write_nifti(tmp_path / "predictions" / f"{case}.nii.gz", prediction)
        write_nifti(tmp_path / "references" / f"{case}.nii.gz", reference)
    return tmp_path / "predictions", tmp_path / "references"


def counts(results):
    (found,) = results.free_cases
    return found.organ, found.cases, found.left_empty


@pytest.mark.slow
def test_metrics_json_has_both_numbers_beside_the_five_of_each_metric(folders, output):
    """They are whole, whatever is rounded."""
    run = run_evaluate(
        *(*folders, output, "--challenge", "flare24-lesion", "--decimals", "2")
    )

    assert (run.returncode, run.stderr) == (0, b"")
    assert b"lesion: 1 of 2 cases without it were left empty" in run.stdout
    content = read_metrics(output)
    assert problems(content, "metrics") == []
    aggregates = content["aggregates"]
    assert list(aggregates)[-2:] == ["lesion_free_cases", "lesion_free_left_empty"]
    assert list(map(repr, aggregates.values()))[-2:] == ["2", "1"]
    assert len(aggregates) == 4 * 5 + 2
    assert aggregates["dsc_mean"] == 0.39  # 2.7328 / 7


def test_a_case_that_fails_is_counted_and_not_left_empty(folders):
    """Or else whoever hands in nothing would have left all empty."""
    (folders[0] / "lesion_free_empty.nii.gz").unlink()
    (folders[0] / "lesion_missed.nii.gz").write_bytes(b"\x1f\x8b")

    results = flare.evaluate(
        *folders, challenge="flare26-pancancer", on_bad_case="worst"
    )

    assert counts(results) == ("lesion", 2, 0)


def test_another_label_is_not_empty_where_it_scores_0(folders):
    """In a scan without a lesion, a label of 2 scores 0: nothing was left empty."""
    other = editions.drawn({2: ((9, 15, 15), (3, 6, 6))})
    write_nifti(folders[0] / "lesion_free_empty.nii.gz", other)

    results = flare.evaluate(*folders, challenge="flare26-pancancer")
    ignored = flare.evaluate(
        *folders, challenge="flare26-pancancer", unknown_labels="ignore"
    )

    assert counts(results) == ("lesion", 2, 0)
    assert counts(ignored) == ("lesion", 2, 1)


def test_a_reference_that_is_read_for_that_alone_has_to_be_right(folders):
    (folders[0] / "lesion_moved.nii.gz").unlink()
    broken = (folders[1] / "lesion_moved.nii.gz").read_bytes()[:-9]
    (folders[1] / "lesion_moved.nii.gz").write_bytes(broken)

    with pytest.raises(GroundTruthError, match="lesion_moved"):
        flare.evaluate(*folders, challenge="flare24-lesion", on_bad_case="worst")


def test_workers_have_ended_when_a_reference_is_refused(folders):
    """So that nothing of theirs stands behind the message on stderr."""
    reference, _ = editions.lesion_pairs()["lesion_far"]
    write_nifti(folders[1] / "lesion_far.nii.gz", 9 * reference)

    with pytest.raises(GroundTruthError, match=r"\[G02\]"):
        flare.evaluate(*folders, challenge="flare24-lesion", workers=2)

    assert multiprocessing.active_children() == []


def test_what_is_kept_of_a_case_knows_it(tmp_path, folders):
    results = flare.evaluate(*folders, challenge="flare24-lesion")
    scores = {score.case: score for score in results.cases}
    pair = CasePair(case="lesion_free_empty", reference=None, prediction=None)
    attempt = Attempt(pair=pair, score=scores[pair.case], problem=None, seconds=0.0)

    with KeptScores(tmp_path / "scores.sqlite") as kept:
        kept.keep([("key", attempt)])
        found = kept.find(pair, "key", check_only=False)

    assert found.score == attempt.score
    assert (found.score.free_of, found.score.left_empty) == (("lesion",), ("lesion",))


def test_several_organs_are_told_apart(folders):
    challenge = flare.read_challenge("flare22")
    organs = tuple(
        dataclasses.replace(organ, free_cases=organ.name in ("liver", "spleen"))
        for organ in challenge.organs
    )
    challenge = dataclasses.replace(challenge, organs=organs)

    results = flare.evaluate(*folders, challenge=challenge)

    assert [each.text for each in results.free_cases] == [
        "liver: 1 of 2 cases without it were left empty",
        # No case has a spleen, in no label map.
        "spleen: 7 of 7 cases without it were left empty",
    ]
