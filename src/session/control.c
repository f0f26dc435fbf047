/* SPDX-License-Identifier: Apache-2.0
 *
 * If, Loop, Scan and SequenceMap between plans: bodies are graphs of their own, values go from one trip to the next by
 * reference. */
#include <inttypes.h>
#include <string.h>

#include "ir/ir.h"
#include "session/region.h"

#define CONTROL_TRIPS_MAX ((size_t)1 << 40) /* of which something is kept */

/* -------------------------------------------------------------------------------------------------------- bodies */

/* One run of a body: its own inputs, then what it takes from around it. */
typedef struct control_body {
    const rondo__region_step *s;
    rondo__session_graph *graph;
    uint32_t own, captured, outputs;
    rondo_value **inputs; /* own + captured; none of them is retained here */
    rondo_value **results;
} control_body;

static rondo_status control_body_open(const rondo__region_step *s, uint32_t index, control_body *body) {
    const rondo__compile_body *given = &s->step->bodies[index];
    void *memory = NULL;
    *body = (control_body){.s = s, .graph = s->bodies[index], .captured = given->captured_count};
    body->own = (uint32_t)given->graph->inputs.count - given->captured_count;
    body->outputs = (uint32_t)given->graph->outputs.count;
    size_t count = (size_t)body->own + body->captured + body->outputs;
    RONDO__TRY(rondo__allocate_array(&s->session->allocator, count, sizeof(rondo_value *), &memory));
    body->inputs = memory;
    body->results = body->inputs + body->own + body->captured;
    for (uint32_t i = 0; i < body->captured; i++) body->inputs[body->own + i] = s->captured[index][i];
    return RONDO_OK;
}

static rondo_status control_body_run(const control_body *body) {
    return rondo__region_run(body->s->session, body->graph, body->inputs, body->results);
}

static void control_body_close(const control_body *body) {
    size_t count = (size_t)body->own + body->captured + body->outputs;
    rondo__free(&body->s->session->allocator, body->inputs, count * sizeof(rondo_value *));
}

static rondo_status control_fits(const control_body *body, uint32_t own, uint32_t outputs_min) {
    if (body->own == own && body->outputs >= outputs_min) return RONDO_OK;
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                       "its body takes %u values and gives %u; the node asks for %u, and %u or more", body->own,
                       body->outputs, own, outputs_min);
}

static bool control_wanted(const rondo__region_step *s, uint32_t output) {
    return output < s->step->output_count && s->step->outputs[output] != RONDO__COMPILE_SLOT_NONE;
}

/* Takes the value: to the output where it is wanted. */
static void control_give(const rondo__region_step *s, uint32_t output, rondo_value *value) {
    if (control_wanted(s, output)) s->outputs[output] = value;
    else rondo_value_release(value);
}

rondo_status rondo__region_if(const rondo__region_step *s) {
    control_body body;
    int64_t taken = 0;
    uint32_t index = 0;
    if (!rondo__region_number(s->inputs[0], &taken) || s->inputs[0]->dtype != RONDO_DTYPE_BOOL) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its condition is not one bool");
    }
    while (index < s->step->body_count &&
           strcmp(s->step->bodies[index].attribute, taken ? "then_branch" : "else_branch") != 0) {
        index++;
    }
    if (index == s->step->body_count) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "one of its branches is missing");
    RONDO__TRY(control_body_open(s, index, &body));
    rondo_status status = control_fits(&body, 0, s->step->output_count);
    if (!status) status = control_body_run(&body);
    for (uint32_t i = 0; i < body.outputs && !status; i++) control_give(s, i, body.results[i]);
    control_body_close(&body);
    return status;
}

/* ----------------------------------------------------------------------------------------------- what is collected */

/* What trips leave behind, a list for each output that is stacked in the end. */
typedef struct control_lists {
    rondo__buffer *lists; /* rondo_value * */
    uint32_t count;
} control_lists;

