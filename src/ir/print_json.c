/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph for programs. Sizes that are open are null or the symbol's name; the data of large constants is left out. */
#include <inttypes.h>
#include <string.h>

#include "ir/print.h"

static rondo_status ir_json_string(rondo__ir_printer *printer, const char *text) {
    return rondo__text_append_json(&printer->text, text, strlen(text));
}

static rondo_status ir_json_type(rondo__ir_printer *printer, const rondo__ir_type *type) {
    rondo__buffer *text = &printer->text;
    if (type->kind != RONDO__IR_TENSOR) {
        char shown[512];
        rondo__ir_type_text(type, shown, sizeof shown);
        RONDO__TRY(rondo__text_append(text, "\"type\":"));
        return ir_json_string(printer, shown);
    }
    if (type->dtype == RONDO_DTYPE_UNDEFINED) {
        RONDO__TRY(rondo__text_append(text, "\"dtype\":null,\"shape\":"));
    } else {
        RONDO__TRY(rondo__text_append(text, "\"dtype\":\"%s\",\"shape\":", rondo_dtype_name(type->dtype)));
    }
    if (type->rank < 0) return rondo__text_append(text, "null");
    RONDO__TRY(rondo__text_append(text, "["));
    for (int32_t i = 0; i < type->rank; i++) {
        const rondo__ir_dim *dim = &type->dims[i];
        if (i) RONDO__TRY(rondo__text_append(text, ","));
        if (dim->value >= 0) {
            RONDO__TRY(rondo__text_append(text, "%" PRId64, dim->value));
        } else {
            RONDO__TRY(dim->symbol ? ir_json_string(printer, dim->symbol) : rondo__text_append(text, "null"));
        }
    }
    return rondo__text_append(text, "]");
}

/* {"name":...,"dtype":...,"shape":... and whatever the caller adds before the brace. */
static rondo_status ir_json_open(rondo__ir_printer *printer, const char *name, const rondo__ir_type *type) {
    RONDO__TRY(rondo__text_append(&printer->text, "{\"name\":"));
    RONDO__TRY(ir_json_string(printer, name));
    RONDO__TRY(rondo__text_append(&printer->text, ","));
    return ir_json_type(printer, type);
}

static rondo_status ir_json_constant(rondo__ir_printer *printer, const rondo__ir_value_data *data) {
    const rondo__ir_constant *constant = data->constant;
    rondo__buffer *text = &printer->text;
    RONDO__TRY(ir_json_open(printer, data->name, &data->type));
    RONDO__TRY(rondo__text_append(text, ",\"bytes\":%zu", constant->bytes));
    uint32_t bits = rondo_dtype_bits(constant->dtype);
    size_t size = constant->dtype == RONDO_DTYPE_STRING ? sizeof(rondo_string) : bits / 8u;
    size_t count = size && bits % 8u == 0 ? constant->bytes / size : SIZE_MAX;
    if (count <= RONDO__IR_PRINT_ELEMENTS_MAX) {
        RONDO__TRY(rondo__text_append(text, ",\"data\":["));
        for (size_t i = 0; i < count; i++) {
            if (i) RONDO__TRY(rondo__text_append(text, ","));
            RONDO__TRY(rondo__ir_print_element(printer, constant->dtype, constant->data, i, true));
        }
        RONDO__TRY(rondo__text_append(text, "]"));
    }
    return rondo__text_append(text, "}");
}

static rondo_status ir_json_values(rondo__ir_printer *printer, const rondo_ir_graph *graph) {
    rondo__buffer *text = &printer->text;
    RONDO__TRY(rondo__text_append(text, "\"inputs\":["));
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_input_at(graph, (uint32_t)i));
        if (i) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(ir_json_open(printer, data->name, &data->type));
        RONDO__TRY(rondo__text_append(text, "}"));
    }
    RONDO__TRY(rondo__text_append(text, "],\n\"outer\":{"));
    for (size_t i = 0, shown = 0; i < graph->values.count && graph->parent; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        if (data->outer == RONDO_IR_NONE) continue;
        if (shown++) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(ir_json_string(printer, data->name));
        RONDO__TRY(rondo__text_append(text, ":"));
        RONDO__TRY(ir_json_string(printer, rondo__ir_print_name(graph->parent, data->outer)));
    }
    RONDO__TRY(rondo__text_append(text, "},\n\"constants\":["));
    for (size_t i = 0, shown = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        if (!data->constant || data->outer != RONDO_IR_NONE) continue;
        if (shown++) RONDO__TRY(rondo__text_append(text, ",\n"));
        RONDO__TRY(ir_json_constant(printer, data));
        RONDO__TRY(rondo__ir_print_flush(printer, false));
    }
    return rondo__text_append(text, "],\n");
}

