/* SPDX-License-Identifier: Apache-2.0
 *
 * Random short programs of calls, copies and fills, run in three ways: by plain C on the host, eagerly, and captured
 * and replayed (with some buffers declared as slots and bound elsewhere). All must agree to the bit. */
#include "graph/graph_testing.h"

#define PROGRAM_MAX 24u
#define FLOATS_OF(bytes) ((bytes) / sizeof(float))

typedef struct op {
    enum { OP_ADD, OP_COPY_KERNEL, OP_FILL_KERNEL, OP_COPY, OP_FILL, OP_KINDS } kind;
    uint32_t a, b, out;    /* buffers */
    uint32_t a_at, out_at; /* bytes into them, multiples of 8 */
    uint32_t bytes;        /* a multiple of 8 */
    uint64_t value;
} op;

typedef struct program {
    op ops[PROGRAM_MAX];
    uint32_t count;
} program;

static uint32_t pick(rondo_test *t, uint32_t below) { return (uint32_t)(rondo_test_random(t) >> 33) % below; }

static void program_make(rondo_test *t, program *p) {
    p->count = pick(t, PROGRAM_MAX + 1u);
    for (uint32_t i = 0; i < p->count; i++) {
        op *o = &p->ops[i];
        *o = (op){
            .kind = pick(t, OP_KINDS), .a = pick(t, GT_BUFFERS), .b = pick(t, GT_BUFFERS), .out = pick(t, GT_BUFFERS)};
        o->bytes = 8u * (1u + pick(t, GT_BYTES / 8u));
        o->a_at = 8u * pick(t, (uint32_t)(GT_BYTES - o->bytes) / 8u + 1u);
        o->out_at = 8u * pick(t, (uint32_t)(GT_BYTES - o->bytes) / 8u + 1u);
        if (o->a == o->out) o->out = (o->out + 1u) % GT_BUFFERS; /* ranges of one buffer might overlap */
        if (o->kind == OP_ADD && o->b == o->out) o->b = o->a;
        o->value = pick(t, 256);
    }
}

static rondo_status op_enqueue(const graph_fixture *f, rondo_stream *stream, const op *o) {
    char *a = (char *)f->buffers[o->a] + o->a_at, *b = (char *)f->buffers[o->b] + o->a_at;
    char *out = (char *)f->buffers[o->out] + o->out_at;
    rondo_call call = RONDO_CALL_INIT;
    const rondo_argument add[4] = {{gt_word(a), o->bytes, RONDO_ACCESS_READ, 0},
                                   {gt_word(b), o->bytes, RONDO_ACCESS_READ, 0},
                                   {gt_word(out), o->bytes, RONDO_ACCESS_WRITE, 0},
                                   {FLOATS_OF(o->bytes), 0, RONDO_ACCESS_VALUE, 0}};
    const rondo_argument copy[3] = {{gt_word(a), o->bytes, RONDO_ACCESS_READ, 0},
                                    {gt_word(out), o->bytes, RONDO_ACCESS_WRITE, 0},
                                    {o->bytes, 0, RONDO_ACCESS_VALUE, 0}};
    const rondo_argument fill[3] = {{gt_word(out), o->bytes, RONDO_ACCESS_WRITE, 0},
                                    {o->bytes / 8u, 0, RONDO_ACCESS_VALUE, 0},
                                    {o->value << 20, 0, RONDO_ACCESS_VALUE, 0}};
    switch (o->kind) {
    case OP_COPY: return rondo_stream_copy(stream, out, a, o->bytes, RONDO_COPY_DEVICE_TO_DEVICE);
    case OP_FILL: return rondo_stream_fill(stream, out, (uint8_t)o->value, o->bytes);
    case OP_ADD: call.kernel = f->add, call.arguments = add, call.argument_count = 4; break;
    case OP_COPY_KERNEL: call.kernel = f->copy, call.arguments = copy, call.argument_count = 3; break;
    default: call.kernel = f->fill, call.arguments = fill, call.argument_count = 3;
    }
    return rondo_stream_launch(stream, &call);
}

