/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layer "validate" remembers: which memory is alive, and which was freed lately.
 */
#ifndef RONDO_SRC_DEVICE_LAYERS_VALIDATE_H
#define RONDO_SRC_DEVICE_LAYERS_VALIDATE_H

#include "device/layers/layer.h"

#define RONDO__VALIDATE_FREED 64u                 /* freed ranges that are remembered */
#define RONDO__VALIDATE_HELD ((uint64_t)16 << 20) /* bytes of them that the backend does not get back yet */
#define RONDO__VALIDATE_RANGES_MAX ((size_t)1 << 24)

typedef struct rondo__validate_range {
    uint64_t base, size;
    bool host; /* pinned host memory */
    bool held; /* of a freed range: the backend still has it */
} rondo__validate_range;

typedef struct rondo__validate {
    rondo__layer layer; /* first */
    rondo__buffer live; /* rondo__validate_range, sorted by base */
    rondo__validate_range freed[RONDO__VALIDATE_FREED];
    uint32_t freed_next;
    uint64_t held, errors;
} rondo__validate;

/* With the layer's mutex held. */
/* The live range that the address is in, or null. */
const rondo__validate_range *rondo__validate_find(const rondo__validate *validate, uint64_t address);
const rondo__validate_range *rondo__validate_find_freed(const rondo__validate *validate, uint64_t address);
RONDO_MUST_USE rondo_status rondo__validate_add(rondo__validate *validate, const rondo__validate_range *range);
/* From live to freed. `keep`: the backend gets it when it is no longer remembered. */
void rondo__validate_remove(rondo__validate *validate, uint64_t base, bool keep);
/* The backend gets all that is held; the ranges are forgotten. */
void rondo__validate_flush(rondo__validate *validate);

#endif
