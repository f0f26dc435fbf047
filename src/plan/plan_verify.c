/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a plan can be run without harm: every range inside its buffer, every byte written before it is read, nothing
 * that lives at the same time at the same place. Nothing here trusts the plan, which may come from a file. */
#include <stdlib.h>

#include "base/checked.h"
#include "plan/plan_order.h"
#include "plan/plan_ranges.h"

/* One write to a buffer, by which step. Sorted by buffer and offset, so that a read finds what covers it. */
typedef struct plan_write {
    uint32_t buffer, step;
    uint64_t offset, end;
} plan_write;

/* A piece of the arena for some steps. */
typedef struct plan_life {
    uint64_t offset, end;
    uint32_t first, last;
    uint32_t buffer; /* RONDO__PLAN_NONE: scratch of step `first` */
} plan_life;

typedef struct plan_check {
    const rondo_plan *plan;
    rondo_code code;
    plan_write *writes;
    size_t write_count;
    plan_life *lives;
    size_t life_count;
} plan_check;

#define PLAN_WRONG(check, ...) \
    rondo__status_make((check)->code, RONDO_LAYER_LOADING, __FILE__, (int32_t)__LINE__, "plan: " __VA_ARGS__)

static const char *plan_text(const char *text) { return text ? text : "?"; }

static rondo_status plan_check_targets(const plan_check *c) {
    const rondo_plan *p = c->plan;
    uint64_t bytes = 0;
    if (p->target_count <= 1) return RONDO_OK;
    if (p->target_count > RONDO__PLAN_TARGETS_MAX || !p->targets || (p->segment_count > 0 && !p->segment_targets)) {
        return PLAN_WRONG(c, "%u targets are declared; a plan has at most %u, and says which segment is whose",
                          p->target_count, RONDO__PLAN_TARGETS_MAX);
    }
    if (p->lane_count != 1) return PLAN_WRONG(c, "it has several targets and several lanes");
    for (uint32_t i = 0; i < p->target_count; i++) {
        if (!p->targets[i].name) return PLAN_WRONG(c, "target %u has no name", i);
        if (!rondo__checked_add_u64(bytes, p->targets[i].arena_bytes, &bytes)) bytes = UINT64_MAX;
    }
    if (bytes != p->arena_bytes) return PLAN_WRONG(c, "the arenas of its targets are not its arena");
    for (uint32_t i = 0; i < p->segment_count; i++) {
        if (p->segment_targets[i] >= p->target_count) return PLAN_WRONG(c, "segment %u is of no target", i);
    }
    return RONDO_OK;
}

static rondo_status plan_check_arrays(const plan_check *c) {
    const rondo_plan *p = c->plan;
    const struct {
        const void *data;
        uint32_t count;
        const char *name;
    } arrays[] = {{p->buffers, p->buffer_count, "buffers"}, {p->steps, p->step_count, "steps"},
                  {p->guards, p->guard_count, "guards"},    {p->inputs, p->input_count, "inputs"},
                  {p->outputs, p->output_count, "outputs"}, {p->remarks, p->remark_count, "remarks"}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        if (arrays[i].count > 0 && !arrays[i].data) {
            return PLAN_WRONG(c, "%u %s are declared and none are there", arrays[i].count, arrays[i].name);
        }
    }
    if (!p->name || !p->target) return PLAN_WRONG(c, "it has no name or no target");
    if (p->lane_count == 0 || p->lane_count > RONDO__PLAN_LANES_MAX) {
        return PLAN_WRONG(c, "%u lanes; a plan has 1 to %u", p->lane_count, RONDO__PLAN_LANES_MAX);
    }
    if (p->step_count > 0 && p->segment_count == 0) return PLAN_WRONG(c, "steps without a segment");
    if (p->target_count <= 1 && p->segment_count > 1 && p->segment_count > p->step_count)
        return PLAN_WRONG(c, "%u segments of %u steps", p->segment_count, p->step_count);
    if (p->arena_lower_bound > p->arena_bytes) {
        return PLAN_WRONG(c, "the arena of %llu bytes is below its lower bound of %llu",
                          (unsigned long long)p->arena_bytes, (unsigned long long)p->arena_lower_bound);
    }
    RONDO__TRY(plan_check_targets(c));
    for (uint32_t i = 0; i < p->remark_count; i++) {
        if (!p->remarks[i]) return PLAN_WRONG(c, "remark %u is null", i);
    }
    return RONDO_OK;
}

