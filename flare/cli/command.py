"""Commands of click: told by a dataclass, and refusing in one line that says why."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from flare.cli.console import run_command
from flare.common.environment import __version__, source_commit
from flare.common.files import closed_to_others
from flare.common.options import KEY, Declared
from flare.common.text import printable

CLOSED = ("download", "measure", "rescore", "score", "serve")
"""Commands that write what is of teams, which other users of the computer cannot read.
Others, as evaluate, whose output the platform reads, leave it to the caller."""

LEFT: dict[tuple[str, str], str] = {
    ("evaluate", "--nnunet-summary"): "--csv FILE writes the values as a table",
    ("score", "--nnunet-summary"): "--csv FILE writes the values as a table",
    ("measure", "--plots"): "flare report RESULTS/TEAM draws the traces",
    ("measure", "--interleave"): "teams are measured one after the other",
    ("measure", "--unlike-lanes"): "measure on computers and GPUs of one kind",
    ("measure", "--model"): "put TEAMNAME.model.tar.gz beside the archive",
    ("phase-settings", "--contract"): "say on the page how images are run",
    ("phase-settings", "--input-socket"): "say on the page how images are run",
    ("phase-settings", "--output-path"): "say on the page how images are run",
    ("serve", "--log"): "RESULTS/.serve/journal.json has each step",
}
"""Options of earlier versions, by command and flag, and what to use instead."""

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class Option(click.Option):
    """An option whose place and notes in the help are its own."""

    def __init__(self, *declarations: Any, title: str = "Options", **settings: Any):
        super().__init__(*declarations, **settings)
        self.title = title

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return notes: an option is not required where a variable stands in for it."""
        extra = super().get_help_extra(ctx)
        if self.envvar:
            extra.pop("required", None)
        return extra

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value; it is never a word that looks like an option itself."""
        for word in value if isinstance(value, list | tuple) else [value]:
            if isinstance(word, str) and re.fullmatch(r"-[^\s\d.]\S*", word):
                raise click.BadOptionUsage(
                    self.opts[0], f"Option {self.opts[0]!r} requires an argument.", ctx
                )
        return super().type_cast_value(ctx, value)


class Command(click.Command):
    """A command that is run as `run_command` does it; its result is the exit status.

    Of the parameters that `exclusive` names, a command takes one.
    """

    def __init__(
        self, name: str | None, *, exclusive: Collection[str] = (), **settings: Any
    ) -> None:
        super().__init__(name, context_settings=dict(_SETTINGS), **settings)
        self.exclusive = exclusive

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; an option of an earlier version is told its successor."""
        try:
            unread_words = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            instead = LEFT.get((str(self.name), error.option_name))
            if not instead:
                raise
            option = f"{error.option_name} is an option of earlier versions"
            raise click.UsageError(f"{option}: {instead}", ctx) from error
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where a value is missing
            raise
        typed = click.core.ParameterSource.COMMANDLINE
        hints = [
            param.get_error_hint(ctx)
            for param in self.params
            if param.name in self.exclusive
            and ctx.get_parameter_source(param.name) is typed
        ]
        if len(hints) > 1:
            raise click.UsageError(f"{hints[1]} is not allowed with {hints[0]}", ctx)
        return unread_words

    def invoke(self, ctx: click.Context) -> int:
        """Do the work; what it raises becomes a line and an exit status."""
        with closed_to_others() if self.name in CLOSED else nullcontext():
            return run_command(partial(super().invoke, ctx))

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write all options, below their titles."""
        titles: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row and not isinstance(param, click.Argument):
                titles.setdefault(getattr(param, "title", "Options"), []).append(row)
        for title, rows in titles.items():
            with formatter.section(title):
                formatter.write_dl(rows)


class Group(click.Group):
    """A command that has commands."""

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__(
            name,
            context_settings=dict(_SETTINGS),
            subcommand_metavar="COMMAND ...",
            no_args_is_help=False,
            **settings,
        )


def usage_line(error: click.UsageError) -> str:
    """A usage error as one line, which names the command as it was called."""
    path = error.ctx.command_path if error.ctx else "flare"
    message = printable(" ".join(error.format_message().split()).rstrip("."))
    return f"{path}: {message}; see {path} --help"


# --- Values of options ------------------------------------------------------------

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


class OneOf(click.Choice[Any]):
    """One of some words, or of the values of an enum, whose member is given."""

    def normalize_choice(self, choice: object, ctx: click.Context | None) -> str:
        """Return the word for a choice."""
        return str(choice.value if isinstance(choice, Enum) else choice)


# --- The dataclass that click fills -----------------------------------------------

_T = TypeVar("_T")

_UNITS = ("_s", "_bytes")
"""At the end of a field's name, which its option does not have."""


