/* SPDX-License-Identifier: Apache-2.0
 *
 * One readable report of what is graphed, what is not, why, and at what cost; as text for people and as JSON for
 * programs. It is written under the tree's lock and handed out without it. */
#include "tree/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "tree/simple.h"

#define REPORT_MAX ((size_t)1 << 30)
#define REPORT_TEXT_SIZES 16u /* of a function; JSON has all */

static const char *const report_states[] = {"nothing", "warming up", "recording", "executing"};
static const char *const report_modes[] = {"inference", "forward", "backward"};

/* Everything about one size. */
typedef struct report_size {
    const rondo__tree_size *size;
    rondo__tree_bytes bytes;
    uint64_t nodes, replays, copied; /* nodes of the graphs; copied: bytes a replay */
} report_size;

/* Everything about one function. */
typedef struct report_function {
    const rondo__tree_function *function;
    rondo__buffer sizes; /* report_size, the one that was called last first */
    rondo__tree_bytes bytes;
    uint32_t recordings;
} report_function;

typedef struct report {
    rondo_tree *tree;
    rondo__buffer *text;
    rondo__tree_memory memory;
} report;

#define REPORT(r, ...) RONDO__TRY(rondo__text_append((r)->text, __VA_ARGS__))
#define U(value) ((unsigned long long)(value))

/* ----------------------------------------------------------------------------------------------------- gather */

static int report_by_use(const void *a, const void *b) {
    const rondo__tree_size *x = ((const report_size *)a)->size, *y = ((const report_size *)b)->size;
    if (x->last_used != y->last_used) return x->last_used > y->last_used ? -1 : 1;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : 0;
}

static void report_gather_size(const rondo_tree *tree, report_size *entry) {
    for (size_t i = 0; entry->size->recordings && i < tree->all.count; i++) {
        const rondo__tree_node *node = *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i);
        if (node->size != entry->size) continue;
        const rondo__tree_bytes bytes = rondo__tree_node_bytes(node);
        entry->copied = bytes.inputs;
        entry->bytes.inputs += bytes.inputs;
        entry->bytes.outputs += bytes.outputs;
        entry->bytes.host += bytes.host;
        entry->nodes += node->facts.nodes;
        entry->replays += node->runs ? node->runs - 1u : 0; /* the first was the recording's own */
    }
}

static void report_gather_simple(report_size *entry) {
    const rondo__tree_simple *s = rondo__tree_simple_of(entry->size->function);
    if (!s || s->size != entry->size) return;
    for (uint32_t i = 0; i < s->moving_count; i++) entry->bytes.inputs += s->moving[i].bytes;
    entry->copied = entry->bytes.inputs;
    entry->bytes.host = s->facts.bytes;
    entry->nodes = s->facts.nodes;
    entry->replays = s->runs ? s->runs - 1u : 0;
}

static rondo_status report_gather(const rondo_tree *tree, const rondo__tree_function *function, report_function *out) {
    out->function = function;
    out->bytes = (rondo__tree_bytes){0};
    out->recordings = function->recordings + rondo__tree_simple_recorded(function);
    rondo__buffer_init(&out->sizes, &tree->allocator, sizeof(report_size), SIZE_MAX);
    for (uint32_t i = 0; i < function->table_size; i++) {
        for (const rondo__tree_size *size = function->table[i]; size; size = size->next) {
            report_size entry = {.size = size};
            report_gather_size(tree, &entry);
            if (function->simple) report_gather_simple(&entry);
            out->bytes.inputs += entry.bytes.inputs;
            out->bytes.outputs += entry.bytes.outputs;
            out->bytes.host += entry.bytes.host;
            RONDO__TRY(rondo__buffer_append(&out->sizes, &entry, 1));
        }
    }
    if (out->sizes.count) qsort(out->sizes.data, out->sizes.count, sizeof(report_size), report_by_use);
    return RONDO_OK;
}

