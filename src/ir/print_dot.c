/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as a picture for Graphviz: a box a node, an edge a value with its type, a frame a branch. */
#include <inttypes.h>
#include <string.h>

#include "ir/print.h"

/* Ids are made from a prefix for each graph, so that branches have ids of their own. */
typedef struct ir_dot {
    rondo__ir_printer *printer;
    uint32_t graphs; /* numbered so far */
} ir_dot;

/* A label inside double quotes: what Graphviz would take for an escape or a line is replaced. */
static rondo_status ir_dot_escape(rondo__ir_printer *printer, const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            RONDO__TRY(rondo__text_append(&printer->text, "\\%c", c));
        } else {
            RONDO__TRY(rondo__text_append(&printer->text, "%c", c < 0x20u || c == 0x7fu ? '?' : c));
        }
    }
    return RONDO_OK;
}

static rondo_status ir_dot_typed_label(rondo__ir_printer *printer, const char *name, const rondo__ir_type *type) {
    char text[512];
    rondo__ir_type_text(type, text, sizeof text);
    RONDO__TRY(rondo__text_append(&printer->text, "[label=\""));
    RONDO__TRY(ir_dot_escape(printer, name));
    RONDO__TRY(rondo__text_append(&printer->text, "\\n"));
    RONDO__TRY(ir_dot_escape(printer, text));
    return rondo__text_append(&printer->text, "\"");
}

static rondo_status ir_dot_values(rondo__ir_printer *printer, const rondo_ir_graph *graph, uint32_t id) {
    for (size_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        bool input = (data->flags & RONDO__IR_VALUE_INPUT) != 0;
        if (!input && !data->constant && data->outer == RONDO_IR_NONE) continue;
        const char *look = input ? "shape=ellipse" : data->constant ? "shape=note" : "shape=plaintext";
        RONDO__TRY(rondo__text_append(&printer->text, "g%u_v%zu ", id, i));
        RONDO__TRY(ir_dot_typed_label(printer, data->name, &data->type));
        RONDO__TRY(rondo__text_append(&printer->text, ",%s];\n", look));
        RONDO__TRY(rondo__ir_print_flush(printer, false));
    }
    return RONDO_OK;
}

/* Where an edge that carries the value begins. */
static rondo_status ir_dot_origin(rondo__ir_printer *printer, const rondo_ir_graph *graph, uint32_t id,
                                  rondo_ir_value value) {
    rondo_ir_node producer = rondo__ir_value_at(graph, value)->producer;
    if (producer != RONDO_IR_NONE) return rondo__text_append(&printer->text, "g%u_n%u", id, producer);
    return rondo__text_append(&printer->text, "g%u_v%u", id, value);
}

static rondo_status ir_dot_edge_label(rondo__ir_printer *printer, const rondo_ir_graph *graph, rondo_ir_value value) {
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    if (data->producer == RONDO_IR_NONE) return rondo__text_append(&printer->text, ";\n");
    RONDO__TRY(ir_dot_typed_label(printer, data->name, &data->type));
    return rondo__text_append(&printer->text, "];\n");
}

static rondo_status ir_dot_graph(ir_dot *dot, const rondo_ir_graph *graph);

static rondo_status ir_dot_node(ir_dot *dot, const rondo_ir_graph *graph, uint32_t id, rondo_ir_node index) {
    rondo__ir_printer *printer = dot->printer;
    const rondo__ir_node_data *node = rondo__ir_node_at(graph, index);
    RONDO__TRY(rondo__text_append(&printer->text, "g%u_n%u [shape=box,label=\"", id, index));
    RONDO__TRY(ir_dot_escape(printer, node->operator_name));
    RONDO__TRY(rondo__text_append(&printer->text, "\\n"));
    RONDO__TRY(ir_dot_escape(printer, node->name));
    RONDO__TRY(rondo__text_append(&printer->text, "\"];\n"));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        RONDO__TRY(ir_dot_origin(printer, graph, id, node->inputs[i]));
        RONDO__TRY(rondo__text_append(&printer->text, " -> g%u_n%u ", id, index));
        RONDO__TRY(ir_dot_edge_label(printer, graph, node->inputs[i]));
    }
    for (uint32_t i = 0; i < node->control_count; i++) {
        RONDO__TRY(rondo__text_append(&printer->text, "g%u_n%u -> g%u_n%u [style=dashed];\n", id, node->controls[i], id,
                                      index));
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
        if (!branch) continue;
        RONDO__TRY(rondo__text_append(&printer->text, "subgraph cluster_%u {\nlabel=\"", dot->graphs));
        RONDO__TRY(ir_dot_escape(printer, node->name));
        RONDO__TRY(rondo__text_append(&printer->text, " "));
        RONDO__TRY(ir_dot_escape(printer, node->attributes[i].name));
        RONDO__TRY(rondo__text_append(&printer->text, "\";\n"));
        RONDO__TRY(ir_dot_graph(dot, branch));
        RONDO__TRY(rondo__text_append(&printer->text, "}\n"));
    }
    return rondo__ir_print_flush(printer, false);
}

static rondo_status ir_dot_graph(ir_dot *dot, const rondo_ir_graph *graph) {
    rondo__ir_printer *printer = dot->printer;
    uint32_t id = dot->graphs++;
    RONDO__TRY(ir_dot_values(printer, graph, id));
    for (size_t i = 0; i < graph->nodes.count; i++) {
        if (!rondo__ir_node_at(graph, (rondo_ir_node)i)->dead) {
            RONDO__TRY(ir_dot_node(dot, graph, id, (rondo_ir_node)i));
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        rondo_ir_value value = rondo__ir_output_at(graph, (uint32_t)i);
        const rondo__ir_type *type = &rondo__ir_value_at(graph, value)->type;
        RONDO__TRY(rondo__text_append(&printer->text, "g%u_o%zu ", id, i));
        RONDO__TRY(ir_dot_typed_label(printer, *RONDO__BUFFER_AT(&graph->output_names, const char *, i), type));
        RONDO__TRY(rondo__text_append(&printer->text, ",shape=ellipse,style=bold];\n"));
        RONDO__TRY(ir_dot_origin(printer, graph, id, value));
        RONDO__TRY(rondo__text_append(&printer->text, " -> g%u_o%zu;\n", id, i));
    }
    return rondo__ir_print_flush(printer, false);
}

rondo_status rondo__ir_print_dot(rondo__ir_printer *printer, const rondo_ir_graph *graph) {
    ir_dot dot = {.printer = printer};
    RONDO__TRY(rondo__text_append(&printer->text, "digraph \""));
    RONDO__TRY(ir_dot_escape(printer, graph->name));
    RONDO__TRY(rondo__text_append(&printer->text, "\" {\nnode [fontsize=10];\nedge [fontsize=8];\n"));
    RONDO__TRY(ir_dot_graph(&dot, graph));
    return rondo__text_append(&printer->text, "}\n");
}
