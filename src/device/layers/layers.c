/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers are wanted, and putting them on each other. */
#include "device/layers/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/layers/layer.h"

#define RONDO__LAYERS_VARIABLE "RONDO_LAYERS"
#define RONDO__LAYERS_DEVICE "{device}"

static const char *const layers_names[RONDO__LAYER_KINDS] = {"validate", "trace"};

/* ----------------------------------------------------------------------------------------------------- reading */

static rondo_status layers_add(rondo__layers *layers, const char *name, size_t length) {
    rondo__layer_kind kind = 0;
    if (length == 4 && memcmp(name, "none", length) == 0) return RONDO_OK;
    while (kind < RONDO__LAYER_KINDS &&
           (strlen(layers_names[kind]) != length || memcmp(layers_names[kind], name, length) != 0)) {
        kind++;
    }
    if (kind == RONDO__LAYER_KINDS) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "setting 'layers': there is no layer '%.*s': there are 'validate' and 'trace'",
                           (int)(length < 64u ? length : 64u), name);
    }
    if (layers->count == RONDO__LAYERS_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "setting 'layers': more than %u layers", RONDO__LAYERS_MAX);
    }
    layers->kinds[layers->count++] = kind;
    return RONDO_OK;
}

static rondo_status layers_add_all(rondo__layers *layers, const char *names, size_t length) {
    while (length) {
        const char *plus = memchr(names, '+', length);
        size_t one = plus ? (size_t)(plus - names) : length;
        RONDO__TRY(layers_add(layers, names, one));
        length -= one + (plus != NULL);
        names += one + (plus != NULL);
    }
    return RONDO_OK;
}

static rondo_status layers_set_file(rondo__layers *layers, const char *file, size_t length) {
    void *memory = NULL;
    if (length == 0) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "setting 'trace' needs a file's name");
    RONDO__TRY(rondo__allocate(&layers->allocator, length + 1u, &memory));
    rondo__string_free(&layers->allocator, layers->trace_file);
    layers->trace_file = memory;
    memcpy(layers->trace_file, file, length);
    layers->trace_file[length] = 0;
    return RONDO_OK;
}

static bool layers_key(const char *setting, size_t length, const char *key) {
    size_t size = strlen(key);
    return length > size && memcmp(setting, key, size) == 0 && setting[size] == '=';
}

/* Takes its own settings; the rest is appended to `rest`. *out_named: whether layers were named. */
static rondo_status layers_take(rondo__layers *layers, const char *settings, char *rest, bool *out_named) {
    *out_named = false;
    while (settings && *settings) {
        size_t length = strcspn(settings, ",");
        size_t next = length + (settings[length] == ',');
        if (layers_key(settings, length, "layers")) {
            *out_named = true;
            RONDO__TRY(layers_add_all(layers, settings + 7, length - 7u));
        } else if (layers_key(settings, length, "trace")) {
            RONDO__TRY(layers_set_file(layers, settings + 6, length - 6u));
        } else if (rest) {
            /* With its comma, so that what is wrong with it is the backend's to say. */
            memcpy(rest, settings, next);
            rest += next;
            *rest = 0;
        } else {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "the environment variable " RONDO__LAYERS_VARIABLE
                               ": '%.*s' is neither a list of layers nor trace=FILE",
                               (int)(length < 64u ? length : 64u), settings);
        }
        settings += next;
    }
    return RONDO_OK;
}

static bool layers_has(const rondo__layers *layers, rondo__layer_kind kind) {
    for (uint32_t i = 0; i < layers->count; i++) {
        if (layers->kinds[i] == kind) return true;
    }
    return false;
}

/* "validate,trace=x" is "layers=validate,trace=x". */
static rondo_status layers_take_variable(rondo__layers *layers, const char *variable) {
    size_t length = strcspn(variable, ",");
    bool named = false;
    RONDO__TRY_NOTE(layers_add_all(layers, variable, length), "from the environment variable " RONDO__LAYERS_VARIABLE);
    return layers_take(layers, variable + length + (variable[length] == ','), NULL, &named);
}

