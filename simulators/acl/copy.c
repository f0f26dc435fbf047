/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills: at once, or in a stream. The direction that a caller names is advice; where both ends lie decides. */
#include "sim.h"

typedef struct copy_shape {
    unsigned char *to;
    const unsigned char *from;
    size_t width, height, to_pitch, from_pitch;
} copy_shape;

static aclError copy_check_range(const void *address, size_t bytes) {
    char text[SIM_TEXT];
    return sim_memory_bad(address, bytes, text, sizeof text) ? sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%s", text)
                                                             : ACL_SUCCESS;
}

static aclError copy_check_rows(const void *address, const copy_shape *s, size_t pitch) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(s->height - 1, pitch, &bytes) || __builtin_add_overflow(bytes, s->width, &bytes) ||
        bytes > UINTPTR_MAX - (uintptr_t)address)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%zu rows at every %zu bytes from %p reach beyond all memory",
                        s->height, pitch, address);
    return copy_check_range(address, bytes);
}

static aclError copy_check_null(const copy_shape *s) {
    return s->to && s->from ? ACL_SUCCESS : sim_fail(ACL_ERROR_INVALID_PARAM, "a pointer is null");
}

static aclError copy_check(const copy_shape *s, aclrtMemcpyKind kind) {
    if (kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no direction", (int)kind);
    if (!s->width || !s->height) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "0 bytes are none");
    if (s->width > s->to_pitch || s->width > s->from_pitch)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes are more than the %zu that there is room for", s->width,
                        s->to_pitch < s->from_pitch ? s->to_pitch : s->from_pitch);
    SIM_CHECK(copy_check_rows(s->to, s, s->to_pitch));
    return copy_check_rows(s->from, s, s->from_pitch);
}

static uint32_t copy_kind_of(const void *address) {
    const sim_block *block = sim_memory_find(address);
    return block ? block->kind : SIM_MEMORY_NONE;
}

static void copy_now(const copy_shape *s) {
    for (size_t row = 0; row < s->height; row++)
        memmove(s->to + row * s->to_pitch, s->from + row * s->from_pitch, s->width);
    sim_changed(); /* somebody may wait for a value there */
}

static aclError copy_at_once(const copy_shape *s, aclrtMemcpyKind kind) {
    sim_context *context = NULL;
    SIM_CHECK(copy_check_null(s));
    SIM_CHECK(sim_current(&context));
    SIM_CHECK(copy_check(s, kind));
    SIM_CHECK(sim_mode_check(context, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "a copy that waits"));
    copy_now(s);
    return ACL_SUCCESS;
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind) {
    SIM_BEGIN(aclrtMemcpy);
    copy_shape shape = {dst, src, count, 1, destMax, count};
    sim_lock();
    return sim_leave(copy_at_once(&shape, kind));
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                       aclrtMemcpyKind kind) {
    SIM_BEGIN(aclrtMemcpy2d);
    copy_shape shape = {dst, src, width, height, dpitch, spitch};
    sim_lock();
    return sim_leave(copy_at_once(&shape, kind));
}

/* Host memory that is not pinned: the stream is waited for, then the bytes go at once. */
static aclError copy_pageable(const copy_shape *s, sim_stream *stream) {
    if (stream->model)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID,
                        "stream %d is captured: its copies need pinned host memory (aclrtMallocHost)", stream->id);
    SIM_CHECK(sim_mode_check(stream->context, ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC, "a copy of pageable host memory"));
    if (stream->updating || stream->update_lost)
        return sim_fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, "a task group has kernels only");
    uint64_t to = sim_memory_number(s->to), from = sim_memory_number(s->from);
    SIM_CHECK(sim_stream_wait(stream, -1));
    /* Another thread may have freed it meanwhile, and even got new memory there. */
    if ((to && sim_memory_number(s->to) != to) || (from && sim_memory_number(s->from) != from))
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p was freed while the copy waited for stream %d",
                        to && sim_memory_number(s->to) != to ? (void *)s->to : (void *)(uintptr_t)s->from, stream->id);
    if (!stream->dropping) copy_now(s);
    return ACL_SUCCESS;
}

