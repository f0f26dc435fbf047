/* SPDX-License-Identifier: Apache-2.0
 *
 * The bump allocator: blocks double up to a limit, and a request that would waste most of a block gets one of its own,
 * which is put behind the block in use. */
#include "base/arena.h"

#include <string.h>

#include "base/checked.h"

#define ARENA_ALIGNMENT 16u
#define ARENA_BLOCK_MIN ((size_t)4096)
#define ARENA_BLOCK_MAX ((size_t)1 << 20)

struct rondo__arena_block {
    struct rondo__arena_block *next;
    size_t size; /* with this header */
};

#define ARENA_HEADER ((sizeof(rondo__arena_block) + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT)

void rondo__arena_init(rondo__arena *arena, const rondo_allocator *allocator, size_t maximum) {
    *arena = (rondo__arena){.allocator = *allocator, .maximum = maximum};
}

void rondo__arena_deinit(rondo__arena *arena) {
    for (rondo__arena_block *block = arena->blocks; block;) {
        rondo__arena_block *next = block->next;
        rondo__free_aligned(&arena->allocator, block, block->size, ARENA_ALIGNMENT);
        block = next;
    }
    *arena = (rondo__arena){.allocator = arena->allocator, .maximum = arena->maximum};
}

/* The offset in the newest block at which `size` bytes fit; false when they do not. */
static bool arena_fits(const rondo__arena *arena, size_t size, size_t alignment, size_t *out_offset) {
    if (!arena->blocks) return false;
    uintptr_t base = (uintptr_t)arena->blocks;
    uint64_t at = 0;
    if (!rondo__checked_align_u64(base + arena->used, alignment, &at)) return false;
    size_t offset = (size_t)(at - base);
    if (offset > arena->capacity || size > arena->capacity - offset) return false;
    *out_offset = offset;
    return true;
}

static rondo_status arena_too_large(const rondo__arena *arena, size_t size) {
    return RONDO__FAIL(OUT_OF_RANGE, MEMORY,
                       "%zu bytes more would exceed this store's limit of %zu bytes (%zu are used)", size,
                       arena->maximum, arena->total);
}

/* A block that holds at least `need` bytes behind its header. */
static rondo_status arena_add_block(rondo__arena *arena, size_t need) {
    size_t left = arena->maximum > arena->total ? arena->maximum - arena->total : 0;
    if (need > left || ARENA_HEADER > left - need) return arena_too_large(arena, need);
    size_t size = arena->total < ARENA_BLOCK_MIN ? ARENA_BLOCK_MIN : arena->total;
    if (size > ARENA_BLOCK_MAX) size = ARENA_BLOCK_MAX;
    if (size > left) size = left;
    bool own = need > size / 4 && arena->blocks;
    if (own || size < ARENA_HEADER + need) size = ARENA_HEADER + need;
    void *memory = NULL;
    RONDO__TRY(rondo__allocate_aligned(&arena->allocator, size, ARENA_ALIGNMENT, &memory));
    if (own || size == ARENA_HEADER + need) rondo__prefault(memory, size); /* all of it is about to be written */
    rondo__arena_block *block = memory;
    block->size = size;
    arena->total += size;
    size_t room_old = arena->blocks ? arena->capacity - arena->used : 0;
    if (arena->blocks && own && room_old > size - ARENA_HEADER - need) {
        /* The block in use has more to give than the new one will: keep it in front. The caller takes from the second. */
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = ARENA_HEADER;
        arena->capacity = size;
    }
    return RONDO_OK;
}

rondo_status rondo__arena_take(rondo__arena *arena, size_t size, size_t alignment, void **out_pointer) {
    *out_pointer = NULL;
    if (alignment < ARENA_ALIGNMENT) alignment = ARENA_ALIGNMENT;
    if (alignment & (alignment - 1))
        return RONDO__FAIL(INVALID_ARGUMENT, MEMORY, "alignment %zu is not a power of two", alignment);
    size_t take = size ? size : 1, offset = 0;
    if (!arena_fits(arena, take, alignment, &offset)) {
        /* Blocks are aligned to 16; wider alignment is found inside the block. */
        size_t need = 0;
        if (!rondo__checked_add_size(take, alignment - ARENA_ALIGNMENT, &need)) return arena_too_large(arena, size);
        const rondo__arena_block *before = arena->blocks;
        RONDO__TRY(arena_add_block(arena, need));
        if (arena->blocks == before) {
            uintptr_t start = (uintptr_t)before->next + ARENA_HEADER;
            *out_pointer = (char *)before->next + ARENA_HEADER + (((start + alignment - 1) & ~(alignment - 1)) - start);
            return RONDO_OK;
        }
        if (!arena_fits(arena, take, alignment, &offset))
            return RONDO__FAIL(INTERNAL, MEMORY, "a fresh arena block has no room for %zu bytes", take);
    }
    arena->used = offset + take;
    *out_pointer = (char *)arena->blocks + offset;
    return RONDO_OK;
}

rondo_status rondo__arena_allocate_aligned(rondo__arena *arena, size_t size, size_t alignment, void **out_pointer) {
    RONDO__TRY(rondo__arena_take(arena, size, alignment, out_pointer));
    memset(*out_pointer, 0, size ? size : 1);
    return RONDO_OK;
}

rondo_status rondo__arena_allocate(rondo__arena *arena, size_t size, void **out_pointer) {
    return rondo__arena_allocate_aligned(arena, size, ARENA_ALIGNMENT, out_pointer);
}

rondo_status rondo__arena_allocate_array(rondo__arena *arena, size_t count, size_t size, void **out_pointer) {
    size_t bytes = 0;
    *out_pointer = NULL;
    if (!rondo__checked_mul_size(count, size, &bytes))
        return RONDO__FAIL(OUT_OF_RANGE, MEMORY, "%zu elements of %zu bytes exceed the address space", count, size);
    return rondo__arena_allocate(arena, bytes, out_pointer);
}

rondo_status rondo__arena_copy_aligned(rondo__arena *arena, const void *data, size_t size, size_t alignment,
                                       void **out_pointer) {
    RONDO__TRY(rondo__arena_take(arena, size, alignment, out_pointer));
    if (size) memcpy(*out_pointer, data, size);
    return RONDO_OK;
}

rondo_status rondo__arena_copy(rondo__arena *arena, const void *data, size_t size, void **out_pointer) {
    return rondo__arena_copy_aligned(arena, data, size, ARENA_ALIGNMENT, out_pointer);
}

rondo_status rondo__arena_string(rondo__arena *arena, const char *text, size_t length, const char **out_text) {
    size_t size = 0;
    void *copy = NULL;
    *out_text = NULL;
    if (!rondo__checked_add_size(length, 1, &size)) return arena_too_large(arena, length);
    RONDO__TRY(rondo__arena_take(arena, size, ARENA_ALIGNMENT, &copy));
    if (length) memcpy(copy, text, length);
    ((char *)copy)[length] = 0;
    *out_text = copy;
    return RONDO_OK;
}
