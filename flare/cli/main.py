"""The command line: all commands, their arguments, and where defaults come from."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
import uuid
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import flare
from flare.cli.commands import (
    run_check,
    run_check_references,
    run_demonstration,
    run_download,
    run_evaluate,
    run_leaderboard,
    run_list_challenges,
    run_measure,
    run_phase_settings,
    run_rank,
    run_rehearse,
    run_rescore,
    run_show_challenge,
    run_simulate,
    run_validate_challenge,
)
from flare.cli.console import run_command
from flare.common.places import BUNDLED_GROUND_TRUTH, PLATFORM_GROUND_TRUTH
from flare.common.version import __version__, source_commit

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
        "rescore": "Score kept predictions anew, when rules or labels changed.",
        "rank": "Rank teams by FLARE's rule, on each case and metric.",
        "simulate": "Make up results, to try out a ranking on.",
    },
    "For developers": {
        "demonstration": "Write the demonstration set, which is synthetic.",
    },
}
"""By whom they are for; flare.sh has the same list at its top."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    elif words == ["version"]:
        words = ["--version"]
    # flare.sh says how it was called, so that messages name what can be typed.
    return _run(_parser(os.environ.get("FLARE_PROGRAM") or "flare"), words)


def main_evaluate() -> int:
    """Run ``evaluate``, as a program of its own."""
    parser = _Parser(prog="python evaluate.py", description=_sentence_of("evaluate"))
    _add_evaluate_arguments(parser)
    return _run(parser, sys.argv[1:])


def _run(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Run what a parser makes of words."""
    arguments = parser.parse_args(words)
    return run_command(partial(arguments.command, arguments))


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, and say what may be meant."""

    commands: Collection[str] = ()
    """The names of its commands, if it has any."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Refuse an option that is not known before one that is missing."""
        words = list(args or ())
        for word in words:
            if word == "--":
                break
            if self.commands and not word.startswith("-"):
                self._check("command", word, self.commands)
                break  # what follows is the command's
            # As argparse has it: neither a number nor a text with spaces is an option.
            if re.fullmatch(r"-[^\s\d.]\S*", word):
                self._check("option", word.partition("=")[0], self._options)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    @property
    def _options(self) -> Collection[str]:
        return self._option_string_actions

    def _check(self, kind: str, word: str, known: Collection[str]) -> None:
        """Refuse a word that is not known, and name the nearest one."""
        if word not in known:
            near = difflib.get_close_matches(word, list(known), n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            self.error(f"no such {kind}: {word}{hint}")

    def error(self, message: str) -> NoReturn:
        """Write a usage error to stderr, and exit with status 2."""
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Tell version and commit; git is asked only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print to stdout and exit."""
        sys.stdout.write(f"{version_text()}\n")
        parser.exit()


def version_text() -> str:
    """The version, and the commit if that is known."""
    commit = source_commit()
    return f"flare {__version__}" + (f" ({commit})" if commit != "unknown" else "")


def commands_text() -> str:
    """The list of all commands, in groups."""
    width = max(len(name) for group in COMMANDS.values() for name in group)
    groups = [
        "\n".join([f"{title}:", *(f"  {n:<{width}}  {s}" for n, s in group.items())])
        for title, group in COMMANDS.items()
    ]
    return "\n\n".join(groups)


def _sentence_of(name: str) -> str:
    """What a command does."""
    return next(group[name] for group in COMMANDS.values() if name in group)


def _add_command(
    commands: argparse._SubParsersAction[_Parser], name: str
) -> argparse.ArgumentParser:
    """Add a command of the list."""
    return commands.add_parser(name, description=_sentence_of(name))


def _add_version(parser: argparse.ArgumentParser) -> None:
    """``evaluate.py`` is a command, and a program of its own."""
    parser.add_argument(
        *("-V", "--version"),
        action=_Version,
        nargs=0,
        help="Print the version, and the commit where it is known.",
    )


def _parser(program: str) -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = _Parser(
        prog=program,
        description=str(flare.__doc__).partition("\n")[0],
        epilog=f"{commands_text()}\n\n{program} COMMAND --help names its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_version(parser)
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", help="One of the commands below."
    )
    parser.commands = commands.choices

    command = _add_command(commands, "evaluate")
    _add_evaluate_arguments(command)

    command = _add_command(commands, "check")
    command.set_defaults(command=run_check)
    command.add_argument(
        "predictions",
        type=Path,
        metavar="PREDICTIONS|TEAMNAME.tar.gz",
        help="What would be zipped, or the image that would be sent.",
    )
    compared = command.add_mutually_exclusive_group()
    compared.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="Compare names and grids with those of the CTs in this folder.",
    )
    compared.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help="Compare them with these reference labels, where they are public.",
    )
    command.add_argument(
        "--run",
        type=Path,
        metavar="CT_IMAGE",
        help="Also run TEAMNAME.tar.gz on this image, as it will be measured.",
    )
    _add_limits(command)
    _add_challenge(command)
    _add_workers(command)

    _add_measure_command(commands)
    _add_rescore_command(commands)
    _add_rank_command(commands)

    command = _add_command(commands, "check-references")
    command.set_defaults(command=run_check_references)
    folder = command.add_mutually_exclusive_group()
    folder.add_argument(
        "folder",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="Folder of the reference labels (default: the bundled ones).",
    )
    folder.add_argument(
        "--ground-truth",
        type=Path,
        default=BUNDLED_GROUND_TRUTH,
        metavar="DIR",
        help="The same, by the name that it has in other commands.",
    )
    _add_challenge(command)

    command = _add_command(commands, "simulate")
    command.set_defaults(command=run_simulate)
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="Write a folder for each team into this folder.",
    )
    command.add_argument(
        "--teams",
        type=_positive,
        default=11,
        metavar="N",
        help="Make up N teams; one that crashes, one that returns empty masks and one"
        " without a GPU are among them (default: %(default)s).",
    )
    command.add_argument(
        "--cases",
        type=_positive,
        default=100,
        metavar="N",
        help="Make up N cases (default: %(default)s).",
    )
    command.add_argument(
        "--seed",
        type=_whole,
        metavar="N",
        help="Start the random generator here (default: always the same).",
    )
    _add_challenge(command)

    _add_challenge_commands(commands)
    _add_platform_commands(commands)
    command = _add_command(commands, "demonstration")
    command.set_defaults(command=run_demonstration)
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="Write references, predictions and images into this folder.",
    )
    command.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="Start the random generator here (default: that of the bundled set).",
    )
    return parser


def _add_evaluate_arguments(command: argparse.ArgumentParser) -> None:
    """Let a command be what the container does."""
    _add_version(command)
    command.set_defaults(command=run_evaluate)
    for flag, variable, text in (
        ("--input", "FLARE_INPUT", "Folder of predictions"),
        ("--output", "FLARE_OUTPUT", "Folder that gets metrics.json"),
    ):
        # The image sets both; anywhere else, /output is nobody's wish.
        value = os.environ.get(variable)
        command.add_argument(
            flag,
            type=Path,
            default=value,
            required=not value,
            metavar="DIR",
            help=f"{text} (default: ${variable}; in the image, that is /{flag[2:]}).",
        )
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help=f"Folder of reference labels (default: {PLATFORM_GROUND_TRUTH} if there"
        " are any, else the bundled ones).",
    )
    _add_challenge(command)
    _add_workers(command)
    command.add_argument(
        "--on-bad-case",
        choices=["refuse", "worst"],
        default="refuse",
        help="Refuse a submission with a missing or unusable case, or let the case"
        " score 0 (default: %(default)s).",
    )
    command.add_argument(
        "--grid",
        choices=["strict", "size"],
        help="Say whether only the size of a grid must be right (default: the"
        " challenge's rule).",
    )
    command.add_argument(
        "--unknown-labels",
        choices=["refuse", "ignore"],
        help="Say what unknown labels in predictions mean (default: the challenge's"
        " rule).",
    )
    command.add_argument(
        "--decimals",
        type=_decimals,
        default=os.environ.get("FLARE_DECIMALS") or None,
        metavar="N",
        help="Round the numbers in metrics.json to N decimals (default:"
        " $FLARE_DECIMALS, else the challenge's for the board, else not at all).",
    )


def _add_rescore_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Add the command that scores kept predictions anew."""
    command = _add_command(commands, "rescore")
    command.set_defaults(command=run_rescore)
    command.add_argument(
        "results", type=Path, metavar="RESULTS", help="What flare measure has written."
    )
    command.add_argument(
        "--ground-truth",
        type=Path,
        required=True,
        metavar="DIR",
        help="The reference labels.",
    )
    _add_challenge(command)
    _add_workers(command)


def _add_rank_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Add the command that ranks teams."""
    command = _add_command(commands, "rank")
    command.set_defaults(command=run_rank)
    command.add_argument(
        "results",
        type=Path,
        metavar="RESULTS",
        help="A folder with a folder for each team, or a table with the columns"
        " team,case,metric,value.",
    )
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="Write ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,"
        " ranking.tex, report.txt, methods.txt and sheets/TEAM.md into this folder.",
    )
    command.add_argument(
        "--metrics",
        type=lambda text: text.split(","),
        metavar="dsc,nsd,...",
        help="Rank by these metrics of the challenge (default: all).",
    )
    command.add_argument(
        "--ties",
        choices=["min", "average", "max"],
        default="min",
        help="Give teams with equal values this one of their ranks (default:"
        " %(default)s).",
    )
    command.add_argument(
        "--missing",
        choices=["last", "worst-plus-one", "value", "refuse"],
        help="Give a team without a result this rank (default: value, that of a failed"
        " run, where the challenge has one; else last, the number of teams).",
    )
    command.add_argument(
        "--gate",
        type=_share,
        metavar="DSC",
        help="Let metrics of efficiency count only on cases with at least this DSC"
        " (default: the challenge's; flare21 has none).",
    )
    command.add_argument(
        "--bootstrap",
        type=_whole,
        metavar="N",
        help="Draw cases anew so often to tell how sure a rank is; 0: not at all"
        " (default: 1000).",
    )
    command.add_argument(
        "--seed",
        type=_whole,
        metavar="N",
        help="Start the random generator of these draws here (default: always the"
        " same).",
    )
    command.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE.toml",
        help="Apply this file's withdrawn cases, disqualified teams, baselines and"
        " names, each of which has its reason.",
    )
    _add_challenge(command)


def _add_measure_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Add the command that runs teams' images."""
    command = _add_command(commands, "measure")
    command.set_defaults(command=run_measure)
    command.add_argument(
        "archives",
        type=Path,
        metavar="TEAMNAME.tar.gz|FOLDER",
        help="What a team has sent, or a folder of such files.",
    )
    command.add_argument(
        "--images",
        type=Path,
        required=True,
        metavar="DIR",
        help="Folder of the CTs, one for each case.",
    )
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="RESULTS[/TEAMNAME]",
        help="Folder that gets a folder for each team; a measurement that is there"
        " goes on.",
    )
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help="Also score the predictions against these reference labels.",
    )
    _add_limits(command)
    command.add_argument(
        "--interval",
        type=_seconds,
        default=0.1,
        metavar="S",
        help="Sample the memory every S seconds (default: %(default)s).",
    )
    command.add_argument(
        "--repeats",
        type=_positive,
        default=1,
        metavar="N",
        help="Run each case N times; the one with the median time counts (default: 1).",
    )
    command.add_argument(
        "--caches",
        choices=["cold", "warm"],
        help="Throw files out of the memory before each run, which only root can do, or"
        " do not (default: cold as root, else warm).",
    )
    command.add_argument(
        "--no-warm-up",
        action="store_true",
        help="With warm caches, do not throw a first run away.",
    )
    command.add_argument(
        "--interleave",
        action="store_true",
        help="Let teams take turns, case by case.",
    )
    command.add_argument(
        "--rerun",
        action="append",
        default=[],
        metavar="CASE",
        help="Run this case again, whatever came of it; needs --reason.",
    )
    command.add_argument(
        "--reason",
        default="",
        metavar="TEXT",
        help="Say for the record why a case is run again.",
    )
    command.add_argument(
        "--new-archive",
        default="",
        metavar="REASON",
        help="Accept another archive of a team than the first, for this reason.",
    )
    command.add_argument(
        "--paper",
        default="",
        metavar="TEXT",
        help="Note the team's paper in the ledger.",
    )
    command.add_argument(
        "--plots",
        action="store_true",
        help="Draw the memory of each case over time; needs matplotlib.",
    )
    _add_challenge(command)
    _add_workers(command)


