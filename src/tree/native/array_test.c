/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays by themselves: what they span, whose memory it is, what tells them apart. */
#include "tree/native/native_testing.h"

static void test_arrays_are_made_and_freed(rondo_test *t, const char *device) {
    native_world w;
    rondo_array *array = NULL, *host = NULL, *none = NULL, *number = NULL;
    rondo_array_details d = RONDO_ARRAY_DETAILS_INIT;
    const int64_t shape[] = {2, 3, 4}, empty[] = {3, 0};
    void *pointer = NULL;
    nt_open(t, &w, device, NULL);
    uint64_t before = nt_live(&w);
    T_DEFER(t, nt_release, &array);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 3, shape, &array));
    T_EQ(t, nt_live(&w), before + 1);
    T_OK(t, rondo_array_get_details(array, &d));
    T_TRUE(t, d.place == RONDO_TENSOR_DEVICE && d.dtype == RONDO_DTYPE_F32 && d.rank == 3);
    T_TRUE(t, d.shape[0] == 2 && d.shape[1] == 3 && d.shape[2] == 4);
    T_TRUE(t, d.strides[0] == 12 && d.strides[1] == 4 && d.strides[2] == 1);
    T_TRUE(t, d.bytes == 96 && d.storage_bytes == 96 && d.offset == 0 && !d.leased && d.device == w.device);
    nt_fill(&w, array, 7);
    T_EQ(t, nt_first(&w, array), 7);
    rondo_array_retain(array);
    rondo_array_release(array);
    T_EQ(t, nt_live(&w), before + 1);
    nt_release(&array);
    T_EQ(t, nt_live(&w), before);

    T_DEFER(t, nt_release, &host);
    T_OK(t, rondo_array_create_host(w.device, RONDO_DTYPE_I64, 1, shape, &host));
    T_OK(t, rondo_array_data(host, &pointer));
    ((int64_t *)pointer)[1] = 5;
    T_TRUE(t, rondo__memory_is_pinned(w.device->memory, pointer, 16));
    T_OK(t, rondo_array_get_details(host, &d));
    T_TRUE(t, d.place == RONDO_TENSOR_HOST && d.bytes == 16);

    T_DEFER(t, nt_release, &none);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, empty, &none));
    T_OK(t, rondo_array_data(none, &pointer));
    T_TRUE(t, pointer == NULL);
    T_EQ(t, nt_live(&w), before);

    T_DEFER(t, nt_release, &number);
    T_OK(t, rondo_array_create_value(w.device, 42, &number));
    T_OK(t, rondo_array_get_details(number, &d));
    T_TRUE(t, d.place == RONDO_TENSOR_NONE && d.value == 42 && d.rank == 0);
    T_FAILS(t, rondo_array_data(number, &pointer), INVALID_ARGUMENT, "elements");
    T_FAILS(t, rondo_array_alias(number, 0, NULL, NULL, 0, &none), INVALID_ARGUMENT, "number");
    rondo_array_release(NULL);
    rondo_array_retain(NULL);
}
NT_BOTH(test_arrays_are_made_and_freed)

