/* SPDX-License-Identifier: Apache-2.0
 *
 * rondo check: ONNX backend test folders, each in a process of its own, so that a crash or a hang is one failure.
 *
 * A folder holds model.onnx (or model.pb, a TensorFlow graph) and test_data_set_N/{input,output}_N.pb. Every data set runs three ways, which must give
 * the same bits: the context's own list, eagerly, and a captured replay. The result is compared with ONNX's own bounds
 * (relative 1e-3, absolute 1e-7, or those of data.json). */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static const char check_help[] =
    "usage: rondo check DIR... [--device NAME] [--list] [--passes FILE] [--timeout SECONDS] [-O 0..3] [--disable-pass NAME]\n"
    "Runs ONNX backend test folders (model.onnx with test_data_set_*), or TensorFlow graphs as model.pb with the same; a DIR\n"
    "without a model stands for the folders in it. Closes with 'N passed, N failed, N skipped': skipped are models with an\n"
    "operator or type that is not there.\n"
    "  --list           the reason of each skip\n"
    "  --passes FILE    the names of the folders that must pass, a line each: any other outcome of one of them fails, and\n"
    "                   so does a folder that passes and is not in the file (a stale skip)\n"
    "  --timeout S      for one folder (default 60)\n";

enum { CHECK_PASSED = 0, CHECK_FAILED = 1, CHECK_SKIPPED = 2 };

/* ---- one data set, in the child */

typedef struct check_case {
    const cli_options *options;
    const char *folder;
    double relative, absolute;
    char why[1024];
} check_case;

/* False when the path is too long, which then does not exist. */
static bool join(char *path, size_t capacity, const char *folder, const char *name) {
    int length = snprintf(path, capacity, "%s/%s", folder, name);
    return length >= 0 && (size_t)length < capacity;
}

static int skip_or_fail(check_case *test, rondo_status status) {
    bool skip = rondo_status_code(status) == RONDO_CODE_UNSUPPORTED;
    size_t used = rondo_status_format(status, test->why, sizeof test->why);
    (void)used;
    for (char *c = test->why; *c; ++c)
        if (*c == '\n') *c = ';';
    rondo_status_release(status);
    return skip ? CHECK_SKIPPED : CHECK_FAILED;
}

static int failed(check_case *test, const char *text) {
    snprintf(test->why, sizeof test->why, "%s", text);
    return CHECK_FAILED;
}

/* The model of a test folder: ONNX's name for it, else ours for a TensorFlow graph. */
static bool find_model(const char *folder, char *path, size_t capacity) {
    static const char *const names[] = {"model.onnx", "model.pb"};
    struct stat info;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (join(path, capacity, folder, names[i]) && stat(path, &info) == 0) return true;
    return false;
}

static rondo_status read_tensor(check_case *test, cli_model *model, const char *set, const char *kind, uint32_t index,
                                rondo_tensor **out_tensor) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s/%s_%u.pb", test->folder, set, kind, index);
    if (length < 0 || (size_t)length >= sizeof path) path[0] = 0;
    return rondo_tensor_read_onnx(model->instance, path, out_tensor);
}

static bool outputs_equal(const cli_model *model, uint8_t *const *saved) {
    for (uint32_t i = 0; i < model->output_count; ++i)
        if (model->outputs[i].bytes &&
            memcmp(saved[i], rondo_tensor_get_view(model->outputs[i].host)->data, model->outputs[i].bytes) != 0)
            return false;
    return true;
}

