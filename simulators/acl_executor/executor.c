/* SPDX-License-Identifier: Apache-2.0
 *
 * Offline files of Rondo's as models of the simulated library: each is a plan on the device cpu:0, with as many contexts as
 * runs of it overlap. Memory of the simulated device is memory of the process, so that a run uses the buffers where they lie. */
#include <errno.h>
#include <pthread.h>
#include <rondo/file.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acl_executor.h"

/* A context and the stream that it runs on. */
typedef struct lane {
    rondo_context *context;
    rondo_stream *stream;
    struct lane *next;
} lane;

typedef struct model {
    rondo_plan *plan;
    rondo_executable *executable;
    pthread_mutex_t mutex;
    lane *idle;
    uint32_t inputs, outputs;
} model;

/* One instance and device for the process, which stay: streams of a program that ends may still be busy. */
static pthread_mutex_t device_mutex = PTHREAD_MUTEX_INITIALIZER;
static rondo_instance *device_instance;
static rondo_device *device_handle;

static rondo_status device_open(void) {
    rondo_status status = RONDO_OK;
    (void)pthread_mutex_lock(&device_mutex);
    if (!device_instance) status = rondo_instance_create(NULL, &device_instance);
    if (!status && !device_handle) status = rondo_device_open(device_instance, "cpu:0", NULL, &device_handle);
    (void)pthread_mutex_unlock(&device_mutex);
    return status;
}

static aclError told(rondo_status status, aclError usual, char *text, size_t capacity) {
    rondo_code code = rondo_status_code(status);
    (void)snprintf(text, capacity, "%s", rondo_status_message(status));
    rondo_status_release(status);
    if (code == RONDO_CODE_OUT_OF_MEMORY) return ACL_ERROR_GE_MEMORY_ALLOCATION;
    if (code == RONDO_CODE_UNSUPPORTED) return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    if (code == RONDO_CODE_CORRUPT) return ACL_ERROR_INVALID_FILE;
    return usual;
}

/* -------------------------------------------------------------------------------------------------------- load */

static const unsigned char magic[8] = RONDO_PLAN_FILE_MAGIC;

/* A file of another kind is told apart before it is called damaged. */
static aclError check_kind(const char *name, const unsigned char *first, size_t size, char *text, size_t capacity) {
    if (size >= sizeof magic && memcmp(first, magic, sizeof magic) == 0) return ACL_SUCCESS;
    (void)snprintf(text, capacity,
                   "'%s' is not an offline file of Rondo's, and the simulator runs no other: 'rondo compile MODEL -o "
                   "FILE' makes one",
                   name);
    return ACL_ERROR_INVALID_FILE;
}

static aclError check_file(const char *path, char *text, size_t capacity) {
    unsigned char first[sizeof magic];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(first, 1, sizeof first, file) : 0;
    int failed = !file || ferror(file) ? errno : 0;
    if (file) (void)fclose(file);
    if (!failed) return check_kind(path, first, size, text, capacity);
    (void)snprintf(text, capacity, "'%s' cannot be read: %s", path, strerror(failed));
    return ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID;
}

static void executor_unload(void *of) {
    model *m = of;
    for (lane *one = m->idle, *next = NULL; one; one = next) {
        next = one->next;
        rondo_context_release(one->context);
        rondo_stream_release(one->stream);
        free(one);
    }
    if (m->executable) rondo_executable_release(m->executable);
    if (m->plan) rondo_plan_release(m->plan);
    (void)pthread_mutex_destroy(&m->mutex);
    free(m);
}

static rondo_status load_plan(const char *path, model *m) {
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    rondo_status status = device_open();
    if (!status) status = rondo_plan_open(device_instance, path, &m->plan);
    if (!status) status = rondo_plan_get_info(m->plan, &info);
    if (!status) status = rondo_executable_create(device_handle, m->plan, &m->executable);
    m->inputs = info.inputs;
    m->outputs = info.outputs;
    return status;
}

static aclError load_path(const char *path, void **out_model, char *text, size_t capacity) {
    model *m = calloc(1, sizeof *m);
    if (!m) {
        (void)snprintf(text, capacity, "no memory for a model");
        return ACL_ERROR_GE_MEMORY_ALLOCATION;
    }
    (void)pthread_mutex_init(&m->mutex, NULL);
    rondo_status status = load_plan(path, m);
    if (!status) {
        *out_model = m;
        return ACL_SUCCESS;
    }
    executor_unload(m);
    return told(status, ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID, text, capacity);
}

/* A plan lies in a file that is mapped: bytes become one that has no name. */
static aclError load_bytes(const unsigned char *data, size_t size, void **out_model, char *text, size_t capacity) {
    char path[64];
    int file = memfd_create("model", MFD_CLOEXEC);
    size_t written = 0;
    while (file >= 0 && written < size) {
        ssize_t some = write(file, data + written, size - written);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) break;
        written += (size_t)some;
    }
    if (file < 0 || written < size) {
        (void)snprintf(text, capacity, "no room for %zu bytes of a model: %s", size, strerror(errno));
        if (file >= 0) (void)close(file);
        return ACL_ERROR_GE_MEMORY_ALLOCATION;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    aclError error = load_path(path, out_model, text, capacity);
    (void)close(file);
    return error;
}

static aclError executor_load(const char *path, const void *data, size_t size, void **out_model, char *text,
                              size_t capacity) {
    aclError error =
        path ? check_file(path, text, capacity) : check_kind("the model in memory", data, size, text, capacity);
    if (error) return error;
    return path ? load_path(path, out_model, text, capacity) : load_bytes(data, size, out_model, text, capacity);
}