def takes(
    kind: type[_T], name: str = "", **settings: Any
) -> Callable[[Callable[[_T], None]], Command]:
    """Make a command that is told a dataclass, which it gets as its only argument.

    Each field made by `flare.common.options.option` is an option, and each whose type
    is such a dataclass stands for the options of that one; other fields keep their
    defaults. The help has them in the order of the fields.

    A ValueError of its ``__post_init__`` is a usage error. Unless a `name` is given,
    the command has that of its file; `settings` are those of `Command`.
    """

    def decorate(function: Callable[[_T], None]) -> Command:
        def run(**values: Any) -> None:
            try:
                request = _filled(kind, values)
            except ValueError as error:
                context = click.get_current_context()
                raise click.UsageError(str(error), context) from error
            function(request)

        title = name or function.__module__.rpartition(".")[2].replace("_", "-")
        params = [
            (_argument if row.metadata[KEY].is_argument else _option)(row, hint)
            for row, hint in _declared(kind)
        ]
        return Command(title, callback=run, params=params, **settings)

    return decorate


def _declared(kind: Any) -> Iterator[tuple[Field[Any], Any]]:
    """All fields that are options, with their types, also those of its parts."""
    hints = get_type_hints(kind)
    for row in fields(kind):
        hint = hints[row.name]
        if KEY in row.metadata:
            yield row, hint
        elif is_dataclass(hint):
            yield from _declared(_part(row, hint))


def _part(row: Field[Any], hint: Any) -> Any:
    """Return the dataclass of a part: its default's, which may say more of options."""
    factory: Any = row.default_factory
    return factory if isinstance(factory, type) and is_dataclass(factory) else hint


def _filled(kind: Any, words: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    values = {}
    for row in fields(kind):
        if KEY not in row.metadata:
            if is_dataclass(hints[row.name]):
                values[row.name] = _filled(_part(row, hints[row.name]), words)
        elif hints[row.name] is bool:
            values[row.name] = words[row.name] != row.default
        elif words[row.name] not in (None, ()):
            values[row.name] = words[row.name]
    return kind(**values)


def _argument(row: Field[Any], hint: Any) -> click.Argument:
    declared: Declared = row.metadata[KEY]
    is_several = get_origin(hint) is tuple
    return click.Argument(
        [row.name],
        type=_type(hint, declared),
        nargs=-1 if is_several else 1,
        required=row.default is MISSING,
        metavar=declared.metavar,
        help=declared.help,
    )


def _option(row: Field[Any], hint: Any) -> click.Option:
    declared: Declared = row.metadata[KEY]
    name = row.name
    for unit in _UNITS:
        name = name.removesuffix(unit)
    flag = declared.flag or f"--{name.replace('_', '-')}"
    kind = {"is_flag": True} if hint is bool else {"type": _type(hint, declared)}
    return Option(
        [flag, row.name],
        title=declared.title,
        multiple=get_origin(hint) is tuple and not declared.parse,
        required=row.default is MISSING and row.default_factory is MISSING,
        metavar=declared.metavar,
        envvar=declared.envvar,
        hidden=declared.is_hidden,
        help=declared.help,
        **kind,
    )


def _type(hint: Any, declared: Declared) -> click.ParamType[Any]:
    if declared.parse:
        return Parsed(declared.parse)
    kind = _plain_type(hint)
    if kind is Path:
        return PATH
    if get_origin(kind) is Literal:
        return OneOf(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return OneOf(kind)
    if kind is not str:
        raise TypeError(f"{kind} needs a function that parses it")
    return click.STRING


def _plain_type(hint: Any) -> Any:
    """Return the type of one value, where there may be several of it, or none."""
    if get_origin(hint) is tuple:
        return get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


# --- The version ------------------------------------------------------------------


def version_text() -> str:
    """The version, and the commit if that is known."""
    commit = source_commit()
    return f"flare {__version__}" + (f" ({commit})" if commit != "unknown" else "")


def version_option() -> click.Option:
    """``--version``, which ends the program; git is asked only then."""

    def tell(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
        if is_asked:
            from flare.evaluation.metrics.kernel import slow_text

            click.echo("\n".join(filter(None, (version_text(), slow_text()))))
            ctx.exit()

    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=tell,
        help="Print the version, and the commit where it is known.",
    )
