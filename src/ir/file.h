/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph as a file. Both forms are one sequence of tokens (docs/graph-file.md): save.c says which, write.c puts them
 * down as text or as bytes, scan.c takes them apart again, load.c makes the graph. So neither form can hold what the other
 * cannot.
 *
 * The binary form: RONDO__IR_FILE_MAGIC, the version as two bytes (major, minor), the tokens, and XXH3 (64 bits, least byte
 * first) of all before it. A mark is a byte, its number plus one; the rest is a byte that says what follows:
 *   INT     a number in zigzag form, seven bits a byte, the lowest first, the highest bit set in all but the last
 *   TEXT    a length as above without zigzag, and the bytes
 *   FLOAT   four bytes, least first
 *   DATA    a length, and the elements as they lie in memory, least byte first */
#ifndef RONDO_SRC_IR_FILE_H
#define RONDO_SRC_IR_FILE_H

#include "ir/private.h"

#define RONDO__IR_FILE_MAGIC "\x89RONDOIR"
#define RONDO__IR_FILE_MAGIC_SIZE 8u
#define RONDO__IR_FILE_MAJOR 1u
#define RONDO__IR_FILE_MINOR 0u
#define RONDO__IR_FILE_CHECKSUM 8u
/* Elements that a text lists; more are written as base64. */
#define RONDO__IR_FILE_LISTED_MAX 64

/* Numbers are those of the binary form: only add at the end. */
#define RONDO__IR_MARKS(X)                                                                                            \
    X(GRAPH, "graph")                                                                                                 \
    X(OPSET, "opset")                                                                                                 \
    X(MODEL, "model") X(INPUT, "input") X(CONSTANT, "constant") X(OUTER, "outer") X(NODE, "node") X(OUTPUT, "output") \
        X(END, "end") X(ATTRIBUTE, "attribute") X(NOTE, "note") X(AFTER, "after") X(KIND_INT, "int")                  \
            X(KIND_FLOAT, "float") X(KIND_STRING, "string") X(KIND_INTS, "ints") X(KIND_FLOATS, "floats")             \
                X(KIND_STRINGS, "strings") X(KIND_TENSOR, "tensor") X(SEQUENCE, "sequence") X(OPTIONAL, "optional")   \
                    X(FORMAT, "format") X(TO, "to") X(OPEN, "(") X(CLOSE, ")") X(LEFT, "[") X(RIGHT, "]")             \
                        X(COMMA, ",") X(EQUALS, "=") X(ARROW, "->") X(ABSENT, "-") X(QUESTION, "?") X(ANY, "...")     \
                            X(BASE64, "base64")

typedef enum rondo__ir_mark {
#define RONDO_X(name, text) RONDO__IR_MARK_##name,
    RONDO__IR_MARKS(RONDO_X)
#undef RONDO_X
        RONDO__IR_MARK_COUNT
} rondo__ir_mark;

enum {
    RONDO__IR_TOKEN_INT = 0x80,
    RONDO__IR_TOKEN_TEXT = 0x81,
    RONDO__IR_TOKEN_FLOAT = 0x82,
    RONDO__IR_TOKEN_DATA = 0x83
};

/* The mark's text; RONDO__IR_MARK_COUNT for none. */
const char *rondo__ir_mark_text(rondo__ir_mark mark);
/* A name that stands bare in a text; others are quoted. */
bool rondo__ir_file_plain(const char *text, size_t size);
bool rondo__ir_file_plain_char(char c);
/* Bytes of an element of compact data that a text can list; 0 for other types. */
size_t rondo__ir_file_listed(rondo_dtype dtype);

/* ------------------------------------------------------------------------------------------------------ write.c */

typedef struct rondo__ir_writer {
    rondo__buffer text; /* of what was not written yet */
    rondo_write_function write;
    void *user;
    bool binary;
    void *hash;
} rondo__ir_writer;

RONDO_MUST_USE rondo_status rondo__ir_writer_open(rondo__ir_writer *writer, const rondo_allocator *allocator,
                                                  bool binary, rondo_write_function write, void *user);
/* Puts down what is left; always call it. */
RONDO_MUST_USE rondo_status rondo__ir_writer_close(rondo__ir_writer *writer, rondo_status so_far);
RONDO_MUST_USE rondo_status rondo__ir_write_mark(rondo__ir_writer *writer, rondo__ir_mark mark);
/* Spaces and lines of a text. */
RONDO_MUST_USE rondo_status rondo__ir_write_space(rondo__ir_writer *writer, const char *space);
RONDO_MUST_USE rondo_status rondo__ir_write_int(rondo__ir_writer *writer, int64_t value);
RONDO_MUST_USE rondo_status rondo__ir_write_float(rondo__ir_writer *writer, float value);
RONDO_MUST_USE rondo_status rondo__ir_write_text(rondo__ir_writer *writer, const char *text, size_t size);
/* Compact elements, no strings. */
RONDO_MUST_USE rondo_status rondo__ir_write_data(rondo__ir_writer *writer, rondo_dtype dtype, const void *data,
                                                 int64_t elements, size_t bytes);

/* ------------------------------------------------------------------------------------------------------- scan.c */

typedef struct rondo__ir_scanner {
    const char *name; /* of the file, for messages */
    const uint8_t *start, *at, *end;
    bool binary;
    rondo_allocator allocator;
    rondo__buffer scratch; /* chars of a quoted text */
} rondo__ir_scanner;

/* The head, and of the binary form the checksum. */
RONDO_MUST_USE rondo_status rondo__ir_scanner_open(rondo__ir_scanner *scanner, const rondo_allocator *allocator,
                                                   const char *name, const void *data, size_t size);
void rondo__ir_scanner_close(rondo__ir_scanner *scanner);
/* "file:12: " or "file, byte 34: " and the text, as CORRUPT (file). */
rondo_status rondo__ir_scan_fail(const rondo__ir_scanner *scanner, const char *format, ...) RONDO_PRINTF(2, 3);
/* Whether that mark is next; then it is taken. */
bool rondo__ir_scan_is(rondo__ir_scanner *scanner, rondo__ir_mark mark);
RONDO_MUST_USE rondo_status rondo__ir_scan_mark(rondo__ir_scanner *scanner, rondo__ir_mark mark);
bool rondo__ir_scan_at_int(rondo__ir_scanner *scanner);
bool rondo__ir_scan_at_end(rondo__ir_scanner *scanner);
RONDO_MUST_USE rondo_status rondo__ir_scan_int(rondo__ir_scanner *scanner, int64_t *out_value);
RONDO_MUST_USE rondo_status rondo__ir_scan_float(rondo__ir_scanner *scanner, float *out_value);
/* Bytes that stay until the next text is scanned. */
RONDO_MUST_USE rondo_status rondo__ir_scan_text(rondo__ir_scanner *scanner, rondo_string *out_text);
/* `bytes` of compact elements, allocated; free with rondo__free. Refuses sizes that the rest of the file cannot hold. */
RONDO_MUST_USE rondo_status rondo__ir_scan_data(rondo__ir_scanner *scanner, rondo_dtype dtype, int64_t elements,
                                                size_t bytes, void **out_data);

/* ------------------------------------------------------------------------------------------------------- load.c */

/* A graph whose structure holds (rondo__ir_verify); its operators were not looked at. */
struct rondo__shared;
RONDO_MUST_USE rondo_status rondo__ir_load(const rondo_allocator *allocator, rondo_instance *instance,
                                           struct rondo__shared *operators, const char *name, const void *data,
                                           size_t size, rondo_ir_graph **out_graph);

#endif
