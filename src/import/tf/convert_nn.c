/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution, pooling, bias and normalisation: operators with channels, which the prototypes have in second place. */
#include <string.h>

#include "import/tf/tf.h"

/* Where the channels are: last (NHWC), or second (NCHW). */
static rondo_status tf_nn_format(rondo__tf_node *node, bool *out_last) {
    const char *format = "NHWC";
    RONDO__TRY(rondo__tf_attr_text(node, "data_format", &format));
    *out_last = strcmp(format, "NHWC") == 0;
    if (*out_last || strcmp(format, "NCHW") == 0) return RONDO_OK;
    return rondo__tf_refuse(node, "a data_format that is neither NHWC nor NCHW");
}

/* The input with its channels second, and the output in the same place. */
static rondo_status tf_nn_take(rondo__tf_node *node, bool last, rondo_ir_value *out) {
    return last ? rondo__tf_take_moved(node, 0, out) : rondo__tf_take(node, 0, out);
}

static rondo_status tf_nn_end(rondo__tf_node *node, bool last, const char *operator_name, const rondo_ir_value *inputs,
                              uint32_t input_count, const rondo_attribute *attributes, uint32_t attribute_count) {
    rondo_ir_value value;
    node->outputs[0].rank = 4;
    if (!last) {
        /* There may be further outputs, which are not made. */
        const uint32_t outputs = node->output_count;
        node->output_count = 1;
        rondo_status status = rondo__tf_end(node, operator_name, inputs, input_count, attributes, attribute_count);
        node->output_count = outputs;
        return status;
    }
    RONDO__TRY(rondo__tf_step(node, operator_name, inputs, input_count, attributes, attribute_count, &value));
    rondo__tf_end_moved(node, value);
    return RONDO_OK;
}

/* Rank 4 or unknown, which then is 4: the operator takes nothing else. */
static rondo_status tf_nn_four(rondo__tf_node *node, uint32_t input) {
    rondo__tf_value *value = rondo__tf_value_at(node, input);
    if (value->rank < 0) value->rank = 4;
    if (value->rank == 4) return RONDO_OK;
    return RONDO__TF_CORRUPT(node, "input %u has %d axes; the operator takes 4", input, value->rank);
}

typedef struct tf_nn_window {
    bool last;
    int64_t strides[2], dilations[2], kernel[2], pads[4];
    const char *auto_pad;
} tf_nn_window;

/* A list of four, of which those of batch and channel must be 1. */
static rondo_status tf_nn_pair(rondo__tf_node *node, const char *key, bool last, int64_t out[2]) {
    int64_t values[4] = {1, 1, 1, 1};
    uint32_t count = 4;
    RONDO__TRY(rondo__tf_attr_ints(node, key, 4, values, &count));
    if (count != 4) return RONDO__TF_CORRUPT(node, "attribute '%s' has %u numbers, not 4", key, count);
    const uint32_t first = last ? 1 : 2;
    out[0] = values[first];
    out[1] = values[first + 1];
    if (values[0] != 1 || values[last ? 3 : 1] != 1)
        return rondo__tf_refuse(node, "a window that goes over batch or channels");
    return RONDO_OK;
}

static rondo_status tf_nn_padding(rondo__tf_node *node, tf_nn_window *window) {
    const char *padding = "";
    RONDO__TRY(rondo__tf_attr_text(node, "padding", &padding));
    if (strcmp(padding, "SAME") == 0) window->auto_pad = "SAME_UPPER";
    else if (strcmp(padding, "VALID") == 0) window->auto_pad = "VALID";
    else if (strcmp(padding, "EXPLICIT") != 0) return RONDO__TF_CORRUPT(node, "there is no padding '%.60s'", padding);
    if (window->auto_pad) return RONDO_OK;
    int64_t pads[8] = {0};
    uint32_t count = 0;
    RONDO__TRY(rondo__tf_attr_ints(node, "explicit_paddings", 8, pads, &count));
    if (count != 8) return RONDO__TF_CORRUPT(node, "attribute 'explicit_paddings' has %u numbers, not 8", count);
    const uint32_t first = window->last ? 2 : 4, channel = window->last ? 6 : 2;
    if (pads[0] || pads[1] || pads[channel] || pads[channel + 1])
        return rondo__tf_refuse(node, "padding of batch or channels");
    for (uint32_t i = 0; i < 2; i++) {
        window->pads[i] = pads[first + 2 * i];
        window->pads[2 + i] = pads[first + 2 * i + 1];
    }
    return RONDO_OK;
}

