/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits that need no prototypes. Each is checked whole, takes all the memory that it needs, and only then changes the
 * graph. */
#include "ir/edit.h"

#include <rondo/ir.h>
#include <string.h>

rondo_status rondo__ir_edit_node(const rondo_ir_graph *graph, rondo_ir_value value, rondo_ir_node *out_node) {
    if (!graph || value >= graph->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no value %u", graph ? graph->name : "", value);
    }
    *out_node = rondo__ir_value_at(graph, value)->producer;
    if (*out_node != RONDO_IR_NONE) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': no node makes value '%s'", graph->name,
                       rondo__ir_value_at(graph, value)->name);
}

/* Whether a node uses, itself or in its branches, what `behind` or `value` says. */
static bool edit_touches(const rondo_ir_graph *graph, const rondo__ir_node_data *node, const uint8_t *behind,
                         rondo_ir_value value) {
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        rondo_ir_node producer = rondo__ir_value_at(graph, node->inputs[i])->producer;
        if (node->inputs[i] == value || (producer != RONDO_IR_NONE && behind[producer])) return true;
    }
    for (uint32_t i = 0; i < node->control_count; i++) {
        if (behind[node->controls[i]]) return true;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
        for (size_t v = 0; branch && v < branch->values.count; v++) {
            rondo_ir_value outer = rondo__ir_value_at(branch, (rondo_ir_value)v)->outer;
            if (outer == RONDO_IR_NONE || outer >= graph->values.count) continue;
            rondo_ir_node producer = rondo__ir_value_at(graph, outer)->producer;
            if (outer == value || (producer != RONDO_IR_NONE && behind[producer])) return true;
        }
    }
    return false;
}

rondo_status rondo__ir_edit_behind(const rondo_ir_graph *graph, rondo_ir_node from, rondo_ir_value value,
                                   uint8_t **out_behind) {
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, graph->nodes.count, 1, &pointer));
    uint8_t *behind = pointer;
    for (size_t n = 0; n < graph->nodes.count; n++) { /* in order: what a node needs was seen before */
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        behind[n] = !node->dead && (n == from || edit_touches(graph, node, behind, value));
    }
    *out_behind = behind;
    return RONDO_OK;
}

void rondo__ir_edit_behind_free(const rondo_ir_graph *graph, uint8_t *behind) {
    rondo__free(&graph->allocator, behind, graph->nodes.count);
}

rondo_status rondo__ir_edit_check_edge(const rondo_ir_graph *graph, rondo_ir_node node, rondo_ir_node producer,
                                       const char *what) {
    if (producer == RONDO_IR_NONE || producer < node) return RONDO_OK; /* they stand in that order already */
    uint8_t *behind;
    RONDO__TRY(rondo__ir_edit_behind(graph, node, RONDO_IR_NONE, &behind));
    bool cycle = behind[producer];
    rondo__ir_edit_behind_free(graph, behind);
    if (!cycle) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "node '%s': %s '%s' would close a cycle, it is made from this node",
                       rondo__ir_node_at(graph, node)->name, what, rondo__ir_node_at(graph, producer)->name);
}

rondo_status rondo_ir_graph_add_control(rondo_ir_graph *graph, rondo_ir_value node, rondo_ir_value before) {
    rondo_ir_node last, first;
    rondo__ir_sorter sorter;
    RONDO__TRY_NOTE(rondo__ir_edit_node(graph, node, &last), "as the node that waits");
    RONDO__TRY_NOTE(rondo__ir_edit_node(graph, before, &first), "as the node to wait for");
    RONDO__TRY(rondo__ir_edit_check_edge(graph, last, first, "a control edge from"));
    RONDO__TRY(rondo__ir_sorter_init(&sorter, graph, 0));
    rondo_status status = rondo__ir_control_add(graph, last, first);
    if (!status && first > last) status = rondo__ir_sorter_run(&sorter);
    rondo__ir_sorter_deinit(&sorter);
    return status;
}

rondo_status rondo_ir_graph_remove_control(rondo_ir_graph *graph, rondo_ir_value node, rondo_ir_value before) {
    rondo_ir_node last, first;
    RONDO__TRY(rondo__ir_edit_node(graph, node, &last));
    RONDO__TRY(rondo__ir_edit_node(graph, before, &first));
    return rondo__ir_control_remove(graph, last, first);
}

