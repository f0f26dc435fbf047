/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph's life, its edges to the outside, and what one may ask about it. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/instance.h"
#include "base/sized.h"
#include "ir/private.h"

#define IR_GRAPH_ARENA_MAX (SIZE_MAX / 2u)
#define IR_GRAPH_EDGES_MAX (1u << 24)

typedef struct ir_graph_block {
    rondo_ir_graph graph;
    rondo__ir_names names;
} ir_graph_block;

uint32_t rondo__ir_depth(const rondo_ir_graph *graph) {
    uint32_t depth = 0;
    for (const rondo_ir_graph *around = graph->parent; around; around = around->parent) depth++;
    return depth;
}

static void ir_graph_destroy(rondo_ir_graph *graph) {
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        rondo_ir_graph *subgraph = *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i);
        subgraph->parent = NULL;
        rondo_ir_graph_release(subgraph);
    }
    rondo__ir_names *names = rondo__ir_names_of(graph);
    rondo__ir_table_deinit(&names->values);
    rondo__ir_table_deinit(&names->nodes);
    rondo__ir_table_deinit(&names->outputs);
    rondo__ir_table_deinit(&names->outers);
    rondo__ir_table_deinit(&names->operators);
    rondo__buffer_deinit(&graph->values);
    rondo__buffer_deinit(&graph->nodes);
    rondo__buffer_deinit(&graph->inputs);
    rondo__buffer_deinit(&graph->outputs);
    rondo__buffer_deinit(&graph->output_names);
    rondo__buffer_deinit(&graph->input_sizes);
    rondo__buffer_deinit(&graph->output_sizes);
    rondo__buffer_deinit(&graph->subgraphs);
    rondo__arena_deinit(&graph->arena);
    rondo__shared_release(graph->operators);
    rondo_allocator allocator = graph->allocator;
    rondo__free(&allocator, graph, sizeof(ir_graph_block));
}

/* Everything that cannot fail. */
static void ir_graph_init(ir_graph_block *block, const rondo_allocator *allocator) {
    rondo_ir_graph *graph = &block->graph;
    rondo__ref_init(&graph->references);
    graph->allocator = *allocator;
    rondo__arena_init(&graph->arena, allocator, IR_GRAPH_ARENA_MAX);
    rondo__buffer_init(&graph->values, allocator, sizeof(rondo__ir_value_data), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&graph->nodes, allocator, sizeof(rondo__ir_node_data), RONDO__IR_NODES_MAX);
    rondo__buffer_init(&graph->inputs, allocator, sizeof(rondo_ir_value), IR_GRAPH_EDGES_MAX);
    rondo__buffer_init(&graph->outputs, allocator, sizeof(rondo_ir_value), IR_GRAPH_EDGES_MAX);
    rondo__buffer_init(&graph->output_names, allocator, sizeof(const char *), IR_GRAPH_EDGES_MAX);
    rondo__buffer_init(&graph->input_sizes, allocator, sizeof(int64_t *), IR_GRAPH_EDGES_MAX);
    rondo__buffer_init(&graph->output_sizes, allocator, sizeof(int64_t *), IR_GRAPH_EDGES_MAX);
    rondo__buffer_init(&graph->subgraphs, allocator, sizeof(rondo_ir_graph *), RONDO__IR_NODES_MAX);
    /* The seed decides where names lie in the tables and nothing else. */
    uint64_t seed = (uint64_t)(uintptr_t)block * UINT64_C(0x9e3779b97f4a7c15) ^ rondo__now_ns();
    rondo__ir_table_init(&block->names.values, allocator, seed);
    rondo__ir_table_init(&block->names.nodes, allocator, seed);
    rondo__ir_table_init(&block->names.outputs, allocator, seed);
    rondo__ir_table_init(&block->names.outers, allocator, seed);
    rondo__ir_table_init(&block->names.operators, allocator, seed);
    graph->name_index = &block->names;
}

void rondo__ir_graph_share_operators(rondo_ir_graph *graph, rondo__shared *operators) {
    rondo__shared_retain(operators);
    rondo__shared_release(graph->operators);
    graph->operators = operators;
}

