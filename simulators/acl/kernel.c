/* SPDX-License-Identifier: Apache-2.0
 *
 * Binaries and their functions. A binary is a table of C functions, in memory (acl_simulator.h) or in a shared library; a
 * device's own binary is refused. */
#include <dlfcn.h>

#include "sim.h"

typedef struct sim_binary {
    sim_object object;
    aclsim_image image;
    void *library; /* of dlopen; null: an image in memory */
    sim_function *functions;
    bool gone;          /* it goes with the last function that something still names */
    sim_farewell close; /* without the lock: a library's own code runs as it is closed */
} sim_binary;

static uint64_t kernel_unloads;

uint64_t sim_kernel_unloads(void) { return kernel_unloads; }

static void kernel_close(void *data) {
    sim_binary *binary = data;
    if (binary->library) (void)dlclose(binary->library);
    free(binary);
}

static void kernel_binary_done(sim_binary *binary) {
    if (!binary->gone || binary->functions) return;
    binary->close = (sim_farewell){NULL, kernel_close, binary, false};
    sim_farewell_add(&binary->close);
}

void sim_function_hold(sim_function *function) { function->users++; }

static void kernel_function_free(sim_function *function) {
    sim_binary *binary = function->binary;
    sim_function **link = &binary->functions;
    while (*link != function) link = &(*link)->next;
    *link = function->next;
    free(function);
    kernel_binary_done(binary);
}

void sim_function_release(sim_function *function) {
    if (--function->users == 0 && function->gone) kernel_function_free(function);
}

static aclError kernel_binary(const aclsim_image *image, void *library, aclrtBinHandle *out) {
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    sim_binary *binary = error ? NULL : sim_allocate(sizeof *binary);
    if (!error && (!binary || !sim_object_add(binary, SIM_BINARY))) {
        free(binary);
        error = sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a binary");
    }
    if (!error) {
        if (image) binary->image = *image;
        binary->library = library;
        *out = binary;
    }
    return sim_leave(error);
}

aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *options, aclrtBinHandle *binHandle) {
    SIM_BEGIN(aclrtBinaryLoadFromFile);
    (void)options;
    if (!binPath || !binHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    void *library = dlopen(binPath, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return sim_fail(ACL_ERROR_INVALID_FILE, "%s is no library of C functions: %.256s", binPath, dlerror());
    aclError error = kernel_binary(NULL, library, binHandle);
    if (error) (void)dlclose(library);
    return error;
}

aclError aclrtBinaryLoadFromData(const void *data, size_t length, const aclrtBinaryLoadOptions *options,
                                 aclrtBinHandle *binHandle) {
    SIM_BEGIN(aclrtBinaryLoadFromData);
    (void)options;
    if (!data || !binHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    aclsim_image image;
    memset(&image, 0, sizeof image);
    if (length >= sizeof image) memcpy(&image, data, sizeof image);
    if (memcmp(image.magic, ACLSIM_MAGIC, sizeof ACLSIM_MAGIC) != 0)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID,
                        "the %zu bytes are no image of acl_simulator.h: code of a device does "
                        "not run here",
                        length);
    return kernel_binary(&image, NULL, binHandle);
}

aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle) {
    SIM_BEGIN(aclrtBinaryUnLoad);
    if (!binHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "binHandle is null");
    sim_lock();
    sim_binary *binary = sim_object_find(binHandle, SIM_BINARY);
    if (!binary) return sim_leave(sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such binary"));
    kernel_unloads++;
    sim_object_remove(binary);
    for (sim_function *function = binary->functions, *next = NULL; function; function = next) {
        next = function->next;
        function->gone = true;
        sim_object_remove(function);
        if (!function->users) kernel_function_free(function);
    }
    binary->gone = true;
    kernel_binary_done(binary);
    return sim_leave(ACL_SUCCESS);
}

static aclError kernel_look_up(const sim_binary *binary, const char *name, aclsim_kernel *out_kernel) {
    *out_kernel = (aclsim_kernel){name, NULL, ACLSIM_VECTOR, 0};
    for (uint64_t i = 0; i < binary->image.count; i++)
        if (strcmp(binary->image.kernels[i].name, name) == 0) *out_kernel = binary->image.kernels[i];
    if (binary->library) {
        void *symbol = dlsym(binary->library, name);
        memcpy(&out_kernel->function, &symbol, sizeof symbol);
    }
    if (out_kernel->function) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_RT_KERNEL_LOOKUP, "the binary has no function '%.128s'", name);
}

static aclError kernel_function(const void *handle, const char *name, const char *known_as, aclrtFuncHandle *out) {
    sim_binary *binary = sim_object_find(handle, SIM_BINARY);
    if (!binary) return sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such binary");
    for (sim_function *function = binary->functions; function; function = function->next) {
        if (strcmp(function->name, known_as) != 0) continue;
        *out = function;
        return ACL_SUCCESS;
    }
    aclsim_kernel kernel;
    SIM_CHECK(kernel_look_up(binary, name, &kernel));
    sim_function *function = sim_allocate(sizeof *function);
    if (!function || !sim_object_add(function, SIM_FUNCTION)) {
        free(function);
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a function");
    }
    function->run = kernel.function;
    function->kind = kernel.kind;
    function->words = kernel.words;
    function->binary = binary;
    (void)snprintf(function->name, sizeof function->name, "%s", known_as);
    function->next = binary->functions;
    binary->functions = function;
    *out = function;
    return ACL_SUCCESS;
}

aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName, aclrtFuncHandle *funcHandle) {
    SIM_ENTER(aclrtBinaryGetFunction);
    if (!kernelName || !funcHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if (!binHandle && strcmp(kernelName, ACLSIM_CONTROL) == 0) {
        const void *control = sim_control();
        memcpy(funcHandle, &control, sizeof control);
        return ACL_SUCCESS;
    }
    if (!binHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "binHandle is null");
    sim_lock();
    return sim_leave(kernel_function(binHandle, kernelName, kernelName, funcHandle));
}

aclError aclrtRegisterCpuFunc(const aclrtBinHandle handle, const char *funcName, const char *kernelName,
                              aclrtFuncHandle *funcHandle) {
    SIM_BEGIN(aclrtRegisterCpuFunc);
    if (!handle || !funcName || !kernelName || !funcHandle)
        return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    aclError error = kernel_function(handle, funcName, kernelName, funcHandle);
    if (!error) ((sim_function *)*funcHandle)->kind = ACLSIM_AICPU;
    return sim_leave(error);
}

aclError sim_function_of(const void *handle, sim_function **out_function) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "the function is null");
    *out_function = sim_object_find(handle, SIM_FUNCTION);
    return *out_function ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such function");
}
