/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan for people and programs: text, Graphviz's dot, JSON. The whole is made in memory and then handed to the
 * writer, so a reader never sees half of one. */
#include <inttypes.h>
#include <string.h>

#include "plan/plan.h"

#define RONDO__PLAN_DUMP_MAX ((size_t)1 << 31)

static const char *const plan_kind_names[] = {"input", "output", "temporary", "constant"};

static const char *plan_kind_name(rondo__plan_buffer_kind kind) {
    return kind >= 0 && kind <= RONDO__PLAN_CONSTANT ? plan_kind_names[kind] : "unknown";
}

static rondo_status plan_put_string(rondo__buffer *text, const char *value) {
    if (!value) return rondo__text_append(text, "null");
    return rondo__text_append_json(text, value, strlen(value));
}

static rondo_status plan_put_dims(rondo__buffer *text, int32_t rank, const int64_t *dims) {
    RONDO__TRY(rondo__text_append(text, "["));
    for (int32_t i = 0; i < rank; i++) RONDO__TRY(rondo__text_append(text, "%s%" PRId64, i ? "," : "", dims[i]));
    return rondo__text_append(text, "]");
}

/* JSON has no NaN and no infinity: they become strings. */
static rondo_status plan_put_float(rondo__buffer *text, float value) {
    if (__builtin_isnan(value)) return rondo__text_append(text, "\"nan\"");
    if (__builtin_isinf(value)) return rondo__text_append(text, value > 0 ? "\"inf\"" : "\"-inf\"");
    return rondo__text_append(text, "%.9g", (double)value);
}

/* The value of an attribute as JSON, which text dumps use too. */
static rondo_status plan_put_attribute(rondo__buffer *text, const rondo_attribute *a) {
    if (a->kind == RONDO_ATTRIBUTE_STRING && strcmp(a->name, RONDO__PLAN_OWN) == 0)
        return rondo__text_append(text, "\"%zu bytes\"", a->value.s.size);
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: return rondo__text_append(text, "%" PRId64, a->value.i);
    case RONDO_ATTRIBUTE_FLOAT: return plan_put_float(text, a->value.f);
    case RONDO_ATTRIBUTE_STRING: return rondo__text_append_json(text, a->value.s.data, a->value.s.size);
    case RONDO_ATTRIBUTE_INTS:
    case RONDO_ATTRIBUTE_FLOATS:
    case RONDO_ATTRIBUTE_STRINGS:
        RONDO__TRY(rondo__text_append(text, "["));
        for (uint32_t i = 0; i < a->count; i++) {
            if (i > 0) RONDO__TRY(rondo__text_append(text, ","));
            if (a->kind == RONDO_ATTRIBUTE_INTS) {
                RONDO__TRY(rondo__text_append(text, "%" PRId64, a->value.ints[i]));
            } else if (a->kind == RONDO_ATTRIBUTE_FLOATS) {
                RONDO__TRY(plan_put_float(text, a->value.floats[i]));
            } else {
                RONDO__TRY(rondo__text_append_json(text, a->value.strings[i].data, a->value.strings[i].size));
            }
        }
        return rondo__text_append(text, "]");
    case RONDO_ATTRIBUTE_TENSOR:
        RONDO__TRY(rondo__text_append(text, "\"%s", rondo_dtype_name(a->value.tensor->dtype)));
        RONDO__TRY(plan_put_dims(text, a->value.tensor->rank, a->value.tensor->shape));
        return rondo__text_append(text, "\"");
    default: return rondo__text_append(text, "null");
    }
}

/* ---------------------------------------------------------------------------------------------------- text */

static rondo_status plan_text_operand(const rondo_plan *plan, rondo__buffer *text, const rondo__plan_operand *o,
                                      bool absorbed) {
    if (o->buffer == RONDO__PLAN_NONE) return rondo__text_append(text, "-");
    RONDO__TRY(rondo__text_append(text, "%%%u:%s", o->buffer, rondo_dtype_name(o->dtype)));
    RONDO__TRY(plan_put_dims(text, o->rank, o->dims));
    if (o->offset) RONDO__TRY(rondo__text_append(text, "+%" PRIu64, o->offset));
    if (absorbed) return rondo__text_append(text, "*");
    return plan->buffers[o->buffer].kind == RONDO__PLAN_CONSTANT ? rondo__text_append(text, "!") : RONDO_OK;
}

static rondo_status plan_text_lane(rondo__buffer *text, const rondo__plan_step *s) {
    RONDO__TRY(rondo__text_append(text, ", lane %u", s->lane));
    for (uint32_t i = 0; i < s->wait_count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s e%u", i ? "," : " waits for", s->waits[i]));
    }
    return s->record != RONDO__PLAN_NONE ? rondo__text_append(text, " records e%u", s->record) : RONDO_OK;
}

