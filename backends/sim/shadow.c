/* SPDX-License-Identifier: Apache-2.0
 *
 * Who touched which bytes. Memory that operations mention is cut into cells with one history each: the last write, the
 * reads since, and what is still enqueued. Two faults show in it:
 *
 *   a race   an operation runs on bytes that another stream's operation used, one of them writing, and nothing orders
 *            the two. Said by the later one, whichever order the seed gave.
 *   a write behind a call's back   bytes that a call reads, and that nothing enqueued was going to write, have another
 *            sum when it runs than when it was enqueued.
 *
 * Only what says its length is followed to its end: an argument of length 0 counts as one byte, because the device
 * cannot know which part of an allocation is meant. Sums of long ranges look at their two ends. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define RONDO__SIM_CELLS_FIRST 64u
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
                       label->kind == RONDO__SIM_COPY ? "copy" : "fill", bytes, time, label->slot);
    }
    return text;
}

/* ------------------------------------------------------------------------------------------------------- cells */

/* The first cell that ends behind the address. */
static size_t sim_cell_find(const rondo__sim_device *device, uint64_t address) {
    size_t low = 0, high = device->cell_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2u;
        if (device->cells[middle].end <= address) low = middle + 1u;
        else high = middle;
    }
    return low;
}

static bool sim_cell_reserve(rondo__sim_device *device, size_t more) {
    const rondo_allocator *allocator = &device->host->allocator;
    size_t capacity = device->cell_capacity ? device->cell_capacity : RONDO__SIM_CELLS_FIRST;
    if (device->cell_count + more <= device->cell_capacity) return true;
    while (capacity < device->cell_count + more) capacity *= 2u;
    void *cells = allocator->reallocate(allocator->self, device->cells, device->cell_capacity * sizeof *device->cells,
                                        capacity * sizeof *device->cells, 0);
    if (!cells) return false;
    device->cells = cells;
    device->cell_capacity = capacity;
    return true;
}

static rondo__sim_cell *sim_cell_insert(rondo__sim_device *device, size_t at) {
    rondo__sim_cell *cell = &device->cells[at];
    memmove(cell + 1, cell, (device->cell_count - at) * sizeof *cell);
    device->cell_count++;
    return cell;
}

static void sim_cell_clear(rondo__sim_device *device, rondo__sim_cell *cell) {
    sim_label_release(device, cell->write);
    cell->write = NULL;
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) {
        sim_label_release(device, cell->reads[i]);
        cell->reads[i] = NULL;
    }
}

/* Both halves remember the same. */
static void sim_cell_split(rondo__sim_device *device, size_t at, uint64_t address) {
    if (at >= device->cell_count || device->cells[at].base >= address) return;
    rondo__sim_cell *cell = sim_cell_insert(device, at);
    *cell = cell[1];
    cell[0].end = cell[1].base = address;
    if (cell->write) cell->write->references++;
    for (uint32_t i = 0; i < RONDO__SIM_CELL_READS; i++) {
        if (cell->reads[i]) cell->reads[i]->references++;
    }
}

