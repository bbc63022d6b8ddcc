#!/usr/bin/env bash
# Rehearses an evaluation: runs the built image on a submission as grand-challenge.org
# would, and shows what the platform would make of it.
#
# Usage: ./rehearse.sh [--phase NAME] [--ground-truth TAR.GZ|DIR] FOLDER|ZIP|JOBS_FOLDER
#
#   --phase         sanity, validation (the default) or test, of phase-settings.json
#   --ground-truth  the phase's tarball of reference labels, if it has one
#   --output        a folder that gets metrics.json
#
# JOBS_FOLDER is an /input of an algorithm phase, with a predictions.json. Run ./build.sh
# first. FLARE_IMAGE and FLARE_ENGINE are as in build.sh. All other options are in
# "python -m flare rehearse --help".
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh
source scripts/engine.sh
source scripts/venv.sh

install_into_venv --no-deps -r requirements.txt >&2
root=$PWD
cd "$called_from"
PYTHONPATH=$root FLARE_IMAGE=$IMAGE FLARE_ENGINE=$ENGINE \
  "$(cd "$root" && cd "$(dirname "$PYTHON")" && pwd)/python" -m flare rehearse "$@"
