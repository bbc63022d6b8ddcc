#!/usr/bin/env bash
# Rehearses an evaluation: runs the built image on a submission as grand-challenge.org
# would, and shows what the platform would make of it.
#
# Usage: ./rehearse.sh [--phase NAME] [--ground-truth TAR.GZ|DIR] [--output DIR]
#                       [--phase-settings FILE] FOLDER|ZIP|TABLE.csv|JOBS_FOLDER
#
#   --phase         sanity, validation (the default), test or external
#   --ground-truth  the phase's tarball of references, if it has one
#   --output        a folder that gets metrics.json
#   --phase-settings  settings of your own, whose phases may have other names
#
# JOBS_FOLDER is an /input of an algorithm phase, with a predictions.json. Run ./build.sh
# first. FLARE_IMAGE and FLARE_ENGINE are as in build.sh. "./flare.sh rehearse -h"
# names all options.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/scripts/help.sh"
source "$here/scripts/engine.sh"

FLARE_IMAGE=$IMAGE FLARE_ENGINE=$ENGINE exec "$here/flare.sh" rehearse "$@"
