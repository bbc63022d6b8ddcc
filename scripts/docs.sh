#!/usr/bin/env bash
# Builds the documentation site into results/site; a broken link is a failure.
#
# Usage: scripts/docs.sh          and      scripts/docs.sh serve
#        scripts/docs.sh test [PYTEST_ARGUMENT...]
#
#   serve   shows it at http://127.0.0.1:8000 and follows changes, until Ctrl-C
#   test    tests it, also in a browser (chromium), if there is one; builds it elsewhere,
#           unless FLARE_SITE names the folder of a site that is to be tested
#
# Makes a virtual environment in .venv-docs the first time. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
FLARE_VENV="${FLARE_DOCS_VENV:-.venv-docs}"
source scripts/venv.sh

install_into_venv requirements.txt docs
# Its banner is an advertisement for another program.
export NO_MKDOCS_2_WARNING=true
case "${1:-}" in
  serve) exec "$PYTHON" -m mkdocs serve --config-file scripts/mkdocs.yml ;;
  test) exec "$PYTHON" -m pytest -m docs tests/project/test_site.py "${@:2}" ;;
  "") ;;
  *)
    echo "docs.sh knows serve and test, not $1; see scripts/docs.sh --help" >&2
    exit 2
    ;;
esac
if ! said=$("$PYTHON" -m mkdocs build --strict --config-file scripts/mkdocs.yml 2>&1); then
  grep -vE '^(INFO|Aborted) |^$' <<<"$said" >&2
  echo "The site was not built: see above." >&2
  exit 1
fi
echo "Wrote results/site; open results/site/index.html"
