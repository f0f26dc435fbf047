/* SPDX-License-Identifier: Apache-2.0
 *
 * A node between plans: inferred with the values that are there now, and run by a host kernel on host memory. */
#include <string.h>

#include "ops/ops.h"
#include "session/region.h"

int64_t rondo__region_int(const rondo__region_step *s, const char *name, int64_t otherwise) {
    for (uint32_t i = 0; i < s->step->attribute_count; i++) {
        const rondo_attribute *a = &s->step->attributes[i];
        if (a->kind == RONDO_ATTRIBUTE_INT && strcmp(a->name, name) == 0) return a->value.i;
    }
    return otherwise;
}

bool rondo__region_number(const rondo_value *value, int64_t *out_number) {
    int64_t elements = 1;
    if (!value || value->kind != RONDO_VALUE_TENSOR) return false;
    for (int32_t i = 0; i < value->rank; i++) elements *= value->dims[i];
    if (elements != 1) return false;
    switch (value->dtype) {
    case RONDO_DTYPE_BOOL: *out_number = *(const uint8_t *)value->data != 0; return true;
    case RONDO_DTYPE_I32: *out_number = *(const int32_t *)value->data; return true;
    case RONDO_DTYPE_I64: *out_number = *(const int64_t *)value->data; return true;
    default: return false;
    }
}

/* ------------------------------------------------------------------------------------------------------- kernels */

typedef struct step_kernel {
    const rondo__ops_prototype *prototype;
    rondo_operand *inputs, *outputs;
    int64_t (*dims)[RONDO_RANK_MAX]; /* of outputs; then what they turned out to be */
    const void **in;
    void **out;
    rondo_kernel_request request;
} step_kernel;

static bool step_has_host_kernels(const rondo__kernel_set *set) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->catalogues[i].table->flags & RONDO_CATALOGUE_HOST) return true;
    }
    return false;
}

/* The device's own where they are host functions, else the reference. */
static rondo_status step_run(const rondo__region_step *s, step_kernel *k) {
    const rondo__kernel_set *own = &s->session->device->kernels;
    const rondo__kernel_set *set = step_has_host_kernels(own) ? own : &s->session->folder;
    const rondo_allocator *allocator = &s->session->allocator;
    if (k->prototype->flags & RONDO__OPS_SIZED) {
        RONDO__TRY(rondo__kernel_run_sized(set, allocator, &k->request, k->in, k->out, k->dims));
        for (uint32_t i = 0; i < s->step->output_count; i++) {
            if (s->outputs[i]) rondo__value_shrink(s->outputs[i], k->dims[i]);
        }
        return RONDO_OK;
    }
    bool empty = true;
    for (uint32_t i = 0; i < s->step->output_count; i++) empty = empty && (!s->outputs[i] || !s->outputs[i]->bytes);
    return empty ? RONDO_OK : rondo__kernel_run(set, allocator, &k->request, k->in, k->out);
}

static rondo_status step_infer(const rondo__region_step *s, step_kernel *k) {
    const rondo__compile_step *step = s->step;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const rondo_value *value = s->inputs[i];
        if (!value) continue;
        if (value->kind != RONDO_VALUE_TENSOR) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input %u is a sequence or an optional, it must be a tensor",
                               i);
        }
        bool shapes = i < 64 && (k->prototype->shape_inputs >> i & 1u);
        k->in[i] = value->data;
        k->inputs[i] = (rondo_operand){
            .dtype = value->dtype, .rank = value->rank, .dims = value->dims, .constant = shapes ? value->data : NULL};
    }
    rondo_kernel_request made = RONDO_KERNEL_REQUEST_INIT;
    made.input_count = step->input_count;
    made.output_count = step->output_count;
    made.attribute_count = step->attribute_count;
    made.operator_name = step->operator_name;
    made.inputs = k->inputs;
    made.outputs = k->outputs;
    made.attributes = step->attributes;
    made.node_name = step->name;
    k->request = made;
    return rondo__ops_infer_with(k->prototype, &k->request, k->outputs, k->dims);
}

static rondo_status step_outputs(const rondo__region_step *s, step_kernel *k) {
    for (uint32_t i = 0; i < s->step->output_count; i++) {
        rondo_operand *o = &k->outputs[i];
        if (s->step->outputs[i] == RONDO__COMPILE_SLOT_NONE) {
            *o = (rondo_operand){0};
            continue;
        }
        if (o->dtype == RONDO_DTYPE_UNDEFINED) {
            return RONDO__FAIL(INVALID_ARGUMENT, META, "it does not give its output %u", i);
        }
        o->dims = k->dims[i];
        RONDO__TRY(rondo__value_tensor(&s->session->allocator, o->dtype, o->rank, o->dims, &s->outputs[i]));
        k->out[i] = s->outputs[i]->data;
    }
    return RONDO_OK;
}

static rondo_status step_kernel_run(const rondo__region_step *s) {
    const rondo__compile_step *step = s->step;
    step_kernel k = {.prototype = rondo__ops_lookup(s->graph, step->operator_name)};
    const size_t in = step->input_count, out = step->output_count;
    const size_t bytes = (in + out) * (sizeof(rondo_operand) + sizeof(void *)) + out * sizeof *k.dims;
    void *memory = NULL;
    if (!k.prototype) return RONDO__FAIL(UNSUPPORTED, PROTOTYPE, "there is no operator '%s'", step->operator_name);
    RONDO__TRY(rondo__allocate_zeroed(&s->session->allocator, bytes, &memory));
    k.inputs = memory;
    k.outputs = k.inputs + in;
    k.dims = (int64_t(*)[RONDO_RANK_MAX])(void *)(k.outputs + out);
    k.in = (const void **)(void *)(k.dims + out);
    k.out = (void **)(void *)(k.in + in);
    rondo_status status = step_infer(s, &k);
    if (!status) status = step_outputs(s, &k);
    if (!status) status = step_run(s, &k);
    rondo__free(&s->session->allocator, memory, bytes);
    return status;
}

rondo_status rondo__region_step_run(const rondo__region_step *s) {
    static const struct {
        const char *name;
        rondo_status (*run)(const rondo__region_step *s);
    } controls[] = {{"If", rondo__region_if},
                    {"Loop", rondo__region_loop},
                    {"Scan", rondo__region_scan},
                    {"SequenceMap", rondo__region_map}};
    bool known = false;
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        if (strcmp(s->step->operator_name, controls[i].name) == 0) return controls[i].run(s);
    }
    RONDO__TRY(rondo__region_hosted(s, &known));
    return known ? RONDO_OK : step_kernel_run(s);
}
