/* SPDX-License-Identifier: Apache-2.0
 *
 * What importers share, whatever the format: names of a file to numbers, reading files, words for messages, and the list
 * of what cannot be imported. */
#ifndef RONDO_SRC_IMPORT_COMMON_COMMON_H
#define RONDO_SRC_IMPORT_COMMON_COMMON_H

#include "base/arena.h"
#include "base/buffer.h"
#include "import/pb/reader.h"

/* ------------------------------------------------------------------------------------------------------ names
 *
 * Names as the file holds them, to numbers. The keys are borrowed, so a look-up needs no terminated copy; and only names
 * that the model itself gave can be found. */

#define RONDO__IMPORT_NAMES_NONE UINT32_MAX

typedef struct rondo__import_names_slot {
    const uint8_t *data; /* null: free */
    size_t size;
    uint64_t hash;
    uint32_t number;
} rondo__import_names_slot;

typedef struct rondo__import_names {
    rondo_allocator allocator;
    rondo__import_names_slot *slots;
    size_t capacity, count;
    uint64_t seed; /* so that a hostile model cannot aim at one slot */
} rondo__import_names;

void rondo__import_names_init(rondo__import_names *names, const rondo_allocator *allocator);
void rondo__import_names_deinit(rondo__import_names *names);
/* RONDO__IMPORT_NAMES_NONE when absent. */
uint32_t rondo__import_names_find(const rondo__import_names *names, rondo__pb_bytes name);
/* The number it had before, and then nothing changes; or RONDO__IMPORT_NAMES_NONE, and now it has `number`. */
RONDO_MUST_USE rondo_status rondo__import_names_insert(rondo__import_names *names, rondo__pb_bytes name,
                                                       uint32_t number, uint32_t *out_before);

/* ------------------------------------------------------------------------------------------------------ files */

#define RONDO__IMPORT_FILE_MAX UINT64_C(0x7fffffff)

typedef struct rondo__import_file {
    rondo_allocator allocator;
    uint8_t *data;
    size_t size;
} rondo__import_file;

/* Whole, never more than `maximum` bytes. NOT_FOUND, IO, CORRUPT (empty, too large, the small text that stands for a large
 * file); the messages name the path. */
RONDO_MUST_USE rondo_status rondo__import_file_read(const rondo_allocator *allocator, const char *path,
                                                    uint64_t maximum, rondo__import_file *out_file);
void rondo__import_file_release(rondo__import_file *file);
/* The first and the last step of that, for who reads a file piece by piece: room for all of it, which nothing is in yet;
 * and whether it is that small text. */
RONDO_MUST_USE rondo_status rondo__import_file_room(rondo__import_file *file, const char *path, uint64_t size,
                                                    uint64_t maximum);
RONDO_MUST_USE rondo_status rondo__import_file_check(const rondo__import_file *file, const char *path);
/* What is refused of a model in memory as of a file: CORRUPT (empty, too large). */
RONDO_MUST_USE rondo_status rondo__import_memory_check(const char *name, size_t size, uint64_t maximum);
/* Opens a regular file: NOT_FOUND, IO. */
RONDO_MUST_USE rondo_status rondo__import_file_open(const char *path, int32_t flags, int32_t *out_descriptor,
                                                    uint64_t *out_size);
/* Exactly size bytes from offset on. */
RONDO_MUST_USE rondo_status rondo__import_file_fill(int32_t descriptor, const char *path, uint64_t offset, void *out,
                                                    size_t size);
/* The small text that stands in a repository for a large file. */
bool rondo__import_file_is_pointer(const void *data, size_t size);

/* ------------------------------------------------------------------------------------------------------ words */

/* The text in field `number` of a message that may be broken: for naming what failed before its name was read. */
rondo__pb_bytes rondo__import_field_text(rondo__pb_reader reader, uint32_t number);
/* The same failure with words in front of its message. Null stays null. */
rondo_status rondo__import_within(rondo_status status, const char *format, ...) RONDO_PRINTF(2, 3);
/* Returns the failure of an expression with words in front; they are made only then. */
#define RONDO__IMPORT_TRY(expression, ...)                                                  \
    do {                                                                                    \
        rondo_status rondo__try_status = (expression);                                      \
        if (rondo__try_status) return rondo__import_within(rondo__try_status, __VA_ARGS__); \
    } while (0)
RONDO_MUST_USE rondo_status rondo__import_text(rondo__arena *arena, rondo__pb_bytes bytes, const char **out_text);
bool rondo__import_is(rondo__pb_bytes bytes, const char *text);

/* --------------------------------------------------------------------------------------------------- refusals */

typedef struct rondo__import_refusal {
    const char *operator_name;
    const char *reason; /* null: no prototype */
    const char *node;   /* the first */
    int64_t version;    /* 0: the format's operators have none */
    uint64_t uses;
} rondo__import_refusal;

/* What a model asks for and cannot be given, each kind once. */
typedef struct rondo__import_refusals {
    rondo__import_names seen; /* to index of entries */
    rondo__buffer entries;    /* rondo__import_refusal */
} rondo__import_refusals;

void rondo__import_refusals_init(rondo__import_refusals *refusals, const rondo_allocator *allocator);
void rondo__import_refusals_deinit(rondo__import_refusals *refusals);
/* Notes one more use. Texts are copied into the arena, but the reason, which must be a literal or null. */
RONDO_MUST_USE rondo_status rondo__import_refuse(rondo__import_refusals *refusals, rondo__arena *arena,
                                                 const rondo__import_refusal *refusal);
/* UNSUPPORTED with everything that was noted; null when nothing was. */
RONDO_MUST_USE rondo_status rondo__import_refusals_status(const rondo__import_refusals *refusals);

#endif
