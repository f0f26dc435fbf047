/* SPDX-License-Identifier: Apache-2.0
 *
 * What compiling a graph of 10,000 nodes takes, and how it grows: the time a node at 40,000 over that at 10,000. Graphs
 * of five forms, so that no pass and no part of the memory plan finds its good case only; the note names the dearest
 * pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SIDE = 16, RUNS = 3 };

typedef struct compile_graph {
    rondo_ir_graph *graph;
    rondo_ir_value x; /* float32[16,16] */
    uint32_t seed, outputs;
} compile_graph;

typedef struct compile_dearest {
    char name[32];
    uint64_t ns, all_ns;
} compile_dearest;

static rondo_ir_value node(compile_graph *g, const char *name, rondo_ir_value a, rondo_ir_value b) {
    rondo_ir_value out = RONDO_IR_NONE;
    bench_must(rondo_ir_graph_add_node(g->graph, name, NULL, (const rondo_ir_value[]){a, b}, b == RONDO_IR_NONE ? 1 : 2,
                                       NULL, 0, &out, 1));
    return out;
}

static rondo_ir_value constant(compile_graph *g, int32_t rank, const int64_t *dims) {
    static float data[SIDE * SIDE];
    rondo_ir_value out = RONDO_IR_NONE;
    for (int i = 0; i < SIDE * SIDE; i++) {
        g->seed = g->seed * 1664525u + 1013904223u;
        data[i] = (float)(g->seed >> 8) / 16777216.0f;
    }
    bench_must(rondo_ir_graph_add_constant(g->graph, NULL, RONDO_DTYPE_F32, rank, dims, data, &out));
    return out;
}

static rondo_ir_value list(compile_graph *g, int64_t count, const int64_t *values) {
    rondo_ir_value out = RONDO_IR_NONE;
    bench_must(rondo_ir_graph_add_constant(g->graph, NULL, RONDO_DTYPE_I64, 1, &count, values, &out));
    return out;
}

static void put_out(compile_graph *g, rondo_ir_value value) {
    char name[32];
    (void)snprintf(name, sizeof name, "out%u", g->outputs++);
    bench_must(rondo_ir_graph_add_output(g->graph, value, name));
}

/* One after the other; each element by element. */
static void chain(compile_graph *g, uint32_t count) {
    static const char *const names[] = {"Tanh", "Sin", "Exp", "Sigmoid"};
    rondo_ir_value v = g->x;
    for (uint32_t i = 0; i < count; i++) v = node(g, names[i % 4], v, RONDO_IR_NONE);
    put_out(g, v);
}

/* Products with biases and bends, as models have them. */
static void layers(compile_graph *g, uint32_t count) {
    static const int64_t dims[2] = {SIDE, SIDE};
    rondo_ir_value v = g->x, w = constant(g, 2, dims), bias = constant(g, 1, dims);
    for (uint32_t i = 0; i + 2 < count; i += 3) {
        v = node(g, "Relu", node(g, "Add", node(g, "MatMul", v, w), bias), RONDO_IR_NONE);
    }
    put_out(g, v);
}

/* Half of the nodes make values that are all alive until the others add them up. */
static void wide(compile_graph *g, uint32_t count) {
    uint32_t leaves = count / 2;
    rondo_ir_value *made = calloc(leaves, sizeof *made);
    if (!made) exit(1);
    for (uint32_t i = 0; i < leaves; i++) made[i] = node(g, "Mul", g->x, constant(g, 0, NULL));
    rondo_ir_value sum = made[0];
    for (uint32_t i = 1; i < leaves; i++) sum = node(g, "Add", made[i], sum);
    put_out(g, sum);
    free(made);
}

/* Everything that only moves or only changes shape: what the cleaning passes live on. */
static void moves(compile_graph *g, uint32_t count) {
    static const int64_t one[1] = {-1}, square[2] = {SIDE, SIDE};
    rondo_ir_value flat = list(g, 1, one), back = list(g, 2, square), v = g->x;
    for (uint32_t i = 0; i + 7 < count; i += 8) {
        v = node(g, "Transpose", v, RONDO_IR_NONE);
        v = node(g, "Tanh", v, RONDO_IR_NONE);
        v = node(g, "Transpose", v, RONDO_IR_NONE);
        v = node(g, "Reshape", v, flat);
        v = node(g, "Reshape", v, back);
        v = node(g, "Neg", node(g, "Neg", v, RONDO_IR_NONE), RONDO_IR_NONE);
        v = node(g, "Identity", v, RONDO_IR_NONE);
    }
    put_out(g, v);
}

