#!/usr/bin/env bash
# Writes the built image to a file for upload to grand-challenge.org.
#
# Usage: ./export.sh [--demonstration] [FILE.tar.gz]
#
#   --demonstration   export although ground-truth/ holds only the demonstration set
#
# The file (default: IMAGE.tar.gz, here flare-eval.tar.gz) is complete or not there at
# all. FLARE_IMAGE and FLARE_ENGINE are as in build.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
source scripts/help.sh

allowed=false
file=
for argument in "$@"; do
  case $argument in
    --demonstration) allowed=true ;;
    -*) echo "export.sh: unknown argument $argument; see ./export.sh --help" >&2; exit 2 ;;
    *) file=$argument ;;
  esac
done
source scripts/engine.sh
file=${file:-$(basename "$IMAGE").tar.gz}

if ! "$ENGINE" image inspect "$IMAGE" >/dev/null 2>&1; then
  echo "There is no image $IMAGE yet. Run ./build.sh first." >&2
  exit 1
fi
# What the image holds counts, not what lies here now.
part=$file.part
container=$("$ENGINE" create "$IMAGE")
trap 'rm -f "$part"; "$ENGINE" rm "$container" >/dev/null' EXIT
labels=$("$ENGINE" cp "$container:/opt/app/ground-truth" - | tar -tf -)
if [[ $allowed == false ]] && ! grep -qv -e '/$' -e '/demo_[^/]*$' <<<"$labels"; then
  echo "$IMAGE holds only the demonstration set. Build with your labels (./build.sh --ground-truth FOLDER), or add --demonstration if the labels are uploaded as a tarball." >&2
  exit 1
fi

"$ENGINE" save "$IMAGE" | gzip -6 >"$part"
gzip -t "$part"
mv "$part" "$file"

echo "Wrote $file ($(du -h "$file" | cut -f1))."
echo "Next: upload it on your challenge's page, under Admin - Evaluation Methods - Add."
