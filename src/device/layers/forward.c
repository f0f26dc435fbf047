/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that forward. Each entry says what it is about, asks the layer, calls the table below with the handles of below,
 * and tells the layer what came back. */
#include "device/layers/layer.h"

#include <string.h>

const char *rondo__layer_entry_name(rondo__layer_entry entry) {
    static const char *const names[] = {
#define RONDO_X(name, text) text,
        RONDO__LAYER_ENTRIES(RONDO_X)
#undef RONDO_X
    };
    return names[entry];
}

static rondo_status forward_before(rondo__layer *layer, rondo__layer_call *call) {
    return layer->hooks->before(layer, call);
}

static rondo_status forward_after(rondo__layer *layer, rondo__layer_call *call, rondo_status status) {
    return layer->hooks->after(layer, call, status);
}

/* For entries that return nothing. True: do not go on. */
static bool forward_refused(rondo__layer *layer, rondo_status status) {
    char text[512];
    if (!status) return false;
    (void)rondo_status_format(status, text, sizeof text);
    rondo__log_write(&layer->log, RONDO_LOG_ERROR, "layer '%s': %s", layer->hooks->name, text);
    rondo_status_release(status);
    return true;
}

static void forward_told(rondo__layer *layer, rondo__layer_call *call) {
    rondo_status status = forward_after(layer, call, RONDO_OK);
    (void)forward_refused(layer, status);
}

/* ----------------------------------------------------------------------------------------------------- handles */

static rondo_status forward_object_make(rondo__layer *layer, rondo__layer_type type, rondo__layer_object **out_object) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&layer->allocator, sizeof(rondo__layer_object), &memory));
    rondo__layer_object *object = memory;
    object->layer = layer;
    object->type = type;
    object->alive = true;
    rondo__mutex_lock(&layer->mutex);
    object->id = ++layer->ids[type];
    object->next = layer->objects;
    if (object->next) object->next->previous = object;
    layer->objects = object;
    rondo__mutex_unlock(&layer->mutex);
    *out_object = object;
    return RONDO_OK;
}

static void forward_object_end(rondo__layer_object *object) {
    rondo__layer *layer = object->layer;
    rondo__mutex_lock(&layer->mutex);
    object->alive = false;
    if (object->previous) object->previous->next = object->next;
    else layer->objects = object->next;
    if (object->next) object->next->previous = object->previous;
    if (layer->hooks->keeps_dead) {
        rondo__layer_object *oldest = layer->dead[layer->dead_next];
        layer->dead[layer->dead_next] = object;
        layer->dead_next = (layer->dead_next + 1u) % RONDO__LAYER_DEAD;
        object = oldest;
    }
    rondo__mutex_unlock(&layer->mutex);
    rondo__free(&layer->allocator, object, sizeof *object);
}

/* The object takes the handle that the entry below made, or goes. */
static rondo_status forward_made(rondo__layer_object *object, rondo_status status, void **out_object) {
    if (status) forward_object_end(object);
    else *out_object = object;
    return status;
}

/* ------------------------------------------------------------------------------------------------------ device */

static rondo_status forward_properties(void *self, rondo_device_properties *out_properties) {
    rondo__layer *layer = self;
    return layer->lower->properties(layer->device, out_properties);
}

static rondo_status forward_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_MEMORY_INFO};
    RONDO__TRY(forward_before(layer, &c));
    rondo_status status = layer->lower->memory_info(layer->device, &c.bytes, &c.source);
    status = forward_after(layer, &c, status);
    if (status) return status;
    *out_free = c.bytes;
    *out_total = c.source;
    return RONDO_OK;
}

static const char *forward_catalogue_at(void *self, uint32_t index) {
    rondo__layer *layer = self;
    return layer->lower->catalogue_at(layer->device, index);
}

static rondo_status forward_load(void *self, const void *image, uint64_t bytes, void **out_module) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_LOAD, .bytes = bytes};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_MODULE, &c.object));
    rondo_status status = layer->lower->load(layer->device, image, bytes, &c.object->lower);
    return forward_made(c.object, forward_after(layer, &c, status), out_module);
}

static rondo_status forward_module_kernel(void *self, const char *name, rondo_kernel *out_kernel) {
    rondo__layer_object *module = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_MODULE_KERNEL, .object = module};
    RONDO__TRY(forward_before(module->layer, &c));
    return forward_after(module->layer, &c, module->layer->lower->module_kernel(module->lower, name, out_kernel));
}

