/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets: what a filled run gives is what the run without gives, for every size; what mixes rows is refused by node; what
 * served which run is counted. */
#include "session/session.h"
#include "session/session_testing.h"

#define BT_COLUMNS 3
#define BT_MOST 12

typedef struct bucket_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
} bucket_fixture;

static void bt_close(bucket_fixture *f) {
    rondo_session_release(f->session);
    rondo_ir_graph_release(f->graph);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
    f->session = NULL, f->graph = NULL, f->device = NULL, f->instance = NULL;
}

static void bt_again(rondo_test *t, bucket_fixture *f) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    f->t = t;
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &f->instance));
    T_OK(t, rondo_device_open(f->instance, "cpu", NULL, &f->device));
    T_OK(t, rondo_session_create(f->device, NULL, &f->session));
    T_OK(t, rondo_ir_graph_create(f->instance, "rows", &f->graph));
}

static void bt_open(rondo_test *t, bucket_fixture *f) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, bt_close, f);
    bt_again(t, f);
}

static rondo_ir_value bt_input(bucket_fixture *f, const char *name, rondo_dtype dtype, int32_t rank) {
    const char *names[2] = {"n", NULL};
    rondo_ir_value value;
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, name, dtype, rank, (const int64_t[]){-1, BT_COLUMNS}, names, &value));
    return value;
}

static rondo_ir_value bt_ints(bucket_fixture *f, int32_t rank, int64_t count, const int64_t *data) {
    rondo_ir_value value;
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, NULL, RONDO_DTYPE_I64, rank, &count, data, &value));
    return value;
}

/* One attribute at most, an int; name null: none. */
static rondo_ir_value bt_node(bucket_fixture *f, const char *type, const char *attribute, int64_t number,
                              rondo_ir_value a, rondo_ir_value b) {
    const rondo_attribute known = {.name = attribute, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = number};
    const rondo_ir_value inputs[2] = {a, b};
    rondo_ir_value out;
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, type, NULL, inputs, b == RONDO_IR_NONE ? 1 : 2, &known,
                                       attribute ? 1 : 0, &out, 1));
    return out;
}

static rondo_ir_value bt_one(bucket_fixture *f, const char *type, rondo_ir_value a) {
    return bt_node(f, type, NULL, 0, a, RONDO_IR_NONE);
}

/* The size as an int64[1]. */
static rondo_ir_value bt_size(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Gather", "axis", 0, bt_one(f, "Shape", x), bt_ints(f, 1, 1, (const int64_t[]){0}));
}

static rondo_ir_value bt_cast(bucket_fixture *f, rondo_ir_value x, rondo_dtype to) {
    /* 1 is FLOAT and 7 INT64 in ONNX's numbers, which the attribute has as the data type's name says */
    return bt_node(f, "Cast", "to", to, x, RONDO_IR_NONE);
}

static void bt_output(bucket_fixture *f, rondo_ir_value value, const char *name) {
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, value, name));
}

/* x[i, c] = (7 i + 3 c) % 5 + 1. Outputs are lent. */
static rondo_status bt_run(bucket_fixture *f, uint32_t id, int64_t n, rondo_tensor_view *outputs, uint32_t count) {
    static float x[BT_MOST * BT_COLUMNS];
    const int64_t shape[2] = {n, BT_COLUMNS};
    for (int64_t i = 0; i < n * BT_COLUMNS; i++) x[i] = (float)((7 * (i / BT_COLUMNS) + 3 * (i % BT_COLUMNS)) % 5 + 1);
    const rondo_tensor_view in = {.data = x, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = shape};
    memset(outputs, 0, count * sizeof *outputs);
    return rondo_session_run(f->session, id, &in, 1, outputs, count);
}

static uint64_t bt_bytes(const rondo_tensor_view *view) {
    uint64_t bytes = rondo_dtype_bits(view->dtype) / 8u;
    for (int32_t d = 0; d < view->rank; d++) bytes *= (uint64_t)view->shape[d];
    return bytes;
}

static void bt_add(bucket_fixture *f, const int64_t *sizes, uint32_t count) {
    T_OK(f->t, rondo_session_add_graph(f->session, 1, f->graph)); /* with buckets */
    T_OK(f->t, rondo_session_add_graph(f->session, 2, f->graph)); /* without */
    T_OK(f->t, rondo_session_set_buckets(f->session, 1, "n", sizes, count));
}

