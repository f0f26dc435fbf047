/* SPDX-License-Identifier: Apache-2.0
 *
 * What moves data, and what reduces it, against the reference on random shapes and all element sizes. */
#include "compare_testing.h"

static const rondo_dtype move_types[] = {RONDO_DTYPE_U8, RONDO_DTYPE_I16, RONDO_DTYPE_F32, RONDO_DTYPE_I64,
                                         RONDO_DTYPE_BOOL};

static rondo_dtype move_type(compare *c) { return move_types[compare_random(c, 5)]; }

static int32_t move_shape(compare *c, int32_t least, int64_t *dims) {
    const int32_t rank = least + (int32_t)compare_random(c, 4);
    for (int32_t d = 0; d < rank; d++) dims[d] = compare_random(c, 25) ? 1 + (int64_t)compare_random(c, 7) : 0;
    return rank;
}

/* A random number of cases of one kind over every set; returns how many this catalogue took. */
static int move_all(rondo_test *t, int times, void (*one)(compare *c)) {
    int taken = 0;
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int i = 0; i < times; i++) {
            one(c);
            taken += !c->refused;
        }
        compare_clear(c);
    }
    return taken;
}

static void move_transpose(compare *c) {
    int64_t dims[6], out[6], perm[6];
    const int32_t rank = move_shape(c, 0, dims);
    const bool given = compare_random(c, 4);
    for (int32_t d = 0; d < rank; d++) perm[d] = given ? d : rank - 1 - d;
    for (int32_t d = 0; given && d < rank; d++) {
        const int32_t other = (int32_t)compare_random(c, (uint64_t)rank);
        const int64_t keep = perm[d];
        perm[d] = perm[other];
        perm[other] = keep;
    }
    for (int32_t d = 0; d < rank; d++) out[d] = dims[perm[d]];
    const rondo_dtype type = move_type(c);
    compare_begin(c, "Transpose");
    compare_in(c, type, rank, dims, false);
    if (given) compare_ints(c, "perm", (uint32_t)rank, perm);
    compare_out(c, type, rank, out);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Transpose was refused");
}

static void test_transpose(rondo_test *t) { move_all(t, 400, move_transpose); }

static void move_slice(compare *c) {
    int64_t dims[6], out[6], bounds[4][6];
    const int32_t rank = move_shape(c, 1, dims);
    uint32_t n = 0;
    for (int32_t d = 0; d < rank; d++) {
        out[d] = dims[d];
        if (compare_random(c, 2) || dims[d] == 0) continue;
        const int64_t step = (int64_t)compare_random(c, 3) + 1, sign = compare_random(c, 3) ? 1 : -1;
        const int64_t from = (int64_t)compare_random(c, (uint64_t)dims[d]);
        const int64_t most = sign > 0 ? dims[d] - from : from + 1,
                      span = (int64_t)compare_random(c, (uint64_t)most + 1);
        bounds[0][n] = sign > 0 && compare_random(c, 3) == 0 ? from - dims[d] : from;
        bounds[1][n] = sign > 0 ? (span == most ? INT64_MAX : from + span) : span == most ? INT64_MIN : from - span;
        if (sign < 0 && span < most && from - span < 0) bounds[1][n] = INT64_MIN;
        bounds[2][n] = compare_random(c, 2) ? d : d - rank;
        bounds[3][n++] = step * sign;
        out[d] = span == 0 ? 0 : 1 + (span - 1) / step;
    }
    const rondo_dtype type = move_type(c);
    compare_begin(c, "Slice");
    compare_in(c, type, rank, dims, false);
    for (int i = 0; i < 4; i++) compare_in_ints(c, n, bounds[i], true);
    compare_out(c, type, rank, out);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Slice was refused");
}

static void test_slice(rondo_test *t) { move_all(t, 400, move_slice); }

static void move_parts(compare *c) {
    int64_t dims[6], part[4][6], lengths[4];
    const int32_t rank = move_shape(c, 1, dims), axis = (int32_t)compare_random(c, (uint64_t)rank);
    const uint32_t parts = 1 + (uint32_t)compare_random(c, 4);
    const bool split = compare_random(c, 2);
    const rondo_dtype type = move_type(c);
    dims[axis] = 0;
    for (uint32_t i = 0; i < parts; i++) {
        lengths[i] = (int64_t)compare_random(c, 5);
        dims[axis] += lengths[i];
    }
    for (uint32_t i = 0; i < parts; i++) {
        for (int32_t d = 0; d < rank; d++) part[i][d] = d == axis ? lengths[i] : dims[d];
    }
    compare_begin(c, split ? "Split" : "Concat");
    if (split) {
        compare_in(c, type, rank, dims, false);
        compare_in_ints(c, parts, lengths, true);
        for (uint32_t i = 0; i < parts; i++) compare_out(c, type, rank, part[i]);
    } else {
        for (uint32_t i = 0; i < parts; i++) compare_in(c, type, rank, part[i], false);
        compare_out(c, type, rank, dims);
    }
    compare_int(c, "axis", compare_random(c, 2) ? axis : axis - rank);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Split or Concat was refused");
}

