#!/usr/bin/env bash
# Package: httpx2 2.16.2 (with httpcore2 2.16.2), beside Python's own urllib.
#
# Where SSL_CERT_FILE and SSL_CERT_DIR are both set, Python trusts the certificates of the
# file and those of the folder. httpx2 trusts those of the file alone: the folder is not
# looked at, also if the certificate that is needed lies there.
#
# Why it matters: computers of hospitals name the CA of their proxy in SSL_CERT_FILE, and
# the system's certificates in SSL_CERT_DIR. A program that moves from urllib to httpx2
# then reaches hosts behind the proxy only, and says "unable to get local issuer" or
# "self-signed certificate" of all others.
#
# Usage: findings/httpx2-ssl-cert-dir.sh
# Needs Python 3.11 or newer, openssl, and PyPI. Connects to this computer alone.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  httpx2==2.16.2 httpcore2==2.16.2

for name in host other; do
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" \
    -addext "subjectAltName=DNS:localhost" \
    -keyout "$work/$name.key" -out "$work/$name.crt" 2>/dev/null
done
mkdir "$work/folder"
cp "$work/host.crt" "$work/folder/$(openssl x509 -hash -noout -in "$work/host.crt").0"

cat >"$work/try.py" <<'PYTHON'
import ssl
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Server(HTTPServer):
    def handle_error(self, *_):
        pass


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server = Server(("localhost", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"https://localhost:{server.server_port}/"
with urllib.request.urlopen(url, timeout=10) as answer:
    print("urllib:", answer.status)
try:
    print("httpx2:", httpx2.get(url, timeout=10).status_code)
except httpx2.ConnectError as error:
    refused = "certificate verify failed" in str(error).lower()
    print("httpx2:", "ConnectError, certificate verify failed" if refused else error)
PYTHON

seen=$(env -u HTTPS_PROXY -u https_proxy -u ALL_PROXY -u all_proxy NO_PROXY=localhost \
  SSL_CERT_FILE="$work/other.crt" SSL_CERT_DIR="$work/folder" \
  "$work/venv/bin/python" "$work/try.py" "$work/host.crt" "$work/host.key")
echo "$seen"
expected="urllib: 200
httpx2: ConnectError, certificate verify failed"
if [ "$seen" != "$expected" ]; then
  echo "This has changed; expected:" >&2
  echo "$expected" >&2
  exit 1
fi