/* Both ways, for each size: the same types, shapes and numbers. */
static void bt_compare(bucket_fixture *f, uint32_t outputs, int64_t most) {
    rondo_tensor_view got[4], want[4];
    for (int64_t n = 1; n <= most; n++) {
        T_OK(f->t, bt_run(f, 1, n, got, outputs));
        T_OK(f->t, bt_run(f, 2, n, want, outputs));
        for (uint32_t i = 0; i < outputs; i++) {
            T_EQ(f->t, got[i].dtype, want[i].dtype);
            T_EQ(f->t, got[i].rank, want[i].rank);
            for (int32_t d = 0; d < got[i].rank; d++) T_EQ(f->t, got[i].shape[d], want[i].shape[d]);
            for (uint64_t k = 0; got[i].dtype == RONDO_DTYPE_F32 && k < bt_bytes(&got[i]) / 4u; k++)
                T_NEAR(f->t, ((float *)got[i].data)[k], ((float *)want[i].data)[k], 1e-6);
            if (got[i].dtype != RONDO_DTYPE_F32)
                T_EQ(f->t, memcmp(got[i].data, want[i].data, (size_t)bt_bytes(&got[i])), 0);
        }
    }
}

static rondo_bucket_info bt_bucket(bucket_fixture *f, uint32_t index) {
    rondo_bucket_info info = RONDO_BUCKET_INFO_INIT;
    T_OK(f->t, rondo_session_get_bucket(f->session, 1, index, &info));
    return info;
}

/* z[0, i, c] = softmax over c, z[1, i, c] = x[i, c] W summed; s[i] = sum over c; r = x through a shape that was worked out. */
static void rows(bucket_fixture *f) {
    static const float weights[BT_COLUMNS * BT_COLUMNS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    rondo_ir_value x = bt_input(f, "x", RONDO_DTYPE_F32, 2), w;
    rondo_ir_value zero = bt_ints(f, 1, 1, (const int64_t[]){0}), one = bt_ints(f, 1, 1, (const int64_t[]){1});
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, "w", RONDO_DTYPE_F32, 2, (const int64_t[]){BT_COLUMNS, BT_COLUMNS},
                                           weights, &w));
    rondo_ir_value soft = bt_node(f, "Unsqueeze", NULL, 0, bt_node(f, "Softmax", "axis", -1, x, RONDO_IR_NONE), zero);
    rondo_ir_value product = bt_node(f, "Unsqueeze", NULL, 0, bt_node(f, "MatMul", NULL, 0, x, w), zero);
    rondo_ir_value minus = bt_ints(f, 1, 1, (const int64_t[]){-1});
    bt_output(f, bt_node(f, "Concat", "axis", 0, soft, product), "z");
    bt_output(f, bt_node(f, "ReduceSum", "keepdims", 0, x, one), "s");
    bt_output(f, bt_node(f, "Reshape", NULL, 0, x, bt_node(f, "Concat", "axis", 0, bt_size(f, x), minus)), "r");
    bt_output(f, bt_node(f, "ArgMax", "axis", 1, x, RONDO_IR_NONE), "m");
}

static void test_rows(rondo_test *t) {
    bucket_fixture f;
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    rondo_tensor_view out[4];
    bt_open(t, &f);
    rows(&f);
    bt_add(&f, (const int64_t[]){4, 8}, 2);
    bt_compare(&f, 4, 10);
    T_EQ(t, bt_bucket(&f, 0).size, 4);
    T_EQ(t, bt_bucket(&f, 0).runs, 4);   /* 1 2 3 4 */
    T_EQ(t, bt_bucket(&f, 0).filled, 3); /* not 4 */
    T_EQ(t, bt_bucket(&f, 0).rows, 10);
    T_EQ(t, bt_bucket(&f, 1).runs, 4); /* 5 6 7 8 */
    T_EQ(t, bt_bucket(&f, 1).filled, 3);
    T_EQ(t, bt_bucket(&f, 1).rows, 26);
    T_OK(t, rondo_session_get_info(f.session, 1, &info));
    T_EQ(t, info.bucket_misses, 2); /* 9 10 */
    T_EQ(t, info.compiles, 4);      /* 4 8 9 10 */
    T_EQ(t, info.runs, 10);
    T_FAILS(t, rondo_session_get_bucket(f.session, 1, 2, &(rondo_bucket_info)RONDO_BUCKET_INFO_INIT), OUT_OF_RANGE,
            "2 buckets");
    /* By arithmetic, too, and into memory of the caller's. */
    static float s[3], rest;
    const int64_t three = 3;
    T_OK(t, bt_run(&f, 1, 3, out, 4));
    float z = ((float *)out[0].data)[(1 * 3 + 2) * BT_COLUMNS + 1]; /* x[2] is 5 3 1: 5 2 + 3 5 + 1 8 */
    T_NEAR(t, z, 33, 0);
    float x[9] = {1, 4, 2, 3, 1, 4, 5, 3, 1};
    rondo_tensor_view in = {
        .data = x, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = (const int64_t[]){3, BT_COLUMNS}};
    memset(out, 0, sizeof out);
    out[1] = (rondo_tensor_view){.data = s, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &three};
    rest = -1;
    T_OK(t, rondo_session_run(f.session, 1, &in, 1, out, 4));
    T_TRUE(t, s[0] == 7 && s[1] == 8 && s[2] == 9 && rest == -1);
    out[1].shape = (const int64_t[]){4};
    T_FAILS(t, rondo_session_run(f.session, 1, &in, 1, out, 4), INVALID_ARGUMENT, "output 's'");
    T_OK(t, rondo_session_set_buckets(f.session, 1, NULL, NULL, 0));
    T_OK(t, bt_run(&f, 1, 3, out, 4));
    T_FAILS(t, rondo_session_get_bucket(f.session, 1, 0, &(rondo_bucket_info)RONDO_BUCKET_INFO_INIT), OUT_OF_RANGE,
            "0 buckets");
}