/* Own list, eager and replay; the first one's bits are kept to compare the others with. */
static int run_three_ways(check_case *test, cli_model *model) {
    uint8_t **saved = cli_allocate(model->output_count, sizeof *saved);
    int result = CHECK_PASSED;
    for (int way = 0; way < 3 && result == CHECK_PASSED; ++way) {
        rondo_status status = NULL;
        for (uint32_t i = 0; i < model->output_count && !status; ++i)
            status = rondo_stream_fill(model->stream, model->outputs[i].device, 0x5a,
                                       model->outputs[i].bytes ? model->outputs[i].bytes : 1);
        if (!status) status = way == 0 ? rondo_context_run(model->context, model->stream) : NULL;
        if (!status) status = rondo_stream_synchronize(model->stream);
        if (status) {
            result = skip_or_fail(test, status);
            break;
        }
        if ((way > 0 && cli_model_run(model, way == 1) != CLI_DONE) || cli_model_fetch(model) != CLI_DONE) {
            result = failed(test, "a run failed");
        } else if (way == 0) {
            for (uint32_t i = 0; i < model->output_count; ++i) {
                saved[i] = cli_allocate(model->outputs[i].bytes, 1);
                memcpy(saved[i], rondo_tensor_get_view(model->outputs[i].host)->data, model->outputs[i].bytes);
            }
        } else if (!outputs_equal(model, saved)) {
            result =
                failed(test, way == 1 ? "eager and the context's list differ" : "replay and the context's list differ");
        }
    }
    for (uint32_t i = 0; i < model->output_count; ++i) free(saved[i]);
    free(saved);
    return result;
}

static int compare_outputs(check_case *test, cli_model *model, const char *set) {
    for (uint32_t i = 0; i < model->output_count; ++i) {
        rondo_tensor *want = NULL;
        char reason[256];
        rondo_status status = read_tensor(test, model, set, "output", i, &want);
        if (status) return skip_or_fail(test, status);
        bool agrees = cli_tensor_agrees(rondo_tensor_get_view(model->outputs[i].host), rondo_tensor_get_view(want),
                                        test->relative, test->absolute, false, reason, sizeof reason);
        rondo_tensor_release(want);
        if (!agrees) {
            snprintf(test->why, sizeof test->why, "%s output %u: %s", set, i, reason);
            return CHECK_FAILED;
        }
    }
    return CHECK_PASSED;
}

/* Compiles as the command line does, but keeps the status: an unsupported model is a skip. */
static rondo_status compile_for(const cli_options *given, cli_model *model) {
    rondo_dim_binding *dims = cli_allocate((size_t)model->input_count * RONDO_RANK_MAX, sizeof *dims);
    rondo_value_binding *values = cli_allocate(model->input_count, sizeof *values);
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    rondo_status status = NULL;
    options.level = given->level;
    options.without = given->without;
    for (uint32_t i = 0; i < model->input_count && !status; ++i) {
        rondo_tensor_info info;
        status = rondo_ir_graph_input(model->ir, i, &info);
        if (status) break;
        const rondo_tensor_view *view = rondo_tensor_get_view(model->inputs[i].host);
        for (int32_t d = 0; d < view->rank; ++d)
            dims[options.dim_count++] = (rondo_dim_binding){info.name, NULL, view->shape[d], d, 0};
        if (view->dtype != RONDO_DTYPE_F32 && view->dtype != RONDO_DTYPE_F64)
            values[options.value_count++] = (rondo_value_binding){info.name, view};
    }
    options.dims = dims;
    options.values = values;
    if (!status) status = rondo_compile(model->instance, model->ir, &options, NULL, &model->plan);
    free(dims);
    free(values);
    return status;
}

/* ---- what no plan does from end to end: three runs of a session, which must give the same bits, and its values */

static rondo_status read_value(check_case *test, cli_model *model, const char *set, const char *kind, uint32_t index,
                               rondo_value **out_value) {
    char path[4096];
    rondo_value_kind what = RONDO_VALUE_TENSOR;
    int length = snprintf(path, sizeof path, "%s/%s/%s_%u.pb", test->folder, set, kind, index);
    if (length < 0 || (size_t)length >= sizeof path) path[0] = 0;
    rondo_status status = *kind == 'i' ? rondo_ir_graph_input_kind(model->ir, index, &what)
                                       : rondo_ir_graph_output_kind(model->ir, index, &what);
    return status ? status : rondo_value_read_onnx(model->instance, path, what, out_value);
}

