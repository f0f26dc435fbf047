/* SPDX-License-Identifier: Apache-2.0
 *
 * The call list by itself: what a node costs, long calls, what is kept once, and that a million nodes are as cheap as a
 * thousand. */
#include <stdio.h>

#include "graph/graph_testing.h"
#include "graph/list_private.h"

typedef struct list_fixture {
    graph_fixture f;
    rondo__memory_watcher watcher;
    rondo__call_list *list;
} list_fixture;

static void list_close(list_fixture *l) {
    rondo__call_list_destroy(l->list);
    rondo__memory_unwatch(l->f.device->memory, &l->watcher);
}

static void list_open(rondo_test *t, list_fixture *l, const char *device) {
    gt_open(t, &l->f, device);
    l->list = NULL;
    rondo__memory_watcher_init(&l->watcher, 1);
    T_DEFER(t, list_close, l);
    T_OK(t, rondo__call_list_create(l->f.device, &l->watcher, &l->list));
}

static rondo_status add_to(list_fixture *l, const char *name, const void *a, const void *b, const void *out) {
    const rondo_argument arguments[4] = {{gt_word(a), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(b), GT_BYTES, RONDO_ACCESS_READ, 0},
                                         {gt_word(out), GT_BYTES, RONDO_ACCESS_WRITE, 0},
                                         {GT_FLOATS, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = {sizeof call, 4, l->f.add, arguments, name};
    return rondo__call_list_append_call(l->list, &call);
}

static void test_layout(rondo_test *t) {
    T_EQ(t, sizeof(rondo_list_entry), 64);
    T_EQ(t, sizeof(rondo__list_node), 12);
    T_EQ(t, sizeof(rondo__list_block) % sizeof(uint64_t), 0);
}

static void test_entries_are_cache_lines(rondo_test *t) {
    list_fixture l;
    list_open(t, &l, "cpu");
    for (int i = 0; i < 100; i++) {
        T_OK(t, add_to(&l, "x", l.f.buffers[0], l.f.buffers[1], l.f.buffers[2]));
        T_EQ(t, (uintptr_t)l.list->entries % 64, 0);
    }
    T_OK(t, rondo__call_list_seal(l.list));
    T_EQ(t, (uintptr_t)l.list->entries % 64, 0);
    T_EQ(t, l.list->baked.count, 100);
    T_EQ(t, l.list->baked.flags, RONDO_LIST_ONLY_CALLS);
    for (int i = 0; i < 100; i++) T_EQ(t, l.list->entries[i].words[2], gt_word(l.f.buffers[2]));
    T_FAILS(t, add_to(&l, "x", l.f.buffers[0], l.f.buffers[1], l.f.buffers[2]), INVALID_STATE, "sealed");
}

/* Every number of words from 0 to the most, each kernel checking that it got its own. */
static int32_t words_kernel(const void *context, const uint64_t *words) {
    const uint32_t *count = context;
    for (uint32_t i = 0; i < *count; i++)
        if (words[i] != 1000u * *count + i) return 1;
    return 0;
}

static void test_any_number_of_words(rondo_test *t, const char *device) {
    list_fixture l;
    static uint32_t counts[RONDO_ARGUMENT_MAX + 1];
    rondo_argument arguments[RONDO_ARGUMENT_MAX];
    rondo__call_list_node node;
    list_open(t, &l, device);
    for (uint32_t count = 0; count <= RONDO_ARGUMENT_MAX; count++) {
        counts[count] = count;
        for (uint32_t i = 0; i < count; i++)
            arguments[i] = (rondo_argument){1000u * count + i, 0, RONDO_ACCESS_VALUE, 0};
        rondo_call call = {sizeof call, count, {words_kernel, &counts[count]}, count ? arguments : NULL, NULL};
        T_OK(t, rondo__call_list_append_call(l.list, &call));
    }
    T_OK(t, rondo__call_list_seal(l.list));
    T_OK(t, rondo__call_list_seal(l.list)); /* may be repeated */
    T_OK(t, rondo__call_list_run(l.list, l.f.stream));
    T_OK(t, rondo_stream_synchronize(l.f.stream));
    rondo__call_list_describe(l.list, 40, &node);
    T_EQ(t, node.argument_count, 40);
    T_EQ(t, node.arguments[39].word, 40039);
    T_STR(t, node.name, "");
    rondo_call call = {sizeof call, RONDO_ARGUMENT_MAX + 1, {words_kernel, &counts[0]}, arguments, NULL};
    T_FAILS(t, rondo__call_list_append_call(l.list, &call), OUT_OF_RANGE, "at most 64");
}
GT_BOTH(test_any_number_of_words)

static void test_what_repeats_is_kept_once(rondo_test *t) {
    list_fixture l;
    char name[16];
    list_open(t, &l, "cpu");
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "node_%d", i % 7); /* in a buffer that changes under the list */
        T_OK(t, add_to(&l, name, l.f.buffers[i % 3], l.f.buffers[3], l.f.buffers[4 + i % 2]));
    }
    T_EQ(t, l.list->names.count, 1 + 7);
    T_EQ(t, l.list->references.count, RONDO__LIST_REFERENCE_FIRST + 6);
    T_EQ(t, l.list->details.count, 1 + 6);
    rondo__call_list_node node;
    rondo__call_list_describe(l.list, 299, &node);
    T_STR(t, node.name, "node_5");
    T_EQ(t, node.references[0].base, gt_word(l.f.buffers[2]));
    T_EQ(t, node.references[3].base, 0);
    T_EQ(t, node.slots[0], RONDO__LIST_NO_SLOT);
}

