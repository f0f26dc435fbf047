/* SPDX-License-Identifier: Apache-2.0
 *
 * A NodeDef: first what it says, then, when all names are known, whom it takes from and what it is. */
#include <string.h>

#include "import/tf/tf.h"

enum { TF_NODE_NAME = 1, TF_NODE_OP = 2, TF_NODE_INPUT = 3, TF_NODE_ATTRIBUTE = 5 };

/* Numbers of AttrValue's fields. */
enum {
    TF_ATTRIBUTE_LIST = 1,
    TF_ATTRIBUTE_S,
    TF_ATTRIBUTE_I,
    TF_ATTRIBUTE_F,
    TF_ATTRIBUTE_B,
    TF_ATTRIBUTE_TYPE,
    TF_ATTRIBUTE_SHAPE,
    TF_ATTRIBUTE_TENSOR
};

static rondo_status tf_node_names(rondo__tf_context *context, rondo__pb_reader reader, rondo__tf_node *node) {
    rondo__pb_field field;
    rondo__pb_bytes name = {0}, type = {0};
    while (rondo__pb_next(&reader, &field)) {
        if (field.number == TF_NODE_INPUT) node->input_name_count++;
        else if (field.number == TF_NODE_ATTRIBUTE) node->attribute_count++;
        rondo__pb_bytes *text = field.number == TF_NODE_NAME ? &name : field.number == TF_NODE_OP ? &type : NULL;
        if (!text) continue;
        RONDO__TRY(rondo__pb_once(&reader, &field));
        RONDO__TRY(rondo__pb_get_text(&reader, &field, text));
    }
    RONDO__TRY(rondo__pb_end(&reader));
    RONDO__TRY(rondo__import_text(&context->scratch, name, &node->name));
    RONDO__TRY(rondo__import_text(&context->scratch, type, &node->type));
    if (!name.size) return RONDO__FAIL(CORRUPT, FILE, "a node without a name");
    if (!type.size) return RONDO__TF_CORRUPT(node, "it names no operator");
    if (strpbrk(node->name, "^:#")) return RONDO__TF_CORRUPT(node, "no node is called so");
    if (node->attribute_count > RONDO__TF_ATTRIBUTES_MAX)
        return RONDO__TF_CORRUPT(node, "%u attributes; at most %u are allowed", node->attribute_count,
                                 RONDO__TF_ATTRIBUTES_MAX);
    return RONDO_OK;
}

static rondo_status tf_node_attribute(rondo__pb_reader *reader, rondo__tf_attribute *attribute) {
    rondo__pb_field field;
    while (rondo__pb_next(reader, &field)) {
        if (field.number != 1 && field.number != 2) continue;
        RONDO__TRY(rondo__pb_once(reader, &field));
        if (field.number == 1) RONDO__TRY(rondo__pb_get_text(reader, &field, &attribute->key));
        else RONDO__TRY(rondo__pb_get_bytes(reader, &field, &attribute->message));
    }
    return rondo__pb_end(reader);
}

rondo_status rondo__tf_node_read(rondo__tf_context *context, const rondo__pb_reader *reader, rondo__tf_node *out_node) {
    memset(out_node, 0, sizeof *out_node);
    out_node->context = context;
    out_node->reader = *reader;
    RONDO__TRY(tf_node_names(context, *reader, out_node));
    void *names = NULL, *attributes = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&context->scratch, out_node->input_name_count, sizeof(rondo__pb_bytes), &names));
    RONDO__TRY(rondo__arena_allocate_array(&context->scratch, out_node->attribute_count, sizeof(rondo__tf_attribute),
                                           &attributes));
    out_node->input_names = names;
    out_node->attributes = attributes;
    rondo__pb_bytes *name = names;
    rondo__tf_attribute *attribute = attributes;
    rondo__pb_reader walk = *reader;
    rondo__pb_field field;
    while (rondo__pb_next(&walk, &field)) {
        if (field.number == TF_NODE_INPUT) {
            RONDO__TRY(rondo__pb_get_text(&walk, &field, name++));
        } else if (field.number == TF_NODE_ATTRIBUTE) {
            rondo__pb_reader entry;
            RONDO__TRY(rondo__pb_enter(&walk, &field, &entry));
            RONDO__IMPORT_TRY(tf_node_attribute(&entry, attribute), "node '%.180s' (%.60s)", out_node->name,
                              out_node->type);
            attribute++;
        }
    }
    return rondo__pb_end(&walk);
}

