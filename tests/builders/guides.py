"""Pages of the documentation that are followed: their blocks of commands are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass

from tests.builders import ROOT

COMMENT = re.compile(r"<!-- (not run: .+|ends with status (\d)) -->")

SHIM = """#!{python} -P
import sys
sys.path.insert(0, {root!r})
words = sys.argv[1:]
{change}
sys.argv[1:] = words
{start}
"""
"""The command `flare` of the blocks, with other words than those that are typed."""

START = "from flare.cli.main import main; sys.exit(main())"


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


def make_commands(folder, change="", start=START):
    """Make `flare` and Python; `change` are lines that change the list `words`."""
    folder.mkdir()
    shim = SHIM.format(
        python=sys.executable, root=str(ROOT), change=change, start=start
    )
    (folder / "flare").write_text(shim)
    (folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for name in ("flare", "python3"):
        (folder / name).chmod(0o755)
    return folder


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
