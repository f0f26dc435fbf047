/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, streams and events over a backend's tables; the registry; the recorder that a capture installs on a stream.
 *
 * The public rondo_stream_* functions live here. Each looks once at stream->recorder: null means enqueue on the backend,
 * else the recorder gets the work. Nothing here knows what a graph is.
 */
#ifndef RONDO_SRC_DEVICE_DEVICE_H
#define RONDO_SRC_DEVICE_DEVICE_H

#include <rondo/plugin.h>
#include <rondo/runtime.h>

#include "base/allocator.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/thread.h"
#include "kernel/kernel.h"

typedef struct rondo__memory rondo__memory; /* memory/memory.h */

typedef struct rondo__prepared_kernel {
    rondo_kernel kernel;
    rondo_catalogue catalogue; /* that made it and takes it back */
} rondo__prepared_kernel;

/* A plugin of the registry. */
typedef struct rondo__registry_plugin {
    const rondo_plugin_api *api;
    void *library; /* dlopen's; null for an embedded plugin */
} rondo__registry_plugin;

/* What a capture puts on its streams. Called with the stream's own thread rules; every function records instead of
 * running. `refuse` is called for what cannot be recorded (synchronise, query): it invalidates the capture, keeps its
 * first error, and returns the failure to give to the caller. */
typedef struct rondo__recorder rondo__recorder;
typedef struct rondo__recorder_table {
    rondo_status (*launch)(rondo__recorder *recorder, rondo_stream *stream, const rondo_call *call);
    rondo_status (*copy)(rondo__recorder *recorder, rondo_stream *stream, uint64_t destination, uint64_t source,
                         uint64_t bytes, rondo_copy_kind kind);
    rondo_status (*fill)(rondo__recorder *recorder, rondo_stream *stream, uint64_t address, uint8_t value,
                         uint64_t bytes);
    rondo_status (*host_call)(rondo__recorder *recorder, rondo_stream *stream, rondo_host_function function,
                              void *user);
    rondo_status (*refuse)(rondo__recorder *recorder, rondo_stream *stream, const char *what);
    /* (optional: nothing) Work of the stream was refused before it came here, for this reason, which stays the caller's: it
     * is missing from the capture. */
    void (*missing)(rondo__recorder *recorder, rondo_status why);
    void (*status)(rondo__recorder *recorder, rondo_capture_status *out_status);
    /* The stream is going away: end the capture as abort does, and uninstall. */
    void (*abandon)(rondo__recorder *recorder, rondo_stream *stream);
    /* (optional, both: refused) The stream of a wait may be one that nobody records yet: it joins. `external`: a node,
     * not an order. The event belongs to the stream's device. */
    rondo_status (*event_record)(rondo__recorder *recorder, rondo_event *event, rondo_stream *stream, bool external);
    rondo_status (*event_wait)(rondo__recorder *recorder, rondo_event *event, rondo_stream *stream, bool external);
    /* Of recorders that are among their device's captures. A call that could break captures comes from this thread:
     * null, or the refusal, and then the capture is invalid. Takes no lock. */
    rondo_status (*unsafe)(rondo__recorder *recorder, const char *what);
    /* A reference; false when the last one is going. */
    bool (*hold)(rondo__recorder *recorder);
    void (*let_go)(rondo__recorder *recorder);
} rondo__recorder_table;
struct rondo__recorder {
    const rondo__recorder_table *table;
    uint64_t id;           /* of the capture; of recorders that are among their device's captures */
    rondo__recorder *next; /* of them */
};

/* A run that may still be going on, so that whoever overwrites what it uses, on another stream, comes after it. What
 * `uses` looks at stays as it is while the flight is there; it takes no lock. */
typedef struct rondo__flight rondo__flight;
struct rondo__flight {
    rondo__flight *next, *previous;
    uint64_t stream; /* id of the stream that it went to */
    bool (*uses)(const rondo__flight *flight, uint64_t address, uint64_t bytes);
};