/* Cuts so that cells cover [base, end) and none crosses its ends. */
static rondo_status sim_cell_cover(rondo__sim_device *device, const sim_range *range) {
    size_t at = sim_cell_find(device, range->base), last = sim_cell_find(device, range->end);
    if (!sim_cell_reserve(device, last - at + 4u)) {
        return RONDO_PLUGIN_FAIL(device->host, OUT_OF_MEMORY, DRIVER, "sim: no memory to remember who uses what");
    }
    sim_cell_split(device, at, range->base);
    sim_cell_split(device, sim_cell_find(device, range->end - 1u), range->end);
    at = sim_cell_find(device, range->base);
    for (uint64_t address = range->base; address < range->end; at++) {
        uint64_t next = at < device->cell_count ? device->cells[at].base : range->end;
        if (next > address) {
            if (next > range->end) next = range->end;
            *sim_cell_insert(device, at) = (rondo__sim_cell){.base = address, .end = next};
        }
        address = device->cells[at].end;
    }
    return RONDO_OK;
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
static bool sim_is_quiet(const rondo__sim_device *device, const sim_range *range) {
    for (size_t i = sim_cell_find(device, range->base); i < device->cell_count && device->cells[i].base < range->end;
         i++) {
        if (device->cells[i].pending_writes) return false;
    }
    return true;
}

/* --------------------------------------------------------------------------------------------- enter and leave */

static bool sim_is_followed(const rondo__sim_device *device, const rondo__sim_operation *operation) {
    return (device->settings.races || device->settings.sums) &&
           (operation->kind == RONDO__SIM_LAUNCH || operation->kind == RONDO__SIM_COPY ||
            operation->kind == RONDO__SIM_FILL);
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
    for (uint32_t i = 0; !status && sim_range_at(operation, i, &range); i++) {
        if (!sim_is_tracked(device, operation, &range)) continue;
        status = sim_cell_cover(device, &range);
        tracked |= (uint64_t)1 << i;
    }
    if (status) return status;
    for (uint32_t i = 0; device->settings.sums && sim_range_at(operation, i, &range); i++) {
        bool sums = (tracked >> i & 1u) && range.reads && sim_is_readable(device, &range);
        if (!sums || !sim_is_quiet(device, &range)) continue;
        operation->sums[i] = sim_sum(&range);
        operation->summed |= (uint64_t)1 << i;
    }
    operation->tracked = tracked;
    for (uint32_t i = 0; sim_range_at(operation, i, &range); i++) {
        if (!(tracked >> i & 1u)) continue;
        for (size_t c = sim_cell_find(device, range.base); c < device->cell_count && device->cells[c].base < range.end;
             c++) {
            device->cells[c].pending++;
            device->cells[c].pending_writes += range.writes;
        }
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

void rondo__sim_shadow_leave(rondo__sim_device *device, rondo__sim_operation *operation, bool executed) {
    sim_range range;
    for (uint32_t i = 0; operation->tracked && sim_range_at(operation, i, &range); i++) {
        if (!(operation->tracked >> i & 1u)) continue;
        for (size_t c = sim_cell_find(device, range.base); c < device->cell_count && device->cells[c].base < range.end;
             c++) {
            rondo__sim_cell *cell = &device->cells[c];
            cell->pending--;
            cell->pending_writes -= range.writes;
            if (!executed) continue;
            if (range.writes) {
                sim_cell_clear(device, cell);
                cell->write = operation->label;
                operation->label->references++;
            } else {
                sim_cell_read(device, cell, operation);
            }
        }
    }
    sim_label_release(device, operation->label);
    operation->label = NULL;
}

/* ------------------------------------------------------------------------------------------------------- check */

static rondo_status sim_race(const rondo__sim_device *device, const rondo__sim_operation *operation,
                             const rondo__sim_cell *cell, const rondo__sim_label *other, bool writes, bool wrote) {
    char one[RONDO__SIM_TEXT], two[RONDO__SIM_TEXT];
    return RONDO_PLUGIN_FAIL(
        device->host, KERNEL_FAILED, MEMORY,
        "sim: race: %s %s %llu bytes at 0x%llx, which %s %s, and nothing orders the two: record an event behind one and "
        "let the other's stream wait for it",
        sim_label_text(operation->label, one, sizeof one), writes ? "writes" : "reads",
        (unsigned long long)(cell->end - cell->base), (unsigned long long)cell->base,
        sim_label_text(other, two, sizeof two), wrote ? "wrote" : "reads");
}

static rondo_status sim_check_races(const rondo__sim_device *device, const rondo__sim_operation *operation,
                                    const sim_range *range) {
    uint32_t slot = operation->label->slot;
    for (size_t c = sim_cell_find(device, range->base); c < device->cell_count && device->cells[c].base < range->end;
         c++) {
        const rondo__sim_cell *cell = &device->cells[c];
        if (cell->write && !rondo__sim_order_before(cell->write, slot, operation->clock)) {
            return sim_race(device, operation, cell, cell->write, range->writes, true);
        }
        for (uint32_t i = 0; range->writes && i < RONDO__SIM_CELL_READS; i++) {
            const rondo__sim_label *read = cell->reads[i];
            if (!read || rondo__sim_order_before(read, slot, operation->clock)) continue;
            return sim_race(device, operation, cell, read, true, false);
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

rondo_status rondo__sim_shadow_check(const rondo__sim_device *device, const rondo__sim_operation *operation) {
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

void rondo__sim_shadow_forget(rondo__sim_device *device, uint64_t address, uint64_t bytes) {
    size_t first = sim_cell_find(device, address), to = first;
    for (size_t i = first; i < device->cell_count; i++) {
        rondo__sim_cell *cell = &device->cells[i];
        if (cell->base >= address + bytes && to == i) return;
        if (cell->base >= address && cell->end <= address + bytes) {
            sim_cell_clear(device, cell);
            if (!cell->pending) continue;
        }
        device->cells[to++] = *cell;
    }
    device->cell_count = to;
}

void rondo__sim_shadow_settle(rondo__sim_device *device) {
    if (!device->cell_count || device->executing || !rondo__sim_order_host_saw_all(device)) return;
    for (const rondo__sim_stream *stream = device->streams; stream; stream = stream->next) {
        if (stream->first) return;
    }
    for (size_t i = 0; i < device->cell_count; i++) sim_cell_clear(device, &device->cells[i]);
    device->cell_count = 0;
}

void rondo__sim_shadow_close(rondo__sim_device *device) {
    for (size_t i = 0; i < device->cell_count; i++) sim_cell_clear(device, &device->cells[i]);
    rondo__sim_release(device, device->cells, device->cell_capacity * sizeof *device->cells, 0);
}
