/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to numbers: one open-addressing table for each kind of name in a graph. The tables borrow the names; whoever
 * inserts keeps them alive. Hashes are seeded by the graph, so that a hostile model cannot aim at one slot. */
#ifndef RONDO_SRC_IR_NAMES_H
#define RONDO_SRC_IR_NAMES_H

#include "ir/ir.h"

typedef struct rondo__ir_name_slot {
    const char *name; /* null: free */
    uint32_t hash;
    uint32_t item;
} rondo__ir_name_slot;

typedef struct rondo__ir_table {
    rondo_allocator allocator;
    rondo__ir_name_slot *slots;
    size_t capacity; /* 0 or a power of two, never more than three quarters full */
    size_t count;
    uint64_t seed;
} rondo__ir_table;

/* What hangs on rondo_ir_graph.name_index. */
typedef struct rondo__ir_names {
    rondo__ir_table values, nodes, outputs;
    rondo__ir_table outers;    /* name of a parent's value -> the value of this graph that stands for it */
    rondo__ir_table operators; /* names of operators in use; the items mean nothing */
    uint32_t made;             /* names made so far; only grows, so that making n names costs n probes in all */
    bool outers_stale;
} rondo__ir_names;

static inline rondo__ir_names *rondo__ir_names_of(const rondo_ir_graph *graph) {
    return (rondo__ir_names *)graph->name_index;
}

void rondo__ir_table_init(rondo__ir_table *table, const rondo_allocator *allocator, uint64_t seed);
void rondo__ir_table_deinit(rondo__ir_table *table);
/* Makes room for one more, so that the next insert cannot fail. */
RONDO_MUST_USE rondo_status rondo__ir_table_reserve(rondo__ir_table *table);
/* RONDO_IR_NONE when absent. */
uint32_t rondo__ir_table_find(const rondo__ir_table *table, const char *name);
/* The name as it was inserted; null when absent. */
const char *rondo__ir_table_key(const rondo__ir_table *table, const char *name);
/* After a reserve. An item of that name is replaced. */
void rondo__ir_table_insert(rondo__ir_table *table, const char *name, uint32_t item);
void rondo__ir_table_clear(rondo__ir_table *table);
/* "stem#7", a name that `table` does not hold, in the graph's arena. */
RONDO_MUST_USE rondo_status rondo__ir_name_make(rondo_ir_graph *graph, const rondo__ir_table *table, const char *stem,
                                                const char **out_name);

#endif