static void test_views_share_a_storage(rondo_test *t, const char *device) {
    native_world w;
    rondo_array *array = NULL, *column = NULL, *row = NULL, *repeated = NULL, *all = NULL;
    rondo_array_details d = RONDO_ARRAY_DETAILS_INIT, of = RONDO_ARRAY_DETAILS_INIT;
    const int64_t shape[] = {3, 4}, three = 3, four = 4, many[] = {5, 4}, over[] = {0, 1}, twelve = 12;
    nt_open(t, &w, device, NULL);
    uint64_t before = nt_live(&w);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, shape, &array));
    T_DEFER(t, nt_release, &array);
    nt_fill(&w, array, 100);
    T_DEFER(t, nt_release, &column);
    T_OK(t, rondo_array_alias(array, 1, &three, &four, 2, &column)); /* 102, 106, 110 */
    T_OK(t, rondo_array_get_details(column, &d));
    T_OK(t, rondo_array_get_details(array, &of));
    T_TRUE(t, d.storage == of.storage && d.offset == 2 && d.bytes == 36 && d.strides[0] == 4);
    T_EQ(t, nt_first(&w, column), 102);
    T_DEFER(t, nt_release, &row);
    T_OK(t, rondo_array_alias(column, 1, &four, NULL, 8, &row)); /* from where the storage begins */
    T_EQ(t, nt_first(&w, row), 108);
    T_DEFER(t, nt_release, &repeated);
    T_OK(t, rondo_array_alias(array, 2, many, over, 4, &repeated));
    T_OK(t, rondo_array_get_details(repeated, &d));
    T_EQ(t, d.bytes, 16);
    T_DEFER(t, nt_release, &all);
    T_OK(t, rondo_array_alias(array, 1, &twelve, NULL, 0, &all));
    T_FAILS(t, rondo_array_alias(array, 1, &three, &four, 4, &all), OUT_OF_RANGE, "pass the storage's end at 48");
    T_FAILS(t, rondo_array_alias(array, 1, &twelve, NULL, 1, &all), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_array_alias(array, 1, &twelve, NULL, UINT64_MAX / 8, &all), OUT_OF_RANGE, NULL);
    nt_release(&array);
    nt_release(&all);
    nt_release(&repeated);
    T_EQ(t, nt_live(&w), before + 1);
    T_EQ(t, nt_first(&w, row), 108);
    nt_release(&row);
    nt_release(&column);
    T_EQ(t, nt_live(&w), before);
}
NT_BOTH(test_views_share_a_storage)

static void test_what_cannot_be_an_array(rondo_test *t) {
    native_world w;
    rondo_array *array = NULL, *four_bits = NULL;
    const int64_t huge[] = {INT64_MAX / 2, 3}, bad[] = {2, -1}, shape[] = {2, 3}, below[] = {-3, 1}, spread[] = {8, 1},
                  nothing[] = {INT64_MAX, INT64_MAX, 0}, far[] = {INT64_MAX / 4, 1}, odd[] = {2, 1}, wide[] = {4, 1};
    float memory[16] = {0};
    nt_open(t, &w, "cpu", NULL);
    T_FAILS(t, rondo_array_create(NULL, RONDO_DTYPE_F32, 2, shape, &array), INVALID_ARGUMENT, "rondo_array_create");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_STRING, 2, shape, &array), INVALID_ARGUMENT, "string");
    T_FAILS(t, rondo_array_create(w.stream, 99, 2, shape, &array), INVALID_ARGUMENT, "unknown");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 17, shape, &array), INVALID_ARGUMENT, "rank 17");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, -1, shape, &array), INVALID_ARGUMENT, "-1");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, NULL, &array), INVALID_ARGUMENT, "shape");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, bad, &array), INVALID_ARGUMENT, "size -1");
    T_FAILS(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 2, huge, &array), OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_array_create_host(NULL, RONDO_DTYPE_F32, 2, shape, &array), INVALID_ARGUMENT, NULL);
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_DEVICE, memory, 64, RONDO_DTYPE_F32, 2, shape, below, &array),
            INVALID_ARGUMENT, "stride -3");
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_DEVICE, memory, 40, RONDO_DTYPE_F32, 2, shape, spread, &array),
            OUT_OF_RANGE, "44 bytes");
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_DEVICE, memory, 64, RONDO_DTYPE_F32, 2, wide, far, &array),
            OUT_OF_RANGE, NULL);
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_DEVICE, NULL, 64, RONDO_DTYPE_F32, 2, shape, NULL, &array),
            INVALID_ARGUMENT, "needs memory");
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_OTHER, memory, 64, RONDO_DTYPE_F32, 2, shape, NULL, &array),
            INVALID_ARGUMENT, "on the device or with the host");
    T_FAILS(t, rondo_array_wrap(w.device, RONDO_TENSOR_HOST, memory, 64, RONDO_DTYPE_I4, 2, shape, odd, &array),
            INVALID_ARGUMENT, "compact");
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 3, nothing, &array));
    T_EQ(t, array->bytes, 0);
    nt_release(&array);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_I4, 2, shape, &four_bits));
    T_DEFER(t, nt_release, &four_bits);
    T_EQ(t, four_bits->bytes, 3);
    T_FAILS(t, rondo_array_alias(four_bits, 1, shape, NULL, 1, &array), INVALID_ARGUMENT, "does not begin a byte");
    T_OK(t, rondo_array_alias(four_bits, 1, shape, NULL, 4, &array));
    T_TRUE(t, array->offset == 2 && array->bytes == 1);
    nt_release(&array);
}

