/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes a step and where its bytes lie: views, parts made in place, outputs made where they belong, copies where
 * nothing else will do, memory used again. */
#include "compile/compile_testing.h"

static void check(compile_fixture *f, void *const *inputs) {
    void *got[4] = {0}, *want[4] = {0};
    ct_run(f, &f->ref, inputs, got);
    ct_reference(f, inputs, want);
    ct_agree(f, got, want, true);
}

static void views_are_no_steps(rondo_test *t) {
    compile_fixture f;
    float x[24];
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 4, 6)), parts[2];
    rondo_attribute axis0 = ct_int("axis", 0), split[2] = {ct_int("axis", 1), ct_int("num_outputs", 2)};
    rondo_ir_value a = CT_NODE(&f, "Slice", v, CT_I64(&f, 1), CT_I64(&f, 4), CT_I64(&f, 1)); /* [1,3,6] from row 1 */
    a = CT_NODE(&f, "Squeeze", a, CT_I64(&f, 0));
    a = CT_NODE_WITH(&f, &axis0, "Gather", a, CT_I64(&f, 1, 2)); /* rows 2 and 3 of x */
    a = CT_NODE(&f, "Reshape", a, CT_I64(&f, 1, 2, 6));
    ct_nodes(&f, NULL, "Split", &a, 1, split, 2, parts, 2);
    rondo_ir_value moved = CT_NODE(&f, "Transpose", parts[1]); /* [1,1,6] -> [6,1,1] */
    ct_output(&f, CT_NODE(&f, "Neg", moved), "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->step_count, 1);
    T_EQ(t, f.plan->steps[0].inputs[0].offset, 3 * 6 * sizeof(float));
    T_EQ(t, f.plan->arena_bytes, 0);
    check(&f, (void *[]){x});
}

/* The second part of a cut along an inner axis is no piece of memory. */
static void strided_pieces_are_steps(rondo_test *t) {
    compile_fixture f;
    float x[24];
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6));
    ct_output(&f, CT_NODE(&f, "Neg", CT_NODE(&f, "Slice", v, CT_I64(&f, 1), CT_I64(&f, 4), CT_I64(&f, 1))), "a");
    ct_output(&f,
              CT_NODE(&f, "Neg", CT_NODE(&f, "Slice", v, CT_I64(&f, 0), CT_I64(&f, 4), CT_I64(&f, 0), CT_I64(&f, 2))),
              "b");
    rondo_attribute axis1 = ct_int("axis", 1);
    ct_output(&f, CT_NODE(&f, "Neg", CT_NODE_WITH(&f, &axis1, "Gather", v, CT_I64(&f, 0, 1))), "c");
    ct_output(&f, CT_NODE(&f, "Neg", CT_NODE(&f, "Transpose", v)), "d");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->step_count, 8);
    check(&f, (void *[]){x});
}

static void parts_are_made_in_the_whole(rondo_test *t) {
    compile_fixture f;
    float x[4] = {1, -2, 3, -4};
    ct_open(t, &f);
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 2));
    rondo_ir_value a = CT_NODE(&f, "Neg", v), b = CT_NODE(&f, "Abs", v), c = CT_NODE(&f, "Relu", v);
    rondo_ir_value inner = CT_NODE_WITH(&f, &axis, "Concat", a, b);
    ct_output(&f, CT_NODE_WITH(&f, &axis, "Concat", inner, c), "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->step_count, 3);
    T_EQ(t, f.plan->arena_bytes, 0);
    T_TRUE(t, ct_remarked(&f, "its parts are made where they belong"));
    check(&f, (void *[]){x});
    ct_compile(&f, &f.ref, RONDO_COMPILE_NO_REUSE);
    T_EQ(t, f.plan->step_count, 5);
    check(&f, (void *[]){x});
}

/* One part that cannot be made in place is copied; with two the Concat runs. */
static void parts_that_cannot(rondo_test *t) {
    for (int twice = 0; twice < 2; twice++) {
        compile_fixture f;
        float x[4] = {1, -2, 3, -4};
        ct_open(t, &f);
        rondo_attribute axis = ct_int("axis", 0);
        rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 2)), a = CT_NODE(&f, "Neg", v);
        rondo_ir_value last = twice ? v : CT_NODE(&f, "Relu", v);
        ct_output(&f, CT_NODE_WITH(&f, &axis, "Concat", a, a, last), "y");
        ct_compile(&f, &f.ref, 0);
        T_EQ(t, f.plan->step_count, twice ? 2 : 3);
        T_STR(t, f.plan->steps[f.plan->step_count - 1].operator_name, twice ? "Concat" : "Identity");
        check(&f, (void *[]){x});
        ct_close(&f);
    }
}

/* More parts than a call has words. */
static void very_many_parts(rondo_test *t) {
    compile_fixture f;
    float x[2] = {1, -2};
    rondo_ir_value parts[100], made;
    ct_open(t, &f);
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2));
    for (int i = 0; i < 100; i++) parts[i] = i % 3 ? v : CT_NODE(&f, i % 2 ? "Neg" : "Abs", v);
    ct_nodes(&f, "many", "Concat", parts, 100, &axis, 1, &made, 1);
    ct_output(&f, made, "y");
    ct_compile(&f, &f.ref, 0);
    void *outputs[1];
    ct_run(&f, &f.ref, (void *[]){x}, outputs);
    for (int i = 0; i < 100; i++)
        T_TRUE(t, ((float *)outputs[0])[2 * i + 1] == (i % 3 == 0 && i % 2 == 0 ? 2 : i % 3 ? -2 : 2));
}

