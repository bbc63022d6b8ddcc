"""That nobody has confirmed the rules: in the Methods of rankings and evaluations."""

import pytest

from flare.cli.main import main
from tests.builders import (
    editions,
    read_metrics,
    run_evaluate,
    run_flare,
    write_nifti,
)

SENTENCE = (
    "Label maps were scored by rules as participants report them, not confirmed by the"
    " organisers."
)
RANKING = '\n[[ranking]]\nmetric = "dsc"\nbetter = "higher"\n'


@pytest.fixture
def teams(tmp_path):
    """Evaluate two teams by the rules of a challenge, and say where the results are."""

    def evaluate(base):
        challenge = tmp_path / "mine.toml"
        challenge.write_text(f'extends = "{base}"{RANKING}', encoding="utf-8")
        for case, (reference, prediction) in editions.lesion_pairs().items():
            write_nifti(tmp_path / "references" / f"{case}.nii.gz", reference)
            write_nifti(tmp_path / "a" / f"{case}.nii.gz", prediction)
            write_nifti(tmp_path / "b" / f"{case}.nii.gz", reference)
        for team in ("a", "b"):
            run = run_evaluate(
                *(tmp_path / team, tmp_path / "references"),
                *(tmp_path / "results" / team, "--challenge", challenge),
            )
            assert (run.returncode, run.stderr) == (0, b"")
        return tmp_path / "results", challenge

    return evaluate


@pytest.mark.parametrize(
    ("base", "count"), [("flare26-pancancer", 1), ("flare24-lesion", 0)]
)
def test_the_methods_of_a_ranking_say_so(teams, tmp_path, base, count):
    results, challenge = teams(base)

    run = run_flare(
        *("rank", results, "--output", tmp_path / "ranking"),
        *("--challenge", challenge, "--bootstrap", "0"),
    )

    assert (run.returncode, run.stderr) == (0, "")
    text = (tmp_path / "ranking" / "methods.txt").read_text(encoding="utf-8")
    assert text.count(SENTENCE) == count


@pytest.mark.parametrize(
    ("base", "count"), [("flare26-pancancer", 1), ("flare24-lesion", 0)]
)
def test_the_methods_of_an_evaluation_say_so(
    teams, tmp_path, base, count, monkeypatch, capfd
):
    """No figure is drawn beside them, which takes seconds."""
    results, _ = teams(base)
    monkeypatch.setattr("flare.reports.paper_figures.WIDTHS_MM", {})

    status = main(
        [
            *("report", str(results / "a" / "metrics.json")),
            *("--output", str(tmp_path / "page.html"), "--audience", "organiser"),
            *("--figures", str(tmp_path / "figures")),
        ]
    )

    assert (status, capfd.readouterr().err) == (0, "")
    text = (tmp_path / "figures" / "methods.txt").read_text(encoding="utf-8")
    assert text.count(SENTENCE) == count
    assert "lesion: 1 of 2 cases without it were left empty." in text
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    note = "rules as participants report them, not confirmed by the organisers"
    assert page.count(note) == count
    evaluation = read_metrics(results / "a")["evaluation"]
    assert ("rules_note" in evaluation) == bool(count)