/* A free amid recording: addresses that come back belong to the new owner. */
static void test_memory_freed_while_appending(rondo_test *t) {
    list_fixture l;
    list_open(t, &l, "cpu");
    gt_enlarge(&l.f, 0);
    T_OK(t, add_to(&l, "before", l.f.buffers[0], l.f.buffers[1], l.f.buffers[2]));
    gt_recycle(&l.f, 0);
    T_OK(t, add_to(&l, "after", l.f.buffers[0], l.f.buffers[1], l.f.buffers[2]));
    rondo__call_list_node before, after;
    rondo__call_list_describe(l.list, 0, &before);
    rondo__call_list_describe(l.list, 1, &after);
    T_TRUE(t, before.references[0].generation != after.references[0].generation);
    T_TRUE(t, rondo__memory_alive(l.f.device->memory, &after.references[0]));
    T_FAILS(t, rondo__call_list_explain_stale(l.list), STALE, "node 0 'before', argument 0");
}

static void test_failed_append_changes_nothing(rondo_test *t) {
    list_fixture l;
    rondo__call_list_node node;
    list_open(t, &l, "cpu");
    T_OK(t, add_to(&l, "good", l.f.buffers[0], l.f.buffers[1], l.f.buffers[2]));
    T_FAILS(t, add_to(&l, "bad", l.f.buffers[0], l.f.buffers[1] + 1, l.f.buffers[2]), OUT_OF_RANGE,
            "argument 1 of node 1 'bad'");
    const rondo_argument odd = {gt_word(l.f.buffers[0]), 4, 7, 0}, wraps = {UINT64_MAX - 3, 16, RONDO_ACCESS_READ, 0};
    rondo_call call = {sizeof call, 1, l.f.add, &odd, "odd"};
    T_FAILS(t, rondo__call_list_append_call(l.list, &call), INVALID_ARGUMENT, "access 7");
    call.arguments = &wraps;
    T_FAILS(t, rondo__call_list_append_call(l.list, &call), OUT_OF_RANGE, "end of the address space");
    T_EQ(t, rondo__call_list_count(l.list), 1);
    rondo__call_list_describe(l.list, 0, &node);
    T_STR(t, node.name, "good");
    T_OK(t, rondo__call_list_seal(l.list));
    T_OK(t, rondo__call_list_run(l.list, l.f.stream));
    T_OK(t, rondo_stream_synchronize(l.f.stream));
    T_NEAR(t, l.f.buffers[2][0], 100.0, 0.0);
}

