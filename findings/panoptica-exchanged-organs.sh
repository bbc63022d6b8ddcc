#!/usr/bin/env bash
# Package: panoptica 2.1.7, semantic label maps in which two organs are exchanged.
#
# A prediction that calls the liver kidney, and the kidney liver, scores 1 in everything:
# DSC of all, panoptic quality, DSC of instances. Without groups, labels of a semantic map
# serve only to tell instances apart; those that overlap are matched whatever they are
# called. To compare organs, each has to be a group of its own.
#
# Why it matters: the wrong numbers of labels are the most frequent cause of a DSC near 0
# in a challenge, and such a table does not show them.
#
# Usage: findings/panoptica-exchanged-organs.sh
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

reference = np.zeros((2, 6, 6), np.uint8)
reference[:, 1:4, 0:2] = 1
reference[:, 1:4, 4:6] = 2
exchanged = np.array([0, 2, 1], np.uint8)[reference]
evaluator = Panoptica_Evaluator(
    expected_input=InputType.SEMANTIC,
    instance_approximator=ConnectedComponentsInstanceApproximator(),
    instance_matcher=NaiveThresholdMatching(),
)
(result,) = evaluator.evaluate(exchanged, reference, verbose=False).values()
print("voxels with the right label:", int(np.sum((exchanged == reference) & (reference > 0))))
print("DSC of all:", result.global_bin_dsc)
print("panoptic quality:", result.pq, "DSC of instances:", result.sq_dsc)
PYTHON
said=$("$work/venv/bin/python" -W ignore "$work/score.py" 2>/dev/null)
echo "$said"

grep -qx "voxels with the right label: 0" <<<"$said"
grep -qx "DSC of all: 1.0" <<<"$said"
grep -qx "panoptic quality: 1.0 DSC of instances: 1.0" <<<"$said"