/* Constants that depend on the size: their beginning may be enough (positions), or not (a mean by hand). */
static void test_positions(rondo_test *t) {
    bucket_fixture f;
    bt_open(t, &f);
    rondo_ir_value x = bt_input(&f, "x", RONDO_DTYPE_F32, 2), out;
    const rondo_ir_value range[3] = {bt_ints(&f, 0, 1, (const int64_t[]){0}),
                                     bt_node(&f, "Squeeze", NULL, 0, bt_size(&f, x), RONDO_IR_NONE),
                                     bt_ints(&f, 0, 1, (const int64_t[]){1})};
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Range", NULL, range, 3, NULL, 0, &out, 1));
    rondo_ir_value column =
        bt_node(&f, "Unsqueeze", NULL, 0, bt_cast(&f, out, RONDO_DTYPE_F32), bt_ints(&f, 1, 1, (const int64_t[]){1}));
    bt_output(&f, bt_node(&f, "Mul", NULL, 0, x, column), "z");
    bt_output(&f, out, "positions");
    bt_add(&f, (const int64_t[]){5}, 1);
    bt_compare(&f, 2, 7);
    T_EQ(t, bt_bucket(&f, 0).filled, 4);
}

/* Rows that fill are copies: nothing fails for them. */
static void test_whole_numbers(rondo_test *t) {
    bucket_fixture f;
    bt_open(t, &f);
    rondo_ir_value x = bt_input(&f, "x", RONDO_DTYPE_I64, 1), y = bt_input(&f, "y", RONDO_DTYPE_I64, 1);
    bt_output(&f, bt_node(&f, "Gather", "axis", 0, bt_ints(&f, 1, 4, (const int64_t[]){50, 60, 70, 80}), y), "g");
    bt_output(&f, bt_node(&f, "Div", NULL, 0, x, y), "z");
    bt_add(&f, (const int64_t[]){6}, 1);
    T_OK(t, rondo_session_set_buckets(f.session, 1, "x.0,y.0", (const int64_t[]){6}, 1)); /* as good as n */
    int64_t a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, n = 3;
    rondo_tensor_view in[2] = {{.data = a, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_I64, .shape = &n}};
    rondo_tensor_view out[2];
    in[1] = in[0];
    in[1].data = b;
    for (int i = 0; i < 2; i++) {
        memset(out, 0, sizeof out);
        T_OK(t, rondo_session_run(f.session, 1, in, 2, out, 2));
        const int64_t *g = out[0].data, *z = out[1].data;
        T_EQ(t, out[0].shape[0], 3);
        T_TRUE(t, g[0] == 60 && g[1] == 70 && g[2] == 80 && z[0] == 10 && z[1] == 10 && z[2] == 10);
    }
    T_EQ(t, bt_bucket(&f, 0).filled, 2);
}

static rondo_ir_value bt_slice_to(bucket_fixture *f, rondo_ir_value x, int64_t start, rondo_ir_value end,
                                  int64_t step) {
    rondo_ir_value out;
    const rondo_ir_value inputs[5] = {x, bt_ints(f, 1, 1, &start), end, bt_ints(f, 1, 1, (const int64_t[]){-2}),
                                      bt_ints(f, 1, 1, &step)};
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, "Slice", NULL, inputs, 5, NULL, 0, &out, 1));
    return out;
}

