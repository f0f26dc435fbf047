/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer "validate": says what is wrong with a call before the backend sees it, and what is wrong with what the
 * backend gave. Ownership, states, ranges, freed memory, handles of another device or destroyed ones, two threads in one
 * stream. What returns nothing cannot be refused to its caller: it is an error line, and the backend is not called.
 *
 * Lists run past the arguments' lengths, so of those only the form is looked at. */
#include <stdio.h>
#include <string.h>

#include "device/layers/validate.h"

static rondo__validate *validate_of(rondo__layer *layer) { return (rondo__validate *)layer; }

/* ----------------------------------------------------------------------------------------------------- handles */

static const char *validate_type_name(rondo__layer_type type) {
    static const char *const names[] = {"stream", "event", "module", "native graph"};
    return names[type];
}

static rondo_status validate_object(const rondo__layer *layer, const char *what, const rondo__layer_object *object,
                                    rondo__layer_type type) {
    if (!object) return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "%s: the %s is null", what, validate_type_name(type));
    if (object->type != type) {
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "%s: a %s was given, not a %s", what,
                           validate_type_name(object->type), validate_type_name(type));
    }
    if (!object->alive) {
        return RONDO__FAIL(INVALID_STATE, DRIVER, "%s: %s %u was destroyed", what, validate_type_name(type),
                           (unsigned)object->id);
    }
    if (object->layer == layer) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "%s: %s %u belongs to device '%s:%d', not to '%s:%d'", what,
                       validate_type_name(type), (unsigned)object->id, object->layer->properties.name,
                       (int)object->layer->properties.index, layer->properties.name, (int)layer->properties.index);
}

/* One thread at a time is inside; a host function may call from inside. */
static rondo_status validate_enter(rondo__layer_call *call, rondo__layer_object *stream, const char *what) {
    uint64_t nobody = 0, self = rondo__thread_id();
    if (__atomic_compare_exchange_n(&stream->busy, &nobody, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        return RONDO_OK;
    }
    call->nested = true;
    if (nobody == self) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, DRIVER, "%s: stream %u is in a call of another thread: one at a time", what,
                       (unsigned)stream->id);
}

static rondo_status validate_stream(rondo__layer *layer, rondo__layer_call *call, rondo__layer_object *stream) {
    const char *what = rondo__layer_entry_name(call->entry);
    RONDO__TRY(validate_object(layer, what, stream, RONDO__LAYER_STREAM));
    if (stream->capturing) {
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "%s: stream %u is recorded by a capture: nothing may reach the device", what,
                           (unsigned)stream->id);
    }
    return validate_enter(call, stream, what);
}

