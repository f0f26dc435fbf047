/* SPDX-License-Identifier: Apache-2.0
 *
 * What is constant is worked out once, now, by the host catalogue that is the oracle for all kernels. */
#include <string.h>

#include "base/checked.h"
#include "compile/pass.h"

/* A constant larger than what it is made of costs memory and time to load; below this it is worth it all the same. */
#define EVALUATE_BYTES_MAX ((uint64_t)16 << 20)

static rondo_status evaluate_outputs(rondo__compile_state *state, const rondo__compile_request *request, void **data,
                                     bool *out_fits) {
    uint64_t in = 0, out = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t count = pass == 0 ? request->request.input_count : request->request.output_count;
        const rondo_operand *operands = pass == 0 ? request->inputs : request->outputs;
        for (uint32_t i = 0; i < count; i++) {
            int64_t elements = 0;
            uint64_t bytes = 0;
            uint64_t *total = pass == 0 ? &in : &out;
            if (operands[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
            if (operands[i].dtype == RONDO_DTYPE_STRING) return RONDO_OK;
            if (!rondo__checked_elements(operands[i].rank, operands[i].dims, &elements)) return RONDO_OK;
            RONDO__TRY(rondo_dtype_bytes(operands[i].dtype, (uint64_t)elements, &bytes));
            if (!rondo__checked_add_u64(*total, bytes, total)) return RONDO_OK;
        }
    }
    uint64_t most = state->options.fold_bytes_max > 0 ? state->options.fold_bytes_max : EVALUATE_BYTES_MAX;
    if (out > most && out > in) return RONDO_OK;
    for (uint32_t i = 0; i < request->request.output_count; i++) {
        const rondo_operand *o = &request->outputs[i];
        int64_t elements = 0;
        uint64_t bytes = 0;
        data[i] = NULL;
        if (o->dtype == RONDO_DTYPE_UNDEFINED) continue;
        if (!rondo__checked_elements(o->rank, o->dims, &elements)) return RONDO_OK;
        RONDO__TRY(rondo_dtype_bytes(o->dtype, (uint64_t)elements, &bytes));
        RONDO__TRY(rondo__arena_allocate_aligned(&state->graph->arena, bytes > 0 ? (size_t)bytes : 1u, 64, &data[i]));
    }
    *out_fits = true;
    return RONDO_OK;
}

/* A folder that cannot, or a kernel that fails on these values, leaves the node to the run, which will say why. */
static rondo_status evaluate_run(rondo__compile_state *state, const rondo__compile_request *request,
                                 const void *const *inputs, void *const *outputs, bool *out_done) {
    rondo_status status = rondo__kernel_run(state->folder, &state->allocator, &request->request, inputs, outputs);
    rondo_code code = rondo_status_code(status);
    if (code == RONDO_CODE_OUT_OF_MEMORY) return status;
    *out_done = !status;
    rondo_status_release(status);
    return RONDO_OK;
}

rondo_status rondo__compile_evaluate(rondo__compile_state *state, const rondo__compile_request *request,
                                     const rondo__ir_constant **constants, bool *out_done) {
    const rondo_kernel_request *r = &request->request;
    bool fits = false, empty = true;
    void *memory = NULL;
    *out_done = false;
    RONDO__TRY(
        rondo__arena_allocate_array(&state->arena, (size_t)r->input_count + r->output_count, sizeof(void *), &memory));
    const void **inputs = memory;
    void **outputs = (void **)memory + r->input_count;
    RONDO__TRY(evaluate_outputs(state, request, outputs, &fits));
    if (!fits) return RONDO_OK;
    for (uint32_t i = 0; i < r->input_count; i++) inputs[i] = request->inputs[i].constant;
    for (uint32_t i = 0; i < r->output_count; i++) {
        int64_t elements = 0;
        if (request->outputs[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        empty = empty && rondo__checked_elements(request->outputs[i].rank, request->outputs[i].dims, &elements) &&
                elements == 0;
    }
    *out_done = empty;
    if (!empty) RONDO__TRY(evaluate_run(state, request, inputs, outputs, out_done));
    if (!*out_done) return RONDO_OK;
    for (uint32_t i = 0; i < r->output_count; i++) {
        const rondo_operand *o = &request->outputs[i];
        constants[i] = NULL;
        if (o->dtype == RONDO_DTYPE_UNDEFINED) continue;
        RONDO__TRY(rondo__ir_constant_make(state->graph, o->dtype, o->rank, o->dims, outputs[i], false, &constants[i]));
    }
    return RONDO_OK;
}

rondo_status rondo__compile_evaluate_sized(rondo__compile_state *state, const rondo__compile_request *request,
                                           const rondo__ir_constant **constants, bool *out_done) {
    const rondo_kernel_request *r = &request->request;
    bool fits = false;
    void *memory = NULL;
    size_t operands = (size_t)r->input_count + r->output_count;
    *out_done = false;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, operands, sizeof(void *), &memory));
    const void **inputs = memory;
    void **outputs = (void **)memory + r->input_count;
    RONDO__TRY(evaluate_outputs(state, request, outputs, &fits));
    if (!fits) return RONDO_OK;
    RONDO__TRY(rondo__arena_allocate_array(&state->arena, r->output_count, sizeof(int64_t[RONDO_RANK_MAX]), &memory));
    int64_t(*dims)[RONDO_RANK_MAX] = memory;
    for (uint32_t i = 0; i < r->input_count; i++) inputs[i] = request->inputs[i].constant;
    rondo_status status = rondo__kernel_run_sized(state->folder, &state->allocator, r, inputs, outputs, dims);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    *out_done = !status;
    rondo_status_release(status);
    for (uint32_t i = 0; i < r->output_count && *out_done; i++) {
        const rondo_operand *o = &request->outputs[i];
        constants[i] = NULL;
        if (o->dtype == RONDO_DTYPE_UNDEFINED) continue;
        RONDO__TRY(rondo__ir_constant_make(state->graph, o->dtype, o->rank, dims[i], outputs[i], false, &constants[i]));
    }
    return RONDO_OK;
}
