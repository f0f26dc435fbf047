/* SPDX-License-Identifier: Apache-2.0
 *
 * A registered operator whose output is as long as data says: right on a session, and wrong in each way, found by the check
 * and by the run. */
#include <rondo/compiler.h>
#include <rondo/operator.h>

#include "harness/harness.h"

typedef enum so_mood {
    SO_RIGHT,
    SO_NO_BOUND,
    SO_SMALL_BOUND,
    SO_OTHER_RANK,
    SO_TOO_LONG,
    SO_SILENT,
    SO_CLOSED
} so_mood;

typedef struct so_world {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
    so_mood mood;
    rondo_operator_implementation implementation;
    rondo_operator table;
} so_world;

static rondo_status so_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                            rondo_operator_result *results) {
    const so_world *w = user;
    if (request->inputs[0].rank != 1) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "no list");
    results[0].dtype = RONDO_DTYPE_F32;
    results[0].rank = 1;
    results[0].dims[0] = w->mood == SO_CLOSED ? request->inputs[0].dims[0] : -1;
    return RONDO_OK;
}

static rondo_status so_bound(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                             rondo_operator_result *results) {
    const so_world *w = user;
    int64_t n = request->inputs[0].dims[0];
    (void)api;
    if (w->mood == SO_OTHER_RANK) results[0].rank = 2;
    results[0].dims[0] = w->mood == SO_SMALL_BOUND ? n / 2 : n;
    results[0].dims[1] = 1;
    return RONDO_OK;
}

static rondo_status so_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const so_world *w = user;
    const int64_t n = api->request(context)->inputs[0].dims[0];
    const float *x = api->input(context, 0, RONDO_DTYPE_F32);
    int64_t found = 0;
    void *y = NULL;
    for (int64_t i = 0; i < n; i++) found += x[i] > 0;
    if (w->mood == SO_TOO_LONG) found = n + 1;
    if (w->mood == SO_SILENT) return RONDO_OK;
    rondo_status status = api->output(context, 0, 1, &found, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &y);
    if (status) return status;
    for (int64_t i = 0, at = 0; i < n; i++)
        if (x[i] > 0) ((float *)y)[at++] = x[i];
    return RONDO_OK;
}

