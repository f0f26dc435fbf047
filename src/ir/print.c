/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph for people, one line a thing: inputs, constants, nodes with their branches, outputs. Names are quoted where
 * they hold anything that could be taken for something else. */
#include "ir/print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define IR_PRINT_PIECE 32768u
#define IR_PRINT_TEXT_MAX (SIZE_MAX / 2u)

rondo_status rondo__ir_print_flush(rondo__ir_printer *printer, bool all) {
    size_t length = printer->text.count;
    if (!length || (!all && length < IR_PRINT_PIECE)) return RONDO_OK;
    const char *text = rondo__text(&printer->text);
    if (printer->write(printer->user, text, length)) return RONDO__FAIL(IO, NONE, "the dump's text was not taken");
    printer->text.count = 0;
    return RONDO_OK;
}

const char *rondo__ir_print_name(const rondo_ir_graph *graph, rondo_ir_value value) {
    return rondo__ir_value_at(graph, value)->name;
}

static rondo_status ir_print_number(rondo__ir_printer *printer, double value, int digits, bool json) {
    if (isfinite(value)) return rondo__text_append(&printer->text, "%.*g", digits, value);
    const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return rondo__text_append(&printer->text, json ? "\"%s\"" : "%s", text);
}

static rondo_status ir_print_string(rondo__ir_printer *printer, const rondo_string *string, bool json) {
    size_t length = string->size;
    bool cut = !json && length > 64u;
    RONDO__TRY(rondo__text_append_json(&printer->text, string->size ? string->data : "", cut ? 64u : length));
    return cut ? rondo__text_append(&printer->text, "...") : RONDO_OK;
}

rondo_status rondo__ir_print_element(rondo__ir_printer *printer, rondo_dtype dtype, const void *data, size_t i,
                                     bool json) {
    rondo__buffer *text = &printer->text;
    switch (dtype) {
    case RONDO_DTYPE_F32: return ir_print_number(printer, (double)((const float *)data)[i], 9, json);
    case RONDO_DTYPE_F64: return ir_print_number(printer, ((const double *)data)[i], 17, json);
    case RONDO_DTYPE_BOOL: return rondo__text_append(text, "%s", ((const uint8_t *)data)[i] ? "true" : "false");
    case RONDO_DTYPE_I8: return rondo__text_append(text, "%d", ((const int8_t *)data)[i]);
    case RONDO_DTYPE_U8: return rondo__text_append(text, "%u", ((const uint8_t *)data)[i]);
    case RONDO_DTYPE_I16: return rondo__text_append(text, "%d", ((const int16_t *)data)[i]);
    case RONDO_DTYPE_U16: return rondo__text_append(text, "%u", ((const uint16_t *)data)[i]);
    case RONDO_DTYPE_I32: return rondo__text_append(text, "%" PRId32, ((const int32_t *)data)[i]);
    case RONDO_DTYPE_U32: return rondo__text_append(text, "%" PRIu32, ((const uint32_t *)data)[i]);
    case RONDO_DTYPE_I64: return rondo__text_append(text, "%" PRId64, ((const int64_t *)data)[i]);
    case RONDO_DTYPE_U64: return rondo__text_append(text, "%" PRIu64, ((const uint64_t *)data)[i]);
    case RONDO_DTYPE_STRING: return ir_print_string(printer, &((const rondo_string *)data)[i], json);
    default: break;
    }
    /* Packed and narrow types: the bits of whole bytes, as they lie there. */
    uint32_t bytes = (rondo_dtype_bits(dtype) + 7u) / 8u;
    RONDO__TRY(rondo__text_append(text, json ? "\"0x" : "0x"));
    for (uint32_t b = bytes; b-- > 0;) {
        RONDO__TRY(rondo__text_append(text, "%02x", ((const uint8_t *)data)[i * bytes + b]));
    }
    return json ? rondo__text_append(text, "\"") : RONDO_OK;
}

static rondo_status ir_print_list(rondo__ir_printer *printer, rondo_dtype dtype, const void *data, size_t count,
                                  bool json) {
    RONDO__TRY(rondo__text_append(&printer->text, "["));
    for (size_t i = 0; i < count; i++) {
        if (!json && i == RONDO__IR_PRINT_ELEMENTS_MAX) {
            RONDO__TRY(rondo__text_append(&printer->text, ",... %zu in all", count));
            break;
        }
        if (i) RONDO__TRY(rondo__text_append(&printer->text, ","));
        RONDO__TRY(rondo__ir_print_element(printer, dtype, data, i, json));
    }
    return rondo__text_append(&printer->text, "]");
}

