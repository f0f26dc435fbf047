/* SPDX-License-Identifier: Apache-2.0
 *
 * With several targets: each node goes to the first that has a kernel for it; nodes are put in an order in which few rows
 * of one target follow each other, the segments; and what one target makes and another reads is transferred, once for
 * each that reads it, before the first segment that does. */
#include <inttypes.h>
#include <string.h>

#include "compile/emit.h"

#define PARTITION_NONE UINT32_MAX

/* Nodes that are ready, smallest number first. */
typedef struct partition_heap {
    uint32_t *nodes;
    uint32_t count;
} partition_heap;

typedef struct partition_work {
    rondo__emit *e;
    uint32_t targets, node_count;
    uint32_t *target;  /* a node: PARTITION_NONE where it is no step, or nobody runs it */
    uint32_t *segment; /* a node */
    uint32_t *order;
    uint32_t *homes;              /* a value: the target in whose memory it is; PARTITION_NONE: in everybody's */
    uint32_t *copies;             /* a value, a target each: the value that is its copy + 1; 0: none */
    uint32_t *first_next, *nexts; /* a node: the nodes that come after it; first_next has one more */
    uint32_t *missing;            /* a node: how many it still waits for */
    partition_heap ready[RONDO__PLAN_TARGETS_MAX + 1];
    rondo__buffer moves; /* partition_move, in order of their segments */
} partition_work;

typedef struct partition_move {
    rondo_ir_node node;
    uint32_t segment, target;
} partition_move;

static rondo_status partition_room(const partition_work *p, size_t count, uint32_t **out) {
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&p->e->state->arena, count, sizeof(uint32_t), &memory));
    *out = memory;
    return RONDO_OK;
}

static const rondo__ir_node_data *partition_node(const partition_work *p, uint32_t n) {
    return rondo__ir_node_at(p->e->graph, n);
}

/* ------------------------------------------------------------------------------------------------------ who runs it */

static bool partition_is_view(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    rondo__compile_view view;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != RONDO_IR_NONE && !rondo__compile_view_of(graph, node, i, &view)) return false;
    }
    return true;
}

static bool partition_is_empty(const rondo_ir_graph *graph, const rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != RONDO_IR_NONE && rondo__compile_bytes(graph, node->outputs[i]) > 0) return false;
    }
    return true;
}

/* Why the node is not on the first target: the catalogue's own words, where one was asked. */
static rondo_status partition_tell(const partition_work *p, const rondo__ir_node_data *node, uint32_t target) {
    rondo__compile_state *state = p->e->state;
    rondo__compile_choice choice;
    rondo_status why = rondo__compile_choose_on(state, &p->e->request, node, 0, false, &choice);
    if (!why || rondo_status_code(why) != RONDO_CODE_UNSUPPORTED) return why;
    const char *reason = rondo_status_note_count(why) ? rondo_status_note(why, 0) : rondo_status_message(why);
    rondo_status status = rondo__compile_remark(
        state, "node '%s' is on target %u '%s': no implementation of %s for target 0 '%s', because: %s", node->name,
        target, state->targets->at[target].text, node->operator_name, state->targets->at[0].text, reason);
    rondo_status_release(why);
    return status;
}

/* A node that nobody runs is told of later, with all others. */
static rondo_status partition_choose(partition_work *p) {
    rondo__emit *e = p->e;
    for (uint32_t n = 0; n < p->node_count; n++) {
        const rondo__ir_node_data *node = partition_node(p, n);
        rondo__compile_choice choice;
        p->target[n] = PARTITION_NONE;
        if (node->dead || partition_is_view(e->graph, node) || partition_is_empty(e->graph, node)) continue;
        rondo_status status = rondo__compile_choose(e->state, &e->request, node, &choice);
        if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
            rondo_status_release(status);
            continue;
        }
        RONDO__TRY(status);
        p->target[n] = choice.target;
        if (choice.target > 0) RONDO__TRY(partition_tell(p, node, choice.target));
    }
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------------ order */

