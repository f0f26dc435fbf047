/* SPDX-License-Identifier: Apache-2.0
 *
 * Each deliberate fault shows: a few plain questions about the device, all answered rightly by the simulator as it is,
 * and at least one wrongly under every mutation. Nothing crashes on the way. */
#include <pthread.h>
#include <stdio.h>

#include <rondo/runtime.h>

#include "backends/sim/mutations.h"
#include "device/device.h"
#include "harness/harness.h"

#define BYTES 64u
#define LARGE ((uint64_t)12 << 20)
#define LARGE_COPY 70000u

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *one, *two;
    rondo_event *event;
    unsigned char *a, *b;
    bool good; /* every call succeeded */
} world;

static unsigned char back[BYTES], large[LARGE_COPY]; /* outlive every stream */
static int order[8], ran;
static int32_t failing; /* what kernel_may_fail returns */

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

static int32_t kernel_may_fail(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return failing;
}

static int32_t host_looks(void *user) {
    *(int *)user = back[0];
    return 0;
}

static int32_t host_order(void *user) {
    if (ran < 8) order[ran] = (int)(uintptr_t)user;
    ran++;
    return 0;
}

static rondo_status launch_as(rondo_stream *stream, const char *name, rondo_kernel_function function, void *one,
                              void *two, uint64_t five) {
    rondo_argument arguments[6] = {{(uint64_t)(uintptr_t)one, BYTES, RONDO_ACCESS_BOTH, 0}, {0}};
    rondo_call call = RONDO_CALL_INIT;
    arguments[1] = two ? (rondo_argument){(uint64_t)(uintptr_t)two, BYTES, RONDO_ACCESS_READ, 0}
                       : (rondo_argument){(uint64_t)7 << 32, 0, RONDO_ACCESS_VALUE, 0};
    arguments[5].word = five;
    call.kernel.function = function;
    call.arguments = arguments;
    call.argument_count = 6;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

static rondo_status launch(rondo_stream *stream, rondo_kernel_function function, void *one, void *two, uint64_t five) {
    return launch_as(stream, "named", function, one, two, five);
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

/* An odd number, one that is large, and an overlap. */
static bool ask_copy_lengths(world *w) {
    void *memory = NULL;
    bool good = true;
    need(w, rondo_memory_allocate(w->device, LARGE_COPY, &memory));
    if (!w->good) return false;
    for (size_t i = 0; i < LARGE_COPY; i++) large[i] = (unsigned char)(i % 251u);
    need(w, rondo_stream_copy(w->one, memory, large, LARGE_COPY - 1u, RONDO_COPY_HOST_TO_DEVICE));
    need(w, rondo_stream_copy(w->one, (char *)memory + 1, memory, BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    memset(large, 0, sizeof large);
    need(w, rondo_stream_copy(w->one, large, memory, LARGE_COPY, RONDO_COPY_DEVICE_TO_HOST));
    need(w, rondo_stream_synchronize(w->one));
    for (size_t i = BYTES + 1u; i < LARGE_COPY - 1u; i++) good = good && large[i] == i % 251u;
    for (size_t i = 1; i <= BYTES; i++) good = good && large[i] == i - 1u;
    need(w, rondo_memory_free(w->device, memory));
    return good;
}

/* A copy between two calls, in both directions, and a host function behind a copy. */
static bool ask_copies_in_order(world *w) {
    unsigned char in[BYTES];
    int seen = -1;
    memset(in, 1, sizeof in);
    need(w, rondo_stream_copy(w->one, w->a, in, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    need(w, launch(w->one, kernel_add, w->a, NULL, 0));
    need(w, rondo_stream_copy(w->one, back, w->a, BYTES, RONDO_COPY_DEVICE_TO_HOST));
    need(w, rondo_stream_host_call(w->one, host_looks, &seen));
    need(w, rondo_stream_synchronize(w->one));
    return seen == 10 && back_is(w, w->a, 10);
}

static bool ask_fills(world *w) {
    need(w, rondo_stream_fill(w->one, w->a, 1, 2u * BYTES));
    need(w, rondo_stream_fill(w->one, w->a, 2, BYTES));
    if (!back_is(w, w->a, 2) || !back_is(w, w->a + BYTES, 1)) return false;
    need(w, rondo_stream_fill(w->one, w->a + BYTES + 1, 3, BYTES - 1u)); /* not from a whole word on */
    (void)back_is(w, w->a + BYTES, 1);
    return back[0] == 1 && back[1] == 3 && back[BYTES - 1u] == 3 && back_is(w, w->a, 2);
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

/* The same event again and again; a wait is for the record before it. */
static bool ask_events_again(world *w) {
    bool good = true;
    for (int i = 0; i < 3; i++) {
        ran = 0;
        for (uintptr_t k = 1; k <= 4u; k++) need(w, rondo_stream_host_call(w->one, host_order, (void *)k)); // NOLINT
        need(w, rondo_event_record(w->event, w->one));
        need(w, rondo_event_wait(w->event, w->two));
        need(w, rondo_stream_host_call(w->two, host_order, (void *)(uintptr_t)5)); // NOLINT
        need(w, rondo_event_record(w->event, w->two));
        need(w, rondo_stream_synchronize(w->two));
        need(w, rondo_stream_synchronize(w->one));
        good = good && ran == 5 && order[4] == 5;
    }
    return good;
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

/* The first of two failures, and nothing runs behind it. */
static bool ask_two_failures(world *w) {
    need(w, rondo_stream_fill(w->one, w->a, 4, BYTES));
    need(w, launch_as(w->one, "first", kernel_fails, w->b, NULL, 0));
    need(w, launch_as(w->one, "second", kernel_fails, w->b, NULL, 0));
    need(w, launch(w->one, kernel_add, w->a, NULL, 0));
    rondo_status status = rondo_stream_synchronize(w->one);
    bool first = strstr(rondo_status_message(status), "'first'") != NULL;
    return fails(status, RONDO_CODE_KERNEL_FAILED) && first && back_is(w, w->a, 4);
}

static bool ask_replays(world *w) {
    rondo_graph *graph = NULL;
    bool good = true;
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_graph_declare_slot(graph, 0, w->a, BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_REBIND));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    for (unsigned i = 0; i < 4u; i++) need(w, launch(w->one, kernel_add, w->a, NULL, i / 2u)); /* twice the same */
    need(w, rondo_graph_capture_end(graph, w->one));
    for (int i = 0; i < 2 && w->good; i++) {
        unsigned char *target = i ? w->b : w->a;
        unsigned want = 1;
        need(w, rondo_stream_fill(w->one, target, 1, BYTES));
        if (i) need(w, rondo_graph_bind(graph, 0, target));
        need(w, rondo_graph_replay(graph, w->one));
        for (unsigned k = 0; k < 4u; k++) want = want * 3u + 7u + k / 2u;
        good = good && back_is(w, target, want);
    }
    rondo_graph_release(graph);
    return good;
}

/* Everything that a capture may hold, replayed with other data and other arguments: an upload, a call, a fork and its
 * join, a copy behind a call, a host function. */
static bool ask_mixed_replays(world *w) {
    rondo_graph *graph = NULL;
    rondo_event *joined = NULL;
    void *pinned = NULL;
    bool good = true;
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_event_create(w->device, &joined));
    need(w, rondo_memory_host_allocate(w->device, BYTES, &pinned));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    need(w, rondo_stream_copy(w->one, w->a, pinned, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    need(w, rondo_event_record(w->event, w->one));
    need(w, rondo_event_wait(w->event, w->two));
    need(w, launch(w->two, kernel_move, w->a + BYTES, w->a, 0));
    need(w, rondo_event_record(joined, w->two));
    need(w, rondo_event_wait(joined, w->one));
    need(w, launch(w->one, kernel_move, w->a + 2u * BYTES, w->a + BYTES, 0));
    need(w, rondo_stream_copy(w->one, w->b, w->a + 2u * BYTES, BYTES, RONDO_COPY_DEVICE_TO_DEVICE));
    need(w, rondo_stream_host_call(w->one, host_order, NULL));
    need(w, rondo_graph_capture_end(graph, w->one));
    need(w, rondo_stream_synchronize(w->two)); /* it is free again */
    ran = 0;
    for (int i = 0; i < 4 && w->good; i++) {
        unsigned char *target = w->b + (i % 2) * (int)BYTES;
        rondo_argument copy[] = {{(uint64_t)(uintptr_t)target, BYTES, RONDO_ACCESS_WRITE, 0},
                                 {(uint64_t)(uintptr_t)(w->a + 2u * BYTES), BYTES, RONDO_ACCESS_READ, 0},
                                 {BYTES, 0, RONDO_ACCESS_VALUE, 0}};
        memset(pinned, 20 + i, BYTES);
        need(w, rondo_graph_update(graph, 3, copy, 3));
        need(w, rondo_graph_replay(graph, w->one));
        good = good && back_is(w, target, 20u + (unsigned)i);
    }
    rondo_graph_release(graph);
    rondo_event_release(joined);
    need(w, rondo_memory_host_free(w->device, pinned));
    return good && ran == 4;
}

/* One condition within another, both set by the graph; of the inner one only the upper half is not 0. */
static bool ask_conditions(world *w) {
    rondo_graph *graph = NULL;
    bool good = true;
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    need(w, launch(w->one, kernel_move, w->a, w->b, 0));
    need(w, rondo_stream_fill(w->one, w->a + 3u * BYTES, 0, BYTES));
    need(w, rondo_graph_condition_begin(w->one, w->a));
    need(w, rondo_stream_fill(w->one, w->a + 3u * BYTES, 1, BYTES));
    need(w, rondo_graph_condition_begin(w->one, w->a + 8));
    need(w, rondo_stream_fill(w->one, w->a + 3u * BYTES, 2, BYTES));
    need(w, rondo_graph_condition_end(w->one));
    need(w, rondo_graph_condition_end(w->one));
    need(w, rondo_graph_capture_end(graph, w->one));
    for (int bits = 0; bits < 4 && w->good; bits++) {
        need(w, rondo_stream_fill(w->one, w->b, 0, BYTES));
        if (bits & 1) need(w, rondo_stream_fill(w->one, w->b, 1, 1));
        if (bits & 2) need(w, rondo_stream_fill(w->one, w->b + 12, 1, 1));
        need(w, rondo_graph_replay(graph, w->one));
        good = good && back_is(w, w->a + 3u * BYTES, bits == 3 ? 2 : bits == 1 ? 1 : 0);
    }
    rondo_graph_release(graph);
    return good;
}

/* A failure on the side is told where the replay is waited for. */
static bool ask_failing_fork(world *w) {
    rondo_graph *graph = NULL;
    rondo_event *joined = NULL;
    bool good = true;
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_event_create(w->device, &joined));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    need(w, rondo_event_record(w->event, w->one));
    need(w, rondo_event_wait(w->event, w->two));
    need(w, launch(w->two, kernel_may_fail, w->b, NULL, 0));
    need(w, rondo_event_record(joined, w->two));
    need(w, rondo_event_wait(joined, w->one));
    need(w, rondo_graph_capture_end(graph, w->one));
    for (int i = 0; i < 4; i++) {
        failing = i % 2;
        need(w, rondo_graph_replay(graph, w->one));
        good = fails(rondo_stream_synchronize(w->one), failing ? RONDO_CODE_KERNEL_FAILED : RONDO_CODE_OK) && good;
    }
    rondo_graph_release(graph);
    rondo_event_release(joined);
    return good;
}

static void *other_thread(void *argument) {
    world *w = argument;
    need(w, launch(w->two, kernel_add, w->b, NULL, 0));
    need(w, rondo_stream_synchronize(w->two));
    return NULL;
}

/* Beside a capture all goes on, on other threads too. */
static bool ask_captures(world *w) {
    rondo_graph *graph = NULL;
    pthread_t thread;
    uint64_t address = 0;
    const rondo_device_table *table = w->device->table;
    need(w, rondo_stream_fill(w->two, w->b, 1, BYTES));
    need(w, rondo_graph_create(w->device, NULL, &graph));
    need(w, rondo_graph_capture_begin(graph, w->one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    need(w, launch(w->two, kernel_add, w->b, NULL, 0));
    need(w, rondo_stream_synchronize(w->two));
    need(w, table->memory->allocate(w->device->handle, BYTES, &address));
    if (w->good) table->memory->free(w->device->handle, address, BYTES);
    if (pthread_create(&thread, NULL, other_thread, w) != 0) return false;
    (void)pthread_join(thread, NULL);
    need(w, rondo_graph_abort(graph));
    rondo_graph_release(graph);
    return back_is(w, w->b, 37);
}

static rondo_status philox(rondo_stream *stream, rondo_kernel kernel, void *out, uint64_t seed, uint64_t offset) {
    const rondo_argument arguments[] = {{(uint64_t)(uintptr_t)out, 16, RONDO_ACCESS_WRITE, 0},
                                        {4, 0, RONDO_ACCESS_VALUE, 0},
                                        {seed, 0, RONDO_ACCESS_VALUE, 0},
                                        {offset, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = kernel;
    call.arguments = arguments;
    call.argument_count = 4;
    return rondo_stream_launch(stream, &call);
}

/* Against the numbers that were published with the algorithm; a seed has 64 bits. */
static bool ask_random(world *w) {
    static const uint32_t published[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    rondo_kernel kernel;
    uint32_t got[16] = {0};
    need(w, rondo_kernel_find(w->device, "rondo.philox", &kernel));
    if (!w->good) return false;
    need(w, philox(w->one, kernel, w->a, 0, 0));
    need(w, philox(w->one, kernel, w->a + 16, 0, 2));
    need(w, philox(w->one, kernel, w->a + 32, (uint64_t)1 << 40, 0));
    (void)back_is(w, w->a, 0);
    memcpy(got, back, sizeof got);
    rondo_kernel_release(w->device, kernel);
    return memcmp(got, published, 16) == 0 && memcmp(got + 4, published + 2, 8) == 0 &&
           memcmp(got + 8, published, 16) != 0;
}

static bool ask_pinned(world *w) {
    const rondo_memory_table *table = w->device->table->memory;
    void *one = NULL, *two = NULL;
    need(w, table->host_allocate(w->device->handle, BYTES, &one));
    need(w, table->host_allocate(w->device->handle, BYTES, &two));
    bool apart = one != two;
    if (one) table->host_free(w->device->handle, one, BYTES);
    if (two) table->host_free(w->device->handle, two, BYTES);
    return apart;
}

static bool (*const questions[])(world *) = {
    ask_launches,      ask_properties, ask_memory, ask_copies,       ask_copy_lengths, ask_copies_in_order, ask_fills,
    ask_host_calls,    ask_waiting,    ask_events, ask_events_again, ask_failures,     ask_two_failures,    ask_replays,
    ask_mixed_replays, ask_conditions, ask_random, ask_failing_fork, ask_captures,     ask_pinned};
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

/* How many questions are answered wrongly; no more are asked than it takes to find so many. */
static int ask_all(const char *format, int mutation, int seed, int enough) {
    int wrong = 0;
    char settings[64];
    (void)snprintf(settings, sizeof settings, format, mutation, seed);
    for (size_t i = 0; i < QUESTIONS && wrong < enough; i++) {
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
        T_EQ(t, ask_all("fail=counter:100000%d,seed=%d", 0, seed, 1), 0);
        for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) {
            if (ask_all("mutate=#%d,seed=%d", i, seed, 1)) continue;
            rondo_test_fail(t, __FILE__, __LINE__, "mutation '%s' shows in nothing", rondo__sim_mutation_at(i)->name);
        }
    }
}

/* Most faults break one thing and not everything. */
static void test_a_mutation_is_one_fault(rondo_test *t) {
    int narrow = 0;
    for (int i = 1; i <= RONDO__SIM_MUTATION_LAST; i++) narrow += ask_all("mutate=#%d,seed=%d", i, 1, 4) <= 3;
    T_TRUE(t, narrow >= RONDO__SIM_MUTATION_LAST / 2);
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
