"""How often a case is run, and what is sampled of it, as a command is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from flare.cli.options import OneOf, Parsed, with_options
from flare.common.options import positive, seconds

_OPTIONS = (
    click.option(
        "--interval",
        type=Parsed(seconds),
        default="0.1",
        metavar="S",
        help="Sample the memory every S seconds (default: 0.1).",
    ),
    click.option(
        "--repeats",
        type=Parsed(positive),
        default=1,
        metavar="N",
        help="Run each case N times; the one with the median time counts (default: 1).",
    ),
    click.option(
        "--caches",
        type=OneOf(["cold", "warm"]),
        help="Throw files out of the memory before each run, which only root can do, or"
        " do not (default: cold as root, else warm).",
    ),
    click.option(
        "--no-warm-up",
        is_flag=True,
        help="With warm caches, do not throw a first run away.",
    ),
)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command be told how each case is run."""
    return with_options(function, _OPTIONS)
