/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets of a size that the model leaves open. A run of a size between two of them is filled up to the larger one and cut
 * back afterwards. The rows that fill are copies of the last one, so that nothing can fail for them that does not fail for
 * it. That it may be done is proved once for a size, with the values that decide anything (src/compile/rows.c). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"
#include "compile/rows.h"
#include "session/session.h"

#define BUCKETS_MAX 1024u
#define BUCKET_PROOFS_MAX 64u

/* `rows` rows may be run as those of a bucket: for inputs that fit the one plan, filled up to fit the other. */
typedef struct bucket_proof {
    rondo_plan *few, *many; /* for their sizes and guards alone */
    int32_t *axes;          /* an entry an output */
    uint64_t used;
} bucket_proof;

struct rondo__buckets {
    char *name;
    int32_t *axes; /* an entry an input: where the size is, or RONDO__ROWS_NONE */
    uint32_t input_count;
    rondo__buffer all;    /* rondo_bucket_info, ascending */
    rondo__buffer proofs; /* bucket_proof */
    uint64_t clock;
};

/* -------------------------------------------------------------------------------------------------------- life */

static void bucket_proof_drop(const rondo_session *session, bucket_proof *proof) {
    size_t outputs = proof->few ? proof->few->output_count : 0;
    rondo__free(&session->allocator, proof->axes, outputs * sizeof *proof->axes);
    rondo_plan_release(proof->few);
    rondo_plan_release(proof->many);
    *proof = (bucket_proof){0};
}

void rondo__buckets_destroy(rondo_session *session, rondo__buckets *buckets) {
    if (!buckets) return;
    for (size_t i = 0; i < buckets->proofs.count; i++)
        bucket_proof_drop(session, RONDO__BUFFER_AT(&buckets->proofs, bucket_proof, i));
    rondo__buffer_deinit(&buckets->proofs);
    rondo__buffer_deinit(&buckets->all);
    rondo__free(&session->allocator, buckets->axes, buckets->input_count * sizeof *buckets->axes);
    rondo__string_free(&session->allocator, buckets->name);
    rondo__free(&session->allocator, buckets, sizeof *buckets);
}

static bool bucket_is(const char *name, size_t length, const char *text) {
    return strlen(text) == length && memcmp(name, text, length) == 0;
}

/* "INPUT.AXIS" */
static bool bucket_names_axis(const char *name, size_t length, const char *input, int32_t axis) {
    size_t before = strlen(input);
    char text[16];
    int digits = snprintf(text, sizeof text, ".%d", (int)axis);
    return digits > 0 && length > before && memcmp(name, input, before) == 0 &&
           bucket_is(name + before, length - before, text);
}

/* Whether one of the names, between commas, means the axis. */
static bool bucket_means(const char *names, const char *symbol, const char *input, int32_t axis) {
    while (*names) {
        size_t length = strcspn(names, ",");
        if ((symbol && bucket_is(names, length, symbol)) || bucket_names_axis(names, length, input, axis)) return true;
        names += length + (names[length] == ',');
    }
    return false;
}

static rondo_status bucket_find_axes(const rondo__session_graph *graph, rondo__buckets *buckets) {
    bool any = false;
    for (uint32_t i = 0; i < buckets->input_count; i++) {
        const rondo__ir_value_data *data = rondo__ir_value_at(graph->graph, rondo__ir_input_at(graph->graph, i));
        buckets->axes[i] = RONDO__ROWS_NONE;
        for (int32_t axis = 0; axis < data->type.rank; axis++) {
            const rondo__ir_dim *dim = &data->type.dims[axis];
            if (dim->value >= 0 || !bucket_means(buckets->name, dim->symbol, data->name, axis)) continue;
            if (buckets->axes[i] != RONDO__ROWS_NONE)
                return RONDO__FAIL(UNSUPPORTED, INPUT,
                                   "input '%s' has the size '%s' on axes %d and %d: no buckets for it", data->name,
                                   buckets->name, (int)buckets->axes[i], (int)axis);
            if (rondo_dtype_bits(data->type.dtype) < 8u)
                return RONDO__FAIL(UNSUPPORTED, INPUT, "input '%s' is %s: no buckets for elements of less than a byte",
                                   data->name, rondo_dtype_name(data->type.dtype));
            buckets->axes[i] = axis;
            any = true;
        }
    }
    if (any) return RONDO_OK;
    return RONDO__FAIL(NOT_FOUND, INPUT, "no input of graph %u has an open size '%s'", (unsigned)graph->id,
                       buckets->name);
}

