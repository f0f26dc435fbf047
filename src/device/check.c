/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what a plugin hands over is whole. Everything the core will ever call without asking again is looked at once,
 * here, as data: a list of mandatory entries for each table. */
#include "device/device.h"

#include <string.h>

#define RONDO__CHECK_NAME_MAX 63u

typedef struct check_entry {
    const char *name;
    size_t offset;
} check_entry;

#define RONDO__CHECK(type, field) \
    { #field, offsetof(type, field) }

static const check_entry check_backend[] = {RONDO__CHECK(rondo_backend_table, name),
                                            RONDO__CHECK(rondo_backend_table, description),
                                            RONDO__CHECK(rondo_backend_table, enumerate),
                                            RONDO__CHECK(rondo_backend_table, open),
                                            {NULL, 0}};

static const check_entry check_catalogue[] = {RONDO__CHECK(rondo_catalogue_table, name),
                                              RONDO__CHECK(rondo_catalogue_table, kernel_set),
                                              RONDO__CHECK(rondo_catalogue_table, operator_at),
                                              RONDO__CHECK(rondo_catalogue_table, find),
                                              RONDO__CHECK(rondo_catalogue_table, prepare),
                                              RONDO__CHECK(rondo_catalogue_table, release),
                                              {NULL, 0}};

static const check_entry check_device[] = {RONDO__CHECK(rondo_device_table, memory),
                                           RONDO__CHECK(rondo_device_table, stream),
                                           RONDO__CHECK(rondo_device_table, properties),
                                           RONDO__CHECK(rondo_device_table, memory_info),
                                           RONDO__CHECK(rondo_device_table, catalogue_at),
                                           RONDO__CHECK(rondo_device_table, close),
                                           {NULL, 0}};

static const check_entry check_memory[] = {
    RONDO__CHECK(rondo_memory_table, allocate), RONDO__CHECK(rondo_memory_table, free), {NULL, 0}};

static const check_entry check_stream[] = {RONDO__CHECK(rondo_stream_table, create),
                                           RONDO__CHECK(rondo_stream_table, destroy),
                                           RONDO__CHECK(rondo_stream_table, launch),
                                           RONDO__CHECK(rondo_stream_table, copy),
                                           RONDO__CHECK(rondo_stream_table, fill),
                                           RONDO__CHECK(rondo_stream_table, host_call),
                                           RONDO__CHECK(rondo_stream_table, synchronize),
                                           RONDO__CHECK(rondo_stream_table, query),
                                           RONDO__CHECK(rondo_stream_table, event_create),
                                           RONDO__CHECK(rondo_stream_table, event_destroy),
                                           RONDO__CHECK(rondo_stream_table, event_record),
                                           RONDO__CHECK(rondo_stream_table, event_wait),
                                           RONDO__CHECK(rondo_stream_table, event_query),
                                           RONDO__CHECK(rondo_stream_table, event_synchronize),
                                           {NULL, 0}};

/* Every table starts with struct_size, and holds pointers of one size at the offsets listed. */
static rondo_status check_table(const char *origin, const char *what, const void *table, size_t size,
                                const check_entry *entries) {
    uint32_t struct_size;
    if (!table) return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': it has no %s table", origin, what);
    memcpy(&struct_size, table, sizeof struct_size);
    if (struct_size < size) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': its %s table has a struct_size of %u bytes, %zu are needed",
                           origin, what, struct_size, size);
    }
    for (const check_entry *entry = entries; entry->name; entry++) {
        void *value;
        memcpy(&value, (const char *)table + entry->offset, sizeof value);
        if (!value) {
            return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': the entry '%s' of its %s table is null", origin,
                               entry->name, what);
        }
    }
    return RONDO_OK;
}

static rondo_status check_name(const char *origin, const char *what, const char *name) {
    size_t length = 0;
    for (; name[length] && length <= RONDO__CHECK_NAME_MAX; length++) {
        char c = name[length];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': the %s name '%.64s' has characters other than a-z 0-9 _",
                               origin, what, name);
        }
    }
    if (length == 0 || length > RONDO__CHECK_NAME_MAX) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': a %s name needs 1 to %u characters", origin, what,
                           RONDO__CHECK_NAME_MAX);
    }
    return RONDO_OK;
}

static rondo_status check_lists(const char *origin, const rondo_plugin_api *api) {
    if (api->backend_count > RONDO__REGISTRY_TYPES_MAX || api->catalogue_count > RONDO__REGISTRY_CATALOGUES_MAX) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': it offers %u backends and %u catalogues, more than %u or %u",
                           origin, api->backend_count, api->catalogue_count, RONDO__REGISTRY_TYPES_MAX,
                           RONDO__REGISTRY_CATALOGUES_MAX);
    }
    if ((api->backend_count && !api->backends) || (api->catalogue_count && !api->catalogues)) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': its list of %s is null", origin,
                           api->backend_count && !api->backends ? "backends" : "catalogues");
    }
    return RONDO_OK;
}

rondo_status rondo__plugin_check(const char *origin, const rondo_plugin_api *api) {
    if (!api) return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': its entry succeeded and gave no api", origin);
    if (api->struct_size < sizeof *api) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': its api has a struct_size of %u bytes, %zu are needed",
                           origin, api->struct_size, sizeof *api);
    }
    if (api->abi != RONDO_PLUGIN_ABI) {
        return RONDO__FAIL(UNSUPPORTED, LOADING, "plugin '%s': it was made for plugin ABI %u, this library has %u",
                           origin, api->abi, RONDO_PLUGIN_ABI);
    }
    if (!api->name || !api->version) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': the entry '%s' of its api is null", origin,
                           api->name ? "version" : "name");
    }
    RONDO__TRY(check_lists(origin, api));
    for (uint32_t i = 0; i < api->backend_count; i++) {
        const rondo_backend_table *table = api->backends[i].table;
        RONDO__TRY(check_table(origin, "backend", table, sizeof *table, check_backend));
        RONDO__TRY(check_name(origin, "device type", table->name));
    }
    for (uint32_t i = 0; i < api->catalogue_count; i++) {
        const rondo_catalogue_table *table = api->catalogues[i].table;
        RONDO__TRY(check_table(origin, "catalogue", table, sizeof *table, check_catalogue));
        RONDO__TRY(check_name(origin, "catalogue", table->name));
    }
    return RONDO_OK;
}

rondo_status rondo__plugin_check_device(const char *type, const rondo_device_table *table) {
    RONDO__TRY(check_table(type, "device", table, sizeof *table, check_device));
    RONDO__TRY(check_table(type, "memory", table->memory, sizeof *table->memory, check_memory));
    RONDO__TRY(check_table(type, "stream", table->stream, sizeof *table->stream, check_stream));
    if ((table->stream->condition_begin == NULL) != (table->stream->condition_end == NULL)) {
        return RONDO__FAIL(CORRUPT, LOADING,
                           "plugin '%s': condition_begin and condition_end of its stream table go together", type);
    }
    if ((table->memory->host_allocate == NULL) != (table->memory->host_free == NULL)) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': host_allocate and host_free of its memory table go together",
                           type);
    }
    if (table->load && (!table->module_kernel || !table->unload)) {
        return RONDO__FAIL(CORRUPT, LOADING, "plugin '%s': load of its device table needs module_kernel and unload",
                           type);
    }
    return RONDO_OK;
}
