/* SPDX-License-Identifier: Apache-2.0
 *
 * The offline file: a plan, its constants and its packed weights, as bytes that are used where they are mapped.
 *
 *   head      header, one entry a partition, the checksum of both
 *   strings   texts with their terminators, each once; the last byte is a terminator
 *   plan      64-bit words, in the order in which encode.c writes and decode.c reads them
 *   constants blobs, each aligned to 64 bytes
 *   operators custom operators' own bytes, a blob a step, each aligned to 64 bytes and with a zero behind; in its step a
 *             blob is an attribute of kind RONDO__ARTIFACT_OWN. Absent where no step has any
 *   packed    one partition a kernel set, named by its tag: packed blocks, each aligned to 64 bytes
 *
 * Every byte counts: a partition has a checksum (XXH3, 64 bits), and what lies between partitions is zero. Numbers are
 * in the byte order of the machine that wrote; another order is refused. A newer minor version may have a longer header,
 * longer entries, partitions of unknown kind without RONDO__ARTIFACT_NEEDED, and more words at the plan's end. */
#ifndef RONDO_SRC_ARTIFACT_ARTIFACT_H
#define RONDO_SRC_ARTIFACT_ARTIFACT_H

#include "plan/plan.h"

#define RONDO__ARTIFACT_ALIGNMENT 64u
#define RONDO__ARTIFACT_MAJOR 1u
#define RONDO__ARTIFACT_MINOR 1u
#define RONDO__ARTIFACT_MINOR_TARGETS 1u /* since then, targets follow the remarks of a plan */
#define RONDO__ARTIFACT_ORDER 0x01020304u
#define RONDO__ARTIFACT_PARTITIONS_MAX 1024u
#define RONDO__ARTIFACT_NO_TEXT UINT64_MAX
#define RONDO__ARTIFACT_OWN 100 /* in a file; in a plan it is a string named RONDO__PLAN_OWN */

enum {
    RONDO__ARTIFACT_STRINGS = 1,
    RONDO__ARTIFACT_PLAN = 2,
    RONDO__ARTIFACT_CONSTANTS = 3,
    RONDO__ARTIFACT_PACKED = 4,
    RONDO__ARTIFACT_OPERATORS = 5 /* custom operators' own bytes; where there are any, they are needed */
};
enum { RONDO__ARTIFACT_NEEDED = 1u << 0 }; /* who does not know the partition must not use the file */

typedef struct rondo__artifact_header {
    uint8_t magic[8]; /* RONDO_PLAN_FILE_MAGIC */
    uint32_t order;   /* RONDO__ARTIFACT_ORDER */
    uint32_t major, minor;
    uint32_t header_bytes, entry_bytes, entry_count;
    uint64_t file_bytes;
    uint64_t key[2]; /* of an entry of the compile cache; else 0 */
    uint64_t reserved;
} rondo__artifact_header;

typedef struct rondo__artifact_entry {
    uint32_t kind, flags;
    uint64_t offset, bytes; /* of the partition; offset aligned to RONDO__ARTIFACT_ALIGNMENT */
    uint64_t checksum;
    uint64_t tag; /* kernel set: an offset into the strings, or RONDO__ARTIFACT_NO_TEXT */
    uint64_t reserved;
} rondo__artifact_entry;

_Static_assert(sizeof(rondo__artifact_header) == 64, "the header has no holes");
_Static_assert(sizeof(rondo__artifact_entry) == 48, "an entry has no holes");

/* A partition as a reader uses it. */
typedef struct rondo__artifact_part {
    uint32_t kind;
    const uint8_t *data;
    uint64_t bytes, checksum;
    const char *tag; /* in the strings, or null */
} rondo__artifact_part;

/* An open file, held by its plan. */
typedef struct rondo__artifact {
    rondo_allocator allocator;
    const uint8_t *data;
    uint64_t bytes;
    void *mapping; /* to be unmapped; null: the bytes are somebody else's */
    uint32_t major, minor;
    uint64_t key[2];    /* of the header */
    const char *writer; /* version of the library that wrote; in the strings */
    rondo__artifact_part *parts;
    uint32_t part_count;
    const rondo__artifact_part *strings, *plan, *constants;
} rondo__artifact;

