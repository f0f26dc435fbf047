/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile for people and programs: tables, JSON, Chrome's trace events. The whole is made in memory and then handed to the
 * writer, so a reader never sees half of one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/profile.h"

#define PROFILE_TEXT_MAX ((size_t)1 << 31)
#define PROFILE_TEXT_ROWS 40u
#define PROFILE_VERDICT_MAX 512u
/* Below this part of a run, what launching costs is not worth a capture. */
#define PROFILE_WORTH 0.05

static double profile_us(uint64_t ns) { return (double)ns / 1e3; }

static double profile_percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static const rondo__profile_row *profile_row(const rondo_profile *profile, size_t index) {
    return RONDO__BUFFER_AT(&profile->rows, const rondo__profile_row, index);
}

/* ------------------------------------------------------------------------------------------------------ verdict */

typedef struct profile_run_times {
    double launch, kernel, wait, copy; /* us a run, without what reading the clock took */
} profile_run_times;

/* Of the three readings a step two fall into launching it and one into its kernel. */
static profile_run_times profile_run_mean(const rondo_profile_info *info) {
    double clock = (double)info->clock_readings * (double)info->clock_ns / 3.0, n = (double)info->runs * 1e3;
    double launch = (double)info->ns[RONDO_PROFILE_LAUNCH] - 2.0 * clock;
    double kernel = (double)info->ns[RONDO_PROFILE_KERNEL] - clock;
    profile_run_times mean = {launch > 0 ? launch / n : 0, kernel > 0 ? kernel / n : 0,
                              (double)info->ns[RONDO_PROFILE_WAIT] / n,
                              (double)(info->ns[RONDO_PROFILE_COPY_IN] + info->ns[RONDO_PROFILE_COPY_OUT]) / n};
    return mean;
}

static size_t profile_judge_run(const rondo_profile_info *info, char *buffer, size_t capacity) {
    profile_run_times mean = profile_run_mean(info);
    double whole = mean.launch + mean.kernel + mean.wait, part = whole > 0 ? 100.0 / whole : 0;
    int length;
    if (info->replays && info->eager_runs) {
        double replay = profile_us(info->ns[RONDO_PROFILE_REPLAY]) / (double)info->replays;
        double eager = profile_us(info->ns[RONDO_PROFILE_EAGER]) / (double)info->eager_runs;
        double saved = eager > replay ? eager - replay : 0, share = eager > 0 ? saved / eager : 0;
        length =
            share < PROFILE_WORTH
                ? snprintf(buffer, capacity,
                           "capture will not help: kernels take %.0f %% of a run; a captured replay takes %.2f us, "
                           "the same calls one by one %.2f us",
                           mean.kernel * part, replay, eager)
                : snprintf(buffer, capacity,
                           "capture helps: a captured replay takes %.2f us, the same calls one by one %.2f us, so "
                           "it saves %.2f us a run (%.0f %%)",
                           replay, eager, saved, 100 * share);
    } else if (mean.launch < PROFILE_WORTH * whole) {
        length =
            snprintf(buffer, capacity, "capture will not help: kernels take %.0f %% of a run, launching them %.1f %%",
                     mean.kernel * part, mean.launch * part);
    } else {
        length = snprintf(buffer, capacity,
                          "capture would save at most what launching takes: %.2f us of %.2f us a run (%.0f %%)",
                          mean.launch, whole, mean.launch * part);
    }
    return length < 0 ? 0 : (size_t)length;
}

size_t rondo__profile_judge(const rondo_profile_info *info, char *buffer, size_t capacity) {
    if (!info->runs) {
        int length = snprintf(buffer, capacity, "no run was watched step by step, so nothing is known of its kernels");
        return length < 0 ? 0 : (size_t)length;
    }
    size_t used = profile_judge_run(info, buffer, capacity);
    profile_run_times mean = profile_run_mean(info);
    double whole = mean.launch + mean.kernel + mean.wait;
    if (mean.copy > whole) {
        size_t room = used < capacity ? capacity - used : 0;
        int length = snprintf(room ? buffer + used : NULL, room,
                              "; copies take more than the run: %.2f us. Keep tensors on the device", mean.copy);
        used += length < 0 ? 0 : (size_t)length;
    }
    return used;
}

