/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens from a graph's file. Nothing here trusts a length: each is held against what is left of the file before memory
 * is taken for it. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <rondo/ir.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/file.h"

#define IR_SCAN_NUMBER_MAX 63u

rondo_status rondo__ir_scan_fail(const rondo__ir_scanner *scanner, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (scanner->binary) {
        return RONDO__FAIL(CORRUPT, FILE, "'%.300s', byte %zu: %s", scanner->name,
                           (size_t)(scanner->at - scanner->start), text);
    }
    size_t line = 1;
    for (const uint8_t *c = scanner->start; c < scanner->at; c++) line += *c == '\n';
    return RONDO__FAIL(CORRUPT, FILE, "'%.300s', line %zu: %s", scanner->name, line, text);
}

/* Whitespace, and comments from ';' to the end of their line. */
static void ir_scan_skip(rondo__ir_scanner *scanner) {
    bool comment = false;
    for (; scanner->at < scanner->end; scanner->at++) {
        char c = (char)*scanner->at;
        if (comment ? c == '\n' : c == ';') comment = !comment;
        else if (!comment && c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
    }
}

/* The word that is next, of plain characters; `more` are allowed, too. */
static size_t ir_scan_word(const rondo__ir_scanner *scanner, char more) {
    const uint8_t *c = scanner->at;
    while (c < scanner->end && (rondo__ir_file_plain_char((char)*c) || (more && *c == (uint8_t)more))) c++;
    return (size_t)(c - scanner->at);
}

static rondo_status scan_open_text(rondo__ir_scanner *scanner) {
    static const char magic[] = RONDO_IR_TEXT_MAGIC;
    int64_t version = 0;
    scanner->at += sizeof magic - 1u;
    RONDO__TRY(rondo__ir_scan_int(scanner, &version));
    if (version == RONDO__IR_FILE_MAJOR) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, FILE, "'%.300s' is of version %" PRId64 " of the format, this library reads %u",
                       scanner->name, version, RONDO__IR_FILE_MAJOR);
}

static rondo_status scan_open_binary(rondo__ir_scanner *scanner, size_t size) {
    scanner->binary = true;
    if (size < RONDO__IR_FILE_MAGIC_SIZE + 2u + RONDO__IR_FILE_CHECKSUM) {
        return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is cut", scanner->name);
    }
    uint32_t major = scanner->start[RONDO__IR_FILE_MAGIC_SIZE];
    if (major != RONDO__IR_FILE_MAJOR) {
        return RONDO__FAIL(UNSUPPORTED, FILE, "'%.300s' is of version %u of the format, this library reads %u",
                           scanner->name, major, RONDO__IR_FILE_MAJOR);
    }
    scanner->end -= RONDO__IR_FILE_CHECKSUM;
    uint64_t sum = 0;
    for (size_t i = 0; i < RONDO__IR_FILE_CHECKSUM; i++) sum |= (uint64_t)scanner->end[i] << 8u * i;
    if (XXH3_64bits(scanner->start, size - RONDO__IR_FILE_CHECKSUM) != sum) {
        return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is cut or was changed: its checksum is another", scanner->name);
    }
    scanner->at += RONDO__IR_FILE_MAGIC_SIZE + 2u;
    return RONDO_OK;
}

bool rondo_ir_graph_is_file(const void *data, size_t size) {
    static const char magic[] = RONDO_IR_TEXT_MAGIC;
    return data &&
           ((size >= RONDO__IR_FILE_MAGIC_SIZE && memcmp(data, RONDO__IR_FILE_MAGIC, RONDO__IR_FILE_MAGIC_SIZE) == 0) ||
            (size > sizeof magic - 1u && memcmp(data, magic, sizeof magic - 1u) == 0 &&
             ((const char *)data)[sizeof magic - 1u] == ' '));
}

