/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies, fills and host calls. Sizes are those at which a wrong loop shows, and bytes beside the range are watched. */
#include <string.h>

#include "conf.h"

static const uint64_t copy_sizes[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 255, 256, 1000, 4095, 4096, 4097, 65536, 1048579};
enum { COPY_SIZES = sizeof copy_sizes / sizeof *copy_sizes, COPY_GUARD = 64 };

static void copy_pattern(conf *t, uint8_t *bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) bytes[i] = (uint8_t)conf_random(t);
}

/* `all` is guard, content, guard. */
static void copy_want(conf *t, const uint8_t *all, const uint8_t *content, uint64_t size, uint8_t guard,
                      const char *what) {
    for (uint64_t i = 0; i < COPY_GUARD; ++i) {
        WANT(t, all[i] == guard, "%s of %llu bytes wrote %llu bytes before its range", what, (unsigned long long)size,
             (unsigned long long)(COPY_GUARD - i));
        WANT(t, all[COPY_GUARD + size + i] == guard, "%s of %llu bytes wrote %llu bytes past its range", what,
             (unsigned long long)size, (unsigned long long)(i + 1));
    }
    for (uint64_t i = 0; i < size; ++i)
        WANT(t, all[COPY_GUARD + i] == content[i], "%s of %llu bytes: byte %llu is 0x%02x, not 0x%02x", what,
             (unsigned long long)size, (unsigned long long)i, all[COPY_GUARD + i], content[i]);
}

static void copy_host_to_device(conf *t) {
    rondo_stream *stream = conf_stream(t);
    for (size_t i = 0; i < COPY_SIZES; ++i) {
        uint64_t size = copy_sizes[i], whole = size + 2 * COPY_GUARD;
        uint8_t *content = conf_host(t, size + 3), *all = conf_host(t, whole), *memory = conf_memory(t, whole);
        copy_pattern(t, content, size + 3);
        WANT_OK(t, rondo_stream_fill(stream, memory, 0xa5, whole));
        conf_upload(t, stream, memory + COPY_GUARD, content + i % 4, size);
        conf_download(t, stream, all, memory, whole);
        copy_want(t, all, content + i % 4, size, 0xa5, "a copy to the device");
    }
}

static void copy_device_to_host(conf *t) {
    rondo_stream *stream = conf_stream(t);
    for (size_t i = 0; i < COPY_SIZES; ++i) {
        uint64_t size = copy_sizes[i];
        uint8_t *content = conf_host(t, size), *all = conf_host(t, size + 2 * COPY_GUARD),
                *memory = conf_memory(t, size + 3);
        copy_pattern(t, content, size);
        memset(all, 0x3c, size + 2 * COPY_GUARD);
        conf_upload(t, stream, memory + i % 4, content, size);
        WANT_OK(t, rondo_stream_copy(stream, all + COPY_GUARD, memory + i % 4, size, RONDO_COPY_DEVICE_TO_HOST));
        conf_sync(t, stream);
        copy_want(t, all, content, size, 0x3c, "a copy from the device");
    }
}

static void copy_device_to_device(conf *t) {
    rondo_stream *stream = conf_stream(t);
    for (size_t i = 0; i < COPY_SIZES; ++i) {
        uint64_t size = copy_sizes[i], whole = size + 2 * COPY_GUARD;
        uint8_t *content = conf_host(t, size), *all = conf_host(t, whole);
        uint8_t *from = conf_memory(t, size + 3), *to = conf_memory(t, whole);
        copy_pattern(t, content, size);
        WANT_OK(t, rondo_stream_fill(stream, to, 0x11, whole));
        conf_upload(t, stream, from + i % 4, content, size);
        WANT_OK(t, rondo_stream_copy(stream, to + COPY_GUARD, from + i % 4, size, RONDO_COPY_DEVICE_TO_DEVICE));
        conf_download(t, stream, all, to, whole);
        copy_want(t, all, content, size, 0x11, "a copy on the device");
        conf_download(t, stream, all, from + i % 4, size);
        WANT(t, memcmp(all, content, size) == 0, "a copy on the device changed its source");
    }
}

