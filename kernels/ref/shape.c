/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators about shapes: the same bytes under another shape, a shape as a value, and a constant of a shape.
 *
 * A shape or axes operand is read when the kernel runs. The plan's shape is fixed by then, so the value must give just
 * that shape: anything else stops the run before a byte is written. */
#include "ref.h"

/* ----------------------------------------------------------------------------------- the same bytes */

static rondo_status view_build_as(rondo__ref_builder *b, uint32_t shape_types) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status && in->count != out->count) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the output has %lld elements and the input %lld",
                                   (long long)out->count, (long long)in->count);
    }
    const rondo__ref_tensor *shape = rondo__ref_optional_input(k, 1);
    if (!status && shape) status = rondo__ref_need_types(b, "input 1", shape, shape_types);
    /* Unsqueeze takes one axis without a list around it, as inference does. */
    const bool alone = shape && shape->rank == 0 && strcmp(k->op->name, "Unsqueeze") == 0;
    if (!status && shape && shape->rank != 1 && !alone) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input 1 must have rank 1, not %d", (int)shape->rank);
    }
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

static rondo_status identity_build(rondo__ref_builder *b) {
    rondo_status status = view_build_as(b, 0);
    if (status) return status;
    return rondo__ref_need_shape_of(b, "the output", rondo__ref_output(b->kernel, 0), rondo__ref_input(b->kernel, 0));
}

static rondo_status flatten_build(rondo__ref_builder *b) {
    const rondo__ref_tensor *in = rondo__ref_input(b->kernel, 0);
    int64_t axis = 0, dims[2] = {1, 1};
    rondo_status status = view_build_as(b, 0);
    if (!status) status = rondo__ref_attribute_axis(b, 1, in->rank, true, &axis);
    if (status) return status;
    for (int32_t d = 0; d < in->rank; d++) {
        /* The operand's own size was checked; of an empty one only the plan's shape can be asked. */
        if (__builtin_mul_overflow(dims[d >= axis], in->dims[d], &dims[d >= axis])) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the flattened shape overflows");
        }
    }
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(b->kernel, 0), 2, dims);
}

static rondo_status reshape_build(rondo__ref_builder *b) {
    b->kernel->as.axis = 0; /* allowzero */
    rondo_status status = view_build_as(b, RONDO__REF_BIT(I64));
    if (!status) status = rondo__ref_attribute_int(b, "allowzero", &b->kernel->as.axis);
    if (!status && rondo__ref_input(b->kernel, 1)->count != rondo__ref_output(b->kernel, 0)->rank) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the shape has %lld entries and the output rank %d",
                                   (long long)rondo__ref_input(b->kernel, 1)->count,
                                   (int)rondo__ref_output(b->kernel, 0)->rank);
    }
    return status;
}

static int32_t reshape_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[2];
    const int64_t *shape = (const int64_t *)rondo__ref_address(words[1]);
    int unknown = 0;
    for (int32_t d = 0; d < out->rank; d++) {
        int64_t dim = shape[d];
        if (dim == -1) { /* whatever fits, which the equal counts of elements have checked */
            if (++unknown > 1) return RONDO__REF_BAD_VALUE;
            continue;
        }
        if (dim == 0 && !k->as.axis) {
            if (d >= in->rank) return RONDO__REF_BAD_VALUE;
            dim = in->dims[d];
        }
        if (dim < -1) return RONDO__REF_BAD_VALUE;
        if (dim != out->dims[d]) return RONDO__REF_SHAPE_MISMATCH;
    }
    return rondo__ref_run_view(k, words);
}

static rondo_status squeeze_build(rondo__ref_builder *b) { return view_build_as(b, RONDO__REF_BIT(I64)); }

static int32_t squeeze_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *axes = rondo__ref_optional_input(k, 1);
    uint32_t mask = 0;
    int32_t reason = RONDO__REF_OK, rank = 0;
    int64_t dims[RONDO_RANK_MAX];
    if (axes) {
        reason = rondo__ref_read_axes(axes, rondo__ref_address(words[1]), in->rank, true, &mask);
    } else {
        for (int32_t d = 0; d < in->rank; d++) mask |= in->dims[d] == 1 ? 1u << d : 0;
    }
    if (reason) return reason;
    for (int32_t d = 0; d < in->rank; d++) {
        if (!(mask >> d & 1u)) {
            dims[rank++] = in->dims[d];
        } else if (in->dims[d] != 1) {
            return RONDO__REF_BAD_VALUE;
        }
    }
    reason = rondo__ref_check_dims(&k->tensors[k->input_count], rank, dims);
    return reason ? reason : rondo__ref_run_view(k, words);
}

