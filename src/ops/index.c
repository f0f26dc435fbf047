/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that choose elements by index or order along an axis, and those that make tensors from a few numbers. */
#include <math.h>

#include "base/checked.h"
#include "ops/infer.h"

/* Prototypes whose operands are written out before them as index_in_NAME and index_out_NAME. */
#define INDEX_PROTOTYPE(operator_, text, infer_, ...)                                               \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                        \
                                                         .summary = text,                           \
                                                         RONDO__OPS_INPUTS(index_in_##operator_),   \
                                                         RONDO__OPS_OUTPUTS(index_out_##operator_), \
                                                         __VA_ARGS__.infer = infer_}
#define INDEX_WITH(operator_) RONDO__OPS_ATTRIBUTES(index_with_##operator_),

/* --------------------------------------------------------------------------------- GatherElements, Scatter... */

static rondo_status index_check_elements(rondo__ops_infer *infer) {
    const rondo_operand *data = &infer->request->inputs[0], *at = &infer->request->inputs[1];
    int32_t axis;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", 0), data->rank, &axis));
    if (at->rank != data->rank) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the indices have rank %d, the data %d", at->rank, data->rank);
    }
    for (int32_t d = 0; d < data->rank; d++) {
        if (d == axis || at->dims[d] <= data->dims[d]) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the indices reach beyond axis %d of the data", d);
    }
    return RONDO_OK;
}

static rondo_status index_infer_gather_elements(rondo__ops_infer *infer) {
    const rondo_operand *at = &infer->request->inputs[1];
    RONDO__TRY(index_check_elements(infer));
    rondo__ops_result(infer, 0, infer->request->inputs[0].dtype, at->rank, at->dims);
    return RONDO_OK;
}

static rondo_status index_check_shape(rondo__ops_infer *infer, const char *what, const rondo_operand *operand,
                                      int32_t rank, const int64_t *dims) {
    bool same = operand->rank == rank;
    for (int32_t d = 0; same && d < rank; d++) same = operand->dims[d] == dims[d];
    if (same) return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' does not have the shape that the indices ask for",
                           what);
}

#define INDEX_REDUCTIONS "none add mul max min "

static rondo_status index_infer_scatter_elements(rondo__ops_infer *infer) {
    const rondo_operand *at = &infer->request->inputs[1];
    RONDO__TRY(rondo__ops_word(infer, "reduction", INDEX_REDUCTIONS));
    RONDO__TRY(index_check_elements(infer));
    RONDO__TRY(index_check_shape(infer, "updates", &infer->request->inputs[2], at->rank, at->dims));
    return rondo__ops_infer_same(infer);
}

/* The shape of what indices with that many leading batch axes choose. */
static rondo_status index_tuples(rondo__ops_infer *infer, int64_t batch, int32_t *out_rank, int64_t *dims) {
    const rondo_operand *data = &infer->request->inputs[0], *at = &infer->request->inputs[1];
    int32_t rank = 0;
    if (at->rank < 1 || data->rank < 1 || batch < 0 || batch >= at->rank || batch >= data->rank ||
        at->dims[at->rank - 1] > data->rank - batch) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "indices of rank %d do not fit data of rank %d", at->rank,
                               data->rank);
    }
    for (int64_t d = 0; d < batch; d++) {
        if (at->dims[d] == data->dims[d]) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "batch axis %lld has two sizes", (long long)d);
    }
    for (int32_t d = 0; d < at->rank - 1; d++) dims[rank++] = at->dims[d];
    for (int64_t d = batch + at->dims[at->rank - 1]; d < data->rank; d++) dims[rank++] = data->dims[d];
    if (rank > RONDO_RANK_MAX) {
        return RONDO__OPS_FAIL(infer, UNSUPPORTED, "the result has rank %d, the limit is %d", rank, RONDO_RANK_MAX);
    }
    *out_rank = rank;
    return RONDO_OK;
}

static rondo_status index_infer_gather_nd(rondo__ops_infer *infer) {
    int64_t dims[2 * RONDO_RANK_MAX];
    int32_t rank;
    RONDO__TRY(index_tuples(infer, rondo__ops_attribute_int(infer->request, "batch_dims", 0), &rank, dims));
    rondo__ops_result(infer, 0, infer->request->inputs[0].dtype, rank, dims);
    return RONDO_OK;
}

