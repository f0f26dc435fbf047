/* SPDX-License-Identifier: Apache-2.0
 *
 * A watched run. Each step's call goes out with a kernel of our own around its kernel, where kernels are functions of the
 * host: that one reads the clock before and after. Elsewhere each step is waited for before the next goes out.
 *
 * What the host thread spent from the first launch to the end of the wait is cut into launch, kernel and wait: a kernel that
 * the host thread ran itself counts wholly, one that ran elsewhere as far as the host was waiting meanwhile. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "session/profile.h"

#define PROFILE_SHAPES_MAX 4096u

typedef struct profile_slot {
    rondo_kernel inner;
    uint64_t enqueue, enqueued; /* the host's call */
    uint64_t begin, end;        /* the kernel; end 0: it did not run */
    uint64_t thread;            /* that ran it */
    uint32_t step, lane;
} profile_slot;

typedef struct profile_chunk {
    struct profile_chunk *next;
    uint32_t count, capacity;
    profile_slot slots[];
} profile_chunk;

typedef struct profile_watch {
    rondo_profile *profile;
    const rondo_executable *executable;
    profile_chunk *chunks; /* newest first */
    profile_slot *now;
    const rondo_stream *stream; /* whose lane was asked for last */
    rondo_call call;
    uint64_t last; /* reading of the clock */
    uint64_t slots;
    uint32_t lane;
    bool host_kernels;
} profile_watch;

/* ---------------------------------------------------------------------------------------------------- the steps */

static int32_t profile_kernel(const void *context, const uint64_t *words) {
    profile_slot *slot = (profile_slot *)(uintptr_t)context;
    slot->thread = rondo__thread_id();
    slot->begin = rondo__now_ns();
    int32_t code = slot->inner.function(slot->inner.context, words);
    slot->end = rondo__now_ns();
    return code;
}

static size_t profile_chunk_bytes(uint32_t capacity) {
    return sizeof(profile_chunk) + (size_t)capacity * sizeof(profile_slot);
}

static rondo_status profile_slot_take(profile_watch *watch, profile_slot **out_slot) {
    profile_chunk *chunk = watch->chunks;
    void *memory = NULL;
    if (!chunk || chunk->count == chunk->capacity) {
        uint32_t capacity = watch->executable->plan->step_count > 64u ? watch->executable->plan->step_count : 64u;
        RONDO__TRY(rondo__allocate_zeroed(&watch->profile->allocator, profile_chunk_bytes(capacity), &memory));
        chunk = memory;
        chunk->capacity = capacity;
        chunk->next = watch->chunks;
        watch->chunks = chunk;
    }
    *out_slot = &chunk->slots[chunk->count++];
    watch->slots++;
    return RONDO_OK;
}

static rondo_status profile_before(void *self, uint32_t step, const rondo_call *call, const rondo_call **out_call) {
    profile_watch *watch = self;
    profile_slot *slot = NULL;
    RONDO__TRY(profile_slot_take(watch, &slot));
    slot->step = step;
    slot->enqueue = watch->last;
    watch->now = slot;
    *out_call = call;
    if (!watch->host_kernels || !call->kernel.function) return RONDO_OK;
    slot->inner = call->kernel;
    watch->call = *call;
    watch->call.kernel = (rondo_kernel){profile_kernel, slot};
    *out_call = &watch->call;
    return RONDO_OK;
}

