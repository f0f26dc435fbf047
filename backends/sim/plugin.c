/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin "sim": two devices that hold their work back. */
#include <string.h>

#include "mutations.h"
#include "sim.h"

rondo_status rondo_plugin_entry_sim(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

typedef struct sim_plugin {
    const rondo_host_api *host;
    rondo_backend backend;
    rondo_plugin_api api;
    rondo__sim_calls calls;
} sim_plugin;

/* Failures of these two are asked for before there is a device: both look at the settings by themselves. */
static rondo_status sim_fault(sim_plugin *plugin, const char *text, int entry, rondo__sim_settings *settings) {
    rondo__sim_settings_init(settings);
    rondo_status status = rondo__sim_settings_read(plugin->host, text, settings);
    return status ? status : rondo__sim_fault_of(plugin->host, &plugin->calls, settings, entry);
}

static rondo_status sim_enumerate(void *self, uint32_t *out_count) {
    rondo__sim_settings settings;
    rondo_status status = sim_fault(self, NULL, RONDO__SIM_ENTRY_ENUMERATE, &settings);
    if (!status) *out_count = RONDO__SIM_DEVICES;
    return status;
}

static rondo_status sim_open(void *self, uint32_t index, const char *text, const rondo_device_table **out_table,
                             void **out_device) {
    sim_plugin *plugin = self;
    rondo__sim_settings settings;
    rondo__sim_device *device = NULL;
    if (index >= RONDO__SIM_DEVICES) {
        return RONDO_PLUGIN_FAIL(plugin->host, OUT_OF_RANGE, DRIVER, "sim: there is no device %u", index);
    }
    rondo_status status = sim_fault(plugin, text, RONDO__SIM_ENTRY_OPEN, &settings);
    if (!status) status = rondo__sim_device_open(plugin->host, index, &settings, &device);
    if (status) return status;
    device->plugin_calls = &plugin->calls;
    status = rondo__sim_mutant_open(device);
    if (status) {
        rondo__sim_device_table.close(device);
        return status;
    }
    *out_table = settings.mutation == RONDO__SIM_MUTATION_NONE ? &rondo__sim_fault_device_table
                                                               : &rondo__sim_mutant_device_table;
    *out_device = device;
    return RONDO_OK;
}

static const rondo_backend_table sim_backend_table = {
    .struct_size = sizeof(rondo_backend_table),
    .capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_TREES_CAPABLE | RONDO_DEVICE_HOST_KERNELS,
    .name = "sim",
    .description = "a simulated accelerator; work runs when it is waited for, in an order picked by a seed",
    .enumerate = sim_enumerate,
    .open = sim_open};

static void sim_shutdown(void *self) {
    sim_plugin *plugin = self;
    const rondo_allocator *allocator = &plugin->host->allocator;
    (void)allocator->reallocate(allocator->self, plugin, sizeof *plugin, 0, 0);
}

rondo_status rondo_plugin_entry_sim(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    if (abi < RONDO_PLUGIN_ABI) {
        return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "sim: it needs plugin ABI %u, the host has %u",
                                 RONDO_PLUGIN_ABI, abi);
    }
    sim_plugin *plugin = host->allocator.reallocate(host->allocator.self, NULL, 0, sizeof(sim_plugin), 0);
    if (!plugin) return RONDO_PLUGIN_FAIL(host, OUT_OF_MEMORY, LOADING, "sim: no memory for the plugin");
    memset(plugin, 0, sizeof *plugin);
    plugin->host = host;
    plugin->backend = (rondo_backend){&sim_backend_table, plugin};
    plugin->api = (rondo_plugin_api){.struct_size = sizeof(rondo_plugin_api),
                                     .abi = RONDO_PLUGIN_ABI,
                                     .name = "sim",
                                     .version = RONDO_VERSION_STRING,
                                     .backend_count = 1,
                                     .backends = &plugin->backend,
                                     .self = plugin,
                                     .shutdown = sim_shutdown};
    *out_api = &plugin->api;
    return RONDO_OK;
}
