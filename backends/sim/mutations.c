/* SPDX-License-Identifier: Apache-2.0
 *
 * The mutations. Each is a branch in the entry that it spoils; without its number every entry here is the one of
 * fault.c. Wrong as they are, they touch no memory but the device's own, so that a suite survives to report them. */
#include "mutations.h"

#include <string.h>

#define RONDO__SIM_MUTANT_CALLS 256u /* calls whose first arguments are remembered */
#define RONDO__SIM_MUTANT_WORDS 8u
#define RONDO__SIM_MUTANT_SHIFT 8u /* bytes that an unaligned allocation is off */

static const rondo__sim_mutation mutant_list[] = {{"none", "nothing is wrong"},
#define RONDO_X(name, text, sentence) {text, sentence},
                                                  RONDO__SIM_MUTATIONS(RONDO_X)
#undef RONDO_X
};

typedef struct mutant_call {
    rondo_kernel kernel;
    char name[32];
    uint32_t count;
    uint64_t words[RONDO__SIM_MUTANT_WORDS];
} mutant_call;

typedef struct mutant_memory {
    uint64_t captures, launches, copies, host_calls; /* so far; captures: ended */
    uint64_t last, last_size;                        /* allocation */
    uint64_t hollow;                                 /* an allocation that is much smaller than it says */
    uint64_t shared;                                 /* how often the last one was given out again */
    uint32_t call_count;
    mutant_call calls[RONDO__SIM_MUTANT_CALLS];
} mutant_memory;

const rondo__sim_mutation *rondo__sim_mutation_at(int number) { return &mutant_list[number]; }

rondo_status rondo__sim_mutant_open(rondo__sim_device *device) {
    if (device->settings.mutation == RONDO__SIM_MUTATION_NONE) return RONDO_OK;
    device->mutant = rondo__sim_allocate(device, sizeof(mutant_memory), 0);
    if (!device->mutant) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a mutation");
    memset(device->mutant, 0, sizeof(mutant_memory));
    return RONDO_OK;
}

void rondo__sim_mutant_close(rondo__sim_device *device) {
    rondo__sim_release(device, device->mutant, sizeof(mutant_memory), 0);
}

#define RONDO__SIM_IS(device, name) ((device)->settings.mutation == RONDO__SIM_MUTATION_##name)

static rondo__sim_device *mutant_device(void *stream) { return ((const rondo__sim_stream *)stream)->device; }

static uint64_t mutant_count(uint64_t *count) { return __atomic_add_fetch(count, 1u, __ATOMIC_RELAXED); }

static bool mutant_has_captured(const rondo__sim_device *device) {
    const mutant_memory *memory = device->mutant;
    return __atomic_load_n(&memory->captures, __ATOMIC_RELAXED) != 0;
}

/* -------------------------------------------------------------------------------------------------------- calls */

static bool mutant_is_work(const rondo__sim_operation *operation) {
    return operation->kind != RONDO__SIM_RECORD && operation->kind != RONDO__SIM_WAIT;
}

