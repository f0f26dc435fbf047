/* SPDX-License-Identifier: Apache-2.0
 *
 * A function of the model: where it is called its nodes are put in place of the call. The body has names, operator sets and
 * attributes of its own; what it makes goes straight into the values that the call's outputs are. */
#include <string.h>

#include "import/onnx/onnx.h"

enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11,
    FUNCTION_OVERLOAD = 13
};

rondo_status rondo__onnx_opset_read(rondo__onnx_context *context, rondo__pb_reader *reader,
                                    rondo__onnx_opsets *opsets) {
    rondo__onnx_opset opset = {0};
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number == 1) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_get_text(reader, &field, &opset.domain));
        } else if (field.number == 2) {
            RONDO__TRY(rondo__pb_once(reader, &field));
            RONDO__TRY(rondo__pb_int64(reader, &field, &opset.version));
        }
    }
    RONDO__TRY(rondo__pb_end(reader));
    if (rondo__import_is(opset.domain, "ai.onnx")) opset.domain.size = 0;
    const char *shown = opset.domain.size ? rondo__onnx_shown(context, opset.domain) : "ai.onnx";
    if (opset.version < 1)
        return RONDO__FAIL(CORRUPT, FILE, "it imports version %lld of operator set '%s'", (long long)opset.version,
                           shown);
    for (uint32_t i = 0; i < opsets->count; i++) {
        const rondo__onnx_opset *other = &opsets->entries[i];
        if (other->domain.size == opset.domain.size &&
            (!opset.domain.size || memcmp(other->domain.data, opset.domain.data, opset.domain.size) == 0))
            return RONDO__FAIL(CORRUPT, FILE, "it imports operator set '%s' twice", shown);
    }
    opsets->entries[opsets->count++] = opset;
    if (!opset.domain.size) opsets->onnx = opset.version;
    return RONDO_OK;
}

rondo_status rondo__onnx_function_key(rondo__onnx_context *context, rondo__pb_bytes domain, rondo__pb_bytes name,
                                      rondo__pb_bytes overload, rondo__pb_bytes *out_key) {
    const rondo__pb_bytes parts[] = {domain, name, overload};
    const uint32_t count = overload.size ? 3 : 2;
    void *memory = NULL;
    if (rondo__import_is(domain, "ai.onnx")) domain.size = 0;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, domain.size + name.size + overload.size + 4, &memory));
    uint8_t *at = memory;
    for (uint32_t i = 0; i < count; i++) {
        const size_t size = i ? parts[i].size : domain.size;
        if (i) *at++ = ':', *at++ = ':';
        if (size) memcpy(at, parts[i].data, size);
        at += size;
    }
    *out_key = (rondo__pb_bytes){memory, (size_t)(at - (uint8_t *)memory)};
    return RONDO_OK;
}

/* Only the name: its body is read when it is called. */
rondo_status rondo__onnx_function_add(rondo__onnx_context *context, const rondo__pb_reader *reader) {
    rondo__pb_bytes name = {0}, domain = {0}, overload = {0}, key;
    rondo__onnx_function function = {.reader = *reader};
    rondo__pb_reader walk = *reader;
    rondo__pb_field field;
    while (rondo__pb_next(&walk, &field)) {
        rondo__pb_bytes *text = field.number == FUNCTION_NAME       ? &name
                                : field.number == FUNCTION_DOMAIN   ? &domain
                                : field.number == FUNCTION_OVERLOAD ? &overload
                                                                    : NULL;
        if (!text) continue;
        RONDO__TRY(rondo__pb_once(&walk, &field));
        RONDO__TRY(rondo__pb_get_text(&walk, &field, text));
    }
    RONDO__TRY(rondo__pb_end(&walk));
    RONDO__TRY(rondo__onnx_function_key(context, domain, name, overload, &key));
    RONDO__TRY(rondo__import_text(&context->scratch, key, &function.name));
    uint32_t before;
    RONDO__TRY(rondo__import_names_insert(&context->functions, key, (uint32_t)context->function_list.count, &before));
    if (before != RONDO__IMPORT_NAMES_NONE)
        return RONDO__FAIL(CORRUPT, FILE, "the model has two functions '%.200s'", function.name);
    return rondo__buffer_append(&context->function_list, &function, 1);
}

/* ------------------------------------------------------------------------------------------------------ the body */

typedef struct function_list {
    uint32_t field;
    const rondo__pb_bytes **out;
    uint32_t *count;
} function_list;

