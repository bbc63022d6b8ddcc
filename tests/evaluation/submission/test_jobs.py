"""Algorithm submissions: predictions.json as the platform writes it, and otherwise."""

import json
import logging
import os
import re
import shutil
from pathlib import Path

import pytest

import flare
from flare.challenge.rules import AlgorithmRules
from flare.evaluation.errors import JobsFileError
from flare.evaluation.submission.jobs import read_sockets
from flare.results.metrics_json import metrics_json
from tests.builders import (
    ROOT,
    case_names,
    error_of,
    metaimage_bytes,
    organ_boxes,
    write_cases,
)
from tests.builders.errors import told
from tests.builders.jobs import job, value, write_jobs

FLARE21 = flare.read_challenge("flare21")


@pytest.fixture
def jobs():
    return [job(f"pk{n}", f"{name}.mha") for n, name in enumerate(case_names(3))]


def evaluate(folder, ground_truth, **rules):
    rules = {"hide_cases": False, **rules}
    challenge = flare.Challenge(
        key="mine",
        name="Mine",
        checksum="",
        organs=FLARE21.organs,
        algorithm=AlgorithmRules(**rules),
    )
    return flare.evaluate(folder, ground_truth, challenge=challenge)


def refusal(folder, ground_truth, **rules):
    return error_of(flare.FlareError, evaluate, folder, ground_truth, **rules)


# --- Good submissions -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("key", ["socket", "interface"])
def test_jobs_score_as_the_folder_of_their_outputs_does(tmp_path, key):
    """The bundled submission, as an algorithm would have made it, in another order."""
    import SimpleITK as sitk

    source = ROOT / "examples" / "predictions"
    names = sorted(file.name.removesuffix(".nii.gz") for file in source.iterdir())
    found = [job(f"pk-{name}", f"{name}_0000.nii.gz", key=key) for name in names]
    folder = write_jobs(tmp_path, found[::2] + found[1::2])
    for name in names:
        image = sitk.ReadImage(source / f"{name}.nii.gz")
        (where,) = folder.glob(f"pk-{name}/output/images/organs")
        sitk.WriteImage(image, where / f"pk-{name}-out.mha", useCompression=True)

    run, expected = (
        json.loads(metrics_json(flare.evaluate(each, ROOT / "ground-truth")))["case"]
        for each in (folder, source)
    )

    assert list(run.pop("alg_fname").values()) == [f"pk-{n}-out.mha" for n in names]
    del expected["alg_fname"]
    assert run == expected


@pytest.mark.parametrize(
    ("image", "case"),
    [
        ("case_1", "case_1"),
        ("case_1.mha", "case_1"),
        ("case_1.nii.gz", "case_1"),
        ("case_1_0000.nii.gz", "case_1"),
        ("case_1_0000", "case_1"),
        ("case_1.nii.gz.mha", "case_1"),
        ("case_1_0000.tif", "case_1"),
        # The exact name comes first.
        ("case_2_0000.mha", "case_2_0000"),
        ("case_2.mha", "case_2"),
        ("case_3.v1.mha", "case_3.v1"),
    ],
)
def test_the_name_of_the_image_says_which_case_it_is(tmp_path, image, case):
    names = ["case_1", "case_2", "case_2_0000", "case_3.v1"]
    ground_truth = write_cases(tmp_path / "ground-truth", names)
    folder = write_jobs(tmp_path / "input", [job("pk", image)])

    error = error_of(flare.SubmissionError, evaluate, folder, ground_truth)

    assert error.missing == tuple(f"{n}.nii.gz" for n in names if n != case)


def test_the_challenge_names_one_of_several_images(tmp_path, ground_truth, jobs):
    for item in jobs:
        item["inputs"].insert(0, value("mask", "images/mask", "something else"))
        item["outputs"].insert(0, value("heat", "images/heat", "heat"))
    folder = write_jobs(tmp_path / "input", jobs)

    results = evaluate(folder, ground_truth, input="ct-image", output="organs")

    assert [case.dsc for case in results.cases] == [1, 1, 1]
    for rules, slugs in (
        ({"output": "organs"}, "ct-image, mask"),
        ({"input": "ct-image", "output": "liver"}, "heat, organs"),
        ({"input": "mri"}, "ct-image, mask"),
    ):
        error = refusal(folder, ground_truth, **rules)
        assert told(error) == ("G01", "mine.toml")
        assert error.problem.endswith(f"of those that every job has: {slugs}")


