/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as the tokens of its file: what is dead, and values that nothing makes, are left out. */
#include <rondo/ir.h>
#include <string.h>

#include "ir/file.h"

static rondo_status ir_save_graph(rondo__ir_writer *w, const rondo_ir_graph *graph, uint32_t depth);

static rondo_status ir_save_name(rondo__ir_writer *w, const char *name) {
    RONDO__TRY(rondo__ir_write_space(w, " "));
    return rondo__ir_write_text(w, name, strlen(name));
}

static rondo_status ir_save_mark(rondo__ir_writer *w, rondo__ir_mark mark) {
    RONDO__TRY(rondo__ir_write_space(w, " "));
    return rondo__ir_write_mark(w, mark);
}

static rondo_status ir_save_comma(rondo__ir_writer *w, bool needed) {
    if (!needed) return RONDO_OK;
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_COMMA));
    return rondo__ir_write_space(w, " ");
}

static rondo_status ir_save_line(rondo__ir_writer *w, uint32_t depth, rondo__ir_mark mark) {
    RONDO__TRY(rondo__ir_write_space(w, "\n"));
    for (uint32_t i = 0; i < depth; i++) RONDO__TRY(rondo__ir_write_space(w, "    "));
    return rondo__ir_write_mark(w, mark);
}

static rondo_status ir_save_dim(rondo__ir_writer *w, const rondo__ir_dim *dim) {
    if (dim->value >= 0) return rondo__ir_write_int(w, dim->value);
    RONDO__TRY(dim->symbol ? rondo__ir_write_text(w, dim->symbol, strlen(dim->symbol))
                           : rondo__ir_write_mark(w, RONDO__IR_MARK_QUESTION));
    if (dim->minimum <= 0 && (dim->maximum <= 0 || dim->maximum == INT64_MAX)) return RONDO_OK;
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_OPEN));
    RONDO__TRY(rondo__ir_write_int(w, dim->minimum));
    RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_TO));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    RONDO__TRY(rondo__ir_write_int(w, dim->maximum));
    return rondo__ir_write_mark(w, RONDO__IR_MARK_CLOSE);
}

static rondo_status ir_save_tensor_type(rondo__ir_writer *w, rondo_dtype dtype, int32_t rank,
                                        const rondo__ir_dim *dims) {
    const char *name = rondo_dtype_name(dtype);
    RONDO__TRY(dtype == RONDO_DTYPE_UNDEFINED ? rondo__ir_write_mark(w, RONDO__IR_MARK_QUESTION)
                                              : rondo__ir_write_text(w, name, strlen(name)));
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_LEFT));
    if (rank < 0) RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_ANY));
    for (int32_t i = 0; i < rank; i++) {
        if (i) RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_COMMA));
        RONDO__TRY(ir_save_dim(w, &dims[i]));
    }
    return rondo__ir_write_mark(w, RONDO__IR_MARK_RIGHT);
}

/* Types nest a few levels, so this may recurse. */
static rondo_status ir_save_type(rondo__ir_writer *w, const rondo__ir_type *type) {
    if (type->kind == RONDO__IR_TENSOR) {
        RONDO__TRY(ir_save_tensor_type(w, type->dtype, type->rank, type->dims));
        if (type->format == RONDO_FORMAT_ND && type->origin_format == RONDO_FORMAT_ND) return RONDO_OK;
        RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_FORMAT));
        RONDO__TRY(rondo__ir_write_space(w, " "));
        RONDO__TRY(rondo__ir_write_int(w, type->format));
        RONDO__TRY(rondo__ir_write_space(w, " "));
        return rondo__ir_write_int(w, type->origin_format);
    }
    RONDO__TRY(
        rondo__ir_write_mark(w, type->kind == RONDO__IR_SEQUENCE ? RONDO__IR_MARK_SEQUENCE : RONDO__IR_MARK_OPTIONAL));
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_OPEN));
    if (type->element) RONDO__TRY(ir_save_type(w, type->element));
    return rondo__ir_write_mark(w, RONDO__IR_MARK_CLOSE);
}

static rondo_status ir_save_strings(rondo__ir_writer *w, const rondo_string *strings, size_t count) {
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_LEFT));
    for (size_t i = 0; i < count; i++) {
        RONDO__TRY(ir_save_comma(w, i > 0));
        RONDO__TRY(rondo__ir_write_text(w, strings[i].data ? strings[i].data : "", strings[i].size));
    }
    return rondo__ir_write_mark(w, RONDO__IR_MARK_RIGHT);
}

static rondo_status ir_save_data(rondo__ir_writer *w, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                 const void *data) {
    int64_t elements = 0;
    size_t bytes = 0;
    RONDO__TRY(rondo__ir_data_size(dtype, rank, dims, &elements, &bytes));
    RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_EQUALS));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    if (dtype == RONDO_DTYPE_STRING) return ir_save_strings(w, data, (size_t)elements);
    return rondo__ir_write_data(w, dtype, data, elements, bytes);
}

