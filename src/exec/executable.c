/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan x device: kernels prepared, weights where the device can reach them. Immutable once made.
 *
 * Constants and packed blocks go into one allocation, large ones of a session's executables into blocks that they share. Where the host addresses device memory, constants stay in the
 * plan, which is held anyway, and blocks are packed in place; elsewhere all is put together in host memory and copied
 * once. What an offline file has packed for the kernel set that runs here is used as constants are. */
#include <string.h>

#include "base/checked.h"
#include "exec/exec.h"
#include "exec/weights.h"

#define EXEC_IN_PLACE_ALIGNMENT 16u

static bool exec_is_addressable(const rondo_device *device) {
    return (device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE) != 0;
}

static const char *exec_step_name(const rondo__plan_step *step) {
    return step->node_name && *step->node_name ? step->node_name : step->operator_name;
}

/* A constant that can be used where the plan has it. */
static bool exec_stays(const rondo_device *device, const rondo__plan_buffer *buffer) {
    return exec_is_addressable(device) && (uintptr_t)buffer->data % EXEC_IN_PLACE_ALIGNMENT == 0;
}

static const rondo_device *exec_device(const rondo_executable *executable, const rondo__plan_step *step) {
    return executable->targets[rondo__plan_target_of(executable->plan, step)].device;
}

static const rondo_catalogue *exec_catalogue(const rondo_executable *executable, const rondo__plan_step *step) {
    return rondo__kernel_set_named(&exec_device(executable, step)->kernels, step->catalogue);
}

/* The block that came with the plan, where it was packed for the kernels that run here; else null. */
static const void *exec_packed(const rondo_executable *executable, const rondo__plan_step *step) {
    const char *set = step->packed ? exec_catalogue(executable, step)->table->kernel_set : NULL;
    return set && step->packed_set && strcmp(set, step->packed_set) == 0 ? step->packed : NULL;
}

/* Whether so many bytes of weights have a block of their own, which others may use as well. */
static bool exec_shares(const rondo_executable *executable, uint64_t bytes) {
    return executable->shared && bytes >= RONDO__WEIGHTS_SHARED_MIN;
}

/* Whether a step's packed block is used where the plan has it. */
static bool exec_packed_stays(const rondo_executable *executable, const rondo__plan_step *step) {
    return exec_is_addressable(exec_device(executable, step)) && exec_packed(executable, step);
}

/* ---------------------------------------------------------------------------------------------------- placing */

static rondo_status exec_place(uint64_t bytes, uint64_t *end, uint64_t *out_offset) {
    uint64_t at;
    if (!rondo__checked_align_u64(*end, RONDO__EXEC_ALIGNMENT, &at) || !rondo__checked_add_u64(at, bytes, end))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the weights of the plan are larger than any memory");
    *out_offset = at;
    return RONDO_OK;
}

static bool exec_is_of(const rondo_executable *executable, uint32_t step, uint32_t target) {
    return rondo__plan_target_of(executable->plan, &executable->plan->steps[step]) == target;
}

/* Which constants the steps of a target read; with one target, all of them may be. */
static void exec_mark_constants(const rondo_executable *executable, uint32_t target, uint8_t *wanted) {
    const rondo_plan *plan = executable->plan;
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        wanted[i] = executable->target_count == 1 && plan->buffers[i].kind == RONDO__PLAN_CONSTANT;
    for (uint32_t s = 0; s < plan->step_count && executable->target_count > 1; s++) {
        const rondo__plan_step *step = &plan->steps[s];
        for (uint32_t i = 0; exec_is_of(executable, s, target) && i < step->input_count; i++) {
            uint32_t buffer = step->inputs[i].buffer;
            bool absorbed = i < 64u && (step->absorbed_inputs >> i & 1u);
            if (buffer == RONDO__PLAN_NONE || absorbed) continue;
            if (plan->buffers[buffer].kind == RONDO__PLAN_CONSTANT) wanted[buffer] = 1;
        }
    }
}