static void forward_unload(void *self, void *handle) {
    rondo__layer *layer = self;
    rondo__layer_object *module = handle;
    rondo__layer_call c = {.entry = RONDO__LAYER_UNLOAD, .object = module};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->unload(layer->device, module->lower);
    forward_told(layer, &c);
    forward_object_end(module);
}

static rondo_status forward_counter(void *self, const char *name, uint64_t *out_value) {
    rondo__layer *layer = self;
    if (layer->hooks->counter) {
        rondo_status status = layer->hooks->counter(layer, name, out_value);
        if (rondo_status_code(status) != RONDO_CODE_NOT_FOUND) return status;
        rondo_status_release(status);
    }
    if (layer->lower->counter) return layer->lower->counter(layer->device, name, out_value);
    return RONDO__FAIL(NOT_FOUND, DRIVER, "layer '%s': there is no counter '%s'", layer->hooks->name, name);
}

static void forward_close(void *self) {
    rondo__layer *layer = self;
    layer->hooks->close(layer);
}

/* ------------------------------------------------------------------------------------------------------ memory */

static rondo_status forward_allocate(void *self, uint64_t size, uint64_t *out_address) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_ALLOCATE, .bytes = size};
    RONDO__TRY(forward_before(layer, &c));
    rondo_status status = layer->lower->memory->allocate(layer->device, size, &c.destination);
    status = forward_after(layer, &c, status);
    if (!status) *out_address = c.destination;
    return status;
}

static void forward_free(void *self, uint64_t address, uint64_t size) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_FREE, .destination = address, .bytes = size};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    if (!c.active) layer->lower->memory->free(layer->device, address, size);
    forward_told(layer, &c);
}

static rondo_status forward_host_allocate(void *self, uint64_t size, void **out_pointer) {
    rondo__layer *layer = self;
    void *pointer = NULL;
    rondo__layer_call c = {.entry = RONDO__LAYER_HOST_ALLOCATE, .bytes = size};
    RONDO__TRY(forward_before(layer, &c));
    rondo_status status = layer->lower->memory->host_allocate(layer->device, size, &pointer);
    c.destination = (uint64_t)(uintptr_t)pointer;
    status = forward_after(layer, &c, status);
    if (!status) *out_pointer = pointer;
    return status;
}

static void forward_host_free(void *self, void *pointer, uint64_t size) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_HOST_FREE, .destination = (uint64_t)(uintptr_t)pointer, .bytes = size};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->memory->host_free(layer->device, pointer, size);
    forward_told(layer, &c);
}

static void forward_on_reuse(void *self, uint64_t address, uint64_t size, bool taken) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_ON_REUSE, .destination = address, .bytes = size, .active = taken};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->memory->on_reuse(layer->device, address, size, taken);
    forward_told(layer, &c);
}

/* ------------------------------------------------------------------------------------------------------ stream */

static rondo_status forward_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_CREATE, .flags = flags};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_STREAM, &c.object));
    rondo_status status = layer->lower->stream->create(layer->device, flags, priority, &c.object->lower);
    return forward_made(c.object, forward_after(layer, &c, status), out_stream);
}

static rondo_status forward_wrap(void *self, void *native, void **out_stream) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_WRAP};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_STREAM, &c.object));
    rondo_status status = layer->lower->stream->wrap(layer->device, native, &c.object->lower);
    return forward_made(c.object, forward_after(layer, &c, status), out_stream);
}

static void forward_destroy(void *self, void *handle) {
    rondo__layer *layer = self;
    rondo__layer_object *stream = handle;
    rondo__layer_call c = {.entry = RONDO__LAYER_DESTROY, .object = stream};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->stream->destroy(layer->device, stream->lower);
    forward_told(layer, &c);
    forward_object_end(stream);
}

static rondo_status forward_launch(void *self, const rondo_call *call) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_LAUNCH, .object = stream, .call = call};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->launch(stream->lower, c.call));
}

static rondo_status forward_copy(void *self, uint64_t destination, uint64_t source, uint64_t bytes,
                                 rondo_copy_kind kind) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_COPY,
                           .object = stream,
                           .destination = destination,
                           .source = source,
                           .bytes = bytes,
                           .kind = kind};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->copy(stream->lower, destination, source, bytes, kind));
}

