/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel's arguments, and the ways in which they are handed over: in device memory, in host memory with addresses to be
 * filled in, one by one into a handle, as an array of pointers. */
#include "sim.h"

sim_arguments *sim_arguments_make(sim_function *function, uint32_t blocks, size_t size) {
    sim_arguments *arguments = size < SIZE_MAX / 2 ? sim_allocate(sizeof *arguments + size) : NULL;
    if (!arguments) return NULL;
    sim_function_hold(function);
    arguments->function = function;
    arguments->blocks = blocks;
    arguments->size = size;
    return arguments;
}

void sim_arguments_free(sim_arguments *arguments) {
    if (!arguments) return;
    sim_function_release(arguments->function);
    free(arguments);
}

void sim_arguments_free_all(sim_arguments *first) {
    while (first) {
        sim_arguments *next = first->next;
        sim_arguments_free(first);
        first = next;
    }
}

aclError sim_arguments_stale(const sim_arguments *a, char *text) {
    uint64_t word = 0;
    char why[SIM_TEXT] = "";
    if (a->function->gone) {
        (void)snprintf(text, SIM_TEXT, "kernel '%s': its binary was unloaded", a->function->name);
        return ACL_ERROR_RT_KERNEL_LOOKUP;
    }
    const void *bytes = a->device ? a->device : a->bytes;
    bool stale = a->device && sim_memory_gone(a->device, a->size, why, sizeof why);
    if (!stale && sim_memory_stale_word(bytes, a->size, &word)) {
        stale = true;
        (void)snprintf(why, sizeof why, "argument 0x%llx lies in memory that was freed", (unsigned long long)word);
    }
    if (stale) (void)snprintf(text, SIM_TEXT, "kernel '%s': address out of range: %.300s", a->function->name, why);
    return stale ? ACL_ERROR_RT_AICORE_EXCEPTION : ACL_SUCCESS;
}

aclError sim_arguments_run(const sim_arguments *a, char *text) {
    aclsim_launch launch = {a->device ? a->device : a->bytes, a->size, 0, a->blocks};
    for (; launch.block < a->blocks; launch.block++) {
        int32_t error = a->function->run(&launch);
        if (!error) continue;
        (void)snprintf(text, SIM_TEXT, "kernel '%s', block %u of %u, ended with %d", a->function->name, launch.block,
                       a->blocks, error);
        return a->function->kind == ACLSIM_AICPU ? ACL_ERROR_RT_AICPU_EXCEPTION : ACL_ERROR_RT_AICORE_EXCEPTION;
    }
    return ACL_SUCCESS;
}

/* Takes the arguments. With the lock. */
aclError sim_launch(aclrtStream handle, sim_arguments *arguments) {
    sim_stream *stream = NULL;
    sim_task *task = NULL;
    aclError error = sim_stream_of(handle, &stream);
    if (!error && !arguments) error = sim_stream_no_memory(stream, "arguments");
    if (!error) error = sim_task_for(stream, SIM_KERNEL, &task);
    if (error) {
        sim_arguments_free(arguments);
        return error;
    }
    atomic_init(&task->as.kernel.now, arguments);
    return sim_submit(stream, task);
}

/* Pointers come first, whatever else is wrong. */
static aclError launch_check_null(const void *handle, const void *data, size_t size, const aclrtLaunchKernelCfg *cfg) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "the function is null");
    if (!data && size) return sim_fail(ACL_ERROR_INVALID_PARAM, "the arguments are null");
    return cfg && !cfg->attrs && cfg->numAttrs ? sim_fail(ACL_ERROR_INVALID_PARAM, "the attributes are null")
                                               : ACL_SUCCESS;
}

static aclError launch_check(const void *handle, uint32_t blocks, const aclrtLaunchKernelCfg *cfg,
                             sim_function **out_function) {
    SIM_CHECK(sim_function_of(handle, out_function));
    if (!blocks) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 blocks are none");
    for (size_t i = 0; cfg && i < cfg->numAttrs; i++)
        if (cfg->attrs[i].id < ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE ||
            cfg->attrs[i].id > ACL_RT_LAUNCH_KERNEL_ATTR_ENABLE_PROFILING)
            return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no attribute of a launch", (int)cfg->attrs[i].id);
    return ACL_SUCCESS;
}

static void launch_configure(sim_arguments *arguments, const aclrtLaunchKernelCfg *cfg) {
    for (size_t i = 0; arguments && cfg && i < cfg->numAttrs; i++)
        if (cfg->attrs[i].id == ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE) arguments->scheme = cfg->attrs[i].value.schemMode;
}

