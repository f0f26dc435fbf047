/* SPDX-License-Identifier: Apache-2.0
 *
 * Which thread, and what time: both without a system call where the platform allows it. */
#include "base/thread.h"

#include <time.h>

/* A pthread_t is an integer or a pointer wherever we build, and belongs to one live thread. */
uint64_t rondo__thread_id(void) { return (uint64_t)(uintptr_t)pthread_self(); }

uint64_t rondo__now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
