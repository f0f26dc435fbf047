/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo profile: what the time of a model's runs goes into, node by node, and whether capturing them would help. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char profile_help[] =
    "usage: rondo profile FILE [inputs as for rondo run] [--repeat N] [--device NAME] [--settings S]\n"
    "                     [--json] [--trace OUT.json] [-O LEVEL] [--passes A,B] [--disable-pass NAME] [--cache DIR]\n"
    "Runs the model N times (default 20) step by step with every step timed, then as often unwatched, and from a capture\n"
    "where the device has graphs. FILE is a model (ONNX, TensorFlow, a saved graph) or an offline file.\n"
    "  --json       everything as JSON instead of tables\n"
    "  --trace F    every event as Chrome's trace JSON (chrome://tracing, ui.perfetto.dev)\n"
    "parts of the time: import, compile, load (kernels prepared, weights packed and copied), capture, copy in, launch (the\n"
    "host's time for enqueuing), kernel, wait (for a device that runs no kernel that can be timed), copy out, other;\n"
    "replay and eager are whole runs from the capture, and step by step with nobody watching\n";

typedef struct profile_run {
    cli_model model;
    rondo_profile *profile;
    uint64_t call, mark;
} profile_run;

static int profile_add(profile_run *run, rondo_profile_part part, const char *name) {
    uint64_t begin = run->mark;
    run->mark = rondo_profile_now();
    return cli_report(rondo_profile_add(run->profile, part, name, begin, run->mark));
}

static void profile_begin(profile_run *run) { run->call = run->mark = rondo_profile_now(); }

static int profile_end(profile_run *run, const char *name) {
    int code = profile_add(run, RONDO_PROFILE_OTHER, "tool");
    return code == CLI_DONE
               ? cli_report(rondo_profile_add(run->profile, RONDO_PROFILE_CALL, name, run->call, run->mark))
               : code;
}

static void on_pass(void *user, const rondo_pass_report *report) {
    const profile_run *run = user;
    uint64_t end = rondo_profile_now();
    (void)cli_report(rondo_profile_add(run->profile, RONDO_PROFILE_PASS, report->name, end - report->ns, end));
}

/* File to context, in one call of parts. */
static int prepare(const cli_options *options, profile_run *run) {
    cli_model *model = &run->model;
    profile_begin(run);
    int code = cli_model_import(options, model);
    if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_IMPORT, "model");
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_OTHER, "inputs");
    if (!options->cache || !*options->cache) { /* somebody who watches the passes gets no entry */
        model->after_pass = on_pass;
        model->user = run;
    }
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_COMPILE, "model");
    if (code == CLI_DONE) code = cli_model_prepare(model);
    if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_LOAD, "model");
    if (code == CLI_DONE && (rondo_device_info(model->device)->capabilities & RONDO_DEVICE_GRAPH_CAPABLE)) {
        code = cli_model_capture(model);
        if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_CAPTURE, "model");
    }
    return code == CLI_DONE ? profile_end(run, "set up") : code;
}

static int copy_one(profile_run *run, const cli_port *port, const char *name, rondo_copy_kind kind) {
    cli_model *model = &run->model;
    if (!port->bytes) return CLI_DONE;
    void *host = rondo_tensor_get_view(port->host)->data;
    bool in = kind == RONDO_COPY_HOST_TO_DEVICE;
    rondo_status status =
        rondo_stream_copy(model->stream, in ? port->device : host, in ? host : port->device, port->bytes, kind);
    if (!status) status = rondo_stream_synchronize(model->stream);
    int code = cli_report(status);
    return code == CLI_DONE ? profile_add(run, in ? RONDO_PROFILE_COPY_IN : RONDO_PROFILE_COPY_OUT, name) : code;
}

