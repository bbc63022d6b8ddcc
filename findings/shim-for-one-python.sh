#!/usr/bin/env bash
# sagemaker-shim 0.8.3, the program by which grand-challenge.org runs containers, asks for
# Python 3.12 exactly. On Python 3.11, `pip install sagemaker-shim` ends with status 0 all
# the same: pip goes back to the newest release that allows 3.11, which is 0.2.4. Python
# 3.13, for which there is no release at all, gets an error.
#
# Why it matters: who runs the shim on 3.11 to foresee what the platform will say of a zip
# or of an exit status tests a program that the platform left long ago, and nothing says
# so. Pin the version: then pip says that it needs another Python.
#
# Usage: findings/shim-for-one-python.sh; PYTHON=... names a Python 3.11.
set -euo pipefail

PYTHON="${PYTHON:-python3.11}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
  || { echo "$0: PYTHON has to be a Python 3.11" >&2; exit 2; }
"$PYTHON" -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check --quiet)

"${pip[@]}" install --no-deps sagemaker-shim
version="$("$folder/venv/bin/python" -c \
  'from importlib.metadata import version; print(version("sagemaker-shim"))')"
echo "$("$PYTHON" --version): pip install sagemaker-shim gives $version, with status 0"

status=0
"${pip[@]}" download --no-deps --dest "$folder" sagemaker-shim==0.8.3 \
  >"$folder/log" 2>&1 || status=$?
grep -m 1 'Requires-Python' "$folder/log" | cut -c 1-200 || true
echo "pip download sagemaker-shim==0.8.3 ends with status $status"

[ "$version" = 0.2.4 ] && [ "$status" != 0 ]
