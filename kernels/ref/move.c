/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that move elements and change none: the type only matters by its size. Each comes down to copies between
 * two sets of strides. */
#include "ref.h"

/* Output 0 has input 0's type, any of those Rondo has. */
static rondo_status move_need_types(rondo__ref_builder *b) {
    const rondo__ref_tensor *in = rondo__ref_input(b->kernel, 0);
    rondo_status status = rondo__ref_need_types(b, "input 0", in, RONDO__REF_ALL_TYPES);
    if (status) return status;
    return rondo__ref_need_same_type(b, "the output", rondo__ref_output(b->kernel, 0), in->dtype);
}

static rondo_status move_need_vector(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                     uint32_t types) {
    rondo_status status = rondo__ref_need_types(b, what, t, types);
    if (status || t->rank == 1) return status;
    return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%s must have rank 1, not %d", what, (int)t->rank);
}

static unsigned char *move_bytes(uint64_t word) { return (unsigned char *)rondo__ref_address(word); }

/* ------------------------------------------------------------------------------------------ Concat and Split */

/* Copies a part of `whole` that starts at `begin` along the axis from or to a compact tensor of shape `part`. */
static void move_part(const rondo__ref_tensor *whole, unsigned char *whole_data, int64_t axis, int64_t begin,
                      const rondo__ref_tensor *part, unsigned char *part_data, bool to_whole) {
    if (part->count == 0) return;
    int64_t whole_strides[RONDO_RANK_MAX], part_strides[RONDO_RANK_MAX];
    rondo__ref_compact(whole->rank, whole->dims, whole_strides);
    rondo__ref_compact(part->rank, part->dims, part_strides);
    unsigned char *at = whole_data + (size_t)(begin * whole_strides[axis]) * whole->size;
    if (to_whole) {
        rondo__ref_copy(whole->size, part->rank, part->dims, at, whole_strides, part_data, part_strides);
    } else {
        rondo__ref_copy(whole->size, part->rank, part->dims, part_data, part_strides, at, whole_strides);
    }
}

static rondo_status concat_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *first = rondo__ref_input(k, 0);
    int64_t axis = 0, dims[RONDO_RANK_MAX];
    if (!rondo__ref_attribute(b->request, "axis")) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs the attribute 'axis'");
    }
    rondo_status status = move_need_types(b);
    if (!status) status = rondo__ref_attribute_axis(b, 0, first->rank, false, &axis);
    if (status) return status;
    memcpy(dims, first->dims, sizeof dims);
    dims[axis] = 0;
    for (uint32_t i = 0; i < k->input_count; i++) {
        const rondo__ref_tensor *t = rondo__ref_input(k, i);
        status = rondo__ref_need_same_type(b, "an input", t, first->dtype);
        if (status) return status;
        int64_t same[RONDO_RANK_MAX];
        memcpy(same, first->dims, sizeof same);
        if (axis < t->rank) same[axis] = t->dims[axis];
        status = rondo__ref_need_dims(b, "an input", t, first->rank, same);
        if (status) return status;
        if (__builtin_add_overflow(dims[axis], t->dims[axis], &dims[axis])) {
            return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the joined axis overflows");
        }
    }
    k->as.axis = axis;
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), first->rank, dims);
}

static int32_t concat_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[k->input_count];
    int64_t begin = 0;
    if (out->count == 0) return RONDO__REF_OK;
    for (uint32_t i = 0; i < k->input_count; i++) {
        move_part(out, move_bytes(rondo__ref_output_word(k, words, 0)), k->as.axis, begin, &k->tensors[i],
                  move_bytes(words[i]), true);
        begin += k->tensors[i].dims[k->as.axis];
    }
    return RONDO__REF_OK;
}

/* The part that output i gets where no operand says so: equal ones, the last one smaller. */
static int64_t split_equal_part(int64_t size, int64_t parts, int64_t i) {
    int64_t chunk = size / parts + (size % parts != 0), begin;
    if (__builtin_mul_overflow(chunk, i, &begin) || begin >= size) return 0;
    return size - begin < chunk ? size - begin : chunk;
}

