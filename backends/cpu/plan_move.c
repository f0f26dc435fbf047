/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that only move data, of any element type: each becomes a few strided copies with baked offsets. */
#include <string.h>

#include "move.h"

typedef struct move_context {
    uint64_t count;
    uint64_t fill_bytes; /* before the copies: this word's memory is filled with `fill` */
    uint64_t fill_size;
    unsigned char fill[8];
    uint32_t fill_word;
    uint32_t reserved;
    rondo__cpu_move moves[];
} move_context;

/* The commonest: one contiguous run. */
typedef struct move_plain {
    uint64_t bytes;
    int64_t from_at;
    uint32_t out;
} move_plain;

static int32_t move_plain_run(const void *context, const uint64_t *words) {
    const move_plain *c = context;
    void *to = RONDO__CPU_AT(void, words[c->out]);
    const unsigned char *from = RONDO__CPU_AT(unsigned char, words[0]) + c->from_at;
    if (c->bytes > 0 && to != from) memmove(to, from, c->bytes);
    return 0;
}

static int32_t move_run(const void *context, const uint64_t *words) {
    const move_context *c = context;
    if (c->fill_bytes > 0) {
        unsigned char *to = RONDO__CPU_AT(unsigned char, words[c->fill_word]);
        for (uint64_t at = 0; at < c->fill_bytes; at += c->fill_size) memcpy(to + at, c->fill, c->fill_size);
    }
    for (uint64_t i = 0; i < c->count; i++) {
        const rondo__cpu_move *m = &c->moves[i];
        if (m->inner.count == 0) continue;
        rondo__cpu_move_do(m, RONDO__CPU_AT(unsigned char, words[m->from_word]) + m->from_at,
                           RONDO__CPU_AT(unsigned char, words[m->to_word]) + m->to_at);
    }
    return 0;
}

static rondo_status move_make(rondo__cpu_plan *plan, uint64_t count, move_context **out) {
    rondo_status status = rondo__cpu_context(plan, sizeof(move_context) + count * sizeof(rondo__cpu_move), out);
    if (status) return status;
    (*out)->count = count;
    plan->kernel.function = move_run;
    plan->facts.variant = "copies with baked offsets";
    return RONDO_OK;
}

/* One copy that turned out to be one run becomes a plain one. */
static void move_simplify(rondo__cpu_plan *plan, move_context *c) {
    const rondo__cpu_move m = c->moves[0];
    if (c->count != 1 || c->fill_bytes > 0 || m.levels > 0 || m.inner.count != 1 || m.from_word != 0 || m.to_at != 0)
        return;
    move_plain plain = {m.run, m.from_at, m.to_word};
    memcpy(c, &plain, sizeof plain);
    plan->kernel.function = move_plain_run;
    plan->facts.variant = "one contiguous copy";
}

static rondo_status move_check(rondo__cpu_plan *plan, uint32_t least, uint32_t most, uint32_t outputs, uint64_t *size) {
    rondo_status status = rondo__cpu_shape_check(plan, least, most, outputs);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0);
    *size = in ? rondo__cpu_element_size(in->dtype) : 0;
    if (*size == 0) return rondo__cpu_refuse(plan, "elements that are not whole bytes have no fast kernel");
    for (uint32_t i = 0; i < plan->request->output_count; i++) {
        const rondo_operand *out = rondo__cpu_output(plan, i);
        if (!out || out->dtype != in->dtype)
            return rondo__cpu_refuse(plan, "output %u has another type than the input", i);
    }
    return RONDO_OK;
}

/* Reshape, Identity and their like: the bytes as they are. */
static rondo_status move_plan_view(rondo__cpu_plan *plan) {
    uint64_t size;
    rondo_status status = move_check(plan, 1, 2, 1, &size);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    if (rondo__cpu_elements(in) != rondo__cpu_elements(out))
        return rondo__cpu_refuse(plan, "input and output differ in size");
    move_plain *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    *c = (move_plain){rondo__cpu_bytes(in), 0, rondo__cpu_word_out(plan, 0)};
    const rondo_operand *shape = rondo__cpu_input(plan, 1);
    if (shape && shape->constant) plan->facts.absorbed_inputs = 2;
    plan->facts.in_place_inputs = 1;
    plan->kernel.function = move_plain_run;
    plan->facts.variant = "one contiguous copy";
    return RONDO_OK;
}

