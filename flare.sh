#!/usr/bin/env bash
# Runs a command of the program.
#
# Usage: ./flare.sh COMMAND ...      and      ./flare.sh COMMAND --help
#
# For participants:
#   check             Say what the evaluation would refuse.
#   evaluate          Score a folder of predictions; writes metrics.json.
#
# For organisers:
#   challenge         List, show and validate challenge files.
#   check-references  Read a challenge file and all reference labels.
#   rehearse          Run the built image on a submission as the platform would.
#   phase-settings    Print the settings of three phases of the platform.
#   leaderboard       Rank several metrics.json as the platform would.
#   download          Get the metrics.json of a phase's teams off the platform.
#   measure           Run teams' images, and measure time and GPU memory.
#   serve             Measure submissions as they come, and answer them.
#   score             Score all teams' predictions, each case only once.
#   rescore           Score kept predictions anew, when rules or labels changed.
#   rank              Rank teams by FLARE's rule, on each case and metric.
#   simulate          Make up results, to try out a ranking on.
#
# For everybody:
#   report            Make a page of results, for a browser.
#   explain           Say what the code of a message means, and what helps.
#
# For developers:
#   demonstration     Write the demonstration set, which is synthetic.
#
# The same as "python -m flare COMMAND" where everything is installed. Makes a virtual
# environment in .venv the first time. Needs Python 3.11 or newer.
set -euo pipefail
export FLARE_PROGRAM=$0 # messages name what can be typed
called_from=$PWD
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ $# == 0 || $1 == --help || $1 == -h ]]; then
  set -- --help
  source "$here/scripts/help.sh"
fi
cd "$here"
source scripts/venv.sh

install_into_venv requirements.txt report >&2
python=$(cd "$(dirname "$PYTHON")" && pwd)/python
cd "$called_from"
# -P: nothing in the caller's folder stands in for a module.
PYTHONPATH=$here exec "$python" -P -m flare "$@"
