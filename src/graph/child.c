/* SPDX-License-Identifier: Apache-2.0
 *
 * Child graphs: a replay into a capture. The child's nodes are copied, one by one and in their order, with the words that
 * they have now; its first lane is the stream's, the others are lanes of no stream, which the next child may use again. The
 * pools whose temporaries they use, and the pinned memory, are the graph's to keep, too. So the child may go, or change,
 * and the graph does not. */
#include <string.h>

#include "graph/graph.h"

typedef struct child_copy {
    rondo_graph *graph;
    const rondo_graph *child;
    rondo__order *order;        /* the graph's; null while neither has lanes */
    const rondo__order *childs; /* null: one lane */
    uint64_t first;             /* node 0 of the child is this one of the graph */
    uint64_t *offsets;          /* by the child's generators: what the capture took of each before */
    uint32_t *lanes;            /* by the child's lane */
    uint32_t *points;           /* by the child's event: its last record here */
    size_t lane_count, event_count, generator_count;
    rondo__call_list_node node;
} child_copy;

/* Every array holds something, so that none is null. */
static rondo_status child_prepare(child_copy *c) {
    const rondo_allocator *allocator = &c->graph->allocator;
    void *memory;
    c->lane_count = c->childs ? c->childs->lanes.count : 1u;
    c->event_count = (c->childs ? c->childs->events : 0) + 1u;
    c->generator_count = c->child->generators.count + 1u;
    RONDO__TRY(rondo__allocate_array(allocator, c->lane_count, sizeof(uint32_t), &memory));
    c->lanes = memory;
    RONDO__TRY(rondo__allocate_array(allocator, c->event_count, sizeof(uint32_t), &memory));
    c->points = memory;
    RONDO__TRY(rondo__allocate_array(allocator, c->generator_count, sizeof(uint64_t), &memory));
    c->offsets = memory;
    return RONDO_OK;
}

static void child_finish(child_copy *c) {
    const rondo_allocator *allocator = &c->graph->allocator;
    rondo__free(allocator, c->lanes, c->lane_count * sizeof(uint32_t));
    rondo__free(allocator, c->points, c->event_count * sizeof(uint32_t));
    rondo__free(allocator, c->offsets, c->generator_count * sizeof(uint64_t));
}

/* --------------------------------------------------------------------------------------------------------- lanes */

static rondo_status child_take_lanes(child_copy *c, uint32_t lane) {
    rondo__buffer *idle = &c->graph->idle;
    c->lanes[0] = lane;
    if (c->lane_count > 1) RONDO__TRY(rondo__call_list_order(c->graph->list, &c->order));
    RONDO__TRY(rondo__buffer_reserve(idle, idle->count + c->lane_count));
    for (size_t i = 1; i < c->lane_count; i++) {
        if (idle->count) c->lanes[i] = *RONDO__BUFFER_AT(idle, const uint32_t, --idle->count);
        else RONDO__TRY(rondo__order_add_lane(c->order, &c->lanes[i]));
    }
    return RONDO_OK;
}

/* All of them were joined when the child's capture ended. */
static void child_give_lanes(const child_copy *c) {
    rondo__buffer *idle = &c->graph->idle;
    for (size_t i = 1; i < c->lane_count; i++) *RONDO__BUFFER_AT(idle, uint32_t, idle->count++) = c->lanes[i];
}

