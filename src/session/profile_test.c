/* SPDX-License-Identifier: Apache-2.0
 *
 * Profiles: the parts add up to the calls, nodes are all there and counted, forms are well formed and say the same, and what
 * is said of capturing follows from the numbers. Times are only compared with other times that were taken around them. */
#include <cjson/cJSON.h>
#include <pthread.h>

#include "session/profile.h"
#include "session/session_testing.h"

typedef struct profile_fixture {
    sum_fixture s;
    rondo_profile *profile;
    cJSON *json;
    char text[1u << 16];
    size_t used;
} profile_fixture;

static void pt_close(profile_fixture *f) {
    cJSON_Delete(f->json);
    f->json = NULL;
    rondo_profile_release(f->profile);
    f->profile = NULL;
    sum_close(&f->s);
}

static void pt_open(rondo_test *t, profile_fixture *f, const char *device, const rondo_profile_options *options) {
    memset(f, 0, sizeof *f);
    T_DEFER(t, pt_close, f);
    sum_open(t, &f->s, device, NULL);
    T_OK(t, rondo_profile_create(f->s.instance, options, &f->profile));
    T_OK(t, rondo_session_add_graph(f->s.session, 1, f->s.graph));
    T_OK(t, rondo_session_set_profile(f->s.session, f->profile));
}

static rondo_profile_info pt_info(profile_fixture *f) {
    rondo_profile_info info = RONDO_PROFILE_INFO_INIT;
    T_OK(f->s.t, rondo_profile_get_info(f->profile, &info));
    return info;
}

static rondo_profile_row pt_row(profile_fixture *f, uint32_t index) {
    rondo_profile_row row = RONDO_PROFILE_ROW_INIT;
    T_OK(f->s.t, rondo_profile_get_row(f->profile, index, &row));
    return row;
}

/* The row of a part, or of a node, with that name; calls 0 where there is none. */
static rondo_profile_row pt_find(profile_fixture *f, rondo_profile_part part, const char *name) {
    uint32_t rows = pt_info(f).rows;
    for (uint32_t i = 0; i < rows; i++) {
        rondo_profile_row row = pt_row(f, i);
        const char *is = part == RONDO_PROFILE_KERNEL ? row.operator_name : row.name;
        if (row.part == part && is && strcmp(is, name) == 0) return row;
    }
    return (rondo_profile_row){0};
}

static int32_t pt_collect(void *user, const char *data, size_t size) {
    profile_fixture *f = user;
    if (f->used + size >= sizeof f->text) return 1;
    memcpy(f->text + f->used, data, size);
    f->used += size;
    f->text[f->used] = 0;
    return 0;
}

static const char *pt_write(profile_fixture *f, rondo_profile_format format) {
    f->used = 0;
    T_OK(f->s.t, rondo_profile_write(f->profile, format, pt_collect, f));
    return f->text;
}

static const cJSON *pt_json(profile_fixture *f, rondo_profile_format format) {
    cJSON_Delete(f->json);
    f->json = cJSON_Parse(pt_write(f, format));
    T_TRUE(f->s.t, f->json != NULL);
    return f->json;
}

static double pt_number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : -1;
}

/* Sums, worked out here from rows, against the totals: the parts of a session's calls are their time to the nanosecond, and
 * each part is its rows. `outside`: of no call. */
static void pt_check_sums(profile_fixture *f, uint64_t outside) {
    rondo_test *t = f->s.t;
    rondo_profile_info info = pt_info(f);
    uint64_t parts[RONDO_PROFILE_PARTS] = {0}, kernels = 0, launches = 0, sum = 0;
    for (uint32_t i = 0; i < info.rows; i++) {
        rondo_profile_row row = pt_row(f, i);
        launches += row.launch_ns;
        if (row.operator_name) kernels += row.kernel_ns;
        else parts[row.part] += row.total_ns;
        T_TRUE(t, row.min_ns <= row.max_ns && row.max_ns <= row.total_ns);
        T_TRUE(t, row.min_ns * row.calls <= row.total_ns && row.total_ns <= row.max_ns * row.calls);
        if (row.operator_name) T_EQ(t, row.total_ns, row.kernel_ns + row.launch_ns);
    }
    for (int p = 0; p < RONDO_PROFILE_PARTS; p++) {
        if (p != RONDO_PROFILE_KERNEL) T_EQ(t, info.ns[p], parts[p]);
        if (p != RONDO_PROFILE_CALL && p != RONDO_PROFILE_PASS) sum += info.ns[p];
    }
    T_EQ(t, info.device_ns, kernels);
    T_EQ(t, info.overlapped_ns, 0); /* both devices run kernels on the thread that launches or waits */
    T_TRUE(t, launches <= info.ns[RONDO_PROFILE_LAUNCH]);
    T_EQ(t, info.ns[RONDO_PROFILE_KERNEL] + info.overlapped_ns, info.device_ns);
    T_EQ(t, info.parts_ns, sum);
    T_TRUE(t, info.ns[RONDO_PROFILE_CALL] > 0);
    T_EQ(t, sum, info.ns[RONDO_PROFILE_CALL] + outside);
    T_TRUE(t, info.ns[RONDO_PROFILE_PASS] <= info.ns[RONDO_PROFILE_COMPILE]);
}

