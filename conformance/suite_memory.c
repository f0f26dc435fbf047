/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory and pinned host memory: whose it is, where it lies, and when it is gone. */
#include <stdlib.h>
#include <string.h>

#include "conf.h"

static void memory_alignment(conf *t) {
    static const uint64_t sizes[] = {1,   2,   3,    7,    8,    31,    64,      100,     511,
                                     512, 513, 4095, 4096, 4097, 65537, 1048577, 3u << 20};
    uint64_t alignment = t->properties->allocation_alignment;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        void *pointer = conf_memory(t, sizes[i]);
        WANT(t, ((uintptr_t)pointer & (alignment - 1u)) == 0, "%llu bytes lie at %p, which is not aligned to %llu",
             (unsigned long long)sizes[i], pointer, (unsigned long long)alignment);
    }
}

typedef struct memory_range {
    uint64_t start, size, tag;
} memory_range;

static int memory_by_start(const void *a, const void *b) {
    uint64_t x = ((const memory_range *)a)->start, y = ((const memory_range *)b)->start;
    return x < y ? -1 : x > y;
}

static void memory_want_apart(conf *t, memory_range *ranges, size_t count) {
    qsort(ranges, count, sizeof *ranges, memory_by_start);
    for (size_t i = 1; i < count; ++i)
        WANT(t, ranges[i - 1].start + ranges[i - 1].size <= ranges[i].start,
             "two live allocations overlap: %llu bytes at 0x%llx and one at 0x%llx",
             (unsigned long long)ranges[i - 1].size, (unsigned long long)ranges[i - 1].start,
             (unsigned long long)ranges[i].start);
}

/* Random allocations and frees; each live range keeps its own content. */
static void memory_distinct(conf *t) {
    enum { COUNT = 100 };
    memory_range ranges[COUNT] = {{0, 0, 0}};
    rondo_stream *stream = conf_stream(t);
    for (int round = 0; round < 400; ++round) {
        memory_range *range = &ranges[conf_between(t, 0, COUNT - 1)];
        void *pointer = (void *)(uintptr_t)range->start;
        if (pointer) {
            conf_want64(t, stream, pointer, range->size / 8, range->tag, 1,
                        "an allocation, after others came and went");
            conf_drop(t, pointer);
            *range = (memory_range){0, 0, 0};
            continue;
        }
        range->size = conf_between(t, 1, 4) * 8u << conf_between(t, 0, 11);
        range->tag = conf_random(t);
        pointer = conf_memory(t, range->size);
        range->start = (uint64_t)(uintptr_t)pointer;
        conf_iota(t, stream, pointer, range->size / 8, range->tag);
    }
    conf_sync(t, stream);
    for (int i = 0; i < COUNT; ++i)
        if (ranges[i].start)
            conf_want64(t, stream, (void *)(uintptr_t)ranges[i].start, ranges[i].size / 8, ranges[i].tag, 1,
                        "at the end");
    memory_want_apart(t, ranges, COUNT);
}

static void memory_refused(conf *t) {
    void *pointer = NULL, *live = conf_memory(t, 4096);
    WANT_CODE(t, rondo_memory_allocate(t->device, 0, &pointer), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_host_allocate(t->device, 0, &pointer), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_free(t->device, NULL), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_free(t->device, (char *)live + 1), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_free(t->device, (char *)live + 512), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_free(t->device, &pointer), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_host_free(t->device, live), INVALID_ARGUMENT);
    conf_drop(t, live);
    WANT_CODE(t, rondo_memory_free(t->device, live), INVALID_ARGUMENT);
    void *pinned = conf_pinned(t, 4096);
    WANT_CODE(t, rondo_memory_free(t->device, pinned), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_memory_host_free(t->device, (char *)pinned + 8), INVALID_ARGUMENT);
    conf_drop(t, pinned);
    WANT_CODE(t, rondo_memory_host_free(t->device, pinned), INVALID_ARGUMENT);
}

static void memory_usage_counts(conf *t) {
    uint64_t bytes = 0, count = 0, first_bytes = 0, first_count = 0;
    rondo_memory_usage(t->device, &first_bytes, &first_count);
    void *a = conf_memory(t, 1000), *b = conf_memory(t, 70000);
    rondo_memory_usage(t->device, &bytes, &count);
    WANT(t, count == first_count + 2 && bytes >= first_bytes + 71000, "two allocations count as %llu of %llu bytes",
         (unsigned long long)(count - first_count), (unsigned long long)(bytes - first_bytes));
    conf_drop(t, a);
    conf_drop(t, b);
    rondo_memory_usage(t->device, &bytes, &count);
    WANT(t, count == first_count && bytes == first_bytes, "after their end %llu of %llu bytes are left",
         (unsigned long long)(count - first_count), (unsigned long long)(bytes - first_bytes));
}

