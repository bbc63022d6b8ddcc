"""The command line: all commands, of which the one that is called is loaded."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

import flare
from flare.cli.command import Group, usage_line, version_option
from flare.cli.console import INTERRUPTED
from flare.common.text import why

FOLDER = Path(__file__).parent / "commands"
"""A file for each command, loaded when the command is called. Its docstring is what the
command does, and its ``PLACE`` is the group and the place within it, from 1 on."""

GROUPS = ("For participants", "For organisers", "For everybody", "For developers")
"""Who commands are for; flare.sh lists them without Python."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is its exit status."""
    words = sys.argv[1:] if argv is None else argv
    # flare.sh says how it was called, so that messages name what can be typed.
    program = os.environ.get("FLARE_PROGRAM") or "flare"
    return _run(_Commands(), words or ["--help"], program)


def main_evaluate() -> int:
    """Run ``evaluate``, as a program of its own; the result is its exit status."""
    return _run(load("evaluate"), sys.argv[1:], "python evaluate.py")


def _run(command: click.Command, words: Sequence[str], program: str) -> int:
    try:
        status = command.main(words, prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        with suppress(OSError):
            click.echo(usage_line(error), err=True)
        return error.exit_code
    except click.Abort:  # Ctrl-C, before the command has begun
        return INTERRUPTED
    except OSError as error:  # a disk is full that the help should have gone to
        with suppress(OSError):
            click.echo(f"{program}: stdout cannot be written ({why(error)})", err=True)
        return 1
    return int(status or 0)


def command_names() -> list[str]:
    """All commands, sorted."""
    return sorted(f.stem.replace("_", "-") for f in FOLDER.glob("[!_]*.py"))


def commands() -> dict[str, dict[str, str]]:
    """List what each command does, by group; none is loaded."""
    rows = []
    for name in command_names():
        text = (FOLDER / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
        group, place = re.findall(r'^PLACE = \("(.+)", (\d+)\)$', text, re.MULTILINE)[0]
        rows.append((GROUPS.index(group), int(place), name, text.split('"""')[1]))
    groups: dict[str, dict[str, str]] = {title: {} for title in GROUPS}
    for number, _, name, sentence in sorted(rows):
        groups[GROUPS[number]][name] = sentence
    return groups


def load(name: str) -> click.Command:
    """A command, out of its file."""
    module = import_module(f"flare.cli.commands.{name.replace('-', '_')}")
    command: click.Command = module.command
    command.help = module.__doc__
    return command


class _Commands(Group):
    """All commands; only their names are known until one is called."""

    def __init__(self) -> None:
        super().__init__(
            params=[version_option()],
            help=str(flare.__doc__).partition("\n")[0],
            commands=dict.fromkeys(command_names(), click.Command("")),
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        return load(cmd_name) if cmd_name in self.commands else None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list, by whom a command is for."""
        formatter.write(f"\n{commands_text()}\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what to type next."""
        formatter.write(f"\n{ctx.command_path} COMMAND --help names its options.\n")


def commands_text() -> str:
    """The list of all commands, in groups."""
    width = max(map(len, command_names()))
    groups = [
        "\n".join([f"{title}:", *(f"  {n:<{width}}  {s}" for n, s in group.items())])
        for title, group in commands().items()
    ]
    return "\n\n".join(groups)
