/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps need which, from what they read and write and from control edges; whether lanes pay. */
#include <inttypes.h>

#include "compile/emit.h"

/* Tried when nobody said how many. */
#define STREAMS_LANES 4u
/* In nanoseconds: a call, a record with its wait. Bytes are worth one for eight: a guess that is the same everywhere, as
 * nobody measures here. */
#define STREAMS_CALL 2000u
#define STREAMS_WAIT 4000u
#define STREAMS_BYTES 8u
/* Readers of storages of many parts look at each part: more looks than this for each step are not worth the lanes. */
#define STREAMS_LOOKS 256u

typedef struct streams_write {
    uint32_t step, next; /* the write before it into the same storage + 1; 0: none */
    uint64_t begin, end;
} streams_write;

typedef struct streams_needs {
    rondo__emit *e;
    uint32_t *heads; /* a root: its last write + 1 */
    streams_write *writes;
    uint32_t *step_of; /* a node: its step; RONDO__PLAN_NONE: it has none. Null: there are no control edges */
    rondo__buffer list;
    uint64_t looks;
    uint32_t write_count;
} streams_needs;

static void streams_put(streams_needs *n, rondo_ir_value root, uint64_t begin, uint64_t bytes, uint32_t s) {
    if (bytes == 0) return;
    n->writes[n->write_count++] = (streams_write){s, n->heads[root], begin, begin + bytes};
    n->heads[root] = n->write_count;
}

static void streams_written(streams_needs *n, uint32_t s) {
    const rondo__emit_step *step = rondo__emit_step_at(n->e, s);
    uint64_t offset = 0;
    if (step->copy_output != RONDO__PLAN_NONE) return; /* the caller's memory, which no step reads */
    if (step->copy_into != RONDO_IR_NONE) {
        streams_put(n, step->copy_into, step->copy_offset, rondo__compile_bytes(n->e->graph, step->node.inputs[0]), s);
        return;
    }
    for (uint32_t i = 0; i < step->node.output_count; i++) {
        rondo_ir_value value = step->node.outputs[i];
        if (value == RONDO_IR_NONE) continue;
        rondo_ir_value root = rondo__emit_root(n->e, value, &offset);
        streams_put(n, root, offset, rondo__compile_bytes(n->e->graph, value), s);
    }
}

static rondo_status streams_read(streams_needs *n, rondo_ir_value value) {
    uint64_t begin = 0;
    rondo_ir_value root = rondo__emit_root(n->e, value, &begin);
    uint64_t end = begin + rondo__compile_bytes(n->e->graph, value);
    for (uint32_t w = n->heads[root]; w; w = n->writes[w - 1u].next) {
        const streams_write *write = &n->writes[w - 1u];
        n->looks++;
        if (write->begin < end && begin < write->end) RONDO__TRY(rondo__buffer_append(&n->list, &write->step, 1));
    }
    return RONDO_OK;
}

static rondo_status streams_controls(streams_needs *n, const rondo__ir_node_data *node) {
    for (uint32_t i = 0; n->step_of && i < node->control_count; i++) {
        uint32_t before = n->step_of[node->controls[i]];
        if (before != RONDO__PLAN_NONE) RONDO__TRY(rondo__buffer_append(&n->list, &before, 1));
    }
    return RONDO_OK;
}

/* What a step takes: all that it reads and writes has to pass. */
static uint64_t streams_cost(const rondo__emit *e, const rondo__emit_step *step) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < step->node.input_count + step->node.output_count; i++) {
        bool input = i < step->node.input_count;
        rondo_ir_value value = input ? step->node.inputs[i] : step->node.outputs[i - step->node.input_count];
        uint64_t more = value != RONDO_IR_NONE ? rondo__compile_bytes(e->graph, value) / STREAMS_BYTES : 0;
        bytes = more < (UINT64_MAX >> 32) - bytes ? bytes + more : UINT64_MAX >> 32;
    }
    return STREAMS_CALL + bytes;
}

/* The needs of all steps; false when there are too many to look at. */
static rondo_status streams_collect(streams_needs *n, bool *out_all) {
    rondo__emit *e = n->e;
    *out_all = false;
    for (uint32_t s = 0; s < e->steps.count; s++) {
        const rondo__emit_step *step = rondo__emit_step_at(e, s);
        e->lanes[s].first_need = (uint32_t)n->list.count;
        for (uint32_t i = 0; i < step->node.input_count; i++) {
            if (step->node.inputs[i] != RONDO_IR_NONE) RONDO__TRY(streams_read(n, step->node.inputs[i]));
        }
        if (step->from != RONDO_IR_NONE) RONDO__TRY(streams_controls(n, &step->node));
        e->lanes[s].need_count = (uint32_t)n->list.count - e->lanes[s].first_need;
        e->lanes[s].cost = streams_cost(e, step);
        streams_written(n, s);
        if (n->looks > (uint64_t)STREAMS_LOOKS * e->steps.count) return RONDO_OK;
    }
    *out_all = true;
    return RONDO_OK;
}

