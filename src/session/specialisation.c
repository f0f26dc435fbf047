/* SPDX-License-Identifier: Apache-2.0
 *
 * One specialisation of a graph: compiled, prepared, with device memory of its own for every input and output. */
#include <rondo/cache.h>
#include <string.h>

#include "base/checked.h"
#include "compile/compile.h"
#include "session/session.h"

/* ------------------------------------------------------------------------------------------------ host tensors */

bool rondo__session_is_compact(const rondo_tensor_view *view) {
    int64_t expected = 1;
    if (!view->strides) return true;
    for (int32_t i = view->rank - 1; i >= 0; i--) {
        if (view->shape[i] != 1 && view->strides[i] != expected) return false;
        expected *= view->shape[i];
    }
    return true;
}

static void session_gather(const rondo_tensor_view *view, size_t element, uint8_t *to) {
    const uint8_t *data = (const uint8_t *)view->data + view->byte_offset;
    int64_t index[RONDO_RANK_MAX] = {0};
    for (int32_t d = 0; d >= 0;) {
        int64_t at = 0;
        for (int32_t i = 0; i < view->rank; i++) at += index[i] * view->strides[i];
        memcpy(to, data + at * (int64_t)element, element);
        to += element;
        d = view->rank - 1;
        while (d >= 0 && ++index[d] == view->shape[d]) index[d--] = 0;
    }
}

rondo_status rondo__session_compact(const rondo_session *session, const rondo_tensor_view *view,
                                    rondo__session_tensor *out_tensor) {
    int64_t elements = 0;
    uint64_t bytes = 0;
    *out_tensor = (rondo__session_tensor){0};
    if (!rondo__checked_elements(view->rank, view->shape, &elements)) {
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "it has more elements than can be counted");
    }
    RONDO__TRY(rondo_dtype_bytes(view->dtype, (uint64_t)elements, &bytes));
    if (bytes > SIZE_MAX) return RONDO__FAIL(OUT_OF_RANGE, INPUT, "it has more bytes than there are addresses");
    if (bytes > 0 && !view->data) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "it has no data");
    out_tensor->bytes = (size_t)bytes;
    if (bytes == 0) return RONDO_OK;
    out_tensor->data = (const uint8_t *)view->data + view->byte_offset;
    if (rondo__session_is_compact(view)) return RONDO_OK;
    RONDO__TRY(rondo__allocate(&session->allocator, (size_t)bytes, &out_tensor->owned));
    out_tensor->data = out_tensor->owned;
    rondo_status status = rondo__session_gather(view, out_tensor->owned, (size_t)bytes);
    if (status) rondo__session_compact_free(session, out_tensor);
    return status;
}

rondo_status rondo__session_gather(const rondo_tensor_view *view, void *to, size_t bytes) {
    if (bytes == 0) return RONDO_OK;
    if (!view->data) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "it has no data");
    if (rondo__session_is_compact(view)) {
        memcpy(to, (const uint8_t *)view->data + view->byte_offset, bytes);
        return RONDO_OK;
    }
    if (rondo_dtype_bits(view->dtype) < 8) {
        return RONDO__FAIL(UNSUPPORTED, INPUT, "strides of a type of less than a byte");
    }
    session_gather(view, rondo_dtype_bits(view->dtype) / 8u, to);
    return RONDO_OK;
}

void rondo__session_compact_free(const rondo_session *session, rondo__session_tensor *tensor) {
    rondo__free(&session->allocator, tensor->owned, tensor->bytes);
    *tensor = (rondo__session_tensor){0};
}

/* ---------------------------------------------------------------------------------------------------- compile */

typedef struct specialisation_bindings {
    rondo__buffer dims, values, views;
} specialisation_bindings;

static rondo_status specialisation_bind(specialisation_bindings *b, const rondo__session_graph *of,
                                        const rondo_tensor_view *inputs, const rondo__session_tensor *tensors) {
    const rondo_ir_graph *graph = of->graph;
    size_t count = graph->inputs.count;
    RONDO__TRY(rondo__buffer_reserve(&b->views, count));
    for (uint32_t i = 0; i < count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph, rondo__ir_input_at(graph, i));
        for (int32_t axis = 0; axis < inputs[i].rank; axis++) {
            if (data->type.rank >= 0 && data->type.dims[axis].value >= 0) continue;
            rondo_dim_binding dim = {.input = data->name, .size = inputs[i].shape[axis], .axis = axis};
            RONDO__TRY(rondo__buffer_append(&b->dims, &dim, 1));
        }
        if (of->internal || inputs[i].dtype == RONDO_DTYPE_UNDEFINED) continue;
        if (tensors[i].bytes > RONDO__SESSION_VALUE_MAX || (tensors[i].bytes && !tensors[i].data)) continue;
        rondo_tensor_view view = inputs[i];
        view.data = (void *)(uintptr_t)tensors[i].data;
        view.strides = NULL;
        view.byte_offset = 0;
        RONDO__TRY(rondo__buffer_append(&b->views, &view, 1));
        rondo_value_binding value = {data->name, RONDO__BUFFER_AT(&b->views, rondo_tensor_view, b->views.count - 1)};
        RONDO__TRY(rondo__buffer_append(&b->values, &value, 1));
    }
    return RONDO_OK;
}

