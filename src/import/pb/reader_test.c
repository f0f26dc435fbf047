/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader against bytes written by hand from the encoding's description. */
#include "import/pb/reader.h"

#include "harness/harness.h"

static rondo__pb_budget budget;

static rondo__pb_reader reader_of(const void *data, size_t size) {
    rondo__pb_reader reader;
    rondo__pb_budget_init(&budget, data);
    rondo__pb_reader_init(&reader, data, size, &budget);
    return reader;
}

/* Reads all fields and returns how it ended. */
static rondo_status reader_drain(const void *data, size_t size, size_t *out_fields) {
    rondo__pb_reader reader = reader_of(data, size);
    rondo__pb_field field;
    *out_fields = 0;
    while (rondo__pb_next(&reader, &field)) (*out_fields)++;
    return rondo__pb_end(&reader);
}

static void test_scalars(rondo_test *t) {
    /* 1: varint 150; 2: fixed64 1; 3: "abc"; 4: fixed32 1.0f; 5: varint -1 */
    static const uint8_t bytes[] = {0x08, 0x96, 0x01, 0x11, 1,    0,    0,    0,    0,    0,    0,
                                    0,    0x1a, 3,    'a',  'b',  'c',  0x25, 0,    0,    0x80, 0x3f,
                                    0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    rondo__pb_reader reader = reader_of(bytes, sizeof bytes);
    rondo__pb_field field;
    int64_t number;
    int32_t small;
    float real;
    rondo__pb_bytes text;
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_EQ(t, field.number, 1);
    T_OK(t, rondo__pb_int64(&reader, &field, &number));
    T_EQ(t, number, 150);
    T_FAILS(t, rondo__pb_float(&reader, &field, &real), CORRUPT, "field 1 has wire type 0, not 5");
    T_FAILS(t, rondo__pb_get_bytes(&reader, &field, &text), CORRUPT, "wire type");
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_EQ(t, field.wire, RONDO__PB_FIXED64);
    T_EQ(t, field.value, 1);
    T_FAILS(t, rondo__pb_int64(&reader, &field, &number), CORRUPT, "wire type");
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_get_text(&reader, &field, &text));
    T_EQ(t, text.size, 3);
    T_TRUE(t, text.data == bytes + 14); /* where it lies, not a copy */
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_float(&reader, &field, &real));
    T_TRUE(t, real == 1.0f);
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_int32(&reader, &field, &small));
    T_EQ(t, small, -1);
    T_TRUE(t, !rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_end(&reader));

    /* Cut anywhere it is an error or a whole number of fields, never a read past the end. */
    static const uint8_t starts[] = {0, 3, 12, 17, 22, sizeof bytes};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        size_t fields, whole = 0;
        bool at_start = memchr(starts, (int)size, sizeof starts) != NULL;
        rondo_status status = reader_drain(bytes, size, &fields);
        while (whole + 1 < sizeof starts && starts[whole + 1] <= size) whole++;
        T_EQ(t, fields, whole);
        if (at_start) T_OK(t, status);
        else T_FAILS(t, status, CORRUPT, "byte ");
    }
}

