/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the reference catalogue: what a prepared kernel remembers, and what an operator must bring.
 *
 * An operator is a row {name, operand counts, attributes, build, run}. `build` looks at a request whose operands were
 * already found well-formed, refuses what it cannot do, and keeps what `run` will need. `run` reads nothing but the
 * kernel and the words of the call. There is one way to build: `find` builds, copies the facts and frees again, so what
 * find accepts prepare can make.
 */
#ifndef RONDO_KERNELS_REF_REF_H
#define RONDO_KERNELS_REF_REF_H

#include <rondo/plugin.h>
#include <string.h>

/* Why a kernel stops a run: the nonzero values of a kernel function. */
enum {
    RONDO__REF_OK = 0,
    RONDO__REF_NO_ADDRESS = 1,     /* an operand with elements has the address 0 */
    RONDO__REF_ZERO_DIVISOR = 2,   /* integer division by zero: Div, Pow of 0 by a negative, ReduceMean of nothing */
    RONDO__REF_INDEX_RANGE = 3,    /* Gather: an index outside the axis */
    RONDO__REF_SHAPE_MISMATCH = 4, /* the value of a shape-like operand gives another shape than the plan has */
    RONDO__REF_BAD_VALUE = 5       /* a shape-like operand's value has no meaning: axis out of range, step 0, ... */
};

typedef struct rondo__ref_tensor {
    rondo_dtype dtype; /* UNDEFINED: absent or unwanted */
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    int64_t count;
    size_t size; /* bytes an element */
} rondo__ref_tensor;

/* Up to three inputs under the output's shape. A stride of 0 repeats an element. */
typedef struct rondo__ref_walk {
    int32_t rank;
    int64_t dims[RONDO_RANK_MAX];
    int64_t strides[3][RONDO_RANK_MAX]; /* in elements */
} rondo__ref_walk;

/* What the compiler folded into a node: applied to the result after it was rounded to the output's type, so that a
 * fused node gives the bits of the two nodes it replaces. */
typedef struct rondo__ref_activation {
    enum {
        RONDO__REF_ACT_NONE,
        RONDO__REF_ACT_RELU,
        RONDO__REF_ACT_SIGMOID,
        RONDO__REF_ACT_TANH,
        RONDO__REF_ACT_LEAKY_RELU,
        RONDO__REF_ACT_CLIP
    } kind;
    float alpha, beta;
} rondo__ref_activation;

typedef struct rondo__ref_conv {
    int32_t spatial;
    int64_t group;
    int64_t strides[RONDO_RANK_MAX], dilations[RONDO_RANK_MAX], begins[RONDO_RANK_MAX];
} rondo__ref_conv;

typedef struct rondo__ref_pool {
    int64_t kernel[RONDO_RANK_MAX], strides[RONDO_RANK_MAX], dilations[RONDO_RANK_MAX];
    int64_t begins[RONDO_RANK_MAX], ends[RONDO_RANK_MAX]; /* pads */
    int64_t p;                                            /* of the norm */
    bool ceil, include, columns, indices;
} rondo__ref_pool;

typedef struct rondo__ref_gate {
    int32_t function; /* index into lstm.c's table */
    double alpha, beta;
} rondo__ref_gate;

typedef struct rondo__ref_lstm {
    int64_t steps, batch, features, hidden, directions;
    int64_t layout; /* 0: [steps, batch, ...]; 1: batch first */
    bool reverse;   /* the only direction is the reverse one */
    bool input_forget, has_clip;
    double clip;
    rondo__ref_gate gates[2][3]; /* f, g, h of each direction */
} rondo__ref_lstm;

typedef struct rondo__ref_product { /* MatMul and Gemm in one form: matrices with strides */
    int64_t rows, columns, depth;
    int64_t a_row, a_depth, b_depth, b_column;
    int64_t c_row, c_column; /* the bias */
    double alpha, beta;
    rondo__ref_walk batch; /* strides of a and b over the leading dims, in elements */
} rondo__ref_product;

