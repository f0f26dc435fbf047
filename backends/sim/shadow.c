/* SPDX-License-Identifier: Apache-2.0
 *
 * Who touched which bytes. Memory that operations have used is cut into cells with one history each: the last write and
 * the reads since. Beside it stands what is enqueued and going to write. Two faults show in it:
 *
 *   a race   an operation runs on bytes that another stream's operation used, one of them writing, and nothing orders
 *            the two. Said by the later one, whichever order the seed gave.
 *   a write behind a call's back   bytes that a call reads, and that nothing enqueued was going to write, have another
 *            sum when it runs than when it was enqueued.
 *
 * Only what says its length is followed to its end: an argument of length 0 counts as one byte in a race, because the
 * device cannot know which part of an allocation is meant; a call that is going to write there has a right to all of it
 * up to the end of the allocation. Sums of long ranges look at their two ends.
 *
 * An operation costs some dozen steps a range, and as many for each cell in it: a range that is written becomes one cell,
 * so that what was cut is paid for once. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define RONDO__SIM_CELLS_RANGE 3u /* cells that a range may need: its own, and the rest of what it cuts at both ends */
#define RONDO__SIM_SUM_END 32768u /* bytes summed at each end of a range */
#define RONDO__SIM_TEXT 160u

typedef struct sim_range {
    uint64_t base, end;
    bool reads, writes;
} sim_range;

/* Bytes that the index-th part of an operation uses; false past the last part. An empty range has base == end. */
static bool sim_range_at(const rondo__sim_operation *operation, uint32_t index, sim_range *out_range) {
    uint64_t bytes = operation->bytes;
    *out_range = (sim_range){0, 0, false, false};
    if (operation->kind == RONDO__SIM_LAUNCH) {
        if (index >= operation->argument_count) return false;
        const rondo_argument *argument = &operation->arguments[index];
        if (argument->access == RONDO_ACCESS_VALUE || !argument->word) return true;
        bytes = argument->length ? argument->length : 1u;
        *out_range = (sim_range){argument->word, argument->word, (argument->access & RONDO_ACCESS_READ) != 0,
                                 (argument->access & RONDO_ACCESS_WRITE) != 0};
    } else if (operation->kind == RONDO__SIM_BEGIN && index == 0) {
        *out_range = (sim_range){operation->source, operation->source, true, false};
    } else if (operation->kind == RONDO__SIM_COPY && index == 0) {
        uint64_t source = operation->direction == RONDO_COPY_HOST_TO_DEVICE ? operation->pinned : operation->source;
        *out_range = (sim_range){source, source, true, false};
        if (!source) return true; /* taken when it was enqueued */
    } else if ((operation->kind == RONDO__SIM_COPY && index == 1u) ||
               (operation->kind == RONDO__SIM_FILL && index == 0)) {
        *out_range = (sim_range){operation->destination, operation->destination, false, true};
    } else {
        return false;
    }
    if (__builtin_add_overflow(out_range->base, bytes, &out_range->end)) out_range->end = out_range->base;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ labels */

static void sim_label_release(rondo__sim_device *device, rondo__sim_label *label) {
    if (!label || --label->references) return;
    rondo__sim_release(device, label, sizeof *label + strlen(label->name) + 1u, 0);
}

static rondo_status sim_label_make(const rondo__sim_device *device, rondo__sim_operation *operation, uint32_t slot,
                                   uint64_t time) {
    size_t size = strlen(operation->name) + 1u;
    rondo__sim_label *label = rondo__sim_allocate(device, sizeof *label + size, 0);
    if (!label) return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory for a call's name");
    *label = (rondo__sim_label){1, slot, time, operation->bytes, (int)operation->kind};
    memcpy(label->name, operation->name, size);
    operation->label = label;
    return RONDO_OK;
}

static const char *sim_label_text(const rondo__sim_label *label, char *text, size_t capacity) {
    unsigned long long time = label->time, bytes = label->bytes;
    if (label->kind == RONDO__SIM_LAUNCH) {
        (void)snprintf(text, capacity, "call '%.96s' (operation %llu of stream %u)", label->name, time, label->slot);
    } else {
        (void)snprintf(text, capacity, "a %s of %llu bytes (operation %llu of stream %u)",
                       label->kind == RONDO__SIM_COPY   ? "copy"
                       : label->kind == RONDO__SIM_FILL ? "fill"
                                                        : "condition",
                       bytes, time, label->slot);
    }
    return text;
}

/* ------------------------------------------------------------------------------------------------------- cells */

static rondo__sim_cell *sim_cell_first(rondo__sim_device *device, uint64_t base, uint64_t end) {
    return base < end ? (rondo__sim_cell *)(void *)rondo__sim_span_first(&device->cells, base, end) : NULL;
}

/* Puts cells by until there are so many beside those promised. */
static bool sim_cell_reserve(rondo__sim_device *device, size_t more) {
    while (device->spare_count < device->promised + more) {
        rondo__sim_cell *cell = rondo__sim_allocate(device, sizeof *cell, 0);
        if (!cell) return false;
        cell->span.right = (rondo__sim_span *)(void *)device->spare;
        device->spare = cell;
        device->spare_count++;
    }
    return true;
}

/* One that was put by, without history; there is one. */
static rondo__sim_cell *sim_cell_take(rondo__sim_device *device, uint64_t base, uint64_t end) {
    rondo__sim_cell *cell = device->spare;
    device->spare = (rondo__sim_cell *)(void *)cell->span.right;
    device->spare_count--;
    *cell = (rondo__sim_cell){.span = {.base = base, .end = end}};
    return cell;
}

/* Its history is over. */
static void sim_cell_drop(rondo__sim_device *device, rondo__sim_cell *cell) {
    rondo__sim_span_remove(&device->cells, &cell->span);
    sim_label_release(device, cell->write);
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) sim_label_release(device, cell->reads[i]);
    cell->span.right = (rondo__sim_span *)(void *)device->spare;
    device->spare = cell;
    device->spare_count++;
}

