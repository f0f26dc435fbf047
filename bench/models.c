/* SPDX-License-Identifier: Apache-2.0
 *
 * Real models, one thread, against ONNX Runtime's C API in the same run: blocks of runs in turns, medians of the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

typedef struct bench_model {
    const char *name, *file;
    double bar; /* ratio to the peer */
    bool silero;
    rondo_context *context;
    rondo_graph *graph;
    void *device_memory; /* all ports, 64-byte aligned */
    bench_peer_session *peer;
    rondo_plan_info plan;
    double load_us, peer_load_us, open_us;
    char offline[64]; /* the offline file of the model, removed when its rows are done */
} bench_model;

enum { PORT_BYTES = 16384, PORTS = 8 };

static void fill_floats(float *data, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
    }
}

/* Import to a context that could run. */
static double load(const bench_setup *setup, bench_model *model, const char *path, rondo_context **out_context) {
    static int64_t rate = 16000;
    rondo_tensor_view value = {&rate, 1, 0, 0, RONDO_DTYPE_I64, NULL, NULL, 0};
    rondo_value_binding values[] = {{"sr", &value}};
    rondo_dim_binding dims[] = {{"input", 0, 1, 0, 0}, {"input", 0, 576, 1, 0}, {"state", 0, 1, 1, 0}};
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    if (model->silero) {
        options.dims = dims;
        options.dim_count = 3;
        options.values = values;
        options.value_count = 1;
    }
    rondo_ir_graph *ir;
    rondo_plan *plan;
    rondo_executable *executable;
    uint64_t start = bench_now_ns();
    bench_must(rondo_onnx_import(setup->instance, path, NULL, &ir));
    bench_must(rondo_compile(setup->instance, ir, &options, NULL, &plan));
    bench_must(rondo_executable_create(setup->device, plan, &executable));
    bench_must(rondo_context_create(executable, out_context));
    double microseconds = (double)(bench_now_ns() - start) / 1e3;
    rondo_plan_info plan_info = RONDO_PLAN_INFO_INIT;
    bench_must(rondo_plan_get_info(plan, &plan_info));
    model->plan = plan_info;
    if (!*model->offline) {
        snprintf(model->offline, sizeof model->offline, "/tmp/rondo-bench-XXXXXX");
        int descriptor = mkstemp(model->offline);
        if (descriptor >= 0) (void)close(descriptor);
        bench_must(rondo_plan_write(setup->instance, plan, model->offline));
    }
    rondo_executable_release(executable);
    rondo_plan_release(plan);
    rondo_ir_graph_release(ir);
    return microseconds;
}

/* The same from the offline file. */
static double load_offline(const bench_setup *setup, const bench_model *model) {
    rondo_plan *plan;
    rondo_executable *executable;
    rondo_context *context;
    uint64_t start = bench_now_ns();
    bench_must(rondo_plan_open(setup->instance, model->offline, &plan));
    bench_must(rondo_executable_create(setup->device, plan, &executable));
    bench_must(rondo_context_create(executable, &context));
    double microseconds = (double)(bench_now_ns() - start) / 1e3;
    rondo_context_release(context);
    rondo_executable_release(executable);
    rondo_plan_release(plan);
    return microseconds;
}

