/* SPDX-License-Identifier: Apache-2.0
 *
 * Which device types and kernel catalogues an instance knows, and the services it gives to plugins.
 *
 * Room for everything is taken when the registry is made, so that adding a plugin never moves what others point to and
 * a plugin that is refused leaves nothing behind. */
#include "device/device.h"

#include <dlfcn.h>
#include <string.h>

static void registry_host_log(void *host, rondo_log_level level, const char *text) {
    const rondo__registry *registry = host;
    rondo__log_write(registry->log, level, "%s", text);
}

static rondo_status registry_host_find_catalogue(void *host, const char *name, rondo_catalogue *out_catalogue) {
    return rondo__registry_catalogue(host, name, out_catalogue);
}

rondo_status rondo__registry_init(rondo__registry *registry, const rondo_allocator *allocator, const rondo__log *log) {
    *registry = (rondo__registry){0};
    registry->allocator = *allocator;
    registry->log = log;
    rondo__buffer_init(&registry->entries, allocator, sizeof(rondo__registry_entry), RONDO__REGISTRY_TYPES_MAX);
    rondo__buffer_init(&registry->catalogues, allocator, sizeof(rondo_catalogue), RONDO__REGISTRY_CATALOGUES_MAX);
    rondo__buffer_init(&registry->plugins, allocator, sizeof(rondo__registry_plugin), RONDO__REGISTRY_PLUGINS_MAX);
    rondo_status status = rondo__buffer_reserve(&registry->entries, RONDO__REGISTRY_TYPES_MAX);
    if (!status) status = rondo__buffer_reserve(&registry->catalogues, RONDO__REGISTRY_CATALOGUES_MAX);
    if (!status) status = rondo__buffer_reserve(&registry->plugins, RONDO__REGISTRY_PLUGINS_MAX);
    if (status) {
        rondo__buffer_deinit(&registry->entries);
        rondo__buffer_deinit(&registry->catalogues);
        rondo__buffer_deinit(&registry->plugins);
        return status;
    }
    registry->next_id = 1;
    registry->host_api = (rondo_host_api){.struct_size = sizeof(rondo_host_api),
                                          .abi = RONDO_PLUGIN_ABI,
                                          .host = registry,
                                          .allocator = *allocator,
                                          .status_make = rondo__status_make,
                                          .status_note = rondo__status_note,
                                          .status_code = rondo_status_code,
                                          .status_release = rondo_status_release,
                                          .log = registry_host_log,
                                          .find_catalogue = registry_host_find_catalogue};
    rondo__mutex_init(&registry->mutex);
    rondo__mutex_init(&registry->open_mutex);
    return RONDO_OK;
}

void rondo__registry_deinit(rondo__registry *registry) {
    for (size_t i = 0; i < registry->entries.count; i++) {
        rondo__registry_entry *entry = RONDO__BUFFER_AT(&registry->entries, rondo__registry_entry, i);
        rondo__free(&registry->allocator, entry->devices, entry->device_count * sizeof *entry->devices);
    }
    for (size_t i = registry->plugins.count; i > 0; i--) {
        const rondo__registry_plugin *plugin = RONDO__BUFFER_AT(&registry->plugins, rondo__registry_plugin, i - 1u);
        if (plugin->api->shutdown) plugin->api->shutdown(plugin->api->self);
        if (plugin->library) (void)dlclose(plugin->library);
    }
    rondo__buffer_deinit(&registry->entries);
    rondo__buffer_deinit(&registry->catalogues);
    rondo__buffer_deinit(&registry->plugins);
    rondo__mutex_deinit(&registry->mutex);
    rondo__mutex_deinit(&registry->open_mutex);
}

static const rondo_catalogue *registry_find_catalogue(const rondo__registry *registry, const char *name) {
    for (size_t i = 0; i < registry->catalogues.count; i++) {
        const rondo_catalogue *catalogue = RONDO__BUFFER_AT(&registry->catalogues, rondo_catalogue, i);
        if (strcmp(catalogue->table->name, name) == 0) return catalogue;
    }
    return NULL;
}

static rondo__registry_entry *registry_find_entry(const rondo__registry *registry, const char *type) {
    for (size_t i = 0; i < registry->entries.count; i++) {
        rondo__registry_entry *entry = RONDO__BUFFER_AT(&registry->entries, rondo__registry_entry, i);
        if (strcmp(entry->backend.table->name, type) == 0) return entry;
    }
    return NULL;
}