size_t rondo_profile_verdict(rondo_profile *profile, char *buffer, size_t capacity) {
    if (capacity) buffer[0] = 0;
    if (!profile) return 0;
    rondo__mutex_lock(&profile->mutex);
    size_t length = rondo__profile_judge(&profile->info, buffer, capacity);
    rondo__mutex_unlock(&profile->mutex);
    return length;
}

/* --------------------------------------------------------------------------------------------------------- text */

typedef struct profile_order {
    uint64_t ns;
    uint32_t row;
} profile_order;

static int profile_order_compare(const void *a, const void *b) {
    const profile_order *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static rondo_status profile_text_parts(const rondo_profile_info *info, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text, "%-10s %14s %8s\n", "part", "us", "share"));
    for (int part = RONDO_PROFILE_IMPORT; part < RONDO_PROFILE_PASS; part++) {
        if (!info->ns[part]) continue;
        RONDO__TRY(rondo__text_append(text, "%-10s %14.2f %6.1f %%\n", rondo_profile_part_name(part),
                                      profile_us(info->ns[part]),
                                      profile_percent(info->ns[part], info->ns[RONDO_PROFILE_CALL])));
    }
    return rondo__text_append(text, "%-10s %14.2f %6.1f %% of the wall time, %.2f us\n", "sum",
                              profile_us(info->parts_ns), profile_percent(info->parts_ns, info->ns[RONDO_PROFILE_CALL]),
                              profile_us(info->ns[RONDO_PROFILE_CALL]));
}

static rondo_status profile_text_row(const rondo__profile_row *row, uint64_t whole, rondo__buffer *text) {
    double calls = row->calls ? (double)row->calls : 1;
    RONDO__TRY(rondo__text_append(text, "%5.1f %% %8" PRIu64 " %11.2f %11.2f %11.2f %9.2f  ",
                                  profile_percent(row->total_ns, whole), row->calls, profile_us(row->total_ns) / calls,
                                  profile_us(row->kernel_ns) / calls, profile_us(row->launch_ns) / calls,
                                  profile_us(row->load_ns)));
    if (!row->plan) return rondo__text_append(text, "%s '%s'\n", rondo_profile_part_name(row->part), row->name);
    return rondo__text_append(text, "%s '%s' by %s: %s\n", row->operator_name, row->name, row->kernel_set, row->shapes);
}

/* Nodes and copies: what a run is made of. */
static bool profile_in_run(const rondo__profile_row *row) {
    return row->plan || row->part == RONDO_PROFILE_COPY_IN || row->part == RONDO_PROFILE_COPY_OUT;
}

static rondo_status profile_text_rows(const rondo_profile *profile, rondo__buffer *text) {
    void *memory = NULL;
    size_t count = profile->rows.count, used = 0;
    uint64_t whole = 0, rest = 0;
    RONDO__TRY(rondo__allocate_array(&profile->allocator, count, sizeof(profile_order), &memory));
    profile_order *order = memory;
    for (size_t i = 0; i < count; i++) {
        if (!profile_in_run(profile_row(profile, i))) continue;
        order[used++] = (profile_order){profile_row(profile, i)->total_ns, (uint32_t)i};
        whole += profile_row(profile, i)->total_ns;
    }
    if (used > 1) qsort(order, used, sizeof *order, profile_order_compare);
    rondo_status status = rondo__text_append(text, "\n%7s %8s %11s %11s %11s %9s  %s\n", "share", "calls", "mean us",
                                             "kernel us", "launch us", "load us", "node or tensor");
    for (size_t i = 0; i < used && !status; i++) {
        if (i < PROFILE_TEXT_ROWS) status = profile_text_row(profile_row(profile, order[i].row), whole, text);
        else rest += order[i].ns;
    }
    if (!status && used > PROFILE_TEXT_ROWS)
        status =
            rondo__text_append(text, "%5.1f %%  in %zu more\n", profile_percent(rest, whole), used - PROFILE_TEXT_ROWS);
    rondo__free(&profile->allocator, memory, count * sizeof(profile_order));
    return status;
}

static rondo_status profile_text(const rondo_profile *profile, const rondo_profile_info *info, rondo__buffer *text) {
    char verdict[PROFILE_VERDICT_MAX];
    RONDO__TRY(profile_text_parts(info, text));
    if (info->runs) RONDO__TRY(profile_text_rows(profile, text));
    if (info->overlapped_ns)
        RONDO__TRY(rondo__text_append(text, "\nkernels ran %.2f us beside the host's own work, of %.2f us\n",
                                      profile_us(info->overlapped_ns), profile_us(info->device_ns)));
    (void)rondo__profile_judge(info, verdict, sizeof verdict);
    return rondo__text_append(text, "\n%s\n", verdict);
}

