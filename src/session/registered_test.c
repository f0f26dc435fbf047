/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that a program registers: they run as built-in ones do, and each way to be wrong is refused by the contract
 * that was broken. */
#include <rondo/compiler.h>
#include <rondo/operator.h>

#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"
#include "ops/ops.h"
#include "session/session.h"

/* -------------------------------------------------------------------------------------- an operator: x + scale * y */

typedef enum add_mood {
    ADD_RIGHT,
    ADD_OTHER_SHAPE,  /* its implementation infers one more row */
    ADD_FIXED,        /* its implementation takes [2,3] alone, its meta any shape */
    ADD_FAILS,        /* execute refuses */
    ADD_ALLOCATES,    /* execute allocates another shape */
    ADD_FORGETS,      /* execute makes no output */
    ADD_WORKSPACE,    /* execute asks for more workspace than was said */
    ADD_META_TYPE,    /* its meta gives a type that the schema does not */
    ADD_META_NOTHING, /* its meta answers nothing */
    ADD_REFERS,       /* execute makes x the output */
    ADD_DATA          /* its meta says that the size depends on data */
} add_mood;

typedef struct add_operator {
    add_mood mood;
    rondo_operator table;
    rondo_operator_implementation implementation;
} add_operator;

static rondo_status add_infer_shape(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                    rondo_operator_result *results) {
    const add_operator *add = user;
    const rondo_operand *x = &request->inputs[0];
    bool fixed = x->rank == 2 && x->dims[0] == 2 && x->dims[1] == 3;
    if (add->mood == ADD_FIXED && !fixed) return RONDO_OPERATOR_FAIL(api, UNSUPPORTED, IMPLEMENTATION, "only [2,3]");
    results[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) results[0].dims[i] = x->dims[i];
    if (add->mood == ADD_OTHER_SHAPE) results[0].dims[0]++;
    return RONDO_OK;
}

static rondo_status add_infer_dtype(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                    rondo_operator_result *results) {
    (void)api;
    (void)user;
    results[0].dtype = request->inputs[0].dtype;
    return RONDO_OK;
}

static rondo_status add_meta(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                             rondo_operator_result *results) {
    const add_operator *add = user;
    const rondo_operand *x = &request->inputs[0], *y = &request->inputs[1];
    bool same = x->rank == y->rank;
    for (int32_t i = 0; same && i < x->rank; i++) same = x->dims[i] == y->dims[i];
    if (!same) return RONDO_OPERATOR_FAIL(api, INVALID_ARGUMENT, META, "x and y differ in shape");
    if (add->mood == ADD_META_NOTHING) return RONDO_OK;
    results[0].rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) results[0].dims[i] = x->dims[i];
    if (add->mood == ADD_DATA) results[0].dims[0] = -1;
    results[0].dtype = add->mood == ADD_META_TYPE ? RONDO_DTYPE_I64 : x->dtype;
    return RONDO_OK;
}

static rondo_status add_workspace(const rondo_operator_api *api, void *user, const rondo_kernel_request *request,
                                  uint64_t *out_bytes) {
    (void)api;
    (void)user;
    *out_bytes = sizeof(float);
    for (int32_t i = 0; i < request->inputs[0].rank; i++) *out_bytes *= (uint64_t)request->inputs[0].dims[i];
    return RONDO_OK;
}

