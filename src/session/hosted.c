/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences and optionals: lists of tensors that are shared, never copied. */
#include <inttypes.h>
#include <string.h>

#include "session/region.h"

static rondo_value *hosted_input(const rondo__region_step *s, uint32_t index) {
    return index < s->step->input_count ? s->inputs[index] : NULL;
}

static rondo_status hosted_sequence(const rondo__region_step *s, const rondo_value **out_sequence) {
    *out_sequence = hosted_input(s, 0);
    if (*out_sequence && (*out_sequence)->kind == RONDO_VALUE_SEQUENCE) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its first input is no sequence");
}

static rondo_status hosted_give(const rondo__region_step *s, rondo_value *value) {
    rondo_value_retain(value);
    s->outputs[0] = value;
    return RONDO_OK;
}

static rondo_status hosted_list(const rondo__region_step *s, rondo_dtype dtype, rondo_value *const *items,
                                size_t count) {
    if (count > UINT32_MAX) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "a sequence of %zu tensors", count);
    return rondo__value_list(&s->session->allocator, RONDO_VALUE_SEQUENCE, dtype, items, (uint32_t)count,
                             &s->outputs[0]);
}

/* A place of a sequence, counted from the end when it is negative; `count` is the number of places. */
static rondo_status hosted_position(const rondo_value *position, uint32_t count, int64_t otherwise, uint32_t *out) {
    int64_t at = otherwise;
    if (position && !rondo__region_number(position, &at)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the position is not one whole number");
    }
    if (at < -(int64_t)count || at >= (int64_t)count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "position %" PRId64 " is not within the %u of the sequence", at, count);
    }
    *out = (uint32_t)(at < 0 ? at + (int64_t)count : at);
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------- sequences */

static rondo_status hosted_construct(const rondo__region_step *s) {
    for (uint32_t i = 0; i < s->step->input_count; i++) {
        const rondo_value *item = s->inputs[i];
        if (!item || item->kind != RONDO_VALUE_TENSOR || item->dtype != s->inputs[0]->dtype) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input %u is no tensor, or of another type than the first", i);
        }
    }
    return hosted_list(s, s->inputs[0]->dtype, s->inputs, s->step->input_count);
}

static rondo_status hosted_empty(const rondo__region_step *s) {
    return hosted_list(s, (rondo_dtype)rondo__region_int(s, "dtype", RONDO_DTYPE_F32), NULL, 0);
}

static rondo_status hosted_at(const rondo__region_step *s) {
    const rondo_value *sequence = NULL;
    uint32_t at = 0;
    RONDO__TRY(hosted_sequence(s, &sequence));
    RONDO__TRY(hosted_position(hosted_input(s, 1), sequence->count, 0, &at));
    return hosted_give(s, sequence->items[at]);
}

static rondo_status hosted_length(const rondo__region_step *s) {
    const rondo_value *sequence = NULL;
    RONDO__TRY(hosted_sequence(s, &sequence));
    RONDO__TRY(rondo__value_tensor(&s->session->allocator, RONDO_DTYPE_I64, 0, NULL, &s->outputs[0]));
    *(int64_t *)s->outputs[0]->data = sequence->count;
    return RONDO_OK;
}

/* The sequence with `added` before place `at`, or without what is there when it is null. */
static rondo_status hosted_changed(const rondo__region_step *s, const rondo_value *sequence, uint32_t at,
                                   rondo_value *added) {
    size_t count = (size_t)sequence->count + 1u, used = 0;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&s->session->allocator, count, sizeof(rondo_value *), &memory));
    rondo_value **items = memory;
    for (uint32_t i = 0; i <= sequence->count; i++) {
        if (i == at && added) items[used++] = added;
        if (i < sequence->count && (added || i != at)) items[used++] = sequence->items[i];
    }
    rondo_status status = hosted_list(s, added ? added->dtype : sequence->dtype, items, used);
    rondo__free(&s->session->allocator, memory, count * sizeof(rondo_value *));
    return status;
}

