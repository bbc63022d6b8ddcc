"""What each command does with its arguments: calls to the modules that do the work.

What only other commands than ``evaluate`` need is imported by them, so that an
evaluation starts sooner.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flare.challenge.errors import ChallengeError
from flare.challenge.reading import challenge_names, challenge_text, read_challenge
from flare.challenge.summary import challenge_summary
from flare.cli.console import (
    VERBATIM,
    MeasuringProgress,
    OutcomeError,
    fits,
    show_progress,
    stopping_with,
)
from flare.common.errors import FlareError, InputError, StoppedError
from flare.common.places import (
    BUNDLED_GROUND_TRUTH,
    PHASE_SETTINGS,
    PLATFORM_GROUND_TRUTH,
)
from flare.common.text import listing, nearest, printable, safe, why
from flare.common.version import __version__
from flare.evaluation.errors import UploadError
from flare.evaluation.evaluate import evaluate
from flare.evaluation.references import check_references, has_label_maps
from flare.evaluation.references_table import references_table
from flare.results.known_metrics import known_metrics
from flare.results.metrics_json import prepare_output, write_metrics
from flare.results.scores_table import results_table

if TYPE_CHECKING:
    from flare.measuring.archive.reading import Archive
    from flare.measuring.container import Limits
    from flare.measuring.sampling.gpu import NvmlSource
    from flare.platforms.grandchallenge.phase import Phase

_log = logging.getLogger(__name__)


def run_evaluate(arguments: argparse.Namespace) -> None:
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
    challenge = read_challenge(arguments.challenge)
    decimals = arguments.decimals
    results = evaluate(
        arguments.input,
        ground_truth,
        challenge=challenge,
        on_bad_case=arguments.on_bad_case,
        grid=arguments.grid,
        unknown_labels=arguments.unknown_labels,
        decimals=challenge.board.decimals if decimals is None else decimals,
        workers=arguments.workers,
        on_case=show_progress,
        is_measured=arguments.on_bad_case == "worst",  # nobody else needs it
    )
    file = write_metrics(results, arguments.output)
    table = results_table(results)
    if not fits(table):
        table = results_table(results, has_std=False)
    _log.info("\n%s\n\nWrote %s", table, file)


def run_check(arguments: argparse.Namespace) -> None:
    """Say what the evaluation would refuse, or why an image cannot be run."""
    file = arguments.predictions
    if file.is_file():
        check_file(arguments)
        return
    if arguments.run:
        problem = "--run: only an image can be run, TEAMNAME.tar.gz"
        raise InputError(problem, "Give it in the place of the predictions.")
    if not file.exists():
        problem = f"{safe(file)}: there is no such file or folder"
        remedy = "Give the folder of the label maps, their zip, or TEAMNAME.tar.gz."
        raise InputError(problem, remedy)
    check_folder(arguments, file)


def check_file(arguments: argparse.Namespace) -> None:
    """Check what is no folder: a zip of predictions, or an image."""
    import tempfile

    from flare.evaluation.submission.unpacking import (
        find_label_maps_in_tar,
        is_zip,
        unpack_zip,
    )
    from flare.measuring.archive.reading import SUFFIX

    file = arguments.predictions
    try:
        is_zipped = is_zip(file)
    except OSError as error:
        problem = f"{safe(file)}: it cannot be read ({why(error)})"
        raise InputError(problem) from error
    if is_zipped and not arguments.run:
        with tempfile.TemporaryDirectory(prefix="flare-check-") as folder:
            try:
                _log.info("%s", unpack_zip(file, Path(folder)))
            except UploadError as error:
                _log.info("%s", error)
                nothing_more = ""
                raise OutcomeError(nothing_more) from error
            check_folder(arguments, Path(folder))
        return
    found = find_label_maps_in_tar(file)
    if found:
        problem = f"{safe(file)}: these are label maps, not an image ({listing(found)})"
        remedy = "To submit them, zip them; to check them, give the zip or the folder."
        raise InputError(problem, remedy)
    if file.name.lower().endswith(SUFFIX):
        check_archive(arguments)
        return
    if arguments.run:
        problem = "--run: only an image can be run, TEAMNAME.tar.gz"
        raise InputError(problem, "Give it in the place of the predictions.")
    problem = f"{safe(file)}: it is neither a folder, nor a zip, nor an image"
    remedy = "Give the folder of the label maps, their zip, or TEAMNAME.tar.gz."
    raise InputError(problem, remedy)


def check_folder(arguments: argparse.Namespace, folder: Path) -> None:
    """Say what the evaluation would refuse of a folder of predictions."""
    from flare.evaluation.check import check_submission

    report = check_submission(
        folder,
        read_challenge(arguments.challenge),
        ground_truth=arguments.ground_truth,
        images=arguments.images,
        workers=arguments.workers,
        on_case=show_progress if sys.stdout.isatty() else None,
        are_cts_read=True,
    )
    if report.lines:
        _log.info("%s", "\n".join(filter(None, [*report.lines, report.hint])))
        nothing_more = ""
        raise OutcomeError(nothing_more)
    is_whole = arguments.images or arguments.ground_truth
    what = "this submission" if is_whole else "the files themselves"
    _log.info("%s\n%s", report.summary, report.note)
    if report.remarks:
        _log.info("%s", "\n".join(f"Remark: {line}" for line in report.remarks))
        _log.info("Nothing would be refused, but look at the remarks in a viewer.")
    else:
        _log.info("Nothing is wrong with %s.", what)


def check_archive(arguments: argparse.Namespace) -> None:
    """Say what is wrong with a team's image, and run it once if that is asked for."""
    from flare.measuring.archive.reading import read_archive

    if arguments.images or arguments.ground_truth:
        problem = "--images, --ground-truth: they are for predictions"
        raise InputError(problem, "Run an image on one CT with --run.")
    archive = read_archive(arguments.predictions)
    for found in archive.problems:
        _log.info("%s", found)
    for doubt in archive.doubts:
        _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    if archive.problems:
        nothing_more = ""
        raise OutcomeError(nothing_more)
    _log.info(
        "%s: image %s of team %s, %.0f MB unpacked, can be loaded.",
        *(safe(archive.path.name), archive.image[:12], archive.team),
        archive.unpacked_bytes / 2**20,
    )
    if arguments.run:
        _try_archive(archive, arguments)


