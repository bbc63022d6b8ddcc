"""Images that are measured with a model beside them, with an engine by script."""

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from flare.cli.main import main
from flare.common.errors import InputError
from flare.measuring import host
from flare.measuring.archive.reading import read_archive
from flare.measuring.host import Room
from flare.measuring.inputs import find_archives
from flare.results.errors import MeasurementError
from flare.results.ledger_csv import read_ledger
from tests.builders.archives import FILES, save
from tests.builders.models import WEIGHTS, entry, write_model
from tests.builders.schemas import file_problems
from tests.builders.teams import LIMITS as TINY
from tests.builders.teams import PREDICT, brisk_command, left_behind, save_team

OTHER = {**WEIGHTS, "plans.json": b"[]"}

NEEDS_MODEL = f"""
test -s /opt/ml/model/weights/fold_0.pt || exit 7
{PREDICT}
"""

LIMITS = ("--gpu", "none", "--caches", "warm", "--interval", "0.02", "--no-warm-up")


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def measure(bench, *options):
    """Measure what lies in the folder of archives; the status."""
    words = (
        *("measure", bench.folder / "archives", "--images", bench.images),
        *("--output", bench.results, "--memory", "120m", *LIMITS, *options),
    )
    return main([str(word) for word in words])


def settings(bench, team):
    """What measurement.json says of a team."""
    record = json.loads((bench.results / team / "measurement.json").read_text())
    return record["settings"]


# --- flare measure ------------------------------------------------------------------


def test_a_team_is_measured_with_its_model(bench):
    """It is there for every case, under its name, and gone in the end."""
    bench.archive("a", NEEDS_MODEL)
    model = write_model(bench.folder / "archives", name="a.model.tar.gz")

    assert measure(bench) == 0

    assert {row["status"] for row in bench.rows("a").values()} == {"ok"}
    assert settings(bench, "a")["model_sha256"] == sha256(model)
    file = bench.results / "a" / "measurement.json"
    assert file_problems(file, "measurement") == []
    (session,) = json.loads(file.read_text())["sessions"]
    assert session["model"] == "a.model.tar.gz"
    assert "--volume MODEL:/opt/ml/model/:ro" in session["command"]
    assert file_problems(bench.results / "ledger.csv", "ledger-row") == []
    assert read_ledger(bench.results / "ledger.csv")[0].model_sha256 == sha256(model)
    assert bench.engine.left() == []
    assert [name for name in bench.hidden() if "work" in name] == []


def test_a_model_under_another_name_is_given(bench):
    bench.archive("a", NEEDS_MODEL)
    model = write_model(bench.folder / "elsewhere", name="model.tar.gz")

    assert measure(bench, "--model", model) == 0

    assert {row["status"] for row in bench.rows("a").values()} == {"ok"}


def test_without_its_model_the_image_fails(bench):
    """The test of the tests: the script does need it."""
    bench.archive("a", NEEDS_MODEL)

    measure(bench)

    assert {row["status"] for row in bench.rows("a").values()} == {"failed"}


@pytest.mark.slow
def test_a_team_is_not_measured_half_with_another_model(bench, capfd):
    """Neither with one, nor without; a reason puts all that was measured aside."""
    bench.archive("a", NEEDS_MODEL)
    model = write_model(bench.folder / "archives", name="a.model.tar.gz")
    first = sha256(model)
    assert measure(bench) == 0
    write_model(bench.folder / "archives", OTHER, name="a.model.tar.gz")
    second = sha256(model)
    capfd.readouterr()

    assert measure(bench) == 1
    line = capfd.readouterr().err
    assert "another model on " in line
    assert f"(SHA-256 {first[:12]}, now {second[:12]})" in line
    model.unlink()
    assert measure(bench) == 1
    assert f"(SHA-256 {first[:12]}, now none)" in capfd.readouterr().err
    assert settings(bench, "a")["model_sha256"] == first

    write_model(bench.folder / "archives", OTHER, name="a.model.tar.gz")
    assert measure(bench, "--new-archive", "a better fold") == 0

    assert settings(bench, "a")["model_sha256"] == second
    (aside,) = (bench.results / ".replaced").iterdir()
    archive = sha256(bench.folder / "archives" / "a.tar.gz")
    assert aside.name == f"a-{archive[:12]}-{first[:12]}"
    assert (aside / "efficiency.csv").exists()


