/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather and Pad. A Gather of one constant index is a slice; other indices are walked at run time, checked one by one.
 * Pad copies the inside, then mirrors or repeats along the last axis through a table of where each border element
 * comes from. */
#include <string.h>

#include "move.h"

/* ----------------------------------------------------------------------------------------------------- Gather */

enum { GATHER_OUT_OF_RANGE = 2 };

typedef struct gather_context {
    uint64_t outer, count, run; /* run in bytes: an element of the axis with all that is behind it */
    int64_t axis;               /* its length */
    uint32_t wide;              /* indices are int64 */
    uint32_t constant;          /* indices are in the context */
    uint64_t from_at;           /* of the single constant index */
    int64_t indices[];
} gather_context;

static int32_t gather_run(const void *context, const uint64_t *words) {
    const gather_context *c = context;
    const unsigned char *from = RONDO__CPU_AT(unsigned char, words[0]);
    const void *given = c->constant ? (const void *)c->indices : RONDO__CPU_AT(void, words[1]);
    unsigned char *to = RONDO__CPU_AT(unsigned char, words[2]);
    const uint64_t row = (uint64_t)c->axis * c->run;
    for (uint64_t o = 0; o < c->outer; o++, from += row) {
        for (uint64_t i = 0; i < c->count; i++, to += c->run) {
            int64_t index = c->wide ? ((const int64_t *)given)[i] : ((const int32_t *)given)[i];
            if (index < 0) index += c->axis;
            if (index < 0 || index >= c->axis) return GATHER_OUT_OF_RANGE;
            memcpy(to, from + (uint64_t)index * c->run, c->run);
        }
    }
    return 0;
}

static int32_t gather_run_one(const void *context, const uint64_t *words) {
    const gather_context *c = context;
    const unsigned char *from = RONDO__CPU_AT(unsigned char, words[0]) + c->from_at;
    unsigned char *to = RONDO__CPU_AT(unsigned char, words[2]);
    const uint64_t row = (uint64_t)c->axis * c->run;
    switch (c->run) {
    case 4:
        for (uint64_t o = 0; o < c->outer; o++, from += row, to += 4) memcpy(to, from, 4);
        break;
    case 8:
        for (uint64_t o = 0; o < c->outer; o++, from += row, to += 8) memcpy(to, from, 8);
        break;
    default:
        for (uint64_t o = 0; o < c->outer; o++, from += row, to += c->run) memcpy(to, from, c->run);
        break;
    }
    return 0;
}

/* Constant indices: into the context, each in [0, axis). */
static bool gather_take_indices(gather_context *c, const rondo_operand *indices) {
    for (uint64_t i = 0; i < c->count; i++) {
        int64_t index;
        if (indices->dtype == RONDO_DTYPE_I64) {
            memcpy(&index, (const char *)indices->constant + 8 * i, 8);
        } else {
            int32_t narrow;
            memcpy(&narrow, (const char *)indices->constant + 4 * i, 4);
            index = narrow;
        }
        if (index < 0) index += c->axis;
        if (index < 0 || index >= c->axis) return false;
        c->indices[i] = index;
    }
    c->constant = c->wide = 1;
    return true;
}

static rondo_status gather_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 2, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *indices = rondo__cpu_input(plan, 1);
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    const uint64_t size = rondo__cpu_element_size(in->dtype), count = rondo__cpu_elements(indices);
    int32_t axis;
    if (size == 0 || !rondo__cpu_is(out, in->dtype) ||
        (indices->dtype != RONDO_DTYPE_I64 && indices->dtype != RONDO_DTYPE_I32))
        return rondo__cpu_refuse(plan, "these types have no fast kernel");
    if (!rondo__cpu_axis(rondo__cpu_attribute_int(plan, "axis", 0), in->rank, &axis))
        return rondo__cpu_refuse(plan, "the axis is out of range");
    const uint64_t outer = rondo__cpu_span(in, 0, axis), inner = rondo__cpu_span(in, axis + 1, in->rank);
    uint64_t expected;
    if (__builtin_mul_overflow(outer * inner, count, &expected) || rondo__cpu_elements(out) != expected)
        return rondo__cpu_refuse(plan, "the output's shape does not fit");
    const bool constant = indices->constant != NULL;
    gather_context *c;
    status = rondo__cpu_context(plan, sizeof *c + (constant ? count * sizeof(int64_t) : 0), &c);
    if (status) return status;
    c->outer = expected == 0 ? 0 : outer;
    c->count = count;
    c->run = inner * size;
    c->axis = in->dims[axis];
    c->wide = indices->dtype == RONDO_DTYPE_I64;
    plan->kernel.function = gather_run;
    plan->facts.variant = "gather, indices checked at run time";
    if (!constant) return RONDO_OK;
    if (!gather_take_indices(c, indices)) return rondo__cpu_refuse(plan, "a constant index is out of range");
    plan->facts.absorbed_inputs = 2;
    plan->facts.variant = "gather, indices baked";
    if (count == 1 && expected > 0) {
        c->from_at = (uint64_t)c->indices[0] * c->run;
        plan->kernel.function = gather_run_one;
        plan->facts.variant = "gather of one index, copies with baked offsets";
    }
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- Pad */

