/* SPDX-License-Identifier: Apache-2.0
 *
 * A captured graph as a picture (dot), for programs (json), or to read (txt). The file appears whole or not at all: it
 * is written under another name beside its place, and renamed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h> /* mkstemp */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"

#define DUMP_PIECE_MAX ((size_t)1 << 30)
#define DUMP_POOLS_MAX 64u

typedef struct dump_writer {
    const rondo_graph *graph;
    FILE *file;
    rondo__buffer piece; /* text of one node */
    rondo__order_walk walk;
    const rondo__order_edge *edges; /* of the node: what it comes after */
    uint32_t edge_count;
    bool any_edge; /* json: some edge was written */
} dump_writer;

typedef struct dump_form {
    const char *ending;
    rondo_status (*head)(dump_writer *w);
    rondo_status (*node)(dump_writer *w, uint64_t index, const rondo__call_list_node *node);
    rondo_status (*tail)(dump_writer *w);
} dump_form;

static const char *const dump_kinds[RONDO__LIST_KINDS] = {"kernel",    "copy",   "fill", "host_call",
                                                          "condition", "record", "wait"};
static const char *const dump_accesses[] = {"value", "read", "write", "both"};
static const char *const dump_directions[] = {"none", "host_to_device", "device_to_host", "device_to_device"};

static rondo_status dump_quoted(rondo__buffer *out, const char *text) {
    return rondo__text_append_json(out, text, strlen(text));
}

static unsigned dump_lanes(const rondo_graph *graph) {
    const rondo__order *order = rondo__call_list_lanes(graph->list);
    return order ? (unsigned)order->lanes.count : 1u;
}

/* ---------------------------------------------------------------------------------------------------------- json */

/* The pools whose memory the graph keeps. */
static rondo_status dump_json_pools(dump_writer *w) {
    const rondo_graph *g = w->graph;
    rondo_pool_id pools[DUMP_POOLS_MAX];
    size_t count = rondo__memory_pools_kept(g->device->memory, &g->watcher, pools, DUMP_POOLS_MAX);
    for (size_t i = 0; i < count && i < DUMP_POOLS_MAX; i++)
        RONDO__TRY(rondo__text_append(&w->piece, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", pools[i].automatic,
                                      pools[i].user));
    return RONDO_OK;
}

static rondo_status dump_json_head(dump_writer *w) {
    const rondo_graph *g = w->graph;
    RONDO__TRY(rondo__text_append(&w->piece, "{\"graph\": "));
    RONDO__TRY(dump_quoted(&w->piece, g->name));
    RONDO__TRY(rondo__text_append(
        &w->piece, ", \"device\": \"%s:%d\", \"state\": \"%s\", \"replays\": %" PRIu64 ", \"lanes\": %u, \"slots\": [",
        g->device->properties.name, (int)g->device->properties.index, rondo__graph_state_name(rondo__graph_state_of(g)),
        g->replays, dump_lanes(g)));
    for (uint32_t i = 0; i < g->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(g, i);
        RONDO__TRY(rondo__text_append(&w->piece,
                                      "%s{\"declared\": \"0x%" PRIx64 "\", \"length\": %" PRIu64
                                      ", \"access\": \"%s\", \"policy\": \"%s\", \"bound\": \"0x%" PRIx64 "\"}",
                                      i ? ", " : "", slot->address, slot->length, dump_accesses[slot->access],
                                      slot->policy == RONDO_SLOT_COPY ? "copy" : "rebind", slot->bound));
    }
    RONDO__TRY(rondo__text_append(&w->piece, "],\n\"pools\": ["));
    RONDO__TRY(dump_json_pools(w));
    return rondo__text_append(&w->piece, "],\n\"nodes\": [");
}

static rondo_status dump_json_node(dump_writer *w, uint64_t index, const rondo__call_list_node *node) {
    RONDO__TRY(rondo__text_append(&w->piece, "%s\n{\"index\": %" PRIu64 ", \"kind\": \"%s\", \"lane\": %u, \"name\": ",
                                  index ? "," : "", index, dump_kinds[node->kind], (unsigned)node->lane));
    RONDO__TRY(dump_quoted(&w->piece, node->name));
    if (node->kind == RONDO__LIST_CONDITION)
        RONDO__TRY(rondo__text_append(&w->piece, ", \"end\": %" PRIu64, node->end));
    if (node->kind == RONDO__LIST_COPY)
        RONDO__TRY(rondo__text_append(&w->piece, ", \"direction\": \"%s\"", dump_directions[node->copy_kind]));
    RONDO__TRY(rondo__text_append(&w->piece, ", \"arguments\": ["));
    for (uint32_t i = 0; i < node->argument_count; i++) {
        const rondo_argument *a = &node->arguments[i];
        RONDO__TRY(rondo__text_append(&w->piece,
                                      "%s{\"word\": \"0x%" PRIx64 "\", \"access\": \"%s\", \"length\": %" PRIu64,
                                      i ? ", " : "", a->word, dump_accesses[a->access], a->length));
        if (node->slots[i] != UINT32_MAX)
            RONDO__TRY(rondo__text_append(&w->piece, ", \"slot\": %u", (unsigned)node->slots[i]));
        RONDO__TRY(rondo__text_append(&w->piece, "}"));
    }
    return rondo__text_append(&w->piece, "]}");
}

