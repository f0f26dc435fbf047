/* SPDX-License-Identifier: Apache-2.0
 *
 * Races and writes behind a call's back: found in every order that a seed gives, and never where streams, events or the
 * host's own waiting order the two. */
#include <stdio.h>

#include <rondo/runtime.h>

#include "backends/sim/sim.h"
#include "device/device.h"
#include "harness/harness.h"

#define SEEDS 24
#define BYTES 4096u

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *one, *two, *three;
    rondo_event *event, *other;
    unsigned char *a, *b, *pinned;
} world;

static void world_open(rondo_test *t, const char *settings, world *w) {
    *w = (world){0};
    T_OK(t, rondo_instance_create(NULL, &w->instance));
    T_OK(t, rondo_device_open(w->instance, "sim", settings, &w->device));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->one));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->two));
    T_OK(t, rondo_stream_create(w->device, NULL, &w->three));
    T_OK(t, rondo_event_create(w->device, &w->event));
    T_OK(t, rondo_event_create(w->device, &w->other));
    void *pinned = NULL, *a = NULL, *b = NULL;
    T_OK(t, rondo_memory_host_allocate(w->device, BYTES, &pinned));
    T_OK(t, rondo_memory_allocate(w->device, BYTES, &a));
    T_OK(t, rondo_memory_allocate(w->device, BYTES, &b));
    w->a = a;
    w->b = b;
    w->pinned = pinned;
}

static void world_seed(rondo_test *t, int seed, world *w) {
    char settings[32];
    (void)snprintf(settings, sizeof settings, "seed=%d", seed);
    world_open(t, settings, w);
}

static void world_close(rondo_test *t, world *w) {
    T_OK(t, rondo_memory_free(w->device, w->a));
    T_OK(t, rondo_memory_free(w->device, w->b));
    if (w->pinned) T_OK(t, rondo_memory_host_free(w->device, w->pinned));
    rondo_event_release(w->event);
    rondo_event_release(w->other);
    rondo_stream_release(w->one);
    rondo_stream_release(w->two);
    rondo_stream_release(w->three);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
}

static int32_t kernel_nothing(const void *context, const uint64_t *words) {
    (void)context, (void)words;
    return 0;
}

static rondo_status use(rondo_stream *stream, const char *name, void *address, uint64_t length, uint32_t access) {
    rondo_argument argument = {(uint64_t)(uintptr_t)address, length, access, 0};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel.function = kernel_nothing;
    call.arguments = &argument;
    call.argument_count = 1;
    call.name = name;
    return rondo_stream_launch(stream, &call);
}

static int32_t host_count(void *user) {
    ++*(int *)user;
    return 0;
}

/* Waits for all three; the one failure that is expected, which names all of `parts`. */
static void expect(rondo_test *t, const world *w, const char *const *parts) {
    rondo_stream *streams[] = {w->one, w->two, w->three};
    int failures = 0;
    for (int i = 0; i < 3; i++) {
        rondo_status status = rondo_stream_synchronize(streams[i]);
        if (!status) continue;
        failures++;
        for (int p = 0; parts && parts[p]; p++) {
            if (!strstr(rondo_status_message(status), parts[p])) {
                rondo_test_fail(t, __FILE__, __LINE__, "'%s' does not say '%s'", rondo_status_message(status),
                                parts[p]);
            }
        }
        if (!parts) rondo_test_fail(t, __FILE__, __LINE__, "%s", rondo_status_message(status));
        T_EQ(t, rondo_status_code(status), RONDO_CODE_KERNEL_FAILED);
        rondo_status_release(status);
    }
    T_EQ(t, failures, parts ? 1 : 0);
}

/* ------------------------------------------------------------------------------------------------------ races */

