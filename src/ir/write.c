/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of a graph's file, as text or as bytes, handed over in pieces. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/escape.h"
#include "ir/file.h"

#define IR_WRITE_PIECE 32768u
#define IR_WRITE_LINE 96u /* of base64, in characters */

static const char *const ir_mark_texts[] = {
#define RONDO_X(name, text) text,
    RONDO__IR_MARKS(RONDO_X)
#undef RONDO_X
};

const char *rondo__ir_mark_text(rondo__ir_mark mark) { return mark < RONDO__IR_MARK_COUNT ? ir_mark_texts[mark] : ""; }

bool rondo__ir_file_plain_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_./:#@$-", c));
}

bool rondo__ir_file_plain(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (!rondo__ir_file_plain_char(text[i])) return false;
    }
    /* What begins as a number or as "-" does would be taken for one. */
    return size > 0 && text[0] != '-' && text[0] != '.' && !(text[0] >= '0' && text[0] <= '9');
}

size_t rondo__ir_file_listed(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_BOOL:
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_U8: return 1;
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_U16: return 2;
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_U32: return 4;
    case RONDO_DTYPE_F64:
    case RONDO_DTYPE_I64:
    case RONDO_DTYPE_U64: return 8;
    default: return 0;
    }
}

static rondo_status ir_write_flush(rondo__ir_writer *writer, size_t at_least) {
    if (writer->text.count < at_least || !writer->text.count) return RONDO_OK;
    if (writer->binary) (void)XXH3_64bits_update(writer->hash, writer->text.data, writer->text.count);
    if (writer->write(writer->user, writer->text.data, writer->text.count)) {
        return RONDO__FAIL(IO, FILE, "the graph's file was not taken");
    }
    writer->text.count = 0;
    return RONDO_OK;
}

static rondo_status ir_write_bytes(rondo__ir_writer *writer, const void *data, size_t size) {
    RONDO__TRY(rondo__buffer_append(&writer->text, data, size));
    return ir_write_flush(writer, IR_WRITE_PIECE);
}

rondo_status rondo__ir_writer_open(rondo__ir_writer *writer, const rondo_allocator *allocator, bool binary,
                                   rondo_write_function write, void *user) {
    *writer = (rondo__ir_writer){.write = write, .user = user, .binary = binary};
    rondo__buffer_init(&writer->text, allocator, 1, SIZE_MAX / 2u);
    if (!binary) {
        char head[48];
        int length = snprintf(head, sizeof head, "rondo-graph %u\n\n", RONDO__IR_FILE_MAJOR);
        return ir_write_bytes(writer, head, (size_t)length);
    }
    RONDO__TRY(rondo__allocate_aligned(allocator, sizeof(XXH3_state_t), 64, &writer->hash));
    (void)XXH3_64bits_reset(writer->hash);
    static const uint8_t version[2] = {RONDO__IR_FILE_MAJOR, RONDO__IR_FILE_MINOR};
    RONDO__TRY(ir_write_bytes(writer, RONDO__IR_FILE_MAGIC, RONDO__IR_FILE_MAGIC_SIZE));
    return ir_write_bytes(writer, version, sizeof version);
}

rondo_status rondo__ir_writer_close(rondo__ir_writer *writer, rondo_status so_far) {
    rondo_status status = so_far ? so_far : ir_write_flush(writer, 0);
    if (!status && writer->binary) {
        uint64_t sum = XXH3_64bits_digest(writer->hash);
        uint8_t bytes[RONDO__IR_FILE_CHECKSUM];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(sum >> 8u * i);
        status = ir_write_bytes(writer, bytes, sizeof bytes);
        if (!status) status = ir_write_flush(writer, 0);
    }
    rondo__free_aligned(&writer->text.allocator, writer->hash, sizeof(XXH3_state_t), 64);
    rondo__buffer_deinit(&writer->text);
    return status;
}

rondo_status rondo__ir_write_mark(rondo__ir_writer *writer, rondo__ir_mark mark) {
    uint8_t number = (uint8_t)(mark + 1);
    if (writer->binary) return ir_write_bytes(writer, &number, 1);
    return ir_write_bytes(writer, ir_mark_texts[mark], strlen(ir_mark_texts[mark]));
}

rondo_status rondo__ir_write_space(rondo__ir_writer *writer, const char *space) {
    return writer->binary ? RONDO_OK : ir_write_bytes(writer, space, strlen(space));
}

static rondo_status ir_write_length(rondo__ir_writer *writer, uint8_t token, uint64_t value) {
    uint8_t bytes[11] = {token};
    size_t count = 1;
    for (; value >= 0x80u; value >>= 7) bytes[count++] = (uint8_t)(value | 0x80u);
    bytes[count++] = (uint8_t)value;
    return ir_write_bytes(writer, bytes, count);
}

