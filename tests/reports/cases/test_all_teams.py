"""The page of a case by all teams: its slice, its order, and who has no picture."""

import re
import shutil
import zipfile

import numpy as np
import pytest

from flare.challenge.metrics import METRICS
from flare.common.errors import FlareError
from flare.ranking.rules import RankingOptions
from flare.reports.cases.all_teams import _place, _TeamCase
from flare.reports.cases.options import CaseOptions
from tests.builders import error_of, organ_boxes, write_nifti
from tests.builders.case_pages import missed_and_shifted, write_teams_on_cases
from tests.builders.errors import told
from tests.builders.pages import Page, write_report

BOXES = organ_boxes()

RANKING = RankingOptions(metrics=("dsc", "nsd"), bootstrap=0)


def liver(*missed):
    """A liver of 8 slices, 6 x 6 voxels each, without columns of some slices."""
    labels = np.zeros((10, 12, 12), dtype=np.uint8)
    labels[1:9, 2:8, 2:8] = 1
    for number, columns in missed:
        labels[number, 2:8, 8 - columns : 8] = 0
    return labels


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Results and labels of two cases by four teams.

    One was not scored on the first case, and the predictions of another are gone.
    """
    monkeypatch.chdir(tmp_path)
    good = {"case_1": BOXES, "case_2": BOXES}
    fair, gone = (good | {"case_1": organ_boxes(shift=n)} for n in (1, 2))
    teams = {"fair": fair, "good": good, "gone": gone, "late": {"case_2": BOXES}}
    write_teams_on_cases(tmp_path, good, teams)
    shutil.rmtree(tmp_path / "results" / "gone" / "predictions")
    return tmp_path


def written(folder, output="page.html", *, case=("case_1",), **options):
    cases = CaseOptions(ground_truth=folder / "labels", case=case, **options)
    more = {"cases": cases, "ranking": RANKING, "is_organiser": True}
    return write_report([folder / "results"], folder / output, **more).read_text()


def test_the_best_team_is_first_and_teams_without_a_picture_last(made):
    """Of seven columns of the liver six are shared, when it is shifted by one.

    The three other organs have a DSC of 1: the mean is (3 + 6 / 7) / 4 = 0.964.
    """
    html = written(made)

    assert re.findall("<h3>(.*)</h3>", html) == ["good", "fair", "gone", "late"]
    assert html.count('role="img"') == 2
    assert "4 teams, best first: good (DSC 1.000) to fair (DSC 0.964)." in html
    assert "No picture of gone, late." in html
    assert "Its prediction of this case is not there." in html
    assert "Not scored: no file was submitted" in html
    assert '<li class="s2">liver 0.86</li>\n<li class="s0">kidney 1.00</li>' in html
    rows = Page(html).table("DSC of each team and organ")
    values = {str(row["team"]): row["liver"].exact for row in rows}
    shares = {"good": 7 / 7, "fair": 6 / 7, "gone": 5 / 7, "late": 0 / 7}
    assert values == pytest.approx(shares)


def test_a_team_without_the_deciding_value_is_behind_the_others():
    values = {"near": 1.0, "far": 90.0, "none": None}
    metrics = [METRICS["hd95"]]
    places = [_place(metrics, _TeamCase(t, {"hd95": v}, "")) for t, v in values.items()]
    assert places == sorted(places)


def test_the_best_team_is_that_of_what_is_ranked(tmp_path):
    reference, missed, shifted = missed_and_shifted()
    teams = {"missed": {"case": missed}, "shifted": {"case": shifted}}
    rules = {"challenge": "brats23-gli"}
    write_teams_on_cases(tmp_path, {"case": reference}, teams, **rules)

    html = written(tmp_path, case=("case",))

    title = "Lesion-wise DSC (BraTS 2023 GLI)"
    ends = f"best first: shifted ({title} 0.929) to missed ({title} 0.500)."
    assert ends in html


def test_all_show_the_slice_that_is_worst_over_all_teams(tmp_path):
    """In slice 5 one team misses three columns, in slice 4 two teams miss two each.

    The surface is at most 3 mm away, so that two times two weigh more than three.
    """
    missed = {"a": (4, 3), "b": (3, 2), "c": (3, 2)}
    teams = {team: {"case": liver(part)} for team, part in missed.items()}
    write_teams_on_cases(tmp_path, {"case": liver()}, teams)

    html = written(tmp_path, case=("case",))

    assert "<p>Axial slice 4 of 10, in which the errors of all teams" in html
    assert re.findall(r'role="img" aria-label="(.*?)"', html) == [
        *("b: liver 12 voxels missed, 0 added", "c: liver 12 voxels missed, 0 added"),
        "a: no voxel is wrong",
    ]


def test_predictions_may_be_folders_or_zips_and_cts_lie_behind_all(made):
    teams = made / "teams"
    for team in ("fair", "good"):
        shutil.copytree(made / "results" / team / "predictions", teams / team)
    ct = np.where(BOXES, 100, -20).astype(np.int16)
    write_nifti(made / "images" / "case_1_0000.nii.gz", ct, dtype="<i2")
    kept = written(made, images=made / "images")
    with zipfile.ZipFile(teams / "good.zip", "w") as archive:
        for file in (teams / "good").iterdir():
            archive.write(file, file.name)
    shutil.rmtree(teams / "good")
    (teams / "stranger.tar.gz").touch()  # it was refused, and has no results

    given = written(made, predictions=teams, images=made / "images")

    assert given == kept
    assert re.findall('<(image|use) [^>]*class="ct"', given) == ["image", "use"]


def test_the_map_of_cases_leads_to_pages_that_were_written_beside_it(made):
    index = written(made, "report", case=("case_1",))

    links = re.findall(r'<a href="(all-teams/[^"]*)">([^<]*)</a>', index)
    assert links == [("all-teams/case_1.html", "case_1")] * 2
    page = (made / "report" / links[0][0]).read_text()
    assert '<a href="../index.html">The ranking</a>' in page
    assert "The ranking</a>" not in written(made)
    report = made / "report"
    write_report([made / "results"], report, is_organiser=False, ranking=RANKING)
    assert "all-teams" not in (report / "index.html").read_text()


def other_rules(made):
    maps = {"case_1": BOXES, "case_2": BOXES}
    write_teams_on_cases(made, maps, {"other": maps}, challenge="flare22")


def changed(made):
    write_nifti(made / "results/fair/predictions/case_1.nii.gz", organ_boxes(shift=3))


def cut(made):
    file = made / "results/fair/predictions/case_1.nii.gz"
    file.write_bytes(file.read_bytes()[:-30])


def without_predictions(made):
    for folder in (made / "results").glob("*/predictions"):
        shutil.rmtree(folder)


REFUSALS = {
    "a case that no team has": ("case_11", lambda made: None,
        "G06", "no team has a case case_11 (did you mean case_1?)"),
    "no results": ("case_1", lambda made: shutil.rmtree(made / "results"),
        "G06", "no folder in it has a metrics.json"),
    "no prediction": ("case_1", without_predictions,
        "H01", "no team has a prediction of case case_1"),
    "a prediction that was not scored": ("case_1", changed,
        "G05", "its DSC of liver is 0.571429, but metrics.json says 0.857143"),
    "a damaged prediction": ("case_1", cut,
        "H01", "fair: case_1.nii.gz: its compressed data end early"),
    "teams of other rules": ("case_1", other_rules,
        "G05", "it was scored by other rules"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_shown_is_refused_in_a_line(made, what):
    case, change, code, problem = REFUSALS[what]
    change(made)

    error = error_of(FlareError, written, made, case=(case,))

    assert told(error)[0] == code
    assert problem in str(error)
    assert "\n" not in str(error)
    assert not (made / "page.html").exists()
