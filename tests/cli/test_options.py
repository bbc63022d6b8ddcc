"""Options that several commands have."""

import pytest

from flare.cli.options import PATH, ChallengeName


@pytest.mark.parametrize("kind", [PATH, ChallengeName(readable=False)])
def test_a_file_that_may_not_be_read_is_no_usage_error(monkeypatch, tmp_path, kind):
    """The command says it, with what to do; capabilities may allow it all the same."""
    monkeypatch.setattr("os.access", lambda *_, **__: False)

    assert str(kind.convert(str(tmp_path), None, None)) == str(tmp_path)