static void validate_leave(const rondo__layer_call *call, rondo__layer_object *stream) {
    if (!call->nested) __atomic_store_n(&stream->busy, 0, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------------------ ranges */

typedef struct validate_use {
    const char *what, *side;
    char name[96];
} validate_use;

static rondo_status validate_bad_range(const validate_use *use, uint64_t address, uint64_t bytes, const char *why) {
    return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s%s: %s, %llu bytes at 0x%llx, %s", use->what, use->name, use->side,
                       (unsigned long long)bytes, (unsigned long long)address, why);
}

/* device: the range must be device memory; else host memory. */
static rondo_status validate_range_locked(const rondo__validate *validate, const validate_use *use, uint64_t address,
                                          uint64_t bytes, bool device) {
    bool shared = (validate->layer.properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
    uint64_t end;
    if (!address) return validate_bad_range(use, address, bytes, "is null");
    if (__builtin_add_overflow(address, bytes, &end)) {
        return validate_bad_range(use, address, bytes, "passes the end of all memory");
    }
    const rondo__validate_range *range = rondo__validate_find(validate, address);
    if (!range) {
        const rondo__validate_range *freed = rondo__validate_find_freed(validate, address);
        if (freed && (freed->held || !shared) && (device || !freed->host)) {
            return validate_bad_range(use, address, bytes, "was freed");
        }
        if (!device || shared) return RONDO_OK;
        return validate_bad_range(use, address, bytes, "is no memory of this device");
    }
    if (!shared && device == range->host) {
        return validate_bad_range(use, address, bytes,
                                  device ? "is pinned host memory, not the device's"
                                         : "is device memory, not the host's");
    }
    if (bytes > range->size - (address - range->base)) {
        return validate_bad_range(use, address, bytes, "crosses the end of its allocation");
    }
    return RONDO_OK;
}

static rondo_status validate_range(rondo__layer *layer, const validate_use *use, uint64_t address, uint64_t bytes,
                                   bool device) {
    rondo__mutex_lock(&layer->mutex);
    rondo_status status = validate_range_locked(validate_of(layer), use, address, bytes, device);
    rondo__mutex_unlock(&layer->mutex);
    return status;
}

static rondo_status validate_launch(rondo__layer *layer, const rondo_call *call) {
    validate_use use = {"launch", "argument", ""};
    char side[32];
    if (!call || call->struct_size < sizeof *call || call->argument_count > RONDO_ARGUMENT_MAX ||
        (call->argument_count && !call->arguments)) {
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER,
                           "launch: the call is null, has no struct_size, or its arguments are "
                           "null or more than %u",
                           (unsigned)RONDO_ARGUMENT_MAX);
    }
    if (!call->kernel.function && (layer->properties.capabilities & RONDO_DEVICE_HOST_KERNELS) != 0) {
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "launch of call '%s': the kernel has no function",
                           call->name ? call->name : "");
    }
    (void)snprintf(use.name, sizeof use.name, " of call '%.64s'", call->name ? call->name : "");
    use.side = side;
    for (uint32_t i = 0; i < call->argument_count; i++) {
        const rondo_argument *argument = &call->arguments[i];
        (void)snprintf(side, sizeof side, "argument %u", (unsigned)i);
        if (argument->access > RONDO_ACCESS_BOTH) {
            return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "launch%s: %s has access %u, which is none", use.name, side,
                               (unsigned)argument->access);
        }
        if (argument->access == RONDO_ACCESS_VALUE || !argument->word) continue; /* null: an absent operand */
        RONDO__TRY(validate_range(layer, &use, argument->word, argument->length, true));
    }
    return RONDO_OK;
}

static rondo_status validate_copy(rondo__layer *layer, const rondo__layer_call *call) {
    validate_use from = {"copy", "the source", ""}, to = {"copy", "the destination", ""};
    if (call->kind < RONDO_COPY_HOST_TO_DEVICE || call->kind > RONDO_COPY_DEVICE_TO_DEVICE) {
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "copy: %d is no direction", (int)call->kind);
    }
    RONDO__TRY(validate_range(layer, &from, call->source, call->bytes, call->kind != RONDO_COPY_HOST_TO_DEVICE));
    return validate_range(layer, &to, call->destination, call->bytes, call->kind != RONDO_COPY_DEVICE_TO_HOST);
}

static rondo_status validate_list(rondo__layer *layer, const rondo_list *list) {
    if (!list || list->struct_size < sizeof *list || (list->count && !list->entries)) {
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "execute_list: the list or its entries are null");
    }
    for (uint64_t i = 0; i < list->count; i++) {
        const rondo_list_entry *entry = &list->entries[i];
        unsigned long long number = i;
        bool call = entry->operation == RONDO_LIST_CALL;
        if (entry->operation > RONDO_LIST_HOST || (!call && (list->flags & RONDO_LIST_ONLY_CALLS) != 0)) {
            return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "execute_list: entry %llu has operation %u", number,
                               (unsigned)entry->operation);
        }
        if ((call && !entry->function) || (entry->operation == RONDO_LIST_HOST && !entry->words[0])) {
            return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "execute_list: entry %llu has no function", number);
        }
        if (entry->operation == RONDO_LIST_JUMP && (entry->words[1] > list->count || !entry->words[0])) {
            return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "execute_list: entry %llu jumps out of the list", number);
        }
        if (entry->operation == RONDO_LIST_WAIT || entry->operation == RONDO_LIST_RECORD) {
            RONDO__TRY_NOTE(validate_object(layer, "execute_list",
                                            (const rondo__layer_object *)(uintptr_t)entry->words[0],
                                            RONDO__LAYER_EVENT),
                            "entry %llu", number);
        }
    }
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ memory */

