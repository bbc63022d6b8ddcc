"""Gets the results of a phase off grand-challenge.org, for `flare rank` to read.

The API is that of the platform's evaluation app (views.api and serializers): a page of
evaluations at a time, with the metrics.json of each.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from flare.common.errors import unwritable
from flare.common.files import at, json_at, remove_tree, write_whole
from flare.common.options import option
from flare.common.schema import DateTime, Text
from flare.common.text import listing, safe
from flare.evaluation.errors import UploadError
from flare.evaluation.submission.jobs import SUCCEEDED
from flare.platforms.grandchallenge.client import Client, api_option, key, user_of
from flare.platforms.grandchallenge.errors import (
    FileRefusedError,
    LongAnswerError,
    PlatformError,
)
from flare.platforms.grandchallenge.upload import prepare_input
from flare.results.metrics_json import METRICS_JSON
from flare.results.team_folder import (
    PREDICTIONS,
    confusable,
    derived_folder,
    folder_of,
    plain_name,
)

_log = logging.getLogger(__name__)

RECORD = "platform.json"
"""The file beside a team's metrics.json that says which evaluation it is of."""


class Record(TypedDict):
    """Which evaluation on grand-challenge.org a downloaded metrics.json is of."""

    evaluation: Text
    """Key of the evaluation, a UUID."""
    phase: Text
    """Key of the phase, a UUID."""
    username: Text
    """Name of the user who has submitted."""
    created: DateTime
    """When the evaluation was made."""
    predictions_file: str
    """Address of what was uploaded, without its query; empty for an algorithm."""


UPLOAD = "predictions.zip"
"""The upload of a team, which is unpacked beside it as the platform has done."""

PAGE = 20
"""Evaluations of a page, each with its metrics.json; fewer if a page is too long."""

MOST_CALLS = 1000
"""Most calls for the evaluations of a phase: 20,000, if its pages are of this size."""

_ODD = PlatformError(
    "the platform describes this evaluation in an unknown way, and it is left out",
    "Ask the platform's staff.",
)

_MALFORMED = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)
"""The errors that an answer of an unknown form raises."""

_ADMIN = "The token has to be of an admin."
"""The remedy where the values of cases are not given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadOptions:
    """What is downloaded, and from where."""

    phase: str = option(
        "The phase's key, which stands in the address below Export on its board.",
        parse=key,
        metavar="UUID",
    )
    output: Path = option("Folder that gets a folder for each team.", metavar="RESULTS")
    predictions: bool = option(
        "Get what was submitted, too, as RESULTS/TEAM/predictions.zip, and unpack it"
        " into RESULTS/TEAM/predictions.",
        default=False,
    )
    api: str = api_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A submission that was scored."""

    record: Record
    rank: int
    """On the phase's board; 0 if it is not on it."""
    is_published: bool
    """Whether everybody may see it, and it could be on the board."""
    metrics: Any
    """The metrics.json that the image has written."""
    predictions_url: str
    """Address of the upload; empty for an algorithm."""

    @property
    def user(self) -> str:
        """Name of the user who has submitted."""
        return self.record["username"]

    @property
    def standing(self) -> str:
        """Its rank, or why it has none."""
        if self.rank:
            return f"rank {self.rank}"
        if self.is_published:
            return "not on the board, as a ranked value is missing"
        return "unpublished"

    @property
    def created(self) -> datetime:
        """When it was made."""
        return datetime.fromisoformat(self.record["created"])


def download(options: DownloadOptions, *, token: str) -> int:
    """Write RESULTS/TEAM/metrics.json for each user with a result.

    Files that an earlier download has left there are not fetched again. Told at the end
    is which folders are of nobody on the board. The token is that of an admin of the
    challenge; others do not get the values of cases. Returns the number of teams. A
    PlatformError is raised if the platform refuses, or does not answer; or, after all
    other teams, if the metrics or the upload of one cannot be had, or an evaluation is
    not as we know them. An OutputError is raised if a file cannot be written.
    """
    client = Client(options.api, token)
    records = _records(options.output).values()
    users = {str(at(record, "evaluation")): record["username"] for record in records}
    try:
        scored, odd_keys = _evaluations(client, options.phase, users)
    except _MALFORMED as error:
        raise client.unknown_platform() from error
    evaluations = choose(scored)
    if not any("case" in evaluation.metrics for evaluation in evaluations):
        problem = "the phase has no values of cases that this token may see"
        raise PlatformError(f"{safe(options.api)}: {problem}", _ADMIN)
    _rename(options.output, scored)
    folders = _folders(options.output, [one.user for one in evaluations])
    run = _Download(client, has_predictions=options.predictions, odd_keys=odd_keys)
    for number, evaluation in enumerate(evaluations, start=1):
        folder = options.output / folders[evaluation.user]
        state = run.fetch_team(evaluation, folder)
        _log.info("[%d/%d] %s: %s", number, len(evaluations), folder.name, state)
    _tell_uncounted(options.output, evaluations, folders)
    run.finish()
    return len(evaluations)


