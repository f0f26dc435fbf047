/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that pick by place: slices, gathers, the largest, one-hot. */
#include <string.h>

#include "import/tf/tf.h"

static const int64_t tf_index_last = -1;

/* ------------------------------------------------------------------------------------------------------- slices */

/* Four lists of one length: starts, ends, axes, steps. */
static rondo_status tf_index_slice(rondo__tf_node *node, rondo_ir_value value, const rondo_ir_value bounds[2],
                                   const int64_t *axes, const int64_t *steps, uint32_t count, rondo_ir_value *out) {
    rondo_ir_value x[5] = {value, bounds[0], bounds[1], RONDO_IR_NONE, RONDO_IR_NONE};
    RONDO__TRY(rondo__tf_list(node, axes, count, &x[3]));
    RONDO__TRY(rondo__tf_list(node, steps, count, &x[4]));
    return rondo__tf_step(node, "Slice", x, 5, NULL, 0, out);
}

static rondo_status tf_index_do(rondo__tf_node *node, const char *operator_name, rondo_ir_value a, rondo_ir_value b,
                                rondo_ir_value *out) {
    const rondo_ir_value x[2] = {a, b};
    return rondo__tf_step(node, operator_name, x, 2, NULL, 0, out);
}

static rondo_status tf_index_where(rondo__tf_node *node, rondo_ir_value condition, rondo_ir_value yes,
                                   rondo_ir_value no, rondo_ir_value *out) {
    const rondo_ir_value x[3] = {condition, yes, no};
    return rondo__tf_step(node, "Where", x, 3, NULL, 0, out);
}

/* yes where the numbers are `number`. */
static rondo_status tf_index_where_is(rondo__tf_node *node, rondo_ir_value numbers, int64_t number, int64_t yes,
                                      rondo_ir_value no, rondo_ir_value *out) {
    rondo_ir_value is, chosen;
    RONDO__TRY(rondo__tf_list(node, &number, 1, &is));
    RONDO__TRY(rondo__tf_list(node, &yes, 1, &chosen));
    RONDO__TRY(tf_index_do(node, "Equal", numbers, is, &is));
    return tf_index_where(node, is, chosen, no, out);
}

/* A size of -1 reaches to the end. */
rondo_status rondo__tf_convert_slice(rondo__tf_node *node) {
    rondo_ir_value x[3], size;
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    RONDO__TRY(rondo__tf_take_list(node, 2, &size));
    RONDO__TRY(tf_index_do(node, "Add", x[1], size, &x[2]));
    RONDO__TRY(tf_index_where_is(node, size, -1, INT64_MAX, x[2], &x[2]));
    return rondo__tf_end(node, "Slice", x, 3, NULL, 0);
}

typedef struct tf_index_spec {
    int64_t begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask;
    int64_t begins[RONDO_RANK_MAX], ends[RONDO_RANK_MAX], strides[RONDO_RANK_MAX];
    uint32_t count; /* of what is written between the brackets */
    bool known;     /* begins and ends */
    /* What becomes of it: cuts of axes, then axes that go, then axes that come. */
    int64_t axes[RONDO_RANK_MAX], steps[RONDO_RANK_MAX], rows[RONDO_RANK_MAX];
    int64_t gone[RONDO_RANK_MAX], come[RONDO_RANK_MAX];
    uint32_t cuts, gone_count, come_count;
} tf_index_spec;

static bool tf_index_bit(int64_t mask, uint32_t bit) { return mask >> bit & 1; }

