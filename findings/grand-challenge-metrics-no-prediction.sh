#!/usr/bin/env bash
# Package: grand-challenge-metrics 0.6.0 (the new name of evalutils), an empty prediction.
#
# mean_contour_distance and modified_hausdorff_distance give a finite distance: that of the
# organ to a point outside of the array, before its first voxel. It may be smaller than that
# of an organ predicted at a wrong place; it is another one if both arrays are flipped; and
# with the two masks exchanged it is not a number, though both functions call themselves
# symmetric. All that is said is NumPy's warning of the mean of an empty slice, while
# hausdorff_distance of the same masks raises an error.
#
# Why it matters: these are the functions that Grand Challenge offers for evaluations. Who
# passes the reference first gets a plausible number for an organ that was not found, and
# a model does better by predicting nothing.
#
# Usage: findings/grand-challenge-metrics-no-prediction.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  grand-challenge-metrics==0.6.0 numpy==2.4.6 scipy==1.17.1

cat >"$work/score.py" <<'PYTHON'
import numpy as np
from grand_challenge_metrics.stats import (
    hausdorff_distance,
    mean_contour_distance,
    modified_hausdorff_distance,
)

SPACING = (5.0, 1.0, 1.0)
organ = np.zeros((20, 12, 12), np.uint8)
organ[2:5, 4:8, 4:8] = 1
empty = np.zeros_like(organ)
for name, masks in {
    "13 slices of 5 mm off": (organ, np.roll(organ, 13, axis=0)),
    "nothing predicted": (organ, empty),
    "nothing predicted, slices reversed": (organ[::-1], empty),
    "nothing predicted, masks exchanged": (empty, organ),
}.items():
    mean = mean_contour_distance(*masks, SPACING)
    modified = modified_hausdorff_distance(*masks, SPACING)
    print(f"{name}: mean {mean:.2f} mm, modified Hausdorff {modified:.2f} mm")
try:
    print("nothing predicted: Hausdorff", hausdorff_distance(organ, empty, SPACING))
except ValueError:
    print("nothing predicted: Hausdorff raises ValueError")
PYTHON
said=$("$work/venv/bin/python" -W ignore "$work/score.py")
echo "$said"

diff - <(echo "$said") <<'EXPECTED'
13 slices of 5 mm off: mean 60.00 mm, modified Hausdorff 60.00 mm
nothing predicted: mean 21.58 mm, modified Hausdorff 21.58 mm
nothing predicted, slices reversed: mean 85.37 mm, modified Hausdorff 85.37 mm
nothing predicted, masks exchanged: mean nan mm, modified Hausdorff nan mm
nothing predicted: Hausdorff raises ValueError
EXPECTED