/* A tensor's description: legal rank, dims, a dtype with a size, and exactly these bytes. */
static rondo_status plan_check_tensor(const plan_check *c, const char *what, const char *name, rondo_dtype dtype,
                                      int32_t rank, const int64_t *dims, uint64_t bytes) {
    int64_t elements = 0;
    uint64_t want = 0;
    if (rank < 0 || rank > RONDO_RANK_MAX || (rank > 0 && !dims) || !rondo__checked_elements(rank, dims, &elements)) {
        return PLAN_WRONG(c, "%s '%s' has an illegal shape of rank %d", what, plan_text(name), rank);
    }
    rondo_status status = rondo_dtype_bytes(dtype, (uint64_t)elements, &want);
    if (status) {
        rondo_status_release(status);
        return PLAN_WRONG(c, "%s '%s' has a data type without a size (%d)", what, plan_text(name), dtype);
    }
    if (want != bytes) {
        return PLAN_WRONG(c, "%s '%s' says %llu bytes, its shape says %llu", what, plan_text(name),
                          (unsigned long long)bytes, (unsigned long long)want);
    }
    return RONDO_OK;
}

static rondo_status plan_check_buffers(const plan_check *c) {
    const rondo_plan *p = c->plan;
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const rondo__plan_buffer *b = &p->buffers[i];
        uint64_t end = 0;
        if (!b->name) return PLAN_WRONG(c, "buffer %u has no name", i);
        switch (b->kind) {
        case RONDO__PLAN_INPUT:
        case RONDO__PLAN_OUTPUT: {
            bool input = b->kind == RONDO__PLAN_INPUT;
            const rondo__plan_port *ports = input ? p->inputs : p->outputs;
            if (b->slot >= (input ? p->input_count : p->output_count) || ports[b->slot].buffer != i) {
                return PLAN_WRONG(c, "buffer '%s' belongs to no %s", b->name, input ? "input" : "output");
            }
            break;
        }
        case RONDO__PLAN_TEMPORARY:
            if (b->target >= rondo__plan_target_count(p)) {
                return PLAN_WRONG(c, "temporary '%s' is of no target", b->name);
            }
            if (b->offset % 64u != 0 || !rondo__checked_add_u64(b->offset, b->bytes, &end) ||
                end > rondo__plan_arena_of(p, b->target)) {
                return PLAN_WRONG(c, "temporary '%s' of %llu bytes at %llu lies outside the arena or is unaligned",
                                  b->name, (unsigned long long)b->bytes, (unsigned long long)b->offset);
            }
            if (b->first_step > b->last_step || b->last_step >= p->step_count) {
                return PLAN_WRONG(c, "temporary '%s' has no legal life", b->name);
            }
            break;
        case RONDO__PLAN_CONSTANT: break;
        default: return PLAN_WRONG(c, "buffer '%s' is of unknown kind %d", b->name, b->kind);
        }
    }
    return RONDO_OK;
}

static rondo_status plan_check_ports(const plan_check *c, bool input) {
    const rondo_plan *p = c->plan;
    const rondo__plan_port *ports = input ? p->inputs : p->outputs;
    const char *what = input ? "input" : "output";
    for (uint32_t i = 0; i < (input ? p->input_count : p->output_count); i++) {
        const rondo__plan_port *port = &ports[i];
        if (!port->name) return PLAN_WRONG(c, "%s %u has no name", what, i);
        RONDO__TRY(plan_check_tensor(c, what, port->name, port->dtype, port->rank, port->dims, port->bytes));
        if (port->buffer == RONDO__PLAN_NONE) {
            if (!input) return PLAN_WRONG(c, "output '%s' has no buffer", port->name);
            continue;
        }
        if (port->buffer >= p->buffer_count) return PLAN_WRONG(c, "%s '%s' has no such buffer", what, port->name);
        const rondo__plan_buffer *b = &p->buffers[port->buffer];
        if (b->kind != (input ? RONDO__PLAN_INPUT : RONDO__PLAN_OUTPUT) || b->slot != i || b->bytes != port->bytes) {
            return PLAN_WRONG(c, "%s '%s' and buffer '%s' do not fit together", what, port->name, b->name);
        }
    }
    return RONDO_OK;
}

