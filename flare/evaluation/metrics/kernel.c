/* Counts the voxels and surfels of labels in packed label maps: DSC, NSD and distances of
 * surfaces are made of these numbers. plain.py says the same in NumPy, and more slowly.
 *
 * A label map is packed row by row while it is read, and never held otherwise. A surface
 * is found and widened in bits, 64 corners of the grid at a time.
 *
 * Plain C11: no byte order, word size or instruction set is assumed. Nothing is allocated
 * here: every array is the caller's and comes with its length, and whatever a map holds,
 * no place outside of them is touched. Nothing is global, so threads may call at once.
 */
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef uint64_t Word; /* 64 corners of a row, or 64 voxels: the first in the lowest bit */

enum { VERSION = 193781712, BITS = 64, CODES = 256, PAIRS = 4096, X_BITS = 24 };

/* What kernel.py asks for first: with a kernel of another version, the plain way is taken. A
 * test computes it from this file, so that no old kernel is called by a newer kernel.py. */
API int kernel_version(void) { return VERSION; }

/* --- Packed label maps --------------------------------------------------------------
 * Row r has the items starts[r] to starts[r + 1]. Each is a label and the place from which
 * on the row has it: label << 24 | x. A row of nothing but background has none, as most
 * have. One that would need as many items as hold its voxels is stored as its voxels, so no
 * map takes more than they do.
 */
typedef struct { /* where a label is; the end is the first place without it */
    int64_t from[3], to[3]; /* along z, y, x */
} Box;

typedef struct {
    uint32_t *items, *starts;
    Box *boxes;                   /* of each label but 0 */
    int64_t item_room, row_room;  /* how many items fit, and rows */
    int64_t item_count, row_count; /* how many there are */
    int64_t height, width;        /* rows of a slice, voxels of a row */
} Map;

static int64_t absolute(int64_t number) { return number < 0 ? -number : number; }

static int64_t items_of_voxels(int64_t width) { return (width + 3) / 4; }

/* The items of a row; -1 if the map does not have them. */
static int64_t items_of_row(const Map *map, int64_t row)
{
    if (row < 0 || row >= map->row_count) return -1;
    const uint32_t start = map->starts[row], end = map->starts[row + 1];
    if (start > end || end > map->item_count) return -1;
    return end - start > items_of_voxels(map->width) ? -1 : (int64_t)(end - start);
}

/* Where the run of an item begins, and where it ends: the next one begins there. */
static int64_t start_of(uint32_t item) { return item & (((uint32_t)1 << X_BITS) - 1); }

static int64_t end_of(const uint32_t *items, int64_t i, int64_t count, int64_t width)
{
    const int64_t end = i + 1 < count ? start_of(items[i + 1]) : width;
    return end < width ? end : width;
}

/* The place of the lowest bit of a word that has any. */
static int lowest(Word bits)
{
#ifdef __GNUC__
    return __builtin_ctzll(bits);
#else
    int place = 0;
    while (!(bits >> place & 1)) place++;
    return place;
#endif
}

/* Eight voxels as a word, the first in the lowest byte. */
static Word eight(const uint8_t *v)
{
    return (Word)v[0] | (Word)v[1] << 8 | (Word)v[2] << 16 | (Word)v[3] << 24 | (Word)v[4] << 32
        | (Word)v[5] << 40 | (Word)v[6] << 48 | (Word)v[7] << 56;
}

/* The first of the voxels from one place to another that has not a label. */
static int64_t end_of_label(const uint8_t *voxels, int64_t at, int64_t end, uint8_t label)
{
    const Word even = label * (Word)0x0101010101010101u;
    for (; at + 32 <= end; at += 32) {
        Word differences[4];
        for (int i = 0; i < 4; i++) differences[i] = eight(voxels + at + 8 * i) ^ even;
        if (!(differences[0] | differences[1] | differences[2] | differences[3])) continue;
        int i = 0;
        while (!differences[i]) i++;
        return at + 8 * i + lowest(differences[i]) / 8;
    }
    while (at < end && voxels[at] == label) at++;
    return at;
}