static void outputs_are_made_in_place(rondo_test *t) {
    compile_fixture f;
    float x[4] = {1, -2, 3, -4};
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 2)), a = CT_NODE(&f, "Neg", v);
    /* An output that is used on, one that is its view, a piece of it, and a constant. */
    ct_output(&f, CT_NODE(&f, "Exp", CT_NODE(&f, "Flatten", a)), "used");
    ct_output(&f, a, "itself");
    ct_output(&f, CT_NODE(&f, "Reshape", a, CT_I64(&f, 4)), "view");
    ct_output(&f, CT_NODE(&f, "Slice", a, CT_I64(&f, 1), CT_I64(&f, 2), CT_I64(&f, 0)), "piece");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->step_count, 4);
    T_EQ(t, f.plan->arena_bytes, 0);
    T_TRUE(t, ct_remarked(&f, "output 'view' is copied"));
    T_TRUE(t, ct_remarked(&f, "output 'piece' is copied"));
    check(&f, (void *[]){x});
}

/* A chain of elementwise steps takes one buffer. */
static void memory_is_used_again(rondo_test *t) {
    compile_fixture f;
    static float x[1000];
    ct_open(t, &f);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1000));
    for (int i = 0; i < 8; i++) v = CT_NODE(&f, i % 2 ? "Tanh" : "Neg", v);
    ct_output(&f, v, "y");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, f.plan->arena_lower_bound, f.plan->arena_bytes);
    T_TRUE(t, f.plan->arena_bytes <= 2u * 4032u);
    check(&f, (void *[]){x});
    ct_compile(&f, &f.ref, RONDO_COMPILE_NO_REUSE);
    T_EQ(t, f.plan->arena_bytes, 7u * 4032u);
    check(&f, (void *[]){x});
}

/* A residual: x + f(x), where x is made by a step and lives on. */
static void what_lives_on_is_not_overwritten(rondo_test *t) {
    compile_fixture f;
    float x[16];
    ct_open(t, &f);
    for (int i = 0; i < 16; i++) x[i] = ct_float(t);
    rondo_ir_value v = CT_NODE(&f, "Tanh", ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(16)));
    for (int i = 0; i < 4; i++) v = CT_NODE(&f, "Add", CT_NODE(&f, "Exp", CT_NODE(&f, "Neg", v)), v);
    ct_output(&f, v, "y");
    ct_compile(&f, &f.ref, 0);
    check(&f, (void *[]){x});
}

/* x + its first row, x + x: only the second may be made in the place of x. */
static void what_is_read_twice(rondo_test *t) {
    compile_fixture f;
    float x[24];
    ct_open(t, &f);
    for (int i = 0; i < 24; i++) x[i] = ct_float(t);
    rondo_ir_value v = CT_NODE(&f, "Tanh", ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(4, 6)));
    rondo_ir_value row = CT_NODE(&f, "Slice", v, CT_I64(&f, 0), CT_I64(&f, 1), CT_I64(&f, 0));
    rondo_ir_value sum = CT_NODE(&f, "Add", v, row);
    ct_output(&f, CT_NODE(&f, "Exp", CT_NODE(&f, "Add", sum, sum)), "y");
    const rondo__kernel_set *sets[] = {&f.ref, &f.cpu};
    for (int i = 0; i < 2; i++) {
        void *got[1], *want[1];
        ct_compile(&f, sets[i], 0);
        ct_run(&f, sets[i], (void *[]){x}, got);
        ct_reference(&f, (void *[]){x}, want);
        ct_agree(&f, got, want, false);
    }
}

static void empty_tensors(rondo_test *t) {
    compile_fixture f;
    float x[2] = {1, 2};
    ct_open(t, &f);
    rondo_attribute axis = ct_int("axis", 0);
    rondo_ir_value v = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2)),
                   e = ct_input(&f, "e", RONDO_DTYPE_F32, CT_DIMS(0));
    ct_output(&f, CT_NODE_WITH(&f, &axis, "Concat", e, CT_NODE(&f, "Neg", v), CT_NODE(&f, "Exp", e)), "y");
    ct_output(&f, CT_NODE(&f, "Relu", e), "empty");
    ct_output(&f, e, "same");
    for (uint32_t flags = 0; flags <= RONDO_COMPILE_NO_FOLDING; flags += RONDO_COMPILE_NO_FOLDING) {
        ct_compile(&f, &f.ref, flags);
        T_EQ(t, f.plan->step_count, 1);
        check(&f, (void *[]){x, x});
    }
}

RONDO_TEST_MAIN(T(views_are_no_steps), T(strided_pieces_are_steps), T(parts_are_made_in_the_whole),
                T(parts_that_cannot), T(very_many_parts), T(outputs_are_made_in_place), T(memory_is_used_again),
                T(what_lives_on_is_not_overwritten), T(what_is_read_twice), T(empty_tensors))
