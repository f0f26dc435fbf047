/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel set: the inner loops compiled for one instruction set, and the contexts that plan and loops share.
 *
 * Planning (plan_*.c) is compiled once and knows a set only by its numbers (lanes, tile sizes) and its functions.
 * The loops (kernels/) are compiled from the same sources once an instruction set. Everything that can be decided when
 * a kernel is prepared stands in its context; the loops read it and do not divide or search.
 */
#ifndef RONDO_BACKENDS_CPU_SET_H
#define RONDO_BACKENDS_CPU_SET_H

#include <rondo/plugin.h>

/* ------------------------------------------------------------------------------------------------ elementwise */

/* Strips are the inner loops over contiguous floats. Input and output may be the same memory. */
typedef void (*rondo__cpu_unary_strip)(const float *x, float *y, size_t count, const float *parameter);
typedef void (*rondo__cpu_binary_strip)(const float *a, const float *b, float *y, size_t count);

#define RONDO__CPU_UNARIES(X)     \
    X(RELU, relu)                 \
    X(LEAKY, leaky)               \
    X(SIGMOID, sigmoid)           \
    X(TANH, tanh)                 \
    X(EXP, exp)                   \
    X(LOG, log)                   \
    X(SQRT, sqrt)                 \
    X(NEG, neg)                   \
    X(ABS, abs)                   \
    X(RECIPROCAL, reciprocal)     \
    X(CLIP, clip)                 \
    X(SQUARE, square)             \
    X(ROOT, root)                 \
    X(HARD_SIGMOID, hard_sigmoid) \
    X(HARD_SWISH, hard_swish)     \
    X(GELU_TANH, gelu_tanh)
#define RONDO__CPU_BINARIES(X) \
    X(ADD, add)                \
    X(SUB, sub)                \
    X(MUL, mul)                \
    X(DIV, div)                \
    X(MAX, max)                \
    X(MIN, min)

enum {
#define RONDO_X(id, name) RONDO__CPU_##id,
    RONDO__CPU_UNARIES(RONDO_X) RONDO__CPU_UNARY_COUNT
#undef RONDO_X
};
enum {
#define RONDO_X(id, name) RONDO__CPU_##id,
    RONDO__CPU_BINARIES(RONDO_X) RONDO__CPU_BINARY_COUNT
#undef RONDO_X
};
/* Which operand of a binary strip is one number. */
enum { RONDO__CPU_BOTH = 0, RONDO__CPU_SCALAR_B = 1, RONDO__CPU_SCALAR_A = 2, RONDO__CPU_KINDS = 3 };

/* ------------------------------------------------------------------------------------------ matrix product */

/* y[r][m] = bias[m] + sum over tap, k of x[r][tap][k] * w[tap][k][m], outputs m in the lanes.
 * Packed weights lie in blocks of `width` vectors, each block [tap][k][width * lanes], wide blocks first, outputs beyond
 * the last one zero. Strided weights are read where they are: w[k * w_depth + m]. */
#define RONDO__CPU_WIDTHS 4u /* different block widths in one product, at most */
#define RONDO__CPU_ROWS 4u   /* rows of a tile, at most */

typedef struct rondo__cpu_gemm {
    uint64_t rows, outputs, depth, taps;
    uint64_t x_row, x_tap, x_depth; /* strides in floats */
    uint64_t y_row, y_output;       /* y_output is 1, or the results of a tile are transposed on the way out */
    uint64_t w_depth;               /* strided weights: the row's length; 0: packed */
    uint32_t width[RONDO__CPU_WIDTHS], number[RONDO__CPU_WIDTHS]; /* block widths in vectors, and how many of each */
    uint32_t relu;                                                /* applied to the result */
    uint32_t reserved;
} rondo__cpu_gemm;

/* bias may be null. */
typedef void (*rondo__cpu_gemm_loop)(const rondo__cpu_gemm *gemm, const float *x, const float *w, const float *bias,
                                     float *y);

