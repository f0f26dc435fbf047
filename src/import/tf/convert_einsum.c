/* SPDX-License-Identifier: Apache-2.0
 *
 * Einsum of one or two operands: what only one of them has and the result has not is summed first; then the axes are
 * brought into the order of a matrix product, joined to three groups, multiplied, and brought into the order asked for. */
#include <string.h>

#include "import/tf/tf.h"

#define TF_EINSUM_AXES_MAX 12

typedef struct tf_einsum_term {
    char labels[RONDO_RANK_MAX + 1];
    uint32_t count;
} tf_einsum_term;

typedef struct tf_einsum_plan {
    tf_einsum_term in[2], out;
    uint32_t operands;
} tf_einsum_plan;

static bool tf_einsum_has(const tf_einsum_term *term, char label) {
    return memchr(term->labels, label, term->count) != NULL;
}

static void tf_einsum_add(tf_einsum_term *term, char label) { term->labels[term->count++] = label; }

/* "ab,bc->ac"; false: something that is not read here. */
static bool tf_einsum_parse(const char *text, tf_einsum_plan *plan) {
    tf_einsum_term *term = &plan->in[0];
    plan->operands = 1;
    for (const char *at = text; *at; at++) {
        if (*at == ' ') continue;
        if (*at == ',' && plan->operands == 1 && term != &plan->out) {
            term = &plan->in[plan->operands++];
        } else if (*at == '-' && at[1] == '>' && term != &plan->out) {
            term = &plan->out;
            at++;
        } else {
            const bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
            if (!letter || term->count == TF_EINSUM_AXES_MAX || tf_einsum_has(term, *at)) return false;
            if (term == &plan->out && !tf_einsum_has(&plan->in[0], *at) &&
                (plan->operands == 1 || !tf_einsum_has(&plan->in[1], *at)))
                return false;
            tf_einsum_add(term, *at);
        }
    }
    return term == &plan->out;
}

/* Sums what neither the result nor the other operand has. */
static rondo_status tf_einsum_reduce(rondo__tf_node *node, tf_einsum_plan *plan, uint32_t operand,
                                     rondo_ir_value *value) {
    const rondo_attribute keep = rondo__tf_int("keepdims", 0);
    tf_einsum_term *term = &plan->in[operand], left = {{0}, 0};
    int64_t axes[RONDO_RANK_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < term->count; i++) {
        const char label = term->labels[i];
        const bool shared = plan->operands == 2 && tf_einsum_has(&plan->in[1 - operand], label);
        if (shared || tf_einsum_has(&plan->out, label)) tf_einsum_add(&left, label);
        else axes[count++] = i;
    }
    *term = left;
    if (!count) return RONDO_OK;
    rondo_ir_value x[2] = {*value, RONDO_IR_NONE};
    RONDO__TRY(rondo__tf_list(node, axes, count, &x[1]));
    return rondo__tf_step(node, "ReduceSum", x, 2, &keep, 1, value);
}

static rondo_status tf_einsum_order(rondo__tf_node *node, const tf_einsum_term *from, const tf_einsum_term *to,
                                    rondo_ir_value *value) {
    int64_t perm[RONDO_RANK_MAX];
    bool same = true;
    for (uint32_t i = 0; i < to->count; i++) {
        perm[i] = (const char *)memchr(from->labels, to->labels[i], from->count) - from->labels;
        same = same && perm[i] == i;
    }
    return same ? RONDO_OK : rondo__tf_transpose(node, *value, perm, to->count, value);
}

/* The groups of a product: shared and kept, of the left alone, shared and summed, of the right alone. */
typedef struct tf_einsum_groups {
    tf_einsum_term batch, left, inner, right;
} tf_einsum_groups;

static void tf_einsum_group(const tf_einsum_plan *plan, tf_einsum_groups *groups) {
    for (uint32_t i = 0; i < plan->in[0].count; i++) {
        const char label = plan->in[0].labels[i];
        if (!tf_einsum_has(&plan->in[1], label)) tf_einsum_add(&groups->left, label);
        else tf_einsum_add(tf_einsum_has(&plan->out, label) ? &groups->batch : &groups->inner, label);
    }
    for (uint32_t i = 0; i < plan->in[1].count; i++)
        if (!tf_einsum_has(&plan->in[0], plan->in[1].labels[i])) tf_einsum_add(&groups->right, plan->in[1].labels[i]);
}

static void tf_einsum_join(tf_einsum_term *out, const tf_einsum_term *a, const tf_einsum_term *b,
                           const tf_einsum_term *c) {
    const tf_einsum_term *parts[] = {a, b, c};
    out->count = 0;
    for (uint32_t p = 0; p < 3; p++)
        for (uint32_t i = 0; i < parts[p]->count; i++) tf_einsum_add(out, parts[p]->labels[i]);
}

