/* SPDX-License-Identifier: Apache-2.0
 *
 * What graphs begin with, and what is said about a tensor later. */
#include <rondo/ir.h>
#include <stdio.h>
#include <string.h>

#include "es/private.h"

/* Gives up the tensor where something failed: the failure sticks. */
static rondo_es_tensor *es_details_done(rondo_es_builder *builder, rondo_status status, rondo_es_tensor *tensor) {
    if (!status) return tensor;
    rondo__es_fail(builder, status);
    return NULL;
}

static bool es_details_set(rondo_es_tensor *tensor, rondo_status status) {
    if (status) rondo__es_fail(tensor->builder, status);
    return !status;
}

static rondo_status es_details_input(rondo_es_builder *builder, rondo_ir_graph *graph, int64_t index, bool variable,
                                     const char *name, rondo_dtype dtype, const int64_t *shape, int64_t rank,
                                     rondo_es_tensor **out_tensor) {
    rondo__es_port port = {.index = index, .value = RONDO_IR_NONE, .variable = variable};
    char made[48];
    if (!name || !*name) {
        (void)snprintf(made, sizeof made, variable ? "variable_%lld" : "input_%lld", (long long)index);
        name = made;
    }
    if (index < 0 || rank < 0 || rank > RONDO_RANK_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "input '%s': its number %lld or rank %lld cannot be", name,
                           (long long)index, (long long)rank);
    }
    RONDO__TRY(rondo__buffer_reserve(&builder->inputs, builder->inputs.count + 1u));
    RONDO__TRY(rondo_ir_graph_add_input(graph, name, dtype, (int32_t)rank, shape, NULL, &port.value));
    RONDO__TRY(rondo__buffer_append(&builder->inputs, &port, 1));
    return rondo__es_holder(builder, port.value, out_tensor);
}

rondo_es_tensor *rondo_es_input_with_details(rondo_es_builder *builder, int64_t index, const char *name,
                                             rondo_dtype dtype, rondo_format format, const int64_t *shape,
                                             int64_t rank) {
    rondo_ir_graph *graph = builder ? rondo__es_graph(builder) : NULL;
    rondo_es_tensor *tensor = NULL;
    if (!graph) return NULL;
    rondo_status status = es_details_input(builder, graph, index, false, name, dtype, shape, rank, &tensor);
    if (!es_details_done(builder, status, tensor)) return NULL;
    return rondo_es_set_format(tensor, format) ? tensor : NULL;
}

rondo_es_tensor *rondo_es_input(rondo_es_builder *builder, int64_t index) {
    return rondo_es_input_with_details(builder, index, NULL, RONDO_DTYPE_F32, RONDO_FORMAT_ND, NULL, 0);
}

rondo_es_tensor *rondo_es_variable(rondo_es_builder *builder, int64_t index, const char *name) {
    rondo_ir_graph *graph = builder ? rondo__es_graph(builder) : NULL;
    rondo_attribute note = {.name = "variable", .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = index};
    rondo_es_tensor *tensor = NULL;
    if (!graph) return NULL;
    rondo_status status = es_details_input(builder, graph, index, true, name, RONDO_DTYPE_F32, NULL, 0, &tensor);
    if (!es_details_done(builder, status, tensor)) return NULL;
    return rondo_es_set_tensor_attribute(tensor, &note) ? tensor : NULL;
}

rondo_es_tensor *rondo_es_const(rondo_es_builder *builder, rondo_dtype dtype, const void *data, const int64_t *dims,
                                int64_t rank) {
    rondo_ir_graph *graph = builder ? rondo__es_graph(builder) : NULL;
    rondo_es_tensor *tensor = NULL;
    rondo_ir_value value = RONDO_IR_NONE;
    if (!graph) return NULL;
    rondo_status status = RONDO_OK;
    if (rank < 0 || rank > RONDO_RANK_MAX) {
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "graph '%s': a constant of rank %lld", builder->name,
                             (long long)rank);
    }
    if (!status) status = rondo_ir_graph_add_constant(graph, NULL, dtype, (int32_t)rank, dims, data, &value);
    if (!status) status = rondo__es_holder(builder, value, &tensor);
    return es_details_done(builder, status, tensor);
}

rondo_status rondo__es_bring(rondo_es_builder *builder, const rondo_es_tensor *tensor, rondo_ir_value *out_value) {
    if (tensor->builder == builder) {
        *out_value = tensor->value;
        return RONDO_OK;
    }
    /* From the outside in, a level at a time: builders lie as deep as graphs do, so this may recurse. */
    rondo_ir_value outer = RONDO_IR_NONE;
    if (!builder->around) {
        return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE,
                           "graph '%s' cannot use a tensor of graph '%s', which is not around it", builder->name,
                           tensor->builder->name);
    }
    RONDO__TRY(rondo__es_bring(builder->around, tensor, &outer));
    rondo_ir_graph *graph = rondo__es_graph(builder);
    if (!graph) return RONDO__FAIL(INVALID_STATE, PROTOTYPE, "graph '%s' has failed", builder->name);
    return rondo_ir_graph_outer_value(graph, outer, out_value);
}

rondo_es_tensor *rondo_es_outer(rondo_es_builder *branch, rondo_es_tensor *tensor) {
    rondo_es_tensor *brought = NULL;
    rondo_ir_value value = RONDO_IR_NONE;
    if (!branch || !tensor || !rondo__es_graph(branch)) return NULL;
    rondo_status status = rondo__es_bring(branch, tensor, &value);
    if (!status) status = rondo__es_holder(branch, value, &brought);
    return es_details_done(branch, status, brought);
}

/* The type of the tensor with something changed. */
static rondo__ir_value_data *es_details_of(const rondo_es_tensor *tensor) {
    rondo_ir_graph *graph = tensor ? rondo__es_graph(tensor->builder) : NULL;
    return graph ? rondo__ir_value_at(graph, tensor->value) : NULL;
}

