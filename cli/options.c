/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of options for all commands; each command names those it knows. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum {
    OPT_INPUT = 256,
    OPT_DIM,
    OPT_SET,
    OPT_RANDOM,
    OPT_OUTPUT_DIR,
    OPT_DEVICE,
    OPT_SETTINGS,
    OPT_PLUGIN,
    OPT_EAGER,
    OPT_REPEAT,
    OPT_THREADS,
    OPT_WHY,
    OPT_JSON,
    OPT_STAGE,
    OPT_FORMAT,
    OPT_LIST,
    OPT_PASSES,
    OPT_TIMEOUT,
    OPT_CHECK,
    OPT_SECONDS,
    OPT_OUTPUT,
    OPT_TARGET,
    OPT_REPORT,
    OPT_DISABLE,
    OPT_LEVEL,
    OPT_LANES,
    OPT_LIST_PASSES,
    OPT_AFTER,
    OPT_SEED,
    OPT_ROUNDS,
    OPT_SCHEMA,
    OPT_CACHE,
    OPT_TRACE,
    OPT_HELP
};

static const struct option long_options[] = {{"input", required_argument, 0, OPT_INPUT},
                                             {"dim", required_argument, 0, OPT_DIM},
                                             {"set", required_argument, 0, OPT_SET},
                                             {"random", required_argument, 0, OPT_RANDOM},
                                             {"output-dir", required_argument, 0, OPT_OUTPUT_DIR},
                                             {"device", required_argument, 0, OPT_DEVICE},
                                             {"settings", required_argument, 0, OPT_SETTINGS},
                                             {"plugin", required_argument, 0, OPT_PLUGIN},
                                             {"eager", no_argument, 0, OPT_EAGER},
                                             {"repeat", required_argument, 0, OPT_REPEAT},
                                             {"threads", required_argument, 0, OPT_THREADS},
                                             {"why", no_argument, 0, OPT_WHY},
                                             {"json", no_argument, 0, OPT_JSON},
                                             {"stage", required_argument, 0, OPT_STAGE},
                                             {"format", required_argument, 0, OPT_FORMAT},
                                             {"list", no_argument, 0, OPT_LIST},
                                             {"passes", required_argument, 0, OPT_PASSES},
                                             {"timeout", required_argument, 0, OPT_TIMEOUT},
                                             {"check", required_argument, 0, OPT_CHECK},
                                             {"seconds", required_argument, 0, OPT_SECONDS},
                                             {"output", required_argument, 0, OPT_OUTPUT},
                                             {"target", required_argument, 0, OPT_TARGET},
                                             {"report", no_argument, 0, OPT_REPORT},
                                             {"disable-pass", required_argument, 0, OPT_DISABLE},
                                             {"level", required_argument, 0, OPT_LEVEL},
                                             {"lanes", required_argument, 0, OPT_LANES},
                                             {"list-passes", no_argument, 0, OPT_LIST_PASSES},
                                             {"after", required_argument, 0, OPT_AFTER},
                                             {"seed", required_argument, 0, OPT_SEED},
                                             {"rounds", required_argument, 0, OPT_ROUNDS},
                                             {"schema", required_argument, 0, OPT_SCHEMA},
                                             {"cache", required_argument, 0, OPT_CACHE},
                                             {"trace", required_argument, 0, OPT_TRACE},
                                             {"help", no_argument, 0, OPT_HELP},
                                             {0, 0, 0, 0}};

/* The bits of a command's set of which an option needs one; 0: every command has it. */
static uint32_t needed_bit(int option) {
    switch (option) {
    case OPT_INPUT: return CLI_OPT_INPUT | CLI_OPT_DRAW;
    case OPT_DIM:
    case OPT_SET:
    case OPT_RANDOM: return CLI_OPT_INPUT;
    case OPT_OUTPUT_DIR: return CLI_OPT_OUTPUT_DIR;
    case OPT_DEVICE:
    case OPT_SETTINGS: return CLI_OPT_DEVICE;
    case OPT_REPEAT: return CLI_OPT_RUN | CLI_OPT_PROFILE;
    case OPT_EAGER:
    case OPT_THREADS: return CLI_OPT_RUN;
    case OPT_TRACE: return CLI_OPT_PROFILE;
    case OPT_WHY: return CLI_OPT_WHY;
    case OPT_JSON: return CLI_OPT_JSON;
    case OPT_STAGE:
    case OPT_FORMAT: return CLI_OPT_STAGE;
    case OPT_PASSES: return CLI_OPT_LIST | CLI_OPT_PASSES;
    case OPT_DISABLE:
    case OPT_LANES:
    case OPT_TARGET:
    case OPT_LEVEL: return CLI_OPT_PASSES;
    case OPT_AFTER: return CLI_OPT_STAGE;
    case OPT_LIST:
    case OPT_TIMEOUT: return CLI_OPT_LIST;
    case OPT_CHECK: return CLI_OPT_CHECK;
    case OPT_SECONDS: return CLI_OPT_SECONDS;
    case OPT_OUTPUT:
    case OPT_LIST_PASSES:
    case OPT_REPORT: return CLI_OPT_COMPILE;
    case OPT_CACHE: return CLI_OPT_CACHE;
    case OPT_SEED:
    case OPT_SCHEMA:
    case OPT_ROUNDS: return CLI_OPT_DRAW;
    default: return 0;
    }
}