static rondo_status tf_index_read(rondo__tf_node *node, tf_index_spec *spec) {
    static const char *const keys[] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
    int64_t *const masks[] = {&spec->begin_mask, &spec->end_mask, &spec->ellipsis_mask, &spec->new_mask,
                              &spec->shrink_mask};
    uint32_t begins, ends;
    for (uint32_t i = 0; i < 5; i++) {
        RONDO__TRY(rondo__tf_attr_int(node, keys[i], masks[i]));
        if (*masks[i] < 0 || *masks[i] > UINT16_MAX)
            return RONDO__TF_CORRUPT(node, "attribute '%s' is %lld", keys[i], (long long)*masks[i]);
    }
    if (spec->ellipsis_mask & (spec->ellipsis_mask - 1)) return RONDO__TF_CORRUPT(node, "more than one ellipsis");
    RONDO__TRY(rondo__tf_take_ints(node, 3, "strides that are not constants", spec->strides, &spec->count));
    if (node->refused) return RONDO_OK;
    spec->known = rondo__tf_constant_at(node, 1) && rondo__tf_constant_at(node, 2);
    if (!spec->known) return RONDO_OK;
    RONDO__TRY(rondo__tf_take_ints(node, 1, NULL, spec->begins, &begins));
    RONDO__TRY(rondo__tf_take_ints(node, 2, NULL, spec->ends, &ends));
    if (begins == spec->count && ends == spec->count) return RONDO_OK;
    return RONDO__TF_CORRUPT(node, "begin, end and strides have %u, %u and %u numbers", begins, ends, spec->count);
}

/* Axes behind the ellipsis are counted from the end, so that the input's rank need not be known. */
static rondo_status tf_index_plan(rondo__tf_node *node, tf_index_spec *spec) {
    uint32_t in_behind = 0, out_behind = 0; /* axes still to come, of the input and of the output */
    uint32_t in = 0, out = 0;
    bool behind = false;
    for (uint32_t i = 0; i < spec->count; i++) {
        if (tf_index_bit(spec->ellipsis_mask, i)) continue;
        const bool new = tf_index_bit(spec->new_mask, i);
        in_behind += !new;
        out_behind += new || !tf_index_bit(spec->shrink_mask, i);
    }
    for (uint32_t i = 0; i < spec->count; i++) {
        if (tf_index_bit(spec->ellipsis_mask, i)) {
            behind = true;
            continue;
        }
        const bool new = tf_index_bit(spec->new_mask, i), shrinks = !new &&tf_index_bit(spec->shrink_mask, i);
        const int64_t axis = behind ? -(int64_t)in_behind : in, place = behind ? -(int64_t)out_behind : out;
        in += !new;
        in_behind -= !new;
        out += !shrinks;
        out_behind -= !shrinks;
        if (new) {
            spec->come[spec->come_count++] = place;
            continue;
        }
        if (!spec->strides[i]) return RONDO__TF_CORRUPT(node, "a stride of 0");
        if (shrinks && spec->strides[i] < 0) return RONDO__TF_CORRUPT(node, "one element at a negative stride");
        if (shrinks) spec->gone[spec->gone_count++] = axis;
        spec->axes[spec->cuts] = axis;
        spec->steps[spec->cuts] = shrinks ? 1 : spec->strides[i];
        spec->rows[spec->cuts++] = i;
    }
    return RONDO_OK;
}

static int64_t tf_index_open(const tf_index_spec *spec, uint32_t row, bool end) {
    const bool down = spec->strides[row] < 0;
    return end ? (down ? INT64_MIN : INT64_MAX) : (down ? INT64_MAX : 0);
}

static rondo_status tf_index_bounds_known(rondo__tf_node *node, const tf_index_spec *spec, rondo_ir_value bounds[2]) {
    int64_t starts[RONDO_RANK_MAX], ends[RONDO_RANK_MAX];
    for (uint32_t c = 0; c < spec->cuts; c++) {
        const uint32_t row = (uint32_t)spec->rows[c];
        const int64_t begin = spec->begins[row];
        const bool shrinks = tf_index_bit(spec->shrink_mask, row);
        starts[c] = !shrinks && tf_index_bit(spec->begin_mask, row) ? tf_index_open(spec, row, false) : begin;
        ends[c] = tf_index_bit(spec->end_mask, row) ? tf_index_open(spec, row, true) : spec->ends[row];
        if (shrinks) ends[c] = begin == -1 || begin == INT64_MAX ? INT64_MAX : begin + 1;
    }
    RONDO__TRY(rondo__tf_list(node, starts, spec->cuts, &bounds[0]));
    return rondo__tf_list(node, ends, spec->cuts, &bounds[1]);
}