static const rondo_operator_operand so_x[] = {{"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}}};
static const rondo_operator_operand so_y[] = {{"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};

static void so_close(so_world *w) {
    rondo_session_release(w->session);
    rondo_ir_graph_release(w->graph);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
    memset(w, 0, sizeof *w);
}

static void so_open(rondo_test *t, so_world *w, so_mood mood, const char *device) {
    const int64_t open = -1;
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_ir_value x, y, z;
    memset(w, 0, sizeof *w);
    w->t = t;
    T_DEFER(t, so_close, w);
    options.ignore_plugin_path = 1;
    w->mood = mood;
    w->implementation = (rondo_operator_implementation)RONDO_OPERATOR_IMPLEMENTATION_INIT;
    w->implementation.execute = so_execute;
    w->implementation.bound = mood == SO_NO_BOUND ? NULL : so_bound;
    w->table = (rondo_operator)RONDO_OPERATOR_INIT;
    w->table.name = "Positives";
    w->table.domain = "my";
    w->table.inputs = so_x;
    w->table.outputs = so_y;
    w->table.input_count = w->table.output_count = 1;
    w->table.meta = so_meta;
    w->table.implementation = &w->implementation;
    w->table.user = w;
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_operator_register(w->instance, &w->table));
    T_OK(t, rondo_device_open(w->instance, device, NULL, &w->device));
    T_OK(t, rondo_session_create(w->device, NULL, &w->session));
    T_OK(t, rondo_ir_graph_create(w->instance, "positives", &w->graph));
    T_OK(t, rondo_ir_graph_add_input(w->graph, "x", RONDO_DTYPE_F32, 1, &open, NULL, &x));
    T_OK(t, rondo_ir_graph_add_node(w->graph, "my::Positives", "chosen", &x, 1, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_node(w->graph, "Neg", NULL, &y, 1, NULL, 0, &z, 1));
    T_OK(t, rondo_ir_graph_add_output(w->graph, z, "z"));
    T_OK(t, rondo_session_add_graph(w->session, 0, w->graph));
}

static rondo_status so_run(so_world *w, float *x, int64_t n, rondo_tensor_view *out) {
    rondo_tensor_view in = {.data = x, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &n};
    *out = (rondo_tensor_view){0};
    return rondo_session_run(w->session, 0, &in, 1, out, 1);
}

static void so_right(rondo_test *t, const char *device) {
    so_world w;
    rondo_tensor_view out;
    rondo_plan *plan = NULL;
    so_open(t, &w, SO_RIGHT, device);
    T_OK(t, so_run(&w, (float[]){3, -1, 4, 0}, 4, &out));
    T_EQ(t, out.shape[0], 2);
    T_NEAR(t, ((const float *)out.data)[0], -3, 0);
    T_NEAR(t, ((const float *)out.data)[1], -4, 0);
    T_OK(t, so_run(&w, (float[]){-3, -1, -4, 0}, 4, &out));
    T_EQ(t, out.shape[0], 0);
    T_OK(t, so_run(&w, (float[]){1, 2, 3}, 3, &out));
    T_EQ(t, out.shape[0], 3);
    rondo_dim_binding dim = {.input = "x", .size = 3};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.dims = &dim;
    options.dim_count = 1;
    T_FAILS(t, rondo_compile(w.instance, w.graph, &options, NULL, &plan), UNSUPPORTED, "node 'chosen' (my::Positives)");
}

static void right_on_cpu(rondo_test *t) { so_right(t, "cpu"); }
static void right_on_sim(rondo_test *t) { so_right(t, "sim"); }

typedef struct so_case {
    so_mood mood;
    rondo_code code;
    rondo_layer layer;
    const char *part;
} so_case;

/* Each way to be wrong: what a run says, and what the check says of it. */
static void wrong(rondo_test *t) {
    static const so_case runs[] = {
        {SO_NO_BOUND, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_META, "has no bound for it"},
        {SO_SMALL_BOUND, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "its bound said at most 2"},
        {SO_OTHER_RANK, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION, "its bound for output 0"},
        {SO_TOO_LONG, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "5 long, its bound said at most 4"},
        {SO_SILENT, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "without an output 0"},
        {SO_CLOSED, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "what was inferred is 4"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        static so_world w;
        rondo_tensor_view out;
        so_open(t, &w, runs[i].mood, "cpu");
        rondo_status status = so_run(&w, (float[]){3, 1, 4, -1}, 4, &out);
        T_EQ(t, rondo_status_code(status), runs[i].code);
        T_EQ(t, rondo_status_layer(status), runs[i].layer);
        if (!strstr(rondo_status_message(status), runs[i].part)) T_STR(t, rondo_status_message(status), runs[i].part);
        rondo_status_release(status);
        so_close(&w);
    }
}

static void checked(rondo_test *t) {
    static const so_mood moods[] = {SO_SMALL_BOUND, SO_OTHER_RANK, SO_TOO_LONG, SO_SILENT};
    static so_world w;
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    rondo_operator_check_report report = RONDO_OPERATOR_CHECK_REPORT_INIT;
    options.rounds = 400;
    so_open(t, &w, SO_RIGHT, "cpu");
    T_OK(t, rondo_operator_check(w.instance, "my::Positives", &options, &report));
    T_TRUE(t, report.run > 20);
    so_close(&w);
    for (size_t i = 0; i < sizeof moods / sizeof *moods; i++) {
        so_open(t, &w, moods[i], "cpu");
        rondo_status status = rondo_operator_check(w.instance, "my::Positives", &options, &report);
        T_EQ(t, rondo_status_code(status), RONDO_CODE_INVALID_ARGUMENT);
        T_EQ(t, rondo_status_layer(status), RONDO_LAYER_IMPLEMENTATION);
        rondo_status_release(status);
        so_close(&w);
    }
}

RONDO_TEST_MAIN(T(right_on_cpu), T(right_on_sim), T_PLAIN(wrong), T_PLAIN(checked))
