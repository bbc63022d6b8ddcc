#!/usr/bin/env bash
# Counts with a kernel that GCC's AddressSanitizer and UndefinedBehaviorSanitizer watch: the
# drawn pairs of the tests, and hostile label maps.
#
# Usage: ./scripts/sanitize.sh [SLICES]
#
#   SLICES  of the hostile label maps, of 512 x 512 voxels each (default: 200, full size, which
#           takes 20 minutes of a processor; 20 take one and a half)
#
# Ends with an error at the first place that is touched outside of an array. PYTHON names the
# interpreter, with the extra dev (default: .venv/bin/python).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh

python=$(realpath -s "${PYTHON:-.venv/bin/python}")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
# A copy, so that no other run finds this kernel.
cp -R flare tests benchmarks pyproject.toml "$copy"
cd "$copy"
rm -f flare/evaluation/metrics/_kernel*
gcc -std=c11 -O2 -g -Wall -Wextra -Werror -ffp-contract=off -fno-omit-frame-pointer \
  -fsanitize=address,undefined -fno-sanitize-recover=all -shared -fPIC \
  -o flare/evaluation/metrics/_kernel.abi3.so flare/evaluation/metrics/kernel.c

# Python itself is not watched: its leaks do not count, and each of its arrays is malloc's.
watched() {
  env -u FLARE_PLAIN PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 PYTHONDONTWRITEBYTECODE=1 \
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so)" \
    "$python" "$@"
}

# -s: what the sanitizers say ends the process, and pytest would hold it back.
watched -m pytest -q -s -p no:randomly -p no:cacheprovider \
  tests/evaluation/metrics/test_kernel.py -k 'pairs_are_counted or is_unpacked or broken or missing'
watched - "${1:-200}" <<'END_OF_PYTHON'
import sys

sys.path.insert(0, "benchmarks")
import numpy as np
from cases import label_maps
from worst import KINDS, ORGANS, spheres

from flare.evaluation.metrics.distances import FEW
from flare.evaluation.metrics.kernel import kernel_problem
from flare.evaluation.metrics.pairs import MapPair, map_of

assert not kernel_problem(), kernel_problem()
shape, random = (int(sys.argv[1]), 512, 512), np.random.default_rng(2021)
reference, honest = label_maps(shape, ORGANS, random)
makers = {"honest": lambda *_: honest, "spheres": lambda *_: spheres(reference, 2)}
for kind, make in (makers | KINDS).items():
    prediction = make(shape, random).astype(np.uint8)
    moved = np.roll(prediction, (2, 5, 5), (0, 1, 2))
    for first, second in ((reference, prediction), (moved, prediction)):
        maps = map_of(first), map_of(second)
        pair = MapPair(reference=maps[0], prediction=maps[1], spacing=(2.5, 0.8, 0.8))
        for label in range(1, ORGANS + 1):
            # All that the kernel does for DSC, NSD and distances, without NumPy's part.
            organ = pair.cut((label,))
            organ.tally(2.0), organ.near(FEW), organ.surfels(0.0), organ.masks(organ.box[0])
    print(kind, flush=True)
END_OF_PYTHON
echo "Nothing was touched outside of an array."
