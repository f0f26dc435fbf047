/* SPDX-License-Identifier: Apache-2.0
 *
 * What an application may ask of the registry: which device types there are, how many devices each has, and which can
 * capture. Nothing here opens a device. */
#include "device/device.h"

#include <string.h>

#define RONDO__TYPES_CPU "cpu"

/* The index-th entry, or null past the end. Entries stay where they are and never go, so a pointer outlives the lock. */
static rondo__registry_entry *types_at(rondo__registry *registry, size_t index) {
    rondo__mutex_lock(&registry->mutex);
    rondo__registry_entry *entry = NULL;
    if (index < registry->entries.count) entry = RONDO__BUFFER_AT(&registry->entries, rondo__registry_entry, index);
    rondo__mutex_unlock(&registry->mutex);
    return entry;
}

const char *rondo_device_type_at(rondo_instance *instance, uint32_t index) {
    if (!instance) return NULL;
    const rondo__registry_entry *entry = types_at(rondo__instance_registry(instance), index);
    return entry ? entry->backend.table->name : NULL;
}

const char *rondo_device_type_description(rondo_instance *instance, const char *type) {
    if (!instance || !type) return NULL;
    const rondo__registry_entry *entry = rondo__registry_find(rondo__instance_registry(instance), type);
    return entry ? entry->backend.table->description : NULL;
}

rondo_status rondo__device_type_unknown(rondo_instance *instance, const char *type) {
    rondo_status status = RONDO__FAIL(NOT_FOUND, LOADING, "there is no device type '%s' here", type);
    const char *name;
    for (uint32_t i = 0; (name = rondo_device_type_at(instance, i)) != NULL; i++) {
        status = rondo__status_note(status, "there is '%s'", name);
    }
    return status;
}

static rondo_status types_count(const rondo__registry_entry *entry, uint32_t *out_count) {
    uint32_t count = 0;
    RONDO__TRY_NOTE(entry->backend.table->enumerate(entry->backend.self, &count), "device type '%s'",
                    entry->backend.table->name);
    *out_count = count;
    return RONDO_OK;
}

rondo_status rondo_device_type_count(rondo_instance *instance, const char *type, uint32_t *out_count) {
    if (!instance || !type || !out_count) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "counting devices needs an instance, a type and a place for the count");
    }
    const rondo__registry_entry *entry = rondo__registry_find(rondo__instance_registry(instance), type);
    return entry ? types_count(entry, out_count) : rondo__device_type_unknown(instance, type);
}

/* The current accelerator: the first type that has a device and is not the cpu. A type without its driver is passed
 * over, as one without devices is. */
static rondo_status types_accelerator(rondo__registry *registry, rondo__registry_entry **out_entry) {
    rondo__registry_entry *entry;
    for (size_t i = 0; (entry = types_at(registry, i)) != NULL; i++) {
        uint32_t count = 0;
        if (strcmp(entry->backend.table->name, RONDO__TYPES_CPU) == 0) continue;
        rondo_status status = types_count(entry, &count);
        if (status && rondo_status_code(status) != RONDO_CODE_UNAVAILABLE) return status;
        rondo_status_release(status);
        if (count) {
            *out_entry = entry;
            return RONDO_OK;
        }
    }
    return RONDO__FAIL(NOT_FOUND, LOADING, "there is no accelerator here: no device of a type other than '%s'",
                       RONDO__TYPES_CPU);
}

rondo_status rondo_device_has_graph_impl(rondo_instance *instance, const char *type, bool *out_has) {
    rondo__registry_entry *entry = NULL;
    if (!instance || !out_has) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "asking for a graph implementation needs an instance and a place "
                           "for the answer");
    }
    rondo__registry *registry = rondo__instance_registry(instance);
    if (type) {
        entry = rondo__registry_find(registry, type);
        if (!entry) return rondo__device_type_unknown(instance, type);
    } else {
        RONDO__TRY(types_accelerator(registry, &entry));
    }
    *out_has = (entry->backend.table->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0;
    return RONDO_OK;
}
