/* SPDX-License-Identifier: Apache-2.0
 *
 * A run on device memory of the caller's: nothing is copied, nothing is looked at, nothing is waited for. */
#include <string.h>

#include "base/checked.h"
#include "base/sized.h"
#include "session/session.h"

/* Contexts of a specialisation for such runs, besides those that captures hold. */
#define STREAM_RUN_LANES_MAX 4u

/* ---------------------------------------------------------------------------------------------------- checks */

static rondo_status stream_run_check_place(const rondo_device *device, const char *side, const char *name,
                                           const rondo_tensor_view *view) {
    const rondo_device_properties *here = &device->properties;
    if (view->device_type != here->dlpack_type || view->device_index != here->index) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                           "%s '%s' is on device %d:%d by DLPack's numbers; the session's '%s' is %d:%d", side, name,
                           view->device_type, view->device_index, here->name, here->dlpack_type, here->index);
    }
    if (rondo__session_is_compact(view)) return RONDO_OK;
    return RONDO__FAIL(UNSUPPORTED, INPUT, "%s '%s' has strides: a run on a stream takes compact memory", side, name);
}

static const char *stream_run_input_name(const rondo_ir_graph *graph, uint32_t index) {
    return rondo__ir_value_at(graph, rondo__ir_input_at(graph, index))->name;
}

/* What is known of an input: its size, and its value where somebody vouches for one. */
static rondo_status stream_run_input(const rondo_session *session, const rondo_tensor_view *view, const char *name,
                                     rondo__session_tensor *out) {
    int64_t elements = 0;
    uint64_t bytes = 0;
    RONDO__TRY(stream_run_check_place(session->device, "input", name, view));
    if (!rondo__checked_elements(view->rank, view->shape, &elements)) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input '%s' has more elements than can be counted", name);
    }
    RONDO__TRY(rondo_dtype_bytes(view->dtype, (uint64_t)elements, &bytes));
    if (bytes > SIZE_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input '%s' has more bytes than there are addresses", name);
    }
    if (bytes && !view->data) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input '%s' has no memory", name);
    out->bytes = (size_t)bytes;
    return RONDO_OK;
}

static rondo_status stream_run_value(const rondo_session *session, const rondo_ir_graph *graph,
                                     const rondo_tensor_view *inputs, const rondo_value_binding *value,
                                     rondo__session_tensor *tensors) {
    rondo__session_tensor made;
    if (!value->input || !value->value) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_session_run_options.values: a name or a value is null");
    }
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const rondo_tensor_view *view = value->value, *input = &inputs[i];
        if (strcmp(stream_run_input_name(graph, i), value->input) != 0) continue;
        if (view->dtype != input->dtype || view->rank != input->rank ||
            (view->rank > 0 && memcmp(view->shape, input->shape, (size_t)view->rank * sizeof *view->shape) != 0)) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value of input '%s' is not of the input's type and shape",
                               value->input);
        }
        if (tensors[i].data) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the value of input '%s' is given twice", value->input);
        }
        RONDO__TRY_NOTE(rondo__session_compact(session, view, &made), "value of input '%s'", value->input);
        tensors[i] = made;
        return RONDO_OK;
    }
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the graph has no input '%s' to have a value", value->input);
}

/* --------------------------------------------------------------------------------------------------- contexts */

static uint64_t stream_run_address(const rondo_tensor_view *view) {
    return view->data ? (uint64_t)(uintptr_t)view->data + view->byte_offset : 0;
}

static bool stream_run_is_bound(const rondo__session_lane *lane, const rondo_plan *plan,
                                const rondo_tensor_view *inputs, const rondo_tensor_view *outputs) {
    for (uint32_t i = 0; i < lane->context->port_count; i++) {
        const rondo_tensor_view *view = i < plan->input_count ? &inputs[i] : &outputs[i - plan->input_count];
        if (lane->context->ports[i].address != stream_run_address(view)) return false;
    }
    return true;
}

/* Nothing of it runs any more. */
static bool stream_run_is_idle(const rondo_context *context) {
    bool done = false;
    if (!context->ticket.flying) return true;
    rondo_status status = rondo_event_query(context->ticket.event, &done);
    if (!status) return done;
    rondo_status_release(status);
    return false; /* whoever binds it next waits for it */
}