/* The end of the run of equal voxels that one of `size` voxels lies in. */
static int64_t end_of_run(const uint8_t *voxels, int64_t at, int64_t size)
{
    const int64_t step = 1024, few = at + step < size ? at + step : size;
    const uint8_t label = voxels[at];
    at = end_of_label(voxels, at + 1, few, label);
    if (at < few) return at;
    /* Of many, this is quicker. */
    while (at + step <= size && !memcmp(voxels + at - step, voxels + at, (size_t)step)) at += step;
    return end_of_label(voxels, at, size, label);
}

static void enlarge(Box *box, int64_t z, int64_t y, int64_t x, int64_t end)
{
    const int64_t from[3] = {z, y, x}, to[3] = {z + 1, y + 1, end};
    for (int axis = 0; axis < 3; axis++) {
        if (from[axis] < box->from[axis]) box->from[axis] = from[axis];
        if (to[axis] > box->to[axis]) box->to[axis] = to[axis];
    }
}

/* Pack the next rows of a map from their voxels; the boxes of labels grow. Returns 0, or -1 if
 * they may have no room. */
API int pack_rows(Map *map, const uint8_t *voxels, int64_t rows)
{
    const int64_t width = map->width, height = map->height, most = items_of_voxels(width);
    if (width < 1 || width >> X_BITS || height < 1 || rows < 0 || rows > map->row_room - map->row_count
        || map->item_count > UINT32_MAX - rows * most || rows * most > map->item_room - map->item_count) return -1;
    uint32_t *starts = map->starts + map->row_count;
    int64_t run = 0, r = 0; /* a run ends here; one of the background may go through many rows */
    while (r < rows) {
        const int64_t first = r * width;
        if (run <= first) run = end_of_run(voxels, first, rows * width);
        if (!voxels[first] && run - first >= width) {
            const uint32_t same = starts[r];
            for (const int64_t end = run / width; r < end; r++) starts[r + 1] = same;
            continue;
        }
        const int64_t z = (map->row_count + r) / height, y = (map->row_count + r) % height;
        uint32_t *const into = map->items + starts[r];
        int64_t count = 0, end;
        for (int64_t x = 0; x < width; x = end, count++) {
            const uint8_t label = voxels[first + x];
            /* Of a row that is stored as its voxels, nobody asks for runs. */
            if (run <= first + x) run = count < most ? end_of_run(voxels, first + x, rows * width) : first + x + 1;
            end = run - first < width ? run - first : width;
            if (count < most) into[count] = (uint32_t)label << X_BITS | (uint32_t)x;
            if (count >= most || label) enlarge(&map->boxes[label], z, y, x, end);
        }
        if (count >= most) memcpy(into, voxels + first, (size_t)width), count = most;
        starts[r + 1] = starts[r] + (uint32_t)count;
        r++;
    }
    map->row_count += rows, map->item_count = starts[rows];
    return 0;
}

/* The voxels of some rows of a map. Returns 0, or -1 if the map is broken. */
API int unpack_rows(const Map *map, int64_t row, int64_t rows, uint8_t *voxels)
{
    const int64_t width = map->width;
    for (; rows > 0; rows--, row++, voxels += width) {
        const int64_t count = items_of_row(map, row);
        if (count < 0) return -1;
        const uint32_t *items = map->items + map->starts[row];
        if (!count) memset(voxels, 0, (size_t)width);
        if (count == items_of_voxels(width)) {
            memcpy(voxels, items, (size_t)width);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t from = start_of(items[i]), to = end_of(items, i, count, width);
            if (from < to) memset(voxels + from, (int)(items[i] >> X_BITS), (size_t)(to - from));
        }
    }
    return 0;
}

/* --- Rows of bits ------------------------------------------------------------------- */

static void set_bits(Word *bits, int64_t from, int64_t to)
{
    const int64_t first = from / BITS, last = (to - 1) / BITS;
    const Word head = ~(Word)0 << (from % BITS), tail = ~(Word)0 >> (BITS - 1 - (to - 1) % BITS);
    if (first == last) {
        bits[first] |= head & tail;
        return;
    }
    bits[first] |= head;
    for (int64_t word = first + 1; word < last; word++) bits[word] = ~(Word)0;
    bits[last] |= tail;
}