static rondo_status plan_check_guards(const plan_check *c) {
    const rondo_plan *p = c->plan;
    for (uint32_t i = 0; i < p->guard_count; i++) {
        const rondo__plan_guard *g = &p->guards[i];
        if (g->input >= p->input_count) return PLAN_WRONG(c, "guard %u is about no input", i);
        if (g->has_value > 1 || (g->has_value && (!g->value || g->bytes != p->inputs[g->input].bytes))) {
            return PLAN_WRONG(c, "the guard of input '%s' has no value of that input's size", p->inputs[g->input].name);
        }
    }
    return RONDO_OK;
}

/* An operand lies inside its buffer, at an address its elements can have. */
static rondo_status plan_check_operand(const plan_check *c, const rondo__plan_step *step,
                                       const rondo__plan_operand *operand, const char *what, uint32_t index) {
    const rondo_plan *p = c->plan;
    if (operand->buffer == RONDO__PLAN_NONE) {
        if (operand->dtype == RONDO_DTYPE_UNDEFINED) return RONDO_OK;
        return PLAN_WRONG(c, "step '%s': %s %u has a type and no buffer", step->node_name, what, index);
    }
    if (operand->buffer >= p->buffer_count) {
        return PLAN_WRONG(c, "step '%s': %s %u is in no buffer", step->node_name, what, index);
    }
    RONDO__TRY_NOTE(
        plan_check_tensor(c, what, step->node_name, operand->dtype, operand->rank, operand->dims, operand->bytes),
        "%s %u of step '%s'", what, index, step->node_name);
    const rondo__plan_buffer *b = &p->buffers[operand->buffer];
    uint64_t end = 0, element = (rondo_dtype_bits(operand->dtype) + 7u) / 8u;
    if (!rondo__checked_add_u64(operand->offset, operand->bytes, &end) || end > b->bytes ||
        operand->offset % element != 0) {
        return PLAN_WRONG(c, "step '%s': %s %u leaves buffer '%s' or is unaligned", step->node_name, what, index,
                          b->name);
    }
    return RONDO_OK;
}

static rondo_status plan_check_schedule(const plan_check *c, uint32_t index, uint8_t *recorded) {
    const rondo_plan *p = c->plan;
    const rondo__plan_step *step = &p->steps[index];
    uint32_t before = index > 0 ? p->steps[index - 1].segment : 0;
    if (step->lane >= p->lane_count || step->segment >= p->segment_count || step->segment < before) {
        return PLAN_WRONG(c, "step '%s' is in lane %u and segment %u, which cannot be", step->node_name, step->lane,
                          step->segment);
    }
    if (step->wait_count > 0 && !step->waits) return PLAN_WRONG(c, "step '%s' has no waits", step->node_name);
    for (uint32_t i = 0; i < step->wait_count; i++) {
        if (step->waits[i] >= p->event_count || !recorded[step->waits[i]]) {
            return PLAN_WRONG(c, "step '%s' waits for an event that nothing before it records", step->node_name);
        }
    }
    if (step->record != RONDO__PLAN_NONE) {
        if (step->record >= p->event_count || recorded[step->record]) {
            return PLAN_WRONG(c, "step '%s' records no event of its own", step->node_name);
        }
        recorded[step->record] = 1;
    }
    return RONDO_OK;
}

static rondo_status plan_check_reads(const plan_check *c, const rondo__plan_step *step) {
    for (uint32_t i = 0; i < step->input_count; i++) {
        const rondo__plan_operand *in = &step->inputs[i];
        RONDO__TRY(plan_check_operand(c, step, in, "input", i));
        bool absorbed = i < 64 && (step->absorbed_inputs >> i & 1u);
        if (in->buffer == RONDO__PLAN_NONE) continue;
        if (absorbed && !in->constant) {
            return PLAN_WRONG(c, "step '%s' absorbs input %u, whose value is not there", step->node_name, i);
        }
        const rondo__plan_buffer *b = &c->plan->buffers[in->buffer];
        if (!absorbed && b->kind == RONDO__PLAN_CONSTANT && !b->data && in->bytes > 0) {
            return PLAN_WRONG(c, "step '%s' reads constant '%s', which has no data", step->node_name, b->name);
        }
    }
    return RONDO_OK;
}