static rondo_status profile_after(void *self, uint32_t step, rondo_stream *stream) {
    profile_watch *watch = self;
    profile_slot *slot = watch->now;
    (void)step;
    slot->enqueued = watch->last = rondo__now_ns();
    if (stream != watch->stream) {
        rondo__mutex_lock(&watch->profile->mutex);
        rondo_status status = rondo__profile_lane_of(watch->profile, stream, &watch->lane);
        rondo__mutex_unlock(&watch->profile->mutex);
        RONDO__TRY(status);
        watch->stream = stream;
    }
    slot->lane = watch->lane;
    if (slot->inner.function) return RONDO_OK;
    RONDO__TRY(rondo_stream_synchronize(stream));
    slot->begin = slot->enqueued;
    slot->end = watch->last = rondo__now_ns();
    slot->thread = rondo__thread_id();
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ rows of a plan */

static void profile_shape(char *text, size_t capacity, size_t *used, const rondo__plan_operand *operand) {
    int length = 0;
    size_t left = capacity - *used;
    if (operand->buffer == RONDO__PLAN_NONE && !operand->constant) {
        length = snprintf(text + *used, left, "-");
    } else {
        length = snprintf(text + *used, left, "%s[", rondo_dtype_name(operand->dtype));
        for (int32_t d = 0; d < operand->rank && length >= 0 && (size_t)length < left; d++)
            length +=
                snprintf(text + *used + length, left - (size_t)length, "%s%" PRId64, d ? "," : "", operand->dims[d]);
        if (length >= 0 && (size_t)length < left) length += snprintf(text + *used + length, left - (size_t)length, "]");
    }
    *used += length < 0 ? 0 : (size_t)length < left ? (size_t)length : left - 1u;
}

static void profile_shapes(char *text, size_t capacity, const rondo__plan_step *step) {
    size_t used = 0;
    for (uint32_t i = 0; i < step->input_count + step->output_count; i++) {
        bool output = i >= step->input_count;
        const char *between = i == step->input_count ? " -> " : i ? ", " : "";
        int length = snprintf(text + used, capacity - used, "%s", between);
        used += (size_t)length < capacity - used ? (size_t)length : capacity - used - 1u;
        profile_shape(text, capacity, &used, output ? &step->outputs[i - step->input_count] : &step->inputs[i]);
    }
}

static rondo_status profile_step_row(rondo_profile *profile, const rondo_executable *executable, uint32_t index) {
    const rondo__plan_step *step = &executable->plan->steps[index];
    const rondo_catalogue *catalogue = executable->steps[index].catalogue;
    const char *set = catalogue && catalogue->table->kernel_set ? catalogue->table->kernel_set : "";
    char text[PROFILE_SHAPES_MAX] = "";
    rondo__profile_row row = {.part = RONDO_PROFILE_KERNEL, .plan = executable->plan->name};
    row.name = step->node_name && *step->node_name ? step->node_name : step->operator_name;
    row.operator_name = step->operator_name;
    row.variant = step->variant;
    row.load_ns = executable->steps[index].load_ns;
    profile_shapes(text, sizeof text, step);
    RONDO__TRY(rondo__arena_string(&profile->arena, text, strlen(text), &row.shapes));
    int length = snprintf(text, sizeof text, "%s%s%s", step->catalogue, *set ? " " : "", set);
    RONDO__TRY(rondo__arena_string(&profile->arena, text, (size_t)length, &row.kernel_set));
    return rondo__buffer_append(&profile->rows, &row, 1);
}

static rondo_status profile_plan_rows(rondo_profile *profile, const rondo_executable *executable, uint32_t *out_first) {
    rondo__profile_plan entry = {executable->plan, (uint32_t)profile->rows.count};
    for (size_t i = 0; i < profile->plans.count; i++) {
        const rondo__profile_plan *known = RONDO__BUFFER_AT(&profile->plans, rondo__profile_plan, i);
        *out_first = known->first_row;
        if (known->plan == executable->plan) return RONDO_OK;
    }
    rondo_status status = rondo__buffer_reserve(&profile->plans, profile->plans.count + 1);
    for (uint32_t i = 0; i < entry.plan->step_count && !status; i++) status = profile_step_row(profile, executable, i);
    if (status) {
        profile->rows.count = entry.first_row; /* all of them or none */
        return status;
    }
    RONDO__IGNORE(rondo__buffer_append(&profile->plans, &entry, 1)); /* room was made above */
    rondo_plan_retain(entry.plan);
    *out_first = entry.first_row;
    return RONDO_OK;
}

/* ----------------------------------------------------------------------------------------------------- the sums */

typedef struct profile_interval {
    uint64_t begin, end;
} profile_interval;

static int profile_interval_compare(const void *a, const void *b) {
    const profile_interval *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* How long at least one of them lasted. */
static uint64_t profile_union(profile_interval *intervals, size_t count) {
    uint64_t sum = 0, until = 0;
    if (count > 1) qsort(intervals, count, sizeof *intervals, profile_interval_compare);
    for (size_t i = 0; i < count; i++) {
        uint64_t begin = intervals[i].begin > until ? intervals[i].begin : until;
        if (intervals[i].end <= begin) continue;
        sum += intervals[i].end - begin;
        until = intervals[i].end;
    }
    return sum;
}

typedef struct profile_times {
    uint64_t begin, launched, end; /* on the host: launching, then waiting */
    uint64_t own;                  /* kernels that the host ran while it launched */
    uint64_t waited;               /* kernels that ran while it waited */
    uint64_t device;               /* all of them */
} profile_times;

static void profile_add_slot(rondo_profile *profile, const profile_watch *watch, const profile_slot *slot,
                             uint32_t first, profile_times *times, profile_interval *interval) {
    rondo__profile_row *row = RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, first + slot->step);
    uint64_t kernel = slot->end > slot->begin ? slot->end - slot->begin : 0;
    uint64_t launch = slot->enqueued - slot->enqueue;
    bool inside = slot->thread == rondo__thread_id() && slot->begin >= slot->enqueue && slot->end <= slot->enqueued;
    if (inside) launch -= kernel;
    row->kernel_ns += kernel;
    row->launch_ns += launch;
    row->waited = slot->inner.function == NULL;
    rondo__profile_row_add(row, kernel + launch);
    times->device += kernel;
    if (slot->thread == rondo__thread_id() && slot->end <= times->launched) times->own += kernel;
    interval->begin = slot->begin > times->launched ? slot->begin : times->launched;
    interval->end = slot->end < times->end ? slot->end : times->end;
    if (!slot->end) interval->end = interval->begin = 0;
    profile->info.clock_readings += watch->host_kernels && slot->inner.function ? 3u : 2u;
}

static rondo_status profile_add_events(rondo_profile *profile, const profile_slot *slot, uint32_t first,
                                       uint32_t host) {
    uint32_t row = first + slot->step;
    RONDO__TRY(rondo__profile_event_add(profile, row, host, RONDO_PROFILE_LAUNCH, slot->enqueue, slot->enqueued));
    if (!slot->end) return RONDO_OK;
    return rondo__profile_event_add(profile, row, slot->lane, RONDO_PROFILE_KERNEL, slot->begin, slot->end);
}

static rondo_status profile_add_part(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t ns) {
    uint32_t row = 0;
    RONDO__TRY(rondo__profile_named(profile, part, name, &row));
    rondo__profile_row_add(RONDO__BUFFER_AT(&profile->rows, rondo__profile_row, row), ns);
    profile->info.ns[part] += ns;
    return RONDO_OK;
}

/* Rows first, as they may find no memory; then what cannot fail. */
static rondo_status profile_harvest(rondo_profile *profile, const profile_watch *watch, profile_times *times,
                                    profile_interval *intervals) {
    const char *name = watch->executable->plan->name;
    uint32_t first = 0, host = 0;
    size_t count = 0;
    RONDO__TRY(profile_plan_rows(profile, watch->executable, &first));
    RONDO__TRY(rondo__profile_lane_of(profile, NULL, &host));
    for (const profile_chunk *chunk = watch->chunks; chunk; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            if (!chunk->slots[i].enqueued) continue; /* its launch failed */
            profile_add_slot(profile, watch, &chunk->slots[i], first, times, &intervals[count++]);
            RONDO__TRY(profile_add_events(profile, &chunk->slots[i], first, host));
        }
    }
    times->waited = profile_union(intervals, count);
    profile->info.runs++;
    profile->info.device_ns += times->device;
    profile->info.overlapped_ns += times->device - times->own - times->waited;
    profile->info.ns[RONDO_PROFILE_KERNEL] += times->own + times->waited;
    RONDO__TRY(profile_add_part(profile, RONDO_PROFILE_LAUNCH, name, times->launched - times->begin - times->own));
    return profile_add_part(profile, RONDO_PROFILE_WAIT, name, times->end - times->launched - times->waited);
}