rondo_status rondo__ir_scanner_open(rondo__ir_scanner *scanner, const rondo_allocator *allocator, const char *name,
                                    const void *data, size_t size) {
    *scanner = (rondo__ir_scanner){.name = name, .start = data, .at = data, .allocator = *allocator};
    rondo__buffer_init(&scanner->scratch, allocator, 1, SIZE_MAX / 2u);
    if (!rondo_ir_graph_is_file(data, size)) {
        return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is no graph's file: neither the text nor the binary form", name);
    }
    scanner->end = scanner->start + size;
    return *scanner->start == (uint8_t)RONDO_IR_TEXT_MAGIC[0] ? scan_open_text(scanner)
                                                              : scan_open_binary(scanner, size);
}

void rondo__ir_scanner_close(rondo__ir_scanner *scanner) { rondo__buffer_deinit(&scanner->scratch); }

bool rondo__ir_scan_at_end(rondo__ir_scanner *scanner) {
    if (!scanner->binary) ir_scan_skip(scanner);
    return scanner->at == scanner->end;
}

bool rondo__ir_scan_is(rondo__ir_scanner *scanner, rondo__ir_mark mark) {
    size_t left = (size_t)(scanner->end - scanner->at);
    if (scanner->binary) {
        if (!left || *scanner->at != (uint8_t)(mark + 1)) return false;
        scanner->at++;
        return true;
    }
    ir_scan_skip(scanner);
    const char *text = rondo__ir_mark_text(mark);
    size_t length = strlen(text);
    left = (size_t)(scanner->end - scanner->at);
    if (left < length || memcmp(scanner->at, text, length) != 0) return false;
    bool arrow = left > 1 && scanner->at[0] == '-' && scanner->at[1] == '>';
    if (arrow != (mark == RONDO__IR_MARK_ARROW)) return false;
    if (!arrow && rondo__ir_file_plain_char(text[0]) && ir_scan_word(scanner, 0) != length) return false;
    scanner->at += length;
    return true;
}

rondo_status rondo__ir_scan_mark(rondo__ir_scanner *scanner, rondo__ir_mark mark) {
    if (rondo__ir_scan_is(scanner, mark)) return RONDO_OK;
    return rondo__ir_scan_fail(scanner, "'%s' is missing", rondo__ir_mark_text(mark));
}

bool rondo__ir_scan_at_int(rondo__ir_scanner *scanner) {
    if (rondo__ir_scan_at_end(scanner)) return false;
    uint8_t c = *scanner->at;
    if (scanner->binary) return c == RONDO__IR_TOKEN_INT;
    return (c >= '0' && c <= '9') || (c == '-' && scanner->end - scanner->at > 1 && scanner->at[1] != '>');
}

/* A number of seven bits a byte, behind its token. */
static rondo_status ir_scan_length(rondo__ir_scanner *scanner, uint8_t token, uint64_t *out_value) {
    if (scanner->at == scanner->end || *scanner->at != token) {
        return rondo__ir_scan_fail(scanner, "a token of kind %#x is missing", token);
    }
    const uint8_t *c = scanner->at + 1;
    uint64_t value = 0;
    for (uint32_t shift = 0; c < scanner->end; shift += 7) {
        uint8_t byte = *c++;
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (byte & 0x80u) continue;
        scanner->at = c;
        *out_value = value;
        return RONDO_OK;
    }
    return rondo__ir_scan_fail(scanner, "a number is cut or too long");
}

/* The word of a number, with a terminator. */
static rondo_status ir_scan_number(rondo__ir_scanner *scanner, char word[IR_SCAN_NUMBER_MAX + 1u]) {
    ir_scan_skip(scanner);
    size_t length = ir_scan_word(scanner, '+');
    if (!length || length > IR_SCAN_NUMBER_MAX) return rondo__ir_scan_fail(scanner, "a number is missing");
    memcpy(word, scanner->at, length);
    word[length] = '\0';
    return RONDO_OK;
}

