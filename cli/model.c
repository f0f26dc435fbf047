/* SPDX-License-Identifier: Apache-2.0
 *
 * From a file and a command line to a context that runs: the way that run, bench and check share. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

/* "sim,sim:1,cpu": a device for each target. */
static rondo_status open_devices(const cli_options *options, cli_model *model) {
    const char *names = options->device ? options->device : "cpu";
    rondo_status status = NULL;
    while (!status) {
        char name[64];
        size_t length = strcspn(names, ",");
        if (model->device_count == sizeof model->devices / sizeof *model->devices || length >= sizeof name) break;
        memcpy(name, names, length);
        name[length] = 0;
        status = rondo_device_open(model->instance, name, options->settings, &model->devices[model->device_count]);
        if (!status) model->device_count++;
        if (!names[length]) break;
        names += length + 1;
    }
    if (!status) model->device = model->devices[0];
    return status;
}

int cli_model_open(const cli_options *options, cli_model *model) {
    rondo_status status = cli_instance(options, options->quiet ? RONDO_LOG_ERROR : RONDO_LOG_WARNING, &model->instance);
    if (!status) status = open_devices(options, model);
    if (status && options->settings && rondo_status_code(status) == RONDO_CODE_INVALID_ARGUMENT) {
        (void)cli_report(status);
        return CLI_USAGE; /* the settings are on the command line */
    }
    if (status &&
        (rondo_status_code(status) == RONDO_CODE_NOT_FOUND || rondo_status_code(status) == RONDO_CODE_OUT_OF_RANGE)) {
        (void)cli_report(status);
        return CLI_UNSUPPORTED; /* an absent device */
    }
    if (!status) status = rondo_stream_create(model->device, NULL, &model->stream);
    return cli_report(status);
}

/* The first bytes of a file; 0 where it cannot be read. */
static size_t read_begin(const char *path, void *begin, size_t size) {
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode)) return 0; /* a pipe would hold us */
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(begin, 1, size, file) : 0;
    if (file) fclose(file);
    return got;
}

bool cli_is_plan_file(const char *path) {
    static const uint8_t magic[] = RONDO_PLAN_FILE_MAGIC;
    uint8_t begin[sizeof magic];
    return read_begin(path, begin, sizeof begin) == sizeof begin && memcmp(begin, magic, sizeof magic) == 0;
}

rondo_status cli_graph_read(rondo_instance *instance, const char *path, rondo_ir_graph **out_graph) {
    char begin[16];
    size_t size = read_begin(path, begin, sizeof begin);
    if (rondo_ir_graph_is_file(begin, size)) return rondo_ir_graph_load(instance, path, out_graph);
    /* A TensorFlow graph begins with a node: field 1, with a length. An ONNX model has a number in its field 1. */
    if (size && begin[0] == (1 << 3 | 2)) return rondo_tf_import(instance, path, NULL, out_graph);
    return rondo_onnx_import(instance, path, NULL, out_graph);
}

static int open_plan(const cli_options *options, cli_model *model) {
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    uint64_t start = cli_now_ns();
    rondo_status status = rondo_plan_open(model->instance, options->files[0], &model->plan);
    model->load_ns = cli_now_ns() - start;
    if (!status) status = rondo_plan_get_info(model->plan, &info);
    if (status) return cli_report(status);
    model->input_count = info.inputs;
    model->inputs = cli_allocate(info.inputs, sizeof *model->inputs);
    return CLI_DONE;
}

rondo_status cli_model_input(const cli_model *model, uint32_t index, rondo_tensor_info *out_info) {
    return model->ir ? rondo_ir_graph_input(model->ir, index, out_info)
                     : rondo_plan_input(model->plan, index, out_info);
}

/* The symbol of an open size; an offline file has none open. */
static const char *input_symbol(const cli_model *model, uint32_t index, int32_t axis) {
    return model->ir ? rondo_ir_graph_input_symbol(model->ir, index, axis) : NULL;
}