rondo_status rondo__ir_graph_create(const rondo_allocator *allocator, rondo_instance *instance, const char *name,
                                    rondo_ir_graph *parent, rondo_ir_graph **out_graph) {
    if (parent && rondo__ir_depth(parent) + 1u >= RONDO__IR_DEPTH_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "graph '%s' lies deeper than %u branches inside one another",
                           name ? name : "", RONDO__IR_DEPTH_MAX);
    }
    void *pointer;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(ir_graph_block), &pointer));
    ir_graph_init(pointer, allocator);
    rondo_ir_graph *graph = pointer;
    graph->instance = instance;
    if (parent) rondo__ir_graph_share_operators(graph, parent->operators);
    if (!name || !*name) name = "graph";
    rondo_status status = rondo__arena_string(&graph->arena, name, strlen(name), &graph->name);
    if (!status && parent) status = rondo__buffer_append(&parent->subgraphs, &graph, 1);
    if (status) {
        ir_graph_destroy(graph);
        return status;
    }
    graph->parent = parent;
    *out_graph = graph;
    return RONDO_OK;
}

rondo_status rondo_ir_graph_create(rondo_instance *instance, const char *name, rondo_ir_graph **out_graph) {
    if (!instance || !out_graph) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph needs an instance and a place");
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    RONDO__TRY(rondo__ir_graph_create(&base->allocator, instance, name, NULL, out_graph));
    rondo__ir_graph_share_operators(*out_graph, base->operators);
    return RONDO_OK;
}

void rondo_ir_graph_retain(rondo_ir_graph *graph) {
    if (graph) rondo__ref_retain(&graph->references);
}

void rondo_ir_graph_release(rondo_ir_graph *graph) {
    while (graph && rondo__ref_release(&graph->references)) {
        rondo_ir_graph *source = graph->source; /* copies of copies make a chain: a loop, not a recursion */
        ir_graph_destroy(graph);
        graph = source;
    }
}

/* Room for the sizes that rondo_ir_graph_input and _output lend out. */
static rondo_status ir_graph_edge_sizes(rondo_ir_graph *graph, rondo__buffer *sizes) {
    void *pointer;
    RONDO__TRY(rondo__arena_allocate_array(&graph->arena, RONDO_RANK_MAX, sizeof(int64_t), &pointer));
    return rondo__buffer_append(sizes, &pointer, 1);
}

rondo_status rondo__ir_input_add(rondo_ir_graph *graph, rondo_ir_value value) {
    if (value >= graph->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no value %u", graph->name, value);
    }
    rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    if (data->flags & RONDO__IR_VALUE_INPUT) {
        return RONDO__FAIL(ALREADY_EXISTS, PROTOTYPE, "value '%s' is an input of graph '%s' already", data->name,
                           graph->name);
    }
    if (data->producer != RONDO_IR_NONE || data->outer != RONDO_IR_NONE) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "value '%s' of graph '%s' is made there, it cannot be an input",
                           data->name, graph->name);
    }
    RONDO__TRY(rondo__buffer_reserve(&graph->inputs, graph->inputs.count + 1u));
    RONDO__TRY(ir_graph_edge_sizes(graph, &graph->input_sizes));
    RONDO__TRY(rondo__buffer_append(&graph->inputs, &value, 1));
    data->flags |= RONDO__IR_VALUE_INPUT;
    return RONDO_OK;
}

