#!/usr/bin/env bash
# Evaluates the bundled example submission, ranks eleven teams whose results are made up,
# and says what to look at.
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

printf '\nA ranking, of eleven teams whose results are made up:\n\n'
"$PYTHON" -m flare simulate --output results/demo-teams >/dev/null
ranking=$("$PYTHON" -m flare rank results/demo-teams --output results/demo-ranking)
# The table, up to the first empty line; report.txt has it all.
printf '%s\n' "${ranking%%$'\n\n'*}"

cat <<'END'

Look at:
  results/demo/metrics.json                what the platform reads of a submission
  results/demo-ranking/report.txt          the whole ranking, and how sure it is
  results/demo-ranking/sheets/team_08.md   what one team is told, and nobody else
END
