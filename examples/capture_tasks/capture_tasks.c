/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks of the AclGraph sample, captured and replayed through rondo.h, on any device: copy, copy, z = x + y on float
 * [8,2048], copy back; on one stream (scenario 1), or with a second one that joins by events (scenario 2). The capture's
 * tasks are written as JSON, the graph runs five times, and all goes in order. capture_tasks_acl is the same, written for
 * Ascend's own library.
 * Usage: capture_tasks [1|2] [DEVICE] [FOLDER] */
#include <string.h>

#include "../must.h"

enum { ROWS = 8, COLUMNS = 2048, COUNT = ROWS * COLUMNS, BYTES = COUNT * 4, ROUNDS = 5 };

typedef struct sample {
    rondo_device *device;
    rondo_stream *main_stream, *compute_stream;
    rondo_event *x_there, *sum_there;
    rondo_kernel add;
    float *x_host, *y_host, *z_host;
    void *x, *y, *z;
    rondo_graph *graph;
} sample;

static void prepare(sample *s) {
    const int64_t shape[2] = {ROWS, COLUMNS};
    float **const hosts[] = {&s->x_host, &s->y_host, &s->z_host};
    void **const blocks[] = {&s->x, &s->y, &s->z};
    must(rondo_stream_create(s->device, NULL, &s->main_stream));
    must(rondo_kernel_prepare(s->device, "Add", 2, RONDO_DTYPE_F32, 2, shape, &s->add));
    for (int i = 0; i < 3; ++i) { /* pinned: captured copies need it where the device says so */
        must(rondo_memory_host_allocate(s->device, BYTES, (void **)hosts[i]));
        must(rondo_memory_allocate(s->device, BYTES, blocks[i]));
    }
    for (int i = 0; i < COUNT; ++i) {
        s->x_host[i] = (float)i * 0.1f;
        s->y_host[i] = (float)i * 0.2f;
    }
}

static void launch_add(const sample *s, rondo_stream *stream) {
    rondo_argument arguments[3] = {{(uint64_t)(uintptr_t)s->x, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)s->y, BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)s->z, BYTES, RONDO_ACCESS_WRITE, 0}};
    rondo_call call = RONDO_CALL_INIT;
    call.kernel = s->add;
    call.arguments = arguments;
    call.argument_count = 3;
    call.name = "add_custom";
    must(rondo_stream_launch(stream, &call));
}

/* Everything on the one stream. */
static void record_single_stream(const sample *s) {
    must(rondo_stream_copy(s->main_stream, s->x, s->x_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_stream_copy(s->main_stream, s->y, s->y_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    launch_add(s, s->main_stream);
    must(rondo_stream_copy(s->main_stream, s->z_host, s->z, BYTES, RONDO_COPY_DEVICE_TO_HOST));
}

/* The second stream becomes part of the capture when it waits for an event of the first, and comes back by another. */
static void record_double_stream(sample *s) {
    must(rondo_stream_create(s->device, NULL, &s->compute_stream));
    must(rondo_event_create(s->device, &s->x_there));
    must(rondo_event_create(s->device, &s->sum_there));
    must(rondo_stream_copy(s->main_stream, s->x, s->x_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    must(rondo_event_record(s->x_there, s->main_stream));
    must(rondo_event_wait(s->x_there, s->compute_stream));
    must(rondo_stream_copy(s->compute_stream, s->y, s->y_host, BYTES, RONDO_COPY_HOST_TO_DEVICE));
    launch_add(s, s->compute_stream);
    must(rondo_event_record(s->sum_there, s->compute_stream));
    must(rondo_event_wait(s->sum_there, s->main_stream));
    must(rondo_stream_copy(s->main_stream, s->z_host, s->z, BYTES, RONDO_COPY_DEVICE_TO_HOST));
}

static void capture(sample *s, int scenario, const char *folder) {
    char path[4096];
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    s->z_host[0] = -1;
    must(rondo_graph_create(s->device, NULL, &s->graph));
    must(rondo_graph_enable_debug_mode(s->graph));
    must(rondo_graph_capture_begin(s->graph, s->main_stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_GLOBAL));
    if (scenario == 1) record_single_stream(s);
    else record_double_stream(s);
    must(rondo_graph_capture_end(s->graph, s->main_stream));
    must_be(s->z_host[0] == -1, "capturing runs nothing");
    must(rondo_graph_get_info(s->graph, &info));
    must_be(info.copies == 3 && info.kernels == 1, "three copies and a kernel were recorded");
    (void)snprintf(path, sizeof path, "%s/graph_%s_stream.json", folder, scenario == 1 ? "single" : "double");
    must(rondo_graph_debug_dump(s->graph, path));
    printf("captured on %s: %llu nodes in %u lanes; its tasks are in %s\n", rondo_device_info(s->device)->name,
           (unsigned long long)info.nodes, (unsigned)info.lanes, path);
}

static void replay(const sample *s) {
    for (int round = 0; round < ROUNDS; ++round) {
        memset(s->z_host, 0, BYTES);
        s->x_host[0] = (float)round; /* the graph reads what lies there when it runs */
        must(rondo_graph_replay(s->graph, s->main_stream));
        must(rondo_stream_synchronize(s->main_stream));
        for (int i = 0; i < COUNT; ++i) must_be(s->z_host[i] == s->x_host[i] + s->y_host[i], "z = x + y");
        printf("round %d: z[0] = %g, z[%d] = %g\n", round, (double)s->z_host[0], COUNT - 1,
               (double)s->z_host[COUNT - 1]);
    }
}

/* The graph first: it mentions all the rest. */
static void clean(sample *s) {
    rondo_graph_release(s->graph);
    rondo_event_release(s->x_there);
    rondo_event_release(s->sum_there);
    rondo_stream_release(s->compute_stream);
    rondo_kernel_release(s->device, s->add);
    void *const blocks[] = {s->x, s->y, s->z};
    float *const hosts[] = {s->x_host, s->y_host, s->z_host};
    for (int i = 0; i < 3; ++i) {
        must(rondo_memory_free(s->device, blocks[i]));
        must(rondo_memory_host_free(s->device, hosts[i]));
    }
    rondo_stream_release(s->main_stream);
    rondo_device_release(s->device);
}

int main(int count, char **words) {
    int scenario = count > 1 ? atoi(words[1]) : 1;
    if (scenario != 1 && scenario != 2) {
        fprintf(stderr, "usage: capture_tasks [1|2] [DEVICE] [FOLDER]\n");
        return 2;
    }
    sample s = {0};
    rondo_instance *instance;
    must(rondo_instance_create(NULL, &instance));
    must(rondo_device_open(instance, count > 2 ? words[2] : "cpu", NULL, &s.device));
    prepare(&s);
    capture(&s, scenario, count > 3 ? words[3] : ".");
    replay(&s);
    clean(&s);
    rondo_instance_release(instance);
    printf("test pass!\n");
    return 0;
}