/* A node that others wait for by hand, and that no single step stands for: its name. What comes before what is then left
 * to one lane. */
static rondo_status streams_steps_of(streams_needs *n, const char **out_name) {
    const rondo__emit *e = n->e;
    void *memory = NULL;
    *out_name = NULL;
    if (e->graph->control_count == 0) return RONDO_OK;
    RONDO__TRY(rondo__arena_allocate_array(&e->state->arena, e->graph->nodes.count, sizeof(uint32_t), &memory));
    n->step_of = memory;
    for (size_t i = 0; i < e->graph->nodes.count; i++) n->step_of[i] = RONDO__PLAN_NONE;
    for (uint32_t s = 0; s < e->steps.count; s++) {
        rondo_ir_node from = rondo__emit_step_at(e, s)->from;
        if (from != RONDO_IR_NONE) n->step_of[from] = s;
    }
    for (size_t i = 0; i < e->graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(e->graph, (rondo_ir_node)i);
        if (!node->dead && rondo__ir_node_held(node) && n->step_of[i] == RONDO__PLAN_NONE) *out_name = node->name;
    }
    return RONDO_OK;
}

static bool streams_on_host(const rondo__emit *e) {
    for (size_t s = 0; s < e->steps.count; s++) {
        if (!(rondo__emit_step_at(e, s)->choice.catalogue.table->flags & RONDO_CATALOGUE_HOST)) return false;
    }
    return true;
}

/* The lanes were worked out; they stay when they were asked for, or when they take a tenth less time. */
static rondo_status streams_decide(rondo__emit *e, uint32_t asked) {
    rondo__streams *p = &e->streams;
    size_t waits = p->waits.count;
    uint32_t lanes = p->lanes;
    bool pays = p->parallel < p->serial - p->serial / 10u;
    if (lanes <= 1) {
        return asked > 1 ? rondo__compile_remark(e->state, "streams: 1 lane: each step needs the one before it")
                         : RONDO_OK;
    }
    if (!asked && !pays) p->lanes = 1;
    return rondo__compile_remark(e->state,
                                 "streams: %u lane%s: %u lanes with %zu waits would take about %" PRIu64
                                 " us, one lane %" PRIu64 " us%s",
                                 p->lanes, p->lanes == 1 ? "" : "s", lanes, waits, p->parallel / 1000u,
                                 p->serial / 1000u, asked ? "; it was asked for" : "");
}

static rondo_status streams_plan(streams_needs *n, uint32_t asked) {
    rondo__emit *e = n->e;
    const char *held = NULL;
    bool all = false;
    RONDO__TRY(streams_steps_of(n, &held));
    if (held) {
        return rondo__compile_remark(e->state, "streams: 1 lane: node '%s' is ordered by hand and is no step", held);
    }
    RONDO__TRY(streams_collect(n, &all));
    if (!all) {
        return rondo__compile_remark(e->state, "streams: 1 lane: storages have too many parts and readers to look at");
    }
    RONDO__TRY(rondo__plan_streams(&e->streams, e->lanes, (uint32_t)e->steps.count, n->list.data,
                                   asked ? asked : STREAMS_LANES, STREAMS_WAIT));
    return streams_decide(e, asked);
}

rondo_status rondo__emit_streams(rondo__emit *e) {
    rondo__arena *arena = &e->state->arena;
    uint32_t asked = e->state->options.lanes;
    void *memory = NULL;
    size_t writes = 0;
    if (asked == 1 || e->steps.count < 2) return RONDO_OK;
    if (e->segment_targets) {
        return asked
                   ? rondo__compile_remark(e->state, "streams: 1 lane a target: plans of several targets have no more")
                   : RONDO_OK;
    }
    if (!asked && streams_on_host(e)) {
        return rondo__compile_remark(e->state, "streams: 1 lane: its kernels run on the host, as one list");
    }
    streams_needs needs = {.e = e};
    for (size_t s = 0; s < e->steps.count; s++) writes += rondo__emit_step_at(e, s)->node.output_count;
    RONDO__TRY(rondo__arena_allocate_array(arena, e->steps.count, sizeof(rondo__streams_step), &memory));
    e->lanes = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, e->graph->values.count, sizeof(uint32_t), &memory));
    needs.heads = memory;
    RONDO__TRY(rondo__arena_allocate_array(arena, writes, sizeof(streams_write), &memory));
    needs.writes = memory;
    rondo__buffer_init(&needs.list, &e->state->allocator, sizeof(uint32_t), UINT32_MAX);
    rondo_status status = streams_plan(&needs, asked);
    rondo__buffer_deinit(&needs.list);
    return status;
}
