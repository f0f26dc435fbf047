/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as partitions. One walk writes the words; it is done twice: the first time it only learns which bytes the plan
 * points to, so that views of one constant share it, the second time it writes where they came to lie. Nothing depends
 * on an address: places follow the order in which the plan mentions things. */
#include <stdlib.h>
#include <string.h>

#include "artifact/artifact.h"
#include "base/checked.h"

typedef struct encode_walk {
    rondo__artifact_image *image;
    const rondo_plan *plan;
    const rondo__artifact_block *blocks;
    rondo__buffer by_address; /* rondo__artifact_piece, sorted by address once collected */
    bool collecting;
} encode_walk;

static rondo_status encode_word(encode_walk *w, uint64_t word) {
    return rondo__buffer_append(&w->image->words, &word, 1);
}

static rondo_status encode_signed(encode_walk *w, int64_t value) { return encode_word(w, (uint64_t)value); }

static rondo_status encode_text(encode_walk *w, const char *text) {
    uint64_t offset;
    RONDO__TRY(rondo__artifact_intern(w->image, text, text ? strlen(text) : 0, &offset));
    return encode_word(w, offset);
}

static rondo_status encode_string(encode_walk *w, rondo_string string) {
    uint64_t offset;
    RONDO__TRY(
        rondo__artifact_intern(w->image, string.data ? string.data : "", string.data ? string.size : 0, &offset));
    RONDO__TRY(encode_word(w, offset));
    return encode_word(w, string.data ? string.size : 0);
}

/* ---------------------------------------------------------------------------------------------------- constants */

/* The last piece that begins at or before the address. */
static const rondo__artifact_piece *encode_piece_of(const encode_walk *w, const uint8_t *data) {
    const rondo__artifact_piece *pieces = w->by_address.data;
    size_t low = 0, high = w->by_address.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)pieces[middle].data <= (uintptr_t)data) low = middle + 1;
        else high = middle;
    }
    return low ? &pieces[low - 1] : NULL;
}

/* Data as one word: its offset in the constants and 1, or 0 for none. */
static rondo_status encode_data(encode_walk *w, const void *data, uint64_t bytes) {
    if (!data) return encode_word(w, 0);
    if (bytes == 0) return encode_word(w, 1);
    if (w->collecting) {
        rondo__artifact_piece piece = {data, bytes, w->by_address.count, 0};
        RONDO__TRY(rondo__buffer_append(&w->by_address, &piece, 1));
        return encode_word(w, 0);
    }
    const rondo__artifact_piece *piece = encode_piece_of(w, data);
    if (!piece) return RONDO__FAIL(INTERNAL, FILE, "a constant of the plan was not collected");
    return encode_word(w, piece->at + (uint64_t)((const uint8_t *)data - piece->data) + 1u);
}

static int encode_by_address(const void *a, const void *b) {
    const rondo__artifact_piece *x = a, *y = b;
    if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order ? 1 : 0;
}

static int encode_by_order(const void *a, const void *b) {
    const rondo__artifact_piece *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order ? 1 : 0;
}

