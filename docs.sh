#!/usr/bin/env bash
# Builds the documentation site into results/site; a broken link is a failure.
#
# Usage: ./docs.sh          and      ./docs.sh serve
#
#   serve   shows it at http://127.0.0.1:8000 and follows changes, until Ctrl-C
#
# Makes a virtual environment in .venv-docs the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
FLARE_VENV="${FLARE_DOCS_VENV:-.venv-docs}"
source scripts/venv.sh

install_into_venv requirements.txt docs
# Its banner is an advertisement for another program.
export NO_MKDOCS_2_WARNING=true
if [[ ${1:-} == serve ]]; then
  exec "$PYTHON" -m mkdocs serve
fi
"$PYTHON" -m mkdocs build --quiet --strict
echo "Wrote results/site; open results/site/index.html"
