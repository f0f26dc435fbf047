/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that depend on data, on sessions over cpu and sim: sizes that only a run knows, conditions, loops, what is refused
 * inside a capture. Results are those of arithmetic; tests/data/control has ONNX Runtime's. */
#include <math.h>
#include <rondo/profile.h>
#include <rondo/value.h>
#include <stdio.h>

#include "harness/harness.h"
#include "ir/ir.h"
#include "session/session_testing.h"

typedef struct region_fixture {
    sum_fixture sum; /* its graph is replaced */
    rondo_ir_graph *graph;
} region_fixture;

static void region_close(region_fixture *f) {
    rondo_ir_graph_release(f->graph);
    f->graph = NULL;
    sum_close(&f->sum);
}

static void region_open_with(rondo_test *t, region_fixture *f, const char *device,
                             const rondo_session_options *options) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, region_close, f);
    sum_open(t, &f->sum, device, options);
    T_OK(t, rondo_ir_graph_create(f->sum.instance, "region", &f->graph));
}

static void region_open(rondo_test *t, region_fixture *f, const char *device) { region_open_with(t, f, device, NULL); }

static rondo_ir_value region_input(region_fixture *f, const char *name, rondo_dtype dtype, int32_t rank) {
    static const int64_t open[4] = {-1, -1, -1, -1};
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(f->sum.t, rondo_ir_graph_add_input(f->graph, name, dtype, rank, open, NULL, &value));
    return value;
}

static rondo_ir_value region_node(region_fixture *f, rondo_ir_graph *graph, const char *operator_name, const char *name,
                                  const rondo_ir_value *inputs, uint32_t count, const rondo_attribute *attributes,
                                  uint32_t attribute_count) {
    rondo_ir_value value = RONDO_IR_NONE;
    T_OK(f->sum.t,
         rondo_ir_graph_add_node(graph, operator_name, name, inputs, count, attributes, attribute_count, &value, 1));
    return value;
}

static rondo_tensor_view region_view(void *data, rondo_dtype dtype, int32_t rank, const int64_t *dims) {
    return (rondo_tensor_view){.data = data, .device_type = 1, .rank = rank, .dtype = dtype, .shape = dims};
}

/* y = 2 x where x is not zero. */
static void region_selection(region_fixture *f) {
    rondo_test *t = f->sum.t;
    rondo_ir_value two, axes, x = region_input(f, "x", RONDO_DTYPE_F32, 1);
    T_OK(t, rondo_ir_graph_add_constant(f->graph, NULL, RONDO_DTYPE_F32, 0, NULL, &(const float){2}, &two));
    T_OK(t, rondo_ir_graph_add_constant(f->graph, NULL, RONDO_DTYPE_I64, 1, (const int64_t[]){1}, &(const int64_t){0},
                                        &axes));
    rondo_ir_value twice = region_node(f, f->graph, "Mul", NULL, (rondo_ir_value[]){x, two}, 2, NULL, 0);
    rondo_ir_value where = region_node(f, f->graph, "NonZero", "where", &x, 1, NULL, 0);
    rondo_ir_value flat = region_node(f, f->graph, "Squeeze", NULL, (rondo_ir_value[]){where, axes}, 2, NULL, 0);
    rondo_ir_value y = region_node(f, f->graph, "Gather", NULL, (rondo_ir_value[]){twice, flat}, 2, NULL, 0);
    T_OK(t, rondo_ir_graph_add_output(f->graph, y, "y"));
    T_OK(t, rondo_session_add_graph(f->sum.session, 7, f->graph));
}

static void region_select(region_fixture *f, const float *x, int64_t n, rondo_tensor_view *out) {
    rondo_tensor_view in = region_view((void *)(uintptr_t)x, RONDO_DTYPE_F32, 1, &n);
    *out = (rondo_tensor_view){0};
    T_OK(f->sum.t, rondo_session_run(f->sum.session, 7, &in, 1, out, 1));
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] < 0 || x[i] > 0) T_NEAR(f->sum.t, ((const float *)out->data)[at++], 2 * x[i], 0);
    }
    T_EQ(f->sum.t, out->rank, 1);
    T_EQ(f->sum.t, out->shape[0], at);
}

