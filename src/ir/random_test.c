/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs with branches: shuffled and sorted, thinned and copied, and many nodes in good time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "ir/private.h"

static void release_graph(rondo_ir_graph **graph) { rondo_ir_graph_release(*graph); }

static void make_graph(rondo_test *t, rondo_ir_graph **out) {
    *out = NULL;
    T_DEFER(t, release_graph, out);
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "main", NULL, out));
}

static uint32_t below(rondo_test *t, size_t count) { return (uint32_t)(rondo_test_random(t) % count); }

static void fill_graph(rondo_test *t, rondo_ir_graph *graph, uint32_t nodes, uint32_t depth);

static void add_branch(rondo_test *t, rondo_ir_graph *graph, rondo_attribute *attribute, uint32_t depth) {
    rondo_ir_graph *branch = NULL;
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "branch", graph, &branch));
    for (uint32_t i = 0; i < 2; i++) {
        rondo_ir_value outer;
        T_OK(t, rondo__ir_value_outer(branch, below(t, graph->values.count), &outer));
    }
    fill_graph(t, branch, 1u + below(t, 6), depth + 1u);
    *attribute = (rondo_attribute){.name = "body", .kind = RONDO_ATTRIBUTE_GRAPH, .value.graph = branch};
}

/* Nodes over whatever values there are; every value is defined when it is used. */
static void fill_graph(rondo_test *t, rondo_ir_graph *graph, uint32_t nodes, uint32_t depth) {
    static const char *const operators[] = {"Add", "Mul", "Conv", "If"};
    for (uint32_t n = 0; n < nodes; n++) {
        rondo_ir_value inputs[4], outputs[3];
        rondo_attribute attributes[2] = {{.name = "axis", .kind = RONDO_ATTRIBUTE_INT, .value.i = n}};
        uint32_t input_count = 1u + below(t, 4), output_count = 1u + below(t, 3), attribute_count = below(t, 2);
        for (uint32_t i = 0; i < input_count; i++) {
            inputs[i] = below(t, 8) ? below(t, graph->values.count) : RONDO_IR_NONE;
        }
        if (depth < 3 && below(t, 8) == 0) add_branch(t, graph, &attributes[attribute_count++], depth);
        for (uint32_t i = 0; i < output_count; i++) {
            outputs[i] = RONDO_IR_NONE;
            if (i && below(t, 4) == 0) continue;
            T_OK(t, rondo__ir_value_add(graph, NULL, "v", NULL, &outputs[i]));
        }
        T_OK(t, rondo__ir_node_add(graph, operators[below(t, 4)], NULL, inputs, input_count, outputs, output_count,
                                   attributes, attribute_count, NULL));
    }
    for (uint32_t i = 0; i < 2; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "out%u", i);
        T_OK(t, rondo__ir_output_add(graph, below(t, graph->values.count), name));
    }
}

static void make_random(rondo_test *t, rondo_ir_graph **out, uint32_t nodes) {
    static const int64_t dims[2] = {-1, 4};
    static const float data[2] = {1, 2};
    static const int64_t two[1] = {2};
    const char *const symbols[2] = {"batch", NULL};
    rondo_ir_value value;
    make_graph(t, out);
    T_OK(t, rondo_ir_graph_add_input(*out, "x", RONDO_DTYPE_F32, 2, dims, symbols, &value));
    T_OK(t, rondo_ir_graph_add_input(*out, "y", RONDO_DTYPE_F32, 2, dims, symbols, &value));
    T_OK(t, rondo_ir_graph_add_constant(*out, "c", RONDO_DTYPE_F32, 1, two, data, &value));
    fill_graph(t, *out, nodes, 0);
    T_OK(t, rondo__ir_verify(*out));
}

static void swap_nodes(rondo_ir_graph *graph, rondo_ir_node a, rondo_ir_node b) {
    rondo__ir_node_data *x = rondo__ir_node_at(graph, a), *y = rondo__ir_node_at(graph, b), kept = *x;
    *x = *y;
    *y = kept;
    for (uint32_t i = 0; i < x->output_count; i++) {
        if (x->outputs[i] != RONDO_IR_NONE) rondo__ir_value_at(graph, x->outputs[i])->producer = a;
    }
    for (uint32_t i = 0; i < y->output_count; i++) {
        if (y->outputs[i] != RONDO_IR_NONE) rondo__ir_value_at(graph, y->outputs[i])->producer = b;
    }
}