static int compare_values(check_case *test, cli_model *model, const char *set, rondo_value *const *outputs,
                          uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        rondo_value *want = NULL;
        char reason[256];
        rondo_status status = read_value(test, model, set, "output", i, &want);
        if (status) return skip_or_fail(test, status);
        bool agrees = cli_value_agrees(outputs[i], want, test->relative, test->absolute, reason, sizeof reason);
        rondo_value_release(want);
        if (agrees) continue;
        snprintf(test->why, sizeof test->why, "%s output %u: %s", set, i, reason);
        return CHECK_FAILED;
    }
    return CHECK_PASSED;
}

static int check_by_session(check_case *test, cli_model *model, const char *set, uint32_t output_count) {
    rondo_value **inputs = cli_allocate(model->input_count, sizeof *inputs);
    rondo_value **outputs = cli_allocate(output_count, sizeof *outputs);
    char differs[256] = "";
    rondo_status status = NULL;
    for (uint32_t i = 0; i < model->input_count && !status; ++i)
        status = read_value(test, model, set, "input", i, &inputs[i]);
    if (!status) status = cli_session_run(model, inputs, outputs, output_count, 3, differs, sizeof differs);
    int result = status ? skip_or_fail(test, status) : CHECK_PASSED;
    if (result == CHECK_PASSED && *differs) result = failed(test, differs);
    if (result == CHECK_PASSED) result = compare_values(test, model, set, outputs, output_count);
    for (uint32_t i = 0; i < model->input_count; ++i) rondo_value_release(inputs[i]);
    for (uint32_t i = 0; i < output_count; ++i) rondo_value_release(outputs[i]);
    free(inputs);
    free(outputs);
    return result;
}

/* Whether a plan would have to have values that are no tensors at its ends. */
static bool has_other_values(const cli_model *model, const rondo_ir_graph_info *info) {
    rondo_value_kind kind = RONDO_VALUE_TENSOR;
    for (uint32_t i = 0; i < info->inputs && kind == RONDO_VALUE_TENSOR; ++i)
        if (cli_report(rondo_ir_graph_input_kind(model->ir, i, &kind)) != CLI_DONE) return false;
    for (uint32_t i = 0; i < info->outputs && kind == RONDO_VALUE_TENSOR; ++i)
        if (cli_report(rondo_ir_graph_output_kind(model->ir, i, &kind)) != CLI_DONE) return false;
    return kind != RONDO_VALUE_TENSOR;
}

static int check_by_plan(check_case *test, cli_model *model, const char *set) {
    if (cli_model_prepare(model) != CLI_DONE || cli_model_capture(model) != CLI_DONE)
        return failed(test, "it compiles but cannot be prepared and captured");
    int result = run_three_ways(test, model);
    return result == CHECK_PASSED ? compare_outputs(test, model, set) : result;
}

static int check_model(check_case *test, cli_model *model, const char *set, const rondo_ir_graph_info *info) {
    rondo_status status = NULL;
    model->input_count = info->inputs;
    model->inputs = cli_allocate(info->inputs, sizeof *model->inputs);
    if (has_other_values(model, info)) return check_by_session(test, model, set, info->outputs);
    for (uint32_t i = 0; i < info->inputs && !status; ++i)
        status = read_tensor(test, model, set, "input", i, &model->inputs[i].host);
    if (status) return skip_or_fail(test, status);
    status = compile_for(test->options, model);
    if (cli_session_can(status)) {
        rondo_status_release(status);
        return check_by_session(test, model, set, info->outputs);
    }
    return status ? skip_or_fail(test, status) : check_by_plan(test, model, set);
}