static rondo_status function_read(rondo__onnx_context *context, rondo__onnx_function *function) {
    uint32_t opsets = 0;
    const function_list lists[] = {{FUNCTION_INPUT, &function->inputs, &function->input_count},
                                   {FUNCTION_OUTPUT, &function->outputs, &function->output_count},
                                   {FUNCTION_ATTRIBUTE, &function->attributes, &function->attribute_count},
                                   {FUNCTION_DEFAULT, &function->defaults, &function->default_count},
                                   {FUNCTION_NODE, &function->nodes, &function->node_count},
                                   {FUNCTION_OPSET, NULL, &opsets}};
    enum { LISTS = sizeof lists / sizeof *lists };
    rondo__pb_reader reader = function->reader;
    rondo__pb_field field;
    rondo__pb_bytes *at[LISTS] = {0};
    void *memory = NULL;
    while (rondo__pb_next(&reader, &field))
        for (uint32_t i = 0; i < LISTS; i++) *lists[i].count += field.number == lists[i].field;
    RONDO__TRY(rondo__pb_end(&reader));
    for (uint32_t i = 0; i + 1 < LISTS; i++) {
        RONDO__TRY(rondo__arena_allocate_array(&context->scratch, *lists[i].count, sizeof(rondo__pb_bytes), &memory));
        *lists[i].out = at[i] = memory;
    }
    if (opsets > RONDO__ONNX_OPSETS_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "it imports more than %u operator sets", RONDO__ONNX_OPSETS_MAX);
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, opsets, sizeof(rondo__onnx_opset), &memory));
    function->opsets.entries = memory;
    reader = function->reader;
    while (rondo__pb_next(&reader, &field)) {
        if (field.number == FUNCTION_OPSET) {
            rondo__pb_reader opset;
            RONDO__TRY(rondo__pb_enter(&reader, &field, &opset));
            RONDO__TRY(rondo__onnx_opset_read(context, &opset, &function->opsets));
        }
        for (uint32_t i = 0; i + 1 < LISTS; i++) {
            if (field.number != lists[i].field) continue;
            const bool name = i < 3;
            RONDO__TRY(name ? rondo__pb_get_text(&reader, &field, at[i]) : rondo__pb_get_bytes(&reader, &field, at[i]));
            at[i]++;
        }
    }
    RONDO__TRY(rondo__pb_end(&reader));
    const int64_t version = function->opsets.onnx;
    if (version && (version < RONDO__ONNX_OPSET_MIN || version > RONDO__ONNX_OPSET_MAX))
        return RONDO__FAIL(UNSUPPORTED, CONVERTER,
                           "it uses version %lld of ONNX's operators; versions %d to %d are read", (long long)version,
                           RONDO__ONNX_OPSET_MIN, RONDO__ONNX_OPSET_MAX);
    function->read = true;
    return RONDO_OK;
}

static bool function_names(const rondo__onnx_function *function, const char *attribute) {
    for (uint32_t i = 0; i < function->attribute_count; i++)
        if (rondo__import_is(function->attributes[i], attribute)) return true;
    return false;
}

/* What the call gives, then the defaults of what it does not. Both are read outside the function, so that neither refers to
 * an attribute of the function itself. */
static rondo_status function_attributes(rondo__onnx_node *node) {
    const rondo__onnx_function *function = node->function;
    const uint32_t given = node->attribute_message_count;
    if (given > RONDO__ONNX_ATTRIBUTES_MAX || function->default_count > RONDO__ONNX_ATTRIBUTES_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: more than %u attributes", rondo__onnx_label(node),
                           RONDO__ONNX_ATTRIBUTES_MAX);
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&node->scope->context->scratch, (size_t)given + function->default_count,
                                           sizeof(rondo_attribute), &memory));
    node->attributes = memory;
    for (uint32_t i = 0; i < given + function->default_count; i++) {
        rondo_attribute *attribute = &node->attributes[node->attribute_count];
        const bool usual = i >= given;
        RONDO__TRY(rondo__onnx_attribute_read(node, usual ? function->defaults[i - given] : node->attribute_messages[i],
                                              false, attribute));
        if (node->refused) return RONDO_OK;
        if (!attribute->name) continue;
        if (attribute->kind == RONDO_ATTRIBUTE_GRAPH) return rondo__onnx_refuse(node, "a graph given to a function");
        const bool there = rondo__onnx_attribute(node, attribute->name) != NULL;
        if (there && usual) continue;
        if (there)
            return RONDO__FAIL(CORRUPT, FILE, "node %s gives attribute '%.100s' twice", rondo__onnx_label(node),
                               attribute->name);
        node->attribute_count++;
    }
    /* Defaults are names that it has, too. */
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        bool known = function_names(function, node->attributes[i].name);
        for (uint32_t d = 0; d < function->default_count && !known; d++) {
            rondo__pb_reader reader;
            RONDO__TRY(rondo__pb_enter_bytes(&function->reader, function->defaults[d], &reader));
            known = rondo__import_is(rondo__import_field_text(reader, 1), node->attributes[i].name);
        }
        if (!known)
            return RONDO__FAIL(CORRUPT, FILE, "node %s: function '%.100s' has no attribute '%.100s'",
                               rondo__onnx_label(node), function->name, node->attributes[i].name);
    }
    return RONDO_OK;
}

