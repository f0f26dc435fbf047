/* SPDX-License-Identifier: Apache-2.0
 *
 * The insides of the simulator.
 *
 *   call.c      every call's way in: counts, failures on demand, last error, its text
 *   settings.c  what the environment sets, and the control table
 *   object.c    handles: what is alive, and of what kind; the simulator's own memory
 *   init.c      aclInit and its kin; versions
 *   device.c    devices and contexts
 *   queue.c     streams run apart from their callers: a worker each
 *   stream.c    streams, as the interface has them
 *   event.c     events of all kinds
 *   memory.c    what is allocated, freed, pinned
 *   copy.c      copies and fills, at once or in a stream
 *   kernel.c    images, functions; arguments.c, launch.c: their ways onto a stream
 *   host.c      host functions, and callbacks that a thread of the program runs
 *   mode.c      which calls a capture forbids to whom
 *   capture.c   begin and end of captures; fork.c: events in captures
 *   model.c     graphs: a prepared list, and its runs; build.c: made without a capture
 *   group.c     task groups; edit.c: tasks changed one by one; condition.c: graphs inside of graphs
 *   json.c      what is in a graph, for people
 *   offline.c   models from files, which another library runs (acl_executor.h); dataset.c: buffers for them, and their runs
 *   refused.c   what is known by name only
 *
 * One lock guards everything that is said below. Work runs without it.
 */
#ifndef SIMULATORS_ACL_SIM_H
#define SIMULATORS_ACL_SIM_H

#include <acl/acl.h>
#include <acl_simulator.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulators/acl_executor/acl_executor.h"

#define SIM_DEVICES 8
#define SIM_TEXT 512

typedef struct sim_context sim_context;
typedef struct sim_stream sim_stream;
typedef struct sim_event sim_event;
typedef struct sim_model sim_model;
typedef struct sim_lane sim_lane;
typedef struct sim_group sim_group;
typedef struct sim_task sim_task;
typedef struct sim_offline sim_offline;

/* One record of an event: records of several streams may be reached in another order than they were issued. */
typedef struct sim_record {
    uint32_t users;
    bool done;
    aclError error;
    uint64_t stream; /* its number */
} sim_record;

/* ------------------------------------------------------------------------------------------------------- call.c */

enum {
#define ACL_CALL(header, group, result, name, arguments) SIM_CALL_##name,
#define ACL_REFUSED(header, result, name, arguments) SIM_CALL_##name,
#include "abi.def"
    SIM_CALL_alloc,   /* the simulator's own memory */
    SIM_CALL_replays, /* runs of prepared lists */
    SIM_CALL_COUNT
};

