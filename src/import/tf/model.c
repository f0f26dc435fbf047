/* SPDX-License-Identifier: Apache-2.0
 *
 * GraphDef, and the doors of the room. Nodes stand in the file in any order: a walk back from the wanted outputs finds
 * which are needed and in what order; control inputs only order effects, and nothing that is accepted has one. */
#include <stdio.h>
#include <string.h>

#include "base/instance.h"
#include "base/sized.h"
#include "import/tf/tf.h"

enum { TF_GRAPH_NODE = 1, TF_GRAPH_LIBRARY = 2 };

/* The names of the graph's functions. */
static rondo_status tf_model_library(rondo__tf_context *context, rondo__pb_reader *reader) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number != 1) continue;
        rondo__pb_reader function, signature;
        RONDO__TRY(rondo__pb_enter(reader, &field, &function));
        while (rondo__pb_next(&function, &field)) {
            if (field.number != 1) continue;
            RONDO__TRY(rondo__pb_enter(&function, &field, &signature));
            rondo__pb_bytes name = rondo__import_field_text(signature, 1);
            uint32_t before;
            if (name.size) RONDO__TRY(rondo__import_names_insert(&context->functions, name, 0, &before));
        }
        RONDO__TRY(rondo__pb_end(&function));
    }
    return rondo__pb_end(reader);
}

static rondo_status tf_model_walk(rondo__tf_context *context, rondo__pb_reader reader) {
    rondo__pb_reader count = reader;
    rondo__pb_field field;
    while (rondo__pb_next(&count, &field)) {
        if (field.number == TF_GRAPH_NODE && context->node_count++ == RONDO__IR_NODES_MAX)
            return RONDO__FAIL(CORRUPT, FILE, "more nodes than any graph has");
        if (field.number == TF_GRAPH_NODE && field.wire != RONDO__PB_BYTES)
            return RONDO__FAIL(CORRUPT, FILE, "it is not a TensorFlow graph");
    }
    RONDO__TRY(rondo__pb_end(&count));
    if (!context->node_count) return RONDO__FAIL(CORRUPT, FILE, "it is not a TensorFlow graph: no node is in it");
    void *nodes = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, context->node_count, sizeof(rondo__tf_node), &nodes));
    context->nodes = nodes;
    uint32_t read = 0;
    while (rondo__pb_next(&reader, &field)) {
        rondo__pb_reader inner;
        if (field.number != TF_GRAPH_NODE && field.number != TF_GRAPH_LIBRARY) continue;
        RONDO__TRY(rondo__pb_enter(&reader, &field, &inner));
        if (field.number == TF_GRAPH_LIBRARY) {
            RONDO__TRY(rondo__pb_once(&reader, &field));
            RONDO__TRY(tf_model_library(context, &inner));
            continue;
        }
        rondo__tf_node *node = &context->nodes[read];
        uint32_t before;
        RONDO__TRY(rondo__tf_node_read(context, &inner, node));
        const rondo__pb_bytes name = {(const uint8_t *)node->name, strlen(node->name)};
        RONDO__TRY(rondo__import_names_insert(&context->names, name, read, &before));
        if (before != RONDO__IMPORT_NAMES_NONE) return RONDO__TF_CORRUPT(node, "a node of this name was there before");
        read++;
    }
    RONDO__TRY(rondo__pb_end(&reader));
    for (uint32_t i = 0; i < context->node_count; i++) RONDO__TRY(rondo__tf_node_resolve(&context->nodes[i]));
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- order */

enum { TF_MODEL_NEW, TF_MODEL_OPEN, TF_MODEL_DONE };

typedef struct tf_model_step {
    uint32_t node, next; /* its inputs before `next` have been visited */
} tf_model_step;

/* Appends the node to the order, after all that it takes from. */
static void tf_model_visit(rondo__tf_context *context, tf_model_step *stack, uint32_t start) {
    uint32_t depth = 0;
    if (context->nodes[start].state != TF_MODEL_NEW) return;
    context->nodes[start].state = TF_MODEL_OPEN;
    stack[depth++] = (tf_model_step){start, 0};
    while (depth) {
        tf_model_step *top = &stack[depth - 1];
        rondo__tf_node *node = &context->nodes[top->node];
        if (top->next == node->input_count) {
            node->state = TF_MODEL_DONE;
            context->order[context->ordered++] = top->node;
            depth--;
            continue;
        }
        const uint32_t input = node->inputs[top->next++].node;
        if (context->nodes[input].state == TF_MODEL_OPEN && !context->cycle) context->cycle = &context->nodes[input];
        if (context->nodes[input].state != TF_MODEL_NEW) continue;
        context->nodes[input].state = TF_MODEL_OPEN;
        stack[depth++] = (tf_model_step){input, 0};
    }
}

