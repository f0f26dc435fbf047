/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators: the shapes are reduced to the fewest dims, the innermost becomes a strip, the others a walk
 * whose steps are known when the kernel is prepared. */
#include <string.h>

#include "planner.h"

/* ------------------------------------------------------------------------------------------------- one operand */

typedef struct elementwise_unary {
    rondo__cpu_unary_strip strip;
    uint64_t count;
    float parameter[2];
    uint32_t out;
} elementwise_unary;

static int32_t elementwise_unary_run(const void *context, const uint64_t *words) {
    const elementwise_unary *c = context;
    c->strip(RONDO__CPU_AT(float, words[0]), RONDO__CPU_AT(float, words[c->out]), c->count, c->parameter);
    return 0;
}

static rondo_status elementwise_unary_make(rondo__cpu_plan *plan, uint32_t unary, float p, float q) {
    const rondo_operand *in = rondo__cpu_input(plan, 0), *out = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(in, RONDO_DTYPE_F32) || !rondo__cpu_is(out, RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    if (!rondo__cpu_same_shape(in, out)) return rondo__cpu_refuse(plan, "input and output differ in shape");
    elementwise_unary *c;
    rondo_status status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    *c = (elementwise_unary){plan->set->unary[unary], rondo__cpu_elements(in), {p, q}, rondo__cpu_word_out(plan, 0)};
    plan->kernel.function = elementwise_unary_run;
    plan->facts.in_place_inputs = 1;
    plan->facts.variant = plan->set->variant[RONDO__CPU_VARIANT_UNARY];
    return RONDO_OK;
}

static rondo_status elementwise_plan_unary(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    if (status) return status;
    const uint32_t unary = rondo__cpu_operator_find(plan->request->operator_name)->detail;
    const float least = -__builtin_inff();
    float p = 0.0f, q = unary == RONDO__CPU_LEAKY ? least : 0.0f;
    if (unary == RONDO__CPU_LEAKY) p = rondo__cpu_attribute_float(plan, "alpha", 0.01f);
    if (unary == RONDO__CPU_HARD_SIGMOID) {
        p = rondo__cpu_attribute_float(plan, "alpha", 0.2f);
        q = rondo__cpu_attribute_float(plan, "beta", 0.5f);
    } else if (unary == RONDO__CPU_HARD_SWISH) {
        p = 1.0f / 6.0f;
        q = 0.5f;
    }
    return elementwise_unary_make(plan, unary, p, q);
}

static rondo_status elementwise_plan_gelu(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 1, 1);
    if (status) return status;
    if (!rondo__cpu_attribute(plan, "approximate") || !rondo__cpu_attribute_is(plan, "approximate", "tanh"))
        return rondo__cpu_refuse(plan, "only the form with tanh has a fast kernel");
    return elementwise_unary_make(plan, RONDO__CPU_GELU_TANH, 0.0f, 0.0f);
}

static rondo_status elementwise_plan_clip(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 1, 3, 1);
    if (status) return status;
    float bound[2] = {-__builtin_inff(), __builtin_inff()};
    for (uint32_t i = 1; i < 3; i++) {
        const rondo_operand *operand = rondo__cpu_input(plan, i);
        double value;
        if (!operand) continue;
        if (!rondo__cpu_is(operand, RONDO_DTYPE_F32) || !rondo__cpu_constant_number(operand, &value) || value != value)
            return rondo__cpu_refuse(plan, "only constant float32 bounds have a fast kernel");
        bound[i - 1] = (float)value;
        plan->facts.absorbed_inputs |= (uint64_t)1 << i;
    }
    return elementwise_unary_make(plan, RONDO__CPU_CLIP, bound[0], bound[1]);
}