static rondo_status ir_print_tensor(rondo__ir_printer *printer, const rondo_tensor_view *view, bool json) {
    int64_t elements = 0;
    size_t bytes = 0;
    RONDO__TRY(rondo__ir_data_size(view->dtype, view->rank, view->shape, &elements, &bytes));
    RONDO__TRY(rondo__text_append(&printer->text, json ? "{\"dtype\":\"%s\",\"shape\":" : "%s",
                                  rondo_dtype_name(view->dtype)));
    RONDO__TRY(ir_print_list(printer, RONDO_DTYPE_I64, view->shape, (size_t)view->rank, true));
    if (rondo_dtype_bits(view->dtype) % 8u) { /* several elements a byte are not taken apart here */
        return rondo__text_append(&printer->text, json ? "}" : " %zu bytes", bytes);
    }
    RONDO__TRY(rondo__text_append(&printer->text, json ? ",\"data\":" : ""));
    RONDO__TRY(ir_print_list(printer, view->dtype, view->data, (size_t)elements, json));
    return json ? rondo__text_append(&printer->text, "}") : RONDO_OK;
}

rondo_status rondo__ir_print_attribute(rondo__ir_printer *printer, const rondo_attribute *attribute, bool json) {
    switch (attribute->kind) {
    case RONDO_ATTRIBUTE_INT: return rondo__text_append(&printer->text, "%" PRId64, attribute->value.i);
    case RONDO_ATTRIBUTE_FLOAT: return ir_print_number(printer, (double)attribute->value.f, 9, json);
    case RONDO_ATTRIBUTE_STRING: return ir_print_string(printer, &attribute->value.s, json);
    case RONDO_ATTRIBUTE_INTS:
        return ir_print_list(printer, RONDO_DTYPE_I64, attribute->value.ints, attribute->count, json);
    case RONDO_ATTRIBUTE_FLOATS:
        return ir_print_list(printer, RONDO_DTYPE_F32, attribute->value.floats, attribute->count, json);
    case RONDO_ATTRIBUTE_STRINGS:
        return ir_print_list(printer, RONDO_DTYPE_STRING, attribute->value.strings, attribute->count, json);
    case RONDO_ATTRIBUTE_TENSOR: return ir_print_tensor(printer, attribute->value.tensor, json);
    default: return rondo__text_append(&printer->text, json ? "null" : "?");
    }
}

/* -------------------------------------------------------------------------------------------------------- text */

static bool ir_print_plain(const char *name) {
    for (const char *c = name; *c; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("_./:#-@$", *c);
        if (!plain) return false;
    }
    return *name && strcmp(name, "-") != 0;
}

static rondo_status ir_text_name(rondo__ir_printer *printer, const char *name) {
    if (ir_print_plain(name)) return rondo__text_append(&printer->text, "%s", name);
    return rondo__text_append_json(&printer->text, name, strlen(name));
}

static rondo_status ir_text_typed(rondo__ir_printer *printer, const char *name, const rondo__ir_type *type) {
    char text[512];
    rondo__ir_type_text(type, text, sizeof text);
    RONDO__TRY(ir_text_name(printer, name));
    return rondo__text_append(&printer->text, " %s", text);
}

static rondo_status ir_text_indent(rondo__ir_printer *printer, uint32_t depth) {
    return rondo__text_append(&printer->text, "%*s", (int)(depth * 4u), "");
}

static rondo_status ir_text_graph(rondo__ir_printer *printer, const rondo_ir_graph *graph, uint32_t depth);

static rondo_status ir_text_constant(rondo__ir_printer *printer, const rondo__ir_value_data *data) {
    const rondo__ir_constant *constant = data->constant;
    const rondo_tensor_view view = {.data = (void *)(uintptr_t)constant->data,
                                    .device_type = 1,
                                    .rank = constant->rank,
                                    .dtype = constant->dtype,
                                    .shape = constant->dims};
    RONDO__TRY(rondo__text_append(&printer->text, "constant "));
    RONDO__TRY(ir_text_name(printer, data->name));
    RONDO__TRY(rondo__text_append(&printer->text, " = "));
    RONDO__TRY(ir_print_tensor(printer, &view, false));
    return rondo__text_append(&printer->text, "\n");
}

static rondo_status ir_text_values(rondo__ir_printer *printer, const rondo_ir_graph *graph, uint32_t depth) {
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_input_at(graph, (uint32_t)i));
        RONDO__TRY(ir_text_indent(printer, depth));
        RONDO__TRY(rondo__text_append(&printer->text, "input "));
        RONDO__TRY(ir_text_typed(printer, data->name, &data->type));
        RONDO__TRY(rondo__text_append(&printer->text, "\n"));
    }
    for (size_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        if (data->outer != RONDO_IR_NONE && graph->parent) {
            RONDO__TRY(ir_text_indent(printer, depth));
            RONDO__TRY(rondo__text_append(&printer->text, "outer "));
            RONDO__TRY(ir_text_name(printer, data->name));
            RONDO__TRY(rondo__text_append(&printer->text, " = "));
            RONDO__TRY(ir_text_name(printer, rondo__ir_print_name(graph->parent, data->outer)));
            RONDO__TRY(rondo__text_append(&printer->text, "\n"));
        } else if (data->constant) {
            RONDO__TRY(ir_text_indent(printer, depth));
            RONDO__TRY(ir_text_constant(printer, data));
        }
        RONDO__TRY(rondo__ir_print_flush(printer, false));
    }
    return RONDO_OK;
}