/* The packed block of a step, and its operator's own bytes, made by whoever has the catalogues. */
typedef struct rondo__artifact_block {
    const void *data; /* null: the step has none */
    const char *kernel_set;
    const void *own; /* the operator's own bytes, and a zero that own_bytes does not count; null: none */
    uint64_t own_bytes;
} rondo__artifact_block;

/* The checksum of a partition. */
uint64_t rondo__artifact_checksum(const void *data, size_t bytes);

/* rondo__artifact_write, with a key in the header. */
RONDO_MUST_USE rondo_status rondo__artifact_write_keyed(const rondo_allocator *allocator, const rondo_plan *plan,
                                                        const rondo__artifact_block *blocks, const uint64_t key[2],
                                                        const char *path);
/* Writes the plan, whole or not at all. blocks: one a step. IO; UNSUPPORTED: something that has no form in a file, by
 * name. The same plan gives the same bytes. */
RONDO_MUST_USE rondo_status rondo__artifact_write(const rondo_allocator *allocator, const rondo_plan *plan,
                                                  const rondo__artifact_block *blocks, const char *path);
/* Maps the file, verifies all of it, and makes a plan that points into it. NOT_FOUND, IO; CORRUPT; UNSUPPORTED: a newer
 * major version, another byte order, a partition that is needed and not known. */
RONDO_MUST_USE rondo_status rondo__artifact_open(const rondo_allocator *allocator, const char *path,
                                                 rondo_plan **out_plan);
/* The same from memory, aligned to RONDO__ARTIFACT_ALIGNMENT, which must outlive the plan. */
RONDO_MUST_USE rondo_status rondo__artifact_read(const rondo_allocator *allocator, const void *data, uint64_t bytes,
                                                 rondo_plan **out_plan);

/* ---- between the files of this room */

/* What encode.c makes of a plan: everything but the file itself. */
typedef struct rondo__artifact_piece {
    const uint8_t *data;
    uint64_t bytes, order, at; /* at: offset in its partition */
} rondo__artifact_piece;

typedef struct rondo__artifact_set {
    const char *name;
    uint64_t bytes; /* of the partition so far */
} rondo__artifact_set;

typedef struct rondo__artifact_image {
    rondo__buffer strings;   /* char */
    rondo__buffer index;     /* uint64_t: open addressing over the strings, offset + 1 */
    rondo__buffer words;     /* uint64_t */
    rondo__buffer constants; /* rondo__artifact_piece, in the order of the file */
    rondo__buffer sets;      /* rondo__artifact_set, in order of first use */
    rondo__buffer packed;    /* rondo__artifact_piece; order: which set */
    rondo__buffer own;       /* rondo__artifact_piece */
    uint64_t constant_bytes, own_bytes;
    size_t texts; /* in the index */
    uint64_t key[2];
} rondo__artifact_image;

void rondo__artifact_image_init(rondo__artifact_image *image, const rondo_allocator *allocator);
void rondo__artifact_image_deinit(rondo__artifact_image *image);
RONDO_MUST_USE rondo_status rondo__artifact_encode(rondo__artifact_image *image, const rondo_plan *plan,
                                                   const rondo__artifact_block *blocks);
/* The offset of the text in the strings; null gives RONDO__ARTIFACT_NO_TEXT. */
RONDO_MUST_USE rondo_status rondo__artifact_intern(rondo__artifact_image *image, const char *text, size_t length,
                                                   uint64_t *out_offset);
/* Fills the plan in from the file's partitions, which were verified. */
RONDO_MUST_USE rondo_status rondo__artifact_decode(rondo__artifact *file, rondo_plan *plan);

#define RONDO__ARTIFACT_CORRUPT(...) RONDO__FAIL(CORRUPT, FILE, "offline file: " __VA_ARGS__)

#endif
