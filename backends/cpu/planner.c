/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading requests: what every planner asks of operands and attributes. */
#include "planner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

rondo_status rondo__cpu_refuse(const rondo__cpu_plan *plan, const char *format, ...) {
    char reason[256];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    const rondo_kernel_request *request = plan->request;
    return RONDO_PLUGIN_FAIL(plan->host, UNSUPPORTED, KERNEL, "cpu: %s (%s): %s", request->operator_name,
                             request->node_name ? request->node_name : "no name", reason);
}

/* The block's size stands in front of the context. */
enum { PLANNER_HEADER = 64 };

rondo_status rondo__cpu_context(rondo__cpu_plan *plan, uint64_t bytes, void *out_context) {
    const rondo_allocator *allocator = &plan->host->allocator;
    const uint64_t total = bytes + PLANNER_HEADER;
    unsigned char *block = NULL;
    if (bytes <= INT64_MAX / 2) block = allocator->reallocate(allocator->self, NULL, 0, (size_t)total, 64);
    if (!block) {
        return RONDO_PLUGIN_FAIL(plan->host, OUT_OF_MEMORY, KERNEL,
                                 "cpu: no memory for a kernel's context of %llu bytes", (unsigned long long)bytes);
    }
    memset(block, 0, (size_t)total);
    memcpy(block, &total, sizeof total);
    plan->kernel.context = block + PLANNER_HEADER;
    void *context = block + PLANNER_HEADER;
    memcpy(out_context, &context, sizeof context);
    return RONDO_OK;
}

void rondo__cpu_context_free(const rondo_host_api *host, const void *context) {
    if (!context) return;
    unsigned char *block = (unsigned char *)(uintptr_t)context - PLANNER_HEADER;
    uint64_t total;
    memcpy(&total, block, sizeof total);
    host->allocator.reallocate(host->allocator.self, block, (size_t)total, 0, 64);
}

static bool planner_operand_sane(const rondo_operand *operand) {
    if (operand->dtype == RONDO_DTYPE_UNDEFINED) return true;
    if (operand->rank < 0 || operand->rank > RONDO_RANK_MAX || operand->format != RONDO_FORMAT_ND) return false;
    uint64_t size = 16;
    bool empty = false;
    for (int32_t i = 0; i < operand->rank; i++) {
        if (operand->dims[i] < 0) return false;
        if (operand->dims[i] == 0) empty = true;
        /* A zero dim may stand beside others whose product has no meaning: they are bounded all the same. */
        if (operand->dims[i] > 0 && __builtin_mul_overflow(size, (uint64_t)operand->dims[i], &size)) return false;
        if (size > (uint64_t)1 << 62) return false;
    }
    (void)empty;
    return true;
}

rondo_status rondo__cpu_shape_check(const rondo__cpu_plan *plan, uint32_t least, uint32_t most, uint32_t outputs) {
    const rondo_kernel_request *request = plan->request;
    if (request->input_count < least || request->input_count > most)
        return rondo__cpu_refuse(plan, "%u inputs, this kernel takes %u to %u", request->input_count, least, most);
    if (request->output_count == 0 || request->output_count > outputs)
        return rondo__cpu_refuse(plan, "%u outputs, this kernel makes 1 to %u", request->output_count, outputs);
    for (uint32_t i = 0; i < request->input_count; i++) {
        if (!planner_operand_sane(&request->inputs[i]))
            return rondo__cpu_refuse(plan, "input %u has a shape or format that no kernel here takes", i);
        if (i < least && !rondo__cpu_input(plan, i)) return rondo__cpu_refuse(plan, "input %u is absent", i);
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        if (!planner_operand_sane(&request->outputs[i]))
            return rondo__cpu_refuse(plan, "output %u has a shape or format that no kernel here makes", i);
    }
    return RONDO_OK;
}

const rondo_operand *rondo__cpu_input(const rondo__cpu_plan *plan, uint32_t index) {
    if (index >= plan->request->input_count) return NULL;
    const rondo_operand *operand = &plan->request->inputs[index];
    return operand->dtype == RONDO_DTYPE_UNDEFINED ? NULL : operand;
}

