/* SPDX-License-Identifier: Apache-2.0
 *
 * Models from files through the simulated library, as a deployment program calls it: loaded, described, run at once and in
 * streams, misused. The numbers are checked against arithmetic. */
#include <acl/acl.h>
#include <acl_simulator.h>
#include <pthread.h>
#include <rondo/file.h>
#include <rondo/rondo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simulators/acl/acl_testing.h"

enum { COUNT = 6 };

/* z = x + 2 y as an offline file, in a folder of its own. */
typedef struct bed {
    char folder[64], path[96];
    uint32_t id;
    aclmdlDesc *desc;
    aclmdlDataset *in, *out;
    float *device[3];
} bed;

static void bed_remove(void *of) {
    bed *b = of;
    (void)unlink(b->path);
    (void)rmdir(b->folder);
}

#define DONE(t, call)                                                                                          \
    do {                                                                                                       \
        rondo_status r_status = (call);                                                                        \
        if (r_status) rondo_test_fail(t, __FILE__, __LINE__, "%s: %s", #call, rondo_status_message(r_status)); \
    } while (0)

static void write_model(rondo_test *t, bed *b) {
    rondo_instance *instance = NULL;
    rondo_ir_graph *graph = NULL;
    rondo_plan *plan = NULL;
    rondo_ir_value x = 0, y = 0, two = 0, product = 0, sum = 0;
    const int64_t dims[] = {2, 3};
    const float twice = 2.0f;
    (void)snprintf(b->folder, sizeof b->folder, "/tmp/rondo-acl-XXXXXX");
    T_TRUE(t, mkdtemp(b->folder) != NULL);
    (void)snprintf(b->path, sizeof b->path, "%s/x_plus_2y.rondo", b->folder);
    T_DEFER(t, bed_remove, b);
    DONE(t, rondo_instance_create(NULL, &instance));
    DONE(t, rondo_ir_graph_create(instance, "x_plus_2y", &graph));
    DONE(t, rondo_ir_graph_add_input(graph, "x", RONDO_DTYPE_F32, 2, dims, NULL, &x));
    DONE(t, rondo_ir_graph_add_input(graph, "y", RONDO_DTYPE_F32, 2, dims, NULL, &y));
    DONE(t, rondo_ir_graph_add_constant(graph, "two", RONDO_DTYPE_F32, 0, NULL, &twice, &two));
    DONE(t, rondo_ir_graph_add_node(graph, "Mul", NULL, (rondo_ir_value[]){y, two}, 2, NULL, 0, &product, 1));
    DONE(t, rondo_ir_graph_add_node(graph, "Add", NULL, (rondo_ir_value[]){x, product}, 2, NULL, 0, &sum, 1));
    DONE(t, rondo_ir_graph_add_output(graph, sum, "z"));
    DONE(t, rondo_compile(instance, graph, NULL, NULL, &plan));
    DONE(t, rondo_plan_write(instance, plan, b->path));
    rondo_plan_release(plan);
    rondo_ir_graph_release(graph);
    rondo_instance_release(instance);
}

static aclmdlDataset *set_of(rondo_test *t, float *const *memory, size_t count) {
    aclmdlDataset *set = aclmdlCreateDataset();
    T_TRUE(t, set != NULL);
    for (size_t i = 0; i < count; i++) {
        aclDataBuffer *buffer = aclCreateDataBuffer(memory[i], COUNT * sizeof(float));
        T_TRUE(t, buffer != NULL);
        A_OK(t, aclmdlAddDatasetBuffer(set, buffer));
    }
    return set;
}

static void destroy_set(rondo_test *t, aclmdlDataset *set) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(set); i++)
        A_OK(t, aclDestroyDataBuffer(aclmdlGetDatasetBuffer(set, i)));
    A_OK(t, aclmdlDestroyDataset(set));
}

