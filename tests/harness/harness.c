/* SPDX-License-Identifier: Apache-2.0
 *
 * The unit tests' frame: the linker hands every malloc of the program to the functions below, which count, remember and,
 * in a failing run, refuse. A body is run under setjmp; whatever it deferred runs however it ended.
 *
 * Deferred functions get addresses of the body's locals. A failed check runs them before it jumps, while those locals
 * are alive. When the body returns, they run below a gap in the stack that keeps its frame as it was; that is why test
 * files are compiled without optimisation, which would drop the last stores to locals.
 *
 * For the one who debugs: RONDO_TEST_ONLY=name runs one test, RONDO_TEST_NTH=n only the run in which allocation n fails.
 * A breakpoint on rondo_test_refused stops where an allocation is refused.
 *
 * Where everything takes many times as long: RONDO_TEST_EACH=n lets each allocation fail only up to the nth (2000), and
 * of those that follow fewer and fewer (emulators, the thread sanitizer); RONDO_TEST_STRIDE=n does the like for cases that
 * a test goes through by itself; RONDO_TEST_PLAIN=1 leaves the failing runs out (valgrind). A program that runs so says it
 * in its first line. */
#include "harness/harness.h"

#include <dlfcn.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void __real_free(void *pointer);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void __wrap_free(void *pointer);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void rondo_test_refused(void);

#define EACH_UP_TO 2000u
#define ALL_FROM_UP_TO 100u
#define DEFER_MAX 256u
#define FOLDER_MAX 128u
#define STACK_GAP ((size_t)1 << 20)

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif
#endif
#if !defined(VALGRIND_MAKE_MEM_DEFINED)
#define VALGRIND_MAKE_MEM_DEFINED(pointer, size) ((void)0)
#endif

/* ------------------------------------------------------------------------------------ the allocations alive */

typedef struct heap_entry {
    void *pointer; /* null: free; else of a live allocation */
    size_t size;
    uint64_t number;
    void *caller;
} heap_entry;

static struct {
    pthread_mutex_t mutex;
    atomic_bool counting;
    uint64_t number;   /* allocations of this run so far */
    uint64_t fail_at;  /* 0: none */
    bool fail_onwards; /* also all that follow */
    atomic_bool refused;
    heap_entry *entries;
    size_t capacity, count;
    uint64_t bytes; /* of all entries */
} heap = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* A place for a breakpoint. */
__attribute__((noinline)) void rondo_test_refused(void) { __asm__ volatile(""); }

static size_t heap_slot(const void *pointer) {
    return (size_t)(((uintptr_t)pointer >> 4) * 0x9e3779b97f4a7c15u >> 20) & (heap.capacity - 1);
}

static void heap_insert(heap_entry entry) {
    size_t slot = heap_slot(entry.pointer);
    while (heap.entries[slot].pointer) slot = (slot + 1) & (heap.capacity - 1);
    heap.entries[slot] = entry;
    heap.count++;
    heap.bytes += entry.size;
}

static void heap_grow(void) {
    heap_entry *old = heap.entries;
    size_t capacity = heap.capacity;
    heap.capacity = capacity ? capacity * 2 : 1024;
    heap.entries = __real_calloc(heap.capacity, sizeof *heap.entries);
    heap.count = 0;
    heap.bytes = 0;
    if (!heap.entries) _exit(99);
    for (size_t i = 0; i < capacity; i++)
        if (old[i].pointer) heap_insert(old[i]);
    __real_free(old);
}

static heap_entry *heap_find(const void *pointer) {
    if (!heap.count) return NULL;
    for (size_t slot = heap_slot(pointer); heap.entries[slot].pointer; slot = (slot + 1) & (heap.capacity - 1))
        if (heap.entries[slot].pointer == pointer) return &heap.entries[slot];
    return NULL;
}

/* Entries behind the removed one move up, so that no search ends at the gap. */
static void heap_remove(heap_entry *entry) {
    heap.bytes -= entry->size;
    size_t gap = (size_t)(entry - heap.entries), mask = heap.capacity - 1;
    for (size_t next = (gap + 1) & mask; heap.entries[next].pointer; next = (next + 1) & mask) {
        size_t home = heap_slot(heap.entries[next].pointer);
        if (((next - home) & mask) >= ((next - gap) & mask)) {
            heap.entries[gap] = heap.entries[next];
            gap = next;
        }
    }
    heap.entries[gap].pointer = NULL;
    heap.count--;
}

