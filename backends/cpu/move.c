/* SPDX-License-Identifier: Apache-2.0
 *
 * Running strided copies. The innermost level has one loop a run length; whole matrices are transposed in
 * blocks. */
#include "move.h"

#include <string.h>

#define MOVE_ROWS(bytes)                                                                                       \
    static void move_rows_##bytes(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to) { \
        const int64_t step = move->inner.from, stride = move->inner.to;                                        \
        for (uint64_t n = move->inner.count; n > 0; n--, from += step, to += stride) memcpy(to, from, bytes);  \
    }

MOVE_ROWS(1)
MOVE_ROWS(2)
MOVE_ROWS(4)
MOVE_ROWS(8)
MOVE_ROWS(16)

static void move_rows_any(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to) {
    for (uint64_t n = move->inner.count; n > 0; n--, from += move->inner.from, to += move->inner.to) {
        memcpy(to, from, move->run);
    }
}

static void move_run_once(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to) {
    memcpy(to, from, move->run);
}

void rondo__cpu_move_compact(int32_t rank, const int64_t *dims, int64_t *out_strides) {
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        out_strides[d] = stride;
        if (__builtin_mul_overflow(stride, dims[d], &stride)) stride = 0;
    }
}

void rondo__cpu_move_shape(rondo__cpu_move *move, uint64_t size, int32_t rank, const int64_t *dims,
                           const int64_t *from_strides, const int64_t *to_strides) {
    rondo__cpu_move_level level[RONDO_RANK_MAX + 1];
    uint32_t levels = 0;
    int64_t run = (int64_t)size;
    bool empty = false;
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (dims[d] == 0) empty = true;
        if (dims[d] == 1) continue;
        const rondo__cpu_move_level next = {(uint64_t)dims[d], from_strides[d] * (int64_t)size,
                                            to_strides[d] * (int64_t)size};
        rondo__cpu_move_level *last = levels > 0 ? &level[levels - 1] : NULL;
        if (!last && next.from == run && next.to == run) {
            run *= dims[d];
        } else if (last && next.from == last->from * (int64_t)last->count &&
                   next.to == last->to * (int64_t)last->count) {
            last->count *= next.count;
        } else {
            level[levels++] = next;
        }
    }
    move->run = (uint64_t)run;
    move->inner = levels > 0 ? level[0] : (rondo__cpu_move_level){1, 0, 0};
    move->levels = levels > 0 ? levels - 1 : 0;
    for (uint32_t i = 0; i < move->levels; i++) move->level[i] = level[i + 1];
    if (empty) {
        move->inner.count = 0;
        move->levels = 0;
    }
    if (move->inner.count == 1) {
        move->rows = move_run_once;
        return;
    }
    switch (run) {
    case 1: move->rows = move_rows_1; break;
    case 2: move->rows = move_rows_2; break;
    case 4: move->rows = move_rows_4; break;
    case 8: move->rows = move_rows_8; break;
    case 16: move->rows = move_rows_16; break;
    default: move->rows = move_rows_any; break;
    }
}

/* inner.count columns come from rows of inner.from bytes. */
static void move_rows_turn(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to) {
    move->turn((const float *)(const void *)from, (float *)(void *)to, move->inner.count, (size_t)move->inner.from / 4,
               0, 0);
}

void rondo__cpu_move_turn(rondo__cpu_move *move, rondo__cpu_turn_loop turn) {
    const rondo__cpu_move_level inner = move->inner, outer = move->level[0];
    if (move->levels == 0 || move->run != 4 || inner.to != 4 || outer.from != 4 ||
        inner.from != 4 * (int64_t)outer.count || outer.to != 4 * (int64_t)inner.count)
        return;
    move->turn = turn;
    move->rows = move_rows_turn;
    move->levels--;
    for (uint32_t i = 0; i < move->levels; i++) move->level[i] = move->level[i + 1];
}

void rondo__cpu_move_do(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to) {
    uint64_t done[RONDO_RANK_MAX];
    if (move->levels == 0) {
        move->rows(move, from, to);
        return;
    }
    memset(done, 0, move->levels * sizeof *done);
    for (uint32_t at = 0; at < move->levels;) {
        move->rows(move, from, to);
        for (at = 0; at < move->levels; at++) {
            const rondo__cpu_move_level *level = &move->level[at];
            from += level->from;
            to += level->to;
            if (++done[at] < level->count) break;
            from -= level->from * (int64_t)level->count;
            to -= level->to * (int64_t)level->count;
            done[at] = 0;
        }
    }
}
