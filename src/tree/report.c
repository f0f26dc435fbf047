/* SPDX-License-Identifier: Apache-2.0
 *
 * The report. */
#include "tree/tree.h"

rondo_status rondo_tree_report(rondo_tree *tree, bool json, rondo_memory_write write, void *user) {
    (void)tree;
    (void)json;
    (void)write;
    (void)user;
    return RONDO__FAIL(UNSUPPORTED, TREE, "rondo_tree_report is not there yet");
}