static rondo_status tf_nn_window_read(rondo__tf_node *node, tf_nn_window *window) {
    *window = (tf_nn_window){.dilations = {1, 1}};
    RONDO__TRY(tf_nn_format(node, &window->last));
    RONDO__TRY(tf_nn_four(node, 0));
    if (!node->refused) RONDO__TRY(tf_nn_pair(node, "strides", window->last, window->strides));
    if (!node->refused) RONDO__TRY(tf_nn_padding(node, window));
    return RONDO_OK;
}

static uint32_t tf_nn_window_attributes(const tf_nn_window *window, rondo_attribute *attributes) {
    attributes[0] = rondo__tf_ints("strides", window->strides, 2);
    attributes[1] = window->auto_pad ? rondo__tf_text("auto_pad", window->auto_pad, strlen(window->auto_pad))
                                     : rondo__tf_ints("pads", window->pads, 4);
    return 2;
}

/* The filter has height, width, channels and outputs; the prototype's begins with the outputs. */
rondo_status rondo__tf_convert_conv(rondo__tf_node *node) {
    static const int64_t filter[] = {3, 2, 0, 1};
    tf_nn_window window;
    rondo_ir_value x[2];
    rondo_attribute attributes[3];
    RONDO__TRY(tf_nn_window_read(node, &window));
    if (!node->refused) RONDO__TRY(tf_nn_pair(node, "dilations", window.last, window.dilations));
    if (node->refused) return RONDO_OK;
    RONDO__TRY(tf_nn_take(node, window.last, &x[0]));
    RONDO__TRY(rondo__tf_take(node, 1, &x[1]));
    RONDO__TRY(rondo__tf_transpose(node, x[1], filter, 4, &x[1]));
    uint32_t count = tf_nn_window_attributes(&window, attributes);
    attributes[count++] = rondo__tf_ints("dilations", window.dilations, 2);
    return tf_nn_end(node, window.last, "Conv", x, 2, attributes, count);
}

/* The filter has height, width, channels and outputs a channel: a group a channel. */
rondo_status rondo__tf_convert_depthwise(rondo__tf_node *node) {
    static const int64_t filter[] = {2, 3, 0, 1};
    tf_nn_window window;
    rondo_ir_value x[2], shape[2];
    rondo_attribute attributes[4];
    RONDO__TRY(tf_nn_window_read(node, &window));
    if (!node->refused) RONDO__TRY(tf_nn_pair(node, "dilations", window.last, window.dilations));
    if (node->refused) return RONDO_OK;
    const rondo__ir_constant *weights = rondo__tf_constant_at(node, 1);
    if (!weights) return rondo__tf_refuse(node, "a filter that is not a constant");
    if (weights->rank != 4) return RONDO__TF_CORRUPT(node, "a filter of %d axes", weights->rank);
    const int64_t sizes[4] = {-1, 1, weights->dims[0], weights->dims[1]};
    RONDO__TRY(tf_nn_take(node, window.last, &x[0]));
    RONDO__TRY(rondo__tf_take(node, 1, &shape[0]));
    RONDO__TRY(rondo__tf_transpose(node, shape[0], filter, 4, &shape[0]));
    RONDO__TRY(rondo__tf_list(node, sizes, 4, &shape[1]));
    RONDO__TRY(rondo__tf_step(node, "Reshape", shape, 2, NULL, 0, &x[1]));
    uint32_t count = tf_nn_window_attributes(&window, attributes);
    attributes[count++] = rondo__tf_ints("dilations", window.dilations, 2);
    attributes[count++] = rondo__tf_int("group", weights->dims[2]);
    return tf_nn_end(node, window.last, "Conv", x, 2, attributes, count);
}

