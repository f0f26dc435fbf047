/* SPDX-License-Identifier: Apache-2.0
 *
 * The model device's table for trees: pools that can be brought back to a layout, graphs that are lists of calls. */
#ifndef RONDO_SRC_TREE_OPS_TESTING_H
#define RONDO_SRC_TREE_OPS_TESTING_H

#include "tree/device_testing.h"

/* ------------------------------------------------------------------------------------------------------- pools */

/* Pools that are in use, of any number. */
static inline uint64_t md_pools_used(const md_device *d) {
    uint64_t count = 0;
    for (uint64_t i = 1; i <= d->pool_count; i++) count += d->pools[i].made && !d->pools[i].over;
    return count;
}

static inline md_pool *md_pool_at(md_device *d, rondo_pool_id id) {
    return id.automatic || !id.user || id.user > d->pool_count ? NULL : &d->pools[id.user];
}

static inline rondo_status md_graph_pool_handle(void *user, rondo_pool_id *out_pool) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_POOL_HANDLE));
    md_lock(d);
    bool full = d->pool_count + 1u >= MD_POOLS;
    if (!full) *out_pool = (rondo_pool_id){0, ++d->pool_count};
    md_unlock(d);
    return full ? RONDO__FAIL(OUT_OF_RANGE, MEMORY, "no more pools") : RONDO_OK;
}

static inline rondo_status md_pool_use(md_device *d, rondo_pool_id id, bool by_thread) {
    md_pool *pool = md_pool_at(d, id);
    if (!pool || pool->over) return RONDO__FAIL(NOT_FOUND, MEMORY, "no such pool");
    if (pool->recording) return RONDO__FAIL(INVALID_STATE, MEMORY, "the pool is already recording");
    pool->made = pool->recording = true;
    pool->by_thread = by_thread;
    pool->thread = pthread_self();
    pool->uses++;
    return RONDO_OK;
}

static inline rondo_status md_pool_begin(void *user, rondo_pool_id id) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_POOL_BEGIN));
    md_lock(d);
    rondo_status status = md_pool_use(d, id, true);
    md_unlock(d);
    return status;
}

static inline rondo_status md_pool_end(void *user, rondo_pool_id id) {
    md_device *d = user;
    md_lock(d);
    md_pool *pool = md_pool_at(d, id);
    rondo_status status = RONDO_OK;
    if (!pool || !pool->recording || !pool->by_thread) {
        md_wrong(d, "a diversion was ended that had not begun");
        status = RONDO__FAIL(INVALID_STATE, MEMORY, "the pool is not recording");
    } else {
        pool->recording = false;
        status = tt_fault(d->faults, TT_FAULT_POOL_END);
    }
    md_unlock(d);
    return status;
}

/* Its segments go to ordinary memory, with what lives there. */
static inline void md_pool_unuse(md_device *d, uint64_t number) {
    md_pool *pool = &d->pools[number];
    if (--pool->uses) return;
    if (pool->recording) md_wrong(d, "a pool ended while it was recording");
    pool->over = true;
    for (md_segment *s = d->segments; s; s = s->next)
        if (s->pool == number) s->pool = 0;
}

static inline rondo_status md_release_pool(void *user, rondo_pool_id id) {
    md_device *d = user;
    md_lock(d);
    md_pool *pool = md_pool_at(d, id);
    rondo_status status = RONDO_OK;
    if (!pool || !pool->uses) {
        md_wrong(d, "a pool was released that is not in use");
        status = RONDO__FAIL(NOT_FOUND, MEMORY, "no such pool");
    } else {
        md_pool_unuse(d, id.user);
        status = tt_fault(d->faults, TT_FAULT_POOL_RELEASE);
    }
    md_unlock(d);
    return status;
}