struct rondo_stream {
    rondo__ref_count references;
    rondo_device *device;          /* retained, but for the default stream, which the device owns */
    void *handle;                  /* the backend's */
    rondo__recorder *recorder;     /* null unless a capture records this stream; written by rondo__stream_record only */
    rondo_stream *next, *previous; /* of the device's list, under device->mutex */
    uint64_t id;                   /* may come again when the stream is gone */
    uint64_t born;                 /* never used twice in a device */
    bool wrapped;                  /* another library's: it enqueues there, too */
    rondo__mutex mutex;            /* recursive; one backend entry at a time on devices that are not inline */
    rondo_status pending; /* a failure met while somebody else waited for the stream; the next synchronise has it */
    atomic_uint_least64_t side_of; /* id of the stream that this one worked for last, which has its failures; 0: none */
};

struct rondo_event {
    rondo__ref_count references;
    rondo_device *device; /* retained */
    void *handle;
    bool recorded;
    uint64_t capture; /* where it was recorded last: the id of a capture, 0: outside any */
    uint64_t point;   /* of that capture: its own number */
};

struct rondo_device {
    rondo__ref_count references;
    rondo_allocator allocator;
    rondo_instance *instance; /* retained */
    const rondo__log *log;    /* the instance's */
    const rondo_device_table *table;
    void *handle;
    rondo_device_properties properties;
    char *settings; /* as it was opened, or null */
    rondo__kernel_set kernels;
    rondo__memory *memory; /* made and released by the instance */
    rondo_stream *default_stream;
    rondo_stream *streams; /* all of them */
    uint64_t born;         /* how many there ever were */
    rondo__mutex mutex;    /* streams, prepared */
    void *opened_in;       /* the registry entry that holds the pointer, under the registry's open_mutex */
    void (*on_release)(rondo_device *device); /* instance: drops memory before the backend closes */
    /* instance: what memory knows of the ranges that a copy or fill names, address 0 for none: OUT_OF_RANGE, or STALE for
     * freed memory. Thread-safe. Null: nothing. */
    rondo_status (*check_ranges)(rondo_device *device, uint64_t a, uint64_t b, uint64_t bytes);
    rondo__buffer prepared;      /* rondo__prepared_kernel: what rondo_kernel_prepare and _find gave out */
    rondo__mutex captures_mutex; /* taken last of all */
    rondo__recorder *captures;   /* in progress; written under the mutex */
    rondo__mutex flights_mutex;  /* as that */
    rondo__flight *flights;      /* on devices that are not inline; written under the mutex */
};

static inline bool rondo__device_is_inline(const rondo_device *device) {
    return (device->properties.capabilities & RONDO_DEVICE_INLINE) != 0;
}

/* One backend of the registry. */
typedef struct rondo__registry_entry {
    rondo_backend backend;
    rondo_device **devices; /* one slot an index, not retained; null until opened */
    uint32_t device_count;
} rondo__registry_entry;

/* Types, catalogues and plugins of an instance. Thread-safe after registration. */
#define RONDO__REGISTRY_TYPES_MAX 64u
#define RONDO__REGISTRY_CATALOGUES_MAX 64u
#define RONDO__REGISTRY_PLUGINS_MAX 64u

typedef struct rondo__registry {
    rondo_allocator allocator;
    const rondo__log *log;
    rondo__mutex mutex;
    rondo__mutex open_mutex;  /* opening and closing devices; taken before `mutex`, held while a backend opens */
    rondo__buffer entries;    /* rondo__registry_entry; reserved whole, so that pointers to entries stay */
    rondo__buffer catalogues; /* rondo_catalogue */
    rondo__buffer plugins;    /* rondo__registry_plugin: api and dlopen handle */
    rondo_host_api host_api;
    uint64_t next_id; /* captures, streams: unique in the instance; atomic access only under mutex */
} rondo__registry;