static uint32_t plan_wait_count(const rondo_plan *plan) {
    uint32_t waits = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) waits += plan->steps[i].wait_count;
    return waits;
}

static rondo_status plan_text_step(const rondo_plan *plan, rondo__buffer *text, uint32_t index) {
    const rondo__plan_step *s = &plan->steps[index];
    RONDO__TRY(rondo__text_append(text, "%4u  %s", index, s->operator_name));
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s%s=", i ? ", " : " {", s->attributes[i].name));
        RONDO__TRY(plan_put_attribute(text, &s->attributes[i]));
    }
    RONDO__TRY(rondo__text_append(text, "%s(", s->attribute_count ? "}" : ""));
    for (uint32_t i = 0; i < s->input_count; i++) {
        if (i > 0) RONDO__TRY(rondo__text_append(text, ", "));
        RONDO__TRY(plan_text_operand(plan, text, &s->inputs[i], i < 64 && (s->absorbed_inputs >> i & 1u)));
    }
    RONDO__TRY(rondo__text_append(text, ") -> "));
    for (uint32_t i = 0; i < s->output_count; i++) {
        if (i > 0) RONDO__TRY(rondo__text_append(text, ", "));
        RONDO__TRY(plan_text_operand(plan, text, &s->outputs[i], false));
    }
    RONDO__TRY(rondo__text_append(text, "  '%s' by %s: %s", s->node_name, s->catalogue, s->variant ? s->variant : "-"));
    if (s->packed_bytes) RONDO__TRY(rondo__text_append(text, ", packed %" PRIu64, s->packed_bytes));
    if (s->scratch_bytes) {
        RONDO__TRY(rondo__text_append(text, ", scratch %" PRIu64 " at %" PRIu64, s->scratch_bytes, s->scratch_offset));
    }
    if (plan->lane_count > 1) RONDO__TRY(plan_text_lane(text, s));
    if (plan->target_count > 1) {
        RONDO__TRY(rondo__text_append(text, ", segment %u on target %u", s->segment, rondo__plan_target_of(plan, s)));
    }
    return rondo__text_append(text, "\n");
}

static rondo_status plan_text_ports(rondo__buffer *text, const char *what, const rondo__plan_port *ports,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s %u '%s' %s", what, i, ports[i].name, rondo_dtype_name(ports[i].dtype)));
        RONDO__TRY(plan_put_dims(text, ports[i].rank, ports[i].dims));
        if (ports[i].buffer == RONDO__PLAN_NONE) {
            RONDO__TRY(rondo__text_append(text, " unused\n"));
        } else {
            RONDO__TRY(rondo__text_append(text, " is %%%u\n", ports[i].buffer));
        }
    }
    return RONDO_OK;
}

static rondo_status plan_dump_text(const rondo_plan *plan, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text,
                                  "plan '%s' for %s: %u nodes in, %u steps, %u segments, arena %" PRIu64
                                  " bytes (at least %" PRIu64 "), constants %" PRIu64 " bytes",
                                  plan->name, plan->target, plan->nodes_in, plan->step_count, plan->segment_count,
                                  plan->arena_bytes, plan->arena_lower_bound, plan->constant_bytes));
    if (plan->lane_count > 1) {
        RONDO__TRY(rondo__text_append(text, ", %u lanes with %u waits", plan->lane_count, plan_wait_count(plan)));
    }
    RONDO__TRY(rondo__text_append(text, "\n"));
    for (uint32_t i = 0; plan->target_count > 1 && i < plan->target_count; i++) {
        const rondo__plan_target *target = &plan->targets[i];
        RONDO__TRY(rondo__text_append(text, "target %u '%s': arena %" PRIu64 " bytes (at least %" PRIu64 ")\n", i,
                                      target->name, target->arena_bytes, target->arena_lower_bound));
    }
    RONDO__TRY(plan_text_ports(text, "input", plan->inputs, plan->input_count));
    RONDO__TRY(plan_text_ports(text, "output", plan->outputs, plan->output_count));
    for (uint32_t i = 0; i < plan->guard_count; i++) {
        const rondo__plan_guard *g = &plan->guards[i];
        RONDO__TRY(rondo__text_append(text, "guard: input '%s' has the bytes", plan->inputs[g->input].name));
        for (uint64_t k = 0; g->has_value && k < g->bytes; k++) {
            RONDO__TRY(rondo__text_append(text, " %02x", ((const uint8_t *)g->value)[k]));
        }
        RONDO__TRY(rondo__text_append(text, "\n"));
    }
    RONDO__TRY(rondo__text_append(text, "steps (+n: bytes into the buffer, !: constant, *: absorbed constant)\n"));
    for (uint32_t i = 0; i < plan->step_count; i++) RONDO__TRY(plan_text_step(plan, text, i));
    RONDO__TRY(rondo__text_append(text, "buffers\n"));
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const rondo__plan_buffer *b = &plan->buffers[i];
        RONDO__TRY(rondo__text_append(text, "%%%-4u %-9s %8" PRIu64 " bytes", i, plan_kind_name(b->kind), b->bytes));
        if (b->kind == RONDO__PLAN_TEMPORARY) {
            RONDO__TRY(
                rondo__text_append(text, " at %" PRIu64 ", steps %u to %u", b->offset, b->first_step, b->last_step));
            if (plan->target_count > 1) RONDO__TRY(rondo__text_append(text, " on target %u", b->target));
        } else if (b->kind == RONDO__PLAN_CONSTANT) {
            if (!b->data) RONDO__TRY(rondo__text_append(text, ", absorbed"));
        } else {
            RONDO__TRY(rondo__text_append(text, ", slot %u", b->slot));
        }
        RONDO__TRY(rondo__text_append(text, "  '%s'\n", b->name));
    }
    for (uint32_t i = 0; i < plan->remark_count; i++) {
        RONDO__TRY(rondo__text_append(text, "remark: %s\n", plan->remarks[i]));
    }
    return RONDO_OK;
}