static rondo_status add_refers(const rondo_operator_api *api, rondo_operator_context *context) {
    static const uint32_t wrong[][2] = {{1, 0}, {0, 2}, {0, 99}, {99, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rondo_status status = api->output_refers(context, wrong[i][0], wrong[i][1]);
        if (!status) return RONDO_OPERATOR_FAIL(api, INTERNAL, IMPLEMENTATION, "pair %u is accepted", (unsigned)i);
        rondo_status_release(status);
    }
    return api->output_refers(context, 0, 0);
}

static rondo_status add_execute(const rondo_operator_api *api, void *user, rondo_operator_context *context) {
    const add_operator *add = user;
    const rondo_kernel_request *request = api->request(context);
    const rondo_operand *x = &request->inputs[0];
    const rondo_attribute *scale = api->attribute(request, "scale");
    const float *a = api->input(context, 0, RONDO_DTYPE_F32), *b = api->input(context, 1, RONDO_DTYPE_F32);
    int64_t count = 1, dims[RONDO_RANK_MAX];
    void *z = NULL, *w = NULL;
    for (int32_t i = 0; i < x->rank; i++) count *= dims[i] = x->dims[i];
    if (!a || !b || !scale || api->input(context, 2, RONDO_DTYPE_F32) || api->input(context, 0, RONDO_DTYPE_I32))
        return RONDO_OPERATOR_FAIL(api, INTERNAL, IMPLEMENTATION, "the context lies");
    if (add->mood == ADD_FAILS) return RONDO_OPERATOR_FAIL(api, OUT_OF_RANGE, KERNEL, "no more ink");
    if (add->mood == ADD_FORGETS) return RONDO_OK;
    if (add->mood == ADD_REFERS) return add_refers(api, context);
    if (add->mood == ADD_ALLOCATES) dims[0]--;
    uint64_t bytes = (uint64_t)count * sizeof(float) * (add->mood == ADD_WORKSPACE ? 2u : 1u);
    rondo_status status = api->workspace(context, bytes, &w);
    if (!status) status = api->output(context, 0, x->rank, dims, RONDO_FORMAT_ND, RONDO_DTYPE_F32, &z);
    if (status) return status;
    for (int64_t i = 0; i < count; i++) ((float *)w)[i] = scale->value.f * b[i];
    for (int64_t i = 0; i < count; i++) ((float *)z)[i] = a[i] + ((float *)w)[i];
    return RONDO_OK;
}

static const rondo_operator_operand add_inputs[] = {
    {"x", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}},
    {"y", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 'T', {0}},
    {"unused", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_OPTIONAL, 0, {0}}};
static const rondo_operator_operand add_outputs[] = {{"z", RONDO_OPERATOR_DTYPE(F32), RONDO_OPERATOR_REQUIRED, 0, {0}}};
static const rondo_operator_attribute add_attributes[] = {
    {{"scale", RONDO_ATTRIBUTE_FLOAT, 1, {.f = 1}}, RONDO_OPERATOR_ATTRIBUTE_DEFAULT, 0}};

static const rondo_operator *add_make(add_operator *add, add_mood mood) {
    *add = (add_operator){
        .mood = mood, .table = RONDO_OPERATOR_INIT, .implementation = RONDO_OPERATOR_IMPLEMENTATION_INIT};
    add->implementation.infer_shape = add_infer_shape;
    add->implementation.infer_dtype = add_infer_dtype;
    add->implementation.workspace = add_workspace;
    add->implementation.execute = add_execute;
    add->table.name = "AddCustom";
    add->table.domain = "my.domain";
    add->table.summary = "x + scale * y";
    add->table.inputs = add_inputs;
    add->table.input_count = 3;
    add->table.outputs = add_outputs;
    add->table.output_count = 1;
    add->table.attributes = add_attributes;
    add->table.attribute_count = 1;
    add->table.meta = add_meta;
    add->table.implementation = &add->implementation;
    add->table.user = add;
    return &add->table;
}

/* ------------------------------------------------------------------------------------------------------- the world */

typedef struct world {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
    float weight; /* z = x + weight * y */
    char log[1024];
} world;

static void w_log(void *user, rondo_log_level level, const char *text) {
    world *w = user;
    if (level == RONDO_LOG_ERROR) (void)snprintf(w->log, sizeof w->log, "%s", text);
}

static void w_close(world *w) {
    rondo_session_release(w->session);
    rondo_ir_graph_release(w->graph);
    rondo_device_release(w->device);
    rondo_instance_release(w->instance);
    w->session = NULL;
    w->graph = NULL;
    w->device = NULL;
    w->instance = NULL;
}

