/* SPDX-License-Identifier: Apache-2.0
 *
 * One copy of a weight for all graphs of a session, and for all sizes of one: counted by what the device has given, checked
 * against products worked out here, and still right when a graph that shares has gone. */
#include <pthread.h>

#include "session/session.h"
#include "session/session_testing.h"

#define WS_K 48
#define WS_N 64

typedef struct shared_fixture {
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    rondo_ir_graph *graphs[3];
    float weights[WS_K * WS_N];
} shared_fixture;

static void ws_close(shared_fixture *f) {
    rondo_session_release(f->session);
    for (int i = 0; i < 3; i++) rondo_ir_graph_release(f->graphs[i]);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
}

/* y = x W, with x [n, K]; W[k, j] is the sum of its indices, times `factor`. */
static void ws_graph(rondo_test *t, shared_fixture *f, int index, float factor) {
    const char *n[2] = {"n", NULL};
    rondo_ir_value x, w, y;
    for (int k = 0; k < WS_K; k++)
        for (int j = 0; j < WS_N; j++) f->weights[k * WS_N + j] = factor * (float)(k + j);
    T_OK(t, rondo_ir_graph_create(f->instance, "product", &f->graphs[index]));
    rondo_ir_graph *g = f->graphs[index];
    T_OK(t, rondo_ir_graph_add_input(g, "x", RONDO_DTYPE_F32, 2, (const int64_t[]){-1, WS_K}, n, &x));
    T_OK(t, rondo_ir_graph_add_constant(g, "w", RONDO_DTYPE_F32, 2, (const int64_t[]){WS_K, WS_N}, f->weights, &w));
    T_OK(t, rondo_ir_graph_add_node(g, "MatMul", NULL, (rondo_ir_value[]){x, w}, 2, NULL, 0, &y, 1));
    T_OK(t, rondo_ir_graph_add_output(g, y, "y"));
    T_OK(t, rondo_session_add_graph(f->session, (uint32_t)index, g));
}

static void ws_open(rondo_test *t, shared_fixture *f, const char *device) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    T_DEFER(t, ws_close, f);
    options.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&options, &f->instance));
    T_OK(t, rondo_device_open(f->instance, device, NULL, &f->device));
    T_OK(t, rondo_session_create(f->device, NULL, &f->session));
}

/* Row i of x is i + 1 at place i % K and nothing elsewhere, so y[i, j] = (i + 1) W[i % K, j]. False: not so. */
static rondo_status ws_run(rondo_session *session, uint32_t id, int64_t n, float factor, bool *out_right) {
    static _Thread_local float x[4 * WS_K], y[4 * WS_N];
    const int64_t in_shape[2] = {n, WS_K}, out_shape[2] = {n, WS_N};
    memset(x, 0, sizeof x);
    for (int64_t i = 0; i < n; i++) x[i * WS_K + i % WS_K] = (float)(i + 1);
    rondo_tensor_view in = {.data = x, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = in_shape};
    rondo_tensor_view out = {.data = y, .device_type = 1, .rank = 2, .dtype = RONDO_DTYPE_F32, .shape = out_shape};
    RONDO__TRY(rondo_session_run(session, id, &in, 1, &out, 1));
    *out_right = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < WS_N; j++)
            *out_right = *out_right && y[i * WS_N + j] == (float)(i + 1) * factor * (float)(i % WS_K + j);
    return RONDO_OK;
}

static void ws_check(rondo_test *t, shared_fixture *f, uint32_t id, int64_t n, float factor) {
    bool right = false;
    T_OK(t, ws_run(f->session, id, n, factor, &right));
    T_TRUE(t, right);
}

static uint64_t ws_allocated(rondo_test *t, const shared_fixture *f) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    T_OK(t, rondo_memory_get_statistics(f->device, (rondo_pool_id){0, 0}, &statistics));
    return statistics.requested_bytes;
}

static const rondo_executable *ws_executable(rondo_test *t, shared_fixture *f, uint32_t id, size_t index) {
    rondo__session_graph *graph = NULL;
    T_OK(t, rondo__session_find(f->session, id, &graph));
    T_TRUE(t, index < graph->specialisations.count);
    return (*RONDO__BUFFER_AT(&graph->specialisations, rondo__specialisation *, index))->executable;
}