/* The same with bounds that the graph computes: what the masks say is chosen element by element. */
static rondo_status tf_index_bounds_computed(rondo__tf_node *node, const tf_index_spec *spec,
                                             rondo_ir_value bounds[2]) {
    const int64_t count = spec->cuts;
    const rondo_attribute axis = rondo__tf_int("axis", 0);
    rondo_ir_value rows, one, next;
    RONDO__TRY(rondo__tf_list(node, spec->rows, spec->cuts, &rows));
    for (uint32_t end = 0; end < 2; end++) {
        rondo_ir_value x[2] = {RONDO_IR_NONE, rows};
        RONDO__TRY(rondo__tf_take_list(node, 1 + end, &x[0]));
        RONDO__TRY(rondo__tf_step(node, "Gather", x, 2, &axis, 1, &bounds[end]));
    }
    RONDO__TRY(rondo__tf_list(node, &(const int64_t){1}, 1, &one));
    RONDO__TRY(tf_index_do(node, "Add", bounds[0], one, &next));
    RONDO__TRY(tf_index_where_is(node, bounds[0], -1, INT64_MAX, next, &next));
    for (uint32_t end = 0; end < 2; end++) {
        uint8_t open[RONDO_RANK_MAX], shrinks[RONDO_RANK_MAX];
        int64_t outermost[RONDO_RANK_MAX];
        rondo_ir_value mask, reach;
        for (uint32_t c = 0; c < spec->cuts; c++) {
            const uint32_t row = (uint32_t)spec->rows[c];
            shrinks[c] = tf_index_bit(spec->shrink_mask, row);
            open[c] = !shrinks[c] && tf_index_bit(end ? spec->end_mask : spec->begin_mask, row);
            outermost[c] = tf_index_open(spec, row, end);
        }
        rondo_ir_graph *graph = node->context->graph;
        RONDO__TRY(rondo__ir_constant_add(graph, NULL, node->name, RONDO_DTYPE_BOOL, 1, &count, open, &mask));
        RONDO__TRY(rondo__tf_list(node, outermost, spec->cuts, &reach));
        RONDO__TRY(tf_index_where(node, mask, reach, bounds[end], &bounds[end]));
        if (!end) continue;
        RONDO__TRY(rondo__ir_constant_add(graph, NULL, node->name, RONDO_DTYPE_BOOL, 1, &count, shrinks, &mask));
        RONDO__TRY(tf_index_where(node, mask, next, bounds[1], &bounds[1]));
    }
    return RONDO_OK;
}

rondo_status rondo__tf_convert_strided_slice(rondo__tf_node *node) {
    tf_index_spec spec = {0};
    rondo_ir_value x, bounds[2];
    RONDO__TRY(tf_index_read(node, &spec));
    if (node->refused) return RONDO_OK;
    RONDO__TRY(tf_index_plan(node, &spec));
    RONDO__TRY(rondo__tf_take(node, 0, &x));
    if (spec.cuts) {
        RONDO__TRY(spec.known ? tf_index_bounds_known(node, &spec, bounds)
                              : tf_index_bounds_computed(node, &spec, bounds));
        RONDO__TRY(tf_index_slice(node, x, bounds, spec.axes, spec.steps, spec.cuts, &x));
    }
    RONDO__TRY(rondo__tf_axes(node, "Squeeze", x, spec.gone, spec.gone_count, &x));
    RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", x, spec.come, spec.come_count, &x));
    const int32_t rank = rondo__tf_value_at(node, 0)->rank;
    if (rank >= (int32_t)spec.gone_count)
        node->outputs[0].rank = rank - (int32_t)spec.gone_count + (int32_t)spec.come_count;
    if (node->outputs[0].rank > RONDO_RANK_MAX) return RONDO__TF_CORRUPT(node, "its result has too many axes");
    rondo__tf_alias(node, 0, x);
    return RONDO_OK;
}

rondo_status rondo__tf_convert_reverse(rondo__tf_node *node) {
    int64_t axes[RONDO_RANK_MAX], starts[RONDO_RANK_MAX], ends[RONDO_RANK_MAX], steps[RONDO_RANK_MAX];
    uint32_t count;
    rondo_ir_value x[5];
    RONDO__TRY(rondo__tf_take_ints(node, 1, "axes that are not constants", axes, &count));
    if (node->refused) return RONDO_OK;
    if (!count) return rondo__tf_convert_same(node);
    for (uint32_t i = 0; i < count; i++) {
        starts[i] = steps[i] = -1;
        ends[i] = INT64_MIN;
    }
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(rondo__tf_list(node, starts, count, &x[1]));
    RONDO__TRY(rondo__tf_list(node, ends, count, &x[2]));
    RONDO__TRY(rondo__tf_list(node, axes, count, &x[3]));
    RONDO__TRY(rondo__tf_list(node, steps, count, &x[4]));
    return rondo__tf_end(node, "Slice", x, 5, NULL, 0);
}

