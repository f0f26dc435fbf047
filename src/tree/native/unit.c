/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of units, and the home where ended ones wait to be used again. */
#include <string.h>

#include "tree/native/native.h"

#define NATIVE_LINE 64u

rondo_status rondo__unit_make(rondo_device *device, rondo__native_host *home, rondo_array **out_unit) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_aligned(&device->allocator, sizeof(rondo_array), NATIVE_LINE, &memory));
    rondo_array *unit = memory;
    memset(unit, 0, sizeof *unit);
    rondo__ref_init(&unit->references);
    rondo__ref_init(&unit->own.references);
    atomic_init(&unit->keeper, RONDO__UNIT_FREE);
    atomic_init(&unit->own.address, 0u);
    atomic_init(&unit->own.lease, NULL);
    atomic_init(&unit->own.bytes, 0u);
    atomic_init(&unit->own.owns, RONDO__STORAGE_NOTHING);
    unit->storage = &unit->own;
    unit->own.device = device;
    rondo_device_retain(device);
    if (home) rondo__unit_settle(unit, home);
    *out_unit = unit;
    return RONDO_OK;
}

void rondo__unit_settle(rondo_array *unit, rondo__native_host *home) {
    if (unit->home) return;
    rondo__ref_retain(&home->references);
    unit->home = home;
    unit->own.serial = home->serial;
}

static void unit_free(rondo_array *unit) {
    rondo_device *device = unit->own.device;
    rondo_allocator allocator = device->allocator;
    rondo__free_aligned(&allocator, unit, sizeof *unit, NATIVE_LINE);
    rondo_device_release(device);
}

void rondo__unit_drop(rondo_array *unit) {
    rondo__native_host *home = unit->home;
    if (!home) {
        unit_free(unit);
        return;
    }
    rondo__mutex_lock(&home->mutex);
    bool spare = !home->closed && unit->own.device == home->device && home->spare_count < RONDO__NATIVE_SPARE;
    if (spare) {
        unit->value = (uint64_t)(uintptr_t)home->spare;
        home->spare = unit;
        home->spare_count++;
    }
    rondo__mutex_unlock(&home->mutex);
    if (!spare) unit_free(unit);
    rondo__native_host_release(home); /* a spare one has none: its home has it */
}

rondo_status rondo__unit_take(rondo__native_host *home, rondo_array **out_unit) {
    rondo__mutex_lock(&home->mutex);
    rondo_array *unit = home->spare;
    if (unit) {
        home->spare = (rondo_array *)(uintptr_t)unit->value;
        home->spare_count--;
    }
    rondo__mutex_unlock(&home->mutex);
    if (!unit) return rondo__unit_make(home->device, home, out_unit);
    rondo__ref_retain(&home->references);
    unit->value = 0;
    atomic_store_explicit(&unit->keeper, RONDO__UNIT_FREE, memory_order_relaxed);
    *out_unit = unit;
    return RONDO_OK;
}

void rondo__unit_let_go(rondo_array *unit) {
    if (!unit) return;
    if (atomic_exchange_explicit(&unit->keeper, RONDO__UNIT_FREE, memory_order_acq_rel) == RONDO__UNIT_IDLE) {
        rondo__unit_drop(unit);
    }
}

void rondo__native_host_release(rondo__native_host *home) {
    if (!rondo__ref_release(&home->references)) return;
    rondo_allocator allocator = home->allocator;
    rondo__mutex_deinit(&home->mutex);
    rondo__free(&allocator, home, sizeof *home);
}
