"""Scores a submission on Codabench; the site runs this file in /app/program.

It needs the standard library alone: the kit is run as a program, so that an end of it,
whatever the reason, becomes a sentence. It leaves scores.json, and
detailed_results.html, which alone is sure to reach a participant.
"""

from __future__ import annotations

import html
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent
APP = PROGRAM.parent
SETTINGS = "settings.json"
PAGE = "detailed_results.html"


class Failure(Exception):  # noqa: N818  it is an outcome, not an error of the program
    """A submission gets no scores; the text is for its participant."""


def main() -> int:
    """Score the submission; the result is the exit status."""
    settings = json.loads((PROGRAM / SETTINGS).read_text(encoding="utf-8"))
    output = APP / "output"
    output.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            scores = score(settings, Path(folder), output / PAGE)
        except Failure as failure:
            (output / PAGE).write_text(page_of(str(failure)), encoding="utf-8")
            print(failure, file=sys.stderr)  # noqa: T201
            return 1
    (output / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return 0


def score(settings: dict[str, Any], work: Path, page: Path) -> dict[str, float]:
    """Evaluate the submission, write its page, and return the scores of the columns."""
    end = time.monotonic() + settings["time_limit_s"]
    challenge = settings["challenge"]
    if (PROGRAM / challenge).is_file():
        challenge = str(PROGRAM / challenge)
    run_kit(
        end,
        "evaluate",
        f"--challenge={challenge}",
        f"--output={work}",
        f"--ground-truth={APP / 'input' / 'ref'}",
    )
    metrics = work / "metrics.json"
    run_kit(end, "report", str(metrics), f"--output={page}")
    aggregates = json.loads(metrics.read_text(encoding="utf-8"))["aggregates"]
    scores = {}
    for column in settings["columns"]:
        value = aggregates.get(column["value"])
        # The site takes Infinity for no JSON, and a score that is missing for the best.
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise Failure(
                f"The evaluation has no number for {column['value']}; the organisers"
                " have to look into it."
            )
        scores[column["key"]] = round(value, column["decimals"])
    return scores


def run_kit(end: float, *words: str) -> None:
    """Run a command of the kit until it is done, or its time is over."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PROGRAM}{os.pathsep}{PROGRAM / 'packages'}",
        # In an image, nobody is told more than the scores.
        "FLARE_INPUT": str(APP / "input" / "res"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "flare", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        log, errors = process.communicate(timeout=max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise Failure(
            "The evaluation was not done in the time that it has, and was stopped."
            " Please tell the organisers."
        ) from error
    if process.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        line = lines[-1] if lines else "The evaluation ended without a word"
        if not lines or "[X" in line:
            print(log.decode("utf-8", "replace"))  # noqa: T201  for the organisers
        raise Failure(line)


def page_of(line: str) -> str:
    """The page of a submission without scores."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        "<title>Not scored</title><h1>Your submission was not scored</h1>"
        f"<p>{html.escape(line)}</p></html>\n"
    )


if __name__ == "__main__":
    raise SystemExit(main())