static rondo_status ir_save_numbers(rondo__ir_writer *w, const rondo_attribute *attribute) {
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_LEFT));
    for (uint32_t i = 0; i < attribute->count; i++) {
        RONDO__TRY(ir_save_comma(w, i > 0));
        RONDO__TRY(attribute->kind == RONDO_ATTRIBUTE_INTS ? rondo__ir_write_int(w, attribute->value.ints[i])
                                                           : rondo__ir_write_float(w, attribute->value.floats[i]));
    }
    return rondo__ir_write_mark(w, RONDO__IR_MARK_RIGHT);
}

static rondo_status ir_save_attribute_tensor(rondo__ir_writer *w, const rondo_tensor_view *view) {
    rondo__ir_dim dims[RONDO_RANK_MAX];
    for (int32_t i = 0; i < view->rank; i++) dims[i] = (rondo__ir_dim){.value = view->shape[i]};
    RONDO__TRY(ir_save_tensor_type(w, view->dtype, view->rank, dims));
    return ir_save_data(w, view->dtype, view->rank, view->shape,
                        view->data ? (const uint8_t *)view->data + view->byte_offset : NULL);
}

/* name kind value */
static rondo_status ir_save_attribute(rondo__ir_writer *w, const rondo_attribute *attribute, uint32_t depth) {
    static const rondo__ir_mark marks[] = {
        [RONDO_ATTRIBUTE_INT] = RONDO__IR_MARK_KIND_INT,       [RONDO_ATTRIBUTE_FLOAT] = RONDO__IR_MARK_KIND_FLOAT,
        [RONDO_ATTRIBUTE_STRING] = RONDO__IR_MARK_KIND_STRING, [RONDO_ATTRIBUTE_INTS] = RONDO__IR_MARK_KIND_INTS,
        [RONDO_ATTRIBUTE_FLOATS] = RONDO__IR_MARK_KIND_FLOATS, [RONDO_ATTRIBUTE_STRINGS] = RONDO__IR_MARK_KIND_STRINGS,
        [RONDO_ATTRIBUTE_TENSOR] = RONDO__IR_MARK_KIND_TENSOR};
    RONDO__TRY(ir_save_name(w, attribute->name));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    if (attribute->kind == RONDO_ATTRIBUTE_GRAPH) return ir_save_graph(w, attribute->value.graph, depth + 1u);
    RONDO__TRY(rondo__ir_write_mark(w, marks[attribute->kind]));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_INT: return rondo__ir_write_int(w, attribute->value.i);
    case RONDO_ATTRIBUTE_FLOAT: return rondo__ir_write_float(w, attribute->value.f);
    case RONDO_ATTRIBUTE_STRING: return rondo__ir_write_text(w, attribute->value.s.data, attribute->value.s.size);
    case RONDO_ATTRIBUTE_STRINGS: return ir_save_strings(w, attribute->value.strings, attribute->count);
    case RONDO_ATTRIBUTE_TENSOR: return ir_save_attribute_tensor(w, attribute->value.tensor);
    default: return ir_save_numbers(w, attribute);
    }
}

/* name type, and the notes of the value */
static rondo_status ir_save_value(rondo__ir_writer *w, const rondo__ir_value_data *data) {
    RONDO__TRY(rondo__ir_write_text(w, data->name, strlen(data->name)));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    RONDO__TRY(ir_save_type(w, &data->type));
    for (uint32_t i = 0; i < data->attribute_count; i++) {
        RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_NOTE));
        RONDO__TRY(ir_save_attribute(w, &data->attributes[i], 0));
    }
    return RONDO_OK;
}

static rondo_status ir_save_given(rondo__ir_writer *w, const rondo_ir_graph *graph, rondo_ir_value value,
                                  rondo__ir_mark mark, uint32_t depth) {
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    const rondo__ir_constant *constant = data->constant;
    RONDO__TRY(ir_save_line(w, depth, mark));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    RONDO__TRY(ir_save_value(w, data));
    if (mark == RONDO__IR_MARK_OUTER) {
        RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_EQUALS));
        return ir_save_name(w, rondo__ir_value_at(graph->parent, data->outer)->name);
    }
    if (!constant) return RONDO_OK;
    int64_t known[RONDO_RANK_MAX];
    if (!rondo__ir_type_concrete(&data->type, known)) {
        rondo__ir_dim dims[RONDO_RANK_MAX];
        for (int32_t i = 0; i < constant->rank; i++) dims[i] = (rondo__ir_dim){.value = constant->dims[i]};
        RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_KIND_TENSOR));
        RONDO__TRY(rondo__ir_write_space(w, " "));
        RONDO__TRY(ir_save_tensor_type(w, constant->dtype, constant->rank, dims));
    }
    return ir_save_data(w, constant->dtype, constant->rank, constant->dims, constant->data);
}