int cli_model_import(const cli_options *options, cli_model *model) {
    if (options->file_count != 1)
        return cli_usage("exactly one model file is wanted, %u were given", options->file_count);
    if (cli_is_plan_file(options->files[0])) return open_plan(options, model);
    uint64_t start = cli_now_ns();
    rondo_status status = cli_graph_read(model->instance, options->files[0], &model->ir);
    model->load_ns = cli_now_ns() - start;
    if (status) return cli_report(status);
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    status = rondo_ir_graph_get_info(model->ir, &info);
    if (status) return cli_report(status);
    model->input_count = info.inputs;
    model->inputs = cli_allocate(info.inputs, sizeof *model->inputs);
    return CLI_DONE;
}

/* splitmix64: every input element from the seed, the input's number and the element's. */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

typedef double (*element_source)(void *user);

static double next_random_float(void *user) { return (double)(random_bits(user) >> 40) / 8388608.0 - 1.0; }
static double next_random_int(void *user) { return (double)(random_bits(user) >> 61); }
static double next_constant(void *user) { return *(const double *)user; }

#define FILL(type) \
    for (uint64_t i = 0; i < count; ++i) ((type *)data)[i] = (type)source(user)
static bool fill_elements(const rondo_tensor_view *view, uint64_t count, element_source source, void *user) {
    void *data = view->data;
    switch (view->dtype) {
    case RONDO_DTYPE_F32: FILL(float); return true;
    case RONDO_DTYPE_F64: FILL(double); return true;
    case RONDO_DTYPE_I8: FILL(int8_t); return true;
    case RONDO_DTYPE_I16: FILL(int16_t); return true;
    case RONDO_DTYPE_I32: FILL(int32_t); return true;
    case RONDO_DTYPE_I64: FILL(int64_t); return true;
    case RONDO_DTYPE_U8: FILL(uint8_t); return true;
    case RONDO_DTYPE_U16: FILL(uint16_t); return true;
    case RONDO_DTYPE_U32: FILL(uint32_t); return true;
    case RONDO_DTYPE_U64: FILL(uint64_t); return true;
    case RONDO_DTYPE_BOOL:
        for (uint64_t i = 0; i < count; ++i) ((uint8_t *)data)[i] = source(user) != 0;
        return true;
    default: return false;
    }
}

static uint64_t element_count(const rondo_tensor_view *view) {
    uint64_t count = 1;
    for (int32_t d = 0; d < view->rank; ++d) count *= (uint64_t)view->shape[d];
    return count;
}

static bool is_float(rondo_dtype dtype) { return dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64; }

static const char *find_pair(const cli_pair *pairs, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(pairs[i].name, name) == 0) return pairs[i].value;
    return NULL;
}

/* --dim INPUT.AXIS=N or --dim SYMBOL=N for one open size; -1 when neither is given. */
static int open_size(const cli_options *options, const cli_model *model, uint32_t input, const char *name, int32_t axis,
                     int64_t *out_size) {
    const char *symbol = input_symbol(model, input, axis);
    size_t key_size = strlen(name) + 24;
    char *key = cli_allocate(key_size, 1);
    snprintf(key, key_size, "%s.%d", name, (int)axis);
    const char *value = find_pair(options->dims, options->dim_count, key);
    if (!value && symbol) value = find_pair(options->dims, options->dim_count, symbol);
    int code = CLI_DONE;
    if (!value) {
        code = cli_usage("input '%s' has an open size at axis %d%s%s%s: give --dim %s=N", name, (int)axis,
                         symbol ? " ('" : "", symbol ? symbol : "", symbol ? "')" : "", key);
    } else if (!cli_parse_i64(value, out_size) || *out_size < 0) {
        code = cli_usage("--dim %s wants a size, not '%s'", key, value);
    }
    free(key);
    return code;
}