static rondo_status bucket_build(const rondo_session *session, const rondo__session_graph *graph, const char *name,
                                 const int64_t *sizes, uint32_t count, rondo__buckets *buckets) {
    void *memory = NULL;
    RONDO__TRY(rondo__string_copy(&session->allocator, name, &buckets->name));
    RONDO__TRY(rondo__allocate_array(&session->allocator, graph->graph->inputs.count, sizeof(int32_t), &memory));
    buckets->axes = memory;
    buckets->input_count = (uint32_t)graph->graph->inputs.count;
    RONDO__TRY(bucket_find_axes(graph, buckets));
    for (uint32_t i = 0; i < count; i++) {
        rondo_bucket_info info = RONDO_BUCKET_INFO_INIT;
        info.size = sizes[i];
        RONDO__TRY(rondo__buffer_append(&buckets->all, &info, 1));
    }
    return rondo__buffer_reserve(&buckets->proofs, BUCKET_PROOFS_MAX);
}

static rondo_status bucket_set(rondo_session *session, uint32_t id, const char *name, const int64_t *sizes,
                               uint32_t count) {
    rondo__session_graph *graph = NULL;
    rondo__buckets *buckets = NULL;
    void *memory = NULL;
    RONDO__TRY(rondo__session_find(session, id, &graph));
    if (count) {
        RONDO__TRY(rondo__allocate_zeroed(&session->allocator, sizeof *buckets, &memory));
        buckets = memory;
        rondo__buffer_init(&buckets->all, &session->allocator, sizeof(rondo_bucket_info), BUCKETS_MAX);
        rondo__buffer_init(&buckets->proofs, &session->allocator, sizeof(bucket_proof), BUCKET_PROOFS_MAX);
        rondo_status status = bucket_build(session, graph, name, sizes, count, buckets);
        if (status) {
            rondo__buckets_destroy(session, buckets);
            return status;
        }
    }
    rondo__buckets_destroy(session, graph->buckets);
    graph->buckets = buckets;
    return RONDO_OK;
}

rondo_status rondo_session_set_buckets(rondo_session *session, uint32_t id, const char *name, const int64_t *sizes,
                                       uint32_t count) {
    if (!session || (count && (!name || !sizes)))
        return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_set_buckets: session, name or sizes are null");
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] <= (i ? sizes[i - 1] : 0))
            return RONDO__FAIL(INVALID_ARGUMENT, INPUT,
                               "buckets of '%s': size %" PRId64 " at %u is not above the one before", name, sizes[i],
                               (unsigned)i);
    }
    rondo__mutex_lock(&session->mutex);
    rondo_status status = bucket_set(session, id, name, sizes, count);
    rondo__mutex_unlock(&session->mutex);
    return status;
}

rondo_status rondo_session_get_bucket(rondo_session *session, uint32_t id, uint32_t index,
                                      rondo_bucket_info *out_info) {
    rondo__session_graph *graph = NULL;
    if (!session) return RONDO__FAIL(INVALID_ARGUMENT, NONE, "rondo_session_get_bucket: session is null");
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_NONE, "rondo_bucket_info", out_info));
    rondo__mutex_lock(&session->mutex);
    rondo_status status = rondo__session_find(session, id, &graph);
    size_t count = !status && graph->buckets ? graph->buckets->all.count : 0;
    if (!status && index >= count)
        status = RONDO__FAIL(OUT_OF_RANGE, NONE, "graph %u has %zu buckets: there is none %u", (unsigned)id, count,
                             (unsigned)index);
    if (!status)
        rondo__sized_write(RONDO__BUFFER_AT(&graph->buckets->all, rondo_bucket_info, index), sizeof *out_info,
                           out_info);
    rondo__mutex_unlock(&session->mutex);
    return status;
}

/* -------------------------------------------------------------------------------------------------- filling up */

typedef struct bucket_run {
    rondo_session *session;
    rondo__session_graph *graph;
    rondo__buckets *buckets;
    const rondo_tensor_view *inputs;      /* as they came */
    const rondo__session_tensor *tensors; /* compact */
    rondo_tensor_view *filled;
    rondo__session_tensor *filled_tensors; /* `owned` where it was filled */
    int64_t (*shapes)[RONDO_RANK_MAX];
    int64_t rows, more;
} bucket_run;

/* How many pieces there are before the axis, and the bytes of one row. */
static void bucket_pieces(rondo_dtype dtype, int32_t rank, const int64_t *dims, int32_t axis, size_t *outer,
                          size_t *row) {
    *outer = 1;
    *row = rondo_dtype_bits(dtype) / 8u;
    for (int32_t d = 0; d < axis; d++) *outer *= (size_t)dims[d];
    for (int32_t d = axis + 1; d < rank; d++) *row *= (size_t)dims[d];
}