/* Counts, and gives the error that was asked for. */
aclError sim_enter(int call);
#define SIM_ENTER(name)                                    \
    do {                                                   \
        aclError sim_entered = sim_enter(SIM_CALL_##name); \
        if (sim_entered) return sim_entered;               \
    } while (0)
/* The same, for calls that need aclInit before. */
aclError sim_enter_ready(int call);
#define SIM_BEGIN(name)                                          \
    do {                                                         \
        aclError sim_entered = sim_enter_ready(SIM_CALL_##name); \
        if (sim_entered) return sim_entered;                     \
    } while (0)
/* Notes the calling thread's last error and its text; gives it back. */
aclError sim_fail(aclError code, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define SIM_CHECK(call)                      \
    do {                                     \
        aclError sim_checked = (call);       \
        if (sim_checked) return sim_checked; \
    } while (0)
/* The name of the call that the thread is in. */
const char *sim_call_name(void);
int sim_call_find(const char *name); /* -1: none */
bool sim_fault_due(int call, aclError *out_error);
int32_t sim_fault_set(const char *name, uint64_t nth, int32_t error);
void sim_fault_parse(const char *text);
uint64_t sim_count(int call);
void sim_count_one(int call);
void sim_count_clear(void);

/* --------------------------------------------------------------------------------------------------- settings.c */

#define SIM_SETTINGS(X)                                                                              \
    X(devices, "DEVICES", 2)           /* how many there are */                                      \
    X(memory, "MEMORY", 1 << 30)       /* bytes of each */                                           \
    X(streams, "STREAMS", 1984)        /* hardware streams of each */                                \
    X(events, "EVENTS", 65536)         /* event ids of each */                                       \
    X(notifies, "NOTIFIES", 1024)      /* notify ids of each */                                      \
    X(queue, "QUEUE", 2048)            /* tasks of a captured stream before it goes on in another */ \
    X(updates, "UPDATES", 1024 * 1024) /* tasks of groups that can be updated */                     \
    X(software_sq, "SOFTWARE_SQ", 1)   /* queues are bound when a graph runs */                      \
    X(task_update, "TASK_UPDATE", 1)   /* the driver can update task groups */                       \
    X(strict, "STRICT", 0)             /* an illegal call invalidates the capture */                 \
    X(delay, "DELAY", 0)               /* microseconds at most before each task */                   \
    X(seed, "SEED", 1)                 /* of the delays */                                           \
    X(destroy_ms, "DESTROY_MS", 10000) /* how long destroying a graph waits for its runs */

typedef struct sim_settings {
#define SIM_X(field, name, value) int64_t field;
    SIM_SETTINGS(SIM_X)
#undef SIM_X
} sim_settings;

/* The table of acl_simulator.h. */
const void *sim_control(void);

/* ----------------------------------------------------------------------------------------------------- object.c */

enum {
    SIM_CONTEXT = 1,
    SIM_STREAM,
    SIM_EVENT,
    SIM_MODEL,
    SIM_LANE,
    SIM_GROUP,
    SIM_TASK,
    SIM_BINARY,
    SIM_FUNCTION,
    SIM_ARGUMENTS,
    SIM_CONDITION,
    SIM_DESC,
    SIM_DATASET,
    SIM_BUFFER
};

/* At the start of everything that a handle stands for. */
typedef struct sim_object {
    uint32_t kind;
    uint32_t reserved;
    uint64_t number; /* never given again */
} sim_object;

/* The object's handle is known from now on. False: no memory. */
bool sim_object_add(void *object, uint32_t kind);
void sim_object_remove(void *object);
/* Null: there is no such thing, or no longer. */
void *sim_object_find(const void *handle, uint32_t kind);
/* Whether the handle still stands for what it stood for, once the lock was let go. */
bool sim_object_is(const void *handle, uint32_t kind, uint64_t number);
uint64_t sim_object_count(uint32_t kind);
/* Zeroed; null when there is none. */
void *sim_allocate(size_t bytes);
bool sim_grow(void **array, size_t *capacity, size_t count, size_t element);

/* ----------------------------------------------------------------------------------------------------- device.c */

typedef struct sim_device {
    uint64_t references;  /* of aclrtSetDevice */
    sim_context *context; /* the default one */
    int64_t hardware_streams, event_ids, notifies, memory, updatable;
} sim_device;

struct sim_context {
    sim_object object;
    int32_t device;
    bool is_default, ending;
    sim_stream *default_stream;
    sim_stream *streams;
    sim_event *events;
    sim_model *models;
    sim_context *next;
};

typedef struct sim_state {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* something finished */
    sim_settings settings;
    uint64_t initialised; /* references of aclInit */
    sim_device devices[SIM_DEVICES];
    sim_context *contexts;
    uint64_t numbers;
    aclrtExceptionInfoCallback exception;
} sim_state;
extern sim_state sim;

/* A function of the program's that is called once the lock is let go. */
typedef struct sim_farewell {
    struct sim_farewell *next;
    void (*function)(void *data);
    void *data;
    bool owned; /* to be freed */
} sim_farewell;

/* What a thread has of its own. */
typedef struct sim_thread {
    sim_context *context;
    uint64_t context_number;
    uint64_t number; /* never given again; 0: not yet */
    uint64_t inside; /* the number of the stream that waits for what this thread is doing; 0: none */
    aclmdlRICaptureMode exchange;
    aclError last;
    int call;
    uint32_t about_count;
    struct sim_about {
        sim_model *model;
        uint64_t number;
    } about[2]; /* captures that the call is about: of its stream, its event, its graph */
    sim_farewell *farewells;
    char *text;  /* newest first */
    char *given; /* what was handed out last */
} sim_thread;
sim_thread *sim_self(void);
uint64_t sim_self_number(void);

void sim_lock(void);
void sim_unlock(void);
/* Unlocks, calls what waited for that, and gives the error back. With the strict switch an error breaks the captures that
 * the call is about. */
aclError sim_leave(aclError error);
/* At the end of what the thread has to call, for the next sim_leave or sim_farewells_say. With the lock. */
void sim_farewell_add(sim_farewell *farewell);
/* Without the lock. */
void sim_farewells_say(void);
/* CONTEXT_NULL where the thread has none. */
aclError sim_current(sim_context **out_context);
/* Waits for all work of the context. `tell`: the first failure is told and forgotten. */
aclError sim_context_wait(sim_context *context, int32_t timeout, bool tell);

/* ----------------------------------------------------------------------------------------------- tasks, queue.c */

enum {
    SIM_KERNEL,
    SIM_COPY,
    SIM_FILL,
    SIM_HOST,
    SIM_CALLBACK,
    SIM_RECORD,
    SIM_WAIT,
    SIM_RESET,
    SIM_VALUE_WRITE,
    SIM_VALUE_WAIT,
    SIM_RUN,
    SIM_UPDATE,
    SIM_BRANCH,
    SIM_ACTIVE,
    SIM_JOIN,
    SIM_OFFLINE,
    SIM_KIND_COUNT
};

typedef struct sim_function {
    sim_object object;
    aclsim_function run;
    uint32_t kind, words;
    uint64_t users; /* launches, and arguments that are put together */
    bool gone;      /* its binary was unloaded: it stays for what still names it, and is not run */
    struct sim_binary *binary;
    struct sim_function *next;
    char name[128];
} sim_function;

/* Arguments of a kernel, as they were when it was launched. */
typedef struct sim_arguments {
    struct sim_arguments *next; /* among those that are out of use */
    sim_function *function;
    uint32_t blocks, scheme;
    size_t size;
    const void *device; /* they lie in device memory; null: below */
    _Alignas(16) unsigned char bytes[];
} sim_arguments;

struct sim_task {
    sim_object object;
    sim_task *next;
    uint32_t kind, lane, sequence;
    bool disabled, external;
    bool faulty; /* its last edit failed */
    sim_group *group;
    union {
        struct {
            _Atomic(sim_arguments *) now;
            sim_arguments *edited; /* by aclmdlRITaskSetParams, until aclmdlRIUpdate */
        } kernel;
        struct {
            unsigned char *to;
            const unsigned char *from;
            size_t width, height, to_pitch, from_pitch;
        } copy;
        struct {
            unsigned char *to;
            size_t count;
            int value;
            bool known; /* the library's own memory */
        } fill;
        struct {
            aclrtHostFunc function;
            void *argument;
        } host;
        struct {
            aclrtCallback function;
            void *argument;
            uint64_t thread;
            bool block;
        } callback;
        struct {
            sim_event *event;
            sim_record *mark;   /* that is made, or waited for; null: there was none */
            int64_t timeout;    /* ms; 0: none */
            sim_task *record;   /* in a graph: the one that is waited for */
            uint32_t waited_by; /* in a graph: 1 + the lane that waits for this record last */
        } event;
        struct {
            uint64_t *address;
            uint64_t value;
            uint32_t flag;
            bool edit;
            uint64_t new_value;
            uint64_t *new_address;
            uint32_t new_flag;
        } value;
        struct {
            sim_model *model;
            sim_record **marks; /* of its waits for and records of events of outside, in order, since it was enqueued */
            size_t mark_count;
        } run;
        struct {
            sim_group *group;
            sim_arguments *first; /* one a task of the group, in order */
        } update;
        struct {
            struct sim_condition *condition;
            aclmdlRICondTaskType type;
            uint32_t size;
            sim_model **models;
        } branch;
        struct {
            sim_offline *model;
            void **addresses; /* of inputs, then outputs */
        } offline;
    } as;
};

struct sim_stream {
    sim_object object;
    sim_context *context;
    sim_stream *next;
    int32_t id;
    uint32_t flags, priority, tag;
    uint64_t failure_mode;
    uint32_t overflow;
    bool is_default, started;
    bool ending;            /* somebody destroys it: it has no handle any more */
    bool dropped;           /* without what it had to do */
    bool gone;              /* it is freed with the last hold */
    uint32_t holds, aborts; /* threads that wait for it; that abort it */
    atomic_bool aborted;
    pthread_t worker;
    pthread_cond_t wake;
    sim_task *first, **end;
    uint64_t random;
    aclError error; /* of work, until somebody synchronises */
    bool dropping;  /* what comes behind the failure is dropped */
    char text[SIM_TEXT];
    uint64_t subscriber; /* thread that runs its callbacks; 0: none */
    sim_model *model;    /* that captures it, or that it is bound to */
    uint32_t lane;
    sim_group *updating;
    bool update_lost;                      /* the group went with its graph; until TaskUpdateEnd */
    sim_arguments *updates, **updates_end; /* launched since TaskUpdateBegin */
    uint32_t update_count;
};

/* Of streams that nobody waits for, and that are not captured. */
#define SIM_STREAM_APART (ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY)

sim_task *sim_task_make(uint32_t kind);
/* One for the stream; without memory 200000, as sim_stream_no_memory. With the lock. */
aclError sim_task_for(sim_stream *stream, uint32_t kind, sim_task **out_task);
/* 200000: what the stream was to do is missing, so that a capture of it is broken. With the lock. */
aclError sim_stream_no_memory(sim_stream *stream, const char *what);
void sim_task_free(sim_task *task);
/* Onto the stream: into its queue, the graph that captures it, or the task group that it updates. The task is the
 * callee's, also when it fails. */
aclError sim_submit(sim_stream *stream, sim_task *task);
bool sim_value_reached(const sim_task *task);
/* 107008 or 107000, where no value can be written or waited for there. With the lock. */
aclError sim_value_check(const void *address, uint32_t flag, uint32_t kind);
/* One piece of work, without the lock. Nonzero: what the stream reports; the text says why. */
aclError sim_task_run(sim_task *task, char *text);
/* What it uses is gone: 507015 for memory, 507027 for a kernel's binary; the text says where. With the lock. */
aclError sim_task_stale(const sim_task *task, char *text);
/* Until it is released the stream is there, if perhaps no longer for the program. */
void sim_stream_hold(sim_stream *stream);
void sim_stream_release(sim_stream *stream);
/* Waits until the stream has nothing to do; null: for ever. GONE: somebody destroys it, and only who holds it may look at
 * it. */
enum { SIM_IDLE, SIM_LATE, SIM_GONE };
int sim_stream_idle(sim_stream *stream, const struct timespec *deadline);
/* The same as an error; 107000 where the stream waits for the calling thread. milliseconds: -1 for ever. */
aclError sim_stream_wait(sim_stream *stream, int32_t milliseconds);
/* 107000, where the stream waits for what the calling thread is doing: it would wait for ever. */
aclError sim_stream_not_mine(const sim_stream *stream, const char *what);
/* 107000, where that stream has a run or an update of the graph: it would not end. */
aclError sim_model_not_mine(const sim_model *model, const char *what);
/* The first failure of the stream's work, which it forgets. */
aclError sim_stream_failure(sim_stream *stream);
aclError sim_stream_make(sim_context *context, uint32_t priority, uint32_t flags, sim_stream **out_stream);
/* Takes the handle, stops the worker and lets the stream go; `drop`: without what is left. Not of one that is ending. The
 * lock is let go meanwhile. */
void sim_stream_end(sim_stream *stream, bool drop);
/* The context's streams in the order in which they were made: waiting in between lets others come and go. */
sim_stream *sim_stream_after(const sim_context *context, uint64_t number);
/* A stream of the current context by its handle; null: the default one. */
aclError sim_stream_of(aclrtStream handle, sim_stream **out_stream);
/* 107027, where the stream captures; 107005, where it is bound to a graph. */
aclError sim_stream_not_captured(sim_stream *stream, const char *what);
/* 1 more hardware stream of the device in use, or none left: the error, with what there is and what is needed. */
aclError sim_hardware_take(int32_t device, int64_t count, aclError error, const char *what);
void sim_hardware_give(int32_t device, int64_t count);
void sim_changed(void);
void sim_delay(uint64_t *random);
/* Waits for a change; false: the deadline has passed. null: no deadline. */
bool sim_wait_changed(const struct timespec *deadline);
void sim_deadline(int64_t milliseconds, struct timespec *out_deadline);
/* -1 or above 0; else 107000. */
aclError sim_check_timeout(int32_t timeout);

/* ------------------------------------------------------------------------------------------------------ event.c */

enum { SIM_EVENT_PLAIN, SIM_EVENT_FLAG, SIM_EVENT_EX };

struct sim_event {
    sim_object object;
    sim_context *context;
    sim_event *next;
    uint32_t kind, flags;
    bool has_id, raised, gone;
    uint64_t issued;    /* records */
    sim_record *latest; /* of them; null: none yet */
    uint64_t waits, waits_done;
    uint64_t users; /* tasks that mention it */
    uint64_t time;  /* of the last record that was reached, in nanoseconds */
    /* In captures. */
    sim_model *model; /* that it was recorded in last, while it captures */
    sim_task *record;
    uint32_t use; /* 0: none yet, 1: as usual, 2: outside of graphs */
};

/* Whether a wait of the event for that record is over. */
bool sim_event_reached(const sim_event *event, const sim_record *mark);
/* Issues one more record: it is the latest from now on. Null: no memory. A reference is the caller's. */
sim_record *sim_event_issue(sim_event *event, uint64_t stream);
void sim_event_record_done(sim_event *event, sim_record *mark, aclError error);
sim_record *sim_record_hold(sim_record *mark);
void sim_record_release(sim_record *mark);
/* Whoever waits from now on for what the stream recorded behind its failure does not fail for it any more. */
void sim_event_forgive(uint64_t stream);
void sim_event_release(sim_event *event);
void sim_event_destroy(sim_event *event);

/* ----------------------------------------------------------------------------------------------------- memory.c */

enum { SIM_MEMORY_NONE, SIM_MEMORY_DEVICE, SIM_MEMORY_PINNED, SIM_MEMORY_REGISTERED, SIM_MEMORY_FREED };

typedef struct sim_block {
    uintptr_t base;
    size_t size;
    uint32_t kind;
    int32_t device;
    void *raw;       /* what to free */
    uint64_t number; /* never given again */
    bool owned;      /* by the library: a program does not free it */
} sim_block;

/* The block that the address lies in, or null: pageable. */
const sim_block *sim_memory_find(const void *address);
/* Null, or the sentence that says why [address, address + bytes) cannot be used. */
bool sim_memory_bad(const void *address, size_t bytes, char *text, size_t capacity);
/* The same, where [address, address + bytes) was the library's own memory once: what nothing is known of is gone. */
bool sim_memory_gone(const void *address, size_t bytes, char *text, size_t capacity);
/* Of the block that the address lies in; 0: none, or one that was freed. */
uint64_t sim_memory_number(const void *address);
/* A program that frees it is refused. */
void sim_memory_own(const void *pointer);
/* A word among a kernel's arguments that points into memory that was freed. */
bool sim_memory_stale_word(const void *arguments, size_t size, uint64_t *out_word);
aclError sim_memory_take(int32_t device, size_t size, uint32_t kind, void **out_pointer);
aclError sim_memory_give(void *pointer, uint32_t kind);
/* Device memory that was taken before the number was given. */
void sim_memory_release(int32_t device, uint64_t number);
/* Goes up whenever something is freed. */
uint64_t sim_memory_frees(void);
uint64_t sim_memory_bytes(uint32_t kind);
uint64_t sim_memory_blocks(void);

/* ------------------------------------------------------------------------------------- kernel.c, arguments.c */

aclError sim_function_of(const void *handle, sim_function **out_function);
void sim_function_hold(sim_function *function);
void sim_function_release(sim_function *function);
/* Goes up whenever a binary is unloaded. */
uint64_t sim_kernel_unloads(void);
sim_arguments *sim_arguments_make(sim_function *function, uint32_t blocks, size_t size);
/* With the lock. */
void sim_arguments_free(sim_arguments *arguments);
void sim_arguments_free_all(sim_arguments *first);
aclError sim_arguments_run(const sim_arguments *arguments, char *text);
/* As sim_task_stale. */
aclError sim_arguments_stale(const sim_arguments *arguments, char *text);
aclError sim_launch(aclrtStream stream, sim_arguments *arguments);
/* 107000, where a kernel's arguments cannot lie there, in device memory. With the lock. */
aclError sim_launch_check_device(const void *data, size_t size);

/* -------------------------------------------------------------------------------------------------------- host.c */

/* Gives the callback to the thread that subscribed; waits for it where it blocks, until the stream is aborted. With the
 * lock. */
aclError sim_callback_deliver(const sim_stream *stream, const sim_task *task, char *text);

/* ----------------------------------------------------------------------------------------- mode.c, capture.c */

/* What an unsafe call gets: 0, or `error` (107030 or 107041). */
aclError sim_mode_check(sim_context *context, aclError error, const char *what);
/* The call is about that capture, if it is one: sim_leave breaks it, where the call is refused and the strict switch is on.
 * What looks up a handle says so. */
void sim_concern(sim_model *model);
void sim_concern_stream(const void *handle);
/* At the end of a call. */
void sim_refused(aclError error);
/* A call that all captures of the context stand against: with the strict switch they are broken. */
void sim_illegal(const sim_context *context, aclError error);
/* The capture is broken, whatever the switch. */
void sim_invalidate(sim_model *model, aclError error);
/* 107027, where a stream of the context is captured. */
aclError sim_context_not_captured(const sim_context *context, const char *what);
/* 107017, where streams with its flags are not captured. */
aclError sim_capture_check_flags(const sim_stream *stream);
bool sim_context_captures(const sim_context *context);

enum {
    SIM_STATUS_NONE,
    SIM_STATUS_CAPTURING,
    SIM_STATUS_INVALIDATED,
    SIM_STATUS_UPDATING,
    SIM_STATUS_FAULT,
    SIM_STATUS_READY
};

struct sim_lane { /* a captured stream's shadow */
    sim_object object;
    sim_model *model;
    int32_t id;
    uint32_t tasks, cascades;
    sim_task *last;
    sim_task *forked_by; /* the record that it waited for first */
};

typedef struct sim_condition {
    sim_object object;
    sim_model *model;
    uint64_t *cell;
    uint64_t value;
    uint32_t flag;
    struct sim_condition *next;
} sim_condition;

struct sim_group {
    sim_object object;
    sim_model *model;
    sim_stream *stream; /* while it is open */
    uint32_t count;
    sim_stream *updating; /* also while its updates are on their way */
    uint64_t queued;
    size_t first; /* no task of it is in front of that one */
    sim_group *next;
};

struct sim_model {
    sim_object object;
    sim_context *context;
    sim_model *next;
    sim_model *parent; /* a graph inside of another */
    uint32_t id, status;
    uint64_t status_cause; /* the error that broke it */
    char cause[SIM_TEXT];
    bool built;      /* without a capture */
    bool unfinished; /* a graph inside of another that was not captured yet */
    aclmdlRICaptureMode mode;
    uint64_t thread; /* that began its capture */
    sim_stream *origin;
    sim_task **tasks; /* in the order in which they were captured */
    size_t task_count, task_capacity;
    sim_task **work;                  /* the prepared list: those that do something when it runs */
    size_t work_count, outside_count; /* waits for events of outside among them */
    bool apart;                       /* its lanes may have to wait for others than each other */
    sim_lane **lanes;
    size_t lane_count, lane_capacity;
    sim_group *groups, *open_group;
    sim_condition *conditions;
    sim_arguments *retired; /* replaced while it may have run */
    uint64_t checked_gone;  /* when its tasks were looked at, by what had gone */
    uint64_t pending;       /* runs that are enqueued or going on */
    bool active;            /* one is going on */
    atomic_bool aborted;    /* that one */
    int64_t hardware, notifies;
    char name[512];
    sim_farewell *farewells; /* of who is told when it goes */
};

/* What ends a run, and the runs of parts in it. */
typedef struct sim_stop {
    const atomic_bool *stream, *model;
} sim_stop;

static inline bool sim_stopped(const sim_stop *stop) {
    return atomic_load_explicit(stop->stream, memory_order_relaxed) ||
           atomic_load_explicit(stop->model, memory_order_relaxed);
}

/* What a run that is stopped answers. */
aclError sim_stop_told(char *text);

/* Null: there is no such graph. */
sim_model *sim_model_of(const void *handle);
aclError sim_model_make(sim_context *context, sim_model **out_model);
/* Ends its captures and frees it. */
void sim_model_free(sim_model *model);
/* The stream is the graph's from now on. 107033, where it updates a task group: what is launched there is the group's. */
aclError sim_model_lane(sim_model *model, sim_stream *stream, aclError error);
aclError sim_model_append(sim_model *model, sim_stream *stream, sim_task *task);
/* Makes the prepared list. With the lock. */
aclError sim_model_prepare(sim_model *model);
/* One run of the prepared list. Without the lock. */
aclError sim_model_run(sim_model *model, const sim_stop *stop, char *text);
void sim_model_run_done(sim_model *model);
/* The records that the run's waits for outside are for, and those that it will make: taken when it is enqueued, used when it
 * is its turn. Who waits right behind a launch waits for its records. */
bool sim_model_take_marks(sim_task *run, uint64_t stream);
void sim_model_use_marks(sim_task *run);
/* Records that it did not come to are over, too. */
void sim_model_settle_marks(sim_task *run, aclError error);

/* fork.c: events on streams that capture, or that join. `external`: by flag. */
aclError sim_fork_record(sim_event *event, sim_stream *stream, bool external);
aclError sim_fork_wait(sim_event *event, sim_stream *stream, bool external);
aclError sim_fork_reset(sim_event *event, sim_stream *stream);
/* Its streams and events are free again. */
void sim_capture_detach(sim_model *model);
/* 107025 names the stream, what it did last and what forked it. */
aclError sim_fork_check(const sim_model *model);

/* group.c */
aclError sim_group_capture(sim_model *model, sim_stream *stream, sim_task *task);
aclError sim_group_update(sim_stream *stream, sim_task *task);
/* 107033, where the stream updates a group, or one that is gone. */
aclError sim_group_not_updating(const sim_stream *stream);
/* What was launched for an update that does not come to its end. */
void sim_group_forget(sim_stream *stream);
void sim_group_apply(sim_task *task);
/* One update of the group is over. */
void sim_group_applied(sim_group *group);
const char *sim_kind_name(uint32_t kind);

/* offline.c, dataset.c: models from files. */
struct sim_offline {
    const sim_executor *executor;
    void *model;
    sim_port *ports; /* inputs, then outputs */
    sim_offline *next;
    uint64_t users; /* descriptions, and runs that are enqueued or going on */
    uint32_t id, inputs, outputs;
    bool gone; /* it was unloaded, and goes with its last user */
};

/* 145003: there is none. */
aclError sim_offline_find(uint32_t id, sim_offline **out_model);
void sim_offline_hold(sim_offline *model);
void sim_offline_release(sim_offline *model);
/* Without the lock; the text says why. */
aclError sim_offline_run(const sim_offline *model, void *const *addresses, char *text);
/* As sim_task_stale. */
aclError sim_offline_stale(const sim_offline *model, void *const *addresses, char *text);

/* condition.c */
aclError sim_condition_run(const sim_task *task, const sim_stop *stop, char *text);
void sim_condition_start(const sim_model *model);

#endif