/* Free waits for what was enqueued; the work is not cut off, and whoever gets the memory next is not hit by it. */
static void memory_free_waits(conf *t) {
    for (int round = 0; round < 20; ++round) {
        rondo_stream *first = conf_stream(t), *second = conf_stream(t);
        void *input = conf_memory(t, 8192), *out = conf_memory(t, 8192);
        conf_spin(t, first, 50000);
        conf_iota(t, first, input, 1024, 7);
        conf_copy(t, first, input, out, 8192);
        conf_fill(t, first, input, 1024, 99);
        conf_drop(t, input);
        void *next = conf_memory(t, 8192);
        conf_iota(t, second, next, 1024, 1000);
        conf_want64(t, second, next, 1024, 1000, 1, "memory that was another's before");
        conf_want64(t, first, out, 1024, 7, 1, "what the work made of freed memory");
        conf_drop(t, next);
        conf_drop(t, out);
        conf_drop(t, second);
        conf_drop(t, first);
    }
}

static void memory_too_much(conf *t) {
    void *pointer = NULL;
    WANT_CODE(t, rondo_memory_allocate(t->device, UINT64_MAX / 2, &pointer), OUT_OF_MEMORY);
    rondo_status status = rondo_memory_allocate(t->device, UINT64_MAX, &pointer);
    rondo_code code = conf_code(status);
    WANT(t, code == RONDO_CODE_OUT_OF_MEMORY || code == RONDO_CODE_OUT_OF_RANGE, "all of memory: '%s'",
         rondo_code_name(code));
    conf_want_usable(t, conf_stream(t), "an allocation that was too large");
}

/* Until there is no more, twice: the second time there is as much. */
static void memory_exhausted(conf *t) {
    enum { MOST = 64 };
    void *pointers[MOST];
    uint64_t whole = 2u << 20; /* of which memory is taken from a device at the most */
    uint64_t size = (t->properties->memory_total / 16 / whole + 1) * whole; /* some is left at the end */
    int counts[2] = {0, 0};
    for (int round = 0; round < 2; ++round) {
        rondo_status status = RONDO_OK;
        while (!status && counts[round] < MOST) {
            status = rondo_memory_allocate(t->device, size, &pointers[counts[round]]);
            if (!status) conf_keep(t, CONF_MEMORY, pointers[counts[round]++]);
        }
        WANT(t, status, "%d times a 16th of the memory was there", counts[round]);
        WANT_CODE(t, status, OUT_OF_MEMORY);
        WANT(t, counts[round] >= 6, "only %d times a 16th of the memory was there", counts[round]);
        WANT(t, (uint64_t)counts[round] * size <= t->properties->memory_total,
             "%d times a 16th of the memory was there", counts[round]);
        memory_range ranges[MOST];
        for (int i = 0; i < counts[round]; ++i) ranges[i] = (memory_range){(uint64_t)(uintptr_t)pointers[i], size, 0};
        memory_want_apart(t, ranges, (size_t)counts[round]);
        for (int i = 0; i < counts[round]; ++i) conf_drop(t, pointers[i]);
    }
    WANT(t, counts[0] == counts[1], "%d times at first, %d times after all was freed", counts[0], counts[1]);
    conf_want_usable(t, conf_stream(t), "running out of memory");
}

static void memory_pinned(conf *t) {
    rondo_stream *stream = conf_stream(t);
    memory_range ranges[32];
    uint64_t *pointers[32];
    for (size_t i = 0; i < 32; ++i) {
        uint64_t count = conf_between(t, 1, 5000);
        pointers[i] = conf_pinned(t, count * 8);
        WANT(t, ((uintptr_t)pointers[i] & 15u) == 0, "pinned memory at %p", (void *)pointers[i]);
        ranges[i] = (memory_range){(uint64_t)(uintptr_t)pointers[i], count * 8, i};
        for (uint64_t k = 0; k < count; ++k) pointers[i][k] = i * 1000000 + k;
    }
    for (size_t i = 0; i < 32; ++i) {
        void *memory = conf_memory(t, ranges[i].size);
        conf_upload(t, stream, memory, pointers[i], ranges[i].size);
        conf_sync(t, stream);
        memset(pointers[i], 0, (size_t)ranges[i].size);
        conf_download(t, stream, pointers[i], memory, ranges[i].size);
        for (uint64_t k = 0; k < ranges[i].size / 8; ++k)
            WANT(t, pointers[i][k] == i * 1000000 + k, "element %llu came back as %llu", (unsigned long long)k,
                 (unsigned long long)pointers[i][k]);
        conf_drop(t, memory);
    }
    memory_want_apart(t, ranges, 32);
}