static void prepare(const bench_setup *setup, bench_model *model, const char *path) {
    bench_peer_tensor inputs[3], outputs[2];
    size_t input_count = 0, output_count = 0;
    model->load_us = load(setup, model, path, &model->context);
    bench_must(rondo_memory_allocate(setup->device, PORT_BYTES * PORTS, &model->device_memory));
    char *memory = model->device_memory, *x = memory, *state = memory + PORT_BYTES, *sr = memory + 2 * PORT_BYTES;
    char *output = memory + 3 * PORT_BYTES, *state_out = memory + 4 * PORT_BYTES;
    fill_floats((float *)(void *)x, 1536, 1);
    fill_floats((float *)(void *)state, 256, 2);
    *(int64_t *)(void *)sr = 16000;
    if (model->silero) {
        inputs[input_count++] = (bench_peer_tensor){"input", x, 576 * 4, {1, 576}, 2, 1};
        inputs[input_count++] = (bench_peer_tensor){"state", state, 1024, {2, 1, 128}, 3, 1};
        inputs[input_count++] = (bench_peer_tensor){"sr", sr, 8, {0}, 0, 7};
        outputs[output_count++] = (bench_peer_tensor){"output", output, 4, {1, 1}, 2, 1};
        outputs[output_count++] = (bench_peer_tensor){"stateN", state_out, 1024, {2, 1, 128}, 3, 1};
    } else {
        inputs[input_count++] = (bench_peer_tensor){"onnx::Flatten_0", x, 1536 * 4, {1, 16, 96}, 3, 1};
        outputs[output_count++] = (bench_peer_tensor){"39", output, 4, {1, 1}, 2, 1};
    }
    for (uint32_t i = 0; i < input_count; ++i) {
        /* The two Silero files order their inputs differently: sr last, or second. */
        uint32_t index = i;
        if (model->silero && strstr(model->file, "ifless")) index = i == 0 ? 0 : i == 1 ? 2 : 1;
        bench_must(rondo_context_bind_input(model->context, index, inputs[i].data));
    }
    for (uint32_t i = 0; i < output_count; ++i)
        bench_must(rondo_context_bind_output(model->context, i, outputs[i].data));
    bench_must(rondo_graph_create(setup->device, NULL, &model->graph));
    bench_must(
        rondo_graph_capture_begin(model->graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    bench_must(rondo_context_run_eager(model->context, setup->stream));
    bench_must(rondo_graph_capture_end(model->graph, setup->stream));
    if (!setup->peer) return;
    uint64_t start = bench_now_ns();
    model->peer = bench_peer_load(setup->peer, path, 1);
    model->peer_load_us = (double)(bench_now_ns() - start) / 1e3;
    if (model->peer && !bench_peer_bind(model->peer, inputs, input_count, outputs, output_count)) {
        bench_peer_unload(model->peer);
        model->peer = NULL;
    }
}

enum { MODEL_BLOCKS = 60, MODEL_RUNS = 50 };

/* The load that follows a first one: the file is in the page cache for both sides. */
static void time_loads(const bench_setup *setup, bench_model *model, const char *path) {
    double ours[9], theirs[9], offline[9];
    uint32_t count = 0;
    for (; count < 9; ++count) {
        rondo_context *context;
        ours[count] = load(setup, model, path, &context);
        rondo_context_release(context);
        offline[count] = load_offline(setup, model);
        if (!model->peer) continue;
        uint64_t start = bench_now_ns();
        bench_peer_session *session = bench_peer_load(setup->peer, path, 1);
        theirs[count] = (double)(bench_now_ns() - start) / 1e3;
        bench_peer_unload(session);
    }
    model->load_us = bench_median(ours, count);
    model->open_us = bench_median(offline, count);
    if (model->peer) model->peer_load_us = bench_median(theirs, count);
}

static void time_model(const bench_setup *setup, bench_model *model, double *out_ours, double *out_theirs) {
    static double ours[MODEL_BLOCKS * MODEL_RUNS], theirs[MODEL_BLOCKS * MODEL_RUNS];
    for (uint32_t b = 0; b < MODEL_BLOCKS; ++b) {
        for (uint32_t i = 0; i < MODEL_RUNS; ++i) {
            uint64_t start = bench_now_ns();
            bench_must(rondo_graph_replay(model->graph, setup->stream));
            bench_must(rondo_stream_synchronize(setup->stream));
            ours[b * MODEL_RUNS + i] = (double)(bench_now_ns() - start) / 1e3;
        }
        for (uint32_t i = 0; model->peer && i < MODEL_RUNS; ++i) {
            uint64_t start = bench_now_ns();
            if (!bench_peer_run(model->peer)) exit(1);
            theirs[b * MODEL_RUNS + i] = (double)(bench_now_ns() - start) / 1e3;
        }
    }
    *out_ours = bench_median(ours, MODEL_BLOCKS * MODEL_RUNS);
    *out_theirs = model->peer ? bench_median(theirs, MODEL_BLOCKS * MODEL_RUNS) : (double)NAN;
}

/* The first folder of the list that has the file. */
static bool find_model(const char *folders, const char *name, char *path, size_t capacity) {
    while (*folders) {
        size_t length = strcspn(folders, ":");
        int written = snprintf(path, capacity, "%.*s/%s", (int)length, folders, name);
        FILE *file = written > 0 && (size_t)written < capacity ? fopen(path, "rb") : NULL;
        if (file) {
            fclose(file);
            return true;
        }
        folders += length + (folders[length] == ':');
    }
    return false;
}

static void add_load(bench_report *report, const bench_model *model, const char *name, double value, double bar,
                     const char *what) {
    bench_row row = {.value = value,
                     .unit = "us",
                     .ratio = model->peer ? value / model->peer_load_us : (double)NAN,
                     .bar = bar,
                     .bar_on_ratio = true};
    if (!bench_wants(report, name)) return;
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.note, sizeof row.note, "%s; peer's session creation %.0f us", what, model->peer_load_us);
    bench_add(report, &row);
}

static void rows_of(const bench_setup *setup, bench_report *report, bench_model *model) {
    char path[4096], load_name[64], offline_name[64];
    snprintf(load_name, sizeof load_name, "load_%s", model->name);
    snprintf(offline_name, sizeof offline_name, "offline_%s", model->name);
    if (!bench_wants(report, model->name) && !bench_wants(report, load_name) && !bench_wants(report, offline_name))
        return;
    if (!find_model(setup->models, model->file, path, sizeof path)) {
        fprintf(stderr, "rondo-bench: %s is not in %s: its rows are left out\n", model->file, setup->models);
        return;
    }
    prepare(setup, model, path);
    if (bench_wants(report, model->name)) {
        double ours, theirs;
        time_model(setup, model, &ours, &theirs);
        bench_row row = {.value = ours, .unit = "us", .ratio = ours / theirs, .bar = model->bar, .bar_on_ratio = true};
        snprintf(row.name, sizeof row.name, "%s", model->name);
        snprintf(row.note, sizeof row.note, "peer %.1f us; %u nodes -> %u calls", theirs, model->plan.nodes_in,
                 model->plan.calls);
        bench_add(report, &row);
    }
    if (bench_wants(report, load_name) || bench_wants(report, offline_name)) {
        time_loads(setup, model, path);
        add_load(report, model, load_name, model->load_us, 0.25, "import, compile, prepare");
        add_load(report, model, offline_name, model->open_us, 0.05, "open the offline file, prepare");
    }
    (void)unlink(model->offline);
    bench_peer_unload(model->peer);
    rondo_graph_release(model->graph);
    rondo_context_release(model->context);
    bench_must(rondo_memory_free(setup->device, model->device_memory));
}

void bench_models(const bench_setup *setup, bench_report *report) {
    bench_model models[] = {
        {.name = "silero_vad", .file = "silero_vad.onnx", .bar = 0.4, .silero = true},
        {.name = "silero_vad_op18_ifless", .file = "silero_vad_op18_ifless.onnx", .bar = 0.4, .silero = true},
        {.name = "hey_rhasspy", .file = "hey_rhasspy_v0.1.onnx", .bar = 0.6}};
    if (!setup->models) {
        fprintf(stderr, "rondo-bench: no --models FOLDER: the models' rows are left out\n");
        return;
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i) rows_of(setup, report, &models[i]);
}
