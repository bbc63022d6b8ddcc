"""What to type for a missing library, where the program was installed in some way."""

import sys

import pytest

from flare.common import extras


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
    monkeypatch.setattr(extras, "is_checkout", lambda: is_checkout)

    assert extras.install_remedy("Jinja2", "report") == f"Install it: {command}."
