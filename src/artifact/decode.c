/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a file as a plan. Texts, dims and data stay where they are mapped; only the structs that hold them are
 * made. A wrong word makes the reader `bad` and reads as 0 from then on; nothing that a word counts is allocated before
 * the words for it are known to be there. plan_verify.c then judges what the numbers mean together. */
#include <string.h>

#include "artifact/artifact.h"
#include "base/checked.h"

typedef struct decode_reader {
    const rondo__artifact *file;
    rondo__arena *arena;
    const uint64_t *words;
    uint64_t at, count;
    const char *bad; /* what was wrong first */
} decode_reader;

static uint64_t decode_bad(decode_reader *r, const char *what) {
    if (!r->bad) r->bad = what;
    return 0;
}

static uint64_t decode_word(decode_reader *r) {
    if (r->bad || r->at >= r->count) return decode_bad(r, "its plan ends early");
    return r->words[r->at++];
}

static uint32_t decode_u32(decode_reader *r) {
    uint64_t word = decode_word(r);
    return (uint32_t)(word <= UINT32_MAX ? word : decode_bad(r, "a number of its plan is too large"));
}

static int32_t decode_i32(decode_reader *r) {
    int64_t value = (int64_t)decode_word(r);
    if (value < INT32_MIN || value > INT32_MAX) return (int32_t)decode_bad(r, "a number of its plan is too large");
    return (int32_t)value;
}

/* How many things follow, each of at least `words` words. */
static uint32_t decode_count(decode_reader *r, uint64_t words) {
    uint32_t count = decode_u32(r);
    if (count > (r->count - r->at) / words) return (uint32_t)decode_bad(r, "its plan counts more than it holds");
    return count;
}

static const char *decode_text_at(decode_reader *r, uint64_t offset) {
    static const char empty[] = "";
    if (offset < r->file->strings->bytes) return (const char *)r->file->strings->data + offset;
    (void)decode_bad(r, "a text of its plan is no string of it");
    return empty;
}

static const char *decode_text(decode_reader *r) {
    uint64_t offset = decode_word(r);
    return offset == RONDO__ARTIFACT_NO_TEXT ? NULL : decode_text_at(r, offset);
}

static rondo_string decode_string(decode_reader *r) {
    uint64_t offset = decode_word(r), size = decode_word(r), end;
    rondo_string string = {decode_text_at(r, offset), 0};
    if (!r->bad && rondo__checked_add_u64(offset, size, &end) && end < r->file->strings->bytes &&
        r->file->strings->data[end] == 0)
        string.size = (size_t)size;
    else (void)decode_bad(r, "a text of its plan is no string of it");
    return string;
}

/* Words in place. */
static const int64_t *decode_words(decode_reader *r, uint64_t count) {
    if (r->bad || count > r->count - r->at) {
        (void)decode_bad(r, "its plan ends early");
        return NULL;
    }
    const int64_t *words = (const int64_t *)(const void *)(r->words + r->at);
    r->at += count;
    return words;
}

static const void *decode_data(decode_reader *r, uint64_t bytes, uint64_t alignment) {
    uint64_t word = decode_word(r), end;
    if (word == 0) return NULL;
    uint64_t offset = word - 1u;
    if (!rondo__checked_add_u64(offset, bytes, &end) || end > r->file->constants->bytes ||
        (alignment && offset % alignment != 0)) {
        (void)decode_bad(r, "data of its plan leaves the constants or is unaligned");
        return NULL;
    }
    return r->file->constants->data + offset;
}

/* Zeroed; null, and bad, without memory. The status of the arena is what the caller returns. */
static rondo_status decode_array(decode_reader *r, uint64_t count, size_t size, void *out_pointer) {
    void *memory = NULL;
    if (!r->bad) RONDO__TRY(rondo__arena_allocate_array(r->arena, (size_t)count, size, &memory));
    memcpy(out_pointer, &memory, sizeof memory);
    return RONDO_OK;
}