/* The last operation of the stream and the one before it change places. */
static void mutant_reorder(rondo__sim_stream *stream) {
    (void)pthread_mutex_lock(&stream->device->mutex);
    rondo__sim_operation **link = &stream->first;
    while (*link && (*link)->next && (*link)->next->next) link = &(*link)->next;
    rondo__sim_operation *one = *link, *two = one ? one->next : NULL;
    if (two && mutant_is_work(one) && mutant_is_work(two)) {
        *link = two;
        two->next = one;
        one->next = NULL;
        stream->end = &one->next;
    }
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

/* The arguments of the first call like this one, which is remembered. */
static void mutant_old_words(mutant_memory *memory, const rondo_call *call, rondo_argument *arguments) {
    mutant_call fresh = {.kernel = call->kernel, .count = call->argument_count};
    if (fresh.count > RONDO__SIM_MUTANT_WORDS) fresh.count = RONDO__SIM_MUTANT_WORDS;
    if (call->name) strncpy(fresh.name, call->name, sizeof fresh.name - 1u);
    for (uint32_t i = 0; i < fresh.count; i++) fresh.words[i] = arguments[i].word;
    for (uint32_t i = 0; i < memory->call_count; i++) {
        const mutant_call *old = &memory->calls[i];
        if (old->kernel.function != fresh.kernel.function || old->kernel.context != fresh.kernel.context ||
            old->count != fresh.count || strcmp(old->name, fresh.name) != 0) {
            continue;
        }
        for (uint32_t w = 0; w < fresh.count; w++) arguments[w].word = old->words[w];
        return;
    }
    if (memory->call_count < RONDO__SIM_MUTANT_CALLS) memory->calls[memory->call_count++] = fresh;
}

static void mutant_spoil_arguments(rondo__sim_device *device, const rondo_call *call, rondo_argument *arguments) {
    if (RONDO__SIM_IS(device, REPLAY_OLD) && mutant_has_captured(device)) {
        (void)pthread_mutex_lock(&device->mutex);
        mutant_old_words(device->mutant, call, arguments);
        (void)pthread_mutex_unlock(&device->mutex);
    }
    for (uint32_t i = 0; i < call->argument_count; i++) {
        if (arguments[i].access != RONDO_ACCESS_VALUE) continue;
        if (RONDO__SIM_IS(device, VALUES_NARROW)) arguments[i].word = (uint32_t)arguments[i].word;
        if (RONDO__SIM_IS(device, FIVE_WORDS) && i >= 5u) arguments[i].word = 0;
    }
    if (RONDO__SIM_IS(device, WORDS_SWAPPED) && call->argument_count >= 2u &&
        arguments[0].access != RONDO_ACCESS_VALUE && arguments[1].access != RONDO_ACCESS_VALUE &&
        arguments[0].length == arguments[1].length) {
        uint64_t word = arguments[0].word;
        arguments[0].word = arguments[1].word;
        arguments[1].word = word;
    }
}

static rondo_status mutant_launch(void *stream, const rondo_call *given) {
    rondo__sim_device *device = mutant_device(stream);
    mutant_memory *memory = device->mutant;
    rondo_argument arguments[RONDO_ARGUMENT_MAX];
    rondo_call call = *given;
    uint64_t number = mutant_count(&memory->launches);
    bool captured = mutant_has_captured(device);
    if (RONDO__SIM_IS(device, LAUNCH_DROPS) && number % 4u == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, REPLAY_DROPS) && captured && number % 3u == 0) return RONDO_OK;
    for (uint32_t i = 0; i < call.argument_count; i++) arguments[i] = given->arguments[i];
    mutant_spoil_arguments(device, given, arguments);
    call.arguments = arguments;
    if (RONDO__SIM_IS(device, NAME_LOST)) call.name = NULL;
    rondo_status status = rondo__sim_fault_stream_table.launch(stream, &call);
    if (!status && RONDO__SIM_IS(device, LAUNCH_TWICE)) status = rondo__sim_stream_table.launch(stream, &call);
    if (!status && ((RONDO__SIM_IS(device, LAUNCH_REORDERS) && number % 2u == 0) ||
                    (RONDO__SIM_IS(device, REPLAY_REORDERS) && captured))) {
        mutant_reorder(stream);
    }
    return status;
}

static rondo_copy_kind mutant_guess_kind(rondo__sim_device *device, uint64_t destination, uint64_t source,
                                         uint64_t bytes) {
    (void)pthread_mutex_lock(&device->mutex);
    bool from = rondo__sim_range_is_device(device, source, bytes);
    bool to = rondo__sim_range_is_device(device, destination, bytes);
    (void)pthread_mutex_unlock(&device->mutex);
    return from && to ? RONDO_COPY_DEVICE_TO_DEVICE : from ? RONDO_COPY_DEVICE_TO_HOST : RONDO_COPY_HOST_TO_DEVICE;
}

static rondo_status mutant_copy(void *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                                rondo_copy_kind kind) {
    rondo__sim_device *device = mutant_device(stream);
    mutant_memory *memory = device->mutant;
    uint64_t number = mutant_count(&memory->copies), swap = destination;
    if (RONDO__SIM_IS(device, COPY_DROPS) && number % 3u == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, COPY_SHORT) && --bytes == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, COPY_SHIFTED)) {
        if (--bytes == 0) return RONDO_OK;
        destination++;
    }
    if (RONDO__SIM_IS(device, COPY_SWAPPED) && kind == RONDO_COPY_DEVICE_TO_DEVICE) {
        destination = source;
        source = swap;
    }
    if (RONDO__SIM_IS(device, COPY_KIND)) kind = mutant_guess_kind(device, destination, source, bytes);
    return rondo__sim_fault_stream_table.copy(stream, destination, source, bytes, kind);
}

