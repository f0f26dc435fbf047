/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions on a stream: what stands in one runs, or is passed over, by what the stream finds when it gets there. */
#include <stdio.h>

#include <rondo/runtime.h>

#include "backends/sim/sim.h"
#include "device/device.h"
#include "harness/harness.h"

#define SEEDS 8

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *one, *two;
    rondo_event *event;
    int64_t *words; /* device memory, sixteen of them */
} world;

static void world_close(world *w) {
    rondo_event_release(w->event);
    rondo_stream_release(w->one);
    rondo_stream_release(w->two);
    if (w->words) rondo_status_release(rondo_memory_free(w->device, w->words));
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static void world_open(rondo_test *t, const char *settings, world *w) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    void *words = NULL;
    memset(w, 0, sizeof *w);
    T_DEFER(t, world_close, w);
    options.allocator = rondo_test_allocator(t);
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_device_open(w->instance, "sim", settings, &w->device));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->one));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->two));
    T_OK(t, rondo_event_create(w->device, &w->event));
    T_OK(t, rondo_memory_allocate(w->device, 16u * sizeof(int64_t), &words));
    w->words = words;
    for (int i = 0; i < 16; i++) w->words[i] = 0; /* nothing is enqueued, so nobody minds */
}

static rondo_status begin(const world *w, const rondo_stream *stream, int word) {
    return w->device->table->stream->condition_begin(stream->handle, (uint64_t)(uintptr_t)&w->words[word]);
}

static void end(const world *w, const rondo_stream *stream) { w->device->table->stream->condition_end(stream->handle); }

static int32_t host_bump(void *user) {
    ++*(int *)user;
    return 0;
}

static int32_t host_fails(void *user) {
    (void)user;
    return 5;
}

static uint64_t counter(rondo_test *t, const world *w, const char *name) {
    uint64_t value = 0;
    T_OK(t, rondo_device_counter(w->device, name, &value));
    return value;
}

/* [0]: ran 0, [1]: ran 1, end, ran 2, end, ran 3. */
static void test_nested(rondo_test *t) {
    static const int64_t values[] = {0, 1, -1, INT64_MIN, (int64_t)1 << 32};
    static world worlds[25]; /* closed when the body ends */
    for (int both = 0; both < 25; both++) {
        world *w = &worlds[both];
        int ran[4] = {0};
        int64_t outer = values[both / 5], inner = values[both % 5];
        world_open(t, NULL, w);
        w->words[0] = outer;
        w->words[1] = inner;
        T_OK(t, begin(w, w->one, 0));
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran[0]));
        T_OK(t, begin(w, w->one, 1));
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran[1]));
        T_OK(t, rondo_stream_fill(w->one, &w->words[3], 1, 8));
        end(w, w->one);
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran[2]));
        end(w, w->one);
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran[3]));
        T_OK(t, rondo_stream_synchronize(w->one));
        T_TRUE(t, ran[0] == (outer != 0) && ran[2] == (outer != 0) && ran[3] == 1);
        T_EQ(t, ran[1], outer && inner);
        T_EQ(t, w->words[3], outer && inner ? 0x0101010101010101 : 0);
        T_EQ(t, counter(t, w, "conditions"), 2);
    }
}

/* It is read when the stream gets there, once: what stands in it may change it. */
static void test_when_it_is_read(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, NULL, &w);
    T_OK(t, rondo_stream_fill(w.one, &w.words[0], 1, 8));
    T_OK(t, begin(&w, w.one, 0));
    T_OK(t, rondo_stream_fill(w.one, &w.words[0], 0, 8));
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    end(&w, w.one);
    T_OK(t, begin(&w, w.one, 0));
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    end(&w, w.one);
    T_OK(t, rondo_stream_synchronize(w.one));
    T_EQ(t, ran, 1);
}

