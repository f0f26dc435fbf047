/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin "sim": two devices that hold their work back. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define RONDO__SIM_SEED_VARIABLE "RONDO_SIM_SEED"

rondo_status rondo_plugin_entry_sim(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api);

typedef struct sim_plugin {
    const rondo_host_api *host;
    rondo_backend backend;
    rondo_plugin_api api;
} sim_plugin;

/* The decimal number that is exactly text[0, length). */
static bool sim_parse_number(const char *text, size_t length, uint64_t *out_number) {
    uint64_t number = 0;
    if (!length) return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        if (__builtin_mul_overflow(number, (uint64_t)10, &number)) return false;
        if (__builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number)) return false;
    }
    *out_number = number;
    return true;
}

static rondo_status sim_parse_settings(const rondo_host_api *host, const char *settings, uint64_t *seed,
                                       uint64_t *memory) {
    while (settings && *settings) {
        size_t length = strcspn(settings, ","), key = strcspn(settings, "=,");
        uint64_t *target = NULL;
        if (key == 4 && memcmp(settings, "seed", key) == 0) target = seed;
        if (key == 6 && memcmp(settings, "memory", key) == 0) target = memory;
        if (!target) {
            return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER,
                                     "sim: there is no setting '%.*s': there are 'seed' "
                                     "and 'memory'",
                                     (int)(key < 64 ? key : 64), settings);
        }
        if (key == length || !sim_parse_number(settings + key + 1u, length - key - 1u, target)) {
            return RONDO_PLUGIN_FAIL(host, INVALID_ARGUMENT, DRIVER, "sim: setting '%.*s' needs a whole number",
                                     (int)key, settings);
        }
        settings += length + (settings[length] == ',');
    }
    return RONDO_OK;
}

static rondo_status sim_enumerate(void *self, uint32_t *out_count) {
    (void)self;
    *out_count = RONDO__SIM_DEVICES;
    return RONDO_OK;
}

static rondo_status sim_open(void *self, uint32_t index, const char *settings, const rondo_device_table **out_table,
                             void **out_device) {
    const sim_plugin *plugin = self;
    uint64_t seed = 1, memory = RONDO__SIM_MEMORY;
    rondo__sim_device *device = NULL;
    const char *variable = getenv(RONDO__SIM_SEED_VARIABLE);
    if (index >= RONDO__SIM_DEVICES) {
        return RONDO_PLUGIN_FAIL(plugin->host, OUT_OF_RANGE, DRIVER, "sim: there is no device %u", index);
    }
    if (variable && !sim_parse_number(variable, strlen(variable), &seed)) {
        return RONDO_PLUGIN_FAIL(plugin->host, INVALID_ARGUMENT, DRIVER,
                                 "sim: the environment variable " RONDO__SIM_SEED_VARIABLE " needs a whole number");
    }
    rondo_status status = sim_parse_settings(plugin->host, settings, &seed, &memory);
    if (!status) status = rondo__sim_device_open(plugin->host, index, seed, memory, &device);
    if (status) return status;
    *out_table = &rondo__sim_device_table;
    *out_device = device;
    return RONDO_OK;
}

static const rondo_backend_table sim_backend_table = {
    .struct_size = sizeof(rondo_backend_table),
    .capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_HOST_KERNELS,
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
