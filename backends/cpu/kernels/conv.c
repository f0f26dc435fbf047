/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution with output space in the lanes: a padded copy of the input, cut by column phase, makes each tap of each
 * stride and dilation a contiguous read; then tiles of outputs x vectors, weights broadcast. */
#include "kernels.h"

enum { CONV_ACCUMULATORS = V_CONV_TILE * V_CONV_VECTORS };

typedef void (*conv_tile)(const rondo__cpu_conv *c, const float *x, const float *w, const float *bias, float *y,
                          size_t outputs, size_t left);

/* tile, vectors and chains are constants at every use. `outputs` of the tile are stored, `left` columns of each. */
V_INLINE void conv_tile_body(const rondo__cpu_conv *c, const float *x, const float *w, const float *bias, float *y,
                             size_t outputs, size_t left, size_t tile, size_t vectors, size_t chains) {
    vf sum[CONV_ACCUMULATORS];
    V_UNROLL
    for (size_t a = 0; a < CONV_ACCUMULATORS; a++) {
        if (a < tile * vectors * chains) sum[a] = v_set(0.0f);
    }
    const int32_t *offset = c->offset;
    const size_t depth = c->depth;
    size_t k = 0;
    for (; k + chains <= depth; k += chains) {
        V_UNROLL
        for (size_t h = 0; h < chains; h++, w += tile) {
            const float *at = x + offset[k + h];
            vf column[V_CONV_VECTORS];
            V_UNROLL
            for (size_t j = 0; j < vectors; j++) column[j] = v_load(at + j * V_LANES);
            V_UNROLL
            for (size_t i = 0; i < tile; i++) {
                const vf one = v_set(w[i]);
                V_UNROLL
                for (size_t j = 0; j < vectors; j++) {
                    const size_t a = (h * tile + i) * vectors + j;
                    sum[a] = v_fma(column[j], one, sum[a]);
                }
            }
        }
    }
    for (; chains > 1 && k < depth; k++, w += tile) {
        const float *at = x + offset[k];
        V_UNROLL
        for (size_t i = 0; i < tile; i++) {
            V_UNROLL
            for (size_t j = 0; j < vectors; j++)
                sum[i * vectors + j] = v_fma(v_load(at + j * V_LANES), v_set(w[i]), sum[i * vectors + j]);
        }
    }
    const vf floor = v_set(c->relu ? 0.0f : -__builtin_inff());
    const size_t y_row = c->out_height * c->out_width;
    V_UNROLL
    for (size_t i = 0; i < tile; i++) {
        const vf start = v_set(bias && i < outputs ? bias[i] : 0.0f);
        V_UNROLL
        for (size_t j = 0; j < vectors; j++) {
            vf total = sum[i * vectors + j];
            V_UNROLL
            for (size_t h = 1; h < chains; h++) total += sum[(h * tile + i) * vectors + j];
            total = v_max(floor, total + start);
            float *out = y + i * y_row + j * V_LANES;
            if (i < outputs && left >= (j + 1) * V_LANES) {
                v_store(out, total);
            } else if (i < outputs && left > j * V_LANES) {
                v_store_part(out, total, left - j * V_LANES);
            }
        }
    }
}

#define CONV_TILE(tile, vectors, chains)                                                                 \
    static void conv_tile_##tile##x##vectors(const rondo__cpu_conv *c, const float *x, const float *w,   \
                                             const float *bias, float *y, size_t outputs, size_t left) { \
        conv_tile_body(c, x, w, bias, y, outputs, left, tile, vectors, chains);                          \
    }

CONV_TILE(1, 1, 4)
CONV_TILE(1, 2, 4)
CONV_TILE(1, 3, 4)
CONV_TILE(2, 1, 4)
CONV_TILE(2, 2, 2)
CONV_TILE(2, 3, 2)
CONV_TILE(4, 1, 2)
CONV_TILE(4, 2, 1)
CONV_TILE(4, 3, 1)
#if V_REGISTERS == 32
CONV_TILE(8, 1, 1)
CONV_TILE(8, 2, 1)
CONV_TILE(8, 3, 1)
#endif

