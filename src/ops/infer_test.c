/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference against what ONNX Runtime made of the same nodes (testdata/), and by hand where a table cannot say it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "ops/infer.h"

#define CASE_OPERANDS_MAX 16
#define CASE_ATTRIBUTES_MAX 8
#define CASE_ELEMENTS_MAX 64

typedef struct infer_case {
    char op[32];
    rondo_operand inputs[CASE_OPERANDS_MAX];
    int64_t dims[CASE_OPERANDS_MAX][RONDO_RANK_MAX];
    double values[CASE_OPERANDS_MAX][CASE_ELEMENTS_MAX]; /* aligned storage for any element type */
    rondo_attribute attributes[CASE_ATTRIBUTES_MAX];
    char names[CASE_ATTRIBUTES_MAX][32], strings[CASE_ATTRIBUTES_MAX][32];
    int64_t ints[CASE_ATTRIBUTES_MAX][RONDO_RANK_MAX];
    rondo_tensor_view views[CASE_ATTRIBUTES_MAX];
    rondo_kernel_request request;
    rondo_operand outputs[CASE_OPERANDS_MAX];
    int64_t output_dims[CASE_OPERANDS_MAX][RONDO_RANK_MAX];
} infer_case;

static const struct {
    const char *name;
    rondo_dtype dtype;
} case_types[] = {{"f32", RONDO_DTYPE_F32}, {"f64", RONDO_DTYPE_F64},  {"i8", RONDO_DTYPE_I8},
                  {"i16", RONDO_DTYPE_I16}, {"i32", RONDO_DTYPE_I32},  {"i64", RONDO_DTYPE_I64},
                  {"u8", RONDO_DTYPE_U8},   {"u16", RONDO_DTYPE_U16},  {"u32", RONDO_DTYPE_U32},
                  {"u64", RONDO_DTYPE_U64}, {"bool", RONDO_DTYPE_BOOL}};

static rondo_dtype case_dtype(const char **at) {
    for (size_t i = 0; i < sizeof case_types / sizeof *case_types; i++) {
        size_t length = strlen(case_types[i].name);
        if (strncmp(*at, case_types[i].name, length) == 0 && (*at)[length] == '[') {
            *at += length;
            return case_types[i].dtype;
        }
    }
    return RONDO_DTYPE_UNDEFINED;
}

/* "1,2,3" and the closing character. */
static int32_t case_list(const char **at, char end, int64_t *out) {
    int32_t count = 0;
    (*at)++;
    while (**at != end) {
        out[count++] = strtoll(*at, (char **)(uintptr_t)at, 10);
        if (**at == ',') (*at)++;
    }
    (*at)++;
    return count;
}

static void case_value(infer_case *c, uint32_t index, rondo_dtype dtype, const int64_t *list, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (dtype == RONDO_DTYPE_I64) ((int64_t *)(void *)c->values[index])[i] = list[i];
        if (dtype == RONDO_DTYPE_I32) ((int32_t *)(void *)c->values[index])[i] = (int32_t)list[i];
        if (dtype == RONDO_DTYPE_F32) ((float *)(void *)c->values[index])[i] = (float)list[i];
    }
    c->inputs[index].constant = c->values[index];
}

static void case_inputs(infer_case *c, const char *at) {
    while (*at && *at != '|') {
        uint32_t index = c->request.input_count++;
        if (*at == '-') {
            at += 2;
            continue;
        }
        int64_t list[CASE_ELEMENTS_MAX];
        rondo_operand *input = &c->inputs[index];
        input->dtype = case_dtype(&at);
        input->rank = case_list(&at, ']', c->dims[index]);
        input->dims = c->dims[index];
        if (*at == '{') case_value(c, index, input->dtype, list, case_list(&at, '}', list));
        at++;
    }
}