/* Calls `visit` for each node that comes before node n, some perhaps twice. */
static void partition_befores(const partition_work *p, uint32_t n,
                              void (*visit)(const partition_work *, uint32_t, uint32_t)) {
    const rondo__ir_node_data *node = partition_node(p, n);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) continue;
        rondo_ir_node from = rondo__ir_value_at(p->e->graph, node->inputs[i])->producer;
        if (from != RONDO_IR_NONE) visit(p, from, n);
    }
    for (uint32_t i = 0; i < node->control_count; i++) visit(p, node->controls[i], n);
}

static void partition_count(const partition_work *p, uint32_t before, uint32_t n) {
    (void)n;
    p->first_next[before + 1u]++;
}

/* first_next moves to the end of each list meanwhile. */
static void partition_list(const partition_work *p, uint32_t before, uint32_t n) {
    p->nexts[p->first_next[before]++] = n;
}

static rondo_status partition_edges(partition_work *p) {
    RONDO__TRY(partition_room(p, (size_t)p->node_count + 1u, &p->first_next));
    for (uint32_t n = 0; n < p->node_count; n++) partition_befores(p, n, partition_count);
    for (uint32_t n = 0; n < p->node_count; n++) p->first_next[n + 1u] += p->first_next[n];
    RONDO__TRY(partition_room(p, p->first_next[p->node_count], &p->nexts));
    for (uint32_t n = 0; n < p->node_count; n++) partition_befores(p, n, partition_list);
    for (uint32_t n = p->node_count; n > 0; n--) p->first_next[n] = p->first_next[n - 1u];
    p->first_next[0] = 0;
    return RONDO_OK;
}

static void partition_push(partition_heap *heap, uint32_t node) {
    uint32_t at = heap->count++;
    for (; at > 0 && heap->nodes[(at - 1u) / 2u] > node; at = (at - 1u) / 2u)
        heap->nodes[at] = heap->nodes[(at - 1u) / 2u];
    heap->nodes[at] = node;
}

static uint32_t partition_pop(partition_heap *heap) {
    uint32_t top = heap->nodes[0], node = heap->nodes[--heap->count], at = 0;
    for (uint32_t child = 1; child < heap->count; child = 2u * at + 1u) {
        if (child + 1u < heap->count && heap->nodes[child + 1u] < heap->nodes[child]) child++;
        if (heap->nodes[child] >= node) break;
        heap->nodes[at] = heap->nodes[child];
        at = child;
    }
    heap->nodes[at] = node;
    return top;
}

static partition_heap *partition_ready(partition_work *p, uint32_t n) {
    return &p->ready[p->target[n] == PARTITION_NONE ? p->targets : p->target[n]];
}

static void partition_done(partition_work *p, uint32_t n, uint32_t place, uint32_t segment) {
    p->order[place] = n;
    p->segment[n] = segment;
    for (uint32_t i = p->first_next[n]; i < p->first_next[n + 1u]; i++) {
        if (--p->missing[p->nexts[i]] == 0) partition_push(partition_ready(p, p->nexts[i]), p->nexts[i]);
    }
}

/* All that can run on one target runs before another begins: with two targets no order has fewer segments, but for where
 * it begins. The next one is that with most that is ready. */
static uint32_t partition_next(const partition_work *p) {
    uint32_t best = 0;
    for (uint32_t t = 1; t < p->targets; t++) {
        if (p->ready[t].count > p->ready[best].count) best = t;
    }
    return best;
}

