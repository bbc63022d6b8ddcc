"""Gets the results of a phase off grand-challenge.org, for `flare rank` to read.

The API is that of gcapi 0.16 and of the platform's evaluation app (views.api and
serializers): a page of evaluations at a time, with the metrics.json of each.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from flare.common.errors import FlareError, OutputError
from flare.common.extras import install_remedy
from flare.common.files import remove_tree, write_whole
from flare.common.text import listing, printable, safe, why
from flare.evaluation.organiser_errors import UploadError
from flare.evaluation.submission.jobs import SUCCEEDED
from flare.platforms.grandchallenge.errors import PlatformError
from flare.platforms.grandchallenge.upload import prepare_input
from flare.results.metrics_json import METRICS_JSON
from flare.results.team_folder import PREDICTIONS

API = "https://grand-challenge.org/api/v1/"

RECORD = "platform.json"
"""Says beside a team's metrics.json which evaluation it is of."""

UPLOAD = "predictions.zip"
"""What a team has uploaded, which is unpacked beside it as the platform has done."""

PAGE = 100
"""Evaluations that are asked for at a time."""

METRICS_SOCKET = "metrics-json-file"

_STATUS = {
    400: "it knows no such phase",
    401: "it does not accept the token",
    403: "this token may not see that",
    404: "there is no such page: is --api right?",
}
"""What the platform means by its answers."""

_TEAM = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?")
"""Users whose name is that of a folder everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A submission that was scored."""

    pk: str
    username: str
    created: datetime
    rank: int
    """On the phase's board; 0 if it is not on it."""
    metrics: Any
    """What the image has written."""
    predictions_url: str
    """What was uploaded; empty for an algorithm."""


OnTeam = Callable[[int, int, str, str], None]
"""Told of each team: its number, how many there are, its folder, what was done."""


def download(
    phase: str,
    output: Path,
    *,
    token: str,
    api: str = API,
    has_predictions: bool = False,
    on_team: OnTeam | None = None,
) -> int:
    """Write RESULTS/TEAM/metrics.json for each user with a result.

    Parameters
    ----------
    phase : str
        The phase's key, a UUID.
    output : Path
        RESULTS. What an earlier download has left there is not fetched again.
    token : str
        Of an admin of the challenge; others are not given the values of cases.
    api : str
        Address of the platform's API.
    has_predictions : bool
        Whether what was uploaded is fetched and unpacked as well.
    on_team : callable, optional
        Told of each team as it is done.

    Returns
    -------
    int
        The number of teams.

    Raises
    ------
    PlatformError
        If the platform refuses, or does not answer.
    OutputError
        If a file cannot be written.
    """
    with _told(api):
        client = _open_client(token, api)
        chosen = choose(_evaluations(client, phase))
    if not chosen:
        problem = f"{safe(api)}: the phase has no result that this token may see"
        raise PlatformError(problem)
    partial = [e.username for e in chosen if "case" not in e.metrics]
    if partial:
        problem = f"{listing(partial)}: the platform gives only the ranked values"
        raise PlatformError(problem, "The token has to be of an admin.")
    refused, packed = [], {}
    folders = _folders(evaluation.username for evaluation in chosen)
    for number, evaluation in enumerate(chosen, start=1):
        folder = output / folders[evaluation.username]
        with _told(api):
            is_new = _prepare(folder, evaluation, phase)
            if has_predictions and evaluation.predictions_url:
                if _fetch(client, evaluation, token, folder):
                    try:
                        _unpack(folder)
                    except UploadError as error:
                        packed[folder.name] = error
                else:
                    refused.append(folder.name)
            if is_new:
                content = json.dumps(evaluation.metrics, indent=2, allow_nan=False)
                write_whole(folder / METRICS_JSON, f"{content}\n")
        if on_team:
            rank = f"rank {evaluation.rank}" if evaluation.rank else "not on the board"
            what = f"{rank}, of {evaluation.created:%Y-%m-%d %H:%M}"
            state = what if is_new else f"{what}, is there already"
            on_team(number, len(chosen), folder.name, state)
    if refused:
        problem = f"{listing(refused)}: the platform gives no token what was uploaded"
        remedy = f"Sign in with a browser: its address is in {RECORD} of each team."
        raise PlatformError(problem, remedy)
    if packed:
        first = next(iter(packed.values()))
        problem = f"{listing(packed)}: {UPLOAD} is not unpacked: {first.finding}"
        raise PlatformError(problem, f"Unpack it into {PREDICTIONS} yourself.")
    return len(chosen)


