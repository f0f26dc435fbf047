/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a graph's file: refused, or a graph that is saved and loaded again without a difference. The checksum of the
 * binary form is put right first, else nothing would get past it. */
#include <rondo/ir.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int32_t fuzz_append(void *user, const char *data, size_t size) {
    rondo_status status = rondo__buffer_append(user, data, size);
    rondo_status_release(status);
    return status != NULL;
}

/* Frees `text`; the saved form takes its place. */
static void fuzz_again(const rondo_allocator *allocator, const rondo_ir_graph *graph, rondo_ir_file_format format) {
    rondo__buffer first, second;
    rondo_ir_graph *loaded = NULL;
    rondo__buffer_init(&first, allocator, 1, SIZE_MAX / 2u);
    rondo__buffer_init(&second, allocator, 1, SIZE_MAX / 2u);
    rondo_status status = rondo_ir_graph_save(graph, format, fuzz_append, &first);
    if (!status) status = rondo__ir_load(allocator, NULL, NULL, "fuzz", first.data, first.count, &loaded);
    if (!status) status = rondo_ir_graph_save(loaded, format, fuzz_append, &second);
    if (status || first.count != second.count || memcmp(first.data, second.data, first.count) != 0) __builtin_trap();
    rondo_ir_graph_release(loaded);
    rondo__buffer_deinit(&first);
    rondo__buffer_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rondo_allocator allocator = rondo_allocator_default();
    rondo_ir_graph *graph = NULL;
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) return 0;
    if (size) memcpy(copy, data, size);
    if (size > RONDO__IR_FILE_CHECKSUM && *copy == (uint8_t)RONDO__IR_FILE_MAGIC[0]) {
        uint64_t sum = XXH3_64bits(copy, size - RONDO__IR_FILE_CHECKSUM);
        for (size_t i = 0; i < RONDO__IR_FILE_CHECKSUM; i++) {
            copy[size - RONDO__IR_FILE_CHECKSUM + i] = (uint8_t)(sum >> 8u * i);
        }
    }
    rondo_status status = rondo__ir_load(&allocator, NULL, NULL, "fuzz", copy, size, &graph);
    free(copy);
    if (!status) {
        fuzz_again(&allocator, graph, RONDO_IR_FILE_TEXT);
        fuzz_again(&allocator, graph, RONDO_IR_FILE_BINARY);
    }
    rondo_ir_graph_release(graph);
    rondo_status_release(status);
    return 0;
}
