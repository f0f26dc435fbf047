/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers are those that files hold: TensorProto.DataType of onnx.proto, written out here a second time. */
#include "base/status.h"
#include "harness/harness.h"

static const struct {
    const char *onnx; /* the name there */
    int32_t number;
    rondo_dtype ours;
    uint32_t bits;
} dtypes[] = {
    {"UNDEFINED", 0, RONDO_DTYPE_UNDEFINED, 0},
    {"FLOAT", 1, RONDO_DTYPE_F32, 32},
    {"UINT8", 2, RONDO_DTYPE_U8, 8},
    {"INT8", 3, RONDO_DTYPE_I8, 8},
    {"UINT16", 4, RONDO_DTYPE_U16, 16},
    {"INT16", 5, RONDO_DTYPE_I16, 16},
    {"INT32", 6, RONDO_DTYPE_I32, 32},
    {"INT64", 7, RONDO_DTYPE_I64, 64},
    {"STRING", 8, RONDO_DTYPE_STRING, 0},
    {"BOOL", 9, RONDO_DTYPE_BOOL, 8},
    {"FLOAT16", 10, RONDO_DTYPE_F16, 16},
    {"DOUBLE", 11, RONDO_DTYPE_F64, 64},
    {"UINT32", 12, RONDO_DTYPE_U32, 32},
    {"UINT64", 13, RONDO_DTYPE_U64, 64},
    {"COMPLEX64", 14, RONDO_DTYPE_C64, 64},
    {"COMPLEX128", 15, RONDO_DTYPE_C128, 128},
    {"BFLOAT16", 16, RONDO_DTYPE_BF16, 16},
    {"FLOAT8E4M3FN", 17, RONDO_DTYPE_F8E4M3FN, 8},
    {"FLOAT8E4M3FNUZ", 18, RONDO_DTYPE_F8E4M3FNUZ, 8},
    {"FLOAT8E5M2", 19, RONDO_DTYPE_F8E5M2, 8},
    {"FLOAT8E5M2FNUZ", 20, RONDO_DTYPE_F8E5M2FNUZ, 8},
    {"UINT4", 21, RONDO_DTYPE_U4, 4},
    {"INT4", 22, RONDO_DTYPE_I4, 4},
    {"FLOAT4E2M1", 23, RONDO_DTYPE_F4E2M1, 4},
    {"FLOAT8E8M0", 24, RONDO_DTYPE_F8E8M0, 8},
    {"UINT2", 25, RONDO_DTYPE_U2, 2},
    {"INT2", 26, RONDO_DTYPE_I2, 2},
};

static void test_numbers_are_those_of_onnx(rondo_test *t) {
    T_EQ(t, sizeof dtypes / sizeof *dtypes, RONDO_DTYPE_COUNT);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        T_EQ(t, dtypes[i].ours, dtypes[i].number);
        T_EQ(t, rondo_dtype_bits(dtypes[i].number), dtypes[i].bits);
        T_TRUE(t, strcmp(rondo_dtype_name(dtypes[i].number), "unknown") != 0);
    }
    T_STR(t, rondo_dtype_name(RONDO_DTYPE_F8E4M3FNUZ), "float8e4m3fnuz");
    T_STR(t, rondo_dtype_name(RONDO_DTYPE_COUNT), "unknown");
    T_STR(t, rondo_dtype_name(-1), "unknown");
    T_EQ(t, rondo_dtype_bits(INT32_MIN), 0);
}

static void test_bytes(rondo_test *t) {
    uint64_t bytes = 0;
    T_OK(t, rondo_dtype_bytes(RONDO_DTYPE_F32, 0, &bytes));
    T_EQ(t, bytes, 0);
    T_OK(t, rondo_dtype_bytes(RONDO_DTYPE_C128, 3, &bytes));
    T_EQ(t, bytes, 48);
    /* Packed, rounded up. */
    static const uint64_t halves[] = {0, 1, 1, 2, 2, 3}, quarters[] = {0, 1, 1, 1, 1, 2};
    for (uint64_t i = 0; i < 6; i++) {
        T_OK(t, rondo_dtype_bytes(RONDO_DTYPE_I4, i, &bytes));
        T_EQ(t, bytes, halves[i]);
        T_OK(t, rondo_dtype_bytes(RONDO_DTYPE_U2, i, &bytes));
        T_EQ(t, bytes, quarters[i]);
    }
    T_OK(t, rondo_dtype_bytes(RONDO_DTYPE_U4, UINT64_MAX, &bytes));
    T_EQ(t, bytes, UINT64_C(1) << 63);
    bytes = 77;
    T_FAILS(t, rondo_dtype_bytes(RONDO_DTYPE_F64, UINT64_MAX / 8 + 1, &bytes), OUT_OF_RANGE, "float64");
    T_FAILS(t, rondo_dtype_bytes(RONDO_DTYPE_STRING, 1, &bytes), INVALID_ARGUMENT, "string");
    T_FAILS(t, rondo_dtype_bytes(RONDO_DTYPE_UNDEFINED, 1, &bytes), INVALID_ARGUMENT, "undefined");
    T_FAILS(t, rondo_dtype_bytes(99, 1, &bytes), INVALID_ARGUMENT, "unknown (99)");
    T_FAILS(t, rondo_dtype_bytes(RONDO_DTYPE_F32, 1, NULL), INVALID_ARGUMENT, NULL);
    T_EQ(t, bytes, 77);
}

RONDO_TEST_MAIN(T(test_numbers_are_those_of_onnx), T(test_bytes))