/* Offsets into the allocation to be made, counted from RONDO__EXEC_ALIGNMENT so that 0 stays "none". */
static rondo_status exec_place_all(rondo_executable *executable, uint32_t target, const uint8_t *wanted,
                                   uint64_t *out_bytes) {
    const rondo_plan *plan = executable->plan;
    rondo__exec_target *on = &executable->targets[target];
    uint64_t end = RONDO__EXEC_ALIGNMENT;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const rondo__plan_buffer *buffer = &plan->buffers[i];
        if (!wanted[i] || !buffer->data || !buffer->bytes) continue;
        if (!exec_stays(on->device, buffer) && !exec_shares(executable, buffer->bytes))
            RONDO__TRY(exec_place(buffer->bytes, &end, &on->constants[i]));
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint64_t bytes = plan->steps[i].packed_bytes;
        if (!bytes || !exec_is_of(executable, i, target)) continue;
        if (exec_packed_stays(executable, &plan->steps[i]) || exec_shares(executable, bytes)) continue;
        RONDO__TRY(exec_place(bytes, &end, &executable->steps[i].packed));
    }
    *out_bytes = end - RONDO__EXEC_ALIGNMENT;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------- filling, preparing */

typedef struct exec_request {
    rondo_kernel_request request;
    rondo_operand inputs[RONDO_ARGUMENT_MAX], outputs[RONDO_ARGUMENT_MAX];
} exec_request;

static rondo_status exec_packs_otherwise(const rondo__plan_step *step, uint32_t index, const rondo_kernel_facts *facts,
                                         const char *kernel_set) {
    rondo_status status =
        RONDO__FAIL(UNSUPPORTED, KERNEL,
                    "step %u '%s': catalogue '%s' packs it otherwise here (%llu packed, %llu scratch bytes; the plan "
                    "has %llu and %llu): compile again on this machine",
                    (unsigned)index, exec_step_name(step), step->catalogue, (unsigned long long)facts->packed_bytes,
                    (unsigned long long)facts->scratch_bytes, (unsigned long long)step->packed_bytes,
                    (unsigned long long)step->scratch_bytes);
    if (!step->packed_set) return status;
    return rondo__status_note(status, "its weights were packed for kernel set '%s'; here it is '%s'", step->packed_set,
                              kernel_set ? kernel_set : "another");
}

/* The catalogue must still say what it said when the plan was made. */
static rondo_status exec_check_step(const rondo_executable *executable, uint32_t index) {
    const rondo__plan_step *step = &executable->plan->steps[index];
    const rondo_device_properties *device = &exec_device(executable, step)->properties;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    exec_request made;
    if (rondo__plan_is_transfer(step)) return RONDO_OK;
    if (rondo__plan_word_count(step) > RONDO_ARGUMENT_MAX)
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "step %u '%s' needs %u arguments: a call has at most %u",
                           (unsigned)index, exec_step_name(step), (unsigned)rondo__plan_word_count(step),
                           RONDO_ARGUMENT_MAX);
    const rondo_catalogue *catalogue = exec_catalogue(executable, step);
    if (!catalogue)
        return RONDO__FAIL(UNSUPPORTED, KERNEL,
                           "step %u '%s' wants a kernel of catalogue '%s', whose kernels device '%s:%d' does not run: "
                           "the plan was made for target '%s'; compile for this device's catalogues",
                           (unsigned)index, exec_step_name(step), step->catalogue, device->name, (int)device->index,
                           executable->plan->target);
    rondo__plan_request(step, made.inputs, made.outputs, &made.request);
    RONDO__TRY_NOTE(catalogue->table->find(catalogue->self, &made.request, &facts),
                    "step %u '%s' of the plan: catalogue '%s' refuses it here: compile again on this machine",
                    (unsigned)index, exec_step_name(step), step->catalogue);
    if (facts.packed_bytes != step->packed_bytes || facts.scratch_bytes > step->scratch_bytes ||
        (facts.scratch_bytes > 0) != (step->scratch_bytes > 0) || facts.absorbed_inputs != step->absorbed_inputs)
        return exec_packs_otherwise(step, index, &facts, catalogue->table->kernel_set);
    return RONDO_OK;
}

