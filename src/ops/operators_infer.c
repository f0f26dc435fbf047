/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registered operator answers before it runs: requests with their defaults, and the inference of its meta and of
 * its implementation, each held to the same rules. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ops/infer.h"
#include "ops/operators.h"

void rondo__operator_text(rondo_dtype dtype, int32_t rank, const int64_t *dims, char *buffer, size_t capacity) {
    int length = snprintf(buffer, capacity, "%s[", rondo_dtype_name(dtype));
    size_t used = length > 0 ? (size_t)length : 0;
    for (int32_t i = 0; i < rank && used < capacity; i++) {
        length = snprintf(buffer + used, capacity - used, "%s%lld", i ? "," : "", (long long)dims[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    if (used < capacity) (void)snprintf(buffer + used, capacity - used, "]");
}

static bool operator_has(const rondo_kernel_request *request, const char *name) {
    return rondo__ops_attribute_find(request, name) != NULL;
}

rondo_status rondo__operator_complete(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                      rondo_attribute *attributes, rondo_kernel_request *out_request) {
    uint32_t count = request->attribute_count;
    if (count > RONDO__OPERATOR_REQUEST_ATTRIBUTES - RONDO_OPERATOR_ATTRIBUTES_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "node '%s' (%s): %u attributes are too many",
                           rondo__ops_node_name(request), request->operator_name, count);
    count = 0;
    for (uint32_t i = 0; i < request->attribute_count; i++)
        if (strcmp(request->attributes[i].name, RONDO__OPERATOR_OWN) != 0 &&
            strcmp(request->attributes[i].name, RONDO__KERNEL_SIZES) != 0)
            attributes[count++] = request->attributes[i];
    for (uint32_t i = 0; i < entry->given.attribute_count; i++) {
        const rondo_operator_attribute *known = &entry->given.attributes[i];
        if (known->presence != RONDO_OPERATOR_ATTRIBUTE_DEFAULT || operator_has(request, known->attribute.name))
            continue;
        attributes[count++] = known->attribute;
    }
    *out_request = *request;
    out_request->attributes = attributes;
    out_request->attribute_count = count;
    return RONDO_OK;
}

/* What an answer must be, whoever gave it. */
static rondo_status operator_check_result(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                          uint32_t index, rondo_layer layer, const rondo_operator_result *result) {
    const rondo__ops_prototype *prototype = &entry->prototype;
    const char *node = rondo__ops_node_name(request);
    uint32_t at = index < prototype->output_count ? index : prototype->output_count - 1u;
    const rondo__ops_operand *output = &prototype->outputs[at];
    int64_t elements;
    if (result->dtype <= RONDO_DTYPE_UNDEFINED || result->dtype >= RONDO_DTYPE_COUNT ||
        !(output->types & 1u << result->dtype))
        return rondo__status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__,
                                  "node '%s' (%s): its %s gives output '%s' the type %s, which its schema does not",
                                  node, prototype->name, rondo_layer_name(layer), output->name,
                                  rondo_dtype_name(result->dtype));
    if (result->rank < 0 || result->rank > RONDO_RANK_MAX)
        return rondo__status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__,
                                  "node '%s' (%s): its %s gives output '%s' no shape of rank 0 to %d", node,
                                  prototype->name, rondo_layer_name(layer), output->name, RONDO_RANK_MAX);
    for (int32_t i = 0; i < result->rank; i++)
        if (result->dims[i] == -1 && !entry->implementation.bound)
            return rondo__status_make(
                RONDO_CODE_UNSUPPORTED, layer, __FILE__, __LINE__,
                "node '%s' (%s): the size of axis %d of output '%s' depends on data, and its implementation has no "
                "bound for it",
                node, prototype->name, i, output->name);
    int64_t dims[RONDO_RANK_MAX];
    for (int32_t i = 0; i < result->rank; i++) dims[i] = result->dims[i] == -1 ? 0 : result->dims[i];
    if (!rondo__checked_elements(result->rank, dims, &elements))
        return rondo__status_make(RONDO_CODE_INVALID_ARGUMENT, layer, __FILE__, __LINE__,
                                  "node '%s' (%s): its %s gives output '%s' a shape that cannot be counted", node,
                                  prototype->name, rondo_layer_name(layer), output->name);
    return RONDO_OK;
}

/* A status of a shared library points to a file's name in it, which must not outlive it: so it is always made anew. */
rondo_status rondo__operator_refusal(rondo_status why, const rondo__operator_entry *entry,
                                     const rondo_kernel_request *request, rondo_layer layer) {
    rondo_status status = rondo__status_make(
        rondo_status_code(why), layer, __FILE__, __LINE__, "node '%s' (%s): its %s refuses these inputs: %s",
        rondo__ops_node_name(request), entry->prototype.name, rondo_layer_name(layer), rondo_status_message(why));
    for (size_t i = 0; i < rondo_status_note_count(why); i++)
        status = rondo__status_note(status, "%s", rondo_status_note(why, i));
    rondo_status_release(why);
    return status;
}

rondo_status rondo__operator_infer(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                   bool by_meta, rondo_operator_result *results) {
    bool refused = false;
    return rondo__operator_infer_told(entry, request, by_meta, results, &refused);
}

rondo_status rondo__operator_infer_told(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                        bool by_meta, rondo_operator_result *results, bool *out_refused) {
    rondo_attribute attributes[RONDO__OPERATOR_REQUEST_ATTRIBUTES];
    rondo_kernel_request complete;
    void *user = entry->given.user;
    rondo_layer layer = by_meta ? RONDO_LAYER_META : RONDO_LAYER_IMPLEMENTATION;
    if (request->output_count > 2u * RONDO_OPERATOR_OPERANDS_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, PROTOTYPE, "node '%s' (%s): %u outputs are too many",
                           rondo__ops_node_name(request), entry->prototype.name, request->output_count);
    RONDO__TRY(rondo__operator_complete(entry, request, attributes, &complete));
    memset(results, 0, request->output_count * sizeof *results);
    for (uint32_t i = 0; i < request->output_count; i++) results[i].rank = -1;
    rondo_status status;
    if (by_meta) {
        status = entry->given.meta(&rondo__operator_api, user, &complete, results);
    } else {
        status = entry->implementation.infer_shape(&rondo__operator_api, user, &complete, results);
        if (!status) status = entry->implementation.infer_dtype(&rondo__operator_api, user, &complete, results);
    }
    *out_refused = status != RONDO_OK;
    if (status) return rondo__operator_refusal(status, entry, request, layer);
    for (uint32_t i = 0; i < request->output_count; i++)
        RONDO__TRY(operator_check_result(entry, request, i, layer, &results[i]));
    return RONDO_OK;
}

static bool operator_is_bound(const rondo_operator_result *result, const rondo_operator_result *bound) {
    int64_t elements;
    bool fits = result->dtype == bound->dtype && result->rank == bound->rank;
    for (int32_t i = 0; fits && i < result->rank; i++)
        fits = result->dims[i] == -1 ? bound->dims[i] >= 0 : bound->dims[i] == result->dims[i];
    return fits && rondo__checked_elements(bound->rank, bound->dims, &elements);
}

rondo_status rondo__operator_bound(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                   rondo_operator_result *results) {
    rondo_attribute attributes[RONDO__OPERATOR_REQUEST_ATTRIBUTES];
    rondo_operator_result bounds[2u * RONDO_OPERATOR_OPERANDS_MAX];
    rondo_kernel_request complete;
    RONDO__TRY(rondo__operator_complete(entry, request, attributes, &complete));
    memcpy(bounds, results, request->output_count * sizeof *bounds);
    rondo_status status = entry->implementation.bound(&rondo__operator_api, entry->given.user, &complete, bounds);
    if (status) {
        status = rondo__operator_refusal(status, entry, request, RONDO_LAYER_IMPLEMENTATION);
        return rondo__status_note(status, "its meta accepts them: there must be a bound for what it accepts");
    }
    for (uint32_t i = 0; i < request->output_count; i++) {
        if (operator_is_bound(&results[i], &bounds[i])) continue;
        char meta[256], own[256];
        rondo__operator_text(results[i].dtype, results[i].rank, results[i].dims, meta, sizeof meta);
        rondo__operator_text(bounds[i].dtype, bounds[i].rank, bounds[i].dims, own, sizeof own);
        return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION,
                           "node '%s' (%s): its bound for output %u is %s, its meta says %s: only what is -1 there may "
                           "differ, and must be a size",
                           rondo__ops_node_name(request), entry->prototype.name, i, own, meta);
    }
    memcpy(results, bounds, request->output_count * sizeof *bounds);
    return RONDO_OK;
}