def test_a_record_with_another_model_is_not_gone_on_with(bench):
    """Where only measurement.json tells: H07, in both directions."""
    bench.archive("a", NEEDS_MODEL)
    file = bench.results / "a" / "measurement.json"
    archive = read_archive(bench.folder / "archives" / "a.tar.gz")
    bench.measure(archive.path, cases=1)
    record = json.loads(file.read_text())
    assert "model_sha256" not in record["settings"]
    record["settings"]["model_sha256"] = "0" * 64
    file.write_text(json.dumps(record))

    error = bench.measure(archive.path, cases=1)["a"]

    assert f"was measured with model_sha256 {'0' * 38}" in str(error)
    assert "now it is none. Measure it as before" in str(error)


def test_a_broken_model_is_the_teams_mistake(bench, capfd):
    """The other team is measured; refused.csv has the line."""
    bench.archive("a", NEEDS_MODEL)
    bench.archive("b", PREDICT)
    write_model(
        bench.folder / "archives", WEIGHTS, entry("../x"), name="a.model.tar.gz"
    )

    assert measure(bench) == 1

    err = capfd.readouterr().err
    assert err.startswith("a.model.tar.gz: it holds ../x, which lies outside of it. ")
    assert err.endswith(" [F19]\n")
    row = (bench.results / "refused.csv").read_text().splitlines()[1]
    assert row.startswith('a,a.model.tar.gz,,"a.model.tar.gz: it holds ../x, w')
    assert not (bench.results / "a").exists()
    assert {row["status"] for row in bench.rows("b").values()} == {"ok"}


def test_a_model_needs_room(bench, monkeypatch):
    """A GiB more than it has; no fault of the team, and nothing is run."""
    archive = bench.archive("a", NEEDS_MODEL)
    write_model(archive.parent, name="a.model.tar.gz")
    little, real = Room(free_bytes=2**29, free_files=None), host.room
    monkeypatch.setattr(
        host, "room", lambda folder: little if ".work" in str(folder) else real(folder)
    )

    error = bench.measure(archive)["a"]

    assert isinstance(error, MeasurementError)
    assert "0.5 GiB are free in" in str(error)
    assert "and the model needs 1.0. Make room there." in str(error)
    assert bench.engine.calls("create") == []


def test_one_model_for_several_teams_is_refused(bench, capfd):
    bench.archive("a", PREDICT)
    bench.archive("b", PREDICT)
    model = write_model(bench.folder, name="model.tar.gz")

    assert measure(bench, "--model", model) == 1

    assert capfd.readouterr().err == (
        "--model: it is of one team, but several archives were given. Call each"
        " TEAMNAME.model.tar.gz, beside its archive. [H01]\n"
    )


def test_models_of_a_folder_are_no_archives(tmp_path):
    archive = save(tmp_path, FILES)
    write_model(tmp_path)

    assert find_archives(tmp_path) == (archive,)


def test_a_model_without_an_archive_is_said(tmp_path):
    save(tmp_path, FILES)
    write_model(tmp_path, name="b.model.tar.gz")

    with pytest.raises(InputError, match=r"there is no b\.tar\.gz beside it"):
        find_archives(tmp_path)


# --- flare check ----------------------------------------------------------------------


def test_check_reads_the_model_too(tmp_path, capfd):
    archive = save(tmp_path, FILES)
    model = write_model(tmp_path)

    assert main(["check", str(archive)]) == 0
    said = capfd.readouterr().out.splitlines()
    assert said[1] == (
        f"team_a.model.tar.gz: model {sha256(model)[:12]}, 0 MB unpacked, can be"
        " unpacked."
    )

    broken = write_model(tmp_path / "x", {})
    assert main(["check", str(archive), "--model", str(broken)]) == 1
    assert capfd.readouterr().out.startswith("team_a.model.tar.gz: it holds no file. ")


def test_check_runs_an_image_with_its_model(bench, capfd):
    """And says what is missing where it was forgotten."""
    archive = bench.archive("a", NEEDS_MODEL)
    model = write_model(bench.folder, name="model.tar.gz")
    ct = bench.images / "validation_001_0000.nii.gz"
    words = ["check", str(archive), "--run", str(ct)]

    assert main([*words, "--model", str(model)]) == 0
    assert "validation_001: ok, " in capfd.readouterr().out

    assert main(words) == 1
    assert "exit code 7" in capfd.readouterr().out
    assert bench.engine.left() == []