static void shuffle(rondo_test *t, rondo_ir_graph *graph) {
    for (uint32_t i = 1; i < graph->nodes.count; i++) swap_nodes(graph, i, below(t, i + 1u));
    for (size_t i = 0; i < graph->subgraphs.count; i++) {
        shuffle(t, *RONDO__BUFFER_AT(&graph->subgraphs, rondo_ir_graph *, i));
    }
}

typedef struct dumped {
    char *data;
    size_t size, capacity;
} dumped;

static int32_t dump_write(void *user, const char *data, size_t size) {
    dumped *d = user;
    if (d->size + size + 1u > d->capacity) return 1;
    memcpy(d->data + d->size, data, size);
    d->size += size;
    d->data[d->size] = '\0';
    return 0;
}

#define DUMP_MAX (1u << 22)
static char dump_a[DUMP_MAX], dump_b[DUMP_MAX];

static void dump_into(rondo_test *t, const rondo_ir_graph *graph, rondo_dump_format format, char *buffer) {
    dumped d = {buffer, 0, DUMP_MAX};
    buffer[0] = '\0';
    T_OK(t, rondo_ir_graph_dump(graph, format, dump_write, &d));
}

static void test_sort(rondo_test *t) {
    for (int round = 0; round < 40; round++) {
        rondo_ir_graph *g;
        make_random(t, &g, 40);
        dump_into(t, g, RONDO_DUMP_TEXT, dump_a);
        T_OK(t, rondo__ir_sort(g)); /* what is in order stays as it is */
        dump_into(t, g, RONDO_DUMP_TEXT, dump_b);
        T_STR(t, dump_a, dump_b);
        shuffle(t, g);
        T_OK(t, rondo__ir_sort(g));
        T_OK(t, rondo__ir_verify(g));
        release_graph(&g);
        g = NULL;
    }
}

/* Ends of a graph and things nobody needs are taken out; what is left must be unharmed. */
static void thin(rondo_test *t, rondo_ir_graph *graph) {
    uint8_t *used = calloc(graph->values.count, 1);
    T_TRUE(t, used != NULL);
    for (uint32_t i = 0; i < graph->outputs.count; i++) used[rondo__ir_output_at(graph, i)] = 1;
    for (size_t n = graph->nodes.count; n-- > 0;) {
        rondo__ir_node_data *node = rondo__ir_node_at(graph, (rondo_ir_node)n);
        bool needed = false;
        for (uint32_t i = 0; i < node->output_count; i++) {
            needed = needed || (node->outputs[i] != RONDO_IR_NONE && used[node->outputs[i]]);
        }
        node->dead = !needed;
        for (uint32_t i = 0; needed && i < node->input_count; i++) {
            if (node->inputs[i] != RONDO_IR_NONE) used[node->inputs[i]] = 1;
        }
        for (uint32_t i = 0; needed && i < node->attribute_count; i++) {
            const rondo_ir_graph *branch = rondo__ir_attribute_graph(&node->attributes[i]);
            for (uint32_t v = 0; branch && v < branch->values.count; v++) {
                rondo_ir_value outer = rondo__ir_value_at(branch, v)->outer;
                if (outer != RONDO_IR_NONE) used[outer] = 1;
            }
        }
    }
    free(used);
}

static const char *name_of(const rondo_ir_graph *graph, rondo_ir_value value) {
    return value == RONDO_IR_NONE ? "-" : rondo__ir_value_at(graph, value)->name;
}

