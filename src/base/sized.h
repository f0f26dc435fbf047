/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that cross the library's edge and start with struct_size: one rule for reading and for answering them. A
 * caller that was compiled with fewer fields gives and gets as many as it knows; the rest keep their defaults. */
#ifndef RONDO_SRC_BASE_SIZED_H
#define RONDO_SRC_BASE_SIZED_H

#include "base/status.h"

/* INVALID_ARGUMENT, naming `what` (the struct's type) and its _INIT macro, for a null struct or one whose struct_size
 * cannot be right. */
RONDO_MUST_USE rondo_status rondo__sized_check(rondo_layer layer, const char *what, const void *given);
/* What the caller gave over the defaults that `own` holds; null gives nothing. own's struct_size stays `size`. */
RONDO_MUST_USE rondo_status rondo__sized_read(rondo_layer layer, const char *what, const void *given, void *own,
                                              uint32_t size);
/* Answers in a struct that was checked; the caller's struct_size stays. */
void rondo__sized_write(const void *own, uint32_t size, void *out);

#endif