static rondo_status plan_check_writes(const plan_check *c, const rondo__plan_step *step) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < step->output_count; i++) {
        RONDO__TRY(plan_check_operand(c, step, &step->outputs[i], "output", i));
        if (step->outputs[i].buffer == RONDO__PLAN_NONE) continue;
        const rondo__plan_buffer *b = &c->plan->buffers[step->outputs[i].buffer];
        if (b->kind == RONDO__PLAN_INPUT || b->kind == RONDO__PLAN_CONSTANT) {
            return PLAN_WRONG(c, "step '%s' writes '%s', which is read only", step->node_name, b->name);
        }
    }
    if (step->scratch_bytes > 0 &&
        (step->scratch_offset % 64u != 0 || !rondo__checked_add_u64(step->scratch_offset, step->scratch_bytes, &end) ||
         end > rondo__plan_arena_of(c->plan, rondo__plan_target_of(c->plan, step)))) {
        return PLAN_WRONG(c, "step '%s' has its scratch outside the arena or unaligned", step->node_name);
    }
    return RONDO_OK;
}

static rondo_status plan_check_named(const plan_check *c, const rondo__plan_step *step) {
    if (step->operator_name && step->node_name && step->catalogue) return RONDO_OK;
    return PLAN_WRONG(c, "a step has no operator, name or catalogue");
}

static rondo_status plan_check_step(const plan_check *c, const rondo__plan_step *step) {
    if ((step->input_count && !step->inputs) || (step->output_count && !step->outputs) ||
        (step->attribute_count && !step->attributes) || step->output_count == 0) {
        return PLAN_WRONG(c, "step '%s' lacks its operands", step->node_name);
    }
    if ((uint64_t)step->input_count + step->output_count + 2u > RONDO_ARGUMENT_MAX) {
        return PLAN_WRONG(c, "step '%s' has %u operands; a call holds %d", step->node_name,
                          step->input_count + step->output_count, RONDO_ARGUMENT_MAX - 2);
    }
    RONDO__TRY(plan_check_reads(c, step));
    return plan_check_writes(c, step);
}

/* Whose memory the operand is in; RONDO__PLAN_NONE: everybody's, or nobody's. */
static uint32_t plan_place(const rondo_plan *plan, const rondo__plan_operand *operand) {
    if (operand->buffer == RONDO__PLAN_NONE) return RONDO__PLAN_NONE;
    const rondo__plan_buffer *b = &plan->buffers[operand->buffer];
    if (b->kind == RONDO__PLAN_CONSTANT) return RONDO__PLAN_NONE;
    return b->kind == RONDO__PLAN_TEMPORARY ? b->target : 0;
}

static rondo_status plan_check_transfer(const plan_check *c, const rondo__plan_step *step, uint32_t target) {
    if (c->plan->target_count <= 1 || step->input_count != 1 || step->output_count != 1 || step->scratch_bytes ||
        step->packed_bytes || step->absorbed_inputs || step->inputs[0].bytes != step->outputs[0].bytes) {
        return PLAN_WRONG(c, "step '%s' is no transfer of one value", step->node_name);
    }
    uint32_t from = plan_place(c->plan, &step->inputs[0]);
    if (from == RONDO__PLAN_NONE || from == target || plan_place(c->plan, &step->outputs[0]) != target) {
        return PLAN_WRONG(c, "step '%s' transfers nothing from another target to its own", step->node_name);
    }
    return RONDO_OK;
}

/* A kernel reaches the memory of its own target, and constants. */
static rondo_status plan_check_places(const plan_check *c, const rondo__plan_step *step) {
    uint32_t target = rondo__plan_target_of(c->plan, step);
    if (rondo__plan_is_transfer(step)) return plan_check_transfer(c, step, target);
    for (uint32_t i = 0; i < step->input_count + step->output_count; i++) {
        bool input = i < step->input_count;
        const rondo__plan_operand *operand = input ? &step->inputs[i] : &step->outputs[i - step->input_count];
        uint32_t place = plan_place(c->plan, operand);
        if (place == RONDO__PLAN_NONE || place == target) continue;
        return PLAN_WRONG(c, "step '%s' of target %u uses '%s', which is in the memory of target %u", step->node_name,
                          target, c->plan->buffers[operand->buffer].name, place);
    }
    return RONDO_OK;
}