/* True when this allocation is to be refused. */
static bool heap_refuses(void) {
    if (!heap.counting) return false;
    (void)pthread_mutex_lock(&heap.mutex);
    uint64_t number = ++heap.number;
    bool refuse = heap.fail_at && (heap.fail_onwards ? number >= heap.fail_at : number == heap.fail_at);
    if (refuse) heap.refused = true;
    (void)pthread_mutex_unlock(&heap.mutex);
    if (refuse) rondo_test_refused();
    return refuse;
}

static void *heap_add(void *pointer, size_t size, void *caller) {
    if (!pointer || !heap.counting) return pointer;
    (void)pthread_mutex_lock(&heap.mutex);
    if (heap.count * 2 >= heap.capacity) heap_grow();
    heap_insert((heap_entry){pointer, size, heap.number, caller});
    (void)pthread_mutex_unlock(&heap.mutex);
    return pointer;
}

/* Must come before the memory goes: another thread may get the same address at once. */
static bool heap_take(void *pointer, heap_entry *out_entry) {
    (void)pthread_mutex_lock(&heap.mutex);
    heap_entry *entry = pointer ? heap_find(pointer) : NULL;
    if (entry) {
        *out_entry = *entry;
        heap_remove(entry);
    }
    (void)pthread_mutex_unlock(&heap.mutex);
    return entry != NULL;
}

static void heap_put_back(heap_entry entry) {
    (void)pthread_mutex_lock(&heap.mutex);
    heap_insert(entry);
    (void)pthread_mutex_unlock(&heap.mutex);
}

void *__wrap_malloc(size_t size) {
    return heap_refuses() ? NULL : heap_add(__real_malloc(size), size, __builtin_return_address(0));
}

void *__wrap_calloc(size_t count, size_t size) {
    return heap_refuses() ? NULL : heap_add(__real_calloc(count, size), count * size, __builtin_return_address(0));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    return heap_refuses() ? NULL : heap_add(__real_aligned_alloc(alignment, size), size, __builtin_return_address(0));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size) {
    if (heap_refuses()) return 12; /* ENOMEM */
    int result = __real_posix_memalign(out, alignment, size);
    if (result == 0) (void)heap_add(*out, size, __builtin_return_address(0));
    return result;
}

void *__wrap_realloc(void *pointer, size_t size) {
    if (size && heap_refuses()) return NULL;
    heap_entry entry;
    bool known = heap_take(pointer, &entry);
    void *fresh = __real_realloc(pointer, size);
    if (!fresh && size && known) heap_put_back(entry);
    return heap_add(fresh, size, __builtin_return_address(0));
}

void __wrap_free(void *pointer) {
    heap_entry entry;
    (void)heap_take(pointer, &entry);
    __real_free(pointer);
}

/* ----------------------------------------------------------------------------------------------- one run */

/* In order of weight: the heaviest end of a run is kept. */
typedef enum run_end { RUN_PASSED, RUN_QUIET, RUN_SKIPPED, RUN_FAILED } run_end;

struct rondo_test {
    const rondo_test_entry *entry;
    pthread_t thread;
    jmp_buf jump;
    bool jumpable, deferring;
    run_end end;
    char reason[2048];
    char folder[FOLDER_MAX];
    uint64_t random;
    uint32_t defer_count;
    struct {
        void (*function)(void *);
        void *argument;
    } defers[DEFER_MAX];
};

static void test_reason(rondo_test *t, run_end end, const char *format, va_list arguments) {
    if (t->end >= end) return;
    t->end = end;
    (void)vsnprintf(t->reason, sizeof t->reason, format, arguments);
}

/* In reverse order. A check that fails in one of them ends that one. */
static void test_defers(rondo_test *t) {
    jmp_buf outer;
    memcpy(&outer, &t->jump, sizeof outer);
    t->deferring = true;
    while (t->defer_count) {
        t->defer_count--;
        if (setjmp(t->jump) == 0) t->defers[t->defer_count].function(t->defers[t->defer_count].argument);
    }
    t->deferring = false;
    memcpy(&t->jump, &outer, sizeof outer);
}

