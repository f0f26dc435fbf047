/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose outputs are as long as the data says: NonZero, Compress, Unique, NonMaxSuppression. The request has the
 * longest that they can be, and behind the node's outputs one more, int64: there each kernel writes the dims that the
 * wanted outputs have, one after another. Their elements lie at the beginning of the memory, compact. */
#include "ref.h"

#define SIZED_TYPES (RONDO__REF_ALL_TYPES | RONDO__REF_HALF_TYPES)

static uint32_t sized_outputs(const rondo__ref_kernel *k) { return k->output_count - 1u; }

static bool sized_wanted(const rondo__ref_kernel *k, uint32_t i) {
    return i < sized_outputs(k) && k->tensors[k->input_count + i].dtype != RONDO_DTYPE_UNDEFINED;
}

/* The output for the sizes is there, and long enough. */
static rondo_status sized_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    int64_t asked = 0, total = 0;
    rondo_status status = rondo__ref_attribute_int(b, "rondo.sizes", &asked);
    if (status) return status;
    if (asked != 1) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "its sizes depend on data: it runs where somebody asks for them");
    }
    for (uint32_t i = 0; i < sized_outputs(k); i++) {
        if (sized_wanted(k, i)) total += rondo__ref_output(k, i)->rank;
    }
    const rondo__ref_tensor *sizes = rondo__ref_output(k, sized_outputs(k));
    status = rondo__ref_need_types(b, "the output for sizes", sizes, RONDO__REF_BIT(I64));
    if (!status) status = rondo__ref_need_dims(b, "the output for sizes", sizes, 1, &total);
    return status;
}

/* Where output i's dims go: behind those of the wanted outputs before it. */
static int64_t *sized_dims(const rondo__ref_kernel *k, const uint64_t *words, uint32_t i) {
    int64_t *dims = rondo__ref_address(rondo__ref_output_word(k, words, sized_outputs(k)));
    for (uint32_t before = 0; before < i; before++) {
        if (sized_wanted(k, before)) dims += k->tensors[k->input_count + before].rank;
    }
    return dims;
}

static bool sized_is_zero(rondo_dtype dtype, const void *data, int64_t i) {
    if (rondo__ref_is_real(dtype)) {
        double x = rondo__ref_get_real(dtype, data, i);
        return x >= 0 && x <= 0; /* NaN is not zero */
    }
    return rondo__ref_get_int(dtype, data, i) == 0;
}

/* ----------------------------------------------------------------------------------------------------------- NonZero */

static rondo_status sized_nonzero_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0);
    const int64_t dims[2] = {x->rank, x->count};
    rondo_status status = sized_build(b);
    if (!status) status = rondo__ref_need_types(b, "the input", x, SIZED_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the output", rondo__ref_output(k, 0), RONDO__REF_BIT(I64));
    if (!status) status = rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), 2, dims);
    return status;
}

static int32_t sized_nonzero_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *x = &k->tensors[0];
    const void *from = rondo__ref_address(words[0]);
    int64_t *to = rondo__ref_address(words[1]), *dims = sized_dims(k, words, 0);
    int64_t index[RONDO_RANK_MAX] = {0}, found = 0, at = 0;
    for (int64_t i = 0; i < x->count; i++) found += !sized_is_zero(x->dtype, from, i);
    for (int64_t i = 0; i < x->count; i++) {
        if (!sized_is_zero(x->dtype, from, i)) {
            for (int32_t d = 0; d < x->rank; d++) to[d * found + at] = index[d];
            at++;
        }
        (void)rondo__ref_next(x->rank, x->dims, index);
    }
    dims[0] = x->rank;
    dims[1] = found;
    return RONDO__REF_OK;
}

/* ---------------------------------------------------------------------------------------------------------- Compress */

/* A tensor as slices along an axis: [before, count, after]. Without an axis each element is a slice. */
typedef struct sized_slices {
    int64_t before, count, after;
} sized_slices;