static int plan_compare_writes(const void *a, const void *b) {
    const plan_write *x = a, *y = b;
    if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step ? 1 : 0;
}

/* The first write that is not before (buffer, offset) in their order. */
static size_t plan_write_from(const plan_check *c, uint32_t buffer, uint64_t offset) {
    size_t low = 0, high = c->write_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const plan_write *w = &c->writes[middle];
        if (w->buffer < buffer || (w->buffer == buffer && w->offset < offset)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Whether writes from number `from` on, of steps before `step`, cover [offset, end) of the buffer. */
static bool plan_covered_from(const plan_check *c, size_t from, uint32_t buffer, uint64_t offset, uint64_t end,
                              uint32_t step) {
    for (size_t i = from; i < c->write_count && offset < end && c->writes[i].buffer == buffer; i++) {
        const plan_write *w = &c->writes[i];
        if (w->offset > offset) break;
        if (w->step < step && w->end > offset) offset = w->end;
    }
    return offset >= end;
}

/* What is read mostly begins where something was written; if not, a write further down may reach up to it. */
static bool plan_covered(const plan_check *c, uint32_t buffer, uint64_t offset, uint64_t end, uint32_t step) {
    return plan_covered_from(c, plan_write_from(c, buffer, offset), buffer, offset, end, step) ||
           plan_covered_from(c, plan_write_from(c, buffer, 0), buffer, offset, end, step);
}

static rondo_status plan_check_definitions(plan_check *c) {
    const rondo_plan *p = c->plan;
    for (uint32_t s = 0; s < p->step_count; s++) {
        const rondo__plan_step *step = &p->steps[s];
        for (uint32_t i = 0; i < step->output_count; i++) {
            const rondo__plan_operand *out = &step->outputs[i];
            if (out->buffer == RONDO__PLAN_NONE) continue;
            c->writes[c->write_count++] = (plan_write){out->buffer, s, out->offset, out->offset + out->bytes};
        }
    }
    if (c->write_count > 0) qsort(c->writes, c->write_count, sizeof *c->writes, plan_compare_writes);
    for (uint32_t s = 0; s < p->step_count; s++) {
        const rondo__plan_step *step = &p->steps[s];
        for (uint32_t i = 0; i < step->input_count; i++) {
            const rondo__plan_operand *in = &step->inputs[i];
            if (in->buffer == RONDO__PLAN_NONE) continue;
            const rondo__plan_buffer *b = &p->buffers[in->buffer];
            if (b->kind == RONDO__PLAN_INPUT || b->kind == RONDO__PLAN_CONSTANT) continue;
            if (!plan_covered(c, in->buffer, in->offset, in->offset + in->bytes, s)) {
                return PLAN_WRONG(c, "step '%s' reads '%s' before all of it is written", step->node_name, b->name);
            }
        }
    }
    for (uint32_t i = 0; i < p->output_count; i++) {
        if (!plan_covered(c, p->outputs[i].buffer, 0, p->outputs[i].bytes, p->step_count)) {
            return PLAN_WRONG(c, "output '%s' is not wholly written", p->outputs[i].name);
        }
    }
    return RONDO_OK;
}

/* What an operand's use means for the life its buffer claims. */
static rondo_status plan_check_uses(const plan_check *c, uint32_t s, const rondo__plan_operand *operands,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (operands[i].buffer == RONDO__PLAN_NONE) continue;
        const rondo__plan_buffer *b = &c->plan->buffers[operands[i].buffer];
        if (b->kind == RONDO__PLAN_TEMPORARY && (s < b->first_step || s > b->last_step)) {
            return PLAN_WRONG(c, "step '%s' uses temporary '%s' outside its life of steps %u to %u",
                              c->plan->steps[s].node_name, b->name, b->first_step, b->last_step);
        }
    }
    return RONDO_OK;
}

/* Within a step, output 0 may be the very bytes of an input; any other meeting of an output with an operand is wrong.
 * */
static rondo_status plan_check_step_overlap(const plan_check *c, const rondo__plan_step *step) {
    for (uint32_t o = 0; o < step->output_count; o++) {
        const rondo__plan_operand *out = &step->outputs[o];
        if (out->buffer == RONDO__PLAN_NONE || out->bytes == 0) continue;
        for (uint32_t i = 0; i < step->input_count + step->output_count; i++) {
            bool input = i < step->input_count;
            if (!input && i - step->input_count <= o) continue;
            const rondo__plan_operand *other = input ? &step->inputs[i] : &step->outputs[i - step->input_count];
            if (other->buffer != out->buffer || other->offset >= out->offset + out->bytes ||
                out->offset >= other->offset + other->bytes) {
                continue;
            }
            if (input && o == 0 && other->offset == out->offset && other->bytes == out->bytes) continue;
            return PLAN_WRONG(c, "step '%s' has operands that overlap in '%s'", step->node_name,
                              c->plan->buffers[out->buffer].name);
        }
    }
    return RONDO_OK;
}

static int plan_compare_lives(const void *a, const void *b) {
    const plan_life *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first ? 1 : 0;
}

/* Two lives may share memory while they touch in one step when that step turns the one into the other in place. */
static bool plan_in_place(const plan_check *c, const plan_life *ending, const plan_life *starting) {
    if (ending->last != starting->first || ending->offset != starting->offset || ending->end != starting->end ||
        ending->buffer == RONDO__PLAN_NONE || starting->buffer == RONDO__PLAN_NONE) {
        return false;
    }
    const rondo__plan_step *step = &c->plan->steps[starting->first];
    const rondo__plan_operand *out = &step->outputs[0];
    if (out->buffer != starting->buffer || out->offset != 0 || out->bytes != c->plan->buffers[out->buffer].bytes) {
        return false;
    }
    for (uint32_t o = 1; o < step->output_count; o++) {
        if (step->outputs[o].buffer == ending->buffer) return false;
    }
    bool found = false;
    for (uint32_t i = 0; i < step->input_count; i++) {
        const rondo__plan_operand *in = &step->inputs[i];
        if (in->buffer != ending->buffer) continue;
        if (in->offset != 0 || in->bytes != out->bytes) return false;
        found = true;
    }
    return found;
}

static const char *plan_life_name(const plan_check *c, const plan_life *life) {
    return life->buffer == RONDO__PLAN_NONE ? c->plan->steps[life->first].node_name
                                            : c->plan->buffers[life->buffer].name;
}

/* Lives come in the order in which they begin: whoever has one of the bytes for longest is the only one who can be in
 * the way, as the others were held to the same before. */
static rondo_status plan_check_life(const plan_check *c, rondo__plan_ranges *ranges, uint32_t index) {
    const plan_life *now = &c->lives[index];
    uint32_t holder = rondo__plan_ranges_longest(ranges, now->offset, now->end);
    const plan_life *other = holder != RONDO__PLAN_NOBODY ? &c->lives[holder] : NULL;
    if (other && other->last >= now->first && plan_in_place(c, now, other)) return RONDO_OK;
    if (other && other->last >= now->first && !plan_in_place(c, other, now)) {
        return PLAN_WRONG(c, "'%s' and '%s' live at the same time at the same place", plan_life_name(c, other),
                          plan_life_name(c, now));
    }
    rondo__plan_ranges_hold(ranges, index, now->offset, now->end);
    return RONDO_OK;
}

/* The arenas one after the other. */
static uint64_t plan_arena_base(const rondo_plan *plan, uint32_t target) {
    uint64_t base = 0;
    for (uint32_t i = 0; i < target; i++) base += plan->targets[i].arena_bytes;
    return base;
}

static rondo_status plan_check_lives(plan_check *c) {
    const rondo_plan *p = c->plan;
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const rondo__plan_buffer *b = &p->buffers[i];
        if (b->kind != RONDO__PLAN_TEMPORARY || b->bytes == 0) continue;
        uint64_t at = plan_arena_base(p, b->target) + b->offset;
        c->lives[c->life_count++] = (plan_life){at, at + b->bytes, b->first_step, b->last_step, i};
    }
    for (uint32_t s = 0; s < p->step_count; s++) {
        const rondo__plan_step *step = &p->steps[s];
        if (step->scratch_bytes == 0) continue;
        uint64_t at = plan_arena_base(p, rondo__plan_target_of(p, step)) + step->scratch_offset;
        c->lives[c->life_count++] = (plan_life){at, at + step->scratch_bytes, s, s, RONDO__PLAN_NONE};
    }
    if (c->life_count == 0) return RONDO_OK;
    qsort(c->lives, c->life_count, sizeof *c->lives, plan_compare_lives);
    rondo__plan_ranges ranges;
    rondo_status status = rondo__plan_ranges_init(&ranges, &p->allocator, c->life_count);
    for (uint32_t i = 0; !status && i < c->life_count; i++) {
        const plan_life *life = &c->lives[i];
        rondo__plan_ranges_cut(&ranges, i, life->offset, life->end, life->last);
    }
    if (!status) status = rondo__plan_ranges_ready(&ranges);
    for (uint32_t i = 0; !status && i < c->life_count; i++) status = plan_check_life(c, &ranges, i);
    rondo__plan_ranges_deinit(&ranges);
    return status;
}

