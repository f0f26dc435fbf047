/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated device: what it says of itself, and the door that every other entry goes through. */
#include <stdio.h>
#include <string.h>

#include "mutations.h"
#include "sim.h"

void *rondo__sim_allocate(const rondo__sim_device *device, size_t size, size_t alignment) {
    const rondo_allocator *allocator = &device->host->allocator;
    return allocator->reallocate(allocator->self, NULL, 0, size, alignment);
}

void rondo__sim_release(const rondo__sim_device *device, void *pointer, size_t size, size_t alignment) {
    const rondo_allocator *allocator = &device->host->allocator;
    if (pointer) (void)allocator->reallocate(allocator->self, pointer, size, 0, alignment);
}

rondo_status rondo__sim_enter(rondo__sim_device *device, const char *what) {
    (void)pthread_mutex_lock(&device->mutex);
    if (!device->executing || !pthread_equal(device->executor, pthread_self())) return RONDO_OK;
    (void)pthread_mutex_unlock(&device->mutex);
    return RONDO_PLUGIN_FAIL(device->host, INVALID_STATE, DRIVER,
                             "sim: %s: called by a kernel or host function that the "
                             "device itself is running",
                             what);
}

void rondo__sim_leave(rondo__sim_device *device) { (void)pthread_mutex_unlock(&device->mutex); }

static rondo_status sim_properties(void *self, rondo_device_properties *out_properties) {
    const rondo__sim_device *device = self;
    out_properties->capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE | RONDO_DEVICE_HOST_KERNELS;
    (void)snprintf(out_properties->name, sizeof out_properties->name, "sim");
    (void)snprintf(out_properties->description, sizeof out_properties->description,
                   "simulated accelerator %u: work runs when it is waited for", device->index);
    out_properties->index = (int32_t)device->index;
    out_properties->dlpack_type = 12;
    out_properties->allocation_alignment = RONDO__SIM_ALIGNMENT;
    out_properties->memory_total = device->limit;
    return RONDO_OK;
}

static rondo_status sim_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    rondo__sim_device *device = self;
    (void)pthread_mutex_lock(&device->mutex);
    *out_free = device->limit - device->used;
    *out_total = device->limit;
    (void)pthread_mutex_unlock(&device->mutex);
    return RONDO_OK;
}

/* It runs the CPU's kernels: what is simulated is when and where, not what. */
static const char *sim_catalogue_at(void *self, uint32_t index) {
    static const char *const names[] = {"cpu", "ref"};
    (void)self;
    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}

static rondo_status sim_counter(void *self, const char *name, uint64_t *out_value) {
    static const char *const names[] = {
#define RONDO_X(count, text) text,
        RONDO__SIM_COUNTS(RONDO_X)
#undef RONDO_X
    };
    rondo__sim_device *device = self;
    for (int i = 0; i < RONDO__SIM_COUNT_OF; i++) {
        if (strcmp(names[i], name) != 0) continue;
        (void)pthread_mutex_lock(&device->mutex);
        *out_value = device->counts[i];
        (void)pthread_mutex_unlock(&device->mutex);
        return RONDO_OK;
    }
    return RONDO_PLUGIN_FAIL(device->host, NOT_FOUND, DRIVER, "sim: there is no counter '%s'", name);
}

static void sim_close(void *self) {
    rondo__sim_device *device = self;
    rondo__sim_mutant_close(device);
    rondo__sim_shadow_close(device);
    rondo__sim_order_close(device);
    rondo__sim_memory_close(device);
    (void)pthread_cond_destroy(&device->idle);
    (void)pthread_mutex_destroy(&device->mutex);
    rondo__sim_release(device, device, sizeof *device, 0);
}

rondo_status rondo__sim_device_open(const rondo_host_api *host, uint32_t index, const rondo__sim_settings *settings,
                                    rondo__sim_device **out_device) {
    rondo__sim_device *device = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof(rondo__sim_device), 0);
    if (!device) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, DRIVER, "sim: no memory for the device");
    memset(device, 0, sizeof *device);
    device->host = host;
    device->index = index;
    device->settings = *settings;
    device->random = settings->seed * 2u + index; /* the two devices of one seed go different ways */
    device->limit = settings->memory;
    (void)pthread_mutex_init(&device->mutex, NULL);
    (void)pthread_cond_init(&device->idle, NULL);
    *out_device = device;
    return RONDO_OK;
}

const rondo_device_table rondo__sim_device_table = {.struct_size = sizeof(rondo_device_table),
                                                    .memory = &rondo__sim_memory_table,
                                                    .stream = &rondo__sim_stream_table,
                                                    .properties = sim_properties,
                                                    .memory_info = sim_memory_info,
                                                    .catalogue_at = sim_catalogue_at,
                                                    .counter = sim_counter,
                                                    .close = sim_close};