RONDO_MUST_USE rondo_status rondo__registry_init(rondo__registry *registry, const rondo_allocator *allocator,
                                                 const rondo__log *log);
/* Shuts plugins down in reverse order of registration. Every device is closed. */
void rondo__registry_deinit(rondo__registry *registry);
/* Calls the entry and registers what it offers. ALREADY_EXISTS for a type or catalogue name in use, CORRUPT (loading)
 * for a malformed table, naming what is wrong with it. */
RONDO_MUST_USE rondo_status rondo__registry_add(rondo__registry *registry, const char *origin,
                                                rondo_plugin_entry_function entry, void *library);
/* dlopen, then add. NOT_FOUND, UNSUPPORTED (loading). */
/* The index-th catalogue; false past the end. */
bool rondo__registry_catalogue_at(rondo__registry *registry, uint32_t index, rondo_catalogue *out_catalogue);
/* A catalogue of the library's own, which no plugin brought. Before any plugin. */
RONDO_MUST_USE rondo_status rondo__registry_add_catalogue(rondo__registry *registry, rondo_catalogue catalogue);
RONDO_MUST_USE rondo_status rondo__registry_load(rondo__registry *registry, const char *path);
/* Loads every file of a colon-separated list of files and folders (the *.so of a folder, in order of name). What cannot
 * be used is logged as a warning and left out; only OUT_OF_MEMORY fails. Null: nothing. */
RONDO_MUST_USE rondo_status rondo__registry_load_path(rondo__registry *registry, const char *path);
/* Null when there is none. */
rondo__registry_entry *rondo__registry_find(rondo__registry *registry, const char *type);
/* NOT_FOUND. Thread-safe. */
RONDO_MUST_USE rondo_status rondo__registry_catalogue(rondo__registry *registry, const char *name,
                                                      rondo_catalogue *out_catalogue);
uint64_t rondo__registry_next_id(rondo__registry *registry);

/* Finds the open device, or opens it through the backend and makes the default stream. Called with open_mutex held;
 * the memory room is attached by the caller before that is given up (a new device has memory null). */
RONDO_MUST_USE rondo_status rondo__device_open(rondo__registry *registry, rondo_instance *instance, const char *name,
                                               const char *settings, rondo_device **out_device);
/* Whether what a plugin offers is whole: CORRUPT (loading) names the table and the entry that is wrong. `origin` is the
 * plugin's file or name. */
RONDO_MUST_USE rondo_status rondo__plugin_check(const char *origin, const rondo_plugin_api *api);
RONDO_MUST_USE rondo_status rondo__plugin_check_device(const char *type, const rondo_device_table *table);

/* NOT_FOUND with the types that there are. */
rondo_status rondo__device_type_unknown(rondo_instance *instance, const char *type);
/* A stream of the device's list; the device's own one (owned) does not retain the device. */
RONDO_MUST_USE rondo_status rondo__stream_open(rondo_device *device, uint32_t flags, int32_t priority, bool owned,
                                               rondo_stream **out_stream);
/* Ends a capture on it, waits, and takes it from the list. Its references are gone. */
void rondo__stream_close(rondo_stream *stream);
/* Gives back what rondo_kernel_prepare and rondo_kernel_find made and nobody released. */
void rondo__prepared_release_all(rondo_device *device);

/* The registry of a device's instance. */
rondo__registry *rondo__instance_registry(rondo_instance *instance);
/* rondo_device_release for who holds open_mutex. True: the instance's reference is now the caller's, to be released when
 * the mutex is given up. */
RONDO_MUST_USE bool rondo__device_release_locked(rondo_device *device);
/* Waits for all streams of the device that do not capture; keeps the first failure but waits for all. */
RONDO_MUST_USE rondo_status rondo__device_synchronize(rondo_device *device);
/* The same for who has nobody to give a failure to (free, close): it stays with its stream, and the stream's next
 * synchronise returns it. */
void rondo__device_drain(rondo_device *device);

