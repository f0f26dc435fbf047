/* SPDX-License-Identifier: Apache-2.0
 *
 * Each deliberate fault shows: a few plain questions about the device, all answered rightly by the simulator as it is,
 * and at least one wrongly under every mutation. Nothing crashes on the way. */
#include <stdio.h>

#include <rondo/runtime.h>

#include "backends/sim/mutations.h"
#include "device/device.h"
#include "harness/harness.h"

#define BYTES 64u
#define LARGE ((uint64_t)12 << 20)

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *one, *two;
    rondo_event *event;
    unsigned char *a, *b;
    bool good; /* every call succeeded */
} world;

static unsigned char back[BYTES]; /* outlives every stream */
static int order[8], ran;

static void need(world *w, rondo_status status) {
    if (status) w->good = false;
    rondo_status_release(status);
}

static bool fails(rondo_status status, rondo_code code) {
    bool is = rondo_status_code(status) == code;
    rondo_status_release(status);
    return is;
}

static int32_t kernel_add(const void *context, const uint64_t *words) {
    unsigned char *bytes = (unsigned char *)(uintptr_t)words[0];
    (void)context;
    for (uint64_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(bytes[i] * 3u + (words[1] >> 32) + words[5]);
    return 0;
}

static int32_t kernel_move(const void *context, const uint64_t *words) {
    (void)context;
    memcpy((void *)(uintptr_t)words[0], (const void *)(uintptr_t)words[1], BYTES);
    return 0;
}

static int32_t kernel_fails(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return 3;
}

static int32_t host_order(void *user) {
    if (ran < 8) order[ran] = (int)(uintptr_t)user;
    ran++;
    return 0;
}

static rondo_status launch(rondo_stream *stream, rondo_kernel_function function, void *one, void *two, uint64_t five) {
    rondo_argument arguments[6] = {{(uint64_t)(uintptr_t)one, BYTES, RONDO_ACCESS_BOTH, 0}, {0}};
    rondo_call call = RONDO_CALL_INIT;
    arguments[1] = two ? (rondo_argument){(uint64_t)(uintptr_t)two, BYTES, RONDO_ACCESS_READ, 0}
                       : (rondo_argument){(uint64_t)7 << 32, 0, RONDO_ACCESS_VALUE, 0};
    arguments[5].word = five;
    call.kernel.function = function;
    call.arguments = arguments;
    call.argument_count = 6;
    call.name = "named";
    return rondo_stream_launch(stream, &call);
}

static bool back_is(world *w, const void *from, unsigned value) {
    need(w, rondo_stream_copy(w->one, back, from, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    need(w, rondo_stream_synchronize(w->one));
    for (unsigned i = 0; i < BYTES; i++) {
        if (back[i] != (unsigned char)value) return false;
    }
    return true;
}

/* --------------------------------------------------------------------------------------------------- questions */

static bool ask_properties(world *w) {
    const rondo_device_properties *info = rondo_device_info(w->device);
    return info->index == 0 && !(info->capabilities & RONDO_DEVICE_INLINE) &&
           (info->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) &&
           (uint64_t)(uintptr_t)w->a % info->allocation_alignment == 0;
}

static bool ask_memory(world *w) {
    const rondo_device_table *table = w->device->table;
    uint64_t before = 0, taken = 0, after = 0, total = 0, one = 0, two = 0, three = 0;
    need(w, rondo_device_memory_info(w->device, &before, &total));
    need(w, table->memory->allocate(w->device->handle, LARGE, &one));
    need(w, table->memory->allocate(w->device->handle, BYTES, &two));
    if (!w->good) return false;
    unsigned char first = *(unsigned char *)(uintptr_t)one;
    bool apart = two >= one + LARGE || one >= two + BYTES;
    bool aligned = one % 256u == 0 && two % 256u == 0 && first == 0xCD;
    need(w, rondo_device_memory_info(w->device, &taken, &total));
    bool refused = fails(table->memory->allocate(w->device->handle, total, &three), RONDO_CODE_OUT_OF_MEMORY);
    if (three) table->memory->free(w->device->handle, three, total);
    table->memory->free(w->device->handle, two, BYTES);
    table->memory->free(w->device->handle, one, LARGE);
    need(w, rondo_device_memory_info(w->device, &after, &total));
    return apart && aligned && refused && before - taken == LARGE + BYTES && after == before;
}

static bool ask_copies(world *w) {
    unsigned char in[BYTES];
    memset(in, 1, sizeof in);
    for (int i = 0; i < 2; i++) {
        memset(in, 10 + i, sizeof in);
        need(w, rondo_stream_copy(w->one, w->a, in, BYTES, RONDO_COPY_HOST_TO_DEVICE));
        need(w, rondo_stream_fill(w->one, w->b, 5, 2u * BYTES));
        need(w, rondo_stream_copy(w->one, w->b, w->a, BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
        if (!back_is(w, w->b, 10u + (unsigned)i)) return false;
        if (!back_is(w, w->b + BYTES, 5)) return false;
    }
    return fails(rondo_stream_copy(w->one, w->a, w->b, BYTES, RONDO_COPY_HOST_TO_DEVICE), RONDO_CODE_INVALID_ARGUMENT);
}

static bool ask_fills(world *w) {
    need(w, rondo_stream_fill(w->one, w->a, 1, 2u * BYTES));
    need(w, rondo_stream_fill(w->one, w->a, 2, BYTES));
    return back_is(w, w->a, 2) && back_is(w, w->a + BYTES, 1);
}

static bool ask_launches(world *w) {
    uint64_t before = 0, after = 0;
    unsigned want = 1;
    need(w, rondo_device_counter(w->device, "launches", &before));
    need(w, rondo_stream_fill(w->one, w->a, 1, BYTES));
    for (unsigned i = 0; i < 6u; i++) {
        need(w, launch(w->one, kernel_add, w->a, NULL, i));
        want = want * 3u + 7u + i;
    }
    if (!back_is(w, w->a, want)) return false;
    need(w, rondo_stream_fill(w->one, w->b, 9, BYTES));
    need(w, launch(w->one, kernel_move, w->a, w->b, 0));
    need(w, rondo_device_counter(w->device, "launches", &after));
    if (!back_is(w, w->a, 9) || before != 0 || after != 7u) return false;
    return fails(rondo_device_counter(w->device, "no such", &after), RONDO_CODE_NOT_FOUND);
}

static bool ask_host_calls(world *w) {
    ran = 0;
    for (uintptr_t i = 1; i <= 3u; i++) need(w, rondo_stream_host_call(w->one, host_order, (void *)i)); // NOLINT
    bool none = ran == 0;
    need(w, rondo_stream_synchronize(w->one));
    return none && ran == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3;
}

static bool ask_waiting(world *w) {
    bool done = true, event_done = true;
    int asked = 0;
    ran = 0;
    for (uintptr_t i = 1; i <= 4u; i++) need(w, rondo_stream_host_call(w->one, host_order, (void *)i)); // NOLINT
    need(w, rondo_event_record(w->event, w->one));
    need(w, rondo_event_query(w->event, &event_done));
    need(w, rondo_stream_query(w->one, &done));
    if (done || event_done) return false;
    while (!done && asked++ < 100) need(w, rondo_stream_query(w->one, &done));
    if (!done || ran != 4) return false;
    need(w, rondo_stream_host_call(w->one, host_order, NULL));
    need(w, rondo_event_record(w->event, w->one));
    need(w, rondo_event_synchronize(w->event));
    if (ran != 5) return false;
    need(w, rondo_stream_host_call(w->one, host_order, NULL));
    need(w, rondo_stream_synchronize(w->one));
    return ran == 6;
}

static bool ask_events(world *w) {
    ran = 0;
    for (uintptr_t i = 1; i <= 4u; i++) need(w, rondo_stream_host_call(w->one, host_order, (void *)i)); // NOLINT
    need(w, rondo_event_record(w->event, w->one));
    need(w, rondo_event_wait(w->event, w->two));
    need(w, rondo_stream_host_call(w->two, host_order, (void *)(uintptr_t)5)); // NOLINT
    need(w, rondo_stream_synchronize(w->two));
    need(w, rondo_stream_synchronize(w->one));
    return ran == 5 && order[4] == 5;
}

static bool ask_failures(world *w) {
    need(w, launch(w->two, kernel_fails, w->a, NULL, 0));
    need(w, rondo_stream_synchronize(w->one));
    rondo_status status = rondo_stream_synchronize(w->two);
    bool named = strstr(rondo_status_message(status), "'named'") != NULL;
    if (!fails(status, RONDO_CODE_KERNEL_FAILED) || !named) return false;
    need(w, rondo_stream_synchronize(w->two));
    return true;
}

static bool ask_replays(world *w) {
    rondo_graph *graph = NULL;
    bool good = true;
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_graph_declare_slot(graph, 0, w->a, BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    for (unsigned i = 0; i < 4u; i++) need(w, launch(w->one, kernel_add, w->a, NULL, i));
    need(w, rondo_graph_capture_end(graph, w->one));
    for (int i = 0; i < 2 && w->good; i++) {
        unsigned char *target = i ? w->b : w->a;
        unsigned want = 1;
        need(w, rondo_stream_fill(w->one, target, 1, BYTES));
        if (i) need(w, rondo_graph_bind(graph, 0, target));
        need(w, rondo_graph_replay(graph, w->one));
        for (unsigned k = 0; k < 4u; k++) want = want * 3u + 7u + k;
        good = good && back_is(w, target, want);
    }
    rondo_graph_release(graph);
    return good;
}

static bool (*const questions[])(world *) = {ask_launches,   ask_properties, ask_memory, ask_copies,   ask_fills,
                                             ask_host_calls, ask_waiting,    ask_events, ask_failures, ask_replays};
#define QUESTIONS (sizeof questions / sizeof questions[0])

static bool world_open(world *w, const char *settings) {
    void *a = NULL, *b = NULL;
    *w = (world){.good = true};
    need(w, rondo_instance_create(NULL, &w->instance));
    need(w, rondo_device_open(w->instance, "sim", settings, &w->device));
    if (!w->good) return false;
    need(w, rondo_stream_create(w->device, NULL, &w->one));
    need(w, rondo_stream_create(w->device, NULL, &w->two));
    need(w, rondo_event_create(w->device, &w->event));
    need(w, rondo_memory_allocate(w->device, 4u * BYTES, &a));
    need(w, rondo_memory_allocate(w->device, 4u * BYTES, &b));
    w->a = a;
    w->b = b;
    return w->good;
}

static void world_close(world *w) {
    if (w->a) need(w, rondo_memory_free(w->device, w->a));
    if (w->b) need(w, rondo_memory_free(w->device, w->b));
    rondo_event_release(w->event);
    rondo_stream_release(w->one);
    rondo_stream_release(w->two);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

/* How many questions are answered wrongly. */
static int ask_all(const char *format, int mutation, int seed) {
    int wrong = 0;
    char settings[64];
    (void)snprintf(settings, sizeof settings, format, mutation, seed);
    for (size_t i = 0; i < QUESTIONS; i++) {
        world w;
        bool right = world_open(&w, settings);
        right = right && questions[i](&w) && w.good;
        world_close(&w);
        wrong += !right;
    }
    return wrong;
}

static void test_every_mutation_shows(rondo_test *t) {
    for (int seed = 0; seed < 4; seed++) {
        T_EQ(t, ask_all("fail=counter:100000%d,seed=%d", 0, seed), 0);
        for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) {
            if (ask_all("mutate=#%d,seed=%d", i, seed)) continue;
            rondo_test_fail(t, __FILE__, __LINE__, "mutation '%s' shows in nothing", rondo__sim_mutation_at(i)->name);
        }
    }
}

/* Most faults break one thing and not everything. */
static void test_a_mutation_is_one_fault(rondo_test *t) {
    int narrow = 0;
    for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) narrow += ask_all("mutate=#%d,seed=%d", i, 1) <= 3;
    T_TRUE(t, narrow >= 35);
}

static void test_by_name_and_by_number(rondo_test *t) {
    world w;
    uint64_t count = 0;
    char settings[64];
    T_TRUE(t, world_open(&w, NULL));
    T_OK(t, rondo_device_counter(w.device, "mutations", &count));
    world_close(&w);
    T_EQ(t, count, RONDO__SIM_MUTATION_LAST);
    T_TRUE(t, count >= 30);
    for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) {
        (void)snprintf(settings, sizeof settings, "mutate=%s,races=on", rondo__sim_mutation_at(i)->name);
        (void)world_open(&w, settings);
        T_TRUE(t, w.device != NULL);
        world_close(&w);
        for (int j = 1; j < i; j++)
            T_TRUE(t, strcmp(rondo__sim_mutation_at(i)->name, rondo__sim_mutation_at(j)->name) != 0);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_every_mutation_shows), T_PLAIN(test_a_mutation_is_one_fault),
                T_PLAIN(test_by_name_and_by_number))
