/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of arithmetic that hold for every value, whatever it is: minus zero, infinities, numbers that wrap around. A NaN
 * stays a NaN. So x + 0 is x for whole numbers, and for floats only where the zero is -0 (else -0 + 0 were lost); x * 0
 * is 0 for whole numbers alone; x - x, too. Bools are 0 or 1. */
#include <string.h>

#include "base/checked.h"
#include "compile/walk.h"

typedef struct algebra {
    rondo__compile_walk walk;
    rondo__compile_request request;
} algebra;

static bool algebra_is(const rondo__ir_node_data *node, const char *name) {
    return node && strcmp(node->operator_name, name) == 0;
}

static bool algebra_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return false;
}

static rondo_dtype algebra_dtype(const algebra *a, rondo_ir_value value) {
    return rondo__ir_value_at(a->walk.graph, value)->type.dtype;
}

static bool algebra_is_whole(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_U32:
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_U64:
    case RONDO_DTYPE_I64: return true;
    default: return false;
    }
}

/* ------------------------------------------------------------------------------------------------- constants */

typedef int32_t algebra_number;
enum { ALGEBRA_ZERO, ALGEBRA_MINUS_ZERO, ALGEBRA_ONE };

/* The bits of a number; false when the type has no such number. Whole numbers have one zero. */
static bool algebra_bits(rondo_dtype dtype, algebra_number number, uint64_t *out_bits) {
    bool zero = number != ALGEBRA_ONE;
    uint64_t sign = number == ALGEBRA_MINUS_ZERO;
    switch (dtype) {
    case RONDO_DTYPE_F16: *out_bits = zero ? sign << 15 : 0x3c00; return true;
    case RONDO_DTYPE_BF16: *out_bits = zero ? sign << 15 : 0x3f80; return true;
    case RONDO_DTYPE_F32: *out_bits = zero ? sign << 31 : 0x3f800000; return true;
    case RONDO_DTYPE_F64: *out_bits = zero ? sign << 63 : UINT64_C(0x3ff0000000000000); return true;
    default: *out_bits = !zero; return algebra_is_whole(dtype) || dtype == RONDO_DTYPE_BOOL;
    }
}

/* A constant all of whose elements are that number. */
static bool algebra_all(const algebra *a, rondo_ir_value value, algebra_number number) {
    const rondo__ir_constant *c = rondo__ir_value_at(a->walk.graph, value)->constant;
    uint64_t bits = 0;
    if (!c || c->bytes == 0 || !algebra_bits(c->dtype, number, &bits)) return false;
    size_t size = rondo_dtype_bits(c->dtype) / 8u;
    for (size_t at = 0; at < c->bytes; at += size) {
        if (memcmp((const uint8_t *)c->data + at, &bits, size) != 0) return false; /* little-endian */
    }
    return true;
}

/* Zero that x + zero does not show. */
static bool algebra_adds_nothing(const algebra *a, rondo_ir_value value) {
    return algebra_all(a, value, ALGEBRA_MINUS_ZERO);
}

/* ----------------------------------------------------------------------------------------------- what it becomes */

/* The node gives what `value` is, if that has its sizes. */
static rondo_status algebra_pass_by(algebra *a, rondo__ir_node_data *node, rondo_ir_value value, const char *rule) {
    if (value == RONDO_IR_NONE || !rondo__compile_same_dims(a->walk.graph, value, node->outputs[0])) return RONDO_OK;
    RONDO__TRY(rondo__compile_changed(a->walk.state, "node '%s' (%s): %s", node->name, node->operator_name, rule));
    rondo__compile_walk_drop(&a->walk, node, value);
    return RONDO_OK;
}

/* All elements of the output are `number`. Not worth it when the result is large. */
static rondo_status algebra_constant(algebra *a, rondo__ir_node_data *node, algebra_number number, const char *rule) {
    rondo_ir_graph *graph = a->walk.graph;
    rondo_ir_value output = node->outputs[0];
    uint64_t bytes = rondo__compile_bytes(graph, output), bits = 0, most = a->walk.state->options.fold_bytes_max;
    rondo_dtype dtype = algebra_dtype(a, output);
    int64_t dims[RONDO_RANK_MAX];
    void *data = NULL;
    int32_t rank = rondo__compile_dims(graph, output, dims);
    if (bytes == 0 || bytes > (most > 0 ? most : 65536u) || !algebra_bits(dtype, number, &bits)) return RONDO_OK;
    RONDO__TRY(rondo__arena_allocate_aligned(&graph->arena, (size_t)bytes, 64, &data));
    size_t size = rondo_dtype_bits(dtype) / 8u;
    for (size_t at = 0; at < bytes; at += size) memcpy((uint8_t *)data + at, &bits, size);
    rondo__ir_value_data *value = rondo__ir_value_at(graph, output);
    RONDO__TRY(rondo__ir_constant_make(graph, dtype, rank, dims, data, false, &value->constant));
    value->producer = RONDO_IR_NONE;
    node->dead = true;
    return rondo__compile_changed(a->walk.state, "node '%s' (%s): %s", node->name, node->operator_name, rule);
}

