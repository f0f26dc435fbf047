/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes and their attributes. All that a node mentions is copied into the graph's arena. */
#include <string.h>

#include "base/checked.h"
#include "ir/private.h"

static rondo_status ir_node_name(rondo_ir_graph *graph, const char *operator_name, const char *name,
                                 const char **out_name) {
    const rondo__ir_table *table = &rondo__ir_names_of(graph)->nodes;
    if (!name || !*name) return rondo__ir_name_make(graph, table, operator_name, out_name);
    /* Models repeat the names of nodes; nothing refers to a node by name but messages and dumps. */
    if (rondo__ir_table_find(table, name) != RONDO_IR_NONE) return rondo__ir_name_make(graph, table, name, out_name);
    return rondo__arena_string(&graph->arena, name, strlen(name), out_name);
}

/* A graph has many nodes of few operators: each operator's name is kept once. */
static rondo_status ir_node_operator_name(rondo_ir_graph *graph, const char *operator_name, const char **out_name) {
    rondo__ir_table *table = &rondo__ir_names_of(graph)->operators;
    *out_name = rondo__ir_table_key(table, operator_name);
    if (*out_name) return RONDO_OK;
    RONDO__TRY(rondo__ir_table_reserve(table));
    RONDO__TRY(rondo__arena_string(&graph->arena, operator_name, strlen(operator_name), out_name));
    rondo__ir_table_insert(table, *out_name, 0);
    return RONDO_OK;
}

static rondo_status ir_node_check(const rondo_ir_graph *graph, const char *name, const rondo_ir_value *inputs,
                                  uint32_t input_count, const rondo_ir_value *outputs, uint32_t output_count) {
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i] != RONDO_IR_NONE && inputs[i] >= graph->values.count) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': input %u is value %u, which does not exist",
                               name, i, inputs[i]);
        }
    }
    for (uint32_t i = 0; i < output_count; i++) {
        if (outputs[i] == RONDO_IR_NONE) continue;
        if (outputs[i] >= graph->values.count) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': output %u is value %u, which does not exist",
                               name, i, outputs[i]);
        }
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, outputs[i]);
        if (data->producer != RONDO_IR_NONE || data->constant || data->outer != RONDO_IR_NONE ||
            data->flags & RONDO__IR_VALUE_INPUT) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                               "node '%s': output '%s' is made elsewhere already; give every value one origin", name,
                               data->name);
        }
    }
    return RONDO_OK;
}

/* The same value twice among the outputs is found here, and undone. */
static rondo_status ir_node_own_outputs(rondo_ir_graph *graph, rondo_ir_node node, const char *name,
                                        const rondo_ir_value *outputs, uint32_t output_count) {
    for (uint32_t i = 0; i < output_count; i++) {
        if (outputs[i] == RONDO_IR_NONE) continue;
        rondo__ir_value_data *data = rondo__ir_value_at(graph, outputs[i]);
        if (data->producer != RONDO_IR_NONE) {
            rondo_status status =
                RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' makes value '%s' twice", name, data->name);
            while (i-- > 0) {
                if (outputs[i] == RONDO_IR_NONE) continue;
                rondo__ir_value_at(graph, outputs[i])->producer = RONDO_IR_NONE;
                rondo__ir_value_at(graph, outputs[i])->producer_output = 0;
            }
            return status;
        }
        data->producer = node;
        data->producer_output = i;
    }
    return RONDO_OK;
}

static rondo_status ir_node_copy_values(rondo_ir_graph *graph, const rondo_ir_value *values, uint32_t count,
                                        rondo_ir_value **out_values) {
    void *pointer;
    RONDO__TRY(rondo__arena_copy(&graph->arena, values, (size_t)count * sizeof *values, &pointer));
    *out_values = pointer;
    return RONDO_OK;
}