static void check_same_nodes(rondo_test *t, const rondo_ir_graph *from, const rondo_ir_graph *copy) {
    uint32_t at = 0;
    for (uint32_t n = 0; n < from->nodes.count; n++) {
        const rondo__ir_node_data *a = rondo__ir_node_at(from, n);
        if (a->dead) continue;
        T_TRUE(t, at < copy->nodes.count);
        const rondo__ir_node_data *b = rondo__ir_node_at(copy, at++);
        T_STR(t, b->name, a->name);
        T_STR(t, b->operator_name, a->operator_name);
        T_EQ(t, b->input_count, a->input_count);
        T_EQ(t, b->output_count, a->output_count);
        for (uint32_t i = 0; i < a->input_count; i++)
            T_STR(t, name_of(copy, b->inputs[i]), name_of(from, a->inputs[i]));
        for (uint32_t i = 0; i < a->output_count; i++) {
            T_STR(t, name_of(copy, b->outputs[i]), name_of(from, a->outputs[i]));
        }
        T_EQ(t, b->attribute_count, a->attribute_count);
        for (uint32_t i = 0; i < a->attribute_count; i++) {
            const rondo_ir_graph *branch = rondo__ir_attribute_graph(&a->attributes[i]);
            if (!branch) continue;
            T_TRUE(t, b->attributes[i].value.graph != branch);
            T_TRUE(t, rondo__ir_attribute_graph(&b->attributes[i])->parent == copy);
            check_same_nodes(t, branch, b->attributes[i].value.graph);
        }
    }
    T_EQ(t, at, copy->nodes.count);
}

static void test_clone(rondo_test *t) {
    for (int round = 0; round < 40; round++) {
        rondo_ir_graph *g, *copy = NULL, *again = NULL;
        make_random(t, &g, 40);
        thin(t, g);
        g->opset = 17;
        g->nodes_in_model = 5;
        T_OK(t, rondo__ir_clone(g, round % 2, &copy));
        T_OK(t, rondo__ir_verify(copy));
        check_same_nodes(t, g, copy);
        T_TRUE(t, copy->opset == 17 && copy->nodes_in_model == 5);
        dump_into(t, copy, RONDO_DUMP_JSON, dump_a);
        rondo_ir_graph_release(g);
        g = NULL; /* with share the copy holds it */
        T_OK(t, rondo__ir_clone(copy, round % 2, &again));
        rondo_ir_graph_release(copy);
        dump_into(t, again, RONDO_DUMP_JSON, dump_b);
        T_STR(t, dump_b, dump_a);
        rondo_ir_graph_release(again);
    }
}

static void test_small_graph_everything(rondo_test *t) {
    rondo_ir_graph *g, *copy = NULL;
    make_random(t, &g, 6);
    T_DEFER(t, release_graph, &copy);
    shuffle(t, g);
    T_OK(t, rondo__ir_sort(g));
    T_OK(t, rondo__ir_verify(g));
    T_OK(t, rondo__ir_clone(g, true, &copy));
    dump_into(t, copy, RONDO_DUMP_DOT, dump_a);
    dump_into(t, copy, RONDO_DUMP_JSON, dump_a);
    dump_into(t, copy, RONDO_DUMP_TEXT, dump_a);
}

static void test_cycle(rondo_test *t) {
    rondo_ir_graph *g;
    make_graph(t, &g);
    rondo_ir_value v[3];
    for (int i = 0; i < 3; i++) T_OK(t, rondo__ir_value_add(g, NULL, "v", NULL, &v[i]));
    const rondo_ir_value ends[2] = {v[2], v[0]};
    T_OK(t, rondo__ir_node_add(g, "Op", "one", &ends[0], 1, &v[0], 1, NULL, 0, NULL));
    T_OK(t, rondo__ir_node_add(g, "Op", "two", &v[0], 1, &v[1], 1, NULL, 0, NULL));
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "not defined before its use");
    T_OK(t, rondo__ir_node_add(g, "Op", "three", &v[1], 1, &v[2], 1, NULL, 0, NULL));
    T_FAILS(t, rondo__ir_sort(g), CORRUPT, "is on a cycle");
    rondo__ir_node_at(g, 2)->dead = true; /* then it is none any more */
    T_OK(t, rondo__ir_sort(g));
}

