/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to calls on a builder, a branch of it and a builder of its own: whatever comes in whatever order, a build gives a
 * graph that verifies, or a reason, and an empty builder. */
#include <rondo/es.h>
#include <rondo/ir.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ES_FUZZ_TENSORS 32u

typedef struct es_fuzz {
    const uint8_t *at, *end;
    rondo_es_builder *builders[3];             /* the second is a branch of the first */
    rondo_es_tensor *tensors[ES_FUZZ_TENSORS]; /* of builders that were not built since, or null */
    uint32_t count;
} es_fuzz;

static uint8_t es_fuzz_byte(es_fuzz *f) { return f->at < f->end ? *f->at++ : 0; }

static rondo_es_tensor *es_fuzz_tensor(es_fuzz *f) {
    uint8_t byte = es_fuzz_byte(f);
    return byte < 0xf0 && f->count ? f->tensors[byte % f->count] : NULL;
}

static void es_fuzz_keep(es_fuzz *f, rondo_es_tensor *tensor) {
    if (f->count < ES_FUZZ_TENSORS) f->tensors[f->count++] = tensor;
    else f->tensors[es_fuzz_byte(f) % ES_FUZZ_TENSORS] = tensor;
}

static void es_fuzz_node(es_fuzz *f) {
    static const char *const names[] = {"Add", "Neg", "Max", "Split", "Concat", "Clip", "Nought", "If"};
    rondo_es_tensor *inputs[3] = {es_fuzz_tensor(f), es_fuzz_tensor(f), es_fuzz_tensor(f)};
    rondo_attribute list[2];
    uint8_t shape = es_fuzz_byte(f);
    rondo_es_node node = RONDO_ES_NODE_INIT;
    node.operator_name = names[shape % 8u];
    node.inputs = inputs;
    node.input_count = shape >> 3 & 3u;
    node.more = inputs;
    node.more_count = shape >> 5 & 3u;
    node.output_count = (int64_t)(es_fuzz_byte(f) % 5u) - 1;
    node.attributes = list;
    if (shape & 0x80u) rondo_es_put_int(list, &node.attribute_count, shape & 0x40u ? "axis" : "user.note", shape % 4u);
    rondo_es_tensor **made = rondo_es_add(&node);
    for (int64_t i = 0; made && i < node.output_count; i++) es_fuzz_keep(f, made[i]);
}

static void es_fuzz_detail(es_fuzz *f) {
    static const int64_t shape[4] = {2, -1, 3, -2};
    rondo_attribute note = {.name = "user.x", .kind = RONDO_ATTRIBUTE_INT, .count = 1};
    rondo_es_tensor *tensor = es_fuzz_tensor(f), *before = es_fuzz_tensor(f);
    uint8_t what = es_fuzz_byte(f);
    int64_t number = (int64_t)(what >> 4) - 1;
    switch (what % 9u) {
    case 0: (void)rondo_es_set_dtype(tensor, (rondo_dtype)number); break;
    case 1: (void)rondo_es_set_shape(tensor, shape, number < 5 ? number : 17); break;
    case 2: (void)rondo_es_set_format(tensor, (rondo_format)number); break;
    case 3: (void)rondo_es_set_node_name(tensor, number % 2 ? "one" : "two"); break;
    case 4: (void)rondo_es_set_node_attribute(tensor, &note); break;
    case 5: (void)rondo_es_set_tensor_attribute(tensor, &note); break;
    case 6: (void)rondo_es_add_control_edge(tensor, &before, 1); break;
    default: (void)rondo_es_set_output(tensor, number); break;
    }
}

static void es_fuzz_begin(es_fuzz *f) {
    static const int64_t shape[2] = {2, 3};
    uint8_t what = es_fuzz_byte(f);
    rondo_es_builder *builder = f->builders[what % 3u];
    int64_t number = (int64_t)(what >> 5) - 1;
    switch (what / 3u % 4u) {
    case 0: es_fuzz_keep(f, rondo_es_input(builder, number)); break;
    case 1:
        es_fuzz_keep(f, rondo_es_input_with_details(builder, number, what & 0x80u ? "x" : NULL, RONDO_DTYPE_F32,
                                                    RONDO_FORMAT_ND, shape, 2));
        break;
    case 2: es_fuzz_keep(f, rondo_es_scalar_float(builder, 1)); break;
    default: es_fuzz_keep(f, rondo_es_outer(builder, es_fuzz_tensor(f))); break;
    }
}

/* What is built takes its tensors along, and so do the branches inside. */
static void es_fuzz_build(es_fuzz *f, uint32_t which) {
    rondo_ir_graph *graph = NULL;
    for (uint32_t i = 0; i < f->count; i++) {
        const rondo_es_builder *owner = rondo_es_owner(f->tensors[i]);
        if (owner == f->builders[which] || (which == 0 && owner == f->builders[1])) f->tensors[i] = NULL;
    }
    rondo_status status = rondo_es_build_and_reset(f->builders[which], &graph);
    if ((status == RONDO_OK) != (graph != NULL) || rondo_es_failed(f->builders[which])) __builtin_trap();
    rondo_status_release(status);
    if (which == 1) return; /* it belongs to the graph around it */
    status = graph ? rondo_ir_graph_verify(graph) : RONDO_OK;
    if (status) __builtin_trap();
    rondo_ir_graph_release(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static rondo_instance *instance; /* of all inputs: opening one is most of the work */
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    es_fuzz f = {.at = data, .end = data + size};
    options.ignore_plugin_path = 1;
    if (!instance && rondo_instance_create(&options, &instance)) return 0;
    if (rondo_es_builder_create(instance, "main", &f.builders[0]) ||
        rondo_es_builder_create_branch(f.builders[0], "inner", &f.builders[1]) ||
        rondo_es_builder_create(instance, "own", &f.builders[2])) {
        __builtin_trap();
    }
    for (uint32_t steps = 0; f.at < f.end && steps < 400; steps++) {
        uint8_t what = es_fuzz_byte(&f);
        if (what < 0x60) es_fuzz_begin(&f);
        else if (what < 0xb0) es_fuzz_node(&f);
        else if (what < 0xf8) es_fuzz_detail(&f);
        else es_fuzz_build(&f, what % 3u);
    }
    for (uint32_t i = 3; i-- > 0;) rondo_es_builder_release(f.builders[i]);
    return 0;
}
