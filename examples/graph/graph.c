/* SPDX-License-Identifier: Apache-2.0
 *
 * x + 2y as two Add nodes, built by hand and read from ONNX: both compile to one plan, a session runs it, and so does an
 * offline file that is opened without the graph.
 * Usage: graph X_PLUS_2Y.onnx [DEVICE] */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Compiles and writes once; then opens the file, which is all that a deployment does, and runs it. */
static void run_offline(rondo_device *device, const rondo_ir_graph *graph, float *x, float *y, float *z, size_t bytes) {
    rondo_instance *instance = rondo_device_instance(device);
    char folder[] = "/tmp/rondo-graph-XXXXXX", path[64];
    rondo_plan *plan;
    rondo_executable *executable;
    rondo_context *context;
    rondo_stream *stream;
    void *memory[3];
    struct stat facts;
    must_be(mkdtemp(folder) != NULL, "a folder for the file");
    snprintf(path, sizeof path, "%s/x_plus_2y.rondo", folder);
    double start = now_us();
    must(rondo_compile(instance, graph, NULL, NULL, &plan));
    double compiled = now_us();
    must(rondo_plan_write(instance, plan, path));
    rondo_plan_release(plan);
    must_be(stat(path, &facts) == 0, "the file is there");
    double written = now_us();
    must(rondo_plan_open(instance, path, &plan));
    double opened = now_us();
    (void)unlink(path); /* who has it open keeps it */
    (void)rmdir(folder);

    must(rondo_executable_create(device, plan, &executable));
    must(rondo_context_create(executable, &context));
    must(rondo_stream_create(device, NULL, &stream));
    for (int i = 0; i < 3; ++i) must(rondo_memory_allocate(device, bytes, &memory[i]));
    must(rondo_context_bind_input(context, 0, memory[0]));
    must(rondo_context_bind_input(context, 1, memory[1]));
    must(rondo_context_bind_output(context, 0, memory[2]));
    must(rondo_stream_copy(stream, memory[0], x, bytes, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_copy(stream, memory[1], y, bytes, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_context_run(context, stream));
    must(rondo_stream_copy(stream, z, memory[2], bytes, RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_stream_synchronize(stream));
    for (size_t i = 0; i < bytes / sizeof *z; ++i) must_be(z[i] == x[i] + 2 * y[i], "z = x + 2y from the file");
    printf("offline file: %lld bytes, compile %.1f us and write %.1f us once, open %.1f us; all %zu values right\n",
           (long long)facts.st_size, compiled - start, written - compiled, opened - written, bytes / sizeof *z);
    for (int i = 0; i < 3; ++i) must(rondo_memory_free(device, memory[i]));
    rondo_stream_release(stream);
    rondo_context_release(context);
    rondo_executable_release(executable);
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

    memset(z, 0, sizeof z);
    run_offline(device, hand, x, y, z, sizeof z);
    must(rondo_session_remove_graph(session, 1));
    rondo_session_release(session);
    rondo_ir_graph_release(hand);
    rondo_ir_graph_release(onnx);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
