/* SPDX-License-Identifier: Apache-2.0
 *
 * A deployment program as it is written for AscendCL: it loads a model from a file, asks what it takes and gives, runs it
 * in a stream, and prints the results. It knows acl.h alone; here it links the simulator, and the file is one of Rondo's:
 *
 *   rondo compile MODEL.onnx -o MODEL.rondo
 *   model_acl MODEL.rondo
 *
 * Inputs are 0, 1/8, 2/8, ... 7/8, 0, ... (floats), or 0, 1, 0, ... (bytes of all else). */
#include <acl/acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                           \
    do {                                                                                                      \
        aclError check_error = (call);                                                                        \
        if (check_error) {                                                                                    \
            const char *check_text = aclGetRecentErrMsg();                                                    \
            (void)fprintf(stderr, "model_acl: %s: %d\n%s", #call, check_error, check_text ? check_text : ""); \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

/* A buffer of device memory for each input or output. */
static aclmdlDataset *make_set(aclmdlDesc *desc, int output) {
    aclmdlDataset *set = aclmdlCreateDataset();
    size_t count = output ? aclmdlGetNumOutputs(desc) : aclmdlGetNumInputs(desc);
    for (size_t i = 0; i < count; i++) {
        size_t bytes = output ? aclmdlGetOutputSizeByIndex(desc, i) : aclmdlGetInputSizeByIndex(desc, i);
        void *device = NULL;
        CHECK(aclrtMalloc(&device, bytes ? bytes : 1, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(aclmdlAddDatasetBuffer(set, aclCreateDataBuffer(device, bytes)));
    }
    return set;
}

static void free_set(aclmdlDataset *set) {
    for (size_t i = 0; i < aclmdlGetDatasetNumBuffers(set); i++) {
        aclDataBuffer *buffer = aclmdlGetDatasetBuffer(set, i);
        CHECK(aclrtFree(aclGetDataBufferAddr(buffer)));
        CHECK(aclDestroyDataBuffer(buffer));
    }
    CHECK(aclmdlDestroyDataset(set));
}

static void fill_inputs(aclmdlDesc *desc, aclmdlDataset *set, aclrtStream stream) {
    for (size_t i = 0; i < aclmdlGetNumInputs(desc); i++) {
        size_t bytes = aclmdlGetInputSizeByIndex(desc, i);
        unsigned char *host = NULL;
        CHECK(aclrtMallocHost((void **)&host, bytes ? bytes : 1));
        for (size_t k = 0; k < bytes; k++) host[k] = (unsigned char)(k % 2);
        for (size_t k = 0; aclmdlGetInputDataType(desc, i) == ACL_FLOAT && k < bytes / 4; k++) {
            float value = (float)(k % 8) / 8.0f;
            memcpy(host + 4 * k, &value, 4);
        }
        void *device = aclGetDataBufferAddr(aclmdlGetDatasetBuffer(set, i));
        CHECK(aclrtMemcpyAsync(device, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        CHECK(aclrtSynchronizeStream(stream));
        CHECK(aclrtFreeHost(host));
    }
}

static void print_output(aclmdlDesc *desc, aclmdlDataset *set, size_t index) {
    aclmdlIODims dims;
    size_t bytes = aclmdlGetOutputSizeByIndex(desc, index);
    float *host = malloc(bytes ? bytes : 1);
    if (!host) exit(1);
    CHECK(aclmdlGetOutputDims(desc, index, &dims));
    CHECK(aclrtMemcpy(host, bytes, aclGetDataBufferAddr(aclmdlGetDatasetBuffer(set, index)), bytes,
                      ACL_MEMCPY_DEVICE_TO_HOST));
    (void)printf("%s [", aclmdlGetOutputNameByIndex(desc, index));
    for (size_t i = 0; i < dims.dimCount; i++) (void)printf("%s%lld", i ? ", " : "", (long long)dims.dims[i]);
    (void)printf("]");
    for (size_t k = 0; aclmdlGetOutputDataType(desc, index) == ACL_FLOAT && k < bytes / 4 && k < 4; k++)
        (void)printf(" %g", (double)host[k]);
    (void)printf("%s\n", bytes / 4 > 4 ? " ..." : "");
    free(host);
}

int main(int argc, char **argv) {
    uint32_t id = 0;
    aclrtStream stream = NULL;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: model_acl FILE\n");
        return 2;
    }
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclmdlLoadFromFile(argv[1], &id));
    aclmdlDesc *desc = aclmdlCreateDesc();
    CHECK(aclmdlGetDesc(desc, id));
    aclmdlDataset *inputs = make_set(desc, 0), *outputs = make_set(desc, 1);
    fill_inputs(desc, inputs, stream);
    CHECK(aclmdlExecuteAsync(id, inputs, outputs, stream));
    CHECK(aclrtSynchronizeStream(stream));
    for (size_t i = 0; i < aclmdlGetNumOutputs(desc); i++) print_output(desc, outputs, i);
    free_set(inputs);
    free_set(outputs);
    CHECK(aclmdlDestroyDesc(desc));
    CHECK(aclmdlUnload(id));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    return 0;
}
