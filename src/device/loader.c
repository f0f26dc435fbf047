/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins in files: opened with dlopen, private to this instance's use, and kept until the instance goes. */
#include "device/device.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RONDO__LOADER_FILES_MAX 1024u

static const char *loader_reason(void) {
    const char *reason = dlerror();
    return reason ? reason : "the system gives no reason";
}

/* A plugin's status points to its file's name inside the plugin: one that outlives the plugin must not. */
static rondo_status loader_detach(rondo_status status) {
    rondo_status copy = rondo__status_make(rondo_status_code(status), rondo_status_layer(status), __FILE__,
                                           (int32_t)__LINE__, "%s", rondo_status_message(status));
    for (size_t i = 0; i < rondo_status_note_count(status); i++) {
        copy = rondo__status_note(copy, "%s", rondo_status_note(status, i));
    }
    rondo_status_release(status);
    return copy;
}

rondo_status rondo__registry_load(rondo__registry *registry, const char *path) {
    struct stat info;
    if (!path || !*path) return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "a plugin needs the name of its file");
    if (stat(path, &info) != 0) {
        return RONDO__FAIL(NOT_FOUND, LOADING, "plugin '%s': %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) return RONDO__FAIL(UNSUPPORTED, LOADING, "plugin '%s': it is not a file", path);
    /* dlopen searches the system for names without a slash; a plugin is the very file that was named. */
    size_t size = strlen(path) + sizeof "./";
    void *name = NULL;
    RONDO__TRY(rondo__allocate(&registry->allocator, size, &name));
    (void)snprintf(name, size, "%s%s", strchr(path, '/') ? "" : "./", path);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    rondo__free(&registry->allocator, name, size);
    if (!library) return RONDO__FAIL(UNSUPPORTED, LOADING, "plugin '%s': %s", path, loader_reason());
    rondo_plugin_entry_function entry = NULL;
    void *symbol = dlsym(library, RONDO_PLUGIN_ENTRY_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer to a function */
    rondo_status status;
    if (entry) {
        status = rondo__registry_add(registry, path, entry, library);
    } else {
        status =
            RONDO__FAIL(UNSUPPORTED, LOADING, "plugin '%s': it does not export '%s'", path, RONDO_PLUGIN_ENTRY_SYMBOL);
    }
    if (status) {
        status = loader_detach(status);
        (void)dlclose(library);
    }
    return status;
}

/* What cannot be used is no reason to fail: nobody asked for it by name. */
static rondo_status loader_try(rondo__registry *registry, const char *path) {
    char text[512];
    rondo_status status = rondo__registry_load(registry, path);
    if (!status || rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    (void)rondo_status_format(status, text, sizeof text);
    rondo__log_write(registry->log, RONDO_LOG_WARNING, "left out of the plugin path: %s", text);
    rondo_status_release(status);
    return RONDO_OK;
}

static int loader_compare(const void *a, const void *b) {
    char *const *left = a;
    char *const *right = b;
    return strcmp(*left, *right);
}

/* Collects "folder/name.so" of every such file. */
static rondo_status loader_list(rondo__registry *registry, DIR *folder, const char *path, rondo__buffer *names) {
    const struct dirent *item;
    while ((item = readdir(folder)) != NULL) {
        size_t length = strlen(item->d_name);
        size_t size = strlen(path) + 1u + length + 1u;
        void *name = NULL;
        if (length <= 3 || strcmp(item->d_name + length - 3, ".so") != 0) continue;
        RONDO__TRY(rondo__allocate(&registry->allocator, size, &name));
        (void)snprintf(name, size, "%s/%s", path, item->d_name);
        rondo_status status = rondo__buffer_append(names, &name, 1);
        if (status) {
            rondo__free(&registry->allocator, name, size);
            return status;
        }
    }
    return RONDO_OK;
}

static rondo_status loader_folder(rondo__registry *registry, const char *path) {
    rondo__buffer names;
    DIR *folder = opendir(path);
    if (!folder && errno == ENOMEM) return RONDO__FAIL(OUT_OF_MEMORY, LOADING, "no memory to read folder '%s'", path);
    if (!folder) {
        rondo__log_write(registry->log, RONDO_LOG_WARNING, "plugin path: folder '%s': %s", path, strerror(errno));
        return RONDO_OK;
    }
    rondo__buffer_init(&names, &registry->allocator, sizeof(char *), RONDO__LOADER_FILES_MAX);
    rondo_status status = loader_list(registry, folder, path, &names);
    (void)closedir(folder);
    if (names.count) qsort(names.data, names.count, sizeof(char *), loader_compare);
    for (size_t i = 0; i < names.count; i++) {
        char *name = *RONDO__BUFFER_AT(&names, char *, i);
        if (!status) status = loader_try(registry, name);
        rondo__string_free(&registry->allocator, name);
    }
    rondo__buffer_deinit(&names);
    return status;
}

rondo_status rondo__registry_load_path(rondo__registry *registry, const char *path) {
    while (path && *path) {
        size_t length = strcspn(path, ":");
        void *item = NULL;
        struct stat info;
        RONDO__TRY(rondo__allocate_zeroed(&registry->allocator, length + 1u, &item));
        memcpy(item, path, length);
        rondo_status status = RONDO_OK;
        if (length) {
            bool folder = stat(item, &info) == 0 && S_ISDIR(info.st_mode);
            status = folder ? loader_folder(registry, item) : loader_try(registry, item);
        }
        rondo__free(&registry->allocator, item, length + 1u);
        RONDO__TRY(status);
        path += length + (path[length] == ':');
    }
    return RONDO_OK;
}