const rondo_operand *rondo__cpu_output(const rondo__cpu_plan *plan, uint32_t index) {
    if (index >= plan->request->output_count) return NULL;
    const rondo_operand *operand = &plan->request->outputs[index];
    return operand->dtype == RONDO_DTYPE_UNDEFINED ? NULL : operand;
}

bool rondo__cpu_is(const rondo_operand *operand, rondo_dtype dtype) { return operand && operand->dtype == dtype; }

uint64_t rondo__cpu_span(const rondo_operand *operand, int32_t from, int32_t to) {
    uint64_t n = 1;
    for (int32_t i = from; i < to; i++) n *= (uint64_t)operand->dims[i];
    return n;
}

uint64_t rondo__cpu_elements(const rondo_operand *operand) { return rondo__cpu_span(operand, 0, operand->rank); }

uint64_t rondo__cpu_element_size(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_BOOL: return 1;
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16: return 2;
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_U32: return 4;
    case RONDO_DTYPE_F64:
    case RONDO_DTYPE_I64:
    case RONDO_DTYPE_U64:
    case RONDO_DTYPE_C64: return 8;
    default: return 0;
    }
}

uint64_t rondo__cpu_bytes(const rondo_operand *operand) {
    return rondo__cpu_elements(operand) * rondo__cpu_element_size(operand->dtype);
}

bool rondo__cpu_same_shape(const rondo_operand *a, const rondo_operand *b) {
    if (a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) return false;
    }
    return true;
}

const rondo_attribute *rondo__cpu_attribute(const rondo__cpu_plan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->request->attribute_count; i++) {
        if (strcmp(plan->request->attributes[i].name, name) == 0) return &plan->request->attributes[i];
    }
    return NULL;
}

int64_t rondo__cpu_attribute_int(const rondo__cpu_plan *plan, const char *name, int64_t otherwise) {
    const rondo_attribute *a = rondo__cpu_attribute(plan, name);
    return a && a->kind == RONDO_ATTRIBUTE_INT ? a->value.i : otherwise;
}

float rondo__cpu_attribute_float(const rondo__cpu_plan *plan, const char *name, float otherwise) {
    const rondo_attribute *a = rondo__cpu_attribute(plan, name);
    return a && a->kind == RONDO_ATTRIBUTE_FLOAT ? a->value.f : otherwise;
}

rondo_status rondo__cpu_attribute_ints(const rondo__cpu_plan *plan, const char *name, uint32_t count, int64_t otherwise,
                                       int64_t *out) {
    const rondo_attribute *a = rondo__cpu_attribute(plan, name);
    for (uint32_t i = 0; i < count; i++) out[i] = otherwise;
    if (!a) return RONDO_OK;
    if (a->kind != RONDO_ATTRIBUTE_INTS || a->count != count)
        return rondo__cpu_refuse(plan, "attribute %s does not have %u numbers", name, count);
    for (uint32_t i = 0; i < count; i++) out[i] = a->value.ints[i];
    return RONDO_OK;
}

static bool planner_text_is(const rondo_attribute *a, const char *text) {
    return a->kind == RONDO_ATTRIBUTE_STRING && a->value.s.size == strlen(text) &&
           memcmp(a->value.s.data, text, a->value.s.size) == 0;
}

bool rondo__cpu_attribute_is(const rondo__cpu_plan *plan, const char *name, const char *text) {
    const rondo_attribute *a = rondo__cpu_attribute(plan, name);
    return !a || planner_text_is(a, text);
}

bool rondo__cpu_constant_ints(const rondo_operand *operand, int64_t *out, uint32_t room, uint32_t *out_count) {
    if (!operand || !operand->constant) return false;
    const uint64_t count = rondo__cpu_elements(operand);
    if (count > room) return false;
    for (uint64_t i = 0; i < count; i++) {
        if (operand->dtype == RONDO_DTYPE_I64) {
            memcpy(&out[i], (const char *)operand->constant + i * 8, 8);
        } else if (operand->dtype == RONDO_DTYPE_I32) {
            int32_t v;
            memcpy(&v, (const char *)operand->constant + i * 4, 4);
            out[i] = v;
        } else {
            return false;
        }
    }
    *out_count = (uint32_t)count;
    return true;
}

