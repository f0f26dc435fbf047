/* SPDX-License-Identifier: Apache-2.0
 *
 * An instance is the world: where memory comes from, where lines go, which plugins there are. Two of them in a process
 * know nothing of each other. */
#include <stdlib.h>

#include "base/instance.h"
#include "base/sized.h"
#include "instance/embedded.h"
#include "memory/memory.h"
#include "ops/operators.h"

#define RONDO__INSTANCE_PATH "RONDO_PLUGIN_PATH"
#define RONDO__INSTANCE_OPERATOR_PATH "RONDO_OPERATOR_PATH"

struct rondo_instance {
    rondo__instance_base base; /* first: other rooms see an instance as its base */
    rondo__ref_count references;
    rondo__registry registry;
};

const char *rondo_version(void) { return RONDO_VERSION_STRING; }

rondo__registry *rondo__instance_registry(rondo_instance *instance) { return &instance->registry; }

static rondo_status instance_load(rondo__registry *registry, rondo__shared *operators,
                                  const rondo_instance_options *options) {
    RONDO__TRY(rondo__registry_add_catalogue(registry, rondo__operators_catalogue(operators)));
    for (const rondo__embedded_plugin *plugin = rondo__embedded_plugins; plugin->name; plugin++) {
        RONDO__TRY(rondo__registry_add(registry, plugin->name, plugin->entry, NULL));
    }
    for (uint32_t i = 0; i < options->plugin_count; i++) {
        RONDO__TRY(rondo__registry_load(registry, options->plugins[i]));
    }
    /* A program with raised rights does not let its caller choose code: then there is no path. */
    if (!options->ignore_plugin_path) {
        RONDO__TRY(rondo__registry_load_path(registry, secure_getenv(RONDO__INSTANCE_PATH)));
        RONDO__TRY(rondo__operators_load_path(operators, secure_getenv(RONDO__INSTANCE_OPERATOR_PATH)));
    }
    return RONDO_OK;
}

/* `options` holds the defaults. */
static rondo_status instance_read_options(const rondo_instance_options *given, rondo_instance_options *options) {
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_INPUT, "rondo_instance_options", given, options, sizeof *options));
    if (options->plugin_count && !options->plugins) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "instance options count %u plugins and list none",
                           options->plugin_count);
    }
    if (options->allocator && !options->allocator->reallocate) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the allocator of the instance options has no function");
    }
    return RONDO_OK;
}

static void instance_destroy(rondo_instance *instance) {
    rondo_allocator allocator = instance->base.allocator;
    rondo__registry_deinit(&instance->registry);
    rondo__shared_release(instance->base.operators);
    rondo__mutex_deinit(&instance->base.trees_mutex);
    rondo__free(&allocator, instance, sizeof *instance);
}

rondo_status rondo_instance_create(const rondo_instance_options *given, rondo_instance **out_instance) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    void *memory = NULL;
    if (!out_instance) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "there is no place for the instance");
    RONDO__TRY(instance_read_options(given, &options));
    rondo_allocator allocator = options.allocator ? *options.allocator : rondo_allocator_default();
    RONDO__TRY(rondo__allocate_zeroed(&allocator, sizeof(rondo_instance), &memory));
    rondo_instance *instance = memory;
    instance->base.allocator = allocator;
    instance->base.log = (rondo__log){options.log, options.log_user, options.log_level};
    rondo__mutex_init(&instance->base.trees_mutex);
    rondo__ref_init(&instance->references);
    rondo_status status = rondo__operators_create(&allocator, &instance->base.log, &instance->base.operators);
    if (!status) status = rondo__registry_init(&instance->registry, &allocator, &instance->base.log);
    if (status) {
        rondo__shared_release(instance->base.operators);
        rondo__mutex_deinit(&instance->base.trees_mutex);
        rondo__free(&allocator, instance, sizeof *instance);
        return status;
    }
    status = instance_load(&instance->registry, instance->base.operators, &options);
    if (status) {
        instance_destroy(instance);
        return status;
    }
    *out_instance = instance;
    return RONDO_OK;
}

void rondo_instance_retain(rondo_instance *instance) {
    if (instance) rondo__ref_retain(&instance->references);
}

void rondo_instance_release(rondo_instance *instance) {
    if (instance && rondo__ref_release(&instance->references)) instance_destroy(instance);
}

static void instance_drop_memory(rondo_device *device) {
    rondo__memory_destroy(device->memory);
    device->memory = NULL;
}

static rondo_status instance_check_ranges(rondo_device *device, uint64_t a, uint64_t b, uint64_t bytes) {
    return rondo__memory_check_ranges(device->memory, a, b, bytes);
}

/* Nobody finds the device before its memory is there: both happen under open_mutex. */
static rondo_status instance_open(rondo_instance *instance, const char *name, const char *settings,
                                  rondo_device **out_device, bool *out_drop) {
    rondo_device *device = NULL;
    RONDO__TRY(rondo__device_open(&instance->registry, instance, name, settings, &device));
    if (!device->memory) {
        rondo_status status = rondo__memory_create(device, &device->memory);
        if (status) {
            *out_drop = rondo__device_release_locked(device);
            return status;
        }
        device->on_release = instance_drop_memory;
        device->check_ranges = instance_check_ranges;
    }
    *out_device = device;
    return RONDO_OK;
}

rondo_status rondo_device_open(rondo_instance *instance, const char *name, const char *settings,
                               rondo_device **out_device) {
    bool drop = false;
    if (!instance || !name || !out_device) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "opening a device needs an instance, a name and a place for it");
    }
    rondo__mutex_lock(&instance->registry.open_mutex);
    rondo_status status = instance_open(instance, name, settings, out_device, &drop);
    rondo__mutex_unlock(&instance->registry.open_mutex);
    if (drop) rondo_instance_release(instance);
    return status;
}
