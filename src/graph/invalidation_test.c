/* SPDX-License-Identifier: Apache-2.0
 *
 * A capture that fails leaves nothing behind: every call of the simulator's tables is made to fail in turn, all the way
 * through a long scenario, and each time everything is used again. Under the harness the same goes for every allocation. */
#include <stdio.h>

#include "graph/graph_testing.h"

typedef struct scenario {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *streams[3];
    rondo_event *events[4];
    rondo_generator *generator;
    rondo_graph *graph, *child;
    rondo_kernel add;
    void *pinned, *temporary;
    void *buffers[6];
} scenario;

enum { FLOATS = 16, BYTES = FLOATS * 4 };

static void scenario_close(scenario *s) {
    rondo_graph_release(s->graph);
    rondo_graph_release(s->child);
    rondo_generator_release(s->generator);
    for (unsigned i = 0; i < 4; i++) rondo_event_release(s->events[i]);
    for (unsigned i = 0; i < 3; i++) rondo_stream_release(s->streams[i]);
    if (s->temporary) rondo_status_release(rondo_memory_free(s->device, s->temporary));
    if (s->pinned) rondo_status_release(rondo_memory_host_free(s->device, s->pinned));
    for (unsigned i = 0; i < 6; i++)
        if (s->buffers[i]) rondo_status_release(rondo_memory_free(s->device, s->buffers[i]));
    if (s->add.function) rondo_kernel_release(s->device, s->add);
    rondo_device_release(s->device);
    rondo_instance_release(s->instance);
    rondo_test *t = s->t;
    *s = (scenario){.t = t};
}

static rondo_status scenario_open(scenario *s, const char *device, const char *settings) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    RONDO__TRY(rondo_instance_create(&options, &s->instance));
    RONDO__TRY(rondo_device_open(s->instance, device, settings, &s->device));
    for (unsigned i = 0; i < 3; i++) RONDO__TRY(rondo_stream_create(s->device, NULL, &s->streams[i]));
    for (unsigned i = 0; i < 4; i++) RONDO__TRY(rondo_event_create(s->device, &s->events[i]));
    for (unsigned i = 0; i < 6; i++) RONDO__TRY(rondo_memory_allocate(s->device, BYTES, &s->buffers[i]));
    RONDO__TRY(rondo_kernel_find(s->device, "rondo.add", &s->add));
    RONDO__TRY(rondo_generator_create(s->device, 1, &s->generator));
    RONDO__TRY(rondo_graph_create(s->device, NULL, &s->graph));
    return rondo_graph_create(s->device, NULL, &s->child);
}

