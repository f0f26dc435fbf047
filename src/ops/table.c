/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of prototypes, look-up, and checking a node against its prototype. */
#include <string.h>

#include "ops/infer.h"

static const rondo__ops_prototype *const ops_table[] = {
#define OPS_TABLE_ENTRY(name) &rondo__ops_##name,
    RONDO__OPS_LIST(OPS_TABLE_ENTRY)
#undef OPS_TABLE_ENTRY
};

const rondo__ops_prototype *rondo__ops_at(uint32_t index) {
    return index < RONDO__OPS_COUNT(ops_table) ? ops_table[index] : NULL;
}

const rondo__ops_prototype *rondo__ops_find(const char *operator_name) {
    if (!operator_name) return NULL;
    size_t low = 0, high = RONDO__OPS_COUNT(ops_table);
    while (low < high) {
        size_t middle = (low + high) / 2u;
        int order = strcmp(operator_name, ops_table[middle]->name);
        if (order == 0) return ops_table[middle];
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    return NULL;
}

static const char *const ops_kind_names[] = {"nothing", "an int",  "a float",  "a string", "ints",
                                             "floats",  "strings", "a tensor", "a graph"};

static const char *ops_kind_name(rondo_attribute_kind kind) {
    return kind >= 0 && kind < (int32_t)RONDO__OPS_COUNT(ops_kind_names) ? ops_kind_names[kind] : "unknown";
}

#define OPS_CHECK_FAIL(layer, node, prototype, format, ...)                                                     \
    rondo__status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__, "node '%s' (%s): " format, node, \
                       (prototype)->name, __VA_ARGS__)

/* Of a prototype's attributes, which is meant; the count when none is. */
static uint32_t ops_attribute_index(const rondo__ops_prototype *prototype, const char *name) {
    uint32_t i = 0;
    while (i < prototype->attribute_count && strcmp(prototype->attributes[i].name, name) != 0) i++;
    return i;
}

bool rondo__ops_attribute_present(const rondo_attribute *attribute) {
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_STRING: return attribute->value.s.data != NULL;
    case RONDO_ATTRIBUTE_INTS:
    case RONDO_ATTRIBUTE_FLOATS:
    case RONDO_ATTRIBUTE_STRINGS: return !attribute->count || attribute->value.ints != NULL;
    case RONDO_ATTRIBUTE_TENSOR: return attribute->value.tensor != NULL;
    default: return true;
    }
}

rondo_status rondo__ops_check_attributes(const rondo__ops_prototype *prototype, const char *node,
                                         const rondo_attribute *attributes, uint32_t count, bool internal,
                                         rondo_layer layer) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = attributes[i].name ? attributes[i].name : "";
        if (strncmp(name, "rondo.", 6) == 0 && internal) continue;
        if (strncmp(name, RONDO__OPS_NOTE, sizeof RONDO__OPS_NOTE - 1u) == 0) continue;
        uint32_t at = ops_attribute_index(prototype, name);
        if (at == prototype->attribute_count) {
            return OPS_CHECK_FAIL(layer, node, prototype, "there is no attribute '%s'", name);
        }
        const rondo__ops_attribute *known = &prototype->attributes[at];
        if (attributes[i].kind != known->kind) {
            return OPS_CHECK_FAIL(layer, node, prototype, "attribute '%s' is %s, it must be %s", name,
                                  ops_kind_name(attributes[i].kind), ops_kind_name(known->kind));
        }
        if (!rondo__ops_attribute_present(&attributes[i])) {
            return OPS_CHECK_FAIL(layer, node, prototype, "attribute '%s' has no value", name);
        }
        if (seen & 1u << at) return OPS_CHECK_FAIL(layer, node, prototype, "attribute '%s' is there twice", name);
        seen |= 1u << at;
    }
    for (uint32_t i = 0; i < prototype->attribute_count; i++) {
        if (prototype->attributes[i].required && !(seen & 1u << i)) {
            return OPS_CHECK_FAIL(layer, node, prototype, "attribute '%s' is missing", prototype->attributes[i].name);
        }
    }
    return RONDO_OK;
}

