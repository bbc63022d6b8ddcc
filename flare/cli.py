"""The command line: arguments, environment variables and platform paths, no logic.

What only other commands than ``evaluate`` need is imported by them, so that an
evaluation starts sooner.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import flare
from flare._version import __version__
from flare.challenge import (
    challenge_names,
    challenge_summary,
    challenge_text,
    read_challenge,
)
from flare.console import OutcomeError, run_command, show_progress
from flare.errors import InputError
from flare.evaluation import (
    BUNDLED_GROUND_TRUTH,
    PLATFORM_GROUND_TRUTH,
    check_references,
    evaluate,
    has_label_maps,
    source_commit,
)
from flare.names import safe
from flare.results import prepare_output, results_table, write_metrics

INPUT = Path("/input")
OUTPUT = Path("/output")

PHASE_SETTINGS = Path(__file__).parents[1] / "phase-settings.json"

_log = logging.getLogger(__name__)


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
    command.set_defaults(command=_evaluate)
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
    command.set_defaults(command=_check)
    command.add_argument(
        "predictions", type=Path, metavar="PREDICTIONS", help="what would be zipped"
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
    _add_challenge(command)
    _add_workers(command)

    command = commands.add_parser(
        "rank",
        help="rank teams by FLARE's rule: on each case and metric, then averaged",
        allow_abbrev=False,
    )
    command.set_defaults(command=_rank)
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
        choices=["last", "worst-plus-one", "refuse"],
        default="last",
        help="the rank of a team without a result (default: %(default)s)",
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
    command.set_defaults(command=_check_references)
    command.add_argument(
        "--ground-truth", type=Path, default=BUNDLED_GROUND_TRUTH, metavar="DIR"
    )
    _add_challenge(command)

    _add_challenge_commands(commands)
    _add_platform_commands(commands)
    command = commands.add_parser(
        "demonstration",
        help="write the demonstration set: synthetic references and predictions",
        allow_abbrev=False,
    )
    command.set_defaults(command=_demonstration)
    command.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="folder to write to"
    )
    command.add_argument(
        "--seed", type=int, metavar="N", help="default: that of the bundled set"
    )
    return parser


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
    command.set_defaults(command=_list_challenges)
    command = actions.add_parser(
        "show", help="print the file of one of them, to start one of your own from"
    )
    command.set_defaults(command=_show_challenge)
    command.add_argument("challenge", metavar="NAME|FILE.toml")
    command = actions.add_parser(
        "validate", help="say what a challenge file means, or what is wrong with it"
    )
    command.set_defaults(command=_validate_challenge)
    command.add_argument("challenge", metavar="NAME|FILE.toml")


def _add_platform_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    """``rehearse`` and ``leaderboard``."""
    command = commands.add_parser(
        "rehearse",
        help="run the built image on a submission as grand-challenge.org would",
        allow_abbrev=False,
    )
    command.set_defaults(command=_rehearse)
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
    command.set_defaults(command=_phase_settings)
    _add_challenge(command)
    command = commands.add_parser(
        "leaderboard",
        help="rank several metrics.json as grand-challenge.org would",
        allow_abbrev=False,
    )
    command.set_defaults(command=_leaderboard)
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


def _decimals(text: str) -> int:
    """A number of decimals."""
    if not text.isdecimal() or int(text) > 15:
        message = f"{text!r} is not a whole number from 0 to 15"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _evaluate(arguments: argparse.Namespace) -> None:
    """Score a folder of predictions."""
    prepare_output(arguments.output)
    ground_truth = arguments.ground_truth
    if ground_truth is None:
        is_given = has_label_maps(PLATFORM_GROUND_TRUTH)
        ground_truth = PLATFORM_GROUND_TRUTH if is_given else BUNDLED_GROUND_TRUTH
    _log.info(
        "flare %s, challenge %s, reference labels in %s",
        __version__,
        arguments.challenge,
        ground_truth,
    )
    results = evaluate(
        arguments.input,
        ground_truth,
        challenge=arguments.challenge,
        on_bad_case=arguments.on_bad_case,
        grid=arguments.grid,
        unknown_labels=arguments.unknown_labels,
        decimals=arguments.decimals,
        workers=arguments.workers,
        on_case=show_progress,
    )
    file = write_metrics(results, arguments.output)
    _log.info("\n%s\n\nWrote %s", results_table(results), file)


def _check(arguments: argparse.Namespace) -> None:
    """Say what the evaluation would refuse."""
    from flare.checking import check_submission

    report = check_submission(
        arguments.predictions,
        read_challenge(arguments.challenge),
        ground_truth=arguments.ground_truth,
        images=arguments.images,
        workers=arguments.workers,
        on_case=show_progress if sys.stdout.isatty() else None,
    )
    if report.lines:
        _log.info("%s", "\n".join(filter(None, [*report.lines, report.hint])))
        nothing_more = ""
        raise OutcomeError(nothing_more)
    is_whole = arguments.images or arguments.ground_truth
    what = "this submission" if is_whole else "the files themselves"
    _log.info("%s\n%s", report.summary, report.note)
    _log.info("Nothing is wrong with %s.", what)


def _rank(arguments: argparse.Namespace) -> None:
    """Rank teams by FLARE's rule."""
    from flare.decisions import Decisions, apply_decisions, read_decisions
    from flare.ranking import (
        MissingRule,
        Ties,
        rank_teams,
        ranking_table,
        rules_of,
        write_ranking,
    )
    from flare.stability import SAMPLES, SEED, bootstrap, spread_table
    from flare.teams import read_results

    challenge = read_challenge(arguments.challenge)
    rules = rules_of(
        challenge,
        metrics=arguments.metrics,
        ties=Ties(arguments.ties),
        missing=MissingRule(arguments.missing),
    )
    table = read_results(arguments.results, [rule.metric for rule in rules.metrics])
    decisions = Decisions()
    if arguments.decisions:
        decisions = read_decisions(arguments.decisions)
        table = apply_decisions(table, decisions, str(arguments.decisions))
    standings = rank_teams(table, rules, decisions.guests)
    samples = SAMPLES if arguments.bootstrap is None else arguments.bootstrap
    seed = SEED if arguments.seed is None else arguments.seed
    more, text = {}, ""
    if samples:
        spread = bootstrap(standings, table, rules, samples=samples, seed=seed)
        more["bootstrap"] = spread.content
        text = f"\n\n{spread_table(spread, decisions)}"
    folder = arguments.output
    write_ranking(standings, table, rules, challenge, decisions, folder, **more)
    _log.info("%s%s", ranking_table(standings, table, rules, decisions), text)


