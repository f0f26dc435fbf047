/* SPDX-License-Identifier: Apache-2.0
 *
 * A condition as the vendor's documents write one, in what C99, C11 and C++ have in common: a graph with two parts, of which the
 * cell's default value picks one. sample_test.sh compiles it against the simulator's headers, links and runs it. */
#include <acl/acl.h>
#include <stdio.h>

enum { BYTES = 8, FIRST = 0x11, SECOND = 0x22 };

static int failures = 0;

static void check(aclError error, const char *what) {
    if (error == ACL_SUCCESS) return;
    const char *text = aclGetRecentErrMsg();
    fprintf(stderr, "%s: error %d\n%s\n", what, error, text ? text : "");
    failures++;
}
#define CHECK(call) check((call), #call)

static void part(aclrtStream stream, aclmdlRI model, void *out, int value) {
    CHECK(aclmdlRICaptureToModelRIBegin(stream, model, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK(aclrtMemsetAsync(out, BYTES, value, BYTES, stream));
    CHECK(aclmdlRICaptureEnd(stream, NULL));
}

static aclmdlRI capture(aclrtStream stream, aclrtStream inner, void *out, uint32_t default_value) {
    aclmdlRI parent = NULL, parts[2] = {NULL, NULL};
    aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    aclmdlRICondHandle condition = NULL;
    aclmdlRICondHandleFlag flag = ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT;
    uint64_t *cell = NULL;
    aclmdlRICondTaskParams params;
    CHECK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    CHECK(aclmdlRICaptureGetInfo(stream, &status, &parent));
    CHECK(aclmdlRICondHandleCreate(parent, default_value, flag, &condition));
    CHECK(aclmdlRICondHandleGetCondPtr(condition, &cell));
    params.handle = condition;
    params.type = ACL_MODEL_RI_COND_TYPE_IF;
    params.size = 2;
    params.modelRIArray = parts;
    CHECK(aclmdlRIAddCondTask(params, stream, 0U));
    part(inner, parts[0], out, FIRST);
    part(inner, parts[1], out, SECOND);
    CHECK(aclmdlRICaptureEnd(stream, &parent));
    return parent;
}

static void run(aclrtStream stream, aclrtStream inner, void *out, uint32_t default_value) {
    unsigned char got[BYTES] = {0};
    aclmdlRI model = capture(stream, inner, out, default_value);
    CHECK(aclmdlRIExecuteAsync(model, stream));
    CHECK(aclrtSynchronizeStream(stream));
    CHECK(aclrtMemcpy(got, BYTES, out, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(aclmdlRIDestroy(model));
    if (got[0] == (default_value ? FIRST : SECOND)) return;
    fprintf(stderr, "with %u: 0x%x\n", default_value, got[0]);
    failures++;
}

int main(void) {
    aclrtStream stream = NULL, inner = NULL;
    void *out = NULL;
    aclmdlRITaskParams task;
    task.kernelTaskParams.numBlocks = 1; /* as programs name what it has by kind */
    if (task.kernelTaskParams.numBlocks != 1) failures++;
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtCreateStream(&inner));
    CHECK(aclrtMalloc(&out, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    run(stream, inner, out, 0U);
    run(stream, inner, out, 1U);
    CHECK(aclrtFree(out));
    CHECK(aclrtDestroyStream(inner));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    return failures ? 1 : 0;
}
