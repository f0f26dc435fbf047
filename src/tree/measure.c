/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose the bytes of a tree's pool are: ranges of addresses, counted. A byte may be of many recordings, since those that
 * never run in one path use the same memory; that is what one pool for all is for. */
#include <stdlib.h>

#include "tree/report.h"
#include "tree/simple.h"

typedef struct measure_range {
    uint64_t begin, end;
} measure_range;

static int measure_by_begin(const void *a, const void *b) {
    const measure_range *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : 0;
}

static int measure_by_number(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x != y ? (x < y ? -1 : 1) : 0;
}

static rondo_status measure_add(rondo__buffer *ranges, uint64_t begin, uint64_t bytes, uint64_t *sum) {
    const measure_range range = {begin, begin + bytes};
    *sum += bytes;
    return rondo__buffer_append(ranges, &range, 1);
}

static rondo_status measure_add_node(rondo__buffer *ranges, const rondo__tree_node *node, uint64_t *sum) {
    for (uint32_t i = 0; i < node->moving_count; i++) {
        if (node->moving[i].bound) continue;
        RONDO__TRY(measure_add(ranges, node->moving[i].destination, node->moving[i].bytes, sum));
    }
    for (uint32_t i = 0; node->group && i < node->group->count; i++) {
        RONDO__TRY(measure_add(ranges, node->group->leases[i].pointer, node->group->leases[i].bytes, sum));
    }
    return RONDO_OK;
}

/* Bytes that lie in at least one range, and in at least two. Those of one recording are apart. */
static rondo_status measure_cover(rondo__buffer *buffer, uint64_t *out_once, uint64_t *out_twice) {
    measure_range *ranges = buffer->data;
    const size_t count = buffer->count;
    rondo__buffer ends;
    *out_once = *out_twice = 0;
    if (!count) return RONDO_OK;
    rondo__buffer_init(&ends, &buffer->allocator, sizeof(uint64_t), SIZE_MAX);
    RONDO__TRY(rondo__buffer_reserve(&ends, count));
    uint64_t *end = ends.data;
    for (size_t i = 0; i < count; i++) end[i] = ranges[i].end;
    qsort(end, count, sizeof *end, measure_by_number);
    qsort(ranges, count, sizeof *ranges, measure_by_begin);
    uint64_t depth = 0, at = ranges[0].begin;
    for (size_t b = 0, e = 0; e < count;) {
        const bool opens = b < count && ranges[b].begin < end[e];
        const uint64_t next = opens ? ranges[b].begin : end[e];
        if (depth) *out_once += next - at;
        if (depth > 1) *out_twice += next - at;
        at = next;
        depth += opens ? 1u : UINT64_MAX;
        b += opens;
        e += !opens;
    }
    rondo__buffer_deinit(&ends);
    return RONDO_OK;
}

static rondo_status measure_live(rondo_tree *tree, rondo__buffer *ranges, rondo__tree_memory *memory) {
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) {
        for (uint32_t i = 0; node->group && i < node->group->count; i++) {
            rondo_tree_lease *lease = &node->group->leases[i];
            if (!rondo__tree_live(tree, lease)) continue;
            RONDO__TRY(measure_add(ranges, lease->pointer, lease->bytes, &memory->live));
            memory->live_count++;
        }
    }
    return RONDO_OK;
}

static rondo_status measure_recordings(const rondo_tree *tree, rondo__buffer *ranges, rondo__tree_memory *memory) {
    uint64_t once = 0;
    for (size_t i = 0; i < tree->all.count; i++) {
        RONDO__TRY(measure_add_node(ranges, *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i), &memory->apart));
    }
    return measure_cover(ranges, &once, &memory->shared);
}

static rondo_status measure_pools(rondo_tree *tree, rondo__tree_memory *memory) {
    const rondo_graph_ops *ops = &tree->ops;
    if (!ops->pool_bytes) return RONDO_OK;
    memory->known = true;
    if (tree->pool.automatic || tree->pool.user) {
        RONDO__TRY(ops->pool_bytes(ops->user, tree->pool, &memory->reserved, &memory->allocated));
    }
    for (size_t i = 0; i < tree->functions.count; i++) {
        const rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        const rondo__tree_simple *s = function ? rondo__tree_simple_of(function) : NULL;
        uint64_t reserved = 0, allocated = 0;
        if (!s) continue;
        RONDO__TRY(ops->pool_bytes(ops->user, s->pool, &reserved, &allocated));
        memory->simple += reserved;
        memory->simple_count++;
    }
    return RONDO_OK;
}

rondo_status rondo__tree_measure(rondo_tree *tree, rondo__tree_memory *out_memory) {
    rondo__tree_memory memory = {0};
    rondo__buffer live, ranges;
    uint64_t all = 0, twice = 0;
    rondo__buffer_init(&live, &tree->allocator, sizeof(measure_range), SIZE_MAX);
    rondo__buffer_init(&ranges, &tree->allocator, sizeof(measure_range), SIZE_MAX);
    rondo_status status = measure_pools(tree, &memory);
    if (!status) status = measure_live(tree, &live, &memory);
    if (!status) status = measure_recordings(tree, &ranges, &memory);
    /* What is alive of a warm-up is of no recording. */
    if (!status) status = rondo__buffer_append(&ranges, live.data, live.count);
    if (!status) status = measure_cover(&ranges, &all, &twice);
    rondo__buffer_deinit(&live);
    rondo__buffer_deinit(&ranges);
    if (status) return status;
    memory.waiting = all - memory.live;
    if (memory.reserved > all) memory.rest = memory.reserved - all;
    *out_memory = memory;
    return RONDO_OK;
}

rondo__tree_bytes rondo__tree_node_bytes(const rondo__tree_node *node) {
    rondo__tree_bytes bytes = {.host = node->host_bytes};
    for (uint32_t i = 0; i < node->moving_count; i++) {
        if (!node->moving[i].bound) bytes.inputs += node->moving[i].bytes;
    }
    for (uint32_t i = 0; node->group && i < node->group->count; i++) bytes.outputs += node->group->leases[i].bytes;
    return bytes;
}