static void case_attributes(infer_case *c, const char *at) {
    while (*at != '|') {
        uint32_t index = c->request.attribute_count++;
        rondo_attribute *attribute = &c->attributes[index];
        size_t length = strcspn(at, "=");
        memcpy(c->names[index], at, length);
        attribute->name = c->names[index];
        attribute->count = 1;
        at += length + 1u;
        char kind = *at;
        int64_t pair[2];
        switch (kind) {
        case 'i':
            attribute->kind = RONDO_ATTRIBUTE_INT;
            attribute->value.i = strtoll(at + 1, NULL, 10);
            break;
        case 'f':
            attribute->kind = RONDO_ATTRIBUTE_FLOAT;
            attribute->value.f = strtof(at + 1, NULL);
            break;
        case 's':
            attribute->kind = RONDO_ATTRIBUTE_STRING;
            memcpy(c->strings[index], at + 1, strcspn(at + 1, " "));
            attribute->value.s = (rondo_string){c->strings[index], strlen(c->strings[index])};
            break;
        case 'I':
            attribute->kind = RONDO_ATTRIBUTE_INTS;
            attribute->count = (uint32_t)case_list(&at, ' ', c->ints[index]);
            attribute->value.ints = c->ints[index];
            at--;
            break;
        default: /* a tensor "t7:1": type and number of elements */
            pair[0] = strtoll(at + 1, NULL, 10);
            pair[1] = strtoll(strchr(at, ':') + 1, NULL, 10);
            c->ints[index][0] = pair[1];
            c->views[index] = (rondo_tensor_view){
                .device_type = 1, .rank = 1, .dtype = (rondo_dtype)pair[0], .shape = c->ints[index]};
            attribute->kind = RONDO_ATTRIBUTE_TENSOR;
            attribute->value.tensor = &c->views[index];
            break;
        }
        at += strcspn(at, " ");
        at++;
    }
}

static void case_read(infer_case *c, const char *line) {
    memset(c, 0, sizeof *c);
    size_t length = strcspn(line, " ");
    memcpy(c->op, line, length);
    c->request = (rondo_kernel_request)RONDO_KERNEL_REQUEST_INIT;
    c->request.operator_name = c->op;
    c->request.inputs = c->inputs;
    c->request.attributes = c->attributes;
    case_attributes(c, line + length + 1u);
    const char *inputs = strstr(line, " | ") + 3;
    case_inputs(c, inputs);
    c->request.output_count = (uint32_t)strtoul(strstr(inputs, "| ") + 2, NULL, 10);
}

static void case_check(rondo_test *t, const char *line) {
    static infer_case c;
    case_read(&c, line);
    const char *results = strrchr(line, '|') + 2;
    rondo_status status = rondo__ops_infer_request(&c.request, c.outputs, c.output_dims);
    char text[600];
    size_t used = 0;
    if (status) {
        bool meta = rondo_status_layer(status) == RONDO_LAYER_META && strstr(rondo_status_message(status), c.op);
        (void)rondo_status_format(status, text, sizeof text);
        rondo_status_release(status);
        if (!meta || strcmp(results, "refused") != 0) {
            rondo_test_fail(t, __FILE__, __LINE__, "%s\n   got: %s", line, text);
        }
        return;
    }
    for (uint32_t i = 0; i < c.request.output_count; i++) {
        const char *name = "?";
        for (size_t k = 0; k < sizeof case_types / sizeof *case_types; k++) {
            if (case_types[k].dtype == c.outputs[i].dtype) name = case_types[k].name;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s[", i ? " " : "", name);
        for (int32_t a = 0; a < c.outputs[i].rank; a++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", a ? "," : "",
                                     (long long)c.outputs[i].dims[a]);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "]");
    }
    if (strcmp(text, results) != 0) rondo_test_fail(t, __FILE__, __LINE__, "%s\n   got: %s", line, text);
}

static void case_check_all(rondo_test *t, const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) case_check(t, lines[i]);
}

static void test_elementwise_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_elementwise.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_shape_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_shape.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_move_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_move.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_nn_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_nn.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

RONDO_TEST_MAIN(T_PLAIN(test_elementwise_as_the_runtime), T_PLAIN(test_shape_as_the_runtime),
                T_PLAIN(test_move_as_the_runtime), T_PLAIN(test_nn_as_the_runtime))