static rondo_status control_lists_open(const rondo_allocator *allocator, uint32_t count, control_lists *lists) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(allocator, count, sizeof(rondo__buffer), &memory));
    lists->lists = memory;
    lists->count = count;
    for (uint32_t i = 0; i < count; i++) {
        rondo__buffer_init(&lists->lists[i], allocator, sizeof(rondo_value *), CONTROL_TRIPS_MAX);
    }
    return RONDO_OK;
}

static void control_lists_close(const rondo_allocator *allocator, control_lists *lists) {
    for (uint32_t i = 0; i < lists->count; i++) {
        rondo__values_release(lists->lists[i].data, lists->lists[i].count);
        rondo__buffer_deinit(&lists->lists[i]);
    }
    rondo__free(allocator, lists->lists, lists->count * sizeof(rondo__buffer));
}

/* Takes the value, also where it fails. */
static rondo_status control_collect(rondo__buffer *list, rondo_value *value) {
    rondo_status status = RONDO_OK;
    if (value->kind != RONDO_VALUE_TENSOR) status = RONDO__FAIL(UNSUPPORTED, INPUT, "only tensors can be stacked");
    if (!status) status = rondo__buffer_append(list, &value, 1);
    if (status) rondo_value_release(value);
    return status;
}

/* Nothing ran: the shape is what the body declares, with no place along the new axis, and none where it is open. */
static rondo_status control_stack_nothing(const control_body *body, uint32_t result, int64_t axis,
                                          rondo_value **out_value) {
    const rondo_ir_graph *graph = body->graph->graph;
    const rondo__ir_type *type = &rondo__ir_value_at(graph, rondo__ir_output_at(graph, result))->type;
    int64_t dims[RONDO_RANK_MAX] = {0};
    int32_t rank = type->rank < 0 ? 1 : type->rank + 1;
    if (type->dtype == RONDO_DTYPE_UNDEFINED || rank > RONDO_RANK_MAX) {
        return RONDO__FAIL(UNSUPPORTED, INPUT,
                           "it made no trip, and its body does not declare the type of what it collects (output %u)",
                           result);
    }
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) axis = 0;
    for (int32_t i = 0, from = 0; i < rank && type->rank >= 0; i++) {
        if (i != axis) dims[i] = type->dims[from].value < 0 ? 0 : type->dims[from].value;
        from += i != axis;
    }
    return rondo__value_tensor(&body->s->session->allocator, type->dtype, rank, dims, out_value);
}

static rondo_status control_stack(const control_body *body, rondo__buffer *list, uint32_t result, int64_t axis,
                                  bool backwards, rondo_value **out_value) {
    rondo_value **items = list->data;
    if (list->count == 0) return control_stack_nothing(body, result, axis, out_value);
    if (list->count > UINT32_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "%zu trips are too many to stack", list->count);
    for (size_t i = 0; i < list->count / 2 && backwards; i++) {
        rondo_value *swapped = items[i];
        items[i] = items[list->count - 1 - i];
        items[list->count - 1 - i] = swapped;
    }
    return rondo__value_join(&body->s->session->allocator, items, (uint32_t)list->count, axis, true, out_value);
}

/* ---------------------------------------------------------------------------------------------------------- Loop */

/* The values that a trip gets from the one before; they are retained here. */
typedef struct control_loop {
    const rondo__region_step *s;
    control_body body;
    control_lists lists;
    uint32_t carried;
    rondo_value **values;
    bool goes_on;
} control_loop;

static rondo_status control_scalar(const rondo__region_step *s, rondo_dtype dtype, int64_t number,
                                   rondo_value **out_value) {
    RONDO__TRY(rondo__value_tensor(&s->session->allocator, dtype, 0, NULL, out_value));
    if (dtype == RONDO_DTYPE_BOOL) *(uint8_t *)(*out_value)->data = number != 0;
    else *(int64_t *)(*out_value)->data = number;
    return RONDO_OK;
}

