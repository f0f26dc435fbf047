/* SPDX-License-Identifier: Apache-2.0
 *
 * Along one axis: where the largest or smallest is, the k largest, and running sums and products. Lines that lie on the
 * axis are `step` apart; sums and products of floats are kept in double, integers wrap. */
#include "ref.h"

#include <math.h>

typedef struct scan_lines { /* the lines along an axis */
    int64_t n, step, count;
} scan_lines;

static scan_lines scan_lines_of(const rondo__ref_tensor *t, int64_t axis) {
    scan_lines lines = {t->dims[axis], 1, 0};
    for (int32_t d = (int32_t)axis + 1; d < t->rank; d++) lines.step *= t->dims[d];
    if (lines.n > 0) lines.count = t->count / lines.n;
    return lines;
}

static int64_t scan_base(const scan_lines *lines, int64_t line) {
    return line / lines->step * lines->n * lines->step + line % lines->step;
}

/* Whether a comes before b when the largest (or smallest) come first; a NaN counts as the largest. */
static bool scan_before(rondo_dtype dtype, const void *data, int64_t a, int64_t b, bool largest) {
    if (rondo__ref_is_real(dtype)) {
        double x = rondo__ref_get_real(dtype, data, a), y = rondo__ref_get_real(dtype, data, b);
        if (x != x || y != y) return largest ? x != x && y == y : x == x && y != y;
        return largest ? x > y : x < y;
    }
    int64_t x = rondo__ref_get_int(dtype, data, a), y = rondo__ref_get_int(dtype, data, b);
    if (dtype == RONDO_DTYPE_U64) return largest ? (uint64_t)x > (uint64_t)y : (uint64_t)x < (uint64_t)y;
    return largest ? x > y : x < y;
}

/* ------------------------------------------------------------------------------------------- ArgMax, ArgMin */

#define SCAN_TYPES (RONDO__REF_REAL_TYPES | RONDO__REF_INT_TYPES)

static rondo_status scan_arg_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int64_t keep = 1, last = 0, dims[RONDO_RANK_MAX];
    int32_t rank = 0;
    rondo_status status = rondo__ref_need_types(b, "the input", in, SCAN_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_attribute_axis(b, 0, in->rank, false, &k->as.index.axis);
    if (!status) status = rondo__ref_attribute_int(b, "keepdims", &keep);
    if (!status) status = rondo__ref_attribute_int(b, "select_last_index", &last);
    if (status) return status;
    for (int32_t d = 0; d < in->rank; d++) {
        if (d != k->as.index.axis || keep) dims[rank++] = d == k->as.index.axis ? 1 : in->dims[d];
    }
    k->as.index.flag = last != 0;
    if (in->dims[k->as.index.axis] == 0) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "there is nothing to choose from along axis %lld",
                                 (long long)k->as.index.axis);
    }
    return rondo__ref_need_dims(b, "the output", out, rank, dims);
}

