/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of arrays for trees: what rondo_tensor_host asks for. Outputs are in outputs.c. */
#include <string.h>

#include "base/sized.h"
#include "tree/native/native.h"

/* --------------------------------------------------------------------------------------------------------- facts */

static bool host_facts(void *user, void *const *arrays, uint32_t count, uint64_t *pointers, uint64_t *words) {
    bool good = true;
    (void)user;
    for (uint32_t i = 0; i < count; i++) {
        const rondo_array *array = arrays[i];
        if (!array) {
            pointers[i] = words[i] = 0;
            continue;
        }
        const rondo__storage *storage = array->storage;
        const rondo_tree_lease *lease = rondo__storage_lease(storage);
        pointers[i] = rondo__storage_address(storage) + array->offset;
        words[i] = array->word;
        if (lease && !rondo_tree_lease_alive(lease, storage->epoch)) good = false;
    }
    return good;
}

static rondo_status host_check(void *user, void *array) {
    (void)user;
    return array ? rondo__storage_check(((const rondo_array *)array)->storage) : RONDO_OK;
}

static rondo_status host_describe(void *user, void *array, rondo_tensor_facts *out_facts) {
    const rondo__native_host *host = user;
    const rondo_array *t = array;
    *out_facts = (rondo_tensor_facts){.place = RONDO_TENSOR_NONE};
    if (!t || t->storage->place == RONDO_TENSOR_NONE) return RONDO_OK;
    const rondo__storage *storage = t->storage;
    bool elsewhere = storage->place == RONDO_TENSOR_DEVICE && storage->device != host->device;
    out_facts->place = elsewhere ? RONDO_TENSOR_OTHER : storage->place;
    out_facts->rank = t->rank;
    out_facts->bytes = t->bytes;
    out_facts->storage = rondo__storage_address(storage);
    out_facts->storage_bytes = rondo__storage_bytes(storage);
    out_facts->pointer = out_facts->storage + t->offset; /* where there is no memory, there is no offset */
    out_facts->lease = rondo__storage_lease(storage);
    out_facts->epoch = out_facts->lease ? storage->epoch : 0;
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------------- run */

static void host_release(void *user, void **arrays, uint32_t count) {
    (void)user;
    for (uint32_t i = 0; i < count; i++) {
        rondo_array *array = arrays[i];
        arrays[i] = NULL;
        rondo__array_let_go(array);
    }
}

static void *host_retain(void *user, void *array) {
    (void)user;
    rondo_array_retain(array);
    return array;
}

static rondo_status host_run(void *user, const rondo_tree_run_context *context, void **inputs, uint32_t input_count,
                             void **outputs, uint32_t output_count) {
    const rondo_array_model *model = context->model;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = NULL;
    if (!model || !model->function) {
        status = RONDO__FAIL(INVALID_ARGUMENT, TREE,
                             "function %u has no model: rondo_tree_function.model is the address of a "
                             "rondo_array_model",
                             context->function);
    } else {
        /* An array of pointers to void is one of pointers to arrays to the model, which was compiled apart. */
        status = model->function(model->user, context->stream, (rondo_array **)(void *)inputs, input_count,
                                 (rondo_array **)(void *)outputs, output_count);
    }
    host_release(user, inputs, input_count);
    if (status) host_release(user, outputs, output_count);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- copies */

/* Strides and all, so that the copy of an array is a copy of its bytes: an array that repeats keeps repeating, and what
 * lies between its elements comes along. */
static rondo_status host_make_like(const rondo_array *like, rondo_stream *stream, rondo_array **out_array) {
    rondo_array *array = NULL;
    void *memory = NULL;
    RONDO__TRY(rondo__unit_make(stream->device, NULL, &array));
    rondo_status status = like->bytes ? rondo_memory_allocate_on(stream, like->bytes, &memory) : RONDO_OK;
    if (status) {
        rondo__unit_drop(array);
        return status;
    }
    array->word = like->word;
    array->dtype = like->dtype;
    array->rank = like->rank;
    array->bytes = like->bytes;
    memcpy(array->shape, like->shape, sizeof like->shape);
    memcpy(array->strides, like->strides, sizeof like->strides);
    array->own.place = RONDO_TENSOR_DEVICE;
    rondo__storage_put(&array->own, (uint64_t)(uintptr_t)memory, like->bytes,
                       memory ? RONDO__STORAGE_BLOCK : RONDO__STORAGE_NOTHING);
    *out_array = array;
    return RONDO_OK;
}

static rondo_status host_is_here(const rondo__native_host *host, const rondo_array *array, const char *what) {
    if (array->storage->place == RONDO_TENSOR_DEVICE && array->storage->device == host->device) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, TREE, "%s: the array is not on device '%s:%d'", what, host->device->properties.name,
                       (int)host->device->properties.index);
}

static rondo_status host_make_input(void *user, void *like, void *stream, void **out_array) {
    rondo_array *array = NULL;
    RONDO__TRY(host_is_here(user, like, "an input's buffer"));
    RONDO__TRY(host_make_like(like, stream, &array));
    *out_array = array;
    return RONDO_OK;
}

static rondo_status host_copy_inputs(void *user, void *stream, const rondo_tree_copy *copies, uint64_t count) {
    (void)user;
    for (uint64_t i = 0; i < count; i++) {
        const rondo_array *source = copies[i].tensor;
        const rondo__kept *kept = copies[i].metadata;
        if (!source || !kept || source->word == kept->word) continue;
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "an input is to be copied into a buffer of another form");
    }
    return rondo__native_copy(stream, copies, count);
}