/* ---------------------------------------------------------------------------------------------------- json */

static rondo_status plan_json_operands(rondo__buffer *text, const char *key, const rondo__plan_operand *operands,
                                       uint32_t count) {
    RONDO__TRY(rondo__text_append(text, ",\"%s\":[", key));
    for (uint32_t i = 0; i < count; i++) {
        const rondo__plan_operand *o = &operands[i];
        if (i > 0) RONDO__TRY(rondo__text_append(text, ","));
        if (o->buffer == RONDO__PLAN_NONE) {
            RONDO__TRY(rondo__text_append(text, "null"));
            continue;
        }
        RONDO__TRY(rondo__text_append(text, "{\"buffer\":%u,\"dtype\":\"%s\",\"dims\":", o->buffer,
                                      rondo_dtype_name(o->dtype)));
        RONDO__TRY(plan_put_dims(text, o->rank, o->dims));
        RONDO__TRY(rondo__text_append(text, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"constant\":%s}", o->offset,
                                      o->bytes, o->constant ? "true" : "false"));
    }
    return rondo__text_append(text, "]");
}

/* Waits and records are numbers of events. */
static rondo_status plan_json_lane(rondo__buffer *text, const rondo__plan_step *s) {
    RONDO__TRY(rondo__text_append(text, ",\"lane\":%u,\"waits\":[", s->lane));
    for (uint32_t i = 0; i < s->wait_count; i++)
        RONDO__TRY(rondo__text_append(text, "%s%u", i ? "," : "", s->waits[i]));
    if (s->record == RONDO__PLAN_NONE) return rondo__text_append(text, "],\"record\":null}");
    return rondo__text_append(text, "],\"record\":%u}", s->record);
}

static rondo_status plan_json_step(rondo__buffer *text, const rondo__plan_step *s) {
    RONDO__TRY(rondo__text_append(text, "{\"operator\":"));
    RONDO__TRY(plan_put_string(text, s->operator_name));
    RONDO__TRY(rondo__text_append(text, ",\"node\":"));
    RONDO__TRY(plan_put_string(text, s->node_name));
    RONDO__TRY(rondo__text_append(text, ",\"catalogue\":"));
    RONDO__TRY(plan_put_string(text, s->catalogue));
    RONDO__TRY(rondo__text_append(text, ",\"variant\":"));
    RONDO__TRY(plan_put_string(text, s->variant));
    RONDO__TRY(rondo__text_append(text, ",\"attributes\":{"));
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        if (i > 0) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(plan_put_string(text, s->attributes[i].name));
        RONDO__TRY(rondo__text_append(text, ":"));
        RONDO__TRY(plan_put_attribute(text, &s->attributes[i]));
    }
    RONDO__TRY(rondo__text_append(text, "}"));
    RONDO__TRY(plan_json_operands(text, "inputs", s->inputs, s->input_count));
    RONDO__TRY(plan_json_operands(text, "outputs", s->outputs, s->output_count));
    RONDO__TRY(rondo__text_append(text,
                                  ",\"absorbed_inputs\":%" PRIu64 ",\"packed_bytes\":%" PRIu64
                                  ",\"scratch_bytes\":%" PRIu64 ",\"scratch_offset\":%" PRIu64 ",\"segment\":%u",
                                  s->absorbed_inputs, s->packed_bytes, s->scratch_bytes, s->scratch_offset,
                                  s->segment));
    return plan_json_lane(text, s);
}