static rondo_status algebra_become(algebra *a, rondo__ir_node_data *node, const char *operator_name, rondo_ir_value x,
                                   rondo_ir_value y, const char *rule) {
    RONDO__TRY(rondo__compile_changed(a->walk.state, "node '%s' (%s): %s", node->name, node->operator_name, rule));
    return rondo__compile_walk_rewrite(&a->walk, node, operator_name, (const rondo_ir_value[]){x, y}, 2, NULL, 0);
}

/* ------------------------------------------------------------------------------------------------------ one input */

/* What a node of that operator with one input takes; RONDO_IR_NONE when `node` is none. */
static rondo_ir_value algebra_input_of(const rondo__ir_node_data *node, const char *name) {
    bool is = algebra_is(node, name) && node->input_count == 1 && node->output_count == 1;
    return is ? node->inputs[0] : RONDO_IR_NONE;
}

static rondo_status algebra_unary(algebra *a, rondo__ir_node_data *node) {
    static const char *const twice_is_none[] = {"Neg", "Not", "BitwiseNot"};
    static const char *const twice_is_once[] = {"Abs", "Relu", "Floor", "Ceil", "Round", "Sign"};
    static const char *const of_one[] = {"Max", "Min", "Sum", "Mean"};
    const char *name = node->operator_name;
    const rondo__ir_node_data *before = rondo__compile_walk_producer(&a->walk, node->inputs[0]);
    if (algebra_one_of(name, of_one, 4))
        return algebra_pass_by(a, node, node->inputs[0], "of one value it is that value");
    if (!before || before->input_count != 1 || before->output_count != 1) return RONDO_OK;
    if (algebra_is(before, name) && algebra_one_of(name, twice_is_none, 3)) {
        return algebra_pass_by(a, node, before->inputs[0], "done twice is not done");
    }
    if (algebra_is(before, name) && algebra_one_of(name, twice_is_once, 6)) {
        return algebra_pass_by(a, node, node->inputs[0], "done twice is done once");
    }
    if (strcmp(name, "Abs") == 0 && algebra_is(before, "Neg")) {
        RONDO__TRY(rondo__compile_changed(a->walk.state, "node '%s' (Abs): does not see the sign", node->name));
        rondo__compile_walk_set_input(&a->walk, node, 0, before->inputs[0]);
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- two inputs */

/* 1 / c where every element of c is a power of two whose reciprocal is a normal number: x / c is x * (1 / c), rounding
 * included. */
static bool algebra_reciprocals(const rondo__ir_constant *c, float *out) {
    for (size_t i = 0; i < c->bytes / sizeof(float); i++) {
        uint32_t bits;
        memcpy(&bits, (const uint8_t *)c->data + i * sizeof bits, sizeof bits);
        uint32_t exponent = bits >> 23 & 0xffu;
        if ((bits & 0x7fffffu) != 0 || exponent < 1 || exponent > 253) return false;
        bits = (bits & 0x80000000u) | (254u - exponent) << 23;
        memcpy(&out[i], &bits, sizeof bits);
    }
    return c->bytes > 0;
}

static rondo_status algebra_divide(algebra *a, rondo__ir_node_data *node) {
    rondo_ir_graph *graph = a->walk.graph;
    rondo_ir_value x = node->inputs[0], y = node->inputs[1], inverse = RONDO_IR_NONE;
    const rondo__ir_constant *c = rondo__ir_value_at(graph, y)->constant;
    void *data = NULL;
    if (algebra_all(a, y, ALGEBRA_ONE)) return algebra_pass_by(a, node, x, "x / 1 is x");
    if (!c || c->dtype != RONDO_DTYPE_F32) return RONDO_OK;
    RONDO__TRY(rondo__arena_allocate_array(&a->walk.state->arena, c->bytes / sizeof(float), sizeof(float), &data));
    if (!algebra_reciprocals(c, data)) return RONDO_OK;
    RONDO__TRY(rondo__ir_constant_add(graph, NULL, "inverse", c->dtype, c->rank, c->dims, data, &inverse));
    return algebra_become(a, node, "Mul", x, inverse, "dividing by powers of two is multiplying, bit for bit");
}

static rondo_status algebra_add(algebra *a, rondo__ir_node_data *node) {
    rondo_ir_value x = node->inputs[0], y = node->inputs[1];
    if (algebra_adds_nothing(a, y)) return algebra_pass_by(a, node, x, "x + 0 is x");
    if (algebra_adds_nothing(a, x)) return algebra_pass_by(a, node, y, "0 + x is x");
    rondo_ir_value negated = algebra_input_of(rondo__compile_walk_producer(&a->walk, y), "Neg");
    if (negated != RONDO_IR_NONE) return algebra_become(a, node, "Sub", x, negated, "x + -y is x - y");
    negated = algebra_input_of(rondo__compile_walk_producer(&a->walk, x), "Neg");
    if (negated != RONDO_IR_NONE) return algebra_become(a, node, "Sub", y, negated, "-x + y is y - x");
    return RONDO_OK;
}

static rondo_status algebra_subtract(algebra *a, rondo__ir_node_data *node) {
    rondo_ir_value x = node->inputs[0], y = node->inputs[1];
    if (algebra_all(a, y, ALGEBRA_ZERO)) return algebra_pass_by(a, node, x, "x - 0 is x");
    if (x == y && algebra_is_whole(algebra_dtype(a, x))) {
        return algebra_constant(a, node, ALGEBRA_ZERO, "x - x is 0 for whole numbers");
    }
    rondo_ir_value negated = algebra_input_of(rondo__compile_walk_producer(&a->walk, y), "Neg");
    if (negated != RONDO_IR_NONE) return algebra_become(a, node, "Add", x, negated, "x - -y is x + y");
    return RONDO_OK;
}

static rondo_status algebra_multiply(algebra *a, rondo__ir_node_data *node) {
    for (uint32_t i = 0; i < 2; i++) {
        rondo_ir_value x = node->inputs[1 - i], c = node->inputs[i];
        if (algebra_all(a, c, ALGEBRA_ONE)) return algebra_pass_by(a, node, x, "x * 1 is x");
        if (algebra_is_whole(algebra_dtype(a, c)) && algebra_all(a, c, ALGEBRA_ZERO)) {
            return algebra_constant(a, node, ALGEBRA_ZERO, "x * 0 is 0 for whole numbers");
        }
    }
    return RONDO_OK;
}

static rondo_status algebra_logic(algebra *a, rondo__ir_node_data *node) {
    bool and = algebra_is(node, "And"), or = algebra_is(node, "Or");
    if (node->inputs[0] == node->inputs[1]) {
        if (and || or) return algebra_pass_by(a, node, node->inputs[0], "of a value with itself it is that value");
        return algebra_constant(a, node, ALGEBRA_ZERO, "no bool differs from itself");
    }
    for (uint32_t i = 0; i < 2; i++) {
        rondo_ir_value x = node->inputs[1 - i], c = node->inputs[i];
        if (algebra_all(a, c, and? ALGEBRA_ONE : ALGEBRA_ZERO)) {
            return algebra_pass_by(a, node, x, and? "with true it is x" : "with false it is x");
        }
        if ((and || or) && algebra_all(a, c, and? ALGEBRA_ZERO : ALGEBRA_ONE)) {
            return algebra_constant(a, node, and? ALGEBRA_ZERO : ALGEBRA_ONE,
                                    and? "with false it is false" : "with true it is true");
        }
    }
    return RONDO_OK;
}

static rondo_status algebra_binary(algebra *a, rondo__ir_node_data *node) {
    if (algebra_is(node, "Add")) return algebra_add(a, node);
    if (algebra_is(node, "Sub")) return algebra_subtract(a, node);
    if (algebra_is(node, "Mul")) return algebra_multiply(a, node);
    if (algebra_is(node, "Div")) return algebra_divide(a, node);
    if (algebra_is(node, "And") || algebra_is(node, "Or") || algebra_is(node, "Xor")) return algebra_logic(a, node);
    if (algebra_is(node, "Pow") && algebra_all(a, node->inputs[1], ALGEBRA_ONE)) {
        return algebra_pass_by(a, node, node->inputs[0], "x to the power of 1 is x");
    }
    bool picks = algebra_is(node, "Max") || algebra_is(node, "Min");
    if (picks && node->inputs[0] == node->inputs[1]) {
        return algebra_pass_by(a, node, node->inputs[0], "of a value with itself it is that value");
    }
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------- numbers put together */

/* (x + c) + d is x + (c + d) and (x * c) * d is x * (c * d) for whole numbers, which wrap around either way. The
 * reference kernels make the new constant. */
static rondo_status algebra_gather(algebra *a, rondo__ir_node_data *node, uint32_t side) {
    rondo_ir_graph *graph = a->walk.graph;
    rondo_ir_value d = node->inputs[side], inner = node->inputs[1 - side], made = RONDO_IR_NONE;
    const rondo__ir_node_data *before = rondo__compile_walk_producer(&a->walk, inner);
    const rondo__ir_constant *constant = NULL;
    bool done = false;
    if (!rondo__ir_value_at(graph, d)->constant || !algebra_is(before, node->operator_name) ||
        before->input_count != 2 || rondo__compile_walk_uses(&a->walk, inner) != 1) {
        return RONDO_OK;
    }
    uint32_t at = rondo__ir_value_at(graph, before->inputs[1])->constant ? 1 : 0;
    rondo_ir_value c = before->inputs[at], x = before->inputs[1 - at];
    if (!rondo__ir_value_at(graph, c)->constant || !rondo__compile_same_dims(graph, c, d)) return RONDO_OK;
    rondo__ir_type type = rondo__ir_value_at(graph, d)->type;
    RONDO__TRY(rondo__ir_value_add(graph, NULL, rondo__ir_value_at(graph, d)->name, &type, &made));
    rondo__ir_node_data both = {.operator_name = node->operator_name, .name = node->name, .input_count = 2};
    both.inputs = (rondo_ir_value[]){c, d};
    both.outputs = &made;
    both.output_count = 1;
    RONDO__TRY(rondo__compile_request_make(&a->request, graph, &both));
    RONDO__TRY(rondo__compile_evaluate(a->walk.state, &a->request, &constant, &done));
    if (!done) return RONDO_OK;
    rondo__ir_value_at(graph, made)->constant = constant;
    return algebra_become(a, node, node->operator_name, x, made, "two constants are one, as whole numbers wrap around");
}

static rondo_status algebra_node(algebra *a, rondo__ir_node_data *node) {
    if (node->output_count != 1 || node->input_count < 1 || node->input_count > 3) return RONDO_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO_IR_NONE) return RONDO_OK;
    }
    if (algebra_is(node, "Where") && node->input_count == 3) {
        if (node->inputs[1] == node->inputs[2]) return algebra_pass_by(a, node, node->inputs[1], "both are the same");
        if (algebra_all(a, node->inputs[0], ALGEBRA_ONE))
            return algebra_pass_by(a, node, node->inputs[1], "always true");
        if (algebra_all(a, node->inputs[0], ALGEBRA_ZERO))
            return algebra_pass_by(a, node, node->inputs[2], "never true");
        return RONDO_OK;
    }
    if (node->input_count == 1) return algebra_unary(a, node);
    if (node->input_count != 2) return RONDO_OK;
    RONDO__TRY(algebra_binary(a, node));
    bool sums = algebra_is(node, "Add") || algebra_is(node, "Mul");
    for (uint32_t i = 0; sums && i < 2 && !node->dead; i++) {
        if (!algebra_is_whole(algebra_dtype(a, node->outputs[0]))) break;
        RONDO__TRY(algebra_gather(a, node, i));
    }
    return RONDO_OK;
}

static rondo_status algebra_run(algebra *a) {
    RONDO__TRY(rondo__compile_walk_begin(a->walk.state, &a->walk));
    for (size_t n = 0; n < a->walk.graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__compile_walk_at(&a->walk, n);
        if (node) RONDO__TRY(algebra_node(a, node));
    }
    return rondo__compile_walk_end(&a->walk);
}

rondo_status rondo__compile_algebra(rondo__compile_state *state) {
    algebra a = {.walk.state = state};
    rondo__compile_request_init(&a.request, &state->allocator);
    rondo_status status = algebra_run(&a);
    rondo__compile_request_deinit(&a.request);
    return status;
}