static rondo_status validate_free_locked(rondo__validate *validate, rondo__layer_call *call, const char *what,
                                         bool host) {
    const rondo__validate_range *range = rondo__validate_find(validate, call->destination);
    unsigned long long address = call->destination;
    if (!range && rondo__validate_find_freed(validate, call->destination)) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: 0x%llx was freed already", what, address);
    }
    if (!range || range->base != call->destination || range->host != host) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: 0x%llx is not what %s gave", what, address,
                           host ? "host_allocate" : "allocate");
    }
    if (range->size != call->bytes) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: 0x%llx has %llu bytes, not %llu", what, address,
                           (unsigned long long)range->size, (unsigned long long)call->bytes);
    }
    bool shared = (validate->layer.properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
    call->active = !host && shared && call->bytes <= RONDO__VALIDATE_HELD;
    rondo__validate_remove(validate, call->destination, call->active);
    return RONDO_OK;
}

static rondo_status validate_free(rondo__layer *layer, rondo__layer_call *call, bool host) {
    rondo__mutex_lock(&layer->mutex);
    rondo_status status = validate_free_locked(validate_of(layer), call, rondo__layer_entry_name(call->entry), host);
    rondo__mutex_unlock(&layer->mutex);
    return status;
}

/* What the backend gave must be what it promises. */
static rondo_status validate_allocated(rondo__layer *layer, const rondo__layer_call *call, bool host) {
    rondo__validate *validate = validate_of(layer);
    rondo__validate_range range = {call->destination, call->bytes, host, false};
    unsigned long long address = call->destination;
    uint64_t alignment = host ? 1u : layer->properties.allocation_alignment, end;
    if (!address || __builtin_add_overflow(range.base, range.size, &end)) {
        return RONDO__FAIL(CORRUPT, MEMORY, "the backend allocated %llu bytes at 0x%llx",
                           (unsigned long long)range.size, address);
    }
    if (range.base & (alignment - 1u)) {
        return RONDO__FAIL(CORRUPT, MEMORY, "the backend allocated 0x%llx, which is not aligned to its own %llu",
                           address, (unsigned long long)alignment);
    }
    rondo__mutex_lock(&layer->mutex);
    rondo_status status = RONDO_OK;
    const rondo__validate_range *other = rondo__validate_find(validate, end - 1u);
    if (!other) other = rondo__validate_find(validate, range.base);
    if (other) {
        status = RONDO__FAIL(
            CORRUPT, MEMORY, "the backend allocated %llu bytes at 0x%llx, which overlap %llu live ones at 0x%llx",
            (unsigned long long)range.size, address, (unsigned long long)other->size, (unsigned long long)other->base);
    } else {
        status = rondo__validate_add(validate, &range);
    }
    rondo__mutex_unlock(&layer->mutex);
    if (!status || other) return status;
    /* No memory to remember it: then it was not allocated. */
    if (host) layer->lower->memory->host_free(layer->device, (void *)(uintptr_t)range.base, range.size);
    else layer->lower->memory->free(layer->device, range.base, range.size);
    return status;
}

/* ------------------------------------------------------------------------------------------- before and after */

static rondo_status validate_destroy(rondo__layer *layer, const rondo__layer_object *stream) {
    RONDO__TRY(validate_object(layer, "destroy", stream, RONDO__LAYER_STREAM));
    if (stream->working) {
        rondo__log_write(&layer->log, RONDO_LOG_ERROR,
                         "layer 'validate': destroy: stream %u has work that nobody waited for: synchronise first",
                         (unsigned)stream->id);
        (void)__atomic_add_fetch(&validate_of(layer)->errors, 1u, __ATOMIC_RELAXED);
    }
    return RONDO_OK;
}

static rondo_status validate_capture_changed(rondo__layer *layer, rondo__layer_call *call) {
    RONDO__TRY(validate_object(layer, "capture_changed", call->object, RONDO__LAYER_STREAM));
    if (call->active != call->object->capturing) {
        call->object->capturing = call->active;
        return RONDO_OK;
    }
    return RONDO__FAIL(INVALID_STATE, CAPTURE, "capture_changed: stream %u %s", (unsigned)call->object->id,
                       call->active ? "is recorded already" : "is not recorded");
}

