/* SPDX-License-Identifier: Apache-2.0
 *
 * What a plan says about itself, and that its listings are well formed. */
#include <ctype.h>

#include "plan/plan_testing.h"

typedef struct taken {
    char text[16384];
    size_t count, limit;
} taken;

static int32_t take(void *user, const char *data, size_t size) {
    taken *to = user;
    if (to->count + size >= sizeof to->text || size > to->limit) return 1;
    memcpy(to->text + to->count, data, size);
    to->count += size;
    to->text[to->count] = 0;
    return 0;
}

/* A strict reader of JSON's grammar: the end of the value at `at`, or null. */
static const char *json_value(const char *at);
static const char *json_space(const char *at) {
    while (*at && strchr(" \t\r\n", *at)) at++;
    return at;
}
static const char *json_string(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20) return NULL;
        if (*at != '\\') continue;
        if (!strchr("\"\\/bfnrtu", *++at)) return NULL;
        for (int i = 0; at[0] == 'u' && i < 4; i++) {
            if (!isxdigit((unsigned char)at[1 + i])) return NULL;
        }
    }
    return at + 1;
}
static const char *json_list(const char *at, char end, bool named) {
    at = json_space(at + 1);
    if (*at == end) return at + 1;
    for (;;) {
        if (named) {
            at = json_string(json_space(at));
            if (!at) return NULL;
            at = json_space(at);
            if (*at++ != ':') return NULL;
        }
        at = json_value(at);
        if (!at) return NULL;
        at = json_space(at);
        if (*at == end) return at + 1;
        if (*at++ != ',') return NULL;
    }
}
static const char *json_value(const char *at) {
    at = json_space(at);
    if (*at == '{') return json_list(at, '}', true);
    if (*at == '[') return json_list(at, ']', false);
    if (*at == '"') return json_string(at);
    if (strncmp(at, "true", 4) == 0 || strncmp(at, "null", 4) == 0) return at + 4;
    if (strncmp(at, "false", 5) == 0) return at + 5;
    size_t length = strspn(at, "-+.eE0123456789");
    return length ? at + length : NULL;
}

static void dumps(rondo_test *t) {
    plan_fixture f;
    pt_open(t, &f);
    static taken out;
    for (rondo_dump_format format = RONDO_DUMP_TEXT; format <= RONDO_DUMP_JSON; format++) {
        out = (taken){.limit = SIZE_MAX};
        T_OK(t, rondo_plan_dump(f.plan, format, take, &out));
        T_TRUE(t, strstr(out.text, "Relu") != NULL);
        if (format == RONDO_DUMP_TEXT) {
            T_TRUE(t, strstr(out.text, "9 nodes in, 3 steps") != NULL);
            T_TRUE(t, strstr(out.text, "guard: input 'n' has the bytes 03 00 00 00 00 00 00 00") != NULL);
            T_TRUE(t, strstr(out.text, "scratch 64 at 64") != NULL);
            T_TRUE(t, strstr(out.text, "%2    temporary       16 bytes at 0, steps 0 to 1  't0'") != NULL);
        }
        if (format == RONDO_DUMP_DOT) {
            T_TRUE(t, strncmp(out.text, "digraph \"small \\\"plan\\\"\" {", 26) == 0);
            T_TRUE(t, strstr(out.text, "b0 -> s0;") != NULL && strstr(out.text, "s2 -> b1;") != NULL);
        }
        if (format == RONDO_DUMP_JSON) {
            const char *end = json_value(out.text);
            T_TRUE(t, end && *json_space(end) == 0);
        }
    }
    out = (taken){.limit = 10};
    T_FAILS(t, rondo_plan_dump(f.plan, RONDO_DUMP_TEXT, take, &out), IO, "stopped");
    T_FAILS(t, rondo_plan_dump(f.plan, 7, take, &out), INVALID_ARGUMENT, "format 7");
    T_FAILS(t, rondo_plan_dump(NULL, 0, take, &out), INVALID_ARGUMENT, NULL);
}

static void queries(rondo_test *t) {
    plan_fixture f;
    pt_open(t, &f);
    rondo_plan_info info = RONDO_PLAN_INFO_INIT;
    T_OK(t, rondo_plan_get_info(f.plan, &info));
    T_EQ(t, info.calls, 3);
    T_EQ(t, info.nodes_in, 9);
    T_EQ(t, info.inputs, 2);
    T_EQ(t, info.outputs, 1);
    T_EQ(t, info.arena_bytes, 128);
    T_EQ(t, info.weight_bytes, 16);
    T_EQ(t, info.segments, 1);
    /* A caller of before the last field: it stays as it was. */
    info.weight_bytes = 5;
    info.struct_size = offsetof(rondo_plan_info, weight_bytes);
    T_OK(t, rondo_plan_get_info(f.plan, &info));
    T_EQ(t, info.weight_bytes, 5);
    info.struct_size = 0;
    T_FAILS(t, rondo_plan_get_info(f.plan, &info), INVALID_ARGUMENT, "struct_size");
    rondo_tensor_info tensor;
    T_OK(t, rondo_plan_input(f.plan, 0, &tensor));
    T_STR(t, tensor.name, "x");
    T_EQ(t, tensor.bytes, 16);
    T_OK(t, rondo_plan_output(f.plan, 0, &tensor));
    T_EQ(t, tensor.dims[0], 4);
    T_FAILS(t, rondo_plan_output(f.plan, 1, &tensor), OUT_OF_RANGE, "output 1");
    T_FAILS(t, rondo_plan_input(f.plan, 2, &tensor), OUT_OF_RANGE, "input 2");
    T_STR(t, rondo_plan_remark(f.plan, 0), "a remark");
    T_TRUE(t, rondo_plan_remark(f.plan, 1) == NULL);
}

static void requests(rondo_test *t) {
    plan_fixture f;
    rondo_operand inputs[2], outputs[1];
    rondo_kernel_request request;
    pt_open(t, &f);
    rondo__plan_request(&f.steps[2], inputs, outputs, &request);
    T_STR(t, request.operator_name, "Add");
    T_EQ(t, request.input_count, 2);
    T_EQ(t, request.attribute_count, 8);
    T_TRUE(t, request.inputs[1].constant == f.constant && !request.inputs[0].constant);
    T_EQ(t, request.outputs[0].dims[0], 4);
    T_EQ(t, rondo__plan_word_count(&f.steps[2]), 3);
    T_EQ(t, rondo__plan_word_count(&f.steps[1]), 3);
    f.steps[1].packed_bytes = 1;
    T_EQ(t, rondo__plan_word_count(&f.steps[1]), 4);
}

static uint32_t released;
static void count_release(rondo_ir_graph *graph) {
    (void)graph;
    released++;
}

static void life(rondo_test *t) {
    rondo_plan *plan = NULL;
    T_OK(t, rondo__plan_create(rondo_test_allocator(t), "p", &plan));
    released = 0;
    plan->keeps = (rondo_ir_graph *)(void *)&released;
    plan->keeps_release = count_release;
    rondo_plan_retain(plan);
    rondo_plan_release(plan);
    T_EQ(t, released, 0);
    rondo_plan_release(plan);
    T_EQ(t, released, 1);
    rondo_plan_release(NULL);
    rondo_plan_retain(NULL);
}

RONDO_TEST_MAIN(T(dumps), T(queries), T(requests), T(life))