static void test_unordered_writes(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'writer'", "call 'reader'", "nothing orders the two", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "writer", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, use(w.two, "reader", w.a + 99, 1, RONDO_ACCESS_READ));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

static void test_neighbours_and_readers_are_free(rondo_test *t) {
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "left", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, use(w.two, "right", w.a + 100, 100, RONDO_ACCESS_WRITE));
        T_OK(t, use(w.one, "reads", w.b, 100, RONDO_ACCESS_READ));
        T_OK(t, use(w.two, "reads too", w.b + 50, 100, RONDO_ACCESS_READ));
        T_OK(t, use(w.three, "a value", w.a, 100, RONDO_ACCESS_VALUE));
        T_OK(t, use(w.three, "of one byte", w.a + 300, 0, RONDO_ACCESS_BOTH));
        T_OK(t, use(w.one, "behind it", w.a + 301, 5, RONDO_ACCESS_BOTH));
        expect(t, &w, NULL);
        world_close(t, &w);
    }
}

/* Through two events and a stream between. */
static void test_events_order(rondo_test *t) {
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "first", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_event_record(w.event, w.one));
        T_OK(t, rondo_event_wait(w.event, w.two));
        T_OK(t, rondo_event_record(w.other, w.two));
        T_OK(t, rondo_event_wait(w.other, w.three));
        T_OK(t, use(w.three, "second", w.a, 100, RONDO_ACCESS_BOTH));
        T_OK(t, rondo_stream_fill(w.three, w.a + 7, 1, 10));
        expect(t, &w, NULL);
        T_OK(t, rondo_stream_fill(w.one, w.a, 1, 10)); /* the host has waited */
        expect(t, &w, NULL);
        world_close(t, &w);
    }
}

