"""The commit of the source is known even if something kills git."""

import pytest

from flare.common import version

COMMIT = "0123456789" * 4

GIT = """#!/bin/sh
echo run >> {log}
[ $(wc -l < {log}) -gt {deaths} ] || kill -9 $$
echo {commit}
"""


@pytest.mark.parametrize(
    ("deaths", "commit", "runs"), [(0, COMMIT, 1), (2, COMMIT, 3), (9, "unknown", 3)]
)
def test_git_is_asked_again_if_it_is_killed(
    tmp_path, monkeypatch, deaths, commit, runs
):
    """A commit "unknown" gave other bytes of metrics.json, and scored all anew."""
    log, git = tmp_path / "log", tmp_path / "git"
    git.write_text(GIT.format(log=log, deaths=deaths, commit=COMMIT))
    git.chmod(0o755)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(version, "CHECKOUT", tmp_path)
    version._commit_of_checkout.cache_clear()

    try:
        assert version._commit_of_checkout() == commit
    finally:
        version._commit_of_checkout.cache_clear()

    assert len(log.read_text().split()) == runs
