"""Folders of teams that have handed in answers, as an evaluation leaves them."""

import json

from flare.answers.values import answer_values
from flare.challenge.reading import scoring_rules
from flare.challenge.rules import Challenge
from flare.common.schema import build
from flare.results.answers_csv import AnswerRow, write_answers

DIAGNOSIS = {
    "name": "diagnosis",
    "kind": "binary",
    "file": "results.csv",
    "metrics": ["accuracy", "auroc"],
}
SURVIVAL = {
    "name": "survival",
    "kind": "time",
    "file": "times.csv",
    "metrics": ["c_index"],
}
LIVER = {"label": 1, "name": "liver", "tolerance_mm": 1.0}


def answer_challenge(*answers, ranking, **keys):
    """A challenge of answers, ranked by metrics that each have their better end."""
    rules = [{"metric": name, "better": better} for name, better in ranking.items()]
    values = {"name": "Made up", "answers": list(answers), "ranking": rules, **keys}
    return build(Challenge, values, key="made-up", checksum="0" * 64)


def write_answer_team(folder, challenge, answers, dsc=None, **evaluation):
    """metrics.json and answers.csv of a team.

    Answers are references and predictions by case, by the name of the answers; a
    prediction of None is missing. DSC are by case.
    """
    folder.mkdir(parents=True)
    values, rows = {}, []
    for rules in challenge.answers:
        own = [
            AnswerRow(
                answers=rules.name,
                case=case,
                reference=str(reference),
                prediction="" if prediction is None else str(prediction),
                problem="missing" if prediction is None else "",
            )
            for case, (reference, prediction) in answers[rules.name].items()
        ]
        values |= answer_values(rules, own)
        rows += own
    case = {}
    if dsc:
        names = {str(n): f"{name}.nii.gz" for n, name in enumerate(sorted(dsc))}
        scores = {str(n): dsc[name] for n, name in enumerate(sorted(dsc))}
        case = {"dsc": scores, "nsd": scores, "gt_fname": names}
    content = {
        "case": case,
        "aggregates": values,
        "evaluation": {"challenge_sha256": "a", "references_sha256": "b",
                       "rules": scoring_rules(challenge), "version": "1", **evaluation},
    }  # fmt: skip
    (folder / "metrics.json").write_text(json.dumps(content))
    write_answers(folder / "answers.csv", rows)


def paired(references, predictions, start="c"):
    """References and predictions by case: c1, c2, ..."""
    pairs = zip(references, predictions, strict=True)
    return {f"{start}{number}": pair for number, pair in enumerate(pairs, start=1)}
