/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs whose outputs are as the data makes them: on host tensors, and on values of any kind. */
#include <inttypes.h>
#include <string.h>

#include "ir/ir.h"
#include "session/region.h"

void rondo__session_forget_lent(const rondo_session *session, rondo__session_graph *graph) {
    if (!graph->lent) return;
    rondo__values_release(graph->lent, graph->graph->outputs.count);
    rondo__free(&session->allocator, graph->lent, graph->graph->outputs.count * sizeof(rondo_value *));
    graph->lent = NULL;
}

static const char *run_values_output_name(const rondo__session_graph *graph, uint32_t index) {
    return *RONDO__BUFFER_AT(&graph->graph->output_names, const char *, index);
}

/* ----------------------------------------------------------------------------------------------------- host tensors */

/* Memory of the caller's has to be what came out. */
static rondo_status run_values_check(const rondo_value *value, const char *name, const rondo_tensor_view *view) {
    if (value->kind != RONDO_VALUE_TENSOR) {
        return RONDO__FAIL(UNSUPPORTED, INPUT,
                           "output '%s' is a sequence or an optional: rondo_session_run_values gives such", name);
    }
    if (!view->data) return RONDO_OK;
    bool fits = view->dtype == value->dtype && view->rank == value->rank && (view->rank == 0 || view->shape);
    for (int32_t i = 0; fits && i < view->rank; i++) fits = view->shape[i] == value->dims[i];
    if (!fits) {
        return RONDO__FAIL(
            INVALID_ARGUMENT, INPUT,
            "output '%s': the memory given is not of the type and shape that data made of it: leave it to "
            "the session (data null)",
            name);
    }
    if (rondo__session_is_compact(view)) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, INPUT, "output '%s': memory with strides cannot be written so far", name);
}

/* A tensor that looks into somebody else's memory is copied: what is lent stays. */
static rondo_status run_values_own(const rondo_session *session, rondo_value **value) {
    rondo_value *copy = NULL;
    if ((*value)->kind != RONDO_VALUE_TENSOR || (*value)->capacity || (*value)->bytes == 0) return RONDO_OK;
    RONDO__TRY(rondo__value_tensor(&session->allocator, (*value)->dtype, (*value)->rank, (*value)->dims, &copy));
    memcpy(copy->data, (*value)->data, copy->bytes);
    rondo_value_release(*value);
    *value = copy;
    return RONDO_OK;
}

