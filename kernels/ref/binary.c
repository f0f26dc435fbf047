/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of two elements, broadcast: a row of code for each data type, which a walk over the output's shape calls
 * row by row. Integers are computed unsigned, so they wrap; integer division by zero stops the run instead of the
 * process. Max, Min, Sum and Mean fold any number of inputs the same way. */
#include "ref.h"

typedef int32_t (*binary_row)(int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step, void *out);

/* x and y are the elements; the expression is a value of `result`. */
#define BINARY_ROW_TO(result, type, suffix, name, expression)                                                        \
    static int32_t binary_##name##_##suffix(int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step, \
                                            void *out) {                                                             \
        const type *left = (const type *)a, *right = (const type *)b;                                                \
        result *to = (result *)out;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const type x = left[i * a_step], y = right[i * b_step];                                                  \
            to[i] = (result)(expression);                                                                            \
        }                                                                                                            \
        return RONDO__REF_OK;                                                                                        \
    }
#define BINARY_ROW(dtype, type, suffix, name, expression) BINARY_ROW_TO(type, type, suffix, name, expression)
#define BINARY_TEST(dtype, type, suffix, name, expression) BINARY_ROW_TO(uint8_t, type, suffix, name, expression)
#define BINARY_ENTRY(dtype, type, suffix, name, ...) [RONDO_DTYPE_##dtype] = binary_##name##_##suffix,

#define BINARY_NUMBER_TABLE(name) \
    static const binary_row binary_##name##_rows[RONDO_DTYPE_COUNT] = {RONDO__REF_EACH_NUMBER(BINARY_ENTRY, name, )};

/* clang-format off */
#define BINARY_ARITHMETIC(name, op)                                        \
    RONDO__REF_EACH_FLOAT(BINARY_ROW, name, x op y)                        \
    RONDO__REF_EACH_SIGNED(BINARY_ROW, name, (uint64_t)x op (uint64_t)y)   \
    RONDO__REF_EACH_UNSIGNED(BINARY_ROW, name, (uint64_t)x op (uint64_t)y) \
    BINARY_NUMBER_TABLE(name)

BINARY_ARITHMETIC(add, +)
BINARY_ARITHMETIC(sub, -)
BINARY_ARITHMETIC(mul, *)

RONDO__REF_EACH_NUMBER(BINARY_TEST, less, x < y)
BINARY_NUMBER_TABLE(less)
RONDO__REF_EACH_NUMBER(BINARY_TEST, greater, x > y)
BINARY_NUMBER_TABLE(greater)
RONDO__REF_EACH_NUMBER(BINARY_TEST, less_equal, x <= y)
BINARY_NUMBER_TABLE(less_equal)
RONDO__REF_EACH_NUMBER(BINARY_TEST, greater_equal, x >= y)
BINARY_NUMBER_TABLE(greater_equal)

RONDO__REF_EACH_NUMBER(BINARY_TEST, equal, x == y)
BINARY_TEST(BOOL, uint8_t, b8, equal, (x != 0) == (y != 0))
static const binary_row binary_equal_rows[RONDO_DTYPE_COUNT] = {
    RONDO__REF_EACH_NUMBER(BINARY_ENTRY, equal, ) [RONDO_DTYPE_BOOL] = binary_equal_b8};

BINARY_TEST(BOOL, uint8_t, b8, and, x != 0 && y != 0)
static const binary_row binary_and_rows[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = binary_and_b8};
BINARY_TEST(BOOL, uint8_t, b8, or, x != 0 || y != 0)
static const binary_row binary_or_rows[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = binary_or_b8};
BINARY_TEST(BOOL, uint8_t, b8, xor, (x != 0) != (y != 0))
static const binary_row binary_xor_rows[RONDO_DTYPE_COUNT] = {[RONDO_DTYPE_BOOL] = binary_xor_b8};

/* Sums of many inputs: of floats only. */
static const binary_row binary_sum_rows[RONDO_DTYPE_COUNT] = {RONDO__REF_EACH_FLOAT(BINARY_ENTRY, add, )};

/* A NaN on either side is the result. */
RONDO__REF_EACH_FLOAT(BINARY_ROW, max, x > y || x != x ? x : y)
RONDO__REF_EACH_SIGNED(BINARY_ROW, max, x > y ? x : y)
RONDO__REF_EACH_UNSIGNED(BINARY_ROW, max, x > y ? x : y)
BINARY_NUMBER_TABLE(max)
RONDO__REF_EACH_FLOAT(BINARY_ROW, min, x < y || x != x ? x : y)
RONDO__REF_EACH_SIGNED(BINARY_ROW, min, x < y ? x : y)
RONDO__REF_EACH_UNSIGNED(BINARY_ROW, min, x < y ? x : y)
BINARY_NUMBER_TABLE(min)