/* Entries that a stream or one of its events is about. */
static rondo_status validate_before_stream(rondo__layer *layer, rondo__layer_call *call) {
    const char *what = rondo__layer_entry_name(call->entry);
    validate_use fill = {"fill", "the destination", ""}, condition = {"condition_begin", "the condition", ""};
    switch (call->entry) {
    case RONDO__LAYER_DESTROY: return validate_destroy(layer, call->object);
    case RONDO__LAYER_CAPTURE_CHANGED: return validate_capture_changed(layer, call);
    case RONDO__LAYER_EVENT_DESTROY:
    case RONDO__LAYER_EVENT_QUERY:
    case RONDO__LAYER_EVENT_SYNCHRONIZE: return validate_object(layer, what, call->object, RONDO__LAYER_EVENT);
    case RONDO__LAYER_EVENT_RECORD:
    case RONDO__LAYER_EVENT_WAIT:
        RONDO__TRY(validate_object(layer, what, call->object, RONDO__LAYER_EVENT));
        return validate_stream(layer, call, call->stream);
    case RONDO__LAYER_LAUNCH: RONDO__TRY(validate_launch(layer, call->call)); break;
    case RONDO__LAYER_COPY: RONDO__TRY(validate_copy(layer, call)); break;
    case RONDO__LAYER_FILL: RONDO__TRY(validate_range(layer, &fill, call->destination, call->bytes, true)); break;
    case RONDO__LAYER_HOST_CALL:
        if (!call->function) return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "host_call: the function is null");
        break;
    case RONDO__LAYER_EXECUTE_LIST: RONDO__TRY(validate_list(layer, call->list)); break;
    case RONDO__LAYER_CONDITION_BEGIN:
        RONDO__TRY(validate_range(layer, &condition, call->source, call->bytes, true));
        break;
    default: break;
    }
    return validate_stream(layer, call, call->object);
}

static rondo_status validate_look(rondo__layer *layer, rondo__layer_call *call) {
    const char *what = rondo__layer_entry_name(call->entry);
    switch (call->entry) {
    case RONDO__LAYER_ALLOCATE:
    case RONDO__LAYER_HOST_ALLOCATE:
        return call->bytes ? RONDO_OK : RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "%s: of 0 bytes", what);
    case RONDO__LAYER_FREE: return validate_free(layer, call, false);
    case RONDO__LAYER_HOST_FREE: return validate_free(layer, call, true);
    case RONDO__LAYER_ON_REUSE: {
        validate_use use = {what, "the range", ""};
        return validate_range(layer, &use, call->destination, call->bytes, true);
    }
    case RONDO__LAYER_CREATE:
        if (!(call->flags & ~(uint32_t)RONDO_STREAM_ASYNCHRONOUS)) return RONDO_OK;
        return RONDO__FAIL(INVALID_ARGUMENT, DRIVER, "create: unknown stream flags 0x%x", (unsigned)call->flags);
    case RONDO__LAYER_MEMORY_INFO:
    case RONDO__LAYER_LOAD:
    case RONDO__LAYER_WRAP:
    case RONDO__LAYER_EVENT_CREATE: return RONDO_OK;
    case RONDO__LAYER_MODULE_KERNEL:
    case RONDO__LAYER_UNLOAD: return validate_object(layer, what, call->object, RONDO__LAYER_MODULE);
    case RONDO__LAYER_INSTANTIATE:
    case RONDO__LAYER_UPDATE:
    case RONDO__LAYER_GRAPH_DESTROY: return validate_object(layer, what, call->object, RONDO__LAYER_GRAPH);
    case RONDO__LAYER_GRAPH_LAUNCH:
        RONDO__TRY(validate_object(layer, what, call->object, RONDO__LAYER_GRAPH));
        return validate_object(layer, what, call->stream, RONDO__LAYER_STREAM);
    case RONDO__LAYER_CAPTURE_BEGIN:
    case RONDO__LAYER_CAPTURE_END: return validate_object(layer, what, call->object, RONDO__LAYER_STREAM);
    default: return validate_before_stream(layer, call);
    }
}

static rondo_status validate_before(rondo__layer *layer, rondo__layer_call *call) {
    rondo_status status = validate_look(layer, call);
    if (!status) return RONDO_OK;
    (void)__atomic_add_fetch(&validate_of(layer)->errors, 1u, __ATOMIC_RELAXED);
    return rondo__status_note(status, "found by layer 'validate': the backend was not called");
}