static rondo_status stream_run_new_lane(rondo_session *session, rondo__specialisation *s, bool captured,
                                        rondo__session_lane **out) {
    rondo__session_lane lane = {.captured = captured};
    RONDO__TRY(rondo__buffer_reserve(&s->lanes, s->lanes.count + 1));
    /* A specialisation that is retired with captures must find room. */
    if (captured) RONDO__TRY(rondo__buffer_reserve(&session->kept, session->kept_max + 1));
    RONDO__TRY(rondo_context_create(s->executable, &lane.context));
    RONDO__IGNORE(rondo__buffer_append(&s->lanes, &lane, 1)); /* room was made above */
    if (captured) session->kept_max++;
    *out = RONDO__BUFFER_AT(&s->lanes, rondo__session_lane, s->lanes.count - 1);
    return RONDO_OK;
}

/* Best is the one that ran on this memory and this stream; then one that is idle; then a new one; then the one that has
 * waited longest, whose binding waits for its run. */
static rondo_status stream_run_lane(rondo_session *session, rondo__specialisation *s, const rondo_stream *stream,
                                    const rondo_tensor_view *inputs, const rondo_tensor_view *outputs,
                                    rondo__session_lane **out) {
    rondo__session_lane *idle = NULL, *oldest = NULL;
    uint32_t free_lanes = 0;
    for (size_t i = 0; i < s->lanes.count; i++) {
        rondo__session_lane *lane = RONDO__BUFFER_AT(&s->lanes, rondo__session_lane, i);
        if (lane->captured) continue;
        free_lanes++;
        if (lane->stream == stream->id && stream_run_is_bound(lane, s->plan, inputs, outputs)) {
            *out = lane;
            return RONDO_OK;
        }
        if (!idle && stream_run_is_idle(lane->context)) idle = lane;
        if (!oldest || lane->used < oldest->used) oldest = lane;
    }
    *out = idle ? idle : oldest;
    if (idle || free_lanes >= STREAM_RUN_LANES_MAX) return RONDO_OK;
    return stream_run_new_lane(session, s, false, out);
}

/* -------------------------------------------------------------------------------------------------------- run */

typedef struct stream_run {
    rondo_session *session;
    rondo__session_graph *graph;
    rondo_stream *stream;
    const rondo_tensor_view *inputs, *outputs;
    rondo_session_run_options options;
    bool captured;
} stream_run;

static rondo_status stream_run_go(const stream_run *run, rondo__session_lane *lane) {
    rondo__profile_scope *scope = &run->session->scope;
    if (!scope->profile) return rondo_context_run(lane->context, run->stream);
    rondo__profile_mark(scope, RONDO_PROFILE_OTHER, "session");
    rondo_status status = rondo_profile_run(scope->profile, lane->context, run->stream, &scope->mark);
    rondo__profile_again(scope);
    return status;
}

static rondo_status stream_run_enqueue(const stream_run *run, rondo__specialisation *s, rondo__session_lane *lane) {
    const rondo_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        void *address = (void *)(uintptr_t)stream_run_address(&run->inputs[i]);
        RONDO__TRY(rondo_context_bind_input(lane->context, i, address));
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        void *address = (void *)(uintptr_t)stream_run_address(&run->outputs[i]);
        RONDO__TRY(rondo_context_bind_output(lane->context, i, address));
    }
    lane->stream = run->stream->id;
    RONDO__TRY(stream_run_go(run, lane));
    if (!run->options.done) return RONDO_OK;
    return rondo_stream_host_call(run->stream, run->options.done, run->options.done_user);
}

static rondo_status stream_run_specialised(const stream_run *run, rondo__specialisation *s) {
    rondo_session_info *info = &run->graph->info;
    rondo__session_lane *lane = NULL;
    for (uint32_t i = 0; i < s->plan->output_count; i++) {
        const rondo__plan_port *port = &s->plan->outputs[i];
        RONDO__TRY(stream_run_check_place(run->session->device, "output", port->name, &run->outputs[i]));
        RONDO__TRY(rondo__session_check_output(port, &run->outputs[i]));
        if (!run->outputs[i].data && port->bytes) {
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "output '%s' has no memory: a run on a stream lends none",
                               port->name);
        }
    }
    if (run->captured) RONDO__TRY(stream_run_new_lane(run->session, s, true, &lane));
    else RONDO__TRY(stream_run_lane(run->session, s, run->stream, run->inputs, run->outputs, &lane));
    uint64_t begin = rondo__now_ns();
    s->used = lane->used = ++run->session->clock;
    RONDO__TRY(stream_run_enqueue(run, s, lane));
    if (run->captured) return RONDO_OK;
    info->run_ns += rondo__now_ns() - begin;
    info->runs++;
    return RONDO_OK;
}