rondo_status rondo__tf_convert_pool(rondo__tf_node *node) {
    tf_nn_window window;
    rondo_ir_value x;
    rondo_attribute attributes[3];
    RONDO__TRY(tf_nn_window_read(node, &window));
    if (!node->refused) RONDO__TRY(tf_nn_pair(node, "ksize", window.last, window.kernel));
    if (node->refused) return RONDO_OK;
    RONDO__TRY(tf_nn_take(node, window.last, &x));
    uint32_t count = tf_nn_window_attributes(&window, attributes);
    attributes[count++] = rondo__tf_ints("kernel_shape", window.kernel, 2);
    return tf_nn_end(node, window.last, node->row->operator_name, &x, 1, attributes, count);
}

/* A number a channel, which is the last axis, or with NCHW the second. */
rondo_status rondo__tf_convert_bias(rondo__tf_node *node) {
    rondo_ir_value x[2];
    bool last, moved;
    RONDO__TRY(tf_nn_format(node, &last));
    if (node->refused) return RONDO_OK;
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    rondo__tf_value_at(node, 1)->rank = 1;
    if (last) {
        RONDO__TRY(rondo__tf_take_alike(node, x, &moved));
        return rondo__tf_end_alike(node, moved, "Add", x, 2, NULL, 0);
    }
    if (rank < 2) return rondo__tf_refuse(node, "NCHW and an input of unknown rank");
    int64_t axes[RONDO_RANK_MAX];
    for (int32_t i = 2; i < rank; i++) axes[i - 2] = i - 1;
    for (uint32_t i = 0; i < 2; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", x[1], axes, (uint32_t)rank - 2u, &x[1]));
    return rondo__tf_end(node, "Add", x, 2, NULL, 0);
}

rondo_status rondo__tf_convert_batch_norm(rondo__tf_node *node) {
    rondo_ir_value x[5];
    bool last, training = true;
    float epsilon = 0.0001f;
    RONDO__TRY(tf_nn_format(node, &last));
    RONDO__TRY(tf_nn_four(node, 0));
    RONDO__TRY(rondo__tf_attr_bool(node, "is_training", &training));
    RONDO__TRY(rondo__tf_attr_float(node, "epsilon", &epsilon));
    if (node->refused) return RONDO_OK;
    if (training) return rondo__tf_refuse(node, "is_training: freeze the graph for inference");
    RONDO__TRY(tf_nn_take(node, last, &x[0]));
    for (uint32_t i = 1; i < 5; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    const rondo_attribute attribute = rondo__tf_float("epsilon", epsilon);
    return tf_nn_end(node, last, "BatchNormalization", x, 5, &attribute, 1);
}

/* The prototype divides alpha by the number of channels that it looks at. */
rondo_status rondo__tf_convert_lrn(rondo__tf_node *node) {
    rondo_ir_value x;
    int64_t radius = 5;
    float bias = 1, alpha = 1, beta = 0.5f;
    RONDO__TRY(tf_nn_four(node, 0));
    RONDO__TRY(rondo__tf_attr_int(node, "depth_radius", &radius));
    RONDO__TRY(rondo__tf_attr_float(node, "bias", &bias));
    RONDO__TRY(rondo__tf_attr_float(node, "alpha", &alpha));
    RONDO__TRY(rondo__tf_attr_float(node, "beta", &beta));
    if (radius < 0 || radius > 1 << 20) return RONDO__TF_CORRUPT(node, "depth_radius is %lld", (long long)radius);
    const int64_t size = 2 * radius + 1;
    const rondo_attribute attributes[] = {rondo__tf_int("size", size), rondo__tf_float("bias", bias),
                                          rondo__tf_float("alpha", alpha * (float)size), rondo__tf_float("beta", beta)};
    RONDO__TRY(rondo__tf_take_moved(node, 0, &x));
    return tf_nn_end(node, true, "LRN", &x, 1, attributes, 4);
}

/* ----------------------------------------------------------------------------------------------- depth and space */

static rondo_status tf_nn_block(rondo__tf_node *node, int64_t *out_size) {
    bool last;
    *out_size = 0;
    RONDO__TRY(tf_nn_format(node, &last));
    RONDO__TRY(tf_nn_four(node, 0));
    RONDO__TRY(rondo__tf_attr_int(node, "block_size", out_size));
    if (*out_size < 1 || *out_size > 1 << 20)
        return RONDO__TF_CORRUPT(node, "block_size is %lld", (long long)*out_size);
    return node->refused || last ? RONDO_OK : rondo__tf_refuse(node, "data_format NCHW");
}

/* Axes first .. end of the input's shape, times or divided by a number. */
static rondo_status tf_nn_sizes(rondo__tf_node *node, rondo_ir_value input, int64_t first, int64_t end, const char *by,
                                int64_t number, rondo_ir_value *out) {
    const rondo_attribute part[2] = {rondo__tf_int("start", first), rondo__tf_int("end", end)};
    rondo_ir_value x[2];
    RONDO__TRY(rondo__tf_step(node, "Shape", &input, 1, part, 2, &x[0]));
    *out = x[0];
    if (number == 1) return RONDO_OK;
    RONDO__TRY(rondo__tf_list(node, &number, 1, &x[1]));
    return rondo__tf_step(node, by, x, 2, NULL, 0, out);
}

static rondo_status tf_nn_reshape(rondo__tf_node *node, rondo_ir_value value, const rondo_ir_value *parts,
                                  uint32_t count, bool end, rondo_ir_value *out) {
    const rondo_attribute axis = rondo__tf_int("axis", 0);
    rondo_ir_value x[2] = {value, RONDO_IR_NONE};
    RONDO__TRY(rondo__tf_step(node, "Concat", parts, count, &axis, 1, &x[1]));
    if (end) return rondo__tf_end(node, "Reshape", x, 2, NULL, 0);
    return rondo__tf_step(node, "Reshape", x, 2, NULL, 0, out);
}

rondo_status rondo__tf_convert_depth_to_space(rondo__tf_node *node) {
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5}, all = -1;
    int64_t size;
    rondo_ir_value x, shape[2], parts[3];
    RONDO__TRY(tf_nn_block(node, &size));
    if (node->refused) return RONDO_OK;
    const int64_t cut[6] = {0, 0, 0, size, size, -1}; /* 0: as it is */
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    shape[0] = x;
    RONDO__TRY(rondo__tf_list(node, cut, 6, &shape[1]));
    RONDO__TRY(rondo__tf_step(node, "Reshape", shape, 2, NULL, 0, &shape[0]));
    RONDO__TRY(rondo__tf_transpose(node, shape[0], perm, 6, &shape[0]));
    RONDO__TRY(tf_nn_sizes(node, x, 0, 1, NULL, 1, &parts[0]));
    RONDO__TRY(tf_nn_sizes(node, x, 1, 3, "Mul", size, &parts[1]));
    RONDO__TRY(rondo__tf_list(node, &all, 1, &parts[2]));
    node->outputs[0].rank = 4;
    return tf_nn_reshape(node, shape[0], parts, 3, true, NULL);
}

rondo_status rondo__tf_convert_space_to_depth(rondo__tf_node *node) {
    static const int64_t perm[] = {0, 1, 3, 2, 4, 5}, all = -1;
    int64_t size;
    rondo_ir_value x, parts[6], block, cut;
    RONDO__TRY(tf_nn_block(node, &size));
    if (node->refused) return RONDO_OK;
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    RONDO__TRY(rondo__tf_list(node, &size, 1, &block));
    RONDO__TRY(tf_nn_sizes(node, x, 0, 1, NULL, 1, &parts[0]));
    RONDO__TRY(tf_nn_sizes(node, x, 1, 2, "Div", size, &parts[1]));
    RONDO__TRY(tf_nn_sizes(node, x, 2, 3, "Div", size, &parts[3]));
    RONDO__TRY(rondo__tf_list(node, &all, 1, &parts[5]));
    parts[2] = parts[4] = block;
    RONDO__TRY(tf_nn_reshape(node, x, parts, 6, false, &cut));
    RONDO__TRY(rondo__tf_transpose(node, cut, perm, 6, &cut));
    parts[2] = parts[3];
    parts[3] = parts[5];
    node->outputs[0].rank = 4;
    return tf_nn_reshape(node, cut, parts, 4, true, NULL);
}
