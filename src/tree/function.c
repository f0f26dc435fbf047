/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions, and the sizes that they were called with. */
#include <string.h>

#include "base/sized.h"
#include "tree/seal.h"

#define RONDO__TREE_INPUTS_MAX (1u << 20)
/* Sizes without a recording are forgotten when there are more. */
#define RONDO__TREE_SIZES_MAX 4096u

RONDO__HOT rondo__tree_function *rondo__tree_function_at(const rondo_tree *tree, uint32_t id) {
    return id < tree->functions.count ? *RONDO__BUFFER_AT(&tree->functions, rondo__tree_function *, id) : NULL;
}

/* ------------------------------------------------------------------------------------------------------- add */

static rondo_status function_check_indices(const char *what, const uint32_t *indices, uint32_t count, uint32_t limit) {
    if (count && !indices)
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "a function counts %u %s and lists none", count, what);
    for (uint32_t i = 0; i < count; i++) {
        if (indices[i] >= limit) {
            return RONDO__FAIL(INVALID_ARGUMENT, TREE, "%s of a function: index %u of %u", what, indices[i], limit);
        }
    }
    return RONDO_OK;
}

static rondo_status function_check(const rondo_tree_function *given) {
    if (given->mode < RONDO_TREE_INFERENCE || given->mode > RONDO_TREE_BACKWARD) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "mode %d of a function is none", (int)given->mode);
    }
    if (given->input_count > RONDO__TREE_INPUTS_MAX || given->output_count > RONDO__TREE_INPUTS_MAX) {
        return RONDO__FAIL(OUT_OF_RANGE, TREE, "a function of %u inputs and %u outputs: at most %u", given->input_count,
                           given->output_count, RONDO__TREE_INPUTS_MAX);
    }
    if (given->constant_count && !given->constants) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "a function counts %u constants and lists none",
                           given->constant_count);
    }
    RONDO__TRY(function_check_indices("static inputs", given->static_inputs, given->static_count, given->input_count));
    RONDO__TRY(
        function_check_indices("mutated inputs", given->mutated_inputs, given->mutated_count, given->input_count));
    return function_check_indices("owned outputs", given->owned_outputs, given->owned_count, given->output_count);
}

static rondo_status function_fill(rondo_tree *tree, const rondo_tree_function *given, rondo__tree_function *function) {
    const rondo_allocator *allocator = &tree->allocator;
    void *memory = NULL;
    RONDO__TRY(rondo__string_copy(allocator, given->name ? given->name : "", &function->name));
    RONDO__TRY(rondo__string_copy(allocator, given->skip, &function->skip));
    RONDO__TRY(rondo__allocate_array(allocator, given->input_count, sizeof(bool), &memory));
    function->is_static = memory;
    for (uint32_t i = 0; i < given->static_count; i++) function->is_static[given->static_inputs[i]] = true;
    RONDO__TRY(rondo__allocate_array(allocator, given->mutated_count, sizeof(uint32_t), &memory));
    function->mutated = memory;
    function->mutated_count = given->mutated_count; /* sizes the memory; entries that are static repeat another */
    RONDO__TRY(rondo__allocate_array(allocator, given->owned_count, sizeof(uint32_t), &memory));
    function->owned = memory;
    function->owned_count = given->owned_count;
    if (given->owned_count) memcpy(function->owned, given->owned_outputs, given->owned_count * sizeof(uint32_t));
    RONDO__TRY(rondo__allocate_array(allocator, given->constant_count, sizeof(void *), &memory));
    function->constants = memory;
    function->constant_count = given->constant_count;
    function->table_size = 4;
    RONDO__TRY(rondo__allocate_array(allocator, function->table_size, sizeof(rondo__tree_size *), &memory));
    function->table = memory;
    if (given->mutated_count) memcpy(function->mutated, given->mutated_inputs, given->mutated_count * sizeof(uint32_t));
    return RONDO_OK;
}

static rondo_status tree_make_room(rondo_tree *tree, uint32_t inputs) {
    void *pointers = NULL, *words = NULL;
    if (inputs <= tree->room) return RONDO_OK;
    RONDO__TRY(rondo__allocate_array(&tree->allocator, inputs, 8, &pointers));
    rondo_status status = rondo__allocate_array(&tree->allocator, inputs, 8, &words);
    if (status) {
        rondo__free(&tree->allocator, pointers, (size_t)inputs * 8u);
        return status;
    }
    rondo__free(&tree->allocator, tree->pointers, (size_t)tree->room * 8u);
    rondo__free(&tree->allocator, tree->words, (size_t)tree->room * 8u);
    tree->pointers = pointers;
    tree->words = words;
    tree->room = inputs;
    return RONDO_OK;
}