static void copy_nothing(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t value = 1;
    void *memory = conf_memory(t, 64);
    conf_iota(t, stream, memory, 8, 50);
    for (rondo_copy_kind kind = RONDO_COPY_HOST_TO_DEVICE; kind <= RONDO_COPY_DEVICE_TO_DEVICE; ++kind) {
        WANT_OK(t, rondo_stream_copy(stream, NULL, NULL, 0, kind));
        WANT_OK(t, rondo_stream_copy(stream, memory, &value, 0, kind));
    }
    WANT_OK(t, rondo_stream_fill(stream, memory, 9, 0));
    WANT_OK(t, rondo_stream_fill(stream, NULL, 9, 0));
    conf_want64(t, stream, memory, 8, 50, 1, "copies and fills of nothing");
}

/* An overlap is either refused, or comes out as if the source had been set aside first. */
static void copy_overlap(conf *t) {
    rondo_stream *stream = conf_stream(t);
    enum { SIZE = 1000 };
    static const int64_t shifts[] = {1, 8, 64, 500, -1, -8, -64, -500, 0};
    uint8_t *content = conf_host(t, 2 * SIZE), *got = conf_host(t, 2 * SIZE), *memory = conf_memory(t, 2 * SIZE);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; ++i) {
        copy_pattern(t, content, 2 * SIZE);
        conf_upload(t, stream, memory, content, 2 * SIZE);
        rondo_status status =
            rondo_stream_copy(stream, memory + 500 + shifts[i], memory + 500, SIZE, RONDO_COPY_DEVICE_TO_DEVICE);
        rondo_code code = conf_failure_of(stream, status, NULL, 0);
        conf_download(t, stream, got, memory, 2 * SIZE);
        if (code == RONDO_CODE_OK) memmove(content + 500 + shifts[i], content + 500, SIZE);
        else
            WANT(t, code == RONDO_CODE_INVALID_ARGUMENT || code == RONDO_CODE_UNSUPPORTED, "an overlap gave '%s'",
                 rondo_code_name(code));
        WANT(t, memcmp(got, content, 2 * SIZE) == 0, "an overlap by %lld bytes came out wrong", (long long)shifts[i]);
    }
}

