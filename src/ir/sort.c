/* SPDX-License-Identifier: Apache-2.0
 *
 * Definitions before uses. A depth-first walk with a stack of its own puts what a node needs right before it and keeps
 * the order otherwise; a node met while it is still on the stack lies on a cycle. */
#include <string.h>

#include "ir/private.h"

typedef struct ir_sort_frame {
    rondo_ir_node node;
    uint32_t input;     /* next input to look at */
    uint32_t control;   /* next control edge, once the inputs are done */
    uint32_t attribute; /* next attribute, after them */
    uint32_t value;     /* next value of that attribute's subgraph */
} ir_sort_frame;

enum { IR_SORT_NEW = 0, IR_SORT_OPEN = 1, IR_SORT_DONE = 2 };

typedef struct ir_sort {
    rondo_ir_graph *graph;
    uint8_t *states;
    ir_sort_frame *stack;
    rondo_ir_node *order;
    size_t depth, done;
} ir_sort;

static rondo_ir_node ir_sort_producer(const ir_sort *sort, rondo_ir_value value) {
    if (value == RONDO_IR_NONE) return RONDO_IR_NONE;
    return rondo__ir_value_at(sort->graph, value)->producer;
}

/* The next node that this one needs; RONDO_IR_NONE when there is none left. */
static rondo_ir_node ir_sort_next(const ir_sort *sort, ir_sort_frame *frame) {
    const rondo__ir_node_data *node = rondo__ir_node_at(sort->graph, frame->node);
    if (node->dead) return RONDO_IR_NONE;
    while (frame->input < node->input_count) {
        rondo_ir_node producer = ir_sort_producer(sort, node->inputs[frame->input++]);
        if (producer != RONDO_IR_NONE) return producer;
    }
    if (frame->control < node->control_count) return node->controls[frame->control++];
    while (frame->attribute < node->attribute_count) {
        const rondo_ir_graph *subgraph = rondo__ir_attribute_graph(&node->attributes[frame->attribute]);
        while (subgraph && frame->value < subgraph->values.count) {
            rondo_ir_node producer = ir_sort_producer(sort, rondo__ir_value_at(subgraph, frame->value++)->outer);
            if (producer != RONDO_IR_NONE) return producer;
        }
        frame->attribute++;
        frame->value = 0;
    }
    return RONDO_IR_NONE;
}

static rondo_status ir_sort_visit(ir_sort *sort, rondo_ir_node first) {
    sort->stack[0] = (ir_sort_frame){.node = first};
    sort->depth = 1;
    sort->states[first] = IR_SORT_OPEN;
    while (sort->depth) {
        ir_sort_frame *frame = &sort->stack[sort->depth - 1u];
        rondo_ir_node needed = ir_sort_next(sort, frame);
        if (needed == RONDO_IR_NONE) {
            sort->states[frame->node] = IR_SORT_DONE;
            sort->order[sort->done++] = frame->node;
            sort->depth--;
        } else if (sort->states[needed] == IR_SORT_OPEN) {
            const rondo__ir_node_data *node = rondo__ir_node_at(sort->graph, needed);
            return RONDO__FAIL(CORRUPT, FILE, "graph '%s': node '%s' (%s) is on a cycle: it needs its own result",
                               sort->graph->name, node->name, node->operator_name);
        } else if (sort->states[needed] == IR_SORT_NEW) {
            sort->states[needed] = IR_SORT_OPEN;
            sort->stack[sort->depth++] = (ir_sort_frame){.node = needed};
        }
    }
    return RONDO_OK;
}

