/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU's memory and properties. */
#include "device.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RONDO__CPU_ALIGNMENT 64u
/* From here on blocks are aligned to, and asked to be backed by, huge pages: a list or a weight matrix of megabytes then
 * costs a few translations instead of thousands. */
#define RONDO__CPU_HUGE (2u << 20)

static size_t cpu_alignment(uint64_t size) { return size >= RONDO__CPU_HUGE ? RONDO__CPU_HUGE : RONDO__CPU_ALIGNMENT; }

static rondo_status cpu_allocate(void *self, uint64_t size, uint64_t *out_address) {
    rondo__cpu_device *device = self;
    const rondo_allocator *allocator = &device->host->allocator;
    void *pointer = NULL;
    if (size <= SIZE_MAX / 2u) {
        pointer = allocator->reallocate(allocator->self, NULL, 0, (size_t)size, cpu_alignment(size));
    }
    if (!pointer) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, MEMORY, "cpu: no memory for %llu bytes",
                                 (unsigned long long)size);
    }
#ifdef MADV_HUGEPAGE
    /* Advice: a system that knows no huge pages refuses it, and nothing is lost. */
    if (size >= RONDO__CPU_HUGE) (void)madvise(pointer, (size_t)size & ~((size_t)RONDO__CPU_HUGE - 1u), MADV_HUGEPAGE);
#endif
    (void)pthread_mutex_lock(&device->mutex);
    rondo__cpu_count(&device->counts, RONDO__CPU_COUNT_ALLOCATIONS, 1);
    (void)pthread_mutex_unlock(&device->mutex);
    *out_address = (uint64_t)(uintptr_t)pointer;
    return RONDO_OK;
}

static void cpu_free(void *self, uint64_t address, uint64_t size) {
    const rondo__cpu_device *device = self;
    const rondo_allocator *allocator = &device->host->allocator;
    (void)allocator->reallocate(allocator->self, (void *)(uintptr_t)address, (size_t)size, 0, cpu_alignment(size));
}

static uint64_t cpu_pages(int name) {
    long pages = sysconf(name), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static rondo_status cpu_properties(void *self, rondo_device_properties *out_properties) {
    (void)self;
    out_properties->capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE |
                                   RONDO_DEVICE_HOST_ADDRESSABLE | RONDO_DEVICE_HOST_KERNELS | RONDO_DEVICE_INLINE;
    (void)snprintf(out_properties->name, sizeof out_properties->name, "cpu");
    (void)snprintf(out_properties->description, sizeof out_properties->description,
                   "the host's processor, one thread, calls run as they are enqueued");
    out_properties->index = 0;
    out_properties->dlpack_type = 1;
    out_properties->allocation_alignment = RONDO__CPU_ALIGNMENT;
    out_properties->memory_total = cpu_pages(_SC_PHYS_PAGES);
    return RONDO_OK;
}

static rondo_status cpu_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    (void)self;
    *out_free = cpu_pages(_SC_AVPHYS_PAGES);
    *out_total = cpu_pages(_SC_PHYS_PAGES);
    return RONDO_OK;
}

static const char *cpu_catalogue_at(void *self, uint32_t index) {
    static const char *const names[] = {"cpu", "ref"};
    (void)self;
    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}

static rondo_status cpu_counter(void *self, const char *name, uint64_t *out_value) {
    static const char *const names[] = {
#define RONDO_X(count, text) text,
        RONDO__CPU_COUNTS(RONDO_X)
#undef RONDO_X
    };
    rondo__cpu_device *device = self;
    int what = 0;
    while (what < RONDO__CPU_COUNT_OF && strcmp(names[what], name) != 0) what++;
    if (what == RONDO__CPU_COUNT_OF) {
        return RONDO_PLUGIN_FAIL(device->host, NOT_FOUND, DRIVER, "cpu: there is no counter '%s'", name);
    }
    (void)pthread_mutex_lock(&device->mutex);
    uint64_t value = atomic_load_explicit(&device->counts.values[what], memory_order_relaxed);
    for (const rondo__cpu_stream *stream = device->streams; stream; stream = stream->next) {
        value += atomic_load_explicit(&stream->counts.values[what], memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&device->mutex);
    *out_value = value;
    return RONDO_OK;
}

static void cpu_close(void *self) {
    rondo__cpu_device *device = self;
    const rondo_allocator *allocator = &device->host->allocator;
    (void)pthread_mutex_destroy(&device->mutex);
    (void)allocator->reallocate(allocator->self, device, sizeof *device, 0, 0);
}

rondo_status rondo__cpu_device_open(const rondo_host_api *host, rondo__cpu_device **out_device) {
    rondo__cpu_device *device = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof(rondo__cpu_device), 0);
    if (!device) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, DRIVER, "cpu: no memory for the device");
    memset(device, 0, sizeof *device);
    device->host = host;
    (void)pthread_mutex_init(&device->mutex, NULL);
    *out_device = device;
    return RONDO_OK;
}

static const rondo_memory_table cpu_memory_table = {
    .struct_size = sizeof(rondo_memory_table), .allocate = cpu_allocate, .free = cpu_free};

const rondo_device_table rondo__cpu_device_table = {.struct_size = sizeof(rondo_device_table),
                                                    .memory = &cpu_memory_table,
                                                    .stream = &rondo__cpu_stream_table,
                                                    .properties = cpu_properties,
                                                    .memory_info = cpu_memory_info,
                                                    .catalogue_at = cpu_catalogue_at,
                                                    .counter = cpu_counter,
                                                    .close = cpu_close};
