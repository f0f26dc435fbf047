/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form of a schema, in the language that PyTorch's operators are declared in:
 *   my::add_custom.overload(Tensor x, Tensor? bias=None, *, float alpha=1.0) -> (Tensor y, Tensor[] more)
 * Parsed into slices of the text, so that nothing is allocated. */
#ifndef RONDO_SRC_OPS_SCHEMA_H
#define RONDO_SRC_OPS_SCHEMA_H

#include "base/buffer.h"
#include "ops/ops.h"

#define RONDO__SCHEMA_ARGUMENTS 64u /* 32 inputs and 32 attributes */
#define RONDO__SCHEMA_RETURNS 32u
#define RONDO__SCHEMA_TEXT_MAX 65536u

typedef struct rondo__schema_slice {
    const char *data;
    size_t size;
} rondo__schema_slice;

typedef enum rondo__schema_type {
    RONDO__SCHEMA_TENSOR,
    RONDO__SCHEMA_INT,   /* SymInt, bool and ScalarType, too: whole numbers */
    RONDO__SCHEMA_FLOAT, /* Scalar, too */
    RONDO__SCHEMA_STR,
    RONDO__SCHEMA_OTHER /* Device, Generator, ...: no attribute can hold one */
} rondo__schema_type;

typedef struct rondo__schema_argument {
    rondo__schema_type type;
    rondo__schema_slice type_text, name, value; /* value: the default, as it is written; size 0: none */
    bool list, optional, keyword_only, written; /* written: Tensor(a!) */
} rondo__schema_argument;

typedef struct rondo__schema {
    rondo__schema_slice name, overload; /* name with its namespace */
    uint32_t argument_count, return_count;
    rondo__schema_argument arguments[RONDO__SCHEMA_ARGUMENTS], returns[RONDO__SCHEMA_RETURNS];
} rondo__schema;

/* INVALID_ARGUMENT (schema), with the place. The slices are the text's. */
RONDO_MUST_USE rondo_status rondo__schema_parse(const char *text, rondo__schema *out_schema);
/* Appends the schema of a prototype. UNSUPPORTED (schema): an attribute that has no type in this language, or an
 * input's name. */
RONDO_MUST_USE rondo_status rondo__schema_print(const rondo__ops_prototype *prototype, rondo__buffer *text);
/* Whether the schema says what the prototype says: inputs, outputs and attributes by name, order, presence and kind,
 * and the defaults of registered operators. INVALID_ARGUMENT (schema), naming what differs. */
RONDO_MUST_USE rondo_status rondo__schema_check(const rondo__schema *schema, const rondo__ops_prototype *prototype);

#endif