static aclError copy_in_stream(const copy_shape *s, aclrtMemcpyKind kind, aclrtStream handle) {
    sim_stream *stream = NULL;
    SIM_CHECK(copy_check_null(s));
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(copy_check(s, kind));
    uint32_t to = copy_kind_of(s->to), from = copy_kind_of(s->from);
    if (to != SIM_MEMORY_DEVICE && from != SIM_MEMORY_DEVICE)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "no stream copies from host to host");
    if (s->to == s->from) return ACL_SUCCESS; /* with a warning, there */
    if (to == SIM_MEMORY_NONE || from == SIM_MEMORY_NONE) return copy_pageable(s, stream);
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, SIM_COPY, &task));
    task->as.copy.to = s->to;
    task->as.copy.from = s->from;
    task->as.copy.width = s->width;
    task->as.copy.height = s->height;
    task->as.copy.to_pitch = s->to_pitch;
    task->as.copy.from_pitch = s->from_pitch;
    return sim_submit(stream, task);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
    SIM_BEGIN(aclrtMemcpyAsync);
    copy_shape shape = {dst, src, count, 1, destMax, count};
    sim_lock();
    return sim_leave(copy_in_stream(&shape, kind, stream));
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
    SIM_BEGIN(aclrtMemcpy2dAsync);
    copy_shape shape = {dst, src, width, height, dpitch, spitch};
    sim_lock();
    return sim_leave(copy_in_stream(&shape, kind, stream));
}

static aclError copy_check_fill(const void *address, size_t most, size_t count) {
    if (!count || count > most)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%zu bytes are none, or more than the %zu that there is room for",
                        count, most);
    return copy_check_range(address, count);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count) {
    SIM_BEGIN(aclrtMemset);
    if (!devPtr) return sim_fail(ACL_ERROR_INVALID_PARAM, "devPtr is null");
    sim_lock();
    sim_context *context = NULL;
    aclError error = sim_current(&context);
    if (!error) error = copy_check_fill(devPtr, maxCount, count);
    if (!error) error = sim_mode_check(context, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "a fill that waits");
    if (!error) memset(devPtr, value, count);
    if (!error) sim_changed();
    return sim_leave(error);
}

static aclError copy_fill_in_stream(void *address, size_t most, int32_t value, size_t count, aclrtStream handle) {
    sim_stream *stream = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(copy_check_fill(address, most, count));
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, SIM_FILL, &task));
    task->as.fill.to = address;
    task->as.fill.value = value;
    task->as.fill.count = count;
    task->as.fill.known = copy_kind_of(address) != SIM_MEMORY_NONE;
    return sim_submit(stream, task);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
    SIM_BEGIN(aclrtMemsetAsync);
    if (!devPtr) return sim_fail(ACL_ERROR_INVALID_PARAM, "devPtr is null");
    sim_lock();
    return sim_leave(copy_fill_in_stream(devPtr, maxCount, value, count, stream));
}

/* ------------------------------------------------------------------------------------- values in device memory */

aclError sim_value_check(const void *address, uint32_t flag, uint32_t kind) {
    if ((uintptr_t)address % 8u) return sim_fail(ACL_ERROR_RT_ADDR_UNALIGNED, "%p is not at a multiple of 8", address);
    if (kind == SIM_VALUE_WAIT ? flag > ACL_VALUE_WAIT_NOR : flag != 0)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%u is no flag of it", flag);
    if (copy_kind_of(address) != SIM_MEMORY_DEVICE)
        return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%p is no device memory", address);
    return copy_check_range(address, 8);
}

static aclError copy_value(void *address, uint64_t value, uint32_t flag, aclrtStream handle, uint32_t kind) {
    sim_stream *stream = NULL;
    if (!address) return sim_fail(ACL_ERROR_INVALID_PARAM, "devAddr is null");
    SIM_CHECK(sim_stream_of(handle, &stream));
    SIM_CHECK(sim_value_check(address, flag, kind));
    sim_task *task = NULL;
    SIM_CHECK(sim_task_for(stream, kind, &task));
    task->as.value.address = address;
    task->as.value.value = value;
    task->as.value.flag = flag;
    return sim_submit(stream, task);
}

aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
    SIM_BEGIN(aclrtValueWrite);
    sim_lock();
    return sim_leave(copy_value(devAddr, value, flag, stream, SIM_VALUE_WRITE));
}

aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
    SIM_BEGIN(aclrtValueWait);
    sim_lock();
    return sim_leave(copy_value(devAddr, value, flag, stream, SIM_VALUE_WAIT));
}