static rondo_status plan_json_ports(rondo__buffer *text, const char *key, const rondo__plan_port *ports,
                                    uint32_t count) {
    RONDO__TRY(rondo__text_append(text, ",\"%s\":[", key));
    for (uint32_t i = 0; i < count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s{\"name\":", i ? "," : ""));
        RONDO__TRY(plan_put_string(text, ports[i].name));
        RONDO__TRY(rondo__text_append(text, ",\"dtype\":\"%s\",\"dims\":", rondo_dtype_name(ports[i].dtype)));
        RONDO__TRY(plan_put_dims(text, ports[i].rank, ports[i].dims));
        if (ports[i].buffer == RONDO__PLAN_NONE) {
            RONDO__TRY(rondo__text_append(text, ",\"buffer\":null}"));
        } else {
            RONDO__TRY(rondo__text_append(text, ",\"buffer\":%u}", ports[i].buffer));
        }
    }
    return rondo__text_append(text, "]");
}

static rondo_status plan_json_buffers(rondo__buffer *text, const rondo_plan *plan) {
    RONDO__TRY(rondo__text_append(text, ",\"buffers\":["));
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const rondo__plan_buffer *b = &plan->buffers[i];
        RONDO__TRY(rondo__text_append(text, "%s{\"name\":", i ? "," : ""));
        RONDO__TRY(plan_put_string(text, b->name));
        RONDO__TRY(rondo__text_append(text, ",\"kind\":\"%s\",\"bytes\":%" PRIu64, plan_kind_name(b->kind), b->bytes));
        if (b->kind == RONDO__PLAN_TEMPORARY) {
            RONDO__TRY(rondo__text_append(text,
                                          ",\"offset\":%" PRIu64 ",\"first_step\":%u,\"last_step\":%u,\"target\":%u",
                                          b->offset, b->first_step, b->last_step, b->target));
        } else if (b->kind == RONDO__PLAN_CONSTANT) {
            RONDO__TRY(rondo__text_append(text, ",\"absorbed\":%s", b->data ? "false" : "true"));
        } else {
            RONDO__TRY(rondo__text_append(text, ",\"slot\":%u", b->slot));
        }
        RONDO__TRY(rondo__text_append(text, "}"));
    }
    return rondo__text_append(text, "]");
}

/* With one target there is one, which runs everything. */
static rondo_status plan_json_targets(rondo__buffer *text, const rondo_plan *plan) {
    RONDO__TRY(rondo__text_append(text, ",\"targets\":["));
    for (uint32_t i = 0; i < rondo__plan_target_count(plan); i++) {
        bool one = plan->target_count <= 1;
        RONDO__TRY(rondo__text_append(text, "%s{\"name\":", i ? "," : ""));
        RONDO__TRY(plan_put_string(text, one ? plan->target : plan->targets[i].name));
        RONDO__TRY(rondo__text_append(text, ",\"arena_bytes\":%" PRIu64 "}", rondo__plan_arena_of(plan, i)));
    }
    RONDO__TRY(rondo__text_append(text, "],\"segment_targets\":["));
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        RONDO__TRY(
            rondo__text_append(text, "%s%u", i ? "," : "", plan->target_count > 1 ? plan->segment_targets[i] : 0));
    }
    return rondo__text_append(text, "]");
}

