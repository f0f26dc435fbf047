/* SPDX-License-Identifier: Apache-2.0
 *
 * A native device for trees: what rondo_graph_ops asks for, over pools, checkpoints, streams and graphs. */
#include <stdlib.h>
#include <string.h>

#include "base/sized.h"
#include "graph/graph.h"
#include "memory/checkpoint.h"
#include "tree/native/native.h"

typedef struct native_ops {
    rondo_device *device; /* retained */
    rondo__mutex mutex;   /* event: trees of several contexts may have one device */
    rondo_event *event;
} native_ops;

static rondo_device *native_device(void *user) { return ((native_ops *)user)->device; }

static bool native_supported(void *user) {
    const uint32_t needed = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE;
    return (native_device(user)->properties.capabilities & needed) == needed;
}

static bool native_caching(void *user) {
    (void)user;
    return true; /* Rondo's devices have no other */
}

/* -------------------------------------------------------------------------------------------------------- pools */

static rondo_status native_pool_handle(void *user, rondo_pool_id *out_pool) {
    *out_pool = rondo_pool_handle(native_device(user)->instance);
    return RONDO_OK;
}

/* Captures divert pinned host memory to a pool of the same id, which has to last as long as this one: else its id would be
 * used up with the first recording that is dropped. So each use of the one is a use of the other. */
static rondo_status native_pool_begin(void *user, rondo_pool_id pool) {
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_device *device = native_device(user);
    filter.kind = RONDO_MEMORY_FILTER_THREAD;
    RONDO__TRY(rondo_memory_pool_begin(device, pool, &filter));
    rondo_status status = rondo__memory_pinned_begin(device->memory, pool, &filter);
    if (!status) return rondo__memory_pinned_end(device->memory, pool); /* the use stays */
    RONDO__IGNORE(rondo_memory_pool_end(device, pool));
    RONDO__IGNORE(rondo_memory_pool_release(device, pool));
    return status;
}

static rondo_status native_pool_end(void *user, rondo_pool_id pool) {
    return rondo_memory_pool_end(native_device(user), pool);
}

static rondo_status native_pool_release(void *user, rondo_pool_id pool) {
    rondo_device *device = native_device(user);
    RONDO__TRY(rondo_memory_pool_release(device, pool));
    return rondo__memory_pinned_release(device->memory, pool);
}

static rondo_status native_pool_bytes(void *user, rondo_pool_id pool, uint64_t *out_reserved, uint64_t *out_allocated) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    RONDO__TRY(rondo_memory_get_statistics(native_device(user), pool, &statistics));
    *out_reserved = statistics.reserved_bytes;
    *out_allocated = statistics.allocated_bytes;
    return RONDO_OK;
}

static rondo_status native_pool_trim(void *user, rondo_pool_id pool, void *const *states, uint64_t count) {
    return rondo__memory_pool_trim(native_device(user)->memory, pool,
                                   (const rondo_memory_checkpoint *const *)(const void *)states, count);
}

static uint64_t native_pool_snapshot(void *user, rondo_pool_id pool, rondo_tree_block *blocks, uint64_t *bytes,
                                     uint64_t capacity) {
    uint64_t count = 0, from = 0, address = 0, size = 0;
    for (; rondo__memory_pool_next(native_device(user)->memory, pool, from, &address, &size); from = address + 1u) {
        if (blocks && count < capacity) blocks[count] = (rondo_tree_block){address, NULL};
        if (bytes && count < capacity) bytes[count] = size;
        count++;
    }
    return count;
}

static rondo_status native_pool_live(void *user, rondo_pool_id pool, const uint64_t *expected, uint64_t count,
                                     bool *out_equal) {
    rondo_device *device = native_device(user);
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&device->allocator, count, sizeof(void *), &memory));
    const void **pointers = memory;
    for (uint64_t i = 0; i < count; i++) pointers[i] = (const void *)(uintptr_t)expected[i];
    rondo_status status = rondo_memory_pool_live(device, pool, pointers, count, out_equal);
    rondo__free(&device->allocator, memory, count * sizeof(void *));
    return status;
}

