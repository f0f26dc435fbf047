/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast between the types that models mix, and Where. */
#include <string.h>

#include "move.h"

/* ------------------------------------------------------------------------------------------------------- Cast */

typedef void (*cast_row)(const void *from, void *to, uint64_t count);

/* As kernels/ref: a float is truncated into 32 bits for int32 and 64 for int64, and what does not fit becomes the
 * lowest integer of that width, as x86-64's scalar instructions do. */
static inline int32_t cast_to_i32(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN; }

static inline int64_t cast_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

#define CAST_ROW(name, source, target, expression)                        \
    static void cast_##name(const void *from, void *to, uint64_t count) { \
        const source *in = from;                                          \
        target *out = to;                                                 \
        for (uint64_t i = 0; i < count; i++) {                            \
            const source x = in[i];                                       \
            out[i] = (target)(expression);                                \
        }                                                                 \
    }

CAST_ROW(f32_f64, float, double, x)
CAST_ROW(f32_i32, float, int32_t, cast_to_i32((double)x))
CAST_ROW(f32_i64, float, int64_t, cast_to_i64((double)x))
CAST_ROW(f32_bool, float, uint8_t, x != 0.0f)
CAST_ROW(f64_f32, double, float, x)
CAST_ROW(f64_i32, double, int32_t, cast_to_i32(x))
CAST_ROW(f64_i64, double, int64_t, cast_to_i64(x))
CAST_ROW(f64_bool, double, uint8_t, x != 0.0)
CAST_ROW(i32_f32, int32_t, float, x)
CAST_ROW(i32_f64, int32_t, double, x)
CAST_ROW(i32_i64, int32_t, int64_t, x)
CAST_ROW(i32_bool, int32_t, uint8_t, x != 0)
CAST_ROW(i64_f32, int64_t, float, x)
CAST_ROW(i64_f64, int64_t, double, x)
CAST_ROW(i64_i32, int64_t, int32_t, (uint64_t)x)
CAST_ROW(i64_bool, int64_t, uint8_t, x != 0)
CAST_ROW(bool_f32, uint8_t, float, x != 0)
CAST_ROW(bool_f64, uint8_t, double, x != 0)
CAST_ROW(bool_i32, uint8_t, int32_t, x != 0)
CAST_ROW(bool_i64, uint8_t, int64_t, x != 0)

static const struct {
    rondo_dtype from, to;
    cast_row row;
} cast_rows[] = {
    {RONDO_DTYPE_F32, RONDO_DTYPE_F64, cast_f32_f64},   {RONDO_DTYPE_F32, RONDO_DTYPE_I32, cast_f32_i32},
    {RONDO_DTYPE_F32, RONDO_DTYPE_I64, cast_f32_i64},   {RONDO_DTYPE_F32, RONDO_DTYPE_BOOL, cast_f32_bool},
    {RONDO_DTYPE_F64, RONDO_DTYPE_F32, cast_f64_f32},   {RONDO_DTYPE_F64, RONDO_DTYPE_I32, cast_f64_i32},
    {RONDO_DTYPE_F64, RONDO_DTYPE_I64, cast_f64_i64},   {RONDO_DTYPE_F64, RONDO_DTYPE_BOOL, cast_f64_bool},
    {RONDO_DTYPE_I32, RONDO_DTYPE_F32, cast_i32_f32},   {RONDO_DTYPE_I32, RONDO_DTYPE_F64, cast_i32_f64},
    {RONDO_DTYPE_I32, RONDO_DTYPE_I64, cast_i32_i64},   {RONDO_DTYPE_I32, RONDO_DTYPE_BOOL, cast_i32_bool},
    {RONDO_DTYPE_I64, RONDO_DTYPE_F32, cast_i64_f32},   {RONDO_DTYPE_I64, RONDO_DTYPE_F64, cast_i64_f64},
    {RONDO_DTYPE_I64, RONDO_DTYPE_I32, cast_i64_i32},   {RONDO_DTYPE_I64, RONDO_DTYPE_BOOL, cast_i64_bool},
    {RONDO_DTYPE_BOOL, RONDO_DTYPE_F32, cast_bool_f32}, {RONDO_DTYPE_BOOL, RONDO_DTYPE_F64, cast_bool_f64},
    {RONDO_DTYPE_BOOL, RONDO_DTYPE_I32, cast_bool_i32}, {RONDO_DTYPE_BOOL, RONDO_DTYPE_I64, cast_bool_i64},
};