static void test_parts(rondo_test *t) { move_all(t, 400, move_parts); }

static void move_expand(compare *c) {
    int64_t dims[6], out[6];
    const int32_t rank = move_shape(c, 0, out), cut = (int32_t)compare_random(c, (uint64_t)rank + 1);
    for (int32_t d = cut; d < rank; d++) dims[d - cut] = compare_random(c, 3) ? out[d] : 1;
    const rondo_dtype type = move_type(c);
    compare_begin(c, "Expand");
    compare_in(c, type, rank - cut, dims, false);
    compare_in_ints(c, (uint32_t)rank, out, true);
    compare_out(c, type, rank, out);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Expand was refused");
}

static void test_expand(rondo_test *t) { move_all(t, 300, move_expand); }

static void move_gather(compare *c) {
    int64_t dims[6], out[8], count[2] = {1 + (int64_t)compare_random(c, 4), 2};
    const int32_t rank = move_shape(c, 1, dims), axis = (int32_t)compare_random(c, (uint64_t)rank);
    const int32_t index_rank = (int32_t)compare_random(c, 3);
    const rondo_dtype type = move_type(c), index_type = compare_random(c, 2) ? RONDO_DTYPE_I64 : RONDO_DTYPE_I32;
    const bool constant = compare_random(c, 2);
    int32_t n = 0;
    for (int32_t d = 0; d < axis; d++) out[n++] = dims[d];
    for (int32_t d = 0; d < index_rank; d++) out[n++] = count[d];
    for (int32_t d = axis + 1; d < rank; d++) out[n++] = dims[d];
    if (dims[axis] == 0) return;
    compare_begin(c, "Gather");
    compare_in(c, type, rank, dims, false);
    unsigned char *indices = compare_in(c, index_type, index_rank, count, constant);
    const int64_t width = index_type == RONDO_DTYPE_I64 ? 8 : 4, total = (int64_t)c->in[1].bytes / width;
    const bool outside = !constant && compare_random(c, 10) == 0;
    for (int64_t i = 0; i < total; i++) {
        int64_t index = (int64_t)compare_random(c, 2 * (uint64_t)dims[axis]) - dims[axis];
        if (outside && i == 0) index = dims[axis];
        memcpy(indices + width * i, &index, (size_t)width);
    }
    compare_int(c, "axis", compare_random(c, 2) ? axis : axis - rank);
    compare_out(c, type, n, out);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Gather was refused");
}

static void test_gather(rondo_test *t) { move_all(t, 400, move_gather); }

static void move_pad(compare *c) {
    static const char *const modes[] = {"constant", "reflect", "edge"};
    int64_t dims[6], out[6], pads[12];
    const int32_t rank = move_shape(c, 1, dims);
    const uint32_t mode = (uint32_t)compare_random(c, 3);
    const rondo_dtype type = move_type(c);
    for (int32_t d = 0; d < rank; d++) {
        const bool some = mode == 0 || d == rank - 1;
        const uint64_t most = mode == 1 ? (dims[d] > 0 ? (uint64_t)dims[d] : 1) : 5;
        pads[d] = some ? (int64_t)compare_random(c, most) : 0;
        pads[rank + d] = some ? (int64_t)compare_random(c, most) : 0;
        out[d] = dims[d] + pads[d] + pads[rank + d];
    }
    compare_begin(c, "Pad");
    compare_in(c, type, rank, dims, false);
    compare_in_ints(c, 2 * (uint32_t)rank, pads, true);
    if (mode == 0 && compare_random(c, 2)) compare_in(c, type, 0, NULL, true);
    if (mode > 0 || compare_random(c, 2)) compare_string(c, "mode", modes[mode]);
    compare_out(c, type, rank, out);
    if (mode > 0 && dims[rank - 1] == 0) return;
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Pad was refused");
}

static void test_pad(rondo_test *t) { move_all(t, 400, move_pad); }

static void move_view(compare *c) {
    int64_t dims[6], flat = 1;
    const int32_t rank = move_shape(c, 0, dims);
    for (int32_t d = 0; d < rank; d++) flat *= dims[d];
    const rondo_dtype type = move_type(c);
    compare_begin(c, "Reshape");
    compare_in(c, type, rank, dims, false);
    compare_in_ints(c, 1, &flat, true);
    compare_int(c, "allowzero", 1);
    compare_out(c, type, 1, &flat);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Reshape was refused");
}

static void test_view(rondo_test *t) { move_all(t, 100, move_view); }

static void move_where(compare *c) {
    int64_t dims[6];
    const int32_t rank = move_shape(c, 0, dims);
    const rondo_dtype type = move_type(c);
    compare_begin(c, "Where");
    for (int i = 0; i < 3; i++) {
        const bool one = compare_random(c, 4) == 0 && i > 0;
        compare_in(c, i == 0 ? RONDO_DTYPE_BOOL : type, one ? 0 : rank, dims, false);
    }
    compare_out(c, type, rank, dims);
    compare_run(c, 0.0);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Where was refused");
}