static rondo_status es_details_own_type(const rondo__ir_value_data *data) {
    if (!data->constant && data->outer == RONDO_IR_NONE) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "the type of '%s' is that of its data", data->name);
}

bool rondo_es_set_dtype(rondo_es_tensor *tensor, rondo_dtype dtype) {
    rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_status status = es_details_own_type(data);
    if (!status && (dtype <= RONDO_DTYPE_UNDEFINED || dtype >= RONDO_DTYPE_COUNT)) {
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s': %d is no data type", data->name, (int)dtype);
    }
    if (!status) data->type.dtype = dtype;
    return es_details_set(tensor, status);
}

bool rondo_es_set_format(rondo_es_tensor *tensor, rondo_format format) {
    rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_status status = RONDO_OK;
    if (format < RONDO_FORMAT_ND || format > RONDO_FORMAT_PACKED) {
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s': %d is no format", data->name, (int)format);
    }
    if (!status) data->type.format = data->type.origin_format = format;
    return es_details_set(tensor, status);
}

static bool es_details_set_dims(rondo_es_tensor *tensor, const int64_t *shape, const char *const *symbols,
                                int64_t rank) {
    rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_status status = es_details_own_type(data);
    if (!status && (rank < 0 || rank > RONDO_RANK_MAX || (rank && !shape && !symbols))) {
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s': rank %lld is not within 0 and %d, with sizes",
                             data->name, (long long)rank, RONDO_RANK_MAX);
    }
    rondo_ir_graph *graph = tensor->builder->graph;
    void *pointer = NULL;
    if (!status) {
        status = rondo__arena_allocate_array(&graph->arena, (size_t)rank, sizeof(rondo__ir_dim), &pointer);
    }
    rondo__ir_dim *dims = pointer;
    for (int64_t i = 0; i < rank && !status; i++) {
        int64_t size = shape ? shape[i] : -1;
        if (size < -1) {
            status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s': axis %lld has size %lld", data->name, (long long)i,
                                 (long long)size);
        }
        dims[i] = (rondo__ir_dim){size, NULL, size < 0 ? 0 : size, size < 0 ? INT64_MAX : size};
        if (!status && symbols && symbols[i] && *symbols[i]) {
            status = rondo__arena_string(&graph->arena, symbols[i], strlen(symbols[i]), &dims[i].symbol);
        }
    }
    if (!status) {
        data->type.rank = (int32_t)rank;
        data->type.dims = dims;
    }
    return es_details_set(tensor, status);
}

bool rondo_es_set_shape(rondo_es_tensor *tensor, const int64_t *shape, int64_t rank) {
    return es_details_set_dims(tensor, shape, NULL, rank);
}

bool rondo_es_set_symbol_shape(rondo_es_tensor *tensor, const char *const *symbols, int64_t rank) {
    return es_details_set_dims(tensor, NULL, symbols, rank);
}

bool rondo_es_set_node_name(rondo_es_tensor *tensor, const char *name) {
    const rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_status status =
        data->producer == RONDO_IR_NONE
            ? RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "no node makes '%s' that could be named", data->name)
            : rondo__ir_node_rename(tensor->builder->graph, data->producer, name);
    return es_details_set(tensor, status);
}

bool rondo_es_set_node_attribute(rondo_es_tensor *tensor, const rondo_attribute *attribute) {
    if (!es_details_of(tensor)) return false;
    return es_details_set(tensor, rondo_ir_graph_set_attribute(tensor->builder->graph, tensor->value, attribute));
}

bool rondo_es_set_tensor_attribute(rondo_es_tensor *tensor, const rondo_attribute *attribute) {
    const rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    return es_details_set(tensor, attribute
                                      ? rondo__ir_value_attribute_set(tensor->builder->graph, tensor->value, attribute)
                                      : RONDO__FAIL(INVALID_ARGUMENT, INPUT, "'%s': a null attribute", data->name));
}

bool rondo_es_add_control_edge(rondo_es_tensor *tensor, rondo_es_tensor *const *before, int64_t before_count) {
    const rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_status status = RONDO_OK;
    if (before_count < 0 || (before_count && !before)) {
        status = RONDO__FAIL(INVALID_ARGUMENT, INPUT, "'%s': %lld control edges from nowhere", data->name,
                             (long long)before_count);
    }
    for (int64_t i = 0; i < before_count && !status; i++) {
        if (!before[i] || before[i]->builder != tensor->builder) {
            status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s': control edge %lld is from %s", data->name,
                                 (long long)i, before[i] ? "another graph" : "a null tensor");
        } else {
            status = rondo_ir_graph_add_control(tensor->builder->graph, tensor->value, before[i]->value);
        }
    }
    return es_details_set(tensor, status);
}

bool rondo_es_set_output_named(rondo_es_tensor *tensor, int64_t index, const char *name) {
    const rondo__ir_value_data *data = es_details_of(tensor);
    if (!data) return false;
    rondo_es_builder *builder = tensor->builder;
    rondo__es_port port = {.index = index, .value = tensor->value};
    rondo_status status = RONDO_OK;
    if (index < 0) {
        status = RONDO__FAIL(INVALID_ARGUMENT, PROTOTYPE, "'%s' cannot be output %lld", data->name, (long long)index);
    }
    if (!status && name && *name) status = rondo__arena_string(&builder->arena, name, strlen(name), &port.name);
    if (!status) status = rondo__buffer_append(&builder->outputs, &port, 1);
    return es_details_set(tensor, status);
}

bool rondo_es_set_output(rondo_es_tensor *tensor, int64_t index) {
    return rondo_es_set_output_named(tensor, index, NULL);
}