static void copy_refuses(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t value = 1;
    void *memory = conf_memory(t, 64);
    WANT_CODE(t, rondo_stream_copy(stream, memory, &value, 8, 0), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_copy(stream, memory, &value, 8, 4), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_copy(stream, NULL, &value, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_copy(stream, memory, NULL, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_copy(stream, memory, &value, UINT64_MAX, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_copy(NULL, memory, &value, 8, RONDO_COPY_HOST_TO_DEVICE), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_fill(stream, NULL, 1, 8), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_fill(stream, memory, 1, UINT64_MAX), INVALID_ARGUMENT);
    WANT_CODE(t, rondo_stream_fill(NULL, memory, 1, 8), INVALID_ARGUMENT);
    conf_want_usable(t, stream, "copies that were refused");
}

/* Where host and device memory are apart, a direction that the addresses contradict is refused, and nothing is copied. */
static void copy_wrong_direction(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *host = conf_host(t, 64), *pinned = conf_pinned(t, 64);
    char *a = conf_memory(t, 64), *b = conf_memory(t, 64);
    conf_iota(t, stream, a, 8, 5);
    conf_sync(t, stream);
    const struct {
        void *to, *from;
        rondo_copy_kind kind;
    } wrong[] = {{a, b, RONDO_COPY_HOST_TO_DEVICE},        {a, b, RONDO_COPY_DEVICE_TO_HOST},
                 {a, host, RONDO_COPY_DEVICE_TO_HOST},     {a, host, RONDO_COPY_DEVICE_TO_DEVICE},
                 {host, a, RONDO_COPY_HOST_TO_DEVICE},     {host, a, RONDO_COPY_DEVICE_TO_DEVICE},
                 {a, pinned, RONDO_COPY_DEVICE_TO_DEVICE}, {pinned, a, RONDO_COPY_DEVICE_TO_DEVICE}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        rondo_status status = rondo_stream_copy(stream, wrong[i].to, wrong[i].from, 64, wrong[i].kind);
        rondo_code code = conf_failure_of(stream, status, NULL, 0);
        WANT(t, code == RONDO_CODE_INVALID_ARGUMENT,
             "case %zu: a copy in a direction that its addresses contradict gave '%s'", i, rondo_code_name(code));
    }
    conf_want64(t, stream, a, 8, 5, 1, "memory that copies in wrong directions mentioned");
    for (int i = 0; i < 8; ++i) WANT(t, !host[i] && !pinned[i], "a copy in a wrong direction wrote host memory");
}

/* The order between copies and kernels on one stream, in both directions. */
static void copy_in_order(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *in = conf_pinned(t, 200 * 8), *out = conf_pinned(t, 200 * 8);
    char *a = conf_memory(t, 8), *b = conf_memory(t, 8);
    for (uint64_t i = 0; i < 200; ++i) {
        in[i] = 7000 + i;
        conf_upload(t, stream, a, &in[i], 8);
        conf_copy(t, stream, a, b, 8);
        WANT_OK(t, rondo_stream_copy(stream, &out[i], b, 8, RONDO_COPY_DEVICE_TO_HOST));
    }
    conf_sync(t, stream);
    for (uint64_t i = 0; i < 200; ++i)
        WANT(t, out[i] == 7000 + i, "round %llu brought %llu back", (unsigned long long)i, (unsigned long long)out[i]);
}

/* -------------------------------------------------------------------------------------------------------- fills */

static void fill_values(conf *t) {
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0x5a};
    rondo_stream *stream = conf_stream(t);
    for (size_t i = 0; i < COPY_SIZES; ++i) {
        uint64_t size = copy_sizes[i], whole = size + 2 * COPY_GUARD;
        uint8_t value = values[i % 6], guard = (uint8_t)~value;
        uint8_t *content = conf_host(t, size), *all = conf_host(t, whole), *memory = conf_memory(t, whole);
        memset(content, value, size);
        memset(all, guard, whole);
        conf_upload(t, stream, memory, all, whole);
        WANT_OK(t, rondo_stream_fill(stream, memory + COPY_GUARD, value, size));
        conf_download(t, stream, all, memory, whole);
        copy_want(t, all, content, size, guard, "a fill");
    }
}

static void fill_offsets(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint8_t all[64], *memory = conf_memory(t, 64);
    for (uint64_t start = 0; start < 20; ++start) {
        for (uint64_t size = 1; size < 20; ++size) {
            WANT_OK(t, rondo_stream_fill(stream, memory, 3, 64));
            WANT_OK(t, rondo_stream_fill(stream, memory + start, 200, size));
            conf_download(t, stream, all, memory, 64);
            for (uint64_t i = 0; i < 64; ++i)
                WANT(t, all[i] == (i >= start && i < start + size ? 200 : 3),
                     "a fill of %llu bytes from %llu: byte %llu", (unsigned long long)size, (unsigned long long)start,
                     (unsigned long long)i);
        }
    }
}

/* --------------------------------------------------------------------------------------------------- host calls */

typedef struct copy_log {
    uint32_t count;
    uint32_t entries[256];
} copy_log;

typedef struct copy_entry {
    copy_log *log;
    uint32_t number;
} copy_entry;

static int32_t copy_log_call(void *user) {
    copy_entry *entry = user;
    if (entry->log->count < 256) entry->log->entries[entry->log->count] = entry->number;
    entry->log->count++;
    return 0;
}

static void host_call_order(conf *t) {
    rondo_stream *stream = conf_stream(t);
    copy_log *log = conf_host(t, sizeof *log);
    copy_entry *entries = conf_host(t, 200 * sizeof *entries);
    for (uint32_t i = 0; i < 200; ++i) {
        entries[i] = (copy_entry){log, i};
        if (i % 10 == 0) conf_spin(t, stream, 1000);
        WANT_OK(t, rondo_stream_host_call(stream, copy_log_call, &entries[i]));
    }
    conf_sync(t, stream);
    WANT(t, log->count == 200, "%u of 200 host calls ran", (unsigned)log->count);
    for (uint32_t i = 0; i < 200; ++i)
        WANT(t, log->entries[i] == i, "host call %u ran as number %u", (unsigned)log->entries[i], (unsigned)i);
}

typedef struct copy_look {
    const uint64_t *bytes;
    uint64_t seen;
} copy_look;

static int32_t copy_look_call(void *user) {
    copy_look *look = user;
    look->seen = *look->bytes;
    return 0;
}

/* A host call sees what the work before it left, and not what comes after it. */
static void host_call_between_copies(conf *t) {
    rondo_stream *stream = conf_stream(t);
    uint64_t *pinned = conf_pinned(t, 8);
    char *memory = conf_memory(t, 64 * 8);
    copy_look *looks = conf_host(t, 64 * sizeof *looks);
    conf_iota(t, stream, memory, 64, 300);
    for (uint64_t i = 0; i < 64; ++i) {
        looks[i] = (copy_look){pinned, 0};
        WANT_OK(t, rondo_stream_copy(stream, pinned, memory + i * 8, 8, RONDO_COPY_DEVICE_TO_HOST));
        WANT_OK(t, rondo_stream_host_call(stream, copy_look_call, &looks[i]));
    }
    conf_sync(t, stream);
    for (uint64_t i = 0; i < 64; ++i)
        WANT(t, looks[i].seen == 300 + i, "host call %llu saw %llu", (unsigned long long)i,
             (unsigned long long)looks[i].seen);
}

static const conf_test tests[] = {
    {{"copy.host_to_device", "copy", "Copies to the device, all sizes, nothing beside the range."},
     0,
     copy_host_to_device},
    {{"copy.device_to_host", "copy", "Copies from the device, all sizes, nothing beside the range."},
     0,
     copy_device_to_host},
    {{"copy.device_to_device", "copy", "Copies on the device, all sizes, nothing beside the range."},
     0,
     copy_device_to_device},
    {{"copy.nothing", "copy fill", "Zero bytes is a success that touches nothing."}, 0, copy_nothing},
    {{"copy.overlap", "copy", "An overlap is refused or right."}, 0, copy_overlap},
    {{"copy.refuses", "copy fill", "Unknown directions, null and impossible ranges are refused."}, 0, copy_refuses},
    {{"copy.wrong_direction", "copy", "A direction that the addresses contradict is refused."},
     CONF_NEEDS_OWN_MEMORY | CONF_NEEDS_DIRECTION,
     copy_wrong_direction},
    {{"copy.in_order", "copy stream", "Copies and kernels of a stream keep their order."}, 0, copy_in_order},
    {{"fill.values", "fill", "Fills, all sizes, nothing beside the range."}, 0, fill_values},
    {{"fill.offsets", "fill", "Fills from odd addresses."}, 0, fill_offsets},
    {{"host_call.order", "host_call stream", "Host calls run once, in order, with their own argument."},
     CONF_NEEDS_HOST_CALLS,
     host_call_order},
    {{"host_call.between_copies", "host_call copy", "A host call sees what the work before it left."},
     CONF_NEEDS_HOST_CALLS,
     host_call_between_copies},
};
CONF_SUITE(conf_suite_copy, tests);
