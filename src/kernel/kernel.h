/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel catalogues as the core sees them: a set in order of preference, look-up over it, and running a prepared kernel
 * on host memory (the folder of the compiler, and tests).
 */
#ifndef RONDO_SRC_KERNEL_KERNEL_H
#define RONDO_SRC_KERNEL_KERNEL_H

#include <rondo/plugin.h>

#include "base/allocator.h"

#define RONDO__KERNEL_SET_MAX 8u
/* The catalogue that an instance makes of the operators that were registered with it. */
#define RONDO__KERNEL_REGISTERED "registered"

typedef struct rondo__kernel_set {
    rondo_catalogue catalogues[RONDO__KERNEL_SET_MAX];
    uint32_t count;
} rondo__kernel_set;

/* The first catalogue that accepts. UNSUPPORTED (kernel): names operator and node, a note a catalogue with its reason.
 * Other failures (out of memory) are passed on. */
RONDO_MUST_USE rondo_status rondo__kernel_find(const rondo__kernel_set *set, const rondo_kernel_request *request,
                                               rondo_catalogue *out_catalogue, rondo_kernel_facts *out_facts);
/* By name; null when absent. */
const rondo_catalogue *rondo__kernel_set_named(const rondo__kernel_set *set, const char *name);
/* Finds, packs, prepares, runs and releases on host memory. inputs[i] null where absent; outputs are written.
 * KERNEL_FAILED names the node. Only catalogues with RONDO_CATALOGUE_HOST take part. */
RONDO_MUST_USE rondo_status rondo__kernel_run(const rondo__kernel_set *set, const rondo_allocator *allocator,
                                              const rondo_kernel_request *request, const void *const *inputs,
                                              void *const *outputs);

/* An operator whose outputs are as long as the data says is asked for with the longest that they can be, with the attribute
 * "rondo.sizes" = 1, and with one output more behind those of the node: int64, one dimension, into which the kernel writes
 * the dims of each output that is wanted, one after another. The elements lie at the beginning of an output's memory, compact
 * under those dims. This asks so, and runs: `request` is the node's own. KERNEL_FAILED also where a size is not within
 * what was asked for. */
#define RONDO__KERNEL_SIZES "rondo.sizes"
RONDO_MUST_USE rondo_status rondo__kernel_run_sized(const rondo__kernel_set *set, const rondo_allocator *allocator,
                                                    const rondo_kernel_request *request, const void *const *inputs,
                                                    void *const *outputs, int64_t (*out_dims)[RONDO_RANK_MAX]);

#endif
