/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator of one's own, z = x + alpha * y, once right and then wrong in each of its layers. What is right runs in a
 * graph; what is wrong is told by the layer that it is wrong in.
 * Usage: contracts [DEVICE] */
#include <rondo/operator.h>
#include <string.h>

#include "../must.h"

enum { ROWS = 8, COLUMNS = 2048, COUNT = ROWS * COLUMNS };

/* ------------------------------------------------------------------------------------------------------ the operator */

/* What the operator is to do wrong; everything below does it right where that is not asked for. */
typedef enum fault_kind {
    NOTHING,
    NO_LIBRARY,      /* its library is not where it is looked for */
    TWO_DEFINITIONS, /* it is registered twice */
    OTHER_NAME,      /* a node names an operator that nobody registered */
    OTHER_SHAPES,    /* x and y do not fit, which the meta has to see */
    OTHER_OPERANDS,  /* a converter calls the inputs a and b */
    FIXED_SHAPE,     /* execute's inference takes [8,2048] alone, the meta any shape */
    FAILS,           /* execute gives up */
    OTHER_TYPE       /* the run brings integers */
} fault_kind;

typedef struct scaled_add {
    fault_kind fault;
    rondo_operator table;
    rondo_operator_implementation implementation;
} scaled_add;

/* Which inputs are accepted, and what comes of them. */
static rondo_status infer(const rondo_operator_api *api, rondo_layer layer, const rondo_kernel_request *request,
                          rondo_operator_result *results) {
    const rondo_operand *x = &request->inputs[0], *y = &request->inputs[1];
    bool same = x->rank == y->rank;
    for (int32_t i = 0; same && i < x->rank; i++) same = x->dims[i] == y->dims[i];
    if (!same)
        return api->status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__, "x and y differ in shape");
    results[0].dtype = x->dtype;
    results[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) results[0].dims[i] = x->dims[i];
    return RONDO_OK;
}

static rondo_status meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                         rondo_operator_result *results) {
    (void)user;
    return infer(api, RONDO_LAYER_META, request, results);
}

static rondo_status own_inference(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                  rondo_operator_result *results) {
    const scaled_add *self = user;
    const rondo_operand *x = &request->inputs[0];
    if (self->fault == FIXED_SHAPE && !(x->rank == 2 && x->dims[0] == ROWS && x->dims[1] == COLUMNS))
        return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, IMPLEMENTATION, "only [8,2048]");
    return infer(api, RONDO_LAYER_IMPLEMENTATION, request, results);
}

static rondo_status execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const scaled_add *self = user;
    const rondo_kernel_request *request = api->request(context);
    const rondo_operand *shape = &request->inputs[0];
    const float *x = api->input(context, 0, RONDO_DTYPE_F32), *y = api->input(context, 1, RONDO_DTYPE_F32);
    const float alpha = api->attribute(request, "alpha")->value.f;
    int64_t count = 1;
    void *memory = NULL;
    if (self->fault == FAILS) return RONDO_OPERATOR_FAIL(api, UNAVAILABLE, KERNEL, "the accelerator is on fire");
    rondo_status status = api->output(context, 0, shape->rank, shape->dims, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &memory);
    if (status) return status;
    for (int32_t i = 0; i < shape->rank; i++) count *= shape->dims[i];
    for (int64_t i = 0; i < count; i++) ((float *)memory)[i] = x[i] + alpha * y[i];
    return RONDO_OK;
}

