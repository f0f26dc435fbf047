/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading protobuf's wire form where it lies: fields one by one, nothing copied, nothing allocated.
 *
 *     rondo__pb_reader reader;
 *     rondo__pb_reader_init(&reader, data, size, &budget);
 *     rondo__pb_field field;
 *     while (rondo__pb_next(&reader, &field)) {
 *         switch (field.number) {
 *             case 1: RONDO__TRY(rondo__pb_int64(&reader, &field, &version)); break;
 *             default: break; // unknown fields are skipped
 *         }
 *     }
 *     RONDO__TRY(rondo__pb_end(&reader));
 *
 * The bytes are hostile until read: lengths stay inside their message, varints inside 64 bits, nesting and the number
 * of fields inside the budget. All refusals are CORRUPT (file) and name the byte's place in the whole.
 */
#ifndef RONDO_SRC_IMPORT_PB_READER_H
#define RONDO_SRC_IMPORT_PB_READER_H

#include <stdbool.h>

#include "base/status.h"

typedef uint32_t rondo__pb_wire;
enum { RONDO__PB_VARINT = 0, RONDO__PB_FIXED64 = 1, RONDO__PB_BYTES = 2, RONDO__PB_FIXED32 = 5 };

#define RONDO__PB_FIELDS_MAX (UINT64_C(1) << 27)
#define RONDO__PB_DEPTH_MAX 400u

/* What one whole may spend, shared by all readers of its messages. */
typedef struct rondo__pb_budget {
    const uint8_t *start; /* for places in messages */
    uint64_t fields;      /* still allowed */
    uint32_t depth;       /* deepest nesting allowed */
} rondo__pb_budget;

typedef struct rondo__pb_bytes {
    const uint8_t *data;
    size_t size;
} rondo__pb_bytes;

typedef struct rondo__pb_reader {
    const uint8_t *at, *end;
    rondo__pb_budget *budget;
    rondo_status status; /* why rondo__pb_next returned false; null at the end of the message */
    uint64_t seen;       /* numbers given to rondo__pb_once */
    uint32_t depth;
} rondo__pb_reader;

/* payload is the content of a length-delimited field, or the encoded bytes of a scalar: a repeated scalar therefore
 * reads the same whether packed or not. */
typedef struct rondo__pb_field {
    uint32_t number;
    rondo__pb_wire wire;
    uint64_t value; /* of a scalar: the varint, or the bits of the fixed number */
    rondo__pb_bytes payload;
} rondo__pb_field;

void rondo__pb_budget_init(rondo__pb_budget *budget, const void *data);
void rondo__pb_reader_init(rondo__pb_reader *reader, const void *data, size_t size, rondo__pb_budget *budget);
/* False at the end of the message and on failure: rondo__pb_end tells which. */
bool rondo__pb_next(rondo__pb_reader *reader, rondo__pb_field *out_field);
/* Moves the status out of the reader. */
RONDO_MUST_USE rondo_status rondo__pb_end(rondo__pb_reader *reader);
/* A reader of the message in the field. */
RONDO_MUST_USE rondo_status rondo__pb_enter(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                            rondo__pb_reader *out_reader);
RONDO_MUST_USE rondo_status rondo__pb_enter_bytes(const rondo__pb_reader *reader, rondo__pb_bytes message,
                                                  rondo__pb_reader *out_reader);
/* Refuses the second occurrence of a field that may be there once. Numbers up to 63. */
RONDO_MUST_USE rondo_status rondo__pb_once(rondo__pb_reader *reader, const rondo__pb_field *field);

/* Each refuses another wire type. */
RONDO_MUST_USE rondo_status rondo__pb_int64(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                            int64_t *out_value);
RONDO_MUST_USE rondo_status rondo__pb_int32(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                            int32_t *out_value);
RONDO_MUST_USE rondo_status rondo__pb_float(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                            float *out_value);
RONDO_MUST_USE rondo_status rondo__pb_get_bytes(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                                rondo__pb_bytes *out_bytes);
/* Bytes without a zero byte, at most RONDO__PB_TEXT_MAX of them. */
#define RONDO__PB_TEXT_MAX 65536u
RONDO_MUST_USE rondo_status rondo__pb_get_text(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                               rondo__pb_bytes *out_text);

/* Repeated scalars, packed or not. The count functions check everything; then the payload can be read without checks:
 * rondo__pb_take_varint moves along a payload that was counted. */
RONDO_MUST_USE rondo_status rondo__pb_count_varints(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                                    size_t *out_count);
/* width 4 or 8; the payload is the little-endian numbers one after the other. */
RONDO_MUST_USE rondo_status rondo__pb_count_fixed(const rondo__pb_reader *reader, const rondo__pb_field *field,
                                                  uint32_t width, size_t *out_count);
uint64_t rondo__pb_take_varint(const uint8_t **at);

#endif
