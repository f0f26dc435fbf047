/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking for shared libraries along a path. */
#include "base/search.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"

#define RONDO__SEARCH_FILES_MAX 1024u

typedef struct search {
    const rondo_allocator *allocator;
    const rondo__log *log;
    const char *what;
    rondo_status (*visit)(void *user, const char *file);
    void *user;
} search;

/* What cannot be used is no reason to fail: nobody asked for it by name. */
static rondo_status search_try(const search *s, const char *path) {
    char text[512];
    rondo_status status = s->visit(s->user, path);
    if (!status || rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    (void)rondo_status_format(status, text, sizeof text);
    rondo__log_write(s->log, RONDO_LOG_WARNING, "left out of the %s: %s", s->what, text);
    rondo_status_release(status);
    return RONDO_OK;
}

static int search_compare(const void *a, const void *b) {
    char *const *left = a;
    char *const *right = b;
    return strcmp(*left, *right);
}

/* Collects "folder/name.so" of every such file. */
static rondo_status search_list(const search *s, DIR *folder, const char *path, rondo__buffer *names) {
    const struct dirent *item;
    while ((item = readdir(folder)) != NULL) {
        size_t length = strlen(item->d_name);
        size_t size = strlen(path) + 1u + length + 1u;
        void *name = NULL;
        if (length <= 3 || strcmp(item->d_name + length - 3, ".so") != 0) continue;
        RONDO__TRY(rondo__allocate(s->allocator, size, &name));
        (void)snprintf(name, size, "%s/%s", path, item->d_name);
        rondo_status status = rondo__buffer_append(names, &name, 1);
        if (status) {
            rondo__free(s->allocator, name, size);
            return status;
        }
    }
    return RONDO_OK;
}

static rondo_status search_folder(const search *s, const char *path) {
    rondo__buffer names;
    DIR *folder = opendir(path);
    if (!folder && errno == ENOMEM) return RONDO__FAIL(OUT_OF_MEMORY, LOADING, "no memory to read folder '%s'", path);
    if (!folder) {
        rondo__log_write(s->log, RONDO_LOG_WARNING, "%s: folder '%s': %s", s->what, path, strerror(errno));
        return RONDO_OK;
    }
    rondo__buffer_init(&names, s->allocator, sizeof(char *), RONDO__SEARCH_FILES_MAX);
    rondo_status status = search_list(s, folder, path, &names);
    (void)closedir(folder);
    if (names.count) qsort(names.data, names.count, sizeof(char *), search_compare);
    for (size_t i = 0; i < names.count; i++) {
        char *name = *RONDO__BUFFER_AT(&names, char *, i);
        if (!status) status = search_try(s, name);
        rondo__string_free(s->allocator, name);
    }
    rondo__buffer_deinit(&names);
    return status;
}

static rondo_status search_items(const search *s, const char *path) {
    while (path && *path) {
        size_t length = strcspn(path, ":");
        void *item = NULL;
        struct stat info;
        RONDO__TRY(rondo__allocate_zeroed(s->allocator, length + 1u, &item));
        memcpy(item, path, length);
        rondo_status status = RONDO_OK;
        if (length) {
            bool folder = stat(item, &info) == 0 && S_ISDIR(info.st_mode);
            status = folder ? search_folder(s, item) : search_try(s, item);
        }
        rondo__free(s->allocator, item, length + 1u);
        RONDO__TRY(status);
        path += length + (path[length] == ':');
    }
    return RONDO_OK;
}

rondo_status rondo__search_path(const rondo_allocator *allocator, const rondo__log *log, const char *what,
                                const char *path, rondo_status (*visit)(void *user, const char *file), void *user) {
    const search s = {allocator, log, what, visit, user};
    return search_items(&s, path);
}
