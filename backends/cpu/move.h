/* SPDX-License-Identifier: Apache-2.0
 *
 * Strided copies: what slicing, splitting, joining, transposing, padding and expanding all are. */
#ifndef RONDO_BACKENDS_CPU_MOVE_H
#define RONDO_BACKENDS_CPU_MOVE_H

#include "planner.h"

typedef struct rondo__cpu_move_level {
    uint64_t count;
    int64_t from, to; /* bytes */
} rondo__cpu_move_level;

/* One copy: runs of `run` contiguous bytes over up to RONDO_RANK_MAX levels. */
typedef struct rondo__cpu_move {
    void (*rows)(const struct rondo__cpu_move *move, const unsigned char *from, unsigned char *to);
    uint64_t run;
    rondo__cpu_move_level inner; /* rows walks it; count 0: nothing to do */
    int64_t from_at, to_at;
    uint32_t from_word, to_word;
    uint32_t levels;
    uint32_t reserved;
    rondo__cpu_turn_loop turn;                   /* of rondo__cpu_move_turn */
    rondo__cpu_move_level level[RONDO_RANK_MAX]; /* inner to outer */
} rondo__cpu_move;

/* Describes the copy of elements of `size` bytes over `rank` dims (outer to inner) with strides in elements. Neighbours
 * that continue each other on both sides are merged. */
void rondo__cpu_move_shape(rondo__cpu_move *move, uint64_t size, int32_t rank, const int64_t *dims,
                           const int64_t *from_strides, const int64_t *to_strides);
/* Where the two innermost levels transpose a whole matrix of 4-byte elements, that becomes one step. */
void rondo__cpu_move_turn(rondo__cpu_move *move, rondo__cpu_turn_loop turn);
void rondo__cpu_move_do(const rondo__cpu_move *move, const unsigned char *from, unsigned char *to);
/* Compact row-major strides in elements. */
void rondo__cpu_move_compact(int32_t rank, const int64_t *dims, int64_t *out_strides);

#endif
