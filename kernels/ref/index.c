/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements by index: gathered and scattered element by element or slice by slice, triangles, repetitions, and tensors
 * that are made from a few numbers. */
#include "ref.h"

#include <math.h>

#define INDEX_TYPES (RONDO__REF_ALL_TYPES | RONDO__REF_HALF_TYPES)

/* An index counted from the end when it is negative; false outside of the axis. */
static bool index_read(rondo_dtype dtype, const void *data, int64_t i, int64_t size, int64_t *out) {
    int64_t index = rondo__ref_get_int(dtype, data, i);
    if (index < -size || index >= size) return false;
    *out = index < 0 ? index + size : index;
    return true;
}

/* ------------------------------------------------------------------------- GatherElements, ScatterElements */

static rondo_status index_gather_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *data = rondo__ref_input(k, 0), *at = rondo__ref_input(k, 1),
                            *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the indices", at, RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the input", data, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, data->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, at);
    if (!status) status = rondo__ref_attribute_axis(b, 0, data->rank, false, &k->as.index.axis);
    if (!status && at->rank != data->rank)
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the indices have rank %d, the input %d", (int)at->rank,
                                   (int)data->rank);
    for (int32_t d = 0; !status && d < data->rank; d++) {
        if (d != k->as.index.axis && at->dims[d] > data->dims[d])
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the indices reach beyond axis %d", (int)d);
    }
    return status;
}

static int32_t index_gather_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *data = &k->tensors[0], *at = &k->tensors[1];
    const unsigned char *from = (const unsigned char *)rondo__ref_address(words[0]);
    unsigned char *to = (unsigned char *)rondo__ref_address(words[2]);
    int64_t strides[RONDO_RANK_MAX], index[RONDO_RANK_MAX] = {0};
    const int64_t axis = k->as.index.axis;
    rondo__ref_compact(data->rank, data->dims, strides);
    for (int64_t i = 0; i < at->count; i++) {
        int64_t chosen;
        if (!index_read(at->dtype, rondo__ref_address(words[1]), i, data->dims[axis], &chosen))
            return RONDO__REF_INDEX_RANGE;
        int64_t offset = rondo__ref_offset(data->rank, strides, index) + (chosen - index[axis]) * strides[axis];
        memcpy(to + i * (int64_t)data->size, from + offset * (int64_t)data->size, data->size);
        (void)rondo__ref_next(at->rank, at->dims, index);
    }
    return RONDO__REF_OK;
}

enum { INDEX_PUT, INDEX_ADD, INDEX_MUL, INDEX_MAX, INDEX_MIN };

static rondo_status index_reduction(rondo__ref_builder *b) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = "none";
    int32_t mode = 0;
    rondo_status status = rondo__ref_attribute_string(b, "reduction", &name);
    if (status) return status;
    while (mode < 5 && strcmp(names[mode], name) != 0) mode++;
    if (mode == 5) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there is no reduction '%s'", name);
    b->kernel->as.index.mode = mode;
    if (mode == INDEX_PUT) return RONDO_OK;
    return rondo__ref_need_types(b, "the input", rondo__ref_input(b->kernel, 0),
                                 RONDO__REF_REAL_TYPES | RONDO__REF_INT_TYPES);
}

static double index_reduce_real(int32_t mode, double x, double y) {
    switch (mode) {
    case INDEX_ADD: return x + y;
    case INDEX_MUL: return x * y;
    case INDEX_MAX: return x > y || x != x ? x : y;
    default: return x < y || x != x ? x : y;
    }
}

static uint64_t index_reduce_whole(int32_t mode, bool wide, int64_t x, int64_t y) {
    bool less = wide ? (uint64_t)x < (uint64_t)y : x < y;
    switch (mode) {
    case INDEX_ADD: return (uint64_t)x + (uint64_t)y;
    case INDEX_MUL: return (uint64_t)x * (uint64_t)y;
    case INDEX_MAX: return (uint64_t)(less ? y : x);
    default: return (uint64_t)(less ? x : y);
    }
}

