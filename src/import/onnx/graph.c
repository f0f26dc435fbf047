/* SPDX-License-Identifier: Apache-2.0
 *
 * A GraphProto in five steps: constants, inputs, all outputs of nodes, the nodes, the graph's outputs. Every name has
 * one definition; a name is looked for in the graph itself, then in the graphs around it. Each byte is read by a fixed
 * number of walks, however deep graphs are nested. */
#include <string.h>

#include "base/instance.h"
#include "import/onnx/onnx.h"

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE_INITIALIZER = 15
};

typedef struct graph_list {
    rondo__pb_bytes *messages;
    uint32_t count;
} graph_list;

typedef struct graph_parts {
    rondo__pb_reader reader;
    rondo__pb_bytes name;
    graph_list nodes, initializers, inputs, outputs, value_infos;
    rondo__import_names info_names; /* of value_infos and outputs, to their place in infos */
    rondo__onnx_info *infos;
    rondo__onnx_node *node_reads;
} graph_parts;

static graph_list *graph_list_of(graph_parts *parts, uint32_t field) {
    switch (field) {
    case GRAPH_NODE: return &parts->nodes;
    case GRAPH_INITIALIZER: return &parts->initializers;
    case GRAPH_INPUT: return &parts->inputs;
    case GRAPH_OUTPUT: return &parts->outputs;
    case GRAPH_VALUE_INFO: return &parts->value_infos;
    default: return NULL;
    }
}

static rondo_status graph_collect(rondo__onnx_context *context, graph_parts *parts) {
    static const uint32_t fields[] = {GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE_INFO};
    rondo__pb_reader reader = parts->reader;
    rondo__pb_field field;
    while (rondo__pb_next(&reader, &field)) {
        graph_list *list = graph_list_of(parts, field.number);
        if (list) {
            if (list->count++ == RONDO__IR_NODES_MAX) return RONDO__FAIL(CORRUPT, FILE, "too many parts in one graph");
        } else if (field.number == GRAPH_NAME) {
            RONDO__TRY(rondo__pb_once(&reader, &field));
            RONDO__TRY(rondo__pb_get_text(&reader, &field, &parts->name));
        } else if (field.number == GRAPH_SPARSE_INITIALIZER) {
            return RONDO__FAIL(UNSUPPORTED, CONVERTER, "the model has a sparse initializer");
        }
    }
    RONDO__TRY(rondo__pb_end(&reader));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        graph_list *list = graph_list_of(parts, fields[i]);
        void *memory = NULL;
        RONDO__TRY(rondo__arena_allocate_array(&context->scratch, list->count, sizeof(rondo__pb_bytes), &memory));
        list->messages = memory;
        list->count = 0;
    }
    reader = parts->reader;
    while (rondo__pb_next(&reader, &field)) {
        graph_list *list = graph_list_of(parts, field.number);
        if (list) RONDO__TRY(rondo__pb_get_bytes(&reader, &field, &list->messages[list->count++]));
    }
    return rondo__pb_end(&reader);
}

/* ------------------------------------------------------------------------------------------------------- names */

static rondo_status scope_define(rondo__onnx_scope *scope, rondo__pb_bytes name, const rondo__ir_type *type,
                                 rondo_ir_value *out_value) {
    rondo__onnx_context *context = scope->context;
    if (!name.size) return RONDO__FAIL(CORRUPT, FILE, "graph '%s' has a value without a name", scope->graph->name);
    for (const rondo__onnx_scope *around = scope; around; around = around->parent)
        if (rondo__import_names_find(&around->values, name) != RONDO__IMPORT_NAMES_NONE)
            return RONDO__FAIL(CORRUPT, FILE, "graph '%.100s' defines '%s' a second time%s", scope->graph->name,
                               rondo__onnx_shown(context, name),
                               around == scope ? "" : ": a graph around it has it already");
    const char *text;
    uint32_t before;
    RONDO__TRY(rondo__import_text(&context->scratch, name, &text));
    RONDO__TRY(rondo__ir_value_add(scope->graph, text, NULL, type, out_value));
    return rondo__import_names_insert(&scope->values, name, *out_value, &before);
}

