/* SPDX-License-Identifier: Apache-2.0
 *
 * A captured run of tasks on two streams: two copies to the device, x + y on one stream while x * y is made on the other,
 * their sum, one copy back; replayed five times with new inputs. Then an input is freed, and the replay says which node
 * would have read it. Usage: capture [DEVICE] */
#include "../must.h"

enum { ROWS = 8, COLUMNS = 2048, COUNT = ROWS * COLUMNS, BYTES = COUNT * 4 };

static rondo_stream *stream, *other;
static rondo_event *forked, *joined;
static rondo_kernel add, multiply;
static float *x_host, *y_host, *z_host;
static void *x, *y, *sum, *product, *z;

static void launch(rondo_stream *on, const char *name, rondo_kernel kernel, void *a, void *b, void *result) {
    rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)a, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)b, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)result, BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = kernel;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = name;
    must(rondo_stream_launch(on, &call));
}

/* z = (x + y) + x * y. The same tasks, whether they run at once or a capture records them. */
static void enqueue_tasks(void) {
    must(rondo_stream_copy(stream, x, x_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_copy(stream, y, y_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    /* The fork: from here on the other stream is part of the capture, and its work may run beside the first one's. */
    must(rondo_event_record(forked, stream));
    must(rondo_event_wait(forked, other));
    launch(stream, "sum", add, x, y, sum);
    launch(other, "product", multiply, x, y, product);
    /* The join, without which the end of the capture would be refused. */
    must(rondo_event_record(joined, other));
    must(rondo_event_wait(joined, stream));
    launch(stream, "both", add, sum, product, z);
    must(rondo_stream_copy(stream, z_host, z, BYTES, RONDO_COPY_DEVICE_TO_HOST));
}

static void set_inputs(int round) {
    for (int i = 0; i < COUNT; ++i) {
        x_host[i] = (float)(i % 100);
        y_host[i] = (float)round;
        z_host[i] = -1;
    }
}

static void check_result(int round) {
    for (int i = 0; i < COUNT; ++i) {
        int a = i % 100;
        must_be(z_host[i] == (float)(a + round + a * round), "z = (x + y) + x * y");
    }
}

/* The mean of many rounds, each of the same tasks, in microseconds. */
static double round_us(rondo_graph *graph) {
    const int times = 1000;
    double before = now_us();
    for (int i = 0; i < times; ++i) {
        if (graph) must(rondo_graph_replay(graph, stream));
        else enqueue_tasks();
    }
    must(rondo_stream_synchronize(stream));
    return (now_us() - before) / times;
}

int main(int argc, char **argv) {
    rondo_instance *instance;
    rondo_device *device;
    rondo_graph *graph;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, argc > 1 ? argv[1] : "cpu", NULL, &device));
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_stream_create(device, NULL, &other));
    must(rondo_event_create(device, &forked));
    must(rondo_event_create(device, &joined));
    /* Host memory of asynchronous copies is pinned: a capture refuses any other where the device needs it. */
    float **const hosts[] = {&x_host, &y_host, &z_host};
    void **const blocks[] = {&x, &y, &sum, &product, &z};
    for (int i = 0; i < 3; ++i) must(rondo_memory_host_allocate(device, BYTES, (void **)hosts[i]));
    for (int i = 0; i < 5; ++i) must(rondo_memory_allocate(device, BYTES, blocks[i]));
    const int64_t shape[2] = {ROWS, COLUMNS};
    must(rondo_kernel_prepare(device, "Add", 2, RONDO_DTYPE_F32, 2, shape, &add));
    must(rondo_kernel_prepare(device, "Mul", 2, RONDO_DTYPE_F32, 2, shape, &multiply));

    must(rondo_graph_create(device, NULL, &graph));
    must(rondo_graph_capture_begin(graph, stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    enqueue_tasks();
    must(rondo_graph_capture_end(graph, stream));
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    must(rondo_graph_get_info(graph, &info));
    must_be(info.lanes == 2, "a lane for each stream");
    printf("captured on %s: %llu nodes (%llu copies, %llu kernels) in %u lanes, nothing has run yet\n",
           rondo_device_info(device)->name, (unsigned long long)info.nodes, (unsigned long long)info.copies,
           (unsigned long long)info.kernels, (unsigned)info.lanes);

    for (int round = 1; round <= 5; ++round) {
        set_inputs(round); /* new values in the same buffers; the replay before has finished */
        must(rondo_graph_replay(graph, stream));
        must(rondo_stream_synchronize(stream));
        check_result(round);
        printf("replay %d: z[1] = %g, z[%d] = %g, all %d right\n", round, (double)z_host[1], COUNT - 1,
               (double)z_host[COUNT - 1], COUNT);
    }

    double eager = round_us(NULL), replay = round_us(graph);
    printf("eager %.2f us, replay %.2f us a round of %llu tasks (the bytes moved are the same)\n", eager, replay,
           (unsigned long long)info.nodes);

    must(rondo_memory_free(device, y));
    rondo_status stale = rondo_graph_replay(graph, stream);
    must_be(rondo_status_code(stale) == RONDO_CODE_STALE, "a freed input is found");
    printf("y freed, then replayed: %s\n", rondo_status_message(stale));
    rondo_status_release(stale);

    rondo_graph_release(graph); /* before the memory and the kernels that it mentions */
    rondo_kernel_release(device, add);
    rondo_kernel_release(device, multiply);
    for (int i = 0; i < 5; ++i)
        if (blocks[i] != &y) must(rondo_memory_free(device, *blocks[i]));
    for (int i = 0; i < 3; ++i) must(rondo_memory_host_free(device, *hosts[i]));
    rondo_event_release(forked);
    rondo_event_release(joined);
    rondo_stream_release(other);
    rondo_stream_release(stream);
    rondo_device_release(device);
    rondo_instance_release(instance);
    return 0;
}
