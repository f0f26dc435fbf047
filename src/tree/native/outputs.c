/* SPDX-License-Identifier: Apache-2.0
 *
 * The outputs of a replay: what a recording kept of each, and how it becomes an array again. Each has a unit that is used
 * again as soon as the output that had it before has ended, so that a program whose outputs come and go allocates nothing. */
#include <string.h>

#include "tree/native/native.h"

/* -------------------------------------------------------------------------------------------------- keep, drop */

rondo_status rondo__native_keep(void *user, void *array, bool itself, void **out_metadata) {
    rondo__native_host *host = user;
    const rondo_array *like = array;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_zeroed(&host->allocator, sizeof(rondo__kept), &memory));
    rondo__kept *kept = memory;
    if (itself) {
        rondo_array_retain(array);
        kept->itself = array;
    } else {
        kept->word = like->word;
        kept->offset = like->offset;
        kept->layout.dtype = like->dtype;
        kept->layout.rank = like->rank;
        kept->layout.bytes = like->bytes;
        memcpy(kept->layout.shape, like->shape, sizeof like->shape);
        memcpy(kept->layout.strides, like->strides, sizeof like->strides);
    }
    *out_metadata = kept;
    return RONDO_OK;
}

void rondo__native_drop(void *user, void *metadata) {
    rondo__native_host *host = user;
    rondo__kept *kept = metadata;
    if (!kept) return;
    rondo_array_release(kept->itself);
    rondo__unit_let_go(kept->unit);
    rondo__free(&host->allocator, kept, sizeof *kept);
}

/* -------------------------------------------------------------------------------------------------------- units */

static rondo_status output_new_unit(rondo__native_host *host, rondo__kept *kept, rondo_array **out_unit) {
    rondo_array *unit = NULL;
    RONDO__TRY(rondo__unit_take(host, &unit));
    rondo__layout_put(&kept->layout, unit);
    unit->word = kept->word;
    unit->offset = kept->offset;
    unit->own.place = RONDO_TENSOR_DEVICE;
    if (!kept->unit) {
        atomic_store_explicit(&unit->keeper, RONDO__UNIT_BUSY, memory_order_relaxed);
        kept->unit = unit;
    }
    *out_unit = unit;
    return RONDO_OK;
}

/* The kept one if it has ended; else another. Nobody else has it. */
static inline rondo_status output_unit(rondo__native_host *host, rondo__kept *kept, rondo_array **out_unit) {
    rondo_array *unit = kept->unit;
    if (!unit || atomic_load_explicit(&unit->keeper, memory_order_acquire) != RONDO__UNIT_IDLE) {
        RONDO__TRY(output_new_unit(host, kept, &unit));
    } else {
        atomic_store_explicit(&unit->keeper, RONDO__UNIT_BUSY, memory_order_relaxed);
    }
    atomic_store_explicit(&unit->references, 1u, memory_order_relaxed);
    *out_unit = unit;
    return RONDO_OK;
}

/* A recording's output has one lease for ever, and mostly the same unit: nothing of it is asked or told again, unless the
 * lease was given elsewhere in between, which its epoch tells. */
static inline bool output_is_tied(const rondo__kept *kept, const rondo_tree_output *output,
                                  const rondo__storage *storage) {
    return kept->lease == output->lease && kept->lease_storage == storage && kept->lease_epoch + 1u == output->epoch;
}

static void output_tie(rondo__kept *kept, rondo_tree_lease *lease, rondo__storage *storage) {
    if (kept->lease != lease) {
        kept->lease = lease;
        kept->lease_pointer = rondo_tree_lease_pointer(lease);
        kept->lease_bytes = rondo_tree_lease_bytes(lease);
    }
    kept->lease_storage = storage;
    rondo_tree_lease_set_storage(lease, storage);
}

/* A new storage on the lease's memory. */
static inline rondo_status output_fresh(rondo__native_host *host, const rondo_tree_output *output, void **out) {
    rondo_array *unit = NULL;
    rondo__kept *kept = output->metadata;
    RONDO__TRY(output_unit(host, kept, &unit));
    rondo__storage *storage = &unit->own;
    unit->storage = storage;
    if (!output_is_tied(kept, output, storage)) output_tie(kept, output->lease, storage);
    kept->lease_epoch = output->epoch;
    rondo__storage_put(storage, kept->lease_pointer, kept->lease_bytes, RONDO__STORAGE_NOTHING);
    storage->epoch = output->epoch;
    atomic_store_explicit(&storage->references, 1u, memory_order_relaxed);
    atomic_store_explicit(&storage->lease, output->lease, memory_order_release);
    *out = unit;
    return RONDO_OK;
}