static rondo_status host_own_pinned(const rondo_array *array, rondo_stream *stream, rondo_array **out_array) {
    rondo_array *copy = NULL;
    void *from = NULL, *to = NULL;
    RONDO__TRY(rondo_stream_synchronize(stream)); /* the host's copy comes behind what writes it */
    RONDO__TRY(rondo_array_data(array, &from));
    int64_t bytes = (int64_t)array->bytes;
    RONDO__TRY(rondo_array_create_host(array->storage->device, RONDO_DTYPE_U8, 1, &bytes, &copy));
    rondo_status status = rondo_array_data(copy, &to);
    if (status) {
        rondo_array_release(copy);
        return status;
    }
    if (bytes) memcpy(to, from, (size_t)bytes);
    copy->word = array->word;
    copy->dtype = array->dtype;
    copy->rank = array->rank;
    memcpy(copy->shape, array->shape, sizeof copy->shape);
    memcpy(copy->strides, array->strides, sizeof copy->strides);
    *out_array = copy;
    return RONDO_OK;
}

static rondo_status host_own_device(const rondo_array *array, rondo_stream *stream, rondo_array **out_array) {
    rondo_array *copy = NULL;
    void *from = NULL;
    RONDO__TRY(rondo_array_data(array, &from));
    RONDO__TRY(host_make_like(array, stream, &copy));
    rondo_status status = RONDO_OK;
    if (copy->bytes)
        status = rondo_stream_copy(stream, (void *)(uintptr_t)rondo__storage_address(&copy->own), from, copy->bytes,
                                   RONDO_COPY_DEVICE_TO_DEVICE);
    if (status) {
        rondo_array_release(copy);
        return status;
    }
    *out_array = copy;
    return RONDO_OK;
}

static rondo_status host_own(void *user, void *stream, void *array, void **out_array) {
    const rondo_array *t = array;
    rondo_array *copy = NULL;
    rondo_status status = RONDO_OK;
    if (!t || t->storage->place == RONDO_TENSOR_NONE) {
        *out_array = host_retain(user, array);
        return RONDO_OK;
    }
    if (t->storage->place == RONDO_TENSOR_HOST) {
        status = host_own_pinned(t, stream, &copy);
    } else {
        status = host_is_here(user, t, "a copy of an output");
        if (!status) status = host_own_device(t, stream, &copy);
    }
    if (!status) *out_array = copy;
    return status;
}

/* ------------------------------------------------------------------------------------------------------- leases */