class _Download:
    """A run over all teams, which goes on where the files of one cannot be had."""

    def __init__(
        self, client: Client, *, has_predictions: bool, odd_keys: Iterable[str]
    ) -> None:
        self._client, self._has_predictions = client, has_predictions
        self._teams_without_upload: list[str] = []
        self._errors = dict.fromkeys(odd_keys, _ODD)

    def fetch_team(self, evaluation: Evaluation, folder: Path) -> str:
        """Fetch the files of a team that are missing; return its state, for the log."""
        state = f"{evaluation.standing}, of {evaluation.created:%Y-%m-%d %H:%M}"
        is_new = _prepare(folder, evaluation.record)
        if not is_new:
            state += ", is there already"
        try:
            if is_new:
                _write_metrics(evaluation, folder)
            if self._has_predictions and evaluation.predictions_url:
                self._client.fetch(evaluation.predictions_url, folder / UPLOAD)
                _unpack(folder)
        except FileRefusedError:
            self._teams_without_upload.append(folder.name)
        except PlatformError as error:  # of this team alone
            self._errors[folder.name] = error
            state += f", is not whole: {error.finding}"
        return state

    def finish(self) -> None:
        """Tell which files are missing.

        Raises a `PlatformError` if the platform, or a file of it, is at fault.
        """
        if self._teams_without_upload:
            _log.info(
                "%s: the platform gives no token what was uploaded; sign in with a"
                " browser: its address is in %s of each team",
                listing(self._teams_without_upload),
                RECORD,
            )
        if self._errors:
            error = next(iter(self._errors.values()))
            teams = listing(self._errors)
            raise PlatformError(f"{teams}: {error.finding}", error.remedy)


