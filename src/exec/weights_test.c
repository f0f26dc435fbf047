/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights by content: one block for equal bytes, another for others, even where the hash says that they are equal; gone with
 * the last user. On memory that the host reaches, and on memory that only copies reach. */
#include <pthread.h>

#include "exec/weights.h"
#include "graph/far_testing.h"

#define WT_BYTES 8192u

typedef struct weights_fixture {
    far_fixture far;
    rondo_instance *instance;
    rondo_device *device;
    rondo__weights *weights;
    rondo__weights_block *b[4];
} weights_fixture;

static void wt_give(weights_fixture *f, int index) {
    if (f->b[index]) rondo__weights_give(f->weights, f->b[index]);
    f->b[index] = NULL;
}

static void wt_close(weights_fixture *f) {
    for (int i = 0; i < 4; i++) wt_give(f, i);
    rondo__weights_release(f->weights);
    rondo_device_release(f->device);
    rondo_instance_release(f->instance);
}

static void wt_open(rondo_test *t, weights_fixture *f, bool far_away) {
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    memset(f, 0, sizeof *f);
    if (far_away) far_fixture_open(t, &f->far);
    T_DEFER(t, wt_close, f);
    options.ignore_plugin_path = 1;
    if (far_away) {
        f->device = f->far.device;
        rondo_device_retain(f->device);
    } else {
        T_OK(t, rondo_instance_create(&options, &f->instance));
        T_OK(t, rondo_device_open(f->instance, "cpu", NULL, &f->device));
    }
    T_OK(t, rondo__weights_create(f->device, NULL, &f->weights));
}

static uint64_t wt_allocated(rondo_test *t, const weights_fixture *f) {
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    T_OK(t, rondo_memory_get_statistics(f->device, (rondo_pool_id){0, 0}, &statistics));
    return statistics.requested_bytes;
}

static rondo_status wt_fill(const void *self, void *out) {
    memset(out, *(const int *)self, WT_BYTES);
    return RONDO_OK;
}

static rondo_status wt_fails(const void *self, void *out) {
    (void)self, (void)out;
    return RONDO__FAIL(UNSUPPORTED, KERNEL, "cannot be packed");
}

static void wt_read(rondo_test *t, const weights_fixture *f, const rondo__weights_block *block, unsigned char *out) {
    if (f->far.device)
        T_OK(t, rondo__exec_copy(f->device, (uint64_t)(uintptr_t)out, block->address, WT_BYTES,
                                 RONDO_COPY_DEVICE_TO_HOST));
    else memcpy(out, (const void *)(uintptr_t)block->address, WT_BYTES);
}

static void wt_write(rondo_test *t, const weights_fixture *f, const rondo__weights_block *block, unsigned char value) {
    unsigned char bytes[WT_BYTES];
    memset(bytes, value, sizeof bytes);
    if (f->far.device)
        T_OK(t, rondo__exec_copy(f->device, block->address, (uint64_t)(uintptr_t)bytes, WT_BYTES,
                                 RONDO_COPY_HOST_TO_DEVICE));
    else memcpy((void *)(uintptr_t)block->address, bytes, WT_BYTES);
}

static void wt_check(rondo_test *t, bool far_away) {
    weights_fixture f;
    const int one = 1, two = 2;
    unsigned char bytes[WT_BYTES];
    wt_open(t, &f, far_away);
    uint64_t none = wt_allocated(t, &f);
    T_OK(t, rondo__weights_take(f.weights, WT_BYTES, wt_fill, &one, &f.b[0]));
    uint64_t once = wt_allocated(t, &f);
    T_TRUE(t, once >= none + WT_BYTES);
    T_OK(t, rondo__weights_take(f.weights, WT_BYTES, wt_fill, &one, &f.b[1]));
    T_OK(t, rondo__weights_take(f.weights, WT_BYTES, wt_fill, &two, &f.b[2]));
    T_TRUE(t, f.b[0] == f.b[1] && f.b[2] != f.b[0]);
    T_EQ(t, f.b[0]->address % RONDO__EXEC_ALIGNMENT, 0);
    T_EQ(t, wt_allocated(t, &f) - none, 2 * (once - none));
    wt_read(t, &f, f.b[1], bytes);
    for (uint32_t i = 0; i < WT_BYTES; i++) T_TRUE(t, bytes[i] == 1);
    wt_read(t, &f, f.b[2], bytes);
    for (uint32_t i = 0; i < WT_BYTES; i++) T_TRUE(t, bytes[i] == 2);
    wt_give(&f, 1);
    T_EQ(t, wt_allocated(t, &f) - none, 2 * (once - none)); /* somebody uses it */
    /* Two contents of one hash: the first is made another behind the hash's back. */
    wt_write(t, &f, f.b[0], 9);
    T_OK(t, rondo__weights_take(f.weights, WT_BYTES, wt_fill, &one, &f.b[1]));
    T_TRUE(t, f.b[1] != f.b[0] && f.b[1]->hash == f.b[0]->hash);
    wt_read(t, &f, f.b[1], bytes);
    T_EQ(t, bytes[0], 1);
    wt_read(t, &f, f.b[0], bytes);
    T_EQ(t, bytes[0], 9);
    T_FAILS(t, rondo__weights_take(f.weights, WT_BYTES, wt_fails, NULL, &f.b[3]), UNSUPPORTED, "packed");
    for (int i = 0; i < 3; i++) wt_give(&f, i);
    T_EQ(t, wt_allocated(t, &f), none);
}

static void test_near(rondo_test *t) { wt_check(t, false); }
static void test_far(rondo_test *t) { wt_check(t, true); }

static void *wt_work(void *argument) {
    rondo__weights *weights = argument;
    uintptr_t good = 0;
    for (int i = 0; i < 300; i++) {
        const int value = i % 3;
        rondo__weights_block *block = NULL;
        rondo_status status = rondo__weights_take(weights, WT_BYTES, wt_fill, &value, &block);
        if (status) rondo_status_release(status);
        else good += ((const unsigned char *)(uintptr_t)block->address)[WT_BYTES - 1] == value;
        if (block) rondo__weights_give(weights, block);
    }
    return (void *)good;
}

static void test_threads(rondo_test *t) {
    weights_fixture f;
    pthread_t threads[3];
    void *good = NULL;
    wt_open(t, &f, false);
    uint64_t none = wt_allocated(t, &f);
    for (int i = 0; i < 3; i++) T_EQ(t, pthread_create(&threads[i], NULL, wt_work, f.weights), 0);
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(threads[i], &good);
        T_EQ(t, (uintptr_t)good, 300);
    }
    T_EQ(t, wt_allocated(t, &f), none);
}

RONDO_TEST_MAIN(T(test_near), T(test_far), T_PLAIN(test_threads))