static rondo_status exec_pack(const rondo_executable *executable, uint32_t index, void *out) {
    const rondo__plan_step *step = &executable->plan->steps[index];
    const void *packed = exec_packed(executable, step);
    if (packed) {
        memcpy(out, packed, (size_t)step->packed_bytes);
        return RONDO_OK;
    }
    const rondo_catalogue *catalogue = exec_catalogue(executable, step);
    exec_request made;
    if (!catalogue->table->pack)
        return RONDO__FAIL(INTERNAL, KERNEL, "catalogue '%s' asks for packed bytes and cannot pack", step->catalogue);
    rondo__plan_request(step, made.inputs, made.outputs, &made.request);
    RONDO__TRY_NOTE(catalogue->table->pack(catalogue->self, &made.request, out), "while packing step %u '%s'",
                    (unsigned)index, exec_step_name(step));
    return RONDO_OK;
}

/* Puts everything that was placed at `memory`, host memory that stands for the allocation. */
static rondo_status exec_fill(const rondo_executable *executable, uint32_t target, char *memory) {
    const rondo_plan *plan = executable->plan;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        uint64_t at = executable->targets[target].constants[i];
        if (at) memcpy(memory + (at - RONDO__EXEC_ALIGNMENT), plan->buffers[i].data, (size_t)plan->buffers[i].bytes);
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint64_t at = executable->steps[i].packed, begin = rondo__now_ns();
        if (!at || !exec_is_of(executable, i, target)) continue;
        RONDO__TRY(exec_pack(executable, i, memory + (at - RONDO__EXEC_ALIGNMENT)));
        executable->steps[i].load_ns += rondo__now_ns() - begin;
    }
    return RONDO_OK;
}

rondo_status rondo__exec_copy(rondo_device *device, uint64_t destination, uint64_t source, uint64_t bytes,
                              rondo_copy_kind kind) {
    rondo_stream *stream;
    RONDO__TRY(rondo_stream_create(device, NULL, &stream));
    rondo_status status =
        rondo_stream_copy(stream, (void *)(uintptr_t)destination, (const void *)(uintptr_t)source, bytes, kind);
    if (!status) status = rondo_stream_synchronize(stream);
    rondo_stream_release(stream);
    return status;
}

static rondo_status exec_fill_far(const rondo_executable *executable, uint32_t target, uint64_t base, uint64_t bytes) {
    void *stage;
    RONDO__TRY(rondo__allocate_aligned(&executable->allocator, (size_t)bytes, RONDO__EXEC_ALIGNMENT, &stage));
    rondo_status status = exec_fill(executable, target, stage);
    if (!status)
        status = rondo__exec_copy(executable->targets[target].device, base, (uint64_t)(uintptr_t)stage, bytes,
                                  RONDO_COPY_HOST_TO_DEVICE);
    rondo__free_aligned(&executable->allocator, stage, (size_t)bytes, RONDO__EXEC_ALIGNMENT);
    return status;
}

typedef struct exec_share {
    const rondo_executable *executable;
    uint32_t index; /* of a buffer, or of a step */
} exec_share;

static rondo_status exec_fill_constant(const void *self, void *out) {
    const exec_share *share = self;
    const rondo__plan_buffer *buffer = &share->executable->plan->buffers[share->index];
    memcpy(out, buffer->data, (size_t)buffer->bytes);
    return RONDO_OK;
}

static rondo_status exec_fill_packed(const void *self, void *out) {
    const exec_share *share = self;
    return exec_pack(share->executable, share->index, out);
}