static rondo_status ops_check_type(const rondo__ops_prototype *prototype, const char *node,
                                   const rondo__ops_operand *operand, uint32_t index, const rondo__ir_type *type,
                                   rondo_dtype *variables) {
    if (type->kind != RONDO__IR_TENSOR || type->dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
    if (!(operand->types & 1u << type->dtype)) {
        return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node, prototype, "input %u '%s' cannot be %s", index,
                              operand->name, rondo_dtype_name(type->dtype));
    }
    if (!operand->type_variable) return RONDO_OK;
    rondo_dtype *variable = &variables[(uint8_t)operand->type_variable & 127u];
    if (*variable && *variable != type->dtype) {
        return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node, prototype,
                              "input %u '%s' is %s where the others are %s; cast one of them", index, operand->name,
                              rondo_dtype_name(type->dtype), rondo_dtype_name(*variable));
    }
    *variable = type->dtype;
    return RONDO_OK;
}

static rondo_status ops_check_inputs(const rondo__ops_prototype *prototype, const rondo_ir_graph *graph,
                                     const rondo__ir_node_data *node, bool internal) {
    rondo_dtype variables[128] = {0};
    uint32_t known = prototype->input_count;
    bool variadic = known && prototype->inputs[known - 1u].variadic;
    if (known && prototype->inputs[known - 1u].internal && !internal) known--;
    if (node->input_count > known && !variadic) {
        return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node->name, prototype, "%u inputs, there are at most %u",
                              node->input_count, known);
    }
    uint32_t count = node->input_count > known ? node->input_count : known;
    for (uint32_t i = 0; i < count; i++) {
        const rondo__ops_operand *operand = &prototype->inputs[i < known ? i : known - 1u];
        rondo_ir_value value = i < node->input_count ? node->inputs[i] : RONDO_IR_NONE;
        if (value != RONDO_IR_NONE) {
            const rondo__ir_type *type = &rondo__ir_value_at(graph, value)->type;
            RONDO__TRY(ops_check_type(prototype, node->name, operand, i, type, variables));
        } else if (!operand->optional && !(operand->variadic == RONDO__OPS_ANY_NUMBER && i >= node->input_count)) {
            return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node->name, prototype, "input %u '%s' is missing", i,
                                  operand->name);
        }
    }
    return RONDO_OK;
}

static rondo_status ops_check_outputs(const rondo__ops_prototype *prototype, const rondo__ir_node_data *node) {
    uint32_t known = prototype->output_count;
    bool variadic = known && prototype->outputs[known - 1u].variadic;
    if (!node->output_count || (node->output_count > known && !variadic)) {
        return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node->name, prototype, "%u outputs, there are 1 to %u%s",
                              node->output_count, known, variadic ? " and more" : "");
    }
    for (uint32_t i = 0; i < node->output_count && i < known; i++) {
        const rondo__ops_operand *operand = &prototype->outputs[i];
        if (node->outputs[i] == RONDO_IR_NONE && !operand->optional && !operand->variadic) {
            return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node->name, prototype, "output %u '%s' is missing", i,
                                  operand->name);
        }
    }
    return RONDO_OK;
}

static rondo_status ops_check_branches(const rondo__ops_prototype *prototype, const rondo_ir_graph *graph,
                                       const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].kind != RONDO_ATTRIBUTE_GRAPH) continue;
        const rondo_ir_graph *branch = node->attributes[i].value.graph;
        if (!branch || branch->parent != graph) {
            return OPS_CHECK_FAIL(RONDO_LAYER_PROTOTYPE, node->name, prototype,
                                  "attribute '%s' is not a branch of this graph", node->attributes[i].name);
        }
    }
    return RONDO_OK;
}

static rondo_status ops_check(const rondo_ir_graph *graph, const rondo__ir_node_data *node, bool internal) {
    const rondo__ops_prototype *prototype = rondo__ops_lookup(graph, node->operator_name);
    if (!prototype) {
        return RONDO__FAIL(NOT_FOUND, PROTOTYPE, "node '%s': there is no operator '%s'", node->name,
                           node->operator_name);
    }
    RONDO__TRY(ops_check_inputs(prototype, graph, node, internal));
    RONDO__TRY(ops_check_outputs(prototype, node));
    RONDO__TRY(rondo__ops_check_attributes(prototype, node->name, node->attributes, node->attribute_count, internal,
                                           RONDO_LAYER_PROTOTYPE));
    return ops_check_branches(prototype, graph, node);
}

rondo_status rondo__ops_check_node(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    return ops_check(graph, node, true);
}

rondo_status rondo__ops_check_model_node(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    return ops_check(graph, node, false);
}
#undef OPS_CHECK_FAIL