typedef struct rondo__ref_kernel {
    const struct rondo__ref_operator *op;
    size_t bytes; /* of the whole block */
    uint32_t input_count, output_count;
    uint32_t in_place;
    uint32_t needs_no_data; /* bit i: input i's memory is not read */
    uint64_t scratch_bytes;
    rondo__ref_activation activation;
    union {
        rondo__ref_walk walk;
        rondo__ref_conv conv;
        rondo__ref_pool pool;
        rondo__ref_lstm lstm;
        rondo__ref_product product;
        float alpha;
        int64_t axis;
        int64_t perm[RONDO_RANK_MAX];
        struct {
            int64_t begin, end;
        } range;
        struct {
            int64_t keep, noop;
        } reduce;
        struct {
            int32_t mode;
        } pad;
        struct {
            int64_t axis, size; /* what each operator of norm.c says */
            float epsilon, beta, bias;
            int32_t mode;
            bool ignores;
        } norm;
        struct {
            int64_t axis, other; /* what each operator of scan.c and index.c says */
            int32_t mode;
            bool flag, flag2;
        } index;
        struct {
            rondo__ref_walk walk;
            double values[2];
            int64_t flag;
        } math;
        struct {
            bool saturate;
            int32_t round;
        } cast;
        unsigned char value[8];
    } as;
    rondo__ref_tensor tensors[]; /* inputs, then outputs */
} rondo__ref_kernel;

typedef struct rondo__ref_builder {
    const rondo_host_api *host;
    const rondo_kernel_request *request;
    rondo__ref_kernel *kernel;
} rondo__ref_builder;

#define RONDO__REF_MANY 64u

typedef struct rondo__ref_operator {
    const char *name;
    uint8_t inputs_min, inputs_max, outputs_min, outputs_max;
    const char *attributes; /* the names it understands, one space between; another one is refused */
    rondo_status (*build)(rondo__ref_builder *b);
    int32_t (*run)(const rondo__ref_kernel *kernel, const uint64_t *words);
    const void *rows; /* of an elementwise operator: a function for each dtype */
} rondo__ref_operator;

/* The families. Each is an array that ends with a null name. */
extern const rondo__ref_operator rondo__ref_unary_operators[];
extern const rondo__ref_operator rondo__ref_binary_operators[];
extern const rondo__ref_operator rondo__ref_math_operators[];
extern const rondo__ref_operator rondo__ref_scan_operators[];
extern const rondo__ref_operator rondo__ref_index_operators[];
extern const rondo__ref_operator rondo__ref_norm_operators[];
extern const rondo__ref_operator rondo__ref_pool_operators[];
extern const rondo__ref_operator rondo__ref_select_operators[];
extern const rondo__ref_operator rondo__ref_cast_operators[];
extern const rondo__ref_operator rondo__ref_shape_operators[];
extern const rondo__ref_operator rondo__ref_move_operators[];
extern const rondo__ref_operator rondo__ref_pad_operators[];
extern const rondo__ref_operator rondo__ref_reduce_operators[];
extern const rondo__ref_operator rondo__ref_product_operators[];
extern const rondo__ref_operator rondo__ref_conv_operators[];
extern const rondo__ref_operator rondo__ref_lstm_operators[];
extern const rondo__ref_operator rondo__ref_sized_operators[];

/* The six contract kernels: null past the end. */
const char *rondo__ref_contract_at(uint32_t index);
rondo_kernel_function rondo__ref_contract_find(const char *name);
/* One block of Philox4x32-10. */
void rondo__ref_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* ------------------------------------------------------------------------------------------------ building */