static void w_open(world *w, const char *device) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    options.ignore_plugin_path = 1;
    options.log = w_log;
    options.log_user = w;
    options.allocator = rondo_test_allocator(w->t);
    w->weight = 3;
    T_OK(w->t, rondo_instance_create(&options, &w->instance));
    T_OK(w->t, rondo_device_open(w->instance, device, NULL, &w->device));
    T_OK(w->t, rondo_session_create(w->device, NULL, &w->session));
    T_OK(w->t, rondo_ir_graph_create(w->instance, "graph", &w->graph));
}

/* z = AddCustom(AddCustom(x, y), y), the second with scale 2, on rows of three. */
static rondo_status w_build(world *w) {
    const char *names[] = {"rows", NULL};
    const int64_t dims[] = {-1, 3};
    rondo_attribute scale = {"scale", RONDO_ATTRIBUTE_FLOAT, 1, {.f = 2}};
    rondo_ir_value x, y, one, two;
    T_OK(w->t, rondo_ir_graph_add_input(w->graph, "x", RONDO_DTYPE_F32, 2, dims, names, &x));
    T_OK(w->t, rondo_ir_graph_add_input(w->graph, "y", RONDO_DTYPE_F32, 2, dims, NULL, &y));
    rondo_status status = rondo_ir_graph_add_node(w->graph, "my.domain::AddCustom", "first", (rondo_ir_value[]){x, y},
                                                  2, NULL, 0, &one, 1);
    if (status) return status;
    status = rondo_ir_graph_add_node(w->graph, "my.domain::AddCustom", "second", (rondo_ir_value[]){one, y}, 2, &scale,
                                     1, &two, 1);
    if (status) return status;
    T_OK(w->t, rondo_ir_graph_add_output(w->graph, two, "z"));
    return rondo_session_add_graph(w->session, 1, w->graph);
}

static rondo_status w_run(world *w, int64_t rows) {
    float x[12], y[12], z[12] = {0};
    int64_t shape[] = {rows, 3};
    for (int i = 0; i < 12; i++) {
        x[i] = (float)(rondo_test_random(w->t) % 100);
        y[i] = (float)(rondo_test_random(w->t) % 100);
    }
    rondo_tensor_view in = {.device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = shape};
    rondo_tensor_view inputs[2] = {in, in}, outputs[1] = {in};
    inputs[0].data = x;
    inputs[1].data = y;
    outputs[0].data = z;
    rondo_status status = rondo_session_run(w->session, 1, inputs, 2, outputs, 1);
    for (int64_t i = 0; !status && i < rows * 3; i++) T_TRUE(w->t, z[i] == x[i] + w->weight * y[i]);
    return status;
}

/* T_FAILS with the contract. */
static void fails(rondo_test *t, rondo_status status, rondo_code code, rondo_layer layer, const char *part) {
    rondo_layer got = rondo_status_layer(status);
    bool starved = rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY;
    rondo_test_code(t, status, code, part, "a broken contract", __FILE__, __LINE__);
    /* Of a failed kernel it is known by words, which are lost without memory. */
    bool lost = rondo_test_failing(t) && code == RONDO_CODE_KERNEL_FAILED;
    if (!starved && !lost) T_EQ(t, got, layer);
}

static const char *const devices[] = {"cpu", "sim"};

/* ----------------------------------------------------------------------------------------------------------- tests */

static void runs_as_any_other(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    for (int d = 0; d < 2; d++) {
        w_open(&w, devices[d]);
        T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT)));
        T_OK(t, w_build(&w));
        T_OK(t, rondo_ir_graph_verify(w.graph));
        for (int i = 0; i < 3; i++) T_OK(t, w_run(&w, 4));
        T_OK(t, w_run(&w, 2));
        rondo_session_info info = RONDO_SESSION_INFO_INIT;
        T_OK(t, rondo_session_get_info(w.session, 1, &info));
        T_EQ(t, info.captures, 2);
        T_EQ(t, info.replays, 4);
        T_STR(t, w.log, "");
        w_close(&w);
    }
}

