/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile: rows, totals and events, and pieces of time that come from outside. */
#include <stdio.h>
#include <string.h>

#include "base/instance.h"
#include "base/sized.h"
#include "session/profile.h"

#define PROFILE_ROWS_MAX (1u << 24)
#define PROFILE_EVENTS_DEFAULT (UINT64_C(1) << 20)
#define PROFILE_EVENTS_MAX (UINT64_C(1) << 28)
#define PROFILE_NAME_MAX 512u

static const char *const profile_part_names[RONDO_PROFILE_PARTS] = {
    "call",   "import", "compile", "load",   "capture", "copy in", "copy out",
    "launch", "kernel", "wait",    "replay", "eager",   "other",   "pass"};

const char *rondo_profile_part_name(rondo_profile_part part) {
    return part >= 0 && part < RONDO_PROFILE_PARTS ? profile_part_names[part] : NULL;
}

uint64_t rondo_profile_now(void) { return rondo__now_ns(); }

/* -------------------------------------------------------------------------------------------------------- life */

/* The least of some: what is more was something else's. */
static uint64_t profile_clock_cost(void) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 32; i++) {
        uint64_t begin = rondo__now_ns(), end = begin;
        for (int k = 0; k < 16; k++) end = rondo__now_ns();
        if (end - begin < best) best = end - begin;
    }
    return (best + 8u) / 16u;
}

rondo_status rondo_profile_create(rondo_instance *instance, const rondo_profile_options *options,
                                  rondo_profile **out_profile) {
    rondo_profile_options known = RONDO_PROFILE_OPTIONS_INIT;
    void *memory = NULL;
    if (!instance || !out_profile)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_create: instance or out_profile is null");
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_profile_options", options, &known, sizeof known));
    if (known.events_max > PROFILE_EVENTS_MAX)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_options.events_max: %llu is more than %llu",
                           (unsigned long long)known.events_max, (unsigned long long)PROFILE_EVENTS_MAX);
    if (!known.events_max) known.events_max = PROFILE_EVENTS_DEFAULT;
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    RONDO__TRY(rondo__allocate_zeroed(allocator, sizeof(rondo_profile), &memory));
    rondo_profile *profile = memory;
    rondo__ref_init(&profile->references);
    profile->allocator = *allocator;
    profile->instance = instance;
    profile->options = known;
    rondo_instance_retain(instance);
    rondo__mutex_init(&profile->mutex);
    rondo__arena_init(&profile->arena, allocator, SIZE_MAX);
    rondo__buffer_init(&profile->rows, allocator, sizeof(rondo__profile_row), PROFILE_ROWS_MAX);
    rondo__buffer_init(&profile->plans, allocator, sizeof(rondo__profile_plan), PROFILE_ROWS_MAX);
    rondo__buffer_init(&profile->lanes, allocator, sizeof(rondo__profile_lane), PROFILE_ROWS_MAX);
    rondo__buffer_init(&profile->events, allocator, sizeof(rondo__profile_event), (size_t)known.events_max);
    profile->info = (rondo_profile_info)RONDO_PROFILE_INFO_INIT;
    profile->info.clock_ns = profile_clock_cost();
    profile->begun = rondo__now_ns();
    *out_profile = profile;
    return RONDO_OK;
}

void rondo_profile_retain(rondo_profile *profile) {
    if (profile) rondo__ref_retain(&profile->references);
}

void rondo_profile_release(rondo_profile *profile) {
    if (!profile || !rondo__ref_release(&profile->references)) return;
    rondo_allocator allocator = profile->allocator;
    rondo_instance *instance = profile->instance;
    for (size_t i = 0; i < profile->plans.count; i++)
        rondo_plan_release(RONDO__BUFFER_AT(&profile->plans, rondo__profile_plan, i)->plan);
    rondo__buffer_deinit(&profile->events);
    rondo__buffer_deinit(&profile->lanes);
    rondo__buffer_deinit(&profile->plans);
    rondo__buffer_deinit(&profile->rows);
    rondo__arena_deinit(&profile->arena);
    rondo__free(&allocator, profile->index, profile->index_size * sizeof *profile->index);
    rondo__mutex_deinit(&profile->mutex);
    rondo__free(&allocator, profile, sizeof *profile);
    rondo_instance_release(instance);
}

/* -------------------------------------------------------------------------------------------------------- rows */

void rondo__profile_row_add(rondo__profile_row *row, uint64_t ns) {
    if (!row->calls || ns < row->min_ns) row->min_ns = ns;
    if (ns > row->max_ns) row->max_ns = ns;
    row->calls++;
    row->total_ns += ns;
}

static uint32_t profile_hash(rondo_profile_part part, const char *name) {
    uint32_t hash = 2166136261u ^ (uint32_t)part;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash ^ hash >> 15;
}

