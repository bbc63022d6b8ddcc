#!/usr/bin/env bash
# Runs a command of the program.
#
# Usage: ./flare.sh COMMAND ...      and      ./flare.sh COMMAND --help
#
# The same as "python -m flare COMMAND" where everything is installed. Makes a virtual
# environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
export FLARE_PROGRAM=$0 # messages name what can be typed
called_from=$PWD
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# == 0 || $1 == --help || $1 == -h ]]; then
  (set -- --help && source "$here/scripts/help.sh")
  for group in participants organisers everybody developers; do
    printf '\nFor %s:\n' "$group"
    # What a command does is the docstring of its file, its place the number in PLACE.
    awk -F '"' -v group="For $group" '
      FNR == 1 { sentence = $4 }
      /^PLACE = / && $2 == group {
        name = FILENAME
        gsub(/.*\/|\.py$/, "", name)
        gsub(/_/, "-", name)
        gsub(/[^0-9]/, "", $3)
        printf "%d\t  %-16s  %s\n", $3, name, sentence
      }' "$here"/flare/cli/commands/*.py | sort -n | cut -f 2-
  done
  exit
fi
cd "$here"
source scripts/venv.sh

install_into_venv requirements.txt report >&2
python=$(cd "$(dirname "$PYTHON")" && pwd)/python
cd "$called_from"
# -P: nothing in the caller's folder stands in for a module.
PYTHONPATH=$here exec "$python" -P -m flare "$@"