/* The number of segments when target `first` begins. */
static uint32_t partition_arrange(partition_work *p, uint32_t first) {
    uint32_t segment = 0, now = first, place = 0;
    bool begun = false;
    for (uint32_t n = 0; n < p->node_count; n++) p->missing[n] = 0;
    for (uint32_t n = 0; n < p->node_count; n++) {
        for (uint32_t i = p->first_next[n]; i < p->first_next[n + 1u]; i++) p->missing[p->nexts[i]]++;
    }
    for (uint32_t n = 0; n < p->node_count; n++) {
        if (p->missing[n] == 0) partition_push(partition_ready(p, n), n);
    }
    while (place < p->node_count) {
        if (p->ready[p->targets].count > 0) { /* no steps: they cost nothing */
            partition_done(p, partition_pop(&p->ready[p->targets]), place++, segment);
        } else if (p->ready[now].count > 0) {
            begun = true;
            partition_done(p, partition_pop(&p->ready[now]), place++, segment);
        } else {
            now = partition_next(p);
            if (p->ready[now].count == 0) return 0; /* a ring, which verified graphs do not have */
            segment += begun;
        }
    }
    return segment + 1u;
}

static rondo_status partition_order(partition_work *p) {
    uint32_t best = 0, fewest = UINT32_MAX;
    RONDO__TRY(partition_edges(p));
    for (uint32_t t = 0; t <= p->targets; t++) RONDO__TRY(partition_room(p, p->node_count, &p->ready[t].nodes));
    for (uint32_t t = 0; t < p->targets; t++) {
        uint32_t segments = partition_arrange(p, t);
        if (segments == 0) return RONDO__FAIL(INTERNAL, NONE, "graph '%s' has a ring", p->e->graph->name);
        if (segments < fewest) best = t, fewest = segments;
    }
    p->e->segment_count = partition_arrange(p, best);
    RONDO__TRY(partition_room(p, (size_t)p->e->segment_count + 1u, &p->e->segment_targets));
    for (uint32_t n = 0; n < p->node_count; n++) {
        if (p->target[n] != PARTITION_NONE) p->e->segment_targets[p->segment[n]] = p->target[n];
    }
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- transfers */

static void partition_homes(const partition_work *p) {
    const rondo_ir_graph *graph = p->e->graph;
    memset(p->homes, 0xff, graph->values.count * sizeof *p->homes);
    for (size_t i = 0; i < graph->inputs.count; i++) p->homes[rondo__ir_input_at(graph, (uint32_t)i)] = 0;
    for (uint32_t n = 0; n < p->node_count; n++) {
        const rondo__ir_node_data *node = partition_node(p, n);
        rondo__compile_view view;
        for (uint32_t i = 0; i < node->output_count && !node->dead; i++) {
            rondo_ir_value out = node->outputs[i];
            if (out == RONDO_IR_NONE || rondo__compile_bytes(graph, out) == 0) continue;
            if (p->target[n] != PARTITION_NONE) p->homes[out] = p->target[n];
            else if (rondo__compile_view_of(graph, node, i, &view)) p->homes[out] = p->homes[view.source];
        }
    }
}

/* The value where the target reaches it. */
static rondo_status partition_reach(partition_work *p, rondo_ir_value value, uint32_t target, uint32_t segment,
                                    rondo_ir_value *out_value) {
    rondo_ir_graph *graph = p->e->graph;
    uint32_t home = p->homes[value], *copy = &p->copies[(size_t)value * p->targets + target];
    *out_value = value;
    if (home == PARTITION_NONE || home == target) return RONDO_OK;
    if (*copy == 0) {
        rondo__ir_type type = rondo__ir_value_at(graph, value)->type;
        const char *name = rondo__ir_value_at(graph, value)->name;
        rondo_ir_value made = RONDO_IR_NONE;
        partition_move move = {RONDO_IR_NONE, segment, target};
        RONDO__TRY(rondo__ir_value_add(graph, NULL, name, &type, &made));
        RONDO__TRY(rondo__ir_node_add(graph, RONDO__PLAN_TRANSFER, NULL, &value, 1, &made, 1, NULL, 0, &move.node));
        RONDO__TRY(rondo__buffer_append(&p->moves, &move, 1));
        RONDO__TRY(rondo__compile_remark(p->e->state,
                                         "copy: '%s' of %" PRIu64 " bytes goes from target %u to target %u before "
                                         "segment %u",
                                         name, rondo__compile_bytes(graph, value), home, target, segment));
        *copy = made + 1u;
    }
    *out_value = *copy - 1u;
    return RONDO_OK;
}

static rondo_status partition_inputs(partition_work *p) {
    for (uint32_t i = 0; i < p->node_count; i++) {
        uint32_t n = p->order[i], target = p->target[n];
        for (uint32_t k = 0; target != PARTITION_NONE && k < partition_node(p, n)->input_count; k++) {
            rondo_ir_value value = partition_node(p, n)->inputs[k], made = value;
            if (value != RONDO_IR_NONE) RONDO__TRY(partition_reach(p, value, target, p->segment[n], &made));
            rondo__ir_node_at(p->e->graph, n)->inputs[k] = made; /* adding may have moved the nodes */
        }
    }
    return RONDO_OK;
}

/* Outputs are in the memory of target 0. A segment of its own at the end brings those that come last. */
static rondo_status partition_outputs(partition_work *p) {
    rondo__emit *e = p->e;
    uint32_t last = e->segment_count - 1u;
    if (e->segment_targets[last] != 0) e->segment_targets[++last] = 0;
    bool used = last < e->segment_count;
    for (size_t i = 0; i < e->graph->outputs.count; i++) {
        rondo_ir_value *output = RONDO__BUFFER_AT(&e->graph->outputs, rondo_ir_value, i);
        rondo_ir_value value = *output, made = value;
        RONDO__TRY(partition_reach(p, value, 0, last, &made));
        *output = made;
        const rondo__ir_value_data *data = rondo__ir_value_at(e->graph, value);
        used = used || made != value || data->producer == RONDO_IR_NONE;
    }
    if (used) e->segment_count = last + 1u;
    return RONDO_OK;
}

/* The nodes of the graph now, transfers included: those of a segment come before its nodes. */
static rondo_status partition_finish(partition_work *p) {
    rondo__emit *e = p->e;
    size_t move = 0, count = e->graph->nodes.count, place = 0;
    partition_move *moves = p->moves.data;
    RONDO__TRY(partition_room(p, count, &e->node_order));
    RONDO__TRY(partition_room(p, count, &e->node_segments));
    for (uint32_t i = 0; i <= p->node_count; i++) {
        uint32_t segment = i < p->node_count ? p->segment[p->order[i]] : UINT32_MAX;
        for (; move < p->moves.count && moves[move].segment <= segment; move++) {
            e->node_order[place++] = moves[move].node;
            e->node_segments[moves[move].node] = moves[move].segment;
        }
        if (i == p->node_count) break;
        e->node_order[place++] = p->order[i];
        e->node_segments[p->order[i]] = segment;
    }
    return rondo__compile_remark(e->state, "targets: %u segments on %u targets, %zu copies between", e->segment_count,
                                 p->targets, p->moves.count);
}

static rondo_status partition_all(partition_work *p) {
    size_t values = p->e->graph->values.count;
    uint32_t **rooms[] = {&p->target, &p->segment, &p->order, &p->missing};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) RONDO__TRY(partition_room(p, p->node_count, rooms[i]));
    RONDO__TRY(partition_room(p, values, &p->homes));
    RONDO__TRY(partition_room(p, values * p->targets, &p->copies));
    RONDO__TRY(partition_choose(p));
    RONDO__TRY(partition_order(p));
    partition_homes(p);
    RONDO__TRY(partition_inputs(p));
    RONDO__TRY(partition_outputs(p));
    return partition_finish(p);
}

rondo_status rondo__emit_partition(rondo__emit *e) {
    partition_work p = {.e = e, .targets = e->state->targets->count, .node_count = (uint32_t)e->graph->nodes.count};
    e->segment_count = 1;
    if (p.targets == 1) return RONDO_OK;
    rondo__buffer_init(&p.moves, &e->state->allocator, sizeof(partition_move), UINT32_MAX);
    rondo_status status = partition_all(&p);
    rondo__buffer_deinit(&p.moves);
    return status;
}