/* -------------------------------------------------------------------------------------------- convolution */

/* Output space in the lanes, weights broadcast. The input is first copied into scratch, padded, each row cut into one
 * part a phase of the column stride, so that every tap of every stride and dilation is a contiguous read. offset[k]
 * says where the k-th (channel, tap) of an output begins. */
typedef struct rondo__cpu_conv {
    uint64_t batch, groups, channels, outputs; /* channels and outputs of one group */
    uint64_t height, width;                    /* input */
    uint64_t out_height, out_width;
    uint64_t pad_top, pad_left;
    uint64_t step_down, step_right;                    /* strides */
    uint64_t padded_height, phase_width, pitch, plane; /* scratch: rows, floats a phase, a row, a channel */
    uint64_t depth;                                    /* channels * taps */
    uint32_t tile;                                     /* outputs of a block of packed weights: [block][depth][tile] */
    uint32_t relu;
    const int32_t *offset;
} rondo__cpu_conv;

typedef void (*rondo__cpu_conv_loop)(const rondo__cpu_conv *conv, const float *x, const float *w, const float *bias,
                                     float *y, float *scratch);
/* [channels][length] to [length + pads][channels] with zero rows around: the few-column form. */
typedef void (*rondo__cpu_turn_loop)(const float *x, float *y, size_t channels, size_t length, size_t before,
                                     size_t after);

/* The same without a copy: the input is read where it lies, output space [rows * width] flattened in the lanes, rows of
 * the output as long as those of the input. Tables say for each tile of columns and each tap which lanes meet the input.
 * Packed weights: [group][block of `tile` outputs][tap][channel][tile]. */
enum { RONDO__CPU_FLAT_WHOLE = 0, RONDO__CPU_FLAT_PARTLY = 1, RONDO__CPU_FLAT_NOWHERE = 2 };

/* What is done to a sum while it is in a register. All let NaN pass. */
enum {
    RONDO__CPU_FINISH_CLIP = 0,         /* within p and q */
    RONDO__CPU_FINISH_LEAKY = 1,        /* p times what is negative, and at least q */
    RONDO__CPU_FINISH_HARD_SIGMOID = 2, /* p x + q within 0 and 1 */
    RONDO__CPU_FINISH_HARD_SWISH = 3    /* x times that */
};

typedef struct rondo__cpu_flat {
    uint64_t batch, groups, channels, outputs; /* channels and outputs of one group */
    uint64_t taps, x_plane, columns;           /* columns: an output's plane */
    uint64_t tiles, together;                  /* tiles of columns; how many of them one block of weights passes over */
    uint32_t tile, finish;
    float parameter[2];
    rondo__cpu_unary_strip strip; /* or after the sums, over what was just written; null: none */
    const int32_t *shift;         /* [taps]: from an output's place to what it reads */
    const uint8_t *need;          /* [tiles][taps] */
    const uint16_t *mask;         /* [tiles][taps][vectors], a bit a lane */
} rondo__cpu_flat;

typedef void (*rondo__cpu_flat_loop)(const rondo__cpu_flat *flat, const float *x, const float *w, const float *bias,
                                     float *y);

/* ------------------------------------------------------------------------------------------------------ lstm */

/* One step for one row: gates from one product over x and h, packed so that a block of eight vectors holds the four
 * gates (i, o, f, c) of 2 * lanes units; the cell's update follows in registers. Packed: biases [block][8 * lanes],
 * then weights [block][input + hidden][8 * lanes]. */
typedef struct rondo__cpu_lstm_size {
    uint64_t input, hidden;
} rondo__cpu_lstm_size;

typedef void (*rondo__cpu_lstm_step)(const rondo__cpu_lstm_size *size, const float *packed, const float *x,
                                     const float *h, const float *c, float *out_h, float *out_c);

/* ------------------------------------------------------------------------------------------------------- set */

