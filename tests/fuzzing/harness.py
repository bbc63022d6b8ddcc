"""Tries inputs that follow from their numbers, and counts what becomes of them.

    python -m tests.fuzzing.label_maps --seconds 600 [--seed 7] [--only NUMBER]

Whatever is tried has an outcome, or raises: then it is a finding, told by the number of
its input, which `--only` tries again.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import mock

Attempt = Callable[[random.Random, Path], str]
"""Tries what chance makes, in an empty folder; the result is the outcome."""

INPUT_SECONDS = 30
"""An input takes too long after this."""

MEMORY_BYTES = 3 * 2**30


class SlowError(Exception):
    """An input took too long."""


def _too_slow(*_: object) -> None:
    raise SlowError


def fuzz(
    attempt: Attempt, seed: int, *, seconds: float = 1e9, runs: int = 10**9, start=0
) -> tuple[Counter[str], dict[str, int]]:
    """Try inputs: how many had which outcome, and by its text, each first finding."""
    outcomes, findings = Counter[str](), {}
    end = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _too_slow)
    with (
        tempfile.TemporaryDirectory() as top,
        mock.patch.dict(os.environ, FLARE_COMMIT="fuzzed"),  # or git would be asked
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Duplicate name")
        number = start
        while time.monotonic() < end and outcomes.total() < runs:
            work = Path(top) / "work"
            work.mkdir()
            signal.alarm(INPUT_SECONDS)
            try:
                outcomes[attempt(random.Random(f"{seed} {number}"), work)] += 1
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                where = traceback.extract_tb(error.__traceback__)
                ours = [f for f in where if "/flare/" in f.filename] or where
                place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
                outcomes["FINDING"] += 1
                text = f"{type(error).__name__} in {place}: {error}"[:200]
                findings.setdefault(ascii(text), number)
            finally:
                signal.alarm(0)
            with suppress(RecursionError):
                shutil.rmtree(work, ignore_errors=True)
            if work.exists():  # deeper than Python can go
                subprocess.run(["rm", "-rf", work], check=True)
            number += 1
    return outcomes, findings


def main(attempt: Attempt, description: str) -> None:
    """Fuzz for a while, and say what came out."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    more = {} if options.only is None else {"start": options.only, "runs": 1}
    outcomes, findings = fuzz(attempt, options.seed, seconds=options.seconds, **more)
    print(f"seed {options.seed}: {outcomes.total()} inputs")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9}  {outcome}")
    for text, number in findings.items():
        print(f"--only {number}: {text}")
    raise SystemExit(bool(findings))