/* What is enqueued behind the record is not covered by it. */
static void test_an_event_orders_what_came_before_it(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'late'", "a fill of 8 bytes (operation 2 of stream 2)", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "early", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_event_record(w.event, w.one));
        T_OK(t, use(w.one, "late", w.a, 100, RONDO_ACCESS_READ));
        T_OK(t, rondo_event_wait(w.event, w.two));
        T_OK(t, rondo_stream_fill(w.two, w.a, 1, 8));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

/* Two readers, and a writer that waits for one of them. */
static void test_every_reader_counts(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'writer'", "call 'forgotten'", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "waited for", w.a, 100, RONDO_ACCESS_READ));
        T_OK(t, use(w.two, "forgotten", w.a, 100, RONDO_ACCESS_READ));
        T_OK(t, rondo_event_record(w.event, w.one));
        T_OK(t, rondo_event_wait(w.event, w.three));
        T_OK(t, use(w.three, "writer", w.a, 100, RONDO_ACCESS_WRITE));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

static void test_hosts_orders(rondo_test *t) {
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        bool done = false;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "a", w.a, 10, RONDO_ACCESS_WRITE));
        while (!done) T_OK(t, rondo_stream_query(w.one, &done));
        T_OK(t, use(w.two, "b", w.a, 10, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_event_record(w.event, w.two));
        done = false;
        while (!done) T_OK(t, rondo_event_query(w.event, &done));
        T_OK(t, use(w.three, "c", w.a, 10, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_event_record(w.event, w.three));
        T_OK(t, rondo_event_synchronize(w.event));
        T_OK(t, use(w.one, "d", w.a, 10, RONDO_ACCESS_WRITE));
        rondo_stream_release(w.two); /* another stream takes its place */
        T_OK(t, rondo_stream_create(w.device, NULL, &w.two));
        T_OK(t, use(w.two, "e", w.a + 10, 10, RONDO_ACCESS_WRITE));
        expect(t, &w, NULL);
        world_close(t, &w);
    }
}

/* The host waited for one stream; what another had enqueued before is not ordered by that. */
static void test_waiting_later_orders_nothing_before(rondo_test *t) {
    static const char *const parts[] = {"race", "'one'", "'two'", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "one", w.a, 10, RONDO_ACCESS_WRITE));
        T_OK(t, use(w.two, "two", w.a, 10, RONDO_ACCESS_WRITE));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

/* Bytes that were used as one and are cut later remember it on both sides. */
static void test_parts_remember(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'writer'", "call 'reader'", NULL};
    static int calls;
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        bool done = false;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "writer", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_stream_host_call(w.three, host_count, &calls));
        while (!done) T_OK(t, rondo_stream_query(w.three, &done)); /* which may have run the writer, too */
        T_OK(t, use(w.one, "cuts", w.a, 50, RONDO_ACCESS_READ));
        T_OK(t, use(w.two, "reader", w.a + (seed % 2 ? 60 : 10), 10, RONDO_ACCESS_READ));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

static void test_copies_race_too(rondo_test *t) {
    static const char *const parts[] = {"race", "a copy of 64 bytes", "call 'writer'", NULL};
    static unsigned char back[64];
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        T_OK(t, use(w.one, "writer", w.a, 100, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_stream_copy(w.two, back, w.a, 64, RONDO_COPY_DEVICE_TO_HOST));
        expect(t, &w, parts);
        world_close(t, &w);
    }
}

static void test_replays_race_by_name(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'in the graph'", "call 'outside'", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        rondo_graph *graph = NULL;
        world_seed(t, seed, &w);
        T_OK(t, rondo_graph_create(w.device, NULL, &graph));
        T_OK(t, rondo_graph_capture_begin(graph, w.one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
        T_OK(t, use(w.one, "in the graph", w.a, 10, RONDO_ACCESS_WRITE));
        T_OK(t, rondo_graph_capture_end(graph, w.one));
        for (int i = 0; i < 3; i++) { /* replays of one graph wait for each other */
            T_OK(t, rondo_graph_replay(graph, w.one));
            T_OK(t, rondo_graph_replay(graph, w.two));
        }
        expect(t, &w, NULL);
        T_OK(t, rondo_graph_replay(graph, w.one));
        T_OK(t, use(w.three, "outside", w.a, 10, RONDO_ACCESS_READ));
        expect(t, &w, parts);
        rondo_graph_release(graph);
        world_close(t, &w);
    }
}

static void test_races_off(rondo_test *t) {
    world w;
    world_open(t, "races=off,seed=5", &w);
    T_OK(t, use(w.one, "one", w.a, 10, RONDO_ACCESS_WRITE));
    T_OK(t, use(w.two, "two", w.a, 10, RONDO_ACCESS_WRITE));
    expect(t, &w, NULL);
    world_close(t, &w);
}

/* Random work on random ranges, against the plainest way to say it: two operations of which neither is reachable from
 * the other through streams and records race when they touch a byte that one of them writes. */
#define WORK 12
typedef struct work {
    int stream, begin, end;
    bool writes, after[WORK]; /* after[j]: j comes before it */
} work;

static bool naive_race(const work *one, const work *two, int first) {
    return !two->after[first] && one->begin < two->end && two->begin < one->end && (one->writes || two->writes);
}

/* `count` calls on `places` of eight bytes. */
static bool random_story(rondo_test *t, const world *w, uint64_t random, int count, unsigned places) {
    static work all[WORK];
    rondo_stream *streams[] = {w->one, w->two, w->three};
    bool known[3][WORK] = {{false}}, recorded[WORK] = {false}, race = false;
    for (int i = 0; i < count; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int s = (int)((random >> 33) % 3u), begin = (int)((random >> 36) % places), dice = (int)((random >> 50) % 8u);
        if (dice < 3) {
            T_OK(t, rondo_event_record(w->event, streams[s]));
            memcpy(recorded, known[s], sizeof recorded);
        } else if (dice < 7) {
            T_OK(t, rondo_event_wait(w->event, streams[s]));
            for (int j = 0; j < WORK; j++) known[s][j] |= recorded[j];
        }
        all[i] = (work){s, begin * 8, begin * 8 + 1 + (int)((random >> 44) % 24u), (random >> 60 & 1u) != 0, {false}};
        memcpy(all[i].after, known[s], sizeof known[s]);
        known[s][i] = true;
        for (int j = 0; j < i; j++) race |= naive_race(&all[j], &all[i], j);
        T_OK(t, use(streams[s], "work", w->a + all[i].begin, (uint64_t)(all[i].end - all[i].begin),
                    all[i].writes ? RONDO_ACCESS_WRITE : RONDO_ACCESS_READ));
    }
    return race;
}

static void test_against_the_plainest_way(rondo_test *t) {
    int races = 0, clean = 0;
    for (int i = 0; i < 400; i++) {
        world w;
        world_seed(t, i, &w);
        rondo_stream *streams[] = {w.one, w.two, w.three};
        for (int story = 0; story < 4; story++) {  /* when all is told, a device is as new */
            bool sparse = story == 0, got = false; /* few calls close together: one race hides no other */
            uint64_t random = (uint64_t)(i * 4 + story) * 77u + 5u;
            bool want = random_story(t, &w, random, sparse ? WORK : 6, sparse ? 200u : 6u);
            for (int s = 0; s < 3; s++) {
                rondo_status status = rondo_stream_synchronize(streams[s]);
                got |= status != RONDO_OK;
                rondo_status_release(status);
            }
            T_EQ(t, got, want);
            races += want;
            clean += !want;
        }
        world_close(t, &w);
    }
    T_TRUE(t, races > 80 && clean > 80);
}

/* What is given out anew has no history, but only that. The work runs without the host's knowing: another stream is asked. */
static void test_memory_given_out_anew(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'old'", "call 'beside'", NULL};
    for (int beside = 0; beside < 3; beside++) { /* nothing, what comes before, what comes behind */
        world w;
        bool done = false;
        int ran = 0;
        world_open(t, NULL, &w);
        T_OK(t, use(w.one, "old", w.a, 300, RONDO_ACCESS_WRITE));
        while (!rondo__sim_stream_is_done(w.one->handle)) {
            T_OK(t, rondo_stream_host_call(w.two, host_count, &ran));
            T_OK(t, rondo_stream_query(w.two, &done));
        }
        w.device->table->memory->on_reuse(w.device->handle, (uint64_t)(uintptr_t)w.a + 100u, 100, true);
        T_OK(t, use(w.two, "new", w.a + 100, 100, RONDO_ACCESS_WRITE));
        if (beside) T_OK(t, use(w.three, "beside", w.a + (beside == 1 ? 99 : 200), 1, RONDO_ACCESS_READ));
        expect(t, &w, beside ? parts : NULL);
        world_close(t, &w);
    }
}

/* ------------------------------------------------------------------------------------------------------- sums */

static void test_a_write_behind_a_calls_back(rondo_test *t) {
    static const char *const parts[] = {"call 'reader'", "argument 0, 100 bytes of device memory", "never enqueued",
                                        NULL};
    world w;
    world_open(t, NULL, &w);
    T_OK(t, rondo_stream_fill(w.one, w.a, 1, 100));
    T_OK(t, rondo_stream_synchronize(w.one));
    T_OK(t, use(w.one, "reader", w.a, 100, RONDO_ACCESS_READ));
    expect(t, &w, NULL);
    T_OK(t, use(w.one, "reader", w.a, 100, RONDO_ACCESS_READ));
    w.a[99] ^= 1;
    expect(t, &w, parts);
    T_OK(t, use(w.one, "writer", w.a, 100, RONDO_ACCESS_WRITE)); /* reads nothing */
    w.a[99] ^= 1;
    expect(t, &w, NULL);
    world_close(t, &w);
}

/* A writer has that right until it has run. */
static void test_a_write_behind_a_writers_back(rondo_test *t) {
    static const char *const parts[] = {"call 'reader'", "never enqueued", NULL};
    world w;
    world_open(t, NULL, &w);
    T_OK(t, rondo_stream_fill(w.one, w.a, 1, 100));
    T_OK(t, rondo_event_record(w.event, w.one));
    T_OK(t, rondo_event_synchronize(w.event));
    T_OK(t, use(w.one, "reader", w.a, 100, RONDO_ACCESS_READ));
    w.a[3] = 2;
    expect(t, &w, parts);
    world_close(t, &w);
}

/* Who does not say how much it writes may write to the end of the allocation: what lies there is not looked at. */
static int32_t kernel_far(const void *context, const uint64_t *words) {
    (void)context;
    ((unsigned char *)(uintptr_t)words[0])[200] = 7;
    return 0;
}

static void test_a_writer_of_unknown_length(rondo_test *t) {
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        rondo_argument argument = {(uint64_t)(uintptr_t)w.a, 0, RONDO_ACCESS_BOTH, 0};
        rondo_call call = RONDO_CALL_INIT;
        call.kernel.function = kernel_far;
        call.arguments = &argument;
        call.argument_count = 1;
        call.name = "far";
        T_OK(t, rondo_stream_launch(w.one, &call));
        T_OK(t, use(w.one, "reader", w.a + 200, 1, RONDO_ACCESS_READ));
        expect(t, &w, NULL);
        T_EQ(t, (int)((unsigned char *)w.a)[200], 7);
        world_close(t, &w);
    }
}

static void test_a_replays_input_written_meanwhile(rondo_test *t) {
    static const char *const parts[] = {"call 'captured'", "argument 0", "was written between", NULL};
    world w;
    rondo_graph *graph = NULL;
    world_open(t, NULL, &w);
    T_OK(t, rondo_graph_create(w.device, NULL, &graph));
    T_OK(t, rondo_graph_capture_begin(graph, w.one, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    T_OK(t, use(w.one, "captured", w.a, BYTES, RONDO_ACCESS_READ));
    T_OK(t, rondo_graph_capture_end(graph, w.one));
    T_OK(t, rondo_graph_replay(graph, w.one));
    w.a[BYTES / 2u]++;
    expect(t, &w, parts);
    rondo_graph_release(graph);
    world_close(t, &w);
}

static void test_pinned_memory_stays_until_the_copy(rondo_test *t) {
    static const char *const parts[] = {"a copy of 64 bytes", "its source, 64 bytes of pinned host memory", NULL};
    static const char *const freed[] = {"its source", "was freed before it ran", NULL};
    unsigned char plain[64] = {0};
    world w;
    world_open(t, NULL, &w);
    memset(w.pinned, 3, BYTES);
    T_OK(t, rondo_stream_copy(w.one, w.a, w.pinned, 64, RONDO_COPY_HOST_TO_DEVICE));
    w.pinned[64] = 4;
    expect(t, &w, NULL);
    T_OK(t, rondo_stream_copy(w.one, w.a, w.pinned, 64, RONDO_COPY_HOST_TO_DEVICE));
    w.pinned[63] = 4;
    expect(t, &w, parts);
    T_OK(t, rondo_stream_copy(w.one, w.a, plain, 64, RONDO_COPY_HOST_TO_DEVICE));
    memset(plain, 9, sizeof plain); /* what is not pinned was taken at once */
    expect(t, &w, NULL);
    void *own = NULL; /* the backend's own entries: the core's allocator would keep the block */
    T_OK(t, w.device->table->memory->host_allocate(w.device->handle, 64, &own));
    T_OK(t, rondo_stream_copy(w.one, w.a, own, 64, RONDO_COPY_HOST_TO_DEVICE));
    w.device->table->memory->host_free(w.device->handle, own, 64);
    expect(t, &w, freed);
    world_close(t, &w);
}

/* Enqueued writers may write, in the stream and behind events, however deep the queue. */
static void test_enqueued_writers_may_write(rondo_test *t) {
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        world_seed(t, seed, &w);
        for (int i = 0; i < 20; i++) {
            T_OK(t, rondo_stream_fill(w.one, w.a + i * 10, (uint8_t)i, 100));
            T_OK(t, use(w.one, "reads it", w.a, 400, RONDO_ACCESS_BOTH));
            T_OK(t, rondo_event_record(w.event, w.one));
            T_OK(t, rondo_event_wait(w.event, w.two));
            T_OK(t, rondo_stream_copy(w.two, w.b, w.a, 400, RONDO_COPY_DEVICE_TO_DEVICE));
            T_OK(t, use(w.two, "reads that", w.b + 100, 50, RONDO_ACCESS_READ));
            T_OK(t, rondo_event_record(w.other, w.two));
            T_OK(t, rondo_event_wait(w.other, w.one));
        }
        expect(t, &w, NULL);
        world_close(t, &w);
    }
}

static void test_sums_of_long_ranges_look_at_the_ends(rondo_test *t) {
    static const char *const parts[] = {"call 'long'", NULL};
    static const uint64_t size = 1u << 20;
    world w;
    void *memory = NULL;
    world_open(t, NULL, &w);
    T_OK(t, rondo_memory_allocate(w.device, size, &memory));
    unsigned char *bytes = memory;
    T_OK(t, use(w.one, "long", memory, size, RONDO_ACCESS_READ));
    bytes[size - 1u] ^= 1;
    expect(t, &w, parts);
    T_OK(t, use(w.one, "long", memory, size, RONDO_ACCESS_READ));
    bytes[size / 2u] ^= 1;
    expect(t, &w, NULL);
    T_OK(t, rondo_memory_free(w.device, memory));
    world_close(t, &w);
}

static void test_sums_off(rondo_test *t) {
    world w;
    world_open(t, "sums=off", &w);
    T_OK(t, use(w.one, "reader", w.a, 100, RONDO_ACCESS_READ));
    w.a[0] ^= 1;
    expect(t, &w, NULL);
    world_close(t, &w);
}

/* Many nodes on many places, without waiting: time stays linear, and waiting forgets. */
static void test_long_queues(rondo_test *t) {
    enum { NODES = 20000 };
    world w;
    void *memory = NULL;
    world_open(t, NULL, &w);
    T_OK(t, rondo_memory_allocate(w.device, NODES * 8u, &memory));
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < NODES; i++) {
            uint64_t place = i * 7919u % NODES;
            T_OK(t, use(w.one, "node", (unsigned char *)memory + place * 8u, 8, RONDO_ACCESS_BOTH));
        }
        expect(t, &w, NULL);
    }
    T_OK(t, rondo_memory_free(w.device, memory));
    world_close(t, &w);
}

