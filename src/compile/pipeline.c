/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of passes, and which of them run: by level, by a list, without some. */
#include <string.h>

#include "base/sized.h"
#include "compile/pass.h"

#define PIPELINE_PASSES_MAX 1024u

static const rondo__compile_pass_row pipeline_rows[] = {
    {"specialise", "Binds open sizes to numbers, in a graph of its own that shares the model's constants.",
     rondo__compile_specialise, RONDO_COMPILE_O0, false},
    {"resolve", "Infers every shape, works out what is constant, and puts the branch taken in the place of each If.",
     rondo__compile_resolve, RONDO_COMPILE_O0, false},
    {"dead", "Drops what no output needs; the graph's inputs stay.", rondo__compile_dead, RONDO_COMPILE_O1, true},
    {"fold", "Works out what is made of constants alone, with the reference kernels.", rondo__compile_fold,
     RONDO_COMPILE_O1, true},
    {"simplify",
     "Drops nodes that give what they take: Identity, a Cast to the same type, a Reshape to the same shape.",
     rondo__compile_simplify, RONDO_COMPILE_O1, true},
    {"algebra", "Applies rules of arithmetic that hold for every value: x * 1, x - 0, double negation, and the like.",
     rondo__compile_algebra, RONDO_COMPILE_O2, true},
    {"casts", "Passes by a Cast to a type that holds every value of the one before.", rondo__compile_casts,
     RONDO_COMPILE_O2, true},
    {"transposes", "Makes two Transposes one, or none, also across nodes that work element by element.",
     rondo__compile_transposes, RONDO_COMPILE_O2, true},
    {"reshapes", "Makes a row of nodes that only change the shape one Reshape, or none.", rondo__compile_reshapes,
     RONDO_COMPILE_O2, true},
    {"patterns",
     "Makes HardSwish and GELU that are written out one node, and a BatchNormalization part of the Conv before it.",
     rondo__compile_patterns, RONDO_COMPILE_O2, true},
    {"duplicates", "Makes nodes that do the same to the same values one, and equal constants, too.",
     rondo__compile_duplicates, RONDO_COMPILE_O1, true},
    {"fuse-bias", "Makes a constant that is added to Gemm, MatMul or Conv its bias.", rondo__compile_fuse_bias,
     RONDO_COMPILE_O2, false},
    {"fuse-activation",
     "Puts an activation (Relu, Clip, HardSwish, and so on) into the Conv, Gemm, MatMul or Add before it.",
     rondo__compile_fuse_activation, RONDO_COMPILE_O2, false},
    {"compact", "Leaves behind what the passes before dropped; the compiled graph is what it gives.",
     rondo__compile_compact, RONDO_COMPILE_O0, false},
    {"emit", "Places values, picks kernels, plans memory, and writes the plan.", rondo__compile_emit, RONDO_COMPILE_O0,
     false},
};
#define PIPELINE_ROWS (sizeof pipeline_rows / sizeof *pipeline_rows)

const rondo__compile_pass_row *rondo__compile_pass_at(uint32_t index) {
    return index < PIPELINE_ROWS ? &pipeline_rows[index] : NULL;
}

rondo_status rondo_compile_pass(uint32_t index, rondo_pass_info *out_info) {
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_pass_info", out_info));
    const rondo__compile_pass_row *row = rondo__compile_pass_at(index);
    if (!row) {
        return RONDO__FAIL(NOT_FOUND, NONE, "there are %zu passes, numbered from 0: %u is none", PIPELINE_ROWS, index);
    }
    rondo_pass_info info = RONDO_PASS_INFO_INIT;
    info.level = row->level;
    info.name = row->name;
    info.summary = row->summary;
    info.required = row->level == RONDO_COMPILE_O0;
    rondo__sized_write(&info, sizeof info, out_info);
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ lists of names */

/* The next name of a list; its length, and `*text` behind it. Blanks around names do not count. */
static size_t pipeline_next(const char **text, const char **out_name) {
    const char *at = *text;
    while (*at == ' ' || *at == ',') at++;
    size_t length = strcspn(at, ", ");
    *out_name = at;
    *text = at + length;
    return length;
}

static const rondo__compile_pass_row *pipeline_find(const char *name, size_t length) {
    for (size_t i = 0; i < PIPELINE_ROWS; i++) {
        if (strlen(pipeline_rows[i].name) == length && memcmp(pipeline_rows[i].name, name, length) == 0) {
            return &pipeline_rows[i];
        }
    }
    return NULL;
}

/* An optional pass of that name, or why there is none. */
static rondo_status pipeline_optional(const char *what, const char *name, size_t length,
                                      const rondo__compile_pass_row **out_row) {
    char all[512] = "";
    *out_row = pipeline_find(name, length);
    if (*out_row && (*out_row)->level > RONDO_COMPILE_O0) return RONDO_OK;
    if (*out_row) {
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "pass '%s' must run, at its place: it cannot be %s",
                           (*out_row)->name, what);
    }
    for (size_t i = 0, at = 0; i < PIPELINE_ROWS; i++) {
        size_t size = strlen(pipeline_rows[i].name);
        if (pipeline_rows[i].level == RONDO_COMPILE_O0 || at + size + 3u > sizeof all) continue;
        if (at > 0) all[at++] = ',', all[at++] = ' ';
        memcpy(all + at, pipeline_rows[i].name, size + 1u);
        at += size;
    }
    return RONDO__FAIL(INVALID_ARGUMENT, NONE, "there is no pass '%.*s'; there are %s",
                       (int)(length > 80 ? 80 : length), name, all);
}