/* What was given for memory is not freed. */
static void test_memory_of_the_caller(rondo_test *t, const char *device) {
    native_world w;
    rondo_array *array = NULL, *host = NULL;
    const int64_t shape = 16;
    void *memory = NULL, *pointer = NULL;
    float here[16];
    nt_open(t, &w, device, NULL);
    T_OK(t, rondo_memory_allocate_on(w.stream, 64, &memory));
    rondo_status status =
        rondo_array_wrap(w.device, RONDO_TENSOR_DEVICE, memory, 64, RONDO_DTYPE_F32, 1, &shape, NULL, &array);
    if (!status) {
        T_DEFER(t, nt_release, &array);
        nt_fill(&w, array, 3);
        T_EQ(t, nt_first(&w, array), 3);
        T_OK(t, rondo_array_record_stream(array, w.stream));
        T_FAILS(t, rondo_array_resize(array, w.stream, 128), INVALID_ARGUMENT, "not the caller's own");
        nt_release(&array);
        T_EQ(t, nt_at(&w, (uint64_t)(uintptr_t)memory), 3);
    }
    rondo_status freed = rondo_memory_free(w.device, memory);
    T_OK(t, status);
    T_OK(t, freed);
    T_OK(t, rondo_array_wrap(w.device, RONDO_TENSOR_HOST, here, sizeof here, RONDO_DTYPE_F32, 1, &shape, NULL, &host));
    T_DEFER(t, nt_release, &host);
    T_OK(t, rondo_array_data(host, &pointer));
    T_TRUE(t, pointer == here);
}
NT_BOTH(test_memory_of_the_caller)

static void test_a_storage_gets_more_memory(rondo_test *t, const char *device) {
    native_world w;
    rondo_array *array = NULL, *view = NULL, *host = NULL, *empty = NULL;
    const int64_t shape = 16, two = 2, none = 0, ninety = 90;
    void *before = NULL, *after = NULL;
    nt_open(t, &w, device, NULL);
    uint64_t live = nt_live(&w);
    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 1, &shape, &array));
    T_DEFER(t, nt_release, &array);
    T_OK(t, rondo_array_alias(array, 1, &two, NULL, 5, &view));
    T_DEFER(t, nt_release, &view);
    nt_fill(&w, array, 20);
    T_OK(t, rondo_array_data(view, &before));
    T_FAILS(t, rondo_array_resize(array, w.stream, 63), INVALID_ARGUMENT, "does not shrink to 63");
    T_FAILS(t, rondo_array_resize(array, NULL, 640), INVALID_ARGUMENT, "stream");
    T_FAILS(t, rondo_array_resize(NULL, w.stream, 640), INVALID_ARGUMENT, NULL);
    T_OK(t, rondo_array_resize(array, w.stream, 64));
    T_OK(t, rondo_array_resize(view, w.stream, 640));
    T_OK(t, rondo_array_data(view, &after));
    T_TRUE(t, after != before);
    T_EQ(t, nt_first(&w, view), 25);
    T_EQ(t, nt_live(&w), live + 1);
    nt_release(&view);
    T_OK(t, rondo_array_alias(array, 1, &ninety, NULL, 60, &view));
    T_OK(t, rondo_array_record_stream(view, rondo_stream_default(w.device)));

    T_OK(t, rondo_array_create_host(w.device, RONDO_DTYPE_F32, 1, &two, &host));
    T_DEFER(t, nt_release, &host);
    T_OK(t, rondo_array_data(host, &before));
    ((float *)before)[1] = 8;
    T_OK(t, rondo_array_resize(host, NULL, 4096));
    T_OK(t, rondo_array_data(host, &after));
    T_EQ(t, ((float *)after)[1], 8);

    T_OK(t, rondo_array_create(w.stream, RONDO_DTYPE_F32, 1, &none, &empty));
    T_DEFER(t, nt_release, &empty);
    T_OK(t, rondo_array_resize(empty, w.stream, 0));
    T_OK(t, rondo_array_resize(empty, w.stream, 512));
    T_OK(t, rondo_array_data(empty, &after));
    T_TRUE(t, after != NULL);
    nt_release(&empty);
    nt_release(&view);
    nt_release(&array);
    T_EQ(t, nt_live(&w), live);
}
NT_BOTH(test_a_storage_gets_more_memory)