@contextmanager
def _open_limits(
    arguments: argparse.Namespace,
) -> Iterator[tuple[Limits, NvmlSource | None]]:
    """The limits of containers, and their GPU, if there is to be one."""
    from flare.measuring.container import Limits
    from flare.measuring.host_load import default_cpus
    from flare.measuring.sampling.gpu import open_gpu

    limits = Limits(
        timeout_s=arguments.timeout,
        memory=arguments.memory,
        shm_size=arguments.shm_size,
        output_size=arguments.output_size,
        disk_bytes=arguments.disk,
        cpus=default_cpus() if arguments.cpus is None else arguments.cpus,
        runtime=arguments.runtime,
    )
    if arguments.gpu == "none":
        yield limits, None
        return
    with open_gpu(arguments.gpu) as gpu:
        yield replace(limits, gpu=gpu.device.uuid), gpu


def _try_archive(archive: Archive, arguments: argparse.Namespace) -> None:
    """Run an image on one case, with the very flags that count."""
    import tempfile

    from flare.evaluation.check import organs_in
    from flare.measuring.cases import case_of
    from flare.measuring.engine import Engine
    from flare.measuring.image import Runner
    from flare.results.efficiency_csv import RunStatus

    challenge = read_challenge(arguments.challenge)
    case = case_of(arguments.run)
    with (
        tempfile.TemporaryDirectory(prefix="flare-check-") as folder,
        _open_limits(arguments) as (limits, gpu),
        Runner(
            archive,
            Path(folder),
            engine=Engine(),
            limits=limits,
            interval_s=0.1,
            gpu=gpu,
        ) as runner,
    ):
        outcome = runner.run_case(case, challenge)
        log = outcome.run.log.decode("utf-8", "replace").strip() if outcome.run else ""
        if log:
            lines = "\n".join(f"  {printable(line)}" for line in log.splitlines())
            _log.info("The container says:\n%s", lines[-2000:])
        status = outcome.status
        if status is not RunStatus.OK or not outcome.run:
            what = f"{status.value}: {outcome.message}"
            _log.info("%s, %s: %s", archive.team, safe(case.name), what)
            nothing_more = ""
            raise OutcomeError(nothing_more)
        _log.info("%s: ok, %.2f s.", safe(case.name), outcome.run.runtime_s)
        _log.info("%s", organs_in(outcome.files, challenge))


