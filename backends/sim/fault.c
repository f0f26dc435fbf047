/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables that the core sees. Each entry counts its call, fails when the settings ask for it, and is else the
 * device's own entry. A test counts the calls of a scenario first and then has each fail in turn.
 *
 * A failure leaves nothing behind, as everywhere: the entry was not called. Only waiting has waited: a failure that a
 * device reports late, which is no reason to leave work running over memory that the program takes back. */
#include <stdio.h>
#include <string.h>

#include "mutations.h"
#include "sim.h"

static const struct {
    const char *name;
    bool fails;
} fault_entries[] = {
#define RONDO_X(entry, text, fails) {text, fails},
    RONDO__SIM_ENTRIES(RONDO_X)
#undef RONDO_X
        {"any", true}};

int rondo__sim_entry_find(const char *name, size_t length) {
    int entry = 0;
    while (entry <= RONDO__SIM_ENTRY_ANY &&
           (strlen(fault_entries[entry].name) != length || memcmp(fault_entries[entry].name, name, length) != 0)) {
        entry++;
    }
    return entry;
}

bool rondo__sim_entry_fails(int entry) {
    return entry >= 0 && entry <= RONDO__SIM_ENTRY_ANY && fault_entries[entry].fails;
}

rondo_status rondo__sim_fault_of(const rondo_host_api *host, rondo__sim_calls *calls,
                                 const rondo__sim_settings *settings, int entry) {
    uint64_t any = 0, number = atomic_fetch_add_explicit(&calls->of[entry], 1u, memory_order_relaxed) + 1u;
    bool of_device = entry != RONDO__SIM_ENTRY_ENUMERATE && entry != RONDO__SIM_ENTRY_OPEN;
    if (of_device && fault_entries[entry].fails) {
        any = atomic_fetch_add_explicit(&calls->of[RONDO__SIM_ENTRY_ANY], 1u, memory_order_relaxed) + 1u;
    }
    for (uint32_t i = 0; i < settings->fault_count; i++) {
        const rondo__sim_fault *fault = &settings->faults[i];
        bool every = fault->entry == RONDO__SIM_ENTRY_ANY && of_device && fault_entries[entry].fails;
        if (fault->entry != entry && !every) continue;
        if (fault->nth && fault->nth != (every ? any : number)) continue;
        (void)atomic_fetch_add_explicit(&calls->faults, 1u, memory_order_relaxed);
        char text[96];
        (void)snprintf(text, sizeof text, "sim: call %llu of entry '%s' fails, as asked", (unsigned long long)number,
                       fault_entries[entry].name);
        host->log(host->host, RONDO_LOG_INFO, text);
        return host->status_make(fault->code, RONDO_LAYER_DRIVER, __FILE__, (int32_t)__LINE__, "%s", text);
    }
    return RONDO_OK;
}

static rondo_status fault_at(rondo__sim_device *device, int entry) {
    return rondo__sim_fault_of(device->host, &device->calls, &device->settings, entry);
}

static void fault_count(rondo__sim_device *device, int entry) {
    (void)atomic_fetch_add_explicit(&device->calls.of[entry], 1u, memory_order_relaxed);
}

