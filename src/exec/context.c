/* SPDX-License-Identifier: Apache-2.0
 *
 * Executable x memory: an arena, and the plan's steps with every address baked. The same arguments are kept twice, as a
 * call list for runs and as calls for eager runs and captures, so that both see the same words in the same order. */
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "exec/exec.h"
#include "graph/lanes.h"

/* What the address of a tensor without elements is: no kernel looks there. */
#define CONTEXT_NOWHERE 64u

/* ------------------------------------------------------------------------------------------------------ building */

static void context_value(rondo__exec_call *step, uint64_t word) {
    step->arguments[step->count] = (rondo_argument){word, 0, RONDO_ACCESS_VALUE, 0};
    step->ports[step->count++] = RONDO__PLAN_NONE;
}

static void context_memory(rondo__exec_call *step, uint64_t address, uint64_t bytes, uint32_t access, uint32_t port) {
    step->arguments[step->count] = (rondo_argument){address, bytes, access, 0};
    step->ports[step->count++] = port;
}

/* The word of an argument that follows a port is its distance from the port. */
rondo_status rondo__context_operand(const rondo_context *context, uint32_t target, const rondo__plan_operand *operand,
                                    uint32_t access, rondo__exec_call *step) {
    const rondo_plan *plan = context->executable->plan;
    if (operand->buffer == RONDO__PLAN_NONE) {
        context_value(step, 0);
        return RONDO_OK;
    }
    const rondo__plan_buffer *buffer = &plan->buffers[operand->buffer];
    if (!operand->bytes) {
        context_value(step, CONTEXT_NOWHERE);
        return RONDO_OK;
    }
    switch (buffer->kind) {
    case RONDO__PLAN_INPUT: context_memory(step, operand->offset, operand->bytes, access, buffer->slot); break;
    case RONDO__PLAN_OUTPUT:
        context_memory(step, operand->offset, operand->bytes, access, plan->input_count + buffer->slot);
        break;
    case RONDO__PLAN_TEMPORARY:
        context_memory(step, context->arenas[target].base + buffer->offset + operand->offset, operand->bytes, access,
                       RONDO__PLAN_NONE);
        break;
    default: {
        uint64_t address = context->executable->targets[target].constants[operand->buffer];
        if (!address)
            return RONDO__FAIL(INTERNAL, LOADING, "constant '%s' has no data and is not absorbed", buffer->name);
        context_memory(step, address + operand->offset, operand->bytes, access, RONDO__PLAN_NONE);
    }
    }
    return RONDO_OK;
}

/* The words in the order that plugin.h states: inputs, outputs, scratch, packed. */
static rondo_status context_make_step(const rondo_context *context, uint32_t index, rondo__exec_call *step) {
    const rondo__plan_step *s = &context->executable->plan->steps[index];
    const uint32_t target = rondo__plan_target_of(context->executable->plan, s);
    step->count = 0;
    for (uint32_t i = 0; i < s->input_count; i++) {
        if (i < 64u && ((s->absorbed_inputs >> i) & 1u)) context_value(step, 0);
        else RONDO__TRY(rondo__context_operand(context, target, &s->inputs[i], RONDO_ACCESS_READ, step));
    }
    for (uint32_t i = 0; i < s->output_count; i++)
        RONDO__TRY(rondo__context_operand(context, target, &s->outputs[i], RONDO_ACCESS_WRITE, step));
    if (s->scratch_bytes)
        context_memory(step, context->arenas[target].base + s->scratch_offset, s->scratch_bytes, RONDO_ACCESS_BOTH,
                       RONDO__PLAN_NONE);
    if (s->packed_bytes)
        context_memory(step, context->executable->steps[index].packed, s->packed_bytes, RONDO_ACCESS_READ,
                       RONDO__PLAN_NONE);
    return RONDO_OK;
}