static rondo_status elementwise_plan_pow(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 2, 1);
    if (status) return status;
    double exponent;
    if (!rondo__cpu_constant_number(rondo__cpu_input(plan, 1), &exponent) || (exponent != 2.0 && exponent != 0.5))
        return rondo__cpu_refuse(plan, "only the constant exponents 2 and 0.5 have a fast kernel");
    plan->facts.absorbed_inputs = 2;
    return elementwise_unary_make(plan, exponent == 2.0 ? RONDO__CPU_SQUARE : RONDO__CPU_ROOT, 0.0f, 0.0f);
}

/* ------------------------------------------------------------------------------------------------ two operands */

typedef struct elementwise_level {
    uint64_t count;
    uint64_t step[2]; /* floats of a and b; the output is compact */
} elementwise_level;

typedef struct elementwise_binary {
    rondo__cpu_binary_strip strip;
    uint64_t count;        /* of a strip */
    elementwise_level row; /* the level above the strip */
    rondo__cpu_activation activation;
    uint64_t total;
    uint32_t levels;                         /* beyond row */
    elementwise_level level[RONDO_RANK_MAX]; /* inner to outer */
} elementwise_binary;

static int32_t elementwise_flat_run(const void *context, const uint64_t *words) {
    const elementwise_binary *c = context;
    c->strip(RONDO__CPU_AT(float, words[0]), RONDO__CPU_AT(float, words[1]), RONDO__CPU_AT(float, words[2]), c->count);
    return 0;
}

static float *elementwise_rows(const elementwise_binary *c, const float *a, const float *b, float *y) {
    for (uint64_t n = c->row.count; n > 0; n--, a += c->row.step[0], b += c->row.step[1], y += c->count) {
        c->strip(a, b, y, c->count);
    }
    return y;
}

static int32_t elementwise_rows_run(const void *context, const uint64_t *words) {
    elementwise_rows(context, RONDO__CPU_AT(float, words[0]), RONDO__CPU_AT(float, words[1]),
                     RONDO__CPU_AT(float, words[2]));
    return 0;
}

static int32_t elementwise_steps_run(const void *context, const uint64_t *words) {
    const elementwise_binary *c = context;
    const float *a = RONDO__CPU_AT(float, words[0]), *b = RONDO__CPU_AT(float, words[1]);
    float *y = RONDO__CPU_AT(float, words[2]);
    uint64_t done[RONDO_RANK_MAX] = {0};
    for (uint32_t at = 0; at < c->levels;) {
        y = elementwise_rows(c, a, b, y);
        for (at = 0; at < c->levels; at++) {
            const elementwise_level *level = &c->level[at];
            a += level->step[0];
            b += level->step[1];
            if (++done[at] < level->count) break;
            a -= level->step[0] * level->count;
            b -= level->step[1] * level->count;
            done[at] = 0;
        }
    }
    return 0;
}

/* The activation follows while the strip is still near. */
static int32_t elementwise_activated_run(const void *context, const uint64_t *words) {
    enum { CHUNK = 1024 };
    const elementwise_binary *c = context;
    float *y = RONDO__CPU_AT(float, words[2]);
    if (c->levels > 0 || c->row.count != 1) {
        (void)(c->levels > 0 ? elementwise_steps_run : elementwise_rows_run)(context, words);
        c->activation.strip(y, y, c->total, c->activation.parameter);
        return 0;
    }
    const float *a = RONDO__CPU_AT(float, words[0]), *b = RONDO__CPU_AT(float, words[1]);
    for (uint64_t left = c->count; left > 0;) {
        const uint64_t n = left < CHUNK ? left : CHUNK;
        c->strip(a, b, y, n);
        c->activation.strip(y, y, n, c->activation.parameter);
        a += c->row.step[0] * n;
        b += c->row.step[1] * n;
        y += n;
        left -= n;
    }
    return 0;
}

/* Levels inner to outer over the output's dims, neighbours merged. Returns their number; 0 when a and b do not
 * broadcast to that output. */