static void specialisation_passed(void *user, const rondo_pass_report *report) {
    uint64_t end = rondo__now_ns();
    rondo__profile_put_quietly(user, RONDO_PROFILE_PASS, report->name, end - report->ns, end);
}

/* Whether the graph does not say enough of its inputs, so that what they are is told by the run. */
static bool specialisation_tells(const rondo__session_graph *graph, const rondo_tensor_view *inputs) {
    bool tells = graph->internal;
    for (size_t i = 0; i < graph->graph->inputs.count; i++) tells = tells || inputs[i].dtype == RONDO_DTYPE_UNDEFINED;
    return tells;
}

/* With what runs between plans cut off. */
static rondo_status specialisation_cut(rondo_session *session, const rondo__session_graph *graph,
                                       rondo_compile_options *options, const rondo_tensor_view *inputs,
                                       rondo_plan **out_plan, rondo__region **out_region) {
    size_t count = graph->graph->inputs.count;
    rondo__compile_cut *cut = NULL;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&session->allocator, count, sizeof(rondo__compile_input), &memory));
    rondo__compile_input *given = memory;
    bool tells = specialisation_tells(graph, inputs);
    for (size_t i = 0; i < count; i++) {
        given[i] = (rondo__compile_input){inputs[i].dtype, inputs[i].rank, inputs[i].shape,
                                          inputs[i].dtype == RONDO_DTYPE_UNDEFINED};
    }
    rondo_status status =
        rondo__compile_regions(&session->allocator, &session->device->kernels, &session->folder, session->target,
                               graph->graph, options, tells ? given : NULL, out_plan, &cut);
    rondo__free(&session->allocator, memory, count * sizeof(rondo__compile_input));
    if (status || !cut) return status;
    return rondo__region_create(session, cut, out_region);
}

/* From the cache where the session has one. Who watches passes gets no entry, so nobody does there. */
static rondo_status specialisation_cached(rondo_session *session, rondo__session_graph *graph,
                                          rondo_compile_options options, rondo_plan **out_plan) {
    rondo_cache_report report = RONDO_CACHE_REPORT_INIT;
    options.catalogues = session->target;
    RONDO__TRY(rondo_compile_cached(session->device->instance, graph->graph, &options, session->options.cache, NULL,
                                    out_plan, &report));
    graph->info.cache_hits += report.outcome == RONDO_CACHE_HIT;
    return RONDO_OK;
}

/* What has to be cut is in no cache: only one plan from end to end is. */
static rondo_status specialisation_make_plan(rondo_session *session, rondo__session_graph *graph,
                                             rondo_compile_options *options, const rondo_tensor_view *inputs, bool cuts,
                                             rondo_plan **out_plan, rondo__region **out_region) {
    if (session->options.cache && !(cuts && specialisation_tells(graph, inputs))) {
        rondo_status status = specialisation_cached(session, graph, *options, out_plan);
        bool cut = cuts && rondo_status_code(status) == RONDO_CODE_UNSUPPORTED &&
                   rondo_status_layer(status) == RONDO_LAYER_META;
        if (!cut) return status;
        rondo_status_release(status);
    }
    if (session->scope.profile) {
        options->after_pass = specialisation_passed;
        options->user = session->scope.profile;
    }
    if (cuts) return specialisation_cut(session, graph, options, inputs, out_plan, out_region);
    return rondo__compile(&session->allocator, &session->device->kernels, &session->folder, session->target,
                          graph->graph, options, NULL, out_plan);
}

/* out_graph null: as the session compiles; else the graph as folding leaves it, too. */
static rondo_status specialisation_compile(rondo_session *session, rondo__session_graph *graph,
                                           const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                           rondo_ir_graph **out_graph, bool cuts, rondo_plan **out_plan,
                                           rondo__region **out_region) {
    specialisation_bindings b;
    size_t most = graph->graph->inputs.count * RONDO_RANK_MAX + 1;
    rondo__buffer_init(&b.dims, &session->allocator, sizeof(rondo_dim_binding), most);
    rondo__buffer_init(&b.values, &session->allocator, sizeof(rondo_value_binding), most);
    rondo__buffer_init(&b.views, &session->allocator, sizeof(rondo_tensor_view), most);
    rondo_status status = specialisation_bind(&b, graph, inputs, tensors);
    if (!status) {
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.dims = b.dims.data;
        options.dim_count = (uint32_t)b.dims.count;
        options.values = b.values.data;
        options.value_count = (uint32_t)b.values.count;
        options.flags = session->options.flags;
        if (out_graph) options.flags &= ~(uint32_t)RONDO_COMPILE_NO_FOLDING;
        options.level = session->options.level;
        options.passes = out_graph ? "fold,dead" : session->options.passes;
        options.without = out_graph ? NULL : session->options.without;
        status = out_graph ? rondo__compile(&session->allocator, &session->device->kernels, &session->folder,
                                            session->target, graph->graph, &options, out_graph, out_plan)
                           : specialisation_make_plan(session, graph, &options, inputs, cuts, out_plan, out_region);
    }
    rondo__buffer_deinit(&b.views);
    rondo__buffer_deinit(&b.values);
    rondo__buffer_deinit(&b.dims);
    return status;
}