typedef struct pad_context {
    rondo__cpu_move inside;
    uint64_t out_bytes, size;
    uint32_t out_word;
    uint32_t fill; /* constant mode: the whole output first */
    unsigned char value[8];
    uint64_t rows, row_in, row_out; /* border modes: last axis alone; lengths in elements */
    uint64_t before, after;
    uint32_t border[]; /* where each border element comes from, in elements of the input row */
} pad_context;

static int32_t pad_run(const void *context, const uint64_t *words) {
    const pad_context *c = context;
    unsigned char *to = RONDO__CPU_AT(unsigned char, words[c->out_word]);
    if (c->fill == 1) memset(to, c->value[0], c->out_bytes);
    for (uint64_t at = 0; c->fill == 2 && at < c->out_bytes; at += c->size) memcpy(to + at, c->value, c->size);
    if (c->inside.inner.count == 0) return 0;
    rondo__cpu_move_do(&c->inside, RONDO__CPU_AT(unsigned char, words[0]) + c->inside.from_at, to + c->inside.to_at);
    return 0;
}

static void pad_border(const uint32_t *border, uint64_t count, const unsigned char *from, unsigned char *to,
                       uint64_t size) {
    if (size == 4) {
        for (uint64_t i = 0; i < count; i++) memcpy(to + 4 * i, from + 4u * (size_t)border[i], 4);
    } else {
        for (uint64_t i = 0; i < count; i++) memcpy(to + size * i, from + size * border[i], size);
    }
}

static int32_t pad_run_border(const void *context, const uint64_t *words) {
    const pad_context *c = context;
    const unsigned char *from = RONDO__CPU_AT(unsigned char, words[0]);
    unsigned char *to = RONDO__CPU_AT(unsigned char, words[c->out_word]);
    const uint64_t size = c->size, bytes = c->row_in * size;
    for (uint64_t r = 0; r < c->rows; r++, from += bytes, to += c->row_out * size) {
        pad_border(c->border, c->before, from, to, size);
        memcpy(to + c->before * size, from, bytes);
        pad_border(c->border + c->before, c->after, from, to + c->before * size + bytes, size);
    }
    return 0;
}

/* Padding before and after each axis of the input. */
static rondo_status pad_read(const rondo__cpu_plan *plan, const rondo_operand *in, const rondo_operand *out,
                             int64_t *before, int64_t *after) {
    int64_t given[2 * RONDO_RANK_MAX], axes[RONDO_RANK_MAX];
    uint32_t count, axis_count = (uint32_t)in->rank;
    if (!rondo__cpu_constant_ints(rondo__cpu_input(plan, 1), given, 2 * RONDO_RANK_MAX, &count))
        return rondo__cpu_refuse(plan, "only constant pads have a fast kernel");
    for (int32_t d = 0; d < in->rank; d++) {
        axes[d] = d;
        before[d] = after[d] = 0;
    }
    const rondo_operand *named = rondo__cpu_input(plan, 3);
    if (named && !rondo__cpu_constant_ints(named, axes, RONDO_RANK_MAX, &axis_count))
        return rondo__cpu_refuse(plan, "only constant axes have a fast kernel");
    if (count != 2 * axis_count || out->rank != in->rank) return rondo__cpu_refuse(plan, "pads do not fit the input");
    for (uint32_t i = 0; i < axis_count; i++) {
        int32_t axis;
        if (!rondo__cpu_axis(axes[i], in->rank, &axis)) return rondo__cpu_refuse(plan, "an axis is out of range");
        before[axis] = given[i];
        after[axis] = given[axis_count + i];
    }
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t size;
        if (before[d] < 0 || after[d] < 0) return rondo__cpu_refuse(plan, "negative pads have no fast kernel");
        if (__builtin_add_overflow(in->dims[d], before[d], &size) || __builtin_add_overflow(size, after[d], &size) ||
            size != out->dims[d])
            return rondo__cpu_refuse(plan, "the output's shape does not follow");
    }
    return RONDO_OK;
}

