/* SPDX-License-Identifier: Apache-2.0
 *
 * Every cell of the table: what each call does in each state, and that a refused one changes nothing. The expectation
 * is written here anew, as in docs/graph.md. */
#include <stdio.h>

#include "graph/graph_testing.h"

/* Columns: empty, capturing, invalidated, captured (keep_graph), ready, ready with keep_graph. */
enum { COLUMNS = 6, CALLS = 13 };
static const rondo_graph_state column_states[COLUMNS] = {RONDO_GRAPH_EMPTY,       RONDO_GRAPH_CAPTURING,
                                                         RONDO_GRAPH_INVALIDATED, RONDO_GRAPH_CAPTURED,
                                                         RONDO_GRAPH_READY,       RONDO_GRAPH_READY};
static const bool column_keeps[COLUMNS] = {false, false, false, true, false, true};

/* '-': INVALID_STATE and nothing changes. Else legal, and the state it leads to: e c i d(captured) r. '!': legal, but
 * reports CAPTURE_INVALIDATED and leads to empty. */
static const struct {
    const char *name;
    const char *cells;
} expected[CALLS] = {
    {"declare_slot", "e-----"},      {"capture_begin", "c-----"}, {"capture_end", "-r!---"}, {"abort", "-ee---"},
    {"instantiate", "---r-r"},       {"replay", "---rrr"},        {"bind", "----rr"},        {"update", "----rr"},
    {"enable_debug_mode", "e-----"}, {"debug_dump", "---drr"},    {"reset", "eeeeee"},       {"pool", "---drr"},
    {"get_info", "---drr"},
};

static rondo_graph_state state_of_letter(char letter) {
    switch (letter) {
    case 'c': return RONDO_GRAPH_CAPTURING;
    case 'i': return RONDO_GRAPH_INVALIDATED;
    case 'd': return RONDO_GRAPH_CAPTURED;
    case 'r': return RONDO_GRAPH_READY;
    default: return RONDO_GRAPH_EMPTY;
    }
}

static void bring_to(graph_fixture *f, int column, rondo_graph **out_graph) {
    rondo_test *t = f->t;
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    options.keep_graph = column_keeps[column];
    options.name = "cell";
    T_OK(t, rondo_graph_create(f->device, &options, out_graph));
    rondo_graph *graph = *out_graph;
    T_OK(t, rondo_graph_enable_debug_mode(graph));
    T_OK(t, rondo_graph_declare_slot(graph, 0, f->buffers[0], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_REBIND));
    if (column == 0) return;
    T_OK(t, gt_begin(f, graph));
    T_OK(t, gt_add(f, f->buffers[0], f->buffers[1], f->buffers[2]));
    if (column == 1) return;
    if (column == 2) {
        T_FAILS(t, rondo_stream_synchronize(f->stream), INVALID_STATE, "rondo_stream_synchronize");
        return;
    }
    T_OK(t, rondo_graph_capture_end(graph, f->stream));
    if (column == 5) T_OK(t, rondo_graph_instantiate(graph));
}

