"""Files of answers on the platform: their names and references, and its own files."""

import json
import zipfile

import pytest

import flare
from flare.challenge.reading import read_challenge
from flare.cli.main import main
from flare.evaluation.check import check_references, check_submission
from flare.evaluation.submission import find
from flare.evaluation.submission.find import usual_references
from tests.builders import ROOT, error_of, write_cases
from tests.builders.errors import all_told, told
from tests.builders.jobs import job, write_jobs

CHALLENGE = """
name = "Mine"

[[answers]]
name = "findings"
kind = "choice"
file = "{file}"
reference_file = "reference.csv"
classes = ["A", "B"]
metrics = ["accuracy"]
"""
ORGANS = '[[organs]]\nlabel = 1\nname = "liver"\ntolerance_mm = 1\n'

QUESTIONS = [{"name": "a", "prediction": "A"}, {"name": "b", "prediction": "B"}]
TABLE = "name,prediction\na,A\nb,B\n"
DEMONSTRATION = ROOT / "ground-truth"


@pytest.fixture
def references(tmp_path):
    return written(tmp_path / "references", {"reference.csv": "name,gt\na,A\nb,A\n"})


@pytest.fixture
def challenge_of(tmp_path):
    def read(file="results.csv", *parts):
        path = tmp_path / "mine.toml"
        path.write_text("\n".join([CHALLENGE.format(file=file), *parts]), "utf-8")
        return read_challenge(str(path))

    return read


def written(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def accuracy(folder, references, challenge):
    results = flare.evaluate(folder, references, challenge=challenge)
    return results.answer_values["accuracy_findings"]


def refusals(folder, references, challenge):
    """What is told of a submission by its evaluation, and by a check without labels."""
    caught = error_of(flare.FlareError, accuracy, folder, references, challenge)
    try:
        problems = check_submission(folder, challenge).problems
    except flare.FlareError as error:
        problems = [error]
    return [str(caught), *map(str, problems)]


# --- predictions.json: the platform's, or the submission's ------------------------


@pytest.mark.parametrize("sockets", [None, ["predictions-zip-file"]])
@pytest.mark.parametrize("place", ["", "in/a/folder/"])
def test_answers_may_be_called_predictions_json(
    references, challenge_of, tmp_path, sockets, place
):
    files = {f"{place}predictions.json": json.dumps(QUESTIONS)}
    if sockets:
        inputs = [{"socket": {"slug": slug}} for slug in sockets]
        files["inputs.json"] = json.dumps(inputs)
    folder = written(tmp_path / "input", files)
    challenge = challenge_of("predictions.json")

    assert accuracy(folder, references, challenge) == 0.5
    assert check_submission(folder, challenge).problems == ()


@pytest.mark.parametrize("organs", [[], [ORGANS]])
@pytest.mark.parametrize("file", ["predictions.json", "results.csv"])
def test_jobs_of_an_algorithm_are_refused_where_answers_are_scored(
    references, challenge_of, tmp_path, file, organs
):
    """In one line, that names no case, and blames whoever has written them."""
    folder = write_jobs(tmp_path / "input", [job("pk", "secret_1.mha")])
    challenge = challenge_of(file, *organs)

    for message in refusals(folder, references, challenge):
        assert told(message) == ("F14", "predictions.json")
        assert "it lists jobs of an algorithm" in message
    inputs = [{"interface": {"slug": "predictions-json-file"}}]
    (folder / "inputs.json").write_text(json.dumps(inputs))
    for message in refusals(folder, references, challenge):
        assert told(message) == ("G04", "predictions.json")
        assert "secret" not in message


BROKEN = ("", "[]", "{}", "[7]", '[{"pk": 1}]', '[{"name": "a"', "[" * 200_000)


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_the_submissions(references, challenge_of, tmp_path, text):
    """But where answers have another name it is passed by, as any stray file."""
    folder = written(tmp_path / "input", {"predictions.json": text})
    for message in refusals(folder, references, challenge_of("predictions.json")):
        assert told(message) == ("F20", "predictions.json")

    written(folder, {"results.csv": TABLE})
    assert accuracy(folder, references, challenge_of()) == 0.5


def test_label_maps_lie_beside_answers_of_that_name(references, challenge_of, tmp_path):
    """Nothing is taken for the output of a job, and no table for a label map."""
    write_cases(references, "ab")
    folder = write_cases(tmp_path / "input", "ab")
    written(folder, {"predictions.json": json.dumps(QUESTIONS)})
    challenge = challenge_of(
        "predictions.json", ORGANS, '[unknown_labels]\nreference = "ignore"'
    )

    results = flare.evaluate(
        folder, references, challenge=challenge, unknown_labels="ignore"
    )

    assert results.totals == {"dsc": 1, "nsd": 1, "accuracy_findings": 0.5}


# --- A table that was submitted by itself -----------------------------------------


def test_a_table_by_itself_counts_by_the_platforms_word(
    references, challenge_of, tmp_path
):
    folder = written(tmp_path / "input", {"predictions.csv": TABLE})

    for message in refusals(folder, references, challenge_of()):
        assert told(message) == ("F20", "results.csv")
    inputs = json.dumps([{"socket": {"slug": "predictions-csv-file"}}])
    written(folder, {"inputs.json": inputs})
    assert accuracy(folder, references, challenge_of()) == 0.5
    for message in refusals(folder, references, challenge_of("results.json")):
        assert told(message) == ("F20", "results.json")


@pytest.mark.parametrize("begin", ["", "\ufeff \n"])
def test_json_by_itself_counts_where_json_is_asked_for(
    references, challenge_of, tmp_path, begin
):
    """The platform calls it predictions.csv, too."""
    inputs = json.dumps([{"socket": {"slug": "predictions-csv-file"}}])
    files = {"predictions.csv": begin + json.dumps(QUESTIONS), "inputs.json": inputs}
    folder = written(tmp_path / "input", files)

    assert accuracy(folder, references, challenge_of("predictions.json")) == 0.5
    for message in refusals(folder, references, challenge_of("results.csv")):
        assert told(message) == ("F20", "results.csv")


def test_the_input_may_be_a_link_to_what_nobody_may_write(
    references, challenge_of, tmp_path
):
    folder = written(tmp_path / "job-input", {"in/results.csv": TABLE})
    folder.chmod(0o555)
    (tmp_path / "input").symlink_to(folder)

    assert accuracy(tmp_path / "input", references, challenge_of()) == 0.5


@pytest.mark.parametrize(
    ("text", "problems"), [(TABLE, []), ("name,prediction\na,C\n", [("F22", "r.csv")])]
)
def test_a_table_by_itself_is_checked(tmp_path, capfd, challenge_of, text, problems):
    challenge_of("r.csv")
    table = written(tmp_path, {"r.csv": text}) / "r.csv"
    challenge = ["--challenge", str(tmp_path / "mine.toml")]

    assert main(["check", str(table), *challenge]) == bool(problems)

    assert all_told(capfd.readouterr().out) == problems


# --- References -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "has_any"),
    [
        (["reference.csv"], True),
        (["some/folder/val.json"], True),
        (["lines.jsonl"], True),
        (["._reference.csv", "__MACOSX/reference.csv", ".git/x.json"], False),
        (["inputs.json", "README.md"], False),
        ([], False),
    ],
)
def test_a_tarball_of_tables_alone_has_references(
    tmp_path, monkeypatch, files, has_any
):
    folder = tmp_path / "ground_truth"
    folder.mkdir()
    monkeypatch.setattr(find, "PLATFORM_GROUND_TRUTH", folder)
    written(folder, dict.fromkeys(files, "x"))

    assert usual_references() == (folder if has_any else DEMONSTRATION)


