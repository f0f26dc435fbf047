/* SPDX-License-Identifier: Apache-2.0
 *
 * Builders and holders from the inside. */
#ifndef RONDO_SRC_ES_PRIVATE_H
#define RONDO_SRC_ES_PRIVATE_H

#include <rondo/es.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/instance.h"
#include "ir/ir.h"

#define RONDO__ES_PORTS_MAX (1u << 24)

struct rondo_es_tensor {
    rondo_es_builder *builder;
    rondo_ir_value value;
};

/* An input, variable or output by the caller's number. */
typedef struct rondo__es_port {
    int64_t index;
    const char *name; /* of an output; null: the value's; in the arena */
    rondo_ir_value value;
    bool variable;
} rondo__es_port;

struct rondo_es_builder {
    rondo_allocator allocator;
    rondo_instance *instance;
    char *name;
    rondo_ir_graph *graph; /* null: nothing was added yet. Of a branch: owned by the graph around it */
    rondo_status failure;  /* the first one */
    rondo__arena arena;    /* holders, and arrays of them */
    rondo__buffer inputs, outputs;
    uint32_t made; /* nodes */
    bool is_branch;
    rondo_es_builder *around;   /* of a branch; null once that is gone */
    rondo_es_builder *branches; /* those inside, and the next one beside */
    rondo_es_builder *next;
};

/* Keeps the failure, which the builder owns then, unless it has one. */
void rondo__es_fail(rondo_es_builder *builder, rondo_status status);
/* The graph, made at first use; null when there is a failure. */
rondo_ir_graph *rondo__es_graph(rondo_es_builder *builder);
RONDO_MUST_USE rondo_status rondo__es_holder(rondo_es_builder *builder, rondo_ir_value value,
                                             rondo_es_tensor **out_tensor);
/* The tensor's value in `builder`'s graph, through the graphs between them. INVALID_ARGUMENT: it is not from there or
 * around. */
RONDO_MUST_USE rondo_status rondo__es_bring(rondo_es_builder *builder, const rondo_es_tensor *tensor,
                                            rondo_ir_value *out_value);

#endif