static bool pipeline_lists(const char *list, const rondo__compile_pass_row *row) {
    const char *name = NULL;
    for (size_t length; list && (length = pipeline_next(&list, &name)) > 0;) {
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0) return true;
    }
    return false;
}

static bool pipeline_leaves_out(const rondo_compile_options *options, const rondo__compile_pass_row *row) {
    bool fuses = row->run == rondo__compile_fuse_bias || row->run == rondo__compile_fuse_activation;
    if (fuses && options->flags & RONDO_COMPILE_NO_FUSION) return true;
    if (row->run == rondo__compile_fold && options->flags & RONDO_COMPILE_NO_FOLDING) return true;
    return pipeline_lists(options->without, row);
}

static rondo_status pipeline_append(rondo__compile_pipeline *pipeline, const rondo_compile_options *options,
                                    const rondo__compile_pass_row *row) {
    if (row->level > RONDO_COMPILE_O0 && pipeline_leaves_out(options, row)) return RONDO_OK;
    if (row->run == rondo__compile_fold) pipeline->folds = true;
    return rondo__buffer_append(&pipeline->passes, &row, 1);
}

/* The caller's list, between what must come before it and what must come after. */
static rondo_status pipeline_listed(rondo__compile_pipeline *pipeline, const rondo_compile_options *options) {
    const char *text = options->passes, *name = NULL;
    for (size_t length; (length = pipeline_next(&text, &name)) > 0;) {
        const rondo__compile_pass_row *row = NULL;
        RONDO__TRY(pipeline_optional("listed", name, length, &row));
        RONDO__TRY(pipeline_append(pipeline, options, row));
    }
    return RONDO_OK;
}

static rondo_status pipeline_fill(rondo__compile_pipeline *pipeline, const rondo_compile_options *options) {
    const rondo__compile_pass_row *last = NULL;
    int32_t level = options->level == RONDO_COMPILE_LEVEL_DEFAULT ? RONDO_COMPILE_O2 : options->level;
    const char *text = options->without, *name = NULL;
    for (size_t length; text && (length = pipeline_next(&text, &name)) > 0;) {
        RONDO__TRY(pipeline_optional("left out", name, length, &last));
    }
    for (size_t i = 0; i < PIPELINE_ROWS; i++) {
        const rondo__compile_pass_row *row = &pipeline_rows[i];
        if (row->run == rondo__compile_compact && options->passes) RONDO__TRY(pipeline_listed(pipeline, options));
        /* What came after leaves behind what it made needless. */
        if (row->run == rondo__compile_compact && !options->passes && level >= RONDO_COMPILE_O1) {
            RONDO__TRY(pipeline_append(pipeline, options, pipeline_find("dead", 4)));
        }
        if (row->level > RONDO_COMPILE_O0 && (options->passes || row->level > level)) continue;
        if (row->cleans && pipeline->repeat_to == 0) pipeline->repeat_from = pipeline->passes.count;
        RONDO__TRY(pipeline_append(pipeline, options, row));
        if (row->cleans) pipeline->repeat_to = pipeline->passes.count;
    }
    return RONDO_OK;
}

rondo_status rondo__compile_pipeline_make(const rondo_allocator *allocator, const rondo_compile_options *options,
                                          rondo__compile_pipeline *out_pipeline) {
    *out_pipeline = (rondo__compile_pipeline){.folds = false};
    rondo__buffer_init(&out_pipeline->passes, allocator, sizeof(const rondo__compile_pass_row *), PIPELINE_PASSES_MAX);
    return pipeline_fill(out_pipeline, options);
}

void rondo__compile_pipeline_deinit(rondo__compile_pipeline *pipeline) { rondo__buffer_deinit(&pipeline->passes); }
