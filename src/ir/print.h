/* SPDX-License-Identifier: Apache-2.0
 *
 * The printers of a graph. They write pieces, so that a dump of any size takes little memory. */
#ifndef RONDO_SRC_IR_PRINT_H
#define RONDO_SRC_IR_PRINT_H

#include "ir/private.h"

/* Elements of constants and lists that are shown. */
#define RONDO__IR_PRINT_ELEMENTS_MAX 16u

typedef struct rondo__ir_printer {
    rondo__buffer text; /* of what was not written yet */
    rondo_write_function write;
    void *user;
} rondo__ir_printer;

/* Hands the text over when enough has come together, or whatever there is when `all`. */
RONDO_MUST_USE rondo_status rondo__ir_print_flush(rondo__ir_printer *printer, bool all);
RONDO_MUST_USE rondo_status rondo__ir_print_text(rondo__ir_printer *printer, const rondo_ir_graph *graph);
RONDO_MUST_USE rondo_status rondo__ir_print_dot(rondo__ir_printer *printer, const rondo_ir_graph *graph);
RONDO_MUST_USE rondo_status rondo__ir_print_json(rondo__ir_printer *printer, const rondo_ir_graph *graph);

/* Element i of compact data as text: "1", "0.5", "true"; in JSON what is no number there is a string. */
RONDO_MUST_USE rondo_status rondo__ir_print_element(rondo__ir_printer *printer, rondo_dtype dtype, const void *data,
                                                    size_t i, bool json);
/* The value of an attribute that is not a graph, shortened unless JSON. */
RONDO_MUST_USE rondo_status rondo__ir_print_attribute(rondo__ir_printer *printer, const rondo_attribute *attribute,
                                                      bool json);
/* Nodes of a graph with branches: where a value is used by a graph's own nodes, its name. */
const char *rondo__ir_print_name(const rondo_ir_graph *graph, rondo_ir_value value);

#endif
