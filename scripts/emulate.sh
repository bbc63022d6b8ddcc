#!/usr/bin/env bash
# Counts with a kernel of other architectures, which an emulator runs: the drawn pairs of the
# tests have to have the voxels and surfels that NumPy counts here.
#
# Usage: ./scripts/emulate.sh [ARCHITECTURE...]
#
#   ARCHITECTURE  what Debian's compilers and QEMU's emulators call it (default: s390x, which
#                 has the highest byte first, and aarch64); about a minute for each
#
# Needs, for these two: sudo apt install qemu-user gcc-s390x-linux-gnu libc6-dev-s390x-cross
# gcc-aarch64-linux-gnu libc6-dev-arm64-cross. PYTHON names the interpreter, with the extra
# dev (default: .venv/bin/python).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/help.sh

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A pair is its shape, a label, the rows of the ball, and the voxels of both maps.
cat >"$folder/count.c" <<'END_OF_C'
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernel.c"

static void *need(void *memory)
{
    if (!memory) exit(3);
    return memory;
}

/* Reads and packs a map, which has to be the same when it is unpacked. */
static Map packed(int64_t rows, int64_t height, int64_t width, Box *boxes)
{
    const int64_t room = rows * items_of_voxels(width), size = rows * width;
    uint8_t *voxels = need(malloc((size_t)size)), *again = need(malloc((size_t)size));
    Map map = {.boxes = boxes, .item_room = room, .row_room = rows, .height = height, .width = width};
    map.items = need(malloc((size_t)room * sizeof *map.items));
    map.starts = need(calloc((size_t)rows + 1, sizeof *map.starts));
    if (fread(voxels, 1, (size_t)size, stdin) != (size_t)size) exit(4);
    if (pack_rows(&map, voxels, rows)) exit(5);
    if (unpack_rows(&map, 0, rows, again) || memcmp(voxels, again, (size_t)size)) exit(6);
    return map;
}

int main(void)
{
    static Box boxes[CODES];
    int64_t depth, height, width, size;
    int label;
    while (scanf("%" SCNd64 "%" SCNd64 "%" SCNd64 "%d%" SCNd64, &depth, &height, &width,
                 &label, &size) == 5) {
        BallRow *ball = need(calloc((size_t)size + 1, sizeof *ball));
        int64_t voxels[3], counts[3][CODES];
        for (int64_t i = 0; i < size; i++)
            if (scanf("%" SCNd32 "%" SCNd32 "%" SCNd32, &ball[i].z, &ball[i].y,
                      &ball[i].half_width) != 3) exit(4);
        getchar(); /* the end of the line */
        uint8_t is_organ[CODES] = {0};
        is_organ[label] = 1;
        for (int axis = 0; axis < 3; axis++)
            boxes[label].from[axis] = INT64_MAX, boxes[label].to[axis] = 0;
        const Map first = packed(depth * height, height, width, boxes);
        const Map second = packed(depth * height, height, width, boxes);
        const Box *box = &boxes[label]; /* around the label in both */
        const int64_t words = words_needed(box, ball, size, NULL);
        Word *memory = need(malloc((size_t)words * sizeof *memory));
        if (compare_labels(&first, &second, is_organ, 0, box, ball, size, memory, words, voxels,
                           counts, NULL, NULL)) exit(7);
        for (int i = 0; i < CODES; i++) counts[0][i] += counts[1][i]; /* of both maps */
        for (int i = 0; i < 3; i++) printf("%" PRId64 " ", voxels[i]);
        for (int i = 0; i < 2 * CODES; i++) printf("%" PRId64 " ", counts[i / CODES * 2][i % CODES]);
        puts("");
    }
    return 0;
}
END_OF_C

"${PYTHON:-.venv/bin/python}" - "$folder" <<'END_OF_PYTHON'
import sys
from pathlib import Path

import numpy as np

from flare.evaluation.metrics.arrays import box_around
from flare.evaluation.metrics.plain import PlainMap, PlainPair
from tests.evaluation.metrics.drawn import PAIRS, draw


def plain_map(labels):
    label_map = PlainMap(labels.shape)
    label_map.add(labels.reshape(-1))
    return label_map


folder = Path(sys.argv[1])
with (folder / "pairs").open("wb") as pairs, (folder / "numpy").open("w") as counts:
    for number in range(PAIRS):
        *masks, spacing, tolerance = draw(number)
        label = number % 255 + 1
        voxels = [np.where(mask, label, number % 4).astype(np.uint8) for mask in masks]
        maps = [plain_map(labels) for labels in voxels]
        box = box_around(*(label_map.box((label,)) for label_map in maps))
        pair = PlainPair(tuple(maps), (label,), spacing, box)
        rows = np.array(pair.ball(tolerance), dtype=int).reshape(-1, 3)
        head = [*voxels[0].shape, label, len(rows), *rows.ravel()]
        pairs.write(" ".join(map(str, head)).encode() + b"\n")
        pairs.write(b"".join(labels.tobytes() for labels in voxels))
        tally = pair.tally(tolerance)
        values = [*tally.voxels, *tally.surfels.tolist(), *tally.beyond.tolist()]
        counts.write("".join(f"{value} " for value in values) + "\n")
END_OF_PYTHON

(($#)) || set -- s390x aarch64
for name in "$@"; do
  "$name-linux-gnu-gcc" -std=c11 -O3 -ffp-contract=off -Wall -Wextra -Werror -static \
    -I flare/evaluation/metrics -o "$folder/count" "$folder/count.c"
  emulator=$(command -v "qemu-$name" "qemu-$name-static" | head -1)
  "$emulator" "$folder/count" <"$folder/pairs" >"$folder/kernel"
  cmp "$folder/numpy" "$folder/kernel"
  echo "$name: $(wc -l <"$folder/kernel") pairs are counted as by NumPy."
done
