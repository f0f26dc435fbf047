/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a device once, and closing it with its last reference.
 *
 * The registry's open_mutex covers the whole of an opening and of a closing, so that two threads never have the backend
 * open one device twice, and nobody finds a device that is on its way out. */
#include "device/device.h"

#include <string.h>

#include "base/checked.h"
#include "device/layers/layers.h"

#define RONDO__DEVICE_TYPE_MAX 63u
#define RONDO__DEVICES_MAX 4096u
#define RONDO__PREPARED_MAX (1u << 20)

/* "type" or "type:index". */
static rondo_status device_parse(const char *name, char *type, uint32_t *out_index) {
    size_t length = strcspn(name, ":");
    uint32_t index = 0;
    if (length == 0 || length > RONDO__DEVICE_TYPE_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "'%.80s' names no device: write TYPE or TYPE:INDEX", name);
    }
    memcpy(type, name, length);
    type[length] = 0;
    if (name[length] == ':') {
        const char *digit = name + length + 1u;
        bool good = *digit != 0;
        for (; *digit && good; digit++) {
            good = *digit >= '0' && *digit <= '9';
            if (good && index > RONDO__DEVICES_MAX) {
                return RONDO__FAIL(OUT_OF_RANGE, INPUT, "'%.80s': a device's index is at most %u", name,
                                   RONDO__DEVICES_MAX);
            }
            if (good) index = index * 10u + (uint32_t)(*digit - '0');
        }
        if (!good) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "'%.80s' names no device: the index after ':' is a number",
                               name);
        }
    }
    *out_index = index;
    return RONDO_OK;
}

static rondo_status device_read_properties(rondo_device *device, const char *type) {
    rondo_device_properties properties = {.struct_size = sizeof properties};
    RONDO__TRY_NOTE(device->table->properties(device->handle, &properties), "properties of device type '%s'", type);
    uint64_t alignment = properties.allocation_alignment;
    if (alignment == 0 || (alignment & (alignment - 1u)) != 0) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': its allocation_alignment %llu is no power of two", type,
                           (unsigned long long)alignment);
    }
    properties.name[sizeof properties.name - 1u] = 0;
    properties.description[sizeof properties.description - 1u] = 0;
    device->properties = properties;
    return RONDO_OK;
}

/* Operators that a program registers run wherever kernels are host functions, last of all: their names are their own. */
static rondo_status device_read_registered(rondo_device *device, rondo__registry *registry) {
    rondo_catalogue catalogue;
    if (!(device->properties.capabilities & RONDO_DEVICE_HOST_KERNELS)) return RONDO_OK;
    if (device->kernels.count == RONDO__KERNEL_SET_MAX) return RONDO_OK;
    rondo_status status = rondo__registry_catalogue(registry, RONDO__KERNEL_REGISTERED, &catalogue);
    if (!status) device->kernels.catalogues[device->kernels.count++] = catalogue;
    if (rondo_status_code(status) != RONDO_CODE_NOT_FOUND) return status;
    rondo_status_release(status);
    return RONDO_OK;
}

/* A catalogue that a backend would like and no plugin brought is no error: its operators are then missing by name. */
static rondo_status device_read_catalogues(rondo_device *device, rondo__registry *registry, const char *type) {
    const char *name;
    for (uint32_t i = 0; (name = device->table->catalogue_at(device->handle, i)) != NULL; i++) {
        rondo_catalogue catalogue;
        if (i >= RONDO__KERNEL_SET_MAX) {
            return RONDO__FAIL(OUT_OF_RANGE, LOADING, "plugin '%s': it names more than %u catalogues", type,
                               RONDO__KERNEL_SET_MAX);
        }
        rondo_status status = rondo__registry_catalogue(registry, name, &catalogue);
        if (!status) {
            device->kernels.catalogues[device->kernels.count++] = catalogue;
        } else if (rondo_status_code(status) == RONDO_CODE_NOT_FOUND) {
            rondo__log_write(device->log, RONDO_LOG_WARNING,
                             "device type '%s' asks for kernel catalogue '%s', which no "
                             "plugin has registered",
                             type, name);
            rondo_status_release(status);
        } else {
            return status;
        }
    }
    return device_read_registered(device, registry);
}

