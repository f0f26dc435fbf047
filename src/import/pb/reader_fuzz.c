/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks any bytes as nested messages, and counts and takes every field as each of the repeated kinds. */
#include "import/pb/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t reader_fuzz_walk(rondo__pb_reader *reader) {
    rondo__pb_field field;
    uint64_t sum = 0;
    while (rondo__pb_next(reader, &field)) {
        size_t count;
        if (field.payload.size && (field.payload.data < reader->budget->start || field.payload.data > reader->end))
            __builtin_trap();
        rondo_status status = rondo__pb_count_varints(reader, &field, &count);
        const uint8_t *at = field.payload.data;
        for (size_t i = 0; !status && i < count; i++) sum += rondo__pb_take_varint(&at);
        if (!status && at != field.payload.data + field.payload.size) __builtin_trap();
        rondo_status_release(status);
        status = rondo__pb_count_fixed(reader, &field, 4, &count);
        if (!status && count * 4 != field.payload.size) __builtin_trap();
        rondo_status_release(status);
        rondo__pb_bytes text;
        status = rondo__pb_get_text(reader, &field, &text);
        for (size_t i = 0; !status && i < text.size; i++) sum += text.data[i];
        rondo_status_release(status);
        rondo_status_release(rondo__pb_once(reader, &field));
        rondo__pb_reader inner;
        status = rondo__pb_enter(reader, &field, &inner);
        if (!status) sum += reader_fuzz_walk(&inner);
        rondo_status_release(status);
    }
    rondo_status_release(rondo__pb_end(reader));
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rondo__pb_budget budget;
    rondo__pb_reader reader;
    rondo__pb_budget_init(&budget, data);
    budget.fields = 10000;
    rondo__pb_reader_init(&reader, data, size, &budget);
    return reader_fuzz_walk(&reader) == UINT64_MAX ? -1 : 0;
}
