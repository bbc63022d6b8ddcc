"""The record of a case: what counts of its runs, doubts, and files that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from flare.challenge.formats import SUFFIXES, suffix_of
from flare.challenge.rules import MaxMemory
from flare.common.files import write_whole
from flare.common.text import printable
from flare.measuring.container import ContainerRun
from flare.measuring.host import is_busy
from flare.results.efficiency_csv import CaseRecord, RunStatus
from flare.results.team_folder import PREDICTIONS
from flare.results.traces_csv import TRACES, Trace, area, max_memory_mb, write_trace

FASTER_S = 0.5


FASTER_SHARE = 0.2
"""A repeat that is faster than the first run by this time, and by this share of it, was
helped by something that the first run has left."""


CLOSE_TO_PEAK = 0.9
"""A maximum by the 2 % rule below this part of the peak is doubtful."""

LOGS = "logs"


def counted_run(runs: Sequence[ContainerRun]) -> ContainerRun:
    """The repeat whose values count.

    That with the median running time; of two in the middle, the slower. But the first
    one, if later ones were much faster: something may have been kept for them.
    """
    if is_helped(runs):
        return runs[0]
    ordered = sorted(runs, key=lambda run: run.runtime_s)
    return ordered[len(ordered) // 2]


def is_helped(runs: Sequence[ContainerRun]) -> bool:
    """Whether a repeat was much faster than the first run."""
    first_s = runs[0].runtime_s
    gain_s = first_s - min(run.runtime_s for run in runs)
    return gain_s > FASTER_S and gain_s > FASTER_SHARE * first_s


def record_of(
    case: str,
    runs: Sequence[ContainerRun],
    *,
    rule: MaxMemory,
    cpus: int,
    own_cpus: int = 0,
    rerun: str = "",
) -> CaseRecord:
    """The row of a case of which every repeat has worked.

    All values are those of one repeat, see `counted_run`.

    Parameters
    ----------
    case : str
        Its name.
    runs : sequence of ContainerRun
        All repeats; at least one.
    rule : MaxMemory
        The challenge's.
    cpus : int
        Of the computer.
    own_cpus : int
        Those that no other container had; 0 if there was no other.
    rerun : str
        Why it was run again.
    """
    run = counted_run(runs)
    trace = run.trace
    memory = trace.gpu_memory_mb
    maximum, _ = _max_memory(trace, rule)
    maxima = [_max_memory(r.trace, rule)[0] for r in runs]
    cpu = [sample.cpu_s for sample in trace.samples if sample.cpu_s is not None]
    host = [s.host_memory_mb for s in trace.samples if s.host_memory_mb is not None]
    return CaseRecord(
        case=case,
        status=RunStatus.OK,
        runtime_s=run.runtime_s,
        max_gpu_memory_mb=maximum,
        peak_gpu_memory_mb=_peak(trace),
        idle_gpu_memory_mb=trace.idle_mb,
        gpu_memory_area_mb_s=area(memory) if memory else None,
        cpu_area_percent_s=100 * max(cpu) / cpus if cpu else None,
        cpu_s=max(cpu, default=None),
        max_host_memory_mb=max(host, default=None),
        engine_runtime_s=run.ended.runtime_s,
        runtime_s_spread=_spread([r.runtime_s for r in runs]),
        max_gpu_memory_mb_spread=_spread(maxima),
        repeats=len(runs),
        samples=len(trace.samples),
        mean_interval_s=trace.mean_interval_s,
        longest_gap_s=trace.longest_gap_s,
        doubts="; ".join(_doubts(runs, rule, own_cpus or cpus)),
        rerun=rerun,
    )


def _doubts(runs: Sequence[ContainerRun], rule: MaxMemory, cpus: int) -> Iterator[str]:
    run = counted_run(runs)
    yield from run.trace.doubts
    maximum, is_defined = _max_memory(run.trace, rule)
    if not is_defined:
        yield "no value of the memory is stable: the plain maximum is taken"
    peak = _peak(run.trace)
    if peak and maximum is not None and maximum < CLOSE_TO_PEAK * peak:
        yield f"the stable memory is far below its peak of {peak:.0f} MB"
    if is_helped(runs):
        fastest_s = min(r.runtime_s for r in runs)
        yield (
            f"a repeat took {fastest_s:.2f} s, and the first run {run.runtime_s:.2f} s,"
            " which counts: was something kept in between?"
        )
    if is_busy(run.other_cpu_s, run.runtime_s, cpus):
        yield f"other programs took {run.other_cpu_s:.1f} s of the processors meanwhile"


def _peak(trace: Trace) -> float | None:
    """The plain maximum; None where no GPU was sampled."""
    return max((mb for _, mb in trace.gpu_memory_mb), default=None)


def _max_memory(trace: Trace, rule: MaxMemory) -> tuple[float | None, bool]:
    """The maximum by a rule; None where no GPU was sampled."""
    values = [mb for _, mb in trace.gpu_memory_mb]
    return max_memory_mb(values, rule) if values else (None, True)


def _spread(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if len(known) > 1 else None


def keep_runs(folder: Path, case: str, runs: Sequence[ContainerRun]) -> None:
    """Write the log of the last run of a case, and the trace of the one that counts.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    if runs:
        write_whole(folder / LOGS / f"{case}.log", log_text(runs[-1].log))
        write_trace(counted_run(runs).trace, folder / TRACES / f"{case}.csv")


def keep_prediction(folder: Path, case: str, files: Sequence[Path]) -> None:
    """Move what a case has predicted to its place, where nothing older stays.

    Parameters
    ----------
    folder : Path
        Of the team.
    case : str
        Its name.
    files : sequence of Path
        The label map, on the same file system; none of a run that has failed.
    """
    predictions = folder / PREDICTIONS
    for suffix in SUFFIXES:
        (predictions / f"{case}{suffix}").unlink(missing_ok=True)
    for file in files:
        predictions.mkdir(exist_ok=True)
        file.replace(predictions / f"{case}{suffix_of(file.name)}")


def log_text(log: bytes) -> str:
    """What a container has written, without anything that a terminal would obey."""
    text = log.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        return ""
    return "".join(
        f"{printable(line.expandtabs())}\n"
        for line in text.removesuffix("\n").split("\n")
    )