/* Pieces that overlap become one; then each gets its place, in the order of first mention. */
static rondo_status encode_place_constants(encode_walk *w) {
    rondo__artifact_image *image = w->image;
    rondo__artifact_piece *pieces = w->by_address.data;
    size_t count = 0;
    if (w->by_address.count) qsort(pieces, w->by_address.count, sizeof *pieces, encode_by_address);
    for (size_t i = 0; i < w->by_address.count; i++) {
        rondo__artifact_piece *last = count ? &pieces[count - 1] : NULL;
        uint64_t from = last ? (uint64_t)((uintptr_t)pieces[i].data - (uintptr_t)last->data) : 0;
        if (!last || from >= last->bytes) {
            pieces[count++] = pieces[i];
            continue;
        }
        if (from + pieces[i].bytes > last->bytes) last->bytes = from + pieces[i].bytes;
        if (pieces[i].order < last->order) last->order = pieces[i].order;
    }
    w->by_address.count = count;
    RONDO__TRY(rondo__buffer_append(&image->constants, pieces, count));
    rondo__artifact_piece *placed = image->constants.data;
    if (count) qsort(placed, count, sizeof *placed, encode_by_order);
    for (size_t i = 0; i < count; i++) {
        uint64_t at;
        if (!rondo__checked_align_u64(image->constant_bytes, RONDO__ARTIFACT_ALIGNMENT, &at) ||
            !rondo__checked_add_u64(at, placed[i].bytes, &image->constant_bytes))
            return RONDO__FAIL(OUT_OF_RANGE, FILE, "the constants are larger than any file");
        placed[i].at = at;
        ((rondo__artifact_piece *)(uintptr_t)encode_piece_of(w, placed[i].data))->at = at;
    }
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------- packed blocks */

static rondo_status encode_set_of(rondo__artifact_image *image, const char *name, uint32_t *out_index) {
    rondo__artifact_set *sets = image->sets.data;
    for (uint32_t i = 0; i < image->sets.count; i++) {
        if (strcmp(sets[i].name, name) == 0) {
            *out_index = i;
            return RONDO_OK;
        }
    }
    rondo__artifact_set set = {name, 0};
    *out_index = (uint32_t)image->sets.count;
    return rondo__buffer_append(&image->sets, &set, 1);
}

/* Two words: which set and 1, or 0 for none; the offset in its partition. */
static rondo_status encode_block(encode_walk *w, uint32_t index) {
    const rondo__plan_step *step = &w->plan->steps[index];
    const rondo__artifact_block *block = &w->blocks[index];
    uint32_t set = 0;
    uint64_t at = 0;
    if (!step->packed_bytes || !block->data || !block->kernel_set || w->collecting) {
        RONDO__TRY(encode_word(w, 0));
        return encode_word(w, 0);
    }
    RONDO__TRY(encode_set_of(w->image, block->kernel_set, &set));
    rondo__artifact_set *sets = w->image->sets.data;
    if (!rondo__checked_align_u64(sets[set].bytes, RONDO__ARTIFACT_ALIGNMENT, &at) ||
        !rondo__checked_add_u64(at, step->packed_bytes, &sets[set].bytes))
        return RONDO__FAIL(OUT_OF_RANGE, FILE, "the packed weights are larger than any file");
    rondo__artifact_piece piece = {block->data, step->packed_bytes, set, at};
    RONDO__TRY(rondo__buffer_append(&w->image->packed, &piece, 1));
    RONDO__TRY(encode_word(w, (uint64_t)set + 1u));
    return encode_word(w, at);
}

/* ------------------------------------------------------------------------------------------------------- the walk */

static rondo_status encode_shape(encode_walk *w, rondo_dtype dtype, int32_t rank, const int64_t *dims) {
    RONDO__TRY(encode_signed(w, dtype));
    RONDO__TRY(encode_signed(w, rank));
    for (int32_t d = 0; d < rank; d++) RONDO__TRY(encode_signed(w, dims[d]));
    return RONDO_OK;
}

static rondo_status encode_operands(encode_walk *w, const rondo__plan_operand *operands, uint32_t count) {
    RONDO__TRY(encode_word(w, count));
    for (uint32_t i = 0; i < count; i++) {
        const rondo__plan_operand *o = &operands[i];
        RONDO__TRY(encode_word(w, o->buffer));
        RONDO__TRY(encode_shape(w, o->dtype, o->rank, o->dims));
        RONDO__TRY(encode_signed(w, o->format));
        RONDO__TRY(encode_word(w, o->offset));
        RONDO__TRY(encode_word(w, o->bytes));
        RONDO__TRY(encode_data(w, o->constant, o->bytes));
    }
    return RONDO_OK;
}

static rondo_status encode_tensor(encode_walk *w, const rondo_attribute *attribute, const char *node) {
    const rondo_tensor_view *view = attribute->value.tensor;
    int64_t elements = 0;
    uint64_t bytes = 0;
    if (!view || view->strides || !rondo__checked_elements(view->rank, view->shape, &elements))
        return RONDO__FAIL(UNSUPPORTED, FILE, "attribute '%s' of '%s' is a tensor that a file cannot hold",
                           attribute->name, node);
    RONDO__TRY_NOTE(rondo_dtype_bytes(view->dtype, (uint64_t)elements, &bytes), "attribute '%s' of '%s'",
                    attribute->name, node);
    RONDO__TRY(encode_shape(w, view->dtype, view->rank, view->shape));
    return encode_data(w, view->data ? (const uint8_t *)view->data + view->byte_offset : NULL, bytes);
}

/* The bytes with the zero behind them, which no reader counts. */
static rondo_status encode_own(encode_walk *w, const void *data, uint64_t bytes) {
    rondo__artifact_image *image = w->image;
    uint64_t at = 0, end = 0;
    if (!rondo__checked_align_u64(image->own_bytes, RONDO__ARTIFACT_ALIGNMENT, &at) ||
        !rondo__checked_add_u64(at, bytes, &end) || !rondo__checked_add_u64(end, 1, &end))
        return RONDO__FAIL(OUT_OF_RANGE, FILE, "the bytes of custom operators are larger than any file");
    if (!w->collecting) {
        rondo__artifact_piece piece = {data, bytes + 1u, 0, at};
        RONDO__TRY(rondo__buffer_append(&image->own, &piece, 1));
        image->own_bytes = end;
    }
    RONDO__TRY(encode_text(w, RONDO__PLAN_OWN));
    RONDO__TRY(encode_signed(w, RONDO__ARTIFACT_OWN));
    RONDO__TRY(encode_word(w, 1));
    RONDO__TRY(encode_word(w, at));
    return encode_word(w, bytes);
}

static rondo_status encode_attribute(encode_walk *w, const rondo_attribute *a, const char *node) {
    uint32_t bits = 0;
    if (a->kind == RONDO_ATTRIBUTE_STRING && strcmp(a->name, RONDO__PLAN_OWN) == 0)
        return encode_own(w, a->value.s.data, a->value.s.size); /* the plan is from a file itself */
    RONDO__TRY(encode_text(w, a->name));
    RONDO__TRY(encode_signed(w, a->kind));
    RONDO__TRY(encode_word(w, a->count));
    switch (a->kind) {
    case RONDO_ATTRIBUTE_INT: return encode_signed(w, a->value.i);
    case RONDO_ATTRIBUTE_FLOAT: memcpy(&bits, &a->value.f, sizeof bits); return encode_word(w, bits);
    case RONDO_ATTRIBUTE_STRING: return encode_string(w, a->value.s);
    case RONDO_ATTRIBUTE_INTS:
        for (uint32_t i = 0; i < a->count; i++) RONDO__TRY(encode_signed(w, a->value.ints[i]));
        return RONDO_OK;
    case RONDO_ATTRIBUTE_FLOATS: return encode_data(w, a->value.floats, (uint64_t)a->count * sizeof(float));
    case RONDO_ATTRIBUTE_STRINGS:
        for (uint32_t i = 0; i < a->count; i++) RONDO__TRY(encode_string(w, a->value.strings[i]));
        return RONDO_OK;
    case RONDO_ATTRIBUTE_TENSOR: return encode_tensor(w, a, node);
    default:
        return RONDO__FAIL(UNSUPPORTED, FILE, "attribute '%s' of '%s' is of kind %d, which a file cannot hold", a->name,
                           node, (int)a->kind);
    }
}

static rondo_status encode_step(encode_walk *w, uint32_t index) {
    const rondo__plan_step *s = &w->plan->steps[index];
    const char *const texts[] = {s->operator_name, s->node_name, s->catalogue, s->variant};
    const uint64_t numbers[] = {s->absorbed_inputs, s->packed_bytes, s->scratch_bytes, s->scratch_offset, s->lane,
                                s->segment,         s->record};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) RONDO__TRY(encode_text(w, texts[i]));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) RONDO__TRY(encode_word(w, numbers[i]));
    RONDO__TRY(encode_block(w, index));
    RONDO__TRY(encode_word(w, s->wait_count));
    for (uint32_t i = 0; i < s->wait_count; i++) RONDO__TRY(encode_word(w, s->waits[i]));
    RONDO__TRY(encode_operands(w, s->inputs, s->input_count));
    RONDO__TRY(encode_operands(w, s->outputs, s->output_count));
    const rondo__artifact_block *block = &w->blocks[index];
    RONDO__TRY(encode_word(w, (uint64_t)s->attribute_count + (block->own ? 1u : 0u)));
    for (uint32_t i = 0; i < s->attribute_count; i++) RONDO__TRY(encode_attribute(w, &s->attributes[i], s->node_name));
    return block->own ? encode_own(w, block->own, block->own_bytes) : RONDO_OK;
}

