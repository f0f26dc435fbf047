/* SPDX-License-Identifier: Apache-2.0
 *
 * A million rounds of capture, replay and reset, of every kind that there is, good and bad: nothing that can be counted may
 * grow by one. Counted are all allocations of the process and their bytes, the instance's own, the device's figures, the
 * tables inside, threads and open files; pages are bounded. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "graph/graph_testing.h"
#include "memory/table.h"

/* Sanitizers and debug builds, which check every invariant after each operation, take some twenty times as long. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
#define SOAK_SLOW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SOAK_SLOW 1
#endif
#endif
#ifndef SOAK_SLOW
#define SOAK_SLOW 0
#endif

/* So do emulators, which no compiler knows of. */
#define SOAK_ROUNDS_CPU (SOAK_SLOW || rondo_test_stride() > 1 ? 40000u : 1000000u)
#define SOAK_ROUNDS_SIM (SOAK_SLOW || rondo_test_stride() > 1 ? 20000u : 200000u)
#define SOAK_PARTS 10u
#define SOAK_WARM 12000u                   /* by then the simulator keeps as many freed blocks as it ever does */
#define SOAK_PAGES_MORE ((int64_t)1 << 20) /* bytes; a byte a round would be 32 times as much, as blocks of malloc go */
#define SOAK_OUT 2u                        /* the buffer that every kind of round writes */

typedef struct soak {
    graph_fixture f;
    rondo_allocator allocator;
    int64_t bytes, blocks; /* of the instance's allocator */
    rondo_graph *graph, *second;
    rondo_event *events[3];
    rondo_generator *generator;
    rondo_stream *passing;
    void *block, *host;
    int calls; /* of the host function */
    char path[600];
} soak;

/* ------------------------------------------------------------------------------------------------ what is counted */

#define SOAK_FIGURES 48u

typedef struct soak_figures {
    struct {
        const char *name;
        int64_t value;
    } of[SOAK_FIGURES];
    unsigned count;
    rondo_test_heap heap;
    int64_t resident, mapped; /* bytes */
} soak_figures;

static void note(soak_figures *m, const char *name, uint64_t value) {
    if (m->count == SOAK_FIGURES) return;
    m->of[m->count].name = name;
    m->of[m->count].value = (int64_t)value;
    m->count++;
}

static int64_t entries_of(const char *folder) {
    int64_t count = 0;
    DIR *directory = opendir(folder);
    if (!directory) return -1;
    while (readdir(directory)) count++;
    (void)closedir(directory);
    return count;
}

static void measure_pages(soak_figures *m) {
    long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%lld %lld", &size, &resident) != 2) size = resident = 0;
        (void)fclose(file);
    }
    m->mapped = size * sysconf(_SC_PAGESIZE);
    m->resident = resident * sysconf(_SC_PAGESIZE);
}

static void measure_statistics(soak_figures *m, const rondo_memory_statistics *own,
                               const rondo_memory_statistics *pinned) {
    note(m, "allocated bytes", own->allocated_bytes);
    note(m, "requested bytes", own->requested_bytes);
    note(m, "reserved bytes", own->reserved_bytes);
    note(m, "allocations", own->allocations);
    note(m, "segments", own->segments);
    note(m, "inactive bytes", own->inactive_bytes);
    note(m, "pending bytes", own->pending_bytes);
    note(m, "pinned bytes", pinned->allocated_bytes);
    note(m, "pinned reserved bytes", pinned->reserved_bytes);
    note(m, "pinned allocations", pinned->allocations);
    note(m, "pinned segments", pinned->segments);
}

static void measure_memory(const rondo_device *device, soak_figures *m) {
    const rondo__memory *memory = device->memory;
    note(m, "pools", memory->cache.pools.count);
    note(m, "pinned pools", memory->pinned.pools.count);
    note(m, "diversions", memory->cache.diversions.count);
    note(m, "pinned diversions", memory->pinned.diversions.count);
    note(m, "blocks of segments", memory->cache.made_count - memory->cache.spare_count);
    note(m, "blocks of pinned segments", memory->pinned.made_count - memory->pinned.spare_count);
    note(m, "uses waited for", memory->cache.waiting);
    note(m, "events to be used again", memory->cache.events.count);
    note(m, "queues", memory->cache.queues.count);
    note(m, "edges from memory to graphs", memory->watch.count);
    note(m, "places for such edges", memory->watch.bucket_count);
}

