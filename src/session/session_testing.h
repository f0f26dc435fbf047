/* SPDX-License-Identifier: Apache-2.0
 *
 * A session with z = x + 2 y in it, and its tensors in host and device memory, for the tests of this room. */
#ifndef RONDO_SRC_SESSION_SESSION_TESTING_H
#define RONDO_SRC_SESSION_SESSION_TESTING_H

#include <rondo/compiler.h>

#include "harness/harness.h"

#define SUM_MOST 16

typedef struct sum_fixture {
    rondo_test *t;
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    rondo_session *session;
    rondo_ir_graph *graph;
    rondo_graph *capture;
    void *x, *y, *z; /* SUM_MOST floats of device memory each */
} sum_fixture;

static inline void sum_close(sum_fixture *f) {
    if (f->x) rondo_status_release(rondo_memory_free(f->device, f->x));
    if (f->y) rondo_status_release(rondo_memory_free(f->device, f->y));
    if (f->z) rondo_status_release(rondo_memory_free(f->device, f->z));
    rondo_graph_release(f->capture);
    rondo_session_release(f->session);
    rondo_stream_release(f->stream);
    rondo_ir_graph_release(f->graph);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
    memset(f, 0, sizeof *f);
}

/* x is of any length and y of the same: the graph calls both n. */
static inline void sum_graph(sum_fixture *f) {
    const char *n = "n";
    rondo_ir_value x, y, two, twice, z;
    T_OK(f->t, rondo_ir_graph_create(f->instance, "sum", &f->graph));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "x", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &n, &x));
    T_OK(f->t, rondo_ir_graph_add_input(f->graph, "y", RONDO_DTYPE_F32, 1, (const int64_t[]){-1}, &n, &y));
    T_OK(f->t, rondo_ir_graph_add_constant(f->graph, "two", RONDO_DTYPE_F32, 0, NULL, &(const float){2}, &two));
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, "Mul", NULL, (rondo_ir_value[]){y, two}, 2, NULL, 0, &twice, 1));
    T_OK(f->t, rondo_ir_graph_add_node(f->graph, "Add", NULL, (rondo_ir_value[]){x, twice}, 2, NULL, 0, &z, 1));
    T_OK(f->t, rondo_ir_graph_add_output(f->graph, z, "z"));
}

/* Closed by sum_close, which the caller defers. The graph is made and not added. */
static inline void sum_open(rondo_test *t, sum_fixture *f, const char *device, const rondo_session_options *options) {
    rondo_instance_options instance = RONDO_INSTANCE_OPTIONS_INIT;
    f->t = t;
    instance.ignore_plugin_path = 1;
    T_OK(t, rondo_instance_create(&instance, &f->instance));
    T_OK(t, rondo_device_open(f->instance, device, NULL, &f->device));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->stream));
    T_OK(t, rondo_session_create(f->device, options, &f->session));
    T_OK(t, rondo_memory_allocate(f->device, SUM_MOST * sizeof(float), &f->x));
    T_OK(t, rondo_memory_allocate(f->device, SUM_MOST * sizeof(float), &f->y));
    T_OK(t, rondo_memory_allocate(f->device, SUM_MOST * sizeof(float), &f->z));
    sum_graph(f);
}

/* x[i] = seed + i, y[i] = 10 i. */
static inline void sum_fill(sum_fixture *f, int64_t n, float seed) {
    float x[SUM_MOST], y[SUM_MOST];
    for (int64_t i = 0; i < n; i++) {
        x[i] = seed + (float)i;
        y[i] = 10 * (float)i;
    }
    uint64_t bytes = (uint64_t)n * sizeof(float);
    T_OK(f->t, rondo_stream_copy(f->stream, f->x, x, bytes, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(f->t, rondo_stream_copy(f->stream, f->y, y, bytes, RONDO_COPY_HOST_TO_DEVICE));
    T_OK(f->t, rondo_stream_synchronize(f->stream));
}

/* What z must be after a run on what sum_fill wrote. */
static inline void sum_check(sum_fixture *f, int64_t n, float seed) {
    float z[SUM_MOST];
    T_OK(f->t, rondo_stream_copy(f->stream, z, f->z, (uint64_t)n * sizeof(float), RONDO_COPY_DEVICE_TO_HOST));
    T_OK(f->t, rondo_stream_synchronize(f->stream));
    for (int64_t i = 0; i < n; i++) T_NEAR(f->t, z[i], seed + 21 * (float)i, 0);
}

typedef struct sum_views {
    rondo_tensor_view in[2], out[1];
} sum_views;

static inline sum_views sum_view(const sum_fixture *f, const int64_t *n) {
    const rondo_device_properties *p = rondo_device_info(f->device);
    rondo_tensor_view view = {
        .device_type = p->dlpack_type, .device_index = p->index, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = n};
    sum_views v = {{view, view}, {view}};
    v.in[0].data = f->x;
    v.in[1].data = f->y;
    v.out[0].data = f->z;
    return v;
}

static inline rondo_status sum_run_on_stream(sum_fixture *f, uint32_t id, int64_t n) {
    sum_views v = sum_view(f, &n);
    return rondo_session_run_on_stream(f->session, id, f->stream, v.in, 2, v.out, 1, NULL);
}

/* On host tensors, with memory of its own for z; checks z. */
static inline rondo_status sum_run(sum_fixture *f, uint32_t id, int64_t n, float seed) {
    float x[SUM_MOST], y[SUM_MOST], z[SUM_MOST];
    for (int64_t i = 0; i < n; i++) {
        x[i] = seed + (float)i;
        y[i] = 10 * (float)i;
    }
    rondo_tensor_view in[2] = {{.data = x, .device_type = 1, .rank = 1, .dtype = RONDO_DTYPE_F32, .shape = &n}};
    in[1] = in[0];
    in[1].data = y;
    rondo_tensor_view out = in[0];
    out.data = z;
    rondo_status status = rondo_session_run(f->session, id, in, 2, &out, 1);
    for (int64_t i = 0; !status && i < n; i++) T_NEAR(f->t, z[i], seed + 21 * (float)i, 0);
    return status;
}

static inline rondo_status sum_begin(sum_fixture *f) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_graph_release(f->capture);
    f->capture = NULL;
    T_OK(f->t, rondo_graph_create(f->device, &options, &f->capture));
    return rondo_graph_capture_begin(f->capture, f->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL);
}

#endif
