"""Options that several commands share, with the types of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flare.common.version import __version__, source_commit

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATH = click.Path(path_type=Path, readable=False)
"""A file or folder; whether it is there, and can be read, is for the command to say."""


class Parsed(click.ParamType[Any]):
    """A value that a function makes of a text, or refuses with a ValueError."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.name = parse.__name__
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the value, or end with a usage error."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class PageOrFolder(click.Path):
    """A file whose name says that it is a page, or a folder for several."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path; a name of another kind of file is a usage error."""
        suffix = Path(str(value)).suffix.lower()
        if suffix in (".csv", ".json", ".md", ".pdf", ".png", ".svg", ".txt", ".zip"):
            text = (
                f"{str(value)!r} is neither a page, such as report.html, nor a folder"
            )
            self.fail(text, param, ctx)
        return super().convert(value, param, ctx)


class PageFile(click.Path):
    """A file whose name says that it is a page."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path; another ending of its name is a usage error."""
        if Path(str(value)).suffix.lower() not in (".html", ".htm"):
            self.fail(f"{str(value)!r} is no page, such as live.html", param, ctx)
        return super().convert(value, param, ctx)


class OneOf(click.Choice[str]):
    """One of some words."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the word, or end with a usage error that names all."""
        if value not in self.choices:
            words = ", ".join(self.choices)
            self.fail(f"invalid choice: {value!r} (choose from {words})", param, ctx)
        return str(value)


class ChallengeName(click.Path):
    """A challenge that comes with the program, or a file: both are completed."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so, or else the files."""
        from click.shell_completion import CompletionItem

        from flare.challenge.reading import challenge_names

        names = [name for name in challenge_names() if name.startswith(incomplete)]
        files = super().shell_complete(ctx, param, incomplete)
        return [CompletionItem(name) for name in names] or files


# --- Values -----------------------------------------------------------------------


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number above 0")
    return int(text)


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal() or len(text) > 18:
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not a number from 0 to 1")
    return value


def seconds(text: str) -> float:
    """A time above 0, and below a year."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3e7:
        raise ValueError(f"{text!r} is not a number of seconds above 0")
    return value


# --- Options ----------------------------------------------------------------------


def _tell_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Print the version, and end; git is asked only then."""
    if is_asked and not ctx.resilient_parsing:
        click.echo(version_text())
        ctx.exit()


def version_text() -> str:
    """The version, and the commit if that is known."""
    commit = source_commit()
    return f"flare {__version__}" + (f" ({commit})" if commit != "unknown" else "")


def version_option() -> click.Option:
    """``--version``, which ends the program."""
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_tell_version,
        help="Print the version, and the commit where it is known.",
    )


def with_options(
    command: Callable[..., Any], options: Sequence[Callable[..., Any]]
) -> Callable[..., Any]:
    """Give a command some options; its help tells them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


challenge_option = click.option(
    "--challenge",
    type=ChallengeName(readable=False),
    envvar="FLARE_CHALLENGE",
    default="flare21",
    metavar="NAME|FILE.toml",
    help="Apply the rules of this challenge (default: $FLARE_CHALLENGE, else flare21).",
)

csv_option = click.option(
    "--csv",
    type=PATH,
    metavar="FILE",
    help="Also write the scores as a table with the columns team, case, metric and"
    " value, which flare rank reads.",
)

workers_option = click.option(
    "--workers",
    type=Parsed(positive),
    envvar="FLARE_WORKERS",
    metavar="N",
    help="Use N processes (default: $FLARE_WORKERS, else what CPUs and memory allow).",
)