static sized_slices sized_slices_of(const rondo__ref_tensor *t, int64_t axis) {
    sized_slices s = {1, t->count, 1};
    if (axis < 0) return s;
    s.count = t->dims[axis];
    for (int64_t d = 0; d < axis; d++) s.before *= t->dims[d];
    for (int64_t d = axis + 1; d < t->rank; d++) s.after *= t->dims[d];
    return s;
}

/* The axis, or -1 without one. */
static rondo_status sized_axis(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    k->as.index.axis = -1;
    if (!rondo__ref_attribute(b->request, "axis")) return RONDO_OK;
    return rondo__ref_attribute_axis(b, 0, rondo__ref_input(k, 0)->rank, false, &k->as.index.axis);
}

static rondo_status sized_compress_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0), *condition = rondo__ref_input(k, 1),
                            *out = rondo__ref_output(k, 0);
    int64_t dims[RONDO_RANK_MAX] = {0};
    rondo_status status = sized_build(b);
    if (!status) status = sized_axis(b);
    if (!status) status = rondo__ref_need_types(b, "the input", x, SIZED_TYPES);
    if (!status) status = rondo__ref_need_types(b, "the condition", condition, RONDO__REF_BIT(BOOL));
    if (!status) status = rondo__ref_need_same_type(b, "the output", out, x->dtype);
    if (status) return status;
    const int64_t axis = k->as.index.axis;
    for (int32_t d = 0; d < x->rank; d++) dims[d] = x->dims[d];
    if (condition->rank != 1 || condition->count > sized_slices_of(x, axis).count) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the condition is no list, or longer than what it chooses from");
    }
    dims[axis < 0 ? 0 : axis] = condition->count;
    return rondo__ref_need_dims(b, "the output", out, axis < 0 ? 1 : x->rank, dims);
}

static int32_t sized_compress_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *x = &k->tensors[0], *condition = &k->tensors[1], *out = &k->tensors[2];
    const unsigned char *from = rondo__ref_address(words[0]), *chosen = rondo__ref_address(words[1]);
    unsigned char *to = rondo__ref_address(words[2]);
    const int64_t axis = k->as.index.axis;
    const sized_slices s = sized_slices_of(x, axis);
    const size_t slice = (size_t)s.after * x->size;
    int64_t *dims = sized_dims(k, words, 0), found = 0;
    for (int64_t i = 0; i < condition->count; i++) found += chosen[i] != 0;
    for (int64_t p = 0; p < s.before && slice > 0; p++) {
        for (int64_t i = 0; i < condition->count; i++) {
            if (!chosen[i]) continue;
            memcpy(to, from + (size_t)(p * s.count + i) * slice, slice);
            to += slice;
        }
    }
    for (int32_t d = 0; d < out->rank; d++) dims[d] = out->dims[d];
    dims[axis < 0 ? 0 : axis] = found;
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------------------------------ Unique */

static int sized_compare_elements(rondo_dtype dtype, const void *data, int64_t i, int64_t j) {
    if (rondo__ref_is_real(dtype)) { /* NaN stands behind all numbers and equals itself, as numpy has it */
        double a = rondo__ref_get_real(dtype, data, i), b = rondo__ref_get_real(dtype, data, j);
        bool a_nan = a != a, b_nan = b != b;
        if (a_nan || b_nan) return (int)a_nan - (int)b_nan;
        return (a > b) - (a < b);
    }
    int64_t a = rondo__ref_get_int(dtype, data, i), b = rondo__ref_get_int(dtype, data, j);
    if (dtype == RONDO_DTYPE_U64) return ((uint64_t)a > (uint64_t)b) - ((uint64_t)a < (uint64_t)b);
    return (a > b) - (a < b);
}

static int sized_compare(const rondo__ref_tensor *x, const void *data, const sized_slices *s, int64_t i, int64_t j) {
    for (int64_t p = 0; p < s->before; p++) {
        for (int64_t q = 0; q < s->after; q++) {
            int order = sized_compare_elements(x->dtype, data, (p * s->count + i) * s->after + q,
                                               (p * s->count + j) * s->after + q);
            if (order) return order;
        }
    }
    return 0;
}