static void test_where(rondo_test *t) { move_all(t, 200, move_where); }

static void move_cast(compare *c) {
    static const rondo_dtype types[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F64, RONDO_DTYPE_I32, RONDO_DTYPE_I64,
                                        RONDO_DTYPE_BOOL};
    const rondo_dtype from = types[compare_random(c, 5)], to = types[compare_random(c, 5)];
    const int64_t count = (int64_t)compare_random(c, 20);
    compare_begin(c, "Cast");
    c->special = true;
    compare_in(c, from, 1, &count, false);
    for (int64_t i = 0; from == RONDO_DTYPE_F64 && i < count; i++) { /* random bytes are no fair sample of doubles */
        static const double edges[] = {2147483647.5, 2147483648.0, -2147483648.9, -2147483649.0,
                                       0x1p63,       -0x1p63,      1e300};
        const double x = compare_random(c, 2) ? (double)compare_number(c) : edges[compare_random(c, 7)];
        memcpy(c->in[0].data + 8 * i, &x, 8);
    }
    compare_int(c, "to", to);
    compare_out(c, to, 1, &count);
    compare_run(c, 0.0);
    if (c->refused && from != to) rondo_test_fail(c->t, __FILE__, __LINE__, "Cast was refused");
}

static void test_cast(rondo_test *t) { move_all(t, 400, move_cast); }

static void move_reduce(compare *c) {
    static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    int64_t dims[6], axes[6], out[6];
    const int32_t rank = move_shape(c, 0, dims);
    const int32_t from = (int32_t)compare_random(c, (uint64_t)rank + 1),
                  to = from + (int32_t)compare_random(c, (uint64_t)(rank - from) + 1);
    const bool keep = compare_random(c, 2), all = compare_random(c, 4) == 0;
    uint32_t n = 0;
    int32_t out_rank = 0;
    for (int32_t d = 0; d < rank; d++) {
        const bool reduced = all || (d >= from && d < to);
        if (reduced && compare_random(c, 2)) dims[d] = 1 + (int64_t)compare_random(c, 40);
        if (reduced) axes[n++] = compare_random(c, 2) ? d : d - rank;
        if (reduced && dims[d] == 0) dims[d] = 3;
        if (!reduced || keep) out[out_rank++] = reduced ? 1 : dims[d];
    }
    if (n == 0 && !all) return;
    compare_begin(c, names[compare_random(c, 3)]);
    compare_in(c, RONDO_DTYPE_F32, rank, dims, false);
    if (!all) compare_in_ints(c, n, axes, true);
    compare_int(c, "keepdims", keep);
    compare_out(c, RONDO_DTYPE_F32, out_rank, out);
    compare_run(c, 2e-5);
    if (c->refused && rank > 0) rondo_test_fail(c->t, __FILE__, __LINE__, "a reduction was refused");
}

static void test_reduce(rondo_test *t) { move_all(t, 400, move_reduce); }

static void move_softmax(compare *c) {
    const int64_t dims[2] = {(int64_t)compare_random(c, 4), (int64_t)compare_random(c, 50)};
    compare_begin(c, "Softmax");
    float *x = compare_in(c, RONDO_DTYPE_F32, 2, dims, false);
    for (size_t i = 0; i < c->in[0].bytes / 4; i++) x[i] *= compare_random(c, 2) ? 40.0f : 1.0f;
    if (compare_random(c, 2)) compare_int(c, "axis", 1);
    compare_out(c, RONDO_DTYPE_F32, 2, dims);
    compare_run(c, 1e-6);
    if (c->refused) rondo_test_fail(c->t, __FILE__, __LINE__, "Softmax was refused");
}

static void test_softmax(rondo_test *t) { move_all(t, 150, move_softmax); }

/* A NaN anywhere is the maximum. */
static void test_max_nan(rondo_test *t) {
    for (uint32_t s = 0; compare_set(s); s++) {
        compare *c = compare_start(t, compare_set(s));
        for (int64_t count = 1; count < 40; count++) {
            compare_begin(c, "ReduceMax");
            float *x = compare_in(c, RONDO_DTYPE_F32, 1, &count, false);
            x[compare_random(c, (uint64_t)count)] = __builtin_nanf("");
            compare_int(c, "keepdims", 0);
            compare_out(c, RONDO_DTYPE_F32, 0, NULL);
            compare_run(c, 0.0);
            T_TRUE(t, !c->refused);
        }
        compare_clear(c);
    }
}

RONDO_TEST_MAIN(T_PLAIN(test_transpose), T_PLAIN(test_slice), T_PLAIN(test_parts), T_PLAIN(test_expand),
                T_PLAIN(test_gather), T_PLAIN(test_pad), T_PLAIN(test_view), T_PLAIN(test_where), T_PLAIN(test_cast),
                T_PLAIN(test_reduce), T_PLAIN(test_softmax), T_PLAIN(test_max_nan))
