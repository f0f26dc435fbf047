/* SPDX-License-Identifier: Apache-2.0
 *
 * A Cast of a Cast is one, when the type in between holds every value of the first: then the second sees the same number
 * as if it were asked directly. int32 to float64 to int32 is nothing at all; int32 to float32 to int32 is not. */
#include <string.h>

#include "compile/walk.h"

typedef int32_t casts_kind;
enum { CASTS_OTHER = 0, CASTS_BOOL, CASTS_SIGNED, CASTS_UNSIGNED, CASTS_FLOAT };

static casts_kind casts_kind_of(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_BOOL: return CASTS_BOOL;
    case RONDO_DTYPE_I8:
    case RONDO_DTYPE_I16:
    case RONDO_DTYPE_I32:
    case RONDO_DTYPE_I64: return CASTS_SIGNED;
    case RONDO_DTYPE_U8:
    case RONDO_DTYPE_U16:
    case RONDO_DTYPE_U32:
    case RONDO_DTYPE_U64: return CASTS_UNSIGNED;
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16:
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_F64: return CASTS_FLOAT;
    default: return CASTS_OTHER;
    }
}

/* Whole numbers of so many bits are exact in that type. */
static uint32_t casts_exact_bits(rondo_dtype dtype) {
    switch (dtype) {
    case RONDO_DTYPE_F16: return 11;
    case RONDO_DTYPE_BF16: return 8;
    case RONDO_DTYPE_F32: return 24;
    case RONDO_DTYPE_F64: return 53;
    default: return 0;
    }
}

/* Whether every value of `from` is one of `to`. Nothing holds what it is not sure of. */
static bool casts_holds(rondo_dtype to, rondo_dtype from) {
    casts_kind a = casts_kind_of(from), b = casts_kind_of(to);
    uint32_t bits = rondo_dtype_bits(from), room = rondo_dtype_bits(to);
    if (a == CASTS_OTHER || b == CASTS_OTHER) return false;
    if (a == b) {
        bool two_halves = a == CASTS_FLOAT && from != to && bits == room; /* float16 and bfloat16 hold neither other */
        return bits <= room && !two_halves;
    }
    if (a == CASTS_BOOL) return true;
    if (b == CASTS_BOOL || a == CASTS_FLOAT) return false;
    if (b == CASTS_FLOAT) return bits - (a == CASTS_SIGNED) <= casts_exact_bits(to);
    return a == CASTS_UNSIGNED && bits < room; /* into a wider signed type */
}

/* To a whole number from a float is another question than from a whole number: there out of range is anything. */
static bool casts_same_question(rondo_dtype from, rondo_dtype between, rondo_dtype to) {
    bool floats = casts_kind_of(between) == CASTS_FLOAT;
    casts_kind a = casts_kind_of(from), b = casts_kind_of(to);
    return from == to || !floats || a == CASTS_FLOAT || a == CASTS_BOOL || b == CASTS_FLOAT || b == CASTS_BOOL;
}

static bool casts_is(const rondo__ir_node_data *node) {
    return node && strcmp(node->operator_name, "Cast") == 0 && node->input_count == 1 && node->output_count == 1 &&
           node->inputs[0] != RONDO_IR_NONE;
}

static rondo_status casts_node(rondo__compile_walk *w, rondo__ir_node_data *node) {
    const rondo__ir_node_data *before = rondo__compile_walk_producer(w, node->inputs[0]);
    if (!casts_is(before)) return RONDO_OK;
    rondo_ir_value source = before->inputs[0];
    rondo_dtype from = rondo__ir_value_at(w->graph, source)->type.dtype;
    rondo_dtype between = rondo__ir_value_at(w->graph, node->inputs[0])->type.dtype;
    rondo_dtype to = rondo__ir_value_at(w->graph, node->outputs[0])->type.dtype;
    if (casts_kind_of(to) == CASTS_OTHER || !casts_holds(between, from) || !casts_same_question(from, between, to)) {
        return RONDO_OK;
    }
    RONDO__TRY(rondo__compile_changed(w->state, "node '%s' (Cast): %s holds every %s, so '%s' is passed by", node->name,
                                      rondo_dtype_name(between), rondo_dtype_name(from), before->name));
    if (from == to) rondo__compile_walk_drop(w, node, source);
    else rondo__compile_walk_set_input(w, node, 0, source);
    return RONDO_OK;
}

rondo_status rondo__compile_casts(rondo__compile_state *state) {
    rondo__compile_walk walk;
    RONDO__TRY(rondo__compile_walk_begin(state, &walk));
    for (size_t n = 0; n < walk.graph->nodes.count; n++) {
        rondo__ir_node_data *node = rondo__compile_walk_at(&walk, n);
        if (casts_is(node)) RONDO__TRY(casts_node(&walk, node));
    }
    return rondo__compile_walk_end(&walk);
}
