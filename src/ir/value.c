/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and constants: numbered, named, and found by name in constant time. */
#include <string.h>

#include "base/checked.h"
#include "ir/private.h"

static rondo_status ir_value_name(rondo_ir_graph *graph, const char *name, const char *stem, const char **out_name) {
    const rondo__ir_table *table = &rondo__ir_names_of(graph)->values;
    if (!name) return rondo__ir_name_make(graph, table, stem && *stem ? stem : "value", out_name);
    if (!*name) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': a value needs a name", graph->name);
    if (rondo__ir_table_find(table, name) != RONDO_IR_NONE) {
        return RONDO__FAIL(ALREADY_EXISTS, PROTOTYPE, "graph '%s' already has a value '%s'", graph->name, name);
    }
    return rondo__arena_string(&graph->arena, name, strlen(name), out_name);
}

/* `type` is already in an arena that lives as long as the graph. */
static rondo_status ir_value_append(rondo_ir_graph *graph, const char *name, const char *stem,
                                    const rondo__ir_type *type, rondo_ir_value *out_value) {
    rondo__ir_value_data data = {.type = *type, .producer = RONDO_IR_NONE, .outer = RONDO_IR_NONE};
    rondo__ir_table *table = &rondo__ir_names_of(graph)->values;
    RONDO__TRY(ir_value_name(graph, name, stem, &data.name));
    RONDO__TRY(rondo__ir_table_reserve(table));
    RONDO__TRY_NOTE(rondo__buffer_append(&graph->values, &data, 1), "while adding a value to graph '%s'", graph->name);
    rondo_ir_value value = (rondo_ir_value)(graph->values.count - 1u);
    rondo__ir_table_insert(table, data.name, value);
    *out_value = value;
    return RONDO_OK;
}

rondo_status rondo__ir_value_add(rondo_ir_graph *graph, const char *name, const char *stem, const rondo__ir_type *type,
                                 rondo_ir_value *out_value) {
    rondo__ir_type copy = {.rank = -1};
    if (type) RONDO__TRY_NOTE(rondo__ir_type_copy(graph, type, &copy), "value '%s'", name ? name : stem ? stem : "");
    return ir_value_append(graph, name, stem, &copy, out_value);
}

rondo_ir_value rondo__ir_value_find(const rondo_ir_graph *graph, const char *name) {
    return name ? rondo__ir_table_find(&rondo__ir_names_of(graph)->values, name) : RONDO_IR_NONE;
}

/* After a replacement several values may stand for one outer value: the first is the one to give. */
static rondo_status ir_value_reindex_outers(rondo_ir_graph *subgraph) {
    rondo__ir_names *names = rondo__ir_names_of(subgraph);
    rondo__ir_table_clear(&names->outers);
    for (size_t i = subgraph->values.count; i-- > 0;) {
        rondo_ir_value outer = rondo__ir_value_at(subgraph, (rondo_ir_value)i)->outer;
        if (outer == RONDO_IR_NONE) continue;
        RONDO__TRY(rondo__ir_table_reserve(&names->outers));
        rondo__ir_table_insert(&names->outers, rondo__ir_value_at(subgraph->parent, outer)->name, (uint32_t)i);
    }
    names->outers_stale = false;
    return RONDO_OK;
}

rondo_status rondo__ir_value_outer(rondo_ir_graph *subgraph, rondo_ir_value outer, rondo_ir_value *out_value) {
    const rondo_ir_graph *parent = subgraph->parent;
    if (!parent || outer >= parent->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no value %u around it", subgraph->name, outer);
    }
    rondo__ir_names *names = rondo__ir_names_of(subgraph);
    if (names->outers_stale) RONDO__TRY(ir_value_reindex_outers(subgraph));
    const rondo__ir_value_data *source = rondo__ir_value_at(parent, outer);
    rondo_ir_value found = rondo__ir_table_find(&names->outers, source->name);
    if (found == RONDO_IR_NONE) {
        /* A value of the branch may have taken the name: then one is made from it. */
        bool taken = rondo__ir_value_find(subgraph, source->name) != RONDO_IR_NONE;
        RONDO__TRY(rondo__ir_table_reserve(&names->outers));
        RONDO__TRY(ir_value_append(subgraph, taken ? NULL : source->name, source->name, &source->type, &found));
        rondo__ir_value_data *data = rondo__ir_value_at(subgraph, found);
        data->outer = outer;
        data->constant = source->constant;
        rondo__ir_table_insert(&names->outers, source->name, found);
    }
    *out_value = found;
    return RONDO_OK;
}

rondo_status rondo__ir_data_size(rondo_dtype dtype, int32_t rank, const int64_t *dims, int64_t *out_elements,
                                 size_t *out_bytes) {
    if (rank < 0 || rank > RONDO_RANK_MAX || (rank && !dims)) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "rank %d is not within 0 and %d", (int)rank, RONDO_RANK_MAX);
    }
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "axis %d has size %lld", (int)i, (long long)dims[i]);
        }
    }
    int64_t elements;
    uint64_t bytes;
    if (!rondo__checked_elements(rank, dims, &elements)) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "a tensor has more elements than can be counted");
    }
    if (dtype == RONDO_DTYPE_STRING) {
        if (!rondo__checked_mul_u64((uint64_t)elements, sizeof(rondo_string), &bytes)) {
            return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "a tensor of %lld strings is too large", (long long)elements);
        }
    } else {
        RONDO__TRY(rondo_dtype_bytes(dtype, (uint64_t)elements, &bytes));
    }
    if (bytes > SIZE_MAX / 2u) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "a tensor of %llu bytes is too large", (unsigned long long)bytes);
    }
    *out_elements = elements;
    *out_bytes = (size_t)bytes;
    return RONDO_OK;
}