static inline rondo_status md_pool_check(void *user, rondo_pool_id id, const uint64_t *expected, uint64_t count,
                                         bool *out_equal) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_POOL_CHECK));
    if (!md_pool_at(d, id)) return RONDO__FAIL(NOT_FOUND, MEMORY, "no such pool");
    md_lock(d);
    *out_equal = true;
    for (uint64_t i = 0; i < count; i++) {
        md_segment *segment = NULL;
        md_block *block = md_block_at(d, expected[i], &segment);
        if (!block || !block->live || block->address != expected[i] || segment->pool != id.user) *out_equal = false;
    }
    for (md_segment *s = d->segments; s; s = s->next) {
        for (md_block *b = s->blocks; b && s->pool == id.user; b = b->next) {
            bool known = !b->live;
            for (uint64_t i = 0; i < count && !known; i++) known = expected[i] == b->address;
            if (!known) *out_equal = false;
        }
    }
    md_unlock(d);
    return RONDO_OK;
}

static inline rondo_status md_pool_bytes(void *user, rondo_pool_id id, uint64_t *out_reserved,
                                         uint64_t *out_allocated) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_POOL_BYTES));
    md_lock(d);
    *out_reserved = 0;
    for (md_segment *s = d->segments; s; s = s->next)
        if (s->pool == id.user) *out_reserved += s->bytes;
    (void)md_live(d, id.user, out_allocated);
    md_unlock(d);
    return RONDO_OK;
}

static inline uint64_t md_snapshot(void *user, rondo_pool_id id, rondo_tree_block *blocks, uint64_t *bytes,
                                   uint64_t capacity) {
    md_device *d = user;
    uint64_t count = 0;
    md_lock(d);
    for (md_segment *s = d->segments; s; s = s->next) {
        for (md_block *b = s->blocks; b && s->pool == id.user; b = b->next) {
            if (!b->live) continue;
            if (count < capacity) {
                blocks[count] = (rondo_tree_block){.pointer = b->address};
                if (bytes) bytes[count] = b->requested;
            }
            count++;
        }
    }
    md_unlock(d);
    return count;
}

/* ------------------------------------------------------------------------------------------------------ states */

static inline void md_release_state(void *user, void *state) {
    md_device *d = user;
    md_state *s = state;
    for (uint64_t i = 0; i < s->count; i++) md_blocks_free(s->segments[i].blocks);
    free(s->segments);
    free(s);
    md_lock(d);
    d->states--;
    md_unlock(d);
}

static inline rondo_status md_get_state(void *user, rondo_pool_id id, void **out_state) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_STATE_GET));
    md_lock(d);
    md_state *state = calloc(1, sizeof *state);
    uint64_t count = md_segments(d, id.user);
    bool good = state && (state->segments = calloc(count + 1u, sizeof *state->segments)) != NULL;
    for (md_segment *s = d->segments; good && s; s = s->next) {
        if (s->pool != id.user) continue;
        good = md_blocks_copy(s->blocks, &state->segments[state->count].blocks);
        if (good) state->segments[state->count++].segment = s;
    }
    d->states++;
    if (good) {
        state->device = d;
        state->pool = id.user;
        *out_state = state;
    } else if (state) {
        for (uint64_t i = 0; i < state->count; i++) md_blocks_free(state->segments[i].blocks);
        free(state->segments);
        free(state);
    }
    d->states -= !good;
    md_unlock(d);
    return good ? RONDO_OK : RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no memory for a checkpoint");
}

static inline bool md_in_blocks(const rondo_tree_block *live, uint64_t count, uint64_t address) {
    for (uint64_t i = 0; i < count; i++)
        if (live[i].pointer == address) return true;
    return false;
}

/* What each segment will look like; segments that the state has not seen are free. */
static inline bool md_state_prepare(md_device *d, const md_state *state, md_block **blocks) {
    uint64_t index = 0;
    for (md_segment *s = d->segments; s; s = s->next) {
        if (s->pool != state->pool) continue;
        const md_block whole = {.address = md_address(s->memory), .bytes = s->bytes}, *from = &whole;
        for (uint64_t i = 0; i < state->count; i++)
            if (state->segments[i].segment == s) from = state->segments[i].blocks;
        if (!md_blocks_copy(from, &blocks[index])) return false;
        index++;
    }
    return true;
}

