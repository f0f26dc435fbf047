/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo conformance: the contract on any device. The tests are conformance/'s; here are options, progress and files. */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "conformance/conformance.h"

static const char conformance_help[] =
    "usage: rondo conformance --device NAME [--settings S] [--tag T]... [--expect FILE] [--json FILE] [--junit FILE]\n"
    "                         [--seed N] [--timeout SECONDS] [--stop] [--plugin FILE]...\n"
    "       rondo conformance --list [--tag T]...\n"
    "Runs the tests that any device must pass, each on a freshly opened device, and closes with\n"
    "\"N passed, N failed, N skipped\".\n\n"
    "  --tag T      only tests with this tag, this name, or (ending in '*') names that start so\n"
    "  --expect F   what is known to be otherwise: lines \"unsupported TEST RULE\" and \"expected-failure TEST REASON\";\n"
    "               an entry that is no longer true fails the run\n"
    "  --json F     writes the report as JSON; --junit F as JUnit XML\n"
    "  --seed N     of all that is random (default 1); the same seed gives the same run\n"
    "  --timeout N  a test that takes longer ends the run (default 120)\n"
    "  --stop       no test after the first that fails\n";

enum {
    CT_DEVICE = 256,
    CT_SETTINGS,
    CT_TAG,
    CT_LIST,
    CT_JSON,
    CT_JUNIT,
    CT_EXPECT,
    CT_SEED,
    CT_TIMEOUT,
    CT_STOP,
    CT_PLUGIN,
    CT_HELP
};

static const struct option conformance_options[] = {{"device", required_argument, 0, CT_DEVICE},
                                                    {"settings", required_argument, 0, CT_SETTINGS},
                                                    {"tag", required_argument, 0, CT_TAG},
                                                    {"list", no_argument, 0, CT_LIST},
                                                    {"json", required_argument, 0, CT_JSON},
                                                    {"junit", required_argument, 0, CT_JUNIT},
                                                    {"expect", required_argument, 0, CT_EXPECT},
                                                    {"seed", required_argument, 0, CT_SEED},
                                                    {"timeout", required_argument, 0, CT_TIMEOUT},
                                                    {"stop", no_argument, 0, CT_STOP},
                                                    {"plugin", required_argument, 0, CT_PLUGIN},
                                                    {"help", no_argument, 0, CT_HELP},
                                                    {0, 0, 0, 0}};

typedef struct conformance_arguments {
    const char *device, *json, *junit, *expect;
    const char *tags[256];
    bool list, help, terminal;
    uint64_t timeout;
    cli_options cli; /* the plugins */
    rondo_conformance_options run;
} conformance_arguments;

static int take(int option, conformance_arguments *a) {
    switch (option) {
    case CT_DEVICE: a->device = optarg; return CLI_DONE;
    case CT_SETTINGS: a->run.settings = optarg; return CLI_DONE;
    case CT_TAG:
        if (a->run.tag_count == 256) return cli_usage("at most 256 tags");
        a->tags[a->run.tag_count++] = optarg;
        return CLI_DONE;
    case CT_LIST: a->list = true; return CLI_DONE;
    case CT_JSON: a->json = optarg; return CLI_DONE;
    case CT_JUNIT: a->junit = optarg; return CLI_DONE;
    case CT_EXPECT: a->expect = optarg; return CLI_DONE;
    case CT_SEED:
        return cli_parse_u64(optarg, &a->run.seed) ? CLI_DONE
                                                   : cli_usage("--seed wants a whole number, not '%s'", optarg);
    case CT_TIMEOUT:
        if (cli_parse_u64(optarg, &a->timeout) && a->timeout >= 1 && a->timeout <= 86400) return CLI_DONE;
        return cli_usage("--timeout wants 1 to 86400 seconds, not '%s'", optarg);
    case CT_STOP: a->run.stop_at_first = 1; return CLI_DONE;
    case CT_PLUGIN:
        if (a->cli.plugin_count == 64) return cli_usage("at most 64 plugins");
        a->cli.plugins[a->cli.plugin_count++] = optarg;
        return CLI_DONE;
    default: a->help = true; return CLI_DONE;
    }
}

static int parse(int argc, char **argv, conformance_arguments *a) {
    int option, code = CLI_DONE;
    a->run = (rondo_conformance_options)RONDO_CONFORMANCE_OPTIONS_INIT;
    a->timeout = 120;
    opterr = 0;
    optind = 1;
    while (code == CLI_DONE && (option = getopt_long(argc, argv, ":", conformance_options, NULL)) != -1) {
        if (option == ':') code = cli_usage("%s wants a value (rondo conformance --help)", argv[optind - 1]);
        else if (option == '?') code = cli_usage("unknown option '%s' (rondo conformance --help)", argv[optind - 1]);
        else code = take(option, a);
    }
    if (code == CLI_DONE && optind < argc) code = cli_usage("rondo conformance takes no files: '%s'", argv[optind]);
    if (code == CLI_DONE && !a->help && !a->list && !a->device)
        code = cli_usage("rondo conformance wants --device NAME");
    a->run.tags = a->tags;
    return code;
}

/* ----------------------------------------------------------------------------------------------------- progress */

/* What a signal finds: the test that runs. */
static const char *volatile running;

