/* SPDX-License-Identifier: Apache-2.0
 *
 * Random families of graphs: several streams, temporaries, random numbers, slots, conditions that the graphs set
 * themselves, and earlier graphs of the family as children, however deep. Replayed in any order and on any stream, bound anew, and with all but the last released, their
 * buffers are those of an interpreter in plain C that knows addresses by name only. */
#include <stdlib.h>

#include "graph/graph_testing.h"

enum {
    FAMILY = 6,           /* graphs */
    NAMED = GT_BUFFERS,   /* buffers that programs name */
    OWN = NAMED + FAMILY, /* and one a graph, which only its slot is bound to */
    OPS = 30,
    STREAMS = 3,
    CELLS = 3,       /* int64, which conditions look at */
    DEEP = 3,        /* conditions in conditions */
    TEMPORARY = 100, /* + number: a temporary of the program */
    SEED = 7
};

typedef enum op_kind { OP_ADD, OP_COPY, OP_FILL, OP_RANDOM, OP_CHILD, OP_SET, OP_IF, OP_END } op_kind;

typedef struct op {
    op_kind kind;
    int a, b, out, value;
    const struct program *child; /* with what its slot was bound to then: value */
} op;

typedef struct program {
    op ops[OPS];
    int count, slot, bound; /* slot: a buffer, -1: none */
    rondo_graph *graph;
} program;

typedef struct family {
    graph_fixture f;
    rondo_stream *streams[STREAMS];
    rondo_event *event;
    rondo_generator *generator;
    float *own[FAMILY];
    program programs[FAMILY];
    void *temporaries[OPS];
    bool alive[OPS];
    int temporary_count, on; /* on: the stream of the last operation */
    int open;                /* conditions */
    int64_t *cells, model_cells[CELLS];
    float model[OWN][GT_FLOATS];
    uint64_t offset;
} family;

static family the_family;

static void family_close(family *m) {
    for (int i = 0; i < FAMILY; i++) rondo_graph_release(m->programs[i].graph);
    for (int i = 0; i < OPS; i++)
        if (m->alive[i]) rondo_status_release(rondo_memory_free(m->f.device, m->temporaries[i]));
    for (int i = 0; i < FAMILY; i++)
        if (m->own[i]) rondo_status_release(rondo_memory_free(m->f.device, m->own[i]));
    for (int i = 1; i < STREAMS; i++) rondo_stream_release(m->streams[i]);
    rondo_generator_release(m->generator);
    rondo_event_release(m->event);
    if (m->cells) rondo_status_release(rondo_memory_free(m->f.device, m->cells));
}

static int pick(rondo_test *t, int below) { return (int)((rondo_test_random(t) >> 33) % (uint64_t)below); }

static float *buffer_of(const family *m, int name) { return name < NAMED ? m->f.buffers[name] : m->own[name - NAMED]; }

static void family_open(rondo_test *t, family *m, const char *device) {
    memset(m, 0, sizeof *m);
    gt_open(t, &m->f, device);
    T_DEFER(t, family_close, m);
    m->streams[0] = m->f.stream;
    for (int i = 1; i < STREAMS; i++) T_OK(t, rondo_stream_create(m->f.device, NULL, &m->streams[i]));
    T_OK(t, rondo_event_create(m->f.device, &m->event));
    T_OK(t, rondo_generator_create(m->f.device, SEED, &m->generator));
    for (int i = 0; i < FAMILY; i++) {
        T_OK(t, rondo_memory_allocate(m->f.device, GT_BYTES, (void **)&m->own[i]));
        for (unsigned j = 0; j < GT_FLOATS; j++) m->own[i][j] = (float)pick(t, 100);
    }
    for (int i = 0; i < OWN; i++) memcpy(m->model[i], buffer_of(m, i), GT_BYTES);
    T_OK(t, rondo_memory_allocate(m->f.device, CELLS * sizeof(int64_t), (void **)&m->cells));
    for (int i = 0; i < CELLS; i++) m->model_cells[i] = m->cells[i] = pick(t, 2);
}

/* -------------------------------------------------------------------------------------------------- the interpreter */

/* Where a name leads, from the innermost program's slot to the outermost's. */
typedef struct frame {
    const struct frame *up;
    int from, to;
} frame;

static float *place(family *m, const frame *frames, float (*temporaries)[GT_FLOATS], int name) {
    if (name >= TEMPORARY) return temporaries[name - TEMPORARY];
    for (const frame *f = frames; f; f = f->up)
        if (f->from == name) name = f->to;
    return m->model[name];
}

/* Philox4x32-10 as its paper words it, number by number. */
static uint32_t number_of(uint64_t n) {
    uint32_t x[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), 0, 0}, k0 = SEED, k1 = 0;
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        unsigned __int128 p = (unsigned __int128)0xD2511F53u * x[0], q = (unsigned __int128)0xCD9E8D57u * x[2];
        uint32_t y[4] = {(uint32_t)(q >> 32) ^ x[1] ^ k0, (uint32_t)q, (uint32_t)(p >> 32) ^ x[3] ^ k1, (uint32_t)p};
        memcpy(x, y, sizeof x);
    }
    return x[n % 4];
}