/* Puts a recorder on a stream, or takes it away (null), and tells the backend. Any thread. */
void rondo__stream_record(rondo_stream *stream, rondo__recorder *recorder, rondo_capture_mode mode);
static inline rondo__recorder *rondo__stream_recorder(const rondo_stream *stream) {
    return __atomic_load_n(&stream->recorder, __ATOMIC_ACQUIRE);
}

/* Gives the status back. A capture that records the stream lacks the work that it refuses, and is told. */
RONDO_MUST_USE rondo_status rondo__stream_refuse(const rondo_stream *stream, rondo_status status);

/* capture.c. Captures in progress, so that a call that belongs to no stream can find them. */
void rondo__device_capture_begin(rondo_device *device, rondo__recorder *recorder);
void rondo__device_capture_end(rondo_device *device, rondo__recorder *recorder);
/* With a reference (let_go); null when that capture is over. */
rondo__recorder *rondo__device_capture(rondo_device *device, uint64_t id);
/* Asks every capture in progress whether the calling thread may make a call that could break it. Those that say no are
 * invalid, and the first refusal is returned. */
RONDO_MUST_USE rondo_status rondo__device_unsafe(rondo_device *device, const char *what);

/* flight.c. A flight is begun once, and ended before what it uses changes. */
void rondo__device_flight_begin(rondo_device *device, rondo__flight *flight);
void rondo__device_flight_end(rondo_device *device, rondo__flight *flight);
/* The stream goes behind the runs on other streams that use a byte of the range. */
RONDO_MUST_USE rondo_status rondo__stream_await_flights(rondo_stream *stream, uint64_t address, uint64_t bytes);
static inline bool rondo__device_has_flights(const rondo_device *device) {
    return __atomic_load_n(&device->flights, __ATOMIC_RELAXED) != NULL;
}
/* The stream of that number, with a reference; null when it is gone or going: then it has finished. */
rondo_stream *rondo__stream_of_id(rondo_device *device, uint64_t id);
void rondo__stream_let_go(rondo_stream *stream);
/* When the stream that has that number now was born; 0: there is none. */
uint64_t rondo__stream_born(rondo_device *device, uint64_t id);

/* Backend calls without looking at the recorder or at the arguments: for replay. Where the backend has no execute_list,
 * the list goes entry by entry and the backend learns no lengths: the arguments pass as values. Who knows them uses the
 * functions below. On failure out_failed is the entry's index where it is known, else UINT64_MAX. */
RONDO_MUST_USE rondo_status rondo__stream_execute(rondo_stream *stream, const rondo_list *list, uint64_t *out_failed);
/* Only where the backend has conditions. */
RONDO_MUST_USE rondo_status rondo__stream_condition_begin(rondo_stream *stream, uint64_t address);
void rondo__stream_condition_end(rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__stream_launch(rondo_stream *stream, const rondo_call *call);
RONDO_MUST_USE rondo_status rondo__stream_copy(rondo_stream *stream, uint64_t destination, uint64_t source,
                                               uint64_t bytes, rondo_copy_kind kind);
RONDO_MUST_USE rondo_status rondo__stream_fill(rondo_stream *stream, uint64_t address, uint8_t value, uint64_t bytes);
RONDO_MUST_USE rondo_status rondo__stream_host_call(rondo_stream *stream, rondo_host_function function, void *user);
RONDO_MUST_USE rondo_status rondo__stream_synchronize(rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__stream_query(rondo_stream *stream, bool *out_done);
RONDO_MUST_USE rondo_status rondo__event_record(rondo_event *event, rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__event_wait(rondo_event *event, rondo_stream *stream);
/* Whether the device's own graphs can record and wait for events outside of them; then as nodes of what the device captures
 * on the stream. */
bool rondo__device_has_outside_events(const rondo_device *device);
RONDO_MUST_USE rondo_status rondo__event_outside(rondo_event *event, rondo_stream *stream, bool wait);

#endif