static rondo_status hosted_insert(const rondo__region_step *s) {
    const rondo_value *sequence = NULL;
    rondo_value *tensor = hosted_input(s, 1);
    uint32_t at = 0;
    RONDO__TRY(hosted_sequence(s, &sequence));
    if (!tensor || tensor->kind != RONDO_VALUE_TENSOR ||
        (sequence->dtype != RONDO_DTYPE_UNDEFINED && sequence->dtype != tensor->dtype)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "what is inserted is no tensor, or of another type than the sequence");
    }
    if (sequence->count == UINT32_MAX) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "the sequence is full");
    const rondo_value *position = hosted_input(s, 2);
    int64_t given = sequence->count;
    if (position && !rondo__region_number(position, &given)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the position is not one whole number");
    }
    /* From the end it counts the tensors that are there; behind the last one is a place, too. */
    if (given < -(int64_t)sequence->count || given > (int64_t)sequence->count) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "position %" PRId64 " is not within the %u of the sequence", given,
                           sequence->count);
    }
    at = (uint32_t)(given < 0 ? given + (int64_t)sequence->count : given);
    return hosted_changed(s, sequence, at, tensor);
}

static rondo_status hosted_erase(const rondo__region_step *s) {
    const rondo_value *sequence = NULL;
    uint32_t at = 0;
    RONDO__TRY(hosted_sequence(s, &sequence));
    RONDO__TRY(hosted_position(hosted_input(s, 1), sequence->count, -1, &at));
    return hosted_changed(s, sequence, at, NULL);
}

static rondo_status hosted_concat(const rondo__region_step *s) {
    const rondo_value *sequence = NULL;
    int64_t stack = rondo__region_int(s, "new_axis", 0);
    RONDO__TRY(hosted_sequence(s, &sequence));
    if (stack != 0 && stack != 1) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "new_axis is neither 0 nor 1");
    return rondo__value_join(&s->session->allocator, sequence->items, sequence->count, rondo__region_int(s, "axis", 0),
                             stack == 1, &s->outputs[0]);
}

/* --------------------------------------------------------------------------------------------------------- split */

static int64_t hosted_number_at(const rondo_value *list, int64_t i) {
    return list->dtype == RONDO_DTYPE_I32 ? ((const int32_t *)list->data)[i] : ((const int64_t *)list->data)[i];
}

/* How many parts, and that their sizes make up the axis. `split` null: each place is a part. */
static rondo_status hosted_parts(const rondo_value *split, int64_t size, int64_t *out_parts) {
    int64_t total = 0;
    if (!split) {
        *out_parts = size;
        return RONDO_OK;
    }
    if (split->kind != RONDO_VALUE_TENSOR || split->rank > 1 ||
        (split->dtype != RONDO_DTYPE_I32 && split->dtype != RONDO_DTYPE_I64)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "split is neither a number nor a list of numbers");
    }
    if (split->rank == 0) {
        int64_t part = hosted_number_at(split, 0);
        if (part < 1) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "parts of %" PRId64, part);
        *out_parts = size / part + (size % part != 0);
        return RONDO_OK;
    }
    for (int64_t i = 0; i < split->dims[0]; i++) {
        int64_t part = hosted_number_at(split, i);
        if (part < 0 || part > size - total) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "part %" PRId64 " of size %" PRId64 " is beyond the axis of %" PRId64, i, part, size);
        }
        total += part;
    }
    if (total != size) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the parts make %" PRId64 ", the axis has %" PRId64, total, size);
    }
    *out_parts = split->dims[0];
    return RONDO_OK;
}

static rondo_status hosted_split_into(const rondo__region_step *s, const rondo_value *value, int32_t axis,
                                      const rondo_value *split, int64_t parts, rondo_value **items) {
    bool drop = !split && rondo__region_int(s, "keepdims", 1) == 0;
    int64_t begin = 0, size = value->dims[axis];
    for (int64_t i = 0; i < parts; i++) {
        int64_t length = !split ? 1 : hosted_number_at(split, split->rank == 0 ? 0 : i);
        if (length > size - begin) length = size - begin; /* the last of equal parts */
        RONDO__TRY(rondo__value_cut(&s->session->allocator, value, axis, begin, length, drop, &items[i]));
        begin += length;
    }
    return RONDO_OK;
}

