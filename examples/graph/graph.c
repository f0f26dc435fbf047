/* SPDX-License-Identifier: Apache-2.0
 *
 * x + 2y as two Add nodes, built by hand and read from ONNX: both compile to one plan, and a session runs it.
 * Usage: graph X_PLUS_2Y.onnx [DEVICE] */
#include <string.h>

#include "../must.h"

static rondo_ir_graph *build_by_hand(rondo_instance *instance) {
    rondo_ir_graph *graph;
    rondo_ir_value x, y, sum, result;
    must(rondo_ir_graph_create(instance, "x_plus_2y", &graph));
    must(rondo_ir_graph_add_input(graph, "x", RONDO_DTYPE_F32, 2, (const int64_t[]){8, 2048}, NULL, &x));
    must(rondo_ir_graph_add_input(graph, "y", RONDO_DTYPE_F32, 2, (const int64_t[]){8, 2048}, NULL, &y));
    must(rondo_ir_graph_add_node(graph, "Add", "Add0", (const rondo_ir_value[]){x, y}, 2, NULL, 0, &sum, 1));
    must(rondo_ir_graph_add_node(graph, "Add", "Add1", (const rondo_ir_value[]){sum, y}, 2, NULL, 0, &result, 1));
    must(rondo_ir_graph_add_output(graph, result, "output"));
    must(rondo_ir_graph_verify(graph));
    return graph;
}

typedef struct text {
    char data[16384];
    size_t size;
} text;

static int32_t append(void *user, const char *data, size_t size) {
    text *t = user;
    if (size > sizeof t->data - 1 - t->size) return 1;
    memcpy(t->data + t->size, data, size);
    t->data[t->size += size] = 0;
    return 0;
}

static void plan_text(rondo_instance *instance, const rondo_ir_graph *graph, text *out) {
    rondo_plan *plan;
    must(rondo_compile(instance, graph, NULL, NULL, &plan));
    must(rondo_plan_dump(plan, RONDO_DUMP_TEXT, append, out));
    rondo_plan_release(plan);
}

int main(int argc, char **argv) {
    static float x[8 * 2048], y[8 * 2048], z[8 * 2048];
    static text by_hand, from_onnx;
    rondo_instance *instance;
    rondo_device *device;
    rondo_session *session;
    if (argc < 2) {
        fprintf(stderr, "usage: graph X_PLUS_2Y.onnx [DEVICE]\n");
        return 2;
    }
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 2 ? argv[2] : "cpu", NULL, &device));

    rondo_ir_graph *hand = build_by_hand(instance), *onnx;
    must(rondo_onnx_import(instance, argv[1], NULL, &onnx));
    plan_text(instance, hand, &by_hand);
    plan_text(instance, onnx, &from_onnx);
    must_be(strcmp(by_hand.data, from_onnx.data) == 0, "by hand and from ONNX give one plan");
    printf("by hand and from ONNX: the same plan\n%s", by_hand.data);

    must(rondo_session_create(device, NULL, &session));
    must(rondo_session_add_graph(session, 1, hand));
    rondo_status again = rondo_session_add_graph(session, 1, onnx);
    must_be(rondo_status_code(again) == RONDO_CODE_ALREADY_EXISTS, "a duplicate id keeps the first");
    rondo_status_release(again);

    int64_t shape[2] = {8, 2048};
    rondo_tensor_view inputs[2] = {{x, 1, 0, 2, RONDO_DTYPE_F32, shape, NULL, 0},
                                   {y, 1, 0, 2, RONDO_DTYPE_F32, shape, NULL, 0}};
    rondo_tensor_view outputs[1] = {{z, 1, 0, 2, RONDO_DTYPE_F32, shape, NULL, 0}};
    for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 8 * 2048; ++i) {
            x[i] = (float)(i + round);
            y[i] = 0.5f * (float)i;
        }
        must(rondo_session_run(session, 1, inputs, 2, outputs, 1));
        for (int i = 0; i < 8 * 2048; ++i) must_be(z[i] == (float)(2 * i + round), "z = x + 2y");
    }
    rondo_session_info info = RONDO_SESSION_INFO_INIT;
    must(rondo_session_get_info(session, 1, &info));
    printf("session on %s: %llu runs right, %llu compile, %llu capture\n", rondo_device_info(device)->name,
           (unsigned long long)info.runs, (unsigned long long)info.compiles, (unsigned long long)info.captures);
    printf("compile %.1f us once, capture %.1f us once, copies %.2f us a run, run %.2f us a run\n",
           (double)info.compile_ns / 1e3, (double)info.capture_ns / 1e3, (double)info.copy_ns / 1e3 / (double)info.runs,
           (double)info.run_ns / 1e3 / (double)info.runs);

    must(rondo_session_remove_graph(session, 1));
    rondo_session_release(session);
    rondo_ir_graph_release(hand);
    rondo_ir_graph_release(onnx);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
