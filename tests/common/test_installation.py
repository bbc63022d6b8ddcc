"""What is installed: versions of libraries, our own commit, and how to get more."""

import sys
from importlib import metadata
from importlib.metadata import PackageNotFoundError

import pytest

from flare.common import installation
from flare.common.installation import library_version
from flare.evaluation.plan import LIBRARIES


@pytest.mark.parametrize("name", [*LIBRARIES, "click"])
def test_a_version_is_that_of_importlib(name):
    assert library_version(name) == metadata.version(name)


def test_what_comes_first_on_the_path_counts(tmp_path, monkeypatch):
    """As it is what would be imported; places that cannot be read are passed by."""
    for place, version in (("first", "7.1"), ("second", "8.2")):
        (tmp_path / place / f"a_tool-{version}.dist-info").mkdir(parents=True)
    (tmp_path / "file.zip").write_bytes(b"")
    places = ("missing", "file.zip", "first", "second")
    monkeypatch.setattr("sys.path", [str(tmp_path / place) for place in places])

    assert library_version("a-tool") == "7.1"
    with pytest.raises(PackageNotFoundError, match="no-such-tool"):
        library_version("no-such-tool")


@pytest.mark.parametrize(
    ("is_checkout", "by_pipx", "command"),
    [
        (True, True, ".venv/bin/pip install '.[report]'"),
        (False, True, "pipx inject flare-evaluation-kit Jinja2"),
        (False, False, "pip install Jinja2"),
    ],
    ids=["checkout", "pipx", "pip"],
)
def test_what_to_type_goes_into_the_environment_that_runs(
    monkeypatch, tmp_path, is_checkout, by_pipx, command
):
    """Pipx keeps its own file in each environment, called like the package."""
    environment = tmp_path / "flare-evaluation-kit"
    environment.mkdir()
    if by_pipx:
        (environment / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(environment))
    monkeypatch.setattr(installation, "is_checkout", lambda: is_checkout)

    assert installation.install_remedy("Jinja2", "report") == f"Install it: {command}."