/* The edges come behind the nodes, so the nodes are walked once more. */
static rondo_status dump_json_edges(dump_writer *w) {
    rondo__order_walk walk;
    const rondo__order_edge *edges;
    rondo__order_edge single;
    const rondo__order *order = rondo__call_list_lanes(w->graph->list);
    uint64_t count = rondo__call_list_count(w->graph->list);
    rondo_status status = rondo__order_walk_begin(&walk, &w->graph->allocator, order);
    for (uint64_t i = 0; i < count && !status; i++) {
        uint32_t edge_count = rondo__order_walk_next(&walk, i, &edges, &single);
        for (uint32_t e = 0; e < edge_count && !status; e++) {
            status = rondo__text_append(&w->piece, "%s[%" PRIu32 ", %" PRIu64 "]", w->any_edge ? ", " : "",
                                        edges[e].from, i);
            w->any_edge = true;
        }
    }
    rondo__order_walk_end(&walk);
    return status;
}

static rondo_status dump_json_tail(dump_writer *w) {
    const rondo__list_child *child;
    const char *name;
    RONDO__TRY(rondo__text_append(&w->piece, "],\n\"edges\": ["));
    RONDO__TRY(dump_json_edges(w));
    RONDO__TRY(rondo__text_append(&w->piece, "],\n\"children\": ["));
    for (size_t i = 0; (child = rondo__call_list_child(w->graph->list, i, &name)) != NULL; i++) {
        RONDO__TRY(rondo__text_append(&w->piece, "%s{\"name\": ", i ? ", " : ""));
        RONDO__TRY(dump_quoted(&w->piece, name));
        RONDO__TRY(rondo__text_append(&w->piece, ", \"first\": %" PRIu64 ", \"count\": %" PRIu64 "}", child->first,
                                      child->count));
    }
    return rondo__text_append(&w->piece, "]}\n");
}

/* ----------------------------------------------------------------------------------------------------------- dot */

static rondo_status dump_dot_head(dump_writer *w) {
    RONDO__TRY(rondo__text_append(&w->piece, "digraph "));
    RONDO__TRY(dump_quoted(&w->piece, w->graph->name));
    return rondo__text_append(&w->piece, " {\nnode [shape=box, fontname=\"monospace\"];\n");
}

static rondo_status dump_label(rondo__buffer *out, uint64_t index, const rondo__call_list_node *node) {
    RONDO__TRY(rondo__text_append(out, "%" PRIu64 " %s%s%s", index, dump_kinds[node->kind], *node->name ? " " : "",
                                  node->name));
    for (uint32_t i = 0; i < node->argument_count; i++) {
        const rondo_argument *a = &node->arguments[i];
        RONDO__TRY(rondo__text_append(out, "\n%s 0x%" PRIx64, dump_accesses[a->access], a->word));
        if (a->access != RONDO_ACCESS_VALUE && a->length) RONDO__TRY(rondo__text_append(out, " +%" PRIu64, a->length));
        if (node->slots[i] != UINT32_MAX) RONDO__TRY(rondo__text_append(out, " slot %u", (unsigned)node->slots[i]));
    }
    if (node->lane) RONDO__TRY(rondo__text_append(out, "\nlane %u", (unsigned)node->lane));
    return RONDO_OK;
}

static rondo_status dump_dot_node(dump_writer *w, uint64_t index, const rondo__call_list_node *node) {
    rondo__buffer label;
    rondo__buffer_init(&label, &w->graph->allocator, 1, DUMP_PIECE_MAX);
    rondo_status status = dump_label(&label, index, node);
    if (!status) status = rondo__text_append(&w->piece, "n%" PRIu64 " [label=", index);
    if (!status) status = dump_quoted(&w->piece, rondo__text(&label));
    if (!status) status = rondo__text_append(&w->piece, "];\n");
    for (uint32_t e = 0; e < w->edge_count && !status; e++)
        status = rondo__text_append(&w->piece, "n%" PRIu32 " -> n%" PRIu64 ";\n", w->edges[e].from, index);
    rondo__buffer_deinit(&label);
    return status;
}

