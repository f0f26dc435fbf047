/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's life: the table of compiler.h cell by cell, several threads, memory of the program's own, copies. */
#include <pthread.h>
#include <stdlib.h>

#include <rondo/profile.h>

#include "session/session_testing.h"

enum { NEVER_ADDED, ADDED, RAN, FAILED, FLYING, REMOVED, STATES };
enum { ADD, RUN, RUN_ON_STREAM, RECORD, INFO, PROFILE, BUCKETS, REMOVE, RELEASE, CALLS };

/* The table, in the words of the header; OK also where it says what is done. */
static const rondo_code life_table[CALLS][STATES] = {
    [ADD] = {RONDO_CODE_OK, RONDO_CODE_ALREADY_EXISTS, RONDO_CODE_ALREADY_EXISTS, RONDO_CODE_ALREADY_EXISTS,
             RONDO_CODE_ALREADY_EXISTS, RONDO_CODE_OK},
    [RUN] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_NOT_FOUND},
    [RUN_ON_STREAM] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK,
                       RONDO_CODE_NOT_FOUND},
    [RECORD] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_INVALID_STATE, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK,
                RONDO_CODE_NOT_FOUND},
    [INFO] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_NOT_FOUND},
    [PROFILE] = {0},
    [BUCKETS] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK,
                 RONDO_CODE_NOT_FOUND},
    [REMOVE] = {RONDO_CODE_NOT_FOUND, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_OK, RONDO_CODE_NOT_FOUND},
    [RELEASE] = {0},
};

/* z = x gathered by i: a run with an index that is out of range fails in its kernel. */
static void life_graph(sum_fixture *f) {
    rondo_ir_value x, i, z;
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){4}, NULL, &x));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "i", RONDO_DTYPE_I64, 1, (const int64_t[]){2}, NULL, &i));
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, "Gather", NULL, (rondo_ir_value[]){x, i}, 2, NULL, 0, &z, 1));
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, z, "z"));
}

static const int64_t life_four = 4, life_two = 2;
static float life_data[4] = {1, 2, 3, 4};

static rondo_status life_run(sum_fixture *f, int64_t index) {
    int64_t indices[2] = {index, 0};
    float z[2] = {0};
    rondo_tensor_view in[2] = {
        {.data = life_data, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &life_four},
        {.data = indices, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_I64, .shape = &life_two}};
    rondo_tensor_view out = {.data = z, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &life_two};
    rondo_status status = rondo_session_run(f->session, 7, in, 2, &out, 1);
    if (!status) T_TRUE(f->t, z[0] == life_data[index] && z[1] == 1);
    return status;
}

static rondo_status life_run_on_stream(sum_fixture *f) {
    sum_views v = sum_view(f, &life_four);
    v.in[1].dtype = RONDO_DTYPE_I64;
    v.in[1].shape = v.out[0].shape = &life_two;
    return rondo_session_run_on_stream(f->session, 7, f->stream, v.in, 2, v.out, 1, NULL);
}

