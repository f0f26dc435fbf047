/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposes that meet, next to each other or across nodes that work element by element; and what keeps them apart. */
#include "compile/compile_testing.h"

static rondo_ir_value turn(compile_fixture *f, rondo_ir_value x, const int64_t *perm, uint32_t rank) {
    rondo_attribute a = ct_ints("perm", rank, perm);
    return CT_NODE_WITH(f, &a, "Transpose", x);
}
#define TURN(f, x, ...) \
    turn(f, x, (const int64_t[]){__VA_ARGS__}, (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static void compile_transposes(compile_fixture *f, void *const *inputs, uint32_t outputs) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    void *got[8] = {0}, *want[8] = {0};
    options.passes = "transposes,dead";
    options.flags = RONDO_COMPILE_VERIFY;
    T_OK(f->t, ct_try(f, &f->ref, &options));
    ct_run(f, &f->ref, inputs, got);
    ct_reference(f, inputs, want);
    for (uint32_t i = 0; i < outputs; i++) ct_same(f->t, want[i], got[i], f->plan->outputs[i].bytes / 4);
}

static void two_are_one_or_none(rondo_test *t) {
    compile_fixture f;
    float in[24];
    for (int i = 0; i < 24; i++) in[i] = (float)i;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3, 4));
    ct_output(&f, CT_NODE(&f, "Neg", TURN(&f, TURN(&f, x, 1, 2, 0), 2, 0, 1)), "none");
    ct_output(&f, TURN(&f, TURN(&f, x, 1, 2, 0), 1, 0, 2), "one"); /* another one than the other way round */
    ct_output(&f, CT_NODE(&f, "Neg", CT_NODE(&f, "Transpose", CT_NODE(&f, "Transpose", x))), "reversed twice");
    compile_transposes(&f, (void *[]){in}, 3);
    T_EQ(t, ct_count(&f, "Transpose"), 1);
    T_EQ(t, ct_count(&f, NULL), 3);
}

static void across_elements(rondo_test *t) {
    compile_fixture f;
    float in[6] = {-0.0f, NAN, 3, -4, 5, INFINITY};
    ct_open(t, &f);
    rondo_ir_value v = TURN(&f, ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3)), 1, 0);
    rondo_ir_value one = ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(1, 1), &(const float){1.5f});
    v = CT_NODE(&f, "Relu", CT_NODE(&f, "Mul", one, CT_NODE(&f, "Neg", v)));
    ct_output(&f, TURN(&f, v, 1, 0), NULL);
    compile_transposes(&f, (void *[]){in}, 1);
    T_EQ(t, ct_count(&f, "Transpose"), 0);
    T_EQ(t, ct_count(&f, NULL), 3);
}

/* A constant that lies along an axis, a value that somebody else sees, a turn that is not undone, a node that looks at
 * more than one element: the Transposes stay. */
static void what_keeps_them_apart(rondo_test *t) {
    compile_fixture f;
    float in[6] = {1, 2, 3, -4, 5, 6};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3)), v = TURN(&f, x, 1, 0);
    rondo_ir_value along = ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(2), (const float[]){1, 2});
    ct_output(&f, TURN(&f, CT_NODE(&f, "Add", v, along), 1, 0), "along an axis");
    rondo_ir_value seen = CT_NODE(&f, "Neg", TURN(&f, x, 1, 0));
    ct_output(&f, seen, "seen");
    ct_output(&f, TURN(&f, seen, 1, 0), "seen twice");
    rondo_attribute axis = ct_int("axis", 0);
    ct_output(&f, TURN(&f, CT_NODE_WITH(&f, &axis, "Softmax", v), 1, 0), "softmax");
    ct_output(&f, TURN(&f, CT_NODE(&f, "Add", v, TURN(&f, x, 1, 0)), 1, 0), "two of them");
    rondo_ir_value deep = CT_NODE(&f, "Reshape", x, CT_I64(&f, 1, 2, 3));
    ct_output(&f, TURN(&f, CT_NODE(&f, "Neg", TURN(&f, deep, 1, 2, 0)), 1, 2, 0), "not undone");
    compile_transposes(&f, (void *[]){in}, 6);
    T_EQ(t, ct_count(&f, "Transpose"), 9);
}

RONDO_TEST_MAIN(T(two_are_one_or_none), T(across_elements), T(what_keeps_them_apart))