@pytest.mark.parametrize("kind", ["folder", "zip", "other"])
def test_predictions_have_no_model(tmp_path, capfd, predictions, kind):
    file = predictions
    if kind == "zip":
        file = Path(shutil.make_archive(str(tmp_path / "mine"), "zip", predictions))
    elif kind == "other":
        file = next(predictions.iterdir())

    status = main(["check", str(file), "--model", str(write_model(tmp_path))])

    assert status == 1
    assert capfd.readouterr().err == (
        "--model: only an image has one, TEAMNAME.tar.gz. Give it in the place of the"
        " predictions. [H01]\n"
    )


# --- flare serve ----------------------------------------------------------------------


@pytest.fixture
def serve(bench, capfd):
    """Serve what lies in the folder of archives; the status, and what was written."""
    folder = bench.folder / "archives"

    def run(*options):
        for file in folder.glob("*.tar.gz"):
            if time.time() - file.stat().st_mtime < 50:  # nobody has waited for it
                os.utime(file, (time.time() - 100,) * 2)
        words = (
            *("serve", "--drop-folder", folder, "--output", bench.results, "--once"),
            *("--images", bench.images, "--ground-truth", bench.labels),
            *(*LIMITS, *options),
        )
        status = main([str(word) for word in words])
        return status, *capfd.readouterr()

    return run


def answer_of(bench, team):
    """What a team is told."""
    return json.loads(
        (bench.folder / "archives" / "returned" / f"{team}.json").read_text()
    )


@pytest.mark.slow
def test_a_model_in_the_folder_is_part_of_the_submission(bench, serve):
    """Another one is measured anew; what was there before is put aside."""
    bench.archive("a", NEEDS_MODEL)
    folder = bench.folder / "archives"
    first = sha256(write_model(folder, name="a.model.tar.gz"))

    status, _, stderr = serve()

    assert (status, stderr) == (0, "")
    assert answer_of(bench, "a")["metrics"]["aggregates"]["dsc_mean"] == 1
    shutil.rmtree(folder / "returned")
    second = sha256(write_model(folder, OTHER, name="a.model.tar.gz"))

    status, _, stderr = serve()

    assert (status, stderr) == (0, "")
    assert answer_of(bench, "a")["status"] == "Succeeded"
    sent = read_ledger(bench.results / "ledger.csv")
    assert [entry.model_sha256 for entry in sent] == [first, second]
    assert sent[1].reason == "handed in again, and served"
    assert len([*(bench.results / ".replaced").iterdir()]) == 1


@pytest.mark.slow
def test_a_broken_model_in_the_folder_is_answered(bench, serve):
    bench.archive("a", NEEDS_MODEL)
    folder = bench.folder / "archives"
    write_model(folder, WEIGHTS, entry("plans.json"), name="a.model.tar.gz")

    status, _, stderr = serve()

    assert (status, stderr) == (0, "")
    assert answer_of(bench, "a") == {
        "status": "Failed",
        "error_message": (
            "a.model.tar.gz: it holds plans.json twice. Write it with: tar"
            " --hard-dereference -czf TEAMNAME.model.tar.gz -C FOLDER . [F19]"
        ),
    }
    assert bench.engine.left() == []


# --- A real engine ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.docker
def test_a_model_in_a_real_engine(tmp_path, team_base, two_cases):
    """For a user without rights, on every case, and nobody can change it."""
    script = (
        "touch /opt/ml/model/x 2> /dev/null && exit 6\n"
        "test -x /opt/ml/model/run/tool || exit 5\n"
        "test -L /opt/ml/model/latest.pt || exit 4\n"
        f"cat /opt/ml/model/latest.pt > /dev/null || exit 3\n{NEEDS_MODEL}"
    )
    sent = tmp_path / "archives"
    sent.mkdir()
    teams = {"team-1000": "USER 1000:1000", "team-0": "USER 0:0"}
    for team, user in teams.items():
        save_team(tmp_path, team, script, user).rename(sent / f"{team}.tar.gz")
        write_model(
            sent,
            WEIGHTS,
            entry("run/tool", b"#!/bin/sh\n", mode=0o700),
            entry("latest.pt", type=b"2", linkname="weights/fold_0.pt"),
            name=f"{team}.model.tar.gz",
        )

    brisk_command(
        *("measure", sent, "--images", two_cases / "images"),
        *("--output", tmp_path / "results", *TINY, "--no-warm-up"),
    )

    for team in teams:
        log = tmp_path / "results" / team / "efficiency.csv"
        assert log.read_text().count(",ok,") == 2, log.read_text()
    assert left_behind(tmp_path / "results") == []
