#!/usr/bin/env bash
# Package: SimpleITK 2.5.7, LabelOverlapMeasuresImageFilter and a label in neither map.
#
# Its Dice coefficient is 0, the worst, and its volume similarity is 0, which is the best:
# the filter raises nothing, and writes a warning on stderr. So an organ that a CT does not
# show, and that was rightly not predicted, lowers a mean over labels.
#
# Why it matters: FLARE's scripts count such an organ as 1; a mean DSC by this filter is
# lower than the leaderboard's wherever organs are out of the field of view.
#
# Usage: findings/simpleitk-overlap-of-absent-labels.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check SimpleITK==2.5.7 numpy==2.4.6

cat >"$work/score.py" <<'PYTHON'
import numpy as np
import SimpleITK as sitk

labels = np.zeros((4, 6, 6), np.uint8)
labels[1:3, 1:4, 1:4] = 1
image = sitk.GetImageFromArray(labels)
overlap = sitk.LabelOverlapMeasuresImageFilter()
overlap.Execute(image, image)
for label in (1, 4):
    dice, similarity = overlap.GetDiceCoefficient(label), overlap.GetVolumeSimilarity(label)
    print(f"label {label}: dice {dice}, volume similarity {similarity}")
PYTHON
said=$("$work/venv/bin/python" "$work/score.py" 2>&1)
echo "$said"

grep -qx "label 1: dice 1.0, volume similarity 0.0" <<<"$said"
grep -qx "label 4: dice 0.0, volume similarity 0.0" <<<"$said"
grep -q "Label 4 not found" <<<"$said"
