/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a kernel that tells how long its outputs are. */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "kernel/kernel.h"

/* The request with what asks for the sizes, in one block of memory. */
typedef struct kernel_sized {
    rondo_kernel_request request;
    int64_t *sizes;
    void **outputs;
    void *memory;
    size_t bytes;
    int64_t total; /* of the ranks */
} kernel_sized;

static rondo_status kernel_sized_make(const rondo_allocator *allocator, const rondo_kernel_request *request,
                                      void *const *outputs, kernel_sized *s) {
    const size_t count = (size_t)request->output_count + 1u, attributes = (size_t)request->attribute_count + 1u;
    s->total = 0;
    for (uint32_t i = 0; i < request->output_count; i++) {
        if (request->outputs[i].dtype != RONDO_DTYPE_UNDEFINED) s->total += request->outputs[i].rank;
    }
    s->bytes = count * (sizeof(rondo_operand) + sizeof(void *)) + attributes * sizeof(rondo_attribute) +
               ((size_t)s->total + 1u) * sizeof(int64_t);
    RONDO__TRY(rondo__allocate_zeroed(allocator, s->bytes, &s->memory));
    rondo_operand *operands = s->memory;
    rondo_attribute *list = (rondo_attribute *)(void *)(operands + count);
    s->outputs = (void **)(void *)(list + attributes);
    s->sizes = (int64_t *)(void *)(s->outputs + count);
    memcpy(operands, request->outputs, (count - 1u) * sizeof *operands);
    if (attributes > 1u) memcpy(list, request->attributes, (attributes - 1u) * sizeof *list);
    memcpy(s->outputs, outputs, (count - 1u) * sizeof *outputs);
    s->sizes[s->total] = s->total; /* the dims of the output for the sizes itself */
    operands[count - 1u] =
        (rondo_operand){.dtype = RONDO_DTYPE_I64, .rank = 1, .dims = s->sizes + s->total, .constant = NULL};
    list[attributes - 1u] =
        (rondo_attribute){.name = RONDO__KERNEL_SIZES, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value = {.i = 1}};
    s->outputs[count - 1u] = s->sizes;
    s->request = *request;
    s->request.outputs = operands;
    s->request.output_count = (uint32_t)count;
    s->request.attributes = list;
    s->request.attribute_count = (uint32_t)attributes;
    return RONDO_OK;
}

static rondo_status kernel_sized_read(const rondo_kernel_request *request, const int64_t *sizes,
                                      int64_t (*out_dims)[RONDO_RANK_MAX]) {
    for (uint32_t i = 0; i < request->output_count; i++) {
        const rondo_operand *output = &request->outputs[i];
        if (output->dtype == RONDO_DTYPE_UNDEFINED) continue;
        for (int32_t d = 0; d < output->rank; d++, sizes++) {
            if (*sizes < 0 || *sizes > output->dims[d]) {
                return RONDO__FAIL(KERNEL_FAILED, KERNEL,
                                   "node '%s': kernel '%s' gives axis %d of output %u the size %" PRId64
                                   ", it said that it is at most %" PRId64,
                                   request->node_name ? request->node_name : "", request->operator_name, d, i, *sizes,
                                   output->dims[d]);
            }
            out_dims[i][d] = *sizes;
        }
    }
    return RONDO_OK;
}

rondo_status rondo__kernel_run_sized(const rondo__kernel_set *set, const rondo_allocator *allocator,
                                     const rondo_kernel_request *request, const void *const *inputs,
                                     void *const *outputs, int64_t (*out_dims)[RONDO_RANK_MAX]) {
    kernel_sized s;
    RONDO__TRY(kernel_sized_make(allocator, request, outputs, &s));
    for (int64_t i = 0; i < s.total; i++) s.sizes[i] = -1; /* what nobody writes is no size */
    rondo_status status = rondo__kernel_run(set, allocator, &s.request, inputs, s.outputs);
    if (!status) status = kernel_sized_read(request, s.sizes, out_dims);
    rondo__free(allocator, s.memory, s.bytes);
    return status;
}