def _check_references(arguments: argparse.Namespace) -> None:
    """Read a challenge file and all reference labels."""
    challenge = read_challenge(arguments.challenge)
    count = check_references(arguments.ground_truth, challenge)
    _log.info("%s: %d reference label maps can be used", challenge.name, count)


def _list_challenges(_: argparse.Namespace) -> None:
    """Name all challenges that come with the program."""
    names = challenge_names()
    width = max(map(len, names))
    for name in names:
        challenge = read_challenge(name)
        _log.info("%s  %s", name.ljust(width), challenge.name)


def _show_challenge(arguments: argparse.Namespace) -> None:
    """Print the file of a challenge."""
    _log.info("%s", challenge_text(arguments.challenge).rstrip("\n"))


def _validate_challenge(arguments: argparse.Namespace) -> None:
    """Say what a challenge file means."""
    _log.info("%s", challenge_summary(read_challenge(arguments.challenge)))
    _log.info("\nThis challenge can be used: --challenge %s", arguments.challenge)


def _rehearse(arguments: argparse.Namespace) -> None:
    """Run the image as the platform would, and say what it would make of it."""
    from flare.phases import read_phase
    from flare.rehearsal import TIME_LIMIT_S, judge, rehearse, verdict_text

    if not arguments.submission.exists():
        problem = f"{safe(arguments.submission)}: there is no such file or folder"
        raise InputError(problem)
    phase = read_phase(arguments.phase_settings, arguments.phase)
    time_limit_s = arguments.time_limit or TIME_LIMIT_S
    _log.info("Rehearsing %s: %s", phase.title, arguments.submission)
    run = rehearse(
        arguments.submission,
        phase,
        image=arguments.image,
        engine=arguments.engine,
        ground_truth=arguments.ground_truth,
        time_limit_s=time_limit_s,
    )
    verdict = judge(run, phase, time_limit_s=time_limit_s)
    _log.info("%s", verdict_text(run, verdict))
    if verdict.message:
        raise OutcomeError(verdict.message)
    if arguments.ground_truth and "Reference labels: tarball" not in verdict.about:
        _log.info("The labels of %s were not used.", arguments.ground_truth)
    if not verdict.is_ranked:
        problem = f"The result would not be on the leaderboard: {verdict.warnings[0]}"
        raise OutcomeError(problem)
    if arguments.output and run.metrics:
        prepare_output(arguments.output)
        (arguments.output / "metrics.json").write_bytes(run.metrics)


def _phase_settings(arguments: argparse.Namespace) -> None:
    """Print the settings of three phases."""
    from flare.phases import settings_for

    settings = settings_for(read_challenge(arguments.challenge))
    _log.info("%s", json.dumps(settings, indent=2))


def _leaderboard(arguments: argparse.Namespace) -> None:
    """Rank several results as the platform would."""
    from flare.leaderboard import (
        find_differences,
        leaderboard_table,
        rank_results,
        read_result,
        write_leaderboard,
    )
    from flare.phases import read_phase

    phase = read_phase(arguments.phase_settings, arguments.phase)
    results = [read_result(file) for file in arguments.files]
    difference = find_differences(results)
    if difference:
        _log.info("%s", difference)
    board = rank_results(results, phase)
    if arguments.output:
        write_leaderboard(board, arguments.output)
    _log.info("%s", leaderboard_table(board, phase))


def _demonstration(arguments: argparse.Namespace) -> None:
    """Write the demonstration set."""
    from flare.synthetic import SEED, write_demonstration

    seed = SEED if arguments.seed is None else arguments.seed
    for file in write_demonstration(arguments.output, seed=seed):
        _log.info("Wrote %s", file)
