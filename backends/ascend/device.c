/* SPDX-License-Identifier: Apache-2.0
 *
 * A device: the process's default context of it, which other libraries share. Streams that they made can be wrapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

void *rondo__ascend_allocate(const rondo_host_api *host, size_t size) {
    void *pointer = host->allocator.reallocate(host->allocator.self, NULL, 0, size, 0);
    if (pointer) memset(pointer, 0, size);
    return pointer;
}

void rondo__ascend_free(const rondo_host_api *host, void *pointer, size_t size) {
    if (pointer) (void)host->allocator.reallocate(host->allocator.self, pointer, size, 0, 0);
}

rondo_status rondo__ascend_enter(const rondo__ascend_device *device, void **out_before) {
    const rondo__ascend_api *api = &device->library->api;
    *out_before = NULL;
    if (rondo__ascend_tolerate(device->library, api->aclrtGetCurrentContext(out_before))) *out_before = NULL;
    if (*out_before == device->context) return RONDO_OK;
    return RONDO__ASCEND_CALL(device->library, aclrtSetCurrentContext, device->context);
}

void rondo__ascend_leave(const rondo__ascend_device *device, void *before) {
    if (before && before != device->context) (void)RONDO__ASCEND_TRY(device->library, aclrtSetCurrentContext, before);
}

static rondo_status device_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    rondo__ascend_device *device = self;
    size_t left = 0, total = 0;
    void *before = NULL;
    enum { HBM = 1 };
    if (!rondo__ascend_can(device, RONDO__ASCEND_MEMORY_INFO))
        return rondo__ascend_refusal(device, RONDO__ASCEND_MEMORY_INFO, "the size of the device's memory");
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    int error = device->library->api.aclrtGetMemInfo(HBM, &left, &total);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_MEMORY_INFO, aclrtGetMemInfo, error))
        status = rondo__ascend_refusal(device, RONDO__ASCEND_MEMORY_INFO, "the size of the device's memory");
    else status = rondo__ascend_error(device->library, "aclrtGetMemInfo", error);
    if (!status) {
        *out_free = left;
        *out_total = total;
    }
    return rondo__ascend_left(device, before, status);
}

static rondo_status device_properties(void *self, rondo_device_properties *out) {
    rondo__ascend_device *device = self;
    const rondo__ascend_library *library = device->library;
    uint64_t left = 0, total = 0;
    rondo_status status = device_memory_info(self, &left, &total);
    if (status && device->host->status_code(status) != RONDO_CODE_UNSUPPORTED) return status;
    device->host->status_release(status); /* unknown is a size, too */
    out->capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE;
    if (device->run) out->capabilities |= RONDO_DEVICE_HOST_KERNELS;
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_pointer))
        out->capabilities |= RONDO_DEVICE_COPY_DIRECTION_UNCHECKED;
    if (!rondo__ascend_can(device, RONDO__ASCEND_GROUP_failure))
        out->capabilities |= RONDO_DEVICE_GOES_ON_AFTER_FAILURE;
    const char *soc = rondo__ascend_can(device, RONDO__ASCEND_GROUP_about) ? library->api.aclrtGetSocName() : NULL;
    if (!soc) (void)library->api.aclGetRecentErrMsg(); /* it may say why: "unnamed" is enough */
    (void)snprintf(out->name, sizeof out->name, "ascend");
    (void)snprintf(out->description, sizeof out->description, "Ascend %d (%.32s), through %.64s", (int)device->index,
                   soc ? soc : "unnamed", library->path);
    out->index = device->index;
    out->dlpack_type = 12;
    out->allocation_alignment = RONDO__ASCEND_ALIGNMENT;
    out->memory_total = total;
    return RONDO_OK;
}

/* Only a library that runs C functions has a use for them. */
static const char *device_catalogue_at(void *self, uint32_t index) {
    static const char *const names[] = {"cpu", "ref"};
    const rondo__ascend_device *device = self;
    return device->run && index < sizeof names / sizeof names[0] ? names[index] : NULL;
}

/* -------------------------------------------------------------------------------------------------- binaries */

typedef struct device_module {
    rondo__ascend_device *device;
    void *binary;
    rondo__ascend_kernel *kernels;
} device_module;