/* A branch makes the node that has it need what the branch takes from around it. */
static void test_cycle_through_branch(rondo_test *t) {
    rondo_ir_graph *g, *branch;
    make_graph(t, &g);
    rondo_ir_value x, y, outer;
    T_OK(t, rondo__ir_value_add(g, "x", NULL, NULL, &x));
    T_OK(t, rondo__ir_value_add(g, "y", NULL, NULL, &y));
    T_OK(t, rondo__ir_graph_create(rondo_test_allocator(t), NULL, "b", g, &branch));
    T_OK(t, rondo__ir_value_outer(branch, y, &outer));
    const rondo_attribute body = {.name = "body", .kind = RONDO_ATTRIBUTE_GRAPH, .value.graph = branch};
    T_OK(t, rondo__ir_node_add(g, "If", "if", NULL, 0, &x, 1, &body, 1, NULL));
    T_OK(t, rondo__ir_node_add(g, "Op", "late", NULL, 0, &y, 1, NULL, 0, NULL));
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "branch 'body' uses 'y'");
    T_OK(t, rondo__ir_sort(g));
    T_STR(t, rondo__ir_node_at(g, 0)->name, "late");
    T_OK(t, rondo__ir_verify(g));
    rondo__ir_node_at(g, 0)->inputs = &x;
    rondo__ir_node_at(g, 0)->input_count = 1;
    T_FAILS(t, rondo__ir_sort(g), CORRUPT, "is on a cycle");
}

static void test_verify_finds(rondo_test *t) {
    rondo_ir_graph *g;
    make_random(t, &g, 20);
    rondo__ir_node_data *node = rondo__ir_node_at(g, 19);
    rondo_ir_value kept = node->inputs[0];
    node->inputs[0] = 100000;
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "no value");
    node->inputs[0] = kept;
    const char *name = node->name;
    node->name = rondo__ir_node_at(g, 0)->name;
    T_FAILS(t, rondo__ir_verify(g), ALREADY_EXISTS, "twice");
    node->name = name;
    rondo__ir_value_data *data = rondo__ir_value_at(g, node->outputs[0]);
    data->producer = 0;
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "something else makes it");
    data->producer = 19;
    data->type.dtype = 99;
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "malformed type");
    data->type.dtype = 0;
    name = data->name;
    data->name = "x";
    T_FAILS(t, rondo__ir_verify(g), ALREADY_EXISTS, "'x' twice");
    data->name = name;
    rondo__ir_value_at(g, 2)->type.dtype = RONDO_DTYPE_I64;
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "not that of its constant");
    rondo__ir_value_at(g, 2)->type.dtype = RONDO_DTYPE_F32;
    *RONDO__BUFFER_AT(&g->outputs, rondo_ir_value, 0) = 100000;
    T_FAILS(t, rondo__ir_verify(g), INVALID_ARGUMENT, "out0");
}

/* A chain; anything quadratic would take hours. */
static void test_many_nodes(rondo_test *t) {
    rondo_ir_graph *g, *copy = NULL;
    make_graph(t, &g);
    rondo_ir_value before, after;
    const uint32_t count = 250000;
    uint64_t start = rondo__now_ns();
    T_OK(t, rondo__ir_value_add(g, "x", NULL, NULL, &before));
    T_OK(t, rondo__ir_input_add(g, before));
    for (uint32_t i = 0; i < count; i++) {
        T_OK(t, rondo__ir_value_add(g, NULL, "value", NULL, &after));
        T_OK(t, rondo__ir_node_add(g, "Relu", NULL, &before, 1, &after, 1, NULL, 0, NULL));
        before = after;
    }
    T_OK(t, rondo__ir_output_add(g, before, NULL));
    uint64_t built = rondo__now_ns();
    for (uint32_t i = 0; i < count / 2u; i++) swap_nodes(g, i, count - 1u - i);
    T_OK(t, rondo__ir_sort(g));
    uint64_t sorted = rondo__now_ns();
    T_OK(t, rondo__ir_verify(g));
    T_OK(t, rondo__ir_clone(g, true, &copy));
    uint64_t copied = rondo__now_ns();
    rondo_ir_graph_release(copy);
    if (getenv("RONDO_TEST_TIMES")) {
        printf("build %.2f s, sort %.2f s, verify and copy %.2f s\n", (double)(built - start) * 1e-9,
               (double)(sorted - built) * 1e-9, (double)(copied - sorted) * 1e-9);
    }
    T_TRUE(t, copied - start < UINT64_C(60000000000)); /* generous: sanitizers, and machines that are shared */
}

RONDO_TEST_MAIN(T_PLAIN(test_sort), T_PLAIN(test_clone), T(test_small_graph_everything), T(test_cycle),
                T(test_cycle_through_branch), T(test_verify_finds), T_PLAIN(test_many_nodes))