def choose(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """The evaluation of each user that counts, in the order of the users' names.

    It is the one on the phase's board, so that the platform's own method decides: the
    best of them, and of equal ranks the newest. Of a user who is not on the board, as
    nobody is before results are published, the newest counts.
    """
    best: dict[str, Evaluation] = {}
    for evaluation in evaluations:
        other = best.setdefault(evaluation.username, evaluation)
        if _merit(evaluation) > _merit(other):
            best[evaluation.username] = evaluation
    return [best[name] for name in sorted(best)]


def _merit(evaluation: Evaluation) -> tuple[bool, int, datetime]:
    """On the board, high on it, and new."""
    return evaluation.rank > 0, -evaluation.rank, evaluation.created


def _folders(usernames: Iterable[str]) -> dict[str, str]:
    """A folder for each user: the name, or a safe one that a hash tells apart."""
    names = list(usernames)
    same = Counter(name.casefold() for name in names)
    folders = {}
    for name in names:
        is_safe = _TEAM.fullmatch(name) and not name.lower().endswith(".csv")
        folders[name] = name
        if not is_safe or same[name.casefold()] > 1:
            plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
            folders[name] = f"user-{plain}-{digest[:8]}"
    return folders


# --- The API ----------------------------------------------------------------------


def _open_client(token: str, api: str) -> Any:
    """The platform's own client for Python."""
    try:
        from gcapi import Client
    except ImportError as error:
        problem = "flare download: gcapi is not installed"
        remedy = install_remedy("gcapi", "platform")
        raise PlatformError(problem, remedy) from error
    # It would log what the platform answers to a refused request.
    logging.getLogger("gcapi.client").disabled = True
    return Client(token=token, base_url=f"{api.rstrip('/')}/")


@contextmanager
def _told(api: str) -> Iterator[None]:
    """Say in one line what the platform, or the way to it, has against a request."""
    try:
        yield
    except FlareError:
        raise
    except OSError as error:
        problem = f"{safe(error.filename or '')}: it cannot be written ({why(error)})"
        raise OutputError(problem) from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        problem = f"{safe(api)}: it does not answer as grand-challenge.org does"
        raise PlatformError(problem, "Is --api right?") from error
    except Exception as error:
        status = getattr(getattr(error, "response", None), "status_code", 0)
        kind = type(error)
        if status:
            text = _STATUS.get(status, f"it answers with status {status}")
        elif kind.__name__ == "UnsupportedVersionError":
            text = "gcapi is too old for it: pip install --upgrade gcapi"
        elif kind.__module__.startswith("httpx"):
            text = f"it cannot be reached ({kind.__name__}: {safe(str(error))})"
        else:
            raise
        problem = f"{safe(api)}: {text}"
        raise PlatformError(problem) from error


def _evaluations(client: Any, phase: str) -> list[Evaluation]:
    """All results of a phase, page by page."""
    found: dict[str, Evaluation] = {}
    offset = 0
    while True:
        page = client(
            path="evaluations/",
            params={"submission__phase": phase, "offset": offset, "limit": PAGE},
        )
        for value in page["results"]:
            if value["status"] == SUCCEEDED:
                evaluation = _evaluation(value)
                if isinstance(evaluation.metrics, dict):
                    found[evaluation.pk] = evaluation
        offset += len(page["results"])
        if not page["results"] or offset >= page["count"]:
            return list(found.values())


def _evaluation(value: Mapping[str, Any]) -> Evaluation:
    """An evaluation as the API describes it."""
    metrics = None
    for output in value["outputs"]:
        socket = output.get("socket") or output["interface"]
        if socket["slug"] == METRICS_SOCKET:
            metrics = output["value"]
    submission = value["submission"]
    return Evaluation(
        pk=str(value["pk"]),
        username=str(submission["creator"]["username"]),
        created=datetime.fromisoformat(value["created"]),
        rank=int(value["rank"] or 0),
        metrics=metrics,
        predictions_url=submission.get("predictions_file") or "",
    )


# --- Files ------------------------------------------------------------------------


def _prepare(folder: Path, evaluation: Evaluation, phase: str) -> bool:
    """Make a team's folder ready; the result is whether its metrics.json is to come.

    The record is written first and metrics.json last, so that a download that was
    ended goes on where it was.
    """
    record = {
        "evaluation": evaluation.pk,
        "phase": phase,
        "username": evaluation.username,
        "created": evaluation.created.isoformat(),
        "predictions_file": evaluation.predictions_url.partition("?")[0],
    }
    old: object = None
    with suppress(OSError, ValueError):
        old = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    is_there = (folder / METRICS_JSON).exists()
    if old == record and is_there:
        return False
    if old is None and is_there:
        problem = (
            f"{safe(folder / METRICS_JSON)}: it is there, and not from the platform"
        )
        raise PlatformError(problem, "Choose another folder with --output.")
    if old != record:
        for name in (METRICS_JSON, UPLOAD):
            (folder / name).unlink(missing_ok=True)
        if old is not None:
            remove_tree(folder / PREDICTIONS)
        write_whole(folder / RECORD, f"{json.dumps(record, indent=2)}\n")
    return True


def _fetch(client: Any, evaluation: Evaluation, token: str, folder: Path) -> bool:
    """Fetch what was uploaded, whole or not at all; whether the platform gives it."""
    file = folder / UPLOAD
    if file.exists():
        return True
    url = evaluation.predictions_url
    own = str(client.base_url.join("/"))
    # The token is for the platform alone; httpx does not take it along elsewhere.
    headers = {"Authorization": f"Bearer {token}"} if url.startswith(own) else {}
    if not url.startswith("https://"):
        problem = f"{printable(url)[:80]}: what was uploaded is not at an https address"
        raise PlatformError(problem)
    part = file.with_name(f".{file.name}.part")
    try:
        with client.stream(
            "GET", url, headers=headers, follow_redirects=True
        ) as response:
            if response.status_code in (401, 403):
                return False
            response.raise_for_status()
            with part.open("wb") as content:
                content.writelines(response.iter_bytes())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return True


def _unpack(folder: Path) -> None:
    """Unpack what was uploaded as the platform has done, whole or not at all."""
    target = folder / PREDICTIONS
    if target.exists():
        return
    part = folder / f".{PREDICTIONS}.part"
    remove_tree(part)  # of a download that was ended
    part.mkdir()
    try:
        prepare_input(folder / UPLOAD, part)
        part.replace(target)
    finally:
        remove_tree(part)
