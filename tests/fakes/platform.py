"""A platform with external evaluation, over TLS: its calls, refusals and faults.

Written from what the platform's documentation and its evaluation app (views.api,
serializers, of December 2025) say, and compared with that app at work; nothing here is
taken from the client under test.
"""

import gzip
import json
import ssl
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PHASE = "4a46b539-119b-4889-90bf-18818ffa3dd8"
TOKEN = "0f3c9b7d55aa41e2-evaluator"

UNKNOWN = 404, {"detail": "No Evaluation matches the given query."}
NEEDED = {
    "Succeeded": ("metrics", "Metrics are required for successful evaluations."),
    "Failed": (
        "error_message",
        "An error_message is required for failed evaluations.",
    ),
}
ODD = {
    "html": b"<!DOCTYPE html><title>Sign in</title>",
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "digits": b'{"status": ' + b"9" * 10_000 + b"}",
    "object": b'{"message": "ok"}',
    "gzip": gzip.compress(b'{"message": "ok"}'),
    "lists": b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}",
}
"""What a proxy or a fault says with status 200."""
QUEUED, CLAIMED, CANCELLED = "Queued", "External Execution In Progress", "Cancelled"


def described(pk, user, created, *, file=None, image=None):
    """An entry of /api/v1/evaluations/, as its serializer writes it."""
    return {
        "pk": pk,
        "method": None,
        "submission": {
            "pk": pk.replace("0000", "1111", 1),
            "phase": {
                "challenge": {"title": "", "short_name": "flare"},
                "title": "Test",
                "slug": "test",
            },
            "created": created,
            "creator": {"username": user},
            "comment": "",
            "predictions_file": file,
            "supplementary_file": None,
            "supplementary_url": "",
            "algorithm_image": image,
        },
        "created": created,
        "published": True,
        "outputs": [],
        "rank": 0,
        "rank_score": 0.0,
        "rank_per_metric": {},
        "status": "Succeeded",
        "title": f"#0 {user}",
        "exec_duration": None,
        "invoke_duration": None,
    }


class FakePlatform(ThreadingHTTPServer):
    """A phase, its evaluations, and what services have done with them.

    `faults` has a list for each call (claimable, claim, update, status,
    download, file, and model, model file): what goes wrong the next times ("endless": a
    file without its size). A number is
    a status; "reset" ends the connection at once, "deaf" only after the call was
    obeyed, "short" ends a file in its middle. What ODD
    has is said in place of an answer. "other" is an answer about another evaluation. A
    download leads to "http" addresses, "nowhere", or in a "circle"; a file comes
    "unasked" in part only, the rest is "another" file's, or a "page" is in its place.
    A refusal repeats the token. The call before an "obeyed html" is obeyed.
    """

    daemon_threads = True

    def __init__(self, certificate):
        super().__init__(("localhost", 0), _Handler)
        secure(self, certificate)
        self.api = f"https://localhost:{self.server_port}/api/v1/"
        self.users = {TOKEN: "evaluator"}
        self.evaluations, self.faults, self.log = {}, {}, []
        self.listed, self.limit, self.count = [], 1000, None
        # The edition of December 2025 does not: there, a user can claim only once.
        self.forgets_finished = True
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        """Say nothing of a client that has left."""

    def submit(self, user, archive, *, phase=PHASE, model=None):
        """A user hands in an algorithm; the key of its evaluation."""
        number = len(self.evaluations)
        pk = str(uuid.UUID(int=number + 1))
        self.evaluations[pk] = {
            "pk": pk,
            "user": user,
            "archive": archive,
            "phase": phase,
            "model": model,
            "file": "x.tar.gz",
            "created": f"2026-09-01T10:{59 - number:02}:00Z",
            "status": QUEUED,
            "claimed_by": None,
            "answers": [],
        }
        return pk

    def answers(self):
        return {e["user"]: e["answers"] for e in self.evaluations.values()}

    def calls(self, name):
        return [status for kind, status in self.log if kind == name]

    def fault(self, name):
        with self.lock:
            waiting = self.faults.get(name)
            return waiting.pop(0) if waiting else None