static void op_model(float (*m)[GT_FLOATS], const op *o) {
    char *a = (char *)m[o->a] + o->a_at, *b = (char *)m[o->b] + o->a_at, *out = (char *)m[o->out] + o->out_at;
    uint64_t value = o->value << 20;
    switch (o->kind) {
    case OP_ADD:
        for (uint32_t i = 0; i < FLOATS_OF(o->bytes); i++)
            ((float *)(void *)out)[i] = ((float *)(void *)a)[i] + ((float *)(void *)b)[i];
        break;
    case OP_FILL: memset(out, (int)o->value, o->bytes); break;
    case OP_FILL_KERNEL:
        for (uint32_t i = 0; i < o->bytes; i += 8) memcpy(out + i, &value, 8);
        break;
    default: memcpy(out, a, o->bytes);
    }
}

static void fresh(float *buffer, uint32_t index) {
    for (uint32_t i = 0; i < GT_FLOATS; i++) buffer[i] = (float)(index * 17u + i) * 0.37f;
}

static void expect_same(graph_fixture *f, float *const *buffers, float (*model)[GT_FLOATS], const char *way) {
    for (uint32_t i = 0; i < GT_BUFFERS; i++)
        if (memcmp(buffers[i], model[i], GT_BYTES) != 0)
            rondo_test_fail(f->t, __FILE__, __LINE__, "buffer %u differs %s", (unsigned)i, way);
}

static void run_program(graph_fixture *f, graph_fixture *elsewhere, rondo_graph *graph, const program *p) {
    rondo_test *t = f->t;
    static float model[GT_BUFFERS][GT_FLOATS];
    float *now[GT_BUFFERS];
    uint32_t slots[GT_BUFFERS], slot_count = 0;
    for (uint32_t i = 0; i < GT_BUFFERS; i++)
        fresh(model[i], i), fresh(f->buffers[i], i), fresh(elsewhere->buffers[i], i);
    for (uint32_t i = 0; i < p->count; i++) op_model(model, &p->ops[i]);
    for (uint32_t i = 0; i < p->count; i++) T_OK(t, op_enqueue(f, f->stream, &p->ops[i]));
    T_OK(t, rondo_stream_synchronize(f->stream));
    expect_same(f, f->buffers, model, "eagerly");
    rondo_graph_reset(graph);
    for (uint32_t i = 0; i < GT_BUFFERS; i++) {
        fresh(f->buffers[i], i);
        now[i] = f->buffers[i];
        if (pick(t, 3)) continue;
        slots[slot_count] = i;
        T_OK(t, rondo_graph_declare_slot(graph, slot_count++, f->buffers[i], GT_BYTES, RONDO_ACCESS_BOTH,
                                         (rondo_slot_policy)pick(t, 2)));
    }
    T_OK(t, gt_begin(f, graph));
    for (uint32_t i = 0; i < p->count; i++) T_OK(t, op_enqueue(f, f->stream, &p->ops[i]));
    T_OK(t, rondo_graph_capture_end(graph, f->stream));
    for (uint32_t s = 0; s < slot_count; s++) {
        if (pick(t, 2)) continue;
        now[slots[s]] = elsewhere->buffers[slots[s]];
        T_OK(t, rondo_graph_bind(graph, s, now[slots[s]]));
    }
    T_OK(t, rondo_graph_replay(graph, pick(t, 2) ? f->stream : f->other));
    T_OK(t, rondo_stream_synchronize(f->stream));
    T_OK(t, rondo_stream_synchronize(f->other));
    expect_same(f, now, model, "replayed");
    /* And again from the start, twice over, to see that a replay leaves nothing behind in the graph. */
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < GT_BUFFERS; i++) fresh(now[i], i);
        T_OK(t, gt_replay(f, graph));
        expect_same(f, now, model, "replayed again");
    }
}

static void test_programs(rondo_test *t, const char *device) {
    graph_fixture f;
    graph_fixture elsewhere = {.t = t};
    program p;
    rondo_graph *graph = NULL;
    gt_open(t, &f, device);
    for (uint32_t i = 0; i < GT_BUFFERS; i++) { /* the device frees them with a warning; nothing depends on it */
        void *memory;
        T_OK(t, rondo_memory_allocate(f.device, GT_BYTES, &memory));
        elsewhere.buffers[i] = memory;
    }
    T_OK(t, rondo_graph_create(f.device, NULL, &graph));
    T_DEFER(t, rondo_graph_release, graph);
    for (int i = 0; i < 300; i++) {
        program_make(t, &p);
        run_program(&f, &elsewhere, graph, &p);
    }
}
GT_BOTH(test_programs)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_programs))
