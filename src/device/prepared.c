/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that an application asks a device for. The device remembers which catalogue made each, because the kernel
 * itself does not say. */
#include "device/device.h"

static rondo_status prepared_make(rondo_device *device, const rondo_catalogue *catalogue,
                                  const rondo_kernel_request *request, rondo_kernel *out_kernel) {
    rondo__prepared_kernel prepared = {.catalogue = *catalogue};
    RONDO__TRY_NOTE(catalogue->table->prepare(catalogue->self, request, &prepared.kernel), "catalogue '%s'",
                    catalogue->table->name);
    rondo__mutex_lock(&device->mutex);
    rondo_status status = rondo__buffer_append(&device->prepared, &prepared, 1);
    rondo__mutex_unlock(&device->mutex);
    if (status) {
        catalogue->table->release(catalogue->self, prepared.kernel);
        return status;
    }
    *out_kernel = prepared.kernel;
    return RONDO_OK;
}

/* The catalogue's kernels that take inputs and outputs alone; those with a block of their own belong into plans. */
static rondo_status prepared_ask(const rondo_catalogue *catalogue, const rondo_kernel_request *request) {
    rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
    RONDO__TRY(catalogue->table->find(catalogue->self, request, &facts));
    if (!facts.scratch_bytes && !facts.packed_bytes && !facts.absorbed_inputs) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, KERNEL, "its kernel for '%s' needs a scratch or packed block: use a plan",
                       request->operator_name);
}

static rondo_status prepared_search(rondo_device *device, const rondo_kernel_request *request,
                                    rondo_kernel *out_kernel) {
    rondo_status reasons[RONDO__KERNEL_SET_MAX];
    uint32_t asked = 0;
    rondo_status status = RONDO_OK;
    bool found = false;
    for (uint32_t i = 0; i < device->kernels.count && !found && !status; i++) {
        const rondo_catalogue *catalogue = &device->kernels.catalogues[i];
        rondo_status reason = prepared_ask(catalogue, request);
        if (!reason) {
            status = prepared_make(device, catalogue, request, out_kernel);
            found = true;
        } else if (rondo_status_code(reason) == RONDO_CODE_UNSUPPORTED) {
            reasons[asked++] = reason;
        } else {
            status = rondo__status_note(reason, "catalogue '%s'", catalogue->table->name);
        }
    }
    if (!found && !status) {
        status = RONDO__FAIL(UNSUPPORTED, KERNEL, "no kernel catalogue of device '%s' offers '%s' in this form",
                             device->properties.name, request->operator_name);
        for (uint32_t i = 0; i < asked; i++) {
            status = rondo__status_note(status, "catalogue '%s': %s", device->kernels.catalogues[i].table->name,
                                        rondo_status_message(reasons[i]));
        }
    }
    for (uint32_t i = 0; i < asked; i++) rondo_status_release(reasons[i]);
    return status;
}

static rondo_status prepared_check_shape(const char *operator_name, uint32_t input_count, int32_t rank,
                                         const int64_t *shape) {
    if (input_count == 0 || input_count >= RONDO_ARGUMENT_MAX) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "operator '%s': %u inputs are not from 1 to %u", operator_name,
                           input_count, RONDO_ARGUMENT_MAX - 1u);
    }
    if (rank < 0 || rank > RONDO_RANK_MAX || (rank && !shape)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "operator '%s': a shape has from 0 to %d sizes", operator_name,
                           RONDO_RANK_MAX);
    }
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "operator '%s': size %d of the shape is negative",
                               operator_name, (int)i);
        }
    }
    return RONDO_OK;
}

rondo_status rondo_kernel_prepare(rondo_device *device, const char *operator_name, uint32_t input_count,
                                  rondo_dtype dtype, int32_t rank, const int64_t *shape, rondo_kernel *out_kernel) {
    rondo_operand operands[RONDO_ARGUMENT_MAX];
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    if (!device || !operator_name || !out_kernel) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a kernel needs a device, an operator's name and a place for it");
    }
    RONDO__TRY(prepared_check_shape(operator_name, input_count, rank, shape));
    for (uint32_t i = 0; i <= input_count; i++) {
        operands[i] = (rondo_operand){.dtype = dtype, .rank = rank, .dims = shape, .format = RONDO_FORMAT_ND};
    }
    request.operator_name = operator_name;
    request.inputs = operands;
    request.input_count = input_count;
    request.outputs = operands + input_count;
    request.output_count = 1;
    return prepared_search(device, &request, out_kernel);
}

rondo_status rondo_kernel_find(rondo_device *device, const char *name, rondo_kernel *out_kernel) {
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    if (!device || !name || !out_kernel) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a kernel needs a device, a name and a place for it");
    }
    request.operator_name = name;
    return prepared_search(device, &request, out_kernel);
}

/* From the newest on: kernels tend to go in the reverse order of their coming. Equal ones are as good as each other. */
void rondo_kernel_release(rondo_device *device, rondo_kernel kernel) {
    rondo__prepared_kernel found = {0};
    if (!device || (!kernel.function && !kernel.context)) return;
    rondo__mutex_lock(&device->mutex);
    for (size_t i = device->prepared.count; i > 0 && !found.catalogue.table; i--) {
        rondo__prepared_kernel *prepared = RONDO__BUFFER_AT(&device->prepared, rondo__prepared_kernel, i - 1u);
        if (prepared->kernel.function != kernel.function || prepared->kernel.context != kernel.context) continue;
        found = *prepared;
        *prepared = *RONDO__BUFFER_AT(&device->prepared, rondo__prepared_kernel, device->prepared.count - 1u);
        device->prepared.count--;
    }
    rondo__mutex_unlock(&device->mutex);
    if (found.catalogue.table) found.catalogue.table->release(found.catalogue.self, kernel);
    else rondo__log_write(device->log, RONDO_LOG_WARNING, "rondo_kernel_release: the kernel is none of this device's");
}

void rondo__prepared_release_all(rondo_device *device) {
    for (size_t i = device->prepared.count; i > 0; i--) {
        const rondo__prepared_kernel *prepared = RONDO__BUFFER_AT(&device->prepared, rondo__prepared_kernel, i - 1u);
        prepared->catalogue.table->release(prepared->catalogue.self, prepared->kernel);
    }
    device->prepared.count = 0;
}
