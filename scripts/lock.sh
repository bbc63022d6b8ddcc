#!/usr/bin/env bash
# Writes requirements.txt, scripts/container/requirements-service.txt and
# flare/platforms/codabench/requirements.txt: the packages of requirements.in,
# requirements-service.in and requirements-codabench.in in scripts/container/, with the hashes
# of all their files on PyPI, so that pip installs these files and no others.
#
# Usage: ./scripts/lock.sh
#
# Run it after each change of one of the three, and commit all. Needs Python 3.11 or newer,
# and PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
source scripts/venv.sh

work=$(mktemp -d)
bundled=flare/platforms/codabench/requirements.txt
trap 'rm -rf "$work" requirements.txt.part scripts/container/requirements-service.txt.part "$bundled.part"' EXIT
python=$(find_python)
"$python" -m venv "$work"
"$work/bin/python" -m pip install --quiet --disable-pip-version-check uv==0.13.9

# lock SOURCE TARGET: writes TARGET from SOURCE, with the dependencies of every package: one
# that SOURCE lacks is added, and a test says so. Only PyPI is asked, whatever this computer's
# settings are.
lock() {
  cat >"$2.part" <<HEADER
# Written by scripts/lock.sh from $1: change that file, not this one.
# Install with: pip install --no-deps --require-hashes -r $2
HEADER
  env -u UV_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS "$work/bin/uv" pip compile \
    --no-config --cache-dir "$work/cache" --default-index https://pypi.org/simple \
    --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --quiet "$1" >>"$2.part"
  mv "$2.part" "$2"
  packages=$(grep -c == "$2")
  hashes=$(grep -c -- --hash= "$2")
  echo "Wrote $2: $packages packages, $hashes hashes."
}

inputs=scripts/container
lock "$inputs/requirements.in" requirements.txt
lock "$inputs/requirements-service.in" "$inputs/requirements-service.txt"
lock "$inputs/requirements-codabench.in" "$bundled"
echo "Next: ./test.sh, then commit them together with what they were written from."