static rondo_status encode_ports(encode_walk *w, const rondo__plan_port *ports, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        RONDO__TRY(encode_text(w, ports[i].name));
        RONDO__TRY(encode_shape(w, ports[i].dtype, ports[i].rank, ports[i].dims));
        RONDO__TRY(encode_word(w, ports[i].bytes));
        RONDO__TRY(encode_word(w, ports[i].buffer));
    }
    return RONDO_OK;
}

static rondo_status encode_buffer(encode_walk *w, const rondo__plan_buffer *b) {
    RONDO__TRY(encode_text(w, b->name));
    RONDO__TRY(encode_signed(w, b->kind));
    RONDO__TRY(encode_word(w, b->slot));
    RONDO__TRY(encode_word(w, b->bytes));
    RONDO__TRY(encode_word(w, b->offset));
    RONDO__TRY(encode_data(w, b->kind == RONDO__PLAN_CONSTANT ? b->data : NULL, b->bytes));
    RONDO__TRY(encode_word(w, b->first_step));
    return encode_word(w, b->last_step);
}

/* Since minor version 1: their number, and where there are several the targets, whose each segment is, and each buffer. */
static rondo_status encode_targets(encode_walk *w) {
    const rondo_plan *p = w->plan;
    RONDO__TRY(encode_word(w, rondo__plan_target_count(p)));
    if (p->target_count <= 1) return RONDO_OK;
    for (uint32_t i = 0; i < p->target_count; i++) {
        RONDO__TRY(encode_text(w, p->targets[i].name));
        RONDO__TRY(encode_word(w, p->targets[i].arena_bytes));
        RONDO__TRY(encode_word(w, p->targets[i].arena_lower_bound));
    }
    for (uint32_t i = 0; i < p->segment_count; i++) RONDO__TRY(encode_word(w, p->segment_targets[i]));
    for (uint32_t i = 0; i < p->buffer_count; i++) RONDO__TRY(encode_word(w, p->buffers[i].target));
    return RONDO_OK;
}

