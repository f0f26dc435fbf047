/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node costs to capture, from begin to ready, for graphs of three sizes: it must not grow with the graph. Once on
 * one stream, and once on two that wait for each other after every fourth node. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static int32_t nothing(const void *context, const uint64_t *words) {
    (void)context;
    (void)words;
    return 0;
}

typedef struct lanes {
    rondo_stream *streams[2];
    rondo_event *events[2];
} lanes;

static void launch(rondo_stream *stream, const char *memory, uint64_t i) {
    uint64_t base = (uint64_t)(uintptr_t)memory + i % 64 * 256;
    rondo_argument arguments[3] = {{base, 256, RONDO_ACCESS_READ, 0},
                                   {base + 16384, 256, RONDO_ACCESS_READ, 0},
                                   {base + 32768, 256, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = {sizeof call, 3, {nothing, NULL}, arguments, "nothing"};
    bench_must(rondo_stream_launch(stream, &call));
}

static void wait_for(const lanes *l, int from) {
    bench_must(rondo_event_record(l->events[from], l->streams[from]));
    bench_must(rondo_event_wait(l->events[from], l->streams[1 - from]));
}

/* l: two streams take turns; null: one stream. */
static void record(const bench_setup *setup, uint64_t count, const char *memory, const lanes *l) {
    if (!l) {
        for (uint64_t i = 0; i < count; ++i) launch(setup->stream, memory, i);
        return;
    }
    wait_for(l, 0);
    for (uint64_t i = 0; i < count; ++i) {
        launch(l->streams[i & 1], memory, i);
        if (i % 4 == 3) wait_for(l, (int)(i / 4 & 1));
    }
    wait_for(l, 1);
}

static double capture_once(const bench_setup *setup, uint64_t count, const char *memory, const lanes *l,
                           uint64_t *out_bytes) {
    rondo_graph *graph;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    bench_must(rondo_graph_create(setup->device, NULL, &graph));
    uint64_t start = bench_now_ns();
    bench_must(rondo_graph_capture_begin(graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    record(setup, count, memory, l);
    bench_must(rondo_graph_capture_end(graph, setup->stream));
    double nanoseconds = (double)(bench_now_ns() - start) / (double)count;
    bench_must(rondo_graph_get_info(graph, &info));
    *out_bytes = info.bytes;
    rondo_graph_release(graph);
    return nanoseconds;
}

static void capture_rows(const bench_setup *setup, bench_report *report, const char *name, const char *memory,
                         const lanes *l) {
    static const struct {
        uint64_t count;
        uint32_t rounds;
    } sizes[] = {{1000, 200}, {100000, 15}, {1000000, 5}};
    double first = (double)NAN;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        bench_row row = {.unit = "ns/node", .bar = l ? (double)NAN : 100};
        snprintf(row.name, sizeof row.name, "%s_%llu", name, (unsigned long long)sizes[s].count);
        if (!bench_wants(report, row.name)) continue;
        double samples[200];
        uint64_t bytes = 0;
        for (uint32_t r = 0; r < sizes[s].rounds; ++r)
            samples[r] = capture_once(setup, sizes[s].count, memory, l, &bytes);
        row.value = bench_median(samples, sizes[s].rounds);
        if (s == 0) first = row.value;
        row.ratio = row.value / first;
        snprintf(row.note, sizeof row.note, "ratio to %s_1000; %.0f bytes a node", name,
                 (double)bytes / (double)sizes[s].count);
        bench_add(report, &row);
    }
}

void bench_capture(const bench_setup *setup, bench_report *report) {
    lanes l = {{setup->stream, NULL}, {NULL, NULL}};
    void *memory;
    bench_must(rondo_memory_allocate(setup->device, 65536, &memory));
    bench_must(rondo_stream_create(setup->device, NULL, &l.streams[1]));
    for (int i = 0; i < 2; ++i) bench_must(rondo_event_create(setup->device, &l.events[i]));
    capture_rows(setup, report, "capture", memory, NULL);
    capture_rows(setup, report, "capture_lanes", memory, &l);
    for (int i = 0; i < 2; ++i) rondo_event_release(l.events[i]);
    rondo_stream_release(l.streams[1]);
    bench_must(rondo_memory_free(setup->device, memory));
}
