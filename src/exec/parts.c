/* SPDX-License-Identifier: Apache-2.0
 *
 * A context of a plan of several targets: a list for each segment, on the device of its target, and transfers before
 * them. The first target's stream is the caller's; the others have their own. No event reaches from one device to
 * another, so the host waits: once for each target that values come from, before what follows may read them. */
#include <string.h>

#include "base/checked.h"
#include "exec/exec.h"

static rondo_stream *parts_stream(const rondo_context *context, uint32_t target, rondo_stream *callers) {
    return target ? context->parts->streams[target] : callers;
}

/* --------------------------------------------------------------------------------------------------------- building */

static void parts_side(const rondo__exec_call *call, uint32_t index, uint64_t *address, uint32_t *port) {
    *address = call->arguments[index].word;
    *port = call->ports[index];
}

static rondo_status parts_add_transfer(rondo_context *context, uint32_t index) {
    const rondo_plan *plan = context->executable->plan;
    const rondo__plan_step *step = &plan->steps[index];
    const rondo__plan_operand *in = &step->inputs[0];
    rondo__exec_parts *parts = context->parts;
    rondo__exec_call call = {.count = 0};
    if (in->bytes == 0) return RONDO_OK;
    rondo__exec_transfer *transfer = &parts->transfers[parts->transfer_count];
    *transfer = (rondo__exec_transfer){.step = index, .to = rondo__plan_target_of(plan, step), .bytes = in->bytes};
    const rondo__plan_buffer *from = &plan->buffers[in->buffer];
    transfer->from = from->kind == RONDO__PLAN_TEMPORARY ? from->target : 0;
    RONDO__TRY(rondo__context_operand(context, transfer->from, in, RONDO_ACCESS_READ, &call));
    RONDO__TRY(rondo__context_operand(context, transfer->to, &step->outputs[0], RONDO_ACCESS_WRITE, &call));
    parts_side(&call, 0, &transfer->source, &transfer->from_port);
    parts_side(&call, 1, &transfer->destination, &transfer->to_port);
    if (transfer->from_port != RONDO__PLAN_NONE) context->ports[transfer->from_port].required = true;
    if (transfer->to_port != RONDO__PLAN_NONE) context->ports[transfer->to_port].required = true;
    RONDO__TRY(
        rondo__allocate_aligned(&context->allocator, (size_t)transfer->bytes, RONDO__EXEC_ALIGNMENT, &transfer->stage));
    parts->transfer_count++;
    return RONDO_OK;
}

static rondo_status parts_add_lists(rondo_context *context) {
    const rondo_plan *plan = context->executable->plan;
    rondo__exec_parts *parts = context->parts;
    for (; parts->list_count < plan->segment_count; parts->list_count++) {
        const uint32_t target = plan->segment_targets[parts->list_count];
        RONDO__TRY(rondo__call_list_create(context->executable->targets[target].device, NULL,
                                           &parts->lists[parts->list_count]));
        rondo_status status = rondo__context_add_slots(context, parts->lists[parts->list_count]);
        if (!status) continue;
        parts->list_count++;
        return status;
    }
    return RONDO_OK;
}

static rondo_status parts_fill(rondo_context *context) {
    const rondo_plan *plan = context->executable->plan;
    rondo__exec_parts *parts = context->parts;
    void *memory;
    size_t used = 0;
    RONDO__TRY(rondo__allocate_array(&context->allocator, plan->segment_count, sizeof *parts->lists, &memory));
    parts->lists = memory;
    RONDO__TRY(rondo__allocate_array(&context->allocator, plan->step_count, sizeof *parts->transfers, &memory));
    parts->transfers = memory;
    for (uint32_t t = 1; t < context->executable->target_count; t++)
        RONDO__TRY(rondo_stream_create(context->executable->targets[t].device, NULL, &parts->streams[t]));
    RONDO__TRY(parts_add_lists(context));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const rondo__plan_step *step = &plan->steps[i];
        RONDO__TRY(rondo__plan_is_transfer(step)
                       ? parts_add_transfer(context, i)
                       : rondo__context_add_step(context, parts->lists[step->segment], i, &used));
    }
    for (uint32_t i = 0; i < parts->list_count; i++) RONDO__TRY(rondo__call_list_seal(parts->lists[i]));
    return RONDO_OK;
}

rondo_status rondo__parts_create(rondo_context *context) {
    void *memory;
    RONDO__TRY(rondo__allocate_zeroed(&context->allocator, sizeof(rondo__exec_parts), &memory));
    context->parts = memory;
    return parts_fill(context);
}

void rondo__parts_destroy(rondo_context *context) {
    const rondo_plan *plan = context->executable->plan;
    const rondo_allocator *allocator = &context->allocator;
    rondo__exec_parts *parts = context->parts;
    if (!parts) return;
    for (uint32_t t = 1; t < context->executable->target_count; t++) {
        if (parts->streams[t]) RONDO__IGNORE(rondo_stream_synchronize(parts->streams[t]));
        rondo_stream_release(parts->streams[t]);
    }
    for (uint32_t i = 0; i < parts->list_count; i++) rondo__call_list_destroy(parts->lists[i]);
    for (uint32_t i = 0; i < parts->transfer_count; i++) {
        rondo__exec_transfer *transfer = &parts->transfers[i];
        rondo__free_aligned(allocator, transfer->stage, (size_t)transfer->bytes, RONDO__EXEC_ALIGNMENT);
    }
    if (parts->transfers) rondo__free(allocator, parts->transfers, plan->step_count * sizeof *parts->transfers);
    if (parts->lists) rondo__free(allocator, parts->lists, plan->segment_count * sizeof *parts->lists);
    rondo__free(allocator, parts, sizeof *parts);
    context->parts = NULL;
}

