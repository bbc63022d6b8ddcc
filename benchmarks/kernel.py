"""Measures the counting of label maps beside a former checkout, such as a05c32a2's.

    python benchmarks/kernel.py FORMER_CHECKOUT [--shared FOLDER] [--rounds 5] [--plain]

The former checkout has a virtual environment of its own in .venv. Cases are scored by
both, by turns, in processes of their own; a line is printed for each case, with the
medians of processor time and the largest memory of a process, and the load. With
``--plain``, NumPy counts here, as where no kernel was compiled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nibabel as nib
import numpy as np
from cases import label_maps

HERE = Path(__file__).resolve().parent.parent

SCORE = """
import resource, statistics, sys, time
from pathlib import Path
from flare.challenge.reading import read_challenge
from flare.common.environment import reuse_freed_memory
from flare.evaluation.scoring.case import attempt_case
from flare.evaluation.submission.find import LabelMapFile
from flare.evaluation.submission.match import CasePair

reference, prediction, challenge = sys.argv[1:]
files = [LabelMapFile(case="c", path=Path(p), name="c") for p in sys.argv[1:3]]
pair = CasePair(case="c", reference=files[0], prediction=files[1])
rules, seconds = read_challenge(challenge), []
reuse_freed_memory()
for _ in range(9):
    start = time.process_time()
    assert attempt_case(pair, challenge=rules, check_only=False).score
    seconds.append(time.process_time() - start)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(statistics.median(seconds[2:]), memory)
"""

GENERATED = (
    ("512 x 512 x 100, 4 organs", (100, 512, 512), 4, "flare21"),
    ("512 x 512 x 300, 13 organs", (300, 512, 512), 13, "flare22"),
    ("512 x 512 x 900, 13 organs", (900, 512, 512), 13, "flare22"),
)


def write(files: list[str], shape: tuple[int, int, int], organs: int) -> None:
    """Write a reference and a prediction."""
    maps = label_maps(shape, organs, np.random.default_rng(1))
    for labels, file in zip(maps, files, strict=True):
        affine = np.diag([0.8, 0.8, 2.5, 1.0])
        nib.save(nib.Nifti1Image(labels.T, affine), file)


def score(checkout: Path, case: tuple[str, str, str]) -> tuple[float, int]:
    """Seconds of processor time for a case, and the largest memory in MB."""
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python), "-c", SCORE, *case]
    run = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=checkout
    )
    seconds, memory = run.stdout.split()
    return float(seconds), int(memory)


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("former", type=Path)
    parser.add_argument("--shared", type=Path, help="with flare21/ and flare22/")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
    arguments = parser.parse_args()
    os.environ["FLARE_PLAIN"] = "1" if arguments.plain else ""
    # As the program has it: threads that wait busily would count in the first seconds.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        cases = {}
        for name, shape, organs, challenge in GENERATED:
            files = [str(Path(folder) / f"{name} {n}.nii.gz") for n in (0, 1)]
            # A process inherits the largest memory of the one that starts it.
            with ProcessPoolExecutor(1) as pool:
                pool.submit(write, files, shape, organs).result()
            cases[name] = (*files, challenge)
        for challenge in ("flare21", "flare22") if arguments.shared else ():
            for file in sorted((arguments.shared / challenge / "reference").iterdir()):
                prediction = file.parent.parent / "predictions" / file.name
                cases[file.name] = (str(file), str(prediction), challenge)
        for name, case in cases.items():
            pairs = []
            for _ in range(arguments.rounds):
                pairs.append((score(arguments.former, case), score(HERE, case)))
            ratio = statistics.median(old[0] / new[0] for old, new in pairs)
            before, now = (max(pair[n][1] for pair in pairs) for n in (0, 1))
            milliseconds = 1000 * statistics.median(new[0] for _, new in pairs)
            text = (
                f"{name}: {ratio:.2f} (now {milliseconds:.1f} ms), {before} -> {now} MB"
            )
            sys.stdout.write(f"{text}, load {os.getloadavg()[0]:.1f}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