static int check_set(check_case *test, const char *set) {
    cli_model model = {0};
    char path[4096];
    if (cli_model_open(test->options, &model) != CLI_DONE) return failed(test, "the device cannot be opened");
    if (!find_model(test->folder, path, sizeof path)) path[0] = 0;
    rondo_status status = cli_graph_read(model.instance, path, &model.ir);
    rondo_ir_graph_info info = RONDO_IR_GRAPH_INFO_INIT;
    if (!status) status = rondo_ir_graph_get_info(model.ir, &info);
    int result = status ? skip_or_fail(test, status) : check_model(test, &model, set, &info);
    cli_model_close(&model);
    return result;
}

static void read_bounds(check_case *test) {
    char path[4096], text[4096];
    FILE *file = join(path, sizeof path, test->folder, "data.json") ? fopen(path, "rb") : NULL;
    if (!file) return;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    cJSON *root = cJSON_Parse(text);
    const cJSON *relative = cJSON_GetObjectItem(root, "rtol"), *absolute = cJSON_GetObjectItem(root, "atol");
    if (cJSON_IsNumber(relative)) test->relative = relative->valuedouble;
    if (cJSON_IsNumber(absolute)) test->absolute = absolute->valuedouble;
    cJSON_Delete(root);
}

static int check_folder(check_case *test) {
    DIR *folder = opendir(test->folder);
    if (!folder) return failed(test, strerror(errno));
    int result = CHECK_PASSED, sets = 0;
    struct dirent *entry;
    read_bounds(test);
    while (result == CHECK_PASSED && (entry = readdir(folder))) {
        if (strncmp(entry->d_name, "test_data_set_", 14) != 0) continue;
        ++sets;
        result = check_set(test, entry->d_name);
    }
    closedir(folder);
    return result == CHECK_PASSED && !sets ? failed(test, "it has no test_data_set_*") : result;
}

/* ---- one folder, from the parent */

/* Waits for the child's one answer: a byte of result and the reason. */
static int collect(int pipe_end, pid_t child, uint64_t timeout_s, char *why, size_t capacity) {
    size_t used = 0;
    struct pollfd poll_set = {pipe_end, POLLIN, 0};
    uint64_t deadline = cli_now_ns() + timeout_s * 1000000000u;
    bool late = false;
    while (used < capacity - 1) {
        uint64_t now = cli_now_ns();
        int ready = now >= deadline ? 0 : poll(&poll_set, 1, (int)((deadline - now) / 1000000u) + 1);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            late = true;
            kill(child, SIGKILL);
            break;
        }
        ssize_t got = read(pipe_end, why + used, capacity - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    why[used] = 0;
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {}
    if (late) {
        snprintf(why, capacity, "no end after %llu s", (unsigned long long)timeout_s);
        return CHECK_FAILED;
    }
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) > CHECK_SKIPPED) {
        snprintf(why, capacity, WIFSIGNALED(wait_status) ? "crashed with signal %d" : "ended with code %d",
                 WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
        return CHECK_FAILED;
    }
    return WEXITSTATUS(wait_status);
}

static int check_apart(const cli_options *options, const char *folder, char *why, size_t capacity) {
    int ends[2];
    if (pipe(ends) != 0) {
        snprintf(why, capacity, "no pipe: %s", strerror(errno));
        return CHECK_FAILED;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        check_case test = {options, folder, 1e-3, 1e-7, ""};
        int result = check_folder(&test);
        size_t length = strlen(test.why);
        if (write(ends[1], test.why, length) != (ssize_t)length) result = CHECK_FAILED;
        exit(result); /* runs the leak check of a sanitizer build */
    }
    close(ends[1]);
    int result = CHECK_FAILED;
    if (child < 0) snprintf(why, capacity, "no process: %s", strerror(errno));
    else result = collect(ends[0], child, options->timeout_s, why, capacity);
    close(ends[0]);
    return result;
}

/* ---- all folders */

typedef struct check_names {
    char **names;
    size_t count;
} check_names;

static void add_name(check_names *list, const char *text) {
    list->names = cli_grow(list->names, list->count + 1, sizeof *list->names);
    size_t size = strlen(text) + 1;
    list->names[list->count] = cli_allocate(size, 1);
    memcpy(list->names[list->count++], text, size);
}