/* A backend under test may hang or crash; which test it was must still be known. Only what a handler may call. */
static void on_signal(int number) {
    static const char slow[] = "\nfailed: the time is over in ", crash[] = "\nfailed: the process crashed in ";
    static const char tail[] = "\n0 passed, 1 failed, 0 skipped\n";
    const char *name = running ? running : "no test";
    ssize_t written = number == SIGALRM ? write(2, slow, sizeof slow - 1) : write(2, crash, sizeof crash - 1);
    written += write(2, name, strlen(name));
    written += write(1, tail, sizeof tail - 1);
    _exit(written < 0 ? CLI_BAD_DATA : CLI_BAD_DATA);
}

static void on_begin(void *user, const rondo_conformance_test *test, uint32_t index, uint32_t count) {
    const conformance_arguments *a = user;
    running = test->name;
    alarm((unsigned)a->timeout);
    if (!a->terminal) return;
    fprintf(stderr, "\r\033[K[%u/%u] %s", (unsigned)index + 1u, (unsigned)count, test->name);
    fflush(stderr);
}

static void on_end(void *user, const rondo_conformance_result *result) {
    const conformance_arguments *a = user;
    alarm(0);
    running = NULL;
    bool failed = result->outcome == RONDO_CONFORMANCE_FAILED || result->outcome == RONDO_CONFORMANCE_STALE;
    if (a->terminal && failed)
        fprintf(stderr, "\r\033[K%s: %s\n", rondo_conformance_outcome_name(result->outcome), result->name);
}

/* -------------------------------------------------------------------------------------------------------- files */

static int read_expectations(const char *path, conformance_arguments *a, rondo_conformance_expectation **out_list) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t size = 0, capacity = 0;
    if (!file) return cli_fail(CLI_BAD_DATA, "%s: cannot be read", path);
    do {
        capacity += 65536;
        text = cli_grow(text, capacity + 1, 1);
        size += fread(text + size, 1, capacity - size, file);
    } while (size == capacity && capacity < (16u << 20));
    bool good = !ferror(file) && size < capacity && !memchr(text, 0, size);
    fclose(file);
    text[size] = 0;
    const char *problem =
        good ? rondo_conformance_expectations_parse(text, out_list, &a->run.expectation_count) : "is no text file";
    free(text);
    a->run.expectations = *out_list;
    return problem ? cli_fail(CLI_BAD_DATA, "%s: %s", path, problem) : CLI_DONE;
}

static int write_report(const rondo_conformance_report *report, rondo_conformance_format format, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) return cli_fail(CLI_BAD_DATA, "%s: cannot be written", path);
    bool good = rondo_conformance_report_write(report, format, cli_write, file);
    good &= fclose(file) == 0;
    return good ? CLI_DONE : cli_fail(CLI_BAD_DATA, "%s: cannot be written", path);
}

/* ---------------------------------------------------------------------------------------------------------- run */

static bool listed(const conformance_arguments *a, const rondo_conformance_test *test) {
    if (!a->run.tag_count) return true;
    for (uint32_t i = 0; i < a->run.tag_count; ++i)
        if (rondo_conformance_test_has(test, a->tags[i])) return true;
    return false;
}

static int list_tests(const conformance_arguments *a) {
    const rondo_conformance_test *test;
    for (uint32_t i = 0; (test = rondo_conformance_test_at(i)); ++i)
        if (listed(a, test)) printf("%-34s [%s]\n    %s\n", test->name, test->tags, test->proves);
    return CLI_DONE;
}

static int finish(const conformance_arguments *a, const rondo_conformance_report *report) {
    if (a->terminal) fputs("\r\033[K", stderr);
    if (!report) return cli_fail(CLI_BAD_DATA, "out of memory: no report");
    if (!report->count) return cli_usage("no test has such a tag (rondo conformance --list)");
    if (!rondo_conformance_report_write(report, RONDO_CONFORMANCE_TEXT, cli_write, stdout))
        return cli_fail(CLI_BAD_DATA, "standard output: cannot be written");
    int code = report->failed ? CLI_BAD_DATA : CLI_DONE;
    if (a->json && write_report(report, RONDO_CONFORMANCE_JSON, a->json) != CLI_DONE) code = CLI_BAD_DATA;
    if (a->junit && write_report(report, RONDO_CONFORMANCE_JUNIT, a->junit) != CLI_DONE) code = CLI_BAD_DATA;
    return code;
}

static int run(conformance_arguments *a) {
    static const int signals[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    rondo_conformance_expectation *expectations = NULL;
    rondo_conformance_report *report = NULL;
    rondo_instance *instance = NULL;
    int code = a->expect ? read_expectations(a->expect, a, &expectations) : CLI_DONE;
    if (code == CLI_DONE) code = cli_report(cli_instance(&a->cli, RONDO_LOG_ERROR, &instance));
    if (code == CLI_DONE) {
        a->terminal = isatty(STDERR_FILENO) == 1;
        a->run.on_begin = on_begin;
        a->run.on_end = on_end;
        a->run.user = a;
        for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) signal(signals[i], on_signal);
        code = cli_report(rondo_conformance_run(instance, a->device, &a->run, &report));
        for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) signal(signals[i], SIG_DFL);
        if (code == CLI_DONE) code = finish(a, report);
        rondo_conformance_report_release(report);
    }
    rondo_instance_release(instance);
    free(expectations);
    return code;
}

int cli_conformance(int argc, char **argv) {
    conformance_arguments *a = cli_allocate(1, sizeof *a);
    int code = parse(argc, argv, a);
    if (code == CLI_DONE && a->help) fputs(conformance_help, stdout);
    else if (code == CLI_DONE) code = a->list ? list_tests(a) : run(a);
    free(a);
    return code;
}
