"""The versions of installed packages, read without importlib.metadata."""

import os
import sys
from importlib import metadata
from importlib.metadata import PackageNotFoundError

import pytest

from flare.common.library_versions import library_version
from flare.evaluation.evaluate import LIBRARIES


@pytest.mark.parametrize("name", [*LIBRARIES, "click"])
def test_a_version_is_that_of_importlib(name):
    assert library_version(name) == metadata.version(name)


def test_what_comes_first_on_the_path_counts(tmp_path, monkeypatch):
    """As it is what would be imported; a line of its description is no version."""
    for place, version in (("first", "7.1"), ("second", "8.2")):
        folder = tmp_path / place / f"a_tool-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: a-tool\nVersion: {version}\n\nVersion: 0\n"
        )
    monkeypatch.setattr("sys.path", [str(tmp_path / "first"), str(tmp_path / "second")])

    assert library_version("a-tool") == "7.1"


def test_places_that_cannot_be_read_are_passed_by(tmp_path, monkeypatch):
    """Missing, a file, a folder that is nobody's to read; as Python itself does."""
    (tmp_path / "file.zip").write_bytes(b"")
    real = os.listdir

    def listdir(path):
        if str(path).endswith("closed"):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    odd = [str(tmp_path / name) for name in ("missing", "file.zip", "closed")]
    monkeypatch.setattr("sys.path", [*odd, *sys.path])

    assert library_version("click") == metadata.version("click")


def test_a_package_that_is_not_installed():
    with pytest.raises(PackageNotFoundError, match="no-such-tool"):
        library_version("no-such-tool")