/* Each node takes two of the two hundred before it: many lives that cross, and every thirtieth an output. */
static void tangle(compile_graph *g, uint32_t count) {
    static const char *const names[] = {"Add", "Mul", "Max", "Sub"};
    enum { NEAR = 200 };
    rondo_ir_value near[NEAR];
    for (uint32_t i = 0; i < NEAR; i++) near[i] = g->x;
    for (uint32_t i = 0; i < count; i++) {
        g->seed = g->seed * 1664525u + 1013904223u;
        rondo_ir_value a = near[(g->seed >> 8) % NEAR], b = near[(g->seed >> 20) % NEAR];
        near[i % NEAR] = node(g, names[i % 4], a, b);
        if (i % 30 == 0) put_out(g, near[i % NEAR]);
    }
    for (uint32_t i = 0; i < NEAR; i++) put_out(g, near[i]);
}

static void keep_dearest(void *user, const rondo_pass_report *report) {
    compile_dearest *dearest = user;
    dearest->all_ns += report->ns;
    if (report->ns <= dearest->ns) return;
    dearest->ns = report->ns;
    (void)snprintf(dearest->name, sizeof dearest->name, "%s", report->name);
}

/* Milliseconds, the best of a few runs; the plan's calls and how near its arena comes to what is possible. */
static double compile_once(const bench_setup *setup, void (*build)(compile_graph *g, uint32_t count), uint32_t count,
                           compile_dearest *dearest, rondo_plan_info *info) {
    static const int64_t dims[2] = {SIDE, SIDE};
    compile_graph g = {.seed = 7};
    double best = (double)INFINITY;
    bench_must(rondo_ir_graph_create(setup->instance, "bench", &g.graph));
    bench_must(rondo_ir_graph_add_input(g.graph, "x", RONDO_DTYPE_F32, 2, dims, NULL, &g.x));
    build(&g, count);
    for (int i = 0; i < RUNS; i++) {
        compile_dearest now = {.ns = 0};
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        rondo_plan *plan;
        options.after_pass = keep_dearest;
        options.user = &now;
        uint64_t start = bench_now_ns();
        bench_must(rondo_compile(setup->instance, g.graph, &options, NULL, &plan));
        double ms = (double)(bench_now_ns() - start) / 1e6;
        if (ms < best) {
            best = ms;
            *dearest = now;
        }
        bench_must(rondo_plan_get_info(plan, info));
        rondo_plan_release(plan);
    }
    rondo_ir_graph_release(g.graph);
    return best;
}

void bench_compile(const bench_setup *setup, bench_report *report) {
    static const struct {
        const char *name;
        void (*build)(compile_graph *g, uint32_t count);
    } forms[] = {{"chain", chain}, {"layers", layers}, {"wide", wide}, {"moves", moves}, {"tangle", tangle}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "compile_10k_%s", forms[i].name);
        if (!bench_wants(report, name)) continue;
        compile_dearest dearest = {.ns = 0};
        rondo_plan_info info = RONDO_PLAN_INFO_INIT;
        double large = compile_once(setup, forms[i].build, 40000, &dearest, &info);
        double small = compile_once(setup, forms[i].build, 10000, &dearest, &info);
        bench_row row = {.value = small, .unit = "ms", .ratio = (double)NAN, .bar = 1000};
        memcpy(row.name, name, sizeof row.name);
        (void)snprintf(row.note, sizeof row.note, "%u calls; %s takes %.0f %%; arena %llu KiB, at least %llu",
                       info.calls, dearest.name, 100.0 * (double)dearest.ns / (double)dearest.all_ns,
                       (unsigned long long)info.arena_bytes / 1024, (unsigned long long)info.arena_lower_bound / 1024);
        bench_add(report, &row);
        bench_row growth = {.value = large, .unit = "ms", .ratio = large / (4 * small), .bar = 2, .bar_on_ratio = true};
        (void)snprintf(growth.name, sizeof growth.name, "compile_40k_%s", forms[i].name);
        (void)snprintf(growth.note, sizeof growth.note,
                       "the ratio is the time a node over that at 10,000: caches end, work does not grow");
        bench_add(report, &growth);
    }
}
