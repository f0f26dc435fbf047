/* SPDX-License-Identifier: Apache-2.0
 *
 * What every room may know of an instance: where host memory comes from and where lines go. The instance room defines
 * the whole; this is its first member. */
#ifndef RONDO_SRC_BASE_INSTANCE_H
#define RONDO_SRC_BASE_INSTANCE_H

#include <rondo/runtime.h>

#include "base/log.h"
#include "base/thread.h"

typedef struct rondo__instance_base {
    rondo_allocator allocator;
    rondo__log log;
    rondo__mutex trees_mutex;
    struct rondo_tree *trees; /* the tree room's list of those that are open, under the mutex */
} rondo__instance_base;

static inline rondo__instance_base *rondo__instance_base_mutable(rondo_instance *instance) {
    return (rondo__instance_base *)(void *)instance;
}
static inline const rondo__instance_base *rondo__instance_base_of(const rondo_instance *instance) {
    return (const rondo__instance_base *)(const void *)instance;
}

#endif