static rondo_status stream_run_with(const stream_run *run, rondo__session_tensor *tensors) {
    const rondo_ir_graph *model = run->graph->graph;
    rondo__specialisation *s = NULL;
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        RONDO__TRY(stream_run_input(run->session, &run->inputs[i], stream_run_input_name(model, i), &tensors[i]));
    }
    for (uint32_t i = 0; i < run->options.value_count; i++) {
        RONDO__TRY(stream_run_value(run->session, model, run->inputs, &run->options.values[i], tensors));
    }
    if (run->captured) {
        s = rondo__session_fitting(run->graph, run->inputs, tensors);
        if (!s) {
            return RONDO__FAIL(INVALID_STATE, CAPTURE,
                               "graph %u has not run yet with these sizes and values: run it once before the capture, "
                               "which must not compile or load anything",
                               run->graph->id);
        }
    } else {
        RONDO__TRY_NOTE(rondo__session_specialise(run->session, run->graph, run->inputs, tensors, false, &s),
                        "a run on a stream looks at no data: values that decide a branch or a shape are given in "
                        "rondo_session_run_options.values");
    }
    if (s->region) return rondo__region_refuse(run->graph, s, run->captured ? RONDO_LAYER_CAPTURE : RONDO_LAYER_META);
    return stream_run_specialised(run, s);
}

static rondo_status stream_run_graph(stream_run *run, uint32_t id, uint32_t input_count, uint32_t output_count,
                                     const rondo_session_run_options *options) {
    rondo_session *session = run->session;
    void *memory = NULL;
    run->options = (rondo_session_run_options)RONDO_SESSION_RUN_OPTIONS_INIT;
    RONDO__TRY(
        rondo__sized_read(RONDO_LAYER_NONE, "rondo_session_run_options", options, &run->options, sizeof run->options));
    if (run->options.value_count && !run->options.values) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_session_run_options: values is null");
    }
    if (run->stream->device != session->device) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the session is of device '%s:%d', the stream of '%s:%d'",
                           session->device->properties.name, session->device->properties.index,
                           run->stream->device->properties.name, run->stream->device->properties.index);
    }
    RONDO__TRY(rondo__session_find(session, id, &run->graph));
    RONDO__TRY(rondo__session_check_inputs(run->graph, run->inputs, input_count, output_count));
    RONDO__TRY(rondo__allocate_array(&session->allocator, input_count, sizeof(rondo__session_tensor), &memory));
    rondo_status status = stream_run_with(run, memory);
    for (uint32_t i = 0; i < input_count; i++) {
        rondo__session_compact_free(session, (rondo__session_tensor *)memory + i);
    }
    rondo__free(&session->allocator, memory, input_count * sizeof(rondo__session_tensor));
    return status;
}

rondo_status rondo_session_run_on_stream(rondo_session *session, uint32_t id, rondo_stream *stream,
                                         const rondo_tensor_view *inputs, uint32_t input_count,
                                         const rondo_tensor_view *outputs, uint32_t output_count,
                                         const rondo_session_run_options *options) {
    if (!session || !stream || (input_count > 0 && !inputs) || (output_count > 0 && !outputs)) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE,
                           "rondo_session_run_on_stream: session, stream, inputs or outputs are null");
    }
    stream_run run = {.session = session, .stream = stream, .inputs = inputs, .outputs = outputs};
    run.captured = rondo__stream_recorder(stream) != NULL;
    rondo__mutex_lock(&session->mutex);
    rondo__profile_open(&session->scope, run.captured ? NULL : session->profile);
    rondo_status status = stream_run_graph(&run, id, input_count, output_count, options);
    rondo__profile_close(&session->scope, "run on stream");
    rondo__mutex_unlock(&session->mutex);
    return run.captured && status ? rondo__stream_refuse(stream, status) : status;
}
