"""All teams at once: the bytes of ``flare evaluate``, and nothing done twice."""

import shutil
import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import flare
from flare.common.errors import InputError, OutputError
from flare.common.text import safe
from flare.evaluation.labelmaps.reading import LabelMap
from flare.evaluation.many import cases
from flare.evaluation.many import score as run_module
from flare.evaluation.many import teams as teams_module
from flare.evaluation.many.cases import rules_key
from flare.evaluation.many.teams import UNPACKED
from flare.evaluation.options import EvaluationOptions
from flare.evaluation.plan import with_options
from flare.evaluation.submission.find import LabelMapFile
from flare.ranking.table import read_results
from flare.results.archives_csv import (
    Flag,
    Refusal,
    read_flags,
    read_refused,
    replace_rows,
)
from tests.builders import error_of, organ_boxes, write_cases, write_file, write_nifti
from tests.builders.errors import all_told, told
from tests.builders.many import CASES, marked, voxels_read, write_teams, zipped
from tests.builders.results import FLARE21, ranked

TEAMS = ("alpha", "beta", "gamma")


@pytest.fixture
def score(tmp_path):
    teams, labels = write_teams(tmp_path, TEAMS)

    def run(**options):
        results = tmp_path / "results"
        return flare.evaluate_many(teams, labels, results, workers=1, **options)

    return run


def metrics_of(tmp_path, team):
    return (tmp_path / "results" / team / "metrics.json").read_bytes()


def alone(tmp_path, team, **options):
    results = flare.evaluate(tmp_path / "teams" / team, tmp_path / "labels", **options)
    return flare.write_metrics(results, tmp_path / "alone").read_bytes()


@pytest.mark.parametrize("options", [{}, {"on_bad_case": "worst", "decimals": 3}])
def test_each_team_has_the_bytes_of_an_evaluation_of_its_own(score, tmp_path, options):
    expected = {team: alone(tmp_path, team, **options) for team in TEAMS}
    zipped(tmp_path / "teams" / "beta")

    found = score(**options)

    assert {team: metrics_of(tmp_path, team) for team in TEAMS} == expected
    assert [t.team for t in found.teams] == list(TEAMS)
    assert not (tmp_path / "results" / UNPACKED).exists()


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_reference_is_read_once_for_all_teams(score, tmp_path, monkeypatch, at_once):
    """Also where one is mirrored, is a zip, lacks a case or has a damaged one."""
    monkeypatch.setattr(run_module, "TEAMS_AT_ONCE", at_once)
    folder = tmp_path / "teams"
    for number, case in enumerate(CASES):
        write_nifti(tmp_path / "labels" / f"{case}.nii.gz", marked(number, 0))
    write_nifti(folder / "alpha" / "case_2.nii.gz", organ_boxes()[:, :, ::-1])
    (folder / "beta" / "case_1.nii.gz").unlink()
    damaged = folder / "gamma" / "case_2.nii.gz"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    expected = {team: alone(tmp_path, team, on_bad_case="worst") for team in TEAMS}
    zipped(folder / "gamma")
    paths = []
    read_labels = LabelMapFile.read_labels

    def counted(file, *arguments, **options):
        paths.append(file.path)
        return read_labels(file, *arguments, **options)

    monkeypatch.setattr(LabelMapFile, "read_labels", counted)
    score(on_bad_case="worst")

    labels = [path.name for path in paths if path.parent.name == "labels"]
    assert sorted(labels) == [f"{case}.nii.gz" for case in CASES]
    assert {team: metrics_of(tmp_path, team) for team in TEAMS} == expected


def test_no_team_can_change_the_reference_of_the_others(tmp_path):
    _, labels = write_teams(tmp_path, [])
    path = labels / "case_1.nii.gz"
    file = LabelMapFile(case="case_1", path=path, name=path.name)
    reference = cases.SharedReference.of(file, "digest")

    label_map = reference.read_labels([1, 2, 3, 4])

    assert reference.read_labels([1, 2, 3, 4]).voxels is label_map.voxels
    with pytest.raises(ValueError, match="read-only"):
        label_map.labels[0] = 1