static rondo_status move_plan_transpose(rondo__cpu_plan *plan) {
    uint64_t size;
    rondo_status status = move_check(plan, 1, 1, 1, &size);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    const rondo_attribute *perm = rondo__cpu_attribute(plan, "perm");
    if (out->rank != in->rank || (perm && (perm->kind != RONDO_ATTRIBUTE_INTS || perm->count != (uint32_t)in->rank)))
        return rondo__cpu_refuse(plan, "perm does not fit the input");
    int64_t strides[RONDO_RANK_MAX], from[RONDO_RANK_MAX], to[RONDO_RANK_MAX];
    uint32_t seen = 0;
    rondo__cpu_move_compact(in->rank, in->dims, strides);
    rondo__cpu_move_compact(out->rank, out->dims, to);
    for (int32_t d = 0; d < in->rank; d++) {
        int32_t axis = in->rank - 1 - d;
        if (perm && !rondo__cpu_axis(perm->value.ints[d], in->rank, &axis))
            return rondo__cpu_refuse(plan, "perm names an axis that is not there");
        if (seen >> axis & 1u || in->dims[axis] != out->dims[d]) return rondo__cpu_refuse(plan, "perm does not fit");
        seen |= 1u << axis;
        from[d] = strides[axis];
    }
    move_context *c;
    status = move_make(plan, 1, &c);
    if (status) return status;
    rondo__cpu_move_shape(&c->moves[0], size, out->rank, out->dims, from, to);
    rondo__cpu_move_turn(&c->moves[0], plan->set->turn);
    c->moves[0].to_word = rondo__cpu_word_out(plan, 0);
    move_simplify(plan, c);
    return RONDO_OK;
}

/* Slice: starts, ends, axes and steps known when the plan is made. */
static rondo_status move_slice_bounds(const rondo__cpu_plan *plan, const rondo_operand *in, int64_t *start,
                                      int64_t *step, int64_t *length) {
    int64_t given[4][RONDO_RANK_MAX]; /* starts, ends, axes, steps */
    uint32_t count[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < 4; i++) {
        const rondo_operand *operand = rondo__cpu_input(plan, i + 1);
        if (operand && !rondo__cpu_constant_ints(operand, given[i], RONDO_RANK_MAX, &count[i]))
            return rondo__cpu_refuse(plan, "only constant bounds have a fast kernel");
        if ((operand || i < 2) && count[i] != count[0]) return rondo__cpu_refuse(plan, "bounds differ in number");
    }
    for (int32_t d = 0; d < in->rank; d++) {
        start[d] = 0;
        step[d] = 1;
        length[d] = in->dims[d];
    }
    for (uint32_t i = 0; i < count[0]; i++) {
        int32_t axis;
        const int64_t by = count[3] ? given[3][i] : 1;
        if (!rondo__cpu_axis(count[2] ? given[2][i] : (int64_t)i, in->rank, &axis) || by == 0 || by == INT64_MIN)
            return rondo__cpu_refuse(plan, "an axis or a step is out of range");
        const int64_t dim = in->dims[axis], low = by > 0 ? 0 : -1, high = by > 0 ? dim : dim - 1;
        int64_t a = given[0][i], b = given[1][i];
        if (a < 0) a = a + dim;
        if (b < 0) b = b + dim;
        a = a < low + (by < 0) ? low + (by < 0) : a > high ? high : a;
        b = b < low ? low : b > high ? high : b;
        const int64_t span = by > 0 ? b - a : a - b, stride = by > 0 ? by : -by;
        start[axis] = a;
        step[axis] = by;
        length[axis] = span > 0 ? 1 + (span - 1) / stride : 0;
    }
    return RONDO_OK;
}

static rondo_status move_plan_slice(rondo__cpu_plan *plan) {
    uint64_t size;
    rondo_status status = move_check(plan, 3, 5, 1, &size);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    int64_t start[RONDO_RANK_MAX], step[RONDO_RANK_MAX], length[RONDO_RANK_MAX];
    status = move_slice_bounds(plan, in, start, step, length);
    if (status) return status;
    int64_t from[RONDO_RANK_MAX], to[RONDO_RANK_MAX], at = 0;
    if (out->rank != in->rank) return rondo__cpu_refuse(plan, "input and output differ in rank");
    rondo__cpu_move_compact(in->rank, in->dims, from);
    rondo__cpu_move_compact(out->rank, out->dims, to);
    for (int32_t d = 0; d < in->rank; d++) {
        if (length[d] != out->dims[d]) return rondo__cpu_refuse(plan, "the output's shape does not follow");
        if (length[d] > 0) at += start[d] * from[d];
        from[d] = length[d] > 1 ? from[d] * step[d] : from[d];
    }
    move_context *c;
    status = move_make(plan, 1, &c);
    if (status) return status;
    rondo__cpu_move_shape(&c->moves[0], size, out->rank, out->dims, from, to);
    c->moves[0].from_at = at * (int64_t)size;
    c->moves[0].to_word = rondo__cpu_word_out(plan, 0);
    for (uint32_t i = 1; i < 5; i++) {
        if (rondo__cpu_input(plan, i)) plan->facts.absorbed_inputs |= (uint64_t)1 << i;
    }
    move_simplify(plan, c);
    return RONDO_OK;
}

static bool move_part_fits(const rondo_operand *part, const rondo_operand *whole, int32_t axis) {
    if (!part || part->rank != whole->rank || part->dtype != whole->dtype) return false;
    for (int32_t d = 0; d < whole->rank; d++) {
        if (d != axis && part->dims[d] != whole->dims[d]) return false;
    }
    return true;
}

