/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo check-operator: the contracts of an operator, asked of each other. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <rondo/operator.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static const char check_operator_help[] =
    "usage: rondo check-operator [LIB] NAME [--seed N] [--rounds N] [--input NAME=TYPE[..]]... [--schema TEXT]\n"
    "                            [--json] [--plugin FILE]\n"
    "Draws inputs of an operator, those it accepts and those it refuses, and holds schema, meta and implementation to\n"
    "each other. The first disagreement is reported under the contract that is broken, with the inputs that show it, made\n"
    "small. NAME is an operator of the library LIB (\"my.domain::AddCustom\"), or without LIB a built-in one or one of\n"
    "RONDO_OPERATOR_PATH.\n"
    "\n"
    "  --seed N               another draw (0); the same number draws the same inputs\n"
    "  --rounds N             how many (1000)\n"
    "  --input NAME=TYPE[..]  draw around this one: --input x=float32[8,2048], for operators that accept few\n"
    "  --schema TEXT          first held against it: \"my::add(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor\"\n"
    "  --json                 for programs\n"
    "\n"
    "The operator's code runs in a process of its own: when it crashes, that is reported under its contract.\n";

typedef struct example {
    int64_t shape[RONDO_RANK_MAX];
} example;

/* "float32[8,2048]" */
static int parse_example(const char *name, const char *text, rondo_tensor_view *view, int64_t *shape) {
    const char *bracket = strchr(text, '[');
    size_t length = bracket ? (size_t)(bracket - text) : 0;
    *view = (rondo_tensor_view){.device_type = 1, .shape = shape};
    for (rondo_dtype d = 1; d < RONDO_DTYPE_COUNT && length; ++d)
        if (strlen(rondo_dtype_name(d)) == length && memcmp(rondo_dtype_name(d), text, length) == 0) view->dtype = d;
    const char *at = bracket ? bracket + 1 : text;
    while (view->dtype && view->rank < RONDO_RANK_MAX && *at >= '0' && *at <= '9') {
        char *end;
        shape[view->rank++] = strtoll(at, &end, 10);
        at = *end == ',' ? end + 1 : end;
    }
    if (view->dtype && strcmp(at, "]") == 0) return CLI_DONE;
    return cli_usage("--input %s wants a type and sizes like float32[2,3], not '%s'", name, text);
}

/* In the order of the operator's inputs: all up to the last that is given must be. */
static int find_examples(rondo_instance *instance, const char *name, const cli_options *options,
                         rondo_tensor_view *views, example *shapes, uint32_t *out_count) {
    rondo_operator_info info = RONDO_OPERATOR_INFO_INIT;
    rondo_operator_operand operand;
    int code = cli_report(rondo_operator_find(instance, name, &info));
    *out_count = 0;
    for (uint32_t i = 0; i < info.input_count && code == CLI_DONE && *out_count < options->input_count; ++i) {
        const char *text = NULL;
        code = cli_report(rondo_operator_info_input(&info, i, &operand));
        for (uint32_t k = 0; code == CLI_DONE && k < options->input_count; ++k)
            if (strcmp(options->inputs[k].name, operand.name) == 0) text = options->inputs[k].value;
        if (code == CLI_DONE && !text)
            code = cli_usage("--input: '%s' comes before the others and must be given too", operand.name);
        if (code == CLI_DONE) code = parse_example(operand.name, text, &views[i], shapes[i].shape);
        if (code == CLI_DONE) ++*out_count;
    }
    if (code == CLI_DONE && *out_count < options->input_count)
        code = cli_usage("--input: operator '%s' has no such input", name);
    return code;
}

static int print_json(const char *name, const cli_options *options, const rondo_operator_check_report *report,
                      rondo_status status) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "operator", name);
    cJSON_AddNumberToObject(object, "seed", (double)options->seed);
    cJSON_AddNumberToObject(object, "drawn", report->drawn);
    cJSON_AddNumberToObject(object, "accepted", report->accepted);
    cJSON_AddNumberToObject(object, "refused", report->refused);
    cJSON_AddNumberToObject(object, "run", report->run);
    cJSON_AddBoolToObject(object, "agrees", !status);
    if (status) {
        cJSON_AddStringToObject(object, "contract", rondo_layer_name(rondo_status_layer(status)));
        cJSON_AddStringToObject(object, "code", rondo_code_name(rondo_status_code(status)));
        cJSON_AddStringToObject(object, "message", rondo_status_message(status));
        cJSON *notes = cJSON_AddArrayToObject(object, "notes");
        for (size_t i = 0; i < rondo_status_note_count(status); ++i)
            cJSON_AddItemToArray(notes, cJSON_CreateString(rondo_status_note(status, i)));
    }
    char *json = cJSON_Print(object);
    puts(json ? json : "{}");
    cJSON_free(json);
    cJSON_Delete(object);
    return cli_report(status);
}

/* The contract whose code runs now, for who waits: the last byte counts. */
static void now_runs(int teller, rondo_layer layer) {
    const unsigned char byte = (unsigned char)layer;
    while (write(teller, &byte, 1) < 0 && errno == EINTR) {}
}

