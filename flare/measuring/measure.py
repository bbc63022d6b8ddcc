"""Measures teams: runs their images case by case, one after the other on each lane.

What is made on the way, and in which module::

    Job        team       what is to be measured, as it was read
    TeamJob    team       all that is needed to measure a team on a lane
    TeamPlan   team       what is left to do of a team, whose folder is locked
    Trial      trial      a case that was run once
    CaseRecord container  the row of a case in efficiency.csv
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from flare.challenge.answers import KINDS
from flare.challenge.names import names_advice, shared_endings
from flare.challenge.reading import read_challenge
from flare.challenge.rules import Challenge
from flare.common.errors import (
    FlareError,
    InputError,
    ProgramError,
    StoppedError,
    SubmissionError,
)
from flare.common.text import aligned, count, listing, nearest, safe
from flare.evaluation.answers import check_cases as check_answer_cases
from flare.evaluation.answers import check_sheet, read_sheets
from flare.evaluation.submission.find import LabelMapFile, find_references
from flare.measuring.archive.model import MODEL_SUFFIX, model_beside
from flare.measuring.archive.reading import SUFFIX, Archive, read_archive, team_of
from flare.measuring.archive.strict import ArchiveError
from flare.measuring.container import opened_limits
from flare.measuring.engines.interface import Engine, find_engine
from flare.measuring.host import choose_caches, missing_walls
from flare.measuring.lane import Lane, check_alike, divide, look_at_computer
from flare.measuring.lanes.dispatch import Dispatch, Listener, noted
from flare.measuring.lanes.process import LanePool, LocalLanes, SingleLane
from flare.measuring.options import Caches, Contract, MeasureOptions
from flare.measuring.rescore import evaluate_team
from flare.measuring.team import Job
from flare.measuring.trial import find_cases
from flare.results.archives_csv import Refusal, replace_rows
from flare.results.efficiency_csv import EFFICIENCY_CSV, RunStatus, read_records
from flare.results.errors import MeasurementError
from flare.results.measurement_json import EngineRecord

_log = logging.getLogger(__name__)


# --- Before: what is to be measured -----------------------------------------------


def read_job(options: MeasureOptions) -> Job:
    """Read all that options name; an archive that cannot be read stops no other one.

    A FlareError is raised if there is nothing to measure, or images and references do
    not agree.
    """
    if options.cluster:  # paths have to hold in every process
        options = replace(
            options,
            archives=options.archives.absolute(),
            images=options.images.absolute(),
            output=options.output.absolute(),
        )
    challenge = read_challenge(options.challenge)
    cases = find_cases(options.images, challenge, options.contract)
    if options.ground_truth:
        check_cases(cases, options.ground_truth, challenge)
    files = find_archives(options.archives)
    results = options.output
    if len(files) == 1 and results.name == team_of(files[0]):
        results = results.parent
    archives, unread = _read_archives(files, results, options.contract)
    for error in unread.values():
        _log.info("%s", error)
    for archive in archives:
        for problem in archive.problems:
            _log.info("%s", problem)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    return Job(
        options=options,
        challenge=challenge,
        results=results,
        cases=cases,
        archives=tuple(archives),
        unread=tuple(unread.items()),
    )


def _read_archives(
    files: Sequence[Path], results: Path, contract: Contract
) -> tuple[list[Archive], dict[str, FlareError]]:
    """Read archives with their models; returns why others, by team, cannot be read."""
    archives: list[Archive] = []
    unread: dict[str, FlareError] = {}
    for file in files:
        with noted(unread, results, team_of(file)):
            if file.is_file():
                size = file.stat().st_size / 1e6
                _log.info("reading %s (%.1f MB)", safe(file.name), size)
            model = model_beside(file)
            archives.append(read_archive(file, contract=contract, model=model))
    return archives, unread


def find_archives(path: Path) -> tuple[Path, ...]:
    """An archive, or all archives of a folder, in the order of their names.

    An InputError is raised if there is no archive, or a model has no archive.
    """
    if not path.is_dir():
        return (path,)
    files = sorted(path.glob(f"*{SUFFIX}"))
    archives = tuple(file for file in files if not file.name.endswith(MODEL_SUFFIX))
    for model in sorted({*files} - {*archives}):
        archive = f"{model.name.removesuffix(MODEL_SUFFIX)}{SUFFIX}"
        if not (path / archive).exists():
            raise InputError(
                f"{safe(model)}: there is no {safe(archive)} beside it",
                "A model is named like the archive of its image.",
            )
    if not archives:
        raise InputError(
            f"{safe(path)}: there is no TEAMNAME{SUFFIX} in it",
            "Give the archives that the teams have sent.",
        )
    return archives


def check_cases(
    cases: Sequence[LabelMapFile], ground_truth: Path, challenge: Challenge
) -> None:
    """See that images and references are of the same cases; an error if not."""
    if not ground_truth.is_dir():
        raise InputError(
            f"{safe(ground_truth)}: there is no such folder",
            "Give the reference labels with --ground-truth.",
        )
    references = _reference_cases(ground_truth, challenge)
    images = {case.case for case in cases}
    problems = []
    for names, kind, absent in (
        (sorted(references - images), "reference", "image"),
        (sorted(images - references), "image", "reference"),
    ):
        if references and names:
            problems.append(f"{kind}s without {absent}: {listing(names)}")
    if problems:
        endings = shared_endings(references, images)
        advice = ""
        if challenge.organs:
            advice = names_advice(challenge.names, challenge.key, *endings)
        # An error is one line: what was a line of its own stands behind a comma.
        sentence, *lines = advice.split("\n")
        remedy = "Every case needs both."
        if advice:
            remedy = f"{sentence} {', '.join(lines)} (each a line of its own)."
        raise MeasurementError(str(ground_truth), "; ".join(problems), remedy)


def _reference_cases(ground_truth: Path, challenge: Challenge) -> set[str]:
    """The cases that have a label map, or else answers; none if questions have names.

    An error of the organisers' is raised if answers could not be scored in the end.
    """
    cases: set[str] = set()
    if challenge.organs:
        cases = {file.case for file in find_references(ground_truth, challenge)}
    if not challenge.answers:
        return cases
    sheets = read_sheets(None, ground_truth, challenge)
    check_answer_cases(sheets, cases)
    for sheet in sheets:
        check_sheet(sheet)
        rules = sheet.rules
        if KINDS[rules.kind].needs_worst and rules.worst is None:
            raise InputError(
                f"answers.{rules.name}: a run may fail, and a missing {rules.kind} has"
                " no worst value",
                "Set `worst` in the challenge file.",
            )
        if not challenge.organs and len(rules.case) == 1:
            cases |= {*sheet.cases}
    return cases


# --- The whole --------------------------------------------------------------------


class Scorer(Listener):
    """Scores each team that is measured to the end, and shows its measurements.

    Without reference labels, nothing is scored.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.unscored: dict[str, FlareError] = {}

    def on_team(self, team: str) -> None:
        """Score a team."""
        options, folder = self.job.options, self.job.results / team
        with noted(self.unscored, self.job.results, team):
            if options.ground_truth:
                challenge, workers = self.job.challenge, options.workers
                evaluate_team(folder, options.ground_truth, challenge, workers)
        with noted(self.unscored, self.job.results, team):
            _log.info("\n%s", team_table(folder, team))
        if error := self.unscored.get(team):
            _log.info("%s: measured, but not scored: %s", team, error)


