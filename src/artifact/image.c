/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a file before it is one: the life of an image, and texts that are stored once. */
#include <string.h>

#include "artifact/artifact.h"

#define IMAGE_INDEX_FIRST 64u

void rondo__artifact_image_init(rondo__artifact_image *image, const rondo_allocator *allocator) {
    *image = (rondo__artifact_image){0};
    rondo__buffer_init(&image->strings, allocator, 1, SIZE_MAX / 4);
    rondo__buffer_init(&image->index, allocator, sizeof(uint64_t), SIZE_MAX / 64);
    rondo__buffer_init(&image->words, allocator, sizeof(uint64_t), SIZE_MAX / 64);
    rondo__buffer_init(&image->constants, allocator, sizeof(rondo__artifact_piece), SIZE_MAX / 64);
    rondo__buffer_init(&image->sets, allocator, sizeof(rondo__artifact_set), RONDO__ARTIFACT_PARTITIONS_MAX / 2);
    rondo__buffer_init(&image->packed, allocator, sizeof(rondo__artifact_piece), SIZE_MAX / 64);
    rondo__buffer_init(&image->own, allocator, sizeof(rondo__artifact_piece), SIZE_MAX / 64);
}

void rondo__artifact_image_deinit(rondo__artifact_image *image) {
    rondo__buffer_deinit(&image->packed);
    rondo__buffer_deinit(&image->own);
    rondo__buffer_deinit(&image->sets);
    rondo__buffer_deinit(&image->constants);
    rondo__buffer_deinit(&image->words);
    rondo__buffer_deinit(&image->index);
    rondo__buffer_deinit(&image->strings);
}

/* A text is found by its bytes up to and with the terminator. Each text of an index is terminated in the strings. */
static bool image_is(const rondo__artifact_image *image, uint64_t offset, const char *text, size_t length) {
    const char *have = (const char *)image->strings.data + offset;
    return image->strings.count - offset > length && memcmp(have, text, length) == 0 && have[length] == 0;
}

static uint64_t *image_slot(const rondo__artifact_image *image, const char *text, size_t length) {
    uint64_t *slots = image->index.data;
    size_t mask = image->index.count - 1, at = (size_t)rondo__artifact_checksum(text, length) & mask;
    while (slots[at] && !image_is(image, slots[at] - 1, text, length)) at = (at + 1) & mask;
    return &slots[at];
}

static rondo_status image_grow(rondo__artifact_image *image, size_t used) {
    if (image->index.count && used * 2 < image->index.count) return RONDO_OK;
    rondo__buffer old = image->index;
    size_t size = old.count ? old.count * 2 : IMAGE_INDEX_FIRST;
    rondo__buffer_init(&image->index, &old.allocator, sizeof(uint64_t), old.maximum);
    rondo_status status = rondo__buffer_append(&image->index, NULL, size);
    if (status) {
        rondo__buffer_deinit(&image->index);
        image->index = old;
        return status;
    }
    for (size_t i = 0; i < old.count; i++) {
        uint64_t entry = ((uint64_t *)old.data)[i];
        const char *text = entry ? (const char *)image->strings.data + entry - 1 : NULL;
        if (text) *image_slot(image, text, strlen(text)) = entry;
    }
    rondo__buffer_deinit(&old);
    return RONDO_OK;
}

rondo_status rondo__artifact_intern(rondo__artifact_image *image, const char *text, size_t length,
                                    uint64_t *out_offset) {
    if (!text) {
        *out_offset = RONDO__ARTIFACT_NO_TEXT;
        return RONDO_OK;
    }
    bool plain = memchr(text, 0, length) == NULL; /* others are rare, and simply written again */
    uint64_t *slot = NULL;
    if (plain) {
        RONDO__TRY(image_grow(image, image->texts));
        slot = image_slot(image, text, length);
        if (*slot) {
            *out_offset = *slot - 1;
            return RONDO_OK;
        }
    }
    uint64_t offset = image->strings.count;
    RONDO__TRY(rondo__buffer_append(&image->strings, text, length));
    RONDO__TRY(rondo__buffer_append(&image->strings, NULL, 1));
    if (slot) {
        *slot = offset + 1;
        image->texts++;
    }
    *out_offset = offset;
    return RONDO_OK;
}
