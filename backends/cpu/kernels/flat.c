/* SPDX-License-Identifier: Apache-2.0
 *
 * Direct convolution over the input as it lies: flattened output space in the lanes, weights broadcast. A tap whose
 * columns all meet the input is a plain read; one at an edge reads under a mask; one that meets nothing is left out. */
#include "kernels.h"

enum { FLAT_ACCUMULATORS = V_CONV_TILE * V_CONV_VECTORS };

/* What a tile is of: where its columns begin, how many are left, and its part of the tables. */
typedef struct flat_place {
    size_t at, left;
    const uint8_t *need;
    const uint16_t *mask;
} flat_place;

typedef void (*flat_tile)(const rondo__cpu_flat *f, const float *x, const float *w, const float *bias, float *y,
                          size_t outputs, const flat_place *place);

/* All channels of one tap; tile, vectors and masked are constants at every use. */
V_INLINE void flat_tap(const rondo__cpu_flat *f, const float *x, const float *w, vf *sum, const v_lanes *lanes,
                       size_t tile, size_t vectors, int masked) {
    const size_t channels = f->channels, plane = f->x_plane;
    for (size_t k = 0; k < channels; k++, x += plane, w += tile) {
        vf column[V_CONV_VECTORS];
        V_UNROLL
        for (size_t j = 0; j < vectors; j++)
            column[j] = masked ? v_load_lanes(x + j * V_LANES, lanes[j]) : v_load(x + j * V_LANES);
        V_UNROLL
        for (size_t i = 0; i < tile; i++) {
            const vf one = v_set(w[i]);
            V_UNROLL
            for (size_t j = 0; j < vectors; j++) sum[i * vectors + j] = v_fma(column[j], one, sum[i * vectors + j]);
        }
    }
}

V_INLINE void flat_store(const rondo__cpu_flat *f, const vf *sum, float *y, size_t outputs, size_t left, size_t tile,
                         size_t vectors) {
    const vf p = v_set(f->parameter[0]), q = v_set(f->parameter[1]);
    V_UNROLL
    for (size_t i = 0; i < tile; i++) {
        V_UNROLL
        for (size_t j = 0; j < vectors; j++) {
            if (i >= outputs) continue;
            const vf total = v_finish(f->finish, sum[i * vectors + j], p, q);
            float *out = y + i * f->columns + j * V_LANES;
            if (left >= (j + 1) * V_LANES) {
                v_store(out, total);
            } else if (left > j * V_LANES) {
                v_store_part(out, total, left - j * V_LANES);
            }
        }
    }
}

V_INLINE void flat_tile_body(const rondo__cpu_flat *f, const float *x, const float *w, const float *bias, float *y,
                             size_t outputs, const flat_place *place, size_t tile, size_t vectors) {
    vf sum[FLAT_ACCUMULATORS];
    V_UNROLL
    for (size_t i = 0; i < tile; i++) {
        const vf start = v_set(bias && i < outputs ? bias[i] : 0.0f);
        V_UNROLL
        for (size_t j = 0; j < vectors; j++) sum[i * vectors + j] = start;
    }
    const size_t taps = f->taps, block = f->channels * tile;
    for (size_t tap = 0; tap < taps; tap++, w += block) {
        const float *from = x + ((ptrdiff_t)place->at + f->shift[tap]);
        v_lanes lanes[V_CONV_VECTORS];
        if (place->need[tap] == RONDO__CPU_FLAT_WHOLE) {
            flat_tap(f, from, w, sum, lanes, tile, vectors, 0);
        } else if (place->need[tap] == RONDO__CPU_FLAT_PARTLY) {
            V_UNROLL
            for (size_t j = 0; j < vectors; j++) lanes[j] = v_lanes_of(place->mask[tap * V_CONV_VECTORS + j]);
            flat_tap(f, from, w, sum, lanes, tile, vectors, 1);
        }
    }
    flat_store(f, sum, y, outputs, place->left, tile, vectors);
}

#define FLAT_TILE(tile, vectors)                                                                                     \
    static void flat_tile_##tile##x##vectors(const rondo__cpu_flat *f, const float *x, const float *w,               \
                                             const float *bias, float *y, size_t outputs, const flat_place *place) { \
        flat_tile_body(f, x, w, bias, y, outputs, place, tile, vectors);                                             \
    }

FLAT_TILE(1, 1)
FLAT_TILE(1, 2)
FLAT_TILE(1, 3)
FLAT_TILE(2, 1)
FLAT_TILE(2, 2)
FLAT_TILE(2, 3)
FLAT_TILE(4, 1)
FLAT_TILE(4, 2)
FLAT_TILE(4, 3)
#if V_REGISTERS == 32
FLAT_TILE(8, 1)
FLAT_TILE(8, 2)
FLAT_TILE(8, 3)
#endif

static const flat_tile flat_tiles[9][V_CONV_VECTORS] = {
    [1] = {flat_tile_1x1, flat_tile_1x2, flat_tile_1x3},
    [2] = {flat_tile_2x1, flat_tile_2x2, flat_tile_2x3},
    [4] = {flat_tile_4x1, flat_tile_4x2, flat_tile_4x3},
#if V_REGISTERS == 32
    [8] = {flat_tile_8x1, flat_tile_8x2, flat_tile_8x3},
#endif
};

/* One channel to one output, two tiles of columns at a time: twice the chains, and half the looking at taps. */
static void flat_single(const rondo__cpu_flat *f, const float *x, const float *w, const float *bias, float *y,
                        size_t first) {
    enum { SPAN = V_CONV_VECTORS * V_LANES };
    const size_t taps = f->taps, left = f->columns - first * SPAN;
    const uint8_t *need = f->need + first * taps;
    const uint16_t *mask = f->mask + first * taps * V_CONV_VECTORS;
    vf one[V_CONV_VECTORS], two[V_CONV_VECTORS];
    V_UNROLL
    for (size_t j = 0; j < V_CONV_VECTORS; j++) one[j] = two[j] = v_set(bias ? *bias : 0.0f);
    for (size_t tap = 0; tap < taps; tap++, mask += V_CONV_VECTORS) {
        const float *from = x + ((ptrdiff_t)(first * SPAN) + f->shift[tap]);
        const vf weight = v_set(w[tap]);
        /* Whole says nothing of vectors that the last tile lacks. */
        if (left >= 2 * (size_t)SPAN && (need[tap] | need[tap + taps]) == RONDO__CPU_FLAT_WHOLE) {
            V_UNROLL
            for (size_t j = 0; j < V_CONV_VECTORS; j++) {
                one[j] = v_fma(v_load(from + j * V_LANES), weight, one[j]);
                two[j] = v_fma(v_load(from + SPAN + j * V_LANES), weight, two[j]);
            }
            continue;
        }
        if ((need[tap] & need[tap + taps]) == RONDO__CPU_FLAT_NOWHERE) continue;
        V_UNROLL
        for (size_t j = 0; j < V_CONV_VECTORS; j++) {
            one[j] = v_fma(v_load_lanes(from + j * V_LANES, v_lanes_of(mask[j])), weight, one[j]);
            two[j] = v_fma(v_load_lanes(from + SPAN + j * V_LANES, v_lanes_of(mask[taps * V_CONV_VECTORS + j])), weight,
                           two[j]);
        }
    }
    flat_store(f, one, y + first * SPAN, 1, left, 1, V_CONV_VECTORS);
    flat_store(f, two, y + (first + 1) * SPAN, 1, left - SPAN, 1, V_CONV_VECTORS);
}

/* Tiles [first, last) of all outputs of one group. */
static void flat_columns(const rondo__cpu_flat *f, const float *x, const float *w, const float *bias, float *y,
                         size_t first, size_t last) {
    const size_t across = (size_t)V_CONV_VECTORS * V_LANES, depth = f->channels * f->taps;
    const size_t end = last * across < f->columns ? last * across : f->columns;
    for (size_t m = 0; m < f->outputs; m += f->tile, w += depth * f->tile) {
        const size_t outputs = f->outputs - m < f->tile ? f->outputs - m : f->tile;
        float *rows = y + m * f->columns;
        for (size_t n = first; n < last; n++) {
            const flat_place place = {n * across, f->columns - n * across, f->need + n * f->taps,
                                      f->mask + n * f->taps * V_CONV_VECTORS};
            const size_t vectors = place.left >= across ? V_CONV_VECTORS : (place.left + V_LANES - 1) / V_LANES;
            flat_tiles[f->tile][vectors - 1](f, x, w, bias ? bias + m : NULL, rows + place.at, outputs, &place);
        }
        for (size_t i = 0; f->strip && i < outputs; i++) {
            float *part = rows + i * f->columns + first * across;
            f->strip(part, part, end - first * across, f->parameter);
        }
    }
}

void V_NAME(flat)(const rondo__cpu_flat *f, const float *x, const float *w, const float *bias, float *y) {
    const size_t blocks = (f->outputs + f->tile - 1) / f->tile, weights = blocks * f->tile * f->channels * f->taps;
    for (size_t n = 0; n < f->batch; n++) {
        for (size_t g = 0; g < f->groups; g++, x += f->channels * f->x_plane, y += f->outputs * f->columns) {
            size_t tile = 0;
            /* The second of two tiles may be any part of one, but its first vector exists. */
            for (; f->channels == 1 && f->outputs == 1 && !f->strip && tile + 2 <= f->tiles; tile += 2)
                flat_single(f, x, w + g * weights, bias ? bias + g : NULL, y, tile);
            for (; tile < f->tiles; tile += f->together) {
                const size_t last = f->tiles - tile < f->together ? f->tiles : tile + f->together;
                flat_columns(f, x, w + g * weights, bias ? bias + g * f->outputs : NULL, y, tile, last);
            }
        }
    }
}