static void an_output_may_be_an_input(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    for (int d = 0; d < 4; d++) {
        w_open(&w, devices[d / 2]);
        w.weight = 0;
        (void)add_make(&add, ADD_REFERS);
        add.implementation.in_place_inputs = d % 2 ? 1u : 0u;
        T_OK(t, rondo_operator_register(w.instance, &add.table));
        T_OK(t, w_build(&w));
        for (int i = 0; i < 2; i++) T_OK(t, w_run(&w, 4));
        T_STR(t, w.log, "");
        w_close(&w);
    }
}

/* Without a meta, the implementation's inference is it. */
static void an_implementation_can_infer_alone(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    (void)add_make(&add, ADD_FIXED);
    add.table.meta = NULL;
    T_OK(t, rondo_operator_register(w.instance, &add.table));
    T_OK(t, w_build(&w));
    T_OK(t, w_run(&w, 2));
    fails(t, w_run(&w, 3), RONDO_CODE_UNSUPPORTED, RONDO_LAYER_IMPLEMENTATION,
          "node 'first' (my.domain::AddCustom): its implementation refuses these inputs: only [2,3]");
}

typedef struct broken_case {
    add_mood mood;
    rondo_code code;
    rondo_layer layer;
    const char *part, *log;
} broken_case;

static const broken_case broken[] = {
    {ADD_OTHER_SHAPE, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION,
     "node 'first' (my.domain::AddCustom): its meta makes output 0 float32[3,3], its implementation float32[4,3]", ""},
    {ADD_FIXED, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION,
     "its implementation refuses these inputs: only [2,3]", ""},
    {ADD_META_TYPE, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_META, "gives output 'z' the type int64", ""},
    {ADD_META_NOTHING, RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_META, "gives output 'z' the type undefined", ""},
    {ADD_DATA, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_META, "the size of axis 0 of output 'z' depends on data", ""},
    {ADD_FAILS, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_KERNEL, "node 'first' (my.domain::AddCustom): no more ink",
     "node 'first' (my.domain::AddCustom) failed: out of range (kernel): no more ink"},
    {ADD_ALLOCATES, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION,
     "it allocates axis 0 of output 0 with 2, what was inferred is 3",
     "(implementation): node 'first' (my.domain::AddCustom): it allocates axis 0 of output 0 with 2, what was inferred is "
     "3"},
    {ADD_FORGETS, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "it has returned without an output 0",
     "it has returned without an output 0"},
    {ADD_WORKSPACE, RONDO_CODE_KERNEL_FAILED, RONDO_LAYER_IMPLEMENTATION, "asks for a workspace of 72 bytes",
     "it asks for a workspace of 72 bytes, its table said 36"},
};

static void each_way_to_be_wrong_names_its_contract(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        w.log[0] = 0;
        w_open(&w, "cpu");
        T_OK(t, rondo_operator_register(w.instance, add_make(&add, broken[i].mood)));
        T_OK(t, w_build(&w));
        fails(t, w_run(&w, 3), broken[i].code, broken[i].layer, broken[i].part);
        T_TRUE(t, strstr(w.log, broken[i].log) != NULL || rondo_test_failing(t));
        w_close(&w);
    }
}

/* Fixed in the graph, or bound by the run: another shape than the implementation's is refused by the same contract. */
static void dynamic_or_not_the_contract_is_the_same(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        const int64_t dims[] = {dynamic ? -1 : 4, dynamic ? -1 : 5};
        float data[20] = {0};
        rondo_tensor_view in = {.device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = (int64_t[]){4, 5}};
        rondo_tensor_view inputs[2] = {in, in}, outputs[1] = {{0}};
        rondo_ir_value x, y, z;
        inputs[0].data = inputs[1].data = data;
        w_open(&w, "cpu");
        T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_FIXED)));
        T_OK(t, rondo_ir_graph_add_input(w.graph, "x", RONDO_DTYPE_F32, 2, dims, NULL, &x));
        T_OK(t, rondo_ir_graph_add_input(w.graph, "y", RONDO_DTYPE_F32, 2, dims, NULL, &y));
        T_OK(t, rondo_ir_graph_add_node(w.graph, "my.domain::AddCustom", "only", (rondo_ir_value[]){x, y}, 2, NULL, 0,
                                        &z, 1));
        T_OK(t, rondo_ir_graph_add_output(w.graph, z, "z"));
        T_OK(t, rondo_session_add_graph(w.session, 1, w.graph));
        fails(t, rondo_session_run(w.session, 1, inputs, 2, outputs, 1), RONDO_CODE_INVALID_ARGUMENT,
              RONDO_LAYER_IMPLEMENTATION,
              "node 'only' (my.domain::AddCustom): its implementation refuses these inputs: only [2,3]");
        w_close(&w);
    }
}