/* ------------------------------------------------------------------------------------------------------ resolve */

/* "name", "name:1" or "^name". */
static rondo_status tf_node_input(rondo__tf_node *node, rondo__pb_bytes text, bool *controls) {
    rondo__tf_context *context = node->context;
    const char *shown;
    RONDO__TRY(rondo__import_text(&context->scratch, text, &shown));
    rondo__pb_bytes name = text;
    const bool control = text.size && text.data[0] == '^';
    uint64_t port = 0;
    if (control) {
        name = (rondo__pb_bytes){text.data + 1, text.size - 1};
    } else {
        const char *colon = strchr(shown, ':');
        if (*controls) return RONDO__TF_CORRUPT(node, "input '%.200s' comes after control inputs", shown);
        if (colon) {
            name.size = (size_t)(colon - shown);
            if (!colon[1] || strlen(colon) > 6 || (colon[1] == '0' && colon[2]))
                return RONDO__TF_CORRUPT(node, "input '%.200s' names no output", shown);
            for (const char *digit = colon + 1; *digit; digit++) {
                if (*digit < '0' || *digit > '9')
                    return RONDO__TF_CORRUPT(node, "input '%.200s' names no output", shown);
                port = port * 10 + (uint64_t)(*digit - '0');
            }
        }
    }
    const uint32_t index = rondo__import_names_find(&context->names, name);
    if (index == RONDO__IMPORT_NAMES_NONE) return RONDO__TF_CORRUPT(node, "its input '%.200s' is not defined", shown);
    *controls = *controls || control;
    if (control) return RONDO_OK;
    node->inputs[node->input_count++] = (rondo__tf_edge){index, (uint32_t)port};
    context->nodes[index].used = true;
    return RONDO_OK;
}

static bool tf_node_is_known(const char *list, rondo__pb_bytes key) {
    if (!key.size || key.data[0] == '_') return true;
    for (const char *at = list; *at;) {
        const size_t size = strcspn(at, " ");
        if (size == key.size && memcmp(at, key.data, size) == 0) return true;
        at += size + (at[size] == ' ');
    }
    return false;
}

rondo_status rondo__tf_node_check(rondo__tf_node *node) {
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const rondo__pb_bytes key = node->attributes[i].key;
        for (uint32_t k = 0; k < i; k++)
            if (key.size == node->attributes[k].key.size &&
                (!key.size || memcmp(key.data, node->attributes[k].key.data, key.size) == 0))
                return RONDO__TF_CORRUPT(node, "attribute '%.*s' is there twice", (int)(key.size < 80 ? key.size : 80),
                                         key.size ? (const char *)key.data : "");
        if (node->row && !tf_node_is_known(node->row->attributes, key))
            return rondo__tf_refuse(node, "an attribute that this operator is not known to have");
    }
    return RONDO_OK;
}

static rondo_status tf_node_outputs(rondo__tf_node *node) {
    int64_t count = node->row ? node->row->outputs : 0;
    if (node->row && count == RONDO__TF_ANY && !node->row->count) {
        count = node->input_count;
    } else if (node->row && count == RONDO__TF_ANY) {
        count = 0;
        RONDO__TRY(rondo__tf_attr_int(node, node->row->count, &count));
        if (count < 1 || count > 65535)
            return RONDO__TF_CORRUPT(node, "attribute '%s' is %lld", node->row->count, (long long)count);
    }
    void *memory = NULL;
    RONDO__TRY(rondo__arena_allocate_array(&node->context->scratch, (size_t)count, sizeof(rondo__tf_value), &memory));
    node->outputs = memory;
    node->output_count = (uint32_t)count;
    for (uint32_t i = 0; i < node->output_count; i++)
        node->outputs[i] = (rondo__tf_value){RONDO_IR_NONE, RONDO_IR_NONE, RONDO_DTYPE_UNDEFINED, -1};
    return RONDO_OK;
}