static uint64_t steps_of(const world *w) {
    const rondo__sim_device *device = w->device->handle;
    return device->cells.steps + device->pending.steps;
}

/* A chain of calls, enqueued before any runs: each reads what the one before wrote, from the end of the memory to its
 * start or all over it, and now and then one writes the whole. What it costs to look after. */
static uint64_t chain_steps(rondo_test *t, uint64_t nodes, bool scattered) {
    world w;
    void *memory = NULL;
    world_open(t, "memory=64000000", &w);
    T_OK(t, rondo_memory_allocate(w.device, nodes * 8u, &memory));
    uint64_t before = steps_of(&w), last = 0;
    for (uint64_t i = 0; i < nodes; i++) {
        uint64_t place = scattered ? i * 7919u % nodes : nodes - 1u - i;
        rondo_argument arguments[] = {{(uint64_t)(uintptr_t)memory + last * 8u, 8, RONDO_ACCESS_READ, 0},
                                      {(uint64_t)(uintptr_t)memory + place * 8u, 8, RONDO_ACCESS_WRITE, 0}};
        rondo_call call = RONDO_CALL_INIT;
        call.kernel.function = kernel_nothing;
        call.arguments = arguments;
        call.argument_count = 2;
        call.name = "link";
        T_OK(t, rondo_stream_launch(w.one, &call));
        if (i % (nodes / 4u) == 0) T_OK(t, use(w.one, "whole", memory, nodes * 8u, RONDO_ACCESS_BOTH));
        last = place;
    }
    expect(t, &w, NULL);
    uint64_t steps = steps_of(&w) - before;
    T_OK(t, rondo_memory_free(w.device, memory));
    world_close(t, &w);
    return steps;
}