/* Inputs in the graph's order, the others by number: as a rule that is the order of the numbers, and loading keeps it. */
static rondo_status ir_save_values(rondo__ir_writer *w, const rondo_ir_graph *graph, uint32_t depth) {
    uint32_t input = 0;
    for (size_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        if (data->flags & RONDO__IR_VALUE_INPUT) {
            RONDO__TRY(ir_save_given(w, graph, rondo__ir_input_at(graph, input++), RONDO__IR_MARK_INPUT, depth));
        } else if (data->outer != RONDO_IR_NONE && graph->parent) {
            RONDO__TRY(ir_save_given(w, graph, (rondo_ir_value)i, RONDO__IR_MARK_OUTER, depth));
        } else if (data->constant) {
            RONDO__TRY(ir_save_given(w, graph, (rondo_ir_value)i, RONDO__IR_MARK_CONSTANT, depth));
        }
    }
    return RONDO_OK;
}

static rondo_status ir_save_node(rondo__ir_writer *w, const rondo_ir_graph *graph, const rondo__ir_node_data *node,
                                 uint32_t depth) {
    RONDO__TRY(ir_save_line(w, depth, RONDO__IR_MARK_NODE));
    RONDO__TRY(ir_save_name(w, node->name));
    RONDO__TRY(ir_save_name(w, node->operator_name));
    RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_OPEN));
    for (uint32_t i = 0; i < node->input_count; i++) {
        RONDO__TRY(ir_save_comma(w, i > 0));
        if (node->inputs[i] == RONDO_IR_NONE) {
            RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_ABSENT));
        } else {
            const char *name = rondo__ir_value_at(graph, node->inputs[i])->name;
            RONDO__TRY(rondo__ir_write_text(w, name, strlen(name)));
        }
    }
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_CLOSE));
    RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_ARROW));
    RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_OPEN));
    for (uint32_t i = 0; i < node->output_count; i++) {
        RONDO__TRY(ir_save_comma(w, i > 0));
        RONDO__TRY(node->outputs[i] == RONDO_IR_NONE ? rondo__ir_write_mark(w, RONDO__IR_MARK_ABSENT)
                                                     : ir_save_value(w, rondo__ir_value_at(graph, node->outputs[i])));
    }
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_CLOSE));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        RONDO__TRY(ir_save_line(w, depth + 1u, RONDO__IR_MARK_ATTRIBUTE));
        RONDO__TRY(ir_save_attribute(w, &node->attributes[i], depth + 1u));
    }
    for (uint32_t i = 0; i < node->control_count; i++) {
        RONDO__TRY(ir_save_line(w, depth + 1u, RONDO__IR_MARK_AFTER));
        RONDO__TRY(ir_save_name(w, rondo__ir_node_at(graph, node->controls[i])->name));
    }
    return RONDO_OK;
}

static rondo_status ir_save_head_number(rondo__ir_writer *w, rondo__ir_mark mark, int64_t number) {
    if (!number) return RONDO_OK;
    RONDO__TRY(ir_save_mark(w, mark));
    RONDO__TRY(rondo__ir_write_space(w, " "));
    return rondo__ir_write_int(w, number);
}

static rondo_status ir_save_graph(rondo__ir_writer *w, const rondo_ir_graph *graph, uint32_t depth) {
    RONDO__TRY(rondo__ir_write_mark(w, RONDO__IR_MARK_GRAPH));
    RONDO__TRY(ir_save_name(w, graph->name));
    RONDO__TRY(ir_save_head_number(w, RONDO__IR_MARK_OPSET, graph->opset));
    RONDO__TRY(ir_save_head_number(w, RONDO__IR_MARK_MODEL, graph->nodes_in_model));
    RONDO__TRY(ir_save_values(w, graph, depth));
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)i);
        if (!node->dead) RONDO__TRY(ir_save_node(w, graph, node, depth));
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        RONDO__TRY(ir_save_line(w, depth, RONDO__IR_MARK_OUTPUT));
        RONDO__TRY(ir_save_name(w, *RONDO__BUFFER_AT(&graph->output_names, const char *, i)));
        RONDO__TRY(ir_save_mark(w, RONDO__IR_MARK_EQUALS));
        RONDO__TRY(ir_save_name(w, rondo__ir_value_at(graph, rondo__ir_output_at(graph, (uint32_t)i))->name));
    }
    return ir_save_line(w, depth, RONDO__IR_MARK_END);
}

rondo_status rondo_ir_graph_save(const rondo_ir_graph *graph, rondo_ir_file_format format, rondo_write_function write,
                                 void *user) {
    if (!graph || !write) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "to save needs a graph and a writer");
    if (format != RONDO_IR_FILE_TEXT && format != RONDO_IR_FILE_BINARY) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%d is no format of a graph's file", (int)format);
    }
    if (graph->parent) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s' is a branch: save the graph around it", graph->name);
    }
    RONDO__TRY_NOTE(rondo__ir_verify(graph), "what is not whole cannot be saved");
    rondo__ir_writer writer;
    rondo_status status =
        rondo__ir_writer_open(&writer, &graph->allocator, format == RONDO_IR_FILE_BINARY, write, user);
    if (!status) status = ir_save_graph(&writer, graph, 0);
    if (!status) status = rondo__ir_write_space(&writer, "\n");
    return rondo__ir_writer_close(&writer, status);
}
