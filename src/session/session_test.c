/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions on cpu and on sim: what is compiled when, what is captured when, what is thrown away when, and that results
 * are those of arithmetic throughout. */
#include "session/session.h"

#include <rondo/compiler.h>

#include "harness/harness.h"

typedef struct session_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graph;
} session_fixture;

static void st_close(session_fixture *f) {
    rondo_session_release(f->session);
    rondo_ir_graph_release(f->graph);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
    memset(f, 0, sizeof *f);
}

static void st_again(rondo_test *t, session_fixture *f, const char *device, const rondo_session_options *options) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    f->t = t;
    instance.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&instance, &f->instance));
    T_OK(t, rondo_device_open(f->instance, device, NULL, &f->device));
    T_OK(t, rondo_session_create(f->device, options, &f->session));
    T_OK(t, rondo_ir_graph_create(f->instance, "graph", &f->graph));
}

static void st_open(rondo_test *t, session_fixture *f, const char *device, const rondo_session_options *options) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, st_close, f);
    st_again(t, f, device, options);
}

static rondo_ir_value st_node(session_fixture *f, const char *name, const rondo_ir_value *inputs, uint32_t count) {
    rondo_ir_value output = RONDO_IR_NONE;
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, name, NULL, inputs, count, NULL, 0, &output, 1));
    return output;
}

/* z = x + 2 y, with x of any length and y of the same or one element; w = -x. */
static void st_sum(session_fixture *f) {
    const char *n = "n", *m = "m";
    rondo_ir_value x, y, two;
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &n, &x));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "y", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &m, &y));
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, NULL, RONDO_DTYPE_F32, 0, NULL, &(const float){2}, &two));
    rondo_ir_value twice = st_node(f, "Mul", (rondo_ir_value[]){y, two}, 2);
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, st_node(f, "Add", (rondo_ir_value[]){x, twice}, 2), "z"));
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, st_node(f, "Neg", &x, 1), "w"));
}

static rondo_tensor_view st_view(void *data, rondo_dtype dtype, int32_t rank, const int64_t *shape) {
    return (rondo_tensor_view){.data = data, .device_type = 1, .rank = rank, .dtype = dtype, .shape = shape};
}

/* One run of the sum for length n with fresh numbers; checks z and w. */
static rondo_status st_run_sum(session_fixture *f, int64_t n, bool own_memory) {
    float x[16], y[1] = {(float)(rondo_test_random(f->t) % 100)}, z[16], w[16];
    int64_t one = 1;
    for (int64_t i = 0; i < n; i++) x[i] = (float)(rondo_test_random(f->t) % 1000);
    rondo_tensor_view inputs[2] = {st_view(x, RONDO_DTYPE_F32, 1, &n), st_view(y, RONDO_DTYPE_F32, 1, &one)};
    rondo_tensor_view outputs[2] = {{0}, {0}};
    if (own_memory) {
        outputs[0] = st_view(z, RONDO_DTYPE_F32, 1, &n);
        outputs[1] = st_view(w, RONDO_DTYPE_F32, 1, &n);
    }
    rondo_status status = rondo_session_run(f->session, 7, inputs, 2, outputs, 2);
    if (status) return status;
    T_EQ(f->t, outputs[0].shape[0], n);
    T_EQ(f->t, outputs[1].dtype, RONDO_DTYPE_F32);
    for (int64_t i = 0; i < n; i++) {
        T_TRUE(f->t, ((float *)outputs[0].data)[i] == x[i] + 2 * y[0]);
        T_TRUE(f->t, ((float *)outputs[1].data)[i] == -x[i]);
    }
    return RONDO_OK;
}

static rondo_session_info st_info(session_fixture *f) {
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    T_OK(f->t, rondo_session_get_info(f->session, 7, &info));
    return info;
}

static const char *const st_devices[] = {"cpu", "sim"};

