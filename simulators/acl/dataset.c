/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers and sets of them, and a run of a model over two sets: at once, or as a task of a stream. */
#include "sim.h"

struct aclDataBuffer {
    sim_object object;
    void *data;
    size_t size;
};

struct aclmdlDataset {
    sim_object object;
    aclDataBuffer **buffers; /* the caller's */
    size_t count, capacity;
};

static void *dataset_make(int call, size_t bytes, uint32_t kind) {
    if (sim_enter_ready(call)) return NULL;
    sim_lock();
    void *made = sim_allocate(bytes);
    if (made && !sim_object_add(made, kind)) {
        free(made);
        made = NULL;
    }
    (void)sim_leave(made ? ACL_SUCCESS : sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for it"));
    return made;
}

/* A buffer names memory, and never owns it. */
aclDataBuffer *aclCreateDataBuffer(void *data, size_t size) {
    aclDataBuffer *buffer = dataset_make(SIM_CALL_aclCreateDataBuffer, sizeof *buffer, SIM_BUFFER);
    if (!buffer) return NULL;
    buffer->data = data;
    buffer->size = size;
    return buffer;
}

static aclError buffer_find(const aclDataBuffer *handle, aclDataBuffer **out_buffer) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "dataBuffer is null");
    *out_buffer = sim_object_find(handle, SIM_BUFFER);
    return *out_buffer ? ACL_SUCCESS : sim_fail(ACL_ERROR_INVALID_PARAM, "%p is no data buffer", (const void *)handle);
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer) {
    aclDataBuffer *buffer = NULL;
    SIM_BEGIN(aclDestroyDataBuffer);
    sim_lock();
    aclError error = buffer_find(dataBuffer, &buffer);
    if (error) return sim_leave(error);
    sim_object_remove(buffer);
    free(buffer);
    return sim_leave(ACL_SUCCESS);
}

static aclDataBuffer buffer_look(int call, const aclDataBuffer *handle) {
    aclDataBuffer none = {{0, 0, 0}, NULL, 0}, *buffer = NULL;
    if (sim_enter_ready(call)) return none;
    sim_lock();
    aclError error = buffer_find(handle, &buffer);
    if (!error) none = *buffer;
    (void)sim_leave(error);
    return none;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) {
    return buffer_look(SIM_CALL_aclGetDataBufferAddr, dataBuffer).data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) {
    return buffer_look(SIM_CALL_aclGetDataBufferSizeV2, dataBuffer).size;
}

aclmdlDataset *aclmdlCreateDataset(void) {
    return dataset_make(SIM_CALL_aclmdlCreateDataset, sizeof(aclmdlDataset), SIM_DATASET);
}

static aclError dataset_find(const aclmdlDataset *handle, aclmdlDataset **out_set) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "the dataset is null");
    *out_set = sim_object_find(handle, SIM_DATASET);
    return *out_set ? ACL_SUCCESS : sim_fail(ACL_ERROR_INVALID_PARAM, "%p is no dataset", (const void *)handle);
}

/* Its buffers stay. */
aclError aclmdlDestroyDataset(const aclmdlDataset *dataset) {
    aclmdlDataset *set = NULL;
    SIM_BEGIN(aclmdlDestroyDataset);
    sim_lock();
    aclError error = dataset_find(dataset, &set);
    if (error) return sim_leave(error);
    sim_object_remove(set);
    free(set->buffers);
    free(set);
    return sim_leave(ACL_SUCCESS);
}

static aclError dataset_add(const aclmdlDataset *handle, const aclDataBuffer *added) {
    aclmdlDataset *set = NULL;
    aclDataBuffer *buffer = NULL;
    SIM_CHECK(dataset_find(handle, &set));
    SIM_CHECK(buffer_find(added, &buffer));
    if (!sim_grow((void **)&set->buffers, &set->capacity, set->count + 1, sizeof(aclDataBuffer *)))
        return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a dataset");
    set->buffers[set->count++] = buffer;
    return ACL_SUCCESS;
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset *dataset, aclDataBuffer *dataBuffer) {
    SIM_BEGIN(aclmdlAddDatasetBuffer);
    sim_lock();
    return sim_leave(dataset_add(dataset, dataBuffer));
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset *dataset) {
    aclmdlDataset *set = NULL;
    if (sim_enter_ready(SIM_CALL_aclmdlGetDatasetNumBuffers)) return 0;
    sim_lock();
    aclError error = dataset_find(dataset, &set);
    size_t count = error ? 0 : set->count;
    (void)sim_leave(error);
    return count;
}

aclDataBuffer *aclmdlGetDatasetBuffer(const aclmdlDataset *dataset, size_t index) {
    aclmdlDataset *set = NULL;
    aclDataBuffer *buffer = NULL;
    if (sim_enter_ready(SIM_CALL_aclmdlGetDatasetBuffer)) return NULL;
    sim_lock();
    aclError error = dataset_find(dataset, &set);
    if (!error && index < set->count) buffer = set->buffers[index];
    if (!error && !buffer)
        error = sim_fail(ACL_ERROR_INVALID_PARAM, "the dataset has %zu buffers, and no %zu", set->count, index);
    (void)sim_leave(error);
    return buffer;
}

/* --------------------------------------------------------------------------------------------------------- run */

