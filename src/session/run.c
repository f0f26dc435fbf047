/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of a session's graph on host tensors: check, find or make the specialisation, copy in, run or replay, copy out. */
#include <inttypes.h>
#include <string.h>

#include "ops/operators.h"
#include "session/session.h"

rondo_status rondo__session_check_input(const rondo_ir_graph *graph, uint32_t index, const rondo_tensor_view *view) {
    const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_input_at(graph, index));
    const rondo__ir_type *type = &data->type;
    if (view->dtype != type->dtype) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' is %s, not %s", data->name,
                           rondo_dtype_name(type->dtype), rondo_dtype_name(view->dtype));
    }
    if (view->rank < 0 || view->rank > RONDO_RANK_MAX || (view->rank > 0 && !view->shape) ||
        (type->rank >= 0 && view->rank != type->rank)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has rank %d, not %d", data->name, type->rank,
                           view->rank);
    }
    for (int32_t axis = 0; axis < view->rank; axis++) {
        int64_t want = type->rank >= 0 ? type->dims[axis].value : -1;
        if (view->shape[axis] < 0 || (want >= 0 && view->shape[axis] != want)) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s': axis %d has the size %" PRId64 ", not %" PRId64,
                               data->name, axis, want, view->shape[axis]);
        }
    }
    return RONDO_OK;
}

rondo_status rondo__session_check_inputs(const rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                         uint32_t input_count, uint32_t output_count) {
    const rondo_ir_graph *model = graph->graph;
    if (input_count != model->inputs.count || output_count != model->outputs.count) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "graph %u has %zu inputs and %zu outputs, not %u and %u", graph->id,
                           model->inputs.count, model->outputs.count, input_count, output_count);
    }
    for (uint32_t i = 0; i < input_count; i++) RONDO__TRY(rondo__session_check_input(model, i, &inputs[i]));
    return RONDO_OK;
}

rondo_status rondo__session_check_output(const rondo__plan_port *port, const rondo_tensor_view *view) {
    if (!view->data) return RONDO_OK;
    bool fits = view->dtype == port->dtype && view->rank == port->rank && (view->rank == 0 || view->shape);
    for (int32_t axis = 0; fits && axis < view->rank; axis++) fits = view->shape[axis] == port->dims[axis];
    if (!fits) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "output '%s': the memory given is not of its type and shape",
                           port->name);
    }
    if (rondo__session_is_compact(view)) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, INPUT, "output '%s': memory with strides cannot be written so far", port->name);
}

/* --------------------------------------------------------------------------------------- the specialisation */

rondo__specialisation *rondo__session_fitting(const rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                              const rondo__session_tensor *tensors) {
    for (size_t i = 0; i < graph->specialisations.count; i++) {
        rondo__specialisation *s = *RONDO__BUFFER_AT(&graph->specialisations, rondo__specialisation *, i);
        if (rondo__specialisation_fits(s, inputs, tensors)) return s;
    }
    return NULL;
}

rondo_status rondo__session_specialise(rondo_session *session, rondo__session_graph *graph,
                                       const rondo_tensor_view *inputs, const rondo__session_tensor *tensors, bool cuts,
                                       rondo__specialisation **out) {
    rondo__buffer *all = &graph->specialisations;
    size_t oldest = 0;
    *out = rondo__session_fitting(graph, inputs, tensors);
    if (*out) return RONDO_OK;
    RONDO__TRY(rondo__buffer_reserve(all, all->count + 1));
    RONDO__TRY(rondo__specialisation_create(session, graph, inputs, tensors, cuts, out));
    rondo__specialisation **slots = all->data;
    if (all->count < session->options.specialisations_max) {
        RONDO__IGNORE(rondo__buffer_append(all, out, 1)); /* room was made above */
        return RONDO_OK;
    }
    for (size_t i = 1; i < all->count; i++) {
        if (slots[i]->used < slots[oldest]->used) oldest = i;
    }
    rondo__specialisation_retire(session, slots[oldest]);
    slots[oldest] = *out;
    return RONDO_OK;
}

