/* SPDX-License-Identifier: Apache-2.0
 *
 * The six contract kernels against arithmetic done here, and calls with more words than a list entry holds. */
#include <string.h>

#include "conf.h"

static void kernel_fill(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 1002 * 8);
    static const uint64_t values[] = {0, 1, UINT64_MAX, 0x0123456789abcdefu, 1ull << 63};
    for (size_t i = 0; i < 5; ++i) {
        conf_fill(t, stream, memory, 1002, 77);
        conf_fill(t, stream, memory + 8, 1000, values[i]);
        conf_want64(t, stream, memory + 8, 1000, values[i], 0, "rondo.fill");
        conf_want64(t, stream, memory, 1, 77, 0, "before rondo.fill's range");
        conf_want64(t, stream, memory + 1001 * 8, 1, 77, 0, "past rondo.fill's range");
    }
    conf_fill(t, stream, memory, 0, 5);
    conf_want64(t, stream, memory, 1, 77, 0, "rondo.fill of nothing");
}

static void kernel_iota(conf *t) {
    rondo_stream *stream = conf_stream(t);
    char *memory = conf_memory(t, 1001 * 8);
    static const uint64_t starts[] = {0, 1, UINT64_MAX - 10, 1ull << 40};
    for (size_t i = 0; i < 4; ++i) {
        conf_fill(t, stream, memory, 1001, 3);
        conf_iota(t, stream, memory, 1000, starts[i]);
        conf_want64(t, stream, memory, 1000, starts[i], 1, "rondo.iota");
        conf_want64(t, stream, memory + 8000, 1, 3, 0, "past rondo.iota's range");
    }
}

static void kernel_copy(conf *t) {
    rondo_stream *stream = conf_stream(t);
    static const uint64_t sizes[] = {0, 1, 7, 8, 65, 4097, 40000};
    char *from = conf_memory(t, 40008), *to = conf_memory(t, 40008), *got = conf_host(t, 40008),
         *want = conf_host(t, 40008);
    for (size_t i = 0; i < 7; ++i) {
        uint64_t seed = conf_random(t);
        conf_iota(t, stream, from, 5001, seed);
        conf_fill(t, stream, to, 5001, 0);
        conf_copy(t, stream, from + 1, to + 3, sizes[i]);
        conf_download(t, stream, want, from, 40008);
        memmove(want + 3, want + 1, sizes[i]);
        memset(want, 0, 3);
        memset(want + 3 + sizes[i], 0, 40008 - 3 - sizes[i]);
        conf_download(t, stream, got, to, 40008);
        WANT(t, memcmp(got, want, 40008) == 0, "rondo.copy of %llu bytes", (unsigned long long)sizes[i]);
    }
}

static void kernel_add(conf *t) {
    enum { COUNT = 1013 };
    rondo_stream *stream = conf_stream(t);
    float *a = conf_host(t, COUNT * 4), *b = conf_host(t, COUNT * 4), *c = conf_host(t, (COUNT + 1) * 4);
    void *da = conf_memory(t, COUNT * 4), *db = conf_memory(t, COUNT * 4), *dc = conf_memory(t, (COUNT + 1) * 4);
    for (uint64_t count = 1; count <= COUNT; count = count * 3 + 1) {
        for (uint64_t i = 0; i < COUNT; ++i) {
            a[i] = (float)(conf_between(t, 0, 1u << 20)) / 64.0f - 8000.0f;
            b[i] = (float)(conf_between(t, 0, 1u << 20)) / 128.0f;
        }
        conf_upload(t, stream, da, a, COUNT * 4);
        conf_upload(t, stream, db, b, COUNT * 4);
        WANT_OK(t, rondo_stream_fill(stream, dc, 0, (COUNT + 1) * 4));
        conf_add(t, stream, da, db, dc, count);
        conf_download(t, stream, c, dc, (COUNT + 1) * 4);
        for (uint64_t i = 0; i <= COUNT; ++i) {
            float want = i < count ? a[i] + b[i] : 0.0f;
            WANT(t, memcmp(&c[i], &want, 4) == 0, "rondo.add of %llu: element %llu is %g, not %g",
                 (unsigned long long)count, (unsigned long long)i, (double)c[i], (double)want);
        }
    }
}