rondo_status rondo__context_add_step(rondo_context *context, rondo__call_list *list, uint32_t index, size_t *used) {
    const rondo__plan_step *s = &context->executable->plan->steps[index];
    rondo_call *call = &context->calls[index];
    rondo__exec_call step;
    RONDO__TRY(context_make_step(context, index, &step));
    *call = (rondo_call)RONDO_CALL_INIT;
    call->kernel = context->executable->steps[index].kernel;
    call->argument_count = step.count;
    call->arguments = &context->arguments[*used];
    call->name = s->node_name && *s->node_name ? s->node_name : s->operator_name;
    if (step.count) memcpy(&context->arguments[*used], step.arguments, step.count * sizeof(rondo_argument));
    RONDO__TRY(rondo__call_list_append_call(list, call));
    for (uint32_t i = 0; i < step.count; i++) {
        if (step.ports[i] == RONDO__PLAN_NONE) continue;
        rondo__exec_mention mention = {(uint32_t)(*used + i), step.ports[i], step.arguments[i].word};
        RONDO__TRY(rondo__buffer_append(&context->mentions, &mention, 1));
        RONDO__TRY(rondo__call_list_argument_slot(list, i, step.ports[i], mention.addend));
        context->ports[step.ports[i]].required = true;
    }
    *used += step.count;
    return RONDO_OK;
}

rondo_status rondo__context_add_slots(rondo_context *context, rondo__call_list *list) {
    const rondo_plan *plan = context->executable->plan;
    for (uint32_t i = 0; i < context->port_count; i++) {
        uint64_t bytes = i < plan->input_count ? plan->inputs[i].bytes : plan->outputs[i - plan->input_count].bytes;
        uint32_t slot;
        RONDO__TRY(rondo__call_list_add_slot(list, 0, bytes ? bytes : 1u, &slot));
    }
    return RONDO_OK;
}

static rondo_status context_add_ports(rondo_context *context) {
    const rondo_plan *plan = context->executable->plan;
    void *memory;
    if (__builtin_add_overflow(plan->input_count, plan->output_count, &context->port_count))
        return RONDO__FAIL(OUT_OF_RANGE, LOADING, "the plan has too many inputs and outputs");
    RONDO__TRY(rondo__allocate_array(&context->allocator, context->port_count, sizeof(rondo__exec_port), &memory));
    context->ports = memory;
    for (uint32_t i = 0; i < context->port_count; i++) {
        const rondo__plan_port *port = i < plan->input_count ? &plan->inputs[i] : &plan->outputs[i - plan->input_count];
        uint32_t bytes = rondo_dtype_bits(port->dtype) / 8u;
        context->ports[i].alignment = bytes > 8u ? 8u : bytes ? bytes : 1u; /* complex numbers are pairs */
    }
    return rondo__context_add_slots(context, context->list);
}

static rondo_status context_take_arena(rondo_context *context, uint32_t target) {
    const rondo_plan *plan = context->executable->plan;
    rondo__exec_arena *arena = &context->arenas[target];
    uint64_t whole, bytes = rondo__plan_arena_of(plan, target);
    if (!bytes) return RONDO_OK;
    if (!rondo__checked_add_u64(bytes, RONDO__EXEC_ALIGNMENT - 1u, &whole))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "the arena of plan '%s' is larger than any memory", plan->name);
    RONDO__TRY_NOTE(rondo__exec_allocate(&context->executable->targets[target].memory, whole, &arena->allocation),
                    "for the arena of plan '%s'", plan->name);
    arena->bytes = whole;
    arena->base = (arena->allocation + RONDO__EXEC_ALIGNMENT - 1u) & ~(uint64_t)(RONDO__EXEC_ALIGNMENT - 1u);
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- lanes */

/* What is needed while the steps of several lanes are added. */
typedef struct context_order {
    rondo__order *order;                  /* null: one lane */
    uint32_t *points;                     /* an event of the plan: where it was recorded */
    uint32_t begin;                       /* where the run begins, in lane 0 */
    uint32_t last[RONDO__PLAN_LANES_MAX]; /* a lane: its last step + 1 */
} context_order;

static rondo_status context_order_begin(rondo_context *context, context_order *o) {
    const rondo_plan *plan = context->executable->plan;
    void *memory;
    if (plan->lane_count == 1) return RONDO_OK;
    RONDO__TRY(rondo__allocate_array(&context->allocator, plan->event_count, sizeof(uint32_t), &memory));
    o->points = memory;
    RONDO__TRY(rondo__call_list_order(context->list, &o->order));
    for (uint32_t lane = 1; lane < plan->lane_count; lane++) {
        uint32_t made;
        RONDO__TRY(rondo__order_add_lane(o->order, &made));
    }
    return rondo__order_point(o->order, 0, 0, &o->begin);
}