/* A cell that crosses the address becomes two that remember the same. There is a cell put by. */
static void sim_cell_cut(rondo__sim_device *device, uint64_t address) {
    rondo__sim_cell *cell = sim_cell_first(device, address, address + 1u);
    if (!cell || cell->span.base == address) return;
    rondo__sim_cell *rest = sim_cell_take(device, address, cell->span.end);
    rondo__sim_span_remove(&device->cells, &cell->span);
    cell->span.end = address;
    rest->write = cell->write;
    if (rest->write) rest->write->references++;
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) {
        rest->reads[i] = cell->reads[i];
        if (rest->reads[i]) rest->reads[i]->references++;
    }
    rondo__sim_span_add(&device->cells, &cell->span);
    rondo__sim_span_add(&device->cells, &rest->span);
}

static bool sim_cell_is_like(const rondo__sim_cell *one, const rondo__sim_cell *two) {
    bool like = one->write == two->write;
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) like = like && one->reads[i] == two->reads[i];
    return like;
}

/* -------------------------------------------------------------------------------------------------------- sums */

static uint64_t sim_sum_part(uint64_t sum, const unsigned char *bytes, uint64_t size) {
    uint64_t word;
    for (; size >= sizeof word; bytes += sizeof word, size -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    for (; size; bytes++, size--) sum = (sum ^ *bytes) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 32);
}

static uint64_t sim_sum(const sim_range *range) {
    const unsigned char *bytes = (const unsigned char *)(uintptr_t)range->base;
    uint64_t size = range->end - range->base;
    if (size <= 2u * RONDO__SIM_SUM_END) return sim_sum_part(size, bytes, size);
    uint64_t sum = sim_sum_part(size, bytes, RONDO__SIM_SUM_END);
    return sim_sum_part(sum, bytes + (size - RONDO__SIM_SUM_END), RONDO__SIM_SUM_END);
}

static bool sim_is_readable(const rondo__sim_device *device, const sim_range *range) {
    uint64_t bytes = range->end - range->base;
    return !rondo__sim_range_problem(device, range->base, bytes) ||
           rondo__sim_range_is_pinned(device, range->base, bytes);
}

/* Whoever is enqueued and writes there has a right to. */
static bool sim_is_quiet(rondo__sim_device *device, const sim_range *range) {
    return !rondo__sim_span_first(&device->pending, range->base, range->end);
}

/* --------------------------------------------------------------------------------------------- enter and leave */

static bool sim_is_followed(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    return (device->settings.races || device->settings.sums) &&
           (operation->kind == RONDO__SIM_LAUNCH || operation->kind == RONDO__SIM_COPY ||
            operation->kind == RONDO__SIM_FILL || operation->kind == RONDO__SIM_BEGIN);
}

/* What lies in no allocation is found out when the operation runs. A copy's host side may be anywhere. */
static bool sim_is_tracked(const rondo__sim_device *device, const rondo__sim_operation *operation,
                           const sim_range *range) {
    if (range->base == range->end) return false;
    return operation->kind != RONDO__SIM_LAUNCH ||
           !rondo__sim_range_problem(device, range->base, range->end - range->base);
}

