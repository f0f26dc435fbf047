/* SPDX-License-Identifier: Apache-2.0
 *
 * Live and freed memory. Where the host may use device memory as its own, a freed address is soon somebody else's, and
 * nothing could be said of who still uses it: there the backend gets freed memory back a little later. */
#include <string.h>

#include "device/layers/validate.h"

/* How many ranges start at or below the address. */
static size_t validate_upto(const rondo__validate *validate, uint64_t address) {
    size_t low = 0, high = validate->live.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2u;
        if (RONDO__BUFFER_AT(&validate->live, rondo__validate_range, middle)->base <= address) low = middle + 1u;
        else high = middle;
    }
    return low;
}

const rondo__validate_range *rondo__validate_find(const rondo__validate *validate, uint64_t address) {
    size_t at = validate_upto(validate, address);
    if (!at) return NULL;
    const rondo__validate_range *range = RONDO__BUFFER_AT(&validate->live, rondo__validate_range, at - 1u);
    return address - range->base < range->size ? range : NULL;
}

const rondo__validate_range *rondo__validate_find_freed(const rondo__validate *validate, uint64_t address) {
    for (uint32_t i = 0; i < RONDO__VALIDATE_FREED; i++) {
        const rondo__validate_range *range = &validate->freed[i];
        if (address - range->base < range->size) return range;
    }
    return NULL;
}

rondo_status rondo__validate_add(rondo__validate *validate, const rondo__validate_range *range) {
    size_t at = validate_upto(validate, range->base);
    RONDO__TRY(rondo__buffer_append(&validate->live, NULL, 1));
    rondo__validate_range *items = RONDO__BUFFER_AT(&validate->live, rondo__validate_range, 0);
    memmove(items + at + 1, items + at, (validate->live.count - 1u - at) * sizeof *items);
    items[at] = *range;
    /* Whoever has it now has it by right. */
    for (uint32_t i = 0; i < RONDO__VALIDATE_FREED; i++) {
        rondo__validate_range *freed = &validate->freed[i];
        bool touches = freed->base - range->base < range->size || range->base - freed->base < freed->size;
        if (touches && !freed->held) *freed = (rondo__validate_range){0};
    }
    return RONDO_OK;
}

static void validate_let_go(rondo__validate *validate, rondo__validate_range *range) {
    const rondo__layer *layer = &validate->layer;
    if (range->held) {
        layer->lower->memory->free(layer->device, range->base, range->size);
        validate->held -= range->size;
    }
    *range = (rondo__validate_range){0};
}

void rondo__validate_remove(rondo__validate *validate, uint64_t base, bool keep) {
    size_t at = validate_upto(validate, base);
    rondo__validate_range *items = RONDO__BUFFER_AT(&validate->live, rondo__validate_range, 0);
    rondo__validate_range range = items[at - 1u];
    memmove(items + at - 1, items + at, (validate->live.count - at) * sizeof *items);
    validate->live.count--;
    range.held = keep;
    for (uint32_t i = 0; keep && validate->held > RONDO__VALIDATE_HELD - range.size && i < RONDO__VALIDATE_FREED; i++) {
        validate_let_go(validate, &validate->freed[(validate->freed_next + i) % RONDO__VALIDATE_FREED]);
    }
    rondo__validate_range *place = &validate->freed[validate->freed_next];
    validate->freed_next = (validate->freed_next + 1u) % RONDO__VALIDATE_FREED;
    validate_let_go(validate, place);
    *place = range;
    if (keep) validate->held += range.size;
}

void rondo__validate_flush(rondo__validate *validate) {
    for (uint32_t i = 0; i < RONDO__VALIDATE_FREED; i++) {
        if (validate->freed[i].held) validate_let_go(validate, &validate->freed[i]);
    }
}