static void sums(rondo_test *t) {
    session_fixture f = {.t = t};
    T_DEFER(t, st_close, &f);
    for (int d = 0; d < 2; d++) {
        st_again(t, &f, st_devices[d], NULL);
        st_sum(&f);
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        for (int i = 0; i < 3; i++) T_OK(t, st_run_sum(&f, 5, i % 2));
        rondo_session_info info = st_info(&f);
        T_EQ(t, info.runs, 3);
        T_EQ(t, info.compiles, 1);
        T_EQ(t, info.captures, 1);
        T_EQ(t, info.replays, 3);
        T_EQ(t, info.specialisations, 1);
        T_TRUE(t, info.compile_ns > 0 && info.capture_ns > 0 && info.run_ns > 0 && info.copy_ns > 0);
        st_close(&f);
    }
}

static void a_number_has_one_graph(rondo_test *t) {
    session_fixture f;
    st_open(t, &f, "cpu", NULL);
    st_sum(&f);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    T_FAILS(t, rondo_session_add_graph(f.session, 7, f.graph), ALREADY_EXISTS, "a graph 7, which stays");
    T_OK(t, rondo_session_add_graph(f.session, 8, f.graph));
    T_OK(t, st_run_sum(&f, 3, true));
    T_OK(t, rondo_session_remove_graph(f.session, 7));
    T_FAILS(t, rondo_session_remove_graph(f.session, 7), NOT_FOUND, "no graph 7");
    T_FAILS(t, st_run_sum(&f, 3, true), NOT_FOUND, "no graph 7: add it first");
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    T_FAILS(t, rondo_session_get_info(f.session, 7, &info), NOT_FOUND, "no graph 7");
    T_OK(t, rondo_session_get_info(f.session, 8, &info));
    T_EQ(t, info.runs, 0);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    T_OK(t, st_run_sum(&f, 3, false));
    T_EQ(t, st_info(&f).runs, 1);
}

static void recorded_after_some_runs(rondo_test *t) {
    session_fixture f;
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    options.record_after = 2;
    st_open(t, &f, "cpu", &options);
    st_sum(&f);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    const uint64_t captures[] = {0, 0, 1, 1}, replays[] = {0, 0, 1, 2};
    for (int i = 0; i < 4; i++) {
        T_OK(t, st_run_sum(&f, 4, false));
        T_EQ(t, st_info(&f).captures, captures[i]);
        T_EQ(t, st_info(&f).replays, replays[i]);
    }
}

static void the_oldest_goes(rondo_test *t) {
    session_fixture f;
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    options.specialisations_max = 2;
    st_open(t, &f, "cpu", &options);
    st_sum(&f);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    /* 1 and 2 are kept; 1 is used again, so 3 takes the place of 2. */
    const int64_t sizes[] = {1, 2, 1, 3, 1, 2, 3};
    const uint64_t compiles[] = {1, 2, 2, 3, 3, 4, 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        T_OK(t, st_run_sum(&f, sizes[i], false));
        T_EQ(t, st_info(&f).compiles, compiles[i]);
        T_TRUE(t, st_info(&f).specialisations <= 2);
    }
}