static void what_is_missing_is_named(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    fails(t, w_build(&w), RONDO_CODE_NOT_FOUND, RONDO_LAYER_PROTOTYPE,
          "node 'first': there is no operator 'my.domain::AddCustom'");
    w_close(&w);
    w_open(&w, "cpu");
    (void)add_make(&add, ADD_RIGHT);
    add.table.implementation = NULL;
    T_OK(t, rondo_operator_register(w.instance, &add.table));
    T_OK(t, w_build(&w));
    fails(t, w_run(&w, 3), RONDO_CODE_NOT_FOUND, RONDO_LAYER_IMPLEMENTATION,
          "operator 'my.domain::AddCustom' is registered without an implementation");
}

static void inputs_are_those_of_the_prototype(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    rondo_ir_value x, i, out;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT)));
    T_OK(t, rondo_ir_graph_add_input(w.graph, "x", RONDO_DTYPE_F32, 0, NULL, NULL, &x));
    T_OK(t, rondo_ir_graph_add_input(w.graph, "i", RONDO_DTYPE_I32, 0, NULL, NULL, &i));
    rondo_attribute other = {"shape", RONDO_ATTRIBUTE_INT, 1, {.i = 2}};
    const char *name = "my.domain::AddCustom";
    fails(t, rondo_ir_graph_add_node(w.graph, name, "n", &x, 1, NULL, 0, &out, 1), RONDO_CODE_INVALID_ARGUMENT,
          RONDO_LAYER_PROTOTYPE, "input 1 'y' is missing");
    fails(t, rondo_ir_graph_add_node(w.graph, name, "n", (rondo_ir_value[]){x, i}, 2, NULL, 0, &out, 1),
          RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_PROTOTYPE, "input 1 'y' cannot be int32");
    fails(t, rondo_ir_graph_add_node(w.graph, name, "n", (rondo_ir_value[]){x, x}, 2, &other, 1, &out, 1),
          RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_PROTOTYPE, "there is no attribute 'shape'");
}

/* ------------------------------------------------------------------------------------------------------- the table */

static void one_definition(rondo_test *t) {
    world w = {.t = t};
    add_operator add, other;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT)));
    fails(t, rondo_operator_register(w.instance, add_make(&other, ADD_RIGHT)), RONDO_CODE_ALREADY_EXISTS,
          RONDO_LAYER_SCHEMA, "'my.domain::AddCustom' is registered already");
    other.table.name = "Other";
    other.table.onnx_name = "AddCustom";
    fails(t, rondo_operator_register(w.instance, &other.table), RONDO_CODE_ALREADY_EXISTS, RONDO_LAYER_SCHEMA,
          "nodes 'AddCustom' of domain 'my.domain' mean operator 'my.domain::AddCustom' already");
    other.table.onnx_domain = "";
    other.table.onnx_name = "Add";
    fails(t, rondo_operator_register(w.instance, &other.table), RONDO_CODE_ALREADY_EXISTS, RONDO_LAYER_SCHEMA,
          "ONNX's own 'Add' is built in");
    other.table.name = "Conv";
    other.table.domain = NULL;
    fails(t, rondo_operator_register(w.instance, &other.table), RONDO_CODE_ALREADY_EXISTS, RONDO_LAYER_SCHEMA,
          "operator 'Conv' is built in");
    other.table.name = "AddCustom";
    other.table.onnx_name = NULL;
    T_OK(t, rondo_operator_register(w.instance, &other.table));
}

