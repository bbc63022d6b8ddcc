"""The command line: help, names and suggestions; nothing is run."""

import errno
import io
import os
import re
import sys

import click
import pytest

from flare.cli.main import command_names, commands, commands_text, load, main
from tests.builders import ROOT, run_command, run_flare


def every_command():
    found = {}
    for name in command_names():
        found[name] = command = load(name)
        if isinstance(command, click.Group):
            found |= {f"{name} {sub}": c for sub, c in command.commands.items()}
    return found


ALL = every_command()


def test_every_command_is_in_a_group_and_has_a_sentence():
    listed = {
        name: text for group in commands().values() for name, text in group.items()
    }

    assert sorted(listed) == command_names()
    assert max(map(len, commands_text().splitlines())) <= 79
    assert {name: load(name).help for name in listed} == listed
    for name, command in ALL.items():
        assert command.help[0].isupper(), name
        assert command.help.endswith("."), name
        assert command.name == name.rpartition(" ")[2]


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_every_option_is_a_sentence(name):
    command = ALL[name]
    context = click.Context(command)
    listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", command.get_help(context), re.M)
    params = command.get_params(context)
    options = {own.opts[-1]: own for own in params if isinstance(own, click.Option)}
    assert sorted(listed) == sorted(o for o, own in options.items() if not own.hidden)
    for param in params:
        assert param.help, param.name
        assert param.help[0].isupper(), param.help
        assert param.help.endswith("."), param.help


def test_help_begins_with_what_the_program_is_for(capsys):
    assert main(["--help"]) == 0

    usage, sentence, *_ = capsys.readouterr().out.split("\n\n")
    assert usage == "Usage: flare [OPTIONS] COMMAND ..."
    assert sentence == (
        "  Scores abdominal organ segmentations for the MICCAI FLARE challenges."
    )


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
@pytest.mark.parametrize("called", ["flare.sh", "../flare.sh"])
def test_flare_sh_lists_the_commands_without_anything_installed(words, called):
    run = run_command(
        called if "/" in called else f"./{called}",
        *words,
        cwd=ROOT / "docs" if "/" in called else ROOT,
        env={"PATH": "/usr/bin:/bin", "FLARE_VENV": "/nowhere"},
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.endswith(f"\n\n{commands_text()}\n")


def test_a_number_below_0_and_a_text_with_spaces_are_values(tmp_path):
    """But texts that begin with a hyphen alone are options."""
    command = load("demonstration")
    words = ["--output", "- x"]
    assert str(command.make_context("demonstration", words).params["output"]) == "- x"
    run = run_flare("rank", "x", "--output", "y", "--gate", "-0.5")
    assert "'-0.5' is not a number from 0 to 1" in run.stderr


def test_messages_name_the_program_as_it_was_called():
    run = run_flare("rank", env=os.environ | {"FLARE_PROGRAM": "./flare.sh"})

    assert run.stderr == (
        "./flare.sh rank: Missing argument 'RESULTS'; see ./flare.sh rank --help\n"
    )


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["explain", "--help"]])
def test_help_that_has_nowhere_to_go_is_one_line(words, capsys, monkeypatch):
    class Full(io.StringIO):
        """A disk without room."""

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sys.stdout", Full())

    assert main(words) == 1

    line = "flare: stdout cannot be written (no space left on device)\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("code", ["flare.cli.main", "flare; flare.Results"])
def test_windows_by_itself_is_told_what_to_run_instead(code):
    """A command in one line, which is the last one of an import; there is no fcntl."""
    absent = "dict.fromkeys(('fcntl', 'grp', 'pwd', 'resource'))"
    code = f"import sys; sys.modules |= {absent}; sys.platform = 'win32'; import {code}"

    run = run_command(sys.executable, "-c", code)

    *traceback, line = run.stderr.splitlines()
    assert (run.returncode, bool(traceback)) == (1, "Results" in code)
    assert line.removeprefix("ImportError: ") == (
        "flare needs Linux, macOS or WSL 2 (wsl --install): run it there"
    )
