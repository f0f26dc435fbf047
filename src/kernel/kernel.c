/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking a request up over several catalogues, and running the kernel that comes of it on host memory.
 *
 * A refusal is data: when every catalogue refuses, the caller gets each one's reason. Any other failure (no memory, say)
 * is not a refusal and ends the search, so that a slower kernel is never picked for want of a few bytes. */
#include "kernel/kernel.h"

#include <string.h>

#include "base/checked.h"

#define RONDO__KERNEL_ALIGNMENT 64u

static rondo_status kernel_refused(const rondo_kernel_request *request, uint32_t asked) {
    const char *why = asked ? "no kernel catalogue accepts it" : "there is no kernel catalogue to ask";
    if (!request->node_name) {
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "operator '%s': %s", request->operator_name, why);
    }
    return RONDO__FAIL(UNSUPPORTED, KERNEL, "node '%s', operator '%s': %s", request->node_name, request->operator_name,
                       why);
}

/* Asks the catalogues that have all of `flags`, in order. */
static rondo_status kernel_find_with(const rondo__kernel_set *set, const rondo_kernel_request *request, uint32_t flags,
                                     rondo_catalogue *out_catalogue, rondo_kernel_facts *out_facts) {
    rondo_status reasons[RONDO__KERNEL_SET_MAX];
    const char *names[RONDO__KERNEL_SET_MAX];
    uint32_t asked = 0;
    rondo_status status = RONDO_OK;
    bool found = false;
    if (!request || request->struct_size < sizeof *request || !request->operator_name) {
        return RONDO__FAIL(INVALID_ARGUMENT, KERNEL, "a kernel request needs its struct_size and an operator name");
    }
    for (uint32_t i = 0; i < set->count && !found && !status; i++) {
        const rondo_catalogue *catalogue = &set->catalogues[i];
        rondo_kernel_facts facts = RONDO_KERNEL_FACTS_INIT;
        if ((catalogue->table->flags & flags) != flags) continue;
        rondo_status reason = catalogue->table->find(catalogue->self, request, &facts);
        if (!reason) {
            *out_catalogue = *catalogue;
            *out_facts = facts;
            found = true;
        } else if (rondo_status_code(reason) == RONDO_CODE_UNSUPPORTED) {
            reasons[asked] = reason;
            names[asked++] = catalogue->table->name;
        } else {
            status = rondo__status_note(reason, "asking catalogue '%s' for operator '%s'", catalogue->table->name,
                                        request->operator_name);
        }
    }
    if (!found && !status) {
        status = kernel_refused(request, asked);
        for (uint32_t i = 0; i < asked; i++) {
            status = rondo__status_note(status, "catalogue '%s': %s", names[i], rondo_status_message(reasons[i]));
        }
    }
    for (uint32_t i = 0; i < asked; i++) rondo_status_release(reasons[i]);
    return status;
}

rondo_status rondo__kernel_find(const rondo__kernel_set *set, const rondo_kernel_request *request,
                                rondo_catalogue *out_catalogue, rondo_kernel_facts *out_facts) {
    return kernel_find_with(set, request, 0, out_catalogue, out_facts);
}

const rondo_catalogue *rondo__kernel_set_named(const rondo__kernel_set *set, const char *name) {
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->catalogues[i].table->name, name) == 0) return &set->catalogues[i];
    }
    return NULL;
}

/* What one run needs beside the operands. */
typedef struct kernel_workspace {
    void *words, *scratch, *packed;
    size_t words_bytes, scratch_bytes, packed_bytes;
} kernel_workspace;

static void kernel_workspace_free(kernel_workspace *workspace, const rondo_allocator *allocator) {
    rondo__free(allocator, workspace->words, workspace->words_bytes);
    rondo__free_aligned(allocator, workspace->scratch, workspace->scratch_bytes, RONDO__KERNEL_ALIGNMENT);
    rondo__free_aligned(allocator, workspace->packed, workspace->packed_bytes, RONDO__KERNEL_ALIGNMENT);
}

