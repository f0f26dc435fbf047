/* SPDX-License-Identifier: Apache-2.0
 *
 * Files are read, not mapped: a file that shrinks while it is mapped would end the program, a short read is an error
 * like any other. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/common/common.h"

static const char *file_reason(int error, char *buffer, size_t size) {
    buffer[0] = '\0';
    return strerror_r(error, buffer, size); /* the GNU form: returns the text */
}

static rondo_status file_failed(const char *path, const char *what, int error) {
    char buffer[128];
    const char *reason = file_reason(error, buffer, sizeof buffer);
    if (error == ENOENT || error == ENOTDIR)
        return RONDO__FAIL(NOT_FOUND, FILE, "'%.300s' cannot be %s: %s", path, what, reason);
    return RONDO__FAIL(IO, FILE, "'%.300s' cannot be %s: %s", path, what, reason);
}

rondo_status rondo__import_file_open(const char *path, int32_t flags, int32_t *out_descriptor, uint64_t *out_size) {
    /* Non-blocking, so that a pipe without a writer does not hold us before we see that it is one. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    if (descriptor < 0) return file_failed(path, "opened", errno);
    struct stat facts;
    rondo_status status = RONDO_OK;
    if (fstat(descriptor, &facts) != 0) status = file_failed(path, "read", errno);
    else if (S_ISDIR(facts.st_mode)) status = RONDO__FAIL(IO, FILE, "'%.300s' is a folder, not a file", path);
    else if (!S_ISREG(facts.st_mode)) status = RONDO__FAIL(IO, FILE, "'%.300s' is not a regular file", path);
    if (status) {
        (void)close(descriptor);
        return status;
    }
    *out_descriptor = descriptor;
    *out_size = (uint64_t)facts.st_size;
    return RONDO_OK;
}

rondo_status rondo__import_file_fill(int32_t descriptor, const char *path, uint64_t offset, void *out, size_t size) {
    uint8_t *at = out;
    while (size) {
        size_t piece = size < (size_t)1 << 30 ? size : (size_t)1 << 30;
        ssize_t got = pread(descriptor, at, piece, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return file_failed(path, "read", errno);
        if (got == 0) return RONDO__FAIL(IO, FILE, "'%.300s' became shorter while it was read", path);
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    return RONDO_OK;
}

bool rondo__import_file_is_pointer(const void *data, size_t size) {
    static const char file_pointer_start[] = "version https://git-lfs";
    return size >= sizeof file_pointer_start - 1 &&
           memcmp(data, file_pointer_start, sizeof file_pointer_start - 1) == 0;
}

rondo_status rondo__import_file_room(rondo__import_file *file, const char *path, uint64_t size, uint64_t maximum) {
    if (size == 0) return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is empty", path);
    if (size > maximum)
        return RONDO__FAIL(CORRUPT, FILE, "'%.300s' has %llu bytes; at most %llu are read", path,
                           (unsigned long long)size, (unsigned long long)maximum);
    if (size > SIZE_MAX / 2) return RONDO__FAIL(CORRUPT, FILE, "'%.300s' exceeds the address space", path);
    void *data = NULL;
    RONDO__TRY_NOTE(rondo__allocate(&file->allocator, (size_t)size, &data), "while reading '%s'", path);
    file->data = data;
    file->size = (size_t)size;
    return RONDO_OK;
}

rondo_status rondo__import_file_check(const rondo__import_file *file, const char *path) {
    if (!rondo__import_file_is_pointer(file->data, file->size)) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is the small text that stands for a large file: fetch the file itself",
                       path);
}

static rondo_status file_read_open(rondo__import_file *file, int32_t descriptor, const char *path, uint64_t size,
                                   uint64_t maximum) {
    RONDO__TRY(rondo__import_file_room(file, path, size, maximum));
    rondo__prefault(file->data, file->size);
    RONDO__TRY(rondo__import_file_fill(descriptor, path, 0, file->data, file->size));
    return rondo__import_file_check(file, path);
}

rondo_status rondo__import_memory_check(const char *name, size_t size, uint64_t maximum) {
    if (!size) return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is empty", name);
    if (size <= maximum) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "'%.300s' has %zu bytes; at most %llu are read", name, size,
                       (unsigned long long)maximum);
}

rondo_status rondo__import_file_read(const rondo_allocator *allocator, const char *path, uint64_t maximum,
                                     rondo__import_file *out_file) {
    *out_file = (rondo__import_file){.allocator = *allocator};
    int32_t descriptor;
    uint64_t size;
    RONDO__TRY(rondo__import_file_open(path, 0, &descriptor, &size));
    rondo_status status = file_read_open(out_file, descriptor, path, size, maximum);
    (void)close(descriptor);
    if (status) rondo__import_file_release(out_file);
    return status;
}

void rondo__import_file_release(rondo__import_file *file) {
    rondo__free(&file->allocator, file->data, file->size);
    file->data = NULL;
    file->size = 0;
}
