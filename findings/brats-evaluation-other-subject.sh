#!/usr/bin/env bash
# Package: BraTS-evaluation 0.0.10 (brats-evaluate), a subject that has no prediction.
#
# A prediction is looked for by the end of its name. Where the identifiers have four and five
# digits, both of which the program names as its own forms, that of 12345-000 also ends as that
# of 2345-000 does. If subject 2345-000 has no prediction, it is scored with the one of subject
# 12345-000: no warning, nothing in the list of missing subjects, and a perfect Dice if the
# masks agree. A missing subject that is the end of no other name is listed, and has no score.
#
# Why it matters: a case that a method failed on gets a score instead of being named, and the
# mean over cases says nothing of it.
#
# Usage: findings/brats-evaluation-other-subject.sh
# Needs Python 3.11 or newer, PyPI, and 1 GB for the packages.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  BraTS-evaluation==0.0.10 panoptica==2.1.7 numpy==2.2.6 nibabel==5.4.2

cat >"$work/write.py" <<'PYTHON'
from pathlib import Path

import nibabel as nib
import numpy as np

labels = np.zeros((30, 30, 16), np.uint8)
labels[5:12, 5:12, 4:9] = 2
labels[18:24, 18:24, 8:12] = 3
for folder, subjects in {
    "reference": ("12345-000", "2345-000", "6789-000"),
    "prediction": ("12345-000",),
}.items():
    Path(folder).mkdir()
    for subject in subjects:
        nib.save(nib.Nifti1Image(labels, np.eye(4)), f"{folder}/{subject}.nii.gz")
PYTHON
cd "$work"
venv/bin/python write.py
venv/bin/brats-evaluate --config gli --ref_path reference --pred_path prediction \
  --summary_json summary.json >log 2>&1
said=$(venv/bin/python - <<'PYTHON'
import json

summary = json.load(open("summary.json"))
for subject in summary["metrics"]:
    dice = subject["wt"]["global_bin_dsc"]
    print(subject["subject_name"], "was scored: Dice of the whole tumour", dice)
print("missing:", *summary["missings"])
PYTHON
)
echo "$said"
echo "warnings that name 2345-000: $(grep -c "Warning.* 2345-000" log || true)"

diff - <(echo "$said") <<'EXPECTED'
12345-000.nii.gz was scored: Dice of the whole tumour 1.0
2345-000.nii.gz was scored: Dice of the whole tumour 1.0
missing: 6789-000.nii.gz
EXPECTED
if grep -q "Warning.* 2345-000" log; then exit 1; fi