static void bed_open(rondo_test *t, bed *b) {
    write_model(t, b);
    A_OK(t, aclmdlLoadFromFile(b->path, &b->id));
    b->desc = aclmdlCreateDesc();
    T_TRUE(t, b->desc != NULL);
    A_OK(t, aclmdlGetDesc(b->desc, b->id));
    for (int i = 0; i < 3; i++) b->device[i] = acl_memory(t, COUNT * sizeof(float));
    b->in = set_of(t, b->device, 2);
    b->out = set_of(t, b->device + 2, 1);
}

static void bed_close(rondo_test *t, bed *b) {
    destroy_set(t, b->in);
    destroy_set(t, b->out);
    A_OK(t, aclmdlDestroyDesc(b->desc));
    for (int i = 0; i < 3; i++) A_OK(t, aclrtFree(b->device[i]));
}

static void fill(rondo_test *t, const bed *b, float from) {
    for (int i = 0; i < 2; i++) {
        float host[COUNT];
        for (int k = 0; k < COUNT; k++) host[k] = from + (float)(10 * i + k);
        A_OK(t, aclrtMemcpy(b->device[i], sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE));
    }
}

static void expect(rondo_test *t, const bed *b, float from) {
    float host[COUNT];
    A_OK(t, aclrtMemcpy(host, sizeof host, b->device[2], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int k = 0; k < COUNT; k++) T_TRUE(t, host[k] == 3.0f * from + (float)(20 + 3 * k));
}

static void test_described(rondo_test *t) {
    bed b;
    aclmdlIODims dims;
    size_t index = 9;
    A_OPEN(t);
    bed_open(t, &b);
    T_EQ(t, aclmdlGetNumInputs(b.desc), 2);
    T_EQ(t, aclmdlGetNumOutputs(b.desc), 1);
    T_EQ(t, aclmdlGetInputSizeByIndex(b.desc, 1), 24);
    T_EQ(t, aclmdlGetOutputSizeByIndex(b.desc, 0), 24);
    T_TRUE(t, strcmp(aclmdlGetInputNameByIndex(b.desc, 1), "y") == 0);
    T_TRUE(t, strcmp(aclmdlGetOutputNameByIndex(b.desc, 0), "z") == 0);
    T_EQ(t, aclmdlGetInputDataType(b.desc, 0), ACL_FLOAT);
    T_EQ(t, aclmdlGetOutputDataType(b.desc, 0), ACL_FLOAT);
    A_OK(t, aclmdlGetInputIndexByName(b.desc, "y", &index));
    T_EQ(t, index, 1);
    A_OK(t, aclmdlGetOutputIndexByName(b.desc, "z", &index));
    T_EQ(t, index, 0);
    A_OK(t, aclmdlGetOutputDims(b.desc, 0, &dims));
    T_TRUE(t, strcmp(dims.name, "z") == 0);
    T_EQ(t, dims.dimCount, 2);
    T_EQ(t, dims.dims[0] * 10 + dims.dims[1], 23);
    A_IS(t, aclmdlGetInputDims(b.desc, 2, &dims), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlGetInputIndexByName(b.desc, "z", &index), ACL_ERROR_INVALID_PARAM);
    T_EQ(t, aclmdlGetInputSizeByIndex(b.desc, 2), 0);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "the model has 2 inputs, and no 2"));
    /* What was described stays so. */
    A_OK(t, aclmdlUnload(b.id));
    T_EQ(t, aclmdlGetNumInputs(b.desc), 2);
    T_TRUE(t, strcmp(aclmdlGetInputNameByIndex(b.desc, 0), "x") == 0);
    bed_close(t, &b);
}

