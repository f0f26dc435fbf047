/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of arrays, for the files of this folder.
 *
 * An array and a storage are one piece of memory, a unit, whichever of the two is used: the storage of an array that made
 * one is its own. So an output that comes again and again needs no allocation, only its unit.
 *
 * A unit that a tree's recording keeps for its next replay is busy as long as anybody holds the array (or, of a storage,
 * any array on it), then idle. Who ends it and who takes it up again may be different threads: `keeper` says who has it. */
#ifndef RONDO_SRC_TREE_NATIVE_NATIVE_H
#define RONDO_SRC_TREE_NATIVE_NATIVE_H

#include <rondo/array.h>

#include "base/checked.h"
#include "device/device.h"

typedef struct rondo__native_host rondo__native_host;

/* What the storage's end frees when it has no lease. */
enum { RONDO__STORAGE_NOTHING = 0, RONDO__STORAGE_BLOCK = 1, RONDO__STORAGE_PINNED = 2, RONDO__STORAGE_WRAPPED = 3 };

/* Address, bytes, lease and owns change when the storage gets other memory, which a tree may do while others look. */
typedef struct rondo__storage {
    atomic_uint_least64_t address; /* 0: no memory */
    _Atomic(rondo_tree_lease *) lease;
    uint64_t epoch; /* of the lease, and written before it */
    atomic_uint_least64_t bytes;
    rondo_device *device; /* retained, in every unit */
    rondo__ref_count references;
    atomic_uint_least8_t owns;
    uint8_t place;
    bool serial; /* ends one at a time with everything else of its tree */
} rondo__storage;

enum {
    RONDO__UNIT_FREE = 0, /* of nobody: it goes when it ends */
    RONDO__UNIT_BUSY = 1, /* kept, and in use */
    RONDO__UNIT_IDLE = 2  /* kept, and ended */
};

struct rondo_array {
    rondo__storage *storage;
    uint64_t word;   /* rondo_tensor_host's: what it is like */
    uint64_t offset; /* bytes from where the storage begins */
    uint64_t bytes;
    rondo__ref_count references;
    atomic_uint_least32_t keeper;
    rondo_dtype dtype;
    int32_t rank;
    rondo__native_host *home; /* retained; of units that have had a lease, or were made for an output */
    uint64_t value;           /* of numbers. Spare: the next one */
    rondo__storage own;
    int64_t shape[RONDO_RANK_MAX], strides[RONDO_RANK_MAX];
};

/* What an array is like, apart from where. */
typedef struct rondo__layout {
    rondo_dtype dtype;
    int32_t rank;
    uint64_t bytes;
    int64_t shape[RONDO_RANK_MAX], strides[RONDO_RANK_MAX];
} rondo__layout;

/* What a recording keeps of an output or an input. */
typedef struct rondo__kept {
    rondo_array *itself; /* retained; else null, and the rest counts */
    rondo_array *unit;   /* for the next replay; null: none yet */
    uint64_t word, offset;
    const rondo_tree_lease *lease; /* that came last with the output, where its memory lies, and what was tied to it */
    uint64_t lease_pointer, lease_bytes, lease_epoch;
    const rondo__storage *lease_storage;
    rondo__layout layout;
} rondo__kept;

#define RONDO__NATIVE_SPARE 64u

/* Units that have ended wait here to be used again. */
struct rondo__native_host {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_device *device; /* retained until it is closed */
    int64_t (*generation)(void *user);
    void *generation_user;
    bool serial;
    rondo__mutex
        mutex; /* spare. Units with this home are freed under it: whoever has it may look at a leased storage */
    bool closed;
    uint32_t spare_count;
    rondo_array *spare; /* by `value` */
};

/* layout.c */
/* strides null: compact. INVALID_ARGUMENT, OUT_OF_RANGE. */
RONDO_MUST_USE rondo_status rondo__layout_make(rondo_dtype dtype, int32_t rank, const int64_t *shape,
                                               const int64_t *strides, rondo__layout *out_layout);
/* The word of such an array there. device: of place DEVICE. */
uint64_t rondo__layout_word(const rondo__layout *layout, rondo_tensor_place place, const rondo_device *device);
/* Bytes that elements take; of types of less than a byte only whole bytes. OUT_OF_RANGE, INVALID_ARGUMENT. */
RONDO_MUST_USE rondo_status rondo__layout_offset(rondo_dtype dtype, uint64_t elements, uint64_t *out_bytes);
void rondo__layout_put(const rondo__layout *layout, rondo_array *array);