static void measure_device(const rondo_device *device, soak_figures *m) {
    uint64_t streams = 0, captures = 0, flights = 0;
    for (const rondo_stream *each = device->streams; each; each = each->next) streams++;
    for (const rondo__recorder *each = device->captures; each; each = each->next) captures++;
    for (const rondo__flight *each = device->flights; each; each = each->next) flights++;
    note(m, "streams", streams);
    note(m, "captures", captures);
    note(m, "flights", flights);
    note(m, "prepared kernels", device->prepared.count);
}

static void measure(soak *s, soak_figures *m) {
    rondo_memory_statistics own = RONDO_MEMORY_STATISTICS_INIT;
    uint64_t available = 0, total = 0;
    memset(m, 0, sizeof *m);
    T_OK(s->f.t, rondo_stream_synchronize(s->f.stream));
    T_OK(s->f.t, rondo_stream_synchronize(s->f.other));
    T_OK(s->f.t, rondo__memory_check(s->f.device->memory));
    T_OK(s->f.t, rondo_memory_get_statistics(s->f.device, (rondo_pool_id){0, 0}, &own));
    T_OK(s->f.t, rondo_device_memory_info(s->f.device, &available, &total));
    measure_statistics(m, &own, &s->f.device->memory->pinned.total);
    /* What cpu has free is the machine's, and changes with whatever else runs. */
    note(m, "bytes that the device has free", rondo__device_is_inline(s->f.device) ? 0 : available);
    measure_memory(s->f.device, m);
    measure_device(s->f.device, m);
    note(m, "threads", (uint64_t)entries_of("/proc/self/task"));
    note(m, "open files", (uint64_t)entries_of("/proc/self/fd"));
    note(m, "allocations of the instance", (uint64_t)s->blocks);
    note(m, "bytes of the instance", (uint64_t)s->bytes);
    rondo_test_heap heap = rondo_test_heap_now(s->f.t);
    note(m, "allocations of the process", heap.blocks);
    note(m, "bytes of the process", heap.bytes);
    m->heap = heap;
    measure_pages(m);
}

/* Tells all that has grown. */
static void expect_no_growth(soak *s, const soak_figures *before, const soak_figures *now, unsigned round) {
    char text[1200] = "";
    for (unsigned i = 0; i < now->count; i++) {
        size_t length = strlen(text);
        if (now->of[i].value == before->of[i].value) continue;
        (void)snprintf(text + length, sizeof text - length, "; %s: %lld, now %lld", now->of[i].name,
                       (long long)before->of[i].value, (long long)now->of[i].value);
    }
    if (*text) rondo_test_fail(s->f.t, __FILE__, __LINE__, "grew until round %u%s", round, text);
}

/* ------------------------------------------------------------------------------------------------- one of each kind */

static void *soak_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    soak *s = self;
    rondo_allocator under = rondo_allocator_default();
    void *fresh = under.reallocate(under.self, pointer, old_size, new_size, alignment);
    if (new_size && !fresh) return NULL;
    s->bytes += (int64_t)new_size - (int64_t)(pointer ? old_size : 0);
    s->blocks += (int64_t)(new_size != 0) - (int64_t)(pointer != NULL);
    return fresh;
}

static void soak_close(soak *s) {
    rondo_stream_release(s->passing);
    rondo_graph_release(s->graph);
    rondo_graph_release(s->second);
    rondo_generator_release(s->generator);
    for (unsigned i = 0; i < 3; i++) rondo_event_release(s->events[i]);
    if (s->block) rondo_status_release(rondo_memory_free(s->f.device, s->block));
    if (s->host) rondo_status_release(rondo_memory_host_free(s->f.device, s->host));
    gt_close(&s->f);
}

