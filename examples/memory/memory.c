/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is kept and used again: by stream, in a pool of one's own, brought back to an earlier layout; and what the
 * failure says when there is no more. docs/memory.md tells why. */
#include <inttypes.h>
#include <string.h>

#include "../must.h"

#define MIB ((uint64_t)1 << 20)

static rondo_memory_statistics figures(rondo_device *device, rondo_pool_id pool) {
    rondo_memory_statistics s = RONDO_MEMORY_STATISTICS_INIT;
    must(rondo_memory_get_statistics(device, pool, &s));
    return s;
}

static void *take(rondo_stream *stream, uint64_t size) {
    void *block = NULL;
    must(rondo_memory_allocate_on(stream, size, &block));
    return block;
}

/* A block is free for the same stream at once; for another only when that has finished with it. */
static void streams(rondo_device *device, rondo_stream *stream) {
    rondo_stream *other = NULL;
    must(rondo_stream_create(device, NULL, &other));
    void *a = take(stream, 3000);
    must(rondo_memory_free(device, a));
    void *b = take(stream, 2900);
    must_be(a == b, "the stream gets its block again");
    must(rondo_stream_fill(other, b, 1, 2900));
    must(rondo_memory_record_stream(device, b, other)); /* said before the free */
    must(rondo_memory_free(device, b));
    must(rondo_stream_synchronize(other));
    void *c = take(stream, 3000);
    must_be(c == a, "and again, since the other one has finished");
    must(rondo_memory_free(device, c));
    rondo_stream_release(other);
    printf("by stream: 3000 bytes were the same block three times; %" PRIu64 " bytes are reserved\n",
           figures(device, (rondo_pool_id){0, 0}).reserved_bytes);
}

/* What a pool's allocations are is decided by data: here, all of this thread. */
static void pools(rondo_device *device, rondo_stream *stream) {
    rondo_memory_filter mine = RONDO_MEMORY_FILTER_INIT; /* RONDO_MEMORY_FILTER_THREAD */
    rondo_pool_id pool = rondo_pool_handle(rondo_device_instance(device));
    rondo_memory_checkpoint *before = NULL;
    rondo_memory_delta delta = RONDO_MEMORY_DELTA_INIT;
    must(rondo_memory_pool_begin(device, pool, &mine));
    void *weights = take(stream, 4 * MIB), *scratch = take(stream, MIB);
    must(rondo_memory_free(device, scratch));
    must(rondo_memory_checkpoint_create(device, pool, &before));
    void *x = take(stream, 5000);
    must(rondo_memory_free(device, weights));
    must(rondo_memory_checkpoint_restore(before, &delta)); /* the layout of then: weights, and nothing else */
    must_be(delta.freed_count == 1 && delta.freed[0] == x, "x is gone");
    must_be(delta.created_count == 1 && delta.created[0] == weights, "the weights are there again");
    const void *expected[] = {weights};
    bool equal = false;
    must(rondo_memory_pool_live(device, pool, expected, 1, &equal));
    must_be(equal, "nothing else lives in the pool");
    printf("in a pool: %" PRIu64 " bytes live, %" PRIu64 " reserved, back to an earlier layout\n",
           figures(device, pool).allocated_bytes, figures(device, pool).reserved_bytes);
    rondo_memory_delta_release(device, &delta);
    rondo_memory_checkpoint_release(before);
    must(rondo_memory_free(device, weights));
    must(rondo_memory_pool_end(device, pool));
    must(rondo_memory_pool_release(device, pool)); /* its memory is now everybody's */
}

/* 100 MiB in all, of which a pool holds most. */
static void shortage(rondo_instance *instance) {
    rondo_device *device = NULL;
    rondo_memory_filter mine = RONDO_MEMORY_FILTER_INIT;
    void *block = NULL;
    char text[2048];
    must(rondo_device_open(instance, "sim:1", "memory=104857600", &device));
    rondo_stream *stream = rondo_stream_default(device);
    rondo_pool_id pool = rondo_pool_handle(instance);
    must(rondo_memory_pool_begin(device, pool, &mine));
    void *held = take(stream, 60 * MIB);
    must(rondo_memory_pool_end(device, pool));
    rondo_status status = rondo_memory_allocate_on(stream, 50 * MIB, &block);
    must_be(rondo_status_code(status) == RONDO_CODE_OUT_OF_MEMORY, "there is no room");
    (void)rondo_status_format(status, text, sizeof text);
    must_be(strstr(text, "62914560 are held by graph pools") != NULL, "the text says who holds it");
    printf("%s\n", text);
    rondo_status_release(status);
    must(rondo_memory_free(device, held));
    must(rondo_memory_pool_release(device, pool));
    block = take(stream, 50 * MIB); /* out of what was the pool's */
    must(rondo_memory_free(device, block));
    must_be(figures(device, (rondo_pool_id){0, 0}).reserved_bytes == 60 * MIB, "one segment is there");
    must(rondo_memory_trim(device));
    must_be(figures(device, (rondo_pool_id){0, 0}).reserved_bytes == 0, "everything went back to the device");
    rondo_device_release(device);
}

int main(int argc, char **argv) {
    rondo_instance *instance = NULL;
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 1 ? argv[1] : "cpu", NULL, &device));
    must(rondo_stream_create(device, NULL, &stream));
    streams(device, stream);
    pools(device, stream);
    shortage(instance);
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
