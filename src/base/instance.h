/* SPDX-License-Identifier: Apache-2.0
 *
 * What every room may know of an instance: where host memory comes from and where lines go. The instance room defines
 * the whole; this is its first member. */
#ifndef RONDO_SRC_BASE_INSTANCE_H
#define RONDO_SRC_BASE_INSTANCE_H

#include <rondo/runtime.h>

#include "base/log.h"
#include "base/thread.h"

/* Something of an instance that may outlive it, because graphs keep it. Null is accepted. */
typedef struct rondo__shared {
    rondo__ref_count references;
    void (*destroy)(struct rondo__shared *shared);
} rondo__shared;
static inline void rondo__shared_retain(rondo__shared *shared) {
    if (shared) rondo__ref_retain(&shared->references);
}
static inline void rondo__shared_release(rondo__shared *shared) {
    if (shared && rondo__ref_release(&shared->references)) shared->destroy(shared);
}

typedef struct rondo__instance_base {
    rondo_allocator allocator;
    rondo__log log;
    rondo__mutex trees_mutex;
    struct rondo_tree *trees; /* the tree room's list of those that are open, under the mutex */
    rondo__shared *operators; /* the ops room's registered prototypes; null: none can be */
} rondo__instance_base;

static inline rondo__instance_base *rondo__instance_base_mutable(rondo_instance *instance) {
    return (rondo__instance_base *)(void *)instance;
}
static inline const rondo__instance_base *rondo__instance_base_of(const rondo_instance *instance) {
    return (const rondo__instance_base *)(const void *)instance;
}

#endif
