/* SPDX-License-Identifier: Apache-2.0
 *
 * One way to be wrong for each layer that an operator goes through on its way into a graph and through it: what is
 * answered is the layer that it was. */
#include <rondo/compiler.h>
#include <rondo/operator.h>

#include <stdio.h>

#include "harness/harness.h"

/* ------------------------------------------------------------------- half = x / 2, for even numbers below one hundred */

typedef struct half {
    bool wide; /* its meta answers int64, its implementation int32 */
    rondo_operator table;
    rondo_operator_implementation implementation;
} half;

static rondo_status half_infer(const rondo_operator_api *api, const rondo_kernel_request *request,
                               rondo_operator_result *results, rondo_dtype dtype) {
    const rondo_operand *x = &request->inputs[0];
    if (x->rank != 1 || x->dims[0] > 8)
        return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "a row of up to 8 is wanted, not rank %d",
                                   (int)x->rank);
    results[0].dtype = dtype;
    results[0].rank = 1;
    results[0].dims[0] = x->dims[0];
    return RONDO_OK;
}

static rondo_status half_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                              rondo_operator_result *results) {
    const half *h = user;
    return half_infer(api, request, results, h->wide ? RONDO_DTYPE_I64 : RONDO_DTYPE_I32);
}

static rondo_status half_own(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                             rondo_operator_result *results) {
    (void)user;
    return half_infer(api, request, results, RONDO_DTYPE_I32);
}

static rondo_status half_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const rondo_operand *x = &api->request(context)->inputs[0];
    const int32_t *in = api->input(context, 0, RONDO_DTYPE_I32);
    void *out = NULL;
    (void)user;
    rondo_status status = api->output(context, 0, 1, x->dims, RONDO_FORMAT_ND, RONDO_DTYPE_I32, &out);
    for (int64_t i = 0; !status && i < x->dims[0]; i++) {
        if (in[i] % 2) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, KERNEL, "%d has no half", (int)in[i]);
        if (in[i] >= 100)
            return RONDO_OPERATOR_FAIL(api, OUT_OF_RANGE, INPUT, "x must be below 100, not %d", (int)in[i]);
        ((int32_t *)out)[i] = in[i] / 2;
    }
    return status;
}

