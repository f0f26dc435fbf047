/* SPDX-License-Identifier: Apache-2.0
 *
 * Sealed sequences. */
#include "tree/tree.h"

void rondo__tree_unseal(rondo_tree *tree) { (void)tree; }

rondo_status rondo_tree_flush(rondo_tree *tree) {
    return tree ? RONDO_OK : RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_flush needs a tree");
}