static inline void md_state_apply(md_device *d, const md_state *state, md_block **blocks, const rondo_tree_block *live,
                                  uint64_t live_count) {
    uint64_t index = 0;
    for (md_segment *s = d->segments; s; s = s->next) {
        if (s->pool != state->pool) continue;
        md_blocks_free(s->blocks);
        s->blocks = blocks[index];
        blocks[index++] = NULL;
        for (md_block *b = s->blocks; b; b = b->next) b->live = b->live && md_in_blocks(live, live_count, b->address);
        for (md_block *b = s->blocks; b; b = b->next) md_join(b);
    }
    for (uint64_t i = 0; i < live_count; i++) {
        md_segment *segment = NULL;
        md_block *block = md_block_at(d, live[i].pointer, &segment);
        if (!block || !block->live || block->address != live[i].pointer || segment->pool != state->pool)
            md_wrong(d, "a checkpoint was to have a live block that it does not know");
        if (d->own_storage && live[i].storage) d->own_storage(d->own_user, live[i].storage);
    }
}

static inline rondo_status md_set_state(void *user, rondo_pool_id id, void *state, const rondo_tree_block *live,
                                        uint64_t live_count, const uint64_t *dead, uint64_t dead_count) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_STATE_SET));
    md_lock(d);
    uint64_t count = md_segments(d, id.user);
    md_block **blocks = calloc(count + 1u, sizeof(md_block *));
    bool good = blocks && md_state_prepare(d, state, blocks);
    for (uint64_t i = 0; i < dead_count; i++)
        if (md_in_blocks(live, live_count, dead[i])) md_wrong(d, "a block is to be live and dead");
    if (good) {
        md_state_apply(d, state, blocks, live, live_count);
        d->checkpoints++;
    }
    for (uint64_t i = 0; blocks && i < count; i++) md_blocks_free(blocks[i]);
    free(blocks);
    md_unlock(d);
    return good ? RONDO_OK : RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no memory to set a pool back");
}

static inline rondo_status md_trim_pool(void *user, rondo_pool_id id, void *const *states, uint64_t state_count) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_POOL_TRIM));
    md_lock(d);
    for (md_segment *s = d->segments; s; s = s->next) {
        bool used = s->pool != id.user;
        for (md_block *b = s->blocks; b; b = b->next) used = used || b->live;
        for (uint64_t i = 0; i < state_count && !used; i++) {
            const md_state *state = states[i];
            for (uint64_t j = 0; j < state->count && !used; j++) used = state->segments[j].segment == s;
        }
        if (!used) s->pool = 0;
    }
    md_unlock(d);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ graphs */

static inline rondo_status md_create_graph(void *user, const char *name, void **out_graph) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_GRAPH_CREATE));
    md_graph *g = calloc(1, sizeof *g);
    if (!g) return RONDO__FAIL(OUT_OF_MEMORY, DRIVER, "no memory for a graph");
    (void)snprintf(g->name, sizeof g->name, "%s", name ? name : "");
    g->device = d;
    md_lock(d);
    g->next = d->graphs;
    d->graphs = g;
    md_unlock(d);
    *out_graph = g;
    return RONDO_OK;
}

static inline rondo_status md_capture_begin(void *user, void *graph, void *stream, rondo_pool_id pool,
                                            rondo_capture_mode mode) {
    md_device *d = user;
    md_graph *g = graph;
    md_stream *s = stream;
    (void)mode;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_CAPTURE_BEGIN));
    md_lock(d);
    rondo_status status = RONDO_OK;
    if (g->stream || g->ended || s->capture) status = RONDO__FAIL(INVALID_STATE, CAPTURE, "it captures already");
    if (!status) status = md_pool_use(d, pool, false);
    if (!status) {
        g->stream = s;
        g->pool = pool.user;
        g->invalid = false;
        s->capture = g;
    }
    md_unlock(d);
    return status;
}