static rondo_status encode_plan(encode_walk *w) {
    const rondo_plan *p = w->plan;
    const char *const texts[] = {RONDO_VERSION_STRING, p->name, p->target};
    const uint64_t numbers[] = {p->buffer_count,  p->step_count,   p->guard_count,   p->input_count,
                                p->output_count,  p->remark_count, p->segment_count, p->lane_count,
                                p->event_count,   p->nodes_in,     p->arena_bytes,   p->arena_lower_bound,
                                p->constant_bytes};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) RONDO__TRY(encode_text(w, texts[i]));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) RONDO__TRY(encode_word(w, numbers[i]));
    for (uint32_t i = 0; i < p->buffer_count; i++) RONDO__TRY(encode_buffer(w, &p->buffers[i]));
    RONDO__TRY(encode_ports(w, p->inputs, p->input_count));
    RONDO__TRY(encode_ports(w, p->outputs, p->output_count));
    for (uint32_t i = 0; i < p->guard_count; i++) {
        const rondo__plan_guard *g = &p->guards[i];
        RONDO__TRY(encode_word(w, g->input));
        RONDO__TRY(encode_word(w, g->has_value));
        RONDO__TRY(encode_word(w, g->has_value ? g->bytes : 0));
        RONDO__TRY(encode_data(w, g->has_value ? g->value : NULL, g->bytes));
    }
    for (uint32_t i = 0; i < p->step_count; i++) RONDO__TRY(encode_step(w, i));
    for (uint32_t i = 0; i < p->remark_count; i++) RONDO__TRY(encode_text(w, p->remarks[i]));
    return encode_targets(w);
}

rondo_status rondo__artifact_encode(rondo__artifact_image *image, const rondo_plan *plan,
                                    const rondo__artifact_block *blocks) {
    encode_walk walk = {.image = image, .plan = plan, .blocks = blocks, .collecting = true};
    rondo__buffer_init(&walk.by_address, &image->words.allocator, sizeof(rondo__artifact_piece), SIZE_MAX / 64);
    rondo_status status = encode_plan(&walk);
    if (!status) status = encode_place_constants(&walk);
    walk.collecting = false;
    image->words.count = 0;
    if (!status) status = encode_plan(&walk);
    rondo__buffer_deinit(&walk.by_address);
    return status;
}