def measure(job: Job, scorer: Scorer) -> str:
    """Measure and score teams, and note in refused.csv whose image cannot be run.

    Returns why the first team was not done, and how many others were not; empty if all
    were.
    """
    write_refused(job.archives, job.results)
    failures = measure_teams(job, scorer)
    for team, error in failures:
        _log.info("%s: not measured to the end: %s", team, error)
    failures = (*job.unread, *failures)
    write_refused(job.archives, job.results, (*failures, *scorer.unscored.items()))
    lines = {a.team: str(a.problems[0]) for a in job.archives if a.problems}
    lines |= {team: str(error) for team, error in failures}
    for team, error in scorer.unscored.items():
        lines.setdefault(team, f"{team}: measured, but not scored: {error}")
    first = next(iter(lines.values()), "")
    if len(lines) > 1:
        return f"{first} (and {count(len(lines) - 1, 'other team')})"
    return first


def interruption(job: Job) -> StoppedError:
    """The message of a measurement that was stopped: nothing of it is lost."""
    done = sum(count_done(job.results / a.team) for a in job.runnable)
    total = len(job.runnable) * len(job.cases)
    return StoppedError(
        "Measuring was interrupted",
        f"{done} of {total} cases are measured and kept; the same command goes on.",
    )


def measure_teams(job: Job, listener: Listener) -> tuple[tuple[str, FlareError], ...]:
    """Run the images of all teams on all cases, and keep what was measured.

    Only cases without a result, with an engine error, or in `options.rerun` are run. A
    team is measured whole by one lane: of this computer, or of those of a cluster.
    Returns the teams whose measurement could not begin or go on, and why; what was
    measured of them is kept. A HostError is raised if no team can be measured.
    """
    if not job.runnable:
        return ()
    _check_options(job)
    options, engine = job.options, find_engine(job.options.engine)
    with _opened_lanes(job, engine) as (pool, record), closing(pool):
        for wall in missing_walls(record):
            _log.info("Before you run images of others: %s", wall)
        lanes = pool.lanes()
        check_alike(lanes)
        caches = options.runs.caches
        if options.is_side_by_side:
            caches = caches or Caches.WARM
            for lane in lanes:
                _log.info("%s: %s", lane.name, lane.description)
        else:
            is_here = engine.folder() is not None
            caches = choose_caches(caches, is_engine_here=is_here)
        runs = replace(options.runs, caches=caches)
        job = replace(job, options=replace(options, runs=runs), unread=())
        dispatch = Dispatch(job, engine, pool, listener)
        dispatch.plan(is_here=options.cluster is None)
        dispatch.measure()
    return tuple(dispatch.failures.items())


