/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights beside the model. One rule for where they may be, asked of the final path and not of how the name looks:
 * after every link is followed, the file must lie in the allowed folder (the model's own, or the wider one that the
 * caller gave). Names are resolved beside the path that the caller gave for the model, links in it unfollowed, so that
 * a cache of links works once its root is allowed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "import/onnx/onnx.h"

#define EXTERNAL_LOCATION_MAX 4096u

void rondo__onnx_store_init(rondo__onnx_store *store, const rondo_allocator *allocator, const char *model,
                            const char *root) {
    memset(store, 0, sizeof *store);
    store->allocator = *allocator;
    store->model = model;
    store->root = root;
    store->descriptor = -1;
}

static void external_close(rondo__onnx_store *store) {
    if (store->descriptor >= 0) (void)close(store->descriptor);
    store->descriptor = -1;
    rondo__string_free(&store->allocator, store->location);
    store->location = NULL;
}

void rondo__onnx_store_deinit(rondo__onnx_store *store) {
    external_close(store);
    rondo__string_free(&store->allocator, store->folder);
    rondo__string_free(&store->allocator, store->allowed);
    store->folder = store->allowed = NULL;
}

/* Digits alone: no sign, no space, no exponent. */
static bool external_number(rondo__pb_bytes text, uint64_t *out) {
    if (!text.size) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9 || !rondo__checked_mul_u64(value, 10, &value) || !rondo__checked_add_u64(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

static rondo_status external_value(rondo__onnx_context *context, rondo__pb_bytes key, rondo__pb_bytes value,
                                   rondo__onnx_external *external) {
    bool *seen = NULL;
    uint64_t *number = NULL;
    if (rondo__import_is(key, "location")) {
        seen = &external->has_location;
        external->location = value;
    } else if (rondo__import_is(key, "offset")) {
        seen = &external->has_offset;
        number = &external->offset;
    } else if (rondo__import_is(key, "length")) {
        seen = &external->has_length;
        number = &external->length;
    } else if (rondo__import_is(key, "checksum")) {
        seen = &external->has_checksum;
    } else {
        return RONDO__FAIL(CORRUPT, FILE, "external data has an unknown key '%s'", rondo__onnx_shown(context, key));
    }
    if (*seen) return RONDO__FAIL(CORRUPT, FILE, "external data gives '%s' twice", rondo__onnx_shown(context, key));
    *seen = true;
    if (number && !external_number(value, number))
        return RONDO__FAIL(CORRUPT, FILE, "external data: %s '%s' is not an unsigned 64-bit number in decimal digits",
                           rondo__onnx_shown(context, key), rondo__onnx_shown(context, value));
    return RONDO_OK;
}

rondo_status rondo__onnx_external_entry(rondo__onnx_context *context, const rondo__pb_reader *reader,
                                        rondo__onnx_external *external) {
    rondo__pb_reader entry = *reader;
    rondo__pb_field field;
    rondo__pb_bytes key = {0}, value = {0};
    while (rondo__pb_next(&entry, &field)) {
        if (field.number != 1 && field.number != 2) continue;
        RONDO__TRY(rondo__pb_once(&entry, &field));
        RONDO__TRY(rondo__pb_get_text(&entry, &field, field.number == 1 ? &key : &value));
    }
    RONDO__TRY(rondo__pb_end(&entry));
    return external_value(context, key, value, external);
}

/* What can be said without looking at the disk. */
rondo_status rondo__onnx_external_check(rondo__onnx_context *context, const rondo__onnx_tensor *tensor) {
    const rondo__onnx_external *external = &tensor->external;
    rondo__pb_bytes location = external->location;
    if (!external->has_location || !location.size)
        return RONDO__FAIL(CORRUPT, FILE, "external data without a location");
    if (tensor->dtype == RONDO_DTYPE_STRING) return RONDO__FAIL(CORRUPT, FILE, "strings cannot be external data");
    const char *shown = rondo__onnx_shown(context, location);
    if (location.size > EXTERNAL_LOCATION_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "external data: the location '%s' has %zu bytes; at most %u are allowed",
                           shown, location.size, EXTERNAL_LOCATION_MAX);
    if (location.data[0] == '/')
        return RONDO__FAIL(CORRUPT, FILE,
                           "external data: the location '%s' is absolute; it must be relative to the model", shown);
    if (memchr(location.data, '\\', location.size) || (location.size > 1 && location.data[1] == ':'))
        return RONDO__FAIL(CORRUPT, FILE,
                           "external data: the location '%s' has a backslash or a drive; names are separated by '/'",
                           shown);
    if (external->has_length && external->length != tensor->bytes)
        return RONDO__FAIL(CORRUPT, FILE, "external data has length %llu, but its type needs %zu bytes",
                           (unsigned long long)external->length, tensor->bytes);
    uint64_t end;
    if (!rondo__checked_add_u64(external->offset, tensor->bytes, &end))
        return RONDO__FAIL(CORRUPT, FILE, "external data: offset %llu and %zu bytes exceed 64 bits",
                           (unsigned long long)external->offset, tensor->bytes);
    if (!context->store.model)
        return RONDO__FAIL(UNSUPPORTED, FILE,
                           "external data '%s' cannot be found for a model in memory: import it from its file", shown);
    return RONDO_OK;
}

/* Whether the name climbs out of the folder at any place on its way, were there no links. */
static bool external_climbs(const char *location) {
    long depth = 0;
    while (*location) {
        size_t length = strcspn(location, "/");
        if (length == 2 && location[0] == '.' && location[1] == '.') depth--;
        else if (length && !(length == 1 && location[0] == '.')) depth++;
        if (depth < 0) return true;
        location += length;
        location += strspn(location, "/");
    }
    return false;
}

/* The folder part of the model's path. */
static rondo_status external_folder(rondo__onnx_store *store) {
    const char *slash = strrchr(store->model, '/');
    const char *from = slash ? store->model : ".";
    size_t length = !slash || slash == store->model ? 1 : (size_t)(slash - store->model);
    void *folder = NULL;
    RONDO__TRY(rondo__allocate(&store->allocator, length + 1, &folder));
    memcpy(folder, from, length);
    ((char *)folder)[length] = '\0';
    store->folder = folder;
    return RONDO_OK;
}

static rondo_status external_prepare(rondo__onnx_store *store) {
    if (store->allowed) return RONDO_OK;
    if (!store->folder) RONDO__TRY(external_folder(store));
    char real[PATH_MAX], buffer[128];
    const char *root = store->root ? store->root : store->folder;
    if (!realpath(root, real))
        return RONDO__FAIL(NOT_FOUND, FILE, "the folder '%.300s' for external data: %s", root,
                           strerror_r(errno, buffer, sizeof buffer));
    return rondo__string_copy(&store->allocator, real, &store->allowed);
}

static bool external_inside(const char *folder, const char *path) {
    size_t length = strlen(folder);
    if (length == 1) return path[0] == '/'; /* everything is in the root */
    return strncmp(folder, path, length) == 0 && path[length] == '/';
}

static rondo_status external_open_real(rondo__onnx_store *store, const char *shown, const char *path) {
    char real[PATH_MAX], buffer[128];
    if (!realpath(path, real)) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        const char *reason = strerror_r(errno, buffer, sizeof buffer);
        if (absent)
            return RONDO__FAIL(NOT_FOUND, FILE, "external data '%s' is not beside the model: %s", shown, reason);
        return RONDO__FAIL(IO, FILE, "external data '%s' cannot be opened: %s", shown, reason);
    }
    if (!external_inside(store->allowed, real)) {
        if (store->root)
            return RONDO__FAIL(
                CORRUPT, FILE,
                "external data '%s' leads to '%.200s', outside the folder '%.200s' that external_root allows", shown,
                real, store->allowed);
        return RONDO__FAIL(CORRUPT, FILE,
                           "external data '%s' is a link that leads to '%.200s', outside the model's folder '%.200s'; "
                           "external_root may allow a wider folder",
                           shown, real, store->allowed);
    }
    /* The path has no link left in it: one that appears now was put there after we looked. */
    return rondo__import_file_open(real, O_NOFOLLOW, &store->descriptor, &store->size);
}

static rondo_status external_open(rondo__onnx_context *context, rondo__pb_bytes location) {
    rondo__onnx_store *store = &context->store;
    if (store->location && rondo__import_is(location, store->location)) return RONDO_OK;
    external_close(store);
    RONDO__TRY(external_prepare(store));
    const char *shown = rondo__onnx_shown(context, location);
    const char *name;
    RONDO__TRY(rondo__import_text(&context->scratch, location, &name));
    if (!store->root && external_climbs(name))
        return RONDO__FAIL(
            CORRUPT, FILE,
            "external data '%s' leaves the model's folder '%.300s'; external_root may allow a wider folder", shown,
            store->allowed);
    size_t folder = strlen(store->folder);
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate(&context->scratch, folder + location.size + 2, &memory));
    char *path = memory;
    memcpy(path, store->folder, folder);
    path[folder] = '/';
    memcpy(path + folder + 1, name, location.size + 1);
    RONDO__TRY(external_open_real(store, shown, path));
    rondo_status status = rondo__string_copy(&store->allocator, name, &store->location);
    if (status) external_close(store);
    return status;
}