/* Equal slices stay in their order, so the first of them is the one that is met first. */
static bool sized_before(const rondo__ref_tensor *x, const void *data, const sized_slices *s, int64_t i, int64_t j) {
    int order = sized_compare(x, data, s, i, j);
    return order < 0 || (order == 0 && i < j);
}

static void sized_sift(const rondo__ref_tensor *x, const void *data, const sized_slices *s, int64_t *heap, int64_t root,
                       int64_t count) {
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && sized_before(x, data, s, heap[child], heap[child + 1])) child++;
        if (!sized_before(x, data, s, heap[root], heap[child])) return;
        int64_t swapped = heap[root];
        heap[root] = heap[child];
        heap[child] = swapped;
    }
}

static void sized_sort(const rondo__ref_tensor *x, const void *data, const sized_slices *s, int64_t *order) {
    for (int64_t i = 0; i < s->count; i++) order[i] = i;
    for (int64_t root = s->count / 2; root-- > 0;) sized_sift(x, data, s, order, root, s->count);
    for (int64_t end = s->count; end-- > 1;) {
        int64_t swapped = order[0];
        order[0] = order[end];
        order[end] = swapped;
        sized_sift(x, data, s, order, 0, end);
    }
}

static rondo_status sized_unique_build(rondo__ref_builder *b) {
    static const char *const names[] = {"the output", "the indices", "the inverse indices", "the counts"};
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0);
    int64_t sorted = 1;
    rondo_status status = sized_build(b);
    if (!status) status = sized_axis(b);
    if (!status) status = rondo__ref_attribute_int(b, "sorted", &sorted);
    if (!status) status = rondo__ref_need_types(b, "the input", x, SIZED_TYPES);
    if (status) return status;
    if (sorted != 0 && sorted != 1) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "sorted is neither 0 nor 1");
    k->as.index.flag = sorted == 1;
    const int64_t axis = k->as.index.axis, count = sized_slices_of(x, axis).count;
    for (uint32_t i = 0; i < sized_outputs(k); i++) {
        const rondo__ref_tensor *out = rondo__ref_output(k, i);
        bool flat = i > 0 || axis < 0;
        if (!sized_wanted(k, i)) continue;
        if (i == 0) status = rondo__ref_need_same_type(b, names[i], out, x->dtype);
        else status = rondo__ref_need_types(b, names[i], out, RONDO__REF_BIT(I64));
        if (!status) status = rondo__ref_need_dims(b, names[i], out, flat ? 1 : x->rank, flat ? &count : x->dims);
        if (status) return status;
    }
    if (count > INT64_MAX / 16) return RONDO__REF_REFUSE(b, UNSUPPORTED, "too many elements to sort");
    k->scratch_bytes = (uint64_t)count * 2u * sizeof(int64_t);
    return RONDO_OK;
}

/* number[i]: which of the unique slices slice i is, in their order. What a slice is like that comes first keeps its number in
 * `order` meanwhile. The number of unique slices. */
static int64_t sized_unique_number(const rondo__ref_kernel *k, const sized_slices *s, const void *data, int64_t *order,
                                   int64_t *number) {
    const rondo__ref_tensor *x = &k->tensors[0];
    int64_t found = 0, first = 0;
    sized_sort(x, data, s, order);
    for (int64_t i = 0; i < s->count; i++) {
        if (i == 0 || sized_compare(x, data, s, order[i - 1], order[i]) != 0) {
            first = order[i];
            found++;
        }
        number[order[i]] = k->as.index.flag ? found - 1 : first;
    }
    if (k->as.index.flag) return found;
    found = 0;
    for (int64_t i = 0; i < s->count; i++) {
        first = number[i]; /* never behind i */
        if (first == i) order[i] = found++;
        number[i] = order[first];
    }
    return found;
}

static int64_t *sized_unique_list(const rondo__ref_kernel *k, const uint64_t *words, uint32_t i) {
    return sized_wanted(k, i) ? rondo__ref_address(words[1u + i]) : NULL;
}

