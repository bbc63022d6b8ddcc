"""Run teams' images, and measure time and GPU memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.cli.command import Command
from flare.cli.console import OutcomeError
from flare.cli.contract_options import contract_options
from flare.cli.limits import limit_options
from flare.cli.measuring import Measuring, Request
from flare.cli.options import PATH, PageFile, Parsed, challenge_option, workers_option
from flare.cli.run_options import run_options
from flare.common.errors import FlareError, InputError
from flare.common.options import positive
from flare.common.text import safe
from flare.measuring.archive.model import model_beside
from flare.measuring.archive.reading import Archive, read_archive, team_of
from flare.measuring.inputs import Case, check_cases, find_archives, find_cases
from flare.measuring.listener import Failures
from flare.measuring.summary import write_refused
from flare.reports.plots import check_plots

if TYPE_CHECKING:
    from flare.cli.live_page import LivePage

PLACE = ("For organisers", 7)

_log = logging.getLogger(__name__)


def engine_name(text: str) -> None:
    """What ``--engine`` chose in earlier versions; only one is left."""
    if text != "docker":
        raise ValueError(
            f"{text!r}: images are run with Docker, or with Podman through its Docker"
            " socket (DOCKER_HOST); leave --engine out"
        )


@click.command("measure", cls=Command)
@click.argument(
    "archives",
    type=PATH,
    metavar="TEAMNAME.tar.gz|FOLDER",
    help="What a team has sent, or a folder of such files.",
)
@click.option(
    "--model",
    type=PATH,
    metavar="FILE.tar.gz",
    help="The team's model, for /opt/ml/model of its containers (default:"
    " TEAMNAME.model.tar.gz beside the archive, if it is there).",
)
@click.option(
    "--images",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Folder of the CTs, one for each case.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="RESULTS[/TEAMNAME]",
    help="Folder that gets a folder for each team; a measurement that is there goes"
    " on.",
)
@click.option(
    "--ground-truth",
    type=PATH,
    metavar="DIR",
    help="Also score the predictions against these reference labels.",
)
@limit_options(gpu="0", is_several=True)
@contract_options
@click.option(
    "--engine",
    type=Parsed(engine_name),
    expose_value=False,
    hidden=True,
    help="Of earlier versions: docker, and nothing else.",
)
@click.option(
    "--lanes",
    type=Parsed(positive),
    metavar="N",
    help="With --gpu none, measure N teams at once, each on processors of its own"
    " (default: 1).",
)
@click.option(
    "--cluster",
    metavar="tcp://HOST:PORT",
    help="Measure on the computers whose Dask workers have the resource GPU=1, each"
    " with an engine of its own; --gpu and --lanes are those of each computer.",
)
@click.option(
    "--unlike-lanes",
    is_flag=True,
    help="Measure on GPUs or computers of several kinds at once; a team stays on one.",
)
@run_options
@click.option(
    "--interleave",
    is_flag=True,
    help="Let teams take turns, case by case; not on several lanes.",
)
@click.option(
    "--rerun",
    multiple=True,
    metavar="CASE",
    help="Run this case again, whatever came of it; needs --reason.",
)
@click.option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Say for the record why a case is run again.",
)
@click.option(
    "--new-archive",
    default="",
    metavar="REASON",
    help="Accept another archive of a team than the first, for this reason.",
)
@click.option(
    "--unlike-host",
    default="",
    metavar="REASON",
    help="Accept another computer or GPU than that of a team's earlier cases, for this"
    " reason.",
)
@click.option(
    "--paper",
    default="",
    metavar="TEXT",
    help="Note the team's paper in the ledger.",
)
@click.option(
    "--plots",
    is_flag=True,
    help="Draw the memory of each case over time; needs matplotlib.",
)
@click.option(
    "--page",
    type=PageFile(path_type=Path, readable=False),
    metavar="FILE.html",
    help="Show how it goes on, on this page, which a browser reads anew by itself;"
    " needs Jinja2.",
)
@challenge_option
@workers_option
def command(**given: Any) -> None:
    """Run teams' images case by case, and score what they predict."""
    request = Request(**given)
    if request.plots:
        check_plots()
    if request.page:
        # Here, as help and completion should not wait for it.
        from flare.reports.pages.page import check_pages

        check_pages(request.page)
    challenge = read_challenge(request.challenge)
    if request.rerun and not request.reason.strip():
        raise InputError(
            "--rerun: no reason was given", "Say why, for the record: --reason TEXT."
        )
    cases = find_cases(request.images)
    if request.ground_truth:
        check_cases(cases, request.ground_truth)
    files = find_archives(request.archives)
    if request.model and len(files) > 1:
        raise InputError(
            "--model: it is of one team, but several archives were given",
            "Call each TEAMNAME.model.tar.gz, beside its archive.",
        )
    results = request.output
    if len(files) == 1 and results.name == team_of(files[0]):
        results = results.parent
    archives: list[Archive] = []
    unread = Failures(results, lambda _, error: _log.info("%s", error))
    for file in files:
        with unread.noted(team_of(file)):
            archives.append(_read(file, request))
    for archive in archives:
        for found in archive.problems:
            _log.info("%s", found)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    write_refused(archives, results)
    with _page(request, challenge, results, archives, cases) as page:
        run = Measuring(request, challenge, results, page)
        failed = run.measure([a for a in archives if not a.problems], cases)
        for team, error in failed:
            _log.info("%s: not measured to the end: %s", team, error)
        failed = (*unread.found.items(), *failed)
        write_refused(archives, results, (*failed, *run.scoring.found.items()))
    line = _failure(archives, failed, run.scoring)
    if line:
        raise OutcomeError(line)


def _read(file: Path, request: Request) -> Archive:
    """Read an archive, and the model beside it."""
    if file.is_file():
        _log.info("reading %s (%s)", safe(file.name), size_of(file))
    model = request.model or model_beside(file)
    return read_archive(file, contract=request.contract, model=model)


def size_of(file: Path) -> str:
    """The size of a file for a person, such as 4.2 GB."""
    megabytes = file.stat().st_size / 1e6
    return f"{megabytes / 1e3:.1f} GB" if megabytes >= 1e3 else f"{megabytes:.1f} MB"


def _page(
    request: Request,
    challenge: Challenge,
    results: Path,
    archives: Sequence[Archive],
    cases: Sequence[Case],
) -> AbstractContextManager[LivePage | None]:
    """The page that shows how it goes on, if there is to be one."""
    if not request.page:
        return nullcontext()
    from flare.cli.live_page import LivePage
    from flare.cli.live_run import LiveRun

    run = LiveRun(
        results,
        archives,
        cases,
        challenge=challenge.name,
        is_scored=request.ground_truth is not None,
    )
    return LivePage(request.page, run)


def _failure(
    archives: Sequence[Archive],
    failed: Sequence[tuple[str, FlareError]],
    scoring: Failures,
) -> str:
    """The line of a run in which a team failed: the first one, and how many others."""
    problems: list[FlareError] = [a.problems[0] for a in archives if a.problems]
    refused = len(problems)
    problems += [error for _, error in failed]
    line = str(problems[0]) if problems else ""
    if not problems and scoring.found:
        team, error = next(iter(scoring.found.items()))
        line = f"{team}: measured, but not scored: {error}"
    others = len({*dict(failed), *scoring.found}) + refused - 1
    return f"{line} (and {others} other teams)" if line and others > 0 else line