rondo_status rondo__onnx_scope_find(rondo__onnx_scope *scope, rondo__pb_bytes name, rondo_ir_value *out_value) {
    *out_value = rondo__import_names_find(&scope->values, name);
    if (*out_value == RONDO__ONNX_ABSENT) return RONDO_OK;
    if (*out_value != RONDO__IMPORT_NAMES_NONE) {
        const rondo__ir_value_data *value = rondo__ir_value_at(scope->graph, *out_value);
        if (value->producer == RONDO_IR_NONE && !value->constant && !(value->flags & RONDO__IR_VALUE_INPUT))
            scope->context->unsorted = true; /* its node comes later */
        return RONDO_OK;
    }
    *out_value = RONDO_IR_NONE;
    if (!scope->parent) return RONDO_OK;
    rondo_ir_value outer;
    RONDO__TRY(rondo__onnx_scope_find(scope->parent, name, &outer));
    *out_value = outer;
    if (outer == RONDO_IR_NONE || outer == RONDO__ONNX_ABSENT) return RONDO_OK;
    return rondo__ir_value_outer(scope->graph, outer, out_value);
}

/* ------------------------------------------------------------------------------------------------------- steps */

static rondo_status graph_read_infos(rondo__onnx_context *context, graph_parts *parts) {
    void *memory = NULL;
    size_t count = (size_t)parts->value_infos.count + parts->outputs.count;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, count, sizeof(rondo__onnx_info), &memory));
    parts->infos = memory;
    /* Outputs first: a value_info of the same name, which is a repetition, does not count. */
    for (size_t i = 0; i < count; i++) {
        rondo__pb_bytes message = i < parts->outputs.count ? parts->outputs.messages[i]
                                                           : parts->value_infos.messages[i - parts->outputs.count];
        rondo__pb_reader reader;
        uint32_t before;
        RONDO__TRY(rondo__pb_enter_bytes(&parts->reader, message, &reader));
        RONDO__TRY(rondo__onnx_info_read(context, &reader, &parts->infos[i]));
        if (!parts->infos[i].name.size) {
            if (i < parts->outputs.count) return RONDO__FAIL(CORRUPT, FILE, "a graph has an output without a name");
            continue;
        }
        RONDO__TRY(rondo__import_names_insert(&parts->info_names, parts->infos[i].name, (uint32_t)i, &before));
        if (before != RONDO__IMPORT_NAMES_NONE && i < parts->outputs.count)
            return RONDO__FAIL(CORRUPT, FILE, "a graph has two outputs '%s'",
                               rondo__onnx_shown(context, parts->infos[i].name));
    }
    return RONDO_OK;
}

/* What the file says of a value, or null. */
static const rondo__onnx_info *graph_info(const graph_parts *parts, rondo__pb_bytes name) {
    uint32_t index = rondo__import_names_find(&parts->info_names, name);
    return index == RONDO__IMPORT_NAMES_NONE ? NULL : &parts->infos[index];
}

static const rondo__ir_type *graph_type(const graph_parts *parts, rondo__pb_bytes name) {
    const rondo__onnx_info *info = graph_info(parts, name);
    return info && info->typed && !info->unknown ? &info->type : NULL;
}

static rondo_status graph_set_constant(rondo__onnx_scope *scope, const graph_parts *parts, rondo_ir_value value,
                                       rondo__pb_bytes name, const rondo__ir_constant *constant) {
    const rondo__onnx_info *info = graph_info(parts, name);
    if (info) RONDO__TRY(rondo__onnx_info_matches(scope->context, info, constant));
    rondo__ir_type type;
    RONDO__TRY(rondo__ir_type_from_dims(scope->graph, constant->dtype, constant->rank, constant->dims, &type));
    rondo__ir_value_data *data = rondo__ir_value_at(scope->graph, value);
    data->type = type;
    data->constant = constant;
    return RONDO_OK;
}