static rondo_status decode_end(const decode_reader *r) {
    return r->bad ? RONDO__ARTIFACT_CORRUPT("%s", r->bad) : RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ the parts */

static void decode_shape(decode_reader *r, rondo_dtype *dtype, int32_t *rank, const int64_t **dims) {
    *dtype = decode_i32(r);
    *rank = decode_i32(r);
    if (*rank < 0 || *rank > RONDO_RANK_MAX) *rank = (int32_t)decode_bad(r, "a shape of its plan has no legal rank");
    *dims = decode_words(r, (uint64_t)*rank);
}

static uint64_t decode_alignment(rondo_dtype dtype) {
    uint32_t bytes = rondo_dtype_bits(dtype) / 8u;
    return bytes < 2u ? 1u : bytes < 8u ? bytes : 8u;
}

static rondo_status decode_operands(decode_reader *r, uint32_t *out_count, const rondo__plan_operand **out_operands) {
    uint32_t count = decode_count(r, 7);
    rondo__plan_operand *operands;
    RONDO__TRY(decode_array(r, count, sizeof *operands, &operands));
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        rondo__plan_operand *o = &operands[i];
        o->buffer = decode_u32(r);
        decode_shape(r, &o->dtype, &o->rank, &o->dims);
        o->format = decode_i32(r);
        o->offset = decode_word(r);
        o->bytes = decode_word(r);
        o->constant = decode_data(r, o->bytes, decode_alignment(o->dtype));
    }
    *out_count = count;
    *out_operands = operands;
    return decode_end(r);
}

static rondo_status decode_tensor(decode_reader *r, rondo_attribute *a) {
    rondo_tensor_view *view;
    int64_t elements = 0;
    uint64_t bytes = 0;
    RONDO__TRY(decode_array(r, 1, sizeof *view, &view));
    if (r->bad) return decode_end(r);
    decode_shape(r, &view->dtype, &view->rank, &view->shape);
    view->device_type = 1;
    if (r->bad || !rondo__checked_elements(view->rank, view->shape, &elements) || !rondo_dtype_bits(view->dtype)) {
        (void)decode_bad(r, "an attribute of its plan is no tensor");
        return decode_end(r);
    }
    RONDO__TRY(rondo_dtype_bytes(view->dtype, (uint64_t)elements, &bytes));
    view->data = (void *)(uintptr_t)decode_data(r, bytes, decode_alignment(view->dtype));
    if (!view->data && bytes) (void)decode_bad(r, "an attribute of its plan has no data");
    a->value.tensor = view;
    return decode_end(r);
}

static void decode_own(decode_reader *r, rondo_attribute *a) {
    uint64_t at = decode_word(r), bytes = decode_word(r), end;
    a->kind = RONDO_ATTRIBUTE_STRING;
    for (uint32_t i = 0; i < r->file->part_count && !r->bad; i++) {
        const rondo__artifact_part *part = &r->file->parts[i];
        if (part->kind != RONDO__ARTIFACT_OPERATORS) continue;
        if (at % RONDO__ARTIFACT_ALIGNMENT || !rondo__checked_add_u64(at, bytes, &end) || end >= part->bytes ||
            part->data[end] != 0)
            break;
        a->value.s = (rondo_string){(const char *)part->data + at, (size_t)bytes};
        return;
    }
    (void)decode_bad(r, "the bytes of a custom operator lie in no partition");
}

static rondo_status decode_attribute(decode_reader *r, rondo_attribute *a) {
    rondo_string *strings;
    uint32_t bits;
    a->name = decode_text(r);
    a->kind = decode_i32(r);
    a->count = decode_u32(r);
    bool list =
        a->kind == RONDO_ATTRIBUTE_INTS || a->kind == RONDO_ATTRIBUTE_FLOATS || a->kind == RONDO_ATTRIBUTE_STRINGS;
    if (!a->name || (!list && a->count != 1)) (void)decode_bad(r, "an attribute of its plan has no name or count");
    if (!r->bad && (strcmp(a->name, RONDO__PLAN_OWN) == 0) != (a->kind == RONDO__ARTIFACT_OWN))
        (void)decode_bad(r, "an attribute of its plan is of a kind that its name does not have");
    switch (r->bad ? RONDO_ATTRIBUTE_NONE : a->kind) {
    case RONDO_ATTRIBUTE_INT: a->value.i = (int64_t)decode_word(r); break;
    case RONDO_ATTRIBUTE_FLOAT:
        bits = decode_u32(r);
        memcpy(&a->value.f, &bits, sizeof bits);
        break;
    case RONDO_ATTRIBUTE_STRING: a->value.s = decode_string(r); break;
    case RONDO_ATTRIBUTE_INTS: a->value.ints = decode_words(r, a->count); break;
    case RONDO_ATTRIBUTE_FLOATS:
        a->value.floats = decode_data(r, (uint64_t)a->count * sizeof(float), sizeof(float));
        if (!a->value.floats && a->count) (void)decode_bad(r, "an attribute of its plan has no data");
        break;
    case RONDO_ATTRIBUTE_STRINGS:
        if (a->count > (r->count - r->at) / 2u) {
            (void)decode_bad(r, "its plan counts more than it holds");
            break;
        }
        RONDO__TRY(decode_array(r, a->count, sizeof *strings, &strings));
        for (uint32_t i = 0; i < a->count && !r->bad; i++) strings[i] = decode_string(r);
        a->value.strings = strings;
        break;
    case RONDO_ATTRIBUTE_TENSOR: return decode_tensor(r, a);
    case RONDO__ARTIFACT_OWN: decode_own(r, a); break;
    default: (void)decode_bad(r, "an attribute of its plan is of a kind that no file holds");
    }
    return decode_end(r);
}