/* A check that fails on another thread is remembered, but cannot end the body. */
static void test_jump(rondo_test *t) {
    if (!t->jumpable || !pthread_equal(t->thread, pthread_self())) return;
    if (!t->deferring) test_defers(t);
    longjmp(t->jump, 1);
}

static void test_end(rondo_test *t, run_end end, const char *format, ...) RONDO_PRINTF(3, 4);
static void test_end(rondo_test *t, run_end end, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    test_reason(t, end, format, arguments);
    va_end(arguments);
    test_jump(t);
}

void rondo_test_fail(rondo_test *t, const char *file, int line, const char *format, ...) {
    char text[1536];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    test_end(t, RUN_FAILED, "%s:%d: %s", file, line, text);
}

void rondo_test_skip(rondo_test *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    test_reason(t, RUN_SKIPPED, format, arguments);
    va_end(arguments);
    test_jump(t);
}

void rondo_test_ok(rondo_test *t, rondo_status status, const char *text, const char *file, int line) {
    if (!status) return;
    char got[1024];
    rondo_code code = rondo_status_code(status);
    (void)rondo_status_format(status, got, sizeof got);
    rondo_status_release(status);
    if (heap.refused && code == RONDO_CODE_OUT_OF_MEMORY) test_end(t, RUN_QUIET, "out of memory, as asked");
    else rondo_test_fail(t, file, line, "%s: %s", text, got);
}

void rondo_test_code(rondo_test *t, rondo_status status, rondo_code code, const char *part, const char *text,
                     const char *file, int line) {
    char got[4096];
    rondo_code got_code = rondo_status_code(status);
    (void)rondo_status_format(status, got, sizeof got);
    rondo_status_release(status);
    bool quiet = heap.refused && (got_code == RONDO_CODE_OUT_OF_MEMORY || got_code == code);
    if (got_code != code) {
        if (quiet) test_end(t, RUN_QUIET, "out of memory, as asked");
        else rondo_test_fail(t, file, line, "%s: \"%s\", not the failure \"%s\"", text, got, rondo_code_name(code));
    } else if (part && !strstr(got, part)) {
        /* The message may be what found no memory. */
        if (!quiet) rondo_test_fail(t, file, line, "%s: \"%s\" does not say \"%s\"", text, got, part);
    }
}

void rondo_test_near(rondo_test *t, double got, double want, double bound, const char *text, const char *file,
                     int line) {
    if (isnan(got) && isnan(want)) return;
    if (got == want || fabs(got - want) <= bound) return;
    rondo_test_fail(t, file, line, "%s is %.17g, not %.17g within %g", text, got, want, bound);
}

void rondo_test_defer(rondo_test *t, void (*function)(void *), void *argument) {
    if (t->defer_count == DEFER_MAX) {
        function(argument);
        test_end(t, RUN_FAILED, "more than %u deferred functions", DEFER_MAX);
        return;
    }
    t->defers[t->defer_count].function = function;
    t->defers[t->defer_count].argument = argument;
    t->defer_count++;
}

bool rondo_test_failing(const rondo_test *t) {
    (void)t;
    return heap.refused;
}

rondo_test_heap rondo_test_heap_now(rondo_test *t) {
    (void)t;
    (void)pthread_mutex_lock(&heap.mutex);
    rondo_test_heap now = {heap.count, heap.bytes};
    (void)pthread_mutex_unlock(&heap.mutex);
    return now;
}