static rondo_status pad_plan_constant(rondo__cpu_plan *plan, const int64_t *before) {
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    const rondo_operand *value = rondo__cpu_input(plan, 2);
    const uint64_t size = rondo__cpu_element_size(in->dtype);
    if (value && (!value->constant || value->dtype != in->dtype || rondo__cpu_elements(value) != 1))
        return rondo__cpu_refuse(plan, "only a constant value has a fast kernel");
    pad_context *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    int64_t from[RONDO_RANK_MAX], to[RONDO_RANK_MAX], at = 0;
    rondo__cpu_move_compact(in->rank, in->dims, from);
    rondo__cpu_move_compact(out->rank, out->dims, to);
    for (int32_t d = 0; d < in->rank; d++) at += before[d] * to[d];
    rondo__cpu_move_shape(&c->inside, size, in->rank, in->dims, from, to);
    c->inside.to_at = at * (int64_t)size;
    c->out_bytes = rondo__cpu_bytes(out);
    c->size = size;
    c->out_word = rondo__cpu_word_out(plan, 0);
    if (value) memcpy(c->value, value->constant, size);
    bool same = true;
    for (uint64_t i = 1; i < size; i++) same = same && c->value[i] == c->value[0];
    c->fill = same ? 1 : 2;
    plan->kernel.function = pad_run;
    plan->facts.variant = "filled, then copied inside";
    return RONDO_OK;
}

/* Where a border element at `at` (in input coordinates, outside [0, n)) comes from. */
static int64_t pad_source(int64_t at, int64_t n, bool reflect) {
    if (!reflect) return at < 0 ? 0 : n - 1;
    return at < 0 ? -at : 2 * (n - 1) - at;
}

static rondo_status pad_plan_border(rondo__cpu_plan *plan, const int64_t *before, const int64_t *after, bool reflect) {
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    const int32_t last = in->rank - 1;
    for (int32_t d = 0; d < last; d++) {
        if (before[d] != 0 || after[d] != 0) return rondo__cpu_refuse(plan, "only the last axis has a fast kernel");
    }
    const int64_t n = last < 0 ? 0 : in->dims[last], most = reflect ? n - 1 : INT32_MAX;
    if (n < 1 || n > INT32_MAX || before[last] > most || after[last] > most)
        return rondo__cpu_refuse(plan, "a border wider than the axis has no fast kernel");
    const uint64_t border = (uint64_t)(before[last] + after[last]);
    pad_context *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c + border * sizeof(uint32_t), &c);
    if (status) return status;
    c->size = rondo__cpu_element_size(in->dtype);
    c->out_word = rondo__cpu_word_out(plan, 0);
    c->rows = rondo__cpu_span(in, 0, last);
    c->row_in = (uint64_t)n;
    c->row_out = (uint64_t)out->dims[last];
    c->before = (uint64_t)before[last];
    c->after = (uint64_t)after[last];
    for (int64_t i = 0; i < before[last]; i++) c->border[i] = (uint32_t)pad_source(i - before[last], n, reflect);
    for (int64_t i = 0; i < after[last]; i++) c->border[before[last] + i] = (uint32_t)pad_source(n + i, n, reflect);
    plan->kernel.function = pad_run_border;
    plan->facts.variant = "rows copied, borders through a table";
    return RONDO_OK;
}

static rondo_status pad_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 4, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    int64_t before[RONDO_RANK_MAX], after[RONDO_RANK_MAX];
    if (rondo__cpu_element_size(in->dtype) == 0 || !rondo__cpu_is(out, in->dtype))
        return rondo__cpu_refuse(plan, "these types have no fast kernel");
    status = pad_read(plan, in, out, before, after);
    if (status) return status;
    const bool reflect = rondo__cpu_attribute(plan, "mode") && rondo__cpu_attribute_is(plan, "mode", "reflect");
    const bool edge = rondo__cpu_attribute(plan, "mode") && rondo__cpu_attribute_is(plan, "mode", "edge");
    if (rondo__cpu_attribute_is(plan, "mode", "constant")) {
        status = pad_plan_constant(plan, before);
    } else if (reflect || edge) {
        status = pad_plan_border(plan, before, after, reflect);
    } else {
        status = rondo__cpu_refuse(plan, "this mode has no fast kernel");
    }
    if (status) return status;
    for (uint32_t i = 1; i < 4; i++) {
        if (rondo__cpu_input(plan, i) && rondo__cpu_input(plan, i)->constant)
            plan->facts.absorbed_inputs |= (uint64_t)1 << i;
    }
    return RONDO_OK;
}

const rondo__cpu_operator rondo__cpu_gather_operators[] = {{"Gather", gather_plan, 0}, {"Pad", pad_plan, 0}};
const uint32_t rondo__cpu_gather_operator_count =
    sizeof rondo__cpu_gather_operators / sizeof *rondo__cpu_gather_operators;