static rondo_status ir_scan_integer(rondo__ir_scanner *scanner, int64_t minimum, uint64_t maximum, uint64_t *out_bits) {
    char word[IR_SCAN_NUMBER_MAX + 1u], *end = NULL;
    RONDO__TRY(ir_scan_number(scanner, word));
    bool negative = word[0] == '-';
    const char *digits = word + negative;
    errno = 0;
    uint64_t value = *digits >= '0' && *digits <= '9' ? strtoull(digits, &end, 10) : 0;
    uint64_t most = negative ? (uint64_t)0 - (uint64_t)minimum : maximum;
    if (!end || *end || errno || value > most) {
        return rondo__ir_scan_fail(scanner, "'%s' is no whole number from %" PRId64 " to %" PRIu64, word, minimum,
                                   maximum);
    }
    scanner->at += strlen(word);
    *out_bits = negative ? (uint64_t)0 - value : value;
    return RONDO_OK;
}

rondo_status rondo__ir_scan_int(rondo__ir_scanner *scanner, int64_t *out_value) {
    uint64_t bits = 0;
    if (!scanner->binary) {
        RONDO__TRY(ir_scan_integer(scanner, INT64_MIN, INT64_MAX, &bits));
        *out_value = (int64_t)bits;
        return RONDO_OK;
    }
    RONDO__TRY(ir_scan_length(scanner, RONDO__IR_TOKEN_INT, &bits));
    *out_value = (int64_t)(bits >> 1 ^ ((uint64_t)0 - (bits & 1u)));
    return RONDO_OK;
}

/* strtod wants the locale's decimal point where the file has a point. */
static double ir_scan_strtod(const char *word, bool narrow, bool *out_whole) {
    char point[16], text[IR_SCAN_NUMBER_MAX + sizeof point], *end = NULL;
    int length = snprintf(point, sizeof point, "%.1f", 0.5); /* "0", the point, "5" */
    const char *dot = strchr(word, '.');
    if (length < 3 || !dot) {
        (void)snprintf(text, sizeof text, "%s", word);
    } else {
        (void)snprintf(text, sizeof text, "%.*s%.*s%s", (int)(dot - word), word, length - 2, point + 1, dot + 1);
    }
    double value = narrow ? (double)strtof(text, &end) : strtod(text, &end);
    *out_whole = end && end != text && !*end && isfinite(value);
    return value;
}

/* The bits of a float or a double. */
static rondo_status ir_scan_real(rondo__ir_scanner *scanner, bool narrow, uint64_t *out_bits) {
    char word[IR_SCAN_NUMBER_MAX + 1u], *end = NULL;
    bool whole = true;
    double value = 0;
    RONDO__TRY(ir_scan_number(scanner, word));
    if (strncmp(word, "nan:", 4) == 0) {
        errno = 0;
        uint64_t bits = strtoull(word + 4, &end, 16);
        uint64_t infinite = narrow ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);
        uint64_t most = narrow ? UINT32_MAX : UINT64_MAX, sign = narrow ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
        if (!word[4] || *end || errno || bits > most || (bits & ~sign) <= infinite) {
            return rondo__ir_scan_fail(scanner, "'%s' is no number and no NaN", word);
        }
        *out_bits = bits;
        scanner->at += strlen(word);
        return RONDO_OK;
    }
    if (strcmp(word, "inf") == 0 || strcmp(word, "-inf") == 0) {
        value = word[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    } else {
        value = ir_scan_strtod(word, narrow, &whole);
    }
    if (!whole) return rondo__ir_scan_fail(scanner, "'%s' is no number", word);
    float single = (float)value;
    *out_bits = 0;
    memcpy(out_bits, narrow ? (const void *)&single : (const void *)&value, narrow ? sizeof single : sizeof value);
    scanner->at += strlen(word);
    return RONDO_OK;
}

rondo_status rondo__ir_scan_float(rondo__ir_scanner *scanner, float *out_value) {
    uint64_t bits = 0;
    if (!scanner->binary) {
        RONDO__TRY(ir_scan_real(scanner, true, &bits));
    } else if (scanner->end - scanner->at < 5 || *scanner->at != RONDO__IR_TOKEN_FLOAT) {
        return rondo__ir_scan_fail(scanner, "a float is missing");
    } else {
        for (size_t i = 0; i < 4; i++) bits |= (uint64_t)scanner->at[1 + i] << 8u * i;
        scanner->at += 5;
    }
    uint32_t word = (uint32_t)bits;
    memcpy(out_value, &word, sizeof *out_value);
    return RONDO_OK;
}

