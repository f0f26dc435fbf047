/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators in shared libraries: judged by the file, then opened, then registered all or none. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/search.h"
#include "base/sized.h"
#include "ops/operators.h"

/* A library's version is data that needs no relocation, so that it can be read from the file. */
static rondo_status load_check_abi(const char *path) {
    rondo_operator_abi_version abi = {0, 0};
    rondo_status status = rondo__elf_read(path, RONDO_OPERATOR_ABI_SYMBOL, &abi, sizeof abi);
    if (status) {
        rondo_status refusal = RONDO__FAIL(UNSUPPORTED, LOADING, "operator library %s", rondo_status_message(status));
        rondo_status_release(status);
        return refusal;
    }
    if (abi.major == RONDO_OPERATOR_ABI_MAJOR && abi.minor <= RONDO_OPERATOR_ABI_MINOR) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, LOADING,
                       "operator library '%s': it is made for the operator ABI %u.%u, this is %u.%u; none of its code "
                       "has run",
                       path, (unsigned)abi.major, (unsigned)abi.minor, RONDO_OPERATOR_ABI_MAJOR,
                       RONDO_OPERATOR_ABI_MINOR);
}

static rondo_status load_open(const rondo_allocator *allocator, const char *path, void **out_library) {
    /* dlopen searches the system for names without a slash; a library is the very file that was named. */
    size_t size = strlen(path) + sizeof "./";
    void *name = NULL;
    RONDO__TRY(rondo__allocate(allocator, size, &name));
    (void)snprintf(name, size, "%s%s", strchr(path, '/') ? "" : "./", path);
    *out_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    rondo__free(allocator, name, size);
    if (*out_library) return RONDO_OK;
    const char *reason = dlerror();
    return RONDO__FAIL(UNSUPPORTED, LOADING, "operator library '%s': %s", path,
                       reason ? reason : "the system gives no reason");
}

static rondo_status load_register(rondo__operators *operators, const char *path, void *library) {
    rondo_operator_library table = {sizeof table, 0, NULL};
    const rondo_operator_library *given = dlsym(library, RONDO_OPERATOR_LIBRARY_SYMBOL);
    if (!given)
        return RONDO__FAIL(UNSUPPORTED, LOADING, "operator library '%s': it does not export '%s'", path,
                           RONDO_OPERATOR_LIBRARY_SYMBOL);
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_LOADING, "rondo_operator_library", given, &table, sizeof table));
    if (table.operator_count > RONDO__OPERATORS_MAX || (table.operator_count && !table.operators))
        return RONDO__FAIL(UNSUPPORTED, LOADING, "operator library '%s': it counts %u operators that are not there",
                           path, table.operator_count);
    return rondo__operators_add_all(operators, table.operators, table.operator_count, library);
}

static rondo_status load_file(rondo__operators *operators, const char *path) {
    struct stat info;
    void *library = NULL;
    if (stat(path, &info) != 0)
        return RONDO__FAIL(NOT_FOUND, LOADING, "operator library '%s': there is no such file", path);
    if (!S_ISREG(info.st_mode))
        return RONDO__FAIL(UNSUPPORTED, LOADING, "operator library '%s': it is not a file", path);
    RONDO__TRY(load_check_abi(path));
    RONDO__TRY(load_open(&operators->allocator, path, &library));
    rondo_status status = load_register(operators, path, library);
    if (!status) return RONDO_OK;
    (void)dlclose(library);
    return rondo__status_note(status, "operator library '%s'", path);
}

static rondo_status load_visit(void *user, const char *file) { return load_file(user, file); }

rondo_status rondo__operators_load_path(rondo__shared *operators, const char *path) {
    rondo__operators *all = (rondo__operators *)(void *)operators;
    return rondo__search_path(&all->allocator, all->log, "operator path", path, load_visit, all);
}

rondo_status rondo_operator_load(rondo_instance *instance, const char *path) {
    if (!instance || !path || !*path)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "loading operators needs an instance and the name of a file");
    return load_file((rondo__operators *)(void *)rondo__instance_base_of(instance)->operators, path);
}
