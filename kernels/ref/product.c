/* SPDX-License-Identifier: Apache-2.0
 *
 * MatMul and Gemm: sums of products between rows and columns, described by strides, so that transposition and vectors
 * are no cases of their own. Floats are multiplied and summed in double in the order of the depth, bias included, and
 * rounded once; integers wrap. */
#include "ref.h"

static rondo_status product_need_types(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    const rondo__ref_tensor *a = rondo__ref_input(k, 0), *bias = rondo__ref_optional_input(k, 2);
    rondo_status status = rondo__ref_need_types(b, "input 0", a, RONDO__REF_PRODUCT_TYPES);
    if (!status) status = rondo__ref_need_same_type(b, "input 1", rondo__ref_input(k, 1), a->dtype);
    if (!status) status = rondo__ref_need_same_type(b, "the output", rondo__ref_output(k, 0), a->dtype);
    if (!status && bias) status = rondo__ref_need_same_type(b, "input 2", bias, a->dtype);
    if (!status) status = rondo__ref_attribute_activation(b);
    return status;
}

/* ------------------------------------------------------------------------------------------------- MatMul */

/* The leading dims of both inputs, broadcast; the strides count elements of the whole inputs. */
static rondo_status matmul_build_batch(rondo__ref_builder *b, rondo__ref_walk *walk) {
    const rondo__ref_tensor *in[2] = {rondo__ref_input(b->kernel, 0), rondo__ref_input(b->kernel, 1)};
    int32_t lead[2];
    for (int i = 0; i < 2; i++) lead[i] = in[i]->rank > 2 ? in[i]->rank - 2 : 0;
    walk->rank = lead[0] > lead[1] ? lead[0] : lead[1];
    for (int32_t d = 0; d < walk->rank; d++) walk->dims[d] = 1;
    for (int i = 0; i < 2; i++) {
        int64_t strides[RONDO_RANK_MAX];
        rondo__ref_compact(in[i]->rank, in[i]->dims, strides);
        for (int32_t d = 0; d < lead[i]; d++) {
            int32_t at = walk->rank - lead[i] + d;
            int64_t dim = in[i]->dims[d];
            if (walk->dims[at] == 1) walk->dims[at] = dim;
            if (dim != walk->dims[at] && dim != 1) {
                return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the leading dims %lld and %lld do not broadcast",
                                         (long long)walk->dims[at], (long long)dim);
            }
            walk->strides[i][at] = dim == 1 ? 0 : strides[d];
        }
    }
    return RONDO_OK;
}

static rondo_status matmul_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    rondo__ref_product *p = &k->as.product;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0), *y = rondo__ref_input(k, 1);
    const rondo__ref_tensor *bias = rondo__ref_optional_input(k, 2);
    rondo_status status = product_need_types(b);
    if (status) return status;
    if (x->rank == 0 || y->rank == 0) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "an input is a scalar");
    p->rows = x->rank > 1 ? x->dims[x->rank - 2] : 1;
    p->depth = x->dims[x->rank - 1];
    p->columns = y->rank > 1 ? y->dims[y->rank - 1] : 1;
    int64_t other = y->rank > 1 ? y->dims[y->rank - 2] : y->dims[0];
    if (other != p->depth) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the depth of input 0 is %lld and that of input 1 %lld",
                                 (long long)p->depth, (long long)other);
    }
    p->a_row = p->depth;
    p->a_depth = 1;
    p->b_depth = p->columns;
    p->b_column = 1;
    p->alpha = p->beta = 1;
    status = matmul_build_batch(b, &p->batch);
    if (status) return status;
    int64_t dims[RONDO_RANK_MAX];
    int32_t rank = p->batch.rank;
    memcpy(dims, p->batch.dims, sizeof dims);
    if (x->rank > 1) dims[rank++] = p->rows;
    if (y->rank > 1) dims[rank++] = p->columns;
    status = rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), rank, dims);
    if (status || !bias) return status;
    if (bias->count != 1 && (bias->count != p->columns || bias->dims[bias->rank - 1] != p->columns)) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED,
                                 "the bias has %lld elements; one, or one for each of %lld columns, is "
                                 "possible",
                                 (long long)bias->count, (long long)p->columns);
    }
    p->c_column = bias->count != 1;
    return RONDO_OK;
}

/* --------------------------------------------------------------------------------------------------- Gemm */

static rondo_status gemm_build_bias(rondo__ref_builder *b, rondo__ref_product *p) {
    const rondo__ref_tensor *c = rondo__ref_optional_input(b->kernel, 2);
    if (!c) return RONDO_OK;
    int64_t row = c->rank > 1 ? c->dims[c->rank - 2] : 1, column = c->rank > 0 ? c->dims[c->rank - 1] : 1;
    if (c->rank > 2 || (row != 1 && row != p->rows) || (column != 1 && column != p->columns)) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "input 2 does not broadcast to %lld rows and %lld columns",
                                 (long long)p->rows, (long long)p->columns);
    }
    p->c_row = row == 1 ? 0 : column;
    p->c_column = column == 1 ? 0 : 1;
    return RONDO_OK;
}