def test_the_references_that_were_used_last_stay_as_far_as_they_have_room(monkeypatch):
    """Two maps of 40 bytes, and not three."""
    read = []

    def read_labels(file, _):
        read.append(file.sha256)
        voxels = SimpleNamespace(labels=np.zeros(40, dtype=np.uint8))
        return LabelMap(grid=None, voxels=voxels, allowed=())

    monkeypatch.setattr(LabelMapFile, "read_labels", read_labels)
    references = cases.References(room=100)
    for sha256 in "abaccab":
        references.read(SimpleNamespace(sha256=sha256, npz=None), [1])
    assert read == [*"abcb"]


def test_few_zips_are_unpacked_at_once(tmp_path, monkeypatch):
    """One team is scored at a time, and another one is opened meanwhile."""
    names = [f"team_{number}" for number in range(6)]
    folders = write_teams(tmp_path, names)
    for name in names:
        zipped(tmp_path / "teams" / name)
    numbers = []

    def unpack(*arguments, unpack=teams_module.unpack_zip):
        numbers.append(len(list((tmp_path / "results" / UNPACKED).iterdir())))
        unpack(*arguments)

    monkeypatch.setattr(teams_module, "unpack_zip", unpack)
    monkeypatch.setattr(run_module, "TEAMS_AT_ONCE", 1)
    monkeypatch.setattr(run_module, "MOST_OPEN_TEAMS", 2)
    found = flare.evaluate_many(*folders, tmp_path / "results", workers=2)

    assert [(team.team, team.refusal) for team in found.teams] == [
        (name, "") for name in names
    ]
    assert max(numbers) == 2


def test_a_second_run_reads_no_voxel(score, tmp_path):
    """Nor does the first one of a file that is equal to another team's."""
    shutil.copytree(tmp_path / "teams" / "alpha", tmp_path / "teams" / "copy")
    before, files = [], len(TEAMS) * len(CASES)
    for numbers in ([3, 3, 0, 3], [0] * 4):
        with voxels_read() as read:
            found = score()
        files -= len(read)
        assert files == 0
        assert [(t.scored, t.cases) for t in found.teams] == [(n, 3) for n in numbers]
        copy = metrics_of(tmp_path, "copy")
        before.append(([t.means for t in found.teams], copy))
        assert copy == metrics_of(tmp_path, "alpha")
    assert before[0] == before[1]


def test_what_is_left_takes_the_other_teams_to_be_like_those_before(score, monkeypatch):
    """Three teams of three cases; each is looked at when the one before is scored."""
    monkeypatch.setattr(run_module, "TEAMS_AT_ONCE", 1)
    told = []

    score(on_progress=told.append)

    found = [(p.teams, p.scored, p.left, p.all_teams, p.kept) for p in told]
    assert found == [(1, 3, 6, 3, 0), (2, 6, 3, 3, 0), (3, 9, 0, 3, 0)]


def test_only_what_has_changed_is_scored_again(score, tmp_path):
    score()
    write_nifti(tmp_path / "labels" / "case_2.nii.gz", organ_boxes(shift=1))
    with voxels_read() as read:
        score()
    assert [file.name for file in read] == ["case_2.nii.gz"] * len(TEAMS)
    assert {file.parent.name for file in read} == set(TEAMS)

    file = tmp_path / "teams" / "beta" / "case_3.nii.gz"
    write_nifti(file, organ_boxes())
    with voxels_read() as read:
        score()
    assert read == [file]


def test_other_rules_or_another_version_score_all_cases_anew(monkeypatch):
    rules = flare.read_challenge("flare21")
    other = (
        with_options(rules, EvaluationOptions(grid="size")),
        with_options(rules, EvaluationOptions(unknown_labels="ignore")),
        replace(rules, checksum="of another file"),
    )
    keys = [rules_key(each, check_only=False) for each in (rules, *other)]
    keys.append(rules_key(rules, check_only=True))
    monkeypatch.setattr(cases, "__version__", "99.0")
    keys.append(rules_key(rules, check_only=False))

    assert len(set(keys)) == len(keys)


