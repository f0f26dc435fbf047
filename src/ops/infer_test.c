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
        bool named = rondo_test_failing(t) || strstr(rondo_status_message(status), c.op); /* without memory, no text */
        bool meta = rondo_status_layer(status) == RONDO_LAYER_META && named;
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

static void test_math_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_math.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_index_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_index.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_norm_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_norm.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

static void test_pool_as_the_runtime(rondo_test *t) {
    static const char *const lines[] = {
#include "ops/testdata/infer_cases_pool.inc"
    };
    case_check_all(t, lines, sizeof lines / sizeof *lines);
}

/* What the runtime cannot run, or does not tell apart, by the operators' text. */
static const char *const by_hand[] = {
    "MatMul | f32[2,3] f32[3,4] f32[4] | 1 | f32[2,4]", /* the bias that the compiler adds */
    "MatMul | f32[5,2,3] f32[3,4] f32[1,4] | 1 | f32[5,2,4]",
    "MatMul | f32[2,3] f32[3] f32[1] | 1 | f32[2]",
    "MatMul | f32[2,3] f32[3,4] f32[3] | 1 | refused",
    "MatMul | f32[2,3] f32[3,4] f32[2,4] | 1 | refused",
    "MatMul | f32[2,3] f32[3,4] f32[] | 1 | refused",
    "MatMul | f32[] f32[3] | 1 | refused",
    "MatMul | f32[0,3] f32[3,0] | 1 | f32[0,0]",
    "Conv dilations=I3 auto_pad=sSAME_LOWER strides=I2 | f32[1,2,7] f32[4,2,3] | 1 | f32[1,4,4]",
    "Conv auto_pad=sVALID pads=I0,0 | f32[1,2,7] f32[4,2,3] | 1 | f32[1,4,5]",
    "Conv auto_pad=sVALID pads=I1,0 | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv auto_pad=sSAME | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv pads=I-1,1 | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv strides=I0 | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv group=i0 | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv group=i-1 | f32[1,2,7] f32[4,2,3] | 1 | refused",
    "Conv | f32[0,2,7] f32[4,2,3] | 1 | f32[0,4,5]",
    "Conv | f32[2,7] f32[4,2] | 1 | refused",
    "Conv group=i9223372036854775807 | f32[1,0,7] f32[0,2,3] | 1 | refused",
    "LSTM layout=i1 | f32[3,5,2] f32[1,16,2] f32[1,16,4] - - f32[3,1,4] | 3 | f32[3,5,1,4] f32[3,1,4] f32[3,1,4]",
    "LSTM layout=i2 | f32[3,5,2] f32[1,16,2] f32[1,16,4] | 1 | refused",
    "LSTM direction=sback | f32[3,5,2] f32[1,16,2] f32[1,16,4] | 1 | refused",
    "LSTM | f32[3,5,2] f32[1,16,2] f32[1,0,0] | 1 | refused",
    "LSTM | f32[3,5,2] f32[1,16,2] f32[1,16,4] | 4 | refused",
    "Slice | f32[9] i32[1]{-3} i32[1]{9} | 1 | f32[3]",
    "Slice | f32[9] i32[1]{-3} i64[1]{9} | 1 | refused",
    "Slice | f32[9] i64[1]{8} i64[1]{-9223372036854775808} i64[1]{0} i64[1]{-9223372036854775808} | 1 | f32[1]",
    "Slice | f32[3] i64[1]{9223372036854775807} i64[1]{9223372036854775807} i64[1]{0} i64[1]{-1} | 1 | f32[0]",
    "Slice | f32[3,3] i64[2]{0,0} i64[2]{1,1} i64[2]{0,-2} | 1 | refused", /* one axis twice */
    "Slice | f32[3] i64[]{0} i64[]{1} | 1 | refused",
    "Pad mode=smirror | f32[3] i64[2]{1,1} | 1 | refused",
    "Pad mode=sedge | f32[0] i64[2]{1,1} | 1 | refused",
    "Pad mode=sedge | f32[2] i64[2]{-2,1} | 1 | refused",
    "Pad | f32[0] i64[2]{1,1} | 1 | f32[2]",
    "Pad | f32[2] i64[2]{-3,1} | 1 | f32[0]",
    "Pad | f32[2] i64[2]{-3,0} | 1 | refused",
    "Pad | f32[2] i64[2]{9223372036854775807,1} | 1 | refused",
    "Pad | f32[2] i64[2]{-9223372036854775808,-9223372036854775808} | 1 | refused",
    "Pad | f32[2] i64[2]{1,1} f32[2] | 1 | refused",
    "Pad | f32[2,2] i64[4]{1,1,1,1} - i64[2]{0,-2} | 1 | refused",
    "Reshape | f32[0,3] i64[2]{0,-1} | 1 | refused", /* what -1 is cannot be known */
    "Reshape allowzero=i1 | f32[0,3] i64[2]{3,0} | 1 | f32[3,0]",
    "Reshape | f32[] i64[0] | 1 | f32[]", /* no element, so its value is known */
    "Reshape | f32[2,3] i64[]{6} | 1 | refused",
    "Reshape | f32[4] i64[3]{4294967296,4294967296,0} | 1 | refused",
    "Reshape | f32[2] i64[17]{1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2} | 1 | refused",
    "Expand | f32[3] i64[2]{-1,3} | 1 | refused",
    "Expand | f32[1] i64[2]{0,4} | 1 | f32[0,4]",
    "Split num_outputs=i4 | f32[5] | 4 | refused", /* 2, 2, 2 and -1 */
    "Split num_outputs=i3 | f32[4] | 3 | f32[2] f32[2] f32[0]",
    "Split num_outputs=i0 | f32[4] | 1 | refused",
    "Split num_outputs=i2 | f32[4] i64[2]{2,2} | 2 | refused",
    "Split | f32[4] | 2 | refused",
    "Split | f32[4] i64[2]{-1,5} | 2 | refused",
    "Split | f32[4] i64[2]{9223372036854775807,9223372036854775807} | 2 | refused",
    "ReduceSum | f32[2,3] i64[2]{0,-2} | 1 | refused",
    "ReduceSum | f32[2,3] i64[0] | 1 | f32[1,1]",
    "ReduceSum noop_with_empty_axes=i1 | f32[2,3] i64[0] | 1 | f32[2,3]",
    "ReduceMax keepdims=i0 | f32[2,0] i64[1]{1} | 1 | f32[2]",
    "Squeeze | f32[1,2] i64[1]{9223372036854775807} | 1 | refused",
    "BitShift direction=sUP | u8[2] u8[2] | 1 | refused",
    "BitShift direction=sLEFT | u8[2] u8[2] | 1 | u8[2]",
    "Cast to=i1 round_mode=ssideways | f32[2] | 1 | refused",
    "CastLike round_mode=ssideways | f32[2] f32[] | 1 | refused",
    "Gelu approximate=ssinh | f32[2] | 1 | refused",
    "Gelu approximate=stanh | f32[2] | 1 | f32[2]",
    "ScatterElements reduction=sdiv | f32[2] i64[1] f32[1] | 1 | refused",
    "ScatterND reduction=sdiv | f32[2] i64[1,1] f32[1] | 1 | refused",
    "ScatterND reduction=smul | f32[2] i64[1,1] f32[1] | 1 | f32[2]",
    "CumSum | f32[] i64[]{0} | 1 | refused",
    "GlobalMaxPool | f32[1,1,0] | 1 | refused",
    "Squeeze | f32[1,2] i64[1]{-9223372036854775808} | 1 | refused",
    "Squeeze | f32[1,2,1] i64[2]{0,-3} | 1 | f32[2,1]",
    "Transpose perm=I1,1 | f32[2,3] | 1 | refused",
    "Transpose perm=I0,2 | f32[2,3] | 1 | refused",
    "Concat axis=i0 | f32[] f32[] | 1 | refused",
    "Flatten axis=i0 | f32[] | 1 | f32[1,1]",
    "ConstantOfShape | i64[0] | 1 | f32[]",
    "Size | f32[0,4611686018427387904,4] | 1 | i64[]",
    "Clip | f32[2,3] f32[1] | 1 | f32[2,3]",
    "Clip | f32[2,3] f32[1,1] | 1 | refused",
    "Constant value_int=i3 | | 1 | i64[]",
    "Constant value_ints=I3,4 | | 1 | i64[2]",
    "Constant value_float=f1.5 | | 1 | f32[]",
    "Constant value=t7:3 | | 1 | i64[3]",
    "Constant | | 1 | refused",
    "Constant value_int=i3 value_float=f1.5 | | 1 | refused",
    "Cast to=i0 | f32[2] | 1 | refused",
    "Cast to=i14 | f32[2] | 1 | refused",
    "Cast to=i9223372036854775807 | f32[2] | 1 | refused",
    "Cast | f32[2] | 1 | refused",
    "Add rondo.activation=sRelu | f32[2] f32[2] | 1 | f32[2]",
    "Add axis=i1 | f32[2] f32[2] | 1 | refused",
    "Softmax axis=f1 | f32[2] | 1 | refused",
    "Softmax axis=i0 axis=i0 | f32[2] | 1 | refused",
    "Add | f32[2] - | 1 | refused",
    "Add | f32[2] f32[2] f32[2] | 1 | refused",
    "Add | f32[2] f32[2] | 0 | refused",
    "Add | f32[2] f32[2] | 2 | refused",
    "Max | f32[2] - | 1 | refused",
    "Add | f32[9223372036854775807,2] f32[1] | 1 | refused",
};