def run_measure(arguments: argparse.Namespace) -> None:
    """Run teams' images case by case, and score what they predict."""
    from flare.measuring.archive.reading import read_archive
    from flare.measuring.cases import check_cases, find_archives, find_cases
    from flare.measuring.engine import Engine
    from flare.measuring.errors import LoadError
    from flare.measuring.host_load import choose_caches
    from flare.measuring.measure import (
        Failures,
        count_done,
        evaluate_team,
        measure,
        team_table,
        write_refused,
    )
    from flare.measuring.team import Options
    from flare.measuring.weaknesses import find_weaknesses
    from flare.reports.plots import check_plots, draw_traces

    if arguments.plots:
        check_plots()
    challenge = read_challenge(arguments.challenge)
    if arguments.rerun and not arguments.reason.strip():
        problem = "--rerun: no reason was given"
        raise InputError(problem, "Say why, for the record: --reason TEXT.")
    cases = find_cases(arguments.images)
    if arguments.ground_truth:
        check_cases(cases, arguments.ground_truth)
    files = find_archives(arguments.archives)
    archives = [read_archive(file) for file in files]
    good = [archive for archive in archives if not archive.problems]
    for archive in archives:
        for found in archive.problems:
            _log.info("%s", found)
        for doubt in archive.doubts:
            _log.info("%s: doubtful: %s", safe(archive.path.name), doubt)
    results = arguments.output
    if len(files) == 1 and results.name == archives[0].team:
        results = results.parent
    write_refused(archives, results)
    failed: tuple[tuple[str, FlareError], ...] = ()
    engine = Engine()
    scoring = Failures()
    progress = MeasuringProgress()

    def finish(team: str) -> None:
        """Score a team, and show what came of it."""
        progress.clear()
        folder = results / team
        scored = None
        with scoring.noted(team):
            if arguments.ground_truth:
                truth, workers = arguments.ground_truth, arguments.workers
                scored = evaluate_team(folder, truth, challenge, workers)
            if arguments.plots:
                draw_traces(folder)
        with scoring.noted(team):
            _log.info("\n%s", team_table(folder, team, scored))
        if team in scoring.found:
            _log.info("%s: measured, but not scored: %s", team, scoring.found[team])

    def kept() -> StoppedError:
        """What Ctrl-C has not taken away."""
        done = sum(count_done(results / archive.team) for archive in good)
        of = len(good) * len(cases)
        return StoppedError(
            "Measuring was interrupted",
            f"{done} of {of} cases are measured and kept; the same command goes on.",
        )

    if good:
        for weakness in find_weaknesses(engine.describe()):
            _log.info("Before you run images of others: %s", weakness)
        with stopping_with(kept), _open_limits(arguments) as (limits, gpu):
            options = Options(
                limits=limits,
                interval_s=arguments.interval,
                repeats=arguments.repeats,
                caches=choose_caches(
                    arguments.caches, is_engine_here=engine.folder() is not None
                ),
                has_warm_up=not arguments.no_warm_up,
                is_interleaved=arguments.interleave,
                rerun=tuple(arguments.rerun),
                reason=arguments.reason,
                new_archive=arguments.new_archive,
                paper=arguments.paper,
            )
            failed = measure(
                good,
                cases,
                results,
                challenge,
                engine=engine,
                options=options,
                gpu=gpu,
                on_run=progress,
                on_team=finish,
            )
    for team, error in failed:
        _log.info("%s: not measured to the end: %s", team, error)
    not_loaded = [
        replace(archive, problems=(error,))
        for archive in good
        for team, error in failed
        if team == archive.team and isinstance(error, LoadError)
    ]
    write_refused(not_loaded, results)
    problems: list[FlareError] = [a.problems[0] for a in archives if a.problems]
    problems += [error for _, error in failed]
    line = str(problems[0]) if problems else ""
    if not problems and scoring.found:
        team, error = next(iter(scoring.found.items()))
        line = f"{team}: measured, but not scored: {error}"
    others = len({*dict(failed), *scoring.found}) + len(archives) - len(good) - 1
    if line:
        raise OutcomeError(f"{line} (and {others} other teams)" if others > 0 else line)