static void soak_open(rondo_test *t, soak *s, const char *device) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *s = (soak){.f = {.t = t}};
    s->allocator = (rondo_allocator){s, soak_reallocate};
    options.allocator = &s->allocator;
    options.ignore_plugin_path = 1;
    T_DEFER(t, soak_close, s);
    T_OK(t, rondo_instance_create(&options, &s->f.instance));
    T_OK(t, rondo_device_open(s->f.instance, device, NULL, &s->f.device));
    T_OK(t, rondo_stream_create(s->f.device, NULL, &s->f.stream));
    T_OK(t, rondo_stream_create(s->f.device, NULL, &s->f.other));
    T_OK(t, rondo_kernel_find(s->f.device, "rondo.add", &s->f.add));
    for (unsigned i = 0; i < GT_BUFFERS; i++) {
        void *memory;
        T_OK(t, rondo_memory_allocate(s->f.device, GT_BYTES, &memory));
        s->f.buffers[i] = memory;
        for (unsigned j = 0; j < GT_FLOATS; j++) s->f.buffers[i][j] = (float)(100u * i + j);
    }
    T_OK(t, rondo_graph_create(s->f.device, NULL, &s->graph));
    T_OK(t, rondo_graph_create(s->f.device, NULL, &s->second));
    T_OK(t, rondo_generator_create(s->f.device, 5, &s->generator));
    for (unsigned i = 0; i < 3; i++) T_OK(t, rondo_event_create(s->f.device, &s->events[i]));
    (void)snprintf(s->path, sizeof s->path, "%s/soak.json", rondo_test_folder(t));
}

static void take(soak *s, rondo_stream *stream) { T_OK(s->f.t, rondo_memory_allocate_on(stream, GT_BYTES, &s->block)); }

static void give(soak *s) {
    void *block = s->block;
    s->block = NULL;
    T_OK(s->f.t, rondo_memory_free(s->f.device, block));
}

static void add(soak *s, rondo_stream *stream, const void *a, const void *b, void *out) {
    T_OK(s->f.t, gt_add_named(&s->f, stream, "add", a, b, out));
}

static void after(soak *s, unsigned event, rondo_stream *from, rondo_stream *to) {
    T_OK(s->f.t, rondo_event_record(s->events[event], from));
    T_OK(s->f.t, rondo_event_wait(s->events[event], to));
}

static void end(soak *s, rondo_graph *graph) { T_OK(s->f.t, rondo_graph_capture_end(graph, s->f.stream)); }

/* Two replays, each of which leaves element 1 of the output as it should. */
static void replays(soak *s, rondo_graph *graph, double want) {
    for (int i = 0; i < 2; i++) {
        s->f.buffers[SOAK_OUT][1] = -1.0f;
        T_OK(s->f.t, gt_replay(&s->f, graph));
        T_NEAR(s->f.t, s->f.buffers[SOAK_OUT][1], want, 0.0);
    }
}

/* 2 = (0 + 1) + 1, over a temporary of the graph's pool. */
static void capture_sum(soak *s, rondo_graph *graph) {
    T_OK(s->f.t, gt_begin(&s->f, graph));
    take(s, s->f.stream);
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->block);
    add(s, s->f.stream, s->block, s->f.buffers[1], s->f.buffers[SOAK_OUT]);
    give(s);
}

static void round_plain(soak *s) {
    capture_sum(s, s->graph);
    end(s, s->graph);
    replays(s, s->graph, 203.0);
    rondo_graph_reset(s->graph);
}

/* Two lanes, a temporary in each; the stream that forked comes back and forks again. */
static void capture_lanes(soak *s) {
    rondo_stream *stream = s->f.stream, *other = s->f.other;
    T_OK(s->f.t, gt_begin(&s->f, s->graph));
    after(s, 0, stream, other);
    take(s, other);
    add(s, other, s->f.buffers[0], s->f.buffers[1], s->block);
    add(s, stream, s->f.buffers[1], s->f.buffers[1], s->f.buffers[3]);
    after(s, 1, other, stream);
    add(s, stream, s->f.buffers[3], s->block, s->f.buffers[SOAK_OUT]);
    give(s);
    after(s, 0, stream, other);
    add(s, other, s->f.buffers[SOAK_OUT], s->f.buffers[0], s->f.buffers[SOAK_OUT]);
}