rondo_status rondo__ir_write_int(rondo__ir_writer *writer, int64_t value) {
    char text[32];
    if (writer->binary) {
        return ir_write_length(writer, RONDO__IR_TOKEN_INT, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
    }
    return ir_write_bytes(writer, text, (size_t)snprintf(text, sizeof text, "%" PRId64, value));
}

/* printf writes the locale's decimal point; a file has a point. What is no number is written bit by bit. */
static rondo_status ir_write_real(rondo__ir_writer *writer, double value, int digits, uint64_t bits) {
    char text[48], clean[48];
    if (isnan(value)) return ir_write_bytes(writer, text, (size_t)snprintf(text, sizeof text, "nan:%" PRIx64, bits));
    if (isinf(value)) return ir_write_bytes(writer, value > 0 ? "inf" : "-inf", value > 0 ? 3u : 4u);
    int length = snprintf(text, sizeof text, "%.*g", digits, value);
    size_t used = 0;
    bool point = false;
    for (int i = 0; i < length; i++) {
        bool digit = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+' || text[i] == 'e';
        if (digit) clean[used++] = text[i];
        else if (!point) clean[used++] = '.';
        point = point || !digit;
    }
    return ir_write_bytes(writer, clean, used);
}

rondo_status rondo__ir_write_float(rondo__ir_writer *writer, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!writer->binary) return ir_write_real(writer, (double)value, 9, bits);
    uint8_t bytes[5] = {RONDO__IR_TOKEN_FLOAT};
    for (size_t i = 0; i < 4; i++) bytes[1 + i] = (uint8_t)(bits >> 8u * i);
    return ir_write_bytes(writer, bytes, sizeof bytes);
}

rondo_status rondo__ir_write_text(rondo__ir_writer *writer, const char *text, size_t size) {
    if (writer->binary) {
        RONDO__TRY(ir_write_length(writer, RONDO__IR_TOKEN_TEXT, size));
        return size ? ir_write_bytes(writer, text, size) : RONDO_OK;
    }
    if (rondo__ir_file_plain(text, size)) return ir_write_bytes(writer, text, size);
    RONDO__TRY(ir_write_bytes(writer, "\"", 1));
    for (size_t i = 0; i < size;) {
        char escape[8];
        uint32_t point;
        size_t length = rondo__utf8_sequence(text + i, size - i, &point);
        if (text[i] == '"' || text[i] == '\\') {
            escape[0] = '\\';
            escape[1] = text[i++];
            RONDO__TRY(ir_write_bytes(writer, escape, 2));
        } else if (!length || point < 0x20u || point == 0x7fu) {
            (void)snprintf(escape, sizeof escape, "\\x%02x", (uint8_t)text[i++]);
            RONDO__TRY(ir_write_bytes(writer, escape, 4));
        } else {
            RONDO__TRY(ir_write_bytes(writer, text + i, length));
            i += length;
        }
    }
    return ir_write_bytes(writer, "\"", 1);
}

static rondo_status ir_write_element(rondo__ir_writer *writer, rondo_dtype dtype, const uint8_t *at) {
    char text[32];
    uint64_t bits = 0;
    size_t size = rondo__ir_file_listed(dtype);
    float narrow;
    double wide;
    memcpy(&bits, at, size);
    switch (dtype) {
    case RONDO_DTYPE_F32: memcpy(&narrow, at, sizeof narrow); return ir_write_real(writer, (double)narrow, 9, bits);
    case RONDO_DTYPE_F64: memcpy(&wide, at, sizeof wide); return ir_write_real(writer, wide, 17, bits);
    case RONDO_DTYPE_I8: return rondo__ir_write_int(writer, (int8_t)bits);
    case RONDO_DTYPE_I16: return rondo__ir_write_int(writer, (int16_t)bits);
    case RONDO_DTYPE_I32: return rondo__ir_write_int(writer, (int32_t)bits);
    case RONDO_DTYPE_I64: return rondo__ir_write_int(writer, (int64_t)bits);
    default: return ir_write_bytes(writer, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, bits));
    }
}

static rondo_status ir_write_base64(rondo__ir_writer *writer, const uint8_t *data, size_t bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    RONDO__TRY(rondo__ir_write_mark(writer, RONDO__IR_MARK_BASE64));
    RONDO__TRY(ir_write_bytes(writer, " <", 2));
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i < 3 ? bytes - i : 3;
        uint32_t word = (uint32_t)data[i] << 16;
        if (left > 1) word |= (uint32_t)data[i + 1] << 8;
        if (left > 2) word |= data[i + 2];
        char four[5] = {digits[word >> 18], digits[word >> 12 & 63u], left > 1 ? digits[word >> 6 & 63u] : '=',
                        left > 2 ? digits[word & 63u] : '='};
        if (i % (IR_WRITE_LINE / 4u * 3u) == 0) RONDO__TRY(ir_write_bytes(writer, "\n", 1));
        RONDO__TRY(ir_write_bytes(writer, four, 4));
    }
    return ir_write_bytes(writer, ">", 1);
}

rondo_status rondo__ir_write_data(rondo__ir_writer *writer, rondo_dtype dtype, const void *data, int64_t elements,
                                  size_t bytes) {
    if (writer->binary) {
        RONDO__TRY(ir_write_length(writer, RONDO__IR_TOKEN_DATA, bytes));
        return bytes ? ir_write_bytes(writer, data, bytes) : RONDO_OK;
    }
    size_t size = rondo__ir_file_listed(dtype);
    if (elements && (!size || elements > RONDO__IR_FILE_LISTED_MAX)) return ir_write_base64(writer, data, bytes);
    RONDO__TRY(ir_write_bytes(writer, "[", 1));
    for (int64_t i = 0; i < elements; i++) {
        if (i) RONDO__TRY(ir_write_bytes(writer, ", ", 2));
        RONDO__TRY(ir_write_element(writer, dtype, (const uint8_t *)data + (size_t)i * size));
    }
    return ir_write_bytes(writer, "]", 1);
}