static rondo_status plan_dump_json(const rondo_plan *plan, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text, "{\"plan\":"));
    RONDO__TRY(plan_put_string(text, plan->name));
    RONDO__TRY(rondo__text_append(text, ",\"target\":"));
    RONDO__TRY(plan_put_string(text, plan->target));
    RONDO__TRY(rondo__text_append(text,
                                  ",\"nodes_in\":%u,\"segments\":%u,\"lanes\":%u,\"waits\":%u,\"arena_bytes\":%" PRIu64
                                  ",\"arena_lower_bound\":%" PRIu64 ",\"constant_bytes\":%" PRIu64,
                                  plan->nodes_in, plan->segment_count, plan->lane_count, plan_wait_count(plan),
                                  plan->arena_bytes, plan->arena_lower_bound, plan->constant_bytes));
    RONDO__TRY(plan_json_targets(text, plan));
    RONDO__TRY(plan_json_ports(text, "inputs", plan->inputs, plan->input_count));
    RONDO__TRY(plan_json_ports(text, "outputs", plan->outputs, plan->output_count));
    RONDO__TRY(rondo__text_append(text, ",\"guards\":["));
    for (uint32_t i = 0; i < plan->guard_count; i++) {
        const rondo__plan_guard *g = &plan->guards[i];
        RONDO__TRY(rondo__text_append(text, "%s{\"input\":%u,\"value\":\"", i ? "," : "", g->input));
        for (uint64_t k = 0; g->has_value && k < g->bytes; k++) {
            RONDO__TRY(rondo__text_append(text, "%02x", ((const uint8_t *)g->value)[k]));
        }
        RONDO__TRY(rondo__text_append(text, "\"}"));
    }
    RONDO__TRY(rondo__text_append(text, "],\"steps\":["));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (i > 0) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(plan_json_step(text, &plan->steps[i]));
    }
    RONDO__TRY(rondo__text_append(text, "]"));
    RONDO__TRY(plan_json_buffers(text, plan));
    RONDO__TRY(rondo__text_append(text, ",\"remarks\":["));
    for (uint32_t i = 0; i < plan->remark_count; i++) {
        if (i > 0) RONDO__TRY(rondo__text_append(text, ","));
        RONDO__TRY(plan_put_string(text, plan->remarks[i]));
    }
    return rondo__text_append(text, "]}\n");
}

/* ----------------------------------------------------------------------------------------------------- dot */

/* JSON's escapes of quotes and backslashes are dot's too. */
static rondo_status plan_dot_uses(const rondo_plan *plan, rondo__buffer *text, const rondo__plan_operand *operands,
                                  uint32_t count, uint32_t step, bool read) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t buffer = operands[i].buffer;
        if (buffer == RONDO__PLAN_NONE || plan->buffers[buffer].kind == RONDO__PLAN_CONSTANT) continue;
        if (read) {
            RONDO__TRY(rondo__text_append(text, "  b%u -> s%u;\n", buffer, step));
        } else {
            RONDO__TRY(rondo__text_append(text, "  s%u -> b%u;\n", step, buffer));
        }
    }
    return RONDO_OK;
}

static rondo_status plan_dump_dot(const rondo_plan *plan, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text, "digraph "));
    RONDO__TRY(plan_put_string(text, plan->name));
    RONDO__TRY(rondo__text_append(text, " {\n  node [fontname=\"sans-serif\", fontsize=10];\n"));
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const rondo__plan_buffer *b = &plan->buffers[i];
        if (b->kind == RONDO__PLAN_CONSTANT) continue;
        RONDO__TRY(rondo__text_append(text, "  b%u [shape=%s, label=", i,
                                      b->kind == RONDO__PLAN_TEMPORARY ? "ellipse" : "house"));
        RONDO__TRY(plan_put_string(text, b->name));
        RONDO__TRY(
            rondo__text_append(text, ", tooltip=\"%s, %" PRIu64 " bytes\"];\n", plan_kind_name(b->kind), b->bytes));
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const rondo__plan_step *s = &plan->steps[i];
        RONDO__TRY(rondo__text_append(text, "  s%u [shape=box, label=", i));
        RONDO__TRY(plan_put_string(text, s->operator_name));
        RONDO__TRY(rondo__text_append(text, ", tooltip="));
        RONDO__TRY(plan_put_string(text, s->node_name));
        RONDO__TRY(rondo__text_append(text, "];\n"));
        RONDO__TRY(plan_dot_uses(plan, text, s->inputs, s->input_count, i, true));
        RONDO__TRY(plan_dot_uses(plan, text, s->outputs, s->output_count, i, false));
    }
    return rondo__text_append(text, "}\n");
}

rondo_status rondo_plan_dump(const rondo_plan *plan, rondo_dump_format format, rondo_write_function write, void *user) {
    if (!plan || !write) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_plan_dump: plan or write is null");
    rondo__buffer text;
    rondo__buffer_init(&text, &plan->allocator, 1, RONDO__PLAN_DUMP_MAX);
    rondo_status status;
    switch (format) {
    case RONDO_DUMP_TEXT: status = plan_dump_text(plan, &text); break;
    case RONDO_DUMP_DOT: status = plan_dump_dot(plan, &text); break;
    case RONDO_DUMP_JSON: status = plan_dump_json(plan, &text); break;
    default: status = RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_plan_dump: there is no dump format %d", format); break;
    }
    if (!status && write(user, rondo__text(&text), text.count) != 0) {
        status = RONDO__FAIL(IO, FILE, "plan '%s': the writer of the dump stopped", plan->name);
    }
    rondo__buffer_deinit(&text);
    return status;
}
