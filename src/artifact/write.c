/* SPDX-License-Identifier: Apache-2.0
 *
 * From an image to a file: checksums first, then everything in one pass under another name, which becomes the file's
 * when all of it is on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <rondo/file.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "artifact/hash.h"
#include "base/checked.h"

#define WRITE_BLOCK ((size_t)1 << 16)
#define WRITE_TRIES 100

/* Bytes on their way: through a block to the file, through a hash, or only counted. */
typedef struct write_sink {
    rondo__hash *hash; /* null: to the file */
    uint8_t *block;
    size_t used;
    int descriptor;
    const char *path;
} write_sink;

static rondo_status write_failed(const char *path, const char *what, int error) {
    char buffer[128] = "";
    return RONDO__FAIL(IO, FILE, "'%.300s' cannot be %s: %s", path, what, strerror_r(error, buffer, sizeof buffer));
}

static rondo_status write_through(const write_sink *sink, const uint8_t *data, uint64_t bytes) {
    while (bytes) {
        size_t piece = bytes < (size_t)1 << 30 ? (size_t)bytes : (size_t)1 << 30;
        ssize_t done = write(sink->descriptor, data, piece);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return write_failed(sink->path, "written", done < 0 ? errno : ENOSPC);
        data += done;
        bytes -= (uint64_t)done;
    }
    return RONDO_OK;
}

static rondo_status write_flush(write_sink *sink) {
    size_t used = sink->used;
    sink->used = 0;
    return write_through(sink, sink->block, used);
}

static rondo_status write_bytes(write_sink *sink, const void *data, uint64_t bytes) {
    if (!bytes) return RONDO_OK;
    if (sink->hash) {
        rondo__hash_add(sink->hash, data, (size_t)bytes);
        return RONDO_OK;
    }
    if (bytes > WRITE_BLOCK - sink->used) RONDO__TRY(write_flush(sink));
    if (bytes > WRITE_BLOCK) return write_through(sink, data, bytes);
    memcpy(sink->block + sink->used, data, (size_t)bytes);
    sink->used += (size_t)bytes;
    return RONDO_OK;
}

static rondo_status write_zeros(write_sink *sink, uint64_t bytes) {
    static const uint8_t zeros[RONDO__ARTIFACT_ALIGNMENT];
    return write_bytes(sink, zeros, bytes); /* never as many as an alignment */
}

/* Pieces of one partition at their places, with zeros between. */
static rondo_status write_pieces(write_sink *sink, const rondo__buffer *pieces, uint64_t set) {
    uint64_t end = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        const rondo__artifact_piece *piece = RONDO__BUFFER_AT(pieces, rondo__artifact_piece, i);
        if (set != UINT64_MAX && piece->order != set) continue;
        RONDO__TRY(write_zeros(sink, piece->at - end));
        RONDO__TRY(write_bytes(sink, piece->data, piece->bytes));
        end = piece->at + piece->bytes;
    }
    return RONDO_OK;
}

static rondo_status write_part(write_sink *sink, const rondo__artifact_image *image, uint32_t part) {
    switch (part) {
    case 0: return write_bytes(sink, image->strings.data, image->strings.count);
    case 1: return write_bytes(sink, image->words.data, image->words.count * sizeof(uint64_t));
    case 2: return write_pieces(sink, &image->constants, UINT64_MAX);
    default:
        return part - 3u < image->sets.count ? write_pieces(sink, &image->packed, part - 3u)
                                             : write_pieces(sink, &image->own, UINT64_MAX);
    }
}

static rondo__artifact_entry write_entry(const rondo__artifact_image *image, uint32_t part) {
    switch (part) {
    case 0: return (rondo__artifact_entry){.kind = RONDO__ARTIFACT_STRINGS, .bytes = image->strings.count};
    case 1:
        return (rondo__artifact_entry){.kind = RONDO__ARTIFACT_PLAN, .bytes = image->words.count * sizeof(uint64_t)};
    case 2: return (rondo__artifact_entry){.kind = RONDO__ARTIFACT_CONSTANTS, .bytes = image->constant_bytes};
    default:
        if (part - 3u >= image->sets.count)
            return (rondo__artifact_entry){.kind = RONDO__ARTIFACT_OPERATORS, .bytes = image->own_bytes};
        return (rondo__artifact_entry){.kind = RONDO__ARTIFACT_PACKED,
                                       .bytes = RONDO__BUFFER_AT(&image->sets, rondo__artifact_set, part - 3u)->bytes};
    }
}

/* What stands before the partitions: header, entries, checksum. */
static rondo_status write_head(rondo__artifact_image *image, rondo__buffer *head) {
    const uint32_t sets = (uint32_t)image->sets.count, count = 3u + sets + (image->own.count ? 1u : 0u);
    uint64_t end = sizeof(rondo__artifact_header) + count * sizeof(rondo__artifact_entry) + sizeof(uint64_t);
    rondo__artifact_header header = {.magic = RONDO_PLAN_FILE_MAGIC,
                                     .order = RONDO__ARTIFACT_ORDER,
                                     .major = RONDO__ARTIFACT_MAJOR,
                                     .minor = RONDO__ARTIFACT_MINOR,
                                     .header_bytes = sizeof(rondo__artifact_header),
                                     .entry_bytes = sizeof(rondo__artifact_entry),
                                     .entry_count = count,
                                     .key = {image->key[0], image->key[1]}};
    RONDO__TRY(rondo__buffer_append(head, &header, sizeof header));
    for (uint32_t i = 0; i < count; i++) {
        rondo__hash hash;
        write_sink sink = {.hash = &hash};
        rondo__artifact_entry entry = write_entry(image, i);
        const bool packed = i >= 3u && i - 3u < sets;
        entry.flags = packed ? 0 : RONDO__ARTIFACT_NEEDED;
        entry.tag = RONDO__ARTIFACT_NO_TEXT;
        if (packed) {
            const char *name = RONDO__BUFFER_AT(&image->sets, rondo__artifact_set, i - 3u)->name;
            RONDO__TRY(rondo__artifact_intern(image, name, strlen(name), &entry.tag));
        }
        if (!rondo__checked_align_u64(end, RONDO__ARTIFACT_ALIGNMENT, &entry.offset) ||
            !rondo__checked_add_u64(entry.offset, entry.bytes, &end))
            return RONDO__FAIL(OUT_OF_RANGE, FILE, "the weights are larger than any file");
        rondo__hash_init(&hash);
        RONDO__TRY(write_part(&sink, image, i));
        entry.checksum = rondo__hash_value(&hash);
        RONDO__TRY(rondo__buffer_append(head, &entry, sizeof entry));
    }
    ((rondo__artifact_header *)head->data)->file_bytes = end;
    uint64_t checksum = rondo__artifact_checksum(head->data, head->count);
    return rondo__buffer_append(head, &checksum, sizeof checksum);
}