/* All that is checked above holds for the steps one after the other. With several lanes it holds for every order in which
 * they may run when no two of them race. */
static rondo_status plan_check_lanes(const plan_check *c) {
    const rondo_plan *p = c->plan;
    rondo__plan_race race = {false, 0, 0};
    rondo__plan_order order;
    if (p->lane_count == 1) return RONDO_OK;
    rondo_status status = rondo__plan_order_make(&order, p);
    if (!status) status = rondo__plan_find_race(&order, p, &race);
    rondo__plan_order_deinit(&order);
    if (status || !race.found) return status;
    const rondo__plan_step *first = &p->steps[race.first], *second = &p->steps[race.second];
    return PLAN_WRONG(c, "step '%s' of lane %u and step '%s' of lane %u use the same memory and nothing orders them",
                      first->node_name, first->lane, second->node_name, second->lane);
}

static rondo_status plan_check_all(plan_check *c, uint8_t *recorded) {
    const rondo_plan *p = c->plan;
    RONDO__TRY(plan_check_buffers(c));
    RONDO__TRY(plan_check_ports(c, true));
    RONDO__TRY(plan_check_ports(c, false));
    RONDO__TRY(plan_check_guards(c));
    for (uint32_t s = 0; s < p->step_count; s++) {
        const rondo__plan_step *step = &p->steps[s];
        RONDO__TRY(plan_check_named(c, step));
        RONDO__TRY(plan_check_schedule(c, s, recorded));
        RONDO__TRY(plan_check_step(c, step));
        RONDO__TRY(plan_check_places(c, step));
        RONDO__TRY(plan_check_uses(c, s, step->inputs, step->input_count));
        RONDO__TRY(plan_check_uses(c, s, step->outputs, step->output_count));
        RONDO__TRY(plan_check_step_overlap(c, step));
    }
    RONDO__TRY(plan_check_definitions(c));
    RONDO__TRY(plan_check_lives(c));
    return plan_check_lanes(c);
}

