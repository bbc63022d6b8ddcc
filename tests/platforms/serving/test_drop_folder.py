"""A folder of archives as a source of submissions, with models beside some of them."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flare.common.errors import InputError
from flare.measuring.archive.reading import read_archive
from flare.measuring.archive.strict import ArchiveError, ModelError
from flare.platforms.serving.serve import Service
from flare.platforms.serving.source import DropFolder, NotNowError, failed, once
from flare.results.team_folder import derived_folder
from tests.builders import error_of, write_file
from tests.fakes.submissions import FakeWork

NOW = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)


@pytest.fixture
def source(tmp_path):
    return DropFolder(tmp_path, lambda: NOW)


def put(folder, name, *, ago=60, content=b"x"):
    """A file that has changed some seconds ago."""
    file = write_file(folder / name, content)
    os.utime(file, (NOW.timestamp() - ago,) * 2)
    return file


def titles(source):
    return [submission.title for submission in source.claimable()]


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        ({"a": 60, "a.model": 60, "b.model": 60, ".c": 60}, ["a.tar.gz"]),
        ({"a": 60, "a.model": 9}, []),
        ({"a": 9, "a.model": 60}, []),
        ({"a": 11, "a.model": 11}, ["a.tar.gz"]),
        ({f"{'a' * 60}x{'b' * 60}": 60, f"{'a' * 60}y{'b' * 60}": 60}, 2),
    ],
    ids=["a model is none", "model", "archive", "both", "long names"],
)
def test_an_archive_waits_ten_seconds_after_its_last_change(
    tmp_path, source, ago, expected
):
    """Ten seconds after the last change of either."""
    for name, seconds in ago.items():
        put(tmp_path, f"{name}.tar.gz", ago=seconds)

    if expected == 2:  # they differ in the middle alone, and have folders of their own
        assert len({one.team for one in source.claimable()}) == 2
    else:
        assert titles(source) == expected


def test_what_came_last_goes_last_whatever_date_a_team_gives_it(tmp_path, source):
    """A model counts, too. A date can be set by anybody, and none is asked for here."""
    for name, ago in {"c": 60, "b": 30, "a": 10**6, "c.model": 10**9}.items():
        put(tmp_path, f"{name}.tar.gz", ago=ago)
        time.sleep(0.05)  # the dates of files are some milliseconds apart

    assert titles(source) == ["b.tar.gz", "a.tar.gz", "c.tar.gz"]


def test_a_team_that_had_its_turn_goes_behind_those_that_wait(tmp_path):
    """However often it hands in; the last turns are known after a restart, too."""
    for name in ("b", "c", "a"):
        put(tmp_path, f"{name}.tar.gz")
        time.sleep(0.05)
    source = DropFolder(tmp_path, lambda: NOW, ["c", "b", "c"])
    assert titles(source) == ["a.tar.gz", "b.tar.gz", "c.tar.gz"]

    for turn in ("a", "b", "c", "a"):
        submission = source.claimable()[0]
        assert source.claim(submission, is_again=False).team == turn
        put(tmp_path, f"{turn}.tar.gz", ago=10**9)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: put(folder, "a.model.tar.gz", content=b"longer"),
        lambda folder: put(folder, "a.model.tar.gz", ago=50),
        lambda folder: (folder / "a.model.tar.gz").unlink(),
    ],
    ids=["other size", "other time", "none"],
)
def test_another_model_is_another_submission(tmp_path, source, change):
    """The one that was claimed before is not measured with it."""
    put(tmp_path, "a.tar.gz")
    put(tmp_path, "a.model.tar.gz")
    (before,) = source.claimable()

    change(tmp_path)

    (after,) = source.claimable()
    assert after.key != before.key
    with pytest.raises(ArchiveError, match="it was removed or replaced before it was"):
        source.download(before, tmp_path)
    assert source.download(after, tmp_path) == tmp_path / "a.tar.gz"


def test_a_claim_is_made_anew_after_a_kill_and_a_folder_may_vanish(tmp_path, source):
    put(tmp_path, "a.tar.gz")
    (one,) = source.claimable()
    assert source.claim(one, is_again=False) == one
    with pytest.raises(NotNowError):
        source.claim(one, is_again=True)
    tmp_path.rename(tmp_path.with_name("elsewhere"))

    with pytest.raises(FileNotFoundError):
        source.claimable()


# --- What anybody can put there ---------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")],
    ids=["pipe", "folder", "device"],
)
def test_what_is_no_file_is_no_archive(tmp_path, source, caplog, make):
    """It is said once; what lies beside it is taken."""
    make(tmp_path / "a.tar.gz")
    put(tmp_path, "b.tar.gz")

    assert titles(source) == ["b.tar.gz"]
    assert titles(source) == ["b.tar.gz"]

    assert caplog.text.count("and is not taken") == 1


def test_what_a_service_has_said_is_not_remembered_for_ever():
    said = []
    say = once(said.append)
    for text in (0, 0, *range(10_001), 0):
        say(text)
    assert said == [*range(10_001), 0]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_a_model_that_is_no_file_is_the_team_s_fault(tmp_path, make):
    """A pipe is not waited for."""
    put(tmp_path, "a.tar.gz")
    model = tmp_path / "a.model.tar.gz"
    make(model)
    source = DropFolder(tmp_path, lambda: datetime.now(UTC) + timedelta(days=1))
    (one,) = source.claimable()

    archive = read_archive(source.download(one, tmp_path), model=model)

    assert "F19" in [problem.code for problem in archive.problems]


def test_a_link_to_what_is_another_team_s_is_not_followed(tmp_path, source):
    """A model, an image, or one that takes a file's place: it may be secret."""
    for name in ("a.tar.gz", "a.model.tar.gz", "b.tar.gz"):
        put(tmp_path, name)
    (tmp_path / "b.model.tar.gz").symlink_to("a.model.tar.gz")
    (tmp_path / "c.tar.gz").symlink_to("a.tar.gz")
    a, b = sorted(source.claimable(), key=lambda one: one.team)

    with pytest.raises(ModelError, match="it is a link"):
        source.download(b, tmp_path)

    (tmp_path / "a.tar.gz").rename(tmp_path / "d.tar.gz")
    (tmp_path / "a.tar.gz").symlink_to("d.tar.gz")
    with pytest.raises(ArchiveError, match="it was removed or replaced"):
        source.download(a, tmp_path)