/* What was picked and why, for people who read a plan. */
#define RONDO__CPU_VARIANTS(X)                                                         \
    X(UNARY, "elementwise, one strip")                                                 \
    X(BINARY, "elementwise, one strip")                                                \
    X(BINARY_ROWS, "elementwise, a strip a row")                                       \
    X(BINARY_STEPS, "elementwise, strips under broadcast")                             \
    X(GEMV, "gemv, outputs in lanes, weights packed")                                  \
    X(GEMM_FEW, "gemm of 2 to 4 rows, outputs in lanes, weights packed")               \
    X(GEMM, "gemm in tiles, weights packed")                                           \
    X(GEMM_STRIDED, "gemm of few rows, weights read where they are")                   \
    X(GEMM_REPACK, "gemm in tiles, weights packed at every run")                       \
    X(DOT, "dot products, depth in lanes")                                             \
    X(CONV_FEW, "convolution with few columns, outputs in lanes")                      \
    X(CONV_FEW_TURNED, "convolution with few columns, outputs in lanes, input turned") \
    X(CONV, "convolution, space in lanes, over a padded copy")                         \
    X(CONV_FLAT, "direct convolution, flattened space in lanes")                       \
    X(CONV_FLAT_GROUPS, "direct convolution, flattened space in lanes, large weights") \
    X(LSTM, "lstm, one product over input and state, cell in registers")               \
    X(SOFTMAX, "softmax, rows in lanes")                                               \
    X(POOL, "pool, rows first, then neighbours")                                       \
    X(REDUCE, "reduction along lanes")                                                 \
    X(REDUCE_ROWS, "reduction of rows")

enum {
#define RONDO_X(id, text) RONDO__CPU_VARIANT_##id,
    RONDO__CPU_VARIANTS(RONDO_X) RONDO__CPU_VARIANT_COUNT
#undef RONDO_X
};

typedef struct rondo__cpu_set {
    const char *name;       /* "v3" */
    const char *kernel_set; /* "cpu.v3.1": tag of the packed forms */
    uint32_t lanes;
    uint32_t wide_one, wide_two, wide_more;                    /* vectors of the widest block for 1, 2 and more rows */
    uint32_t conv_tile;                                        /* outputs of a convolution's tile */
    uint32_t conv_vectors;                                     /* vectors of a convolution's tile */
    const rondo__cpu_unary_strip *unary;                       /* [RONDO__CPU_UNARY_COUNT] */
    const rondo__cpu_binary_strip (*binary)[RONDO__CPU_KINDS]; /* [RONDO__CPU_BINARY_COUNT] */
    rondo__cpu_gemm_loop gemm;
    rondo__cpu_gemm_loop dot; /* weights as [outputs][taps * depth] rows, x_depth 1 */
    rondo__cpu_conv_loop conv;
    rondo__cpu_flat_loop flat;
    rondo__cpu_turn_loop turn;
    rondo__cpu_lstm_step lstm;
    float (*sum)(const float *x, size_t count);
    float (*maximum)(const float *x, size_t count);                /* NaN when there is one; count > 0 */
    void (*maximum_pairs)(const float *x, float *y, size_t count); /* y[i]: of x[2i] and x[2i + 1] */
    void (*softmax)(const float *x, float *y, size_t count);
    const char *variant[RONDO__CPU_VARIANT_COUNT];
} rondo__cpu_set;

/* The sets of this build, narrowest first; null past the end. */
const rondo__cpu_set *rondo__cpu_set_at(uint32_t index);
/* Whether this processor runs it. */
bool rondo__cpu_set_runs(const rondo__cpu_set *set);
/* The named set, or the widest that runs when name is null or empty. INVALID_ARGUMENT names what is wrong. */
rondo_status rondo__cpu_set_choose(const rondo_host_api *host, const char *name, const rondo__cpu_set **out_set);

#endif
