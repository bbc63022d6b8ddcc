"""What tests of challenge files share."""

import pytest

from flare.challenge.reading import read_challenge


@pytest.fixture
def read(tmp_path):
    """A function that reads the text of a challenge file."""

    def read_text(text):
        file = tmp_path / "mine.toml"
        file.write_text(text, encoding="utf-8")
        return read_challenge(str(file))

    return read_text
