"""CPU seconds of evaluating a table of 100,000 probabilities; run by each version.

``PYTHON benchmarks/answers.py``, of the environments of two versions in turn.
"""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

from flare.challenge.answers import AnswerRules
from flare.challenge.rules import Challenge
from flare.evaluation.evaluate import evaluate

ROWS = 100_000


def main() -> None:
    """Write both tables, evaluate them, and print the CPU seconds."""
    generator = random.Random(1)
    metrics = ("accuracy", "auroc", "auprc", "f1")
    rules = AnswerRules(name="task", kind="binary", file="x.csv", metrics=metrics)
    challenge = Challenge(key="a", name="A", checksum="0" * 64, answers=(rules,))
    with tempfile.TemporaryDirectory() as name:
        folders = Path(name, "predictions"), Path(name, "references")
        for folder, column in zip(folders, ("prediction", "gt"), strict=True):
            lines = [f"name,{column}"]
            for number in range(ROWS):
                value = generator.random()
                answer = f"{value:.6f}" if column == "prediction" else round(value)
                lines.append(f"case_{number:06}.nii.gz,{answer}")
            folder.mkdir()
            (folder / "x.csv").write_text("\n".join(lines), encoding="utf-8")
        start = time.process_time()
        evaluate(*folders, challenge=challenge)
        print(f"{time.process_time() - start:.2f}")


if __name__ == "__main__":
    main()
