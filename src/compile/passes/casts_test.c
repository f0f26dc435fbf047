/* SPDX-License-Identifier: Apache-2.0
 *
 * A Cast of a Cast: gone where the type in between holds everything, kept where it rounds, wraps or asks otherwise. */
#include "compile/compile_testing.h"

static uint32_t casts_left(rondo_test *t, rondo_dtype from, rondo_dtype between, rondo_dtype to) {
    compile_fixture f = {.t = t};
    ct_again(t, &f);
    rondo_attribute first = ct_int("to", between), second = ct_int("to", to);
    rondo_ir_value x = ct_input(&f, "x", from, CT_DIMS(2));
    ct_output(&f, CT_NODE_WITH(&f, &second, "Cast", CT_NODE_WITH(&f, &first, "Cast", x)), NULL);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.passes = "casts,dead";
    options.flags = RONDO_COMPILE_VERIFY;
    rondo_status status =
        rondo__compile(rondo_test_allocator(t), &f.ref, &f.ref, "test", f.graph, &options, &f.compiled, NULL);
    uint32_t left = status ? 99 : ct_count(&f, "Cast");
    ct_close(&f);
    T_OK(t, status);
    return left;
}
#define LEFT(from, between, to) casts_left(t, RONDO_DTYPE_##from, RONDO_DTYPE_##between, RONDO_DTYPE_##to)

static void what_holds_everything(rondo_test *t) {
    T_EQ(t, LEFT(F32, F64, F32), 0);
    T_EQ(t, LEFT(I32, F64, I32), 0);
    T_EQ(t, LEFT(U8, F32, U8), 0);
    T_EQ(t, LEFT(BOOL, I64, BOOL), 0);
    T_EQ(t, LEFT(BOOL, F16, BOOL), 0);
    T_EQ(t, LEFT(F16, F32, F16), 0);
    T_EQ(t, LEFT(BF16, F32, BF16), 0);
    T_EQ(t, LEFT(I8, F16, I8), 0);
    T_EQ(t, LEFT(I32, I64, U8), 1);
    T_EQ(t, LEFT(U16, I32, F32), 1);
    T_EQ(t, LEFT(F32, F64, F16), 1);
    T_EQ(t, LEFT(I32, F64, F32), 1);
    T_EQ(t, LEFT(BOOL, F32, I8), 1);
}

static void what_does_not(rondo_test *t) {
    T_EQ(t, LEFT(F64, F32, F64), 2);
    T_EQ(t, LEFT(I32, F32, I32), 2);
    T_EQ(t, LEFT(I64, F64, I64), 2);
    T_EQ(t, LEFT(I32, I8, I32), 2);
    T_EQ(t, LEFT(I32, U64, I32), 2); /* -1 is none of its values */
    T_EQ(t, LEFT(U32, I32, U32), 2);
    T_EQ(t, LEFT(F16, BF16, F16), 2);
    T_EQ(t, LEFT(BF16, F16, BF16), 2);
    T_EQ(t, LEFT(I16, BOOL, I16), 2);
    T_EQ(t, LEFT(U16, F16, U16), 2);
    /* -1 as a number becomes 255, from a float it is out of range. */
    T_EQ(t, LEFT(I32, F64, U8), 2);
}

static void values(rondo_test *t) {
    compile_fixture f;
    void *got[2] = {0}, *want[2] = {0};
    ct_open(t, &f);
    rondo_ir_value x = ct_input(&f, "x", RONDO_DTYPE_I32, CT_DIMS(4)),
                   y = ct_input(&f, "y", RONDO_DTYPE_F32, CT_DIMS(4));
    rondo_attribute i64 = ct_int("to", RONDO_DTYPE_I64), u8 = ct_int("to", RONDO_DTYPE_U8);
    rondo_attribute f64 = ct_int("to", RONDO_DTYPE_F64), f32 = ct_int("to", RONDO_DTYPE_F32);
    ct_output(&f, CT_NODE_WITH(&f, &u8, "Cast", CT_NODE_WITH(&f, &i64, "Cast", x)), "a");
    ct_output(&f, CT_NODE_WITH(&f, &f32, "Cast", CT_NODE_WITH(&f, &f64, "Cast", y)), "b");
    ct_compile(&f, &f.ref, RONDO_COMPILE_EXPLAIN);
    T_TRUE(t, ct_remarked(&f, "int64 holds every int32"));
    int32_t in[4] = {-1, 255, INT32_MIN, 300};
    float real[4] = {-0.0f, NAN, 1e-45f, INFINITY};
    ct_run(&f, &f.ref, (void *[]){in, real}, got);
    ct_reference(&f, (void *[]){in, real}, want);
    for (int i = 0; i < 4; i++) T_EQ(t, ((uint8_t *)got[0])[i], (uint8_t)in[i]);
    T_TRUE(t, memcmp(got[0], want[0], 4) == 0);
    ct_same(t, want[1], got[1], 4);
}

RONDO_TEST_MAIN(T_PLAIN(what_holds_everything), T_PLAIN(what_does_not), T(values))
