/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments put together one by one. A parameter is named by its place, from 1, so that its handle is never null. */
#include "sim.h"

enum { HANDLE_BYTES = 4096, HANDLE_PLACES = 64 };

typedef struct sim_args_handle {
    sim_object object;
    sim_function *function;
    size_t size, data; /* bytes of parameters; of what placeholders point to */
    size_t count;
    size_t offsets[HANDLE_PLACES], sizes[HANDLE_PLACES];
    bool is_place[HANDLE_PLACES];
    size_t place_data[HANDLE_PLACES]; /* where its data is in `buffer`; SIZE_MAX: none yet */
    bool final;
    unsigned char bytes[HANDLE_BYTES];
    unsigned char buffer[HANDLE_BYTES];
} sim_args_handle;

static aclError arguments_of(const void *handle, sim_args_handle **out) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "argsHandle is null");
    *out = sim_object_find(handle, SIM_ARGUMENTS);
    return *out ? ACL_SUCCESS : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there are no such arguments");
}

aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle) {
    SIM_BEGIN(aclrtKernelArgsInit);
    if (!argsHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "argsHandle is null");
    sim_lock();
    sim_function *function = NULL;
    aclError error = sim_function_of(funcHandle, &function);
    sim_args_handle *handle = error ? NULL : sim_allocate(sizeof *handle);
    if (!error && (!handle || !sim_object_add(handle, SIM_ARGUMENTS))) {
        free(handle);
        error = sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for arguments");
    }
    if (!error) {
        sim_function_hold(function);
        handle->function = function;
        *argsHandle = handle;
    }
    return sim_leave(error);
}

static aclError arguments_append(sim_args_handle *handle, const void *bytes, size_t size, bool place,
                                 aclrtParamHandle *out) {
    if (handle->final) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the arguments are final");
    if (handle->count == HANDLE_PLACES || size > HANDLE_BYTES || handle->size + size + 8u > HANDLE_BYTES)
        return sim_fail(ACL_ERROR_RT_OVER_LIMIT, "more than %d parameters, or %d bytes", HANDLE_PLACES, HANDLE_BYTES);
    if (place) handle->size = (handle->size + 7u) & ~(size_t)7u;
    if (bytes) memcpy(handle->bytes + handle->size, bytes, size);
    handle->offsets[handle->count] = handle->size;
    handle->sizes[handle->count] = size;
    handle->is_place[handle->count] = place;
    handle->place_data[handle->count] = SIZE_MAX;
    handle->size += size;
    *out = (aclrtParamHandle)(uintptr_t)++handle->count;
    return ACL_SUCCESS;
}

aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
                               aclrtParamHandle *paramHandle) {
    SIM_BEGIN(aclrtKernelArgsAppend);
    if (!param || !paramHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    if (!paramSize) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes are none");
    sim_lock();
    sim_args_handle *handle = NULL;
    aclError error = arguments_of(argsHandle, &handle);
    return sim_leave(error ? error : arguments_append(handle, param, paramSize, false, paramHandle));
}

aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle, aclrtParamHandle *paramHandle) {
    SIM_BEGIN(aclrtKernelArgsAppendPlaceHolder);
    if (!paramHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "paramHandle is null");
    sim_lock();
    sim_args_handle *handle = NULL;
    aclError error = arguments_of(argsHandle, &handle);
    return sim_leave(error ? error : arguments_append(handle, NULL, 8, true, paramHandle));
}

static aclError arguments_place(const sim_args_handle *handle, const void *parameter, size_t *out_index) {
    *out_index = (size_t)(uintptr_t)parameter - 1u;
    return *out_index < handle->count ? ACL_SUCCESS
                                      : sim_fail(ACL_ERROR_RT_INVALID_HANDLE, "there is no such parameter");
}

aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle, size_t dataSize,
                                             void **bufferAddr) {
    SIM_BEGIN(aclrtKernelArgsGetPlaceHolderBuffer);
    if (!bufferAddr || !paramHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    sim_args_handle *handle = NULL;
    size_t index = 0;
    aclError error = arguments_of(argsHandle, &handle);
    if (!error) error = arguments_place(handle, paramHandle, &index);
    if (!error && (!handle->is_place[index] || handle->place_data[index] != SIZE_MAX))
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "it is no placeholder, or has its buffer");
    if (!error && (!dataSize || dataSize > HANDLE_BYTES - handle->data))
        error = sim_fail(ACL_ERROR_RT_OVER_LIMIT, "%zu bytes are none, or more than are left", dataSize);
    if (error) return sim_leave(error);
    handle->place_data[index] = handle->data;
    *bufferAddr = handle->buffer + handle->data;
    handle->data = (handle->data + dataSize + 7u) & ~(size_t)7u;
    if (handle->data > HANDLE_BYTES) handle->data = HANDLE_BYTES;
    return sim_leave(ACL_SUCCESS);
}

aclError aclrtKernelArgsParaUpdate(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle, void *param,
                                   size_t paramSize) {
    SIM_BEGIN(aclrtKernelArgsParaUpdate);
    if (!param || !paramHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
    sim_lock();
    sim_args_handle *handle = NULL;
    size_t index = 0;
    aclError error = arguments_of(argsHandle, &handle);
    if (!error) error = arguments_place(handle, paramHandle, &index);
    if (!error && (handle->is_place[index] || handle->sizes[index] != paramSize))
        error = sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the parameter has another size, or is a placeholder");
    if (!error) memcpy(handle->bytes + handle->offsets[index], param, paramSize);
    return sim_leave(error);
}

aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle) {
    SIM_BEGIN(aclrtKernelArgsFinalize);
    sim_lock();
    sim_args_handle *handle = NULL;
    aclError error = arguments_of(argsHandle, &handle);
    if (!error) handle->final = true;
    return sim_leave(error);
}

/* Parameters, then what placeholders point to. The handle is done with its one launch. */
static aclError arguments_launch(const void *function_handle, uint32_t blocks, aclrtStream stream,
                                 sim_args_handle *handle) {
    sim_function *function = NULL;
    SIM_CHECK(sim_function_of(function_handle, &function));
    if (handle->function != function)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the arguments are of another function");
    if (!handle->final)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "the arguments are not final: aclrtKernelArgsFinalize");
    if (!blocks) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 blocks are none");
    size_t at = (handle->size + 7u) & ~(size_t)7u;
    sim_arguments *arguments = sim_arguments_make(function, blocks, at + handle->data);
    if (arguments) {
        memcpy(arguments->bytes, handle->bytes, handle->size);
        memcpy(arguments->bytes + at, handle->buffer, handle->data);
    }
    for (size_t i = 0; arguments && i < handle->count; i++) {
        if (!handle->is_place[i] || handle->place_data[i] == SIZE_MAX) continue;
        uint64_t address = (uint64_t)(uintptr_t)(arguments->bytes + at + handle->place_data[i]);
        memcpy(arguments->bytes + handle->offsets[i], &address, sizeof address);
    }
    SIM_CHECK(sim_launch(stream, arguments));
    sim_object_remove(handle);
    sim_function_release(handle->function);
    free(handle);
    return ACL_SUCCESS;
}

aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                     aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle, void *reserve) {
    SIM_BEGIN(aclrtLaunchKernelWithConfig);
    (void)cfg;
    if (reserve) return sim_fail(ACL_ERROR_INVALID_PARAM, "reserve is not null");
    if (!funcHandle) return sim_fail(ACL_ERROR_INVALID_PARAM, "the function is null");
    sim_lock();
    sim_concern_stream(stream);
    sim_args_handle *handle = NULL;
    aclError error = arguments_of(argsHandle, &handle);
    return sim_leave(error ? error : arguments_launch(funcHandle, numBlocks, stream, handle));
}
