/* SPDX-License-Identifier: Apache-2.0
 *
 * A freed block that work of other streams uses waits for them: for an event in each, and in a stream that captures
 * until the capture is over, for what it records uses the block at each replay of the future and no event tells when.
 * Only the streams that capture hold anything up.
 *
 * The backend is asked without the mutex, because an answer may run host functions, which may allocate. One thread asks
 * at a time; who comes meanwhile goes without. */
#include "memory/block.h"

/* The stream of that number, with a reference where it needs one; null when it is gone or going: it has finished. */
static rondo_stream *wait_stream(rondo_device *device, uint64_t id) {
    rondo__mutex_lock(&device->mutex);
    rondo_stream *stream = device->streams;
    while (stream && stream->id != id) stream = stream->next;
    if (stream && stream != device->default_stream) {
        uint_least32_t count = atomic_load_explicit(&stream->references, memory_order_relaxed);
        while (count && !atomic_compare_exchange_weak_explicit(&stream->references, &count, count + 1u,
                                                               memory_order_relaxed, memory_order_relaxed)) {}
        if (!count) stream = NULL;
    }
    rondo__mutex_unlock(&device->mutex);
    return stream;
}

static void wait_release(rondo_device *device, rondo_stream *stream) {
    if (stream != device->default_stream) rondo_stream_release(stream);
}

bool rondo__cache_captures(rondo_device *device, uint64_t stream) {
    bool captures = false;
    rondo__mutex_lock(&device->mutex);
    for (const rondo_stream *each = device->streams; each && !captures; each = each->next) {
        if (stream == RONDO__NO_STREAM || each->id == stream) captures = rondo__stream_recorder(each) != NULL;
    }
    rondo__mutex_unlock(&device->mutex);
    return captures;
}

static rondo__queue *wait_queue(rondo__cache *cache, uint64_t stream) {
    for (size_t i = 0; i < cache->queues.count; i++) {
        rondo__queue *queue = RONDO__BUFFER_AT(&cache->queues, rondo__queue, i);
        if (queue->stream == stream) return queue;
    }
    return NULL;
}

void rondo__cache_await_uses(rondo__cache *cache, rondo__block *block) {
    while (block->uses) {
        rondo__use *use = block->uses;
        rondo__queue *queue = wait_queue(cache, use->stream);
        block->uses = use->next;
        use->next = NULL;
        if (queue->last) queue->last->next = use;
        else queue->first = use;
        queue->last = use;
        block->waits++;
        cache->waiting++;
    }
}

/* Everything up to `last` is over. */
static void wait_finish(rondo__cache *cache, rondo__queue *queue, const rondo__use *last) {
    for (bool more = true; more;) {
        rondo__use *use = queue->first;
        more = use != last;
        queue->first = use->next;
        if (!queue->first) queue->last = NULL;
        if (queue->marked == use) queue->marked = NULL;
        queue->uses--;
        cache->waiting--;
        use->block->waits--;
        if (!rondo__block_is_used(use->block)) rondo__block_free(cache, use->block, false);
        rondo__free(&cache->memory->allocator, use, sizeof *use);
    }
    queue->front = queue->first;
    while (queue->front && !queue->front->event) queue->front = queue->front->next;
}

/* An event, used before or new. Only who asks looks at the list. */
static rondo_status wait_event(rondo__cache *cache, void **out_event) {
    const rondo_device *device = cache->memory->device;
    if (!cache->events.count) return device->table->stream->event_create(device->handle, out_event);
    *out_event = *RONDO__BUFFER_AT(&cache->events, void *, --cache->events.count);
    return RONDO_OK;
}

static void wait_event_done(rondo__cache *cache, void *event) {
    const rondo_device *device = cache->memory->device;
    rondo_status status = rondo__buffer_append(&cache->events, &event, 1);
    if (!status) return;
    rondo_status_release(status);
    device->table->stream->event_destroy(device->handle, event);
}

/* Without the mutex: an event behind all that the stream has. True without an event: there is nothing to wait for.
 * False: a capture records the stream. */
static bool wait_record(rondo__cache *cache, uint64_t id, void **out_event) {
    rondo_device *device = cache->memory->device;
    rondo_stream *stream = wait_stream(device, id);
    rondo_status status = RONDO_OK;
    void *event = NULL;
    if (!stream) return true;
    rondo__mutex_lock(&stream->mutex);
    bool captures = stream->recorder != NULL;
    if (!captures && !rondo__device_is_inline(device)) {
        status = wait_event(cache, &event);
        if (event) status = device->table->stream->event_record(event, stream->handle);
    }
    rondo__mutex_unlock(&stream->mutex);
    wait_release(device, stream);
    if (status) {
        /* The whole device is waited for instead. */
        rondo_status_release(status);
        if (event) wait_event_done(cache, event);
        rondo__device_drain(device);
        event = NULL;
    }
    *out_event = event;
    return !captures;
}

/* The uses that came since the last event get one together. */
static void wait_mark(rondo__cache *cache, size_t index) {
    rondo__memory *memory = cache->memory;
    rondo__queue *queue = RONDO__BUFFER_AT(&cache->queues, rondo__queue, index);
    rondo__use *last = queue->last;
    uint64_t stream = queue->stream;
    void *event = NULL;
    if (!last || queue->marked == last) return;
    rondo__mutex_unlock(&memory->mutex);
    bool recorded = wait_record(cache, stream, &event);
    rondo__mutex_lock(&memory->mutex);
    queue = RONDO__BUFFER_AT(&cache->queues, rondo__queue, index);
    if (!recorded) return;
    if (event) {
        last->event = event;
        queue->marked = last;
        if (!queue->front) queue->front = last;
    } else {
        for (rondo__use *use = queue->first; use != last; use = use->next) {
            if (use->event) wait_event_done(cache, use->event);
        }
        wait_finish(cache, queue, last);
    }
}

