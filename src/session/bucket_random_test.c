/* SPDX-License-Identifier: Apache-2.0
 *
 * Random chains of operators that turn, cut, sum and join axes, most of them across the one with buckets: a run in a bucket is
 * refused, or gives what the run without gives. Chains that are no graph for these sizes are passed over. */
#include "session/session.h"
#include "session/session_testing.h"

typedef struct chain_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
} chain_fixture;

static void ch_close(chain_fixture *f) {
    rondo_session_release(f->session);
    rondo_ir_graph_release(f->graph);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
    memset(f, 0, sizeof *f);
}

static int64_t ch_roll(chain_fixture *f, int64_t sides) { return (int64_t)(rondo_test_random(f->t) % (uint64_t)sides); }

static rondo_ir_value ch_ints(chain_fixture *f, int32_t rank, int64_t count, const int64_t *data) {
    rondo_ir_value value;
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, NULL, RONDO_DTYPE_I64, rank, &count, data, &value));
    return value;
}

static rondo_ir_value ch_int(chain_fixture *f, int64_t number) { return ch_ints(f, 1, 1, &number); }

static rondo_ir_value ch_node(chain_fixture *f, const char *type, const rondo_ir_value *inputs, uint32_t count,
                              const rondo_attribute *attributes, uint32_t attribute_count) {
    rondo_ir_value out;
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, type, NULL, inputs, count, attributes, attribute_count, &out, 1));
    return out;
}

static rondo_attribute ch_attribute(const char *name, int64_t number) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INT, .count = 1, .value.i = number};
}

static int64_t ch_axis(chain_fixture *f) { return ch_roll(f, 6) - 3; }

static rondo_ir_value ch_turn(chain_fixture *f, rondo_ir_value x) {
    static const int64_t perms[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const rondo_attribute perm = {.name = "perm",
                                  .kind = RONDO_ATTRIBUTE_INTS,
                                  .count = 3,
                                  .value.ints = (int64_t *)(uintptr_t)perms[ch_roll(f, 6)]};
    return ch_node(f, "Transpose", &x, 1, &perm, 1);
}

static rondo_ir_value ch_shape(chain_fixture *f, rondo_ir_value x) {
    static const int64_t shapes[8][3] = {{0, 3, 2},  {-1, 2, 3}, {0, -1, 1}, {3, -1, 2},
                                         {2, 3, -1}, {0, 0, -1}, {1, -1, 6}, {6, -1, 1}};
    return ch_node(f, "Reshape", (rondo_ir_value[]){x, ch_ints(f, 1, 3, shapes[ch_roll(f, 8)])}, 2, NULL, 0);
}

static rondo_ir_value ch_reduce(chain_fixture *f, rondo_ir_value x) {
    static const char *const names[] = {"ReduceSum", "ReduceMax", "ReduceMean", "ReduceMin"};
    const rondo_attribute keep = ch_attribute("keepdims", 1);
    return ch_node(f, names[ch_roll(f, 4)], (rondo_ir_value[]){x, ch_int(f, ch_axis(f))}, 2, &keep, 1);
}

static rondo_ir_value ch_along(chain_fixture *f, rondo_ir_value x) {
    const rondo_attribute axis = ch_attribute("axis", ch_axis(f));
    if (ch_roll(f, 2)) return ch_node(f, "Softmax", &x, 1, &axis, 1);
    return ch_node(f, "Concat", (rondo_ir_value[]){x, x}, 2, &axis, 1);
}

static rondo_ir_value ch_cut(chain_fixture *f, rondo_ir_value x) {
    int64_t step = ch_roll(f, 4) ? 1 : -1;
    int64_t start = step > 0 ? ch_roll(f, 2) : -1, end = step > 0 ? (ch_roll(f, 2) ? INT64_MAX : 2) : INT64_MIN;
    const rondo_ir_value inputs[5] = {x, ch_int(f, start), ch_int(f, end), ch_int(f, ch_axis(f)), ch_int(f, step)};
    return ch_node(f, "Slice", inputs, 5, NULL, 0);
}

static rondo_ir_value ch_pick(chain_fixture *f, rondo_ir_value x) {
    const rondo_attribute axis = ch_attribute("axis", ch_axis(f));
    const int64_t which[2] = {0, -1};
    return ch_node(f, "Gather", (rondo_ir_value[]){x, ch_ints(f, 1, 2, which)}, 2, &axis, 1);
}

static rondo_ir_value ch_product(chain_fixture *f, rondo_ir_value x) {
    rondo_ir_value other = ch_roll(f, 2) ? ch_turn(f, x) : x;
    return ch_node(f, "MatMul", (rondo_ir_value[]){x, other}, 2, NULL, 0);
}

static rondo_ir_value ch_arithmetic(chain_fixture *f, rondo_ir_value x) {
    rondo_ir_value other = ch_roll(f, 2) ? ch_reduce(f, x) : ch_roll(f, 2) ? ch_turn(f, x) : x;
    return ch_node(f, ch_roll(f, 2) ? "Add" : "Mul", (rondo_ir_value[]){x, other}, 2, NULL, 0);
}

static rondo_ir_value ch_frame(chain_fixture *f, rondo_ir_value x) {
    int64_t pads[6] = {0};
    pads[ch_roll(f, 6)] = 1;
    return ch_node(f, "Pad", (rondo_ir_value[]){x, ch_ints(f, 1, 6, pads)}, 2, NULL, 0);
}

static void ch_make(chain_fixture *f) {
    static rondo_ir_value (*const makers[])(chain_fixture *, rondo_ir_value) = {
        ch_turn, ch_shape, ch_reduce, ch_along, ch_cut, ch_pick, ch_product, ch_arithmetic, ch_frame};
    const char *names[3] = {"n", NULL, NULL};
    rondo_ir_value x;
    T_OK(f->t, rondo_ir_graph_create(f->instance, "chain", &f->graph));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 3, (const int64_t[]){-1, 2, 3}, names, &x));
    for (int64_t i = 1 + ch_roll(f, 4); i > 0; i--) x = makers[ch_roll(f, 9)](f, x);
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, x, "z"));
    T_OK(f->t, rondo_session_add_graph(f->session, 1, f->graph));
    T_OK(f->t, rondo_session_add_graph(f->session, 2, f->graph));
    T_OK(f->t, rondo_session_set_buckets(f->session, 1, "n", (const int64_t[]){5}, 1));
}