/* A block of a stream is free at once: whoever gets it next is behind what used it. */
static rondo_status native_raw_delete(void *user, uint64_t pointer) {
    return rondo_memory_free(native_device(user), (void *)(uintptr_t)pointer);
}

/* -------------------------------------------------------------------------------------------------- checkpoints */

static rondo_status native_get_state(void *user, rondo_pool_id pool, void **out_state) {
    rondo_memory_checkpoint *checkpoint = NULL;
    RONDO__TRY(rondo_memory_checkpoint_create(native_device(user), pool, &checkpoint));
    *out_state = checkpoint;
    return RONDO_OK;
}

static void native_release_state(void *user, void *state) {
    (void)user;
    rondo_memory_checkpoint_release(state);
}

static int native_compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The first of the list that is not below the address. */
static uint64_t native_first(const uint64_t *sorted, uint64_t count, uint64_t address) {
    uint64_t low = 0;
    while (low < count) {
        uint64_t middle = low + (count - low) / 2u;
        if (sorted[middle] < address) low = middle + 1u;
        else count = middle;
    }
    return low;
}

/* The state's blocks that are alive in it: how many of them are in the list; those that are not are freed, if asked to.
 * Blocks of a segment and the list are both in order of address. */
static uint64_t native_match(rondo_device *device, const rondo_memory_checkpoint *state, const uint64_t *sorted,
                             uint64_t count, bool free_others) {
    uint64_t matches = 0;
    for (uint64_t i = 0; i < state->segment_count; i++) {
        const rondo__saved_segment *segment = &state->segments[i];
        uint64_t at = segment->base, next = native_first(sorted, count, at);
        for (uint64_t b = 0; b < segment->count; at += segment->blocks[b++].size) {
            if (!segment->blocks[b].live) continue;
            while (next < count && sorted[next] < at) next++;
            if (next < count && sorted[next] == at) matches++;
            else if (free_others) RONDO__IGNORE(rondo_memory_free(device, (void *)(uintptr_t)at));
        }
    }
    return matches;
}

/* Outputs of one recording were mostly made in order of address. */
static void native_sort(uint64_t *addresses, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        if (addresses[i - 1u] <= addresses[i]) continue;
        qsort(addresses, (size_t)count, sizeof *addresses, native_compare);
        return;
    }
}

static rondo_status native_not_alive(rondo_device *device, const rondo_memory_checkpoint *state, const uint64_t *sorted,
                                     uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        bool twice = i && sorted[i] == sorted[i - 1u];
        if (!twice && native_match(device, state, &sorted[i], 1, false)) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "block 0x%llx, which a storage lives on, is %s",
                           (unsigned long long)sorted[i], twice ? "named twice" : "not alive in the layout");
    }
    return RONDO__FAIL(INTERNAL, TREE, "the layout names a block twice");
}

static rondo_status native_restore(rondo_device *device, rondo_memory_checkpoint *state, const uint64_t *sorted,
                                   uint64_t count) {
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    if (native_match(device, state, sorted, count, false) != count)
        return native_not_alive(device, state, sorted, count);
    RONDO__TRY(rondo_memory_checkpoint_restore(state, &delta));
    rondo_memory_delta_release(device, &delta);
    if (state->live != count) (void)native_match(device, state, sorted, count, true);
    return RONDO_OK;
}

