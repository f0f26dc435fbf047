/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs on a stream with device tensors: nothing is copied, runs are recorded by captures, somebody is told behind them. */
#include "session/session_testing.h"

#include "device/device.h"

static const char *const sr_devices[] = {"cpu", "sim"};

static uint64_t sr_copies(sum_fixture *f) {
    uint64_t copies = 0;
    T_OK(f->t, rondo_device_counter(f->device, "copies", &copies));
    return copies;
}

static void on_the_callers_memory(rondo_test *t) {
    sum_fixture f = {.t = t};
    T_DEFER(t, sum_close, &f);
    for (int d = 0; d < 2; d++) {
        sum_open(t, &f, sr_devices[d], NULL);
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        T_OK(t, sum_run_on_stream(&f, 7, 5)); /* loads weights */
        T_OK(t, rondo_stream_synchronize(f.stream));
        for (int i = 0; i < 3; i++) {
            sum_fill(&f, 5, (float)i);
            uint64_t copies = sr_copies(&f);
            T_OK(t, sum_run_on_stream(&f, 7, 5));
            T_EQ(t, sr_copies(&f), copies);
            sum_check(&f, 5, (float)i);
        }
        rondo_session_info info = RONDO_SESSION_INFO_INIT;
        T_OK(t, rondo_session_get_info(f.session, 7, &info));
        T_EQ(t, info.runs, 4);
        T_EQ(t, info.compiles, 1);
        T_EQ(t, info.captures, 0);
        T_EQ(t, info.copy_ns, 0);
        T_OK(t, sum_run(&f, 7, 5, 3)); /* the same specialisation, on host tensors */
        T_OK(t, rondo_session_get_info(f.session, 7, &info));
        T_EQ(t, info.compiles, 1);
        sum_close(&f);
    }
}

/* Nothing runs on the simulator before somebody waits, so all of these are in flight together, on more memory than there
 * are contexts; and then the graph goes. */
static void in_flight(rondo_test *t) {
    enum { RUNS = 7 };
    sum_fixture f = {.t = t};
    void *memory[RUNS] = {0};
    int64_t n = 4;
    T_DEFER(t, sum_close, &f);
    sum_open(t, &f, "sim", NULL);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    sum_fill(&f, n, 1);
    for (int i = 0; i < RUNS; i++) {
        T_OK(t, rondo_memory_allocate(f.device, SUM_MOST * sizeof(float), &memory[i]));
        sum_views v = sum_view(&f, &n);
        v.out[0].data = memory[i];
        T_OK(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, NULL));
    }
    T_OK(t, rondo_session_remove_graph(f.session, 7));
    for (int i = 0; i < RUNS; i++) {
        float z[4];
        T_OK(t, rondo_stream_copy(f.stream, z, memory[i], sizeof z, RONDO_COPY_DEVICE_TO_HOST));
        T_OK(t, rondo_stream_synchronize(f.stream));
        for (int k = 0; k < 4; k++) T_NEAR(t, z[k], 1 + 21 * (float)k, 0);
    }
}

static int32_t sr_count(void *user) {
    ++*(int *)user;
    return 0;
}

static void somebody_is_told(rondo_test *t) {
    sum_fixture f = {.t = t};
    int count = 0;
    int64_t n = 4;
    rondo_session_run_options options = RONDO_SESSION_RUN_OPTIONS_INIT;
    options.done = sr_count;
    options.done_user = &count;
    T_DEFER(t, sum_close, &f);
    for (int d = 0; d < 2; d++) {
        count = 0;
        sum_open(t, &f, sr_devices[d], NULL);
        sum_views v = sum_view(&f, &n);
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        sum_fill(&f, n, 2);
        for (int i = 1; i < 4; i++) {
            T_OK(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options));
            T_OK(t, rondo_stream_synchronize(f.stream));
            T_EQ(t, count, i);
        }
        T_OK(t, sum_begin(&f));
        T_OK(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options));
        T_OK(t, rondo_graph_capture_end(f.capture, f.stream));
        T_EQ(t, count, 3);
        for (int i = 4; i < 6; i++) {
            T_OK(t, rondo_graph_replay(f.capture, f.stream));
            T_OK(t, rondo_stream_synchronize(f.stream));
            T_EQ(t, count, i);
        }
        sum_close(&f);
    }
}

/* A capture refuses what would compile, records what ran before, and its graph outlives the session's. */
static void in_a_capture(rondo_test *t) {
    sum_fixture f = {.t = t};
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    options.specialisations_max = 1;
    T_DEFER(t, sum_close, &f);
    for (int d = 0; d < 2; d++) {
        sum_open(t, &f, sr_devices[d], &options);
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        T_OK(t, sum_begin(&f));
        T_FAILS(t, sum_run_on_stream(&f, 7, 4), INVALID_STATE, "run it once before the capture");
        T_FAILS(t, rondo_graph_capture_end(f.capture, f.stream), CAPTURE_INVALIDATED, "graph 7 has not run yet");
        T_OK(t, sum_run_on_stream(&f, 7, 4));
        T_OK(t, rondo_stream_synchronize(f.stream));
        T_OK(t, sum_begin(&f));
        T_OK(t, sum_run_on_stream(&f, 7, 4));
        T_OK(t, rondo_graph_capture_end(f.capture, f.stream));
        for (int i = 0; i < 4; i++) {
            if (i == 1) T_OK(t, sum_run(&f, 7, 9, 3)); /* its specialisation gives way to another */
            if (i == 2) T_OK(t, rondo_session_remove_graph(f.session, 7));
            sum_fill(&f, 4, (float)(i * 5));
            T_OK(t, rondo_graph_replay(f.capture, f.stream));
            sum_check(&f, 4, (float)(i * 5));
        }
        sum_close(&f);
    }
}