def _check_options(job: Job) -> None:
    options, names = job.options, [case.case for case in job.cases]
    unknown = sorted(set(options.rerun) - set(names))
    if unknown:
        near = nearest(unknown[0], names)
        problem = f"there is no such case to run again{near}"
        raise MeasurementError(listing(unknown), problem, "Check --rerun.")
    for_one_team = (options.new_archive, options.paper, options.rerun)
    if len(job.runnable) > 1 and any(for_one_team):
        raise MeasurementError(
            "--new-archive, --paper, --rerun",
            "they are about one team, but several archives were given",
            "Measure it alone.",
        )


@contextmanager
def _opened_lanes(job: Job, engine: Engine) -> Iterator[tuple[LanePool, EngineRecord]]:
    options = job.options
    if options.cluster:
        # Here, as nobody without a cluster needs to have Dask.
        from flare.measuring.lanes.cluster import opened_cluster

        with opened_cluster(job, engine) as pool:
            yield pool, pool.computers[0].engine
    elif options.is_side_by_side:
        computer = look_at_computer(options.gpus, engine)
        lanes = divide(computer, options.limits, options.lane_count)
        yield LocalLanes(lanes), computer.engine
    else:
        record = engine.describe()
        with opened_limits(options.limits) as (limits, gpu):
            lane = Lane(limits=limits, gpu=gpu.device if gpu else None)
            yield SingleLane(lane), record


# --- What is told and noted ---------------------------------------------------------


def count_done(folder: Path) -> int:
    """Cases of a team that need not be run again; 0 if that cannot be read."""
    try:
        records = read_records(folder / EFFICIENCY_CSV).values()
    except MeasurementError:
        return 0
    return sum(record.is_finished for record in records)


def team_table(folder: Path, team: str) -> str:
    """The measurements of a team, a row for each case, as text."""
    records = read_records(folder / EFFICIENCY_CSV)
    counts = Counter(record.status for record in records.values())
    summary = ", ".join(f"{counts[s]} {s.value}" for s in RunStatus if counts[s])
    rows = [["case", "status", "seconds", "GPU memory in MB", ""]]
    for case, record in sorted(records.items()):
        seconds = _cell(record.runtime_s, ".2f")
        memory = _cell(record.max_gpu_memory_mb, ".0f")
        # The first sentence: what a participant should do is in efficiency.csv.
        remark = (record.message or record.doubts).partition(". ")[0]
        rows.append([safe(case), record.status.value, seconds, memory, remark])
    return "\n".join([f"{team}: {summary}", *aligned(rows), f"Wrote {safe(folder)}"])


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def write_refused(
    archives: Sequence[Archive],
    results: Path,
    failed: Sequence[tuple[str, FlareError]] = (),
) -> None:
    """Write down which archives were refused, and why.

    Teams that are not among these archives stay in the file as they are. Those that
    `failed` were not measured or scored to the end. Where the host is to blame, a team
    is not refused: the same command goes on with it. An OutputError is raised if it
    cannot be written.
    """
    digests = {archive.team: archive.sha256 for archive in archives}
    refusals = []
    for archive in archives:
        for problem in archive.problems:
            refusals.append(_refusal(archive.team, problem, archive.sha256))
    for team, error in failed:
        if isinstance(error, SubmissionError | ProgramError):
            refusals.append(_refusal(team, error, digests.get(team, "")))
    replace_rows(results, Refusal, refusals, {*digests, *dict(failed)})


def _refusal(team: str, error: FlareError, archive_sha256: str) -> Refusal:
    return Refusal(
        team=team,
        archive=getattr(error, "file", f"{team}{SUFFIX}"),
        # With another model or program, the same archive may be accepted.
        archive_sha256=archive_sha256 if isinstance(error, ArchiveError) else "",
        problem=str(error),
    )