/* `dead` is what the tree knows of the blocks that are freed; there may be more. */
static rondo_status native_set_state(void *user, rondo_pool_id pool, void *state, const rondo_tree_block *live,
                                     uint64_t live_count, const uint64_t *dead, uint64_t dead_count) {
    rondo_device *device = native_device(user);
    rondo_memory_checkpoint *checkpoint = state;
    void *memory = NULL;
    (void)dead;
    (void)dead_count;
    if (!checkpoint || checkpoint->pool.automatic != pool.automatic || checkpoint->pool.user != pool.user) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "the layout is not one of pool {%llu, %llu}",
                           (unsigned long long)pool.automatic, (unsigned long long)pool.user);
    }
    RONDO__TRY(rondo__allocate_array(&device->allocator, live_count, sizeof(uint64_t), &memory));
    uint64_t *sorted = memory;
    for (uint64_t i = 0; i < live_count; i++) sorted[i] = live[i].pointer;
    native_sort(sorted, live_count);
    rondo_status status = native_restore(device, checkpoint, sorted, live_count);
    rondo__free(&device->allocator, memory, live_count * sizeof(uint64_t));
    return status;
}

/* ------------------------------------------------------------------------------------------------------ streams */

static rondo_status native_create_stream(void *user, void **out_stream) {
    rondo_stream *stream = NULL;
    RONDO__TRY(rondo_stream_create(native_device(user), NULL, &stream));
    *out_stream = stream;
    return RONDO_OK;
}

static void native_retain_stream(void *user, void *stream) {
    (void)user;
    rondo_stream_retain(stream);
}

static void native_release_stream(void *user, void *stream) {
    (void)user;
    rondo_stream_release(stream);
}

static rondo_status native_stream_wait(void *user, void *stream, void *other) {
    native_ops *ops = user;
    bool records = rondo__stream_recorder(stream) || rondo__stream_recorder(other);
    if (stream == other || (rondo__device_is_inline(ops->device) && !records)) return RONDO_OK; /* it has finished */
    rondo__mutex_lock(&ops->mutex);
    rondo_status status = rondo_event_record(ops->event, other);
    if (!status) status = rondo_event_wait(ops->event, stream);
    rondo__mutex_unlock(&ops->mutex);
    return status;
}

static rondo_status native_synchronize(void *user, void *stream) {
    (void)user;
    return rondo_stream_synchronize(stream);
}

/* ------------------------------------------------------------------------------------------------------- graphs */

static rondo_status native_create_graph(void *user, const char *name, void **out_graph) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_graph *graph = NULL;
    options.name = name;
    RONDO__TRY(rondo_graph_create(native_device(user), &options, &graph));
    rondo__graph_manage(graph);
    *out_graph = graph;
    return RONDO_OK;
}

static rondo_status native_capture_begin(void *user, void *graph, void *stream, rondo_pool_id pool,
                                         rondo_capture_mode mode) {
    (void)user;
    return rondo_graph_capture_begin(graph, stream, pool, mode);
}

static rondo_status native_capture_end(void *user, void *graph, void *stream, rondo_tree_graph_facts *out_facts) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    (void)user;
    RONDO__TRY(rondo_graph_capture_end(graph, stream));
    RONDO__TRY(rondo_graph_get_info(graph, &info));
    *out_facts = (rondo_tree_graph_facts){info.nodes, info.bytes, info.opaque, 0};
    return RONDO_OK;
}

static void native_abort(void *user, void *graph) {
    (void)user;
    RONDO__IGNORE(rondo_graph_abort(graph)); /* there may be no capture any more */
}

static rondo_status native_replay(void *user, void *graph, void *stream) {
    (void)user;
    return rondo_graph_replay(graph, stream);
}

static void native_release_graph(void *user, void *graph) {
    (void)user;
    rondo_graph_release(graph);
}

static rondo_status native_declare_slot(void *user, void *graph, uint32_t slot, uint64_t address, uint64_t bytes) {
    (void)user;
    return rondo_graph_declare_slot(graph, slot, (void *)(uintptr_t)address, bytes, RONDO_ACCESS_BOTH,
                                    RONDO_SLOT_REBIND);
}

static rondo_status native_bind(void *user, void *graph, uint32_t slot, uint64_t address) {
    (void)user;
    return rondo__graph_bind(graph, slot, address);
}