static int64_t count_bits(Word bits)
{
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int64_t)(bits * 0x0101010101010101u >> 56);
}

/* Set the bits of an organ's labels in one row of a map, from the box's first x on. Returns
 * how many voxels these are, or -1 if the map is broken. */
static int64_t unpack_bits(const Map *map, int64_t row, const uint8_t is_organ[CODES],
                           const Box *box, Word *bits)
{
    int64_t voxels_set = 0;
    const int64_t width = map->width, count = items_of_row(map, row);
    const int64_t first = box->from[2], end = box->to[2];
    if (count < 0) return -1;
    const uint32_t *items = map->items + map->starts[row];
    if (count == items_of_voxels(width)) {
        const uint8_t *voxels = (const uint8_t *)items;
        for (int64_t x = first; x < end; x++) {
            const int is_set = is_organ[voxels[x]];
            bits[(x - first) / BITS] |= (Word)is_set << ((x - first) % BITS);
            voxels_set += is_set;
        }
        return voxels_set;
    }
    for (int64_t i = 0; i < count && start_of(items[i]) < end; i++) {
        if (!is_organ[items[i] >> X_BITS]) continue;
        int64_t from = start_of(items[i]), to = end_of(items, i, count, width);
        if (from < first) from = first;
        if (to > end) to = end;
        if (from < to) set_bits(bits, from - first, to - first), voxels_set += to - from;
    }
    return voxels_set;
}

/* The bits of a row moved by some places, towards higher places if `up`; word w of them. */
static Word moved(const Word *row, int64_t words, int64_t w, int64_t by, int up)
{
    const int64_t near = up ? w - by / BITS : w + by / BITS, far = up ? near - 1 : near + 1;
    const int shift = (int)(by % BITS);
    const Word here = near >= 0 && near < words ? row[near] : 0;
    const Word there = far >= 0 && far < words ? row[far] : 0;
    if (!shift) return here;
    return up ? here << shift | there >> (BITS - shift) : here >> shift | there << (BITS - shift);
}

/* Word w of a row whose bits are widened by some places on both sides, less than a word. A step
 * longer than the reach plus one would leave gaps. */
static Word widened(const Word *row, int64_t words, int64_t w, int64_t places)
{
    Word up = row[w], down = row[w];
    Word before = w ? row[w - 1] : 0, behind = w + 1 < words ? row[w + 1] : 0;
    for (int64_t reach = 0, step; reach < places; reach += step) {
        step = places - reach < reach + 1 ? places - reach : reach + 1;
        up |= up << step | before >> (BITS - step), before |= before << step;
        down |= down >> step | behind << (BITS - step), behind |= behind >> step;
    }
    return up | down;
}

/* Widen a row by any number of places; `spare` is a row to work in. */
static void widen_row(const Word *row, Word *wide, Word *spare, int64_t words, int64_t places)
{
    for (int64_t step; places > 0; places -= step, row = spare) {
        step = places < BITS ? places : BITS - 1;
        for (int64_t w = 0; w < words; w++) wide[w] = widened(row, words, w, step);
        if (step < places) memcpy(spare, wide, (size_t)words * sizeof *wide);
    }
}

/* --- Windows of slices ---------------------------------------------------------------
 * A box is compared in windows of some planes of corners, whose bits stay in the CPU's cache.
 * Those of a window are counted but for the outer ones, which the ball reaches into. A plane
 * of corners lies between two slices of voxels, and a row of corners between two rows:
 *
 *     voxels 0 | plane 0 | voxels 1 | plane 1 | voxels 2     slices of a window
 *
 * Around the box there are empty slices and rows, so each corner has eight voxels. All rows
 * lie behind one another, each with at least one empty bit at its end, and the empty row
 * behind a slice is that before the next one. So corners and voxels have the same places:
 * row `r` of plane `p` begins at word ((p + 1) * rows + r + 1) * words, as do the voxels
 * behind it on both axes; those before it are one row or one plane back.
 */
