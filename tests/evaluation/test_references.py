"""References: what evaluation refuses, `check-references` refuses before it."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

import flare
from flare.challenge.formats import FileNames
from flare.challenge.organs import AbsentOrgans
from flare.common.errors import OrganiserError
from flare.evaluation.check import check_references
from tests.builders import (
    AFFINE,
    case_names,
    error_of,
    metaimage_bytes,
    nifti_bytes,
    nrrd_bytes,
    organ_boxes,
    run_flare,
    write_cases,
    write_gzip,
    write_nifti,
)
from tests.builders.answers import answer_rules, answers_challenge, write_folders
from tests.builders.errors import told

FLARE21 = flare.read_challenge("flare21")
NAMED = replace(FLARE21, names=FileNames(reference="{case}_gt", prediction="p_{case}"))
TWO = "validation_002"


def rewritten(**changes):
    """The second reference, with other labels or another header."""
    content = {"labels": organ_boxes(), **changes}
    return lambda folder: write_nifti(folder / f"{TWO}.nii.gz", **content)


def replaced(content, name=f"{TWO}.nii.gz"):
    """The second reference, as other bytes under another name."""

    def replace_file(folder):
        (folder / f"{TWO}.nii.gz").unlink()
        (folder / name).write_bytes(content)

    return replace_file


def added(*names):
    return lambda folder: write_cases(folder, names)


def mha(spacing):
    return metaimage_bytes(organ_boxes(), ElementSpacing=spacing)


GOOD = nifti_bytes(organ_boxes())
UNPLACED = dict.fromkeys(("space", "space directions", "space origin"))

F = f"{TWO}.nii.gz: "

REFERENCES = {
    f"{F}it has labels that the challenge does not know": rewritten(
        labels=organ_boxes() * 2
    ),
    f"{F}voxels are not whole numbers (found 0.5)": rewritten(
        labels=organ_boxes() / 2, dtype="<f4"
    ),
    f"{F}its header has a voxel size of 0": rewritten(spacing=(2.5, 0.0, 0.8)),
    f"{TWO}.mha: its header has a voxel size of 0": replaced(
        mha("0.8 0 2.5"), f"{TWO}.mha"
    ),
    f"{TWO}.mha: its header has a negative voxel size": replaced(
        mha("0.8 -0.8 2.5"), f"{TWO}.mha"
    ),
    f"{TWO}.nrrd: its header has ends of axes, and no spacings": replaced(
        nrrd_bytes(organ_boxes(), axis_mins="0 0 0", **UNPLACED), f"{TWO}.nrrd"
    ),
    f"{F}it has 4 dimensions (20 x 16 x 10 x 5), expected 3": rewritten(
        labels=np.zeros((5, 10, 16, 20)), dtype="<f4"
    ),
    f"{F}its header has positions that are not finite": rewritten(
        affine=AFFINE * np.nan
    ),
    f"{F}the file is empty": replaced(b""),
    f"{F}it holds fewer voxels than its header says": replaced(GOOD[:-1]),
    f"{F}it holds more voxels than its header says": replaced(GOOD + b"\0"),
    f"{F}it is a bzip2 file, expected a NIfTI, MetaImage or NRRD file": replaced(
        b"BZh91AY&SY"
    ),
    f"{TWO}.mhd: it is half of an image, whose header and voxels are two files":
        replaced(GOOD, f"{TWO}.mhd"),
    f"a/{TWO}.nii.gz, {TWO}.nii.gz: 2 files for case {TWO}": added(f"a/{TWO}"),
    "demo_001.nii.gz, demo_002.nii.gz: the demonstration set lies beside other label"
    " maps": added("demo_001", "demo_002"),
    "there is no label map in their folder": lambda folder: [
        file.unlink() for file in list(folder.iterdir())
    ],
}  # fmt: skip
"""What spoils references of three cases, by what is said of them: all are G02."""

NAMES = {
    "validation_004.nii.gz: not called {case}_gt, as [names] asks": added(
        "validation_004"
    ),
    "a/validation_001_gt.nii.gz, validation_001_gt.nii.gz: 2 files for case"
    " validation_001": added("a/validation_001_gt"),
    "p_validation_001: a file of this case may be of validation_001, too": added(
        "p_validation_001_gt"
    ),
    "validation_001_gt: a file of this case may be of validation_001, too": added(
        "validation_001_gt_gt"
    ),
}
"""The same where a reference is called CASE_gt, and a prediction p_CASE."""


def refusal(look):
    """What an organiser reads, but for what to do."""
    error = error_of(OrganiserError, look)
    assert told(error)[0] == "G02"
    return error.finding


@pytest.mark.parametrize("problem", [*REFERENCES, *NAMES])
def test_what_evaluation_refuses_in_references_the_gate_refuses(
    predictions, ground_truth, problem
):
    challenge = FLARE21
    if problem in NAMES:
        challenge = NAMED
        for file in list(ground_truth.iterdir()):
            file.rename(ground_truth / file.name.replace(".", "_gt.", 1))
    assert "can be used" in check_references(ground_truth, challenge)
    (REFERENCES | NAMES)[problem](ground_truth)

    found = refusal(
        lambda: flare.evaluate(predictions, ground_truth, challenge=challenge)
    )

    assert found == f"Reference labels: {problem}"
    assert found == refusal(lambda: check_references(ground_truth, challenge))


UNDEFINED = " of task is undefined for these references"

ANSWERS = [
    ("choice", "name,gt\na,A\nb,C\n", "line 3 (b: C): not one of A, B"),
    ("choice", "name,gt\na,\n", "line 2 (a: nothing): empty"),
    ("choice", "name,gt\na,A\na,B\n", "line 3: a second answer for case a"),
    ("choice", "name;gt\na;A\n", "its columns are separated by semicolons (name;gt),"
     " expected commas: save it by frame.to_csv(file, index=False)"),
    ("choice", "name,label\na,A\n", "it has no column gt; it has label"),
    ("choice", "name,gt\n", "it has no row"),
    ("choice", "", "it has no row"),
    ("choice", None, "it is not there"),
    ("binary", "name,gt\na,1\nb,1\n", UNDEFINED),
    ("classes", "name,gt\na,1\nb,1\n", UNDEFINED),
    ("labels", "name,cyst,stone,ascites\na,0,0,0\nb,0,0,0\n", UNDEFINED),
    ("label_set", "name,gt\na,\nb,\n", UNDEFINED),
]  # fmt: skip
"""The same of a table of answers: its kind and its text."""

CELLS = {"choice": "A", "binary": "1", "classes": '"[1,0,0]"', "labels": "0,0,0",
         "label_set": ""}  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "problem"), ANSWERS)
def test_what_evaluation_refuses_in_answers_the_gate_refuses(
    tmp_path, kind, text, problem
):
    changes = {"classes": ["A", "B"]} if kind == "choice" else {}
    if kind.startswith("label"):
        changes = {"empty": "left_out"}
    challenge = answers_challenge(answer_rules(kind, **changes))
    columns = "cyst,stone,ascites" if kind == "labels" else "prediction"
    table = f"name,{columns}\na,{CELLS[kind]}\nb,{CELLS[kind]}\n"
    predictions, references = write_folders(
        tmp_path, {"predictions/prediction.csv": table, "references/note.txt": ""}
    )
    if text is not None:
        (references / "reference.csv").write_text(text)

    found = refusal(
        lambda: flare.evaluate(predictions, references, challenge=challenge)
    )

    assert found == refusal(lambda: check_references(references, challenge))
    assert found.startswith("Reference labels: reference.csv: ")
    assert problem in found


def test_an_answer_without_a_label_map_is_refused_by_the_gate(
    predictions, ground_truth
):
    both = replace(FLARE21, answers=(answer_rules("binary"),))
    rows = ["stray,0\n", *(f"{case},1\n" for case in case_names(3))]
    (predictions / "prediction.csv").write_text(f"name,prediction\n{''.join(rows)}")
    (ground_truth / "reference.csv").write_text(f"name,gt\n{''.join(rows)}")

    found = refusal(lambda: flare.evaluate(predictions, ground_truth, challenge=both))

    assert found.endswith("reference.csv: no label map is called stray")
    assert found == refusal(lambda: check_references(ground_truth, both))


# --- What is taken, and may be wrong ----------------------------------------------

BOTH_SIZES = (
    "its header has two voxel sizes: 0.8 x 0.8 x 5 mm (pixdim) counts in scores,"
    " 0.8 x 0.8 x 2.5 mm (sform or qform) only in where it lies"
)
LOST = (
    "its header looks lost: voxel size 1, origin 0; 1 mm counts, unless you write it"
    " with the header of its CT"
)


def with_units(code):
    content = bytearray(GOOD)
    content[123] = code
    return bytes(content)


MICROMETRES = "every number is taken for mm; write it in mm"
DOUBTS = {
    "two sizes": ("x.nii.gz", nifti_bytes(organ_boxes(), spacing=(5, 0.8, 0.8)),
                  BOTH_SIZES),
    "lost by nibabel": ("x.nii.gz", nifti_bytes(organ_boxes(), affine=np.eye(4),
                        spacing=(1, 1, 1)), LOST),
    "lost by SimpleITK": ("x.mha", metaimage_bytes(organ_boxes(), Offset="0 0 0",
                          ElementSpacing="1 1 1"), LOST),
    "micrometres": ("x.nii.gz", with_units(3), "its header says micrometres: "
                    + MICROMETRES),
    "metres": ("x.nii.gz", with_units(1 + 8), "its header says metres: " + MICROMETRES),
    "um of .nrrd": ("x.nrrd", nrrd_bytes(organ_boxes(), space_units='"um" "um" "um"'),
                    "its header says micrometres: " + MICROMETRES),
    "cm of .mha": ("x.mha", metaimage_bytes(organ_boxes(), DistanceUnits="cm"),
                   "its header says centimetres: " + MICROMETRES),
    "mm": ("x.nii.gz", with_units(2), ""),
    "sizes that were rounded": ("x.nii.gz", nifti_bytes(organ_boxes(),
                                spacing=(2.5, 0.8, 0.8004)), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBTS)
def test_a_doubtful_header_is_told_with_what_counts(tmp_path, name):
    file, content, doubt = DOUBTS[name]
    (tmp_path / file).write_bytes(content)
    (tmp_path / file.replace("x", "y", 1)).write_bytes(content)
    other = file.replace("x", "y", 1)

    lines = check_references(tmp_path, FLARE21).splitlines()

    expected = [f"{file}: {doubt}. Likewise {other}."] if doubt else []
    assert [line for line in lines if line.startswith(file)] == expected


def test_a_unit_is_told_where_a_prediction_lies_elsewhere(predictions, ground_truth):
    """A header in micrometres, whose numbers are a thousand times as large."""
    affine = AFFINE * 1000
    labels = {"affine": affine, "spacing": (2500, 800, 800)}
    content = bytearray(nifti_bytes(organ_boxes(), **labels))
    content[123] = 3
    write_gzip(predictions / f"{TWO}.nii.gz", bytes(content))

    error = error_of(flare.SubmissionError, flare.evaluate, predictions, ground_truth)

    assert told(error) == ("F08", f"{TWO}.nii.gz")
    assert f"; its header says micrometres: {MICROMETRES}. " in str(error)


# --- What is told of organs ---------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "metrics", "gaps"),
    [
        ("in_both", "dsc", "that can be dsc_spleen, dsc_pancreas; ranked: none"),
        ("in_prediction", "dsc", "that can be dsc_liver; ranked: none"),
        ("in_both in_reference in_prediction", "dsc", "that can be dsc, dsc_liver,"
         " dsc_kidney, dsc_spleen, dsc_pancreas; ranked: dsc"),
        ("", "dsc missed_volume", "that can be missed_volume_spleen,"
         " missed_volume_pancreas; ranked: none.\nColumns for no public board, as they"
         " can be of one case, and tell of its reference: missed_volume_kidney,"
         " missed_volume_spleen, missed_volume_pancreas"),
        ("in_both in_reference", "false_volume dsc", "that can be dsc_spleen,"
         " dsc_pancreas; ranked: none"),
        ("", "dsc", ""),
        ("in_both", "dsc nsd", "each column has a value"),
    ],
)  # fmt: skip
def test_columns_that_can_be_empty_are_named(tmp_path, rules, metrics, gaps):
    """A kidney of one voxel; where NSD is scored, spleen and pancreas are not."""
    labels, spacing = np.where(organ_boxes() == 1, 1, 0), (0.4, 0.4, 0.4)
    write_nifti(tmp_path / "a.nii.gz", labels, spacing=spacing)
    labels[0, 0, 0] = 2
    write_nifti(tmp_path / "b.nii.gz", labels, spacing=spacing)
    organs = FLARE21.organs[: 2 if "nsd" in metrics else 4]
    challenge = replace(
        FLARE21,
        organs=tuple(replace(organ, lesions="autopet") for organ in organs),
        metrics=tuple(metrics.split()),
        absent_organs=AbsentOrgans(**dict.fromkeys(rules.split(), "left_out")),
    )

    text = check_references(tmp_path, challenge)

    assert "  1 of 2  0.064 mm3  0.064 mm3  0.064 mm3\n" in text
    assert text.partition("With these references, ")[2] == (gaps and f"{gaps}.")


# --- What the cases are called -----------------------------------------------------


@pytest.mark.parametrize("ending", ["_seg", "-mask", "_GT", ".label"])
def test_cases_are_named_and_the_line_that_ends_otherwise(tmp_path, ending):
    write_cases(tmp_path / "labels", [f"{case}{ending}" for case in case_names(2)])

    run = run_flare("check-references", tmp_path / "labels")

    first, second = (f"{case}{ending}" for case in case_names(2))
    lines = run.stdout.splitlines()
    assert lines[-4:-2] == [
        f"Cases: {first}, {second} (submitted as {first}.nii.gz)",
        f"If {ending} is no part of the name, write into a challenge file"
        " (flare challenge show flare21 > mine.toml):",
    ]
    names = {"reference": f"{{case}}{ending}"}
    assert tomllib.loads("\n".join(lines[-2:])) == {"names": names}
    mine = tmp_path / "mine.toml"
    mine.write_text(run_flare("challenge", "show", "flare21").stdout
                    + "\n".join(["", *lines[-2:], ""]))  # fmt: skip
    run = run_flare("check-references", tmp_path / "labels", "--challenge", mine)
    assert run.stdout.splitlines()[-1] == (
        "Cases: validation_001, validation_002 (submitted as validation_001.nii.gz)"
    )


def test_images_beside_labels_are_named(tmp_path):
    """As in a folder for each case."""
    for case in case_names(2):
        write_cases(tmp_path / case, [f"{case}_seg", f"{case}_0000"])
    challenge = replace(FLARE21, names=FileNames(reference="{case}_seg"))

    error = error_of(OrganiserError, check_references, tmp_path, challenge)

    first, second = (f"{case}/{case}_0000.nii.gz" for case in case_names(2))
    assert error.remedy.startswith(
        f"Give a folder without images ({first}, {second}). Mend it"
    )
