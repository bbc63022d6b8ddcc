"""Pages of answers: values, confusion matrices, ROC curves, and comparisons."""

import json

import pytest

from flare.ranking.answers import read_sheets
from flare.reports.answers import confusion_table, is_called
from flare.reports.report import Report
from flare.results.errors import MetricsFileError
from flare.results.metrics_reading import read_evaluation
from tests.builders.answer_teams import (
    DIAGNOSIS,
    answer_challenge,
    paired,
    write_answer_team,
)

TYPE = {
    "name": "type",
    "kind": "choice",
    "file": "types.csv",
    "classes": ["cyst", "tumour"],
    "metrics": ["accuracy"],
}
CHALLENGE = answer_challenge(DIAGNOSIS, TYPE, ranking={})

TRUTHS = [1, 1, 1, 0, 0, 0]
PROBABILITIES = [0.9, 0.6, 0.2, 0.6, 0.1, 0.3]
TYPES = ["cyst", "cyst", "tumour", "tumour", "tumour", "cyst"]
ANSWERED_TYPES = ["cyst", "tumour", "tumour", "tumour", "cyst", "cyst"]


def scored(folder, probabilities=PROBABILITIES, types=ANSWERED_TYPES):
    """A team's folder with metrics.json and answers.csv; None is no answer."""
    answers = {
        "diagnosis": paired(TRUTHS, probabilities, "secret_"),
        "type": paired(TYPES, types, "secret_"),
    }
    write_answer_team(folder / "out", CHALLENGE, answers)
    return folder / "out" / "metrics.json"


def page_text(source, audience, *others):
    output = source.with_name(f"{audience}.html")
    Report(sources=(source, *others), output=output, audience=audience).write()
    return output.read_text(encoding="utf-8")


def sheets_of(source):
    return read_sheets(source, read_evaluation(source))


def test_a_confusion_matrix_counts_the_cases_of_each_class(tmp_path):
    _, types = sheets_of(scored(tmp_path, types=[*ANSWERED_TYPES[:5], None]))

    table = confusion_table(types)

    assert table.heads == ("reference", "cyst", "tumour", "no answer", "cases")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["cyst", "1", "1", "1", "3"],
        ["tumour", "1", "2", "0", "3"],
    ]


def test_a_missing_answer_counts_as_the_wrong_class(tmp_path):
    sheet, _ = sheets_of(scored(tmp_path, [0.9, None, 0.2, None, 0.1, 0.3]))

    assert is_called(sheet).tolist() == [True, False, False, True, False, False]


def test_organisers_see_single_answers_and_participants_values_alone(tmp_path):
    source = scored(tmp_path, [*PROBABILITIES[:5], None])

    organiser, participant = (
        page_text(source, audience) for audience in ("organiser", "participant")
    )

    assert "ROC curve of diagnosis" in organiser
    assert "1 counts as wrong: missing (secret_6)" in organiser
    for secret in ("ROC curve of", "secret", "by the class of", "6 answers"):
        assert secret not in participant
    # Positive cases have 0.9, 0.6 and 0.2; others 0.6, 0.1, and a missing answer, which
    # is in front of all. So 4 and a half of 9 pairs are in order, and 3 of 6 are right.
    for title in ("Accuracy", "AUROC"):
        tile = f'<dt>{title} of diagnosis</dt><dd class="big"'
        assert f"{tile}>0.500</dd>" in participant
        assert f'{tile} data-v="0.5">0.500</dd>' in organiser


def test_answers_of_another_run_are_not_shown(tmp_path):
    source = scored(tmp_path)
    other = scored(tmp_path / "other", [0.1, *PROBABILITIES[1:]])
    source.with_name("answers.csv").write_bytes(
        other.with_name("answers.csv").read_bytes()
    )

    with pytest.raises(MetricsFileError, match="is not that of metrics"):
        sheets_of(source)


def test_what_is_no_table_of_answers_is_refused_in_one_line(tmp_path):
    source = scored(tmp_path)
    source.with_name("answers.csv").write_text("a,b\n", encoding="utf-8")

    with pytest.raises(MetricsFileError, match="no table of answers"):
        sheets_of(source)


# --- Two evaluations ---------------------------------------------------------------


def test_a_comparison_says_which_answers_are_right_in_one_alone(tmp_path):
    first = scored(tmp_path / "old")
    second = scored(tmp_path / "new", types=["cyst", "cyst", "tumour", *["cyst"] * 3])
    first = first.rename(tmp_path / "old" / "out" / "old.json")
    second = second.rename(tmp_path / "new" / "out" / "new.json")

    organiser = page_text(first, "organiser", second)

    assert "1 are right in new alone, 1 in old alone; p of McNemar" in organiser
    participant = page_text(first, "participant", second)
    assert "McNemar" not in participant
    assert not first.with_name("participant.comparison.json").exists()
    content = json.loads(first.with_name("organiser.comparison.json").read_text())
    (test,) = content["decisions"][1:]
    assert test == {
        "evaluation": "new",
        "answers": "type",
        "cases": 6,
        "gained": 1,
        "lost": 1,
        "p": 1.0,
    }
    auroc = next(own for own in content["answers"] if own["metric"][:5] == "auroc")
    assert (auroc["difference"], auroc["interval"]) == (0, [0, 0])
    # 2 in 64 draws have one class alone: of 1,000, about 31.
    assert 940 <= auroc["draws"] < 1000
    assert "<td>0.667</td>" in participant
