/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands of the tool share: exit codes, reporting, option parsing, npy files, and a model made ready to run.
 */
#ifndef RONDO_CLI_CLI_H
#define RONDO_CLI_CLI_H

#include <rondo/rondo.h>
#include <rondo/value.h>
#include <stdio.h>

/* 0 done; 1 bad file, tensor or output; 2 bad command line; 3 unsupported operator or absent device. */
enum { CLI_DONE = 0, CLI_BAD_DATA = 1, CLI_USAGE = 2, CLI_UNSUPPORTED = 3 };

/* ---- options (options.c) */

typedef struct cli_pair {
    const char *name;
    const char *value;
} cli_pair;

typedef struct cli_options {
    const char *files[4096]; /* arguments that are no options */
    uint32_t file_count;
    cli_pair *inputs, *dims, *sets;
    uint32_t input_count, dim_count, set_count;
    const char *output_dir, *device, *settings, *stage, *format, *check_dir;
    const char *passes; /* of `rondo check`: a file */
    const char *after;
    const char *cache; /* folder; null or empty: none */
    const char *trace; /* file */
    char *without;     /* passes, separated by commas */
    int32_t level;     /* RONDO_COMPILE_* */
    uint64_t lanes;    /* 0: as many as pay */
    const char *plugins[64];
    uint32_t plugin_count;
    uint64_t random_seed;
    bool random, eager, why, json, list, help;
    uint64_t repeat, threads, seed, rounds;
    double seconds;
    uint64_t timeout_s;
    const char *output, *target, *schema;
    bool report;
    bool quiet; /* no warnings of the library's: rondo check judges by itself */
} cli_options;

/* ---- reporting (report.c) */

/* Prints "rondo: <code> (<layer>): <message>" and a line a note on standard error, releases the status, and returns the
 * exit code that fits it best. Null returns CLI_DONE. */
int cli_report(rondo_status status);
/* A status of the tool's own is just a line and an exit code. */
int cli_fail(int exit_code, const char *format, ...) RONDO_PRINTF(2, 3);
/* A mistake of the command line. */
#define cli_usage(...) cli_fail(CLI_USAGE, __VA_ARGS__)
/* rondo_write_function over a FILE *. */
int32_t cli_write(void *user, const char *data, size_t size);
/* An instance whose log goes to standard error, from that level up. */
rondo_status cli_instance(const cli_options *options, rondo_log_level level, rondo_instance **out_instance);
uint64_t cli_now_ns(void);
/* malloc and kin that end the tool with one line: a command has nothing to unwind by then. */
void *cli_allocate(size_t count, size_t size);
void *cli_grow(void *pointer, size_t count, size_t size);

/* Bits of the options that a command knows. */
enum {
    CLI_OPT_INPUT = 1u << 0,
    CLI_OPT_OUTPUT_DIR = 1u << 1,
    CLI_OPT_DEVICE = 1u << 2,
    CLI_OPT_RUN = 1u << 3, /* --eager --repeat --threads */
    CLI_OPT_WHY = 1u << 4,
    CLI_OPT_JSON = 1u << 5,
    CLI_OPT_STAGE = 1u << 6, /* --stage --format --after */
    CLI_OPT_LIST = 1u << 7,  /* --list --passes --timeout */
    CLI_OPT_CHECK = 1u << 8,
    CLI_OPT_SECONDS = 1u << 9,
    CLI_OPT_COMPILE = 1u << 10, /* -o --report --list-passes */
    CLI_OPT_PASSES = 1u << 11,  /* --passes --disable-pass -O --lanes --target */
    CLI_OPT_DRAW = 1u << 12,    /* --seed --rounds --input --schema */
    CLI_OPT_CACHE = 1u << 13,   /* --cache, and RONDO_CACHE_DIR */
    CLI_OPT_PROFILE = 1u << 14  /* --repeat --trace */
};
/* Parses argv[1..]; CLI_DONE, or CLI_USAGE after a line on standard error. */
int cli_parse(int argc, char **argv, uint32_t known, cli_options *out_options);
void cli_options_free(cli_options *options);
/* The whole text must be a number. */
bool cli_parse_u64(const char *text, uint64_t *out_value);
bool cli_parse_i64(const char *text, int64_t *out_value);
bool cli_parse_f64(const char *text, double *out_value);

/* ---- npy files (npy.c) */

/* Format 1.0 to 3.0, little endian, C or Fortran order, bool and all numeric types of numpy. */
int cli_npy_read(rondo_instance *instance, const char *path, rondo_tensor **out_tensor);
/* Writes to `path` directly: the caller renames. */
int cli_npy_write(const char *path, const rondo_tensor_view *tensor);

/* ---- a model made ready (model.c) */

typedef struct cli_port {
    rondo_tensor *host;
    void *device;
    uint64_t bytes;
} cli_port;