#define RONDO__SIM_TRY(device, entry)                                                \
    do {                                                                             \
        rondo_status rondo__sim_status = fault_at(device, RONDO__SIM_ENTRY_##entry); \
        if (rondo__sim_status) return rondo__sim_status;                             \
    } while (0)

/* The injected failure, after the wait; what the wait itself found goes with it. */
static rondo_status fault_after(const rondo__sim_device *device, rondo_status injected, rondo_status status) {
    if (!injected) return status;
    device->host->status_release(status);
    return injected;
}

/* ------------------------------------------------------------------------------------------------------ device */

static rondo_status fault_properties(void *self, rondo_device_properties *out_properties) {
    RONDO__SIM_TRY(self, PROPERTIES);
    return rondo__sim_device_table.properties(self, out_properties);
}

static rondo_status fault_memory_info(void *self, uint64_t *out_free, uint64_t *out_total) {
    RONDO__SIM_TRY(self, MEMORY_INFO);
    return rondo__sim_device_table.memory_info(self, out_free, out_total);
}

static const char *fault_catalogue_at(void *self, uint32_t index) {
    fault_count(self, RONDO__SIM_ENTRY_CATALOGUE_AT);
    return rondo__sim_device_table.catalogue_at(self, index);
}

/* "calls.ENTRY" is how often that entry was called, "calls.any" all that can fail, "faults" how many failed as asked,
 * "mutations" how many mutations there are. Asking for these is not counted. */
static bool fault_find_counter(const rondo__sim_device *device, const char *name, uint64_t *out_value) {
    if (strcmp(name, "mutations") == 0) {
        *out_value = RONDO__SIM_MUTATION_LAST;
        return true;
    }
    if (strcmp(name, "faults") == 0) {
        *out_value = atomic_load(&device->calls.faults) + atomic_load(&device->plugin_calls->faults);
        return true;
    }
    if (strncmp(name, "calls.", 6) != 0) return false;
    int entry = rondo__sim_entry_find(name + 6, strlen(name + 6));
    if (entry > RONDO__SIM_ENTRY_ANY) return false;
    bool plugin = entry == RONDO__SIM_ENTRY_ENUMERATE || entry == RONDO__SIM_ENTRY_OPEN;
    *out_value = atomic_load(plugin ? &device->plugin_calls->of[entry] : &device->calls.of[entry]);
    return true;
}

static rondo_status fault_counter(void *self, const char *name, uint64_t *out_value) {
    if (fault_find_counter(self, name, out_value)) return RONDO_OK;
    RONDO__SIM_TRY(self, COUNTER);
    return rondo__sim_device_table.counter(self, name, out_value);
}

static void fault_close(void *self) { rondo__sim_device_table.close(self); }

/* ------------------------------------------------------------------------------------------------------ memory */

static rondo_status fault_allocate(void *self, uint64_t size, uint64_t *out_address) {
    RONDO__SIM_TRY(self, ALLOCATE);
    return rondo__sim_memory_table.allocate(self, size, out_address);
}

static void fault_free(void *self, uint64_t address, uint64_t size) {
    fault_count(self, RONDO__SIM_ENTRY_FREE);
    rondo__sim_memory_table.free(self, address, size);
}

static rondo_status fault_host_allocate(void *self, uint64_t size, void **out_pointer) {
    RONDO__SIM_TRY(self, HOST_ALLOCATE);
    return rondo__sim_memory_table.host_allocate(self, size, out_pointer);
}

static void fault_host_free(void *self, void *pointer, uint64_t size) {
    fault_count(self, RONDO__SIM_ENTRY_HOST_FREE);
    rondo__sim_memory_table.host_free(self, pointer, size);
}

static void fault_on_reuse(void *self, uint64_t address, uint64_t size, bool taken) {
    fault_count(self, RONDO__SIM_ENTRY_ON_REUSE);
    rondo__sim_memory_table.on_reuse(self, address, size, taken);
}

/* ------------------------------------------------------------------------------------------------------ stream */

static rondo__sim_device *fault_device(void *stream) { return ((const rondo__sim_stream *)stream)->device; }

static rondo__sim_device *fault_event_device(void *event) { return ((const rondo__sim_event *)event)->device; }

static rondo_status fault_create(void *self, uint32_t flags, int32_t priority, void **out_stream) {
    RONDO__SIM_TRY(self, CREATE);
    return rondo__sim_stream_table.create(self, flags, priority, out_stream);
}

static void fault_destroy(void *self, void *stream) {
    fault_count(self, RONDO__SIM_ENTRY_DESTROY);
    rondo__sim_stream_table.destroy(self, stream);
}

static rondo_status fault_launch(void *stream, const rondo_call *call) {
    RONDO__SIM_TRY(fault_device(stream), LAUNCH);
    return rondo__sim_stream_table.launch(stream, call);
}

static rondo_status fault_copy(void *stream, uint64_t destination, uint64_t source, uint64_t bytes,
                               rondo_copy_kind kind) {
    RONDO__SIM_TRY(fault_device(stream), COPY);
    return rondo__sim_stream_table.copy(stream, destination, source, bytes, kind);
}

static rondo_status fault_fill(void *stream, uint64_t address, uint8_t value, uint64_t bytes) {
    RONDO__SIM_TRY(fault_device(stream), FILL);
    return rondo__sim_stream_table.fill(stream, address, value, bytes);
}

static rondo_status fault_host_call(void *stream, rondo_host_function function, void *user) {
    RONDO__SIM_TRY(fault_device(stream), HOST_CALL);
    return rondo__sim_stream_table.host_call(stream, function, user);
}

static rondo_status fault_synchronize(void *stream) {
    rondo__sim_device *device = fault_device(stream);
    rondo_status injected = fault_at(device, RONDO__SIM_ENTRY_SYNCHRONIZE);
    return fault_after(device, injected, rondo__sim_stream_table.synchronize(stream));
}

static rondo_status fault_query(void *stream, bool *out_done) {
    RONDO__SIM_TRY(fault_device(stream), QUERY);
    return rondo__sim_stream_table.query(stream, out_done);
}

static rondo_status fault_event_create(void *self, void **out_event) {
    RONDO__SIM_TRY(self, EVENT_CREATE);
    return rondo__sim_event_create(self, out_event);
}

static void fault_event_destroy(void *self, void *event) {
    fault_count(self, RONDO__SIM_ENTRY_EVENT_DESTROY);
    rondo__sim_event_destroy(self, event);
}

static rondo_status fault_event_record(void *event, void *stream) {
    RONDO__SIM_TRY(fault_event_device(event), EVENT_RECORD);
    return rondo__sim_event_record(event, stream);
}

static rondo_status fault_event_wait(void *event, void *stream) {
    RONDO__SIM_TRY(fault_event_device(event), EVENT_WAIT);
    return rondo__sim_event_wait(event, stream);
}

static rondo_status fault_event_query(void *event, bool *out_done) {
    RONDO__SIM_TRY(fault_event_device(event), EVENT_QUERY);
    return rondo__sim_event_query(event, out_done);
}

static rondo_status fault_event_synchronize(void *event) {
    rondo__sim_device *device = fault_event_device(event);
    rondo_status injected = fault_at(device, RONDO__SIM_ENTRY_EVENT_SYNCHRONIZE);
    return fault_after(device, injected, rondo__sim_event_synchronize(event));
}

static void fault_capture_changed(void *stream, bool active, rondo_capture_mode mode) {
    fault_count(fault_device(stream), RONDO__SIM_ENTRY_CAPTURE_CHANGED);
    rondo__sim_stream_table.capture_changed(stream, active, mode);
}

static rondo_status fault_condition_begin(void *stream, uint64_t address) {
    RONDO__SIM_TRY(fault_device(stream), CONDITION_BEGIN);
    return rondo__sim_stream_table.condition_begin(stream, address);
}

static void fault_condition_end(void *stream) {
    fault_count(fault_device(stream), RONDO__SIM_ENTRY_CONDITION_END);
    rondo__sim_stream_table.condition_end(stream);
}

#undef RONDO__SIM_TRY

const rondo_memory_table rondo__sim_fault_memory_table = {.struct_size = sizeof(rondo_memory_table),
                                                          .allocate = fault_allocate,
                                                          .free = fault_free,
                                                          .host_allocate = fault_host_allocate,
                                                          .host_free = fault_host_free,
                                                          .on_reuse = fault_on_reuse};

const rondo_stream_table rondo__sim_fault_stream_table = {.struct_size = sizeof(rondo_stream_table),
                                                          .create = fault_create,
                                                          .destroy = fault_destroy,
                                                          .launch = fault_launch,
                                                          .copy = fault_copy,
                                                          .fill = fault_fill,
                                                          .host_call = fault_host_call,
                                                          .synchronize = fault_synchronize,
                                                          .query = fault_query,
                                                          .event_create = fault_event_create,
                                                          .event_destroy = fault_event_destroy,
                                                          .event_record = fault_event_record,
                                                          .event_wait = fault_event_wait,
                                                          .event_query = fault_event_query,
                                                          .event_synchronize = fault_event_synchronize,
                                                          .capture_changed = fault_capture_changed,
                                                          .condition_begin = fault_condition_begin,
                                                          .condition_end = fault_condition_end};

const rondo_device_table rondo__sim_fault_device_table = {.struct_size = sizeof(rondo_device_table),
                                                          .memory = &rondo__sim_fault_memory_table,
                                                          .stream = &rondo__sim_fault_stream_table,
                                                          .properties = fault_properties,
                                                          .memory_info = fault_memory_info,
                                                          .catalogue_at = fault_catalogue_at,
                                                          .counter = fault_counter,
                                                          .close = fault_close};
