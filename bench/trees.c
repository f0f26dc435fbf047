/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tree adds to a launch: a call with 10 inputs and 10 outputs on an empty model, open and sealed, what one more
 * input costs, what leaving a path costs at 1,000 living blocks, and what a tree of 1,000 functions and 10,000 recordings
 * keeps. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

enum { CALLS = 2000, BLOCKS = 21, TENSORS = 40, WIDE_OUTPUTS = 1000, MANY_FUNCTIONS = 1000, MANY_PATHS = 10 };

/* An empty model: outputs of 64 bytes, and no work. */
static rondo_status empty(void *user, rondo_stream *stream, rondo_array **inputs, uint32_t input_count,
                          rondo_array **outputs, uint32_t output_count) {
    (void)user;
    (void)inputs;
    (void)input_count;
    for (uint32_t i = 0; i < output_count; ++i) {
        rondo_status status = rondo_array_create(stream, RONDO_DTYPE_F32, 1, (const int64_t[]){16}, &outputs[i]);
        if (status) return status;
    }
    return NULL;
}

static rondo_array_model model = {empty, NULL};

static rondo_tree *tree_open(const bench_setup *setup, uint32_t seal_after) {
    static uint64_t context;
    rondo_tree_options options = RONDO_TREE_OPTIONS_INIT;
    rondo_array_host_options host_options = RONDO_ARRAY_HOST_OPTIONS_INIT;
    rondo_graph_ops ops = RONDO_GRAPH_OPS_INIT;
    rondo_tensor_host host = RONDO_TENSOR_HOST_INIT;
    rondo_tree *tree;
    host_options.serial = 1;
    bench_must(rondo_graph_ops_native(setup->device, &ops));
    bench_must(rondo_tensor_host_native(setup->device, &host_options, &host));
    options.type = "cpu";
    options.context = ++context;
    options.ops = &ops;
    options.host = &host;
    options.seal_after = seal_after;
    options.cost_samples = 0; /* an empty model gains nothing, which is not the question */
    options.recording_limit = 0;
    bench_must(rondo_tree_open(setup->instance, &options, &tree));
    return tree;
}

static uint32_t tree_add(rondo_tree *tree, uint32_t inputs, uint32_t outputs) {
    rondo_tree_function function = RONDO_TREE_FUNCTION_INIT;
    uint32_t number;
    function.name = "empty";
    function.model = &model;
    function.input_count = inputs;
    function.output_count = outputs;
    bench_must(rondo_tree_add_function(tree, &function, &number));
    return number;
}

/* The outputs of a call are released before the next; a step each. */
static double tree_call(const bench_setup *setup, rondo_tree *tree, uint32_t function, rondo_array **inputs,
                        uint32_t count, int calls) {
    uint64_t start = bench_now_ns();
    for (int k = 0; k < calls; ++k) {
        void *given[TENSORS], *outputs[TENSORS];
        for (uint32_t i = 0; i < count; ++i) {
            rondo_array_retain(inputs[i]);
            given[i] = inputs[i];
        }
        rondo_tree_mark_step(tree);
        bench_must(rondo_tree_run(tree, function, setup->stream, given, count, outputs, count));
        for (uint32_t i = 0; i < count; ++i) rondo_array_release(outputs[i]);
    }
    return (double)(bench_now_ns() - start) / calls;
}

/* What the caller has to do for a call and would have to without a tree: taking a reference of each input, and giving it
 * back. */
static double tree_floor(rondo_array **inputs, uint32_t count, int calls) {
    uint64_t start = bench_now_ns();
    for (int k = 0; k < calls; ++k) {
        void *volatile given[TENSORS];
        for (uint32_t i = 0; i < count; ++i) {
            rondo_array_retain(inputs[i]);
            given[i] = inputs[i];
        }
        for (uint32_t i = 0; i < count; ++i) rondo_array_release(given[i]);
    }
    return (double)(bench_now_ns() - start) / calls;
}

/* The call less the caller's own work, by turns. */
static double tree_call_cost(const bench_setup *setup, uint32_t seal_after, uint32_t count, double *out_floor) {
    rondo_tree *tree = tree_open(setup, seal_after);
    uint32_t function = tree_add(tree, count, count);
    rondo_array *inputs[TENSORS];
    double samples[BLOCKS], floors[BLOCKS];
    for (uint32_t i = 0; i < count; ++i) {
        bench_must(rondo_array_create(setup->stream, RONDO_DTYPE_F32, 1, (const int64_t[]){16}, &inputs[i]));
    }
    (void)tree_call(setup, tree, function, inputs, count, 200);
    for (int i = 0; i < BLOCKS; ++i) {
        floors[i] = tree_floor(inputs, count, CALLS);
        samples[i] = tree_call(setup, tree, function, inputs, count, CALLS) - floors[i];
    }
    for (uint32_t i = 0; i < count; ++i) rondo_array_release(inputs[i]);
    rondo_tree_release(tree);
    *out_floor = bench_median(floors, BLOCKS);
    return bench_median(samples, BLOCKS);
}

