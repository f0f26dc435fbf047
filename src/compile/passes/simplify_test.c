/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that change nothing go; those that change a size, a type or a byte stay. */
#include "compile/compile_testing.h"

static void what_changes_nothing_goes(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_attribute to = ct_int("to", RONDO_DTYPE_F32);
    rondo_ir_value v = CT_NODE(&f, "Tanh", ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 1)));
    v = CT_NODE(&f, "Identity", v);
    v = CT_NODE_WITH(&f, &to, "Cast", v);
    v = CT_NODE(&f, "Reshape", v, CT_I64(&f, 2, -1));
    v = CT_NODE(&f, "Slice", v, CT_I64(&f, 0, 0), CT_I64(&f, 2, 9));
    v = CT_NODE(&f, "Expand", v, CT_I64(&f, 2, 1));
    v = CT_NODE(&f, "Pad", v, CT_I64(&f, 0, 0, 0, 0));
    v = CT_NODE(&f, "ReduceMean", v, CT_I64(&f, 1));
    ct_output(&f, CT_NODE(&f, "Neg", v), NULL);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 2);
    T_TRUE(t, ct_remarked(&f, "7 nodes that change nothing are gone"));
}

static void what_changes_something_stays(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(3, 2)), v;
    rondo_attribute to = ct_int("to", RONDO_DTYPE_F64);
    ct_output(&f, CT_NODE_WITH(&f, &to, "Cast", x), "type");
    ct_output(&f, CT_NODE(&f, "Reshape", x, CT_I64(&f, 2, 3)), "shape");
    /* The same sizes, other contents: one row more above, one less below. */
    v = CT_NODE(&f, "Pad", x, CT_I64(&f, 1, 0, -1, 0));
    ct_output(&f, v, "pad");
    ct_output(&f, CT_NODE(&f, "Slice", x, CT_I64(&f, -1), CT_I64(&f, -9), CT_I64(&f, 0), CT_I64(&f, -1)), "reverse");
    ct_output(&f, CT_NODE(&f, "Gather", x, CT_I64(&f, 1, 0, 2)), "gather");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 5);
    float in[6] = {1, 2, 3, 4, 5, 6};
    const float pad[6] = {0, 0, 1, 2, 3, 4}, reverse[6] = {5, 6, 3, 4, 1, 2}, gather[6] = {3, 4, 1, 2, 5, 6};
    void *outputs[5];
    ct_run(&f, &f.ref, (void *[]){in}, outputs);
    T_TRUE(t, ((const double *)outputs[0])[5] == 6);
    T_TRUE(t, memcmp(outputs[1], in, sizeof in) == 0);
    T_TRUE(t, memcmp(outputs[2], pad, sizeof pad) == 0);
    T_TRUE(t, memcmp(outputs[3], reverse, sizeof reverse) == 0);
    T_TRUE(t, memcmp(outputs[4], gather, sizeof gather) == 0);
}

/* An input that is given out as it is: nothing is left to do but a copy. */
static void an_input_may_be_an_output(rondo_test *t) {
    compile_fixture f;
    void *outputs[2];
    float in[2] = {4, 5};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2));
    ct_output(&f, CT_NODE(&f, "Identity", x), "a");
    ct_output(&f, CT_NODE(&f, "Identity", CT_NODE(&f, "Identity", x)), "b");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, NULL), 0);
    T_EQ(t, f.plan->step_count, 2);
    ct_run(&f, &f.ref, (void *[]){in}, outputs);
    T_TRUE(t, memcmp(outputs[0], in, sizeof in) == 0 && memcmp(outputs[1], in, sizeof in) == 0);
}

RONDO_TEST_MAIN(T(what_changes_nothing_goes), T(what_changes_something_stays), T(an_input_may_be_an_output))