static int check_operator(rondo_instance *instance, const char *name, const cli_options *options, int teller) {
    rondo_tensor_view views[RONDO_OPERATOR_OPERANDS_MAX];
    example shapes[RONDO_OPERATOR_OPERANDS_MAX];
    rondo_operator_check_options check = RONDO_OPERATOR_CHECK_OPTIONS_INIT;
    rondo_operator_check_report report = RONDO_OPERATOR_CHECK_REPORT_INIT;
    if (options->input_count > RONDO_OPERATOR_OPERANDS_MAX) return cli_usage("too many --input");
    int code = find_examples(instance, name, options, views, shapes, &check.example_count);
    if (code != CLI_DONE) return code;
    check.examples = views;
    check.seed = options->seed;
    check.rounds = (uint32_t)options->rounds;
    rondo_status status = RONDO_OK;
    now_runs(teller, RONDO_LAYER_SCHEMA);
    if (options->schema) status = rondo_operator_check_schema(instance, name, options->schema);
    now_runs(teller, RONDO_LAYER_IMPLEMENTATION);
    if (!status) status = rondo_operator_check(instance, name, &check, &report);
    if (options->json) return print_json(name, options, &report, status);
    if (!status)
        printf("%s: the contracts agree: %u drawn, %u accepted, %u refused, %u run\n", name, report.drawn,
               report.accepted, report.refused, report.run);
    return cli_report(status);
}

/* A file that is not there is a bad file, not an absent device. */
static int load(rondo_instance *instance, const char *path) {
    rondo_status status = rondo_operator_load(instance, path);
    bool absent = rondo_status_code(status) == RONDO_CODE_NOT_FOUND;
    int code = cli_report(status);
    return absent ? CLI_BAD_DATA : code;
}

static int check_here(const cli_options *options, int teller) {
    rondo_instance *instance = NULL;
    bool library = options->file_count == 2;
    now_runs(teller, RONDO_LAYER_LOADING);
    int code = cli_report(cli_instance(options, RONDO_LOG_WARNING, &instance));
    if (code == CLI_DONE && library) code = load(instance, options->files[0]);
    if (code == CLI_DONE) code = check_operator(instance, options->files[library ? 1 : 0], options, teller);
    rondo_instance_release(instance);
    return code;
}

static int report_crash(const cli_options *options, rondo_layer layer, int number) {
    const char *name = options->files[options->file_count - 1];
    if (options->json) {
        char text[128];
        snprintf(text, sizeof text, "crashed with signal %d (%s)", number, strsignal(number));
        cJSON *object = cJSON_CreateObject();
        cJSON_AddStringToObject(object, "operator", name);
        cJSON_AddNumberToObject(object, "seed", (double)options->seed);
        cJSON_AddBoolToObject(object, "agrees", false);
        cJSON_AddStringToObject(object, "contract", rondo_layer_name(layer));
        cJSON_AddStringToObject(object, "code", rondo_code_name(RONDO_CODE_KERNEL_FAILED));
        cJSON_AddStringToObject(object, "message", text);
        char *json = cJSON_Print(object);
        puts(json ? json : "{}");
        cJSON_free(json);
        cJSON_Delete(object);
    }
    return cli_fail(CLI_BAD_DATA, "%s (%s): operator '%s' crashed with signal %d (%s); seed %llu draws the same inputs",
                    rondo_code_name(RONDO_CODE_KERNEL_FAILED), rondo_layer_name(layer), name, number, strsignal(number),
                    (unsigned long long)options->seed);
}

/* The code of others may crash. */
static int check_apart(const cli_options *options) {
    int ends[2], state = 0;
    unsigned char layer = RONDO_LAYER_LOADING, last;
    if (pipe(ends) != 0) return cli_fail(CLI_BAD_DATA, "no pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        int code = check_here(options, ends[1]);
        if (fflush(stdout) != 0 && code == CLI_DONE)
            code = cli_fail(CLI_BAD_DATA, "standard output: cannot be written");
        exit(code); /* runs the leak check of a sanitizer build */
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return cli_fail(CLI_BAD_DATA, "no process: %s", strerror(errno));
    }
    for (ssize_t got = 1; got > 0 || (got < 0 && errno == EINTR);) {
        got = read(ends[0], &last, 1);
        if (got > 0) layer = last;
    }
    close(ends[0]);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    if (WIFSIGNALED(state)) return report_crash(options, (rondo_layer)layer, WTERMSIG(state));
    return WEXITSTATUS(state);
}

int cli_check_operator(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    int code = cli_parse(argc, argv, CLI_OPT_JSON | CLI_OPT_DRAW, options);
    if (code == CLI_DONE && options->help) {
        fputs(check_operator_help, stdout);
    } else if (code == CLI_DONE && (options->file_count < 1 || options->file_count > 2)) {
        code =
            cli_usage("an operator's name is wanted, perhaps with its library before it (rondo check-operator --help)");
    } else if (code == CLI_DONE) {
        code = check_apart(options);
    }
    cli_options_free(options);
    free(options);
    return code;
}
