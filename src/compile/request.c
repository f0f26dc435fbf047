/* SPDX-License-Identifier: Apache-2.0
 *
 * A node and its values as a kernel catalogue wants to be asked about them, and other small questions to a graph. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "compile/pass.h"

#define COMPILE_REMARKS_MAX (1u << 20)

static rondo_status compile_remark_add(rondo__compile_state *state, const char *format, va_list arguments) {
    char line[512];
    int length = vsnprintf(line, sizeof line, format, arguments);
    if (length < 0 || state->remarks.count >= COMPILE_REMARKS_MAX) return RONDO_OK;
    const char *text = NULL;
    RONDO__TRY(rondo__arena_string(&state->arena, line, strlen(line), &text));
    return rondo__buffer_append(&state->remarks, &text, 1);
}

rondo_status rondo__compile_remark(rondo__compile_state *state, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    rondo_status status = compile_remark_add(state, format, arguments);
    va_end(arguments);
    return status;
}

rondo_status rondo__compile_changed(rondo__compile_state *state, const char *format, ...) {
    state->changes++;
    if (!(state->options.flags & RONDO_COMPILE_EXPLAIN)) return RONDO_OK;
    va_list arguments;
    va_start(arguments, format);
    rondo_status status = compile_remark_add(state, format, arguments);
    va_end(arguments);
    return status;
}

void rondo__compile_request_init(rondo__compile_request *request, const rondo_allocator *allocator) {
    memset(request, 0, sizeof *request);
    rondo__buffer_init(&request->operands, allocator, sizeof(rondo_operand), RONDO__IR_VALUES_MAX);
    rondo__buffer_init(&request->dims, allocator, sizeof(int64_t[RONDO_RANK_MAX]), RONDO__IR_VALUES_MAX);
}

void rondo__compile_request_deinit(rondo__compile_request *request) {
    rondo__buffer_deinit(&request->operands);
    rondo__buffer_deinit(&request->dims);
}

static void compile_request_operand(const rondo_ir_graph *graph, rondo_ir_value value, int64_t *dims,
                                    rondo_operand *operand) {
    memset(operand, 0, sizeof *operand);
    operand->dims = dims;
    if (value == RONDO_IR_NONE) return;
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, value);
    operand->dtype = data->type.dtype;
    operand->rank = rondo__compile_dims(graph, value, dims);
    operand->format = data->type.format;
    operand->constant = data->constant ? data->constant->data : NULL;
}

rondo_status rondo__compile_request_make(rondo__compile_request *request, const rondo_ir_graph *graph,
                                         const rondo__ir_node_data *node) {
    size_t count = (size_t)node->input_count + node->output_count;
    request->operands.count = 0;
    request->dims.count = 0;
    RONDO__TRY(rondo__buffer_append(&request->operands, NULL, count));
    RONDO__TRY(rondo__buffer_append(&request->dims, NULL, count));
    int64_t(*dims)[RONDO_RANK_MAX] = request->dims.data;
    request->inputs = request->operands.data;
    request->outputs = count > 0 ? request->inputs + node->input_count : NULL;
    request->output_dims = count > 0 ? dims + node->input_count : NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        compile_request_operand(graph, node->inputs[i], dims[i], &request->inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        compile_request_operand(graph, node->outputs[i], request->output_dims[i], &request->outputs[i]);
    }
    rondo_kernel_request made = RONDO_KERNEL_REQUEST_INIT;
    made.input_count = node->input_count;
    made.output_count = node->output_count;
    made.attribute_count = node->attribute_count;
    made.operator_name = node->operator_name;
    made.inputs = request->inputs;
    made.outputs = request->outputs;
    made.attributes = node->attributes;
    made.node_name = node->name;
    request->request = made;
    return RONDO_OK;
}

rondo_status rondo__compile_count_uses(rondo__compile_state *state, uint32_t **out_uses) {
    const rondo_ir_graph *graph = state->graph;
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, graph->values.count, sizeof(uint32_t), &memory));
    uint32_t *uses = memory;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        if (node->dead) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != RONDO_IR_NONE) uses[node->inputs[i]]++;
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) uses[rondo__ir_output_at(graph, (uint32_t)i)]++;
    *out_uses = uses;
    return RONDO_OK;
}

rondo_status rondo__compile_identity_map(rondo__compile_state *state, rondo_ir_value **out_map) {
    void *memory = NULL;
    size_t count = state->graph->values.count;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, count, sizeof(rondo_ir_value), &memory));
    rondo_ir_value *map = memory;
    for (size_t i = 0; i < count; i++) map[i] = (rondo_ir_value)i;
    *out_map = map;
    return RONDO_OK;
}

int32_t rondo__compile_dims(const rondo_ir_graph *graph, rondo_ir_value value, int64_t *dims) {
    const rondo__ir_type *type = &rondo__ir_value_at(graph, value)->type;
    for (int32_t i = 0; i < type->rank; i++) dims[i] = type->dims[i].value;
    return type->rank;
}

/* Resolve has checked that the product fits and that the type has a size; 0 for those that have none (strings). */
uint64_t rondo__compile_bytes(const rondo_ir_graph *graph, rondo_ir_value value) {
    int64_t dims[RONDO_RANK_MAX], elements = 0;
    uint64_t bytes = 0;
    int32_t rank = rondo__compile_dims(graph, value, dims);
    uint64_t bits = rondo_dtype_bits(rondo__ir_value_at(graph, value)->type.dtype);
    if (!rondo__checked_elements(rank, dims, &elements)) return 0;
    if (!rondo__checked_mul_u64((uint64_t)elements, bits, &bytes)) return 0;
    return bytes / 8u + (bytes % 8u ? 1u : 0u);
}

bool rondo__compile_same_dims(const rondo_ir_graph *graph, rondo_ir_value a, rondo_ir_value b) {
    const rondo__ir_type *x = &rondo__ir_value_at(graph, a)->type;
    const rondo__ir_type *y = &rondo__ir_value_at(graph, b)->type;
    if (x->dtype != y->dtype || x->rank != y->rank) return false;
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->dims[i].value != y->dims[i].value) return false;
    }
    return true;
}