static void round_fork(soak *s) {
    capture_lanes(s);
    after(s, 1, s->f.other, s->f.stream);
    end(s, s->graph);
    replays(s, s->graph, 305.0);
    rondo_graph_reset(s->graph);
}

static void round_abort(soak *s) {
    capture_lanes(s);
    T_OK(s->f.t, rondo_graph_abort(s->graph));
    T_EQ(s->f.t, rondo_graph_get_state(s->graph), RONDO_GRAPH_EMPTY);
}

/* Reset and abort with a block of the pool alive. */
static void round_alive(soak *s) {
    capture_sum(s, s->graph);
    take(s, s->f.stream);
    T_OK(s->f.t, rondo_graph_abort(s->graph));
    give(s);
    capture_sum(s, s->graph);
    take(s, s->f.stream);
    end(s, s->graph);
    replays(s, s->graph, 203.0);
    rondo_graph_reset(s->graph);
    give(s);
}

static void round_broken(soak *s) {
    rondo_test *t = s->f.t;
    capture_sum(s, s->graph);
    T_FAILS(t, rondo_stream_synchronize(s->f.stream), INVALID_STATE, NULL);
    T_FAILS(t, gt_add(&s->f, s->f.buffers[0], s->f.buffers[0], s->f.buffers[3]), CAPTURE_INVALIDATED, NULL);
    T_FAILS(t, rondo_graph_capture_end(s->graph, s->f.stream), CAPTURE_INVALIDATED, NULL);
    capture_sum(s, s->graph);
    T_FAILS(t, gt_add(&s->f, s->f.buffers[0], s->f.buffers[0], s->f.buffers[3] + 1), OUT_OF_RANGE, NULL);
    rondo_graph_reset(s->graph);
}

static void round_unjoined(soak *s) {
    capture_lanes(s);
    T_FAILS(s->f.t, rondo_graph_capture_end(s->graph, s->f.stream), CAPTURE_UNJOINED, NULL);
}