static rondo_status tree_add_locked(rondo_tree *tree, const rondo_tree_function *given, uint32_t *out_function) {
    void *memory = NULL;
    RONDO__TRY(tree_make_room(tree, given->input_count));
    RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, sizeof(rondo__tree_function), &memory));
    rondo__tree_function *function = memory;
    function->id = (uint32_t)tree->functions.count;
    function->mode = given->mode;
    function->simple = given->simple != 0;
    function->input_count = given->input_count;
    function->output_count = given->output_count;
    rondo_status status = function_fill(tree, given, function);
    if (!status) status = rondo__buffer_reserve(&tree->functions, tree->functions.count + 1u);
    if (!status) status = rondo__book_add_name(tree->book, function->name);
    if (status) {
        function->constant_count = 0; /* not ours yet */
        rondo__tree_function_destroy(tree, function);
        return status;
    }
    for (uint32_t i = 0; i < given->constant_count; i++) {
        function->constants[i] = given->constants[i] ? tree->host.retain(tree->host.user, given->constants[i]) : NULL;
    }
    function->model = given->model;
    function->release_model = given->release_model;
    rondo_status_release(rondo__buffer_append(&tree->functions, &function, 1)); /* reserved above */
    *out_function = function->id;
    return RONDO_OK;
}

rondo_status rondo_tree_add_function(rondo_tree *tree, const rondo_tree_function *given, uint32_t *out_function) {
    rondo_tree_function read = RONDO_TREE_FUNCTION_INIT;
    if (!tree || !out_function) {
        return RONDO__FAIL(INVALID_ARGUMENT, TREE, "rondo_tree_add_function needs a tree and a place for the number");
    }
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tree_function", given));
    RONDO__TRY(rondo__sized_read(RONDO_LAYER_TREE, "rondo_tree_function", given, &read, sizeof read));
    RONDO__TRY(function_check(&read));
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_add_function"));
    rondo_status status = tree_add_locked(tree, &read, out_function);
    rondo__tree_unlock(tree);
    return status;
}

/* ---------------------------------------------------------------------------------------------------- remove */

static size_t size_bytes(const rondo__tree_function *function) {
    return sizeof(rondo__tree_size) + (size_t)function->input_count * 8u;
}

void rondo__tree_function_destroy(rondo_tree *tree, rondo__tree_function *function) {
    const rondo_allocator *allocator = &tree->allocator;
    if (function->simple) rondo__tree_simple_drop(tree, function);
    for (uint32_t i = 0; function->table && i < function->table_size; i++) {
        for (rondo__tree_size *size = function->table[i], *next = NULL; size; size = next) {
            next = size->next;
            rondo__free(allocator, size, size_bytes(function));
        }
    }
    rondo__free(allocator, function->table, (size_t)function->table_size * sizeof(rondo__tree_size *));
    if (function->constants) rondo__tree_release_all(tree, function->constants, function->constant_count);
    rondo__free(allocator, function->constants, (size_t)function->constant_count * sizeof(void *));
    rondo__free(allocator, function->is_static, function->input_count * sizeof(bool));
    rondo__free(allocator, function->mutated, (size_t)function->mutated_count * sizeof(uint32_t));
    rondo__free(allocator, function->owned, (size_t)function->owned_count * sizeof(uint32_t));
    rondo__string_free(allocator, function->name);
    rondo__string_free(allocator, function->skip);
    rondo__string_free(allocator, function->why);
    if (function->release_model) function->release_model(function->model);
    rondo__free(allocator, function, sizeof *function);
}

/* Recordings that are on the path go with it; the function goes with the last of them. */
static void function_bury(rondo_tree *tree, rondo__tree_function *function) {
    for (size_t i = 0; i < tree->all.count;) {
        rondo__tree_node *node = *RONDO__BUFFER_AT(&tree->all, rondo__tree_node *, i);
        if (node->function != function || node->doomed) {
            i++;
        } else if (rondo__tree_on_path(tree, node)) {
            node->doomed = true;
            i++;
        } else {
            rondo__tree_drop_node(tree, node);
            i = 0; /* others went with it */
        }
    }
    rondo__tree_function_unused(tree, function);
}

void rondo__tree_function_unused(rondo_tree *tree, rondo__tree_function *function) {
    if (!function->removed || function->busy || function->recordings) return;
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) {
        if (node->function == function) return;
    }
    *RONDO__BUFFER_AT(&tree->functions, rondo__tree_function *, function->id) = NULL;
    rondo__tree_function_destroy(tree, function);
}

void rondo__tree_functions_unused(rondo_tree *tree) {
    for (size_t i = 0; i < tree->functions.count; i++) {
        rondo__tree_function *function = rondo__tree_function_at(tree, (uint32_t)i);
        if (function) rondo__tree_function_unused(tree, function);
    }
}

rondo_status rondo_tree_remove_function(rondo_tree *tree, uint32_t id) {
    rondo_status status = RONDO_OK;
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_remove_function"));
    rondo__tree_function *function = rondo__tree_function_at(tree, id);
    if (!function || function->removed) {
        status = RONDO__FAIL(NOT_FOUND, TREE, "the tree has no function %u", id);
    } else {
        status = rondo__tree_settle(tree); /* outputs of what is owed stay in use */
    }
    if (!status) {
        rondo__tree_unseal(tree);
        function->removed = true;
        function_bury(tree, function);
    }
    rondo__tree_unlock(tree);
    return status;
}

