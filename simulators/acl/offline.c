/* SPDX-License-Identifier: Apache-2.0
 *
 * Models from files: loaded, described, unloaded. Another library runs them (acl_executor.h); here is who uses which. */
#include <dlfcn.h>

#include "sim.h"

static sim_offline *offline_models;
static uint32_t offline_ids;
static const sim_executor *offline_executor;

/* Beside this very library, wherever that lies. */
static const sim_executor *offline_open(char *text) {
    Dl_info here = {0};
    char path[4096];
    const char *slash = dladdr((const void *)&offline_ids, &here) ? strrchr(here.dli_fname, '/') : NULL;
    int folder = slash ? (int)(slash - here.dli_fname) + 1 : 0;
    int length = snprintf(path, sizeof path, "%.*slibascendcl_executor.so", folder, slash ? here.dli_fname : "");
    void *library = length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    sim_executor_getter get = NULL;
    void *symbol = library ? dlsym(library, SIM_EXECUTOR_SYMBOL) : NULL;
    memcpy(&get, &symbol, sizeof get);
    const sim_executor *found = get ? get(SIM_EXECUTOR_VERSION) : NULL;
    if (!found) {
        const char *why = dlerror();
        (void)snprintf(text, SIM_TEXT, "models from files need libascendcl_executor.so beside the library: %.300s",
                       why ? why : "that one is of another version");
    }
    return found;
}

/* With the lock, which is let go meanwhile: another thread may be first. */
static aclError offline_need_executor(void) {
    char text[SIM_TEXT] = "";
    if (offline_executor) return ACL_SUCCESS;
    sim_unlock();
    const sim_executor *found = offline_open(text);
    sim_lock();
    if (!found) return sim_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s", text);
    offline_executor = found;
    return ACL_SUCCESS;
}

static void offline_forget(sim_offline *model) {
    sim_offline **link = &offline_models;
    while (*link != model) link = &(*link)->next;
    *link = model->next;
    model->executor->unload(model->model);
    free(model->ports);
    free(model);
}

void sim_offline_hold(sim_offline *model) { model->users++; }

void sim_offline_release(sim_offline *model) {
    if (!--model->users && model->gone) offline_forget(model);
}

static aclError offline_describe(sim_offline *model) {
    const sim_executor *executor = model->executor;
    model->inputs = executor->inputs(model->model);
    model->outputs = executor->outputs(model->model);
    uint32_t count = model->inputs + model->outputs;
    model->ports = sim_allocate((count ? count : 1) * sizeof *model->ports);
    if (!model->ports) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a model's description");
    for (uint32_t i = 0; i < count; i++) {
        bool output = i >= model->inputs;
        model->ports[i] = executor->port(model->model, output, output ? i - model->inputs : i);
    }
    return ACL_SUCCESS;
}

/* With the lock, which is let go while the file is read. */
static aclError offline_load(const char *path, const void *data, size_t size, uint32_t *out_id) {
    char text[SIM_TEXT] = "";
    void *made = NULL;
    sim_context *context = NULL;
    SIM_CHECK(sim_current(&context));
    SIM_CHECK(sim_mode_check(context, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT, sim_call_name()));
    SIM_CHECK(offline_need_executor());
    sim_offline *model = sim_allocate(sizeof *model);
    if (!model) return sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a model");
    const sim_executor *executor = offline_executor;
    sim_unlock();
    aclError error = executor->load(path, data, size, &made, text, sizeof text);
    sim_lock();
    if (error) {
        free(model);
        return sim_fail(error, "%s", text);
    }
    model->executor = executor;
    model->model = made;
    error = offline_describe(model);
    if (error) {
        executor->unload(made);
        free(model);
        return error;
    }
    model->id = ++offline_ids;
    model->next = offline_models;
    offline_models = model;
    *out_id = model->id;
    return ACL_SUCCESS;
}

aclError aclmdlLoadFromFile(const char *modelPath, uint32_t *modelId) {
    SIM_BEGIN(aclmdlLoadFromFile);
    if (!modelPath || !modelId)
        return sim_fail(ACL_ERROR_INVALID_PARAM, "%s is null", modelPath ? "modelId" : "modelPath");
    sim_lock();
    return sim_leave(offline_load(modelPath, NULL, 0, modelId));
}