/* A lane that waits for none of the others when it begins waits for the stream that the run was given. */
static rondo_status context_order_before(const context_order *o, const rondo__plan_step *step, uint32_t index) {
    if (step->lane && !step->wait_count && !o->last[step->lane])
        RONDO__TRY(rondo__order_wait(o->order, step->lane, index, o->begin));
    for (uint32_t i = 0; i < step->wait_count; i++)
        RONDO__TRY(rondo__order_wait(o->order, step->lane, index, o->points[step->waits[i]]));
    return RONDO_OK;
}

/* The stream that the run was given comes after all: the lane that ends last is asked first, as it may know of others. */
static rondo_status context_order_join(const rondo_context *context, context_order *o) {
    const rondo_plan *plan = context->executable->plan;
    for (uint32_t i = 1; i < plan->lane_count; i++) {
        uint32_t lane = 0, point;
        for (uint32_t l = 1; l < plan->lane_count; l++)
            if (o->last[l] > (lane ? o->last[lane] : 0)) lane = l;
        if (!lane) break;
        o->last[lane] = 0;
        RONDO__TRY(rondo__order_point(o->order, lane, plan->step_count, &point));
        RONDO__TRY(rondo__order_wait(o->order, 0, plan->step_count, point));
    }
    return RONDO_OK;
}

static rondo_status context_add_lane_steps(rondo_context *context, context_order *o) {
    const rondo_plan *plan = context->executable->plan;
    size_t used = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const rondo__plan_step *step = &plan->steps[i];
        if (o->order) RONDO__TRY(context_order_before(o, step, i));
        rondo__call_list_lane(context->list, step->lane);
        RONDO__TRY(rondo__context_add_step(context, context->list, i, &used));
        o->last[step->lane] = i + 1u;
        if (o->order && step->record != RONDO__PLAN_NONE)
            RONDO__TRY(rondo__order_point(o->order, step->lane, i + 1u, &o->points[step->record]));
    }
    return o->order ? context_order_join(context, o) : RONDO_OK;
}

static rondo_status context_add_steps(rondo_context *context) {
    context_order o = {.order = NULL};
    rondo_status status = context_order_begin(context, &o);
    if (!status) status = context_add_lane_steps(context, &o);
    if (o.points) rondo__free(&context->allocator, o.points, context->executable->plan->event_count * sizeof(uint32_t));
    return status;
}

static rondo_status context_build(rondo_context *context) {
    const rondo_plan *plan = context->executable->plan;
    void *memory;
    RONDO__TRY(rondo__ticket_prepare(&context->ticket));
    for (uint32_t t = 0; t < context->executable->target_count; t++) RONDO__TRY(context_take_arena(context, t));
    RONDO__TRY(rondo__call_list_create(context->device, NULL, &context->list));
    RONDO__TRY(context_add_ports(context));
    RONDO__TRY(rondo__allocate_array(&context->allocator, plan->step_count, sizeof(rondo_call), &memory));
    context->calls = memory;
    for (uint32_t i = 0; i < plan->step_count; i++) context->argument_count += rondo__plan_word_count(&plan->steps[i]);
    if (context->argument_count > UINT32_MAX)
        return RONDO__FAIL(OUT_OF_RANGE, LOADING, "plan '%s' has too many arguments", plan->name);
    RONDO__TRY(rondo__allocate_array(&context->allocator, context->argument_count, sizeof(rondo_argument), &memory));
    context->arguments = memory;
    RONDO__TRY(plan->target_count > 1 ? rondo__parts_create(context) : context_add_steps(context));
    for (uint32_t i = 0; i < context->port_count; i++) context->unbound += context->ports[i].required;
    RONDO__TRY(rondo__call_list_seal(context->list));
    if (plan->lane_count == 1) return RONDO_OK;
    return rondo__lanes_create(context->device, rondo__call_list_lanes(context->list), &context->lanes);
}

/* --------------------------------------------------------------------------------------------------------- life */

/* A run touches what its ports are bound to, which stays as it is while one flies; arena and weights are nobody else's. */
static bool context_uses(const rondo__flight *flight, uint64_t address, uint64_t bytes) {
    const rondo_context *context =
        (const rondo_context *)(const void *)((const char *)flight - offsetof(rondo_context, ticket.flight));
    const rondo_plan *plan = context->executable->plan;
    for (uint32_t i = 0; i < context->port_count; i++) {
        const rondo__exec_port *port = &context->ports[i];
        uint64_t length = i < plan->input_count ? plan->inputs[i].bytes : plan->outputs[i - plan->input_count].bytes;
        if (port->required &&
            (address < port->address ? port->address - address < bytes : address - port->address < length))
            return true;
    }
    return false;
}