typedef struct {
    int32_t z, y, half_width; /* a row of the ball of the tolerance */
} BallRow;

typedef struct {
    int32_t corner[3]; /* along z, y, x */
    uint8_t code, is_beyond;
} Surfel;

typedef struct { /* surfels of one map */
    Surfel *surfels;
    int64_t room, size; /* size: how many there are, also of those without room */
} List;

typedef struct {
    int32_t z, y, x, rank; /* a step of the ring, and the place of its length among all lengths */
} Step;

typedef struct { /* the ring, and how many surfels of each map are how far from the other */
    const Step *steps; /* the nearest first */
    int64_t size;
    int64_t distances; /* how many lengths there are; the rank of all that is farther */
    int64_t look_ups[2]; /* of each map: as many steps may be tried; then all is farther */
    int64_t *counts;   /* by map, rank and code: (2, distances + 1, CODES) */
} Search;

typedef struct { /* a row that has surfels left while the rows around it are tried */
    int64_t number;
    int32_t plane, row;
} Left;

typedef struct { /* the bits of both maps in some planes of corners */
    int64_t planes, rows, words; /* words of a row */
    int64_t size;                /* of the arrays below, in words */
    Word *voxels[2];             /* with one word more, an empty one, before the first */
    Word *surfels[2], *wide, *beyond, *spare;
    int32_t *half_widths; /* of each row: how far it is widened in `wide` */
    Left *left;
} Window;

static int64_t number_of(const Window *window, int64_t plane, int64_t row)
{
    return (plane + 1) * window->rows + row + 1;
}

static int64_t place_of(const Window *window, int64_t plane, int64_t row)
{
    return number_of(window, plane, row) * window->words;
}

/* --- Surfaces ------------------------------------------------------------------------
 * A corner of the grid lies in the middle of eight voxels: of two in each of four rows.
 * Its code has a bit for each that belongs to the label. It is a surfel if its code is
 * neither 0 nor 255.
 */
typedef struct {
    const Word *rows[4]; /* of voxels, from a word on: (z, y), (z, y-1), (z-1, y), (z-1, y-1) */
} Around;

static Around around_word(const Window *window, int side, int64_t at)
{
    const Word *here = window->voxels[side] + at, *before = here - window->rows * window->words;
    return (Around){{here, here - window->words, before, before - window->words}};
}

/* A word of a row moved up by one place. */
static Word one_back(const Word *row) { return row[0] << 1 | row[-1] >> (BITS - 1); }

/* Find the surfels of one map in all rows of a window. */
static void find_surfels(const Window *window, int side)
{
    const int64_t start = place_of(window, 0, 0);
    const Around around = around_word(window, side, start);
    const Word *a = around.rows[0], *b = around.rows[1], *c = around.rows[2], *d = around.rows[3];
    Word *surfels = window->surfels[side] + start;
    Word any_before = 0, all_before = 0;
    for (int64_t w = 0; w < window->size - start; w++) {
        const Word any = a[w] | b[w] | c[w] | d[w], all = a[w] & b[w] & c[w] & d[w];
        surfels[w] = (any | any << 1 | any_before >> 63) & ~(all & (all << 1 | all_before >> 63));
        any_before = any, all_before = all;
    }
}

/* The bits of a byte, four apart: bit i goes to bit 4 * i. */
#define SPREAD_1(b) (((b) & 1) | ((b) & 2) << 3 | ((b) & 4) << 6 | ((b) & 8) << 9 \
    | ((b) & 16) << 12 | ((b) & 32) << 15 | ((b) & 64) << 18 | ((b) & 128u) << 21)
#define SPREAD_4(b) SPREAD_1(b), SPREAD_1(b + 1), SPREAD_1(b + 2), SPREAD_1(b + 3)
#define SPREAD_16(b) SPREAD_4(b), SPREAD_4(b + 4), SPREAD_4(b + 8), SPREAD_4(b + 12)
#define SPREAD_64(b) SPREAD_16(b), SPREAD_16(b + 16), SPREAD_16(b + 32), SPREAD_16(b + 48)
static const uint32_t SPREAD[256] = {SPREAD_64(0), SPREAD_64(64), SPREAD_64(128), SPREAD_64(192)};

