/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of shared libraries, as environment variables hold them: files and folders, with ':' between. */
#ifndef RONDO_SRC_BASE_SEARCH_H
#define RONDO_SRC_BASE_SEARCH_H

#include "base/allocator.h"
#include "base/log.h"

/* Visits the files of `path` in order, of a folder those that end in ".so", sorted. What a visit refuses is left out with
 * a warning that names `what` ("plugin path"): nobody asked for it by name. Only want of memory ends the search. A null
 * path is empty. */
RONDO_MUST_USE rondo_status rondo__search_path(const rondo_allocator *allocator, const rondo__log *log,
                                               const char *what, const char *path,
                                               rondo_status (*visit)(void *user, const char *file), void *user);

#endif