static void test_slots_without_an_address(rondo_test *t, const char *device) {
    list_fixture l;
    uint32_t slot, second;
    list_open(t, &l, device);
    T_OK(t, rondo__call_list_add_slot(l.list, 0, GT_BYTES, &slot));
    T_OK(t, rondo__call_list_add_slot(l.list, 0, GT_BYTES, &second));
    T_EQ(t, slot, 0);
    T_EQ(t, second, 1);
    T_FAILS(t, rondo__call_list_add_slot(l.list, 0, 0, &slot), INVALID_ARGUMENT, NULL);
    const rondo_argument arguments[4] = {{0, 4, RONDO_ACCESS_READ, 0},
                                         {gt_word(l.f.buffers[1]), 4, RONDO_ACCESS_READ, 0},
                                         {0, 4, RONDO_ACCESS_WRITE, 0},
                                         {1, 0, RONDO_ACCESS_VALUE, 0}};
    rondo_call call = {sizeof call, 4, l.f.add, arguments, "one"};
    T_FAILS(t, rondo__call_list_argument_slot(l.list, 0, 0, 0), OUT_OF_RANGE, NULL);
    T_OK(t, rondo__call_list_append_call(l.list, &call));
    T_OK(t, rondo__call_list_argument_slot(l.list, 0, 0, 8));
    T_OK(t, rondo__call_list_argument_slot(l.list, 2, 1, 4));
    T_FAILS(t, rondo__call_list_argument_slot(l.list, 2, 0, 4), ALREADY_EXISTS, "slot 1");
    T_FAILS(t, rondo__call_list_argument_slot(l.list, 4, 0, 4), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo__call_list_argument_slot(l.list, 1, 2, 4), OUT_OF_RANGE, NULL);
    T_OK(t, rondo__call_list_seal(l.list));
    rondo__call_list_bind(l.list, 0, gt_word(l.f.buffers[3]));
    rondo__call_list_bind(l.list, 1, gt_word(l.f.buffers[4]));
    T_OK(t, rondo__call_list_run(l.list, l.f.stream));
    T_OK(t, rondo_stream_synchronize(l.f.stream));
    T_NEAR(t, l.f.buffers[4][1], 302.0 + 100.0, 0.0);
}
GT_BOTH(test_slots_without_an_address)

/* Bytes a node; anything quadratic in the nodes would not end before the test's limit. */
static double append_bytes(rondo_test *t, list_fixture *l, uint64_t nodes) {
    rondo__call_list_destroy(l->list);
    l->list = NULL;
    T_OK(t, rondo__call_list_create(l->f.device, &l->watcher, &l->list));
    for (uint64_t i = 0; i < nodes; i++)
        T_OK(t, add_to(l, "add", l->f.buffers[i % 2], l->f.buffers[2], l->f.buffers[1 - i % 2]));
    T_OK(t, rondo__call_list_seal(l->list));
    return (double)rondo__call_list_bytes(l->list) / (double)nodes;
}

static void test_a_million_nodes(rondo_test *t) {
    list_fixture l;
    list_open(t, &l, "cpu");
    T_TRUE(t, append_bytes(t, &l, 10000) < 100.0);
    T_TRUE(t, append_bytes(t, &l, 1000000) < 100.0);
    T_OK(t, rondo__call_list_run(l.list, l.f.stream));
}

RONDO_TEST_MAIN(T(test_layout), T(test_entries_are_cache_lines), GT_ENTRIES(test_any_number_of_words),
                T(test_what_repeats_is_kept_once), T(test_memory_freed_while_appending),
                T(test_failed_append_changes_nothing), GT_ENTRIES(test_slots_without_an_address),
                T_PLAIN(test_a_million_nodes))
