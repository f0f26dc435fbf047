/* SPDX-License-Identifier: Apache-2.0
 *
 * Equal nodes and equal constants are one; whatever differs in operator, operands, attributes or a single byte is not.
 * */
#include "compile/compile_testing.h"

static void equal_nodes_are_one(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(3));
    const float c[3] = {1, 2, 3};
    rondo_ir_value a = CT_NODE(&f, "Mul", CT_NODE(&f, "Exp", x), ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(3), c));
    rondo_ir_value b = CT_NODE(&f, "Mul", CT_NODE(&f, "Exp", x), ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(3), c));
    ct_output(&f, CT_NODE(&f, "Sub", a, b), NULL);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Exp"), 1);
    T_EQ(t, ct_count(&f, "Mul"), 1);
    T_EQ(t, ct_count(&f, NULL), 3);
    T_TRUE(t, ct_remarked(&f, "2 nodes and 1 constants were there twice"));
}

static void differences_are_seen(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    static float large[2][2000];
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 2));
    rondo_attribute alpha[2] = {{.name = "alpha", .kind = RONDO_ATTRIBUTE_FLOAT, .count = 1}};
    alpha[1] = alpha[0];
    alpha[0].value.f = 0.5f;
    alpha[1].value.f = 0.25f;
    ct_output(&f, CT_NODE_WITH(&f, &alpha[0], "LeakyRelu", x), "l0");
    ct_output(&f, CT_NODE_WITH(&f, &alpha[1], "LeakyRelu", x), "l1");
    ct_output(&f, CT_NODE(&f, "LeakyRelu", x), "l2");
    ct_output(&f, CT_NODE(&f, "Relu", x), "operator");
    ct_output(&f, CT_NODE(&f, "Sub", x, CT_NODE(&f, "Exp", x)), "s0");
    ct_output(&f, CT_NODE(&f, "Sub", CT_NODE(&f, "Exp", x), x), "s1");
    /* Alike in the first four thousand bytes. */
    large[1][1999] = 1;
    rondo_ir_value y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(2000));
    for (int i = 0; i < 2; i++) {
        rondo_ir_value c = ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(2000), large[i]);
        ct_output(&f, CT_NODE(&f, "Add", y, c), i ? "a1" : "a0");
    }
    /* The same bytes with another type or shape. */
    const int32_t one = 1;
    rondo_ir_value i = ct_input(&f, "i", RONDO_DTYPE_I32, CT_DIMS(1));
    ct_output(&f, CT_NODE(&f, "Add", i, ct_constant(&f, RONDO_DTYPE_I32, CT_DIMS(1), &one)), "i0");
    ct_output(&f, CT_NODE(&f, "Add", i, ct_constant(&f, RONDO_DTYPE_I32, CT_DIMS(1, 1), &one)), "i1");
    ct_output(&f, CT_NODE(&f, "Add", x, ct_constant(&f, RONDO_DTYPE_F32, CT_DIMS(1), &one)), "f0");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "LeakyRelu"), 3);
    T_EQ(t, ct_count(&f, "Sub"), 2);
    T_EQ(t, ct_count(&f, "Exp"), 1);
    T_EQ(t, ct_count(&f, "Add"), 5);
}

/* Two outputs of one node each keep their own name and memory. */
static void outputs_of_merged_nodes_stay_apart(rondo_test *t) {
    compile_fixture f;
    void *outputs[2];
    float in[2] = {-1, 1};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2));
    ct_output(&f, CT_NODE(&f, "Abs", x), "a");
    ct_output(&f, CT_NODE(&f, "Abs", x), "b");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Abs"), 1);
    T_TRUE(t, f.plan->outputs[0].buffer != f.plan->outputs[1].buffer);
    T_STR(t, f.plan->outputs[1].name, "b");
    ct_run(&f, &f.ref, (void *[]){in}, outputs);
    T_TRUE(t, ((float *)outputs[1])[0] == 1 && ((float *)outputs[0])[0] == 1);
}

RONDO_TEST_MAIN(T(equal_nodes_are_one), T(differences_are_seen), T(outputs_of_merged_nodes_stay_apart))
