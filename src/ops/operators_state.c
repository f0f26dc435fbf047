/* SPDX-License-Identifier: Apache-2.0
 *
 * What an implementation makes for a node before it runs: compiled, or from the bytes that an offline file brings. */
#include <string.h>

#include "ops/infer.h"
#include "ops/operators.h"

/* An implementation that succeeds with nothing has no state, which is its right. */
rondo_status rondo__operator_state_make(const rondo__operator_entry *entry, const rondo_kernel_request *request,
                                        void **out_state) {
    const rondo_operator_implementation *implementation = &entry->implementation;
    rondo_attribute attributes[RONDO__OPERATOR_REQUEST_ATTRIBUTES];
    rondo_kernel_request complete;
    const rondo_attribute *own = rondo__ops_attribute_find(request, RONDO__OPERATOR_OWN);
    *out_state = NULL;
    if (!implementation->compile) return RONDO_OK;
    RONDO__TRY(rondo__operator_complete(entry, request, attributes, &complete));
    rondo_status status = own && own->kind == RONDO_ATTRIBUTE_STRING && implementation->deserialize
                              ? implementation->deserialize(&rondo__operator_api, entry->given.user, &complete,
                                                            own->value.s.data, own->value.s.size, out_state)
                              : implementation->compile(&rondo__operator_api, entry->given.user, &complete, out_state);
    if (!status) return RONDO_OK;
    *out_state = NULL;
    status = rondo__operator_refusal(status, entry, request, RONDO_LAYER_IMPLEMENTATION);
    return rondo__status_note(status, own ? "while it read its bytes in the offline file" : "while it compiled");
}

void rondo__operator_state_release(const rondo__operator_entry *entry, void *state) {
    if (entry && state && entry->implementation.release) entry->implementation.release(entry->given.user, state);
}

static rondo_status operator_append(void *sink, const void *data, uint64_t bytes) {
    if (bytes && !data) return RONDO__FAIL(INVALID_ARGUMENT, IMPLEMENTATION, "serialize writes bytes that are null");
    if (bytes > SIZE_MAX / 2)
        return RONDO__FAIL(OUT_OF_RANGE, IMPLEMENTATION, "serialize writes more than a file holds");
    return bytes ? rondo__buffer_append(sink, data, (size_t)bytes) : RONDO_OK;
}

rondo_status rondo__operator_own(rondo__shared *operators, const rondo_kernel_request *request, rondo__buffer *bytes) {
    const rondo__operator_entry *entry =
        operators ? rondo__operators_find((rondo__operators *)(void *)operators, request->operator_name) : NULL;
    void *state = NULL;
    if (!entry || !entry->implementation.serialize || rondo__ops_attribute_find(request, RONDO__OPERATOR_OWN))
        return RONDO_OK;
    RONDO__TRY(rondo__operator_state_make(entry, request, &state));
    rondo_status status =
        entry->implementation.serialize(&rondo__operator_api, entry->given.user, state, operator_append, bytes);
    rondo__operator_state_release(entry, state);
    if (!status) return RONDO_OK;
    status = rondo__operator_refusal(status, entry, request, RONDO_LAYER_IMPLEMENTATION);
    return rondo__status_note(status, "while it wrote its bytes into the offline file");
}