rondo_status rondo__ir_output_add(rondo_ir_graph *graph, rondo_ir_value value, const char *name) {
    if (value >= graph->values.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s' has no value %u", graph->name, value);
    }
    rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    rondo__ir_table *table = &rondo__ir_names_of(graph)->outputs;
    const char *kept = data->name;
    if (name && *name && strcmp(name, kept) != 0) {
        RONDO__TRY(rondo__arena_string(&graph->arena, name, strlen(name), &kept));
    }
    if (rondo__ir_table_find(table, kept) != RONDO_IR_NONE) {
        return RONDO__FAIL(ALREADY_EXISTS, PROTOTYPE, "graph '%s' already has an output '%s'", graph->name, kept);
    }
    RONDO__TRY(rondo__ir_table_reserve(table));
    RONDO__TRY(rondo__buffer_reserve(&graph->outputs, graph->outputs.count + 1u));
    RONDO__TRY(rondo__buffer_reserve(&graph->output_names, graph->outputs.count + 1u));
    RONDO__TRY(ir_graph_edge_sizes(graph, &graph->output_sizes));
    RONDO__TRY(rondo__buffer_append(&graph->outputs, &value, 1));
    RONDO__TRY(rondo__buffer_append(&graph->output_names, &kept, 1));
    rondo__ir_table_insert(table, kept, (uint32_t)(graph->outputs.count - 1u));
    data->flags |= RONDO__IR_VALUE_OUTPUT;
    return RONDO_OK;
}

rondo_status rondo_ir_graph_add_input(rondo_ir_graph *graph, const char *name, rondo_dtype dtype, int32_t rank,
                                      const int64_t *dims, const char *const *dim_names, rondo_ir_value *out_value) {
    if (!graph || !name || !*name || !out_value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an input needs a graph, a name and a place for its value");
    }
    if (dtype <= RONDO_DTYPE_UNDEFINED || dtype >= RONDO_DTYPE_COUNT) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s': %d is no data type", name, (int)dtype);
    }
    if (rank < 0 || rank > RONDO_RANK_MAX || (rank && !dims)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s': rank %d is not within 0 and %d, with sizes", name,
                           (int)rank, RONDO_RANK_MAX);
    }
    rondo__ir_dim sizes[RONDO_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) {
        const char *symbol = dims[i] < 0 && dim_names && dim_names[i] && *dim_names[i] ? dim_names[i] : NULL;
        sizes[i] = (rondo__ir_dim){.value = dims[i], .symbol = symbol};
    }
    rondo__ir_type type = {.dtype = dtype, .rank = rank, .dims = sizes};
    rondo_ir_value value = RONDO_IR_NONE;
    RONDO__TRY(rondo__ir_value_add(graph, name, NULL, &type, &value));
    RONDO__TRY(rondo__ir_input_add(graph, value));
    *out_value = value;
    return RONDO_OK;
}

rondo_status rondo_ir_graph_add_constant(rondo_ir_graph *graph, const char *name, rondo_dtype dtype, int32_t rank,
                                         const int64_t *dims, const void *data, rondo_ir_value *out_value) {
    if (!graph || !out_value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a constant needs a graph and a place for its value");
    }
    return rondo__ir_constant_add(graph, name, "constant", dtype, rank, dims, data, out_value);
}

rondo_status rondo_ir_graph_add_output(rondo_ir_graph *graph, rondo_ir_value value, const char *name) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an output needs a graph");
    return rondo__ir_output_add(graph, value, name);
}

static uint64_t ir_graph_add_bytes(uint64_t sum, uint64_t more) {
    uint64_t total;
    return rondo__checked_add_u64(sum, more, &total) ? total : UINT64_MAX;
}

static void ir_graph_count(const rondo_ir_graph *graph, rondo_ir_graph_info *info) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        if (!rondo__ir_node_at(graph, (rondo_ir_node)i)->dead) info->nodes++;
    }
    for (size_t i = 0; i < graph->values.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, (rondo_ir_value)i);
        if (!data->constant || data->outer != RONDO_IR_NONE) continue;
        info->constant_bytes = ir_graph_add_bytes(info->constant_bytes, data->constant->bytes);
    }
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        info->subgraphs++;
        ir_graph_count(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i), info);
    }
}