/* Count the codes of a word's corners, six at a time where any bit is set: between seven
 * voxels of each row. Of these, four bits for each voxel are made; those of three neighbours
 * tell the codes of two corners, which are counted together. So some corners are counted that
 * are no surfels, whose codes 0 and 255 nobody asks for. If the last corner of a word is a
 * surfel, two begin at an even place: it must not be counted together with the first corner
 * of the next word, where the voxel behind that one is. */
static void count_codes(const Window *window, int side, int64_t at, int64_t *pairs)
{
    const Around around = around_word(window, side, at);
    Word corners = window->surfels[side][at], back[4];
    for (int i = 0; i < 4; i++) back[i] = one_back(around.rows[i]);
    while (corners) {
        const int first = lowest(corners) & ~(int)(corners >> (BITS - 1));
        uint32_t voxels = 0; /* from the one before the first corner on */
        for (int i = 0; i < 4; i++) {
            const Word row = first ? around.rows[i][0] >> (first - 1) : back[i];
            voxels |= SPREAD[row & 0xff] << i;
        }
        unsigned here = corners >> first & 0x3f;
        for (; here; here >>= 2, voxels >>= 8) pairs[voxels & (PAIRS - 1)]++;
        corners &= ~((Word)0x3f << first);
    }
}

/* The code of a corner by the bits of the four voxels before it and of the four behind. */
static int sorted_code(int bits)
{
    int code = 0;
    for (int i = 0; i < 4; i++) code |= (bits >> (i + 4) & 1) << (2 * i) | (bits >> i & 1) << (2 * i + 1);
    return code;
}

static uint8_t code_at(Around around, int bit)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        code |= (unsigned)(around.rows[i][0] >> bit & 1) << (2 * i);
        code |= (unsigned)(one_back(around.rows[i]) >> bit & 1) << (2 * i + 1);
    }
    return (uint8_t)code;
}

/* Count the codes of those of its corners that are beyond: mostly none, or else all. */
static void count_beyond(const Window *window, int side, int64_t at, int64_t *pairs,
                         int64_t *counts)
{
    Word beyond = window->beyond[at];
    if (!beyond) return;
    if (beyond == window->surfels[side][at]) {
        count_codes(window, side, at, pairs);
        return;
    }
    for (; beyond; beyond &= beyond - 1) counts[code_at(around_word(window, side, at), lowest(beyond))]++;
}

/* --- What is near ------------------------------------------------------------------- */

/* Count the surfels of one map in some planes; those at whose corner the other one has none
 * are `beyond` for now. Returns how many rows have such. `pairs` is NULL to count no codes. */
static int64_t count_surfels(const Window *window, int side, int64_t from, int64_t to,
                             int64_t *pairs)
{
    const int64_t words = window->words, rows = window->rows;
    const Word *surfels = window->surfels[side], *other = window->surfels[1 - side];
    Word *beyond = window->beyond;
    Left *left = window->left;
    int64_t number = number_of(window, from, 0), size = 0;
    for (int64_t plane = from; plane < to; plane++)
        for (int64_t row = 0; row < rows; row++, number++) {
            const int64_t start = number * words;
            Word any = 0;
            for (int64_t at = start; at < start + words; at++) any |= surfels[at];
            if (!any) continue;
            any = 0;
            for (int64_t at = start; at < start + words; at++) {
                if (pairs && surfels[at]) count_codes(window, side, at, pairs);
                any |= beyond[at] = surfels[at] & ~other[at];
            }
            if (any) left[size++] = (Left){number, (int32_t)plane, (int32_t)row};
        }
    return size;
}

