/* SPDX-License-Identifier: Apache-2.0
 *
 * Constants that become a bias, and those that must not. Numbers are checked against the graph node by node. */
#include "compile/compile_testing.h"

static void check(compile_fixture *f, uint32_t adds, float *x) {
    void *got[1], *want[1];
    const rondo__kernel_set *sets[] = {&f->ref, &f->cpu};
    for (int i = 0; i < 2; i++) {
        ct_compile(f, sets[i], 0);
        T_EQ(f->t, ct_count(f, "Add"), adds);
        ct_run(f, sets[i], (void *[]){x}, got);
        ct_reference(f, (void *[]){x}, want);
        ct_agree(f, got, want, false);
    }
    ct_compile(f, &f->ref, RONDO_COMPILE_NO_FUSION);
    T_EQ(f->t, ct_count(f, "Add"), 1);
}

static float *numbers(rondo_test *t) {
    static float x[64];
    for (int i = 0; i < 64; i++) x[i] = ct_float(t);
    return x;
}

static rondo_ir_value product(compile_fixture *f, const char *name) {
    rondo_ir_value x = ct_input(f, "x", RONDO_DTYPE_F32, CT_DIMS(3, 4));
    return CT_NODE(f, name, x, ct_random(f, CT_DIMS(4, 5)));
}

static void lists_fuse(rondo_test *t) {
    const char *names[] = {"MatMul", "Gemm"};
    for (int i = 0; i < 2; i++) {
        compile_fixture f;
        ct_open(t, &f);
        rondo_ir_value made = product(&f, names[i]);
        ct_output(&f, CT_NODE(&f, "Add", ct_random(&f, CT_DIMS(5)), made), NULL);
        check(&f, 0, numbers(t));
        T_EQ(t, ct_find(&f, names[i])->input_count, 2);
        ct_compile(&f, &f.ref, 0);
        T_EQ(t, ct_find(&f, names[i])->input_count, 3);
        T_TRUE(t, ct_remarked(&f, ": bias of '"));
        ct_close(&f);
    }
}

static void scalars_and_rows_fuse(rondo_test *t) {
    for (int i = 0; i < 3; i++) {
        compile_fixture f;
        ct_open(t, &f);
        rondo_ir_value made = product(&f, "MatMul");
        rondo_ir_value bias = i == 0   ? ct_random(&f, 0, NULL)
                              : i == 1 ? ct_random(&f, CT_DIMS(1, 5))
                                       : ct_random(&f, CT_DIMS(1, 1));
        ct_output(&f, CT_NODE(&f, "Add", made, bias), NULL);
        check(&f, 0, numbers(t));
        ct_close(&f);
    }
}

static void columns_and_wholes_do_not(rondo_test *t) {
    for (int i = 0; i < 4; i++) {
        compile_fixture f;
        ct_open(t, &f);
        rondo_ir_value made = product(&f, "MatMul");
        rondo_ir_value bias = i == 0   ? ct_random(&f, CT_DIMS(3, 1))
                              : i == 1 ? ct_random(&f, CT_DIMS(3, 5))
                              : i == 2 ? ct_random(&f, CT_DIMS(2, 3, 5))  /* makes the result larger */
                                       : ct_random(&f, CT_DIMS(1, 1, 5)); /* makes its rank larger */
        ct_output(&f, CT_NODE(&f, "Add", made, bias), NULL);
        check(&f, 1, numbers(t));
        ct_close(&f);
    }
}

static void a_product_with_other_uses_stays(rondo_test *t) {
    compile_fixture f;
    void *got[2], *want[2];
    ct_open(t, &f);
    rondo_ir_value made = product(&f, "MatMul");
    ct_output(&f, CT_NODE(&f, "Add", made, ct_random(&f, CT_DIMS(5))), "sum");
    ct_output(&f, made, "product");
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Add"), 1);
    ct_run(&f, &f.ref, (void *[]){numbers(t)}, got);
    ct_reference(&f, (void *[]){numbers(t)}, want);
    (void)want;
    T_TRUE(t, got[0] != got[1]);
}

static void what_varies_is_no_bias(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value made = product(&f, "MatMul"), y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(5));
    ct_output(&f, CT_NODE(&f, "Add", made, y), NULL);
    ct_compile(&f, &f.ref, 0);
    T_EQ(t, ct_count(&f, "Add"), 1);
}

static void channels_of_a_convolution_fuse(rondo_test *t) {
    for (int i = 0; i < 5; i++) {
        compile_fixture f;
        ct_open(t, &f);
        rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(1, 2, 5)), w = ct_random(&f, CT_DIMS(3, 2, 3));
        rondo_ir_value own = ct_random(&f, CT_DIMS(3)), made;
        made = i == 4 ? CT_NODE(&f, "Conv", x, w, own) : CT_NODE(&f, "Conv", x, w);
        rondo_ir_value bias = i == 0   ? ct_random(&f, CT_DIMS(1, 3, 1))
                              : i == 2 ? ct_random(&f, CT_DIMS(3)) /* along the positions, of which there are 3 too */
                              : i == 3 ? ct_random(&f, CT_DIMS(1, 3))
                                       : ct_random(&f, CT_DIMS(3, 1));
        ct_output(&f, CT_NODE(&f, "Add", made, bias), NULL);
        check(&f, i < 2 ? 0 : 1, numbers(t));
        ct_close(&f);
    }
}

static void a_bias_that_is_there_stays_alone(rondo_test *t) {
    compile_fixture f;
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(3, 4));
    rondo_ir_value made = CT_NODE(&f, "Gemm", x, ct_random(&f, CT_DIMS(4, 5)), ct_random(&f, CT_DIMS(5)));
    ct_output(&f, CT_NODE(&f, "Add", made, ct_random(&f, CT_DIMS(5))), NULL);
    check(&f, 1, numbers(t));
}

RONDO_TEST_MAIN(T(lists_fuse), T(scalars_and_rows_fuse), T(columns_and_wholes_do_not),
                T(a_product_with_other_uses_stays), T(what_varies_is_no_bias), T(channels_of_a_convolution_fuse),
                T(a_bias_that_is_there_stays_alone))