bool cli_parse_u64(const char *text, uint64_t *out_value) {
    char *end;
    if (!*text || *text == '-' || *text == '+' || *text == ' ') return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || errno) return false;
    *out_value = value;
    return true;
}

bool cli_parse_i64(const char *text, int64_t *out_value) {
    char *end;
    if (!*text || *text == ' ') return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end || errno) return false;
    *out_value = value;
    return true;
}

bool cli_parse_f64(const char *text, double *out_value) {
    char *end;
    if (!*text || *text == ' ') return false;
    errno = 0;
    double value = strtod(text, &end);
    if (*end || (errno == ERANGE && fabs(value) > 1)) return false;
    *out_value = value;
    return true;
}

/* NAME=VALUE; the last '=' counts for nothing: names may not hold one, values may. */
static int add_pair(const char *option, const char *text, cli_pair **pairs, uint32_t *count) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) return cli_usage("--%s wants NAME=VALUE, not '%s'", option, text);
    char *name = cli_allocate((size_t)(equals - text) + 1, 1);
    memcpy(name, text, (size_t)(equals - text));
    for (uint32_t i = 0; i < *count; ++i) {
        if (strcmp((*pairs)[i].name, name) == 0) {
            int code = cli_usage("--%s %s is given twice", option, name);
            free(name);
            return code;
        }
    }
    *pairs = cli_grow(*pairs, *count + 1u, sizeof **pairs);
    (*pairs)[(*count)++] = (cli_pair){name, equals + 1};
    return CLI_DONE;
}

static int number(const char *option, const char *text, uint64_t minimum, uint64_t maximum, uint64_t *out_value) {
    uint64_t value;
    if (!cli_parse_u64(text, &value) || value < minimum || value > maximum)
        return cli_usage("--%s wants a whole number from %llu to %llu, not '%s'", option, (unsigned long long)minimum,
                         (unsigned long long)maximum, text);
    *out_value = value;
    return CLI_DONE;
}

/* Each --disable-pass adds to one list, which the compiler checks. */
static int disable(const char *text, cli_options *o) {
    size_t before = o->without ? strlen(o->without) : 0;
    o->without = cli_grow(o->without, before + strlen(text) + 2u, 1);
    if (before) o->without[before++] = ',';
    memcpy(o->without + before, text, strlen(text) + 1u);
    return CLI_DONE;
}

static int level(const char *text, cli_options *o) {
    if (text[0] < '0' || text[0] > '3' || text[1]) return cli_usage("-O wants 0, 1, 2 or 3, not '%s'", text);
    o->level = RONDO_COMPILE_O0 + (text[0] - '0');
    return CLI_DONE;
}