uint64_t rondo_test_random(rondo_test *t) {
    uint64_t z = (t->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

const char *rondo_test_folder(rondo_test *t) {
    if (!t->folder[0]) {
        const char *base = getenv("TMPDIR");
        (void)snprintf(t->folder, sizeof t->folder, "%.90s/rondo-test-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(t->folder)) {
            t->folder[0] = 0;
            test_end(t, RUN_FAILED, "no folder of its own could be made below %s", base ? base : "/tmp");
        }
    }
    return t->folder;
}

uint64_t rondo_test_stride(void) {
    const char *text = getenv("RONDO_TEST_STRIDE");
    uint64_t stride = text ? strtoull(text, NULL, 10) : 1;
    return stride ? stride : 1;
}

static int folder_remove_one(const char *path, const struct stat *status, int kind, struct FTW *where) {
    (void)status, (void)kind, (void)where;
    return remove(path);
}

/* ---------------------------------------------------------------------------------------- its own allocator */

static void allocator_check(rondo_test *t, const void *pointer, size_t old_size) {
    (void)pthread_mutex_lock(&heap.mutex);
    const heap_entry *entry = heap_find(pointer);
    bool known = entry != NULL;
    size_t size = known ? entry->size : 0;
    (void)pthread_mutex_unlock(&heap.mutex);
    if (!known) test_end(t, RUN_FAILED, "the allocator got back %p, which it did not give", pointer);
    else if (size != old_size)
        test_end(t, RUN_FAILED, "a block of %zu bytes was given back as one of %zu bytes", size, old_size);
}

/* Fresh bytes are not zero, so that who reads them unset is seen. Sizes given back are compared. */
static void *allocator_reallocate(void *self, void *pointer, size_t old_size, size_t new_size, size_t alignment) {
    rondo_test *t = self;
    if (pointer) allocator_check(t, pointer, old_size);
    if (!new_size) {
        free(pointer);
        return NULL;
    }
    if (new_size > PTRDIFF_MAX) return NULL;
    void *fresh = NULL;
    if (alignment <= _Alignof(max_align_t)) fresh = pointer ? realloc(pointer, new_size) : malloc(new_size);
    else if (posix_memalign(&fresh, alignment, new_size) != 0) fresh = NULL;
    if (!fresh) return NULL;
    if (alignment > _Alignof(max_align_t) && pointer) {
        memcpy(fresh, pointer, old_size < new_size ? old_size : new_size);
        free(pointer);
    }
    if (new_size > old_size) memset((char *)fresh + old_size, 0xa5, new_size - old_size);
    return fresh;
}

const rondo_allocator *rondo_test_allocator(rondo_test *t) {
    static rondo_allocator allocator;
    allocator = (rondo_allocator){t, allocator_reallocate};
    return &allocator;
}

/* ---------------------------------------------------------------------------------------------- all the runs */

static void test_leaks(rondo_test *t) {
    if (!heap.count) return;
    const heap_entry *first = NULL;
    for (size_t i = 0; i < heap.capacity; i++)
        if (heap.entries[i].pointer && (!first || heap.entries[i].number < first->number)) first = &heap.entries[i];
    Dl_info where = {0};
    bool placed = dladdr(first->caller, &where) != 0;
    test_end(t, RUN_FAILED,
             "%zu allocations are left; the first is number %llu, of %zu bytes (addr2line -fie %s 0x%llx)", heap.count,
             (unsigned long long)first->number, first->size, placed ? where.dli_fname : "PROGRAM",
             (unsigned long long)((uintptr_t)first->caller - (placed ? (uintptr_t)where.dli_fbase : 0u)));
    /* Reported once is enough: a leak sanitizer would do so again. */
    for (size_t i = 0; i < heap.capacity; i++)
        if (heap.entries[i].pointer) __real_free(heap.entries[i].pointer);
    memset(heap.entries, 0, heap.capacity * sizeof *heap.entries);
    heap.count = 0;
    heap.bytes = 0;
}

/* The body's frame lies just below this function's; a sanitizer's guard around the gap would fall into it, and so would the
 * frames of what the thread sanitizer calls between the body and the gap. */
static __attribute__((noinline, no_sanitize_address, no_sanitize_thread)) void test_body(rondo_test *t) {
    volatile size_t gap_size = STACK_GAP; /* unknown to the compiler, so that it is taken only after the body */
    if (setjmp(t->jump) == 0) {
        t->jumpable = true;
        t->entry->function(t);
        char *gap = __builtin_alloca(gap_size);
        __asm__ volatile("" : : "r"(gap) : "memory");
        VALGRIND_MAKE_MEM_DEFINED(gap, STACK_GAP);
        test_defers(t);
    }
    t->jumpable = false;
}

/* nth 0: plainly. */
static void test_run(rondo_test *t, uint64_t nth, bool onwards) {
    t->end = RUN_PASSED;
    t->reason[0] = t->folder[0] = 0;
    t->defer_count = 0;
    t->jumpable = t->deferring = false;
    t->thread = pthread_self();
    t->random = 0xcbf29ce484222325u;
    for (const char *name = t->entry->name; *name; name++) t->random = (t->random ^ (uint8_t)*name) * 0x100000001b3u;
    (void)pthread_mutex_init(&heap.mutex, NULL); /* a crash may have left it locked */
    if (heap.count) memset(heap.entries, 0, heap.capacity * sizeof *heap.entries);
    heap.count = 0;
    heap.bytes = 0;
    heap.number = 0;
    heap.fail_at = nth;
    heap.fail_onwards = onwards;
    heap.refused = false;
    heap.counting = true;
    test_body(t);
    heap.counting = false;
    test_leaks(t);
    if (t->folder[0]) (void)nftw(t->folder, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (t->end == RUN_FAILED && nth) {
        char reason[sizeof t->reason];
        memcpy(reason, t->reason, sizeof reason);
        (void)snprintf(t->reason, sizeof t->reason, "with allocation %llu%s failing: %.1900s", (unsigned long long)nth,
                       onwards ? " and all after it" : "", reason);
    }
}

static uint64_t each_up_to(void) {
    const char *text = getenv("RONDO_TEST_EACH");
    return text ? strtoull(text, NULL, 10) : EACH_UP_TO;
}

static void test_all_runs(rondo_test *t) {
    const char *only = getenv("RONDO_TEST_NTH");
    if (only) {
        test_run(t, strtoull(only, NULL, 10), strchr(only, '+') != NULL);
        return;
    }
    test_run(t, 0, false);
    if (t->end != RUN_PASSED || t->entry->plain || getenv("RONDO_TEST_PLAIN")) return;
    uint64_t each = each_up_to();
    for (uint64_t nth = 1;; nth += nth < each || nth < 8 ? 1 : nth / 8) {
        test_run(t, nth, false);
        if (t->end == RUN_FAILED) return;
        if (!heap.refused) break;
        if (nth > ALL_FROM_UP_TO) continue;
        test_run(t, nth, true);
        if (t->end == RUN_FAILED) return;
    }
    t->end = RUN_PASSED;
}

static size_t main_passed, main_skipped;

static void main_one(void **state) {
    static rondo_test t;
    t.entry = *state;
    test_all_runs(&t);
    switch (t.end) {
    case RUN_FAILED:
        print_error("%s: %s\n", t.entry->name, t.reason);
        fail();
        break;
    case RUN_SKIPPED:
        main_skipped++;
        print_message("%s: skipped: %s\n", t.entry->name, t.reason);
        skip();
        break;
    default: main_passed++; break;
    }
}

int rondo_test_main(const char *program, const rondo_test_entry *entries, size_t count) {
    struct CMUnitTest *tests = __real_calloc(count ? count : 1, sizeof *tests);
    if (!tests) return 1;
    const char *only = getenv("RONDO_TEST_ONLY");
    size_t selected = 0;
    main_passed = main_skipped = 0;
    for (size_t i = 0; i < count; i++) {
        if (only && strcmp(only, entries[i].name) != 0) continue;
        rondo_test_entry *entry = __real_calloc(1, sizeof *entry);
        if (!entry) return 1;
        *entry = entries[i];
        tests[selected++] = (struct CMUnitTest){.name = entry->name, .test_func = main_one, .initial_state = entry};
    }
    if (rondo_test_stride() > 1) printf("RONDO_TEST_STRIDE: %llu\n", (unsigned long long)rondo_test_stride());
    if (getenv("RONDO_TEST_PLAIN")) printf("RONDO_TEST_PLAIN: each body runs once, no allocation fails\n");
    else if (getenv("RONDO_TEST_EACH"))
        printf("RONDO_TEST_EACH: each of the first %llu allocations fails, then ever fewer\n",
               (unsigned long long)each_up_to());
    const char *slash = strrchr(program, '/');
    int result = _cmocka_run_group_tests(slash ? slash + 1 : program, tests, selected, NULL, NULL);
    for (size_t i = 0; i < selected; i++) __real_free(tests[i].initial_state);
    __real_free(tests);
    printf("%zu passed, %zu failed, %zu skipped\n", main_passed, selected - main_passed - main_skipped, main_skipped);
    return result ? 1 : 0;
}

/* Refused allocations are part of the tests, also those that are refused for their size; and deferred functions look at
 * the locals of a body that has returned. Visible, because the sanitizer's library looks for them. */
RONDO_API const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:detect_stack_use_after_return=0"; }
RONDO_API const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }
