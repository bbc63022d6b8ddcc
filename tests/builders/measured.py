"""A team's folder, as measuring leaves it, with traces."""

import json

from flare.challenge.reading import read_challenge, scoring_rules
from flare.results.efficiency_csv import CaseRecord, RunStatus, write_records
from flare.results.traces_csv import Sample, Trace, write_trace
from tests.builders.pages import metrics_content, write_json

MEASUREMENT = {
    "settings": {"timeout_s": 3600.0, "memory": "28g", "gpu": "0"},
    "sessions": [
        {
            "gpu": {"name": "NVIDIA A100", "driver": "570"},
            "engine": {"version": "Docker 27.1"},
            "engine_cost_s": {"smallest": 0.25, "largest": 0.5},
        }
    ],
}


def write_measured(
    folder, cases, *, failed=None, scores=None, doubts="", off=0.0, traced=None
):
    """A team whose case n took 10 + n seconds, and at most 1000 + 100 n MB of GPU.

    Parameters: `failed` has statuses and messages by case; `scores` are DSC by organ,
    for a metrics.json; `off` is added to all that was measured; `traced` are the cases
    with a trace, all if not given.
    """
    failed = failed or {}
    records = []
    for number, case in enumerate(cases):
        if case in failed:
            status, message = failed[case]
            records.append(
                CaseRecord(case=case, status=RunStatus(status), message=message)
            )
            continue
        seconds, peak = 10 + number + off, 1000 + 100 * number + off
        records.append(
            CaseRecord(
                case=case,
                status=RunStatus.OK,
                runtime_s=seconds,
                max_gpu_memory_mb=peak,
                peak_gpu_memory_mb=peak,
                max_host_memory_mb=500 + off,
                samples=100,
                doubts=doubts,
            )
        )
        if traced is None or case in traced:
            samples = tuple(
                Sample(
                    seconds=round(n * seconds / 100, 3),
                    gpu_memory_mb=peak if n == 70 else 200 + off,
                    host_memory_mb=500 + off - n % 3,
                )
                for n in range(101)
            )
            trace = Trace(samples=samples, interval_s=0.1, runtime_s=seconds)
            write_trace(trace, folder / "traces" / f"{case}.csv")
    folder.mkdir(parents=True, exist_ok=True)
    write_records(records, folder / "efficiency.csv")
    (folder / "measurement.json").write_text(json.dumps(MEASUREMENT))
    if scores:
        reasons = {case: ": ".join(failure) for case, failure in failed.items()}
        content = metrics_content(scores, reasons, cases)
        content["evaluation"]["rules"] = scoring_rules(read_challenge("flare21"))
        for case in failed:
            content["case"]["alg_fname"][str(list(cases).index(case))] = ""
        write_json(folder / "metrics.json", content)
    return folder