static rondo_status ir_text_operands(rondo__ir_printer *printer, const rondo_ir_graph *graph,
                                     const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i) RONDO__TRY(rondo__text_append(&printer->text, ", "));
        if (node->outputs[i] == RONDO_IR_NONE) {
            RONDO__TRY(rondo__text_append(&printer->text, "-"));
            continue;
        }
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, node->outputs[i]);
        RONDO__TRY(ir_text_typed(printer, data->name, &data->type));
    }
    RONDO__TRY(rondo__text_append(&printer->text, " = "));
    RONDO__TRY(ir_text_name(printer, node->operator_name));
    RONDO__TRY(rondo__text_append(&printer->text, "("));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i) RONDO__TRY(rondo__text_append(&printer->text, ", "));
        RONDO__TRY(node->inputs[i] == RONDO_IR_NONE
                       ? rondo__text_append(&printer->text, "-")
                       : ir_text_name(printer, rondo__ir_print_name(graph, node->inputs[i])));
    }
    return rondo__text_append(&printer->text, ")");
}

static rondo_status ir_text_node(rondo__ir_printer *printer, const rondo_ir_graph *graph,
                                 const rondo__ir_node_data *node, uint32_t depth) {
    RONDO__TRY(ir_text_indent(printer, depth));
    RONDO__TRY(ir_text_name(printer, node->name));
    RONDO__TRY(rondo__text_append(&printer->text, ": "));
    RONDO__TRY(ir_text_operands(printer, graph, node));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        if (rondo__ir_attribute_graph(&node->attributes[i])) continue;
        RONDO__TRY(rondo__text_append(&printer->text, " "));
        RONDO__TRY(ir_text_name(printer, node->attributes[i].name));
        RONDO__TRY(rondo__text_append(&printer->text, "="));
        RONDO__TRY(rondo__ir_print_attribute(printer, &node->attributes[i], false));
    }
    for (uint32_t i = 0; i < node->control_count; i++) {
        RONDO__TRY(rondo__text_append(&printer->text, i ? ", " : " after "));
        RONDO__TRY(ir_text_name(printer, rondo__ir_node_at(graph, node->controls[i])->name));
    }
    RONDO__TRY(rondo__text_append(&printer->text, "\n"));
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
        if (!branch) continue;
        RONDO__TRY(ir_text_indent(printer, depth + 1u));
        RONDO__TRY(ir_text_name(printer, node->attributes[i].name));
        RONDO__TRY(rondo__text_append(&printer->text, ":\n"));
        RONDO__TRY(ir_text_graph(printer, branch, depth + 2u));
    }
    return rondo__ir_print_flush(printer, false);
}

static rondo_status ir_text_graph(rondo__ir_printer *printer, const rondo_ir_graph *graph, uint32_t depth) {
    RONDO__TRY(ir_text_values(printer, graph, depth));
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)i);
        if (!node->dead) RONDO__TRY(ir_text_node(printer, graph, node, depth));
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_output_at(graph, (uint32_t)i));
        RONDO__TRY(ir_text_indent(printer, depth));
        RONDO__TRY(rondo__text_append(&printer->text, "output "));
        RONDO__TRY(ir_text_typed(printer, *RONDO__BUFFER_AT(&graph->output_names, const char *, i), &data->type));
        RONDO__TRY(rondo__text_append(&printer->text, " = "));
        RONDO__TRY(ir_text_name(printer, data->name));
        RONDO__TRY(rondo__text_append(&printer->text, "\n"));
    }
    return rondo__ir_print_flush(printer, false);
}

rondo_status rondo__ir_print_text(rondo__ir_printer *printer, const rondo_ir_graph *graph) {
    RONDO__TRY(rondo__text_append(&printer->text, "graph "));
    RONDO__TRY(ir_text_name(printer, graph->name));
    if (graph->opset) RONDO__TRY(rondo__text_append(&printer->text, " opset %" PRId64, graph->opset));
    RONDO__TRY(rondo__text_append(&printer->text, "\n"));
    return ir_text_graph(printer, graph, 0);
}

rondo_status rondo_ir_graph_dump(const rondo_ir_graph *graph, rondo_dump_format format, rondo_write_function write,
                                 void *user) {
    if (!graph || !write) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a dump needs a graph and a writer");
    if (format < RONDO_DUMP_TEXT || format > RONDO_DUMP_JSON) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%d is no format of a dump", (int)format);
    }
    rondo__ir_printer printer = {.write = write, .user = user};
    rondo__buffer_init(&printer.text, &graph->allocator, 1, IR_PRINT_TEXT_MAX);
    rondo_status status = format == RONDO_DUMP_TEXT  ? rondo__ir_print_text(&printer, graph)
                          : format == RONDO_DUMP_DOT ? rondo__ir_print_dot(&printer, graph)
                                                     : rondo__ir_print_json(&printer, graph);
    if (!status) status = rondo__ir_print_flush(&printer, true);
    rondo__buffer_deinit(&printer.text);
    return status;
}
