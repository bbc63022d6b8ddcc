"""The client: tokens that nothing tells, and what no platform should say."""

import json
import logging
import time
from http.client import HTTPResponse
from pathlib import Path
from unittest.mock import Mock

import pytest

from flare.common.errors import OutputError
from flare.platforms.grandchallenge import partial_file
from flare.platforms.grandchallenge.client import Client
from flare.platforms.grandchallenge.errors import PlatformError, TooLargeError
from flare.platforms.grandchallenge.tokens import read_tokens
from tests.builders import error_of, write_file
from tests.fakes.platform import ODD, TOKEN

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def platform(external_platform):
    external_platform.pk = external_platform.submit("jane", CONTENT)
    return external_platform


@pytest.fixture
def calls(platform, pauses):
    """A client of it, whose pauses take no time."""
    return Client(platform.api, TOKEN, pauses.append)


def address(platform):
    host = f"https://localhost:{platform.server_port}"
    return f"{host}/media/docker/images/{platform.pk}/x.tar.gz"


def one(platform):
    """The path of the evaluation."""
    return f"evaluations/{platform.pk}/"


# --- Calls ------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["html", "deep", "digits", "gzip"])
def test_status_200_without_a_word_of_the_platform_is_asked_again(
    platform, calls, pauses, fault
):
    """A proxy says so for a while; it is no answer. Nobody has asked for gzip."""
    platform.faults["status"] = [fault] * 2

    reply = calls.call("GET", one(platform))

    assert (reply.status, reply.content["pk"]) == (200, platform.pk)
    assert not reply.is_certain
    assert pauses == [1, 2]


@pytest.mark.parametrize("fault", [301, 302, 307, 308, 400, 403, 404, "lists"])
def test_a_refusal_tells_nobody_the_token_and_leads_nowhere(
    platform, calls, caplog, fault
):
    """The platform repeats it; where a call is led would get it. A reason is short."""
    caplog.set_level(logging.DEBUG)
    platform.faults["status"] = [500, fault]

    reply = calls.call("GET", one(platform))

    assert platform.calls("status") == [500, fault]
    assert len(reply.reason) <= 200
    assert reply.reason == "A fault of Bearer [token]" or fault in (302, "lists")
    assert TOKEN not in json.dumps(reply.content) + caplog.text


def test_an_answer_in_pieces_of_odd_lengths_is_asked_for_again(
    platform, calls, pauses, monkeypatch
):
    """Python's client takes a length below 0 for one of its own errors."""
    read, faults = HTTPResponse.read, [ValueError("read length must be non-negative")]

    def odd(response, size):
        if faults:
            raise faults.pop()
        return read(response, size)

    monkeypatch.setattr(HTTPResponse, "read", odd)

    assert calls.call("GET", one(platform)).status == 200
    assert pauses == [1]


def test_no_escape_of_json_hides_a_token(platform, calls, monkeypatch):
    """Neither in a key nor in a text, however deep."""
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in TOKEN)
    body = f'{{"{escaped}": ["a {escaped}", {{"b": "{escaped}"}}, 0.1, null]}}'
    monkeypatch.setitem(ODD, "escaped", body.encode())
    platform.faults["status"] = ["escaped"]

    reply = calls.call("GET", one(platform))

    assert reply.content == {"[token]": ["a [token]", {"b": "[token]"}, 0.1, None]}


ODD_TOKEN = r"Ab+c/1%2Bz=\x"
"""It has signs that an address, or JSON, may write in other ways."""


@pytest.mark.parametrize(
    "form",
    [
        ODD_TOKEN,
        "Ab%2Bc%2F1%252Bz%3D%5Cx",
        "ab%2bc/1%252bz%3d%5cx",
        "Ab%252Bc%252F1%25252Bz%253D%255Cx",
        "%41%62%2B%63%2F%31%25%32%42%7A%3D%5C%78",
        r"Ab+c/1+z=\x",
    ],
    ids=["itself", "quoted", "in part", "twice", "each sign", "unquoted"],
)
def test_no_form_of_a_token_stands_in_a_message(platform, pauses, monkeypatch, form):
    """It is replaced in an answer, and in a place that the call is led to."""
    platform.users[ODD_TOKEN] = "evaluator"
    calls = Client(platform.api, ODD_TOKEN, pauses.append)
    body = json.dumps({"detail": f"No {form}."})
    monkeypatch.setitem(ODD, "form", body.encode())
    platform.faults["status"] = ["form"]

    assert calls.call("GET", one(platform)).reason == "No [token]"

    error = error_of(PlatformError, calls.fetch, f"http://a.org/{form}/x", Path("x"))
    assert "http://a.org/[token]/x: the file is not" in str(error)


def test_what_begins_like_a_token_costs_no_time(platform, calls, monkeypatch):
    """Thousands of them are looked through in a moment."""
    body = json.dumps({"detail": [TOKEN[:-1], TOKEN[:-1].replace("-", "%2D")] * 2000})
    monkeypatch.setitem(ODD, "alike", body.encode())
    platform.faults["status"], start = ["alike"], time.process_time()

    assert calls.call("GET", one(platform)).content == json.loads(body)

    assert time.process_time() - start < 1


# --- Files ------------------------------------------------------------------------


def fetched(platform, calls, file):
    calls.fetch(address(platform), file)
    return file.read_bytes()