/* A size on the command line that says otherwise than the file is a mistake in one of them. */
static int check_given_sizes(const cli_options *options, const cli_model *model, uint32_t index, const char *name) {
    const rondo_tensor_view *view = rondo_tensor_get_view(model->inputs[index].host);
    size_t key_size = strlen(name) + 24;
    char *key = cli_allocate(key_size, 1);
    int code = CLI_DONE;
    for (int32_t d = 0; d < view->rank && code == CLI_DONE; ++d) {
        int64_t size;
        snprintf(key, key_size, "%s.%d", name, (int)d);
        const char *value = find_pair(options->dims, options->dim_count, key);
        if (value && (!cli_parse_i64(value, &size) || size != view->shape[d]))
            code = cli_usage("--dim %s=%s: the file of input '%s' has %lld there", key, value, name,
                             (long long)view->shape[d]);
    }
    free(key);
    return code;
}

static int make_input(const cli_options *options, cli_model *model, uint32_t index, const rondo_tensor_info *info) {
    const char *file = find_pair(options->inputs, options->input_count, info->name);
    const char *set = find_pair(options->sets, options->set_count, info->name);
    rondo_tensor **host = &model->inputs[index].host;
    if (file && set) return cli_usage("input '%s' has both --input and --set", info->name);
    if (file) {
        int code = cli_npy_read(model->instance, file, host);
        return code == CLI_DONE ? check_given_sizes(options, model, index, info->name) : code;
    }
    const void *guard = model->ir ? NULL : rondo_plan_guard(model->plan, index);
    if (!set && !guard && !options->random)
        return cli_usage("input '%s' is not given: --input %s=FILE.npy, --set %s=VALUE or --random SEED", info->name,
                         info->name, info->name);
    int64_t dims[RONDO_RANK_MAX];
    if (info->rank < 0)
        return cli_usage("input '%s' has no fixed rank: give --input %s=FILE.npy", info->name, info->name);
    for (int32_t d = 0; d < info->rank; ++d) {
        dims[d] = info->dims[d];
        int code = dims[d] >= 0 ? CLI_DONE : open_size(options, model, index, info->name, d, &dims[d]);
        if (code != CLI_DONE) return code;
    }
    rondo_status status = rondo_tensor_create(model->instance, info->dtype, info->rank, dims, host);
    if (status) return cli_report(status);
    const rondo_tensor_view *view = rondo_tensor_get_view(*host);
    if (!set && guard) { /* the one value that the file was compiled for */
        memcpy(view->data, guard, (size_t)rondo_tensor_bytes(*host));
        return CLI_DONE;
    }
    double constant;
    uint64_t seed = options->random_seed * UINT64_C(0x2545f4914f6cdd1d) + index;
    if (set && !cli_parse_f64(set, &constant)) return cli_usage("--set %s wants a number, not '%s'", info->name, set);
    if (set && !is_float(info->dtype) && !(fabs(constant) < 9007199254740992.0 && floor(constant) == constant))
        return cli_usage("--set %s wants a whole number, not '%s'", info->name, set);
    bool filled = set ? fill_elements(view, element_count(view), next_constant, &constant)
                      : fill_elements(view, element_count(view),
                                      is_float(info->dtype) ? next_random_float : next_random_int, &seed);
    if (!filled)
        return cli_fail(CLI_UNSUPPORTED, "unsupported: no values can be made for input '%s' of %s", info->name,
                        rondo_dtype_name(info->dtype));
    return CLI_DONE;
}

/* Every name on the command line must be one of the model's. */
static int check_names(const cli_options *options, const cli_model *model, const cli_pair *pairs, uint32_t count,
                       const char *option) {
    for (uint32_t i = 0; i < count; ++i) {
        bool known = false;
        for (uint32_t k = 0; k < model->input_count; ++k) {
            rondo_tensor_info info;
            rondo_status status = cli_model_input(model, k, &info);
            if (status) return cli_report(status);
            known = known || strcmp(info.name, pairs[i].name) == 0;
        }
        if (!known)
            return cli_usage("--%s %s: the model has no such input (rondo info %s lists them)", option, pairs[i].name,
                             options->files[0]);
    }
    return CLI_DONE;
}

