/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a native device: pools and layouts against a model, captures, binding, order. */
#include "graph/graph.h"
#include "tree/native/native_testing.h"

typedef struct pooled {
    native_world w;
    rondo_pool_id pool;
    rondo_kernel add;
    void *state, *other;
    void *graph, *second, *stream;
    rondo_array *arrays[6];
} pooled;

static void pooled_close(pooled *p) {
    const rondo_graph_ops *ops = &p->w.ops;
    /* A body that ended early may have left work. */
    if (p->w.device) rondo_status_release(rondo__device_synchronize(p->w.device));
    if (p->graph) ops->release_graph(ops->user, p->graph);
    if (p->second) ops->release_graph(ops->user, p->second);
    if (p->stream) ops->release_stream(ops->user, p->stream);
    for (int i = 0; i < 6; i++) nt_release(&p->arrays[i]);
    if (ops->user) ops->release_checkpoint_state(ops->user, p->state);
    if (ops->user) ops->release_checkpoint_state(ops->user, p->other);
    if (p->add.function) rondo_kernel_release(p->w.device, p->add);
}

/* With a pool of its own, of one use. */
static void pooled_open(rondo_test *t, pooled *p, const char *device) {
    const rondo_graph_ops *ops = &p->w.ops;
    memset(p, 0, sizeof *p);
    nt_open(t, &p->w, device, NULL);
    T_DEFER(t, pooled_close, p);
    T_OK(t, rondo_kernel_find(p->w.device, "rondo.add", &p->add));
    T_OK(t, ops->graph_pool_handle(ops->user, &p->pool));
    T_OK(t, ops->begin_allocate_current_thread_to_pool(ops->user, p->pool));
    T_OK(t, ops->end_allocate_to_pool(ops->user, p->pool));
}