static rondo_status split_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *split = rondo__ref_optional_input(k, 1);
    int64_t parts = k->output_count;
    rondo_status status = rondo__ref_need_types(b, "input 0", in, RONDO__REF_ALL_TYPES);
    if (!status) status = rondo__ref_attribute_axis(b, 0, in->rank, false, &k->as.axis);
    if (!status) status = rondo__ref_attribute_int(b, "num_outputs", &parts);
    if (!status && split) status = move_need_vector(b, "the sizes", split, RONDO__REF_BIT(I64));
    if (status) return status;
    if (parts != k->output_count || (split && split->count != parts)) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it has %u outputs, which is not the number of parts",
                                 k->output_count);
    }
    for (uint32_t i = 0; i < k->output_count; i++) {
        const rondo__ref_tensor *out = rondo__ref_output(k, i);
        if (out->dtype == RONDO_DTYPE_UNDEFINED) continue;
        int64_t dims[RONDO_RANK_MAX];
        memcpy(dims, in->dims, sizeof dims);
        dims[k->as.axis] = !split                  ? split_equal_part(in->dims[k->as.axis], parts, i)
                           : out->rank == in->rank ? out->dims[k->as.axis]
                                                   : 0;
        status = rondo__ref_need_same_type(b, "an output", out, in->dtype);
        if (!status) status = rondo__ref_need_dims(b, "an output", out, in->rank, dims);
        if (status) return status;
    }
    return RONDO_OK;
}

static int32_t split_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *split = rondo__ref_optional_input(k, 1);
    const int64_t *sizes = split ? (const int64_t *)rondo__ref_address(words[1]) : NULL;
    const int64_t axis = k->as.axis, size = in->dims[axis];
    int64_t begin = 0;
    for (uint32_t i = 0; sizes && i < k->output_count; i++) {
        const rondo__ref_tensor *out = &k->tensors[k->input_count + i];
        if (sizes[i] < 0 || sizes[i] > size - begin) return RONDO__REF_BAD_VALUE;
        if (out->dtype != RONDO_DTYPE_UNDEFINED && sizes[i] != out->dims[axis]) return RONDO__REF_SHAPE_MISMATCH;
        begin += sizes[i];
    }
    if (sizes && begin != size) return RONDO__REF_SHAPE_MISMATCH;
    begin = 0;
    for (uint32_t i = 0; i < k->output_count; i++) {
        const rondo__ref_tensor *out = &k->tensors[k->input_count + i];
        if (out->dtype != RONDO_DTYPE_UNDEFINED) {
            move_part(in, move_bytes(words[0]), axis, begin, out, move_bytes(rondo__ref_output_word(k, words, i)),
                      false);
        }
        begin += sizes ? sizes[i] : split_equal_part(size, k->output_count, i);
    }
    return RONDO__REF_OK;
}

/* ----------------------------------------------------------------------------------------------------- Slice */

static rondo_status slice_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *starts = rondo__ref_input(k, 1);
    rondo_status status = move_need_types(b);
    if (!status) status = move_need_vector(b, "the starts", starts, RONDO__REF_INDEX_TYPES);
    for (uint32_t i = 2; !status && i < 5; i++) {
        const rondo__ref_tensor *t = rondo__ref_optional_input(k, i);
        if (!t) continue;
        status = move_need_vector(b, "an index operand", t, RONDO__REF_INDEX_TYPES);
        if (!status) status = rondo__ref_need_same_type(b, "an index operand", t, starts->dtype);
        if (!status) status = rondo__ref_need_shape_of(b, "an index operand", t, starts);
    }
    if (!status && starts->count > in->rank) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it slices %lld axes of rank %d", (long long)starts->count,
                                   (int)in->rank);
    }
    if (!status && rondo__ref_output(k, 0)->rank != in->rank) {
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the output has rank %d instead of %d",
                                   (int)rondo__ref_output(k, 0)->rank, (int)in->rank);
    }
    return status;
}