static void session_runs(rondo_test *t, const char *device) {
    profile_fixture f;
    pt_open(t, &f, device, NULL);
    uint64_t begin = rondo_profile_now();
    for (int i = 0; i < 5; i++) T_OK(t, sum_run(&f.s, 1, 8, (float)i));
    uint64_t end = rondo_profile_now();
    rondo_profile_info info = pt_info(&f);
    T_EQ(t, info.runs, 5);
    T_EQ(t, info.replays, 0);
    T_TRUE(t, info.ns[RONDO_PROFILE_CALL] <= end - begin);
    pt_check_sums(&f, 0);
    rondo_profile_row mul = pt_find(&f, RONDO_PROFILE_KERNEL, "Mul"), add = pt_find(&f, RONDO_PROFILE_KERNEL, "Add");
    T_EQ(t, mul.calls + add.calls, 10); /* two nodes, five runs each */
    T_STR(t, add.plan, "sum");
    T_STR(t, add.shapes, "float32[8], float32[8] -> float32[8]");
    T_TRUE(t, strncmp(add.kernel_set, "cpu", 3) == 0);
    T_TRUE(t, add.load_ns > 0 && add.kernel_ns > 0 && add.launch_ns > 0 && !add.kernel_is_waited);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_COPY_IN, "x").calls, 5);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_COPY_OUT, "z").calls, 5);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_COMPILE, "sum").calls, 1);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_CALL, "run").calls, 5);
    T_TRUE(t, pt_find(&f, RONDO_PROFILE_PASS, "emit").calls == 1);
    /* Other sizes are another plan, with rows of its own; what failed adds no run. */
    T_OK(t, sum_run(&f.s, 1, 3, 0));
    T_STR(t, pt_row(&f, pt_info(&f).rows - 1).name, pt_row(&f, pt_info(&f).rows - 1).name);
    T_FAILS(t, sum_run(&f.s, 2, 3, 0), NOT_FOUND, "no graph 2");
    T_EQ(t, pt_info(&f).runs, 6);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_CALL, "run").calls, 7);
    pt_check_sums(&f, 0);
    /* Nobody watches any more. */
    T_OK(t, rondo_session_set_profile(f.s.session, NULL));
    T_OK(t, sum_run(&f.s, 1, 8, 9));
    T_EQ(t, pt_info(&f).runs, 6);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_CALL, "run").calls, 7);
}
static void test_session_runs_cpu(rondo_test *t) { session_runs(t, "cpu"); }
static void test_session_runs_sim(rondo_test *t) { session_runs(t, "sim"); }

/* As they are: the first run captures, each replays; nodes have no times. */
static void test_as_is(rondo_test *t) {
    rondo_profile_options options = RONDO_PROFILE_OPTIONS_INIT;
    profile_fixture f;
    options.as_is = 1;
    pt_open(t, &f, "sim", &options);
    for (int i = 0; i < 3; i++) T_OK(t, sum_run(&f.s, 1, 8, (float)i));
    T_EQ(t, pt_info(&f).runs, 0);
    T_EQ(t, pt_info(&f).replays, 3);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_KERNEL, "Add").calls, 0);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_CAPTURE, "sum").calls, 1);
    pt_check_sums(&f, 0);
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    T_OK(t, rondo_session_get_info(f.s.session, 1, &info));
    T_EQ(t, info.replays, 3);
    T_TRUE(t, info.run_ns >= pt_info(&f).ns[RONDO_PROFILE_REPLAY]);
}

