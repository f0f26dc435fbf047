/* SPDX-License-Identifier: Apache-2.0
 *
 * The treap: a search tree by (stream, size, address), a heap by random priorities, hence about balanced whatever the
 * order in which blocks come and go. Neither inserting nor removing can fail. */
#include "memory/tree.h"

/* Whether the block at `node` comes before (stream, size, base). */
static inline bool tree_before(const rondo__block *node, uint64_t stream, uint64_t size, uint64_t base) {
    if (node->stream != stream) return node->stream < stream;
    if (node->size != size) return node->size < size;
    return node->allocation.base < base;
}

void rondo__tree_insert(rondo__block **root, rondo__block *block, uint32_t priority) {
    uint64_t stream = block->stream, size = block->size, base = block->allocation.base;
    rondo__block **link = root;
    while (*link && (*link)->priority >= priority) {
        link = tree_before(*link, stream, size, base) ? &(*link)->right : &(*link)->left;
    }
    /* What hangs here goes under the new block, cut in two. */
    rondo__block *rest = *link, **below = &block->left, **above = &block->right;
    block->priority = priority;
    *link = block;
    while (rest) {
        if (tree_before(rest, stream, size, base)) {
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

void rondo__tree_remove(rondo__block **root, rondo__block *block) {
    rondo__block **link = root, *left = block->left, *right = block->right;
    while (*link != block) {
        bool before = tree_before(*link, block->stream, block->size, block->allocation.base);
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

rondo__block *rondo__tree_best(rondo__block *root, uint64_t stream, uint64_t size) {
    rondo__block *best = NULL;
    while (root) {
        if (tree_before(root, stream, size, 0)) {
            root = root->right;
        } else {
            best = root;
            root = root->left;
        }
    }
    return best && best->stream == stream ? best : NULL;
}

bool rondo__tree_has(const rondo__block *root, const rondo__block *block) {
    while (root && root != block) {
        bool before = tree_before(root, block->stream, block->size, block->allocation.base);
        root = before ? root->right : root->left;
    }
    return root != NULL;
}
