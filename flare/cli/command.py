"""Commands of click whose usage errors are one line that says what is meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import click

from flare.cli.console import run_command
from flare.common.files import closed_to_others
from flare.common.text import alike

CLOSED = ("download", "measure", "rescore", "score", "serve")
"""Commands that write what is of teams, which other users of the computer cannot read.
Others, as evaluate, whose output the platform reads, leave it to the caller."""

LEFT: dict[tuple[str, str], str] = {
    ("measure", "--plots"): "flare report RESULTS/TEAM draws the traces",
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


class Command(click.Command):
    """A command that is run as `run_command` does it; its result is the exit status.

    Parameters
    ----------
    exclusive : collection of str
        Names of parameters of which one at most may be given.
    """

    def __init__(
        self, name: str | None, *, exclusive: Collection[str] = (), **settings: Any
    ) -> None:
        super().__init__(name, context_settings=dict(_SETTINGS), **settings)
        self.exclusive = exclusive

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words, and refuse them in this order: unknown, missing, too many."""
        if not ctx.resilient_parsing:  # as in completion, where nothing is whole yet
            _check_words(self, ctx, args)
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, list(args))
        except click.MissingParameter:
            missing = ", ".join(map(_name_of, self._missing(ctx, list(args))))
            refuse(ctx, f"the following arguments are required: {missing}")
        if rest and not ctx.resilient_parsing:
            refuse(ctx, f"unrecognized arguments: {' '.join(rest)}")
        self._check_exclusive(ctx)
        return rest

    def _missing(self, ctx: click.Context, words: list[str]) -> list[click.Parameter]:
        """All that is required and not given, in the order of the help."""
        given, rest, _ = self.make_parser(ctx).parse_args(args=words)
        missing = []
        for param in self.params:
            try:
                param.handle_parse_result(ctx, given, rest)
            except click.MissingParameter:
                missing.append(param)
        return missing

    def _check_exclusive(self, ctx: click.Context) -> None:
        """Refuse two parameters that say the same."""
        source = click.core.ParameterSource.COMMANDLINE
        given = [
            _name_of(param)
            for param in self.params
            if param.name in self.exclusive
            and ctx.get_parameter_source(param.name) is source
        ]
        if len(given) > 1:
            refuse(ctx, f"argument {given[1]}: not allowed with argument {given[0]}")

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
            **settings,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words up to the command, which has to be there."""
        if not ctx.resilient_parsing:
            _check_words(self, ctx, args, self.list_commands(ctx))
            if set(args) <= {"--"}:
                refuse(ctx, "the following arguments are required: COMMAND")
        return super().parse_args(ctx, args)


def refuse(ctx: click.Context, message: str) -> NoReturn:
    """Raise a usage error."""
    raise click.UsageError(message, ctx)


def usage_line(error: click.UsageError) -> str:
    """A usage error as one line, which names the command as it was called."""
    message = error.message or error.format_message()
    if isinstance(error, click.BadParameter) and error.param:
        message = f"argument {_name_of(error.param)}: {message}"
    path = error.ctx.command_path if error.ctx else "flare"
    return f"{path}: {' '.join(message.split())}; see {path} --help"


def _name_of(param: click.Parameter) -> str:
    """What the help calls a parameter."""
    if isinstance(param, click.Argument):
        return param.human_readable_name.removesuffix("...")
    return "/".join(param.opts)


def _check_words(
    command: click.Command,
    ctx: click.Context,
    words: Sequence[str],
    commands: Collection[str] | None = None,
) -> None:
    """Refuse an option that is not known before anything else, or a command.

    A word after an option is never taken for its value if it looks like an option.
    """
    options = {
        name: param
        for param in command.get_params(ctx)
        for name in param.opts
        if isinstance(param, click.Option)
    }
    for word, following in pairwise([*words, "--"]):
        if word == "--":
            return
        if commands is not None and not word.startswith("-"):
            _check_known(ctx, "command", word, commands)
            return  # what follows is the command's
        if not _is_option(word):
            continue
        name, is_joined, _ = word.partition("=")
        _check_known(ctx, "option", name, options)
        option = options[name]
        has_value = not (option.is_flag or option.count)
        if has_value and not is_joined and (following == "--" or _is_option(following)):
            refuse(ctx, f"argument {_name_of(option)}: expected one argument")


def _is_option(word: str) -> bool:
    """Whether a word can be no value: neither a number nor a text with spaces."""
    return bool(re.fullmatch(r"-[^\s\d.]\S*", word))


def _check_known(
    ctx: click.Context, kind: str, word: str, known: Collection[str]
) -> None:
    """Refuse a word that is not known, and name the nearest one."""
    if word not in known:
        instead = LEFT.get((str(ctx.command.name), word))
        if instead:
            refuse(ctx, f"{word} is an option of earlier versions: {instead}")
        near = alike(word, known)
        hint = f" (did you mean {near}?)" if near else ""
        refuse(ctx, f"no such {kind}: {word}{hint}")