/* A block that was packed by another version is left alone: its form may have been another under the same name. */
static void decode_block(decode_reader *r, rondo__plan_step *s) {
    uint64_t set = decode_word(r), at = decode_word(r), end, seen = 0;
    if (r->bad || set == 0) return;
    for (uint32_t i = 0; i < r->file->part_count; i++) {
        const rondo__artifact_part *part = &r->file->parts[i];
        if (part->kind != RONDO__ARTIFACT_PACKED || ++seen != set) continue;
        if (!part->tag || at % RONDO__ARTIFACT_ALIGNMENT || !rondo__checked_add_u64(at, s->packed_bytes, &end) ||
            end > part->bytes)
            break;
        if (strcmp(r->file->writer, RONDO_VERSION_STRING) != 0) return;
        s->packed = part->data + at;
        s->packed_set = part->tag;
        return;
    }
    (void)decode_bad(r, "a packed block of its plan lies in no partition");
}

static rondo_status decode_step(decode_reader *r, rondo__plan_step *s) {
    uint32_t *waits;
    rondo_attribute *attributes;
    s->operator_name = decode_text(r);
    s->node_name = decode_text(r);
    s->catalogue = decode_text(r);
    s->variant = decode_text(r);
    s->absorbed_inputs = decode_word(r);
    s->packed_bytes = decode_word(r);
    s->scratch_bytes = decode_word(r);
    s->scratch_offset = decode_word(r);
    s->lane = decode_u32(r);
    s->segment = decode_u32(r);
    s->record = decode_u32(r);
    decode_block(r, s);
    s->wait_count = decode_count(r, 1);
    RONDO__TRY(decode_array(r, s->wait_count, sizeof *waits, &waits));
    for (uint32_t i = 0; i < s->wait_count && !r->bad; i++) waits[i] = decode_u32(r);
    s->waits = waits;
    RONDO__TRY(decode_operands(r, &s->input_count, &s->inputs));
    RONDO__TRY(decode_operands(r, &s->output_count, &s->outputs));
    s->attribute_count = decode_count(r, 3);
    RONDO__TRY(decode_array(r, s->attribute_count, sizeof *attributes, &attributes));
    for (uint32_t i = 0; i < s->attribute_count && !r->bad; i++) RONDO__TRY(decode_attribute(r, &attributes[i]));
    s->attributes = attributes;
    return decode_end(r);
}

static rondo_status decode_buffers(decode_reader *r, rondo_plan *p) {
    RONDO__TRY(decode_array(r, p->buffer_count, sizeof *p->buffers, &p->buffers));
    for (uint32_t i = 0; i < p->buffer_count && !r->bad; i++) {
        rondo__plan_buffer *b = &p->buffers[i];
        b->name = decode_text(r);
        b->kind = decode_i32(r);
        b->slot = decode_u32(r);
        b->bytes = decode_word(r);
        b->offset = decode_word(r);
        b->data = decode_data(r, b->bytes, 0);
        b->first_step = decode_u32(r);
        b->last_step = decode_u32(r);
    }
    return decode_end(r);
}

static rondo_status decode_ports(decode_reader *r, uint32_t count, rondo__plan_port **out_ports) {
    rondo__plan_port *ports;
    RONDO__TRY(decode_array(r, count, sizeof *ports, &ports));
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        ports[i].name = decode_text(r);
        decode_shape(r, &ports[i].dtype, &ports[i].rank, &ports[i].dims);
        ports[i].bytes = decode_word(r);
        ports[i].buffer = decode_u32(r);
    }
    *out_ports = ports;
    return decode_end(r);
}