/* Division that may not happen: the check comes before it. The lowest number by -1 wraps to itself. */
#define BINARY_DIVIDE(dtype, type, suffix, expression, ...)                                                       \
    static int32_t binary_div_##suffix(int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step,   \
                                       void *out) {                                                               \
        const type *left = (const type *)a, *right = (const type *)b;                                             \
        type *to = (type *)out;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            const type x = left[i * a_step], y = right[i * b_step];                                               \
            if (y == 0) return RONDO__REF_ZERO_DIVISOR;                                                           \
            to[i] = (type)(expression);                                                                           \
        }                                                                                                         \
        return RONDO__REF_OK;                                                                                     \
    }
#define BINARY_DIVIDE_SIGNED(dtype, type, suffix, ...) \
    BINARY_DIVIDE(dtype, type, suffix, (int64_t)y == -1 ? (int64_t)(0u - (uint64_t)x) : (int64_t)x / (int64_t)y)
#define BINARY_DIVIDE_UNSIGNED(dtype, type, suffix, ...) BINARY_DIVIDE(dtype, type, suffix, x / y)
RONDO__REF_EACH_FLOAT(BINARY_ROW, div, x / y)
RONDO__REF_EACH_SIGNED(BINARY_DIVIDE_SIGNED, )
RONDO__REF_EACH_UNSIGNED(BINARY_DIVIDE_UNSIGNED, )
BINARY_NUMBER_TABLE(div)

/* clang-format on */

/* ------------------------------------------------------------------------------------------------ the walk */

/* out = row(a, b) over the walk; a_set and b_set say which strides of the walk are a's and b's. The output is compact,
 * so it advances by whole rows. */
static int32_t binary_walk(const rondo__ref_walk *walk, binary_row row, const unsigned char *a, size_t a_size,
                           int a_set, const unsigned char *b, size_t b_size, int b_set, unsigned char *out,
                           size_t out_size) {
    int32_t outer = walk->rank > 0 ? walk->rank - 1 : 0;
    int64_t n = walk->rank > 0 ? walk->dims[outer] : 1;
    int64_t a_step = walk->rank > 0 ? walk->strides[a_set][outer] : 0;
    int64_t b_step = walk->rank > 0 ? walk->strides[b_set][outer] : 0;
    int64_t index[RONDO_RANK_MAX] = {0};
    do {
        int32_t reason = row(n, a + rondo__ref_offset(outer, walk->strides[a_set], index) * (int64_t)a_size, a_step,
                             b + rondo__ref_offset(outer, walk->strides[b_set], index) * (int64_t)b_size, b_step, out);
        if (reason) return reason;
        out += n * (int64_t)out_size;
    } while (rondo__ref_next(outer, walk->dims, index));
    return RONDO__REF_OK;
}

static uint32_t binary_types(const binary_row *rows) {
    uint32_t types = 0;
    for (uint32_t d = 0; d < RONDO_DTYPE_COUNT; d++) types |= rows[d] ? 1u << d : 0;
    return types;
}

static rondo_status binary_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *in = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    const char *name = k->op->name;
    bool test = strcmp(name, "Equal") == 0 || strncmp(name, "Less", 4) == 0 || strncmp(name, "Greater", 7) == 0;
    rondo_status status = rondo__ref_need_types(b, "the input", in, binary_types((const binary_row *)k->op->rows));
    if (!status) status = rondo__ref_need_same_type(b, "input 1", rondo__ref_input(k, 1), in->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, test ? RONDO_DTYPE_BOOL : in->dtype);
    if (!status) status = rondo__ref_build_walk(b, 0, 2, &k->as.walk);
    if (!status) status = rondo__ref_attribute_activation(b);
    if (status) return status;
    rondo__ref_allow_in_place(k, 0);
    rondo__ref_allow_in_place(k, 1);
    return RONDO_OK;
}

static int32_t binary_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[2];
    if (out->count == 0) return RONDO__REF_OK;
    void *to = rondo__ref_address(words[2]);
    int32_t reason = binary_walk(&k->as.walk, ((const binary_row *)k->op->rows)[k->tensors[0].dtype],
                                 (const unsigned char *)rondo__ref_address(words[0]), k->tensors[0].size, 0,
                                 (const unsigned char *)rondo__ref_address(words[1]), k->tensors[1].size, 1,
                                 (unsigned char *)to, out->size);
    if (!reason) rondo__ref_activate(&k->activation, out->dtype, to, out->count);
    return reason;
}