static rondo_status kernel_workspace_make(kernel_workspace *workspace, const rondo_allocator *allocator,
                                          const rondo_kernel_request *request, const rondo_kernel_facts *facts) {
    uint64_t words = (uint64_t)request->input_count + request->output_count + 2u;
    if (words > SIZE_MAX / sizeof(uint64_t) || facts->scratch_bytes > SIZE_MAX || facts->packed_bytes > SIZE_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, KERNEL, "operator '%s' needs more memory than there are addresses",
                           request->operator_name);
    }
    workspace->words_bytes = (size_t)words * sizeof(uint64_t);
    workspace->scratch_bytes = (size_t)facts->scratch_bytes;
    workspace->packed_bytes = (size_t)facts->packed_bytes;
    RONDO__TRY(rondo__allocate_zeroed(allocator, workspace->words_bytes, &workspace->words));
    RONDO__TRY(
        rondo__allocate_aligned(allocator, workspace->scratch_bytes, RONDO__KERNEL_ALIGNMENT, &workspace->scratch));
    return rondo__allocate_aligned(allocator, workspace->packed_bytes, RONDO__KERNEL_ALIGNMENT, &workspace->packed);
}

static void kernel_fill_words(const kernel_workspace *workspace, const rondo_kernel_request *request,
                              const rondo_kernel_facts *facts, const void *const *inputs, void *const *outputs) {
    uint64_t *word = workspace->words;
    for (uint32_t i = 0; i < request->input_count; i++) {
        bool absorbed = i < 64u && ((facts->absorbed_inputs >> i) & 1u) != 0;
        *word++ = absorbed ? 0u : (uint64_t)(uintptr_t)inputs[i];
    }
    for (uint32_t i = 0; i < request->output_count; i++) *word++ = (uint64_t)(uintptr_t)outputs[i];
    if (workspace->scratch_bytes) *word++ = (uint64_t)(uintptr_t)workspace->scratch;
    if (workspace->packed_bytes) *word = (uint64_t)(uintptr_t)workspace->packed;
}

static rondo_status kernel_run_prepared(const rondo_catalogue *catalogue, const rondo_kernel_request *request,
                                        const kernel_workspace *workspace) {
    rondo_kernel kernel = {0};
    RONDO__TRY(catalogue->table->prepare(catalogue->self, request, &kernel));
    int32_t failed = kernel.function(kernel.context, workspace->words);
    catalogue->table->release(catalogue->self, kernel);
    if (!failed) return RONDO_OK;
    return RONDO__FAIL(KERNEL_FAILED, KERNEL, "node '%s': kernel '%s' of catalogue '%s' failed with reason %d",
                       request->node_name ? request->node_name : "", request->operator_name, catalogue->table->name,
                       (int)failed);
}

rondo_status rondo__kernel_run(const rondo__kernel_set *set, const rondo_allocator *allocator,
                               const rondo_kernel_request *request, const void *const *inputs, void *const *outputs) {
    rondo_catalogue catalogue;
    rondo_kernel_facts facts;
    kernel_workspace workspace = {0};
    RONDO__TRY(kernel_find_with(set, request, RONDO_CATALOGUE_HOST, &catalogue, &facts));
    rondo_status status = kernel_workspace_make(&workspace, allocator, request, &facts);
    if (!status && facts.packed_bytes && !catalogue.table->pack) {
        status = RONDO__FAIL(INTERNAL, KERNEL, "catalogue '%s' asks for a packed block but has no pack entry",
                             catalogue.table->name);
    }
    if (!status && facts.packed_bytes) status = catalogue.table->pack(catalogue.self, request, workspace.packed);
    if (!status) {
        kernel_fill_words(&workspace, request, &facts, inputs, outputs);
        status = kernel_run_prepared(&catalogue, request, &workspace);
    }
    kernel_workspace_free(&workspace, allocator);
    return status;
}
