/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes in a row that only change the shape are one, or none; those that move or leave out a byte end the row. */
#include "compile/compile_testing.h"

static void compile_reshapes(compile_fixture *f, void *const *inputs, uint32_t outputs) {
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    void *got[4] = {0}, *want[4] = {0};
    options.passes = "reshapes,dead";
    options.flags = RONDO_COMPILE_VERIFY;
    T_OK(f->t, ct_try(f, &f->ref, &options));
    ct_run(f, &f->ref, inputs, got);
    ct_reference(f, inputs, want);
    for (uint32_t i = 0; i < outputs; i++) ct_same(f->t, want[i], got[i], f->plan->outputs[i].bytes / 4);
}

static void a_row_is_one_or_none(rondo_test *t) {
    compile_fixture f;
    float in[6] = {1, 2, 3, 4, 5, 6};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3)), v = CT_NODE(&f, "Neg", x);
    v = CT_NODE(&f, "Unsqueeze", CT_NODE(&f, "Reshape", v, CT_I64(&f, 6)), CT_I64(&f, 0));
    v = CT_NODE(&f, "Squeeze", CT_NODE(&f, "Transpose", CT_NODE(&f, "Flatten", v)), CT_I64(&f, 1));
    ct_output(&f, CT_NODE(&f, "Exp", CT_NODE(&f, "Reshape", v, CT_I64(&f, 3, 2))), "one");
    ct_output(&f, CT_NODE(&f, "Abs", CT_NODE(&f, "Reshape", v, CT_I64(&f, 2, 3))), "none");
    compile_reshapes(&f, (void *[]){in}, 2);
    T_EQ(t, ct_count(&f, "Reshape"), 1);
    T_EQ(t, ct_count(&f, NULL), 4);
    T_EQ(t, f.plan->outputs[0].dims[0], 3);
}

static void bytes_that_move_end_it(rondo_test *t) {
    compile_fixture f;
    float in[6] = {1, 2, 3, 4, 5, 6};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3));
    ct_output(&f, CT_NODE(&f, "Reshape", CT_NODE(&f, "Transpose", x), CT_I64(&f, 6)), "moved");
    rondo_ir_value half = CT_NODE(&f, "Slice", x, CT_I64(&f, 1), CT_I64(&f, 2), CT_I64(&f, 0));
    ct_output(&f, CT_NODE(&f, "Reshape", half, CT_I64(&f, 3)), "cut");
    ct_output(&f, CT_NODE(&f, "Reshape", CT_NODE(&f, "Neg", x), CT_I64(&f, 3, 2)), "alone");
    compile_reshapes(&f, (void *[]){in}, 3);
    T_EQ(t, ct_count(&f, "Reshape"), 3);
    T_EQ(t, ct_count(&f, NULL), 6);
}

/* Zero in a Reshape means "as it was": sizes of zero are left alone. */
static void nothing_to_move(rondo_test *t) {
    compile_fixture f;
    float in[1] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(0, 3));
    rondo_ir_value v = CT_NODE(&f, "Unsqueeze", CT_NODE(&f, "Unsqueeze", x, CT_I64(&f, 0)), CT_I64(&f, 0));
    ct_output(&f, v, NULL);
    compile_reshapes(&f, (void *[]){in}, 1);
    T_EQ(t, f.plan->outputs[0].rank, 4);
    T_EQ(t, f.plan->outputs[0].dims[2], 0);
}

RONDO_TEST_MAIN(T(a_row_is_one_or_none), T(bytes_that_move_end_it), T(nothing_to_move))
