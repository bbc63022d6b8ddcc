# shellcheck shell=bash
# Sourced by demo.sh and test.sh: makes a virtual environment, once, and sets PYTHON.
#
# FLARE_PYTHON names the interpreter to use (3.11 or newer), FLARE_VENV the folder.

VENV="${FLARE_VENV:-.venv}"

find_python() {
  local candidate
  for candidate in "${FLARE_PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    if [[ -n $candidate ]] && "$candidate" -c \
      'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  echo "No Python 3.11 or newer was found. Install it, for example with: sudo apt install python3 python3-venv" >&2
  return 1
}

# install_into_venv REQUIREMENTS [EXTRA]: installs a file of requirements with hashes, then
# this checkout with an extra of pyproject.toml, unless the same was installed before
install_into_venv() {
  local stamp
  stamp="$VENV/installed-$(cat "$1" pyproject.toml flare/evaluation/metrics/kernel.c \
    <(echo "$@") | cksum | tr -d ' ')"
  local pip=("$VENV/bin/python" -m pip --disable-pip-version-check --quiet)
  if ! "${pip[@]}" --version >/dev/null 2>&1; then
    rm -rf "$VENV"
    local python
    python=$(find_python) || return 1
    local problem
    if ! problem=$("$python" -m venv "$VENV" 2>&1); then
      rm -rf "$VENV"
      if [[ $problem == *ensurepip* || $problem == *"No module named"* ]]; then
        problem="Install its venv module, for example with: sudo apt install python3-venv"
      fi
      echo "$python cannot make a virtual environment in $VENV. ${problem##*$'\n'}" >&2
      return 1
    fi
  fi
  if [[ ! -e $stamp ]]; then
    echo "Installing what is needed into $VENV, once ..."
    # Python compiles what it imports, which is a tenth of what there is.
    "${pip[@]}" install --no-compile --no-deps --require-hashes -r "$1"
    if [[ $# -gt 1 ]]; then
      # pip takes no -e together with hashes; -c: the extra changes none of the versions.
      "${pip[@]}" install --no-compile -c scripts/container/requirements.in -e ".[$2]"
    fi
    touch "$stamp"
  fi
}

export PYTHON="$VENV/bin/python"