/* --------------------------------------------------------------------------------------------------------- json */

static rondo_status profile_json_string(rondo__buffer *text, const char *key, const char *value) {
    RONDO__TRY(rondo__text_append(text, ", \"%s\": ", key));
    return value ? rondo__text_append_json(text, value, strlen(value)) : rondo__text_append(text, "null");
}

static rondo_status profile_json_row(const rondo__profile_row *row, rondo__buffer *text) {
    RONDO__TRY(rondo__text_append(text, "{\"part\": \"%s\", \"calls\": %" PRIu64 ", \"us\": %.3f", //
                                  rondo_profile_part_name(row->part), row->calls, profile_us(row->total_ns)));
    RONDO__TRY(rondo__text_append(text, ", \"min_us\": %.3f, \"max_us\": %.3f", profile_us(row->min_ns),
                                  profile_us(row->max_ns)));
    RONDO__TRY(profile_json_string(text, "name", row->name));
    if (row->plan) {
        RONDO__TRY(profile_json_string(text, "plan", row->plan));
        RONDO__TRY(profile_json_string(text, "operator", row->operator_name));
        RONDO__TRY(profile_json_string(text, "shapes", row->shapes));
        RONDO__TRY(profile_json_string(text, "kernel_set", row->kernel_set));
        RONDO__TRY(profile_json_string(text, "variant", row->variant));
        RONDO__TRY(rondo__text_append(text,
                                      ", \"kernel_us\": %.3f, \"launch_us\": %.3f, \"load_us\": %.3f, \"waited\": %s",
                                      profile_us(row->kernel_ns), profile_us(row->launch_ns), profile_us(row->load_ns),
                                      row->waited ? "true" : "false"));
    }
    return rondo__text_append(text, "}");
}

static rondo_status profile_json(const rondo_profile *profile, const rondo_profile_info *info, rondo__buffer *text) {
    char verdict[PROFILE_VERDICT_MAX];
    RONDO__TRY(rondo__text_append(text,
                                  "{\"runs\": %" PRIu64 ", \"replays\": %" PRIu64 ", \"eager_runs\": %" PRIu64
                                  ", \"wall_us\": %.3f, \"parts_us\": %.3f,\n \"device_us\": %.3f, "
                                  "\"overlapped_us\": %.3f, \"clock_ns\": %" PRIu64 ", \"clock_readings\": %" PRIu64
                                  ", \"events\": %" PRIu64 ", \"events_lost\": %" PRIu64 ",\n \"parts\": {",
                                  info->runs, info->replays, info->eager_runs, profile_us(info->ns[RONDO_PROFILE_CALL]),
                                  profile_us(info->parts_ns), profile_us(info->device_ns),
                                  profile_us(info->overlapped_ns), info->clock_ns, info->clock_readings, info->events,
                                  info->events_lost));
    for (int part = RONDO_PROFILE_IMPORT; part < RONDO_PROFILE_PARTS; part++)
        RONDO__TRY(rondo__text_append(text, "%s\"%s\": %.3f", part > RONDO_PROFILE_IMPORT ? ", " : "",
                                      rondo_profile_part_name(part), profile_us(info->ns[part])));
    RONDO__TRY(rondo__text_append(text, "},\n \"rows\": ["));
    for (size_t i = 0; i < profile->rows.count; i++) {
        RONDO__TRY(rondo__text_append(text, "%s\n  ", i ? "," : ""));
        RONDO__TRY(profile_json_row(profile_row(profile, i), text));
    }
    (void)rondo__profile_judge(info, verdict, sizeof verdict);
    RONDO__TRY(rondo__text_append(text, "],\n \"verdict\": "));
    RONDO__TRY(rondo__text_append_json(text, verdict, strlen(verdict)));
    return rondo__text_append(text, "}\n");
}

/* -------------------------------------------------------------------------------------------------------- trace */