static rondo_status mutant_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    rondo__sim_device *device = mutant_device(stream);
    if (RONDO__SIM_IS(device, FILL_SHORT) && --bytes == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, FILL_VALUE)) value = 0;
    if (RONDO__SIM_IS(device, FILL_LONG)) {
        (void)pthread_mutex_lock(&device->mutex);
        if (!rondo__sim_range_problem(device, address, bytes + 1u)) bytes++;
        (void)pthread_mutex_unlock(&device->mutex);
    }
    return rondo__sim_fault_stream_table.fill(stream, address, value, bytes);
}

static rondo_status mutant_host_call(void *stream, rondo_host_function function, void *user) {
    rondo__sim_device *device = mutant_device(stream);
    mutant_memory *memory = device->mutant;
    if (RONDO__SIM_IS(device, HOST_SKIPPED) && mutant_count(&memory->host_calls) % 2u == 0) return RONDO_OK;
    if (RONDO__SIM_IS(device, HOST_EARLY)) {
        (void)function(user);
        return RONDO_OK;
    }
    rondo_status status = rondo__sim_fault_stream_table.host_call(stream, function, user);
    if (!status && RONDO__SIM_IS(device, HOST_TWICE)) {
        status = rondo__sim_stream_table.host_call(stream, function, user);
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------- waiting */

/* The stream's last operation is lost. */
static void mutant_forget_last(rondo__sim_stream *stream) {
    (void)pthread_mutex_lock(&stream->device->mutex);
    rondo__sim_operation **link = &stream->first;
    while (*link && (*link)->next) link = &(*link)->next;
    rondo__sim_operation *last = *link;
    if (last && mutant_is_work(last)) {
        *link = NULL;
        stream->end = link;
        rondo__sim_operation_finish(stream->device, last, true);
    }
    (void)pthread_mutex_unlock(&stream->device->mutex);
}

/* True when another stream took the failure. */
static bool mutant_give_away(rondo__sim_stream *stream, rondo_status status) {
    rondo__sim_device *device = stream->device;
    (void)pthread_mutex_lock(&device->mutex);
    rondo__sim_stream *other = device->streams;
    while (other && (other == stream || other->failure)) other = other->next;
    if (other) other->failure = status;
    (void)pthread_mutex_unlock(&device->mutex);
    return other != NULL;
}

static rondo_status mutant_remade(const rondo__sim_device *device, rondo_code code) {
    return device->host->status_make(code, RONDO_LAYER_DRIVER, __FILE__, (int32_t)__LINE__, "sim: a call failed");
}

static rondo_status mutant_synchronize(void *handle) {
    rondo__sim_stream *stream = handle;
    rondo__sim_device *device = stream->device;
    if (RONDO__SIM_IS(device, SYNC_EARLY)) mutant_forget_last(stream);
    rondo_status status = rondo__sim_fault_stream_table.synchronize(stream);
    if (!status) return RONDO_OK;
    if (RONDO__SIM_IS(device, ERROR_SWALLOWED)) {
        device->host->status_release(status);
        return RONDO_OK;
    }
    if (RONDO__SIM_IS(device, ERROR_ELSEWHERE) && mutant_give_away(stream, status)) return RONDO_OK;
    if (RONDO__SIM_IS(device, ERROR_CODE) && device->host->status_code(status) == RONDO_CODE_KERNEL_FAILED) {
        device->host->status_release(status);
        return mutant_remade(device, RONDO_CODE_INTERNAL);
    }
    if (RONDO__SIM_IS(device, ERROR_REPEATED)) {
        (void)pthread_mutex_lock(&device->mutex);
        if (stream->mutant++ % 2u == 0) stream->failure = mutant_remade(device, device->host->status_code(status));
        (void)pthread_mutex_unlock(&device->mutex);
    }
    return status;
}

static rondo_status mutant_query(void *stream, bool *out_done) {
    rondo_status status = rondo__sim_fault_stream_table.query(stream, out_done);
    if (!status && RONDO__SIM_IS(mutant_device(stream), QUERY_TRUE)) *out_done = true;
    return status;
}

static rondo_status mutant_event_record(void *handle, void *stream) {
    rondo__sim_event *event = handle;
    if (RONDO__SIM_IS(event->device, RECORD_IGNORED)) return RONDO_OK;
    rondo_status status = rondo__sim_fault_stream_table.event_record(event, stream);
    if (!status && RONDO__SIM_IS(event->device, EVENT_EARLY)) {
        (void)pthread_mutex_lock(&event->device->mutex);
        event->last->done = true;
        (void)pthread_mutex_unlock(&event->device->mutex);
    }
    return status;
}

static rondo_status mutant_event_wait(void *handle, void *stream) {
    const rondo__sim_event *event = handle;
    if (RONDO__SIM_IS(event->device, WAIT_IGNORED)) return RONDO_OK;
    return rondo__sim_fault_stream_table.event_wait(handle, stream);
}

static rondo_status mutant_event_query(void *handle, bool *out_done) {
    const rondo__sim_event *event = handle;
    if (!RONDO__SIM_IS(event->device, EVENT_QUERY_TRUE)) {
        return rondo__sim_fault_stream_table.event_query(handle, out_done);
    }
    *out_done = true;
    return RONDO_OK;
}

static rondo_status mutant_event_synchronize(void *handle) {
    const rondo__sim_event *event = handle;
    if (RONDO__SIM_IS(event->device, EVENT_SYNC_EARLY)) return RONDO_OK;
    return rondo__sim_fault_stream_table.event_synchronize(handle);
}

static void mutant_capture_changed(void *handle, bool active, rondo_capture_mode mode) {
    rondo__sim_stream *stream = handle;
    mutant_memory *memory = stream->device->mutant;
    if (!active) (void)mutant_count(&memory->captures);
    if (!active && RONDO__SIM_IS(stream->device, CAPTURE_LEAKS)) return;
    rondo__sim_fault_stream_table.capture_changed(stream, active, mode);
}

/* A stream that refuses work could not be waited for when it goes. */
static void mutant_destroy(void *self, void *stream) {
    ((rondo__sim_stream *)stream)->capturing = false;
    rondo__sim_fault_stream_table.destroy(self, stream);
}

/* ------------------------------------------------------------------------------------------------------ memory */

static rondo_status mutant_allocate_wrongly(rondo__sim_device *device, uint64_t size, uint64_t *out_address) {
    mutant_memory *memory = device->mutant;
    if (RONDO__SIM_IS(device, OVERLAP) && memory->last && size <= memory->last_size) {
        memory->shared++;
        *out_address = memory->last;
        return RONDO_OK;
    }
    uint64_t more = RONDO__SIM_IS(device, UNALIGNED) ? RONDO__SIM_ALIGNMENT : 0;
    rondo_status status = rondo__sim_fault_memory_table.allocate(device, size + more, out_address);
    if (status && RONDO__SIM_IS(device, OOM_MISSED) && !memory->hollow) {
        device->host->status_release(status);
        status = rondo__sim_fault_memory_table.allocate(device, RONDO__SIM_ALIGNMENT, out_address);
        if (!status) memory->hollow = *out_address;
        return status;
    }
    if (status && RONDO__SIM_IS(device, OOM_CODE)) {
        device->host->status_release(status);
        return mutant_remade(device, RONDO_CODE_INTERNAL);
    }
    if (status) return status;
    if (RONDO__SIM_IS(device, CLOBBER) && memory->last) *(unsigned char *)(uintptr_t)memory->last ^= 0x55u;
    if (more) *out_address += RONDO__SIM_MUTANT_SHIFT;
    memory->last = *out_address;
    memory->last_size = size;
    memory->shared = 0;
    return RONDO_OK;
}

static rondo_status mutant_allocate(void *self, uint64_t size, uint64_t *out_address) {
    uint64_t address = 0;
    rondo_status status = mutant_allocate_wrongly(self, size, &address);
    if (!status) *out_address = address;
    return status;
}

static void mutant_free(void *self, uint64_t address, uint64_t size) {
    rondo__sim_device *device = self;
    mutant_memory *memory = device->mutant;
    bool last = address == memory->last;
    if (RONDO__SIM_IS(device, FREE_NOTHING)) return;
    if (last && memory->shared) {
        memory->shared--;
        return;
    }
    if (last) memory->last = 0;
    if (memory->hollow && address == memory->hollow) {
        memory->hollow = 0;
        size = RONDO__SIM_ALIGNMENT;
    }
    if (RONDO__SIM_IS(device, UNALIGNED)) {
        address -= RONDO__SIM_MUTANT_SHIFT;
        size += RONDO__SIM_ALIGNMENT;
    }
    rondo__sim_fault_memory_table.free(self, address, size);
}

static rondo_status mutant_host_allocate(void *self, uint64_t size, void **out_pointer) {
    return rondo__sim_fault_memory_table.host_allocate(self, size, out_pointer);
}

static void mutant_host_free(void *self, void *pointer, uint64_t size) {
    rondo__sim_fault_memory_table.host_free(self, pointer, size);
}

static void mutant_on_reuse(void *self, uint64_t address, uint64_t size, bool taken) {
    if (!RONDO__SIM_IS((const rondo__sim_device *)self, OOM_MISSED)) {
        rondo__sim_fault_memory_table.on_reuse(self, address, size, taken);
    }
}

/* ------------------------------------------------------------------------------------------------------ device */

static rondo_status mutant_properties(void *self, rondo_device_properties *out_properties) {
    const rondo__sim_device *device = self;
    rondo_status status = rondo__sim_fault_device_table.properties(self, out_properties);
    if (status) return status;
    if (RONDO__SIM_IS(device, SAYS_INLINE)) out_properties->capabilities |= RONDO_DEVICE_INLINE;
    if (RONDO__SIM_IS(device, NOT_CAPABLE)) out_properties->capabilities &= ~(uint32_t)RONDO_DEVICE_GRAPH_CAPABLE;
    if (RONDO__SIM_IS(device, WRONG_INDEX)) out_properties->index++;
    if (RONDO__SIM_IS(device, WRONG_ALIGNMENT)) out_properties->allocation_alignment = (uint64_t)1 << 21;
    return RONDO_OK;
}

static rondo_status mutant_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    rondo_status status = rondo__sim_fault_device_table.memory_info(self, out_free, out_total);
    if (!status && RONDO__SIM_IS((const rondo__sim_device *)self, MEMORY_INFO)) *out_free = *out_total;
    return status;
}

static const char *mutant_catalogue_at(void *self, uint32_t index) {
    return rondo__sim_fault_device_table.catalogue_at(self, index);
}

static rondo_status mutant_counter(void *self, const char *name, uint64_t *out_value) {
    const rondo__sim_device *device = self;
    rondo_status status = rondo__sim_fault_device_table.counter(self, name, out_value);
    if (!status && RONDO__SIM_IS(device, COUNTER_WRONG) && strcmp(name, "mutations") != 0) ++*out_value;
    if (status && RONDO__SIM_IS(device, COUNTER_ANY)) {
        device->host->status_release(status);
        *out_value = 0;
        return RONDO_OK;
    }
    return status;
}

static void mutant_close(void *self) { rondo__sim_fault_device_table.close(self); }

#undef RONDO__SIM_IS

static rondo_status mutant_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    return rondo__sim_fault_stream_table.create(self, flags, priority, out_stream);
}