static uint32_t elementwise_levels(const rondo_operand *a, const rondo_operand *b, const rondo_operand *out,
                                   elementwise_level *level) {
    uint64_t size[2] = {1, 1};
    uint32_t levels = 0;
    for (int32_t d = 0; d < out->rank; d++) {
        const uint64_t n = (uint64_t)out->dims[out->rank - 1 - d];
        const rondo_operand *operand[2] = {a, b};
        elementwise_level next = {n, {0, 0}};
        bool spread = true;
        for (uint32_t i = 0; i < 2; i++) {
            const uint64_t dim = d < operand[i]->rank ? (uint64_t)operand[i]->dims[operand[i]->rank - 1 - d] : 1;
            if (dim != 1 && dim != n) return 0;
            if (dim == n) spread = false;
            if (dim != 1) next.step[i] = size[i];
            size[i] *= dim;
        }
        if (spread && n != 1) return 0;
        if (n == 1) continue;
        elementwise_level *last = levels > 0 ? &level[levels - 1] : NULL;
        if (last && next.step[0] == last->step[0] * last->count && next.step[1] == last->step[1] * last->count) {
            last->count *= n;
        } else {
            level[levels++] = next;
        }
    }
    if (a->rank > out->rank || b->rank > out->rank) return 0;
    if (levels == 0) level[levels++] = (elementwise_level){1, {1, 1}};
    return levels;
}

static rondo_status elementwise_plan_binary(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 2, 1);
    if (status) return status;
    const uint32_t binary = rondo__cpu_operator_find(plan->request->operator_name)->detail;
    const rondo_operand *a = rondo__cpu_input(plan, 0), *b = rondo__cpu_input(plan, 1);
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(a, RONDO_DTYPE_F32) || !rondo__cpu_is(b, RONDO_DTYPE_F32) ||
        !rondo__cpu_is(out, RONDO_DTYPE_F32))
        return rondo__cpu_refuse(plan, "only float32 has a fast kernel");
    elementwise_level level[RONDO_RANK_MAX + 1] = {{0, {0, 0}}};
    const uint32_t levels = elementwise_levels(a, b, out, level);
    if (levels == 0) return rondo__cpu_refuse(plan, "the inputs do not broadcast to the output");
    rondo__cpu_activation activation = {0};
    if (binary == RONDO__CPU_ADD) status = rondo__cpu_activation_read(plan, &activation);
    if (status) return status;
    elementwise_binary *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    const uint32_t kind = level[0].step[1] == 0 ? RONDO__CPU_SCALAR_B : level[0].step[0] == 0 ? RONDO__CPU_SCALAR_A : 0;
    *c = (elementwise_binary){.strip = plan->set->binary[binary][kind],
                              .count = level[0].count,
                              .row = level[1],
                              .activation = activation,
                              .total = rondo__cpu_elements(out)};
    if (levels == 1) c->row = (elementwise_level){1, {level[0].step[0], level[0].step[1]}};
    for (uint32_t i = 2; i < levels; i++) c->level[c->levels++] = level[i];
    uint32_t variant = levels > 2    ? RONDO__CPU_VARIANT_BINARY_STEPS
                       : levels == 2 ? RONDO__CPU_VARIANT_BINARY_ROWS
                                     : RONDO__CPU_VARIANT_BINARY;
    plan->kernel.function = levels > 2    ? elementwise_steps_run
                            : levels == 2 ? elementwise_rows_run
                                          : elementwise_flat_run;
    if (c->total == 0) c->row.count = c->count = c->levels = 0, plan->kernel.function = elementwise_rows_run;
    if (c->total > 0 && activation.strip) plan->kernel.function = elementwise_activated_run;
    plan->facts.in_place_inputs = 3;
    plan->facts.variant = plan->set->variant[variant];
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------- Equal */

typedef struct elementwise_equal {
    uint64_t count;
    elementwise_level row;
    uint32_t step[2]; /* within a strip: 0 or 1 */
} elementwise_equal;