rondo_status rondo__tf_node_resolve(rondo__tf_node *node) {
    void *memory = NULL;
    RONDO__TRY(
        rondo__arena_allocate_array(&node->context->scratch, node->input_name_count, sizeof(rondo__tf_edge), &memory));
    node->inputs = memory;
    bool controls = false;
    for (uint32_t i = 0; i < node->input_name_count; i++)
        RONDO__TRY(tf_node_input(node, node->input_names[i], &controls));
    const rondo__pb_bytes type = {(const uint8_t *)node->type, strlen(node->type)};
    const bool called = rondo__import_names_find(&node->context->functions, type) != RONDO__IMPORT_NAMES_NONE;
    node->row = called ? NULL : rondo__tf_row_of(node->type);
    RONDO__TRY(tf_node_outputs(node));
    if (!node->row) return RONDO_OK;
    if (node->input_count < node->row->inputs_min ||
        (node->row->inputs_max != RONDO__TF_ANY && node->input_count > node->row->inputs_max))
        return RONDO__TF_CORRUPT(node, "%u inputs; the operator has %u to %u", node->input_count, node->row->inputs_min,
                                 node->row->inputs_max);
    return RONDO_OK;
}

rondo_status rondo__tf_refuse(rondo__tf_node *node, const char *reason) {
    node->refused = true;
    rondo__import_refusal refusal = {node->type, reason, node->name, 0, 1};
    return rondo__import_refuse(&node->context->refusals, &node->context->scratch, &refusal);
}

/* --------------------------------------------------------------------------------------------------- attributes */

static const rondo__tf_attribute *tf_node_find(const rondo__tf_node *node, const char *key) {
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (rondo__import_is(node->attributes[i].key, key)) return &node->attributes[i];
    return NULL;
}

bool rondo__tf_has(const rondo__tf_node *node, const char *key) { return tf_node_find(node, key) != NULL; }

/* The value in `wanted`, the only field that the attribute may have. */
static rondo_status tf_node_attribute_field(rondo__tf_node *node, const char *key, uint32_t wanted,
                                            rondo__pb_reader *out_reader, rondo__pb_field *out_field, bool *out_found) {
    const rondo__tf_attribute *attribute = tf_node_find(node, key);
    *out_found = false;
    if (!attribute) return RONDO_OK;
    RONDO__TRY(rondo__pb_enter_bytes(&node->reader, attribute->message, out_reader));
    rondo__pb_field field;
    while (rondo__pb_next(out_reader, &field)) {
        if (*out_found || field.number != wanted)
            return RONDO__TF_CORRUPT(node, "attribute '%s' is of another kind than its operator's", key);
        *out_field = field;
        *out_found = true;
    }
    RONDO__TRY(rondo__pb_end(out_reader));
    if (*out_found) return RONDO_OK;
    return RONDO__TF_CORRUPT(node, "attribute '%s' has no value", key);
}

static rondo_status tf_node_number(rondo__tf_node *node, const char *key, uint32_t wanted, int64_t *value) {
    rondo__pb_reader reader;
    rondo__pb_field field;
    bool found;
    RONDO__TRY(tf_node_attribute_field(node, key, wanted, &reader, &field, &found));
    return found ? rondo__pb_int64(&reader, &field, value) : RONDO_OK;
}

rondo_status rondo__tf_attr_int(rondo__tf_node *node, const char *key, int64_t *value) {
    return tf_node_number(node, key, TF_ATTRIBUTE_I, value);
}

rondo_status rondo__tf_attr_bool(rondo__tf_node *node, const char *key, bool *value) {
    int64_t number = *value;
    RONDO__TRY(tf_node_number(node, key, TF_ATTRIBUTE_B, &number));
    *value = number != 0;
    return RONDO_OK;
}

