/* SPDX-License-Identifier: Apache-2.0
 *
 * Offline files in memory, for the tests of this room and others, as they were written. */
#ifndef RONDO_SRC_ARTIFACT_ARTIFACT_TESTING_H
#define RONDO_SRC_ARTIFACT_ARTIFACT_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "artifact/seal_testing.h"
#include "harness/harness.h"

static inline void at_free(at_bytes *bytes) { free(bytes->data); }

static inline void at_load(rondo_test *t, const char *path, at_bytes *out) {
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    out->size = size > 0 ? (size_t)size : 0;
    out->data = size > 0 ? aligned_alloc(64, (out->size + 63u) & ~(size_t)63u) : NULL;
    bool good = out->data && fseek(file, 0, SEEK_SET) == 0 && fread(out->data, 1, out->size, file) == out->size;
    if (file) (void)fclose(file);
    if (!good && rondo_test_failing(t)) T_OK(t, RONDO__FAIL(OUT_OF_MEMORY, FILE, "no memory for the file's bytes"));
    T_TRUE(t, good);
}

#endif