static rondo_ir_value bt_slice(bucket_fixture *f, rondo_ir_value x, int64_t start, int64_t end, int64_t step) {
    return bt_slice_to(f, x, start, bt_ints(f, 1, 1, &end), step);
}

/* All rows, as exporters write it: to the largest number, and to the size. */
static void test_whole_slice(rondo_test *t) {
    bucket_fixture f;
    bt_open(t, &f);
    rondo_ir_value x = bt_input(&f, "x", RONDO_DTYPE_F32, 2);
    bt_output(&f, bt_one(&f, "Neg", bt_slice(&f, x, 0, INT64_MAX, 1)), "z");
    bt_output(&f, bt_one(&f, "Abs", bt_slice_to(&f, x, 0, bt_size(&f, x), 1)), "w");
    bt_add(&f, (const int64_t[]){5}, 1);
    bt_compare(&f, 2, 6);
    T_EQ(t, bt_bucket(&f, 0).filled, 4);
}

typedef rondo_ir_value (*bt_mixer)(bucket_fixture *f, rondo_ir_value x);

static rondo_ir_value mix_sum(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "ReduceSum", "keepdims", 1, x, bt_ints(f, 1, 1, (const int64_t[]){-2}));
}
static rondo_ir_value mix_sum_all(bucket_fixture *f, rondo_ir_value x) { return bt_one(f, "ReduceMax", x); }
static rondo_ir_value mix_softmax(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Softmax", "axis", 0, x, RONDO_IR_NONE);
}
static rondo_ir_value mix_product(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "MatMul", NULL, 0, bt_one(f, "Transpose", x), x);
}
static rondo_ir_value mix_both(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "MatMul", NULL, 0, x, bt_one(f, "Transpose", x)); /* [n, n] */
}
static rondo_ir_value mix_reshape(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Reshape", NULL, 0, x,
                   bt_node(f, "Concat", "axis", 0, bt_ints(f, 1, 1, (const int64_t[]){BT_COLUMNS}), bt_size(f, x)));
}
static rondo_ir_value mix_flat(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Reshape", NULL, 0, x, bt_ints(f, 1, 1, (const int64_t[]){-1}));
}
static rondo_ir_value mix_row(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Gather", "axis", 0, x, bt_ints(f, 0, 1, (const int64_t[]){-1}));
}
static rondo_ir_value mix_mean(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Div", NULL, 0, x, bt_cast(f, bt_size(f, x), RONDO_DTYPE_F32));
}
static rondo_ir_value mix_running(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "CumSum", "exclusive", 0, x, bt_ints(f, 0, 1, (const int64_t[]){0}));
}
static rondo_ir_value mix_concat(bucket_fixture *f, rondo_ir_value x) { return bt_node(f, "Concat", "axis", 0, x, x); }
static rondo_ir_value mix_turned(bucket_fixture *f, rondo_ir_value x) { return bt_slice(f, x, -1, INT64_MIN, -1); }
static rondo_ir_value mix_last(bucket_fixture *f, rondo_ir_value x) { return bt_slice(f, x, -1, INT64_MAX, 1); }
static rondo_ir_value mix_across(bucket_fixture *f, rondo_ir_value x) {
    return bt_node(f, "Add", NULL, 0, bt_node(f, "Unsqueeze", NULL, 0, x, bt_ints(f, 1, 1, (const int64_t[]){0})),
                   bt_node(f, "Unsqueeze", NULL, 0, x, bt_ints(f, 1, 1, (const int64_t[]){1}))); /* [n, n, 3] */
}

