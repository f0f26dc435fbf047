/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node costs beside its kernel: a captured list of additions against the same kernel body inlined in a C loop,
 * in turns, the least of each. And what a launch costs when there is nothing to launch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ADD_FLOATS = 64, ADD_BYTES = ADD_FLOATS * 4 };

/* The body that both sides run: out = a + b, 64 floats. Compiled with AVX2 where the machine has it, as the kernels of
 * the catalogue are. */
#if defined(__x86_64__)
#define ADD_TARGET __attribute__((target("avx2,fma")))
#else
#define ADD_TARGET
#endif
typedef float add_vector __attribute__((vector_size(32), aligned(4), may_alias));

ADD_TARGET static inline __attribute__((always_inline)) int32_t add_body(const uint64_t *words) {
    const add_vector *a = (const add_vector *)(uintptr_t)words[0], *b = (const add_vector *)(uintptr_t)words[1];
    add_vector *out = (add_vector *)(uintptr_t)words[2];
#pragma GCC unroll 8 /* no inner loop, whose speed would hang on where it lies in memory */
    for (int i = 0; i < ADD_FLOATS / 8; ++i) out[i] = a[i] + b[i];
    return 0;
}

ADD_TARGET __attribute__((aligned(64))) static int32_t add_kernel(const void *context, const uint64_t *words) {
    (void)context;
    return add_body(words);
}

typedef struct add_node {
    uint64_t words[5];
} add_node;

ADD_TARGET static __attribute__((noinline, aligned(64))) int32_t inlined_loop(const add_node *nodes, uint64_t count) {
    int32_t failed = 0;
    for (uint64_t i = 0; i < count && !failed; ++i) {
        failed = add_body(nodes[i].words);
        __asm__ volatile("" ::: "memory"); /* every node is a node: the compiler may not merge two */
    }
    return failed;
}

typedef struct chain {
    float *memory;
    void *device_memory;
    add_node *nodes;
    uint64_t count;
    rondo_graph *graph;
} chain;

/* Node i adds the constant in block 0 to what node i - 1 wrote: into one of two blocks, or each into its own. */
static void make_chain(const bench_setup *setup, uint64_t count, bool distinct, chain *c) {
    uint64_t blocks = distinct ? count + 2 : 3;
    c->count = count;
    bench_must(rondo_memory_allocate(setup->device, blocks * ADD_BYTES, &c->device_memory));
    c->memory = c->device_memory;
    memset(c->memory, 0, blocks * ADD_BYTES);
    c->nodes = calloc(count, sizeof *c->nodes);
    if (!c->nodes) exit(1);
    bench_must(rondo_graph_create(setup->device, NULL, &c->graph));
    bench_must(rondo_graph_capture_begin(c->graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t from = distinct ? i + 1 : 1 + i % 2, to = distinct ? i + 2 : 1 + (i + 1) % 2;
        uint64_t base = (uint64_t)(uintptr_t)c->memory;
        c->nodes[i] = (add_node){{base + from * ADD_BYTES, base, base + to * ADD_BYTES, 0, 0}};
        rondo_argument arguments[3] = {{c->nodes[i].words[0], ADD_BYTES, RONDO_ACCESS_READ, 0},
                                       {c->nodes[i].words[1], ADD_BYTES, RONDO_ACCESS_READ, 0},
                                       {c->nodes[i].words[2], ADD_BYTES, RONDO_ACCESS_WRITE, 0}};
        rondo_call call = {sizeof call, 3, {add_kernel, NULL}, arguments, "add"};
        bench_must(rondo_stream_launch(setup->stream, &call));
    }
    bench_must(rondo_graph_capture_end(c->graph, setup->stream));
}

static void free_chain(const bench_setup *setup, chain *c) {
    rondo_graph_release(c->graph);
    bench_must(rondo_memory_free(setup->device, c->device_memory));
    free(c->nodes);
}

/* Least time of each side over alternating rounds, in nanoseconds a node. */
static void pair(const bench_setup *setup, const chain *c, uint32_t rounds, uint32_t repeats, double *out_replay,
                 double *out_loop) {
    *out_replay = *out_loop = (double)INFINITY;
    for (uint32_t r = 0; r < rounds; ++r) {
        uint64_t start = bench_now_ns();
        for (uint32_t i = 0; i < repeats; ++i) bench_must(rondo_graph_replay(c->graph, setup->stream));
        uint64_t middle = bench_now_ns();
        for (uint32_t i = 0; i < repeats; ++i)
            if (inlined_loop(c->nodes, c->count)) exit(1);
        uint64_t end = bench_now_ns();
        double nodes = (double)c->count * repeats;
        *out_replay = fmin(*out_replay, (double)(middle - start) / nodes);
        *out_loop = fmin(*out_loop, (double)(end - middle) / nodes);
    }
}

static void row_replay(const bench_setup *setup, bench_report *report, const char *name, uint64_t count, bool distinct,
                       bool difference, double bar) {
    if (!bench_wants(report, name)) return;
    chain c;
    double replay, loop;
    make_chain(setup, count, distinct, &c);
    pair(setup, &c, count > 10000 ? 50 : 400, count > 10000 ? 2 : 50, &replay, &loop);
    free_chain(setup, &c);
    bench_row row = {
        .value = difference ? replay - loop : replay, .unit = "ns/node", .ratio = replay / loop, .bar = bar};
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.note, sizeof row.note, "replay %.2f, inlined loop %.2f ns a node", replay, loop);
    bench_add(report, &row);
}

