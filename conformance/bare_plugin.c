/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that is a backend: one device without graphs, over the host's memory, that runs everything at once. It shows
 * how short a backend can be, and is what the suite needs to see a type that is known and has no graphs. */
#include <rondo/plugin.h>
#include <string.h>

RONDO_API rondo_status rondo_plugin_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

enum { BARE_ALIGNMENT = 64 };

typedef struct bare_plugin {
    const rondo_host_api *host;
    rondo_backend backend;
    rondo_plugin_api api;
} bare_plugin;

/* The plugin itself stands for its device, streams and events: there is nothing to remember. */
static rondo_status bare_stand_in(void *self, void **out) {
    *out = self;
    return RONDO_OK;
}

static rondo_status bare_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    const bare_plugin *plugin = self;
    (void)priority;
    if (flags == RONDO_STREAM_ASYNCHRONOUS)
        return RONDO_PLUGIN_FAIL(plugin->host, UNSUPPORTED, DRIVER,
                                 "bare: RONDO_STREAM_ASYNCHRONOUS: there are no workers");
    if (flags)
        return RONDO_PLUGIN_FAIL(plugin->host, INVALID_ARGUMENT, DRIVER, "bare: unknown stream flags 0x%x", flags);
    return bare_stand_in(self, out_stream);
}

static void bare_destroy(void *device, void *object) {
    (void)device;
    (void)object;
}

static rondo_status bare_finished(const bare_plugin *plugin, int32_t reason, const char *name) {
    if (!reason) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(plugin->host, KERNEL_FAILED, KERNEL, "bare: call '%s' failed with reason %d", name,
                             (int)reason);
}

static rondo_status bare_launch(void *stream, const rondo_call *call) {
    uint64_t words[RONDO_ARGUMENT_MAX];
    for (uint32_t i = 0; i < call->argument_count; i++) words[i] = call->arguments[i].word;
    return bare_finished(stream, call->kernel.function(call->kernel.context, words), call->name ? call->name : "");
}

static rondo_status bare_copy(void *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                              rondo_copy_kind kind) {
    (void)stream;
    (void)kind; /* one memory on both sides */
    memmove((void *)(uintptr_t)destination, (const void *)(uintptr_t)source, (size_t)bytes);
    return RONDO_OK;
}

static rondo_status bare_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    (void)stream;
    memset((void *)(uintptr_t)address, value, (size_t)bytes);
    return RONDO_OK;
}

static rondo_status bare_host_call(void *stream, rondo_host_function function, void *user) {
    return bare_finished(stream, function(user), "host function");
}

static rondo_status bare_synchronize(void *object) {
    (void)object;
    return RONDO_OK;
}

static rondo_status bare_query(void *object, bool *out_done) {
    (void)object;
    *out_done = true;
    return RONDO_OK;
}

static rondo_status bare_event_on_stream(void *event, void *stream) {
    (void)event;
    (void)stream;
    return RONDO_OK;
}

static rondo_status bare_allocate(void *self, uint64_t size, uint64_t *out_address) {
    const bare_plugin *plugin = self;
    const rondo_allocator *allocator = &plugin->host->allocator;
    void *memory =
        size < SIZE_MAX / 2u ? allocator->reallocate(allocator->self, NULL, 0, (size_t)size, BARE_ALIGNMENT) : NULL;
    if (!memory)
        return RONDO_PLUGIN_FAIL(plugin->host, OUT_OF_MEMORY, MEMORY, "bare: no memory for %llu bytes",
                                 (unsigned long long)size);
    *out_address = (uint64_t)(uintptr_t)memory;
    return RONDO_OK;
}

static void bare_free(void *self, uint64_t address, uint64_t size) {
    const rondo_allocator *allocator = &((const bare_plugin *)self)->host->allocator;
    (void)allocator->reallocate(allocator->self, (void *)(uintptr_t)address, (size_t)size, 0, BARE_ALIGNMENT);
}

