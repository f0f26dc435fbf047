/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile cache: a folder of offline files (file.h), each under the hash of all that it depends on. Nothing uses it
 * unless a folder is named; docs/offline-file.md tells the whole.
 *
 * The rules for ownership, threads and statuses are those of runtime.h.
 */
#ifndef RONDO_CACHE_H
#define RONDO_CACHE_H

#include <rondo/compiler.h>

RONDO_EXTERN_C_BEGIN

typedef struct rondo_cache_options {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t bytes_max; /* of all entries together: those that were used longest ago go; 0: 1 GiB */
} rondo_cache_options;
#define RONDO_CACHE_OPTIONS_INIT \
    { sizeof(rondo_cache_options), 0, 0 }

typedef int32_t rondo_cache_outcome;
enum {
    RONDO_CACHE_HIT = 1,       /* the plan is an entry's, mapped */
    RONDO_CACHE_MISS = 2,      /* compiled, and stored */
    RONDO_CACHE_REMADE = 3,    /* the entry was damaged or another's: compiled again, and stored in its place */
    RONDO_CACHE_NOT_STORED = 4 /* compiled; `reason` says why there is no entry */
};

typedef struct rondo_cache_report {
    uint32_t struct_size;
    rondo_cache_outcome outcome;
    uint64_t key[2];
    char reason[192]; /* of REMADE and NOT_STORED; else empty */
} rondo_cache_report;
#define RONDO_CACHE_REPORT_INIT                      \
    {                                                \
        sizeof(rondo_cache_report), 0, {0, 0}, { 0 } \
    }

/* rondo_compile, or what an earlier one has left in `folder`, which is made where it does not exist (its parent must). An
 * entry is used only when graph, options, sizes, values, catalogues with their kernel sets, and the version of the library
 * are those it was made with. It is verified as every offline file is, and holds its key: one that is damaged, cut or under
 * a wrong name is made again. Any number of processes may share a folder. A folder that cannot be written, a plan that
 * has no form in a file, a graph with registered operators, options.after_pass and values with strides are no failures:
 * NOT_STORED.
 * options, cache and out_report may be null. Fails as rondo_compile does. Thread-safe. */
RONDO_API RONDO_MUST_USE rondo_status rondo_compile_cached(rondo_instance *instance, const rondo_ir_graph *graph,
                                                           const rondo_compile_options *options, const char *folder,
                                                           const rondo_cache_options *cache, rondo_plan **out_plan,
                                                           rondo_cache_report *out_report);

RONDO_EXTERN_C_END

#endif