static rondo_status graph_read_initializers(rondo__onnx_scope *scope, const graph_parts *parts) {
    for (uint32_t i = 0; i < parts->initializers.count; i++) {
        rondo__pb_reader reader;
        rondo__onnx_tensor tensor;
        const rondo__ir_constant *constant;
        rondo_ir_value value;
        RONDO__TRY(rondo__pb_enter_bytes(&parts->reader, parts->initializers.messages[i], &reader));
        RONDO__TRY(rondo__onnx_tensor_read(scope->context, &reader, &tensor));
        RONDO__TRY(scope_define(scope, tensor.name, NULL, &value));
        RONDO__TRY(rondo__onnx_tensor_constant(scope->context, scope->graph, &tensor, &constant));
        RONDO__TRY(graph_set_constant(scope, parts, value, tensor.name, constant));
    }
    return RONDO_OK;
}

/* An input that is also an initializer is a constant: up to IR version 3 that is the rule, from 4 on the initializer is
 * a default, and the default is what we take. */
static rondo_status graph_read_input(rondo__onnx_scope *scope, const graph_parts *parts, uint32_t index, uint8_t *seen,
                                     size_t seen_size) {
    rondo__onnx_context *context = scope->context;
    rondo__pb_reader reader;
    rondo__onnx_info info;
    RONDO__TRY(rondo__pb_enter_bytes(&parts->reader, parts->inputs.messages[index], &reader));
    RONDO__TRY(rondo__onnx_info_read(context, &reader, &info));
    rondo_ir_value value = rondo__import_names_find(&scope->values, info.name);
    if (info.name.size && value < seen_size && !seen[value]) {
        seen[value] = 1;
        return rondo__onnx_info_matches(context, &info, rondo__ir_value_at(scope->graph, value)->constant);
    }
    if (info.unknown)
        return RONDO__FAIL(UNSUPPORTED, CONVERTER, "input '%s' is %s, which is not supported",
                           rondo__onnx_shown(context, info.name), info.unknown);
    if (!info.typed && !scope->parent)
        return RONDO__FAIL(CORRUPT, FILE, "input '%s' has no type", rondo__onnx_shown(context, info.name));
    RONDO__TRY(scope_define(scope, info.name, info.typed ? &info.type : NULL, &value));
    return rondo__ir_input_add(scope->graph, value);
}

static rondo_status graph_read_inputs(rondo__onnx_scope *scope, const graph_parts *parts) {
    size_t constants = scope->graph->values.count; /* all of them from initializers, numbered from 0 on */
    void *seen = NULL;
    RONDO__TRY(rondo__arena_allocate(&scope->context->scratch, constants, &seen));
    for (uint32_t i = 0; i < parts->inputs.count; i++) RONDO__TRY(graph_read_input(scope, parts, i, seen, constants));
    return RONDO_OK;
}

/* All values that nodes make, and the values of Constants, which may then be used by nodes before them too. */
static rondo_status graph_define_outputs(rondo__onnx_scope *scope, graph_parts *parts) {
    void *memory = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&scope->context->scratch, parts->nodes.count, sizeof(rondo__onnx_node), &memory));
    parts->node_reads = memory;
    for (uint32_t i = 0; i < parts->nodes.count; i++) {
        rondo__onnx_node *node = &parts->node_reads[i];
        rondo__pb_reader reader;
        RONDO__TRY(rondo__pb_enter_bytes(&parts->reader, parts->nodes.messages[i], &reader));
        RONDO__TRY(rondo__onnx_node_read(scope, &reader, node));
        bool constant = !node->function && !node->domain.size && rondo__import_is(node->type, "Constant");
        for (uint32_t o = 0; o < node->output_name_count; o++) {
            rondo__pb_bytes name = node->output_names[o];
            rondo_ir_value value;
            if (!name.size) continue;
            RONDO__IMPORT_TRY(scope_define(scope, name, constant ? NULL : graph_type(parts, name), &value), "node %s",
                              rondo__onnx_label(node));
        }
        if (!constant) continue;
        const rondo__ir_constant *held = NULL;
        RONDO__TRY(rondo__onnx_constant_node(node, &held));
        node->done = true;
        if (held)
            RONDO__TRY(graph_set_constant(scope, parts, rondo__import_names_find(&scope->values, node->output_names[0]),
                                          node->output_names[0], held));
    }
    return RONDO_OK;
}

