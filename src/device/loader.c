/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins in files: opened with dlopen, private to this instance's use, and kept until the instance goes. */
#include "base/search.h"
#include "device/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static rondo_status loader_visit(void *user, const char *file) { return rondo__registry_load(user, file); }

rondo_status rondo__registry_load_path(rondo__registry *registry, const char *path) {
    return rondo__search_path(&registry->allocator, registry->log, "plugin path", path, loader_visit, registry);
}