/* Works on a device in any state of being made. */
static void device_destroy(rondo_device *device) {
    rondo_allocator allocator = device->allocator;
    if (device->default_stream) {
        rondo__stream_close(device->default_stream);
        device->default_stream = NULL;
    }
    if (device->on_release) device->on_release(device);
    rondo__prepared_release_all(device);
    rondo__buffer_deinit(&device->prepared);
    if (device->handle) device->table->close(device->handle);
    rondo__string_free(&allocator, device->settings);
    rondo__mutex_deinit(&device->flights_mutex);
    rondo__mutex_deinit(&device->captures_mutex);
    rondo__mutex_deinit(&device->mutex);
    rondo__free(&allocator, device, sizeof *device);
}

/* The backend's own device. */
static rondo_status device_open_below(const rondo__registry_entry *entry, uint32_t index, const rondo__layers *layers,
                                      const rondo_device_table **out_table, void **out_handle) {
    const char *type = entry->backend.table->name;
    const rondo_device_table *table = NULL;
    void *handle = NULL;
    RONDO__TRY_NOTE(entry->backend.table->open(entry->backend.self, index, layers->rest, &table, &handle),
                    "opening device %u of type '%s'", index, type);
    rondo_status status = rondo__plugin_check_device(type, table);
    if (!status && !handle) status = RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': open gave no device", type);
    if (status) {
        if (handle && table && table->struct_size >= sizeof *table && table->close) table->close(handle);
        return status;
    }
    *out_table = table;
    *out_handle = handle;
    return RONDO_OK;
}

static rondo_status device_connect(rondo_device *device, rondo__registry *registry, const rondo__registry_entry *entry,
                                   uint32_t index, const char *settings) {
    const char *type = entry->backend.table->name;
    const rondo_device_table *table = NULL;
    void *handle = NULL;
    RONDO__TRY(rondo__string_copy(&device->allocator, settings, &device->settings));
    rondo__layers layers;
    RONDO__TRY_NOTE(rondo__layers_read(&device->allocator, settings, &layers), "opening device %u of type '%s'", index,
                    type);
    rondo_status status = device_open_below(entry, index, &layers, &table, &handle);
    if (!status) {
        status = rondo__layers_stack(&layers, device->log, type, index, &table, &handle);
        if (status) table->close(handle);
    }
    rondo__layers_deinit(&layers);
    if (status) return status;
    device->table = table;
    device->handle = handle;
    RONDO__TRY(device_read_properties(device, type));
    RONDO__TRY(device_read_catalogues(device, registry, type));
    return rondo__stream_open(device, RONDO_STREAM_DEFAULT, 0, true, &device->default_stream);
}

static rondo_status device_make(rondo__registry *registry, rondo_instance *instance, const rondo__registry_entry *entry,
                                uint32_t index, const char *settings, rondo_device **out_device) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&registry->allocator, sizeof(rondo_device), &memory));
    rondo_device *device = memory;
    rondo__ref_init(&device->references);
    device->allocator = registry->allocator;
    device->instance = instance;
    device->log = registry->log;
    rondo__mutex_init(&device->mutex);
    rondo__mutex_init(&device->captures_mutex);
    rondo__mutex_init(&device->flights_mutex);
    rondo__buffer_init(&device->prepared, &device->allocator, sizeof(rondo__prepared_kernel), RONDO__PREPARED_MAX);
    rondo_status status = device_connect(device, registry, entry, index, settings);
    if (status) {
        device_destroy(device);
        return status;
    }
    *out_device = device;
    return RONDO_OK;
}

/* Room for `count` devices of the type. */
static rondo_status device_reserve_slots(rondo__registry *registry, rondo__registry_entry *entry, uint32_t count) {
    void *slots = entry->devices;
    if (count <= entry->device_count) return RONDO_OK;
    RONDO__TRY(rondo__reallocate(&registry->allocator, &slots, entry->device_count * sizeof *entry->devices,
                                 count * sizeof *entry->devices));
    entry->devices = slots;
    while (entry->device_count < count) entry->devices[entry->device_count++] = NULL;
    return RONDO_OK;
}

