"""Answers beside label maps: the rows of each run are kept, joined and scored."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flare.answers.tables import is_counted, read_table, table_text
from flare.challenge.reading import challenge_names, read_challenge
from flare.common.files import remove_tree
from flare.measuring.answers import CaseAnswers, keep_answers, read_case_answers
from flare.measuring.exchange import WrongOutputError
from flare.measuring.trial import check_output
from flare.results.errors import MeasurementError
from tests.builders import case_names, organ_boxes, write_cases, write_file
from tests.builders.answers import DIAGNOSIS, answer_rules, answers_challenge
from tests.builders.errors import told
from tests.builders.schemas import file_problems
from tests.builders.teams import (
    PREDICT,
    flare_command,
    left_behind,
    measure_teams,
    rows_of,
    save_team,
)

ANSWERS = f'{DIAGNOSIS}positive = "from"\n'

BOTH = f'extends = "flare21"\n{ANSWERS}'
ALONE = f'name = "Answers alone"\n{ANSWERS}'

ROWS = """
for image in /workspace/inputs/*_0001.nii.gz; do
    name=$(basename "$image" _0001.nii.gz)
    case $name in *1) p=0.9 ;; *2) p=0.2 ;; *) p='"[0.6, 0.4]"' ;; esac
    echo "identifier,note,probs" > /workspace/outputs/results.csv
    echo "${name}_0000.nii.gz,=x,$p" >> /workspace/outputs/results.csv
done
"""
"""It answers from the second sequence: 0.9, 0.2 and 0.4, where 1, 0 and 1 are right."""

NO_ROW_OF_2 = f"{ROWS}\ncase $name in *2) rm /workspace/outputs/results.csv ;; esac"


def write_automsc(folder, **what):
    """Write two sequences and a reference of three cases: images and labels."""
    names = case_names(3)
    labels = write_cases(folder / "labels", names, **what)
    (labels / "reference.csv").write_text(
        "identifier,label\n" + "".join(map("{},{}\n".format, names, (1, 0, 1)))
    )
    stems = [f"{name}_{channel}" for name in names for channel in ("0000", "0001")]
    return write_cases(folder / "images", stems, **what), labels


@pytest.fixture
def automsc(bench, tmp_path):
    """Two sequences and a reference of three cases; options for a challenge file."""
    bench.images, bench.labels = write_automsc(tmp_path)

    def options(text=BOTH):
        file = write_file(tmp_path / "automsc.toml", text)
        return ("--challenge", file)

    return options


def rows(file):
    with file.open(encoding="utf-8") as content:
        return [*csv.DictReader(content)]


def values(metrics):
    return [
        metrics["aggregates"][f"{name}_diagnosis"] for name in ("accuracy", "auroc")
    ]


def test_rows_are_joined_and_scored_beside_label_maps(automsc, bench, measure, flare):
    """Positive from 0.5 on: one of three is wrong, and all positives rank first.

    Where the second case has no row, its answer ranks before all others: one of three
    is right, and no positive ranks before the negative.
    """
    bench.archive("whole", PREDICT + ROWS)
    bench.archive("lacking", PREDICT + NO_ROW_OF_2)
    truth = ("--ground-truth", bench.labels)

    assert measure(*truth, *automsc())[::2] == (0, "")

    whole, lacking = bench.results / "whole", bench.results / "lacking"
    assert (whole / "predictions" / "results.csv").read_text() == (
        "identifier,probs\nvalidation_001,0.9\nvalidation_002,0.2\n"
        'validation_003,"[0.6, 0.4]"\n'
    )
    assert values(bench.metrics("whole")) == [2 / 3, 1]
    assert values(bench.metrics("lacking")) == [1 / 3, 0]
    assert bench.metrics("lacking")["aggregates"]["dsc_mean"] == pytest.approx(2 / 3)
    assert bench.metrics("lacking")["warnings"] == []
    record = bench.rows("lacking")["validation_002"]
    assert record["status"] == "wrong output"
    assert record["message"].startswith("results.csv: it is missing")
    kept = rows(lacking / "predictions" / "results.csv")
    assert [row["identifier"] for row in kept] == ["validation_001", "validation_003"]
    answers = rows(lacking / "answers.csv")
    assert [row["prediction"] for row in answers] == ["0.9", "", "[0.6, 0.4]"]
    assert answers[1]["problem"].startswith("wrong output: results.csv: it is missing")
    settings = bench.record("whole")["settings"]
    assert settings["answers"] == "results.csv: identifier, probs"

    before = (lacking / "metrics.json").read_bytes()
    (lacking / "answers.csv").unlink()
    status, stdout, _ = flare("rescore", bench.results, *truth, *automsc())

    assert status == 0
    assert (lacking / "metrics.json").read_bytes() == before
    assert rows(lacking / "answers.csv") == answers
    assert "accuracy_diagnosis before" in stdout
    means = [f"{mean:.4f}" for mean in (2 / 3, 2 / 3, 2 / 3, 2 / 3, 1 / 3, 1 / 3, 0, 0)]
    assert stdout.splitlines()[-2].split() == ["lacking", *means, "as", "before"]
    for name in ("metrics", "measurement"):
        assert file_problems(whole / f"{name}.json", name) == []


def test_a_measurement_that_goes_on_keeps_rows(automsc, bench, measure):
    """What is run again has its new row; other columns would not fit the first ones."""
    bench.archive("team", PREDICT + ROWS)
    assert measure(*automsc())[0] == 0
    file = bench.results / "team" / "predictions" / "results.csv"
    before = file.read_text()
    file.write_text(before.replace("0.2", "0.7").replace("0.9", "0.8"))

    again = ("--rerun", "validation_002", "--reason", "trial")
    assert measure(*automsc(), *again)[0] == 0
    assert {row["identifier"]: row["probs"] for row in rows(file)} == {
        "validation_001": "0.8",
        "validation_002": "0.2",
        "validation_003": "[0.6, 0.4]",
    }

    status, _, stderr = measure(*automsc(BOTH.replace("probs", "note")))
    assert (status, told(stderr)[0]) == (1, "H07")
    assert "answers results.csv: identifier, probs, now it is" in stderr


@pytest.mark.parametrize("text", [BOTH, ALONE], ids=["both", "alone"])
def test_a_service_tells_values_of_answers(automsc, bench, serve, text):
    script = PREDICT + NO_ROW_OF_2 if text == BOTH else NO_ROW_OF_2
    bench.archive("team", script)

    assert serve(*automsc(text))[0] == 0

    answer = bench.answer("team")
    assert answer["status"] == "Succeeded"
    metrics = answer["metrics"]
    assert values(metrics) == [1 / 3, 0]
    status = {"0": "ok", "1": "wrong output", "2": "ok"}
    if text == ALONE:  # then nothing at all is written
        status["1"] = "no output"
        assert set(metrics["case"]) == {"status", "runtime_s"}
    assert metrics["case"]["status"] == status
    assert metrics["aggregates"]["cases_failed"] == 1
    assert "problem" not in str(answer)


def test_an_image_without_any_answer_is_told_so(automsc, bench, serve):
    bench.archive("team", "exit 3")

    assert serve(*automsc(ALONE))[0] == 0

    message = bench.answer("team")["error_message"]
    assert message.startswith("0 of 3 cases gave all that is scored: 3 failed (the")


def test_an_algorithm_s_answers_lie_beside_its_folders(automsc, bench, measure, flare):
    bench.images = write_cases(bench.folder / "cts", case_names(3))
    script = """name=$(basename /input/images/ct/* .nii.gz)
    mkdir -p /output/images/organs
    cp /input/images/ct/* /output/images/organs/out.nii.gz
    printf 'identifier,probs\\n%s,1\\n' "$name" > /output/results.csv"""
    bench.algorithm("team", script)
    contract = ("--contract", "algorithm", "--input-socket", "ct=images/ct")
    contract += ("--output-path", "images/organs")

    status, _, stderr = measure(*automsc(), *contract, "--ground-truth", bench.labels)

    assert (status, stderr) == (0, "")
    assert bench.metrics("team")["aggregates"]["accuracy_diagnosis"] == 2 / 3


def test_check_runs_an_image_of_answers_alone(automsc, bench, flare):
    archive = bench.archive("team", ROWS)
    image = bench.images / "validation_002_0001.nii.gz"

    run = flare("check", archive, "--run", image, "--gpu", "none", *automsc(ALONE))

    assert run[0] == 0
    assert "validation_002: ok, " in run[1]
    assert "results.csv: 1 answer to diagnosis" in run[1]


NUMBERS = BOTH.replace('"binary"', '"number"').replace('"accuracy", "auroc"', '"rmse"')


@pytest.mark.parametrize(
    ("text", "names", "problem"),
    [
        (BOTH, case_names(2)[:1], "is undefined for these references"),
        (BOTH, [*case_names(2), "other"], "no label map is called other"),
        (NUMBERS, case_names(3), "missing number has no worst"),
    ],
    ids=["undefined", "other cases", "no worst"],
)
def test_nothing_is_run_that_could_not_be_scored(
    automsc, bench, measure, text, names, problem
):
    bench.archive("team", PREDICT + ROWS)
    rows = [f"{name},{number % 2}\n" for number, name in enumerate(names)]
    (bench.labels / "reference.csv").write_text("identifier,label\n" + "".join(rows))

    status, _, stderr = measure("--ground-truth", bench.labels, *automsc(text))

    assert status == 1
    assert problem in stderr
    assert not (bench.results / "team").exists()


HOSTILE = {
    "link": ("ln -s /etc/passwd {}", "results.csv: it is a link"),
    "binary": ("head -c 99 /dev/zero > {}", "results.csv: it holds a byte 0"),
}
"""A file that is not taken out, and one that is; test_exchange.py has other kinds."""


def test_files_of_answers_that_nobody_reads(automsc, bench, measure):
    """A team each; what its container has left in their place is not kept."""
    for team, (command, _) in HOSTILE.items():
        script = command.format("/workspace/outputs/results.csv")
        bench.archive(team, f"{PREDICT}\n{script}")

    assert measure("--ground-truth", bench.labels, *automsc())[0] == 0

    for team, (_, problem) in HOSTILE.items():
        for row in bench.rows(team).values():
            assert row["status"] == "wrong output"
            assert row["message"].startswith(problem)
        assert [*(bench.results / team / "predictions").iterdir()] == []
        assert values(bench.metrics(team)) == [0, 0]


@pytest.mark.docker
@pytest.mark.slow
def test_images_with_two_sequences_are_measured_scored_and_ranked(team_base, tmp_path):
    """Built and run by the real engine, by the edition of AutoMSC.

    One writes no row for the second case: no positive ranks before the negative.
    """
    images, labels = write_automsc(tmp_path, labels=(organ_boxes() == 1).astype("u1"))
    archives = [
        save_team(tmp_path, team, PREDICT + rows_script)
        for team, rows_script in (("whole", ROWS), ("lacking", NO_ROW_OF_2))
    ]
    edition = ("--challenge", "flare26-automsc")
    results, ranking = tmp_path / "results", tmp_path / "ranking"

    measure_teams(
        *(tmp_path / "sent", images.parent, *archives),
        results=results,
        more=("--ground-truth", labels, *edition),
    )
    flare_command("rank", results, "--output", ranking, *edition)

    means = {}
    for team in ("whole", "lacking"):
        assert left_behind(results / team) == []
        means[team] = json.loads((results / team / "metrics.json").read_text())
    assert [values(means[team]) for team in means] == [[2 / 3, 1], [1 / 3, 0]]
    assert means["lacking"]["aggregates"]["dsc_mean"] == pytest.approx(2 / 3)
    assert rows_of(results / "lacking")["validation_002"]["status"] == "wrong output"
    ranks = {row["team"]: row["rank"] for row in rows(ranking / "ranking.csv")}
    assert ranks == {"whole": "1", "lacking": "2"}


# --- What a run may write -------------------------------------------------------------


def judged(folder, images, challenge, files, irregular=()):
    """Why an output of case c1 is refused; empty if it is not."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    try:
        check_output(folder, dict(irregular), images, challenge)
        read_case_answers(folder, challenge, "c1")
    except WrongOutputError as error:
        return str(error)
    return ""


HEAD = "identifier,probs\n"

REFUSED = {
    "no file": ({}, "results.csv: it is missing"),
    "other case": ({"results.csv": f"{HEAD}c1,1\nc2,1\n"}, "no case has this name: c2"),
    "twice": ({"results.csv": f"{HEAD}c1,1\nc1,0\n"}, "two answers to diagnosis"),
    "nan": ({"results.csv": f"{HEAD}c1,nan\n"}, "line 2 (c1: nan): not finite"),
    "two files": (
        {"results.csv": f"{HEAD}c1,1\n", "a/results.csv": f"{HEAD}c1,1\n"},
        "2 files are called so",
    ),
}


def one_image(folder, text=ALONE, name="c1_0000"):
    (folder / "alone.toml").write_text(text)
    images = write_cases(folder / "images", [name])
    return images, read_challenge(str(folder / "alone.toml"))


@pytest.fixture
def alone(tmp_path):
    return one_image(tmp_path)


@pytest.mark.parametrize("fault", REFUSED)
def test_answers_that_a_run_may_not_write(alone, tmp_path, fault):
    files, problem = REFUSED[fault]

    text = judged(tmp_path / "output", *alone, files)

    assert problem in text
    assert text.startswith("results.csv: ")


def test_answers_are_regular_files_in_any_folder(alone, tmp_path):
    link = judged(tmp_path / "a", *alone, {}, [("results.csv", "a link")])
    assert link.startswith("results.csv: it is a link")
    right = {"x/results.csv": f"{HEAD}c1.nii.gz,1\n", "plans.json": "{}"}
    assert judged(tmp_path / "b", *alone, right) == ""


def test_a_name_that_a_mac_has_taken_apart_is_the_same(tmp_path):
    """As a container writes it that answers by the name of its input."""
    images, challenge = one_image(tmp_path, name="cafe\u0301_0000")
    (tmp_path / "output").mkdir()
    file = tmp_path / "output" / "results.csv"
    file.write_text(f"{HEAD}cafe\u0301_0000.nii.gz,1\n", encoding="utf-8")

    check_output(file.parent, {}, images, challenge)

    (answers,) = read_case_answers(file.parent, challenge, "caf\u00e9")
    assert [*answers.rows] == [{"identifier": "caf\u00e9", "probs": "1"}]


def test_questions_are_of_the_case_that_was_run(tmp_path):
    """Their names have several columns, of which the first is that of the case."""
    text = ALONE.replace('["identifier"]', '["identifier", "question"]')
    text = text.replace("results.csv", "results.jsonl") + 'only = {task = "one"}\n'
    images, challenge = one_image(tmp_path, text)
    entry = '{"identifier": "%s", "question": %d, "probs": 1}\n'

    other = judged(
        *(tmp_path / "a", images, challenge),
        {"results.jsonl": entry % ("c1", 1) + entry % ("c2", 1)},
    )
    assert other == "results.jsonl: entry 2 is of case c2, expected c1"

    lines = entry % ("c1", 1) + entry % ("c1", 2)
    assert judged(tmp_path / "b", images, challenge, {"results.jsonl": lines}) == ""
    (answers,) = read_case_answers(tmp_path / "b", challenge, "c1")
    row = {"identifier": "c1", "probs": "1", "task": "one"}
    assert [*answers.rows] == [row | {"question": "1"}, row | {"question": "2"}]

    long = '{"identifier": "c1", "question": "%s", "probs": 1}\n' % ("\\\\" * 9000)
    assert "its answers take more than 16384 bytes" in judged(
        tmp_path / "c", images, challenge, {"results.jsonl": long}
    )


def test_a_joined_file_that_cannot_be_read_is_told(alone, tmp_path):
    _, challenge = alone
    rows = ({"identifier": "c1", "probs": "1"},)
    answers = CaseAnswers(file="results.csv", rows=rows)
    keep_answers(tmp_path, challenge, "c1", [answers])
    file = tmp_path / "predictions" / "results.csv"
    file.write_text("identifier;probs\nc1;1\n")

    with pytest.raises(MeasurementError, match="separated by semicolons"):
        keep_answers(tmp_path, challenge, "c2", [])

    file.write_text(f"{HEAD}c1,1\n")
    keep_answers(tmp_path, challenge, "c1", [])
    assert not file.exists(), "no row is left"


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
def test_a_table_is_read_as_it_was_written(tmp_path, suffix):
    cells = ["=1", "a,b", 'c"d', "'e", "[1, 2]", "\\ud800", "", "x|y", "ü; 3.0"]
    table = [{"name": str(number), "text": cell} for number, cell in enumerate(cells)]
    file = write_file(tmp_path / f"table{suffix}", table_text(table, suffix))

    assert [row.cells for row in read_table(file)] == table


def check_joined(folder, challenge, written):
    """What counts for each answers is the same in joined rows as in those of runs.

    `written` has the rows of each file by case.
    """
    for case in ("c1", "c2"):
        run = folder / "runs" / case
        run.mkdir(parents=True, exist_ok=True)
        for name, rows_by_case in written.items():
            text = table_text(rows_by_case[case], Path(name).suffix)
            (run / name).write_text(text, encoding="utf-8")
        answers = read_case_answers(run, challenge, case)
        keep_answers(folder, challenge, case, answers)
    for rules in challenge.answers:
        columns = [*rules.case, *rules.prediction]
        expected = [
            [row[column] for column in columns]
            for rows in written[rules.file].values()
            for row in rows
            if all(row.get(name, value) == value for name, value in rules.only.items())
        ]
        file = folder / "predictions" / rules.file
        joined = read_table(file) if file.exists() else []
        counted = [row.cells for row in joined if is_counted(rules, row)]
        assert [[row[column] for column in columns] for row in counted] == expected
    remove_tree(folder / "predictions")


EDITIONS = [name for name in challenge_names() if read_challenge(name).answers]


@pytest.mark.parametrize("edition", EDITIONS)
def test_rows_of_an_edition_are_joined_as_they_were_written(tmp_path, edition):
    challenge = read_challenge(edition)
    written = {rules.file: {"c1": [], "c2": []} for rules in challenge.answers}
    for rules in challenge.answers:
        for case in ("c1", "c2"):
            columns = dict.fromkeys((*rules.case, *rules.prediction), f"7 {rules.name}")
            row = {**columns, **rules.only, rules.case[0]: case}
            written[rules.file][case].append(row)

    check_joined(tmp_path, challenge, written)


@given(
    columns=st.lists(st.sampled_from(["p", "q", "r"]), min_size=2, max_size=4),
    kinds=st.lists(st.sampled_from(["", "a", "b"]), min_size=4, max_size=4),
    suffix=st.sampled_from([".csv", ".json", ".jsonl"]),
    has_kind=st.booleans(),
)
def test_rows_that_are_joined_are_what_the_containers_wrote(
    tmp_path, columns, kinds, suffix, has_kind
):
    """Of several answers in one file: what counts for each is the same."""
    rules = [
        answer_rules(
            "number",
            name=f"n{number}",
            file=f"all{suffix}",
            prediction=[column],
            only={"kind": kind} if kind else {},
        )
        for number, (column, kind) in enumerate(zip(columns, kinds, strict=False))
    ]
    written = {}
    for place, case in enumerate(["c1", "c2"]):
        row = {"name": case, "p": f"{place}", "q": f"{place}5", "r": "7"}
        # Without `only`, two rows would be two answers of a case.
        row_kinds = ["a"] if "" in kinds[: len(columns)] else ["a", "b"]
        written[case] = [{**row, "kind": kind} for kind in row_kinds]
        if not has_kind:
            written[case] = [row]

    check_joined(tmp_path, answers_challenge(*rules), {f"all{suffix}": written})
