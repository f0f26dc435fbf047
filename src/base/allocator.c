/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory: every request becomes one call of the allocator that was passed down, and every refusal a status. */
#include "base/allocator.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

/* What malloc aligns to anyway needs no special call. */
static void *allocator_default_reallocate(void *self, void *pointer, size_t old_size, size_t new_size,
                                          size_t alignment) {
    (void)self;
    if (!new_size) {
        free(pointer);
        return NULL;
    }
    if (new_size > PTRDIFF_MAX) return NULL;
    if (alignment <= _Alignof(max_align_t)) return pointer ? realloc(pointer, new_size) : malloc(new_size);
    void *fresh = NULL;
    if (posix_memalign(&fresh, alignment, new_size) != 0) return NULL;
    if (pointer) {
        memcpy(fresh, pointer, old_size < new_size ? old_size : new_size);
        free(pointer);
    }
    return fresh;
}

rondo_allocator rondo_allocator_default(void) { return (rondo_allocator){NULL, allocator_default_reallocate}; }

static rondo_status allocator_refused(size_t size) {
    return RONDO__FAIL(OUT_OF_MEMORY, MEMORY, "no host memory for %zu bytes", size);
}

rondo_status rondo__allocate_aligned(const rondo_allocator *allocator, size_t size, size_t alignment,
                                     void **out_pointer) {
    *out_pointer = NULL;
    if (!size) return RONDO_OK;
    void *pointer = allocator->reallocate(allocator->self, NULL, 0, size, alignment);
    if (!pointer) return allocator_refused(size);
    *out_pointer = pointer;
    return RONDO_OK;
}

enum { PREFAULT_FROM = 65536 }; /* bytes; below, the call costs what it saves */

void rondo__prefault(void *pointer, size_t size) {
#ifdef MADV_POPULATE_WRITE /* Linux 5.14; an older one answers that it knows no such advice, and nothing is lost */
    if (size < PREFAULT_FROM) return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)pointer + page - 1u) & ~(page - 1u), to = ((uintptr_t)pointer + size) & ~(page - 1u);
    if (to > from) (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
#else
    (void)pointer;
    (void)size;
#endif
}

rondo_status rondo__allocate(const rondo_allocator *allocator, size_t size, void **out_pointer) {
    return rondo__allocate_aligned(allocator, size, 0, out_pointer);
}

rondo_status rondo__allocate_zeroed(const rondo_allocator *allocator, size_t size, void **out_pointer) {
    RONDO__TRY(rondo__allocate_aligned(allocator, size, 0, out_pointer));
    if (size) memset(*out_pointer, 0, size);
    return RONDO_OK;
}

rondo_status rondo__allocate_array(const rondo_allocator *allocator, size_t count, size_t size, void **out_pointer) {
    *out_pointer = NULL;
    size_t bytes = 0;
    if (!rondo__checked_mul_size(count, size, &bytes))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu elements of %zu bytes exceed the address space", count, size);
    return rondo__allocate_zeroed(allocator, bytes, out_pointer);
}

void rondo__free_aligned(const rondo_allocator *allocator, void *pointer, size_t size, size_t alignment) {
    if (pointer) (void)allocator->reallocate(allocator->self, pointer, size, 0, alignment);
}

void rondo__free(const rondo_allocator *allocator, void *pointer, size_t size) {
    rondo__free_aligned(allocator, pointer, size, 0);
}

rondo_status rondo__reallocate(const rondo_allocator *allocator, void **pointer, size_t old_size, size_t new_size) {
    if (!new_size) {
        rondo__free(allocator, *pointer, old_size);
        *pointer = NULL;
        return RONDO_OK;
    }
    void *fresh = allocator->reallocate(allocator->self, *pointer, *pointer ? old_size : 0, new_size, 0);
    if (!fresh) return allocator_refused(new_size);
    *pointer = fresh;
    return RONDO_OK;
}

rondo_status rondo__string_copy(const rondo_allocator *allocator, const char *text, char **out_text) {
    *out_text = NULL;
    if (!text) return RONDO_OK;
    size_t size = strlen(text) + 1;
    void *copy = NULL;
    RONDO__TRY(rondo__allocate(allocator, size, &copy));
    memcpy(copy, text, size);
    *out_text = copy;
    return RONDO_OK;
}

void rondo__string_free(const rondo_allocator *allocator, char *text) {
    if (text) rondo__free(allocator, text, strlen(text) + 1);
}
