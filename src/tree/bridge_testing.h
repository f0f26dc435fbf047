/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model device does when it stands for a native one: the same few calls, of a rondo_device. The tree then has the
 * device's own table (rondo_graph_ops_native), and the model framework lives on it. */
#ifndef RONDO_SRC_TREE_BRIDGE_TESTING_H
#define RONDO_SRC_TREE_BRIDGE_TESTING_H

#include <rondo/array.h>
#include <rondo/tree.h>
#include <string.h>

#include "base/status.h"

#define NB_KERNELS 8u

typedef struct md_device md_device;
typedef void (*md_kernel)(md_device *device, const uint64_t *words);

/* A host kernel's context is the model's kernel. Filled before there are threads, and never emptied. */
typedef struct nb_kernel {
    md_kernel kernel;
} nb_kernel;
static nb_kernel nb_kernels[NB_KERNELS];

static inline int32_t nb_run(const void *context, const uint64_t *words) {
    ((const nb_kernel *)context)->kernel(NULL, words);
    return 0;
}

static inline const nb_kernel *nb_kernel_of(md_kernel kernel) {
    for (unsigned i = 0; i < NB_KERNELS; i++) {
        if (!nb_kernels[i].kernel) nb_kernels[i].kernel = kernel;
        if (nb_kernels[i].kernel == kernel) return &nb_kernels[i];
    }
    return NULL;
}

static inline rondo_status nb_launch(rondo_stream *stream, md_kernel kernel, const uint64_t *words, uint32_t count,
                                     uint32_t addresses, const uint64_t *bytes) {
    rondo_argument arguments[16];
    rondo_call call = RONDO_CALL_INIT;
    for (uint32_t i = 0; i < count; i++) {
        arguments[i] = (rondo_argument){.word = words[i]};
        if (!(addresses >> i & 1u)) continue;
        arguments[i].access = i ? RONDO_ACCESS_READ : RONDO_ACCESS_WRITE;
        arguments[i].length = bytes[i];
    }
    call.argument_count = count;
    call.kernel = (rondo_kernel){nb_run, nb_kernel_of(kernel)};
    call.arguments = arguments;
    call.name = "model";
    return rondo_stream_launch(stream, &call);
}

static inline rondo_status nb_allocate(rondo_stream *stream, uint64_t bytes, uint64_t *out_address) {
    void *memory = NULL;
    RONDO__TRY(rondo_memory_allocate_on(stream, bytes, &memory));
    *out_address = (uint64_t)(uintptr_t)memory;
    return RONDO_OK;
}

static inline void *nb_pointer(uint64_t address) {
    void *pointer;
    memcpy(&pointer, &address, sizeof pointer);
    return pointer;
}

/* False: no live block starts there. */
static inline bool nb_free(rondo_device *device, uint64_t address) {
    rondo_status status = rondo_memory_free(device, nb_pointer(address));
    rondo_status_release(status);
    return !status;
}

static inline rondo_status nb_wait(rondo_device *device, rondo_stream *stream, rondo_stream *other) {
    rondo_event *event = NULL;
    RONDO__TRY(rondo_event_create(device, &event));
    rondo_status status = rondo_event_record(event, other);
    if (!status) status = rondo_event_wait(event, stream);
    rondo_event_release(event);
    return status;
}

/* Blocks that are alive, bytes and segments; of one pool, or of the device ({0, 0}). */
static inline rondo_memory_statistics nb_statistics(rondo_device *device, uint64_t pool) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    rondo_status_release(rondo_memory_get_statistics(device, (rondo_pool_id){0, pool}, &statistics));
    return statistics;
}

#endif