rondo_status rondo__sim_shadow_enter(rondo__sim_device *device, rondo__sim_operation *operation, uint32_t slot,
                                     uint64_t time) {
    sim_range range;
    uint64_t tracked = 0;
    if (!sim_is_followed(device, operation)) return RONDO_OK;
    rondo_status status = sim_label_make(device, operation, slot, time);
    if (status) return status;
    for (uint32_t i = 0; sim_range_at(operation, i, &range); i++) {
        if (sim_is_tracked(device, operation, &range)) tracked |= (uint64_t)1 << i;
    }
    size_t need = (size_t)__builtin_popcountll(tracked) * RONDO__SIM_CELLS_RANGE;
    if (!sim_cell_reserve(device, need)) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory to remember who uses what");
    }
    device->promised += need;
    for (uint32_t i = 0; device->settings.sums && sim_range_at(operation, i, &range); i++) {
        bool sums = (tracked >> i & 1u) && range.reads && sim_is_readable(device, &range);
        if (!sums || !sim_is_quiet(device, &range)) continue;
        operation->sums[i] = sim_sum(&range);
        operation->summed |= (uint64_t)1 << i;
    }
    operation->tracked = tracked;
    for (uint32_t i = 0; sim_range_at(operation, i, &range); i++) {
        if (!(tracked >> i & 1u) || !range.writes) continue;
        bool whole = operation->kind == RONDO__SIM_LAUNCH && !operation->arguments[i].length;
        if (whole) range.end = range.base + rondo__sim_range_rest(device, range.base);
        operation->writes[i] = (rondo__sim_span){.base = range.base, .end = range.end};
        rondo__sim_span_add(&device->pending, &operation->writes[i]);
    }
    return RONDO_OK;
}

/* A read takes the place of those that come before it; where there is none, one is forgotten. */
static void sim_cell_read(rondo__sim_device *device, rondo__sim_cell *cell, const rondo__sim_operation *operation) {
    rondo__sim_label *label = operation->label;
    uint32_t at = (uint32_t)(label->time % RONDO__SIM_CELL_READS);
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) {
        if (!cell->reads[i] || !rondo__sim_order_before(cell->reads[i], label->slot, operation->clock)) continue;
        sim_label_release(device, cell->reads[i]);
        cell->reads[i] = NULL;
    }
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) {
        if (!cell->reads[i]) at = i;
    }
    sim_label_release(device, cell->reads[at]);
    cell->reads[at] = label;
    label->references++;
}

/* The range has one history, which this write begins. */
static void sim_note_write(rondo__sim_device *device, const rondo__sim_operation *operation, const sim_range *range) {
    rondo__sim_cell *cell;
    while ((cell = sim_cell_first(device, range->base, range->end))) sim_cell_drop(device, cell);
    cell = sim_cell_take(device, range->base, range->end);
    cell->write = operation->label;
    cell->write->references++;
    rondo__sim_span_add(&device->cells, &cell->span);
}

/* Bytes that nobody had used. Where there is no memory for more cells than were promised, this read is not remembered. */
static void sim_note_first_read(rondo__sim_device *device, const rondo__sim_operation *operation, uint64_t base,
                                uint64_t end) {
    if (base >= end || !sim_cell_reserve(device, 1)) return;
    rondo__sim_cell *cell = sim_cell_take(device, base, end);
    sim_cell_read(device, cell, operation);
    rondo__sim_span_add(&device->cells, &cell->span);
}

/* Neighbours that have come to remember the same are one again. */
static void sim_note_read(rondo__sim_device *device, const rondo__sim_operation *operation, const sim_range *range) {
    uint64_t at = range->base;
    rondo__sim_cell *cell, *last = NULL;
    while ((cell = sim_cell_first(device, at, range->end))) {
        if (at < cell->span.base) last = NULL;
        sim_note_first_read(device, operation, at, cell->span.base);
        sim_cell_read(device, cell, operation);
        at = cell->span.end;
        if (!last || !sim_cell_is_like(last, cell)) {
            last = cell;
            continue;
        }
        sim_cell_drop(device, cell);
        rondo__sim_span_remove(&device->cells, &last->span);
        last->span.end = at;
        rondo__sim_span_add(&device->cells, &last->span);
    }
    sim_note_first_read(device, operation, at, range->end);
}

void rondo__sim_shadow_leave(rondo__sim_device *device, rondo__sim_operation *operation, bool executed) {
    sim_range range;
    for (uint32_t i = 0; operation->tracked && sim_range_at(operation, i, &range); i++) {
        if (!(operation->tracked >> i & 1u)) continue;
        if (range.writes) rondo__sim_span_remove(&device->pending, &operation->writes[i]);
        device->promised -= RONDO__SIM_CELLS_RANGE;
        if (!executed || !device->settings.races) continue;
        sim_cell_cut(device, range.base);
        sim_cell_cut(device, range.end);
        if (range.writes) sim_note_write(device, operation, &range);
        else sim_note_read(device, operation, &range);
    }
    sim_label_release(device, operation->label);
    operation->label = NULL;
}

/* ------------------------------------------------------------------------------------------------------- check */

