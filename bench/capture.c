/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node costs to capture, from begin to ready, for graphs of three sizes: it must not grow with the graph. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static int32_t nothing(const void *context, const uint64_t *words) {
    (void)context;
    (void)words;
    return 0;
}

static double capture_once(const bench_setup *setup, uint64_t count, const char *memory, uint64_t *out_bytes) {
    rondo_graph *graph;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    bench_must(rondo_graph_create(setup->device, NULL, &graph));
    uint64_t start = bench_now_ns();
    bench_must(rondo_graph_capture_begin(graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t base = (uint64_t)(uintptr_t)memory + i % 64 * 256;
        rondo_argument arguments[3] = {{base, 256, RONDO_ACCESS_READ, 0},
                                       {base + 16384, 256, RONDO_ACCESS_READ, 0},
                                       {base + 32768, 256, RONDO_ACCESS_WRITE, 0}};
        rondo_call call = {sizeof call, 3, {nothing, NULL}, arguments, "nothing"};
        bench_must(rondo_stream_launch(setup->stream, &call));
    }
    bench_must(rondo_graph_capture_end(graph, setup->stream));
    double nanoseconds = (double)(bench_now_ns() - start) / (double)count;
    bench_must(rondo_graph_get_info(graph, &info));
    *out_bytes = info.bytes;
    rondo_graph_release(graph);
    return nanoseconds;
}

void bench_capture(const bench_setup *setup, bench_report *report) {
    static const struct {
        const char *name;
        uint64_t count;
        uint32_t rounds;
    } sizes[] = {{"capture_1000", 1000, 200}, {"capture_100000", 100000, 15}, {"capture_1000000", 1000000, 5}};
    void *memory;
    double first = (double)NAN;
    bench_must(rondo_memory_allocate(setup->device, 65536, &memory));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
        if (!bench_wants(report, sizes[s].name)) continue;
        double samples[200];
        uint64_t bytes = 0;
        for (uint32_t r = 0; r < sizes[s].rounds; ++r) samples[r] = capture_once(setup, sizes[s].count, memory, &bytes);
        double median = bench_median(samples, sizes[s].rounds);
        if (s == 0) first = median;
        bench_row row = {.value = median, .unit = "ns/node", .ratio = median / first, .bar = 100};
        snprintf(row.name, sizeof row.name, "%s", sizes[s].name);
        snprintf(row.note, sizeof row.note, "ratio to capture_1000; %.0f bytes a node",
                 (double)bytes / (double)sizes[s].count);
        bench_add(report, &row);
    }
    bench_must(rondo_memory_free(setup->device, memory));
}