static const char *report_function_state(const report_function *f) {
    const rondo_tree_function_info *info = &f->function->info;
    if (f->function->skip) return "skipped";
    if (f->function->stopped) return "stopped";
    if (f->recordings) return "graphed";
    if (info->warmups) return "warmed up";
    return info->directs ? "direct" : "not called";
}

static uint64_t report_calls(const rondo__tree_function *function) {
    const rondo_tree_function_info *info = &function->info;
    /* The first call of the simple path warms up and records. */
    const uint64_t twice = function->simple ? info->warmups : 0;
    return info->directs + info->warmups + info->records + info->replays -
           (twice < info->records ? twice : info->records);
}

/* Why it is not graphed, when it is not. */
static const char *report_why(const rondo__tree_function *function) {
    return function->skip ? function->skip : function->stopped ? function->why : NULL;
}

/* ------------------------------------------------------------------------------------------------------- text */

/* Microseconds with three digits behind the point; `none` where nothing was measured. */
static rondo_status report_time(const report *r, uint64_t nanoseconds, const char *none) {
    if (!nanoseconds) return rondo__text_append(r->text, "%s", none);
    return rondo__text_append(r->text, "%llu.%03u", U(nanoseconds / 1000u), (unsigned)(nanoseconds % 1000u));
}

static rondo_status report_times(const report *r, const uint64_t *nanoseconds, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        REPORT(r, "%s%s ", i ? ", " : "", names[i]);
        RONDO__TRY(report_time(r, nanoseconds[i], "-"));
    }
    return rondo__text_append(r->text, "\n");
}

static rondo_status report_escaped(const report *r, const char *text) {
    char clean[256];
    (void)rondo__escape(clean, sizeof clean, text, strlen(text));
    return rondo__text_append(r->text, "%s", clean);
}

static rondo_status report_text_head(const report *r) {
    const rondo_tree *tree = r->tree;
    const rondo_tree_info *info = &tree->info;
    uint32_t depth = 0;
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) depth++;
    REPORT(r, "tree ");
    RONDO__TRY(report_escaped(r, tree->type));
    REPORT(r, ":%d, context %llu: %s, %u deep\n", (int)tree->options.index, U(tree->options.context),
           report_states[tree->state], depth);
    REPORT(r, "  calls: %llu replayed (%llu sealed), %llu recorded, %llu warmed up, %llu direct\n", U(info->replays),
           U(info->sealed), U(info->records), U(info->warmups), U(info->directs));
    REPORT(r, "  %llu steps, %llu checkpoints, %llu inputs carried over, %llu outputs moved, %llu recordings dropped\n",
           U(info->steps), U(info->checkpoints), U(info->carried), U(info->evacuated), U(info->evicted));
    return RONDO_OK;
}

static rondo_status report_text_size(const report *r, const report_size *entry) {
    const rondo__tree_size *size = entry->size;
    const char *refusal = size->refusal ? rondo_tree_reason_text(size->refusal) : NULL;
    REPORT(r, "  size %016llx: %u recordings of %llu nodes, %llu replays, %llu other calls; %llu bytes copied in",
           U(size->hash), size->recordings, U(entry->nodes), U(entry->replays), U(size->seen), U(entry->copied));
    if (size->direct_ns || size->replay_ns) {
        REPORT(r, "; us: call ");
        RONDO__TRY(report_time(r, size->direct_ns, "-"));
        REPORT(r, ", replay ");
        RONDO__TRY(report_time(r, size->replay_ns, "-"));
    }
    return rondo__text_append(r->text, "%s%s\n", refusal ? "; direct: " : "", refusal ? refusal : "");
}

static rondo_status report_text_reasons(const report *r, const rondo_tree_function_info *info) {
    for (rondo_tree_reason i = RONDO_TREE_REASON_NONE + 1; i < RONDO_TREE_REASON_COUNT; i++) {
        if (!info->reasons[i]) continue;
        REPORT(r, "  %8llu  %s: %s\n", U(info->reasons[i]), rondo_tree_reason_name(i), rondo_tree_reason_text(i));
    }
    return RONDO_OK;
}