static rondo_status pooled_add(pooled *p, rondo_stream *stream, uint64_t a, uint64_t b, uint64_t out) {
    const rondo_argument arguments[4] = {{a, 64, RONDO_ACCESS_READ, 0},
                                         {b, 64, RONDO_ACCESS_READ, 0},
                                         {out, 64, RONDO_ACCESS_WRITE, 0},
                                         {16, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.argument_count = 4;
    call.kernel = p->add;
    call.arguments = arguments;
    call.name = "add";
    return rondo_stream_launch(stream, &call);
}

static uint64_t pooled_take(pooled *p, uint64_t size) {
    void *pointer = NULL;
    T_OK(p->w.t, rondo_memory_allocate_on(p->w.stream, size, &pointer));
    return (uint64_t)(uintptr_t)pointer;
}

static uint64_t address_of(const rondo_array *array) { return rondo__storage_address(array->storage) + array->offset; }

/* Sixteen floats each, with values. */
static void pooled_arrays(pooled *p) {
    const int64_t shape = 16;
    for (int i = 0; i < 6; i++) {
        T_OK(p->w.t, rondo_array_create(p->w.stream, RONDO_DTYPE_F32, 1, &shape, &p->arrays[i]));
        nt_fill(&p->w, p->arrays[i], 100.0f * (float)i);
    }
}

/* -------------------------------------------------------------------------------------------------------- pools */

static void test_pools(rondo_test *t, const char *device) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_pool_id another;
    uint64_t reserved = 0, allocated = 0, bytes[4] = {0};
    rondo_tree_block blocks[4] = {{0, NULL}};
    bool equal = false;
    pooled_open(t, &p, device);
    T_TRUE(t, ops->is_graph_capture_supported(ops->user) && ops->caching_allocator_enabled(ops->user));
    T_OK(t, ops->graph_pool_handle(ops->user, &another));
    T_TRUE(t, another.user && another.user != p.pool.user && !another.automatic);
    T_OK(t, ops->begin_allocate_current_thread_to_pool(ops->user, p.pool));
    uint64_t a = pooled_take(&p, 700), b = pooled_take(&p, 512);
    T_OK(t, ops->end_allocate_to_pool(ops->user, p.pool));
    uint64_t c = pooled_take(&p, 700);
    T_OK(t, ops->pool_bytes(ops->user, p.pool, &reserved, &allocated));
    /* Without memory for a whole segment there may be one of just the block. */
    T_TRUE(t, rondo_test_failing(t) || (reserved == 2u << 20 && allocated == 1024 + 512));
    T_EQ(t, ops->memory_snapshot(ops->user, p.pool, NULL, NULL, 0), 2);
    T_EQ(t, ops->memory_snapshot(ops->user, p.pool, blocks, bytes, 1), 2);
    T_TRUE(t, blocks[0].pointer == a && bytes[0] == 700 && !blocks[1].pointer && !bytes[1]);
    T_EQ(t, ops->memory_snapshot(ops->user, p.pool, blocks, bytes, 4), 2);
    T_TRUE(t, blocks[1].pointer == b && bytes[1] == 512 && !blocks[1].storage);
    const uint64_t expected[] = {b, a, c};
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, expected, 2, &equal));
    T_TRUE(t, equal);
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, expected, 1, &equal));
    T_TRUE(t, !equal);
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, expected, 3, &equal));
    T_TRUE(t, !equal);
    T_OK(t, ops->raw_delete(ops->user, a));
    T_FAILS(t, ops->raw_delete(ops->user, a), INVALID_ARGUMENT, NULL);
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, expected, 1, &equal));
    T_TRUE(t, equal);
    T_OK(t, ops->raw_delete(ops->user, b));
    T_OK(t, ops->raw_delete(ops->user, c));
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, NULL, 0, &equal));
    T_TRUE(t, equal);
    T_OK(t, ops->trim_pool(ops->user, p.pool, NULL, 0));
    T_OK(t, ops->pool_bytes(ops->user, p.pool, &reserved, &allocated));
    T_EQ(t, reserved, 0);
    T_OK(t, ops->release_pool(ops->user, p.pool));
    T_OK(t, ops->release_pool(ops->user, p.pool));
    T_FAILS(t, ops->release_pool(ops->user, p.pool), NOT_FOUND, NULL);
    rondo_memory_statistics pinned = RONDO_MEMORY_STATISTICS_INIT;
    T_FAILS(t, rondo__memory_pinned_statistics(p.w.device->memory, p.pool, &pinned), NOT_FOUND, NULL);
    T_FAILS(t, ops->begin_allocate_current_thread_to_pool(ops->user, p.pool), NOT_FOUND, "never used again");
    T_FAILS(t, ops->trim_pool(ops->user, p.pool, NULL, 0), NOT_FOUND, NULL);
    T_EQ(t, ops->memory_snapshot(ops->user, p.pool, blocks, bytes, 4), 0);
}
NT_BOTH(test_pools)

/* ------------------------------------------------------------------------------------------------------ layouts */

#define BLOCKS 48u
#define STATES 4u

typedef struct layout_model {
    uint64_t live[BLOCKS];
    uint32_t count;
} layout_model;

typedef struct layouts {
    pooled p;
    layout_model now, saved[STATES];
    void *states[STATES];
} layouts;

static layouts the_layouts;

static void layouts_close(layouts *l) {
    for (uint32_t i = 0; i < STATES; i++) {
        if (l->p.w.ops.user) l->p.w.ops.release_checkpoint_state(l->p.w.ops.user, l->states[i]);
    }
}

static void layouts_allocate(rondo_test *t, layouts *l) {
    const rondo_graph_ops *ops = &l->p.w.ops;
    static const uint64_t sizes[] = {512, 3000, 70000, 2u << 20};
    if (l->now.count == BLOCKS) return;
    T_OK(t, ops->begin_allocate_current_thread_to_pool(ops->user, l->p.pool));
    l->now.live[l->now.count++] = pooled_take(&l->p, sizes[rondo_test_random(t) % 4]);
    T_OK(t, ops->end_allocate_to_pool(ops->user, l->p.pool));
    T_OK(t, ops->release_pool(ops->user, l->p.pool));
}

/* A layout comes back, with some of its blocks in use. Now and then the list is wrong, and then nothing happens. */
static void layouts_set(rondo_test *t, layouts *l) {
    const rondo_graph_ops *ops = &l->p.w.ops;
    uint32_t which = (uint32_t)(rondo_test_random(t) % STATES), count = 0;
    const layout_model *saved = &l->saved[which];
    rondo_tree_block live[BLOCKS + 1];
    uint64_t dead[BLOCKS], dead_count = 0;
    layout_model next = {.count = 0};
    if (!l->states[which]) return;
    for (uint32_t i = 0; i < saved->count; i++) {
        if (rondo_test_random(t) % 2) {
            live[count++] = (rondo_tree_block){saved->live[i], NULL};
            next.live[next.count++] = saved->live[i];
        } else {
            dead[dead_count++] = saved->live[i];
        }
    }
    if (rondo_test_random(t) % 8 == 0) {
        bool twice = count && rondo_test_random(t) % 2;
        live[count] = twice ? live[rondo_test_random(t) % count] : (rondo_tree_block){77, NULL};
        T_FAILS(
            t,
            ops->set_checkpoint_pool_state(ops->user, l->p.pool, l->states[which], live, count + 1, dead, dead_count),
            INVALID_ARGUMENT, twice ? "named twice" : "block 0x4d");
        return;
    }
    T_OK(t, ops->set_checkpoint_pool_state(ops->user, l->p.pool, l->states[which], live, count, dead,
                                           rondo_test_random(t) % 2 ? dead_count : 0));
    l->now = next;
}

static void layouts_check(rondo_test *t, const char *device, int steps) {
    layouts *l = &the_layouts;
    memset(l, 0, sizeof *l);
    pooled_open(t, &l->p, device);
    T_DEFER(t, layouts_close, l);
    const rondo_graph_ops *ops = &l->p.w.ops;
    for (int step = 0; step < steps; step++) {
        uint64_t what = rondo_test_random(t) % 16;
        bool equal = false;
        if (what < 7) {
            layouts_allocate(t, l);
        } else if (what < 12 && l->now.count) {
            uint64_t *place = &l->now.live[rondo_test_random(t) % l->now.count];
            T_OK(t, ops->raw_delete(ops->user, *place));
            *place = l->now.live[--l->now.count];
        } else if (what < 14) {
            uint32_t which = (uint32_t)(rondo_test_random(t) % STATES);
            ops->release_checkpoint_state(ops->user, l->states[which]);
            l->states[which] = NULL;
            T_OK(t, ops->get_checkpoint_state(ops->user, l->p.pool, &l->states[which]));
            l->saved[which] = l->now;
        } else {
            layouts_set(t, l);
        }
        T_OK(t, ops->check_pool_live_allocations(ops->user, l->p.pool, l->now.live, l->now.count, &equal));
        T_TRUE(t, equal);
        T_OK(t, rondo__memory_check(l->p.w.device->memory));
    }
}

static void test_layouts_agree_with_the_model_on_cpu(rondo_test *t) { layouts_check(t, "cpu", 8000); }
static void test_layouts_agree_with_the_model_on_sim(rondo_test *t) { layouts_check(t, "sim", 2000); }

static void test_layouts_that_are_refused(rondo_test *t) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_pool_id another = {0, 0};
    bool equal = false;
    pooled_open(t, &p, "cpu");
    T_FAILS(t, ops->get_checkpoint_state(ops->user, (rondo_pool_id){0, 999}, &p.state), NOT_FOUND, NULL);
    T_OK(t, ops->begin_allocate_current_thread_to_pool(ops->user, p.pool));
    uint64_t a = pooled_take(&p, 700);
    T_OK(t, ops->get_checkpoint_state(ops->user, p.pool, &p.state));
    uint64_t b = pooled_take(&p, 700);
    T_OK(t, ops->end_allocate_to_pool(ops->user, p.pool));
    T_OK(t, ops->graph_pool_handle(ops->user, &another));
    T_FAILS(t, ops->set_checkpoint_pool_state(ops->user, another, p.state, NULL, 0, NULL, 0), INVALID_ARGUMENT,
            "not one of pool");
    T_FAILS(t, ops->set_checkpoint_pool_state(ops->user, p.pool, NULL, NULL, 0, NULL, 0), INVALID_ARGUMENT, NULL);
    rondo_tree_block later = {b, NULL};
    T_FAILS(t, ops->set_checkpoint_pool_state(ops->user, p.pool, p.state, &later, 1, NULL, 0), INVALID_ARGUMENT,
            "not alive in the layout");
    const uint64_t both[] = {a, b};
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, both, 2, &equal));
    T_TRUE(t, equal);
    rondo_tree_block first = {a, NULL};
    rondo_status status = ops->set_checkpoint_pool_state(ops->user, p.pool, p.state, &first, 1, &b, 1);
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, both, status ? 2 : 1, &equal));
    T_TRUE(t, equal); /* a failure changes nothing */
    T_OK(t, status);
    T_OK(t, ops->set_checkpoint_pool_state(ops->user, p.pool, p.state, NULL, 0, NULL, 0));
    T_OK(t, ops->check_pool_live_allocations(ops->user, p.pool, NULL, 0, &equal));
    T_TRUE(t, equal);
}