/* Sizes first .. first + count of a value's shape; joined: their product, one number. */
static rondo_status tf_einsum_sizes(rondo__tf_node *node, rondo_ir_value value, uint32_t first, uint32_t count,
                                    bool joined, rondo_ir_value *out) {
    const rondo_attribute part[2] = {rondo__tf_int("start", first), rondo__tf_int("end", first + count)};
    RONDO__TRY(rondo__tf_step(node, "Shape", &value, 1, part, 2, out));
    return joined ? rondo__tf_step(node, "ReduceProd", out, 1, NULL, 0, out) : RONDO_OK;
}

static rondo_status tf_einsum_reshape(rondo__tf_node *node, const rondo_ir_value sizes[3], rondo_ir_value *value) {
    const rondo_attribute axis = rondo__tf_int("axis", 0), zero = rondo__tf_int("allowzero", 1);
    rondo_ir_value x[2] = {*value, RONDO_IR_NONE};
    RONDO__TRY(rondo__tf_step(node, "Concat", sizes, 3, &axis, 1, &x[1]));
    return rondo__tf_step(node, "Reshape", x, 2, &zero, 1, value);
}

/* Behind the shared axes of an operand two groups, each joined to one axis. */
static rondo_status tf_einsum_matrix(rondo__tf_node *node, uint32_t batch, uint32_t rows, uint32_t columns,
                                     rondo_ir_value *value) {
    rondo_ir_value sizes[3];
    if (rows == 1 && columns == 1) return RONDO_OK;
    RONDO__TRY(tf_einsum_sizes(node, *value, 0, batch, false, &sizes[0]));
    RONDO__TRY(tf_einsum_sizes(node, *value, batch, rows, true, &sizes[1]));
    RONDO__TRY(tf_einsum_sizes(node, *value, batch + rows, columns, true, &sizes[2]));
    return tf_einsum_reshape(node, sizes, value);
}

static rondo_status tf_einsum_product(rondo__tf_node *node, tf_einsum_plan *plan, rondo_ir_value x[2]) {
    tf_einsum_groups groups = {0};
    tf_einsum_term order;
    rondo_ir_value whole[2], sizes[3], product;
    tf_einsum_group(plan, &groups);
    const uint32_t batch = groups.batch.count, left = groups.left.count, right = groups.right.count;
    if (batch + left + right > TF_EINSUM_AXES_MAX) return rondo__tf_refuse(node, "an equation of so many axes");
    tf_einsum_join(&order, &groups.batch, &groups.left, &groups.inner);
    RONDO__TRY(tf_einsum_order(node, &plan->in[0], &order, &x[0]));
    tf_einsum_join(&order, &groups.batch, &groups.inner, &groups.right);
    RONDO__TRY(tf_einsum_order(node, &plan->in[1], &order, &x[1]));
    memcpy(whole, x, sizeof whole);
    RONDO__TRY(tf_einsum_matrix(node, batch, left, groups.inner.count, &x[0]));
    RONDO__TRY(tf_einsum_matrix(node, batch, groups.inner.count, right, &x[1]));
    RONDO__TRY(rondo__tf_step(node, "MatMul", x, 2, NULL, 0, &product));
    if (left != 1 || right != 1) {
        RONDO__TRY(tf_einsum_sizes(node, whole[0], 0, batch, false, &sizes[0]));
        RONDO__TRY(tf_einsum_sizes(node, whole[0], batch, left, false, &sizes[1]));
        RONDO__TRY(tf_einsum_sizes(node, whole[1], batch + groups.inner.count, right, false, &sizes[2]));
        RONDO__TRY(tf_einsum_reshape(node, sizes, &product));
    }
    tf_einsum_join(&order, &groups.batch, &groups.left, &groups.right);
    RONDO__TRY(tf_einsum_order(node, &order, &plan->out, &product));
    rondo__tf_alias(node, 0, product);
    return RONDO_OK;
}

rondo_status rondo__tf_convert_einsum(rondo__tf_node *node) {
    const char *equation = "";
    tf_einsum_plan plan = {0};
    rondo_ir_value x[2];
    RONDO__TRY(rondo__tf_attr_text(node, "equation", &equation));
    if (!tf_einsum_parse(equation, &plan) || plan.operands != node->input_count)
        return rondo__tf_refuse(node, "an equation with an ellipsis, a repeated letter or more than two operands");
    for (uint32_t i = 0; i < plan.operands; i++) {
        const int32_t rank = rondo__tf_value_at(node, i)->rank;
        if (rank >= 0 && rank != (int32_t)plan.in[i].count)
            return RONDO__TF_CORRUPT(node, "operand %u has %d axes, the equation %u", i, rank, plan.in[i].count);
        RONDO__TRY(rondo__tf_take(node, i, &x[i]));
        RONDO__TRY(tf_einsum_reduce(node, &plan, i, &x[i]));
    }
    node->outputs[0].rank = (int32_t)plan.out.count;
    if (plan.operands == 2) return tf_einsum_product(node, &plan, x);
    RONDO__TRY(tf_einsum_order(node, &plan.in[0], &plan.out, &x[0]));
    rondo__tf_alias(node, 0, x[0]);
    return RONDO_OK;
}