/* A refusal that names operator and node. */
#define RONDO__REF_REFUSE(b, code, text, ...)                                                              \
    RONDO_PLUGIN_FAIL((b)->host, code, KERNEL, "reference kernel of %s (node '%s'): " text,                \
                      (b)->request->operator_name, (b)->request->node_name ? (b)->request->node_name : "", \
                      ##__VA_ARGS__)

static inline rondo__ref_tensor *rondo__ref_input(rondo__ref_kernel *k, uint32_t i) { return &k->tensors[i]; }

static inline rondo__ref_tensor *rondo__ref_output(rondo__ref_kernel *k, uint32_t i) {
    return &k->tensors[k->input_count + i];
}

/* Null when absent; also past the last one. */
const rondo__ref_tensor *rondo__ref_optional_input(const rondo__ref_kernel *k, uint32_t i);

const rondo_attribute *rondo__ref_attribute(const rondo_kernel_request *request, const char *name);
/* Each leaves `*out` alone when the attribute is absent and refuses another kind. */
RONDO_MUST_USE rondo_status rondo__ref_attribute_int(rondo__ref_builder *b, const char *name, int64_t *out);
RONDO_MUST_USE rondo_status rondo__ref_attribute_float(rondo__ref_builder *b, const char *name, float *out);
RONDO_MUST_USE rondo_status rondo__ref_attribute_string(rondo__ref_builder *b, const char *name, const char **out);
/* Exactly `count` integers, each between lowest and highest. */
RONDO_MUST_USE rondo_status rondo__ref_attribute_ints(rondo__ref_builder *b, const char *name, uint32_t count,
                                                      int64_t lowest, int64_t highest, int64_t *out);
/* An axis of that rank, made nonnegative. `rank` itself is allowed when `end` is. */
RONDO_MUST_USE rondo_status rondo__ref_attribute_axis(rondo__ref_builder *b, int64_t otherwise, int32_t rank, bool end,
                                                      int64_t *out);
/* The compiler's "rondo.activation" with its parameters. */
RONDO_MUST_USE rondo_status rondo__ref_attribute_activation(rondo__ref_builder *b);

/* Refuses another dtype than `types` has a bit for. */
RONDO_MUST_USE rondo_status rondo__ref_need_types(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                                  uint32_t types);
RONDO_MUST_USE rondo_status rondo__ref_need_same_type(rondo__ref_builder *b, const char *what,
                                                      const rondo__ref_tensor *t, rondo_dtype dtype);
RONDO_MUST_USE rondo_status rondo__ref_need_dims(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                                 int32_t rank, const int64_t *dims);
/* Like need_dims of the shape of another tensor. */
RONDO_MUST_USE rondo_status rondo__ref_need_shape_of(rondo__ref_builder *b, const char *what,
                                                     const rondo__ref_tensor *t, const rondo__ref_tensor *other);
/* The shape that inputs [first, first + count) have together by numpy's rule. */
RONDO_MUST_USE rondo_status rondo__ref_broadcast(rondo__ref_builder *b, uint32_t first, uint32_t count,
                                                 int32_t *out_rank, int64_t *out_dims);
/* Fills the strides with which a walk over `rank` dims of a broadcast shape reads t. */
void rondo__ref_broadcast_strides(const rondo__ref_tensor *t, int32_t rank, int64_t *strides);
/* Inputs [first, first + count) broadcast to output 0, which must have exactly the shape that they give. */
RONDO_MUST_USE rondo_status rondo__ref_build_walk(rondo__ref_builder *b, uint32_t first, uint32_t count,
                                                  rondo__ref_walk *walk);
/* Input i may share output 0's memory: same type, every element used at its own place. */
void rondo__ref_allow_in_place(rondo__ref_kernel *k, uint32_t i);

#define RONDO__REF_BIT(dtype) (1u << RONDO_DTYPE_##dtype)
#define RONDO__REF_FLOAT_TYPES (RONDO__REF_BIT(F32) | RONDO__REF_BIT(F64))
#define RONDO__REF_INDEX_TYPES (RONDO__REF_BIT(I32) | RONDO__REF_BIT(I64))
#define RONDO__REF_INT_TYPES                                                                                     \
    (RONDO__REF_BIT(I8) | RONDO__REF_BIT(I16) | RONDO__REF_BIT(I32) | RONDO__REF_BIT(I64) | RONDO__REF_BIT(U8) | \
     RONDO__REF_BIT(U16) | RONDO__REF_BIT(U32) | RONDO__REF_BIT(U64))
#define RONDO__REF_NUMBER_TYPES (RONDO__REF_FLOAT_TYPES | RONDO__REF_INT_TYPES)
#define RONDO__REF_ALL_TYPES (RONDO__REF_NUMBER_TYPES | RONDO__REF_BIT(BOOL))
#define RONDO__REF_HALF_TYPES (RONDO__REF_BIT(F16) | RONDO__REF_BIT(BF16))
#define RONDO__REF_REAL_TYPES (RONDO__REF_FLOAT_TYPES | RONDO__REF_HALF_TYPES)
#define RONDO__REF_FLOAT8_TYPES \
    (RONDO__REF_BIT(F8E4M3FN) | RONDO__REF_BIT(F8E4M3FNUZ) | RONDO__REF_BIT(F8E5M2) | RONDO__REF_BIT(F8E5M2FNUZ))
#define RONDO__REF_NARROW_TYPES                                                                          \
    (RONDO__REF_HALF_TYPES | RONDO__REF_FLOAT8_TYPES | RONDO__REF_BIT(F8E8M0) | RONDO__REF_BIT(F4E2M1) | \
     RONDO__REF_BIT(U4) | RONDO__REF_BIT(I4) | RONDO__REF_BIT(U2) | RONDO__REF_BIT(I2))
#define RONDO__REF_PRODUCT_TYPES \
    (RONDO__REF_FLOAT_TYPES | RONDO__REF_BIT(I32) | RONDO__REF_BIT(I64) | RONDO__REF_BIT(U32) | RONDO__REF_BIT(U64))

/* X(dtype, C type, short name) */
#define RONDO__REF_EACH_FLOAT(X, ...) X(F32, float, f32, __VA_ARGS__) X(F64, double, f64, __VA_ARGS__)
#define RONDO__REF_EACH_SIGNED(X, ...) \
    X(I8, int8_t, i8, __VA_ARGS__)     \
    X(I16, int16_t, i16, __VA_ARGS__) X(I32, int32_t, i32, __VA_ARGS__) X(I64, int64_t, i64, __VA_ARGS__)
#define RONDO__REF_EACH_UNSIGNED(X, ...) \
    X(U8, uint8_t, u8, __VA_ARGS__)      \
    X(U16, uint16_t, u16, __VA_ARGS__) X(U32, uint32_t, u32, __VA_ARGS__) X(U64, uint64_t, u64, __VA_ARGS__)
#define RONDO__REF_EACH_NUMBER(X, ...)    \
    RONDO__REF_EACH_FLOAT(X, __VA_ARGS__) \
    RONDO__REF_EACH_SIGNED(X, __VA_ARGS__) RONDO__REF_EACH_UNSIGNED(X, __VA_ARGS__)

/* ------------------------------------------------------------------------------------------------- running */

static inline void *rondo__ref_address(uint64_t word) { return (void *)(uintptr_t)word; }

static inline uint64_t rondo__ref_output_word(const rondo__ref_kernel *k, const uint64_t *words, uint32_t i) {
    return words[k->input_count + i];
}

/* One element as a double, and back with one rounding. Float types only. */
static inline double rondo__ref_get(rondo_dtype dtype, const void *data, int64_t i) {
    return dtype == RONDO_DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static inline void rondo__ref_put(rondo_dtype dtype, void *data, int64_t i, double value) {
    if (dtype == RONDO_DTYPE_F32) {
        ((float *)data)[i] = (float)value;
    } else {
        ((double *)data)[i] = value;
    }
}

/* One element of an integer or bool type, extended to 64 bits by its sign. */
static inline int64_t rondo__ref_get_int(rondo_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
    case RONDO_DTYPE_I8: return ((const int8_t *)data)[i];
    case RONDO_DTYPE_I16: return ((const int16_t *)data)[i];
    case RONDO_DTYPE_I32: return ((const int32_t *)data)[i];
    case RONDO_DTYPE_U16: return ((const uint16_t *)data)[i];
    case RONDO_DTYPE_U32: return ((const uint32_t *)data)[i];
    case RONDO_DTYPE_U8: return ((const uint8_t *)data)[i];
    case RONDO_DTYPE_BOOL: return ((const uint8_t *)data)[i] != 0;
    default: return ((const int64_t *)data)[i]; /* i64, and the bits of u64 */
    }
}

/* The low bits of value. */
static inline void rondo__ref_put_int(rondo_dtype dtype, void *data, int64_t i, uint64_t value) {
    switch (dtype) {
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_U8: ((uint8_t *)data)[i] = (uint8_t)value; break;
    case RONDO_DTYPE_BOOL: ((uint8_t *)data)[i] = value != 0; break;
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_U16: ((uint16_t *)data)[i] = (uint16_t)value; break;
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_U32: ((uint32_t *)data)[i] = (uint32_t)value; break;
    default: ((uint64_t *)data)[i] = value; break;
    }
}

static inline bool rondo__ref_is_float(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64;
}

/* A float as an integer type, by cast.c's rule. */
uint64_t rondo__ref_to_integer(double x, rondo_dtype to);
/* Of Cast and CastLike, the only ones that take packed elements. */
int32_t rondo__ref_run_cast(const rondo__ref_kernel *k, const uint64_t *words);
/* narrow.c: elements of any type. A float type, also of 16, 8 and 4 bits; integers of 4 and 2 bits lie packed. */
typedef enum rondo__ref_round { RONDO__REF_ROUND_UP, RONDO__REF_ROUND_DOWN, RONDO__REF_ROUND_NEAREST } rondo__ref_round;
bool rondo__ref_is_real(rondo_dtype dtype);
bool rondo__ref_is_packed(rondo_dtype dtype); /* less than a byte an element */
double rondo__ref_get_real(rondo_dtype dtype, const void *data, int64_t i);
void rondo__ref_put_real(rondo_dtype dtype, void *data, int64_t i, double value);
/* `saturate` and `round` as Cast has them for the 8-bit floats. */
void rondo__ref_put_real_as(rondo_dtype dtype, void *data, int64_t i, double value, bool saturate,
                            rondo__ref_round round);
int64_t rondo__ref_get_whole(rondo_dtype dtype, const void *data, int64_t i);
void rondo__ref_put_whole(rondo_dtype dtype, void *data, int64_t i, uint64_t value);

/* Sum of n products. Floats: products and sum in double, in the order of the index; integers wrap. */
double rondo__ref_dot(rondo_dtype dtype, int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step);
uint64_t rondo__ref_dot_int(rondo_dtype dtype, int64_t n, const void *a, int64_t a_step, const void *b, int64_t b_step);

/* The next index of a row-major walk over dims; false after the last. `rank` may be 0. */
static inline bool rondo__ref_next(int32_t rank, const int64_t *dims, int64_t *index) {
    for (int32_t d = rank - 1; d >= 0; d--) {
        if (++index[d] < dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

static inline int64_t rondo__ref_offset(int32_t rank, const int64_t *strides, const int64_t *index) {
    int64_t offset = 0;
    for (int32_t d = 0; d < rank; d++) offset += strides[d] * index[d];
    return offset;
}

/* Strides of a compact row-major tensor, in elements. */
void rondo__ref_compact(int32_t rank, const int64_t *dims, int64_t *strides);
/* out[index . out_strides] = in[index . in_strides] for every index below dims; offsets and strides in elements. */
void rondo__ref_copy(size_t size, int32_t rank, const int64_t *dims, void *out, const int64_t *out_strides,
                     const void *in, const int64_t *in_strides);
/* The same bytes under another shape. */
int32_t rondo__ref_run_view(const rondo__ref_kernel *k, const uint64_t *words);

/* Activations, as the operators of the same names compute them: in double, rounded by whoever stores. */
double rondo__ref_sigmoid(double x);
void rondo__ref_activate(const rondo__ref_activation *activation, rondo_dtype dtype, void *data, int64_t count);

/* Reads the axes operand into a mask of rank bits; an axis twice or out of range is a BAD_VALUE. */
int32_t rondo__ref_read_axes(const rondo__ref_tensor *t, const void *data, int32_t rank, bool repeats,
                             uint32_t *out_mask);
/* SHAPE_MISMATCH unless t has exactly these dims. */
int32_t rondo__ref_check_dims(const rondo__ref_tensor *t, int32_t rank, const int64_t *dims);

#endif