/* --------------------------------------------------------------------------------------------- Max and Min */

/* The shape that all inputs give together, and each one's fit to it. */
static rondo_status binary_fold_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *first = rondo__ref_input(k, 0), *out = rondo__ref_output(k, 0);
    int32_t rank = 0;
    int64_t dims[RONDO_RANK_MAX];
    rondo_status status = rondo__ref_need_types(b, "the input", first, binary_types((const binary_row *)k->op->rows));
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, first->dtype);
    if (status) return status;
    for (uint32_t i = 1; i < k->input_count; i++) {
        status = rondo__ref_need_same_type(b, "an input", rondo__ref_input(k, i), first->dtype);
        if (status) return status;
    }
    status = rondo__ref_broadcast(b, 0, k->input_count, &rank, dims);
    if (status) return status;
    status = rondo__ref_need_dims(b, "the output", out, rank, dims);
    if (!status) rondo__ref_allow_in_place(k, 0);
    return status;
}

static void binary_fold_walk(const rondo__ref_tensor *out, const rondo__ref_tensor *t, rondo__ref_walk *walk) {
    *walk = (rondo__ref_walk){.rank = out->rank};
    memcpy(walk->dims, out->dims, sizeof walk->dims);
    rondo__ref_compact(out->rank, out->dims, walk->strides[0]);
    rondo__ref_broadcast_strides(t, out->rank, walk->strides[1]);
}

/* The first input is copied out, then each further one is folded into it. */
static int32_t binary_fold_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[k->input_count];
    if (out->count == 0) return RONDO__REF_OK;
    unsigned char *to = (unsigned char *)rondo__ref_address(rondo__ref_output_word(k, words, 0));
    const binary_row row = ((const binary_row *)k->op->rows)[out->dtype];
    rondo__ref_walk walk;
    binary_fold_walk(out, &k->tensors[0], &walk);
    rondo__ref_copy(out->size, out->rank, out->dims, to, walk.strides[0], rondo__ref_address(words[0]),
                    walk.strides[1]);
    for (uint32_t i = 1; i < k->input_count; i++) {
        binary_fold_walk(out, &k->tensors[i], &walk);
        (void)binary_walk(&walk, row, to, out->size, 0, (const unsigned char *)rondo__ref_address(words[i]), out->size,
                          1, to, out->size);
    }
    return RONDO__REF_OK;
}

static int32_t binary_mean_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *out = &k->tensors[k->input_count];
    int32_t reason = binary_fold_run(k, words);
    void *to = rondo__ref_address(rondo__ref_output_word(k, words, 0));
    for (int64_t i = 0; !reason && i < out->count; i++) {
        rondo__ref_put(out->dtype, to, i, rondo__ref_get(out->dtype, to, i) / (double)k->input_count);
    }
    return reason;
}

#define BINARY_OPERATOR(name, attributes, rows) \
    { name, 2, 2, 1, 1, attributes, binary_build, binary_run, rows }

const rondo__ref_operator rondo__ref_binary_operators[] = {
    BINARY_OPERATOR("Add", "rondo.activation rondo.alpha rondo.beta", binary_add_rows),
    BINARY_OPERATOR("And", "", binary_and_rows),
    BINARY_OPERATOR("Div", "", binary_div_rows),
    BINARY_OPERATOR("Equal", "", binary_equal_rows),
    BINARY_OPERATOR("Greater", "", binary_greater_rows),
    BINARY_OPERATOR("GreaterOrEqual", "", binary_greater_equal_rows),
    BINARY_OPERATOR("Less", "", binary_less_rows),
    BINARY_OPERATOR("LessOrEqual", "", binary_less_equal_rows),
    {"Max", 1, RONDO__REF_MANY, 1, 1, "", binary_fold_build, binary_fold_run, binary_max_rows},
    {"Mean", 1, RONDO__REF_MANY, 1, 1, "", binary_fold_build, binary_mean_run, binary_sum_rows},
    {"Min", 1, RONDO__REF_MANY, 1, 1, "", binary_fold_build, binary_fold_run, binary_min_rows},
    BINARY_OPERATOR("Mul", "", binary_mul_rows),
    BINARY_OPERATOR("Or", "", binary_or_rows),
    BINARY_OPERATOR("Sub", "", binary_sub_rows),
    {"Sum", 1, RONDO__REF_MANY, 1, 1, "", binary_fold_build, binary_fold_run, binary_sum_rows},
    BINARY_OPERATOR("Xor", "", binary_xor_rows),
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
