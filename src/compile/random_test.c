/* SPDX-License-Identifier: Apache-2.0
 *
 * Random graphs of many operators, types and shapes: after every pass alone, all but one, and every level, the plan gives
 * the bits that the graph gives node by node, evaluated by the reference kernels. The graphs are full of what rules of
 * arithmetic trip over: minus zero, NaN, infinities, numbers that wrap around, constants of 0 and 1, rows of casts,
 * turns and shapes. (Products and fused biases, whose rounding may differ, are those of compile_test.) */
#include <stdio.h>

#include "compile/compile_testing.h"

#define POOL 32u
#define OUTPUTS 12u

typedef struct pool_value {
    rondo_ir_value value;
    rondo_dtype dtype;
    int32_t rank;
    int64_t dims[4];
} pool_value;

typedef struct pool {
    compile_fixture *f;
    pool_value values[POOL];
    uint32_t count;
} pool;

static uint64_t roll(const pool *p, uint64_t sides) { return rondo_test_random(p->f->t) % sides; }

static void put(pool *p, rondo_ir_value value, rondo_dtype dtype, int32_t rank, const int64_t *dims) {
    int64_t elements = 1;
    for (int32_t i = 0; i < rank; i++) elements *= dims[i];
    if (elements > 64) return;
    pool_value *v = &p->values[p->count < POOL ? p->count++ : (uint32_t)roll(p, POOL)];
    *v = (pool_value){.value = value, .dtype = dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++) v->dims[i] = dims[i];
}

/* A value of the pool of that type; UNDEFINED: of any. Inputs are of every type, so there is one. */
static pool_value pick(pool *p, rondo_dtype dtype) {
    for (;;) {
        const pool_value *v = &p->values[roll(p, p->count)];
        if (dtype == RONDO_DTYPE_UNDEFINED || v->dtype == dtype) return *v;
    }
}

/* ------------------------------------------------------------------------------------------------------ numbers */

static const float odd_floats[] = {0, -0.0f, 0, -0.0f, 1, 1, -1, 2, 0.5f, 3, NAN, INFINITY, -INFINITY, 1e-45f, 3.4e38f};
static const int32_t odd_ints[] = {0, 1, -1, 2, 3, INT32_MAX, INT32_MIN, 255, 65536, -77};

static void draw(const pool *p, rondo_dtype dtype, uint64_t count, void *to) {
    bool same = roll(p, 2) == 0;
    for (uint64_t i = 0; i < count; i++) {
        if (same && i > 0) {
            size_t size = rondo_dtype_bits(dtype) / 8u;
            memcpy((uint8_t *)to + i * size, to, size);
        } else if (dtype == RONDO_DTYPE_F32) {
            ((float *)to)[i] = odd_floats[roll(p, 15)];
        } else if (dtype == RONDO_DTYPE_I32) {
            ((int32_t *)to)[i] = odd_ints[roll(p, 10)];
        } else {
            ((uint8_t *)to)[i] = (uint8_t)roll(p, 2);
        }
    }
}

/* One element, or the last axis, or all: whatever broadcasts to v without making it larger. */
static rondo_ir_value constant_for(const pool *p, const pool_value *v) {
    uint8_t data[64 * 4];
    int64_t dims[4] = {1, 1, 1, 1}, elements = 1;
    int32_t rank = (int32_t)roll(p, (uint64_t)v->rank + 1);
    bool all = roll(p, 2) == 0;
    for (int32_t i = 0; i < rank; i++) {
        if (all) dims[i] = v->dims[v->rank - rank + i];
        elements *= dims[i];
    }
    draw(p, v->dtype, (uint64_t)elements, data);
    return ct_constant(p->f, v->dtype, rank, dims, data);
}

/* --------------------------------------------------------------------------------------------------------- nodes */