static int check_dims(const cli_options *options, const cli_model *model) {
    for (uint32_t i = 0; i < options->dim_count; ++i) {
        bool known = false;
        for (uint32_t k = 0; k < model->input_count; ++k) {
            rondo_tensor_info info;
            rondo_status status = cli_model_input(model, k, &info);
            if (status) return cli_report(status);
            const char *name = options->dims[i].name, *dot = strrchr(name, '.');
            int64_t axis;
            if (dot && (size_t)(dot - name) == strlen(info.name) && strncmp(name, info.name, strlen(info.name)) == 0 &&
                cli_parse_i64(dot + 1, &axis) && axis >= 0 && axis < info.rank) {
                int64_t size;
                if (info.dims[axis] >= 0 && cli_parse_i64(options->dims[i].value, &size) && size != info.dims[axis])
                    return cli_usage("--dim %s=%s: the model fixes this size to %lld", name, options->dims[i].value,
                                     (long long)info.dims[axis]);
                known = true;
            }
            for (int32_t d = 0; d < info.rank; ++d) {
                const char *symbol = input_symbol(model, k, d);
                known = known || (symbol && strcmp(symbol, name) == 0);
            }
        }
        if (!known)
            return cli_usage("--dim %s: the model has no such size (INPUT.AXIS or a symbol)", options->dims[i].name);
    }
    return CLI_DONE;
}

int cli_model_inputs(const cli_options *options, cli_model *model) {
    int code = check_names(options, model, options->inputs, options->input_count, "input");
    if (code == CLI_DONE) code = check_names(options, model, options->sets, options->set_count, "set");
    if (code == CLI_DONE) code = check_dims(options, model);
    for (uint32_t i = 0; i < model->input_count && code == CLI_DONE; ++i) {
        rondo_tensor_info info;
        rondo_status status = cli_model_input(model, i, &info);
        code = status ? cli_report(status) : make_input(options, model, i, &info);
    }
    return code;
}

/* The file's shape and type against the model's, before anything is compiled for them. */
static int check_input(const rondo_tensor_info *want, const rondo_tensor_view *got) {
    char text[256];
    cli_tensor_text(want, text, sizeof text);
    if (want->dtype != got->dtype)
        return cli_fail(CLI_BAD_DATA, "input '%s' is %s, the model wants %s", want->name, rondo_dtype_name(got->dtype),
                        text);
    bool fits = want->rank < 0 || want->rank == got->rank;
    for (int32_t d = 0; fits && want->rank >= 0 && d < want->rank; ++d)
        fits = want->dims[d] < 0 || want->dims[d] == got->shape[d];
    if (fits) return CLI_DONE;
    rondo_tensor_info have = {0};
    char got_text[256];
    have.dtype = got->dtype;
    have.rank = got->rank;
    have.dims = got->shape;
    cli_tensor_text(&have, got_text, sizeof got_text);
    return cli_fail(CLI_BAD_DATA, "input '%s' is %s, the model wants %s", want->name, got_text, text);
}

/* An offline file is compiled already: what it was made for is all that it takes. */
static int check_plan_inputs(const cli_model *model) {
    rondo_status status = NULL;
    for (uint32_t i = 0; i < model->input_count && !status; ++i)
        status = rondo_plan_check_input(model->plan, i, rondo_tensor_get_view(model->inputs[i].host));
    if (!status) return CLI_DONE;
    (void)cli_report(status);
    return CLI_BAD_DATA;
}

void cli_compile_options(const cli_options *options, rondo_compile_options *out) {
    out->passes = options->passes;
    out->without = options->without;
    out->level = options->level;
    out->lanes = (uint32_t)options->lanes;
    if (options->report) out->flags |= RONDO_COMPILE_EXPLAIN;
}

static rondo_status compile_or_take(const cli_options *options, cli_model *model,
                                    const rondo_compile_options *compile) {
    if (!options->cache || !*options->cache || model->want_compiled)
        return rondo_compile(model->instance, model->ir, compile, model->want_compiled ? &model->compiled : NULL,
                             &model->plan);
    model->cache = (rondo_cache_report)RONDO_CACHE_REPORT_INIT;
    return rondo_compile_cached(model->instance, model->ir, compile, options->cache, NULL, &model->plan, &model->cache);
}