static rondo_status decode_guards(decode_reader *r, rondo_plan *p) {
    RONDO__TRY(decode_array(r, p->guard_count, sizeof *p->guards, &p->guards));
    for (uint32_t i = 0; i < p->guard_count && !r->bad; i++) {
        rondo__plan_guard *g = &p->guards[i];
        g->input = decode_u32(r);
        g->has_value = decode_u32(r);
        g->bytes = decode_word(r);
        g->value = decode_data(r, g->bytes, 0);
    }
    return decode_end(r);
}

/* Counts of what the plan holds, in the order of plan.h; the shortest form of each is known. */
static rondo_status decode_counts(decode_reader *r, rondo_plan *p) {
    rondo__artifact *file = p->file;
    const char *writer = decode_text(r), *name = decode_text(r), *target = decode_text(r);
    if (!writer || !name || !target) (void)decode_bad(r, "its plan has no name, writer or target");
    file->writer = writer;
    p->name = name;
    p->target = target;
    p->buffer_count = decode_count(r, 8);
    p->step_count = decode_count(r, 17);
    p->guard_count = decode_count(r, 4);
    p->input_count = decode_count(r, 5);
    p->output_count = decode_count(r, 5);
    p->remark_count = decode_count(r, 1);
    p->segment_count = decode_u32(r);
    p->lane_count = decode_u32(r);
    p->event_count = decode_u32(r);
    p->nodes_in = decode_u32(r);
    p->arena_bytes = decode_word(r);
    p->arena_lower_bound = decode_word(r);
    p->constant_bytes = decode_word(r);
    if (p->event_count > p->step_count) (void)decode_bad(r, "its plan has more events than steps");
    return decode_end(r);
}

static rondo_status decode_targets(decode_reader *r, rondo_plan *p) {
    uint32_t count = decode_u32(r), *segments;
    if (count == 1) return decode_end(r);
    if (count == 0 || count > RONDO__PLAN_TARGETS_MAX || p->segment_count > r->count - r->at)
        (void)decode_bad(r, "its plan has no legal number of targets or segments");
    if (r->bad) return decode_end(r);
    RONDO__TRY(decode_array(r, count, sizeof *p->targets, &p->targets));
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        p->targets[i].name = decode_text(r);
        p->targets[i].arena_bytes = decode_word(r);
        p->targets[i].arena_lower_bound = decode_word(r);
    }
    RONDO__TRY(decode_array(r, p->segment_count, sizeof *segments, &segments));
    for (uint32_t i = 0; i < p->segment_count && !r->bad; i++) segments[i] = decode_u32(r);
    for (uint32_t i = 0; i < p->buffer_count && !r->bad; i++) p->buffers[i].target = decode_u32(r);
    p->segment_targets = segments;
    p->target_count = count;
    return decode_end(r);
}

rondo_status rondo__artifact_decode(rondo__artifact *file, rondo_plan *plan) {
    decode_reader reader = {.file = file,
                            .arena = &plan->arena,
                            .words = (const uint64_t *)(const void *)file->plan->data,
                            .count = file->plan->bytes / sizeof(uint64_t)};
    decode_reader *r = &reader;
    if (file->plan->bytes % sizeof(uint64_t)) (void)decode_bad(r, "its plan is no row of words");
    rondo_status status = decode_counts(r, plan);
    if (status) {
        plan->name = ""; /* what is there is released, and nothing more */
        return status;
    }
    RONDO__TRY(decode_buffers(r, plan));
    RONDO__TRY(decode_ports(r, plan->input_count, &plan->inputs));
    RONDO__TRY(decode_ports(r, plan->output_count, &plan->outputs));
    RONDO__TRY(decode_guards(r, plan));
    RONDO__TRY(decode_array(r, plan->step_count, sizeof *plan->steps, &plan->steps));
    for (uint32_t i = 0; i < plan->step_count; i++) RONDO__TRY(decode_step(r, &plan->steps[i]));
    const char **remarks;
    RONDO__TRY(decode_array(r, plan->remark_count, sizeof *remarks, &remarks));
    for (uint32_t i = 0; i < plan->remark_count && !r->bad; i++) remarks[i] = decode_text(r);
    plan->remarks = remarks;
    if (!r->bad && file->minor >= RONDO__ARTIFACT_MINOR_TARGETS) RONDO__TRY(decode_targets(r, plan));
    if (r->at != r->count && file->minor <= RONDO__ARTIFACT_MINOR) (void)decode_bad(r, "its plan does not end");
    return decode_end(r);
}