/* On a stream it is waited for; what a capture records is not watched. */
static void on_stream(rondo_test *t, const char *device) {
    profile_fixture f;
    pt_open(t, &f, device, NULL);
    sum_fill(&f.s, 4, 1);
    T_OK(t, sum_run_on_stream(&f.s, 1, 4));
    bool done = false;
    T_OK(t, rondo_stream_query(f.s.stream, &done));
    T_TRUE(t, done);
    sum_check(&f.s, 4, 1);
    T_EQ(t, pt_info(&f).runs, 1);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_CALL, "run on stream").calls, 1);
    pt_check_sums(&f, 0);
    T_OK(t, sum_begin(&f.s));
    T_OK(t, sum_run_on_stream(&f.s, 1, 4));
    T_OK(t, rondo_graph_capture_end(f.s.capture, f.s.stream));
    T_EQ(t, pt_info(&f).runs, 1);
    T_OK(t, rondo_profile_replay(f.profile, f.s.capture, f.s.stream, NULL));
    sum_check(&f.s, 4, 1);
    T_EQ(t, pt_info(&f).replays, 1);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_REPLAY, "graph").calls, 1);
}
static void test_on_stream_cpu(rondo_test *t) { on_stream(t, "cpu"); }
static void test_on_stream_sim(rondo_test *t) { on_stream(t, "sim"); }

/* Chrome's trace events: complete ones with a place in time, nested where they share a lane; one a node and run. */
static void trace(rondo_test *t, const char *device) {
    profile_fixture f;
    const cJSON *event, *other;
    int kernels = 0, calls = 0;
    pt_open(t, &f, device, NULL);
    for (int i = 0; i < 3; i++) T_OK(t, sum_run(&f.s, 1, 8, (float)i));
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(pt_json(&f, RONDO_PROFILE_TRACE), "traceEvents");
    T_TRUE(t, cJSON_IsArray(events));
    cJSON_ArrayForEach(event, events) {
        const char *ph = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "ph"));
        const char *cat = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "cat"));
        T_TRUE(t, ph && cJSON_IsString(cJSON_GetObjectItemCaseSensitive(event, "name")));
        if (strcmp(ph, "M") == 0) continue;
        T_STR(t, ph, "X");
        double begin = pt_number(event, "ts"), end = begin + pt_number(event, "dur");
        T_TRUE(t, begin >= 0 && end >= begin && pt_number(event, "tid") >= 1);
        kernels += strcmp(cat, "kernel") == 0;
        calls += strcmp(cat, "call") == 0;
        if (strcmp(cat, "kernel") == 0) T_NEAR(t, pt_number(event, "pid"), 2, 0);
        cJSON_ArrayForEach(other, events) {
            double from = pt_number(other, "ts"), to = from + pt_number(other, "dur");
            if (from < 0 || pt_number(other, "tid") != pt_number(event, "tid")) continue;
            bool apart = to <= begin + 0.002 || end <= from + 0.002,
                 inside = from >= begin - 0.002 && to <= end + 0.002;
            bool around = from <= begin + 0.002 && to >= end - 0.002;
            T_TRUE(t, apart || inside || around);
        }
    }
    T_EQ(t, kernels, 6);
    T_EQ(t, calls, 3);
}
static void test_trace_cpu(rondo_test *t) { trace(t, "cpu"); }
static void test_trace_sim(rondo_test *t) { trace(t, "sim"); }

