#!/usr/bin/env bash
# Writes requirements.txt and requirements-service.txt: the packages of requirements.in and
# requirements-service.in, with the hashes of all their files on PyPI, so that pip installs
# these files and no others.
#
# Usage: ./scripts/lock.sh
#
# Run it after each change of one of the two, and commit all. Needs Python 3.11 or newer,
# and PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
source scripts/venv.sh

work=$(mktemp -d)
trap 'rm -rf "$work" requirements.txt.part requirements-service.txt.part' EXIT
python=$(find_python)
"$python" -m venv "$work"
"$work/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

# lock NAME: writes NAME.txt from NAME.in, with the dependencies of every package: one that
# NAME.in lacks is added, and a test says so. Only PyPI is asked, whatever this computer's
# settings are.
lock() {
  cat >"$1.txt.part" <<HEADER
# Written by scripts/lock.sh from $1.in: change that file, not this one.
# Install with: pip install --no-deps --require-hashes -r $1.txt
HEADER
  env -u UV_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS "$work/bin/uv" pip compile \
    --no-config --cache-dir "$work/cache" --default-index https://pypi.org/simple \
    --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --quiet "$1.in" >>"$1.txt.part"
  mv "$1.txt.part" "$1.txt"
  packages=$(grep -c == "$1.txt")
  hashes=$(grep -c -- --hash= "$1.txt")
  echo "Wrote $1.txt: $packages packages, $hashes hashes."
}

lock requirements
lock requirements-service
echo "Next: ./test.sh, then commit them together with what they were written from."
