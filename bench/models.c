/* SPDX-License-Identifier: Apache-2.0
 *
 * Real models, one thread, against ONNX Runtime's C API in the same run: blocks of runs in turns, medians of the run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

/* A tensor of a model: zero sizes end the list. Its elements are random floats, a file's bytes, or one number. */
typedef struct bench_port {
    const char *name;
    int64_t shape[4];
    size_t rank;
    int type; /* as the peer numbers them: 1 float, 6 int32, 7 int64 */
} bench_port;

enum { PORTS_MAX = 3, PORT_BYTES = 131072, PORTS = 2 * PORTS_MAX };

typedef struct bench_model {
    const char *name, *file;
    double bar;    /* ratio to the peer */
    uint32_t runs; /* in a turn */
    bool silero;
    bench_port inputs[PORTS_MAX], outputs[PORTS_MAX]; /* inputs in the order of the file */
    rondo_dim_binding dims[PORTS_MAX];
    uint32_t dim_count;
    rondo_context *context;
    rondo_graph *graph;
    void *device_memory;                 /* all ports, 64-byte aligned */
    bench_peer_session *peer, *peer_two; /* with one thread and two */
    rondo_plan_info plan;
    double load_us, peer_load_us, open_us;
    char offline[64]; /* the offline file of the model, removed when its rows are done */
} bench_model;

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
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.dims = model->dims;
    options.dim_count = model->dim_count;
    options.values = values;
    options.value_count = model->silero ? 1 : 0;
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

static uint32_t count_ports(const bench_port *ports) {
    uint32_t count = 0;
    while (count < PORTS_MAX && ports[count].name) count++;
    return count;
}

static void make_ports(const bench_port *ports, uint32_t count, char *memory, bench_peer_tensor *out) {
    for (uint32_t i = 0; i < count; ++i, memory += PORT_BYTES) {
        size_t elements = 1;
        out[i] =
            (bench_peer_tensor){.name = ports[i].name, .data = memory, .rank = ports[i].rank, .type = ports[i].type};
        for (size_t d = 0; d < ports[i].rank; ++d) {
            out[i].shape[d] = ports[i].shape[d];
            elements *= (size_t)ports[i].shape[d];
        }
        out[i].bytes = elements * (ports[i].type == 7 ? 8 : 4);
        if (out[i].bytes > PORT_BYTES) exit(1);
        if (ports[i].type == 1) fill_floats((float *)(void *)memory, elements, i + 1);
        for (size_t e = 0; ports[i].type == 6 && e < elements; ++e)
            ((int32_t *)(void *)memory)[e] = (int32_t)(e * 2654435761u >> 24);
        if (ports[i].type == 7) *(int64_t *)(void *)memory = 16000;
    }
}

