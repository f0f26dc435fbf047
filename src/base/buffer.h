/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable arrays that name their maximum, and text made piece by piece. Thread-compatible. */
#ifndef RONDO_SRC_BASE_BUFFER_H
#define RONDO_SRC_BASE_BUFFER_H

#include "base/allocator.h"

/* count elements of element_size bytes; growth is geometric; OUT_OF_RANGE above `maximum` elements. */
typedef struct rondo__buffer {
    rondo_allocator allocator;
    void *data;
    size_t count, capacity, maximum, element_size;
} rondo__buffer;

void rondo__buffer_init(rondo__buffer *buffer, const rondo_allocator *allocator, size_t element_size, size_t maximum);
void rondo__buffer_deinit(rondo__buffer *buffer);
RONDO_MUST_USE rondo_status rondo__buffer_reserve(rondo__buffer *buffer, size_t count);
/* Appends `count` elements copied from `elements`, or zeroed ones when it is null. */
RONDO_MUST_USE rondo_status rondo__buffer_append(rondo__buffer *buffer, const void *elements, size_t count);
/* Gives back what growth took in advance, where the allocator can. */
void rondo__buffer_trim(rondo__buffer *buffer);
#define RONDO__BUFFER_AT(buffer, type, index) (&((type *)(buffer)->data)[index])

/* Text: a buffer of chars that is always terminated once something was added. */
RONDO_MUST_USE rondo_status rondo__text_append(rondo__buffer *buffer, const char *format, ...) RONDO_PRINTF(2, 3);
/* Adds the bytes as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD. */
RONDO_MUST_USE rondo_status rondo__text_append_json(rondo__buffer *buffer, const char *text, size_t length);
/* Never null. */
const char *rondo__text(const rondo__buffer *buffer);

#endif