static int ir_scan_hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static rondo_status ir_scan_quoted(rondo__ir_scanner *scanner, rondo_string *out_text) {
    const uint8_t *c = scanner->at + 1;
    scanner->scratch.count = 0;
    for (; c < scanner->end && *c != '"'; c++) {
        uint8_t byte = *c;
        if (byte < 0x20u) break;
        if (byte == '\\') {
            size_t left = (size_t)(scanner->end - c);
            if (left > 1 && (c[1] == '"' || c[1] == '\\')) {
                byte = *++c;
            } else if (left > 3 && c[1] == 'x' && ir_scan_hex(c[2]) >= 0 && ir_scan_hex(c[3]) >= 0) {
                byte = (uint8_t)(ir_scan_hex(c[2]) * 16 + ir_scan_hex(c[3]));
                c += 3;
            } else {
                return rondo__ir_scan_fail(scanner, "a text has an escape that is none of \\\" \\\\ \\x00");
            }
        }
        RONDO__TRY(rondo__buffer_append(&scanner->scratch, &byte, 1));
    }
    if (c >= scanner->end || *c != '"') return rondo__ir_scan_fail(scanner, "a quoted text does not end in its line");
    size_t size = scanner->scratch.count;
    RONDO__TRY(rondo__buffer_append(&scanner->scratch, NULL, 1)); /* so that there is always something to point to */
    *out_text = (rondo_string){scanner->scratch.data, size};
    scanner->at = c + 1;
    return RONDO_OK;
}

rondo_status rondo__ir_scan_text(rondo__ir_scanner *scanner, rondo_string *out_text) {
    if (scanner->binary) {
        uint64_t length = 0;
        RONDO__TRY(ir_scan_length(scanner, RONDO__IR_TOKEN_TEXT, &length));
        if (length > (uint64_t)(scanner->end - scanner->at)) return rondo__ir_scan_fail(scanner, "a text is cut");
        *out_text = (rondo_string){(const char *)scanner->at, (size_t)length};
        scanner->at += length;
        return RONDO_OK;
    }
    ir_scan_skip(scanner);
    if (scanner->at < scanner->end && *scanner->at == '"') return ir_scan_quoted(scanner, out_text);
    size_t length = ir_scan_word(scanner, 0);
    if (!rondo__ir_file_plain((const char *)scanner->at, length)) {
        return rondo__ir_scan_fail(scanner, "a name is missing");
    }
    *out_text = (rondo_string){(const char *)scanner->at, length};
    scanner->at += length;
    return RONDO_OK;
}

static rondo_status ir_scan_element(rondo__ir_scanner *scanner, rondo_dtype dtype, uint64_t *out_bits) {
    switch (dtype) {
    case RONDO_DTYPE_F32: return ir_scan_real(scanner, true, out_bits);
    case RONDO_DTYPE_F64: return ir_scan_real(scanner, false, out_bits);
    case RONDO_DTYPE_I8: return ir_scan_integer(scanner, INT8_MIN, INT8_MAX, out_bits);
    case RONDO_DTYPE_I16: return ir_scan_integer(scanner, INT16_MIN, INT16_MAX, out_bits);
    case RONDO_DTYPE_I32: return ir_scan_integer(scanner, INT32_MIN, INT32_MAX, out_bits);
    case RONDO_DTYPE_I64: return ir_scan_integer(scanner, INT64_MIN, INT64_MAX, out_bits);
    case RONDO_DTYPE_U16: return ir_scan_integer(scanner, 0, UINT16_MAX, out_bits);
    case RONDO_DTYPE_U32: return ir_scan_integer(scanner, 0, UINT32_MAX, out_bits);
    case RONDO_DTYPE_U64: return ir_scan_integer(scanner, 0, UINT64_MAX, out_bits);
    default: return ir_scan_integer(scanner, 0, UINT8_MAX, out_bits);
    }
}

