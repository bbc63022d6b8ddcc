"""What a measurement is made of, and one line for whatever is missing."""

import os

import pytest

from flare.challenge.reading import read_challenge
from flare.common.errors import FlareError
from flare.evaluation.check import find_images
from flare.measuring.measure import check_cases, find_archives
from flare.measuring.trial import case_of
from tests.builders import case_names, run_flare, write_cases
from tests.builders.archives import save
from tests.builders.errors import told

FLARE21 = read_challenge("flare21")


@pytest.fixture
def images(tmp_path):
    """Images of two cases."""
    names = [f"{case}_0000" for case in case_names(2)]
    return write_cases(tmp_path / "images", names)


def test_an_image_gives_its_case_a_name(images):
    assert [case.case for case in find_images(images)] == case_names(2)
    image = images / "validation_002_0000.nii.gz"
    assert case_of(image, FLARE21).case == "validation_002"


def test_the_archives_of_a_folder_are_sorted_by_name(tmp_path):
    for name in ("b.tar.gz", "a.tar.gz", "notes.txt"):
        (tmp_path / name).write_text("")

    assert [file.name for file in find_archives(tmp_path)] == ["a.tar.gz", "b.tar.gz"]
    assert find_archives(tmp_path / "a.tar.gz") == (tmp_path / "a.tar.gz",)


def test_what_is_missing_is_said_in_one_line(tmp_path, images):
    labels = write_cases(tmp_path / "labels", case_names(3))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ct.nii.gz").write_bytes(b"no image")
    for call, problem in (
        (lambda: find_images(tmp_path / "no"), "the folder cannot be read"),
        (lambda: find_images(tmp_path / "empty"), "there is no label map in their"),
        (lambda: find_images(tmp_path / "broken"), "ct.nii.gz: "),
        (lambda: find_archives(tmp_path / "empty"), "there is no TEAMNAME.tar.gz"),
        (
            lambda: case_of(images / "no.nii.gz", FLARE21),
            "there is no such image",
        ),
        (
            lambda: check_cases(find_images(images), tmp_path / "no", FLARE21),
            "no such folder",
        ),
        (
            lambda: check_cases(find_images(images), labels, FLARE21),
            "validation_003: there is an image or a reference, but not both",
        ),
    ):
        with pytest.raises(FlareError) as caught:
            call()
        assert problem in str(caught.value)


def run_measure(*arguments, **options):
    run = run_flare("measure", *arguments, **options)
    return run.returncode, run.stderr


def test_without_docker_there_is_one_line(tmp_path, images):
    path = tmp_path / "path"
    path.mkdir()
    environment = os.environ | {"PATH": str(path)}
    arguments = (save(tmp_path), "--images", images, "--output", tmp_path / "results")

    status, stderr = run_measure(*arguments, "--gpu", "none", env=environment)

    assert (status, told(stderr)) == (1, ("H05", "docker"))