/* Two recordings; the first is dropped and what only it used goes back. */
static void test_trimming_by_states(rondo_test *t) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    uint64_t reserved = 0, allocated = 0;
    pooled_open(t, &p, "cpu");
    T_OK(t, ops->begin_allocate_current_thread_to_pool(ops->user, p.pool));
    T_OK(t, ops->raw_delete(ops->user, pooled_take(&p, 12u << 20)));
    T_OK(t, ops->get_checkpoint_state(ops->user, p.pool, &p.state));
    T_OK(t, ops->raw_delete(ops->user, pooled_take(&p, 30u << 20)));
    T_OK(t, ops->get_checkpoint_state(ops->user, p.pool, &p.other));
    T_OK(t, ops->end_allocate_to_pool(ops->user, p.pool));
    void *states[] = {p.state, p.other};
    T_OK(t, ops->trim_pool(ops->user, p.pool, states, 2));
    T_OK(t, ops->pool_bytes(ops->user, p.pool, &reserved, &allocated));
    T_EQ(t, reserved, 42u << 20);
    T_OK(t, ops->trim_pool(ops->user, p.pool, &states[1], 1));
    T_OK(t, ops->pool_bytes(ops->user, p.pool, &reserved, &allocated));
    T_EQ(t, reserved, 30u << 20);
    T_OK(t, ops->set_checkpoint_pool_state(ops->user, p.pool, p.other, NULL, 0, NULL, 0));
}

/* ------------------------------------------------------------------------------------------------------- graphs */

