"""The command line: all commands, of which the one that is called is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

import flare
from flare.cli.command import Group, usage_line
from flare.cli.options import version_option

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "For participants": {
        "check": "Say what the evaluation would refuse.",
        "evaluate": "Score a folder of predictions; writes metrics.json.",
    },
    "For organisers": {
        "challenge": "List, show and validate challenge files.",
        "check-references": "Read a challenge file and all reference labels.",
        "rehearse": "Run the built image on a submission as the platform would.",
        "phase-settings": "Print the settings of three phases of the platform.",
        "leaderboard": "Rank several metrics.json as the platform would.",
        "download": "Get the metrics.json of a phase's teams off the platform.",
        "measure": "Run teams' images, and measure time and GPU memory.",
        "serve": "Measure submissions as they come, and answer them.",
        "score": "Score all teams' predictions, each case only once.",
        "rescore": "Score kept predictions anew, when rules or labels changed.",
        "rank": "Rank teams by FLARE's rule, on each case and metric.",
        "simulate": "Make up results, to try out a ranking on.",
    },
    "For everybody": {
        "report": "Make a page of results, for a browser.",
        "explain": "Say what the code of a message means, and what helps.",
    },
    "For developers": {
        "demonstration": "Write the demonstration set, which is synthetic.",
    },
}
"""By whom they are for; flare.sh has the same list at its top. ``commands/`` has a file
for each, which is loaded when the command is called."""

COMPLETION = "_FLARE_COMPLETE"
"""Variable by which a shell asks how a word may go on."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    elif words == ["version"]:
        words = ["--version"]
    # flare.sh says how it was called, so that messages name what can be typed.
    program = os.environ.get("FLARE_PROGRAM") or "flare"
    return _run(_Commands(), words or ["--help"], program)


def main_evaluate() -> int:
    """Run ``evaluate``, as a program of its own; the result is its exit status."""
    return _run(load("evaluate"), sys.argv[1:], "python evaluate.py")


def _run(command: click.Command, words: Sequence[str], program: str) -> int:
    """Let a command read the words, and run it."""
    try:
        status = command.main(
            words, prog_name=program, complete_var=COMPLETION, standalone_mode=False
        )
    except click.UsageError as error:
        click.echo(usage_line(error), err=True)
        return error.exit_code
    return int(status or 0)


def sentences() -> dict[str, str]:
    """What each command does."""
    return {name: text for group in COMMANDS.values() for name, text in group.items()}


def load(name: str) -> click.Command:
    """A command of the list, out of its file."""
    module = import_module(f"flare.cli.commands.{name.replace('-', '_')}")
    command: click.Command = module.command
    command.help = sentences()[name]
    return command


class _Commands(Group):
    """All commands; only their names are known until one is called."""

    def __init__(self) -> None:
        super().__init__(
            params=[version_option()], help=str(flare.__doc__).partition("\n")[0]
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(sentences())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        return load(cmd_name) if cmd_name in sentences() else None

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the list, by whom a command is for."""
        formatter.write(f"\n{commands_text()}\n")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what to type next."""
        formatter.write(f"\n{ctx.command_path} COMMAND --help names its options.\n")

    def shell_complete(
        self, ctx: click.Context, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin so, with what the commands do; none is loaded."""
        from click.shell_completion import CompletionItem

        return [
            CompletionItem(name, help=text)
            for name, text in sentences().items()
            if name.startswith(incomplete)
        ] + click.Command.shell_complete(self, ctx, incomplete)


def commands_text() -> str:
    """The list of all commands, in groups."""
    width = max(map(len, sentences()))
    groups = [
        "\n".join([f"{title}:", *(f"  {n:<{width}}  {s}" for n, s in group.items())])
        for title, group in COMMANDS.items()
    ]
    return "\n\n".join(groups)