static rondo_status profile_trace_lane(const rondo_profile *profile, size_t index, rondo__buffer *text) {
    const rondo__profile_lane *lane = RONDO__BUFFER_AT(&profile->lanes, rondo__profile_lane, index);
    RONDO__TRY(rondo__text_append(text,
                                  ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %zu, \"name\": \"thread_name\", "
                                  "\"args\": {\"name\": ",
                                  lane->device ? 2 : 1, index + 1u));
    RONDO__TRY(rondo__text_append_json(text, lane->name, strlen(lane->name)));
    return rondo__text_append(text, "}}");
}

static rondo_status profile_trace_event(const rondo_profile *profile, const rondo__profile_event *event, uint64_t zero,
                                        rondo__buffer *text) {
    const rondo__profile_lane *lane = RONDO__BUFFER_AT(&profile->lanes, rondo__profile_lane, event->lane);
    const rondo__profile_row *row = profile_row(profile, event->row);
    RONDO__TRY(rondo__text_append(text,
                                  ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"cat\": \"%s\", \"ts\": %.3f, "
                                  "\"dur\": %.3f, \"name\": ",
                                  lane->device ? 2 : 1, (unsigned)event->lane + 1u,
                                  rondo_profile_part_name(event->part), profile_us(event->begin - zero),
                                  profile_us(event->end - event->begin)));
    RONDO__TRY(rondo__text_append_json(text, row->name, strlen(row->name)));
    if (row->plan) {
        RONDO__TRY(rondo__text_append(text, ", \"args\": {\"plan\": "));
        RONDO__TRY(rondo__text_append_json(text, row->plan, strlen(row->plan)));
        RONDO__TRY(profile_json_string(text, "operator", row->operator_name));
        RONDO__TRY(profile_json_string(text, "shapes", row->shapes));
        RONDO__TRY(profile_json_string(text, "kernel_set", row->kernel_set));
        RONDO__TRY(rondo__text_append(text, "}"));
    }
    return rondo__text_append(text, "}");
}

static rondo_status profile_trace(const rondo_profile *profile, const rondo_profile_info *info, rondo__buffer *text) {
    uint64_t zero = profile->begun;
    for (size_t i = 0; i < profile->events.count; i++) {
        const rondo__profile_event *event = RONDO__BUFFER_AT(&profile->events, rondo__profile_event, i);
        if (event->begin < zero) zero = event->begin;
    }
    RONDO__TRY(rondo__text_append(
        text,
        "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"events_lost\": %" PRIu64 "}, \"traceEvents\": [\n"
        "{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": \"host\"}},\n"
        "{\"ph\": \"M\", \"pid\": 2, \"name\": \"process_name\", \"args\": {\"name\": \"device\"}}",
        info->events_lost));
    for (size_t i = 0; i < profile->lanes.count; i++) RONDO__TRY(profile_trace_lane(profile, i, text));
    for (size_t i = 0; i < profile->events.count; i++) {
        const rondo__profile_event *event = RONDO__BUFFER_AT(&profile->events, rondo__profile_event, i);
        RONDO__TRY(profile_trace_event(profile, event, zero, text));
    }
    return rondo__text_append(text, "\n]}\n");
}

/* -------------------------------------------------------------------------------------------------------- write */

rondo_status rondo_profile_write(rondo_profile *profile, rondo_profile_format format, rondo_write_function write,
                                 void *user) {
    rondo_profile_info info = RONDO_PROFILE_INFO_INIT;
    rondo__buffer text;
    if (!profile || !write || format < RONDO_PROFILE_TEXT || format > RONDO_PROFILE_TRACE)
        return RONDO__FAIL(INVALID_ARGUMENT, NONE,
                           "rondo_profile_write: profile or write is null, or format %d is none that there is",
                           (int)format);
    RONDO__TRY(rondo_profile_get_info(profile, &info));
    rondo__buffer_init(&text, &profile->allocator, 1, PROFILE_TEXT_MAX);
    rondo__mutex_lock(&profile->mutex);
    rondo_status status = format == RONDO_PROFILE_TEXT   ? profile_text(profile, &info, &text)
                          : format == RONDO_PROFILE_JSON ? profile_json(profile, &info, &text)
                                                         : profile_trace(profile, &info, &text);
    rondo__mutex_unlock(&profile->mutex);
    if (!status && write(user, rondo__text(&text), text.count) != 0)
        status = RONDO__FAIL(IO, FILE, "the profile could not be written");
    rondo__buffer_deinit(&text);
    return status;
}
