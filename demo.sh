#!/usr/bin/env bash
# Evaluates the bundled example submission, and prints a table of what came out.
#
# Usage: ./demo.sh
#
# Makes a virtual environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
source scripts/venv.sh

install_into_venv requirements.txt
"$PYTHON" evaluate.py --input examples/predictions --ground-truth ground-truth \
  --output results/demo