rondo_status rondo__session_compile_plain(rondo_session *session, rondo__session_graph *graph,
                                          const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                          rondo_ir_graph **out_graph, rondo_plan **out_plan) {
    return specialisation_compile(session, graph, inputs, tensors, out_graph, false, out_plan, NULL);
}

/* ------------------------------------------------------------------------------------------------------- life */

static const rondo__plan_port *specialisation_port(const rondo__specialisation *s, uint32_t index) {
    const rondo_plan *plan = s->plan;
    return index < plan->input_count ? &plan->inputs[index] : &plan->outputs[index - plan->input_count];
}

static const rondo__exec_memory *specialisation_memory(const rondo__specialisation *s) {
    return &s->executable->targets[0].memory;
}

static rondo_status specialisation_take_memory(rondo_session *session, rondo__specialisation *s,
                                               rondo_context *context) {
    uint32_t count = s->plan->input_count + s->plan->output_count;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&session->allocator, count, sizeof(rondo__session_port), &memory));
    s->ports = memory;
    for (uint32_t i = 0; i < count; i++) {
        const rondo__plan_port *port = specialisation_port(s, i);
        bool input = i < s->plan->input_count;
        uint64_t address = 0;
        if (input && port->buffer == RONDO__PLAN_NONE) continue;
        RONDO__TRY_NOTE(rondo__exec_allocate(specialisation_memory(s), port->bytes > 0 ? port->bytes : 1, &address),
                        "for %s '%s'", input ? "input" : "output", port->name);
        s->ports[i].device = (void *)(uintptr_t)address;
        if (input) {
            RONDO__TRY(rondo_context_bind_input(context, i, s->ports[i].device));
        } else {
            RONDO__TRY(rondo_context_bind_output(context, i - s->plan->input_count, s->ports[i].device));
        }
    }
    return RONDO_OK;
}

static void specialisation_free_ports(rondo_session *session, rondo__specialisation *s) {
    if (!s->ports) return;
    uint32_t count = s->plan->input_count + s->plan->output_count;
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = (size_t)specialisation_port(s, i)->bytes;
        rondo__exec_free(specialisation_memory(s), (uint64_t)(uintptr_t)s->ports[i].device, bytes > 0 ? bytes : 1);
        rondo__free_aligned(&session->allocator, s->ports[i].host, bytes, 64);
    }
    rondo__free(&session->allocator, s->ports, count * sizeof(rondo__session_port));
    s->ports = NULL;
}

rondo_status rondo__specialisation_prepare(rondo_session *session, rondo__specialisation *s) {
    rondo_context *context = NULL;
    if (s->context) return RONDO_OK;
    rondo__profile_mark(&session->scope, RONDO_PROFILE_OTHER, "session");
    RONDO__TRY(rondo_context_create(s->executable, &context));
    rondo_status status = specialisation_take_memory(session, s, context);
    if (status) {
        rondo_context_release(context);
        specialisation_free_ports(session, s);
        return status;
    }
    s->context = context;
    rondo__profile_mark(&session->scope, RONDO_PROFILE_LOAD, "memory");
    return RONDO_OK;
}

/* What its inputs were, for the next run to be compared with. */
static rondo_status specialisation_remember(rondo_session *session, const rondo__session_graph *graph,
                                            rondo__specialisation *s, const rondo_tensor_view *inputs) {
    size_t count = graph->graph->inputs.count, dims = 0;
    void *memory = NULL;
    for (size_t i = 0; i < count; i++) dims += (size_t)inputs[i].rank;
    s->input_bytes = count * sizeof(rondo_tensor_view) + dims * sizeof(int64_t);
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, s->input_bytes, &memory));
    s->inputs = memory;
    s->input_count = (uint32_t)count;
    int64_t *at = (int64_t *)(void *)(s->inputs + count);
    for (size_t i = 0; i < count; i++) {
        s->inputs[i].dtype = inputs[i].dtype;
        s->inputs[i].rank = inputs[i].rank;
        s->inputs[i].shape = at;
        if (inputs[i].rank > 0) memcpy(at, inputs[i].shape, (size_t)inputs[i].rank * sizeof *at);
        at += inputs[i].rank;
    }
    return RONDO_OK;
}