static rondo_status child_steps(const child_copy *c, size_t *step, uint64_t before) {
    for (; c->childs && *step < c->childs->steps.count; ++*step) {
        const rondo__order_step *s = RONDO__BUFFER_AT(&c->childs->steps, const rondo__order_step, *step);
        uint64_t nodes = rondo__call_list_count(c->graph->list);
        if (s->before > before) return RONDO_OK;
        if (s->wait) RONDO__TRY(rondo__order_wait(c->order, c->lanes[s->lane], nodes, c->points[s->event]));
        else RONDO__TRY(rondo__order_point(c->order, c->lanes[s->lane], nodes, &c->points[s->event]));
    }
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- nodes */

/* What the child's replays would copy around its list is used where it is. */
static void child_mend_slots(const child_copy *c, rondo__call_list_node *node) {
    for (uint32_t i = 0; i < node->argument_count; i++) {
        if (node->slots[i] == UINT32_MAX) continue;
        const rondo__graph_slot *slot = rondo__graph_slot_at(c->child, node->slots[i]);
        if (slot->own) node->arguments[i].word = node->arguments[i].word - slot->own + slot->bound;
    }
}

/* A random fill looks at cells of its graph, and its place comes behind what was taken before. */
static rondo_status child_mend_random(const child_copy *c, rondo__call_list_node *node) {
    for (uint32_t i = 0; i < c->child->generators.count; i++) {
        const rondo__rng_use *theirs = RONDO__BUFFER_AT(&c->child->generators, const rondo__rng_use, i);
        rondo__rng_use *ours;
        if (theirs->cells != node->arguments[RONDO__RNG_CELLS].word) continue;
        RONDO__TRY(rondo__graph_use_generator(c->graph, theirs->generator, &ours));
        node->arguments[RONDO__RNG_CELLS].word = ours->cells;
        node->references[RONDO__RNG_CELLS] = (rondo__memory_reference){0};
        node->arguments[RONDO__RNG_OFFSET].word += c->offsets[i];
        return RONDO_OK;
    }
    return RONDO__FAIL(INTERNAL, CAPTURE, "a random fill of graph '%s' belongs to none of its generators",
                       c->child->name);
}

static rondo_status child_append(const child_copy *c, rondo__call_list_node *node) {
    rondo__call_list *list = c->graph->list;
    const rondo_argument *a = node->arguments;
    rondo_call call = {sizeof call, node->argument_count, node->kernel, a, node->name};
    uint64_t entry;
    switch (node->kind) {
    case RONDO__LIST_COPY:
        /* Pinned memory of the child's copies is inherited; what a slot is bound to is not. */
        if (node->slots[0] != UINT32_MAX || node->slots[1] != UINT32_MAX)
            return rondo__graph_append_copy(c->graph, a[0].word, a[1].word, a[2].word, node->copy_kind);
        return rondo__call_list_append_copy(list, a[0].word, a[1].word, a[2].word, node->copy_kind);
    case RONDO__LIST_FILL: return rondo__call_list_append_fill(list, a[0].word, (uint8_t)a[1].word, a[2].word);
    case RONDO__LIST_HOST_CALL:
        return rondo__call_list_append_host(list, (rondo_host_function)(uintptr_t)a[0].word,
                                            (void *)(uintptr_t)a[1].word);
    case RONDO__LIST_RECORD:
    case RONDO__LIST_WAIT: return rondo__call_list_append_event(list, node->event, node->kind == RONDO__LIST_WAIT);
    case RONDO__LIST_CONDITION:
        RONDO__TRY(rondo__call_list_condition(list, a[0].word, &entry));
        rondo__call_list_condition_end(list, entry, c->first + node->end);
        return RONDO_OK;
    default:
        if (rondo__rng_is_captured(node->kernel)) RONDO__TRY(child_mend_random(c, node));
        return rondo__call_list_append_call(list, &call);
    }
}

/* What a replay takes of each generator, the capture takes here. */
static rondo_status child_generators(const child_copy *c, bool after) {
    for (uint32_t i = 0; i < c->child->generators.count; i++) {
        const rondo__rng_use *theirs = RONDO__BUFFER_AT(&c->child->generators, const rondo__rng_use, i);
        rondo__rng_use *ours;
        RONDO__TRY(rondo__graph_use_generator(c->graph, theirs->generator, &ours));
        if (after) ours->total += theirs->total;
        else c->offsets[i] = ours->total;
    }
    return RONDO_OK;
}

static rondo_status child_nodes(child_copy *c, uint32_t lane) {
    uint64_t count = rondo__call_list_count(c->child->list);
    size_t step = 0;
    RONDO__TRY(rondo__memory_inherit(c->graph->device->memory, &c->graph->watcher, &c->child->watcher));
    RONDO__TRY(child_take_lanes(c, lane));
    RONDO__TRY(child_generators(c, false));
    for (uint64_t i = 0; i < count; i++) {
        RONDO__TRY(child_steps(c, &step, i));
        rondo__call_list_describe(c->child->list, i, &c->node);
        rondo__call_list_lane(c->graph->list, c->lanes[c->node.lane]);
        child_mend_slots(c, &c->node);
        rondo__call_list_inherit(c->graph->list, c->node.references);
        rondo_status status = child_append(c, &c->node);
        rondo__call_list_inherit(c->graph->list, NULL);
        RONDO__TRY(status);
    }
    RONDO__TRY(child_steps(c, &step, count));
    RONDO__TRY(child_generators(c, true));
    child_give_lanes(c);
    return rondo__call_list_add_child(c->graph->list, c->first, count, c->child->name);
}

rondo_status rondo__graph_embed(const rondo_graph *child, rondo_stream *stream) {
    rondo_graph *graph = rondo__graph_of(stream);
    uint32_t lane;
    if (!graph)
        return RONDO__FAIL(UNSUPPORTED, CAPTURE, "replay of graph '%s' on a stream that something else records",
                           child->name);
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    child_copy c = {.graph = graph,
                    .child = child,
                    .order = rondo__call_list_lanes(graph->list),
                    .childs = rondo__call_list_lanes(child->list),
                    .first = rondo__call_list_count(graph->list)};
    rondo_status status = RONDO_OK;
    if (c.childs && graph->open.count) status = rondo__graph_check_closed(graph, "a child graph of several streams");
    if (!status) status = child_prepare(&c);
    if (!status) status = child_nodes(&c, lane);
    child_finish(&c);
    if (status)
        status =
            rondo__status_note(status, "while graph '%s' became a child of graph '%s', whose capture is now invalid",
                               child->name, graph->name);
    return rondo__graph_leave(graph, status);
}
