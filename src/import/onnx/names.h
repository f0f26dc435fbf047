/* SPDX-License-Identifier: Apache-2.0
 *
 * Names as the file holds them, to numbers. The keys are borrowed from the file's bytes, so a look-up needs no
 * terminated copy; and only names that the model itself gave can be found. */
#ifndef RONDO_SRC_IMPORT_ONNX_NAMES_H
#define RONDO_SRC_IMPORT_ONNX_NAMES_H

#include "base/allocator.h"
#include "import/pb/reader.h"

#define RONDO__ONNX_NAMES_NONE UINT32_MAX

typedef struct rondo__onnx_names_slot {
    const uint8_t *data; /* null: free */
    size_t size;
    uint64_t hash;
    uint32_t number;
} rondo__onnx_names_slot;

typedef struct rondo__onnx_names {
    rondo_allocator allocator;
    rondo__onnx_names_slot *slots;
    size_t capacity, count;
    uint64_t seed; /* so that a hostile model cannot aim at one slot */
} rondo__onnx_names;

void rondo__onnx_names_init(rondo__onnx_names *names, const rondo_allocator *allocator);
void rondo__onnx_names_deinit(rondo__onnx_names *names);
/* RONDO__ONNX_NAMES_NONE when absent. */
uint32_t rondo__onnx_names_find(const rondo__onnx_names *names, rondo__pb_bytes name);
/* The number it had before, and then nothing changes; or RONDO__ONNX_NAMES_NONE, and now it has `number`. */
RONDO_MUST_USE rondo_status rondo__onnx_names_insert(rondo__onnx_names *names, rondo__pb_bytes name, uint32_t number,
                                                     uint32_t *out_before);

#endif
