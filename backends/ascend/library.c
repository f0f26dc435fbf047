/* SPDX-License-Identifier: Apache-2.0
 *
 * libascendcl, opened at run time: RONDO_ACL_LIBRARY alone where it is set, else libascendcl.so, else libacl_rt.so, as the
 * dynamic linker finds them. It is never closed: its threads would not survive it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

static const struct {
    int group;
    size_t offset;
    const char *name;
} library_symbols[] = {
#define ACL_SYMBOL(group, result, name, arguments) \
    {RONDO__ASCEND_GROUP_##group, offsetof(rondo__ascend_api, name), #name},
#include "symbols.def"
};
enum { LIBRARY_SYMBOLS = sizeof library_symbols / sizeof library_symbols[0] };

static void library_resolve(rondo__ascend_library *library) {
    for (int i = 0; i < LIBRARY_SYMBOLS; i++) {
        void *symbol = dlsym(library->handle, library_symbols[i].name);
        memcpy((char *)&library->api + library_symbols[i].offset, &symbol, sizeof symbol);
        const char **lacks = &library->lacks[library_symbols[i].group];
        if (!symbol && !*lacks) *lacks = library_symbols[i].name;
    }
}

/* What is said of the last file that was tried, in one line. */
static void library_load(rondo__ascend_library *library, char *why, size_t capacity) {
    static const char *const names[] = {"libascendcl.so", "libacl_rt.so"};
    const char *chosen = getenv("RONDO_ACL_LIBRARY");
    bool only = chosen && *chosen;
    size_t used = 0;
    for (size_t i = 0; i < (only ? 1u : sizeof names / sizeof names[0]) && !library->handle; i++) {
        const char *name = only ? chosen : names[i];
        library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library->handle) (void)snprintf(library->path, sizeof library->path, "%s", name);
        const char *text = library->handle ? NULL : dlerror();
        if (text && used < capacity)
            used += (size_t)snprintf(why + used, capacity - used, "%s%s", used ? "; " : "", text);
    }
}

static rondo_status library_initialise(rondo__ascend_library *library) {
    enum { REPEATED = 100002 }; /* somebody else in the process was first */
    int error = library->api.aclInit(NULL);
    if (error && error != REPEATED) return rondo__ascend_error_as(library, RONDO_CODE_UNAVAILABLE, "aclInit", error);
    (void)rondo__ascend_tolerate(library, error);
    library->initialised = true;
    return RONDO_OK;
}

static rondo_status library_open(rondo__ascend_library *library) {
    char why[RONDO__ASCEND_TEXT] = "";
    if (library->initialised) return RONDO_OK;
    library_load(library, why, sizeof why);
    if (!library->handle)
        return RONDO_PLUGIN_FAIL(
            library->host, UNAVAILABLE, DRIVER,
            "Ascend's runtime library is not here (%s); LD_LIBRARY_PATH or RONDO_ACL_LIBRARY says where it is", why);
    library_resolve(library);
    const char *lacks = library->lacks[RONDO__ASCEND_GROUP_core];
    if (!lacks) return library_initialise(library);
    (void)dlclose(library->handle);
    library->handle = NULL;
    return RONDO_PLUGIN_FAIL(library->host, UNAVAILABLE, DRIVER, "%s has no %s: it is too old, or not Ascend's",
                             library->path, lacks);
}

rondo_status rondo__ascend_library_open(rondo__ascend_library *library) {
    (void)pthread_mutex_lock(&library->mutex);
    rondo_status status = library_open(library);
    (void)pthread_mutex_unlock(&library->mutex);
    return status;
}

/* A driver that cannot count has none to offer: why is the answer. */
rondo_status rondo__ascend_library_count(rondo__ascend_library *library, uint32_t *out_count) {
    uint32_t count = 0;
    rondo_status status = rondo__ascend_library_open(library);
    if (!status)
        status = rondo__ascend_error_as(library, RONDO_CODE_UNAVAILABLE, "aclrtGetDeviceCount",
                                        library->api.aclrtGetDeviceCount(&count));
    if (!status) *out_count = count;
    return status;
}

void rondo__ascend_library_close(rondo__ascend_library *library) {
    uint64_t left = 0;
    /* Counted, or not at all: aclFinalize would end it for everybody. */
    if (library->initialised && rondo__ascend_has(library, RONDO__ASCEND_GROUP_reference))
        (void)RONDO__ASCEND_TRY(library, aclFinalizeReference, &left);
    if (library->handle) (void)dlclose(library->handle);
    library->handle = NULL;
    library->initialised = false;
}