static void round_merged(soak *s) {
    rondo_test *t = s->f.t;
    T_OK(t, gt_begin(&s->f, s->graph));
    T_OK(t, rondo_graph_capture_begin(s->second, s->f.other, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    T_OK(t, rondo_event_record(s->events[0], s->f.stream));
    T_FAILS(t, rondo_event_wait(s->events[0], s->f.other), CAPTURE_MERGED, NULL);
    T_FAILS(t, rondo_graph_capture_end(s->graph, s->f.stream), CAPTURE_INVALIDATED, NULL);
    T_FAILS(t, rondo_graph_capture_end(s->second, s->f.other), CAPTURE_INVALIDATED, NULL);
}

/* The child goes before its parent is replayed, which keeps the child's temporaries. */
static void round_child(soak *s) {
    capture_lanes(s);
    after(s, 1, s->f.other, s->f.stream);
    end(s, s->graph);
    T_OK(s->f.t, gt_begin(&s->f, s->second));
    T_OK(s->f.t, rondo_graph_replay(s->graph, s->f.stream));
    add(s, s->f.stream, s->f.buffers[SOAK_OUT], s->f.buffers[0], s->f.buffers[SOAK_OUT]);
    end(s, s->second);
    rondo_graph_reset(s->graph);
    replays(s, s->second, 306.0);
    rondo_graph_reset(s->second);
}

static void round_slots(soak *s) {
    rondo_test *t = s->f.t;
    T_OK(t, rondo_graph_declare_slot(s->graph, 0, s->f.buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    T_OK(t, rondo_graph_declare_slot(s->graph, 1, s->f.buffers[1], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY));
    T_OK(t, rondo_graph_declare_slot(s->graph, 2, s->f.buffers[3], GT_BYTES, RONDO_ACCESS_BOTH, RONDO_SLOT_COPY));
    T_OK(t, gt_begin(&s->f, s->graph));
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->f.buffers[3]);
    end(s, s->graph);
    T_OK(t, rondo_graph_bind(s->graph, 0, s->f.buffers[4]));
    T_OK(t, rondo_graph_bind(s->graph, 2, s->f.buffers[SOAK_OUT]));
    replays(s, s->graph, 502.0);
    T_OK(t, rondo_graph_bind(s->graph, 1, s->f.buffers[5]));
    T_FAILS(t, rondo_graph_bind(s->graph, 1, s->f.buffers[5] + 1), OUT_OF_RANGE, NULL);
    replays(s, s->graph, 902.0);
    rondo_graph_reset(s->graph);
}

/* A graph for this round only, instantiated twice, with a node changed in between. */
static void round_release(soak *s) {
    rondo_test *t = s->f.t;
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    options.keep_graph = 1;
    options.name = "a graph of one round";
    rondo_graph_release(s->graph);
    s->graph = NULL;
    T_OK(t, rondo_graph_create(s->f.device, &options, &s->graph));
    capture_sum(s, s->graph);
    end(s, s->graph);
    replays(s, s->graph, 203.0);
    const rondo_argument arguments[4] = {{gt_word(s->f.buffers[0]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(s->f.buffers[0]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(s->f.buffers[SOAK_OUT]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    T_OK(t, rondo_graph_update(s->graph, 1, arguments, 4));
    T_OK(t, rondo_graph_instantiate(s->graph));
    replays(s, s->graph, 2.0);
    rondo_graph_release(s->graph);
    s->graph = NULL;
    T_OK(t, rondo_graph_create(s->f.device, NULL, &s->graph));
}

/* Memory outside the pool that is freed under the graph, once with work of another stream on it. */
static void round_stale(soak *s) {
    take(s, s->f.stream);
    T_OK(s->f.t, gt_begin(&s->f, s->graph));
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->block);
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->f.buffers[SOAK_OUT]);
    end(s, s->graph);
    replays(s, s->graph, 102.0);
    T_OK(s->f.t, rondo_memory_record_stream(s->f.device, s->block, s->f.other));
    give(s);
    T_FAILS(s->f.t, rondo_graph_replay(s->graph, s->f.stream), STALE, NULL);
    rondo_graph_reset(s->graph);
    T_OK(s->f.t, rondo_stream_synchronize(s->f.other));
}

/* Pinned memory that a captured copy holds past its free. */
static void round_pinned(soak *s) {
    rondo_test *t = s->f.t;
    void *host = NULL;
    T_OK(t, rondo_memory_host_allocate(s->f.device, GT_BYTES, &s->host));
    for (unsigned i = 0; i < GT_FLOATS; i++) ((float *)s->host)[i] = 7.0f;
    T_OK(t, gt_begin(&s->f, s->graph));
    T_OK(t, rondo_stream_copy(s->f.stream, s->f.buffers[SOAK_OUT], s->host, GT_BYTES, RONDO_COPY_HOST_TO_DEVICE));
    host = s->host;
    s->host = NULL;
    T_OK(t, rondo_memory_host_free(s->f.device, host));
    T_OK(t, rondo_memory_host_allocate(s->f.device, GT_BYTES, &s->host));
    end(s, s->graph);
    replays(s, s->graph, 7.0);
    rondo_graph_reset(s->graph);
    host = s->host;
    s->host = NULL;
    T_OK(t, rondo_memory_host_free(s->f.device, host));
}

static int32_t count_call(void *user) {
    ++*(int *)user;
    return 0;
}

static void round_host_and_external(soak *s) {
    rondo_test *t = s->f.t;
    int before = s->calls;
    bool done = false;
    capture_sum(s, s->graph);
    T_OK(t, rondo_stream_host_call(s->f.stream, count_call, &s->calls));
    T_OK(t, rondo_event_record_external(s->events[2], s->f.stream));
    T_OK(t, rondo_stream_fill(s->f.stream, s->f.buffers[3], 0, GT_BYTES));
    end(s, s->graph);
    replays(s, s->graph, 203.0);
    T_OK(t, rondo_event_query(s->events[2], &done));
    T_TRUE(t, done && s->calls == before + 2);
    rondo_graph_reset(s->graph);
}

/* Two graphs in one pool, brought back to the layout of the first, with a lease that ends so. */
static void round_shared(soak *s) {
    rondo_test *t = s->f.t;
    rondo_pool_id pool = rondo_pool_handle(s->f.instance);
    rondo_memory_filter filter = RONDO_MEMORY_FILTER_INIT;
    rondo_memory_checkpoint *checkpoint = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    rondo_lease lease;
    T_OK(t, rondo_graph_capture_begin(s->graph, s->f.stream, pool, RONDO_CAPTURE_MODE_GLOBAL));
    take(s, s->f.stream);
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->block);
    give(s);
    end(s, s->graph);
    T_OK(t, rondo_graph_capture_begin(s->second, s->f.stream, pool, RONDO_CAPTURE_MODE_THREAD_LOCAL));
    take(s, s->f.stream);
    add(s, s->f.stream, s->f.buffers[1], s->f.buffers[1], s->block);
    add(s, s->f.stream, s->block, s->f.buffers[1], s->f.buffers[SOAK_OUT]);
    give(s);
    end(s, s->second);
    rondo_status status = rondo_memory_checkpoint_create(s->f.device, pool, &checkpoint);
    if (!status) status = rondo_memory_pool_begin(s->f.device, pool, &filter);
    if (!status) status = rondo_memory_allocate_on(s->f.stream, 5000, &s->block);
    if (!status) status = rondo_memory_lease(s->f.device, s->block, RONDO_LEASE_REPLAY, &lease);
    if (!status) status = rondo_memory_pool_end(s->f.device, pool);
    if (!status) status = rondo_memory_checkpoint_restore(checkpoint, &delta);
    bool whole = !status && delta.freed_count == 1 && delta.freed[0] == s->block && !delta.created_count;
    if (whole) s->block = NULL;
    rondo_memory_delta_release(s->f.device, &delta);
    rondo_memory_checkpoint_release(checkpoint);
    T_OK(t, status);
    T_TRUE(t, whole && lease.owner == RONDO_LEASE_OVER);
    T_OK(t, rondo_memory_pool_release(s->f.device, pool));
    rondo_graph_reset(s->graph);
    replays(s, s->second, 303.0);
    rondo_graph_reset(s->second);
}

/* A stream, and an event, that are there for one round; the stream goes while it captures. */
static void round_passing(soak *s) {
    rondo_test *t = s->f.t;
    T_OK(t, rondo_stream_create(s->f.device, NULL, &s->passing));
    rondo_event_release(s->events[0]);
    s->events[0] = NULL;
    T_OK(t, rondo_event_create(s->f.device, &s->events[0]));
    T_OK(t, rondo_graph_capture_begin(s->graph, s->passing, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_RELAXED));
    add(s, s->passing, s->f.buffers[0], s->f.buffers[1], s->f.buffers[3]);
    rondo_stream_release(s->passing);
    s->passing = NULL;
    T_EQ(t, rondo_graph_get_state(s->graph), RONDO_GRAPH_EMPTY);
}

static void round_condition(soak *s) {
    rondo_test *t = s->f.t;
    int64_t flag = 1;
    T_OK(t, gt_begin(&s->f, s->graph));
    T_OK(t, rondo_graph_condition_begin(s->f.stream, s->f.buffers[5]));
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->f.buffers[SOAK_OUT]);
    T_OK(t, rondo_graph_condition_end(s->f.stream));
    end(s, s->graph);
    float kept[2];
    memcpy(kept, s->f.buffers[5], sizeof kept);
    memcpy(s->f.buffers[5], &flag, sizeof flag);
    replays(s, s->graph, 102.0);
    flag = 0;
    memcpy(s->f.buffers[5], &flag, sizeof flag);
    replays(s, s->graph, -1.0);
    memcpy(s->f.buffers[5], kept, sizeof kept);
    rondo_graph_reset(s->graph);
}

static void round_random(soak *s) {
    rondo_test *t = s->f.t;
    uint64_t offset = 0;
    T_OK(t, rondo_generator_set_seed(s->generator, 7));
    T_OK(t, gt_begin(&s->f, s->graph));
    T_OK(t, rondo_random_fill(s->f.stream, s->generator, RONDO_DISTRIBUTION_UNIFORM, s->f.buffers[3], 8, 0.0f, 1.0f));
    add(s, s->f.stream, s->f.buffers[0], s->f.buffers[1], s->f.buffers[SOAK_OUT]);
    end(s, s->graph);
    replays(s, s->graph, 102.0);
    T_OK(t, rondo_generator_get_offset(s->generator, &offset));
    T_EQ(t, offset, 16);
    rondo_graph_reset(s->graph);
}

/* A dump opens, writes and renames a file. */
static void round_dump(soak *s) {
    T_OK(s->f.t, rondo_graph_enable_debug_mode(s->graph));
    capture_lanes(s);
    after(s, 1, s->f.other, s->f.stream);
    end(s, s->graph);
    T_OK(s->f.t, rondo_graph_debug_dump(s->graph, s->path));
    T_FAILS(s->f.t, rondo_graph_debug_dump(s->graph, "/nowhere/soak.json"), IO, NULL);
    round_release(s); /* debug mode stays with a graph */
}

/* ------------------------------------------------------------------------------------------------- all of them */

static void (*const rounds[])(soak *) = {round_plain,   round_fork,  round_abort,  round_alive,     round_broken,
                                         round_plain,   round_fork,  round_child,  round_slots,     round_unjoined,
                                         round_release, round_stale, round_pinned, round_shared,    round_merged,
                                         round_passing, round_fork,  round_plain,  round_condition, round_random};
#define SOAK_KINDS (sizeof rounds / sizeof *rounds)
#define SOAK_DUMP_EVERY 1000u
#define SOAK_HOST_EVERY 40u /* of the plain ones */

static void soak_round(soak *s, unsigned round) {
    bool host = rondo__device_is_inline(s->f.device);
    void (*kind)(soak *) = rounds[round % SOAK_KINDS];
    if (!host && kind == round_random) kind = round_host_and_external;
    if (kind == round_plain && round % SOAK_HOST_EVERY == 0) kind = round_host_and_external;
    if (round % SOAK_DUMP_EVERY == 0) kind = round_dump;
    kind(s);
}

static void soak_run(rondo_test *t, const char *device, unsigned count) {
    soak s;
    soak_figures first, now;
    unsigned part = count / SOAK_PARTS, round = 0;
    if (getenv("RONDO_TEST_PLAIN")) part /= 50u; /* valgrind */
    part -= part % SOAK_DUMP_EVERY;              /* so that the same rounds come before each look */
    if (!part) part = SOAK_DUMP_EVERY;
    soak_open(t, &s, device);
    for (unsigned i = 0; i < SOAK_PARTS; i++) {
        unsigned last = round + (!i && part < SOAK_WARM ? SOAK_WARM : part);
        for (; round < last; round++) soak_round(&s, round);
        measure(&s, i ? &now : &first);
        if (i) expect_no_growth(&s, &first, &now, round);
    }
    printf("%s: %u rounds; %lld blocks, %lld bytes before and after; resident %+lld, mapped %+lld bytes\n", device,
           round, (long long)now.heap.blocks, (long long)now.heap.bytes, (long long)(now.resident - first.resident),
           (long long)(now.mapped - first.mapped));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* these keep pages of what was freed */
    T_TRUE(t, now.resident > 0 && now.resident - first.resident <= SOAK_PAGES_MORE);
#endif
    T_TRUE(t, now.mapped - first.mapped <= SOAK_PAGES_MORE);
}

static void test_a_million_rounds_on_cpu(rondo_test *t) { soak_run(t, "cpu", SOAK_ROUNDS_CPU); }
static void test_many_rounds_on_sim(rondo_test *t) { soak_run(t, "sim", SOAK_ROUNDS_SIM); }

RONDO_TEST_MAIN(T_PLAIN(test_a_million_rounds_on_cpu), T_PLAIN(test_many_rounds_on_sim))
