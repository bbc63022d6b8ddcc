#!/usr/bin/env bash
# Makes the archives of four simulated teams, as teams of a challenge would send them; they
# know the CTs of `flare demonstration` alone.
#
# Usage: examples/teams/make.sh FOLDER
#
# Needs Docker. The images are removed from it again; TEAM.tar.gz are left, of about the
# size of the base image each (FLARE_BASE, default: python:3.13-slim).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/help.sh
source "$here/../../scripts/help.sh"

if [[ $# -ne 1 ]]; then
  echo "make.sh: give the folder for the archives; see $0 --help" >&2
  exit 2
fi
folder=$1
mkdir -p "$folder"
for team in careful hasty empty crash; do
  docker build --quiet --platform linux/amd64 --tag "$team:latest" \
    --build-arg "BASE=${FLARE_BASE:-python:3.13-slim}" --build-arg "TEAM=$team" "$here" > /dev/null
  # A plain tar file under this name is as good as a compressed one.
  docker save "$team:latest" --output "$folder/$team.tar.gz"
  docker image rm "$team:latest" > /dev/null
  echo "Wrote $folder/$team.tar.gz"
done
