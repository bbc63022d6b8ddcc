"""Writes texts and tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MARKDOWN = re.compile(
    r"[\\`*_{}\[\]<>|~#$@]|&(?=[#\w])|:(?=\S)|(?<=www)\.", re.IGNORECASE
)
"""What could be HTML or Markdown within a line, or turn an address into a link."""


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, with its first row as the header."""
    safe_rows = [[escaped(cell) for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in safe_rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]
