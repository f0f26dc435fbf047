/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning one kernel: an operator's planner looks at a request and fills in everything that find, pack and prepare
 * need. All three run the same planner, so they cannot disagree.
 */
#ifndef RONDO_BACKENDS_CPU_PLANNER_H
#define RONDO_BACKENDS_CPU_PLANNER_H

#include <rondo/plugin.h>

#include "set.h"

typedef struct rondo__cpu_plan {
    const rondo_host_api *host;
    const rondo__cpu_set *set;
    const rondo_kernel_request *request;
    bool looking; /* find: whether the values of constants will do is asked here, and holds from then on */
    rondo_kernel_facts facts;
    rondo_kernel kernel; /* its context, when there is one, is from rondo__cpu_context */
    /* Fills the packed block; null when facts.packed_bytes is 0. */
    void (*pack)(const struct rondo__cpu_plan *plan, void *out);
} rondo__cpu_plan;

typedef rondo_status (*rondo__cpu_planner)(rondo__cpu_plan *plan);

typedef struct rondo__cpu_operator {
    const char *name;
    rondo__cpu_planner planner;
    uint32_t detail; /* the planner's own: which unary, which binary */
} rondo__cpu_operator;

/* The operators of each family; catalogue.c looks through all of them. */
#define RONDO__CPU_FAMILIES(X) \
    X(contract) X(elementwise) X(gemm) X(conv) X(lstm) X(reduce) X(pool) X(move) X(gather) X(cast)
#define RONDO_X(family)                                                 \
    extern const rondo__cpu_operator rondo__cpu_##family##_operators[]; \
    extern const uint32_t rondo__cpu_##family##_operator_count;
RONDO__CPU_FAMILIES(RONDO_X)
#undef RONDO_X
/* Null for an unknown name. */
const rondo__cpu_operator *rondo__cpu_operator_find(const char *name);

/* UNSUPPORTED: "<operator> (<node>): <reason>". */
rondo_status rondo__cpu_refuse(const rondo__cpu_plan *plan, const char *format, ...) RONDO_PRINTF(2, 3);

/* Gives the plan's kernel a zeroed context of `bytes`, aligned to 64. */
RONDO_MUST_USE rondo_status rondo__cpu_context(rondo__cpu_plan *plan, uint64_t bytes, void *out_context);
void rondo__cpu_context_free(const rondo_host_api *host, const void *context);

/* Accepts `least` to `most` inputs and `outputs` outputs at most, all that are not optional present; every dim not
 * negative, every size within 2^62 bytes. Refuses otherwise. */
RONDO_MUST_USE rondo_status rondo__cpu_shape_check(const rondo__cpu_plan *plan, uint32_t least, uint32_t most,
                                                   uint32_t outputs);

/* Null when absent. */
const rondo_operand *rondo__cpu_input(const rondo__cpu_plan *plan, uint32_t index);
const rondo_operand *rondo__cpu_output(const rondo__cpu_plan *plan, uint32_t index);
bool rondo__cpu_is(const rondo_operand *operand, rondo_dtype dtype);
/* Of operands that passed rondo__cpu_shape_check. */
uint64_t rondo__cpu_elements(const rondo_operand *operand);
uint64_t rondo__cpu_bytes(const rondo_operand *operand);
/* 0 for types without a whole number of bytes. */
uint64_t rondo__cpu_element_size(rondo_dtype dtype);
bool rondo__cpu_same_shape(const rondo_operand *a, const rondo_operand *b);
/* Product of dims[from .. to). */
uint64_t rondo__cpu_span(const rondo_operand *operand, int32_t from, int32_t to);

/* Where a word stands. Scratch and packed: after facts.scratch_bytes and facts.packed_bytes are set. */
static inline uint32_t rondo__cpu_word_out(const rondo__cpu_plan *plan, uint32_t output) {
    return plan->request->input_count + output;
}
static inline uint32_t rondo__cpu_word_scratch(const rondo__cpu_plan *plan) {
    return plan->request->input_count + plan->request->output_count;
}
static inline uint32_t rondo__cpu_word_packed(const rondo__cpu_plan *plan) {
    return rondo__cpu_word_scratch(plan) + (plan->facts.scratch_bytes > 0 ? 1u : 0u);
}
/* An argument word as memory. */
#define RONDO__CPU_AT(type, word) ((type *)(uintptr_t)(word))

const rondo_attribute *rondo__cpu_attribute(const rondo__cpu_plan *plan, const char *name);
int64_t rondo__cpu_attribute_int(const rondo__cpu_plan *plan, const char *name, int64_t otherwise);
float rondo__cpu_attribute_float(const rondo__cpu_plan *plan, const char *name, float otherwise);
/* As many numbers as that, or `otherwise` for each where the attribute is absent. Refuses another kind or count. */
RONDO_MUST_USE rondo_status rondo__cpu_attribute_ints(const rondo__cpu_plan *plan, const char *name, uint32_t count,
                                                      int64_t otherwise, int64_t *out);
/* True when absent or equal. */
bool rondo__cpu_attribute_is(const rondo__cpu_plan *plan, const char *name, const char *text);
/* The constant integers (int32 or int64) of an operand: false when it is not constant, of another type, or has more
 * than `room`. */
bool rondo__cpu_constant_ints(const rondo_operand *operand, int64_t *out, uint32_t room, uint32_t *out_count);
/* A constant of one element of float32, float64, int32 or int64. */
bool rondo__cpu_constant_number(const rondo_operand *operand, double *out);
/* axis in [-rank, rank) brought into [0, rank); false outside. */
bool rondo__cpu_axis(int64_t axis, int32_t rank, int32_t *out);

/* A fused activation: applied in a loop that knows it, and as a strip over the finished output by others. */
typedef struct rondo__cpu_activation {
    rondo__cpu_unary_strip strip; /* null: none */
    float parameter[2];
    uint32_t relu;            /* 1: the strip is Relu */
    uint32_t finish, in_tile; /* in_tile: what RONDO__CPU_FINISH does with the parameters is all of it */
} rondo__cpu_activation;
RONDO_MUST_USE rondo_status rondo__cpu_activation_read(const rondo__cpu_plan *plan,
                                                       rondo__cpu_activation *out_activation);

/* The block widths of a packed product (vectors), for that many outputs and rows. */
void rondo__cpu_gemm_blocks(const rondo__cpu_set *set, rondo__cpu_gemm *gemm);
/* Floats of its packed weights. */
uint64_t rondo__cpu_gemm_packed(const rondo__cpu_set *set, const rondo__cpu_gemm *gemm);
/* Packs weight (m, tap, k) = w[m * w_output + tap * w_tap + k * w_k]. */
void rondo__cpu_gemm_pack(const rondo__cpu_set *set, const rondo__cpu_gemm *gemm, const float *w, uint64_t w_output,
                          uint64_t w_tap, uint64_t w_k, float *out);

#endif
