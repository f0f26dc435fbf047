/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call's way in: it is counted, it may be told to fail, and what goes wrong is kept for the thread that called. */
#include "sim.h"

static const char *const call_names[SIM_CALL_COUNT] = {
#define ACL_CALL(header, group, result, name, arguments) #name,
#define ACL_REFUSED(header, result, name, arguments) #name,
#include "abi.def"
    "alloc", "replays"};

static atomic_uint_least64_t call_counts[SIM_CALL_COUNT];
/* Calls until it fails; 0: it does not. */
static atomic_uint_least64_t call_faults[SIM_CALL_COUNT];
static atomic_int call_fault_errors[SIM_CALL_COUNT];

static _Thread_local sim_thread call_thread;
static pthread_key_t call_key;
static pthread_once_t call_once = PTHREAD_ONCE_INIT;

static void call_thread_ends(void *self) {
    sim_thread *thread = self;
    free(thread->text);
    free(thread->given);
    thread->text = thread->given = NULL;
}

static void call_prepare(void) { (void)pthread_key_create(&call_key, call_thread_ends); }

sim_thread *sim_self(void) { return &call_thread; }

uint64_t sim_self_number(void) {
    static atomic_uint_least64_t numbers;
    if (!call_thread.number) call_thread.number = atomic_fetch_add(&numbers, 1) + 1;
    return call_thread.number;
}

void sim_farewell_add(sim_farewell *farewell) {
    sim_farewell **end = &call_thread.farewells;
    while (*end) end = &(*end)->next;
    farewell->next = NULL;
    *end = farewell;
}

/* What is called may call the library, and leave more to be called. */
void sim_farewells_say(void) {
    while (call_thread.farewells) {
        sim_farewell *first = call_thread.farewells, said = *first;
        call_thread.farewells = said.next;
        if (said.owned) free(first);
        said.function(said.data);
    }
}

int sim_call_find(const char *name) {
    for (int i = 0; name && i < SIM_CALL_COUNT; i++)
        if (strcmp(call_names[i], name) == 0) return i;
    return -1;
}

const char *sim_call_name(void) { return call_names[call_thread.call]; }

bool sim_fault_due(int call, aclError *out_error) {
    uint64_t left = atomic_load_explicit(&call_faults[call], memory_order_relaxed);
    if (!left) return false;
    while (left && !atomic_compare_exchange_weak(&call_faults[call], &left, left - 1)) continue;
    if (left != 1) return false;
    *out_error = atomic_load(&call_fault_errors[call]);
    return true;
}

int32_t sim_fault_set(const char *name, uint64_t nth, int32_t error) {
    int call = sim_call_find(name);
    if (call < 0) return -1;
    atomic_store(&call_fault_errors[call], error);
    atomic_store(&call_faults[call], nth);
    return 0;
}

/* name:nth[:error], joined by +. */
void sim_fault_parse(const char *text) {
    while (text && *text) {
        char name[64];
        unsigned long long nth = 0;
        int error = ACL_ERROR_RT_INTERNAL_ERROR;
        size_t length = strcspn(text, "+");
        if (sscanf(text, "%63[A-Za-z0-9]:%llu:%d", name, &nth, &error) < 2 || sim_fault_set(name, nth, error))
            (void)fprintf(stderr, "acl simulator: RONDO_ACL_FAIL: no such failure: %.*s\n", (int)length, text);
        text += length;
        text += *text == '+';
    }
}

uint64_t sim_count(int call) { return atomic_load_explicit(&call_counts[call], memory_order_relaxed); }

void sim_count_one(int call) { atomic_fetch_add_explicit(&call_counts[call], 1, memory_order_relaxed); }

void sim_count_clear(void) {
    for (int i = 0; i < SIM_CALL_COUNT; i++) atomic_store(&call_counts[i], 0);
}

aclError sim_enter(int call) {
    aclError error = 0;
    call_thread.call = call;
    call_thread.about_count = 0;
    sim_count_one(call);
    if (!sim_fault_due(call, &error) || !error) return ACL_SUCCESS;
    return sim_fail(error, "it was told to fail");
}

aclError sim_enter_ready(int call) {
    SIM_CHECK(sim_enter(call));
    sim_lock();
    bool ready = sim.initialised != 0;
    sim_unlock();
    return ready ? ACL_SUCCESS : sim_fail(ACL_ERROR_UNINITIALIZE, "aclInit comes first");
}

/* A code of the kind that messages start with: what was asked, what is missing, what broke. */
static const char *call_class(aclError code) {
    if (code < 200000) return "EE1001";
    return code < 500000 ? "EE1011" : "EE9999";
}

enum { CALL_TEXT = 16384 };
static const char call_trace[] = "        TraceBack (most recent call last):\n";

/* Up to the end of the last whole message in the first `room` bytes: the oldest ones are the last. */
static size_t call_whole_messages(const char *text, size_t room) {
    size_t length = strnlen(text, room + 1), whole = 0;
    if (length <= room) return length;
    for (const char *end = text; (end = strstr(end, call_trace));) {
        end += sizeof call_trace - 1;
        if ((size_t)(end - text) > room) break;
        whole = (size_t)(end - text);
    }
    return whole;
}

/* Null, rather than text of another call than the last one, where there is no memory. */
static void call_note(const char *message) {
    const char *before = call_thread.text ? call_thread.text : "";
    size_t size = strlen(message), kept = call_whole_messages(before, CALL_TEXT - size);
    char *text = malloc(size + kept + 1);
    if (text) {
        memcpy(text, message, size);
        memcpy(text + size, before, kept);
        text[size + kept] = 0;
    }
    free(call_thread.text);
    call_thread.text = text;
}

aclError sim_fail(aclError code, const char *format, ...) {
    char line[SIM_TEXT], message[SIM_TEXT + 256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    (void)pthread_once(&call_once, call_prepare);
    (void)pthread_setspecific(call_key, &call_thread);
    call_thread.last = code;
    (void)snprintf(message, sizeof message, "%s: %s failed. Reason: %s (error %d)\n%s", call_class(code),
                   sim_call_name(), line, code, call_trace);
    call_note(message);
    return code;
}

const char *aclGetRecentErrMsg(void) {
    sim_count_one(SIM_CALL_aclGetRecentErrMsg);
    free(call_thread.given);
    call_thread.given = call_thread.text;
    call_thread.text = NULL;
    return call_thread.given;
}

static aclError call_last(aclrtLastErrLevel level, bool clear) {
    if (level != ACL_RT_THREAD_LEVEL) return sim_fail(ACL_ERROR_RT_PARAM_INVALID, "%d is no level", (int)level);
    aclError last = call_thread.last;
    if (clear) call_thread.last = ACL_SUCCESS;
    return last;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
    sim_count_one(SIM_CALL_aclrtPeekAtLastError);
    return call_last(level, false);
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
    sim_count_one(SIM_CALL_aclrtGetLastError);
    return call_last(level, true);
}