@pytest.mark.parametrize(
    "lay", [os.mkfifo, lambda path: path.symlink_to(path.parent.parent / "victim")]
)
def test_an_answer_is_written_through_nothing_that_was_laid_there(
    tmp_path, source, lay
):
    """Not into the file of another one, nor into a pipe that nobody reads."""
    victim = write_file(tmp_path / "victim", "mine")
    put(tmp_path, "a.tar.gz")
    (one,) = source.claimable()
    (tmp_path / "returned").mkdir()
    lay(tmp_path / "returned" / ".a.json.part")

    source.answer(one, failed("x"), is_again=False)

    assert victim.read_text() == "mine"
    answer = tmp_path / "returned" / "a.json"
    assert not answer.is_symlink()
    assert '"error_message": "x"' in answer.read_text()


@pytest.mark.parametrize("name", ["a.tar.gz", "a.model.tar.gz"])
def test_a_date_in_the_future_is_not_waited_for(tmp_path, name):
    """Ten seconds after it was set; the other one is old."""
    source = DropFolder(tmp_path, lambda: datetime.now(UTC) + timedelta(seconds=11))
    put(tmp_path, "a.tar.gz")
    put(tmp_path, "a.model.tar.gz")
    year_2099 = datetime(2099, 1, 1, tzinfo=UTC).timestamp()
    os.utime(tmp_path / name, (year_2099, year_2099))

    assert titles(source) == ["a.tar.gz"]
    assert titles(DropFolder(tmp_path, lambda: datetime.now(UTC))) == []


def test_a_file_that_is_removed_meanwhile_is_none(tmp_path, source, monkeypatch):
    """Here by the look that would tell its size."""
    put(tmp_path, "a.tar.gz")
    put(tmp_path, "b.tar.gz")
    a = source.claimable()[0]
    real = Path.stat

    def stat(path, **more):
        return real(path.with_name("gone") if path.name == "a.tar.gz" else path, **more)

    monkeypatch.setattr(Path, "stat", stat)

    assert titles(source) == ["b.tar.gz"]
    with pytest.raises(ArchiveError, match="it was removed or replaced before it was"):
        source.download(a, tmp_path)


@pytest.mark.parametrize(
    "act",
    [
        lambda source, one: source.answer(one, failed("x"), is_again=False),
        lambda source, one: DropFolder(source._folder, lambda: NOW),
    ],
    ids=["at the answer", "at the start"],
)
@pytest.mark.parametrize(
    ("lay", "kind"),
    [
        (lambda path: path.symlink_to(path.with_name("other")), "a link"),
        (lambda path: path.symlink_to(path.with_name("nowhere")), "a link"),
        (lambda path: path.write_text("x"), "not a folder"),
        (os.mkfifo, "not a folder"),
    ],
    ids=["link", "dangling link", "file", "pipe"],
)
def test_answers_are_not_written_to_what_somebody_has_laid(
    tmp_path, source, act, lay, kind
):
    """Whoever may write to the folder would choose where they go, or that none do."""
    put(tmp_path, "a.tar.gz")
    (one,) = source.claimable()
    (tmp_path / "other").mkdir()
    lay(tmp_path / "returned")

    with pytest.raises(InputError, match=f"returned: it is {kind}, and answers are"):
        act(source, one)
    assert [*(tmp_path / "other").iterdir()] == []
    (tmp_path / "returned").unlink()
    act(source, one)


@pytest.mark.parametrize("name", ["con", "scores.sqlite-wal", "x.json", "a ", "a\nb"])
def test_a_name_that_no_team_can_have_is_the_team_s_fault(tmp_path, source, name):
    """It is answered in a file that can be written."""
    put(tmp_path, f"{name}.tar.gz")
    (one,) = source.claimable()

    error = error_of(ArchiveError, source.download, one, tmp_path)

    assert "\n" not in str(error)
    source.answer(one, failed(str(error)), is_again=False)
    (file,) = (tmp_path / "returned").iterdir()
    assert file.name.endswith(".json")
    assert file.stem != name


@pytest.mark.parametrize("name", ["team.zip", "a b "])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_answer_takes_the_place_of_that_of_another_team(tmp_path, name, is_first):
    """A team may be called like what is made of a name that none can have."""
    names = [derived_folder(name), name]
    source = DropFolder(tmp_path, lambda: NOW)
    service = Service(source, FakeWork(), tmp_path / "results", now=lambda: NOW)

    for name in names if is_first else reversed(names):
        put(tmp_path, f"{name}.tar.gz")
        while service.serve_one():
            pass

    files = [*(tmp_path / "returned").iterdir()]
    answers = {file.stem: json.loads(file.read_text()) for file in files}
    assert len(answers) == 2
    assert answers.pop(names[0])["status"] == "Succeeded"
    (answer,) = answers.values()
    assert names[1] in answer["error_message"]