static rondo_status graph_add_outputs(rondo__onnx_scope *scope, const graph_parts *parts) {
    if (!parts->outputs.count) return RONDO__FAIL(CORRUPT, FILE, "graph '%.100s' has no outputs", scope->graph->name);
    for (uint32_t i = 0; i < parts->outputs.count; i++) {
        const rondo__onnx_info *info = &parts->infos[i];
        const char *name;
        rondo_ir_value value;
        RONDO__TRY(rondo__onnx_scope_find(scope, info->name, &value));
        if (value == RONDO_IR_NONE || value == RONDO__ONNX_ABSENT)
            return RONDO__FAIL(CORRUPT, FILE, "graph '%.100s': its output '%s' is not defined", scope->graph->name,
                               rondo__onnx_shown(scope->context, info->name));
        RONDO__TRY(rondo__import_text(&scope->context->scratch, info->name, &name));
        RONDO__TRY(rondo__ir_output_add(scope->graph, value, name));
    }
    return RONDO_OK;
}

static rondo_status graph_fill(rondo__onnx_scope *scope, graph_parts *parts) {
    rondo__onnx_context *context = scope->context;
    RONDO__TRY(graph_read_infos(context, parts));
    RONDO__TRY(graph_read_initializers(scope, parts));
    RONDO__TRY(graph_read_inputs(scope, parts));
    RONDO__TRY(graph_define_outputs(scope, parts));
    for (uint32_t i = 0; i < parts->nodes.count; i++)
        if (!parts->node_reads[i].done) RONDO__TRY(rondo__onnx_node_build(&parts->node_reads[i]));
    return graph_add_outputs(scope, parts);
}

rondo_status rondo__onnx_graph_read(rondo__onnx_context *context, rondo__onnx_scope *parent,
                                    const rondo__pb_reader *reader, rondo_ir_graph **out_graph) {
    if (parent && parent->depth >= RONDO__ONNX_GRAPH_DEPTH_MAX - 1)
        return RONDO__FAIL(CORRUPT, FILE, "graphs are nested deeper than %u", RONDO__ONNX_GRAPH_DEPTH_MAX);
    graph_parts parts = {.reader = *reader};
    rondo__onnx_scope scope = {.context = context, .parent = parent, .depth = parent ? parent->depth + 1 : 0};
    RONDO__TRY(graph_collect(context, &parts));
    const char *name;
    RONDO__TRY(rondo__import_text(&context->scratch, parts.name, &name));
    RONDO__TRY(rondo__ir_graph_create(&context->allocator, context->instance, name, parent ? parent->graph : NULL,
                                      &scope.graph));
    if (!parent) rondo__ir_graph_share_operators(scope.graph, rondo__instance_base_of(context->instance)->operators);
    scope.graph->opset = context->model_opsets.onnx;
    rondo__import_names_init(&scope.values, &context->allocator);
    rondo__import_names_init(&parts.info_names, &context->allocator);
    rondo_status status = graph_fill(&scope, &parts);
    rondo__import_names_deinit(&scope.values);
    rondo__import_names_deinit(&parts.info_names);
    if (status) {
        if (!parent) rondo_ir_graph_release(scope.graph);
        return status;
    }
    *out_graph = scope.graph;
    return RONDO_OK;
}