rondo_status rondo_context_create(rondo_executable *executable, rondo_context **out_context) {
    void *memory;
    if (!executable || !out_context)
        return RONDO__FAIL(INVALID_ARGUMENT, LOADING, "a context needs an executable and a place to be put");
    RONDO__TRY(rondo__allocate_zeroed(&executable->allocator, sizeof(rondo_context), &memory));
    rondo_context *context = memory;
    rondo__ref_init(&context->references);
    context->allocator = executable->allocator;
    context->executable = executable;
    context->device = executable->device;
    rondo_executable_retain(executable);
    rondo__buffer_init(&context->mentions, &context->allocator, sizeof(rondo__exec_mention), UINT32_MAX);
    rondo__ticket_init(&context->ticket, context->device);
    context->ticket.flight.uses = context_uses;
    rondo_status status = context_build(context);
    if (status) {
        rondo_context_release(context);
        return rondo__status_note(status, "context of plan '%s'", executable->plan->name);
    }
    *out_context = context;
    return RONDO_OK;
}

void rondo_context_retain(rondo_context *context) {
    if (context) rondo__ref_retain(&context->references);
}

void rondo_context_release(rondo_context *context) {
    if (!context || !rondo__ref_release(&context->references)) return;
    rondo_allocator allocator = context->allocator;
    rondo_executable *executable = context->executable;
    rondo__ticket_deinit(&context->ticket);
    rondo__parts_destroy(context);
    rondo__lanes_destroy(context->lanes);
    rondo__call_list_destroy(context->list);
    rondo__buffer_deinit(&context->mentions);
    rondo__free(&allocator, context->arguments, context->argument_count * sizeof(rondo_argument));
    rondo__free(&allocator, context->calls, executable->plan->step_count * sizeof(rondo_call));
    rondo__free(&allocator, context->ports, context->port_count * sizeof(rondo__exec_port));
    for (uint32_t t = 0; t < executable->target_count; t++)
        rondo__exec_free(&executable->targets[t].memory, context->arenas[t].allocation, context->arenas[t].bytes);
    rondo__free(&allocator, context, sizeof *context);
    rondo_executable_release(executable);
}

/* ------------------------------------------------------------------------------------------------------ binding */

static const rondo__plan_port *context_plan_port(const rondo_context *context, uint32_t port) {
    const rondo_plan *plan = context->executable->plan;
    return port < plan->input_count ? &plan->inputs[port] : &plan->outputs[port - plan->input_count];
}

static const char *context_side(const rondo_context *context, uint32_t port) {
    return port < context->executable->plan->input_count ? "input" : "output";
}

static rondo_status context_refuse_address(const rondo_context *context, uint32_t port, uint64_t address) {
    const rondo__plan_port *p = context_plan_port(context, port);
    if (!address)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s '%s' cannot be bound to null: it has %llu bytes",
                           context_side(context, port), p->name, (unsigned long long)p->bytes);
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s '%s': address 0x%llx is not aligned to %llu bytes, as its %s needs",
                       context_side(context, port), p->name, (unsigned long long)address,
                       (unsigned long long)context->ports[port].alignment, rondo_dtype_name(p->dtype));
}

static rondo_status context_bind(rondo_context *context, uint32_t port, uint64_t address) {
    rondo__exec_port *p = &context->ports[port];
    if (!address && !context_plan_port(context, port)->bytes) return RONDO_OK;
    if (!address || address % p->alignment) return context_refuse_address(context, port, address);
    if (address == p->address) return RONDO_OK;
    RONDO__TRY(rondo__ticket_wait(&context->ticket));
    if (!p->address && p->required) context->unbound--;
    p->address = address;
    p->placed = false;
    context->moved = context->unplaced = true;
    rondo__call_list_bind(context->list, port, address);
    if (context->parts) rondo__parts_bind(context, port, address);
    return RONDO_OK;
}

rondo_status rondo_context_bind_input(rondo_context *context, uint32_t index, void *address) {
    if (!context) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "bind_input without a context");
    const rondo_plan *plan = context->executable->plan;
    if (index >= plan->input_count)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "plan '%s' has %u inputs: there is no input %u", plan->name,
                           (unsigned)plan->input_count, (unsigned)index);
    return context_bind(context, index, (uint64_t)(uintptr_t)address);
}

