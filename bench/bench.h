/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rows of the bench share: a row, timing, the peer, a model made ready. */
#ifndef RONDO_BENCH_BENCH_H
#define RONDO_BENCH_BENCH_H

#include <rondo/rondo.h>
#include <stdio.h>

/* One line of the table. Numbers that are not there are NaN. */
typedef struct bench_row {
    char name[64];
    double value;
    const char *unit;
    double ratio; /* to the peer of the same run, or of the limit that `of` names */
    double bar;   /* the value (unit) or the ratio must not be above it; which one: bar_on_ratio */
    bool bar_on_ratio;
    char note[128];
} bench_row;

typedef struct bench_report {
    bench_row rows[128];
    uint32_t count;
    const char *const *wanted; /* names or their beginnings; none: all */
    uint32_t wanted_count;
} bench_report;

/* Whether a row of that name is asked for. */
bool bench_wants(const bench_report *report, const char *name);
/* Adds a row and prints it. */
void bench_add(bench_report *report, const bench_row *row);

/* ---- time (clock.c) */
uint64_t bench_now_ns(void);
void bench_must(rondo_status status);
double bench_median(double *samples, uint32_t count); /* sorts */
double bench_minimum(const double *samples, uint32_t count);

/* ---- the peer (peer.c): ONNX Runtime through its C API, from a shared library opened at run time */
typedef struct bench_peer bench_peer;
/* Null, with a line on standard error, when the library cannot be used. */
bench_peer *bench_peer_open(const char *library);
typedef struct bench_peer_session bench_peer_session;
typedef struct bench_peer_tensor {
    const char *name;
    void *data;
    size_t bytes;
    int64_t shape[8];
    size_t rank;
    int type; /* ONNXTensorElementDataType: 1 float, 7 int64 */
} bench_peer_tensor;
bench_peer_session *bench_peer_load(bench_peer *peer, const char *model, int threads);
bool bench_peer_bind(bench_peer_session *session, const bench_peer_tensor *inputs, size_t input_count,
                     const bench_peer_tensor *outputs, size_t output_count);
bool bench_peer_run(bench_peer_session *session);
void bench_peer_unload(bench_peer_session *session);
void bench_peer_close(bench_peer *peer);

/* ---- groups of rows */
typedef struct bench_setup {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    bench_peer *peer;    /* null: no ratios */
    const char *models;  /* folder, or null */
    const char *library; /* librondo.so, or null */
} bench_setup;
void bench_replay(const bench_setup *setup, bench_report *report);
void bench_capture(const bench_setup *setup, bench_report *report);
void bench_compile(const bench_setup *setup, bench_report *report);
void bench_memory(const bench_setup *setup, bench_report *report);
void bench_trees(const bench_setup *setup, bench_report *report);
void bench_models(const bench_setup *setup, bench_report *report);
void bench_size(const bench_setup *setup, bench_report *report);

#endif