const char *cli_cache_name(const cli_model *model) {
    static const char *const names[] = {NULL, "hit", "miss", "remade", "not stored"};
    return names[model->cache.outcome];
}

void cli_cache_print(const cli_model *model) {
    if (model->cache.outcome)
        printf("compile cache: %s%s%s\n", cli_cache_name(model), *model->cache.reason ? ": " : "", model->cache.reason);
}

const char *cli_cache_json(const cli_model *model) {
    static const char *const texts[] = {"", "\"cache\": \"hit\", \"cache_hits\": 1, \"cache_misses\": 0, ",
                                        "\"cache\": \"miss\", \"cache_hits\": 0, \"cache_misses\": 1, ",
                                        "\"cache\": \"remade\", \"cache_hits\": 0, \"cache_misses\": 1, ",
                                        "\"cache\": \"not stored\", \"cache_hits\": 0, \"cache_misses\": 1, "};
    return texts[model->cache.outcome];
}

int cli_model_compile(const cli_options *options, cli_model *model) {
    if (!model->ir) return check_plan_inputs(model);
    uint32_t dim_count = 0;
    rondo_dim_binding *dims = cli_allocate((size_t)model->input_count * RONDO_RANK_MAX, sizeof *dims);
    rondo_value_binding *values = cli_allocate(model->input_count, sizeof *values);
    rondo_compile_options compile = RONDO_COMPILE_OPTIONS_INIT;
    int code = CLI_DONE;
    compile.catalogues = options->target;
    compile.after_pass = model->after_pass;
    compile.user = model->user;
    cli_compile_options(options, &compile);
    for (uint32_t i = 0; i < model->input_count && code == CLI_DONE; ++i) {
        rondo_tensor_info info;
        rondo_status status = cli_model_input(model, i, &info);
        if (status) {
            code = cli_report(status);
            break;
        }
        const rondo_tensor_view *view = rondo_tensor_get_view(model->inputs[i].host);
        code = check_input(&info, view);
        for (int32_t d = 0; d < view->rank; ++d)
            dims[dim_count++] = (rondo_dim_binding){info.name, NULL, view->shape[d], d, 0};
        /* A file is not made for a value that nobody gave: the compiler says which one it needs. */
        bool given = !options->output || find_pair(options->inputs, options->input_count, info.name) ||
                     find_pair(options->sets, options->set_count, info.name);
        if (given && !is_float(view->dtype) && rondo_tensor_bytes(model->inputs[i].host) <= 1024)
            values[compile.value_count++] = (rondo_value_binding){info.name, view};
    }
    compile.dims = dims;
    compile.dim_count = dim_count;
    compile.values = values;
    if (code == CLI_DONE) {
        uint64_t start = cli_now_ns();
        rondo_status status = compile_or_take(options, model, &compile);
        model->compile_ns = cli_now_ns() - start;
        model->by_session = model->regions && cli_session_can(status);
        if (model->by_session) {
            rondo_status_release(status);
            status = NULL;
        }
        code = cli_report(status);
    }
    free(dims);
    free(values);
    return code;
}

static rondo_status prepare_port(cli_model *model, cli_port *port, uint64_t bytes) {
    port->bytes = bytes;
    return rondo_memory_allocate(model->device, bytes ? bytes : 1, &port->device);
}

static rondo_status copy_in(cli_model *model) {
    rondo_status status = NULL;
    for (uint32_t i = 0; i < model->input_count && !status; ++i) {
        if (!model->inputs[i].bytes) continue;
        status = rondo_stream_copy(model->stream, model->inputs[i].device,
                                   rondo_tensor_get_view(model->inputs[i].host)->data, model->inputs[i].bytes,
                                   RONDO_COPY_HOST_TO_DEVICE);
    }
    return status ? status : rondo_stream_synchronize(model->stream);
}

