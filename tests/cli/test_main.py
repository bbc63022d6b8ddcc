"""The command line: help, names and suggestions; nothing is run."""

import argparse
import os
import subprocess
import sys

import pytest

from flare.cli.main import COMMANDS, _parser, commands_text, main
from tests.builders import ROOT, run_flare


def parsers(parser, name="flare"):
    """A parser and all that it leads to, by name."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, sub in action.choices.items():
                yield from parsers(sub, f"{name} {word}")


ALL = dict(parsers(_parser("flare")))


def test_every_command_is_in_a_group_and_has_a_sentence():
    names = [name for group in COMMANDS.values() for name in group]

    assert sorted(names) == sorted(
        name.removeprefix("flare ") for name in ALL if name.count(" ") == 1
    )
    assert len(set(names)) == len(names)
    for name, parser in ALL.items():
        assert parser.description[0].isupper(), name
        assert parser.description.endswith("."), name


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_every_option_is_a_sentence(name):
    for action in ALL[name]._actions:
        if "--help" in action.option_strings:
            continue
        assert action.help, action.dest
        assert action.help[0].isupper(), action.help
        assert action.help.endswith("."), action.help


def test_the_list_of_commands_fits_a_terminal():
    assert max(map(len, commands_text().splitlines())) <= 79


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",), ("help",)])
@pytest.mark.parametrize("called", ["flare.sh", "../flare.sh"])
def test_flare_sh_lists_the_commands_without_anything_installed(words, called):
    run = subprocess.run(
        [called if "/" in called else f"./{called}", *words],
        cwd=ROOT / "docs" if "/" in called else ROOT,
        env={"PATH": "/usr/bin:/bin", "FLARE_VENV": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert f"\n\n{commands_text()}\n\n" in run.stdout


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]),
        (["help", "rank"], ["rank", "--help"]),
        (["help", "challenge", "show"], ["challenge", "show", "-h"]),
    ],
)
def test_help_is_a_command_too(words, same):
    runs = [run_flare(*found) for found in (words, same)]

    assert [run.returncode for run in runs] == [0, 0]
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnk"], "flare: no such command: rnk (did you mean rank?); see flare --help"),
        (["frobnicate"], "flare: no such command: frobnicate; see flare --help"),
        (["--verison"], "flare: no such option: --verison (did you mean --version?);"
         " see flare --help"),
        (["challenge", "lst"], "flare challenge: no such command: lst (did you mean"
         " list?); see flare challenge --help"),
        (["rank", "x", "--output", "y", "--tie", "min"], "flare rank: no such option:"
         " --tie (did you mean --ties?); see flare rank --help"),
        (["check", "x", "y"], "flare check: unrecognized arguments: y;"
         " see flare check --help"),
        ([], "flare: the following arguments are required: COMMAND;"
         " see flare --help"),
        (["challenge"], "flare challenge: the following arguments are required:"
         " COMMAND; see flare challenge --help"),
        (["check-references", "x", "--ground-truth", "y"], "flare check-references:"
         " argument --ground-truth: not allowed with argument DIR;"
         " see flare check-references --help"),
    ],
)  # fmt: skip
def test_a_misspelt_word_names_the_nearest_one(words, message):
    run = run_flare(*words)

    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"{message}\n")


def test_a_number_below_0_and_a_text_with_spaces_are_values():
    """As argparse has it, but for texts that begin with a hyphen alone."""
    arguments = _parser("flare").parse_args(
        ["demonstration", "--output", "x", "--seed", "-1"]
    )
    assert arguments.seed == -1
    run = run_flare("rank", "x", "--output", "y", "--gate", "-0.5")
    assert "'-0.5' is not a number from 0 to 1" in run.stderr


def test_messages_name_the_program_as_it_was_called():
    run = run_flare("rank", env=os.environ | {"FLARE_PROGRAM": "./flare.sh"})

    assert run.stderr == (
        "./flare.sh rank: the following arguments are required: RESULTS, --output;"
        " see ./flare.sh rank --help\n"
    )


def test_the_help_of_rank_says_which_files_are_written():
    text = " ".join(run_flare("rank", "-h").stdout.split())

    files = "ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,"
    assert f"{files} ranking.tex, report.txt, methods.txt and sheets/TEAM.md" in text


# --- Pictures ---------------------------------------------------------------------


@pytest.fixture
def _without_matplotlib(monkeypatch):
    """As where it was not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)


@pytest.mark.usefixtures("_without_matplotlib")
@pytest.mark.parametrize(
    ("is_checkout", "remedy"),
    [
        (True, "Install it: .venv/bin/pip install '.[plots]'."),
        (False, "Install it: pip install matplotlib."),
    ],
)
def test_pictures_need_matplotlib_before_anything_is_measured(
    monkeypatch, capfd, tmp_path, is_checkout, remedy
):
    """Neither the archive nor the images are there: they are not looked at."""
    monkeypatch.setattr("flare.reports.plots.is_checkout", lambda: is_checkout)

    status = main(
        ["measure", "no.tar.gz", "--images", "no", "--output", "no", "--plots"]
    )

    assert status == 1
    assert capfd.readouterr().err == (
        f"--plots: matplotlib is not installed. {remedy} [H07]\n"
    )