static int32_t sized_unique_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *x = &k->tensors[0];
    const sized_slices s = sized_slices_of(x, k->as.index.axis);
    const unsigned char *from = rondo__ref_address(words[0]);
    unsigned char *to = rondo__ref_address(words[1]);
    int64_t *firsts = sized_unique_list(k, words, 1), *inverse = sized_unique_list(k, words, 2),
            *counts = sized_unique_list(k, words, 3);
    int64_t *order = rondo__ref_address(words[1u + k->output_count]), *number = order + s.count;
    const size_t slice = (size_t)s.after * x->size;
    const int64_t found = sized_unique_number(k, &s, from, order, number);
    for (int64_t i = 0; counts && i < found; i++) counts[i] = 0;
    for (int64_t i = s.count; i-- > 0;) { /* backwards: the first one of equal slices is written last */
        for (int64_t p = 0; p < s.before && slice > 0 && sized_wanted(k, 0); p++) {
            memcpy(to + (size_t)(p * found + number[i]) * slice, from + (size_t)(p * s.count + i) * slice, slice);
        }
        if (firsts) firsts[number[i]] = i;
        if (inverse) inverse[i] = number[i];
        if (counts) counts[number[i]]++;
    }
    for (uint32_t i = 0; i < sized_outputs(k); i++) {
        if (!sized_wanted(k, i)) continue;
        const rondo__ref_tensor *out = &k->tensors[1u + i];
        int64_t *dims = sized_dims(k, words, i);
        for (int32_t d = 0; d < out->rank; d++) dims[d] = out->dims[d];
        if (i == 0) dims[k->as.index.axis < 0 ? 0 : k->as.index.axis] = found;
        else if (i != 2) dims[0] = found;
    }
    return RONDO__REF_OK;
}

/* ------------------------------------------------------------------------------------------------- NonMaxSuppression */

static rondo_status sized_suppression_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *boxes = rondo__ref_input(k, 0), *scores = rondo__ref_input(k, 1),
                            *out = rondo__ref_output(k, 0);
    int64_t center = 0;
    rondo_status status = sized_build(b);
    if (!status) status = rondo__ref_attribute_int(b, "center_point_box", &center);
    if (!status) status = rondo__ref_need_types(b, "the boxes", boxes, RONDO__REF_BIT(F32));
    if (!status) status = rondo__ref_need_types(b, "the scores", scores, RONDO__REF_BIT(F32));
    for (uint32_t i = 2; i < k->input_count && !status; i++) {
        const rondo__ref_tensor *one = rondo__ref_input(k, i);
        if (one->dtype == RONDO_DTYPE_UNDEFINED) continue;
        status = rondo__ref_need_types(b, "a bound", one, i == 2 ? RONDO__REF_BIT(I64) : RONDO__REF_BIT(F32));
        if (!status && (one->rank > 1 || one->count != 1)) {
            status = RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input %u is not one number", i);
        }
    }
    if (!status) status = rondo__ref_need_types(b, "the output", out, RONDO__REF_BIT(I64));
    if (status) return status;
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dims[2] != 4 || boxes->dims[0] != scores->dims[0] ||
        boxes->dims[1] != scores->dims[2] || out->rank != 2 || out->dims[1] != 3 || (center != 0 && center != 1)) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the shapes of boxes, scores and output do not fit");
    }
    k->as.index.flag = center == 1;
    k->scratch_bytes = (uint64_t)boxes->dims[1] * sizeof(int64_t);
    return RONDO_OK;
}

typedef struct sized_box {
    float low[2], high[2];
} sized_box;

static sized_box sized_box_of(const float *box, bool center) {
    sized_box made;
    for (int d = 0; d < 2; d++) {
        float a = center ? box[d] - box[d + 2] / 2 : box[d], b = center ? box[d] + box[d + 2] / 2 : box[d + 2];
        made.low[d] = a < b ? a : b;
        made.high[d] = a < b ? b : a;
    }
    return made;
}