typedef struct cast_context {
    cast_row row;
    uint64_t count;
} cast_context;

static int32_t cast_run(const void *context, const uint64_t *words) {
    const cast_context *c = context;
    c->row(RONDO__CPU_AT(void, words[0]), RONDO__CPU_AT(void, words[1]), c->count);
    return 0;
}

static rondo_status cast_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    if (status) return status;
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    if (!out || !rondo__cpu_same_shape(in, out)) return rondo__cpu_refuse(plan, "input and output differ in shape");
    for (size_t i = 0; i < sizeof cast_rows / sizeof *cast_rows; i++) {
        if (cast_rows[i].from != in->dtype || cast_rows[i].to != out->dtype) continue;
        cast_context *c;
        status = rondo__cpu_context(plan, sizeof *c, &c);
        if (status) return status;
        *c = (cast_context){cast_rows[i].row, rondo__cpu_elements(in)};
        plan->kernel.function = cast_run;
        plan->facts.variant = "conversion, one loop";
        return RONDO_OK;
    }
    return rondo__cpu_refuse(plan, "this pair of types has no fast kernel");
}

/* ------------------------------------------------------------------------------------------------------ Where */

/* Steps are 1, or 0 for an operand of one element. */
typedef struct where_context {
    void (*row)(const struct where_context *c, const uint8_t *condition, const void *x, const void *y, void *out);
    uint64_t count;
    uint64_t condition_step, x_step, y_step;
} where_context;

#define WHERE_ROW(bytes, type)                                                                                  \
    static void where_##bytes(const where_context *c, const uint8_t *condition, const void *x, const void *y,   \
                              void *out) {                                                                      \
        const type *a = x, *b = y;                                                                              \
        type *to = out;                                                                                         \
        for (uint64_t i = 0; i < c->count; i++, condition += c->condition_step, a += c->x_step, b += c->y_step) \
            to[i] = *condition ? *a : *b;                                                                       \
    }

WHERE_ROW(1, uint8_t)
WHERE_ROW(2, uint16_t)
WHERE_ROW(4, uint32_t)
WHERE_ROW(8, uint64_t)

static int32_t where_run(const void *context, const uint64_t *words) {
    const where_context *c = context;
    c->row(c, RONDO__CPU_AT(uint8_t, words[0]), RONDO__CPU_AT(void, words[1]), RONDO__CPU_AT(void, words[2]),
           RONDO__CPU_AT(void, words[3]));
    return 0;
}

static rondo_status where_plan(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 3, 3, 1);
    if (status) return status;
    const rondo_operand *out = rondo__cpu_output(plan, 0), *x = rondo__cpu_input(plan, 1);
    const uint64_t size = out ? rondo__cpu_element_size(out->dtype) : 0, total = out ? rondo__cpu_elements(out) : 0;
    if (size == 0 || !rondo__cpu_is(rondo__cpu_input(plan, 0), RONDO_DTYPE_BOOL) || x->dtype != out->dtype ||
        rondo__cpu_input(plan, 2)->dtype != out->dtype)
        return rondo__cpu_refuse(plan, "the types do not fit");
    uint64_t step[3];
    for (uint32_t i = 0; i < 3; i++) {
        const rondo_operand *operand = rondo__cpu_input(plan, i);
        const uint64_t elements = rondo__cpu_elements(operand);
        step[i] = elements == 1 ? 0 : 1;
        if (elements != 1 && (elements != total || operand->rank > out->rank))
            return rondo__cpu_refuse(plan, "operands that are neither whole nor one element have no fast kernel");
    }
    where_context *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    *c = (where_context){.count = total, .condition_step = step[0], .x_step = step[1], .y_step = step[2]};
    c->row = size == 1 ? where_1 : size == 2 ? where_2 : size == 4 ? where_4 : where_8;
    plan->kernel.function = where_run;
    plan->facts.in_place_inputs = size == 1 ? 7 : 6;
    plan->facts.variant = "selection, one loop";
    return RONDO_OK;
}

const rondo__cpu_operator rondo__cpu_cast_operators[] = {{"Cast", cast_plan, 0}, {"Where", where_plan, 0}};
const uint32_t rondo__cpu_cast_operator_count = sizeof rondo__cpu_cast_operators / sizeof *rondo__cpu_cast_operators;
