#!/usr/bin/env bash
# Runs the tests, on all CPUs; a minute or two on two.
#
# Usage: ./test.sh [--all] [PYTEST_ARGUMENT...]
#
#   --all   also those that are slow, and those that need Docker, Chromium, label maps that
#           lie beside the project, or what builds the documentation (scripts/docs.sh test runs
#           them); what is not there is skipped, and said
#
# Makes a virtual environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
source scripts/venv.sh

chosen=(-m "not slow and not browser and not docker and not shared and not docs")
if [[ ${1:-} == --all ]]; then
  chosen=()
  shift
fi
install_into_venv requirements.txt dev
# What is compiled is kept: otherwise each of many processes compiles the program anew, and
# pytest all tests, which takes a sixth of the whole time.
unset PYTHONDONTWRITEBYTECODE
# One process runs all tests of a file, which share what is slow to make.
"$PYTHON" -m pytest --numprocesses auto --dist loadfile \
  ${chosen[@]+"${chosen[@]}"} "$@"