static rondo_status gemm_build(rondo__ref_builder *b) {
    rondo__ref_kernel *k = b->kernel;
    rondo__ref_product *p = &k->as.product;
    const rondo__ref_tensor *x = rondo__ref_input(k, 0), *y = rondo__ref_input(k, 1);
    int64_t trans_a = 0, trans_b = 0;
    float alpha = 1, beta = 1;
    rondo_status status = product_need_types(b);
    if (!status) status = rondo__ref_attribute_int(b, "transA", &trans_a);
    if (!status) status = rondo__ref_attribute_int(b, "transB", &trans_b);
    if (!status) status = rondo__ref_attribute_float(b, "alpha", &alpha);
    if (!status) status = rondo__ref_attribute_float(b, "beta", &beta);
    if (status) return status;
    if (x->rank != 2 || y->rank != 2) return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "inputs 0 and 1 must have rank 2");
    if (!rondo__ref_is_float(x->dtype) && (alpha != 1.0f || beta != 1.0f)) {
        return RONDO__REF_REFUSE(b, UNSUPPORTED, "with integers, alpha and beta must be 1");
    }
    p->rows = x->dims[trans_a ? 1 : 0];
    p->depth = x->dims[trans_a ? 0 : 1];
    p->columns = y->dims[trans_b ? 0 : 1];
    if (y->dims[trans_b ? 1 : 0] != p->depth) {
        return RONDO__REF_REFUSE(b, INVALID_ARGUMENT, "the depth of input 0 is %lld and that of input 1 %lld",
                                 (long long)p->depth, (long long)y->dims[trans_b ? 1 : 0]);
    }
    p->a_row = trans_a ? 1 : p->depth;
    p->a_depth = trans_a ? p->rows : 1;
    p->b_depth = trans_b ? 1 : p->columns;
    p->b_column = trans_b ? p->depth : 1;
    p->alpha = (double)alpha;
    p->beta = (double)beta;
    status = gemm_build_bias(b, p);
    const int64_t dims[2] = {p->rows, p->columns};
    if (!status) status = rondo__ref_need_dims(b, "the output", rondo__ref_output(k, 0), 2, dims);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- both */

static void product_matrix(const rondo__ref_product *p, rondo_dtype dtype, size_t size, const unsigned char *a,
                           const unsigned char *b, const void *c, void *out, int64_t at) {
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t j = 0; j < p->columns; j++, at++) {
            const unsigned char *row = a + (size_t)(i * p->a_row) * size;
            const unsigned char *column = b + (size_t)(j * p->b_column) * size;
            const int64_t bias = i * p->c_row + j * p->c_column;
            if (rondo__ref_is_float(dtype)) {
                double sum = p->alpha * rondo__ref_dot(dtype, p->depth, row, p->a_depth, column, p->b_depth);
                if (c) sum += p->beta * rondo__ref_get(dtype, c, bias);
                rondo__ref_put(dtype, out, at, sum);
            } else {
                uint64_t sum = rondo__ref_dot_int(dtype, p->depth, row, p->a_depth, column, p->b_depth);
                if (c) sum += (uint64_t)rondo__ref_get_int(dtype, c, bias);
                rondo__ref_put_int(dtype, out, at, sum);
            }
        }
    }
}

static int32_t product_run(const rondo__ref_kernel *k, const uint64_t *words) {
    static const unsigned char nothing[8] = {0}; /* where an input is empty, so that no address is made from null */
    const rondo__ref_product *p = &k->as.product;
    const rondo__ref_tensor *x = &k->tensors[0], *out = &k->tensors[k->input_count];
    if (out->count == 0) return RONDO__REF_OK;
    const unsigned char *a = p->depth ? (const unsigned char *)rondo__ref_address(words[0]) : nothing;
    const unsigned char *b = p->depth ? (const unsigned char *)rondo__ref_address(words[1]) : nothing;
    const void *c = rondo__ref_optional_input(k, 2) ? rondo__ref_address(words[2]) : NULL;
    void *to = rondo__ref_address(rondo__ref_output_word(k, words, 0));
    int64_t index[RONDO_RANK_MAX] = {0}, at = 0;
    do {
        const size_t a_at = (size_t)rondo__ref_offset(p->batch.rank, p->batch.strides[0], index) * x->size;
        const size_t b_at = (size_t)rondo__ref_offset(p->batch.rank, p->batch.strides[1], index) * x->size;
        product_matrix(p, x->dtype, x->size, p->depth ? a + a_at : a, p->depth ? b + b_at : b, c, to, at);
        at += p->rows * p->columns;
    } while (rondo__ref_next(p->batch.rank, p->batch.dims, index));
    rondo__ref_activate(&k->activation, out->dtype, to, out->count);
    return RONDO__REF_OK;
}

const rondo__ref_operator rondo__ref_product_operators[] = {
    {"Gemm", 2, 3, 1, 1, "alpha beta transA transB rondo.activation rondo.alpha rondo.beta", gemm_build, product_run,
     NULL},
    {"MatMul", 2, 3, 1, 1, "rondo.activation rondo.alpha rondo.beta", matmul_build, product_run, NULL},
    {NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL},
};