static void shares(rondo_test *t, const char *device) {
    shared_fixture f;
    ws_open(t, &f, device);
    ws_graph(t, &f, 0, 1);
    ws_graph(t, &f, 1, 1); /* the same weights, read again */
    ws_graph(t, &f, 2, 2); /* others */
    uint64_t none = ws_allocated(t, &f);
    ws_check(t, &f, 0, 2, 1);
    uint64_t first = ws_allocated(t, &f) - none;
    ws_check(t, &f, 1, 2, 1);
    uint64_t second = ws_allocated(t, &f) - none - first;
    ws_check(t, &f, 2, 2, 2);
    uint64_t third = ws_allocated(t, &f) - none - first - second;
    T_EQ(t, third, first);            /* all of its own */
    T_TRUE(t, second < first - 8192); /* all but the weights, which are 12 KiB */
    T_EQ(t, ws_executable(t, &f, 0, 0)->block_count, 1);
    T_TRUE(t, ws_executable(t, &f, 0, 0)->blocks[0] == ws_executable(t, &f, 1, 0)->blocks[0]);
    T_TRUE(t, ws_executable(t, &f, 0, 0)->blocks[0] != ws_executable(t, &f, 2, 0)->blocks[0]);
    T_TRUE(t, first - second >= ws_executable(t, &f, 0, 0)->blocks[0]->bytes);
    /* Another size of the same graph: the same weights where they are packed alike. */
    ws_check(t, &f, 0, 3, 1);
    const rondo__weights_block *small = ws_executable(t, &f, 0, 0)->blocks[0];
    const rondo__weights_block *large = ws_executable(t, &f, 0, 1)->blocks[0];
    T_TRUE(t, small == large || small->bytes != large->bytes || small->hash != large->hash);
    /* One goes, the others are right; the last takes the weights along. */
    T_OK(t, rondo_session_remove_graph(f.session, 0));
    ws_check(t, &f, 1, 2, 1);
    ws_check(t, &f, 2, 2, 2);
    T_OK(t, rondo_session_remove_graph(f.session, 2));
    ws_check(t, &f, 1, 4, 1);
    T_OK(t, rondo_session_remove_graph(f.session, 1));
    T_EQ(t, ws_allocated(t, &f), none);
}
static void test_shares_cpu(rondo_test *t) { shares(t, "cpu"); }
static void test_shares_sim(rondo_test *t) { shares(t, "sim"); }

typedef struct ws_worker {
    shared_fixture *f;
    uint32_t id;
    int right;
} ws_worker;

static void *ws_work(void *argument) {
    ws_worker *work = argument;
    for (int i = 0; i < 30; i++) {
        bool right = false;
        rondo_status status = ws_run(work->f->session, work->id, 1 + i % 4, 1, &right);
        work->right += !status && right;
        rondo_status_release(status);
    }
    return NULL;
}

/* Two graphs with one weight run in two threads, while a third comes, shares it, and goes. */
static void test_threads(rondo_test *t) {
    shared_fixture f;
    pthread_t threads[2];
    ws_worker work[2];
    ws_open(t, &f, "cpu");
    ws_graph(t, &f, 0, 1);
    ws_graph(t, &f, 1, 1);
    for (int i = 0; i < 2; i++) {
        work[i] = (ws_worker){&f, (uint32_t)i, 0};
        T_EQ(t, pthread_create(&threads[i], NULL, ws_work, &work[i]), 0);
    }
    int right = 0;
    for (int i = 0; i < 10; i++) {
        bool good = false;
        rondo_status status = rondo_session_add_graph(f.session, 9, f.graphs[0]);
        if (!status) status = ws_run(f.session, 9, 2, 1, &good);
        if (!status) status = rondo_session_remove_graph(f.session, 9);
        right += !status && good;
        rondo_status_release(status);
    }
    for (int i = 0; i < 2; i++) (void)pthread_join(threads[i], NULL);
    T_EQ(t, right, 10);
    for (int i = 0; i < 2; i++) T_EQ(t, work[i].right, 30);
}

RONDO_TEST_MAIN(T(test_shares_cpu), T(test_shares_sim), T_PLAIN(test_threads))