def test_of_several_interfaces_each_has_one_image(tmp_path, ground_truth, jobs):
    """Jobs of one phase on CTs and on MRIs."""
    jobs[1]["inputs"][1]["interface"]["slug"] = "mr-image"
    folder = write_jobs(tmp_path / "input", jobs)

    assert [case.dsc for case in evaluate(folder, ground_truth).cases] == [1, 1, 1]
    error = refusal(folder, ground_truth, input="ct-image")
    assert told(error) == ("G01", "mine.toml")


# --- Refusals ---------------------------------------------------------------------


def output_of(folder, pk):
    return folder / pk / "output" / "images" / "organs"


def run_twice(folder, jobs):
    jobs.append(job("again", "validation_002_0000.mha"))
    write_jobs(folder.parent / "more", jobs[-1:])
    shutil.move(folder.parent / "more" / "again", folder / "again")


def write_a_tif(folder, _):
    (file,) = output_of(folder, "pk1").iterdir()
    file.rename(file.with_suffix(".tif"))


def link_the_output(folder, _):
    (file,) = output_of(folder, "pk1").iterdir()
    file.unlink()
    file.symlink_to(folder / "inputs.json")


def link_a_folder(folder, _):
    shutil.rmtree(output_of(folder, "pk1"))
    output_of(folder, "pk1").symlink_to(output_of(folder, "pk0"))


def lead(path, key="relative_path"):
    """Let a path of the second job lead there; {} is the folder of all outputs."""

    def change(folder, jobs):
        where = jobs[1] if key == "pk" else jobs[1]["outputs"][0]["interface"]
        where[key] = path.format(folder)

    return change


def have_a_slug_that_is_no_word(folder, jobs):
    jobs[1]["outputs"][0]["interface"]["slug"] = "a\x1b[31m\u202e\0" + "b" * 2000
    shutil.rmtree(output_of(folder, "pk1"))


ELSEWHERE = "the path of its output leads elsewhere"

CHANGES = {
    "failed": (lambda _, jobs: jobs[1].update(status="Failed"), "ended as Failed"),
    "run twice": (run_twice, "2 jobs were run on it"),
    "no folder": (
        lambda folder, _: shutil.rmtree(folder / "pk1" / "output"),
        "organs is no file",
    ),
    "an empty folder": (
        lambda folder, _: next(output_of(folder, "pk1").iterdir()).unlink(),
        "organs is no file",
    ),
    "two files": (
        lambda folder, _: (output_of(folder, "pk1") / "second.mha").touch(),
        "organs is 2 files",
    ),
    "no output": (lambda _, jobs: jobs[1].update(outputs=[]), "wrote no image"),
    "a .tif": (write_a_tif, "(.tif)"),
    "a link": (link_the_output, "is a link or no regular file"),
    "a linked folder": (link_a_folder, ELSEWHERE),
    "upwards": (lead("../../../../ground-truth"), ELSEWHERE),
    "upwards from the key": (lead("../input/pk0", "pk"), ELSEWHERE),
    "absolute": (lead("{}/pk0"), ELSEWHERE),
    # POSIX takes two slashes for a root of their own.
    "two slashes": (lead("/{}/pk0/output/images/organs"), ELSEWHERE),
    "two slashes in the key": (lead("/{}/pk0", "pk"), ELSEWHERE),
    "a key that no file has": (lead("k" * 300, "pk"), ELSEWHERE),
    "a null byte": (lead("images/\0"), ELSEWHERE),
    "a slug that is no word": (
        have_a_slug_that_is_no_word,
        r"output a\x1b[31m\u202e\x00" + "b" * 19 + "..." + "b" * 38 + " is no file",
    ),
}
"""How to spoil the second job, and what is said of it."""


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("hidden", [False, True])
def test_what_is_wrong_with_a_job_is_told(
    tmp_path, ground_truth, jobs, name, hidden, caplog
):
    """And hidden cases have numbers in public, and names in the log."""
    change, words = CHANGES[name]
    folder = write_jobs(tmp_path / "input", jobs)
    change(folder, jobs)
    (folder / "predictions.json").write_text(json.dumps(jobs))

    with caplog.at_level("INFO"):
        error = refusal(folder, ground_truth, hide_cases=hidden)

    shown = "case 2 of 3" if hidden else "validation_002.nii.gz"
    assert error.code == ("F06" if name == "a .tif" else "F13")
    assert str(error).startswith(f"{shown}: ")
    assert words in error.problem
    assert ("case 2 of 3 is validation_002.nii.gz" in caplog.text) == hidden