/* out[to] takes in[from], as the reduction says. */
static void index_put(int32_t mode, const rondo__ref_tensor *t, void *out, int64_t to, const void *in, int64_t from) {
    if (mode == INDEX_PUT) {
        memcpy((unsigned char *)out + to * (int64_t)t->size, (const unsigned char *)in + from * (int64_t)t->size,
               t->size);
    } else if (rondo__ref_is_real(t->dtype)) {
        rondo__ref_put_real(
            t->dtype, out, to,
            index_reduce_real(mode, rondo__ref_get_real(t->dtype, out, to), rondo__ref_get_real(t->dtype, in, from)));
    } else {
        rondo__ref_put_int(t->dtype, out, to,
                           index_reduce_whole(mode, t->dtype == RONDO_DTYPE_U64, rondo__ref_get_int(t->dtype, out, to),
                                              rondo__ref_get_int(t->dtype, in, from)));
    }
}

static rondo_status index_scatter_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *data = rondo__ref_input(k, 0), *at = rondo__ref_input(k, 1);
    const rondo__ref_tensor *updates = rondo__ref_input(k, 2), *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the indices", at, RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the input", data, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the updates", updates, data->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, data->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, data);
    if (!status) status = index_reduction(b);
    return status;
}

static rondo_status index_scatter_elements_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *data = rondo__ref_input(k, 0), *at = rondo__ref_input(k, 1);
    rondo_status status = index_scatter_build(b);
    if (!status) status = rondo__ref_need_shape_of(b, "the updates", rondo__ref_input(k, 2), at);
    if (!status) status = rondo__ref_attribute_axis(b, 0, data->rank, false, &k->as.index.axis);
    if (!status && at->rank != data->rank)
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the indices have rank %d, the input %d", (int)at->rank,
                                   (int)data->rank);
    for (int32_t d = 0; !status && d < data->rank; d++) {
        if (d != k->as.index.axis && at->dims[d] > data->dims[d])
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the indices reach beyond axis %d", (int)d);
    }
    return status;
}

static void index_copy_input(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *data = &k->tensors[0];
    if (data->count == 0) return;
    memmove(rondo__ref_address(rondo__ref_output_word(k, words, 0)), rondo__ref_address(words[0]),
            (size_t)data->count * data->size);
}

static int32_t index_scatter_elements_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *data = &k->tensors[0], *at = &k->tensors[1];
    int64_t strides[RONDO_RANK_MAX], index[RONDO_RANK_MAX] = {0};
    const int64_t axis = k->as.index.axis;
    index_copy_input(k, words);
    rondo__ref_compact(data->rank, data->dims, strides);
    for (int64_t i = 0; i < at->count; i++) {
        int64_t chosen;
        if (!index_read(at->dtype, rondo__ref_address(words[1]), i, data->dims[axis], &chosen))
            return RONDO__REF_INDEX_RANGE;
        int64_t offset = rondo__ref_offset(data->rank, strides, index) + (chosen - index[axis]) * strides[axis];
        index_put(k->as.index.mode, data, rondo__ref_address(words[3]), offset, rondo__ref_address(words[2]), i);
        (void)rondo__ref_next(at->rank, at->dims, index);
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------- GatherND, ScatterND */

/* Row i of the indices as an offset into data, past `batch` leading axes. */
static bool index_tuple(const rondo__ref_tensor *data, const rondo__ref_tensor *at, const void *indices, int64_t row,
                        int64_t batch, int64_t *out_offset) {
    int64_t depth = at->dims[at->rank - 1], strides[RONDO_RANK_MAX];
    rondo__ref_compact(data->rank, data->dims, strides);
    for (int64_t j = 0; j < depth; j++) {
        int64_t chosen;
        if (!index_read(at->dtype, indices, row * depth + j, data->dims[batch + j], &chosen)) return false;
        *out_offset += chosen * strides[batch + j];
    }
    return true;
}

static int64_t index_count(const int64_t *dims, int64_t from, int64_t to) {
    int64_t count = 1;
    for (int64_t d = from; d < to; d++) count *= dims[d];
    return count;
}

static rondo_status index_gather_nd_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *data = rondo__ref_input(k, 0), *at = rondo__ref_input(k, 1);
    int64_t batch = 0, dims[2 * RONDO_RANK_MAX];
    int32_t rank = 0;
    rondo_status status = rondo__ref_need_same_type(b, "the indices", at, RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_need_types(b, "the input", data, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), data->dtype);
    if (!status) status = rondo__ref_attribute_int(b, "batch_dims", &batch);
    if (status) return status;
    if (at->rank < 1 || batch < 0 || batch >= at->rank || batch >= data->rank ||
        at->dims[at->rank - 1] > data->rank - batch) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "indices of rank %d do not fit", (int)at->rank);
    }
    k->as.index.axis = batch;
    for (int32_t d = 0; d < at->rank - 1; d++) dims[rank++] = at->dims[d];
    for (int64_t d = batch + at->dims[at->rank - 1]; d < data->rank; d++) dims[rank++] = data->dims[d];
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), rank, dims);
}