aclError aclmdlLoadFromMem(const void *model, size_t modelSize, uint32_t *modelId) {
    SIM_BEGIN(aclmdlLoadFromMem);
    if (!model || !modelId) return sim_fail(ACL_ERROR_INVALID_PARAM, "%s is null", model ? "modelId" : "model");
    if (!modelSize) return sim_fail(ACL_ERROR_INVALID_PARAM, "0 bytes are no model");
    sim_lock();
    return sim_leave(offline_load(NULL, model, modelSize, modelId));
}

aclError sim_offline_find(uint32_t id, sim_offline **out_model) {
    for (*out_model = offline_models; *out_model; *out_model = (*out_model)->next)
        if ((*out_model)->id == id && !(*out_model)->gone) return ACL_SUCCESS;
    return sim_fail(ACL_ERROR_GE_EXEC_MODEL_ID_INVALID, "no model %u is loaded", id);
}

/* Runs that are enqueued go on: the model goes with the last of them, or the last description. */
aclError aclmdlUnload(uint32_t modelId) {
    sim_offline *model = NULL;
    SIM_BEGIN(aclmdlUnload);
    sim_lock();
    aclError error = sim_offline_find(modelId, &model);
    if (error) return sim_leave(error);
    model->gone = true;
    if (!model->users) offline_forget(model);
    return sim_leave(ACL_SUCCESS);
}

/* ------------------------------------------------------------------------------------------------- description */

struct aclmdlDesc {
    sim_object object;
    sim_offline *model; /* null: of none yet */
};

aclmdlDesc *aclmdlCreateDesc(void) {
    if (sim_enter_ready(SIM_CALL_aclmdlCreateDesc)) return NULL;
    sim_lock();
    aclmdlDesc *desc = sim_allocate(sizeof *desc);
    if (desc && !sim_object_add(desc, SIM_DESC)) {
        free(desc);
        desc = NULL;
    }
    aclError error = desc ? ACL_SUCCESS : sim_fail(ACL_ERROR_BAD_ALLOC, "no memory for a description");
    (void)sim_leave(error);
    return desc;
}

static aclError desc_find(const aclmdlDesc *handle, aclmdlDesc **out_desc) {
    if (!handle) return sim_fail(ACL_ERROR_INVALID_PARAM, "modelDesc is null");
    *out_desc = sim_object_find(handle, SIM_DESC);
    return *out_desc ? ACL_SUCCESS
                     : sim_fail(ACL_ERROR_INVALID_PARAM, "%p is no model's description", (const void *)handle);
}

aclError aclmdlDestroyDesc(aclmdlDesc *modelDesc) {
    aclmdlDesc *desc = NULL;
    SIM_BEGIN(aclmdlDestroyDesc);
    sim_lock();
    aclError error = desc_find(modelDesc, &desc);
    if (error) return sim_leave(error);
    sim_object_remove(desc);
    if (desc->model) sim_offline_release(desc->model);
    free(desc);
    return sim_leave(ACL_SUCCESS);
}

aclError aclmdlGetDesc(aclmdlDesc *modelDesc, uint32_t modelId) {
    aclmdlDesc *desc = NULL;
    sim_offline *model = NULL;
    SIM_BEGIN(aclmdlGetDesc);
    sim_lock();
    aclError error = desc_find(modelDesc, &desc);
    if (!error) error = sim_offline_find(modelId, &model);
    if (error) return sim_leave(error);
    sim_offline_hold(model);
    if (desc->model) sim_offline_release(desc->model);
    desc->model = model;
    return sim_leave(ACL_SUCCESS);
}

/* Null, with the error told: it describes nothing, or has no such input or output. */
static const sim_port *desc_port(const aclmdlDesc *handle, bool output, size_t index, aclError *out_error) {
    aclmdlDesc *desc = NULL;
    *out_error = desc_find(handle, &desc);
    if (*out_error) return NULL;
    const sim_offline *model = desc->model;
    uint32_t count = !model ? 0 : output ? model->outputs : model->inputs;
    if (model && index < count) return &model->ports[(output ? model->inputs : 0u) + index];
    *out_error = model ? sim_fail(ACL_ERROR_INVALID_PARAM, "the model has %u %s, and no %zu", count,
                                  output ? "outputs" : "inputs", index)
                       : sim_fail(ACL_ERROR_INVALID_PARAM, "the description is of no model: aclmdlGetDesc comes first");
    return NULL;
}

static size_t desc_count(int call, const aclmdlDesc *handle, bool output) {
    aclmdlDesc *desc = NULL;
    if (sim_enter_ready(call)) return 0;
    sim_lock();
    aclError error = desc_find(handle, &desc);
    size_t count = error || !desc->model ? 0 : output ? desc->model->outputs : desc->model->inputs;
    if (!error && !desc->model)
        error = sim_fail(ACL_ERROR_INVALID_PARAM, "the description is of no model: aclmdlGetDesc comes first");
    (void)sim_leave(error);
    return count;
}