rondo_status rondo__ir_node_add(rondo_ir_graph *graph, const char *operator_name, const char *name,
                                const rondo_ir_value *inputs, uint32_t input_count, const rondo_ir_value *outputs,
                                uint32_t output_count, const rondo_attribute *attributes, uint32_t attribute_count,
                                rondo_ir_node *out_node) {
    if (!operator_name || !*operator_name) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s' names no operator", name ? name : "");
    }
    rondo__ir_node_data data = {
        .input_count = input_count, .output_count = output_count, .attribute_count = attribute_count};
    rondo__ir_table *table = &rondo__ir_names_of(graph)->nodes;
    RONDO__TRY(ir_node_check(graph, name && *name ? name : operator_name, inputs, input_count, outputs, output_count));
    RONDO__TRY(ir_node_operator_name(graph, operator_name, &data.operator_name));
    RONDO__TRY(ir_node_name(graph, operator_name, name, &data.name));
    RONDO__TRY(ir_node_copy_values(graph, inputs, input_count, &data.inputs));
    RONDO__TRY(ir_node_copy_values(graph, outputs, output_count, &data.outputs));
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, attribute_count, sizeof *attributes, &pointer));
    data.attributes = pointer;
    for (uint32_t i = 0; i < attribute_count; i++) {
        RONDO__TRY_NOTE(rondo__ir_attribute_copy(graph, &attributes[i], &data.attributes[i]), "in node '%s'",
                        data.name);
    }
    RONDO__TRY(rondo__ir_table_reserve(table));
    RONDO__TRY(rondo__buffer_reserve(&graph->nodes, graph->nodes.count + 1u));
    rondo_ir_node node = (rondo_ir_node)graph->nodes.count;
    RONDO__TRY(ir_node_own_outputs(graph, node, data.name, outputs, output_count));
    RONDO__IGNORE(rondo__buffer_append(&graph->nodes, &data, 1)); /* room was made above */
    rondo__ir_table_insert(table, data.name, node);
    if (out_node) *out_node = node;
    return RONDO_OK;
}

/* Element i of a strided view, counted in row-major order. */
static size_t ir_view_offset(const rondo_tensor_view *view, int64_t i) {
    int64_t offset = 0;
    for (int32_t axis = view->rank; axis-- > 0;) {
        offset += (i % view->shape[axis]) * view->strides[axis];
        i /= view->shape[axis];
    }
    return (size_t)offset;
}

static rondo_status ir_attribute_copy_tensor(rondo_ir_graph *graph, const rondo_tensor_view *view,
                                             const rondo_tensor_view **out_view) {
    if (!view) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "a tensor attribute holds no tensor");
    int64_t elements = 0;
    size_t bytes = 0;
    RONDO__TRY(rondo__ir_data_size(view->dtype, view->rank, view->shape, &elements, &bytes));
    if (view->device_type > 1)
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "a tensor attribute must lie in host memory");
    if (bytes && !view->data) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "a tensor attribute has no data");
    size_t size = elements ? bytes / (size_t)elements : 0;
    if (view->strides && elements && size * (size_t)elements != bytes) {
        return RONDO__FAIL(UNSUPPORTED, PROTOTYPE, "a tensor attribute of %s must be compact",
                           rondo_dtype_name(view->dtype));
    }
    void *pointer;
    RONDO__TRY(rondo__arena_allocate(&graph->arena, sizeof *view, &pointer));
    rondo_tensor_view *copy = pointer;
    *copy = (rondo_tensor_view){.device_type = 1, .rank = view->rank, .dtype = view->dtype};
    RONDO__TRY(rondo__arena_copy(&graph->arena, view->shape, (size_t)view->rank * sizeof *view->shape, &pointer));
    copy->shape = pointer;
    const char *data = bytes ? (const char *)view->data + view->byte_offset : NULL;
    const void *kept = NULL;
    if (view->strides && elements) {
        RONDO__TRY(rondo__arena_allocate_aligned(&graph->arena, bytes, 64, &pointer));
        for (int64_t i = 0; i < elements; i++) {
            memcpy((char *)pointer + (size_t)i * size, data + ir_view_offset(view, i) * size, size);
        }
        data = pointer; /* strings still belong to the caller: copied once more below */
    }
    RONDO__TRY(rondo__ir_data_copy(graph, view->dtype, elements, bytes, data, &kept));
    copy->data = (void *)(uintptr_t)kept;
    *out_view = copy;
    return RONDO_OK;
}

