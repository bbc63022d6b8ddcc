#!/usr/bin/env bash
# Builds the evaluation image, with the labels in ground-truth/ inside.
#
# Usage: ./build.sh [--challenge NAME|FILE.toml] [--base IMAGE]
#
#   --challenge   whose rules apply (default: flare21)
#   --base        base image, for example with a digest (default: python:3.13-slim)
#
# FLARE_IMAGE names the image (default: flare-eval); FLARE_ENGINE is docker or podman
# (default: whichever is there). The image is for linux/amd64, also when built on a Mac.
set -euo pipefail
cd_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh

challenge=flare21
base=
while [[ $# -gt 0 ]]; do
  case $1 in
    --challenge | --base)
      [[ $# -ge 2 ]] || { echo "build.sh: $1 needs a value; see ./build.sh --help" >&2; exit 2; }
      if [[ $1 == --base ]]; then base=$2; else challenge=$2; fi
      shift 2
      ;;
    *) echo "build.sh: unknown argument $1; see ./build.sh --help" >&2; exit 2 ;;
  esac
done
source scripts/engine.sh

# An organiser's own challenge file joins the bundled ones, in a copy of the sources.
context=.
if [[ $challenge == *.toml ]]; then
  [[ $challenge == /* ]] || challenge=$cd_from/$challenge
  [[ -f $challenge ]] || { echo "build.sh: there is no file $challenge" >&2; exit 2; }
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  cp -R Dockerfile .dockerignore requirements.txt evaluate.py flare ground-truth "$context"
  cp "$challenge" "$context/flare/challenges/"
  challenge=$(basename "$challenge" .toml)
fi

commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
"$ENGINE" build --platform linux/amd64 --tag "$IMAGE" \
  ${base:+--build-arg "BASE=$base"} \
  --build-arg "CHALLENGE=$challenge" --build-arg "COMMIT=$commit" "$context"

labels=$(find ground-truth -name '*.nii.gz' | wc -l | tr -d ' ')
demonstration=$(find ground-truth -name 'demo_*.nii.gz' | wc -l | tr -d ' ')
echo
echo "Built $IMAGE: challenge $challenge, $labels reference label maps."
if [[ $labels == "$demonstration" ]]; then
  echo "These are the demonstration set. Put your own labels into ground-truth/ before you upload."
fi
echo "Next: ./export.sh writes the file to upload."
