/* SPDX-License-Identifier: Apache-2.0
 *
 * The non-tree path. */
#include "tree/tree.h"

rondo_status rondo__tree_simple_run(rondo__tree_call *call) {
    rondo__tree_release_all(call->tree, call->inputs, call->input_count);
    return RONDO__FAIL(UNSUPPORTED, TREE, "the non-tree path (rondo_tree_function.simple) is not there yet");
}

void rondo__tree_simple_drop(rondo_tree *tree, rondo__tree_function *function) {
    (void)tree;
    (void)function;
}
