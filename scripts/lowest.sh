#!/usr/bin/env bash
# Runs the fast tests at the lower bounds of pyproject.toml, by Python 3.11.
#
# Usage: ./scripts/lowest.sh [PYTEST_ARGUMENT...]
#
# Run it before each release, and after each change of a bound. The oldest version that a
# bound allows is installed of all that the program itself uses, and the newest of what only
# tests use. Makes an environment in .venv-lowest, anew if the bounds have changed.
# FLARE_PYTHON names another interpreter. Needs PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh

venv=.venv-lowest
stamp=$venv/installed-$(cksum <pyproject.toml | tr -d ' ')
if [[ ! -e $stamp ]]; then
  rm -rf "$venv"
  "${FLARE_PYTHON:-python3.11}" -m venv "$venv"
  pip=("$venv/bin/python" -m pip --quiet --disable-pip-version-check)
  "${pip[@]}" install uv==0.13.9
  uv=("$venv/bin/uv" pip)
  "${uv[@]}" compile pyproject.toml --extra report --extra plots --extra cluster \
    --python "$venv/bin/python" --resolution lowest-direct --no-header --no-annotate \
    --quiet --output-file "$venv/lowest.txt"
  "${uv[@]}" install --python "$venv/bin/python" --quiet \
    --constraint "$venv/lowest.txt" --editable ".[dev]"
  touch "$stamp"
fi
cat "$venv/lowest.txt"
"$venv/bin/python" -m pytest --numprocesses auto --dist loadfile \
  -m "not slow and not browser and not docker and not shared and not docs" "$@"