/* Rows in JSON are the rows of the calls, to the digit. */
static void test_json_and_text(rondo_test *t) {
    profile_fixture f;
    char verdict[256];
    pt_open(t, &f, "cpu", NULL);
    T_OK(t, sum_run(&f.s, 1, 8, 0));
    T_OK(t, rondo_profile_add(f.profile, RONDO_PROFILE_OTHER, "a \"name\"\n", 10, 30));
    const cJSON *json = pt_json(&f, RONDO_PROFILE_JSON);
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(json, "rows");
    rondo_profile_info info = pt_info(&f);
    T_EQ(t, cJSON_GetArraySize(rows), (int)info.rows);
    T_NEAR(t, pt_number(json, "wall_us"), (double)info.ns[RONDO_PROFILE_CALL] / 1e3, 1e-3);
    T_NEAR(t, pt_number(cJSON_GetObjectItemCaseSensitive(json, "parts"), "kernel"),
           (double)info.ns[RONDO_PROFILE_KERNEL] / 1e3, 1e-3);
    for (uint32_t i = 0; i < info.rows; i++) {
        rondo_profile_row row = pt_row(&f, i);
        const cJSON *object = cJSON_GetArrayItem(rows, (int)i);
        T_STR(t, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "name")), row.name);
        T_STR(t, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "part")),
              rondo_profile_part_name(row.part));
        T_NEAR(t, pt_number(object, "us"), (double)row.total_ns / 1e3, 1e-3);
        T_NEAR(t, pt_number(object, "calls"), (double)row.calls, 0);
        if (row.operator_name) T_NEAR(t, pt_number(object, "kernel_us"), (double)row.kernel_ns / 1e3, 1e-3);
    }
    size_t length = rondo_profile_verdict(f.profile, verdict, sizeof verdict);
    T_EQ(t, length, strlen(verdict));
    T_STR(t, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "verdict")), verdict);
    T_TRUE(t, strstr(pt_write(&f, RONDO_PROFILE_TEXT), verdict) != NULL);
    T_TRUE(t, strstr(f.text, "Add '") && strstr(f.text, "copy in 'x'") && strstr(f.text, "float32[8] -> float32[8]"));
    T_EQ(t, rondo_profile_verdict(f.profile, verdict, 8), length);
    T_EQ(t, strlen(verdict), 7);
}

/* What is said of capturing, from numbers that are known: 10 runs of 3 steps, 20 ns a reading. */
static void test_verdict(rondo_test *t) {
    rondo_profile_info info = RONDO_PROFILE_INFO_INIT;
    char text[512];
    (void)rondo__profile_judge(&info, text, sizeof text);
    T_STR(t, text, "no run was watched step by step, so nothing is known of its kernels");
    info.runs = 10;
    info.clock_ns = 20;
    info.clock_readings = 90;
    info.ns[RONDO_PROFILE_LAUNCH] = 11200; /* 1.0 us a run, and 0.12 us for the clock */
    info.ns[RONDO_PROFILE_KERNEL] = 30600; /* 3.0 us a run, and 0.06 us for the clock */
    (void)rondo__profile_judge(&info, text, sizeof text);
    T_STR(t, text, "capture would save at most what launching takes: 1.00 us of 4.00 us a run (25 %)");
    info.ns[RONDO_PROFILE_KERNEL] = 990600; /* 99 us */
    (void)rondo__profile_judge(&info, text, sizeof text);
    T_STR(t, text, "capture will not help: kernels take 99 % of a run, launching them 1.0 %");
    info.replays = info.eager_runs = 5;
    info.ns[RONDO_PROFILE_EAGER] = 500000;
    info.ns[RONDO_PROFILE_REPLAY] = 480000;
    (void)rondo__profile_judge(&info, text, sizeof text);
    T_STR(t, text,
          "capture will not help: kernels take 99 % of a run; a captured replay takes 96.00 us, the same calls one by "
          "one 100.00 us");
    info.ns[RONDO_PROFILE_REPLAY] = 400000;
    info.ns[RONDO_PROFILE_COPY_IN] = 900000;
    info.ns[RONDO_PROFILE_COPY_OUT] = 200000;
    (void)rondo__profile_judge(&info, text, sizeof text);
    T_STR(
        t, text,
        "capture helps: a captured replay takes 80.00 us, the same calls one by one 100.00 us, so it saves 20.00 us a "
        "run (20 %); copies take more than the run: 110.00 us. Keep tensors on the device");
}

