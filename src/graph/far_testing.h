/* SPDX-License-Identifier: Apache-2.0
 *
 * A device for tests whose memory the host cannot address and whose kernels are no host functions: what real
 * accelerators are like, and neither cpu nor sim. Its addresses are host addresses with one bit set that no host
 * address has, so that a copy in the wrong direction or a look from the host faults. Work runs when it is enqueued. */
#ifndef RONDO_SRC_GRAPH_FAR_TESTING_H
#define RONDO_SRC_GRAPH_FAR_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "harness/harness.h"

#define FAR_BIT (UINT64_C(1) << 62)
#define FAR_FLOATS 16u
#define FAR_BYTES (FAR_FLOATS * sizeof(float))

/* What its kernels are: "Add" of two, and "Scale", which packs its constant second input (negated, to be told
 * apart). */
typedef struct far_kernel {
    bool scale;
    uint64_t count;
} far_kernel;

static struct far_state {
    const rondo_host_api *host;
    unsigned records, waits, synchronizes, copies, host_to_device, device_to_host;
} far;

static inline float *far_host(uint64_t address) {
    return address & FAR_BIT ? (float *)(uintptr_t)(address & ~FAR_BIT) : NULL;
}

/* ------------------------------------------------------------------------------------------------- catalogue */

static inline const char *far_operator_at(void *self, uint32_t index) {
    (void)self;
    return index == 0 ? "Add" : index == 1 ? "Scale" : NULL;
}

static inline uint64_t far_elements(const rondo_operand *operand) {
    uint64_t count = 1;
    for (int32_t i = 0; i < operand->rank; i++) count *= (uint64_t)operand->dims[i];
    return count;
}

static inline rondo_status far_find(void *self, const rondo_kernel_request *request, rondo_kernel_facts *out_facts) {
    (void)self;
    bool scale = strcmp(request->operator_name, "Scale") == 0;
    if ((!scale && strcmp(request->operator_name, "Add") != 0) || request->input_count != 2)
        return RONDO_PLUGIN_FAIL(far.host, UNSUPPORTED, KERNEL, "far: no kernel for %s", request->operator_name);
    if (scale) {
        out_facts->absorbed_inputs = 2;
        out_facts->packed_bytes = far_elements(&request->inputs[1]) * sizeof(float);
    }
    out_facts->variant = "far";
    return RONDO_OK;
}

static inline rondo_status far_pack(void *self, const rondo_kernel_request *request, void *out) {
    (void)self;
    const float *constant = request->inputs[1].constant;
    for (uint64_t i = 0; i < far_elements(&request->inputs[1]); i++) ((float *)out)[i] = -constant[i];
    return RONDO_OK;
}

static inline rondo_status far_prepare(void *self, const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    (void)self;
    far_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel) return RONDO_PLUGIN_FAIL(far.host, OUT_OF_MEMORY, KERNEL, "far: no memory for a kernel");
    *kernel = (far_kernel){strcmp(request->operator_name, "Scale") == 0, far_elements(&request->inputs[0])};
    *out_kernel = (rondo_kernel){NULL, kernel};
    return RONDO_OK;
}

static inline void far_release(void *self, rondo_kernel kernel) {
    (void)self;
    free((void *)(uintptr_t)kernel.context);
}

static const rondo_catalogue_table far_catalogue = {
    sizeof far_catalogue, 0, "far", "far", far_operator_at, far_find, far_pack, far_prepare, far_release};

/* ----------------------------------------------------------------------------------------- memory and streams */

static inline rondo_status far_allocate(void *device, uint64_t size, uint64_t *out_address) {
    (void)device;
    void *memory = malloc(size);
    if (!memory) return RONDO_PLUGIN_FAIL(far.host, OUT_OF_MEMORY, MEMORY, "far: no memory");
    *out_address = (uint64_t)(uintptr_t)memory | FAR_BIT;
    return RONDO_OK;
}

static inline void far_free(void *device, uint64_t address, uint64_t size) {
    (void)device, (void)size;
    free(far_host(address));
}

static inline rondo_status far_create(void *device, uint32_t flags, int32_t priority, void **out_stream) {
    (void)flags, (void)priority;
    *out_stream = device;
    return RONDO_OK;
}

static inline void far_destroy(void *device, void *stream) { (void)device, (void)stream; }

static inline rondo_status far_launch(void *stream, const rondo_call *call) {
    (void)stream;
    const far_kernel *kernel = call->kernel.context;
    const float *a = far_host(call->arguments[0].word);
    /* Add: a, b, out. Scale: a, absorbed, out, packed. */
    const float *b = far_host(call->arguments[kernel->scale ? 3 : 1].word);
    float *out = far_host(call->arguments[2].word);
    if (!a || !b || !out)
        return RONDO_PLUGIN_FAIL(far.host, INVALID_ARGUMENT, DRIVER, "far: a host address in call '%s'", call->name);
    for (uint64_t i = 0; i < kernel->count; i++) out[i] = kernel->scale ? a[i] * b[i] : a[i] + b[i];
    return RONDO_OK;
}

static inline rondo_status far_copy(void *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                                    rondo_copy_kind kind) {
    (void)stream;
    bool to_far = (destination & FAR_BIT) != 0, from_far = (source & FAR_BIT) != 0;
    if (to_far != (kind != RONDO_COPY_DEVICE_TO_HOST) || from_far != (kind != RONDO_COPY_HOST_TO_DEVICE))
        return RONDO_PLUGIN_FAIL(far.host, INVALID_ARGUMENT, DRIVER, "far: a copy in the wrong direction");
    far.copies++;
    far.host_to_device += kind == RONDO_COPY_HOST_TO_DEVICE;
    far.device_to_host += kind == RONDO_COPY_DEVICE_TO_HOST;
    memmove((void *)(uintptr_t)(destination & ~FAR_BIT), (const void *)(uintptr_t)(source & ~FAR_BIT), bytes);
    return RONDO_OK;
}

