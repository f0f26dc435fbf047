/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin "ascend". It is part of the library and opens the driver only when somebody asks for a device. */
#include <string.h>

#include "ascend.h"

rondo_status rondo_plugin_entry_ascend(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

typedef struct ascend_plugin {
    const rondo_host_api *host;
    rondo_backend backend;
    rondo_plugin_api api;
    rondo__ascend_library library;
} ascend_plugin;

static rondo_status ascend_enumerate(void *self, uint32_t *out_count) {
    ascend_plugin *plugin = self;
    return rondo__ascend_library_count(&plugin->library, out_count);
}

static rondo_status ascend_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                                void **out_device) {
    ascend_plugin *plugin = self;
    rondo__ascend_device *device = NULL;
    rondo_status status = rondo__ascend_device_open(&plugin->library, index, settings, out_table, &device);
    if (!status) *out_device = device;
    return status;
}

static const rondo_backend_table ascend_backend_table = {.struct_size = sizeof(rondo_backend_table),
                                                         .capabilities =
                                                             RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE,
                                                         .name = "ascend",
                                                         .description = "Ascend NPUs, through libascendcl",
                                                         .enumerate = ascend_enumerate,
                                                         .open = ascend_open};

static void ascend_shutdown(void *self) {
    ascend_plugin *plugin = self;
    rondo__ascend_library_close(&plugin->library);
    (void)pthread_mutex_destroy(&plugin->library.mutex);
    rondo__ascend_free(plugin->host, plugin, sizeof *plugin);
}

rondo_status rondo_plugin_entry_ascend(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    if (abi < RONDO_PLUGIN_ABI) {
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "ascend: it needs plugin ABI %u, the host has %u",
                                 RONDO_PLUGIN_ABI, abi);
    }
    ascend_plugin *plugin = rondo__ascend_allocate(host, sizeof *plugin);
    if (!plugin) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "ascend: no memory for the plugin");
    plugin->host = host;
    plugin->library.host = host;
    (void)pthread_mutex_init(&plugin->library.mutex, NULL);
    plugin->backend = (rondo_backend){&ascend_backend_table, plugin};
    plugin->api = (rondo_plugin_api){.struct_size = sizeof(rondo_plugin_api),
                                     .abi = RONDO_PLUGIN_ABI,
                                     .name = "ascend",
                                     .version = RONDO_VERSION_STRING,
                                     .backend_count = 1,
                                     .backends = &plugin->backend,
                                     .self = plugin,
                                     .shutdown = ascend_shutdown};
    *out_api = &plugin->api;
    return RONDO_OK;
}