static void test_by_hand(rondo_test *t) { case_check_all(t, by_hand, sizeof by_hand / sizeof *by_hand); }

static void case_fails(rondo_test *t, const char *line, rondo_code code, const char *part) {
    static infer_case c;
    case_read(&c, line);
    rondo_test_code(t, rondo__ops_infer_request(&c.request, c.outputs, c.output_dims), code, part, line, __FILE__,
                    __LINE__);
}

static void test_reasons(rondo_test *t) {
    static const char *const open[] = {
        "Reshape | f32[2,3] i64[2] | 1", "Slice | f32[9] i64[1] i64[1]{1} | 1",
        "Expand | f32[3] i64[2] | 1",    "ConstantOfShape | i64[2] | 1",
        "Pad | f32[2] i64[2] | 1",       "Pad | f32[2] i64[2]{1,1} - i64[1] | 1",
        "Squeeze | f32[1] i64[1] | 1",   "Unsqueeze | f32[1] i64[1] | 1",
        "Split | f32[4] i64[2] | 2",     "ReduceMean | f32[4] i64[1] | 1",
    };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) case_fails(t, open[i], RONDO_CODE_UNSUPPORTED, "(meta)");
    case_fails(t, open[0], RONDO_CODE_UNSUPPORTED, "value of input 'shape'");
    case_fails(t, "Nothing | f32[2] | 1", RONDO_CODE_NOT_FOUND, "(prototype)");
    case_fails(t, "Expand | f32[1] i64[2]{4611686018427387904,4} | 1", RONDO_CODE_OUT_OF_RANGE, "too large");
    case_fails(t, "Concat axis=i0 | f32[4611686018427387904] f32[4611686018427387904] | 1", RONDO_CODE_OUT_OF_RANGE,
               "too long");
    case_fails(t, "Conv dilations=I9223372036854775807 | f32[1,1,3] f32[1,1,3] | 1", RONDO_CODE_OUT_OF_RANGE, "axis 2");
    case_fails(t, "Conv pads=I9223372036854775807,9 | f32[1,1,3] f32[1,1,3] | 1", RONDO_CODE_OUT_OF_RANGE, "axis 2");
    case_fails(t, "Flatten | f32[2,0,4611686018427387904,4] | 1", RONDO_CODE_OK, NULL);
    case_fails(t, "Gather | f32[1,1,1,1,1,1,1,1,1] i64[1,1,1,1,1,1,1,1,1] | 1", RONDO_CODE_UNSUPPORTED, "rank 17");
    case_fails(t, "Unsqueeze | f32[1,1,1,1,1,1,1,1] i64[9]{0,1,2,3,4,5,6,7,8} | 1", RONDO_CODE_UNSUPPORTED,
               "limit of 16");
    case_fails(t, "Unsqueeze | f32[1] i64[9223372036854775807] | 1", RONDO_CODE_UNSUPPORTED, "limit of 16");
    case_fails(t, "Add | f32[2,3] f32[4] | 1", RONDO_CODE_INVALID_ARGUMENT, "float32[2,3] and float32[4]");
    case_fails(t, "Conv kernel_shape=I4 | f32[1,1,3] f32[1,1,3] | 1", RONDO_CODE_INVALID_ARGUMENT, "kernel_shape says");
    case_fails(t, "Conv strides=I1,1 | f32[1,1,3] f32[1,1,3] | 1", RONDO_CODE_INVALID_ARGUMENT, "'strides' has 2");
    case_fails(t, "LSTM | f32[5,3,2] f32[1,16,3] f32[1,16,4] | 1", RONDO_CODE_INVALID_ARGUMENT,
               "'W' is float32[1,16,3], it must be float32[1,16,2]");
}