static void free_names(check_names *list) {
    for (size_t i = 0; i < list->count; ++i) free(list->names[i]);
    free(list->names);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool has_name(const check_names *list, const char *name) {
    return list->count && bsearch(&name, list->names, list->count, sizeof *list->names, compare_names);
}

static int read_passes(const char *path, check_names *list) {
    FILE *file = fopen(path, "r");
    if (!file) return cli_fail(CLI_BAD_DATA, "%s: %s", path, strerror(errno));
    char line[1024];
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line && *line != '#') add_name(list, line);
    }
    fclose(file);
    if (list->count) qsort(list->names, list->count, sizeof *list->names, compare_names);
    return CLI_DONE;
}

static bool is_case(const char *folder) {
    char path[4096];
    return find_model(folder, path, sizeof path);
}

static int expand(const char *given, check_names *folders) {
    if (is_case(given)) {
        add_name(folders, given);
        return CLI_DONE;
    }
    DIR *folder = opendir(given);
    if (!folder) return cli_fail(CLI_BAD_DATA, "%s: %s", given, strerror(errno));
    struct dirent *entry;
    size_t before = folders->count;
    while ((entry = readdir(folder))) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        if (join(path, sizeof path, given, entry->d_name) && is_case(path)) add_name(folders, path);
    }
    closedir(folder);
    if (folders->count == before)
        return cli_fail(CLI_BAD_DATA, "%s: no test folders in it (model.onnx or model.pb)", given);
    qsort(folders->names + before, folders->count - before, sizeof *folders->names, compare_names);
    return CLI_DONE;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static int check_all(const cli_options *options, const check_names *folders, const check_names *passes) {
    uint64_t counts[3] = {0, 0, 0};
    bool progress = isatty(STDERR_FILENO);
    for (size_t i = 0; i < folders->count; ++i) {
        char why[1100] = "";
        const char *name = base_name(folders->names[i]);
        int result = check_apart(options, folders->names[i], why, sizeof why);
        bool expected = !options->passes || has_name(passes, name);
        if (options->passes && result == CHECK_SKIPPED && expected) {
            printf("FAILED %s: must pass, but was skipped: %s\n", name, why);
            result = CHECK_FAILED;
        } else if (options->passes && result == CHECK_PASSED && !expected) {
            printf("FAILED %s: stale skip: it passes and is not in %s\n", name, options->passes);
            result = CHECK_FAILED;
        } else if (result == CHECK_FAILED) {
            printf("FAILED %s: %s\n", name, why);
        } else if (result == CHECK_SKIPPED && options->list) {
            printf("skipped %s: %s\n", name, why);
        }
        ++counts[result];
        if (progress && (i + 1) % 50 == 0) fprintf(stderr, "\r%zu of %zu", i + 1, folders->count);
    }
    if (progress) fputc('\r', stderr);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)counts[0], (unsigned long long)counts[1],
           (unsigned long long)counts[2]);
    return counts[1] ? CLI_BAD_DATA : CLI_DONE;
}

int cli_check(int argc, char **argv) {
    cli_options *options = cli_allocate(1, sizeof *options);
    check_names folders = {0}, passes = {0};
    int code = cli_parse(argc, argv, CLI_OPT_DEVICE | CLI_OPT_LIST | CLI_OPT_PASSES, options);
    options->quiet = true;
    if (code == CLI_DONE && options->help) {
        fputs(check_help, stdout);
    } else if (code == CLI_DONE && !options->file_count) {
        code = cli_usage("rondo check wants at least one folder");
    } else if (code == CLI_DONE) {
        if (options->passes) code = read_passes(options->passes, &passes);
        for (uint32_t i = 0; i < options->file_count && code == CLI_DONE; ++i)
            code = expand(options->files[i], &folders);
        if (code == CLI_DONE) code = check_all(options, &folders, &passes);
    }
    free_names(&folders);
    free_names(&passes);
    cli_options_free(options);
    free(options);
    return code;
}