size_t aclmdlGetNumInputs(aclmdlDesc *modelDesc) { return desc_count(SIM_CALL_aclmdlGetNumInputs, modelDesc, false); }

size_t aclmdlGetNumOutputs(aclmdlDesc *modelDesc) { return desc_count(SIM_CALL_aclmdlGetNumOutputs, modelDesc, true); }

/* What is asked of an input or output: a copy; where there is none, zeros and the type UNDEFINED. Names live as long as the
 * description does. */
static sim_port desc_ask(int call, const aclmdlDesc *handle, bool output, size_t index, aclError *out_error) {
    sim_port port = {NULL, NULL, 0, ACL_DT_UNDEFINED, 0};
    *out_error = sim_enter_ready(call);
    if (*out_error) return port;
    sim_lock();
    const sim_port *found = desc_port(handle, output, index, out_error);
    if (found) port = *found;
    (void)sim_leave(*out_error);
    return port;
}

#define DESC_ASK(name, output, member) \
    aclError error = ACL_SUCCESS;      \
    return desc_ask(SIM_CALL_##name, modelDesc, output, index, &error).member

size_t aclmdlGetInputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetInputSizeByIndex, false, bytes);
}

size_t aclmdlGetOutputSizeByIndex(aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetOutputSizeByIndex, true, bytes);
}

const char *aclmdlGetInputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetInputNameByIndex, false, name);
}

const char *aclmdlGetOutputNameByIndex(const aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetOutputNameByIndex, true, name);
}

aclDataType aclmdlGetInputDataType(const aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetInputDataType, false, type);
}

aclDataType aclmdlGetOutputDataType(const aclmdlDesc *modelDesc, size_t index) {
    DESC_ASK(aclmdlGetOutputDataType, true, type);
}

static aclError desc_dims(int call, const aclmdlDesc *handle, bool output, size_t index, aclmdlIODims *out_dims) {
    aclError error = ACL_SUCCESS;
    sim_port port = desc_ask(call, handle, output, index, &error);
    if (error) return error;
    if (!out_dims) return sim_fail(ACL_ERROR_INVALID_PARAM, "dims is null");
    memset(out_dims, 0, sizeof *out_dims);
    (void)snprintf(out_dims->name, sizeof out_dims->name, "%s", port.name);
    out_dims->dimCount = (size_t)port.rank;
    for (int32_t i = 0; i < port.rank; i++) out_dims->dims[i] = port.dims[i];
    return ACL_SUCCESS;
}

aclError aclmdlGetInputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return desc_dims(SIM_CALL_aclmdlGetInputDims, modelDesc, false, index, dims);
}

aclError aclmdlGetOutputDims(const aclmdlDesc *modelDesc, size_t index, aclmdlIODims *dims) {
    return desc_dims(SIM_CALL_aclmdlGetOutputDims, modelDesc, true, index, dims);
}

static aclError desc_index(const aclmdlDesc *handle, bool output, const char *name, size_t *out_index) {
    aclmdlDesc *desc = NULL;
    SIM_CHECK(desc_find(handle, &desc));
    const sim_offline *model = desc->model;
    uint32_t count = !model ? 0 : output ? model->outputs : model->inputs;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(model->ports[(output ? model->inputs : 0u) + i].name, name) != 0) continue;
        *out_index = i;
        return ACL_SUCCESS;
    }
    return sim_fail(ACL_ERROR_INVALID_PARAM, "there is no %s of the name '%s'", output ? "output" : "input", name);
}

static aclError desc_index_of(int call, const aclmdlDesc *handle, bool output, const char *name, size_t *out_index) {
    SIM_CHECK(sim_enter_ready(call));
    if (!name || !out_index) return sim_fail(ACL_ERROR_INVALID_PARAM, "%s is null", name ? "index" : "name");
    sim_lock();
    return sim_leave(desc_index(handle, output, name, out_index));
}

aclError aclmdlGetInputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return desc_index_of(SIM_CALL_aclmdlGetInputIndexByName, modelDesc, false, name, index);
}

aclError aclmdlGetOutputIndexByName(const aclmdlDesc *modelDesc, const char *name, size_t *index) {
    return desc_index_of(SIM_CALL_aclmdlGetOutputIndexByName, modelDesc, true, name, index);
}