/* The results of a trip become the values of the next one; the rest is collected. All are taken. */
static rondo_status control_loop_take(control_loop *loop) {
    rondo_value **results = loop->body.results;
    int64_t goes_on = 0;
    rondo_status status = RONDO_OK;
    if (!rondo__region_number(results[0], &goes_on) || results[0]->dtype != RONDO_DTYPE_BOOL) {
        status = RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the condition that its body gives is not one bool");
    }
    loop->goes_on = goes_on != 0;
    rondo_value_release(results[0]);
    for (uint32_t i = 0; i < loop->carried; i++) {
        rondo_value_release(loop->values[i]);
        loop->values[i] = results[1u + i];
    }
    for (uint32_t i = 0; i < loop->lists.count; i++) {
        rondo_value *value = results[1u + loop->carried + i];
        if (status || !control_wanted(loop->s, loop->carried + i)) rondo_value_release(value);
        else status = control_collect(&loop->lists.lists[i], value);
    }
    return status;
}

static rondo_status control_loop_trip(control_loop *loop, int64_t trip) {
    rondo_value *counter[2] = {NULL, NULL};
    rondo_status status = control_scalar(loop->s, RONDO_DTYPE_I64, trip, &counter[0]);
    if (!status) status = control_scalar(loop->s, RONDO_DTYPE_BOOL, 1, &counter[1]);
    memcpy(loop->body.inputs, counter, sizeof counter);
    for (uint32_t i = 0; i < loop->carried; i++) loop->body.inputs[2u + i] = loop->values[i];
    if (!status) status = control_body_run(&loop->body);
    rondo__values_release(counter, 2);
    if (status) return rondo__status_note(status, "in trip %" PRId64, trip);
    return control_loop_take(loop);
}

/* What the last trip left, to the outputs that are wanted. */
static void control_give_carried(const rondo__region_step *s, const control_loop *loop) {
    for (uint32_t i = 0; i < loop->carried; i++) {
        rondo_value_retain(loop->values[i]);
        control_give(s, i, loop->values[i]);
    }
}

static rondo_status control_loop_run(control_loop *loop) {
    const rondo__region_step *s = loop->s;
    int64_t trips = INT64_MAX, condition = 1;
    if (s->inputs[0] && (!rondo__region_number(s->inputs[0], &trips) || s->inputs[0]->dtype != RONDO_DTYPE_I64)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its number of trips is not one int64");
    }
    if (s->step->input_count > 1 && s->inputs[1] &&
        (!rondo__region_number(s->inputs[1], &condition) || s->inputs[1]->dtype != RONDO_DTYPE_BOOL)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its condition is not one bool");
    }
    loop->goes_on = condition != 0;
    for (int64_t trip = 0; trip < trips && loop->goes_on; trip++) RONDO__TRY(control_loop_trip(loop, trip));
    control_give_carried(s, loop);
    for (uint32_t i = 0; i < loop->lists.count; i++) {
        uint32_t output = loop->carried + i;
        if (!control_wanted(s, output)) continue;
        RONDO__TRY(control_stack(&loop->body, &loop->lists.lists[i], 1u + output, 0, false, &s->outputs[output]));
    }
    return RONDO_OK;
}

static rondo_status control_loop_values(control_loop *loop, uint32_t carried, rondo_value *const *initial) {
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_array(&loop->s->session->allocator, carried, sizeof(rondo_value *), &memory));
    loop->values = memory;
    loop->carried = carried;
    for (uint32_t i = 0; i < carried; i++) {
        loop->values[i] = initial[i];
        rondo_value_retain(initial[i]);
        if (!initial[i]) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "value %u that it carries is absent", i);
    }
    return RONDO_OK;
}

static void control_loop_close(control_loop *loop) {
    const rondo_allocator *allocator = &loop->s->session->allocator;
    if (loop->values) rondo__values_release(loop->values, loop->carried);
    rondo__free(allocator, loop->values, loop->carried * sizeof(rondo_value *));
    control_lists_close(allocator, &loop->lists);
    control_body_close(&loop->body);
}

