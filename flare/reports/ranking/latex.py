"""Writes tables in LaTeX, in which every name is text."""

from __future__ import annotations

from collections.abc import Sequence

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}

NEEDS = r"% In the preamble: \usepackage{booktabs}"
"""Stands above tables."""


def latex_table(
    caption: str, label: str, columns: str, parts: Sequence[Sequence[Sequence[str]]]
) -> str:
    """A table whose parts are parted by lines.

    Parameters
    ----------
    caption, label : str
        Of the table; the label follows ``tab:``.
    columns : str
        How they are aligned, such as ``lrr``.
    parts : sequence
        Rows of cells, as texts; the first part is the head.
    """
    body = [r"\toprule"]
    for number, rows in enumerate(parts):
        body += [r"\midrule"] if number else []
        body += [" & ".join(map(escaped_latex, row)) + r" \\" for row in rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped_latex(caption)}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            *(*body, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def escaped_latex(text: str) -> str:
    r"""Text that LaTeX shows as it is.

    Examples
    --------
    >>> print(escaped_latex("50 % of <b>"))
    50 \% of \textless{}b\textgreater{}
    """
    return "".join(_ESCAPED.get(char, char) for char in text)
