/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo compile: a model becomes an offline file. */
#include <stdlib.h>

#include "cli.h"

static const char compile_help[] =
    "usage: rondo compile FILE -o OUT.rondo [--dim ...] [--set ...] [--input NAME=FILE.npy] [options]\n"
    "Compiles an ONNX model or a TensorFlow graph for given sizes and values and writes the plan with its packed weights as\n"
    "one file, whole or not at all. rondo run OUT.rondo maps it and runs it; rondo info OUT.rondo shows what it holds.\n"
    "\n"
    "  -o, --output FILE    where to\n"
    "  --dim NAME=N         an open size, by its symbol or as INPUT.AXIS\n"
    "  --set NAME=VALUE     the value of an input that decides a branch or a shape: the file is for that value only\n"
    "  --target A,B[:OPS]   kernel catalogues, best first (cpu,ref), and the operators they are meant for (Conv,MatMul);\n"
    "                       several targets, with ';' between, are several devices when it runs\n"
    "  -O LEVEL             0 to 3: how much the compiler does (2)\n"
    "  --lanes N            independent calls on up to N streams, 1 to 16 (as many as pay)\n"
    "  --passes A,B         these passes, once each in this order, instead\n"
    "  --disable-pass NAME  leave one out; may be repeated\n"
    "  --list-passes        the passes there are\n"
    "  --cache DIR          take the plan from there, or leave it there (RONDO_CACHE_DIR; none)\n"
    "  --report             each change and decision of the compiler with its reason, and what the file holds\n"
    "  --json               the sizes as one JSON object\n"
    "  --plugin FILE        load a plugin; may be repeated\n"
    "A value that decides a branch or a shape and is not given is an error that names it.\n";

static int report(const cli_options *options, const cli_model *model) {
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    rondo_plan_file_info file = RONDO_PLAN_FILE_INFO_INIT;
    rondo_plan *plan = NULL;
    /* What was written is opened again: the report is about the file, and a file that cannot be read is a failure. */
    rondo_status status = rondo_plan_open(model->instance, options->output, &plan);
    if (!status) status = rondo_plan_get_info(plan, &info);
    if (!status) status = rondo_plan_get_file_info(plan, &file);
    if (!status && options->json)
        printf(
            "{%s\"nodes\": %u, \"calls\": %u, \"arena_bytes\": %llu, \"arena_lower_bound\": %llu, \"weight_bytes\": %llu, \"file_bytes\": %llu, "
            "\"load_us\": %.1f, \"compile_us\": %.1f}\n",
            cli_cache_json(model), info.nodes_in, info.calls, (unsigned long long)info.arena_bytes,
            (unsigned long long)info.arena_lower_bound, (unsigned long long)info.weight_bytes,
            (unsigned long long)file.file_bytes, (double)model->load_ns / 1e3, (double)model->compile_ns / 1e3);
    if (!status && !options->json)
        printf("%s: %u nodes -> %u calls; arena %llu bytes (at least %llu), weights %llu bytes, file %llu bytes\n",
               options->output, info.nodes_in, info.calls, (unsigned long long)info.arena_bytes,
               (unsigned long long)info.arena_lower_bound, (unsigned long long)info.weight_bytes,
               (unsigned long long)file.file_bytes);
    if (!status && options->report && !options->json) cli_cache_print(model);
    for (uint32_t i = 0; !status && options->report && !options->json && rondo_plan_remark(plan, i); ++i)
        printf("  %s\n", rondo_plan_remark(plan, i));
    for (uint32_t i = 0; !status && options->report && !options->json && i < file.partitions; ++i) {
        rondo_plan_partition part = RONDO_PLAN_PARTITION_INIT;
        status = rondo_plan_get_partition(plan, i, &part);
        if (!status && part.kernel_set)
            printf("  %llu bytes of weights packed for kernel set %s\n", (unsigned long long)part.bytes,
                   part.kernel_set);
    }
    rondo_plan_release(plan);
    return cli_report(status);
}

static int compile_model(cli_options *options, cli_model *model) {
    if (!options->output) return cli_usage("-o OUT.rondo is wanted (rondo compile --help)");
    options->random = true;
    int code = cli_report(cli_instance(options, RONDO_LOG_WARNING, &model->instance));
    if (code == CLI_DONE) code = cli_model_import(options, model);
    if (code == CLI_DONE && !model->ir) return cli_usage("%s is an offline file already", options->files[0]);
    if (code == CLI_DONE) code = cli_model_inputs(options, model);
    if (code == CLI_DONE) code = cli_model_compile(options, model);
    if (code == CLI_DONE) code = cli_report(rondo_plan_write(model->instance, model->plan, options->output));
    return code == CLI_DONE ? report(options, model) : code;
}

int cli_compile(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    cli_model model = {0};
    int code =
        cli_parse(argc, argv, CLI_OPT_INPUT | CLI_OPT_COMPILE | CLI_OPT_PASSES | CLI_OPT_JSON | CLI_OPT_CACHE, options);
    if (code == CLI_DONE && options->help) {
        fputs(compile_help, stdout);
    } else if (code == CLI_DONE && options->list) {
        code = cli_list_passes(options->json);
    } else if (code == CLI_DONE) {
        code = compile_model(options, &model);
    }
    cli_model_close(&model);
    cli_options_free(options);
    free(options);
    return code;
}