static void interpret_memory(family *m, const op *o, const frame *frames, float (*temporaries)[GT_FLOATS]) {
    float sum[GT_FLOATS], *out = place(m, frames, temporaries, o->out);
    const float *a = place(m, frames, temporaries, o->a), *b = place(m, frames, temporaries, o->b);
    for (unsigned j = 0; j < GT_FLOATS; j++) {
        if (o->kind == OP_ADD) sum[j] = a[j] + b[j];
        else if (o->kind == OP_COPY) sum[j] = a[j];
        else if (o->kind == OP_RANDOM) {
            sum[j] = (float)((double)number_of(m->offset + j) / 4294967296.0);
            if (sum[j] >= 1.0f) sum[j] = 0x1.fffffep-1f;
        }
    }
    if (o->kind == OP_FILL) memset(sum, o->value, sizeof sum);
    memcpy(out, sum, sizeof sum);
}

/* The numbers of a fill are its own, whether it is jumped over or not. */
static void interpret(family *m, const program *p, int bound, const frame *up) {
    float temporaries[OPS][GT_FLOATS];
    const frame mine = {up, p->slot, bound};
    const frame *frames = p->slot >= 0 ? &mine : up;
    for (int i = 0, jumped = 0; i < p->count; i++) { /* jumped: conditions that are open, from one that does not hold */
        const op *o = &p->ops[i];
        if (o->kind == OP_IF) jumped += jumped || !m->model_cells[o->a];
        else if (o->kind == OP_END) jumped -= jumped > 0;
        else if (o->kind == OP_CHILD) interpret(m, o->child, o->value, frames);
        else if (o->kind == OP_SET && !jumped) m->model_cells[o->a] = o->value;
        else if (o->kind != OP_SET && !jumped) interpret_memory(m, o, frames, temporaries);
        if (o->kind == OP_RANDOM) m->offset += GT_FLOATS;
    }
}

/* ------------------------------------------------------------------------------------------------------- capturing */

static void *address_of(const family *m, int name) {
    return name >= TEMPORARY ? m->temporaries[name - TEMPORARY] : (void *)buffer_of(m, name);
}

static int any_name(rondo_test *t, const family *m) {
    int temporary = m->temporary_count ? pick(t, 2 * m->temporary_count) : m->temporary_count;
    return temporary < m->temporary_count && m->alive[temporary] ? TEMPORARY + temporary : pick(t, NAMED);
}

/* The next operation is on that stream, and behind the last. */
static rondo_status go_to(family *m, int stream) {
    if (stream == m->on) return RONDO_OK;
    RONDO__TRY(rondo_event_record(m->event, m->streams[m->on]));
    m->on = stream;
    return rondo_event_wait(m->event, m->streams[stream]);
}

static rondo_status let_go(family *m, int temporary) {
    m->alive[temporary] = false;
    for (int i = 0; i < STREAMS; i++)
        RONDO__TRY(rondo_memory_record_stream(m->f.device, m->temporaries[temporary], m->streams[i]));
    return rondo_memory_free(m->f.device, m->temporaries[temporary]);
}

static rondo_status enqueue(family *m, const op *o) {
    rondo_stream *stream = m->streams[m->on];
    void *out = address_of(m, o->out), *a = address_of(m, o->a), *b = address_of(m, o->b);
    switch (o->kind) {
    case OP_ADD: return gt_add_named(&m->f, stream, "add", a, b, out);
    case OP_COPY: return rondo_stream_copy(stream, out, a, GT_BYTES, RONDO_COPY_DEVICE_TO_DEVICE);
    case OP_FILL: return rondo_stream_fill(stream, out, (uint8_t)o->value, GT_BYTES);
    case OP_RANDOM: return rondo_random_fill(stream, m->generator, RONDO_DISTRIBUTION_UNIFORM, out, GT_FLOATS, 0, 1);
    case OP_SET: return rondo_stream_fill(stream, &m->cells[o->a], (uint8_t)o->value, sizeof(int64_t));
    case OP_IF: return rondo_graph_condition_begin(stream, &m->cells[o->a]);
    case OP_END: return rondo_graph_condition_end(stream);
    default: return rondo_graph_replay(o->child->graph, stream);
    }
}