static void add_unary(pool *p) {
    static const char *const floats[] = {"Relu",  "Neg",      "Abs", "Floor", "Ceil",
                                         "Round", "Identity", "Exp", "Sum",   "Max"};
    static const char *const ints[] = {"Neg", "Abs", "Sign", "Identity", "BitwiseNot", "Neg"};
    pool_value v = pick(p, RONDO_DTYPE_UNDEFINED);
    const char *name = "Not";
    if (v.dtype == RONDO_DTYPE_F32) name = floats[roll(p, 10)];
    else if (v.dtype == RONDO_DTYPE_I32) name = ints[roll(p, 6)];
    rondo_ir_value once = CT_NODE(p->f, name, v.value);
    if (roll(p, 3) == 0) put(p, once, v.dtype, v.rank, v.dims);
    if (roll(p, 2) == 0) once = CT_NODE(p->f, name, once);
    put(p, once, v.dtype, v.rank, v.dims);
}

static rondo_ir_value cast(pool *p, rondo_ir_value value, rondo_dtype to) {
    rondo_attribute a = ct_int("to", to);
    return CT_NODE_WITH(p->f, &a, "Cast", value);
}

/* There and back, or on. From a float to a whole number only floats that are surely in range: those that come from one. */
static void add_casts(pool *p) {
    static const rondo_dtype betweens[] = {RONDO_DTYPE_I64, RONDO_DTYPE_F64, RONDO_DTYPE_F32, RONDO_DTYPE_I8,
                                           RONDO_DTYPE_U8,  RONDO_DTYPE_I32, RONDO_DTYPE_BOOL};
    pool_value v = pick(p, RONDO_DTYPE_UNDEFINED);
    rondo_dtype between = betweens[roll(p, 7)], to = v.dtype;
    if (v.dtype == RONDO_DTYPE_F32) {
        if (between == RONDO_DTYPE_F64) put(p, cast(p, cast(p, v.value, between), to), to, v.rank, v.dims);
        return;
    }
    rondo_ir_value made = cast(p, v.value, between);
    if (between == RONDO_DTYPE_F32 && v.dtype == RONDO_DTYPE_I32) to = between; /* 2^31 - 1 rounds out of range */
    else if (roll(p, 2)) to = (const rondo_dtype[]){RONDO_DTYPE_F32, RONDO_DTYPE_I32, RONDO_DTYPE_BOOL}[roll(p, 3)];
    put(p, cast(p, made, to), to, v.rank, v.dims);
}

