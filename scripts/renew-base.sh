#!/usr/bin/env bash
# Renews base-image.txt, the base image of build.sh: asks the registry which image its tag
# means today, and writes the tag with that image's digest.
#
# Usage: ./scripts/renew-base.sh
#
# Run it for security updates of the base, before you build what you upload. FLARE_ENGINE
# is as in build.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
source scripts/engine.sh

trap 'rm -f base-image.txt.part' EXIT
old=$(cat base-image.txt)
tag=${old%%@*}
"$ENGINE" pull --platform linux/amd64 "$tag"
# The engine may know the image from other registries, too.
name=${tag##*/}
digest=$("$ENGINE" image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$tag" |
  sed -nE "s|^(.*/)?${name%:*}@(sha256:[0-9a-f]{64})\$|\\2|p" | head -n 1)
if [[ -z $digest ]]; then
  echo "renew-base.sh: $ENGINE knows no digest of $tag; base-image.txt is unchanged." >&2
  exit 1
fi
new=$tag@$digest
if [[ $new == "$old" ]]; then
  echo "base-image.txt is up to date: $new."
  exit
fi
echo "$new" >base-image.txt.part
mv base-image.txt.part base-image.txt
echo "Wrote base-image.txt: $new (before: $old)."
echo "Next: ./build.sh, ./rehearse.sh; then commit it."
