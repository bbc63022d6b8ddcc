"""``flare rank``: the order of teams by FLARE's rule."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from flare.cli.command import Command
from flare.cli.options import PATH, OneOf, Parsed, challenge_option, share, whole

_log = logging.getLogger(__name__)


def names(text: str) -> list[str]:
    """Names between commas."""
    return text.split(",")


@click.command("rank", cls=Command)
@click.argument(
    "results",
    type=PATH,
    metavar="RESULTS",
    help="A folder with a folder for each team, or a table with the columns"
    " team,case,metric,value.",
)
@click.option(
    "--output",
    type=PATH,
    required=True,
    metavar="DIR",
    help="Write ranking.csv, case_ranks.csv, values.csv, ranking.json, ranking.md,"
    " ranking.tex, report.txt, methods.txt and sheets/TEAM.md into this folder.",
)
@click.option(
    "--metrics",
    type=Parsed(names),
    metavar="dsc,nsd,...",
    help="Rank by these metrics of the challenge (default: all).",
)
@click.option(
    "--ties",
    type=OneOf(["min", "average", "max"]),
    default="min",
    help="Give teams with equal values this one of their ranks (default: min).",
)
@click.option(
    "--missing",
    type=OneOf(["last", "worst-plus-one", "value", "refuse"]),
    help="Give a team without a result this rank (default: value, that of a failed run,"
    " where the challenge has one; else last, the number of teams).",
)
@click.option(
    "--gate",
    type=Parsed(share),
    metavar="DSC",
    help="Let metrics of efficiency count only on cases with at least this DSC"
    " (default: the challenge's; flare21 has none).",
)
@click.option(
    "--bootstrap",
    type=Parsed(whole),
    metavar="N",
    help="Draw cases anew so often to tell how sure a rank is; 0: not at all (default:"
    " 1000).",
)
@click.option(
    "--seed",
    type=Parsed(whole),
    metavar="N",
    help="Start the random generator of these draws here (default: always the same).",
)
@click.option(
    "--decisions",
    type=PATH,
    metavar="FILE.toml",
    help="Apply this file's withdrawn cases, disqualified teams, baselines and names,"
    " each of which has its reason.",
)
@challenge_option
def command(
    *,
    results: Path,
    output: Path,
    metrics: list[str] | None,
    ties: str,
    missing: str | None,
    gate: float | None,
    bootstrap: int | None,
    seed: int | None,
    decisions: Path | None,
    challenge: str,
) -> None:
    """Rank teams by FLARE's rule."""
    # Here, as neither help nor a shell that completes a word has to wait for pandas.
    from flare.ranking.robustness.bootstrap import SAMPLES, SEED
    from flare.reports.ranking.ranking import rank

    ranking = rank(
        results,
        challenge=challenge,
        metrics=metrics,
        ties=ties,
        missing=missing,
        gate=gate,
        decisions=decisions,
        bootstrap=SAMPLES if bootstrap is None else bootstrap,
        seed=SEED if seed is None else seed,
    )
    ranking.write(output)
    _log.info("%s", ranking)
