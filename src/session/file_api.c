/* SPDX-License-Identifier: Apache-2.0
 *
 * The public way to offline files: the catalogues of the instance pack, the artifact room writes and reads. */
#include <rondo/file.h>
#include <string.h>

#include "artifact/artifact.h"
#include "base/checked.h"
#include "base/instance.h"
#include "base/sized.h"
#include "device/device.h"
#include "ops/operators.h"
#include "session/session.h"

#define FILE_API_ALIGNMENT 64u

/* The two rooms do not know each other, and mean the same attribute. */
_Static_assert(sizeof RONDO__OPERATOR_OWN == sizeof RONDO__PLAN_OWN, "one name for an operator's own bytes");

/* ---------------------------------------------------------------------------------------------------------- write */

/* What a custom operator wants to find again, with a zero behind that is not counted. */
static rondo_status file_api_own(rondo_instance *instance, const rondo__plan_step *step, rondo__buffer *bytes,
                                 rondo__artifact_block *out_block) {
    rondo_kernel_request request;
    rondo_operand inputs[RONDO_ARGUMENT_MAX], outputs[RONDO_ARGUMENT_MAX];
    rondo__plan_request(step, inputs, outputs, &request);
    RONDO__TRY(rondo__operator_own(rondo__instance_base_of(instance)->operators, &request, bytes));
    if (!bytes->count) return RONDO_OK;
    out_block->own_bytes = bytes->count;
    RONDO__TRY(rondo__buffer_append(bytes, "", 1));
    out_block->own = bytes->data;
    return RONDO_OK;
}

static rondo_status file_api_pack(rondo_instance *instance, const rondo_plan *plan, uint32_t index,
                                  rondo__artifact_block *out_block, void **out_memory) {
    const rondo__plan_step *step = &plan->steps[index];
    rondo_catalogue catalogue;
    rondo_kernel_request request;
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    rondo_operand inputs[RONDO_ARGUMENT_MAX], outputs[RONDO_ARGUMENT_MAX];
    RONDO__TRY_NOTE(rondo__registry_catalogue(rondo__instance_registry(instance), step->catalogue, &catalogue),
                    "step %u '%s' of the plan wants it", index, step->node_name);
    rondo__plan_request(step, inputs, outputs, &request);
    RONDO__TRY_NOTE(catalogue.table->find(catalogue.self, &request, &facts), "step %u '%s' of the plan", index,
                    step->node_name);
    if (facts.packed_bytes != step->packed_bytes || !catalogue.table->pack)
        return RONDO__FAIL(UNSUPPORTED, KERNEL,
                           "step %u '%s': catalogue '%s' packs it otherwise here: compile again on this machine", index,
                           step->node_name, step->catalogue);
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    RONDO__TRY(rondo__allocate_aligned(allocator, (size_t)step->packed_bytes, FILE_API_ALIGNMENT, out_memory));
    memset(*out_memory, 0, (size_t)step->packed_bytes); /* what packing leaves out must not differ from run to run */
    RONDO__TRY_NOTE(catalogue.table->pack(catalogue.self, &request, *out_memory), "while packing step %u '%s'", index,
                    step->node_name);
    out_block->data = *out_memory;
    out_block->kernel_set = catalogue.table->kernel_set;
    return RONDO_OK;
}

rondo_status rondo_plan_write(rondo_instance *instance, const rondo_plan *plan, const char *path) {
    return rondo__plan_write_keyed(instance, plan, (const uint64_t[2]){0, 0}, path);
}

rondo_status rondo__plan_write_keyed(rondo_instance *instance, const rondo_plan *plan, const uint64_t key[2],
                                     const char *path) {
    if (!instance || !plan || !path)
        return RONDO__FAIL(INVALID_ARGUMENT, FILE, "rondo_plan_write: instance, plan or path is null");
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    void *memory = NULL, *owned_memory = NULL, *own_memory = NULL;
    RONDO__TRY(rondo__plan_verify(plan, false));
    size_t count = plan->step_count;
    RONDO__TRY(rondo__allocate_array(allocator, count, sizeof(rondo__artifact_block), &memory));
    rondo_status status = rondo__allocate_array(allocator, count, sizeof(void *), &owned_memory);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof(rondo__buffer), &own_memory);
    rondo__artifact_block *blocks = memory;
    void **owned = owned_memory;
    rondo__buffer *own = own_memory;
    for (uint32_t i = 0; own && i < count; i++) rondo__buffer_init(&own[i], allocator, 1, SIZE_MAX / 2);
    for (uint32_t i = 0; i < count && !status; i++) {
        if (plan->steps[i].packed_bytes) status = file_api_pack(instance, plan, i, &blocks[i], &owned[i]);
        if (!status && strcmp(plan->steps[i].catalogue, RONDO__KERNEL_REGISTERED) == 0)
            status = file_api_own(instance, &plan->steps[i], &own[i], &blocks[i]);
    }
    if (!status) status = rondo__artifact_write_keyed(allocator, plan, blocks, key, path);
    for (uint32_t i = 0; owned && i < count; i++)
        rondo__free_aligned(allocator, owned[i], (size_t)plan->steps[i].packed_bytes, FILE_API_ALIGNMENT);
    for (uint32_t i = 0; own && i < count; i++) rondo__buffer_deinit(&own[i]);
    rondo__free(allocator, own, count * sizeof(rondo__buffer));
    rondo__free(allocator, owned, count * sizeof(void *));
    rondo__free(allocator, blocks, count * sizeof(rondo__artifact_block));
    return status;
}

