"""Writes summary.json in the shape of nnU-Net's, for organisers alone.

What is counted there tells the volumes of the references: no platform may show it. Read
by scripts for nnU-Net's files, it says what `nnUNetv2_evaluate_folder` would say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path

from flare.common.errors import InputError
from flare.common.files import write_whole
from flare.common.text import printable, safe
from flare.results.scores import CaseScore, OrganScore, Results

SUMMARY_JSON = "summary.json"

_Values = dict[str, float | None]

_KEYS = ("Dice", "IoU", "TP", "FP", "FN", "TN", "n_pred", "n_ref")


def prepare_summary(folder: str | Path | None, output: Path) -> Path | None:
    """The folder that is asked for, in full; others must not see it.

    Raises
    ------
    InputError
        If it is in the folder of the results, or a file.
    """
    if not folder:
        return None
    folder = Path(folder).absolute()
    problem = ""
    if folder.resolve().is_relative_to(output.resolve()):
        problem = f"it is in {safe(output)}, which others may see"
    elif folder.exists() and not folder.is_dir():
        problem = "it is not a folder"
    if problem:
        remedy = "Choose another folder with --nnunet-summary."
        raise InputError(f"{safe(folder)}: {problem}", remedy)
    return folder


def write_summary(results: Results, folder: Path) -> Path:
    """Write summary.json, whole or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    file = folder / SUMMARY_JSON
    text = json.dumps(summary_of(results), indent=4, sort_keys=True, allow_nan=False)
    write_whole(file, f"{text}\n")
    return file


def summary_of(results: Results) -> dict[str, object]:
    """The content of summary.json, with null where nnU-Net writes NaN.

    A case that could not be scored has Dice and IoU 0, and null for what was not
    counted; in nnU-Net's, there is no such case.
    """
    rules = results.provenance.rules
    labels = {
        organ.organ: str(rules[f"label of {organ.organ}"])
        for organ in results.cases[0].organs
    }
    cases = [
        {labels[organ.organ]: _metrics(organ, case) for organ in case.organs}
        for case in results.cases
    ]
    means: dict[str, _Values] = {
        label: {key: _mean(case[label][key] for case in cases) for key in _KEYS}
        for label in labels.values()
    }
    # As nnU-Net does: undefined if that of any label is.
    all_labels = {key: [mean[key] for mean in means.values()] for key in _KEYS}
    return {
        "foreground_mean": {
            key: None if None in values else _mean(values)
            for key, values in all_labels.items()
        },
        "mean": means,
        "metric_per_case": [
            {
                "metrics": metrics,
                "prediction_file": printable(case.prediction_file),
                "reference_file": printable(case.reference_file),
            }
            for case, metrics in zip(results.cases, cases, strict=True)
        ],
    }


def _metrics(organ: OrganScore, case: CaseScore) -> _Values:
    """What nnU-Net says of a label in a case."""
    if not organ.voxels:
        return {**dict.fromkeys(_KEYS), "Dice": 0.0, "IoU": 0.0}
    reference, prediction, both = organ.voxels
    either = reference + prediction - both
    return {
        "Dice": 2 * both / (reference + prediction) if either else None,
        "IoU": both / either if either else None,
        "TP": both,
        "FP": prediction - both,
        "FN": reference - both,
        "TN": case.map_voxels - either,
        "n_pred": prediction,
        "n_ref": reference,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is defined."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