rondo_status rondo_context_bind_output(rondo_context *context, uint32_t index, void *address) {
    if (!context) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "bind_output without a context");
    const rondo_plan *plan = context->executable->plan;
    if (index >= plan->output_count)
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "plan '%s' has %u outputs: there is no output %u", plan->name,
                           (unsigned)plan->output_count, (unsigned)index);
    return context_bind(context, plan->input_count + index, (uint64_t)(uintptr_t)address);
}

/* ------------------------------------------------------------------------------------------------------ running */

/* A kernel may write its output while it still reads an input of the plan, so an output has memory of its own. */
static rondo_status context_place(rondo_context *context, uint32_t port) {
    const uint32_t inputs = context->executable->plan->input_count;
    const uint64_t from = context->ports[port].address, bytes = context_plan_port(context, port)->bytes;
    for (uint32_t i = 0; i < context->port_count; i++) {
        const rondo__exec_port *other = &context->ports[i];
        if (i == port || !other->required || (i < inputs && port < inputs)) continue;
        const uint64_t length = context_plan_port(context, i)->bytes;
        if (from - other->address >= length && other->address - from >= bytes) continue;
        const uint32_t output = port < inputs ? i : port, under = port < inputs ? port : i;
        return RONDO__FAIL(
            INVALID_ARGUMENT, INPUT,
            "output '%s' at 0x%llx lies over %s '%s' at 0x%llx: bind them to memory apart, and copy from "
            "one to the other between runs",
            context_plan_port(context, output)->name, (unsigned long long)context->ports[output].address,
            context_side(context, under), context_plan_port(context, under)->name,
            (unsigned long long)context->ports[under].address);
    }
    context->ports[port].placed = true;
    return RONDO_OK;
}

static rondo_status context_refuse_run(const rondo_context *context, const rondo_stream *stream) {
    for (uint32_t i = 0; i < context->port_count; i++)
        if (context->ports[i].required && !context->ports[i].address)
            return RONDO__FAIL(
                INVALID_STATE, INPUT, "%s '%s' is not bound: call rondo_context_bind_%s(context, %u, ...)",
                context_side(context, i), context_plan_port(context, i)->name, context_side(context, i),
                (unsigned)(i < context->executable->plan->input_count ? i
                                                                      : i - context->executable->plan->input_count));
    return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the context is of device '%s:%d', the stream of '%s:%d'",
                       context->device->properties.name, (int)context->device->properties.index,
                       stream->device->properties.name, (int)stream->device->properties.index);
}

/* The slow way into a run: something is missing, or ports were bound since the last one. */
static rondo_status context_ready(rondo_context *context, const rondo_stream *stream) {
    if (context->unbound || stream->device != context->device) return context_refuse_run(context, stream);
    for (uint32_t i = 0; i < context->port_count; i++)
        if (context->ports[i].required && !context->ports[i].placed) RONDO__TRY(context_place(context, i));
    context->unplaced = false;
    return RONDO_OK;
}

static rondo_status context_run_call(const rondo_context *context, rondo_stream *stream, uint32_t step,
                                     const rondo__exec_observer *observer) {
    const rondo_call *call = &context->calls[step];
    if (!observer) return rondo_stream_launch(stream, call);
    RONDO__TRY(observer->before(observer->self, step, call, &call));
    RONDO__TRY(rondo_stream_launch(stream, call));
    return observer->after(observer->self, step, stream);
}

/* observer null: nobody looks. */
rondo_status rondo__context_launch(const rondo_context *context, rondo_stream *stream, uint32_t step,
                                   const rondo__exec_observer *observer) {
    RONDO__TRY_NOTE(context_run_call(context, stream, step, observer), "step %u '%s' of plan '%s'", (unsigned)step,
                    context->calls[step].name, context->executable->plan->name);
    return RONDO_OK;
}

/* The records and waits between lanes that come before step `before`. A capture of the stream takes them for its own, and
 * the streams of the lanes join it. */