static int take(int option, cli_options *o) {
    switch (option) {
    case OPT_INPUT: return add_pair("input", optarg, &o->inputs, &o->input_count);
    case OPT_DIM: return add_pair("dim", optarg, &o->dims, &o->dim_count);
    case OPT_SET: return add_pair("set", optarg, &o->sets, &o->set_count);
    case OPT_RANDOM: o->random = true; return number("random", optarg, 0, UINT64_MAX, &o->random_seed);
    case OPT_OUTPUT_DIR: o->output_dir = optarg; return CLI_DONE;
    case OPT_DEVICE: o->device = optarg; return CLI_DONE;
    case OPT_SETTINGS: o->settings = optarg; return CLI_DONE;
    case OPT_PLUGIN:
        if (o->plugin_count == 64) return cli_usage("at most 64 plugins");
        o->plugins[o->plugin_count++] = optarg;
        return CLI_DONE;
    case OPT_EAGER: o->eager = true; return CLI_DONE;
    case OPT_REPEAT: return number("repeat", optarg, 1, 1000000000u, &o->repeat);
    case OPT_THREADS: return number("threads", optarg, 1, 1024, &o->threads);
    case OPT_WHY: o->why = true; return CLI_DONE;
    case OPT_JSON: o->json = true; return CLI_DONE;
    case OPT_STAGE: o->stage = optarg; return CLI_DONE;
    case OPT_FORMAT: o->format = optarg; return CLI_DONE;
    case OPT_LIST: o->list = true; return CLI_DONE;
    case OPT_PASSES: o->passes = optarg; return CLI_DONE;
    case OPT_DISABLE: return disable(optarg, o);
    case OPT_LEVEL: return level(optarg, o);
    case OPT_LANES: return number("lanes", optarg, 1, 16, &o->lanes);
    case OPT_LIST_PASSES: o->list = true; return CLI_DONE;
    case OPT_AFTER: o->after = optarg; return CLI_DONE;
    case OPT_TIMEOUT: return number("timeout", optarg, 1, 86400, &o->timeout_s);
    case OPT_CHECK: o->check_dir = optarg; return CLI_DONE;
    case OPT_OUTPUT: o->output = optarg; return CLI_DONE;
    case OPT_TARGET: o->target = optarg; return CLI_DONE;
    case OPT_CACHE: o->cache = optarg; return CLI_DONE;
    case OPT_TRACE: o->trace = optarg; return CLI_DONE;
    case OPT_REPORT: o->report = true; return CLI_DONE;
    case OPT_SCHEMA: o->schema = optarg; return CLI_DONE;
    case OPT_SEED: return number("seed", optarg, 0, UINT64_MAX, &o->seed);
    case OPT_ROUNDS: return number("rounds", optarg, 1, 10000000u, &o->rounds);
    case OPT_SECONDS:
        if (!cli_parse_f64(optarg, &o->seconds) || !(o->seconds > 0 && o->seconds <= 3600))
            return cli_usage("--seconds wants a number above 0 and up to 3600, not '%s'", optarg);
        return CLI_DONE;
    default: o->help = true; return CLI_DONE;
    }
}

/* A short option has no place in the table that getopt would tell. */
static const char *option_name(int option) {
    const struct option *at = long_options;
    while (at->name && at->val != option) ++at;
    return at->name ? at->name : "?";
}

int cli_parse(int argc, char **argv, uint32_t known, cli_options *out_options) {
    cli_options *o = out_options;
    memset(o, 0, sizeof *o);
    o->repeat = known & CLI_OPT_PROFILE ? 20 : 1;
    o->threads = 1;
    o->seconds = 1;
    o->timeout_s = 60;
    if (known & CLI_OPT_CACHE) o->cache = getenv("RONDO_CACHE_DIR");
    opterr = 0;
    optind = 1;
    int option, index = 0, code;
    while ((option = getopt_long(argc, argv, ":ho:O:", long_options, &index)) != -1) {
        if (option == 'h') option = OPT_HELP;
        if (option == 'o') option = OPT_OUTPUT;
        if (option == 'O') option = OPT_LEVEL;
        if (option == ':') return cli_usage("%s wants a value (rondo %s --help)", argv[optind - 1], argv[0]);
        if (option == '?') return cli_usage("unknown option %s (rondo %s --help)", argv[optind - 1], argv[0]);
        uint32_t bit = needed_bit(option);
        if (bit && !(known & bit))
            return cli_usage("rondo %s has no option --%s (rondo %s --help)", argv[0], option_name(option), argv[0]);
        if ((code = take(option, o)) != CLI_DONE) return code;
    }
    for (; optind < argc; ++optind) {
        if (o->file_count == sizeof o->files / sizeof *o->files) return cli_usage("too many files");
        o->files[o->file_count++] = argv[optind];
    }
    if (o->threads > 1)
        return cli_fail(CLI_UNSUPPORTED, "unsupported: --threads %llu; kernels run on one thread so far",
                        (unsigned long long)o->threads);
    return CLI_DONE;
}

void cli_options_free(cli_options *options) {
    for (uint32_t i = 0; i < options->input_count; ++i) free((void *)(uintptr_t)options->inputs[i].name);
    for (uint32_t i = 0; i < options->dim_count; ++i) free((void *)(uintptr_t)options->dims[i].name);
    for (uint32_t i = 0; i < options->set_count; ++i) free((void *)(uintptr_t)options->sets[i].name);
    free(options->inputs);
    free(options->dims);
    free(options->sets);
    free(options->without);
}