/* ------------------------------------------------------------------------------------------------------ gathers */

static rondo_status tf_index_wide(rondo__tf_node *node, uint32_t input, rondo_ir_value *out) {
    RONDO__TRY(rondo__tf_take(node, input, out));
    return rondo__tf_cast(node, *out, rondo__tf_value_at(node, input)->dtype, RONDO_DTYPE_I64, out);
}

rondo_status rondo__tf_convert_gather(rondo__tf_node *node) {
    rondo_ir_value x[2];
    int64_t axis = 0, batch = 0;
    RONDO__TRY(rondo__tf_attr_int(node, "batch_dims", &batch));
    if (node->input_count > 2) RONDO__TRY(rondo__tf_take_int(node, 2, "an axis that is not a constant", &axis));
    if (node->refused) return RONDO_OK;
    const int32_t data = rondo__tf_value_at(node, 0)->rank, places = rondo__tf_value_at(node, 1)->rank;
    if (axis < 0 && data >= 0) axis += data;
    if (batch < 0 && places >= 0) batch += places;
    if (batch && batch != axis) return rondo__tf_refuse(node, "batch_dims that are not all axes before the one");
    if (data >= 0 && places >= 0) node->outputs[0].rank = data + places - 1 - (int32_t)batch;
    if (node->outputs[0].rank < -1 || node->outputs[0].rank > RONDO_RANK_MAX)
        return RONDO__TF_CORRUPT(node, "its result has %d axes", node->outputs[0].rank);
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    if (!batch) {
        const rondo_attribute attribute = rondo__tf_int("axis", axis);
        RONDO__TRY(rondo__tf_take(node, 1, &x[1]));
        return rondo__tf_end(node, "Gather", x, 2, &attribute, 1);
    }
    const rondo_attribute attribute = rondo__tf_int("batch_dims", batch);
    RONDO__TRY(tf_index_wide(node, 1, &x[1]));
    RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", x[1], &tf_index_last, 1, &x[1]));
    return rondo__tf_end(node, "GatherND", x, 2, &attribute, 1);
}

rondo_status rondo__tf_convert_gather_nd(rondo__tf_node *node) {
    rondo_ir_value x[2];
    int64_t batch = 0;
    RONDO__TRY(rondo__tf_attr_int(node, "batch_dims", &batch));
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    RONDO__TRY(tf_index_wide(node, 1, &x[1]));
    const rondo_attribute attribute = rondo__tf_int("batch_dims", batch);
    return rondo__tf_end(node, "GatherND", x, 2, &attribute, 1);
}

/* Updates of one place add up. */
rondo_status rondo__tf_convert_scatter_nd(rondo__tf_node *node) {
    rondo_ir_value x[3], zeros[2];
    RONDO__TRY(rondo__tf_number(node, node->outputs[0].dtype, 0, &zeros[0]));
    RONDO__TRY(rondo__tf_take_list(node, 2, &zeros[1]));
    RONDO__TRY(rondo__tf_step(node, "Expand", zeros, 2, NULL, 0, &x[0]));
    RONDO__TRY(tf_index_wide(node, 0, &x[1]));
    RONDO__TRY(rondo__tf_take(node, 1, &x[2]));
    const rondo_attribute attribute = rondo__tf_text("reduction", "add", 3);
    return rondo__tf_end(node, "ScatterND", x, 3, &attribute, 1);
}

