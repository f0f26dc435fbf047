/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo run: load, compile, capture, replay, and write every output or none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static const char run_help[] =
    "usage: rondo run FILE [inputs] [--output-dir DIR] [options]\n"
    "Loads an ONNX model or a frozen TensorFlow graph, compiles it for the inputs' sizes, captures one run and replays it.\n"
    "A model in which something depends on data runs on a session, in parts.\n"
    "An offline file (rondo compile) is mapped and used where it lies; it takes the sizes and values it was made for.\n"
    "\n"
    "inputs\n"
    "  --input NAME=FILE.npy   the value of an input\n"
    "  --set NAME=VALUE        every element of an input, as a number\n"
    "  --random SEED           the inputs that are not given: floats in [-1, 1), whole numbers 0 to 7\n"
    "  --dim NAME=N            an open size, by its symbol or as INPUT.AXIS, for inputs that come from no file\n"
    "\n"
    "options\n"
    "  --output-dir DIR        writes each output as DIR/NAME.npy ('/' and ':' in a name become '_'), all or none\n"
    "  --check DIR             compares each output with DIR/NAME.npy: |got - want| <= 1e-5 + 1e-4 * max|want|\n"
    "  --device A[,B...]       cpu (default), sim, sim:1, ... (rondo devices); one for each target, in their order\n"
    "  --target A,B[:OPS][;...]  kernel catalogues, best first (cpu,ref), and what they are meant for; several targets stand\n"
    "                          with ';' between: a node runs on the first that has a kernel for it\n"
    "  --settings K=V,...      for the device's backend\n"
    "  --eager                 enqueue call by call instead of replaying a capture\n"
    "  --repeat N              run N times\n"
    "  --threads N             1 so far\n"
    "  -O LEVEL                0 to 3: how much the compiler does (2); rondo passes lists what\n"
    "  --lanes N               independent calls on up to N streams, 1 to 16 (as many as pay)\n"
    "  --passes A,B            these passes, once each in this order, instead\n"
    "  --disable-pass NAME     leave one out; may be repeated\n"
    "  --cache DIR             take the plan from there, or leave it there (RONDO_CACHE_DIR; none)\n"
    "  --why                   say what the compiler decided\n"
    "  --json                  one JSON object on standard output instead of text\n"
    "  --plugin FILE           load a plugin; may be repeated\n"
    "\n"
    "exit codes: 0 done; 1 bad file, tensor or output; 2 bad command line; 3 unsupported operator or absent device\n";

static char *output_path(const char *folder, const char *name, const char *ending) {
    size_t size = strlen(folder) + strlen(name) + strlen(ending) + 2;
    char *path = cli_allocate(size, 1);
    int length = snprintf(path, size, "%s/", folder);
    for (const char *c = name; *c; ++c) path[length++] = (*c == '/' || *c == ':') ? '_' : *c;
    memcpy(path + length, ending, strlen(ending) + 1);
    return path;
}

static int write_output(const cli_model *model, const char *folder, uint32_t index, char **out_temporary,
                        char **out_final) {
    rondo_tensor_info info;
    rondo_status status = cli_model_output(model, index, &info);
    if (status) return cli_report(status);
    *out_temporary = output_path(folder, info.name, ".npy.part");
    *out_final = output_path(folder, info.name, ".npy");
    return cli_npy_write(*out_temporary, rondo_tensor_get_view(model->outputs[index].host));
}

/* A rename can fail for one file when others are in place already. So what it would fail on is looked for first, and what
 * stood there is kept aside until all are in place. */
static int put_in_place(char **temporary, char **final, uint32_t count) {
    int code = CLI_DONE;
    char **before = cli_allocate(count, sizeof *before);
    uint32_t done = 0;
    for (; done < count && code == CLI_DONE; ++done) {
        size_t size = strlen(final[done]) + 8;
        before[done] = cli_allocate(size, 1);
        snprintf(before[done], size, "%s.before", final[done]);
        struct stat info;
        bool folder = lstat(final[done], &info) == 0 && S_ISDIR(info.st_mode);
        if (folder) errno = EISDIR;
        else if (rename(final[done], before[done]) != 0 && errno != ENOENT) folder = true;
        if (folder || rename(temporary[done], final[done]) != 0)
            code = cli_fail(CLI_BAD_DATA, "%s: %s", final[done], strerror(errno));
    }
    for (uint32_t i = 0; i < done; ++i) {
        if (code == CLI_DONE) {
            (void)unlink(before[i]);
        } else {
            if (i + 1 < done) (void)unlink(final[i]); /* the last one is what failed */
            (void)rename(before[i], final[i]);
        }
        free(before[i]);
    }
    free(before);
    return code;
}

/* All files are written under other names first and renamed when the last one is whole. */
static int write_outputs(const cli_model *model, const char *folder) {
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST) return cli_fail(CLI_BAD_DATA, "%s: %s", folder, strerror(errno));
    uint32_t count = model->output_count;
    char **temporary = cli_allocate(count, sizeof *temporary), ** final = cli_allocate(count, sizeof *final);
    int code = CLI_DONE;
    for (uint32_t i = 0; i < count && code == CLI_DONE; ++i) {
        code = write_output(model, folder, i, &temporary[i], &final[i]);
        for (uint32_t k = 0; k < i && code == CLI_DONE; ++k)
            if (strcmp(final[i], final[k]) == 0)
                code = cli_fail(CLI_BAD_DATA, "two outputs would both be %s", final[i]);
    }
    if (code == CLI_DONE) code = put_in_place(temporary, final, count);
    for (uint32_t i = 0; i < count; ++i) {
        if (code != CLI_DONE && temporary[i]) (void)unlink(temporary[i]);
        free(temporary[i]);
        free(final[i]);
    }
    if (code != CLI_DONE && made) (void)rmdir(folder);
    free(temporary);
    free(final);
    return code;
}