static rondo_status layers_read_all(rondo__layers *layers, const char *settings, char *rest) {
    bool named = false;
    const char *variable = secure_getenv(RONDO__LAYERS_VARIABLE);
    RONDO__TRY(layers_take(layers, settings, rest, &named));
    bool wanted = !named && variable && *variable;
    if (wanted) RONDO__TRY(layers_take_variable(layers, variable));
    if (layers_has(layers, RONDO__LAYER_TRACE) && !layers->trace_file) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "layer 'trace' needs a file to write: add trace=FILE");
    }
    if (!layers_has(layers, RONDO__LAYER_TRACE) && layers->trace_file && !wanted) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "setting 'trace' needs the layer: add layers=trace");
    }
    return RONDO_OK;
}

rondo_status rondo__layers_read(const rondo_allocator *allocator, const char *settings, rondo__layers *out_layers) {
    rondo__layers layers = {.allocator = *allocator};
    char *rest = NULL;
    RONDO__TRY(rondo__string_copy(allocator, settings, &rest));
    size_t size = rest ? strlen(rest) + 1u : 0;
    if (rest) rest[0] = 0;
    rondo_status status = layers_read_all(&layers, settings, rest);
    /* A comma that stood before what was taken out. */
    size_t used = rest ? strlen(rest) : 0, given = settings ? strlen(settings) : 0;
    if (used && used < given && rest[used - 1u] == ',' && settings[given - 1u] != ',') rest[used - 1u] = 0;
    if (!status && rest && *rest) status = rondo__string_copy(allocator, rest, &layers.rest);
    rondo__free(allocator, rest, size);
    if (status) {
        rondo__layers_deinit(&layers);
        return status;
    }
    *out_layers = layers;
    return RONDO_OK;
}

void rondo__layers_deinit(rondo__layers *layers) {
    rondo__string_free(&layers->allocator, layers->rest);
    rondo__string_free(&layers->allocator, layers->trace_file);
    layers->rest = layers->trace_file = NULL;
}

/* ---------------------------------------------------------------------------------------------------- stacking */

/* The file's name with the device's in it. */
static rondo_status layers_file(const rondo__layers *layers, const char *type, uint32_t index, rondo__buffer *name) {
    const char *file = layers->trace_file, *found;
    while ((found = strstr(file, RONDO__LAYERS_DEVICE)) != NULL) {
        RONDO__TRY(rondo__text_append(name, "%.*s%s-%u", (int)(found - file), file, type, index));
        file = found + sizeof RONDO__LAYERS_DEVICE - 1u;
    }
    return rondo__text_append(name, "%s", file);
}

static rondo_status layers_make_trace(const rondo__layers *layers, const rondo__log *log, const char *type,
                                      uint32_t index, const rondo_device_table *table, void *device,
                                      rondo__layer **out_layer) {
    rondo__buffer name;
    char title[96];
    rondo__buffer_init(&name, &layers->allocator, 1, 4096);
    (void)snprintf(title, sizeof title, "%s:%u", type, index);
    rondo_status status = layers_file(layers, type, index, &name);
    if (!status) {
        status = rondo__trace_create(&layers->allocator, log, table, device, rondo__text(&name), title, out_layer);
    }
    rondo__buffer_deinit(&name);
    return status;
}

rondo_status rondo__layers_stack(const rondo__layers *layers, const rondo__log *log, const char *type, uint32_t index,
                                 const rondo_device_table **table, void **device) {
    for (uint32_t i = layers->count; i > 0; i--) {
        rondo__layer_kind kind = layers->kinds[i - 1u];
        rondo__layer *layer = NULL;
        rondo_status status = kind == RONDO__LAYER_TRACE
                                  ? layers_make_trace(layers, log, type, index, *table, *device, &layer)
                                  : rondo__validate_create(&layers->allocator, log, *table, *device, &layer);
        if (status) return rondo__status_note(status, "layer '%s'", layers_names[kind]);
        *table = &layer->table;
        *device = layer;
    }
    return RONDO_OK;
}
