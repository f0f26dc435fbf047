/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels and host functions on a native stream. A kernel of a binary gets its words as its arguments. A kernel of the host goes
 * as the argument of a function that runs it, where the library takes C functions; what it returns is kept by name, since the
 * driver would only say that something failed. */
#include <stdio.h>
#include <string.h>

#include "ascend.h"

/* What a simulated library is given (acl_simulator.h): its form is part of that interface. */
typedef struct call_launch {
    const void *arguments;
    uint64_t size;
    uint32_t block, blocks;
} call_launch;
typedef struct call_kernel {
    const char *name;
    int32_t (*function)(const call_launch *launch);
    uint32_t kind, words;
} call_kernel;
typedef struct call_image {
    char magic[16];
    uint64_t count;
    const call_kernel *kernels;
} call_image;

/* Before the words, and behind them the name. */
typedef struct call_head {
    rondo_kernel kernel;
    rondo__ascend_fate *fate;
    uint64_t count;
} call_head;

rondo__ascend_fate *rondo__ascend_fate_make(const rondo_host_api *host) {
    rondo__ascend_fate *fate = rondo__ascend_allocate(host, sizeof *fate);
    if (fate) atomic_init(&fate->references, 1);
    return fate;
}

void rondo__ascend_fate_release(const rondo_host_api *host, rondo__ascend_fate *fate) {
    if (fate && atomic_fetch_sub(&fate->references, 1) == 1) rondo__ascend_free(host, fate, sizeof *fate);
}

/* The first one counts. */
static void call_failed(rondo__ascend_fate *fate, const char *name, int32_t reason, bool host) {
    int nothing = 0;
    if (!atomic_compare_exchange_strong(&fate->state, &nothing, 1)) return;
    size_t length = strlen(name);
    if (length >= sizeof fate->name) length = sizeof fate->name - 1;
    memcpy(fate->name, name, length);
    fate->name[length] = '\0';
    fate->reason = reason;
    fate->host = host;
    atomic_store(&fate->state, 2);
}

static int32_t call_run(const call_launch *launch) {
    const call_head *head = launch->arguments;
    const uint64_t *words = (const uint64_t *)(const void *)(head + 1);
    int32_t reason = head->kernel.function(head->kernel.context, words);
    if (reason) call_failed(head->fate, (const char *)(words + head->count), reason, false);
    return reason;
}

/* Behind a host function: stops the stream where that failed. */
static int32_t call_check(const call_launch *launch) {
    rondo__ascend_fate *const *fate = launch->arguments;
    return atomic_load(&(*fate)->state) == 2 ? 1 : 0;
}

rondo_status rondo__ascend_host_image(rondo__ascend_device *device) {
    static const call_kernel kernels[] = {{"rondo.call", call_run, 0, 0}, {"rondo.check", call_check, 0, 0}};
    static const call_image image = {"acl simulator 1", sizeof kernels / sizeof kernels[0], kernels};
    int error = device->library->api.aclrtBinaryLoadFromData(&image, sizeof image, NULL, &device->image);
    if (error) { /* as a device's own library does */
        char words[RONDO__ASCEND_TEXT], numbered[RONDO__ASCEND_TEXT + RONDO__ASCEND_NAME];
        rondo__ascend_words(device->library, error, words, sizeof words);
        (void)snprintf(numbered, sizeof numbered, "%s [%d]", words, error);
        rondo__ascend_switch_off(device, RONDO__ASCEND_HOST_KERNELS, "it takes no table of C functions", numbered);
        device->image = NULL;
        return RONDO_OK;
    }
    rondo_status status =
        RONDO__ASCEND_CALL(device->library, aclrtBinaryGetFunction, device->image, "rondo.call", &device->run);
    if (!status)
        status =
            RONDO__ASCEND_CALL(device->library, aclrtBinaryGetFunction, device->image, "rondo.check", &device->check);
    return status;
}

static rondo_status call_host_kernel(rondo__ascend_device *device, void *native, rondo_kernel kernel,
                                     const uint64_t *words, uint32_t count, const char *name,
                                     rondo__ascend_fate *fate) {
    struct {
        call_head head;
        uint64_t words[RONDO_ARGUMENT_MAX];
        char name[RONDO__ASCEND_NAME];
    } blob;
    size_t length = name ? strlen(name) : 0;
    if (!device->run)
        return RONDO_PLUGIN_FAIL(device->host, UNSUPPORTED, DRIVER,
                                 "ascend: '%s' is a function of the host: a device runs kernels of binaries",
                                 name ? name : "");
    if (length >= sizeof blob.name) length = sizeof blob.name - 1;
    blob.head = (call_head){kernel, fate, count};
    memcpy(blob.words, words, count * sizeof *words);
    char *text = (char *)(blob.words + count); /* what is left out of the words is the name's */
    if (length) memcpy(text, name, length);
    text[length] = '\0';
    size_t size = (size_t)(text + length + 1 - (char *)&blob);
    return RONDO__ASCEND_CALL(device->library, aclrtLaunchKernelWithHostArgs, device->run, 1, native, NULL, &blob, size,
                              NULL, 0);
}

rondo_status rondo__ascend_launch(rondo__ascend_device *device, void *native, rondo_kernel kernel,
                                  const uint64_t *words, uint32_t count, const char *name, rondo__ascend_fate *fate) {
    if (kernel.function) return call_host_kernel(device, native, kernel, words, count, name, fate);
    const rondo__ascend_kernel *loaded = kernel.context;
    uint64_t arguments[RONDO_ARGUMENT_MAX];
    if (!loaded)
        return RONDO_PLUGIN_FAIL(device->host, INVALID_ARGUMENT, DRIVER, "ascend: '%s' has no kernel",
                                 name ? name : "");
    memcpy(arguments, words, count * sizeof *words);
    rondo_status status = RONDO__ASCEND_CALL(device->library, aclrtLaunchKernelWithHostArgs, loaded->function,
                                             loaded->blocks, native, NULL, arguments, count * sizeof *words, NULL, 0);
    return status ? device->host->status_note(status, "launching '%s'", name ? name : "") : RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------- host functions */

static void call_host(void *argument) {
    rondo__ascend_host_call *call = argument;
    int32_t reason = call->function(call->user);
    if (reason) call_failed(call->fate, "a host function", reason, true);
    atomic_store(&call->done, true);
}

rondo_status rondo__ascend_host_call_enqueue(rondo__ascend_device *device, void *native,
                                             rondo__ascend_host_call *call) {
    if (!rondo__ascend_can(device, RONDO__ASCEND_HOST_FUNCTIONS))
        return rondo__ascend_refusal(device, RONDO__ASCEND_HOST_FUNCTIONS, "a host function on a stream");
    int error = device->library->api.aclrtLaunchHostFunc(native, call_host, call);
    if (RONDO__ASCEND_REFUSED(device, RONDO__ASCEND_HOST_FUNCTIONS, aclrtLaunchHostFunc, error))
        return rondo__ascend_refusal(device, RONDO__ASCEND_HOST_FUNCTIONS, "a host function on a stream");
    rondo_status status = rondo__ascend_error(device->library, "aclrtLaunchHostFunc", error);
    if (status || !device->check) return status;
    return RONDO__ASCEND_CALL(device->library, aclrtLaunchKernelWithHostArgs, device->check, 1, native, NULL,
                              &call->fate, sizeof call->fate, NULL, 0);
}

void rondo__ascend_host_calls_free(const rondo_host_api *host, rondo__ascend_host_call *first) {
    while (first) {
        rondo__ascend_host_call *next = first->next;
        rondo__ascend_free(host, first, sizeof *first);
        first = next;
    }
}
