/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the catalogues: who runs a node, and whether a fused node is worth having. */
#include <string.h>

#include "compile/pass.h"

/* Whether the name stands in a list with commas. */
static bool choose_lists(const char *list, const char *name) {
    size_t length = strlen(name);
    while (*list) {
        size_t item = strcspn(list, ",");
        if (item == length && strncmp(list, name, length) == 0) return true;
        list += item + (list[item] == ',');
    }
    return false;
}

rondo_status rondo__compile_choose_on(rondo__compile_state *state, rondo__compile_request *request,
                                      const rondo__ir_node_data *node, uint32_t target, bool anything,
                                      rondo__compile_choice *out_choice) {
    const rondo__target *on = &state->targets->at[target];
    if (!anything && on->operators && !choose_lists(on->operators, node->operator_name)) {
        return RONDO__FAIL(UNSUPPORTED, KERNEL, "node '%s', operator '%s': target '%s' is not meant for it", node->name,
                           node->operator_name, on->text);
    }
    RONDO__TRY(rondo__compile_request_make(request, state->graph, node));
    out_choice->facts = (rondo_kernel_facts)RONDO_KERNEL_FACTS_INIT;
    RONDO__TRY(rondo__kernel_find(&on->kernels, &request->request, &out_choice->catalogue, &out_choice->facts));
    out_choice->target = target;
    out_choice->preference = target * RONDO__KERNEL_SET_MAX;
    for (uint32_t i = 0; i < on->kernels.count; i++) {
        if (on->kernels.catalogues[i].table == out_choice->catalogue.table) out_choice->preference += i;
    }
    return RONDO_OK;
}

/* What all targets said. */
static rondo_status choose_refused(const rondo__compile_state *state, const rondo__ir_node_data *node,
                                   rondo_status *reasons) {
    rondo_status status = RONDO__FAIL(UNSUPPORTED, KERNEL, "node '%s', operator '%s': none of the %u targets has it",
                                      node->name, node->operator_name, state->targets->count);
    for (uint32_t t = 0; t < state->targets->count; t++) {
        const char *text = state->targets->at[t].text;
        status = rondo__status_note(status, "target %u '%s': %s", t, text, rondo_status_message(reasons[t]));
        for (size_t i = 0; i < rondo_status_note_count(reasons[t]); i++) {
            status = rondo__status_note(status, "target %u '%s': %s", t, text, rondo_status_note(reasons[t], i));
        }
    }
    return status;
}

rondo_status rondo__compile_choose(rondo__compile_state *state, rondo__compile_request *request,
                                   const rondo__ir_node_data *node, rondo__compile_choice *out_choice) {
    rondo_status reasons[RONDO__PLAN_TARGETS_MAX], status = RONDO_OK;
    uint32_t asked = 0;
    if (state->targets->count == 1) return rondo__compile_choose_on(state, request, node, 0, false, out_choice);
    for (; asked < state->targets->count; asked++) {
        status = rondo__compile_choose_on(state, request, node, asked, false, out_choice);
        if (rondo_status_code(status) != RONDO_CODE_UNSUPPORTED) break;
        reasons[asked] = status;
    }
    if (asked == state->targets->count) status = choose_refused(state, node, reasons);
    while (asked > 0) rondo_status_release(reasons[--asked]);
    return status;
}

rondo_status rondo__compile_prefers(rondo__compile_state *state, rondo__compile_request *request,
                                    const rondo__ir_node_data *before, const rondo__ir_node_data *after,
                                    bool *out_prefers) {
    rondo__compile_choice now, then;
    *out_prefers = false;
    rondo_status status = rondo__compile_choose(state, request, after, &then);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        rondo_status_release(status);
        return RONDO_OK;
    }
    RONDO__TRY(status);
    status = rondo__compile_choose(state, request, before, &now);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        rondo_status_release(status);
        now.preference = UINT32_MAX;
        status = RONDO_OK;
    }
    RONDO__TRY(status);
    *out_prefers = then.preference <= now.preference;
    return RONDO_OK;
}

rondo_status rondo__compile_absorb(rondo__compile_state *state, rondo_ir_node node, rondo_ir_node absorbed,
                                   const rondo__ir_node_data *fused) {
    rondo_ir_graph *graph = state->graph;
    rondo__ir_node_data *kept = rondo__ir_node_at(graph, node);
    rondo__ir_node_data *gone = rondo__ir_node_at(graph, absorbed);
    void *inputs = NULL, *attributes = NULL;
    RONDO__TRY(rondo__arena_copy(&graph->arena, fused->inputs, fused->input_count * sizeof *fused->inputs, &inputs));
    RONDO__TRY(
        rondo__arena_allocate_array(&graph->arena, fused->attribute_count, sizeof(rondo_attribute), &attributes));
    for (uint32_t i = 0; i < fused->attribute_count; i++) {
        RONDO__TRY(rondo__ir_attribute_copy(graph, &fused->attributes[i], (rondo_attribute *)attributes + i));
    }
    rondo_ir_value output = gone->outputs[0];
    rondo__ir_value_at(graph, kept->outputs[0])->producer = RONDO_IR_NONE;
    rondo__ir_value_at(graph, output)->producer = node;
    rondo__ir_value_at(graph, output)->producer_output = 0;
    kept->inputs = inputs;
    kept->input_count = fused->input_count;
    kept->attributes = attributes;
    kept->attribute_count = fused->attribute_count;
    kept->outputs[0] = output;
    gone->dead = true;
    return RONDO_OK;
}