static rondo_status sim_race(const rondo__sim_device *device, const rondo__sim_operation *operation,
                             const sim_range *range, const rondo__sim_cell *cell, const rondo__sim_label *other,
                             bool wrote) {
    char one[RONDO__SIM_TEXT], two[RONDO__SIM_TEXT];
    uint64_t base = range->base > cell->span.base ? range->base : cell->span.base;
    uint64_t end = range->end < cell->span.end ? range->end : cell->span.end;
    return RONDO_PLUGIN_FAIL(
        device->host, KERNEL_FAILED, MEMORY,
        "sim: race: %s %s %llu bytes at 0x%llx, which %s %s, and nothing orders the two: record an event behind one and "
        "let the other's stream wait for it",
        sim_label_text(operation->label, one, sizeof one), range->writes ? "writes" : "reads",
        (unsigned long long)(end - base), (unsigned long long)base, sim_label_text(other, two, sizeof two),
        wrote ? "wrote" : "reads");
}

static rondo_status sim_check_races(rondo__sim_device *device, const rondo__sim_operation *operation,
                                    const sim_range *range) {
    uint32_t slot = operation->label->slot;
    const rondo__sim_cell *cell = NULL;
    for (uint64_t at = range->base; (cell = sim_cell_first(device, at, range->end)); at = cell->span.end) {
        if (cell->write && !rondo__sim_order_before(cell->write, slot, operation->clock)) {
            return sim_race(device, operation, range, cell, cell->write, true);
        }
        for (uint32_t i = 0; range->writes && i < RONDO__SIM_CELL_READS; i++) {
            const rondo__sim_label *read = cell->reads[i];
            if (!read || rondo__sim_order_before(read, slot, operation->clock)) continue;
            return sim_race(device, operation, range, cell, read, false);
        }
    }
    return RONDO_OK;
}

static rondo_status sim_check_sum(const rondo__sim_device *device, const rondo__sim_operation *operation,
                                  const sim_range *range, uint32_t index) {
    char text[RONDO__SIM_TEXT], part[32];
    bool pinned = operation->pinned && index == 0;
    unsigned long long bytes = range->end - range->base, base = range->base;
    (void)sim_label_text(operation->label, text, sizeof text);
    if (operation->kind == RONDO__SIM_LAUNCH) (void)snprintf(part, sizeof part, "argument %u", index);
    else (void)snprintf(part, sizeof part, "its source");
    if (!sim_is_readable(device, range)) {
        return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, MEMORY,
                                 "sim: %s: %s, %llu bytes of %s memory at 0x%llx, was freed before it ran", text, part,
                                 bytes, pinned ? "pinned host" : "device", base);
    }
    if (operation->sums[index] == sim_sum(range)) return RONDO_OK;
    return RONDO_PLUGIN_FAIL(device->host, KERNEL_FAILED, MEMORY,
                             "sim: %s: %s, %llu bytes of %s memory at 0x%llx, was written between its enqueueing and "
                             "its run by something that was never enqueued: wait for the stream before writing there",
                             text, part, bytes, pinned ? "pinned host" : "device", base);
}

rondo_status rondo__sim_shadow_check(rondo__sim_device *device, const rondo__sim_operation *operation) {
    sim_range range;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; operation->tracked && !status && sim_range_at(operation, i, &range); i++) {
        if (!(operation->tracked >> i & 1u)) continue;
        if (device->settings.races) status = sim_check_races(device, operation, &range);
        if (!status && (operation->summed >> i & 1u)) status = sim_check_sum(device, operation, &range, i);
    }
    return status;
}

/* -------------------------------------------------------------------------------------------------- forgetting */

/* Where there is no memory to cut, what crosses an end is forgotten too. */
void rondo__sim_shadow_forget(rondo__sim_device *device, uint64_t address, uint64_t bytes) {
    rondo__sim_cell *cell;
    if (sim_cell_reserve(device, 2)) {
        sim_cell_cut(device, address);
        sim_cell_cut(device, address + bytes);
    }
    while ((cell = sim_cell_first(device, address, address + bytes))) sim_cell_drop(device, cell);
}

static void sim_forget_all(rondo__sim_device *device) {
    while (device->cells.root) sim_cell_drop(device, (rondo__sim_cell *)(void *)device->cells.root);
}

void rondo__sim_shadow_settle(rondo__sim_device *device) {
    if (!device->cells.root || device->executing || !rondo__sim_order_host_saw_all(device)) return;
    for (const rondo__sim_stream *stream = device->streams; stream; stream = stream->next) {
        if (stream->first) return;
    }
    sim_forget_all(device);
}

void rondo__sim_shadow_close(rondo__sim_device *device) {
    sim_forget_all(device);
    while (device->spare) {
        rondo__sim_cell *cell = device->spare;
        device->spare = (rondo__sim_cell *)(void *)cell->span.right;
        rondo__sim_release(device, cell, sizeof *cell, 0);
    }
}