static rondo_status context_order_steps(const rondo_context *context, rondo_stream *stream, uint64_t before,
                                        size_t *next) {
    const rondo__buffer *steps = &rondo__call_list_lanes(context->list)->steps;
    for (; *next < steps->count; ++*next) {
        const rondo__order_step *step = RONDO__BUFFER_AT(steps, const rondo__order_step, *next);
        if (step->before > before) return RONDO_OK;
        rondo_stream *on = rondo__lanes_stream(context->lanes, step->lane, stream);
        rondo_event *event = context->lanes->events[step->event];
        RONDO__TRY_NOTE(step->wait ? rondo_event_wait(event, on) : rondo_event_record(event, on),
                        "where lane %u of plan '%s' %s before step %llu", (unsigned)step->lane,
                        context->executable->plan->name, step->wait ? "waits" : "is waited for",
                        (unsigned long long)before);
    }
    return RONDO_OK;
}

static rondo_status context_launch_lanes(const rondo_context *context, rondo_stream *stream) {
    const rondo_plan *plan = context->executable->plan;
    size_t next = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        RONDO__TRY(context_order_steps(context, stream, i, &next));
        RONDO__TRY(
            rondo__context_launch(context, rondo__lanes_stream(context->lanes, plan->steps[i].lane, stream), i, NULL));
    }
    return context_order_steps(context, stream, plan->step_count, &next);
}

/* A capture would not see what the host waits for. */
static rondo_status context_refuse_capture(const rondo_context *context, rondo_stream *stream) {
    return rondo__stream_refuse(
        stream, RONDO__FAIL(UNSUPPORTED, CAPTURE,
                            "plan '%s' runs on %u devices with copies through the host between them, which a capture "
                            "cannot hold: run it outside of one",
                            context->executable->plan->name, (unsigned)context->executable->target_count));
}

static rondo_status context_run_calls(rondo_context *context, rondo_stream *stream,
                                      const rondo__exec_observer *observer) {
    const rondo_plan *plan = context->executable->plan;
    if (context->moved) {
        for (size_t i = 0; i < context->mentions.count; i++) {
            const rondo__exec_mention *m = RONDO__BUFFER_AT(&context->mentions, const rondo__exec_mention, i);
            context->arguments[m->argument].word = context->ports[m->port].address + m->addend;
        }
        context->moved = false;
    }
    if (context->parts) return rondo__parts_run(context, stream, true, observer);
    /* Who watches each step has them one after the other: the order of the steps is one that the lanes allow. */
    if (!context->lanes || observer) {
        for (uint32_t i = 0; i < plan->step_count; i++) RONDO__TRY(rondo__context_launch(context, stream, i, observer));
        return RONDO_OK;
    }
    bool captured = rondo__stream_recorder(stream) != NULL;
    if (!captured) rondo__lanes_work_for(context->lanes, stream);
    rondo_status status = context_launch_lanes(context, stream);
    if (status && !captured) rondo__lanes_settle(context->lanes); /* what did go out is not joined */
    return status;
}

rondo_status rondo__context_run_observed(rondo_context *context, rondo_stream *stream,
                                         const rondo__exec_observer *observer) {
    if (!context || !stream) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "run_eager needs a context and a stream");
    if (context->unbound || context->unplaced || stream->device != context->device)
        RONDO__TRY(rondo__stream_refuse(stream, context_ready(context, stream)));
    if (rondo__stream_recorder(stream)) /* recorded: nothing flies */
        return context->parts ? context_refuse_capture(context, stream) : context_run_calls(context, stream, NULL);
    RONDO__TRY(rondo__ticket_before(&context->ticket, stream));
    rondo_status status = context_run_calls(context, stream, observer);
    return rondo__status_first(status, rondo__ticket_after(&context->ticket, stream));
}

rondo_status rondo_context_run_eager(rondo_context *context, rondo_stream *stream) {
    return rondo__context_run_observed(context, stream, NULL);
}

rondo_status rondo_context_run(rondo_context *context, rondo_stream *stream) {
    if (!context || !stream) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "run needs a context and a stream");
    if (context->unbound || context->unplaced || stream->device != context->device)
        RONDO__TRY(rondo__stream_refuse(stream, context_ready(context, stream)));
    if (rondo__stream_recorder(stream))
        return context->parts ? context_refuse_capture(context, stream) : context_run_calls(context, stream, NULL);
    RONDO__TRY(rondo__ticket_before(&context->ticket, stream));
    rondo_status status = context->parts ? rondo__parts_run(context, stream, false, NULL)
                                         : rondo__call_list_run_lanes(context->list, stream, context->lanes);
    if (context->ticket.immediate) return status;
    return rondo__status_first(status,
                               rondo__ticket_after(&context->ticket, stream)); /* part of it may be on its way */
}