static rondo_status bucket_fill_one(bucket_run *run, uint32_t index) {
    const int32_t axis = run->buckets->axes[index];
    rondo_tensor_view *view = &run->filled[index];
    rondo__session_tensor *tensor = &run->filled_tensors[index];
    size_t outer, row, piece, whole;
    void *memory = NULL;
    *view = run->inputs[index];
    view->data = (void *)(uintptr_t)run->tensors[index].data;
    view->strides = NULL;
    view->byte_offset = 0;
    *tensor = (rondo__session_tensor){.data = run->tensors[index].data, .bytes = run->tensors[index].bytes};
    if (axis == RONDO__ROWS_NONE) return RONDO_OK;
    if (view->rank) memcpy(run->shapes[index], view->shape, (size_t)view->rank * sizeof(int64_t));
    run->shapes[index][axis] = run->more;
    view->shape = run->shapes[index];
    bucket_pieces(view->dtype, view->rank, view->shape, axis, &outer, &row);
    piece = row * (size_t)run->rows;
    if (__builtin_mul_overflow(row, (size_t)run->more, &whole) || __builtin_mul_overflow(whole, outer, &tensor->bytes))
        return RONDO__FAIL(OUT_OF_RANGE, INPUT, "input %u of the bucket is larger than any memory", (unsigned)index);
    if (!tensor->bytes) return RONDO_OK;
    RONDO__TRY(rondo__allocate(&run->session->allocator, tensor->bytes, &memory));
    tensor->owned = memory;
    tensor->data = view->data = memory;
    for (size_t o = 0; o < outer; o++) {
        char *to = (char *)memory + o * whole;
        memcpy(to, (const char *)run->tensors[index].data + o * piece, piece);
        for (size_t at = piece; at < whole; at += row) memcpy(to + at, to + piece - row, row);
    }
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- proof */

static bucket_proof *bucket_known(const bucket_run *run) {
    for (size_t i = 0; i < run->buckets->proofs.count; i++) {
        bucket_proof *proof = RONDO__BUFFER_AT(&run->buckets->proofs, bucket_proof, i);
        if (rondo__session_plan_fits(proof->few, run->inputs, run->tensors) &&
            rondo__session_plan_fits(proof->many, run->filled, run->filled_tensors))
            return proof;
    }
    return NULL;
}

static rondo_status bucket_prove_with(const bucket_run *run, bucket_proof *proof, rondo_ir_graph **few,
                                      rondo_ir_graph **many) {
    void *memory = NULL;
    rondo_session *session = run->session;
    RONDO__TRY(rondo__session_compile_plain(session, run->graph, run->inputs, run->tensors, few, &proof->few));
    RONDO__TRY_NOTE(
        rondo__session_compile_plain(session, run->graph, run->filled, run->filled_tensors, many, &proof->many),
        "for the bucket of %" PRId64, run->more);
    RONDO__TRY(rondo__allocate_array(&session->allocator, proof->few->output_count, sizeof(int32_t), &memory));
    proof->axes = memory;
    for (uint32_t i = 0; i < proof->few->output_count; i++) {
        if (rondo_dtype_bits(proof->few->outputs[i].dtype) < 8u)
            return RONDO__FAIL(UNSUPPORTED, META, "output '%s' has elements of less than a byte",
                               proof->few->outputs[i].name);
    }
    return rondo__rows_independent(&session->allocator, *few, *many, run->rows, run->more, proof->axes);
}

static rondo_status bucket_prove(const bucket_run *run, bucket_proof **out_proof) {
    rondo__buffer *all = &run->buckets->proofs;
    rondo_ir_graph *few = NULL, *many = NULL;
    bucket_proof made = {0};
    rondo_status status = bucket_prove_with(run, &made, &few, &many);
    rondo_ir_graph_release(few);
    rondo_ir_graph_release(many);
    if (status) {
        bucket_proof_drop(run->session, &made);
        return rondo__status_note(status, "%" PRId64 " of '%s' cannot run as the bucket of %" PRId64, run->rows,
                                  run->buckets->name, run->more);
    }
    bucket_proof *slot = RONDO__BUFFER_AT(all, bucket_proof, 0);
    if (all->count < BUCKET_PROOFS_MAX) {
        RONDO__IGNORE(rondo__buffer_append(all, NULL, 1)); /* room was made with the buckets */
        slot = RONDO__BUFFER_AT(all, bucket_proof, all->count - 1);
    } else {
        for (size_t i = 1; i < all->count; i++) {
            bucket_proof *other = RONDO__BUFFER_AT(all, bucket_proof, i);
            if (other->used < slot->used) slot = other;
        }
        bucket_proof_drop(run->session, slot);
    }
    *slot = made;
    *out_proof = slot;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------ cutting back */

/* The rows asked for, moved together where they are; then to the caller, where he has memory. */
static void bucket_cut(const bucket_run *run, const bucket_proof *proof, uint32_t index, const rondo_tensor_view *got,
                       rondo_tensor_view *output) {
    const rondo__plan_port *port = &proof->few->outputs[index];
    size_t outer = 1, row = 0;
    if (proof->axes[index] != RONDO__ROWS_NONE && port->bytes) {
        bucket_pieces(port->dtype, port->rank, port->dims, proof->axes[index], &outer, &row);
        for (size_t o = 1; o < outer; o++)
            memmove((char *)got->data + o * row * (size_t)run->rows, (char *)got->data + o * row * (size_t)run->more,
                    row * (size_t)run->rows);
    }
    if (output->data) {
        if (port->bytes) memcpy((char *)output->data + output->byte_offset, got->data, (size_t)port->bytes);
        return;
    }
    *output = *got;
    output->shape = port->dims;
}

static rondo_status bucket_run_filled(bucket_run *run, rondo_tensor_view *outputs) {
    rondo_session *session = run->session;
    void *memory = NULL;
    for (uint32_t i = 0; i < run->buckets->input_count; i++) RONDO__TRY(bucket_fill_one(run, i));
    bucket_proof *proof = bucket_known(run);
    if (!proof) RONDO__TRY(bucket_prove(run, &proof));
    proof->used = ++run->buckets->clock;
    uint32_t count = proof->few->output_count;
    for (uint32_t i = 0; i < count; i++) RONDO__TRY(rondo__session_check_output(&proof->few->outputs[i], &outputs[i]));
    RONDO__TRY(rondo__allocate_array(&session->allocator, count, sizeof(rondo_tensor_view), &memory));
    rondo_tensor_view *got = memory; /* zeroed: the session lends all of them */
    rondo_status status = rondo__session_run_exact(session, run->graph, run->filled, run->filled_tensors, got);
    for (uint32_t i = 0; !status && i < count; i++) bucket_cut(run, proof, i, &got[i], &outputs[i]);
    rondo__free(&session->allocator, memory, count * sizeof(rondo_tensor_view));
    return status;
}

static rondo_status bucket_run_larger(bucket_run *run, rondo_tensor_view *outputs) {
    const rondo_allocator *allocator = &run->session->allocator;
    size_t count = run->buckets->input_count;
    void *views = NULL, *tensors = NULL, *shapes = NULL;
    rondo_status status = rondo__allocate_array(allocator, count, sizeof *run->filled, &views);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof *run->filled_tensors, &tensors);
    if (!status) status = rondo__allocate_array(allocator, count, sizeof *run->shapes, &shapes);
    run->filled = views;
    run->filled_tensors = tensors;
    run->shapes = shapes;
    if (!status) status = bucket_run_filled(run, outputs);
    for (size_t i = 0; tensors && i < count; i++) rondo__session_compact_free(run->session, &run->filled_tensors[i]);
    rondo__free(allocator, shapes, count * sizeof *run->shapes);
    rondo__free(allocator, tensors, count * sizeof *run->filled_tensors);
    rondo__free(allocator, views, count * sizeof *run->filled);
    return status;
}

/* The size as the inputs have it; -1 where they do not agree, which the compiler explains. */
static int64_t bucket_rows(const rondo__buckets *buckets, const rondo_tensor_view *inputs) {
    int64_t rows = 0;
    bool first = true;
    for (uint32_t i = 0; i < buckets->input_count; i++) {
        if (buckets->axes[i] == RONDO__ROWS_NONE) continue;
        int64_t size = inputs[i].shape[buckets->axes[i]];
        if (!first && size != rows) return -1;
        rows = size;
        first = false;
    }
    return rows;
}

rondo_status rondo__buckets_run(rondo_session *session, rondo__session_graph *graph, const rondo_tensor_view *inputs,
                                const rondo__session_tensor *tensors, rondo_tensor_view *outputs) {
    bucket_run run = {
        .session = session, .graph = graph, .buckets = graph->buckets, .inputs = inputs, .tensors = tensors};
    rondo_bucket_info *bucket = NULL;
    run.rows = bucket_rows(graph->buckets, inputs);
    for (size_t i = graph->buckets->all.count; run.rows > 0 && i > 0; i--) {
        rondo_bucket_info *at = RONDO__BUFFER_AT(&graph->buckets->all, rondo_bucket_info, i - 1);
        if (at->size >= run.rows) bucket = at;
    }
    if (!bucket) {
        RONDO__TRY(rondo__session_run_exact(session, graph, inputs, tensors, outputs));
        graph->info.bucket_misses++;
        return RONDO_OK;
    }
    run.more = bucket->size;
    bool filled = run.rows < run.more;
    if (filled) RONDO__TRY(bucket_run_larger(&run, outputs));
    else RONDO__TRY(rondo__session_run_exact(session, graph, inputs, tensors, outputs));
    bucket->runs++;
    bucket->filled += filled;
    bucket->rows += (uint64_t)run.rows;
    return RONDO_OK;
}