static const conv_tile conv_tiles[9][V_CONV_VECTORS] = {
    [1] = {conv_tile_1x1, conv_tile_1x2, conv_tile_1x3},
    [2] = {conv_tile_2x1, conv_tile_2x2, conv_tile_2x3},
    [4] = {conv_tile_4x1, conv_tile_4x2, conv_tile_4x3},
#if V_REGISTERS == 32
    [8] = {conv_tile_8x1, conv_tile_8x2, conv_tile_8x3},
#endif
};

/* One channel into its plane. */
static void conv_fill_plane(const rondo__cpu_conv *c, const float *x, float *plane) {
    const size_t phases = c->step_right;
    for (size_t row = 0; row < c->padded_height; row++, plane += c->pitch) {
        const bool inside = row >= c->pad_top && row - c->pad_top < c->height;
        const float *from = inside ? x + (row - c->pad_top) * c->width : x;
        if (!inside) {
            memset(plane, 0, c->pitch * sizeof(float));
        } else if (phases == 1) {
            const size_t room = c->phase_width - c->pad_left, width = c->width < room ? c->width : room;
            memset(plane, 0, c->pad_left * sizeof(float));
            memcpy(plane + c->pad_left, from, width * sizeof(float));
            memset(plane + c->pad_left + width, 0, (room - width) * sizeof(float));
        } else {
            for (size_t phase = 0; phase < phases; phase++) {
                float *part = plane + phase * c->phase_width;
                for (size_t i = 0, at = phase; i < c->phase_width; i++, at += phases)
                    part[i] = at >= c->pad_left && at - c->pad_left < c->width ? from[at - c->pad_left] : 0.0f;
            }
        }
    }
}

static void conv_group(const rondo__cpu_conv *c, const float *w, const float *bias, float *y, const float *scratch) {
    const size_t across = (size_t)V_CONV_VECTORS * V_LANES;
    for (size_t row = 0; row < c->out_height; row++) {
        for (size_t n = 0; n < c->out_width; n += across) {
            const size_t left = c->out_width - n,
                         vectors = left >= across ? V_CONV_VECTORS : (left + V_LANES - 1) / V_LANES;
            const float *x = scratch + row * c->step_down * c->pitch + n, *block = w;
            float *out = y + row * c->out_width + n;
            const conv_tile run = conv_tiles[c->tile][vectors - 1];
            for (size_t m = 0; m < c->outputs; m += c->tile, block += c->depth * c->tile) {
                run(c, x, block, bias ? bias + m : NULL, out + m * c->out_height * c->out_width, c->outputs - m, left);
            }
        }
    }
}

void V_NAME(conv)(const rondo__cpu_conv *c, const float *x, const float *w, const float *bias, float *y,
                  float *scratch) {
    const size_t blocks = (c->outputs + c->tile - 1) / c->tile;
    for (uint64_t n = 0; n < c->batch; n++) {
        for (uint64_t group = 0; group < c->groups; group++) {
            for (size_t channel = 0; channel < c->channels; channel++, x += c->height * c->width) {
                conv_fill_plane(c, x, scratch + channel * c->plane);
            }
            conv_group(c, w + group * blocks * c->tile * c->depth, bias ? bias + group * c->outputs : NULL, y, scratch);
            y += c->outputs * c->out_height * c->out_width;
        }
    }
}

void V_NAME(turn)(const float *x, float *y, size_t channels, size_t length, size_t before, size_t after) {
    memset(y, 0, before * channels * sizeof(float));
    y += before * channels;
    size_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        const float *row = x + c * length;
        size_t t = 0;
        for (; t + 4 <= length; t += 4) {
            v4f p = *(const v4f_loose *)(row + t), q = *(const v4f_loose *)(row + length + t);
            v4f r = *(const v4f_loose *)(row + 2 * length + t), s = *(const v4f_loose *)(row + 3 * length + t);
            v_turn4(&p, &q, &r, &s);
            float *out = y + t * channels + c;
            *(v4f_loose *)out = p;
            *(v4f_loose *)(out + channels) = q;
            *(v4f_loose *)(out + 2 * channels) = r;
            *(v4f_loose *)(out + 3 * channels) = s;
        }
        for (; t < length; t++) {
            for (size_t i = 0; i < 4; i++) y[t * channels + c + i] = row[i * length + t];
        }
    }
    for (; c < channels; c++) {
        for (size_t t = 0; t < length; t++) y[t * channels + c] = x[c * length + t];
    }
    memset(y + length * channels, 0, after * channels * sizeof(float));
}