static rondo_status ir_attribute_copy_strings(rondo_ir_graph *graph, const rondo_string *strings, uint32_t count,
                                              const rondo_string **out_strings) {
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, count, sizeof *strings, &pointer));
    rondo_string *copy = pointer;
    for (uint32_t i = 0; i < count; i++) {
        const char *text = strings[i].size ? strings[i].data : "";
        if (!text) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "string %u of an attribute has no bytes", i);
        copy[i].size = strings[i].size;
        RONDO__TRY(rondo__arena_string(&graph->arena, text, strings[i].size, &copy[i].data));
    }
    *out_strings = copy;
    return RONDO_OK;
}

rondo_status rondo__ir_attribute_copy(rondo_ir_graph *graph, const rondo_attribute *attribute,
                                      rondo_attribute *out_copy) {
    if (!attribute->name || !*attribute->name) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "an attribute needs a name");
    }
    rondo_attribute copy = *attribute;
    void *pointer;
    bool listed = attribute->kind == RONDO_ATTRIBUTE_INTS || attribute->kind == RONDO_ATTRIBUTE_FLOATS ||
                  attribute->kind == RONDO_ATTRIBUTE_STRINGS;
    if (listed && attribute->count && !attribute->value.ints) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "attribute '%s' has no elements", attribute->name);
    }
    RONDO__TRY(rondo__arena_string(&graph->arena, attribute->name, strlen(attribute->name), &copy.name));
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_INT:
    case RONDO_ATTRIBUTE_FLOAT:
    case RONDO_ATTRIBUTE_GRAPH: copy.count = 1; break;
    case RONDO_ATTRIBUTE_STRING: {
        const rondo_string *strings = NULL;
        copy.count = 1;
        RONDO__TRY(ir_attribute_copy_strings(graph, &attribute->value.s, 1, &strings));
        copy.value.s = strings[0];
        break;
    }
    case RONDO_ATTRIBUTE_INTS:
        RONDO__TRY(rondo__arena_copy(&graph->arena, attribute->value.ints, copy.count * sizeof(int64_t), &pointer));
        copy.value.ints = pointer;
        break;
    case RONDO_ATTRIBUTE_FLOATS:
        RONDO__TRY(rondo__arena_copy(&graph->arena, attribute->value.floats, copy.count * sizeof(float), &pointer));
        copy.value.floats = pointer;
        break;
    case RONDO_ATTRIBUTE_STRINGS:
        RONDO__TRY(ir_attribute_copy_strings(graph, attribute->value.strings, copy.count, &copy.value.strings));
        break;
    case RONDO_ATTRIBUTE_TENSOR:
        copy.count = 1;
        RONDO__TRY_NOTE(ir_attribute_copy_tensor(graph, attribute->value.tensor, &copy.value.tensor),
                        "in attribute '%s'", copy.name);
        break;
    default:
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "attribute '%s' has no kind that exists (%d)", attribute->name,
                           (int)attribute->kind);
    }
    *out_copy = copy;
    return RONDO_OK;
}

rondo_status rondo__ir_node_rename(rondo_ir_graph *graph, rondo_ir_node node, const char *name) {
    rondo__ir_table *table = &rondo__ir_names_of(graph)->nodes;
    rondo__ir_node_data *data = rondo__ir_node_at(graph, node);
    if (!name || !*name)
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': its new name is empty", data->name);
    if (strcmp(name, data->name) == 0) return RONDO_OK;
    /* A name that a node had before is not given out again: nothing is ever taken out of the table. */
    if (rondo__ir_table_find(table, name) != RONDO_IR_NONE) {
        return RONDO__FAIL(ALREADY_EXISTS, PROTOTYPE, "graph '%s' already had a node '%s'", graph->name, name);
    }
    const char *kept;
    RONDO__TRY(rondo__arena_string(&graph->arena, name, strlen(name), &kept));
    RONDO__TRY(rondo__ir_table_reserve(table));
    rondo__ir_table_insert(table, kept, node);
    data->name = kept;
    return RONDO_OK;
}