static rondo_status mutant_event_create(void *self, void **out_event) {
    return rondo__sim_fault_stream_table.event_create(self, out_event);
}

static void mutant_event_destroy(void *self, void *event) { rondo__sim_fault_stream_table.event_destroy(self, event); }

static const rondo_memory_table mutant_memory_table = {.struct_size = sizeof(rondo_memory_table),
                                                       .allocate = mutant_allocate,
                                                       .free = mutant_free,
                                                       .host_allocate = mutant_host_allocate,
                                                       .host_free = mutant_host_free,
                                                       .on_reuse = mutant_on_reuse};

static const rondo_stream_table mutant_stream_table = {.struct_size = sizeof(rondo_stream_table),
                                                       .create = mutant_create,
                                                       .destroy = mutant_destroy,
                                                       .launch = mutant_launch,
                                                       .copy = mutant_copy,
                                                       .fill = mutant_fill,
                                                       .host_call = mutant_host_call,
                                                       .synchronize = mutant_synchronize,
                                                       .query = mutant_query,
                                                       .event_create = mutant_event_create,
                                                       .event_destroy = mutant_event_destroy,
                                                       .event_record = mutant_event_record,
                                                       .event_wait = mutant_event_wait,
                                                       .event_query = mutant_event_query,
                                                       .event_synchronize = mutant_event_synchronize,
                                                       .capture_changed = mutant_capture_changed};

const rondo_device_table rondo__sim_mutant_device_table = {.struct_size = sizeof(rondo_device_table),
                                                           .memory = &mutant_memory_table,
                                                           .stream = &mutant_stream_table,
                                                           .properties = mutant_properties,
                                                           .memory_info = mutant_memory_info,
                                                           .catalogue_at = mutant_catalogue_at,
                                                           .counter = mutant_counter,
                                                           .close = mutant_close};