rondo_status rondo__ir_data_copy(rondo_ir_graph *graph, rondo_dtype dtype, int64_t elements, size_t bytes,
                                 const void *data, const void **out_data) {
    void *pointer;
    RONDO__TRY(rondo__arena_copy_aligned(&graph->arena, data, bytes, 64, &pointer));
    if (dtype == RONDO_DTYPE_STRING) {
        rondo_string *strings = pointer;
        for (int64_t i = 0; i < elements; i++) {
            const char *text = strings[i].size ? strings[i].data : "";
            if (!text) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "string %lld has no bytes", (long long)i);
            RONDO__TRY(rondo__arena_string(&graph->arena, text, strings[i].size, &strings[i].data));
        }
    }
    *out_data = pointer;
    return RONDO_OK;
}

rondo_status rondo__ir_constant_make(rondo_ir_graph *graph, rondo_dtype dtype, int32_t rank, const int64_t *dims,
                                     const void *data, bool copy, const rondo__ir_constant **out_constant) {
    int64_t elements = 0;
    size_t bytes = 0;
    RONDO__TRY(rondo__ir_data_size(dtype, rank, dims, &elements, &bytes));
    if (bytes && !data) return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "a constant of %zu bytes has no data", bytes);
    void *pointer;
    RONDO__TRY(rondo__arena_allocate(&graph->arena, sizeof(rondo__ir_constant), &pointer));
    rondo__ir_constant *constant = pointer;
    constant->dtype = dtype;
    constant->rank = rank;
    constant->bytes = bytes;
    RONDO__TRY(rondo__arena_copy(&graph->arena, dims, (size_t)rank * sizeof *dims, &pointer));
    constant->dims = pointer;
    constant->data = data;
    if (copy) RONDO__TRY(rondo__ir_data_copy(graph, dtype, elements, bytes, data, &constant->data));
    *out_constant = constant;
    return RONDO_OK;
}

rondo_status rondo__ir_constant_add(rondo_ir_graph *graph, const char *name, const char *stem, rondo_dtype dtype,
                                    int32_t rank, const int64_t *dims, const void *data, rondo_ir_value *out_value) {
    const rondo__ir_constant *constant = NULL;
    rondo__ir_type type = {.rank = -1};
    rondo_ir_value value = RONDO_IR_NONE;
    const char *shown = name ? name : stem ? stem : "";
    RONDO__TRY_NOTE(rondo__ir_constant_make(graph, dtype, rank, dims, data, true, &constant), "constant '%s'", shown);
    RONDO__TRY_NOTE(rondo__ir_type_from_dims(graph, dtype, rank, dims, &type), "constant '%s'", shown);
    RONDO__TRY(ir_value_append(graph, name, stem, &type, &value));
    rondo__ir_value_at(graph, value)->constant = constant;
    *out_value = value;
    return RONDO_OK;
}

static void ir_value_replace_outers(rondo_ir_graph *graph, const rondo_ir_value *map) {
    for (size_t s = 0; s < graph->subgraphs.count; s++) {
        rondo_ir_graph *subgraph = *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, s);
        bool changed = false;
        for (size_t i = 0; i < subgraph->values.count; i++) {
            rondo__ir_value_data *data = rondo__ir_value_at(subgraph, (rondo_ir_value)i);
            if (data->outer == RONDO_IR_NONE || map[data->outer] == data->outer) continue;
            data->outer = map[data->outer];
            changed = true;
        }
        if (changed) rondo__ir_names_of(subgraph)->outers_stale = true;
    }
}

static void ir_value_replace_output(rondo_ir_graph *graph, rondo_ir_value *output, rondo_ir_value to) {
    rondo__ir_value_at(graph, *output)->flags &= ~(uint32_t)RONDO__IR_VALUE_OUTPUT;
    *output = to;
}

static void ir_value_mark_outputs(rondo_ir_graph *graph) {
    for (size_t i = 0; i < graph->outputs.count; i++) {
        rondo__ir_value_at(graph, rondo__ir_output_at(graph, (uint32_t)i))->flags |= RONDO__IR_VALUE_OUTPUT;
    }
}

void rondo__ir_values_replace(rondo_ir_graph *graph, rondo_ir_value *map) {
    for (size_t i = 0; i < graph->values.count; i++) { /* chains end where a value maps to itself */
        rondo_ir_value end = map[i];
        while (map[end] != end) end = map[end];
        rondo_ir_value at = (rondo_ir_value)i;
        while (map[at] != end) {
            rondo_ir_value next = map[at];
            map[at] = end;
            at = next;
        }
    }
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != RONDO_IR_NONE) node->inputs[i] = map[node->inputs[i]];
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        rondo_ir_value *output = RONDO__BUFFER_AT(&graph->outputs, rondo_ir_value, i);
        if (map[*output] != *output) ir_value_replace_output(graph, output, map[*output]);
    }
    ir_value_mark_outputs(graph);
    ir_value_replace_outers(graph, map);
}

void rondo__ir_value_replace(rondo_ir_graph *graph, rondo_ir_value from, rondo_ir_value to) {
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] == from) node->inputs[i] = to;
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        rondo_ir_value *output = RONDO__BUFFER_AT(&graph->outputs, rondo_ir_value, i);
        if (*output == from) ir_value_replace_output(graph, output, to);
    }
    ir_value_mark_outputs(graph);
    for (size_t s = 0; s < graph->subgraphs.count; s++) {
        rondo_ir_graph *subgraph = *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, s);
        for (size_t i = 0; i < subgraph->values.count; i++) {
            rondo__ir_value_data *data = rondo__ir_value_at(subgraph, (rondo_ir_value)i);
            if (data->outer != from) continue;
            data->outer = to;
            rondo__ir_names_of(subgraph)->outers_stale = true;
        }
    }
}
