/* SPDX-License-Identifier: Apache-2.0
 *
 * What edits share: who makes a value, and what lies behind it. */
#ifndef RONDO_SRC_IR_EDIT_H
#define RONDO_SRC_IR_EDIT_H

#include "ir/private.h"

/* The node that makes the value: INVALID_ARGUMENT when nothing does. */
RONDO_MUST_USE rondo_status rondo__ir_edit_node(const rondo_ir_graph *graph, rondo_ir_value value,
                                                rondo_ir_node *out_node);
/* A byte a node: whether it lies behind the node `from`, or behind any user of the value `value`; the other of the two is
 * RONDO_IR_NONE. A node lies behind itself. Free with rondo__ir_edit_behind_free. */
RONDO_MUST_USE rondo_status rondo__ir_edit_behind(const rondo_ir_graph *graph, rondo_ir_node from, rondo_ir_value value,
                                                  uint8_t **out_behind);
void rondo__ir_edit_behind_free(const rondo_ir_graph *graph, uint8_t *behind);
/* Whether an edge from the producer of `value` to `node` would close a cycle, which is then a failure that says so. */
RONDO_MUST_USE rondo_status rondo__ir_edit_check_edge(const rondo_ir_graph *graph, rondo_ir_node node,
                                                      rondo_ir_node producer, const char *what);

#endif