/* -------------------------------------------------------------------------------------------------------- views */

/* The reference to the storage goes to the array, or is released. */
static rondo_status output_view(rondo__native_host *host, const rondo_tree_output *output, rondo__storage *storage,
                                uint64_t offset, void **out) {
    rondo__kept *kept = output->metadata;
    rondo_array *unit = NULL;
    uint64_t end = 0;
    rondo_status status = RONDO_OK;
    if (!rondo__checked_add_u64(offset, kept->layout.bytes, &end) || end > rondo__storage_bytes(storage)) {
        status = RONDO__FAIL(OUT_OF_RANGE, TREE,
                             "an output of a recording lies at byte %llu of a storage of %llu bytes, and has %llu",
                             (unsigned long long)offset, (unsigned long long)rondo__storage_bytes(storage),
                             (unsigned long long)kept->layout.bytes);
    }
    if (!status) status = output_unit(host, kept, &unit);
    if (status) {
        rondo__storage_release(storage);
        return status;
    }
    unit->storage = storage;
    unit->offset = offset;
    *out = unit;
    return RONDO_OK;
}

/* An output of an earlier run, if nobody has ended it meanwhile: its unit is freed under the home's mutex, after the
 * lease is over, so while the lease lives the unit is there to be looked at. */
static rondo_status output_path(rondo__native_host *host, const rondo_tree_output *output, void **out) {
    rondo__mutex_lock(&host->mutex);
    rondo__storage *storage =
        rondo_tree_lease_alive(output->lease, output->epoch) ? rondo_tree_lease_storage(output->lease) : NULL;
    bool held = storage && rondo__storage_try_retain(storage);
    rondo__mutex_unlock(&host->mutex);
    if (held) return output_view(host, output, storage, ((const rondo__kept *)output->metadata)->offset, out);
    return RONDO__FAIL(STALE, TREE,
                       "an output of an earlier run, which another output lies on, was released meanwhile");
}

static rondo_status output_input(rondo__native_host *host, const rondo_tree_output *output, const rondo_array *input,
                                 void **out) {
    if (!input || input->storage->place != RONDO_TENSOR_DEVICE) {
        return RONDO__FAIL(INTERNAL, TREE, "input %u, which an output lies on, is no array any more", output->index);
    }
    rondo__ref_retain(&input->storage->references);
    return output_view(host, output, input->storage, input->offset + (uint64_t)output->offset, out);
}

static rondo_status output_alias(rondo__native_host *host, const rondo_tree_output *output, uint32_t made,
                                 void **arrays, void **out) {
    const rondo_array *first = output->index < made ? arrays[output->index] : NULL;
    if (!first) return RONDO__FAIL(INTERNAL, TREE, "output %u, which another lies on, was not made", output->index);
    rondo__ref_retain(&first->storage->references);
    return output_view(host, output, first->storage, ((const rondo__kept *)output->metadata)->offset, out);
}

/* --------------------------------------------------------------------------------------------------------- make */

/* Those made are unmade; what they lease was never theirs. */
static rondo_status outputs_unmake(const rondo_tree_output *outputs, uint32_t made, void **arrays,
                                   rondo_status status) {
    for (uint32_t i = made; i-- > 0;) {
        rondo_array *array = arrays[i];
        if (outputs[i].kind == RONDO_TREE_OUTPUT_FRESH) {
            atomic_store_explicit(&array->own.lease, NULL, memory_order_relaxed);
        }
        rondo_array_release(array);
        arrays[i] = NULL;
    }
    return status;
}

rondo_status rondo__native_make_outputs(void *user, const rondo_tree_output *outputs, uint32_t count,
                                        void *const *inputs, void **out_arrays) {
    rondo__native_host *host = user;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; i < count; i++) {
        const rondo_tree_output *output = &outputs[i];
        rondo__kept *kept = output->metadata;
        void **out = &out_arrays[i];
        switch (output->kind) {
        case RONDO_TREE_OUTPUT_FRESH: status = output_fresh(host, output, out); break;
        case RONDO_TREE_OUTPUT_KEPT:
            if (kept) rondo_array_retain(kept->itself);
            *out = kept ? kept->itself : NULL;
            break;
        case RONDO_TREE_OUTPUT_ALIAS: status = output_alias(host, output, i, out_arrays, out); break;
        case RONDO_TREE_OUTPUT_PATH: status = output_path(host, output, out); break;
        default: status = output_input(host, output, inputs ? inputs[output->index] : NULL, out); break;
        }
        if (status) return outputs_unmake(outputs, i, out_arrays, status);
    }
    return RONDO_OK;
}