/* Conditions are on one stream, and children of several lanes are not in them. */
static void one_op(rondo_test *t, family *m, int self, op *o) {
    if (!m->open) T_OK(t, go_to(m, pick(t, 3) ? m->on : pick(t, STREAMS)));
    *o = (op){.kind = OP_FILL, .value = pick(t, 64)};
    int choice = pick(t, 15);
    if (choice == 12) {
        *o = (op){.kind = OP_SET, .a = pick(t, CELLS), .value = pick(t, 2)};
    } else if (choice == 13 && m->open < DEEP) {
        *o = (op){.kind = OP_IF, .a = pick(t, CELLS)};
        m->open++;
    } else if (choice == 14 && m->open) {
        *o = (op){.kind = OP_END};
        m->open--;
    } else if (choice == 0 && !m->open) { /* a new temporary, which is written first */
        int number = m->temporary_count;
        T_OK(t, rondo_memory_allocate_on(m->streams[m->on], GT_BYTES, &m->temporaries[number]));
        m->alive[number] = true;
        m->temporary_count++;
        o->out = TEMPORARY + number;
    } else if (choice == 1 && self && !m->open) {
        const program *child = &m->programs[pick(t, self)];
        *o = (op){.kind = OP_CHILD, .child = child, .value = child->bound};
    } else {
        o->a = any_name(t, m), o->b = any_name(t, m), o->out = any_name(t, m);
        if (choice < 7) o->kind = OP_ADD;
        else if (choice < 9 && o->a != o->out) o->kind = OP_COPY;
        else if (choice == 11) o->kind = OP_RANDOM;
    }
    T_OK(t, enqueue(m, o));
    int gone = m->temporary_count ? pick(t, 4 * m->temporary_count) : 0;
    if (gone < m->temporary_count && m->alive[gone]) T_OK(t, let_go(m, gone));
}

static void capture(rondo_test *t, family *m, int self) {
    program *p = &m->programs[self];
    p->slot = p->bound = pick(t, 2) ? pick(t, NAMED) : -1;
    p->count = 5 + pick(t, OPS - 5);
    T_OK(t, rondo_graph_create(m->f.device, NULL, &p->graph));
    if (p->slot >= 0)
        T_OK(t, rondo_graph_declare_slot(p->graph, 0, buffer_of(m, p->slot), GT_BYTES, RONDO_ACCESS_BOTH,
                                         pick(t, 2) ? RONDO_SLOT_COPY : RONDO_SLOT_REBIND));
    T_OK(t, gt_begin(&m->f, p->graph));
    m->temporary_count = m->on = m->open = 0;
    for (int i = 0; i < p->count; i++) one_op(t, m, self, &p->ops[i]);
    for (; m->open; m->open--) T_OK(t, rondo_graph_condition_end(m->streams[m->on])); /* at the end of it all */
    T_OK(t, go_to(m, 0));
    for (int i = 0; i < m->temporary_count; i++)
        if (m->alive[i]) T_OK(t, let_go(m, i));
    T_OK(t, rondo_graph_capture_end(p->graph, m->f.stream));
}

static void replay(rondo_test *t, family *m, const program *p) {
    rondo_stream *stream = m->streams[pick(t, STREAMS)];
    uint64_t offset = 0;
    T_OK(t, rondo_graph_replay(p->graph, stream));
    T_OK(t, rondo_stream_synchronize(stream));
    interpret(m, p, p->bound, NULL);
    for (int i = 0; i < OWN; i++) T_EQ(t, memcmp(buffer_of(m, i), m->model[i], GT_BYTES), 0);
    for (int i = 0; i < CELLS; i++) T_EQ(t, m->cells[i] != 0, m->model_cells[i]);
    T_OK(t, rondo_generator_get_offset(m->generator, &offset));
    T_EQ(t, offset, m->offset);
}

static void test_families(rondo_test *t, const char *device) {
    family *m = &the_family;
    family_open(t, m, device);
    for (int round = 0; round < 100; round++) {
        for (int self = 0; self < FAMILY; self++) {
            capture(t, m, self);
            for (int i = 0; i < 3; i++) {
                int which = pick(t, self + 1);
                program *p = &m->programs[which];
                if (p->slot >= 0 && pick(t, 2)) {
                    p->bound = pick(t, 2) ? p->slot : NAMED + which;
                    T_OK(t, rondo_graph_bind(p->graph, 0, buffer_of(m, p->bound)));
                }
                replay(t, m, p);
            }
        }
        for (int i = 0; i < FAMILY; i++) { /* the last one stands alone */
            if (i) replay(t, m, &m->programs[FAMILY - 1]);
            rondo_graph_release(m->programs[i].graph);
            m->programs[i].graph = NULL;
        }
        T_OK(t, rondo__memory_check(m->f.device->memory));
    }
    rondo_memory_statistics statistics = RONDO_MEMORY_STATISTICS_INIT;
    T_OK(t, rondo_memory_get_statistics(m->f.device, (rondo_pool_id){0, 0}, &statistics));
    T_EQ(t, statistics.allocations, OWN + 1);
    T_EQ(t, statistics.pending_bytes, 0);
}
GT_BOTH(test_families)

RONDO_TEST_MAIN(GT_PLAIN_ENTRIES(test_families))