/* An index below 0 is no place, where the prototype counts it from the end: it is sent behind the end instead. */
rondo_status rondo__tf_convert_one_hot(rondo__tf_node *node) {
    rondo_ir_value x[3], both[2], zero, below;
    int64_t axis = -1;
    const rondo__tf_value *places = rondo__tf_value_at(node, 0);
    const rondo_attribute first = rondo__tf_int("axis", 0);
    RONDO__TRY(rondo__tf_attr_int(node, "axis", &axis));
    for (uint32_t i = 0; i < 2; i++) RONDO__TRY(rondo__tf_take(node, i, &x[i]));
    if (places->dtype != RONDO_DTYPE_U8) {
        RONDO__TRY(rondo__tf_cast(node, x[0], places->dtype, RONDO_DTYPE_I64, &x[0]));
        RONDO__TRY(rondo__tf_cast(node, x[1], RONDO_DTYPE_I32, RONDO_DTYPE_I64, &x[1]));
        RONDO__TRY(rondo__tf_number(node, RONDO_DTYPE_I64, 0, &zero));
        RONDO__TRY(tf_index_do(node, "Less", x[0], zero, &below));
        RONDO__TRY(tf_index_where(node, below, x[1], x[0], &x[0]));
    }
    for (uint32_t i = 0; i < 2; i++) { /* on, off */
        RONDO__TRY(rondo__tf_take(node, 2 + i, &both[1 - i]));
        RONDO__TRY(rondo__tf_axes(node, "Unsqueeze", both[1 - i], &(const int64_t){0}, 1, &both[1 - i]));
    }
    RONDO__TRY(rondo__tf_step(node, "Concat", both, 2, &first, 1, &x[2]));
    node->outputs[0].rank = places->rank >= 0 && places->rank < RONDO_RANK_MAX ? places->rank + 1 : -1;
    const rondo_attribute attribute = rondo__tf_int("axis", axis);
    return rondo__tf_end(node, "OneHot", x, 3, &attribute, 1);
}

rondo_status rondo__tf_convert_top_k(rondo__tf_node *node) {
    rondo_ir_value x[2], made[2];
    bool sorted = true;
    rondo_dtype dtype = RONDO_DTYPE_I32;
    int64_t k = 0;
    RONDO__TRY(rondo__tf_attr_bool(node, "sorted", &sorted));
    RONDO__TRY(rondo__tf_attr_type(node, "index_type", &dtype));
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    if (node->input_count > 1) {
        RONDO__TRY(rondo__tf_take_list(node, 1, &x[1]));
    } else { /* the old form */
        RONDO__TRY(rondo__tf_attr_int(node, "k", &k));
        RONDO__TRY(rondo__tf_list(node, &k, 1, &x[1]));
    }
    const rondo_attribute attributes[] = {rondo__tf_int("axis", -1), rondo__tf_int("largest", 1),
                                          rondo__tf_int("sorted", sorted)};
    RONDO__TRY(rondo__tf_steps(node, "TopK", x, 2, attributes, 3, made, 2));
    if (dtype != RONDO_DTYPE_I32 && dtype != RONDO_DTYPE_I64)
        return rondo__tf_refuse(node, "places that are neither int32 nor int64");
    RONDO__TRY(rondo__tf_cast(node, made[1], RONDO_DTYPE_I64, dtype, &made[1]));
    for (uint32_t i = 0; i < 2; i++) {
        rondo__tf_alias(node, i, made[i]);
        node->outputs[i].rank = rondo__tf_value_at(node, 0)->rank;
    }
    node->outputs[1].dtype = dtype;
    return RONDO_OK;
}

/* A negative number of diagonals is all of them. */
rondo_status rondo__tf_convert_band_part(rondo__tf_node *node) {
    static const char *const reason = "diagonals that are not constants";
    rondo_ir_value x[2];
    int64_t below, above;
    RONDO__TRY(rondo__tf_take_int(node, 1, reason, &below));
    if (!node->refused) RONDO__TRY(rondo__tf_take_int(node, 2, reason, &above));
    if (node->refused) return RONDO_OK;
    if (below < 0 && above < 0) return rondo__tf_convert_same(node);
    RONDO__TRY(rondo__tf_take(node, 0, &x[0]));
    for (int64_t upper = 1; upper >= 0; upper--) {
        const int64_t k = upper ? -below : above;
        const rondo_attribute attribute = rondo__tf_int("upper", upper);
        rondo_ir_value number;
        if ((upper ? below : above) < 0) continue;
        RONDO__TRY(rondo__tf_number(node, RONDO_DTYPE_I64, (double)k, &number));
        x[1] = number;
        RONDO__TRY(rondo__tf_step(node, "Trilu", x, 2, &attribute, 1, &x[0]));
    }
    rondo__tf_alias(node, 0, x[0]);
    return RONDO_OK;
}