/* ------------------------------------------------------------------------------------------------------- ports */

static uint32_t executor_inputs(const void *of) { return ((const model *)of)->inputs; }
static uint32_t executor_outputs(const void *of) { return ((const model *)of)->outputs; }

static aclDataType type_of(rondo_dtype dtype) {
    static const struct {
        rondo_dtype ours;
        aclDataType theirs;
    } types[] = {{RONDO_DTYPE_F32, ACL_FLOAT},  {RONDO_DTYPE_F16, ACL_FLOAT16},  {RONDO_DTYPE_BF16, ACL_BF16},
                 {RONDO_DTYPE_F64, ACL_DOUBLE}, {RONDO_DTYPE_I8, ACL_INT8},      {RONDO_DTYPE_I16, ACL_INT16},
                 {RONDO_DTYPE_I32, ACL_INT32},  {RONDO_DTYPE_I64, ACL_INT64},    {RONDO_DTYPE_U8, ACL_UINT8},
                 {RONDO_DTYPE_U16, ACL_UINT16}, {RONDO_DTYPE_U32, ACL_UINT32},   {RONDO_DTYPE_U64, ACL_UINT64},
                 {RONDO_DTYPE_BOOL, ACL_BOOL},  {RONDO_DTYPE_STRING, ACL_STRING}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].ours == dtype) return types[i].theirs;
    return ACL_DT_UNDEFINED;
}

static sim_port executor_port(const void *of, bool output, uint32_t index) {
    const model *m = of;
    rondo_tensor_info info = {0};
    sim_port port = {"", NULL, 0, ACL_DT_UNDEFINED, 0};
    rondo_status status = output ? rondo_plan_output(m->plan, index, &info) : rondo_plan_input(m->plan, index, &info);
    rondo_status_release(status);
    if (status) return port;
    return (sim_port){info.name ? info.name : "", info.dims, info.rank, type_of(info.dtype), (size_t)info.bytes};
}

/* --------------------------------------------------------------------------------------------------------- run */

static rondo_status lane_make(const model *m, lane **out_lane) {
    lane *one = calloc(1, sizeof *one);
    if (!one) return rondo_status_make(RONDO_CODE_OUT_OF_MEMORY, RONDO_LAYER_MEMORY, "no memory for a run of a model");
    rondo_status status = rondo_stream_create(device_handle, NULL, &one->stream);
    if (!status) status = rondo_context_create(m->executable, &one->context);
    if (!status) {
        *out_lane = one;
        return RONDO_OK;
    }
    if (one->stream) rondo_stream_release(one->stream);
    free(one);
    return status;
}

static rondo_status lane_take(model *m, lane **out_lane) {
    (void)pthread_mutex_lock(&m->mutex);
    *out_lane = m->idle;
    if (m->idle) m->idle = m->idle->next;
    (void)pthread_mutex_unlock(&m->mutex);
    return *out_lane ? RONDO_OK : lane_make(m, out_lane);
}

static void lane_give(model *m, lane *one) {
    (void)pthread_mutex_lock(&m->mutex);
    one->next = m->idle;
    m->idle = one;
    (void)pthread_mutex_unlock(&m->mutex);
}

/* The model may be for one value of an input only. */
static rondo_status run_check(const model *m, void *const *inputs) {
    for (uint32_t i = 0; i < m->inputs; i++) {
        rondo_tensor_info info = {0};
        rondo_status status = rondo_plan_guard(m->plan, i) ? rondo_plan_input(m->plan, i, &info) : RONDO_OK;
        if (status) return status;
        if (!info.name) continue;
        rondo_tensor_view view = {inputs[i], 1, 0, info.rank, info.dtype, info.dims, NULL, 0};
        status = rondo_plan_check_input(m->plan, i, &view);
        if (status) return status;
    }
    return RONDO_OK;
}

static rondo_status run_lane(const model *m, const lane *one, void *const *inputs, void *const *outputs) {
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < m->inputs && !status; i++) status = rondo_context_bind_input(one->context, i, inputs[i]);
    for (uint32_t i = 0; i < m->outputs && !status; i++)
        status = rondo_context_bind_output(one->context, i, outputs[i]);
    if (!status) status = rondo_context_run(one->context, one->stream);
    rondo_status last = rondo_stream_synchronize(one->stream);
    if (status) rondo_status_release(last);
    return status ? status : last;
}

static aclError executor_run(void *of, void *const *inputs, void *const *outputs, char *text, size_t capacity) {
    model *m = of;
    lane *one = NULL;
    rondo_status status = run_check(m, inputs);
    if (status) return told(status, ACL_ERROR_GE_PARAM_INVALID, text, capacity);
    status = lane_take(m, &one);
    if (!status) {
        status = run_lane(m, one, inputs, outputs);
        lane_give(m, one);
    }
    return status ? told(status, ACL_ERROR_RT_MODEL_EXECUTE, text, capacity) : ACL_SUCCESS;
}

__attribute__((visibility("default"))) const sim_executor *sim_executor_get(uint32_t version);

const sim_executor *sim_executor_get(uint32_t version) {
    static const sim_executor table = {executor_load,    executor_unload, executor_inputs,
                                       executor_outputs, executor_port,   executor_run};
    return version == SIM_EXECUTOR_VERSION ? &table : NULL;
}