static rondo_status forward_fill(void *self, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {
        .entry = RONDO__LAYER_FILL, .object = stream, .destination = address, .bytes = bytes, .flags = value};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->fill(stream->lower, address, value, bytes));
}

static rondo_status forward_host_call(void *self, rondo_host_function function, void *user) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_HOST_CALL, .object = stream, .function = function, .user = user};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->host_call(stream->lower, c.function, c.user));
}

static rondo_status forward_synchronize(void *self) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_SYNCHRONIZE, .object = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->synchronize(stream->lower));
}

static rondo_status forward_query(void *self, bool *out_done) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_QUERY, .object = stream};
    RONDO__TRY(forward_before(layer, &c));
    rondo_status status = layer->lower->stream->query(stream->lower, &c.active);
    status = forward_after(layer, &c, status);
    if (!status) *out_done = c.active;
    return status;
}

static rondo_status forward_event_create(void *self, void **out_event) {
    rondo__layer *layer = self;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_CREATE};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_EVENT, &c.object));
    rondo_status status = layer->lower->stream->event_create(layer->device, &c.object->lower);
    return forward_made(c.object, forward_after(layer, &c, status), out_event);
}

static void forward_event_destroy(void *self, void *handle) {
    rondo__layer *layer = self;
    rondo__layer_object *event = handle;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_DESTROY, .object = event};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->stream->event_destroy(layer->device, event->lower);
    forward_told(layer, &c);
    forward_object_end(event);
}

static rondo_status forward_event_record(void *self, void *handle) {
    rondo__layer_object *event = self, *stream = handle;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_RECORD, .object = event, .stream = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->event_record(event->lower, stream->lower));
}

static rondo_status forward_event_wait(void *self, void *handle) {
    rondo__layer_object *event = self, *stream = handle;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_WAIT, .object = event, .stream = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->event_wait(event->lower, stream->lower));
}

static rondo_status forward_event_query(void *self, bool *out_done) {
    rondo__layer_object *event = self;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_QUERY, .object = event};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->event_query(event->lower, out_done));
}

static rondo_status forward_event_synchronize(void *self) {
    rondo__layer_object *event = self;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_SYNCHRONIZE, .object = event};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->event_synchronize(event->lower));
}

static void forward_capture_changed(void *self, bool active, rondo_capture_mode mode) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_CAPTURE_CHANGED, .object = stream, .active = active, .mode = mode};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    if (layer->lower->stream->capture_changed) layer->lower->stream->capture_changed(stream->lower, active, mode);
    forward_told(layer, &c);
}

/* Events of a list are the layer's handles; below they must be those of below. Only for devices that have run the list
 * when the call returns, since the copy ends with it. */
static rondo_status forward_list(rondo__layer *layer, void *stream, const rondo_list *list, uint64_t *out_failed) {
    rondo_list copy = *list;
    bool events = false;
    void *memory = NULL;
    for (uint64_t i = 0; !(list->flags & RONDO_LIST_ONLY_CALLS) && i < list->count && !events; i++) {
        uint16_t operation = list->entries[i].operation;
        events = operation == RONDO_LIST_WAIT || operation == RONDO_LIST_RECORD;
    }
    if (!events) return layer->lower->stream->execute_list(stream, list, out_failed);
    RONDO__TRY(rondo__allocate_array(&layer->allocator, (size_t)list->count, sizeof(rondo_list_entry), &memory));
    rondo_list_entry *entries = memory;
    for (uint64_t i = 0; i < list->count; i++) {
        entries[i] = list->entries[i];
        if (entries[i].operation != RONDO_LIST_WAIT && entries[i].operation != RONDO_LIST_RECORD) continue;
        const rondo__layer_object *event = (const rondo__layer_object *)(uintptr_t)entries[i].words[0];
        entries[i].words[0] = (uint64_t)(uintptr_t)event->lower;
    }
    copy.entries = entries;
    rondo_status status = layer->lower->stream->execute_list(stream, &copy, out_failed);
    rondo__free(&layer->allocator, memory, (size_t)list->count * sizeof(rondo_list_entry));
    return status;
}

static rondo_status forward_execute_list(void *self, const rondo_list *list, uint64_t *out_failed) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EXECUTE_LIST, .object = stream, .list = list};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, forward_list(layer, stream->lower, list, out_failed));
}