static rondo_status run_values_give(const rondo_session *session, const rondo__session_graph *graph,
                                    rondo_tensor_view *outputs) {
    uint32_t count = (uint32_t)graph->graph->outputs.count;
    for (uint32_t i = 0; i < count; i++) {
        RONDO__TRY(run_values_check(graph->lent[i], run_values_output_name(graph, i), &outputs[i]));
        if (!outputs[i].data) RONDO__TRY(run_values_own(session, &graph->lent[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        const rondo_value *value = graph->lent[i];
        if (!outputs[i].data) rondo__value_view(value, &outputs[i]);
        else if (value->bytes) memcpy((uint8_t *)outputs[i].data + outputs[i].byte_offset, value->data, value->bytes);
    }
    return RONDO_OK;
}

rondo_status rondo__session_run_region(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                       const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                       rondo_tensor_view *outputs) {
    size_t in = graph->graph->inputs.count;
    void *memory = NULL, *lent = NULL;
    uint64_t begin = rondo__now_ns(), before = graph->info.run_ns;
    rondo_status status = RONDO_OK;
    rondo__session_forget_lent(session, graph);
    RONDO__TRY(rondo__allocate_array(&session->allocator, graph->graph->outputs.count, sizeof(rondo_value *), &lent));
    graph->lent = lent;
    RONDO__TRY(rondo__allocate_array(&session->allocator, in, sizeof(rondo_value *), &memory));
    rondo_value **values = memory;
    for (size_t i = 0; i < in && !status; i++) {
        status = rondo__value_borrow(&session->allocator, inputs[i].dtype, inputs[i].rank, inputs[i].shape,
                                     tensors[i].data, &values[i]);
    }
    if (!status) status = rondo__region_specialised(session, graph, s, values, graph->lent);
    if (!status) status = run_values_give(session, graph, outputs);
    if (!status) graph->info.runs++;
    graph->info.run_ns = before + rondo__now_ns() - begin;
    rondo__values_release(values, in);
    rondo__free(&session->allocator, memory, in * sizeof(rondo_value *));
    if (status) rondo__session_forget_lent(session, graph);
    return status;
}

/* ------------------------------------------------------------------------------------------------- any kind of value */

static rondo_status run_values_inputs(const rondo__session_graph *graph, rondo_value *const *inputs,
                                      rondo_tensor_view *views, rondo__session_tensor *tensors) {
    const rondo_ir_graph *model = graph->graph;
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(model, rondo__ir_input_at(model, i));
        if (!inputs[i]) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' is null", data->name);
        if (data->type.kind != RONDO__IR_TENSOR) {
            bool optional = data->type.kind == RONDO__IR_OPTIONAL;
            rondo_value_kind want = optional ? RONDO_VALUE_OPTIONAL : RONDO_VALUE_SEQUENCE;
            if (inputs[i]->kind == want) continue;
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' is %s, and was given something else", data->name,
                               optional ? "an optional" : "a sequence");
        }
        if (inputs[i]->kind != RONDO_VALUE_TENSOR) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' is a tensor, and was given something else",
                               data->name);
        }
        rondo__value_view(inputs[i], &views[i]);
        tensors[i] = (rondo__session_tensor){inputs[i]->data, NULL, inputs[i]->bytes};
        RONDO__TRY(rondo__session_check_input(model, i, &views[i]));
    }
    return RONDO_OK;
}

static rondo_status run_values_run(rondo_session *session, rondo__session_graph *graph, rondo_value *const *inputs,
                                   rondo_value **outputs, void *memory) {
    size_t in = graph->graph->inputs.count;
    rondo__session_tensor *tensors = memory;
    rondo_tensor_view *views = (rondo_tensor_view *)(void *)(tensors + in);
    rondo__specialisation *s = NULL;
    RONDO__TRY(run_values_inputs(graph, inputs, views, tensors));
    RONDO__TRY(rondo__session_specialise(session, graph, views, tensors, true, &s));
    RONDO__TRY(rondo__region_specialised(session, graph, s, inputs, outputs));
    if (s->region) graph->info.runs++;
    return RONDO_OK;
}

static rondo_status run_values_graph(rondo_session *session, rondo__session_graph *graph, rondo_value *const *inputs,
                                     uint32_t input_count, rondo_value **outputs, uint32_t output_count) {
    size_t bytes = input_count * (sizeof(rondo__session_tensor) + sizeof(rondo_tensor_view));
    void *memory = NULL;
    if (input_count != graph->graph->inputs.count || output_count != graph->graph->outputs.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "graph %u has %zu inputs and %zu outputs, not %u and %u", graph->id,
                           graph->graph->inputs.count, graph->graph->outputs.count, input_count, output_count);
    }
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, bytes, &memory));
    rondo_status status = run_values_run(session, graph, inputs, outputs, memory);
    rondo__free(&session->allocator, memory, bytes);
    return status;
}

rondo_status rondo_session_run_values(rondo_session *session, uint32_t id, rondo_value *const *inputs,
                                      uint32_t input_count, rondo_value **outputs, uint32_t output_count) {
    rondo__session_graph *graph = NULL;
    if (!session || (input_count > 0 && !inputs) || (output_count > 0 && !outputs)) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_run_values: session, inputs or outputs are null");
    }
    for (uint32_t i = 0; i < output_count; i++) outputs[i] = NULL;
    rondo__mutex_lock(&session->mutex);
    rondo_status status = rondo__session_find(session, id, &graph);
    if (!status) status = run_values_graph(session, graph, inputs, input_count, outputs, output_count);
    rondo__mutex_unlock(&session->mutex);
    return status;
}