def secure(server, certificate):
    """Let a server speak TLS alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_suffix(".crt"), certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.certificate = certificate.with_suffix(".crt")


@contextmanager
def running(server):
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """The platform's calls."""

    def do_GET(self):
        path = urlsplit(self.path).path
        if path == "/api/v1/evaluations/claimable_evaluations/":
            self.answer("claimable", self.claimable)
        elif path.startswith("/api/v1/algorithms/"):
            self.answer("address", self.address)
        elif path == "/api/v1/evaluations/":
            self.answer("list", self.all)
        elif path.startswith("/api/v1/evaluations/"):
            self.answer("status", self.one)
        elif path.startswith("/media/"):
            is_model = path.startswith("/media/models/")
            self.answer("model" if is_model else "download", self.lead)
        elif path.startswith("/signed/"):
            self.give(path)
        else:
            self.answer("unknown", lambda: (404, {"detail": "Not found."}))

    def do_PATCH(self):
        path = urlsplit(self.path).path
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        if path.endswith("/claim/"):
            self.answer("claim", self.claim)
        elif path.endswith("/update_external_evaluation/"):
            self.answer("update", self.update)
        else:
            self.answer("unknown", lambda: (404, {"detail": "Not found."}))

    # --- What a call does ---------------------------------------------------------

    def claimable(self):
        """A bare list, which is not in pages."""
        found = [f for f in self.of_phase() if f["status"] == QUEUED]
        return 200, [self.external(one) for one in found]

    def of_phase(self):
        (phase,) = parse_qs(urlsplit(self.path).query)["submission__phase"]
        return [f for f in self.server.evaluations.values() if f["phase"] == phase]

    def all(self):
        """Those of `listed`, in pages."""
        query = {k: v for k, (v,) in parse_qs(urlsplit(self.path).query).items()}
        if query["submission__phase"] != PHASE:
            return 400, {"submission__phase": ["Select a valid choice."]}
        server, start = self.server, int(query["offset"])
        found = server.listed[start : start + min(int(query["limit"]), server.limit)]
        rest = {"count": server.count or len(server.listed), "next": None}
        return 200, {**rest, "previous": None, "results": found}

    def one(self):
        found = self.found(self.path.split("/")[4])
        return (200, self.plain(found)) if found else UNKNOWN

    def claim(self):
        """One at a time, and only what is queued."""
        found, user = self.found(self.path.split("/")[4]), self.user()
        if not found:
            return UNKNOWN
        if found["status"] != QUEUED:
            return 400, {"status": "You can only claim pending evaluations."}
        own = [o for o in self.server.evaluations.values() if o["claimed_by"] == user]
        if self.server.forgets_finished:
            own = [o for o in own if o["status"] == CLAIMED]
        if own:
            return 400, {"status": "You can only claim one evaluation at a time."}
        found |= {"status": CLAIMED, "claimed_by": user}
        return 200, self.external(found)

    def update(self):
        """The one who has claimed it, in time, with all that belongs to it."""
        found, user = self.found(self.path.split("/")[4]), self.user()
        if not found:
            return UNKNOWN
        if found["status"] != CLAIMED:
            text = "You need to claim an evaluation before you can update it."
            return 400, {"status": text}
        if found["claimed_by"] != user:
            text = "You do not have permission to update this evaluation."
            return 403, {"status": text}
        # "The evaluation was not updated in time." is never said: seconds are compared
        # that are fewer than those of a day.
        content = json.loads(self.body, parse_constant=_no_number)
        if content.get("status") not in NEEDED:
            return 400, {"status": ["Not a valid choice."]}
        needed, text = NEEDED[content["status"]]
        if needed not in content:
            return 400, {"non_field_errors": [text]}
        if content[needed] == "":
            return 400, {"error_message": ["This field may not be blank."]}
        assert len(content.get("error_message", "")) <= 1024
        assert "\n" not in content.get("error_message", "")
        found["status"] = content["status"]
        found["answers"].append(content)
        return 200, content

    def lead(self):
        """To a signed address; an image, or a model, is known by its key."""
        parts = self.path.split("/")
        found = self.found(parts[-2])
        kind = "model" if parts[2] == "models" else "archive"
        if not found:
            return 403, {"detail": "No."}
        if parts[-1] not in (found["file"], "m.tar.gz"):
            return 404, {"detail": "Not found."}
        # Another host, as the real one: httpx takes no token along to it.
        port = self.server.server_port
        return 302, f"https://127.0.0.1:{port}/signed/{found['pk']}/{kind}?s=1"

    def address(self):
        """An image, or a model, with the address where it is now."""
        found = self.found(self.path.split("/")[-2])
        if not found:
            return UNKNOWN
        whole = self.external(found)
        is_image = "/images/" in self.path
        return 200, whole["algorithm_image" if is_image else "algorithm_model"]

    def give(self, path):
        pk, kind = path.split("/")[2:]
        name = "file" if kind == "archive" else "model file"
        fault = self.server.fault(name)
        if isinstance(fault, int):
            self.server.log.append((name, fault))
            self.send_error(fault)
            return
        if fault == "reset" or self.headers.get("Authorization"):
            self.server.log.append((name, fault or "a token"))
            self.connection.close()
            return
        data = self.server.evaluations[pk][kind]
        mark, start = f'"{len(data)}"', 0
        asked = self.headers.get("Range")
        if asked and self.headers.get("If-Range") == mark:
            start = int(asked.removeprefix("bytes=").partition("-")[0])
        if fault == "unasked":
            start = len(data) // 2
        if start >= len(data):
            self.server.log.append((name, 416))
            self.send_error(416)
            return
        if fault == "page":
            start, data = 0, ODD["html"]
        if fault == "another":
            data, mark = bytes(len(data)), '"another"'
        status = 206 if start else 200
        self.server.log.append((name, (status, len(data) - start)))
        self.send_response(status)
        self.send_header("ETag", mark)
        if fault == "page":
            self.send_header("Content-Type", "text/html; charset=utf-8")
        if start:
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self.send_header("Content-Range", span)
        rest = data[start:]
        if fault != "endless":
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2] if fault == "short" else rest)
        if fault == "short":
            self.close_connection = True

    # --- How it is said -----------------------------------------------------------

    def user(self):
        word, _, token = self.headers.get("Authorization", "").partition(" ")
        return self.server.users.get(token) if word.upper() == "BEARER" else None

    def found(self, pk):
        return self.server.evaluations.get(pk)

    def plain(self, found):
        image = "https://localhost/api/v1/algorithms/images/1/"
        entry = described(found["pk"], found["user"], found["created"], image=image)
        return {**entry, "status": found["status"], "published": False}

    def external(self, found):
        host = f"https://localhost:{self.server.server_port}"
        place = f"{found['pk']}/{found['file']}"
        file = f"{host}/media/docker/images/{place}?Signature=secret"
        image = {"pk": found["pk"], "image": file, "import_status": "Completed"}
        folder = f"{host}/media/models/algorithms/algorithmmodel/{found['pk']}"
        address = f"{folder}/m.tar.gz?Signature=secret"
        model = {"pk": found["pk"], "model": address} if found["model"] else None
        return {
            **self.plain(found),
            "algorithm_model": model,
            "algorithm_image": image,
            "claimed_by": 7 if found["claimed_by"] else None,
            "phase_pk": found["phase"],
        }

    def answer(self, name, obey):
        server, fault = self.server, self.server.fault(name)
        if fault == "reset":
            server.log.append((name, "reset"))
            self.connection.close()
            return
        if fault in ODD:
            status, content = 200, None
        elif isinstance(fault, int):
            token = self.headers.get("Authorization", "")
            status, content = fault, {"detail": f"A fault of {token}."}
        elif not self.user():
            token = self.headers.get("Authorization", "")
            status, content = 401, {"detail": f"Invalid token {token}."}
        else:
            with server.lock:
                status, content = obey()
        server.log.append((name, fault or status))
        if fault == "deaf":
            self.connection.close()
            return
        if fault == "http":
            content = content.replace("https", "http")
        if fault == "nowhere":
            content = "https://[x"
        if fault == "circle":
            content = f"https://localhost:{server.server_port}{self.path}"
        if fault == "other":
            content |= {"pk": str(uuid.UUID(int=99))}
        data = b"" if status == 302 else json.dumps(content).encode()
        data = ODD.get(fault, data)
        if fault == "obeyed html":
            data = ODD["html"]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", content)
        self.send_header("Content-Type", "application/json")
        if fault == "gzip":
            self.send_header("Content-Encoding", fault)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


def _no_number(text):
    """The platform would take NaN for null, and drop the result."""
    raise AssertionError(f"{text} was sent")
