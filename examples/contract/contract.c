/* SPDX-License-Identifier: Apache-2.0
 *
 * One contract for every device: what each type says of itself, and what the registry answers. */
#include "../must.h"

#include <string.h>

static const char *yes_no(int yes) { return yes ? "yes" : "no"; }

/* A capability bit is a claim; this captures three fills, replays them and looks at the memory. */
static const char *try_capture(rondo_device *device) {
    rondo_stream *stream;
    rondo_graph *graph;
    void *memory;
    uint8_t *host;
    must(rondo_stream_create(device, NULL, &stream));
    must(rondo_graph_create(device, NULL, &graph));
    must(rondo_memory_allocate(device, 192, &memory));
    must(rondo_memory_host_allocate(device, 192, (void **)&host));
    must(rondo_graph_capture_begin(graph, stream, (rondo_pool_id){0, 0}, RONDO_CAPTURE_MODE_DEFAULT));
    for (int i = 0; i < 3; ++i) must(rondo_stream_fill(stream, (char *)memory + 64 * i, (uint8_t)(i + 1), 64));
    must(rondo_stream_copy(stream, host, memory, 192, RONDO_COPY_DEVICE_TO_HOST));
    must(rondo_graph_capture_end(graph, stream));
    memset(host, 0, 192);
    must(rondo_graph_replay(graph, stream));
    must(rondo_stream_synchronize(stream));
    for (int i = 0; i < 192; ++i) must_be(host[i] == i / 64 + 1, "the replay's bytes");
    rondo_graph_release(graph);
    must(rondo_memory_free(device, memory));
    must(rondo_memory_host_free(device, host));
    rondo_stream_release(stream);
    return "works";
}

static void show_type(rondo_instance *instance, const char *type) {
    bool has_graph = false;
    uint32_t count = 0;
    must(rondo_device_has_graph_impl(instance, type, &has_graph));
    rondo_status status = rondo_device_type_count(instance, type, &count);
    if (rondo_status_code(status) == RONDO_CODE_UNAVAILABLE) { /* a type without its driver is no failure */
        printf("%-8s %-14s not here\n", type, yes_no(has_graph));
        rondo_status_release(status);
        return;
    }
    must(status);
    for (uint32_t i = 0; i < count; ++i) {
        char name[80];
        rondo_device *device;
        snprintf(name, sizeof name, "%s:%u", type, i);
        must(rondo_device_open(instance, name, NULL, &device));
        uint32_t bits = rondo_device_info(device)->capabilities;
        printf("%-8s %-14s %-9s %-7s %s\n", name, yes_no(has_graph), try_capture(device),
               yes_no((bits & RONDO_DEVICE_TREES_CAPABLE) != 0),
               (bits & RONDO_DEVICE_INLINE) ? "inline" : "asynchronous");
        rondo_device_release(device);
    }
}

int main(void) {
    rondo_instance *instance;
    must(rondo_instance_create(NULL, &instance));
    printf("%-8s %-14s %-9s %-7s %s\n", "device", "has_graph_impl", "capture", "trees", "streams");
    const char *type;
    for (uint32_t i = 0; (type = rondo_device_type_at(instance, i)); ++i) show_type(instance, type);

    bool has = false;
    rondo_status status = rondo_device_has_graph_impl(instance, NULL, &has);
    must(status);
    printf("has_graph_impl(current accelerator) -> %s\n", yes_no(has));
    status = rondo_device_has_graph_impl(instance, "warp9", &has);
    must_be(rondo_status_code(status) == RONDO_CODE_NOT_FOUND, "an unknown type is an error");
    printf("has_graph_impl(\"warp9\") -> %s\n", rondo_status_message(status));
    rondo_status_release(status);
    rondo_instance_release(instance);
    return 0;
}