/* A node whose results nobody takes is an output of the graph; one without results is not. */
static bool tf_model_is_output(const rondo__tf_node *node) { return !node->used && (!node->row || node->output_count); }

static bool tf_model_is_input(const rondo__tf_node *node) { return strcmp(node->type, "Placeholder") == 0; }

static rondo_status tf_model_output_named(rondo__tf_context *context, const char *text, rondo__tf_edge *out_edge) {
    const char *colon = strchr(text ? text : "", ':');
    const size_t size = !text ? 0 : colon ? (size_t)(colon - text) : strlen(text);
    const uint32_t node =
        size ? rondo__import_names_find(&context->names, (rondo__pb_bytes){(const uint8_t *)text, size})
             : RONDO__IMPORT_NAMES_NONE;
    uint32_t port = 0;
    for (const char *digit = colon ? colon + 1 : ""; *digit; digit++)
        port = *digit < '0' || *digit > '9' || port > 65535 ? UINT32_MAX / 16 : port * 10 + (uint32_t)(*digit - '0');
    if (node == RONDO__IMPORT_NAMES_NONE || (context->nodes[node].row && port >= context->nodes[node].output_count))
        return RONDO__FAIL(NOT_FOUND, INPUT, "the graph has no output '%.200s' that could be wanted", text ? text : "");
    *out_edge = (rondo__tf_edge){node, port};
    return RONDO_OK;
}

static rondo_status tf_model_order(rondo__tf_context *context, const rondo_tf_options *options,
                                   rondo__tf_edge *wanted) {
    void *order = NULL, *stack = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, context->node_count, sizeof(uint32_t), &order));
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, context->node_count, sizeof(tf_model_step), &stack));
    context->order = order;
    for (uint32_t i = 0; i < options->output_count; i++) {
        RONDO__TRY(tf_model_output_named(context, options->outputs[i], &wanted[i]));
        tf_model_visit(context, stack, wanted[i].node);
    }
    for (uint32_t i = 0; i < context->node_count && !options->output_count; i++)
        if (tf_model_is_output(&context->nodes[i])) tf_model_visit(context, stack, i);
    /* Where all nodes go round in circles, none is an output. */
    for (uint32_t i = 0; i < context->node_count && !context->ordered; i++) tf_model_visit(context, stack, i);
    for (uint32_t i = 0; i < context->ordered; i++) {
        rondo__tf_node *node = &context->nodes[context->order[i]];
        if (!node->row) RONDO__TRY(rondo__tf_refuse(node, rondo__tf_why_not(node->type)));
    }
    if (context->cycle) {
        RONDO__TRY(rondo__import_refusals_status(&context->refusals));
        return RONDO__TF_CORRUPT(context->cycle, "it waits for itself");
    }
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ convert */

/* Whether all that it takes is there; what takes from a node that was refused is left out without a word. */
static rondo_status tf_model_ready(rondo__tf_node *node, bool *out_ready) {
    *out_ready = !node->refused;
    for (uint32_t i = 0; i < node->input_count && *out_ready; i++) {
        const rondo__tf_edge edge = node->inputs[i];
        const rondo__tf_node *from = &node->context->nodes[edge.node];
        *out_ready = !from->refused;
        if (from->refused) break;
        if (edge.port >= from->output_count)
            return RONDO__TF_CORRUPT(node, "it takes output %u of '%.100s', which has %u", edge.port, from->name,
                                     from->output_count);
        const rondo__tf_value *value = &from->outputs[edge.port];
        if (value->plain == RONDO_IR_NONE && value->moved == RONDO_IR_NONE) {
            *out_ready = false;
            return rondo__tf_refuse(node, "it takes a result that is not made, such as statistics of a training step");
        }
    }
    if (!*out_ready) node->refused = true;
    return RONDO_OK;
}

