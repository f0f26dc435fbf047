/* SPDX-License-Identifier: Apache-2.0
 *
 * Imports any bytes as a TensorFlow graph. What is accepted must be a sound graph; what is refused must say so in bounded
 * words. */
#include "base/instance.h"
#include "import/tf/tf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rondo__instance_base base = {.allocator = rondo_allocator_default()};
    rondo_ir_graph *graph = NULL;
    rondo_status status = rondo_tf_import_memory((rondo_instance *)(void *)&base, "fuzz", data, size, NULL, &graph);
    if (!status == !graph) __builtin_trap();
    char text[8192];
    if (status && rondo_status_format(status, text, sizeof text) == 0) __builtin_trap();
    rondo_ir_graph *copy = NULL;
    if (graph && (rondo__ir_clone(graph, false, &copy) || rondo__ir_verify(copy))) __builtin_trap();
    rondo_ir_graph_release(copy);
    rondo_ir_graph_release(graph);
    rondo_status_release(status);
    return 0;
}
