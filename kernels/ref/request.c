/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a request: attributes by name and kind, and the checks that builders share. Every refusal says which operand
 * or attribute and what it should have been. */
#include "ref.h"

#include <stdio.h>

const rondo__ref_tensor *rondo__ref_optional_input(const rondo__ref_kernel *k, uint32_t i) {
    if (i >= k->input_count || k->tensors[i].dtype == RONDO_DTYPE_UNDEFINED) return NULL;
    return &k->tensors[i];
}

const rondo_attribute *rondo__ref_attribute(const rondo_kernel_request *request, const char *name) {
    for (uint32_t i = 0; i < request->attribute_count; i++) {
        if (strcmp(request->attributes[i].name, name) == 0) return &request->attributes[i];
    }
    return NULL;
}

rondo_status rondo__ref_attribute_int(rondo__ref_builder *b, const char *name, int64_t *out) {
    const rondo_attribute *a = rondo__ref_attribute(b->request, name);
    if (!a) return RONDO_OK;
    if (a->kind != RONDO_ATTRIBUTE_INT) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "attribute '%s' must be an integer", name);
    }
    *out = a->value.i;
    return RONDO_OK;
}

rondo_status rondo__ref_attribute_float(rondo__ref_builder *b, const char *name, float *out) {
    const rondo_attribute *a = rondo__ref_attribute(b->request, name);
    if (!a) return RONDO_OK;
    if (a->kind != RONDO_ATTRIBUTE_FLOAT) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "attribute '%s' must be a float", name);
    }
    *out = a->value.f;
    return RONDO_OK;
}

rondo_status rondo__ref_attribute_string(rondo__ref_builder *b, const char *name, const char **out) {
    const rondo_attribute *a = rondo__ref_attribute(b->request, name);
    if (!a) return RONDO_OK;
    if (a->kind != RONDO_ATTRIBUTE_STRING || !a->value.s.data || strlen(a->value.s.data) != a->value.s.size) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "attribute '%s' must be a string", name);
    }
    *out = a->value.s.data;
    return RONDO_OK;
}

rondo_status rondo__ref_attribute_ints(rondo__ref_builder *b, const char *name, uint32_t count, int64_t lowest,
                                       int64_t highest, int64_t *out) {
    const rondo_attribute *a = rondo__ref_attribute(b->request, name);
    if (!a) return RONDO_OK;
    if (a->kind != RONDO_ATTRIBUTE_INTS || a->count != count) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "attribute '%s' must be %u integers", name, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t value = a->value.ints[i];
        if (value < lowest || value > highest) {
            return RONDO__REF_REFUSE(b, UNSUPPORTED, "attribute '%s' holds %lld, which is not between %lld and %lld",
                                     name, (long long)value, (long long)lowest, (long long)highest);
        }
        out[i] = value;
    }
    return RONDO_OK;
}

rondo_status rondo__ref_attribute_axis(rondo__ref_builder *b, int64_t otherwise, int32_t rank, bool end, int64_t *out) {
    int64_t axis = otherwise;
    rondo_status status = rondo__ref_attribute_int(b, "axis", &axis);
    if (status) return status;
    if (axis < -rank || axis >= rank + (end ? 1 : 0)) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "axis %lld does not exist in rank %d", (long long)axis,
                                 (int)rank);
    }
    *out = axis < 0 ? axis + rank : axis;
    return RONDO_OK;
}

rondo_status rondo__ref_attribute_activation(rondo__ref_builder *b) {
    static const char *const names[] = {"", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip"};
    rondo__ref_activation *activation = &b->kernel->activation;
    const char *name = "";
    rondo_status status = rondo__ref_attribute_string(b, "rondo.activation", &name);
    if (status) return status;
    uint32_t kind = 0;
    while (kind < sizeof names / sizeof *names && strcmp(names[kind], name) != 0) kind++;
    if (kind == sizeof names / sizeof *names) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "it does not know the activation '%s'", name);
    }
    activation->kind = kind;
    bool bounds = kind == RONDO__REF_ACT_CLIP;
    /* A bound that is absent does not bind. */
    activation->alpha = bounds ? -__builtin_inff() : 0.01f;
    activation->beta = __builtin_inff();
    status = rondo__ref_attribute_float(b, "rondo.alpha", &activation->alpha);
    if (!status) status = rondo__ref_attribute_float(b, "rondo.beta", &activation->beta);
    if (status) return status;
    if (kind != RONDO__REF_ACT_NONE && !rondo__ref_is_float(rondo__ref_output(b->kernel, 0)->dtype)) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "the activation '%s' needs a float result", name);
    }
    return RONDO_OK;
}