static rondo_status tf_model_dtype(rondo__tf_node *node) {
    rondo_dtype dtype = RONDO_DTYPE_UNDEFINED;
    const char *rule = node->row->dtype;
    if (!rule) return RONDO_OK;
    if (strcmp(rule, ":bool") == 0) dtype = RONDO_DTYPE_BOOL;
    else RONDO__TRY(rondo__tf_attr_type(node, rule, &dtype));
    if (dtype == RONDO_DTYPE_UNDEFINED)
        return rondo__tf_refuse(node, "a type of elements that is missing or not supported");
    for (uint32_t i = 0; i < node->output_count; i++) node->outputs[i].dtype = dtype;
    return RONDO_OK;
}

static void tf_model_rank(rondo__tf_node *node) {
    int32_t rank = -1;
    if (node->row->rank == RONDO__TF_RANK_OPEN || !node->input_count) return;
    rank = rondo__tf_value_at(node, 0)->rank;
    for (uint32_t i = 1; i < node->input_count && node->row->rank == RONDO__TF_RANK_WIDEST && rank >= 0; i++) {
        const int32_t other = rondo__tf_value_at(node, i)->rank;
        rank = other < 0 || other > rank ? other : rank;
    }
    for (uint32_t i = 0; i < node->output_count; i++) node->outputs[i].rank = rank;
}

static rondo_status tf_model_convert(rondo__tf_node *node) {
    bool ready;
    RONDO__TRY(tf_model_ready(node, &ready));
    if (!ready) return RONDO_OK;
    RONDO__TRY(rondo__tf_node_check(node));
    if (!node->refused) RONDO__TRY(tf_model_dtype(node));
    if (node->refused) return RONDO_OK;
    tf_model_rank(node);
    RONDO__TRY(node->row->convert(node));
    node->context->graph->nodes_in_model++;
    return RONDO_OK;
}

static rondo_status tf_model_output(rondo__tf_context *context, rondo__tf_edge edge) {
    rondo__tf_node *node = &context->nodes[edge.node];
    rondo__tf_edge inputs[1] = {edge};
    rondo__tf_node reader = {
        .context = context, .name = node->name, .type = node->type, .inputs = inputs, .input_count = 1};
    rondo_ir_value value;
    RONDO__TRY(rondo__tf_take(&reader, 0, &value));
    char *name = NULL;
    void *memory = NULL;
    const size_t room = strlen(node->name) + 16;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, room, &memory));
    name = memory;
    (void)snprintf(name, room, edge.port ? "%s:%u" : "%s", node->name, edge.port);
    /* An output is a value of its own, made by a node. */
    const rondo__ir_value_data *data = rondo__ir_value_at(context->graph, value);
    if (data->producer == RONDO_IR_NONE || data->flags & RONDO__IR_VALUE_OUTPUT)
        RONDO__TRY(rondo__tf_step(&reader, "Identity", &value, 1, NULL, 0, &value));
    return rondo__ir_output_add(context->graph, value, name);
}

static rondo_status tf_model_outputs(rondo__tf_context *context, const rondo_tf_options *options,
                                     const rondo__tf_edge *wanted) {
    for (uint32_t i = 0; i < options->output_count; i++) {
        const rondo__tf_value *value = &context->nodes[wanted[i].node].outputs[wanted[i].port];
        if (value->plain == RONDO_IR_NONE && value->moved == RONDO_IR_NONE)
            return RONDO__FAIL(NOT_FOUND, INPUT, "output '%.200s' is not made by this import", options->outputs[i]);
        RONDO__TRY(tf_model_output(context, wanted[i]));
    }
    for (uint32_t n = 0; n < context->node_count && !options->output_count; n++) {
        const rondo__tf_node *node = &context->nodes[n];
        for (uint32_t port = 0; port < node->output_count && tf_model_is_output(node); port++) {
            const rondo__tf_value *value = &node->outputs[port];
            if (value->plain != RONDO_IR_NONE || value->moved != RONDO_IR_NONE)
                RONDO__TRY(tf_model_output(context, (rondo__tf_edge){n, port}));
        }
    }
    return context->graph->outputs.count ? RONDO_OK : RONDO__FAIL(CORRUPT, FILE, "the graph has no outputs");
}

