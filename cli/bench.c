/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo bench: what one model costs, stage by stage. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char bench_help[] =
    "usage: rondo bench FILE [inputs as for rondo run] [--seconds S] [--device NAME] [--json]\n"
    "                  [-O LEVEL] [--passes A,B] [--disable-pass NAME] (rondo passes) [--cache DIR]\n"
    "Times load, compile and capture once, and runs for S seconds (default 1) each way, synchronised every time.\n"
    "  replay   the captured graph\n"
    "  eager    the same calls enqueued one by one\n"
    "  kernel_us  median replay less the replay of an empty graph: what the kernels take\n"
    "  host_us    median eager less kernel_us: what enqueuing them one by one adds\n"
    "  copy_us    inputs to the device and outputs back, once\n";

typedef struct bench_times {
    double minimum, median, p99;
    uint64_t runs;
} bench_times;

static int compare_u64(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum { BENCH_RUNS_MAX = 1 << 20 };

static bench_times summarise(uint64_t *samples, uint64_t count) {
    qsort(samples, count, sizeof *samples, compare_u64);
    return (bench_times){(double)samples[0] / 1e3, (double)samples[count / 2] / 1e3,
                         (double)samples[count * 99 / 100] / 1e3, count};
}

static int time_runs(cli_model *model, bool eager, double seconds, uint64_t *samples, bench_times *out_times) {
    uint64_t count = 0, start = cli_now_ns(), limit = (uint64_t)(seconds * 1e9);
    for (int i = 0; i < 3; ++i) {
        int code = cli_model_run(model, eager); /* warm up */
        if (code != CLI_DONE) return code;
    }
    uint64_t before = cli_now_ns();
    do {
        int code = cli_model_run(model, eager);
        if (code != CLI_DONE) return code;
        uint64_t after = cli_now_ns();
        samples[count++] = after - before;
        before = after;
    } while (count < BENCH_RUNS_MAX && before - start < limit);
    *out_times = summarise(samples, count);
    return CLI_DONE;
}

/* The replay of nothing, synchronised: what is not the kernels'. */
static int time_empty(cli_model *model, uint64_t *samples, bench_times *out_times) {
    rondo_graph *kept = model->graph;
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_status status = rondo_graph_create(model->device, &options, &model->graph);
    if (!status)
        status = rondo_graph_capture_begin(model->graph, model->stream, (rondo_pool_id){0, 0},
                                           RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) status = rondo_graph_capture_end(model->graph, model->stream);
    int code = status ? cli_report(status) : time_runs(model, false, 0.05, samples, out_times);
    rondo_graph_release(model->graph);
    model->graph = kept;
    return code;
}

static void add_times(cJSON *root, const char *name, const bench_times *times) {
    cJSON *object = cJSON_AddObjectToObject(root, name);
    cJSON_AddNumberToObject(object, "min", times->minimum);
    cJSON_AddNumberToObject(object, "median", times->median);
    cJSON_AddNumberToObject(object, "p99", times->p99);
    cJSON_AddNumberToObject(object, "runs", (double)times->runs);
}

typedef struct bench_result {
    bench_times replay, eager, empty;
    rondo_plan_info plan;
} bench_result;

static void print_result(const cli_model *model, const bench_result *result, bool json) {
    double kernel = result->replay.median - result->empty.median;
    if (kernel < 0) kernel = 0;
    double host = result->eager.median - kernel;
    if (host < 0) host = 0;
    if (!json) {
        printf("load %.1f us, compile %.1f us, capture %.1f us\n", (double)model->load_ns / 1e3,
               (double)model->compile_ns / 1e3, (double)model->capture_ns / 1e3);
        printf("%u nodes -> %u calls in %u segment%s; arena %llu bytes, weights %llu bytes\n", result->plan.nodes_in,
               result->plan.calls, result->plan.segments, result->plan.segments == 1 ? "" : "s",
               (unsigned long long)result->plan.arena_bytes, (unsigned long long)result->plan.weight_bytes);
        printf("%-8s %10s %10s %10s\n", "us", "min", "median", "p99");
        printf("%-8s %10.2f %10.2f %10.2f\n", "replay", result->replay.minimum, result->replay.median,
               result->replay.p99);
        printf("%-8s %10.2f %10.2f %10.2f\n", "eager", result->eager.minimum, result->eager.median, result->eager.p99);
        cli_cache_print(model);
        printf("kernels %.2f us, host launch %.2f us, copies %.2f us\n", kernel, host, (double)model->copy_ns / 1e3);
        return;
    }
    cJSON *root = cJSON_CreateObject();
    if (model->cache.outcome) cJSON_AddStringToObject(root, "cache", cli_cache_name(model));
    cJSON_AddNumberToObject(root, "load_us", (double)model->load_ns / 1e3);
    cJSON_AddNumberToObject(root, "compile_us", (double)model->compile_ns / 1e3);
    cJSON_AddNumberToObject(root, "capture_us", (double)model->capture_ns / 1e3);
    cJSON_AddNumberToObject(root, "nodes", result->plan.nodes_in);
    cJSON_AddNumberToObject(root, "calls", result->plan.calls);
    cJSON_AddNumberToObject(root, "segments", result->plan.segments);
    add_times(root, "replay_us", &result->replay);
    add_times(root, "eager_us", &result->eager);
    cJSON_AddNumberToObject(root, "kernel_us", kernel);
    cJSON_AddNumberToObject(root, "host_us", host);
    cJSON_AddNumberToObject(root, "copy_us", (double)model->copy_ns / 1e3);
    cJSON_AddNumberToObject(root, "arena_bytes", (double)result->plan.arena_bytes);
    cJSON_AddNumberToObject(root, "arena_lower_bound", (double)result->plan.arena_lower_bound);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)result->plan.weight_bytes);
    char *text = cJSON_Print(root);
    puts(text ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(root);
}

static int bench_model(const cli_options *options, cli_model *model) {
    bench_result result = {0};
    rondo_plan_info plan = RONDO_PLAN_INFO_INIT;
    result.plan = plan;
    uint64_t *samples = cli_allocate(BENCH_RUNS_MAX, sizeof *samples);
    int code = cli_model_open(options, model);
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code == CLI_DONE) code = cli_model_prepare(model);
    if (code == CLI_DONE) code = cli_model_capture(model);
    if (code == CLI_DONE) code = cli_report(rondo_plan_get_info(model->plan, &result.plan));
    if (code == CLI_DONE) code = time_empty(model, samples, &result.empty);
    if (code == CLI_DONE) code = time_runs(model, false, options->seconds, samples, &result.replay);
    if (code == CLI_DONE) code = time_runs(model, true, options->seconds, samples, &result.eager);
    if (code == CLI_DONE) code = cli_model_fetch(model);
    if (code == CLI_DONE) print_result(model, &result, options->json);
    free(samples);
    return code;
}

int cli_bench(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    cli_model model = {0};
    int code = cli_parse(
        argc, argv, CLI_OPT_INPUT | CLI_OPT_DEVICE | CLI_OPT_JSON | CLI_OPT_SECONDS | CLI_OPT_PASSES | CLI_OPT_CACHE,
        options);
    options->quiet = true; /* an empty graph is measured on purpose */
    if (code == CLI_DONE && options->help) {
        fputs(bench_help, stdout);
    } else if (code == CLI_DONE) {
        code = bench_model(options, &model);
    }
    cli_model_close(&model);
    cli_options_free(options);
    free(options);
    return code;
}