static int32_t index_gather_nd_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *data = &k->tensors[0], *at = &k->tensors[1], *out = &k->tensors[2];
    const int64_t batch = k->as.index.axis, depth = at->dims[at->rank - 1];
    if (out->count == 0) return RONDO__REF_OK;
    const int64_t slice = index_count(data->dims, batch + depth, data->rank), rows = out->count / slice;
    const int64_t in_batch = rows / index_count(data->dims, 0, batch);
    const int64_t batch_size = index_count(data->dims, batch, data->rank);
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset = row / in_batch * batch_size;
        if (!index_tuple(data, at, rondo__ref_address(words[1]), row, batch, &offset)) return RONDO__REF_INDEX_RANGE;
        memcpy((unsigned char *)rondo__ref_address(words[2]) + row * slice * (int64_t)data->size,
               (const unsigned char *)rondo__ref_address(words[0]) + offset * (int64_t)data->size,
               (size_t)slice * data->size);
    }
    return RONDO__REF_OK;
}

static rondo_status index_scatter_nd_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *data = rondo__ref_input(k, 0), *at = rondo__ref_input(k, 1);
    int64_t dims[2 * RONDO_RANK_MAX];
    int32_t rank = 0;
    rondo_status status = index_scatter_build(b);
    if (status) return status;
    if (at->rank < 1 || at->dims[at->rank - 1] > data->rank)
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "indices of rank %d do not fit", (int)at->rank);
    for (int32_t d = 0; d < at->rank - 1; d++) dims[rank++] = at->dims[d];
    for (int64_t d = at->dims[at->rank - 1]; d < data->rank; d++) dims[rank++] = data->dims[d];
    return rondo__ref_need_dims(b, "the updates", rondo__ref_input(k, 2), rank, dims);
}

static int32_t index_scatter_nd_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *data = &k->tensors[0], *at = &k->tensors[1], *updates = &k->tensors[2];
    index_copy_input(k, words);
    if (updates->count == 0) return RONDO__REF_OK;
    const int64_t slice = index_count(data->dims, at->dims[at->rank - 1], data->rank);
    for (int64_t row = 0; row < updates->count / slice; row++) {
        int64_t offset = 0;
        if (!index_tuple(data, at, rondo__ref_address(words[1]), row, 0, &offset)) return RONDO__REF_INDEX_RANGE;
        for (int64_t i = 0; i < slice; i++) {
            index_put(k->as.index.mode, data, rondo__ref_address(words[3]), offset + i, rondo__ref_address(words[2]),
                      row * slice + i);
        }
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------------- Trilu, Tile */

static rondo_status index_trilu_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *by = rondo__ref_optional_input(k, 1);
    int64_t upper = 1;
    rondo_status status = rondo__ref_need_types(b, "the input", in, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", rondo__ref_output(k, 0), in);
    if (!status && by) status = rondo__ref_need_same_type(b, "k", by, RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_attribute_int(b, "upper", &upper);
    if (!status && (in->rank < 2 || (by && by->count != 1)))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs matrices, and k as one number");
    k->as.index.flag = upper != 0;
    return status;
}

static int32_t index_trilu_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0];
    const int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
    int64_t by = rondo__ref_optional_input(k, 1) ? *(const int64_t *)rondo__ref_address(words[1]) : 0;
    if (by > columns) by = columns; /* further out all is the same */
    if (by < -rows) by = -rows;
    const unsigned char *from = (const unsigned char *)rondo__ref_address(words[0]);
    unsigned char *to = (unsigned char *)rondo__ref_address(rondo__ref_output_word(k, words, 0));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t row = i / columns % rows, column = i % columns;
        bool keep = k->as.index.flag ? column >= row + by : column <= row + by;
        if (keep) {
            memcpy(to + i * (int64_t)in->size, from + i * (int64_t)in->size, in->size);
        } else {
            memset(to + i * (int64_t)in->size, 0, in->size);
        }
    }
    return RONDO__REF_OK;
}

static rondo_status index_tile_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *repeats = rondo__ref_input(k, 1);
    const rondo__ref_tensor *out = rondo__ref_output(k, 0);
    rondo_status status = rondo__ref_need_types(b, "the input", in, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, in->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the repeats", repeats, RONDO_DTYPE_I64);
    if (!status && (repeats->rank != 1 || repeats->count != in->rank || out->rank != in->rank))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs a repeat for each of %d axes", (int)in->rank);
    return status;
}