static rondo_code ch_run(chain_fixture *f, uint32_t id, int64_t n, rondo_tensor_view *out) {
    static float x[5 * 6];
    const int64_t shape[3] = {n, 2, 3};
    for (int i = 0; i < 30; i++) x[i] = (float)(i * 7 % 11) / 4;
    const rondo_tensor_view in = {.data = x, .device_type = 1, .rank = 3, .dtype = RONDO_DTYPE_F32, .shape = shape};
    memset(out, 0, sizeof *out);
    rondo_status status = rondo_session_run(f->session, id, &in, 1, out, 1);
    rondo_code code = rondo_status_code(status);
    rondo_status_release(status);
    return code;
}

static void ch_compare(rondo_test *t, const rondo_tensor_view *got, const rondo_tensor_view *want) {
    int64_t elements = 1;
    T_EQ(t, got->rank, want->rank);
    for (int32_t d = 0; d < want->rank; d++) {
        T_EQ(t, got->shape[d], want->shape[d]);
        elements *= want->shape[d];
    }
    for (int64_t i = 0; i < elements; i++) {
        double w = (double)((const float *)want->data)[i], magnitude = w < 0 ? -w : w;
        T_NEAR(t, ((const float *)got->data)[i], w, 1e-5 + 1e-5 * magnitude);
    }
}

static void test_chains(rondo_test *t) {
    chain_fixture f = {.t = t};
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    int right = 0, refused = 0;
    options.ignore_plugin_path = 1;
    T_DEFER(t, ch_close, &f);
    for (int round = 0; round < 1500; round++) {
        f.t = t;
        if (round % 50 == 0) {
            ch_close(&f);
            f.t = t;
            T_OK(t, rondo_instance_create(&options, &f.instance));
            T_OK(t, rondo_device_open(f.instance, "cpu", NULL, &f.device));
            T_OK(t, rondo_session_create(f.device, NULL, &f.session));
        }
        ch_make(&f);
        for (int64_t n = 1; n < 5; n++) {
            rondo_tensor_view got, want;
            if (ch_run(&f, 2, n, &want) != RONDO_CODE_OK || ch_run(&f, 2, 5, &got) != RONDO_CODE_OK) continue;
            T_TRUE(t, ch_run(&f, 2, n, &want) == RONDO_CODE_OK);
            rondo_code code = ch_run(&f, 1, n, &got);
            T_TRUE(t, code == RONDO_CODE_OK || code == RONDO_CODE_UNSUPPORTED);
            right += code == RONDO_CODE_OK;
            refused += code == RONDO_CODE_UNSUPPORTED;
            if (code == RONDO_CODE_OK) ch_compare(t, &got, &want);
        }
        T_OK(t, rondo_session_remove_graph(f.session, 1));
        T_OK(t, rondo_session_remove_graph(f.session, 2));
        rondo_ir_graph_release(f.graph);
        f.graph = NULL;
    }
    T_TRUE(t, right > 300 && refused > 300); /* of both there were enough to mean something */
}

RONDO_TEST_MAIN(T_PLAIN(test_chains))