/* Brings the nodes into `order`. The stack is not needed any more: its memory says where each node goes. */
static void ir_sort_apply(ir_sort *sort, rondo__ir_node_data *scratch) {
    rondo_ir_graph *graph = sort->graph;
    rondo__ir_table *names = &rondo__ir_names_of(graph)->nodes;
    rondo_ir_node *places = (rondo_ir_node *)(void *)sort->stack;
    for (size_t i = 0; i < sort->done; i++) {
        scratch[i] = *rondo__ir_node_at(graph, sort->order[i]);
        places[sort->order[i]] = (rondo_ir_node)i;
    }
    memcpy(graph->nodes.data, scratch, sort->done * sizeof *scratch);
    for (size_t i = 0; i < sort->done; i++) {
        if (rondo__ir_table_find(names, scratch[i].name) == sort->order[i]) {
            rondo__ir_table_insert(names, scratch[i].name, (uint32_t)i);
        }
        for (uint32_t c = 0; c < scratch[i].control_count; c++) {
            scratch[i].controls[c] = places[scratch[i].controls[c]];
        }
        if (scratch[i].dead) continue;
        for (uint32_t o = 0; o < scratch[i].output_count; o++) {
            if (scratch[i].outputs[o] == RONDO_IR_NONE) continue;
            rondo__ir_value_at(graph, scratch[i].outputs[o])->producer = (rondo_ir_node)i;
        }
    }
}

rondo_status rondo__ir_sorter_init(rondo__ir_sorter *sorter, rondo_ir_graph *graph, size_t more) {
    *sorter = (rondo__ir_sorter){.graph = graph, .count = graph->nodes.count + more};
    if (!sorter->count) return RONDO_OK;
    rondo_status status = rondo__allocate_array(&graph->allocator, sorter->count, 1, &sorter->states);
    if (!status) {
        status = rondo__allocate_array(&graph->allocator, sorter->count, sizeof(ir_sort_frame), &sorter->stack);
    }
    if (!status) {
        status = rondo__allocate_array(&graph->allocator, sorter->count, sizeof(rondo_ir_node), &sorter->order);
    }
    if (!status) {
        status = rondo__allocate_array(&graph->allocator, sorter->count, sizeof(rondo__ir_node_data), &sorter->nodes);
    }
    if (status) rondo__ir_sorter_deinit(sorter);
    return status;
}

void rondo__ir_sorter_deinit(rondo__ir_sorter *sorter) {
    if (!sorter->graph) return;
    const rondo_allocator *allocator = &sorter->graph->allocator;
    rondo__free(allocator, sorter->states, sorter->count);
    rondo__free(allocator, sorter->stack, sorter->count * sizeof(ir_sort_frame));
    rondo__free(allocator, sorter->order, sorter->count * sizeof(rondo_ir_node));
    rondo__free(allocator, sorter->nodes, sorter->count * sizeof(rondo__ir_node_data));
    *sorter = (rondo__ir_sorter){0};
}

rondo_status rondo__ir_sorter_run(const rondo__ir_sorter *sorter) {
    size_t count = sorter->graph->nodes.count;
    ir_sort sort = {.graph = sorter->graph, .states = sorter->states, .stack = sorter->stack, .order = sorter->order};
    for (size_t i = 0; i < count; i++) {
        if (sort.states[i] == IR_SORT_NEW) RONDO__TRY(ir_sort_visit(&sort, (rondo_ir_node)i));
    }
    for (size_t i = 0; i < count; i++) {
        if (sort.order[i] == i) continue;
        ir_sort_apply(&sort, sorter->nodes);
        break;
    }
    return RONDO_OK;
}

static rondo_status ir_sort_one(rondo_ir_graph *graph) {
    rondo__ir_sorter sorter;
    RONDO__TRY(rondo__ir_sorter_init(&sorter, graph, 0));
    rondo_status status = rondo__ir_sorter_run(&sorter);
    rondo__ir_sorter_deinit(&sorter);
    return status;
}

rondo_status rondo__ir_sort(rondo_ir_graph *graph) {
    RONDO__TRY(ir_sort_one(graph));
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        RONDO__TRY(rondo__ir_sort(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i)));
    }
    return RONDO_OK;
}