static rondo_status ir_scan_list(rondo__ir_scanner *scanner, rondo_dtype dtype, int64_t elements, uint8_t *out) {
    size_t size = rondo__ir_file_listed(dtype);
    for (int64_t i = 0; i < elements; i++) {
        uint64_t bits = 0;
        if (i) RONDO__TRY(rondo__ir_scan_mark(scanner, RONDO__IR_MARK_COMMA));
        RONDO__TRY(ir_scan_element(scanner, dtype, &bits));
        memcpy(out + (size_t)i * size, &bits, size);
    }
    return rondo__ir_scan_mark(scanner, RONDO__IR_MARK_RIGHT);
}

static int ir_scan_digit64(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static rondo_status ir_scan_base64(rondo__ir_scanner *scanner, size_t bytes, uint8_t *out) {
    uint32_t word = 0, digits = 0;
    size_t used = 0;
    ir_scan_skip(scanner);
    if (scanner->at == scanner->end || *scanner->at != '<') return rondo__ir_scan_fail(scanner, "'<' is missing");
    for (scanner->at++; scanner->at < scanner->end && *scanner->at != '>'; scanner->at++) {
        uint8_t c = *scanner->at;
        int digit = ir_scan_digit64(c);
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
        if (c == '=' && used == bytes) continue;
        if (digit < 0 || used == bytes)
            return rondo__ir_scan_fail(scanner, "%zu bytes of base64 are wanted here", bytes);
        word = word << 6 | (uint32_t)digit;
        if (++digits % 4u == 0) {
            for (uint32_t shift = 24; shift && used < bytes; shift -= 8) out[used++] = (uint8_t)(word >> (shift - 8u));
            word = 0;
        } else if (bytes - used < 3 && digits % 4u == bytes - used + 1u) { /* the last one or two bytes */
            word <<= 6u * (4u - digits % 4u);
            for (uint32_t shift = 24; used < bytes; shift -= 8) out[used++] = (uint8_t)(word >> (shift - 8u));
        }
    }
    if (scanner->at == scanner->end || used != bytes) return rondo__ir_scan_fail(scanner, "base64 data is cut");
    scanner->at++;
    return RONDO_OK;
}

rondo_status rondo__ir_scan_data(rondo__ir_scanner *scanner, rondo_dtype dtype, int64_t elements, size_t bytes,
                                 void **out_data) {
    uint64_t length = 0;
    bool base64 = false;
    if (scanner->binary) {
        RONDO__TRY(ir_scan_length(scanner, RONDO__IR_TOKEN_DATA, &length));
        if (length != bytes) return rondo__ir_scan_fail(scanner, "%zu bytes of data are wanted here", bytes);
    } else {
        base64 = rondo__ir_scan_is(scanner, RONDO__IR_MARK_BASE64);
        if (!base64) RONDO__TRY(rondo__ir_scan_mark(scanner, RONDO__IR_MARK_LEFT));
    }
    /* An element of a list takes a digit and a comma; three bytes of base64 four digits. */
    size_t left = (size_t)(scanner->end - scanner->at);
    bool fits = scanner->binary ? bytes <= left : base64 ? bytes / 3u <= left / 4u : (uint64_t)elements <= left;
    if (!fits) return rondo__ir_scan_fail(scanner, "%zu bytes of data are more than there is left", bytes);
    if (!scanner->binary && !base64 && elements && !rondo__ir_file_listed(dtype)) {
        return rondo__ir_scan_fail(scanner, "%s is not listed: give its bytes as base64", rondo_dtype_name(dtype));
    }
    void *data = NULL;
    RONDO__TRY(rondo__allocate(&scanner->allocator, bytes ? bytes : 1u, &data));
    rondo_status status = RONDO_OK;
    if (scanner->binary) {
        if (bytes) memcpy(data, scanner->at, bytes);
        scanner->at += bytes;
    } else {
        status = base64 ? ir_scan_base64(scanner, bytes, data) : ir_scan_list(scanner, dtype, elements, data);
    }
    if (status) {
        rondo__free(&scanner->allocator, data, bytes ? bytes : 1u);
        return status;
    }
    *out_data = data;
    return RONDO_OK;
}