static int32_t unsqueeze_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[2];
    uint32_t mask = 0;
    int32_t reason = rondo__ref_read_axes(&k->tensors[1], rondo__ref_address(words[1]), out->rank, false, &mask);
    if (reason) return reason;
    if (in->rank + k->tensors[1].count != out->rank) return RONDO__REF_SHAPE_MISMATCH;
    int64_t dims[RONDO_RANK_MAX];
    for (int32_t d = 0, from = 0; d < out->rank; d++) dims[d] = mask >> d & 1u ? 1 : in->dims[from++];
    reason = rondo__ref_check_dims(out, out->rank, dims);
    return reason ? reason : rondo__ref_run_view(k, words);
}

/* ------------------------------------------------------------------------------------- a shape as a value */

static rondo_status shape_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const int64_t rank = rondo__ref_input(k, 0)->rank;
    int64_t begin = 0, end = rank;
    k->needs_no_data = 1;
    rondo_status status = rondo__ref_need_types(b, "the input", rondo__ref_input(k, 0), RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_attribute_int(b, "start", &begin);
    if (!status) status = rondo__ref_attribute_int(b, "end", &end);
    if (status) return status;
    if (begin < 0) begin = begin < -rank ? 0 : begin + rank;
    if (end < 0) end = end < -rank ? 0 : end + rank;
    if (begin > rank) begin = rank;
    if (end > rank) end = rank;
    k->as.range.begin = begin;
    k->as.range.end = end;
    const int64_t count = end > begin ? end - begin : 0;
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), 1, &count);
}

static int32_t shape_run(const rondo__ref_kernel *k, const uint64_t *words) {
    int64_t *out = (int64_t *)rondo__ref_address(words[1]);
    for (int64_t d = k->as.range.begin; d < k->as.range.end; d++) *out++ = k->tensors[0].dims[d];
    return RONDO__REF_OK;
}

static rondo_status size_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    k->needs_no_data = 1;
    rondo_status status = rondo__ref_need_types(b, "the input", rondo__ref_input(k, 0), RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), 0, NULL);
    return status;
}

static int32_t size_run(const rondo__ref_kernel *k, const uint64_t *words) {
    *(int64_t *)rondo__ref_address(words[1]) = k->tensors[0].count;
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------ a constant of a shape */

static rondo_status constant_of_shape_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *shape = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    const rondo_attribute *value = rondo__ref_attribute(b->request, "value");
    rondo_dtype dtype = RONDO_DTYPE_F32;
    if (value) {
        const rondo_tensor_view *view = value->kind == RONDO_ATTRIBUTE_TENSOR ? value->value.tensor : NULL;
        bool one = view && view->data && view->rank >= 0 && (view->rank == 0 || view->shape);
        for (int32_t d = 0; one && d < view->rank; d++) one = view->shape[d] == 1;
        if (!one)
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the attribute 'value' must be a tensor of one element");
        dtype = view->dtype;
    }
    rondo_status status = rondo__ref_need_same_type(b, "the shape", shape, RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_need_types(b, "the output", out, RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, dtype);
    if (status) return status;
    if (shape->rank != 1 || shape->count != out->rank) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT,
                                 "the shape must have rank 1 and one entry for each dim of the output");
    }
    if (value) {
        const rondo_tensor_view *view = value->value.tensor;
        memcpy(k->as.value, (const unsigned char *)view->data + view->byte_offset, out->size);
    }
    return RONDO_OK;
}

static int32_t constant_of_shape_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[1];
    const int64_t *shape = (const int64_t *)rondo__ref_address(words[0]);
    int32_t reason = rondo__ref_check_dims(out, out->rank, shape);
    if (reason) return reason;
    unsigned char *to = (unsigned char *)rondo__ref_address(words[1]);
    for (int64_t i = 0; i < out->count; i++) memcpy(to + (size_t)i * out->size, k->as.value, out->size);
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_shape_operators[] = {
    {"ConstantOfShape", 1, 1, 1, 1, "value", constant_of_shape_build, constant_of_shape_run, NULL},
    {"Flatten", 1, 1, 1, 1, "axis", flatten_build, rondo__ref_run_view, NULL},
    {"Identity", 1, 1, 1, 1, "", identity_build, rondo__ref_run_view, NULL},
    {"Reshape", 2, 2, 1, 1, "allowzero", reshape_build, reshape_run, NULL},
    {"Shape", 1, 1, 1, 1, "start end", shape_build, shape_run, NULL},
    {"Size", 1, 1, 1, 1, "", size_build, size_run, NULL},
    {"Squeeze", 1, 2, 1, 1, "", squeeze_build, squeeze_run, NULL},
    {"Unsqueeze", 2, 2, 1, 1, "", squeeze_build, unsqueeze_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