static void wrong_runs_are_refused(rondo_test *t) {
    session_fixture f;
    float x[4] = {0}, y[1] = {0}, z[4];
    int64_t four = 4, one = 1, three = 3;
    st_open(t, &f, "cpu", NULL);
    st_sum(&f);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    rondo_tensor_view in[2] = {st_view(x, RONDO_DTYPE_F32, 1, &four), st_view(y, RONDO_DTYPE_F32, 1, &one)},
                      out[2] = {{0}};
    T_FAILS(t, rondo_session_run(f.session, 7, in, 1, out, 2), INVALID_ARGUMENT, "2 inputs and 2 outputs, not 1 and 2");
    in[0].dtype = RONDO_DTYPE_F64;
    T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 2), INVALID_ARGUMENT, "input 'x' is float32, not float64");
    in[0] = st_view(x, RONDO_DTYPE_F32, 0, NULL);
    T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 2), INVALID_ARGUMENT, "input 'x' has rank 1, not 0");
    in[0] = st_view(NULL, RONDO_DTYPE_F32, 1, &four);
    T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 2), INVALID_ARGUMENT, "input 'x'");
    in[0] = st_view(x, RONDO_DTYPE_F32, 1, &four);
    in[1] = st_view(x, RONDO_DTYPE_F32, 1, &three);
    T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 2), INVALID_ARGUMENT, NULL); /* 4 and 3 do not broadcast */
    in[1] = st_view(y, RONDO_DTYPE_F32, 1, &one);
    out[0] = st_view(z, RONDO_DTYPE_F32, 1, &three);
    T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 2), INVALID_ARGUMENT, "output 'z'");
    T_OK(t, st_run_sum(&f, 4, true));
    T_FAILS(t, rondo_session_run(f.session, 7, NULL, 2, out, 2), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_session_add_graph(f.session, 9, NULL), INVALID_ARGUMENT, NULL);
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    rondo_session *other = NULL;
    options.flags = 1u << 20;
    T_FAILS(t, rondo_session_create(f.device, &options, &other), INVALID_ARGUMENT, "unknown flags");
    options.struct_size = 0;
    T_FAILS(t, rondo_session_create(f.device, &options, &other), INVALID_ARGUMENT, "struct_size");
}

/* Strided inputs are gathered. */
static void strides(rondo_test *t) {
    session_fixture f;
    float x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y[1] = {10};
    int64_t four = 4, one = 1, backwards = -2, wide = 5;
    st_open(t, &f, "cpu", NULL);
    st_sum(&f);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    rondo_tensor_view in[2] = {st_view(x, RONDO_DTYPE_F32, 1, &four), st_view(y, RONDO_DTYPE_F32, 1, &one)},
                      out[2] = {{0}};
    in[0].strides = &backwards;
    in[0].byte_offset = 7 * sizeof(float);
    in[1].strides = &wide;
    T_OK(t, rondo_session_run(f.session, 7, in, 2, out, 2));
    for (int i = 0; i < 4; i++) T_TRUE(t, ((float *)out[0].data)[i] == (float)(7 - 2 * i) + 20);
}

/* y = x reshaped by n: the value of n is a guard. */
static void values_choose_the_specialisation(rondo_test *t) {
    session_fixture f = {.t = t};
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t six = 6, two = 2, shape[2] = {2, 3};
    T_DEFER(t, st_close, &f);
    for (int d = 0; d < 2; d++) {
        st_again(t, &f, st_devices[d], NULL);
        rondo_ir_value v, n;
        T_OK(t, rondo_ir_graph_add_input(f.graph, "x", RONDO_DTYPE_F32, 1, &six, NULL, &v));
        T_OK(t, rondo_ir_graph_add_input(f.graph, "n", RONDO_DTYPE_I64, 1, &two, NULL, &n));
        rondo_ir_value y = st_node(&f, "Reshape", (rondo_ir_value[]){st_node(&f, "Neg", &v, 1), n}, 2);
        T_OK(t, rondo_ir_graph_add_output(f.graph, y, "y"));
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        rondo_tensor_view in[2] = {st_view(x, RONDO_DTYPE_F32, 1, &six), st_view(shape, RONDO_DTYPE_I64, 1, &two)};
        const int64_t cases[][3] = {{2, 3, 1}, {3, 2, 2}, {2, 3, 2}, {6, 1, 3}, {3, 2, 3}};
        for (size_t i = 0; i < 5; i++) {
            rondo_tensor_view out[1] = {{0}};
            shape[0] = cases[i][0];
            shape[1] = cases[i][1];
            T_OK(t, rondo_session_run(f.session, 7, in, 2, out, 1));
            T_EQ(t, out[0].shape[0], cases[i][0]);
            T_EQ(t, out[0].shape[1], cases[i][1]);
            T_TRUE(t, ((float *)out[0].data)[5] == -6);
            T_EQ(t, (int64_t)st_info(&f).compiles, cases[i][2]);
        }
        shape[0] = 4;
        rondo_tensor_view out[1] = {{0}};
        T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 1), INVALID_ARGUMENT, NULL);
        shape[0] = 6;
        shape[1] = 1;
        T_OK(t, rondo_session_run(f.session, 7, in, 2, out, 1));
        st_close(&f);
    }
}