static void test_a_recording(rondo_test *t, const char *device) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_tree_graph_facts facts = {0};
    pooled_open(t, &p, device);
    pooled_arrays(&p);
    T_OK(t, ops->create_stream(ops->user, &p.stream));
    T_OK(t, ops->stream_wait(ops->user, p.stream, p.w.stream));
    T_OK(t, ops->get_checkpoint_state(ops->user, p.pool, &p.state));
    T_OK(t, ops->create_graph(ops->user, "the model", &p.graph));
    void *output = NULL;
    T_OK(t, ops->capture_begin(ops->user, p.graph, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, rondo_memory_allocate_on(p.stream, 64, &output));
    uint64_t middle = (uint64_t)(uintptr_t)output;
    T_OK(t, pooled_add(&p, p.stream, address_of(p.arrays[0]), address_of(p.arrays[1]), middle));
    T_OK(t, pooled_add(&p, p.stream, middle, address_of(p.arrays[1]), address_of(p.arrays[2])));
    T_OK(t, ops->capture_end(ops->user, p.graph, p.stream, &facts));
    T_TRUE(t, facts.nodes == 2 && facts.bytes > 0 && !facts.fixed);
    T_EQ(t, nt_first(&p.w, p.arrays[2]), 200); /* nothing ran */
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[2]), 200);
    nt_fill(&p.w, p.arrays[0], 5);
    /* Back and forth: the graph works on in whatever layout. */
    T_OK(t, ops->get_checkpoint_state(ops->user, p.pool, &p.other));
    T_OK(t, ops->set_checkpoint_pool_state(ops->user, p.pool, p.state, NULL, 0, NULL, 0));
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[2]), 205);
    T_EQ(t, nt_at(&p.w, middle), 105);
    const rondo_tree_block alive = {middle, NULL};
    T_OK(t, ops->set_checkpoint_pool_state(ops->user, p.pool, p.other, &alive, 1, NULL, 0));
    T_OK(t, ops->stream_wait(ops->user, p.stream, p.w.stream));
    T_OK(t, ops->replay(ops->user, p.graph, p.stream));
    T_OK(t, ops->synchronize(ops->user, p.stream));
    T_OK(t, ops->raw_delete(ops->user, middle));
    T_OK(t, ops->replay(ops->user, p.graph, p.stream));
    /* The pool lasts, the one of pinned memory, too, while recordings come and go. */
    for (int i = 0; i < 3; i++) {
        ops->release_graph(ops->user, p.graph);
        p.graph = NULL;
        T_OK(t, ops->create_graph(ops->user, NULL, &p.graph));
        T_OK(t, ops->capture_begin(ops->user, p.graph, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
        T_OK(t, ops->capture_end(ops->user, p.graph, p.stream, &facts));
        T_EQ(t, facts.nodes, 0);
    }
}
NT_BOTH(test_a_recording)

static int32_t do_nothing(void *user) {
    (void)user;
    return 0;
}

static void test_captures_that_are_broken_off(rondo_test *t, const char *device) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_tree_graph_facts facts = {0};
    pooled_open(t, &p, device);
    pooled_arrays(&p);
    T_OK(t, ops->create_stream(ops->user, &p.stream));
    T_OK(t, ops->stream_wait(ops->user, p.stream, p.w.stream));
    ops->retain_stream(ops->user, p.stream);
    ops->release_stream(ops->user, p.stream);
    T_OK(t, ops->create_graph(ops->user, "broken", &p.graph));
    ops->abort(ops->user, p.graph); /* none */
    uint64_t a = address_of(p.arrays[0]), b = address_of(p.arrays[1]), c = address_of(p.arrays[2]);
    for (int how = 0; how < 3; how++) {
        T_OK(t, ops->capture_begin(ops->user, p.graph, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
        T_OK(t, pooled_add(&p, p.stream, a, b, c));
        if (how > 0) T_FAILS(t, ops->synchronize(ops->user, p.stream), INVALID_STATE, "synchronize");
        if (how > 1)
            T_FAILS(t, ops->capture_end(ops->user, p.graph, p.stream, &facts), CAPTURE_INVALIDATED, "'broken'");
        ops->abort(ops->user, p.graph);
        T_OK(t, pooled_add(&p, p.stream, a, b, c));
        T_OK(t, ops->synchronize(ops->user, p.stream));
    }
    T_OK(t, ops->capture_begin(ops->user, p.graph, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, rondo_stream_host_call(p.stream, do_nothing, NULL));
    T_OK(t, ops->capture_end(ops->user, p.graph, p.stream, &facts));
    T_TRUE(t, facts.fixed == 1 && facts.nodes == 1);
}
NT_BOTH(test_captures_that_are_broken_off)

static void test_inputs_are_bound_anew(rondo_test *t) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_tree_graph_facts facts = {0};
    pooled_open(t, &p, "cpu");
    pooled_arrays(&p);
    T_EQ(t, ops->flags, RONDO_GRAPH_OPS_CHILD_GRAPHS | RONDO_GRAPH_OPS_REBIND);
    T_OK(t, ops->create_graph(ops->user, "bound", &p.graph));
    T_OK(t, ops->declare_slot(ops->user, p.graph, 0, address_of(p.arrays[0]), 64));
    T_OK(t, ops->declare_slot(ops->user, p.graph, 1, address_of(p.arrays[1]), 64));
    T_OK(t, ops->capture_begin(ops->user, p.graph, p.w.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, pooled_add(&p, p.w.stream, address_of(p.arrays[0]), address_of(p.arrays[1]), address_of(p.arrays[5])));
    T_OK(t, ops->capture_end(ops->user, p.graph, p.w.stream, &facts));
    T_OK(t, ops->bind(ops->user, p.graph, 0, address_of(p.arrays[3])));
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[5]), 400);
    /* What it was recorded with, and what it was bound to, may go. */
    nt_release(&p.arrays[0]);
    T_OK(t, ops->bind(ops->user, p.graph, 1, address_of(p.arrays[4])));
    nt_release(&p.arrays[1]);
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[5]), 700);
    nt_release(&p.arrays[3]);
    T_OK(t, ops->bind(ops->user, p.graph, 0, address_of(p.arrays[2])));
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[5]), 600);
    T_FAILS(t, ops->bind(ops->user, p.graph, 2, address_of(p.arrays[2])), OUT_OF_RANGE, "no slot 2");
    /* Another input at the very address: there is nothing to be bound. */
    const int64_t shape = 16;
    uint64_t address = address_of(p.arrays[2]);
    for (int i = 0; i < 6; i++) { /* what was freed before is taken first */
        if (!p.arrays[i]) T_OK(t, rondo_array_create(p.w.stream, RONDO_DTYPE_F32, 1, &shape, &p.arrays[i]));
    }
    nt_release(&p.arrays[2]);
    T_OK(t, rondo_array_create(p.w.stream, RONDO_DTYPE_F32, 1, &shape, &p.arrays[2]));
    if (address_of(p.arrays[2]) != address) T_OK(t, ops->bind(ops->user, p.graph, 0, address_of(p.arrays[2])));
    T_TRUE(t, rondo_test_failing(t) || address_of(p.arrays[2]) == address);
    nt_fill(&p.w, p.arrays[2], 1);
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[5]), 401);
}

