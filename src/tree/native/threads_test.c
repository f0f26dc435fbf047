/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs that end on other threads than the one that makes them: each end is told once, and a unit is never in two hands.
 * Meant for the thread sanitizer, too. */
#include <pthread.h>
#include <sched.h>

#include "tree/native/lease_testing.h"

#define WORKERS 3
#define PLACES 8
#define LEASES 4
#define ROUNDS 20000

typedef struct threaded {
    native_world w;
    _Atomic(rondo_array *) places[PLACES]; /* from the maker to the workers */
    atomic_bool done;
    rondo_tree_lease leases[LEASES];
    rondo_tree_output outputs[LEASES + 1];
    rondo_array *recorded;
    uint64_t made, handed;
    atomic_uint_least64_t released, looked;
} threaded;

static threaded the_threads;

static void *worker(void *argument) {
    threaded *h = argument;
    const int64_t two = 2;
    rondo_array *mine[4] = {NULL};
    for (uint64_t n = 0; !atomic_load(&h->done) || n % PLACES; n++) {
        rondo_array *array = atomic_exchange(&h->places[n % PLACES], NULL), *view = NULL;
        void *pointer = NULL;
        if (!array) {
            (void)sched_yield();
            continue;
        }
        rondo_status status = rondo_array_data(array, &pointer); /* stale, mostly */
        rondo_status_release(status);
        rondo_array **slot = &mine[n / PLACES % 4];
        rondo_array_release(*slot);
        *slot = NULL;
        if (n % 3 == 0 && !rondo_array_alias(array, 1, &two, NULL, 1, &view)) {
            *slot = view; /* outlives the output */
        } else if (n % 3 == 1) {
            rondo_array_retain(array);
            *slot = array;
        }
        rondo_array_release(array);
        (void)atomic_fetch_add(&h->released, 1u);
    }
    for (int i = 0; i < 4; i++) rondo_array_release(mine[i]);
    return NULL;
}

static void keep_all(rondo_test *t, threaded *h) {
    const rondo_tensor_host *host = &h->w.host;
    for (int i = 0; i <= LEASES; i++) {
        if (h->outputs[i].metadata) host->drop(host->user, h->outputs[i].metadata);
        h->outputs[i].metadata = NULL;
        T_OK(t, host->keep(host->user, h->recorded, false, &h->outputs[i].metadata));
    }
}

static void hand_over(threaded *h, rondo_array *array) {
    rondo_array *before = atomic_exchange(&h->places[h->handed++ % PLACES], array);
    rondo_array_release(before);
    if (before) (void)atomic_fetch_add(&h->released, 1u);
}

/* Four outputs of their own, and one on the first of them, made as a later run would. */
static void make_round(rondo_test *t, threaded *h) {
    const rondo_tensor_host *host = &h->w.host;
    void *made[LEASES] = {NULL}, *late = NULL;
    for (int i = 0; i < LEASES; i++) h->outputs[i].epoch = lt_grant(&h->leases[i]);
    T_OK(t, host->make_outputs(host->user, h->outputs, LEASES, NULL, made));
    for (int i = 0; i < LEASES; i++) {
        rondo_array *array = made[i];
        T_TRUE(t, rondo__storage_address(array->storage) == h->leases[i].pointer);
        T_EQ(t, atomic_load(&array->references), 1);
        for (int k = 0; k < i; k++) T_TRUE(t, made[k] != array);
    }
    h->made += LEASES;
    for (int i = 0; i < LEASES; i++) hand_over(h, made[i]);
    rondo_tree_output path = h->outputs[LEASES];
    path.kind = RONDO_TREE_OUTPUT_PATH;
    path.lease = &h->leases[0];
    path.epoch = h->outputs[0].epoch;
    rondo_status status = host->make_outputs(host->user, &path, 1, NULL, &late);
    if (!status) {
        h->made++;
        T_TRUE(t, ((rondo_array *)late)->storage == rondo_tree_lease_storage(&h->leases[0]));
        hand_over(h, late);
    } else {
        T_FAILS(t, status, STALE, "released meanwhile");
    }
}

static void run_threads(rondo_test *t, threaded *h) {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) T_EQ(t, pthread_create(&threads[i], NULL, worker, h), 0);
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 64 == 63) keep_all(t, h); /* a recording goes, and another comes */
        make_round(t, h);
    }
    atomic_store(&h->done, true);
    for (int i = 0; i < WORKERS; i++) (void)pthread_join(threads[i], NULL);
}

static void test_outputs_end_on_other_threads(rondo_test *t) {
    threaded *h = &the_threads;
    const int64_t shape = 16;
    memset(h, 0, sizeof *h);
    nt_open(t, &h->w, "cpu", NULL);
    T_OK(t, rondo_array_create(h->w.stream, RONDO_DTYPE_F32, 1, &shape, &h->recorded));
    T_DEFER(t, nt_release, &h->recorded);
    for (int i = 0; i < LEASES; i++) {
        h->leases[i].pointer = 4096u * (uint64_t)(i + 1);
        h->leases[i].bytes = 64;
        h->outputs[i].kind = RONDO_TREE_OUTPUT_FRESH;
        h->outputs[i].lease = &h->leases[i];
    }
    keep_all(t, h);
    run_threads(t, h);
    for (int i = 0; i < PLACES; i++) hand_over(h, NULL);
    T_EQ(t, atomic_load(&h->released), h->made);
    uint64_t ends = 0;
    for (int i = 0; i < LEASES; i++) {
        T_EQ(t, atomic_load(&h->leases[i].ends), ROUNDS);
        T_EQ(t, atomic_load(&h->leases[i].wrong), 0);
        ends += atomic_load(&h->leases[i].ends);
    }
    T_EQ(t, ends, LEASES * ROUNDS);
    for (int i = 0; i <= LEASES; i++) h->w.host.drop(h->w.host.user, h->outputs[i].metadata);
}

RONDO_TEST_MAIN(T_PLAIN(test_outputs_end_on_other_threads))
