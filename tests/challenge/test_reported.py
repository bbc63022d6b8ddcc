"""FLARE 2025 and 2026: who reports each rule, and values of participants' scripts.

The scripts are not part of this project. They were run as they are, as programs of
their own, on the label maps of tests/builders/editions.py, on 22 November 2026, with
NumPy 2.4 (to which its old names Inf and NaN were given) and SciPy 1.17:

- PET: eval.py of HuaminWang/flare2025_task3 at c294b06, and eval_pet.py of
  xjiangmed/FLARE25-task3-LTUDA at 04a4d3a, where 4 is written as 13; both say the same
- MRI: eval.py of the same two; both say the same
- laptop: evaluation/DSC_NSD_Eval.py of LCJKwan/FLARE25-Task2-Harmonics at 9b11c41
- lesions: scripts/evaluation/score_cases.py of Nucleo-Research/omnilesion at 421d0b5
  with the package surface-distance 0.1
"""

import json
import re
import sys

import pytest

import flare
from flare.challenge.reading import (
    READ,
    ChallengeError,
    challenge_names,
    challenge_summary,
    challenge_text,
    read_challenge,
)
from flare.challenge.rules import RULES_NOTE
from flare.common.text import count, safe
from flare.results.metrics_json import metrics_json
from tests.builders import ROOT, editions, error_of, write_nifti

REPORTED = tuple(name for name in challenge_names() if read_challenge(name).reported)

VALUES = {
    "flare25-pet": """
    pet_absent dsc 1 0 0.8717 0
    pet_absent nsd 1 0 0.9176 0
    pet_far dsc 0.1789 1 0.8147 0
    pet_far nsd 0 1 1 0
    pet_liver_alone dsc 1 1 1 1
    pet_liver_alone nsd 1 1 1 1
    pet_rough dsc 0.9528 0.9548 0.9509 0.9548
    pet_rough nsd 0.9199 0.9585 0.9666 0.9585
    pet_shifted dsc 0.8548 0.8184 0.8364 0.801
    pet_shifted nsd 0.9566 0.8152 0.8428 0.9026
    """,
    "flare25-mri": """
    mri_few dsc 1 1 0.7235 0 1 0.6995 1 0 0.7235 1 1 0 1
    mri_few nsd 1 1 0.9066 0 1 0.8911 1 0 0.85 1 1 0 1
    mri_longer dsc 1 1 1 1 0.8757 0.8201 1 1 1 0.8201 1 1 1
    mri_longer nsd 1 1 1 1 0.9654 0.9516 1 1 1 0.9815 1 1 1
    mri_more dsc 0.9458 0.9615 0.6835 0 0.9527 0.6194 0.9458 0 0.6869 0.9565 0.9493 0
      0.9529
    mri_more nsd 1 1 0.9156 0 0.9875 0.862 0.986 0 0.8546 1 1 0 1
    mri_moved dsc 1 1 0.7235 1 1 0.6995 1 1 0.7235 1 1 0.6245 1
    mri_moved nsd 1 1 0.9066 1 1 0.8911 1 1 0.85 1 1 1 1
    """,
    "flare25-laptop": """
    mri_few dsc 1 1 0.7235 0 1 0.6995 1 0 0.7235 1 1 0 1
    mri_few nsd 1 1 0.941 0 1 0.9359 1 0 0.914 1 1 0 1
    mri_longer dsc 1 1 1 1 0.8757 0.8201 1 1 1 0.8201 1 1 1
    mri_longer nsd 1 1 1 1 0.9901 0.9833 1 1 1 0.9925 1 1 1
    mri_more dsc 0.9458 0.9615 0.6835 0 0.9527 0.6194 0.9458 0 0.6869 0.9565 0.9493 0
      0.9529
    mri_more nsd 1 1 0.9458 0 1 0.9377 0.9984 0 0.9202 1 1 0 1
    mri_moved dsc 1 1 0.7235 1 1 0.6995 1 1 0.7235 1 1 0.6245 1
    mri_moved nsd 1 1 0.941 1 1 0.9359 1 1 0.914 1 1 0.9956 1
    """,
    "flare26-pancancer": """
    lesion_far dsc 0.0571
    lesion_far nsd 0
    lesion_free_empty dsc 1
    lesion_free_empty nsd 1
    lesion_free_found dsc 0
    lesion_free_found nsd 0
    lesion_missed dsc 0
    lesion_missed nsd 0
    lesion_moved dsc 0.7253
    lesion_moved nsd 0.8873
    lesion_other_label dsc 0
    lesion_other_label nsd 0
    lesion_rough dsc 0.9504
    lesion_rough nsd 0.9799
    """,
}
"""What the scripts say: organs in the order of their labels."""

VALUES["flare25-pancancer"] = VALUES["flare26-pancancer"]
VALUES["flare24-lesion"] = VALUES["flare26-pancancer"]

PAIRS = {
    "flare25-pet": (editions.pet_pairs, editions.PET_SPACING),
    "flare25-mri": (editions.mri_pairs, editions.MRI_SPACING),
    "flare25-laptop": (editions.mri_pairs, editions.CT_SPACING),
    "flare25-pancancer": (editions.lesion_pairs, editions.CT_SPACING),
    "flare26-pancancer": (editions.lesion_pairs, editions.CT_SPACING),
    "flare24-lesion": (editions.lesion_pairs, editions.CT_SPACING),
}