static void test_refusals(rondo_test *t) {
    profile_fixture f;
    rondo_profile_options options = RONDO_PROFILE_OPTIONS_INIT;
    rondo_profile *none = NULL;
    rondo_profile_row row = RONDO_PROFILE_ROW_INIT;
    options.events_max = 2;
    pt_open(t, &f, "cpu", &options);
    T_FAILS(t, rondo_profile_create(NULL, NULL, &none), INVALID_ARGUMENT, "instance");
    T_FAILS(t, rondo_profile_add(f.profile, RONDO_PROFILE_KERNEL, "k", 0, 1), INVALID_ARGUMENT, "part 8");
    T_FAILS(t, rondo_profile_add(f.profile, RONDO_PROFILE_PARTS, "k", 0, 1), INVALID_ARGUMENT, "part 14");
    T_FAILS(t, rondo_profile_add(f.profile, RONDO_PROFILE_OTHER, "k", 2, 1), INVALID_ARGUMENT, "before it begins");
    T_FAILS(t, rondo_profile_add(f.profile, RONDO_PROFILE_OTHER, NULL, 0, 1), INVALID_ARGUMENT, "null");
    T_FAILS(t, rondo_profile_get_row(f.profile, 0, &row), OUT_OF_RANGE, "0 rows");
    T_FAILS(t, rondo_profile_run(f.profile, NULL, f.s.stream, NULL), INVALID_ARGUMENT, "null");
    T_FAILS(t, rondo_profile_write(f.profile, 3, pt_collect, &f), INVALID_ARGUMENT, "format 3");
    T_FAILS(t, rondo_session_set_profile(NULL, f.profile), INVALID_ARGUMENT, "session is null");
    T_OK(t, rondo_graph_create(f.s.device, NULL, &f.s.capture));
    T_FAILS(t, rondo_profile_replay(f.profile, f.s.capture, f.s.stream, NULL), INVALID_STATE, "empty");
    T_OK(t, sum_begin(&f.s));
    T_FAILS(t, rondo_profile_replay(f.profile, f.s.capture, f.s.stream, NULL), INVALID_STATE, "captures");
    T_OK(t, rondo_graph_abort(f.s.capture));
    /* The trace has a limit; the sums have none. */
    for (int i = 0; i < 3; i++) T_OK(t, sum_run(&f.s, 1, 8, 0));
    rondo_profile_info info = pt_info(&f);
    T_EQ(t, info.events, 2);
    T_TRUE(t, info.events_lost > 6);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_KERNEL, "Add").calls, 3);
}

typedef struct pt_worker {
    profile_fixture *f;
    rondo_code code;
} pt_worker;

static void *pt_work(void *argument) {
    pt_worker *work = argument;
    sum_fixture own = work->f->s;
    work->code = RONDO_CODE_OK;
    for (int i = 0; i < 20 && !work->code; i++) {
        int64_t n = 4;
        float x[4] = {1, 2, 3, 4}, z[4];
        rondo_tensor_view in[2] = {{.data = x, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &n}};
        in[1] = in[0];
        rondo_tensor_view out = in[0];
        out.data = z;
        rondo_status status = rondo_session_run(own.session, 1, in, 2, &out, 1);
        if (!status) status = rondo_profile_add(work->f->profile, RONDO_PROFILE_OTHER, "mine", 1, 2);
        work->code = rondo_status_code(status);
        rondo_status_release(status);
        if (!work->code && z[3] != 12) work->code = RONDO_CODE_INTERNAL;
    }
    return NULL;
}

/* One profile, two threads in a session while the third asks. */
static void test_threads(rondo_test *t) {
    profile_fixture f;
    pthread_t threads[2];
    pt_worker workers[2];
    pt_open(t, &f, "cpu", NULL);
    for (int i = 0; i < 2; i++) {
        workers[i].f = &f;
        T_EQ(t, pthread_create(&threads[i], NULL, pt_work, &workers[i]), 0);
    }
    uint64_t before = 0;
    for (int i = 0; i < 50; i++) {
        rondo_profile_info info = RONDO_PROFILE_INFO_INIT;
        rondo_status status = rondo_profile_get_info(f.profile, &info);
        if (info.runs < before || status) before = UINT64_MAX;
        rondo_status_release(status);
        if (before != UINT64_MAX) before = info.runs;
    }
    for (int i = 0; i < 2; i++) (void)pthread_join(threads[i], NULL);
    T_TRUE(t, before <= 40);
    for (int i = 0; i < 2; i++) T_EQ(t, workers[i].code, RONDO_CODE_OK);
    T_EQ(t, pt_info(&f).runs, 40);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_OTHER, "mine").calls, 40);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_OTHER, "mine").total_ns, 40);
    T_EQ(t, pt_find(&f, RONDO_PROFILE_KERNEL, "Add").calls, 40);
    pt_check_sums(&f, 40); /* what was added lies in no call */
}

RONDO_TEST_MAIN(T(test_session_runs_cpu), T(test_session_runs_sim), T(test_as_is), T(test_on_stream_cpu),
                T(test_on_stream_sim), T(test_trace_cpu), T(test_trace_sim), T(test_json_and_text), T(test_verdict),
                T(test_refusals), T_PLAIN(test_threads))
