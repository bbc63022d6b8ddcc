"""What all commands refuse: usage errors, each one line and status 2."""

import click
import pytest

from flare.cli.command import LEFT, Parsed
from flare.cli.main import command_names, load, main
from tests.builders import error_of

REFUSED = {
    "choice": ("", "?", "Strict"),
    "code": ("F007", "Q99"),
    "decimals": ("-1", "16", "two", "4.0"),
    "engine_name": ("podman", "apptainer"),
    "image_path": ("ct", "/images/ct", "images/../ct", "images/", "images/-x"),
    "image_socket": ("ct-image", "=images/ct", "CT=images/ct", "ct=ct"),
    "integer": ("two", "1.5", ""),
    "key": ("1", "4a46b539", ""),
    "page_file": ("live.txt", "live", "live.html.txt"),
    "page_or_folder": ("report.txt", "report.csv", "report.PDF"),
    "positive": ("0", "-1", "two", "1.5", "", "1_0", " 1"),
    "processors": ("0-", "one", "1,,2", "1;2"),
    "seconds": ("0", "-1", "x", "30000000", "inf", "nan"),
    "share": ("-0.1", "1.1", "x", "nan"),
    "size": ("much", "1 g", "0", "1t", "-1g"),
    "size_bytes": ("much", "1 g", "0", "1t", "-1g"),
    "whole": ("-1", "x", "1.5", "1" * 19),
}
"""Values that are refused, by what makes the value of the text."""

TAKEN = {
    "choice": (),
    "decimals": ("0", "15"),
    "image_path": ("images/ct", "images/a.b/c_d-1"),
    "image_socket": ("ct-image=images/ct",),
    "integer": ("-1",),
    "page_file": ("live.html", "live.HTM"),
    "page_or_folder": ("report.html", "report", "a.b"),
    "positive": ("1", "999999"),
    "processors": ("all", "1-7", "0,2,4-5"),
    "seconds": ("0.001", "29999999"),
    "share": ("0", "1", "0.5"),
    "size": ("1", "28g", "512m"),
    "whole": ("0", "9" * 18),
}
"""Those at the border of what is refused."""

ANYTHING = {"<lambda>", "strip"}
"""What makes a value of any text."""


def commands():
    for name in command_names():
        command = load(name)
        found = getattr(command, "commands", {None: command})
        yield from ((f"{name} {sub or ''}".strip(), found[sub]) for sub in found)


PARAMS = [
    pytest.param(command, param, id=f"{name} {param.opts[0]}")
    for name, command in commands()
    for param in command.params
    if not isinstance(
        param.type, click.types.StringParamType | click.types.BoolParamType
    )
]


def kind_of(param):
    """What makes the value of a text; empty for a path, which the command looks at."""
    if isinstance(param.type, Parsed):
        return param.type.name.strip("_")
    return "choice" if isinstance(param.type, click.Choice) else ""


@pytest.mark.parametrize(("command", "param"), PARAMS)
def test_each_option_refuses_what_it_cannot_be(command, param):
    kind = kind_of(param)
    context = click.Context(command)
    for value in REFUSED.get(kind, ()):
        error = error_of(click.BadParameter, param.type.convert, value, param, context)
        assert kind == "code" or value.rpartition("=")[2] in error.message
    for value in TAKEN.get(kind, ()):
        param.type.convert(value, param, context)
    assert kind in {*REFUSED, *ANYTHING, ""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rnk", "No such command 'rnk'. Did you mean 'rank'?"),
        ("frobnicate", "No such command 'frobnicate'"),
        ("--verison", "No such option '--verison'. Did you mean '--version'?"),
        ("challenge lst", "No such command 'lst'. Did you mean 'list'?"),
        ("challenge", "Missing command"),
        ("rank x --output --ties min", "Option '--output' requires an argument"),
        ("rank x --output", "Option '--output' requires an argument"),
        ("rank", "Missing argument 'RESULTS'"),
        ("rank x", "Missing option '--output'"),
        ("check x y", "Got unexpected extra argument (y)"),
        ("check x \x1b[31m", r"Got unexpected extra argument (\x1b[31m)"),
        ("check x --images a --ground-truth b",
         "'--ground-truth' is not allowed with '--images'"),
        ("check-references x --ground-truth y",
         "'--ground-truth' is not allowed with 'DIR'"),
        ("evaluate a --input b --output c",
         "'--input' is not allowed with 'PREDICTIONS'"),
        ("evaluate --output c", "Missing argument 'PREDICTIONS'"),
        ("evaluate --workrs=2", "No such option '--workrs'. Did you mean '--workers'?"),
        ("rehearse --time-limit 0 --phase x",
         "Invalid value for '--time-limit': '0' is not a whole number above 0"),
        ("rehearse x --platform codabench",
         "--platform codabench and --bundle need each other"),
        ("rehearse x --platform codabench --bundle b --ground-truth c",
         "'--bundle' is not allowed with '--ground-truth'"),
        ("leaderboard x --platform codabench --bundle b --phase test",
         "'--phase' is not allowed with '--bundle'"),
        ("score a --ground-truth b --output c --workers 1 --cluster d",
         "'--cluster' is not allowed with '--workers'"),
        ("serve --output x", "the following arguments are required: --phase or"
         " --drop-folder, --images, --ground-truth"),
        ("measure a --images b --output c --plots", "--plots is an option of earlier"
         " versions: flare report RESULTS/TEAM draws the traces"),
    ],
)  # fmt: skip
def test_a_usage_error_is_one_line_that_names_the_command(
    words, message, capfd, monkeypatch
):
    monkeypatch.delenv("FLARE_PROGRAM", raising=False)
    monkeypatch.delenv("FLARE_INPUT", raising=False)

    status = main(words.split())

    path = " ".join(["flare", *[w for w in words.split()[:1] if w in command_names()]])
    assert status == 2
    assert capfd.readouterr() == ("", f"{path}: {message}; see {path} --help\n")


def test_each_option_that_left_says_what_to_use_instead():
    for (name, flag), instead in LEFT.items():
        command = load(name)
        with pytest.raises(click.UsageError, match=flag) as caught:
            command.make_context(name, [flag])
        assert caught.value.message.endswith(instead)
        assert flag not in {opt for param in command.params for opt in param.opts}