rondo_status rondo_ir_graph_get_info(const rondo_ir_graph *graph, rondo_ir_graph_info *out_info) {
    if (!graph) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph and an info with its struct_size are needed");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_INPUT, "rondo_ir_graph_info", out_info));
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    info.inputs = (uint32_t)graph->inputs.count;
    info.outputs = (uint32_t)graph->outputs.count;
    info.name = graph->name;
    info.opset = graph->opset;
    ir_graph_count(graph, &info);
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

/* The sizes are written only where they changed, so that several threads may ask about a graph that stays as it is. */
static void ir_graph_fill_info(const rondo__ir_value_data *data, const char *name, int64_t *sizes,
                               rondo_tensor_info *out_info) {
    const rondo__ir_type *type = &data->type;
    int64_t elements = 0;
    bool fixed = type->kind == RONDO__IR_TENSOR && type->rank >= 0;
    for (int32_t i = 0; i < type->rank; i++) {
        int64_t size = type->dims[i].value;
        if (sizes[i] != size) sizes[i] = size;
        fixed = fixed && size >= 0;
    }
    uint64_t bytes = 0;
    if (fixed && rondo__checked_elements(type->rank, sizes, &elements)) {
        rondo_status status = rondo_dtype_bytes(type->dtype, (uint64_t)elements, &bytes);
        if (status) bytes = 0;
        RONDO__IGNORE(status);
    }
    *out_info =
        (rondo_tensor_info){.name = name, .dtype = type->dtype, .rank = type->rank, .dims = sizes, .bytes = bytes};
}

rondo_status rondo_ir_graph_input(const rondo_ir_graph *graph, uint32_t index, rondo_tensor_info *out_info) {
    if (!graph || !out_info) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph and an info are needed");
    if (index >= graph->inputs.count || index >= graph->input_sizes.count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "graph '%s' has %zu inputs, there is none of index %u", graph->name,
                           graph->inputs.count, index);
    }
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_input_at(graph, index));
    ir_graph_fill_info(data, data->name, *RONDO__BUFFER_AT(&graph->input_sizes, int64_t *, index), out_info);
    return RONDO_OK;
}

rondo_status rondo_ir_graph_output(const rondo_ir_graph *graph, uint32_t index, rondo_tensor_info *out_info) {
    if (!graph || !out_info) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph and an info are needed");
    if (index >= graph->outputs.count || index >= graph->output_sizes.count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "graph '%s' has %zu outputs, there is none of index %u", graph->name,
                           graph->outputs.count, index);
    }
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_output_at(graph, index));
    ir_graph_fill_info(data, *RONDO__BUFFER_AT(&graph->output_names, const char *, index),
                       *RONDO__BUFFER_AT(&graph->output_sizes, int64_t *, index), out_info);
    return RONDO_OK;
}

const char *rondo_ir_graph_input_symbol(const rondo_ir_graph *graph, uint32_t index, int32_t axis) {
    if (!graph || index >= graph->inputs.count) return NULL;
    const rondo__ir_type *type = &rondo__ir_value_at(graph, rondo__ir_input_at(graph, index))->type;
    if (axis < 0 || axis >= type->rank || type->dims[axis].value >= 0) return NULL;
    return type->dims[axis].symbol;
}

static void ir_graph_collect(const rondo_ir_graph *graph, const char **names, size_t *count) {
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)i);
        if (!node->dead) names[(*count)++] = node->operator_name;
    }
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        ir_graph_collect(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i), names, count);
    }
}

static int ir_graph_compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

rondo_status rondo_ir_graph_count_operators(const rondo_ir_graph *graph,
                                            void (*visit)(void *user, const char *name, uint32_t count), void *user) {
    if (!graph || !visit) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a graph and a function to visit are needed");
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    ir_graph_count(graph, &info);
    if (!info.nodes) return RONDO_OK;
    void *pointer;
    RONDO__TRY(rondo__allocate_array(&graph->allocator, info.nodes, sizeof(const char *), &pointer));
    const char **names = pointer;
    size_t count = 0;
    ir_graph_collect(graph, names, &count);
    qsort(names, count, sizeof *names, ir_graph_compare_names);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1u;
        while (end < count && strcmp(names[i], names[end]) == 0) end++;
        visit(user, names[i], (uint32_t)(end - i));
        i = end;
    }
    rondo__free(&graph->allocator, names, info.nodes * sizeof *names);
    return RONDO_OK;
}