/* How many elements start, start + step, ... there are before end, as ONNX clamps them; writes the clamped start. */
static int64_t slice_count(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *out_start) {
    *out_start = 0;
    if (size == 0) return 0;
    if (start < 0) start = start < -size ? -1 : start + size; /* no overflow at the type's lowest number */
    if (end < 0) end = end < -size ? -1 : end + size;
    if (step > 0) {
        start = start < 0 ? 0 : start > size ? size : start;
        end = end < 0 ? 0 : end > size ? size : end;
        *out_start = start;
        return end > start ? (end - start - 1) / step + 1 : 0;
    }
    start = start < 0 ? 0 : start > size - 1 ? size - 1 : start;
    end = end < 0 ? -1 : end > size - 1 ? size - 1 : end;
    *out_start = start;
    if (start <= end) return 0;
    /* the step's magnitude as unsigned, for its lowest number has none */
    return (int64_t)((uint64_t)(start - end - 1) / (0u - (uint64_t)step)) + 1;
}

static int32_t slice_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[k->input_count], *which = &k->tensors[1];
    const rondo__ref_tensor *axes = rondo__ref_optional_input(k, 3), *steps = rondo__ref_optional_input(k, 4);
    int64_t in_strides[RONDO_RANK_MAX], out_strides[RONDO_RANK_MAX], dims[RONDO_RANK_MAX], offset = 0;
    uint32_t seen = 0;
    rondo__ref_compact(in->rank, in->dims, in_strides);
    memcpy(dims, in->dims, sizeof dims);
    for (int64_t i = 0; i < which->count; i++) {
        int64_t axis = axes ? rondo__ref_get_int(axes->dtype, rondo__ref_address(words[3]), i) : i;
        int64_t step = steps ? rondo__ref_get_int(steps->dtype, rondo__ref_address(words[4]), i) : 1;
        if (axis < -in->rank || axis >= in->rank || step == 0) return RONDO__REF_BAD_VALUE;
        if (axis < 0) axis += in->rank;
        if (seen >> axis & 1u) return RONDO__REF_BAD_VALUE;
        seen |= 1u << axis;
        int64_t start;
        dims[axis] = slice_count(in->dims[axis], rondo__ref_get_int(which->dtype, rondo__ref_address(words[1]), i),
                                 rondo__ref_get_int(which->dtype, rondo__ref_address(words[2]), i), step, &start);
        if (dims[axis] == 0) continue;
        offset += start * in_strides[axis];
        /* A step is only ever taken when there is a second element, and then it lies inside the axis. */
        in_strides[axis] = dims[axis] > 1 ? in_strides[axis] * step : 0;
    }
    int32_t reason = rondo__ref_check_dims(out, in->rank, dims);
    if (reason || out->count == 0) return reason;
    rondo__ref_compact(out->rank, out->dims, out_strides);
    rondo__ref_copy(out->size, out->rank, out->dims, rondo__ref_address(rondo__ref_output_word(k, words, 0)),
                    out_strides, move_bytes(words[0]) + offset * (int64_t)in->size, in_strides);
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------- Transpose and Expand */

static rondo_status transpose_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0);
    int64_t dims[RONDO_RANK_MAX];
    uint32_t seen = 0;
    rondo_status status = move_need_types(b);
    for (int32_t d = 0; d < in->rank; d++) k->as.perm[d] = in->rank - 1 - d;
    if (!status) status = rondo__ref_attribute_ints(b, "perm", (uint32_t)in->rank, 0, in->rank - 1, k->as.perm);
    if (status) return status;
    for (int32_t d = 0; d < in->rank; d++) {
        seen |= 1u << k->as.perm[d];
        dims[d] = in->dims[k->as.perm[d]];
    }
    if (seen != (1u << in->rank) - 1u) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the attribute 'perm' names an axis twice");
    }
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), in->rank, dims);
}

static int32_t transpose_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[1];
    int64_t compact[RONDO_RANK_MAX], in_strides[RONDO_RANK_MAX], out_strides[RONDO_RANK_MAX];
    rondo__ref_compact(in->rank, in->dims, compact);
    rondo__ref_compact(out->rank, out->dims, out_strides);
    for (int32_t d = 0; d < in->rank; d++) in_strides[d] = compact[k->as.perm[d]];
    rondo__ref_copy(out->size, out->rank, out->dims, rondo__ref_address(words[1]), out_strides,
                    rondo__ref_address(words[0]), in_strides);
    return RONDO__REF_OK;
}

