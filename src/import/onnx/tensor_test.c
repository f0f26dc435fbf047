/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorProto in all its forms, as initializers of a model and as files. The wanted bytes are written out by hand. */
#include "harness/harness.h"
#include "import/onnx/onnx_testing.h"

static writer w;

/* A model whose initializer "k" is being written: close the tensor, then finish. */
static void tensor_model(int32_t dtype, int rank, const int64_t *dims) {
    m_begin(&w, 21);
    m_tensor(&w, 5, "k", dtype, rank, dims);
}

static rondo_status tensor_import(importer *in, rondo_ir_graph **out_graph) {
    w_end(&w);
    m_input(&w, "x");
    m_simple(&w, "Identity", "i", "x", "y");
    m_output(&w, "y");
    m_end(&w);
    return m_import(in, &w, out_graph);
}

static void tensor_expect(rondo_test *t, importer *in, int32_t dtype, const void *want, size_t size) {
    rondo_ir_graph *graph = NULL;
    T_OK(t, tensor_import(in, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    const rondo__ir_value_data *value = rondo__ir_value_at(graph, rondo__ir_value_find(graph, "k"));
    T_TRUE(t, value->constant);
    T_EQ(t, value->constant->dtype, dtype);
    T_EQ(t, value->type.dtype, dtype);
    T_EQ(t, value->constant->bytes, size);
    T_EQ(t, (uintptr_t)value->constant->data % 64, 0);
    T_TRUE(t, size == 0 || memcmp(value->constant->data, want, size) == 0);
}

#define TENSOR_REFUSED(t, in, part)                             \
    do {                                                        \
        rondo_ir_graph *refused = NULL;                         \
        T_FAILS(t, tensor_import(in, &refused), CORRUPT, part); \
        T_TRUE(t, !refused);                                    \
    } while (0)

static const int64_t one = 1, two = 2, three = 3, zero = 0;

static void test_raw(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const float floats[] = {1.0f, -2.5f, 0.0f};
    tensor_model(1, 1, &three);
    w_bytes(&w, 9, floats, sizeof floats);
    tensor_expect(t, &in, RONDO_DTYPE_F32, floats, sizeof floats);
    static const uint8_t nibbles[] = {0x21, 0x03}; /* three 4-bit numbers */
    tensor_model(22, 1, &three);
    w_bytes(&w, 9, nibbles, 2);
    tensor_expect(t, &in, RONDO_DTYPE_I4, nibbles, 2);
    tensor_model(1, 0, NULL);
    w_bytes(&w, 9, floats, 4);
    tensor_expect(t, &in, RONDO_DTYPE_F32, floats, 4);
    tensor_model(1, 1, &zero);
    tensor_expect(t, &in, RONDO_DTYPE_F32, NULL, 0);
    tensor_model(1, 1, &zero);
    w_bytes(&w, 9, "", 0);
    tensor_expect(t, &in, RONDO_DTYPE_F32, NULL, 0);
    tensor_model(W_BOOL, 1, &two);
    w_bytes(&w, 9, "\x01\x02", 2);
    TENSOR_REFUSED(t, &in, "tensor 'k': 2 is no bool");
}

static void test_typed_fields(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const float floats[] = {1.5f, -3.0f};
    tensor_model(1, 1, &two);
    w_bytes(&w, 4, floats, sizeof floats);
    tensor_expect(t, &in, RONDO_DTYPE_F32, floats, sizeof floats);
    tensor_model(1, 1, &two); /* not packed, as older writers do */
    w_float(&w, 4, 1.5f);
    w_float(&w, 4, -3.0f);
    tensor_expect(t, &in, RONDO_DTYPE_F32, floats, sizeof floats);
    static const double doubles[] = {0.1, -7.0};
    tensor_model(11, 1, &two);
    w_bytes(&w, 10, doubles, sizeof doubles);
    tensor_expect(t, &in, RONDO_DTYPE_F64, doubles, sizeof doubles);
    static const int64_t longs[] = {INT64_MIN, 9};
    tensor_model(7, 1, &two);
    w_int(&w, 7, longs[0]);
    w_int(&w, 7, longs[1]);
    tensor_expect(t, &in, RONDO_DTYPE_I64, longs, sizeof longs);
    static const uint32_t words[] = {4000000000u, 5};
    tensor_model(12, 1, &two);
    w_int(&w, 11, 4000000000);
    w_int(&w, 11, 5);
    tensor_expect(t, &in, RONDO_DTYPE_U32, words, sizeof words);
    tensor_model(14, 1, &one); /* complex64: two floats an element */
    w_bytes(&w, 4, floats, sizeof floats);
    tensor_expect(t, &in, RONDO_DTYPE_C64, floats, sizeof floats);
    tensor_model(12, 1, &one);
    w_int(&w, 11, INT64_C(1) << 32);
    TENSOR_REFUSED(t, &in, "4294967296 is no uint32");
}

static void test_int32_field(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const int8_t bytes[] = {-128, 127};
    tensor_model(3, 1, &two);
    w_int(&w, 5, -128);
    w_int(&w, 5, 127);
    tensor_expect(t, &in, RONDO_DTYPE_I8, bytes, 2);
    static const uint16_t halves[] = {15360, 49152, 0x7e00}; /* 1.0, -2.0, NaN */
    tensor_model(10, 1, &three);
    for (int i = 0; i < 3; i++) w_int(&w, 5, halves[i]);
    tensor_expect(t, &in, RONDO_DTYPE_F16, halves, sizeof halves);
    static const uint16_t negative[] = {49152};
    tensor_model(10, 1, &one);
    w_int(&w, 5, -16384); /* the same pattern, sign extended */
    tensor_expect(t, &in, RONDO_DTYPE_F16, negative, 2);
    static const int32_t words[] = {INT32_MIN, INT32_MAX};
    tensor_model(6, 1, &two);
    w_int(&w, 5, INT32_MIN);
    w_int(&w, 5, INT32_MAX);
    tensor_expect(t, &in, RONDO_DTYPE_I32, words, sizeof words);
    tensor_model(21, 1, &three); /* uint4: a byte of two an entry */
    w_int(&w, 5, 0x21);
    w_int(&w, 5, 0x03);
    tensor_expect(t, &in, RONDO_DTYPE_U4, "\x21\x03", 2);
    static const struct {
        int32_t dtype;
        int64_t value;
        const char *part;
    } outside[] = {{3, 128, "128 is no int8"},     {2, -1, "-1 is no uint8"},    {5, 32768, "32768 is no int16"},
                   {4, 65536, "no uint16"},        {9, 2, "2 is no bool"},       {10, 65536, "65536 is no float16"},
                   {6, 2147483648, "is no int32"}, {17, 256, "no float8e4m3fn"}, {16, -32769, "no bfloat16"}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        tensor_model(outside[i].dtype, 1, &one);
        w_int(&w, 5, outside[i].value);
        TENSOR_REFUSED(t, &in, outside[i].part);
    }
}

static void test_strings(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    tensor_model(8, 1, &three);
    w_text(&w, 6, "one");
    w_text(&w, 6, "");
    w_bytes(&w, 6, "a\0b", 3);
    rondo_ir_graph *graph = NULL;
    T_OK(t, tensor_import(&in, &graph));
    T_DEFER(t, rondo_ir_graph_release, graph);
    const rondo_string *strings = rondo__ir_value_at(graph, rondo__ir_value_find(graph, "k"))->constant->data;
    T_EQ(t, strings[0].size, 3);
    T_STR(t, strings[0].data, "one");
    T_EQ(t, strings[1].size, 0);
    T_STR(t, strings[1].data, "");
    T_EQ(t, strings[2].size, 3);
    T_TRUE(t, memcmp(strings[2].data, "a\0b", 4) == 0);
    tensor_model(8, 1, &one);
    w_bytes(&w, 9, "x", 1);
    TENSOR_REFUSED(t, &in, "string data in the field raw_data");
}

static void test_sizes_that_do_not_fit(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static const int64_t million = 1000000, huge[] = {INT64_C(1) << 32, INT64_C(1) << 32}, negative = -1;
    static const int64_t many[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    tensor_model(1, 1, &million);
    w_bytes(&w, 9, "abcd", 4);
    TENSOR_REFUSED(t, &in, "tensor 'k': its dims ask for 4000000 bytes, but raw_data has 4");
    tensor_model(1, 2, huge);
    w_bytes(&w, 9, "abcd", 4);
    TENSOR_REFUSED(t, &in, "more bytes than any memory");
    tensor_model(1, 2, huge);
    TENSOR_REFUSED(t, &in, "more bytes than any memory");
    tensor_model(1, 1, &negative);
    TENSOR_REFUSED(t, &in, "dim 0 is -1");
    tensor_model(1, 17, many);
    TENSOR_REFUSED(t, &in, "more than 16 dims");
    tensor_model(1, 1, &two);
    w_bytes(&w, 4, "abcdefgh", 8);
    w_bytes(&w, 9, "abcdefgh", 8);
    TENSOR_REFUSED(t, &in, "data in two fields, float_data and raw_data");
    tensor_model(1, 1, &two);
    w_int(&w, 7, 1);
    w_int(&w, 7, 2);
    TENSOR_REFUSED(t, &in, "float32 data in the field int64_data");
    tensor_model(1, 1, &two);
    w_bytes(&w, 9, "abcd", 4);
    w_bytes(&w, 9, "abcd", 4);
    TENSOR_REFUSED(t, &in, "field 9 is there twice");
    tensor_model(1, 1, &two);
    TENSOR_REFUSED(t, &in, "its dims ask for 2 entries, but it has 0");
    tensor_model(10, 1, &two);
    w_int(&w, 5, 1);
    TENSOR_REFUSED(t, &in, "its dims ask for 2 entries, but int32_data has 1");
    tensor_model(0, 1, &zero);
    TENSOR_REFUSED(t, &in, "data type 0 does not exist");
    tensor_model(99, 1, &zero);
    TENSOR_REFUSED(t, &in, "data type 99 does not exist");
    tensor_model(1, 1, &one);
    w_bytes(&w, 4, "abc", 3);
    TENSOR_REFUSED(t, &in, "3 bytes are no whole number");
}

static void test_long_and_strange_names(rondo_test *t) {
    importer in;
    importer_init(&in, t);
    static char name[4097];
    static const size_t sizes[] = {0, 1, 255, 256, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memset(name, i % 2 ? 0xff : '\n', sizes[i]);
        name[sizes[i]] = 0;
        m_begin(&w, 21);
        m_tensor(&w, 5, name, 1, 1, &two);
        rondo_ir_graph *graph = NULL;
        rondo_status status = tensor_import(&in, &graph);
        if (!rondo_test_failing(t)) {
            const char *message = rondo_status_message(status);
            T_TRUE(t, strlen(message) < 1024 && !strchr(message, '\n'));
            T_TRUE(t, strstr(message, "ask for 2 entries")); /* the reason is there, however long the name */
        }
        T_FAILS(t, status, CORRUPT, NULL);
    }
}

static void test_file(rondo_test *t) {
    importer in;
    rondo_instance *instance = importer_init(&in, t);
    char path[512];
    rondo_tensor *tensor = NULL;
    static const int64_t dims[] = {2, 1};
    static const int64_t data[] = {5, -6};
    w.size = w.depth = 0;
    for (int i = 0; i < 2; i++) w_int(&w, 1, dims[i]);
    w_int(&w, 2, W_I64);
    w_bytes(&w, 9, data, sizeof data);
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "a.pb", path, sizeof path));
    T_OK(t, rondo_tensor_read_onnx(instance, path, &tensor));
    T_DEFER(t, rondo_tensor_release, tensor);
    const rondo_tensor_view *view = rondo_tensor_get_view(tensor);
    T_EQ(t, view->dtype, RONDO_DTYPE_I64);
    T_EQ(t, view->rank, 2);
    T_EQ(t, view->shape[0], 2);
    T_EQ(t, view->shape[1], 1);
    T_TRUE(t, memcmp(view->data, data, sizeof data) == 0);
    rondo_tensor *none = NULL;
    w.size--;
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "b.pb", path, sizeof path));
    T_FAILS(t, rondo_tensor_read_onnx(instance, path, &none), CORRUPT, "b.pb': tensor '': byte");
    w.size = 0;
    w_int(&w, 1, 1);
    w_int(&w, 2, 8);
    w_text(&w, 6, "text");
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "c.pb", path, sizeof path));
    T_FAILS(t, rondo_tensor_read_onnx(instance, path, &none), UNSUPPORTED, "a tensor of type string");
    w.size = 0;
    w_int(&w, 1, 1);
    w_int(&w, 2, 1);
    w_int(&w, 14, 1);
    m_entry(&w, "location", "c.pb");
    T_TRUE(t, w_save(&w, rondo_test_folder(t), "d.pb", path, sizeof path));
    T_FAILS(t, rondo_tensor_read_onnx(instance, path, &none), UNSUPPORTED, "external data");
    T_FAILS(t, rondo_tensor_read_onnx(instance, "/nowhere/x.pb", &none), NOT_FOUND, "/nowhere/x.pb");
    T_FAILS(t, rondo_tensor_read_onnx(instance, rondo_test_folder(t), &none), IO, "is a folder");
    T_TRUE(t, !none);
}

RONDO_TEST_MAIN(T(test_raw), T(test_typed_fields), T(test_int32_field), T(test_strings), T(test_sizes_that_do_not_fit),
                T(test_long_and_strange_names), T(test_file))