def test_a_bad_team_gets_its_line_and_the_others_go_on(score, tmp_path):
    (tmp_path / "teams" / "beta" / "case_2.nii.gz").unlink()
    (tmp_path / "teams" / "gamma.zip").write_bytes(b"no zip")
    shutil.rmtree(tmp_path / "teams" / "gamma")
    write_file(tmp_path / "results" / "beta" / "metrics.json", "of an older run")

    found = score()

    assert [bool(t.refusal) for t in found.teams] == [False, True, True]
    assert not (tmp_path / "results" / "beta" / "metrics.json").exists()
    beta, gamma = read_refused(tmp_path / "results")
    assert (beta.team, beta.archive) == ("beta", "beta")
    assert (gamma.team, gamma.archive) == ("gamma", "gamma.zip")
    assert told(beta.problem)[0] == "F05"
    assert told(gamma.problem) == ("H06", "gamma.zip")


def test_a_zip_waits_for_room_that_others_have_while_they_are_open(
    tmp_path, monkeypatch
):
    """There is room for one: the others are opened again when that one is done."""
    folders = write_teams(tmp_path, TEAMS)
    for team in TEAMS:
        zipped(tmp_path / "teams" / team)
    unpacked = tmp_path / "results" / UNPACKED

    def usage(_):
        is_full = len(list(unpacked.iterdir())) > 1
        return SimpleNamespace(free=0 if is_full else 2**40)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    found = flare.evaluate_many(*folders, tmp_path / "results", workers=2)
    assert [(team.team, team.refusal) for team in found.teams] == [
        (team, "") for team in TEAMS
    ]


def test_a_zip_that_nothing_else_keeps_from_its_room_is_refused(
    score, tmp_path, monkeypatch
):
    zipped(tmp_path / "teams" / "beta")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    refusals = [team.refusal for team in score().teams]
    assert [bool(refusal) for refusal in refusals] == [False, True, False]
    assert "beta.zip: it has no room here" in refusals[1]


def test_a_zip_of_more_than_label_maps_can_have_is_refused_early(score, tmp_path):
    """References have 16 bytes for a voxel, and 1 MiB for each of 3 files.

    What nobody reads does not count, as of an algorithm that has kept probabilities.
    """
    for name, file in (("beta", "more.nii"), ("gamma", "more.npz")):
        team = tmp_path / "teams" / name
        (team / file).write_bytes(bytes(2**26))
        zipped(team)
    opened = []
    original = zipfile.ZipFile.open

    def note(archive, entry, *more):
        opened.append((Path(archive.filename).stem, entry.filename))
        return original(archive, entry, *more)

    with patch.object(zipfile.ZipFile, "open", note):
        refusals = [found.refusal for found in score().teams]
    assert [bool(refusal) for refusal in refusals] == [False, True, False]
    assert told(refusals[1]) == ("H06", "beta.zip")
    assert "64 MiB when it is unpacked, more than its label maps" in refusals[1]
    assert {team for team, _ in opened} == {"gamma"}
    assert "more.npz" not in {file for _, file in opened}


def test_rows_of_many_teams_are_not_written_for_each(score, tmp_path, monkeypatch):
    """Each time, all rows are read: with a thousand teams, that took half a minute."""
    written = []

    def write(results, kind, rows, teams):
        written.append([kind, *teams])
        replace_rows(results, kind, rows, teams)

    monkeypatch.setattr(teams_module, "replace_rows", write)
    monkeypatch.setattr(teams_module, "PAUSE_S", 1e9)
    for team in TEAMS:
        (tmp_path / "teams" / team / "case_2.nii.gz").unlink()

    score()

    assert written == [[Refusal, *TEAMS], [Flag, *TEAMS]]
    rows = read_refused(tmp_path / "results")
    assert [row.team for row in rows] == [*TEAMS]


def test_cases_that_look_mirrored_are_flagged_for_organisers_alone(score, tmp_path):
    """No organ meets its own mirror image: DSC 0. A second run knows it, too."""
    files = [tmp_path / "teams" / "beta" / f"{case}.nii.gz" for case in CASES]
    right = files[0].read_bytes()
    for file in files[:2]:
        write_nifti(file, organ_boxes()[:, :, ::-1])
    line = (
        "2 of 3 cases: mirrored left to right (case_1, case_2); their DSC is 0.00"
        " at the median, and would be about 1.00 without that"
    )

    for _ in range(2):
        found = {team.team: team for team in score().teams}
        assert found["beta"].flags == (line,)
        assert read_flags(tmp_path / "results") == (Flag(team="beta", flag=line),)
    assert "mirror" not in metrics_of(tmp_path, "beta").decode()
    found = read_results(tmp_path / "results", ranked("dsc"), FLARE21)
    assert found.warned[-1] == ("beta", line)

    for file in files[:2]:
        file.write_bytes(right)
    score()
    assert read_flags(tmp_path / "results") == ()


