/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that a program registers: an instance's prototypes beside the table, and a catalogue of their kernels. */
#ifndef RONDO_SRC_OPS_OPERATORS_H
#define RONDO_SRC_OPS_OPERATORS_H

#include <rondo/operator.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/instance.h"
#include "kernel/kernel.h"
#include "ops/ops.h"

#define RONDO__OPERATORS_MAX 65536u

/* Found pointers stay valid: entries are made whole, then added, and never changed. */
typedef struct rondo__operator_entry {
    rondo__ops_prototype prototype;
    rondo_operator given;
    rondo_operator_implementation implementation;
    bool implemented;
    const char *onnx_domain, *onnx_name;
    rondo__arena arena; /* holds the entry's own text and lists */
} rondo__operator_entry;

typedef struct rondo__operators {
    rondo__shared shared; /* first */
    rondo_allocator allocator;
    const rondo__log *log; /* the instance's; kernels, which are gone before it, write there */
    rondo__mutex mutex;
    rondo__buffer entries;   /* rondo__operator_entry *, in the order of registration */
    rondo__buffer libraries; /* void *, of dlopen */
    rondo_status failure;    /* why an implementation failed last, until somebody explains with it */
    char failed_node[128];
} rondo__operators;

RONDO_MUST_USE rondo_status rondo__operators_create(const rondo_allocator *allocator, const rondo__log *log,
                                                    rondo__shared **out_operators);
/* Null for an unknown name. */
const rondo__operator_entry *rondo__operators_find(rondo__operators *operators, const char *name);
/* The catalogue of all that is registered now and later; valid as long as the instance. */
rondo_catalogue rondo__operators_catalogue(rondo__shared *operators);

/* A run ended with `status`. Where that is a kernel's failure, and the kernel a registered operator's, the answer is the
 * operator's own words under the contract that was broken. Takes `status`; the code stays. `operators` may be null. */
rondo_status rondo__operators_explain(rondo__shared *operators, rondo_status status);

/* Loads what RONDO_OPERATOR_PATH names; `path` may be null. */
RONDO_MUST_USE rondo_status rondo__operators_load_path(rondo__shared *operators, const char *path);

/* For the files of this room. */
/* Adds all of them, or none; with them the library, unless it is null, which closes when the operators go. */
RONDO_MUST_USE rondo_status rondo__operators_add_all(rondo__operators *operators, const rondo_operator *const *tables,
                                                     uint32_t count, void *library);
/* `size` bytes of a data symbol that a shared library exports, read from its file. NOT_FOUND: it exports no such symbol
 * of at least that size. CORRUPT: it is no ELF file that can be read. */
RONDO_MUST_USE rondo_status rondo__elf_read(const char *path, const char *symbol, void *out, size_t size);
extern const rondo_operator_api rondo__operator_api;
/* The request with the defaults of absent attributes; `attributes` has room for what it has and all defaults. */
#define RONDO__OPERATOR_REQUEST_ATTRIBUTES (2u * RONDO_OPERATOR_ATTRIBUTES_MAX + 32u)
RONDO_MUST_USE rondo_status rondo__operator_complete(const rondo__operator_entry *entry,
                                                     const rondo_kernel_request *request, rondo_attribute *attributes,
                                                     rondo_kernel_request *out_request);
/* What a function of the operator refused, with node, operator and whose function it is in front. Releases `why`. */
rondo_status rondo__operator_refusal(rondo_status why, const rondo__operator_entry *entry,
                                     const rondo_kernel_request *request, rondo_layer layer);
/* "float32[2,3]"; always terminated. */
void rondo__operator_text(rondo_dtype dtype, int32_t rank, const int64_t *dims, char *buffer, size_t capacity);
/* The meta's inference, or the implementation's own, checked alike. */
RONDO_MUST_USE rondo_status rondo__operator_infer(const rondo__operator_entry *entry,
                                                  const rondo_kernel_request *request, bool by_meta,
                                                  rondo_operator_result *results);
/* What the operator, which has `bound`, answers of inferred results: those with the most that data can make of them. IMPLEMENTATION
 * failures: it refuses, or its answer is none. */
RONDO_MUST_USE rondo_status rondo__operator_bound(const rondo__operator_entry *entry,
                                                  const rondo_kernel_request *request, rondo_operator_result *results);
/* The attribute of a step that holds the operator's own bytes, as an offline file brings them. */
#define RONDO__OPERATOR_OWN "rondo.own"
/* The state of a node, from its own bytes or compiled; null where the operator has none. */
RONDO_MUST_USE rondo_status rondo__operator_state_make(const rondo__operator_entry *entry,
                                                       const rondo_kernel_request *request, void **out_state);
void rondo__operator_state_release(const rondo__operator_entry *entry, void *state);
/* The own bytes of a node that is not from a file, for one: appended to `bytes`, which stays empty where there are none. */
RONDO_MUST_USE rondo_status rondo__operator_own(rondo__shared *operators, const rondo_kernel_request *request,
                                                rondo__buffer *bytes);
/* The same; *out_refused says that the operator itself refused, and did not answer what is no answer. */
RONDO_MUST_USE rondo_status rondo__operator_infer_told(const rondo__operator_entry *entry,
                                                       const rondo_kernel_request *request, bool by_meta,
                                                       rondo_operator_result *results, bool *out_refused);
/* A call of a prepared kernel of the catalogue, with the words of its failure. */
rondo_status rondo__operator_kernel_run(const void *context, const uint64_t *words);
/* CONVERTER errors that name operator, operand and attribute. */
RONDO_MUST_USE rondo_status rondo__operator_check_converters(const rondo__ops_prototype *prototype,
                                                             const rondo_operator_converter *converters,
                                                             uint32_t count);
/* rondo_operator_check, with the host catalogues that have the operator, the plain one last. */
RONDO_MUST_USE rondo_status rondo__operator_check(const rondo_allocator *allocator,
                                                  const rondo__ops_prototype *prototype,
                                                  const rondo__kernel_set *catalogues,
                                                  const rondo_operator_check_options *options,
                                                  rondo_operator_check_report *out_report);

#endif