static void test_the_cost_of_a_chain(rondo_test *t) {
    for (int scattered = 0; scattered < 2; scattered++) {
        uint64_t few = chain_steps(t, 5000, scattered), many = chain_steps(t, 40000, scattered);
        T_TRUE(t, few > 5000);         /* something was looked at */
        T_TRUE(t, few < 5000u * 400u); /* a node: four ranges added, asked for and removed, of some 20 steps each */
        T_TRUE(t, many < few * 8u * 3u / 2u);
    }
}

/* What was read in many parts is one again when it is read as a whole, and costs no more than if it had always been. */
static void test_the_cost_of_parts(rondo_test *t) {
    enum { PARTS = 2000 };
    world w;
    void *memory = NULL;
    world_open(t, NULL, &w);
    T_OK(t, rondo_memory_allocate(w.device, PARTS * 8u, &memory));
    T_OK(t, use(w.one, "whole", memory, PARTS * 8u, RONDO_ACCESS_WRITE));
    uint64_t before = steps_of(&w);
    for (uint64_t i = 0; i < PARTS; i++) {
        T_OK(t, use(w.one, "part", (unsigned char *)memory + i * 8u, 8, RONDO_ACCESS_READ));
    }
    for (uint64_t i = 0; i < PARTS; i++) T_OK(t, use(w.one, "whole", memory, PARTS * 8u, RONDO_ACCESS_READ));
    expect(t, &w, NULL);
    T_TRUE(t, steps_of(&w) - before < PARTS * 400u);
    T_OK(t, rondo_memory_free(w.device, memory));
    world_close(t, &w);
}