static void test_what_mixes(rondo_test *t) {
    static const struct {
        bt_mixer make;
        const char *node;
    } mixers[] = {{mix_sum, "(ReduceSum)"},  {mix_sum_all, "(ReduceMax)"}, {mix_softmax, "(Softmax)"},
                  {mix_product, "(MatMul)"}, {mix_both, "(MatMul)"},       {mix_reshape, "(Reshape)"},
                  {mix_flat, "(Reshape)"},   {mix_row, "(Gather)"},        {mix_mean, "(Div)"},
                  {mix_running, "(CumSum)"}, {mix_concat, "(Concat)"},     {mix_across, "(Add)"},
                  {mix_turned, "(Slice)"},   {mix_last, "(Slice)"}};
    bucket_fixture f = {.t = t};
    T_DEFER(t, bt_close, &f);
    for (size_t i = 0; i < sizeof mixers / sizeof *mixers; i++) {
        rondo_tensor_view out[1];
        bt_again(t, &f);
        bt_output(&f, mixers[i].make(&f, bt_input(&f, "x", RONDO_DTYPE_F32, 2)), "z");
        bt_add(&f, (const int64_t[]){4}, 1);
        T_FAILS(t, bt_run(&f, 1, 2, out, 1), UNSUPPORTED, mixers[i].node);
        T_EQ(t, bt_bucket(&f, 0).runs, 0);
        T_OK(t, bt_run(&f, 1, 4, out, 1)); /* nothing is filled */
        T_OK(t, bt_run(&f, 1, 5, out, 1)); /* no bucket is that large */
        T_OK(t, bt_run(&f, 2, 2, out, 1));
        T_EQ(t, bt_bucket(&f, 0).runs, 1);
        bt_close(&f);
    }
}

/* What a size decides is right where both sizes decide alike. */
static void test_decisions(rondo_test *t) {
    bucket_fixture f;
    rondo_tensor_view out[1];
    bt_open(t, &f);
    rondo_ir_value x = bt_input(&f, "x", RONDO_DTYPE_F32, 2);
    rondo_ir_value large = bt_node(&f, "Greater", NULL, 0, bt_size(&f, x), bt_ints(&f, 1, 1, (const int64_t[]){4}));
    bt_output(&f, bt_node(&f, "Mul", NULL, 0, x, bt_cast(&f, large, RONDO_DTYPE_F32)), "z");
    bt_add(&f, (const int64_t[]){3, 8}, 2);
    for (int64_t n = 1; n <= 8; n++) {
        if (n == 4) { /* 4 is not above 4, and 8 is */
            T_FAILS(t, bt_run(&f, 1, n, out, 1), UNSUPPORTED, "Mul");
            continue;
        }
        T_OK(t, bt_run(&f, 1, n, out, 1));
        T_NEAR(t, ((float *)out[0].data)[0], n > 4 ? 1 : 0, 0);
    }
    T_EQ(t, bt_bucket(&f, 0).filled + bt_bucket(&f, 1).filled, 5);
}

static void test_refusals(rondo_test *t) {
    bucket_fixture f;
    rondo_ir_value square;
    const char *twice[2] = {"m", "m"};
    rondo_tensor_view out[2];
    bt_open(t, &f);
    rondo_ir_value x = bt_input(&f, "x", RONDO_DTYPE_F32, 2);
    bt_output(&f, bt_one(&f, "Neg", x), "z");
    T_OK(t, rondo_session_add_graph_copy(f.session, 3, f.graph));
    T_OK(t, rondo_ir_graph_add_input(f.graph, "square", RONDO_DTYPE_F32, 2, (const int64_t[]){-1, -1}, twice, &square));
    bt_output(&f, bt_one(&f, "Neg", square), "w");
    const int64_t sizes[3] = {4, 4, -1};
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "n", sizes, 1), NOT_FOUND, "no graph 1");
    T_OK(t, rondo_session_add_graph(f.session, 1, f.graph));
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "n", sizes, 2), INVALID_ARGUMENT, "size 4 at 1");
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "n", sizes + 2, 1), INVALID_ARGUMENT, "size -1 at 0");
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, NULL, sizes, 1), INVALID_ARGUMENT, "null");
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "k", sizes, 1), NOT_FOUND, "open size 'k'");
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "x.1", sizes, 1), NOT_FOUND, "open size 'x.1'"); /* it is 3 */
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "x.,x,.0,nn,", sizes, 1), NOT_FOUND, "open size");
    T_FAILS(t, rondo_session_set_buckets(f.session, 1, "m", sizes, 1), UNSUPPORTED, "axes 0 and 1");
    T_OK(t, rondo_session_set_buckets(f.session, 3, "x.0", sizes, 1));
    T_OK(t, bt_run(&f, 3, 2, out, 1));
    T_NEAR(t, ((float *)out[0].data)[0], -1, 0);
    rondo_bucket_info info = RONDO_BUCKET_INFO_INIT;
    T_OK(t, rondo_session_get_bucket(f.session, 3, 0, &info));
    T_EQ(t, info.filled, 1);
}

RONDO_TEST_MAIN(T(test_rows), T(test_positions), T(test_whole_numbers), T(test_whole_slice), T(test_what_mixes),
                T(test_decisions), T(test_refusals))
