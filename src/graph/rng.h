/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers. A generator is a seed and an offset into the seed's row of 32-bit numbers, those of Philox4x32-10:
 * number n is word n % 4 of block n / 4, the key is the seed. Whoever takes numbers takes a multiple of 4.
 *
 * In a capture a fill knows only its place within what the graph takes; seed and offset it reads from two cells, which
 * each replay writes before the list runs. */
#ifndef RONDO_SRC_GRAPH_RNG_H
#define RONDO_SRC_GRAPH_RNG_H

#include "device/device.h"

struct rondo_generator {
    rondo__ref_count references;
    rondo_device *device; /* retained */
    rondo__mutex mutex;   /* the rest */
    uint64_t seed, offset;
    uint64_t captures; /* in progress that use it */
};

/* A generator that a graph uses. */
typedef struct rondo__rng_use {
    rondo_generator *generator; /* retained */
    uint64_t cells;             /* device memory of 16 bytes: seed, offset */
    uint64_t total;             /* what a replay takes */
    uint64_t seed, offset;      /* where the last replay started */
    bool capturing;
} rondo__rng_use;

/* Words of a fill: out, count, then the place where seed and offset are, and the offset from there; or both themselves. */
enum { RONDO__RNG_OUT = 0, RONDO__RNG_COUNT = 1, RONDO__RNG_CELLS = 2, RONDO__RNG_OFFSET = 3, RONDO__RNG_FORM = 4 };
#define RONDO__RNG_WORDS 5u
#define RONDO__RNG_CELLS_BYTES 16u

void rondo__rng_philox(uint64_t block, uint64_t seed, uint32_t out[4]);
/* Whether it is a fill that reads cells. */
bool rondo__rng_is_captured(rondo_kernel kernel);
/* How many numbers a fill of so many elements takes. OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo__rng_taken(rondo_distribution distribution, uint64_t count, uint64_t *out_taken);
/* The call of a fill. `place` is the seed, or the cells. */
void rondo__rng_call(rondo_distribution distribution, bool captured, uint64_t out, uint64_t count, uint64_t place,
                     uint64_t offset, float a, float b, rondo_argument arguments[RONDO__RNG_WORDS], rondo_call *call);
/* INVALID_ARGUMENT for what is no distribution or no parameter of it. */
RONDO_MUST_USE rondo_status rondo__rng_check(rondo_distribution distribution, float a, float b);
/* Bytes of an element. */
uint32_t rondo__rng_element(rondo_distribution distribution);

#endif