static rondo_status report_text_function(const report *r, const report_function *f) {
    static const char *const names[] = {"  least us: direct", "warm-up", "record", "replay"};
    const rondo__tree_function *function = f->function;
    const rondo_tree_function_info *info = &function->info;
    const uint64_t times[] = {info->direct_ns, info->warmup_ns, info->record_ns, info->replay_ns};
    const char *why = report_why(function);
    REPORT(r, "function %u '", function->id);
    RONDO__TRY(report_escaped(r, function->name));
    REPORT(r, "' (%s%s): %s", report_modes[function->mode], function->simple ? ", simple" : "",
           report_function_state(f));
    if (function->stopped) REPORT(r, ": %s", rondo_tree_reason_text(function->stopped));
    if (why) {
        REPORT(r, ": ");
        RONDO__TRY(report_escaped(r, why));
    }
    REPORT(r, "\n  %u recordings (%u roots) of %u sizes; %llu of %llu calls replayed, %llu inputs copied\n",
           f->recordings, function->roots, (unsigned)f->sizes.count, U(info->replays), U(report_calls(function)),
           U(info->copies));
    RONDO__TRY(report_times(r, times, names, 4));
    REPORT(r, "  bytes: %llu of outputs and %llu of input copies in the pool, %llu of the host\n", U(f->bytes.outputs),
           U(f->bytes.inputs), U(f->bytes.host));
    for (size_t i = 0; i < f->sizes.count && i < REPORT_TEXT_SIZES; i++) {
        RONDO__TRY(report_text_size(r, RONDO__BUFFER_AT(&f->sizes, report_size, i)));
    }
    if (f->sizes.count > REPORT_TEXT_SIZES) REPORT(r, "  and %zu sizes more\n", f->sizes.count - REPORT_TEXT_SIZES);
    return report_text_reasons(r, info);
}

static rondo_status report_text_memory(const report *r) {
    const rondo__tree_memory *m = &r->memory;
    const rondo_tree *tree = r->tree;
    if (m->known) {
        REPORT(r, "memory: pool (%llu, %llu), %llu bytes reserved, %llu of them live blocks of the allocator\n",
               U(tree->pool.automatic), U(tree->pool.user), U(m->reserved), U(m->allocated));
    } else {
        REPORT(r, "memory: pool (%llu, %llu); the device does not tell its bytes\n", U(tree->pool.automatic),
               U(tree->pool.user));
    }
    REPORT(r, "  %12llu  live: %llu outputs that are in use\n", U(m->live), U(m->live_count));
    REPORT(r, "  %12llu  dead, and held: outputs and input copies of recordings, for their next replay\n",
           U(m->waiting));
    if (m->known) REPORT(r, "  %12llu  held besides: temporaries of recordings, rounding, free parts\n", U(m->rest));
    REPORT(r, "  %12llu  shared: of more than one recording; apart they would take %llu bytes\n", U(m->shared),
           U(m->apart));
    if (m->simple_count) {
        REPORT(r, "  %12llu  in %llu pools of simple functions\n", U(m->simple), U(m->simple_count));
    }
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------- JSON */

static rondo_status report_string(const report *r, const char *key, const char *value) {
    REPORT(r, "\"%s\":", key);
    return value ? rondo__text_append_json(r->text, value, strlen(value)) : rondo__text_append(r->text, "null");
}

static rondo_status report_json_times(const report *r, const uint64_t *nanoseconds, const char *const *names,
                                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        REPORT(r, "%s\"%s\":", i ? "," : "", names[i]);
        RONDO__TRY(report_time(r, nanoseconds[i], "null"));
    }
    return RONDO_OK;
}

