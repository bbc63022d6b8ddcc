#!/usr/bin/env bash
# Writes requirements.txt: the packages of requirements.in, with the hashes of all their
# files on PyPI, so that pip installs these files and no others.
#
# Usage: ./scripts/lock.sh
#
# Run it after each change of requirements.in, and commit both. Needs Python 3.11 or newer,
# and PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
source scripts/venv.sh

work=$(mktemp -d)
trap 'rm -rf "$work" requirements.txt.part' EXIT
python=$(find_python)
"$python" -m venv "$work"
"$work/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

cat >requirements.txt.part <<'HEADER'
# Written by scripts/lock.sh from requirements.in: change that file, not this one.
# Install with: pip install --no-deps --require-hashes -r requirements.txt
HEADER
# With the dependencies of every package: one that requirements.in lacks is added, and a
# test says so. Only PyPI is asked, whatever this computer's settings are.
env -u UV_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS "$work/bin/uv" pip compile \
  --no-config --cache-dir "$work/cache" --default-index https://pypi.org/simple \
  --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --quiet requirements.in >>requirements.txt.part
mv requirements.txt.part requirements.txt

packages=$(grep -c == requirements.txt)
hashes=$(grep -c -- --hash= requirements.txt)
echo "Wrote requirements.txt: $packages packages, $hashes hashes."
echo "Next: ./test.sh, then commit it together with requirements.in."
