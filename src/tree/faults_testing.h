/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model device and the model framework can be made to fail at, one call of one entry. What undoes (end, release,
 * delete) does its work and then says that something failed, as drivers do with errors of earlier work. */
#ifndef RONDO_SRC_TREE_FAULTS_TESTING_H
#define RONDO_SRC_TREE_FAULTS_TESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define TT_FAULTS(X) \
    X(POOL_HANDLE)   \
    X(POOL_BEGIN)    \
    X(POOL_END)      \
    X(POOL_RELEASE)  \
    X(STATE_GET)     \
    X(STATE_SET)     \
    X(POOL_CHECK)    \
    X(RAW_DELETE)    \
    X(POOL_BYTES)    \
    X(POOL_TRIM)     \
    X(PREPARE)       \
    X(STREAM_CREATE) \
    X(STREAM_WAIT)   \
    X(SYNCHRONIZE)   \
    X(GRAPH_CREATE)  \
    X(CAPTURE_BEGIN) \
    X(CAPTURE_END)   \
    X(REPLAY)        \
    X(DECLARE_SLOT)  \
    X(BIND)          \
    X(COPY)          \
    X(ALLOCATE)      \
    X(LAUNCH)        \
    X(RUN)           \
    X(MAKE_INPUT)    \
    X(COPY_INPUTS)   \
    X(KEEP)          \
    X(MAKE_OUTPUTS)  \
    X(OWN)           \
    X(EVACUATE)      \
    X(ENTER)         \
    X(WATCH)

typedef enum tt_fault_entry {
#define TT_X(name) TT_FAULT_##name,
    TT_FAULTS(TT_X)
#undef TT_X
        TT_FAULT_COUNT
} tt_fault_entry;

/* `entry` fails once, when it is called for the nth time from now on; nth 0: never. */
typedef struct tt_faults {
    tt_fault_entry entry;
    uint64_t nth;
    bool fired;
    uint64_t calls[TT_FAULT_COUNT];
} tt_faults;

static inline const char *tt_fault_name(tt_fault_entry entry) {
    static const char *const names[] = {
#define TT_X(name) #name,
        TT_FAULTS(TT_X)
#undef TT_X
    };
    return names[entry];
}

/* What a test does itself, between calls of the tree, neither counts nor fails. */
static _Thread_local bool tt_paused;

static inline bool tt_pause(void) {
    bool before = tt_paused;
    tt_paused = true;
    return before;
}

static inline void tt_resume(bool before) { tt_paused = before; }

static inline rondo_status tt_fault(tt_faults *faults, tt_fault_entry entry) {
    if (tt_paused) return RONDO_OK;
    (void)__atomic_fetch_add(&faults->calls[entry], 1, __ATOMIC_RELAXED); /* from any thread */
    if (!faults->nth || faults->entry != entry || --faults->nth) return RONDO_OK;
    faults->fired = true;
    return RONDO__FAIL(DEVICE_LOST, DRIVER, "%s was made to fail", tt_fault_name(entry));
}

#endif
