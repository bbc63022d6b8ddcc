"""The pages of the documentation are true: their commands run, their links lead on.

The ``sh`` blocks of some pages are run in their order, in one folder. The text that
follows one is what it prints, but for times and versions; a line of three dots stands
for any lines. Comments before a block say what else there is to know of it:

- ``<!-- not run: needs Docker -->``, or another reason
- ``<!-- ends with status 1 -->``
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import ROOT, run_flare

DOCS = ROOT / "docs"

PAGES = ("index.md", "changes.md", "baselines.md")
"""Of docs/organisers, those whose commands are run."""

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


def blocks(page):
    """The ``sh`` blocks of a page, each with the block of text that follows it."""
    found = []
    comment, language, content, start = None, None, [], 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if language is None:
            opened = re.fullmatch(r"\s*```(\w*)", line)
            if opened:
                language, content, start = opened[1], [], number
            elif line.strip():
                comment = COMMENT.fullmatch(line.strip()) or None
        elif line.strip() == "```":
            found.append((start, language, "\n".join(content), comment))
            comment, language = None, None
        else:
            content.append(line)
    following = [*found[1:], (0, "", "", None)]
    for (start, language, script, comment), after in zip(found, following, strict=True):
        if language == "sh":
            yield Block(
                line=start,
                script=script,
                status=int((comment and comment[2]) or 0),
                reason=comment[1] if comment and not comment[2] else "",
                shown=after[2] if after[1] == "text" else None,
            )


@contextmanager
def program(folder):
    """Make the commands of a folder: `flare`, without a start of NumPy, and Python."""
    path = str(folder / "socket")
    (folder / "flare").write_text(SHIM.format(python=sys.executable, path=path))
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("flare", "python3"):
        (folder / name).chmod(0o755)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    thread = threading.Thread(target=_answer, args=[server], daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _answer(server):
    """Run what is asked for, one after the other, until nobody asks any more."""
    while True:
        try:
            asker, _ = server.accept()
        except OSError:
            return
        with asker:
            asked = b"".join(iter(lambda: asker.recv(65536), b""))  # noqa: B023
            words, folder, environment = json.loads(asked)
            run = run_flare(*words, cwd=Path(folder), env=environment)
            answer = json.dumps([run.stdout, run.stderr, run.returncode])
            asker.sendall(answer.encode())


def plain(text):
    """Lines without times and versions, and without spaces at their ends."""
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


@pytest.fixture
def place(tmp_path):
    """A folder as a checkout has them, with the command `flare`."""
    folder = tmp_path / "checkout"
    for name in ("examples", "ground-truth"):
        shutil.copytree(ROOT / name, folder / name)
    (tmp_path / "bin").mkdir()
    with program(tmp_path / "bin"):
        yield folder


@pytest.mark.slow
def test_the_commands_of_pages_print_what_they_show(place):
    """The later pages go on with what the earlier ones have made."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("FLARE_")
    }
    environment["PATH"] = f"{place.parent / 'bin'}{os.pathsep}{environment['PATH']}"
    for page in PAGES:
        run_blocks = [b for b in blocks(DOCS / "organisers" / page) if not b.reason]
        assert len(run_blocks) > 4, page
        for block in run_blocks:
            run = subprocess.run(
                ["bash", "-e", "-c", block.script],
                cwd=place,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            where = f"{page}:{block.line} printed\n{run.stdout}"
            assert run.returncode == block.status, where
            if block.shown is not None:
                assert is_shown(block.shown, run.stdout), where


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb", "a\nb\n", True),
        ("a 0.01 s", "a 12.50 s\n", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a\n...\nd", "a\nd\n", True),
        ("...\nd", "c\nd\n", True),
        ("a", "a\nb\n", False),
        ("a\n...", "b\na\n", False),
        ("0.91", "0.92\n", False),
    ],
)
def test_what_is_shown_is_compared_with_what_was_printed(shown, printed, expected):
    assert bool(is_shown(shown, printed)) is expected


def test_blocks_that_are_not_run_say_why():
    """And a misspelt comment is no comment that is taken for one."""
    for name in PAGES:
        text = (DOCS / "organisers" / name).read_text(encoding="utf-8")
        comments = re.findall(r"<!--.*?-->", text)
        assert all(COMMENT.fullmatch(comment) for comment in comments), name


def links():
    """Links of all pages to files, as (page, target)."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            yield page, target


def test_links_stay_within_the_documentation():
    """Whether the page is there is for the build of the site to say."""
    for page, target in links():
        path = (page.parent / target).resolve()
        assert path.is_relative_to(DOCS), f"{page}: {target}"


INTERNAL = {"FLARE_COMMIT", "FLARE_COMPLETE", "FLARE_PROGRAM"}
"""Variables that nobody sets by hand, or that the first page has."""


def test_every_variable_that_is_read_is_in_the_table():
    scripts = [
        *ROOT.glob("*.sh"),
        *(ROOT / "scripts").glob("*.sh"),
        ROOT / "Dockerfile",
    ]
    scripts += [*(ROOT / "flare").rglob("*.py"), *(ROOT / "examples").rglob("*.sh")]
    text = "".join(path.read_text(encoding="utf-8") for path in scripts)
    page = (DOCS / "organisers" / "container.md").read_text(encoding="utf-8")

    found = set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", page.split("## Environment")[1]))

    assert found == set(re.findall(r"\bFLARE_[A-Z_]*[A-Z]", text)) - INTERNAL