static rondo_status prepare_outputs(cli_model *model, uint32_t count) {
    model->output_count = count;
    model->outputs = cli_allocate(count, sizeof *model->outputs);
    rondo_status status = NULL;
    for (uint32_t i = 0; i < count && !status; ++i) {
        rondo_tensor_info port;
        status = rondo_plan_output(model->plan, i, &port);
        if (!status)
            status = rondo_tensor_create(model->instance, port.dtype, port.rank, port.dims, &model->outputs[i].host);
        if (!status) status = prepare_port(model, &model->outputs[i], port.bytes);
        if (!status) status = rondo_context_bind_output(model->context, i, model->outputs[i].device);
    }
    return status;
}

int cli_model_prepare(cli_model *model) {
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    rondo_status status = rondo_plan_get_info(model->plan, &info);
    if (!status)
        status = rondo_executable_create_on(model->devices, model->device_count, model->plan, &model->executable);
    if (!status) status = rondo_context_create(model->executable, &model->context);
    for (uint32_t i = 0; i < model->input_count && !status; ++i) {
        status = prepare_port(model, &model->inputs[i], rondo_tensor_bytes(model->inputs[i].host));
        if (!status) status = rondo_context_bind_input(model->context, i, model->inputs[i].device);
    }
    if (!status) status = prepare_outputs(model, info.outputs);
    uint64_t start = cli_now_ns();
    if (!status) status = copy_in(model);
    model->copy_ns += cli_now_ns() - start;
    return cli_report(status);
}

int cli_model_capture(cli_model *model) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    options.keep_graph = 1;
    options.name = "model";
    uint64_t start = cli_now_ns();
    rondo_status status = rondo_graph_create(model->device, &options, &model->graph);
    if (!status)
        status = rondo_graph_capture_begin(model->graph, model->stream, (rondo_pool_id){0, 0},
                                           RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) {
        rondo_status run = rondo_context_run_eager(model->context, model->stream);
        rondo_status end = rondo_graph_capture_end(model->graph, model->stream);
        status = run ? run : end;
        if (run) rondo_status_release(end);
    }
    if (!status) status = rondo_graph_instantiate(model->graph);
    model->capture_ns = cli_now_ns() - start;
    return cli_report(status);
}

int cli_model_run(cli_model *model, bool eager) {
    rondo_status status = eager          ? rondo_context_run_eager(model->context, model->stream)
                          : model->graph ? rondo_graph_replay(model->graph, model->stream)
                                         : rondo_context_run(model->context, model->stream);
    if (!status) status = rondo_stream_synchronize(model->stream);
    return cli_report(status);
}

int cli_model_fetch(cli_model *model) {
    uint64_t start = cli_now_ns();
    rondo_status status = NULL;
    for (uint32_t i = 0; i < model->output_count && !status; ++i) {
        if (!model->outputs[i].bytes) continue;
        status = rondo_stream_copy(model->stream, rondo_tensor_get_view(model->outputs[i].host)->data,
                                   model->outputs[i].device, model->outputs[i].bytes, RONDO_COPY_DEVICE_TO_HOST);
    }
    if (!status) status = rondo_stream_synchronize(model->stream);
    model->copy_ns += cli_now_ns() - start;
    return cli_report(status);
}

static void close_ports(cli_model *model, cli_port *ports, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        rondo_tensor_release(ports[i].host);
        if (ports[i].device) (void)cli_report(rondo_memory_free(model->device, ports[i].device));
    }
    free(ports);
}

void cli_model_close(cli_model *model) {
    rondo_graph_release(model->graph);
    rondo_context_release(model->context);
    rondo_executable_release(model->executable);
    if (model->inputs) close_ports(model, model->inputs, model->input_count);
    if (model->outputs) close_ports(model, model->outputs, model->output_count);
    rondo_plan_release(model->plan);
    rondo_ir_graph_release(model->compiled);
    rondo_ir_graph_release(model->ir);
    rondo_stream_release(model->stream);
    for (uint32_t i = 0; i < model->device_count; ++i) rondo_device_release(model->devices[i]);
    rondo_instance_release(model->instance);
    memset(model, 0, sizeof *model);
}