static rondo_status bare_properties(void *self, rondo_device_properties *out_properties) {
    (void)self;
    out_properties->capabilities = RONDO_DEVICE_HOST_ADDRESSABLE | RONDO_DEVICE_HOST_KERNELS | RONDO_DEVICE_INLINE;
    memcpy(out_properties->name, "bare", sizeof "bare");
    memcpy(out_properties->description, "no graphs", sizeof "no graphs");
    out_properties->index = 0;
    out_properties->dlpack_type = 1;
    out_properties->allocation_alignment = BARE_ALIGNMENT;
    out_properties->memory_total = 0;
    return RONDO_OK;
}

static rondo_status bare_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    (void)self;
    *out_free = *out_total = (uint64_t)1 << 40; /* it does not know */
    return RONDO_OK;
}

static const char *bare_catalogue_at(void *self, uint32_t index) {
    (void)self;
    return index == 0 ? "ref" : NULL;
}

static void bare_close(void *self) { (void)self; }

static const rondo_memory_table bare_memory = {
    .struct_size = sizeof(rondo_memory_table), .allocate = bare_allocate, .free = bare_free};
static const rondo_stream_table bare_stream = {.struct_size = sizeof(rondo_stream_table),
                                               .create = bare_create,
                                               .destroy = bare_destroy,
                                               .launch = bare_launch,
                                               .copy = bare_copy,
                                               .fill = bare_fill,
                                               .host_call = bare_host_call,
                                               .synchronize = bare_synchronize,
                                               .query = bare_query,
                                               .event_create = bare_stand_in,
                                               .event_destroy = bare_destroy,
                                               .event_record = bare_event_on_stream,
                                               .event_wait = bare_event_on_stream,
                                               .event_query = bare_query,
                                               .event_synchronize = bare_synchronize};
static const rondo_device_table bare_device = {.struct_size = sizeof(rondo_device_table),
                                               .memory = &bare_memory,
                                               .stream = &bare_stream,
                                               .properties = bare_properties,
                                               .memory_info = bare_memory_info,
                                               .catalogue_at = bare_catalogue_at,
                                               .close = bare_close};

static rondo_status bare_enumerate(void *self, uint32_t *out_count) {
    (void)self;
    *out_count = 1;
    return RONDO_OK;
}

static rondo_status bare_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                              void **out_device) {
    const bare_plugin *plugin = self;
    (void)index;
    if (settings && *settings)
        return RONDO_PLUGIN_FAIL(plugin->host, INVALID_ARGUMENT, DRIVER, "bare: there are no settings");
    *out_table = &bare_device;
    return bare_stand_in(self, out_device);
}

static const rondo_backend_table bare_backend = {.struct_size = sizeof(rondo_backend_table),
                                                 .capabilities = RONDO_DEVICE_HOST_ADDRESSABLE |
                                                                 RONDO_DEVICE_HOST_KERNELS | RONDO_DEVICE_INLINE,
                                                 .name = "bare",
                                                 .description = "a device without graphs",
                                                 .enumerate = bare_enumerate,
                                                 .open = bare_open};

static void bare_shutdown(void *self) {
    bare_plugin *plugin = self;
    const rondo_allocator *allocator = &plugin->host->allocator;
    (void)allocator->reallocate(allocator->self, plugin, sizeof *plugin, 0, 0);
}

rondo_status rondo_plugin_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    if (abi < RONDO_PLUGIN_ABI)
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "bare: it needs plugin ABI %u, the host has %u",
                                 RONDO_PLUGIN_ABI, abi);
    bare_plugin *plugin = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof *plugin, 0);
    if (!plugin) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "bare: no memory for the plugin");
    memset(plugin, 0, sizeof *plugin);
    plugin->host = host;
    plugin->backend = (rondo_backend){&bare_backend, plugin};
    plugin->api = (rondo_plugin_api){.struct_size = sizeof(rondo_plugin_api),
                                     .abi = RONDO_PLUGIN_ABI,
                                     .name = "bare",
                                     .version = RONDO_VERSION_STRING,
                                     .backend_count = 1,
                                     .backends = &plugin->backend,
                                     .self = plugin,
                                     .shutdown = bare_shutdown};
    *out_api = &plugin->api;
    return RONDO_OK;
}