static rondo_status device_reuse(rondo_device *device, const char *name, const char *settings,
                                 rondo_device **out_device) {
    if (settings && strcmp(settings, device->settings ? device->settings : "") != 0) {
        return RONDO__FAIL(ALREADY_EXISTS, INPUT,
                           "device '%s' is open with settings '%s': close it before it is opened "
                           "with '%s'",
                           name, device->settings ? device->settings : "", settings);
    }
    rondo_device_retain(device);
    *out_device = device;
    return RONDO_OK;
}

rondo_status rondo__device_open(rondo__registry *registry, rondo_instance *instance, const char *name,
                                const char *settings, rondo_device **out_device) {
    char type[RONDO__DEVICE_TYPE_MAX + 1u];
    uint32_t index = 0, count = 0;
    RONDO__TRY(device_parse(name, type, &index));
    rondo__registry_entry *entry = rondo__registry_find(registry, type);
    if (!entry) return rondo__device_type_unknown(instance, type);
    if (index < entry->device_count && entry->devices[index]) {
        return device_reuse(entry->devices[index], name, settings, out_device);
    }
    RONDO__TRY(rondo_device_type_count(instance, type, &count));
    if (index >= count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "there is no device '%s': type '%s' has %u device%s here", name, type,
                           count, count == 1u ? "" : "s");
    }
    RONDO__TRY(device_reserve_slots(registry, entry, index + 1u));
    RONDO__TRY(device_make(registry, instance, entry, index, settings, out_device));
    (*out_device)->opened_in = entry;
    entry->devices[index] = *out_device;
    rondo_instance_retain(instance);
    return RONDO_OK;
}

void rondo_device_retain(rondo_device *device) {
    if (device) rondo__ref_retain(&device->references);
}

bool rondo__device_release_locked(rondo_device *device) {
    if (!rondo__ref_release(&device->references)) return false;
    rondo__registry_entry *entry = device->opened_in;
    for (uint32_t i = 0; entry && i < entry->device_count; i++) {
        if (entry->devices[i] == device) entry->devices[i] = NULL;
    }
    device_destroy(device);
    return true;
}

void rondo_device_release(rondo_device *device) {
    if (!device) return;
    /* Every release but the last goes without the mutex. */
    uint_least32_t count = atomic_load_explicit(&device->references, memory_order_relaxed);
    while (count > 1u) {
        if (atomic_compare_exchange_weak_explicit(&device->references, &count, count - 1u, memory_order_release,
                                                  memory_order_relaxed)) {
            return;
        }
    }
    rondo_instance *instance = device->instance;
    rondo__registry *registry = rondo__instance_registry(instance);
    rondo__mutex_lock(&registry->open_mutex);
    bool last = rondo__device_release_locked(device);
    rondo__mutex_unlock(&registry->open_mutex);
    if (last) rondo_instance_release(instance);
}

const rondo_device_properties *rondo_device_info(const rondo_device *device) {
    return device ? &device->properties : NULL;
}

rondo_instance *rondo_device_instance(const rondo_device *device) { return device ? device->instance : NULL; }

rondo_status rondo_device_memory_info(rondo_device *device, uint64_t *out_free, uint64_t *out_total) {
    uint64_t free_bytes = 0, total = 0;
    if (!device || !out_free || !out_total) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "memory info needs a device and two places for the answer");
    }
    RONDO__TRY(device->table->memory_info(device->handle, &free_bytes, &total));
    *out_free = free_bytes;
    *out_total = total;
    return RONDO_OK;
}

rondo_status rondo_device_counter(rondo_device *device, const char *name, uint64_t *out_value) {
    uint64_t value = 0;
    if (!device || !name || !out_value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a counter needs a device, a name and a place for the value");
    }
    if (!device->table->counter) {
        return RONDO__FAIL(NOT_FOUND, DRIVER, "device type '%s' keeps no counts", device->properties.name);
    }
    RONDO__TRY(device->table->counter(device->handle, name, &value));
    *out_value = value;
    return RONDO_OK;
}
