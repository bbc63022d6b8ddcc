"""Pages of the documentation that are followed: their blocks of commands are run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.builders import run_flare

COMMENT = re.compile(r"<!-- (not run: .+|ends with status (\d)) -->")

SHIM = """#!{python} -IS
import json, os, socket, sys
program = socket.socket(socket.AF_UNIX)
program.connect({path!r})
program.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
program.shutdown(socket.SHUT_WR)
out, err, status = json.loads(b"".join(iter(lambda: program.recv(65536), b"")))
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""
"""The command `flare` of the blocks, which asks the tests to run the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Commands of a page."""

    line: int
    script: str
    status: int
    """That it should end with."""
    reason: str
    """Why it is not run; empty if it is."""
    shown: str | None
    """What it is said to print; None if nothing is said."""
    section: str = ""
    """The last heading before it."""


def blocks(page):
    """The ``sh`` blocks of a page, each with the block of text that follows it."""
    found = []
    comment, language, content, start, section = None, None, [], 0, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if language is None:
            opened = re.fullmatch(r"\s*```(\w*)", line)
            if opened:
                language, content, start = opened[1], [], number
            elif line.strip():
                comment = COMMENT.fullmatch(line.strip()) or None
                section = line.lstrip("# ") if line[0] == "#" else section
        elif line.strip() == "```":
            found.append((start, language, "\n".join(content), comment, section))
            comment, language = None, None
        else:
            content.append(line)
    following = [*found[1:], (0, "", "", None, "")]
    for own, after in zip(found, following, strict=True):
        start, language, script, comment, section = own
        if language == "sh":
            yield Block(
                line=start,
                script=script,
                status=int((comment and comment[2]) or 0),
                reason=comment[1] if comment and not comment[2] else "",
                shown=after[2] if after[1] == "text" else None,
                section=section,
            )


@contextmanager
def program(folder, change=list, run=run_flare):
    """Make the commands of a folder: `flare`, without a start of NumPy, and Python.

    `change` makes what is run of the words that are given, and `run` runs it.
    """
    path = str(folder / "socket")
    (folder / "flare").write_text(SHIM.format(python=sys.executable, path=path))
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("flare", "python3"):
        (folder / name).chmod(0o755)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    thread = threading.Thread(target=_answer, args=[server, change, run], daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _answer(server, change, run):
    while True:
        try:
            asker, _ = server.accept()
        except OSError:
            return
        with asker:
            asked = b"".join(iter(lambda: asker.recv(65536), b""))  # noqa: B023
            words, folder, environment = json.loads(asked)
            ended = run(*change(words), cwd=Path(folder), env=environment)
            answer = json.dumps([ended.stdout, ended.stderr, ended.returncode])
            asker.sendall(answer.encode())


def plain(text):
    text = re.sub(r"\b\d+\.\d\d s\b", "TIME", text)
    text = re.sub(r"\b\d+\.\d+\.\d+\b", "VERSION", text)
    return [line.rstrip() for line in text.split("\n")]


def is_shown(shown, printed):
    """Whether the lines that are shown are those that were printed, in their order."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
        for line in plain(shown.strip("\n"))
    )
    return re.fullmatch(pattern, "\n".join(plain(printed.strip("\n"))) + "\n")


def run_block(block, folder, commands, **more):
    """Run a block where the commands of a folder are; it does what the page says.

    Of variables that begin with FLARE_, only those that are given are set.
    """
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("FLARE_")
    } | more
    environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
    environment["HOME"] = str(folder)
    run = subprocess.run(
        ["bash", "-e", "-c", block.script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    where = f"line {block.line} printed\n{run.stdout}"
    assert run.returncode == block.status, where
    if block.shown is not None:
        assert is_shown(block.shown, run.stdout), where
    return run.stdout