rondo_status rondo__region_loop(const rondo__region_step *s) {
    control_loop loop = {.s = s};
    uint32_t carried = s->step->input_count > 2 ? s->step->input_count - 2 : 0;
    RONDO__TRY(control_body_open(s, 0, &loop.body));
    rondo_status status = control_fits(&loop.body, 2u + carried, 1u + carried);
    if (!status && 1u + s->step->output_count > loop.body.outputs) {
        status = RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its body gives fewer values than it has outputs");
    }
    if (!status) {
        status = control_lists_open(&s->session->allocator, loop.body.outputs - 1u - carried, &loop.lists);
    }
    if (!status) status = control_loop_values(&loop, carried, s->inputs + 2);
    if (!status) status = control_loop_run(&loop);
    control_loop_close(&loop);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- Scan */

static int64_t control_entry(const rondo__region_step *s, const char *name, uint32_t index) {
    for (uint32_t i = 0; i < s->step->attribute_count; i++) {
        const rondo_attribute *a = &s->step->attributes[i];
        if (a->kind == RONDO_ATTRIBUTE_INTS && strcmp(a->name, name) == 0) {
            return index < a->count ? a->value.ints[index] : 0;
        }
    }
    return 0;
}

/* The axis of scan input `i`, which has as many places as there are trips. */
static rondo_status control_scan_axis(const rondo__region_step *s, const rondo_value *value, uint32_t i,
                                      int64_t *out_axis, int64_t *trips) {
    int64_t axis = control_entry(s, "scan_input_axes", i);
    if (!value || value->kind != RONDO_VALUE_TENSOR) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "scan input %u is no tensor", i);
    }
    if (axis < -(int64_t)value->rank || axis >= value->rank) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "scan input %u has %d axes, axis %" PRId64 " is none of them", i,
                           value->rank, axis);
    }
    *out_axis = axis < 0 ? axis + value->rank : axis;
    if (*trips >= 0 && *trips != value->dims[*out_axis]) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "scan input %u has %" PRId64 " places, another one %" PRId64, i,
                           value->dims[*out_axis], *trips);
    }
    *trips = value->dims[*out_axis];
    return RONDO_OK;
}

static rondo_status control_scan_trip(control_loop *loop, uint32_t scanned, int64_t trip) {
    const rondo__region_step *s = loop->s;
    rondo_value **slices = loop->body.inputs + loop->carried;
    rondo_status status = RONDO_OK;
    uint32_t cut = 0;
    for (uint32_t i = 0; i < loop->carried; i++) loop->body.inputs[i] = loop->values[i];
    for (; cut < scanned && !status; cut++) {
        const rondo_value *value = s->inputs[loop->carried + cut];
        int64_t axis = 0, trips = -1;
        status = control_scan_axis(s, value, cut, &axis, &trips);
        int64_t place = control_entry(s, "scan_input_directions", cut) ? trips - 1 - trip : trip;
        if (!status) {
            status = rondo__value_cut(&s->session->allocator, value, (int32_t)axis, place, 1, true, &slices[cut]);
        }
        if (status) break;
    }
    if (!status) status = control_body_run(&loop->body);
    rondo__values_release(slices, cut);
    if (status) return rondo__status_note(status, "in trip %" PRId64, trip);
    for (uint32_t i = 0; i < loop->carried; i++) {
        rondo_value_release(loop->values[i]);
        loop->values[i] = loop->body.results[i];
    }
    for (uint32_t i = 0; i < loop->lists.count; i++) {
        rondo_value *value = loop->body.results[loop->carried + i];
        if (status || !control_wanted(s, loop->carried + i)) rondo_value_release(value);
        else status = control_collect(&loop->lists.lists[i], value);
    }
    return status;
}

