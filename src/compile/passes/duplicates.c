/* SPDX-License-Identifier: Apache-2.0
 *
 * Two nodes that do the same to the same values are one, and so are two constants of the same contents. */
#include <string.h>

#include "compile/pass.h"

/* Larger constants are told apart by their beginning first. */
#define DUPLICATES_HASHED_MAX 4096u

typedef struct duplicates_entry {
    uint64_t hash;
    uint32_t index; /* of the value or node */
    uint32_t used;
} duplicates_entry;

typedef struct duplicates {
    rondo__compile_state *state;
    rondo_ir_graph *graph;
    rondo_ir_value *map;
    duplicates_entry *table; /* open addressing, never more than half full */
    size_t mask;
} duplicates;

static uint64_t duplicates_mix(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
        bytes += 8;
        size -= 8;
    }
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 32);
}

static rondo_status duplicates_table(duplicates *d, size_t count) {
    size_t capacity = 16;
    void *memory = NULL;
    while (capacity < 2 * count + 2) capacity *= 2;
    RONDO__TRY(rondo__arena_allocate_array(&d->state->arena, capacity, sizeof(duplicates_entry), &memory));
    d->table = memory;
    d->mask = capacity - 1;
    return RONDO_OK;
}

/* The entry of something equal, or the free one where it belongs. */
static duplicates_entry *duplicates_find(const duplicates *d, uint64_t hash, uint32_t index,
                                         bool (*equal)(const duplicates *d, uint32_t a, uint32_t b)) {
    for (size_t at = (size_t)hash & d->mask;; at = (at + 1) & d->mask) {
        duplicates_entry *entry = &d->table[at];
        if (!entry->used || (entry->hash == hash && equal(d, entry->index, index))) return entry;
    }
}

/* ---------------------------------------------------------------------------------------------- constants */

static const rondo__ir_constant *duplicates_constant(const duplicates *d, uint32_t value) {
    return rondo__ir_value_at(d->graph, value)->constant;
}

static uint64_t duplicates_hash_constant(const rondo__ir_constant *c) {
    uint64_t head[3] = {(uint64_t)(uint32_t)c->dtype, (uint64_t)(uint32_t)c->rank, c->bytes};
    uint64_t hash = duplicates_mix(0, head, sizeof head);
    if (c->rank > 0) hash = duplicates_mix(hash, c->dims, (size_t)c->rank * sizeof *c->dims);
    size_t bytes = c->bytes < DUPLICATES_HASHED_MAX ? c->bytes : DUPLICATES_HASHED_MAX;
    return bytes > 0 ? duplicates_mix(hash, c->data, bytes) : hash;
}

static bool duplicates_equal_constants(const duplicates *d, uint32_t a, uint32_t b) {
    const rondo__ir_constant *x = duplicates_constant(d, a), *y = duplicates_constant(d, b);
    if (x->dtype != y->dtype || x->rank != y->rank || x->bytes != y->bytes) return false;
    if (x->rank > 0 && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) != 0) return false;
    return x->bytes == 0 || x->data == y->data || memcmp(x->data, y->data, x->bytes) == 0;
}

static rondo_status duplicates_constants(duplicates *d, uint32_t *out_merged) {
    uint32_t *uses = NULL;
    RONDO__TRY(rondo__compile_count_uses(d->state, &uses));
    RONDO__TRY(duplicates_table(d, d->graph->values.count));
    for (size_t i = 0; i < d->graph->values.count; i++) {
        const rondo__ir_constant *c = duplicates_constant(d, (uint32_t)i);
        if (!c || uses[i] == 0 || c->dtype == RONDO_DTYPE_STRING) continue;
        uint64_t hash = duplicates_hash_constant(c);
        duplicates_entry *entry = duplicates_find(d, hash, (uint32_t)i, duplicates_equal_constants);
        if (entry->used) {
            d->map[i] = entry->index;
            ++*out_merged;
            RONDO__TRY(rondo__compile_changed(d->state, "constant '%s': the same as '%s'",
                                              rondo__ir_value_at(d->graph, (rondo_ir_value)i)->name,
                                              rondo__ir_value_at(d->graph, entry->index)->name));
        } else {
            *entry = (duplicates_entry){hash, (uint32_t)i, 1};
        }
    }
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------- nodes */

static uint64_t duplicates_hash_attribute(uint64_t hash, const rondo_attribute *a) {
    uint64_t head[2] = {(uint64_t)(uint32_t)a->kind, a->count};
    hash = duplicates_mix(duplicates_mix(hash, a->name, strlen(a->name)), head, sizeof head);
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: return duplicates_mix(hash, &a->value.i, sizeof a->value.i);
    case RONDO_ATTRIBUTE_FLOAT: return duplicates_mix(hash, &a->value.f, sizeof a->value.f);
    case RONDO_ATTRIBUTE_STRING: return duplicates_mix(hash, a->value.s.data, a->value.s.size);
    case RONDO_ATTRIBUTE_INTS: return a->count ? duplicates_mix(hash, a->value.ints, a->count * sizeof(int64_t)) : hash;
    case RONDO_ATTRIBUTE_FLOATS:
        return a->count ? duplicates_mix(hash, a->value.floats, a->count * sizeof(float)) : hash;
    default: return hash;
    }
}

