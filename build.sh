#!/usr/bin/env bash
# Builds the evaluation image, with the reference labels inside.
#
# Usage: ./build.sh [--ground-truth FOLDER] [--challenge NAME|FILE.toml] [--decimals N]
#                   [--base IMAGE] [--no-pull]
#
#   --ground-truth  folder of your reference labels, and of tables or JSON of answers
#                   (default: ground-truth/)
#   --challenge     whose rules apply (default: flare21)
#   --decimals      of all numbers in metrics.json, for a phase that is public
#                   (default: those of [board] in the challenge file, else all)
#   --base          base image (default: the one in scripts/container/base-image.txt, pinned
#                   by its digest; scripts/renew-base.sh renews it)
#   --no-pull       take the base image that the engine has, and ask no registry for it
#
# The build fails if the challenge file, labels or answers have a mistake. FLARE_IMAGE names
# the image (default: flare-eval); FLARE_ENGINE is docker or podman (default: whichever is
# there). The image is for linux/amd64, also when built on a Mac.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh

fail() {
  echo "build.sh: $1" >&2
  exit 2
}

# A path as it was meant where the script was called.
path_of() {
  if [[ $1 == /* ]]; then echo "$1"; else echo "$called_from/$1"; fi
}

challenge=flare21
ground_truth=$PWD/ground-truth
decimals=
base=
pull=(--pull)
while [[ $# -gt 0 ]]; do
  case $1 in
    --challenge | --ground-truth | --decimals | --base) [[ $# -ge 2 ]] || fail "$1 needs a value; see ./build.sh --help" ;;
  esac
  case $1 in
    --challenge) challenge=$2 ;;
    --ground-truth) ground_truth=$(path_of "$2") ;;
    --decimals) decimals=$2 ;;
    --base) base=$2 ;;
    --no-pull) pull=(); shift; continue ;;
    *) fail "unknown argument $1; see ./build.sh --help" ;;
  esac
  shift 2
done
[[ $decimals =~ ^([0-9]|1[0-5])?$ ]] || fail "--decimals is $decimals, expected 0 to 15"
[[ -d $ground_truth ]] || fail "there is no folder $ground_truth"
source scripts/engine.sh
if [[ -z $base ]]; then
  base=$(cat scripts/container/base-image.txt)
  if [[ $base != *@sha256:* ]]; then
    echo "build.sh: the base image $base is not pinned by a digest; scripts/renew-base.sh pins it." >&2
  fi
fi

# The sources, these labels (links become files), and an organiser's own challenge file,
# which joins the bundled ones.
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp -R Dockerfile .dockerignore requirements.txt evaluate.py flare "$context"
cp -RL "$ground_truth" "$context/ground-truth"
if [[ $challenge == *.toml ]]; then
  file=$(path_of "$challenge")
  [[ -f $file ]] || fail "there is no file $file"
  if [[ -e flare/challenge/editions/$(basename "$file") ]]; then
    fail "$(basename "$file") has the name of a challenge that comes with the program; give it another one"
  fi
  cp "$file" "$context/flare/challenge/editions/"
  challenge=$(basename "$file" .toml)
fi

# Where no registry gives the base image, says how to use the one that the engine has.
name_own_base() {
  if [[ ${#pull[@]} == 0 ]] || "$ENGINE" pull "$base" >/dev/null 2>&1; then
    return
  fi
  local own
  for own in "$base" "${base%@*}"; do
    if "$ENGINE" image inspect "$own" >/dev/null 2>&1; then
      echo "build.sh: no registry gives the base image. To take the one that ${ENGINE##*/} has, add: --base $own --no-pull" >&2
      return
    fi
  done
}

commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
if [[ -n $(git status --porcelain --untracked-files=no 2>/dev/null) ]]; then
  commit=$commit-changed
fi
if ! "$ENGINE" build --force-rm --platform linux/amd64 --tag "$IMAGE" \
  ${pull[@]+"${pull[@]}"} --build-arg "BASE=$base" \
  --build-arg "CHALLENGE=$challenge" --build-arg "DECIMALS=$decimals" \
  --build-arg "COMMIT=$commit" "$context"; then
  echo "build.sh: $IMAGE was not built, and what was built before is unchanged. The reason is above, in the last step's output." >&2
  name_own_base
  exit 1
fi

# How many files there are that the arguments of find let pass.
count_files() {
  find "$context/ground-truth" -type f ! -name '.*' "$@" | wc -l | tr -d ' '
}
label_maps=(\( -iname '*.nii.gz' -o -iname '*.nii' -o -iname '*.mha' -o -iname '*.nrrd' \))
labels=$(count_files "${label_maps[@]}")
own=$(count_files "${label_maps[@]}" ! -name 'demo_[0-9][0-9][0-9].nii.gz')
answers=$(count_files \( -name '*.csv' -o -name '*.json' -o -name '*.jsonl' \))
contents="reference label maps: $labels"
if [[ $answers != 0 ]]; then
  contents+=", tables and JSON: $answers"
fi
echo
echo "Built $IMAGE: challenge $challenge, $contents."
# What the cases are called, in the words of check-references, which the build has run.
"$ENGINE" run --rm --network none --entrypoint cat "$IMAGE" references.txt 2>/dev/null \
  | grep -E '^(Cases: |If .* is no part of the name)' || true
if [[ $own == 0 && $answers == 0 ]]; then
  echo "These are the demonstration set. Give your own labels with --ground-truth before you upload."
fi
echo "Next: ./rehearse.sh FOLDER runs it as the platform would; ./export.sh writes the file to upload."
