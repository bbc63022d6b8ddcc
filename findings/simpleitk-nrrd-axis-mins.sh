#!/usr/bin/env bash
# Package: SimpleITK 2.5.7, reading NRRD files that name no space.
#
# Such a file may say where its axes begin and end ("axis mins", "axis maxs") and how far
# its samples lie apart ("spacings"). With mins and spacings, the first voxel's centre is
# put half a voxel behind the minimum, as samples are taken for cells. With mins and maxs
# alone, the spacing that follows from both is not used: it is 1; and yet the origin is
# moved by half of that spacing. So the file's grid is neither that of its axes nor one of
# 1 mm from the minimum on.
#
# Why it matters: labels from programs that write ends of axes lie elsewhere, or have
# another voxel size, than their authors think; distances are then in no unit at all.
#
# Usage: findings/simpleitk-nrrd-axis-mins.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check SimpleITK==2.5.7

cat >"$work/read.py" <<'PYTHON'
import sys
from pathlib import Path

import SimpleITK as sitk

BEGIN = "NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 5 6\nencoding: raw\n"
HEADERS = {
    "mins, spacings": "spacings: 2 3 4\naxis mins: 10 20 30\n",
    "mins, maxs": "axis mins: 10 20 30\naxis maxs: 18 35 54\n",  # 4 x 2, 5 x 3, 6 x 4
}
for name, header in HEADERS.items():
    file = Path(sys.argv[1]) / "map.nrrd"
    file.write_bytes(f"{BEGIN}{header}\n".encode() + bytes(4 * 5 * 6))
    image = sitk.ReadImage(str(file))
    print(f"{name}: spacing {image.GetSpacing()}, origin {image.GetOrigin()}")
PYTHON
said=$("$work/venv/bin/python" "$work/read.py" "$work")
echo "$said"

grep -qF "mins, spacings: spacing (2.0, 3.0, 4.0), origin (11.0, 21.5, 32.0)" <<<"$said"
grep -qF "mins, maxs: spacing (1.0, 1.0, 1.0), origin (11.0, 21.5, 32.0)" <<<"$said"