/* Records and waits between begin and end happen whatever the condition says. */
static void test_events_happen(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, NULL, &w);
    T_OK(t, begin(&w, w.one, 0));
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    T_OK(t, rondo_event_record(w.event, w.one));
    end(&w, w.one);
    T_OK(t, rondo_event_wait(w.event, w.two));
    T_OK(t, rondo_stream_host_call(w.two, host_bump, &ran));
    T_OK(t, rondo_stream_synchronize(w.two));
    T_EQ(t, ran, 1);
}

/* What is passed over used nothing; the condition itself reads, as anything else does. */
static void test_races(rondo_test *t) {
    static world worlds[2 * SEEDS];
    for (int seed = 0; seed < SEEDS; seed++) {
        for (int inside = 0; inside < 2; inside++) {
            world *w = &worlds[2 * seed + inside];
            char settings[32];
            (void)snprintf(settings, sizeof settings, "seed=%d", seed);
            world_open(t, settings, w);
            T_OK(t, begin(w, w->one, 0));
            T_OK(t, rondo_stream_fill(w->one, &w->words[4], 1, 8));
            end(w, w->one);
            T_OK(t, rondo_stream_fill(w->two, &w->words[inside ? 4 : 0], 0, 8));
            rondo_status one = rondo_stream_synchronize(w->one), two = rondo_stream_synchronize(w->two);
            rondo_status first = one ? one : two;
            bool told = strstr(rondo_status_message(first), "a condition of 8 bytes") &&
                        strstr(rondo_status_message(first), "a fill of 8 bytes");
            T_TRUE(t, inside ? !first : told && !(one && two));
            rondo_status_release(one);
            rondo_status_release(two);
        }
    }
}

static void test_bad_places(rondo_test *t) {
    world w;
    int ran = 0;
    world_open(t, NULL, &w);
    T_FAILS(t, begin(&w, w.one, 16), INVALID_ARGUMENT, "a condition of 8 bytes");
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    T_OK(t, rondo_stream_synchronize(w.one)); /* a begin that was refused decides about nothing */
    T_EQ(t, ran, 1);
    T_OK(t, begin(&w, w.one, 0));
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    end(&w, w.one);
    w.words[0] = 1; /* behind its back */
    T_FAILS(t, rondo_stream_synchronize(w.one), KERNEL_FAILED, "a condition of 8 bytes");
    T_EQ(t, ran, 1);
    T_OK(t, rondo_stream_host_call(w.one, host_bump, &ran));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_EQ(t, ran, 2);
}

/* Behind a failure nothing runs, and once it is told the rest of a condition is not taken for something else. */
static void test_failures(rondo_test *t) {
    static world worlds[2];
    for (int where = 0; where < 2; where++) {
        world *w = &worlds[where];
        int ran = 0;
        world_open(t, NULL, w);
        w->words[0] = 1;
        if (where == 0) T_OK(t, rondo_stream_host_call(w->one, host_fails, NULL));
        T_OK(t, begin(w, w->one, 0));
        if (where == 1) T_OK(t, rondo_stream_host_call(w->one, host_fails, NULL));
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran));
        if (where == 0) T_FAILS(t, rondo_stream_synchronize(w->one), KERNEL_FAILED, "reason 5");
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran)); /* still in it */
        end(w, w->one);
        if (where == 1) T_FAILS(t, rondo_stream_synchronize(w->one), KERNEL_FAILED, "reason 5");
        T_OK(t, rondo_stream_synchronize(w->one));
        T_EQ(t, ran, 0);
        T_OK(t, rondo_stream_host_call(w->one, host_bump, &ran));
        T_OK(t, rondo_stream_synchronize(w->one));
        T_EQ(t, ran, 1);
    }
}

/* A stream may go with a condition open. */
static void test_left_open(rondo_test *t) {
    world w;
    world_open(t, NULL, &w);
    T_OK(t, begin(&w, w.one, 0));
    T_OK(t, begin(&w, w.one, 0));
    end(&w, w.one);
    T_OK(t, rondo_stream_synchronize(w.one));
}

RONDO_TEST_MAIN(T(test_nested), T(test_when_it_is_read), T(test_events_happen), T_PLAIN(test_races), T(test_bad_places),
                T(test_failures), T(test_left_open))
