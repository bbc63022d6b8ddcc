"""Hosts that say what a test tells them, byte by byte, and a proxy of the same kind."""

import socket
import threading
import time
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer


class ToldHost(ThreadingTCPServer):
    """Reads the head of each request, and sends the next of `answers`, part by part.

    The last one is sent to all that come later. `pause_s` is before each part but the
    first; `sent` has the bytes that each client has taken, `heads` what it has asked.
    """

    daemon_threads = True
    pause_s = 0.0

    def __init__(self, *answers):
        super().__init__(("localhost", 0), _Answering)
        self.answers, self.heads, self.sent = answers, [], []

    @property
    def port(self):
        return self.server_address[1]

    @property
    def api(self):
        return f"https://localhost:{self.port}/api/v1/"

    def handle_error(self, request, client_address):
        """Say nothing of a client that has left."""


class _Answering(BaseRequestHandler):
    def handle(self):
        server, head = self.server, b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(1)
        server.heads.append(head.decode())
        number = min(len(server.heads), len(server.answers))
        server.sent.append(0)
        for part in server.answers[number - 1]:
            self.request.sendall(part)
            server.sent[-1] += len(part)
            time.sleep(server.pause_s)


class Proxy(ToldHost):
    """Leads to what it is asked for, or answers what it is told."""

    def __init__(self, *answers):
        super().__init__(*answers)
        self.RequestHandlerClass = _Answering if answers else _Leading


class _Leading(BaseRequestHandler):
    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(1)
        self.server.heads.append(head.decode())
        host, _, port = head.split()[1].decode().partition(":")
        with socket.create_connection((host, int(port))) as other:
            self.request.sendall(b"HTTP/1.0 200 Connection established\r\n\r\n")
            back = threading.Thread(target=_copy, args=(other, self.request))
            back.start()
            _copy(self.request, other)
            back.join()


def _copy(source, target):
    with suppress(OSError):
        while block := source.recv(2**16):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)


def answer(body=b"{}", *, status="200 OK", **headers):
    """A whole answer, in one part."""
    fields = {"Content-Length": len(body)} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return [f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body]