def choose(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """The evaluation of each user that counts, in the order of the users' names.

    It is the one on the phase's board, so that the platform's own method decides: the
    best of them, and of equal ranks the newest. Of a user who is not on the board, as
    nobody is before results are published, the newest counts.
    """
    ordered = sorted(evaluations, key=lambda e: (e.rank > 0, -e.rank, e.created))
    best = {evaluation.user: evaluation for evaluation in ordered}
    return [best[name] for name in sorted(best)]


def _folders(output: Path, users: Sequence[str]) -> dict[str, str]:
    """A folder for each user: that of an earlier download, or one by `folder_of`.

    A user who could be taken for another one, or for a folder of another one, gets a
    derived folder.

    Raises a `PlatformError` if the folder of a user is a link, or that of another one,
    too.
    """
    owners = {folder: record["username"] for folder, record in _records(output).items()}
    similar_names = confusable(users, settled=owners)
    folders = {}
    for user in users:
        is_ambiguous = user in similar_names or user in owners
        folders[user] = derived_folder(user) if is_ambiguous else folder_of(user)
    for name, user in owners.items():
        if user in folders:
            folders[user] = name
    owners_by_plain_name = {plain_name(name): user for name, user in owners.items()}
    for user, name in folders.items():
        folder = output / name
        owner = owners_by_plain_name.setdefault(plain_name(name), user)
        if owner != user:
            raise PlatformError(
                f"{safe(folder)}: it would be of {listing([owner, user])}",
                "Give one of them another folder by hand.",
            )
        if folder.is_symlink():
            raise PlatformError(
                f"{safe(folder)}: the folder is a link",
                "Put a folder there, or choose another.",
            )
    return folders


def _rename(output: Path, scored: Iterable[Evaluation]) -> None:
    """Give the records of an earlier download the names that their users have now."""
    users = {evaluation.record["evaluation"]: evaluation.user for evaluation in scored}
    for folder, record in _records(output).items():
        old_user = record["username"]
        user = users.get(str(at(record, "evaluation")), old_user)
        if user != old_user:
            text = "%s: the user %s is now called %s; the folder keeps its name"
            _log.info(text, safe(folder), safe(old_user), safe(user))
            _write_record(output / folder, {**record, "username": user})


def _tell_uncounted(
    output: Path, evaluations: Sequence[Evaluation], folders: Mapping[str, str]
) -> None:
    """Tell whose results `flare rank` counts, and the platform's board does not."""
    gone = sorted(_records(output).keys() - {*folders.values()})
    teams_by_reason = {"gone from the platform": gone}
    if any(evaluation.rank for evaluation in evaluations):  # else none is published yet
        for evaluation in evaluations:
            if not evaluation.rank:
                teams = teams_by_reason.setdefault(evaluation.standing, [])
                teams.append(folders[evaluation.user])
    for reason, teams in teams_by_reason.items():
        if teams:
            text = "%s: %s, but flare rank counts them: move away what shall not count"
            _log.info(text, listing(teams), reason)


def _records(output: Path) -> dict[str, dict[str, Any]]:
    """The records of earlier downloads, by the folders that they gave to users."""
    records = {}
    for file in sorted(output.glob(f"*/{RECORD}"), key=lambda file: file.parent.name):
        record = _record(file.parent)
        if isinstance(record.get("username"), str):
            records[file.parent.name] = record
    return records


def _record(folder: Path) -> dict[str, Any]:
    """The record of an earlier download in a team's folder; empty if there was none."""
    record = json_at(folder / RECORD)
    return record if isinstance(record, dict) else {}


# --- The API ----------------------------------------------------------------------


def _evaluations(
    client: Client, phase: str, users: Mapping[str, str]
) -> tuple[list[Evaluation], list[str]]:
    """The evaluations of a phase that were scored, and the keys of odd ones.

    An odd one is described in a way that we do not know. `users` has the names that
    evaluations have had in an earlier download, which outlast their accounts.
    """
    scored: dict[str, Evaluation] = {}
    odd_keys: list[str] = []
    for value in _list_evaluations(client, phase):
        try:
            if value["status"] == SUCCEEDED:
                evaluation = _evaluation(value, phase, users)
                if isinstance(evaluation.metrics, dict):
                    scored[evaluation.record["evaluation"]] = evaluation
        except _MALFORMED:
            odd_keys.append(str(at(value, "pk")))
    if odd_keys and not scored:
        raise client.unknown_platform()
    return [*scored.values()], odd_keys


def _list_evaluations(client: Client, phase: str) -> Iterator[Any]:
    """The evaluations of a phase in the words of the API, a page at a time.

    A page that is too long is asked for anew, with half as many evaluations.
    """
    limit, keys = PAGE, set[str]()
    for calls in itertools.count(1):
        part = {"limit": str(limit), "offset": str(len(keys))}
        params = {"submission__phase": phase, **part}
        try:
            reply = client.call("GET", "evaluations/", params=params)
        except LongAnswerError:
            if limit == 1:
                raise
            limit //= 2
            continue
        if reply.status != 200:
            raise client.refusal(reply)
        page, count = reply.content["results"], int(reply.content["count"])
        yield from page
        new_keys = {str(at(value, "pk")) for value in page} - keys
        keys |= new_keys
        if not new_keys or len(keys) >= count:
            return
        if calls + (count - len(keys)) / len(new_keys) > MOST_CALLS:
            raise PlatformError(
                f"{safe(client.api)}: it has {count} evaluations, {len(new_keys)} at a"
                f" time, which takes more than {MOST_CALLS} calls",
                "Is --api right? If so, ask the platform's staff.",
            )


def _evaluation(
    value: Mapping[str, Any], phase: str, users: Mapping[str, str]
) -> Evaluation:
    metrics = None
    for output in value["outputs"]:
        socket = output.get("socket") or output["interface"]
        if socket["slug"] == "metrics-json-file":
            metrics = output["value"]
    pk, submission = key(value["pk"]), value["submission"]
    user = user_of(submission, pk)
    if submission["creator"] is None:
        user = users.get(pk, user)
    created = datetime.fromisoformat(value["created"])
    if created.tzinfo is None:  # it could not be compared with other times
        raise ValueError("a time without its zone")
    url = str(submission.get("predictions_file") or "")
    record: Record = {
        "evaluation": pk,
        "phase": phase,
        "username": user,
        "created": created.isoformat(),
        "predictions_file": url.partition("?")[0],
    }
    return Evaluation(
        record=record,
        rank=int(value["rank"] or 0),
        is_published=value.get("published") is not False,
        metrics=metrics,
        predictions_url=url,
    )


# --- Files ------------------------------------------------------------------------


def _prepare(folder: Path, record: Record) -> bool:
    """Make a team's folder ready; return whether its metrics.json is still to come.

    The record is written first, so that a download that was ended goes on where it was.
    """
    old_record = _record(folder)
    has_metrics = (folder / METRICS_JSON).exists()
    if old_record == record and has_metrics:
        return False
    if not old_record and has_metrics:
        raise PlatformError(
            f"{safe(folder / METRICS_JSON)}: it is there, and not from the platform",
            "Choose another folder with --output.",
        )
    if old_record != record:
        remove_tree(folder / METRICS_JSON)
        remove_tree(folder / UPLOAD)
        if old_record:
            remove_tree(folder / PREDICTIONS)
        _write_record(folder, record)
    return True


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    write_whole(folder / RECORD, f"{json.dumps(record, indent=2)}\n")


def _write_metrics(evaluation: Evaluation, folder: Path) -> None:
    """Write a team's metrics.json, if it can be ranked."""
    if "case" not in evaluation.metrics:
        raise PlatformError("the platform gives only the ranked values", _ADMIN)
    try:
        content = json.dumps(evaluation.metrics, indent=2, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise PlatformError(
            f"the platform's {METRICS_JSON} is no JSON ({error})",
            "Evaluate this submission again.",
        ) from error
    write_whole(folder / METRICS_JSON, f"{content}\n")


def _unpack(folder: Path) -> None:
    """Unpack a team's upload as the platform has done, whole or not at all."""
    target = folder / PREDICTIONS
    if target.exists():
        return
    part = folder / f".{PREDICTIONS}.part"
    remove_tree(part)  # of a download that was ended
    try:
        part.mkdir()
        prepare_input(folder / UPLOAD, part)
        part.replace(target)
    except UploadError as error:
        raise PlatformError(
            f"{UPLOAD} is not unpacked: {error.finding}",
            f"Unpack it into {PREDICTIONS} yourself.",
        ) from error
    except OSError as error:
        raise unwritable(part, error) from error
    finally:
        remove_tree(part)