static void kernel_spin(conf *t) {
    rondo_stream *stream = conf_stream(t);
    conf_spin(t, stream, 0);
    conf_sync(t, stream);
    for (uint64_t ms = 2; ms <= 8; ms *= 2) {
        uint64_t start = conf_now();
        conf_spin(t, stream, ms * 1000000u);
        conf_sync(t, stream);
        uint64_t took = conf_now() - start;
        WANT(t, took >= ms * 900000u, "a spin of %llu ms took %.3f ms", (unsigned long long)ms, (double)took / 1e6);
    }
}

/* Against the algorithm by the book, which itself is held against the numbers that were published with it. */
static void kernel_philox(conf *t) {
    static const uint32_t published[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
    static const struct {
        uint64_t seed, offset, count;
    } cases[] = {{0, 0, 4},         {0, 0, 1000}, {1, 0, 33}, {0x123456789abcdefu, 4, 100},
                 {42, 1, 7},        {42, 2, 1},   {42, 3, 9}, {UINT64_MAX, (1ull << 34) - 2, 12},
                 {5, 1ull << 40, 5}};
    rondo_stream *stream = conf_stream(t);
    uint32_t got[1001];
    void *memory = conf_memory(t, sizeof got);
    for (uint64_t i = 0; i < 4; ++i)
        WANT(t, conf_philox_number(0, i) == published[i], "the suite's own Philox is wrong");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        WANT_OK(t, rondo_stream_fill(stream, memory, 0, sizeof got));
        conf_philox(t, stream, memory, cases[k].count, cases[k].seed, cases[k].offset);
        conf_download(t, stream, got, memory, sizeof got);
        for (uint64_t i = 0; i <= cases[k].count; ++i) {
            uint32_t want = i < cases[k].count ? conf_philox_number(cases[k].seed, cases[k].offset + i) : 0;
            WANT(t, got[i] == want, "rondo.philox, seed 0x%llx, offset %llu: number %llu is 0x%08x, not 0x%08x",
                 (unsigned long long)cases[k].seed, (unsigned long long)cases[k].offset, (unsigned long long)i, got[i],
                 want);
        }
    }
}

static void kernel_unknown(conf *t) {
    rondo_kernel kernel;
    int64_t shape[] = {4};
    rondo_code code = conf_code(rondo_kernel_find(t->device, "rondo.conformance_none", &kernel));
    WANT(t, code == RONDO_CODE_UNSUPPORTED || code == RONDO_CODE_NOT_FOUND, "an unknown kernel is '%s'",
         rondo_code_name(code));
    rondo_status status = rondo_kernel_prepare(t->device, "ConformanceNone", 2, RONDO_DTYPE_F32, 1, shape, &kernel);
    WANT(t, rondo_status_code(status) == RONDO_CODE_UNSUPPORTED && rondo_status_layer(status) == RONDO_LAYER_KERNEL,
         "an unknown operator is '%s' of layer '%s'", rondo_code_name(rondo_status_code(status)),
         rondo_layer_name(rondo_status_layer(status)));
    rondo_status_release(status);
}

typedef struct kernel_wide {
    uint32_t count;
} kernel_wide;

/* words: count - 1 values, then out; writes each value times its place. */
static int32_t kernel_wide_run(const void *context, const uint64_t *words) {
    uint32_t count = ((const kernel_wide *)context)->count;
    uint64_t *out = (uint64_t *)(uintptr_t)words[count - 1u];
    for (uint32_t i = 0; i + 1u < count; ++i) out[i] = words[i] * (i + 1u);
    return 0;
}

/* One, a list entry's five, one more, and as many words as a call may have; eagerly and replayed. */
static void kernel_words(conf *t) {
    static const uint32_t counts[] = {1, 2, 4, 5, 6, 7, 12, 31, 63, 64};
    bool graphs = (t->properties->capabilities & RONDO_DEVICE_GRAPH_CAPABLE) != 0;
    rondo_stream *stream = conf_stream(t);
    uint64_t *got = conf_host(t, 64 * 8);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
        kernel_wide *wide = conf_host(t, sizeof *wide);
        rondo_kernel kernel = {kernel_wide_run, wide};
        rondo_argument arguments[64];
        void *out = conf_memory(t, 64 * 8);
        wide->count = counts[k];
        for (uint32_t i = 0; i + 1u < counts[k]; ++i) arguments[i] = (rondo_argument)CONF_VALUE(1000 + i);
        arguments[counts[k] - 1u] = (rondo_argument)CONF_WRITE(out, 64 * 8);
        for (int round = 0; round < (graphs ? 2 : 1); ++round) {
            rondo_graph *graph = round ? conf_graph(t) : NULL;
            conf_fill(t, stream, out, 64, 0);
            if (!graph) {
                WANT_OK(t, conf_launch(stream, kernel, "wide", arguments, counts[k]));
            } else {
                conf_begin(t, graph, stream);
                WANT_OK(t, conf_launch(stream, kernel, "wide", arguments, counts[k]));
                conf_end(t, graph, stream);
                conf_replay(t, graph, stream);
            }
            conf_download(t, stream, got, out, 64 * 8);
            if (graph) conf_drop(t, graph);
            for (uint32_t i = 0; i < 64; ++i) {
                uint64_t want = i + 1u < counts[k] ? (uint64_t)(1000 + i) * (i + 1u) : 0;
                WANT(t, got[i] == want, "%s call of %u words: %llu instead of %llu for word %u",
                     round ? "a replayed" : "a", (unsigned)counts[k], (unsigned long long)got[i],
                     (unsigned long long)want, (unsigned)i);
            }
        }
    }
}