bool rondo__cpu_constant_number(const rondo_operand *operand, double *out) {
    if (!operand || !operand->constant || rondo__cpu_elements(operand) != 1) return false;
    int64_t integer;
    uint32_t count;
    if (operand->dtype == RONDO_DTYPE_F32) {
        float f;
        memcpy(&f, operand->constant, sizeof f);
        *out = (double)f;
    } else if (operand->dtype == RONDO_DTYPE_F64) {
        memcpy(out, operand->constant, sizeof *out);
    } else if (rondo__cpu_constant_ints(operand, &integer, 1, &count)) {
        *out = (double)integer;
    } else {
        return false;
    }
    return true;
}

bool rondo__cpu_axis(int64_t axis, int32_t rank, int32_t *out) {
    if (axis < -(int64_t)rank || axis >= rank) return false;
    *out = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

/* A name of rondo.activation, how many of rondo.alpha and rondo.beta it reads, and what they are otherwise. */
typedef struct planner_activation {
    const char *name;
    uint32_t unary, finish, in_tile, reads;
    float alpha, beta;
} planner_activation;

rondo_status rondo__cpu_activation_read(const rondo__cpu_plan *plan, rondo__cpu_activation *out_activation) {
    const float infinite = __builtin_inff();
    const planner_activation known[] = {
        {"Relu", RONDO__CPU_RELU, RONDO__CPU_FINISH_CLIP, 1, 0, 0.0f, infinite},
        {"Clip", RONDO__CPU_CLIP, RONDO__CPU_FINISH_CLIP, 1, 2, -infinite, infinite},
        {"LeakyRelu", RONDO__CPU_LEAKY, RONDO__CPU_FINISH_LEAKY, 1, 1, 0.01f, -infinite},
        {"LeakyReluMax", RONDO__CPU_LEAKY, RONDO__CPU_FINISH_LEAKY, 1, 2, 0.01f, -infinite},
        {"HardSigmoid", RONDO__CPU_HARD_SIGMOID, RONDO__CPU_FINISH_HARD_SIGMOID, 1, 2, 0.2f, 0.5f},
        {"HardSwish", RONDO__CPU_HARD_SWISH, RONDO__CPU_FINISH_HARD_SWISH, 1, 2, 1.0f / 6.0f, 0.5f},
        {"Sigmoid", RONDO__CPU_SIGMOID, RONDO__CPU_FINISH_CLIP, 0, 0, -infinite, infinite},
        {"Tanh", RONDO__CPU_TANH, RONDO__CPU_FINISH_CLIP, 0, 0, -infinite, infinite},
        {"GeluTanh", RONDO__CPU_GELU_TANH, RONDO__CPU_FINISH_CLIP, 0, 0, -infinite, infinite},
    };
    *out_activation = (rondo__cpu_activation){.parameter = {-infinite, infinite}, .in_tile = 1};
    const rondo_attribute *a = rondo__cpu_attribute(plan, "rondo.activation");
    if (!a) return RONDO_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!planner_text_is(a, known[i].name)) continue;
        out_activation->strip = plan->set->unary[known[i].unary];
        out_activation->relu = known[i].unary == RONDO__CPU_RELU;
        out_activation->finish = known[i].finish;
        out_activation->in_tile = known[i].in_tile;
        out_activation->parameter[0] = known[i].alpha;
        out_activation->parameter[1] = known[i].beta;
        if (known[i].reads > 0)
            out_activation->parameter[0] = rondo__cpu_attribute_float(plan, "rondo.alpha", known[i].alpha);
        if (known[i].reads > 1)
            out_activation->parameter[1] = rondo__cpu_attribute_float(plan, "rondo.beta", known[i].beta);
        return RONDO_OK;
    }
    return rondo__cpu_refuse(plan, "no fused activation of that name");
}
