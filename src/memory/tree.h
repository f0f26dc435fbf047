/* SPDX-License-Identifier: Apache-2.0
 *
 * Free blocks in order of (stream, size, address), to find the best fit. A treap, whose links are in the blocks: a search
 * tree by that order, a heap by random priorities, hence about balanced whatever comes and goes. Neither inserting nor
 * removing can fail. Inline, for each allocation passes here a few times. */
#ifndef RONDO_SRC_MEMORY_TREE_H
#define RONDO_SRC_MEMORY_TREE_H

#include "memory/cache.h"

/* Whether the block at `node` comes before (stream, size, base). */
static inline bool rondo__tree_before(const rondo__block *node, uint64_t stream, uint64_t size, uint64_t base) {
    if (node->stream != stream) return node->stream < stream;
    if (node->size != size) return node->size < size;
    return node->allocation.base < base;
}

/* `priority` is random. */
static inline void rondo__tree_insert(rondo__block **root, rondo__block *block, uint32_t priority) {
    uint64_t stream = block->stream, size = block->size, base = block->allocation.base;
    rondo__block **link = root;
    while (*link && (*link)->priority >= priority) {
        link = rondo__tree_before(*link, stream, size, base) ? &(*link)->right : &(*link)->left;
    }
    /* What hangs here goes under the new block, cut in two. */
    rondo__block *rest = *link, **below = &block->left, **above = &block->right;
    block->priority = priority;
    *link = block;
    while (rest) {
        if (rondo__tree_before(rest, stream, size, base)) {
            *below = rest;
            below = &rest->right;
            rest = rest->right;
        } else {
            *above = rest;
            above = &rest->left;
            rest = rest->left;
        }
    }
    *below = *above = NULL;
}

/* It is there. */
static inline void rondo__tree_remove(rondo__block **root, rondo__block *block) {
    rondo__block **link = root, *left = block->left, *right = block->right;
    while (*link != block) {
        bool before = rondo__tree_before(*link, block->stream, block->size, block->allocation.base);
        link = before ? &(*link)->right : &(*link)->left;
    }
    while (left && right) {
        if (left->priority >= right->priority) {
            *link = left;
            link = &left->right;
            left = left->right;
        } else {
            *link = right;
            link = &right->left;
            right = right->left;
        }
    }
    *link = left ? left : right;
    block->left = block->right = NULL;
}

/* The first block of the stream at or after (size, base); null when there is none. */
static inline rondo__block *rondo__tree_from(rondo__block *root, uint64_t stream, uint64_t size, uint64_t base) {
    rondo__block *best = NULL;
    while (root) {
        if (rondo__tree_before(root, stream, size, base)) {
            root = root->right;
        } else {
            best = root;
            root = root->left;
        }
    }
    return best && best->stream == stream ? best : NULL;
}

/* The one that fits the size best. */
static inline rondo__block *rondo__tree_best(rondo__block *root, uint64_t stream, uint64_t size) {
    return rondo__tree_from(root, stream, size, 0);
}

/* A whole tree of blocks in order, in linear time. Each gets the priority that is to be expected of the first among as
 * many random ones as there are below it, so that later blocks find their places as in any other tree. */
static inline rondo__block *rondo__tree_build(rondo__block *const *blocks, size_t count) {
    if (!count) return NULL;
    size_t middle = count / 2u;
    rondo__block *root = blocks[middle];
    root->priority = UINT32_MAX - UINT32_MAX / (uint32_t)(count < UINT32_MAX ? count + 1u : UINT32_MAX);
    root->left = rondo__tree_build(blocks, middle);
    root->right = rondo__tree_build(blocks + middle + 1u, count - middle - 1u);
    return root;
}

static inline bool rondo__tree_has(const rondo__block *root, const rondo__block *block) {
    while (root && root != block) {
        bool before = rondo__tree_before(root, block->stream, block->size, block->allocation.base);
        root = before ? root->right : root->left;
    }
    return root != NULL;
}

#endif