def test_a_case_without_a_job(tmp_path, ground_truth, jobs):
    folder = write_jobs(tmp_path / "input", jobs[1:])

    error = refusal(folder, ground_truth, hide_cases=True)

    assert (error.code, error.missing) == ("F05", ("case 1 of 3",))
    assert "please ask the organisers" in error.remedy


BOXES = organ_boxes()
SEVERAL = {
    "NDims": 4,
    "DimSize": "20 16 5 2",
    "Offset": "-90 -110 -300 0",
    "TransformMatrix": "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1",
    "ElementSpacing": "0.8 0.8 2.5 1",
}

HIDDEN = {
    "F07": (BOXES[:-1], {}, "its size is not that of the CT"),
    "F08": (BOXES, {"Offset": "-90 -110 -200"}, "it lies elsewhere than the CT"),
    "F06": (BOXES, SEVERAL, "it has 4 dimensions"),
}
"""Outputs whose header is wrong: what the participant reads, who has no such CT."""


@pytest.mark.parametrize("code", HIDDEN)
@pytest.mark.parametrize("how", ["refuse", "worst"])
def test_no_message_describes_a_hidden_image(
    tmp_path, ground_truth, jobs, code, how, caplog
):
    """The log, which organisers see, has the numbers."""
    labels, changes, text = HIDDEN[code]
    caplog.set_level(logging.INFO)
    outputs = {"pk1": metaimage_bytes(labels, **changes)}
    folder = write_jobs(tmp_path / "input", jobs, outputs)

    if how == "refuse":
        error = refusal(folder, ground_truth, hide_cases=True)
        assert (error.code, error.file, error.problem) == (code, "case 2 of 3", text)
        assert "expected" not in str(error)
    else:
        results = flare.evaluate(folder, ground_truth, on_bad_case="worst")
        assert results.cases[1].failure == f"case 2 of 3: {text}"
        if code == "F08":  # nor does a warning
            results = flare.evaluate(folder, ground_truth, grid="size")
            assert results.warnings == (f"case 2 of 3: {text}",)
    numbers = re.compile(r"case 2 of 3: .*( x \d|mm off| axes point to \w+,)")
    assert any(numbers.search(record.getMessage()) for record in caplog.records)


# --- Whose predictions.json it is -------------------------------------------------


def listed(*slugs, key="socket"):
    """What the platform writes into inputs.json."""
    return json.dumps([{"pk": 1, key: {"slug": slug}} for slug in slugs])


OURS = ("F14", "predictions.json")
"""A file of the participant's, who is told to remove it."""


@pytest.mark.parametrize("key", ["socket", "interface"])
@pytest.mark.parametrize("has_outputs", [False, True])
def test_in_a_phase_for_predictions_it_is_the_participants(
    tmp_path, ground_truth, key, has_outputs
):
    folder = write_cases(tmp_path / "input", case_names(3))
    if has_outputs:
        write_jobs(folder, [job("pk", "validation_001")])
    (folder / "predictions.json").write_text(json.dumps([job("pk", "zzz")]))
    (folder / "inputs.json").write_text(listed("predictions-zip-file", key=key))

    error = refusal(folder, ground_truth)
    assert told(error) == OURS
    assert "it came in a zip" in error.problem


INPUTS = [
    None,
    "[]",
    "{}",
    "no JSON",
    "[1]",
    '[{"socket": null}]',
    '[{"socket": {"slug": 7}}]',
    listed("something-else"),
]