static void wrong_runs_are_refused(rondo_test *t) {
    sum_fixture f = {.t = t}, other = {.t = t};
    int64_t n = 4, two = 2;
    rondo_session_run_options options = RONDO_SESSION_RUN_OPTIONS_INIT;
    T_DEFER(t, sum_close, &f);
    T_DEFER(t, sum_close, &other);
    sum_open(t, &f, "sim", NULL);
    sum_open(t, &other, "cpu", NULL);
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
#define REFUSED(code, part) \
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options), code, part)
    sum_views good = sum_view(&f, &n), v = good;
    v.in[0].device_type = 1;
    REFUSED(INVALID_ARGUMENT, "input 'x' is on device 1:0");
    v = good;
    v.in[1].strides = &two;
    REFUSED(UNSUPPORTED, "input 'y' has strides");
    v = good;
    v.out[0].data = NULL;
    REFUSED(INVALID_ARGUMENT, "output 'z' has no memory");
    v = good;
    v.in[0].data = NULL;
    REFUSED(INVALID_ARGUMENT, "input 'x' has no memory");
    v = good;
    v.out[0].shape = &two;
    REFUSED(INVALID_ARGUMENT, "output 'z'");
    v = good;
    v.out[0].data = f.x;
    REFUSED(INVALID_ARGUMENT, "output 'z' at 0x");
    v = good;
    options.value_count = 1;
    REFUSED(INVALID_ARGUMENT, "values is null");
    float four[4] = {0};
    rondo_tensor_view value = {.data = four, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &n};
    options.values = &(const rondo_value_binding){"w", &value};
    REFUSED(INVALID_ARGUMENT, "no input 'w'");
    options.values = &(const rondo_value_binding){"x", &value};
    value.shape = &two;
    REFUSED(INVALID_ARGUMENT, "the value of input 'x'");
    options.value_count = 0;
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, other.stream, v.in, 2, v.out, 1, NULL), INVALID_ARGUMENT,
            "the stream of 'cpu:0'");
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 1, v.out, 1, NULL), INVALID_ARGUMENT,
            "2 inputs and 1 outputs");
    T_FAILS(t, rondo_session_run_on_stream(f.session, 8, f.stream, v.in, 2, v.out, 1, NULL), NOT_FOUND, "graph 8");
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, NULL, v.in, 2, v.out, 1, NULL), INVALID_ARGUMENT, NULL);
    sum_fill(&f, 4, 6);
    T_OK(t, sum_run_on_stream(&f, 7, 4));
    sum_check(&f, 4, 6);
#undef REFUSED
}

/* y = x reshaped by n, whose value is stated. */
static void values_are_stated(rondo_test *t) {
    sum_fixture f = {.t = t};
    const int64_t six = 6, two = 2, by[2] = {2, 3}, other[2] = {3, 2};
    rondo_ir_value x, n, negated, y;
    T_DEFER(t, sum_close, &f);
    sum_open(t, &f, "sim", NULL);
    rondo_ir_graph_release(f.graph);
    f.graph = NULL;
    T_OK(t, rondo_ir_graph_create(f.instance, "shaped", &f.graph));
    T_OK(t, rondo_ir_graph_add_input(f.graph, "x", RONDO_DTYPE_F32, 1, &six, NULL, &x));
    T_OK(t, rondo_ir_graph_add_input(f.graph, "n", RONDO_DTYPE_I64, 1, &two, NULL, &n));
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Neg", NULL, &x, 1, NULL, 0, &negated, 1));
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Reshape", NULL, (rondo_ir_value[]){negated, n}, 2, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_output(f.graph, y, "y"));
    T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
    sum_fill(&f, 6, 1);
    sum_views v = sum_view(&f, &six);
    v.in[1].dtype = RONDO_DTYPE_I64;
    v.in[1].shape = &two;
    v.out[0].rank = 2;
    v.out[0].shape = by;
    rondo_tensor_view value = {.data = (void *)(uintptr_t)by, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_I64};
    rondo_session_run_options options = RONDO_SESSION_RUN_OPTIONS_INIT;
    value.shape = &two;
    options.value_count = 1;
    options.values = &(const rondo_value_binding){"n", &value};
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, NULL), INVALID_ARGUMENT,
            "rondo_session_run_options.values");
    T_OK(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options));
    float z[6];
    T_OK(t, rondo_stream_copy(f.stream, z, f.z, sizeof z, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(t, rondo_stream_synchronize(f.stream));
    for (int i = 0; i < 6; i++) T_NEAR(t, z[i], -1 - (float)i, 0);
    value.data = (void *)(uintptr_t)other;
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options), INVALID_ARGUMENT,
            "output 'y'");
    v.out[0].shape = other;
    T_OK(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, &options));
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    T_OK(t, rondo_session_get_info(f.session, 7, &info));
    T_EQ(t, info.compiles, 2);
    T_FAILS(t, rondo_session_run_on_stream(f.session, 7, f.stream, v.in, 2, v.out, 1, NULL), INVALID_ARGUMENT, NULL);
}

RONDO_TEST_MAIN(T(on_the_callers_memory), T(in_flight), T(somebody_is_told), T(in_a_capture), T(wrong_runs_are_refused),
                T(values_are_stated))
