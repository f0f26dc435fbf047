/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges of addresses, to be asked which of them touch a given one: a treap by base, in which each node knows the highest
 * end below it. Adding, removing and asking visit some dozen nodes however many there are. */
#include "sim.h"

#include <stddef.h>

/* splitmix64, apart from the device's own numbers: looking after ranges changes no order of work. */
static uint32_t span_random(rondo__sim_spans *spans) {
    uint64_t z = (spans->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(z >> 32);
}

/* Ranges may begin at the same address: then the node's own address decides. */
static bool span_is_before(const rondo__sim_span *one, const rondo__sim_span *two) {
    return one->base != two->base ? one->base < two->base : (uintptr_t)one < (uintptr_t)two;
}

static void span_update(rondo__sim_span *span) {
    span->highest = span->end;
    if (span->left && span->left->highest > span->highest) span->highest = span->left->highest;
    if (span->right && span->right->highest > span->highest) span->highest = span->right->highest;
}

/* What comes before `key` goes to the left. */
static void span_split(rondo__sim_spans *spans, rondo__sim_span *root, const rondo__sim_span *key,
                       rondo__sim_span **out_left, rondo__sim_span **out_right) {
    if (!root) {
        *out_left = *out_right = NULL;
        return;
    }
    spans->steps++;
    if (span_is_before(root, key)) {
        span_split(spans, root->right, key, &root->right, out_right);
        *out_left = root;
    } else {
        span_split(spans, root->left, key, out_left, &root->left);
        *out_right = root;
    }
    span_update(root);
}

static rondo__sim_span *span_merge(rondo__sim_spans *spans, rondo__sim_span *left, rondo__sim_span *right) {
    if (!left || !right) return left ? left : right;
    spans->steps++;
    if (left->priority > right->priority) {
        left->right = span_merge(spans, left->right, right);
        span_update(left);
        return left;
    }
    right->left = span_merge(spans, left, right->left);
    span_update(right);
    return right;
}

static rondo__sim_span *span_insert(rondo__sim_spans *spans, rondo__sim_span *root, rondo__sim_span *span) {
    if (!root || span->priority > root->priority) {
        span_split(spans, root, span, &span->left, &span->right);
        span_update(span);
        return span;
    }
    spans->steps++;
    if (span_is_before(root, span)) root->right = span_insert(spans, root->right, span);
    else root->left = span_insert(spans, root->left, span);
    span_update(root);
    return root;
}

static rondo__sim_span *span_remove(rondo__sim_spans *spans, rondo__sim_span *root, const rondo__sim_span *span) {
    spans->steps++;
    if (root == span) return span_merge(spans, root->left, root->right);
    if (span_is_before(root, span)) root->right = span_remove(spans, root->right, span);
    else root->left = span_remove(spans, root->left, span);
    span_update(root);
    return root;
}

void rondo__sim_span_add(rondo__sim_spans *spans, rondo__sim_span *span) {
    span->priority = span_random(spans);
    spans->root = span_insert(spans, spans->root, span);
}

void rondo__sim_span_remove(rondo__sim_spans *spans, const rondo__sim_span *span) {
    spans->root = span_remove(spans, spans->root, span);
}

/* Where something on the left ends behind `base`, either one there touches the range, or it begins behind its end, and
 * so does all that comes later. */
rondo__sim_span *rondo__sim_span_first(rondo__sim_spans *spans, uint64_t base, uint64_t end) {
    rondo__sim_span *span = spans->root;
    while (span) {
        spans->steps++;
        if (span->left && span->left->highest > base) {
            span = span->left;
        } else if (span->base >= end) {
            return NULL;
        } else if (span->end > base) {
            return span;
        } else {
            span = span->right;
        }
    }
    return NULL;
}