static inline void md_capture_over(md_graph *g) {
    g->device->pools[g->pool].recording = false;
    for (md_stream *s = g->device->streams; s; s = s->next)
        if (s->capture == g) s->capture = NULL;
    g->stream = NULL;
}

static inline void md_capture_drop(md_graph *g) {
    uint64_t pool = g->pool;
    md_capture_over(g);
    g->count = g->pool = 0;
    md_pool_unuse(g->device, pool);
}

static inline rondo_status md_capture_end(void *user, void *graph, void *stream, rondo_tree_graph_facts *out_facts) {
    md_device *d = user;
    md_graph *g = graph;
    md_lock(d);
    rondo_status status = RONDO_OK;
    if (!g->stream || g->stream != stream) {
        md_wrong(d, "a capture was ended that is none");
        status = RONDO__FAIL(INVALID_STATE, CAPTURE, "it does not capture this stream");
    } else {
        status = tt_fault(d->faults, TT_FAULT_CAPTURE_END);
        if (!status && g->invalid) status = RONDO__FAIL(CAPTURE_INVALIDATED, CAPTURE, "the capture was invalid");
        if (status) {
            md_capture_drop(g);
        } else {
            md_capture_over(g);
            g->ended = true;
            *out_facts = (rondo_tree_graph_facts){.nodes = g->count, .bytes = g->capacity * sizeof *g->calls};
        }
    }
    md_unlock(d);
    return status;
}

static inline void md_abort(void *user, void *graph) {
    md_graph *g = graph;
    md_lock(user);
    if (g->stream) md_capture_drop(g);
    md_unlock(user);
}

static inline uint64_t md_rebound(const md_graph *g, uint64_t address) {
    for (unsigned i = 0; i < MD_SLOTS; i++)
        if (g->slots[i].bytes && address >= g->slots[i].address && address < g->slots[i].address + g->slots[i].bytes)
            return g->slots[i].now + (address - g->slots[i].address);
    return address;
}

/* One that fails may have done a part of its work. */
static inline rondo_status md_replay(void *user, void *graph, void *stream) {
    md_device *d = user;
    md_graph *g = graph;
    rondo_status fault = tt_fault(d->faults, TT_FAULT_REPLAY), status = RONDO_OK;
    uint64_t count = !fault ? g->count : d->halves ? (g->count + 1u) / 2u : 0;
    md_lock(d);
    if (!g->ended) {
        md_wrong(d, "a graph was replayed that is not there");
        status = RONDO__FAIL(INVALID_STATE, CAPTURE, "nothing was captured");
    }
    for (uint64_t i = 0; i < count && !status; i++) {
        md_call call = g->calls[i];
        for (unsigned word = 0; word < MD_WORDS; word++)
            if (call.addresses >> word & 1u) call.words[word] = md_rebound(g, call.words[word]);
        status = md_launch_locked(stream, &call);
    }
    g->replays++;
    md_unlock(d);
    return rondo__status_first(fault, status);
}

static inline void md_release_graph(void *user, void *graph) {
    md_device *d = user;
    md_graph *g = graph, **link = &d->graphs;
    md_lock(d);
    if (g->stream) {
        md_wrong(d, "a graph was released while it captures");
        md_capture_drop(g);
    }
    if (g->ended) md_pool_unuse(d, g->pool);
    while (*link != g) link = &(*link)->next;
    *link = g->next;
    md_unlock(d);
    free(g->calls);
    free(g);
}