static rondo_status report_json_head(const report *r) {
    const rondo_tree *tree = r->tree;
    const rondo_tree_options *o = &tree->options;
    const rondo_tree_info *info = &tree->info;
    REPORT(r, "{");
    RONDO__TRY(report_string(r, "device", tree->type));
    REPORT(r, ",\"index\":%d,\"context\":%llu,", (int)o->index, U(o->context));
    RONDO__TRY(report_string(r, "state", report_states[tree->state]));
    REPORT(r, ",\n\"calls\":{\"replayed\":%llu,\"sealed\":%llu,\"recorded\":%llu,\"warmed_up\":%llu,\"direct\":%llu}",
           U(info->replays), U(info->sealed), U(info->records), U(info->warmups), U(info->directs));
    REPORT(r, ",\n\"steps\":%llu,\"checkpoints\":%llu,\"carried\":%llu,\"evacuated\":%llu,\"evicted\":%llu",
           U(info->steps), U(info->checkpoints), U(info->carried), U(info->evacuated), U(info->evicted));
    REPORT(
        r,
        ",\n\"limits\":{\"record_after\":%u,\"rerecord\":%u,\"sizes\":%u,\"recordings\":%u,\"loop\":%u,\"seal_after\":%u,"
        "\"bytes\":%llu,\"strict\":%s},\n\"functions\":[",
        o->record_after, o->rerecord_limit, o->size_limit, o->recording_limit, o->loop_limit, o->seal_after,
        U(o->byte_limit), o->strict ? "true" : "false");
    return RONDO_OK;
}

static rondo_status report_json_size(const report *r, const report_size *entry) {
    static const char *const names[] = {"call", "replay"};
    const rondo__tree_size *size = entry->size;
    const uint64_t times[] = {size->direct_ns, size->replay_ns};
    REPORT(
        r,
        "{\"hash\":\"%016llx\",\"recordings\":%u,\"nodes\":%llu,\"replays\":%llu,\"other_calls\":%llu,\"copied_bytes\":%llu,",
        U(size->hash), size->recordings, U(entry->nodes), U(entry->replays), U(size->seen), U(entry->copied));
    REPORT(r, "\"input_bytes\":%llu,\"output_bytes\":%llu,\"host_bytes\":%llu,", U(entry->bytes.inputs),
           U(entry->bytes.outputs), U(entry->bytes.host));
    RONDO__TRY(report_string(r, "refused", size->refusal ? rondo_tree_reason_name(size->refusal) : NULL));
    REPORT(r, ",\"least_us\":{");
    RONDO__TRY(report_json_times(r, times, names, 2));
    return rondo__text_append(r->text, "}}");
}

static rondo_status report_json_reasons(const report *r, const rondo_tree_function_info *info) {
    const char *between = "";
    for (rondo_tree_reason i = RONDO_TREE_REASON_NONE + 1; i < RONDO_TREE_REASON_COUNT; i++) {
        if (!info->reasons[i]) continue;
        REPORT(r, "%s{", between);
        RONDO__TRY(report_string(r, "reason", rondo_tree_reason_name(i)));
        REPORT(r, ",\"count\":%llu,", U(info->reasons[i]));
        RONDO__TRY(report_string(r, "sentence", rondo_tree_reason_text(i)));
        REPORT(r, "}");
        between = ",";
    }
    return RONDO_OK;
}

