# shellcheck shell=bash
# Sourced by the scripts that need a container engine: sets ENGINE and IMAGE.
# FLARE_ENGINE chooses between docker and podman, FLARE_IMAGE names the image.

IMAGE="${FLARE_IMAGE:-flare-eval}"
ENGINE="${FLARE_ENGINE:-}"
# Anything else would be read as an option by the programs that it is handed to.
if [[ ! $IMAGE =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ ]]; then
  printf 'FLARE_IMAGE is %q, which is no name of an image, such as flare-eval:latest. Set it to one, or unset it.\n' "$IMAGE" >&2
  exit 2
fi
if [[ -z $ENGINE ]]; then
  ENGINE=$(command -v docker || command -v podman || true)
fi
if [[ -z $ENGINE ]]; then
  echo "Neither docker nor podman is installed. Install one of them." >&2
  exit 1
fi
if ! command -v "$ENGINE" >/dev/null; then
  echo "$ENGINE is not installed. Install it, or set FLARE_ENGINE to docker or podman." >&2
  exit 1
fi
if ! "$ENGINE" info >/dev/null 2>&1; then
  echo "$ENGINE is installed, but its engine does not answer. Start it (Docker Desktop, or: sudo systemctl start docker), or join its group (sudo usermod -aG docker \$USER, then log in again)." >&2
  exit 1
fi
export ENGINE IMAGE