def test_an_address_may_have_spaces_and_letters_beyond_ascii(platform, calls, tmp_path):
    """As a browser would ask for it."""
    platform.evaluations[platform.pk]["file"] = "Zo%C3%AB%201.tar.gz"
    odd = address(platform).replace("x.tar", "Zoë 1.tar")

    calls.fetch(odd, tmp_path / "x.tar.gz")

    assert (tmp_path / "x.tar.gz").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [400, 401, 403, 503])
def test_a_host_of_files_that_refuses_is_asked_again_from_a_new_address(
    platform, calls, pauses, tmp_path, status
):
    """Its addresses are signed for some minutes."""
    platform.faults["file"] = [status] * 2

    assert fetched(platform, calls, tmp_path / "x.tar.gz") == CONTENT
    assert platform.calls("download") == [302] * 3
    assert pauses == [1, 2]


@pytest.mark.parametrize("fault", ["http", "circle", "nowhere"])
def test_a_file_is_fetched_over_https_alone(platform, calls, tmp_path, fault):
    platform.faults["download"] = [fault] * 9

    with pytest.raises(
        PlatformError, match=r"https address|does not answer as"
    ) as caught:
        fetched(platform, calls, tmp_path / "x.tar.gz")

    assert "?s=1" not in str(caught.value)  # what may be a signature
    assert platform.calls("file") == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("faults", "statuses"),
    [(["unasked"], [206, 200]), (["short", "another"], [200, 206, 200])],
)
def test_a_part_of_another_file_is_thrown_away(
    platform, calls, tmp_path, faults, statuses
):
    """One that nobody has asked for, or whose ETag tells it apart: all is fetched."""
    platform.faults["file"] = faults

    assert fetched(platform, calls, tmp_path / "x.tar.gz") == CONTENT
    assert [status for status, _ in platform.calls("file")] == statuses


def test_a_host_that_is_called_like_the_token_is_not_named(
    platform, pauses, tmp_path, caplog
):
    """Hosts are written in small letters."""
    calls = Client(platform.api, "A1B2-Token", pauses.append)

    with pytest.raises(PlatformError) as caught:
        calls.fetch("https://A1B2-Token.localhost:1/x", tmp_path / "x")

    assert "[token].localhost cannot be reached" in str(caught.value)
    assert "a1b2" not in (str(caught.value) + caplog.text).lower()


def test_a_file_without_an_end_is_too_large(platform, calls, tmp_path, monkeypatch):
    """Nothing of it stays on the disk."""
    platform.faults["file"] = ["endless"]
    monkeypatch.setattr(partial_file, "LARGEST_BYTES", 9)

    with pytest.raises(TooLargeError):
        fetched(platform, calls, tmp_path / "x.tar.gz")

    assert not [*tmp_path.glob("*.part")]


def test_what_stands_in_the_way_of_a_file_is_told_by_its_remedy(
    platform, calls, monkeypatch, tmp_path
):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(Client, "_blocks", Mock(side_effect=full))

    error = error_of(OutputError, fetched, platform, calls, tmp_path / "x.tar.gz")

    assert error.remedy.startswith("Make room on its disk")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"x\.tar\.gz\.part: .*\(file exists\)"):
        calls.fetch("https://localhost/x", tmp_path / "file" / "x.tar.gz")


# --- Tokens -----------------------------------------------------------------------

SECRET = "df41b403eac8ca19"


@pytest.fixture
def token_file(tmp_path):
    """A file of tokens, the owner's alone."""

    def make(content, mode=0o600):
        file = write_file(tmp_path / "token", content)
        file.chmod(mode)
        return str(file)

    return make


@pytest.mark.parametrize("variable", ["", " a\n"])
def test_the_token_of_the_variable_goes_before_those_of_the_file(token_file, variable):
    """One stands on each line, and counts once. The variable is removed."""
    file = token_file(b"first\r\n\nsecond\nfirst\n")
    variables = {"FLARE_GC_TOKEN": variable, "FLARE_GC_TOKEN_FILE": file}

    assert read_tokens(variables) == (("a",) if variable else ("first", "second"))
    assert "FLARE_GC_TOKEN" not in variables


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "There is no API token"),
        (b" \n", "There is no API token"),
        (b"a\0b", "The token is not one word on a line"),
        (b"first second\nthird", "The token is not one word on a line"),
        (b"\xff", "token: the token cannot be read (it is not a text)"),
        ("none", "none: the token cannot be read (no such file or directory)"),
    ],
)
def test_a_file_without_a_usable_token_is_refused(
    tmp_path, monkeypatch, token_file, content, problem
):
    monkeypatch.chdir(tmp_path)
    name = content or ""
    if isinstance(content, bytes):
        name = Path(token_file(content)).name

    error = error_of(PlatformError, read_tokens, {"FLARE_GC_TOKEN_FILE": name})

    assert (error.code, error.problem) == ("H09", problem)


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o640, 0o620, 0o602])
def test_a_token_file_that_others_may_use_is_refused(token_file, mode):
    """As ssh refuses a key; the owner may do what he likes."""
    file = token_file(SECRET.encode(), mode)

    error = error_of(PlatformError, read_tokens, {"FLARE_GC_TOKEN_FILE": file})

    assert f"mode {mode:04o}" in error.finding
    assert f"chmod 600 {file}" in error.remedy
    assert SECRET not in str(error)