static rondo_status tf_model_build(rondo__tf_context *context, const rondo_tf_options *options, const void *data,
                                   size_t size) {
    rondo__pb_reader reader;
    rondo__pb_budget_init(&context->budget, data);
    rondo__pb_reader_init(&reader, data, size, &context->budget);
    RONDO__TRY(tf_model_walk(context, reader));
    void *wanted = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, options->output_count, sizeof(rondo__tf_edge), &wanted));
    RONDO__TRY(tf_model_order(context, options, wanted));
    /* Inputs in the order of the file, whatever takes from them. */
    for (uint32_t i = 0; i < context->node_count; i++)
        if (tf_model_is_input(&context->nodes[i]) &&
            (context->nodes[i].state == TF_MODEL_DONE || !options->output_count))
            RONDO__TRY(tf_model_convert(&context->nodes[i]));
    for (uint32_t i = 0; i < context->ordered; i++)
        if (!tf_model_is_input(&context->nodes[context->order[i]]))
            RONDO__TRY(tf_model_convert(&context->nodes[context->order[i]]));
    RONDO__TRY(rondo__import_refusals_status(&context->refusals));
    RONDO__TRY(tf_model_outputs(context, options, wanted));
    return rondo__ir_verify(context->graph);
}

/* -------------------------------------------------------------------------------------------------------- doors */

static rondo_status tf_model_import(rondo_instance *instance, const char *name, const rondo_tf_options *options,
                                    const void *data, size_t size, rondo_ir_graph **out_graph) {
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    rondo__tf_context context = {.allocator = base->allocator, .instance = instance, .log = &base->log, .file = name};
    rondo__arena_init(&context.scratch, &base->allocator, SIZE_MAX / 4);
    rondo__import_names_init(&context.names, &base->allocator);
    rondo__import_names_init(&context.functions, &base->allocator);
    rondo__import_refusals_init(&context.refusals, &base->allocator);
    rondo_status status = rondo__ir_graph_create(&base->allocator, instance, "", NULL, &context.graph);
    if (!status) {
        rondo__ir_graph_share_operators(context.graph, base->operators);
        status = rondo__import_within(tf_model_build(&context, options, data, size), "'%.300s'", name);
    }
    if (!status) *out_graph = context.graph;
    else rondo_ir_graph_release(context.graph);
    rondo__import_refusals_deinit(&context.refusals);
    rondo__import_names_deinit(&context.functions);
    rondo__import_names_deinit(&context.names);
    rondo__arena_deinit(&context.scratch);
    return status;
}

static rondo_status tf_model_options(const rondo_tf_options *options, rondo_tf_options *out_known) {
    *out_known = (rondo_tf_options)RONDO_TF_OPTIONS_INIT;
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_INPUT, "rondo_tf_options", options, out_known, sizeof *out_known));
    if (!out_known->file_bytes_max) out_known->file_bytes_max = RONDO__IMPORT_FILE_MAX;
    if (out_known->output_count && !out_known->outputs)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "output_count is %u, but outputs is null", out_known->output_count);
    return RONDO_OK;
}

rondo_status rondo_tf_import(rondo_instance *instance, const char *path, const rondo_tf_options *options,
                             rondo_ir_graph **out_graph) {
    if (!instance || !path || !out_graph)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "import needs an instance, a path and a place for the graph");
    *out_graph = NULL;
    rondo_tf_options known;
    RONDO__TRY(tf_model_options(options, &known));
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    rondo__import_file file;
    RONDO__TRY(rondo__import_file_read(&base->allocator, path, known.file_bytes_max, &file));
    rondo_status status = tf_model_import(instance, path, &known, file.data, file.size, out_graph);
    rondo__import_file_release(&file);
    return status;
}

rondo_status rondo_tf_import_memory(rondo_instance *instance, const char *name, const void *data, size_t size,
                                    const rondo_tf_options *options, rondo_ir_graph **out_graph) {
    if (!instance || !out_graph || (size && !data))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "import needs an instance, data and a place for the graph");
    *out_graph = NULL;
    if (!name) name = "graph in memory";
    rondo_tf_options known;
    RONDO__TRY(tf_model_options(options, &known));
    RONDO__TRY(rondo__import_memory_check(name, size, known.file_bytes_max));
    return tf_model_import(instance, name, &known, data, size, out_graph);
}