static void host_adopt(void *user, void *array, rondo_tree_lease *lease, uint64_t epoch) {
    rondo__native_host *host = user;
    rondo__storage *storage = ((rondo_array *)array)->storage;
    rondo__unit_settle(rondo__storage_unit(storage), host);
    storage->epoch = epoch;
    rondo__storage_put(storage, rondo__storage_address(storage), rondo__storage_bytes(storage), RONDO__STORAGE_NOTHING);
    atomic_store_explicit(&storage->lease, lease, memory_order_release);
    rondo_tree_lease_set_storage(lease, storage);
}

/* The lease is held by the tree meanwhile, so the storage may be about to end, but has not yet. */
static rondo_status host_evacuate(void *user, void *stream, void *storage, uint64_t pointer, uint64_t bytes) {
    rondo__native_host *host = user;
    rondo__storage *s = storage;
    rondo_tree_lease *lease = NULL;
    uint64_t epoch = 0;
    void *memory = NULL;
    if (!rondo__storage_try_retain(s)) {
        return RONDO__FAIL(NOT_FOUND, TREE, "the output has ended meanwhile: there is nothing to be moved");
    }
    rondo_status status = rondo_memory_allocate_on(stream, bytes, &memory);
    if (!status) {
        status =
            rondo_stream_copy(stream, memory, (const void *)(uintptr_t)pointer, bytes, RONDO_COPY_DEVICE_TO_DEVICE);
        if (!status && !rondo__storage_move(s, (uint64_t)(uintptr_t)memory, bytes, &lease, &epoch)) {
            status =
                RONDO__FAIL(NOT_FOUND, TREE, "the output has other memory meanwhile: there is nothing to be moved");
        }
        if (status) RONDO__IGNORE(rondo_memory_free(host->device, memory));
    }
    rondo__storage_release(s);
    return status;
}

/* -------------------------------------------------------------------------------------------------------- table */

static int64_t host_generation(void *user) {
    const rondo__native_host *host = user;
    return host->generation(host->generation_user);
}

static void host_destroy(void *user) {
    rondo__native_host *host = user;
    rondo_device *device = host->device;
    rondo__mutex_lock(&host->mutex);
    rondo_array *spare = host->spare;
    host->closed = true;
    host->spare = NULL;
    rondo__mutex_unlock(&host->mutex);
    while (spare) {
        rondo_array *next = (rondo_array *)(uintptr_t)spare->value;
        spare->home = NULL;
        rondo__unit_drop(spare);
        spare = next;
    }
    rondo__native_host_release(host);
    rondo_device_release(device);
}

static rondo_tensor_host host_table(rondo__native_host *host) {
    return (rondo_tensor_host){.struct_size = sizeof(rondo_tensor_host),
                               .flags = host->serial ? RONDO_TENSOR_HOST_SERIAL : 0,
                               .user = host,
                               .facts = host_facts,
                               .check = host_check,
                               .describe = host_describe,
                               .run = host_run,
                               .retain = host_retain,
                               .release = host_release,
                               .make_input = host_make_input,
                               .copy_inputs = host_copy_inputs,
                               .keep = rondo__native_keep,
                               .drop = rondo__native_drop,
                               .adopt = host_adopt,
                               .make_outputs = rondo__native_make_outputs,
                               .own = host_own,
                               .evacuate = host_evacuate,
                               .generation = host->generation ? host_generation : NULL,
                               .destroy = host_destroy};
}

rondo_status rondo_tensor_host_native(rondo_device *device, const rondo_array_host_options *options,
                                      rondo_tensor_host *out_host) {
    rondo_array_host_options own = RONDO_ARRAY_HOST_OPTIONS_INIT;
    void *memory = NULL;
    if (!device) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tensor_host_native: the device is null");
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_array_host_options", options, &own, sizeof own));
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tensor_host", out_host));
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo__native_host), &memory));
    rondo__native_host *host = memory;
    rondo__ref_init(&host->references);
    host->allocator = device->allocator;
    host->device = device;
    rondo_device_retain(device);
    host->generation = own.generation;
    host->generation_user = own.generation_user;
    host->serial = own.serial != 0;
    rondo__mutex_init(&host->mutex);
    rondo_tensor_host table = host_table(host);
    rondo__sized_write(&table, sizeof table, out_host);
    return RONDO_OK;
}