static rondo_status device_load(void *self, const void *image, uint64_t bytes, void **out_module) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    if (status) return status;
    device_module *module = rondo__ascend_allocate(device->host, sizeof *module);
    if (!module) status = RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, LOADING, "ascend: no memory for a binary");
    if (!status)
        status =
            RONDO__ASCEND_CALL(device->library, aclrtBinaryLoadFromData, image, (size_t)bytes, NULL, &module->binary);
    if (status) rondo__ascend_free(device->host, module, sizeof *module);
    else {
        module->device = device;
        *out_module = module;
    }
    return rondo__ascend_left(device, before, status);
}

/* "NAME", or "NAME:BLOCKS" for kernels that run in more than one block. */
static rondo_status device_module_kernel(void *self, const char *name, rondo_kernel *out_kernel) {
    device_module *module = self;
    const rondo_host_api *host = module->device->host;
    char plain[256];
    const char *colon = strrchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    char *end = NULL;
    bool digits = colon && colon[1] >= '0' && colon[1] <= '9';
    unsigned long blocks = digits ? strtoul(colon + 1, &end, 10) : 1;
    if (length >= sizeof plain || !blocks || blocks > UINT32_MAX || (colon && (!digits || *end)))
        return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, LOADING, "ascend: '%s' is no NAME or NAME:BLOCKS", name);
    memcpy(plain, name, length);
    plain[length] = '\0';
    rondo__ascend_kernel *kernel = rondo__ascend_allocate(host, sizeof *kernel);
    if (!kernel) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "ascend: no memory for kernel '%s'", name);
    rondo_status status =
        RONDO__ASCEND_CALL(module->device->library, aclrtBinaryGetFunction, module->binary, plain, &kernel->function);
    if (status) {
        rondo__ascend_free(host, kernel, sizeof *kernel);
        return host->status_note(status, "kernel '%s'", plain);
    }
    kernel->blocks = (uint32_t)blocks;
    kernel->next = module->kernels;
    module->kernels = kernel;
    *out_kernel = (rondo_kernel){NULL, kernel};
    return RONDO_OK;
}

static void device_unload(void *self, void *handle) {
    rondo__ascend_device *device = self;
    device_module *module = handle;
    while (module->kernels) {
        rondo__ascend_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        rondo__ascend_free(device->host, kernel, sizeof *kernel);
    }
    (void)RONDO__ASCEND_TRY(device->library, aclrtBinaryUnLoad, module->binary);
    rondo__ascend_free(device->host, module, sizeof *module);
}

static rondo_status device_counter(void *self, const char *name, uint64_t *out_value) {
    static const char *const names[] = {
#define RONDO_X(count, text) text,
        RONDO__ASCEND_COUNTS(RONDO_X)
#undef RONDO_X
    };
    rondo__ascend_device *device = self;
    for (int i = 0; i < RONDO__ASCEND_COUNT_OF; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out_value = atomic_load_explicit(&device->counts[i], memory_order_relaxed);
        return RONDO_OK;
    }
    return RONDO_PLUGIN_FAIL(device->host, NOT_FOUND, DRIVER, "ascend: there is no counter '%s'", name);
}

/* ------------------------------------------------------------------------------------------- opening, closing */

static void device_close(void *self) {
    rondo__ascend_device *device = self;
    void *before = NULL;
    rondo_status status = rondo__ascend_enter(device, &before);
    device->host->status_release(status);
    if (device->spare) (void)RONDO__ASCEND_TRY(device->library, aclrtDestroyStream, device->spare);
    if (device->image) (void)RONDO__ASCEND_TRY(device->library, aclrtBinaryUnLoad, device->image);
    (void)RONDO__ASCEND_TRY(device->library, aclrtResetDevice, device->index);
    rondo__ascend_leave(device, before);
    (void)pthread_mutex_destroy(&device->mutex);
    rondo__ascend_free(device->host, device, sizeof *device);
}

