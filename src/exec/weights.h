/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that several executables share: one block of device memory for what is the same to the byte. */
#ifndef RONDO_SRC_EXEC_WEIGHTS_H
#define RONDO_SRC_EXEC_WEIGHTS_H

#include "exec/exec.h"

/* Smaller ones lie with the others of their executable: a block of their own would take more than they do. */
#define RONDO__WEIGHTS_SHARED_MIN 4096u

/* Bytes on a device, with the number of executables that use them. */
typedef struct rondo__weights_block {
    struct rondo__weights_block *next; /* with hashes that end alike */
    uint64_t hash, bytes;
    uint64_t allocation, allocated; /* what was taken, and how much */
    uint64_t address;               /* the aligned place in it */
    uint64_t users;
} rondo__weights_block;

/* Thread-safe, reference counted: executables hold it. Holds the device. */
RONDO_MUST_USE rondo_status rondo__weights_create(rondo_device *device, const rondo_device_memory *source,
                                                  rondo__weights **out_weights);
void rondo__weights_retain(rondo__weights *weights);
void rondo__weights_release(rondo__weights *weights);

/* Fills `bytes` bytes of host memory, aligned to 64. */
typedef rondo_status (*rondo__weights_fill)(const void *self, void *out);
/* The block that holds what `fill` writes, with one user more: one that is there, or a new one. Contents are compared, not
 * only their hashes. */
RONDO_MUST_USE rondo_status rondo__weights_take(rondo__weights *weights, uint64_t bytes, rondo__weights_fill fill,
                                                const void *self, rondo__weights_block **out_block);
/* Frees it with its last user. Nothing of that user runs any more. */
void rondo__weights_give(rondo__weights *weights, rondo__weights_block *block);

#endif