static int check_outputs(const cli_model *model, const char *folder) {
    int code = CLI_DONE;
    for (uint32_t i = 0; i < model->output_count; ++i) {
        rondo_tensor_info info;
        rondo_status status = cli_model_output(model, i, &info);
        if (status) return cli_report(status);
        char *path = output_path(folder, info.name, ".npy");
        rondo_tensor *want = NULL;
        int read = cli_npy_read(model->instance, path, &want);
        free(path);
        if (read != CLI_DONE) return read;
        char reason[256];
        if (!cli_tensor_agrees(rondo_tensor_get_view(model->outputs[i].host), rondo_tensor_get_view(want), 1e-4, 1e-5,
                               true, reason, sizeof reason))
            code = cli_fail(CLI_BAD_DATA, "output '%s' does not agree: %s", info.name, reason);
        rondo_tensor_release(want);
    }
    return code;
}

static void print_why(const cli_model *model, FILE *file) {
    for (uint32_t i = 0;; ++i) {
        const char *remark = rondo_plan_remark(model->plan, i);
        if (!remark) return;
        fprintf(file, "  %s\n", remark);
    }
}

/* Of a model that has no plan from end to end. */
static void print_session(const cli_model *model, const cli_options *options) {
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    if (cli_report(rondo_ir_graph_get_info(model->ir, &info)) != CLI_DONE) return;
    if (options->json) {
        printf("{\"nodes\": %u, \"regions\": true, \"load_us\": %.1f}\n", info.nodes, (double)model->load_ns / 1e3);
        return;
    }
    printf("%u nodes; what depends on data ran between plans, on a session\n", info.nodes);
}

static void print_outputs(const cli_model *model) {
    for (uint32_t i = 0; i < model->output_count; ++i) {
        rondo_tensor_info output;
        if (cli_report(cli_model_output(model, i, &output)) != CLI_DONE) return;
        char text[256];
        cli_tensor_text(&output, text, sizeof text);
        printf("%s %s\n", output.name, text);
    }
}

static void print_summary(const cli_model *model, const cli_options *options) {
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    if (cli_report(rondo_plan_get_info(model->plan, &info)) != CLI_DONE) return;
    if (options->json) {
        printf("{%s\"nodes\": %u, \"calls\": %u, \"segments\": %u, \"arena_bytes\": %llu, \"weight_bytes\": %llu, "
               "\"load_us\": %.1f, \"compile_us\": %.1f, \"capture_us\": %.1f}\n",
               cli_cache_json(model), info.nodes_in, info.calls, info.segments, (unsigned long long)info.arena_bytes,
               (unsigned long long)info.weight_bytes, (double)model->load_ns / 1e3, (double)model->compile_ns / 1e3,
               (double)model->capture_ns / 1e3);
        return;
    }
    printf("%u nodes -> %u calls in %u segment%s; arena %llu bytes, weights %llu bytes\n", info.nodes_in, info.calls,
           info.segments, info.segments == 1 ? "" : "s", (unsigned long long)info.arena_bytes,
           (unsigned long long)info.weight_bytes);
    if (options->why) print_why(model, stdout);
    if (options->why) cli_cache_print(model);
}

static int run_plan(const cli_options *options, cli_model *model) {
    int code = cli_model_prepare(model);
    /* No capture holds the copies between devices. */
    if (code == CLI_DONE && !options->eager && model->device_count == 1) code = cli_model_capture(model);
    for (uint64_t i = 0; i < options->repeat && code == CLI_DONE; ++i) code = cli_model_run(model, options->eager);
    return code == CLI_DONE ? cli_model_fetch(model) : code;
}

static int run_model(const cli_options *options, cli_model *model) {
    int code = cli_model_open(options, model);
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    model->regions = true;
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code == CLI_DONE) code = model->by_session ? cli_session_run_model(options, model) : run_plan(options, model);
    if (code == CLI_DONE && options->check_dir) code = check_outputs(model, options->check_dir);
    if (code == CLI_DONE && options->output_dir) code = write_outputs(model, options->output_dir);
    if (code == CLI_DONE && model->by_session) print_session(model, options);
    else if (code == CLI_DONE) print_summary(model, options);
    if (code == CLI_DONE && !options->json) print_outputs(model);
    return code;
}

int cli_run(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    cli_model model = {0};
    int code = cli_parse(argc, argv,
                         CLI_OPT_INPUT | CLI_OPT_OUTPUT_DIR | CLI_OPT_DEVICE | CLI_OPT_RUN | CLI_OPT_WHY |
                             CLI_OPT_PASSES | CLI_OPT_CHECK | CLI_OPT_JSON | CLI_OPT_CACHE,
                         options);
    if (code == CLI_DONE && options->help) {
        fputs(run_help, stdout);
    } else if (code == CLI_DONE) {
        code = run_model(options, &model);
    }
    cli_model_close(&model);
    cli_options_free(options);
    free(options);
    return code;
}