static rondo_status session_capture(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s) {
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    rondo_graph *captured = NULL;
    uint64_t begin = rondo__now_ns();
    rondo__profile_mark(&session->scope, RONDO_PROFILE_OTHER, "session");
    options.name = s->plan->name;
    RONDO__TRY(rondo_graph_create(session->device, &options, &captured));
    rondo_status status =
        rondo_graph_capture_begin(captured, session->stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_THREAD_LOCAL);
    if (!status) {
        status = rondo_context_run_eager(s->context, session->stream);
        if (status) {
            RONDO__IGNORE(rondo_graph_abort(captured));
        } else {
            status = rondo_graph_capture_end(captured, session->stream);
        }
    }
    if (status) {
        rondo_graph_release(captured);
        return rondo__status_note(status, "while capturing graph %u", graph->id);
    }
    s->graph = captured;
    graph->info.captures++;
    graph->info.capture_ns += rondo__now_ns() - begin;
    rondo__profile_mark(&session->scope, RONDO_PROFILE_CAPTURE, s->plan->name);
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- moving */

/* Who watches wants to know how long a copy took, not when it was enqueued. */
static rondo_status session_copied(rondo_session *session, rondo_profile_part part, const char *name) {
    if (!session->scope.profile) return RONDO_OK;
    RONDO__TRY(rondo_stream_synchronize(session->stream));
    rondo__profile_mark(&session->scope, part, name);
    return RONDO_OK;
}

static rondo_status session_copy_in(rondo_session *session, const rondo__specialisation *s,
                                    const rondo__session_tensor *tensors) {
    for (uint32_t i = 0; i < s->plan->input_count; i++) {
        if (!s->ports[i].device || tensors[i].bytes == 0) continue;
        RONDO__TRY_NOTE(rondo_stream_copy(session->stream, s->ports[i].device, tensors[i].data, tensors[i].bytes,
                                          RONDO_COPY_HOST_TO_DEVICE),
                        "copying input '%s'", s->plan->inputs[i].name);
        RONDO__TRY(session_copied(session, RONDO_PROFILE_COPY_IN, s->plan->inputs[i].name));
    }
    return RONDO_OK;
}

static rondo_status session_copy_out(rondo_session *session, rondo__specialisation *s, rondo_tensor_view *outputs,
                                     void **hosts) {
    for (uint32_t i = 0; i < s->plan->output_count; i++) {
        const rondo__plan_port *port = &s->plan->outputs[i];
        rondo__session_port *memory = &s->ports[s->plan->input_count + i];
        void *host = outputs[i].data ? (uint8_t *)outputs[i].data + outputs[i].byte_offset : memory->host;
        if (!host) {
            RONDO__TRY(rondo__allocate_aligned(&session->allocator, (size_t)port->bytes, 64, &memory->host));
            host = memory->host;
        }
        hosts[i] = host;
        if (port->bytes == 0) continue;
        RONDO__TRY_NOTE(
            rondo_stream_copy(session->stream, host, memory->device, port->bytes, RONDO_COPY_DEVICE_TO_HOST),
            "copying output '%s'", port->name);
        RONDO__TRY(session_copied(session, RONDO_PROFILE_COPY_OUT, port->name));
    }
    return RONDO_OK;
}

static rondo_status session_work_watched(rondo_session *session, rondo__specialisation *s, uint64_t *replays) {
    rondo_profile *profile = session->scope.profile;
    uint64_t *mark = &session->scope.mark;
    bool replay = profile->options.as_is && s->graph;
    rondo__profile_mark(&session->scope, RONDO_PROFILE_OTHER, "session");
    rondo_status status = replay ? rondo_profile_replay(profile, s->graph, session->stream, mark)
                                 : rondo_profile_run(profile, s->context, session->stream, mark);
    if (replay && !status) ++*replays;
    rondo__profile_again(&session->scope);
    return status;
}

static rondo_status session_work(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s) {
    if (session->scope.profile) return session_work_watched(session, s, &graph->info.replays);
    if (!s->graph) return rondo_context_run_eager(s->context, session->stream);
    RONDO__TRY(rondo_graph_replay(s->graph, session->stream));
    graph->info.replays++;
    return RONDO_OK;
}

/* Reading the clock takes as long as a small kernel: once between two parts. */
static void session_took(uint64_t *total, uint64_t *mark) {
    uint64_t now = rondo__now_ns();
    *total += now - *mark;
    *mark = now;
}

static rondo_status session_enqueue(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                    const rondo__session_tensor *tensors, rondo_tensor_view *outputs, void **hosts,
                                    uint64_t *mark) {
    RONDO__TRY(rondo__specialisation_prepare(session, s));
    if (!s->graph && s->runs >= session->options.record_after) RONDO__TRY(session_capture(session, graph, s));
    rondo__profile_mark(&session->scope, RONDO_PROFILE_OTHER, "session");
    *mark = rondo__now_ns();
    RONDO__TRY(session_copy_in(session, s, tensors));
    session_took(&graph->info.copy_ns, mark);
    RONDO__TRY(session_work(session, graph, s));
    session_took(&graph->info.run_ns, mark);
    RONDO__TRY(session_copy_out(session, s, outputs, hosts));
    session_took(&graph->info.copy_ns, mark);
    return RONDO_OK;
}

rondo_status rondo__session_specialised(rondo_session *session, rondo__session_graph *graph, rondo__specialisation *s,
                                        const rondo__session_tensor *tensors, rondo_tensor_view *outputs) {
    void *memory = NULL;
    uint32_t count = s->plan->output_count;
    for (uint32_t i = 0; i < count; i++) RONDO__TRY(rondo__session_check_output(&s->plan->outputs[i], &outputs[i]));
    RONDO__TRY(rondo__allocate_array(&session->allocator, count, sizeof(void *), &memory));
    void **hosts = memory;
    s->used = ++session->clock;
    uint64_t mark = 0;
    rondo_status status = session_enqueue(session, graph, s, tensors, outputs, hosts, &mark);
    /* Also after a failure: nothing of this run may be left in the stream. */
    status = rondo__status_first(status, rondo_stream_synchronize(session->stream));
    status = rondo__operators_explain(graph->graph->operators, status);
    if (mark) session_took(&graph->info.run_ns, &mark);
    for (uint32_t i = 0; !status && i < count; i++) {
        const rondo__plan_port *port = &s->plan->outputs[i];
        if (outputs[i].data) continue;
        outputs[i] = (rondo_tensor_view){
            .data = hosts[i], .device_type = 1, .rank = port->rank, .dtype = port->dtype, .shape = port->dims};
    }
    if (!status) {
        s->runs++;
        if (!s->region) graph->info.runs++; /* else it is one of the parts of a run */
    }
    rondo__free(&session->allocator, memory, count * sizeof(void *));
    return status;
}

rondo_status rondo__session_run_exact(rondo_session *session, rondo__session_graph *graph,
                                      const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                      rondo_tensor_view *outputs) {
    rondo__specialisation *s = NULL;
    RONDO__TRY(rondo__session_specialise(session, graph, inputs, tensors, true, &s));
    if (s->region) return rondo__session_run_region(session, graph, s, inputs, tensors, outputs);
    return rondo__session_specialised(session, graph, s, tensors, outputs);
}

static rondo_status session_run_graph(rondo_session *session, rondo__session_graph *graph,
                                      const rondo_tensor_view *inputs, uint32_t input_count,
                                      rondo_tensor_view *outputs) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&session->allocator, input_count, sizeof(rondo__session_tensor), &memory));
    rondo__session_tensor *tensors = memory;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < input_count && !status; i++) {
        status = rondo__session_compact(session, &inputs[i], &tensors[i]);
        if (status) {
            status = rondo__status_note(status, "input '%s'",
                                        rondo__ir_value_at(graph->graph, rondo__ir_input_at(graph->graph, i))->name);
        }
    }
    if (!status) {
        status = graph->buckets ? rondo__buckets_run(session, graph, inputs, tensors, outputs)
                                : rondo__session_run_exact(session, graph, inputs, tensors, outputs);
    }
    for (uint32_t i = 0; i < input_count; i++) rondo__session_compact_free(session, &tensors[i]);
    rondo__free(&session->allocator, memory, input_count * sizeof(rondo__session_tensor));
    return status;
}

rondo_status rondo_session_run(rondo_session *session, uint32_t id, const rondo_tensor_view *inputs,
                               uint32_t input_count, rondo_tensor_view *outputs, uint32_t output_count) {
    rondo__session_graph *graph = NULL;
    if (!session || (input_count > 0 && !inputs) || (output_count > 0 && !outputs)) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_run: session, inputs or outputs are null");
    }
    rondo__mutex_lock(&session->mutex);
    rondo__profile_open(&session->scope, session->profile);
    rondo_status status = rondo__session_find(session, id, &graph);
    if (!status) status = rondo__session_check_inputs(graph, inputs, input_count, output_count);
    if (!status) status = session_run_graph(session, graph, inputs, input_count, outputs);
    rondo__profile_close(&session->scope, "run");
    rondo__mutex_unlock(&session->mutex);
    return status;
}