/* Where the row is in the index, or would be. */
static uint32_t profile_place(const rondo_profile *profile, rondo_profile_part part, const char *name) {
    uint32_t at = profile_hash(part, name) & (profile->index_size - 1u);
    for (; profile->index[at]; at = (at + 1u) & (profile->index_size - 1u)) {
        const rondo__profile_row *row = RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, profile->index[at] - 1u);
        if (row->part == part && strcmp(row->name, name) == 0) break;
    }
    return at;
}

static rondo_status profile_index_grow(rondo_profile *profile) {
    uint32_t *old = profile->index, size = profile->index_size;
    void *memory = NULL;
    if (size && profile->indexed < size / 2u) return RONDO_OK;
    uint32_t larger = size ? size * 2u : 64u;
    RONDO__TRY(rondo__allocate_array(&profile->allocator, larger, sizeof(uint32_t), &memory)); /* zeroed */
    profile->index = memory;
    profile->index_size = larger;
    for (uint32_t i = 0; i < size; i++) {
        if (!old[i]) continue;
        const rondo__profile_row *row = RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, old[i] - 1u);
        profile->index[profile_place(profile, row->part, row->name)] = old[i];
    }
    rondo__free(&profile->allocator, old, size * sizeof *old);
    return RONDO_OK;
}

rondo_status rondo__profile_named(rondo_profile *profile, rondo_profile_part part, const char *name,
                                  uint32_t *out_row) {
    rondo__profile_row row = {.part = part};
    RONDO__TRY(profile_index_grow(profile));
    uint32_t at = profile_place(profile, part, name);
    if (!profile->index[at]) {
        RONDO__TRY(rondo__arena_string(&profile->arena, name, strlen(name), &row.name));
        RONDO__TRY(rondo__buffer_append(&profile->rows, &row, 1));
        profile->index[at] = (uint32_t)profile->rows.count;
        profile->indexed++;
    }
    *out_row = profile->index[at] - 1u;
    return RONDO_OK;
}

rondo_status rondo__profile_lane_of(rondo_profile *profile, const rondo_stream *stream, uint32_t *out_lane) {
    rondo__profile_lane lane = {.device = stream != NULL, .id = stream ? stream->id : rondo__thread_id()};
    uint32_t threads = 0;
    if (stream)
        (void)snprintf(lane.name, sizeof lane.name, "%s:%d stream %llu", stream->device->properties.name,
                       (int)stream->device->properties.index, (unsigned long long)stream->id);
    for (size_t i = 0; i < profile->lanes.count; i++) {
        const rondo__profile_lane *other = RONDO__BUFFER_AT(&profile->lanes, rondo__profile_lane, i);
        threads += !other->device;
        if (other->device != lane.device || other->id != lane.id) continue;
        if (lane.device && strcmp(other->name, lane.name) != 0) continue;
        *out_lane = (uint32_t)i;
        return RONDO_OK;
    }
    if (!stream) (void)snprintf(lane.name, sizeof lane.name, "host thread %u", (unsigned)threads + 1u);
    RONDO__TRY(rondo__buffer_append(&profile->lanes, &lane, 1));
    *out_lane = (uint32_t)profile->lanes.count - 1u;
    return RONDO_OK;
}

rondo_status rondo__profile_event_add(rondo_profile *profile, uint32_t row, uint32_t lane, rondo_profile_part part,
                                      uint64_t begin, uint64_t end) {
    rondo__profile_event event = {begin, end, row, lane, part};
    if (profile->events.count == profile->events.maximum) {
        profile->info.events_lost++;
        return RONDO_OK;
    }
    return rondo__buffer_append(&profile->events, &event, 1);
}

/* ----------------------------------------------------------------------------------------------- pieces of time */

static rondo_status profile_put(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin,
                                uint64_t end) {
    uint32_t row = 0, lane = 0;
    RONDO__TRY(rondo__profile_named(profile, part, name, &row));
    RONDO__TRY(rondo__profile_lane_of(profile, NULL, &lane));
    RONDO__TRY(rondo__profile_event_add(profile, row, lane, part, begin, end));
    rondo__profile_row_add(RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, row), end - begin);
    profile->info.ns[part] += end - begin;
    profile->info.replays += part == RONDO_PROFILE_REPLAY;
    profile->info.eager_runs += part == RONDO_PROFILE_EAGER;
    return RONDO_OK;
}

rondo_status rondo__profile_put(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin,
                                uint64_t end) {
    rondo__mutex_lock(&profile->mutex);
    rondo_status status = profile_put(profile, part, name, begin, end);
    rondo__mutex_unlock(&profile->mutex);
    return status;
}

