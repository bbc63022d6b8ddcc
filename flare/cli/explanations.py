"""What every code at the end of a message means, as its class of errors says."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

# Each room has the errors that it raises; to import them is to know them.
import flare.challenge.reading
import flare.evaluation.errors
import flare.evaluation.file_errors
import flare.evaluation.many.errors
import flare.evaluation.organiser_errors
import flare.measuring.errors
import flare.platforms.errors
import flare.results.errors  # noqa: F401
from flare.common.errors import FlareError


@dataclass(frozen=True)
class Explanation:
    """What a code means."""

    code: str
    """Such as F07."""
    title: str
    """What is wrong, as a sentence."""
    body: str
    """What it means, and what helps: paragraphs, lists and code in Markdown."""

    @property
    def markdown(self) -> str:
        """The section of a page."""
        return f"## {self.code}: {self.title}\n\n{self.body}\n"

    def text(self, columns: int) -> str:
        """The section for a terminal, in lines of so many columns."""
        blocks = [f"{self.code}: {self.title}", *self.body.split("\n\n")]
        return "\n\n".join(_filled(block, columns) for block in blocks)


def explanations() -> dict[str, Explanation]:
    """What every code means, in the order of the codes."""
    found = {}
    for kind in _classes(FlareError):
        text = inspect.cleandoc(kind.__doc__ or "")
        title, _, body = text.partition("\n\n")
        found[kind.code] = Explanation(kind.code, title, body)
    return dict(sorted(found.items()))


def _classes(kind: type[FlareError]) -> Iterator[type[FlareError]]:
    """All classes that have a code of their own."""
    for child in kind.__subclasses__():
        if "code" in vars(child):
            yield child
        yield from _classes(child)


def _filled(block: str, columns: int) -> str:
    """A paragraph, or a list, in lines that fit."""
    lines = re.sub(r"\n(?!- )\s*", " ", block).split("\n")
    return "\n".join(
        textwrap.fill(
            line,
            columns,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )
