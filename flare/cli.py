"""The command line: all commands, their arguments, and where defaults come from."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import flare
from flare._version import __version__
from flare.commands import (
    run_check,
    run_check_references,
    run_demonstration,
    run_evaluate,
    run_leaderboard,
    run_list_challenges,
    run_measure,
    run_phase_settings,
    run_rank,
    run_rehearse,
    run_show_challenge,
    run_simulate,
    run_validate_challenge,
)
from flare.console import run_command
from flare.evaluation import (
    BUNDLED_GROUND_TRUTH,
    PLATFORM_GROUND_TRUTH,
    source_commit,
)

INPUT = Path("/input")
OUTPUT = Path("/output")

PHASE_SETTINGS = Path(__file__).parents[1] / "phase-settings.json"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is its exit status."""
    arguments = _parser().parse_args(argv)
    return run_command(partial(arguments.command, arguments))


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Write a usage error to stderr, and exit with status 2."""
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Tell version and commit; git is asked only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print to stdout and exit."""
        sys.stdout.write(f"flare {__version__} ({source_commit()})\n")
        parser.exit()


def _add_version(parser: argparse.ArgumentParser) -> None:
    """``evaluate.py`` is a command, and a program of its own."""
    parser.add_argument("--version", action=_Version, nargs=0, help="and commit")


def _parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = _Parser(prog="flare", description=flare.__doc__, allow_abbrev=False)
    _add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser(
        "evaluate",
        help="score a folder of predictions; writes metrics.json",
        allow_abbrev=False,
    )
    _add_version(command)
    command.set_defaults(command=run_evaluate)
    command.add_argument(
        "--input",
        type=Path,
        default=INPUT,
        metavar="DIR",
        help="folder of predictions (default: %(default)s)",
    )
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help=f"folder of reference labels (default: {PLATFORM_GROUND_TRUTH} if there"
        " are any, else the bundled ones)",
    )
    command.add_argument(
        "--output",
        type=Path,
        default=OUTPUT,
        metavar="DIR",
        help="folder for metrics.json (default: %(default)s)",
    )
    _add_challenge(command)
    _add_workers(command)
    command.add_argument(
        "--on-bad-case",
        choices=["refuse", "worst"],
        default="refuse",
        help="what a missing or unusable case does: refuse the submission, or score 0",
    )
    command.add_argument(
        "--grid",
        choices=["strict", "size"],
        help="whether only the size of a grid must be right (default: the challenge's)",
    )
    command.add_argument(
        "--unknown-labels",
        choices=["refuse", "ignore"],
        help="what unknown labels in predictions mean (default: the challenge's)",
    )
    command.add_argument(
        "--decimals",
        type=_decimals,
        metavar="N",
        help="decimals of the numbers in metrics.json (default: all)",
    )

    command = commands.add_parser(
        "check",
        help="for participants: say what the evaluation would refuse",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_check)
    command.add_argument(
        "predictions",
        type=Path,
        metavar="PREDICTIONS|TEAMNAME.tar.gz",
        help="what would be zipped, or the image that would be sent",
    )
    compared = command.add_mutually_exclusive_group()
    compared.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="the CTs: names and grids are compared with theirs",
    )
    compared.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help="the reference labels, where they are public",
    )
    command.add_argument(
        "--run",
        type=Path,
        metavar="CT_IMAGE",
        help="of TEAMNAME.tar.gz: also run it on this image, as it will be measured",
    )
    _add_limits(command)
    _add_challenge(command)
    _add_workers(command)

    _add_measure_command(commands)
    command = commands.add_parser(
        "rank",
        help="rank teams by FLARE's rule: on each case and metric, then averaged",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_rank)
    command.add_argument(
        "results",
        type=Path,
        metavar="RESULTS",
        help="a folder with one for each team, or a table: team,case,metric,value",
    )
    command.add_argument("--output", type=Path, required=True, metavar="DIR")
    command.add_argument(
        "--metrics",
        type=lambda text: text.split(","),
        metavar="dsc,nsd,...",
        help="those of the challenge that are ranked (default: all)",
    )
    command.add_argument(
        "--ties",
        choices=["min", "average", "max"],
        default="min",
        help="the rank of teams with equal values (default: %(default)s)",
    )
    command.add_argument(
        "--missing",
        choices=["last", "worst-plus-one", "value", "refuse"],
        help="the rank of a team without a result (default: value, that of a failed"
        " run, where the challenge has one; else last, the number of teams)",
    )
    command.add_argument(
        "--gate",
        type=_share,
        metavar="DSC",
        help="metrics of efficiency count only on cases with at least this DSC"
        " (default: the challenge's; flare21 has none)",
    )
    command.add_argument(
        "--bootstrap",
        type=_whole,
        metavar="N",
        help="how often cases are drawn anew to tell how sure a rank is; 0: not at all"
        " (default: 1000)",
    )
    command.add_argument("--seed", type=_whole, metavar="N", help="of these draws")
    command.add_argument(
        "--decisions",
        type=Path,
        metavar="FILE.toml",
        help="withdrawn cases, disqualified teams, baselines and names, with reasons",
    )
    _add_challenge(command)

    command = commands.add_parser(
        "check-references",
        help="for organisers: read a challenge file and all reference labels",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_check_references)
    command.add_argument(
        "--ground-truth", type=Path, default=BUNDLED_GROUND_TRUTH, metavar="DIR"
    )
    _add_challenge(command)

    command = commands.add_parser(
        "simulate",
        help="make up the results of a challenge, to try out a ranking on",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_simulate)
    command.add_argument("--output", type=Path, required=True, metavar="DIR")
    command.add_argument(
        "--teams",
        type=_positive,
        default=11,
        metavar="N",
        help="one that crashes, one that returns empty masks and one without a GPU"
        " among them (default: %(default)s)",
    )
    command.add_argument(
        "--cases",
        type=_positive,
        default=100,
        metavar="N",
        help="default: %(default)s",
    )
    command.add_argument("--seed", type=_whole, metavar="N", help="of the generator")
    _add_challenge(command)

    _add_challenge_commands(commands)
    _add_platform_commands(commands)
    command = commands.add_parser(
        "demonstration",
        help="write the demonstration set: synthetic references and predictions",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_demonstration)
    command.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder to write to"
    )
    command.add_argument(
        "--seed", type=int, metavar="N", help="default: that of the bundled set"
    )
    return parser


def _add_measure_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Add the command that runs teams' images."""
    command = commands.add_parser(
        "measure",
        help="for organisers: run teams' images, and measure time and GPU memory",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_measure)
    command.add_argument(
        "archives",
        type=Path,
        metavar="TEAMNAME.tar.gz|FOLDER",
        help="what a team has sent, or a folder of such files",
    )
    command.add_argument("--images", type=Path, required=True, metavar="DIR")
    command.add_argument(
        "--output", type=Path, required=True, metavar="RESULTS[/TEAMNAME]"
    )
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="DIR",
        help="the reference labels: the predictions are scored, too",
    )
    _add_limits(command)
    command.add_argument(
        "--interval",
        type=_seconds,
        default=0.1,
        metavar="S",
        help="between two samples of the memory (default: %(default)s)",
    )
    command.add_argument(
        "--repeats",
        type=_positive,
        default=1,
        metavar="N",
        help="of each case; the one with the median time counts (default: 1)",
    )
    command.add_argument(
        "--caches",
        choices=["cold", "warm"],
        help="whether files are thrown out of the memory before each run, which only"
        " root can do (default: cold as root, else warm)",
    )
    command.add_argument(
        "--no-warm-up",
        action="store_true",
        help="with warm caches: do not throw a first run away",
    )
    command.add_argument(
        "--interleave",
        action="store_true",
        help="let teams take turns, case by case",
    )
    command.add_argument(
        "--rerun",
        action="append",
        default=[],
        metavar="CASE",
        help="run this case again, whatever came of it; needs --reason",
    )
    command.add_argument("--reason", default="", metavar="TEXT")
    command.add_argument(
        "--new-archive",
        default="",
        metavar="REASON",
        help="accept another archive of a team than the first",
    )
    command.add_argument(
        "--paper", default="", metavar="TEXT", help="of the team, for the ledger"
    )
    command.add_argument(
        "--plots", action="store_true", help="draw the memory of each case over time"
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
        help="as nvidia-smi counts (default: %(default)s)",
    )
    limits.add_argument(
        "--timeout", type=_seconds, default=3600.0, metavar="S", help="default: 3600"
    )
    for flag, what in (("--memory", "of the host"), ("--shm-size", "of /dev/shm")):
        limits.add_argument(
            flag,
            type=_size,
            default="28g",
            metavar="SIZE",
            help=f"{what}, such as 28g (default: %(default)s)",
        )
    limits.add_argument(
        "--output-size",
        type=_size,
        default="4g",
        metavar="SIZE",
        help="of /workspace/outputs, which is in memory (default: %(default)s)",
    )
    limits.add_argument(
        "--disk",
        type=_bytes,
        default="64g",
        metavar="SIZE",
        help="what it writes anywhere else (default: %(default)s)",
    )
    limits.add_argument(
        "--cpus",
        type=_cpus,
        metavar="LIST|all",
        help="numbers of processors, such as 1-7 (default: all; all but the first one"
        " where there are more than two)",
    )
    limits.add_argument(
        "--runtime",
        default="",
        metavar="NAME",
        help="of the engine, such as runsc (default: the engine's)",
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
    challenge = commands.add_parser(
        "challenge",
        help="the challenges that come with the program, and files of one's own",
        allow_abbrev=False,
    )
    actions = challenge.add_subparsers(required=True, metavar="COMMAND")
    command = actions.add_parser(
        "list", help="name all challenges that come with the program"
    )
    command.set_defaults(command=run_list_challenges)
    command = actions.add_parser(
        "show", help="print the file of one of them, to start one of your own from"
    )
    command.set_defaults(command=run_show_challenge)
    command.add_argument("challenge", metavar="NAME|FILE.toml")
    command = actions.add_parser(
        "validate", help="say what a challenge file means, or what is wrong with it"
    )
    command.set_defaults(command=run_validate_challenge)
    command.add_argument("challenge", metavar="NAME|FILE.toml")


def _add_platform_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    """``rehearse`` and ``leaderboard``."""
    command = commands.add_parser(
        "rehearse",
        help="run the built image on a submission as grand-challenge.org would",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_rehearse)
    command.add_argument("submission", type=Path, metavar="FOLDER|ZIP|JOBS_FOLDER")
    command.add_argument(
        "--ground-truth",
        type=Path,
        metavar="TAR.GZ|DIR",
        help="a phase's ground truth tarball (default: none, so the image's labels)",
    )
    command.add_argument(
        "--output", type=Path, metavar="DIR", help="gets a copy of metrics.json"
    )
    command.add_argument(
        "--image", default=os.environ.get("FLARE_IMAGE") or "flare-eval", metavar="NAME"
    )
    command.add_argument(
        "--engine", default=os.environ.get("FLARE_ENGINE") or "docker", metavar="NAME"
    )
    command.add_argument(
        "--time-limit",
        type=_positive,
        metavar="S",
        help="seconds (default: an hour, the platform's)",
    )
    _add_phase(command)
    command = commands.add_parser(
        "phase-settings",
        help="print the settings of three phases of grand-challenge.org",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_phase_settings)
    _add_challenge(command)
    command = commands.add_parser(
        "leaderboard",
        help="rank several metrics.json as grand-challenge.org would",
        allow_abbrev=False,
    )
    command.set_defaults(command=run_leaderboard)
    command.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="METRICS_JSON",
        help="RESULTS/TEAM/metrics.json; of one team, the last is the most recent",
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE.csv", help="the leaderboard as a table"
    )
    _add_phase(command)


def _add_phase(command: argparse.ArgumentParser) -> None:
    """Let a command be told which phase's settings apply."""
    command.add_argument(
        "--phase",
        default="validation",
        metavar="NAME",
        help="sanity, validation or test (default: %(default)s)",
    )
    command.add_argument(
        "--phase-settings",
        type=Path,
        default=PHASE_SETTINGS,
        metavar="FILE",
        help="default: phase-settings.json beside evaluate.py",
    )


def _add_workers(command: argparse.ArgumentParser) -> None:
    """Let a command be told how many processes to use."""
    command.add_argument(
        "--workers",
        type=_positive,
        default=os.environ.get("FLARE_WORKERS") or None,
        metavar="N",
        help="processes (default: $FLARE_WORKERS, else what CPUs and memory allow)",
    )


def _add_challenge(command: argparse.ArgumentParser) -> None:
    """Let a command be told whose rules apply."""
    command.add_argument(
        "--challenge",
        default=os.environ.get("FLARE_CHALLENGE") or "flare21",
        metavar="NAME|FILE.toml",
        help="whose rules apply (default: $FLARE_CHALLENGE, else flare21)",
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