aclError sim_launch_check_device(const void *data, size_t size) {
    char text[SIM_TEXT];
    if (!size) return ACL_SUCCESS;
    const sim_block *block = sim_memory_find(data);
    if (!block || block->kind != SIM_MEMORY_DEVICE)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID,
                        "%p is no device memory: arguments in host memory go through "
                        "aclrtLaunchKernelWithHostArgs",
                        data);
    return sim_memory_bad(data, size, text, sizeof text) ? sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%s", text)
                                                         : ACL_SUCCESS;
}

static aclError launch_from_device(const void *handle, uint32_t blocks, const void *data, size_t size,
                                   const aclrtLaunchKernelCfg *cfg, aclrtStream stream) {
    sim_function *function = NULL;
    sim_concern_stream(stream);
    SIM_CHECK(launch_check_null(handle, data, size, cfg));
    SIM_CHECK(launch_check(handle, blocks, cfg, &function));
    SIM_CHECK(sim_launch_check_device(data, size));
    sim_arguments *arguments = sim_arguments_make(function, blocks, 0);
    if (arguments && size) {
        arguments->device = data;
        arguments->size = size;
    }
    launch_configure(arguments, cfg);
    return sim_launch(stream, arguments);
}

aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                           aclrtStream stream) {
    SIM_BEGIN(aclrtLaunchKernel);
    sim_lock();
    return sim_leave(launch_from_device(funcHandle, numBlocks, argsData, argsSize, NULL, stream));
}

aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData, size_t argsSize,
                             aclrtLaunchKernelCfg *cfg, aclrtStream stream) {
    SIM_BEGIN(aclrtLaunchKernelV2);
    sim_lock();
    return sim_leave(launch_from_device(funcHandle, numBlocks, argsData, argsSize, cfg, stream));
}

static aclError launch_from_host(const void *handle, uint32_t blocks, aclrtStream stream,
                                 const aclrtLaunchKernelCfg *cfg, const void *data, size_t size,
                                 const aclrtPlaceHolderInfo *places, size_t count) {
    sim_function *function = NULL;
    sim_concern_stream(stream);
    SIM_CHECK(launch_check_null(handle, data, size, cfg));
    if (!places && count) return sim_fail(ACL_ERROR_INVALID_PARAM, "placeHolderArray is null");
    SIM_CHECK(launch_check(handle, blocks, cfg, &function));
    for (size_t i = 0; i < count; i++)
        if (size < 8 || places[i].addrOffset > size - 8 || places[i].dataOffset >= size)
            return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "place %zu lies outside of the %zu bytes of arguments", i,
                            size);
    sim_arguments *arguments = sim_arguments_make(function, blocks, size);
    if (arguments && size) memcpy(arguments->bytes, data, size);
    for (size_t i = 0; arguments && i < count; i++) {
        uint64_t address = (uint64_t)(uintptr_t)(arguments->bytes + places[i].dataOffset);
        memcpy(arguments->bytes + places[i].addrOffset, &address, sizeof address);
    }
    launch_configure(arguments, cfg);
    return sim_launch(stream, arguments);
}

aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks, aclrtStream stream,
                                       aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
                                       aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum) {
    SIM_BEGIN(aclrtLaunchKernelWithHostArgs);
    sim_lock();
    return sim_leave(
        launch_from_host(funcHandle, numBlocks, stream, cfg, hostArgs, argsSize, placeHolderArray, placeHolderNum));
}

static aclError launch_from_array(const void *handle, uint32_t blocks, aclrtStream stream,
                                  const aclrtLaunchKernelCfg *cfg, void *const *args) {
    sim_function *function = NULL;
    sim_concern_stream(stream);
    SIM_CHECK(launch_check_null(handle, args, 1, cfg));
    SIM_CHECK(launch_check(handle, blocks, cfg, &function));
    if (!function->words)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "how many arguments '%s' has is not known", function->name);
    for (uint32_t i = 0; i < function->words; i++)
        if (!args[i]) return sim_fail(ACL_ERROR_INVALID_PARAM, "argument %u is null", i);
    sim_arguments *arguments = sim_arguments_make(function, blocks, 8u * (size_t)function->words);
    for (uint32_t i = 0; arguments && i < function->words; i++) memcpy(arguments->bytes + 8u * (size_t)i, args[i], 8);
    launch_configure(arguments, cfg);
    return sim_launch(stream, arguments);
}

aclError aclrtLaunchKernelWithArgsArray(void *func, uint32_t numBlocks, aclrtStream stream, aclrtLaunchKernelCfg *cfg,
                                        void **args) {
    SIM_BEGIN(aclrtLaunchKernelWithArgsArray);
    sim_lock();
    return sim_leave(launch_from_array(func, numBlocks, stream, cfg, args));
}
