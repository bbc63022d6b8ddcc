#!/usr/bin/env bash
# Runs the tests. Those that need Docker or other data say why they are skipped.
#
# Usage: ./test.sh [PYTEST_ARGUMENT...]
#
# Makes a virtual environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
source scripts/venv.sh

install_into_venv requirements.txt dev
"$PYTHON" -m pytest "$@"