def _add_limits(command: argparse.ArgumentParser) -> None:
    """Let a command be told what a container may use."""
    limits = command.add_argument_group("limits of a container")
    limits.add_argument(
        "--gpu",
        default="none" if command.prog.endswith("check") else "0",
        metavar="INDEX|UUID|none",
        help="Give it this GPU, as nvidia-smi counts (default: %(default)s).",
    )
    limits.add_argument(
        "--timeout",
        type=_seconds,
        default=3600.0,
        metavar="S",
        help="End it after S seconds on a case (default: 3600).",
    )
    for flag, what in (("--memory", "of the host"), ("--shm-size", "of /dev/shm")):
        limits.add_argument(
            flag,
            type=_size,
            default="28g",
            metavar="SIZE",
            help=f"Give it so much memory {what}, such as 28g (default: %(default)s).",
        )
    limits.add_argument(
        "--output-size",
        type=_size,
        default="4g",
        metavar="SIZE",
        help="Give it so much of /workspace/outputs, which is in memory (default:"
        " %(default)s).",
    )
    limits.add_argument(
        "--disk",
        type=_bytes,
        default="64g",
        metavar="SIZE",
        help="Let it write so much anywhere else (default: %(default)s).",
    )
    limits.add_argument(
        "--cpus",
        type=_cpus,
        metavar="LIST|all",
        help="Give it the processors of these numbers, such as 1-7 (default: all; all"
        " but the first one where there are more than two).",
    )
    limits.add_argument(
        "--runtime",
        default="",
        metavar="NAME",
        help="Run it by this runtime of the engine, such as runsc (default: the"
        " engine's).",
    )