static void prepare(const bench_setup *setup, bench_model *model, const char *path) {
    bench_peer_tensor inputs[PORTS_MAX], outputs[PORTS_MAX];
    uint32_t input_count = count_ports(model->inputs), output_count = count_ports(model->outputs);
    model->load_us = load(setup, model, path, &model->context);
    bench_must(rondo_memory_allocate(setup->device, PORT_BYTES * PORTS, &model->device_memory));
    make_ports(model->inputs, input_count, model->device_memory, inputs);
    make_ports(model->outputs, output_count, (char *)model->device_memory + PORTS_MAX * PORT_BYTES, outputs);
    for (uint32_t i = 0; i < input_count; ++i) bench_must(rondo_context_bind_input(model->context, i, inputs[i].data));
    for (uint32_t i = 0; i < output_count; ++i)
        bench_must(rondo_context_bind_output(model->context, i, outputs[i].data));
    bench_must(rondo_graph_create(setup->device, NULL, &model->graph));
    bench_must(
        rondo_graph_capture_begin(model->graph, setup->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    bench_must(rondo_context_run_eager(model->context, setup->stream));
    bench_must(rondo_graph_capture_end(model->graph, setup->stream));
    if (!setup->peer) return;
    uint64_t start = bench_now_ns();
    bench_peer_session **peers[] = {&model->peer, &model->peer_two};
    for (int i = 0; i < 2; ++i) {
        *peers[i] = bench_peer_load(setup->peer, path, i + 1);
        if (i == 0) model->peer_load_us = (double)(bench_now_ns() - start) / 1e3;
        if (*peers[i] && !bench_peer_bind(*peers[i], inputs, input_count, outputs, output_count)) {
            bench_peer_unload(*peers[i]);
            *peers[i] = NULL;
        }
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

static void time_peer(bench_peer_session *peer, double *samples, uint32_t count) {
    for (uint32_t i = 0; peer && i < count; ++i) {
        uint64_t start = bench_now_ns();
        if (!bench_peer_run(peer)) exit(1);
        samples[i] = (double)(bench_now_ns() - start) / 1e3;
    }
}

static void time_model(const bench_setup *setup, bench_model *model, double *out_ours, double *out_one,
                       double *out_two) {
    static double ours[MODEL_BLOCKS * MODEL_RUNS], one[MODEL_BLOCKS * MODEL_RUNS], two[MODEL_BLOCKS * MODEL_RUNS];
    const uint32_t runs = model->runs;
    for (uint32_t b = 0; b < MODEL_BLOCKS; ++b) {
        for (uint32_t i = 0; i < runs; ++i) {
            uint64_t start = bench_now_ns();
            bench_must(rondo_graph_replay(model->graph, setup->stream));
            bench_must(rondo_stream_synchronize(setup->stream));
            ours[b * runs + i] = (double)(bench_now_ns() - start) / 1e3;
        }
        time_peer(model->peer, one + b * runs, runs);
    }
    for (uint32_t b = 0; b < MODEL_BLOCKS / 4; ++b) time_peer(model->peer_two, two + b * runs, runs);
    *out_ours = bench_median(ours, MODEL_BLOCKS * runs);
    *out_one = model->peer ? bench_median(one, MODEL_BLOCKS * runs) : (double)NAN;
    *out_two = model->peer_two ? bench_median(two, MODEL_BLOCKS / 4 * runs) : (double)NAN;
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
        double ours, theirs, two;
        time_model(setup, model, &ours, &theirs, &two);
        bench_row row = {.value = ours, .unit = "us", .ratio = ours / theirs, .bar = model->bar, .bar_on_ratio = true};
        snprintf(row.name, sizeof row.name, "%s", model->name);
        snprintf(row.note, sizeof row.note, "peer %.1f us, %.1f with 2 threads (x%.3f); %u nodes -> %u calls", theirs,
                 two, ours / two, model->plan.nodes_in, model->plan.calls);
        bench_add(report, &row);
    }
    if (bench_wants(report, load_name) || bench_wants(report, offline_name)) {
        time_loads(setup, model, path);
        add_load(report, model, load_name, model->load_us, 0.25, "import, compile, prepare");
        add_load(report, model, offline_name, model->open_us, 0.05, "open the offline file, prepare");
    }
    (void)unlink(model->offline);
    bench_peer_unload(model->peer);
    bench_peer_unload(model->peer_two);
    rondo_graph_release(model->graph);
    rondo_context_release(model->context);
    bench_must(rondo_memory_free(setup->device, model->device_memory));
}

void bench_models(const bench_setup *setup, bench_report *report) {
    static const rondo_dim_binding silero[] = {{"input", 0, 1, 0, 0}, {"input", 0, 576, 1, 0}, {"state", 0, 1, 1, 0}};
    bench_model models[] = {{.name = "silero_vad",
                             .file = "silero_vad.onnx",
                             .bar = 0.18,
                             .runs = 50,
                             .silero = true,
                             .inputs = {{"input", {1, 576}, 2, 1}, {"state", {2, 1, 128}, 3, 1}, {"sr", {0}, 0, 7}},
                             .outputs = {{"output", {1, 1}, 2, 1}, {"stateN", {2, 1, 128}, 3, 1}},
                             .dims = {silero[0], silero[1], silero[2]},
                             .dim_count = 3},
                            {.name = "silero_vad_op18_ifless",
                             .file = "silero_vad_op18_ifless.onnx",
                             .bar = 0.20,
                             .runs = 50,
                             .silero = true,
                             .inputs = {{"input", {1, 576}, 2, 1}, {"sr", {0}, 0, 7}, {"state", {2, 1, 128}, 3, 1}},
                             .outputs = {{"output", {1, 1}, 2, 1}, {"stateN", {2, 1, 128}, 3, 1}},
                             .dims = {silero[0], silero[1], silero[2]},
                             .dim_count = 3},
                            {.name = "hey_rhasspy",
                             .file = "hey_rhasspy_v0.1.onnx",
                             .bar = 0.40,
                             .runs = 50,
                             .inputs = {{"onnx::Flatten_0", {1, 16, 96}, 3, 1}},
                             .outputs = {{"39", {1, 1}, 2, 1}}},
                            {.name = "openwakeword_embedding",
                             .file = "embedding_model.onnx",
                             .bar = 0.60,
                             .runs = 10,
                             .inputs = {{"input_1", {1, 76, 32, 1}, 4, 1}},
                             .outputs = {{"conv2d_19", {1, 1, 1, 96}, 4, 1}},
                             .dims = {{"input_1", 0, 1, 0, 0}},
                             .dim_count = 1},
                            {.name = "ppocr_classifier",
                             .file = "ch_ppocr_mobile_v2.0_cls_infer.onnx",
                             .bar = 0.40,
                             .runs = 10,
                             .inputs = {{"x", {1, 3, 48, 192}, 4, 1}},
                             .outputs = {{"save_infer_model/scale_0.tmp_1", {1, 2}, 2, 1}},
                             .dims = {{"x", 0, 1, 0, 0}, {"x", 0, 48, 2, 0}, {"x", 0, 192, 3, 0}},
                             .dim_count = 3},
                            {.name = "magika",
                             .file = "magika_standard_v3_3.onnx",
                             .bar = 0.85,
                             .runs = 2,
                             .inputs = {{"bytes", {1, 2048}, 2, 6}},
                             .outputs = {{"target_label", {1, 214}, 2, 1}},
                             .dims = {{"bytes", 0, 1, 0, 0}},
                             .dim_count = 1}};
    if (!setup->models) {
        fprintf(stderr, "rondo-bench: no --models FOLDER: the models' rows are left out\n");
        return;
    }
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i) rows_of(setup, report, &models[i]);
}