static void test_numbers_that_are_too_long(rondo_test *t) {
    size_t fields;
    static const uint8_t largest[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    T_OK(t, reader_drain(largest, sizeof largest, &fields));
    static const uint8_t beyond[] = {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    T_FAILS(t, reader_drain(beyond, sizeof beyond, &fields), CORRUPT, "64 bits");
    static const uint8_t eleven[] = {0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    T_FAILS(t, reader_drain(eleven, sizeof eleven, &fields), CORRUPT, "64 bits");
    static const uint8_t padded[] = {0x08, 0x81, 0x80, 0x00}; /* 1 in three bytes is still 1 */
    T_OK(t, reader_drain(padded, sizeof padded, &fields));
    rondo__pb_reader reader = reader_of(padded, sizeof padded);
    rondo__pb_field field;
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_EQ(t, field.value, 1);
    static const uint8_t large[] = {0x08, 0x80, 0x80, 0x80, 0x80, 0x08}; /* 2^31 */
    reader = reader_of(large, sizeof large);
    int32_t small;
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_int32(&reader, &field, &small), CORRUPT, "2147483648");
}

static void test_lengths(rondo_test *t) {
    size_t fields;
    static const uint8_t two_gigabytes[] = {0x3a, 0x80, 0x80, 0x80, 0x80, 0x08, 'x'};
    T_FAILS(t, reader_drain(two_gigabytes, sizeof two_gigabytes, &fields), CORRUPT,
            "field 7 claims 2147483648 bytes where 1 are left");
    static const uint8_t wraps[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    T_FAILS(t, reader_drain(wraps, sizeof wraps, &fields), CORRUPT, "18446744073709551615");
    static const uint8_t empty[] = {0x0a, 0x00};
    T_OK(t, reader_drain(empty, sizeof empty, &fields));
    T_EQ(t, fields, 1);
    T_OK(t, reader_drain(NULL, 0, &fields));
    T_EQ(t, fields, 0);
}

static void test_what_is_no_field(rondo_test *t) {
    size_t fields;
    static const uint8_t keys[] = {0x0b, 0x0c, 0x0e, 0x0f};
    for (size_t i = 0; i < sizeof keys; i++) {
        uint8_t bytes[2] = {keys[i], 0};
        T_FAILS(t, reader_drain(bytes, 2, &fields), CORRUPT, i < 2 ? "group" : "wire type");
    }
    static const uint8_t zero[] = {0x00, 0x00};
    T_FAILS(t, reader_drain(zero, sizeof zero, &fields), CORRUPT, "number");
    static const uint8_t highest[] = {0xf8, 0xff, 0xff, 0xff, 0x0f, 0x00}; /* 2^29 - 1 */
    T_OK(t, reader_drain(highest, sizeof highest, &fields));
    static const uint8_t higher[] = {0x80, 0x80, 0x80, 0x80, 0x10, 0x00}; /* 2^29 */
    T_FAILS(t, reader_drain(higher, sizeof higher, &fields), CORRUPT, "number");
}

static void test_limits(rondo_test *t) {
    static const uint8_t ints[] = {0x08, 1, 0x08, 2, 0x08, 3};
    rondo__pb_reader reader = reader_of(ints, sizeof ints);
    rondo__pb_field field;
    budget.fields = 2;
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_TRUE(t, !rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_end(&reader), CORRUPT, "more fields");
    T_TRUE(t, !rondo__pb_next(&reader, &field));

    /* Messages in messages: each byte pair is a field whose length is all that follows. */
    uint8_t nested[200];
    for (size_t i = 0; i < sizeof nested; i += 2) {
        nested[i] = 0x0a;
        nested[i + 1] = (uint8_t)(sizeof nested - 2 - i > 127 ? 127 : sizeof nested - 2 - i);
    }
    uint32_t depth = 0;
    reader = reader_of(nested + sizeof nested - 100, 100);
    budget.depth = 20;
    for (;;) {
        rondo__pb_reader inner;
        T_TRUE(t, rondo__pb_next(&reader, &field));
        if (reader.depth == 20) {
            T_FAILS(t, rondo__pb_enter(&reader, &field, &inner), CORRUPT, "nested deeper than 20");
            break;
        }
        T_OK(t, rondo__pb_enter(&reader, &field, &inner));
        reader = inner;
        T_EQ(t, reader.depth, ++depth);
    }
}

static void test_once_and_text(rondo_test *t) {
    static const uint8_t twice[] = {0x0a, 1, 'a', 0x0a, 1, 'b', 0x12, 2, 'a', 0};
    rondo__pb_reader reader = reader_of(twice, sizeof twice);
    rondo__pb_field field;
    rondo__pb_bytes text;
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_once(&reader, &field));
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_once(&reader, &field), CORRUPT, "byte 5: field 1 is there twice");
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_once(&reader, &field));
    T_FAILS(t, rondo__pb_get_text(&reader, &field, &text), CORRUPT, "zero byte");
    T_OK(t, rondo__pb_get_bytes(&reader, &field, &text));
    T_EQ(t, text.size, 2);
    static uint8_t long_text[RONDO__PB_TEXT_MAX + 5] = {0x0a, 0x81, 0x80, 0x04};
    memset(long_text + 4, 'x', RONDO__PB_TEXT_MAX + 1);
    reader = reader_of(long_text, sizeof long_text);
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_get_text(&reader, &field, &text), CORRUPT, "65537 bytes");
}

static void test_repeated(rondo_test *t) {
    static const uint8_t packed[] = {0x0a, 4, 1, 0x96, 0x01, 2, 0x08, 7, 0x12, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
    static const uint64_t want[] = {1, 150, 2, 7};
    rondo__pb_reader reader = reader_of(packed, sizeof packed);
    rondo__pb_field field;
    size_t count, total = 0;
    for (int i = 0; i < 2; i++) { /* packed, then one on its own */
        T_TRUE(t, rondo__pb_next(&reader, &field));
        T_OK(t, rondo__pb_count_varints(&reader, &field, &count));
        T_EQ(t, count, i == 0 ? 3 : 1);
        const uint8_t *at = field.payload.data;
        for (size_t k = 0; k < count; k++) T_EQ(t, rondo__pb_take_varint(&at), want[total++]);
        T_TRUE(t, at == field.payload.data + field.payload.size);
    }
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_OK(t, rondo__pb_count_fixed(&reader, &field, 4, &count));
    T_EQ(t, count, 2);
    T_OK(t, rondo__pb_count_fixed(&reader, &field, 8, &count));
    T_EQ(t, count, 1);
    static const uint8_t broken[] = {0x0a, 3, 1, 2, 0x80, 0x15, 0, 0, 0, 0};
    reader = reader_of(broken, sizeof broken);
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_count_varints(&reader, &field, &count), CORRUPT, "ends inside a number");
    T_FAILS(t, rondo__pb_count_fixed(&reader, &field, 4, &count), CORRUPT, "3 bytes are no whole number");
    T_TRUE(t, rondo__pb_next(&reader, &field));
    T_FAILS(t, rondo__pb_count_varints(&reader, &field, &count), CORRUPT, "wire type");
    T_FAILS(t, rondo__pb_count_fixed(&reader, &field, 8, &count), CORRUPT, "wire type");
}

RONDO_TEST_MAIN(T(test_scalars), T(test_numbers_that_are_too_long), T(test_lengths), T(test_what_is_no_field),
                T(test_limits), T(test_once_and_text), T(test_repeated))