/* Widen a row of the surfels of one map, if it is not: when it is first asked for. */
static void need_wide(const Window *window, int side, int64_t number, int32_t half_width)
{
    const int64_t start = number * window->words;
    if (window->half_widths[number] == half_width) return;
    widen_row(window->surfels[side] + start, window->wide + start, window->spare, window->words, half_width);
    window->half_widths[number] = half_width;
}

/* Drop what is `beyond` and yet has any surfel of the other map within the ball: its rows are
 * tried one after the other, the widest first, until nothing is left. Returns how many rows
 * are left. */
static int64_t drop_near(const Window *window, int side, const BallRow *ball, int64_t ball_size,
                         int64_t size)
{
    const int64_t words = window->words, rows = window->rows, planes = window->planes;
    Left *list = window->left;
    Word *all_beyond = window->beyond;
    if (ball_size && ball[0].half_width)
        memset(window->half_widths, 0, (size_t)number_of(window, window->planes, 0) * sizeof *window->half_widths);
    for (int64_t i = 0; i < ball_size && size; i++) {
        const BallRow reach = ball[i];
        const Word *source = reach.half_width ? window->wide : window->surfels[1 - side];
        const int64_t tried = size, step = reach.z * rows + reach.y;
        size = 0;
        for (int64_t k = 0; k < tried; k++) {
            const Left left = list[k];
            const int64_t plane = left.plane + reach.z, row = left.row + reach.y;
            Word any = 1;
            if (plane >= 0 && plane < planes && row >= 0 && row < rows) {
                if (reach.half_width) need_wide(window, 1 - side, left.number + step, reach.half_width);
                Word *beyond = all_beyond + left.number * words;
                const Word *near = source + (left.number + step) * words;
                any = 0;
                if (words == 1) any = *beyond &= ~*near;
                else for (int64_t w = 0; w < words; w++) any |= beyond[w] &= ~near[w];
            }
            list[size] = left;
            size += any != 0;
        }
    }
    return size;
}

/* Count the surfels of a word by their distance to the nearest one of the other map: the
 * steps of the ring are tried for all of them at once, until nothing is left. Returns those
 * that are farther. */
static Word count_near(const Window *window, int side, int64_t plane, int64_t row, int64_t w,
                       Around around, Word left, Search *search)
{
    for (int64_t i = 0; left && i < search->size && search->look_ups[side]-- > 0; i++) {
        const Step step = search->steps[i];
        const int64_t other_plane = plane + step.z, other_row = row + step.y;
        if (other_plane < 0 || other_plane >= window->planes) continue;
        if (other_row < 0 || other_row >= window->rows) continue;
        const Word *other = window->surfels[1 - side] + place_of(window, other_plane, other_row);
        Word near = left & moved(other, window->words, w, absolute(step.x), step.x < 0);
        int64_t *counts = search->counts + (side * (search->distances + 1) + step.rank) * CODES;
        for (left &= ~near; near; near &= near - 1) counts[code_at(around, lowest(near))]++;
    }
    return left;
}

/* List the surfels of a row. With a search, those that are near are counted by their
 * distance, and only those that are far are listed: at once those beyond its ball. */
static void list_row(const Window *window, int side, int64_t plane, int64_t row,
                     const int32_t place[3], Search *search, List *list)
{
    const int64_t start = place_of(window, plane, row);
    for (int64_t w = 0; w < window->words; w++) {
        const Around around = around_word(window, side, start + w);
        const Word surfels = window->surfels[side][start + w], beyond = surfels & window->beyond[start + w];
        Word left = surfels;
        if (search) left = beyond | count_near(window, side, plane, row, w, around, surfels & ~beyond, search);
        for (; left; left &= left - 1) {
            const int bit = lowest(left);
            const uint8_t code = code_at(around, bit);
            if (search) search->counts[((side + 1) * (search->distances + 1) - 1) * CODES + code]++;
            if (list->size++ >= list->room) continue;
            const int32_t x = (int32_t)(place[2] + w * BITS + bit);
            list->surfels[list->size - 1] = (Surfel){{place[0], place[1], x}, code, beyond >> bit & 1};
        }
    }
}

/* --- Organs -------------------------------------------------------------------------- */