rondo_status rondo__tf_attr_float(rondo__tf_node *node, const char *key, float *value) {
    rondo__pb_reader reader;
    rondo__pb_field field;
    bool found;
    RONDO__TRY(tf_node_attribute_field(node, key, TF_ATTRIBUTE_F, &reader, &field, &found));
    return found ? rondo__pb_float(&reader, &field, value) : RONDO_OK;
}

rondo_status rondo__tf_attr_text(rondo__tf_node *node, const char *key, const char **value) {
    rondo__pb_reader reader;
    rondo__pb_field field;
    rondo__pb_bytes text;
    bool found;
    RONDO__TRY(tf_node_attribute_field(node, key, TF_ATTRIBUTE_S, &reader, &field, &found));
    if (!found) return RONDO_OK;
    RONDO__TRY(rondo__pb_get_text(&reader, &field, &text));
    return rondo__import_text(&node->context->scratch, text, value);
}

rondo_status rondo__tf_attr_type(rondo__tf_node *node, const char *key, rondo_dtype *value) {
    int64_t number = -1;
    RONDO__TRY(tf_node_number(node, key, TF_ATTRIBUTE_TYPE, &number));
    if (number >= 0) *value = rondo__tf_dtype(number);
    return RONDO_OK;
}

rondo_status rondo__tf_attr_ints(rondo__tf_node *node, const char *key, uint32_t maximum, int64_t *values,
                                 uint32_t *count) {
    rondo__pb_reader reader, list;
    rondo__pb_field field;
    bool found;
    RONDO__TRY(tf_node_attribute_field(node, key, TF_ATTRIBUTE_LIST, &reader, &field, &found));
    if (!found) return RONDO_OK;
    *count = 0;
    RONDO__TRY(rondo__pb_enter(&reader, &field, &list));
    while (rondo__pb_next(&list, &field)) {
        size_t more;
        if (field.number != TF_ATTRIBUTE_I)
            return RONDO__TF_CORRUPT(node, "attribute '%s' is a list of something else than integers", key);
        RONDO__TRY(rondo__pb_count_varints(&list, &field, &more));
        if (more > maximum - *count)
            return RONDO__TF_CORRUPT(node, "attribute '%s' has more than %u numbers", key, maximum);
        const uint8_t *at = field.payload.data;
        for (size_t i = 0; i < more; i++) values[(*count)++] = (int64_t)rondo__pb_take_varint(&at);
    }
    return rondo__pb_end(&list);
}

rondo_status rondo__tf_attr_shape(rondo__tf_node *node, const char *key, int32_t *rank, int64_t *dims) {
    rondo__pb_reader reader, shape;
    rondo__pb_field field;
    bool found;
    *rank = -1;
    RONDO__TRY(tf_node_attribute_field(node, key, TF_ATTRIBUTE_SHAPE, &reader, &field, &found));
    if (!found) return RONDO_OK;
    RONDO__TRY(rondo__pb_enter(&reader, &field, &shape));
    RONDO__IMPORT_TRY(rondo__tf_shape_read(&shape, rank, dims), "node '%.180s' (%.60s): attribute '%s'", node->name,
                      node->type, key);
    return RONDO_OK;
}

rondo_status rondo__tf_attr_tensor(rondo__tf_node *node, const char *key, const rondo__ir_constant **out_constant) {
    rondo__pb_reader reader, tensor;
    rondo__pb_field field;
    bool found;
    *out_constant = NULL;
    RONDO__TRY(tf_node_attribute_field(node, key, TF_ATTRIBUTE_TENSOR, &reader, &field, &found));
    if (!found) return RONDO__TF_CORRUPT(node, "attribute '%s' is missing", key);
    RONDO__TRY(rondo__pb_enter(&reader, &field, &tensor));
    RONDO__IMPORT_TRY(rondo__tf_tensor_read(node->context, &tensor, out_constant),
                      "node '%.180s' (%.60s): attribute '%s'", node->name, node->type, key);
    return *out_constant ? RONDO_OK : rondo__tf_refuse(node, "a constant of a type that is not supported");
}