static rondo_status forward_condition_begin(void *self, uint64_t address) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {
        .entry = RONDO__LAYER_CONDITION_BEGIN, .object = stream, .source = address, .bytes = sizeof(int64_t)};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->stream->condition_begin(stream->lower, c.source));
}

static void forward_condition_end(void *self) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_CONDITION_END, .object = stream};
    if (forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->stream->condition_end(stream->lower);
    forward_told(layer, &c);
}

/* ----------------------------------------------------------------------------------------------- native graphs */

static rondo_status forward_capture_begin(void *self, rondo_capture_mode mode) {
    rondo__layer_object *stream = self;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_CAPTURE_BEGIN, .object = stream, .mode = mode};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->graph->capture_begin(stream->lower, mode));
}

static rondo_status forward_capture_end(void *self, void **out_graph) {
    rondo__layer_object *stream = self, *graph = NULL;
    rondo__layer *layer = stream->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_CAPTURE_END, .object = stream};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_GRAPH, &graph));
    rondo_status status = layer->lower->graph->capture_end(stream->lower, &graph->lower);
    return forward_made(graph, forward_after(layer, &c, status), out_graph);
}

static rondo_status forward_instantiate(void *self, void *handle, void **out_executable) {
    rondo__layer *layer = self;
    rondo__layer_object *graph = handle, *executable = NULL;
    rondo__layer_call c = {.entry = RONDO__LAYER_INSTANTIATE, .object = graph};
    RONDO__TRY(forward_before(layer, &c));
    RONDO__TRY(forward_object_make(layer, RONDO__LAYER_GRAPH, &executable));
    rondo_status status = layer->lower->graph->instantiate(layer->device, graph->lower, &executable->lower);
    return forward_made(executable, forward_after(layer, &c, status), out_executable);
}

static rondo_status forward_graph_launch(void *self, void *handle) {
    rondo__layer_object *executable = self, *stream = handle;
    rondo__layer *layer = executable->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_GRAPH_LAUNCH, .object = executable, .stream = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->graph->launch(executable->lower, stream->lower));
}

static rondo_status forward_update(void *self, uint64_t node, const rondo_argument *arguments,
                                   uint32_t argument_count) {
    rondo__layer_object *executable = self;
    rondo__layer *layer = executable->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_UPDATE, .object = executable};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->graph->update(executable->lower, node, arguments, argument_count));
}

static void forward_graph_destroy(void *self, void *graph_handle, void *executable_handle) {
    rondo__layer *layer = self;
    rondo__layer_object *graph = graph_handle, *executable = executable_handle;
    rondo__layer_call c = {.entry = RONDO__LAYER_GRAPH_DESTROY, .object = graph ? graph : executable};
    if (!c.object || forward_refused(layer, forward_before(layer, &c))) return;
    layer->lower->graph->destroy(layer->device, graph ? graph->lower : NULL, executable ? executable->lower : NULL);
    forward_told(layer, &c);
    if (graph) forward_object_end(graph);
    if (executable && executable != graph) forward_object_end(executable);
}

static rondo_status forward_debug_print(void *self, const char *path) {
    rondo__layer_object *graph = self;
    return graph->layer->lower->graph->debug_print(graph->lower, path);
}

static rondo_status forward_thread_mode(void *self, rondo_capture_mode mode, rondo_capture_mode *out_before) {
    rondo__layer *layer = self;
    return layer->lower->graph->thread_mode(layer->device, mode, out_before);
}

static rondo_status forward_outside_record(void *self, void *handle) {
    rondo__layer_object *event = self, *stream = handle;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_RECORD, .object = event, .stream = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->graph->event_record(event->lower, stream->lower));
}

static rondo_status forward_outside_wait(void *self, void *handle) {
    rondo__layer_object *event = self, *stream = handle;
    rondo__layer *layer = event->layer;
    rondo__layer_call c = {.entry = RONDO__LAYER_EVENT_WAIT, .object = event, .stream = stream};
    RONDO__TRY(forward_before(layer, &c));
    return forward_after(layer, &c, layer->lower->graph->event_wait(event->lower, stream->lower));
}

/* ------------------------------------------------------------------------------------------------------- tables */

