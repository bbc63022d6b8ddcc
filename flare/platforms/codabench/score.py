"""Scores a submission on Codabench; the site runs this file in /app/program.

It needs the standard library alone: the kit is run as a program, so that an end of it,
whatever the reason, becomes a sentence. It leaves scores.json, and a page, which alone
is sure to reach a participant.
"""

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
INPUT, OUTPUT = PROGRAM.parent / "input", PROGRAM.parent / "output"

PAGE = "detailed_results.html"

REFUSAL = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Not scored</title>
<h1>Your submission was not scored</h1>
<p>{}</p></html>
"""
"""The page of a submission without scores."""


class Failure(Exception):  # noqa: N818  an outcome, and no fault of this program
    """The sentence that a participant gets in place of scores."""


def score(settings: dict[str, Any], work: str) -> dict[str, float]:
    """Evaluate the submission, write its page, and return the scores of the board."""
    end = time.monotonic() + settings["time_limit_s"]
    words = [f"--challenge={settings['challenge']}", f"--ground-truth={INPUT / 'ref'}"]
    run_kit(end, "evaluate", f"--output={work}", *words)
    metrics = Path(work, "metrics.json")
    words = [f"--page={settings['page']}", f"--output={OUTPUT / PAGE}"]
    run_kit(end, "report", str(metrics), *words)
    content = json.loads(metrics.read_text(encoding="utf-8"))
    scores = {}
    for key, name, decimals, fewest_cases in settings["columns"]:
        value = content["aggregates"].get(name)
        # With NaN the site keeps no scores at all; a missing one is the best to it.
        values = [*content["case"].get(name.removesuffix("_mean"), {}).values()]
        if values and len(values) - values.count(None) < fewest_cases:
            continue  # the challenge leaves out all cases, or all that may be told
        if not (isinstance(value, int | float) and math.isfinite(value)):
            text = f"The evaluation has no number for {name}."
            raise Failure(f"{text} Please tell the organisers.")
        scores[key] = round(value, decimals)
    return scores


def run_kit(end: float, *words: str) -> None:
    """Run a command of the kit until it is done, or its time is over."""
    variables = {
        "PYTHONPATH": f"{PROGRAM}{os.pathsep}{PROGRAM / 'packages'}",
        "FLARE_INPUT": str(INPUT / "res"),  # by which the kit tells no more than scores
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "flare", *words],
        cwd=PROGRAM,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        log, errors = process.communicate(timeout=max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        line = "The evaluation was not done in its time. Please tell the organisers."
        raise Failure(line) from error
    if process.returncode:
        line = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        if "[X" in line:  # a fault: of the log, participants may see where it was
            print(log.decode("utf-8", "replace").rpartition("Traceback")[2])  # noqa: T201
        raise Failure(line or "The evaluation ended without a word.")


def main() -> int:
    """Score the submission; the result is the exit status."""
    settings = json.loads((PROGRAM / "settings.json").read_text(encoding="utf-8"))
    OUTPUT.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as work:
            scores = score(settings, work)
    except Failure as failure:
        page = REFUSAL.format(html.escape(str(failure)))
        (OUTPUT / PAGE).write_text(page, encoding="utf-8")
        print(failure, file=sys.stderr)  # noqa: T201
        return 1
    (OUTPUT / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