rondo_status rondo__ref_need_types(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                   uint32_t types) {
    if (types >> t->dtype & 1u) return RONDO_OK;
    return RONDO__REF_REFUSE(b, UNSUPPORTED, "%s cannot be of data type number %d (%zu bytes an element)", what,
                             (int)t->dtype, t->size);
}

rondo_status rondo__ref_need_same_type(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                       rondo_dtype dtype) {
    if (t->dtype == dtype) return RONDO_OK;
    return RONDO__REF_REFUSE(b, UNSUPPORTED, "%s has data type number %d instead of %d", what, (int)t->dtype,
                             (int)dtype);
}

/* "[2,3]", cut where it does not fit. */
static const char *request_dims_text(int32_t rank, const int64_t *dims, char *text, size_t capacity) {
    size_t used = 0;
    text[used++] = '[';
    for (int32_t d = 0; d < rank && used + 24 < capacity; d++) {
        used += (size_t)snprintf(text + used, capacity - used, d ? ",%lld" : "%lld", (long long)dims[d]);
    }
    (void)snprintf(text + used, capacity - used, "]");
    return text;
}

rondo_status rondo__ref_need_dims(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t, int32_t rank,
                                  const int64_t *dims) {
    bool same = t->rank == rank;
    for (int32_t d = 0; same && d < rank; d++) same = t->dims[d] == dims[d];
    if (same) return RONDO_OK;
    char has[200], must[200];
    return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "%s has shape %s instead of %s", what,
                             request_dims_text(t->rank, t->dims, has, sizeof has),
                             request_dims_text(rank, dims, must, sizeof must));
}

rondo_status rondo__ref_need_shape_of(rondo__ref_builder *b, const char *what, const rondo__ref_tensor *t,
                                      const rondo__ref_tensor *other) {
    return rondo__ref_need_dims(b, what, t, other->rank, other->dims);
}

rondo_status rondo__ref_broadcast(rondo__ref_builder *b, uint32_t first, uint32_t count, int32_t *out_rank,
                                  int64_t *out_dims) {
    int32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rondo__ref_input(b->kernel, first + i)->rank > rank) rank = rondo__ref_input(b->kernel, first + i)->rank;
    }
    for (int32_t d = 0; d < rank; d++) out_dims[d] = 1;
    for (uint32_t i = 0; i < count; i++) {
        const rondo__ref_tensor *t = rondo__ref_input(b->kernel, first + i);
        for (int32_t d = 0; d < t->rank; d++) {
            int64_t *dim = &out_dims[rank - t->rank + d];
            if (*dim == 1) *dim = t->dims[d];
            if (t->dims[d] != *dim && t->dims[d] != 1) {
                return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input %u does not broadcast: dim %d is %lld, not %lld",
                                         first + i, (int)d, (long long)t->dims[d], (long long)*dim);
            }
        }
    }
    *out_rank = rank;
    return RONDO_OK;
}

void rondo__ref_broadcast_strides(const rondo__ref_tensor *t, int32_t rank, int64_t *strides) {
    int64_t compact[RONDO_RANK_MAX];
    int32_t lead = rank - t->rank;
    rondo__ref_compact(t->rank, t->dims, compact);
    for (int32_t d = 0; d < rank; d++) strides[d] = d < lead || t->dims[d - lead] == 1 ? 0 : compact[d - lead];
}

rondo_status rondo__ref_build_walk(rondo__ref_builder *b, uint32_t first, uint32_t count, rondo__ref_walk *walk) {
    rondo_status status = rondo__ref_broadcast(b, first, count, &walk->rank, walk->dims);
    if (status) return status;
    for (uint32_t i = 0; i < count; i++) {
        rondo__ref_broadcast_strides(rondo__ref_input(b->kernel, first + i), walk->rank, walk->strides[i]);
    }
    return rondo__ref_need_dims(b, "the output", rondo__ref_output(b->kernel, 0), walk->rank, walk->dims);
}

void rondo__ref_allow_in_place(rondo__ref_kernel *k, uint32_t i) {
    const rondo__ref_tensor *in = rondo__ref_input(k, i), *out = rondo__ref_output(k, 0);
    if (i < 32 && in->dtype == out->dtype && in->count == out->count) k->in_place |= 1u << i;
}