rondo_status rondo_ir_graph_replace_uses(rondo_ir_graph *graph, rondo_ir_value from, rondo_ir_value to) {
    if (!graph || from >= graph->values.count || to >= graph->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no value %u or no value %u",
                           graph ? graph->name : "", from, to);
    }
    if (from == to) return RONDO_OK;
    const rondo__ir_value_data *old = rondo__ir_value_at(graph, from), *other = rondo__ir_value_at(graph, to);
    if (old->type.dtype != RONDO_DTYPE_UNDEFINED && other->type.dtype != RONDO_DTYPE_UNDEFINED &&
        old->type.dtype != other->type.dtype) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s' of %s cannot stand for '%s' of %s; cast it", other->name,
                           rondo_dtype_name(other->type.dtype), old->name, rondo_dtype_name(old->type.dtype));
    }
    rondo__ir_sorter sorter;
    if (other->producer != RONDO_IR_NONE) {
        uint8_t *behind;
        RONDO__TRY(rondo__ir_edit_behind(graph, RONDO_IR_NONE, from, &behind));
        bool cycle = behind[other->producer];
        rondo__ir_edit_behind_free(graph, behind);
        if (cycle) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                               "'%s' cannot stand for '%s': node '%s' makes it from that very value, which would close "
                               "a cycle (insert a node instead)",
                               other->name, old->name, rondo__ir_node_at(graph, other->producer)->name);
        }
    }
    RONDO__TRY(rondo__ir_sorter_init(&sorter, graph, 0));
    rondo__ir_value_replace(graph, from, to);
    rondo_status status = rondo__ir_sorter_run(&sorter);
    rondo__ir_sorter_deinit(&sorter);
    return status;
}

static rondo_status edit_check_unused(const rondo_ir_graph *graph, rondo_ir_value value) {
    const char *name = rondo__ir_value_at(graph, value)->name;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        for (uint32_t i = 0; i < node->input_count && !node->dead; i++) {
            if (node->inputs[i] != value) continue;
            return RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                               "'%s' is input %u of node '%s': give that another value before its node is removed",
                               name, i, node->name);
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        if (rondo__ir_output_at(graph, (uint32_t)i) != value) continue;
        return RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                           "'%s' is output %zu of graph '%s': replace its uses before its node is removed", name, i,
                           graph->name);
    }
    for (size_t s = 0; s < graph->subgraphs.count; s++) {
        const rondo_ir_graph *branch = *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, s);
        for (size_t v = 0; v < branch->values.count; v++) {
            if (rondo__ir_value_at(branch, (rondo_ir_value)v)->outer != value) continue;
            return RONDO__FAIL(INVALID_STATE, PROTOTYPE,
                               "'%s' is used in branch '%s': replace its uses before its node is removed", name,
                               branch->name);
        }
    }
    return RONDO_OK;
}

rondo_status rondo_ir_graph_remove_node(rondo_ir_graph *graph, rondo_ir_value node) {
    rondo_ir_node index;
    RONDO__TRY(rondo__ir_edit_node(graph, node, &index));
    const rondo__ir_node_data *data = rondo__ir_node_at(graph, index);
    for (uint32_t i = 0; i < data->output_count; i++) {
        if (data->outputs[i] != RONDO_IR_NONE) RONDO__TRY(edit_check_unused(graph, data->outputs[i]));
    }
    rondo__ir_node_kill(graph, index);
    return RONDO_OK;
}

rondo_status rondo_ir_graph_add_branch(rondo_ir_graph *graph, const char *name, rondo_ir_graph **out_branch) {
    if (!graph || !out_branch) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a branch needs a graph and a place");
    return rondo__ir_graph_create(&graph->allocator, graph->instance, name, graph, out_branch);
}

rondo_status rondo_ir_graph_outer_value(rondo_ir_graph *branch, rondo_ir_value outer, rondo_ir_value *out_value) {
    if (!branch || !out_value) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a branch and a place are needed");
    return rondo__ir_value_outer(branch, outer, out_value);
}

/* The deepest branch inside, counted from the graph itself. */
static uint32_t edit_height(const rondo_ir_graph *graph) {
    uint32_t height = 0;
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        uint32_t below = 1u + edit_height(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i));
        if (below > height) height = below;
    }
    return height;
}

rondo_status rondo__ir_graph_adopt(rondo_ir_graph *graph, rondo_ir_graph *branch) {
    if (branch->parent == graph) return RONDO_OK;
    if (branch->parent) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' is a branch of '%s' and cannot be one of '%s', too",
                           branch->name, branch->parent->name, graph->name);
    }
    for (const rondo_ir_graph *around = graph; around; around = around->parent) {
        if (around != branch) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' cannot be a branch inside itself", branch->name);
    }
    if (atomic_load(&branch->references) != 1) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                           "graph '%s' is held by others, too: a branch belongs to its graph alone", branch->name);
    }
    if (rondo__ir_depth(graph) + 1u + edit_height(branch) >= RONDO__IR_DEPTH_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "graph '%s' would lie deeper than %u branches inside one another",
                           branch->name, RONDO__IR_DEPTH_MAX);
    }
    RONDO__TRY(rondo__buffer_append(&graph->subgraphs, &branch, 1));
    branch->parent = graph;
    return RONDO_OK;
}

rondo_status rondo_ir_graph_adopt(rondo_ir_graph *graph, rondo_ir_graph *branch) {
    if (!graph || !branch) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph and a branch for it are needed");
    return rondo__ir_graph_adopt(graph, branch);
}