void rondo__tree_function_stop(rondo_tree *tree, rondo__tree_function *function, rondo_tree_reason reason,
                               const char *why) {
    if (function->stopped) return;
    function->stopped = reason;
    rondo__string_free(&tree->allocator, function->why);
    function->why = NULL;
    RONDO__IGNORE(rondo__string_copy(&tree->allocator, why, &function->why));
    rondo__log_write(tree->log, RONDO_LOG_WARNING, "trees: '%s' is called directly from now on: %s%s%s", function->name,
                     rondo_tree_reason_text(reason), why ? ": " : "", why ? why : "");
}

/* ----------------------------------------------------------------------------------------------------- sizes */

static uint64_t size_hash(const uint64_t *words, uint32_t count) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ words[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

static void size_grow(rondo_tree *tree, rondo__tree_function *function) {
    void *memory = NULL;
    uint32_t wanted = function->table_size * 2u;
    rondo_status status = rondo__allocate_array(&tree->allocator, wanted, sizeof(rondo__tree_size *), &memory);
    if (status) { /* longer chains will do */
        rondo_status_release(status);
        return;
    }
    rondo__tree_size **table = memory;
    for (uint32_t i = 0; i < function->table_size; i++) {
        for (rondo__tree_size *size = function->table[i], *next = NULL; size; size = next) {
            next = size->next;
            size->next = table[size->hash & (wanted - 1u)];
            table[size->hash & (wanted - 1u)] = size;
        }
    }
    rondo__free(&tree->allocator, function->table, (size_t)function->table_size * sizeof(rondo__tree_size *));
    function->table = table;
    function->table_size = wanted;
}

static bool size_in_use(const rondo_tree *tree, const rondo__tree_size *size) {
    for (const rondo__tree_node *node = tree->current; node; node = node->parent) {
        if (node->size == size) return true;
    }
    return size->recordings != 0;
}

static void size_forget(rondo_tree *tree, rondo__tree_function *function) {
    for (uint32_t i = 0; i < function->table_size; i++) {
        rondo__tree_size **link = &function->table[i];
        while (*link) {
            rondo__tree_size *size = *link;
            if (size_in_use(tree, size)) {
                link = &size->next;
                continue;
            }
            *link = size->next;
            rondo__free(&tree->allocator, size, size_bytes(function));
            function->size_count--;
        }
    }
    function->last = NULL;
}

rondo_status rondo__tree_find_size(rondo__tree_call *call) {
    rondo_tree *tree = call->tree;
    rondo__tree_function *function = call->function;
    const uint64_t *words = tree->words;
    size_t bytes = (size_t)function->input_count * 8u;
    void *memory = NULL;
    rondo__tree_size *size = function->last;
    if (size && rondo__tree_same(size->words, words, bytes)) {
        call->size = size;
        return RONDO_OK;
    }
    uint64_t hash = size_hash(words, function->input_count);
    size = function->table[hash & (function->table_size - 1u)];
    while (size && (size->hash != hash || !rondo__tree_same(size->words, words, bytes))) size = size->next;
    if (!size) {
        if (function->size_count >= RONDO__TREE_SIZES_MAX) size_forget(tree, function);
        if (function->size_count >= function->table_size) size_grow(tree, function);
        RONDO__TRY(rondo__allocate_zeroed(&tree->allocator, size_bytes(function), &memory));
        size = memory;
        size->function = function;
        size->hash = hash;
        if (bytes) memcpy(size->words, words, bytes);
        size->next = function->table[hash & (function->table_size - 1u)];
        function->table[hash & (function->table_size - 1u)] = size;
        function->size_count++;
    }
    function->last = size;
    call->size = size;
    return RONDO_OK;
}

/* ------------------------------------------------------------------------------------------------------ info */

rondo_status rondo_tree_get_function_info(rondo_tree *tree, uint32_t id, rondo_tree_function_info *out_info) {
    rondo_status status = RONDO_OK;
    RONDO__TRY(rondo__sized_check(RONDO_LAYER_TREE, "rondo_tree_function_info", out_info));
    RONDO__TRY(rondo__tree_enter(tree, "rondo_tree_get_function_info"));
    const rondo__tree_function *function = rondo__tree_function_at(tree, id);
    if (!function || function->removed) {
        status = RONDO__FAIL(NOT_FOUND, TREE, "the tree has no function %u", id);
    } else {
        rondo_tree_function_info info = function->info;
        info.struct_size = sizeof info;
        info.mode = function->mode;
        info.name = function->name;
        info.recordings = function->recordings + rondo__tree_simple_recorded(function);
        info.roots = function->roots;
        info.sizes = function->size_count;
        info.stopped = function->stopped;
        rondo__sized_write(&info, sizeof info, out_info);
    }
    rondo__tree_unlock(tree);
    return status;
}