rondo_status rondo_profile_add(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin_ns,
                               uint64_t end_ns) {
    if (!profile || !name) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_add: profile or name is null");
    if (!rondo_profile_part_name(part) || part == RONDO_PROFILE_LAUNCH || part == RONDO_PROFILE_KERNEL ||
        part == RONDO_PROFILE_WAIT)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_add: part %d is none that is added from outside",
                           (int)part);
    if (end_ns < begin_ns)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_add: '%s' ends before it begins", name);
    if (strlen(name) > PROFILE_NAME_MAX)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_add: a name of more than %u bytes", PROFILE_NAME_MAX);
    return rondo__profile_put(profile, part, name, begin_ns, end_ns);
}

/* ------------------------------------------------------------------------------------------ a call in its parts */

void rondo__profile_scope_begin(rondo__profile_scope *scope, rondo_profile *profile) {
    scope->profile = profile;
    scope->watching = 0;
    scope->begin = scope->mark = rondo__now_ns();
}

/* A run does not fail because it is watched: what finds no memory is counted, and told to who asks for the numbers. */
void rondo__profile_put_quietly(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin,
                                uint64_t end) {
    rondo__mutex_lock(&profile->mutex);
    rondo_status status = profile_put(profile, part, name, begin, end);
    profile->lost += status != NULL;
    rondo__mutex_unlock(&profile->mutex);
    rondo_status_release(status);
}

void rondo__profile_scope_mark(rondo__profile_scope *scope, rondo_profile_part part, const char *name) {
    uint64_t end = rondo__now_ns();
    rondo__profile_put_quietly(scope->profile, part, name, scope->mark, end);
    scope->mark = rondo__now_ns();
    scope->watching += scope->mark - end;
}

/* No event: it is many short pieces between all others. */
void rondo__profile_put_watching(rondo_profile *profile, uint64_t ns) {
    uint32_t row = 0;
    rondo__mutex_lock(&profile->mutex);
    rondo_status status = rondo__profile_named(profile, RONDO_PROFILE_OTHER, "watching", &row);
    if (!status) {
        rondo__profile_row_add(RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, row), ns);
        profile->info.ns[RONDO_PROFILE_OTHER] += ns;
    }
    profile->lost += status != NULL;
    rondo__mutex_unlock(&profile->mutex);
    rondo_status_release(status);
}

void rondo__profile_scope_end(rondo__profile_scope *scope, const char *name) {
    rondo__profile_scope_mark(scope, RONDO_PROFILE_OTHER, "session");
    rondo__profile_put_watching(scope->profile, scope->watching);
    rondo__profile_put_quietly(scope->profile, RONDO_PROFILE_CALL, name, scope->begin, scope->mark);
    scope->profile = NULL;
}

/* ---------------------------------------------------------------------------------------------- looking at it */

rondo_status rondo_profile_get_info(rondo_profile *profile, rondo_profile_info *out_info) {
    if (!profile) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_get_info: profile is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_profile_info", out_info));
    rondo__mutex_lock(&profile->mutex);
    rondo_profile_info info = profile->info;
    uint64_t lost = profile->lost;
    info.rows = (uint32_t)profile->rows.count;
    info.events = profile->events.count;
    rondo__mutex_unlock(&profile->mutex);
    if (lost)
        return RONDO__FAIL(OUT_OF_MEMORY, NONE, "the profile found no memory for %llu pieces of time: it is not whole",
                           (unsigned long long)lost);
    info.parts_ns = 0;
    for (int part = RONDO_PROFILE_IMPORT; part < RONDO_PROFILE_PASS; part++) info.parts_ns += info.ns[part];
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

rondo_status rondo_profile_get_row(rondo_profile *profile, uint32_t index, rondo_profile_row *out_row) {
    rondo_profile_row own = RONDO_PROFILE_ROW_INIT;
    rondo_status status = RONDO_OK;
    if (!profile) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_profile_get_row: profile is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_profile_row", out_row));
    rondo__mutex_lock(&profile->mutex);
    if (index < profile->rows.count) {
        const rondo__profile_row *row = RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, index);
        own.part = row->part;
        own.name = row->name;
        own.plan = row->plan;
        own.operator_name = row->operator_name;
        own.shapes = row->shapes;
        own.kernel_set = row->kernel_set;
        own.variant = row->variant;
        own.calls = row->calls;
        own.total_ns = row->total_ns;
        own.min_ns = row->min_ns;
        own.max_ns = row->max_ns;
        own.kernel_ns = row->kernel_ns;
        own.launch_ns = row->launch_ns;
        own.load_ns = row->load_ns;
        own.kernel_is_waited = row->waited;
    } else {
        status = RONDO__FAIL(OUT_OF_RANGE, NONE, "the profile has %zu rows: there is no row %u", profile->rows.count,
                             (unsigned)index);
    }
    rondo__mutex_unlock(&profile->mutex);
    if (!status) rondo__sized_write(&own, sizeof own, out_row);
    return status;
}