rondo_status rondo_plan_open(rondo_instance *instance, const char *path, rondo_plan **out_plan) {
    if (!instance || !path || !out_plan)
        return RONDO__FAIL(INVALID_ARGUMENT, FILE, "rondo_plan_open: instance, path or out_plan is null");
    return rondo__artifact_open(&rondo__instance_base_of(instance)->allocator, path, out_plan);
}

/* --------------------------------------------------------------------------------------------------------- inputs */

const void *rondo_plan_guard(const rondo_plan *plan, uint32_t index) {
    for (uint32_t i = 0; plan && i < plan->guard_count; i++)
        if (plan->guards[i].input == index && plan->guards[i].has_value) return plan->guards[i].value;
    return NULL;
}

rondo_status rondo_plan_check_input(const rondo_plan *plan, uint32_t index, const rondo_tensor_view *value) {
    if (!plan || !value) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_plan_check_input: plan or value is null");
    if (index >= plan->input_count)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input %u does not exist: the plan has %u", index, plan->input_count);
    const rondo__plan_port *port = &plan->inputs[index];
    if (value->dtype != port->dtype)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' is %s; the plan was made for %s", port->name,
                           rondo_dtype_name(value->dtype), rondo_dtype_name(port->dtype));
    if (value->rank != port->rank)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has rank %d; the plan was made for %d", port->name,
                           (int)value->rank, (int)port->rank);
    for (int32_t d = 0; d < port->rank; d++) {
        if (value->shape[d] != port->dims[d])
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has %lld at axis %d; the plan was made for %lld",
                               port->name, (long long)value->shape[d], (int)d, (long long)port->dims[d]);
    }
    const void *guard = rondo_plan_guard(plan, index);
    if (!guard || !port->bytes) return RONDO_OK;
    if (!value->data || !rondo__session_is_compact(value))
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value of input '%s' must be known, as compact host memory",
                           port->name);
    if (memcmp(guard, (const uint8_t *)value->data + value->byte_offset, (size_t)port->bytes) != 0)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "input '%s' has another value than the plan was made for: compile for this one", port->name);
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- information */

static rondo_status file_api_of(const rondo_plan *plan, const char *what, const rondo__artifact **out_file) {
    if (!plan) return RONDO__FAIL(INVALID_ARGUMENT, FILE, "%s: plan is null", what);
    if (!plan->file) return RONDO__FAIL(INVALID_STATE, FILE, "%s: plan '%s' comes from no file", what, plan->name);
    *out_file = plan->file;
    return RONDO_OK;
}

rondo_status rondo_plan_get_file_info(const rondo_plan *plan, rondo_plan_file_info *out_info) {
    const rondo__artifact *file;
    RONDO__TRY(file_api_of(plan, "rondo_plan_get_file_info", &file));
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_FILE, "rondo_plan_file_info", out_info));
    rondo_plan_file_info info = {sizeof info, file->major,  file->minor, file->part_count,
                                 file->bytes, file->writer, plan->target};
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

rondo_status rondo_plan_get_partition(const rondo_plan *plan, uint32_t index, rondo_plan_partition *out_partition) {
    const rondo__artifact *file;
    RONDO__TRY(file_api_of(plan, "rondo_plan_get_partition", &file));
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_FILE, "rondo_plan_partition", out_partition));
    if (index >= file->part_count)
        return RONDO__FAIL(OUT_OF_RANGE, FILE, "partition %u does not exist: the file has %u", index, file->part_count);
    const rondo__artifact_part *part = &file->parts[index];
    rondo_plan_partition partition = {sizeof partition, part->kind, part->bytes, part->checksum, part->tag};
    rondo__sized_write(&partition, sizeof partition, out_partition);
    return RONDO_OK;
}