static void profile_watch_free(profile_watch *watch) {
    while (watch->chunks) {
        profile_chunk *chunk = watch->chunks;
        watch->chunks = chunk->next;
        rondo__free(&watch->profile->allocator, chunk, profile_chunk_bytes(chunk->capacity));
    }
}

static rondo_status profile_sum(rondo_profile *profile, const profile_watch *watch, profile_times *times) {
    void *memory = NULL;
    RONDO__TRY(
        rondo__allocate_array(&profile->allocator, (size_t)watch->slots + 1u, sizeof(profile_interval), &memory));
    rondo__mutex_lock(&profile->mutex);
    rondo_status status = profile_harvest(profile, watch, times, memory);
    rondo__mutex_unlock(&profile->mutex);
    rondo__free(&profile->allocator, memory, ((size_t)watch->slots + 1u) * sizeof(profile_interval));
    return status;
}

/* -------------------------------------------------------------------------------------------------------- runs */

static rondo_status profile_check(const char *what, const void *profile, const void *object,
                                  const rondo_stream *stream) {
    if (!profile || !object || !stream)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: profile, stream or what is to run is null", what);
    if (!rondo__stream_recorder(stream)) return RONDO_OK;
    return RONDO__FAIL(INVALID_STATE, CAPTURE, "%s: the stream captures, and nothing runs that could be timed", what);
}

