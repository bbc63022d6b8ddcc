"""Options that say how an image is run: as FLARE's, or as a platform's algorithm."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from flare.cli.command import Option
from flare.cli.options import OneOf, Parsed, with_options
from flare.common.errors import InputError
from flare.measuring.contract import FLARE, Contract, algorithm

_PATH = re.compile(r"images(?:/[A-Za-z0-9][\w.-]*)+", re.ASCII)
"""The platform's rule for the relative path of a socket that holds an image."""

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]*")


def contract_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command be told how images are run; it gets a `Contract`."""
    options = [
        _option("--contract", OneOf(["flare", "algorithm"]), None, "Run images as FLARE"
                " does, by predict.sh in /workspace, or as algorithms of"
                " grand-challenge.org, by their own entrypoint with /input and /output"
                " (default: flare).", default="flare"),
        _option("--input-socket", Parsed(image_socket), "SLUG=PATH", "Slug and relative"
                " path of the algorithm's input image, such as ct-image=images/ct."),
        _option("--output-path", Parsed(image_path), "PATH", "Relative path of the"
                " algorithm's label map, such as images/organ-segmentation."),
    ]  # fmt: skip

    @wraps(function)
    def command(**given: Any) -> Any:
        names = ("contract", "input_socket", "output_path")
        contract = contract_of(*(given.pop(name) for name in names))
        return function(contract=contract, **given)

    return with_options(command, options)


def contract_of(
    name: str, socket: tuple[str, str] | None, output_path: str | None
) -> Contract:
    """The contract that was asked for.

    Raises
    ------
    InputError
        If an algorithm's paths are missing, or nothing asks for them.
    """
    given = {"--input-socket": socket, "--output-path": output_path}
    if name == "flare":
        for option, value in given.items():
            if value:
                raise InputError(
                    f"{option}: it is about algorithms",
                    "Give --contract algorithm, too.",
                )
        return FLARE
    if not socket or not output_path:
        missing = " and ".join(option for option, value in given.items() if not value)
        raise InputError(
            f"--contract algorithm: it needs {missing}",
            "The interface of the phase has them.",
        )
    return algorithm(*socket, output_path)


def image_socket(text: str) -> tuple[str, str]:
    """Slug and relative path of a socket.

    Examples
    --------
    >>> image_socket("ct-image=images/ct")
    ('ct-image', 'images/ct')
    """
    slug, _, path = text.partition("=")
    if not _SLUG.fullmatch(slug) or not path:
        raise ValueError(f"{text!r} is no slug and path such as ct-image=images/ct")
    return slug, image_path(path)


def image_path(text: str) -> str:
    """Relative path of a socket that holds an image."""
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is no path of an image socket such as images/ct")
    return text


def _option(
    flag: str, kind: Any, metavar: str | None, text: str, **more: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option of a container's contract."""
    title = "Contract of the images"
    named = {"metavar": metavar} if metavar else {}
    return click.option(
        flag, cls=Option, title=title, type=kind, help=text, **named, **more
    )