static rondo_status device_setting(rondo__ascend_device *device, const char *key, size_t key_length, const char *value,
                                   size_t value_length) {
    static const struct {
        const char *key, *off, *on;
    } known[] = {{"graphs", "list", "native"}, {"updates", "off", "on"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].key) != key_length || strncmp(known[i].key, key, key_length) != 0) continue;
        bool on = strlen(known[i].on) == value_length && strncmp(known[i].on, value, value_length) == 0;
        bool off = strlen(known[i].off) == value_length && strncmp(known[i].off, value, value_length) == 0;
        if (!on && !off) break;
        if (i == 0) device->native = on;
        else device->updates = on;
        return RONDO_OK;
    }
    return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, DRIVER,
                             "ascend: '%.*s=%.*s' is no setting; there are graphs=native|list and updates=on|off",
                             (int)key_length, key, (int)value_length, value);
}

static rondo_status device_settings(rondo__ascend_device *device, const char *text) {
    rondo_status status = RONDO_OK;
    while (!status && text && *text) {
        size_t whole = strcspn(text, ","), key = strcspn(text, "=,");
        const char *value = text + (key < whole ? key + 1 : whole);
        status = device_setting(device, text, key, value, whole - (size_t)(value - text));
        text += whole;
        text += *text == ',';
    }
    return status;
}

static rondo_status device_start(rondo__ascend_device *device) {
    rondo__ascend_library *library = device->library;
    void *before = NULL;
    if (RONDO__ASCEND_TRY(library, aclrtGetCurrentContext, &before)) before = NULL;
    rondo_status status = RONDO__ASCEND_CALL(library, aclrtSetDevice, device->index);
    if (status) return status;
    status = RONDO__ASCEND_CALL(library, aclrtGetCurrentContext, &device->context);
    if (!status) status = rondo__ascend_host_image(device);
    if (!status) {
        rondo__ascend_stream_probe(device);
        return rondo__ascend_left(device, before, RONDO_OK);
    }
    (void)RONDO__ASCEND_TRY(library, aclrtResetDevice, device->index);
    rondo__ascend_leave(device, before);
    return status;
}

#define DEVICE_TABLE(graph_table)                                                                       \
    {                                                                                                   \
        .struct_size = sizeof(rondo_device_table), .memory = &rondo__ascend_memory_table,               \
        .stream = &rondo__ascend_stream_table, .graph = (graph_table), .properties = device_properties, \
        .memory_info = device_memory_info, .catalogue_at = device_catalogue_at, .load = device_load,    \
        .module_kernel = device_module_kernel, .unload = device_unload, .counter = device_counter,      \
        .close = device_close                                                                           \
    }
static const rondo_device_table device_with_graphs = DEVICE_TABLE(&rondo__ascend_graph_table);
static const rondo_device_table device_with_plain_graphs = DEVICE_TABLE(&rondo__ascend_graph_table_plain);
static const rondo_device_table device_without_graphs = DEVICE_TABLE(NULL);

rondo_status rondo__ascend_device_open(rondo__ascend_library *library, uint32_t index, const char *settings,
                                       const rondo_device_table **out_table, rondo__ascend_device **out_device) {
    uint32_t count = 0;
    rondo_status status = rondo__ascend_library_count(library, &count);
    if (status) return status;
    if (index >= count)
        return RONDO_PLUGIN_FAIL(library->host, OUT_OF_RANGE, DRIVER, "ascend: there is no device %u, there are %u",
                                 index, count);
    rondo__ascend_device *device = rondo__ascend_allocate(library->host, sizeof *device);
    if (!device) return RONDO_PLUGIN_FAIL(library->host, OUT_OF_MEMORY, DRIVER, "ascend: no memory for the device");
    device->host = library->host;
    device->library = library;
    device->index = (int32_t)index;
    device->native = device->updates = true;
    (void)pthread_mutex_init(&device->mutex, NULL);
    status = device_settings(device, settings);
    if (!status) status = device_start(device);
    if (status) {
        (void)pthread_mutex_destroy(&device->mutex);
        rondo__ascend_free(library->host, device, sizeof *device);
        return status;
    }
    bool external = rondo__ascend_has(library, RONDO__ASCEND_GROUP_external);
    rondo__ascend_tell(device);
    *out_table = !device->native ? &device_without_graphs : external ? &device_with_graphs : &device_with_plain_graphs;
    *out_device = device;
    return RONDO_OK;
}
