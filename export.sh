#!/usr/bin/env bash
# Writes the built image, and its reference labels, to files for upload to
# grand-challenge.org.
#
# Usage: ./export.sh [--demonstration] [--renew-labels] [FOLDER]
#
#   --demonstration   export although the image holds only the demonstration set
#   --renew-labels    other bytes for the same labels, by the time in the header of gzip:
#                     the platform refuses a tarball that it has already
#
# FOLDER (default: that of this script; it is made if it is not there) gets IMAGE.tar.gz,
# here flare-eval.tar.gz, and IMAGE-ground-truth.tar.gz, which can be uploaded as a
# phase's ground truth instead.
# Each file is complete or not there at all. FLARE_IMAGE and FLARE_ENGINE are as in
# build.sh.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh

allowed=false
header=-n # of gzip: the same labels give the same bytes
folder=.
for argument in "$@"; do
  case $argument in
    --demonstration) allowed=true ;;
    --renew-labels) header=-N ;;
    -*) echo "export.sh: unknown argument $argument; see ./export.sh --help" >&2; exit 2 ;;
    /*) folder=$argument ;;
    *) folder=$called_from/$argument ;;
  esac
done
source scripts/engine.sh
image_file=$folder/$(basename "$IMAGE").tar.gz
labels_file=$folder/$(basename "$IMAGE")-ground-truth.tar.gz

# The platform takes one image with one tag; without a tag, all tags would be saved.
image=$IMAGE
if [[ ${image##*/} != *[:@]* ]]; then
  image=$image:latest
fi
if ! "$ENGINE" image inspect "$image" >/dev/null 2>&1; then
  echo "There is no image $image yet. Run ./build.sh first." >&2
  exit 1
fi
# What the image holds counts, not what lies here now.
container=$("$ENGINE" create "$image")
work=$(mktemp -d)
trap 'rm -rf "$work" "$image_file.part" "$labels_file.part"; "$ENGINE" rm "$container" >/dev/null' EXIT
"$ENGINE" cp "$container:/opt/app/ground-truth" - | tar -C "$work" -xf -
own=$(find "$work/ground-truth" -type f ! -name 'demo_[0-9][0-9][0-9].nii.gz' | head -n 1)
if [[ -z $own && $allowed == false ]]; then
  echo "$IMAGE holds only the demonstration set. Build with your labels (./build.sh --ground-truth FOLDER), or add --demonstration if the labels are uploaded as a tarball." >&2
  exit 1
fi

mkdir -p "$folder"
# The platform strips no leading folder from the labels.
tar -C "$work/ground-truth" -cf "$work/ground-truth.tar" .
gzip -c "$header" "$work/ground-truth.tar" >"$labels_file.part"
gzip -t "$labels_file.part"
"$ENGINE" save "$image" | gzip -6 >"$image_file.part"
gzip -t "$image_file.part"
manifest=$(tar -xOzf "$image_file.part" manifest.json | tr -d '[:space:]')
images=$(grep -o '"Config":' <<<"$manifest" | wc -l | tr -d ' ' || true)
tags=$(grep -o '"RepoTags":\["[^"]*"\]' <<<"$manifest" | wc -l | tr -d ' ' || true)
if [[ $images != 1 || $tags != 1 ]]; then
  echo "$ENGINE saved another number of images or tags than one, which the platform refuses. Set FLARE_IMAGE to the image's name and tag." >&2
  exit 1
fi
mv "$labels_file.part" "$labels_file"
mv "$image_file.part" "$image_file"

echo "Wrote $labels_file ($(du -h "$labels_file" | cut -f1))."
echo "Wrote $image_file ($(du -h "$image_file" | cut -f1))."
variable() {
  "$ENGINE" image inspect --format '{{range .Config.Env}}{{println .}}{{end}}' "$image" | sed -n "s/^$1=//p"
}
decimals=$(variable FLARE_DECIMALS)
if [[ -z $decimals ]]; then
  decimals=$("$ENGINE" run --rm --network none --entrypoint python "$image" -c \
    'import sys, flare; print(flare.read_challenge(sys.argv[1]).board.decimals)' "$(variable FLARE_CHALLENGE)")
fi
if [[ $decimals == None ]]; then
  echo "Its numbers have all their digits, which give away volumes of the references where a phase is public: build with --decimals 4 for such a one (docs/organisers/phase-settings.md)."
else
  echo "Its numbers are rounded to $decimals decimals."
fi
echo "Next: upload the image on your challenge's page, under Admin - Evaluation Methods - Add."