static const rondo_operator_operand half_in[] = {{"x", RONDO_OPERATOR_DTYPE(I32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_operand half_out[] = {
    {"y", RONDO_OPERATOR_DTYPE(I32) | RONDO_OPERATOR_DTYPE(I64), RONDO_OPERATOR_REQUIRED, 0, {0}}};

static void half_make(half *h) {
    *h = (half){.table = RONDO_OPERATOR_INIT, .implementation = RONDO_OPERATOR_IMPLEMENTATION_INIT};
    h->implementation.infer_shape = half_own;
    h->implementation.infer_dtype = half_own;
    h->implementation.execute = half_execute;
    h->table.name = "Half";
    h->table.domain = "my";
    h->table.inputs = half_in;
    h->table.input_count = 1;
    h->table.outputs = half_out;
    h->table.output_count = 1;
    h->table.meta = half_meta;
    h->table.implementation = &h->implementation;
    h->table.user = h;
}

/* -------------------------------------------------------------------------------------------------------- the ways */

typedef enum way {
    RIGHT,
    NOT_LOADED,
    NO_SUCH_FILE,
    DUPLICATE,
    MALFORMED,
    META_REJECTS,
    META_DISAGREES,
    CONVERTER_NAMES,
    NO_PROTOTYPE,
    NO_IMPLEMENTATION,
    KERNEL_FAILS,
    OUT_OF_CONSTRAINTS,
    WRONG_INPUT
} way;

typedef struct world {
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
} world;

static void world_close(world *w) {
    rondo_session_release(w->session);
    rondo_ir_graph_release(w->graph);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
    *w = (world){0};
}

static rondo_status world_register(world *w, half *h, way wrong) {
    half_make(h);
    if (wrong == META_DISAGREES) h->wide = true;
    if (wrong == MALFORMED) h->table.output_count = 0;
    if (wrong == NO_IMPLEMENTATION) h->table.implementation = NULL;
    if (wrong == NOT_LOADED) return RONDO_OK;
    if (wrong == NO_SUCH_FILE) return rondo_operator_load(w->instance, "/nowhere/half.so");
    rondo_status status = rondo_operator_register(w->instance, &h->table);
    return !status && wrong == DUPLICATE ? rondo_operator_register(w->instance, &h->table) : status;
}

static rondo_status world_convert(world *w) {
    static const char *const inputs[] = {"input"}, *const outputs[] = {"y"};
    const rondo_operator_converter converter = {"my::half", inputs, outputs, NULL, 1, 1, 0, 0};
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    options.converters = &converter;
    options.converter_count = 1;
    return rondo_operator_check(w->instance, "my::Half", &options, NULL);
}

static rondo_status world_run(rondo_test *t, world *w, way wrong) {
    const int64_t dims[] = {-1, -1};
    const int32_t rank = wrong == META_REJECTS ? 2 : 1;
    int32_t data[4] = {2, 4, wrong == KERNEL_FAILS ? 7 : -6, wrong == OUT_OF_CONSTRAINTS ? 100 : 98}, out[4] = {0};
    rondo_ir_value x, y;
    T_OK(t, rondo_ir_graph_add_input(w->graph, "x", RONDO_DTYPE_I32, rank, dims, NULL, &x));
    const char *name = wrong == NO_PROTOTYPE ? "my::Halve" : "my::Half";
    rondo_status status = rondo_ir_graph_add_node(w->graph, name, "halver", &x, 1, NULL, 0, &y, 1);
    if (status) return status;
    T_OK(t, rondo_ir_graph_add_output(w->graph, y, "y"));
    T_OK(t, rondo_session_add_graph(w->session, 1, w->graph));
    rondo_tensor_view in = {.data = data, .device_type = 1, .rank = rank, .dtype = RONDO_DTYPE_I32};
    in.shape = rank == 2 ? (const int64_t[]){2, 2} : (const int64_t[]){4};
    rondo_tensor_view result = in;
    result.data = out;
    if (wrong == WRONG_INPUT) in.dtype = RONDO_DTYPE_F32;
    status = rondo_session_run(w->session, 1, &in, 1, &result, 1);
    for (int i = 0; !status && i < 4; i++) T_EQ(t, 2 * out[i], data[i]);
    return status;
}

static const struct {
    way wrong;
    rondo_code code;
    rondo_layer layer;
    const char *part;
} ways[] = {
    {RIGHT, RONDO_CODE_OK, RONDO_LAYER_NONE, "ok"},
    {NOT_LOADED, RONDO_CODE_NOT_FOUND, RONDO_LAYER_PROTOTYPE, "node 'halver': there is no operator 'my::Half'"},
    {NO_SUCH_FILE, RONDO_CODE_NOT_FOUND, RONDO_LAYER_LOADING, "/nowhere/half.so"},
    {DUPLICATE, RONDO_CODE_ALREADY_EXISTS, RONDO_LAYER_SCHEMA, "'my::Half' is registered already"},
    {MALFORMED, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA, "operator 'my::Half': it has no output"},
    {META_REJECTS, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_META,
     "node 'halver' (my::Half): its meta refuses these inputs: a row of up to 8 is wanted, not rank 2"},
    {META_DISAGREES, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION,
     "node 'halver' (my::Half): its meta makes output 0 int64[4], its implementation int32[4]"},
    {CONVERTER_NAMES, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_CONVERTER,
     "operator 'my::Half', converter of 'my::half': it calls input 0 'input', the prototype 'x'"},
    {NO_PROTOTYPE, RONDO_CODE_NOT_FOUND, RONDO_LAYER_PROTOTYPE, "node 'halver': there is no operator 'my::Halve'"},
    {NO_IMPLEMENTATION, RONDO_CODE_NOT_FOUND, RONDO_LAYER_IMPLEMENTATION,
     "node 'halver': operator 'my::Half' is registered without an implementation"},
    {KERNEL_FAILS, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL, "node 'halver' (my::Half): 7 has no half"},
    {OUT_OF_CONSTRAINTS, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_INPUT,
     "node 'halver' (my::Half): x must be below 100, not 100"},
    {WRONG_INPUT, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_INPUT, "input 'x' is int32, not float32"},
};

static rondo_status world_do(rondo_test *t, world *w, half *h, const char *device, way wrong) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    options.allocator = rondo_test_allocator(t);
    T_OK(t, rondo_instance_create(&options, &w->instance));
    T_OK(t, rondo_device_open(w->instance, device, NULL, &w->device));
    T_OK(t, rondo_session_create(w->device, NULL, &w->session));
    T_OK(t, rondo_ir_graph_create(w->instance, "graph", &w->graph));
    rondo_status status = world_register(w, h, wrong);
    /* A prototype without an implementation is right; who has no meta has nothing that infers. */
    if (status) return status;
    return wrong == CONVERTER_NAMES ? world_convert(w) : world_run(t, w, wrong);
}

static void each_layer_answers_for_itself(rondo_test *t) {
    static const char *const devices[] = {"cpu", "sim"};
    world w = {0};
    half h;
    T_DEFER(t, world_close, &w);
    for (size_t i = 0; i < 2u * (sizeof ways / sizeof *ways); i++) {
        const size_t at = i / 2u;
        rondo_status status = world_do(t, &w, &h, devices[i % 2u], ways[at].wrong);
        rondo_code code = rondo_status_code(status);
        if (code == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status);
        char text[1024];
        (void)rondo_status_format(status, text, sizeof text);
        rondo_layer layer = rondo_status_layer(status);
        rondo_status_release(status);
        world_close(&w);
        /* Without memory the words are lost, and with them whose failure it was that a kernel's number stands for. */
        bool lost = rondo_test_failing(t);
        bool told = strstr(text, ways[at].part) != NULL || lost;
        bool layered = layer == ways[at].layer || (lost && code == RONDO_CODE_KERNEL_FAILED);
        if (code != ways[at].code || !layered || !told)
            rondo_test_fail(t, __FILE__, __LINE__, "way %d on %s: %s", (int)ways[at].wrong, devices[i % 2u], text);
    }
}

RONDO_TEST_MAIN(T(each_layer_answers_for_itself))