rondo_status rondo__native_copy(rondo_stream *stream, const rondo_tree_copy *copies, uint64_t count) {
    if (!rondo__device_is_inline(stream->device) || rondo__stream_recorder(stream)) {
        for (uint64_t i = 0; i < count; i++) {
            RONDO__TRY(rondo_stream_copy(stream, (void *)(uintptr_t)copies[i].destination,
                                         (const void *)(uintptr_t)copies[i].source, copies[i].bytes,
                                         RONDO_COPY_DEVICE_TO_DEVICE));
        }
        return RONDO_OK;
    }
    /* Nothing is in flight and nobody records: each goes straight to the backend. */
    rondo_status (*copy)(void *, uint64_t, uint64_t, uint64_t, rondo_copy_kind) = stream->device->table->stream->copy;
    for (uint64_t i = 0; i < count; i++) {
        if (!copies[i].bytes) continue;
        RONDO__TRY(copy(stream->handle, copies[i].destination, copies[i].source, copies[i].bytes,
                        RONDO_COPY_DEVICE_TO_DEVICE));
    }
    return RONDO_OK;
}

static rondo_status native_copy(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count) {
    (void)user;
    return rondo__native_copy(stream, copies, count);
}

/* -------------------------------------------------------------------------------------------------------- table */

static void native_destroy(void *user) {
    native_ops *ops = user;
    rondo_device *device = ops->device;
    rondo_allocator allocator = device->allocator;
    rondo_event_release(ops->event);
    rondo__mutex_deinit(&ops->mutex);
    rondo__free(&allocator, ops, sizeof *ops);
    rondo_device_release(device);
}

static rondo_graph_ops native_table(native_ops *ops) {
    bool is_inline = rondo__device_is_inline(ops->device);
    return (rondo_graph_ops){.struct_size = sizeof(rondo_graph_ops),
                             .flags = RONDO_GRAPH_OPS_CHILD_GRAPHS | (is_inline ? RONDO_GRAPH_OPS_REBIND : 0u),
                             .user = ops,
                             .is_graph_capture_supported = native_supported,
                             .caching_allocator_enabled = native_caching,
                             .graph_pool_handle = native_pool_handle,
                             .begin_allocate_current_thread_to_pool = native_pool_begin,
                             .end_allocate_to_pool = native_pool_end,
                             .release_pool = native_pool_release,
                             .get_checkpoint_state = native_get_state,
                             .release_checkpoint_state = native_release_state,
                             .set_checkpoint_pool_state = native_set_state,
                             .check_pool_live_allocations = native_pool_live,
                             .raw_delete = native_raw_delete,
                             .pool_bytes = native_pool_bytes,
                             .trim_pool = native_pool_trim,
                             .memory_snapshot = native_pool_snapshot,
                             .create_stream = native_create_stream,
                             .retain_stream = native_retain_stream,
                             .release_stream = native_release_stream,
                             .stream_wait = native_stream_wait,
                             .synchronize = native_synchronize,
                             .create_graph = native_create_graph,
                             .capture_begin = native_capture_begin,
                             .capture_end = native_capture_end,
                             .abort = native_abort,
                             .replay = native_replay,
                             .release_graph = native_release_graph,
                             .declare_slot = native_declare_slot,
                             .bind = native_bind,
                             .copy = native_copy,
                             .destroy = native_destroy};
}

rondo_status rondo_graph_ops_native(rondo_device *device, rondo_graph_ops *out_ops) {
    void *memory = NULL;
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_graph_ops_native: the device is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_graph_ops", out_ops));
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(native_ops), &memory));
    native_ops *ops = memory;
    rondo_status status = rondo_event_create(device, &ops->event);
    if (status) {
        rondo__free(&device->allocator, ops, sizeof *ops);
        return status;
    }
    ops->device = device;
    rondo_device_retain(device);
    rondo__mutex_init(&ops->mutex);
    rondo_graph_ops table = native_table(ops);
    rondo__sized_write(&table, sizeof table, out_ops);
    return RONDO_OK;
}
