/* SPDX-License-Identifier: Apache-2.0
 *
 * XXH3 with 64 bits, compiled into hash.c and hash_wide.c alone: no other file sees the library's header, and nothing links to it. */
#ifndef RONDO_SRC_ARTIFACT_HASH_H
#define RONDO_SRC_ARTIFACT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for the library's state, which hash.c checks to be enough. */
typedef struct rondo__hash {
    _Alignas(64) uint8_t state[640];
} rondo__hash;

void rondo__hash_init(rondo__hash *hash);
void rondo__hash_add(rondo__hash *hash, const void *data, size_t bytes);
uint64_t rondo__hash_value(const rondo__hash *hash);
/* XXH3 of a block, in half the time. False: this machine has no wider vectors, and nothing was done. */
bool rondo__hash_wide(const void *data, size_t bytes, uint64_t *out_sum);

#endif
