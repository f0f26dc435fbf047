/* SPDX-License-Identifier: Apache-2.0
 *
 * One LSTM step: a block of eight vectors carries the four gates of two vectors of units through the product, and the
 * cell is updated while they are still in registers. */
#include "kernels.h"
#include "vmath.h"

enum { LSTM_VECTORS = 8, LSTM_UNITS = 2 * V_LANES, LSTM_COLUMNS = LSTM_VECTORS * V_LANES };

V_INLINE const float *lstm_product(vf *gate, const float *w, const float *x, size_t depth) {
    for (size_t k = 0; k < depth; k++, w += LSTM_COLUMNS) {
        const vf one = v_set(x[k]);
        V_UNROLL
        for (size_t i = 0; i < LSTM_VECTORS; i++) gate[i] = v_fma(v_load(w + i * V_LANES), one, gate[i]);
    }
    return w;
}

void V_NAME(lstm)(const rondo__cpu_lstm_size *size, const float *packed, const float *x, const float *h, const float *c,
                  float *out_h, float *out_c) {
    const size_t hidden = size->hidden;
    const size_t blocks = (hidden + LSTM_UNITS - 1) / LSTM_UNITS;
    const float *bias = packed, *w = packed + blocks * LSTM_COLUMNS;
    for (size_t unit = 0; unit < hidden; unit += LSTM_UNITS, bias += LSTM_COLUMNS) {
        vf gate[LSTM_VECTORS];
        V_UNROLL
        for (size_t i = 0; i < LSTM_VECTORS; i++) gate[i] = v_load(bias + i * V_LANES);
        w = lstm_product(gate, w, x, size->input);
        w = lstm_product(gate, w, h, hidden);
        V_UNROLL
        for (size_t i = 0; i < 2; i++) {
            const size_t at = unit + i * V_LANES;
            const size_t left = at < hidden ? hidden - at : 0;
            if (left == 0) break;
            vf before = left >= V_LANES ? v_load(c + at) : v_load_part(c + at, left);
            vf cell = v_sigmoid(gate[4 + i]) * before + v_sigmoid(gate[i]) * v_tanh(gate[6 + i]);
            vf out = v_sigmoid(gate[2 + i]) * v_tanh(cell);
            if (left >= V_LANES) {
                v_store(out_c + at, cell);
                v_store(out_h + at, out);
            } else {
                v_store_part(out_c + at, cell, left);
                v_store_part(out_h + at, out, left);
            }
        }
    }
}