static inline rondo_status far_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    (void)stream;
    memset(far_host(address), value, bytes);
    return RONDO_OK;
}

static inline rondo_status far_host_call(void *stream, rondo_host_function function, void *user) {
    (void)stream;
    return function(user) ? RONDO_PLUGIN_FAIL(far.host, KERNEL_FAILED, DRIVER, "far: a host function failed")
                          : RONDO_OK;
}

static inline rondo_status far_synchronize(void *stream) {
    (void)stream;
    return RONDO_OK;
}

static inline rondo_status far_query(void *stream, bool *out_done) {
    (void)stream;
    *out_done = true;
    return RONDO_OK;
}

static inline rondo_status far_event_create(void *device, void **out_event) {
    (void)device;
    *out_event = malloc(1);
    return *out_event ? RONDO_OK : RONDO_PLUGIN_FAIL(far.host, OUT_OF_MEMORY, DRIVER, "far: no memory for an event");
}

static inline void far_event_destroy(void *device, void *event) {
    (void)device;
    free(event);
}

static inline rondo_status far_event_record(void *event, void *stream) {
    (void)event, (void)stream;
    far.records++;
    return RONDO_OK;
}

static inline rondo_status far_event_wait(void *event, void *stream) {
    (void)event, (void)stream;
    far.waits++;
    return RONDO_OK;
}

static inline rondo_status far_event_query(void *event, bool *out_done) {
    (void)event;
    *out_done = true;
    return RONDO_OK;
}

static inline rondo_status far_event_synchronize(void *event) {
    (void)event;
    far.synchronizes++;
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------- device and plugin */

static inline rondo_status far_properties(void *device, rondo_device_properties *out) {
    (void)device;
    memset(out, 0, sizeof *out);
    out->struct_size = sizeof *out;
    out->capabilities = RONDO_DEVICE_GRAPH_CAPABLE | RONDO_DEVICE_CAPTURE_NOT_ON_DEFAULT_STREAM;
    memcpy(out->name, "far", 4);
    out->dlpack_type = 12;
    out->allocation_alignment = 16;
    return RONDO_OK;
}

static inline rondo_status far_memory_info(void *device, uint64_t *out_free, uint64_t *out_total) {
    (void)device;
    *out_free = *out_total = 0;
    return RONDO_OK;
}

static inline const char *far_catalogue_at(void *device, uint32_t index) {
    (void)device;
    return index == 0 ? "far" : NULL;
}

static inline void far_close(void *device) { (void)device; }

static const rondo_memory_table far_memory = {sizeof far_memory, 0, far_allocate, far_free, NULL, NULL, NULL};
static const rondo_stream_table far_stream = {
    .struct_size = sizeof far_stream,
    .create = far_create,
    .destroy = far_destroy,
    .launch = far_launch,
    .copy = far_copy,
    .fill = far_fill,
    .host_call = far_host_call,
    .synchronize = far_synchronize,
    .query = far_query,
    .event_create = far_event_create,
    .event_destroy = far_event_destroy,
    .event_record = far_event_record,
    .event_wait = far_event_wait,
    .event_query = far_event_query,
    .event_synchronize = far_event_synchronize,
};
static const rondo_device_table far_device = {
    .struct_size = sizeof far_device,
    .memory = &far_memory,
    .stream = &far_stream,
    .properties = far_properties,
    .memory_info = far_memory_info,
    .catalogue_at = far_catalogue_at,
    .close = far_close,
};

static inline rondo_status far_enumerate(void *self, uint32_t *out_count) {
    (void)self;
    *out_count = 1;
    return RONDO_OK;
}

static inline rondo_status far_open(void *self, uint32_t index, const char *settings,
                                    const rondo_device_table **out_table, void **out_device) {
    (void)self, (void)index, (void)settings;
    *out_table = &far_device;
    *out_device = &far;
    return RONDO_OK;
}

static inline rondo_status far_entry(uint32_t abi, const rondo_host_api *host, const rondo_plugin_api **out_api) {
    static const rondo_backend_table table = {
        sizeof table, RONDO_DEVICE_GRAPH_CAPABLE, "far", "a far device of tests", far_enumerate, far_open};
    static const rondo_backend backend = {&table, NULL};
    static const rondo_catalogue catalogue = {&far_catalogue, NULL};
    static const rondo_plugin_api api = {sizeof api, RONDO_PLUGIN_ABI, "far",      "1",  1,
                                         1,          &backend,         &catalogue, NULL, NULL};
    if (abi < RONDO_PLUGIN_ABI) return RONDO_PLUGIN_FAIL(host, UNSUPPORTED, LOADING, "far: needs a newer abi");
    memset(&far, 0, sizeof far);
    far.host = host;
    *out_api = &api;
    return RONDO_OK;
}

/* An instance with the far device, opened, and a stream; released with the test. */
typedef struct far_fixture {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream, *other;
} far_fixture;

static inline void far_fixture_close(far_fixture *f) {
    rondo_stream_release(f->other);
    rondo_stream_release(f->stream);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
}

static inline void far_fixture_open(rondo_test *t, far_fixture *f) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    *f = (far_fixture){0};
    options.ignore_plugin_path = 1;
    T_DEFER(t, far_fixture_close, f);
    T_OK(t, rondo_instance_create(&options, &f->instance));
    T_OK(t, rondo__registry_add(rondo__instance_registry(f->instance), "far", far_entry, NULL));
    T_OK(t, rondo_device_open(f->instance, "far", NULL, &f->device));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->stream));
    T_OK(t, rondo_stream_create(f->device, NULL, &f->other));
}

#endif
