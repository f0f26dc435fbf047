/* SPDX-License-Identifier: Apache-2.0
 *
 * From a file to a plan: everything is looked at before anything is used. The bytes may be anything. */
#include <errno.h>
#include <fcntl.h>
#include <rondo/file.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "base/checked.h"

/* ------------------------------------------------------------------------------------------------------ the head */

static rondo_status open_versions(const rondo__artifact *file, const rondo__artifact_header *header) {
    static const uint8_t magic[8] = RONDO_PLAN_FILE_MAGIC;
    if (memcmp(header->magic, magic, sizeof magic) != 0)
        return RONDO__ARTIFACT_CORRUPT("it does not begin as one does");
    if (header->order != RONDO__ARTIFACT_ORDER) {
        if (header->order == __builtin_bswap32(RONDO__ARTIFACT_ORDER))
            return RONDO__FAIL(UNSUPPORTED, FILE,
                               "offline file: it was written on a machine of the other byte order: compile on one of "
                               "this order");
        return RONDO__ARTIFACT_CORRUPT("its byte order is none");
    }
    if (header->major != RONDO__ARTIFACT_MAJOR)
        return RONDO__FAIL(UNSUPPORTED, FILE,
                           "offline file: it is of version %u.%u; version %s reads %u.x: compile the model again",
                           header->major, header->minor, RONDO_VERSION_STRING, RONDO__ARTIFACT_MAJOR);
    if (header->header_bytes < sizeof *header || header->header_bytes % 8u || header->header_bytes > 4096u ||
        header->entry_bytes < sizeof(rondo__artifact_entry) || header->entry_bytes % 8u ||
        header->entry_bytes > 4096u || header->entry_count > RONDO__ARTIFACT_PARTITIONS_MAX)
        return RONDO__ARTIFACT_CORRUPT("its header or its table has an impossible size");
    if (header->minor <= RONDO__ARTIFACT_MINOR &&
        (header->header_bytes != sizeof *header || header->entry_bytes != sizeof(rondo__artifact_entry)))
        return RONDO__ARTIFACT_CORRUPT("its header has another size than version %u.%u has", header->major,
                                       header->minor);
    if (header->file_bytes != file->bytes)
        return RONDO__ARTIFACT_CORRUPT("it has %llu bytes and says %llu: it was cut or added to",
                                       (unsigned long long)file->bytes, (unsigned long long)header->file_bytes);
    return RONDO_OK;
}