/* Split and Concat: the whole on one side, parts along an axis on the other. */
static rondo_status move_plan_parts(rondo__cpu_plan *plan, bool split) {
    const rondo_kernel_request *request = plan->request;
    const uint32_t parts = split ? request->output_count : request->input_count;
    const rondo_operand *whole = split ? rondo__cpu_input(plan, 0) : rondo__cpu_output(plan, 0);
    uint64_t size;
    rondo_status status = split ? move_check(plan, 1, 2, RONDO_ARGUMENT_MAX, &size)
                                : move_check(plan, request->input_count, RONDO_ARGUMENT_MAX, 1, &size);
    if (status) return status;
    int32_t axis;
    if (!rondo__cpu_axis(rondo__cpu_attribute_int(plan, "axis", split ? 0 : INT64_MAX), whole->rank, &axis))
        return rondo__cpu_refuse(plan, "the axis is out of range");
    move_context *c;
    status = move_make(plan, parts, &c);
    if (status) return status;
    int64_t strides[RONDO_RANK_MAX], at = 0;
    rondo__cpu_move_compact(whole->rank, whole->dims, strides);
    for (uint32_t i = 0; i < parts; i++) {
        const rondo_operand *part = split ? rondo__cpu_output(plan, i) : rondo__cpu_input(plan, i);
        if (!move_part_fits(part, whole, axis)) return rondo__cpu_refuse(plan, "part %u does not fit the whole", i);
        rondo__cpu_move *m = &c->moves[i];
        int64_t own[RONDO_RANK_MAX];
        rondo__cpu_move_compact(part->rank, part->dims, own);
        rondo__cpu_move_shape(m, size, part->rank, part->dims, split ? strides : own, split ? own : strides);
        *(split ? &m->from_at : &m->to_at) = at * strides[axis] * (int64_t)size;
        m->from_word = split ? 0 : i;
        m->to_word = rondo__cpu_word_out(plan, split ? i : 0);
        at += part->dims[axis];
        if (at > whole->dims[axis]) return rondo__cpu_refuse(plan, "the parts are longer than the whole");
    }
    if (at != whole->dims[axis]) return rondo__cpu_refuse(plan, "the parts are shorter than the whole");
    if (split && rondo__cpu_input(plan, 1) && rondo__cpu_input(plan, 1)->constant) plan->facts.absorbed_inputs = 2;
    move_simplify(plan, c);
    return RONDO_OK;
}

static rondo_status move_plan_split(rondo__cpu_plan *plan) { return move_plan_parts(plan, true); }

static rondo_status move_plan_concat(rondo__cpu_plan *plan) { return move_plan_parts(plan, false); }

static rondo_status move_plan_expand(rondo__cpu_plan *plan) {
    uint64_t size;
    rondo_status status = move_check(plan, 2, 2, 1, &size);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    int64_t own[RONDO_RANK_MAX], from[RONDO_RANK_MAX], to[RONDO_RANK_MAX];
    if (in->rank > out->rank) return rondo__cpu_refuse(plan, "the input does not broadcast to the output");
    rondo__cpu_move_compact(in->rank, in->dims, own);
    rondo__cpu_move_compact(out->rank, out->dims, to);
    for (int32_t d = 0; d < out->rank; d++) {
        const int32_t mine = d - (out->rank - in->rank);
        const int64_t dim = mine < 0 ? 1 : in->dims[mine];
        if (dim != 1 && dim != out->dims[d])
            return rondo__cpu_refuse(plan, "the input does not broadcast to the output");
        from[d] = dim == 1 ? 0 : own[mine];
    }
    move_context *c;
    status = move_make(plan, 1, &c);
    if (status) return status;
    rondo__cpu_move_shape(&c->moves[0], size, out->rank, out->dims, from, to);
    c->moves[0].to_word = rondo__cpu_word_out(plan, 0);
    if (rondo__cpu_input(plan, 1)->constant) plan->facts.absorbed_inputs = 2;
    move_simplify(plan, c);
    return RONDO_OK;
}

#define MOVE_VIEW(name) \
    { name, move_plan_view, 0 }
const rondo__cpu_operator rondo__cpu_move_operators[] = {
    MOVE_VIEW("Reshape"),
    MOVE_VIEW("Identity"),
    MOVE_VIEW("Squeeze"),
    MOVE_VIEW("Unsqueeze"),
    MOVE_VIEW("Flatten"),
    {"Transpose", move_plan_transpose, 0},
    {"Slice", move_plan_slice, 0},
    {"Split", move_plan_split, 0},
    {"Concat", move_plan_concat, 0},
    {"Expand", move_plan_expand, 0},
};
const uint32_t rondo__cpu_move_operator_count = sizeof rondo__cpu_move_operators / sizeof *rondo__cpu_move_operators;