void rondo__parts_bind(const rondo_context *context, uint32_t port, uint64_t address) {
    for (uint32_t i = 0; i < context->parts->list_count; i++)
        rondo__call_list_bind(context->parts->lists[i], port, address);
}

/* ---------------------------------------------------------------------------------------------------------- running */

static void *parts_address(const rondo_context *context, uint64_t address, uint32_t port) {
    return (void *)(uintptr_t)(address + (port != RONDO__PLAN_NONE ? context->ports[port].address : 0));
}

static rondo_status parts_wait(const rondo_context *context, uint32_t target, rondo_stream *stream) {
    if (!context->parts->busy[target]) return RONDO_OK;
    context->parts->busy[target] = false;
    return rondo_stream_synchronize(parts_stream(context, target, stream));
}

/* Transfers [first, last) of one segment: all leave, the host waits for them, all arrive. */
static rondo_status parts_move(const rondo_context *context, uint32_t first, uint32_t last, rondo_stream *stream) {
    rondo__exec_parts *parts = context->parts;
    for (uint32_t i = first; i < last; i++) {
        const rondo__exec_transfer *t = &parts->transfers[i];
        parts->busy[t->from] = true;
        RONDO__TRY(rondo_stream_copy(parts_stream(context, t->from, stream), t->stage,
                                     parts_address(context, t->source, t->from_port), t->bytes,
                                     RONDO_COPY_DEVICE_TO_HOST));
    }
    for (uint32_t i = first; i < last; i++) RONDO__TRY(parts_wait(context, parts->transfers[i].from, stream));
    for (uint32_t i = first; i < last; i++) {
        const rondo__exec_transfer *t = &parts->transfers[i];
        parts->busy[t->to] = true;
        RONDO__TRY(rondo_stream_copy(parts_stream(context, t->to, stream),
                                     parts_address(context, t->destination, t->to_port), t->stage, t->bytes,
                                     RONDO_COPY_HOST_TO_DEVICE));
    }
    return RONDO_OK;
}

static rondo_status parts_segment(const rondo_context *context, uint32_t segment, uint32_t *step, bool eager,
                                  const rondo__exec_observer *observer, rondo_stream *stream) {
    const rondo_plan *plan = context->executable->plan;
    const uint32_t target = plan->segment_targets[segment];
    rondo_stream *on = parts_stream(context, target, stream);
    const uint32_t first = *step;
    while (*step < plan->step_count && plan->steps[*step].segment == segment) ++*step;
    if (!rondo__call_list_count(context->parts->lists[segment])) return RONDO_OK;
    context->parts->busy[target] = true;
    if (!eager) return rondo__call_list_run(context->parts->lists[segment], on);
    for (uint32_t i = first; i < *step; i++)
        if (!rondo__plan_is_transfer(&plan->steps[i])) RONDO__TRY(rondo__context_launch(context, on, i, observer));
    return RONDO_OK;
}

static rondo_status parts_all(const rondo_context *context, rondo_stream *stream, bool eager,
                              const rondo__exec_observer *observer) {
    const rondo_plan *plan = context->executable->plan;
    const rondo__exec_parts *parts = context->parts;
    uint32_t step = 0, moved = 0;
    for (uint32_t segment = 0; segment < parts->list_count; segment++) {
        uint32_t last = moved;
        while (last < parts->transfer_count && plan->steps[parts->transfers[last].step].segment == segment) last++;
        RONDO__TRY_NOTE(parts_move(context, moved, last, stream), "before segment %u of plan '%s', on target %u '%s'",
                        (unsigned)segment, plan->name, (unsigned)plan->segment_targets[segment],
                        plan->targets[plan->segment_targets[segment]].name);
        moved = last;
        RONDO__TRY_NOTE(parts_segment(context, segment, &step, eager, observer, stream),
                        "in segment %u of plan '%s', on target %u '%s'", (unsigned)segment, plan->name,
                        (unsigned)plan->segment_targets[segment], plan->targets[plan->segment_targets[segment]].name);
    }
    return RONDO_OK;
}

/* Nothing stays in flight but on the caller's stream; what failed on the way is waited for, too. The run before has gone:
 * its values may still leave the host memory that this one writes. */
rondo_status rondo__parts_run(rondo_context *context, rondo_stream *stream, bool eager,
                              const rondo__exec_observer *observer) {
    RONDO__TRY(rondo__ticket_wait(&context->ticket));
    context->parts->busy[0] = false; /* what is before on the caller's stream is nothing to the others */
    rondo_status status = parts_all(context, stream, eager, observer);
    for (uint32_t t = 1; t < context->executable->target_count; t++)
        status = rondo__status_first(status, parts_wait(context, t, stream));
    return status;
}