typedef struct cli_model {
    rondo_instance *instance;
    rondo_device *device;     /* the first: inputs and outputs are there */
    rondo_device *devices[8]; /* one a target of the plan */
    uint32_t device_count;
    rondo_stream *stream;
    rondo_ir_graph *ir;
    rondo_ir_graph *compiled; /* only with want_compiled */
    rondo_plan *plan;
    rondo_executable *executable;
    rondo_context *context;
    rondo_graph *graph;
    cli_port *inputs, *outputs;
    uint32_t input_count, output_count;
    uint64_t load_ns, compile_ns, capture_ns, copy_ns;
    bool want_compiled;
    bool regions;    /* what depends on data may be left to a session ... */
    bool by_session; /* ... and it is: there is no plan */
    rondo_cache_report cache;                                        /* outcome 0: no cache was asked */
    void (*after_pass)(void *user, const rondo_pass_report *report); /* of the compiler; with `user` */
    void *user;
} cli_model;

/* Opens instance, device and stream. */
int cli_model_open(const cli_options *options, cli_model *model);
/* Imports files[0], or opens it where it is an offline file: then `plan` is there and `ir` is null. */
int cli_model_import(const cli_options *options, cli_model *model);
/* Makes the host inputs from --input, --set, --random and --dim. */
int cli_model_inputs(const cli_options *options, cli_model *model);
/* Input `index` of the graph, or of the plan of an offline file. */
rondo_status cli_model_input(const cli_model *model, uint32_t index, rondo_tensor_info *out_info);
/* A graph from a file of any kind: ONNX, or saved as text or binary. */
rondo_status cli_graph_read(rondo_instance *instance, const char *path, rondo_ir_graph **out_graph);
/* Whether the file begins as an offline file does. */
bool cli_is_plan_file(const char *path);
/* --passes, --disable-pass, -O and --report as the compiler wants them. */
void cli_compile_options(const cli_options *options, rondo_compile_options *out);
/* Compiles for the inputs' shapes and values; for dumps `partial` leaves out what needs no tensors. */
int cli_model_compile(const cli_options *options, cli_model *model);
/* What the compile cache did: a line on standard output, or the beginning of a JSON object's members; nothing where none was
 * asked. */
void cli_cache_print(const cli_model *model);
const char *cli_cache_name(const cli_model *model); /* "hit", ...; null */
const char *cli_cache_json(const cli_model *model);
/* Executable, context, device buffers, inputs copied in, everything bound. */
int cli_model_prepare(cli_model *model);
/* Captures one run of the context. */
int cli_model_capture(cli_model *model);
/* One run and wait: eager through the stream, or a replay. */
int cli_model_run(cli_model *model, bool eager);
/* Copies the outputs back into outputs[i].host. */
int cli_model_fetch(cli_model *model);
void cli_model_close(cli_model *model);

/* What compares: |got - want| <= absolute + relative * scale, where scale is max|want| over the tensor (whole true) or
 * the element's own. NaN equals NaN; other types exactly. Writes why not to `reason`. */
bool cli_tensor_agrees(const rondo_tensor_view *got, const rondo_tensor_view *want, double relative, double absolute,
                       bool whole, char *reason, size_t capacity);
/* "float32[1,576]" */
void cli_tensor_text(const rondo_tensor_info *info, char *buffer, size_t capacity);

/* Compares two values of any kind as cli_tensor_agrees does: sequences of one length, optionals that both hold something. */
bool cli_value_agrees(const rondo_value *got, const rondo_value *want, double relative, double absolute, char *reason,
                      size_t capacity);
/* A model of which no plan can be made from end to end, on a session: values in, values out (sessions.c), `runs` times; the
 * last one's outputs are the caller's. Where two runs did not give the same bits `differs` says how, else it is empty. */
rondo_status cli_session_run(cli_model *model, rondo_value *const *inputs, rondo_value **outputs, uint32_t output_count,
                             uint64_t runs, char *differs, size_t capacity);
/* The same on the model's host inputs; every output must be a tensor, and becomes outputs[i].host. */
int cli_session_run_model(const cli_options *options, cli_model *model);
/* Name, type and shape of an output that was made, of a plan or by a session. */
rondo_status cli_model_output(const cli_model *model, uint32_t index, rondo_tensor_info *out_info);
/* Whether compiling failed because something depends on data, which a session can do. */
bool cli_session_can(rondo_status status);

/* ---- commands */

int cli_devices(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_profile(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_dump(int argc, char **argv);
int cli_ops(int argc, char **argv);
int cli_check_operator(int argc, char **argv);
int cli_compile(int argc, char **argv);
int cli_es_generate(int argc, char **argv);
int cli_passes(int argc, char **argv);
/* The passes, a line each, or as JSON. */
int cli_list_passes(bool json);
int cli_conformance(int argc, char **argv);

#endif