static int32_t index_tile_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[2];
    const int64_t *repeats = (const int64_t *)rondo__ref_address(words[1]);
    const unsigned char *from = (const unsigned char *)rondo__ref_address(words[0]);
    unsigned char *to = (unsigned char *)rondo__ref_address(words[2]);
    int64_t strides[RONDO_RANK_MAX], index[RONDO_RANK_MAX] = {0};
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t size;
        if (__builtin_mul_overflow(in->dims[d], repeats[d], &size) || size != out->dims[d])
            return RONDO__REF_SHAPE_MISMATCH;
    }
    rondo__ref_compact(in->rank, in->dims, strides);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t offset = 0;
        for (int32_t d = 0; d < in->rank; d++) offset += index[d] % in->dims[d] * strides[d];
        memcpy(to + i * (int64_t)in->size, from + offset * (int64_t)in->size, in->size);
        (void)rondo__ref_next(out->rank, out->dims, index);
    }
    return RONDO__REF_OK;
}

/* --------------------------------------------------------------------------------- OneHot, EyeLike, Range */

static rondo_status index_one_hot_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *at = rondo__ref_input(k, 0), *depth = rondo__ref_input(k, 1);
    const rondo__ref_tensor *values = rondo__ref_input(k, 2), *out = rondo__ref_output(k, 0);
    const uint32_t numbers = RONDO__REF_FLOAT_TYPES | RONDO__REF_BIT(F16) | RONDO__REF_INT_TYPES;
    rondo_status status = rondo__ref_need_types(b, "the indices", at, numbers);
    if (!status) status = rondo__ref_need_types(b, "the depth", depth, numbers);
    if (!status) status = rondo__ref_need_types(b, "the values", values, INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, values->dtype);
    if (!status) status = rondo__ref_attribute_axis(b, -1, at->rank + 1, false, &k->as.index.axis);
    if (!status && (depth->count != 1 || values->count != 2 || out->rank != at->rank + 1))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it needs one depth and two values");
    int64_t dims[RONDO_RANK_MAX];
    for (int32_t d = 0; !status && d < out->rank; d++) {
        dims[d] = d == k->as.index.axis ? out->dims[d] : at->dims[d - (d > k->as.index.axis)];
    }
    return status ? status : rondo__ref_need_dims(b, "the output", out, out->rank, dims);
}

static int64_t index_whole(const rondo__ref_tensor *t, const void *data, int64_t i) {
    if (!rondo__ref_is_real(t->dtype)) return rondo__ref_get_int(t->dtype, data, i);
    return (int64_t)rondo__ref_to_integer(rondo__ref_get_real(t->dtype, data, i), RONDO_DTYPE_I64);
}

static int32_t index_one_hot_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *at = &k->tensors[0], *out = &k->tensors[3];
    const int64_t depth = out->dims[k->as.index.axis];
    if (index_whole(&k->tensors[1], rondo__ref_address(words[1]), 0) != depth) return RONDO__REF_SHAPE_MISMATCH;
    const int64_t after = index_count(out->dims, k->as.index.axis + 1, out->rank);
    const unsigned char *values = (const unsigned char *)rondo__ref_address(words[2]);
    unsigned char *to = (unsigned char *)rondo__ref_address(words[3]);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t place = i / after % depth, from = i / (after * depth) * after + i % after;
        int64_t chosen = index_whole(at, rondo__ref_address(words[0]), from);
        bool on = (chosen < 0 ? chosen + depth : chosen) == place;
        memcpy(to + i * (int64_t)out->size, values + (on ? out->size : 0), out->size);
    }
    return RONDO__REF_OK;
}

static rondo_status index_eye_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *out = rondo__ref_output(k, 0);
    int64_t dtype = out->dtype;
    rondo_status status = rondo__ref_need_types(b, "the output", out, INDEX_TYPES);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", out, rondo__ref_input(k, 0));
    if (!status) status = rondo__ref_attribute_int(b, "dtype", &dtype);
    if (!status) status = rondo__ref_attribute_int(b, "k", &k->as.index.axis);
    if (!status && (out->rank != 2 || dtype != out->dtype))
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "it makes a matrix of type %lld", (long long)dtype);
    k->needs_no_data = 1;
    return status;
}