static rondo_status hosted_split(const rondo__region_step *s) {
    const rondo_value *value = hosted_input(s, 0), *split = hosted_input(s, 1);
    int64_t axis = rondo__region_int(s, "axis", 0), parts = 0;
    void *memory = NULL;
    if (!value || value->kind != RONDO_VALUE_TENSOR || axis < -(int64_t)value->rank || axis >= value->rank) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its first input is no tensor with an axis %" PRId64, axis);
    }
    if (axis < 0) axis += value->rank;
    RONDO__TRY(hosted_parts(split, value->dims[axis], &parts));
    if (parts > (int64_t)UINT32_MAX) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "%" PRId64 " parts", parts);
    size_t count = (size_t)parts;
    RONDO__TRY(rondo__allocate_array(&s->session->allocator, count, sizeof(rondo_value *), &memory));
    rondo_status status = hosted_split_into(s, value, (int32_t)axis, split, parts, memory);
    if (!status) status = hosted_list(s, value->dtype, memory, count);
    rondo__values_release(memory, count);
    rondo__free(&s->session->allocator, memory, count * sizeof(rondo_value *));
    return status;
}

/* ----------------------------------------------------------------------------------------------------- optionals */

static rondo_status hosted_optional(const rondo__region_step *s) {
    rondo_value *element = hosted_input(s, 0);
    if (element && element->kind == RONDO_VALUE_OPTIONAL) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "an optional holds a tensor or a sequence, not another optional");
    }
    return rondo__value_list(&s->session->allocator, RONDO_VALUE_OPTIONAL,
                             element ? element->dtype : RONDO_DTYPE_UNDEFINED, &element, element ? 1u : 0u,
                             &s->outputs[0]);
}

static rondo_status hosted_get(const rondo__region_step *s) {
    rondo_value *value = hosted_input(s, 0);
    if (value && value->kind == RONDO_VALUE_OPTIONAL) value = rondo_value_item(value, 0);
    if (!value) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the optional holds nothing");
    return hosted_give(s, value);
}

static rondo_status hosted_has(const rondo__region_step *s) {
    const rondo_value *value = hosted_input(s, 0);
    RONDO__TRY(rondo__value_tensor(&s->session->allocator, RONDO_DTYPE_BOOL, 0, NULL, &s->outputs[0]));
    *(uint8_t *)s->outputs[0]->data = value && (value->kind != RONDO_VALUE_OPTIONAL || value->count > 0);
    return RONDO_OK;
}

/* Of a sequence or an optional; of tensors there is a kernel. */
static rondo_status hosted_identity(const rondo__region_step *s) {
    if (!hosted_input(s, 0)) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its input is absent");
    return hosted_give(s, s->inputs[0]);
}

rondo_status rondo__region_hosted(const rondo__region_step *s, bool *out_known) {
    static const struct {
        const char *name;
        rondo_status (*run)(const rondo__region_step *s);
    } rows[] = {
        {"ConcatFromSequence", hosted_concat},   {"Identity", hosted_identity},      {"Optional", hosted_optional},
        {"OptionalGetElement", hosted_get},      {"OptionalHasElement", hosted_has}, {"SequenceAt", hosted_at},
        {"SequenceConstruct", hosted_construct}, {"SequenceEmpty", hosted_empty},    {"SequenceErase", hosted_erase},
        {"SequenceInsert", hosted_insert},       {"SequenceLength", hosted_length},  {"SplitToSequence", hosted_split}};
    *out_known = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, s->step->operator_name) != 0) continue;
        *out_known = true;
        if (s->step->output_count == 0 || s->step->outputs[0] == RONDO__COMPILE_SLOT_NONE) return RONDO_OK;
        return rows[i].run(s);
    }
    return RONDO_OK;
}