static rondo_status control_scan_run(control_loop *loop, uint32_t scanned) {
    const rondo__region_step *s = loop->s;
    int64_t trips = -1, axis = 0;
    for (uint32_t i = 0; i < scanned; i++) {
        RONDO__TRY(control_scan_axis(s, s->inputs[loop->carried + i], i, &axis, &trips));
    }
    for (int64_t trip = 0; trip < trips; trip++) RONDO__TRY(control_scan_trip(loop, scanned, trip));
    control_give_carried(s, loop);
    for (uint32_t i = 0; i < loop->lists.count; i++) {
        uint32_t output = loop->carried + i;
        if (!control_wanted(s, output)) continue;
        RONDO__TRY(control_stack(&loop->body, &loop->lists.lists[i], output, control_entry(s, "scan_output_axes", i),
                                 control_entry(s, "scan_output_directions", i) != 0, &s->outputs[output]));
    }
    return RONDO_OK;
}

rondo_status rondo__region_scan(const rondo__region_step *s) {
    control_loop loop = {.s = s};
    int64_t scanned = rondo__region_int(s, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > (int64_t)s->step->input_count) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "num_scan_inputs is %" PRId64 ", it has %u inputs", scanned,
                           s->step->input_count);
    }
    uint32_t carried = s->step->input_count - (uint32_t)scanned;
    RONDO__TRY(control_body_open(s, 0, &loop.body));
    rondo_status status = control_fits(&loop.body, s->step->input_count, carried);
    if (!status && s->step->output_count > loop.body.outputs) {
        status = RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its body gives fewer values than it has outputs");
    }
    if (!status) status = control_lists_open(&s->session->allocator, loop.body.outputs - carried, &loop.lists);
    if (!status) status = control_loop_values(&loop, carried, s->inputs);
    if (!status) status = control_scan_run(&loop, (uint32_t)scanned);
    control_loop_close(&loop);
    return status;
}

/* --------------------------------------------------------------------------------------------------- SequenceMap */

static rondo_status control_map_run(const rondo__region_step *s, control_body *body, control_lists *lists) {
    const rondo_value *first = s->inputs[0];
    for (uint32_t n = 0; n < first->count; n++) {
        for (uint32_t i = 0; i < body->own; i++) {
            rondo_value *given = s->inputs[i];
            bool sequence = given && given->kind == RONDO_VALUE_SEQUENCE;
            body->inputs[i] = sequence ? rondo_value_item(given, n) : given;
            if (!body->inputs[i]) {
                return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "input %u has %u tensors, the first one %u", i,
                                   rondo_value_count(given), first->count);
            }
        }
        RONDO__TRY_NOTE(control_body_run(body), "at tensor %u", n);
        rondo_status status = RONDO_OK;
        for (uint32_t i = 0; i < body->outputs; i++) {
            if (status || i >= lists->count) rondo_value_release(body->results[i]);
            else status = control_collect(&lists->lists[i], body->results[i]);
        }
        if (status) return status;
    }
    for (uint32_t i = 0; i < lists->count; i++) {
        rondo__buffer *list = &lists->lists[i];
        rondo_dtype dtype = RONDO_DTYPE_UNDEFINED;
        if (!control_wanted(s, i)) continue;
        if (list->count) dtype = (*RONDO__BUFFER_AT(list, rondo_value *, 0))->dtype;
        RONDO__TRY(rondo__value_list(&s->session->allocator, RONDO_VALUE_SEQUENCE, dtype, list->data,
                                     (uint32_t)list->count, &s->outputs[i]));
    }
    return RONDO_OK;
}

rondo_status rondo__region_map(const rondo__region_step *s) {
    control_body body;
    control_lists lists = {NULL, 0};
    if (!s->inputs[0] || s->inputs[0]->kind != RONDO_VALUE_SEQUENCE) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "its first input is no sequence");
    }
    RONDO__TRY(control_body_open(s, 0, &body));
    rondo_status status = control_fits(&body, s->step->input_count, s->step->output_count);
    if (!status) status = control_lists_open(&s->session->allocator, s->step->output_count, &lists);
    if (!status) status = control_map_run(s, &body, &lists);
    control_lists_close(&s->session->allocator, &lists);
    control_body_close(&body);
    return status;
}
