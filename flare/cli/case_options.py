"""Options of ``flare report`` that ask for a page of each case."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flare.cli.command import refuse
from flare.cli.options import PATH, Parsed, with_options
from flare.cli.progress import Progress
from flare.common.options import whole
from flare.common.text import safe

if TYPE_CHECKING:
    from flare.reports.cases.write import CasePages

CASE_OPTIONS = ("ground_truth", "predictions", "images", "worst")
"""As parameters of the command."""


def case_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that ask for pages of cases."""
    return with_options(command, _OPTIONS)


_OPTIONS = (
    click.option(
        "--ground-truth",
        type=PATH,
        metavar="DIR",
        help="With --predictions, also make a page of each of the hardest cases, with"
        " pictures of what is wrong: these are the reference labels that were scored."
        " For organisers, and into a folder.",
    ),
    click.option(
        "--predictions",
        type=PATH,
        metavar="DIR",
        help="With --ground-truth, the predictions that were scored.",
    ),
    click.option(
        "--images",
        type=PATH,
        metavar="DIR",
        help="Draw the pages of cases over these CTs, named like the cases.",
    ),
    click.option(
        "--worst",
        type=Parsed(whole),
        metavar="N",
        help="Make pages of the N cases with the lowest DSC, 0 for all (default: 20).",
    ),
)


def check_case_options(ctx: click.Context) -> None:
    """Refuse options of case pages that do not go together."""
    given = [name for name in CASE_OPTIONS if ctx.params.get(name) is not None]
    if not given:
        return
    first = f"--{given[0].replace('_', '-')}"
    for name in ("ground_truth", "predictions"):
        if name not in given:
            needed = f"--{name.replace('_', '-')}"
            refuse(ctx, f"argument {first}: only together with {needed}")
    if ctx.params.get("audience") != "organiser":
        refuse(ctx, f"argument {first}: only with --audience organiser")
    if Path(ctx.params["output"]).suffix.lower() in (".html", ".htm"):
        refuse(ctx, f"argument {first}: only where --output is a folder")


def case_pages_of(options: MutableMapping[str, Any]) -> CasePages | None:
    """Take the options of case pages out of all: what they ask for, if anything."""
    own = {name: options.pop(name) for name in CASE_OPTIONS}
    if own["ground_truth"] is None:
        return None
    # Here, as help and completion should not wait for it.
    from flare.reports.cases.sources import Folders
    from flare.reports.cases.write import WORST, CasePages

    progress = Progress(logs_time=False)
    return CasePages(
        folders=Folders(
            ground_truth=own["ground_truth"],
            predictions=own["predictions"],
            images=own["images"],
        ),
        worst=WORST if own["worst"] is None else own["worst"],
        on_drawn=lambda number, total, case: progress(
            number, total, f"{safe(case)} drawn"
        ),
    )