static void region_sizes(rondo_test *t, const char *device) {
    region_fixture f;
    rondo_tensor_view out;
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    region_open(t, &f, device);
    region_selection(&f);
    region_select(&f, (const float[]){0, 3, 0, -4}, 4, &out);
    region_select(&f, (const float[]){1, 0, 0, 5}, 4, &out); /* as many, elsewhere: nothing is compiled for it */
    T_OK(t, rondo_session_get_info(f.sum.session, 7, &info));
    T_EQ(t, info.compiles, 2); /* before the selection, and behind it */
    T_EQ(t, info.runs, 2);
    region_select(&f, (const float[]){0, 0, 0, 0}, 4, &out);
    region_select(&f, (const float[]){1, 2, 3, 4}, 4, &out);
    region_select(&f, (const float[]){9, 0}, 2, &out);
    /* Memory of the caller's must be what comes out. */
    float y[3] = {7, 7, 7};
    const int64_t n = 4, two = 2, three = 3;
    rondo_tensor_view in = region_view((float[]){0, 1, 2, 0}, RONDO_DTYPE_F32, 1, &n);
    out = region_view(y, RONDO_DTYPE_F32, 1, &three);
    T_FAILS(t, rondo_session_run(f.sum.session, 7, &in, 1, &out, 1), INVALID_ARGUMENT, "output 'y'");
    T_NEAR(t, y[0], 7, 0);
    out.shape = &two;
    T_OK(t, rondo_session_run(f.sum.session, 7, &in, 1, &out, 1));
    T_NEAR(t, y[0], 2, 0);
    T_NEAR(t, y[1], 4, 0);
    T_NEAR(t, y[2], 7, 0);
    T_OK(t, rondo_session_remove_graph(f.sum.session, 7));
}

static void test_sizes_cpu(rondo_test *t) { region_sizes(t, "cpu"); }
static void test_sizes_sim(rondo_test *t) { region_sizes(t, "sim"); }

/* No entry of a cache holds what had to be cut; a session with one cuts all the same, and so does the next. */
static void test_with_a_cache(rondo_test *t) {
    region_fixture f[2];
    char folder[512];
    rondo_tensor_view out;
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    (void)snprintf(folder, sizeof folder, "%s/regions", rondo_test_folder(t));
    options.cache = folder;
    for (unsigned i = 0; i < 2; i++) {
        region_open_with(t, &f[i], "cpu", &options);
        region_selection(&f[i]);
        region_select(&f[i], (const float[]){0, 3, 0, -4}, 4, &out);
        region_select(&f[i], (const float[]){1, 2, 0, 5}, 4, &out);
        region_select(&f[i], (const float[]){0, 0, 0, 0}, 4, &out);
    }
}

