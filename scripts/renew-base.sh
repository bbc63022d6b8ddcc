#!/usr/bin/env bash
# Renews the images that builds begin with, which are pinned by digests: asks the registry
# which image each tag means today, and writes the tag with that image's digest.
#
# Usage: ./scripts/renew-base.sh
#
# The base of both images is in base-image.txt, and Docker's command line, of the container
# of `flare serve`, in Dockerfile.service, both in scripts/container/. Run it for security updates, before you build
# what you upload. FLARE_ENGINE is as in build.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh
source scripts/engine.sh

trap 'rm -f scripts/container/*.part' EXIT

# Writes today's digest behind a tag, wherever a file has that image.
renew() { # FILE OLD
  local tag=${2%%@*} name digest new
  "$ENGINE" pull --platform linux/amd64 "$tag"
  # The engine may know the image from other registries, too.
  name=${tag##*/}
  digest=$("$ENGINE" image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$tag" |
    sed -nE "s|^(.*/)?${name%:*}@(sha256:[0-9a-f]{64})\$|\\2|p" | head -n 1)
  if [[ -z $digest ]]; then
    echo "renew-base.sh: $ENGINE knows no digest of $tag; $1 is unchanged." >&2
    exit 1
  fi
  new=$tag@$digest
  if [[ $new == "$2" ]]; then
    echo "$1 is up to date: $new."
    return
  fi
  sed "s|$2|$new|" "$1" >"$1.part"
  mv "$1.part" "$1"
  echo "Wrote $1: $new (before: $2)."
}

base=scripts/container/base-image.txt
service=scripts/container/Dockerfile.service
renew "$base" "$(cat "$base")"
renew "$service" "$(sed -n 's/^ARG CLI=//p' "$service")"
echo "Next: ./build.sh, ./rehearse.sh; then commit what has changed."