static aclError run_buffer(const sim_port *port, const char *what, uint32_t index, const aclDataBuffer *handle,
                           void **out_address) {
    char text[SIM_TEXT];
    aclDataBuffer *buffer = NULL;
    SIM_CHECK(buffer_find(handle, &buffer));
    if (buffer->size < port->bytes)
        return sim_fail(ACL_ERROR_GE_EXEC_MODEL_DATA_SIZE_INVALID, "%s %u ('%s') has %zu bytes, its buffer %zu", what,
                        index, port->name, port->bytes, buffer->size);
    const sim_block *block = sim_memory_find(buffer->data);
    if (port->bytes && (!block || block->kind != SIM_MEMORY_DEVICE))
        return sim_fail(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID, "%s %u ('%s'): %p is no device memory", what, index,
                        port->name, buffer->data);
    if (port->bytes && sim_memory_bad(buffer->data, port->bytes, text, sizeof text))
        return sim_fail(ACL_ERROR_GE_EXEC_MODEL_ADDR_INVALID, "%s %u ('%s'): %s", what, index, port->name, text);
    *out_address = buffer->data;
    return ACL_SUCCESS;
}

static aclError run_buffers(const sim_offline *model, bool output, const aclmdlDataset *handle, void **addresses) {
    const char *what = output ? "output" : "input";
    uint32_t count = output ? model->outputs : model->inputs, first = output ? model->inputs : 0;
    aclmdlDataset *set = NULL;
    SIM_CHECK(dataset_find(handle, &set));
    if (set->count != count)
        return sim_fail(output ? ACL_ERROR_MODEL_OUTPUT_NOT_MATCH : ACL_ERROR_MODEL_INPUT_NOT_MATCH,
                        "model %u has %u %ss, the dataset %zu buffers", model->id, count, what, set->count);
    for (uint32_t i = 0; i < count; i++)
        SIM_CHECK(run_buffer(&model->ports[first + i], what, i, set->buffers[i], &addresses[first + i]));
    return ACL_SUCCESS;
}

/* Inputs, then outputs; the caller frees them. */
static aclError run_addresses(const sim_offline *model, const aclmdlDataset *input, const aclmdlDataset *output,
                              void ***out_addresses) {
    size_t count = (size_t)model->inputs + model->outputs;
    void **addresses = sim_allocate((count ? count : 1) * sizeof *addresses);
    if (!addresses) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a run");
    aclError error = run_buffers(model, false, input, addresses);
    if (!error) error = run_buffers(model, true, output, addresses);
    if (error) free(addresses);
    else *out_addresses = addresses;
    return error;
}

aclError sim_offline_run(const sim_offline *model, void *const *addresses, char *text) {
    return model->executor->run(model->model, addresses, addresses + model->inputs, text, SIM_TEXT);
}

aclError sim_offline_stale(const sim_offline *model, void *const *addresses, char *text) {
    for (uint32_t i = 0; i < model->inputs + model->outputs; i++)
        if (model->ports[i].bytes && sim_memory_gone(addresses[i], model->ports[i].bytes, text, SIM_TEXT))
            return ACL_ERROR_RT_AICORE_EXCEPTION;
    return ACL_SUCCESS;
}

/* With the lock, which is let go while the model runs. */
static aclError run_now(uint32_t id, const aclmdlDataset *input, const aclmdlDataset *output) {
    char text[SIM_TEXT] = "";
    sim_context *context = NULL;
    sim_offline *model = NULL;
    void **addresses = NULL;
    SIM_CHECK(sim_current(&context));
    SIM_CHECK(sim_mode_check(context, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, "aclmdlExecute"));
    SIM_CHECK(sim_offline_find(id, &model));
    SIM_CHECK(run_addresses(model, input, output, &addresses));
    sim_offline_hold(model);
    sim_unlock();
    aclError error = sim_offline_run(model, addresses, text);
    sim_lock();
    sim_offline_release(model);
    free(addresses);
    return error ? sim_fail(error, "model %u: %s", id, text) : ACL_SUCCESS;
}

aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output) {
    SIM_BEGIN(aclmdlExecute);
    if (!input || !output) return sim_fail(ACL_ERROR_INVALID_PARAM, "%s is null", input ? "output" : "input");
    sim_lock();
    return sim_leave(run_now(modelId, input, output));
}

static aclError run_later(uint32_t id, const aclmdlDataset *input, const aclmdlDataset *output, aclrtStream handle) {
    sim_stream *stream = NULL;
    sim_offline *model = NULL;
    sim_task *task = NULL;
    void **addresses = NULL;
    SIM_CHECK(sim_stream_of(handle, &stream));
    if (stream->model)
        return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "stream %d is of a graph, which takes no model from a file",
                        stream->id);
    SIM_CHECK(sim_group_not_updating(stream));
    SIM_CHECK(sim_offline_find(id, &model));
    SIM_CHECK(run_addresses(model, input, output, &addresses));
    aclError error = sim_task_for(stream, SIM_OFFLINE, &task);
    if (error) {
        free(addresses);
        return error;
    }
    task->as.offline.model = model;
    task->as.offline.addresses = addresses;
    sim_offline_hold(model);
    return sim_submit(stream, task);
}

aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset *input, aclmdlDataset *output, aclrtStream stream) {
    SIM_BEGIN(aclmdlExecuteAsync);
    if (!input || !output) return sim_fail(ACL_ERROR_INVALID_PARAM, "%s is null", input ? "output" : "input");
    sim_lock();
    return sim_leave(run_later(modelId, input, output, stream));
}