static const rondo_operator_operand inputs[] = {{"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}},
                                                {"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}}};
static const rondo_operator_operand outputs[] = {{"z", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_attribute attributes[] = {
    {{"alpha", RONDO_ATTRIBUTE_FLOAT, 1, {.f = 1}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0}};

static void make_operator(scaled_add *self, fault_kind fault) {
    *self = (scaled_add){fault, RONDO_OPERATOR_INIT, RONDO_OPERATOR_IMPLEMENTATION_INIT};
    self->implementation.infer_shape = own_inference;
    self->implementation.infer_dtype = own_inference;
    self->implementation.execute = execute;
    self->table.domain = "my";
    self->table.name = "ScaledAdd";
    self->table.summary = "x + alpha * y";
    self->table.inputs = inputs;
    self->table.input_count = 2;
    self->table.outputs = outputs;
    self->table.output_count = 1;
    self->table.attributes = attributes;
    self->table.attribute_count = 1;
    self->table.meta = meta;
    self->table.implementation = &self->implementation;
    self->table.user = self;
}

/* ------------------------------------------------------------------------------------- the way into a graph, and a run */

static rondo_status enter(rondo_instance *instance, scaled_add *self) {
    static const char *const ab[] = {"a", "b"}, *const z[] = {"z"};
    const rondo_operator_converter converter = {"torch.ops.my.scaled_add", ab, z, NULL, 2, 1, 0, 0};
    rondo_operator_check_options options = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    if (self->fault == NO_LIBRARY) return rondo_operator_load(instance, "/nowhere/scaled_add.so");
    rondo_status status = rondo_operator_register(instance, &self->table);
    if (!status && self->fault == TWO_DEFINITIONS) status = rondo_operator_register(instance, &self->table);
    options.converters = &converter;
    options.converter_count = 1;
    if (!status && self->fault == OTHER_OPERANDS)
        status = rondo_operator_check(instance, "my::ScaledAdd", &options, NULL);
    return status;
}

static rondo_status run(rondo_session *session, rondo_ir_graph *graph, const scaled_add *self, int64_t rows, float *z) {
    static float x[COUNT], y[COUNT];
    const int64_t open[] = {-1, -1}, shape[] = {rows, COLUMNS}, other[] = {rows - 1, COLUMNS};
    const rondo_attribute alpha = {"alpha", RONDO_ATTRIBUTE_FLOAT, 1, {.f = 2}};
    rondo_ir_value in[2], out;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)i * 0.1f;
        y[i] = (float)i * 0.2f;
    }
    must(rondo_ir_graph_add_input(graph, "x", RONDO_DTYPE_F32, 2, open, NULL, &in[0]));
    must(rondo_ir_graph_add_input(graph, "y", RONDO_DTYPE_F32, 2, open, NULL, &in[1]));
    rondo_status status = rondo_ir_graph_add_node(graph, self->fault == OTHER_NAME ? "my::AddScaled" : "my::ScaledAdd",
                                                  "add0", in, 2, &alpha, 1, &out, 1);
    if (status) return status;
    must(rondo_ir_graph_add_output(graph, out, "z"));
    must(rondo_session_add_graph(session, 0, graph));
    const rondo_tensor_view view = {.data = x, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = shape};
    rondo_tensor_view given[2] = {view, view}, result = view;
    given[1].data = y;
    result.data = z;
    if (self->fault == OTHER_SHAPES) given[1].shape = other;
    if (self->fault == OTHER_TYPE) given[1].dtype = RONDO_DTYPE_I32;
    status = rondo_session_run(session, 0, given, 2, &result, 1);
    for (int64_t i = 0; !status && i < rows * COLUMNS; i++) must_be(z[i] == x[i] + 2 * y[i], "a value of x + 2 y");
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- the tour */

static void quiet(void *user, rondo_log_level level, const char *text) {
    (void)user;
    (void)level;
    (void)text;
}

/* A world of its own: what is registered stays registered. */
static rondo_status live(const char *device_name, fault_kind fault, int64_t rows, rondo_operator_check_report *report,
                         rondo_status *found) {
    static float z[COUNT];
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
    scaled_add self;
    options.log = quiet;
    make_operator(&self, fault);
    must(rondo_instance_create(&options, &instance));
    must(rondo_device_open(instance, device_name, NULL, &device));
    must(rondo_session_create(device, NULL, &session));
    must(rondo_ir_graph_create(instance, "scaled", &graph));
    rondo_status status = enter(instance, &self);
    if (!status) status = run(session, graph, &self, rows, z);
    if (found) *found = rondo_operator_check(instance, "my::ScaledAdd", NULL, report);
    rondo_session_release(session);
    rondo_ir_graph_release(graph);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return status;
}

static void tell(const char *what, rondo_status status, rondo_layer layer) {
    must_be(status != RONDO_OK, what);
    printf("%-27s -> %s\n", what, rondo_layer_name(rondo_status_layer(status)));
    printf("    %s: %s\n", rondo_code_name(rondo_status_code(status)), rondo_status_message(status));
    must_be(rondo_status_layer(status) == layer, "the layer that was to tell it");
}

int main(int argc, char **argv) {
    static const struct {
        fault_kind fault;
        const char *what;
        rondo_layer layer;
        int64_t rows;
    } wrong[] = {{NO_LIBRARY, "its library is not there", RONDO_LAYER_LOADING, ROWS},
                 {TWO_DEFINITIONS, "it is defined twice", RONDO_LAYER_SCHEMA, ROWS},
                 {OTHER_OPERANDS, "a converter's own names", RONDO_LAYER_CONVERTER, ROWS},
                 {OTHER_NAME, "a node's own name", RONDO_LAYER_PROTOTYPE, ROWS},
                 {OTHER_SHAPES, "x and y do not fit", RONDO_LAYER_META, ROWS},
                 {FIXED_SHAPE, "a kernel for [8,2048] alone", RONDO_LAYER_IMPLEMENTATION, 4},
                 {FAILS, "its kernel gives up", RONDO_LAYER_KERNEL, ROWS},
                 {OTHER_TYPE, "the run brings integers", RONDO_LAYER_INPUT, ROWS}};
    const char *device = argc > 1 ? argv[1] : "cpu";
    rondo_operator_check_report report = RONDO_OPERATOR_CHECK_REPORT_INIT;
    rondo_status found;
    must(live(device, NOTHING, ROWS, &report, &found));
    must(found);
    printf("right: z = x + 2 y on %s, %d of %d values; of %u drawn nodes all contracts accept %u and refuse %u\n",
           device, COUNT, COUNT, report.drawn, report.accepted, report.refused);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rondo_status status = live(device, wrong[i].fault, wrong[i].rows, NULL, NULL);
        tell(wrong[i].what, status, wrong[i].layer);
        rondo_status_release(status);
    }
    /* At [8,2048] the fixed kernel is never caught by running it; the check finds it, with the smallest inputs. */
    must(live(device, FIXED_SHAPE, ROWS, &report, &found));
    tell("the same, run at [8,2048]", found, RONDO_LAYER_IMPLEMENTATION);
    for (size_t i = 0; i < rondo_status_note_count(found); i++) printf("    %s\n", rondo_status_note(found, i));
    rondo_status_release(found);
    return 0;
}