/* Nodes of a child stand in a box of its name. */
static rondo_status dump_dot_tail(dump_writer *w) {
    const rondo__list_child *child;
    const char *name;
    for (size_t i = 0; (child = rondo__call_list_child(w->graph->list, i, &name)) != NULL; i++) {
        RONDO__TRY(rondo__text_append(&w->piece, "subgraph cluster_%zu {\nlabel=", i));
        RONDO__TRY(dump_quoted(&w->piece, name));
        for (uint64_t n = 0; n < child->count; n++)
            RONDO__TRY(rondo__text_append(&w->piece, ";\nn%" PRIu64, child->first + n));
        RONDO__TRY(rondo__text_append(&w->piece, ";\n}\n"));
    }
    return rondo__text_append(&w->piece, "}\n");
}

/* ---------------------------------------------------------------------------------------------------------- text */

static rondo_status dump_text_head(dump_writer *w) {
    const rondo_graph *g = w->graph;
    RONDO__TRY(rondo__text_append(&w->piece, "graph '%s' on %s:%d, %s, %" PRIu64 " nodes, %zu slots\n", g->name,
                                  g->device->properties.name, (int)g->device->properties.index,
                                  rondo__graph_state_name(rondo__graph_state_of(g)), rondo__call_list_count(g->list),
                                  g->slots.count));
    for (uint32_t i = 0; i < g->slots.count; i++) {
        const rondo__graph_slot *slot = rondo__graph_slot_at(g, i);
        RONDO__TRY(rondo__text_append(&w->piece,
                                      "slot %u: %s, %s, declared 0x%" PRIx64 " +%" PRIu64 ", now 0x%" PRIx64 "\n",
                                      (unsigned)i, slot->policy == RONDO_SLOT_COPY ? "copy" : "rebind",
                                      dump_accesses[slot->access], slot->address, slot->length, slot->bound));
    }
    return RONDO_OK;
}

/* What a node waits for beside the one before it in its lane. */
static rondo_status dump_text_order(dump_writer *w, uint64_t index) {
    const rondo__order *order = rondo__call_list_lanes(w->graph->list);
    for (uint32_t e = 0; order && e < w->edge_count; e++) {
        uint32_t from = w->edges[e].from;
        if (rondo__order_lane_of(order, from) == rondo__order_lane_of(order, index)) continue;
        RONDO__TRY(rondo__text_append(&w->piece, ", waits for node %" PRIu32, from));
    }
    return rondo__text_append(&w->piece, "\n");
}

static rondo_status dump_text_node(dump_writer *w, uint64_t index, const rondo__call_list_node *node) {
    RONDO__TRY(rondo__text_append(&w->piece, "%6" PRIu64 "  ", index));
    if (dump_lanes(w->graph) > 1u) RONDO__TRY(rondo__text_append(&w->piece, "lane %-3u ", (unsigned)node->lane));
    RONDO__TRY(rondo__text_append(&w->piece, "%-9s  %s", dump_kinds[node->kind], node->name));
    for (uint32_t i = 0; i < node->argument_count; i++) {
        const rondo_argument *a = &node->arguments[i];
        RONDO__TRY(
            rondo__text_append(&w->piece, "%s%s 0x%" PRIx64, i ? ", " : "  (", dump_accesses[a->access], a->word));
        if (a->access != RONDO_ACCESS_VALUE && a->length)
            RONDO__TRY(rondo__text_append(&w->piece, " +%" PRIu64, a->length));
        if (node->slots[i] != UINT32_MAX)
            RONDO__TRY(rondo__text_append(&w->piece, " slot %u", (unsigned)node->slots[i]));
    }
    RONDO__TRY(rondo__text_append(&w->piece, node->argument_count ? ")" : ""));
    if (node->kind == RONDO__LIST_CONDITION)
        RONDO__TRY(rondo__text_append(&w->piece, ", else to node %" PRIu64, node->end));
    return dump_text_order(w, index);
}

static rondo_status dump_text_tail(dump_writer *w) {
    const rondo__list_child *child;
    const char *name;
    for (size_t i = 0; (child = rondo__call_list_child(w->graph->list, i, &name)) != NULL; i++)
        RONDO__TRY(rondo__text_append(&w->piece, "child '%s': %" PRIu64 " nodes from node %" PRIu64 "\n", name,
                                      child->count, child->first));
    return RONDO_OK;
}

static const dump_form dump_forms[] = {
    {".json", dump_json_head, dump_json_node, dump_json_tail},
    {".dot", dump_dot_head, dump_dot_node, dump_dot_tail},
    {".txt", dump_text_head, dump_text_node, dump_text_tail},
};

static const dump_form *dump_form_of(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof dump_forms / sizeof *dump_forms; i++) {
        size_t ending = strlen(dump_forms[i].ending);
        if (length > ending && strcmp(path + length - ending, dump_forms[i].ending) == 0) return &dump_forms[i];
    }
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------------- file */

