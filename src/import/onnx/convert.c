/* SPDX-License-Identifier: Apache-2.0
 *
 * What changed between versions of an operator, as two tables: which attributes and inputs exist when (a node that uses
 * what its version does not have is refused, never guessed at), and which converter brings an old form into the newest. */
#include <string.h>

#include "import/onnx/onnx.h"

#define CONVERT_ALWAYS INT64_MAX

typedef struct convert_attribute {
    const char *type, *attribute;
    int64_t since, until; /* versions since .. until-1 have it */
} convert_attribute;

/* Only attributes that came or went after version 7. */
static const convert_attribute convert_attributes[] = {
    {"ArgMax", "select_last_index", 12, CONVERT_ALWAYS},
    {"ArgMin", "select_last_index", 12, CONVERT_ALWAYS},
    {"AveragePool", "ceil_mode", 10, CONVERT_ALWAYS},
    {"AveragePool", "count_include_pad", 7, CONVERT_ALWAYS},
    {"AveragePool", "dilations", 19, CONVERT_ALWAYS},
    {"BatchNormalization", "training_mode", 14, CONVERT_ALWAYS},
    {"Cast", "round_mode", 24, CONVERT_ALWAYS},
    {"Cast", "saturate", 19, CONVERT_ALWAYS},
    {"CastLike", "round_mode", 24, CONVERT_ALWAYS},
    {"CastLike", "saturate", 19, CONVERT_ALWAYS},
    {"Clip", "max", 1, 11},
    {"Clip", "min", 1, 11},
    {"GatherND", "batch_dims", 12, CONVERT_ALWAYS},
    {"LSTM", "layout", 14, CONVERT_ALWAYS},
    {"LpPool", "ceil_mode", 18, CONVERT_ALWAYS},
    {"LpPool", "dilations", 18, CONVERT_ALWAYS},
    {"MaxPool", "ceil_mode", 10, CONVERT_ALWAYS},
    {"MaxPool", "dilations", 10, CONVERT_ALWAYS},
    {"MaxPool", "storage_order", 8, CONVERT_ALWAYS},
    {"Pad", "pads", 1, 11},
    {"Pad", "value", 1, 11},
    {"Range", "stash_type", 27, CONVERT_ALWAYS},
    {"ReduceL1", "axes", 1, 18},
    {"ReduceL1", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceL2", "axes", 1, 18},
    {"ReduceL2", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceLogSum", "axes", 1, 18},
    {"ReduceLogSum", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceLogSumExp", "axes", 1, 18},
    {"ReduceLogSumExp", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceMax", "axes", 1, 18},
    {"ReduceMax", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceMean", "axes", 1, 18},
    {"ReduceMean", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceMin", "axes", 1, 18},
    {"ReduceMin", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceProd", "axes", 1, 18},
    {"ReduceProd", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"ReduceSum", "axes", 1, 13},
    {"ReduceSum", "noop_with_empty_axes", 13, CONVERT_ALWAYS},
    {"ReduceSumSquare", "axes", 1, 18},
    {"ReduceSumSquare", "noop_with_empty_axes", 18, CONVERT_ALWAYS},
    {"Reshape", "allowzero", 14, CONVERT_ALWAYS},
    {"ScatterElements", "reduction", 16, CONVERT_ALWAYS},
    {"ScatterND", "reduction", 16, CONVERT_ALWAYS},
    {"Shape", "end", 15, CONVERT_ALWAYS},
    {"Shape", "start", 15, CONVERT_ALWAYS},
    {"Slice", "axes", 1, 10},
    {"Slice", "ends", 1, 10},
    {"Slice", "starts", 1, 10},
    {"Split", "num_outputs", 18, CONVERT_ALWAYS},
    {"Split", "split", 1, 13},
    {"Squeeze", "axes", 1, 13},
    {"Unsqueeze", "axes", 1, 13},
};

typedef struct convert_inputs {
    const char *type;
    uint32_t count; /* at most so many inputs ... */
    int64_t until;  /* ... before this version */
} convert_inputs;

static const convert_inputs convert_input_counts[] = {
    {"Clip", 1, 11},
    {"Pad", 1, 11},
    {"Pad", 3, 18},
    {"ReduceL1", 1, 18},
    {"ReduceL2", 1, 18},
    {"ReduceLogSum", 1, 18},
    {"ReduceLogSumExp", 1, 18},
    {"ReduceMax", 1, 18},
    {"ReduceMean", 1, 18},
    {"ReduceMin", 1, 18},
    {"ReduceProd", 1, 18},
    {"ReduceSum", 1, 13},
    {"ReduceSumSquare", 1, 18},
    {"Slice", 1, 10},
    {"Split", 1, 13},
    {"Squeeze", 1, 13},
    {"Unsqueeze", 1, 13},
};

typedef struct convert_oldest {
    const char *type;
    int64_t since; /* version in which the operator came */
    int64_t read;  /* oldest version whose form is read */
} convert_oldest;

/* Operators that are not here are read from version 1 on. Before version 6 many had an attribute consumed_inputs, before
 * version 7 broadcasting was asked for by attributes. */
static const convert_oldest convert_oldests[] = {
    {"Abs", 1, 6},
    {"Acos", 7, 7},
    {"Acosh", 9, 9},
    {"Add", 1, 7},
    {"And", 1, 7},
    {"Asin", 7, 7},
    {"Asinh", 9, 9},
    {"Atan", 7, 7},
    {"Atanh", 9, 9},
    {"BatchNormalization", 1, 9},
    {"BitCast", 26, 26},
    {"BitShift", 11, 11},
    {"BitwiseAnd", 18, 18},
    {"BitwiseNot", 18, 18},
    {"BitwiseOr", 18, 18},
    {"BitwiseXor", 18, 18},
    {"Cast", 1, 6},
    {"CastLike", 15, 15},
    {"Ceil", 1, 6},
    {"Celu", 12, 12},
    {"Clip", 1, 6},
    {"Compress", 9, 9},
    {"Concat", 1, 4},
    {"ConcatFromSequence", 11, 11},
    {"ConstantOfShape", 9, 9},
    {"Cos", 7, 7},
    {"Cosh", 9, 9},
    {"CumProd", 26, 26},
    {"CumSum", 11, 11},
    {"Div", 1, 7},
    {"Elu", 1, 6},
    {"Equal", 1, 7},
    {"Erf", 9, 9},
    {"Exp", 1, 6},
    {"Expand", 8, 8},
    {"EyeLike", 9, 9},
    {"Floor", 1, 6},
    {"GatherElements", 11, 11},
    {"GatherND", 11, 11},
    {"Gelu", 20, 20},
    {"Gemm", 1, 7},
    {"Greater", 1, 7},
    {"GreaterOrEqual", 12, 12},
    {"GroupNormalization", 18, 21},
    {"HardSigmoid", 1, 6},
    {"HardSwish", 14, 14},
    {"InstanceNormalization", 1, 6},
    {"IsInf", 10, 10},
    {"IsNaN", 9, 9},
    {"LSTM", 1, 7},
    {"LayerNormalization", 17, 17},
    {"LeakyRelu", 1, 6},
    {"Less", 1, 7},
    {"LessOrEqual", 12, 12},
    {"Log", 1, 6},
    {"LpPool", 1, 2},
    {"Max", 1, 6},
    {"Mean", 1, 6},
    {"Min", 1, 6},
    {"Mish", 18, 18},
    {"Mod", 10, 10},
    {"Mul", 1, 7},
    {"Neg", 1, 6},
    {"NegativeLogLikelihoodLoss", 12, 12},
    {"NonMaxSuppression", 10, 10},
    {"NonZero", 9, 9},
    {"OneHot", 9, 11},
    {"Optional", 15, 15},
    {"OptionalGetElement", 15, 15},
    {"OptionalHasElement", 15, 15},
    {"Or", 1, 7},
    {"PRelu", 1, 7},
    {"Pad", 1, 2},
    {"Pow", 1, 7},
    {"RMSNormalization", 23, 23},
    {"Range", 11, 11},
    {"Reciprocal", 1, 6},
    {"Relu", 1, 6},
    {"Reshape", 1, 5},
    {"Round", 11, 11},
    {"Scan", 8, 9},
    {"ScatterElements", 11, 11},
    {"ScatterND", 11, 11},
    {"Selu", 1, 6},
    {"SequenceAt", 11, 11},
    {"SequenceConstruct", 11, 11},
    {"SequenceEmpty", 11, 11},
    {"SequenceErase", 11, 11},
    {"SequenceInsert", 11, 11},
    {"SequenceLength", 11, 11},
    {"SequenceMap", 17, 17},
    {"Shrink", 9, 9},
    {"Sigmoid", 1, 6},
    {"Sign", 9, 9},
    {"Sin", 7, 7},
    {"Sinh", 9, 9},
    {"SoftmaxCrossEntropyLoss", 12, 12},
    {"Split", 1, 2},
    {"SplitToSequence", 11, 11},
    {"Sqrt", 1, 6},
    {"Sub", 1, 7},
    {"Sum", 1, 6},
    {"Swish", 24, 24},
    {"Tan", 7, 7},
    {"Tanh", 1, 6},
    {"ThresholdedRelu", 10, 10},
    {"Tile", 1, 6},
    {"TopK", 1, 10},
    {"Trilu", 14, 14},
    {"Unique", 11, 11},
    {"Where", 9, 9},
    {"Xor", 1, 7},
};

typedef struct convert_rule {
    const char *type;
    int64_t until; /* for versions before this one */
    rondo__onnx_converter convert;
} convert_rule;

static const convert_rule convert_rules[] = {
    {"Clip", 11, rondo__onnx_convert_clip},
    {"Hardmax", 13, rondo__onnx_convert_softmax},
    {"If", CONVERT_ALWAYS, rondo__onnx_convert_if},
    {"LogSoftmax", 13, rondo__onnx_convert_softmax},
    {"Pad", 11, rondo__onnx_convert_pad},
    {"ReduceL1", 18, rondo__onnx_convert_axes},
    {"ReduceL2", 18, rondo__onnx_convert_axes},
    {"ReduceLogSum", 18, rondo__onnx_convert_axes},
    {"ReduceLogSumExp", 18, rondo__onnx_convert_axes},
    {"ReduceMax", 18, rondo__onnx_convert_axes},
    {"ReduceMean", 18, rondo__onnx_convert_axes},
    {"ReduceMin", 18, rondo__onnx_convert_axes},
    {"ReduceProd", 18, rondo__onnx_convert_axes},
    {"ReduceSum", 13, rondo__onnx_convert_axes},
    {"ReduceSumSquare", 18, rondo__onnx_convert_axes},
    {"Slice", 10, rondo__onnx_convert_slice},
    {"Softmax", 13, rondo__onnx_convert_softmax},
    {"Split", 18, rondo__onnx_convert_split},
    {"Squeeze", 13, rondo__onnx_convert_axes},
    {"Unsqueeze", 13, rondo__onnx_convert_axes},
};

static rondo_status convert_check_attribute(rondo__onnx_node *node, const rondo_attribute *attribute) {
    if (strncmp(attribute->name, "rondo.", 6) == 0)
        return RONDO__FAIL(CORRUPT, FILE, "node %s: attribute '%.100s' is not one of ONNX's", rondo__onnx_label(node),
                           attribute->name);
    for (size_t i = 0; i < sizeof convert_attributes / sizeof *convert_attributes; i++) {
        const convert_attribute *rule = &convert_attributes[i];
        if (strcmp(rule->type, node->operator_name) != 0 || strcmp(rule->attribute, attribute->name) != 0) continue;
        if (node->version >= rule->since && node->version < rule->until) return RONDO_OK;
        bool late = node->version >= rule->until;
        return RONDO__FAIL(
            CORRUPT, FILE, "node %s has attribute '%s', which version %lld of the operator %s %lld%s",
            rondo__onnx_label(node), attribute->name, (long long)node->version,
            late ? "no longer has: it was dropped in version" : "does not have yet: it came with version",
            (long long)(late ? rule->until : rule->since), late ? ", where an input took its place" : "");
    }
    return RONDO_OK;
}

static rondo_status convert_check_age(rondo__onnx_node *node) {
    for (size_t i = 0; i < sizeof convert_oldests / sizeof *convert_oldests; i++) {
        const convert_oldest *rule = &convert_oldests[i];
        if (node->version >= rule->read || strcmp(rule->type, node->operator_name) != 0) continue;
        if (node->version < rule->since)
            return RONDO__FAIL(CORRUPT, FILE,
                               "node %s: the operator came with version %lld, the model is of version %lld",
                               rondo__onnx_label(node), (long long)rule->since, (long long)node->version);
        return rondo__onnx_refuse(node, "a form of it that is older than what is read");
    }
    return RONDO_OK;
}

static rondo_status convert_check(rondo__onnx_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++)
        RONDO__TRY(convert_check_attribute(node, &node->attributes[i]));
    for (size_t i = 0; i < sizeof convert_input_counts / sizeof *convert_input_counts; i++) {
        const convert_inputs *rule = &convert_input_counts[i];
        if (node->version >= rule->until || node->input_count <= rule->count) continue;
        if (strcmp(rule->type, node->operator_name) == 0)
            return RONDO__FAIL(CORRUPT, FILE, "node %s has %u inputs, but version %lld of the operator has at most %u",
                               rondo__onnx_label(node), node->input_count, (long long)node->version, rule->count);
    }
    return RONDO_OK;
}

rondo_status rondo__onnx_convert(rondo__onnx_node *node) {
    if (node->refused || node->domain.size) return RONDO_OK;
    RONDO__TRY(convert_check_age(node));
    if (node->refused) return RONDO_OK;
    RONDO__TRY(convert_check(node));
    for (size_t i = 0; i < sizeof convert_rules / sizeof *convert_rules; i++) {
        const convert_rule *rule = &convert_rules[i];
        if (node->version < rule->until && strcmp(rule->type, node->operator_name) == 0) return rule->convert(node);
    }
    return RONDO_OK;
}