/* unit.c */
/* Nothing is set but the device, which is retained, and the home (may be null). */
RONDO_MUST_USE rondo_status rondo__unit_make(rondo_device *device, rondo__native_host *home, rondo_array **out_unit);
/* A spare one of the home, or a new one. */
RONDO_MUST_USE rondo_status rondo__unit_take(rondo__native_host *home, rondo_array **out_unit);
/* It has ended, and nobody has it. */
void rondo__unit_drop(rondo_array *unit);
/* It has ended: idle if it is kept, else dropped. */
static inline void rondo__unit_end(rondo_array *unit) {
    uint_least32_t busy = atomic_load_explicit(&unit->keeper, memory_order_relaxed);
    if ((unit->own.serial || rondo__alone()) && busy == RONDO__UNIT_BUSY) {
        atomic_store_explicit(&unit->keeper, RONDO__UNIT_IDLE, memory_order_release);
        return;
    }
    busy = RONDO__UNIT_BUSY;
    if (!atomic_compare_exchange_strong_explicit(&unit->keeper, &busy, RONDO__UNIT_IDLE, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        rondo__unit_drop(unit);
    }
}
/* Its first home: it may have a lease from now on. */
void rondo__unit_settle(rondo_array *unit, rondo__native_host *home);
/* Nobody keeps the unit any more. */
void rondo__unit_let_go(rondo_array *unit);
/* The home's end. */
void rondo__native_host_release(rondo__native_host *home);

/* storage.c */
static inline rondo_array *rondo__storage_unit(rondo__storage *storage) {
    return (rondo_array *)(void *)((char *)storage - offsetof(rondo_array, own));
}
static inline uint64_t rondo__storage_address(const rondo__storage *storage) {
    return atomic_load_explicit(&storage->address, memory_order_relaxed);
}
static inline uint64_t rondo__storage_bytes(const rondo__storage *storage) {
    return atomic_load_explicit(&storage->bytes, memory_order_relaxed);
}
static inline uint8_t rondo__storage_owns(const rondo__storage *storage) {
    return atomic_load_explicit(&storage->owns, memory_order_relaxed);
}
/* What it lies on. A lease is set apart, and last. */
static inline void rondo__storage_put(rondo__storage *storage, uint64_t address, uint64_t bytes, uint8_t owns) {
    atomic_store_explicit(&storage->address, address, memory_order_relaxed);
    atomic_store_explicit(&storage->bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&storage->owns, owns, memory_order_relaxed);
}
static inline rondo_tree_lease *rondo__storage_lease(const rondo__storage *storage) {
    return atomic_load_explicit(&storage->lease, memory_order_acquire);
}
/* It has ended: its memory goes, or goes back. */
void rondo__storage_end(rondo__storage *storage);
static inline void rondo__storage_release(rondo__storage *storage) {
    bool last = storage->serial && atomic_load_explicit(&storage->references, memory_order_relaxed) == 1u;
    if (!last && !rondo__ref_release(&storage->references)) return;
    rondo_tree_lease *lease = rondo__storage_lease(storage);
    if (lease) {
        rondo_array *unit = rondo__storage_unit(storage);
        rondo_tree_lease_release(lease, storage->epoch);
        atomic_store_explicit(&storage->lease, NULL, memory_order_relaxed);
        rondo__unit_end(unit);
    } else {
        rondo__storage_end(storage);
    }
}
/* rondo_array_release, with what happens to an input that others hold here. */
static inline void rondo__array_let_go(rondo_array *array) {
    if (!array) return;
    uint_least32_t count = atomic_load_explicit(&array->references, memory_order_relaxed);
    if (count > 1u && rondo__alone()) atomic_store_explicit(&array->references, count - 1u, memory_order_relaxed);
    else rondo_array_release(array);
}
/* One more, unless the last one is going. Its unit must be known not to be freed meanwhile. */
bool rondo__storage_try_retain(rondo__storage *storage);
/* STALE (tree) when its lease is over. */
RONDO_MUST_USE rondo_status rondo__storage_check(const rondo__storage *storage);
/* Takes the lease away and gives it the block: false when it has no lease any more. The old lease is not told. */
bool rondo__storage_move(rondo__storage *storage, uint64_t address, uint64_t bytes, rondo_tree_lease **out_lease,
                         uint64_t *out_epoch);

/* outputs.c */
void rondo__native_drop(void *user, void *metadata);
RONDO_MUST_USE rondo_status rondo__native_keep(void *user, void *array, bool itself, void **out_metadata);
RONDO_MUST_USE rondo_status rondo__native_make_outputs(void *user, const rondo_tree_output *outputs, uint32_t count,
                                                       void *const *inputs, void **out_arrays);

/* ops.c */
/* Device to device, in stream order. */
RONDO_MUST_USE rondo_status rondo__native_copy(rondo_stream *stream, const rondo_tree_copy *copies, uint64_t count);

#endif