def _bytes(text: str) -> int:
    """A size in bytes."""
    size = _size(text)
    unit = "bkmg".find(size[-1])
    return int(size.rstrip("bkmg")) << 10 * max(unit, 0)


def _cpus(text: str) -> str:
    """Numbers of processors as Docker takes them; empty for all."""
    if text == "all":
        return ""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        message = f"{text!r} are no numbers of processors such as 1-7 or 0,2"
        raise argparse.ArgumentTypeError(message)
    return text


def _seconds(text: str) -> float:
    """A time above 0, and below a year."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 3e7:
        message = f"{text!r} is not a number of seconds above 0"
        raise argparse.ArgumentTypeError(message)
    return value


def _size(text: str) -> str:
    """A size as Docker takes it."""
    if not re.fullmatch(r"[1-9]\d{0,9}[bkmg]?", text):
        message = f"{text!r} is not a size such as 28g or 512m"
        raise argparse.ArgumentTypeError(message)
    return text


def _add_challenge_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    """``challenge list``, ``show`` and ``validate``."""
    challenge = commands.add_parser("challenge", description=_sentence_of("challenge"))
    actions = challenge.add_subparsers(
        required=True, metavar="COMMAND", help="One of the three below."
    )
    challenge.commands = actions.choices
    for name, run, text in (
        ("list", run_list_challenges, "Name all that come with the program."),
        ("show", run_show_challenge, "Print the file of one, to start your own from."),
        ("validate", run_validate_challenge, "Say what it means, or what is wrong."),
    ):
        command = actions.add_parser(name, help=text, description=text)
        command.set_defaults(command=run)
        if name != "list":
            command.add_argument(
                "challenge",
                metavar="NAME|FILE.toml",
                help="A challenge that comes with the program, or a file of your own.",
            )


def _add_platform_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    """What has to do with grand-challenge.org."""
    command = _add_command(commands, "rehearse")
    command.set_defaults(command=run_rehearse)
    command.add_argument(
        "submission",
        type=Path,
        metavar="FOLDER|ZIP|JOBS_FOLDER",
        help="What a participant would upload, or an /input with a predictions.json.",
    )
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="TAR.GZ|DIR",
        help="The phase's ground truth tarball (default: none, so the image's labels).",
    )
    command.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="Folder that gets a copy of metrics.json.",
    )
    command.add_argument(
        "--image",
        default=os.environ.get("FLARE_IMAGE") or "flare-eval",
        metavar="NAME",
        help="Run this image (default: $FLARE_IMAGE, else flare-eval).",
    )
    command.add_argument(
        "--engine",
        default=os.environ.get("FLARE_ENGINE") or "docker",
        metavar="NAME",
        help="Run it by docker or podman (default: $FLARE_ENGINE, else docker).",
    )
    command.add_argument(
        "--time-limit",
        type=_positive,
        metavar="S",
        help="End it after S seconds (default: an hour, as on the platform).",
    )
    _add_phase(command)
    command = _add_command(commands, "phase-settings")
    command.set_defaults(command=run_phase_settings)
    _add_challenge(command)
    command = _add_command(commands, "leaderboard")
    command.set_defaults(command=run_leaderboard)
    command.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="METRICS_JSON",
        help="RESULTS/TEAM/metrics.json; of one team, the last is the most recent.",
    )
    command.add_argument(
        "--output",
        type=Path,
        metavar="FILE.csv",
        help="Write the leaderboard as a table, too.",
    )
    _add_phase(command)
    command = _add_command(commands, "download")
    command.epilog = (
        "FLARE_GC_TOKEN holds an API token of an admin of the challenge, or"
        " FLARE_GC_TOKEN_FILE names the file that holds it."
    )
    command.set_defaults(
        command=run_download,
        token=os.environ.get("FLARE_GC_TOKEN", ""),
        token_file=os.environ.get("FLARE_GC_TOKEN_FILE", ""),
    )
    command.add_argument(
        "--phase",
        type=_uuid,
        required=True,
        metavar="UUID",
        help="The phase's key, which stands in the address below Export on its board.",
    )
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="RESULTS",
        help="Folder that gets a folder for each team.",
    )
    command.add_argument(
        "--predictions",
        action="store_true",
        help="Get what was submitted, too, as RESULTS/TEAM/predictions.zip, and unpack"
        " it into RESULTS/TEAM/predictions.",
    )
    command.add_argument(
        "--api",
        default="https://grand-challenge.org/api/v1/",
        metavar="URL",
        help="Address of the platform's API (default: %(default)s).",
    )


def _uuid(text: str) -> str:
    """A key of the platform."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        message = f"{text!r} is not a key such as 4a46b539-119b-4889-90bf-18818ffa3dd8"
        raise argparse.ArgumentTypeError(message) from None