static int32_t elementwise_equal_run(const void *context, const uint64_t *words) {
    const elementwise_equal *c = context;
    const int32_t *a = RONDO__CPU_AT(int32_t, words[0]), *b = RONDO__CPU_AT(int32_t, words[1]);
    uint8_t *y = RONDO__CPU_AT(uint8_t, words[2]);
    for (uint64_t n = c->row.count; n > 0; n--, a += c->row.step[0], b += c->row.step[1], y += c->count) {
        const uint64_t count = c->count;
        if (c->step[0] && c->step[1]) {
            for (uint64_t i = 0; i < count; i++) y[i] = a[i] == b[i];
        } else {
            const int32_t one = c->step[0] ? *b : *a, *many = c->step[0] ? a : b;
            for (uint64_t i = 0; i < count; i++) y[i] = many[i] == one;
        }
    }
    return 0;
}

static rondo_status elementwise_plan_equal(rondo__cpu_plan *plan) {
    rondo_status status = rondo__cpu_shape_check(plan, 2, 2, 1);
    if (status) return status;
    const rondo_operand *a = rondo__cpu_input(plan, 0), *b = rondo__cpu_input(plan, 1);
    const rondo_operand *out = rondo__cpu_output(plan, 0);
    if (!rondo__cpu_is(a, RONDO_DTYPE_I32) || !rondo__cpu_is(b, RONDO_DTYPE_I32) ||
        !rondo__cpu_is(out, RONDO_DTYPE_BOOL))
        return rondo__cpu_refuse(plan, "only int32 has a fast kernel");
    elementwise_level level[RONDO_RANK_MAX + 1] = {{0, {0, 0}}};
    const uint32_t levels = elementwise_levels(a, b, out, level);
    if (levels == 0) return rondo__cpu_refuse(plan, "the inputs do not broadcast to the output");
    if (levels > 2) return rondo__cpu_refuse(plan, "only one or two dims have a fast kernel");
    elementwise_equal *c;
    status = rondo__cpu_context(plan, sizeof *c, &c);
    if (status) return status;
    *c = (elementwise_equal){.count = level[0].count,
                             .row = levels == 2 ? level[1] : (elementwise_level){1, {0, 0}},
                             .step = {level[0].step[0] != 0, level[0].step[1] != 0}};
    if (rondo__cpu_elements(out) == 0) c->row.count = 0;
    plan->kernel.function = elementwise_equal_run;
    plan->facts.variant = plan->set->variant[levels == 2 ? RONDO__CPU_VARIANT_BINARY_ROWS : RONDO__CPU_VARIANT_BINARY];
    return RONDO_OK;
}

#define UNARY(name, id) \
    { name, elementwise_plan_unary, RONDO__CPU_##id }
#define BINARY(name, id) \
    { name, elementwise_plan_binary, RONDO__CPU_##id }
const rondo__cpu_operator rondo__cpu_elementwise_operators[] = {
    UNARY("Relu", RELU),
    UNARY("LeakyRelu", LEAKY),
    UNARY("Sigmoid", SIGMOID),
    UNARY("Tanh", TANH),
    UNARY("Exp", EXP),
    UNARY("Log", LOG),
    UNARY("Sqrt", SQRT),
    UNARY("Neg", NEG),
    UNARY("Abs", ABS),
    UNARY("Reciprocal", RECIPROCAL),
    UNARY("HardSigmoid", HARD_SIGMOID),
    UNARY("HardSwish", HARD_SWISH),
    {"Gelu", elementwise_plan_gelu, 0},
    BINARY("Add", ADD),
    BINARY("Sub", SUB),
    BINARY("Mul", MUL),
    BINARY("Div", DIV),
    BINARY("Max", MAX),
    BINARY("Min", MIN),
    {"Equal", elementwise_plan_equal, 0},
    {"Clip", elementwise_plan_clip, 0},
    {"Pow", elementwise_plan_pow, 0},
};
const uint32_t rondo__cpu_elementwise_operator_count =
    sizeof rondo__cpu_elementwise_operators / sizeof *rondo__cpu_elementwise_operators;
