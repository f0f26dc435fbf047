/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequences of calls on a graph against a model of what each must answer. The first byte picks the device and whether
 * the graph is kept; each further byte is one call with its choice of buffer, slot or node. A wrong answer aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

#define FUZZ_BUFFERS 4u
#define FUZZ_FLOATS 8u
#define FUZZ_BYTES (FUZZ_FLOATS * sizeof(float))
#define FUZZ_NODES 64u
#define FUZZ_SLOTS 2u
#define FUZZ_CALLS_MAX 200u

/* One recorded addition, out = a + b: buffers by index, and the generation that each had. */
typedef struct fuzz_node {
    uint32_t buffers[3];
    uint32_t generations[3];
} fuzz_node;

typedef struct fuzz_model {
    rondo_instance *instance;
    rondo_device *device;
    rondo_stream *stream;
    rondo_kernel add;
    rondo_graph *graph;
    void *buffers[FUZZ_BUFFERS];
    uint32_t generations[FUZZ_BUFFERS]; /* of the buffers: raised by each free */
    rondo_graph_state state;
    bool keep, opaque;
    fuzz_node nodes[FUZZ_NODES];
    uint32_t node_count, host_calls;
    uint32_t slot_count;
    void *declared[FUZZ_SLOTS];
} fuzz_model;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_must(bool holds, const char *what, const fuzz_model *m) {
    if (holds) return;
    (void)fprintf(stderr, "state_fuzz: %s (model's state %d, graph's %d)\n", what, (int)m->state,
                  (int)rondo_graph_get_state(m->graph));
    abort();
}

static rondo_code fuzz_code(rondo_status status) {
    rondo_code code = rondo_status_code(status);
    char text[512];
    (void)rondo_status_format(status, text, sizeof text); /* must not fall over whatever it holds */
    rondo_status_release(status);
    return code;
}

static void fuzz_expect(const fuzz_model *m, rondo_status status, rondo_code want, const char *what) {
    rondo_code code = fuzz_code(status);
    if (code != want) (void)fprintf(stderr, "state_fuzz: code %d, not %d\n", (int)code, (int)want);
    fuzz_must(code == want, what, m);
    fuzz_must(rondo_graph_get_state(m->graph) == m->state, what, m);
}