static rondo_status ir_attribute_put(rondo_ir_graph *graph, const rondo_attribute *attribute, const char *owner,
                                     rondo_attribute **attributes, uint32_t *attribute_count) {
    rondo_attribute copy;
    RONDO__TRY_NOTE(rondo__ir_attribute_copy(graph, attribute, &copy), "in '%s'", owner);
    for (uint32_t i = 0; i < *attribute_count; i++) {
        if (strcmp((*attributes)[i].name, copy.name) != 0) continue;
        (*attributes)[i] = copy;
        return RONDO_OK;
    }
    void *pointer;
    size_t count = (size_t)*attribute_count + 1u;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, count, sizeof copy, &pointer));
    rondo_attribute *grown = pointer;
    if (count > 1u) memcpy(grown, *attributes, (count - 1u) * sizeof copy);
    grown[count - 1u] = copy;
    *attributes = grown;
    *attribute_count = (uint32_t)count;
    return RONDO_OK;
}

rondo_status rondo__ir_attribute_set(rondo_ir_graph *graph, rondo_ir_node node, const rondo_attribute *attribute) {
    rondo__ir_node_data *data = rondo__ir_node_at(graph, node);
    return ir_attribute_put(graph, attribute, data->name, &data->attributes, &data->attribute_count);
}

rondo_status rondo__ir_value_attribute_set(rondo_ir_graph *graph, rondo_ir_value value,
                                           const rondo_attribute *attribute) {
    rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    if (attribute->kind == RONDO_ATTRIBUTE_GRAPH) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "value '%s': attribute '%s' is a graph, which only nodes hold",
                           data->name, attribute->name ? attribute->name : "");
    }
    return ir_attribute_put(graph, attribute, data->name, &data->attributes, &data->attribute_count);
}

const rondo_attribute *rondo__ir_attribute_find(const rondo__ir_node_data *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (strcmp(node->attributes[i].name, name) == 0) return &node->attributes[i];
    }
    return NULL;
}

int64_t rondo__ir_attribute_int(const rondo__ir_node_data *node, const char *name, int64_t otherwise) {
    const rondo_attribute *attribute = rondo__ir_attribute_find(node, name);
    return attribute && attribute->kind == RONDO_ATTRIBUTE_INT ? attribute->value.i : otherwise;
}

static bool ir_attribute_equals(const rondo_attribute *a, const rondo_attribute *b) {
    if (a->kind != b->kind || a->count != b->count || strcmp(a->name, b->name) != 0) return false;
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: return a->value.i == b->value.i;
    case RONDO_ATTRIBUTE_FLOAT: return memcmp(&a->value.f, &b->value.f, sizeof a->value.f) == 0;
    case RONDO_ATTRIBUTE_STRING:
        return a->value.s.size == b->value.s.size && memcmp(a->value.s.data, b->value.s.data, a->value.s.size) == 0;
    case RONDO_ATTRIBUTE_INTS:
        return a->count == 0 || memcmp(a->value.ints, b->value.ints, a->count * sizeof(int64_t)) == 0;
    case RONDO_ATTRIBUTE_FLOATS:
        return a->count == 0 || memcmp(a->value.floats, b->value.floats, a->count * sizeof(float)) == 0;
    default: return false;
    }
}

bool rondo__ir_attributes_equal(const rondo_attribute *a, uint32_t a_count, const rondo_attribute *b,
                                uint32_t b_count) {
    if (a_count != b_count) return false;
    for (uint32_t i = 0; i < a_count; i++) {
        if (!ir_attribute_equals(&a[i], &b[i])) return false;
    }
    return true;
}