static void call_rows(const bench_setup *setup, bench_report *report) {
    static const struct {
        const char *name;
        uint32_t seal_after;
        double bar;
    } kinds[] = {{"tree_call_10", 0, 0.4}, {"tree_call_10_sealed", 16, 0.15}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
        if (!bench_wants(report, kinds[k].name)) continue;
        double less = 0, ten = tree_call_cost(setup, kinds[k].seal_after, 10, &less);
        bench_row row = {.value = ten / 1e3, .unit = "us", .ratio = (double)NAN, .bar = kinds[k].bar};
        (void)snprintf(row.name, sizeof row.name, "%s", kinds[k].name);
        (void)snprintf(row.note, sizeof row.note,
                       "10 inputs, 10 outputs, empty model, a step a call; less %.3f us for the caller's references",
                       less / 1e3);
        bench_add(report, &row);
    }
    if (!bench_wants(report, "tree_call_more")) return;
    double less = 0, ten = tree_call_cost(setup, 0, 10, &less), forty = tree_call_cost(setup, 0, TENSORS, &less);
    bench_row row = {.value = (forty - ten) / (TENSORS - 10), .unit = "ns", .ratio = (double)NAN, .bar = 15};
    (void)snprintf(row.name, sizeof row.name, "tree_call_more");
    (void)snprintf(row.note, sizeof row.note, "one more input, and an output: from 10 to 40 of each");
    bench_add(report, &row);
}

static void tree_run(const bench_setup *setup, rondo_tree *tree, uint32_t function, void **outputs, uint32_t count) {
    bench_must(rondo_tree_run(tree, function, setup->stream, NULL, 0, outputs, count));
}

/* A root with 1,000 living outputs, replayed; then a function that has never followed it: what the pool's way back adds
 * to its first call, which is not graphed here and costs nothing else. */
static void switch_row(const bench_setup *setup, bench_report *report) {
    static void *outputs[WIDE_OUTPUTS];
    double with[BLOCKS], without[BLOCKS];
    if (!bench_wants(report, "tree_switch_1000")) return;
    rondo_tree *tree = tree_open(setup, 0);
    uint32_t root = tree_add(tree, 0, WIDE_OUTPUTS);
    for (int i = 0; i < 3; ++i) {
        rondo_tree_mark_step(tree);
        tree_run(setup, tree, root, outputs, WIDE_OUTPUTS);
        for (int k = 0; k < WIDE_OUTPUTS; ++k) rondo_array_release(outputs[k]);
    }
    for (int i = 0; i < BLOCKS; ++i) {
        uint32_t branch = tree_add(tree, 0, 0);
        rondo_tree_mark_step(tree);
        tree_run(setup, tree, root, outputs, WIDE_OUTPUTS);
        uint64_t start = bench_now_ns();
        tree_run(setup, tree, branch, NULL, 0); /* its warm-up, after the way back */
        with[i] = (double)(bench_now_ns() - start);
        start = bench_now_ns();
        tree_run(setup, tree, branch, NULL, 0); /* another warm-up, without */
        without[i] = (double)(bench_now_ns() - start);
        for (int k = 0; k < WIDE_OUTPUTS; ++k) rondo_array_release(outputs[k]);
        bench_must(rondo_tree_remove_function(tree, branch));
    }
    bench_row row = {.unit = "us", .ratio = (double)NAN, .bar = 20};
    row.value = (bench_median(with, BLOCKS) - bench_median(without, BLOCKS)) / 1e3;
    (void)snprintf(row.name, sizeof row.name, "tree_switch_1000");
    (void)snprintf(row.note, sizeof row.note, "leaving a path with 1,000 living outputs, each a block");
    bench_add(report, &row);
    rondo_tree_release(tree);
}

/* 1,000 functions after one another, along ten paths that part at their first node. */
static void many_row(const bench_setup *setup, bench_report *report) {
    static uint32_t functions[MANY_FUNCTIONS];
    uint32_t roots[MANY_PATHS];
    rondo_tree_info info = RONDO_TREE_INFO_INIT;
    void *output;
    if (!bench_wants(report, "tree_node_bytes") && !bench_wants(report, "tree_walk")) return;
    rondo_tree *tree = tree_open(setup, 0);
    for (int i = 0; i < MANY_FUNCTIONS - 1; ++i) functions[i] = tree_add(tree, 0, 1);
    for (int i = 0; i < MANY_PATHS; ++i) roots[i] = tree_add(tree, 0, 1);
    uint64_t start = 0;
    for (int round = 0; round < 4; ++round) {
        start = bench_now_ns();
        for (int path = 0; path < MANY_PATHS; ++path) {
            rondo_tree_mark_step(tree);
            tree_run(setup, tree, roots[path], &output, 1);
            for (int i = 0; i < MANY_FUNCTIONS - 1; ++i) {
                void *next;
                tree_run(setup, tree, functions[i], &next, 1);
                rondo_array_release(output);
                output = next;
            }
            rondo_array_release(output);
        }
    }
    double walk = (double)(bench_now_ns() - start) / (MANY_PATHS * MANY_FUNCTIONS);
    bench_must(rondo_tree_get_info(tree, &info));
    bench_row row = {
        .value = (double)info.host_bytes / info.recordings, .unit = "bytes", .ratio = (double)NAN, .bar = (double)NAN};
    (void)snprintf(row.name, sizeof row.name, "tree_node_bytes");
    (void)snprintf(row.note, sizeof row.note, "a recording of no input and one output, of %u in a tree of %u functions",
                   info.recordings, info.functions);
    bench_add(report, &row);
    row = (bench_row){.value = walk, .unit = "ns", .ratio = (double)NAN, .bar = (double)NAN};
    (void)snprintf(row.name, sizeof row.name, "tree_walk");
    (void)snprintf(row.note, sizeof row.note, "a call along paths of 1,000 recordings, %llu replays",
                   (unsigned long long)info.replays);
    bench_add(report, &row);
    rondo_tree_release(tree);
}

void bench_trees(const bench_setup *setup, bench_report *report) {
    call_rows(setup, report);
    switch_row(setup, report);
    many_row(setup, report);
}