static int watched_run(profile_run *run) {
    cli_model *model = &run->model;
    rondo_tensor_info info;
    int code = CLI_DONE;
    profile_begin(run);
    for (uint32_t i = 0; i < model->input_count && code == CLI_DONE; ++i) {
        code = cli_report(rondo_plan_input(model->plan, i, &info));
        if (code == CLI_DONE) code = copy_one(run, &model->inputs[i], info.name, RONDO_COPY_HOST_TO_DEVICE);
    }
    if (code == CLI_DONE) code = profile_add(run, RONDO_PROFILE_OTHER, "tool");
    if (code == CLI_DONE) code = cli_report(rondo_profile_run(run->profile, model->context, model->stream, &run->mark));
    for (uint32_t i = 0; i < model->output_count && code == CLI_DONE; ++i) {
        code = cli_report(rondo_plan_output(model->plan, i, &info));
        if (code == CLI_DONE) code = copy_one(run, &model->outputs[i], info.name, RONDO_COPY_DEVICE_TO_HOST);
    }
    return code == CLI_DONE ? profile_end(run, "run") : code;
}

/* Unwatched and captured runs take turns, so that what slows the machine down slows both. */
static int plain_runs(profile_run *run, uint64_t count) {
    const cli_model *model = &run->model;
    int code = CLI_DONE;
    for (uint64_t i = 0; i < count && code == CLI_DONE; ++i) {
        profile_begin(run);
        code = cli_report(rondo_profile_run_eager(run->profile, model->context, model->stream, &run->mark));
        if (code == CLI_DONE) code = profile_end(run, "unwatched run");
        if (code != CLI_DONE || !model->graph) continue;
        profile_begin(run);
        code = cli_report(rondo_profile_replay(run->profile, model->graph, model->stream, &run->mark));
        if (code == CLI_DONE) code = profile_end(run, "replay");
    }
    return code;
}

/* Whole or not at all. */
static int write_trace(rondo_profile *profile, const char *path) {
    size_t size = strlen(path) + sizeof ".part";
    char *part = cli_allocate(size, 1);
    snprintf(part, size, "%s.part", path);
    FILE *file = fopen(part, "wb");
    int code = file ? cli_report(rondo_profile_write(profile, RONDO_PROFILE_TRACE, cli_write, file)) : CLI_BAD_DATA;
    bool good = file && fclose(file) == 0 && code == CLI_DONE && rename(part, path) == 0;
    if (file && !good) (void)remove(part);
    if (!good && (code == CLI_DONE || !file)) code = cli_fail(CLI_BAD_DATA, "%s: cannot be written", path);
    free(part);
    return code;
}

static int profile_model(const cli_options *options, profile_run *run) {
    cli_model *model = &run->model;
    int code = cli_model_open(options, model);
    if (code == CLI_DONE) code = cli_report(rondo_profile_create(model->instance, NULL, &run->profile));
    if (code == CLI_DONE) code = prepare(options, run);
    for (int i = 0; i < 3 && code == CLI_DONE; ++i) code = cli_model_run(model, true); /* warm up */
    for (uint64_t i = 0; i < options->repeat && code == CLI_DONE; ++i) code = watched_run(run);
    if (code == CLI_DONE) code = plain_runs(run, options->repeat);
    if (code == CLI_DONE && options->trace) code = write_trace(run->profile, options->trace);
    if (code != CLI_DONE) return code;
    if (!options->json)
        printf("%s on %s: %llu runs, each step timed\n\n", options->files[0], options->device ? options->device : "cpu",
               (unsigned long long)options->repeat);
    if (!options->json) cli_cache_print(model);
    return cli_report(
        rondo_profile_write(run->profile, options->json ? RONDO_PROFILE_JSON : RONDO_PROFILE_TEXT, cli_write, stdout));
}

int cli_profile(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    profile_run run = {0};
    int code = cli_parse(
        argc, argv, CLI_OPT_INPUT | CLI_OPT_DEVICE | CLI_OPT_PROFILE | CLI_OPT_PASSES | CLI_OPT_JSON | CLI_OPT_CACHE,
        options);
    if (code == CLI_DONE && options->help) {
        fputs(profile_help, stdout);
    } else if (code == CLI_DONE) {
        code = profile_model(options, &run);
    }
    cli_model_close(&run.model);
    rondo_profile_release(run.profile);
    cli_options_free(options);
    free(options);
    return code;
}