static rondo_status do_call(graph_fixture *f, rondo_graph *graph, int call) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_pool_id pool;
    char path[512];
    const rondo_argument arguments[4] = {{gt_word(f->buffers[3]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(f->buffers[1]), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(f->buffers[2]), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    switch (call) {
    case 0: return rondo_graph_declare_slot(graph, 1, f->buffers[4], GT_BYTES, RONDO_ACCESS_READ, RONDO_SLOT_COPY);
    case 1: return gt_begin(f, graph);
    case 2: return rondo_graph_capture_end(graph, f->stream);
    case 3: return rondo_graph_abort(graph);
    case 4: return rondo_graph_instantiate(graph);
    case 5: return gt_replay(f, graph);
    case 6: return rondo_graph_bind(graph, 0, f->buffers[5]);
    case 7: return rondo_graph_update(graph, 0, arguments, 4);
    case 8: return rondo_graph_enable_debug_mode(graph);
    case 9:
        (void)snprintf(path, sizeof path, "%s/cell.json", rondo_test_folder(f->t));
        return rondo_graph_debug_dump(graph, path);
    case 10: rondo_graph_reset(graph); return RONDO_OK;
    case 11: return rondo_graph_pool(graph, &pool);
    default: return rondo_graph_get_info(graph, &info);
    }
}

static void check_cell(graph_fixture *f, int column, int call) {
    rondo_test *t = f->t;
    rondo_graph *graph = NULL;
    bring_to(f, column, &graph);
    T_EQ(t, rondo_graph_get_state(graph), column_states[column]);
    char cell = expected[call].cells[column];
    rondo_status status = do_call(f, graph, call);
    rondo_code code = rondo_status_code(status);
    rondo_layer layer = rondo_status_layer(status);
    bool names_call = strstr(rondo_status_message(status), expected[call].name) != NULL;
    rondo_status_release(status);
    rondo_graph_state state = rondo_graph_get_state(graph);
    rondo_graph_release(graph);
    rondo_code want = cell == '-'   ? RONDO_CODE_INVALID_STATE
                      : cell == '!' ? RONDO_CODE_CAPTURE_INVALIDATED
                                    : RONDO_CODE_OK;
    rondo_graph_state next = cell == '-' ? column_states[column] : state_of_letter(cell);
    if (code != want || state != next || (cell == '-' && (layer != RONDO_LAYER_CAPTURE || !names_call)))
        rondo_test_fail(t, __FILE__, __LINE__, "%s in column %d: code %d, state %d, layer %d", expected[call].name,
                        column, (int)code, (int)state, (int)layer);
    /* Whatever happened, the stream is free. */
    rondo_capture_status capture = RONDO_CAPTURE_STATUS_INIT;
    T_OK(t, rondo_stream_capture_status(f->stream, &capture));
    T_EQ(t, capture.active, 0);
    T_OK(t, rondo_stream_synchronize(f->stream));
}

static void test_every_cell(rondo_test *t, const char *device) {
    graph_fixture f;
    gt_open(t, &f, device);
    for (int column = 0; column < COLUMNS; column++)
        for (int call = 0; call < CALLS; call++) check_cell(&f, column, call);
}
GT_BOTH(test_every_cell)

static void test_null_is_an_argument_error(rondo_test *t) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_pool_id pool;
    T_FAILS(t, rondo_graph_create(NULL, NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_declare_slot(NULL, 0, NULL, 0, 1, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_begin(NULL, NULL, (rondo_pool_id){0, 0}, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_capture_end(NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_abort(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_instantiate(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_replay(NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_bind(NULL, 0, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_update(NULL, 0, NULL, 0), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_enable_debug_mode(NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_debug_dump(NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_pool(NULL, &pool), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_graph_get_info(NULL, &info), INVALID_ARGUMENT, NULL);
    rondo_graph_reset(NULL);
    rondo_graph_release(NULL);
    rondo_graph_retain(NULL);
    T_EQ(t, rondo_graph_get_state(NULL), RONDO_GRAPH_EMPTY);
}

static void test_the_whole_way(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_pool_id pool = {1, 1};
    gt_open(t, &f, device);
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, gt_begin(&f, graph));
    T_OK(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]));
    T_OK(t, gt_add(&f, f.buffers[2], f.buffers[2], f.buffers[3]));
    T_NEAR(t, f.buffers[3][1], 301.0, 0.0); /* recorded, not run */
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    for (int i = 0; i < 3; i++) {
        f.buffers[0][1] = (float)i;
        T_OK(t, gt_replay(&f, graph));
        T_NEAR(t, f.buffers[3][1], 2.0 * (i + 101.0), 0.0);
    }
    T_OK(t, rondo_graph_get_info(graph, &info));
    T_EQ(t, info.nodes, 2);
    T_EQ(t, info.kernels, 2);
    T_EQ(t, info.replays, 3);
    T_EQ(t, info.empty, 0);
    T_EQ(t, info.opaque, 0);
    T_EQ(t, info.unverified, 0);
    T_EQ(t, info.lanes, 1);
    T_TRUE(t, info.bytes > 128);
    T_OK(t, rondo_graph_pool(graph, &pool));
    T_TRUE(t, pool.automatic != 0 && pool.user == 0);
    /* Reset, and the same object captures again. */
    rondo_graph_reset(graph);
    T_OK(t, gt_begin(&f, graph));
    T_OK(t, gt_add(&f, f.buffers[4], f.buffers[5], f.buffers[6]));
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    T_OK(t, gt_replay(&f, graph));
    T_NEAR(t, f.buffers[6][2], 904.0, 0.0);
}
GT_BOTH(test_the_whole_way)

static void test_keep_graph(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    rondo_graph_options options = RONDO_GRAPH_OPTIONS_INIT;
    gt_open(t, &f, device);
    options.keep_graph = 1;
    T_OK(t, rondo_graph_create(f.device, &options, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, gt_begin(&f, graph));
    T_OK(t, gt_add(&f, f.buffers[0], f.buffers[1], f.buffers[2]));
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    T_EQ(t, rondo_graph_get_state(graph), RONDO_GRAPH_CAPTURED);
    T_FAILS(t, rondo_graph_bind(graph, 0, f.buffers[0]), INVALID_STATE, "rondo_graph_instantiate");
    T_OK(t, gt_replay(&f, graph)); /* instantiates first */
    T_EQ(t, rondo_graph_get_state(graph), RONDO_GRAPH_READY);
    T_OK(t, rondo_graph_instantiate(graph));
    T_OK(t, rondo_graph_instantiate(graph));
    T_OK(t, gt_replay(&f, graph));
    T_NEAR(t, f.buffers[2][5], 110.0, 0.0);
}
GT_BOTH(test_keep_graph)

static void test_empty_graph_warns_once(rondo_test *t, const char *device) {
    graph_fixture f;
    rondo_graph *graph = NULL;
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    gt_open(t, &f, device);
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    T_OK(t, gt_begin(&f, graph));
    T_OK(t, rondo_graph_capture_end(graph, f.stream));
    T_EQ(t, f.warnings, 1);
    T_TRUE(t, strstr(f.warning, "empty") != NULL);
    T_OK(t, rondo_graph_get_info(graph, &info));
    T_EQ(t, info.empty, 1);
    T_EQ(t, info.nodes, 0);
    T_OK(t, gt_replay(&f, graph));
    T_OK(t, gt_replay(&f, graph));
    T_EQ(t, f.warnings, 1);
}
GT_BOTH(test_empty_graph_warns_once)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_every_cell), T(test_null_is_an_argument_error), GT_ENTRIES(test_the_whole_way),
                GT_ENTRIES(test_keep_graph), GT_ENTRIES(test_empty_graph_warns_once))
