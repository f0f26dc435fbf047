/* SPDX-License-Identifier: Apache-2.0
 *
 * The wire form: a key (number and wire type), then a value, again and again. Every read asks first whether the bytes
 * are there; lengths are compared with what is left, never added to a pointer. */
#include "import/pb/reader.h"

#include <string.h>

#define RONDO__PB_NUMBER_MAX ((UINT64_C(1) << 29) - 1u)

void rondo__pb_budget_init(rondo__pb_budget *budget, const void *data) {
    budget->start = data;
    budget->fields = RONDO__PB_FIELDS_MAX;
    budget->depth = RONDO__PB_DEPTH_MAX;
}

void rondo__pb_reader_init(rondo__pb_reader *reader, const void *data, size_t size, rondo__pb_budget *budget) {
    memset(reader, 0, sizeof *reader);
    reader->at = data;
    reader->end = size ? reader->at + size : reader->at;
    reader->budget = budget;
}

static size_t pb_place(const rondo__pb_reader *reader, const uint8_t *at) {
    return at && reader->budget->start ? (size_t)(at - reader->budget->start) : 0;
}

/* Null when it worked, else why it did not. */
static const char *pb_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
    const uint8_t *p = *at;
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p == end) return "the data ends inside a number";
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1) return "a number is longer than 64 bits";
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (!(byte & 0x80u)) {
            *at = p;
            *out = value;
            return NULL;
        }
    }
    return "a number is longer than 64 bits";
}

static bool pb_refuse(rondo__pb_reader *reader, const uint8_t *at, const char *why) {
    reader->status = RONDO__FAIL(CORRUPT, FILE, "byte %zu: %s", pb_place(reader, at), why);
    reader->at = reader->end;
    return false;
}

static const char *pb_fixed(rondo__pb_reader *reader, rondo__pb_field *field, size_t width) {
    if ((size_t)(reader->end - reader->at) < width) return "the data ends inside a number";
    for (size_t i = 0; i < width; i++) field->value |= (uint64_t)reader->at[i] << (8u * i);
    reader->at += width;
    return NULL;
}

bool rondo__pb_next(rondo__pb_reader *reader, rondo__pb_field *out_field) {
    if (reader->at == reader->end || reader->status) return false;
    const uint8_t *key_at = reader->at;
    if (!reader->budget->fields) return pb_refuse(reader, key_at, "more fields than any model has");
    reader->budget->fields--;
    uint64_t key;
    const char *why = pb_varint(&reader->at, reader->end, &key);
    if (why) return pb_refuse(reader, key_at, why);
    uint64_t number = key >> 3;
    if (number == 0 || number > RONDO__PB_NUMBER_MAX) return pb_refuse(reader, key_at, "no field has this number");

    rondo__pb_field field = {.number = (uint32_t)number, .wire = (rondo__pb_wire)(key & 7u)};
    const uint8_t *value_at = reader->at;
    switch (field.wire) {
    case RONDO__PB_VARINT: why = pb_varint(&reader->at, reader->end, &field.value); break;
    case RONDO__PB_FIXED64: why = pb_fixed(reader, &field, 8); break;
    case RONDO__PB_FIXED32: why = pb_fixed(reader, &field, 4); break;
    case RONDO__PB_BYTES: {
        uint64_t length = 0;
        why = pb_varint(&reader->at, reader->end, &length);
        if (why) break;
        value_at = reader->at;
        size_t left = (size_t)(reader->end - reader->at);
        if (length > left) {
            reader->status =
                RONDO__FAIL(CORRUPT, FILE, "byte %zu: truncated: field %u claims %llu bytes where %zu are left",
                            pb_place(reader, key_at), field.number, (unsigned long long)length, left);
            reader->at = reader->end;
            return false;
        }
        reader->at += length;
        break;
    }
    case 3:
    case 4: why = "a group, which no model has"; break;
    default: why = "no field has this wire type"; break;
    }
    if (why) return pb_refuse(reader, key_at, why);
    field.payload = (rondo__pb_bytes){value_at, (size_t)(reader->at - value_at)};
    *out_field = field;
    return true;
}

rondo_status rondo__pb_end(rondo__pb_reader *reader) {
    rondo_status status = reader->status;
    reader->status = RONDO_OK;
    return status;
}

static rondo_status pb_expect(const rondo__pb_reader *reader, const rondo__pb_field *field, rondo__pb_wire wire) {
    if (field->wire == wire) return RONDO_OK;
    return RONDO__FAIL(CORRUPT, FILE, "byte %zu: field %u has wire type %u, not %u",
                       pb_place(reader, field->payload.data), field->number, field->wire, wire);
}

