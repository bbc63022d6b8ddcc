"""Renders tables as Markdown, LaTeX, and aligned text for a terminal."""

from __future__ import annotations

import re

from flare.common.text import aligned
from flare.reports.model import Table

_MARKDOWN = re.compile(
    r"[\\`*_{}\[\]<>|~#$@]|&(?=[#\w])|:(?=\S)|(?<=www)\.", re.IGNORECASE
)
"""What could be HTML or Markdown within a line, or turn an address into a link."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}

NEEDS = r"% In the preamble: \usepackage{booktabs}"
"""Stands above tables in LaTeX."""


def escaped_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def escaped_latex(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    Examples
    --------
    >>> print(escaped_latex("50 % of <b>"))
    50 \% of \textless{}b\textgreater{}
    """
    return "".join(_LATEX.get(char, char) for char in text)


def _texts(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """The whole texts of the rows, and of those that stand apart."""
    rows = [[cell.full or cell.text for cell in row] for row in table.rows]
    apart = set(table.quiet)
    return (
        [row for n, row in enumerate(rows) if n not in apart],
        [row for n, row in enumerate(rows) if n in apart],
    )


def markdown(table: Table) -> list[str]:
    """A table in Markdown, without the rows that stand apart."""
    rows = [
        [escaped_markdown(text) for text in row]
        for row in (table.heads, *_texts(table)[0])
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(table.heads), *lines[1:]]


def latex(table: Table, label: str) -> str:
    """A table in LaTeX; a line parts the rows that stand apart."""
    body = [r"\toprule"]
    ranked, apart = _texts(table)
    for number, rows in enumerate([[list(table.heads)], ranked, apart]):
        if number == 2 and not apart:
            break
        body += [r"\midrule"] if number else []
        body += [" & ".join(map(escaped_latex, row)) + r" \\" for row in rows]
    columns = "".join("l" if head in table.words else "r" for head in table.heads)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped_latex(table.caption)}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            *(*body, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def terminal(table: Table) -> list[str]:
    """A table as lines; a line parts the rows that stand apart."""
    ranked, apart = _texts(table)
    lines = aligned([list(table.heads), *ranked, *apart])
    if not apart:
        return lines
    line = "-" * max(map(len, lines))
    return [*lines[: -len(apart)], line, *lines[-len(apart) :]]
