#!/usr/bin/env bash
# Package: miseval 1.3.0, a class that is in neither of the two label maps.
#
# Its DSC is 1, and its IoU is 0, in the same call with the same arrays, though each of the
# two determines the other (DSC = 2 IoU / (1 + IoU)). Its distance (AHD) is 0, as of a
# perfect class.
#
# Why it matters: means of DSC and of IoU over cases that lack an organ cannot be turned
# into each other, and rank models differently.
#
# Usage: findings/miseval-absent-class.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check miseval==1.3.0

cat >"$work/score.py" <<'PYTHON'
import numpy as np
from miseval import evaluate

labels = np.zeros((6, 8, 10), np.uint8)
labels[1:3, 1:4, 1:4] = 1
for metric in ("DSC", "IoU", "AHD"):
    values = evaluate(labels, labels.copy(), metric=metric, multi_class=True, n_classes=3)
    print(metric, "background, class 1, class 2 (in neither):", *map(float, values))
PYTHON
said=$("$work/venv/bin/python" "$work/score.py" 2>/dev/null)
echo "$said"

grep -q "^DSC .*: 1.0 1.0 1.0$" <<<"$said"
grep -q "^IoU .*: 1.0 1.0 0.0$" <<<"$said"
grep -q "^AHD .*: 0.0 0.0 0.0$" <<<"$said"