static rondo_status dump_flush(dump_writer *w, const char *path) {
    size_t length = strlen(rondo__text(&w->piece));
    size_t written = fwrite(rondo__text(&w->piece), 1, length, w->file);
    w->piece.count = 0;
    if (written != length) return RONDO__FAIL(IO, FILE, "'%s' cannot be written: %s", path, strerror(errno));
    return RONDO_OK;
}

static rondo_status dump_write(dump_writer *w, const dump_form *form, const char *path) {
    rondo__call_list_node node;
    rondo__order_edge single;
    uint64_t count = rondo__call_list_count(w->graph->list);
    RONDO__TRY(form->head(w));
    for (uint64_t i = 0; i < count; i++) {
        rondo__call_list_describe(w->graph->list, i, &node);
        w->edge_count = rondo__order_walk_next(&w->walk, i, &w->edges, &single);
        RONDO__TRY(form->node(w, i, &node));
        if (w->piece.count > 65536u) RONDO__TRY(dump_flush(w, path));
    }
    RONDO__TRY(form->tail(w));
    return dump_flush(w, path);
}

/* Writes to `draft`, an open file of that name, then puts it in place. */
static rondo_status dump_to(const rondo_graph *graph, const dump_form *form, int descriptor, const char *draft,
                            const char *path) {
    dump_writer w = {.graph = graph, .file = fdopen(descriptor, "w")};
    if (!w.file) {
        (void)close(descriptor);
        return RONDO__FAIL(IO, FILE, "'%s' cannot be written: %s", path, strerror(errno));
    }
    rondo__buffer_init(&w.piece, &graph->allocator, 1, DUMP_PIECE_MAX);
    rondo_status status = rondo__order_walk_begin(&w.walk, &graph->allocator, rondo__call_list_lanes(graph->list));
    if (!status) status = dump_write(&w, form, path);
    rondo__order_walk_end(&w.walk);
    rondo__buffer_deinit(&w.piece);
    if (fclose(w.file) != 0 && !status)
        status = RONDO__FAIL(IO, FILE, "'%s' cannot be written: %s", path, strerror(errno));
    if (!status && rename(draft, path) != 0)
        status = RONDO__FAIL(IO, FILE, "'%s' cannot be put in place: %s", path, strerror(errno));
    return status;
}

/* The driver's own picture; nobody else knows the nodes. */
static rondo_status dump_direct(const rondo_graph *graph, const dump_form *form, int descriptor, const char *draft,
                                const char *path) {
    const rondo_graph_table *table = graph->device->table->graph;
    (void)close(descriptor);
    if (strcmp(form->ending, ".json") != 0 || !table->debug_print)
        return RONDO__FAIL(UNSUPPORTED, FILE, "'%s': graph '%s' was captured by its driver, which writes .json%s", path,
                           graph->name, table->debug_print ? " only" : " not either");
    RONDO__TRY(table->debug_print(graph->driver.graph, draft));
    if (rename(draft, path) == 0) return RONDO_OK;
    return RONDO__FAIL(IO, FILE, "'%s' cannot be put in place: %s", path, strerror(errno));
}

rondo_status rondo_graph_debug_dump(rondo_graph *graph, const char *path) {
    static const char suffix[] = ".XXXXXX";
    void *memory;
    if (!graph || !path) return RONDO__FAIL(INVALID_ARGUMENT, CAPTURE, "debug_dump needs a graph and a path");
    RONDO__TRY(rondo__graph_check(graph, RONDO__GRAPH_DEBUG_DUMP));
    if (!graph->debug && !graph->keep_graph)
        return RONDO__FAIL(INVALID_STATE, CAPTURE,
                           "graph '%s' kept nothing to dump: call rondo_graph_enable_debug_mode before the capture, or "
                           "create the graph with keep_graph",
                           graph->name);
    const dump_form *form = dump_form_of(path);
    if (!form)
        return RONDO__FAIL(INVALID_ARGUMENT, FILE,
                           "'%s': the ending picks the form, and it is none of .dot, .json, .txt", path);
    size_t length = strlen(path);
    RONDO__TRY(rondo__allocate(&graph->allocator, length + sizeof suffix, &memory));
    char *draft = memory;
    memcpy(draft, path, length);
    memcpy(draft + length, suffix, sizeof suffix);
    int descriptor = mkstemp(draft);
    rondo_status status;
    if (descriptor < 0) {
        status = RONDO__FAIL(IO, FILE, "'%s' cannot be written: %s", path, strerror(errno));
    } else {
        (void)fchmod(descriptor, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
        status = graph->direct ? dump_direct(graph, form, descriptor, draft, path)
                               : dump_to(graph, form, descriptor, draft, path);
        if (status) (void)unlink(draft);
    }
    rondo__free(&graph->allocator, draft, length + sizeof suffix);
    return status;
}