/* A graph of which nothing is in a plan, too. */
static void test_watched(rondo_test *t) {
    region_fixture f;
    rondo_tensor_view out;
    rondo_profile *profile = NULL;
    rondo_profile_info info = RONDO_PROFILE_INFO_INIT;
    region_open(t, &f, "cpu");
    T_OK(t, rondo_profile_create(f.sum.instance, NULL, &profile));
    T_DEFER(t, rondo_profile_release, profile);
    T_OK(t, rondo_session_set_profile(f.sum.session, profile));
    region_selection(&f);
    for (int i = 0; i < 3; i++) region_select(&f, (const float[]){0, 3, 0, -4}, 4, &out);
    rondo_ir_graph *alone = NULL;
    rondo_ir_value x, y;
    const int64_t open = -1, n = 3;
    T_OK(t, rondo_ir_graph_create(f.sum.instance, "alone", &alone));
    T_DEFER(t, rondo_ir_graph_release, alone);
    T_OK(t, rondo_ir_graph_add_input(alone, "x", RONDO_DTYPE_F32, 1, &open, NULL, &x));
    T_OK(t, rondo_ir_graph_add_node(alone, "NonZero", "where", &x, 1, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_output(alone, y, "y"));
    T_OK(t, rondo_session_add_graph(f.sum.session, 8, alone));
    rondo_tensor_view in = region_view((float[]){0, 5, 0}, RONDO_DTYPE_F32, 1, &n);
    out = (rondo_tensor_view){0};
    T_OK(t, rondo_session_run(f.sum.session, 8, &in, 1, &out, 1));
    T_EQ(t, out.shape[1], 1);
    T_EQ(t, ((const int64_t *)out.data)[0], 1);
    T_OK(t, rondo_profile_get_info(profile, &info));
    T_EQ(t, info.parts_ns, info.ns[RONDO_PROFILE_CALL]);
}

/* A plan cannot wait: what must be between plans is told by name, on a stream, in a capture, and by the compiler. */
static void test_refused(rondo_test *t) {
    region_fixture f;
    rondo_tensor_view out;
    rondo_plan *plan = NULL;
    const int64_t n = 4;
    region_open(t, &f, "cpu");
    region_selection(&f);
    const rondo_device_properties *p = rondo_device_info(f.sum.device);
    rondo_tensor_view in = region_view(f.sum.x, RONDO_DTYPE_F32, 1, &n),
                      z = region_view(f.sum.z, RONDO_DTYPE_F32, 1, &n);
    in.device_type = z.device_type = p->dlpack_type;
    in.device_index = z.device_index = p->index;
    T_FAILS(t, rondo_session_run_on_stream(f.sum.session, 7, f.sum.stream, &in, 1, &z, 1, NULL), UNSUPPORTED,
            "node 'where' (NonZero)");
    region_select(&f, (const float[]){1, 0, 2, 0}, 4, &out);
    T_FAILS(t, rondo_session_run_on_stream(f.sum.session, 7, f.sum.stream, &in, 1, &z, 1, NULL), UNSUPPORTED,
            "node 'where' (NonZero) runs between plans");
    T_OK(t, sum_begin(&f.sum));
    rondo_status status = rondo_session_run_on_stream(f.sum.session, 7, f.sum.stream, &in, 1, &z, 1, NULL);
    if (!rondo_test_failing(t)) T_EQ(t, rondo_status_layer(status), RONDO_LAYER_CAPTURE);
    T_FAILS(t, status, UNSUPPORTED, "node 'where' (NonZero) runs between plans");
    T_TRUE(t, rondo_status_code(status = rondo_graph_capture_end(f.sum.capture, f.sum.stream)) != RONDO_CODE_OK);
    rondo_status_release(status);
    region_select(&f, (const float[]){1, 0, 2, 0}, 4, &out); /* nothing was lost */
    T_OK(t, rondo_session_add_graph(f.sum.session, 1, f.sum.graph));
    T_OK(t, sum_run(&f.sum, 1, 3, 5));
    rondo_dim_binding dim = {.input = "x", .size = 4};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.dims = &dim;
    options.dim_count = 1;
    status = rondo_compile(f.sum.instance, f.graph, &options, NULL, &plan);
    if (!rondo_test_failing(t)) T_EQ(t, rondo_status_layer(status), RONDO_LAYER_META);
    T_FAILS(t, status, UNSUPPORTED, "node 'where' (NonZero)");
    T_TRUE(t, !plan);
}

/* ------------------------------------------------------------------------------------------------------ branches */

/* One of the branches of an If: operator_name of x and k, both from around it. */
static void region_branch(region_fixture *f, const char *name, const char *operator_name, rondo_ir_value x,
                          rondo_ir_value k, rondo_attribute *out) {
    rondo_ir_graph *branch = NULL;
    rondo_ir_value inner[2];
    T_OK(f->sum.t, rondo__ir_graph_create(&f->graph->allocator, f->sum.instance, name, f->graph, &branch));
    T_OK(f->sum.t, rondo__ir_value_outer(branch, x, &inner[0]));
    T_OK(f->sum.t, rondo__ir_value_outer(branch, k, &inner[1]));
    rondo_ir_value y = region_node(f, branch, operator_name, NULL, inner, 2, NULL, 0);
    T_OK(f->sum.t, rondo_ir_graph_add_output(branch, y, operator_name));
    *out = (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value = {.graph = branch}};
}

/* y = -(x 3) where the sum of x is above 0, else -(x - 3). */
static void test_condition(rondo_test *t) {
    region_fixture f;
    rondo_ir_value k, zero;
    rondo_attribute keep = {.name = "keepdims", .kind = RONDO_ATTRIBUTE_INT, .count = 1}, branches[2];
    const float xs[3][2] = {{1, 2}, {-1, -2}, {5, -4}};
    const int64_t n = 2;
    region_open(t, &f, "cpu");
    rondo_ir_value x = region_input(&f, "x", RONDO_DTYPE_F32, 1);
    T_OK(t, rondo_ir_graph_add_constant(f.graph, NULL, RONDO_DTYPE_F32, 0, NULL, &(const float){3}, &k));
    T_OK(t, rondo_ir_graph_add_constant(f.graph, NULL, RONDO_DTYPE_F32, 0, NULL, &(const float){0}, &zero));
    rondo_ir_value sum = region_node(&f, f.graph, "ReduceSum", NULL, &x, 1, &keep, 1);
    rondo_ir_value above = region_node(&f, f.graph, "Greater", NULL, (rondo_ir_value[]){sum, zero}, 2, NULL, 0);
    region_branch(&f, "then_branch", "Mul", x, k, &branches[0]);
    region_branch(&f, "else_branch", "Sub", x, k, &branches[1]);
    rondo_ir_value chosen = region_node(&f, f.graph, "If", "choice", &above, 1, branches, 2);
    T_OK(t, rondo_ir_graph_add_output(f.graph, region_node(&f, f.graph, "Neg", NULL, &chosen, 1, NULL, 0), "y"));
    T_OK(t, rondo_ir_graph_add_output(f.graph, above, "above"));
    T_OK(t, rondo_session_add_graph(f.sum.session, 7, f.graph));
    for (int run = 0; run < 6; run++) {
        const float *given = xs[run % 3];
        bool positive = given[0] + given[1] > 0;
        rondo_tensor_view in = region_view((void *)(uintptr_t)given, RONDO_DTYPE_F32, 1, &n), out[2] = {{0}, {0}};
        T_OK(t, rondo_session_run(f.sum.session, 7, &in, 1, out, 2));
        T_EQ(t, *(const uint8_t *)out[1].data, positive);
        for (int i = 0; i < 2; i++) {
            T_NEAR(t, ((const float *)out[0].data)[i], positive ? -3 * given[i] : 3 - given[i], 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------------ values of any kind */

/* A sequence comes in, one tensor goes in and one comes out of it; another graph tells an optional's state. */
static void test_values(rondo_test *t) {
    region_fixture f;
    rondo_ir_value sequence = RONDO_IR_NONE, at;
    rondo_value *items[2] = {NULL, NULL}, *inputs[2] = {NULL, NULL}, *outputs[2] = {NULL, NULL};
    const int64_t one = 1, two = 2;
    const float a[1] = {4}, b[2] = {5, 6};
    region_open(t, &f, "cpu");
    rondo__ir_type element = {.kind = RONDO__IR_TENSOR, .dtype = RONDO_DTYPE_F32, .rank = -1};
    rondo__ir_type type = {.kind = RONDO__IR_SEQUENCE, .rank = -1, .element = &element};
    T_OK(t, rondo__ir_value_add(f.graph, "s", NULL, &type, &sequence));
    T_OK(t, rondo__ir_input_add(f.graph, sequence));
    rondo_ir_value x = region_input(&f, "x", RONDO_DTYPE_F32, 1);
    T_OK(t, rondo_ir_graph_add_constant(f.graph, NULL, RONDO_DTYPE_I64, 0, NULL, &(const int64_t){-2}, &at));
    rondo_ir_value twice = region_node(&f, f.graph, "Add", NULL, (rondo_ir_value[]){x, x}, 2, NULL, 0);
    rondo_ir_value longer =
        region_node(&f, f.graph, "SequenceInsert", NULL, (rondo_ir_value[]){sequence, twice}, 2, NULL, 0);
    rondo_ir_value taken = region_node(&f, f.graph, "SequenceAt", "take", (rondo_ir_value[]){longer, at}, 2, NULL, 0);
    T_OK(t, rondo_ir_graph_add_output(f.graph, longer, "longer"));
    T_OK(t, rondo_ir_graph_add_output(f.graph, region_node(&f, f.graph, "Neg", NULL, &taken, 1, NULL, 0), "y"));
    T_OK(t, rondo_session_add_graph(f.sum.session, 7, f.graph));
    rondo_tensor_view views[2] = {region_view((void *)(uintptr_t)a, RONDO_DTYPE_F32, 1, &one),
                                  region_view((void *)(uintptr_t)b, RONDO_DTYPE_F32, 1, &two)};
    rondo_status status = RONDO_OK;
    for (int i = 0; i < 2 && !status; i++) status = rondo_value_from_tensor(f.sum.instance, &views[i], &items[i]);
    if (!status) status = rondo_value_from_sequence(f.sum.instance, RONDO_DTYPE_F32, items, 1, &inputs[0]);
    inputs[1] = items[1];
    for (int run = 0; run < 2 && !status; run++) {
        rondo_value_release(outputs[0]);
        rondo_value_release(outputs[1]);
        status = rondo_session_run_values(f.sum.session, 7, inputs, 2, outputs, 2);
    }
    rondo_tensor_view y = {0}, last = {0};
    bool right = !status && rondo_value_count(outputs[0]) == 2 && rondo_value_tensor(outputs[1], &y) &&
                 y.shape[0] == 1 && rondo_value_tensor(rondo_value_item(outputs[0], 1), &last) && last.shape[0] == 2;
    right =
        right && *(const float *)y.data < -3.9f && *(const float *)y.data > -4.1f; /* the tensor before the last, a */
    right = right && ((const float *)last.data)[1] > 11.9f && ((const float *)last.data)[1] < 12.1f;
    right = right && !rondo_value_item(outputs[0], 2) && rondo_value_get_kind(outputs[0]) == RONDO_VALUE_SEQUENCE;
    rondo_value_release(outputs[0]);
    rondo_value_release(outputs[1]);
    rondo_value *swapped[2] = {inputs[1], inputs[0]};
    rondo_status wrong = status ? RONDO_OK : rondo_session_run_values(f.sum.session, 7, swapped, 2, outputs, 2);
    rondo_value *empty = NULL;
    if (!status) status = rondo_value_from_sequence(f.sum.instance, RONDO_DTYPE_F32, NULL, 0, &empty);
    rondo_status short_of = RONDO_OK;
    if (!status)
        short_of = rondo_session_run_values(f.sum.session, 7, (rondo_value *[]){empty, inputs[1]}, 2, outputs, 2);
    rondo_value_release(empty);
    rondo_value_release(inputs[0]);
    rondo_value_release(items[0]);
    rondo_value_release(items[1]);
    if (status) {
        rondo_status_release(wrong);
        rondo_status_release(short_of);
    }
    T_OK(t, status);
    T_TRUE(t, right);
    rondo_status_release(rondo_test_failing(t) ? wrong : RONDO_OK);
    rondo_status_release(rondo_test_failing(t) ? short_of : RONDO_OK);
    if (rondo_test_failing(t)) return;
    T_FAILS(t, wrong, INVALID_ARGUMENT, "input 's' is a sequence");
    T_FAILS(t, short_of, OUT_OF_RANGE, "position -2");
}

/* --------------------------------------------------------------------------------------------------- sized operators */

typedef struct region_want {
    int32_t rank;
    int64_t dims[3];
    int64_t values[12];
} region_want;

/* One node on one input and perhaps a condition; its outputs are of int64, or of x's type which is int64, too. */
static void region_sized(rondo_test *t, const char *operator_name, const rondo_attribute *attributes, uint32_t count,
                         rondo_tensor_view *in, uint32_t inputs, const region_want *want, uint32_t outputs) {
    static region_fixture f; /* closed here, or by what the test defers */
    rondo_ir_value values[2], results[4];
    rondo_tensor_view out[4] = {{0}, {0}, {0}, {0}};
    region_open(t, &f, "cpu");
    for (uint32_t i = 0; i < inputs; i++) values[i] = region_input(&f, i ? "condition" : "x", in[i].dtype, in[i].rank);
    T_OK(t,
         rondo_ir_graph_add_node(f.graph, operator_name, "node", values, inputs, attributes, count, results, outputs));
    for (uint32_t i = 0; i < outputs; i++) T_OK(t, rondo_ir_graph_add_output(f.graph, results[i], NULL));
    T_OK(t, rondo_session_add_graph(f.sum.session, 7, f.graph));
    T_OK(t, rondo_session_run(f.sum.session, 7, in, inputs, out, outputs));
    for (uint32_t i = 0; i < outputs; i++) {
        int64_t elements = 1;
        T_EQ(t, out[i].rank, want[i].rank);
        for (int32_t d = 0; d < out[i].rank; d++) {
            T_EQ(t, out[i].shape[d], want[i].dims[d]);
            elements *= out[i].shape[d];
        }
        for (int64_t n = 0; n < elements; n++) T_EQ(t, ((const int64_t *)out[i].data)[n], want[i].values[n]);
    }
    region_close(&f);
}

static void test_sized(rondo_test *t) {
    const rondo_attribute axis = {.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value = {.i = -1}},
                          unsorted[2] = {axis, {.name = "sorted", .kind = RONDO_ATTRIBUTE_INT, .count = 1}};
    int64_t table[6] = {7, 0, 7, 3, 5, 3}; /* columns (7,3) (0,5) (7,3) */
    uint8_t mask[3] = {1, 0, 1};
    float real[4] = {0, -0.0f, NAN, 1e-30f};
    rondo_tensor_view x = region_view(table, RONDO_DTYPE_I64, 2, (const int64_t[]){2, 3}),
                      list = region_view(table, RONDO_DTYPE_I64, 1, (const int64_t[]){6}),
                      condition = region_view(mask, RONDO_DTYPE_BOOL, 1, (const int64_t[]){3}),
                      reals = region_view(real, RONDO_DTYPE_F32, 1, (const int64_t[]){4}),
                      scalar = region_view(&table[0], RONDO_DTYPE_I64, 0, NULL);
    region_sized(t, "NonZero", NULL, 0, &x, 1, &(region_want){2, {2, 5}, {0, 0, 1, 1, 1, 0, 2, 0, 1, 2}}, 1);
    region_sized(t, "NonZero", NULL, 0, &reals, 1, &(region_want){2, {1, 2}, {2, 3}}, 1);
    region_sized(t, "NonZero", NULL, 0, &scalar, 1, &(region_want){2, {0, 1}, {0}}, 1);
    region_sized(t, "Compress", &axis, 1, (rondo_tensor_view[]){x, condition}, 2,
                 &(region_want){2, {2, 2}, {7, 7, 3, 3}}, 1);
    region_sized(t, "Compress", NULL, 0, (rondo_tensor_view[]){x, condition}, 2, &(region_want){1, {2}, {7, 7}}, 1);
    region_sized(
        t, "Unique", NULL, 0, &list, 1,
        (const region_want[]){
            {1, {4}, {0, 3, 5, 7}}, {1, {4}, {1, 3, 4, 0}}, {1, {6}, {3, 0, 3, 1, 2, 1}}, {1, {4}, {1, 2, 1, 2}}},
        4);
    region_sized(
        t, "Unique", unsorted, 2, &x, 1,
        (const region_want[]){{2, {2, 2}, {7, 0, 3, 5}}, {1, {2}, {0, 1}}, {1, {3}, {0, 1, 0}}, {1, {2}, {2, 1}}}, 4);
    region_sized(
        t, "Unique", &axis, 1, &x, 1,
        (const region_want[]){{2, {2, 2}, {0, 7, 5, 3}}, {1, {2}, {1, 0}}, {1, {3}, {1, 0, 1}}, {1, {2}, {1, 2}}}, 4);
}

RONDO_TEST_MAIN(T(test_sizes_cpu), T(test_sizes_sim), T_PLAIN(test_with_a_cache), T_PLAIN(test_watched), T(test_refused),
                T(test_condition), T(test_values), T(test_sized))