static rondo_status exec_share_one(rondo_executable *executable, uint32_t index, uint64_t bytes,
                                   rondo__weights_fill fill, uint64_t *out_address) {
    const exec_share share = {executable, index};
    rondo__weights_block **block = &executable->blocks[executable->block_count];
    RONDO__TRY_NOTE(rondo__weights_take(executable->shared, bytes, fill, &share, block), "for the weights of plan '%s'",
                    executable->plan->name);
    executable->block_count++;
    *out_address = (*block)->address;
    return RONDO_OK;
}

/* What is large enough to be worth it. Only plans of one target share. */
static rondo_status exec_share_weights(rondo_executable *executable) {
    const rondo_plan *plan = executable->plan;
    void *memory;
    if (!executable->shared) return RONDO_OK;
    RONDO__TRY(rondo__allocate_array(&executable->allocator, (size_t)plan->buffer_count + plan->step_count,
                                     sizeof *executable->blocks, &memory));
    executable->blocks = memory;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const rondo__plan_buffer *buffer = &plan->buffers[i];
        if (buffer->kind != RONDO__PLAN_CONSTANT || !buffer->data || !exec_shares(executable, buffer->bytes)) continue;
        if (exec_stays(executable->device, buffer)) continue;
        RONDO__TRY(
            exec_share_one(executable, i, buffer->bytes, exec_fill_constant, &executable->targets[0].constants[i]));
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        uint64_t bytes = plan->steps[i].packed_bytes, begin = rondo__now_ns();
        if (exec_packed_stays(executable, &plan->steps[i]) || !exec_shares(executable, bytes)) continue;
        RONDO__TRY(exec_share_one(executable, i, bytes, exec_fill_packed, &executable->steps[i].packed));
        executable->steps[i].load_ns += rondo__now_ns() - begin;
    }
    return RONDO_OK;
}

static rondo_status exec_fill_weights(rondo_executable *executable, uint32_t target, uint64_t bytes) {
    const rondo_plan *plan = executable->plan;
    rondo__exec_target *on = &executable->targets[target];
    uint64_t whole;
    if (!rondo__checked_add_u64(bytes, RONDO__EXEC_ALIGNMENT - 1u, &whole) || whole > SIZE_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the weights of the plan are larger than any memory");
    RONDO__TRY_NOTE(rondo__exec_allocate(&on->memory, whole, &on->weights), "for the weights of plan '%s'", plan->name);
    on->weights_bytes = whole;
    uint64_t base = (on->weights + RONDO__EXEC_ALIGNMENT - 1u) & ~(uint64_t)(RONDO__EXEC_ALIGNMENT - 1u);
    if (exec_is_addressable(on->device)) RONDO__TRY(exec_fill(executable, target, (char *)(uintptr_t)base));
    else RONDO__TRY(exec_fill_far(executable, target, base, bytes));
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (on->constants[i]) on->constants[i] += base - RONDO__EXEC_ALIGNMENT;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (executable->steps[i].packed && exec_is_of(executable, i, target))
            executable->steps[i].packed += base - RONDO__EXEC_ALIGNMENT;
    return RONDO_OK;
}

static rondo_status exec_load_wanted(rondo_executable *executable, uint32_t target, uint8_t *wanted) {
    const rondo_plan *plan = executable->plan;
    rondo__exec_target *on = &executable->targets[target];
    uint64_t bytes;
    exec_mark_constants(executable, target, wanted);
    RONDO__TRY(exec_place_all(executable, target, wanted, &bytes));
    if (bytes) RONDO__TRY(exec_fill_weights(executable, target, bytes));
    RONDO__TRY(exec_share_weights(executable));
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (wanted[i] && !on->constants[i]) on->constants[i] = (uint64_t)(uintptr_t)plan->buffers[i].data;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].packed_bytes && !executable->steps[i].packed && exec_is_of(executable, i, target))
            executable->steps[i].packed = (uint64_t)(uintptr_t)exec_packed(executable, &plan->steps[i]);
    return RONDO_OK;
}

