"""What a measurement is made of, and one line for whatever is missing."""

import os

import pytest

from flare.challenge.formats import FileNames
from flare.challenge.reading import read_challenge
from flare.common.errors import FlareError
from flare.evaluation.check import find_images
from flare.measuring.exchange import lay_out
from flare.measuring.lanes.dispatch import digest_of
from flare.measuring.measure import check_cases, find_archives
from flare.measuring.options import FLARE, Contract
from flare.measuring.trial import case_of, find_cases
from tests.builders import (
    case_names,
    error_of,
    organ_boxes,
    run_flare,
    write_cases,
    write_file,
)
from tests.builders.archives import save
from tests.builders.errors import told

FLARE21 = read_challenge("flare21")


@pytest.fixture
def images(tmp_path):
    names = [f"{case}_0000" for case in case_names(2)]
    return write_cases(tmp_path / "images", names)


def test_an_image_gives_its_case_a_name(images):
    assert [case.case for case in find_images(images)] == case_names(2)
    image = images / "validation_002_0000.nii.gz"
    assert case_of(image, FLARE21, FLARE).case == "validation_002"


SEQUENCES = ("b_0000", "b_0001", "b1_0000", "b1_0001")
"""Images of two cases, each with two channels."""


@pytest.fixture
def sequences(tmp_path):
    return write_cases(tmp_path / "sequences", SEQUENCES)


def stems(case):
    return [image.file_name.partition(".")[0] for image in (case, *case.channels)]


def test_the_channels_of_a_case_belong_together(sequences, caplog):
    """Both in the input of its container, and whichever is asked for.

    The log tells, in case somebody's cases are called like channels.
    """
    caplog.set_level("INFO")
    cases = {case.case: case for case in find_cases(sequences, FLARE21, FLARE)}

    assert stems(cases["b"]) == ["b_0000", "b_0001"]
    assert stems(cases["b1"]) == ["b1_0000", "b1_0001"]
    assert caplog.messages == [
        "2 cases with several images, such as b1: b1_0000.nii.gz, b1_0001.nii.gz"
    ]
    second = sequences / "b_0001.nii.gz"
    assert case_of(second, FLARE21, FLARE) == cases["b"]


def test_all_channels_are_laid_out_and_count_in_the_digest(sequences, tmp_path):
    cases = find_cases(sequences, FLARE21, FLARE)
    before = digest_of(cases)
    second = sequences / "b_0001.nii.gz"
    write_cases(sequences, ["b_0001"], labels=organ_boxes(shift=1))
    (tmp_path / "inputs").mkdir()

    folder = lay_out(cases[-1], tmp_path / "inputs", FLARE)

    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        "b_0000.nii.gz": (sequences / "b_0000.nii.gz").read_bytes(),
        "b_0001.nii.gz": second.read_bytes(),
    }
    assert digest_of(cases) != before
    write_cases(sequences, ["b_0001"])
    assert digest_of(find_cases(sequences, FLARE21, FLARE)) == before


def test_names_in_a_challenge_file_tell_channels(tmp_path):
    names = FileNames(image="mr{channel}-{case}")
    folder = write_cases(tmp_path / "x", ["mr0000-P_0001", "mr0003-P_0001"])

    (case,) = find_images(folder, names)

    assert (case.case, stems(case)) == ("P_0001", ["mr0000-P_0001", "mr0003-P_0001"])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda f: (f / "b_0001.nii.gz").unlink(),
            "case b has b_0000.nii.gz alone, and other cases have channels 0000, 0001",
        ),
        (lambda f: write_cases(f, ["c"]), "case c has c.nii.gz alone"),
        (lambda f: write_cases(f, ["c_0002"]), "case c has c_0002.nii.gz alone"),
        (
            lambda f: write_cases(f / "more", ["b_0001"]),
            "b_0001.nii.gz, more/b_0001.nii.gz: 2 files for case b",
        ),
    ],
    ids=["lacks one", "none", "another", "twice"],
)
def test_cases_have_the_same_channels_once(sequences, change, problem):
    change(sequences)

    assert problem in str(error_of(FlareError, find_cases, sequences, FLARE21, FLARE))


def test_an_algorithm_gets_one_image_of_a_case(sequences):
    contract = Contract(
        contract="algorithm",
        input_socket=("ct", "images/ct"),
        output_path="images/organs",
    )

    with pytest.raises(FlareError, match="an algorithm gets one image of a case"):
        find_cases(sequences, FLARE21, contract)


def test_the_archives_of_a_folder_are_sorted_by_name(tmp_path):
    for name in ("b.tar.gz", "a.tar.gz", "notes.txt"):
        (tmp_path / name).write_text("")

    assert [file.name for file in find_archives(tmp_path)] == ["a.tar.gz", "b.tar.gz"]
    assert find_archives(tmp_path / "a.tar.gz") == (tmp_path / "a.tar.gz",)


def test_what_is_missing_is_said_in_one_line(tmp_path, images):
    labels = write_cases(tmp_path / "labels", case_names(3))
    cases = [f"{file.case}_seg" for file in find_images(images)]
    ending = write_cases(tmp_path / "ending", cases)
    (tmp_path / "empty").mkdir()
    write_file(tmp_path / "broken" / "ct.nii.gz", b"no image")

    def checked(references):
        return check_cases(find_images(images), references, FLARE21)

    for call, problem in (
        (lambda: find_images(tmp_path / "no"), "the folder cannot be read"),
        (lambda: find_images(tmp_path / "empty"), "there is no label map in their"),
        (lambda: find_images(tmp_path / "broken"), "ct.nii.gz: "),
        (lambda: find_archives(tmp_path / "empty"), "there is no TEAMNAME.tar.gz"),
        (lambda: case_of(images / "no.nii.gz", FLARE21, FLARE), "no such image"),
        (lambda: checked(tmp_path / "no"), "no such folder"),
        (lambda: checked(labels), "references without image: validation_003"),
        (
            lambda: checked(ending),
            "is no part of the name, write into a challenge file (flare challenge show"
            ' flare21 > mine.toml): [names], reference = "{case}_seg" (each a line',
        ),
    ):
        assert problem in str(error_of(FlareError, call))


def test_without_docker_there_is_one_line(tmp_path, images):
    path = tmp_path / "path"
    path.mkdir()
    environment = os.environ | {"PATH": str(path)}
    arguments = (save(tmp_path), "--images", images, "--output", tmp_path / "results")

    run = run_flare("measure", *arguments, "--gpu", "none", env=environment)

    assert (run.returncode, told(run.stderr)) == (1, ("H05", "docker"))
