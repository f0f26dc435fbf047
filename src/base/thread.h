/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutexes, reference counts, thread identity, clocks. */
#ifndef RONDO_SRC_BASE_THREAD_H
#define RONDO_SRC_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef pthread_mutex_t rondo__mutex;
static inline void rondo__mutex_init(rondo__mutex *mutex) { (void)pthread_mutex_init(mutex, NULL); }
static inline void rondo__mutex_deinit(rondo__mutex *mutex) { (void)pthread_mutex_destroy(mutex); }
static inline void rondo__mutex_lock(rondo__mutex *mutex) { (void)pthread_mutex_lock(mutex); }
static inline void rondo__mutex_unlock(rondo__mutex *mutex) { (void)pthread_mutex_unlock(mutex); }

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define RONDO__HAS_SINGLE_THREADED 1
#endif
#endif
/* Whether the process has no other thread now, so that nothing can come between a load and a store: glibc's flag, which is
 * false for ever once a second thread was made. */
static inline bool rondo__alone(void) {
#if defined(RONDO__HAS_SINGLE_THREADED)
    return __libc_single_threaded;
#else
    return false;
#endif
}

/* Counting costs a locked instruction only where there are threads. */
typedef atomic_uint_least32_t rondo__ref_count;
static inline void rondo__ref_init(rondo__ref_count *count) { atomic_init(count, 1u); }
static inline void rondo__ref_retain(rondo__ref_count *count) {
    if (rondo__alone()) {
        atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1u, memory_order_relaxed);
        return;
    }
    (void)atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
}
/* True when it was the last: the caller destroys. */
static inline bool rondo__ref_release(rondo__ref_count *count) {
    if (rondo__alone()) {
        uint_least32_t before = atomic_load_explicit(count, memory_order_relaxed);
        atomic_store_explicit(count, before - 1u, memory_order_relaxed);
        return before == 1u;
    }
    return atomic_fetch_sub_explicit(count, 1u, memory_order_acq_rel) == 1u;
}

/* Unlike any other live thread's; never 0. */
uint64_t rondo__thread_id(void);
/* Monotonic. */
uint64_t rondo__now_ns(void);

#endif