static void kernel_unnamed(conf *t) {
    rondo_stream *stream = conf_stream(t);
    rondo_argument zero[] = {CONF_VALUE(0)};
    for (int i = 0; i < 10; ++i) WANT_OK(t, conf_launch(stream, conf_kernel(t, CONF_SPIN), NULL, zero, 1));
    conf_sync(t, stream);
}

/* An elementwise operator of the device's catalogues. */
static void kernel_prepared(conf *t) {
    int64_t shape[] = {3, 5};
    float a[15], b[15], c[15];
    rondo_kernel kernel;
    rondo_stream *stream = conf_stream(t);
    void *da = conf_memory(t, sizeof a), *db = conf_memory(t, sizeof b), *dc = conf_memory(t, sizeof c);
    rondo_status status = rondo_kernel_prepare(t->device, "Add", 2, RONDO_DTYPE_F32, 2, shape, &kernel);
    if (rondo_status_code(status) == RONDO_CODE_UNSUPPORTED) {
        rondo_status_release(status);
        conf_skip(t, "the device has no kernel for Add");
    }
    WANT_OK(t, status);
    for (int i = 0; i < 15; ++i) {
        a[i] = (float)i * 0.5f;
        b[i] = 100.0f - (float)i;
    }
    conf_upload(t, stream, da, a, sizeof a);
    conf_upload(t, stream, db, b, sizeof b);
    rondo_argument arguments[] = {CONF_READ(da, sizeof a), CONF_READ(db, sizeof b), CONF_WRITE(dc, sizeof c)};
    status = conf_launch(stream, kernel, "Add", arguments, 3);
    rondo_status late = rondo_stream_synchronize(stream);
    rondo_kernel_release(t->device, kernel);
    WANT_OK(t, status);
    WANT_OK(t, late);
    conf_download(t, stream, c, dc, sizeof c);
    for (int i = 0; i < 15; ++i) {
        float want = a[i] + b[i];
        WANT(t, memcmp(&c[i], &want, 4) == 0, "Add: element %d is %g, not %g", i, (double)c[i], (double)want);
    }
}

static const conf_test tests[] = {
    {{"kernel.fill", "kernel", "rondo.fill writes its value and nothing else."}, 0, kernel_fill},
    {{"kernel.iota", "kernel", "rondo.iota counts, modulo 2^64."}, 0, kernel_iota},
    {{"kernel.copy", "kernel", "rondo.copy moves bytes of any number and alignment."}, 0, kernel_copy},
    {{"kernel.add", "kernel", "rondo.add is IEEE addition of float32."}, 0, kernel_add},
    {{"kernel.spin", "kernel", "rondo.spin takes at least its time."}, 0, kernel_spin},
    {{"kernel.philox", "kernel random", "rondo.philox is Philox4x32-10, from any offset."}, 0, kernel_philox},
    {{"kernel.unknown", "kernel", "What no catalogue has is refused by name."}, 0, kernel_unknown},
    {{"kernel.words", "kernel graph", "Calls of one to sixty-four words, eagerly and replayed."},
     CONF_NEEDS_HOST_KERNELS,
     kernel_words},
    {{"kernel.unnamed", "kernel", "A call need not have a name."}, 0, kernel_unnamed},
    {{"kernel.prepared", "kernel", "An operator of the catalogues runs as a call."}, 0, kernel_prepared},
};
CONF_SUITE(conf_suite_kernel, tests);