static rondo_status exec_load_weights(rondo_executable *executable, uint32_t target) {
    const rondo_plan *plan = executable->plan;
    void *memory;
    RONDO__TRY(rondo__allocate_array(&executable->allocator, plan->buffer_count, sizeof(uint64_t), &memory));
    executable->targets[target].constants = memory;
    RONDO__TRY(rondo__allocate_array(&executable->allocator, plan->buffer_count, 1, &memory));
    rondo_status status = exec_load_wanted(executable, target, memory);
    rondo__free(&executable->allocator, memory, plan->buffer_count);
    return status;
}

static rondo_status exec_prepare(rondo_executable *executable, uint32_t index) {
    const rondo__plan_step *step = &executable->plan->steps[index];
    rondo__exec_step *out = &executable->steps[index];
    const rondo_catalogue *catalogue = exec_catalogue(executable, step);
    exec_request made;
    uint64_t begin = rondo__now_ns();
    if (rondo__plan_is_transfer(step)) return RONDO_OK;
    rondo__plan_request(step, made.inputs, made.outputs, &made.request);
    RONDO__TRY_NOTE(catalogue->table->prepare(catalogue->self, &made.request, &out->kernel),
                    "while preparing step %u '%s'", (unsigned)index, exec_step_name(step));
    out->catalogue = catalogue;
    out->load_ns += rondo__now_ns() - begin;
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------------- life */

static rondo_status exec_build(rondo_executable *executable) {
    const rondo_plan *plan = executable->plan;
    void *memory;
    if (rondo__plan_target_count(plan) != executable->target_count)
        return RONDO__FAIL(INVALID_ARGUMENT, LOADING,
                           "plan '%s' is for %u target%s ('%s'), %u device%s given: rondo_executable_create_on takes a "
                           "device for each",
                           plan->name, (unsigned)rondo__plan_target_count(plan), plan->target_count > 1 ? "s" : "",
                           plan->target, (unsigned)executable->target_count,
                           executable->target_count > 1 ? "s are" : " is");
    if (plan->target_count <= 1 && plan->segment_count > 1)
        return RONDO__FAIL(UNSUPPORTED, LOADING, "plan '%s' has %u segments: plans of more than one are not run yet",
                           plan->name, (unsigned)plan->segment_count);
    RONDO__TRY(rondo__plan_verify(plan, false));
    RONDO__TRY(rondo__allocate_array(&executable->allocator, plan->step_count, sizeof(rondo__exec_step), &memory));
    executable->steps = memory;
    for (uint32_t i = 0; i < plan->step_count; i++) RONDO__TRY(exec_check_step(executable, i));
    for (uint32_t t = 0; t < executable->target_count; t++) RONDO__TRY(exec_load_weights(executable, t));
    for (uint32_t i = 0; i < plan->step_count; i++) RONDO__TRY(exec_prepare(executable, i));
    return RONDO_OK;
}

rondo_status rondo__exec_allocate(const rondo__exec_memory *memory, uint64_t bytes, uint64_t *out_address) {
    const rondo_device_memory *source = &memory->source;
    if (!source->allocate) return rondo__memory_allocate(memory->device->memory, bytes, out_address);
    void *pointer = source->allocate(source->self, bytes);
    if (!pointer)
        return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "the program's own allocator has no %llu bytes of device memory",
                           (unsigned long long)bytes);
    *out_address = (uint64_t)(uintptr_t)pointer;
    return RONDO_OK;
}

void rondo__exec_free(const rondo__exec_memory *memory, uint64_t address, uint64_t bytes) {
    if (!address) return;
    if (memory->source.allocate) memory->source.release(memory->source.self, (void *)(uintptr_t)address, bytes);
    else RONDO__IGNORE(rondo__memory_free(memory->device->memory, address));
}