def write_pairs(folder, name):
    pairs, spacing = PAIRS[name]
    for case, (reference, prediction) in pairs().items():
        for kind, labels in (("references", reference), ("predictions", prediction)):
            file = folder / kind / f"{case}.nii.gz"
            write_nifti(file, labels, spacing=spacing)
    return folder / "predictions", folder / "references"


def values_of(text):
    """By case and score, the values of a table above."""
    rows = re.findall(r"(\w+) (dsc|nsd)((?:\s+[\d.]+)+)", text)
    return {(case, score): list(map(float, own.split())) for case, score, own in rows}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_is_that_of_the_teams_own_script(tmp_path, name):
    results = flare.evaluate(*write_pairs(tmp_path, name), challenge=name)

    labels = {organ.name: organ.label for organ in read_challenge(name).organs}
    found = {}
    for case in results.cases:
        organs = sorted(case.organs, key=lambda organ: labels[organ.organ])
        found[case.case, "dsc"] = [organ.dsc for organ in organs]
        found[case.case, "nsd"] = [organ.nsd for organ in organs]
    assert found == values_of(VALUES[name])


# --- Who says so ------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTED)
def test_every_rule_of_scoring_has_a_source(name):
    challenge = read_challenge(name)

    keys = {key for entry in challenge.reported for key in entry.keys}
    organ_keys = {"organs.label", "organs.name", "organs.tolerance_mm"}
    if challenge.organs:
        assert keys >= set(READ) - {"npz", "organs", "metrics"}
        assert "organs" in keys or organ_keys <= keys
    assert ("answers" in keys) == bool(challenge.answers)
    assert challenge.not_known


@pytest.mark.parametrize("name", REPORTED)
def test_show_and_validate_tell_every_source(name):
    challenge = read_challenge(name)
    told, shown = challenge_summary(challenge), challenge_text(name)

    assert RULES_NOTE in told.lower()
    for entry in challenge.reported:
        assert f"  {entry.rule} ({count(entry.teams, 'team')}):\n" in told
        assert f'rule = "{entry.rule}"' in shown
        for link in entry.source:
            assert link in told
            assert link in shown
    for text in challenge.not_known:
        assert text in told
        assert text in shown


@pytest.mark.parametrize(
    "name", ["flare22", "flare24", "flare24-lesion", "flare25-pet"]
)
def test_results_say_where_nobody_has_confirmed_the_rules(tmp_path, name):
    """By official rules, they have no note."""
    pairs = "flare25-pet" if name == "flare25-pet" else "flare25-pancancer"

    results = flare.evaluate(*write_pairs(tmp_path, pairs), challenge=name)

    note = RULES_NOTE if name == "flare25-pet" else ""
    assert results.provenance.rules_note == note
    content = json.loads(metrics_json(results))
    assert content["evaluation"].get("rules_note", "") == note
    assert not any(key.startswith("npz") for key in results.provenance.rules)
    counted = [key for key in content["aggregates"] if "_free_" in key]
    assert bool(counted) == (name == "flare24-lesion")


# --- Files that extend others -----------------------------------------------------


def test_a_file_replaces_values_and_lists_and_adds_to_what_is_reported(read):
    base = read_challenge("flare25-pet")

    mine = read(
        """
        extends = "flare25-pet"
        name = "Mine"
        not_known = ["the weather"]
        [grid]
        tolerance_mm = 2
        [[organs]]
        label = 9
        name = "bladder"
        tolerance_mm = 4
        [[reported]]
        rule = "A bladder"
        source = ["https://example.org/bladder"]
        teams = 1
        """
    )

    assert (mine.key, mine.name) == ("mine", "Mine")
    assert mine.labels_text == "0 background, 9 bladder"
    assert (mine.grid.tolerance_mm, mine.grid.compare) == (2, base.grid.compare)
    assert mine.smallest_dsc_for_nsd == 0.2
    assert mine.reported[:-1] == base.reported
    assert mine.not_known == (*base.not_known, "the weather")


def test_the_checksum_is_that_of_all_files(read):
    """`printf 'extends = "flare24"' | cat - flare24.toml | sha256sum`, by hashlib."""
    import hashlib

    base = (ROOT / "flare/challenge/editions/flare24.toml").read_bytes()

    found = read('extends = "flare24"').checksum

    assert found == hashlib.sha256(b'extends = "flare24"' + base).hexdigest()


def test_a_file_that_leads_back_to_itself_is_refused(monkeypatch, tmp_path):
    """As one of your own that an image has under the name of what it extends."""
    (tmp_path / "flare24.toml").write_text('extends = "flare24"')
    reading = sys.modules["flare.challenge.reading"]
    monkeypatch.setattr(reading, "EDITIONS", tmp_path)

    error = error_of(ChallengeError, read_challenge, "flare24")

    assert error.problem == "extends leads back to flare24.toml"
    assert safe("flare24") in str(error)