@pytest.mark.parametrize("inputs", INPUTS)
@pytest.mark.parametrize("change", ["strangers", "two inputs"])
def test_without_a_word_of_the_platform_organisers_are_not_blamed(
    tmp_path, ground_truth, inputs, change
):
    """Only the file itself says that an algorithm was run: no output is there."""
    folder = write_cases(tmp_path / "input", case_names(3))
    item = job("pk", "zzz")
    if change == "two inputs":
        item["inputs"].append(value("mask", "images/mask", "zzz"))
    (folder / "predictions.json").write_text(json.dumps([item]))
    if inputs is not None:
        (folder / "inputs.json").write_text(inputs)

    error = refusal(folder, ground_truth)

    assert told(error) == OURS
    told_of = {"strangers": "1 of 1 images", "two inputs": "algorithm.input is ''"}
    assert error.problem.startswith(told_of[change])


def test_in_a_phase_for_algorithms_it_is_the_platforms(tmp_path, ground_truth):
    """Though none of the outputs is there."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "predictions.json").write_text(json.dumps([job("pk", "zzz")]))
    (folder / "inputs.json").write_text(listed("age", "predictions-json-file"))

    assert refusal(folder, ground_truth).code == "G02"


PHASE = ("G04", "predictions.json")
"""What the platform has written, as in batch mode: the organisers' to mend."""


@pytest.mark.parametrize("rules", [{}, {"input": "ct-image"}])
@pytest.mark.parametrize(("kind", "count"), [("inputs", 3), ("outputs", 2)])
def test_a_job_with_several_images_of_one_kind_is_told(
    tmp_path, ground_truth, jobs, rules, kind, count
):
    """As of several cases, in batch mode."""
    others = [value("ct-image", "images/ct", f"{name}.mha") for name in case_names(2)]
    jobs[1][kind] += others if kind == "inputs" else jobs[1][kind]

    error = refusal(write_jobs(tmp_path / "input", jobs), ground_truth, **rules)

    assert told(error) == PHASE
    assert f"a job has {count} image {kind} " in error.problem


@pytest.mark.parametrize("key", ["socket", "interface"])
def test_jobs_of_the_platform_in_another_form_are_not_the_participants(
    tmp_path, ground_truth, jobs, key
):
    """Nobody can take predictions.json out of a zip that has none."""
    jobs[1]["inputs"] = [jobs[1]["inputs"], jobs[2]["inputs"]]
    folder = write_jobs(tmp_path / "input", jobs)
    assert told(refusal(folder, ground_truth)) == OURS
    sockets = [{key: {"slug": "predictions-json-file"}}]
    (folder / "inputs.json").write_text(json.dumps(sockets))

    error = refusal(folder, ground_truth)

    assert told(error) == PHASE
    assert error.problem.startswith("job 2 is not as the platform writes it, though")


# --- Running times on the platform ------------------------------------------------


DURATIONS = [
    ("P0DT00H01M23.456000S", 83.456),
    ("P1DT02H00M00S", 93600.0),
    ("PT2.5S", 2.5),
    ("P0DT00H00M00S", 0.0),
    *((odd, None) for odd in (None, 83.456, "", "P", "PT", "P1D", "83 s", "-PT1S")),
    *((odd, None) for odd in ("PT1e3S", "PT٣S", "PT9999999S", "PT1S\n", [], {}, True)),
]


NOTE = (
    "As the platform says: on its own, shared hardware, with the start of"
    " the container and the loading of the model. Not to be ranked by."
)


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_running_times_of_jobs_are_kept(tmp_path, ground_truth, jobs, text, seconds):
    """And what is none is left out, as if it were not there."""
    jobs[0]["exec_duration"] = None
    jobs[1]["exec_duration"], jobs[1]["invoke_duration"] = None, text
    del jobs[2]["exec_duration"], jobs[2]["invoke_duration"]
    folder = write_jobs(tmp_path / "input", jobs)

    content = json.loads(metrics_json(flare.evaluate(folder, ground_truth)))

    told = {"note": NOTE, "invoke_duration_s": {"1": seconds}}
    assert content.get("jobs") == (None if seconds is None else told)


@pytest.mark.parametrize("name", ["secret_patient.mha", "x" + ".nii" * 100_000])
def test_images_without_a_reference_are_for_the_organisers(
    tmp_path, ground_truth, jobs, name
):
    jobs[0]["inputs"][1]["image"]["name"] = name
    folder = write_jobs(tmp_path / "input", jobs)

    error = refusal(folder, ground_truth)

    assert error.code == "G02"
    assert error.problem.startswith("1 of 3 images that the algorithm was run on")
    assert "secret" not in str(error)