/* A kernel that fails on the data of one run leaves the session as it was. */
static void a_failed_run_leaves_it_usable(rondo_test *t) {
    session_fixture f = {.t = t};
    float x[3] = {1, 2, 3};
    int64_t three = 3, index = 2;
    T_DEFER(t, st_close, &f);
    for (int d = 0; d < 2; d++) {
        st_again(t, &f, st_devices[d], NULL);
        rondo_ir_value v, i;
        T_OK(t, rondo_ir_graph_add_input(f.graph, "x", RONDO_DTYPE_F32, 1, &three, NULL, &v));
        T_OK(t, rondo_ir_graph_add_input(f.graph, "i", RONDO_DTYPE_I64, 0, NULL, NULL, &i));
        T_OK(t, rondo_ir_graph_add_output(f.graph, st_node(&f, "Gather", (rondo_ir_value[]){v, i}, 2), "y"));
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        rondo_tensor_view in[2] = {st_view(x, RONDO_DTYPE_F32, 1, &three), st_view(&index, RONDO_DTYPE_I64, 0, NULL)};
        for (int round = 0; round < 3; round++) {
            rondo_tensor_view out[1] = {{0}};
            index = 2;
            T_OK(t, rondo_session_run(f.session, 7, in, 2, out, 1));
            T_TRUE(t, *(float *)out[0].data == 3);
            index = 3;
            T_FAILS(t, rondo_session_run(f.session, 7, in, 2, out, 1), KERNEL_FAILED, "Gather");
        }
        T_EQ(t, st_info(&f).runs, 3);
        T_EQ(t, st_info(&f).compiles, 1);
        st_close(&f);
    }
}

/* The public compiler: names of catalogues are looked up. */
static void compile_by_name(rondo_test *t) {
    session_fixture f;
    rondo_plan *plan = NULL;
    rondo_ir_graph *compiled = NULL;
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    st_open(t, &f, "cpu", NULL);
    st_sum(&f);
    rondo_dim_binding dims[2] = {{"x", NULL, 4, 0, 0}, {NULL, "m", 4, 0, 0}};
    options.dims = dims;
    options.dim_count = 2;
    T_OK(t, rondo_compile(f.instance, f.graph, &options, NULL, NULL));
    T_OK(t, rondo_compile(f.instance, f.graph, &options, &compiled, NULL));
    rondo_ir_graph_release(compiled);
    options.catalogues = " ref , cpu";
    T_OK(t, rondo_compile(f.instance, f.graph, &options, NULL, &plan));
    T_STR(t, plan->steps[0].catalogue, "ref");
    rondo_plan_release(plan);
    options.catalogues = "nowhere";
    T_FAILS(t, rondo_compile(f.instance, f.graph, &options, NULL, &plan), NOT_FOUND, "nowhere");
    options.catalogues = ",";
    T_FAILS(t, rondo_compile(f.instance, f.graph, &options, NULL, &plan), INVALID_ARGUMENT, "no kernel catalogue");
    T_FAILS(t, rondo_compile(f.instance, NULL, &options, NULL, &plan), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T(sums), T(a_number_has_one_graph), T(recorded_after_some_runs), T(the_oldest_goes),
                T(wrong_runs_are_refused), T(strides), T(values_choose_the_specialisation),
                T(a_failed_run_leaves_it_usable), T(compile_by_name))