static rondo_status fuzz_launch(const fuzz_model *m, const fuzz_node *node) {
    rondo_argument arguments[4] = {{0, FUZZ_BYTES, RONDO_ACCESS_READ, 0},
                                   {0, FUZZ_BYTES, RONDO_ACCESS_READ, 0},
                                   {0, FUZZ_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {FUZZ_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    for (uint32_t i = 0; i < 3; i++) arguments[i].word = (uint64_t)(uintptr_t)m->buffers[node->buffers[i]];
    rondo_call call = {sizeof call, 4, m->add, arguments, "add"};
    return rondo_stream_launch(m->stream, &call);
}

static int32_t fuzz_host_call(void *user) {
    (void)user;
    return 0;
}

static void fuzz_forget(fuzz_model *m) {
    m->state = RONDO_GRAPH_EMPTY;
    m->node_count = m->host_calls = 0;
    m->opaque = false;
}

static bool fuzz_has(const fuzz_model *m) { return m->state == RONDO_GRAPH_CAPTURED || m->state == RONDO_GRAPH_READY; }

static bool fuzz_active(const fuzz_model *m) {
    return m->state == RONDO_GRAPH_CAPTURING || m->state == RONDO_GRAPH_INVALIDATED;
}

/* Without slots, whether some node mentions memory that is gone. With slots the model does not say. */
static bool fuzz_stale(const fuzz_model *m) {
    for (uint32_t n = 0; n < m->node_count; n++)
        for (uint32_t i = 0; i < 3; i++)
            if (m->nodes[n].generations[i] != m->generations[m->nodes[n].buffers[i]]) return true;
    return false;
}

static void fuzz_record(fuzz_model *m, uint32_t choice) {
    fuzz_node node;
    for (uint32_t i = 0; i < 3; i++) {
        node.buffers[i] = (choice + i * (1u + choice / 8u)) % FUZZ_BUFFERS;
        node.generations[i] = m->generations[node.buffers[i]];
    }
    if (m->state == RONDO_GRAPH_INVALIDATED) {
        fuzz_expect(m, fuzz_launch(m, &node), RONDO_CODE_CAPTURE_INVALIDATED, "launch on a broken capture");
        return;
    }
    if (m->state == RONDO_GRAPH_CAPTURING && m->node_count == FUZZ_NODES) return;
    fuzz_expect(m, fuzz_launch(m, &node), RONDO_CODE_OK, "launch");
    if (m->state == RONDO_GRAPH_CAPTURING) m->nodes[m->node_count++] = node;
}

static void fuzz_end(fuzz_model *m) {
    rondo_status status = rondo_graph_capture_end(m->graph, m->stream);
    rondo_code want = RONDO_CODE_INVALID_STATE;
    if (m->state == RONDO_GRAPH_CAPTURING) {
        m->state = m->keep ? RONDO_GRAPH_CAPTURED : RONDO_GRAPH_READY;
        want = RONDO_CODE_OK;
    } else if (m->state == RONDO_GRAPH_INVALIDATED) {
        fuzz_forget(m);
        want = RONDO_CODE_CAPTURE_INVALIDATED;
    }
    fuzz_expect(m, status, want, "capture_end");
}

static void fuzz_replay(fuzz_model *m) {
    rondo_status status = rondo_graph_replay(m->graph, m->stream);
    rondo_code code = fuzz_code(status);
    if (fuzz_active(m)) { /* the stream is the graph's own */
        fuzz_must(code == RONDO_CODE_INVALID_STATE, "replay while capturing", m);
    } else if (!fuzz_has(m)) {
        fuzz_must(code == RONDO_CODE_INVALID_STATE, "replay of nothing", m);
    } else if (m->slot_count) {
        fuzz_must(code == RONDO_CODE_OK || code == RONDO_CODE_STALE, "replay with slots", m);
    } else {
        fuzz_must(code == (fuzz_stale(m) ? RONDO_CODE_STALE : RONDO_CODE_OK), "replay", m);
    }
    if (fuzz_has(m)) m->state = RONDO_GRAPH_READY;
    fuzz_must(rondo_graph_get_state(m->graph) == m->state, "state after replay", m);
}

static void fuzz_replace_buffer(fuzz_model *m, uint32_t index) {
    fuzz_must(fuzz_code(rondo_memory_free(m->device, m->buffers[index])) == RONDO_CODE_OK, "free", m);
    m->generations[index]++;
    fuzz_must(fuzz_code(rondo_memory_allocate(m->device, FUZZ_BYTES, &m->buffers[index])) == RONDO_CODE_OK, "allocate",
              m);
    memset(m->buffers[index], 0, FUZZ_BYTES);
}

static void fuzz_declare(fuzz_model *m, uint32_t choice) {
    void *address = m->buffers[choice % FUZZ_BUFFERS];
    rondo_code want = m->state != RONDO_GRAPH_EMPTY ? RONDO_CODE_INVALID_STATE : RONDO_CODE_OK;
    if (m->slot_count == FUZZ_SLOTS) return;
    for (uint32_t i = 0; i < m->slot_count; i++)
        if (m->declared[i] == address && want == RONDO_CODE_OK) want = RONDO_CODE_INVALID_ARGUMENT;
    fuzz_expect(m,
                rondo_graph_declare_slot(m->graph, m->slot_count, address, FUZZ_BYTES, RONDO_ACCESS_BOTH,
                                         (rondo_slot_policy)(choice / 16u % 2u)),
                want, "declare_slot");
    if (want == RONDO_CODE_OK) m->declared[m->slot_count++] = address;
}

static void fuzz_bind(fuzz_model *m, uint32_t choice) {
    uint32_t slot = choice % FUZZ_SLOTS;
    rondo_code want = m->state != RONDO_GRAPH_READY ? RONDO_CODE_INVALID_STATE
                      : slot >= m->slot_count       ? RONDO_CODE_OUT_OF_RANGE
                      : m->opaque                   ? RONDO_CODE_UNSUPPORTED
                                                    : RONDO_CODE_OK;
    fuzz_expect(m, rondo_graph_bind(m->graph, slot, m->buffers[choice / 2u % FUZZ_BUFFERS]), want, "bind");
}

static void fuzz_update(fuzz_model *m, uint32_t choice) {
    uint32_t index = choice % 8u, buffer = choice / 8u % FUZZ_BUFFERS;
    rondo_argument arguments[4] = {{(uint64_t)(uintptr_t)m->buffers[buffer], FUZZ_BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)m->buffers[buffer], FUZZ_BYTES, RONDO_ACCESS_READ, 0},
                                   {(uint64_t)(uintptr_t)m->buffers[buffer], FUZZ_BYTES, RONDO_ACCESS_WRITE, 0},
                                   {FUZZ_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    if (m->opaque) return; /* host calls have numbers among the nodes, which the model does not keep */
    rondo_code want = m->state != RONDO_GRAPH_READY ? RONDO_CODE_INVALID_STATE
                      : index >= m->node_count      ? RONDO_CODE_OUT_OF_RANGE
                                                    : RONDO_CODE_OK;
    fuzz_expect(m, rondo_graph_update(m->graph, index, arguments, 4), want, "update");
    if (want != RONDO_CODE_OK) return;
    for (uint32_t i = 0; i < 3; i++) {
        m->nodes[index].buffers[i] = buffer;
        m->nodes[index].generations[i] = m->generations[buffer];
    }
}

static void fuzz_other_calls(fuzz_model *m, uint32_t call) {
    rondo_graph_info info = RONDO_GRAPH_INFO_INIT;
    rondo_code has = fuzz_has(m) ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE;
    rondo_status status;
    switch (call) {
    case 0:
        fuzz_expect(m, rondo_graph_get_info(m->graph, &info), has, "get_info");
        if (has == RONDO_CODE_OK) fuzz_must(info.nodes == m->node_count + m->host_calls, "nodes", m);
        break;
    case 1:
        status = rondo_graph_instantiate(m->graph);
        has = m->state == RONDO_GRAPH_CAPTURED || (m->state == RONDO_GRAPH_READY && m->keep) ? RONDO_CODE_OK
                                                                                             : RONDO_CODE_INVALID_STATE;
        if (has == RONDO_CODE_OK) m->state = RONDO_GRAPH_READY;
        fuzz_expect(m, status, has, "instantiate");
        break;
    case 2:
        status = rondo_graph_abort(m->graph);
        has = fuzz_active(m) ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE;
        if (has == RONDO_CODE_OK) fuzz_forget(m);
        fuzz_expect(m, status, has, "abort");
        break;
    default:
        rondo_graph_reset(m->graph);
        fuzz_forget(m);
        m->slot_count = 0;
        fuzz_must(rondo_graph_get_state(m->graph) == RONDO_GRAPH_EMPTY, "reset", m);
    }
}

static void fuzz_stream_calls(fuzz_model *m, uint32_t call) {
    rondo_status status;
    rondo_code want = m->state == RONDO_GRAPH_INVALIDATED ? RONDO_CODE_CAPTURE_INVALIDATED : RONDO_CODE_OK;
    if (call == 0) {
        if (m->state == RONDO_GRAPH_CAPTURING) want = RONDO_CODE_INVALID_STATE;
        status = rondo_stream_synchronize(m->stream);
        if (m->state == RONDO_GRAPH_CAPTURING) m->state = RONDO_GRAPH_INVALIDATED;
        fuzz_expect(m, status, want, "synchronize");
        return;
    }
    if (m->state == RONDO_GRAPH_CAPTURING && m->host_calls == FUZZ_NODES) return;
    fuzz_expect(m, rondo_stream_host_call(m->stream, fuzz_host_call, NULL), want, "host_call");
    if (m->state != RONDO_GRAPH_CAPTURING) return;
    m->host_calls++;
    m->opaque = true;
}

static void fuzz_step(fuzz_model *m, uint8_t byte) {
    uint32_t choice = byte / 8u;
    switch (byte % 8u) {
    case 0: {
        /* A slot that was declared over memory which is gone is found at begin only when the range fits nothing. */
        rondo_status status =
            rondo_graph_capture_begin(m->graph, m->stream, (rondo_pool_id){0, 0}, (rondo_capture_mode)(choice % 4u));
        rondo_code want = m->state == RONDO_GRAPH_EMPTY ? RONDO_CODE_OK : RONDO_CODE_INVALID_STATE;
        if (want == RONDO_CODE_OK) m->state = RONDO_GRAPH_CAPTURING;
        fuzz_expect(m, status, want, "capture_begin");
        break;
    }
    case 1: fuzz_end(m); break;
    case 2: fuzz_record(m, choice); break;
    case 3: fuzz_replay(m); break;
    case 4: fuzz_stream_calls(m, choice % 4u); break;
    case 5: fuzz_other_calls(m, choice % 4u); break;
    case 6:
        if (choice % 2u) fuzz_replace_buffer(m, choice / 2u % FUZZ_BUFFERS);
        else fuzz_declare(m, choice);
        break;
    default:
        if (choice % 2u) fuzz_bind(m, choice / 2u);
        else fuzz_update(m, choice);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_model m = {0};
    rondo_instance_options options = RONDO_INSTANCE_OPTIONS_INIT;
    rondo_graph_options graph_options = RONDO_GRAPH_OPTIONS_INIT;
    if (size < 1) return 0;
    options.ignore_plugin_path = 1;
    m.keep = (data[0] & 2u) != 0;
    graph_options.keep_graph = m.keep;
    bool good =
        fuzz_code(rondo_instance_create(&options, &m.instance)) == RONDO_CODE_OK &&
        fuzz_code(rondo_device_open(m.instance, data[0] & 1u ? "sim" : "cpu", NULL, &m.device)) == RONDO_CODE_OK &&
        fuzz_code(rondo_stream_create(m.device, NULL, &m.stream)) == RONDO_CODE_OK &&
        fuzz_code(rondo_kernel_find(m.device, "rondo.add", &m.add)) == RONDO_CODE_OK &&
        fuzz_code(rondo_graph_create(m.device, &graph_options, &m.graph)) == RONDO_CODE_OK;
    for (uint32_t i = 0; good && i < FUZZ_BUFFERS; i++) {
        good = fuzz_code(rondo_memory_allocate(m.device, FUZZ_BYTES, &m.buffers[i])) == RONDO_CODE_OK;
        if (good) memset(m.buffers[i], 0, FUZZ_BYTES);
    }
    if (!good) abort();
    for (size_t i = 1; i < size && i < FUZZ_CALLS_MAX; i++) fuzz_step(&m, data[i]);
    rondo_graph_release(m.graph);
    m.graph = NULL;
    fuzz_must(fuzz_code(rondo_stream_synchronize(m.stream)) == RONDO_CODE_OK, "the stream after all", &m);
    for (uint32_t i = 0; i < FUZZ_BUFFERS; i++) (void)fuzz_code(rondo_memory_free(m.device, m.buffers[i]));
    rondo_kernel_release(m.device, m.add);
    rondo_stream_release(m.stream);
    rondo_device_release(m.device);
    rondo_instance_release(m.instance);
    return 0;
}