rondo_status rondo__onnx_external_fill(rondo__onnx_context *context, const rondo__onnx_tensor *tensor, void *out) {
    const rondo__onnx_store *store = &context->store;
    return rondo__import_file_fill(store->descriptor, store->location, tensor->external.offset, out, tensor->bytes);
}

rondo_status rondo__onnx_external_locate(rondo__onnx_context *context, const rondo__onnx_tensor *tensor) {
    const rondo__onnx_external *external = &tensor->external;
    RONDO__TRY(external_open(context, external->location));
    const rondo__onnx_store *store = &context->store;
    if (external->offset <= store->size && tensor->bytes <= store->size - external->offset) return RONDO_OK;
    uint8_t start[64] = {0};
    size_t size = store->size < sizeof start ? (size_t)store->size : sizeof start;
    RONDO__TRY(rondo__import_file_fill(store->descriptor, store->location, 0, start, size));
    return RONDO__FAIL(CORRUPT, FILE, "external data needs bytes %llu to %llu of '%s', which has %llu%s",
                       (unsigned long long)external->offset, (unsigned long long)(external->offset + tensor->bytes),
                       rondo__onnx_shown(context, external->location), (unsigned long long)store->size,
                       rondo__import_file_is_pointer(start, size)
                           ? " and is the small text that stands for a large file: fetch the file itself"
                           : "");
}