static int32_t index_eye_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[1];
    for (int64_t i = 0; i < out->count; i++) {
        /* The wanted column counts from the row; far diagonals are outside, whatever the sum. */
        bool on = i % out->dims[1] - i / out->dims[1] == k->as.index.axis;
        if (rondo__ref_is_real(out->dtype)) {
            rondo__ref_put_real(out->dtype, rondo__ref_address(words[1]), i, on ? 1 : 0);
        } else {
            rondo__ref_put_int(out->dtype, rondo__ref_address(words[1]), i, on ? 1 : 0);
        }
    }
    return RONDO__REF_OK;
}

static rondo_status index_range_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *out = rondo__ref_output(k, 0);
    int64_t stash = 1;
    rondo_status status = rondo__ref_need_types(b, "the output", out,
                                                RONDO__REF_REAL_TYPES | RONDO__REF_BIT(I16) | RONDO__REF_INDEX_TYPES);
    for (uint32_t i = 0; i < 3 && !status; i++) {
        status = rondo__ref_need_same_type(b, "an input", rondo__ref_input(k, i), out->dtype);
        if (!status && rondo__ref_input(k, i)->count != 1)
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input %u must be one number", i);
    }
    if (!status) status = rondo__ref_attribute_int(b, "stash_type", &stash);
    if (!status && out->rank != 1) status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "its output must have rank 1");
    return status;
}

/* How many numbers there are from start to before limit; the plan has seen the same values. */
static int64_t index_range_count(rondo_dtype dtype, const uint64_t *words) {
    if (rondo__ref_is_real(dtype)) {
        double start = rondo__ref_get_real(dtype, rondo__ref_address(words[0]), 0);
        double limit = rondo__ref_get_real(dtype, rondo__ref_address(words[1]), 0);
        double delta = rondo__ref_get_real(dtype, rondo__ref_address(words[2]), 0);
        double count = ceil((limit - start) / delta);
        return count > 0 && count < 9e18 ? (int64_t)count : count > 0 ? INT64_MAX : 0;
    }
    int64_t start = rondo__ref_get_int(dtype, rondo__ref_address(words[0]), 0);
    int64_t limit = rondo__ref_get_int(dtype, rondo__ref_address(words[1]), 0);
    int64_t delta = rondo__ref_get_int(dtype, rondo__ref_address(words[2]), 0);
    if (delta == 0 || (delta > 0 ? start >= limit : start <= limit)) return 0;
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0u - (uint64_t)delta;
    return (int64_t)((span - 1u) / step + 1u);
}

static int32_t index_range_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[3];
    void *to = rondo__ref_address(words[3]);
    if (index_range_count(out->dtype, words) != out->dims[0]) return RONDO__REF_SHAPE_MISMATCH;
    for (int64_t i = 0; i < out->count; i++) {
        if (rondo__ref_is_real(out->dtype)) {
            rondo__ref_put_real(out->dtype, to, i,
                                rondo__ref_get_real(out->dtype, rondo__ref_address(words[0]), 0) +
                                    (double)i * rondo__ref_get_real(out->dtype, rondo__ref_address(words[2]), 0));
        } else {
            uint64_t start = (uint64_t)rondo__ref_get_int(out->dtype, rondo__ref_address(words[0]), 0);
            uint64_t delta = (uint64_t)rondo__ref_get_int(out->dtype, rondo__ref_address(words[2]), 0);
            rondo__ref_put_int(out->dtype, to, i, start + (uint64_t)i * delta);
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_index_operators[] = {
    {"EyeLike", 1, 1, 1, 1, "dtype k", index_eye_build, index_eye_run, NULL},
    {"GatherElements", 2, 2, 1, 1, "axis", index_gather_build, index_gather_run, NULL},
    {"GatherND", 2, 2, 1, 1, "batch_dims", index_gather_nd_build, index_gather_nd_run, NULL},
    {"OneHot", 3, 3, 1, 1, "axis", index_one_hot_build, index_one_hot_run, NULL},
    {"Range", 3, 3, 1, 1, "stash_type", index_range_build, index_range_run, NULL},
    {"ScatterElements", 3, 3, 1, 1, "axis reduction", index_scatter_elements_build, index_scatter_elements_run, NULL},
    {"ScatterND", 3, 3, 1, 1, "reduction", index_scatter_nd_build, index_scatter_nd_run, NULL},
    {"Tile", 2, 2, 1, 1, "", index_tile_build, index_tile_run, NULL},
    {"Trilu", 1, 2, 1, 1, "upper", index_trilu_build, index_trilu_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