static rondo_status expand_build(rondo__ref_builder *b) {
    rondo_status status = move_need_types(b);
    if (!status) status = move_need_vector(b, "the shape", rondo__ref_input(b->kernel, 1), RONDO__REF_BIT(I64));
    return status;
}

static int32_t expand_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[2];
    const int64_t *shape = (const int64_t *)rondo__ref_address(words[1]), entries = k->tensors[1].count;
    int64_t compact[RONDO_RANK_MAX], in_strides[RONDO_RANK_MAX] = {0}, out_strides[RONDO_RANK_MAX];
    if (entries > out->rank || in->rank > out->rank || (entries != out->rank && in->rank != out->rank)) {
        return RONDO__REF_SHAPE_MISMATCH;
    }
    rondo__ref_compact(in->rank, in->dims, compact);
    for (int32_t d = 0; d < out->rank; d++) {
        int64_t from = d - (out->rank - in->rank), to = d - (out->rank - entries);
        int64_t has = from >= 0 ? in->dims[from] : 1, wants = to >= 0 ? shape[to] : 1;
        if (wants < 0 || (has != wants && has != 1 && wants != 1)) return RONDO__REF_BAD_VALUE;
        if (out->dims[d] != (has == 1 ? wants : has)) return RONDO__REF_SHAPE_MISMATCH;
        if (from >= 0 && has != 1) in_strides[d] = compact[from];
    }
    if (out->count == 0) return RONDO__REF_OK;
    rondo__ref_compact(out->rank, out->dims, out_strides);
    rondo__ref_copy(out->size, out->rank, out->dims, rondo__ref_address(words[2]), out_strides,
                    rondo__ref_address(words[0]), in_strides);
    return RONDO__REF_OK;
}

/* ---------------------------------------------------------------------------------------------------- Gather */

static rondo_status gather_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *indices = rondo__ref_input(k, 1);
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    rondo_status status = move_need_types(b);
    if (!status) status = rondo__ref_need_types(b, "the indices", indices, RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_attribute_axis(b, 0, in->rank, false, &k->as.axis);
    if (status) return status;
    if (in->rank - 1 + indices->rank > RONDO_RANK_MAX) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "the output's rank is above %d", RONDO_RANK_MAX);
    }
    for (int32_t d = 0; d < k->as.axis; d++) dims[rank++] = in->dims[d];
    for (int32_t d = 0; d < indices->rank; d++) dims[rank++] = indices->dims[d];
    for (int32_t d = (int32_t)k->as.axis + 1; d < in->rank; d++) dims[rank++] = in->dims[d];
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), rank, dims);
}

static int32_t gather_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *indices = &k->tensors[1];
    const void *at = rondo__ref_address(words[1]);
    const int64_t size = in->dims[k->as.axis];
    int64_t before = 1;
    size_t after = in->size; /* bytes of what one index names */
    if (k->tensors[2].count == 0) return RONDO__REF_OK;
    for (int32_t d = 0; d < k->as.axis; d++) before *= in->dims[d];
    for (int32_t d = (int32_t)k->as.axis + 1; d < in->rank; d++) after *= (size_t)in->dims[d];
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t index = rondo__ref_get_int(indices->dtype, at, i);
        if (index < -size || index >= size) return RONDO__REF_INDEX_RANGE;
    }
    unsigned char *out = move_bytes(words[2]);
    for (int64_t row = 0; row < before; row++) {
        for (int64_t i = 0; i < indices->count; i++) {
            int64_t index = rondo__ref_get_int(indices->dtype, at, i);
            memcpy(out, move_bytes(words[0]) + (size_t)(row * size + (index < 0 ? index + size : index)) * after,
                   after);
            out += after;
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_move_operators[] = {
    {"Concat", 1, RONDO__REF_MANY, 1, 1, "axis", concat_build, concat_run, NULL},
    {"Expand", 2, 2, 1, 1, "", expand_build, expand_run, NULL},
    {"Gather", 2, 2, 1, 1, "axis", gather_build, gather_run, NULL},
    {"Slice", 3, 5, 1, 1, "", slice_build, slice_run, NULL},
    {"Split", 1, 2, 1, RONDO__REF_MANY, "axis num_outputs", split_build, split_run, NULL},
    {"Transpose", 1, 1, 1, 1, "perm", transpose_build, transpose_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