static rondo_status write_file(write_sink *sink, const rondo__artifact_image *image, const rondo__buffer *head) {
    const rondo__artifact_header *header = head->data;
    uint64_t end = head->count;
    RONDO__TRY(write_bytes(sink, head->data, head->count));
    for (uint32_t i = 0; i < header->entry_count; i++) {
        rondo__artifact_entry entry;
        memcpy(&entry, (const uint8_t *)head->data + sizeof *header + i * sizeof entry, sizeof entry);
        RONDO__TRY(write_zeros(sink, entry.offset - end));
        RONDO__TRY(write_part(sink, image, i));
        end = entry.offset + entry.bytes;
    }
    RONDO__TRY(write_flush(sink));
    if (fsync(sink->descriptor) != 0) return write_failed(sink->path, "written", errno);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ whole or not at all */

/* A new file beside the one that is wanted, since a rename stays within a file system. */
static rondo_status write_temporary(const rondo_allocator *allocator, const char *path, char **out_name,
                                    size_t *out_size, int *out_descriptor) {
    size_t size = strlen(path) + 48;
    void *memory;
    RONDO__TRY(rondo__allocate(allocator, size, &memory));
    char *name = memory;
    int descriptor = -1;
    for (unsigned i = 0; i < WRITE_TRIES && descriptor < 0; i++) {
        (void)snprintf(name, size, "%s.part-%ld-%u", path, (long)getpid(), i);
        descriptor = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor < 0 && errno != EEXIST) break;
    }
    if (descriptor < 0) {
        rondo_status status = write_failed(path, "created", errno);
        rondo__free(allocator, name, size);
        return status;
    }
    *out_name = name;
    *out_size = size;
    *out_descriptor = descriptor;
    return RONDO_OK;
}

/* The name is on the disk when its folder is. Folders of some file systems cannot be synchronised: no harm. */
static void write_sync_folder(char *name) {
    char *slash = strrchr(name, '/');
    const char *folder = ".";
    if (slash) {
        slash[slash == name] = 0;
        folder = name;
    }
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    (void)fsync(descriptor);
    (void)close(descriptor);
}

static rondo_status write_in_place(const rondo_allocator *allocator, const rondo__artifact_image *image,
                                   const rondo__buffer *head, uint8_t *block, const char *path) {
    char *name = NULL;
    size_t size = 0;
    write_sink sink = {.block = block, .path = path};
    RONDO__TRY(write_temporary(allocator, path, &name, &size, &sink.descriptor));
    rondo_status status = write_file(&sink, image, head);
    if (close(sink.descriptor) != 0 && !status) status = write_failed(path, "written", errno);
    if (!status && rename(name, path) != 0) status = write_failed(path, "put in its place", errno);
    if (status) (void)unlink(name);
    else write_sync_folder(name);
    rondo__free(allocator, name, size);
    return status;
}

rondo_status rondo__artifact_write(const rondo_allocator *allocator, const rondo_plan *plan,
                                   const rondo__artifact_block *blocks, const char *path) {
    return rondo__artifact_write_keyed(allocator, plan, blocks, (const uint64_t[2]){0, 0}, path);
}

rondo_status rondo__artifact_write_keyed(const rondo_allocator *allocator, const rondo_plan *plan,
                                         const rondo__artifact_block *blocks, const uint64_t key[2], const char *path) {
    rondo__artifact_image image;
    rondo__buffer head;
    void *block = NULL;
    rondo__artifact_image_init(&image, allocator);
    memcpy(image.key, key, sizeof image.key);
    rondo__buffer_init(&head, allocator, 1, SIZE_MAX / 4);
    rondo_status status = rondo__artifact_encode(&image, plan, blocks);
    /* Tags first: the strings are hashed before the entries of the sets are written. */
    for (size_t i = 0; i < image.sets.count && !status; i++) {
        uint64_t offset;
        const char *name = RONDO__BUFFER_AT(&image.sets, rondo__artifact_set, i)->name;
        status = rondo__artifact_intern(&image, name, strlen(name), &offset);
    }
    if (!status) status = write_head(&image, &head);
    if (!status) status = rondo__allocate(allocator, WRITE_BLOCK, &block);
    if (!status) status = write_in_place(allocator, &image, &head, block, path);
    rondo__free(allocator, block, WRITE_BLOCK);
    rondo__buffer_deinit(&head);
    rondo__artifact_image_deinit(&image);
    return status ? rondo__status_note(status, "while writing plan '%s'", plan->name) : RONDO_OK;
}