static void test_runs(rondo_test *t) {
    bed b;
    A_OPEN(t);
    bed_open(t, &b);
    aclrtStream stream = acl_stream(t);
    for (int turn = 0; turn < 3; turn++) {
        fill(t, &b, (float)turn);
        A_OK(t, aclmdlExecute(b.id, b.in, b.out));
        expect(t, &b, (float)turn);
    }
    /* In a stream: behind a copy that is on its way, and before one that takes the result. */
    fill(t, &b, 5.0f);
    A_OK(t, aclmdlExecuteAsync(b.id, b.in, b.out, stream));
    A_OK(t, aclrtMemcpyAsync(b.device[0], 24, b.device[2], 24, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    A_OK(t, aclmdlExecuteAsync(b.id, b.in, b.out, stream));
    /* It goes with the last run that is on its way. */
    A_OK(t, aclmdlUnload(b.id));
    A_OK(t, aclrtSynchronizeStream(stream));
    float host[COUNT];
    A_OK(t, aclrtMemcpy(host, sizeof host, b.device[2], sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int k = 0; k < COUNT; k++) {
        float x = 5.0f + (float)k, y = 15.0f + (float)k;
        T_TRUE(t, host[k] == (x + 2.0f * y) + 2.0f * y);
    }
    A_IS(t, aclmdlExecute(b.id, b.in, b.out), 145003);
    A_IS(t, aclmdlUnload(b.id), 145003);
    bed_close(t, &b);
}

static void test_loaded_from_memory(rondo_test *t) {
    bed b;
    uint32_t id = 0;
    A_OPEN(t);
    bed_open(t, &b);
    FILE *file = fopen(b.path, "rb");
    T_TRUE(t, file != NULL);
    (void)fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(size);
    T_TRUE(t, bytes && fread(bytes, 1, size, file) == size);
    (void)fclose(file);
    A_OK(t, aclmdlLoadFromMem(bytes, size, &id));
    bytes[size / 2] ^= 1;
    A_IS(t, aclmdlLoadFromMem(bytes, size, &id), ACL_ERROR_INVALID_FILE);
    A_IS(t, aclmdlLoadFromMem(bytes, size - 1, &id), ACL_ERROR_INVALID_FILE);
    A_IS(t, aclmdlLoadFromMem(bytes, 4, &id), ACL_ERROR_INVALID_FILE);
    free(bytes);
    fill(t, &b, 1.0f);
    A_OK(t, aclmdlExecute(id, b.in, b.out));
    expect(t, &b, 1.0f);
    A_OK(t, aclmdlUnload(id));
    A_OK(t, aclmdlUnload(b.id));
    bed_close(t, &b);
}

static void test_other_files(rondo_test *t) {
    bed b;
    uint32_t id = 7;
    A_OPEN(t);
    bed_open(t, &b);
    A_IS(t, aclmdlLoadFromFile("/none/model.rondo", &id), 145002);
    A_IS(t, aclmdlLoadFromFile(b.folder, &id), 145002);
    FILE *file = fopen(b.path, "wb");
    T_TRUE(t, file && fwrite("IMOD....", 1, 8, file) == 8 && !fclose(file));
    A_IS(t, aclmdlLoadFromFile(b.path, &id), ACL_ERROR_INVALID_FILE);
    const char *text = aclGetRecentErrMsg();
    T_TRUE(t, strstr(text, b.path) && strstr(text, "is not an offline file of Rondo's"));
    A_IS(t, aclmdlLoadFromFile(NULL, &id), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlLoadFromFile(b.path, NULL), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlLoadFromMem(NULL, 8, &id), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlLoadFromMem("x", 0, &id), ACL_ERROR_INVALID_PARAM);
    T_EQ(t, id, 7);
    A_OK(t, aclmdlUnload(b.id));
    bed_close(t, &b);
}

static void test_wrong_buffers(rondo_test *t) {
    bed b;
    float host[COUNT];
    A_OPEN(t);
    bed_open(t, &b);
    aclmdlDataset *one = set_of(t, b.device, 1), *pageable = set_of(t, (float *[]){host, host}, 2);
    aclDataBuffer *small = aclCreateDataBuffer(b.device[0], 20);
    A_IS(t, aclmdlExecute(b.id, one, b.out), ACL_ERROR_MODEL_INPUT_NOT_MATCH);
    A_IS(t, aclmdlExecute(b.id, b.in, b.in), ACL_ERROR_MODEL_OUTPUT_NOT_MATCH);
    A_IS(t, aclmdlExecute(b.id, pageable, b.out), 145007);
    A_OK(t, aclmdlAddDatasetBuffer(one, small));
    A_IS(t, aclmdlExecute(b.id, one, b.out), 145006);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "input 1 ('y') has 24 bytes, its buffer 20"));
    A_IS(t, aclmdlExecute(b.id + 9, b.in, b.out), 145003);
    A_IS(t, aclmdlExecute(b.id, NULL, b.out), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlExecuteAsync(b.id, b.in, NULL, NULL), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlAddDatasetBuffer(one, NULL), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlDestroyDataset(NULL), ACL_ERROR_INVALID_PARAM);
    A_IS(t, aclmdlDestroyDesc((aclmdlDesc *)one), ACL_ERROR_INVALID_PARAM);
    T_TRUE(t, aclmdlGetDatasetBuffer(one, 2) == NULL && aclGetDataBufferAddr(NULL) == NULL);
    T_EQ(t, aclGetDataBufferSizeV2(small), 20);
    T_TRUE(t, aclGetDataBufferAddr(small) == b.device[0]);
    /* Freed since it was enqueued: the stream says so, as of a kernel. */
    aclrtStream stream = acl_stream(t);
    void *gone = acl_memory(t, 24);
    aclmdlDataset *late = set_of(t, (float *[]){gone, gone}, 2);
    uint64_t *cell = acl_memory(t, 8);
    A_OK(t, aclrtMemset(cell, 8, 0, 8));
    A_OK(t, aclrtValueWait(cell, 1, ACL_VALUE_WAIT_EQ, stream));
    A_OK(t, aclmdlExecuteAsync(b.id, late, b.out, stream));
    A_OK(t, aclrtFree(gone));
    A_OK(t, aclrtMemset(cell, 8, 1, 1));
    A_IS(t, aclrtSynchronizeStream(stream), 507015);
    destroy_set(t, late);
    destroy_set(t, one);
    destroy_set(t, pageable);
    A_OK(t, aclmdlUnload(b.id));
    bed_close(t, &b);
}

/* A graph takes none, and is none the worse for it; what runs at once is an unsafe call. */
static void test_in_a_capture(rondo_test *t) {
    bed b;
    A_OPEN(t);
    bed_open(t, &b);
    aclrtStream stream = acl_stream(t);
    aclmdlRI graph = NULL;
    uint32_t id = 0;
    A_OK(t, aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    A_IS(t, aclmdlExecuteAsync(b.id, b.in, b.out, stream), 207000);
    A_IS(t, aclmdlExecute(b.id, b.in, b.out), 107030);
    A_IS(t, aclmdlLoadFromFile(b.path, &id), 107030);
    A_OK(t, aclmdlRICaptureEnd(stream, &graph));
    A_OK(t, aclmdlRIDestroy(graph));
    A_OK(t, aclmdlUnload(b.id));
    bed_close(t, &b);
}

typedef struct worker {
    uint32_t id;
    float from;
    int wrong;
} worker;

static void *work(void *of) {
    worker *w = of;
    float *device[3], host[COUNT];
    aclmdlDataset *in = aclmdlCreateDataset(), *out = aclmdlCreateDataset();
    w->wrong += aclrtSetDevice(0) != 0;
    for (int i = 0; i < 3; i++) {
        w->wrong += aclrtMalloc((void **)&device[i], sizeof host, ACL_MEM_MALLOC_HUGE_FIRST) != 0;
        w->wrong += aclmdlAddDatasetBuffer(i < 2 ? in : out, aclCreateDataBuffer(device[i], sizeof host)) != 0;
    }
    for (int turn = 0; turn < 200; turn++) {
        float from = w->from + (float)turn;
        for (int k = 0; k < COUNT; k++) host[k] = from + (float)k;
        for (int i = 0; i < 2; i++) w->wrong += aclrtMemcpy(device[i], sizeof host, host, sizeof host, 1) != 0;
        w->wrong += aclmdlExecute(w->id, in, out) != 0;
        w->wrong += aclrtMemcpy(host, sizeof host, device[2], sizeof host, 2) != 0;
        for (int k = 0; k < COUNT; k++) w->wrong += host[k] != 3.0f * (from + (float)k);
    }
    for (size_t i = 0; i < 2; i++) w->wrong += aclDestroyDataBuffer(aclmdlGetDatasetBuffer(in, i)) != 0;
    w->wrong += aclDestroyDataBuffer(aclmdlGetDatasetBuffer(out, 0)) != 0;
    w->wrong += aclmdlDestroyDataset(in) + aclmdlDestroyDataset(out) != 0;
    for (int i = 0; i < 3; i++) w->wrong += aclrtFree(device[i]) != 0;
    w->wrong += aclrtResetDevice(0) != 0;
    return NULL;
}

static void test_several_threads(rondo_test *t) {
    bed b;
    pthread_t threads[4];
    worker workers[4];
    A_OPEN(t);
    bed_open(t, &b);
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){b.id, (float)(1000 * i), 0};
        T_TRUE(t, pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        T_TRUE(t, pthread_join(threads[i], NULL) == 0);
        T_EQ(t, workers[i].wrong, 0);
    }
    A_OK(t, aclmdlUnload(b.id));
    bed_close(t, &b);
}

/* The simulator's own memory ends at each place once: the call says so, and the next one works. */
static void test_no_memory(rondo_test *t) {
    bed b;
    A_OPEN(t);
    bed_open(t, &b);
    const aclsim_control *control = acl_control(t);
    aclrtStream stream = acl_stream(t);
    fill(t, &b, 2.0f);
    A_OK(t, aclmdlUnload(b.id));
    for (uint64_t nth = 1; nth < 12; nth++) {
        uint32_t id = 0;
        T_EQ(t, control->fail("alloc", nth, 1), 0);
        aclmdlDesc *desc = aclmdlCreateDesc();
        aclmdlDataset *set = aclmdlCreateDataset();
        aclDataBuffer *buffer = aclCreateDataBuffer(b.device[0], 24);
        aclError load = aclmdlLoadFromFile(b.path, &id);
        aclError add = set && buffer ? aclmdlAddDatasetBuffer(set, buffer) : 200000;
        aclError run = load ? 200000 : aclmdlExecuteAsync(id, b.in, b.out, stream);
        T_EQ(t, control->fail("alloc", 0, 0), 0);
        T_TRUE(t, load == 0 || load == 200000);
        T_TRUE(t, add == 0 || add == 200000);
        T_TRUE(t, run == 0 || run == 200000);
        T_TRUE(t, nth > 8 || !desc || !set || !buffer || load || add || run);
        if (desc) A_OK(t, aclmdlDestroyDesc(desc));
        if (set) A_OK(t, aclmdlDestroyDataset(set));
        if (buffer) A_OK(t, aclDestroyDataBuffer(buffer));
        A_OK(t, aclrtSynchronizeStream(stream));
        if (!run) expect(t, &b, 2.0f);
        if (!load) A_OK(t, aclmdlUnload(id));
    }
    bed_close(t, &b);
}

RONDO_TEST_MAIN(T_PLAIN(test_described), T_PLAIN(test_runs), T_PLAIN(test_loaded_from_memory),
                T_PLAIN(test_other_files), T_PLAIN(test_wrong_buffers), T_PLAIN(test_in_a_capture),
                T_PLAIN(test_several_threads), T_PLAIN(test_no_memory))
