/* SPDX-License-Identifier: Apache-2.0
 *
 * A graph from its file, with operators that have prototypes. */
#include <errno.h>
#include <fcntl.h>
#include <rondo/ir.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/instance.h"
#include "ir/file.h"
#include "ops/ops.h"

#define GRAPH_LOAD_UNKNOWN_MAX 32u /* operators that are listed */

static void graph_load_count_unknown(const rondo_ir_graph *graph, const char **names, uint32_t *count,
                                     uint32_t *nodes) {
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        if (rondo__ops_lookup(graph, node->operator_name)) continue;
        ++*nodes;
        uint32_t i = 0;
        while (i < *count && strcmp(names[i], node->operator_name) != 0) i++;
        if (i == *count && i < GRAPH_LOAD_UNKNOWN_MAX) names[(*count)++] = node->operator_name;
    }
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        graph_load_count_unknown(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i), names, count, nodes);
    }
}

static rondo_status graph_load_check_nodes(const rondo_ir_graph *graph) {
    for (size_t n = 0; n < graph->nodes.count; n++) {
        RONDO__TRY(rondo__ops_check_model_node(graph, rondo__ir_node_at(graph, (rondo_ir_node)n)));
    }
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        RONDO__TRY(graph_load_check_nodes(*RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i)));
    }
    return RONDO_OK;
}

static rondo_status graph_load_check(const rondo_ir_graph *graph, const char *name) {
    const char *names[GRAPH_LOAD_UNKNOWN_MAX];
    uint32_t count = 0, nodes = 0;
    graph_load_count_unknown(graph, names, &count, &nodes);
    if (!nodes) {
        RONDO__TRY_NOTE(graph_load_check_nodes(graph), "while reading '%s'", name);
        return RONDO_OK;
    }
    rondo_status status =
        RONDO__FAIL(UNSUPPORTED, PROTOTYPE, "'%s': %u nodes have operators without a prototype", name, nodes);
    for (uint32_t i = 0; i < count; i++) status = rondo__status_note(status, "%s", names[i]);
    return count < GRAPH_LOAD_UNKNOWN_MAX ? status : rondo__status_note(status, "and perhaps more");
}

rondo_status rondo_ir_graph_load_memory(rondo_instance *instance, const char *name, const void *data, size_t size,
                                        rondo_ir_graph **out_graph) {
    if (!instance || !out_graph || (size && !data)) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "to load needs an instance, data and a place for the graph");
    }
    const rondo__instance_base *base = rondo__instance_base_of(instance);
    rondo_ir_graph *graph = NULL;
    if (!name) name = "memory";
    RONDO__TRY(rondo__ir_load(&base->allocator, instance, base->operators, name, data, size, &graph));
    rondo_status status = graph_load_check(graph, name);
    if (status) {
        rondo_ir_graph_release(graph);
        return status;
    }
    *out_graph = graph;
    return RONDO_OK;
}

static rondo_status graph_load_failed(const char *path, int error) {
    char buffer[128];
    const char *reason = strerror_r(error, buffer, sizeof buffer); /* the GNU form: returns the text */
    if (error == ENOENT || error == ENOTDIR) {
        return RONDO__FAIL(NOT_FOUND, FILE, "'%.300s' cannot be opened: %s", path, reason);
    }
    return RONDO__FAIL(IO, FILE, "'%.300s' cannot be read: %s", path, reason);
}

/* A short read is an error like any other, as is a file that grows: it is read once, as long as it was. */
static rondo_status graph_load_fill(int file, const char *path, uint8_t *at, size_t size) {
    while (size) {
        ssize_t got = read(file, at, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return graph_load_failed(path, errno);
        if (got == 0) return RONDO__FAIL(IO, FILE, "'%.300s' became shorter while it was read", path);
        at += got;
        size -= (size_t)got;
    }
    return RONDO_OK;
}

static rondo_status graph_load_file(rondo_instance *instance, int file, const char *path, rondo_ir_graph **out_graph) {
    const rondo_allocator *allocator = &rondo__instance_base_of(instance)->allocator;
    struct stat facts;
    if (fstat(file, &facts) != 0) return graph_load_failed(path, errno);
    if (!S_ISREG(facts.st_mode)) return RONDO__FAIL(IO, FILE, "'%.300s' is not a regular file", path);
    if (facts.st_size == 0) return RONDO__FAIL(CORRUPT, FILE, "'%.300s' is empty", path);
    void *data;
    size_t size = (size_t)facts.st_size;
    RONDO__TRY_NOTE(rondo__allocate(allocator, size, &data), "while reading '%s'", path);
    rondo_status status = graph_load_fill(file, path, data, size);
    if (!status) status = rondo_ir_graph_load_memory(instance, path, data, size, out_graph);
    rondo__free(allocator, data, size);
    return status;
}

rondo_status rondo_ir_graph_load(rondo_instance *instance, const char *path, rondo_ir_graph **out_graph) {
    if (!instance || !path || !out_graph) {
        return RONDO__FAIL(INVALID_ARGUMENT, INPUT, "to load needs an instance, a path and a place for the graph");
    }
    /* Non-blocking, so that a pipe without a writer does not hold us before we see that it is one. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return graph_load_failed(path, errno);
    rondo_status status = graph_load_file(instance, file, path, out_graph);
    (void)close(file);
    return status;
}
