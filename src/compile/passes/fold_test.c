/* SPDX-License-Identifier: Apache-2.0
 *
 * What other passes made constant is worked out, to the end of what follows from it; what is random or looks at an input
 * is not. */
#include "compile/compile_testing.h"

static void what_became_constant(rondo_test *t) {
    compile_fixture f;
    void *got[2] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_I32, CT_DIMS(3));
    rondo_ir_value c = ct_constant(&f, RONDO_DTYPE_I32, CT_DIMS(3), (const int32_t[]){1, 2, 3});
    /* x - x is known to be 0 only after a rule of arithmetic; then four nodes follow, the last with two outputs. */
    rondo_ir_value zero = CT_NODE(&f, "Sub", x, x);
    rondo_attribute to = ct_int("to", RONDO_DTYPE_F32);
    rondo_ir_value v = CT_NODE(&f, "Abs", CT_NODE(&f, "Sub", zero, c));
    rondo_attribute split[2] = {ct_int("axis", 0), ct_int("num_outputs", 2)};
    rondo_ir_value parts[2] = {0};
    v = CT_NODE_WITH(&f, &to, "Cast", v);
    ct_nodes(&f, NULL, "Split", &v, 1, split, 2, parts, 2);
    ct_output(&f, parts[0], "first");
    ct_output(&f, parts[1], "second");
    ct_compile(&f, &f.ref, RONDO_COMPILE_VERIFY | RONDO_COMPILE_EXPLAIN);
    T_EQ(t, ct_count(&f, NULL), 0);
    T_TRUE(t, ct_remarked(&f, "(Cast): all that it takes is constant"));
    ct_run(&f, &f.ref, (void *[]){(int32_t[]){7, 8, 9}}, got);
    T_TRUE(t, ((float *)got[0])[0] == 1 && ((float *)got[0])[1] == 2 && ((float *)got[1])[0] == 3);
    ct_compile(&f, &f.ref, RONDO_COMPILE_NO_FOLDING);
    T_TRUE(t, ct_count(&f, "Split") == 1);
}

static void what_is_not(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_I32, CT_DIMS(2));
    ct_output(&f, CT_NODE(&f, "Abs", CT_NODE(&f, "Add", x, CT_NODE(&f, "Sub", x, x))), NULL);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Abs"), 1);
    T_EQ(t, ct_count(&f, NULL), 1);
}

RONDO_TEST_MAIN(T(what_became_constant), T(what_is_not))