@pytest.mark.parametrize("organs", [[], [ORGANS]])
def test_without_references_the_organisers_have_supplied_none(
    challenge_of, tmp_path, organs
):
    """The image has the demonstration set then, whose own predictions are no answer."""
    challenge = challenge_of("r.csv", *organs)
    for folder in (DEMONSTRATION, written(tmp_path / "input", {"results.csv": TABLE})):
        both = folder, DEMONSTRATION
        error = error_of(flare.OrganiserError, accuracy, *both, challenge)
        assert all_told(error) == [("G03", "")]
    text = check_references(DEMONSTRATION, challenge)
    assert "Mine: the demonstration set has no references of answers" in text


def test_a_faulty_table_beside_the_demonstration_set_is_told(challenge_of, tmp_path):
    folder = write_cases(tmp_path / "labels", ["demo_001"])
    written(folder, {"reference.csv": "name,gt\na,C\n"})

    error = error_of(flare.OrganiserError, check_references, folder, challenge_of())
    assert told(error) == ("G02", "reference.csv")


# --- Zips of many teams -----------------------------------------------------------


def test_zips_of_tables_are_scored_and_bombs_of_them_are_not(
    references, challenge_of, tmp_path
):
    """Its answers are one file, which has 16 MiB at most."""
    teams = tmp_path / "teams"
    teams.mkdir()
    for team, size in (("alpha", 0), ("beta", 2**24)):
        with zipfile.ZipFile(teams / f"{team}.zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("s/results.csv", TABLE)
            file.writestr("s/more.json", b"\n" * size)

    scored = flare.evaluate_many(
        teams, references, tmp_path / "results", challenge=challenge_of(), workers=1
    )

    alpha, beta = scored.teams
    assert alpha.means == {"accuracy_findings": 0.5}
    assert told(beta.refusal) == ("H06", "beta.zip")
    assert "more than its label maps and tables can have" in beta.refusal
    assert (tmp_path / "results" / "alpha" / "answers.csv").is_file()
