/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin "cpu": the device type and the fast kernel catalogue of the same name. */
#include <string.h>

#include "cpu.h"
#include "device.h"

rondo_status rondo_plugin_entry_cpu(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

typedef struct cpu_plugin {
    const rondo_host_api *host;
    rondo_backend backend;
    rondo_catalogue catalogue;
    rondo_plugin_api api;
} cpu_plugin;

static rondo_status cpu_enumerate(void *self, uint32_t *out_count) {
    (void)self;
    *out_count = 1;
    return RONDO_OK;
}

static rondo_status cpu_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                             void **out_device) {
    const cpu_plugin *plugin = self;
    rondo__cpu_device *device = NULL;
    if (index) return RONDO_PLUGIN_FAIL(plugin->host, OUT_OF_RANGE, DRIVER, "cpu: there is one device, not %u", index);
    if (settings && *settings) {
        return RONDO_PLUGIN_FAIL(plugin->host, INVALID_ARGUMENT, DRIVER, "cpu: it has no settings, '%s' is unknown",
                                 settings);
    }
    rondo_status status = rondo__cpu_device_open(plugin->host, &device);
    if (status) return status;
    *out_table = &rondo__cpu_device_table;
    *out_device = device;
    return RONDO_OK;
}

static const rondo_backend_table cpu_backend_table = {
    .struct_size = sizeof(rondo_backend_table),
    .capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE | RONDO_DEVICE_HOST_ADDRESSABLE |
                    RONDO_DEVICE_HOST_KERNELS | RONDO_DEVICE_INLINE,
    .name = "cpu",
    .description = "the host's processor; calls run as they are enqueued",
    .enumerate = cpu_enumerate,
    .open = cpu_open};

static void cpu_shutdown(void *self) {
    cpu_plugin *plugin = self;
    const rondo_allocator *allocator = &plugin->host->allocator;
    rondo__cpu_catalogue_destroy(plugin->catalogue.self);
    (void)allocator->reallocate(allocator->self, plugin, sizeof *plugin, 0, 0);
}

rondo_status rondo_plugin_entry_cpu(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    if (abi < RONDO_PLUGIN_ABI) {
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "cpu: it needs plugin ABI %u, the host has %u",
                                 RONDO_PLUGIN_ABI, abi);
    }
    cpu_plugin *plugin = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof(cpu_plugin), 0);
    if (!plugin) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "cpu: no memory for the plugin");
    memset(plugin, 0, sizeof *plugin);
    plugin->host = host;
    rondo_status status = rondo__cpu_catalogue_create(host, &plugin->catalogue);
    if (status) {
        (void)host->allocator.reallocate(host->allocator.self, plugin, sizeof *plugin, 0, 0);
        return status;
    }
    plugin->backend = (rondo_backend){&cpu_backend_table, plugin};
    plugin->api = (rondo_plugin_api){.struct_size = sizeof(rondo_plugin_api),
                                     .abi = RONDO_PLUGIN_ABI,
                                     .name = "cpu",
                                     .version = RONDO_VERSION_STRING,
                                     .backend_count = 1,
                                     .catalogue_count = 1,
                                     .backends = &plugin->backend,
                                     .catalogues = &plugin->catalogue,
                                     .self = plugin,
                                     .shutdown = cpu_shutdown};
    *out_api = &plugin->api;
    return RONDO_OK;
}
