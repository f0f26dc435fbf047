/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the contract check share: a drawn case, its draw, its run, and what came of it. */
#ifndef RONDO_SRC_OPS_OPERATORS_CHECK_H
#define RONDO_SRC_OPS_OPERATORS_CHECK_H

#include "ops/infer.h"
#include "ops/operators.h"

#define RONDO__CHECK_OPERANDS 36u /* the most an operator can list, and a few more of a dynamic one */
#define RONDO__CHECK_VALUES 8u    /* elements of a value that is known when a plan is made */
#define RONDO__CHECK_BYTES_MAX ((uint64_t)1 << 20)

typedef struct rondo__check_store {
    int64_t ints[RONDO__CHECK_VALUES];
    float floats[RONDO__CHECK_VALUES];
    rondo_string strings[RONDO__CHECK_VALUES];
    rondo_tensor_view tensor;
} rondo__check_store;

/* A node: drawn, changed and copied as a whole. Its pointers lead into itself once it is linked. */
typedef struct rondo__check_case {
    const rondo__ops_prototype *prototype;
    uint64_t data_seed;
    uint64_t known;    /* bit i: the value of input i is known */
    uint64_t unwanted; /* bit i: nobody wants output i */
    uint32_t input_count, output_count, attribute_count;
    rondo_operand inputs[RONDO__CHECK_OPERANDS], outputs[RONDO__CHECK_OPERANDS];
    int64_t dims[RONDO__CHECK_OPERANDS][RONDO_RANK_MAX], output_dims[RONDO__CHECK_OPERANDS][RONDO_RANK_MAX];
    int64_t values[RONDO__CHECK_OPERANDS][RONDO__CHECK_VALUES];
    uint64_t constants[RONDO__CHECK_OPERANDS][2u * RONDO__CHECK_VALUES]; /* the values in the input's own type */
    rondo_attribute attributes[RONDO_OPERATOR_ATTRIBUTES_MAX];
    rondo__check_store stores[RONDO_OPERATOR_ATTRIBUTES_MAX];
    rondo_kernel_request request;
} rondo__check_case;

/* Example inputs to draw around; none: from nothing. */
typedef struct rondo__check_examples {
    const rondo_tensor_view *views;
    uint32_t count;
} rondo__check_examples;

void rondo__check_draw(rondo__check_case *c, const rondo__ops_prototype *prototype,
                       const rondo__check_examples *examples, uint64_t seed);
/* After a change of a case. */
void rondo__check_link(rondo__check_case *c);
/* Element `index` of an array of `dtype` becomes quarters / 4, or what is left of it in that type. */
void rondo__check_put(rondo_dtype dtype, void *data, uint64_t index, int64_t quarters);

/* A kernel of a catalogue on the case's data, its outputs and its workspace between guards. */
typedef struct rondo__check_block {
    unsigned char *memory, *data;
    size_t whole, bytes;
} rondo__check_block;

typedef struct rondo__check_run {
    rondo__arena *arena;
    rondo__check_block inputs[RONDO__CHECK_OPERANDS], outputs[RONDO__CHECK_OPERANDS], scratch, packed;
    rondo__check_block sizes; /* that it told, of an operator whose sizes depend on data */
    rondo_kernel_facts facts;
    int32_t reason;      /* nonzero: the kernel failed */
    rondo_status words;  /* why, where it said so */
    const char *outside; /* what it wrote where nothing is to be written; null: nothing */
} rondo__check_run;

typedef struct rondo__check_how {
    unsigned char poison; /* what outputs and workspace hold before */
    uint8_t data;         /* 0: drawn, 1: zeros, 2: ones */
    int32_t in_place;     /* the input whose memory is output 0; -1: none */
} rondo__check_how;

/* Fails only where it cannot run at all. What find refuses is *out_refusal, to be released; then nothing ran. */
RONDO_MUST_USE rondo_status rondo__check_run_once(const rondo__check_case *c, const rondo_catalogue *catalogue,
                                                  rondo__check_how how, rondo__check_run *out_run,
                                                  rondo_status *out_refusal);
/* The same for a request that differs from the case's in its attributes. */
RONDO_MUST_USE rondo_status rondo__check_run_request(const rondo__check_case *c, const rondo_kernel_request *request,
                                                     const rondo_catalogue *catalogue, rondo__check_how how,
                                                     rondo__check_run *out_run, rondo_status *out_refusal);
/* Whether the bytes of all operands of the case can be counted and are few. */
bool rondo__check_small(const rondo__check_case *c);
/* The first output that differs: bit for bit, or by more than the type's rounding. -1: none. */
int32_t rondo__check_compare(const rondo__check_case *c, const rondo__check_run *a, const rondo__check_run *b,
                             bool exactly);

/* What came of a case. All from CHECK_BROKEN on are disagreements, and a case is made smaller while it stays the same. */
typedef enum rondo__check_kind {
    RONDO__CHECK_AGREES,
    RONDO__CHECK_REFUSED,
    RONDO__CHECK_NOT_RUN, /* accepted, and too large to be run, or its size depends on data */
    RONDO__CHECK_NO_KERNEL,
    RONDO__CHECK_FAST_ONLY, /* run, though not by the plain catalogue */
    RONDO__CHECK_BY_VALUE,  /* its kernel refuses these values, not these shapes */
    RONDO__CHECK_ERROR,     /* of ours: no memory */
    RONDO__CHECK_BROKEN,
    RONDO__CHECK_META_WRONG,
    RONDO__CHECK_META_UNSTEADY,
    RONDO__CHECK_OWN_WRONG,
    RONDO__CHECK_TAKES_LESS,
    RONDO__CHECK_TAKES_MORE,
    RONDO__CHECK_OTHER_RESULT,
    RONDO__CHECK_FIND_REFUSES,
    RONDO__CHECK_RUN_FAILS,
    RONDO__CHECK_OUTSIDE,
    RONDO__CHECK_UNSTEADY,
    RONDO__CHECK_IN_PLACE,
    RONDO__CHECK_CATALOGUES,
    RONDO__CHECK_OWN_BYTES
} rondo__check_kind;

typedef struct rondo__check_verdict {
    rondo__check_kind kind;
    rondo_status status; /* the disagreement or the error; null otherwise */
} rondo__check_verdict;

typedef struct rondo__check {
    const rondo_allocator *allocator;
    const rondo__ops_prototype *prototype;
    const rondo__operator_entry *entry; /* null: built in */
    rondo__kernel_set catalogues;       /* that have the operator, host kernels only */
    uint64_t tries_left;                /* of making a case smaller */
} rondo__check;

/* Judges one case: asks all four of each other. */
rondo__check_verdict rondo__check_judge(const rondo__check *check, rondo__check_case *c);
/* Makes the case as small as it gets while the verdict keeps its kind; gives the smallest one's verdict. */
rondo__check_verdict rondo__check_shrink(rondo__check *check, rondo__check_case *c, rondo__check_case *spare,
                                         rondo__check_verdict verdict);
/* The case's inputs and attributes as notes. */
rondo_status rondo__check_describe(rondo_status status, const rondo__check_case *c);

#endif