rondo_status rondo_profile_run(rondo_profile *profile, rondo_context *context, rondo_stream *stream, uint64_t *mark) {
    RONDO__TRY(profile_check("rondo_profile_run", profile, context, stream));
    const uint32_t capabilities = stream->device->properties.capabilities;
    profile_watch watch = {.profile = profile, .executable = context->executable};
    const rondo__exec_observer observer = {&watch, profile_before, profile_after};
    profile_times times = {0};
    watch.host_kernels = (capabilities & RONDO_DEVICE_HOST_KERNELS) != 0;
    times.begin = watch.last = mark ? *mark : rondo__now_ns();
    rondo_status status = rondo__context_run_observed(context, stream, &observer);
    times.launched = rondo__now_ns();
    /* Also after a failure: what went out writes into the slots. */
    status = rondo__status_first(status, rondo_stream_synchronize(stream));
    times.end = rondo__now_ns();
    if (mark) *mark = times.end;
    if (!status) status = profile_sum(profile, &watch, &times);
    profile_watch_free(&watch);
    return status;
}

/* What was enqueued is waited for, and is one piece of time. */
static rondo_status profile_whole(rondo_profile *profile, rondo_profile_part part, const char *name, uint64_t begin,
                                  rondo_stream *stream, uint64_t *mark) {
    RONDO__TRY(rondo_stream_synchronize(stream));
    uint64_t end = rondo__now_ns();
    if (mark) *mark = end;
    return rondo__profile_put(profile, part, name, begin, end);
}

rondo_status rondo_profile_run_eager(rondo_profile *profile, rondo_context *context, rondo_stream *stream,
                                     uint64_t *mark) {
    RONDO__TRY(profile_check("rondo_profile_run_eager", profile, context, stream));
    uint64_t begin = mark ? *mark : rondo__now_ns();
    RONDO__TRY(rondo_context_run_eager(context, stream));
    return profile_whole(profile, RONDO_PROFILE_EAGER, context->executable->plan->name, begin, stream, mark);
}

rondo_status rondo_profile_replay(rondo_profile *profile, rondo_graph *graph, rondo_stream *stream, uint64_t *mark) {
    RONDO__TRY(profile_check("rondo_profile_replay", profile, graph, stream));
    uint64_t begin = mark ? *mark : rondo__now_ns();
    RONDO__TRY(rondo_graph_replay(graph, stream));
    return profile_whole(profile, RONDO_PROFILE_REPLAY, *graph->name ? graph->name : "graph", begin, stream, mark);
}