rondo_status rondo_executable_create(rondo_device *device, rondo_plan *plan, rondo_executable **out_executable) {
    return rondo__executable_create(&device, 1, plan, NULL, NULL, out_executable);
}

rondo_status rondo_executable_create_on(rondo_device *const *devices, uint32_t device_count, rondo_plan *plan,
                                        rondo_executable **out_executable) {
    return rondo__executable_create(devices, device_count, plan, NULL, NULL, out_executable);
}

static rondo_status exec_check_devices(rondo_device *const *devices, uint32_t device_count) {
    if (device_count > RONDO__PLAN_TARGETS_MAX)
        return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "%u devices: a plan has at most %u targets",
                           (unsigned)device_count, RONDO__PLAN_TARGETS_MAX);
    for (uint32_t i = 0; devices && i < device_count; i++)
        if (!devices[i]) devices = NULL;
    if (!devices || !device_count)
        return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "an executable needs a device, a plan and a place to be put");
    return RONDO_OK;
}

rondo_status rondo__executable_create(rondo_device *const *devices, uint32_t device_count, rondo_plan *plan,
                                      const rondo_device_memory *source, rondo__weights *weights,
                                      rondo_executable **out_executable) {
    void *memory;
    RONDO__TRY(exec_check_devices(devices, device_count));
    if (!plan || !out_executable)
        return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "an executable needs a device, a plan and a place to be put");
    rondo_device *device = devices[0];
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_executable), &memory));
    rondo_executable *executable = memory;
    rondo__ref_init(&executable->references);
    executable->allocator = device->allocator;
    executable->device = device;
    executable->plan = plan;
    executable->target_count = device_count;
    for (uint32_t i = 0; i < device_count; i++) {
        executable->targets[i].device = executable->targets[i].memory.device = devices[i];
        rondo_device_retain(devices[i]);
    }
    if (source) executable->targets[0].memory.source = *source;
    executable->shared = device_count == 1 ? weights : NULL;
    rondo__weights_retain(executable->shared);
    rondo_plan_retain(plan);
    rondo_status status = exec_build(executable);
    if (status) {
        rondo_executable_release(executable);
        return rondo__status_note(status, "executable of plan '%s' on device '%s:%d'", plan->name,
                                  device->properties.name, (int)device->properties.index);
    }
    *out_executable = executable;
    return RONDO_OK;
}

void rondo_executable_retain(rondo_executable *executable) {
    if (executable) rondo__ref_retain(&executable->references);
}

void rondo_executable_release(rondo_executable *executable) {
    if (!executable || !rondo__ref_release(&executable->references)) return;
    rondo_allocator allocator = executable->allocator;
    rondo_plan *plan = executable->plan;
    for (uint32_t i = 0; executable->steps && i < plan->step_count; i++) {
        const rondo__exec_step *step = &executable->steps[i];
        if (step->catalogue) step->catalogue->table->release(step->catalogue->self, step->kernel);
    }
    for (uint32_t i = 0; i < executable->block_count; i++)
        rondo__weights_give(executable->shared, executable->blocks[i]);
    rondo__free(&allocator, executable->blocks,
                ((size_t)plan->buffer_count + plan->step_count) * sizeof *executable->blocks);
    rondo__weights_release(executable->shared);
    rondo_device *devices[RONDO__PLAN_TARGETS_MAX];
    uint32_t device_count = executable->target_count;
    for (uint32_t i = 0; i < device_count; i++) {
        rondo__exec_target *target = &executable->targets[i];
        devices[i] = target->device;
        rondo__exec_free(&target->memory, target->weights, target->weights_bytes);
        rondo__free(&allocator, target->constants, plan->buffer_count * sizeof(uint64_t));
    }
    rondo__free(&allocator, executable->steps, plan->step_count * sizeof(rondo__exec_step));
    rondo__free(&allocator, executable, sizeof *executable);
    rondo_plan_release(plan);
    for (uint32_t i = 0; i < device_count; i++) rondo_device_release(devices[i]);
}