static rondo_status ir_json_graph(rondo__ir_printer *printer, const rondo_ir_graph *graph);

static rondo_status ir_json_attributes(rondo__ir_printer *printer, const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
        if (i) RONDO__TRY(rondo__text_append(&printer->text, ","));
        RONDO__TRY(ir_json_string(printer, node->attributes[i].name));
        RONDO__TRY(rondo__text_append(&printer->text, ":"));
        RONDO__TRY(branch ? ir_json_graph(printer, branch)
                          : rondo__ir_print_attribute(printer, &node->attributes[i], true));
    }
    return RONDO_OK;
}

static rondo_status ir_json_node(rondo__ir_printer *printer, const rondo_ir_graph *graph,
                                 const rondo__ir_node_data *node) {
    rondo__buffer *text = &printer->text;
    RONDO__TRY(rondo__text_append(text, "{\"name\":"));
    RONDO__TRY(ir_json_string(printer, node->name));
    RONDO__TRY(rondo__text_append(text, ",\"operator\":"));
    RONDO__TRY(ir_json_string(printer, node->operator_name));
    RONDO__TRY(rondo__text_append(text, ",\"inputs\":["));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(node->inputs[i] == RONDO_IR_NONE
                       ? rondo__text_append(text, "null")
                       : ir_json_string(printer, rondo__ir_print_name(graph, node->inputs[i])));
    }
    RONDO__TRY(rondo__text_append(text, "],\"outputs\":["));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i) RONDO__TRY(rondo__text_append(text, ","));
        if (node->outputs[i] == RONDO_IR_NONE) {
            RONDO__TRY(rondo__text_append(text, "null"));
            continue;
        }
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, node->outputs[i]);
        RONDO__TRY(ir_json_open(printer, data->name, &data->type));
        RONDO__TRY(rondo__text_append(text, "}"));
    }
    RONDO__TRY(rondo__text_append(text, "],\"attributes\":{"));
    RONDO__TRY(ir_json_attributes(printer, node));
    RONDO__TRY(rondo__text_append(text, "}"));
    for (uint32_t i = 0; i < node->control_count; i++) {
        RONDO__TRY(rondo__text_append(text, i ? "," : ",\"after\":["));
        RONDO__TRY(ir_json_string(printer, rondo__ir_node_at(graph, node->controls[i])->name));
    }
    RONDO__TRY(rondo__text_append(text, node->control_count ? "]}" : "}"));
    return rondo__ir_print_flush(printer, false);
}

static rondo_status ir_json_graph(rondo__ir_printer *printer, const rondo_ir_graph *graph) {
    rondo__buffer *text = &printer->text;
    RONDO__TRY(rondo__text_append(text, "{\"name\":"));
    RONDO__TRY(ir_json_string(printer, graph->name));
    RONDO__TRY(rondo__text_append(text, ",\"opset\":%" PRId64 ",\n", graph->opset));
    RONDO__TRY(ir_json_values(printer, graph));
    RONDO__TRY(rondo__text_append(text, "\"nodes\":["));
    for (size_t i = 0, shown = 0; i < graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)i);
        if (node->dead) continue;
        if (shown++) RONDO__TRY(rondo__text_append(text, ",\n"));
        RONDO__TRY(ir_json_node(printer, graph, node));
    }
    RONDO__TRY(rondo__text_append(text, "],\n\"outputs\":["));
    for (size_t i = 0; i < graph->outputs.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_output_at(graph, (uint32_t)i));
        if (i) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(ir_json_open(printer, *RONDO__BUFFER_AT(&graph->output_names, const char *, i), &data->type));
        RONDO__TRY(rondo__text_append(text, ",\"value\":"));
        RONDO__TRY(ir_json_string(printer, data->name));
        RONDO__TRY(rondo__text_append(text, "}"));
    }
    return rondo__text_append(text, "]}");
}

rondo_status rondo__ir_print_json(rondo__ir_printer *printer, const rondo_ir_graph *graph) {
    RONDO__TRY(ir_json_graph(printer, graph));
    return rondo__text_append(&printer->text, "\n");
}