static void wait_ask(rondo__cache *cache, size_t index) {
    rondo__memory *memory = cache->memory;
    const rondo_device *device = memory->device;
    const rondo__use *front;
    while ((front = RONDO__BUFFER_AT(&cache->queues, rondo__queue, index)->front) != NULL) {
        bool done = false;
        rondo__mutex_unlock(&memory->mutex);
        /* An event that fails is over: what stood before it was dropped. */
        rondo_status status = device->table->stream->event_query(front->event, &done);
        if (status) done = true;
        rondo_status_release(status);
        rondo__mutex_lock(&memory->mutex);
        if (!done) return;
        wait_event_done(cache, front->event);
        wait_finish(cache, RONDO__BUFFER_AT(&cache->queues, rondo__queue, index), front);
    }
}

/* Blocks that wait until nothing captures. */
static void wait_unpark(rondo__cache *cache) {
    while (cache->parked) {
        rondo__block *block = cache->parked;
        cache->parked = block->left;
        block->left = NULL;
        block->parked = false;
        if (!rondo__block_is_used(block)) rondo__block_free(cache, block, false);
    }
}

/* A queue without uses goes; the last one takes its place. */
static void wait_drop_queues(rondo__cache *cache) {
    for (size_t i = cache->queues.count; i-- > 0;) {
        if (RONDO__BUFFER_AT(&cache->queues, rondo__queue, i)->uses) continue;
        *RONDO__BUFFER_AT(&cache->queues, rondo__queue, i) =
            *RONDO__BUFFER_AT(&cache->queues, rondo__queue, cache->queues.count - 1u);
        cache->queues.count--;
    }
}

void rondo__cache_settle(rondo__cache *cache) {
    rondo__memory *memory = cache->memory;
    rondo__mutex_lock(&memory->mutex);
    if (cache->parked && !rondo__cache_captures(memory->device, RONDO__NO_STREAM)) wait_unpark(cache);
    if (!cache->asking && cache->waiting) {
        cache->asking = true;
        for (size_t i = 0; i < cache->queues.count; i++) {
            wait_mark(cache, i);
            wait_ask(cache, i);
        }
        cache->asking = false;
        wait_drop_queues(cache);
        rondo__cache_assert(cache);
    }
    rondo__mutex_unlock(&memory->mutex);
}

void rondo__cache_drop_waits(rondo__cache *cache) {
    const rondo_device *device = cache->memory->device;
    for (size_t i = 0; i < cache->queues.count; i++) {
        rondo__use *use = RONDO__BUFFER_AT(&cache->queues, rondo__queue, i)->first;
        for (rondo__use *next = NULL; use; use = next) {
            next = use->next;
            if (use->event) device->table->stream->event_destroy(device->handle, use->event);
            rondo__free(&cache->memory->allocator, use, sizeof *use);
        }
    }
    for (size_t i = 0; i < cache->events.count; i++) {
        device->table->stream->event_destroy(device->handle, *RONDO__BUFFER_AT(&cache->events, void *, i));
    }
    cache->queues.count = cache->events.count = 0;
    cache->waiting = 0;
}

void rondo__cache_forget_use(rondo__cache *cache, rondo__block *block) {
    rondo__use *use = block->uses;
    block->uses = use->next;
    wait_queue(cache, use->stream)->uses--;
    rondo__free(&cache->memory->allocator, use, sizeof *use);
}

/* The block's use by the stream, once. Takes `fresh` when it is new. */
static rondo_status wait_use(rondo__cache *cache, rondo__block *block, uint64_t stream, rondo__use **fresh) {
    rondo__use *use = block->uses;
    while (use && use->stream != stream) use = use->next;
    if (use || block->stream == stream) return RONDO_OK;
    if (!wait_queue(cache, stream))
        RONDO__TRY(rondo__buffer_append(&cache->queues, &(rondo__queue){.stream = stream}, 1));
    wait_queue(cache, stream)->uses++;
    **fresh = (rondo__use){.next = block->uses, .block = block, .stream = stream};
    block->uses = *fresh;
    *fresh = NULL;
    return RONDO_OK;
}

rondo_status rondo_memory_record_stream(rondo_device *device, void *pointer, rondo_stream *stream) {
    void *memory_of_use = NULL;
    if (!device || !stream || stream->device != device) {
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                           "rondo_memory_record_stream: a device and a stream of it are "
                           "needed");
    }
    rondo__memory *memory = device->memory;
    RONDO__TRY(rondo__allocate(&memory->allocator, sizeof(rondo__use), &memory_of_use));
    rondo__use *fresh = memory_of_use;
    rondo__mutex_lock(&memory->mutex);
    rondo__block *block = rondo__cache_live(&memory->cache, (uint64_t)(uintptr_t)pointer);
    rondo_status status = RONDO_OK;
    if (block) status = wait_use(&memory->cache, block, stream->id, &fresh);
    rondo__mutex_unlock(&memory->mutex);
    rondo__free(&memory->allocator, fresh, sizeof(rondo__use));
    if (block) return status;
    return RONDO__FAIL(INVALID_ARGUMENT, MEMORY,
                       "rondo_memory_record_stream: 0x%llx is not the start of a live "
                       "allocation of device '%s'",
                       (unsigned long long)(uintptr_t)pointer, device->properties.name);
}