static int32_t scan_arg_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const bool largest = strcmp(k->op->name, "ArgMax") == 0;
    const rondo__ref_tensor *in = &k->tensors[0];
    const scan_lines lines = scan_lines_of(in, k->as.index.axis);
    const void *data = rondo__ref_address(words[0]);
    int64_t *out = (int64_t *)rondo__ref_address(words[1]);
    for (int64_t line = 0; line < lines.count; line++) {
        int64_t base = scan_base(&lines, line), best = 0;
        for (int64_t i = 1; i < lines.n; i++) {
            int64_t at = base + i * lines.step, from = base + best * lines.step;
            bool better = k->as.index.flag ? !scan_before(in->dtype, data, from, at, largest)
                                           : scan_before(in->dtype, data, at, from, largest);
            if (better) best = i;
        }
        out[line] = best;
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------------ CumSum, CumProd */

static rondo_status scan_cumulate_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *axis = rondo__ref_input(k, 1);
    int64_t exclusive = 0, reverse = 0;
    rondo_status status = rondo__ref_need_types(b, "the input", in, RONDO__REF_PRODUCT_TYPES | RONDO__REF_HALF_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the axis", axis, RONDO__REF_INDEX_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), in->dtype);
    if (!status) status = rondo__ref_need_shape_of(b, "the output", rondo__ref_output(k, 0), in);
    if (!status) status = rondo__ref_attribute_int(b, "exclusive", &exclusive);
    if (!status) status = rondo__ref_attribute_int(b, "reverse", &reverse);
    if (!status && axis->count != 1) status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the axis must be one number");
    k->as.index.flag = exclusive != 0;
    k->as.index.flag2 = reverse != 0;
    return status;
}

static int32_t scan_cumulate_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const bool product = strcmp(k->op->name, "CumProd") == 0;
    const rondo__ref_tensor *in = &k->tensors[0];
    int64_t axis = rondo__ref_get_int(k->tensors[1].dtype, rondo__ref_address(words[1]), 0);
    if (axis < -in->rank || axis >= in->rank) return RONDO__REF_BAD_VALUE;
    const scan_lines lines = scan_lines_of(in, axis < 0 ? axis + in->rank : axis);
    const void *data = rondo__ref_address(words[0]);
    void *out = rondo__ref_address(words[2]);
    const bool real = rondo__ref_is_real(in->dtype);
    for (int64_t line = 0; line < lines.count; line++) {
        int64_t base = scan_base(&lines, line);
        double sum = product ? 1 : 0;
        uint64_t whole = product ? 1 : 0;
        for (int64_t i = 0; i < lines.n; i++) {
            int64_t at = base + (k->as.index.flag2 ? lines.n - 1 - i : i) * lines.step;
            double before = sum, x = real ? rondo__ref_get_real(in->dtype, data, at) : 0;
            uint64_t whole_before = whole, y = real ? 0 : (uint64_t)rondo__ref_get_int(in->dtype, data, at);
            sum = product ? sum * x : sum + x;
            whole = product ? whole * y : whole + y;
            if (real) {
                rondo__ref_put_real(in->dtype, out, at, k->as.index.flag ? before : sum);
            } else {
                rondo__ref_put_int(in->dtype, out, at, k->as.index.flag ? whole_before : whole);
            }
        }
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------------------------ TopK */

static rondo_status scan_top_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *values = rondo__ref_output(k, 0);
    int64_t largest = 1, sorted = 1;
    rondo_status status = rondo__ref_need_types(b, "the input", in, SCAN_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "K", rondo__ref_input(k, 1), RONDO_DTYPE_I64);
    if (!status) status = rondo__ref_need_same_type(b, "the values", values, in->dtype);
    const bool both = k->output_count > 1 && rondo__ref_output(k, 1)->dtype != RONDO_DTYPE_UNDEFINED;
    if (!status && both) status = rondo__ref_need_same_type(b, "the indices", rondo__ref_output(k, 1), RONDO_DTYPE_I64);
    if (!status && both) status = rondo__ref_need_shape_of(b, "the indices", rondo__ref_output(k, 1), values);
    if (!status) status = rondo__ref_attribute_axis(b, -1, in->rank, false, &k->as.index.axis);
    if (!status) status = rondo__ref_attribute_int(b, "largest", &largest);
    if (!status) status = rondo__ref_attribute_int(b, "sorted", &sorted); /* they are sorted in any case */
    if (!status && rondo__ref_input(k, 1)->count != 1)
        status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "K must be one number");
    if (status) return status;
    k->as.index.flag = largest != 0;
    k->as.index.flag2 = both;
    int64_t dims[RONDO_RANK_MAX];
    memcpy(dims, in->dims, sizeof dims);
    if (values->rank == in->rank) dims[k->as.index.axis] = values->dims[k->as.index.axis];
    if (dims[k->as.index.axis] > in->dims[k->as.index.axis])
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "more are wanted than there are");
    return rondo__ref_need_dims(b, "the values", values, in->rank, dims);
}

/* By selection: for each place the best of those that come after what was taken before it. Equal ones keep their
 * order, so what was taken last tells which are left. */
static int32_t scan_top_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *in = &k->tensors[0], *out = &k->tensors[2];
    const scan_lines lines = scan_lines_of(in, k->as.index.axis), results = scan_lines_of(out, k->as.index.axis);
    const void *data = rondo__ref_address(words[0]);
    void *values = rondo__ref_address(words[2]);
    int64_t *indices = k->as.index.flag2 ? (int64_t *)rondo__ref_address(words[3]) : NULL;
    const bool largest = k->as.index.flag;
    if (*(const int64_t *)rondo__ref_address(words[1]) != out->dims[k->as.index.axis]) return RONDO__REF_SHAPE_MISMATCH;
    for (int64_t line = 0; line < results.count; line++) {
        int64_t base = scan_base(&lines, line), to = scan_base(&results, line), taken = -1;
        for (int64_t r = 0; r < results.n; r++) {
            int64_t best = -1;
            for (int64_t i = 0; i < lines.n; i++) {
                int64_t at = base + i * lines.step, last = base + taken * lines.step;
                if (taken >= 0) {
                    bool earlier = scan_before(in->dtype, data, at, last, largest);
                    bool later = scan_before(in->dtype, data, last, at, largest);
                    if (earlier || (!later && i <= taken)) continue;
                }
                if (best < 0 || scan_before(in->dtype, data, at, base + best * lines.step, largest)) best = i;
            }
            taken = best;
            memcpy((unsigned char *)values + (to + r * results.step) * (int64_t)out->size,
                   (const unsigned char *)data + (base + best * lines.step) * (int64_t)out->size, out->size);
            if (indices) indices[to + r * results.step] = best;
        }
    }
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_scan_operators[] = {
    {"ArgMax", 1, 1, 1, 1, "axis keepdims select_last_index", scan_arg_build, scan_arg_run, NULL},
    {"ArgMin", 1, 1, 1, 1, "axis keepdims select_last_index", scan_arg_build, scan_arg_run, NULL},
    {"CumProd", 2, 2, 1, 1, "exclusive reverse", scan_cumulate_build, scan_cumulate_run, NULL},
    {"CumSum", 2, 2, 1, 1, "exclusive reverse", scan_cumulate_build, scan_cumulate_run, NULL},
    {"TopK", 2, 2, 1, 2, "axis largest sorted", scan_top_build, scan_top_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
