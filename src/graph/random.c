/* SPDX-License-Identifier: Apache-2.0
 *
 * Generators, and what captures and replays do with them. The cells of a graph lie outside its pool: a block of the pool
 * may be anybody's between two nodes. */
#include "graph/graph.h"

rondo_status rondo_generator_create(rondo_device *device, uint64_t seed, rondo_generator **out_generator) {
    void *memory;
    if (!device || !out_generator)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "a generator needs a device and a place to be put");
    RONDO__TRY(rondo__allocate_zeroed(&device->allocator, sizeof(rondo_generator), &memory));
    rondo_generator *generator = memory;
    rondo__ref_init(&generator->references);
    rondo__mutex_init(&generator->mutex);
    generator->device = device;
    generator->seed = seed;
    rondo_device_retain(device);
    *out_generator = generator;
    return RONDO_OK;
}

void rondo_generator_retain(rondo_generator *generator) {
    if (generator) rondo__ref_retain(&generator->references);
}

void rondo_generator_release(rondo_generator *generator) {
    if (!generator || !rondo__ref_release(&generator->references)) return;
    rondo_device *device = generator->device;
    rondo__mutex_deinit(&generator->mutex);
    rondo__free(&device->allocator, generator, sizeof *generator);
    rondo_device_release(device);
}

/* ---------------------------------------------------------------------------------------------- asking and setting */

/* Takes the mutex, unless a capture uses the generator. */
static rondo_status random_enter(const char *what, rondo_generator *generator) {
    if (!generator) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: the generator is null", what);
    rondo__mutex_lock(&generator->mutex);
    if (!generator->captures) return RONDO_OK;
    rondo__mutex_unlock(&generator->mutex);
    return RONDO__FAIL(
        INVALID_STATE, CAPTURE,
        "%s while a capture uses the generator: its replays decide where they start, so there is no such "
        "number now. Ask before the capture or after it",
        what);
}

static rondo_status random_get(const char *what, rondo_generator *generator, const uint64_t *number, uint64_t *out) {
    if (!out) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "%s: there is no place for the answer", what);
    RONDO__TRY(random_enter(what, generator));
    *out = *number;
    rondo__mutex_unlock(&generator->mutex);
    return RONDO_OK;
}

rondo_status rondo_generator_set_seed(rondo_generator *generator, uint64_t seed) {
    RONDO__TRY(random_enter("rondo_generator_set_seed", generator));
    generator->seed = seed;
    generator->offset = 0;
    rondo__mutex_unlock(&generator->mutex);
    return RONDO_OK;
}

rondo_status rondo_generator_get_seed(rondo_generator *generator, uint64_t *out_seed) {
    return random_get("rondo_generator_get_seed", generator, generator ? &generator->seed : NULL, out_seed);
}

rondo_status rondo_generator_set_offset(rondo_generator *generator, uint64_t offset) {
    if (offset % 4u)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "offset %llu is no multiple of 4", (unsigned long long)offset);
    RONDO__TRY(random_enter("rondo_generator_set_offset", generator));
    generator->offset = offset;
    rondo__mutex_unlock(&generator->mutex);
    return RONDO_OK;
}

rondo_status rondo_generator_get_offset(rondo_generator *generator, uint64_t *out_offset) {
    return random_get("rondo_generator_get_offset", generator, generator ? &generator->offset : NULL, out_offset);
}

/* ------------------------------------------------------------------------------------------- captures and replays */

rondo_status rondo__graph_use_generator(rondo_graph *graph, rondo_generator *generator, rondo__rng_use **out_use) {
    rondo__rng_use fresh = {.generator = generator, .capturing = true};
    for (size_t i = 0; i < graph->generators.count; i++) {
        *out_use = RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, i);
        if ((*out_use)->generator == generator) return RONDO_OK;
    }
    RONDO__TRY(rondo__buffer_reserve(&graph->generators, graph->generators.count + 1u));
    RONDO__TRY_NOTE(rondo__memory_allocate(graph->device->memory, RONDO__RNG_CELLS_BYTES, &fresh.cells),
                    "for the seed and offset of a generator in graph '%s'", graph->name);
    *out_use = RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, graph->generators.count);
    **out_use = fresh;
    graph->generators.count++;
    rondo_generator_retain(generator);
    rondo__mutex_lock(&generator->mutex);
    generator->captures++;
    rondo__mutex_unlock(&generator->mutex);
    return RONDO_OK;
}

void rondo__graph_close_generators(rondo_graph *graph) {
    for (size_t i = 0; i < graph->generators.count; i++) {
        rondo__rng_use *use = RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, i);
        if (!use->capturing) continue;
        use->capturing = false;
        rondo__mutex_lock(&use->generator->mutex);
        use->generator->captures--;
        rondo__mutex_unlock(&use->generator->mutex);
    }
}

void rondo__graph_free_generators(rondo_graph *graph) {
    for (size_t i = 0; i < graph->generators.count; i++) {
        rondo__rng_use *use = RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, i);
        RONDO__IGNORE(rondo__memory_free(graph->device->memory, use->cells));
        rondo_generator_release(use->generator);
    }
    graph->generators.count = 0;
}

static rondo_status random_write_cells(rondo_graph *graph, rondo_stream *stream, const rondo__rng_use *use) {
    const uint64_t cells[2] = {use->seed, use->offset};
    if (rondo__device_is_inline(graph->device) &&
        (graph->device->properties.capabilities & RONDO_DEVICE_HOST_ADDRESSABLE)) {
        __builtin_memcpy((void *)(uintptr_t)use->cells, cells, sizeof cells);
        return RONDO_OK;
    }
    RONDO__TRY_NOTE(
        rondo__stream_copy(stream, use->cells, (uint64_t)(uintptr_t)cells, sizeof cells, RONDO_COPY_HOST_TO_DEVICE),
        "while writing the seed of a generator of graph '%s'", graph->name);
    return RONDO_OK;
}