rondo_status rondo__specialisation_create(rondo_session *session, rondo__session_graph *graph,
                                          const rondo_tensor_view *inputs, const rondo__session_tensor *tensors,
                                          bool cuts, rondo__specialisation **out) {
    void *memory = NULL;
    uint64_t begin = rondo__now_ns();
    RONDO__TRY(rondo__allocate_zeroed(&session->allocator, sizeof(rondo__specialisation), &memory));
    rondo__specialisation *s = memory;
    rondo__buffer_init(&s->lanes, &session->allocator, sizeof(rondo__session_lane), UINT32_MAX);
    rondo__profile_mark(&session->scope, RONDO_PROFILE_OTHER, "session");
    rondo_status status = specialisation_compile(session, graph, inputs, tensors, NULL, cuts, &s->plan, &s->region);
    if (!status && (graph->internal || s->region)) status = specialisation_remember(session, graph, s, inputs);
    const char *name = s->plan ? s->plan->name : graph->graph->name; /* all of it may run between plans */
    if (!status) rondo__profile_mark(&session->scope, RONDO_PROFILE_COMPILE, name);
    if (!status && s->plan)
        status = rondo__executable_create(&session->device, 1, s->plan, &session->options.memory, session->weights,
                                          &s->executable);
    if (status) {
        rondo__specialisation_destroy(session, s);
        return status;
    }
    rondo__profile_mark(&session->scope, RONDO_PROFILE_LOAD, name);
    graph->info.compiles++;
    graph->info.compile_ns += rondo__now_ns() - begin;
    *out = s;
    return RONDO_OK;
}

void rondo__specialisation_destroy(rondo_session *session, rondo__specialisation *s) {
    if (!s) return;
    rondo_graph_release(s->graph);
    rondo_context_release(s->context);
    for (size_t i = 0; i < s->lanes.count; i++) {
        rondo_context_release(RONDO__BUFFER_AT(&s->lanes, rondo__session_lane, i)->context);
    }
    rondo__buffer_deinit(&s->lanes);
    specialisation_free_ports(session, s);
    rondo__region_destroy(session, s->region);
    rondo__free(&session->allocator, s->inputs, s->input_bytes);
    rondo_executable_release(s->executable);
    rondo_plan_release(s->plan);
    rondo__free(&session->allocator, s, sizeof *s);
}

void rondo__specialisation_retire(rondo_session *session, rondo__specialisation *s) {
    bool captured = false;
    for (size_t i = 0; i < s->lanes.count; i++) {
        captured = captured || RONDO__BUFFER_AT(&s->lanes, rondo__session_lane, i)->captured;
    }
    if (captured) RONDO__IGNORE(rondo__buffer_append(&session->kept, &s, 1)); /* room was made at the capture */
    else rondo__specialisation_destroy(session, s);
}

static bool specialisation_guards_hold(const rondo_plan *plan, const rondo__session_tensor *tensors) {
    for (uint32_t i = 0; i < plan->guard_count; i++) {
        const rondo__plan_guard *guard = &plan->guards[i];
        if (!guard->has_value || guard->bytes == 0) continue;
        if (!tensors[guard->input].data) return false; /* nobody vouches for it */
        if (memcmp(guard->value, tensors[guard->input].data, (size_t)guard->bytes) != 0) return false;
    }
    return true;
}

bool rondo__session_plan_fits(const rondo_plan *plan, const rondo_tensor_view *inputs,
                              const rondo__session_tensor *tensors) {
    for (uint32_t i = 0; i < plan->input_count; i++) {
        const rondo__plan_port *port = &plan->inputs[i];
        if (port->rank != inputs[i].rank) return false;
        if (port->rank > 0 && memcmp(port->dims, inputs[i].shape, (size_t)port->rank * sizeof *port->dims) != 0) {
            return false;
        }
    }
    return specialisation_guards_hold(plan, tensors);
}

bool rondo__specialisation_fits(const rondo__specialisation *s, const rondo_tensor_view *inputs,
                                const rondo__session_tensor *tensors) {
    for (uint32_t i = 0; i < s->input_count; i++) {
        const rondo_tensor_view *made = &s->inputs[i], *now = &inputs[i];
        if (made->dtype != now->dtype || made->rank != now->rank) return false;
        if (made->rank > 0 && memcmp(made->shape, now->shape, (size_t)made->rank * sizeof *made->shape) != 0)
            return false;
    }
    if (!s->plan) return true;
    return s->inputs ? specialisation_guards_hold(s->plan, tensors)
                     : rondo__session_plan_fits(s->plan, inputs, tensors);
}