static rondo_status report_json_function(const report *r, const report_function *f) {
    static const char *const names[] = {"direct", "warmup", "record", "replay"};
    const rondo__tree_function *function = f->function;
    const rondo_tree_function_info *info = &function->info;
    const uint64_t times[] = {info->direct_ns, info->warmup_ns, info->record_ns, info->replay_ns};
    REPORT(r, "{\"function\":%u,", function->id);
    RONDO__TRY(report_string(r, "name", function->name));
    REPORT(r, ",\"mode\":\"%s\",\"simple\":%s,\"state\":\"%s\",", report_modes[function->mode],
           function->simple ? "true" : "false", report_function_state(f));
    RONDO__TRY(report_string(r, "stopped", function->stopped ? rondo_tree_reason_name(function->stopped) : NULL));
    REPORT(r, ",");
    RONDO__TRY(report_string(r, "why", report_why(function)));
    REPORT(r,
           ",\n\"recordings\":%u,\"roots\":%u,\"calls\":%llu,\"replayed\":%llu,\"recorded\":%llu,\"warmed_up\":%llu,"
           "\"direct\":%llu,\"inputs_copied\":%llu,",
           f->recordings, function->roots, U(report_calls(function)), U(info->replays), U(info->records),
           U(info->warmups), U(info->directs), U(info->copies));
    REPORT(r, "\"input_bytes\":%llu,\"output_bytes\":%llu,\"host_bytes\":%llu,\n\"least_us\":{", U(f->bytes.inputs),
           U(f->bytes.outputs), U(f->bytes.host));
    RONDO__TRY(report_json_times(r, times, names, 4));
    REPORT(r, "},\n\"sizes\":[");
    for (size_t i = 0; i < f->sizes.count; i++) {
        if (i) REPORT(r, ",\n");
        RONDO__TRY(report_json_size(r, RONDO__BUFFER_AT(&f->sizes, report_size, i)));
    }
    REPORT(r, "],\n\"not_replayed\":[");
    RONDO__TRY(report_json_reasons(r, info));
    return rondo__text_append(r->text, "]}");
}

static rondo_status report_json_number(const report *r, const char *key, bool known, uint64_t value) {
    return known ? rondo__text_append(r->text, "\"%s\":%llu,", key, U(value))
                 : rondo__text_append(r->text, "\"%s\":null,", key);
}

static rondo_status report_json_memory(const report *r) {
    const rondo__tree_memory *m = &r->memory;
    REPORT(r, "],\n\"memory\":{\"pool\":[%llu,%llu],", U(r->tree->pool.automatic), U(r->tree->pool.user));
    RONDO__TRY(report_json_number(r, "reserved_bytes", m->known, m->reserved));
    RONDO__TRY(report_json_number(r, "allocated_bytes", m->known, m->allocated));
    RONDO__TRY(report_json_number(r, "rest_bytes", m->known, m->rest));
    return rondo__text_append(r->text,
                              "\"live_bytes\":%llu,\"live_outputs\":%llu,\"held_bytes\":%llu,\"shared_bytes\":%llu,"
                              "\"apart_bytes\":%llu,\"simple_bytes\":%llu,\"simple_pools\":%llu}}\n",
                              U(m->live), U(m->live_count), U(m->waiting), U(m->shared), U(m->apart), U(m->simple),
                              U(m->simple_count));
}

/* -------------------------------------------------------------------------------------------------------- all */

static rondo_status report_functions(const report *r, bool json) {
    const rondo_tree *tree = r->tree;
    const char *between = "\n";
    for (size_t i = 0; i < tree->functions.count; i++) {
        const rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        report_function f;
        if (!function || function->removed) continue;
        rondo_status status = report_gather(tree, function, &f);
        if (!status && json) status = rondo__text_append(r->text, "%s", between);
        if (!status) status = json ? report_json_function(r, &f) : report_text_function(r, &f);
        rondo__buffer_deinit(&f.sizes);
        if (status) return status;
        between = ",\n";
    }
    return RONDO_OK;
}

static rondo_status report_make(report *r, bool json) {
    RONDO__TRY(rondo__tree_measure(r->tree, &r->memory));
    RONDO__TRY(json ? report_json_head(r) : report_text_head(r));
    RONDO__TRY(report_functions(r, json));
    return json ? report_json_memory(r) : report_text_memory(r);
}

rondo_status rondo_tree_report(rondo_tree *tree, bool json, rondo_memory_write write, void *user) {
    rondo__buffer text;
    int32_t refused = 0;
    if (!write) return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_report needs a write function");
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_report"));
    rondo__buffer_init(&text, &tree->allocator, 1, REPORT_MAX);
    report r = {.tree = tree, .text = &text};
    rondo_status status = report_make(&r, json);
    rondo__tree_unlock(tree);
    if (!status) refused = write(user, rondo__text(&text), text.count);
    rondo__buffer_deinit(&text);
    if (status || !refused) return status;
    return RONDO__FAIL(IO, TREE, "the report was not written: its write function returned %d", (int)refused);
}
