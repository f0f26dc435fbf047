/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's file, read without its large weights: these are most of it, are copied anyway to where they stay, and would
 * be read to a place in between otherwise. What is left out are the raw bytes of the main graph's initializers, found by
 * a walk that only follows lengths; each is read from the file when its tensor is made. A walk that meets anything odd
 * leaves nothing out from there on, and the reader of the model says what is wrong. */
#include <string.h>
#include <unistd.h>

#include "import/onnx/onnx.h"

enum { FILE_READ_AHEAD = 16384, FILE_HOLE_FROM = 65536 };

typedef struct file_hole {
    uint64_t start, end; /* of the whole payload; what was read ahead of it is in memory as well */
} file_hole;

/* ModelProto.graph, GraphProto.initializer, TensorProto.raw_data. */
static const uint32_t file_fields[] = {7, 5, 9};
enum { FILE_DEPTH = sizeof file_fields / sizeof *file_fields };

typedef struct file_walk {
    rondo__onnx_file *file;
    uint64_t read; /* all before it is in memory or in a hole */
    bool odd;
} file_walk;

static rondo_status file_need(file_walk *walk, uint64_t to) {
    rondo__onnx_file *file = walk->file;
    if (to <= walk->read) return RONDO_OK;
    uint64_t end = walk->read + FILE_READ_AHEAD;
    if (end < to) end = to;
    if (end > file->bytes.size) end = file->bytes.size;
    RONDO__TRY(rondo__import_file_fill(file->descriptor, file->path, walk->read, file->bytes.data + walk->read,
                                       (size_t)(end - walk->read)));
    walk->read = end;
    return RONDO_OK;
}

static rondo_status file_varint(file_walk *walk, uint64_t *at, uint64_t end, uint64_t *out_value) {
    uint64_t value = 0, last = end - *at > 10 ? *at + 10 : end;
    RONDO__TRY(file_need(walk, last));
    for (uint32_t shift = 0; *at < last; shift += 7) {
        uint8_t byte = walk->file->bytes.data[(*at)++];
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte & 0x80u) continue;
        *out_value = value;
        return RONDO_OK;
    }
    walk->odd = true;
    return RONDO_OK;
}

static rondo_status file_leave_out(file_walk *walk, uint64_t start, uint64_t end) {
    if (end - start < FILE_HOLE_FROM) return RONDO_OK;
    RONDO__TRY(file_need(walk, start));
    RONDO__TRY(rondo__buffer_append(&walk->file->holes, &(file_hole){start, end}, 1));
    walk->read = end;
    return RONDO_OK;
}

static rondo_status file_walk_message(file_walk *walk, uint64_t at, uint64_t end, uint32_t depth) {
    while (at < end && !walk->odd) {
        uint64_t tag = 0, value = 0;
        RONDO__TRY(file_varint(walk, &at, end, &tag));
        switch (tag & 7u) {
        case RONDO__PB_VARINT: RONDO__TRY(file_varint(walk, &at, end, &value)); continue;
        case RONDO__PB_FIXED64: value = 8; break;
        case RONDO__PB_FIXED32: value = 4; break;
        case RONDO__PB_BYTES: RONDO__TRY(file_varint(walk, &at, end, &value)); break;
        default: walk->odd = true; break;
        }
        if (value > end - at) walk->odd = true;
        if (walk->odd) break;
        if ((tag & 7u) == RONDO__PB_BYTES && tag >> 3 == file_fields[depth]) {
            if (depth + 1u == FILE_DEPTH) RONDO__TRY(file_leave_out(walk, at, at + value));
            else RONDO__TRY(file_walk_message(walk, at, at + value, depth + 1u));
        }
        at += value;
    }
    return RONDO_OK;
}

rondo_status rondo__onnx_file_read(const rondo_allocator *allocator, const char *path, uint64_t maximum,
                                   rondo__onnx_file *out_file) {
    *out_file = (rondo__onnx_file){.bytes = {.allocator = *allocator}, .path = path, .descriptor = -1};
    rondo__buffer_init(&out_file->holes, allocator, sizeof(file_hole), UINT32_MAX);
    file_walk walk = {.file = out_file};
    uint64_t size = 0;
    rondo_status status = rondo__import_file_open(path, 0, &out_file->descriptor, &size);
    if (!status && size > maximum)
        status = RONDO__FAIL(CORRUPT, FILE,
                             "'%.300s' has %llu bytes; at most %llu are read. Store large weights as external data",
                             path, (unsigned long long)size, (unsigned long long)maximum);
    if (!status) status = rondo__import_file_room(&out_file->bytes, path, size, maximum);
    if (!status) status = file_walk_message(&walk, 0, out_file->bytes.size, 0);
    if (!status) status = file_need(&walk, out_file->bytes.size);
    if (!status) status = rondo__import_file_check(&out_file->bytes, path);
    if (status) rondo__onnx_file_release(out_file);
    return status;
}

void rondo__onnx_file_release(rondo__onnx_file *file) {
    rondo__import_file_release(&file->bytes);
    rondo__buffer_deinit(&file->holes);
    if (file->descriptor >= 0) (void)close(file->descriptor);
    file->descriptor = -1;
}

/* The hole that the bytes are in; null: they are in memory. */
static const file_hole *file_hole_of(const rondo__onnx_file *file, const uint8_t *from, size_t size) {
    size_t low = 0, high = file ? file->holes.count : 0;
    if (!high || from < file->bytes.data || from >= file->bytes.data + file->bytes.size) return NULL;
    uint64_t at = (uint64_t)(from - file->bytes.data);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (RONDO__BUFFER_AT(&file->holes, file_hole, middle)->end <= at) low = middle + 1;
        else high = middle;
    }
    if (low == file->holes.count) return NULL;
    const file_hole *hole = RONDO__BUFFER_AT(&file->holes, file_hole, low);
    return hole->start <= at && size <= hole->end - at ? hole : NULL;
}

bool rondo__onnx_file_has(const rondo__onnx_file *file, rondo__pb_bytes bytes) {
    return !file_hole_of(file, bytes.data, bytes.size);
}

rondo_status rondo__onnx_file_copy(const rondo__onnx_file *file, rondo__pb_bytes bytes, void *out) {
    if (file_hole_of(file, bytes.data, bytes.size))
        return rondo__import_file_fill(file->descriptor, file->path, (uint64_t)(bytes.data - file->bytes.data), out,
                                       bytes.size);
    if (bytes.size) memcpy(out, bytes.data, bytes.size);
    return RONDO_OK;
}
