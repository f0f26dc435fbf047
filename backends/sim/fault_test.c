/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call of a long scenario fails in turn: allocations, pinned memory, two streams, an event, captures with copies,
 * fills, calls and host calls, a slot that is bound anew, replays, an abort. Whatever failed, the failure is told, and
 * afterwards the same objects do the whole again. */
#include <stdio.h>
#include <stdlib.h>

#include <rondo/runtime.h>

#include "backends/sim/sim.h"
#include "harness/harness.h"

#define BYTES 64u

static char lines[4096], injected[128]; /* warnings; the last failure as the device itself tells of it */

static void take_line(void *user, rondo_log_level level, const char *text) {
    (void)user;
    size_t used = strlen(lines);
    if (level > RONDO_LOG_WARNING) {
        (void)snprintf(injected, sizeof injected, "%s", text);
        return;
    }
    (void)snprintf(lines + used, sizeof lines - used, "%s\n", text);
}

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *one, *two;
    rondo_event *event;
    rondo_graph *graph, *dropped;
    rondo_pool_id pool;
    void *a, *b, *pinned, *temporary;
    int host_calls;
} world;

/* Bytes that copies bring back; they outlive every stream. */
static unsigned char back_one[BYTES], back_two[BYTES];

static int32_t kernel_add(const void *context, const uint64_t *words) {
    unsigned char *bytes = (unsigned char *)(uintptr_t)words[0];
    (void)context;
    for (uint64_t i = 0; i < words[1]; i++) bytes[i] = (unsigned char)(bytes[i] + words[2]);
    return 0;
}

static int32_t host_count(void *user) {
    ++*(int *)user;
    return 0;
}