/* What nothing orders with a long chain is told, by both names, whenever it runs. */
static void test_a_race_with_a_chain(rondo_test *t) {
    static const char *const parts[] = {"race", "call 'other'", "call 'link'", "nothing orders the two", NULL};
    for (int seed = 0; seed < SEEDS; seed++) {
        world w;
        void *memory = NULL;
        world_seed(t, seed, &w);
        T_OK(t, rondo_memory_allocate(w.device, 8000, &memory));
        for (uint64_t i = 0; i < 1000; i++) {
            T_OK(t, use(w.one, "link", (unsigned char *)memory + (999u - i) * 8u, 8, RONDO_ACCESS_WRITE));
            if (i == 300) T_OK(t, use(w.two, "other", (unsigned char *)memory + 3996, 8, RONDO_ACCESS_READ));
            if (i == 600) T_OK(t, use(w.one, "link", memory, 8000, RONDO_ACCESS_READ));
        }
        expect(t, &w, parts);
        T_OK(t, rondo_memory_free(w.device, memory));
        world_close(t, &w);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_unordered_writes), T_PLAIN(test_neighbours_and_readers_are_free),
                T_PLAIN(test_events_order), T_PLAIN(test_an_event_orders_what_came_before_it),
                T_PLAIN(test_every_reader_counts), T_PLAIN(test_hosts_orders),
                T_PLAIN(test_waiting_later_orders_nothing_before), T_PLAIN(test_copies_race_too),
                T_PLAIN(test_parts_remember), T_PLAIN(test_a_write_behind_a_writers_back),
                T_PLAIN(test_a_writer_of_unknown_length), T_PLAIN(test_replays_race_by_name), T_PLAIN(test_races_off),
                T_PLAIN(test_against_the_plainest_way), T_PLAIN(test_a_write_behind_a_calls_back),
                T_PLAIN(test_a_replays_input_written_meanwhile), T_PLAIN(test_pinned_memory_stays_until_the_copy),
                T_PLAIN(test_enqueued_writers_may_write), T_PLAIN(test_sums_of_long_ranges_look_at_the_ends),
                T_PLAIN(test_sums_off), T_PLAIN(test_long_queues), T_PLAIN(test_memory_given_out_anew),
                T_PLAIN(test_the_cost_of_a_chain), T_PLAIN(test_the_cost_of_parts), T_PLAIN(test_a_race_with_a_chain))
