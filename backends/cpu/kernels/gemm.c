/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products with the outputs in the lanes: a tile of rows x vectors stays in registers while the depth runs by;
 * thin tiles run several chains over the depth, so that the multiply-adds do not wait for one another. */
#include "kernels.h"

enum { GEMM_ACCUMULATORS = 16 };

typedef void (*gemm_tile)(const rondo__cpu_gemm *g, const float *x, const float *w, size_t step, const float *bias,
                          float *y, size_t y_row, size_t left);

V_INLINE vf gemm_bias(const float *bias, size_t at, size_t left) {
    if (!bias || at >= left) return v_set(0.0f);
    return left - at >= V_LANES ? v_load(bias + at) : v_load_part(bias + at, left - at);
}

/* rows, vectors and chains are constants at every use; rows * vectors * chains accumulators. */
V_INLINE void gemm_tile_body(const rondo__cpu_gemm *g, const float *x, const float *w, size_t step, const float *bias,
                             float *y, size_t y_row, size_t left, size_t rows, size_t vectors, size_t chains) {
    vf sum[GEMM_ACCUMULATORS];
    V_UNROLL
    for (size_t a = 0; a < GEMM_ACCUMULATORS; a++) {
        if (a < rows * vectors * chains) sum[a] = v_set(0.0f);
    }
    const size_t depth = g->depth, x_row = g->x_row, x_depth = g->x_depth;
    for (uint64_t tap = 0; tap < g->taps; tap++, x += g->x_tap) {
        const float *at = x;
        size_t k = 0;
        for (; k + chains <= depth; k += chains) {
            V_UNROLL
            for (size_t c = 0; c < chains; c++, at += x_depth, w += step) {
                vf column[V_WIDEST];
                V_UNROLL
                for (size_t i = 0; i < vectors; i++) {
                    column[i] = v_load(w + i * V_LANES);
                    if (rows > 1) V_KEEP(column[i]);
                }
                V_UNROLL
                for (size_t r = 0; r < rows; r++) {
                    const vf one = v_set(at[r * x_row]);
                    V_UNROLL
                    for (size_t i = 0; i < vectors; i++) {
                        const size_t a = (c * rows + r) * vectors + i;
                        sum[a] = v_fma(column[i], one, sum[a]);
                    }
                }
            }
        }
        for (; chains > 1 && k < depth; k++, at += x_depth, w += step) {
            V_UNROLL
            for (size_t r = 0; r < rows; r++) {
                const vf one = v_set(at[r * x_row]);
                V_UNROLL
                for (size_t i = 0; i < vectors; i++) {
                    sum[r * vectors + i] = v_fma(v_load(w + i * V_LANES), one, sum[r * vectors + i]);
                }
            }
        }
    }
    const vf floor = v_set(g->relu ? 0.0f : -__builtin_inff());
    V_UNROLL
    for (size_t i = 0; i < vectors; i++) {
        const vf start = gemm_bias(bias, i * V_LANES, left);
        V_UNROLL
        for (size_t r = 0; r < rows; r++) {
            vf total = sum[r * vectors + i];
            V_UNROLL
            for (size_t c = 1; c < chains; c++) total += sum[(c * rows + r) * vectors + i];
            total = v_max(floor, total + start);
            float *out = y + r * y_row + i * V_LANES;
            if (left >= (i + 1) * V_LANES) {
                v_store(out, total);
            } else if (left > i * V_LANES) {
                v_store_part(out, total, left - i * V_LANES);
            }
        }
    }
}

#define GEMM_TILE(rows, vectors, chains)                                                                            \
    static void gemm_tile_##rows##x##vectors(const rondo__cpu_gemm *g, const float *x, const float *w, size_t step, \
                                             const float *bias, float *y, size_t y_row, size_t left) {              \
        gemm_tile_body(g, x, w, step, bias, y, y_row, left, rows, vectors, chains);                                 \
    }

GEMM_TILE(1, 8, 1)
GEMM_TILE(1, 4, 2)
GEMM_TILE(1, 3, 3)
GEMM_TILE(1, 2, 4)
GEMM_TILE(1, 1, 8)
GEMM_TILE(2, 4, 1)
GEMM_TILE(2, 3, 2)
GEMM_TILE(2, 2, 2)
GEMM_TILE(2, 1, 4)
GEMM_TILE(3, 4, 1)
GEMM_TILE(3, 3, 1)
GEMM_TILE(3, 2, 2)
GEMM_TILE(3, 1, 4)
GEMM_TILE(4, 4, 1)
GEMM_TILE(4, 3, 1)
GEMM_TILE(4, 2, 1)
GEMM_TILE(4, 1, 2)

static const gemm_tile gemm_tiles[RONDO__CPU_ROWS][V_WIDEST] = {
    {gemm_tile_1x1, gemm_tile_1x2, gemm_tile_1x3, gemm_tile_1x4, NULL, NULL, NULL, gemm_tile_1x8},
    {gemm_tile_2x1, gemm_tile_2x2, gemm_tile_2x3, gemm_tile_2x4, NULL, NULL, NULL, NULL},
    {gemm_tile_3x1, gemm_tile_3x2, gemm_tile_3x3, gemm_tile_3x4, NULL, NULL, NULL, NULL},
    {gemm_tile_4x1, gemm_tile_4x2, gemm_tile_4x3, gemm_tile_4x4, NULL, NULL, NULL, NULL},
};

