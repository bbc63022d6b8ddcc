#!/usr/bin/env bash
# Writes requirements.txt, scripts/container/requirements-service.txt and
# flare/platforms/codabench/requirements.txt: the packages of requirements.in,
# requirements-service.in and requirements-codabench.in in scripts/container/, with the hashes
# of all their files on PyPI, so that pip installs these files and no others; of the last, with
# those of wheels alone that an image of Codabench takes.
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

# pinned SOURCE FORM: prints the packages of SOURCE in a form of uv, with the dependencies of
# every package: one that SOURCE lacks is added, and a test says so. Only PyPI is asked,
# whatever this computer's settings are.
pinned() {
  env -u UV_INDEX -u UV_EXTRA_INDEX_URL -u UV_FIND_LINKS "$work/bin/uv" pip compile \
    --no-config --cache-dir "$work/cache" --default-index https://pypi.org/simple \
    --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --quiet --format "$2" "$1"
}

# wheels: prints what is pinned in pylock.toml on its standard input, with the hashes of wheels
# for any computer, and for Linux on x86-64 from Python 3.11 on.
wheels() {
  "$python" -c '
import re, sys, tomllib
taken = re.compile(r"(none-any|-(cp31[1-9]-cp3\d+|abi3)-.*manylinux.*x86_64)\.whl$")
for package in tomllib.load(sys.stdin.buffer)["packages"]:
    wheels = [wheel for wheel in package["wheels"] if taken.search(wheel["url"])]
    hashes = sorted(wheel["hashes"]["sha256"] for wheel in wheels)
    print(package["name"], package["version"], sep="==", end="")
    print("", *hashes, sep=" \\\n    --hash=sha256:")
'
}

# lock SOURCE TARGET [FORM]: writes TARGET from SOURCE; from pylock.toml, its wheels alone.
lock() {
  cat >"$2.part" <<HEADER
# Written by scripts/lock.sh from $1: change that file, not this one.
# Install with: pip install --no-deps --require-hashes -r $2
HEADER
  if [ $# -gt 2 ]; then pinned "$1" "$3" | wheels; else pinned "$1" requirements.txt; fi >>"$2.part"
  mv "$2.part" "$2"
  packages=$(grep -c == "$2")
  hashes=$(grep -c -- --hash= "$2")
  echo "Wrote $2: $packages packages, $hashes hashes."
}

inputs=scripts/container
lock "$inputs/requirements.in" requirements.txt
lock "$inputs/requirements-service.in" "$inputs/requirements-service.txt"
lock "$inputs/requirements-codabench.in" "$bundled" pylock.toml
echo "Next: ./test.sh, then commit them together with what they were written from."
