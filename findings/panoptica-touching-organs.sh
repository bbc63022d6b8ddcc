#!/usr/bin/env bash
# Package: panoptica 2.1.7, two organs that touch, as instances of a semantic label map.
#
# How many instances they are depends on the number of the array's axes. In 3D they are two,
# in 2D they are one: with no backend chosen, arrays of three axes are divided by cc3d, which
# keeps labels apart, and those of two axes by SciPy, which sees foreground alone. One slice
# of a volume thus has other instances as an array of 8 x 8 than as one of 1 x 8 x 8.
#
# Why it matters: qualities of slices and of volumes, or of two users who differ in one
# axis, are not the same measure.
#
# Usage: findings/panoptica-touching-organs.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check panoptica==2.1.7

cat >"$work/score.py" <<'PYTHON'
import numpy as np
from panoptica import (
    ConnectedComponentsInstanceApproximator,
    InputType,
    NaiveThresholdMatching,
    Panoptica_Evaluator,
)

for shape in ((8, 8), (1, 8, 8)):
    labels = np.zeros(shape, np.uint8)
    labels[..., 1:4, 1:3] = 1
    labels[..., 1:4, 3:5] = 2
    evaluator = Panoptica_Evaluator(
        expected_input=InputType.SEMANTIC,
        instance_approximator=ConnectedComponentsInstanceApproximator(),
        instance_matcher=NaiveThresholdMatching(),
    )
    (result,) = evaluator.evaluate(labels, labels.copy(), verbose=False).values()
    print("axes:", len(shape), "instances that match:", result.tp)
PYTHON
said=$("$work/venv/bin/python" -W ignore "$work/score.py" 2>/dev/null)
echo "$said"

grep -qx "axes: 2 instances that match: 1" <<<"$said"
grep -qx "axes: 3 instances that match: 2" <<<"$said"