/* The last outputs of strided weights: fewer than a vector, nothing read past them. */
static void gemm_rest(const rondo__cpu_gemm *g, const float *x, const float *w, const float *bias, float *y,
                      size_t y_row, size_t left) {
    const vf floor = v_set(g->relu ? 0.0f : -__builtin_inff());
    for (size_t r = 0; r < g->rows; r++, x += g->x_row, y += y_row) {
        vf even = v_set(0.0f), odd = even;
        const float *at = x, *row = w;
        size_t k = 0;
        for (; k + 2 <= g->depth; k += 2, at += 2 * g->x_depth, row += 2 * g->w_depth) {
            even = v_fma(v_load_part(row, left), v_set(at[0]), even);
            odd = v_fma(v_load_part(row + g->w_depth, left), v_set(at[g->x_depth]), odd);
        }
        if (k < g->depth) even = v_fma(v_load_part(row, left), v_set(at[0]), even);
        v_store_part(y, v_max(floor, even + odd + gemm_bias(bias, 0, left)), left);
    }
}

/* A tile's results [rows][columns] to y[column * y_output + row]. */
static void gemm_scatter(const float *tile, float *y, size_t rows, size_t columns, size_t row, size_t y_output) {
    size_t c = 0;
    if (rows == 4) {
        for (; c + 4 <= columns; c += 4, y += 4 * y_output) {
            v4f a = *(const v4f_loose *)(tile + c), b = *(const v4f_loose *)(tile + row + c);
            v4f d = *(const v4f_loose *)(tile + 2 * row + c), e = *(const v4f_loose *)(tile + 3 * row + c);
            v_turn4(&a, &b, &d, &e);
            *(v4f_loose *)y = a;
            *(v4f_loose *)(y + y_output) = b;
            *(v4f_loose *)(y + 2 * y_output) = d;
            *(v4f_loose *)(y + 3 * y_output) = e;
        }
    }
    for (; c < columns; c++, y += y_output) {
        for (size_t r = 0; r < rows; r++) y[r] = tile[r * row + c];
    }
}

void V_NAME(gemm)(const rondo__cpu_gemm *g, const float *x, const float *w, const float *bias, float *y) {
    float tile[RONDO__CPU_ROWS * V_WIDEST * V_LANES];
    size_t m = 0;
    for (size_t class = 0; class < RONDO__CPU_WIDTHS; class ++) {
        const size_t width = g->width[class], columns = width * V_LANES;
        for (uint32_t n = g->number[class]; n > 0; n--) {
            const float *panel = g->w_depth ? w + m : w;
            const size_t step = g->w_depth ? g->w_depth : columns, left = g->outputs - m;
            const float *row_bias = bias ? bias + m : NULL;
            for (size_t r = 0; r < g->rows; r += RONDO__CPU_ROWS) {
                const size_t rows = g->rows - r < RONDO__CPU_ROWS ? g->rows - r : RONDO__CPU_ROWS;
                const gemm_tile run = gemm_tiles[rows - 1][width - 1];
                if (g->y_output == 1) {
                    run(g, x + r * g->x_row, panel, step, row_bias, y + r * g->y_row + m, g->y_row, left);
                } else {
                    run(g, x + r * g->x_row, panel, step, row_bias, tile, columns, left);
                    gemm_scatter(tile, y + r * g->y_row + m * g->y_output, rows, left < columns ? left : columns,
                                 columns, g->y_output);
                }
            }
            if (!g->w_depth) w += columns * g->depth * g->taps;
            m += columns;
        }
    }
    if (m < g->outputs) gemm_rest(g, x, w + m, bias ? bias + m : NULL, y + m, g->y_row, g->outputs - m);
}

/* Few outputs: the depth in the lanes. */
void V_NAME(dot)(const rondo__cpu_gemm *g, const float *x, const float *w, const float *bias, float *y) {
    const size_t depth = g->depth;
    for (size_t r = 0; r < g->rows; r++, x += g->x_row) {
        const float *row = w;
        for (size_t m = 0; m < g->outputs; m++, row += depth) {
            vf a = v_set(0.0f), b = a, c = a, d = a;
            size_t k = 0;
            for (; k + 4 * V_LANES <= depth; k += 4 * V_LANES) {
                a = v_fma(v_load(x + k), v_load(row + k), a);
                b = v_fma(v_load(x + k + V_LANES), v_load(row + k + V_LANES), b);
                c = v_fma(v_load(x + k + 2 * V_LANES), v_load(row + k + 2 * V_LANES), c);
                d = v_fma(v_load(x + k + 3 * V_LANES), v_load(row + k + 3 * V_LANES), d);
            }
            for (; k + V_LANES <= depth; k += V_LANES) a = v_fma(v_load(x + k), v_load(row + k), a);
            if (k < depth) b = v_fma(v_load_part(x + k, depth - k), v_load_part(row + k, depth - k), b);
            float total = v_sum((a + b) + (c + d)) + (bias ? bias[m] : 0.0f);
            if (g->relu && total < 0.0f) total = 0.0f;
            y[r * g->y_row + m * g->y_output] = total;
        }
    }
}
