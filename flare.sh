#!/usr/bin/env bash
# Runs a command of the program: check, measure, rank, simulate, leaderboard, challenge,
# rehearse and others; ./flare.sh -h lists them all.
#
# Usage: ./flare.sh COMMAND ...      and      ./flare.sh COMMAND -h
#
# The same as "python -m flare COMMAND" where everything is installed. Makes a virtual
# environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
if [[ ${1-} == --help || $# == 0 ]]; then
  set -- --help
  source scripts/help.sh
fi
source scripts/venv.sh

install_into_venv requirements.txt >&2
python=$(cd "$(dirname "$PYTHON")" && pwd)/python
root=$PWD
cd "$called_from"
# -P: nothing in the caller's folder stands in for a module.
PYTHONPATH=$root exec "$python" -P -m flare "$@"