/* What the table below leaves out, this one leaves out: the core's defaults stay the core's. */
static rondo_graph_table forward_graph_table(const rondo_graph_table *graph) {
    bool outside = graph->struct_size >= sizeof *graph && graph->event_record && graph->event_wait;
    return (rondo_graph_table){.struct_size = sizeof *graph,
                               .capture_begin = graph->capture_begin ? forward_capture_begin : NULL,
                               .capture_end = graph->capture_end ? forward_capture_end : NULL,
                               .instantiate = graph->instantiate ? forward_instantiate : NULL,
                               .launch = graph->launch ? forward_graph_launch : NULL,
                               .update = graph->update ? forward_update : NULL,
                               .destroy = graph->destroy ? forward_graph_destroy : NULL,
                               .debug_print = graph->debug_print ? forward_debug_print : NULL,
                               .thread_mode = graph->thread_mode ? forward_thread_mode : NULL,
                               .event_record = outside ? forward_outside_record : NULL,
                               .event_wait = outside ? forward_outside_wait : NULL};
}

static void forward_fill_tables(rondo__layer *layer) {
    const rondo_memory_table *memory = layer->lower->memory;
    const rondo_stream_table *stream = layer->lower->stream;
    const rondo_graph_table *graph = layer->lower->graph;
    bool inlined = (layer->properties.capabilities & RONDO_DEVICE_INLINE) != 0;
    layer->memory = (rondo_memory_table){.struct_size = sizeof layer->memory,
                                         .allocate = forward_allocate,
                                         .free = forward_free,
                                         .host_allocate = memory->host_allocate ? forward_host_allocate : NULL,
                                         .host_free = memory->host_free ? forward_host_free : NULL,
                                         .on_reuse = memory->on_reuse ? forward_on_reuse : NULL};
    layer->stream = (rondo_stream_table){
        .struct_size = sizeof layer->stream,
        .create = forward_create,
        .wrap = stream->wrap ? forward_wrap : NULL,
        .destroy = forward_destroy,
        .launch = forward_launch,
        .copy = forward_copy,
        .fill = forward_fill,
        .host_call = forward_host_call,
        .synchronize = forward_synchronize,
        .query = forward_query,
        .event_create = forward_event_create,
        .event_destroy = forward_event_destroy,
        .event_record = forward_event_record,
        .event_wait = forward_event_wait,
        .event_query = forward_event_query,
        .event_synchronize = forward_event_synchronize,
        .capture_changed = forward_capture_changed,
        .execute_list = stream->execute_list && inlined && !layer->hooks->hides_lists ? forward_execute_list : NULL,
        .condition_begin = stream->condition_begin ? forward_condition_begin : NULL,
        .condition_end = stream->condition_begin ? forward_condition_end : NULL};
    if (graph) layer->graph = forward_graph_table(graph);
    layer->table = (rondo_device_table){.struct_size = sizeof layer->table,
                                        .memory = &layer->memory,
                                        .stream = &layer->stream,
                                        .graph = graph ? &layer->graph : NULL,
                                        .properties = forward_properties,
                                        .memory_info = forward_memory_info,
                                        .catalogue_at = forward_catalogue_at,
                                        .load = layer->lower->load ? forward_load : NULL,
                                        .module_kernel = layer->lower->module_kernel ? forward_module_kernel : NULL,
                                        .unload = layer->lower->unload ? forward_unload : NULL,
                                        .counter = forward_counter,
                                        .close = forward_close};
}

rondo_status rondo__layer_init(rondo__layer *layer, const rondo__layer_hooks *hooks, const rondo_allocator *allocator,
                               const rondo__log *log, const rondo_device_table *lower, void *device) {
    layer->hooks = hooks;
    layer->allocator = *allocator;
    layer->log = *log;
    layer->lower = lower;
    layer->device = device;
    layer->properties.struct_size = sizeof layer->properties;
    RONDO__TRY(lower->properties(device, &layer->properties));
    rondo__mutex_init(&layer->mutex);
    forward_fill_tables(layer);
    return RONDO_OK;
}

void rondo__layer_deinit(rondo__layer *layer) {
    rondo__layer_object *next;
    for (rondo__layer_object *object = layer->objects; object; object = next) {
        next = object->next;
        rondo__free(&layer->allocator, object, sizeof *object);
    }
    for (uint32_t i = 0; i < RONDO__LAYER_DEAD; i++) {
        rondo__free(&layer->allocator, layer->dead[i], sizeof *layer->dead[i]);
    }
    rondo__mutex_deinit(&layer->mutex);
}
