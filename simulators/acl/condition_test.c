/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs inside of graphs, graphs that are built, and what a graph says of itself. */
#include "acl_testing.h"

typedef struct bed {
    aclrtStream s, inner;
    aclrtFuncHandle add, set;
    void *cell;
    aclmdlRI now;
    aclmdlRICondHandle condition;
    uint64_t *pointer;
} bed;

static bed bed_open(rondo_test *t, uint32_t value, uint32_t flag) {
    bed b = {acl_stream(t), acl_stream(t), acl_function(t, "add"), acl_function(t, "set"), acl_cell(t, 0), NULL,
             NULL,          NULL};
    acl_begin(t, b.s);
    A_OK(t, aclmdlRICaptureGetInfo(b.s, NULL, &b.now));
    A_OK(t, aclmdlRICondHandleCreate(b.now, value, (aclmdlRICondHandleFlag)flag, &b.condition));
    A_OK(t, aclmdlRICondHandleGetCondPtr(b.condition, &b.pointer));
    return b;
}

static void body(rondo_test *t, const bed *b, aclmdlRI model, int64_t n, int64_t count_down) {
    A_OK(t, aclmdlRICaptureToModelRIBegin(b->inner, model, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    A_OK(t, acl_launch(b->add, b->inner, b->cell, n));
    if (count_down) A_OK(t, acl_launch(b->add, b->inner, b->pointer, -1));
    A_OK(t, aclmdlRICaptureEnd(b->inner, NULL));
}

static int64_t run(rondo_test *t, const bed *b, aclmdlRI model, uint64_t value) {
    int64_t zero = 0;
    A_OK(t, aclrtMemcpy(b->cell, 8, &zero, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    A_OK(t, aclrtMemcpy(b->pointer, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    A_OK(t, aclmdlRIExecuteAsync(model, b->s));
    A_OK(t, aclrtSynchronizeStream(b->s));
    return acl_read(t, b->cell);
}

static void test_kinds(rondo_test *t) {
    static const struct {
        aclmdlRICondTaskType type;
        uint32_t size;
        int64_t wants[4]; /* for the values 0 to 3 */
    } rows[] = {{ACL_MODEL_RI_COND_TYPE_IF, 1, {100, 101, 101, 101}},
                {ACL_MODEL_RI_COND_TYPE_IF, 2, {102, 101, 101, 101}},
                {ACL_MODEL_RI_COND_TYPE_WHILE, 1, {100, 101, 102, 103}},
                {ACL_MODEL_RI_COND_TYPE_SWITCH, 3, {101, 102, 103, 100}}};
    A_OPEN(t);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bed b = bed_open(t, 0, 0);
        aclmdlRI models[3] = {NULL};
        aclmdlRICondTaskParams params = {b.condition, rows[i].type, rows[i].size, models};
        A_OK(t, aclmdlRIAddCondTask(params, b.s, 0));
        for (uint32_t k = 0; k < rows[i].size; k++)
            body(t, &b, models[k], k + 1, rows[i].type == ACL_MODEL_RI_COND_TYPE_WHILE);
        A_OK(t, acl_launch(b.add, b.s, b.cell, 100));
        aclmdlRI model = acl_end(t, b.s);
        for (uint64_t value = 0; value < 4; value++) T_EQ(t, run(t, &b, model, value), rows[i].wants[value]);
        A_IS(t, aclmdlRIExecuteAsync(models[0], b.s), 507011);
        A_IS(t, aclmdlRIDestroy(models[0]), 107000);
        A_OK(t, aclmdlRIDestroy(model));
        A_OK(t, aclmdlRIDestroy(models[0])); /* it went with it */
    }
}

static void test_default_value(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT);
    aclmdlRI inside = NULL;
    aclmdlRICondTaskParams params = {b.condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &inside};
    A_OK(t, aclmdlRIAddCondTask(params, b.s, 0));
    body(t, &b, inside, 5, 1);
    aclmdlRI model = acl_end(t, b.s);
    A_IS(t, aclrtFree(b.pointer), 107000);                        /* it goes with its graph */
    for (int i = 0; i < 3; i++) T_EQ(t, run(t, &b, model, 0), 5); /* each launch sets the cell */
}

static void test_refusals(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t, 0, 0);
    aclmdlRI models[2] = {NULL}, model = NULL;
    aclmdlRICondTaskParams params = {b.condition, ACL_MODEL_RI_COND_TYPE_WHILE, 2, models};
    A_IS(t, aclmdlRIAddCondTask(params, b.s, 0), 107000);
    params.size = 1;
    A_IS(t, aclmdlRIAddCondTask(params, b.inner, 0), 107029);
    A_OK(t, aclmdlRIAddCondTask(params, b.s, 0));
    A_OK(t, aclmdlRICaptureToModelRIBegin(b.inner, models[0], ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    A_IS(t, aclrtRecordEventWithFlag(acl_event(t), b.inner, ACL_EVENT_RECORD_EXTERNAL), 207000);
    A_IS(t, aclmdlRICaptureEnd(b.s, &model), 107045);
    T_TRUE(t, model == NULL);
    T_EQ(t, acl_status(t, b.inner), ACL_MODEL_RI_CAPTURE_STATUS_NONE); /* the inner one went, too */
    T_EQ(t, acl_control(t)->alive("models"), 0);
    T_EQ(t, acl_control(t)->set("SOFTWARE_SQ", 0), 0);
    acl_begin(t, b.s);
    A_OK(t, aclmdlRICaptureGetInfo(b.s, NULL, &model));
    A_IS(t, aclmdlRICondHandleCreate(model, 0, 0, &b.condition), 207000);
}

/* In the order of the vendor's checks: the flag, what kind of graph it is, whether it is captured now. */
static void test_where_conditions_are_made(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    aclmdlRI built = NULL;
    aclmdlRICondHandle condition = NULL;
    A_OK(t, aclmdlRIBuildBegin(&built, 0));
    acl_begin(t, s);
    aclmdlRI captured = acl_end(t, s);
    A_IS(t, aclmdlRICondHandleCreate(built, 0, (aclmdlRICondHandleFlag)2, &condition), 107000);
    A_IS(t, aclmdlRICondHandleCreate(built, 0, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition), 207000);
    A_IS(t, aclmdlRICondHandleCreate(captured, 0, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition), 107000);
    T_TRUE(t, condition == NULL);
    A_OK(t, aclmdlRIDestroy(built));
    A_OK(t, aclmdlRIDestroy(captured));
}

/* A part whose capture fails is gone, and breaks that of its whole: no graph is made of what is left. */
static void test_a_part_that_fails(rondo_test *t) {
    A_OPEN(t);
    aclrtStream side = acl_stream(t);
    aclrtEvent fork = acl_event(t);
    for (int told = 0; told < 2; told++) {
        bed b = bed_open(t, 1, 0);
        aclmdlRI inside = NULL, none = NULL, model = NULL;
        aclmdlRICondTaskParams params = {b.condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &inside};
        A_OK(t, aclmdlRIAddCondTask(params, b.s, 0));
        A_OK(t, aclmdlRICaptureToModelRIBegin(b.inner, inside, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
        A_OK(t, acl_launch(b.add, b.inner, b.cell, 1));
        A_OK(t, aclrtRecordEvent(fork, b.inner));
        A_OK(t, aclrtStreamWaitEvent(side, fork));
        if (told) T_EQ(t, acl_control(t)->fail("aclmdlRICaptureEnd", 1, 507899), 0);
        A_IS(t, aclmdlRICaptureEnd(b.inner, &none), told ? 507899 : 107025);
        T_EQ(t, acl_status(t, b.inner), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
        T_EQ(t, acl_status(t, side), ACL_MODEL_RI_CAPTURE_STATUS_NONE);
        A_IS(t, aclmdlRICaptureToModelRIBegin(b.inner, inside, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 107017);
        T_EQ(t, acl_status(t, b.s), ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED);
        A_IS(t, aclmdlRICaptureEnd(b.s, &model), 507903);
        T_TRUE(t, strstr(aclGetRecentErrMsg(), told ? "CaptureEnd answered 507899" : "CaptureEnd answered 107025"));
        T_TRUE(t, model == NULL);
        T_EQ(t, acl_control(t)->alive("models"), 0);
    }
}

/* A capture into a part that could not begin can be begun again. */
static void test_a_part_that_does_not_begin(rondo_test *t) {
    A_OPEN(t);
    bed b = bed_open(t, 1, 0);
    aclmdlRI inside = NULL;
    aclrtContext mine = NULL, other = NULL;
    aclmdlRICondTaskParams params = {b.condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &inside};
    A_OK(t, aclmdlRIAddCondTask(params, b.s, 0));
    T_EQ(t, acl_control(t)->fail("alloc", 1, ACL_ERROR_BAD_ALLOC), 0);
    A_IS(t, aclmdlRICaptureToModelRIBegin(b.inner, inside, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 200000);
    A_OK(t, aclrtGetCurrentContext(&mine));
    A_OK(t, aclrtCreateContext(&other, 0));
    A_IS(t, aclmdlRICaptureToModelRIBegin(acl_stream(t), inside, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 107004);
    A_OK(t, aclrtDestroyContext(other));
    A_OK(t, aclrtSetCurrentContext(mine));
    body(t, &b, inside, 5, 0);
    T_EQ(t, run(t, &b, acl_end(t, b.s), 1), 5);
}

/* ------------------------------------------------------------------------------------------------------- built */

static void told(void *data) { ++*(int *)data; }

static void test_built(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = NULL, ordinary = acl_stream(t);
    aclmdlRI model = NULL;
    void *cell = acl_cell(t, 0);
    int gone = 0;
    A_OK(t, aclrtCreateStreamWithConfig(&s, 0, ACL_STREAM_PERSISTENT));
    A_OK(t, aclmdlRIBuildBegin(&model, 0));
    A_IS(t, aclmdlRIBindStream(model, ordinary, ACL_MODEL_STREAM_FLAG_HEAD), 107000);
    A_OK(t, aclmdlRIBindStream(model, s, ACL_MODEL_STREAM_FLAG_HEAD));
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 4));
    A_IS(t, aclmdlRIBuildEnd(model, NULL), 107000);
    A_OK(t, aclmdlRIEndTask(model, s));
    A_OK(t, aclmdlRIBuildEnd(model, NULL));
    A_OK(t, aclmdlRIExecute(model, -1));
    A_OK(t, aclmdlRIExecuteAsync(model, ordinary));
    A_OK(t, aclrtSynchronizeStream(ordinary));
    T_EQ(t, acl_read(t, cell), 8);
    A_IS(t, aclmdlRIExecute(model, 0), 107000);
    A_OK(t, aclmdlRIAbort(model));
    A_OK(t, aclmdlRIDestroyRegisterCallback(model, told, &gone));
    A_OK(t, aclmdlRIUnbindStream(model, s));
    A_IS(t, aclmdlRIUnbindStream(model, s), 107005);
    A_OK(t, aclmdlRIDestroy(model));
    T_EQ(t, gone, 1);
}

/* Events on bound streams are tasks of the graph, which act when it runs; a call that is refused there spoils nothing. */
static void test_built_with_events(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s[2] = {NULL}, outside = acl_stream(t);
    aclrtEvent plain = NULL, ex = acl_event(t);
    aclrtContext mine = NULL, other = NULL;
    aclrtEventRecordedStatus status;
    aclmdlRI model = NULL;
    void *cell = acl_cell(t, 0), *seen = acl_cell(t, 0);
    A_OK(t, aclrtCreateEvent(&plain));
    A_OK(t, aclmdlRIBuildBegin(&model, 0));
    for (int i = 0; i < 2; i++) {
        A_OK(t, aclrtCreateStreamWithConfig(&s[i], 0, ACL_STREAM_PERSISTENT));
        A_OK(t, aclmdlRIBindStream(model, s[i], ACL_MODEL_STREAM_FLAG_HEAD));
    }
    A_OK(t, acl_launch(acl_function(t, "sleep"), s[0], cell, 2000));
    A_OK(t, acl_launch(acl_function(t, "add"), s[0], cell, 1));
    A_OK(t, aclrtRecordEvent(plain, s[0]));
    A_OK(t, aclrtStreamWaitEvent(s[1], plain));
    A_OK(t, aclrtMemcpyAsync(seen, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, s[1]));
    A_OK(t, aclrtRecordEvent(ex, s[1]));
    A_IS(t, aclrtRecordEventWithFlag(ex, s[0], ACL_EVENT_RECORD_EXTERNAL), 107029);
    A_IS(t, aclrtMemcpyAsync(&mine, 8, cell, 8, ACL_MEMCPY_DEVICE_TO_HOST, s[0]), 107000);
    A_IS(t, aclrtDestroyStream(s[0]), 107005);
    T_TRUE(t, strstr(aclGetRecentErrMsg(), "is bound to graph"));
    A_IS(t, aclmdlRIBindStream(model, s[0], ACL_MODEL_STREAM_FLAG_HEAD), 107005);
    A_OK(t, aclrtSynchronizeStream(s[0])); /* such a stream is not waited for */
    A_OK(t, aclmdlRIEndTask(model, s[0]));
    A_OK(t, aclmdlRIBuildEnd(model, NULL));
    A_IS(t, aclrtMemsetAsync(cell, 8, 0, 8, s[0]), 107005); /* it is finished */
    for (int i = 1; i <= 3; i++) {
        A_OK(t, aclmdlRIExecuteAsync(model, outside));
        A_OK(t, aclrtQueryEventStatus(ex, &status));
        T_EQ(t, status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
        A_OK(t, aclrtSynchronizeEvent(ex));
        T_EQ(t, acl_read(t, seen), i);
    }
    A_OK(t, aclrtSynchronizeStream(outside));
    A_OK(t, aclmdlRIDestroy(model));
    A_OK(t, aclrtDestroyStream(s[0]));
    /* One that is never finished can go, too; and a graph has streams of its own context only. */
    A_OK(t, aclmdlRIBuildBegin(&model, 0));
    A_OK(t, aclmdlRIBindStream(model, s[1], ACL_MODEL_STREAM_FLAG_HEAD));
    A_OK(t, aclrtGetCurrentContext(&mine));
    A_OK(t, aclrtCreateContext(&other, 0));
    A_OK(t, aclrtCreateStreamWithConfig(&s[0], 0, ACL_STREAM_PERSISTENT));
    A_IS(t, aclmdlRIBindStream(model, s[0], ACL_MODEL_STREAM_FLAG_HEAD), 107004);
    A_OK(t, aclrtDestroyContext(other));
    A_OK(t, aclrtSetCurrentContext(mine));
    A_OK(t, aclmdlRIDestroy(model));
    A_OK(t, aclrtDestroyStream(s[1]));
}

static void test_names(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t);
    char name[512], longer[600];
    uint32_t first = 0, second = 0;
    acl_begin(t, s);
    aclmdlRI model = acl_end(t, s);
    acl_begin(t, s);
    aclmdlRI other = acl_end(t, s);
    A_OK(t, aclmdlRIGetName(model, sizeof name, name));
    T_STR(t, name, "");
    A_OK(t, aclmdlRISetName(model, "a name"));
    A_OK(t, aclmdlRIGetName(model, 7, name));
    T_STR(t, name, "a name");
    A_IS(t, aclmdlRIGetName(model, 6, name), 107000);
    memset(longer, 'x', sizeof longer);
    longer[599] = 0;
    A_IS(t, aclmdlRISetName(model, longer), 107000);
    A_OK(t, aclmdlRIGetId(model, &first));
    A_OK(t, aclmdlRIGetId(other, &second));
    T_TRUE(t, first != second);
    A_IS(t, aclmdlRIAbort(model), 207000);
}

/* The form: an array of trace events, each with the fields of the vendor's. */
static void test_json(rondo_test *t) {
    A_OPEN(t);
    aclrtStream s = acl_stream(t), side = acl_stream(t);
    aclrtEvent out = acl_event(t), back = acl_event(t);
    void *cell = acl_cell(t, 0);
    char path[512], text[8192] = "";
    acl_begin(t, s);
    A_OK(t, acl_launch(acl_function(t, "add"), s, cell, 1));
    A_OK(t, aclrtRecordEvent(out, s));
    A_OK(t, aclrtStreamWaitEvent(side, out));
    A_OK(t, aclrtMemsetAsync(cell, 8, 0, 8, side));
    A_OK(t, aclrtRecordEvent(back, side));
    A_OK(t, aclrtStreamWaitEvent(s, back));
    aclmdlRI model = acl_end(t, s);
    (void)snprintf(path, sizeof path, "%s/graph.json", rondo_test_folder(t));
    for (uint32_t flags = 0; flags < 2; flags++) {
        A_OK(t, aclmdlRIDebugJsonPrint(model, path, flags));
        FILE *file = fopen(path, "r");
        T_TRUE(t, file != NULL);
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        (void)fclose(file);
        T_TRUE(t, text[0] == '[' && strchr(text, ']'));
        static const char *const words[] = {"\"name\"",
                                            "\"pid\"",
                                            "\"tid\"",
                                            "\"ts\"",
                                            "\"dur\"",
                                            "\"ph\"",
                                            "\"args\"",
                                            "\"Model Id\"",
                                            "\"Stream Id\"",
                                            "\"Task Id\"",
                                            "\"Task Type\": \"KERNEL_AIVEC\"",
                                            "\"Numblocks\": 1",
                                            "\"Task Ration\"",
                                            "\"Schem Mode\"",
                                            "EVENT_WAIT",
                                            "MEMSET_ASYNC",
                                            "waits for task 2"};
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (!strstr(text, words[i])) rondo_test_fail(t, __FILE__, __LINE__, "%s is not in %s", words[i], text);
        T_EQ(t, strstr(text, "\"Kernel Args Size\": 16") != NULL, flags == 1);
    }
    (void)snprintf(path, sizeof path, "%s/none/graph.json", rondo_test_folder(t));
    A_IS(t, aclmdlRIDebugJsonPrint(model, path, 0), 107000);
    A_IS(t, aclmdlRIDebugJsonPrint(model, path, 2), 107000);
}

RONDO_TEST_MAIN(T_PLAIN(test_kinds), T_PLAIN(test_default_value), T_PLAIN(test_refusals),
                T_PLAIN(test_where_conditions_are_made), T_PLAIN(test_a_part_that_fails),
                T_PLAIN(test_a_part_that_does_not_begin), T_PLAIN(test_built), T_PLAIN(test_built_with_events),
                T_PLAIN(test_names), T_PLAIN(test_json))