static void test_if_has_no_inference(rondo_test *t) {
    int branch = 0;
    rondo_operand cond = {.dtype = RONDO_DTYPE_BOOL}, out;
    int64_t dims[1][RONDO_RANK_MAX];
    const rondo_attribute branches[2] = {
        {.name = "else_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = &branch},
        {.name = "then_branch", .kind = RONDO_ATTRIBUTE_GRAPH, .count = 1, .value.graph = &branch}};
    rondo_kernel_request request = RONDO_KERNEL_REQUEST_INIT;
    request.operator_name = "If";
    request.input_count = 1;
    request.output_count = 1;
    request.attribute_count = 2;
    request.inputs = &cond;
    request.attributes = branches;
    request.node_name = "choice";
    T_FAILS(t, rondo__ops_infer_request(&request, &out, dims), UNSUPPORTED, "node 'choice' (If)");
}

static void test_reading_attributes(rondo_test *t) {
    static infer_case c;
    case_read(&c, "X a=i7 b=f0.5 c=sword | | 1");
    const rondo_kernel_request *r = &c.request;
    T_EQ(t, rondo__ops_attribute_int(r, "a", 1), 7);
    T_EQ(t, rondo__ops_attribute_int(r, "b", 1), 1); /* of another kind: as if absent */
    T_EQ(t, rondo__ops_attribute_int(r, "z", 1), 1);
    T_NEAR(t, rondo__ops_attribute_float(r, "b", 1), 0.5, 0);
    T_NEAR(t, rondo__ops_attribute_float(r, "a", 1), 1, 0);
    T_STR(t, rondo__ops_attribute_string(r, "c", "none"), "word");
    T_STR(t, rondo__ops_attribute_string(r, "a", "none"), "none");
    T_TRUE(t, !rondo__ops_attribute_find(r, "z"));
}

static void test_broadcast(rondo_test *t) {
    static const int64_t a[3] = {2, 1, 4}, b[2] = {3, 1}, c[1] = {5}, zero[1] = {0};
    int64_t dims[RONDO_RANK_MAX] = {7};
    int32_t rank = -1;
    T_TRUE(t, rondo__ops_broadcast(3, a, 2, b, &rank, dims) && rank == 3);
    T_TRUE(t, dims[0] == 2 && dims[1] == 3 && dims[2] == 4);
    T_TRUE(t, !rondo__ops_broadcast(3, a, 1, c, &rank, dims) && rank == 3); /* left alone */
    T_TRUE(t, rondo__ops_broadcast(0, NULL, 1, zero, &rank, dims) && rank == 1 && dims[0] == 0);
    T_TRUE(t, rondo__ops_broadcast(2, b, 1, zero, &rank, dims) && rank == 2 && dims[1] == 0);
    T_TRUE(t, !rondo__ops_broadcast(3, a, 1, zero, &rank, dims));
    T_TRUE(t, rondo__ops_broadcast(0, NULL, 0, NULL, &rank, dims) && rank == 0);
}

RONDO_TEST_MAIN(T_PLAIN(test_elementwise_as_the_runtime), T_PLAIN(test_shape_as_the_runtime),
                T_PLAIN(test_move_as_the_runtime), T_PLAIN(test_nn_as_the_runtime), T_PLAIN(test_math_as_the_runtime),
                T_PLAIN(test_index_as_the_runtime), T_PLAIN(test_norm_as_the_runtime),
                T_PLAIN(test_pool_as_the_runtime), T(test_by_hand), T(test_reasons), T(test_if_has_no_inference),
                T(test_reading_attributes), T(test_broadcast))
