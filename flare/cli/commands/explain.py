"""``flare explain``: what the code at the end of a message means."""

from __future__ import annotations

import logging

import click

from flare.cli.command import Command
from flare.cli.console import VERBATIM, terminal_columns
from flare.cli.explanations import Explanation, explanations
from flare.cli.options import Parsed
from flare.common.text import nearest

_log = logging.getLogger(__name__)


def code(text: str) -> Explanation:
    """What a code means; brackets and small letters are no mistake."""
    known = explanations()
    name = text.strip("[]").upper()
    if name not in known:
        raise ValueError(f"there is no code {name}{nearest(name, known)}")
    return known[name]


@click.command("explain", cls=Command)
@click.argument(
    "found",
    required=False,
    metavar="CODE",
    type=Parsed(code),
    help="The code in brackets at the end of a message, such as F07; without one, all"
    " codes are listed.",
)
def command(*, found: Explanation | None) -> None:
    """Print what a code means and what helps, or the list of all codes."""
    if found:
        text = found.text(min(terminal_columns(), 88))
        _log.info("%s", text, extra=VERBATIM)
    else:
        for known in explanations().values():
            _log.info("%s  %s", known.code, known.title)