static void row_empty(const bench_setup *setup, bench_report *report) {
    if (!bench_wants(report, "replay_empty")) return;
    rondo_graph *graph;
    double samples[200];
    bench_must(rondo_graph_create(setup->device, NULL, &graph));
    bench_must(rondo_graph_capture_begin(graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    bench_must(rondo_graph_capture_end(graph, setup->stream));
    for (int r = 0; r < 200; ++r) {
        uint64_t start = bench_now_ns();
        for (int i = 0; i < 1000; ++i) bench_must(rondo_graph_replay(graph, setup->stream));
        samples[r] = (double)(bench_now_ns() - start) / 1000 / 1e3;
    }
    rondo_graph_release(graph);
    bench_row row = {
        .name = "replay_empty", .value = bench_median(samples, 200), .unit = "us", .ratio = (double)NAN, .bar = 0.1};
    snprintf(row.note, sizeof row.note, "replay of a graph without nodes");
    bench_add(report, &row);
}

/* A model of one Relu on one float: three bindings and a run. */
static void row_context(const bench_setup *setup, bench_report *report) {
    if (!bench_wants(report, "context_rebind_run")) return;
    rondo_ir_graph *ir;
    rondo_ir_value x, y;
    rondo_plan *plan;
    rondo_executable *executable;
    rondo_context *context;
    void *memory;
    double samples[200];
    bench_must(rondo_ir_graph_create(setup->instance, "relu", &ir));
    bench_must(rondo_ir_graph_add_input(ir, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){1}, NULL, &x));
    bench_must(rondo_ir_graph_add_node(ir, "Relu", NULL, &x, 1, NULL, 0, &y, 1));
    bench_must(rondo_ir_graph_add_output(ir, y, "y"));
    bench_must(rondo_compile(setup->instance, ir, NULL, NULL, &plan));
    bench_must(rondo_executable_create(setup->device, plan, &executable));
    bench_must(rondo_context_create(executable, &context));
    bench_must(rondo_memory_allocate(setup->device, 256, &memory));
    memset(memory, 0, 256);
    for (int r = 0; r < 200; ++r) {
        uint64_t start = bench_now_ns();
        for (int i = 0; i < 1000; ++i) {
            bench_must(rondo_context_bind_input(context, 0, (char *)memory + 64 * (i & 1)));
            bench_must(rondo_context_bind_output(context, 0, (char *)memory + 128 + 64 * (i & 1)));
            bench_must(rondo_context_run(context, setup->stream));
        }
        samples[r] = (double)(bench_now_ns() - start) / 1000 / 1e3;
    }
    rondo_context_release(context);
    rondo_executable_release(executable);
    rondo_plan_release(plan);
    rondo_ir_graph_release(ir);
    bench_must(rondo_memory_free(setup->device, memory));
    bench_row row = {.name = "context_rebind_run",
                     .value = bench_median(samples, 200),
                     .unit = "us",
                     .ratio = (double)NAN,
                     .bar = 0.1};
    snprintf(row.note, sizeof row.note, "bind an input, bind an output, run one Relu of one float");
    bench_add(report, &row);
}

/* Five and a thousand replays, synchronised each time or once; the host's waiting apart. */
static void row_replays(const bench_setup *setup, bench_report *report, const char *name, uint32_t times, bool each) {
    if (!bench_wants(report, name)) return;
    chain c;
    double best = (double)INFINITY, waiting = 0;
    make_chain(setup, 1000, false, &c);
    for (int r = 0; r < 20; ++r) {
        uint64_t waited = 0, start = bench_now_ns();
        for (uint32_t i = 0; i < times; ++i) {
            bench_must(rondo_graph_replay(c.graph, setup->stream));
            if (!each && i + 1 < times) continue;
            uint64_t before = bench_now_ns();
            bench_must(rondo_stream_synchronize(setup->stream));
            waited += bench_now_ns() - before;
        }
        double total = (double)(bench_now_ns() - start) / 1e3;
        if (total < best) {
            best = total;
            waiting = (double)waited / 1e3;
        }
    }
    free_chain(setup, &c);
    bench_row row = {.value = best, .unit = "us", .ratio = (double)NAN, .bar = (double)NAN};
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.note, sizeof row.note, "%u replays of 1000 nodes, of which the host waits %.2f us", times, waiting);
    bench_add(report, &row);
}

void bench_replay(const bench_setup *setup, bench_report *report) {
    row_replay(setup, report, "replay_1000_over_loop", 1000, false, true, 1);
    row_replay(setup, report, "replay_100000_two_buffers", 100000, false, false, 8);
    row_replay(setup, report, "replay_100000_distinct", 100000, true, false, 16);
    row_empty(setup, report);
    row_context(setup, report);
    row_replays(setup, report, "replays_5_sync_each", 5, true);
    row_replays(setup, report, "replays_5_sync_once", 5, false);
    row_replays(setup, report, "replays_1000_sync_each", 1000, true);
    row_replays(setup, report, "replays_1000_sync_once", 1000, false);
}