static rondo_status index_infer_scatter_nd(rondo__ops_infer *infer) {
    int64_t dims[2 * RONDO_RANK_MAX];
    int32_t rank;
    RONDO__TRY(rondo__ops_word(infer, "reduction", INDEX_REDUCTIONS));
    RONDO__TRY(index_tuples(infer, 0, &rank, dims));
    RONDO__TRY(index_check_shape(infer, "updates", &infer->request->inputs[2], rank, dims));
    return rondo__ops_infer_same(infer);
}

#define INDEX_DATA(name) \
    { name, RONDO__OPS_CLASSIC, 'T', 0, 0, 0 }
#define INDEX_AT(types) \
    { "indices", types, 0, 0, 0, 0 }
static const rondo__ops_operand index_in_GatherElements[] = {INDEX_DATA("data"), INDEX_AT(RONDO__OPS_INDEX)};
static const rondo__ops_operand index_out_GatherElements[] = {INDEX_DATA("output")};
static const rondo__ops_attribute index_with_GatherElements[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"}};
INDEX_PROTOTYPE(GatherElements, "The elements that the indices name along an axis, each at its own place otherwise",
                index_infer_gather_elements, INDEX_WITH(GatherElements));
static const rondo__ops_operand index_in_GatherND[] = {INDEX_DATA("data"), INDEX_AT(RONDO__OPS_BIT(I64))};
static const rondo__ops_operand index_out_GatherND[] = {INDEX_DATA("output")};
static const rondo__ops_attribute index_with_GatherND[] = {{"batch_dims", RONDO_ATTRIBUTE_INT, 0, "0"}};
INDEX_PROTOTYPE(GatherND, "The slices that rows of indices name", index_infer_gather_nd, INDEX_WITH(GatherND));
static const rondo__ops_operand index_in_ScatterElements[] = {INDEX_DATA("data"), INDEX_AT(RONDO__OPS_INDEX),
                                                              INDEX_DATA("updates")};
static const rondo__ops_operand index_out_ScatterElements[] = {INDEX_DATA("output")};
static const rondo__ops_attribute index_with_ScatterElements[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                                  {"reduction", RONDO_ATTRIBUTE_STRING, 0, "none"}};
INDEX_PROTOTYPE(ScatterElements, "The data with updates put, added, ... where the indices say along an axis",
                index_infer_scatter_elements, INDEX_WITH(ScatterElements));
static const rondo__ops_operand index_in_ScatterND[] = {INDEX_DATA("data"), INDEX_AT(RONDO__OPS_BIT(I64)),
                                                        INDEX_DATA("updates")};
static const rondo__ops_operand index_out_ScatterND[] = {INDEX_DATA("output")};
static const rondo__ops_attribute index_with_ScatterND[] = {{"reduction", RONDO_ATTRIBUTE_STRING, 0, "none"}};
INDEX_PROTOTYPE(ScatterND, "The data with updates put, added, ... into slices that rows of indices name",
                index_infer_scatter_nd, INDEX_WITH(ScatterND));

/* ------------------------------------------------------------------------------------ ArgMax, CumSum, TopK, Trilu */

static rondo_status index_infer_arg(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    bool keep = rondo__ops_attribute_int(infer->request, "keepdims", 1) != 0;
    int64_t dims[RONDO_RANK_MAX];
    int32_t axis, rank = 0;
    RONDO__TRY(rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", 0), input->rank, &axis));
    if (!input->dims[axis]) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d has no elements", axis);
    for (int32_t d = 0; d < input->rank; d++) {
        if (d != axis || keep) dims[rank++] = d == axis ? 1 : input->dims[d];
    }
    rondo__ops_result(infer, 0, RONDO_DTYPE_I64, rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand index_in_Arg[] = {{"data", RONDO__OPS_NUMBERS, 'T', 0, 0, 0}};
static const rondo__ops_operand index_out_Arg[] = {{"reduced", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_attribute index_with_Arg[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                      {"keepdims", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                      {"select_last_index", RONDO_ATTRIBUTE_INT, 0, "0"}};
#define INDEX_ARG(operator_, text)                                                              \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                    \
                                                         .summary = text,                       \
                                                         RONDO__OPS_INPUTS(index_in_Arg),       \
                                                         RONDO__OPS_OUTPUTS(index_out_Arg),     \
                                                         RONDO__OPS_ATTRIBUTES(index_with_Arg), \
                                                         .infer = index_infer_arg}
INDEX_ARG(ArgMax, "Index of the largest along an axis");
INDEX_ARG(ArgMin, "Index of the smallest along an axis");

static rondo_status index_one_number(rondo__ops_infer *infer, uint32_t index, const char *name) {
    const rondo_operand *operand = rondo__ops_input(infer, index);
    int64_t elements;
    if (!operand || (rondo__checked_elements(operand->rank, operand->dims, &elements) && elements == 1))
        return RONDO_OK;
    return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' must be one number", name);
}

static rondo_status index_infer_cumulate(rondo__ops_infer *infer) {
    RONDO__TRY(index_one_number(infer, 1, "axis"));
    if (!infer->request->inputs[0].rank)
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "a number has no axis to go along");
    return rondo__ops_infer_same(infer);
}

#define INDEX_SUM_TYPES (RONDO__OPS_FLOATS | RONDO__OPS_WIDE_INTS)
static const rondo__ops_operand index_in_Cumulate[] = {{"x", INDEX_SUM_TYPES, 'T', 0, 0, 0},
                                                       {"axis", RONDO__OPS_INDEX, 0, 0, 0, 0}};
static const rondo__ops_operand index_out_Cumulate[] = {{"y", INDEX_SUM_TYPES, 'T', 0, 0, 0}};
#undef INDEX_SUM_TYPES
static const rondo__ops_attribute index_with_Cumulate[] = {{"exclusive", RONDO_ATTRIBUTE_INT, 0, "0"},
                                                           {"reverse", RONDO_ATTRIBUTE_INT, 0, "0"}};
#define INDEX_CUMULATE(operator_, text)                                                              \
    const rondo__ops_prototype rondo__ops_##operator_ = {.name = #operator_,                         \
                                                         .summary = text,                            \
                                                         RONDO__OPS_INPUTS(index_in_Cumulate),       \
                                                         RONDO__OPS_OUTPUTS(index_out_Cumulate),     \
                                                         RONDO__OPS_ATTRIBUTES(index_with_Cumulate), \
                                                         .infer = index_infer_cumulate}
INDEX_CUMULATE(CumProd, "Product of all up to here along an axis");
INDEX_CUMULATE(CumSum, "Sum of all up to here along an axis");

static rondo_status index_infer_top(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t dims[RONDO_RANK_MAX], wanted = 0;
    int32_t axis;
    uint32_t count;
    RONDO__TRY(
        rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1), input->rank, &axis));
    RONDO__TRY(rondo__ops_values(infer, 1, "K", &wanted, 1, &count));
    if (count != 1 || wanted < 0 || wanted > input->dims[axis]) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "%lld of %lld elements cannot be chosen", (long long)wanted,
                               (long long)input->dims[axis]);
    }
    for (int32_t d = 0; d < input->rank; d++) dims[d] = d == axis ? wanted : input->dims[d];
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    rondo__ops_result(infer, 1, RONDO_DTYPE_I64, input->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand index_in_TopK[] = {{"X", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                   {"K", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand index_out_TopK[] = {{"Values", RONDO__OPS_NUMBERS, 'T', 0, 0, 0},
                                                    {"Indices", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_attribute index_with_TopK[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"},
                                                       {"largest", RONDO_ATTRIBUTE_INT, 0, "1"},
                                                       {"sorted", RONDO_ATTRIBUTE_INT, 0, "1"}};
INDEX_PROTOTYPE(TopK, "The K largest or smallest along an axis, and where they are", index_infer_top,
                INDEX_WITH(TopK).shape_inputs = 1u << 1, );

static rondo_status index_infer_trilu(rondo__ops_infer *infer) {
    if (infer->request->inputs[0].rank < 2) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input is no matrix");
    RONDO__TRY(index_one_number(infer, 1, "k"));
    return rondo__ops_infer_same(infer);
}

static const rondo__ops_operand index_in_Trilu[] = {INDEX_DATA("input"), {"k", RONDO__OPS_BIT(I64), 0, 1, 0, 0}};
static const rondo__ops_operand index_out_Trilu[] = {INDEX_DATA("output")};
static const rondo__ops_attribute index_with_Trilu[] = {{"upper", RONDO_ATTRIBUTE_INT, 0, "1"}};
INDEX_PROTOTYPE(Trilu, "Matrices with zeros below or above diagonal k", index_infer_trilu, INDEX_WITH(Trilu));

/* ---------------------------------------------------------------------------------- Tile, OneHot, EyeLike, Range */

static rondo_status index_infer_tile(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t repeats[RONDO_RANK_MAX], dims[RONDO_RANK_MAX];
    uint32_t count;
    RONDO__TRY(rondo__ops_values(infer, 1, "repeats", repeats, RONDO_RANK_MAX, &count));
    if ((int32_t)count != input->rank) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "there are %u repeats for %d axes", count, input->rank);
    }
    for (int32_t d = 0; d < input->rank; d++) {
        if (repeats[d] >= 0 && rondo__checked_mul_i64(input->dims[d], repeats[d], &dims[d])) continue;
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "axis %d cannot be repeated %lld times", d,
                               (long long)repeats[d]);
    }
    rondo__ops_result(infer, 0, input->dtype, input->rank, dims);
    return RONDO_OK;
}

static const rondo__ops_operand index_in_Tile[] = {INDEX_DATA("input"), {"repeats", RONDO__OPS_BIT(I64), 0, 0, 0, 0}};
static const rondo__ops_operand index_out_Tile[] = {INDEX_DATA("output")};
INDEX_PROTOTYPE(Tile, "The input repeated along each axis", index_infer_tile, .shape_inputs = 1u << 1, );

/* One known number of any type but bfloat16 that shapes may come from; a NaN is none. */
static rondo_status index_number(rondo__ops_infer *infer, uint32_t index, const char *name, double *out,
                                 int64_t *whole) {
    const rondo_operand *operand = &infer->request->inputs[index];
    RONDO__TRY(index_one_number(infer, index, name));
    if (!operand->constant) {
        infer->needs_value_of = name;
        return RONDO__OPS_FAIL(infer, UNSUPPORTED,
                               "the shape of the result depends on the value of input '%s', which is only known when "
                               "the model runs",
                               name);
    }
    switch (operand->dtype) {
#define INDEX_CASE(name_, type)                               \
    case RONDO_DTYPE_##name_:                                 \
        *whole = (int64_t) * (const type *)operand->constant; \
        *out = (double)*(const type *)operand->constant;      \
        break;
        INDEX_CASE(I8, int8_t)
        INDEX_CASE(I16, int16_t)
        INDEX_CASE(I32, int32_t)
        INDEX_CASE(I64, int64_t)
        INDEX_CASE(U8, uint8_t)
        INDEX_CASE(U16, uint16_t)
        INDEX_CASE(U32, uint32_t)
        INDEX_CASE(U64, uint64_t)
#undef INDEX_CASE
    case RONDO_DTYPE_F32: *out = (double)*(const float *)operand->constant; break;
    case RONDO_DTYPE_F64: *out = *(const double *)operand->constant; break;
    default:
        return RONDO__OPS_FAIL(infer, UNSUPPORTED, "a shape from input '%s' of type %s", name,
                               rondo_dtype_name(operand->dtype));
    }
    if (*out != *out) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input '%s' is not a number", name);
    return RONDO_OK;
}

static bool index_is_float(rondo_dtype dtype) { return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64; }

static rondo_status index_infer_one_hot(rondo__ops_infer *infer) {
    const rondo_operand *at = &infer->request->inputs[0], *values = &infer->request->inputs[2];
    int64_t dims[RONDO_RANK_MAX], whole = 0;
    double depth = 0;
    int32_t axis;
    if (!at->rank) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the indices must have a rank of 1 or more");
    if (at->rank >= RONDO_RANK_MAX) return RONDO__OPS_FAIL(infer, UNSUPPORTED, "rank %d is the highest", at->rank);
    RONDO__TRY(
        rondo__ops_axis(infer, "axis", rondo__ops_attribute_int(infer->request, "axis", -1), at->rank + 1, &axis));
    if (values->rank != 1 || values->dims[0] != 2) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'values' must hold two values");
    }
    RONDO__TRY(index_number(infer, 1, "depth", &depth, &whole));
    if (depth < 0 || depth > 9e18) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the depth is %g", depth);
    if (index_is_float(infer->request->inputs[1].dtype)) whole = (int64_t)depth;
    for (int32_t d = 0; d <= at->rank; d++) dims[d] = d == axis ? whole : at->dims[d - (d > axis)];
    rondo__ops_result(infer, 0, values->dtype, at->rank + 1, dims);
    return RONDO_OK;
}

#define INDEX_HOT_TYPES (RONDO__OPS_NUMBERS & ~RONDO__OPS_BIT(BF16))
#define INDEX_HOT_VALUES (RONDO__OPS_CLASSIC & ~RONDO__OPS_BIT(BF16))
static const rondo__ops_operand index_in_OneHot[] = {{"indices", INDEX_HOT_TYPES, 0, 0, 0, 0},
                                                     {"depth", INDEX_HOT_TYPES, 0, 0, 0, 0},
                                                     {"values", INDEX_HOT_VALUES, 'V', 0, 0, 0}};
static const rondo__ops_operand index_out_OneHot[] = {{"output", INDEX_HOT_VALUES, 'V', 0, 0, 0}};
#undef INDEX_HOT_TYPES
#undef INDEX_HOT_VALUES
static const rondo__ops_attribute index_with_OneHot[] = {{"axis", RONDO_ATTRIBUTE_INT, 0, "-1"}};
INDEX_PROTOTYPE(OneHot, "A new axis that is `on` at the index and `off` elsewhere", index_infer_one_hot,
                INDEX_WITH(OneHot).shape_inputs = 1u << 1, );

#define INDEX_EYE_TYPES (RONDO__OPS_NUMBERS | RONDO__OPS_BIT(BOOL))
static rondo_status index_infer_eye(rondo__ops_infer *infer) {
    const rondo_operand *input = &infer->request->inputs[0];
    int64_t dtype = rondo__ops_attribute_int(infer->request, "dtype", input->dtype);
    if (dtype <= RONDO_DTYPE_UNDEFINED || dtype >= RONDO_DTYPE_COUNT || !(INDEX_EYE_TYPES & 1u << dtype)) {
        return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "attribute 'dtype' is %lld", (long long)dtype);
    }
    if (input->rank != 2) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "the input is no matrix");
    rondo__ops_result(infer, 0, (rondo_dtype)dtype, 2, input->dims);
    return RONDO_OK;
}

static const rondo__ops_operand index_in_EyeLike[] = {{"input", INDEX_EYE_TYPES, 0, 0, 0, 0}};
static const rondo__ops_operand index_out_EyeLike[] = {{"output", INDEX_EYE_TYPES, 0, 0, 0, 0}};
#undef INDEX_EYE_TYPES
static const rondo__ops_attribute index_with_EyeLike[] = {{"dtype", RONDO_ATTRIBUTE_INT, 0, NULL},
                                                          {"k", RONDO_ATTRIBUTE_INT, 0, "0"}};
INDEX_PROTOTYPE(EyeLike, "Ones on diagonal k of a matrix of the input's shape", index_infer_eye, INDEX_WITH(EyeLike));

static rondo_status index_infer_range(rondo__ops_infer *infer) {
    static const char *const names[] = {"start", "limit", "delta"};
    double real[3] = {0};
    int64_t whole[3] = {0}, count = 0;
    for (uint32_t i = 0; i < 3; i++) RONDO__TRY(index_number(infer, i, names[i], &real[i], &whole[i]));
    if (real[2] == 0) return RONDO__OPS_FAIL(infer, INVALID_ARGUMENT, "input 'delta' is 0");
    if (index_is_float(infer->request->inputs[0].dtype)) {
        double numbers = ceil((real[1] - real[0]) / real[2]);
        if (!(numbers < 9e18)) return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "%g numbers are too many", numbers);
        count = numbers > 0 ? (int64_t)numbers : 0;
    } else if (whole[2] > 0 ? whole[0] < whole[1] : whole[0] > whole[1]) {
        bool up = whole[2] > 0;
        uint64_t span = up ? (uint64_t)whole[1] - (uint64_t)whole[0] : (uint64_t)whole[0] - (uint64_t)whole[1];
        uint64_t numbers = (span - 1u) / (up ? (uint64_t)whole[2] : 0u - (uint64_t)whole[2]) + 1u;
        if (numbers > INT64_MAX) return RONDO__OPS_FAIL(infer, OUT_OF_RANGE, "these are too many numbers");
        count = (int64_t)numbers;
    }
    rondo__ops_result(infer, 0, infer->request->inputs[0].dtype, 1, &count);
    return RONDO_OK;
}

#define INDEX_RANGE(name) \
    { name, RONDO__OPS_FLOATS | RONDO__OPS_INDEX | RONDO__OPS_BIT(I16), 'T', 0, 0, 0 }
static const rondo__ops_operand index_in_Range[] = {INDEX_RANGE("start"), INDEX_RANGE("limit"), INDEX_RANGE("delta")};
static const rondo__ops_operand index_out_Range[] = {INDEX_RANGE("output")};
static const rondo__ops_attribute index_with_Range[] = {{"stash_type", RONDO_ATTRIBUTE_INT, 0, "1"}};
INDEX_PROTOTYPE(Range, "Numbers from start to before limit by steps of delta", index_infer_range,
                INDEX_WITH(Range).shape_inputs = 1u << 0 | 1u << 1 | 1u << 2, );
