/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo dump: each stage between the file and the replay, as text, dot or json. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const char dump_help[] =
    "usage: rondo dump FILE --stage model|compiled|plan|capture [--format text|dot|json] [inputs as for rondo run]\n"
    "       rondo dump FILE --stage model --format graph|graph-binary\n"
    "       rondo dump FILE --after PASS\n"
    "  model     the graph as it was read; needs no inputs\n"
    "  compiled  after the last pass\n"
    "  plan      steps, buffers with offsets, guards, the kernels picked and why\n"
    "  capture   the nodes that a capture of one run recorded\n"
    "  --after PASS  the graph as the last run of that pass left it, with its reasons on standard error (rondo passes)\n"
    "-O LEVEL, --lanes N, --target T, --passes A,B and --disable-pass NAME as for rondo run.\n"
    "An offline file has the stages plan and capture. The formats graph and graph-binary write the whole model, to be run\n"
    "and read again as any model is.\n"
    "Inputs that are not given are taken as with --random 0; open sizes need --dim, and a value that decides a branch\n"
    "needs --set or --input.\n";

/* As a graph's file; anything else is left to parse_format. */
static bool saves(const char *format, rondo_ir_file_format *out_format) {
    *out_format = format && strcmp(format, "graph-binary") == 0 ? RONDO_IR_FILE_BINARY : RONDO_IR_FILE_TEXT;
    return format && (*out_format == RONDO_IR_FILE_BINARY || strcmp(format, "graph") == 0);
}

static int parse_format(const char *text, rondo_dump_format *out_format) {
    if (!text || strcmp(text, "text") == 0) *out_format = RONDO_DUMP_TEXT;
    else if (strcmp(text, "dot") == 0) *out_format = RONDO_DUMP_DOT;
    else if (strcmp(text, "json") == 0) *out_format = RONDO_DUMP_JSON;
    else return cli_usage("--format is text, dot, json or graph, not '%s'", text);
    return CLI_DONE;
}

static int copy_file(const char *path, FILE *to) {
    FILE *from = fopen(path, "rb");
    if (!from) return cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
    char buffer[16384];
    size_t got;
    while ((got = fread(buffer, 1, sizeof buffer, from)) > 0) (void)fwrite(buffer, 1, got, to);
    fclose(from);
    return CLI_DONE;
}

/* The graph writes files only; this goes through one of its own. */
static int dump_capture(cli_model *model, rondo_dump_format format) {
    static const char *const endings[] = {"txt", "dot", "json"};
    int code = cli_model_prepare(model);
    if (code == CLI_DONE) code = cli_model_capture(model);
    if (code != CLI_DONE) return code;
    char folder[] = "/tmp/rondo-dump-XXXXXX", path[64];
    if (!mkdtemp(folder)) return cli_fail(CLI_BAD_DATA, "/tmp: %s", strerror(errno));
    snprintf(path, sizeof path, "%s/capture.%s", folder, endings[format]);
    code = cli_report(rondo_graph_debug_dump(model->graph, path));
    if (code == CLI_DONE) code = copy_file(path, stdout);
    (void)unlink(path);
    (void)rmdir(folder);
    return code;
}

/* ---- after a pass: the last of its runs counts, so each dump takes the place of the one before */

typedef struct dump_after {
    const char *pass;
    rondo_dump_format format;
    char *text, *reasons;
    size_t text_size, reasons_size;
    rondo_status status;
    uint32_t runs;
} dump_after;

static void after_pass(void *user, const rondo_pass_report *report) {
    dump_after *dump = user;
    if (dump->status || strcmp(report->name, dump->pass) != 0) return;
    free(dump->text);
    dump->text = NULL;
    FILE *text = open_memstream(&dump->text, &dump->text_size);
    if (!text) return;
    dump->status = rondo_ir_graph_dump(report->graph, dump->format, cli_write, text);
    (void)fclose(text);
    for (uint32_t i = 0; i < report->remark_count; ++i) {
        size_t size = strlen(report->remarks[i]);
        dump->reasons = cli_grow(dump->reasons, dump->reasons_size + size + 4u, 1);
        dump->reasons_size +=
            (size_t)snprintf(dump->reasons + dump->reasons_size, size + 4u, "  %s\n", report->remarks[i]);
    }
    dump->runs++;
}