def run_rescore(arguments: argparse.Namespace) -> None:
    """Score kept predictions anew, and keep what was measured."""
    from flare.measuring.rescore import Rescored, rescore, rescored_table

    challenge = read_challenge(arguments.challenge)

    def tell(found: Rescored) -> None:
        """Say what became of a team."""
        if found.error:
            _log.info("%s: not scored: %s", safe(found.team), found.error)
        for line in found.zeros:
            _log.info("%s: %s", safe(found.team), line)

    teams = rescore(
        arguments.results,
        arguments.ground_truth,
        challenge,
        workers=arguments.workers,
        on_team=tell,
    )
    _log.info("\n%s", rescored_table(teams))
    errors = [(found.team, found.error) for found in teams if found.error]
    if errors:
        others = f" (and {len(errors) - 1} other teams)" if errors[1:] else ""
        line = f"{safe(errors[0][0])}: not scored: {errors[0][1]}{others}"
        raise OutcomeError(line)


def run_rank(arguments: argparse.Namespace) -> None:
    """Rank teams by FLARE's rule."""
    from flare.ranking.robustness.bootstrap import SAMPLES, SEED
    from flare.reports.ranking.ranking import rank

    ranking = rank(
        arguments.results,
        challenge=arguments.challenge,
        metrics=arguments.metrics,
        ties=arguments.ties,
        missing=arguments.missing,
        gate=arguments.gate,
        decisions=arguments.decisions,
        bootstrap=SAMPLES if arguments.bootstrap is None else arguments.bootstrap,
        seed=SEED if arguments.seed is None else arguments.seed,
    )
    ranking.write(arguments.output)
    _log.info("%s", ranking)


def run_simulate(arguments: argparse.Namespace) -> None:
    """Make up the results of a challenge."""
    from flare.ranking.simulation import SEED, write_simulation

    teams = write_simulation(
        read_challenge(arguments.challenge),
        arguments.output,
        teams=arguments.teams,
        cases=arguments.cases,
        seed=SEED if arguments.seed is None else arguments.seed,
    )
    _log.info(
        "Wrote %d teams with %d cases to %s",
        len(teams),
        arguments.cases,
        arguments.output,
    )


def run_check_references(arguments: argparse.Namespace) -> None:
    """Read a challenge file and all reference labels."""
    challenge = read_challenge(arguments.challenge)
    folder = arguments.folder or arguments.ground_truth
    found = check_references(folder, challenge)
    _log.info("%s: %d reference label maps can be used", challenge.name, found.count)
    _log.info("%s", references_table(found, challenge))


def run_list_challenges(_: argparse.Namespace) -> None:
    """Name all challenges that come with the program."""
    names = challenge_names()
    width = max(map(len, names))
    for name in names:
        challenge = read_challenge(name)
        _log.info("%s  %s", name.ljust(width), challenge.name)


def run_show_challenge(arguments: argparse.Namespace) -> None:
    """Print the file of a challenge."""
    text = challenge_text(arguments.challenge).rstrip("\n")
    _log.info("%s", text, extra=VERBATIM)


def run_validate_challenge(arguments: argparse.Namespace) -> None:
    """Say what a challenge file means."""
    challenge = read_challenge(arguments.challenge)
    known = known_metrics(challenge)
    for number, rule in enumerate(challenge.ranking, start=1):
        if rule.metric not in known:
            problem = (
                f"ranking[{number}].metric is {safe(repr(rule.metric))}, which nothing"
                f" here makes{nearest(rule.metric, known)}"
            )
            raise ChallengeError(arguments.challenge, problem)
    _log.info("%s", challenge_summary(challenge))
    ranked = (
        ""
        if challenge.ranking
        else (
            "\nIts teams cannot be ranked, as it has no [[ranking]]:"
            " docs/challenge-files.md explains it."
        )
    )
    _log.info(
        "\nThis challenge can be used: --challenge %s%s", arguments.challenge, ranked
    )


def run_rehearse(arguments: argparse.Namespace) -> None:
    """Run the image as the platform would, and say what it would make of it."""
    from flare.platforms.grandchallenge.rehearse import (
        TIME_LIMIT_S,
        judge,
        rehearse,
        verdict_text,
    )

    if not arguments.submission.exists():
        problem = f"{safe(arguments.submission)}: there is no such file or folder"
        raise InputError(problem)
    phase = _rehearsed_phase(arguments)
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


def _rehearsed_phase(arguments: argparse.Namespace) -> Phase:
    """The phase whose settings were given, or else are those of the image."""
    from flare.platforms.grandchallenge.phase import parse_phase, read_phase
    from flare.platforms.grandchallenge.rehearse import image_settings

    if arguments.phase_settings:
        return read_phase(arguments.phase_settings, arguments.phase)
    challenge, settings = image_settings(arguments.image, arguments.engine)
    if not challenge:
        return read_phase(PHASE_SETTINGS, arguments.phase)
    _log.info(
        "Phase settings: those that phase-settings prints for %s, the image's challenge"
        " (--phase-settings takes others)",
        safe(challenge),
    )
    source = f"phase-settings of {challenge}"
    return parse_phase(settings, arguments.phase, source=source)


def run_phase_settings(arguments: argparse.Namespace) -> None:
    """Print the settings of three phases."""
    from flare.platforms.grandchallenge.phase_templates import settings_for

    challenge = read_challenge(arguments.challenge)
    _log.info("%s", json.dumps(settings_for(challenge), indent=2), extra=VERBATIM)
    if challenge.board.decimals is None and sys.stdout.isatty():  # no part of a file
        _log.info(
            "\nThese phases are public: build their image with --decimals 4, or set"
            " [board] decimals; docs/phase-settings.md tells why."
        )


def run_leaderboard(arguments: argparse.Namespace) -> None:
    """Rank several results as the platform would."""
    from flare.platforms.grandchallenge.leaderboard import (
        find_differences,
        leaderboard_table,
        rank_results,
        read_result,
        write_leaderboard,
    )
    from flare.platforms.grandchallenge.phase import read_phase

    phase = read_phase(arguments.phase_settings or PHASE_SETTINGS, arguments.phase)
    results = [read_result(file) for file in arguments.files]
    difference = find_differences(results)
    if difference:
        _log.info("%s", difference)
    board = rank_results(results, phase)
    if arguments.output:
        write_leaderboard(board, arguments.output)
    _log.info("%s", leaderboard_table(board, phase))


def run_download(arguments: argparse.Namespace) -> None:
    """Get the results of a phase off the platform."""
    from flare.platforms.grandchallenge.download import download, read_token
    from flare.platforms.grandchallenge.errors import PlatformError

    if not arguments.api.startswith("https://"):
        problem = f"{safe(arguments.api)}: the token is sent to no http address"
        raise PlatformError(problem, "Give the address with https:// as --api.")
    count = download(
        arguments.phase,
        arguments.output,
        token=read_token(arguments.token, arguments.token_file),
        api=arguments.api,
        has_predictions=arguments.predictions,
        on_team=lambda number, count, team, what: _log.info(
            "[%d/%d] %s: %s", number, count, team, what
        ),
    )
    _log.info("%d teams are in %s", count, arguments.output)


def run_demonstration(arguments: argparse.Namespace) -> None:
    """Write the demonstration set."""
    from flare.evaluation.demonstration import SEED, write_demonstration

    seed = SEED if arguments.seed is None else arguments.seed
    for file in write_demonstration(arguments.output, seed=seed):
        _log.info("Wrote %s", file)
