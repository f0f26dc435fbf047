/* SPDX-License-Identifier: Apache-2.0
 *
 * What every room may know of an instance: where host memory comes from and where lines go. The instance room defines
 * the whole; this is its first member. */
#ifndef RONDO_SRC_BASE_INSTANCE_H
#define RONDO_SRC_BASE_INSTANCE_H

#include <rondo/runtime.h>

#include "base/log.h"

typedef struct rondo__instance_base {
    rondo_allocator allocator;
    rondo__log log;
} rondo__instance_base;

static inline const rondo__instance_base *rondo__instance_base_of(const rondo_instance *instance) {
    return (const rondo__instance_base *)(const void *)instance;
}

#endif