static int dump_pass(cli_options *options, cli_model *model, rondo_dump_format format) {
    dump_after dump = {.pass = options->after, .format = format};
    options->random = options->report = true;
    model->after_pass = after_pass;
    model->user = &dump;
    int code = cli_model_open(options, model);
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE && !model->ir) code = cli_usage("an offline file holds a plan and no graph: --stage is plan");
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code == CLI_DONE) code = cli_report(dump.status);
    else rondo_status_release(dump.status);
    if (code == CLI_DONE && !dump.runs)
        code = cli_usage("pass '%s' did not run (rondo passes lists those that there are)", options->after);
    if (code == CLI_DONE) {
        (void)fwrite(dump.text, 1, dump.text_size, stdout);
        if (dump.reasons) fputs(dump.reasons, stderr);
    }
    free(dump.text);
    free(dump.reasons);
    return code;
}

static bool is_stage(const char *stage, const char *name) { return stage && strcmp(stage, name) == 0; }

static int save_model(const cli_options *options, cli_model *model, rondo_ir_file_format format) {
    if (!options->stage || strcmp(options->stage, "model") != 0)
        return cli_usage("--format %s is for --stage model", options->format);
    int code = cli_report(cli_instance(options, RONDO_LOG_WARNING, &model->instance));
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE && !model->ir) return cli_usage("an offline file holds a plan and no graph to save");
    return code == CLI_DONE ? cli_report(rondo_ir_graph_save(model->ir, format, cli_write, stdout)) : code;
}

static int dump_stage(cli_options *options, cli_model *model) {
    rondo_dump_format format = RONDO_DUMP_TEXT;
    rondo_ir_file_format file;
    const char *stage = options->stage;
    if (saves(options->format, &file)) return save_model(options, model, file);
    int code = parse_format(options->format, &format);
    if (code != CLI_DONE) return code;
    if (options->after && stage) return cli_usage("--stage and --after exclude each other");
    if (options->after) return dump_pass(options, model, format);
    bool is_model = is_stage(stage, "model"), is_plan = is_stage(stage, "plan");
    bool is_compiled = is_stage(stage, "compiled"), is_capture = is_stage(stage, "capture");
    if (!is_model && !is_plan && !is_compiled && !is_capture)
        return cli_usage("--stage is model, compiled, plan or capture%s%s%s", stage ? ", not '" : "",
                         stage ? stage : "", stage ? "'" : "");
    options->random = true;
    model->want_compiled = is_compiled;
    code = cli_model_open(options, model);
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE && !model->ir && (is_model || is_compiled))
        return cli_usage("an offline file holds a plan and no graph: --stage is plan or capture");
    if (code == CLI_DONE && is_model) return cli_report(rondo_ir_graph_dump(model->ir, format, cli_write, stdout));
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code != CLI_DONE) return code;
    if (is_compiled) return cli_report(rondo_ir_graph_dump(model->compiled, format, cli_write, stdout));
    if (is_plan) return cli_report(rondo_plan_dump(model->plan, format, cli_write, stdout));
    return dump_capture(model, format);
}

int cli_dump(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    cli_model model = {0};
    int code = cli_parse(argc, argv, CLI_OPT_INPUT | CLI_OPT_DEVICE | CLI_OPT_STAGE | CLI_OPT_PASSES, options);
    if (code == CLI_DONE && options->help) {
        fputs(dump_help, stdout);
    } else if (code == CLI_DONE) {
        code = dump_stage(options, &model);
    }
    cli_model_close(&model);
    cli_options_free(options);
    free(options);
    return code;
}