rondo_status rondo__plan_verify(const rondo_plan *plan, bool from_file) {
    plan_check check = {plan, from_file ? RONDO_CODE_CORRUPT : RONDO_CODE_INTERNAL, NULL, 0, NULL, 0};
    RONDO__TRY(plan_check_arrays(&check));
    size_t outputs = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (plan->steps[s].output_count > RONDO_ARGUMENT_MAX) {
            return PLAN_WRONG(&check, "step %u has %u outputs; a call holds %d", s, plan->steps[s].output_count,
                              RONDO_ARGUMENT_MAX);
        }
        outputs += plan->steps[s].output_count;
    }
    size_t lives = (size_t)plan->buffer_count + plan->step_count;
    void *writes = NULL, *life_memory = NULL, *recorded = NULL;
    const rondo_allocator *allocator = &plan->allocator;
    rondo_status status = rondo__allocate_array(allocator, outputs, sizeof(plan_write), &writes);
    if (!status) status = rondo__allocate_array(allocator, lives, sizeof(plan_life), &life_memory);
    if (!status) status = rondo__allocate_zeroed(allocator, plan->event_count, &recorded);
    check.writes = writes;
    check.lives = life_memory;
    if (!status) status = plan_check_all(&check, recorded);
    rondo__free(allocator, recorded, plan->event_count);
    rondo__free(allocator, life_memory, lives * sizeof(plan_life));
    rondo__free(allocator, writes, outputs * sizeof(plan_write));
    return status;
}