/* So large that each is the device's own answer, not a part of what it gave before. */
static void memory_pinned_large(conf *t) {
    enum { SIZE = 12 << 20, COUNT = 3 };
    memory_range ranges[COUNT];
    uint64_t *pointers[COUNT];
    for (uint64_t i = 0; i < COUNT; ++i) {
        pointers[i] = conf_pinned(t, SIZE);
        ranges[i] = (memory_range){(uint64_t)(uintptr_t)pointers[i], SIZE, i};
        pointers[i][0] = 100 + i;
        pointers[i][SIZE / 8 - 1] = 200 + i;
    }
    for (uint64_t i = 0; i < COUNT; ++i)
        WANT(t, pointers[i][0] == 100 + i && pointers[i][SIZE / 8 - 1] == 200 + i,
             "block %llu of pinned memory holds what was written to another", (unsigned long long)i);
    memory_want_apart(t, ranges, COUNT);
}

/* Many small ones: nothing is lost over time. */
static void memory_churn(conf *t) {
    uint64_t before = 0, after = 0, total = 0;
    bool own = !(t->properties->capabilities & RONDO_DEVICE_HOST_ADDRESSABLE);
    void *pointers[8] = {NULL};
    for (int i = 0; i < 4000; ++i) {
        void **slot = &pointers[i % 8];
        if (*slot) WANT_OK(t, rondo_memory_free(t->device, *slot));
        *slot = NULL;
        WANT_OK(t, rondo_memory_allocate(t->device, 1000 + (uint64_t)(i % 7) * 100, slot));
        if (i == 100) WANT_OK(t, rondo_device_memory_info(t->device, &before, &total));
    }
    WANT_OK(t, rondo_device_memory_info(t->device, &after, &total));
    for (int i = 0; i < 8; ++i) WANT_OK(t, rondo_memory_free(t->device, pointers[i]));
    WANT(t, !own || after + (4u << 20) >= before, "%llu bytes were free, after 4000 allocations and frees %llu are",
         (unsigned long long)before, (unsigned long long)after);
}

typedef struct memory_worker {
    rondo_device *device;
    uint64_t seed;
    rondo_code code;
    uint64_t starts[64];
} memory_worker;

static void *memory_work(void *argument) {
    memory_worker *w = argument;
    for (int i = 0; i < 600 && !w->code; ++i) {
        void *pointer = NULL;
        w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t *slot = &w->starts[(w->seed >> 33) % 64];
        if (*slot) {
            w->code = conf_code(rondo_memory_free(w->device, (void *)(uintptr_t)*slot));
            *slot = 0;
        } else {
            w->code = conf_code(rondo_memory_allocate(w->device, 64 + (w->seed >> 50) % 4000, &pointer));
            *slot = (uint64_t)(uintptr_t)pointer;
        }
    }
    return NULL;
}

static void memory_from_threads(conf *t) {
    memory_worker workers[4];
    memory_range ranges[4 * 64];
    memset(workers, 0, sizeof workers);
    for (uint64_t i = 0; i < 4; ++i) workers[i] = (memory_worker){.device = t->device, .seed = conf_random(t)};
    conf_threads(t, 4, memory_work, workers, sizeof *workers);
    for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 64; ++k) {
            ranges[i * 64 + k] = (memory_range){workers[i].starts[k], workers[i].starts[k] ? 64 : 0, 0};
            if (workers[i].starts[k]) conf_keep(t, CONF_MEMORY, (void *)(uintptr_t)workers[i].starts[k]);
        }
    }
    for (int i = 0; i < 4; ++i) WANT(t, !workers[i].code, "a thread got '%s'", rondo_code_name(workers[i].code));
    memory_want_apart(t, ranges, 4 * 64);
}

static const conf_test tests[] = {
    {{"memory.alignment", "memory", "Every allocation is aligned as the device says."}, 0, memory_alignment},
    {{"memory.distinct", "memory", "Live ranges never overlap, and contents survive the coming and going of others."},
     0,
     memory_distinct},
    {{"memory.refused", "memory", "Pointers that start no live allocation are refused, and so is size 0."},
     0,
     memory_refused},
    {{"memory.usage", "memory", "Usage counts what is alive."}, 0, memory_usage_counts},
    {{"memory.free_waits", "memory stream", "Freeing waits for enqueued work, which still sees its memory."},
     0,
     memory_free_waits},
    {{"memory.too_much", "memory", "An impossible size is OUT_OF_MEMORY and harms nothing."}, 0, memory_too_much},
    {{"memory.exhausted", "memory slow", "Running out is OUT_OF_MEMORY, and what is freed can be had again."},
     CONF_NEEDS_OWN_MEMORY,
     memory_exhausted},
    {{"memory.pinned", "memory copy", "Pinned host memory holds what is written and can be copied both ways."},
     0,
     memory_pinned},
    {{"memory.pinned_large", "memory copy", "Large blocks of pinned memory are apart."}, 0, memory_pinned_large},
    {{"memory.churn", "memory", "Thousands of allocations and frees lose nothing."},
     CONF_NEEDS_MEMORY_INFO,
     memory_churn},
    {{"memory.threads", "memory thread", "Allocating and freeing from several threads at once."},
     0,
     memory_from_threads},
};
CONF_SUITE(conf_suite_memory, tests);
