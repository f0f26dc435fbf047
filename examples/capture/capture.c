/* SPDX-License-Identifier: Apache-2.0
 *
 * A captured run of tasks: two copies to the device, one Add, one copy back; replayed five times with new inputs.
 * Then an input is freed, and the replay says which node would have read it. Usage: capture [DEVICE] */
#include "../must.h"

enum { ROWS = 8, COLUMNS = 2048, COUNT = ROWS * COLUMNS, BYTES = COUNT * 4 };

static rondo_stream *stream;
static rondo_kernel add;
static float *x_host, *y_host, *z_host;
static void *x, *y, *z;

/* The same four tasks, whether they run at once or a capture records them. */
static void enqueue_tasks(void) {
    must(rondo_stream_copy(stream, x, x_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_copy(stream, y, y_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)x, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)y, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)z, BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = add;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = "add_custom";
    must(rondo_stream_launch(stream, &call));
    must(rondo_stream_copy(stream, z_host, z, BYTES, RONDO_COPY_DEVICE_TO_HOST));
}

static void set_inputs(int round) {
    for (int i = 0; i < COUNT; ++i) {
        x_host[i] = (float)(i % 100);
        y_host[i] = (float)(round * 1000);
    }
}

static void check_sum(int round) {
    for (int i = 0; i < COUNT; ++i) must_be(z_host[i] == (float)(i % 100 + round * 1000), "z = x + y");
}

int main(int argc, char **argv) {
    rondo_instance *instance;
    rondo_device *device;
    rondo_graph *graph;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 1 ? argv[1] : "cpu", NULL, &device));
    must(rondo_stream_create(device, NULL, &stream));
    /* Host memory of asynchronous copies is pinned: a capture refuses any other where the device needs it. */
    must(rondo_memory_host_allocate(device, BYTES, (void **)&x_host));
    must(rondo_memory_host_allocate(device, BYTES, (void **)&y_host));
    must(rondo_memory_host_allocate(device, BYTES, (void **)&z_host));
    must(rondo_memory_allocate(device, BYTES, &x));
    must(rondo_memory_allocate(device, BYTES, &y));
    must(rondo_memory_allocate(device, BYTES, &z));
    must(rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 2, (const int64_t[]){ROWS, COLUMNS}, &add));

    must(rondo_graph_create(device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    enqueue_tasks();
    must(rondo_graph_capture_end(graph, stream));
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    must(rondo_graph_get_info(graph, &info));
    printf("captured on %s: %llu nodes (%llu copies, %llu kernels), nothing has run yet\n",
           rondo_device_info(device)->name, (unsigned long long)info.nodes, (unsigned long long)info.copies,
           (unsigned long long)info.kernels);

    for (int round = 1; round <= 5; ++round) {
        set_inputs(round); /* new values in the same buffers; the replay before has finished */
        must(rondo_graph_replay(graph, stream));
        must(rondo_stream_synchronize(stream));
        check_sum(round);
        printf("replay %d: z[0] = %g, z[%d] = %g, all %d right\n", round, (double)z_host[0], COUNT - 1,
               (double)z_host[COUNT - 1], COUNT);
    }

    const int times = 1000;
    double before = now_us();
    for (int i = 0; i < times; ++i) enqueue_tasks();
    must(rondo_stream_synchronize(stream));
    double eager = (now_us() - before) / times;
    before = now_us();
    for (int i = 0; i < times; ++i) must(rondo_graph_replay(graph, stream));
    must(rondo_stream_synchronize(stream));
    double replay = (now_us() - before) / times;
    printf("eager %.2f us, replay %.2f us a round of 4 tasks (the bytes moved are the same)\n", eager, replay);

    must(rondo_memory_free(device, y));
    rondo_status stale = rondo_graph_replay(graph, stream);
    must_be(rondo_status_code(stale) == RONDO_CODE_STALE, "a freed input is found");
    printf("y freed, then replayed: %s\n", rondo_status_message(stale));
    rondo_status_release(stale);

    rondo_graph_release(graph); /* before the memory and the kernel that it mentions */
    rondo_kernel_release(device, add);
    must(rondo_memory_free(device, x));
    must(rondo_memory_free(device, z));
    must(rondo_memory_host_free(device, x_host));
    must(rondo_memory_host_free(device, y_host));
    must(rondo_memory_host_free(device, z_host));
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