static const rondo__onnx_node *function_around(const rondo__onnx_scope *scope) {
    while (scope && !scope->call) scope = scope->parent;
    return scope ? scope->call : NULL;
}

bool rondo__onnx_function_is_around(const rondo__onnx_scope *scope) { return function_around(scope) != NULL; }

const rondo_attribute *rondo__onnx_function_attribute(const rondo__onnx_scope *scope, rondo__pb_bytes name) {
    const rondo__onnx_node *call = function_around(scope);
    for (uint32_t i = 0; call && i < call->attribute_count; i++)
        if (rondo__import_is(name, call->attributes[i].name)) return &call->attributes[i];
    return NULL;
}

/* Which value a name of the body is: that of an output of the call, or one of its own, under a name that no other has. */
static rondo_status function_define(rondo__onnx_scope *scope, const rondo__import_names *results, rondo__pb_bytes name,
                                    rondo_ir_value *out_value) {
    rondo__onnx_context *context = scope->context;
    uint32_t before;
    *out_value = rondo__import_names_find(results, name);
    if (*out_value == RONDO__IMPORT_NAMES_NONE) {
        const char *text;
        RONDO__TRY(rondo__import_text(&context->scratch, name, &text));
        RONDO__TRY(rondo__ir_value_add(scope->graph, NULL, text, NULL, out_value));
    }
    RONDO__TRY(rondo__import_names_insert(&scope->values, name, *out_value, &before));
    if (before == RONDO__IMPORT_NAMES_NONE) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "it defines '%s' a second time", rondo__onnx_shown(context, name));
}

static rondo_status function_constant(rondo__onnx_node *node) {
    const rondo__ir_constant *constant = NULL;
    rondo__ir_type type;
    RONDO__TRY(rondo__onnx_constant_node(node, &constant));
    node->done = true;
    if (!constant) return RONDO_OK;
    rondo_ir_graph *graph = node->scope->graph;
    rondo__ir_value_data *data =
        rondo__ir_value_at(graph, rondo__import_names_find(&node->scope->values, node->output_names[0]));
    RONDO__TRY(rondo__ir_type_from_dims(graph, constant->dtype, constant->rank, constant->dims, &type));
    data->type = type;
    data->constant = constant;
    return RONDO_OK;
}

/* An output that is an input gets a node, since the call's output is a value of its own. */
static rondo_status function_results(rondo__onnx_node *call, rondo__onnx_scope *scope) {
    const rondo__onnx_function *function = call->function;
    for (uint32_t i = 0; i < call->output_count; i++) {
        rondo_ir_value value = rondo__import_names_find(&scope->values, function->outputs[i]);
        rondo_ir_node made;
        if (value == RONDO__IMPORT_NAMES_NONE || value == RONDO__ONNX_ABSENT)
            return RONDO__FAIL(CORRUPT, FILE, "its output '%s' is not made",
                               rondo__onnx_shown(scope->context, function->outputs[i]));
        if (value == call->outputs[i] || call->outputs[i] == RONDO_IR_NONE) continue;
        RONDO__TRY(rondo__ir_node_add(scope->graph, "Identity", NULL, &value, 1, &call->outputs[i], 1, NULL, 0, &made));
    }
    return RONDO_OK;
}