def test_jobs_against_the_demonstration_set(tmp_path, jobs):
    folder = write_jobs(tmp_path / "input", jobs)

    with pytest.raises(flare.OrganiserError, match=r"its demonstration set.*\[G03\]"):
        evaluate(folder, ROOT / "ground-truth")


NO_JSON, NO_LIST = "it is not JSON, or larger than 32 MiB", "it is not a list of jobs"

PLACES = {
    "a job": lambda item: item,
    "an input": lambda item: item["inputs"][1]["interface"],
    "an output": lambda item: item["outputs"][0]["interface"],
    "an image": lambda item: item["inputs"][1]["image"],
}


def spoilt(place, key, value=None):
    """The file of a job that lacks a key, or has another value under it."""
    item = job("pk", "validation_001")
    if value is None:
        del PLACES[place](item)[key]
    else:
        PLACES[place](item)[key] = value
    return json.dumps([item]).encode(), "job 1 is not as the platform writes it"


HALF = "x\ud800"
"""JSON can hold half a character, and no name of a file can."""

CONTENTS = {
    "empty": (b"", NO_JSON),
    "no UTF-8": (b"\xff\xfe", NO_JSON),
    "very deep": (b"[" * 200_000, NO_JSON),
    "deep objects": (b'{"a":[' * 100_000, NO_JSON),
    "a number of a million digits": (b"[" + b"9" * 10**6 + b"]", NO_JSON),
    "huge": (b"[]".ljust(2**25 + 1), NO_JSON),
    "an object": (b"{}", NO_LIST),
    "an empty list": (b"[]", NO_LIST),
    "null": (b"null", NO_LIST),
    "a number": (b"[1]", "job 1 is not as the platform writes it"),
    "no image": spoilt("a job", "inputs", []),
    "a list in a list": spoilt("a job", "inputs", [[], []]),
    **{
        f"{what} {key} of {place}": spoilt(place, key, *half)
        for place, key in (
            *(("a job", key) for key in ("pk", "status", "inputs", "outputs")),
            *((place, "slug") for place in ("an input", "an output")),
            *(("an output", "relative_path"), ("an image", "name")),
        )
        for what, half in (("no", ()), ("half a", (HALF,)))
    },
}


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_the_platform_did_not_write(tmp_path, ground_truth, name):
    """A zip may hold one of that name: its author is told to remove it."""
    content, problem = CONTENTS[name]
    write_cases(tmp_path / "input", case_names(3))
    (tmp_path / "input" / "predictions.json").write_bytes(content)

    error = refusal(tmp_path / "input", ground_truth)

    assert (told(error), error.problem) == (OURS, problem)


@pytest.mark.parametrize("make", [Path.symlink_to, Path.mkdir, os.mkfifo])
def test_a_predictions_json_that_is_no_file(tmp_path, ground_truth, jobs, make):
    file = write_jobs(tmp_path / "input", jobs) / "predictions.json"
    file.rename(tmp_path / "elsewhere.json")
    make(file, *([tmp_path / "elsewhere.json"] if make is Path.symlink_to else ()))

    with pytest.raises(JobsFileError, match="it is a link or no regular file"):
        evaluate(file.parent, ground_truth)


@pytest.mark.parametrize("kind", ["twice", "half", "demonstration"])
def test_a_mistake_in_hidden_references_names_none_of_them(
    tmp_path, ground_truth, jobs, kind, caplog
):
    """The log, which organisers see, does."""
    names = {"twice": "again/validation_002.nii.gz", "half": "validation_009.mhd"}
    name = names.get(kind, "demo_009.nii.gz")
    (ground_truth / "again").mkdir()
    (ground_truth / name).write_bytes(b"")
    folder = write_jobs(tmp_path / "input", jobs)

    with caplog.at_level("INFO"):
        error = refusal(folder, ground_truth, hide_cases=True)

    assert error.code == "G02"
    assert error.problem == "there is a mistake in their files, which the log names"
    assert name in caplog.text


def test_what_the_platform_has_put_there_is_not_read_from_a_pipe(tmp_path):
    """Nobody writes into it, and it would be waited for."""
    os.mkfifo(tmp_path / "inputs.json")

    assert read_sockets(tmp_path / "inputs.json") == set()
