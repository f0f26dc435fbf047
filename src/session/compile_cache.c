/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that were compiled before, under the hash of all that they depend on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rondo/cache.h>
#include <rondo/file.h>
#include <rondo/ir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/artifact.h"
#include "artifact/hash.h"
#include "base/instance.h"
#include "base/sized.h"
#include "session/session.h"

#define CACHE_BYTES_DEFAULT (UINT64_C(1) << 30)
#define CACHE_ENDING ".rondo"
#define CACHE_DIGITS 32u
#define CACHE_ENTRIES_MAX (1u << 20)

/* ------------------------------------------------------------------------------------------------------- the key */

/* Two sums of 64 bits over the same bytes, which begin differently. */
typedef struct cache_key {
    rondo__hash sums[2];
} cache_key;

static void cache_add(cache_key *key, const void *data, size_t bytes) {
    rondo__hash_add(&key->sums[0], data, bytes);
    rondo__hash_add(&key->sums[1], data, bytes);
}

static void cache_add_number(cache_key *key, uint64_t number) { cache_add(key, &number, sizeof number); }

/* With its length, so that two texts cannot be taken for two others. */
static void cache_add_text(cache_key *key, const char *text) {
    size_t length = text ? strlen(text) : 0;
    cache_add_number(key, text ? length : UINT64_MAX);
    cache_add(key, text, length);
}

static int32_t cache_add_piece(void *user, const char *data, size_t size) {
    cache_add(user, data, size);
    return 0;
}

static void cache_add_target(cache_key *key, const rondo__kernel_set *kernels) {
    cache_add_number(key, kernels->count);
    for (uint32_t i = 0; i < kernels->count; i++) {
        const rondo_catalogue_table *table = kernels->catalogues[i].table;
        cache_add_text(key, table->name);
        cache_add_text(key, table->kernel_set);
    }
}

/* Values that the compiler ignores whatever they are: docs/compile.md. */
static bool cache_value_is_ignored(const rondo_tensor_view *view, uint64_t bytes) {
    switch (view->dtype) {
    case RONDO_DTYPE_F32:
    case RONDO_DTYPE_F64:
    case RONDO_DTYPE_F16:
    case RONDO_DTYPE_BF16: return true;
    default: return bytes > RONDO__SESSION_VALUE_MAX;
    }
}

static const char *cache_add_value(cache_key *key, const rondo_value_binding *value) {
    uint64_t elements = 1, bytes = 0;
    const rondo_tensor_view *view = value->value;
    if (!value->input || !view || view->rank < 0 || view->rank > RONDO_RANK_MAX) return "a value is not one";
    for (int32_t i = 0; i < view->rank; i++) {
        if (view->shape[i] < 0 || __builtin_mul_overflow(elements, (uint64_t)view->shape[i], &elements))
            return "a value is not one";
    }
    rondo_status status = rondo_dtype_bytes(view->dtype, elements, &bytes);
    rondo_status_release(status);
    if (status) return "a value is not one";
    if (cache_value_is_ignored(view, bytes)) return NULL;
    if (!rondo__session_is_compact(view)) return "a value has strides";
    if (bytes && !view->data) return "a value is not one";
    cache_add_text(key, value->input);
    cache_add_number(key, (uint64_t)view->dtype);
    cache_add_number(key, (uint64_t)view->rank);
    for (int32_t i = 0; i < view->rank; i++) cache_add_number(key, (uint64_t)view->shape[i]);
    if (bytes) cache_add(key, (const uint8_t *)view->data + view->byte_offset, (size_t)bytes);
    return NULL;
}

/* Null, or why there is no key. */
static const char *cache_add_options(cache_key *key, const rondo_compile_options *options) {
    const char *why = NULL;
    if (options->after_pass) return "somebody watches the passes";
    cache_add_number(key, options->flags);
    cache_add_number(key, (uint64_t)options->level);
    cache_add_number(key, options->lanes);
    cache_add_number(key, options->fold_bytes_max);
    cache_add_text(key, options->catalogues);
    cache_add_text(key, options->passes);
    cache_add_text(key, options->without);
    cache_add_number(key, options->dim_count);
    for (uint32_t i = 0; i < options->dim_count; i++) {
        const rondo_dim_binding *dim = &options->dims[i];
        cache_add_text(key, dim->input);
        cache_add_text(key, dim->symbol);
        cache_add_number(key, (uint64_t)dim->size);
        cache_add_number(key, (uint64_t)dim->axis);
    }
    for (uint32_t i = 0; i < options->value_count && !why; i++) why = cache_add_value(key, &options->values[i]);
    return why;
}

