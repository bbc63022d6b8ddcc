"""Hosts and proxies that are slow, endless, odd, or in between."""

import base64
import gc
import gzip
import tarfile
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from flare.platforms.grandchallenge import client as client_module
from flare.platforms.grandchallenge import connection, partial_file
from flare.platforms.grandchallenge.client import Client
from flare.platforms.grandchallenge.connection import CallLimits, Pace
from flare.platforms.grandchallenge.errors import LongAnswerError, PlatformError
from tests.builders import error_of
from tests.fakes.hosts import Proxy, ToldHost, answer
from tests.fakes.platform import TOKEN, running, secure

SHORT = CallLimits(call_s=0.3, file_s=0.3)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LATE = "localhost has not sent all, or enough, in time, 1 times"


PLATFORM = SimpleNamespace(api="https://platform.example/api/v1/")
"""A host that only a proxy could lead to."""


def drops(begin, drop):
    """An answer that would take two seconds."""
    return [begin, *[drop] * 100]


DRIPPING = {
    "header": drops(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "body": drops(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n[", b" "),
    "size of a chunk": drops(CHUNKED, b"0"),
    "chunks": drops(CHUNKED, b"1\r\n \r\n"),
    "trailer": drops(CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"x"),
    "trailers": drops(CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: x\r\n"),
    "go on": drops(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "hints": drops(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
}


@pytest.fixture
def environment(certificate, monkeypatch):
    """No proxy, and a certificate that is trusted; what is set is set for a test."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    return monkeypatch


@pytest.fixture
def host(certificate, environment):
    @contextmanager
    def answering(*answers):
        server = ToldHost(*answers)
        secure(server, certificate)
        with running(server):
            yield server

    return answering


@pytest.fixture
def client(pauses):
    """Make a client of a host, whose pauses take no time."""

    def make(server, limits=CallLimits()):  # noqa: B008
        return Client(server.api, TOKEN, pauses.append, limits)

    return make


# --- Time -------------------------------------------------------------------------


def ask(client, what, folder):
    """For an answer, or for a file of the same host."""
    if what == "call":
        client.call("GET", "x/")
    else:
        client.fetch(f"{client.api}x", folder / "x.zip")


@pytest.mark.parametrize("what", ["call", "file"])
@pytest.mark.parametrize("parts", DRIPPING.values(), ids=list(DRIPPING))
def test_a_host_that_drips_is_left(host, client, monkeypatch, tmp_path, parts, what):
    """Each byte comes soon; the whole would not."""
    monkeypatch.setattr(client_module, "TRIES", 1)
    with host(parts) as server:
        server.pause_s = 0.02

        error = error_of(PlatformError, ask, client(server, SHORT), what, tmp_path)

    assert LATE in error.finding
    assert not [*tmp_path.iterdir()]


def test_a_host_that_does_not_take_what_is_sent_is_left(host, client, monkeypatch):
    """A socket of the system takes some MiB by itself."""
    monkeypatch.setattr(client_module, "TRIES", 1)
    with host([]) as server:
        server.pause_s = 2
        server.answers = [[b"", b""]]

        with pytest.raises(PlatformError) as caught:
            client(server, SHORT).call("PATCH", "x/", json={"x": "x" * 2**25})

    assert LATE in caught.value.finding


def test_a_proxy_that_drips_is_left(environment, client, monkeypatch):
    monkeypatch.setattr(client_module, "TRIES", 1)
    with running(Proxy(drops(b"HTTP/1.0 200 OK\r\nX: ", b"x"))) as proxy:
        proxy.pause_s = 0.02
        environment.setenv("HTTPS_PROXY", f"http://localhost:{proxy.port}")

        with pytest.raises(PlatformError, match=r"by the proxy .* in time"):
            client(PLATFORM, SHORT).call("GET", "x/")


def test_a_file_may_take_longer_than_a_call_if_its_parts_come_in_time(monkeypatch):
    """Parts of 10 bytes, each within 5 seconds, and all within 12."""
    now = 100.0
    monkeypatch.setattr(connection.time, "monotonic", lambda: now)
    pace = Pace(112.0, 5.0, 10)

    now = 104.0
    pace.count(9)
    assert pace.left_s == 1
    pace.count(2)
    assert pace.left_s == 5
    now = 108.5
    pace.count(10)
    assert pace.left_s == 3.5
    now = 112.0
    assert pace.left_s == 0


# --- Bytes ------------------------------------------------------------------------


def test_an_answer_of_many_mebibytes_is_refused_at_once(host, client, pauses):
    """Of lists, each of three bytes: read, they would take forty times as much."""
    with (
        host(answer(b"[" + b"[]," * 3 * 2**20 + b"0]")) as server,
        pytest.raises(LongAnswerError) as caught,
    ):
        client(server).call("GET", "x/")

    assert caught.value.finding == "localhost: its answer is longer than 8 MiB"
    assert pauses == []


@pytest.mark.parametrize("size", [b"-1", b"-ffffffff", b"ffffffffffff"])
@pytest.mark.parametrize("what", ["call", "file"])
def test_a_chunk_without_an_end_is_not_read_to_the_end(
    host, client, monkeypatch, tmp_path, size, what
):
    """Nor one of an impossible size; sockets of the system take some MiB."""
    monkeypatch.setattr(client_module, "TRIES", 1)
    monkeypatch.setattr(partial_file, "LARGEST_BYTES", 2**20)
    endless = [CHUNKED + size + b"\r\n", *[bytes(2**20)] * 64]
    with host(endless) as server, pytest.raises(PlatformError):
        ask(client(server), what, tmp_path)

    assert server.sent[0] < 24 * 2**20


# --- What hosts say ---------------------------------------------------------------


def test_hints_come_before_the_answer(host, client):
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    with host([hints * 2 + answer(b'{"pk": 1}')[0]]) as server:
        reply = client(server).call("GET", "x/")

    assert (reply.status, reply.content) == (200, {"pk": 1})
    assert "\r\nAccept-Encoding: identity\r\n" in server.heads[0]


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Slow Down"])
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("30", 30),
        ("0", 1),
        ("soon", 1),
        ("-5", 1),
        ("9" * 5000, None),
        ("61", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1),
        ("Wed, 21 Oct 2995 07:28:00 GMT", None),
    ],
)
def test_a_host_is_asked_again_when_it_wants_to_be(
    host, client, pauses, status, asked, expected
):
    """One that wants too long a pause is left: others wait meanwhile."""
    with host(answer(status=status, Retry_After=asked), answer()) as server:
        if expected is None:
            error = error_of(PlatformError, client(server).call, "GET", "x/")
            assert f"answers with status {status[:3]}" in error.finding
            assert "try again in " in error.remedy
        else:
            assert client(server).call("GET", "x/").status == 200

    assert pauses == ([] if expected is None else [expected])


ARCHIVE = gzip.compress(tarfile.TarInfo("a").tobuf(), mtime=0)
"""An image, or a model, as a team hands it in."""


ENCODED = [
    ("gzip", gzip.compress(ARCHIVE)),
    ("GZIP", gzip.compress(b"PK\x03\x04")),
    *(("br", b"xyz"), ("zstd", ARCHIVE)),
]
OK = b"HTTP/1.1 200 OK\r\n"
HALF, PART = ARCHIVE[:20], ARCHIVE[20:25]


@pytest.mark.parametrize(
    "answers",
    [
        *([answer(content, Content_Encoding=name)] * 2 for name, content in ENCODED),
        [[OK + b"\r\n" + HALF]],
        [[OK + b"Content-Length: 0\r\n\r\n"]],
        [answer(HALF, status="206 P", Content_Range="bytes 0-19/20")],
        [
            answer(HALF, ETag='"a"', Content_Length=99),
            answer(PART, status="206 P", ETag='"a"', Content_Range="bytes 20-98/99"),
        ],
    ],
    ids=[
        *("tar.gz", "zip", "br", "zstd"),
        *("without a length", "empty", "a part, unasked", "a part of the rest"),
    ],
)
def test_a_file_that_was_encoded_or_cut_on_its_way_is_asked_for_again(
    host, client, pauses, tmp_path, answers
):
    """The team would be told of a damaged archive."""
    with host(*answers, answer(ARCHIVE)) as server:
        client(server).fetch(f"{server.api}x", tmp_path / "x.tar.gz")

    assert (tmp_path / "x.tar.gz").read_bytes() == ARCHIVE
    assert len(pauses) == len(answers)


@pytest.mark.parametrize("content", [ARCHIVE, b"PK\x03\x04"], ids=["tar.gz", "zip"])
def test_a_file_of_which_a_storage_says_gzip_for_its_name_is_taken(
    host, client, tmp_path, content
):
    """As django-storages stores .tar.gz files in S3."""
    with host(answer(content, Content_Encoding="gzip")) as server:
        client(server).fetch(f"{server.api}x", tmp_path / "x.tar.gz")

    assert (tmp_path / "x.tar.gz").read_bytes() == content


def test_an_answer_that_was_encoded_is_called_so(host, client):
    encoded = answer(gzip.compress(b"{}"), Content_Encoding="gzip")
    problem = "answers with what it has encoded as gzip, unasked, 5 times"
    with host(encoded) as server, pytest.raises(PlatformError, match=problem):
        client(server).call("GET", "x/")


def test_a_call_that_is_led_elsewhere_says_where(host, client):
    """Without what may be a signature, or the token."""
    place = f"https://a.org/{TOKEN}/login/?next={TOKEN}"
    with host(answer(b"", status="302 Found", Location=place)) as server:
        calls = client(server)
        error = calls.refusal(calls.call("GET", "x/"))

    finding = "/api/v1/: status 302: it leads to https://a.org/[token]/login/"
    assert error.finding.endswith(finding)


# --- What is in between -----------------------------------------------------------


def test_a_certificate_that_is_not_trusted_asks_for_that_of_the_network(
    host, client, environment, tmp_path, pauses
):
    """As a proxy gives one that looks into TLS."""
    (tmp_path / "none.crt").touch()
    environment.setenv("SSL_CERT_FILE", str(tmp_path / "none.crt"))
    environment.setenv("SSL_CERT_DIR", str(tmp_path))
    with host(answer()) as server, pytest.raises(PlatformError) as caught:
        client(server).call("GET", "x/")

    problem = "localhost: its certificate is not trusted (self-signed certificate)"
    assert caught.value.finding == problem
    assert "give your CA as SSL_CERT_FILE" in caught.value.remedy
    assert pauses == []


def test_a_proxy_is_asked_with_user_and_password(host, client, environment):
    """Those of HTTPS_PROXY, whose escapes are none of theirs; the token is not."""
    with host(answer()) as server, running(Proxy()) as proxy:
        address = f"http://jane:s%40c%3Aret@localhost:{proxy.port}"
        environment.setenv("HTTPS_PROXY", address)

        assert client(server).call("GET", "x/").status == 200

    (head,) = proxy.heads
    sent = base64.b64encode(b"jane:s@c:ret").decode()
    assert head.startswith(f"CONNECT localhost:{server.port} ")
    assert f"\r\nProxy-Authorization: Basic {sent}\r\n" in head
    assert TOKEN not in head
    assert "Proxy-Authorization" not in server.heads[0]


def test_no_proxy_is_asked_for_hosts_of_no_proxy(host, client, environment):
    environment.setenv("HTTPS_PROXY", "http://localhost:1")
    environment.setenv("NO_PROXY", "example.org,localhost")
    with host(answer()) as server:
        assert client(server).call("GET", "x/").status == 200


@pytest.mark.parametrize(
    ("reason", "told", "tries"),
    [
        (
            "407 Proxy Authentication Required",
            "the proxy localhost:{} refuses to lead to platform.example"
            " (407 Proxy Authentication Required)",
            1,
        ),
        ("407 jane:s%40cret", "(407 [...])", 1),
        ("407 no amFuZTpzQGNyZXQ= here", "(407 no [...] here)", 1),
        ("403 Forbidden by policy", "(403 Forbidden by policy)", 5),
        (None, ", by the proxy localhost:{}, cannot be reached (Conn", 5),
    ],
)
def test_a_proxy_that_refuses_is_named_without_what_is_secret(
    client, environment, reason, told, tries
):
    """It may repeat what it was sent; `printf jane:s@cret | base64` is that."""
    with running(Proxy([f"HTTP/1.1 {reason}\r\n\r\n".encode()])) as proxy:
        port = proxy.port if reason else 1
        environment.setenv("HTTPS_PROXY", f"http://jane:s%40cret@localhost:{port}")
        error = error_of(PlatformError, client(PLATFORM).call, "GET", "x/")

    assert told.format(port) in error.finding
    assert ("HTTPS_PROXY" in error.remedy) == (tries == 1)
    assert len(proxy.heads) == (tries if reason else 0)
    del error
    gc.collect()  # an open socket would be a warning, and that an error