static void add_binary(pool *p) {
    static const char *const floats[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Mul", "Sub"};
    static const char *const ints[] = {"Add", "Sub", "Mul", "Max", "Min", "Add", "Mul", "BitwiseXor"};
    static const char *const bools[] = {"And", "Or", "Xor"};
    pool_value a = pick(p, RONDO_DTYPE_UNDEFINED), b = pick(p, a.dtype);
    const char *name = bools[roll(p, 3)];
    rondo_ir_value other = constant_for(p, &a);
    bool fits = a.rank == b.rank && memcmp(a.dims, b.dims, sizeof a.dims) == 0;
    if (a.dtype == RONDO_DTYPE_F32) name = floats[roll(p, 9)];
    else if (a.dtype == RONDO_DTYPE_I32) name = ints[roll(p, 8)];
    if (fits && roll(p, 2)) other = b.value;
    if (roll(p, 6) == 0) other = a.value;
    bool swap = roll(p, 2) && strcmp(name, "Pow") != 0;
    put(p, CT_NODE(p->f, name, swap ? other : a.value, swap ? a.value : other), a.dtype, a.rank, a.dims);
}

static void add_choice(pool *p) {
    pool_value c = pick(p, RONDO_DTYPE_BOOL), a = pick(p, RONDO_DTYPE_UNDEFINED);
    bool fits = a.rank == c.rank && memcmp(a.dims, c.dims, sizeof a.dims) == 0;
    pool_value as_bool = a;
    as_bool.dtype = RONDO_DTYPE_BOOL;
    rondo_ir_value condition = fits ? c.value : constant_for(p, &as_bool);
    rondo_ir_value other = roll(p, 4) ? constant_for(p, &a) : a.value;
    put(p, CT_NODE(p->f, "Where", condition, a.value, other), a.dtype, a.rank, a.dims);
    if (a.dtype != RONDO_DTYPE_BOOL) put(p, CT_NODE(p->f, "Less", a.value, other), RONDO_DTYPE_BOOL, a.rank, a.dims);
}

static void add_turns(pool *p) {
    pool_value v = pick(p, RONDO_DTYPE_UNDEFINED);
    int64_t perm[4] = {0, 1, 2, 3}, back[4] = {0}, dims[4] = {0};
    if (v.rank < 2) return;
    for (int32_t i = v.rank - 1; i > 0; i--) {
        int32_t k = (int32_t)roll(p, (uint64_t)i + 1);
        int64_t swap = perm[i];
        perm[i] = perm[k];
        perm[k] = swap;
    }
    for (int32_t i = 0; i < v.rank; i++) {
        dims[i] = v.dims[perm[i]];
        back[perm[i]] = i;
    }
    rondo_attribute there = ct_ints("perm", (uint32_t)v.rank, perm), here = ct_ints("perm", (uint32_t)v.rank, back);
    rondo_ir_value turned = CT_NODE_WITH(p->f, &there, "Transpose", v.value);
    if (roll(p, 2)) put(p, turned, v.dtype, v.rank, dims);
    if (roll(p, 2) && v.dtype == RONDO_DTYPE_F32) {
        turned = CT_NODE(p->f, "Neg", turned);
        if (roll(p, 2)) turned = CT_NODE(p->f, "Mul", turned, ct_constant(p->f, v.dtype, 0, NULL, &(const float){3}));
    }
    if (v.rank == 3 && roll(p, 2)) { /* on instead of back */
        int64_t on[3] = {1, 0, 2}, last[3] = {dims[1], dims[0], dims[2]};
        here.value.ints = on;
        put(p, CT_NODE_WITH(p->f, &here, "Transpose", turned), v.dtype, 3, last);
        return;
    }
    put(p, CT_NODE_WITH(p->f, &here, "Transpose", turned), v.dtype, v.rank, v.dims);
}

static void add_shapes(pool *p) {
    pool_value v = pick(p, RONDO_DTYPE_UNDEFINED);
    int64_t elements = 1, two[2] = {1, 1};
    for (int32_t i = 0; i < v.rank; i++) elements *= v.dims[i];
    if (elements == 1 || v.rank == 0) return;
    while (two[0] == 1 || elements % two[0]) two[0] = 1 + (int64_t)roll(p, (uint64_t)elements);
    two[1] = elements / two[0];
    rondo_ir_value made = CT_NODE(p->f, "Reshape", v.value, CT_I64(p->f, two[0], -1));
    if (roll(p, 2)) put(p, made, v.dtype, 2, two);
    if (roll(p, 2)) made = CT_NODE(p->f, "Squeeze", CT_NODE(p->f, "Unsqueeze", made, CT_I64(p->f, 1)), CT_I64(p->f, 1));
    if (roll(p, 2)) {
        rondo_ir_value list = ct_constant(p->f, RONDO_DTYPE_I64, 1, (const int64_t[]){v.rank}, v.dims);
        put(p, CT_NODE(p->f, "Reshape", made, list), v.dtype, v.rank, v.dims);
    } else {
        put(p, CT_NODE(p->f, "Flatten", made), v.dtype, 2, two);
    }
}

static void add_pieces(pool *p) {
    pool_value v = pick(p, RONDO_DTYPE_UNDEFINED);
    int64_t dims[4], from, to;
    if (v.rank == 0) return;
    memcpy(dims, v.dims, sizeof dims);
    int32_t axis = (int32_t)roll(p, (uint64_t)v.rank);
    rondo_attribute a = ct_int("axis", axis);
    switch (roll(p, 4)) {
    case 0:
        from = (int64_t)roll(p, (uint64_t)dims[axis]);
        to = from + 1 + (int64_t)roll(p, (uint64_t)(dims[axis] - from));
        dims[axis] = to - from;
        put(p, CT_NODE(p->f, "Slice", v.value, CT_I64(p->f, from), CT_I64(p->f, to), CT_I64(p->f, axis)), v.dtype,
            v.rank, dims);
        return;
    case 1:
        dims[axis] *= 2;
        put(p, CT_NODE_WITH(p->f, &a, "Concat", v.value, v.value), v.dtype, v.rank, dims);
        return;
    case 2:
        from = (int64_t)roll(p, (uint64_t)dims[axis]);
        dims[axis] = 1;
        put(p, CT_NODE_WITH(p->f, &a, "Gather", v.value, CT_I64(p->f, from)), v.dtype, v.rank, dims);
        return;
    default: {
        rondo_ir_value list = ct_constant(p->f, RONDO_DTYPE_I64, 1, (const int64_t[]){v.rank}, v.dims);
        put(p, CT_NODE(p->f, "Expand", v.value, list), v.dtype, v.rank, v.dims);
    }
    }
}

static void grow(pool *p) {
    static void (*const add[])(pool * p) = {add_unary,  add_casts, add_binary, add_binary,
                                            add_choice, add_turns, add_shapes, add_pieces};
    uint32_t nodes = 1 + (uint32_t)roll(p, 24);
    for (uint32_t i = 0; i < nodes; i++) add[roll(p, 8)](p);
    uint32_t outputs = 1 + (uint32_t)roll(p, OUTPUTS);
    for (uint32_t i = 0; i < outputs; i++) {
        ct_output(p->f, p->values[roll(p, 3) ? p->count - 1 - i % p->count : roll(p, p->count)].value,
                  (const char[]){'o', (char)('a' + i), 0});
    }
}

/* -------------------------------------------------------------------------------------------------------- checks */

static void same_bits(compile_fixture *f, void *const *want, void *const *got, const char *way) {
    for (uint32_t i = 0; i < f->plan->output_count; i++) {
        const rondo__plan_port *port = &f->plan->outputs[i];
        bool same = true;
        for (uint64_t k = 0; port->dtype == RONDO_DTYPE_F32 && k < port->bytes / 4; k++) {
            const float *a = want[i], *b = got[i];
            same = same && ((isnan(a[k]) && isnan(b[k])) || memcmp(&a[k], &b[k], 4) == 0);
        }
        if (port->dtype != RONDO_DTYPE_F32) same = memcmp(want[i], got[i], (size_t)port->bytes) == 0;
        if (!same) fprintf(stderr, "output %u differs with %s\n", i, way);
        T_TRUE(f->t, same);
    }
}

/* Each operator of the graph is one of the first target, of the second, or of both; the third has all. */
static void draw_targets(const compile_fixture *f, rondo__targets *targets, char (*texts)[2048]) {
    const rondo_ir_graph *g = f->graph;
    *targets = (rondo__targets){.count = 3, .text = "random"};
    for (uint32_t k = 0; k < 3; k++) {
        targets->at[k] = (rondo__target){k == 0   ? "first"
                                         : k == 1 ? "second"
                                                  : "third",
                                         k < 2 ? texts[k] : NULL, f->ref};
    }
    texts[0][0] = texts[1][0] = 0;
    for (size_t n = 0; n < g->nodes.count; n++) {
        const char *name = rondo__ir_node_at(g, (rondo_ir_node)n)->operator_name;
        uint64_t sets = rondo_test_random(f->t) % 8; /* 0: of neither */
        for (uint32_t k = 0; k < 2; k++) {
            size_t used = strlen(texts[k]);
            if (sets >> k & 1u) (void)snprintf(texts[k] + used, 2048 - used, "%s%s", used ? "," : "", name);
        }
    }
}

static void try_way(compile_fixture *f, const rondo_compile_options *options, void *const *inputs, void *const *want,
                    const char *way) {
    static char texts[2][2048];
    rondo__targets targets = {.at = {{"test", NULL, f->ref}}, .count = 1, .text = "test"};
    if (strcmp(way, "targets") == 0) draw_targets(f, &targets, texts);
    void *got[OUTPUTS] = {0};
    rondo_plan *before = f->plan;
    rondo_ir_graph *compiled = f->compiled;
    f->plan = NULL;
    f->compiled = NULL;
    rondo_plan_release(before);
    rondo_ir_graph_release(compiled);
    T_OK(f->t,
         rondo__compile_for(rondo_test_allocator(f->t), &targets, &f->ref, f->graph, options, &f->compiled, &f->plan));
    uint32_t kept = f->memory_count;
    if (f->plan->lane_count > 1) ct_run_lanes(f, &f->ref, inputs, got);
    else ct_run(f, &f->ref, inputs, got);
    same_bits(f, want, got, way);
    while (f->memory_count > kept) free(f->memory[--f->memory_count]);
}

static void every_way(compile_fixture *f, void *const *inputs, void *const *want) {
    rondo_pass_info info = RONDO_PASS_INFO_INIT;
    rondo_status status = RONDO_OK;
    for (uint32_t i = 0; !(status = rondo_compile_pass(i, &info)); i++) {
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.flags = RONDO_COMPILE_VERIFY;
        if (info.required) continue;
        options.passes = info.name;
        try_way(f, &options, inputs, want, info.name);
        options.passes = NULL;
        options.without = info.name;
        try_way(f, &options, inputs, want, info.name);
    }
    T_FAILS(f->t, status, NOT_FOUND, "passes");
    for (int32_t level = RONDO_COMPILE_O0; level <= RONDO_COMPILE_O3; level++) {
        static const char *const names[] = {"", "O0", "O1", "O2", "O3"};
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.flags = RONDO_COMPILE_VERIFY | RONDO_COMPILE_EXPLAIN;
        options.level = level;
        try_way(f, &options, inputs, want, names[level]);
    }
    for (uint32_t lanes = 2; lanes <= RONDO__PLAN_LANES_MAX; lanes *= 2) {
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.lanes = lanes;
        options.level = lanes == 8 ? RONDO_COMPILE_O0 : lanes == 16 ? RONDO_COMPILE_O1 : RONDO_COMPILE_O2;
        try_way(f, &options, inputs, want, "lanes");
    }
    for (int32_t level = RONDO_COMPILE_O0; level <= RONDO_COMPILE_O3; level++) {
        rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
        options.level = level;
        try_way(f, &options, inputs, want, "targets");
    }
    /* All in the other order, twice. */
    rondo_compile_options options = RONDO_COMPILE_OPTIONS_INIT;
    options.flags = RONDO_COMPILE_VERIFY;
    options.passes = "fuse-activation,fuse-bias,duplicates,reshapes,transposes,casts,algebra,simplify,fold,dead,"
                     "fuse-activation,fuse-bias,duplicates,reshapes,transposes,casts,algebra,simplify,fold,dead";
    try_way(f, &options, inputs, want, "the other order");
}

static void every_pass_keeps_every_bit(rondo_test *t) {
    compile_fixture f = {.t = t};
    const char *more = getenv("RONDO_LONG");
    uint32_t rounds = more && *more ? 3000 : 400;
    T_DEFER(t, ct_close, &f);
    for (uint32_t round = 0; round < rounds; round++) {
        pool p = {.f = &f};
        float x[24];
        int32_t n[12];
        uint8_t b[12];
        void *inputs[3] = {x, n, b}, *want[OUTPUTS] = {0};
        ct_again(t, &f);
        put(&p, ct_input(&f, "x", RONDO_DTYPE_F32, CT_DIMS(2, 3, 4)), RONDO_DTYPE_F32, 3, (const int64_t[]){2, 3, 4});
        put(&p, ct_input(&f, "n", RONDO_DTYPE_I32, CT_DIMS(3, 4)), RONDO_DTYPE_I32, 2, (const int64_t[]){3, 4});
        put(&p, ct_input(&f, "b", RONDO_DTYPE_BOOL, CT_DIMS(3, 4)), RONDO_DTYPE_BOOL, 2, (const int64_t[]){3, 4});
        draw(&p, RONDO_DTYPE_F32, 24, x);
        draw(&p, RONDO_DTYPE_I32, 12, n);
        draw(&p, RONDO_DTYPE_BOOL, 12, b);
        grow(&p);
        ct_reference(&f, inputs, want);
        every_way(&f, inputs, want);
        ct_close(&f);
    }
}

RONDO_TEST_MAIN(T_PLAIN(every_pass_keeps_every_bit))