static rondo_status add(scenario *s, unsigned stream, const void *a, const void *b, void *out) {
    const rondo_argument arguments[4] = {{gt_word(a), BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(b), BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(out), BYTES, RONDO_ACCESS_WRITE, 0},
                                         {FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = {sizeof call, 4, s->add, arguments, "add"};
    return rondo_stream_launch(s->streams[stream], &call);
}

static rondo_status cross(scenario *s, unsigned event, unsigned from, unsigned to) {
    RONDO__TRY(rondo_event_record(s->events[event], s->streams[from]));
    return rondo_event_wait(s->events[event], s->streams[to]);
}

static int32_t host_nothing(void *user) {
    (void)user;
    return 0;
}

/* b1 = b0 + b0 as a child. */
static rondo_status make_child(scenario *s) {
    RONDO__TRY(rondo_graph_capture_begin(s->child, s->streams[2], (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    RONDO__TRY(add(s, 2, s->buffers[0], s->buffers[0], s->buffers[1]));
    RONDO__TRY(rondo_random_fill(s->streams[2], s->generator, RONDO_DISTRIBUTION_BITS, s->buffers[5], 8, 0, 0));
    return rondo_graph_capture_end(s->child, s->streams[2]);
}

/* Everything that a capture can hold: b4 = 2 (b0 + b0) + ones from the host, b5 random. */
static rondo_status long_capture(scenario *s) {
    float *ones;
    RONDO__TRY(make_child(s));
    RONDO__TRY(rondo_graph_declare_slot(s->graph, 0, s->buffers[0], BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY));
    RONDO__TRY(
        rondo_graph_capture_begin(s->graph, s->streams[0], (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    RONDO__TRY(rondo_memory_host_allocate(s->device, BYTES, &s->pinned));
    ones = s->pinned;
    for (unsigned i = 0; i < FLOATS; i++) ones[i] = 1.0f;
    RONDO__TRY(rondo_memory_allocate_on(s->streams[0], BYTES, &s->temporary));
    RONDO__TRY(rondo_stream_fill(s->streams[0], s->temporary, 0, BYTES));
    RONDO__TRY(cross(s, 0, 0, 1));
    RONDO__TRY(rondo_stream_copy(s->streams[1], s->buffers[2], s->pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    RONDO__TRY(rondo_graph_replay(s->child, s->streams[0]));
    RONDO__TRY(add(s, 0, s->buffers[1], s->buffers[1], s->temporary));
    RONDO__TRY(rondo_stream_host_call(s->streams[0], host_nothing, NULL));
    RONDO__TRY(cross(s, 1, 1, 0));
    RONDO__TRY(add(s, 0, s->temporary, s->buffers[2], s->buffers[4]));
    RONDO__TRY(rondo_random_fill(s->streams[0], s->generator, RONDO_DISTRIBUTION_BITS, s->buffers[3], 4, 0, 0));
    rondo_status freed = rondo_memory_free(s->device, s->temporary);
    s->temporary = NULL;
    RONDO__TRY(freed);
    RONDO__TRY(rondo_graph_capture_end(s->graph, s->streams[0]));
    for (unsigned i = 0; i < FLOATS; i++) ((float *)s->buffers[0])[i] = (float)i;
    RONDO__TRY(rondo_graph_replay(s->graph, s->streams[0]));
    return rondo_stream_synchronize(s->streams[0]);
}

/* What is allocated now is of no pool, and no pool is left. */
static const char *leftovers_of_memory(scenario *s) {
    void *block = NULL, *pinned = NULL;
    rondo_memory_statistics own = RONDO_MEMORY_STATISTICS_INIT, all = RONDO_MEMORY_STATISTICS_INIT;
    const char *left = NULL;
    rondo_status status = rondo_memory_allocate_on(s->streams[0], BYTES, &block);
    if (!status) status = rondo_memory_host_allocate(s->device, BYTES, &pinned);
    if (!status) status = rondo__memory_pinned_statistics(s->device->memory, (rondo_pool_id){0, 0}, &own);
    if (!status) status = rondo_memory_get_statistics(s->device, (rondo_pool_id){0, 0}, &all);
    bool failed = status && rondo_status_code(status) != RONDO_CODE_OUT_OF_MEMORY;
    rondo_status_release(status);
    if (failed) left = "memory cannot be had";
    rondo_pool_id pool = rondo__memory_pool_of(s->device->memory, (uint64_t)(uintptr_t)block);
    if (block && (pool.automatic || pool.user)) left = "allocations still go to a pool";
    pool = rondo__memory_pool_of(s->device->memory, (uint64_t)(uintptr_t)pinned);
    if (pinned && (pool.automatic || pool.user)) left = "pinned allocations still go to a pool";
    if (block) rondo_status_release(rondo_memory_free(s->device, block));
    if (pinned) rondo_status_release(rondo_memory_host_free(s->device, pinned));
    if (all.pending_bytes || own.pending_bytes) left = "freed memory still waits for somebody";
    return left;
}

static const char *leftovers(scenario *s) {
    rondo_capture_status status = RONDO_CAPTURE_STATUS_INIT;
    uint64_t number;
    rondo_capture_mode mode = 99;
    for (unsigned i = 0; i < 3; i++) {
        rondo_status_release(rondo_stream_capture_status(s->streams[i], &status));
        if (status.active) return "a stream still captures";
    }
    rondo_status failure = rondo_generator_get_offset(s->generator, &number);
    rondo_status_release(failure);
    if (failure) return "the generator still captures";
    if (number && number != 12) return "the generator is somewhere else"; /* a replay takes 8 + 4, all or nothing */
    failure = rondo_capture_mode_exchange(RONDO_CAPTURE_MODE_GLOBAL, &mode);
    rondo_status_release(failure);
    if (failure || mode != RONDO_CAPTURE_MODE_GLOBAL) return "the thread's mode has changed";
    if (s->device->captures) return "the device still has a capture";
    if (s->graph && rondo_graph_get_state(s->graph) != RONDO_GRAPH_EMPTY) return "the graph is not empty";
    return leftovers_of_memory(s);
}

/* Gives up what the failed run left to its owner, then looks. */
static void recover(scenario *s) {
    rondo_graph *graphs[2] = {s->graph, s->child};
    for (unsigned i = 0; i < 2; i++) {
        rondo_graph_state state = rondo_graph_get_state(graphs[i]);
        if (state == RONDO_GRAPH_CAPTURING || state == RONDO_GRAPH_INVALIDATED)
            rondo_status_release(i ? rondo_graph_abort(graphs[i]) : rondo_graph_capture_end(graphs[i], s->streams[0]));
        rondo_graph_reset(graphs[i]);
    }
    for (unsigned i = 0; i < 3; i++) rondo_status_release(rondo_stream_synchronize(s->streams[i]));
    if (s->temporary) rondo_status_release(rondo_memory_free(s->device, s->temporary));
    if (s->pinned) rondo_status_release(rondo_memory_host_free(s->device, s->pinned));
    s->temporary = s->pinned = NULL;
}

static void expect_values(scenario *s, const char *when, unsigned long long n) {
    for (unsigned i = 0; i < FLOATS; i++)
        if (((float *)s->buffers[4])[i] != 4.0f * (float)i + 1.0f)
            rondo_test_fail(s->t, __FILE__, __LINE__, "%s call %llu: element %u is %g", when, n, i,
                            (double)((float *)s->buffers[4])[i]);
}

/* A step of the harness of its own: the device is opened anew for each failure. */
static bool fail_at(rondo_test *t, scenario *s, uint64_t n) {
    char settings[64];
    uint64_t faults = 0;
    rondo_memory_statistics before = RONDO_MEMORY_STATISTICS_INIT, after = RONDO_MEMORY_STATISTICS_INIT;
    (void)snprintf(settings, sizeof settings, "fail=any:%llu", (unsigned long long)n);
    rondo_status status = scenario_open(s, "sim", settings);
    if (status) { /* before the scenario begins */
        rondo_status_release(status);
        scenario_close(s);
        return true;
    }
    T_OK(t, rondo_memory_get_statistics(s->device, (rondo_pool_id){0, 0}, &before));
    status = long_capture(s);
    T_OK(t, rondo_device_counter(s->device, "faults", &faults));
    if (!status) expect_values(s, "without failing", (unsigned long long)n);
    rondo_status_release(status);
    recover(s);
    const char *left = leftovers(s);
    if (left) rondo_test_fail(t, __FILE__, __LINE__, "call %llu failed and %s", (unsigned long long)n, left);
    T_OK(t, rondo_memory_get_statistics(s->device, (rondo_pool_id){0, 0}, &after));
    T_EQ(t, after.allocations, before.allocations);
    T_OK(t, rondo__memory_check(s->device->memory));
    if (faults) { /* nothing fails any more: all of it again */
        T_OK(t, long_capture(s));
        expect_values(s, "after failing", (unsigned long long)n);
        recover(s);
    }
    scenario_close(s);
    return faults != 0;
}

static void test_every_backend_call_fails_in_turn(rondo_test *t) {
    static scenario s;
    s = (scenario){.t = t};
    T_DEFER(t, scenario_close, &s);
    uint64_t n = 1;
    while (fail_at(t, &s, n)) n++;
    if (n < 40) rondo_test_fail(t, __FILE__, __LINE__, "only %llu calls", (unsigned long long)n);
}

/* Every allocation in turn, by the harness: the same leftovers, the same second time. */
static void test_every_allocation_fails_in_turn(rondo_test *t, const char *device) {
    static scenario s;
    s = (scenario){.t = t};
    T_DEFER(t, scenario_close, &s);
    T_OK(t, scenario_open(&s, device, NULL));
    rondo_status status = long_capture(&s);
    if (status) {
        rondo_code code = rondo_status_code(status);
        rondo_status_release(status);
        T_TRUE(t, rondo_test_failing(t));
        recover(&s);
        const char *left = leftovers(&s);
        if (left) rondo_test_fail(t, __FILE__, __LINE__, "after code %d %s", (int)code, left);
        status = long_capture(&s);
        if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) { /* the failing one was not spent on the first */
            rondo_status_release(status);
            return;
        }
    }
    T_OK(t, status);
    expect_values(&s, "at the end of", 0);
}
GT_BOTH(test_every_allocation_fails_in_turn)

/* A graph that is thrown away in the middle, and a device that is asked for more than it has. */
static void test_thrown_away(rondo_test *t, const char *device) {
    static scenario s;
    void *memory;
    s = (scenario){.t = t};
    T_DEFER(t, scenario_close, &s);
    T_OK(t, scenario_open(&s, device, NULL));
    T_OK(t, rondo_graph_capture_begin(s.graph, s.streams[0], (rondo_pool_id){0, 0}, 0));
    T_OK(t, rondo_random_fill(s.streams[0], s.generator, RONDO_DISTRIBUTION_BITS, s.buffers[5], 4, 0, 0));
    T_OK(t, cross(&s, 0, 0, 1));
    T_OK(t, add(&s, 1, s.buffers[0], s.buffers[0], s.buffers[1]));
    T_FAILS(t, rondo_memory_allocate_on(s.streams[1], UINT64_C(1) << 42, &memory), OUT_OF_MEMORY, NULL);
    rondo_graph_release(s.graph);
    s.graph = NULL;
    T_TRUE(t, leftovers(&s) == NULL);
    T_OK(t, rondo_graph_create(s.device, NULL, &s.graph));
    T_OK(t, long_capture(&s));
    expect_values(&s, "after throwing away", 0);
}
GT_BOTH(test_thrown_away)

RONDO_TEST_MAIN(T_PLAIN(test_every_backend_call_fails_in_turn), GT_ENTRIES(test_every_allocation_fails_in_turn),
                GT_PLAIN_ENTRIES(test_thrown_away))