static rondo_status add(rondo_stream *stream, void *target, uint64_t amount, const char *name) {
    rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)target, BYTES, RONDO_ACCESS_BOTH, 0},
                                   {BYTES, 0, RONDO_ACCESS_VALUE, 0},
                                   {amount, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_add;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

#define STEP(expression)                                 \
    do {                                                 \
        rondo_status fault_test_status = (expression);   \
        if (fault_test_status) return fault_test_status; \
    } while (0)

static rondo_status wrong(const char *what) {
    (void)fprintf(stderr, "%s is wrong\n", what);
    abort();
}

/* What is not there yet is made. */
static rondo_status make(world *w) {
    if (!w->one) STEP(rondo_stream_create(w->device, NULL, &w->one));
    if (!w->two) STEP(rondo_stream_create(w->device, NULL, &w->two));
    if (!w->event) STEP(rondo_event_create(w->device, &w->event));
    if (!w->a) STEP(rondo_memory_allocate(w->device, BYTES, &w->a));
    if (!w->b) STEP(rondo_memory_allocate(w->device, BYTES, &w->b));
    if (!w->pinned) STEP(rondo_memory_host_allocate(w->device, BYTES, &w->pinned));
    if (!w->graph) STEP(rondo_graph_create(w->device, NULL, &w->graph));
    if (!w->dropped) STEP(rondo_graph_create(w->device, NULL, &w->dropped));
    return RONDO_OK;
}

/* a = pinned + 2, then b = 5; b comes back on the second stream, behind the event. */
static rondo_status run_eagerly(const world *w) {
    bool done = false;
    memset(w->pinned, 1, BYTES);
    STEP(rondo_stream_copy(w->one, w->a, w->pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    STEP(add(w->one, w->a, 2, "eager"));
    STEP(rondo_stream_fill(w->one, w->b, 5, BYTES));
    STEP(rondo_stream_copy(w->one, back_one, w->a, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_event_record(w->event, w->one));
    STEP(rondo_event_wait(w->event, w->two));
    STEP(rondo_stream_copy(w->two, back_two, w->b, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_event_query(w->event, &done));
    STEP(rondo_event_synchronize(w->event));
    STEP(rondo_stream_query(w->two, &done));
    STEP(rondo_stream_synchronize(w->two));
    STEP(rondo_stream_synchronize(w->one));
    return back_one[BYTES - 1u] == 3 && back_two[BYTES - 1u] == 5 ? RONDO_OK : wrong("an eager result");
}

/* slot 0: a. a = pinned, a += 10, b = a. */
static rondo_status capture(world *w) {
    STEP(rondo_graph_declare_slot(w->graph, 0, w->a, BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    STEP(rondo_graph_capture_begin(w->graph, w->one, w->pool, RONDO_CAPTURE_MODE_GLOBAL));
    STEP(rondo_stream_copy(w->one, w->a, w->pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    STEP(add(w->one, w->a, 10, "captured"));
    STEP(rondo_stream_copy(w->one, w->b, w->a, BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    STEP(rondo_stream_fill(w->one, w->a, 77, BYTES));
    STEP(rondo_graph_capture_end(w->graph, w->one));
    return RONDO_OK;
}

static rondo_status bring_back(const world *w, const void *a, const void *b, unsigned want_a, unsigned want_b) {
    STEP(rondo_stream_copy(w->one, back_one, a, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_copy(w->one, back_two, b, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_synchronize(w->one));
    return back_one[3] == want_a && back_two[3] == want_b ? RONDO_OK : wrong("a result of a replay");
}

static rondo_status replay(world *w) {
    memset(w->pinned, 20, BYTES);
    STEP(rondo_graph_replay(w->graph, w->one));
    STEP(bring_back(w, w->a, w->b, 77, 30));
    STEP(rondo_memory_allocate(w->device, BYTES, &w->temporary));
    STEP(rondo_graph_bind(w->graph, 0, w->temporary));
    STEP(rondo_graph_replay(w->graph, w->two));
    STEP(rondo_graph_replay(w->graph, w->one));
    STEP(bring_back(w, w->temporary, w->b, 77, 30));
    STEP(rondo_graph_bind(w->graph, 0, w->a));
    void *temporary = w->temporary;
    w->temporary = NULL;
    return rondo_memory_free(w->device, temporary);
}

/* A capture that a host call makes opaque, and one that is given up in the middle. */
static rondo_status capture_others(world *w) {
    w->host_calls = 0;
    STEP(rondo_graph_capture_begin(w->dropped, w->two, w->pool, RONDO_CAPTURE_MODE_RELAXED));
    STEP(rondo_stream_host_call(w->two, host_count, &w->host_calls));
    STEP(rondo_stream_fill(w->two, w->b, 9, BYTES));
    STEP(rondo_stream_fill(w->two, w->a, 0, BYTES));
    STEP(rondo_graph_condition_begin(w->two, w->a));
    STEP(rondo_stream_fill(w->two, w->b, 1, BYTES));
    STEP(rondo_stream_host_call(w->two, host_count, &w->host_calls));
    STEP(rondo_graph_condition_end(w->two));
    STEP(rondo_graph_capture_end(w->dropped, w->two));
    STEP(rondo_graph_replay(w->dropped, w->two));
    STEP(rondo_stream_copy(w->two, back_two, w->b, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_synchronize(w->two));
    if (w->host_calls != 1 || back_two[0] != 9) return wrong("what a condition decided about");
    rondo_graph_reset(w->dropped);
    STEP(rondo_graph_capture_begin(w->dropped, w->two, w->pool, RONDO_CAPTURE_MODE_RELAXED));
    STEP(rondo_stream_fill(w->two, w->b, 9, BYTES));
    STEP(rondo_graph_abort(w->dropped));
    STEP(rondo_stream_fill(w->two, w->b, 8, BYTES));
    STEP(rondo_stream_copy(w->two, back_two, w->b, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    STEP(rondo_stream_synchronize(w->two));
    return back_two[0] == 8 ? RONDO_OK : wrong("what ran after an abort");
}

static rondo_status scenario(world *w) {
    uint64_t free_bytes = 0, total = 0;
    STEP(make(w));
    STEP(run_eagerly(w));
    STEP(capture(w));
    STEP(replay(w));
    STEP(capture_others(w));
    return rondo_device_memory_info(w->device, &free_bytes, &total);
}

/* As after any failure: what captured is reset, what was temporary is freed. */
static void recover(world *w) {
    rondo_graph_reset(w->graph);
    rondo_graph_reset(w->dropped);
    if (w->temporary) rondo_status_release(rondo_memory_free(w->device, w->temporary));
    w->temporary = NULL;
}

static bool is_injected(rondo_status status) {
    return status && strstr(rondo_status_message(status), "as asked") != NULL;
}

/* A failure met on someone else's behalf comes out here. */
static bool settle(rondo_stream *stream) {
    rondo_status status = stream ? rondo_stream_synchronize(stream) : RONDO_OK;
    bool is = is_injected(status);
    rondo_status_release(status);
    return is;
}

static void world_close(world *w) {
    rondo_graph_release(w->graph);
    rondo_graph_release(w->dropped);
    if (w->a) rondo_status_release(rondo_memory_free(w->device, w->a));
    if (w->b) rondo_status_release(rondo_memory_free(w->device, w->b));
    if (w->pinned) rondo_status_release(rondo_memory_host_free(w->device, w->pinned));
    rondo_event_release(w->event);
    rondo_stream_release(w->one);
    rondo_stream_release(w->two);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static rondo_status world_open(world *w, const char *settings) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *w = (world){0};
    lines[0] = 0;
    options.ignore_plugin_path = 1;
    options.log = take_line;
    options.log_level = RONDO_LOG_INFO;
    STEP(rondo_instance_create(&options, &w->instance));
    return rondo_device_open(w->instance, "sim", settings, &w->device);
}

static uint64_t counter(rondo_test *t, rondo_device *device, const char *name) {
    uint64_t value = 0;
    T_OK(t, rondo_device_counter(device, name, &value));
    return value;
}

/* ------------------------------------------------------------------------------------------------- every call */

/* Returns whether the fault was reached. */
static bool fail_one(rondo_test *t, const char *settings) {
    world w;
    rondo_status status = world_open(&w, settings);
    if (status) { /* the very opening: nothing is left of it, and the next one may go well */
        T_TRUE(t, is_injected(status));
        rondo_status_release(status);
        T_OK(t, rondo_device_open(w.instance, "sim", NULL, &w.device));
        T_OK(t, scenario(&w));
        world_close(&w);
        return true;
    }
    status = scenario(&w);
    bool told = is_injected(status);
    if (status && !told) T_OK(t, status);
    rondo_status_release(status);
    uint64_t reached = counter(t, w.device, "faults");
    recover(&w);
    told |= settle(w.one);
    told |= settle(w.two);
    told |= settle(rondo_stream_default(w.device));
    told |= strstr(lines, "as asked") != NULL;
    /* Resetting a graph waits and returns nothing. */
    told |= strstr(injected, "'event_synchronize'") != NULL;
    if (reached && !told) rondo_test_fail(t, __FILE__, __LINE__, "%s: nobody was told: %s", settings, injected);
    T_OK(t, scenario(&w));
    recover(&w);
    uint64_t bytes = 0, allocations = 0;
    rondo_memory_usage(w.device, &bytes, &allocations);
    if (allocations != 2)
        rondo_test_fail(t, __FILE__, __LINE__, "%s: %llu allocations are left, not 2", settings,
                        (unsigned long long)allocations);
    lines[0] = 0;
    world_close(&w);
    T_STR(t, lines, "");
    return reached != 0;
}

static void test_every_call_fails_in_turn(rondo_test *t) {
    world w;
    char settings[64];
    T_OK(t, world_open(&w, NULL));
    T_OK(t, scenario(&w));
    uint64_t calls = counter(t, w.device, "calls.any");
    world_close(&w);
    T_TRUE(t, calls > 60);
    for (uint64_t n = 1; n <= calls; n++) {
        (void)snprintf(settings, sizeof settings, "fail=any:%llu", (unsigned long long)n);
        T_TRUE(t, fail_one(t, settings));
    }
}

/* The same entry by entry, which also shows that the scenario reaches each. */
static void test_every_entry_fails_in_turn(rondo_test *t) {
    static const char *const names[] = {
#define RONDO_X(entry, text, fails) fails ? text : NULL,
        RONDO__SIM_ENTRIES(RONDO_X)
#undef RONDO_X
    };
    char settings[64];
    for (int i = RONDO__SIM_ENTRY_PROPERTIES; i < RONDO__SIM_ENTRY_OF; i++) {
        if (!names[i] || i == RONDO__SIM_ENTRY_COUNTER) continue;
        (void)snprintf(settings, sizeof settings, "fail=%s:1:busy", names[i]);
        if (!fail_one(t, settings)) rondo_test_fail(t, __FILE__, __LINE__, "%s was never called", names[i]);
    }
}

/* --------------------------------------------------------------------------------------------------- settings */

static void test_the_code_and_the_number(rondo_test *t) {
    world w;
    void *memory = NULL;
    T_OK(t, world_open(&w, "fail=launch:2:out_of_memory+fill:0:device_lost"));
    T_OK(t, make(&w));
    T_FAILS(t, rondo_stream_fill(w.one, w.a, 1, 4), DEVICE_LOST, "sim: call 1 of entry 'fill' fails, as asked");
    T_FAILS(t, rondo_stream_fill(w.one, w.a, 1, 4), DEVICE_LOST, "call 2 of entry 'fill'");
    T_OK(t, add(w.one, w.a, 1, "first"));
    T_FAILS(t, add(w.one, w.a, 1, "second"), OUT_OF_MEMORY, "call 2 of entry 'launch'");
    T_OK(t, add(w.one, w.a, 1, "third"));
    T_EQ(t, counter(t, w.device, "faults"), 3);
    T_EQ(t, counter(t, w.device, "calls.launch"), 3);
    T_EQ(t, counter(t, w.device, "launches"), 2);
    T_EQ(t, counter(t, w.device, "calls.open"), 1);
    T_EQ(t, counter(t, w.device, "calls.capture_changed"), 0);
    T_FAILS(t, rondo_device_counter(w.device, "calls.nothing", &(uint64_t){0}), NOT_FOUND, "calls.nothing");
    world_close(&w);
    (void)memory;
}

static void test_bad_settings(rondo_test *t) {
    static const char *const bad[][2] = {{"fail=", "'' is not ENTRY:N"},
                                         {"fail=launch", "'launch' is not ENTRY:N"},
                                         {"fail=launch:x", "'launch:x' is not"},
                                         {"fail=launch:1:sorry", "'launch:1:sorry' is not"},
                                         {"fail=lunch:1", "'lunch' is no entry of the tables that can fail"},
                                         {"fail=free:1", "'free' is no entry of the tables that can fail"},
                                         {"races=maybe", "'races' is 'on' or 'off'"},
                                         {"sums=", "'sums' is 'on' or 'off'"},
                                         {"mutate=nothing", "there is no mutation 'nothing'"},
                                         {"mutate=#0", "there is no mutation '#0'"},
                                         {"mutate=?", "copy_short: copies leave out the last byte"}};
    world w;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        T_FAILS(t, world_open(&w, bad[i][0]), INVALID_ARGUMENT, bad[i][1]);
        rondo_instance_release(w.instance);
    }
}

static void test_the_environment(rondo_test *t) {
    world w;
    T_EQ(t, setenv("RONDO_SIM_FAIL", "enumerate:2+open:2+create:3", 1), 0);
    rondo_status opened = world_open(&w, NULL); /* enumerate 1, open 1, the default stream */
    rondo_device *other = NULL;
    rondo_status counted = rondo_device_open(w.instance, "sim:1", NULL, &other);
    rondo_status again = rondo_device_open(w.instance, "sim:1", NULL, &other);
    rondo_status made = opened ? RONDO_OK : make(&w); /* its second stream is the third create */
    T_EQ(t, setenv("RONDO_SIM_FAIL", "never:1", 1), 0);
    rondo_status bad = rondo_device_open(w.instance, "sim:1", NULL, &other);
    T_EQ(t, unsetenv("RONDO_SIM_FAIL"), 0);
    T_OK(t, opened);
    T_FAILS(t, counted, INTERNAL, "call 2 of entry 'enumerate'");
    T_FAILS(t, again, INTERNAL, "call 2 of entry 'open'");
    T_FAILS(t, made, INTERNAL, "call 3 of entry 'create'");
    T_FAILS(t, bad, INVALID_ARGUMENT, "RONDO_SIM_FAIL");
    world_close(&w);
}

RONDO_TEST_MAIN(T_PLAIN(test_every_call_fails_in_turn), T_PLAIN(test_every_entry_fails_in_turn),
                T_PLAIN(test_the_code_and_the_number), T_PLAIN(test_bad_settings), T_PLAIN(test_the_environment))