/* Data on the device for runs there: z becomes 3, 1. */
static void life_fill(sum_fixture *f) {
    const int64_t indices[2] = {2, 0};
    T_OK(f->t, rondo_stream_copy(f->stream, f->x, life_data, sizeof life_data, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(f->t, rondo_stream_copy(f->stream, f->y, indices, sizeof indices, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(f->t, rondo_stream_synchronize(f->stream));
}

static void life_check(sum_fixture *f) {
    float z[2] = {0};
    T_OK(f->t, rondo_stream_copy(f->stream, z, f->z, sizeof z, RONDO_COPY_DEVICE_TO_HOST));
    T_OK(f->t, rondo_stream_synchronize(f->stream));
    T_TRUE(f->t, z[0] == 3 && z[1] == 1);
}

static void life_reach(sum_fixture *f, int state) {
    rondo_test *t = f->t;
    if (state != NEVER_ADDED) T_OK(t, rondo_session_add_graph(f->session, 7, f->graph));
    if (state == RAN || state == FAILED) T_OK(t, life_run(f, 1));
    if (state == FAILED) T_FAILS(t, life_run(f, 4), KERNEL_FAILED, "Gather");
    if (state == FLYING) T_OK(t, life_run_on_stream(f));
    if (state == REMOVED) T_OK(t, rondo_session_remove_graph(f->session, 7));
}

static rondo_status life_call(sum_fixture *f, int call) {
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    rondo_status status;
    switch (call) {
    case ADD: return rondo_session_add_graph(f->session, 7, f->graph);
    case RUN: return life_run(f, 2);
    case RUN_ON_STREAM: return life_run_on_stream(f);
    case RECORD:
        T_OK(f->t, sum_begin(f));
        status = life_run_on_stream(f);
        if (status) rondo_status_release(rondo_graph_abort(f->capture));
        else T_OK(f->t, rondo_graph_capture_end(f->capture, f->stream));
        return status;
    case PROFILE: {
        rondo_profile *profile = NULL;
        status = rondo_profile_create(f->instance, NULL, &profile);
        if (!status) status = rondo_session_set_profile(f->session, profile);
        rondo_profile_release(profile); /* the session holds it, and goes on being watched */
        return status;
    }
    case BUCKETS: return rondo_session_set_buckets(f->session, 7, NULL, NULL, 0); /* all sizes are fixed */
    case INFO: return rondo_session_get_info(f->session, 7, &info);
    case REMOVE: return rondo_session_remove_graph(f->session, 7);
    default:
        rondo_session_release(f->session);
        f->session = NULL;
        return RONDO_OK;
    }
}

static void life_cell(sum_fixture *f, int call, int state) {
    rondo_test *t = f->t;
    life_fill(f);
    life_reach(f, state);
    rondo_status status = life_call(f, call);
    rondo_code code = rondo_status_code(status);
    if (code == RONDO_CODE_OUT_OF_MEMORY) T_OK(t, status); /* ends a run in which memory was refused */
    rondo_status_release(status);
    if (code != life_table[call][state])
        rondo_test_fail(t, __FILE__, __LINE__, "call %d in state %d: %s, not %s", call, state, rondo_code_name(code),
                        rondo_code_name(life_table[call][state]));
    if (state == FLYING || (call == RUN_ON_STREAM && !code)) life_check(f); /* whatever was called, it ran */
    if (call == RECORD && !code) {
        T_OK(t, rondo_graph_replay(f->capture, f->stream));
        life_check(f);
    }
    if (!f->session) return;
    /* And the session goes on as ever. */
    rondo_status_release(rondo_session_remove_graph(f->session, 7));
    T_OK(t, rondo_session_add_graph(f->session, 7, f->graph));
    T_OK(t, life_run(f, 3));
}

static void the_table(rondo_test *t, const char *device) {
    sum_fixture f = {.t = t};
    T_DEFER(t, sum_close, &f);
    for (int call = 0; call < CALLS; call++) {
        for (int state = 0; state < STATES; state++) {
            sum_open(t, &f, device, NULL);
            rondo_ir_graph_release(f.graph);
            f.graph = NULL;
            T_OK(t, rondo_ir_graph_create(f.instance, "life", &f.graph));
            life_graph(&f);
            life_cell(&f, call, state);
            sum_close(&f);
        }
    }
}

static void the_table_on_cpu(rondo_test *t) { the_table(t, "cpu"); }
static void the_table_on_sim(rondo_test *t) { the_table(t, "sim"); }

/* ---------------------------------------------------------------------------------------------------- threads */

typedef struct life_thread {
    rondo_session *session;
    rondo_ir_graph *graph;
    uint32_t number;
    uint32_t wrong, failed;
} life_thread;

static void *life_work(void *user) {
    life_thread *me = user;
    for (uint32_t i = 0; i < 60; i++) {
        int64_t n = 1 + (me->number + i) % 4;
        float x[4], y[4], z[4];
        for (int64_t k = 0; k < n; k++) {
            x[k] = (float)(me->number * 1000 + i);
            y[k] = (float)k;
        }
        rondo_tensor_view in[2] = {{.data = x, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &n}};
        rondo_tensor_view out = in[0];
        in[1] = in[0];
        in[1].data = y;
        out.data = z;
        rondo_status status = rondo_session_run(me->session, 7, in, 2, &out, 1);
        me->failed += status != RONDO_OK;
        rondo_status_release(status);
        for (int64_t k = 0; k < n; k++) me->wrong += z[k] != x[k] + 2 * y[k];
        /* A graph of this thread's own comes and goes. */
        status = rondo_session_add_graph(me->session, 100 + me->number, me->graph);
        me->failed += status != RONDO_OK;
        rondo_status_release(status);
        status = rondo_session_remove_graph(me->session, 100 + me->number);
        me->failed += status != RONDO_OK;
        rondo_status_release(status);
    }
    return NULL;
}

static void threads(rondo_test *t) {
    enum { THREADS = 4 };
    static const char *const devices[] = {"cpu", "sim"};
    sum_fixture f = {.t = t};
    rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
    options.specialisations_max = 3; /* four sizes: they push each other out all the time */
    T_DEFER(t, sum_close, &f);
    for (int d = 0; d < 2; d++) {
        pthread_t ids[THREADS];
        life_thread all[THREADS];
        sum_open(t, &f, devices[d], &options);
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        for (uint32_t i = 0; i < THREADS; i++) {
            all[i] = (life_thread){.session = f.session, .graph = f.graph, .number = i};
            T_EQ(t, pthread_create(&ids[i], NULL, life_work, &all[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) (void)pthread_join(ids[i], NULL);
        for (uint32_t i = 0; i < THREADS; i++) {
            T_EQ(t, all[i].failed, 0);
            T_EQ(t, all[i].wrong, 0);
        }
        rondo_session_info info = RONDO_SESSION_INFO_INIT;
        T_OK(t, rondo_session_get_info(f.session, 7, &info));
        T_EQ(t, info.runs, THREADS * 60);
        sum_close(&f);
    }
}

/* ------------------------------------------------------------------------------------------- memory, copies */

typedef struct life_memory {
    rondo_device *device;
    uint64_t bytes, blocks, all;
    bool empty;
} life_memory;

static void *life_allocate(void *self, uint64_t bytes) {
    life_memory *m = self;
    void *pointer = NULL;
    rondo_status status = m->empty ? RONDO_OK : rondo_memory_allocate(m->device, bytes, &pointer);
    rondo_status_release(status);
    if (status || !pointer) return NULL;
    m->bytes += bytes;
    m->blocks++;
    m->all++;
    return pointer;
}

static void life_release(void *self, void *pointer, uint64_t bytes) {
    life_memory *m = self;
    rondo_status_release(rondo_memory_free(m->device, pointer));
    m->bytes -= bytes;
    m->blocks--;
}

static void memory_of_the_programs_own(rondo_test *t) {
    static const char *const devices[] = {"cpu", "sim"};
    sum_fixture f = {.t = t};
    T_DEFER(t, sum_close, &f);
    for (int d = 0; d < 2; d++) {
        life_memory memory = {0};
        uint64_t bytes, before, after;
        rondo_session_options options = RONDO_SESSION_OPTIONS_INIT;
        options.memory = (rondo_device_memory){&memory, life_allocate, life_release};
        sum_open(t, &f, devices[d], &options);
        memory.device = f.device;
        T_OK(t, rondo_session_add_graph(f.session, 7, f.graph));
        rondo_memory_usage(f.device, &bytes, &before);
        T_OK(t, sum_run(&f, 7, 8, 1));
        sum_fill(&f, 8, 2);
        T_OK(t, sum_run_on_stream(&f, 7, 8));
        sum_check(&f, 8, 2);
        rondo_memory_usage(f.device, &bytes, &after);
        T_TRUE(t, memory.blocks >= 3 && memory.bytes >= 3 * 8 * sizeof(float)); /* x, y and z at least */
        T_EQ(t, after - before, memory.blocks);                                 /* and nothing came from elsewhere */
        memory.empty = true;
        T_FAILS(t, sum_run(&f, 7, 9, 1), OUT_OF_MEMORY, "the program's own allocator");
        memory.empty = false;
        T_OK(t, sum_run(&f, 7, 9, 1));
        T_OK(t, sum_run(&f, 7, 8, 1));
        rondo_session_release(f.session);
        f.session = NULL;
        T_EQ(t, memory.blocks, 0);
        T_EQ(t, memory.bytes, 0);
        options.memory.release = NULL;
        T_FAILS(t, rondo_session_create(f.device, &options, &f.session), INVALID_ARGUMENT, "together or not at all");
        sum_close(&f);
    }
}

/* A copy does not see what becomes of its graph; a reference keeps the graph alive. */
static void by_copy_and_by_reference(rondo_test *t) {
    sum_fixture f = {.t = t};
    rondo_ir_value two, more;
    T_DEFER(t, sum_close, &f);
    sum_open(t, &f, "cpu", NULL);
    T_OK(t, rondo_session_add_graph_copy(f.session, 7, f.graph));
    T_FAILS(t, rondo_session_add_graph_copy(f.session, 7, f.graph), ALREADY_EXISTS, "graph 7, which stays");
    T_FAILS(t, rondo_session_add_graph_copy(f.session, 8, NULL), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_ir_graph_add_constant(f.graph, "more", RONDO_DTYPE_F32, 0, NULL, &(const float){5}, &two));
    T_OK(t, rondo_ir_graph_add_node(f.graph, "Neg", NULL, &two, 1, NULL, 0, &more, 1));
    T_OK(t, rondo_ir_graph_add_output(f.graph, more, "more"));
    T_OK(t, sum_run(&f, 7, 4, 1)); /* one output still */
    rondo_ir_graph_release(f.graph);
    f.graph = NULL;
    T_OK(t, sum_run(&f, 7, 5, 1));
    sum_graph(&f);
    T_OK(t, rondo_session_add_graph(f.session, 9, f.graph));
    rondo_ir_graph_release(f.graph);
    f.graph = NULL;
    T_OK(t, sum_run(&f, 9, 5, 1));
}

RONDO_TEST_MAIN(T_PLAIN(the_table_on_cpu), T_PLAIN(the_table_on_sim), T_PLAIN(threads), T(memory_of_the_programs_own),
                T(by_copy_and_by_reference))
