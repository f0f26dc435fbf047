/* SPDX-License-Identifier: Apache-2.0
 *
 * Free blocks in order of (stream, size, address), to find the best fit: a treap, whose links are in the blocks. */
#ifndef RONDO_SRC_MEMORY_TREE_H
#define RONDO_SRC_MEMORY_TREE_H

#include "memory/cache.h"

/* `priority` is random. */
void rondo__tree_insert(rondo__block **root, rondo__block *block, uint32_t priority);
/* It is there. */
void rondo__tree_remove(rondo__block **root, rondo__block *block);
/* The first block of the stream that has at least the size; null when there is none. */
rondo__block *rondo__tree_best(rondo__block *root, uint64_t stream, uint64_t size);
bool rondo__tree_has(const rondo__block *root, const rondo__block *block);

#endif
