/* SPDX-License-Identifier: Apache-2.0
 *
 * The snapshot, letter by letter. */
#include "memory/memory_testing.h"

#include <stdio.h>

typedef struct written {
    char text[8192];
    size_t size;
    int32_t answer;
} written;

static int32_t write_to(void *user, const char *data, size_t size) {
    written *out = user;
    size_t take_size = size < sizeof out->text - 1 ? size : sizeof out->text - 1;
    memcpy(out->text, data, take_size);
    out->text[take_size] = 0;
    out->size = size;
    return out->answer;
}

static written the_text;

static const char *snapshot(rondo_test *t, world *w, rondo_pool_id pool) {
    memset(&the_text, 0, sizeof the_text);
    T_OK(t, rondo_memory_snapshot(w->device, pool, write_to, &the_text));
    T_EQ(t, the_text.size, strlen(the_text.text));
    return the_text.text;
}

static void test_a_snapshot_of_nothing(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    T_STR(t, snapshot(t, &w, (rondo_pool_id){0, 0}),
          "{\"segments\":[],\n\"device_traces\":[[]],\"external_annotations\":[],\"allocator_settings\":{"
          "\"max_split_size\":-1,\"garbage_collection_threshold\":0,\"expandable_segments\":false,"
          "\"roundup_power2_divisions\":0}}\n");
}

/* A viewer asks for the events of each device that the segments name, by its index. */
static void test_the_second_device_has_its_events(rondo_test *t) {
    world w;
    world_open(t, &w, "sim:1", NULL);
    rondo_stream *s = world_stream(t, &w);
    char *a = take(t, s, 1000);
    const char *text = snapshot(t, &w, (rondo_pool_id){0, 0});
    T_TRUE(t, strstr(text, "{\"device\":1,\"address\":") != NULL);
    T_TRUE(t, strstr(text, "\"device_traces\":[[],[]],\"external_annotations\"") != NULL);
    give(t, &w, a);
}

static void test_segments_blocks_and_states(rondo_test *t) {
    static char want[4096];
    world w;
    world_open(t, &w, "sim", NULL);
    rondo_stream *s = world_stream(t, &w), *other = world_stream(t, &w);
    recorded r;
    char *c = take(t, s, 2 * MIB); /* of the device's own pool */
    rondo_pool_id pool = begin_thread(t, &w);
    char *a = take(t, s, 1000), *b = take(t, s, 700);
    T_OK(t, rondo_memory_pool_end(w.device, pool));
    T_OK(t, rondo_memory_record_stream(w.device, b, other));
    record_begin(t, &r, other, 6);
    give(t, &w, b);
    const char *got = snapshot(t, &w, pool);
    unsigned long long at = address_of(a);
    (void)snprintf(
        want, sizeof want,
        "{\"segments\":[\n{\"device\":0,\"address\":%llu,\"total_size\":2097152,\"allocated_size\":1024,"
        "\"active_size\":2048,\"requested_size\":1700,\"stream\":2,\"segment_type\":\"small\","
        "\"segment_pool_id\":[0,%llu],\"is_expandable\":false,\"frames\":[],\"blocks\":["
        "{\"address\":%llu,\"size\":1024,\"requested_size\":1000,\"state\":\"active_allocated\",\"frames\":[]},"
        "{\"address\":%llu,\"size\":1024,\"requested_size\":700,\"state\":\"active_pending_free\",\"frames\":[]},"
        "{\"address\":%llu,\"size\":2095104,\"requested_size\":0,\"state\":\"inactive\",\"frames\":[]}]}],\n",
        at, (unsigned long long)pool.user, at, at + 1024, at + 2048);
    record_end(&r);
    give(t, &w, a);
    if (rondo_test_failing(t)) return;
    T_TRUE(t, strncmp(got, want, strlen(want)) == 0);
    T_TRUE(t, strstr(got, "large") == NULL);
    /* All of it has the pool's, and the device's own, in order of address. */
    got = snapshot(t, &w, (rondo_pool_id){0, 0});
    const char *first = strstr(got, "\"address\":"), *small = strstr(got, "\"segment_type\":\"small\""),
               *large = strstr(got, "\"segment_type\":\"large\"");
    T_TRUE(t, first && small && large && (small < large) == (a < c));
    T_TRUE(t, strstr(got, "\"segment_pool_id\":[0,0]") != NULL);
    give(t, &w, c);
}

static void test_what_is_refused(rondo_test *t) {
    world w;
    world_open(t, &w, "cpu", NULL);
    T_FAILS(t, rondo_memory_snapshot(NULL, (rondo_pool_id){0, 0}, write_to, &the_text), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_snapshot(w.device, (rondo_pool_id){0, 0}, NULL, NULL), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_memory_snapshot(w.device, (rondo_pool_id){0, 5}, write_to, &the_text), NOT_FOUND, NULL);
    the_text.answer = 3;
    rondo_status status = rondo_memory_snapshot(w.device, (rondo_pool_id){0, 0}, write_to, &the_text);
    the_text.answer = 0;
    T_FAILS(t, status, IO, "returned 3");
}

RONDO_TEST_MAIN(T(test_a_snapshot_of_nothing), T(test_the_second_device_has_its_events),
                T(test_segments_blocks_and_states), T(test_what_is_refused))