static rondo_status function_body(rondo__onnx_node *call, rondo__onnx_scope *scope, rondo__import_names *results) {
    const rondo__onnx_function *function = call->function;
    rondo__onnx_context *context = scope->context;
    uint32_t before;
    void *memory = NULL;
    for (uint32_t i = 0; i < function->input_count; i++) {
        const bool given = i < call->input_count && call->inputs[i] != RONDO_IR_NONE;
        RONDO__TRY(rondo__import_names_insert(&scope->values, function->inputs[i],
                                              given ? call->inputs[i] : RONDO__ONNX_ABSENT, &before));
        if (before != RONDO__IMPORT_NAMES_NONE)
            return RONDO__FAIL(CORRUPT, FILE, "it has two inputs '%s'",
                               rondo__onnx_shown(context, function->inputs[i]));
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i] == RONDO_IR_NONE) continue;
        RONDO__TRY(rondo__import_names_insert(results, function->outputs[i], call->outputs[i], &before));
        if (before != RONDO__IMPORT_NAMES_NONE)
            return RONDO__FAIL(CORRUPT, FILE, "it has two outputs '%s'",
                               rondo__onnx_shown(context, function->outputs[i]));
    }
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, function->node_count, sizeof(rondo__onnx_node), &memory));
    rondo__onnx_node *nodes = memory;
    for (uint32_t i = 0; i < function->node_count; i++) {
        rondo__onnx_node *node = &nodes[i];
        rondo__pb_reader reader;
        rondo_ir_value value;
        RONDO__TRY(rondo__pb_enter_bytes(&function->reader, function->nodes[i], &reader));
        RONDO__TRY(rondo__onnx_node_read(scope, &reader, node));
        for (uint32_t o = 0; o < node->output_name_count; o++)
            if (node->output_names[o].size)
                RONDO__IMPORT_TRY(function_define(scope, results, node->output_names[o], &value), "node %s",
                                  rondo__onnx_label(node));
        if (!node->function && !node->domain.size && rondo__import_is(node->type, "Constant"))
            RONDO__TRY(function_constant(node));
    }
    RONDO__TRY(function_results(call, scope));
    for (uint32_t i = 0; i < function->node_count; i++)
        if (!nodes[i].done) RONDO__TRY(rondo__onnx_node_build(&nodes[i]));
    return RONDO_OK;
}

static rondo_status function_inline(rondo__onnx_node *call) {
    rondo__onnx_context *context = call->scope->context;
    rondo__onnx_scope scope = {
        .context = context, .graph = call->scope->graph, .call = call, .depth = call->scope->depth};
    rondo__import_names results;
    const rondo__onnx_opsets *outside = context->opsets;
    rondo__import_names_init(&scope.values, &context->allocator);
    rondo__import_names_init(&results, &context->allocator);
    context->opsets = &call->function->opsets;
    call->function->open = true;
    context->calls++;
    rondo_status status = function_body(call, &scope, &results);
    context->calls--;
    call->function->open = false;
    context->opsets = outside;
    rondo__import_names_deinit(&results);
    rondo__import_names_deinit(&scope.values);
    return status;
}

rondo_status rondo__onnx_function_call(rondo__onnx_node *node) {
    rondo__onnx_function *function = node->function;
    rondo__onnx_context *context = node->scope->context;
    if (function->open)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: function '%.200s' calls itself", rondo__onnx_label(node),
                           function->name);
    if (context->calls == RONDO__ONNX_CALLS_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: functions are called at a depth of more than %u",
                           rondo__onnx_label(node), RONDO__ONNX_CALLS_MAX);
    if (!function->read) RONDO__IMPORT_TRY(function_read(context, function), "function '%.200s'", function->name);
    if (node->input_count > function->input_count || node->output_count > function->output_count)
        return RONDO__FAIL(CORRUPT, FILE, "node %s has %u inputs and %u outputs, its function %u and %u",
                           rondo__onnx_label(node), node->input_count, node->output_count, function->input_count,
                           function->output_count);
    if (function->node_count > RONDO__ONNX_INLINED_MAX - context->inlined)
        return RONDO__FAIL(OUT_OF_RANGE, FILE, "node %s: calls of functions make more than %u nodes",
                           rondo__onnx_label(node), RONDO__ONNX_INLINED_MAX);
    context->inlined += function->node_count;
    RONDO__TRY(function_attributes(node));
    if (node->refused) return RONDO_OK;
    rondo_status status = function_inline(node);
    if (!status || context->blamed) return status;
    context->blamed = true; /* the innermost is told: all around it would push the reason out of the message */
    return rondo__import_within(status, "function '%.200s'", function->name);
}