static void test_a_sequence_becomes_one_graph(rondo_test *t, const char *device) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_tree_graph_facts facts = {0};
    pooled_open(t, &p, device);
    pooled_arrays(&p);
    T_TRUE(t, (ops->flags & RONDO_GRAPH_OPS_CHILD_GRAPHS) != 0);
    T_OK(t, ops->create_stream(ops->user, &p.stream));
    T_OK(t, ops->create_graph(ops->user, "one", &p.graph));
    T_OK(t, ops->capture_begin(ops->user, p.graph, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, pooled_add(&p, p.stream, address_of(p.arrays[0]), address_of(p.arrays[1]), address_of(p.arrays[0])));
    T_OK(t, ops->capture_end(ops->user, p.graph, p.stream, &facts));
    T_OK(t, ops->create_graph(ops->user, "both", &p.second));
    T_OK(t, ops->capture_begin(ops->user, p.second, p.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    T_OK(t, ops->replay(ops->user, p.graph, p.stream));
    T_OK(t, ops->replay(ops->user, p.graph, p.stream));
    T_OK(t, ops->capture_end(ops->user, p.second, p.stream, &facts));
    T_EQ(t, facts.nodes, 2);
    T_OK(t, ops->stream_wait(ops->user, p.stream, p.w.stream));
    T_OK(t, ops->replay(ops->user, p.second, p.stream));
    T_OK(t, ops->stream_wait(ops->user, p.w.stream, p.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[0]), 200);
}
NT_BOTH(test_a_sequence_becomes_one_graph)

/* ------------------------------------------------------------------------------------------------- order, copies */

/* Without the wait the two streams touch the same bytes at the same time, which sim does not forgive. */
static void test_streams_wait_for_each_other(rondo_test *t) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    pooled_open(t, &p, "sim");
    pooled_arrays(&p);
    T_EQ(t, ops->flags, RONDO_GRAPH_OPS_CHILD_GRAPHS);
    T_OK(t, ops->create_stream(ops->user, &p.stream));
    uint64_t a = address_of(p.arrays[0]), b = address_of(p.arrays[1]), c = address_of(p.arrays[2]);
    T_OK(t, ops->stream_wait(ops->user, p.stream, p.stream));
    for (int round = 0; round < 3; round++) {
        T_OK(t, ops->stream_wait(ops->user, p.stream, p.w.stream));
        T_OK(t, pooled_add(&p, p.stream, a, b, c));
        T_OK(t, ops->stream_wait(ops->user, p.w.stream, p.stream));
        T_OK(t, pooled_add(&p, p.w.stream, c, b, a));
    }
    T_EQ(t, nt_first(&p.w, p.arrays[0]), 600);
    T_OK(t, ops->synchronize(ops->user, p.stream));
    T_OK(t, pooled_add(&p, p.stream, a, b, c));
    T_OK(t, pooled_add(&p, p.w.stream, c, b, a));
    T_FAILS(t, rondo__device_synchronize(p.w.device), KERNEL_FAILED, NULL);
}

static void test_copies(rondo_test *t, const char *device) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    rondo_tree_graph_facts facts = {0};
    rondo_tree_copy copies[4] = {{0}};
    pooled_open(t, &p, device);
    pooled_arrays(&p);
    for (int i = 0; i < 3; i++)
        copies[i] = (rondo_tree_copy){address_of(p.arrays[i]), address_of(p.arrays[i + 1]), 64, NULL, NULL};
    copies[1].bytes = 0;
    copies[3] = (rondo_tree_copy){address_of(p.arrays[5]) + 4, address_of(p.arrays[0]) + 8, 4, NULL, NULL};
    T_OK(t, ops->copy(ops->user, p.w.stream, copies, 4)); /* in their order */
    static const float want[] = {100, 100, 300, 300, 400, 500};
    for (int i = 0; i < 6; i++) T_EQ(t, nt_first(&p.w, p.arrays[i]), want[i]);
    T_EQ(t, nt_at(&p.w, address_of(p.arrays[5]) + 4), 102);
    T_OK(t, ops->copy(ops->user, p.w.stream, copies, 0));
    /* On a stream that captures they are recorded. */
    T_OK(t, ops->create_graph(ops->user, "copies", &p.graph));
    T_OK(t, ops->capture_begin(ops->user, p.graph, p.w.stream, p.pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    rondo_tree_copy copy = {address_of(p.arrays[4]), address_of(p.arrays[2]), 64, NULL, NULL};
    T_OK(t, ops->copy(ops->user, p.w.stream, &copy, 1));
    T_OK(t, ops->capture_end(ops->user, p.graph, p.w.stream, &facts));
    T_EQ(t, facts.nodes, 1);
    T_EQ(t, nt_first(&p.w, p.arrays[4]), 400);
    T_OK(t, ops->replay(ops->user, p.graph, p.w.stream));
    T_EQ(t, nt_first(&p.w, p.arrays[4]), 300);
}
NT_BOTH(test_copies)

/* What sim would not do, it says. */
static void test_copies_are_checked(rondo_test *t) {
    pooled p;
    const rondo_graph_ops *ops = &p.w.ops;
    pooled_open(t, &p, "sim");
    pooled_arrays(&p);
    rondo_tree_copy copies[2] = {{address_of(p.arrays[0]), address_of(p.arrays[1]), 64, NULL, NULL},
                                 {address_of(p.arrays[0]), 4096, 64, NULL, NULL}};
    T_FAILS(t, ops->copy(ops->user, p.w.stream, copies, 2), INVALID_ARGUMENT, "no memory of this device");
}

static void test_the_table(rondo_test *t) {
    native_world w;
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT, unset = {0};
    nt_open(t, &w, "cpu", NULL);
    T_FAILS(t, rondo_graph_ops_native(NULL, &ops), INVALID_ARGUMENT, "device");
    T_FAILS(t, rondo_graph_ops_native(w.device, &unset), INVALID_ARGUMENT, "RONDO_GRAPH_OPS_INIT");
    T_OK(t, rondo_graph_ops_native(w.device, &ops));
    ops.destroy(ops.user);
}

RONDO_TEST_MAIN(NT_ENTRIES(test_pools), T_PLAIN(test_layouts_agree_with_the_model_on_cpu),
                T_PLAIN(test_layouts_agree_with_the_model_on_sim), NT(test_layouts_that_are_refused),
                NT(test_trimming_by_states), NT_ENTRIES(test_a_recording),
                NT_ENTRIES(test_captures_that_are_broken_off), NT(test_inputs_are_bound_anew),
                NT_ENTRIES(test_a_sequence_becomes_one_graph), NT(test_streams_wait_for_each_other),
                NT_ENTRIES(test_copies), NT(test_copies_are_checked), NT(test_the_table))