static void bad_names(rondo_test *t, world *w) {
    static const char *const bad[] = {"", "9Lives", "a b", "a:b", "a\n", NULL};
    add_operator add;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)add_make(&add, ADD_RIGHT);
        add.table.name = bad[i];
        fails(t, rondo_operator_register(w->instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
              "its name must be of letters");
    }
    static const char *const domains[] = {"", "a::b", "ai.onnx", "rondo", "1x"};
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        (void)add_make(&add, ADD_RIGHT);
        add.table.domain = domains[i];
        fails(t, rondo_operator_register(w->instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
              "domain");
    }
}

static void bad_operands(rondo_test *t, world *w) {
    static const struct {
        rondo_operator_operand operands[2];
        const char *part;
    } bad[] = {
        {{{"x", 2, 0, 0, {0}}, {"x", 2, 0, 0, {0}}}, "two inputs are called 'x'"},
        {{{"x", 2, 0, 0, {0}}, {"", 2, 0, 0, {0}}}, "input 1 has no name"},
        {{{"x", 2, 0, 0, {0}}, {"y", 0, 0, 0, {0}}}, "input 'y' needs types"},
        {{{"x", 2, 0, 0, {0}}, {"y", 1, 0, 0, {0}}}, "input 'y' needs types"},
        {{{"x", 2, 0, 0, {0}}, {"y", RONDO_OPERATOR_DTYPE(STRING), 0, 0, {0}}}, "input 'y' needs types"},
        {{{"x", 2, 3, 0, {0}}, {"y", 2, 0, 0, {0}}}, "input 'x' is neither required"},
        {{{"x", 2, RONDO_OPERATOR_DYNAMIC, 0, {0}}, {"y", 2, 0, 0, {0}}}, "input 'x' is dynamic and not the last"},
        {{{"x", 2, 0, 't', {0}}, {"y", 2, 0, 0, {0}}}, "input 'x' has a same_type"},
    };
    add_operator add;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)add_make(&add, ADD_RIGHT);
        add.table.inputs = bad[i].operands;
        add.table.input_count = 2;
        fails(t, rondo_operator_register(w->instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
              bad[i].part);
    }
    (void)add_make(&add, ADD_RIGHT);
    add.table.output_count = 0;
    fails(t, rondo_operator_register(w->instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
          "it has no output");
    add.table.output_count = 33;
    fails(t, rondo_operator_register(w->instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
          "33 outputs, there may be 32");
}

static void bad_attributes(rondo_test *t, world *w) {
    static const struct {
        rondo_operator_attribute attributes[2];
        rondo_code code;
        const char *part;
    } bad[] = {
        {{{{"a", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}, {{"a", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}},
         RONDO_CODE_INVALID_ARGUMENT,
         "two attributes are called 'a'"},
        {{{{"a", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}, {{"b", 9, 1, {0}}, 0, 0}},
         RONDO_CODE_INVALID_ARGUMENT,
         "attribute 'b' is of no kind"},
        {{{{"a", RONDO_ATTRIBUTE_INT, 1, {0}}, 3, 0}, {{"b", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}},
         RONDO_CODE_INVALID_ARGUMENT,
         "attribute 'a' is neither"},
        {{{{"a", RONDO_ATTRIBUTE_INTS, 2, {0}}, 1, 0}, {{"b", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}},
         RONDO_CODE_INVALID_ARGUMENT,
         "attribute 'a' has a default without a value"},
        {{{{"a", RONDO_ATTRIBUTE_GRAPH, 1, {0}}, 0, 0}, {{"b", RONDO_ATTRIBUTE_INT, 1, {0}}, 0, 0}},
         RONDO_CODE_UNSUPPORTED,
         "attribute 'a' is a graph"},
    };
    add_operator add;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)add_make(&add, ADD_RIGHT);
        add.table.attributes = bad[i].attributes;
        add.table.attribute_count = 2;
        fails(t, rondo_operator_register(w->instance, &add.table), bad[i].code, RONDO_LAYER_SCHEMA, bad[i].part);
    }
}

static void malformed_tables(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    bad_names(t, &w);
    bad_operands(t, &w);
    bad_attributes(t, &w);
    (void)add_make(&add, ADD_RIGHT);
    add.table.struct_size = 0;
    fails(t, rondo_operator_register(w.instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_SCHEMA,
          "rondo_operator");
    (void)add_make(&add, ADD_RIGHT);
    add.implementation.execute = NULL;
    fails(t, rondo_operator_register(w.instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION,
          "has no execute");
    (void)add_make(&add, ADD_RIGHT);
    add.implementation.infer_dtype = NULL;
    fails(t, rondo_operator_register(w.instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_IMPLEMENTATION,
          "infer_shape and infer_dtype go together");
    (void)add_make(&add, ADD_RIGHT);
    add.table.meta = NULL;
    add.table.implementation = NULL;
    fails(t, rondo_operator_register(w.instance, &add.table), RONDO_CODE_INVALID_ARGUMENT, RONDO_LAYER_META,
          "nothing infers its outputs");
    T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT))); /* nothing was left behind */
}

static void see_catalogue(void *user, const char *catalogue) {
    char *seen = user;
    (void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%s ", catalogue);
}

static void operators_can_be_looked_at(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT, last = RONDO_OPERATOR_INFO_INIT;
    rondo_operator_operand operand;
    rondo_operator_attribute_info attribute;
    char seen[64] = "";
    uint32_t count = 0;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    T_FAILS(t, rondo_operator_find(w.instance, "my.domain::AddCustom", &info), NOT_FOUND, "no operator 'my.domain");
    T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT)));
    T_OK(t, rondo_operator_find(w.instance, "my.domain::AddCustom", &info));
    T_EQ(t, info.flags, RONDO_OPERATOR_INFO_REGISTERED);
    T_TRUE(t, info.input_count == 3 && info.output_count == 1 && info.attribute_count == 1);
    T_STR(t, info.summary, "x + scale * y");
    T_OK(t, rondo_operator_info_input(&info, 2, &operand));
    T_STR(t, operand.name, "unused");
    T_TRUE(t, operand.presence == RONDO_OPERATOR_OPTIONAL && operand.dtypes == RONDO_OPERATOR_DTYPE(F32));
    T_FAILS(t, rondo_operator_info_input(&info, 3, &operand), OUT_OF_RANGE, "has 3 inputs");
    T_OK(t, rondo_operator_info_output(&info, 0, &operand));
    T_STR(t, operand.name, "z");
    T_FAILS(t, rondo_operator_info_output(&info, 1, &operand), OUT_OF_RANGE, "has 1 outputs");
    T_OK(t, rondo_operator_info_attribute(&info, 0, &attribute));
    T_TRUE(t, strcmp(attribute.name, "scale") == 0 && strcmp(attribute.default_text, "1") == 0);
    T_FAILS(t, rondo_operator_info_attribute(&info, 1, &attribute), OUT_OF_RANGE, "has 1 attributes");
    while (rondo__ops_at(count)) count++;
    T_OK(t, rondo_operator_at(w.instance, 0, &info));
    T_TRUE(t, strcmp(info.name, rondo__ops_at(0)->name) == 0 && info.flags == 0);
    T_OK(t, rondo_operator_at(w.instance, count, &last));
    T_STR(t, last.name, "my.domain::AddCustom");
    T_FAILS(t, rondo_operator_at(w.instance, count + 1u, &last), NOT_FOUND, "no operator number");
    T_OK(t, rondo_operator_catalogues(w.instance, "my.domain::AddCustom", see_catalogue, seen));
    T_STR(t, seen, "registered ");
    seen[0] = 0;
    T_OK(t, rondo_operator_catalogues(w.instance, "Conv", see_catalogue, seen));
    T_STR(t, seen, "ref cpu ");
}

/* ------------------------------------------------------------------------------------------------------------ ONNX */

static void onnx_model(writer *w) {
    m_begin(w, 17);
    m_input(w, "x");
    m_input(w, "y");
    w_begin(w, 1);
    m_names(w, 1, "x,y");
    m_names(w, 2, "z");
    w_text(w, 3, "add0");
    w_text(w, 4, "AddCustom");
    w_text(w, 7, "my.domain");
    w_end(w);
    m_output(w, "z");
    m_end(w);
    w_begin(w, 8);
    w_text(w, 1, "my.domain");
    w_int(w, 2, 3);
    w_end(w);
}

static rondo_status onnx_read(world *w, const writer *model) {
    rondo_ir_graph_release(w->graph);
    w->graph = NULL;
    return rondo_onnx_import_memory(w->instance, "model", model->data, model->size, NULL, &w->graph);
}

static void onnx_nodes_mean_it(rondo_test *t) {
    static writer model;
    world w = {.t = t};
    add_operator add;
    T_DEFER(t, w_close, &w);
    onnx_model(&model);
    w_open(&w, "cpu");
    rondo_status status = onnx_read(&w, &model);
    T_TRUE(t, rondo_test_failing(t) || strstr(rondo_status_note(status, 0), "my.domain::AddCustom"));
    T_TRUE(t, rondo_test_failing(t) || strstr(rondo_status_note(status, 0), "version 3"));
    fails(t, status, RONDO_CODE_UNSUPPORTED, RONDO_LAYER_CONVERTER, "");
    (void)add_make(&add, ADD_RIGHT);
    add.table.onnx_since = 4;
    T_OK(t, rondo_operator_register(w.instance, &add.table));
    fails(t, onnx_read(&w, &model), RONDO_CODE_UNSUPPORTED, RONDO_LAYER_CONVERTER, "");
    w_close(&w);
    w_open(&w, "cpu");
    add.table.onnx_since = 3;
    add.table.name = "Plus"; /* the model's own name is another */
    add.table.onnx_name = "AddCustom";
    T_OK(t, rondo_operator_register(w.instance, &add.table));
    T_OK(t, onnx_read(&w, &model));
    T_STR(t, rondo__ir_node_at(w.graph, 0)->operator_name, "my.domain::Plus");
    T_OK(t, rondo_session_add_graph(w.session, 1, w.graph));
    float x[24], y[24], z[24];
    for (int i = 0; i < 24; i++) {
        x[i] = (float)i;
        y[i] = (float)(100 * i);
    }
    rondo_tensor_view in = {.device_type = 1, .rank = 3, .dtype = RONDO_DTYPE_F32, .shape = (int64_t[]){2, 3, 4}};
    rondo_tensor_view inputs[2] = {in, in}, outputs[1] = {in};
    inputs[0].data = x;
    inputs[1].data = y;
    outputs[0].data = z;
    T_OK(t, rondo_session_run(w.session, 1, inputs, 2, outputs, 1));
    for (int i = 0; i < 24; i++) T_TRUE(t, z[i] == (float)(101 * i));
}

/* A graph keeps the prototypes it was made with when the instance has gone. */
static void graphs_outlive_the_instance(rondo_test *t) {
    world w = {.t = t};
    add_operator add;
    rondo_ir_graph *copy = NULL;
    T_DEFER(t, w_close, &w);
    w_open(&w, "cpu");
    T_OK(t, rondo_operator_register(w.instance, add_make(&add, ADD_RIGHT)));
    T_OK(t, w_build(&w));
    rondo_session_release(w.session);
    rondo_device_release(w.device);
    rondo_instance_release(w.instance);
    w.session = NULL;
    w.device = NULL;
    w.instance = NULL;
    T_OK(t, rondo_ir_graph_verify(w.graph));
    T_OK(t, rondo__ir_clone(w.graph, false, &copy));
    T_DEFER(t, rondo_ir_graph_release, copy);
    T_OK(t, rondo_ir_graph_verify(copy));
}

RONDO_TEST_MAIN(T(runs_as_any_other), T(an_output_may_be_an_input), T(an_implementation_can_infer_alone),
                T(each_way_to_be_wrong_names_its_contract), T(dynamic_or_not_the_contract_is_the_same),
                T(what_is_missing_is_named), T(inputs_are_those_of_the_prototype), T(one_definition),
                T(malformed_tables), T(onnx_nodes_mean_it), T(operators_can_be_looked_at),
                T(graphs_outlive_the_instance))