static inline rondo_status md_declare_slot(void *user, void *graph, uint32_t slot, uint64_t address, uint64_t bytes) {
    md_device *d = user;
    md_graph *g = graph;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_DECLARE_SLOT));
    if (slot >= MD_SLOTS || g->stream || g->ended || (slot && !g->slots[slot - 1u].bytes))
        return RONDO__FAIL(INVALID_STATE, CAPTURE, "no slot now");
    g->slots[slot].address = g->slots[slot].now = address;
    g->slots[slot].bytes = bytes;
    return RONDO_OK;
}

static inline rondo_status md_bind(void *user, void *graph, uint32_t slot, uint64_t address) {
    md_device *d = user;
    md_graph *g = graph;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_BIND));
    if (slot >= MD_SLOTS || !g->slots[slot].bytes) return RONDO__FAIL(OUT_OF_RANGE, CAPTURE, "no such slot");
    g->slots[slot].now = address;
    return RONDO_OK;
}

static inline rondo_status md_copy(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count) {
    md_device *d = user;
    RONDO__TRY(tt_fault(d->faults, TT_FAULT_COPY));
    md_lock(d);
    rondo_status status = RONDO_OK;
    for (uint64_t i = 0; i < count && !status; i++)
        status = md_copy_one(stream, copies[i].destination, copies[i].source, copies[i].bytes);
    md_unlock(d);
    return status;
}

static inline bool md_supported(void *user) { return !((md_device *)user)->no_capture; }
static inline bool md_cached(void *user) { return !((md_device *)user)->uncached; }

static inline rondo_status md_prepare(void *user, bool recording, bool enter) {
    md_device *d = user;
    (void)recording;
    if (enter) {
        RONDO__TRY(tt_fault(d->faults, TT_FAULT_PREPARE));
        d->prepared++;
        return RONDO_OK;
    }
    d->unprepared++;
    return tt_fault(d->faults, TT_FAULT_PREPARE);
}

/* ------------------------------------------------------------------------------------------------------ device */

static inline void md_open(md_device *d, tt_faults *faults) {
    pthread_mutexattr_t attributes;
    *d = (md_device){.faults = faults};
    d->pools[0].made = true;
    d->pools[0].uses = 1;
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&d->mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
}

static inline void md_close(md_device *d) {
    while (d->graphs) md_release_graph(d, d->graphs);
    while (d->streams) md_release_stream(d, d->streams);
    while (d->segments) {
        md_segment *segment = d->segments;
        d->segments = segment->next;
        md_blocks_free(segment->blocks);
        free(segment->memory);
        free(segment);
    }
    rondo_device_release(d->native);
    d->native = NULL;
    (void)pthread_mutex_destroy(&d->mutex);
}

static inline void md_ops(md_device *d, rondo_graph_ops *out_ops) {
    *out_ops = (rondo_graph_ops){
        .struct_size = sizeof(rondo_graph_ops),
        .user = d,
        .is_graph_capture_supported = md_supported,
        .caching_allocator_enabled = md_cached,
        .graph_pool_handle = md_graph_pool_handle,
        .begin_allocate_current_thread_to_pool = md_pool_begin,
        .end_allocate_to_pool = md_pool_end,
        .release_pool = md_release_pool,
        .get_checkpoint_state = md_get_state,
        .release_checkpoint_state = md_release_state,
        .set_checkpoint_pool_state = md_set_state,
        .check_pool_live_allocations = md_pool_check,
        .raw_delete = md_raw_delete,
        .pool_bytes = md_pool_bytes,
        .trim_pool = md_trim_pool,
        .memory_snapshot = md_snapshot,
        .prepare_for_capture = md_prepare,
        .create_stream = md_create_stream,
        .release_stream = md_release_stream,
        .stream_wait = md_stream_wait,
        .synchronize = md_synchronize,
        .create_graph = md_create_graph,
        .capture_begin = md_capture_begin,
        .capture_end = md_capture_end,
        .abort = md_abort,
        .replay = md_replay,
        .release_graph = md_release_graph,
        .declare_slot = md_declare_slot,
        .bind = md_bind,
        .copy = md_copy,
    };
}

#endif
