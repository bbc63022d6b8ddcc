"""A folder of archives as a source of submissions, with models beside some of them."""

import os
from datetime import UTC, datetime

import pytest

from flare.measuring.errors import ArchiveError
from flare.platforms.serving.drop_folder import DropFolder

NOW = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)


@pytest.fixture
def source(tmp_path):
    """The folder, at some moment."""
    return DropFolder(tmp_path, lambda: NOW)


def put(folder, name, *, ago=60, content=b"x"):
    """A file that has changed some seconds ago."""
    file = folder / name
    file.write_bytes(content)
    os.utime(file, (NOW.timestamp() - ago,) * 2)
    return file


def titles(source):
    return [submission.title for submission in source.claimable()]


def test_a_model_is_no_submission_of_its_own(tmp_path, source):
    put(tmp_path, "a.tar.gz")
    put(tmp_path, "a.model.tar.gz")
    put(tmp_path, "b.model.tar.gz")

    assert titles(source) == ["a.tar.gz"]


@pytest.mark.parametrize(
    ("archive_ago", "model_ago", "expected"),
    [(60, 60, ["a.tar.gz"]), (60, 9, []), (9, 60, []), (11, 11, ["a.tar.gz"])],
)
def test_both_have_to_rest(tmp_path, source, archive_ago, model_ago, expected):
    """Ten seconds after the last change of either."""
    put(tmp_path, "a.tar.gz", ago=archive_ago)
    put(tmp_path, "a.model.tar.gz", ago=model_ago)

    assert titles(source) == expected


def test_the_order_goes_by_what_came_last(tmp_path, source):
    put(tmp_path, "a.tar.gz", ago=90)
    put(tmp_path, "a.model.tar.gz", ago=30)
    put(tmp_path, "b.tar.gz", ago=60)

    assert titles(source) == ["b.tar.gz", "a.tar.gz"]


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