/* OUT_OF_MEMORY is the only failure; out_why says why there is no key, or null. */
static rondo_status cache_make_key(const rondo_ir_graph *graph, const rondo_compile_options *options,
                                   const rondo__targets *targets, uint64_t out_key[2], const char **out_why) {
    cache_key key;
    rondo__hash_init(&key.sums[0]);
    rondo__hash_init(&key.sums[1]);
    rondo__hash_add(&key.sums[1], "again", 5);
    cache_add_text(&key, RONDO_VERSION_STRING);
    cache_add_number(&key, RONDO__ARTIFACT_MAJOR);
    cache_add_number(&key, RONDO__ARTIFACT_MINOR);
    for (uint32_t i = 0; i < targets->count; i++) cache_add_target(&key, &targets->at[i].kernels);
    *out_why = cache_add_options(&key, options);
    if (*out_why) return RONDO_OK;
    rondo_status status = rondo_ir_graph_save(graph, RONDO_IR_FILE_BINARY, cache_add_piece, &key);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    if (status) {
        *out_why = "the graph has no form in a file";
        rondo_status_release(status);
        return RONDO_OK;
    }
    out_key[0] = rondo__hash_value(&key.sums[0]);
    out_key[1] = rondo__hash_value(&key.sums[1]);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ the folder */

typedef struct cache_entry {
    char name[CACHE_DIGITS + sizeof CACHE_ENDING];
    struct timespec used;
    uint64_t bytes;
} cache_entry;

static bool cache_is_entry(const char *name) {
    return strspn(name, "0123456789abcdef") == CACHE_DIGITS && strcmp(name + CACHE_DIGITS, CACHE_ENDING) == 0;
}

static int cache_compare(const void *a, const void *b) {
    const cache_entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static rondo_status cache_list(DIR *folder, rondo__buffer *entries, uint64_t *out_bytes) {
    const struct dirent *at;
    while ((at = readdir(folder)) != NULL) { /* a stream of our own: no other thread reads it */
        struct stat facts;
        cache_entry entry;
        if (!cache_is_entry(at->d_name) || fstatat(dirfd(folder), at->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(facts.st_mode))
            continue;
        memcpy(entry.name, at->d_name, sizeof entry.name);
        entry.used = facts.st_mtim;
        entry.bytes = facts.st_size > 0 ? (uint64_t)facts.st_size : 0;
        *out_bytes += entry.bytes;
        RONDO__TRY(rondo__buffer_append(entries, &entry, 1));
    }
    return RONDO_OK;
}

/* Those that were used longest ago go until the rest is within the limit. What another process does meanwhile is no
 * failure: a file that has gone is gone, and one that is mapped stays readable. */
static rondo_status cache_trim(const rondo_allocator *allocator, const char *path, uint64_t bytes_max) {
    rondo__buffer entries;
    uint64_t bytes = 0;
    DIR *folder = opendir(path);
    if (!folder) return RONDO_OK;
    rondo__buffer_init(&entries, allocator, sizeof(cache_entry), CACHE_ENTRIES_MAX);
    rondo_status status = cache_list(folder, &entries, &bytes);
    if (!status && bytes > bytes_max) {
        qsort(entries.data, entries.count, sizeof(cache_entry), cache_compare);
        for (size_t i = 0; i < entries.count && bytes > bytes_max; i++) {
            const cache_entry *entry = RONDO__BUFFER_AT(&entries, cache_entry, i);
            if (unlinkat(dirfd(folder), entry->name, 0) == 0 || errno == ENOENT) bytes -= entry->bytes;
        }
    }
    rondo__buffer_deinit(&entries);
    (void)closedir(folder);
    return status;
}

/* --------------------------------------------------------------------------------------------------------- compile */

typedef struct cache_call {
    rondo_instance *instance;
    const rondo_allocator *allocator;
    const char *folder;
    char *path; /* of the entry */
    uint64_t bytes_max;
    rondo_cache_report report;
} cache_call;

static void cache_because(cache_call *call, rondo_cache_outcome outcome, const char *why) {
    call->report.outcome = outcome;
    (void)snprintf(call->report.reason, sizeof call->report.reason, "%s", why);
}

/* Takes the entry if it is one. OUT_OF_MEMORY is the only failure. */
static rondo_status cache_take(cache_call *call, rondo_plan **out_plan) {
    rondo_plan *plan = NULL;
    call->report.outcome = RONDO_CACHE_MISS;
    rondo_status status = rondo__artifact_open(call->allocator, call->path, &plan);
    rondo_code code = rondo_status_code(status);
    if (code == RONDO_CODE_OUT_OF_MEMORY) return status;
    if (status) {
        if (code != RONDO_CODE_NOT_FOUND) cache_because(call, RONDO_CACHE_REMADE, rondo_status_message(status));
        rondo_status_release(status);
        return RONDO_OK;
    }
    if (memcmp(plan->file->key, call->report.key, sizeof call->report.key) != 0) {
        cache_because(call, RONDO_CACHE_REMADE, "the entry is another's, under a wrong name");
        rondo_plan_release(plan);
        return RONDO_OK;
    }
    (void)utimensat(AT_FDCWD, call->path, NULL, 0); /* used now */
    call->report.outcome = RONDO_CACHE_HIT;
    *out_plan = plan;
    return RONDO_OK;
}

static bool cache_holds_registered(const rondo_plan *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (strcmp(plan->steps[i].catalogue, RONDO__KERNEL_REGISTERED) == 0) return true;
    }
    return false;
}

/* OUT_OF_MEMORY is the only failure: the plan is there, whatever becomes of the entry. */
static rondo_status cache_put(cache_call *call, const rondo_plan *plan) {
    if (cache_holds_registered(plan)) {
        cache_because(call, RONDO_CACHE_NOT_STORED, "operators of the program's own belong to the program");
        return RONDO_OK;
    }
    (void)mkdir(call->folder, 0777); /* where it cannot be made, the write says why */
    rondo_status status = rondo__plan_write_keyed(call->instance, plan, call->report.key, call->path);
    if (!status) return cache_trim(call->allocator, call->folder, call->bytes_max);
    if (rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY) return status;
    cache_because(call, RONDO_CACHE_NOT_STORED, rondo_status_message(status));
    rondo_status_release(status);
    return RONDO_OK;
}

static rondo_status cache_compile(cache_call *call, const rondo_ir_graph *graph, const rondo_compile_options *options,
                                  rondo_plan **out_plan) {
    rondo_compile_options known;
    rondo__session_targets targets;
    RONDO__TRY(rondo__compile_target(call->instance, options, &known, &targets));
    const char *why = NULL;
    RONDO__TRY(cache_make_key(graph, &known, &targets.targets, call->report.key, &why));
    if (why) {
        cache_because(call, RONDO_CACHE_NOT_STORED, why);
        return rondo_compile(call->instance, graph, options, NULL, out_plan);
    }
    size_t size = strlen(call->folder) + CACHE_DIGITS + sizeof "/" CACHE_ENDING;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate(call->allocator, size, &memory));
    call->path = memory;
    (void)snprintf(call->path, size, "%s/%016llx%016llx" CACHE_ENDING, call->folder,
                   (unsigned long long)call->report.key[0], (unsigned long long)call->report.key[1]);
    rondo_plan *plan = NULL;
    rondo_status status = cache_take(call, &plan);
    if (!status && !plan) {
        status = rondo_compile(call->instance, graph, options, NULL, &plan);
        if (!status) status = cache_put(call, plan);
    }
    rondo__free(call->allocator, call->path, size);
    if (status) rondo_plan_release(plan);
    else *out_plan = plan;
    return status;
}

rondo_status rondo_compile_cached(rondo_instance *instance, const rondo_ir_graph *graph,
                                  const rondo_compile_options *options, const char *folder,
                                  const rondo_cache_options *cache, rondo_plan **out_plan,
                                  rondo_cache_report *out_report) {
    rondo_cache_options limits = RONDO_CACHE_OPTIONS_INIT;
    cache_call call = {.instance = instance, .folder = folder, .report = RONDO_CACHE_REPORT_INIT};
    if (!instance || !graph || !folder || !*folder || !out_plan) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE,
                           "rondo_compile_cached: instance, graph, folder or out_plan is null or empty");
    }
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_NONE, "rondo_cache_options", cache, &limits, sizeof limits));
    if (out_report) RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_cache_report", out_report));
    call.allocator = &rondo__instance_base_of(instance)->allocator;
    call.bytes_max = limits.bytes_max ? limits.bytes_max : CACHE_BYTES_DEFAULT;
    RONDO__TRY(cache_compile(&call, graph, options, out_plan));
    if (out_report) rondo__sized_write(&call.report, sizeof call.report, out_report);
    return RONDO_OK;
}