/* The word says what an array is like: the same for the same, else another. Against all of a few thousand. */
#define WORDS 2048
static void test_words_tell_apart(rondo_test *t) {
    static rondo__layout layouts[WORDS];
    static uint64_t words[WORDS];
    static const rondo_dtype dtypes[] = {RONDO_DTYPE_F32, RONDO_DTYPE_I32, RONDO_DTYPE_F16, RONDO_DTYPE_U8};
    native_world w;
    rondo_device *second = NULL;
    nt_open(t, &w, "sim", NULL);
    T_OK(t, rondo_device_open(w.instance, "sim:1", NULL, &second));
    T_DEFER(t, rondo_device_release, second);
    for (int n = 0; n < WORDS; n++) {
        int64_t shape[4], strides[4];
        int32_t rank = (int32_t)(rondo_test_random(t) % 4);
        for (int32_t i = 0; i < rank; i++) {
            shape[i] = (int64_t)(rondo_test_random(t) % 4);
            strides[i] = (int64_t)(rondo_test_random(t) % 3);
        }
        T_OK(t, rondo__layout_make(dtypes[rondo_test_random(t) % 4], rank, shape, strides, &layouts[n]));
        words[n] = rondo__layout_word(&layouts[n], RONDO_TENSOR_DEVICE, w.device);
        T_TRUE(t, words[n] != rondo__layout_word(&layouts[n], RONDO_TENSOR_HOST, w.device));
        T_TRUE(t, words[n] != rondo__layout_word(&layouts[n], RONDO_TENSOR_DEVICE, second));
        T_EQ(t, rondo__layout_word(&layouts[n], RONDO_TENSOR_HOST, w.device),
             rondo__layout_word(&layouts[n], RONDO_TENSOR_HOST, second));
        for (int m = 0; m < n; m++) {
            bool same = layouts[m].dtype == layouts[n].dtype && layouts[m].rank == rank &&
                        memcmp(layouts[m].shape, layouts[n].shape, (size_t)rank * 8) == 0 &&
                        memcmp(layouts[m].strides, layouts[n].strides, (size_t)rank * 8) == 0;
            T_EQ(t, words[m] == words[n], same);
        }
    }
}

/* The bytes from the first element to the end of the last, against looking at every element. */
static void test_spans_against_every_element(rondo_test *t) {
    for (int n = 0; n < 3000; n++) {
        int64_t shape[3], strides[3], last = -1;
        rondo__layout layout;
        for (int i = 0; i < 3; i++) {
            shape[i] = (int64_t)(rondo_test_random(t) % 4);
            strides[i] = (int64_t)(rondo_test_random(t) % 9);
        }
        for (int64_t a = 0; a < shape[0]; a++) {
            for (int64_t b = 0; b < shape[1]; b++) {
                for (int64_t c = 0; c < shape[2]; c++) {
                    int64_t at = a * strides[0] + b * strides[1] + c * strides[2];
                    if (at > last) last = at;
                }
            }
        }
        T_OK(t, rondo__layout_make(RONDO_DTYPE_F64, 3, shape, strides, &layout));
        T_EQ(t, layout.bytes, (last + 1) * 8);
    }
}

RONDO_TEST_MAIN(NT_ENTRIES(test_arrays_are_made_and_freed), NT_ENTRIES(test_views_share_a_storage),
                NT(test_what_cannot_be_an_array), NT_ENTRIES(test_memory_of_the_caller),
                NT_ENTRIES(test_a_storage_gets_more_memory), T_PLAIN(test_words_tell_apart),
                T_PLAIN(test_spans_against_every_element))
