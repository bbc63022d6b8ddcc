#!/usr/bin/env bash
# Package: NumPy 2.4.6, np.negative into its own array, of every eighth number.
#
# A column of a table of eight float64 columns (or of four float32 ones) is not negated where
# the result is written over the operand: the column gets numbers that lie beside its first
# one, negated, as if it were a row. Nothing is raised. Other numbers of columns are right, and
# so are np.negative into another array, a multiplication by -1 in place, and NumPy 2.0.2. Seen
# from 2.1.0 to 2.4.6, on x86-64.
#
# Why it matters: who ranks turns columns round where higher is better. With eight metrics, a
# team got values of other metrics and cases, and ranks were wrong, with all tests of fewer
# metrics green. Values are multiplied by -1 here.
#
# Usage: findings/numpy-negative-in-place.sh
# Needs Python 3.11 or newer, and PyPI.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check numpy==2.4.6

cat >"$work/turn.py" <<'PYTHON'
import numpy as np

for width in (7, 8, 9):
    table = np.arange(40.0 * width).reshape(40, width) + 1
    column, right = table[:, 0], -table[:, 0]
    np.negative(column, out=column)
    print(f"{width} columns, in place:", np.array_equal(column, right))
table = np.arange(320.0).reshape(40, 8) + 1
column, right = table[:, 0], -table[:, 0]
print("into another array:", np.array_equal(np.negative(column), right))
column *= -1
print("multiplied in place:", np.array_equal(column, right))
PYTHON
said=$("$work/venv/bin/python" "$work/turn.py")
echo "$said"

diff - <(echo "$said") <<'EXPECTED'
7 columns, in place: True
8 columns, in place: False
9 columns, in place: True
into another array: True
multiplied in place: True
EXPECTED