static rondo_status open_head(rondo__artifact *file, rondo__artifact_header *out_header, uint64_t *out_end) {
    rondo__artifact_header header;
    uint64_t checksum;
    if (file->bytes < sizeof header)
        return RONDO__ARTIFACT_CORRUPT("%llu bytes are less than a header", (unsigned long long)file->bytes);
    memcpy(&header, file->data, sizeof header);
    RONDO__TRY(open_versions(file, &header));
    uint64_t table = header.header_bytes + (uint64_t)header.entry_count * header.entry_bytes;
    if (table + sizeof checksum > file->bytes) return RONDO__ARTIFACT_CORRUPT("its table leaves the file");
    memcpy(&checksum, file->data + table, sizeof checksum);
    if (checksum != rondo__artifact_checksum(file->data, (size_t)table))
        return RONDO__ARTIFACT_CORRUPT("the checksum of its header and table is wrong");
    memcpy(file->key, header.key, sizeof file->key);
    file->major = header.major;
    file->minor = header.minor;
    *out_header = header;
    *out_end = table + sizeof checksum;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------- the partitions */

static const char *open_part_name(uint32_t kind) {
    static const char *const names[] = {"", "strings", "plan", "constants", "packed weights", "custom operators"};
    return kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static bool open_is_zero(const uint8_t *data, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i++)
        if (data[i]) return false;
    return true;
}

static rondo_status open_part(rondo__artifact *file, const rondo__artifact_entry *entry, uint64_t *end) {
    rondo__artifact_part *part = &file->parts[file->part_count];
    uint64_t want, last;
    const char *name = open_part_name(entry->kind);
    if (!rondo__checked_align_u64(*end, RONDO__ARTIFACT_ALIGNMENT, &want) || entry->offset != want ||
        !rondo__checked_add_u64(entry->offset, entry->bytes, &last) || last > file->bytes)
        return RONDO__ARTIFACT_CORRUPT("partition %u (%s) leaves the file or lies in another", file->part_count, name);
    if (!open_is_zero(file->data + *end, want - *end))
        return RONDO__ARTIFACT_CORRUPT("there is something before partition %u (%s)", file->part_count, name);
    if (entry->checksum != rondo__artifact_checksum(file->data + entry->offset, (size_t)entry->bytes))
        return RONDO__ARTIFACT_CORRUPT("the checksum of partition %u (%s) is wrong", file->part_count, name);
    if ((entry->kind == 0 || entry->kind > RONDO__ARTIFACT_OPERATORS) && (entry->flags & RONDO__ARTIFACT_NEEDED))
        return RONDO__FAIL(UNSUPPORTED, FILE,
                           "offline file: it needs partition %u (kind %u, %s), which version %s does not know",
                           file->part_count, entry->kind, name, RONDO_VERSION_STRING);
    *part = (rondo__artifact_part){entry->kind, file->data + entry->offset, entry->bytes, entry->checksum, NULL};
    file->part_count++;
    *end = last;
    return RONDO_OK;
}

static rondo_status open_only(const rondo__artifact *file, uint32_t kind, const rondo__artifact_part **out) {
    const rondo__artifact_part *found = NULL;
    for (uint32_t i = 0; i < file->part_count; i++) {
        if (file->parts[i].kind != kind) continue;
        if (found) return RONDO__ARTIFACT_CORRUPT("it has two partitions of %s", open_part_name(kind));
        found = &file->parts[i];
    }
    if (!found) return RONDO__ARTIFACT_CORRUPT("it has no partition of %s", open_part_name(kind));
    *out = found;
    return RONDO_OK;
}

static rondo_status open_parts(rondo__artifact *file, rondo__arena *arena) {
    rondo__artifact_header header;
    uint64_t end;
    void *memory;
    RONDO__TRY(open_head(file, &header, &end));
    RONDO__TRY(rondo__arena_allocate_array(arena, header.entry_count, sizeof(rondo__artifact_part), &memory));
    file->parts = memory;
    const uint8_t *table = file->data + header.header_bytes;
    rondo__artifact_entry entry;
    for (uint32_t i = 0; i < header.entry_count; i++) {
        memcpy(&entry, table + (size_t)i * header.entry_bytes, sizeof entry);
        RONDO__TRY(open_part(file, &entry, &end));
    }
    if (end != file->bytes) return RONDO__ARTIFACT_CORRUPT("there is something behind its last partition");
    RONDO__TRY(open_only(file, RONDO__ARTIFACT_STRINGS, &file->strings));
    RONDO__TRY(open_only(file, RONDO__ARTIFACT_PLAN, &file->plan));
    RONDO__TRY(open_only(file, RONDO__ARTIFACT_CONSTANTS, &file->constants));
    if (file->strings->bytes && file->strings->data[file->strings->bytes - 1] != 0)
        return RONDO__ARTIFACT_CORRUPT("its strings do not end");
    for (uint32_t i = 0; i < header.entry_count; i++) {
        memcpy(&entry, table + (size_t)i * header.entry_bytes, sizeof entry);
        if (entry.tag == RONDO__ARTIFACT_NO_TEXT) continue;
        if (entry.tag >= file->strings->bytes)
            return RONDO__ARTIFACT_CORRUPT("the tag of partition %u is no string of it", i);
        file->parts[i].tag = (const char *)file->strings->data + entry.tag;
    }
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------------- life */

static void open_release(rondo__artifact *file) {
    rondo_allocator allocator = file->allocator;
    if (file->mapping) (void)munmap(file->mapping, (size_t)file->bytes);
    rondo__free(&allocator, file, sizeof *file);
}

/* The plan holds the file from its first moment on, so that one release gives back both. */
static rondo_status open_plan(rondo__artifact *file, rondo_plan **out_plan) {
    rondo_plan *plan;
    rondo_status status = rondo__plan_create(&file->allocator, "", &plan);
    if (status) {
        open_release(file);
        return status;
    }
    plan->file = file;
    plan->file_release = open_release;
    status = open_parts(file, &plan->arena);
    if (!status) status = rondo__artifact_decode(file, plan);
    if (!status) status = rondo__plan_verify(plan, true);
    if (status) {
        rondo_plan_release(plan);
        return status;
    }
    *out_plan = plan;
    return RONDO_OK;
}

static rondo_status open_start(const rondo_allocator *allocator, const void *data, uint64_t bytes, void *mapping,
                               rondo__artifact **out_file) {
    void *memory = NULL;
    rondo_status status = rondo__allocate_zeroed(allocator, sizeof(rondo__artifact), &memory);
    if (status) {
        if (mapping) (void)munmap(mapping, (size_t)bytes);
        return status;
    }
    rondo__artifact *file = memory;
    file->allocator = *allocator;
    file->data = data;
    file->bytes = bytes;
    file->mapping = mapping;
    *out_file = file;
    return RONDO_OK;
}

rondo_status rondo__artifact_read(const rondo_allocator *allocator, const void *data, uint64_t bytes,
                                  rondo_plan **out_plan) {
    rondo__artifact *file;
    if (!data || (uintptr_t)data % RONDO__ARTIFACT_ALIGNMENT || bytes > SIZE_MAX / 2)
        return RONDO__FAIL(INVALID_ARGUMENT, FILE, "the bytes of an offline file must be aligned to %u",
                           RONDO__ARTIFACT_ALIGNMENT);
    RONDO__TRY(open_start(allocator, data, bytes, NULL, &file));
    return open_plan(file, out_plan);
}

static rondo_status open_failed(const char *path, int error) {
    char buffer[128] = "";
    const char *reason = strerror_r(error, buffer, sizeof buffer);
    if (error == ENOENT || error == ENOTDIR)
        return RONDO__FAIL(NOT_FOUND, FILE, "'%.300s' cannot be opened: %s", path, reason);
    return RONDO__FAIL(IO, FILE, "'%.300s' cannot be opened: %s", path, reason);
}

static rondo_status open_map(const char *path, int descriptor, void **out_mapping, uint64_t *out_bytes) {
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) return open_failed(path, errno);
    if (!S_ISREG(facts.st_mode)) return RONDO__FAIL(IO, FILE, "'%.300s' is not a regular file", path);
    if (facts.st_size <= 0) return RONDO__ARTIFACT_CORRUPT("'%.300s' is empty", path);
    void *mapping = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) return open_failed(path, errno);
    *out_mapping = mapping;
    *out_bytes = (uint64_t)facts.st_size;
    return RONDO_OK;
}

rondo_status rondo__artifact_open(const rondo_allocator *allocator, const char *path, rondo_plan **out_plan) {
    /* Non-blocking, so that a pipe without a writer does not hold us before we see that it is one. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return open_failed(path, errno);
    void *mapping = NULL;
    uint64_t bytes = 0;
    rondo__artifact *file;
    rondo_status status = open_map(path, descriptor, &mapping, &bytes);
    (void)close(descriptor);
    if (!status) status = open_start(allocator, mapping, bytes, mapping, &file);
    if (!status) status = open_plan(file, out_plan);
    return status ? rondo__status_note(status, "while opening '%s'", path) : RONDO_OK;
}