/* More of their union is common to both than the threshold allows. */
static bool sized_overlaps(const sized_box *a, const sized_box *b, float threshold) {
    float common = 1, area_a = 1, area_b = 1;
    for (int d = 0; d < 2; d++) {
        float low = a->low[d] > b->low[d] ? a->low[d] : b->low[d];
        float high = a->high[d] < b->high[d] ? a->high[d] : b->high[d];
        if (!(high > low)) return false;
        common *= high - low;
        area_a *= a->high[d] - a->low[d];
        area_b *= b->high[d] - b->low[d];
    }
    float all = area_a + area_b - common;
    return all > 0 && common / all > threshold;
}

typedef struct sized_suppression {
    const float *boxes, *scores; /* of a batch; of a class of it */
    int64_t count, most;
    float overlap, score;
    bool center, scored;
} sized_suppression;

/* The boxes of one class that stay, best first, into `kept`; how many. */
static int64_t sized_suppress(const sized_suppression *s, int64_t *kept) {
    int64_t found = 0, last = -1;
    while (found < s->most) {
        int64_t best = -1;
        for (int64_t i = 0; i < s->count; i++) { /* the next one in the order of scores, then of numbers */
            float score = s->scores[i];
            if (score != score || (s->scored && !(score > s->score))) continue; /* NaN is no score */
            if (last >= 0 && !(score < s->scores[last] || (!(score > s->scores[last]) && i > last))) continue;
            if (best < 0 || score > s->scores[best]) best = i;
        }
        if (best < 0) break;
        last = best;
        sized_box box = sized_box_of(s->boxes + 4 * best, s->center);
        bool stays = true;
        for (int64_t i = 0; i < found && stays; i++) {
            sized_box other = sized_box_of(s->boxes + 4 * kept[i], s->center);
            stays = !sized_overlaps(&box, &other, s->overlap);
        }
        if (stays) kept[found++] = best;
    }
    return found;
}

static int32_t sized_suppression_run(const rondo__ref_kernel *k, const uint64_t *words) {
    const rondo__ref_tensor *scores = &k->tensors[1];
    const rondo__ref_tensor *limit = rondo__ref_optional_input(k, 2), *overlap = rondo__ref_optional_input(k, 3),
                            *score = rondo__ref_optional_input(k, 4);
    int64_t *to = rondo__ref_address(rondo__ref_output_word(k, words, 0)), *dims = sized_dims(k, words, 0);
    int64_t *kept = rondo__ref_address(words[k->input_count + k->output_count]), found = 0;
    sized_suppression s = {.count = scores->dims[2], .center = k->as.index.flag, .scored = score != NULL};
    if (limit) s.most = *(const int64_t *)rondo__ref_address(words[2]);
    if (overlap) s.overlap = *(const float *)rondo__ref_address(words[3]);
    if (score) s.score = *(const float *)rondo__ref_address(words[4]);
    if (s.overlap < 0 || s.overlap > 1) return RONDO__REF_BAD_VALUE;
    for (int64_t batch = 0; batch < scores->dims[0]; batch++) {
        for (int64_t class = 0; class < scores->dims[1] && s.count > 0; class ++) {
            s.boxes = (const float *)rondo__ref_address(words[0]) + batch * s.count * 4;
            s.scores = (const float *)rondo__ref_address(words[1]) + (batch * scores->dims[1] + class) * s.count;
            int64_t selected = sized_suppress(&s, kept);
            if (selected > k->tensors[k->input_count].dims[0] - found) return RONDO__REF_SHAPE_MISMATCH;
            for (int64_t i = 0; i < selected; i++) {
                int64_t *row = to + 3 * found++;
                row[0] = batch;
                row[1] = class;
                row[2] = kept[i];
            }
        }
    }
    dims[0] = found;
    dims[1] = 3;
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_sized_operators[] = {
    {"Compress", 2, 2, 2, 2, "axis rondo.sizes", sized_compress_build, sized_compress_run, NULL},
    {"NonMaxSuppression", 2, 5, 2, 2, "center_point_box rondo.sizes", sized_suppression_build, sized_suppression_run,
     NULL},
    {"NonZero", 1, 1, 2, 2, "rondo.sizes", sized_nonzero_build, sized_nonzero_run, NULL},
    {"Unique", 1, 1, 2, 5, "axis sorted rondo.sizes", sized_unique_build, sized_unique_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
