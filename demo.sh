#!/usr/bin/env bash
# Evaluates the bundled example submission, ranks eleven teams whose results are made up,
# makes pages of both, and says what to look at.
#
# Usage: ./demo.sh
#
# Makes a virtual environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
source scripts/venv.sh

install_into_venv requirements.txt report
"$PYTHON" evaluate.py --input examples/predictions --ground-truth ground-truth \
  --output results/demo

printf '\nA ranking, of eleven teams whose results are made up:\n\n'
"$PYTHON" -m flare simulate --output results/demo-teams >/dev/null
ranking=$("$PYTHON" -m flare rank results/demo-teams --output results/demo-ranking)
# The table, up to the first empty line; report.txt has it all.
printf '%s\n' "${ranking%%$'\n\n'*}"

report() { "$PYTHON" -m flare report "$@" >/dev/null; }
report results/demo/metrics.json --output results/demo-participant.html
report results/demo/metrics.json --audience organiser --ground-truth ground-truth \
  --predictions examples/predictions --output results/demo-report
report results/demo-teams --audience organiser --output results/demo-ranking-report

cat <<'END'

Look at:
  results/demo-report/index.html           the scores, and a page of each case
  results/demo-participant.html            what a participant may see of them
  results/demo-ranking-report/index.html   the ranking, and a page of each team
  results/demo/metrics.json                what the platform reads of a submission
  results/demo-ranking/report.txt          the whole ranking, and how sure it is
  results/demo-ranking/sheets/team_08.md   what one team is told, and nobody else

END
"$PYTHON" -m flare --version
