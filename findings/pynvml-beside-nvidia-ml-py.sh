#!/usr/bin/env bash
# Packages: nvidia-ml-py 12.560.30 with pynvml 11.5.0 in the same environment.
#
# Both bring the module pynvml: NVIDIA's own as one file, the other one as a folder. pip
# installs both without a word, in either order, and Python takes the folder. What is
# imported then is the bindings of 2022, which have no nvmlDeviceGetComputeRunningProcesses_v2
# and say another version than `pip show nvidia-ml-py`.
#
# It matters where any other package of the environment asks for pynvml: a program that
# asks for nvidia-ml-py and calls what that has ends in an AttributeError.
#
# Usage: findings/pynvml-beside-nvidia-ml-py.sh
# Needs Python 3.11 or newer and a package index. Fails if the behaviour has changed.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

LOOK='
import importlib.metadata as metadata
import pynvml
print("installed: nvidia-ml-py", metadata.version("nvidia-ml-py"))
print("imported:", "a folder" if hasattr(pynvml, "__path__") else "a file")
has_call = hasattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v2")
print("nvmlDeviceGetComputeRunningProcesses_v2 is", "there" if has_call else "missing")
'

# look PACKAGE...: installs packages one after the other, and tells what is imported
look() {
  python3 -m venv --clear "$folder/venv"
  local package
  for package in "$@"; do
    "$folder/venv/bin/pip" --disable-pip-version-check install --quiet --no-deps "$package"
  done
  "$folder/venv/bin/python" -c "$LOOK"
}

alone=$(look nvidia-ml-py==12.560.30)
after=$(look nvidia-ml-py==12.560.30 pynvml==11.5.0)
before=$(look pynvml==11.5.0 nvidia-ml-py==12.560.30)
printf 'nvidia-ml-py alone:\n%s\n\npynvml installed after it:\n%s\n\nbefore it:\n%s\n' \
  "$alone" "$after" "$before"

[[ $alone == *"a file"*"_v2 is there"* ]]
[[ $after == *"a folder"*"_v2 is missing"* ]]
[[ $before == *"a folder"*"_v2 is missing"* ]]
