"""Renders tables as Markdown, LaTeX, and aligned text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from flare.challenge.metrics import lesion_notes
from flare.common.text import aligned, columns_of, isolated, printable
from flare.reports.model import BEST, Table

_MARKDOWN = re.compile(
    r"[\\`*_{}\[\]<>|~#$@]|&(?=[#\w])|:(?=\S)|(?<=www)\.", re.IGNORECASE
)
"""Characters that could be HTML or Markdown, or turn an address into a link."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u00b1": r"$\pm$",
    "\u2020": r"$^{\dagger}$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}

_BEYOND_PDFLATEX = re.compile(
    "[^\0-\u0125\u0128-\u0137\u0139-\u013e\u0141-\u0148\u014a-\u0165\u0168-\u017e]"
)
"""Characters that no font of pdflatex's encoding T1 has: all but these few, as Python
takes 8 ms for a set of nearly all that there are."""

_ISOLATED = r"\mbox{", "}"
"""LaTeX around words that are read from right to left."""

_LEFTWARD_FONTS = (
    r"% For names from right to left also: \usepackage[bidi=basic,english]{babel}"
    r" \babelprovide[import,onchar=ids fonts]{arabic}"
    r" \babelfont[arabic]{rm}{Noto Naskh Arabic}"
    r" \babelprovide[import,onchar=ids fonts]{hebrew}"
    r" \babelfont[hebrew]{rm}{Noto Serif Hebrew}"
)
"""The needs of lualatex for them; tried with TeX Live 2022."""

_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


@lru_cache(maxsize=65536)  # sheets of many teams have the same cases and ranks
def escaped_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    return isolated(_MARKDOWN.sub(r"\\\g<0>", printable(text)))


def lesion_lines() -> list[str]:
    """The definitions of lesions that titles tell, each below an empty line."""
    return [f"\n{escaped_markdown(note)}" for note in lesion_notes()]


def escaped_latex(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    Examples
    --------
    >>> print(escaped_latex("50 % of <b>"))
    50 \% of \textless{}b\textgreater{}
    """
    escaped = "".join(_LATEX.get(char, char) for char in printable(text))
    return isolated(escaped, *_ISOLATED)


def _cells(
    table: Table, escaped: Callable[[str], str], bold: str = "{}"
) -> tuple[list[list[str]], list[list[str]]]:
    """The whole texts of the rows, and of those that stand apart."""
    quiet = set(table.quiet)
    ranked, apart = [], []
    for number, row in enumerate(table.rows):
        texts = []
        for cell in row:
            text = escaped(cell.text)
            texts.append(bold.format(text) if cell.css == BEST else text)
        if number in quiet:
            apart.append(texts)
        else:
            ranked.append(texts)
    return ranked, apart


def markdown(table: Table) -> list[str]:
    """A table in Markdown; the rows that stand apart are the last ones."""
    heads = list(map(escaped_markdown, table.heads))
    ranked, apart = _cells(table, escaped_markdown, "**{}**")
    return markdown_lines([heads, *ranked, *apart])


def markdown_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown, of its heads and rows in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def latex(table: Table, label: str) -> str:
    """A table in LaTeX, shrunk if it is wider than the text.

    A line parts the rows that stand apart.
    """
    ranked, apart = _cells(table, escaped_latex, r"\textbf{{{}}}")
    heads = list(map(escaped_latex, table.heads))
    body = [r"\toprule", *_latex_rows([heads]), r"\midrule", *_latex_rows(ranked)]
    if apart:
        body += [r"\midrule", *_latex_rows(apart)]
    columns = "".join("l" if head in table.words else "r" for head in table.heads)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped_latex(table.caption)}}}",
            rf"\label{{tab:{label}}}",
            _SHRUNK,
            rf"\begin{{tabular}}{{{columns}}}",
            *(*body, r"\bottomrule"),
            r"\end{tabular}}",
            r"\end{table}",
        ]
    )


def _latex_rows(rows: Sequence[Sequence[str]]) -> list[str]:
    lines = []
    for row in rows:
        # Nothing here may be taken for an option of the line before.
        start = "{}" if row[0].startswith(("[", "*")) else ""
        lines.append(f"{start}{' & '.join(row)} " + r"\\")
    return lines


def latex_file(tables: Sequence[str]) -> str:
    """A file of such tables, below a comment on the packages that they need."""
    text = "\n\n".join(tables)
    names = "booktabs,graphicx"
    needs = rf"% In the preamble: \usepackage{{{names}}}"
    if _BEYOND_PDFLATEX.search(text):
        names += ",fontspec"
        needs = (
            rf"% Compile with lualatex; in the preamble: \usepackage{{{names}}}"
            r" \setmainfont{a font that has all names, such as Noto Serif CJK SC}"
        )
    elif not text.isascii():
        needs += r" \usepackage[T1]{fontenc}"
    if _ISOLATED[0] in text:
        needs = f"{needs}\n{_LEFTWARD_FONTS}"
    return f"{needs}\n{text}\n"


def terminal(table: Table) -> list[str]:
    """A table as lines; a line parts the rows that stand apart."""
    ranked, apart = _cells(table, printable)
    lines = aligned([list(table.heads), *ranked, *apart])
    if not apart:
        return lines
    line = "-" * max(map(columns_of, lines))
    return [*lines[: -len(apart)], line, *lines[-len(apart) :]]