static uint64_t duplicates_hash_node(const rondo__ir_node_data *node) {
    uint64_t head[2] = {node->input_count, node->output_count};
    uint64_t hash = duplicates_mix(0, node->operator_name, strlen(node->operator_name));
    hash = duplicates_mix(hash, head, sizeof head);
    if (node->input_count) hash = duplicates_mix(hash, node->inputs, node->input_count * sizeof *node->inputs);
    for (uint32_t i = 0; i < node->attribute_count; i++) hash = duplicates_hash_attribute(hash, &node->attributes[i]);
    return hash;
}

static bool duplicates_equal_nodes(const duplicates *d, uint32_t a, uint32_t b) {
    const rondo__ir_node_data *x = rondo__ir_node_at(d->graph, a), *y = rondo__ir_node_at(d->graph, b);
    if (x->input_count != y->input_count || x->output_count != y->output_count ||
        strcmp(x->operator_name, y->operator_name) != 0) {
        return false;
    }
    if (x->input_count && memcmp(x->inputs, y->inputs, x->input_count * sizeof *x->inputs) != 0) return false;
    for (uint32_t i = 0; i < x->output_count; i++) {
        if ((x->outputs[i] == RONDO_IR_NONE) != (y->outputs[i] == RONDO_IR_NONE)) return false;
    }
    return rondo__ir_attributes_equal(x->attributes, x->attribute_count, y->attributes, y->attribute_count);
}

static rondo_status duplicates_nodes(duplicates *d, uint32_t *out_merged) {
    RONDO__TRY(duplicates_table(d, d->graph->nodes.count));
    for (size_t n = 0; n < d->graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__ir_node_at(d->graph, (rondo_ir_node)n);
        if (node->dead) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != RONDO_IR_NONE) node->inputs[i] = d->map[node->inputs[i]];
        }
        const rondo__ops_prototype *prototype = rondo__ops_lookup(d->graph, node->operator_name);
        if (rondo__ir_node_held(node)) continue;
        if (!prototype || prototype->flags & (RONDO__OPS_RANDOM | RONDO__OPS_CONTROL)) continue;
        uint64_t hash = duplicates_hash_node(node);
        duplicates_entry *entry = duplicates_find(d, hash, (uint32_t)n, duplicates_equal_nodes);
        if (!entry->used) {
            *entry = (duplicates_entry){hash, (uint32_t)n, 1};
            continue;
        }
        const rondo__ir_node_data *first = rondo__ir_node_at(d->graph, entry->index);
        for (uint32_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i] == RONDO_IR_NONE) continue;
            d->map[node->outputs[i]] = first->outputs[i];
            rondo__ir_value_at(d->graph, node->outputs[i])->producer = RONDO_IR_NONE;
        }
        node->dead = true;
        ++*out_merged;
        RONDO__TRY(rondo__compile_changed(d->state, "node '%s' (%s): does the same as '%s'", node->name,
                                          node->operator_name, first->name));
    }
    return RONDO_OK;
}

rondo_status rondo__compile_duplicates(rondo__compile_state *state) {
    duplicates d = {.state = state, .graph = state->graph};
    uint32_t constants = 0, nodes = 0;
    RONDO__TRY(rondo__compile_identity_map(state, &d.map));
    RONDO__TRY(duplicates_constants(&d, &constants));
    RONDO__TRY(duplicates_nodes(&d, &nodes));
    rondo__ir_values_replace(d.graph, d.map);
    if (constants + nodes == 0) return RONDO_OK;
    return rondo__compile_remark(state, "%u nodes and %u constants were there twice", nodes, constants);
}
