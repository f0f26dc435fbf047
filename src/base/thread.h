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

typedef atomic_uint_least32_t rondo__ref_count;
static inline void rondo__ref_init(rondo__ref_count *count) { atomic_init(count, 1u); }
static inline void rondo__ref_retain(rondo__ref_count *count) {
    (void)atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
}
/* True when it was the last: the caller destroys. */
static inline bool rondo__ref_release(rondo__ref_count *count) {
    return atomic_fetch_sub_explicit(count, 1u, memory_order_acq_rel) == 1u;
}

/* Unlike any other live thread's; never 0. */
uint64_t rondo__thread_id(void);
/* Monotonic. */
uint64_t rondo__now_ns(void);

#endif
