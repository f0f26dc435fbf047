/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks captured and replayed through Ascend's own runtime library: nothing here knows Rondo. z = x + y on float [8,2048];
 * with one stream (scenario 1), or with a second one that joins by events (scenario 2). The capture's tasks are written as
 * JSON, and the graph runs five times. Compiled against the simulator's headers and linked with -lascendcl it runs on any
 * machine; the kernel comes from the binary that is named.
 * Usage: capture_tasks_acl KERNEL-BINARY 1|2 [FOLDER] */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 2048, COUNT = ROWS * COLUMNS, BYTES = COUNT * 4, BLOCKS = 8, ROUNDS = 5 };

static void check(aclError error, const char *what) {
    if (error == ACL_SUCCESS) return;
    const char *text = aclGetRecentErrMsg();
    fprintf(stderr, "%s: error %d\n%s\n", what, error, text ? text : "");
    exit(1);
}
#define CHECK(call) check((call), #call)

typedef struct sample {
    aclrtStream main_stream, compute_stream;
    aclrtEvent inputs_there, sum_there;
    aclrtBinHandle binary;
    aclrtFuncHandle add;
    float *x_host, *y_host, *z_host;
    void *x, *y, *z;
    aclmdlRI graph;
} sample;

static void prepare(sample *s, const char *binary) {
    void *host[3] = {NULL};
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&s->main_stream));
    CHECK(aclrtBinaryLoadFromFile(binary, NULL, &s->binary));
    CHECK(aclrtBinaryGetFunction(s->binary, "add_custom", &s->add));
    for (int i = 0; i < 3; ++i) CHECK(aclrtMallocHost(&host[i], BYTES)); /* pinned: captured copies need it */
    s->x_host = host[0];
    s->y_host = host[1];
    s->z_host = host[2];
    CHECK(aclrtMalloc(&s->x, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&s->y, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&s->z, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < COUNT; ++i) {
        s->x_host[i] = (float)i * 0.1f;
        s->y_host[i] = (float)i * 0.2f;
    }
}

static void launch_add(const sample *s, aclrtStream stream) {
    struct {
        void *x, *y, *z;
    } arguments = {s->x, s->y, s->z};
    CHECK(aclrtLaunchKernelWithHostArgs(s->add, BLOCKS, stream, NULL, &arguments, sizeof arguments, NULL, 0));
}

/* Everything on the one stream. */
static void record_single_stream(const sample *s) {
    aclrtStream stream = s->main_stream;
    CHECK(aclrtMemcpyAsync(s->x, BYTES, s->x_host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(aclrtMemcpyAsync(s->y, BYTES, s->y_host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    launch_add(s, stream);
    CHECK(aclrtMemcpyAsync(s->z_host, BYTES, s->z, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
}

/* The second stream becomes part of the capture when it waits for an event of the first, and comes back by another. */
static void record_double_stream(sample *s) {
    CHECK(aclrtCreateStream(&s->compute_stream));
    CHECK(aclrtCreateEventExWithFlag(&s->inputs_there, ACL_EVENT_SYNC));
    CHECK(aclrtCreateEventExWithFlag(&s->sum_there, ACL_EVENT_SYNC));
    CHECK(aclrtMemcpyAsync(s->x, BYTES, s->x_host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, s->main_stream));
    CHECK(aclrtRecordEvent(s->inputs_there, s->main_stream));
    CHECK(aclrtStreamWaitEvent(s->compute_stream, s->inputs_there));
    CHECK(aclrtMemcpyAsync(s->y, BYTES, s->y_host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, s->compute_stream));
    launch_add(s, s->compute_stream);
    CHECK(aclrtRecordEvent(s->sum_there, s->compute_stream));
    CHECK(aclrtStreamWaitEvent(s->main_stream, s->sum_there));
    CHECK(aclrtMemcpyAsync(s->z_host, BYTES, s->z, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, s->main_stream));
}

static void capture(sample *s, int scenario, const char *folder) {
    char path[4096];
    CHECK(aclmdlRICaptureBegin(s->main_stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    if (scenario == 1) record_single_stream(s);
    else record_double_stream(s);
    CHECK(aclmdlRICaptureEnd(s->main_stream, &s->graph));
    (void)snprintf(path, sizeof path, "%s/modelRI_%s_stream.json", folder, scenario == 1 ? "single" : "double");
    CHECK(aclmdlRIDebugJsonPrint(s->graph, path, 0));
    printf("captured; its tasks are in %s\n", path);
}

static int replay(const sample *s) {
    int wrong = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        memset(s->z_host, 0, BYTES);
        s->x_host[0] = (float)round; /* the graph reads what lies there when it runs */
        CHECK(aclmdlRIExecuteAsync(s->graph, s->main_stream));
        CHECK(aclrtSynchronizeStream(s->main_stream));
        for (int i = 0; i < COUNT; ++i) wrong += s->z_host[i] != s->x_host[i] + s->y_host[i];
        printf("round %d: z[0] = %g, z[%d] = %g\n", round, (double)s->z_host[0], COUNT - 1,
               (double)s->z_host[COUNT - 1]);
    }
    return wrong;
}

static void clean(sample *s) {
    CHECK(aclmdlRIDestroy(s->graph));
    if (s->compute_stream) {
        CHECK(aclrtDestroyEvent(s->inputs_there));
        CHECK(aclrtDestroyEvent(s->sum_there));
        CHECK(aclrtDestroyStream(s->compute_stream));
    }
    CHECK(aclrtDestroyStream(s->main_stream));
    CHECK(aclrtFree(s->x));
    CHECK(aclrtFree(s->y));
    CHECK(aclrtFree(s->z));
    CHECK(aclrtFreeHost(s->x_host));
    CHECK(aclrtFreeHost(s->y_host));
    CHECK(aclrtFreeHost(s->z_host));
    CHECK(aclrtBinaryUnLoad(s->binary));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
}

int main(int count, char **words) {
    int scenario = count >= 3 ? atoi(words[2]) : 0;
    if (scenario != 1 && scenario != 2) {
        fprintf(stderr, "usage: capture_tasks_acl KERNEL-BINARY 1|2 [FOLDER]\n");
        return 2;
    }
    sample s = {0};
    prepare(&s, words[1]);
    capture(&s, scenario, count >= 4 ? words[3] : ".");
    int wrong = replay(&s);
    clean(&s);
    printf("%s\n", wrong ? "test failed" : "test pass!");
    return wrong != 0;
}