/* How many planes a window counts, and how many words it needs for them. */
static int64_t plan(const Box *box, int64_t reach, int64_t *planes, Window *window)
{
    const int64_t budget = 1 << 17; /* words: 1 MiB stays in most CPUs' cache */
    const int64_t depth = box->to[0] - box->from[0] + 1;
    window->rows = box->to[1] - box->from[1] + 1;
    window->words = (box->to[2] - box->from[2]) / BITS + 1;
    const int64_t plane = window->rows * window->words;
    *planes = budget / (6 * plane); /* as many arrays of planes are in use */
    /* Outer planes are filled twice, so they must not be most of a window. */
    if (*planes < 4 * reach + 4) *planes = 4 * reach + 4;
    if (*planes > depth) *planes = depth;
    window->planes = *planes + 2 * reach < depth ? *planes + 2 * reach : depth;
    window->size = ((window->planes + 1) * window->rows + 1) * window->words;
    const int64_t left = *planes * window->rows * (int64_t)(sizeof(Left) / sizeof(Word));
    return left + 6 * window->size + 2 + window->words + window->size / window->words;
}

/* How many planes the ball reaches into, and the steps of a search; -1 if they make no sense. */
static int64_t reach_of(const BallRow *ball, int64_t ball_size, const Search *search)
{
    int64_t reach = 0;
    for (int64_t i = 0; i < ball_size; i++) {
        if (ball[i].half_width < 0) return -1;
        if (absolute(ball[i].z) > reach) reach = absolute(ball[i].z);
    }
    for (int64_t i = 0; search && i < search->size; i++) {
        const Step step = search->steps[i];
        if (step.rank < 0 || step.rank >= search->distances) return -1;
        if (absolute(step.z) > reach) reach = absolute(step.z);
    }
    return reach;
}

/* How many words compare_labels() needs as its memory; -1 if a ball or search makes no sense. */
API int64_t words_needed(const Box *box, const BallRow *ball, int64_t ball_size,
                         const Search *search)
{
    Window window;
    int64_t planes;
    const int64_t reach = reach_of(ball, ball_size, search);
    return reach < 0 ? -1 : plan(box, reach, &planes, &window);
}

/* The bits of some planes, the first of which is behind slice `first - 1`; of the slices that
 * are counted, the numbers of voxels. Returns 0, or -1 if a map is broken. */
static int fill_window(const Window *window, const Map *const maps[2],
                       const uint8_t is_organ[CODES], const Box *box, int64_t first,
                       int64_t counted_from, int64_t counted_to, int64_t voxels[3])
{
    for (int side = 0; side < 2; side++) {
        const Map *map = maps[side];
        memset(window->voxels[side] - 1, 0, (size_t)(window->size + 1) * sizeof(Word));
        for (int64_t plane = -1; plane < window->planes; plane++) {
            const int64_t z = first + plane;
            if (z < box->from[0] || z >= box->to[0]) continue;
            const int is_counted = z >= counted_from && z < counted_to;
            Word *bits = window->voxels[side] + place_of(window, plane, 0);
            for (int64_t y = box->from[1]; y < box->to[1]; y++, bits += window->words) {
                const int64_t row = z * map->height + y;
                if (map->starts[row] == map->starts[row + 1]) continue; /* as most rows */
                const int64_t count = unpack_bits(map, row, is_organ, box, bits);
                if (count < 0) return -1;
                if (is_counted) voxels[side] += count;
            }
        }
        find_surfels(window, side);
    }
    const int64_t end = place_of(window, counted_to - first, -1);
    for (int64_t at = place_of(window, counted_from - first, -1); at < end; at++)
        voxels[2] += count_bits(window->voxels[0][at] & window->voxels[1][at]);
    return 0;
}

/* Count an organ of two maps of one size, the reference first, in a box.
 *
 * is_organ: 1 for each of its labels, else 0. has_codes: if the caller has the numbers of the
 * first map's codes, which then are not counted. voxels: of the first, of the second, of both.
 * counts: by code, of the surfels of the first, of the second, and of those of both maps with
 * none of the other within the ball, whose rows are sorted, the widest first: the tolerance's,
 * or that of the ring of a search. lists: two, or NULL; search: or NULL, see list_row. Returns
 * 0, or -1 if `memory` is less than words_needed() says, the arguments make no sense, or a map
 * is broken. */