rondo_status rondo__graph_write_cells(rondo_graph *graph, rondo_stream *stream) {
    for (size_t i = 0; i < graph->generators.count; i++) {
        rondo__rng_use *use = RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, i);
        rondo_generator *generator = use->generator;
        rondo__mutex_lock(&generator->mutex);
        use->seed = generator->seed;
        use->offset = generator->offset;
        generator->offset += use->total;
        rondo__mutex_unlock(&generator->mutex);
    }
    for (size_t i = 0; i < graph->generators.count; i++)
        RONDO__TRY(random_write_cells(graph, stream, RONDO__BUFFER_AT(&graph->generators, rondo__rng_use, i)));
    return RONDO_OK;
}

void rondo__graph_give_numbers_back(rondo_graph *graph) {
    for (size_t i = 0; i < graph->generators.count; i++) {
        const rondo__rng_use *use = RONDO__BUFFER_AT(&graph->generators, const rondo__rng_use, i);
        rondo_generator *generator = use->generator;
        rondo__mutex_lock(&generator->mutex);
        if (generator->seed == use->seed && generator->offset == use->offset + use->total)
            generator->offset = use->offset;
        rondo__mutex_unlock(&generator->mutex);
    }
}

/* ----------------------------------------------------------------------------------------------------------- fill */

typedef struct random_request {
    rondo_distribution distribution;
    uint64_t out, count, taken;
    float a, b;
} random_request;

static rondo_status random_record(rondo_graph *graph, rondo_stream *stream, rondo_generator *generator,
                                  const random_request *r) {
    rondo_argument arguments[RONDO__RNG_WORDS];
    rondo__rng_use *use;
    rondo_call call;
    RONDO__TRY(rondo__graph_use_generator(graph, generator, &use));
    rondo__rng_call(r->distribution, true, r->out, r->count, use->cells, use->total, r->a, r->b, arguments, &call);
    RONDO__TRY(graph->direct ? rondo__stream_launch(stream, &call) : rondo__call_list_append_call(graph->list, &call));
    use->total += r->taken;
    return RONDO_OK;
}

/* The numbers are taken first, so that two threads never get the same; given back when nothing was enqueued and nobody
 * took others since. */
static rondo_status random_run(rondo_stream *stream, rondo_generator *generator, const random_request *r) {
    rondo_argument arguments[RONDO__RNG_WORDS];
    rondo_call call;
    const uint64_t bytes = r->count * rondo__rng_element(r->distribution);
    RONDO__TRY_NOTE(rondo__memory_check_ranges(stream->device->memory, r->out, 0, bytes),
                    "rondo_random_fill: nothing was enqueued");
    if (rondo__device_has_flights(stream->device)) RONDO__TRY(rondo__stream_await_flights(stream, r->out, bytes));
    rondo__mutex_lock(&generator->mutex);
    uint64_t seed = generator->seed, offset = generator->offset;
    generator->offset += r->taken;
    rondo__mutex_unlock(&generator->mutex);
    rondo__rng_call(r->distribution, false, r->out, r->count, seed, offset, r->a, r->b, arguments, &call);
    rondo_status status = rondo__stream_launch(stream, &call);
    if (!status) return RONDO_OK;
    rondo__mutex_lock(&generator->mutex);
    if (generator->seed == seed && generator->offset == offset + r->taken) generator->offset = offset;
    rondo__mutex_unlock(&generator->mutex);
    return status;
}

static rondo_status random_check(const rondo_stream *stream, const rondo_generator *generator, random_request *r) {
    if (!generator) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_random_fill needs a generator");
    if (stream->device != generator->device)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "the generator is of device '%s:%d', the stream of '%s:%d'",
                           generator->device->properties.name, (int)generator->device->properties.index,
                           stream->device->properties.name, (int)stream->device->properties.index);
    RONDO__TRY(rondo__rng_check(r->distribution, r->a, r->b));
    RONDO__TRY(rondo__rng_taken(r->distribution, r->count, &r->taken));
    if (r->count && !r->out)
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_random_fill: %llu elements to nowhere",
                           (unsigned long long)r->count);
    if (!(stream->device->properties.capabilities & RONDO_DEVICE_HOST_KERNELS))
        return RONDO__FAIL(UNSUPPORTED, KERNEL,
                           "rondo_random_fill on device '%s:%d': random numbers are made by kernels of the host, and "
                           "its kernels are none",
                           stream->device->properties.name, (int)stream->device->properties.index);
    return RONDO_OK;
}

rondo_status rondo_random_fill(rondo_stream *stream, rondo_generator *generator, rondo_distribution distribution,
                               void *out, uint64_t count, float a, float b) {
    random_request r = {distribution, (uint64_t)(uintptr_t)out, count, 0, a, b};
    uint32_t lane;
    if (!stream) return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "rondo_random_fill needs a stream");
    RONDO__TRY(rondo__stream_refuse(stream, random_check(stream, generator, &r)));
    if (!count) return RONDO_OK;
    rondo__recorder *recorder = rondo__stream_recorder(stream);
    if (!recorder) return random_run(stream, generator, &r);
    rondo_graph *graph = rondo__graph_of(stream);
    if (!graph) return recorder->table->refuse(recorder, stream, "rondo_random_fill");
    RONDO__TRY(rondo__graph_enter(graph, stream, &lane));
    return rondo__graph_leave(graph, random_record(graph, stream, generator, &r));
}