static bool validate_is_work(rondo__layer_entry entry) {
    return entry == RONDO__LAYER_LAUNCH || entry == RONDO__LAYER_COPY || entry == RONDO__LAYER_FILL ||
           entry == RONDO__LAYER_HOST_CALL || entry == RONDO__LAYER_EXECUTE_LIST;
}

/* Memory that is held counts as free, and is given back for who needs it. */
static rondo_status validate_after_memory(rondo__layer *layer, rondo__layer_call *call, rondo_status status) {
    rondo__validate *validate = validate_of(layer);
    if (call->entry == RONDO__LAYER_MEMORY_INFO) {
        rondo__mutex_lock(&layer->mutex);
        call->bytes += validate->held;
        rondo__mutex_unlock(&layer->mutex);
        return status;
    }
    if (call->entry == RONDO__LAYER_ALLOCATE && rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) {
        rondo__mutex_lock(&layer->mutex);
        bool held = validate->held != 0;
        rondo__validate_flush(validate);
        rondo__mutex_unlock(&layer->mutex);
        if (held) {
            rondo_status_release(status);
            status = layer->lower->memory->allocate(layer->device, call->bytes, &call->destination);
        }
    }
    return status ? status : validate_allocated(layer, call, call->entry == RONDO__LAYER_HOST_ALLOCATE);
}

static rondo_status validate_after(rondo__layer *layer, rondo__layer_call *call, rondo_status status) {
    rondo__layer_entry entry = call->entry;
    if (entry == RONDO__LAYER_ALLOCATE || entry == RONDO__LAYER_HOST_ALLOCATE || entry == RONDO__LAYER_MEMORY_INFO) {
        return validate_after_memory(layer, call, status);
    }
    if (entry == RONDO__LAYER_EVENT_RECORD || entry == RONDO__LAYER_EVENT_WAIT) {
        validate_leave(call, call->stream);
    } else if (validate_is_work(entry) || entry == RONDO__LAYER_SYNCHRONIZE || entry == RONDO__LAYER_QUERY) {
        if (validate_is_work(entry)) call->object->working = true;
        if (entry == RONDO__LAYER_SYNCHRONIZE || (entry == RONDO__LAYER_QUERY && !status && call->active)) {
            call->object->working = false;
        }
        validate_leave(call, call->object);
    }
    return status;
}

static rondo_status validate_counter(rondo__layer *layer, const char *name, uint64_t *out_value) {
    if (strcmp(name, "validate.errors") != 0) return RONDO__FAIL(NOT_FOUND, DRIVER, "validate counts no '%s'", name);
    *out_value = __atomic_load_n(&validate_of(layer)->errors, __ATOMIC_RELAXED);
    return RONDO_OK;
}

static void validate_close(rondo__layer *layer) {
    rondo__validate *validate = validate_of(layer);
    rondo_allocator allocator = layer->allocator;
    size_t objects = 0;
    for (const rondo__layer_object *object = layer->objects; object; object = object->next) objects++;
    if (objects || validate->live.count) {
        rondo__log_write(&layer->log, RONDO_LOG_ERROR,
                         "layer 'validate': device '%s:%d' is closed with %zu handles and %zu allocations alive",
                         layer->properties.name, (int)layer->properties.index, objects, validate->live.count);
    }
    rondo__validate_flush(validate);
    layer->lower->close(layer->device);
    rondo__layer_deinit(layer);
    rondo__buffer_deinit(&validate->live);
    rondo__free(&allocator, validate, sizeof *validate);
}

static const rondo__layer_hooks validate_hooks = {.name = "validate",
                                                  .keeps_dead = true,
                                                  .before = validate_before,
                                                  .after = validate_after,
                                                  .counter = validate_counter,
                                                  .close = validate_close};

rondo_status rondo__validate_create(const rondo_allocator *allocator, const rondo__log *log,
                                    const rondo_device_table *lower, void *device, rondo__layer **out_layer) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo__validate), &memory));
    rondo__validate *validate = memory;
    rondo__buffer_init(&validate->live, allocator, sizeof(rondo__validate_range), RONDO__VALIDATE_RANGES_MAX);
    rondo_status status = rondo__layer_init(&validate->layer, &validate_hooks, allocator, log, lower, device);
    if (status) {
        rondo__free(allocator, validate, sizeof *validate);
        return status;
    }
    *out_layer = &validate->layer;
    return RONDO_OK;
}