API int compare_labels(const Map *first_map, const Map *second_map,
                       const uint8_t is_organ[CODES], int has_codes, const Box *box,
                       const BallRow *ball, int64_t ball_size, Word *memory, int64_t memory_words,
                       int64_t voxels[3], int64_t counts[3][CODES], List *lists, Search *search)
{
    const Map *const maps[2] = {first_map, second_map};
    int64_t pairs[3][PAIRS] = {{0}};
    Window window;
    memset(voxels, 0, 3 * sizeof *voxels);
    memset(counts, 0, 3 * sizeof *counts);
    for (int side = 0; side < 2; side++) {
        const Map *map = maps[side];
        if (map->height < 1 || map->height >> 31 || map->width < 1 || map->width >> X_BITS) return -1;
        const int64_t sizes[3] = {map->row_count / map->height, map->height, map->width};
        for (int axis = 0; axis < 3; axis++)
            if (box->from[axis] < 0 || box->to[axis] > sizes[axis] || sizes[axis] >> 31) return -1;
    }
    for (int axis = 0; axis < 3; axis++)
        if (box->from[axis] >= box->to[axis]) return 0;
    const int64_t depth = box->to[0] - box->from[0] + 1; /* planes of corners */
    int64_t planes, reach = reach_of(ball, ball_size, search);
    if (reach < 0) return -1;
    if (reach > depth) reach = depth;
    if (memory_words < plan(box, reach, &planes, &window)) return -1;
    window.left = (Left *)memory, memory += planes * window.rows * (int64_t)(sizeof(Left) / sizeof(Word));
    for (int side = 0; side < 2; side++) {
        window.voxels[side] = memory + 1, memory += window.size + 1;
        window.surfels[side] = memory, memory += window.size;
    }
    window.wide = memory, memory += window.size;
    window.beyond = memory, memory += window.size;
    window.spare = memory, memory += window.words;
    window.half_widths = (int32_t *)memory;
    for (int64_t start = 0; start < depth; start += planes) {
        const int64_t end = start + planes < depth ? start + planes : depth;
        const int64_t from = start > reach ? start - reach : 0;
        const int64_t to = end + reach < depth ? end + reach : depth;
        window.planes = to - from;
        window.size = place_of(&window, window.planes, 0);
        if (fill_window(&window, maps, is_organ, box, box->from[0] + from,
                        box->from[0] + start, box->from[0] + end, voxels)) return -1;
        for (int side = 0; side < 2; side++) {
            int64_t *codes = has_codes && side == 0 ? NULL : pairs[side];
            int64_t left = count_surfels(&window, side, start - from, end - from, codes);
            left = drop_near(&window, side, ball, ball_size, left);
            for (int64_t k = 0; k < left; k++) {
                int64_t at = window.left[k].number * window.words;
                for (const int64_t end_of_row = at + window.words; at < end_of_row; at++)
                    count_beyond(&window, side, at, pairs[2], counts[2]);
            }
            if (!lists) continue;
            for (int64_t plane = start - from; plane < end - from; plane++)
                for (int64_t row = 0; row < window.rows; row++) {
                    const int32_t place[3] = {(int32_t)(box->from[0] + from + plane),
                                              (int32_t)(box->from[1] + row), (int32_t)box->from[2]};
                    list_row(&window, side, plane, row, place, search, &lists[side]);
                }
        }
    }
    for (int i = 0; i < 3; i++) {
        for (int bits = 0; bits < PAIRS; bits++) {
            if (!pairs[i][bits]) continue;
            counts[i][sorted_code(bits & 0xff)] += pairs[i][bits];
            counts[i][sorted_code(bits >> 4)] += pairs[i][bits];
        }
        counts[i][0] = counts[i][CODES - 1] = 0;
    }
    return 0;
}
