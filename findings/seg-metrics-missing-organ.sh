#!/usr/bin/env bash
# Package: seg-metrics 1.2.8, an organ that the prediction does not have.
#
# Its DSC is 0, as one expects; but its 95th percentile of surface distances (hd95) and its
# mean surface distance (msd) are 0.0, the values of a perfect organ, and not infinite, not
# a number, or left out. The same holds for an organ that only the prediction has.
#
# Why it matters: a model that finds no pancreas in half of the cases has better mean
# distances than one that finds all, and tables made with it cannot be compared with ours,
# where a missing organ counts as the diagonal of the grid.
#
# Usage: findings/seg-metrics-missing-organ.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check seg-metrics==1.2.8

cat >"$work/score.py" <<'PYTHON'
import numpy as np
import seg_metrics.seg_metrics as sg

reference = np.zeros((6, 8, 10), np.uint8)
reference[1:3, 1:4, 1:4] = 1
reference[4, 5:7, 5:9] = 2
prediction = np.zeros_like(reference)
prediction[1:3, 1:4, 2:5] = 1
prediction[4, 0, 0] = 3
(values,) = sg.write_metrics(
    labels=[1, 2, 3],
    gdth_img=reference,
    pred_img=prediction,
    spacing=(1.0, 1.0, 1.0),
    metrics=["dice", "hd95", "msd"],
)
rows = zip(values["label"], values["dice"], values["hd95"], values["msd"])
for label, dice, hd95, msd in rows:
    print(f"label {label}: dice {dice:.3f} hd95 {hd95:.3f} msd {msd:.3f}")
PYTHON
said=$("$work/venv/bin/python" "$work/score.py" 2>/dev/null)
echo "$said"

grep -qx "label 1: dice 0.667 hd95 1.000 msd 0.333" <<<"$said"
grep -qx "label 2: dice 0.000 hd95 0.000 msd 0.000" <<<"$said" # the reference's alone
grep -qx "label 3: dice 0.000 hd95 0.000 msd 0.000" <<<"$said" # the prediction's alone
