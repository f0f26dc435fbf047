/* SPDX-License-Identifier: Apache-2.0
 *
 * The mutations. Each is a branch in the entry that it spoils; without its number every entry here is the one of
 * fault.c. Wrong as they are, they touch no memory but the device's own, so that a suite survives to report them. */
#include <string.h>

#include "mutant.h"

#define RONDO__SIM_MUTANT_SHIFT 8u /* bytes that an unaligned allocation is off */

static const rondo__sim_mutation mutant_list[] = {{"none", "nothing is wrong"},
#define RONDO_X(name, text, sentence) {text, sentence},
                                                  RONDO__SIM_MUTATIONS(RONDO_X)
#undef RONDO_X
};

const rondo__sim_mutation *rondo__sim_mutation_at(int number) { return &mutant_list[number]; }

/* Which host function rondo.philox is here, so that its calls are known. Without one nothing of it can be spoilt. */
static rondo_kernel_function mutant_find_philox(const rondo_host_api *host) {
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    rondo_catalogue catalogue;
    rondo_kernel kernel = {NULL, NULL};
    request.operator_name = "rondo.philox";
    rondo_status status = host->find_catalogue(host->host, "cpu", &catalogue);
    if (!status) status = catalogue.table->prepare(catalogue.self, &request, &kernel);
    if (!status) catalogue.table->release(catalogue.self, kernel);
    host->status_release(status);
    return status ? NULL : kernel.function;
}

rondo_status rondo__sim_mutant_open(rondo__sim_device *device) {
    if (device->settings.mutation == RONDO__SIM_MUTATION_NONE) return RONDO_OK;
    rondo__sim_mutant_memory *memory = rondo__sim_allocate(device, sizeof *memory, 0);
    if (!memory) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a mutation");
    memset(memory, 0, sizeof *memory);
    memory->philox = mutant_find_philox(device->host);
    device->mutant = memory;
    if (!RONDO__SIM_IS(device, CONDITION_NEVER) && !RONDO__SIM_IS(device, CONDITION_EARLY) &&
        !RONDO__SIM_IS(device, CONDITION_NARROW)) {
        return RONDO_OK;
    }
    rondo_status status = rondo__sim_memory_table.allocate(device, 3u * sizeof(int64_t), &memory->cells);
    if (status) return status;
    memset((void *)(uintptr_t)memory->cells, 0, 3u * sizeof(int64_t));
    ((int64_t *)(uintptr_t)memory->cells)[1] = 1;
    return RONDO_OK;
}

void rondo__sim_mutant_close(rondo__sim_device *device) {
    rondo__sim_release(device, device->mutant, sizeof(rondo__sim_mutant_memory), 0);
}

/* ------------------------------------------------------------------------------------------------------ memory */

static rondo_status mutant_allocate_wrongly(rondo__sim_device *device, uint64_t size, uint64_t *out_address) {
    rondo__sim_mutant_memory *memory = device->mutant;
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
        return rondo__sim_mutant_remade(device, RONDO_CODE_INTERNAL);
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
    if (RONDO__SIM_IS((const rondo__sim_device *)self, BLOCKS_MEMORY) && rondo__sim_mutant_is_captured(self)) {
        return rondo__sim_mutant_refuse(self, "an allocation");
    }
    rondo_status status = mutant_allocate_wrongly(self, size, &address);
    if (!status) *out_address = address;
    return status;
}

static void mutant_free(void *self, uint64_t address, uint64_t size) {
    rondo__sim_device *device = self;
    rondo__sim_mutant_memory *memory = device->mutant;
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
    const rondo__sim_device *device = self;
    rondo__sim_mutant_memory *memory = device->mutant;
    if (RONDO__SIM_IS(device, PINNED_TWICE) && memory->pinned && size <= memory->pinned_size) {
        memory->pinned_shared++;
        *out_pointer = memory->pinned;
        return RONDO_OK;
    }
    rondo_status status = rondo__sim_fault_memory_table.host_allocate(self, size, out_pointer);
    if (status || !RONDO__SIM_IS(device, PINNED_TWICE)) return status;
    memory->pinned = *out_pointer;
    memory->pinned_size = size;
    memory->pinned_shared = 0;
    return RONDO_OK;
}

static void mutant_host_free(void *self, void *pointer, uint64_t size) {
    rondo__sim_mutant_memory *memory = ((const rondo__sim_device *)self)->mutant;
    if (pointer == memory->pinned) {
        if (memory->pinned_shared) {
            memory->pinned_shared--;
            return;
        }
        size = memory->pinned_size;
        memory->pinned = NULL;
    }
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
                                                       .destroy = rondo__sim_mutant_destroy,
                                                       .launch = rondo__sim_mutant_launch,
                                                       .copy = rondo__sim_mutant_copy,
                                                       .fill = rondo__sim_mutant_fill,
                                                       .host_call = rondo__sim_mutant_host_call,
                                                       .synchronize = rondo__sim_mutant_synchronize,
                                                       .query = rondo__sim_mutant_query,
                                                       .event_create = mutant_event_create,
                                                       .event_destroy = mutant_event_destroy,
                                                       .event_record = rondo__sim_mutant_event_record,
                                                       .event_wait = rondo__sim_mutant_event_wait,
                                                       .event_query = rondo__sim_mutant_event_query,
                                                       .event_synchronize = rondo__sim_mutant_event_synchronize,
                                                       .capture_changed = rondo__sim_mutant_capture_changed,
                                                       .condition_begin = rondo__sim_mutant_condition_begin,
                                                       .condition_end = rondo__sim_mutant_condition_end};

const rondo_device_table rondo__sim_mutant_device_table = {.struct_size = sizeof(rondo_device_table),
                                                           .memory = &mutant_memory_table,
                                                           .stream = &mutant_stream_table,
                                                           .properties = mutant_properties,
                                                           .memory_info = mutant_memory_info,
                                                           .catalogue_at = mutant_catalogue_at,
                                                           .counter = mutant_counter,
                                                           .close = mutant_close};