def test_what_is_wrong_with_a_file_is_remembered_too(score, tmp_path):
    """Also in its words: they are those of ``flare evaluate``."""
    bad = tmp_path / "teams" / "beta"
    write_nifti(bad / "case_1.nii.gz", marked(9, 3) * 60)
    (bad / "case_2.nii.gz").write_bytes((bad / "case_2.nii.gz").read_bytes()[:-9])
    error = error_of(flare.SubmissionError, flare.evaluate, bad, tmp_path / "labels")
    expected = [("F09", "case_2.nii.gz"), ("F11", "case_1.nii.gz")]
    assert all_told(error) == expected

    for _ in range(2):
        with voxels_read() as read:
            found = {team.team: team for team in score().teams}["beta"]
        assert found.refusal == str(error)

    assert read == []


@pytest.mark.parametrize(("at_once", "teams_left"), [(1, 2), (8, 0)])
def test_no_score_outlives_a_run_that_was_ended(
    score, tmp_path, monkeypatch, at_once, teams_left
):
    """What was done stays, and what was half done is done again."""
    monkeypatch.setattr(run_module, "TEAMS_AT_ONCE", at_once)
    told = []

    def stop(found):
        told.append(found)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score(on_team=stop)
    assert not list((tmp_path / "results").rglob(".*.part"))

    with voxels_read() as read:
        score()

    assert len(told) == 1
    assert len(read) == teams_left * len(CASES)


@pytest.mark.parametrize("content", ["", "{", '{"score": null}'])
def test_kept_scores_that_cannot_be_read_are_named(score, tmp_path, content):
    score()
    file = tmp_path / "results" / "scores.sqlite"
    if not content:
        file.write_bytes(b"no database" * 99)
    else:
        database = sqlite3.connect(file)
        database.execute("UPDATE scores SET content = ?", [content])
        database.commit()
        database.close()

    assert told(error_of(OutputError, score)) == ("H02", safe(file))


def test_the_table_of_all_teams_has_a_row_for_each_case(score):
    frame = score().to_frame()

    assert frame.index.names == ["team", "case"]
    assert list(frame.index) == [(team, case) for team in TEAMS for case in CASES]
    assert frame.loc["alpha", "dsc"].mean() > frame.loc["gamma", "dsc"].mean()
    assert set(frame["failure"]) == {""}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda folder: None, "it cannot be read as a folder"),
        (Path.mkdir, "neither a folder nor a zip file"),
        (lambda f: write_cases(f, ["case_1"]), "label maps lie in"),
    ],
)
def test_a_folder_without_teams_is_refused(tmp_path, make, problem):
    _, labels = write_teams(tmp_path, [])
    folder = tmp_path / "others"
    make(folder)

    folders = folder, labels, tmp_path / "results"
    error = error_of(InputError, flare.evaluate_many, *folders)

    assert told(error) == ("H01", safe(folder))
    assert problem in error.problem
    assert not (tmp_path / "results").exists()


def test_a_team_with_two_submissions_and_one_with_our_name_are_refused(tmp_path):
    teams, labels = write_teams(tmp_path, ["alpha", "beta", "scores.sqlite"])
    (teams / "alpha.zip").touch()

    found = flare.evaluate_many(teams, labels, tmp_path / "results", workers=1)

    two, scored, ours = (team.refusal for team in found.teams)
    assert "alpha, alpha.zip: 2 submissions" in two
    assert scored == ""
    assert told(ours) == ("H01", "scores.sqlite")


def test_workers_are_a_number(score):
    with pytest.raises(ValueError, match="workers"):
        flare.evaluate_many("teams", "labels", "results", workers=0)
