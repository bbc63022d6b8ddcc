"""API tokens: where they come from, and that nothing tells them."""

import pytest

from flare.platforms.errors import PlatformError
from flare.platforms.grandchallenge.access import (
    read_token,
    read_tokens,
    without_tokens,
)

TOKEN = "df41b403eac8ca19"


@pytest.fixture
def token_file(tmp_path):
    """A file of tokens, the owner's alone."""

    def make(content, mode=0o600):
        file = tmp_path / "token"
        file.write_bytes(content)
        file.chmod(mode)
        return str(file)

    return make


def test_a_token_comes_from_the_environment_or_a_file(token_file):
    assert read_token(f" {TOKEN}\n", "") == TOKEN
    assert read_token("", token_file(f"{TOKEN}\n".encode())) == TOKEN


def test_several_tokens_stand_in_lines_each_once(token_file):
    file = token_file(b"first\nsecond third\r\n\nfirst\n")

    assert read_tokens("", file) == ("first", "second", "third")
    assert read_tokens(" a\nb ", "") == ("a", "b")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "There is no API token"),
        (b" \n", "There is no API token"),
        (b"a\nb", "There are 2 API tokens, and one is expected"),
        (b"a\0b", "The token is no word"),
        (b"\xff", "token: the token cannot be read (it is no text)"),
    ],
)
def test_a_token_that_is_none(tmp_path, monkeypatch, token_file, content, problem):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        token_file(content)

    with pytest.raises(PlatformError) as caught:
        read_token("", "token" if content is not None else "")

    assert str(caught.value) == (
        f"{problem}. Make one under Your Profile, Manage API Tokens, and put it into"
        " FLARE_GC_TOKEN, or its file's name into FLARE_GC_TOKEN_FILE. [H09]"
    )


def test_a_token_file_that_is_not_there(tmp_path):
    with pytest.raises(PlatformError, match="no such file or directory"):
        read_token("", str(tmp_path / "none"))


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o640, 0o620, 0o602])
def test_a_token_file_that_others_may_use_is_refused(token_file, mode):
    """As ssh refuses a key; the owner may do what he likes."""
    file = token_file(TOKEN.encode(), mode)

    with pytest.raises(PlatformError) as caught:
        read_token("", file)

    assert f"mode {mode:04o}" in caught.value.finding
    assert f"chmod 600 {file}" in caught.value.remedy
    assert TOKEN not in str(caught.value)


def test_no_form_of_a_token_stays_in_a_text():
    text = without_tokens("x/y at X/Y, x.y, Z", "x/y", "z")

    assert text == "[token] at [token], x.y, [token]"