static rondo_status registry_taken(const char *origin, const char *what, const char *name) {
    return RONDO__FAIL(ALREADY_EXISTS, LOADING, "plugin '%s': the %s '%s' is there already", origin, what, name);
}

/* Appends the plugin's backends and catalogues one by one. The caller takes back what was added when it fails. */
static rondo_status registry_append(rondo__registry *registry, const char *origin, const rondo_plugin_api *api) {
    for (uint32_t i = 0; i < api->backend_count; i++) {
        rondo__registry_entry entry = {.backend = api->backends[i]};
        const char *name = entry.backend.table->name;
        if (registry_find_entry(registry, name)) return registry_taken(origin, "device type", name);
        RONDO__TRY_NOTE(rondo__buffer_append(&registry->entries, &entry, 1), "plugin '%s': device type '%s'", origin,
                        name);
    }
    for (uint32_t i = 0; i < api->catalogue_count; i++) {
        const char *name = api->catalogues[i].table->name;
        if (registry_find_catalogue(registry, name)) return registry_taken(origin, "catalogue", name);
        RONDO__TRY_NOTE(rondo__buffer_append(&registry->catalogues, &api->catalogues[i], 1),
                        "plugin '%s': catalogue '%s'", origin, name);
    }
    return RONDO_OK;
}

static rondo_status registry_register(rondo__registry *registry, const char *origin, const rondo_plugin_api *api,
                                      void *library) {
    rondo__registry_plugin plugin = {api, library};
    rondo__mutex_lock(&registry->mutex);
    size_t entries = registry->entries.count, catalogues = registry->catalogues.count;
    rondo_status status = registry_append(registry, origin, api);
    if (!status) status = rondo__buffer_append(&registry->plugins, &plugin, 1);
    if (status) {
        registry->entries.count = entries;
        registry->catalogues.count = catalogues;
    }
    rondo__mutex_unlock(&registry->mutex);
    return status;
}

bool rondo__registry_catalogue_at(rondo__registry *registry, uint32_t index, rondo_catalogue *out_catalogue) {
    rondo__mutex_lock(&registry->mutex);
    bool there = index < registry->catalogues.count;
    if (there) *out_catalogue = *RONDO__BUFFER_AT(&registry->catalogues, rondo_catalogue, index);
    rondo__mutex_unlock(&registry->mutex);
    return there;
}

rondo_status rondo__registry_add_catalogue(rondo__registry *registry, rondo_catalogue catalogue) {
    rondo__mutex_lock(&registry->mutex);
    rondo_status status = rondo__buffer_append(&registry->catalogues, &catalogue, 1);
    rondo__mutex_unlock(&registry->mutex);
    return status;
}

rondo_status rondo__registry_add(rondo__registry *registry, const char *origin, rondo_plugin_entry_function entry,
                                 void *library) {
    const rondo_plugin_api *api = NULL;
    RONDO__TRY_NOTE(entry(RONDO_PLUGIN_ABI, &registry->host_api, &api), "plugin '%s'", origin);
    rondo_status status = rondo__plugin_check(origin, api);
    if (!status) status = registry_register(registry, origin, api, library);
    /* An api of another ABI may lay out its shutdown differently: then it is left alone. */
    if (status && api && api->struct_size >= sizeof *api && api->abi == RONDO_PLUGIN_ABI && api->shutdown) {
        api->shutdown(api->self);
    }
    return status;
}

rondo__registry_entry *rondo__registry_find(rondo__registry *registry, const char *type) {
    rondo__mutex_lock(&registry->mutex);
    rondo__registry_entry *entry = registry_find_entry(registry, type);
    rondo__mutex_unlock(&registry->mutex);
    return entry;
}

rondo_status rondo__registry_catalogue(rondo__registry *registry, const char *name, rondo_catalogue *out_catalogue) {
    if (!name || !out_catalogue) return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "a catalogue is asked for by name");
    rondo__mutex_lock(&registry->mutex);
    const rondo_catalogue *catalogue = registry_find_catalogue(registry, name);
    if (catalogue) *out_catalogue = *catalogue;
    rondo__mutex_unlock(&registry->mutex);
    if (catalogue) return RONDO_OK;
    return RONDO__FAIL(NOT_FOUND, LOADING, "no plugin has registered a kernel catalogue '%s'", name);
}

uint64_t rondo__registry_next_id(rondo__registry *registry) {
    rondo__mutex_lock(&registry->mutex);
    uint64_t id = registry->next_id++;
    rondo__mutex_unlock(&registry->mutex);
    return id;
}