rondo_status rondo__pb_enter_bytes(const rondo__pb_reader *reader, rondo__pb_bytes message,
                                   rondo__pb_reader *out_reader) {
    if (reader->depth >= reader->budget->depth)
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: messages are nested deeper than %u",
                           pb_place(reader, message.data), reader->budget->depth);
    uint32_t depth = reader->depth + 1;
    rondo__pb_reader_init(out_reader, message.data, message.size, reader->budget);
    out_reader->depth = depth;
    return RONDO_OK;
}

rondo_status rondo__pb_enter(const rondo__pb_reader *reader, const rondo__pb_field *field,
                             rondo__pb_reader *out_reader) {
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_BYTES));
    return rondo__pb_enter_bytes(reader, field->payload, out_reader);
}

rondo_status rondo__pb_once(rondo__pb_reader *reader, const rondo__pb_field *field) {
    uint64_t bit = field->number < 64 ? UINT64_C(1) << field->number : 0;
    if (reader->seen & bit)
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: field %u is there twice", pb_place(reader, field->payload.data),
                           field->number);
    reader->seen |= bit;
    return RONDO_OK;
}

rondo_status rondo__pb_int64(const rondo__pb_reader *reader, const rondo__pb_field *field, int64_t *out_value) {
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_VARINT));
    *out_value = (int64_t)field->value;
    return RONDO_OK;
}

rondo_status rondo__pb_int32(const rondo__pb_reader *reader, const rondo__pb_field *field, int32_t *out_value) {
    int64_t value;
    RONDO__TRY(rondo__pb_int64(reader, field, &value));
    if (value < INT32_MIN || value > INT32_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: field %u is %lld, which no 32-bit number is",
                           pb_place(reader, field->payload.data), field->number, (long long)value);
    *out_value = (int32_t)value;
    return RONDO_OK;
}

rondo_status rondo__pb_float(const rondo__pb_reader *reader, const rondo__pb_field *field, float *out_value) {
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_FIXED32));
    uint32_t bits = (uint32_t)field->value;
    memcpy(out_value, &bits, sizeof bits);
    return RONDO_OK;
}

rondo_status rondo__pb_get_bytes(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                 rondo__pb_bytes *out_bytes) {
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_BYTES));
    *out_bytes = field->payload;
    return RONDO_OK;
}

rondo_status rondo__pb_get_text(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                rondo__pb_bytes *out_text) {
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_BYTES));
    const rondo__pb_bytes *p = &field->payload;
    if (p->size > RONDO__PB_TEXT_MAX)
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: a name of %zu bytes; at most %u are allowed",
                           pb_place(reader, p->data), p->size, RONDO__PB_TEXT_MAX);
    if (p->size && memchr(p->data, 0, p->size))
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: a name with a zero byte in it", pb_place(reader, p->data));
    *out_text = *p;
    return RONDO_OK;
}

rondo_status rondo__pb_count_varints(const rondo__pb_reader *reader, const rondo__pb_field *field, size_t *out_count) {
    if (field->wire == RONDO__PB_VARINT) {
        *out_count = 1;
        return RONDO_OK;
    }
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_BYTES));
    const uint8_t *at = field->payload.data;
    const uint8_t *end = at + field->payload.size;
    size_t count = 0;
    while (at != end) {
        uint64_t value;
        const char *why = pb_varint(&at, end, &value);
        if (why) return RONDO__FAIL(CORRUPT, FILE, "byte %zu: %s", pb_place(reader, at), why);
        count++;
    }
    *out_count = count;
    return RONDO_OK;
}

rondo_status rondo__pb_count_fixed(const rondo__pb_reader *reader, const rondo__pb_field *field, uint32_t width,
                                   size_t *out_count) {
    if (field->wire == (width == 8 ? RONDO__PB_FIXED64 : RONDO__PB_FIXED32)) {
        *out_count = 1;
        return RONDO_OK;
    }
    RONDO__TRY(pb_expect(reader, field, RONDO__PB_BYTES));
    if (field->payload.size % width)
        return RONDO__FAIL(CORRUPT, FILE, "byte %zu: %zu bytes are no whole number of %u-byte numbers",
                           pb_place(reader, field->payload.data), field->payload.size, width);
    *out_count = field->payload.size / width;
    return RONDO_OK;
}

uint64_t rondo__pb_take_varint(const uint8_t **at) {
    const uint8_t *p = *at;
    uint64_t value = 0;
    unsigned shift = 0;
    for (;;) {
        uint8_t byte = *p++;
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (!(byte & 0x80u)) break;
        shift += 7;
    }
    *at = p;
    return value;
}