def _add_phase(command: argparse.ArgumentParser) -> None:
    """Let a command be told which phase's settings apply."""
    command.add_argument(
        "--phase",
        default="validation",
        metavar="NAME",
        help="Go by the settings of sanity, validation or test (default: %(default)s).",
    )
    command.add_argument(
        "--phase-settings",
        type=Path,
        metavar="FILE",
        help="Read them from this file (default: phase-settings.json beside"
        " evaluate.py; rehearse takes those of the image's challenge if that is not"
        " flare21).",
    )


def _add_workers(command: argparse.ArgumentParser) -> None:
    """Let a command be told how many processes to use."""
    command.add_argument(
        "--workers",
        type=_positive,
        default=os.environ.get("FLARE_WORKERS") or None,
        metavar="N",
        help="Use N processes (default: $FLARE_WORKERS, else what CPUs and memory"
        " allow).",
    )


def _add_challenge(command: argparse.ArgumentParser) -> None:
    """Let a command be told whose rules apply."""
    command.add_argument(
        "--challenge",
        default=os.environ.get("FLARE_CHALLENGE") or "flare21",
        metavar="NAME|FILE.toml",
        help="Apply the rules of this challenge (default: $FLARE_CHALLENGE, else"
        " flare21).",
    )


def _positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is not a whole number above 0"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal() or len(text) > 18:
        message = f"{text!r} is not a whole number"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _share(text: str) -> float:
    """A number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        message = f"{text!r} is not a number from 0 to 1"
        raise argparse.ArgumentTypeError(message)
    return value


def _decimals(text: str) -> int:
    """A number of decimals."""
    if not text.isdecimal() or int(text) > 15:
        message = f"{text!r} is not a whole number from 0 to 15"
        raise argparse.ArgumentTypeError(message)
    return int(text)
